//! The analysis of one version of a source text.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use reconverge_isa::expand::{Expanded, Given, expand, expand_partly};
use reconverge_isa::lint::Finding;
use reconverge_isa::source::lines;
use reconverge_isa::{Diagnostic, Isa, Program, Span};
use reconverge_workbench::listing::Lines;
use reconverge_workbench::machine::Assembled;
use reconverge_workbench::text::included;
use reconverge_workbench::{Style, Target, assemble};

use crate::choice::{ChosenBy, TargetHint, fewest, stated, with_hints};
use crate::lexemes::{LexedLine, LexemeKind, lex};
use crate::lines::LineStarts;
use crate::message::{Marker, Remedy};
use crate::names::{NameTable, SheetFile};
use crate::passes::{MANY, Passes, assemble_partly};
use crate::vocabulary::vocabulary;

/// Facts about a source that the text of the source may not state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The target that a launch file states. The launch file is in the folder of the source.
    pub launch: TargetHint,
    /// Target in the user's settings. The target applies to a source only if neither the source nor a launch file
    /// states a target.
    pub fallback: TargetHint,
    /// Definitions of constants in the form `NAME` or `NAME=EXPRESSION`.
    pub defines: Vec<String>,
}

/// An instruction of an assembled program, with its position in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionAt {
    /// Index of the program in the assembled source.
    pub(crate) program: usize,
    /// Address of the instruction, in the machine's unit.
    pub(crate) address: u32,
    /// Offset of the instruction in the source, in bytes. If the instruction is in a macro or an included file, this
    /// field is the offset of the source line that uses the macro or includes the file.
    pub(crate) at: usize,
    /// Whether the source line contains the text of the instruction. If `false`, the line uses a macro or includes a
    /// file.
    pub(crate) own: bool,
}

/// The analysis of one version of a source text.
///
/// Every query accepts any position or part of the text, and returns a result for any text.
#[derive(Debug)]
pub struct Analysis {
    text: String,
    lines: LineStarts,
    settings: Settings,
    given: Given,
    target: Target,
    chosen_by: ChosenBy,
    /// The source and all included files.
    pub(crate) files: Vec<SheetFile>,
    pub(crate) expanded: Option<Expanded>,
    pub(crate) expansion_errors: Vec<Diagnostic>,
    passes: Passes,
    pub(crate) names: NameTable,
    instructions: OnceLock<Vec<InstructionAt>>,
    listings: OnceLock<Vec<Lines>>,
    findings: OnceLock<Vec<(usize, Finding)>>,
    /// Messages of the assembler. The first request for the messages computes the messages.
    pub(crate) made_markers: OnceLock<Vec<Marker>>,
    /// Results of searches for remedies, by the index of the message. `None` means that the search found no remedy for
    /// the message.
    pub(crate) kept_remedies: Mutex<HashMap<usize, Option<Remedy>>>,
}

