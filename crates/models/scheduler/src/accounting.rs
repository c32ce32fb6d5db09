//! Where the time of threads went: microstates as `prstat -m` of Solaris reports them, switches and
//! migrations.

use crate::time::Nanos;
use std::ops::{AddAssign, Sub};

/// What happened to one thread, or to several together, from the start or within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// On a context, the program's own instructions (USR); spinning on a lock is one of them.
    pub user: Nanos,
    /// On a context, for the operating system: switches, wake-ups (SYS).
    pub system: Nanos,
    /// Work of the program itself that was done, as time it takes alone on the machine. It is
    /// progress, whatever it took to get there.
    pub work: Nanos,
    /// Waiting for a lock, a barrier or a queue (LCK).
    pub lock: Nanos,
    /// Asleep: input and output (SLP).
    pub sleep: Nanos,
    /// Ready, waiting for a context (LAT).
    pub latency: Nanos,
    /// Switches because the thread had to wait for something (VCX).
    pub voluntary: u64,
    /// Switches because its time slice ended or a thread of higher priority came (ICX).
    pub involuntary: u64,
    /// Times it went on at another context than it ran on last.
    pub migrations: u64,
}

impl Account {
    /// On a context.
    pub fn busy(&self) -> Nanos {
        self.user + self.system
    }

    /// All states together: the time from start to end.
    pub fn elapsed(&self) -> Nanos {
        self.busy() + self.lock + self.sleep + self.latency
    }
}

impl AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
        self.work += other.work;
        self.lock += other.lock;
        self.sleep += other.sleep;
        self.latency += other.latency;
        self.voluntary += other.voluntary;
        self.involuntary += other.involuntary;
        self.migrations += other.migrations;
    }
}

impl Sub for Account {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user - earlier.user,
            system: self.system - earlier.system,
            work: self.work - earlier.work,
            lock: self.lock - earlier.lock,
            sleep: self.sleep - earlier.sleep,
            latency: self.latency - earlier.latency,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
            migrations: self.migrations - earlier.migrations,
        }
    }
}

/// The account of one thread and which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadAccount {
    /// Its role in the program: `main`, `workers`, `rank`.
    pub role: String,
    /// What happened to it.
    pub account: Account,
}

/// What happened to a program up to one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// The moment.
    pub at: Nanos,
    /// Time that contexts were busy, all together, with anything.
    pub busy: Nanos,
    /// What other programs had of it.
    pub others: Nanos,
    /// Every thread of the program.
    pub threads: Vec<ThreadAccount>,
}

impl Accounts {
    /// What happened between `earlier` and this moment.
    pub fn since(&self, earlier: &Self) -> Self {
        let threads = self.threads.iter().zip(&earlier.threads).map(|(now, before)| {
            ThreadAccount { role: now.role.clone(), account: now.account - before.account }
        });
        Self {
            at: self.at - earlier.at,
            busy: self.busy - earlier.busy,
            others: self.others - earlier.others,
            threads: threads.collect(),
        }
    }

    /// All threads together.
    pub fn total(&self) -> Account {
        self.sum(|_| true)
    }

    /// All threads of `role` together.
    pub fn role(&self, role: &str) -> Account {
        self.sum(|thread| thread.role == role)
    }

    fn sum(&self, belongs: impl Fn(&ThreadAccount) -> bool) -> Account {
        let mut sum = Account::default();
        for thread in self.threads.iter().filter(|thread| belongs(thread)) {
            sum += thread.account;
        }
        sum
    }
}
