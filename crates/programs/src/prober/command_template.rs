//! [`CommandTemplate`]: how a program is started with a number of threads.

use pinwise_linux::{Launch, Output};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The text that stands for the parameter.
pub(super) const PLACE: &str = "{n}";

/// A command with a place for the parameter, `{n}`, in its arguments or in environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTemplate {
    command: Vec<String>,
    environment: Vec<(String, String)>,
    stdout: Output,
}

/// Why a command cannot be started with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandTemplateError {
    /// Nothing to start.
    #[error(
        "there is no program to start: add -- CMD with {PLACE} where it takes its number of threads"
    )]
    NoProgram,
    /// Nothing in it changes with the parameter.
    #[error(
        "the program's number of threads would not change: put {PLACE} in its arguments, or \
         name its variable with --env OMP_NUM_THREADS"
    )]
    NoPlace,
    /// The place is written with a capital.
    #[error("{{N}} is no place for the number of threads: write {PLACE}")]
    Capital,
}

impl CommandTemplate {
    /// `command` with the environment variables `NAME` (the parameter itself) or `NAME=VALUE` (with
    /// `{n}` in it, or without). `output`: where its standard output goes, with `{n}` in it if
    /// it likes; nowhere by default.
    pub fn new(
        command: Vec<String>,
        environment: &[String],
        output: Option<PathBuf>,
    ) -> Result<Self, CommandTemplateError> {
        let template = Self::fixed(command, environment, output)?;
        // Not in the program's own name: `{n}` there is a file of that name.
        let values = template.environment.iter().map(|(_, value)| value);
        let mut texts = template.command[1..].iter().chain(values);
        match texts.clone().any(|text| text.contains(PLACE)) {
            true => Ok(template),
            false if texts.any(|text| text.contains("{N}")) => Err(CommandTemplateError::Capital),
            false => Err(CommandTemplateError::NoPlace),
        }
    }

    /// Like [`CommandTemplate::new`], for a program that need not change with the parameter.
    pub fn fixed(
        command: Vec<String>,
        environment: &[String],
        output: Option<PathBuf>,
    ) -> Result<Self, CommandTemplateError> {
        if command.is_empty() {
            return Err(CommandTemplateError::NoProgram);
        }
        let variable = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), PLACE.to_owned()),
        };
        let environment: Vec<(String, String)> = environment.iter().map(variable).collect();
        let stdout = output.map_or(Output::Null, Output::File);
        Ok(Self { command, environment, stdout })
    }

    /// The program's name.
    pub fn name(&self) -> String {
        Path::new(&self.command[0])
            .file_name()
            .map_or_else(|| self.command[0].clone(), |name| name.to_string_lossy().into_owned())
    }

    /// The words of the command with its parameter.
    pub fn words(&self, parameter: u32) -> Vec<String> {
        let arguments = self.command[1..].iter().map(|word| fill(word, parameter));
        std::iter::once(self.command[0].clone()).chain(arguments).collect()
    }

    /// The environment variables with it.
    pub fn environment(&self, parameter: u32) -> BTreeMap<String, String> {
        self.environment
            .iter()
            .map(|(name, value)| (name.clone(), fill(value, parameter)))
            .collect()
    }

    /// The environment variables that do not depend on it: the program starts with them when no
    /// number is set.
    pub fn fixed_environment(&self) -> BTreeMap<String, String> {
        self.environment.iter().filter(|(_, value)| !value.contains(PLACE)).cloned().collect()
    }

    /// Whether the words of the command depend on the parameter, or only variables do.
    pub fn in_words(&self) -> bool {
        self.command[1..].iter().any(|word| word.contains(PLACE))
    }

    /// The command with its parameter. Its standard error is ours to read: the last line explains a
    /// failure.
    pub(crate) fn launch(&self, parameter: u32) -> Launch {
        let filled = |text: &String| OsString::from(fill(text, parameter));
        Launch {
            program: self.command[0].clone().into(),
            arguments: self.command[1..].iter().map(filled).collect(),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.into(), filled(value)))
                .collect(),
            stdout: match &self.stdout {
                Output::File(path) => Output::File(self.path(path, parameter)),
                other => other.clone(),
            },
            ..Launch::default()
        }
    }

    /// The path of a file that a run writes; `{n}` in it is the parameter.
    pub fn path(&self, path: &Path, parameter: u32) -> PathBuf {
        path.to_str().map_or_else(|| path.to_owned(), |text| fill(text, parameter).into())
    }
}

/// `text` with its parameter.
pub(super) fn fill(text: &str, parameter: u32) -> String {
    text.replace(PLACE, &parameter.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_parameter_goes_where_its_place_is() {
        let template = CommandTemplate::new(
            words(&["pigz", "-p", "{n}", "-o{n}", "f"]),
            &words(&["A=x{n}y", "OMP_NUM_THREADS", "B=1"]),
            None,
        );
        let launch = template.unwrap().launch(12);
        assert_eq!(launch.arguments, ["-p", "12", "-o12", "f"]);
        let environment: Vec<(&str, &str)> = launch
            .environment
            .iter()
            .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
            .collect();
        assert_eq!(environment, [("A", "x12y"), ("OMP_NUM_THREADS", "12"), ("B", "1")]);
        assert_eq!(launch.stdout, Output::Null);
    }

    #[test]
    fn a_variable_left_out_is_the_program_as_nobody_decided() {
        let template = CommandTemplate::new(
            words(&["solver", "f"]),
            &words(&["OMP_NUM_THREADS", "B=1"]),
            None,
        )
        .unwrap();
        let pairs = |of: BTreeMap<String, String>| {
            of.into_iter().map(|(name, value)| name + "=" + &value).collect::<Vec<_>>()
        };
        assert_eq!(pairs(template.environment(3)), ["B=1", "OMP_NUM_THREADS=3"]);
        assert_eq!(pairs(template.fixed_environment()), ["B=1"]);
        assert_eq!((template.words(3).join(" "), template.in_words()), ("solver f".into(), false));
        let template = CommandTemplate::new(words(&["pigz", "-p{n}"]), &[], None).unwrap();
        assert_eq!((template.words(3).join(" "), template.in_words()), ("pigz -p3".into(), true));
    }

    #[test]
    fn a_command_that_would_not_change_is_refused() {
        assert_eq!(
            CommandTemplate::new(Vec::new(), &[], None),
            Err(CommandTemplateError::NoProgram)
        );
        assert_eq!(
            CommandTemplate::new(words(&["{n}"]), &words(&["B=1"]), None),
            Err(CommandTemplateError::NoPlace)
        );
        assert_eq!(
            CommandTemplate::new(words(&["pigz", "-p{N}"]), &[], None),
            Err(CommandTemplateError::Capital)
        );
        assert!(
            CommandTemplate::new(words(&["program"]), &words(&["OMP_NUM_THREADS"]), None).is_ok()
        );
    }
}
