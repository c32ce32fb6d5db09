//! `pinwise completions` and `pinwise man`: made from the same definition as `--help`.

use crate::output;
use anyhow::Context;
use clap::{Args, Command};
use std::path::PathBuf;

/// Print the completion script of a shell
#[derive(Args)]
#[command(after_help = "Example:
  pinwise completions bash > ~/.local/share/bash-completion/completions/pinwise")]
pub(crate) struct Completions {
    /// Choose the shell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(crate) fn run(self, mut definition: Command) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut definition, "pinwise", &mut script);
        output::print_data(&String::from_utf8(script)?)
    }
}

/// Write the manual pages: pinwise.1 and one page per command
#[derive(Args)]
#[command(after_help = "Examples:
  pinwise man | man -l -
  pinwise man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write to this folder [default: pinwise.1 goes to stdout]
    directory: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self, definition: Command) -> anyhow::Result<()> {
        match self.directory {
            Some(directory) => std::fs::create_dir_all(&directory)
                .and_then(|()| clap_mangen::generate_to(definition, &directory))
                .with_context(|| format!("{}: cannot write the manual pages", directory.display())),
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(definition).render(&mut page)?;
                output::print_data(&String::from_utf8(page)?)
            }
        }
    }
}
