//! Programs in C, whose threads pinwise does not make itself.

use super::tool;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Compiles a C program; `None` if there is no compiler.
pub(crate) fn compiled(folder: &TempDir, source: &str) -> Option<PathBuf> {
    let compiler = tool("gcc")?;
    let (file, program) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&file, source).unwrap();
    let built = Command::new(compiler)
        .args(["-O2", "-fopenmp", "-o"])
        .arg(&program)
        .arg(&file)
        .status()
        .unwrap();
    assert!(built.success());
    Some(program)
}

/// A loop that is shared by OpenMP threads, until it is ended.
pub(crate) const OPENMP: &str = r#"
#include <stdio.h>
int main(void) {
  volatile double sum = 0;
  for (long round = 0; round < 1000000000; round++) {
    double part = 0;
    #pragma omp parallel for reduction(+:part)
    for (long i = 1; i < 2000000; i++) part += 1.0 / (double)i;
    sum += part;
    printf("round %ld\n", round);
    fflush(stdout);
  }
  return 0;
}
"#;

/// A team of n threads that prints a speed on every round. The speed depends on n, and on whether
/// each thread is pinned to one CPU at that moment. It never depends on time. Three are
/// the fastest by far when pinned, and well behind two when not. `team N FILE` writes the lines to
/// FILE.
pub(crate) const TEAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int number;
static pid_t team[8];
static pthread_barrier_t begun;
static void *work(void *own) {
  long index = (long)own;
  team[index] = gettid();
  pthread_barrier_wait(&begun);
  while (1) {
    volatile double sum = 0;
    for (int i = 1; i < 200000; i++) sum += 1.0 / i;
    int pinned = 0;
    for (int one = 0; index == 0 && one < number; one++) {
      cpu_set_t allowed;
      sched_getaffinity(team[one], sizeof allowed, &allowed);
      pinned += CPU_COUNT(&allowed) == 1;
    }
    int all = pinned == number;
    int speed = number < 3 ? (all ? 40 : 20) : all ? 100 : 12;
    if (index == 0) printf("speed %d\n", speed), fflush(stdout);
    usleep(1000);
  }
}
int main(int count, char **words) {
  number = atoi(words[1]);
  if (count > 2 && !freopen(words[2], "a", stdout)) return 1;
  pthread_barrier_init(&begun, 0, number);
  pthread_t thread;
  for (long index = 1; index < number; index++) pthread_create(&thread, 0, work, (void *)index);
  work(0);
}
"#;
