//! What other tools print reads the same, and they read what is written for them.

use object::{Object, ObjectSymbol};
use pinwise_paths::{
    BranchRecording, Segments, autofdo_text, preaggregated_text, read_branches, read_brstack_text,
};
use pinwise_synthetic::{not_judged, shared_data};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

/// perf finds the same branches in a recording.
#[test]
fn perf_prints_what_was_read() {
    let Some(path) = shared_data("branches/test.lbr") else { return };
    let read = read_branches(BufReader::new(File::open(&path).unwrap())).unwrap();
    let script = |fields: &str, more: &[&str]| {
        let mut perf = Command::new("perf");
        perf.args(["script", "-f", "-F", fields, "-i"]).arg(&path).args(more);
        perf.output().ok().map(|output| output.stdout)
    };
    let events = ["--show-mmap-events", "--show-task-events"];
    let Some(text) = script("pid,ip,brstack", &events) else { return not_judged("no perf") };
    assert_eq!(read_branches(&*text).unwrap(), read);
    // Without the mappings there is one binary, at the addresses of the process.
    let text = script("ip,brstack", &[]).unwrap();
    let plain = read_brstack_text(&*text).unwrap();
    assert_eq!(plain.totals.branches, read.totals.branches);
    assert_eq!(plain.totals.into_kernel, read.totals.into_kernel);
    assert_eq!(plain.binaries.len(), 1);
}

/// `_start` calls `work` ten times, which goes round a loop three times.
const PROGRAM: &str = "
.globl _start
.type _start, @function
_start: mov $10, %ebx
0: call work
   dec %ebx
   jnz 0b
   mov $60, %eax
   xor %edi, %edi
   syscall
.size _start, . - _start
.globl work
.type work, @function
work: mov $3, %ecx
1: dec %ecx
   jnz 1b
   ret
.size work, . - work
";

#[test]
#[cfg(target_arch = "x86_64")]
fn bolt_reads_what_was_written() {
    let Some(perf2bolt) = perf2bolt() else { return not_judged("no perf2bolt") };
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("program.s"), PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-nostdlib", "-static", "-no-pie", "-Wl,-q", "-o"]).arg(file("program"));
    if !cc.arg(file("program.s")).status().is_ok_and(|status| status.success()) {
        return not_judged("no compiler");
    }
    let symbols = symbols(&std::fs::read(file("program")).unwrap());
    let (start, work) = (symbols["_start"], symbols["work"]);
    // All branches of a run, newest first, in one deep stack.
    let turn = [(5, 7), (5, 7)].map(|(to, from)| (work + from, work + to));
    let round = [(start + 5, work), turn[0], turn[1], (work + 9, start + 10)];
    let mut stack: Vec<_> = [&round[..], &[(start + 12, start + 5)]].concat().repeat(10);
    stack.pop();
    let recording = sampled_once(&stack);
    let seen = &recording.binaries[""];
    let text = preaggregated_text(seen, |address| Some(if address < work { start } else { work }));
    std::fs::write(file("text"), &text).unwrap();

    let mut command = Command::new(perf2bolt);
    command.args(["-pa", "-p"]).arg(file("text")).arg("-o").arg(file("profile"));
    let output = command.arg(file("program")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("mismatching disassembled function contents: 0"), "{said}");
    let profile = std::fs::read_to_string(file("profile")).unwrap();
    for line in [
        "1 _start 5 1 work 0 0 10",
        "1 work 7 1 work 5 0 20",
        "1 work 7 1 work 9 0 10",
        "1 _start c 1 _start 5 0 9",
    ] {
        assert!(profile.lines().any(|found| found == line), "{line} in\n{profile}{text}");
    }
}

/// `work` stays on one line for its loop of three turns, and returns from another line.
const FUNCTION: &str = "
__attribute__((noinline)) int work(int turns)
{
    __asm__ volatile(\"turn: dec %0\\n again: jnz turn\" : \"+r\"(turns));
    return turns;
}
void _start(void)
{
    __asm__ volatile(\"\" ::\"r\"(work(3)));
    __asm__ volatile(\"left: jmp _start\");
}
";

#[test]
#[cfg(target_arch = "x86_64")]
fn autofdo_reads_what_was_written() {
    let mut create_llvm_prof = Command::new("create_llvm_prof");
    if create_llvm_prof.arg("--version").output().is_err() {
        return not_judged("no create_llvm_prof");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("program.c"), FUNCTION).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-gdwarf-4", "-fcf-protection=none", "-nostdlib", "-static", "-no-pie", "-o"]);
    cc.arg(file("program")).arg(file("program.c"));
    if !cc.status().is_ok_and(|status| status.success()) {
        return not_judged("no compiler");
    }
    let binary = std::fs::read(file("program")).unwrap();
    let symbols = symbols(&binary);
    let (turn, again, left) = (symbols["turn"], symbols["again"], symbols["left"]);
    // The call is the five bytes before `left`, and the return the one byte after `jnz`.
    let call = (left - 5, symbols["work"]);
    let back = (left, symbols["_start"]);
    let stack = [call, (again, turn), (again, turn), (again + 2, left), back].repeat(10);
    let recording = sampled_once(&stack);
    let segments = Segments::of_elf(&binary).unwrap();
    let text = autofdo_text(&recording.binaries[""].at_file_offsets(&segments));
    std::fs::write(file("text"), &text).unwrap();

    let mut command = Command::new("create_llvm_prof");
    command.args(["--profiler=text", "--format=text"]);
    for (option, name) in [("profile", "text"), ("binary", "program"), ("out", "profile")] {
        command.arg(format!("--{option}={}", file(name).display()));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let profile = std::fs::read_to_string(file("profile")).unwrap();
    // Lines count from the one with the function's name. Compilers put `ret` on one or the other
    // of the last two lines.
    let of_work = profile.lines().skip_while(|line| !line.starts_with("work:")).skip(1);
    let counts: Vec<&str> = of_work.map(str::trim).take(2).collect();
    assert_eq!(counts[0], "2: 30", "{profile}{text}");
    assert!(["3: 10", "4: 10"].contains(&counts[1]), "{profile}{text}");
}

/// The addresses of a binary's symbols.
fn symbols(binary: &[u8]) -> BTreeMap<String, u64> {
    let file = object::File::parse(binary).unwrap();
    let symbols = file.symbols();
    symbols.map(|symbol| (symbol.name().unwrap().to_owned(), symbol.address())).collect()
}

/// One sample of these branches, oldest first.
fn sampled_once(branches: &[(u64, u64)]) -> BranchRecording {
    let entries = branches.iter().rev().map(|(from, to)| format!("0x{from:x}/0x{to:x}/P/-/-/0"));
    read_brstack_text(entries.collect::<Vec<_>>().join(" ").as_bytes()).unwrap()
}

/// BOLT's reader: of the path, or as packages of LLVM put it.
fn perf2bolt() -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let of_packages = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    let is_llvm = |path: &PathBuf| path.to_string_lossy().contains("/llvm-");
    places.extend(of_packages.filter(is_llvm).map(|path| path.join("bin")));
    places.into_iter().map(|folder| folder.join("perf2bolt")).find(|path| Path::is_file(path))
}
