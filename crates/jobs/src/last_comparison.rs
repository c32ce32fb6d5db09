//! Measures the last comparison: fresh windows of the number found and of the default, in random
//! order.

mod load_change;

use self::load_change::{LoadChange, load_change};
use crate::campaign_run::{EndContext, conclude, measure_on, part_left_open};
use crate::default_number::DefaultNumber;
use crate::error::JobError;
use crate::events::{Event, Events};
use crate::job::Caller;
use pinwise_campaign::{
    CampaignInfo, CampaignState, Ending, Purpose, Record, Step, Store, Strategy, Trial,
    TrialRounds, settled,
};
use pinwise_measure::{
    Effort, Measurement, MemoryPolicy, OtherLoad, Placed, Setting, Testbed, ThreadCount, Unit,
    starved, value_or_text,
};
use pinwise_placement::{
    Budget, ComparedRounds, Gain, GainRule, LastComparisonNote, LastComparisonVerdict, Unmeasured,
    Way,
};
use pinwise_present::notable_share;
use pinwise_topology::{Assignment, Random};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The fewest rounds of a comparison that is cut short and still judged: its intervals are wide.
pub(crate) const JUDGED_ROUNDS: usize = 2;
/// With fewer rounds the intervals are so wide that a note says so.
pub(crate) const GOOD_ROUNDS: u64 = ComparedRounds::FIRST_LOOK as u64;
/// The most windows of one measurement, unless fewer show nothing. With more windows the program is
/// started, or gets its number, fewer times.
pub(crate) const MOST_WINDOWS: f64 = 4.0;
/// The most rounds if the default alone is measured, only to know its speed.
const ALONE_ROUNDS: usize = 3;
/// Confidence with which all intervals hold together.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Rounds that are foreseen: those of as many nodes at once.
const FORESEEN_ROUNDS: usize = 64;
/// Seed of the random order.
const SEED: u64 = 1;

/// The question of a last comparison: which ways it compares, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastComparisonQuestion {
    /// The number that was found. If that is the default and has no placement, the next best
    /// number.
    pub n: u32,
    /// The number that the program uses on its own; `None`: unknown, its variable is unset.
    pub default: Option<u32>,
    /// How that number is known, if the user did not give it.
    pub default_known: Option<LastComparisonNote>,
    /// `n` makes the same threads as the default, so the two are not compared with each other.
    #[serde(default)]
    pub as_default: bool,
    /// The placement of `n`, if it has one.
    pub placed: Option<Assignment>,
    /// Where memory lies with this placement.
    #[serde(default, skip_serializing_if = "MemoryPolicy::is_leave")]
    pub memory: MemoryPolicy,
    /// The time of the comparison. It makes one round in any case.
    pub time: Duration,
    /// Windows of a measurement.
    pub windows: f64,
    /// Half-width at which a decided comparison ends early, as a share of the default. It is half
    /// of the tolerance. A quarter of the gain also suffices. `None`: use the whole time.
    #[serde(default)]
    pub precision: Option<f64>,
    /// The looks at which it may end, its time included. They share the error.
    #[serde(default = "one_look")]
    pub looks: usize,
    /// Gains are compared by ranks, and rounds with a starved window do not count. The value is the
    /// number of contexts. `None`: means are compared and all rounds count, as beside other
    /// programs. An earlier version always did that.
    #[serde(default)]
    pub ranked_on: Option<u32>,
    /// The windows of the comparison also show a load of others. If there is one, rounds that are
    /// alike in time count as fewer. An earlier version knew a load only from the search, and
    /// counted all rounds.
    #[serde(default)]
    pub own_load: bool,
    /// The program goes on running, so its load may change. Then the comparison ends. An earlier
    /// version went on.
    #[serde(default)]
    pub goes_on: bool,
    /// Numbers that could not be placed before.
    #[serde(default)]
    pub unplaced: Vec<UnplacedNumber>,
}

/// A number that could not be placed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnplacedNumber {
    /// n.
    pub parameter: u32,
    /// Why.
    #[serde(deserialize_with = "value_or_text")]
    pub reason: Unmeasured,
}

/// The looks of a stored question that does not give their number.
pub(crate) fn one_look() -> usize {
    1
}

/// The result of a last comparison.
#[derive(Clone, Debug)]
pub struct LastComparison {
    /// The comparison of the ways.
    pub rounds: ComparedRounds,
    /// The unit of performances.
    pub unit: Unit,
    /// The load of other programs in each window.
    pub loads: Vec<OtherLoad>,
    /// Windows that are missing, with why, each reason once.
    pub missing: Vec<(u64, String)>,
    /// Rounds that do not count, since others starved the program in one of their windows.
    pub starved: u64,
    /// Why it ended before its time, if it did.
    pub cut_short: Option<Unmeasured>,
}

