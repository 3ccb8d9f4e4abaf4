//! `reconverge explain`

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use reconverge_workbench::Target;
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::machine::{ExplainedField, Explanation};
use reconverge_workbench::target::{TargetError, isa_of_chip};

use crate::args::{Answer, InputArgs};
use crate::files::open_program_or_case;
use crate::messages::{SourceErrors, answer_as};

/// Explain one instruction, field by field
///
/// The instruction is given by its words in memory order (10000003 00000280), by its text ('add b32 $r0 $r1 $r2'), or
/// by its address in a file (kernels.cubin@0x38). `dis --hex` prints addresses.
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// Words, text, or FILE@ADDRESS
    #[arg(required = true, value_name = "INSTRUCTION")]
    instruction: Vec<String>,
    /// Use the program with this name; needed if the file contains several programs
    #[arg(long)]
    kernel: Option<String>,
    /// With FILE@ADDRESS, use the case with this name in a file of cases
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: InputArgs,
}

pub(crate) fn run(args: &Explain) -> Result<Answer> {
    answer_as(args.json, &explained(args)?, print);
    Ok(Answer::Yes)
}

fn explained(args: &Explain) -> Result<Explanation> {
    if let [place] = &args.instruction[..]
        && let Some((file, address)) = place.rsplit_once('@')
        && (Path::new(file).exists() || file == "-")
    {
        let address = crate::patch::address(address).map_err(|why| anyhow!("{place}: {why}"))?;
        let opened = open_program_or_case(Path::new(file), args.case.as_deref(), &args.known)?;
        let program = choose_program(&opened.image, args.kernel.as_deref()).context(file.to_owned())?;
        let target = opened.target.for_program(&opened.image, program);
        let explained = target.machine().explain_at(&target, program, address);
        return explained.context(file.to_owned());
    }
    if args.kernel.is_some() || args.case.is_some() {
        bail!("--kernel and --case: expected FILE@ADDRESS with an existing file");
    }
    let isa = args.known.target.isa.or_else(|| args.known.target.chip.as_deref().and_then(isa_of_chip));
    let isa = isa.ok_or(TargetError::Unknown("--chip"))?;
    let target = args.known.target.target(isa)?;
    match args.instruction.iter().map(|word| word_of(word)).collect::<Option<Vec<u32>>>() {
        Some(words) => Ok(target.machine().explain(&target, &words)?),
        None => of_text(&target, &args.instruction.join(" ")),
    }
}

fn of_text(target: &Target, text: &str) -> Result<Explanation> {
    let machine = target.machine();
    let (program, address) =
        machine.one(target, text).map_err(|errors| SourceErrors::new("TEXT", text, &errors))?;
    Ok(machine.explain_at(target, &program, address)?)
}

fn print(explained: &Explanation) {
    say!("{}\n", explained.text);
    let mut word = None;
    for field in &explained.fields {
        if word != Some(field.index) {
            word = Some(field.index);
            let raw = explained.words.get(field.index).copied().unwrap_or(0);
            say!("word {} {} = {raw:08x}", field.index, field.word);
            say!("  {}", picture(raw, explained.fields.iter().filter(|other| other.index == field.index)));
        }
        let bits =
            if field.hi == field.lo { field.hi.to_string() } else { format!("{}:{}", field.hi, field.lo) };
        let line = format!("  {bits:>5}  {:<18} {:<16}  {}", field.name, field.text, field.doc);
        say!("{}", line.trim_end());
    }
    let parts = [
        ("meaning", &explained.meaning),
        ("flow", &explained.flow),
        ("forbidden or without a meaning", &explained.findings),
    ];
    for (title, lines) in parts {
        if !lines.is_empty() {
            say!("\n{title}:");
            lines.iter().for_each(|line| say!("  {line}"));
        }
    }
    say!("\nsource: {}", explained.source);
}

/// Parses a word of 1 to 8 hexadecimal digits.
fn word_of(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let fits = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    fits.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Returns the word's bits with a bar between fields.
fn picture<'a>(raw: u32, fields: impl Iterator<Item = &'a ExplainedField>) -> String {
    let starts: Vec<u8> = fields.flat_map(|field| [field.lo, field.hi + 1]).collect();
    let mut text = String::from("|");
    for bit in (0..32).rev() {
        text.push(if raw >> bit & 1 != 0 { '1' } else { '0' });
        if bit == 0 || starts.contains(&bit) {
            text.push('|');
        }
    }
    text
}
