//! Which threads of a workload are interchangeable, and which belong together.
//!
//! Instances whose threads have the same roles run the same *application*. Threads of one
//! application and one role are of one *kind*. A table that knows one of them knows them all. The
//! paper distinguishes all threads of an instance. If two of them have one role, that is more
//! experiments than needed.

use pinwise_measure::Workload;
use std::collections::BTreeMap;

/// A workload seen as applications, their instances, and kinds of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadKinds {
    kinds: Vec<ThreadKind>,
    /// The kind of every thread.
    kind_of: Vec<usize>,
    instances: Vec<Instance>,
    applications: usize,
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadKind {
    /// Which application, counted from 0.
    pub application: usize,
    /// Its role there.
    pub role: String,
}

/// One instance of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Which application it runs.
    pub application: usize,
    /// Its threads, by kind, then in the order of the workload. The n-th thread of two instances
    /// of one application is of one kind.
    pub threads: Vec<usize>,
}

impl ThreadKinds {
    /// The kinds of threads of `workload`. Kinds are numbered by application, then role;
    /// applications in order of appearance.
    pub fn new(workload: &Workload) -> Self {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, thread) in workload.threads.iter().enumerate() {
            members.entry(thread.instance).or_default().push(index);
        }
        let role = |thread: &usize| workload.threads[*thread].role.as_str();
        let mut rosters: Vec<Vec<&str>> = Vec::new();
        let mut instances = Vec::new();
        for mut threads in members.into_values() {
            threads.sort_by_key(|thread| (role(thread), *thread));
            let roster: Vec<&str> = threads.iter().map(role).collect();
            let application =
                rosters.iter().position(|known| *known == roster).unwrap_or_else(|| {
                    rosters.push(roster);
                    rosters.len() - 1
                });
            instances.push(Instance { application, threads });
        }
        let mut kinds = Vec::new();
        for (application, roster) in rosters.iter().enumerate() {
            let mut roles = roster.clone();
            roles.dedup();
            kinds.extend(
                roles.into_iter().map(|role| ThreadKind { application, role: role.to_owned() }),
            );
        }
        let mut kind_of = vec![0; workload.threads.len()];
        for instance in &instances {
            for thread in &instance.threads {
                let is_it = |kind: &ThreadKind| {
                    kind.application == instance.application && kind.role == role(thread)
                };
                // Every role of every application has been given a kind just now.
                kind_of[*thread] = kinds.iter().position(is_it).unwrap_or_default();
            }
        }
        Self { kinds, kind_of, instances, applications: rosters.len() }
    }

    /// The kinds of threads.
    pub fn kinds(&self) -> &[ThreadKind] {
        &self.kinds
    }

    /// The kind of a thread (which must exist).
    pub fn kind(&self, thread: usize) -> usize {
        self.kind_of[thread]
    }

    /// The instances.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// How many applications.
    pub fn applications(&self) -> usize {
        self.applications
    }

    /// How many threads.
    pub fn threads(&self) -> usize {
        self.kind_of.len()
    }

    /// How many threads of each kind.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.kinds.len()];
        self.kind_of.iter().for_each(|kind| counts[*kind] += 1);
        counts
    }

    /// One instance of an application (which must exist) alone: its threads are numbered in the
    /// order of [`Instance::threads`], and their kinds from 0.
    pub(crate) fn alone(&self, application: usize) -> Self {
        let roster = self.roster(application);
        let first = roster.first().copied().unwrap_or_default();
        let own = |kind: &&ThreadKind| kind.application == application;
        let kind = |kind: &ThreadKind| ThreadKind { application: 0, ..kind.clone() };
        Self {
            kinds: self.kinds.iter().filter(own).map(kind).collect(),
            kind_of: roster.iter().map(|kind| kind - first).collect(),
            instances: vec![Instance { application: 0, threads: (0..roster.len()).collect() }],
            applications: 1,
        }
    }

    /// The kinds of the threads of an application (which must exist), in the order of
    /// [`Instance::threads`].
    pub fn roster(&self, application: usize) -> Vec<usize> {
        let instance = self.instances.iter().find(|instance| instance.application == application);
        instance
            .map(|instance| instance.threads.iter().map(|thread| self.kind_of[*thread]).collect())
            .unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pinwise_measure::Thread;

    /// Instances by the roles of their threads: `"RPT RPT WW"`.
    pub(crate) fn workload(instances: &str) -> Workload {
        let thread = |(instance, role): (usize, char)| {
            Thread::new(format!("{role}{instance}"), role.to_string(), instance)
        };
        let threads = instances
            .split(' ')
            .enumerate()
            .flat_map(|(i, roles)| roles.chars().map(move |role| (i, role)));
        Workload { name: "made up".into(), threads: threads.map(thread).collect() }
    }

    #[test]
    fn threads_of_one_role_of_one_application_are_of_one_kind() {
        let thread_kinds = ThreadKinds::new(&workload("RPT RWW TPR WRW R"));
        assert_eq!(thread_kinds.applications(), 3);
        let kinds: Vec<(usize, &str)> = thread_kinds
            .kinds()
            .iter()
            .map(|kind| (kind.application, kind.role.as_str()))
            .collect();
        assert_eq!(kinds, [(0, "P"), (0, "R"), (0, "T"), (1, "R"), (1, "W"), (2, "R")]);
        assert_eq!(thread_kinds.counts(), [2, 2, 2, 2, 4, 1]);
        assert_eq!(thread_kinds.roster(1), [3, 4, 4]);
        assert_eq!(
            thread_kinds.instances()[2],
            Instance { application: 0, threads: vec![7, 8, 6] }
        );
        assert_eq!(thread_kinds.kind(9), 4);
    }
}
