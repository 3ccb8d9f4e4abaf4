//! `reconverge completions` and `reconverge man`: made from the same description of the arguments that reads them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::messages::answer_bytes;
use crate::{Answer, Cli, files};

/// Print the completions of a shell
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write the pages of all commands into a folder
#[derive(clap::Args)]
pub(crate) struct Man {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "reconverge", &mut script);
    answer_bytes(&script);
    Ok(Answer::Yes)
}

pub(crate) fn run(args: &Man) -> Result<Answer> {
    match &args.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
            let mut command = Cli::command().disable_help_subcommand(true);
            command.build();
            write_pages(command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            answer_bytes(&page);
        }
    }
    Ok(Answer::Yes)
}

/// Writes the page of a command and those of its commands.
fn write_pages(command: clap::Command, folder: &Path) -> Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(command.clone(), folder)?;
    }
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    files::write(&folder.join(man.get_filename()), &page)
}
