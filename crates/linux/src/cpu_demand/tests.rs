//! Observations recorded on two CPUs (Linux 6.18, 250 Hz) beside threads that spin without pause on
//! the same CPU.

use super::*;
use crate::thread_scan::worth_placing;
use proptest::prelude::*;

/// Microseconds; nanoseconds run and waited; slices; state.
type Row = (u64, u64, u64, u64, char);

/// Sleeps 5 ms again and again and does a few microseconds of work in between, next to 16 spinning
/// threads.
const HELPER: &[Row] = &[
    (61, 0, 0, 0, 'S'),
    (10848, 14005, 2910878, 1, 'R'),
    (21340, 44715, 8725857, 3, 'S'),
    (31797, 60438, 11642917, 4, 'S'),
    (42211, 97566, 14549960, 6, 'S'),
    (52637, 158049, 14549960, 8, 'S'),
    (63134, 171290, 18174860, 9, 'S'),
    (73503, 185786, 21100257, 10, 'S'),
    (83940, 200530, 24009536, 11, 'R'),
    (94356, 230846, 29846837, 13, 'S'),
    (104738, 251369, 32777986, 14, 'S'),
    (115142, 296097, 35680876, 16, 'S'),
    (125494, 313656, 37479610, 17, 'S'),
    (135863, 330702, 40359070, 18, 'R'),
    (148987, 359568, 45369779, 20, 'S'),
    (160984, 388734, 52022480, 22, 'S'),
    (172990, 404849, 54944612, 23, 'S'),
    (183419, 417997, 57853101, 24, 'R'),
    (197833, 481294, 60441550, 27, 'S'),
    (208193, 518906, 62776312, 29, 'S'),
    (221026, 551121, 66218496, 31, 'S'),
    (233096, 575044, 68760834, 32, 'S'),
    (251329, 609415, 74338024, 34, 'R'),
    (278034, 671215, 82521898, 38, 'R'),
    (299120, 730758, 89100333, 41, 'S'),
    (309975, 805459, 89100333, 43, 'R'),
    (324810, 840447, 90790835, 45, 'R'),
    (336996, 896559, 96288226, 47, 'S'),
    (349074, 947802, 99694232, 49, 'S'),
];

/// The same next to 100 spinning threads: it is runnable in more than half of the looks.
const HELPER_IN_A_CROWD: &[Row] = &[
    (621, 0, 0, 0, 'S'),
    (39053, 38098, 26855391, 1, 'R'),
    (50828, 70761, 37768120, 2, 'S'),
    (65336, 129559, 43537750, 4, 'S'),
    (78421, 180669, 53334006, 6, 'S'),
    (109373, 265414, 61530287, 9, 'S'),
    (139916, 333126, 70746267, 12, 'R'),
    (165359, 379275, 86168492, 14, 'R'),
    (189398, 412969, 103358264, 15, 'R'),
    (213377, 448575, 130238551, 16, 'S'),
    (237370, 509408, 136007590, 18, 'R'),
    (265373, 586365, 161857288, 20, 'S'),
    (285375, 586365, 161857288, 20, 'R'),
    (309355, 652078, 191566461, 22, 'S'),
    (327546, 684718, 198484093, 23, 'R'),
    (349372, 720936, 221362578, 24, 'S'),
    (369361, 781323, 235142330, 26, 'S'),
    (389376, 840104, 244958348, 28, 'S'),
    (409366, 919119, 247822781, 30, 'R'),
    (433370, 981939, 265620602, 31, 'R'),
    (453369, 1018040, 288438012, 32, 'S'),
    (473373, 1018040, 288438012, 32, 'R'),
    (497344, 1053910, 311325756, 33, 'R'),
    (513373, 1087935, 326218941, 34, 'R'),
];

/// Spins at nice 5 next to 10 spinning threads at nice 0; its first wait began before it was
/// watched.
const STARVED: &[Row] = &[
    (589, 0, 0, 0, 'R'),
    (24214, 0, 0, 0, 'R'),
    (44206, 0, 0, 0, 'R'),
    (56189, 0, 0, 0, 'R'),
    (80212, 0, 0, 0, 'R'),
    (92179, 0, 0, 0, 'R'),
    (110344, 0, 0, 0, 'R'),
    (132183, 2373957, 233597070, 1, 'R'),
    (148322, 2373957, 233597070, 1, 'R'),
    (160481, 2373957, 233597070, 1, 'R'),
    (172368, 2373957, 233597070, 1, 'R'),
    (200259, 2373957, 233597070, 1, 'R'),
    (220190, 2373957, 233597070, 1, 'R'),
    (230644, 2373957, 233597070, 1, 'R'),
    (252217, 2373957, 233597070, 1, 'R'),
    (265555, 6336884, 377646846, 2, 'R'),
    (296264, 6336884, 377646846, 2, 'R'),
    (320256, 6336884, 377646846, 2, 'R'),
];

/// Spins at nice 19 next to 16 spinning threads at nice 0, and gets no CPU at all.
const NEVER_RAN: &[Row] =
    &[(609, 0, 0, 0, 'R'), (11124, 0, 0, 0, 'R'), (173172, 0, 0, 0, 'R'), (349301, 0, 0, 0, 'R')];

