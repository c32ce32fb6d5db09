#!/bin/sh
# Builds the program that the kernel runs while a program is watched.
# Needs clang and llvm-strip, version 12 or later.
#
#   bpf/build.sh [OBJECT]      default: monitor.bpf.o beside this script, a part of the sources
set -eu
cd "$(dirname "$0")"
object=${1:-monitor.bpf.o}
compiler=$(clang --version | sed -n 's/.*\(clang version [0-9.]*\).*/\1/p')
built="cksum $(cksum <monitor.bpf.c), $compiler"
clang -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -fdebug-compilation-dir=. \
    -DBUILT="\"$built\"" -c monitor.bpf.c -o "$object"
# Leaves the types (.BTF), which the loader needs, and drops the debugger's.
llvm-strip -g "$object"
