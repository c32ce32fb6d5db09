//! Programs in C, whose threads pinwise does not make itself.

use super::tool;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Compiles a C program; `None` where there is no compiler.
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