/// What fresh windows show of two numbers, both unpinned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedNumbers {
    /// The numbers.
    pub pair: [u32; 2],
    /// The gain of the first over the second.
    pub gain: Gain,
    /// The number that is announced.
    pub announced: u32,
}

/// The result of one window of a comparison.
pub(crate) struct Seen {
    /// Higher is better.
    pub(crate) value: f64,
    /// The unit of the value.
    pub(crate) unit: Unit,
    /// The load of other programs during the window, if that is known.
    pub(crate) others: Option<OtherLoad>,
    /// The time that the window took on a model, whose records do not say that.
    pub(crate) modelled: Option<Duration>,
    /// The share of the contexts' time that the window lost to them, or an upper limit of it.
    /// `None` if it is not known.
    pub(crate) lost: Option<f64>,
    /// The program fell below the floor.
    pub(crate) below_floor: bool,
}

/// What the windows of a round show, by way.
type WindowsByWay = Vec<Option<f64>>;

/// Reads a measurement of whichever testbed made it. `None`: it is not one of that testbed.
pub(crate) type Read<'a> = &'a dyn Fn(&Measurement) -> Option<Seen>;

impl LastComparisonQuestion {
    /// The ways that are compared.
    pub(crate) fn ways(&self) -> Vec<Way> {
        let own = self.as_default || self.default == Some(self.n);
        let number = (!own).then_some(Way::Number);
        let placed = self.placed.as_ref().map(|_| Way::Placed);
        [Way::Default].into_iter().chain(number).chain(placed).collect()
    }

    /// The default, and how it is known.
    pub(crate) fn default_number(&self) -> DefaultNumber {
        DefaultNumber { n: self.default, known: self.default_known.clone() }
    }

    /// The number of a way; `None`: the program's own, which is not known.
    pub fn number(&self, way: Way) -> Option<u32> {
        if way == Way::Default { self.default } else { Some(self.n) }
    }

    /// The order of the ways in each round, one round after the other.
    fn orders(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let (ways, mut random) = (self.ways(), Random::new(SEED));
        std::iter::repeat_with(move || {
            let mut order: Vec<usize> = (0..ways.len()).collect();
            random.shuffle(&mut order);
            // Ways with the same number follow each other. So a program that goes on running starts
            // once for both.
            let first = self.number(ways[order[0]]);
            order.sort_by_key(|&way| self.number(ways[way]) != first);
            order
        })
    }

    /// The way that a record measured.
    fn way(&self, record: &Record) -> Option<usize> {
        let Setting::Threads(ThreadCount { n, placed, .. }) = &record.trial.setting else {
            return None;
        };
        self.ways().into_iter().position(|way| match way {
            Way::Placed => placed.is_some(),
            way => placed.is_none() && self.number(way) == *n,
        })
    }

