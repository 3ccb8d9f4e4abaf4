//! `reconverge stats`

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, ValueEnum};
use comfy_table::CellAlignment;
use reconverge_simt::Engine;
use reconverge_simt::limits::TRACE;
use reconverge_trace::{Reader, What};
use reconverge_workbench::listing::{Lines, Style};
use reconverge_workbench::machine::Machine;
use reconverge_workbench::stats::{GroupCounts, InstructionCounts, Profile, banks};
use reconverge_workbench::trace::{Recorded, Sink};
use serde_json::json;

use crate::args::Answer;
use crate::interrupt::{Ended, run_traced};
use crate::launch::{LaunchArgs, Ready};
use crate::messages;
use crate::timeout::{Seconds, Timeout};
use crate::trace::is_trace;

/// Count the instructions that a launch executes: issues, lanes, divergences and their cost
///
/// FILE is an input of `run`. With --compare, it can also be a trace.
#[derive(clap::Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Format of the counts
    #[arg(long, value_enum, default_value_t = Form::Table, conflicts_with = "json")]
    pub(crate) form: Form,
    /// Print one line per instruction, group, or block (Tesla)
    #[arg(long, value_enum, default_value_t = By::Instruction, conflicts_with = "json")]
    by: By,
    /// Do not count memory transactions. The command is then faster, because only the reference interpreter counts
    /// transactions
    #[arg(long)]
    no_memory: bool,
    /// Find the first difference between this program and another program with the same launch, or between two traces.
    /// The exit status is 1 if there is a difference
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Find the first difference between this run and a run of the same launch on another engine
    #[arg(long, value_name = "ENGINE", value_parser = crate::args::engine(), conflicts_with = "compare")]
    pub(crate) compare_engine: Option<Engine>,
    /// Maximum size in bytes of each of the two recordings that are compared
    #[arg(long, value_name = "BYTES", default_value_t = TRACE.get())]
    pub(crate) limit: u64,
    /// Stop after this time, with exit status 1 and without counts
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<Seconds>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Aligned columns
    Table,
    /// Comma-separated values, one line per instruction
    Csv,
}

/// The unit to which each line of counts refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// One line per instruction
    Instruction,
    /// One line per group (wavefront or warp)
    Group,
    /// One line per block of warps
    Block,
}

impl Stats {
    /// Whether the command compares two launches or traces.
    pub(crate) fn compares(&self) -> bool {
        self.compare.is_some() || self.compare_engine.is_some()
    }
}

pub(crate) fn run(args: &Stats, matches: &ArgMatches) -> Result<Answer> {
    // The timer stops when `_limit` is dropped at the end of the command.
    let _limit = Timeout::start(args.timeout, args.json, &crate::shown::path(&args.launch.file()));
    if is_trace(args.launch.file()) {
        return of_trace(args);
    }
    let ready = args.launch.ready(matches)?;
    let (target, program) = (&ready.opened.target, ready.program());
    let machine = target.machine();
    let listing = machine.disassemble(target, program, Style { structure: true, ..Style::default() })?;
    let conventions = machine.conventions(target, program)?;
    let memory = !args.no_memory && conventions.have_accesses();
    let rule = match conventions.coalescing {
        Ok(rule) => rule.name(),
        Err(why) => why,
    };
    let groups_per_block = groups_per_block(&ready);
    if args.by == By::Block && groups_per_block.is_none() {
        bail!("--by block: only Tesla kernels have blocks; use --by group");
    }
    let mut profile = Profile::new(width(&ready)).by(conventions, &depths(&ready));
    let recorded = if memory { Recorded::Data } else { Recorded::Flow };
    let progress = messages::spinner("running");
    let ended = run_traced(&ready, recorded, &mut profile);
    progress.finish_and_clear();
    let ended = ended?;
    profile.end();
    let lines = listing.instructions(&program.words);
    let counts = Counts { machine, profile: &profile, lines: &lines, memory, rule, groups_per_block };
    counts.print(args, program.resources.stack, &ended);
    if ended == Ended::Interrupted {
        messages::note("interrupted: these are the counts so far");
    }
    Ok(ended.answer(&ready.title))
}

/// Returns the maximum number of lanes in a group of a launch.
pub(crate) fn width(ready: &Ready) -> u32 {
    let stepping = ready.session.start(&ready.options).ok();
    stepping.map_or(64, |stepping| stepping.lanes(0).len().max(1)) as u32
}

/// Returns the number of groups in a block, or `None` if the launch does not have blocks.
fn groups_per_block(ready: &Ready) -> Option<usize> {
    ready.session.start(&ready.options).ok()?.groups_per_block()
}

fn depths(ready: &Ready) -> Vec<reconverge_simt::Depth> {
    ready.session.start(&ready.options).map(|stepping| stepping.depths(0)).unwrap_or_default()
}

