//! `reconverge debug`

mod screen;

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use crossterm::event;
use reconverge_workbench::debugger::dap::Adapter;
use reconverge_workbench::debugger::{Debugger, command};
use reedline::{DefaultCompleter, DefaultPrompt, DefaultPromptSegment, Reedline, Signal};
use serde_json::Value;

use crate::launch::LaunchArgs;
use crate::{Answer, files};
use screen::{Asked, Screen};

/// Step a launch forward and backward, by group or by lane, and ask why each lane runs or does not
///
/// On a terminal this is a screen with a command line; `help` lists the commands. With --batch, or when standard input is no
/// terminal, commands come from a script, and the answers go to standard output.
#[derive(clap::Args)]
pub(crate) struct Debug {
    #[command(flatten)]
    launch: LaunchArgs,
    /// Carry out the commands of a file, `-` for standard input; a wrong line or an expectation that fails ends it
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["dap", "plain"])]
    batch: Option<PathBuf>,
    /// Speak the Debug Adapter Protocol on standard input and output
    #[arg(long, conflicts_with = "plain")]
    dap: bool,
    /// A command line without the screen
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(args: &Debug, matches: &ArgMatches) -> Result<Answer> {
    if args.dap {
        return dap(args, matches);
    }
    let mut debugger = open(&args.launch, matches)?;
    if let Some(script) = &args.batch {
        return batch(&mut debugger, &script.display().to_string(), &files::read(script)?);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let mut script = Vec::new();
        std::io::stdin().read_to_end(&mut script).context("standard input")?;
        return batch(&mut debugger, "standard input", &script);
    }
    if args.plain { plain(&mut debugger) } else { screen(&mut debugger) }
}

fn open(launch: &LaunchArgs, matches: &ArgMatches) -> Result<Debugger> {
    let ready = launch.ready(matches)?;
    let debugger = Debugger::new(&ready.session, &ready.opened.target, ready.program(), &ready.options);
    debugger.map_err(|error| anyhow!("{}: {error}", ready.title))
}

/// Carries out a script. The status is 1 where an expectation fails.
fn batch(debugger: &mut Debugger, name: &str, script: &[u8]) -> Result<Answer> {
    for (number, line) in script.lines().enumerate() {
        let line = line.with_context(|| format!("{name}: line {}", number + 1))?;
        let shown = line.trim();
        if !shown.is_empty() && !shown.starts_with('#') {
            say!("> {shown}");
        }
        match command::run(debugger, &line) {
            Ok(answer) => {
                say_part!("{}", answer.text);
                if answer.quit {
                    break;
                }
            }
            Err(error @ command::CommandError::Expectation { .. }) => {
                say!("{name}:{}: {error}", number + 1);
                return Ok(Answer::No);
            }
            Err(error) => bail!("{name}: line {}: {error}", number + 1),
        }
    }
    Ok(Answer::Yes)
}

/// A command line with history and completion.
fn plain(debugger: &mut Debugger) -> Result<Answer> {
    let names = command::COMMANDS.iter().flat_map(|(names, ..)| names.iter().map(|name| (*name).to_owned()));
    let completer = DefaultCompleter::new_with_wordlen(names.collect(), 1);
    let mut line = Reedline::create().with_completer(Box::new(completer));
    let prompt =
        DefaultPrompt::new(DefaultPromptSegment::Basic("reconverge".to_owned()), DefaultPromptSegment::Empty);
    loop {
        let Signal::Success(typed) = line.read_line(&prompt)? else { return Ok(Answer::Yes) };
        match command::run(debugger, &typed) {
            Ok(answer) if answer.quit => return Ok(Answer::Yes),
            Ok(answer) => say_part!("{}", answer.text),
            Err(error) => say!("{error}"),
        }
    }
}

/// The screen.
fn screen(debugger: &mut Debugger) -> Result<Answer> {
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let mut screen = Screen::default();
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame, debugger)) {
            break Err(error);
        }
        match event::read() {
            Ok(event::Event::Key(key)) if key.is_press() => {
                if screen.key(debugger, key) == Asked::Quit {
                    break Ok(Answer::Yes);
                }
            }
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    ended.context("the terminal")
}

/// The Debug Adapter Protocol: messages behind `Content-Length` headers.
fn dap(args: &Debug, matches: &ArgMatches) -> Result<Answer> {
    let mut input = BufReader::new(std::io::stdin());
    let mut output = std::io::stdout();
    let mut adapter = Adapter::default();
    while let Some(message) = read_message(&mut input)? {
        let answers = adapter.handle(&message, &mut |arguments| launched(args, matches, arguments));
        for answer in answers {
            let text = answer.to_string();
            write!(output, "Content-Length: {}\r\n\r\n{text}", text.len()).context("standard output")?;
        }
        output.flush().context("standard output")?;
        if adapter.is_ended() {
            break;
        }
    }
    Ok(Answer::Yes)
}

/// A launch that a client asks for: `program` is what `run` takes as FILE, `args` its options; without `program` the launch
/// of the command line.
fn launched(args: &Debug, matches: &ArgMatches, arguments: &Value) -> Result<Debugger, String> {
    let Some(program) = arguments["program"].as_str() else {
        return open(&args.launch, matches).map_err(|error| format!("{error:#}"));
    };
    let options = arguments["args"].as_array().map_or(&[][..], Vec::as_slice);
    let words = ["reconverge", "debug", program].map(str::to_owned).into_iter();
    let words = words.chain(options.iter().map(|word| word.as_str().unwrap_or("").to_owned()));
    let matches = crate::Cli::command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let cli = crate::Cli::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    match (cli.command, matches.subcommand()) {
        (crate::Command::Debug(debug), Some((_, matches))) => {
            open(&debug.launch, matches).map_err(|error| format!("{error:#}"))
        }
        _ => Err("`debug` was expected".to_owned()),
    }
}

/// The next message; `None` at the end of the input.
fn read_message(input: &mut impl BufRead) -> Result<Option<Value>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).context("standard input")? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length:") {
            length = number.trim().parse::<usize>().ok();
        }
    }
    let length = length.ok_or_else(|| anyhow!("a message without Content-Length"))?;
    if length > 1 << 24 {
        bail!("a message of {length} bytes; at most 16 MiB fit");
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).context("a message that breaks off")?;
    serde_json::from_slice(&bytes).map(Some).context("a message that is no JSON")
}