    /// The windows of each round, by way. A round begins when a way comes again.
    fn rounds<'a>(&self, history: &'a [Record]) -> Vec<BTreeMap<usize, &'a Record>> {
        let mut rounds: Vec<BTreeMap<usize, &Record>> = Vec::new();
        for record in settled(history) {
            let Some(way) = self.way(record) else { continue };
            match rounds.last_mut().filter(|round| !round.contains_key(&way)) {
                Some(round) => {
                    round.insert(way, record);
                }
                None => rounds.push(BTreeMap::from([(way, record)])),
            }
        }
        rounds
    }

    /// The ways with which the program fell below the floor. They are not tried again.
    fn hurt(&self, rounds: &[BTreeMap<usize, &Record>], read: Read<'_>) -> BTreeSet<usize> {
        let hurts = |record: &Record| match &record.outcome {
            Ok(measured) => read(measured).is_some_and(|seen| seen.below_floor),
            Err(error) => error.below_floor,
        };
        let windows = rounds.iter().flatten();
        windows.filter(|(_, record)| hurts(record)).map(|(way, _)| *way).collect()
    }

    /// The ways that the last of these rounds lacks, without those that `hurt`.
    fn lacking(&self, last: &BTreeMap<usize, &Record>, hurt: &BTreeSet<usize>) -> Vec<usize> {
        let ways = 0..self.ways().len();
        ways.filter(|way| !hurt.contains(way) && !last.contains_key(way)).collect()
    }

    /// The comparison that these records show.
    pub(crate) fn comparison(
        &self,
        history: &[Record],
        read: Read<'_>,
        cut_short: Option<Unmeasured>,
    ) -> LastComparison {
        let ways = self.ways();
        let (mut unit, mut loads) = (None, Vec::new());
        let mut missing: Vec<(u64, String)> = Vec::new();
        let (mut made, mut lost): (Vec<WindowsByWay>, Vec<WindowsByWay>) = (Vec::new(), Vec::new());
        let mut windows = self.rounds(history);
        let hurt = self.hurt(&windows, read);
        if windows.last().is_some_and(|last| !self.lacking(last, &hurt).is_empty()) {
            windows.pop();
        }
        for windows in windows {
            let (mut round, mut lost_here) = (vec![None; ways.len()], vec![None; ways.len()]);
            for (way, record) in windows {
                match &record.outcome {
                    Ok(measured) => {
                        if let Some(seen) = read(measured) {
                            round[way] = Some(seen.value);
                            lost_here[way] = seen.lost;
                            unit.get_or_insert(seen.unit);
                            loads.extend(seen.others);
                        }
                    }
                    Err(error) => {
                        match missing.iter_mut().find(|(_, known)| *known == error.message) {
                            Some((windows, _)) => *windows += 1,
                            None => missing.push((1, error.message.clone())),
                        }
                    }
                }
            }
            made.push(round);
            lost.push(lost_here);
        }
        // A way below the floor has no windows any more.
        let left: Vec<usize> = (0..ways.len()).filter(|way| !hurt.contains(way)).collect();
        let change = if self.goes_on { load_change(&made, &lost, &left) } else { None };
        let jump = change.map(|LoadChange { way, times }| Unmeasured::Jumped {
            n: self.number(ways[way]).unwrap_or(self.n),
            times,
        });
        let busy = self.own_load && notable_share(&loads).is_some();
        let rule = match self.ranked_on {
            Some(_) if !busy => GainRule::Ranks,
            _ if self.own_load => GainRule::MeansBesideLoad,
            _ => GainRule::Means,
        };
        let rounds = ComparedRounds::new(ways.clone(), CONFIDENCE);
        // An earlier version decided by two rounds.
        let least = if self.own_load { ComparedRounds::FIRST_LOOK } else { 0 };
        let mut rounds = rounds.with_looks(self.looks).by(rule).with_least(least);
        let mut starving = 0;
        for (place, round) in made.into_iter().enumerate() {
            if rule == GainRule::Ranks && is_starved(&lost, place) {
                starving += 1;
            } else {
                rounds.take(round);
            }
        }
        let unit = unit.unwrap_or_else(|| Unit::rate("1/s"));
        let alone = ways.len() > 1 && ways.len() - hurt.len() < 2;
        let below_floor = hurt.last().filter(|_| alone).and_then(|&way| self.number(ways[way]));
        let below_floor = below_floor.map(|n| Unmeasured::BelowFloor { n });
        let cut_short = cut_short.or(below_floor).or(jump);
        LastComparison { rounds, unit, loads, missing, starved: starving, cut_short }
    }
}

impl LastComparison {
    /// The verdict ([`ComparedRounds::choice`]). After a jump nothing is decided.
    pub(crate) fn choice(&self, fewer: bool, within: f64) -> LastComparisonVerdict {
        match self.cut_short {
            Some(Unmeasured::Jumped { .. }) => LastComparisonVerdict::Undecided,
            _ => self.rounds.choice(fewer, within),
        }
    }

    /// What its windows show of the two numbers of `question`. `announced` is the one that is
    /// chosen. `None`: there are too few windows.
    pub(crate) fn numbers(
        &self,
        question: &LastComparisonQuestion,
        announced: u32,
    ) -> Option<ComparedNumbers> {
        let gain = self.rounds.gain(Way::Number, Way::Default)?;
        Some(ComparedNumbers { pair: [question.n, question.default?], gain, announced })
    }

    /// The mean of each way: the conclusion of its part.
    pub(crate) fn means(&self) -> Result<Value, serde_json::Error> {
        let ways = self.rounds.ways().iter();
        let means: Vec<_> = ways.map(|&way| (way, self.rounds.estimate(way))).collect();
        serde_json::to_value(means)
    }

