//! Gives each thread of a program a unique name, a role and an instance, from its comm.
//!
//! pinwise knows only the `comm` of each thread (at most 15 bytes) and the order of creation.
//! Programs use the comm in four ways:
//!
//! | comm | role | instance |
//! |---|---|---|
//! | `ipfwd0-R`, `ipfwd1-R` (application, number, role) | `R` | 0, 1 |
//! | `rte-worker-1`, `worker3` (role, number) | `rte-worker`, `worker` | that of the process |
//! | `mc-worker` six times (role) | `mc-worker` | that of the process |
//! | `x265` several times, and no `x266` (role) | `x265` | that of the process |
//! | `pigz` ten times (the program's name) | `pigz` | that of the process |
//!
//! If several threads share a comm, their names get the order of creation. It counts from 0 over
//! the whole application: `pigz#3` is the fourth. A name means the same thread in every run if the
//! program creates its threads in the same order.

use pinwise_measure::Thread;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A thread to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnnamedThread<'a> {
    /// Its name as the kernel has it.
    pub comm: &'a str,
    /// The process that it belongs to or descends from, of those that the user named or launched,
    /// counted from 0.
    pub process: usize,
}

/// Names threads that are given in the order of their creation. Every name is unique.
pub fn name(found: &[UnnamedThread<'_>]) -> Vec<Thread> {
    let mut applications: BTreeMap<(usize, &str), BTreeSet<usize>> = BTreeMap::new();
    for thread in found {
        if let Some((application, number, _)) = numbered_application(thread.comm) {
            applications.entry((thread.process, application)).or_default().insert(number);
        }
    }
    // `x264-enc` is no instance 264 of an application `x`: instances count from 0 without a gap.
    let numbered = |thread: &UnnamedThread<'_>| {
        let (application, number, role) = numbered_application(thread.comm)?;
        let numbers = applications.get(&(thread.process, application))?;
        (numbers.iter().copied().eq(0..numbers.len())).then(|| (number, role.to_owned()))
    };
    let mut stems: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for thread in found {
        stems.entry(digits_off(thread.comm)).or_default().insert(thread.comm);
    }
    let unnumbered = |comm| {
        let role = without_number(comm);
        // The number of one thread alone is part of the program's name: `x265`, `pbzip2`.
        let alone = role == digits_off(comm) && stems[role].len() < 2;
        if alone { comm } else { role }.to_owned()
    };
    let split: Vec<(usize, String)> = found
        .iter()
        .map(|thread| numbered(thread).unwrap_or_else(|| (0, unnumbered(thread.comm))))
        .collect();
    // Instances of several processes follow each other.
    let pairs: BTreeSet<(usize, usize)> =
        found.iter().zip(&split).map(|(thread, (number, _))| (thread.process, *number)).collect();
    let instance_of: BTreeMap<(usize, usize), usize> =
        pairs.into_iter().enumerate().map(|(instance, pair)| (pair, instance)).collect();

    let orders = orders(found.iter().map(|thread| thread.comm).enumerate(), &HashMap::new());
    found
        .iter()
        .zip(split)
        .zip(orders)
        .map(|((thread, (number, role)), order)| {
            let name = match order {
                Some(order) => format!("{}#{order}", thread.comm),
                None => thread.comm.into(),
            };
            Thread::new(name, role, instance_of[&(thread.process, number)])
        })
        .collect()
}

/// The number of each thread among those of its comm, in the order of creation. `None` if it is the
/// only one. With its comm it is the thread's name. `threads` have their places in the order of
/// creation, ascending. `ended` has the places of more threads, ascending, by comm.
pub(crate) fn orders<'a>(
    threads: impl Iterator<Item = (usize, &'a str)> + Clone,
    ended: &HashMap<String, Vec<usize>>,
) -> Vec<Option<usize>> {
    let mut alike: HashMap<&str, usize> = HashMap::new();
    threads.clone().for_each(|(_, comm)| *alike.entry(comm).or_default() += 1);
    let mut seen: HashMap<&str, usize> = HashMap::new();
    threads
        .map(|(place, comm)| {
            let ended = ended.get(comm).map_or(&[][..], Vec::as_slice);
            let order = seen.entry(comm).or_default();
            *order += 1;
            (alike[comm] + ended.len() > 1)
                .then(|| *order - 1 + ended.partition_point(|&other| other < place))
        })
        .collect()
}

