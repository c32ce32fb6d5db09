//! The page in headless Chromium. There is no error and no request (its security policy forbids and
//! reports each). Charts are drawn, text is legible, and nothing is wider than the screen.
//!
//! Chromium's window has a minimum width. So the test puts each page in a frame of the width to
//! test. In the frame `inspect.js` inspects the page and reports to the outer page. Without
//! Chromium the test says so and ends; with `CI=true` that is a failure.

mod matrices;
mod synthetic;
mod tuned;

use matrices::page_of;
use pinwise_campaign::CampaignId;
use pinwise_characterization::{Characterization, ExcerptReason, StoredCharacterization};
use pinwise_measure::ProgramNote;
use pinwise_placement::{
    BoundClaim, ClaimVerdict, Comparison, ComparisonRow, Estimate, JudgedClaim, LeftOut,
    LeftOutReason, Loss, WayStanding,
};
use pinwise_present::{Files, against, caveat, comparison_verdict, standing};
use pinwise_report::comparison_page;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use synthetic::{Plot, Synthetic, campaign, exact, hostile, text};
use tuned::tuned;

/// Catches what goes wrong before anything else runs.
const WATCH: &str = "<script>window.seen = [];
for (const kind of ['error', 'unhandledrejection', 'securitypolicyviolation'])
  addEventListener(kind, event => {
    seen.push(kind + ': ' + (event.message || event.reason || event.violatedDirective));
  });
for (const level of ['error', 'warn'])
  console[level] = (...words) => seen.push(level + ': ' + words.join(' '));
</script>";

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let works = |name: &&str| {
        let version = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    };
    let found = names.into_iter().find(works);
    if found.is_none() {
        pinwise_synthetic::lacking("chromium: apt-get install chromium");
    }
    found
}

/// A page with a frame of `width` around `inner`. It writes the frame's reports into its text.
fn framed(inner: &str, width: u32) -> String {
    let inner = inner.replacen("<meta charset", &format!("{WATCH}<meta charset"), 1).replacen(
        "</body>",
        &format!("<script>{}</script></body>", include_str!("inspect.js")),
        1,
    );
    let attribute = inner.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><meta charset=utf-8><pre \
         id=result></pre><script>addEventListener('message', event => \
         document.getElementById('result').textContent = \
         JSON.stringify(event.data))</script><iframe \
         style='width:{width}px;height:3000px;border:0' srcdoc=\"{attribute}\"></iframe>"
    )
}