    /// Notes on it: others kept the machine busy, it ended before its time, it had little time.
    /// An undecided `verdict` says itself that more time would decide it.
    pub fn notes(&self, verdict: LastComparisonVerdict) -> Vec<LastComparisonNote> {
        let rounds = self.rounds.count() as u64;
        let decided = verdict != LastComparisonVerdict::Undecided;
        let ended = match &self.cut_short {
            Some(reason) => Some(LastComparisonNote::CutShort { rounds, reason: reason.clone() }),
            // If only the default takes part, more rounds make no sense.
            None => (decided && rounds < GOOD_ROUNDS && self.rounds.ways().len() > 1)
                .then_some(LastComparisonNote::FewRounds { rounds }),
        };
        let missing = self.missing.iter().cloned();
        let missing =
            missing.map(|(windows, error)| LastComparisonNote::WindowsMissing { windows, error });
        let busy = self.others().map(|share| LastComparisonNote::ComparisonBusy { share });
        let starved = (self.starved > 0).then_some(LastComparisonNote::RoundsStarved {
            rounds: self.starved,
            of: rounds + self.starved,
        });
        busy.into_iter().chain(starved).chain(missing).chain(ended).collect()
    }

    /// Whether it ended before its time, and may go on.
    pub(crate) fn is_open(&self) -> bool {
        use Unmeasured::{BelowFloor, Jumped};
        !matches!(self.cut_short, None | Some(BelowFloor { .. } | Jumped { .. }))
    }

    /// Share of the contexts' time that others took meanwhile, if it is notable.
    pub fn others(&self) -> Option<f64> {
        notable_share(&self.loads)
    }
}

/// A last comparison, to be measured from where it is.
pub(crate) struct Comparing<'a> {
    /// The part of the campaign that has its records.
    pub(crate) part: &'a CampaignInfo,
    pub(crate) question: &'a LastComparisonQuestion,
    pub(crate) read: Read<'a>,
    /// A comparison that is cut short with fewer rounds has no answer.
    pub(crate) fewest: usize,
}

impl Comparing<'_> {
    /// The comparison, if it has ended. `None`: it has to be measured.
    pub(crate) fn ended(&self, store: &Store) -> Result<Option<LastComparison>, JobError> {
        if self.part.state != CampaignState::Finished {
            return Ok(None);
        }
        let records = store.records(self.part.id)?;
        Ok(Some(self.question.comparison(&records, self.read, None)))
    }

    /// Measures it to its end. Leaves its part open if it is cut short and has enough rounds.
    ///
    /// # Errors
    /// It was cut short with too few rounds; it cannot be measured or stored.
    pub(crate) fn measure(
        &self,
        testbed: &mut dyn Testbed,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<LastComparison, JobError> {
        let Self { part, question, read, fewest } = *self;
        events.take(Event::Comparison).map_err(JobError::Output)?;
        let mut strategy = LastComparisonSearch::new(question, read);
        let budget = Budget::Time(question.time);
        let measured = measure_on(store, part, budget, &mut strategy, testbed, caller, events)?;
        let cut_short = cut_short(&measured.ending);
        let comparison = question.comparison(&measured.records, read, cut_short);
        if comparison.is_open() && comparison.rounds.count() >= fewest {
            part_left_open(store, part.id)?;
        } else {
            let ends = EndContext { restored: true, ..EndContext::default() };
            let means = comparison.means()?;
            conclude(store, part.id, measured, ends, |_, _| means)?;
        }
        store.learn(part.id, &part.new.workload, &comparison.unit)?;
        Ok(comparison)
    }
}

/// Why a comparison ended before its time; `None`: it did not.
fn cut_short(ending: &Ending) -> Option<Unmeasured> {
    match ending {
        Ending::Finished => None,
        Ending::Interrupted => Some(Unmeasured::Interrupted),
        Ending::Failed(reason) => Some(Unmeasured::Failed { error: reason.clone() }),
    }
}

/// One window after the other, in rounds.
struct LastComparisonSearch<'a> {
    question: LastComparisonQuestion,
    read: Read<'a>,
    /// The round of the last proposed trial, and [`FORESEEN_ROUNDS`] after it.
    following: TrialRounds,
}

