//! Implements the workbench's interface for NVIDIA Tesla. This file converts programs to text, and text to programs.
//! [`mod@launch`] runs launches.

pub mod launch;
pub mod names;
mod stats;

use std::sync::Arc;

use reconverge_container::{Written, cubin_elf, cubin_text};
use reconverge_isa::forms::Form;
use reconverge_isa::graph::Graph;
use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::program::{Image, Module, Param, Stage as Any};
use reconverge_isa::source::{Diagnostic, DirectiveRow};
use reconverge_isa::{Isa, Program};
use reconverge_simt::uses::UsesAt;
use reconverge_tesla::code::Code;
use reconverge_tesla::decode::{decode, describe, length, row};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::text::{self, About, Member, NamedParam};
use serde::Deserialize as _;

use crate::listing::{Listing, Style, check_nesting};
use crate::machine::{Assembled, ExplainError, ExplainedField, Explanation, Machine, in_source};
use crate::request::MachineLaunch;
use crate::stats::Conventions;
use crate::target::{Target, TargetError};

pub use launch::Launch;

/// The machine of the chips G80 to GT21x.
#[derive(Clone, Copy, Debug)]
pub struct Tesla;

/// Returns the type of a program. This type affects the meaning of the program's words.
fn stage(target: &Target, program: &Program) -> Result<Stage, TargetError> {
    let stage = program.stage.or(target.stage).unwrap_or(Any::Compute);
    let known = "compute, vertex, geometry and fragment";
    Stage::of(stage).ok_or(TargetError::Stage { stage, isa: Isa::Tesla, known })
}

/// Returns the decoded instructions of a program.
fn code(target: &Target, program: &Program) -> Result<Code, TargetError> {
    Ok(Code::new(&program.words, program.base, stage(target, program)?, target.tesla()))
}

/// Returns an error if the flow constructs of a program are nested deeper than the limit.
fn nesting(target: &Target, program: &Program) -> Result<(), TargetError> {
    let stage = stage(target, program)?;
    check_nesting(text::nesting(&program.words, program.base, target.tesla(), stage))
}

/// Returns the first field in which `program` and `back` differ. `back` is the result of assembling the text of
/// `program`. A text always states the program type. So a program type that `program` does not state is not a
/// difference.
fn difference(program: &Program, back: &Program) -> Option<&'static str> {
    let fields = [
        ("name", program.name == back.name),
        ("program type", program.stage.is_none() || program.stage == back.stage),
        ("module", program.module == back.module),
        ("words", program.words == back.words),
        ("code address", program.base == back.base),
        ("state", program.state == back.state),
        ("constants", program.constants == back.constants),
        ("parameters", program.params == back.params),
        ("samplers", program.samplers == back.samplers),
        ("resources", program.resources == back.resources),
        ("usage", program.usage == back.usage),
    ];
    fields.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
}

fn listing(style: Style) -> text::Listing {
    text::Listing { hex: style.hex, structure: style.structure, labels: true }
}

/// Returns the names that comments in the text of a program can use.
fn about<'a>(module: Option<&'a Module>, program: &Program) -> About<'a> {
    let name = program.name.as_deref().unwrap_or_default();
    About { demangled: names::demangled(name), params: named_params(module, program), module }
}

/// Returns the parameters of a program with labels for comments. If the container does not list parameters, the
/// function computes their offsets from the types in the kernel's name. The function uses these offsets only if the
/// types exactly fill the shared memory that the container states.
fn named_params(module: Option<&Module>, program: &Program) -> Vec<NamedParam> {
    let types = names::params_of_mangled(program.name.as_deref().unwrap_or_default());
    let fits = |types: &Vec<_>| program.params.is_empty() || types.len() == program.params.len();
    let types = types.filter(fits).unwrap_or_default();
    let label = |index: usize, name: Option<&str>| {
        let name = name.map_or_else(|| format!("parameter {index}"), str::to_owned);
        match types.get(index) {
            Some(known) if *known != names::ParamType::Unknown => format!("{name}: {known}"),
            _ => name,
        }
    };
    if !program.params.is_empty() {
        let named = |(index, param): (usize, &Param)| {
            let label = label(index, param.name.as_deref());
            NamedParam { offset: param.offset, bytes: param.bytes, label }
        };
        return program.params.iter().enumerate().map(named).collect();
    }
    let Some(area) = program.resources.shared_bytes.and_then(|bytes| bytes.checked_sub(0x10)) else {
        return Vec::new();
    };
    let widths: &[usize] = match module.and_then(|module| module.pointer_bytes) {
        Some(4) => &[4],
        Some(8) => &[8],
        _ => &[4, 8],
    };
    let placed = widths.iter().find_map(|width| {
        let mut end = 0;
        let places: Option<Vec<(u32, u32)>> = types
            .iter()
            .map(|kind| {
                let (bytes, align) = (kind.bytes(*width)?, kind.align(*width)?);
                let start = usize::next_multiple_of(end, align);
                end = start + bytes;
                Some((start as u32, bytes as u32))
            })
            .collect();
        places.filter(|_| end as u32 == area)
    });
    let places = placed.unwrap_or_default().into_iter().enumerate();
    places.map(|(index, (offset, bytes))| NamedParam { offset, bytes, label: label(index, None) }).collect()
}

