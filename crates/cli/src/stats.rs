//! `reconverge stats`

use anyhow::{Result, anyhow};
use clap::{ArgMatches, ValueEnum};
use comfy_table::{CellAlignment, Table, presets};
use reconverge_workbench::listing::Style;
use reconverge_workbench::request::Error;
use reconverge_workbench::stats::Profile;
use reconverge_workbench::trace::Recorded;
use serde_json::json;

use crate::launch::LaunchArgs;
use crate::{Answer, messages};

/// Count what a launch executes, by instruction: how often, for how many lanes, how often lanes part, what that costs
#[derive(clap::Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    launch: LaunchArgs,
    /// How the counts are printed
    #[arg(long, value_enum, default_value_t = Form::Table, conflicts_with = "json")]
    form: Form,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Columns for a reader
    Table,
    /// Comma-separated values, a line an instruction
    Csv,
}

pub(crate) fn run(args: &Stats, matches: &ArgMatches) -> Result<Answer> {
    let ready = args.launch.ready(matches)?;
    let (target, program) = (&ready.opened.target, ready.program());
    let machine = target.machine();
    let stepping = ready.session.start(&ready.options).ok();
    let width = stepping.map_or(64, |stepping| stepping.lanes(0).len().max(1));
    let listing = machine.disassemble(target, program, Style { structure: true, ..Style::default() })?;
    let mut profile = Profile::new(width as u32);
    let progress = messages::spinner("running");
    let ended = ready.session.copy().run_traced(&ready.options, Recorded::Flow, &mut profile);
    progress.finish_and_clear();
    let trap = match ended {
        Ok(_) => None,
        Err(Error::Trap(trap)) => Some(trap.to_string()),
        Err(error) => return Err(anyhow!("{}: {error}", ready.title)),
    };
    let lines = listing.lines(&program.words);
    let text = |pc: u32| {
        let line = lines.iter().find(|line| line.address == Some(pc));
        line.map_or(String::new(), |line| line.code())
    };
    let totals = profile.totals();
    let declared = program.resources.stack;
    if args.json {
        let instructions = profile.instructions().map(|(pc, counts)| {
            let mut entry = serde_json::to_value(counts).unwrap_or_default();
            entry["pc"] = json!(pc);
            entry["text"] = json!(text(pc));
            entry
        });
        let instructions: Vec<_> = instructions.collect();
        say!(
            "{}",
            json!({ "instructions": instructions, "totals": totals, "stack_declared": declared, "trap": trap })
        );
    } else if args.form == Form::Csv {
        say!("pc,executed,lanes,diverged,taken_cost,not_cost,reconverged,distance,farthest,text");
        for (pc, counts) in profile.instructions() {
            let text = text(pc).replace('"', "\"\"");
            say!(
                "{pc},{},{},{},{},{},{},{},{},\"{text}\"",
                counts.executed,
                counts.lanes,
                counts.diverged,
                counts.taken_cost,
                counts.not_cost,
                counts.reconverged,
                counts.distance,
                counts.farthest
            );
        }
    } else {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "address",
            "executed",
            "lanes",
            "of all",
            "diverged",
            "cost of the sides",
            "reconverges after",
            "instruction",
        ]);
        for (pc, counts) in profile.instructions() {
            let share = 100.0 * counts.lanes as f64 / (counts.executed as f64 * width as f64);
            let sides = match counts.diverged {
                0 => String::new(),
                _ => format!("{} + {}", counts.taken_cost, counts.not_cost),
            };
            let distance = match (counts.diverged, counts.reconverged) {
                (0, _) => String::new(),
                (_, 0) => "never".to_owned(),
                (_, times) => {
                    format!("{:.1}, at most {}", counts.distance as f64 / times as f64, counts.farthest)
                }
            };
            let diverged = if counts.diverged == 0 { String::new() } else { counts.diverged.to_string() };
            table.add_row([
                machine.spelled(pc),
                counts.executed.to_string(),
                counts.lanes.to_string(),
                format!("{share:.1} %"),
                diverged,
                sides,
                distance,
                text(pc),
            ]);
        }
        for column in table.column_iter_mut().take(5) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        say!("{}", table.trim_fmt());
        say!(
            "\n{}, {}, {}; SIMD efficiency {:.1} %",
            messages::counted(totals.instructions, "group instruction"),
            messages::counted(totals.lane_instructions, "lane instruction"),
            messages::counted(totals.divergent_branches, "divergent branch"),
            100.0 * totals.simd_efficiency
        );
        let declared = declared.map(|entries| format!(", {entries} declared")).unwrap_or_default();
        say!("stack: entries at most: {}{declared}", totals.stack_high_water);
    }
    match trap {
        None => Ok(Answer::Yes),
        Some(trap) => {
            tell!("{}: {trap}", ready.title);
            Ok(Answer::No)
        }
    }
}
