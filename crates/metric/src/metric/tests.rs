//! Metrics of real programs: small shell loops, files, a scripted counter.

use super::*;
use pinwise_linux::follow;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A program that is killed when the test ends, however that is.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn launch(script: &str) -> (Killed, Streams) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdout, _) = follow(child.stdout.take().unwrap()).unwrap();
    (Killed(child), Streams { stdout: Some(stdout), stderr: None })
}

fn open(
    metric: &str,
    options: &MetricOptions,
    streams: &mut Streams,
) -> Result<Metric, MetricError> {
    metric.parse::<MetricSpec>().unwrap().open(options, streams, Box::new(Vec::new), &|| false)
}

fn measure(metric: &mut Metric, settle: u64, window: u64) -> Result<Measurement, MeasureError> {
    metric.meter.measure(Duration::from_millis(settle), Duration::from_millis(window), &|| false)
}

fn impatient() -> MetricOptions {
    MetricOptions { patience: Duration::from_millis(300), ..MetricOptions::default() }
}

#[test]
fn a_printed_counter_with_its_own_clock_has_exactly_its_own_rate() {
    // 250 per tick of the program's clock, however late the lines are read.
    let script = "i=0; while :; do echo \"t=$i n=$((i * 250))\"; i=$((i + 1)); sleep 0.01; done";
    let (_program, mut streams) = launch(script);
    let mut metric =
        open(r"stdout:t=(?<seconds>\d+) n=(?<value>\d+)", &MetricOptions::default(), &mut streams)
            .unwrap();
    assert_eq!(metric.meter.unit(), &Unit::rate("n/s"));
    assert_eq!(metric.notes[0], ProgramNote::MetricRead { counter: true, by_name: false });
    let measured = measure(&mut metric, 10, 60).unwrap();
    assert!((measured.performance - 250.0).abs() < 1e-9, "{measured:?}");
    // Two lines in the window have no spread.
    assert!(measured.spread.is_none_or(|spread| spread < 1e-6), "{measured:?}");
}

#[test]
fn a_printed_value_is_averaged_and_a_cost_is_its_reciprocal() {
    let script = "while :; do echo 'latency 4 us'; sleep 0.01; done";
    let (_program, mut streams) = launch(script);
    let options = MetricOptions {
        lower_is_better: true,
        unit: Some("us".into()),
        ..MetricOptions::default()
    };
    let mut metric = open(r"stdout:latency (\d+) us", &options, &mut streams).unwrap();
    assert_eq!(metric.meter.unit(), &Unit::cost("us"));
    assert_eq!(measure(&mut metric, 0, 50).unwrap().performance, 0.25);
}

#[test]
fn a_named_unit_is_that_of_the_rate_where_one_is_shown() {
    let named = |name: &str, interpretation, lower_is_better| {
        let options =
            MetricOptions { unit: Some(name.into()), lower_is_better, ..MetricOptions::default() };
        unit(&options, interpretation, Some("n".into()))
    };
    let counted = |name| named(name, Interpretation::Counter, false).name;
    assert_eq!(
        [counted("chunks"), counted("ops"), counted("apps")],
        ["chunks/s", "ops/s", "apps/s"]
    );
    for rate in ["chunks/s", "Mpps", "fps", "kHz", "blocks per minute"] {
        assert_eq!(counted(rate), rate, "says itself that it is a rate");
    }
    assert_eq!(
        named("misses", Interpretation::Counter, true),
        Unit::cost("misses/s"),
        "its rate is shown, too"
    );
    assert_eq!(named("us", Interpretation::Value, true), Unit::cost("us"));
    assert_eq!(named("W", Interpretation::Value, false), Unit::rate("W"));
}

#[test]
fn a_pattern_that_never_matches_shows_what_came_instead() {
    let (_program, mut streams) = launch("while :; do echo 'all is well'; sleep 0.01; done");
    let error = open(r"stdout:ops: (\d+)", &impatient(), &mut streams).unwrap_err();
    assert!(!error.is_usage());
    let error = error.to_string();
    assert!(
        error.contains("300 ms") && error.contains("lines") && error.contains("'all is well'"),
        "{error}"
    );
}

#[test]
fn a_program_that_ends_is_named_with_its_last_words() {
    let (_program, mut streams) = launch("echo 'no such device'");
    let error = open(r"stdout:ops: (\d+)", &MetricOptions::default(), &mut streams).unwrap_err();
    assert!(
        matches!(&error, MetricError::Closed { reason, .. } if reason.contains("no such device")),
        "{error}"
    );
}

#[test]
fn readings_that_never_change_leave_it_to_the_user() {
    let (_program, mut streams) = launch("while :; do echo n 7; sleep 0.01; done");
    let error = open(r"stdout:n (\d+)", &impatient(), &mut streams).unwrap_err();
    assert!(matches!(error, MetricError::Undecided { value: 7.0, .. }), "{error}");
    assert!(error.to_string().contains("--gauge"), "{error}");
}

