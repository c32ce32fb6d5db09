#!/usr/bin/env python3
"""Do repeated searches for a number of threads contradict each other on a busy machine?

Searches each program several times with the first command that a user would try, beside a load of
bursts. Two searches of a program contradict each other in one case: both decide, and their
intervals of one and the same gain have no point in common. Prints a table.

Usage: lab/bench/contradictions.py [PROGRAM ...]    all without arguments, about 50 minutes
REPEATS=10 BUDGET=20 (s) LOAD=1 (busy threads in bursts, 0: none) PINWISE=target/release/pinwise
Needs: cargo build --release, and the Debian packages nginx-light curl wrk openssl make python3 x265
p7zip-full stress-ng postgresql golang-go default-jdk-headless pigz. Absent programs are left out.
"""
import collections
import glob
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from programs import (FOLDER, PINWISE, PYTHON_POOL, data, finish, go, java, processes, started,
                      stop, video, write)

REPEATS = int(os.environ.get("REPEATS", "10"))
# For 7z, a run of which takes 3 to 10 s, it is three times this.
BUDGET = float(os.environ.get("BUDGET", "20"))
LOAD = int(os.environ.get("LOAD", "1"))
# Each search ends well before this, whatever happens.
LIMIT = 300

BURSTS = """
import random, time
random.seed({seed})
end = time.time() + 5400
while time.time() < end:
    stop = time.time() + random.uniform(0, 4)
    while time.time() < stop:
        pass
    time.sleep(random.uniform(0, 4))
"""


def nginx():
    port = 18080
    conf = write("nginx.conf", f"""
worker_processes 2;
pid {FOLDER}/nginx.pid;
error_log {FOLDER}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {FOLDER}/body;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }}
            location /status {{ stub_status; }} }}
}}
""")
    server = started(["nginx", "-c", conf, "-g", "daemon off;"])
    time.sleep(1)
    started(["wrk", "-t", "1", "-c", "16", "-d", "5400", f"http://127.0.0.1:{port}/"])
    change = f"sed -i 's/^worker_processes.*/worker_processes {{n}};/' {conf}"
    reload = f"{change}; nginx -c {conf} -s reload"
    return ["--pid", str(server.pid), "--set", f"cmd:{reload}", "--default", "2", "--max", "4",
            "--metric", f"cmd:curl -s http://127.0.0.1:{port}/status", "--pick", r"\d+ \d+ (\d+)"]


def postgres():
    bin_folder = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
    place = FOLDER / "pg"
    place.mkdir()
    shutil.chown(place, "postgres")
    os.chmod(FOLDER, 0o755)
    as_owner = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*as_owner, bin_folder / "initdb", "-D", place / "data"], **quiet)
    started([*as_owner, bin_folder / "postgres", "-D", place / "data", "-p", "15432",
             "-k", place, "-c", "fsync=off"])
    time.sleep(3)
    base = ["-h", str(place), "-p", "15432", "-U", "postgres"]
    subprocess.run([bin_folder / "pgbench", *base, "-i", "-s", "4", "postgres"], **quiet)
    return ["--metric", "stderr:progress: [0-9.]+ s, ([0-9.]+) tps", "--",
            str(bin_folder / "pgbench"), *base, "-S", "-P", "1", "-T", "1000", "-c", "{n}", "-j",
            "{n}", "postgres"]


def make():
    rule = "\t@i=0; while [ $$i -lt 60000 ]; do i=$$((i+1)); done\n"
    goals = " ".join(f"g{i}" for i in range(8))
    write("Makefile", f"all: {goals}\n{goals}:\n{rule}")
    return ["--", "make", "-C", str(FOLDER), "-B", "-j{n}"]


