//! Implements the workbench's interface for ATI R500. This file converts programs to text, and text to programs.
//! [`mod@launch`] runs launches.
//!
//! The vertex unit runs programs of the stage `vertex`. The fragment processor runs all other programs.

pub mod launch;
mod stats;
pub mod vertex;

use std::sync::Arc;

use reconverge_container::Written;
use reconverge_isa::forms::Form;
use reconverge_isa::graph::Graph;
use reconverge_isa::lint::{Finding, MALFORMED, Rule};
use reconverge_isa::program::{Image, Stage};
use reconverge_isa::source::{Diagnostic, DirectiveRow, program_line};
use reconverge_isa::{Isa, Program};
use reconverge_r500::graph::graph;
use reconverge_r500::lint::{RULES, lint};
use reconverge_r500::mistaken::{Mistaken, mistaken};
use reconverge_r500::programs::assemble_all;
use reconverge_r500::pvs;
use reconverge_r500::setup::Setup;
use reconverge_r500::text::{self, FieldText};
use reconverge_r500::uses::uses;
use reconverge_simt::uses::UsesAt;
use serde::Deserialize as _;

use crate::listing::{Listing, Style};
use crate::machine::{Assembled, ExplainError, ExplainedField, Explanation, Machine, OTHER_ORDER, line_at};
use crate::request::MachineLaunch;
use crate::stats::Conventions;
use crate::target::{Target, TargetError};

pub use launch::Launch;

/// The R500 fragment processor and vertex unit.
#[derive(Clone, Copy, Debug)]
pub struct R500;

impl Machine for R500 {
    fn isa(&self) -> Isa {
        Isa::R500
    }

    fn heading(&self, target: &Target, program: &Program) -> String {
        let name = program.name.as_ref().map(|name| format!("; {name}\n")).unwrap_or_default();
        shared_heading(target) + &name
    }

    /// If the image has several programs, the text has a `.program` line before each program.
    fn image_text(&self, target: &Target, image: &Image, style: Style) -> Result<String, TargetError> {
        if let [program] = &image.programs[..] {
            return Ok(self.heading(target, program) + &self.disassemble(target, program, style)?.text);
        }
        let mut text = shared_heading(target);
        for program in &image.programs {
            text += "\n";
            text += &program_line(program.name.as_deref());
            text += &self.disassemble(target, program, style)?.text;
        }
        Ok(text)
    }

    fn disassemble(&self, target: &Target, program: &Program, style: Style) -> Result<Listing, TargetError> {
        let Style { hex, structure, idioms, .. } = style;
        let (listing, mut marks) = (text::Listing { hex, structure, idioms }, Vec::new());
        if is_vertex(target, program) {
            let text = pvs::text::disassemble_marked(program, listing, &mut marks);
            return Ok(Listing { text, marks });
        }
        let text = text::disassemble_marked(program, listing, &mut marks);
        Listing { text, marks }.checked()
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
        let (mut programs, mut lines, mut chip) = (Vec::new(), Vec::new(), None);
        for assembled in assemble_all(source, target.stage == Some(Stage::Vertex))? {
            programs.push(assembled.program);
            lines.push(assembled.lines);
            chip = chip.or(assembled.chip);
        }
        Assembled::of(target.isa, chip.as_deref(), programs, lines)
    }

    fn forms(&self, _: &Target, mnemonic: &str) -> Vec<Form> {
        reconverge_r500::forms::forms(mnemonic)
    }

