//! NVIDIA Tesla behind the workbench's interface: text here, launches in [`mod@launch`].

pub mod launch;
pub mod names;

use std::sync::Arc;

use reconverge_container::{Written, cubin_text};
use reconverge_isa::program::{Image, Stage as Any};
use reconverge_isa::source::Diagnostic;
use reconverge_isa::{Isa, Program, Span};
use reconverge_tesla::decode::{decode, describe, length, row};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::text;

use crate::launch::MachineLaunch;
use crate::listing::{Listing, Style};
use crate::machine::{
    Assembled, ChipName, ExplainError, ExplainedField, Explanation, Finding, Machine, Target, TargetError,
};

pub use launch::Launch;

/// G80 to GT21x.
#[derive(Clone, Copy, Debug)]
pub struct Tesla;

/// The chip of a target; G80 by default: every chip runs its instructions.
fn chip(target: &Target) -> Chip {
    target.chip.as_deref().and_then(Chip::from_name).unwrap_or(Chip::G80)
}

/// The program type that decides how words are read.
fn stage(target: &Target, program: &Program) -> Result<Stage, TargetError> {
    let stage = program.stage.or(target.stage).unwrap_or(Any::Compute);
    let known = "compute, vertex, geometry and fragment";
    Stage::of(stage).ok_or(TargetError::Stage { stage, isa: Isa::Tesla, known })
}

impl Machine for Tesla {
    fn isa(&self) -> Isa {
        Isa::Tesla
    }

    fn chips(&self) -> Vec<ChipName> {
        Chip::ALL.map(|chip| ChipName { name: chip.name(), aliases: chip.aliases() }).to_vec()
    }

    /// Chip numbers (`a3`) are names as well.
    fn has_chip(&self, name: &str) -> bool {
        Chip::from_name(name).is_some()
    }

    fn heading(&self, target: &Target, _: &Program) -> String {
        format!(".isa {}\n", target.isa)
    }

    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError> {
        let Style { hex, structure, .. } = style;
        let listing = text::Listing { hex, structure, labels: true };
        let mut marks = Vec::new();
        let stage = stage(target, program)?;
        let text = text::disassemble_marked(program, chip(target), stage, listing, &mut marks);
        Ok(Listing { text, marks })
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
        let stage = stage(target, &Program::default())
            .map_err(|error| vec![Diagnostic::error(Span::default(), error.to_string())])?;
        let assembled = text::assemble(source, chip(target), stage)?;
        let stage = match assembled.stage {
            Stage::Vertex => Any::Vertex,
            Stage::Geometry => Any::Geometry,
            Stage::Fragment => Any::Fragment,
            Stage::Compute => Any::Compute,
        };
        let target = Target { stage: Some(stage), ..Target::new(target.isa, Some(assembled.chip.name())) };
        let mut programs = assembled.programs;
        programs.iter_mut().for_each(|program| program.stage = Some(stage));
        Ok(Assembled::of(target, programs, Vec::new()).with_lines(assembled.lines))
    }

    fn keeps(&self, program: &Program, back: &Program) -> bool {
        back.base == program.base && back.resources == program.resources
    }

    /// One word is a short instruction, two are a long one.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError> {
        let (chip, stage) = (chip(target), stage(target, &Program::default())?);
        let pair = match *words {
            [first] => [first, 0],
            [first, second] => [first, second],
            _ => {
                let wanted = "1 word (short) or 2 words (long)";
                return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
            }
        };
        if length(pair[0]) as usize != words.len() {
            let wanted =
                if words.len() == 1 { "2 words when bit 0 is set" } else { "1 word when bit 0 is clear" };
            return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
        }
        let refused = |error: reconverge_isa::read::NoReading| {
            let digits: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
            ExplainError::NoInstruction(format!("{} on {chip} in {stage}: {error}", digits.join(" ")))
        };
        let row = row(pair, chip, stage).map_err(refused)?;
        let inst = decode(pair, chip, stage).map_err(refused)?;
        let described = describe(pair, chip, stage).map_err(refused)?;
        let joined = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        let fields = described.into_iter().flat_map(|described| {
            runs(described.bits)
                .map(move |(hi, lo)| ExplainedField {
                    word: "word".to_owned(),
                    index: usize::from(lo / 32),
                    name: described.name.to_owned(),
                    hi: hi % 32,
                    lo: lo % 32,
                    value: joined >> lo & (u64::MAX >> (63 - (hi - lo))),
                    text: described.text.clone(),
                    doc: String::new(),
                })
                .collect::<Vec<_>>()
        });
        let mut fields: Vec<ExplainedField> = fields.collect();
        fields.sort_by_key(|field| (field.index, std::cmp::Reverse(field.hi)));
        let listing = text::Listing { hex: false, structure: false, labels: false };
        let printed = text::disassemble(words, 0, chip, stage, listing);
        Ok(Explanation {
            words: words.to_vec(),
            text: printed.trim().to_owned(),
            fields,
            meaning: Vec::new(),
            flow: reconverge_tesla::explain::flow(&inst).into_iter().map(str::to_owned).collect(),
            findings: Vec::new(),
            source: format!("docs/tesla.md, section {}; row {}", row.source, row.id),
        })
    }

    fn faults(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        let (chip, stage) = (chip(target), stage(target, program)?);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(&first) = program.words.get(at) {
            let pair = [first, program.words.get(at + 1).copied().unwrap_or(0)];
            if let Err(error) = decode(pair, chip, stage) {
                let message = format!("at {:#x}: {:08x} {:08x}: {error}", 4 * at, pair[0], pair[1]);
                found.push(Finding { rule: "malformed", pc: program.base + 4 * at as u32, message });
            }
            at += length(first) as usize;
        }
        Ok(found)
    }

    /// None yet: what Tesla forbids traps in strict mode.
    fn lint(&self, _: &Target, _: &Program) -> Result<Vec<Finding>, TargetError> {
        Ok(Vec::new())
    }

    fn write(
        &self,
        target: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>> {
        let image = Image { chip: Some(chip(target).cuda_target().to_owned()), ..image.clone() };
        let bytes = |written: Written<String>| Written {
            content: written.content.into_bytes(),
            notes: written.notes,
        };
        (format == "cubin").then(|| cubin_text::write(&image).map(bytes))
    }

    fn containers(&self) -> &'static [&'static str] {
        &["cubin"]
    }

    fn launch(&self, table: toml::Table) -> Result<Arc<dyn MachineLaunch>, toml::de::Error> {
        Ok(Arc::new(table.try_into::<Launch>()?))
    }
}

/// The runs of set bits, each inside one 32-bit word: highest and lowest bit.
fn runs(bits: u64) -> impl Iterator<Item = (u8, u8)> {
    let starts =
        (0..64u8).filter(move |bit| bits >> bit & 1 != 0 && (bit % 32 == 0 || bits >> (bit - 1) & 1 == 0));
    starts.map(move |lo| {
        let hi = (lo..(lo / 32 + 1) * 32).take_while(|bit| bits >> bit & 1 != 0).last().unwrap_or(lo);
        (hi, lo)
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn bits_are_shown_in_runs_that_no_word_boundary_crosses() {
        assert_eq!(
            runs(0x0000_0003_c000_0105).collect::<Vec<_>>(),
            [(0, 0), (2, 2), (8, 8), (31, 30), (33, 32)]
        );
    }
}
