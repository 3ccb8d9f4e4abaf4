//! The command line: thin. Files are read and results printed here and nowhere below.
//!
//! Exit status: 0 all well; 1 the answer is no (a case failed, the program trapped); 2 the input or the usage is wrong.

/// `println!` for answers: a reader that has gone away (a pager, `head`) ends the program quietly.
macro_rules! say {
    ($($text:tt)*) => { crate::messages::answer(format_args!("{}\n", format_args!($($text)*))) };
}

/// `print!` for answers.
macro_rules! say_part {
    ($($text:tt)*) => { crate::messages::answer(format_args!($($text)*)) };
}

mod asm;
mod bench;
mod builtin;
mod check;
mod dis;
mod explain;
mod files;
mod messages;
mod run;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_workbench::{Known, Target};

/// Runs, reads, writes and explains the shader machine code of three vanished GPU generations: ATI R500, AMD R700
/// (and R600), NVIDIA Tesla (G80 to GT21x).
#[derive(Parser)]
#[command(name = "reconverge", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a program as text that `asm` takes back
    Dis(dis::Dis),
    /// Assemble a text
    Asm(asm::Asm),
    /// Explain one instruction, field by field
    Explain(explain::Explain),
    /// Run a program, a launch file or a run manifest
    Run(Box<run::Run>),
    /// Run test cases and compare; without a path, the built-in corpus
    Check(check::Check),
    /// Run the two divergent kernels and time them
    Bench(bench::Bench),
}

/// What the input may not state itself.
#[derive(Args, Clone, Debug, Default)]
struct TargetArgs {
    /// The machine: r500, r700 or tesla
    #[arg(long, value_name = "MACHINE")]
    isa: Option<Isa>,
    /// The chip, for instance R580, RV770, GT200 or sm_13
    #[arg(long, value_name = "NAME")]
    chip: Option<String>,
    /// The program type, where it decides what words mean (tesla): compute, vertex, geometry or fragment
    #[arg(long, value_name = "TYPE")]
    stage: Option<Stage>,
}

impl TargetArgs {
    /// What is known about a file.
    fn known(&self) -> Known {
        Known { isa: self.isa, chip: self.chip.clone(), stage: self.stage }
    }

    /// The target, once the machine is known.
    fn target(&self, isa: Isa) -> Target {
        Target { isa, chip: self.chip.clone(), stage: self.stage }
    }
}

/// What runs programs; results do not depend on it.
#[derive(Args)]
struct EngineArgs {
    /// Which engine runs: fast, reference, or both in lockstep; fast when absent. Results do not depend on it
    #[arg(long, value_parser = engine)]
    engine: Option<Engine>,
    /// What the fast engine computes with: baseline, avx2 or avx512; the most that this processor has when absent.
    /// Results do not depend on it
    #[arg(long, value_parser = level)]
    level: Option<Level>,
}

impl EngineArgs {
    fn options(&self) -> Options {
        let default = Options::default();
        Options { engine: self.engine.unwrap_or(default.engine), level: self.level, ..default }
    }
}

/// The engine of a name.
fn engine(name: &str) -> Result<Engine, String> {
    let names = Engine::ALL.map(Engine::name).join(", ");
    Engine::from_name(name).ok_or_else(|| format!("one of {names} fits here"))
}

/// The mode of a name.
fn mode(name: &str) -> Result<Mode, String> {
    let names = Mode::ALL.map(Mode::name).join(", ");
    Mode::from_name(name).ok_or_else(|| format!("one of {names} fits here"))
}

/// The level of a name.
fn level(name: &str) -> Result<Level, String> {
    let names = Level::available().into_iter().map(Level::name).collect::<Vec<_>>().join(", ");
    Level::from_name(name).ok_or_else(|| format!("this processor has {names}"))
}

/// The container formats, for help texts.
fn files_help() -> String {
    let formats = reconverge_container::formats().map(|(name, about)| format!("  {name:<12} {about}"));
    format!(
        "Formats that are recognised:\n  source       assembler text, by the file name's ending .s or .asm\n{}",
        formats.collect::<Vec<_>>().join("\n")
    )
}

/// How a command ended, when it did not go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// All well.
    Yes,
    /// A case failed, or the program trapped.
    No,
}

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches)?;
        Ok((cli, matches))
    });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are answers, anything else is wrong usage.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let answer = match cli.command {
        Command::Dis(args) => dis::run(&args),
        Command::Asm(args) => asm::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Run(args) => run::run(&args, matches.subcommand_matches("run").unwrap_or(&matches)),
        Command::Check(args) => check::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(error) => {
            messages::error(&error);
            ExitCode::from(2)
        }
    }
}
