use super::*;
use crate::error::Interruption;
use crate::events::{Silent, stopping_at};
use crate::job::{resume_job, run};
use crate::stored_campaign::empty_store as store;
use pinwise_campaign::{CampaignId, Parent};
use pinwise_measure::Probe;
use pinwise_placement::{Gain, TunePart, Way};
use pinwise_scheduler::{ModelProgram, OtherPrograms};

fn request(method: ThreadsMethod) -> ThreadsRequest {
    let model = Machine::model("opteron-24").unwrap();
    let program = ModelledProgram {
        machine: "opteron-24".into(),
        model,
        program: "facesim".into(),
        seed: 1,
        description: None,
        others: Vec::new(),
    };
    ThreadsRequest {
        method,
        min: Some(8),
        max: Some(24),
        step: Some(8),
        rounds: Some(1).filter(|_| method == ThreadsMethod::Sweep),
        probe: Duration::from_millis(20),
        ..ThreadsRequest::new(ThreadsProgram::Modelled(program))
    }
}

#[test]
fn a_stored_range_is_still_called_a_span() {
    let (question, _) = ThreadsQuestion::of(request(ThreadsMethod::Sweep)).unwrap();
    assert_eq!(serde_json::to_value(question).unwrap()["span"]["max"], 24);
}

