//! `reconverge completions` and `reconverge man`, generated from the argument definitions.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Arg, Command};
use clap_complete::Shell;

use crate::args::Answer;
use crate::files;
use crate::messages::answer_bytes;

/// Print the completion script for a shell
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write the pages of all commands into a folder
#[derive(clap::Args)]
pub(crate) struct Man {
    /// Folder for one manual page per command (default: print the main page)
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one page of Markdown with all commands, instead of manual pages
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

pub(crate) fn completions(args: &Completions, mut cli: Command) -> Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "reconverge", &mut script);
    answer_bytes(&script);
    Ok(Answer::Yes)
}

pub(crate) fn run(args: &Man, cli: Command) -> Result<Answer> {
    if args.markdown {
        say_part!("{}", reference(cli));
        return Ok(Answer::Yes);
    }
    match &args.folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| crate::shown::path(&folder))?;
            let mut command = cli.disable_help_subcommand(true);
            command.build();
            write_pages(command, folder)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(cli).render(&mut page)?;
            answer_bytes(&page);
        }
    }
    Ok(Answer::Yes)
}

/// Returns the command reference in Markdown. The reference has every command and the arguments of the command. The
/// text does not depend on the host.
fn reference(mut cli: Command) -> String {
    cli.build();
    let commands: Vec<&Command> =
        cli.get_subcommands().filter(|command| command.get_name() != "help").collect();
    let mut page = String::from("# Commands\n\n");
    page += "`reconverge man --markdown` prints this page. `reconverge COMMAND --help` prints the section of a command.\n\n";
    page += "| command | does |\n|---|---|\n";
    for command in &commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = command.get_name();
        let _ = writeln!(page, "| [{name}](#{name}) | {} |", cell(&about));
    }
    page += "\nEvery command has these options:\n\n";
    arguments(&mut page, cli.get_arguments().filter(|argument| argument.get_id() != "version"));
    for command in commands {
        let _ = write!(page, "\n## {}\n\n", command.get_name());
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        let _ = write!(page, "{}\n\n", prose(&about.unwrap_or_default()));
        let usage = command.clone().render_usage().to_string();
        let _ = write!(page, "`{}`\n\n", usage.trim_start_matches("Usage: "));
        arguments(&mut page, command.get_arguments().filter(|argument| !argument.is_global_set()));
        if let Some(more) = command.get_after_help() {
            let _ = write!(page, "\n```text\n{}\n```\n", more.to_string().trim_end());
        }
    }
    page
}

/// Adds a table of arguments. Positional arguments come first.
fn arguments<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let mut shown: Vec<&Arg> =
        arguments.filter(|argument| !argument.is_hide_set() && argument.get_id() != "help").collect();
    shown.sort_by_key(|argument| !argument.is_positional());
    if shown.is_empty() {
        return;
    }
    page.push_str("| argument | |\n|---|---|\n");
    for argument in shown {
        let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
        let mut said = vec![cell(&help.unwrap_or_default())];
        // The list includes hidden values. Help texts hide the values that this host does not support. This reference
        // must not depend on the host.
        let values: Vec<String> =
            argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        if argument.get_action().takes_values() && !values.is_empty() {
            said.push(format!("One of {}.", values.join(", ")));
        }
        let defaults: Vec<String> =
            argument.get_default_values().iter().map(|value| format!("`{}`", value.display())).collect();
        if argument.get_action().takes_values()
            && !defaults.is_empty()
            && !argument.is_hide_default_value_set()
        {
            said.push(format!("Default: {}.", defaults.join(", ")));
        }
        let _ = writeln!(page, "| {} | {} |", spelled(argument), said.join(" "));
    }
}

/// Returns an argument as the user types it: `-o`, `--output FILE`.
fn spelled(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().join(" ");
    let names = [
        argument.get_short().map(|short| format!("`-{short}`")),
        argument.get_long().map(|long| match argument.get_action().takes_values() {
            true => format!("`--{long} {values}`"),
            false => format!("`--{long}`"),
        }),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    if names.is_empty() { format!("`{values}`") } else { names.join(", ") }
}

/// Returns a help text as one cell of a table.
fn cell(help: &str) -> String {
    let mut text = prose(help).replace('|', "\\|").replace("\n\n", "<br>").replace('\n', " ");
    if !text.is_empty() && !text.ends_with(['.', ':', '?']) {
        text.push('.');
    }
    text
}

/// Returns a help text in Markdown. The function escapes placeholders that look like tags, and names that look like
/// emphasis. The function does not change code.
fn prose(help: &str) -> String {
    let parts = help.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.replace('<', "&lt;").replace('*', "\\*"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Writes the manual pages of a command and its subcommands.
fn write_pages(command: Command, folder: &Path) -> Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(command.clone(), folder)?;
    }
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    files::write(&folder.join(man.get_filename()), &page)
}
