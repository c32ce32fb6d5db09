//! Files of `/proc` and `/sys`. Nothing is ever appended to them; every read gives the current
//! text.

use crate::pattern::Pattern;
use crate::source::{MetricValue, Source, SourceError, last_line};
use rustix::fs::statfs;
use std::path::{Path, PathBuf};

/// Reads the file from its start for each reading.
pub(crate) struct PseudoFile {
    pub(crate) path: PathBuf,
    pub(crate) pattern: Pattern,
}

/// Magic numbers of statfs(2): proc, sysfs, cgroup, cgroup2, debugfs, tracefs.
const KERNEL: [u64; 6] = [0x9fa0, 0x6265_6572, 0x0027_e0eb, 0x6367_7270, 0x6462_6720, 0x7472_6163];

/// Whether the kernel makes up this file's content.
pub(crate) fn is(path: &Path) -> bool {
    // The field's type differs between architectures; the magic numbers fit all of them.
    statfs(path)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|magic| KERNEL.contains(&magic)))
}

impl Source for PseudoFile {
    fn read(&mut self, _: &dyn Fn() -> bool) -> Result<MetricValue, SourceError> {
        let text = std::fs::read_to_string(&self.path)
            .map_err(|error| SourceError::on(self.path.display(), error))?;
        self.pattern.find(&text)?.ok_or_else(|| {
            let last = last_line(&text).unwrap_or_default();
            SourceError::on(
                self.path.display(),
                format_args!(
                    "'{}' does not match ({} bytes, last line: '{last}')",
                    self.pattern,
                    text.len()
                ),
            )
        })
    }

    fn exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_told_from_files_on_disk() {
        assert!(is(Path::new("/proc/uptime")));
        assert!(is(Path::new("/sys/devices/system/cpu/online")));
        assert!(!is(tempfile::NamedTempFile::new().unwrap().path()));
        assert!(!is(Path::new("/nonexistent")));
    }

    #[test]
    fn a_file_of_the_kernel_is_read_anew_each_time() {
        let pattern =
            Pattern::new(r"^(?:nonvoluntary_ctxt_switches|voluntary_ctxt_switches):\s+(\d+)")
                .unwrap();
        let mut source = PseudoFile { path: "/proc/thread-self/status".into(), pattern };
        let before = source.read(&|| false).unwrap().value;
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(source.read(&|| false).unwrap().value > before);
    }
}
