//! The job that compares strategies.
//!
//! Each search is a separate campaign, a part of the comparison. The comparison measures again what
//! they announce. It also measures naive and balanced assignments, and the program unpinned. These
//! measurements are its own records.

use crate::campaign_run::{as_parent_error, conclude, disturbances, measure};
use crate::error::JobError;
use crate::events::{Event, Events, note};
use crate::job::{Caller, Job};
use crate::open_subject::OpenSubject;
use crate::place::{PlaceRequest, search_stored};
use crate::placement_request::PlacementRequest;
use crate::prepare_placement::{
    PreparedSearch, ensure_choice, prepare_search, too_few, with_left_alone,
};
use crate::profiling_cost::{decide_core_local, experiment_time, profiling_outlook};
use crate::resume_check::reopen;
use crate::stored_campaign;
use crate::subject::Subject;
use pinwise_campaign::{
    CampaignId, CampaignInfo, CampaignState, Kind, NewCampaign, Parent, Purpose, Record, Store,
};
use pinwise_evt::Method;
use pinwise_measure::{ProgramNote, Time};
use pinwise_placement::{
    BoundClaim, Budget, ComparedWays, Comparison, ComparisonStrategy, Contender, LeftOut,
    LeftOutReason, Outcome, PlacementQuestion, PlacementSearch, StrategyName, WayResult,
};
use pinwise_present::{Files, Notice, Planned, Summary, Unfinished, notice};
use pinwise_topology::{Assignment, Random, SharingTree, Space, balanced};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How strategies compare: the question.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareRequest {
    /// The request from which every search is made.
    pub request: PlacementRequest,
    /// Whether the budget is the usual one: BlackBox on this machine then has a longer one.
    pub usual_budget: bool,
    /// How many naive (random) and how many balanced assignments are drawn, at least 2 each.
    pub draws: u64,
    /// Fresh windows of each that is compared, at least 5.
    pub rounds: u64,
}

impl CompareRequest {
    /// The usual [`Self::draws`].
    pub const DRAWS: u64 = 50;
    /// The usual [`Self::rounds`].
    pub const ROUNDS: u64 = 20;

    /// The comparison of searches that are made from `request`, which has its usual budget.
    pub fn new(request: PlacementRequest) -> Self {
        Self { request, usual_budget: true, draws: Self::DRAWS, rounds: Self::ROUNDS }
    }
}

/// A comparison as its campaign stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareQuestion {
    /// The request that every search was made from.
    #[serde(flatten, deserialize_with = "pinwise_measure::by_value")]
    pub request: PlacementRequest,
    /// The ways that are compared. Those of `searches` are added when they end.
    #[serde(rename = "lineup")]
    pub ways: ComparedWays,
    /// The time of the last comparison. `None`: as long as its rounds need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparing: Option<Duration>,
    /// The searches that take part. Empty if versions before this one compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<PlacementQuestion>,
}

/// The answer of `compare`: each way with its performance on fresh windows.
#[derive(Clone, Debug)]
pub struct CompareAnswer {
    /// The campaign.
    pub campaign: CampaignInfo,
    /// The question, with the result of every search.
    pub compared: CompareQuestion,
    /// The result.
    pub comparison: Comparison,
    /// Notes on what disturbed the measurements, those of the searches included.
    pub notes: Vec<ProgramNote>,
}

impl CompareAnswer {
    /// How far the comparison is; `None` if it has ended. Its searches come before.
    pub fn unfinished(&self, files: Files<'_>) -> Option<Unfinished> {
        let most = Planned::AtMost(ComparisonStrategy::measurements(&self.compared.ways));
        Unfinished::of(&self.campaign, self.campaign.records, most, "comparison window", files)
    }
}

/// A search that takes part.
struct ComparedSearch {
    name: &'static str,
    strategy: StrategyName,
    method: Method,
    /// First look at the bound, and from one to the next, if these are the published ones.
    looks: Option<(u64, u64)>,
}

