//! The bound from any values: ordered finite numbers or a refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_evt::{Method, Options, Sample, estimate, plots};

fuzz_target!(|bytes: &[u8]| {
    // One byte per value makes ties and close values; eight make every other kind.
    let Some((kind, rest)) = bytes.split_first() else { return };
    let values: Vec<f64> = if kind % 2 == 0 {
        rest.iter().map(|&byte| f64::from(byte)).collect()
    } else {
        rest.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect()
    };
    let sample = Sample::new(values);
    for method in [Method::Bayes, Method::Profile] {
        let Ok(found) = estimate(&sample, &Options { method, ..Options::default() }) else {
            continue;
        };
        let high = found.upb_high.unwrap_or(f64::MAX);
        assert!(
            found.best <= found.upb_low && found.upb_low <= found.upb && found.upb <= high,
            "{found:?}"
        );
        assert!(
            high.is_finite() && found.gap.is_none_or(|gap| (0.0..=1.0).contains(&gap)),
            "{found:?}"
        );
        let _ = plots(&sample, &found);
    }
});