impl Machine for Tesla {
    fn isa(&self) -> Isa {
        Isa::Tesla
    }

    fn heading(&self, target: &Target, _: &Program) -> String {
        format!(".isa {}\n", target.isa)
    }

    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError> {
        let chip = target.tesla();
        let chip = (target.chip_name().unwrap_or(chip.name()), chip);
        let about = style.notes.then(|| about(None, program));
        let mut marks = Vec::new();
        let stage = stage(target, program)?;
        let text = text::disassemble_marked(program, chip, stage, listing(style), about.as_ref(), &mut marks);
        Listing { text, marks }.checked()
    }

    fn image_text(&self, target: &Target, image: &Image, style: Style) -> Result<String, TargetError> {
        if style.structure {
            image.programs.iter().try_for_each(|program| nesting(target, program))?;
        }
        let members = image.programs.iter().map(|program| {
            let about = style.notes.then(|| about(image.module_of(program), program));
            Ok(Member { program, stage: stage(target, program)?, about })
        });
        let members: Vec<Member<'_>> = members.collect::<Result<_, TargetError>>()?;
        Ok(text::disassemble_image(&image.modules, &members, target.chip_name(), listing(style)))
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
        let stage = stage(target, &Program::default()).map_err(in_source)?;
        let assembled = text::assemble(source, target.tesla(), stage)?;
        let chip = match &assembled.chip_name {
            Some(name) => Some(name.as_str()),
            // If the modules of a source do not have a common chip, the target has no chip.
            None => assembled.modules.is_empty().then(|| assembled.chip.name()),
        };
        let mut back = Assembled::of(target.isa, chip, assembled.programs, assembled.lines)?;
        back.target.stage = Some(assembled.stage.any());
        back.image.modules = assembled.modules;
        back.warnings = assembled.warnings;
        Ok(back)
    }

    fn forms(&self, target: &Target, mnemonic: &str) -> Vec<Form> {
        let chip = target.chip.as_ref().map(|_| target.tesla());
        text::forms(mnemonic, chip, target.stage.and_then(Stage::of))
    }

