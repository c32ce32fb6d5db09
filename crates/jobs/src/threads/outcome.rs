//! The outcome of a search for a number, from its records: its probes, its answer and its notes.

use super::confirmation::Confirmation;
use super::request::{Counting, ModelledProgram, ThreadsMethod, ThreadsProgram, ThreadsQuestion};
use super::watch_summary::WatchSummary;
use crate::error::JobError;
use crate::last_comparison::ComparedNumbers;
use pinwise_campaign::Record;
use pinwise_measure::{
    Measure, OtherLoad, Probe, Probed, Progress, RoleTime, Unit, values_or_text,
};
use pinwise_monitor::Activity;
use pinwise_placement::{Gain, LastComparisonVerdict, Unmeasured};
use pinwise_present::{
    NothingCompared, NumberAnswer, NumberEstimate, NumberSearchStop, notable_share,
};
use pinwise_programs::{ProbeDetails, START_TIME};
use pinwise_threads::{
    Attempt, FoundNumber, Interval, NumberAdvice, NumberSearchEnd, NumberSearchError, Objective,
    SearchMethod, SearchPosition, SetAside, ThreadCeiling, ThreadsNote, counted_threads,
};
use serde::{Deserialize, Serialize};
use std::mem::discriminant;
use std::time::Duration;

/// From this share of the program's CPU time on, watching is worth a note.
const WATCHING_NOTABLE: f64 = 0.05;

/// Runs take a fixed time if their times differ by at most this factor. It is a choice. On a busy
/// machine many threads of such a run started up to 25 ms later than one. The runs took a second.
const SAME_TIME: f64 = 1.03;
/// Runs of a fixed time that take this many times the CPU time with more threads do more work.
const MORE_WORK: f64 = 1.5;

/// The outcome of a search so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadsOutcome {
    /// The question.
    pub question: ThreadsQuestion,
    /// The probes that the answer rests on, in order. Those before whole runs took over are left
    /// out.
    pub probes: Vec<ShownProbe>,
    /// Stored measurements that are not among these probes.
    pub set_aside: SetAside,
    /// The unit in which progress is shown; `None` before the first probe.
    pub unit: Option<Unit>,
    /// The unit in which the records count progress.
    pub counted: Option<Unit>,
    /// The length of an ordinary probe.
    pub window: Duration,
    /// The answer, in parameters of the program. `Err`: why there is none. `Err(None)`: the search
    /// has not ended.
    pub found: Result<FoundNumber, Option<NumberSearchError>>,
    /// Time since the search began.
    pub time: Duration,
    /// Share of the contexts' time that other programs took meanwhile, if it is notable.
    pub others: Option<f64>,
    /// The notes.
    pub notes: Vec<ThreadsNote>,
    /// Fresh windows should compare the number. They have not done so yet, or never will.
    pub uncompared: bool,
    /// The search has not ended: it runs, was stopped, or was killed.
    pub is_unfinished: bool,
}

/// A probe, and what it showed.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownProbe {
    /// The probe. Its progress is the value that is maximised.
    pub probe: Probe,
    /// How the threads of each role spent it.
    pub roles: Vec<RoleTime>,
    /// The details of a probe on this machine.
    pub seen: Option<ProbeDetails>,
}

/// The answer of a search, as its campaign stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadsConclusion {
    /// n: what the program is given.
    pub parameter: u32,
    /// The threads that the program makes with `parameter`.
    pub threads: u32,
    /// Why the search ended.
    pub stopped_because: NumberSearchEnd,
    /// The verdict of the fresh windows. It is undecided if they did not compare what they should
    /// have. `None`: there was nothing to compare, or an earlier version stored this.
    #[serde(default)]
    pub choice: Option<LastComparisonVerdict>,
    /// The gain of the number that was found over the program's own. `None`: its own is kept.
    #[serde(default)]
    pub gain: Option<Gain>,
    /// Why the comparison ended before its time, if it did. The campaign can be resumed, unless the
    /// program jumped or fell below the floor.
    #[serde(default)]
    pub cut_short: Option<Unmeasured>,
    /// Notes that the records do not show.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<ThreadsNote>,
}

impl From<Probe> for ShownProbe {
    fn from(probe: Probe) -> Self {
        Self { probe, roles: Vec::new(), seen: None }
    }
}

