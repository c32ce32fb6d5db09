//! Tests that judge nothing on this machine, and say so.

use std::fmt::Display;
use std::io::Write;

/// Says that the running test, or a part of it, judges nothing here, and why. The line goes past
/// the capture of test output, and `./test` repeats it at its end.
pub fn not_judged(reason: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "not judged: {test}: {reason}");
}

/// As [`not_judged`], for what every machine that runs `CI=true ./test` has: two CPUs, a package.
///
/// # Panics
/// With `CI=true`.
pub fn lacking(what: impl Display) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "this machine lacks {what}");
    not_judged(format_args!("this machine lacks {what}"));
}