/// The comm and the number that a thread with this name has. There is one for each way to read the
/// name, as a `#` may also be part of the comm.
pub(crate) fn readings(name: &str) -> impl Iterator<Item = (&str, Option<usize>)> {
    let numbered = name.rsplit_once('#').and_then(|(comm, digits)| {
        let order: usize = digits.parse().ok()?;
        (order.to_string() == digits).then_some((comm, Some(order)))
    });
    numbered.into_iter().chain([(name, None)])
}

/// Splits `ipfwd0-R` into application, number and role.
fn numbered_application(comm: &str) -> Option<(&str, usize, &str)> {
    let (front, role) = comm.split_once('-')?;
    let application = front.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let number = front[application.len()..].parse().ok()?;
    let word = role.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && role.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (word && !application.is_empty()).then_some((application, number, role))
}

/// The comm without the number at its end and what joins it: `rte-worker-3`, `worker3`, `io_thd_1`.
/// A version (`telemetry-v2`) is part of the name.
fn without_number(comm: &str) -> &str {
    let joined = digits_off(comm);
    let stem = joined.trim_end_matches(['-', '_', '#', ':', '/', '.', ' ']);
    let version = joined.len() < comm.len()
        && joined.ends_with('v')
        && joined[..joined.len() - 1].ends_with(['-', '_']);
    if version || stem.is_empty() { comm } else { stem }
}

