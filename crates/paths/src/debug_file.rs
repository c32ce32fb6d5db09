//! The separate file of a binary's debugging information.
//!
//! Distributions strip their programs. Symbols and source lines are in a package of their own, in a
//! file for each binary. Two things lead there: the build id, by its digits, and the section
//! `.gnu_debuglink`. This section has a name, and the checksum of the whole file. See GDB's manual,
//! section "Debugging Information in Separate Files".
//!
//! Nothing is opened here: this says where to look, and whether a file is the one.

use std::path::{Path, PathBuf};

use object::Object;
use object::read::elf::ElfFile64;

/// Where debugging information is installed.
const INSTALLED: &str = "/usr/lib/debug";

/// What a binary says of its separate file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugFile {
    build_id: Option<Vec<u8>>,
    /// Its name, and the checksum of its bytes.
    link: Option<(String, u32)>,
}

impl DebugFile {
    /// That of the binary with these bytes. `None`, if it has symbols and source lines itself, or
    /// says nothing of such a file.
    pub fn of(binary: &[u8]) -> Option<Self> {
        let file = ElfFile64::<object::Endianness>::parse(binary).ok()?;
        if file.symbols().next().is_some() && file.section_by_name(".debug_line").is_some() {
            return None;
        }
        let link = file.gnu_debuglink().ok().flatten().and_then(|(name, checksum)| {
            let name = str::from_utf8(name).ok()?;
            // Only a name: else any file might be read.
            let is_name = !name.is_empty() && !name.contains('/') && name != "..";
            is_name.then(|| (name.to_owned(), checksum))
        });
        let build_id = file.build_id().ok().flatten().filter(|id| id.len() > 1);
        let found = Self { build_id: build_id.map(<[u8]>::to_vec), link };
        (found.build_id.is_some() || found.link.is_some()).then_some(found)
    }

    /// Where it may be, the likeliest place first. `binary` is the whole path of the binary.
    pub fn places(&self, binary: &Path) -> Vec<PathBuf> {
        let mut places = Vec::new();
        if let Some([first, rest @ ..]) = self.build_id.as_deref() {
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            places.push(format!("{INSTALLED}/.build-id/{first:02x}/{rest}.debug").into());
        }
        if let Some((name, _)) = &self.link
            && let Some(folder) = binary.parent()
        {
            let below = folder.strip_prefix("/").unwrap_or(folder);
            places.push(folder.join(name));
            places.push(folder.join(".debug").join(name));
            places.push(Path::new(INSTALLED).join(below).join(name));
        }
        places.retain(|place| place != binary);
        places
    }

    /// Whether a file with these bytes is the one: it has the same build id, or else the checksum.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let Ok(file) = ElfFile64::<object::Endianness>::parse(bytes) else { return false };
        match (self.build_id.as_deref(), file.build_id().ok().flatten()) {
            (Some(own), Some(found)) => own == found,
            _ => self.link.as_ref().is_some_and(|(_, sum)| *sum == crc32fast::hash(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: &[u8] = include_bytes!("../../../fuzz/seeds/path_graph/aarch64");
    const LINKED: &[u8] = include_bytes!("../../../fuzz/seeds/source_lines/linked");

    #[test]
    fn a_build_id_and_a_name_lead_to_the_places_of_gdb() {
        let wanted = DebugFile {
            build_id: Some(vec![0x01, 0xab, 0xcd]),
            link: Some(("app.debug".into(), 7)),
        };
        let places = wanted.places(Path::new("/opt/bin/app"));
        let expected = [
            "/usr/lib/debug/.build-id/01/abcd.debug",
            "/opt/bin/app.debug",
            "/opt/bin/.debug/app.debug",
            "/usr/lib/debug/opt/bin/app.debug",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
        // It is not the binary itself.
        let itself = DebugFile { build_id: None, link: Some(("app".into(), 7)) };
        assert!(!itself.places(Path::new("/opt/bin/app")).contains(&"/opt/bin/app".into()));
    }

    #[test]
    fn only_the_file_of_the_same_build_or_checksum_is_the_one() {
        let wanted = |build_id: &[u8], sum| DebugFile {
            build_id: Some(build_id.to_vec()),
            link: Some(("arm".into(), sum)),
        };
        let right = crc32fast::hash(ARM);
        assert!(wanted(&[1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef], right + 1).is(ARM));
        assert!(!wanted(&[1, 0x23], right).is(ARM));
        let linked = |sum| DebugFile { build_id: None, link: Some(("arm".into(), sum)) };
        assert!(linked(right).is(ARM));
        assert!(!linked(right ^ 1).is(ARM));
        assert!(!linked(crc32fast::hash(b"text")).is(b"text"), "it is no ELF file");
    }

    #[test]
    fn a_stripped_binary_wants_one_and_a_whole_one_does_not() {
        let wanted = DebugFile::of(LINKED).unwrap();
        assert_eq!(wanted.build_id, None);
        assert_eq!(wanted.link.unwrap().0, "app.debug");
        assert_eq!(DebugFile::of(ARM), None);
        assert_eq!(DebugFile::of(b"text"), None);
        // A name that leads out of the folder.
        let name = LINKED.windows(9).position(|it| it == b"app.debug").unwrap();
        let mut hostile = LINKED.to_vec();
        hostile[name + 3] = b'/';
        assert_eq!(DebugFile::of(&hostile), None);
    }
}
