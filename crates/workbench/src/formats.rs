//! Writes programs to files, and detects the parts of a program that a format cannot hold.
//!
//! No table states which data a format can represent. Instead, this module reads the written file back and compares the
//! result with the program.

use std::collections::HashSet;

use litemap::LiteMap;
use reconverge_container::{Error, Written, bin, hex};
use reconverge_isa::sets::SortedSet;
use reconverge_isa::{Image, Isa};
use thiserror::Error;

use crate::listing::Style;
use crate::machine;
use crate::open::{Known, open};
use crate::target::Target;

/// Returns the formats in which a machine's programs can be written.
pub fn formats(isa: Isa) -> Vec<&'static str> {
    [HEX, HEX32, BIN].iter().chain(machine(isa).containers()).copied().collect()
}

/// The words of the program as hexadecimal text. A comment with the machine and the chip precedes the words.
pub const HEX: &str = "hex";
/// Words as hexadecimal text without comments, one word per line, as in collections of shaders.
pub const HEX32: &str = "hex32";
/// Words as bytes.
pub const BIN: &str = "bin";

/// Returns the format for the extension of a file name. If no format has this extension, returns [`HEX`].
///
/// # Errors
/// Returns an error if the extension belongs to a format of another machine.
pub fn by_ending(isa: Isa, ending: &str) -> Result<&'static str, WriteError> {
    // The accepted extensions are the parts of format names, for example `elf` of cubin-elf32 and `gsh` of gsh.
    let is = |format: &&str| ending.len() > 2 && format.split('-').any(|part| part.starts_with(ending));
    let of = |isa| formats(isa).into_iter().find(is);
    match of(isa) {
        Some(format) => Ok(format),
        None if Isa::ALL.into_iter().any(|other| of(other).is_some()) => Err(unknown(ending, isa)),
        None => Ok(HEX),
    }
}

/// The reason why programs cannot be written.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The machine does not have this format.
    #[error("unsupported format `{format}` for {isa}: expected one of {}", .has.join(", "))]
    Unknown {
        /// The requested format.
        format: String,
        /// The machine.
        isa: Isa,
        /// The formats of the machine.
        has: Vec<&'static str>,
    },
    /// The container cannot be written.
    #[error(transparent)]
    Container(#[from] Error),
    /// The format holds only one program.
    #[error("{format}: expected one program, found {programs}; {}", remedy(.fits))]
    Several {
        /// The format.
        format: String,
        /// Number of programs.
        programs: usize,
        /// Formats that can hold all of the programs.
        fits: Vec<&'static str>,
    },
    /// The format cannot hold a part of the program that affects the program's results.
    #[error("{format} cannot hold {}; {}, or omit it with --drop-state", few(.lines), remedy(.fits))]
    Lost {
        /// The format.
        format: String,
        /// Lines of the program's text that the file would not hold.
        lines: Vec<String>,
        /// Formats that can represent these lines.
        fits: Vec<&'static str>,
    },
}

fn unknown(format: &str, isa: Isa) -> WriteError {
    WriteError::Unknown { format: format.to_owned(), isa, has: formats(isa) }
}

fn remedy(fits: &[&str]) -> String {
    match fits {
        [] => "no format can".to_owned(),
        [one] => format!("use --format {one}"),
        [first, more @ ..] => format!("use --format {first} (or {})", more.join(", ")),
    }
}

/// Returns the first lines as text. If the function omits lines, the text ends with the number of omitted lines.
fn few(lines: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = lines.iter().take(SHOWN).map(|line| format!("`{line}`")).collect();
    let more = lines.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

/// Returns the bytes of a file of this format. If a part of the program affects results, and the format cannot
/// represent this part, returns an error unless `drop_state` is set. Names and declarations do not affect results. If
/// the format cannot hold a name or declaration, a note lists this name or declaration.
///
/// # Errors
/// See [`WriteError`].
pub fn write(
    target: &Target,
    image: &Image,
    format: &str,
    drop_state: bool,
) -> Result<Written<Vec<u8>>, WriteError> {
    let (mut written, kept) = attempt(target, image, format)?;
    if kept.same && kept.lines.is_empty() {
        return Ok(written);
    }
    if !kept.same && !drop_state {
        let holds =
            |other: &&str| *other != format && attempt(target, image, other).is_ok_and(|(_, kept)| kept.same);
        let fits = formats(target.isa).into_iter().filter(holds).collect();
        return Err(WriteError::Lost { format: format.to_owned(), lines: kept.lines, fits });
    }
    // If the container has notes, the notes already name the parts that the container cannot hold.
    if written.notes.is_empty() || !kept.same {
        written.notes.push(format!("{format} cannot hold {}", few(&kept.lines)));
    }
    Ok(written)
}

/// Result of the comparison of two programs. One program is the original program. The function read the second program
/// from the written file.
struct Kept {
    /// Whether both programs have the same results.
    same: bool,
    /// Lines of the program's text that the file does not hold.
    lines: Vec<String>,
}

fn attempt(target: &Target, image: &Image, format: &str) -> Result<(Written<Vec<u8>>, Kept), WriteError> {
    let plain = |content| Ok(Written { content, notes: Vec::new() });
    let one = || match &image.programs[..] {
        [program] => Ok(program),
        programs => {
            let holds = |other: &&str| attempt(target, image, other).is_ok();
            let fits =
                machine(target.isa).containers().iter().copied().filter(|other| holds(other)).collect();
            Err(WriteError::Several { format: format.to_owned(), programs: programs.len(), fits })
        }
    };
    let written = match format {
        HEX => plain((header(target) + &hex::write(&one()?.words)).into_bytes()),
        HEX32 => plain(hex::write(&one()?.words).into_bytes()),
        BIN => plain(bin::write(&one()?.words)),
        _ => match machine(target.isa).write(target, image, format) {
            Some(written) => Ok(written?),
            None => Err(unknown(format, target.isa)),
        },
    }?;
    let kept = compare(target, image, &written.content);
    Ok((written, kept))
}

/// Returns a comment with the machine, chip and stage. The comment is necessary because hexadecimal words do not state
/// this information. [`hex::load`] reads the comment.
fn header(target: &Target) -> String {
    let chip = target.chip_name().map(|chip| format!(", chip {chip}")).unwrap_or_default();
    let stage = target.stage.map(|stage| format!(", stage {stage}")).unwrap_or_default();
    format!("# isa {}{chip}{stage}\n", target.isa)
}

fn compare(target: &Target, image: &Image, file: &[u8]) -> Kept {
    let known = Known {
        isa: Some(target.isa),
        chip: target.chip_name().map(str::to_owned),
        stage: target.stage,
        ..Known::default()
    };
    let back = open(file, false, &known).map(|opened| opened.image).unwrap_or_default();
    let machine = machine(target.isa);
    let text = |image| machine.image_text(target, image, Style::default()).unwrap_or_default();
    let after: HashSet<String> = directives(&text(&back)).collect();
    let lines = directives(&text(image)).filter(|line| !after.contains(line)).collect();
    Kept { same: computes(image) == computes(&back), lines }
}

/// Returns the directives in an assembler text.
fn directives(text: &str) -> impl Iterator<Item = String> {
    let code = |line: &str| line.split(';').next().unwrap_or_default().trim().to_owned();
    text.lines().map(code).filter(|line| line.starts_with('.'))
}

/// The bytes of constants, indexed by bank and offset.
type Constants = LiteMap<(u32, u32), u8>;

/// The data that determine the results of a program. These data are the words, the base address, the state registers,
/// the constants, and the names of the module's variables.
type Computes<'a> = (Vec<u32>, u32, Vec<(String, u32)>, Constants, SortedSet<&'a str>);

