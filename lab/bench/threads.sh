#!/usr/bin/env bash
# How many threads real programs should run on this machine: what each method of `pinwise threads`
# answers, how long it takes, and how much speed the answer loses against a full sweep. Prints the
# table that docs/lab/benchmarks.md quotes.
# Usage: lab/bench/threads.sh [PROGRAM …]
# PROGRAM: pigz pbzip2 xz zstd ffmpeg x264 sysbench-cpu sysbench-threads memcached openmp, or all
# without arguments, in about four minutes on two contexts.
# Needs: cargo build --release -p pinwise -p pinwise-lab --bins --examples, python3, gcc and the
# programs' Debian packages; those that are absent are left out.
# METHODS: what is compared with the sweep. BUDGET: what a survey may take. ROUNDS: how often the
# sweep tries each number. WINDOW: so long runs are repeated for a probe. MAX: the most threads.
# SIZE, SECONDS_OF_VIDEO: of the input.
set -euo pipefail
cd "$(dirname "$0")/../.."
pinwise=${PINWISE:-target/release/pinwise}
load=${LOAD:-target/release/examples/memcached_load}
methods=${METHODS:-survey reinforcer}
budget=${BUDGET:-8s}
rounds=${ROUNDS:-6}
# Several runs a probe: a single one does not tell how much it may be off.
whole=(--per-run --window "${WINDOW:-600ms}")
max=${MAX:-$((2 * $(nproc)))}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

head -c "${SIZE:-8000000}" <(cat "$pinwise" "$pinwise" "$pinwise") >"$folder/data"

# What one method answers, in a file of its name; the row ends with the error if there is one.
answer() { # method, options… -- command…
  local method=$1
  shift
  "$pinwise" threads --json --method "$method" --max "$max" "$@" \
    >"$folder/$method.json" 2>"$folder/error" && return
  echo "| $title | $(tail -n 1 "$folder/error") |"
  return 1
}

# One row: every method, then the sweep, each number of which the methods' answers are looked up in.
row() { # title, options… -- command…
  local title=$1 method
  shift
  for method in $methods; do
    # The published search begins where it does by default.
    least=(--min 1)
    [ "$method" = reinforcer ] && least=()
    answer "$method" --budget "$budget" "${least[@]}" "$@" || return 0
  done
  answer sweep --rounds "$rounds" --min 1 "$@" || return 0
  python3 - "$title" "$folder" $methods <<'EOF'
import json, statistics, sys
from collections import defaultdict
title, folder, *methods = sys.argv[1:]
# Student's t at 97.5 % for 1, 2, ... 9 degrees of freedom.
T = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26]
load = lambda name: json.load(open(f"{folder}/{name}.json"))
sweep = load("sweep")
speeds = defaultdict(list)
for probe in sweep["probes"]:
    speeds[probe["parameter"]].append(probe["performance"])
mean = {n: statistics.mean(values) for n, values in speeds.items()}
best = max(mean, key=mean.get)

def loss(n):
    """Against the best, with its 95 % interval.

    It is paired by the rounds, which meet every number at about the same time.
    """
    if n not in mean:
        return "not swept"
    if n == best:
        return "0 %"
    pairs = [(1 - one / other) * 100 for one, other in zip(speeds[n], speeds[best])]
    half = T[min(len(pairs), 10) - 2] * statistics.stdev(pairs) / len(pairs) ** 0.5
    return f"{statistics.mean(pairs):.1f} % ± {half:.1f}"

by_n = " ".join(f"{n}: {mean[n] / mean[1]:.2f}" for n in sorted(mean))
cells = [title, sweep["probes"][0]["measure"], by_n, f"{best}"]
for method in methods:
    answer = load(method)
    n, estimate = answer["parameter"], answer["estimate"]
    interval = f" ({estimate['between'][0]}-{estimate['between'][1]})" if estimate else ""
    search = f"{answer['search_seconds']:.1f} s"
    cells += [f"{n}{interval}", loss(n), f"{len(answer['probes'])}", search]
print("| " + " | ".join(cells) + " |", flush=True)
EOF
}

have() { command -v "$1" >/dev/null || { echo "left out: $1 is not installed" >&2; return 1; }; }

target-pigz() { have pigz && row "pigz" "${whole[@]}" -- pigz -p {n} -k -c "$folder/data"; }
target-pbzip2() { have pbzip2 && row "pbzip2" "${whole[@]}" -- pbzip2 -p{n} -k -c "$folder/data"; }
target-xz() {
  have xz && row "xz -1" "${whole[@]}" -- xz -1 -T{n} --block-size=1MiB -k -c "$folder/data"
}
target-zstd() {
  have zstd && row "zstd -9" "${whole[@]}" -- zstd -9 -q -T{n} -B1M -c "$folder/data"
}

video() {
  [ -e "$folder/video.y4m" ] ||
    ffmpeg -v error -f lavfi -i testsrc2=size=480x270:rate=30 -t "${SECONDS_OF_VIDEO:-3}" \
      -pix_fmt yuv420p "$folder/video.y4m"
}
target-ffmpeg() {
  have ffmpeg && video && row "ffmpeg, libx264" "${whole[@]}" \
    -- ffmpeg -v error -i "$folder/video.y4m" -c:v libx264 -threads {n} -f null -
}
target-x264() {
  have x264 && video && row "x264" "${whole[@]}" \
    -- x264 --quiet --threads {n} -o /dev/null "$folder/video.y4m"
}

target-sysbench-cpu() {
  have sysbench && row "sysbench cpu" "${whole[@]}" \
    -- sysbench cpu --threads={n} --events=2000 --time=0 run
}
target-sysbench-threads() {
  have sysbench && row "sysbench threads, 1 lock" "${whole[@]}" \
    -- sysbench threads --threads={n} --thread-locks=1 --thread-yields=100 --events=2000 \
    --time=0 run
}

target-memcached() {
  have memcached && row "memcached, 8 connections" --window 300ms --threads-per-n 'n+10' \
    --metric "cmd:bash -c 'exec 3<>/dev/tcp/127.0.0.1/16411;
              printf \"stats\r\nquit\r\n\" >&3; cat <&3'" --pick 'STAT cmd_get (\d+)' \
    -- sh -c "memcached -u nobody -l 127.0.0.1 -p 16411 -U 0 -t {n} & sleep 0.2
              exec '$load' 16411 8 80"
}

target-openmp() {
  have gcc || return 0
  cat >"$folder/loop.c" <<'EOF'
#include <stdio.h>
int main(void) {
  volatile double sum = 0;
  for (long round = 0; round < 1000000000; round++) {
    double part = 0;
    #pragma omp parallel for reduction(+:part)
    for (long i = 1; i < 2000000; i++) part += 1.0 / (double)i;
    sum += part;
    printf("round %ld\n", round);
    fflush(stdout);
  }
  return 0;
}
EOF
  gcc -O2 -fopenmp -o "$folder/loop" "$folder/loop.c"
  row "OpenMP loop" --env OMP_NUM_THREADS --metric 'stdout:round (\d+)' --counter -- "$folder/loop"
}

if [ $# = 0 ]; then
  set -- pigz pbzip2 xz zstd ffmpeg x264 sysbench-cpu sysbench-threads memcached openmp
fi
printf '| program | by | speed by n, relative to n = 1 | best n |'
for method in $methods; do printf ' %s: n | loss | probes | search |' "$method"; done
printf '\n|---|---|---|---|'
for _ in $methods; do printf -- '---|---|---|---|'; done
echo
for target in "$@"; do "target-$target" || true; done