    fn mnemonics(&self) -> Vec<&'static str> {
        reconverge_r500::forms::mnemonics()
    }

    fn directives(&self) -> Vec<DirectiveRow> {
        reconverge_r500::programs::directives()
    }

    fn keeps(&self, program: &Program, back: &Program) -> bool {
        back.state == program.state && back.constants == program.constants
    }

    /// If the last words of the instruction are missing, the function replaces the missing words by 0.
    fn explain(&self, target: &Target, words: &[u32]) -> Result<Explanation, ExplainError> {
        let vertex = target.stage == Some(Stage::Vertex);
        let (most, wanted) = match vertex {
            true => (4, "1 to 4 words (missing ones are 0)"),
            false => (6, "1 to 6 words (missing ones are 0)"),
        };
        if words.is_empty() || words.len() > most {
            return Err(ExplainError::Count { isa: target.isa, wanted, found: words.len() });
        }
        let mut record = words.to_vec();
        record.resize(most, 0);
        let explained = match (record.first_chunk(), record.first_chunk()) {
            (Some(six), _) => text::explain(six),
            (None, Some(four)) => pvs::text::explain(four),
            (None, None) => unreachable!("there are {most} words"),
        };
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
            words: record,
            text: explained.text,
            fields: explained.fields.into_iter().map(field).collect(),
            meaning: explained.meaning,
            flow: explained.flow,
            findings: explained.findings,
            source: explained.source.to_owned(),
        })
    }

    fn explain_at(
        &self,
        target: &Target,
        program: &Program,
        address: u32,
    ) -> Result<Explanation, ExplainError> {
        let target = &Target { stage: program.stage.or(target.stage), ..target.clone() };
        let listing = self.disassemble(target, program, Style::default())?;
        self.explain(target, &line_at(&listing.lines(&program.words), target.isa, address)?.words)
    }

    /// Programs of R500 do not have malformed parts, because the text can represent every word. If a field of an
    /// instruction has an undefined value, the engine reports the value during the execution of the instruction.
    fn faults(&self, _: &Target, _: &Program) -> Result<Vec<Finding>, TargetError> {
        Ok(Vec::new())
    }

    fn mistaken(&self, target: &Target, program: &Program) -> Option<String> {
        if is_vertex(target, program) {
            return None;
        }
        Some(match mistaken(&program.words)? {
            Mistaken::OtherOrder => OTHER_ORDER.to_owned(),
            Mistaken::Vertex => {
                "these look like instructions of the vertex processor (four words each), not of the \
                                 fragment processor (six): --stage vertex reads them as such"
                    .to_owned()
            }
        })
    }

    fn lint(&self, target: &Target, program: &Program) -> Result<Vec<Finding>, TargetError> {
        if is_vertex(target, program) {
            return Ok(pvs::lint::lint(&load_vertex(program)?));
        }
        Ok(lint(&load(program)?))
    }

    fn graph(&self, target: &Target, program: &Program) -> Result<Graph, TargetError> {
        if is_vertex(target, program) {
            return Ok(pvs::graph::graph(&load_vertex(program)?));
        }
        Ok(graph(&load(program)?))
    }

    fn uses(&self, target: &Target, program: &Program) -> Result<UsesAt, TargetError> {
        if is_vertex(target, program) {
            return Ok(pvs::uses::uses(&load_vertex(program)?));
        }
        Ok(uses(&load(program)?))
    }

    fn rules(&self) -> Vec<&'static Rule> {
        std::iter::once(&MALFORMED).chain(RULES).chain(pvs::lint::RULES).collect()
    }

    fn write(
        &self,
        _: &Target,
        image: &Image,
        format: &str,
    ) -> Option<Result<Written<Vec<u8>>, reconverge_container::Error>> {
        if format != "elf" {
            return None;
        }
        Some(match &image.programs[..] {
            [program] => reconverge_container::ctm_elf::write(program),
            programs => Err(reconverge_container::Error::Unwritable {
                format: "elf",
                what: format!("{} programs", programs.len()),
                remedy: "a CTM executable has exactly one program; write the programs as text instead",
            }),
        })
    }

    fn conventions(&self, target: &Target, program: &Program) -> Result<Conventions, TargetError> {
        if is_vertex(target, program) {
            return stats::of_vertex(program);
        }
        stats::conventions(program)
    }

    fn containers(&self) -> &'static [&'static str] {
        &["elf"]
    }

    fn launch(&self, fields: toml::Deserializer<'_>) -> Result<Arc<dyn MachineLaunch>, toml::de::Error> {
        Ok(Arc::new(Launch::deserialize(fields)?))
    }
}

/// Returns the heading lines that apply to all programs of a text.
fn shared_heading(target: &Target) -> String {
    let chip = target.chip_name().map(|chip| format!(".chip {chip}\n")).unwrap_or_default();
    format!(".isa {}\n{chip}", target.isa)
}

fn load(program: &Program) -> Result<Setup, TargetError> {
    Setup::new(program).map_err(|error| TargetError::Program(error.to_string()))
}

fn load_vertex(program: &Program) -> Result<pvs::setup::Setup, TargetError> {
    pvs::setup::Setup::new(program).map_err(|error| TargetError::Program(error.to_string()))
}

/// Returns whether a program is for the vertex unit. If the program states a stage, this stage determines the result.
/// Otherwise, the stage of the target determines the result.
fn is_vertex(target: &Target, program: &Program) -> bool {
    program.stage.or(target.stage) == Some(Stage::Vertex)
}