/// How many assignments BlackBox measures by its predictions (blackbox-scheduler, section 5.2).
const TOP: usize = 5;

const WAYS: [ComparedSearch; 4] = [
    ComparedSearch {
        name: "BlackBox",
        strategy: StrategyName::Blackbox,
        method: Method::Bayes,
        looks: None,
    },
    // optimal-assignment-evt, section 5.3: N_init and N_delta of its case study.
    ComparedSearch {
        name: "random, iterative",
        strategy: StrategyName::Random,
        method: Method::Profile,
        looks: Some((1000, 100)),
    },
    ComparedSearch {
        name: "hill climbing",
        strategy: StrategyName::Climb,
        method: Method::Bayes,
        looks: None,
    },
    ComparedSearch {
        name: "default strategy",
        strategy: StrategyName::Auto,
        method: Method::Bayes,
        looks: None,
    },
];

impl ComparedSearch {
    fn of(question: &PlacementQuestion) -> Option<&'static Self> {
        WAYS.iter().find(|way| way.strategy == question.strategy)
    }
}

impl CompareRequest {
    /// The budget of all searches together, with the comparison of what they find.
    pub fn whole_budget(&self) -> Budget {
        // Commands and other real programs may have no profile.
        let simulated = matches!(self.request.subject, Subject::Simulated(_));
        let searches = WAYS.len() as u64 - u64::from(!simulated);
        let compared = self.rounds * (searches + 2 * self.draws + 1);
        match self.request.question.budget {
            Budget::Measurements(each) => Budget::Measurements(searches * each + compared),
            Budget::Time(each) => Budget::Time(each * (searches as u32 + 1)),
        }
    }
}

/// A comparison that is ready to measure: the question, the program, and notes on it.
pub struct PreparedComparison {
    compared: CompareQuestion,
    testbed: Box<dyn OpenSubject>,
    notes: Vec<Notice>,
}

impl Job for CompareRequest {
    const KIND: Kind = Kind::Compare;
    type Answer = CompareAnswer;
    type Prepared = PreparedComparison;

