#!/usr/bin/env bash
# `pinwise cosched` over programs that start and die all the time: what does it cost, and does it
# leave a mask changed? Prints what docs/lab/benchmarks.md quotes.
# Usage: lab/bench/cosched.sh
# BUDGET: 10m without it. PINWISE: the program.
# Needs: cargo build --release -p pinwise, python3, and taskset.
set -euo pipefail
cd "$(dirname "$0")/../.."
pinwise=$(realpath "${PINWISE:-target/release/pinwise}")
budget=${BUDGET:-10m}
folder=$(mktemp -d)
# A tree of programs: two compute all the time, two more begin and die. One of the first counts.
cat >"$folder/work.sh" <<'EOF'
folder=$1
(
  done=0
  while :; do
    for _ in {1..20000}; do :; done
    done=$((done + 1))
    echo "done=$done" >"$folder/new" && mv "$folder/new" "$folder/progress"
  done
) &
(while :; do :; done) &
for _ in 1 2; do
  (while :; do timeout 0.1 bash -c 'while :; do :; done' || true; done) &
done
wait
EOF
setsid bash "$folder/work.sh" "$folder" >/dev/null 2>&1 &
tree=$!
trap 'kill -- -$tree 2>/dev/null || true; rm -rf "$folder"' EXIT
until [ -s "$folder/progress" ]; do sleep 0.1; done

# The masks of all threads that live, by thread.
masks() {
  for pid in $(ps -o pid= -s "$tree"); do
    for task in /proc/"$pid"/task/*; do
      grep -Hs Cpus_allowed_list "$task/status" || true
    done
  done | sort
}
masks >"$folder/before"
read -r load _ </proc/loadavg
begin=$(date +%s)
"$pinwise" cosched --json --tree "$tree" --budget "$budget" --counter \
  --metric "file:$folder/progress:done=([0-9]+)" --store "$folder/store.db" \
  >"$folder/answer.json" 2>"$folder/error" || { tail -n 1 "$folder/error"; exit 1; }
took=$(($(date +%s) - begin))
masks >"$folder/after"
python3 - "$folder" "$took" "$load" <<'EOF'
import json, os, sys
folder, took, load = sys.argv[1:]
answer = json.load(open(f"{folder}/answer.json"))
read = lambda name: dict(line.split(":", 1) for line in open(f"{folder}/{name}"))
before, after = read("before"), read("after")
cost = answer["cost"]
print(f"{took} s on {os.cpu_count()} CPUs, load {load} at the start: {answer['verdict']['text']}")
print(f"cost: {cost['share']:.2%} of the CPU time of the machine, quanta of "
      f"{1000 * cost['quantum']:.0f} ms, {cost['moves']} moves")
print(f"threads: {cost['begun']} began, {cost['ended']} ended")
wide = set(before.values())
odd = [name for name, mask in after.items() if before.get(name, mask) != mask or mask not in wide]
print(f"masks: {len(after)} threads live at the end, {len(odd)} with another mask than before")
for note in answer["notes"]:
    print(f"  note: {note['text']}")
EOF