impl ThreadsOutcome {
    /// Computes the outcome from a question and the records of its campaign.
    pub(crate) fn of(question: ThreadsQuestion, records: &[Record]) -> Result<Self, JobError> {
        let counting = question.counting()?;
        let convert = |threads| counting.parameter(threads);
        let (SearchPosition { window, run, short, .. }, answer) =
            question.search.outcome(&convert, records);
        let (attempts, made_by, set_aside) = match &answer {
            Ok(found) => (&found.attempts, &found.records, found.set_aside),
            Err(unfound) => (&unfound.attempts, &unfound.records, unfound.set_aside),
        };
        let measured = made_by.iter().filter_map(|&index| records[index].outcome.as_ref().ok());
        let mut probes = Vec::new();
        let mut shares: Vec<OtherLoad> = Vec::new();
        let (mut unit, mut counted) = (None, None);
        for (measurement, attempt) in measured.zip(attempts) {
            let Probed { unit: own, roles, others, .. } = Probed::of(measurement)?;
            shares.extend(others);
            unit = Some(question.unit(&own));
            counted = Some(own);
            let seen = Probed::more(measurement).ok();
            probes.push(ShownProbe { probe: attempt.probe, roles, seen });
        }
        let elapsed = records.last().map_or(Duration::ZERO, |record| record.elapsed);
        let time = match &question.request.program {
            ThreadsProgram::Here(_) => elapsed,
            ThreadsProgram::Modelled(_) => probes.iter().map(|probe| probe.probe.cost).sum(),
        };
        let seen: Vec<&ProbeDetails> =
            probes.iter().filter_map(|probe| probe.seen.as_ref()).collect();
        let others = notable_share(&shares);
        let mut notes: Vec<ThreadsNote> = question.limited.clone().into_iter().collect();
        if (run.is_some() && !question.request.per_run) || short {
            let run_seconds = run.filter(|_| !short).map(|run| run.as_secs_f64());
            notes.push(ThreadsNote::ShortRuns { run_seconds, pieces: question.request.pieces });
        }
        notes.extend(shown(&question, &probes, &seen, others));
        let found = match answer {
            Ok(mut found) => {
                found.advice = found.advice.map(|advice| counting.in_parameters(advice));
                notes.extend(about(&found, &question, &counting, others.is_some()));
                Ok(found)
            }
            Err(unfound) => Err(unfound.why),
        };
        let mut outcome = Self {
            question,
            probes,
            set_aside,
            unit,
            counted,
            window,
            found,
            time,
            others,
            notes,
            uncompared: false,
            is_unfinished: false,
        };
        if let Counting::Program(program) = &counting {
            outcome.speed_up(program.speedup_of_progress());
        }
        if let ThreadsProgram::Modelled(program) = &outcome.question.request.program {
            outcome.notes.extend(about_model(program, &outcome.question));
        }
        Ok(outcome)
    }

    /// Progress as the speed-up over the sequential program. A progress of 1 is a speed-up of
    /// `factor`.
    fn speed_up(&mut self, factor: f64) {
        for Progress { rate, error, .. } in
            self.probes.iter_mut().map(|probe| &mut probe.probe.progress)
        {
            *rate *= factor;
            *error = error.map(|error| error * factor);
        }
        if let Ok(found) = &mut self.found {
            found.advice = found.advice.take().map(|advice| advice.over_sequential(factor));
        }
    }

    /// How the last comparison judges gains ([`LastComparisonQuestion::ranked_on`]). A load of
    /// others makes many rounds odd, and the speed in the long run has its share of them.
    ///
    /// [`LastComparisonQuestion::ranked_on`]: crate::LastComparisonQuestion::ranked_on
    pub(crate) fn ranked_on(&self, contexts: u32) -> Option<u32> {
        self.others.is_none().then_some(contexts)
    }