    fn prepare(
        self,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<(NewCampaign, PreparedComparison), JobError> {
        let begin = Instant::now();
        let prepared = prepare_search(self.request.clone(), None, begin, store, caller, events)?;
        with_left_alone(ensure_choice(&prepared), &*prepared.testbed, events)?;
        let PreparedSearch { request, testbed, new, search } = prepared;
        let few = too_few(&request, &*testbed, &search, begin.elapsed())?;
        let mut ways = chance(&self, &request.question, search.space());
        let mut searches = Vec::new();
        for way in &WAYS {
            let mut of_way = request.clone();
            let profiles_here = testbed.restart().is_some();
            if way.strategy == StrategyName::Blackbox && profiles_here && self.usual_budget {
                of_way.question.budget = request.subject.usual_budget(way.strategy);
            }
            of_way.question = question(way, &of_way);
            let mut profiling = Ok(None);
            if way.strategy == StrategyName::Blackbox {
                of_way.question.profile.top = Some(TOP);
                profiling = match experiment_time(&of_way, &*testbed) {
                    Ok(_) => {
                        let profile = &mut of_way.question.profile;
                        decide_core_local(profile, Some(store), &testbed.fingerprint(), events)?;
                        profiling_outlook(&mut of_way, &*testbed)
                    }
                    Err(error) => Err(error),
                };
            }
            let search = |outlook| {
                PlacementSearch::new(&of_way.question, search.space().tree(), &new.workload)
                    .map(|_| outlook)
            };
            match profiling.and_then(search) {
                Ok(outlook) => {
                    if let Some(outlook) = outlook {
                        note(events, Notice::Profiling(outlook))?;
                    }
                    searches.push(of_way.question);
                }
                // Too short a budget, say: the others are compared, and the remedy is reported.
                Err(error) => {
                    let reason = LeftOutReason::Refused { error };
                    ways.left_out.push(LeftOut { name: way.name.into(), reason });
                }
            }
        }
        let each = testbed.each(request.period);
        let comparing = match self.request.question.budget {
            Budget::Time(time) if !self.usual_budget && testbed.time() == Time::Real => Some(time),
            _ => None,
        };
        let compared = CompareQuestion { request, ways, comparing, searches };
        let real = (testbed.time() == Time::Real).then_some(each);
        let outlook = real.map(|each| outlook(&compared, each)).transpose()?.flatten();
        let question = serde_json::to_value(&compared)?;
        let notes =
            testbed.notes().into_iter().map(Notice::from).chain(few).chain(outlook).collect();
        Ok((
            NewCampaign { kind: Self::KIND, question, ..new },
            PreparedComparison { compared, testbed, notes },
        ))
    }

    fn reopen(
        info: &CampaignInfo,
        caller: &Caller,
        store: &Store,
        events: &mut dyn Events,
    ) -> Result<PreparedComparison, JobError> {
        let compared: CompareQuestion = stored_campaign::question(info)?;
        let mut testbed = reopen(info, &compared.request, caller, store, events)?;
        recall_searches(&mut *testbed, info, store)?;
        Ok(PreparedComparison { compared, testbed, notes: Vec::new() })
    }

    /// Makes the searches that are missing, then compares all ways on fresh windows.
    fn conduct(
        PreparedComparison { compared, mut testbed, notes: at_start }: PreparedComparison,
        info: &CampaignInfo,
        caller: &Caller,
        store: &mut Store,
        events: &mut dyn Events,
    ) -> Result<CompareAnswer, JobError> {
        for about in at_start {
            note(events, about)?;
        }
        let testbed = &mut *testbed;
        let of = compared.searches.len();
        for (index, question) in compared.searches.iter().enumerate() {
            let Some(way) = ComparedSearch::of(question) else { continue };
            let request =
                PlacementRequest { question: question.clone(), ..compared.request.clone() };
            let begins = Event::Search { number: index + 1, of, name: way.name };
            events.take(begins).map_err(JobError::Output)?;
            match searched(way, info, request, testbed, caller, store, events) {
                Ok(searched) => {
                    if let Some(unlooked) = unlooked(way, searched.drawn) {
                        note(events, unlooked)?;
                    }
                }
                Err(error) => return Err(as_parent_error(error, store, info.id)?),
            }
        }
        events.take(Event::Comparison).map_err(JobError::Output)?;
        let asked = compared.ways.clone();
        let compared = joined(compared, store, info)?;
        let ways = &compared.ways;
        let (rounds, draws) = (ways.rounds, ways.draws());
        if (rounds, draws) != (asked.rounds, asked.draws()) {
            note(events, Notice::FewerRounds { rounds, asked: asked.rounds, draws })?;
        }
        let mut strategy = ComparisonStrategy::new(ways);
        let expected = Budget::Measurements(ComparisonStrategy::measurements(ways));
        let measured = measure(store, info, expected, &mut strategy, testbed, caller, events)?;
        let comparison = conclude(store, info.id, measured, &*testbed, |records, _| {
            Comparison::new(ways, &info.new.unit, records)
        })?;
        let notes = notes(store, info, &compared)?;
        Ok(CompareAnswer { campaign: store.get(info.id)?, compared, comparison, notes })
    }

    fn answer(info: &CampaignInfo, _: &Caller, store: &Store) -> Result<CompareAnswer, JobError> {
        let compared = joined(stored_campaign::question(info)?, store, info)?;
        let records = store.records(info.id)?;
        let comparison = Comparison::new(&compared.ways, &info.new.unit, &records);
        let notes = notes(store, info, &compared)?;
        Ok(CompareAnswer { campaign: info.clone(), compared, comparison, notes })
    }

    fn summary(conclusion: &Value) -> Option<Summary> {
        let comparison = Comparison::deserialize(conclusion).ok()?;
        let best = comparison.best().filter(|_| comparison.contradiction().is_none());
        Some(Summary::Compare { best: best.map(|best| best.name.clone()) })
    }
}

/// How long the comparison takes, about, if its searches have budgets of time. `each`: what one
/// measurement takes.
///
/// # Errors
/// The limit of the last comparison has no room for its fewest rounds.
fn outlook(compared: &CompareQuestion, each: Duration) -> Result<Option<Notice>, JobError> {
    let time = |search: &PlacementQuestion| match search.budget {
        Budget::Time(time) => Some(time),
        Budget::Measurements(_) => None,
    };
    let Some(searching) = compared.searches.iter().map(time).sum::<Option<Duration>>() else {
        return Ok(None);
    };
    let announced = compared.announced();
    let rounds_take = |windows: u64| each.as_secs_f64() * windows as f64;
    let ways = match compared.comparing {
        Some(limit) => {
            let needed = rounds_take(compared.ways.fewest_windows(announced));
            if needed > limit.as_secs_f64() {
                let about = Notice::NoRoomToCompare { needed, each: each.as_secs_f64() };
                return Err(JobError::Usage(notice(&about)));
            }
            compared.ways.fitted(windows(limit, each), announced)
        }
        None => compared.ways.clone(),
    };
    Ok(Some(Notice::ComparisonTakes {
        searches: compared.searches.len(),
        searching: searching.as_secs_f64(),
        rounds: ways.rounds,
        comparing: rounds_take(ways.expected(announced)),
    }))
}

/// How many windows of `each` fit into `limit`.
fn windows(limit: Duration, each: Duration) -> u64 {
    (limit.as_secs_f64() / each.as_secs_f64().max(f64::MIN_POSITIVE)) as u64
}

impl CompareQuestion {
    /// How many assignments the searches announce: BlackBox two.
    fn announced(&self) -> usize {
        let blackbox = |search: &&PlacementQuestion| search.strategy == StrategyName::Blackbox;
        self.searches.len() + self.searches.iter().filter(blackbox).count()
    }
}

/// The ways that need no search: the unpinned program, and chance.
fn chance(asked: &CompareRequest, question: &PlacementQuestion, space: &Space) -> ComparedWays {
    let mut random = Random::new(question.seed);
    let drawn: Vec<Assignment> = (0..asked.draws).map(|_| space.sample(&mut random)).collect();
    let mut even = || {
        let balanced = balanced(space.tree(), space.threads(), &mut random);
        space.canonical(&space.nearest(&balanced))
    };
    let even = (0..asked.draws).map(|_| even()).collect();
    let contender = |name: &str, entry| Contender {
        name: name.into(),
        entry,
        spent: 0,
        campaign: None,
        claim: None,
    };
    ComparedWays {
        contenders: vec![
            contender("OS default", WayResult::Unpinned),
            contender("naive", WayResult::Drawn(drawn)),
            contender("balanced", WayResult::Drawn(even)),
        ],
        left_out: Vec::new(),
        rounds: asked.rounds as usize,
        confidence: question.confidence,
        within: question.within,
        seed: question.seed,
    }
}

/// The question of a search.
fn question(way: &ComparedSearch, request: &PlacementRequest) -> PlacementQuestion {
    let (start, step) =
        way.looks.map_or((request.question.start, None), |(start, step)| (start, Some(step)));
    PlacementQuestion {
        strategy: way.strategy,
        method: way.method,
        start,
        step,
        ..request.question.clone()
    }
}

/// Gives a testbed the measurements that searches made on the testbed before it.
fn recall_searches(
    testbed: &mut dyn OpenSubject,
    info: &CampaignInfo,
    store: &Store,
) -> Result<(), JobError> {
    for part in store.parts(info.id)? {
        testbed.recall(&store.records(part.id)?);
    }
    Ok(())
}

/// A search that was made.
struct SearchedPlacement {
    campaign: CampaignId,
    outcome: Outcome,
    /// Measurements that only profiled.
    profiled: u64,
    /// Random assignments that were measured.
    drawn: u64,
}

impl SearchedPlacement {
    fn new(campaign: CampaignId, outcome: Outcome, records: &[Record]) -> Self {
        let of = |purpose| records.iter().filter(move |record| record.trial.purpose == purpose);
        let profiled = of(Purpose::Profile).count() as u64;
        let drawn = of(Purpose::Sample).filter(|record| record.outcome.is_ok()).count() as u64;
        Self { campaign, outcome, profiled, drawn }
    }
}

/// One search as a part of the comparison. A search that has ended is read. An interrupted one goes
/// on.
fn searched(
    way: &ComparedSearch,
    info: &CampaignInfo,
    request: PlacementRequest,
    testbed: &mut dyn OpenSubject,
    caller: &Caller,
    store: &mut Store,
    events: &mut dyn Events,
) -> Result<SearchedPlacement, JobError> {
    let parent = Parent::new(info.id, &way.strategy);
    let part = match stored_campaign::part(store, &parent)? {
        Some(part) => part,
        None => {
            let id = store.create(&NewCampaign {
                kind: Kind::Place,
                parent: Some(parent),
                question: serde_json::to_value(&request)?,
                ..info.new.clone()
            })?;
            store.get(id)?
        }
    };
    let outcome = if part.state == CampaignState::Finished {
        PlaceRequest::answer(&part, &Caller::default(), store)?.outcome
    } else {
        let tree = SharingTree::new(&part.new.machine, part.new.alike);
        let search = PlacementSearch::new(&request.question, &tree, &part.new.workload)?;
        search_stored(store, &part, &request.question, search, testbed, caller, events)?
    };
    Ok(SearchedPlacement::new(part.id, outcome, &store.records(part.id)?))
}

/// The notice that a search ended before its first look at the bound, if it did.
fn unlooked(way: &ComparedSearch, drawn: u64) -> Option<Notice> {
    let (first, _) = way.looks?;
    let name = way.name.to_owned();
    (drawn < first).then_some(Notice::BoundNotReached { name, first, drawn })
}

/// The comparison with the results of its searches, as far as they have ended.
fn joined(
    mut compared: CompareQuestion,
    store: &Store,
    info: &CampaignInfo,
) -> Result<CompareQuestion, JobError> {
    if compared.searches.is_empty() {
        return Ok(compared);
    }
    let (mut ended, mut spent, mut made) = (0, Duration::ZERO, 0);
    for part in store.parts(info.id)? {
        let strategy = part.new.parent.as_ref().and_then(Parent::step::<StrategyName>);
        let way = WAYS.iter().find(|way| Some(way.strategy) == strategy);
        let Some(way) = way.filter(|_| part.state == CampaignState::Finished) else { continue };
        let outcome = PlaceRequest::answer(&part, &Caller::default(), store)?.outcome;
        let records = store.records(part.id)?;
        ended += 1;
        spent += records.last().map_or(Duration::ZERO, |record| record.elapsed);
        made += records.len() as u32;
        let searched = SearchedPlacement::new(part.id, outcome, &records);
        enter(&mut compared.ways, way, &searched);
    }
    // A window takes as long now as in the searches. Records decide that: resumed, the comparison
    // makes the same rounds.
    if let Some(limit) = compared.comparing
        && ended == compared.searches.len()
        && let Some(each) = spent.checked_div(made)
    {
        let announced = compared.ways.announced().count();
        compared.ways = compared.ways.fitted(windows(limit, each), announced);
    }
    Ok(compared)
}

/// Adds the result of a search.
fn enter(ways: &mut ComparedWays, way: &ComparedSearch, searched: &SearchedPlacement) {
    let SearchedPlacement { campaign, outcome, profiled, .. } = searched;
    let contender = |name: String, assignment: &Assignment, spent, claim| Contender {
        name,
        entry: WayResult::Announced(assignment.clone()),
        spent,
        campaign: Some(*campaign),
        claim,
    };
    let mut name = way.name.to_owned();
    if let Some(forecast) = &outcome.forecast {
        // Without the selection phase nothing is measured but the profile (blackbox-scheduler,
        // figure 7).
        if let Some(first) = forecast.finalists.first() {
            ways.contenders.push(contender(
                format!("{name}, top 1"),
                &first.assignment,
                *profiled,
                None,
            ));
        }
        name = format!("{name}, top {TOP}");
    }
    let Some(best) = &outcome.best else {
        let stopped_because = outcome.stopped_because.clone();
        let reason = LeftOutReason::NothingAnnounced { stopped_because };
        ways.left_out.push(LeftOut { name, reason });
        return;
    };
    let bound = &outcome.bound;
    // The published algorithm claims by its point estimate, the others by the upper end.
    let claim = match way.method {
        Method::Profile => bound.upb.zip(bound.gap),
        Method::Bayes => bound.upb_high.zip(bound.gap_high),
    };
    let claim = claim.map(|(bound, gap)| BoundClaim {
        bound,
        gap,
        estimated: way.method == Method::Profile,
    });
    ways.contenders.push(contender(name, &best.assignment, outcome.cost.measurements, claim));
}

/// Notes on what disturbed the comparison's own measurements and those of its searches.
fn notes(
    store: &Store,
    info: &CampaignInfo,
    compared: &CompareQuestion,
) -> Result<Vec<ProgramNote>, JobError> {
    let searches: BTreeSet<CampaignId> =
        compared.ways.contenders.iter().filter_map(|way| way.campaign).collect();
    Ok(disturbances(store, searches.into_iter().chain([info.id]))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Failure, Remedy};
    use crate::events::{Listening, Silent, stopping_at};
    use crate::job::run;
    use crate::open_subject::open;
    use crate::placement_request::simulated;
    use crate::simulation::SimulatedProcessor;
    use crate::subject::Subject;
    use pinwise_measure::{
        Effort, MeasureError, Measurement, Retry, Setting, Testbed, Unit, Workload,
    };
    use pinwise_topology::{Fingerprint, Machine};

    /// Counts the unpinned windows that it recalls. After some windows its metric turns out to be a
    /// total.
    struct Odd {
        testbed: Box<dyn OpenSubject>,
        recalled: usize,
        left: usize,
    }

    impl Testbed for Odd {
        fn machine(&self) -> &Machine {
            self.testbed.machine()
        }
        fn workload(&self) -> &Workload {
            self.testbed.workload()
        }
        fn unit(&self) -> &Unit {
            self.testbed.unit()
        }
        fn measure(&mut self, at: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
            let total = || MeasureError::new(Retry::Never, "a total");
            self.left = self.left.checked_sub(1).ok_or_else(total)?;
            self.testbed.measure(at, effort)
        }
    }

    impl OpenSubject for Odd {
        fn measures_a_total(&self) -> bool {
            self.left == 0
        }

        fn recall(&mut self, records: &[Record]) {
            let unpinned = records.iter().filter(|it| it.trial.setting == Setting::Unpinned);
            self.recalled += unpinned.count();
        }
    }

    #[test]
    fn a_comparison_that_goes_on_recalls_the_unpinned_windows_of_its_searches() {
        let (_folder, mut store) = stored_campaign::empty_store();
        let caller = Caller::default();
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(60));
        let testbed = open(&request, &caller).unwrap();
        let asked = CompareRequest { request, usual_budget: false, draws: 2, rounds: 5 };
        let mut events =
            stopping_at(&caller.interrupt, 30, |event| matches!(event, Event::Measured(_)));
        run(asked, &caller, &mut store, &mut events).unwrap_err();
        let whole = store.list().unwrap().campaigns.remove(0);
        let mut odd = Odd { testbed, recalled: 0, left: 0 };
        recall_searches(&mut odd, &whole, &store).unwrap();
        assert!(odd.recalled > 0);
    }

