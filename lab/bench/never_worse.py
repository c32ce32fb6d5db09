#!/usr/bin/env python3
"""Is a placement of more threads than CPUs ever worse than the default?

Places ten programs with 4 to 16 threads. Each placement that `pinwise place` advises is then
checked by windows that pinwise does not see: the program with the plan and without it, in rounds of
random order. Prints a table. The interval of the check is the mean of the logarithms of the ratios,
give or take two standard errors. A placement is worse if all of that interval is below 0.

Usage: lab/bench/never_worse.py [PROGRAM ...]    all without arguments, about 10 minutes
BUDGET=30 (s) ROUNDS=10 PINWISE=target/release/pinwise
Needs: cargo build --release -p pinwise -p pinwise-lab --bins --examples, gcc, and the Debian
packages redis-server memcached golang-go pigz x264 x265 xz-utils default-jdk-headless. Absent
programs are left out. Run nothing else meanwhile.
"""
import json
import math
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

from programs import (FOLDER, PINWISE, data, finish, go, java, printed_rate, processes, started,
                      stop, video, write)

BUDGET = float(os.environ.get("BUDGET", "30"))
ROUNDS = int(os.environ.get("ROUNDS", "10"))
# Seconds of a window, and what passes before it.
WINDOW, START = 1.0, 0.4

# Two lanes of three stages. The stages of a lane hand items on through queues of 64.
PIPELINE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
struct queue { pthread_mutex_t lock; pthread_cond_t more, room; int held; };
static struct queue queues[2][2];
static atomic_long done;
static volatile unsigned long sink[6][16];
static void work(int at, long turns) { while (turns--) *sink[at] = *sink[at] * 31 + 7; }
static void put(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  while (q->held == 64) pthread_cond_wait(&q->room, &q->lock);
  q->held++;
  pthread_cond_signal(&q->more);
  pthread_mutex_unlock(&q->lock);
}
static void take(struct queue *q) {
  pthread_mutex_lock(&q->lock);
  while (!q->held) pthread_cond_wait(&q->more, &q->lock);
  q->held--;
  pthread_cond_signal(&q->room);
  pthread_mutex_unlock(&q->lock);
}
static void *stage(void *argument) {
  long number = (long)argument, lane = number / 3, place = number % 3;
  static const char *names[] = {"receive", "process", "send"};
  static const long turns[] = {4000, 12000, 3000};
  pthread_setname_np(pthread_self(), names[place]);
  for (;;) {
    if (place > 0) take(&queues[lane][place - 1]);
    work(number, turns[place]);
    if (place < 2) put(&queues[lane][place]); else atomic_fetch_add(&done, 1);
  }
  return 0;
}
int main(void) {
  struct timespec tick = {0, 20000000};
  for (int i = 0; i < 4; i++) {
    struct queue *q = &queues[i / 2][i % 2];
    pthread_mutex_init(&q->lock, 0);
    pthread_cond_init(&q->more, 0);
    pthread_cond_init(&q->room, 0);
  }
  for (long i = 0; i < 6; i++) {
    pthread_t thread;
    if (pthread_create(&thread, 0, stage, (void *)i)) return 1;
  }
  for (;;) {
    nanosleep(&tick, 0);
    printf("done %ld\n", atomic_load(&done));
    fflush(stdout);
  }
}
"""


class Runs:
    """A program that ends: faster if its runs are shorter."""

    def __init__(self, command):
        self.command, self.words = command, ["--metric", "runtime", "--", *command]

    def speed(self, plan):
        begin = time.monotonic()
        subprocess.run(planned(plan, self.command), check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return 1 / (time.monotonic() - begin)


class Prints:
    """A program that prints how much it has done."""

    def __init__(self, command):
        self.command = command
        self.words = ["--metric", r"stdout:done (\d+)", "--", *command]

    def speed(self, plan):
        return printed_rate(planned(plan, self.command), START, WINDOW)


class Serves:
    """A service that counts what it has answered."""

    def __init__(self, pid, metric, pick, port, question):
        self.pid, self.port, self.question, self.pick = pid, port, question, pick
        self.words = ["--pid", str(pid), "--metric", metric, "--pick", pick]

    def count(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as server:
            server.sendall(self.question)
            text = ""
            while not re.search(self.pick, text):
                text += server.recv(65536).decode()
        return int(re.search(self.pick, text).group(1))

    def speed(self, plan):
        change = [plan] if plan else ["--undo"]
        # Without a plan there may be nothing to undo.
        subprocess.run([PINWISE, "apply", *change, "--pid", str(self.pid)], check=bool(plan),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(START)
        first, begin = self.count(), time.monotonic()
        time.sleep(WINDOW)
        return (self.count() - first) / (time.monotonic() - begin)


def planned(plan, command):
    return [PINWISE, "run", plan, "--", *command] if plan else command


def redis():
    port = "16379"
    server = started(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                      "--appendonly", "no", "--io-threads", "4", "--io-threads-do-reads", "yes",
                      "--dir", str(FOLDER)])
    time.sleep(1)
    started(["redis-benchmark", "-p", port, "-n", "1000000000", "-c", "50", "-t", "get", "-q"])
    time.sleep(1)
    return Serves(server.pid, f"cmd:redis-cli -p {port} info stats",
                  r"total_commands_processed:(\d+)", int(port), b"INFO stats\r\n")


def memcached():
    port = "16311"
    server = started(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-U", "0", "-p", port,
                      "-t", "4"])
    time.sleep(1)
    load = os.environ.get("MEMCACHED_LOAD", "target/release/examples/memcached_load")
    started([load, port, "8", "900"])
    time.sleep(1)
    ask = (f"cmd:bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; "
           r"""printf "stats\r\nquit\r\n" >&3; cat <&3'""")
    return Serves(server.pid, ask, r"STAT cmd_get (\d+)", int(port), b"stats\r\n")


