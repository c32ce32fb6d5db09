//! The page as text: what it says, what it must never contain.

mod synthetic;
mod tuned;

use pinwise_campaign::{CampaignState, Kind};
use pinwise_evt::Method;
use pinwise_jobs::{CalibrationAnswer, CalibrationExamples, CalibrationRequest};
use pinwise_measure::{PinnedInstance, ProgramNote, SchedulingProfile, Unit};
use pinwise_placement::{
    DrawnSelection, Estimate, PlacedSelection, PlacementVerdict, SelectionOutcome,
};
use pinwise_present::{
    Files, calibration_verdict, no_tune_verdict, outcome_text, selection_bound,
    selection_estimates, selection_verdict, sentence, simulated,
};
use pinwise_report::{
    ReportError, Selection, ThreadsSearch, TuneSearch, calibration_page, placement_page,
    selection_page, threads_page, tune_page,
};
use pinwise_threads::{Example, ProfilesByNumber, ThreadRange, calibrate};
use pinwise_topology::Assignment;
use serde_json::Value;
use std::time::Duration;
use synthetic::{HOSTILE, Plot, Synthetic, campaign, exact, hostile, text};
use tuned::{probe, tuned};

fn render(campaign: &Synthetic) -> String {
    campaign.page(Files::default(), None).unwrap()
}

fn charts(html: &str) -> Vec<Value> {
    let data = html.split_once("id=\"charts\">").unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str::<Vec<Value>>(data).unwrap()
}

