//! Files as perf 2.6 to 6 writes them. Those of 6.1 were recorded, the others follow its history.

use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> RecordedFile {
    RecordedFile::parse(text).unwrap()
}

/// The counts of the program in each interval.
fn program(text: &str) -> Vec<EventCounts> {
    parsed(text).of_subject(&RecordedSubject::Program)
}

fn counts(counts: &EventCounts) -> Vec<(CounterEvent, f64)> {
    counts.counts.iter().map(|(&event, &count)| (event, count)).collect()
}

const INTERVALS: &str = "\
# started on Fri Nov 27 21:14:16 2026

     0.101260206,50.24,msec,task-clock,50243623,100.00,0.502,CPUs utilized
     0.101260206,12,,context-switches,50243623,100.00,238.836,/sec
     0.101260206,<not supported>,,cycles,0,100.00,,
     0.101260206,64,,page-faults,50243623,100.00,1.274,K/sec
     0.194062615,44.24,msec,task-clock,44242786,100.00,0.442,CPUs utilized
     0.194062615,11,,context-switches,44242786,100.00,248.628,/sec
     0.194062615,<not supported>,,cycles,0,100.00,,
     0.194062615,0,,page-faults,44242786,100.00,0.000,/sec
";

#[test]
fn intervals_of_a_program_are_read() {
    let file = parsed(INTERVALS);
    assert_eq!(file.uncounted, [CounterEvent::Cycles].into());
    let intervals = file.of_subject(&RecordedSubject::Program);
    assert_eq!(
        counts(&intervals[0]),
        [
            (CounterEvent::TaskClock, 50.24e6),
            (CounterEvent::ContextSwitches, 12.0),
            (CounterEvent::PageFaults, 64.0)
        ]
    );
    assert_eq!((intervals[0].seconds, intervals[0].counted), (0.101260206, 1.0));
    assert!((intervals[1].seconds - 0.092802409).abs() < 1e-12);
    assert_eq!(intervals.len(), 2);
}

#[test]
fn without_intervals_a_file_is_one_of_unknown_length() {
    let text = "2.23;msec;task-clock;2228313;100.00;0.021;CPUs utilized\n\
                0;;cpu-migrations;2228313;100.00;0.000;/sec\n\
                <not supported>;;instructions;0;100.00;;\n\
                138;;faults;2228313;100.00;61.930;K/sec\n";
    let [interval] = &program(text)[..] else { panic!("one interval") };
    assert_eq!(interval.seconds, 0.0);
    assert_eq!(
        counts(interval),
        [
            (CounterEvent::TaskClock, 2.23e6),
            (CounterEvent::Migrations, 0.0),
            (CounterEvent::PageFaults, 138.0)
        ]
    );
}

#[test]
fn threads_have_lines_of_their_own() {
    let text = "\
     0.108522254,sh-28035,41.92,msec,task-clock,41919327,100.00,0.419,CPUs utilized
     0.108522254,sh-28035,12,,context-switches,41919327,100.00,286.264,/sec
     0.108522254,Web Content-7,3,,context-switches,41919327,100.00,1.0,/sec
     0.208827052,sh-28035,48.36,msec,task-clock,48356456,100.00,0.484,CPUs utilized
";
    let file = parsed(text);
    let thread = |comm: &str, tid| RecordedSubject::Thread { tid: Tid(tid), comm: comm.into() };
    let (sh, web) = (thread("sh", 28035), thread("Web Content", 7));
    assert_eq!(file.subjects(), [&web, &sh].into());
    assert_eq!(file.of_subject(&sh).len(), 2);
    assert_eq!(counts(&file.of_subject(&web)[0]), [(CounterEvent::ContextSwitches, 3.0)]);
}

