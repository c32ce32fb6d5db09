//! The page of a machine's characterization as text, and the section of it that the pages of
//! campaigns have.

mod synthetic;

use pinwise_characterization::{
    Characterization, Doubt, ExcerptReason, StoredCharacterization, Undecided, Warning,
};
use pinwise_present::{
    Files, characterization_noise, characterization_verdict, characterization_warning, other_cores,
};
use pinwise_report::{characterization_mark, characterization_page};
use std::path::Path;
use synthetic::{Plot, campaign};

/// What `characterize --machine ultrasparc-t2 --benchmarks intadd --stressors 1` kept.
fn kept(whole: bool) -> StoredCharacterization {
    let characterization =
        Characterization::from_json(include_str!("intadd.json")).unwrap().unwrap();
    let excerpt = (!whole).then_some(ExcerptReason::SomeBenchmarks);
    StoredCharacterization { id: 3, at: 1_795_336_900, excerpt, characterization }
}

#[test]
fn the_page_says_when_and_where_it_is_from_and_whether_it_is_an_excerpt() {
    let whole = characterization_page(&kept(true)).unwrap();
    assert!(
        whole.contains("Simulated on 2026-11-22 08:41 UTC by pinwise characterize: 1 round."),
        "{whole}"
    );
    assert!(
        whole.contains("pipe, 3 stressors")
            && whole.contains(">3.98</td>")
            && !whole.contains("An excerpt")
    );
    let excerpt = characterization_page(&kept(false)).unwrap();
    assert!(
        excerpt.contains("An excerpt.</strong> It decides nothing: only some of the benchmarks")
    );
    let mut busy = kept(false);
    busy.excerpt = Some(ExcerptReason::Busy { share: 0.5 });
    assert!(
        characterization_page(&busy)
            .unwrap()
            .contains("programs had their contexts for 50 % of the time")
    );
    let mut smt = kept(true);
    let page_with = |kernel: &str, of: &mut StoredCharacterization| {
        of.characterization.fingerprint.smt = Some(kernel.into());
        characterization_page(of).unwrap()
    };
    assert!(page_with("forceoff", &mut smt).contains("1 round, SMT forceoff."));
    assert!(page_with("notsupported", &mut smt).contains("1 round."));
}

#[test]
fn the_page_says_the_verdict_and_the_sentences_of_the_terminal() {
    let mut kept = kept(true);
    let characterization = &mut kept.characterization;
    characterization.warnings.push(Warning::Busy { share: 0.5 });
    let remote = characterization.findings.remote.as_mut().unwrap();
    (remote.dependent, remote.shared) = (vec!["intmul".into()], vec!["mem".into()]);
    let reason = Doubt::Text { text: "too few rounds".into() };
    remote.undecided = vec![Undecided { benchmark: "FPdiv".into(), reason }];
    remote.arrangement = Some(0.1);
    remote.arrangement_of = Some(("mem".into(), "mem".into()));
    for local in [true, false] {
        let findings = &mut kept.characterization.findings;
        match local {
            true => assert_eq!(other_cores(findings).len(), 7),
            false => findings.remote = None,
        }
        let page = characterization_page(&kept).unwrap();
        let of = &kept.characterization;
        let said = [characterization_verdict(of), characterization_noise(&of.noise)].into_iter();
        let warnings = of.warnings.iter().map(characterization_warning);
        for said in said.chain(warnings).chain(other_cores(&of.findings)) {
            assert!(page.contains(&said), "{said}: {page}");
        }
    }
}

#[test]
fn what_was_kept_as_json_gives_the_same_page() {
    let measured = kept(true);
    let text = serde_json::to_string(&measured.characterization).unwrap();
    let characterization = Characterization::from_json(&text).unwrap().unwrap();
    let stored = StoredCharacterization { characterization, ..measured.clone() };
    assert_eq!(characterization_page(&stored).unwrap(), characterization_page(&measured).unwrap());
}

#[test]
fn a_machine_s_name_stays_text_and_ends_no_comment() {
    let mut hostile = kept(true);
    hostile.characterization.machine = "</h1><script>alert(1)</script>".into();
    hostile.characterization.fingerprint.model = "--><script>alert(1)</script>".into();
    let html = characterization_page(&hostile).unwrap();
    let mark = characterization_mark(&hostile.characterization.fingerprint);
    assert!(html.contains(&mark) && mark.matches('>').count() == 1, "{mark}");
    assert!(!html.replace(&mark, "").contains("<script"), "{html}");
}

#[test]
fn a_campaign_s_page_shows_what_is_shared_on_its_machine() {
    let campaign = campaign(&Plot::default());
    let files = Files::of_store(Some(Path::new("other.db")));
    let render = |kept| campaign.page(files, kept).unwrap();
    assert!(!render(None).contains("What contexts of this machine share"));
    let html = render(Some(&kept(false)));
    for said in [
        "<h2>What contexts of this machine share</h2>",
        "An excerpt.",
        "Simulated on 2026-11-22 08:41 UTC by pinwise characterize: 1 round.",
        "4 intadd slow each other down 3.98 times: instruction fetch and integer unit.",
        "<code>pinwise report characterization --machine ultrasparc-t2 --store other.db</code>",
        "<table class=\"heat\">",
        ".s7 { background",
    ] {
        assert!(html.contains(said), "{said}: {html}");
    }
}