#[test]
fn a_file_that_is_written_anew_is_read_like_a_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("status");
    let script = format!(
        "i=0; while :; do echo \"t=$i n=$((i * 40))\" > {0}.new; mv {0}.new {0}; i=$((i + 1)); \
         sleep 0.03; done",
        path.display()
    );
    let (_program, _) = launch(&script);
    let metric = format!(r"file:{}:t=(?<seconds>\d+) n=(?<value>\d+)", path.display());
    let mut metric = open(&metric, &MetricOptions::default(), &mut Streams::default()).unwrap();
    let measured = measure(&mut metric, 0, 100).unwrap();
    assert!((measured.performance - 40.0).abs() < 1e-9, "{measured:?}");
}

#[test]
fn a_command_s_counter_is_read_at_both_ends_of_the_window() {
    // By its own clock the counter grows 50 a second.
    let options = MetricOptions {
        pick: Some(Pattern::new(r"t=(?<seconds>[\d.]+) n=(?<value>[\d.]+)").unwrap()),
        interpretation: Some(Interpretation::Counter),
        ..MetricOptions::default()
    };
    let command = r#"cmd:awk '{ printf "t=%.2f n=%.2f\n", $1, $1 * 50 }' /proc/uptime"#;
    let mut metric = open(command, &options, &mut Streams::default()).unwrap();
    assert_eq!(metric.meter.unit(), &Unit::rate("n/s"));
    let measured = measure(&mut metric, 0, 100).unwrap();
    assert!((measured.performance - 50.0).abs() < 1e-6, "{measured:?}");
}

#[test]
fn a_file_of_the_kernel_is_a_source_on_demand() {
    let options = MetricOptions { interpretation: Some(Interpretation::Counter), ..impatient() };
    let mut metric =
        open(r"file:/proc/uptime:^([\d.]+)", &options, &mut Streams::default()).unwrap();
    assert!(measure(&mut metric, 0, 50).is_ok_and(|measured| measured.performance > 0.0));
}

#[test]
fn a_program_that_is_not_up_yet_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("n");
    let (_program, _) = launch(&format!(
        "sleep 0.2; i=0; while :; do echo $i > {}; i=$((i + 1)); sleep 0.002; done",
        path.display()
    ));
    let command = format!("cmd:grep . {}", path.display());
    let metric = open(&command, &MetricOptions::default(), &mut Streams::default());
    assert!(metric.is_ok(), "{metric:?}");
}

#[test]
fn a_command_that_always_fails_is_given_up_with_its_complaint() {
    let error = open("cmd:echo 'no route' >&2; exit 1", &impatient(), &mut Streams::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no route") && error.contains("exit status: 1"), "{error}");
    let silent = open("cmd:false", &impatient(), &mut Streams::default()).unwrap_err().to_string();
    let why = "'false' ended with exit status: 1 and printed nothing: it must print a number";
    assert!(silent.ends_with(why), "{silent}");
}

#[test]
fn options_that_do_not_fit_are_usage_errors() {
    let pick =
        MetricOptions { pick: Some(Pattern::new(r"(\d+)").unwrap()), ..MetricOptions::default() };
    let check = |metric: &str, options: &MetricOptions| {
        metric.parse::<MetricSpec>().unwrap().check(options, Some(&[])).unwrap_err()
    };
    assert!(matches!(check("io:rchar", &pick), MetricError::PickWithoutCommand { .. }));
    assert!(matches!(
        check(r"stdout:(\d)", &MetricOptions::default()),
        MetricError::NoStream { .. }
    ));
    assert!(matches!(check("runtime", &MetricOptions::default()), MetricError::RuntimeOfRunning));
    assert!(check("runtime", &MetricOptions::default()).is_usage());
}

#[test]
fn opening_and_measuring_can_be_interrupted() {
    let (_program, mut streams) = launch("sleep 5");
    let spec: MetricSpec = r"stdout:(\d+)".parse().unwrap();
    let began = Instant::now();
    let stopped = spec.open(&MetricOptions::default(), &mut streams, Box::new(Vec::new), &|| {
        began.elapsed().as_millis() > 50
    });
    assert!(matches!(stopped, Err(MetricError::Interrupted)), "{stopped:?}");
    let options =
        MetricOptions { interpretation: Some(Interpretation::Counter), ..MetricOptions::default() };
    let mut metric =
        open("cmd:cut -d' ' -f1 /proc/uptime", &options, &mut Streams::default()).unwrap();
    let error = metric
        .meter
        .measure(Duration::from_secs(60), Duration::from_secs(60), &|| true)
        .unwrap_err();
    assert!(error.interrupted);
}