#[test]
fn old_versions_write_fewer_fields() {
    // Linux 3.2: a value and an event. Times in milliseconds.
    let old = program("1000,cycles\n2000,instructions\n1.500000,task-clock\n7,r01c0\n");
    let expected = [
        (CounterEvent::Cycles, 1000.0),
        (CounterEvent::Instructions, 2000.0),
        (CounterEvent::TaskClock, 1.5e6),
    ];
    assert_eq!(counts(&old[0]), expected);
    // The same with a control group, which is no event.
    assert_eq!(counts(&program("1000,cycles,web\n")[0]), [(CounterEvent::Cycles, 1000.0)]);
    // 3.8 with -I, then 3.14 with the unit: four fields.
    let three = program("     1.000203,1000,cycles\n     2.000401,1100,cycles\n");
    assert_eq!(three.len(), 2);
    let four = program("     1.000203,1000,,cycles\n     2.000401,1100,,cycles\n");
    assert_eq!(three, four);
    assert!((four[1].seconds - 1.000198).abs() < 1e-12);
    // Repetitions have a spread.
    let repeated = program("1000,,cycles,0.59%,1126442,50.00,,\n");
    assert_eq!((repeated[0].get(CounterEvent::Cycles), repeated[0].counted), (Some(1000.0), 0.5));
}

#[test]
fn what_was_not_counted_in_an_interval_is_left_out_of_it() {
    let text = "     0.1,1274489,,cycles,1274489,40.00,,\n\
                     0.1,9,,l2_rqsts.miss:u,1274489,60.00,,\n\
                     0.2,<not counted>,,cycles,0,0.00,,\n\
                     0.2,9,,l2_rqsts.miss:u,1274489,100.00,,\n";
    let file = parsed(text);
    assert!(file.uncounted.is_empty());
    let intervals = file.of_subject(&RecordedSubject::Program);
    assert_eq!(
        (intervals[0].get(CounterEvent::Cycles), intervals[0].counted),
        (Some(1274489.0), 0.4)
    );
    assert_eq!(counts(&intervals[1]), [(CounterEvent::L2Misses, 9.0)]);
    assert_eq!(intervals[1].counted, 1.0);
}

#[test]
fn kinds_of_cores_are_added_by_their_share_of_the_time() {
    // perf scales each kind to the whole time: 40 % of 500 and 60 % of 100 were counted.
    let text = "1.0,500,,cpu_core/cycles/u,400000,40.00,,\n\
                1.0,100,,cpu_atom/cycles/u,600000,60.00,,\n\
                1.0,<not counted>,,cpu_atom/instructions/,0,0.00,,\n\
                1.0,800,,cpu_core/instructions/,1000000,100.00,,\n";
    let [interval] = &program(text)[..] else { panic!("one interval") };
    assert_eq!(
        counts(interval),
        [(CounterEvent::Cycles, 260.0), (CounterEvent::Instructions, 800.0)]
    );
    assert_eq!(interval.counted, 1.0);
}

#[test]
fn parts_of_an_event_are_added_and_a_second_name_of_one_is_not() {
    let text = "10,,fp_arith_inst_retired.scalar_double,100,100.00,,\n\
                5,,fp_arith_inst_retired.128b_packed_double,50,50.00,,\n\
                7,,LLC-load-misses,100,100.00,,\n\
                9,,LONGEST_LAT_CACHE.MISS,100,100.00,,\n\
                7,,LLC-load-misses,100,100.00,,\n\
                3,,bus-cycles,100,100.00,,\n";
    let [interval] = &program(text)[..] else { panic!("one interval") };
    assert_eq!(
        counts(interval),
        [(CounterEvent::LlcMisses, 7.0), (CounterEvent::FpOperations, 15.0)]
    );
    assert_eq!(interval.counted, 0.5);
}

#[test]
fn a_kind_of_core_has_its_own_name_of_an_event_and_an_event_needs_every_kind() {
    let text = "1.0,500,,cpu_core/l2_rqsts.miss/,400000,40.00,,\n\
                1.0,100,,cpu_atom/longest_lat_cache.reference/,600000,60.00,,\n\
                1.0,70,,cpu_core/fp_arith_inst_retired.scalar_double/,400000,40.00,,\n\
                1.0,900,,cpu_core/instructions/,400000,40.00,,\n\
                1.0,<not supported>,,cpu_atom/instructions/,0,100.00,,\n\
                1.0,800,,cycles,1000000,100.00,,\n\
                1.0,3,,page-faults,1000000,100.00,,\n";
    let file = parsed(text);
    // 40 % of 500 and 60 % of 100.
    assert_eq!(
        counts(&file.of_subject(&RecordedSubject::Program)[0]),
        [(CounterEvent::L2Misses, 260.0), (CounterEvent::PageFaults, 3.0)]
    );
    let lacking = [CounterEvent::Cycles, CounterEvent::Instructions, CounterEvent::FpOperations];
    assert_eq!(file.uncounted, lacking.into());
}