impl Strategy for LastComparisonSearch<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        let ways = self.question.ways();
        let mut rounds = self.question.rounds(history);
        let hurt = self.question.hurt(&rounds, self.read);
        let lacking = rounds.last().map(|last| self.question.lacking(last, &hurt));
        let lacking = lacking.filter(|lacking| !lacking.is_empty());
        if lacking.is_none() {
            if !hurt.is_empty() && ways.len() - hurt.len() < 2 {
                return Step::Stop;
            }
            let so_far = self.question.comparison(history, self.read, None);
            let ends = self.ends(&rounds);
            if self.is_enough(&so_far) || !is_time_for_another(ends, self.question.time) {
                return Step::Stop;
            }
            rounds.push(BTreeMap::new());
        }
        let lacking =
            lacking.unwrap_or_else(|| (0..ways.len()).filter(|way| !hurt.contains(way)).collect());
        let mut orders = self.question.orders().skip(rounds.len() - 1);
        let mut own = orders.next().unwrap_or_default();
        own.retain(|way| lacking.contains(way));
        let Some((&way, rest)) = own.split_first() else {
            return Step::Fail("nothing is compared".into());
        };
        let unhurt = |mut order: Vec<usize>| {
            order.retain(|way| !hurt.contains(way));
            order.into_iter().map(|way| self.trial(ways[way])).collect()
        };
        self.following = TrialRounds {
            continued: rounds.last().is_some_and(|round| !round.is_empty()),
            rest: rest.iter().map(|&way| self.trial(ways[way])).collect(),
            next: orders.take(FORESEEN_ROUNDS).map(unhurt).collect(),
        };
        Step::Measure(self.trial(ways[way]))
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        let TrialRounds { rest, next, .. } = &self.following;
        rest.iter().chain(next.iter().flatten()).take(most).cloned().collect()
    }

    fn rounds(&self, most: usize) -> Option<TrialRounds> {
        let mut rounds = self.following.clone();
        rounds.next.truncate(most);
        Some(rounds)
    }
}

impl<'a> LastComparisonSearch<'a> {
    fn new(question: &LastComparisonQuestion, read: Read<'a>) -> Self {
        Self { question: question.clone(), read, following: TrialRounds::default() }
    }
}

impl LastComparisonSearch<'_> {
    /// A window of a way.
    fn trial(&self, way: Way) -> Trial {
        let placed = self.question.placed.clone().filter(|_| way == Way::Placed).map(Placed::At);
        let memory = if placed.is_some() { self.question.memory } else { MemoryPolicy::Leave };
        let count = ThreadCount { n: self.question.number(way), placed, memory };
        Trial {
            setting: Setting::Threads(count),
            purpose: Purpose::Final,
            effort: Effort { windows: self.question.windows },
        }
    }

    /// Whether more rounds would show nothing new.
    fn is_enough(&self, so_far: &LastComparison) -> bool {
        let LastComparisonQuestion { n, default, precision, looks, own_load, .. } = self.question;
        let rounds = &so_far.rounds;
        let ways = rounds.ways();
        if ways.len() < 2 {
            return rounds.count() >= ALONE_ROUNDS;
        }
        let measured = ways.iter().filter(|&&way| rounds.estimate(way).is_some()).count();
        // Comparisons of earlier versions go on.
        let hopeless = looks == ComparedRounds::LOOKS
            && rounds.count() >= ComparedRounds::FIRST_LOOK
            && measured < 2;
        let fewer = default.is_some_and(|default| default > n);
        let jumped = matches!(so_far.cut_short, Some(Unmeasured::Jumped { .. }));
        // The rounds so far may all fall into one burst of others.
        let precision = precision.filter(|_| !(own_load && so_far.others().is_some()));
        let settled = precision.is_some_and(|precision| rounds.is_settled(fewer, precision));
        hopeless || jumped || settled
    }

    /// When each round ended, since the comparison began.
    fn ends(&self, rounds: &[BTreeMap<usize, &Record>]) -> impl Iterator<Item = Duration> {
        let mut modelled = Duration::ZERO;
        rounds.iter().map(move |round| {
            let windows = || round.values();
            let seen = windows().filter_map(|record| (self.read)(record.outcome.as_ref().ok()?));
            modelled += seen.filter_map(|seen| seen.modelled).sum::<Duration>();
            let measured = windows().map(|record| record.elapsed).max().unwrap_or_default();
            if modelled.is_zero() { measured } else { modelled }
        })
    }
}

/// Whether a window of this round is starved, compared with windows of the same way in all other
/// rounds. So a load that was there all the time starves no window, not even the first.
fn is_starved(lost: &[WindowsByWay], round: usize) -> bool {
    let mut windows = lost[round].iter().enumerate();
    windows.any(|(way, own)| {
        let rest = lost[..round].iter().chain(&lost[round + 1..]);
        let rest: Vec<f64> = rest.filter_map(|round| round[way]).collect();
        !rest.is_empty() && own.is_some_and(|own| starved(own, &rest).is_some())
    })
}

/// Whether another round fits into `time`. `ends` are the ends of the rounds so far. The next round
/// is assumed to take as long as the longest of them. The first round always fits.
fn is_time_for_another(ends: impl Iterator<Item = Duration>, time: Duration) -> bool {
    let (mut rounds, mut longest, mut spent) = (0_usize, Duration::ZERO, Duration::ZERO);
    for end in ends {
        (rounds, longest, spent) = (rounds + 1, longest.max(end.saturating_sub(spent)), end);
    }
    rounds == 0 || spent + longest <= time
}

#[cfg(test)]
mod tests;
