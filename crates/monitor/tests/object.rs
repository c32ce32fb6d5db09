//! The program for the kernel that is part of the sources is the one that `bpf/monitor.bpf.c`
//! makes.

use std::path::{Path, PathBuf};
use std::process::Command;

fn bpf(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").join(file)
}

/// What `cksum` prints (POSIX): the polynomial 0x04C11DB7 over the bytes and their number, least
/// significant byte first.
fn cksum(bytes: &[u8]) -> String {
    let mut sum = 0u32;
    let mut length = Vec::new();
    let mut rest = bytes.len();
    while rest > 0 {
        length.push((rest & 0xff) as u8);
        rest >>= 8;
    }
    for &byte in bytes.iter().chain(&length) {
        sum ^= u32::from(byte) << 24;
        for _ in 0..8 {
            sum = sum << 1 ^ if sum >> 31 == 1 { 0x04C1_1DB7 } else { 0 };
        }
    }
    format!("cksum {} {}", !sum, bytes.len())
}

/// The text that the build put into an object: `cksum SUM LENGTH, COMPILER`.
fn built(object: &[u8]) -> String {
    let begin = object
        .windows(6)
        .position(|window| window == b"cksum ")
        .expect("the object tells how it was built");
    let text = object[begin..].split(|&byte| byte == 0).next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn the_object_belongs_to_the_source_beside_it() {
    let source = std::fs::read(bpf("monitor.bpf.c")).unwrap();
    let object = std::fs::read(bpf("monitor.bpf.o")).unwrap();
    let (told, _compiler) =
        built(&object).split_once(',').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(
        told,
        cksum(&source),
        "run crates/monitor/bpf/build.sh after a change of monitor.bpf.c"
    );
}

#[test]
fn the_same_compiler_makes_the_same_object() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("monitor.bpf.o");
    let tools = ["clang", "llvm-strip"]
        .iter()
        .all(|tool| Command::new(tool).arg("--version").output().is_ok());
    if !tools {
        pinwise_synthetic::not_judged("not installed: apt-get install clang llvm");
        return;
    }
    let output = Command::new(bpf("build.sh")).arg(&object).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (made, kept) =
        (std::fs::read(object).unwrap(), std::fs::read(bpf("monitor.bpf.o")).unwrap());
    if built(&made) == built(&kept) {
        assert!(made == kept, "monitor.bpf.o is not what build.sh makes of monitor.bpf.c");
    } else {
        println!("another compiler: {} instead of {}", built(&made), built(&kept));
    }
}
