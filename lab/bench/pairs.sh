#!/usr/bin/env bash
# Which of six real programs to pair on this machine, found twice: do the two runs agree within
# their intervals? Prints what docs/lab/benchmarks.md quotes.
# Usage: lab/bench/pairs.sh
# BUDGET: of each run of pinwise, 5m without it. PINWISE: the program.
# Needs: cargo build --release -p pinwise, python3, gcc, and the packages pigz, xz-utils, x264,
# sqlite3 and openssl.
set -euo pipefail
cd "$(dirname "$0")/../.."
pinwise=$(realpath "${PINWISE:-target/release/pinwise}")
budget=${BUDGET:-5m}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# About half a second of work each, without chance in it.
head -c 6000000 <(cat "$pinwise" "$pinwise" "$pinwise") >"$folder/data"
python3 - "$folder/video" <<'EOF'
import sys
# 25 frames of 320 x 240 with a moving gradient: luma, then both chroma planes.
with open(sys.argv[1], "wb") as out:
    for frame in range(25):
        luma = bytes((x * 3 + y * (1 + frame % 7) + frame * 5) & 255
                     for y in range(240) for x in range(320))
        out.write(luma + bytes([128]) * (320 * 240 // 2))
EOF
cat >"$folder/chase.c" <<'EOF'
/* A pointer chase through 32 MiB, one line after the other, in a random order. */
#include <stdlib.h>
int main(void) {
  enum { LINES = 1 << 19, STEP = 8 };
  size_t *at = malloc(sizeof *at * LINES * STEP), *order = malloc(sizeof *order * LINES);
  for (size_t i = 0; i < LINES; i++) order[i] = i;
  unsigned long state = 1;
  for (size_t i = LINES - 1; i > 0; i--) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    size_t j = (state >> 33) % (i + 1), kept = order[i];
    order[i] = order[j], order[j] = kept;
  }
  for (size_t i = 0; i < LINES; i++) at[order[i] * STEP] = order[(i + 1) % LINES] * STEP;
  size_t place = 0;
  for (long i = 0; i < 3000000; i++) place = at[place];
  return place == 1;
}
EOF
gcc -O2 -o "$folder/chase" "$folder/chase.c"

rows="with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)"
programs=(
  -- "pigz -p 1 -k -c $folder/data"
  -- "xz -T 1 -0 -k -c $folder/data"
  -- "x264 --quiet --threads 1 --demuxer raw --input-res 320x240 -o /dev/null $folder/video"
  -- "sqlite3 :memory: '$rows select count(distinct (i * 7919) % 99991) from n'"
  -- "openssl enc -aes-128-cbc -pbkdf2 -iter 400000 -k secret -in /dev/null"
  -- "$folder/chase"
)
for run in 1 2; do
  "$pinwise" pairs --json --seed "$run" --budget "$budget" --store "$folder/store.db" \
    "${programs[@]}" >"$folder/$run.json" 2>"$folder/error" ||
    { tail -n 1 "$folder/error"; exit 1; }
done
python3 - "$folder/1.json" "$folder/2.json" <<'EOF'
import json, math, sys
first, second = (json.load(open(name)) for name in sys.argv[1:])
half = lambda number: (number["high"] - number["low"]) / 2
def agree(one, other):
    """Whether both differ by no more than their intervals explain, and whether these overlap."""
    if not one or not other or one["low"] is None or other["low"] is None:
        return None
    apart = abs(one["value"] - other["value"])
    return (apart <= math.hypot(half(one), half(other)),
            one["low"] <= other["high"] and other["low"] <= one["high"])
for title, pick in [
    ("run alone", lambda doc: {p["name"]: p["seconds"] for p in doc["programs"]}),
    ("weighted speed-up", lambda doc: {" + ".join(p["names"]): p["weighted_speedup"]
                                       for p in doc["pairs"]}),
]:
    one, other = pick(first), pick(second)
    judged = [(name, agree(one[name], other[name])) for name in one if name in other]
    judged = [(name, found) for name, found in judged if found]
    close, overlap = (sum(found[i] for _, found in judged) for i in (0, 1))
    print(f"{title}: {close} of {len(judged)} differ by no more than their intervals explain "
          f"({first['confidence']:.0%}); {overlap} intervals overlap")
    for name, found in judged:
        if not found[0]:
            show = lambda n: f"{n['value']:.3f} ({n['low']:.3f} to {n['high']:.3f})"
            print(f"  {name}: {show(one[name])} and {show(other[name])}")
for number, doc in enumerate((first, second), 1):
    print(f"run {number}: {doc['measurements']} measurements; {doc['verdict']['text']}")
    for note in doc["notes"]:
        print(f"  note: {note['text']}")
EOF
