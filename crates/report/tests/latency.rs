//! The page of a latency matrix as text: what it says, what it must never contain. What it looks
//! like is tried in `browser.rs`.

mod matrices;

use matrices::{matrix, page_of};
use pinwise_present::LatencyFindings;
use pinwise_report::latency_page;
use pinwise_topology::{
    CpuSet, DomainKind, LatencyComparison, LatencyMatrix, LatencyUnit, LevelMatch, Machine,
};

#[test]
fn few_contexts_are_numbers_in_the_order_of_the_tree() {
    let html = page_of("box", 8);
    // Siblings are n / 2 apart and stand side by side.
    let heads: Vec<&str> = html
        .split("<thead>")
        .nth(1)
        .unwrap()
        .split("</thead>")
        .next()
        .unwrap()
        .split("scope=\"col\">")
        .skip(2)
        .collect();
    let heads: Vec<&str> = heads.iter().map(|head| head.split('<').next().unwrap()).collect();
    assert_eq!(heads, ["0", "4", "1", "5", "2", "6", "3", "7"]);
    assert_eq!(html.matches("<td class=\"s").count(), 8 * 7);
    assert_eq!(html.matches("<td class=\"none\">·").count(), 8);
    // Nearest and farthest have the first and the last shade.
    assert!(
        html.contains("<td class=\"s0\">8.00</td>") && html.contains("<td class=\"s7\">200</td>")
    );
    assert!(!html.contains("<svg"));
}

#[test]
fn many_contexts_are_a_drawing_of_a_size_that_can_be_sent() {
    for (n, most) in [(48, 120_000), (96, 400_000), (512, 800_000)] {
        let html = page_of("box", n);
        assert!(
            html.contains(&format!("viewBox=\"0 0 {n} {n}\"")) && !html.contains("class=\"heat\"")
        );
        assert!(html.len() < most, "{n} contexts: {} bytes", html.len());
        // Every square but those on the diagonal is covered once.
        let widths = html.split("<rect ").skip(1).map(|rect| {
            let width = rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
            width.parse::<usize>().unwrap()
        });
        assert_eq!(widths.sum::<usize>(), n as usize * (n as usize - 1));
    }
}

#[test]
fn the_page_says_the_verdict_and_the_notes_of_the_terminal() {
    let mut cells: Vec<Option<f64>> = Vec::new();
    let even = matrix(8);
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))) {
        // One direction is odd.
        cells
            .push(even.get(from, to).map(|own| if (from, to) == (0, 1) { 9.0 * own } else { own }));
    }
    let odd = LatencyMatrix::new(even.contexts().to_vec(), LatencyUnit::Ns, cells).unwrap();
    let other = Machine::from_shape("package:1 core:8 pu:1").unwrap();
    let findings = LatencyFindings::new(odd, None, Some(&other));
    let (notes, compared) = (findings.notes(), findings.compared());
    assert!(!notes.is_empty() && !compared.is_empty(), "{notes:?} {compared:?}");
    let warning = "stop other programs".to_owned();
    let page = latency_page("box", &findings, std::slice::from_ref(&warning)).unwrap();
    let said = [findings.verdict(), warning].into_iter().chain(notes).chain(compared);
    said.for_each(|said| assert!(page.contains(&said), "{said}: {page}"));
}

#[test]
fn the_page_has_levels_and_sentences_and_hostile_names_stay_text() {
    let declared = [vec![DomainKind::Core], vec![], vec![DomainKind::Machine]];
    let comparison = LatencyComparison {
        levels: declared.map(|declared| LevelMatch { declared, difference: None }).into(),
        unseen: Vec::new(),
        unknown: CpuSet::new(),
        unmeasured: CpuSet::new(),
    };
    let findings = LatencyFindings {
        comparison: Some(comparison),
        ..LatencyFindings::new(matrix(8), None, None)
    };
    let page = || {
        let warning = "</li><script>alert(1)</script>".to_owned();
        latency_page("<b>box</b>", &findings, &[warning]).unwrap()
    };
    let html = page();
    assert!(html.contains(&findings.verdict()) && html.contains("which DIFFERS from"), "{html}");
    assert!(html.contains("<td>0,4 | 1,5 | 2,6 | 3,7</td>"));
    assert!(html.contains("<td>Core</td>") && html.contains("<td>no such level</td>"));
    assert!(
        !html.contains("<script") && !html.contains("<b>box") && !html.contains("://"),
        "{html}"
    );
    assert!(html.contains("default-src 'none'"));
    assert_eq!(html, page());
}