#[test]
fn the_only_kind_of_core_may_be_named_or_not() {
    for pmu in ["cpu", "armv8_pmuv3_0"] {
        let text = format!("1.0,800,,cycles,100,100.00,,\n1.0,801,,{pmu}/cycles/,100,100.00,,\n");
        assert_eq!(counts(&program(&text)[0]), [(CounterEvent::Cycles, 800.0)]);
    }
}

#[test]
fn the_first_name_that_was_counted_counts() {
    let text = "1.0,<not supported>,,LLC-load-misses,0,100.00,,\n\
                1.0,<not counted>,,ll_cache_miss_rd,0,0.00,,\n\
                1.0,9,,longest_lat_cache.miss,100,100.00,,\n\
                1.0,<not counted>,,cycles,0,0.00,,\n\
                1.0,7,,cycles,100,100.00,,\n";
    let found = [(CounterEvent::Cycles, 7.0), (CounterEvent::LlcMisses, 9.0)];
    assert_eq!(counts(&program(text)[0]), found);
}

#[test]
fn parts_that_hold_other_parts_are_not_added_and_one_that_was_missed_leaves_no_count() {
    let text = "1.0,10,,fp_arith_inst_retired.scalar_double,100,100.00,,\n\
                1.0,5,,fp_arith_inst_retired.512b_packed_single,100,100.00,,\n\
                1.0,15,,fp_arith_inst_retired.4_flops,100,100.00,,\n\
                1.0,15,,fp_arith_inst_retired.vector,100,100.00,,\n\
                1.0,15,,fp_arith_inst_retired,100,100.00,,\n\
                1.0,2,,ls_refills_from_sys.ls_mabresp_lcl_dram,100,100.00,,\n\
                1.0,1,,ls_refills_from_sys.ls_mabresp_rmt_dram,100,100.00,,\n\
                2.0,10,,fp_arith_inst_retired.scalar_double,100,100.00,,\n\
                2.0,<not counted>,,fp_arith_inst_retired.512b_packed_single,0,0.00,,\n";
    let found = program(text);
    let expected = [(CounterEvent::LlcMisses, 3.0), (CounterEvent::FpOperations, 15.0)];
    assert_eq!(counts(&found[0]), expected);
    assert_eq!(counts(&found[1]), []);
}

#[test]
fn an_interval_without_a_thread_has_no_counts_of_it() {
    let file = parsed("1.0,a-7,5,,cycles\n2.0,b-8,6,,cycles\n3.0,a-7,9,,cycles\n");
    let a = RecordedSubject::Thread { tid: Tid(7), comm: "a".into() };
    let cycles: Vec<_> =
        file.of_subject(&a).iter().map(|counts| counts.get(CounterEvent::Cycles)).collect();
    assert_eq!(cycles, [Some(5.0), None, Some(9.0)]);
}

#[test]
fn terms_with_the_separator_metrics_and_sums_do_not_disturb() {
    let text = "\
     1.0,5,,cpu/event=0xc0,umask=0x1/,1000,100.00,,
     1.0,,,,,,0.69,insn per cycle
     1.0,4,,cycles,1000,100.00,,
     2.0,6,,cycles,1000,100.00,,
         summary,10,,cycles,2000,100.00,,
";
    let found: Vec<_> = program(text).iter().map(|one| one.get(CounterEvent::Cycles)).collect();
    assert_eq!(found, [Some(4.0), Some(6.0)]);
    // Older versions write the sum without a word, and a second run may be appended.
    let text = "1.0,4,,cycles\n2.0,6,,cycles\n10,,cycles\n0.5,3,,cycles\n";
    let found: Vec<_> =
        program(text).iter().map(|one| (one.seconds, one.get(CounterEvent::Cycles))).collect();
    assert_eq!(found, [(1.0, Some(4.0)), (1.0, Some(6.0)), (0.5, Some(3.0))]);
}

