//! What other tools print reads the same, and they read what is written for them.

use object::{Object, ObjectSymbol};
use pinwise_paths::{
    BranchRecording, Segments, autofdo_text, preaggregated_text, read_branches, read_brstack_text,
};
use pinwise_synthetic::{not_judged, shared_data};
use std::collections::{BTreeMap, BTreeSet};
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

/// Makes [`PROGRAM`]. Gives its symbols, if there is a compiler.
fn assembled(program: &Path) -> Option<BTreeMap<String, u64>> {
    let source = program.with_extension("s");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-nostdlib", "-static", "-no-pie", "-Wl,-q", "-o"]).arg(program).arg(source);
    let is_made = cc.status().is_ok_and(|status| status.success());
    is_made.then(|| symbols(&std::fs::read(program).unwrap()))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn bolt_reads_what_was_written() {
    let Some(perf2bolt) = perf2bolt() else { return not_judged("no perf2bolt") };
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let Some(symbols) = assembled(&file("program")) else { return not_judged("no compiler") };
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

/// Where the file of a static program lies in memory.
const BASE: u64 = 0x40_0000;

/// A trace of Intel PT of [`PROGRAM`], as perf records it. perf follows the code in the file, and
/// the trace says what each conditional branch and each return did.
fn traced(program: &str, start: u64, after_the_call: u64) -> Vec<u8> {
    /// Returns are in the trace as they are.
    const NO_RETURN_COMPRESSION: u64 = 1 << 11;
    let bytes = |numbers: &[u64]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    let address = |packet: u8, at: u64| [&[packet][..], &at.to_le_bytes()[..6]].concat();
    let mut trace = [&[0x02, 0x82].repeat(8)[..], &[0x99, 0x01, 0x02, 0x23]].concat();
    trace.extend(address(0x71, start));
    for turn in 0..10 {
        // Bits behind a one: the loop in `work` goes on twice, and that around the call nine times.
        trace.push(0b1110 << 1);
        trace.extend(address(0x6d, after_the_call));
        trace.push(if turn < 9 { 0b11 << 1 } else { 0b10 << 1 });
    }
    trace.push(0x01);
    trace.resize(trace.len().next_multiple_of(8), 0);

    let record = |kind: u64, misc: u64, body: Vec<u8>| -> Vec<u8> {
        let header: Vec<u8> = bytes(&[kind | misc << 32 | (8 + body.len() as u64) << 48]);
        [header, body].concat()
    };
    let (process, id) = (7 << 32 | 7, 11);
    let mut path = program.as_bytes().to_vec();
    path.resize((path.len() + 1).next_multiple_of(8), 0);
    let page = start & !0xfff;
    let mapping = bytes(&[process, page, 0x1000, page - BASE, 0, 0, 0, 2 << 32 | 5]);
    let mut about = vec![1, 8];
    about.resize(18, 0);
    about[7] = NO_RETURN_COMPRESSION;
    let records = [
        record(70, 0, bytes(&about)),
        record(3, 1 << 13, bytes(&[process, u64::from(b'p'), process, id])),
        record(10, 2, [mapping, path, bytes(&[process, id])].concat()),
        record(71, 0, bytes(&[trace.len() as u64, 0, 0, 7 << 32, u64::from(u32::MAX)])),
        trace,
        record(4, 0, bytes(&[1 << 32 | 7, 1 << 32 | 7, 0, process, id])),
    ]
    .concat();
    // The event: its kind, its parts, and that other records have them, too.
    let mut event = [0; 16];
    event[0] = 128 << 32 | 8;
    event[1] = NO_RETURN_COMPRESSION;
    event[2] = 1;
    event[3] = 1 | 1 << 1 | 1 << 16;
    event[5] = 1 << 18 | 1 << 6 | 1 << 5;
    let header = bytes(&[104, 144, 112, 144, 256, records.len() as u64, 0, 0, 0, 0, 0, 0, id]);
    [b"PERFILE2".to_vec(), header, bytes(&event), bytes(&[104, 8]), records].concat()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_trace_that_perf_decodes_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let Some(symbols) = assembled(&file("program")) else { return not_judged("no compiler") };
    let (start, work) = (symbols["_start"], symbols["work"]);
    let trace = traced(&file("program").to_string_lossy(), start, start + 10);
    std::fs::write(file("trace"), &trace).unwrap();
    let not_decoded = read_branches(&*trace).unwrap_err().to_string();
    assert!(not_decoded.contains("perf inject --itrace"), "{not_decoded}");
    // To a pipe, and to a file without the trace.
    for to_pipe in [true, false] {
        let mut perf = Command::new("perf");
        perf.args(["inject", "-f", "--itrace=i3il16", "-i"]).arg(file("trace")).arg("-o");
        let perf = match to_pipe {
            true => perf.arg("-"),
            false => perf.arg(file("injected")).arg("--strip"),
        };
        let Ok(injected) = perf.output() else { return not_judged("no perf") };
        let error = String::from_utf8_lossy(&injected.stderr);
        let bytes =
            if to_pipe { injected.stdout } else { std::fs::read(file("injected")).unwrap() };
        let read = read_branches(&*bytes).expect(&error);
        // A sample each three of 111 instructions. perf counts the start of the trace, too.
        assert!((37..=38).contains(&read.totals.samples), "{:?} {error}", read.totals);
        assert!(read.totals.dropped.is_empty() && read.binaries.len() == 1, "{error}");
        let branches = read.binaries.values().next().unwrap().fragments.branches();
        let branches: BTreeSet<_> = branches.keys().map(|it| (it.from, it.to)).collect();
        let all = [
            (start + 5, work),
            (start + 12, start + 5),
            (work + 7, work + 5),
            (work + 9, start + 10),
        ];
        // At offsets in the file.
        assert_eq!(branches, all.map(|(from, to)| (from - BASE, to - BASE)).into());
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
