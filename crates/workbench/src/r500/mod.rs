//! ATI R500 behind the workbench's interface: text here, launches in [`mod@launch`].

pub mod launch;
mod stats;

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_container::Written;
use reconverge_isa::graph::Graph;
use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::program::Image;
use reconverge_isa::source::Diagnostic;
use reconverge_isa::{Isa, Program};
use reconverge_r500::chip::CHIPS;
use reconverge_r500::graph::graph;
use reconverge_r500::lint::{RULES, lint};
use reconverge_r500::mistaken::{Mistaken, mistaken};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::{self, FieldText};
use reconverge_r500::uses::uses;
use reconverge_simt::uses::Uses;

use crate::launch::MachineLaunch;
use crate::listing::{Listing, Style};
use crate::machine::{
    Assembled, ChipName, ExplainError, ExplainedField, Explanation, Machine, OTHER_ORDER, Target, TargetError,
};
use crate::stats::Conventions;

pub use launch::Launch;

/// The R500 fragment processor.
#[derive(Clone, Copy, Debug)]
pub struct R500;

impl Machine for R500 {
    fn isa(&self) -> Isa {
        Isa::R500
    }

    fn unit(&self) -> &'static str {
        "instructions"
    }

    fn chips(&self) -> Vec<ChipName> {
        CHIPS.iter().map(|chip| ChipName { name: chip.name, aliases: chip.aliases }).collect()
    }

    fn heading(&self, target: &Target, program: &Program) -> String {
        let chip = target.chip.as_ref().map(|chip| format!(".chip {chip}\n")).unwrap_or_default();
        let name = program.name.as_ref().map(|name| format!("; {name}\n")).unwrap_or_default();
        format!(".isa {}\n{chip}{name}", target.isa)
    }

    fn disassemble(&self, _: &Target, program: &Program, style: Style) -> Result<Listing, TargetError> {
        let Style { hex, structure, idioms, .. } = style;
        let mut marks = Vec::new();
        let text = text::disassemble_marked(program, text::Listing { hex, structure, idioms }, &mut marks);
        Ok(Listing { text, marks })
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
        let assembled = text::assemble(source)?;
        let target = Target::new(target.isa, assembled.chip.as_deref());
        let lines = vec![assembled.lines];
        Ok(Assembled::of(target, vec![assembled.program], assembled.warnings).with_lines(lines))
    }

    fn keeps(&self, program: &Program, back: &Program) -> bool {
        back.state == program.state && back.constants == program.constants
    }

    /// Words that are missing at the end are 0.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError> {
        if words.is_empty() || words.len() > 6 {
            let wanted = "1 to 6 words (missing ones are 0)";
            return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
        }
        let mut record = [0; 6];
        record[..words.len()].copy_from_slice(words);
        let explained = text::explain(&record);
        let field = |field: FieldText| ExplainedField {
            word: field.word_name.to_owned(),
            index: field.word,
            name: field.name,
            hi: field.hi,
            lo: field.lo,
            value: u64::from(field.value),
            text: field.text,
            doc: field.doc.to_owned(),
        };
        Ok(Explanation {
            words: record.to_vec(),
            text: explained.text,
            fields: explained.fields.into_iter().map(field).collect(),
            meaning: explained.meaning,
            flow: explained.flow,
            findings: explained.findings,
            source: explained.source.to_owned(),
        })
    }

    /// None: the text refuses no word, and codes without a meaning are reported when they are reached.
    fn faults(&self, _: &Target, _: &Program) -> Result<Vec<Finding>, TargetError> {
        Ok(Vec::new())
    }

    fn mistaken(&self, _: &Target, program: &Program) -> Option<String> {
        Some(match mistaken(&program.words)? {
            Mistaken::OtherOrder => OTHER_ORDER.to_owned(),
            Mistaken::Vertex => {
                "these look like instructions of the vertex processor (four words each), not of the \
                                 fragment processor (six)"
                    .to_owned()
            }
        })
    }

    fn lint(&self, _: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        Ok(lint(&load(program)?))
    }

    fn graph(&self, _: &Target, program: &Program) -> Result<Graph, TargetError> {
        Ok(graph(&load(program)?))
    }

    fn uses(&self, _: &Target, program: &Program) -> Result<BTreeMap<u32, Vec<Uses>>, TargetError> {
        Ok(uses(&load(program)?))
    }

    fn rules(&self) -> Vec<&'static Rule> {
        std::iter::once(&MALFORMED).chain(RULES).collect()
    }

    fn write(
        &self,
        _: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>> {
        let program = image.programs.first().filter(|_| format == "elf")?;
        Some(reconverge_container::ctm_elf::write(program))
    }

    fn conventions(&self, _: &Target, program: &Program) -> Result<Conventions, TargetError> {
        stats::conventions(program)
    }

    fn containers(&self) -> &'static [&'static str] {
        &["elf"]
    }

    fn launch(&self, table: toml::Table) -> Result<Arc<dyn MachineLaunch>, toml::de::Error> {
        Ok(Arc::new(table.try_into::<Launch>()?))
    }
}

fn load(program: &Program) -> Result<Setup, TargetError> {
    Setup::new(program).map_err(|error| TargetError::Program(error.to_string()))
}
