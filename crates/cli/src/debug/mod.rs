//! `reconverge debug`

#[cfg(feature = "terminal")]
mod ahead;
#[cfg(feature = "terminal")]
mod prompt;
#[cfg(feature = "terminal")]
mod screen;
#[cfg(feature = "terminal")]
mod terminal;

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use anyhow::{Context, Result, anyhow, bail};
use clap::{ArgMatches, Command, FromArgMatches};
use reconverge_simt::Lane;
use reconverge_workbench::debugger::dap::Adapter;
use reconverge_workbench::debugger::dap::launch::{self, LaunchRequest};
use reconverge_workbench::debugger::{Debugger, Halt, command};
use serde_json::Value;

use crate::args::Answer;
#[cfg(not(feature = "terminal"))]
use crate::features;
use crate::framed::{Incoming, read_message, write_message};
use crate::launch::LaunchArgs;
use crate::{files, messages};

/// Value of FILE if the command line does not name a file. In that case, the launch request of a debug client names the
/// file.
const NO_FILE: &str = "-";

/// The prompt before a command. The prompt also appears before commands that are echoed from a script.
const PROMPT: &str = "(debug) ";

/// Step a launch forward and backward, by group or by lane, and show why each lane runs or waits
///
/// On a terminal, the debugger is a screen with a command line; `help` lists the commands. With --batch, or if
/// standard input is not a terminal, commands come from a script, and the answers go to standard output.
#[derive(clap::Args)]
#[command(mut_arg("file", |file| {
    file.required(false)
        .required_unless_present_any(["dap", "dap_schema"])
        .default_value_ifs([("dap", "true", NO_FILE), ("dap_schema", "true", NO_FILE)])
}))]
pub(crate) struct Debug {
    #[command(flatten)]
    launch: LaunchArgs,
    /// Run the commands in a file; `-` for standard input. An invalid line or a failed expectation ends the debugger
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["dap", "plain"])]
    batch: Option<PathBuf>,
    /// Use the Debug Adapter Protocol on standard input and output. The launch request can name FILE instead of the
    /// command line
    #[arg(long, conflicts_with = "plain")]
    dap: bool,
    /// Print the JSON schema of launch requests, for the manifest of an editor's extension
    #[arg(long, hide = true)]
    dap_schema: bool,
    /// Use a command line instead of the full-screen interface
    #[arg(long)]
    plain: bool,
}

pub(crate) fn run(args: &Debug, matches: &ArgMatches, cli: Command) -> Result<Answer> {
    if args.dap_schema {
        say!("{:#}", launch::schema());
        return Ok(Answer::Yes);
    }
    if args.dap {
        return dap(args, matches, &cli);
    }
    let mut debugger = open(&args.launch, matches)?;
    if let Some(script) = &args.batch {
        return batch(&mut debugger, &crate::shown::path(&script), &files::read(script)?);
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let mut script = Vec::new();
        std::io::stdin().read_to_end(&mut script).context("standard input")?;
        return batch(&mut debugger, "standard input", &script);
    }
    #[cfg(feature = "terminal")]
    return if args.plain { terminal::plain(&mut debugger) } else { terminal::screen(&mut debugger) };
    #[cfg(not(feature = "terminal"))]
    {
        if !args.plain {
            messages::note(&features::missing("the debugger's screen", "terminal"));
        }
        plain(&mut debugger)
    }
}

fn open(launch: &LaunchArgs, matches: &ArgMatches) -> Result<Debugger> {
    let ready = launch.ready(matches)?;
    let debugger = Debugger::new(&ready.session, &ready.opened.target, ready.program(), &ready.options);
    let debugger = debugger.map_err(|error| anyhow!("{}: {error}", ready.title))?;
    let source = ready.path.as_ref().and_then(|path| ready.opened.user_source(ready.program(), path));
    let mut debugger = debugger.with_source(source);
    if let Some(lane) = ready.lane.and_then(|lane| u8::try_from(lane).ok()) {
        debugger.choose_lane(Lane(lane));
    }
    Ok(debugger)
}