    /// How the threads were watched; `None` before the first probe, and on a model.
    pub fn watched(&self) -> Option<WatchSummary<'_>> {
        WatchSummary::of(self.probes.iter().filter_map(|probe| probe.seen.as_ref()))
    }

    /// The threads that a probe of `n` showed.
    pub fn threads_of(&self, n: u32) -> Option<u32> {
        let shown = self.probes.iter().find(|shown| shown.probe.parameter == n)?;
        Some(shown.probe.threads)
    }

    /// The number that is announced: the one that fresh windows decide, else the one that was
    /// found. `None`: there is no answer.
    pub fn number(&self, confirmation: Option<&Confirmation>) -> Option<u32> {
        let found = self.found.as_ref().ok()?.parameter;
        Some(confirmation.map_or(found, Confirmation::announced))
    }

    /// The answer: what fresh windows decide, or why they decide nothing. If a later
    /// comparison decides, it is the estimate of the probes, with what that `compared`.
    pub fn answer<'a>(
        &self,
        found: &FoundNumber,
        confirmation: Option<&'a Confirmation>,
        compared: Option<ComparedNumbers>,
    ) -> NumberAnswer<'a> {
        match confirmation {
            Some(shown) => NumberAnswer::Decided(shown.verdict()),
            None if self.uncompared => NumberAnswer::NothingCompared(self.nothing_compared(found)),
            None if self.question.request.confirms() => {
                let NumberEstimate { n, threads, .. } = self.estimate(found, compared);
                NumberAnswer::OnlyNumber { n, threads, below_floor: found.below_floor() }
            }
            None => NumberAnswer::Unconfirmed(self.estimate(found, compared)),
        }
    }

    /// The seconds of each whole run, if these do more work with more threads in the same time.
    /// Then their time is no speed, and nothing can be compared by it.
    pub(crate) fn fixed_time(&self) -> Option<f64> {
        self.notes.iter().find_map(|note| match note {
            ThreadsNote::FixedTime { seconds, more_work: true } => Some(*seconds),
            _ => None,
        })
    }

    fn nothing_compared(&self, found: &FoundNumber) -> NothingCompared {
        let mut numbers: Vec<u32> = found.attempts.iter().map(|one| one.probe.parameter).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let above_max = self.notes.iter().find_map(|note| match note {
            ThreadsNote::DefaultAboveMax { default, .. } => Some(*default),
            _ => None,
        });
        NothingCompared {
            n: found.parameter,
            above_max,
            fixed_time: self.fixed_time(),
            numbers: numbers.len(),
            // A run that was only timed is no loss.
            set_aside: SetAside { earlier: 0, ..self.set_aside },
            others: self.others,
            budget: self.question.request.time(),
            unfinished: self.is_unfinished,
        }
    }

    /// The estimate from the probes. What fresh windows `compared` is taken from there.
    pub fn estimate(
        &self,
        found: &FoundNumber,
        compared: Option<ComparedNumbers>,
    ) -> NumberEstimate {
        let n = found.parameter;
        let threads = self.threads_of(n).unwrap_or(found.threads);
        NumberEstimate { n, threads, advice: self.advice(found, compared) }
    }

    /// How sure the number is, by the probes. What fresh windows `compared` is taken from there:
    /// the program may have come into another phase between the probes. `None` beside other
    /// programs. A short probe has more or less of their load than the one before it. So the
    /// intervals of probes do not hold.
    pub fn advice(
        &self,
        found: &FoundNumber,
        compared: Option<ComparedNumbers>,
    ) -> Option<NumberAdvice> {
        let advice = found.advice.clone().filter(|_| self.others.is_none())?;
        let Some(ComparedNumbers { pair, gain, announced }) = compared else { return Some(advice) };
        let [value, low, high] = [gain.mean, gain.low, gain.high].map(|gain| 1.0 + gain);
        Some(advice.as_compared(pair, Interval { value, low, high }, announced))
    }

    /// Why the search ended. `compared`: fresh windows say how good its number is.
    pub fn stopped<'a>(&self, found: &'a FoundNumber, compared: bool) -> NumberSearchStop<'a> {
        let share = match &self.question.search.method {
            SearchMethod::Survey(survey) => survey.work.is_some(),
            SearchMethod::Reinforcer(_) | SearchMethod::Sweep(_) => false,
        };
        let own = |one: &&Attempt| one.probe.parameter == found.parameter;
        NumberSearchStop {
            end: found.stopped,
            n: found.parameter,
            advice: found.advice.as_ref(),
            probes: found.attempts.len(),
            readings: found.attempts.iter().filter(own).count(),
            compared,
            share,
            tolerance: self.question.request.within,
        }
    }

    /// The answer as a campaign stores it; `None` if there is none.
    pub(crate) fn conclusion(&self) -> Option<ThreadsConclusion> {
        let found = self.found.as_ref().ok()?;
        Some(ThreadsConclusion {
            parameter: found.parameter,
            threads: found.threads,
            stopped_because: found.stopped,
            choice: None,
            gain: None,
            cut_short: None,
            notes: Vec::new(),
        })
    }
}

