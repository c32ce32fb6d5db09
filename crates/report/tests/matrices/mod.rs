//! Latency matrices of made-up machines: pairs of siblings, two packages.

use pinwise_present::LatencyFindings;
use pinwise_report::latency_page;
use pinwise_topology::{CpuId, LatencyMatrix, LatencyUnit};

/// `n` contexts, a multiple of 4: siblings are `n / 2` apart, packages halve the cores. Values
/// differ by up to 6 %.
pub(crate) fn matrix(n: u32) -> LatencyMatrix {
    let core = |context: u32| context % (n / 2);
    let distance = |a: u32, b: u32| {
        let near = match (core(a), core(b)) {
            (x, y) if x == y => return 8.0,
            (x, y) if x / (n / 4) == y / (n / 4) => 50.0,
            _ => 200.0,
        };
        near * (1.0 - f64::from((a + b) % 4) / 50.0)
    };
    let cells = (0..n)
        .flat_map(|a| (0..n).map(move |b| (a, b)))
        .map(|(a, b)| (a != b).then(|| distance(a, b)));
    LatencyMatrix::new((0..n).map(CpuId).collect(), LatencyUnit::Ns, cells.collect()).unwrap()
}

/// Its page.
pub(crate) fn page_of(name: &str, n: u32) -> String {
    let findings = LatencyFindings::new(matrix(n), None, None);
    latency_page(name, &findings, &["a sentence".into()]).unwrap()
}
