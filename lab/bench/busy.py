#!/usr/bin/env python3
"""Does `place` keep its budget and give affinities back beside thousands of busy threads?

Places programs of which all threads spin. Each is placed to the end of a budget of 20 s, and ended
by INT and by KILL once a thread is pinned. Prints how long that took, when all affinities were as
before, and how many threads differ if they never were.

Usage: lab/bench/busy.py [THREADS ...]    32, 128, 600 and 2,000 without arguments
PINWISE=target/release/pinwise
Needs: cargo build --release -p pinwise, gcc, and the right to SCHED_FIFO: what watches has to run.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

from programs import FOLDER, PINWISE, finish, processes

# Seconds that a state may take to come.
PATIENCE = 60

# They start together: its main thread would hardly get to create the last ones.
SPIN = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER;
static int begins;
static void *spin(void *none) {
  pthread_mutex_lock(&lock);
  while (!begins) pthread_cond_wait(&begun, &lock);
  pthread_mutex_unlock(&lock);
  for (volatile long i = 0;; i++);
}
int main(int count, char **words) {
  pthread_t thread;
  pthread_attr_t small;
  alarm(300);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < atoi(words[1]); i++) if (pthread_create(&thread, &small, spin, 0)) return 1;
  pthread_mutex_lock(&lock);
  begins = 1;
  pthread_cond_broadcast(&begun);
  pthread_mutex_unlock(&lock);
  pause();
}
"""


def affinities(pid):
    """The CPUs of each thread."""
    found = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        lines = status.read_text().splitlines()
        found[status] = next(line for line in lines if line.startswith("Cpus_allowed_list"))
    return found


def until(comes):
    """Waits; returns the seconds, or None if it never comes."""
    begin = time.monotonic()
    while not comes():
        if time.monotonic() - begin > PATIENCE:
            return None
        time.sleep(0.05)
    return time.monotonic() - begin


def case(program, threads, way):
    """One search, as a line of the table."""
    target = subprocess.Popen([program, str(threads)])
    processes.append(target)
    if until(lambda: len(affinities(target.pid)) > threads) is None:
        sys.exit(f"{threads} threads did not start")
    before = affinities(target.pid)
    words = [PINWISE, "place", "--pid", str(target.pid), "--metric", r"file:/proc/stat:ctxt (\d+)",
             "--counter", "--budget", "20s" if way == "end" else "10m", "--store", FOLDER / "p.db"]
    begin = time.monotonic()
    place = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, "XDG_DATA_HOME": str(FOLDER)})
    processes.append(place)
    if way != "end":
        if until(lambda: affinities(target.pid) != before) is None:
            sys.exit(f"{threads} threads: nothing was pinned")
        begin = time.monotonic()
        place.send_signal(signal.Signals["SIG" + way])
    code = place.wait()
    took = time.monotonic() - begin
    back = until(lambda: affinities(target.pid) == before)
    differ = sum(before[one] != now for one, now in affinities(target.pid).items())
    target.kill()
    target.wait()
    back = "never" if back is None else f"{back:.1f} s"
    print(f"| {threads} | {way} | {code} | {took:.1f} s | {back} | {differ} |", flush=True)


def main():
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    program = FOLDER / "spin"
    compile = ["gcc", "-O1", "-pthread", "-x", "c", "-", "-o", program]
    subprocess.run(compile, input=SPIN.encode(), check=True)
    heads = ["threads", "ended by", "exit code", "after", "affinities back after", "differ"]
    print(f"| {' | '.join(heads)} |\n|--:|---|--:|--:|--:|--:|")
    for threads in [int(word) for word in sys.argv[1:]] or [32, 128, 600, 2000]:
        for way in ["end", "INT", "KILL"]:
            case(program, threads, way)


try:
    main()
finally:
    finish()
