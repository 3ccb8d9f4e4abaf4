//! `reconverge lint`

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use reconverge_isa::Isa;
use reconverge_isa::lint::{Finding, Rule, Severity};
use reconverge_isa::source::closest;
use reconverge_workbench::keys::plain;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::lint::{findings, findings_in_launch};
use reconverge_workbench::listing::Line;
use reconverge_workbench::target::isa_of_chip;
use reconverge_workbench::{Style, machine};
use serde_json::{Value, json};

use crate::args::{Answer, InputArgs};
use crate::launch::{Programs, open_programs};
use crate::messages::{answer_coloured, counted};
use crate::shown;

/// Check programs against the rules of their machine
///
/// An error is forbidden by the documents or traps. A warning has an undefined result. A note is allowed and probably
/// a mistake. The exit status is 1 if there is an error or a warning, otherwise 0.
#[derive(clap::Args)]
#[command(after_help = crate::args::files_help())]
pub(crate) struct Lint {
    /// Programs, launch files, run manifests, or a file of cases with --case; `-` for standard input
    #[arg(required_unless_present = "rules", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Use the case with this name in a file of cases
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Use only the program with this name
    #[arg(long)]
    kernel: Option<String>,
    /// Do not report findings of this rule. Can be repeated
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// List the rules; with --isa or --chip, only the rules of one machine
    #[arg(long, conflicts_with_all = ["files", "case", "kernel", "allow"])]
    rules: bool,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: InputArgs,
}

/// A finding with its file, line and address.
struct Located {
    file: String,
    program: Option<String>,
    /// The line of the source, counted from 1.
    line: Option<usize>,
    address: String,
    text: String,
    finding: Finding,
}

/// All findings, the number of programs, and the number of findings that `--allow` hides.
#[derive(Default)]
struct Found {
    findings: Vec<Located>,
    programs: usize,
    allowed: usize,
}

pub(crate) fn run(args: &Lint) -> Result<Answer> {
    if args.rules {
        rules(args)?;
        return Ok(Answer::Yes);
    }
    check_names(&args.allow)?;
    let opened = args.files.iter().map(|file| open_programs(file, args.case.as_deref(), false, &args.known));
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let mut found = Found::default();
    for programs in &opened {
        found.add(args, programs).with_context(|| crate::shown::path(&programs.path))?;
    }
    match args.json {
        true => crate::messages::answer_json(&found.to_json()),
        false => found.print(),
    }
    let bad = found.findings.iter().any(|located| located.finding.rule.severity > Severity::Note);
    Ok(if bad { Answer::No } else { Answer::Yes })
}

