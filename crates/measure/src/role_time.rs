//! How the threads of each role spend their time, and which role limits the program.
//!
//! More threads help if they join the threads that hold up all others. The paper calls these
//! critical (K. K. Pusukuri et al., "Thread Reinforcer", IISWC 2011, section II). Examples are the
//! workers of most programs, the Rank stage of ferret, and the main thread of blackscholes. Its
//! authors knew the programs. Here the critical role is found by measurement. Its threads are never
//! without work, and the others wait for them. So it is the role whose threads compute for the
//! largest share of their time. Time in which they only lack a context counts too.

use serde::{Deserialize, Serialize};

/// The threads of one role over a window, on average. `ran + waited + locked + slept = 1`, where
/// `locked` is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleTime {
    /// The role.
    pub role: String,
    /// Its threads.
    pub threads: u32,
    /// Share of their time on a context.
    pub ran: f64,
    /// Share in which they waited for one: a run queue's length over its threads.
    pub waited: f64,
    /// Share in which they waited for other threads. `None` if this is not allowed to be observed;
    /// then it is part of `slept`.
    pub locked: Option<f64>,
    /// Share in which they waited for something else, or had nothing to do.
    pub slept: f64,
    /// Voluntary context switches of one thread, per second.
    pub voluntary_rate: f64,
    /// Involuntary context switches of one thread, per second.
    pub involuntary_rate: f64,
    /// Migrations of one thread, per second; `None` if the system does not report them.
    pub migration_rate: Option<f64>,
    /// Whether the program waits for this role; see [`mark_critical`].
    pub critical: bool,
}

/// A role counts as critical down to this share of the most wanted role's time.
const NEARLY: f64 = 0.9;

/// Marks the roles whose threads compute or wait for a context for long. The limit is nine tenths
/// of the role that does so most. None is marked if none ran.
pub fn mark_critical(roles: &mut [RoleTime]) {
    let wanted = |role: &RoleTime| role.ran + role.waited;
    let most = roles.iter().filter(|role| role.ran > 0.0).map(wanted).fold(0.0, f64::max);
    for role in roles {
        role.critical = role.ran > 0.0 && wanted(role) >= most * NEARLY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_of(role: &str, ran: f64, waited: f64) -> RoleTime {
        RoleTime {
            role: role.into(),
            threads: 1,
            ran,
            waited,
            locked: None,
            slept: 1.0 - ran - waited,
            voluntary_rate: 0.0,
            involuntary_rate: 0.0,
            migration_rate: None,
            critical: false,
        }
    }

    #[test]
    fn the_paper_s_critical_threads_are_found_from_its_table_of_ferret() {
        // Table IV, n = 11: USR and SYS of load, USR of the others. From n = 15 on the loading
        // thread is busy all the time as well.
        let stages = [
            ("load", 0.673),
            ("segment", 0.054),
            ("extract", 0.01),
            ("vector", 0.40),
            ("rank", 1.0),
            ("out", 0.007),
        ];
        let mut roles: Vec<RoleTime> =
            stages.iter().map(|(role, ran)| time_of(role, *ran, 0.0)).collect();
        mark_critical(&mut roles);
        let critical: Vec<&str> =
            roles.iter().filter(|role| role.critical).map(|role| role.role.as_str()).collect();
        assert_eq!(critical, ["rank"]);
    }

    #[test]
    fn a_thread_that_waits_for_a_context_is_wanted_as_one_that_has_it() {
        let mut roles =
            [time_of("starved", 0.1, 0.9), time_of("served", 0.95, 0.0), time_of("idle", 0.0, 0.0)];
        mark_critical(&mut roles);
        assert_eq!(roles.map(|role| role.critical), [true, true, false]);
    }

    #[test]
    fn where_nothing_ran_nothing_is_critical() {
        let mut roles = [time_of("a", 0.0, 0.0), time_of("b", 0.0, 0.0)];
        mark_critical(&mut roles);
        assert!(roles.iter().all(|role| !role.critical));
    }
}