/// What `inspect.js` saw.
fn inspect(chromium: &str, folder: &Path, html: &str, width: u32, dark: bool) -> Value {
    let file = folder.join("page.html");
    std::fs::write(&file, framed(html, width)).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--virtual-time-budget=4000",
        ])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--window-size=1400,3200", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .stdout(std::fs::File::create(folder.join("dom.html")).unwrap())
        .stderr(std::fs::File::create(folder.join("stderr.txt")).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while browser.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(120) {
            browser.kill().unwrap();
            browser.wait().unwrap();
            panic!("chromium did not end within 120 s");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let dom = std::fs::read_to_string(folder.join("dom.html")).unwrap();
    let result =
        dom.split_once("<pre id=\"result\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let text = result.expect("the frame's page tells what it saw").0;
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The page of a campaign on a characterized machine, and its number of charts.
fn check(name: &str, campaign: &Synthetic, charts: usize) {
    let characterization =
        Characterization::from_json(include_str!("intadd.json")).unwrap().unwrap();
    let kept = StoredCharacterization {
        id: 1,
        at: 0,
        excerpt: Some(ExcerptReason::SomeBenchmarks),
        characterization,
    };
    let html = campaign.page(Files::default(), Some(&kept)).unwrap();
    legible(name, &html, charts, 50);
}

/// Everything that must hold of any page. `charts` is how many it has, `texts` the least number of
/// texts.
fn legible(name: &str, html: &str, charts: usize, texts: u64) {
    let Some(chromium) = chromium() else { return };
    let folder = folder(name);
    for (width, dark) in [(400, false), (400, true), (1200, false)] {
        let seen = inspect(chromium, &folder, html, width, dark);
        let at = format!("{name} at {width} px, dark {dark}");
        assert_eq!(seen["width"], width, "{at}");
        assert_eq!(seen["dark"], dark, "{at}");
        assert_eq!(seen["errors"], serde_json::json!([]), "{at}");
        assert_eq!(seen["scripts"], 0, "{at}: a hostile name ran as script");
        assert_eq!(seen["small"], serde_json::json!([]), "{at}: text below 12 px");
        assert_eq!(seen["pale"], serde_json::json!([]), "{at}: contrast below 4.5:1");
        assert!(
            seen["overflow"].as_f64().unwrap() <= 0.0,
            "{at}: {} px wider than the screen",
            seen["overflow"]
        );
        assert!(seen["texts"].as_u64().unwrap() > texts, "{at}: {} texts", seen["texts"]);
        let canvases = seen["canvases"].as_array().unwrap();
        assert_eq!(canvases.len(), charts, "{at}: {canvases:?}");
        for canvas in canvases {
            assert!(canvas["inked"].as_u64().unwrap() > 1000, "{at}: {canvas} is blank");
            assert!(canvas["fits"].as_bool().unwrap(), "{at}: {canvas} is clipped");
        }
    }
}

#[test]
fn a_sampled_campaign_is_legible_in_every_width_and_scheme() {
    check("sampled", &campaign(&Plot::default()), 7);
}

#[test]
fn an_exhaustive_campaign_has_words_in_place_of_the_bounds_charts() {
    check("exact", &exact(), 4);
}

/// Possible results for ways of placing: the best known, one that cannot be distinguished from it,
/// and worse ones.
fn comparison(campaign: &Synthetic) -> Comparison {
    let best = campaign.outcome.best.clone().unwrap();
    let way = |name: &str, searched: bool, (estimate, low, high): (f64, f64, f64), standing| {
        let claim = JudgedClaim {
            claim: BoundClaim { bound: 2e6, gap: 0.1, estimated: false },
            certified: false,
            verdict: ClaimVerdict::Open,
            loss: Loss { estimate: 0.05, low: 0.0, high: 0.2 },
        };
        ComparisonRow {
            name: name.to_owned(),
            assignment: searched.then(|| best.assignment.clone()),
            performance: best.performance,
            loss: Loss { estimate, low, high },
            standing,
            spent: if searched { 1200 } else { 0 },
            campaign: searched.then_some(CampaignId(7)),
            claim: searched.then_some(claim),
        }
    };
    Comparison {
        unit: campaign.outcome.unit.clone(),
        rows: vec![
            way("OS default", false, (0.31, 0.29, 0.33), WayStanding::Worse),
            way("balanced, worst of 50", false, (0.62, 0.4, 0.8), WayStanding::Worse),
            way("BlackBox, top 5", true, (-0.01, -0.2, 0.18), WayStanding::Tied),
            way("hill climbing", true, (0.04, f64::NEG_INFINITY, 1.0), WayStanding::Tied),
            way("default strategy", true, (0.0, 0.0, 0.0), WayStanding::Best),
        ],
        left_out: vec![LeftOut { name: "BlackBox".into(), reason: LeftOutReason::NotMeasured }],
        rounds: 20,
        before: None,
        confidence: 0.95,
        within: 0.025,
    }
}

#[test]
fn ways_of_placing_are_legible_beside_one_another() {
    let campaign = campaign(&Plot::default());
    let searches = [("default strategy".to_owned(), campaign.records.clone())];
    let busy = "the machine was busy <em>meanwhile</em>".to_owned();
    let notes = [ProgramNote::Text { text: busy }];
    let html = comparison_page(
        &campaign.info,
        None,
        &comparison(&campaign),
        &notes,
        &searches,
        Files::default(),
        None,
    )
    .unwrap();
    assert!(html.contains("The machine was busy &#60;em&#62;meanwhile"), "a note, escaped");
    assert!(html.contains("2 ways may be as good as the best, or "), "what was not told is said");
    let said = text(&html).to_lowercase();
    assert!(said.contains("assignment") && !said.contains("placement"), "{said}");
    let verdict = comparison_verdict(&comparison(&campaign));
    assert!(html.contains(&format!("<p class=\"verdict\">{verdict}</p>")), "as on the terminal");
    legible("compared", &html, 2, 50);
}

/// All others did better than what led when it was chosen: nothing is called the best then.
#[test]
fn what_the_fresh_windows_contradict_is_not_called_the_best() {
    let campaign = campaign(&Plot::default());
    let mut comparison = comparison(&campaign);
    assert_eq!(
        (against(&comparison), standing(&comparison, &comparison.rows[4])),
        ("the best known".into(), "best known")
    );
    for row in comparison.rows.iter_mut().filter(|row| row.standing != WayStanding::Best) {
        (row.loss, row.standing) =
            (Loss { estimate: -0.05, low: -0.2, high: 0.1 }, WayStanding::Tied);
    }
    assert_eq!(standing(&comparison, &comparison.rows[4]), "led before");
    assert_eq!(against(&comparison), "default strategy (which led before)");
    let told = caveat(&comparison, &[]).unwrap();
    let led = "No best is known: default strategy led, but ";
    let better = "did better in fresh windows (+5.0 %): raise --rounds.";
    assert!(told.starts_with(led) && told.ends_with(better), "{told}");
    let busy = [ProgramNote::Busy { share: 0.4 }];
    let told = caveat(&comparison, &busy).unwrap();
    assert!(told.ends_with(": stop other programs and repeat."), "{told}");
    let html = comparison_page(&campaign.info, None, &comparison, &[], &[], Files::default(), None)
        .unwrap();
    assert!(
        !html.contains("best known assignment") && html.contains("Loss against what led before"),
        "{html}"
    );
    // What led gets nothing done at all: there are no shares of that.
    for row in &mut comparison.rows {
        match row.standing {
            WayStanding::Best => {
                row.performance = Estimate { mean: 0.0, low: 0.0, high: 0.0, ..row.performance }
            }
            _ => row.loss.estimate = f64::NEG_INFINITY,
        }
    }
    let told = caveat(&comparison, &[]).unwrap();
    assert!(told.contains("did better in fresh windows (the former did nothing)"), "{told}");
    let html = comparison_page(&campaign.info, None, &comparison, &[], &[], Files::default(), None)
        .unwrap();
    assert!(
        html.contains("there are no losses relative to it")
            && !html.contains("inf %")
            && !html.contains("NaN"),
        "{html}"
    );
}

#[test]
fn a_search_for_number_and_placement_is_legible() {
    legible("tuned", &tuned("encoder").page(), 3, 50);
}

#[test]
fn latencies_are_legible_as_numbers_and_as_a_drawing() {
    // Every cell of the table; headings, levels and a sentence.
    for (n, texts) in [(24, 24 * 24), (48, 30)] {
        // The page forbids scripts; the one that looks at it has to run.
        let forbidding = page_of("box", n);
        let html = forbidding.replace(
            "style-src 'unsafe-inline'",
            "style-src 'unsafe-inline'; script-src 'unsafe-inline'",
        );
        assert_ne!(html, forbidding);
        legible(&format!("latency-{n}"), &html, 0, texts);
    }
}

#[test]
fn hostile_names_stay_text() {
    check("hostile", &hostile(), 7);
}

#[test]
fn what_is_wrong_with_a_page_is_noticed() {
    let Some(chromium) = chromium() else { return };
    let page = "<!DOCTYPE html><html><head><meta charset='utf-8'><meta \
        http-equiv='Content-Security-Policy' content=\"img-src 'none'\"></head><body><p \
        style='font-size:8px;color:#ccc'>faint</p><div style='width:900px'>wide</div><div \
        class='chart' id='blank'><canvas></canvas></div><img \
        src='nowhere.png'><script>console.error('told'); throw new \
        Error('thrown')</script></body></html>";
    let seen = inspect(chromium, &folder("wrong"), page, 400, false);
    let errors = seen["errors"].to_string();
    assert!(
        errors.contains("told") && errors.contains("thrown") && errors.contains("img-src"),
        "{seen}"
    );
    assert_eq!(seen["small"].as_array().unwrap().len(), 1, "{seen}");
    assert!(seen["pale"].to_string().contains("faint"), "{seen}");
    assert!(seen["overflow"].as_f64().unwrap() > 400.0, "{seen}");
    assert_eq!(seen["canvases"][0]["inked"], 0, "{seen}");
}
