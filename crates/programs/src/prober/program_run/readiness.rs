//! Decides when a started program has begun its work.
//!
//! The published probes begin "beyond the initial input reading phase", which a person had looked
//! up. From outside, a program has begun when its worker threads exist and one of them works. The
//! parameter says how many there will be. If fewer come, because the input has no work for more,
//! pinwise waits one second for a new one. With a metric a single thread counts as all then, too.

use super::ProgramRun;
use crate::prober::{ProbeError, ProbeOptions};
use pinwise_linux::{LineReceiver, Roster, Scope, Tail, TargetError, thread::SchedulerTimes};
use regex_lite::Regex;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(4);
/// The number of looks for each search for new processes, because that reads all of `/proc`.
const FAMILY: u32 = 5;
/// How long no thread has to be added until fewer threads than expected count as all.
const SETTLED: Duration = Duration::from_secs(1);
/// A worker that has run for this long works. To create a thread and put it to sleep takes about 50
/// us.
const WORKS: Duration = Duration::from_millis(1);

impl ProgramRun {
    /// Waits until the program with this parameter has begun its work.
    pub(in crate::prober) fn wait_ready(
        &mut self,
        parameter: u32,
        options: &ProbeOptions,
    ) -> Result<(), ProbeError> {
        match &options.after {
            Some(pattern) => self.wait_said(parameter, pattern, options.limit),
            None => {
                let expected =
                    options.threads.as_ref().map_or(parameter, |threads| threads(parameter));
                let alone = options.progress.shows_work_done();
                self.wait_busy(parameter, expected as usize, alone, options.limit)
            }
        }
    }

    fn wait_said(&mut self, n: u32, pattern: &Regex, limit: Duration) -> Result<(), ProbeError> {
        let begin = Instant::now();
        let said = |lines: &Option<LineReceiver>| {
            lines
                .as_ref()
                .is_some_and(|lines| lines.try_iter().any(|line| pattern.is_match(&line.text)))
        };
        loop {
            if said(&self.streams.stdout) || said(&self.streams.stderr) {
                return Ok(());
            }
            self.check()?;
            if begin.elapsed() >= limit {
                let tails =
                    self.running.iter().flat_map(|running| [&running.stderr, &running.stdout]);
                let last = tails.flatten().find_map(Tail::now);
                let last =
                    last.map(|line| format!("; its last line was: {line}")).unwrap_or_default();
                let (name, pattern) = (self.name.clone(), pattern.as_str().to_owned());
                return Err(ProbeError::NeverSaid { name, n, pattern, waited: limit, last });
            }
            self.pause(LOOK);
        }
    }

    /// Waits for as many threads as are expected, or for fewer that seem to be all. These are
    /// several, or one if that may be `alone`.
    fn wait_busy(
        &mut self,
        n: u32,
        expected: usize,
        alone: bool,
        limit: Duration,
    ) -> Result<(), ProbeError> {
        let unreadable = |name: &String| {
            let name = name.clone();
            move |cause| ProbeError::Target(TargetError::Proc { name, cause })
        };
        let begin = Instant::now();
        let mut roster =
            Roster::new(Scope::Trees(vec![self.root])).map_err(unreadable(&self.name))?;
        let mut count = 0;
        let mut changed = begin;
        // The CPU time of the workers when the last of them came.
        let mut before = Duration::ZERO;
        for look in 1.. {
            self.check()?;
            if look % FAMILY == 0 {
                roster.refresh().map_err(unreadable(&self.name))?;
            } else {
                roster.refresh_threads();
            }
            let present = roster.threads().count();
            let ran = workers_ran(&roster);
            if present != count {
                (count, changed, before) = (present, Instant::now(), ran);
            }
            let complete =
                count >= expected || (count > 1 || alone) && changed.elapsed() >= SETTLED;
            if complete && ran >= before + WORKS {
                return Ok(());
            }
            if begin.elapsed() >= limit {
                let (name, threads) = (self.name.clone(), count as u32);
                return Err(match expected > 1 && count < 2 && !alone {
                    true => ProbeError::NoWorkers { name, n, waited: limit },
                    false => ProbeError::Idle { name, n, threads, waited: limit },
                });
            }
            self.pause(LOOK);
        }
        Ok(())
    }
}

/// The CPU time of all threads, except the first of each process. That one counts if it is alone.
fn workers_ran(roster: &Roster) -> Duration {
    let ran = |id: &pinwise_linux::thread::ThreadId| {
        SchedulerTimes::read(id.pid, id.tid).map_or(Duration::ZERO, |account| account.ran)
    };
    let several = roster.members().iter().any(|member| member.threads.len() > 1);
    let worker = |id: &pinwise_linux::thread::ThreadId| !several || id.tid != id.pid.main();
    roster.threads().map(|(_, id)| id).filter(worker).map(|id| ran(&id)).sum()
}