/// Returns the data that determine the results of each program.
fn computes(image: &Image) -> Vec<Computes<'_>> {
    let of = |program| {
        let bytes = image.constants_of(program).flat_map(|block| {
            let place = move |(index, byte): (usize, &u8)| ((block.bank, block.offset + index as u32), *byte);
            block.bytes.iter().enumerate().map(place)
        });
        let variables = image.module_of(program).map(|module| &module.variables[..]).unwrap_or_default();
        let mut state = program.state.clone();
        state.sort();
        let variables = variables.iter().map(|variable| &variable.name[..]).collect();
        (program.words.clone(), program.base, state, bytes.collect(), variables)
    };
    image.programs.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::assemble;

    fn image(isa: Isa, source: &str) -> (Target, Image) {
        let assembled = assemble(&Target::of(isa), source).unwrap();
        (assembled.target, assembled.image)
    }

    #[test]
    fn a_format_that_cannot_hold_the_state_refuses_and_names_one_that_does() {
        let (target, image) =
            image(Isa::R500, ".int 2 3 0 1\n.const 3 1.0 2.0 3.0 4.0\n.bool 7 true\nOUT nop\n");
        for format in [HEX, BIN] {
            let refused = write(&target, &image, format, false).unwrap_err();
            let WriteError::Lost { lines, fits, .. } = &refused else { panic!("{refused}") };
            assert_eq!(
                lines[..],
                [".int 2 3 0 1", ".state US_FC_BOOL_CONST 0x80", ".const 3 1.0 2.0 3.0 4.0"]
            );
            assert_eq!(fits[..], ["elf"], "{refused}");
            let written = write(&target, &image, format, true).unwrap();
            assert!(written.notes[0].contains("`.int 2 3 0 1`"), "{:?}", written.notes);
        }
        assert_eq!(write(&target, &image, "elf", false).unwrap().notes, [""; 0]);
    }

    #[test]
    fn what_a_hex_file_is_for_comes_back_from_its_first_line() {
        for (isa, source) in [
            (Isa::R500, ".chip R580\nOUT nop\n"),
            (Isa::R700, ".chip rv710\nNOP: END_OF_PROGRAM\n"),
            (Isa::Tesla, ".chip GT200\n.type fragment\nexit nop\n"),
        ] {
            let (target, image) = image(isa, source);
            let written = write(&target, &image, HEX, false).unwrap();
            let opened = open(&written.content, false, &Known::default()).unwrap();
            assert_eq!(opened.target.isa, isa);
            assert_eq!(opened.target.chip, target.chip, "{isa}");
            let stage = opened.image.programs[0].stage.or(opened.target.stage);
            assert_eq!(stage, target.stage, "{isa}");
        }
    }

    #[test]
    fn several_programs_need_a_format_that_holds_them() {
        let (target, image) = image(Isa::Tesla, ".kernel a\nexit nop\n.kernel b\nexit nop\n");
        let refused = write(&target, &image, HEX, false).unwrap_err().to_string();
        assert!(refused.starts_with("hex: expected one program, found 2; use --format cubin"), "{refused}");
        assert_eq!(
            write(&target, &image, "gsh", false).unwrap_err().to_string().split(": ").next(),
            Some("unsupported format `gsh` for tesla")
        );
    }

    #[test]
    fn the_ending_of_a_name_chooses_the_format() {
        assert_eq!(by_ending(Isa::R500, "elf"), Ok("elf"));
        assert_eq!(by_ending(Isa::Tesla, "cubin"), Ok("cubin"));
        assert_eq!(by_ending(Isa::R500, "txt"), Ok(HEX));
        assert!(by_ending(Isa::R500, "cubin").is_err());
    }
}