#[test]
fn a_search_that_was_interrupted_ends_as_it_would_have() {
    for method in [ThreadsMethod::Sweep, ThreadsMethod::Reinforcer] {
        let (_folder, mut store) = store();
        let whole = run(request(method), &Caller::default(), &mut store, &mut Silent).unwrap();
        assert_eq!(whole.campaign.state, CampaignState::Finished);
        assert_eq!(whole.campaign.new.unit, Unit::rate("s/s"), "as the records count");
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, 2, |event| matches!(event, Event::Measured(_)));
        let error = run(request(method), &caller, &mut store, &mut events).unwrap_err();
        let JobError::Interrupted(Interruption { kept: Some(kept), .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(kept.records, 2);
        let info = store.get(kept.campaign).unwrap();
        let open = ThreadsRequest::answer(&info, &caller, &store).unwrap().outcome;
        assert_eq!((open.found, open.probes.len()), (Err(None), 2));
        let caller = Caller::default();
        let resumed =
            resume_job::<ThreadsRequest>(&info, &caller, &mut store, &mut Silent).unwrap();
        assert_eq!(resumed.outcome, whole.outcome, "{method:?}");
        // The stored campaign gives the same answer.
        let again = ThreadsRequest::answer(&resumed.campaign, &caller, &store).unwrap();
        assert_eq!(again.outcome, whole.outcome, "{method:?}");
        assert!(whole.outcome.notes.contains(&ThreadsNote::Simulated));
    }
}

#[test]
fn a_described_program_meets_the_same_load_when_its_search_is_resumed() {
    let (_folder, mut store) = store();
    let mut described = request(ThreadsMethod::Sweep);
    let ThreadsProgram::Modelled(program) = &mut described.program else { panic!() };
    let plain = serde_json::to_value(&*program).unwrap();
    assert!(plain.get("description").is_none() && plain.get("others").is_none());
    program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
    program.others = vec![OtherPrograms { threads: 24, burst_s: 0.5, pause_s: 0.5 }];
    program.program = "described".into();
    described.budget = Some(Duration::from_secs(2));
    let whole = run(described.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
    let values = |answer: &ThreadsAnswer| {
        let shown = answer.confirmation.as_ref().unwrap();
        (shown.comparison.rounds.count(), shown.comparison.rounds.gain(Way::Number, Way::Default))
    };
    // Three probes, and then one of the fresh windows.
    let caller = Caller::default();
    let mut events = stopping_at(&caller.interrupt, 4, |event| matches!(event, Event::Measured(_)));
    let cut = run(described, &caller, &mut store, &mut events).unwrap();
    let (caller, info) = (Caller::default(), cut.campaign);
    let resumed = resume_job::<ThreadsRequest>(&info, &caller, &mut store, &mut Silent);
    assert_eq!(values(&resumed.unwrap()), values(&whole));
}

#[test]
fn beside_others_a_comparison_uses_its_time_and_all_rounds() {
    let compared = |others: Vec<OtherPrograms>| {
        let (_folder, mut store) = store();
        let mut asked = request(ThreadsMethod::Sweep);
        let ThreadsProgram::Modelled(program) = &mut asked.program else { panic!() };
        program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
        (program.others, asked.budget) = (others, Some(Duration::from_secs(2)));
        let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
        let compared = answer.confirmation.unwrap().compared;
        (compared.ranked_on, compared.precision)
    };
    assert_eq!(compared(Vec::new()), (Some(24), Some(0.005)));
    let bursts = OtherPrograms { threads: 24, burst_s: 5.0, pause_s: 5.0 };
    assert_eq!(compared(vec![bursts]), (None, None));
}

#[test]
fn runs_of_a_fixed_time_are_compared_with_nothing() {
    let (_folder, mut store) = store();
    let caller = Caller::default();
    let (question, machine) = ThreadsQuestion::of(request(ThreadsMethod::Sweep)).unwrap();
    let asked = serde_json::to_value(&question).unwrap();
    let new = question.campaign(Kind::Threads, machine.clone(), asked, &caller);
    let id = store.create(&new).unwrap();
    let mut journal = store.journal(id).unwrap();
    let searched =
        search_threads(&question, &machine, None, &mut journal, &caller.interrupt, &mut Silent);
    drop(journal);
    let Searched { mut outcome, mut program, .. } = searched.unwrap();
    outcome.notes.push(ThreadsNote::FixedTime { seconds: 1.0, more_work: true });
    let found = outcome.found.clone().unwrap();
    let info = &store.get(id).unwrap();
    let confirming = Confirming { info, question: &question, outcome: &outcome, found: &found };
    let confirmed = confirm(&confirming, &mut program, &caller, &mut store, &mut Silent);
    let Confirmed { shown, uncompared, .. } = confirmed.unwrap();
    assert!(shown.is_none() && uncompared);
    outcome.uncompared = uncompared;
    let told = outcome.answer(&found, None, None).text();
    assert!(told.starts_with("Undecided: every run took 1.00 s whatever n."), "{told}");
}

#[test]
fn what_is_announced_is_what_fresh_windows_show_and_they_are_resumed() {
    let (_folder, mut store) = store();
    let sweep = request(ThreadsMethod::Sweep);
    let whole = run(sweep.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
    let shown = whole.confirmation.unwrap();
    // In the model, 16 threads are a third faster than 24, the contexts.
    assert_eq!((shown.compared.n, shown.compared.default), (16, Some(24)));
    assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Number, 16));
    let gain = shown.comparison.rounds.gain_of(shown.choice).unwrap();
    assert!(0.2 < gain.low && gain.high < 0.6, "{gain:?}");
    let summary = crate::summary(&whole.campaign);
    let (n, choice, gain) = (16, Some(shown.choice), Some(gain));
    assert_eq!(summary, Some(Summary::Threads { n, verdict: choice, gain }));
    // Three probes, and then one of the fresh windows.
    let caller = Caller::default();
    let mut events = stopping_at(&caller.interrupt, 4, |event| matches!(event, Event::Measured(_)));
    let cut = run(sweep, &caller, &mut store, &mut events).unwrap();
    assert!(cut.interrupted && cut.campaign.state == CampaignState::Stopped);
    let cut_short = cut.confirmation.unwrap();
    assert_eq!((cut_short.choice, cut_short.announced()), (LastComparisonVerdict::Undecided, 24));
    let caller = Caller::default();
    let resumed =
        resume_job::<ThreadsRequest>(&cut.campaign, &caller, &mut store, &mut Silent).unwrap();
    let same = |answer: &ThreadsAnswer| {
        let resumed = answer.confirmation.as_ref().unwrap();
        let gains = [&shown, resumed].map(|one| one.comparison.rounds.gain_of(one.choice));
        assert_eq!((resumed.choice, gains[0]), (shown.choice, gains[1]));
    };
    same(&resumed);
    assert_eq!(resumed.campaign.state, CampaignState::Finished);
    same(&ThreadsRequest::answer(&resumed.campaign, &caller, &store).unwrap());
}

#[test]
fn the_default_itself_is_compared_with_the_next_best() {
    let (_folder, mut store) = store();
    let asked = ThreadsRequest { default: Some(16), ..request(ThreadsMethod::Sweep) };
    let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
    let shown = answer.confirmation.unwrap();
    assert_eq!((shown.compared.n, shown.compared.default), (8, Some(16)));
    assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Default, 16));
    // The published search compares no speeds.
    let asked = request(ThreadsMethod::Reinforcer);
    let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
    assert!(answer.confirmation.is_none());
    let told = answer.outcome.answer(answer.outcome.found.as_ref().unwrap(), None, None).text();
    assert!(told.starts_with("By the probes, not confirmed: n = "), "{told}");
}

