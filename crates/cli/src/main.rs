//! The command line. The command line is a thin layer over the other crates. The command line reads the input files and
//! prints the results.
//!
//! The exit status is 0 for success and 2 for wrong input or usage. The exit status is 1 for a negative answer: a case
//! failed, a rule is broken, or the program trapped. `drm` exits with the exit status of the program that `drm` runs.
//!
//! `lib.rs` describes the features of this package.

#![forbid(unsafe_code)]
// The standard macros panic if the stream is closed. The macros `say!` and `tell!` do not panic.
#![deny(clippy::print_stdout, clippy::print_stderr)]

/// `println!` for answers. If the reader (a pager, `head`) has closed the pipe, the process ends quietly.
macro_rules! say {
    ($($text:tt)*) => { crate::messages::answer(format_args!("{}\n", format_args!($($text)*))) };
}

/// `print!` for parts of answers.
macro_rules! say_part {
    ($($text:tt)*) => { crate::messages::answer(format_args!($($text)*)) };
}

/// `eprintln!` for messages. A failed write does not panic and does not change the exit status.
macro_rules! tell {
    ($($text:tt)*) => { crate::messages::tell(format_args!("{}\n", format_args!($($text)*))) };
}

mod args;
mod asm;
mod bench;
mod beside;
mod builtin;
#[cfg(feature = "campaign")]
mod campaign;
mod cfg;
mod check;
mod compare;
mod cuda;
mod debug;
mod dis;
mod drm;
mod exactness;
mod explain;
mod features;
mod files;
mod forms;
mod framed;
#[cfg(any(feature = "serve", all(target_os = "linux", feature = "webgl")))]
mod http;
mod interrupt;
mod launch;
mod limits;
mod lint;
mod list;
mod lsp;
mod man;
mod messages;
mod page;
mod part;
mod patch;
mod piglit;
mod replay;
mod run;
mod serve;
mod shown;
mod stats;
mod timeout;
mod trace;
mod webgl;

use std::process::ExitCode;

use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use reconverge_simt::Level;

use args::Answer;

/// Runs, reads, writes and explains the shader machine code of three vanished GPU generations: ATI R500, AMD R700
/// (and R600), NVIDIA Tesla (G80 to GT21x).
#[derive(Parser)]
#[command(name = "reconverge", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Colour messages. With auto, they are coloured only on a terminal, and only if NO_COLOR is not set (default:
    /// auto)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    color: ColorChoice,
    /// Do not print notes, warnings or progress
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Print compile times, and the engine that ran if the requested engine could not run
    #[arg(long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Set limits on the resources that input can request: lanes, memory, nesting, file. The suffixes K, M and G mean
    /// 2^10, 2^20 and 2^30
    #[arg(long, global = true, value_name = "NAME=N,…", value_delimiter = ',', value_parser = limits::parse)]
    limits: Vec<limits::Setting>,
}

#[derive(Subcommand)]
enum Command {
    /// Print a program as text that `asm` accepts
    Dis(dis::Dis),
    /// Assemble a source
    Asm(asm::Asm),
    /// List the programs of a file with the resources that they need
    List(list::List),
    /// List the names of the cases in a file. Other commands take such a name in --case
    Cases(list::Cases),
    /// Change one instruction of a file and keep every other byte
    Patch(patch::Patch),
    /// Explain one instruction, field by field
    Explain(explain::Explain),
    /// Show the legal forms of a mnemonic
    Forms(forms::Forms),
    /// Run a language server for editors: messages, explanations and completions
    Lsp(lsp::Lsp),
    /// Check programs against the rules of their machine
    Lint(lint::Lint),
    /// Draw the control flow of a program
    Cfg(Box<cfg::Cfg>),
    /// Run a program, a launch file or a run manifest
    Run(Box<run::Run>),
    /// Record which lanes ran at each step, and the events that changed the control flow
    Trace(Box<trace::Trace>),
    /// Count the instructions that a launch executes, and the cost of divergence
    Stats(Box<stats::Stats>),
    /// Step a launch forward and backward, and show why each lane runs or waits
    Debug(Box<debug::Debug>),
    /// Run test cases and compare their results (default: the built-in corpus)
    Check(check::Check),
    /// Run benchmark kernels or draw frames, and time them
    Bench(bench::Bench),
    /// Inject many faults into a launch, one per experiment, and count the outcomes
    #[cfg(feature = "campaign")]
    Campaign(campaign::CampaignArgs),
    /// Inject many faults into a launch, one per experiment, and count the outcomes (not in this build: feature `campaign`)
    #[cfg(not(feature = "campaign"))]
    Campaign(features::Absent),
    /// Run an OpenGL program on Mesa's driver and an emulated chip
    Drm(drm::Drm),
    /// Run an OpenCL program on Mesa's driver and an emulated NVIDIA chip
    #[command(name = "opencl")]
    OpenCl(Box<drm::opencl::OpenCl>),
    /// Run a CUDA program on an emulated Tesla chip
    Cuda(cuda::Cuda),
    /// Replay a trace of apitrace on an emulated chip, and find the first draw whose picture differs from llvmpipe's
    Replay(Box<replay::Replay>),
    /// Run piglit's shader tests on Mesa's driver and an emulated chip
    Piglit(Box<piglit::Piglit>),
    /// Run Khronos' WebGL conformance suite in Chromium on an emulated chip, and compare the results with llvmpipe's
    Webgl(Box<webgl::Webgl>),
    /// Serve the playground to a browser on this machine
    Serve(serve::Serve),
    /// Print the completion script for a shell
    Completions(man::Completions),
    /// Print the manual page, or write the pages of all commands into a folder
    Man(man::Man),
}