#[test]
fn a_file_that_is_none_is_refused_with_its_line_and_what_to_run() {
    let refused = |text: &str| RecordedFile::parse(text).unwrap_err();
    let human = "#           time             counts unit events\n     \
                 0.101361955               1.19 msec task-clock    #    0.012 CPUs utilized\n";
    assert_eq!(
        refused(human),
        NotRecorded { line: 2, reason: NotRecordedReason::NoCounts },
        "perf without -x"
    );
    let json =
        "{\"counter-value\" : \"1.007017\", \"unit\" : \"msec\", \"event\" : \"task-clock\"}";
    for text in [json, "time,ipc\n1,2\n", "a,b,c\n", "1,2,3\n", "1;2\n", "<html>\n", "0.5\n"] {
        assert_eq!(refused(text).reason, NotRecordedReason::NoCounts, "{text}");
    }
    for text in [
        "CPU0,120.04,msec,task-clock,120038030,100.00,1.000,CPUs utilized\n",
        "S0-D0-C0,1,106.80,msec,task-clock,106803959,100.00,1.000,CPUs utilized\n",
        "1.0,S0,4,1000,,cycles\n",
    ] {
        assert_eq!(refused(text).reason, NotRecordedReason::OfCpus, "{text}");
    }
    for text in ["", "3,,bus-cycles\n"] {
        assert_eq!(refused(text).reason, NotRecordedReason::NoKnownEvent);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    std::fs::write(&path, "1,,cycles\nSegmentation fault\n").unwrap();
    let error = RecordedFile::read(&path).unwrap_err().to_string();
    let said = format!(
        "{}: line 2: no line of 'perf stat -x,': record with 'perf stat -x, -I 100 -o FILE -e \
         cycles,instructions,… COMMAND'",
        path.display()
    );
    assert_eq!(error, said);
    assert!(RecordedFile::read(folder.path()).is_err());
}

/// What lines of perf are made of, and what disturbs them.
const PIECES: [&str; 24] = [
    "0.1",
    "12",
    "1e30",
    "-1",
    "0",
    "",
    "<not counted>",
    "<not supported>",
    "msec",
    "task-clock",
    "cycles",
    "cpu_core/cycles/",
    "cpu/event=1",
    "umask=2/",
    "cs:u",
    "sh-42",
    "-1-7",
    "S0",
    "CPU0",
    "50.00",
    "0.59%",
    "summary",
    "#",
    "NaN",
];

proptest! {
    #[test]
    fn any_text_gives_finite_counts_or_a_refusal(
        lines in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..10), 0..8),
        separator in proptest::sample::select(vec![",", ";", "|"]),
    ) {
        let lines: Vec<String> = lines.iter().map(|pieces| pieces.join(separator)).collect();
        if let Ok(file) = RecordedFile::parse(&lines.join("\n")) {
            prop_assert!(!file.intervals.is_empty());
            for counts in file.intervals.iter().flat_map(BTreeMap::values) {
                prop_assert!(counts.seconds >= 0.0 && counts.seconds.is_finite());
                prop_assert!(counts.counted > 0.0 && counts.counted <= 1.0);
                prop_assert!(counts.counts.values().all(|&count| (0.0..1e31).contains(&count)));
            }
        }
    }

    #[test]
    fn what_perf_writes_of_any_counts_is_read_again(
        values in proptest::collection::vec((0u32..1 << 30, 1u32..=10_000), 1..40),
        threads in any::<bool>(),
        separator in proptest::sample::select(vec![",", ";", "\t"]),
    ) {
        let line = |(index, (count, share)): (usize, &(u32, u32))| {
            let owner = if threads { "a b,c-42" } else { "" };
            let end = format!("{:17.9}", (index + 1) as f64 * 0.1);
            let value = if *share == 1 { "<not counted>".into() } else { count.to_string() };
            let percent = format!("{:.2}", f64::from(*share) / 100.0);
            let mut fields = vec![end.as_str(), &value, "", "instructions:u", "500"];
            fields.extend([percent.as_str(), "", ""]);
            if threads {
                // A name with the separator needs another one, as perf's manual says.
                fields.insert(1, if separator == "," { "ab-42" } else { owner });
            }
            fields.join(separator)
        };
        let text: Vec<String> = values.iter().enumerate().map(line).collect();
        let file = parsed(&text.join("\n"));
        let subject = file.subjects().into_iter().next().cloned();
        let read = subject.map(|subject| file.of_subject(&subject)).unwrap_or_default();
        for (interval, (count, share)) in read.iter().zip(&values) {
            let found = interval.get(CounterEvent::Instructions);
            match share {
                1 => prop_assert_eq!(found, None),
                _ => prop_assert!((found.unwrap() - f64::from(*count)).abs() < 1e-3),
            }
        }
    }
}
