//! The power of the processor, from the kernel's energy counters (powercap; RAPL on Intel and AMD).
//!
//! *Terms.* A *zone* counts the energy of a part of the machine in microjoules. It starts anywhere,
//! goes up to its range and begins again at 0. Packages have their own zones (`intel-rapl:0`).
//! Memory is below a package in the tree but not in its count, so it is added. A zone of the whole
//! board (`psys`) contains the others and is left out.
//!
//! *Limits.* Whatever else runs on the machine counts too. A counter that wraps twice between two
//! readings goes unnoticed; at 200 W that takes more than 20 minutes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel keeps them.
pub const POWERCAP: &str = "/sys/class/powercap";

/// Why power cannot be read. One line.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// No counters.
    #[error(
        "{}: no counters of energy here (RAPL): a virtual machine has none, a kernel may lack the \
         module intel_rapl_msr", .0.display()
    )]
    Absent(PathBuf),
    /// Counters that may not be read.
    #[error("{}: {cause}; since Linux 5.10 only root may read energy: run pinwise as root, or sudo \
        chmod a+r that file", file.display())]
    Unreadable {
        /// The counter.
        file: PathBuf,
        /// Why not.
        cause: io::Error,
    },
}

/// The counters of all packages and their memory.
#[derive(Clone, Debug)]
pub struct Power {
    zones: Vec<Zone>,
}

#[derive(Clone, Debug)]
struct Zone {
    counter: PathBuf,
    /// Microjoules after which it begins again.
    range: u64,
}

/// What the counters say at a moment, in microjoules by zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy(Vec<u64>);

impl Power {
    /// The zones below `root`, which is [`POWERCAP`] or a copy of one.
    pub fn open(root: &Path) -> Result<Self, PowerError> {
        let absent = || PowerError::Absent(root.to_owned());
        let mut zones = Vec::new();
        for entry in fs::read_dir(root).map_err(|_| absent())?.flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
            let name = read("name").unwrap_or_default();
            if !(name.starts_with("package") || name.trim() == "dram") {
                continue;
            }
            // Without a range it is taken never to begin again.
            let range = read("max_energy_range_uj")
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(u64::MAX);
            zones.push(Zone { counter: entry.path().join("energy_uj"), range });
        }
        if zones.is_empty() {
            return Err(absent());
        }
        zones.sort_by(|one, other| one.counter.cmp(&other.counter));
        let power = Self { zones };
        power.read()?;
        Ok(power)
    }

    /// What the counters say now.
    pub fn read(&self) -> Result<Energy, PowerError> {
        let read = |zone: &Zone| {
            let unreadable = |cause| PowerError::Unreadable { file: zone.counter.clone(), cause };
            let text = fs::read_to_string(&zone.counter).map_err(unreadable)?;
            text.trim().parse().map_err(|_| unreadable(io::Error::other("it is not a number")))
        };
        self.zones.iter().map(read).collect::<Result<_, _>>().map(Energy)
    }

    /// Joules from one reading to a later one.
    pub fn joules(&self, from: &Energy, to: &Energy) -> f64 {
        let counts = self.zones.iter().zip(&from.0).zip(&to.0);
        let spent = counts.map(|((zone, &from), &to)| {
            // From the range it goes on with 0.
            if to >= from { to - from } else { zone.range.saturating_sub(from) + to }
        });
        spent.map(|microjoules| microjoules as f64 / 1e6).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded tree: two packages with cores and memory, and the whole board.
    fn recorded(zones: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (zone, name, energy) in zones {
            let zone = root.path().join(zone);
            fs::create_dir(&zone).unwrap();
            fs::write(zone.join("name"), format!("{name}\n")).unwrap();
            fs::write(zone.join("energy_uj"), format!("{energy}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
        }
        root
    }

    const BOARD: [(&str, &str, &str); 6] = [
        ("intel-rapl:0", "package-0", "262143000000"),
        ("intel-rapl:0:0", "core", "5"),
        ("intel-rapl:0:1", "dram", "1000000"),
        ("intel-rapl:1", "package-1", "7000000"),
        ("intel-rapl:2", "psys", "9"),
        ("intel-rapl", "", ""),
    ];

    #[test]
    fn packages_and_memory_count_once_and_a_counter_may_begin_again() {
        let root = recorded(&BOARD);
        let power = Power::open(root.path()).unwrap();
        let from = power.read().unwrap();
        let set = |zone: &str, energy: &str| {
            fs::write(root.path().join(zone).join("energy_uj"), energy).unwrap()
        };
        set("intel-rapl:0", "1671150\n");
        set("intel-rapl:0:1", "1500000\n");
        set("intel-rapl:1", "10000000\n");
        set("intel-rapl:2", "900000000\n");
        // 0.328850 J to the range and 1.671150 J from 0; 0.5 J of memory; 3 J.
        assert!((power.joules(&from, &power.read().unwrap()) - 5.5).abs() < 1e-9);
    }

    #[test]
    fn what_is_missing_is_named_in_one_line() {
        let none = Power::open(Path::new("/no/such/place")).unwrap_err().to_string();
        assert!(
            none.starts_with("/no/such/place: no counters of energy here") && !none.contains('\n'),
            "{none}"
        );
        let root = recorded(&BOARD[..2]);
        fs::remove_file(root.path().join("intel-rapl:0/energy_uj")).unwrap();
        let refused = Power::open(root.path()).unwrap_err().to_string();
        assert!(
            refused.contains("intel-rapl:0/energy_uj") && refused.contains("root"),
            "{refused}"
        );
        assert!(
            Power::open(recorded(&BOARD[1..2]).path()).is_err(),
            "a part of a package is not the package"
        );
    }
}
