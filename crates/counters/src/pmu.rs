//! Performance monitoring units (PMUs) of cores, and how they encode events.
//!
//! The kernel describes each PMU below `/sys/bus/event_source/devices`. `type` is its number.
//! `format/` says in which bits of the event code a term such as `event` or `umask` lies. `events/`
//! has names with their terms. Like a machine, a PMU is read from a [`Snapshot`]: of this machine,
//! or a recorded one.

use pinwise_linux::sys::EventCode;
use pinwise_topology::Snapshot;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the kernel describes PMUs.
const DEVICES: &str = "sys/bus/event_source/devices";

/// Reads the files that tell which events this machine has: those of its PMUs, and the identity of
/// its processor. What cannot be read is left out.
pub(crate) fn pmu_files(root: &Path) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut add = |path: String| {
        if let Ok(bytes) = fs::read(root.join(&path)) {
            // A path from the kernel leads nowhere else.
            let _ = snapshot.insert(&path, bytes);
        }
    };
    let names = |directory: String| {
        let entries = fs::read_dir(root.join(directory)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    };
    add("proc/cpuinfo".into());
    for device in names(DEVICES.into()) {
        let device = format!("{DEVICES}/{device}");
        ["type", "cpus"].into_iter().for_each(|name| add(format!("{device}/{name}")));
        for directory in ["format", "events"] {
            let directory = format!("{device}/{directory}");
            names(directory.clone()).for_each(|name| add(format!("{directory}/{name}")));
        }
    }
    snapshot
}

/// The PMU of one kind of core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pmu {
    /// The kernel's name of it, such as `cpu`, `cpu_atom` or `armv8_cortex_a72`.
    pub(crate) name: String,
    /// Its number, which is the `type` of its events.
    pub(crate) number: u32,
    /// Where each term lies.
    terms: BTreeMap<String, TermBits>,
    /// Names of events and their terms.
    events: BTreeMap<String, String>,
}

/// The bits in which the value of a term lies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TermBits {
    field: CodeField,
    /// First and last bit of each part, the lowest bits of the value first.
    ranges: Vec<(u32, u32)>,
}

/// A field of an event code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodeField {
    Config,
    Config1,
    /// A field that pinwise does not use.
    Other,
}

impl Pmu {
    /// The PMUs of the cores, one for each kind, by name. Those of cores name their CPUs in `cpus`.
    /// Where all cores are alike, an x86 processor has the PMU `cpu`, which names none.
    pub(crate) fn of_cores(snapshot: &Snapshot) -> Vec<Self> {
        let mut pmus: BTreeMap<&str, Self> = BTreeMap::new();
        for (path, _) in snapshot.files() {
            let Some((name, file)) = path
                .strip_prefix(DEVICES)
                .and_then(|rest| rest.strip_prefix('/'))
                .and_then(|rest| rest.split_once('/'))
            else {
                continue;
            };
            let text = snapshot.text(path).unwrap_or_default();
            let pmu = pmus.entry(name).or_default();
            match file.split_once('/') {
                None if file == "type" => pmu.number = text.parse().unwrap_or_default(),
                None if file == "cpus" => pmu.name = name.to_owned(),
                Some(("format", term)) => {
                    pmu.terms.extend(TermBits::parse(text).map(|bits| (term.to_owned(), bits)));
                }
                Some(("events", event)) => {
                    pmu.events.insert(event.to_owned(), text.to_owned());
                }
                _ => {}
            }
            if name == "cpu" {
                pmu.name = name.to_owned();
            }
        }
        pmus.into_values().filter(|pmu| !pmu.name.is_empty()).collect()
    }

    /// The code of an event that the kernel names for this PMU.
    pub(crate) fn listed(&self, name: &str) -> Option<EventCode> {
        self.code(self.events.get(name)?)
    }

    /// The code of an event by its terms, as perf writes them: `event=0x24,umask=0x3f`. A term
    /// without a value is 1. `None`: the PMU has no such term, or the value does not fit.
    pub(crate) fn code(&self, terms: &str) -> Option<EventCode> {
        let mut code = EventCode { pmu: self.number, ..EventCode::default() };
        for term in terms.split(',') {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = number(value)?;
            match name {
                "config" => code.config |= value,
                "config1" => code.config1 |= value,
                _ => {
                    let bits = self.terms.get(name)?;
                    match bits.field {
                        CodeField::Config => code.config |= bits.place(value)?,
                        CodeField::Config1 => code.config1 |= bits.place(value)?,
                        CodeField::Other => return None,
                    }
                }
            }
        }
        Some(code)
    }
}