/// Prints the counts that a trace contains.
fn of_trace(args: &Stats) -> Result<Answer> {
    let path = args.launch.file();
    let place = || crate::shown::path(&path);
    let mut reader =
        Reader::new(BufReader::new(File::open(path).with_context(place)?)).with_context(place)?;
    let isa: reconverge_isa::Isa = reader.header().isa.parse().with_context(place)?;
    let machine = reconverge_workbench::machine(isa);
    let mut profile = Profile::new(reader.header().lanes_per_group);
    replay(&mut reader, &mut profile).with_context(place)?;
    let lines = Lines::of(reader.header().listing.iter().map(|line| reconverge_workbench::listing::Line {
        address: Some(line.address),
        text: line.text.clone(),
        ..Default::default()
    }));
    if args.by == By::Block {
        bail!("{}: --by block: expected a launch, found a trace, which has only groups", place());
    }
    let groups_per_block = None;
    let counts =
        Counts { machine, profile: &profile, lines: &lines, memory: false, rule: "", groups_per_block };
    let trap = reader.end().and_then(|end| end.outcome.trap.clone());
    counts.print(args, None, &trap.clone().map_or(Ended::Well, Ended::Trap));
    messages::note("a trace does not record classes, stacks and memory; to count them, use the launch file");
    crate::trace::said_whole(&reader, path)?;
    match trap {
        None => Ok(Answer::Yes),
        Some(trap) => {
            tell!("{}: {trap}", place());
            Ok(Answer::No)
        }
    }
}

/// Reads the records of a trace and passes the records to a sink.
pub(crate) fn replay<R: Read + Seek>(reader: &mut Reader<R>, sink: &mut impl Sink) -> Result<()> {
    for number in 0..reader.blocks().len() {
        for record in reader.block(number)? {
            let group = record.group as usize;
            match record.what {
                What::Ran { pc, count, mask } => sink.issues(group, reader.addresses(pc, count), mask),
                what => sink.event(group, what.event()),
            }
        }
    }
    Ok(())
}

/// All counts, ready to be printed.
struct Counts<'a> {
    machine: &'static dyn Machine,
    profile: &'a Profile,
    lines: &'a Lines,
    /// Whether accesses to memory were counted.
    memory: bool,
    /// Rule by which accesses to memory coalesce. If the manual does not state a rule, the text explains why there is
    /// no rule.
    rule: &'a str,
    /// Number of groups in a block, if the launch has blocks.
    groups_per_block: Option<usize>,
}

