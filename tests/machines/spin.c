// A program to place: spin WORKERS [CPU [FIRST-LAST [MEGABYTES@CPU]]]
//
// WORKERS threads "w0", "w1", ... compute for a twentieth of the time. So does a thread "own",
// which has confined itself to CPU. Workers after w0 have confined themselves to CPUs FIRST to
// LAST. w0 creates a short-lived thread now and then. The first thread prints a growing count. It
// has MEGABYTES of memory, which it touches first on the CPU named last. w1 reads all of it again
// and again.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_ulong done;
static volatile char *memory;
static size_t bytes;
static int first_cpu[2] = {-1, -1}, last_cpu[2];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void compute(double seconds) {
    for (double begin = now(), end = begin + seconds; now() < end;) {
        for (volatile int i = 0; i < 5000; i++) {
        }
        atomic_fetch_add(&done, 1);
        if (now() - begin > 1e-3) {
            usleep(19000);
            begin = now();
        }
    }
}

static void confine(int which) {
    if (first_cpu[which] < 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = first_cpu[which]; cpu <= last_cpu[which]; cpu++) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) perror("spin: sched_setaffinity");
}

// Memory that lies next to a CPU.
static void hold(const char *what) {
    int megabytes, cpu;
    cpu_set_t all, one;
    if (sscanf(what, "%d@%d", &megabytes, &cpu) != 2) exit(2);
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_getaffinity(0, sizeof all, &all);
    if (sched_setaffinity(0, sizeof one, &one)) perror("spin: sched_setaffinity");
    bytes = (size_t)megabytes << 20;
    memory = malloc(bytes);
    if (!memory) exit(1);
    memset((char *)memory, 1, bytes);
    sched_setaffinity(0, sizeof all, &all);
}

static void *brief(void *unused) {
    pthread_setname_np(pthread_self(), "brief");
    compute(0.1);
    return unused;
}

static void *worker(void *argument) {
    long number = (long)argument;
    char name[16] = "own";
    if (number >= 0) snprintf(name, sizeof name, "w%ld", number);
    pthread_setname_np(pthread_self(), name);
    if (number == -1) confine(0);
    if (number > 0) confine(1);
    for (pthread_t thread;;) {
        compute(0.4);
        for (size_t page = 0; number == 1 && page < bytes; page += 4096) (void)memory[page];
        if (number == 0 && !pthread_create(&thread, NULL, brief, NULL)) pthread_detach(thread);
    }
}

int main(int argc, char **argv) {
    long workers = argc > 1 ? atol(argv[1]) : 2;
    if (argc > 2) first_cpu[0] = last_cpu[0] = atoi(argv[2]);
    if (argc > 3 && sscanf(argv[3], "%d-%d", &first_cpu[1], &last_cpu[1]) != 2) return 2;
    if (argc > 4) hold(argv[4]);
    pthread_t thread;
    for (long number = argc > 2 ? -1 : 0; number < workers; number++)
        if (pthread_create(&thread, NULL, worker, (void *)number)) return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (;;) {
        usleep(20000);
        printf("count %lu\n", atomic_load(&done));
    }
}