impl Analysis {
    /// Analyses a text. `read` returns the bytes of an included file, or the reason why the file cannot be read. The
    /// argument of `read` is the file's path relative to the folder of the source.
    pub fn new(
        text: &str,
        settings: &Settings,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Analysis {
        let files = included(text, read);
        Analysis::of(text, settings.clone(), Given { files, defines: settings.defines.clone() })
    }

    /// Analyses another text with the settings and included files of this analysis.
    pub(crate) fn again(&self, text: &str) -> Analysis {
        Analysis::of(text, self.settings.clone(), self.given.clone())
    }

    fn of(text: &str, settings: Settings, given: Given) -> Analysis {
        let (expanded, expansion_errors) = match expand(text, &given) {
            Ok(expanded) => (expanded, Vec::new()),
            Err(_) => {
                let (expanded, errors) = expand_partly(text, &given);
                (Some(expanded), errors)
            }
        };
        let plain = expanded.as_ref().map_or(text, |expanded| &expanded.text);
        let (target, chosen_by) = stated(plain, &settings.launch, &settings.fallback).unwrap_or_else(|| {
            let target = |isa| with_hints(isa, plain, &settings.launch, &settings.fallback);
            let errors =
                |isa| assemble(&target(isa), plain).map_or_else(|errors| errors.len().min(MANY), |_| 0);
            (target(fewest(errors, |isa| mnemonics_in(plain, isa))), ChosenBy::Fewest)
        });
        let passes = assemble_partly(&target, plain);
        let isa = target.isa;
        let mut files = vec![SheetFile::new("", text, Some(isa))];
        for file in &given.files {
            files.extend(file.text.as_ref().ok().map(|text| SheetFile::new(&file.name, text, Some(isa))));
        }
        let names = NameTable::new(&files, isa);
        Analysis {
            text: text.to_owned(),
            lines: LineStarts::new(text),
            settings,
            given,
            target,
            chosen_by,
            files,
            expanded,
            expansion_errors,
            passes,
            names,
            instructions: OnceLock::new(),
            listings: OnceLock::new(),
            findings: OnceLock::new(),
            made_markers: OnceLock::new(),
            kept_remedies: Mutex::default(),
        }
    }

    /// Returns the text that was analysed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the lines of the text, for conversion of positions.
    pub fn lines(&self) -> &LineStarts {
        &self.lines
    }

    /// Returns the machine whose syntax the source uses.
    pub fn isa(&self) -> Isa {
        self.target.isa
    }

    /// Returns how the analysis determined the machine.
    pub fn chosen_by(&self) -> ChosenBy {
        self.chosen_by
    }

    /// Returns the machine of the source. If the chip and the program type of the source are known, also returns the
    /// chip and the program type.
    pub fn target(&self) -> Target {
        match self.assembled() {
            Some(assembled) => Target {
                chip: self.target.chip.clone().or(assembled.target.chip.clone()),
                stage: assembled.target.stage.or(self.target.stage),
                isa: self.target.isa,
            },
            None => self.target.clone(),
        }
    }

    /// Returns the paths of the files that the source includes, relative to the folder of the source.
    pub fn included(&self) -> impl Iterator<Item = &str> {
        self.given.files.iter().map(|file| file.name.as_str())
    }

    /// Returns the programs of the source without the lines that have errors. Returns `None` if the remaining lines do
    /// not assemble.
    pub fn assembled(&self) -> Option<&Assembled> {
        self.passes.assembled.as_ref()
    }

    /// Returns whether the whole source assembles without errors.
    pub fn is_complete(&self) -> bool {
        self.expansion_errors.is_empty() && self.passes.errors.is_empty() && self.passes.assembled.is_some()
    }

    /// Returns the number of assembler errors.
    pub(crate) fn error_count(&self) -> usize {
        self.expansion_errors.len() + self.passes.errors.len()
    }

    /// Returns the assembler errors, with positions in the text that the assembler reads.
    pub(crate) fn plain_errors(&self) -> &[Diagnostic] {
        &self.passes.errors
    }

    /// Returns the text that the assembler reads. In this text, macros and included files are expanded.
    pub(crate) fn plain(&self) -> &str {
        self.expanded.as_ref().map_or(&self.text, |expanded| &expanded.text)
    }

    /// Converts an offset in the assembler's text to an offset in the source.
    pub(crate) fn in_source(&self, plain: usize) -> usize {
        let at = self.expanded.as_ref().map_or(plain, |expanded| expanded.offset_in_source(plain));
        at.min(self.text.len())
    }

    /// Returns the line that contains the byte at an offset.
    pub(crate) fn line_at(&self, offset: usize) -> &LexedLine {
        &self.files[0].lines[self.lines.line(offset.min(self.text.len()))]
    }

    /// Returns the instructions of all programs, in the order of their source lines.
    pub(crate) fn instructions(&self) -> &[InstructionAt] {
        self.instructions.get_or_init(|| self.find_instructions())
    }

    /// Returns the instructions of line `line`. Line numbers begin at 0.
    pub(crate) fn instructions_in(&self, line: usize) -> &[InstructionAt] {
        let all = self.instructions();
        let (start, end) = (self.lines.start(&self.text, line), self.lines.end(&self.text, line));
        let from = all.partition_point(|found| found.at < start);
        let to = all.partition_point(|found| found.at <= end);
        &all[from..to.max(from)]
    }

    /// Returns the listing of a program. The caller can look up the lines of the listing by address.
    pub(crate) fn listing(&self, program: usize) -> Option<&Lines> {
        let all = self.listings.get_or_init(|| {
            let Some(assembled) = self.assembled() else { return Vec::new() };
            let listing = |program: &Program| {
                let target = self.target_of(program);
                let listing = target.machine().disassemble(&target, program, Style::default());
                listing.map_or_else(|_| Lines::default(), |listing| listing.instructions(&program.words))
            };
            assembled.image.programs.iter().map(listing).collect()
        });
        all.get(program)
    }

    /// Returns the target of a program of this source.
    pub(crate) fn target_of(&self, program: &Program) -> Target {
        let target = self.target();
        let target = self
            .assembled()
            .map_or(target.clone(), |assembled| target.for_program(&assembled.image, program));
        Target { stage: program.stage.or(target.stage), ..target }
    }

    /// Returns the findings of the machine's rules, each with the index of its program. The result is empty if the
    /// source has errors.
    pub(crate) fn findings(&self) -> &[(usize, Finding)] {
        self.findings.get_or_init(|| {
            let Some(assembled) = self.assembled().filter(|_| self.is_complete()) else { return Vec::new() };
            let of = |(number, program)| {
                let found = reconverge_workbench::lint::findings(&self.target_of(program), program);
                found.unwrap_or_default().into_iter().map(move |finding| (number, finding))
            };
            assembled.image.programs.iter().enumerate().flat_map(of).collect()
        })
    }

    /// Returns the instructions of all programs with their offsets. For an ALU group of R700, the assembler reports
    /// only the line of the first slot. The later slots of the group are on the lines after the first slot. So this
    /// function adds an instruction for each later slot.
    fn find_instructions(&self) -> Vec<InstructionAt> {
        let Some(assembled) = self.assembled() else { return Vec::new() };
        let plain = self.plain();
        let slots = if self.isa() == Isa::R700 { slot_lines(plain) } else { Vec::new() };
        let mut found = Vec::new();
        for (program, starts) in assembled.lines.iter().enumerate() {
            let mut starts: Vec<(u32, usize)> = starts.clone();
            starts.sort_unstable_by_key(|(_, at)| *at);
            for (index, (address, at)) in starts.iter().enumerate() {
                found.push(self.instruction(program, *address, *at));
                let next = starts.get(index + 1).map_or(usize::MAX, |(_, next)| *next);
                // The slots of a group are at consecutive addresses.
                let from = slots.partition_point(|slot| slot.start <= *at);
                let first_is_slot = from.checked_sub(1).is_some_and(|before| slots[before].end >= *at);
                let of_group = slots[from..].iter().take_while(|slot| slot.end < next && first_is_slot);
                found.extend(
                    of_group.zip(1..).map(|(slot, nth)| self.instruction(program, address + nth, slot.start)),
                );
            }
        }
        found.sort_by_key(|instruction| (instruction.at, instruction.program, instruction.address));
        found
    }

    fn instruction(&self, program: usize, address: u32, plain: usize) -> InstructionAt {
        let at = self.in_source(plain);
        let same = |at: usize, text: &str| {
            text[at.min(text.len())..].split([' ', '\t', '\n', ',', ';']).next().map(str::to_owned)
        };
        let own = self.expanded.is_none() || same(at, &self.text) == same(plain, self.plain());
        InstructionAt { program, address, at, own }
    }
}

/// Returns the spans of the lines that are slots of an ALU group (R700).
fn slot_lines(plain: &str) -> Vec<Span> {
    let is_slot = |(start, line): (usize, &str)| {
        let lexed = lex(line, Some(Isa::R700));
        let statement = lexed.first()?.statement(line);
        let mut words = statement.iter().skip_while(|lexeme| lexeme.kind == LexemeKind::Number);
        let (slot, colon) = (words.next()?.text(line), words.next()?.text(line));
        let first = statement.first()?.span.start;
        (matches!(slot, "x" | "y" | "z" | "w" | "t" | "?") && colon == ":")
            .then(|| Span::new(start + first, start + line.len()))
    };
    lines(plain).filter_map(is_slot).collect()
}

/// Returns the number of lines that contain a mnemonic of this machine.
fn mnemonics_in(plain: &str, isa: Isa) -> usize {
    let words = vocabulary(isa);
    let has =
        |line: &LexedLine| line.code().iter().any(|lexeme| words.mnemonics.contains(lexeme.text(plain)));
    lex(plain, Some(isa)).iter().filter(|line| has(line)).count()
}
