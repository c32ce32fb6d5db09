#!/usr/bin/env bash
# What watching a program costs it, by layer: the table in docs/lab/benchmarks.md. Four programs
# whose threads wait for each other, five minutes in all.
# Usage: lab/bench/monitor.sh [locks|queue|barrier|tokens …] [proc|perf|ebpf|chosen …]
# chosen: as `pinwise threads` does, the best layer that is allowed, given up where it costs the
# program too much. ROUNDS=50 windows of WINDOW=200 ms for each way.
# As root, or with cap_bpf and cap_perfmon; ways that are not allowed are left out and named.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet --release --package pinwise-lab --features bpf --example overhead
exec "${CARGO_TARGET_DIR:-target}/release/examples/overhead" \
  --rounds "${ROUNDS:-50}" --window "${WINDOW:-200}" "$@"