def pipeline():
    program = str(FOLDER / "pipeline")
    source = write("pipeline.c", PIPELINE)
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, source], check=True)
    return Prints([program])


def lines():
    return data("lines", 12_000_000)


PROGRAMS = {
    "redis": ("redis-server", redis),
    "memcached": ("memcached", memcached),
    "pipeline": ("gcc", pipeline),
    "java": ("javac", lambda: Prints([*java(), "8"])),
    "go": ("go", lambda: Prints(["env", "GOMAXPROCS=8", go()])),
    "pigz": ("pigz", lambda: Runs(["pigz", "-p", "6", "-k", "-c", lines()])),
    "sort": ("sort", lambda: Runs(["sort", "--parallel=8", "-S", "64M", "-o", "/dev/null",
                                   lines()])),
    "xz": ("xz", lambda: Runs(["xz", "-1", "-T4", "--block-size=1MiB", "-k", "-c", lines()])),
    "x264": ("x264", lambda: Runs(["x264", "--threads", "16", "-o", "/dev/null", video()])),
    "x265": ("x265", lambda: Runs(["x265", "--preset", "ultrafast", "--pools", "8", video(), "-o",
                                   "/dev/null"])),
}


def row(name):
    needs, prepare = PROGRAMS[name]
    if not shutil.which(needs):
        print(f"left out: {needs} is not installed", file=sys.stderr)
        return None
    before, plan = len(processes), str(FOLDER / f"{name}.toml")
    target = prepare()
    done = subprocess.run([PINWISE, "place", "--json", "--budget", f"{BUDGET}s", "--plan", plan,
                           "--store", str(FOLDER / "store.db"), *target.words],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    worse = None
    try:
        answer = json.loads(done.stdout)
        kind, gain = answer["verdict"]["kind"], answer.get("gain")
        threads = str(len(answer["threads"]))
    except (ValueError, KeyError, TypeError):
        kind, gain, threads = (done.stderr.strip().splitlines() or ["no answer"])[-1], None, "-"
    cells = [name, threads, kind, shown(gain["mean"], gain["low"], gain["high"]) if gain else "-"]
    if kind == "pin":
        ratios = []
        for _ in range(ROUNDS):
            ways = [plan, None]
            random.shuffle(ways)
            speeds = {way: target.speed(way) for way in ways}
            ratios.append(math.log(speeds[plan] / speeds[None]))
        middle, error = statistics.mean(ratios), statistics.stdev(ratios) / math.sqrt(ROUNDS)
        worse = middle + 2 * error < 0
        cells.append(shown(*(math.expm1(middle + side * error) for side in (0, -2, 2))))
    else:
        cells.append("-")
    stop(processes[before:])
    print("| " + " | ".join(cells) + " |", flush=True)
    return bool(worse)


def shown(mean, low, high):
    ends = ("none" if end is None else f"{100 * end:+.1f} %" for end in (low, high))
    return f"{100 * mean:+.1f} % ({' to '.join(ends)})"


try:
    print("| program | threads | verdict | gain said | gain checked |")
    print("|---|--:|---|--:|--:|", flush=True)
    checked = [row(program) for program in sys.argv[1:] or PROGRAMS]
    checked = [one for one in checked if one is not None]
    print(f"\n{sum(checked)} of {len(checked)} are worse than the default.")
finally:
    finish()