    fn mnemonics(&self) -> Vec<&'static str> {
        text::mnemonics()
    }

    fn directives(&self) -> Vec<DirectiveRow> {
        text::DIRECTIVES.to_vec()
    }

    fn keeps(&self, program: &Program, back: &Program) -> bool {
        let known = Program { module: program.module, ..back.clone() };
        difference(program, &known).is_none()
    }

    /// The comparison does not include the format and the notes. The chip, the machine and the program type are
    /// compared only if the container states them.
    fn keeps_image(&self, image: &Image, back: &Image) -> Result<(), String> {
        let counts = |image: &Image| (image.modules.len(), image.programs.len());
        if counts(image) != counts(back) {
            let ((modules, programs), (all, of)) = (counts(back), counts(image));
            return Err(format!(
                "expected {all} modules and {of} programs from the assembled text, found {modules} and {programs}"
            ));
        }
        if image.chip.is_some() && image.chip != back.chip {
            return Err(format!(
                "chip of the assembled text: expected {:?}, found {:?}",
                image.chip, back.chip
            ));
        }
        for (number, (module, back)) in image.modules.iter().zip(&back.modules).enumerate() {
            let fields = [
                ("name", module.name == back.name),
                ("chip", module.chip.is_none() || module.chip == back.chip),
                ("abi version", module.abi_version == back.abi_version),
                ("width of pointers", module.pointer_bytes == back.pointer_bytes),
                ("constants", module.constants == back.constants),
                ("samplers", module.samplers == back.samplers),
                ("variables", module.variables == back.variables),
            ];
            if let Some((field, _)) = fields.iter().find(|(_, same)| !same) {
                return Err(format!("module {number}: different {field}"));
            }
        }
        for (number, (program, back)) in image.programs.iter().zip(&back.programs).enumerate() {
            let module = if image.modules.is_empty() { back.module } else { program.module };
            if let Some(field) = difference(&Program { module, ..program.clone() }, back) {
                let name = program.name.clone().unwrap_or_else(|| number.to_string());
                return Err(format!("program {name}: different {field}"));
            }
        }
        Ok(())
    }

    /// A short instruction is one word, and a long instruction is two words.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError> {
        let (chip, stage) = (target.tesla(), stage(target, &Program::default())?);
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
                    doc: reconverge_tesla::explain::field(described.name).to_owned(),
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
            meaning: reconverge_tesla::explain::meaning(&inst),
            flow: reconverge_tesla::explain::flow(&inst).into_iter().map(str::to_owned).collect(),
            findings: Vec::new(),
            source: format!("docs/tesla.md, section {}; row {}", row.source, row.id),
        })
    }

    fn faults(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        let (chip, stage) = (target.tesla(), stage(target, program)?);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(&first) = program.words.get(at) {
            let pair = [first, program.words.get(at + 1).copied().unwrap_or(0)];
            if let Err(error) = decode(pair, chip, stage) {
                let message = format!("{:08x} {:08x}: {error}", pair[0], pair[1]);
                found.push(Finding { rule: &MALFORMED, pc: program.base + 4 * at as u32, message });
            }
            at += length(first) as usize;
        }
        Ok(found)
    }

    fn lint(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        // The run time of some lint rules grows with the square of the stack depth. So the stack depth is checked
        // before the lint rules run.
        nesting(target, program)?;
        Ok(reconverge_tesla::lint::lint(program, stage(target, program)?, target.tesla()))
    }

    fn rules(&self) -> Vec<&'static Rule> {
        std::iter::once(&MALFORMED).chain(reconverge_tesla::lint::RULES).collect()
    }

    fn graph(&self, target: &Target, program: &Program) -> Result<Graph, TargetError> {
        Ok(reconverge_tesla::graph::graph(&code(target, program)?, &program.constants))
    }

    fn uses(&self, target: &Target, program: &Program) -> Result<UsesAt, TargetError> {
        let code = code(target, program)?;
        let graph = reconverge_tesla::graph::graph(&code, &program.constants);
        Ok(reconverge_tesla::uses::uses(&code, stage(target, program)?, &graph))
    }

    fn write(
        &self,
        target: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>> {
        let mut image = Image { chip: Some(target.tesla().cuda_target().to_owned()), ..image.clone() };
        for module in &mut image.modules {
            let own = module.chip.as_deref().and_then(Chip::from_name);
            module.chip = own.map(|own| own.cuda_target().to_owned()).or(module.chip.take());
        }
        // The container may not state the size of a pointer. In this case, pointers have 64 bits if any parameter has
        // 64 bits.
        let wide = || {
            let stated = image.modules.iter().find_map(|module| module.pointer_bytes);
            let mut params = image.programs.iter().flat_map(|program| &program.params);
            stated.map_or_else(|| params.any(|param| param.bytes == 8), |bytes| bytes == 8)
        };
        let bytes = |written: Written<String>| Written {
            content: written.content.into_bytes(),
            notes: written.notes,
        };
        Some(match format {
            "cubin" => cubin_text::write(&image).map(bytes),
            "elf" => cubin_elf::write(&image, wide()),
            "cubin-elf32" => cubin_elf::write(&image, false),
            "cubin-elf64" => cubin_elf::write(&image, true),
            _ => return None,
        })
    }

    fn conventions(&self, target: &Target, program: &Program) -> Result<Conventions, TargetError> {
        stats::conventions(target.tesla(), stage(target, program)?, program)
    }

    fn containers(&self) -> &'static [&'static str] {
        &["cubin", "elf", "cubin-elf32", "cubin-elf64"]
    }

    fn launch(&self, fields: toml::Deserializer<'_>) -> Result<Arc<dyn MachineLaunch>, toml::de::Error> {
        Ok(Arc::new(Launch::deserialize(fields)?))
    }
}

/// Returns the highest and the lowest bit of each sequence of consecutive 1 bits. If a sequence crosses a 32-bit
/// boundary, the function splits the sequence at the boundary.
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
