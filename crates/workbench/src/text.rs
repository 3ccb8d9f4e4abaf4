//! Assembles sources. Also tests that the conversion of programs to text and back does not change the programs.

use std::collections::VecDeque;

use reconverge_isa::expand::{Expanded, Given, Included, expand, included_by};
use reconverge_isa::limits::FILE;
use reconverge_isa::program::Image;
use reconverge_isa::source::{Diagnostic, suggest};
use reconverge_isa::{Isa, Program, Span};

use crate::listing::Style;
use crate::machine::{Assembled, same_program};
use crate::target::{Target, directives, isa_of_chip, isa_of_source, same_chip};

/// A source text in which constants, macros and included files are expanded.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    text: &'a str,
    expanded: Option<Expanded>,
}

impl<'a> Source<'a> {
    /// Expands the constants, macros and included files of a source text.
    ///
    /// # Errors
    /// Returns every error in constants, macros and included files.
    pub fn new(text: &'a str, given: &Given) -> Result<Source<'a>, Vec<Diagnostic>> {
        Ok(Source { text, expanded: expand(text, given)? })
    }

    /// Returns the expanded text, which the machine's assembler accepts.
    pub fn plain(&self) -> &str {
        self.expanded.as_ref().map_or(self.text, |expanded| &expanded.text)
    }

    /// Returns the machine that the source states. Returns `None` if the source does not state a machine.
    pub fn isa(&self) -> Option<Isa> {
        isa_of_source(self.plain())
    }

    /// Assembles the source for the machine of `target`.
    ///
    /// # Errors
    /// Returns every error in the source. A source that states another machine than the machine of `target` is also an
    /// error.
    pub fn assemble(&self, target: &Target) -> Result<Assembled, Vec<Diagnostic>> {
        let in_source = |diagnostics: Vec<Diagnostic>| -> Vec<Diagnostic> {
            let one = |diagnostic| match &self.expanded {
                Some(expanded) => expanded.in_source(diagnostic),
                None => diagnostic.with_lines(self.text),
            };
            diagnostics.into_iter().map(one).collect()
        };
        let mut assembled = assemble_plain(target, self.plain()).map_err(in_source)?;
        assembled.warnings = in_source(assembled.warnings);
        if let Some(expanded) = &self.expanded {
            let places = assembled.lines.iter_mut().flatten();
            places.for_each(|(_, at)| *at = expanded.offset_in_source(*at));
        }
        Ok(assembled)
    }
}

/// Returns the files that a source text includes, directly or indirectly. `read` receives a path relative to the folder
/// of the source. `read` returns the bytes of this file, or the reason why this file cannot be read.
pub fn included(source: &str, read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>) -> Vec<Included> {
    let mut files: Vec<Included> = Vec::new();
    let mut asked: VecDeque<String> = included_by(source, "").into();
    let mut bytes = 0;
    while let Some(name) = asked.pop_front() {
        if files.iter().any(|file| file.name == name) {
            continue;
        }
        let text = read(&name).and_then(|content| {
            bytes += content.len() as u64;
            FILE.check(bytes).map_err(|error| error.to_string())?;
            String::from_utf8(content).map_err(|_| "the file is not UTF-8 text".to_owned())
        });
        asked.extend(text.iter().flat_map(|text| included_by(text, &name)));
        files.push(Included { name, text });
    }
    files
}

/// Assembles a source text for the machine of `target`. The text cannot include files.
///
/// # Errors
/// Returns every error in the source. A source that states another machine than the machine of `target` is also an
/// error.
pub fn assemble(target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    Source::new(source, &Given::default())?.assemble(target)
}

fn assemble_plain(target: &Target, source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    let isa = target.isa;
    if let Some(stated) = isa_of_source(source).filter(|stated| *stated != isa) {
        let at = directives(source).find(|(name, _, _)| [".isa", ".chip"].contains(name));
        let message = format!("this source is for {stated}, not for {isa}");
        let help = format!("omit --isa, or use --isa {stated}");
        return Err(vec![Diagnostic::error(at.map_or(Span::default(), |(_, _, at)| at), message).help(help)]);
    }
    let other = |(name, stated, at): (&str, &str, Span)| {
        let asked = target.chip_name().filter(|asked| !same_chip(isa, stated, asked))?;
        (name == ".chip" && isa_of_chip(stated) == Some(isa)).then(|| {
            let message = format!("this source is for {stated}, not for {asked}");
            Diagnostic::error(at, message).help(format!("omit --chip, or use --chip {stated}"))
        })
    };
    if let Some(error) = directives(source).find_map(other) {
        return Err(vec![error]);
    }
    let advised = |errors: Vec<Diagnostic>| errors.into_iter().map(|error| of_other(error, isa)).collect();
    target.machine().assemble(target, source).map_err(advised)
}

/// If an error is about an unknown machine or about a chip of a machine other than `isa`, the function adds a hint to
/// the error.
fn of_other(error: Diagnostic, isa: Isa) -> Diagnostic {
    let named = |before: &str| error.message.strip_prefix(before)?.strip_suffix('`');
    if let Some(other) = named("unknown chip `").and_then(isa_of_chip).filter(|other| *other != isa) {
        return error.help(format!("it is a chip of {other}, and this source is for {isa}"));
    }
    match named("unknown machine `").map(|name| suggest(name, Isa::ALL.map(Isa::name))) {
        Some(advice) => error.help(advice),
        None => error,
    }
}

/// Assembles a text that was disassembled. `what` names the text in messages.
fn back(target: &Target, text: &str, what: &str) -> Result<Assembled, String> {
    assemble(target, text).map_err(|errors| {
        let error = &errors[0];
        let (line, column) = error.span.line_column(text);
        format!("round trip: line {line}, column {column} of the {what} does not assemble: {error}")
    })
}

/// Disassembles a program, assembles the listing, and compares the result with the program. The words must be equal. A
/// listing contains a part of the container's data. This part must also be equal. On R500, this data is the state and
/// the constants. On R700, this data is the state, the registers and the stack. On Tesla, this data is the code
/// address, the registers and the memory.
///
/// # Errors
/// Returns a description of the first difference. Also returns an error if the machine does not have the program's
/// type.
pub fn round_trip(target: &Target, program: &Program) -> Result<(), String> {
    let machine = target.machine();
    let listing = machine.disassemble(target, program, Style::default());
    let listing = listing.map_err(|error| error.to_string())?;
    let back = back(target, &listing.text, "listing")?;
    let [back] = &back.image.programs[..] else {
        let found = back.image.programs.len();
        return Err(format!("round trip: expected one program from the assembled listing, found {found}"));
    };
    same_program(machine, program, back).map_err(|why| format!("round trip: {why}"))
}

/// Converts an image to text and back. The function does this once in the default style and once with all optional
/// parts of a listing. The programs must be equal. The shared data must also be equal. If the text of a machine
/// contains a part of the container's data, this part must also be equal. Tesla's texts contain all data of the
/// container.
///
/// # Errors
/// Returns a description of the first difference. Also returns an error if the machine does not have a program's type.
pub fn round_trip_image(target: &Target, image: &Image) -> Result<(), String> {
    let machine = target.machine();
    for style in
        [Style::default(), Style { hex: true, structure: true, idioms: true, notes: true, amd: false }]
    {
        let text = machine.image_text(target, image, style).map_err(|error| error.to_string())?;
        let back = back(target, &text, "file's text")?;
        machine.keeps_image(image, &back.image).map_err(|why| format!("round trip of the file: {why}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Isa;

    use super::*;

    #[test]
    fn an_instruction_is_explained_where_it_stands_in_its_program() {
        let target = Target::of(Isa::Tesla);
        let source = "nop\nadd b32 $r0 $r1 $r2\nexit nop\n";
        let program = assemble(&target, source).unwrap().image.programs.remove(0);
        let at = |address| target.machine().explain_at(&target, &program, address);
        let first = at(0).unwrap();
        let second = first.words.len() as u32 * 4;
        assert_eq!(
            at(second).unwrap().words,
            program.words[first.words.len()..][..at(second).unwrap().words.len()]
        );
        assert!(at(second).unwrap().text.contains("add"), "{:?}", at(second));
        let refused = at(2).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("no instruction starts at 0x2: the nearest start at 0x0 and {second:#x}")
        );
    }

    #[test]
    fn a_source_for_another_machine_is_refused() {
        let errors = assemble(&Target::of(Isa::R500), ".chip RV770\n").unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "this source is for r700, not for r500 (omit --isa, or use --isa r700)"
        );
    }
}
