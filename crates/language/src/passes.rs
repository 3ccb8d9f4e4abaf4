//! Assembles a text that may have errors. Lines with errors are removed until the remaining lines assemble.

use reconverge_isa::Diagnostic;
use reconverge_isa::source::lines;
use reconverge_workbench::machine::Assembled;
use reconverge_workbench::{Target, assemble};

use crate::lexemes::{LexemeKind, lex};

/// Maximum number of times that a text is assembled.
const MOST: usize = 8;

/// Number of errors after which an assembler may stop. If an attempt finds this many errors, another attempt may find
/// more errors.
pub(crate) const MANY: usize = 20;

/// The result of assembling a text with errors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passes {
    /// The programs without the lines that have errors. Positions refer to the whole text. `None` if the remaining
    /// lines do not assemble.
    pub(crate) assembled: Option<Assembled>,
    /// The errors in text order.
    pub(crate) errors: Vec<Diagnostic>,
}

/// Assembles a text without macros.
pub(crate) fn assemble_partly(target: &Target, plain: &str) -> Passes {
    let mut found = Passes::default();
    let mut text: Option<String> = None;
    for pass in 0..MOST {
        let errors = match assemble(target, text.as_deref().unwrap_or(plain)) {
            Ok(assembled) => {
                found.assembled = Some(assembled);
                break;
            }
            Err(errors) => errors,
        };
        let blanked = blanked(target, text.as_deref().unwrap_or(plain), &errors);
        if pass == 0 || found.errors.len() >= MANY {
            found.errors.extend(errors);
        }
        if blanked.as_deref() == text.as_deref() || blanked.is_none() {
            break;
        }
        text = blanked;
    }
    Diagnostic::sort(&mut found.errors);
    found.errors.dedup();
    found
}

/// Returns the text with spaces in place of the statements that have errors. Labels before the removed statements
/// remain. If a line with only a label has an error, the function also removes the label. Returns `None` if no
/// statement or label remains to be removed.
fn blanked(target: &Target, text: &str, errors: &[Diagnostic]) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let starts: Vec<(usize, &str)> = lines(text).collect();
    let mut changed = false;
    for error in errors {
        let index = starts.partition_point(|(start, _)| *start <= error.span.start).checked_sub(1)?;
        let (start, line) = starts[index];
        let lexed = lex(line, Some(target.isa));
        let statement = lexed.first().and_then(|lexed| lexed.statement(line).first().copied());
        let whole = lexed.first().and_then(|lexed| lexed.lexemes.first().copied());
        // The function removes lines of directives and lines of instructions. A directive may be wrong only because of
        // its position. A second `.chip` is an example. The error would remain if the function kept the line of the
        // directive.
        let from = statement.or(whole).filter(|first| first.kind != LexemeKind::Comment);
        let Some(from) = from else { continue };
        bytes[start + from.span.start..start + line.len()].fill(b' ');
        changed = true;
    }
    changed.then(|| String::from_utf8(bytes).ok())?
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Isa;

    use super::*;

    #[test]
    fn lines_without_errors_are_assembled_all_the_same() {
        let text = "a: nop\nb: nopp $r0\nbra b\nexit nop\n";
        let passes = assemble_partly(&Target::of(Isa::Tesla), text);
        assert_eq!(passes.errors.len(), 1, "{:?}", passes.errors);
        let assembled = passes.assembled.expect("the other lines");
        assert_eq!(assembled.image.programs[0].words.len(), 6);
        assert_eq!(assembled.lines[0][1].1, text.find("bra").unwrap());
    }

    #[test]
    fn errors_beyond_the_limit_of_an_assembler_are_found() {
        let text = "OUT nopp\n".repeat(30);
        let passes = assemble_partly(&Target::of(Isa::R500), &text);
        assert_eq!(passes.errors.len(), 30);
    }
}
