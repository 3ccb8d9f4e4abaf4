//! `reconverge explain`

use anyhow::{Result, anyhow, bail};
use reconverge_workbench::machine::{ExplainedField, TargetError, isa_of_chip};

use crate::{Answer, TargetArgs};

/// Explain one instruction, field by field
#[derive(clap::Args)]
pub(crate) struct Explain {
    /// The instruction's words in memory order, hexadecimal
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    target: TargetArgs,
}

pub(crate) fn run(args: &Explain) -> Result<Answer> {
    let words = args.words.iter().map(|word| parse(word)).collect::<Result<Vec<u32>>>()?;
    let isa = args.target.isa.or_else(|| args.target.chip.as_deref().and_then(isa_of_chip));
    let isa = isa.ok_or(TargetError::Unknown("--chip"))?;
    let target = args.target.target(isa).checked()?;
    let explained = target.machine().explain(&target, &words)?;
    if args.json {
        say!("{}", serde_json::to_string(&explained)?);
        return Ok(Answer::Yes);
    }
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
        let gap = if field.doc.is_empty() { "" } else { "  " };
        say!("  {bits:>5}  {:<18} {:<16}{gap}{}", field.name, field.text, field.doc);
    }
    if !explained.flow.is_empty() {
        say!("\nflow:");
        explained.flow.iter().for_each(|line| say!("  {line}"));
    }
    if !explained.findings.is_empty() {
        say!("\nforbidden or without a meaning:");
        explained.findings.iter().for_each(|line| say!("  {line}"));
    }
    say!("\nsource: {}", explained.source);
    Ok(Answer::Yes)
}

fn parse(text: &str) -> Result<u32> {
    let digits = text.trim_start_matches("0x");
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        bail!("`{text}` is not a word: 1 to 8 hexadecimal digits, such as 0x02000f00");
    }
    u32::from_str_radix(digits, 16).map_err(|error| anyhow!("`{text}`: {error}"))
}

/// The word's bits with a bar between fields.
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
