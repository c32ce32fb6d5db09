//! `--machine`: which machine a command is about.

use crate::output::Usage;
use anyhow::Context as _;
use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use pinwise_jobs::{DESCRIPTION_EXTENSION, JobError, SimulatedProcessor, SmtSimulation};
use pinwise_present::did_you_mean;
use pinwise_processor::Processor;
use pinwise_topology::{Machine, Snapshot};
use std::ffi::OsStr;
use std::fs::{File, FileType};
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Recorded machines compress to under 100 KB; an uncompressed one of 4,096 CPUs stays below this.
const LARGEST_FILE: u64 = 256 << 20;

/// The machine a command is about.
#[derive(Args, Clone, Debug)]
pub(crate) struct MachineArgument {
    /// Use this machine: host, a model (ultrasparc-t2, opteron-24), a shape or a file. A shape
    /// counts from the top level: 8x2x4 or 'package:2 core:4 pu:2'. A file is a processor's
    /// description NAME.toml, a recording of `topo --record`, or hwloc XML
    #[arg(long, alias = "input", value_name = "MACHINE", default_value = "host")]
    pub(crate) machine: String,
}

/// The machine of a command that only looks at one: with the option or, as with hwloc's tools,
/// without.
#[derive(Args, Clone, Debug)]
pub(crate) struct LookedAt {
    /// Same as --machine
    #[arg(value_name = "MACHINE", conflicts_with = "machine")]
    named: Option<String>,
    #[command(flatten)]
    machine: MachineArgument,
}

impl LookedAt {
    /// The machine that was meant.
    pub(crate) fn argument(&self) -> MachineArgument {
        self.named
            .clone()
            .map_or_else(|| self.machine.clone(), |machine| MachineArgument { machine })
    }
}

impl MachineArgument {
    /// Reads or builds the machine.
    pub(crate) fn load(&self) -> anyhow::Result<Machine> {
        match self.source()? {
            MachineSource::Model(name) => usage(Machine::model(&name)),
            MachineSource::Described(model) => Ok(model.processor().map_err(usage_of)?.machine()),
            MachineSource::Shape(shape) => usage(Machine::from_shape(&shape)),
            MachineSource::Xml(path, text) => {
                usage(Machine::from_hwloc_xml(&text)).with_context(|| path.display().to_string())
            }
            MachineSource::Recorded(path, snapshot) => {
                usage(Machine::from_snapshot(&snapshot)).with_context(|| path.display().to_string())
            }
            MachineSource::Host => Ok(pinwise_linux::this_machine()?),
        }
    }

    /// The files the machine is read from. Error: it is not read from files of `/sys`.
    pub(crate) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        match self.source()? {
            MachineSource::Host => Ok(pinwise_linux::capture(Path::new("/"))?),
            MachineSource::Recorded(_, snapshot) => Ok(snapshot),
            _ => {
                Err(Usage(format!("--record: '{}' has no files to record; use host", self.machine))
                    .into())
            }
        }
    }

    fn source(&self) -> anyhow::Result<MachineSource> {
        let name = self.machine.as_str();
        if name == "host" {
            return Ok(MachineSource::Host);
        }
        if Machine::MODELS.contains(&name) {
            return Ok(MachineSource::Model(name.into()));
        }
        let path = PathBuf::from(name);
        if path.is_dir() {
            let snapshot = pinwise_linux::capture(&path)?;
            return Ok(MachineSource::Recorded(path, snapshot));
        }
        if name.ends_with(DESCRIPTION_EXTENSION) {
            return Ok(MachineSource::Described(SimulatedProcessor::read(name).map_err(usage_of)?));
        }
        match std::fs::metadata(&path) {
            Ok(about) if about.is_file() => return file(path),
            Ok(about) => return Err(no_file(name, about.file_type()).into()),
            Err(_) => {}
        }
        let is_shape = name.contains(':') || name.starts_with(|first: char| first.is_ascii_digit());
        if is_shape && !name.contains('/') {
            return Ok(MachineSource::Shape(name.into()));
        }
        let models = Machine::MODELS.join(", ");
        let known = "a description (NAME.toml), a shape such as 8x2x4, a recorded directory or tar \
            archive, an hwloc XML file";
        let similar = did_you_mean(name, Machine::MODELS.iter().copied().chain(["host"]));
        Err(Usage(format!(
            "machine '{name}': no such file, and not one of: host, {models}, {known}{similar}"
        ))
        .into())
    }
}

/// `--machine` of commands that run programs: any word. The help and completions offer those that
/// it takes.
#[derive(Clone)]
pub(crate) struct Simulated;

impl Simulated {
    /// The simulated processor that `name` means. It is a built-in one, or what the file describes
    /// if the name has a `/` or ends in `.toml`. The error says what `command` does take, and which
    /// commands look at a machine without running anything on it.
    pub(crate) fn named(name: &str, command: &str) -> Result<SimulatedProcessor, Usage> {
        if Processor::MODELS.contains(&name) {
            return Ok(SimulatedProcessor::built_in(name));
        }
        // Only on a model do programs run in any number. Built-in ones do not end on this machine.
        let (runs_here, core) = match command {
            "select" => (false, None),
            "pairs" => (false, Some(SmtSimulation::CORE)),
            _ => (true, None),
        };
        let models: Vec<&str> = Processor::MODELS.iter().copied().chain(core).collect();
        let simulated = models.join(", ");
        let host = if runs_here { "host, or " } else { "" };
        let takes = format!(
            "{command} takes {host}a simulated processor: {simulated}, or the TOML file that \
             describes one"
        );
        if name.contains('/') || name.ends_with(DESCRIPTION_EXTENSION) {
            return SimulatedProcessor::read(name)
                .map_err(|error| Usage(format!("machine {error}; {takes}")));
        }
        if name == "host" {
            return Err(Usage(format!("{command} does not run on host: {takes}")));
        }
        let why = if Machine::MODELS.contains(&name) {
            "is described but not simulated"
        } else {
            "cannot run a program"
        };
        let similar = did_you_mean(name, models.into_iter().chain(runs_here.then_some("host")));
        Err(Usage(format!(
            "machine '{name}' {why}: {takes}{similar} (topo and space read any machine)"
        )))
    }
}

