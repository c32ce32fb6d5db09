//! A workload: the threads to place.

use pinwise_topology::CpuSet;
use serde::{Deserialize, Serialize};

/// The largest number of threads that a plan or a formula may name. More make no sense, and sums
/// of them could overflow.
pub const MOST_THREADS: u32 = 1 << 20;

/// One thread of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The name that users know: its `comm`, with its creation order if several share one
    /// (`pigz#3`).
    pub name: String,
    /// What it does, shared by threads that do the same (`R`, `worker`, the `comm` without its
    /// number).
    pub role: String,
    /// Which instance of the application it belongs to, counted from 0.
    pub instance: usize,
    /// The CPUs to which its program confines it; absent if it may use all those of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps_to: Option<CpuSet>,
}

impl Thread {
    /// A thread that may use all CPUs.
    pub fn new(name: impl Into<String>, role: impl Into<String>, instance: usize) -> Self {
        Self { name: name.into(), role: role.into(), instance, keeps_to: None }
    }
}

/// The application instances that run together, each with its threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The command or the name of a built-in program.
    pub name: String,
    /// The threads, in the order in which assignments number them.
    pub threads: Vec<Thread>,
}

impl Workload {
    /// A workload of instances, each with one thread for each of its roles. If the roles are `rx`
    /// and `tx`, the threads of the first instance are `rx0` and `tx0`.
    pub fn new(name: impl Into<String>, instances: &[&[&str]]) -> Self {
        let threads = instances.iter().enumerate().flat_map(|(instance, roles)| {
            roles.iter().map(move |role| Thread::new(format!("{role}{instance}"), *role, instance))
        });
        Self { name: name.into(), threads: threads.collect() }
    }

    /// The CPUs to which each thread keeps, as a space of assignments takes them.
    pub fn masks(&self) -> Vec<Option<CpuSet>> {
        self.threads.iter().map(|thread| thread.keeps_to.clone()).collect()
    }

    /// The threads of the `number`-th instance, counted in the order of [`Thread::instance`]; none
    /// if there are fewer instances.
    pub fn members(&self, number: usize) -> Vec<usize> {
        let mut instances: Vec<usize> = self.threads.iter().map(|thread| thread.instance).collect();
        instances.sort_unstable();
        instances.dedup();
        let Some(instance) = instances.get(number) else { return Vec::new() };
        (0..self.threads.len())
            .filter(|thread| self.threads[*thread].instance == *instance)
            .collect()
    }
}

/// A copy of one instance of a workload, which runs in a profile: see [`crate::Setting::Profile`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PinnedInstance {
    /// Its instance, as [`Workload::members`] counts them.
    pub instance: usize,
    /// The leaf of each of its threads, in the order in which the workload has them.
    pub leaves: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_keeps_the_mask_of_a_thread_and_an_older_one_has_none() {
        let old = r#"{"name":"w#1","role":"w","instance":0}"#;
        let free: Thread = serde_json::from_str(old).unwrap();
        assert_eq!((serde_json::to_string(&free).unwrap().as_str(), &free.keeps_to), (old, &None));
        let keeps_to = Some(CpuSet::parse_list("2-3").unwrap());
        let confined = Thread { keeps_to: keeps_to.clone(), ..free };
        let stored = serde_json::to_string(&confined).unwrap();
        assert_eq!(serde_json::from_str::<Thread>(&stored).unwrap(), confined);
        let workload = Workload { name: "w".into(), threads: vec![confined] };
        assert_eq!(workload.masks(), [keeps_to]);
    }
}