fn digits_off(comm: &str) -> &str {
    comm.trim_end_matches(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `name role instance` of every thread of one process.
    fn named(comms: &[&str]) -> Vec<String> {
        let found: Vec<UnnamedThread<'_>> =
            comms.iter().map(|comm| UnnamedThread { comm, process: 0 }).collect();
        name(&found)
            .into_iter()
            .map(|thread| format!("{} {} {}", thread.name, thread.role, thread.instance))
            .collect()
    }

    #[test]
    fn packet_pipelines_carry_application_instance_and_role() {
        assert_eq!(
            named(&["ipfwd0-R", "ipfwd0-P", "ipfwd0-T", "ipfwd1-R", "ipfwd1-P", "ipfwd1-T"]),
            [
                "ipfwd0-R R 0",
                "ipfwd0-P P 0",
                "ipfwd0-T T 0",
                "ipfwd1-R R 1",
                "ipfwd1-P P 1",
                "ipfwd1-T T 1"
            ]
        );
    }

    #[test]
    fn testpmd() {
        assert_eq!(
            named(&[
                "dpdk-testpmd",
                "eal-intr-thread",
                "rte_mp_handle",
                "rte-worker-1",
                "rte-worker-2",
                "telemetry-v1",
                "telemetry-v2"
            ]),
            [
                "dpdk-testpmd dpdk-testpmd 0",
                "eal-intr-thread eal-intr-thread 0",
                "rte_mp_handle rte_mp_handle 0",
                "rte-worker-1 rte-worker 0",
                "rte-worker-2 rte-worker 0",
                "telemetry-v1 telemetry-v1 0",
                "telemetry-v2 telemetry-v2 0"
            ]
        );
    }

    #[test]
    fn redis_memcached_and_pigz() {
        assert_eq!(
            named(&["redis-server", "bio_close_file", "io_thd_1", "io_thd_2", "jemalloc_bg_thd"]),
            [
                "redis-server redis-server 0",
                "bio_close_file bio_close_file 0",
                "io_thd_1 io_thd 0",
                "io_thd_2 io_thd 0",
                "jemalloc_bg_thd jemalloc_bg_thd 0"
            ]
        );
        assert_eq!(
            named(&["memcached", "mc-worker", "mc-worker", "mc-maint"]),
            [
                "memcached memcached 0",
                "mc-worker#0 mc-worker 0",
                "mc-worker#1 mc-worker 0",
                "mc-maint mc-maint 0"
            ]
        );
        assert_eq!(
            named(&["pigz", "pigz", "pigz"]),
            ["pigz#0 pigz 0", "pigz#1 pigz 0", "pigz#2 pigz 0"]
        );
    }

    #[test]
    fn a_number_in_a_word_is_no_instance() {
        assert_eq!(
            named(&["x264-enc", "x264-enc"]),
            ["x264-enc#0 x264-enc 0", "x264-enc#1 x264-enc 0"]
        );
        assert_eq!(
            named(&["pool-1-thread-3", "kworker/u8:1", "42", "", "-7"]),
            [
                "pool-1-thread-3 pool-1-thread 0",
                "kworker/u8:1 kworker/u8 0",
                "42 42 0",
                "  0",
                "-7 -7 0"
            ]
        );
    }

    #[test]
    fn the_number_of_a_program_is_part_of_its_role() {
        assert_eq!(named(&["x265", "x265"]), ["x265#0 x265 0", "x265#1 x265 0"]);
        assert_eq!(named(&["pbzip2", "worker"]), ["pbzip2 pbzip2 0", "worker worker 0"]);
        assert_eq!(named(&["worker0", "worker1"]), ["worker0 worker 0", "worker1 worker 0"]);
    }

    #[test]
    fn several_processes_are_several_instances() {
        let found = [("a0-R", 0), ("a1-R", 0), ("a0-R", 1), ("nginx", 2)]
            .map(|(comm, process)| UnnamedThread { comm, process });
        let threads = name(&found);
        let instances: Vec<usize> = threads.iter().map(|thread| thread.instance).collect();
        assert_eq!(instances, [0, 1, 2, 3]);
        assert_eq!(threads[0].name, "a0-R#0");
        assert_eq!(threads[2].name, "a0-R#1");
    }

    #[test]
    fn a_name_with_a_number_sign_is_read_both_ways() {
        let read = |name| readings(name).collect::<Vec<_>>();
        assert_eq!(read("pigz"), [("pigz", None)]);
        assert_eq!(read("pigz#3"), [("pigz", Some(3)), ("pigz#3", None)]);
        assert_eq!(read("a#b#03"), [("a#b#03", None)]);
    }

    proptest! {
        #[test]
        fn names_are_unique_and_a_later_thread_renames_no_role(
            comms in proptest::collection::vec(
                ("[a-c]{0,2}[0-2]{0,1}-?[a-bR]{0,2}[0-3]?", 0usize..3),
                0..24
            )
        ) {
            let found: Vec<UnnamedThread<'_>> = comms
                .iter()
                .map(|(comm, process)| UnnamedThread { comm, process: *process })
                .collect();
            let threads = name(&found);
            prop_assert_eq!(threads.len(), found.len());
            let comm_is_plain = found.iter().all(|thread| !thread.comm.contains('#'));
            prop_assert!(comm_is_plain);
            let names: BTreeSet<&String> = threads.iter().map(|thread| &thread.name).collect();
            prop_assert_eq!(names.len(), threads.len());
            let comms_in_order = comms.iter().map(|(comm, _)| comm.as_str()).enumerate();
            let orders = orders(comms_in_order, &HashMap::new());
            for ((thread, (comm, _)), order) in threads.iter().zip(&comms).zip(orders) {
                prop_assert!(readings(&thread.name).any(|one| one == (comm.as_str(), order)));
            }
            let used: BTreeSet<usize> = threads.iter().map(|thread| thread.instance).collect();
            prop_assert!(used.iter().copied().eq(0..used.len()), "instances count from 0 without a \
                gap");
        }

        #[test]
        fn a_thread_keeps_its_number_when_others_end(
            threads in proptest::collection::vec(("[ab]", any::<bool>()), 0..24)
        ) {
            let all = threads.iter().map(|(comm, _)| comm.as_str()).enumerate();
            let expected = orders(all.clone(), &HashMap::new()).into_iter().zip(&threads);
            let mut ended: HashMap<String, Vec<usize>> = HashMap::new();
            for (place, comm) in all.clone().filter(|(place, _)| threads[*place].1) {
                ended.entry(comm.into()).or_default().push(place);
            }
            let living = all.filter(|(place, _)| !threads[*place].1);
            let found = orders(living, &ended).into_iter();
            let expected = expected.filter(|(_, (_, ended))| !ended).map(|(order, _)| order);
            prop_assert!(found.eq(expected));
        }
    }
}
