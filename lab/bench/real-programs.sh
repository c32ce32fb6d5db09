#!/usr/bin/env bash
# Places real programs on this machine and prints what docs/lab/benchmarks.md quotes: best,
# unpinned, gain, measurements and time.
# Usage: lab/bench/real-programs.sh [built-in|dpdk|redis|memcached|pigz …]
# Without arguments it places all of them, in about six minutes.
# Needs: cargo build --release -p pinwise -p pinwise-lab --bins --examples, and the Debian packages
# that ./test installs. Everything is bounded and on loopback.
set -euo pipefail
cd "$(dirname "$0")/../.."
pinwise=${PINWISE:-target/release/pinwise}
budget=${BUDGET:-30s}
folder=$(mktemp -d)
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$folder"' EXIT

place() { # title, arguments of place…
  local title=$1
  shift
  echo "### $title"
  "$pinwise" place --budget "$budget" --store "$folder/store.db" "$@" 2>/dev/null |
    grep -E '^(Pin|Keep|Undecided)|^  (best|unpinned|gain|ties|bound|cost|strategy|stopped) '
  echo
}

start() { # command…: started in the background, ended on exit
  "$@" >/dev/null 2>&1 &
  started+=($!)
  pid=$!
}

target-built-in() {
  for workload in hash1_L1:2 intmul:2 aho-corasick:2 stateful:1; do
    place "built-in $workload" --workload "$workload"
  done
}

target-dpdk() {
  place "dpdk-testpmd, two forwarding workers" --metric dpdk:pwbench \
    -- dpdk-testpmd --lcores '0@0,1@0,2@1' --no-huge -m 256 --no-pci \
    --vdev net_null0 --vdev net_null1 --file-prefix pwbench \
    -- --auto-start --stats-period 1 --forward-mode=macswap --nb-cores=2 \
    --total-num-mbufs=8192 --no-mlockall
}

target-redis() {
  start redis-server --port 16379 --bind 127.0.0.1 --save "" --appendonly no \
    --io-threads 2 --io-threads-do-reads yes --dir "$folder"
  local server=$pid
  sleep 1
  start timeout 90 redis-benchmark -p 16379 -n 100000000 -c 50 -t get -q
  sleep 1
  place "redis with 2 I/O threads under redis-benchmark" --pid "$server" \
    --metric 'cmd:redis-cli -p 16379 info stats' --pick 'total_commands_processed:(\d+)'
}

target-memcached() {
  start memcached -u nobody -l 127.0.0.1 -U 0 -p 16311 -t 4
  local server=$pid
  sleep 1
  start timeout 90 "${LOAD:-target/release/examples/memcached_load}" 16311 8 80
  sleep 2
  place "memcached, 4 workers, 8 pipelining connections" --pid "$server" \
    --metric "cmd:bash -c 'exec 3<>/dev/tcp/127.0.0.1/16311;
              printf \"stats\r\nquit\r\n\" >&3; cat <&3'" \
    --pick 'STAT cmd_get (\d+)'
}

target-pigz() {
  head -c 4000000 <(cat "$pinwise" "$pinwise" "$pinwise") >"$folder/file"
  budget=45s place "pigz -p 6 on 4 MB" --metric runtime -- pigz -p 6 -k -c "$folder/file"
}

if [ $# = 0 ]; then set -- built-in dpdk redis memcached pigz; fi
for target in "$@"; do
  "target-$target"
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  started=()
done
