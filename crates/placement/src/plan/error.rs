//! [`PlanError`]: why a text is not a plan.

/// Why a text is no plan. One line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Longer than a plan for any machine. The limit, in MiB.
    #[error("it has more than {0} MiB: a plan is shorter")]
    Long(usize),
    /// Another file.
    #[error("this is no plan: name a file that `pinwise place`, `compare` or `tune` wrote")]
    NoPlan,
    /// No TOML, or not the fields of a plan.
    #[error("line {line}, column {column}: {reason}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// The error at that place.
        reason: String,
    },
    /// Written by another pinwise.
    #[error(
        "plan version {0}, this pinwise reads version 1: use the pinwise that wrote it, or run \
         `pinwise place` again"
    )]
    Version(u32),
    /// It says nothing.
    #[error(
        "the plan has no [[thread]] and no [number]: run `pinwise place` or `pinwise tune` again"
    )]
    Empty,
    /// No program runs without threads.
    #[error("the plan is for n = 0 threads: n is at least 1")]
    NoNumber,
    /// A number that no program gets: n, and the largest.
    #[error("the plan is for n = {0}: n is at most {1}")]
    Number(u32, u32),
    /// A variable that no program can be started with, by its name.
    #[error(
        "no program can have the plan's environment variable '{0}': a name is not empty and has \
         no =, and neither name nor value has a NUL"
    )]
    Environment(String),
    /// A command that cannot be run.
    #[error("the plan's command `set` has a NUL: remove it")]
    Set,
    /// A name stands for one thread.
    #[error("two threads are called '{0}': number them in order of creation, {0}#0 and {0}#1")]
    SameName(String),
    /// A thread needs a place.
    #[error("thread '{0}' has no CPUs: give it a list such as cpus = \"0,2-3\"")]
    NoCpus(String),
    /// Memory needs a place.
    #[error("[memory] has no nodes: give it a list such as nodes = [0], or remove it")]
    NoNodes,
}

pub(super) fn malformed(text: &str, error: &toml::de::Error) -> PlanError {
    let before = &text[..error.span().map_or(0, |span| span.start).min(text.len())];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let reason = error.message().lines().collect::<Vec<_>>().join(" ");
    PlanError::Malformed {
        line: before.matches('\n').count() + 1,
        column: before[start..].chars().count() + 1,
        reason,
    }
}