impl Found {
    /// Adds the findings in a file.
    fn add(&mut self, args: &Lint, programs: &Programs) -> Result<()> {
        let Programs { opened, path, launch } = programs;
        let machine = opened.target.machine();
        let all = &opened.image.programs;
        let chosen = match args.kernel.as_deref().or(programs.kernel()) {
            Some(name) => vec![choose_program(&opened.image, Some(name))?],
            None => all.iter().collect(),
        };
        for program in chosen {
            self.programs += 1;
            let target = &opened.target.for_program(&opened.image, program);
            let found = match launch {
                Some((launch, files)) => findings_in_launch(opened, program, launch, files)?,
                None => findings(target, program)?,
            };
            if found.is_empty() {
                continue;
            }
            let lines = machine.disassemble(target, program, Style::default())?.lines(&program.words);
            let lines: BTreeMap<u32, &Line> =
                lines.iter().filter_map(|line| Some((line.address?, line))).collect();
            for finding in found {
                if args.allow.iter().any(|name| name == finding.rule.name) {
                    self.allowed += 1;
                    continue;
                }
                // A finding may have an address inside an instruction. In that case, the line of the finding is the
                // line of that instruction.
                let line = lines.range(..=finding.pc).next_back().map(|(_, line)| *line);
                self.findings.push(Located {
                    file: plain(path).display().to_string(),
                    program: program.name.clone().filter(|_| all.len() > 1),
                    line: opened.line(program, finding.pc),
                    address: machine.isa().spelled(finding.pc),
                    text: line.map(Line::code).unwrap_or_default(),
                    finding,
                });
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let of = |located: &Located| {
            let Finding { rule, pc, message } = &located.finding;
            json!({
                "rule": rule.name,
                "severity": rule.severity.name(),
                "pc": pc,
                "message": message,
                "address": located.address,
                "text": located.text,
                "line": located.line,
                "program": located.program,
                "file": located.file,
                "demands": rule.demands,
                "source": rule.source,
                "fix": rule.fix,
            })
        };
        let findings: Vec<Value> = self.findings.iter().map(of).collect();
        json!({ "findings": findings, "programs": self.programs, "allowed": self.allowed })
    }

    fn print(&self) {
        for located in &self.findings {
            let Finding { rule, message, .. } = &located.finding;
            let line = located.line.map(|line| format!(":{line}")).unwrap_or_default();
            let program = located.program.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
            let place = format!("{}{line}{program}, at {}", located.file, located.address);
            let (place, message) = (shown::name(&place), shown::name(message));
            answer_coloured(format_args!("{}[{}] {place}: {message}\n", painted(rule.severity), rule.name));
            say!("  {}", located.text);
            say!("  rule: {}", rule.demands);
            say!("  source: {}", rule.source);
            if !rule.fix.is_empty() {
                say!("  fix: {}", rule.fix);
            }
            say!("");
        }
        let count = |severity: Severity| {
            let of = self.findings.iter().filter(|located| located.finding.rule.severity == severity);
            counted(of.count() as u64, severity.name())
        };
        let [errors, warnings, notes] = [Severity::Error, Severity::Warning, Severity::Note].map(count);
        let programs = counted(self.programs as u64, "program");
        let allowed = match self.allowed {
            0 => String::new(),
            count => format!("; {count} allowed"),
        };
        say!("{programs}: {errors}, {warnings}, {notes}{allowed}");
    }
}

/// Returns the severity in its colour.
fn painted(severity: Severity) -> String {
    let colour = match severity {
        Severity::Error => 31,
        Severity::Warning => 33,
        Severity::Note => 36,
    };
    format!("\x1b[1;{colour}m{severity}\x1b[0m")
}

/// Returns an error if one of the names is not a rule of any machine.
fn check_names(allowed: &[String]) -> Result<()> {
    let rules = || Isa::ALL.into_iter().flat_map(|isa| machine(isa).rules());
    let Some(unknown) = allowed.iter().find(|name| rules().all(|rule| rule.name != *name)) else {
        return Ok(());
    };
    let meant = closest(unknown, rules().map(|rule| rule.name));
    let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
    bail!("unknown rule --allow `{unknown}`: {meant}--rules lists the rules")
}

/// Prints the list of rules.
fn rules(args: &Lint) -> Result<()> {
    let chosen = match (args.known.target.isa, &args.known.target.chip) {
        (None, Some(chip)) => Some(isa_of_chip(chip).with_context(|| format!("unknown chip `{chip}`"))?),
        (isa, _) => isa,
    };
    let machines = Isa::ALL.into_iter().filter(|isa| chosen.is_none_or(|chosen| chosen == *isa));
    let mut listed = Vec::new();
    for isa in machines {
        for rule in machine(isa).rules() {
            let Rule { name, severity, demands, source, fix } = *rule;
            match args.json {
                true => listed.push(json!({
                    "isa": isa.name(),
                    "rule": name,
                    "severity": severity.name(),
                    "demands": demands,
                    "source": source,
                    "fix": fix,
                })),
                false => {
                    answer_coloured(format_args!("{} {}[{name}] {demands}\n", isa.name(), painted(severity)));
                    say!("  source: {source}");
                    if !fix.is_empty() {
                        say!("  fix: {fix}");
                    }
                }
            }
        }
    }
    if args.json {
        crate::messages::answer_json(&json!({ "rules": listed }));
    }
    Ok(())
}