/// Whether the notes say the same, with whatever figures.
fn alike(one: &ThreadsNote, other: &ThreadsNote) -> bool {
    match (one, other) {
        (ThreadsNote::Program(one), ThreadsNote::Program(other)) => {
            discriminant(one) == discriminant(other)
        }
        _ => one == other,
    }
}

/// Notes on the probes: what disturbed them, and how they differ.
fn shown(
    question: &ThreadsQuestion,
    probes: &[ShownProbe],
    seen: &[&ProbeDetails],
    others: Option<f64>,
) -> Vec<ThreadsNote> {
    let mut notes: Vec<ThreadsNote> = Vec::new();
    for met in seen.iter().flat_map(|seen| &seen.notes) {
        let met = ThreadsNote::from(met.clone());
        if !notes.iter().any(|note| alike(note, &met)) {
            notes.push(met);
        }
    }
    let drifting = probes
        .iter()
        .filter(|probe| probe.seen.as_ref().is_some_and(|seen| seen.drift.is_some()))
        .map(|probe| probe.probe.parameter);
    let numbers: Vec<u32> = drifting.collect();
    if !numbers.is_empty() {
        notes.push(ThreadsNote::Drifting { numbers });
    }
    let sweep = question.request.method == ThreadsMethod::Sweep;
    let alone = |probe: &&ShownProbe| {
        let same = |other: &&ShownProbe| other.probe.parameter == probe.probe.parameter;
        let single = probes.iter().filter(same).count() == 1;
        probe.probe.progress.error.is_none() && (!sweep || single)
    };
    let told_by = |probe: &ShownProbe| probe.probe.progress.measure;
    if probes.iter().filter(alone).any(|probe| told_by(probe) == Measure::Runs) {
        notes.push(ThreadsNote::SingleRuns);
    }
    if question.request.objective == Objective::Time {
        // Then the answer means nothing, so it comes first.
        let of_runs = |shown: &ShownProbe| told_by(shown) == Measure::Runs;
        if probes.iter().all(of_runs) {
            let probes: Vec<&Probe> = probes.iter().map(|shown| &shown.probe).collect();
            let hardly = hardly_computes(&probes, question.contexts);
            notes.splice(0..0, hardly.into_iter().chain(fixed_time(&probes, question.contexts)));
        }
    }
    if probes.iter().any(|probe| told_by(probe) == Measure::CpuTime) {
        notes.push(ThreadsNote::CpuTimeOnly);
    }
    notes.extend(others.map(|share| ThreadsNote::Busy { share }));
    // This includes probes by all layers.
    let sum = |of: fn(&Activity) -> Duration| {
        seen.iter().map(|seen| of(&seen.activity).as_secs_f64()).sum::<f64>()
    };
    let watching =
        sum(|activity| activity.overhead.total()) / sum(Activity::ran).max(f64::MIN_POSITIVE);
    if watching >= WATCHING_NOTABLE && seen.iter().any(|seen| seen.disturbed) {
        notes.push(ThreadsNote::Watching { share: watching });
    }
    notes.extend(watched_otherwise(seen));
    notes
}

/// A note if these whole runs take the same time ([`SAME_TIME`]). The greatest n must be at least
/// twice the least.
fn fixed_time(probes: &[&Probe], contexts: u32) -> Option<ThreadsNote> {
    let times = || probes.iter().map(|probe| 1.0 / probe.progress.rate);
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let fewest = probes.iter().min_by_key(|probe| probe.parameter)?;
    let greatest = probes.iter().max_by_key(|probe| probe.parameter)?;
    let fixed = greatest.parameter / 2 >= fewest.parameter && most <= SAME_TIME * least;
    let [few, many] = [fewest, greatest].map(|probe| computed(probe, contexts));
    let more_work = few > START_TIME.as_secs_f64() && many >= MORE_WORK * few;
    fixed.then_some(ThreadsNote::FixedTime { seconds: (least + most) / 2.0, more_work })
}