fn look(&(at, ran, waited, slices, state): &Row) -> ThreadSample {
    let account = SchedulerTimes {
        ran: Duration::from_nanos(ran),
        waited: Duration::from_nanos(waited),
        slices,
    };
    ThreadSample { at: Duration::from_micros(at), account, runnable: state == 'R' }
}

/// The demand that the looks show, and how long they lasted.
fn watched(rows: &[Row]) -> (CpuDemand, Duration) {
    let mut demand = CpuDemand::from(look(&rows[0]));
    rows[1..].iter().for_each(|row| demand.see(look(row)));
    (demand, Duration::from_micros(rows[rows.len() - 1].0 - rows[0].0))
}

fn share(rows: &[Row]) -> f64 {
    let (demand, elapsed) = watched(rows);
    demand.share(elapsed)
}

/// An earlier measure that does not work: the time a thread ran or waited.
fn ran_or_waited(rows: &[Row]) -> f64 {
    let (demand, elapsed) = watched(rows);
    (demand.ran() + demand.waited()).as_secs_f64() / elapsed.as_secs_f64()
}

#[test]
fn a_helper_that_waits_most_of_its_time_wants_little() {
    for rows in [HELPER, HELPER_IN_A_CROWD] {
        assert!(ran_or_waited(rows) > 0.25, "{}", ran_or_waited(rows));
        assert!(share(rows) < 0.01, "{}", share(rows));
        // Two thirds of the time or more were its own, so its scan is not extended.
        assert!(watched(rows).0.own() > watched(rows).1 / 3);
    }
    // 0.947802 ms of 349.013 ms; it waited for 99.694 ms of these.
    assert!((share(HELPER) - 0.947_802 / (349.013 - 99.694_232)).abs() < 1e-9, "{}", share(HELPER));
}

#[test]
fn a_thread_that_spins_wants_a_whole_cpu_however_little_it_gets() {
    let (starved, elapsed) = watched(STARVED);
    assert!(starved.ran().as_secs_f64() / elapsed.as_secs_f64() < 0.02);
    assert!(share(STARVED) > 0.1, "{}", share(STARVED));
    assert_eq!(share(NEVER_RAN), 1.0);
    for rows in [STARVED, NEVER_RAN] {
        assert!(worth_placing(share(rows), 1.0), "beside one that has a CPU alone");
    }
    assert!(!worth_placing(share(HELPER_IN_A_CROWD), 1.0));
    let (never, elapsed) = watched(NEVER_RAN);
    assert!(never.own() < elapsed / 20, "it had no chance to show more: the scan is extended");
}

#[test]
fn a_wait_that_began_before_the_watch_counts_only_as_far_as_it_lies_in_it() {
    let rows = [
        (0, 0, 0, 0, 'R'),
        (10_000, 1_000_000, 5_000_000_000, 1, 'S'),
        (20_000, 1_000_000, 5_000_000_000, 1, 'S'),
    ];
    let (demand, elapsed) = watched(&rows);
    assert_eq!(
        (demand.waited(), demand.own()),
        (Duration::from_millis(9), Duration::from_millis(11))
    );
    assert!((demand.share(elapsed) - 1.0 / 11.0).abs() < 1e-9);
}

#[test]
fn a_thread_that_sleeps_wants_nothing_and_one_that_runs_alone_all() {
    assert_eq!(share(&[(0, 5, 0, 1, 'S'), (10_000, 5, 0, 1, 'S'), (20_000, 5, 0, 1, 'S')]), 0.0);
    assert_eq!(
        share(&[
            (0, 0, 0, 1, 'R'),
            (10_000, 10_000_000, 0, 1, 'R'),
            (20_000, 20_000_000, 0, 1, 'R')
        ]),
        1.0
    );
}

#[test]
fn a_thread_seen_at_its_creation_has_all_its_cpu_time() {
    let first = look(&(2_000, 2_000_000, 0, 1, 'R'));
    let mut demand = CpuDemand::from_birth(first);
    demand.see(look(&(10_000, 9_000_000, 1_000_000, 2, 'S')));
    assert_eq!(demand.ran(), Duration::from_millis(9));
}

proptest! {
    #[test]
    fn parts_of_the_time_never_exceed_it(
        steps in proptest::collection::vec(
            (1u64..50_000, 0u64..60_000_000, 0u64..60_000_000, 0u64..3, any::<bool>()),
            2..40
        )
    ) {
        let (mut at, mut account) = (Duration::ZERO, SchedulerTimes::default());
        let mut looks = steps.into_iter().map(|(micros, ran, waited, slices, runnable)| {
            at += Duration::from_micros(micros);
            account.ran += Duration::from_nanos(ran);
            account.waited += Duration::from_nanos(waited);
            account.slices += slices;
            ThreadSample { at, account, runnable }
        });
        let first = looks.next().unwrap();
        let mut demand = CpuDemand::from(first);
        for look in looks {
            demand.see(look);
            let elapsed = look.at - first.at;
            prop_assert!(demand.waited() <= elapsed && demand.own() <= elapsed);
            prop_assert!((0.0..=1.0).contains(&demand.share(elapsed)));
        }
    }
}