#[test]
fn a_number_that_was_compared_with_none_is_undecided_everywhere() {
    let (_folder, mut store) = store();
    // The first probe is of the default, and there is no time for another.
    let budget = Some(Duration::from_millis(21));
    let (min, max) = (Some(24), Some(32));
    let one = ThreadsRequest { min, max, budget, ..request(ThreadsMethod::Survey) };
    let answer = run(one.clone(), &Caller::default(), &mut store, &mut Silent).unwrap();
    let again = ThreadsRequest::answer(&answer.campaign, &Caller::default(), &store).unwrap();
    assert_eq!(answer.outcome, again.outcome);
    let choice = Some(LastComparisonVerdict::Undecided);
    let summary = Some(Summary::Threads { n: 24, verdict: choice, gain: None });
    assert_eq!(crate::summary(&answer.campaign), summary);
    for outcome in [&answer.outcome, &again.outcome] {
        assert!(outcome.uncompared);
        let told = outcome.answer(outcome.found.as_ref().unwrap(), None, None).text();
        assert!(told.starts_with("Undecided: n = 24 was the only number probed"), "{told}");
    }
    // There is no other number.
    let only = ThreadsRequest { max: min, ..one };
    let answer = run(only, &Caller::default(), &mut store, &mut Silent).unwrap();
    assert!(!answer.outcome.uncompared && answer.confirmation.is_none());
    let summary = Some(Summary::Threads { n: 24, verdict: None, gain: None });
    assert_eq!(crate::summary(&answer.campaign), summary);
}

#[test]
fn the_only_number_that_was_probed_is_compared_with_another_one_in_the_time_left() {
    let (_folder, mut store) = store();
    let (min, max) = (Some(24), Some(32));
    let mut asked = ThreadsRequest { min, max, ..request(ThreadsMethod::Survey) };
    let ThreadsProgram::Modelled(program) = &mut asked.program else { panic!() };
    program.description = Some(Box::new(ModelProgram::built_in("facesim").unwrap()));
    // Its share is too short for another probe of the search.
    asked.budget = Some(Duration::from_millis(900));
    asked.probe = Duration::from_millis(20);
    let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
    assert_eq!(answer.outcome.probes.len(), 1, "{:?}", answer.outcome.probes);
    let shown = answer.confirmation.unwrap();
    assert_eq!((shown.compared.n, shown.compared.default), (32, Some(24)));
    assert!(shown.comparison.rounds.count() > 0);
}

#[test]
fn the_default_is_compared_even_where_the_search_may_not_reach_it() {
    let (_folder, mut store) = store();
    let asked = ThreadsRequest { max: Some(16), ..request(ThreadsMethod::Sweep) };
    let answer = run(asked, &Caller::default(), &mut store, &mut Silent).unwrap();
    let shown = answer.confirmation.unwrap();
    assert_eq!((shown.compared.n, shown.compared.default), (16, Some(24)));
    assert_eq!(shown.choice, LastComparisonVerdict::Number);
}

#[test]
fn nothing_is_announced_before_the_first_fresh_window() {
    let (_folder, mut store) = store();
    let caller = Caller::default();
    let mut events = stopping_at(&caller.interrupt, 1, |event| matches!(event, Event::Comparison));
    let sweep = request(ThreadsMethod::Sweep);
    let cut = run(sweep, &caller, &mut store, &mut events).unwrap();
    assert_eq!(cut.campaign.state, CampaignState::Stopped);
    let stored = ThreadsRequest::answer(&cut.campaign, &caller, &store).unwrap();
    for answer in [cut, stored] {
        let shown = answer.confirmation.unwrap();
        assert_eq!((shown.choice, shown.announced()), (LastComparisonVerdict::Undecided, 24));
        assert_eq!(shown.comparison.rounds.count(), 0);
        let text = shown.verdict().text();
        assert!(text.ends_with("To decide it, resume the search."), "{text}");
        let conclusion = answer.campaign.conclusion.unwrap();
        let conclusion = ThreadsConclusion::deserialize(conclusion).unwrap();
        assert_eq!(conclusion.parameter, 24);
        assert_eq!(conclusion.threads, answer.outcome.question.threads_with(24).unwrap());
    }
}