/// A note if no whole run took more CPU time than the start of a program.
fn hardly_computes(probes: &[&Probe], contexts: u32) -> Option<ThreadsNote> {
    if probes.iter().any(|probe| computed(probe, contexts) > START_TIME.as_secs_f64()) {
        return None;
    }
    let seconds = probes.iter().map(|probe| 1.0 / probe.progress.rate).reduce(f64::max)?;
    Some(ThreadsNote::HardlyComputes { seconds })
}

/// The CPU time of a whole run, in seconds.
fn computed(probe: &Probe, contexts: u32) -> f64 {
    probe.profile.cpu_util / 100.0 * f64::from(contexts) / probe.progress.rate
}

/// Which probes were watched by another layer than the last one. The output names the last.
fn watched_otherwise(seen: &[&ProbeDetails]) -> Option<ThreadsNote> {
    let layer = seen.last()?.activity.layer;
    let earlier = || seen.iter().filter(|seen| seen.activity.layer != layer);
    let by = earlier().next()?.activity.layer.name().to_owned();
    let (probes, of, later) = (earlier().count(), seen.len(), layer.name().to_owned());
    Some(ThreadsNote::WatchedOtherwise { probes, of, by, later })
}

/// Notes on the answer. `busy`: other programs took much of the contexts' time in the probes.
fn about(
    found: &FoundNumber,
    question: &ThreadsQuestion,
    counting: &Counting,
    busy: bool,
) -> Vec<ThreadsNote> {
    let mut notes = Vec::new();
    let (convert, threads) = (|threads| counting.parameter(threads), |n| counting.threads(n));
    let candidates: Vec<u32> =
        question.range.candidates(convert, threads).into_iter().map(convert).collect();
    let method = question.request.method;
    let published = method == ThreadsMethod::Reinforcer;
    let asked = question.request.max.is_some();
    let open = found.advice.as_ref().map_or(&[][..], |advice| &advice.open);
    if candidates.len() > 1
        && !published
        && more_may_help(found.parameter, open, question.contexts, busy)
        && candidates.last() == Some(&found.parameter)
        // Of all contexts there are no more to grant. A quota may be raised.
        && !(question.request.grants() && found.parameter == question.contexts)
    {
        notes.push(ThreadsNote::CutOff { n: found.parameter, asked });
    }
    notes.extend(capped(&found.attempts, question, &candidates, counting));
    let ends = match published {
        true => Some([question.range.min, question.range.max].map(convert)),
        false => candidates.first().zip(candidates.last()).map(|(&first, &last)| [first, last]),
    };
    if let Some(n) = ends.filter(|n| n.map(threads) != *n) {
        let counts_n = counted_threads(n[1], convert, threads) == n[1];
        notes.push(ThreadsNote::Translated { counts_n, n, threads: n.map(threads) });
    }
    // What a jump means for the answer, the comparison says, if there is one.
    let said = found.jumped().is_some() && question.request.confirms();
    let unchecked = found.unchecked.as_ref().filter(|_| !said);
    notes.extend(unchecked.cloned().map(|reason| ThreadsNote::Unchecked { reason }));
    notes.extend(found.phase_change.map(ThreadsNote::Shifted));
    notes
}

/// Whether a larger number than `n` is worth a try. It is not if others disturbed the probes. Nor
/// is it if as many threads as contexts may do as well as more (`open`).
fn more_may_help(n: u32, open: &[u32], contexts: u32, busy: bool) -> bool {
    !busy && (n <= contexts || open.first().is_none_or(|&fewest| contexts < fewest))
}