    /// It is no matter for a comparison without a search that profiles.
    #[test]
    fn a_damaged_characterization_is_noted_where_a_search_uses_it() {
        let (_folder, mut store) = stored_campaign::empty_store();
        let caller = Caller::default();
        let told = |store: &Store, instances| {
            let mut request =
                simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(60));
            if let Subject::Simulated(simulation) = &mut request.subject {
                simulation.instances = instances;
            }
            let asked = CompareRequest { request, usual_budget: false, draws: 2, rounds: 5 };
            let mut told = false;
            let mut events = Listening(|event: Event<'_>| {
                told |= matches!(event, Event::Note(Notice::Uncharacterized { .. }));
                Ok(())
            });
            asked.prepare(&caller, store, &mut events).unwrap();
            told
        };
        let processor = SimulatedProcessor::built_in("ultrasparc-t2").processor().unwrap();
        let fingerprint = Fingerprint::of(&processor.machine());
        store.add_about_machine(&fingerprint, "characterization", "{".into()).unwrap();
        assert_eq!((told(&store, 1), told(&store, 2)), (false, true));
    }

    #[test]
    fn a_metric_that_was_a_total_is_asked_again_as_one() {
        let (_folder, mut store) = stored_campaign::empty_store();
        let caller = Caller::default();
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(60));
        let asked = CompareRequest { request, usual_budget: false, draws: 2, rounds: 5 };
        // In the first search, and in the comparison.
        for (left, in_search) in [(5, true), (3 * 60 + 5, false)] {
            let (new, mut ready) = asked.clone().prepare(&caller, &store, &mut Silent).unwrap();
            ready.testbed = Box::new(Odd { testbed: ready.testbed, recalled: 0, left });
            let id = store.create(&new).unwrap();
            let info = store.get(id).unwrap();
            let error = CompareRequest::conduct(ready, &info, &caller, &mut store, &mut Silent)
                .unwrap_err();
            let JobError::Failed(Failure { kept: Some(kept), remedy, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!((kept.campaign, kept.records), (id, left as u64));
            assert_eq!(
                (remedy, store.get(id).unwrap().records == 0),
                (Remedy::AsCounter, in_search)
            );
        }
    }

    #[test]
    fn a_budget_without_room_for_the_fewest_rounds_is_refused_with_the_one_that_is_needed() {
        let (_folder, store) = stored_campaign::empty_store();
        let request =
            simulated(SimulatedProcessor::built_in("ultrasparc-t2"), Budget::Measurements(60));
        let asked = CompareRequest { request, usual_budget: false, draws: 10, rounds: 20 };
        let (_, ready) = asked.prepare(&Caller::default(), &store, &mut Silent).unwrap();
        let (mut compared, each) = (ready.compared, Duration::from_secs(1));
        assert_eq!(outlook(&compared, each).unwrap(), None);
        for search in &mut compared.searches {
            search.budget = Budget::Time(Duration::from_secs(5));
        }
        let rounds = |limit: u64| {
            let compared =
                CompareQuestion { comparing: Some(Duration::from_secs(limit)), ..compared.clone() };
            outlook(&compared, each).map(|told| match told {
                Some(Notice::ComparisonTakes { rounds, comparing, .. }) => (rounds, comparing),
                told => panic!("{told:?}"),
            })
        };
        let needed = compared.ways.fewest_windows(compared.announced());
        let refused = rounds(needed - 1).unwrap_err().to_string();
        let advised = refused.rsplit_once("use --budget ").unwrap().1;
        let advised: u64 = advised.strip_suffix('m').unwrap().parse().unwrap();
        assert!(60 * advised > needed, "{refused}, the next estimate may be above {needed} s");
        assert_eq!(rounds(needed).unwrap(), (ComparedWays::FEWEST_ROUNDS, needed as f64));
        let (rounds, comparing) = rounds(2 * needed).unwrap();
        assert!((6..20).contains(&rounds) && comparing <= 2.0 * needed as f64, "{rounds}");
    }
}
