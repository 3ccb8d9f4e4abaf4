//! `reconverge list`

use std::path::PathBuf;

use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use reconverge_cases::Case;
use reconverge_workbench::contents::{Contents, ProgramContents, contents};
use regex_lite::Regex;

use crate::args::{Answer, InputArgs, TargetArgs};
use crate::files::{cases, open_program};
use crate::messages::{self, answer_as, answer_json, counted};
use crate::shown;

/// List the programs of a file with the resources that they need
#[derive(clap::Args)]
#[command(after_help = crate::args::files_help())]
pub(crate) struct List {
    /// The file; `-` for standard input
    file: PathBuf,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: InputArgs,
}

pub(crate) fn run(args: &List) -> Result<Answer> {
    let opened = open_program(&args.file, &args.known)?;
    let contents = contents(&opened)?;
    answer_as(args.json, &contents, print);
    Ok(Answer::Yes)
}

/// List the names of the cases in a file. Other commands take such a name in --case
#[derive(clap::Args)]
pub(crate) struct Cases {
    /// The file, such as shaders.jsonl.gz; `-` for standard input
    file: PathBuf,
    /// List only cases whose name matches REGEX
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run_cases(args: &Cases) -> Result<Answer> {
    let mut cases = cases(&args.file, &args.target)?;
    cases.retain(|case| args.filter.as_ref().is_none_or(|filter| filter.is_match(&case.name)));
    if args.json {
        let of = |case: &Case| serde_json::json!({"name": case.name, "about": case.about()});
        answer_json(&serde_json::json!({"cases": cases.iter().map(of).collect::<Vec<_>>()}));
    } else {
        let width =
            cases.iter().map(|case| shown::name(&case.name).chars().count()).max().unwrap_or_default();
        cases
            .iter()
            .for_each(|case| say!("{:<width$}  {}", shown::name(&case.name), shown::name(&case.about())));
    }
    Ok(Answer::Yes)
}

/// A column. A column has a heading, and a function that returns the text of the column's cell for a program.
type Column = (&'static str, fn(&ProgramContents) -> Option<String>);

const COLUMNS: [Column; 13] = [
    ("program", |program| Some(program.demangled.clone().or(program.name.clone()).unwrap_or("-".to_owned()))),
    ("machine", |program| Some(program.isa.to_owned())),
    ("chip", |program| program.chip.clone()),
    ("stage", |program| program.stage.map(str::to_owned)),
    ("words", |program| Some(program.words.to_string())),
    ("instructions", |program| Some(program.instructions.to_string())),
    ("registers", |program| needed(program.registers, program.registers_needed)),
    ("shared", |program| number(program.shared)),
    ("local", |program| number(program.local)),
    ("stack", |program| needed(program.stack, program.stack_needed)),
    ("barriers", |program| number(program.barriers)),
    ("parameters", |program| match (&program.parameters[..], program.parameter_bytes) {
        ([], None) => None,
        ([], Some(bytes)) => Some(format!("{bytes} B")),
        (list, _) => {
            Some(format!("{} ({} B)", list.len(), list.iter().map(|param| param.bytes).sum::<u32>()))
        }
    }),
    ("module", |program| program.module.map(|module| module.to_string())),
];

fn number(value: Option<u32>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Returns the number of registers or stack entries that the program declares, as text. If the program needs a
/// different number, the text also has the needed number.
fn needed(declared: Option<u32>, needed: Option<u32>) -> Option<String> {
    match (declared, needed) {
        (None, Some(needed)) => Some(format!("- (needs {needed})")),
        (Some(declared), Some(needed)) if needed != declared => Some(format!("{declared} (needs {needed})")),
        _ => number(declared),
    }
}

fn print(contents: &Contents) {
    let programs = &contents.programs;
    say!("{}: {}", contents.format, counted(programs.len() as u64, "program"));
    // If all cells of a column are empty, the column is omitted. If the file has only one module, the column of modules
    // is also omitted.
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|(_, of)| programs.iter().any(|program| of(program).is_some()))
        .filter(|(name, _)| *name != "module" || contents.modules.len() > 1)
        .collect();
    let mut table = table(columns.iter().map(|(name, _)| *name));
    for program in programs {
        table.add_row(
            columns.iter().map(|(_, of)| shown::name(&of(program).unwrap_or("-".to_owned())).into_owned()),
        );
    }
    for (column, (name, _)) in table.column_iter_mut().zip(&columns) {
        if !["program", "machine", "chip", "stage", "parameters"].contains(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    say!("{}", trimmed(&table));
    for program in programs {
        let title = program.demangled.as_ref().or(program.name.as_ref()).map_or("", |name| name);
        let title = shown::name(title);
        if let (Some(_), Some(name)) = (&program.demangled, &program.name) {
            say!("{title}: named {}", shown::name(name));
        }
        if !program.parameters.is_empty() {
            let one = |param: &reconverge_workbench::contents::Parameter| {
                let name =
                    param.name.as_ref().map(|name| format!("{} ", shown::name(name))).unwrap_or_default();
                format!("{name}{:#x} ({} B)", param.offset, param.bytes)
            };
            let list: Vec<String> = program.parameters.iter().map(one).collect();
            say!("{title}: parameters {}", list.join(", "));
        }
        for data in &program.constants {
            say!("{title}: constants in bank {} from {:#x}, {} B", data.bank, data.offset, data.bytes);
        }
        if !program.state.is_empty() {
            say!("{title}: {}", counted(program.state.len() as u64, "state register"));
        }
        for sampler in &program.samplers {
            say!("{title}: texture {} in unit {}", shown::name(&sampler.name), sampler.unit);
        }
    }
    for (index, module) in contents.modules.iter().enumerate() {
        let title = match (&module.name, contents.modules.len()) {
            (_, 1) => "module".to_owned(),
            (Some(name), _) => format!("module {index} ({})", shown::name(name)),
            (None, _) => format!("module {index}"),
        };
        for data in &module.constants {
            say!("{title}: constants in bank {} from {:#x}, {} B", data.bank, data.offset, data.bytes);
        }
        for variable in &module.variables {
            say!(
                "{title}: {} variable {}, {} B",
                variable.space,
                shown::name(&variable.name),
                variable.bytes
            );
        }
        for sampler in &module.samplers {
            say!("{title}: texture {} in unit {}", shown::name(&sampler.name), sampler.unit);
        }
    }
}

/// Returns a table without borders. The width of the table depends only on the content of the table, because programs
/// may also read the table.
fn table<'a>(header: impl Iterator<Item = &'a str>) -> Table {
    let mut table = messages::table(header.collect::<Vec<_>>());
    table.set_content_arrangement(ContentArrangement::Disabled);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// Returns the lines of a table without trailing spaces.
fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
