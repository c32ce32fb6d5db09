//! Reads the kernel settings on which the speed of a placement depends.

use pinwise_topology::{Fingerprint, Machine};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The fingerprint of the machine we run on. What this kernel does not report is left out.
pub fn fingerprint(machine: &Machine) -> Fingerprint {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    from(Path::new("/sys/devices/system/cpu"), Some(kernel), machine)
}

fn from(cpus: &Path, kernel: Option<String>, machine: &Machine) -> Fingerprint {
    let line =
        |file: &str| fs::read_to_string(cpus.join(file)).ok().map(|text| text.trim().to_owned());
    let governors: BTreeSet<String> = machine
        .contexts
        .iter()
        .filter_map(|context| line(&format!("cpu{}/cpufreq/scaling_governor", context.cpu.0)))
        .collect();
    let governor =
        (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(","));
    Fingerprint { kernel, smt: line("smt/control"), governor, ..Fingerprint::of(machine) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smt_and_governors_are_read_and_what_is_missing_is_left_out() {
        let cpus = tempfile::tempdir().unwrap();
        let machine = Machine::from_shape("2").unwrap();
        let bare = from(cpus.path(), None, &machine);
        assert_eq!(bare, Fingerprint::of(&machine));
        for (file, text) in [
            ("smt/control", "forceoff\n"),
            ("cpu0/cpufreq/scaling_governor", "schedutil\n"),
            ("cpu1/cpufreq/scaling_governor", "performance\n"),
        ] {
            let file = cpus.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let read = from(cpus.path(), Some("6.1.0".into()), &machine);
        assert_eq!(read.smt.as_deref(), Some("forceoff"));
        assert_eq!(read.governor.as_deref(), Some("performance,schedutil"));
        assert_eq!(read.kernel.as_deref(), Some("6.1.0"));
    }

    #[test]
    fn this_kernel_has_a_release() {
        let machine = Machine::from_shape("1").unwrap();
        assert!(fingerprint(&machine).kernel.is_some_and(|release| !release.is_empty()));
    }
}