impl TermBits {
    /// Parses `config:0-7,32-35`.
    fn parse(text: &str) -> Option<Self> {
        let (field, ranges) = text.split_once(':')?;
        let field = match field {
            "config" => CodeField::Config,
            "config1" => CodeField::Config1,
            _ => CodeField::Other,
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < 64).then_some((first, last))
        };
        ranges.split(',').map(range).collect::<Option<_>>().map(|ranges| Self { field, ranges })
    }

    /// A value in its bits; `None` if it has more bits.
    fn place(&self, value: u64) -> Option<u64> {
        let (mut left, mut placed) = (value, 0);
        for &(first, last) in &self.ranges {
            let mask = u64::MAX >> (63 - (last - first));
            placed |= (left & mask) << first;
            left = left.checked_shr(last - first + 1).unwrap_or(0);
        }
        (left == 0).then_some(placed)
    }
}

/// A number as perf writes it, decimal or with `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use proptest::prelude::*;

    #[test]
    fn the_pmus_of_cores_are_told_from_those_of_caches_memory_and_the_kernel() {
        let names = |snapshot: &Snapshot| -> Vec<(String, u32)> {
            Pmu::of_cores(snapshot).into_iter().map(|pmu| (pmu.name, pmu.number)).collect()
        };
        assert_eq!(names(&fixture::zen4()), [("cpu".into(), 4)]);
        let hybrid = [("cpu_atom".into(), 10), ("cpu_core".into(), 4)];
        assert_eq!(names(&fixture::alder_lake()), hybrid);
        let arm = [("armv8_cortex_a53".into(), 8), ("armv8_cortex_a72".into(), 9)];
        assert_eq!(names(&fixture::big_little()), arm);
        assert_eq!(names(&fixture::without_pmu()), []);
    }

    #[test]
    fn terms_lie_where_the_format_says() {
        let zen4 = &Pmu::of_cores(&fixture::zen4())[0];
        // The upper four of the twelve bits of AMD's event numbers are bits 32 to 35.
        let op_cache = zen4.code("event=0x28f,umask=0x04").unwrap();
        assert_eq!((op_cache.pmu, op_cache.config), (4, 0x2_0000_048f));
        let core = &Pmu::of_cores(&fixture::alder_lake())[1];
        let dsb = core.code("event=0xc6,umask=0x1,frontend=0x11,edge").unwrap();
        assert_eq!((dsb.config, dsb.config1), (0x0004_01c6, 0x11));
        assert_eq!(core.code("event=0x1c6"), None, "eight bits");
        assert_eq!(core.code("frequency=1"), None);
        assert_eq!(core.code("event=banana"), None);
        assert_eq!(core.listed("cpu-cycles").unwrap().config, 0x3c);
        assert_eq!(core.listed("cpu_cycles"), None);
    }

    #[test]
    fn a_format_that_makes_no_sense_is_no_format() {
        for text in ["", "config", "config:", "config:7-0", "config:0-64", "config:x", "config:0,"]
        {
            assert_eq!(TermBits::parse(text), None, "{text}");
        }
        assert_eq!(TermBits::parse("config2:0-7").unwrap().field, CodeField::Other);
    }

    #[test]
    fn this_machine_is_read() {
        let snapshot = pmu_files(Path::new("/"));
        assert!(snapshot.text("proc/cpuinfo").is_some());
        // Every kernel with perf events has the PMU of its own events.
        let software = snapshot.text(&format!("{DEVICES}/software/type"));
        assert!(software.is_none_or(|number| number == "1"));
    }

    proptest! {
        #[test]
        fn a_value_is_found_again_in_its_bits(
            value in 0u64..1 << 12,
            low in 0u32..20,
            high in 30u32..50,
        ) {
            let bits = TermBits::parse(&format!("config:{low}-{},{high}-{}", low + 7, high + 3));
            let placed = bits.unwrap().place(value).unwrap();
            prop_assert_eq!((placed >> low & 0xff) | (placed >> high & 0xf) << 8, value);
        }
    }
}