fn ids(html: &str) -> Vec<String> {
    charts(html).iter().map(|chart| chart["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_page_has_every_chart_and_says_in_words_what_they_show() {
    let campaign = campaign(&Plot::default());
    let html = render(&campaign);
    let expected = [
        "chart-windows",
        "chart-ecdf",
        "chart-progress",
        "chart-bound",
        "chart-excess",
        "chart-quantile",
        "chart-drift",
    ];
    assert_eq!(ids(&html), expected);
    for id in expected {
        assert!(html.contains(&format!("id=\"{id}\" role=\"img\" aria-label=\"")), "{id}");
    }
    let text = text(&html);
    for said in [
        "Pin: the best assignment beats unpinned by +",
        "M packets/s (95 % interval",
        "12 windows",
        "Gap at most",
        "ipfwd0-R",
        "Seed 42",
        "through the campaign, became ",
        "12 ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// A placement is what is in use, or what the campaign is about.
#[test]
fn what_is_searched_is_called_an_assignment_on_the_whole_page() {
    for campaign in [campaign(&Plot::default()), exact()] {
        let page = text(&render(&campaign));
        let in_use = ["ipfwd: placement, campaign"];
        let searched = in_use.iter().fold(page.clone(), |text, used| text.replace(used, ""));
        assert!(!searched.to_lowercase().contains("placement"), "{page}");
        assert!(searched.contains("assignment"), "{page}");
    }
}

#[test]
fn figures_stand_out_only_where_they_are_decided() {
    let mut campaign = campaign(&Plot::default());
    assert!(render(&campaign).contains("<dl class=\"facts\">"));
    campaign.outcome.verdict = PlacementVerdict::Undecided;
    assert!(render(&campaign).contains("<dl class=\"facts open\">"));
}

#[test]
fn every_window_is_drawn() {
    let campaign = campaign(&Plot::default());
    let windows = charts(&render(&campaign)).swap_remove(0);
    let drawn: usize = windows["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["x"].as_array().unwrap().len())
        .sum();
    // 50 baselines during the search; 12 rounds of the best, three ties and the baseline.
    assert_eq!(drawn, 50 + 12 * 5);
}

#[test]
fn nothing_is_ever_requested() {
    let html = render(&campaign(&Plot::default()));
    for attribute in
        ["src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest", "<link", "<base"]
    {
        assert!(!html.contains(attribute), "{attribute}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn hostile_names_are_text_and_nothing_else() {
    let html = render(&hostile());
    assert!(!html.contains("<img"), "an element was let in");
    assert_eq!(html.matches("<script").count(), 3, "ours: data, uPlot, page");
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!charts(&html).is_empty());
    assert!(charts(&html)[0]["x"]["label"].as_str().unwrap().contains(HOSTILE));
}

#[test]
fn five_thousand_measurements_stay_below_300_kilobytes() {
    let html = render(&campaign(&Plot { samples: 5000, ..Plot::default() }));
    assert!(html.len() < 300_000, "{} bytes", html.len());
}

#[test]
fn where_nothing_is_estimated_words_stand_in_for_the_charts() {
    let html = render(&exact());
    assert_eq!(ids(&html), ["chart-windows", "chart-ecdf", "chart-progress", "chart-drift"]);
    let said = text(&html);
    assert!(said.contains("Every assignment was measured, so the best is known"));
    assert!(!said.contains("band") && !said.contains("comes down to meet the line"), "{said}");
}

#[test]
fn a_band_is_described_where_one_is_drawn() {
    let mut campaign = exact();
    campaign.outcome.bound.upb = campaign.outcome.best.as_ref().map(|best| best.performance.mean);
    let html = render(&campaign);
    assert!(text(&html).contains("The band reaches from the mean of the best to the bound"));
}

#[test]
fn few_values_are_listed_once_and_one_omitted_tie_counts_as_one() {
    let page = text(&render(&campaign(&Plot { samples: 5, ties: 4, ..Plot::default() })));
    let table = page.split_once("Share of assignments that are no better Performance").unwrap().1;
    let shares = ["20 %", "40 %", "60 %", "80 %", "100 %"];
    let listed: Vec<&str> = shares.into_iter().filter(|share| table.contains(share)).collect();
    assert_eq!(listed, shares, "{table}");
    assert!(!table.contains(" 99 %") && !page.contains("Not drawn"), "{page}");
    let page = text(&render(&campaign(&Plot { ties: 5, ..Plot::default() })));
    assert!(page.contains("Not drawn: 1 more tie."), "{page}");
}

#[test]
fn too_small_a_sample_is_shown_with_the_reason() {
    let html = render(&campaign(&Plot { samples: 20, ..Plot::default() }));
    assert!(!ids(&html).contains(&"chart-bound".to_owned()));
    assert!(text(&html).contains("For this reason there is no bound to draw."));
}

#[test]
fn the_published_method_draws_its_profile() {
    let html =
        render(&campaign(&Plot { method: Method::Profile, samples: 4000, ..Plot::default() }));
    let bound = charts(&html).into_iter().find(|chart| chart["id"] == "chart-bound").unwrap();
    assert_eq!(bound["y"]["label"], "profile log-likelihood");
}

#[test]
fn a_quantity_that_is_better_when_lower_is_shown_as_itself_with_better_to_the_right() {
    let html = render(&campaign(&Plot { unit: Unit::cost("s"), optimum: 0.5, ..Plot::default() }));
    let ecdf = charts(&html).into_iter().find(|chart| chart["id"] == "chart-ecdf").unwrap();
    assert_eq!(ecdf["x"]["label"], "s");
    assert_eq!(ecdf["x"]["reversed"], true);
    let xs: Vec<f64> =
        ecdf["series"][0]["x"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert!(xs.iter().all(|&x| (1.9..4.0).contains(&x)), "{xs:?}");
    assert!(text(&html).contains("Performance is s, lower is better"));
}

#[test]
fn an_unfinished_campaign_with_nothing_measured_is_a_page_too() {
    let mut campaign = campaign(&Plot { samples: 1, ..Plot::default() });
    campaign.records.clear();
    campaign.info.state = CampaignState::Open;
    let outcome = &mut campaign.outcome;
    (outcome.best, outcome.baseline, outcome.gain, outcome.drift) = (None, None, None, None);
    outcome.ties.clear();
    outcome.verdict = PlacementVerdict::Undecided;
    (outcome.cost.measurements, outcome.cost.failed) = (1, 0);
    let html = render(&campaign);
    assert!(ids(&html).is_empty());
    let text = text(&html);
    assert!(text.contains("1 measurement, 0 failed"), "{text}");
    assert!(text.contains("Undecided so far:"), "{text}");
    assert!(text.contains("pinwise campaign resume 12"), "{text}");
    campaign.info.running = true;
    assert!(!self::text(&render(&campaign)).contains("campaign resume"), "it is running");
}

#[test]
fn an_estimate_without_interval_is_no_number_of_the_page() {
    let mut campaign = campaign(&Plot::default());
    let open = Estimate {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
        n: 1,
        ..campaign.outcome.baseline.unwrap()
    };
    campaign.outcome.baseline = Some(open);
    let html = render(&campaign);
    assert!(!charts(&html).is_empty());
    let text = text(&html);
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    assert!(text.contains("no interval, 1 window"));
}

#[test]
fn an_assignment_beyond_the_machine_is_refused() {
    let mut campaign = campaign(&Plot::default());
    campaign.outcome.best.as_mut().unwrap().assignment = Assignment::new(vec![0, 1, 2, 3, 4, 99]);
    let refused = campaign.page(Files::default(), None);
    assert!(
        matches!(refused, Err(ReportError::Misfit { threads: 6, contexts: 16, .. })),
        "{refused:?}"
    );
}

#[test]
fn the_commands_at_the_end_name_the_files_there_are() {
    let campaign = campaign(&Plot::default());
    let store = std::path::Path::new("/tmp/my store.db");
    let plan = std::path::Path::new("/home/u/plans/1.toml");
    let files = Files { plan: Some(plan), store: Some(store) };
    let text = text(&campaign.page(files, None).unwrap());
    for said in [
        "pinwise apply /home/u/plans/1.toml --pid PID",
        "campaign export",
        "--store &#39;/tmp/my store.db&#39;",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(
        !self::text(&render(&campaign)).contains("pinwise apply"),
        "no plan, no command that needs one"
    );
}

#[test]
fn a_plan_of_a_simulated_processor_is_not_offered_for_a_real_one() {
    let mut campaign = campaign(&Plot::default());
    let files = Files { plan: Some(std::path::Path::new("1.toml")), store: None };
    let shown = |campaign: &Synthetic| text(&campaign.page(files, None).unwrap());
    assert!(shown(&campaign).contains("pinwise apply 1.toml"));
    campaign.info.new.simulated = true;
    let model = shown(&campaign);
    assert!(!model.contains("pinwise apply") && !model.contains("pinwise run"), "{model}");
    assert!(model.contains("pinwise export 1.toml --to FORMAT"), "{model}");
}

#[test]
fn the_page_says_the_verdict_and_the_notes_of_the_terminal() {
    let campaign = campaign(&Plot::default());
    let said = |verdict: PlacementVerdict, simulated: bool, finished: bool| {
        let mut info = campaign.info.clone();
        let outcome = &campaign.outcome;
        if simulated {
            info.new.simulated = true;
        }
        if !finished {
            info.state = CampaignState::Stopped;
        }
        let notes = vec![ProgramNote::Text { text: "the machine was busy".into() }];
        let outcome = pinwise_placement::Outcome { verdict, notes, ..outcome.clone() };
        let (question, records) = (&campaign.question, &campaign.records);
        let files = Files::default();
        let page = placement_page(&info, question, records, &outcome, files, None).unwrap();
        let terminal = outcome_text(&info, question, &outcome, Files::default(), usize::MAX);
        let said: Vec<&str> = terminal.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(said.len(), 2 + usize::from(simulated) + usize::from(!finished));
        assert_eq!(said.last(), Some(&"The machine was busy."));
        let page = text(&page).replace("&#39;", "'").replace("Unfinished. ", "");
        assert!(page.contains(&said.join(" ")), "{said:?}: {page}");
    };
    for verdict in
        [PlacementVerdict::Pin, PlacementVerdict::KeepDefault, PlacementVerdict::Undecided]
    {
        for (simulated, finished) in [(false, true), (true, true), (false, false)] {
            said(verdict, simulated, finished);
        }
    }
}

/// A selection of an instance on the contexts of `campaign`, which ties with the other one.
fn selection(campaign: &Synthetic) -> SelectionOutcome {
    let estimate = |mean: f64, n: usize| Estimate {
        mean,
        low: mean - 0.1,
        high: mean + 0.1,
        n,
        confidence: 0.95,
        spread: 0.1,
    };
    let drawn = |counts: [usize; 2], mean: f64| DrawnSelection {
        counts: counts.into(),
        performance: estimate(mean, 40),
        best: mean + 0.2,
    };
    let placed = |instance: usize, mean: f64| {
        let threads = campaign.info.new.workload.members(instance).len() as u32;
        PlacedSelection {
            instances: vec![PinnedInstance { instance, leaves: (0..threads).collect() }],
            performance: estimate(mean, 30),
        }
    };
    SelectionOutcome {
        best: Some(placed(0, 1.8)),
        ties: vec![placed(0, 1.79), placed(1, 1.78)],
        chance: Some(estimate(1.4, 80)),
        bound: campaign.outcome.bound.clone(),
        selections: vec![drawn([1, 0], 1.6), drawn([0, 1], 1.2)],
        different: 3,
        measurements: 110,
    }
}

#[test]
fn a_selection_says_what_runs_where_and_what_each_selection_gave() {
    let campaign = campaign(&Plot::default());
    let ready = [HOSTILE, "intmul"].map(str::to_owned);
    let outcome = selection(&campaign);
    let selection = Selection {
        outcome: &outcome,
        names: ready.to_vec(),
        alone: vec![("intmul".to_owned(), "1.00 M packets/s".to_owned())],
        ready: ready.to_vec(),
        choose: 1,
    };
    let html = selection_page(&campaign.info, None, &selection, Files::default(), None).unwrap();
    assert_eq!(ids(&html), ["chart-selections"]);
    assert!(!html.contains(HOSTILE), "a name is no markup");
    let text = text(&html);
    for said in ["2 of 3 different selections were drawn.", "intmul alone: 1.00 M packets/s"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(text.contains("assignment") && !text.to_lowercase().contains("placement"), "{text}");
}

#[test]
fn the_page_of_a_selection_says_what_the_terminal_and_json_say() {
    let mut campaign = campaign(&Plot::default());
    (campaign.info.new.kind, campaign.info.new.simulated) = (Kind::Select, true);
    let (info, unit) = (&campaign.info, &campaign.info.new.unit);
    let ready = ["intadd", "intmul"].map(str::to_owned);
    let mut outcome = selection(&campaign);
    let mut said = |kind: &str, change: fn(&mut SelectionOutcome)| {
        change(&mut outcome);
        let verdict = selection_verdict(&outcome, &ready, 1);
        assert_eq!(verdict.kind, kind, "{verdict:?}");
        let selection = Selection {
            outcome: &outcome,
            names: ready.to_vec(),
            alone: Vec::new(),
            ready: ready.to_vec(),
            choose: 1,
        };
        let page = text(&selection_page(info, None, &selection, Files::default(), None).unwrap());
        let page = page.replace("&#43;", "+");
        let estimates = selection_estimates(&outcome, &ready, unit).into_iter();
        let bound = sentence(&selection_bound(&outcome, unit));
        let said = [verdict.text, simulated(info).unwrap(), bound].into_iter();
        for said in said.chain(estimates.map(|(label, text)| format!("{label} {text}"))) {
            assert!(page.contains(said.trim()), "{said}: {page}");
        }
    };
    said("tied", |_| {});
    said("best", |outcome| outcome.ties.truncate(1));
    said("none", |outcome| (outcome.best, outcome.bound.upb_high) = (None, None));
}

#[test]
fn a_search_for_a_number_shows_its_answer_and_every_probe() {
    let mut campaign = campaign(&Plot::default());
    campaign.info.new.workload.name = HOSTILE.into();
    let probes = [probe(4, 40.0), probe(2, 25.0), probe(4, 44.0)];
    let mut search = ThreadsSearch {
        verdict: "n = 4 (3-4).".into(),
        ended: None,
        open: Some("Fewer threads may do as well.".into()),
        compared: None,
        chosen: Some(4),
        unit: Unit::rate("frames/s"),
        probes: &probes,
        notes: vec![format!("about {HOSTILE}")],
    };
    let html = threads_page(&campaign.info, None, &search, Files::default()).unwrap();
    assert_eq!(ids(&html), ["chart-threads"]);
    assert!(!html.contains(HOSTILE), "a name is no markup");
    let said = text(&html);
    for part in [
        "n = 4 (3-4).",
        "Fewer threads may do",
        "with n = 4: unknown",
        "3 probes of 2 different numbers",
        "44.0 frames/s",
        "12.5 %",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    search.probes = &[];
    search.chosen = None;
    let html = threads_page(&campaign.info, None, &search, Files::default()).unwrap();
    assert!(text(&html).contains("No number has been probed yet."));
}

#[test]
fn a_search_for_number_and_placement_shows_its_ways_and_links_its_parts() {
    let whole = tuned(HOSTILE);
    let html = whole.page();
    assert_eq!(ids(&html), ["chart-ways", "chart-threads", "chart-policies"]);
    assert!(!html.contains(HOSTILE), "a name is no markup");
    assert!(html.contains(r#"<a href="pinwise-8.html">8</a>"#), "the parts are linked");
    let said = text(&html).replace("&#43;", "+");
    let verdict = whole.verdict().text();
    assert!(verdict.starts_with("Use n = 4, pinned: +"), "{verdict}");
    for part in [
        verdict.as_str(),
        "6 rounds of fresh windows, in random order.",
        "default: n = 8, unpinned",
        "n = 4 (3-4).",
        "The best was n = 4, compact",
        "placement of n = 4, round 1",
        "pinwise report 8",
        "not placed: it has ended",
        "pinwise run tuned.toml -- encoder {n}",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Words of the whole: what is searched is an assignment.
    let whole_of = ["umber and placement", "olicies of placement", "placement of n = 4, round 1"];
    let other = whole_of.iter().fold(said.clone(), |said, of| said.replace(of, ""));
    assert!(!other.contains("placement") && other.contains("assignment"), "{other}");
    let unmeasured = TuneSearch {
        compared: None,
        notes: Vec::new(),
        number: None,
        tried: (Vec::new(), Unit::rate("1/s")),
        placed: Vec::new(),
        parts: &[],
        next: None,
    };
    let html = tune_page(&whole.campaign.info, None, &unmeasured, Files::default()).unwrap();
    assert!(text(&html).contains(&no_tune_verdict(&whole.campaign.info)), "{html}");
    assert!(ids(&html).is_empty());
}

#[test]
fn a_program_found_doing_otherwise_than_unpinned_after_qualifies_the_verdict() {
    let mut campaign = campaign(&Plot::default());
    let unpinned = campaign.outcome.baseline.unwrap();
    let found = |share: f64| Estimate {
        mean: unpinned.mean * share,
        low: unpinned.low * share,
        high: unpinned.high * share,
        ..unpinned
    };
    campaign.outcome.as_found = Some(found(1.0));
    assert!(!text(&render(&campaign)).contains("Initially it was"));
    campaign.outcome.as_found = Some(found(0.5));
    let text = text(&render(&campaign));
    assert!(text.contains("%). Initially it was 50"), "{text}");
}

#[test]
fn a_calibration_shows_its_thresholds_and_the_two_lines_of_each_example() {
    let curve = |of: fn(f64) -> SchedulingProfile| {
        ProfilesByNumber((1..=9).map(|step| (step * 2, of(f64::from(step * 2)))).collect())
    };
    let locks = curve(|n| SchedulingProfile {
        lock: 10.0 + n + 3.0 * (n - 8.0).max(0.0),
        migr_rate: 20.0 * n,
        ..SchedulingProfile::default()
    });
    let switches =
        curve(|n| SchedulingProfile { vcx_rate: 900.0 * n, ..SchedulingProfile::default() });
    let parallelism =
        curve(|n| SchedulingProfile { cpu_util: n.min(8.0) * 2.0, ..SchedulingProfile::default() });
    let examples = CalibrationExamples::Commands([HOSTILE, "b", "c"].map(str::to_owned));
    let range = ThreadRange { min: 2, max: 18, step: 2 };
    let thresholds = calibrate(range, 10, &locks, &switches, &parallelism).unwrap();
    let mut answer = CalibrationAnswer {
        campaign: campaign(&Plot::default()).info,
        request: CalibrationRequest {
            examples,
            max: Some(18),
            step: Some(2),
            rounds: 1,
            probe: Duration::from_millis(20),
        },
        step: 2,
        contexts: 10,
        examples: vec![
            (Example::Locks, HOSTILE.to_owned(), locks),
            (Example::Switches, "b".to_owned(), switches),
            (Example::Parallelism, "c".to_owned(), parallelism),
        ],
        thresholds: Some(thresholds),
    };
    let html = calibration_page(&answer, Files::default()).unwrap();
    assert_eq!(ids(&html), ["chart-lock", "chart-migr-rate", "chart-vcx-rate", "chart-cpu-util"]);
    assert!(!html.contains(HOSTILE), "a name is no markup");
    let said = text(&html);
    for part in [
        calibration_verdict(2, 10, true).as_str(),
        "lock 18.0 %",
        "delta_lock 5.00 %",
        "The lines meet with 8 threads at 18.0 %.",
        "pinwise campaign show",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let line = &charts(&html)[0]["series"][0];
    assert_eq!((&line["x"][3], &line["y"][3]), (&Value::from(8.0), &Value::from(18.0)));
    answer.thresholds = None;
    answer.examples[0].2.0.truncate(3);
    answer.examples[2].2.0.clear();
    let said = text(&calibration_page(&answer, Files::default()).unwrap());
    for part in [
        calibration_verdict(2, 10, false).as_str(),
        "Two lines need four numbers of threads; 3 are probed.",
        "The example for parallelism is not probed yet.",
        "pinwise campaign resume",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