/// Parameters and rates relative to the first one, in millionths.
fn relative(probes: impl Iterator<Item = Probe>) -> Vec<(u32, i64)> {
    let probes: Vec<(u32, f64)> =
        probes.map(|probe| (probe.parameter, probe.progress.rate)).collect();
    let relative = |rate: f64| (1e6 * rate / probes[0].1).round() as i64;
    probes.iter().map(|&(n, rate)| (n, relative(rate))).collect()
}

/// What the windows of a campaign show, without a search.
fn measured(store: &Store, campaign: CampaignId) -> Vec<(u32, i64)> {
    let records = store.records(campaign).unwrap();
    relative(
        records.iter().map(|record| Probed::of(record.outcome.as_ref().unwrap()).unwrap().probe),
    )
}

#[test]
fn an_answer_is_what_the_records_of_its_campaign_show() {
    let (_folder, mut store) = store();
    let model = request(ThreadsMethod::Sweep);
    let published = request(ThreadsMethod::Reinforcer);
    for (request, cut) in [(model.clone(), usize::MAX), (published, usize::MAX), (model, 4)] {
        let caller = Caller::default();
        let mut events =
            stopping_at(&caller.interrupt, cut, |event| matches!(event, Event::Measured(_)));
        let ran = run(request, &caller, &mut store, &mut events).unwrap();
        let info = store.get(ran.campaign.id).unwrap();
        let read = ThreadsRequest::answer(&info, &caller, &store).unwrap();
        let rates = measured(&store, info.id);
        let shown = ran.outcome.probes.iter().map(|shown| shown.probe);
        assert_eq!(relative(shown), rates);
        let conclusion = stored_campaign::conclusion::<ThreadsConclusion>(&info).unwrap().unwrap();
        assert_eq!(Some(conclusion.parameter), ran.number());
        let found = ran.outcome.found.as_ref().unwrap().parameter;
        if ran.outcome.question.request.method == ThreadsMethod::Sweep {
            assert_eq!(Some(found), rates.iter().max_by_key(|(_, rate)| rate).map(|one| one.0));
        }
        let parent = Parent::new(info.id, &TunePart::LastComparison);
        let part = stored_campaign::part(&store, &parent).unwrap();
        assert_eq!(part.is_some(), ran.confirmation.is_some());
        if let Some((part, shown)) = part.zip(ran.confirmation.as_ref()) {
            let fresh = measured(&store, part.id);
            let of = |n| fresh.iter().filter(move |one| one.0 == n).map(|one| one.1 as f64);
            let (n, default) = (shown.compared.n, shown.compared.default.unwrap());
            let rounds = of(n).count().min(of(default).count());
            assert_eq!(shown.comparison.rounds.count(), rounds);
            let gain = shown.comparison.rounds.gain(Way::Number, Way::Default);
            if let Some(Gain { low, high, .. }) = gain {
                let ratio = of(n).take(rounds).sum::<f64>() / of(default).take(rounds).sum::<f64>();
                assert!((1.0 + low..=1.0 + high).contains(&ratio), "{ratio}, {low} to {high}");
            }
        }
        let cut = cut == 4;
        assert_eq!((ran.interrupted, read.interrupted), (cut, false));
        assert_eq!(ran.outcome.is_unfinished, cut);
        assert_eq!(info.state == CampaignState::Stopped, cut);
        if cut {
            // One that was killed had no time to store its answer. Its comparison had begun.
            let killed =
                CampaignInfo { state: CampaignState::Open, conclusion: None, ..info.clone() };
            let read = ThreadsRequest::answer(&killed, &caller, &store).unwrap().outcome;
            assert_eq!((read.uncompared, read.is_unfinished), (false, true));
        }
    }
}

