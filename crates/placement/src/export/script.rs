//! A shell script that pins each thread of a running program with taskset (util-linux), for
//! machines without pinwise.

use super::Export;
use crate::Plan;
use std::fmt::Write;

const SCRIPT: &str = r##"#!/bin/sh
# Pins the threads of a running program as a pinwise plan says: sh FILE PID...
[ $# -gt 0 ] || { echo "usage: sh $0 PID..." >&2; exit 2; }
for pid; do
    [ -d "/proc/$pid/task" ] || { echo "no process $pid" >&2; exit 1; }
done
# find fails where a thread ends while it looks. The other threads are listed all the same.
tasks=$(for pid; do find "/proc/$pid/task" -mindepth 1 -maxdepth 1 2>/dev/null; done)
failed=0

# nth COMM N: the thread number N (from 0, in order of creation) that is called COMM
nth() {
    n=0
    for task in $tasks; do
        [ "$(cat "$task/comm" 2>/dev/null)" = "$1" ] || continue
        # As text: the name of a thread may be no number, and some shells would run it.
        [ "$n" != "$2" ] || { echo "${task##*/}"; return 0; }
        n=$((n + 1))
    done
    return 1
}

# pin NAME CPUS: a NAME such as worker#2 is the third thread called worker
pin() {
    if tid=$(nth "$1" 0 || nth "${1%#*}" "${1##*#}"); then
        taskset -pc "$2" "$tid" || failed=1
    else
        echo "no thread $1" >&2
        failed=1
    fi
}

"##;

pub(super) fn script(plan: &Plan) -> Result<Export, String> {
    let mut text = SCRIPT.to_owned();
    for thread in &plan.threads {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "pin {} {}", quoted(&thread.name), thread.cpus);
    }
    text.push_str("exit $failed\n");
    Ok(Export { text, notes: Vec::new() })
}

/// Quotes a text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