PROGRAMS = {
    "nginx": ("nginx", nginx),
    "sort": ("sort", lambda: ["--", "sort", "--parallel={n}", "-S", "64M", "-o", "/dev/null",
                              data("lines", 6_000_000)]),
    "openssl": ("openssl", lambda: ["--per-run", "--metric", r"stdout:^AES-128-GCM +([0-9.]+)",
                                    "--", "openssl", "speed", "-multi", "{n}", "-seconds", "1",
                                    "-bytes", "8192", "-evp", "aes-128-gcm"]),
    "make": ("make", make),
    "python": ("python3", lambda: ["--", sys.executable, write("pool.py", PYTHON_POOL), "{n}"]),
    "x265": ("x265", lambda: ["--", "x265", "--preset", "ultrafast", "--pools", "{n}", video(),
                              "-o", "/dev/null"]),
    "7z": ("7z", lambda: ["--per-run", "--metric", r"stdout:^Tot: +\d+ +\d+ +(\d+)", "--", "7z",
                          "b", "1", "-mmt{n}", "-md=18"]),
    "stress-ng": ("stress-ng", lambda: ["--per-run", "--metric",
                                        r"stderr:matrix +\d+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +([0-9.]+)",
                                        "--", "stress-ng", "--matrix", "{n}", "-t", "1",
                                        "--metrics-brief"]),
    "pgbench": ("pgbench", postgres),
    "go": ("go", lambda: ["--env", "GOMAXPROCS", "--metric", r"stdout:done (\d+)", "--", go()]),
    "java": ("javac", lambda: ["--metric", r"stdout:done (\d+)", "--", *java(), "{n}"]),
    "pigz": ("pigz", lambda: ["--", "pigz", "-p", "{n}", "-k", "-c", data("lines", 6_000_000)]),
}


def search(store, budget, arguments):
    """The answer, or the line that says why there is none."""
    command = [PINWISE, "threads", "--json", "--budget", f"{budget}s", "--store", store, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"no end within {LIMIT} s"
    try:
        return json.loads(done.stdout)
    except ValueError:
        return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def row(name):
    needs, prepare = PROGRAMS[name]
    if not shutil.which(needs):
        print(f"left out: {needs} is not installed", file=sys.stderr)
        return
    before = len(processes)
    arguments = prepare()
    answers, errors = [], collections.Counter()
    for _ in range(REPEATS):
        budget = BUDGET * (3 if name == "7z" else 1)
        answer = search(str(FOLDER / f"{name}.db"), budget, arguments)
        if isinstance(answer, str) or "verdict" not in answer:
            errors[answer if isinstance(answer, str) else answer["error"]] += 1
        else:
            answers.append(answer)
    stop(processes[before:])
    verdicts = [answer["verdict"] for answer in answers]
    said = collections.Counter(
        f"n = {one['n']}" if one["kind"] in ("number", "fewer") else one["kind"]
        for one in verdicts)
    decided = [one for one in verdicts if one["kind"] != "undecided" and one.get("gain")]
    apart = sum((one["n"], one["default"]) == (other["n"], other["default"])
                and (one["gain"]["low"] > other["gain"]["high"]
                     or other["gain"]["low"] > one["gain"]["high"])
                for one, other in itertools.combinations(decided, 2))
    seconds = sorted(answer["search_seconds"] for answer in answers)
    middle = f"{seconds[len(seconds) // 2]:.0f} s" if seconds else "-"
    cells = [name, ", ".join(f"{times} {what}" for what, times in said.most_common()) or "-",
             f"{apart} of {len(decided) * (len(decided) - 1) // 2}", middle,
             "; ".join(f"{times} times: {why}" for why, times in errors.items()) or "-"]
    print("| " + " | ".join(cells) + " |", flush=True)


try:
    for seed in range(LOAD):
        started([sys.executable, "-c", BURSTS.format(seed=seed)])
    print("| program | verdicts | pairs that contradict | time of a search | failures |")
    print("|---|---|--:|--:|---|", flush=True)
    for program in sys.argv[1:] or PROGRAMS:
        row(program)
finally:
    finish()
