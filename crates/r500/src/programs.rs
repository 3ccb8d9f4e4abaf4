//! Assembly texts that contain several programs. Each program begins with `.program`. An `.isa` or `.chip` before the
//! first `.program` applies to all programs.

use reconverge_isa::source::{Cursor, Diagnostic, DirectiveRow, Span, name_of};

use crate::chip::Chip;
use crate::pvs;
use crate::text::Assembled;
use crate::text::asm;
use crate::text::reading::{Line, MOST_ERRORS, lines};

/// Returns the directives of the fragment processor and the vertex unit, without duplicates.
pub fn directives() -> Vec<DirectiveRow> {
    let mut all = vec![DirectiveRow::program(".program")];
    for row in asm::DIRECTIVES.iter().chain(pvs::text::asm::DIRECTIVES) {
        if all.iter().all(|known| known.name != row.name) {
            all.push(*row);
        }
    }
    all
}

/// The lines of one program.
#[derive(Default)]
struct Part<'a> {
    /// Position of the `.program` directive.
    span: Span,
    name: Option<String>,
    lines: Vec<Line<'a>>,
}

/// Assembles the programs of a text. The text may contain programs of the fragment processor and of the vertex unit. A
/// program with `.stage vertex` is for the vertex unit. For a program without `.stage`, `vertex` states whether the
/// program is for the vertex unit. Each result has the name from its `.program` directive. A text without `.program` is
/// one program.
///
/// # Errors
/// Returns all errors, with up to twenty messages for each program.
pub fn assemble_all(source: &str, vertex: bool) -> Result<Vec<Assembled>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let parts = parts(source, &mut errors);
    let mut programs: Vec<Assembled> = Vec::with_capacity(parts.len());
    let mut chip: Option<String> = None;
    for Part { span, name, lines } in parts {
        match assemble_part(lines, vertex) {
            Ok(mut assembled) => {
                assembled.program.name = name;
                let other = chip.as_deref().filter(|chip| {
                    assembled.chip.as_deref().is_some_and(|own| Chip::named(own) != Chip::named(chip))
                });
                if let Some(chip) = other {
                    let help = format!("the programs of a text are for one chip, here {chip}");
                    errors.push(Diagnostic::error(span, "another chip").help(help));
                }
                chip = chip.or_else(|| assembled.chip.clone());
                programs.push(assembled);
            }
            Err(more) => errors.extend(more),
        }
        if errors.len() >= MOST_ERRORS {
            break;
        }
    }
    match errors.is_empty() {
        true => Ok(programs),
        false => Err(errors),
    }
}

fn assemble_part(lines: Vec<Line<'_>>, vertex: bool) -> Result<Assembled, Vec<Diagnostic>> {
    let stated = lines.iter().find_map(|(_, _, line)| {
        let mut words = line.split_whitespace();
        (words.next() == Some(".stage")).then(|| words.next()).flatten()
    });
    match stated.map_or(vertex, |stage| stage == "vertex") {
        true => pvs::text::asm::assemble_lines(lines),
        false => asm::assemble_lines(lines),
    }
}

fn parts<'a>(source: &'a str, errors: &mut Vec<Diagnostic>) -> Vec<Part<'a>> {
    let mut parts = vec![Part::default()];
    // `begun`: whether a program has begun. Every line except `.isa` and `.chip` begins a program. `named`: whether the
    // program began with `.program`.
    let (mut begun, mut named) = (false, false);
    for line in lines(source) {
        let mut cursor = Cursor::new(line.2, line.1);
        cursor.skip_space();
        let start = cursor.offset();
        let directive = if cursor.eat(".") { cursor.word() } else { "" };
        if directive != "program" {
            begun |= !matches!(directive, "isa" | "chip") && !Cursor::new(line.2, line.1).at_end();
            parts.last_mut().into_iter().for_each(|part| part.lines.push(line));
            continue;
        }
        let span = cursor.since(start);
        if begun && !named {
            let message = "a program has begun before this line";
            errors.push(Diagnostic::error(span, message).help(
                "only `.isa` and `.chip`, which apply to all programs, may precede the first `.program`",
            ));
        }
        // The lines before the first `.program` are parsed as part of the first program.
        let before = if named { None } else { parts.pop() };
        let lines = before.map(|part| part.lines).unwrap_or_default();
        parts.push(Part {
            span,
            name: name(&mut cursor).unwrap_or_else(|error| {
                errors.push(error);
                None
            }),
            lines,
        });
        (begun, named) = (true, true);
    }
    parts
}

/// Parses the name after `.program`.
fn name(cursor: &mut Cursor<'_>) -> Result<Option<String>, Diagnostic> {
    if cursor.at_end() {
        return Ok(None);
    }
    let at = cursor.here();
    let Some(name) = name_of(cursor.token()) else {
        return Err(
            Diagnostic::error(at, "`%` and two hexadecimal digits were expected").help("`%` itself is `%25`")
        );
    };
    match cursor.at_end() {
        true => Ok(Some(name)),
        false => {
            Err(Diagnostic::error(cursor.here(), "a name is one word").help("a space is written as `%20`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reconverge_isa::program::Stage;

    fn errors(source: &str) -> Vec<String> {
        assemble_all(source, false).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn programs_of_both_units_have_their_names_stages_and_labels() {
        let source = ".isa r500\n.chip R580\n\n.program a%20b\n.state US_PIXSIZE 5\nx:\nFC JUMP -> x\n\n.program\n\
                      .stage vertex\nVE_ADD t0 = i0, i0\n\n.program c\nx:\nFC JUMP -> x\n";
        let programs = assemble_all(source, false).unwrap();
        let names: Vec<_> = programs.iter().map(|one| one.program.name.as_deref()).collect();
        assert_eq!(names, [Some("a b"), None, Some("c")]);
        assert_eq!(programs[0].program.state.len(), 1);
        assert_eq!(programs[2].program.state.len(), 0);
        assert_eq!(programs[1].program.stage, Some(Stage::Vertex));
        assert_eq!(programs[0].chip.as_deref(), Some("R580"));
        let lines: Vec<usize> = programs.iter().flat_map(|one| one.lines.iter().map(|line| line.1)).collect();
        let at = |text: &str| source.match_indices(text).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(lines, [at("FC")[0], at("VE_ADD")[0], at("FC")[1]]);
    }

    #[test]
    fn what_is_wrong_with_several_programs_has_its_place() {
        assert_eq!(
            errors("OUT nop\n.program b\nOUT nop\n"),
            [
                "a program has begun before this line (only `.isa` and `.chip`, which apply to all programs, may \
                 precede the first `.program`)"
            ]
        );
        assert_eq!(errors(".program a b\n"), ["a name is one word (a space is written as `%20`)"]);
        assert_eq!(
            errors(".program a%2\n"),
            ["`%` and two hexadecimal digits were expected (`%` itself is `%25`)"]
        );
        let other = ".chip R580\n.program a\nOUT nop\n.program b\n.chip RV515\nOUT nop\n";
        assert_eq!(errors(other), ["another chip (the programs of a text are for one chip, here R580)"]);
        let source = ".program a\nOUT nop\n.program b\nOUT nopp\n";
        let error = &assemble_all(source, false).unwrap_err()[0];
        assert_eq!(error.span.line_column(source).0, 4);
        let source = ".program a\nx:\n.program b\nx:\nx:\nOUT nop\n";
        let twice = assemble_all(source, false).unwrap_err();
        assert_eq!(twice[0].related.as_deref().map(|(first, _)| first.line_column(source).0), Some(4));
    }
}