impl Command {
    /// Whether the command runs programs on an engine.
    fn executes(&self) -> bool {
        matches!(
            self,
            Command::Run(_)
                | Command::Trace(_)
                | Command::Stats(_)
                | Command::Debug(_)
                | Command::Check(_)
                | Command::Bench(_)
                | Command::Campaign(_)
        )
    }
}

/// Returns the arguments of the subcommand.
fn chosen(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, matches)| matches)
}

/// Returns the message about wrong arguments, in which the arguments are escaped. The message quotes the arguments
/// between colour codes. Escaping the whole message would destroy these codes. So the function first escapes the
/// arguments, and then parses the command line again. For the escaped arguments, the parser returns the same message.
fn refused(error: &clap::Error) -> clap::Error {
    let arguments = std::env::args_os().map(|argument| shown::name(&argument.to_string_lossy()).into_owned());
    match Cli::command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Err(shown) => shown,
        // The escaped arguments are correct. So the only mistake in the original arguments was a character that is now
        // escaped.
        Ok(_) => Cli::command().error(error.kind(), shown::name(&error.render().to_string())),
    }
}

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // The parser also returns help texts and the version as errors. These texts are answers and go to standard
            // output. All other errors mean wrong usage.
            let code = if error.use_stderr() { 2 } else { 0 };
            match code {
                0 => messages::answer_coloured(format_args!("{}", error.render().ansi())),
                _ => messages::tell_coloured(&refused(&error).render().ansi().to_string()),
            }
            messages::finish();
            if code == 2 && std::env::args().any(|argument| argument == "--json") {
                let text = refused(&error).to_string();
                crate::messages::answer_json(
                    &serde_json::json!({ "error": text.trim_start_matches("error: ").trim_end() }),
                );
            }
            return ExitCode::from(code);
        }
    };
    match cli.color {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    if cli.quiet {
        messages::be_quiet();
    }
    cli.limits.iter().for_each(limits::Setting::set);
    if cli.command.executes() && !Level::any() {
        let what = "vector code for a processor without AVX2";
        messages::note(&format!(
            "the reference interpreter runs instead of the other engines: {}",
            features::missing(what, "every-level")
        ));
    }
    // Only commands that can print a JSON object have the option `--json`.
    let as_json = chosen(&matches).try_get_one("json").is_ok_and(|given| given == Some(&true));
    #[cfg(not(feature = "campaign"))]
    let as_json = as_json || matches!(&cli.command, Command::Campaign(args) if args.as_json());
    let answer = match cli.command {
        Command::Dis(args) => dis::run(&args),
        Command::Asm(args) => asm::run(&args),
        Command::List(args) => list::run(&args),
        Command::Cases(args) => list::run_cases(&args),
        Command::Patch(args) => patch::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Forms(args) => forms::run(&args),
        Command::Lsp(args) => lsp::run(&args),
        Command::Lint(args) => lint::run(&args),
        Command::Cfg(args) => cfg::run(&args, chosen(&matches)),
        Command::Run(args) => run::run(&args, chosen(&matches)),
        Command::Trace(args) => trace::run(&args, chosen(&matches)),
        Command::Stats(args) if args.compares() => compare::run(&args, chosen(&matches)),
        Command::Stats(args) => stats::run(&args, chosen(&matches)),
        Command::Debug(args) => debug::run(&args, chosen(&matches), Cli::command()),
        Command::Check(args) => check::run(&args),
        Command::Bench(args) => bench::run(&args),
        #[cfg(feature = "campaign")]
        Command::Campaign(args) => campaign::run(&args),
        #[cfg(not(feature = "campaign"))]
        Command::Campaign(args) => args.run("campaign"),
        Command::Drm(args) => drm::run(&args),
        Command::OpenCl(args) => drm::opencl::run(&args),
        Command::Cuda(args) => cuda::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Piglit(args) => piglit::run(&args),
        Command::Webgl(args) => webgl::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Completions(args) => man::completions(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    };
    if let Some(why) = reconverge_simt::compiling::refusal().filter(|_| cli.verbose) {
        tell!("note: the fast engine ran instead of the compiled one: {why}");
    }
    let spent = reconverge_simt::compiling::spent();
    if cli.verbose && spent.programs > 0 {
        let milliseconds = |time: std::time::Duration| 1e3 * time.as_secs_f64();
        tell!(
            "note: {} compiled in {:.2} ms, the longest in {:.2} ms: {} of code",
            messages::counted(spent.programs, "program"),
            milliseconds(spent.time),
            milliseconds(reconverge_simt::compiling::longest()),
            messages::counted(spent.bytes, "byte"),
        );
    }
    if cli.verbose && spent.rejected > 0 {
        let programs = messages::counted(spent.rejected, "program");
        tell!("note: the verifier of generated code rejected {programs}, which the fast engine ran");
    }
    messages::finish();
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::Status(status)) => ExitCode::from(status),
        Err(error) => {
            messages::error(&error, as_json);
            ExitCode::from(2)
        }
    }
}