/// A note if the program makes no more threads from some number on. A survey must have probed its
/// largest number.
fn capped(
    attempts: &[Attempt],
    question: &ThreadsQuestion,
    candidates: &[u32],
    counting: &Counting,
) -> Option<ThreadsNote> {
    let seen = attempts.iter().map(|attempt| (attempt.asked, &attempt.probe));
    let ThreadCeiling { threads, numbers, follows } =
        ThreadCeiling::of_probes(seen).filter(|_| question.request.counts_threads())?;
    let numbers: Vec<u32> = numbers.into_iter().map(|asked| counting.parameter(asked)).collect();
    let method = question.request.method;
    if method == ThreadsMethod::Survey && numbers.last() < candidates.last() {
        return None;
    }
    let pooled = method != ThreadsMethod::Reinforcer;
    Some(ThreadsNote::Capped { threads, numbers, pooled, follows })
}

fn about_model(program: &ModelledProgram, question: &ThreadsQuestion) -> Vec<ThreadsNote> {
    let mut notes = Vec::new();
    if let SearchMethod::Survey(survey) = &question.search.method {
        notes.extend(survey.pieces.map(|pieces| ThreadsNote::Pieces { pieces }));
    }
    if program.platform().is_ok_and(|(_, shared)| shared) {
        notes.push(ThreadsNote::SharedCores);
    }
    notes.push(ThreadsNote::Simulated);
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::SchedulingProfile;

    fn run(&(parameter, time): &(u32, f64)) -> Probe {
        let progress = Progress { rate: 1.0 / time, error: None, measure: Measure::Runs };
        let (profile, cost) = (SchedulingProfile::default(), Duration::from_secs(1));
        Probe { parameter, threads: parameter, profile, progress, cost }
    }

    /// A run on two contexts, with their utilization.
    fn computing(&(n, time, cpu_util): &(u32, f64, f64)) -> Probe {
        let profile = SchedulingProfile { cpu_util, ..SchedulingProfile::default() };
        Probe { profile, ..run(&(n, time)) }
    }

    #[test]
    fn runs_of_a_fixed_time_get_a_note() {
        let told = |runs: &[(u32, f64, f64)]| {
            let runs: Vec<Probe> = runs.iter().map(computing).collect();
            fixed_time(&runs.iter().collect::<Vec<_>>(), 2)
        };
        let fixed = |more_work| Some(ThreadsNote::FixedTime { seconds: 1.032, more_work });
        let runs = |cpu_util| [(2, 1.03, 90.0), (4, 1.034, cpu_util), (1, 1.032, 50.0)];
        assert_eq!((told(&runs(95.0)), told(&runs(60.0))), (fixed(true), fixed(false)));
        for runs in [&[(2, 1.0), (4, 1.04)][..], &[(2, 1.0), (3, 1.0)], &[(2, 1.0)], &[]] {
            let runs: Vec<_> = runs.iter().map(|&(n, time)| (n, time, 50.0)).collect();
            assert_eq!(told(&runs), None, "{runs:?}");
        }
    }

    #[test]
    fn runs_that_hardly_compute_get_a_note() {
        let told = |runs: &[(u32, f64, f64)]| {
            let runs: Vec<Probe> = runs.iter().map(computing).collect();
            hardly_computes(&runs.iter().collect::<Vec<_>>(), 2)
        };
        let hardly = |seconds| Some(ThreadsNote::HardlyComputes { seconds });
        assert_eq!(told(&[(2, 0.003, 50.0), (1, 0.004, 50.0)]), hardly(0.004));
        assert_eq!(told(&[(2, 2.0, 0.1)]), hardly(2.0), "it waits");
        assert_eq!(told(&[(2, 0.003, 50.0), (1, 0.008, 50.0)]), None);
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn more_threads_are_no_advice_beside_others_or_where_fewer_may_do() {
        assert!(more_may_help(4, &[3], 2, false) && more_may_help(2, &[1], 2, false));
        assert!(!more_may_help(4, &[2], 2, false) && !more_may_help(4, &[3], 2, true));
    }

    #[test]
    fn a_note_with_other_figures_is_the_same_note() {
        let rare =
            |seconds| ThreadsNote::from(pinwise_measure::ProgramNote::MetricRare { seconds });
        assert!(alike(&rare(0.113), &rare(1.2)));
        assert!(!alike(&rare(1.2), &ThreadsNote::from(pinwise_measure::ProgramNote::MetricStill)));
        let [one, other] = ["a".to_owned(), "b".to_owned()].map(ThreadsNote::from);
        assert!(!alike(&one, &other), "of an earlier version");
    }
}