impl Counts<'_> {
    fn print(&self, args: &Stats, declared: Option<u32>, ended: &Ended) {
        match (args.json, args.form, args.by) {
            (true, ..) => self.json(declared, ended),
            (false, Form::Csv, By::Instruction) => self.csv(),
            (false, Form::Table, By::Instruction) => self.table(),
            (false, form, By::Group) => self.listed(form, "group", &self.profile.groups()),
            (false, form, By::Block) => {
                let blocks = self.profile.blocks(self.groups_per_block.unwrap_or(1));
                self.listed(form, "block", &blocks);
            }
        }
    }

    /// Prints the counts of groups or blocks, one per line. If accesses to memory were counted, the lines also contain
    /// the counts of the accesses.
    fn listed(&self, form: Form, name: &str, all: &[(usize, GroupCounts)]) {
        let width = self.profile.width();
        let share = |counts: &GroupCounts| counts.simd_efficiency(width);
        if form == Form::Csv {
            say!(
                "{name},instructions,lane_instructions,divergent_branches,simd_efficiency,requests,transactions,\
                 bytes_moved,bytes_wanted,bank_requests,bank_passes"
            );
            for (number, counts) in all {
                let GroupCounts { instructions, lane_instructions, divergent_branches, memory, banks } =
                    counts;
                say!(
                    "{number},{instructions},{lane_instructions},{divergent_branches},{:.4},{},{},{},{},{},{}",
                    share(counts),
                    memory.requests,
                    memory.transactions,
                    memory.bytes_moved,
                    memory.bytes_wanted,
                    banks.requests,
                    banks.passes
                );
            }
            return;
        }
        let header = [name, "instructions", "lane instructions", "SIMD efficiency", "diverged"];
        let banked = self.memory && self.profile.bank_totals().requests > 0;
        let memory = ["transactions"].into_iter().filter(|_| self.memory);
        let banks = ["bank passes"].into_iter().filter(|_| banked);
        let mut table = messages::table(header.into_iter().chain(memory).chain(banks).collect::<Vec<_>>());
        for (number, counts) in all {
            let of = |served: u64, requests: u64| match requests {
                0 => String::new(),
                _ => format!("{served} for {}", messages::counted(requests, "request")),
            };
            let memory = self.memory.then(|| of(counts.memory.transactions, counts.memory.requests));
            let banks = banked.then(|| of(counts.banks.passes, counts.banks.requests));
            let row = [
                number.to_string(),
                counts.instructions.to_string(),
                counts.lane_instructions.to_string(),
                format!("{:.1} %", 100.0 * share(counts)),
                counts.divergent_branches.to_string(),
            ];
            table.add_row(row.into_iter().chain(memory).chain(banks));
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        say!("{}", table.trim_fmt());
    }

    fn json(&self, declared: Option<u32>, ended: &Ended) {
        let mut object = self.profile.to_json(self.lines, self.memory, self.rule, self.groups_per_block);
        object["stack_declared"] = json!(declared);
        object["trap"] = json!(ended.trap());
        object["interrupted"] = json!(*ended == Ended::Interrupted);
        messages::answer_json(&object);
    }

    fn csv(&self) {
        say!(
            "pc,executed,lanes,diverged,taken_cost,not_cost,reconverged,distance,farthest,class,requests,transactions,\
             bytes_moved,bytes_wanted,bank_requests,bank_passes,text"
        );
        for (pc, counts) in self.profile.instructions() {
            let InstructionCounts {
                executed,
                lanes,
                diverged,
                taken_cost,
                not_cost,
                reconverged,
                distance,
                farthest,
            } = counts;
            let memory = match self.profile.memory(pc) {
                Some(memory) => format!(
                    "{},{},{},{}",
                    memory.requests, memory.transactions, memory.bytes_moved, memory.bytes_wanted
                ),
                None => ",,,".to_owned(),
            };
            let banks = match self.profile.banks(pc) {
                Some(banks) => format!("{},{}", banks.requests, banks.passes),
                None => ",".to_owned(),
            };
            let class = self.profile.class(pc).name();
            let text = self.lines.code(pc).replace('"', "\"\"");
            say!(
                "{pc},{executed},{lanes},{diverged},{taken_cost},{not_cost},{reconverged},{distance},{farthest},\
                 {class},{memory},{banks},\"{text}\""
            );
        }
    }

    fn table(&self) {
        let totals = self.profile.totals();
        let conflicts = self.conflicts();
        let memory = ["transactions"].into_iter().filter(|_| self.memory);
        let memory = memory.chain(["bank passes"].into_iter().filter(|_| conflicts));
        let header =
            ["address", "executed", "lanes", "of all", "diverged", "cost of the sides", "reconverges after"];
        let mut table =
            messages::table(header.into_iter().chain(memory).chain(["instruction"]).collect::<Vec<_>>());
        let places = match totals.simd_efficiency {
            0.0 => 1.0,
            share => totals.lane_instructions as f64 / (totals.instructions as f64 * share),
        };
        for (pc, counts) in self.profile.instructions() {
            let share = 100.0 * counts.lanes as f64 / (counts.executed as f64 * places);
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
            let memory = self.profile.memory(pc).map(|memory| {
                format!("{} for {}", memory.transactions, messages::counted(memory.requests, "request"))
            });
            let banks = self.profile.banks(pc).map(|banks| {
                format!("{} for {}", banks.passes, messages::counted(banks.requests, "request"))
            });
            let memory = self.memory.then(|| memory.unwrap_or_default()).into_iter();
            let memory = memory.chain(conflicts.then(|| banks.unwrap_or_default()));
            let row = [
                self.machine.isa().spelled(pc),
                counts.executed.to_string(),
                counts.lanes.to_string(),
                format!("{share:.1} %"),
                diverged,
                sides,
                distance,
            ];
            table.add_row(row.into_iter().chain(memory).chain([self.lines.code(pc)]));
        }
        for column in table.column_iter_mut().take(5) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        say!("{}", table.trim_fmt());
        say!(
            "\n{}; SIMD efficiency {:.1} %",
            messages::executed(totals.instructions, totals.lane_instructions, totals.divergent_branches),
            100.0 * totals.simd_efficiency
        );
        let mix = self.profile.mix();
        let class = |class: &reconverge_workbench::stats::ClassCounts| {
            format!("{} {} ({:.1} %)", class.class, class.executed, 100.0 * class.share)
        };
        if self.rule.is_empty() {
            return;
        }
        say!("mix: {}", mix.iter().map(class).collect::<Vec<_>>().join(", "));
        for stack in self.profile.stacks() {
            let room = stack.room.map_or("limit unknown".to_owned(), |room| format!("of {room}"));
            say!("{}: up to {} in use, {room}", stack.of, stack.high_water);
        }
        let memory = self.profile.memory_totals();
        if self.memory && memory.requests > 0 {
            say!(
                "memory: {} in {}, {} of the {} moved bytes were requested; {}",
                messages::counted(memory.requests, "request"),
                messages::counted(memory.transactions, "transaction"),
                memory.bytes_wanted,
                memory.bytes_moved,
                self.rule
            );
        }
        let banks = self.profile.bank_totals();
        if self.memory && banks.requests > 0 {
            say!(
                "shared memory: {} in {}, up to {} per request; {}",
                messages::counted(banks.requests, "request"),
                counted_passes(banks.passes),
                banks.most,
                banks::RULE
            );
        }
    }

    /// Whether a request to shared memory took more than one pass.
    fn conflicts(&self) -> bool {
        let banks = self.profile.bank_totals();
        self.memory && banks.passes > banks.requests
    }
}

/// Returns `1 pass` or `2 passes`.
fn counted_passes(passes: u64) -> String {
    if passes == 1 { "1 pass".to_owned() } else { format!("{passes} passes") }
}
