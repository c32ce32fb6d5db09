//! Programs that run to their end, alone or beside another one.

use super::{OpenSubject, allowed_machine, target_error, whole_machine};
use crate::error::JobError;
use pinwise_counters::CountSource;
use pinwise_linux::{Launch, Pid};
use pinwise_measure::{Interrupt, Testbed};
use pinwise_programs::PairsTestbed;
use pinwise_topology::Fingerprint;
use std::time::Duration;

impl OpenSubject for PairsTestbed {
    fn pids(&self) -> Option<Vec<Pid>> {
        Some(Vec::new())
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(self.machine())
    }
}

/// How paired commands run.
pub(crate) struct PairedRuns {
    /// Where programs are looked for; `None`: in `PATH`.
    pub(crate) path: Option<String>,
    /// A run that takes longer fails.
    pub(crate) limit: Duration,
    /// The time of one measurement, if there is a budget of time.
    pub(crate) share: Option<Duration>,
    /// What counts programs alone, if there is anything.
    pub(crate) counts: Option<Box<dyn CountSource>>,
}

/// Commands with their short names.
pub(crate) fn open_commands(
    commands: &[Vec<String>],
    names: Vec<String>,
    cpus: Option<&str>,
    PairedRuns { path, limit, share, counts }: PairedRuns,
    interrupt: &Interrupt,
) -> Result<PairsTestbed, JobError> {
    let launch = |command: &Vec<String>| {
        let mut words = command.iter();
        Launch {
            program: words.next().map(Into::into).unwrap_or_default(),
            arguments: words.map(Into::into).collect(),
            environment: path.iter().map(|path| ("PATH".into(), path.into())).collect(),
            ..Launch::default()
        }
    };
    let machine = allowed_machine(whole_machine()?, cpus)?;
    let programs: Vec<Launch> = commands.iter().map(launch).collect();
    // The last one first runs after all others have been measured.
    programs.iter().try_for_each(Launch::check_program).map_err(target_error)?;
    let programs = names.into_iter().zip(programs).collect();
    let testbed = PairsTestbed::new(programs, &machine, limit, interrupt.clone());
    let mut testbed = testbed.map_err(target_error)?;
    share.into_iter().for_each(|share| testbed.share_out(share));
    counts.into_iter().for_each(|counts| testbed.count(counts));
    Ok(testbed)
}