#[test]
fn a_question_without_sense_makes_no_campaign() {
    let (folder, mut store) = store();
    let refused = |request: ThreadsRequest, store: &mut Store| {
        run(request, &Caller::default(), store, &mut Silent).unwrap_err().to_string()
    };
    let sweep = request(ThreadsMethod::Sweep);
    let error = refused(ThreadsRequest { min: Some(30), ..sweep.clone() }, &mut store);
    assert!(error.contains("--min 30 is above --max 24: swap them"), "{error}");
    let thresholds = Some(pinwise_threads::Thresholds::OPTERON_24);
    let error = refused(ThreadsRequest { thresholds, ..sweep.clone() }, &mut store);
    assert!(error.contains("--thresholds is for the published search"), "{error}");
    let error = refused(ThreadsRequest { pieces: Some(3), ..sweep }, &mut store);
    assert!(error.contains("--pieces is for a survey"), "{error}");
    let floor = |floor, set: &str, metric: Option<&str>| {
        let (set, metric) = (set.parse().ok(), metric.map(str::to_owned));
        let pid = Some(std::process::id() as i32);
        let program =
            HostProgram { floor: Some(floor), set, pid, metric, ..HostProgram::default() };
        ThreadsRequest::new(ThreadsProgram::Here(program))
    };
    let of_sweep = ThreadsRequest {
        method: ThreadsMethod::Sweep,
        ..floor(0.5, "cmd:true {n}", Some("io:wchar"))
    };
    let own = pinwise_linux::process::allowed(Pid(std::process::id() as i32)).unwrap();
    let more = own.len() as u32 + 1;
    let granted = |set: &str| {
        let (set, pid) = (set.parse().ok(), Some(std::process::id() as i32));
        let program = ThreadsProgram::Here(HostProgram { set, pid, ..HostProgram::default() });
        ThreadsRequest { max: Some(more), ..ThreadsRequest::new(program) }
    };
    let error = refused(granted("cpuset:"), &mut store);
    let told = format!("n = {more} needs {more} CPUs, and --set has {} CPU", more - 1);
    assert!(error.starts_with(&told), "{error}");
    assert!(error.ends_with(&format!("use --max {}", more - 1)), "{error}");
    std::fs::write(folder.path().join("cpu.max"), "max 100000").unwrap();
    let quota = format!("quota:{}", folder.path().display());
    assert!(ThreadsQuestion::of(granted(&quota)).is_ok(), "a quota may be any");
    for (floor, told) in [
        (of_sweep, "leave out --floor or --method"),
        (floor(0.5, "cmd:true {n}", None), "add --set and --metric"),
        (floor(0.5, "", Some("io:wchar")), "add --set and --metric"),
        (floor(0.0, "cmd:true {n}", Some("io:wchar")), "--floor 0 is no share"),
        (floor(f64::NAN, "cmd:true {n}", Some("io:wchar")), "--floor NaN is no share"),
        (floor(1.5, "cmd:true {n}", Some("io:wchar")), "up to 100 %"),
    ] {
        let error = refused(floor, &mut store);
        assert!(error.contains(told), "{error}");
    }
    assert!(store.list().unwrap().campaigns.is_empty());
}

#[test]
fn a_question_is_read_back_as_it_was() {
    let deadline = Some(Duration::from_secs(90));
    let asked = ThreadsRequest { deadline, ..request(ThreadsMethod::Survey) };
    let (question, _) = ThreadsQuestion::of(asked).unwrap();
    let stored = serde_json::to_string(&question).unwrap();
    let runs = ThreadsQuestion {
        request: ThreadsRequest { per_run: true, ..question.request.clone() },
        ..question.clone()
    };
    let earlier = serde_json::to_string(&runs).unwrap().replace("per_run", "whole_run");
    assert_eq!(serde_json::from_str::<ThreadsQuestion>(&earlier).unwrap(), runs);
    assert_eq!(serde_json::from_str::<ThreadsQuestion>(&stored).unwrap(), question);
    let program = HostProgram {
        command: vec!["pigz".into(), "{n}".into()],
        set: Some("cpuset:".parse().unwrap()),
        pid: Some(7),
        threads_per_n: Some("2+4n".parse().unwrap()),
        ..HostProgram::default()
    };
    let stored = serde_json::to_string(&program).unwrap();
    assert_eq!(serde_json::from_str::<HostProgram>(&stored).unwrap(), program);
}