impl TypedValueParser for Simulated {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["host"].iter().chain(Processor::MODELS).map(PossibleValue::new)))
    }
}

enum MachineSource {
    Host,
    Model(String),
    Described(SimulatedProcessor),
    Shape(String),
    Recorded(PathBuf, Snapshot),
    Xml(PathBuf, String),
}

/// A device would fill the memory. Opening a FIFO would wait for its writer.
fn no_file(name: &str, kind: FileType) -> Usage {
    let kind = match kind {
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Usage(format!("machine '{name}': it is {kind}: save what it gives, and name that file"))
}

/// An hwloc XML file, a description of a processor or a tar archive, by what is in it.
fn file(path: PathBuf) -> anyhow::Result<MachineSource> {
    let what = || path.display().to_string();
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes))
        .with_context(what)?;
    if bytes.trim_ascii_start().starts_with(b"<") {
        let text = String::from_utf8(bytes)
            .map_err(|_| Usage("not UTF-8, hwloc's XML is".into()))
            .with_context(what)?;
        return Ok(MachineSource::Xml(path, text));
    }
    // The blocks of an archive are filled up with zeros, compressed or not it is not a text file.
    if !bytes.contains(&0) && str::from_utf8(&bytes).is_ok() {
        let taken = |error: JobError| {
            Usage(format!("{error} (pinwise reads any text that is not hwloc XML as one)"))
        };
        return Ok(MachineSource::Described(
            SimulatedProcessor::described(&what(), bytes).map_err(taken)?,
        ));
    }
    let snapshot = usage(Snapshot::from_tar(&bytes)).with_context(what)?;
    Ok(MachineSource::Recorded(path, snapshot))
}

/// A description that is no processor is the caller's mistake.
fn usage_of(error: JobError) -> Usage {
    Usage(error.to_string())
}

/// A description that is no machine is the caller's mistake.
fn usage<T>(result: Result<T, pinwise_topology::MachineError>) -> anyhow::Result<T> {
    result.map_err(|error| Usage(error.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(machine: &str) -> anyhow::Result<Machine> {
        MachineArgument { machine: machine.into() }.load()
    }

    #[test]
    fn models_shapes_and_the_host_are_found_by_name() {
        assert_eq!(load("ultrasparc-t2").unwrap().contexts.len(), 64);
        assert_eq!(load("2x2").unwrap().contexts.len(), 4);
        assert_eq!(load("package:2 core:3").unwrap().contexts.len(), 6);
        assert!(!load("host").unwrap().contexts.is_empty());
    }

    #[test]
    fn an_unknown_machine_says_what_is_known() {
        let error = format!("{:#}", load("pdp-11").unwrap_err());
        assert!(
            error.contains("ultrasparc-t2") && error.contains("8x2x4") && !error.contains('\n'),
            "{error}"
        );
        assert!(format!("{:#}", load("8x0").unwrap_err()).contains("0 domains"));
    }

    #[test]
    fn a_description_is_a_machine_and_errors_name_file_and_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let path = path.to_str().unwrap();
        let text = Processor::description("ultrasparc-t2").unwrap();
        std::fs::write(path, text.replacen("cores = 8", "cores = 2", 1)).unwrap();
        assert_eq!(load(path).unwrap().contexts.len(), 16);
        let model = Simulated::named(path, "place").unwrap();
        assert_eq!(model.processor().unwrap().contexts(), 16);
        std::fs::write(path, text.replacen("cores = 8", "cores = 0", 1)).unwrap();
        let Usage(error) = Simulated::named(path, "place").unwrap_err();
        let told = format!(
            "machine {path}: description of ultrasparc-t2: inter-core.cores is 0: expected 1 to 32"
        );
        assert!(error.starts_with(&told) && !error.contains('\n'), "{error}");
        assert_eq!(
            model.processor().unwrap().contexts(),
            16,
            "a file that is changed changes nothing that was read"
        );
        let Usage(error) = Simulated::named("pentium4", "pairs").unwrap_err();
        assert!(error.contains("pentium4-northwood, or the TOML") && !error.contains("host"));
        let Usage(error) = Simulated::named("no/such.toml", "place").unwrap_err();
        assert!(
            error.starts_with("machine no/such.toml: there is no such file; place takes host"),
            "{error}"
        );
    }

    #[test]
    fn a_file_is_known_by_its_contents() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine");
        std::fs::write(&path, "<topology/>").unwrap();
        let error = format!("{:#}", load(path.to_str().unwrap()).unwrap_err());
        assert!(error.contains("hwloc XML, line 1") && error.contains("lstopo"), "{error}");
        std::fs::write(&path, "junk\0").unwrap();
        assert!(format!("{:#}", load(path.to_str().unwrap()).unwrap_err()).contains("tar archive"));
        std::fs::write(&path, "junk").unwrap();
        assert!(format!("{:#}", load(path.to_str().unwrap()).unwrap_err()).contains("line 1"));
        std::fs::write(&path, Processor::description("ultrasparc-t2").unwrap()).unwrap();
        assert_eq!(load(path.to_str().unwrap()).unwrap().contexts.len(), 64);
        let empty = directory.path().to_str().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(format!("{:#}", load(empty).unwrap_err()).contains("no online CPU"));
    }
}
