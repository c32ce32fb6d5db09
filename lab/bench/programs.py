"""Programs that the studies of this folder start, with sources and data of a fixed content.

All that is written goes to FOLDER, and all that is started in the background to `processes`;
`finish` removes both, also if the study is told to end.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PINWISE = os.path.abspath(os.environ.get("PINWISE", "target/release/pinwise"))
FOLDER = pathlib.Path(tempfile.mkdtemp())
processes = []
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

PYTHON_POOL = """
import multiprocessing, sys
def work(k):
    return sum(i * i for i in range(150000 + k))
if __name__ == "__main__":
    with multiprocessing.Pool(int(sys.argv[1])) as pool:
        pool.map(work, range(24), chunksize=1)
"""

GO_LOOP = """
package main
import ("fmt"; "sync/atomic"; "time")
func main() {
    var done int64
    for w := 0; w < 8; w++ {
        go func() {
            x := uint64(1)
            for {
                for i := 0; i < 1000000; i++ { x = x*6364136223846793005 + 1 }
                atomic.AddInt64(&done, 1)
            }
        }()
    }
    for { time.Sleep(100 * time.Millisecond); fmt.Println("done", atomic.LoadInt64(&done)) }
}
"""

JAVA_POOL = """
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
public class Pool {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        AtomicLong done = new AtomicLong();
        ExecutorService pool = Executors.newFixedThreadPool(n);
        for (int w = 0; w < n; w++) pool.submit(() -> {
            long x = 1;
            while (true) {
                for (int i = 0; i < 1000000; i++) x = x * 6364136223846793005L + 1;
                done.addAndGet(x == 0 ? 2 : 1);
            }
        });
        while (true) { Thread.sleep(100); System.out.println("done " + done.get()); }
    }
}
"""


def write(name, text):
    path = FOLDER / name
    path.write_text(text)
    return str(path)


def data(name, size):
    """Lines of random numbers: they sort and compress."""
    path = FOLDER / name
    if not path.exists():
        rng = random.Random(1)
        lines = (f"{rng.getrandbits(40):012x} {rng.getrandbits(8)}" for _ in range(size // 16))
        path.write_text("\n".join(lines) + "\n")
    return str(path)


def video():
    """Y4M, 3 s of moving stripes."""
    path = FOLDER / "video.y4m"
    if not path.exists():
        with path.open("wb") as out:
            out.write(b"YUV4MPEG2 W320 H180 F30:1 Ip A1:1 C420jpeg\n")
            for frame in range(90):
                out.write(b"FRAME\n")
                for y in range(180):
                    out.write(bytes((x * 3 + y + frame * 5) % 256 for x in range(320)))
                out.write(bytes([128]) * (320 * 180 // 2))
    return str(path)


def started(command, **options):
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, **options)
    processes.append(process)
    return process


def go():
    """The program of GO_LOOP, compiled."""
    write("main.go", GO_LOOP)
    subprocess.run(["go", "build", "-o", FOLDER / "loop", FOLDER / "main.go"], check=True,
                   env={**os.environ, "GOCACHE": str(FOLDER / "go"), "HOME": str(FOLDER)})
    return str(FOLDER / "loop")


def java():
    """The command of JAVA_POOL without its number."""
    subprocess.run(["javac", "-d", FOLDER, write("Pool.java", JAVA_POOL)], check=True)
    return ["java", "-cp", str(FOLDER), "Pool"]


def printed_rate(command, start, window):
    """Items a second of a program that prints "done N": in a window some seconds after it began."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    try:
        begin = first = None
        for line in child.stdout:
            now, count = time.monotonic(), int(line.split()[1])
            begin = begin or now
            if first is None and now >= begin + start:
                first = (now, count)
            if first and now >= first[0] + window:
                return (count - first[1]) / (now - first[0])
    finally:
        child.terminate()
        child.wait()
    raise RuntimeError(f"{command} ended")


def stop(some):
    for process in some:
        process.terminate()
    for process in some:
        process.wait()
        processes.remove(process)


def finish():
    stop(list(processes))
    shutil.rmtree(FOLDER, ignore_errors=True)
