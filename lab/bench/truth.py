#!/usr/bin/env python3
"""How often is `pinwise threads` wrong on this machine?

A check of docs/lab/threads-truth.md on a real scheduler. Programs of a known kind run beside a
stated load. The truth of a cell comes from windows of its own, in rounds that shuffle the numbers
of threads. "Use n" is wrong if n is slower than the default by more than 1 % and twice the standard
error of the truth, and "keep the default" the other way round. An interval holds the truth if it
overlaps the truth, give or take twice that error. Prints a table.

Usage: lab/bench/truth.py [PROGRAM|LOAD ...]    all without arguments, about 40 minutes
SEARCHES=10 BUDGET=15 (s) PINWISE=target/release/pinwise
Needs: cargo build --release, and gcc. Run nothing else meanwhile.
"""
import json
import math
import os
import random
import statistics
import subprocess
import sys

from programs import FOLDER, PINWISE, finish, printed_rate, started, stop, write

SEARCHES = int(os.environ.get("SEARCHES", "10"))
BUDGET = float(os.environ.get("BUDGET", "15"))
MOST = 2 * os.cpu_count()
# Rounds of the truth, how long a window lasts, and what passes before it, in seconds.
ROUNDS, WINDOW, START = 8, 1.0, 0.3
TOLERANCE = 0.01

SOURCE = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static atomic_long done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *shape;
static void work(long microseconds) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  long end = now.tv_sec * 1000000000 + now.tv_nsec + 1000 * microseconds;
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}
static void under_lock(long microseconds) {
  pthread_mutex_lock(&lock);
  work(microseconds);
  pthread_mutex_unlock(&lock);
}
static void *run(void *none) {
  struct timespec pause = {0, 4000000};
  for (;;) {
    if (!strcmp(shape, "flat-locks")) under_lock(1000);
    if (!strcmp(shape, "linear-cpu")) work(1000);
    if (!strcmp(shape, "usl-locks")) work(800), under_lock(200);
    if (!strcmp(shape, "sleep-linear")) nanosleep(&pause, 0), work(400);
    atomic_fetch_add(&done, 1);
  }
}
int main(int count, char **words) {
  struct timespec tick = {0, 20000000};
  if (count < 3) return 2;
  shape = words[1];
  for (int made = 0; made < atoi(words[2]); made++) {
    pthread_t thread;
    if (pthread_create(&thread, 0, run, 0)) return 1;
  }
  for (;;) {
    nanosleep(&tick, 0);
    printf("done %ld\n", atomic_load(&done));
    fflush(stdout);
  }
}
"""
PROGRAMS = ["flat-locks", "linear-cpu", "usl-locks", "sleep-linear"]
BUSY = "while True: pass"
BURSTS = """
import random, time
while True:
    stop = time.time() + random.uniform(0, 2)
    while time.time() < stop:
        pass
    time.sleep(random.uniform(0, 2))
"""
# Name, and what one process does. There is one for each CPU.
LOADS = [("quiet", None), ("busy 1", BUSY), ("bursts 1 s", BURSTS)]


def truth(program, shape):
    """The logarithm of each speed in each round."""
    numbers = list(range(1, MOST + 1))
    rounds = []
    for _ in range(ROUNDS):
        random.shuffle(numbers)
        speeds = {n: printed_rate([program, shape, str(n)], START, WINDOW) for n in numbers}
        rounds.append({n: math.log(max(speed, 1e-9)) for n, speed in speeds.items()})
    return rounds


def faster(rounds, n, than):
    """By which share n is faster, and the standard error."""
    ratios = [one[n] - one[than] for one in rounds]
    return statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))


def cell(program, shape, load):
    rounds = truth(program, shape)
    wrong = decided = held = gains = 0
    said, errors = [], []
    for _ in range(SEARCHES):
        command = [PINWISE, "threads", "--json", "--budget", f"{BUDGET}s", "--max", str(MOST),
                   "--store", str(FOLDER / "store.db"), "--metric", r"stdout:done (\d+)",
                   "--", program, shape, "{n}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            verdict = json.loads(done.stdout)["verdict"]
        except subprocess.TimeoutExpired:
            errors.append("no end within 120 s")
            continue
        except (ValueError, KeyError):
            errors.append((done.stderr.strip().splitlines() or ["no answer"])[-1])
            continue
        if not verdict:
            said.append("nothing compared")
            continue
        kind = verdict["kind"]
        said.append(f"n = {verdict['n']}" if kind in ("number", "fewer") else kind)
        gain = verdict.get("gain")
        if not gain:
            continue
        share, error = faster(rounds, verdict["n"], verdict["default"])
        slack = TOLERANCE + 2 * error
        decided += kind != "undecided"
        wrong += kind in ("number", "fewer") and share < -slack
        wrong += kind == "default" and share > slack
        gains += 1
        low, high = (end if end is None else math.log1p(max(end, -1 + 1e-9))
                     for end in (gain["low"], gain["high"]))
        low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
        held += low - 2 * error <= share <= high + 2 * error
    best = max(range(1, MOST + 1), key=lambda n: statistics.mean(one[n] for one in rounds))
    told = ", ".join(f"{said.count(what)} {what}" for what in sorted(set(said)))
    cells = [shape, load, str(best), told or "-", str(decided), str(wrong), f"{held} of {gains}",
             "; ".join(sorted(set(errors))) or "-"]
    print("| " + " | ".join(cells) + " |", flush=True)


try:
    program = str(FOLDER / "truth")
    source = write("truth.c", SOURCE)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    print("| program | load | fastest n | verdicts | decided | wrong | gain held | errors |")
    print("|---|---|--:|---|--:|--:|--:|---|", flush=True)
    shapes = [shape for shape in PROGRAMS if shape in sys.argv] or PROGRAMS
    loads = [load for load in LOADS if load[0] in sys.argv] or LOADS
    for load, habit in loads:
        count = os.cpu_count() if habit else 0
        busy = [started([sys.executable, "-c", habit]) for _ in range(count)]
        for shape in shapes:
            cell(program, shape, load)
        stop(busy)
finally:
    finish()
