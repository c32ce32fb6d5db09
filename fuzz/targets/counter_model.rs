//! Models of pairs that others saved: a prediction is a finite number.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_coscheduling::CounterModel;
use pinwise_measure::{CounterEvent, EventCounts};

fuzz_target!(|text: &str| {
    let Ok(model) = CounterModel::parse(text) else { return };
    let mut counts: std::collections::BTreeMap<CounterEvent, f64> =
        model.events().into_iter().map(|event| (event, 3.0)).collect();
    counts.insert(CounterEvent::Cycles, 100.0);
    let counts = EventCounts { seconds: 1.0, counts, counted: 1.0 };
    let program = (String::new(), counts);
    if let Ok(predicted) = model.predict([&program, &program]) {
        assert!(predicted.kept.iter().all(|kept| kept.is_finite() && *kept > 0.0));
    }
    assert!(model.margin(0.95).value() >= 0.0);
});