/// Executes a script. The exit status is 1 if an expectation fails.
fn batch(debugger: &mut Debugger, name: &str, script: &[u8]) -> Result<Answer> {
    debugger.interrupt = Some(on_ctrl_c());
    for (number, line) in script.lines().enumerate() {
        let line = line.with_context(|| format!("{name}: line {}", number + 1))?;
        let shown = line.trim();
        if !shown.is_empty() && !shown.starts_with('#') {
            say!("{PROMPT}{shown}");
        }
        match command::run(debugger, &line) {
            Ok(answer) => {
                say_part!("{}", answer.text);
                if answer.halt == Some(Halt::Interrupted) {
                    bail!("{name}: line {}: interrupted", number + 1);
                }
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

/// Runs a command line without history and completion.
#[cfg(not(feature = "terminal"))]
fn plain(debugger: &mut Debugger) -> Result<Answer> {
    debugger.interrupt = Some(on_ctrl_c());
    loop {
        say_part!("{PROMPT}");
        let mut typed = String::new();
        if std::io::stdin().read_line(&mut typed).context("standard input")? == 0 {
            return Ok(Answer::Yes);
        }
        if carry_out(debugger, &typed) {
            return Ok(Answer::Yes);
        }
    }
}

/// Executes a typed command. Returns `true` if the command ends the debugger.
fn carry_out(debugger: &mut Debugger, typed: &str) -> bool {
    match command::run(debugger, typed) {
        Ok(answer) if answer.quit => return true,
        Ok(answer) => say_part!("{}", answer.text),
        Err(error) => say!("{error}"),
    }
    false
}

/// Returns a function. The returned function reports whether the user has pressed Ctrl-C since the last call of the
/// returned function.
fn on_ctrl_c() -> Box<dyn FnMut() -> bool + Send> {
    let pressed = Arc::new(AtomicBool::new(false));
    let seen = pressed.clone();
    // If the handler cannot be installed, Ctrl-C ends the process. This behaviour is also acceptable.
    let _ = ctrlc::set_handler(move || seen.store(true, Ordering::Relaxed));
    Box::new(move || pressed.swap(false, Ordering::Relaxed))
}

/// Runs the Debug Adapter Protocol, in which a `Content-Length` header precedes each message.
fn dap(args: &Debug, matches: &ArgMatches, cli: &Command) -> Result<Answer> {
    let mut output = messages::output().context("standard output")?;
    let mut adapter = Adapter::default();
    // A movement stops while this number is greater than 0. The number counts messages that end a movement. The thread
    // has read these messages, but the loop has not handled these messages yet. At the end of the input, the thread
    // adds 1. The loop never subtracts this 1, so every movement stops.
    let ending = Arc::new(AtomicUsize::new(0));
    let ends = |message: &Value| {
        ["pause", "terminate", "disconnect"].iter().any(|command| message["command"] == *command)
    };
    let (sender, incoming) = mpsc::channel();
    let seen = ending.clone();
    std::thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin());
        while let Some(message) = read_message(&mut input) {
            if matches!(&message, Incoming::Message(message) if ends(message)) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
            if sender.send(message).is_err() {
                return;
            }
        }
        seen.fetch_add(1, Ordering::Relaxed);
    });
    for message in incoming {
        let mut failed = None;
        let mut send = |message: Value| {
            failed = failed.take().or(write_message(&mut output, &message).err());
        };
        match message {
            Incoming::Malformed(why) => send(adapter.malformed(&why)),
            Incoming::Message(message) => {
                if ends(&message) {
                    ending.fetch_sub(1, Ordering::Relaxed);
                }
                let mut open = |request: &LaunchRequest| {
                    let mut debugger = launched(args, matches, cli, request)?;
                    let ending = ending.clone();
                    debugger.interrupt = Some(Box::new(move || ending.load(Ordering::Relaxed) > 0));
                    Ok(debugger)
                };
                adapter.handle(&message, &mut open, &mut send);
            }
        }
        if let Some(error) = failed {
            return Err(error).context("standard output");
        }
        if adapter.is_ended() {
            break;
        }
    }
    Ok(Answer::Yes)
}

/// Opens the launch that a client requests. If the request does not name a program, opens the launch that the command
/// line describes.
fn launched(
    args: &Debug,
    matches: &ArgMatches,
    cli: &Command,
    request: &LaunchRequest,
) -> Result<Debugger, String> {
    let Some(program) = &request.program else {
        if args.launch.file() == Path::new(NO_FILE) {
            return Err("missing `program` in the launch request: an input file of `run`".to_owned());
        }
        if let Some(option) = request.options.first() {
            return Err(format!("`{option}` needs a `program` in the launch request"));
        }
        return open(&args.launch, matches).map_err(|error| format!("{error:#}"));
    };
    let words = ["reconverge", "debug", program].into_iter();
    let words = words.chain(request.options.iter().map(String::as_str));
    let matches = cli.clone().try_get_matches_from(words).map_err(|error| error.to_string())?;
    let Some(("debug", matches)) = matches.subcommand() else {
        return Err("expected `debug`".to_owned());
    };
    let debug = Debug::from_arg_matches(matches).map_err(|error| error.to_string())?;
    open(&debug.launch, matches).map_err(|error| launch::in_arguments(&format!("{error:#}")))
}
