//! Logs of drivers and compilers. A log contains any number of shaders between other lines.
//!
//! Each dump begins with a header. The format of the dump determines the end of the dump: the stated number of words,
//! the last line of words, or an end mark. [`lines`] finds the headers. [`r300`], [`r600`], [`nouveau`] and [`llvm`]
//! each read the dumps of one driver or compiler. A line between dumps may state the program type of the next dump. The
//! functions ignore all further lines between dumps. Lines of a log may start with times or program names, and may
//! contain escape sequences and arbitrary bytes.
//!
//! An invalid number in a dump is an error. The functions skip a dump that has missing lines or that is for an
//! unsupported chip. A note names the skipped dump. If all dumps of a log are skipped, the result is an error.

mod found;
mod lines;
mod llvm;
mod nouveau;
mod r300;
mod r600;

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use reconverge_isa::program::{Digits, Module, Stage};
use reconverge_isa::{Image, Isa, Program};

use self::found::LoggedShader;
pub(crate) use self::found::is_number;
use self::lines::{ENCODING, Header, LogLines, MARKS, header, in_comment, plain, stage_of};
pub(crate) use self::llvm::foreign;
use crate::bytes::numbers;
use crate::c::declares_array;
use crate::error::{Unread, counted, quoted};
use crate::{Error, Format, Hints};

/// Returns whether a text contains the dump of a shader outside C comments.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    if !MARKS.iter().any(|mark| memmem::find(bytes, mark.as_bytes()).is_some()) && !is_llvm_text(bytes) {
        return false;
    }
    if bytes.contains(&0) {
        return false;
    }
    let text = String::from_utf8_lossy(bytes);
    // A C source may quote dumps in its comments. Such dumps are ignored.
    let is_source = declares_array(&text);
    let text = plain(&text);
    let mut lines = LogLines::new(&text);
    while let Some(line) = lines.next() {
        let begins = header(line.text).is_some() || r300::begins(line.text) || line.text.contains(ENCODING);
        let at = line.text.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(0);
        if begins && !(is_source && in_comment(&text, line.at + at)) {
            return true;
        }
    }
    is_llvm_text(bytes)
}

/// Returns whether a text is the assembly text of LLVM's R600 target. The name of the file does not matter.
pub fn is_llvm_text(bytes: &[u8]) -> bool {
    let is_section = |at: usize| {
        let line = &bytes[bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)..at];
        line.trim_ascii_start().starts_with(b".section")
    };
    memmem::find(bytes, llvm::CONFIG.as_bytes()).is_some_and(is_section) && !bytes.contains(&0)
}

/// Reads all shaders of a log. Each shader becomes a program.
pub fn load(bytes: &[u8], hints: &Hints) -> Result<Image, Error> {
    let text = String::from_utf8_lossy(bytes);
    // The conversion replaces bytes that are not UTF-8, which changes the offsets of the following text. The offsets
    // are valid in the file only if the conversion has not replaced any bytes.
    let is_whole = matches!(text, std::borrow::Cow::Borrowed(_));
    let text = plain(&text);
    let shaders = shaders(&text)?;
    let mut image = Image { format: Format::Log.name(), ..Image::default() };
    let mut unread = Unread::default();
    let chips = chips(&shaders);
    let (mut passed, mut first_passed) = (0, 0);
    for found in name(shaders) {
        let LoggedShader { line, name, isa, chip, class, words, places, damage, foreign, .. } = found;
        if let Some(chip) = foreign {
            unread.push(Error::OtherShader { line, name, chip });
            continue;
        }
        if let Some(error) = damage {
            unread.push(*error);
            continue;
        }
        if words.is_empty() {
            let expected = "a dump with words";
            unread.push(Error::Syntax {
                line,
                column: 1,
                found: quoted(&name),
                expected: expected.to_owned(),
            });
            continue;
        }
        if let (Some(isa), Some(asked)) = (isa, hints.isa)
            && isa != asked
        {
            image.notes.push(format!("line {line}: {name} is for {isa}, not for {asked}, and was skipped"));
            continue;
        }
        if found.passed.count > 0 {
            first_passed = if passed == 0 { found.passed.first } else { first_passed };
            passed += found.passed.count;
        }
        image.notes.extend(found.notes.iter().map(|note| format!("{name}: {note}")));
        let chip = chip.or_else(|| chips.get(&class?).cloned().flatten()).or_else(|| class_name(class?));
        let mut program = Program { name: Some(name), stage: found.stage, ..Program::from_words(words) };
        (program.resources, program.state) = (found.resources, found.state);
        if let Some(places) = places.into_iter().collect::<Option<Vec<_>>>().filter(|_| is_whole)
            && places.len() == program.words.len()
        {
            program.code_at = numbers(places, Digits::Hexadecimal);
        }
        let was_empty = image.programs.is_empty();
        image.isa = if was_empty || image.isa == isa { isa } else { None };
        let module = image.modules.iter().position(|module| module.chip == chip);
        program.module = module.unwrap_or_else(|| {
            image.modules.push(Module { chip, ..Module::default() });
            image.modules.len() - 1
        });
        image.programs.push(program);
    }
    if passed > 0 {
        image.notes.push(format!(
            "skipped {} without words inside dumps; the first is line {first_passed}",
            counted(passed, "line")
        ));
    }
    let remedy = match memmem::find(bytes, llvm::CONFIG.as_bytes()) {
        Some(_) => {
            "the text has no encodings: llc --show-mc-encoding prints them, -filetype=obj writes an object"
        }
        None => {
            "expected a dump of Mesa's r300, r600 or nouveau, or LLVM's text with encodings; --format dump reads words alone"
        }
    };
    unread.settle(&mut image, "a shader in the log", remedy.to_owned())?;
    if let [module] = &image.modules[..] {
        image.chip.clone_from(&module.chip);
    }
    Ok(image)
}

/// Returns the dumps of a log, in order.
fn shaders(text: &str) -> Result<Vec<LoggedShader>, Error> {
    let mut shaders: Vec<LoggedShader> = Vec::new();
    let mut lines = LogLines::new(text);
    let mut before = llvm::Preceding::default();
    // The program type that the lines after the last dump state.
    let mut stage = None;
    while let Some(line) = lines.next() {
        if let Some((prefix, header)) = header(line.text) {
            lines.begin(prefix);
            let line = lines.stripped(line);
            let mut found = match header {
                Header::Bytecode => r600::read(&mut lines, line)?,
                Header::Shader { id, optimized, target } => {
                    let mut found = r600::read(&mut lines, line)?;
                    target_of(&mut found, target);
                    found.name = format!("SHADER{id}{}", if optimized { "-OPT" } else { "" });
                    found
                }
                Header::Fragment => r300::fragment(&mut lines, line)?,
                Header::Vertex => r300::vertex(&mut lines, line)?,
                Header::Binary { bytes } => nouveau::read(&mut lines, line, bytes)?,
                Header::OldFragment => LoggedShader {
                    isa: Some(Isa::R500),
                    stage: Some(Stage::Fragment),
                    foreign: Some("R300 or R400 (a fragment program)".to_owned()),
                    ..LoggedShader::new(line)
                },
                Header::LaterBinary => LoggedShader {
                    isa: Some(Isa::Tesla),
                    foreign: Some("NVC0 or later (Fermi)".to_owned()),
                    ..LoggedShader::new(line)
                },
            };
            if let Header::Bytecode | Header::Shader { .. } = header {
                found.isa = Some(Isa::R700);
                settle_class(&mut found);
                found.stage = stage_after(stage, found.stage, shaders.last());
            } else if let Header::Binary { .. } | Header::LaterBinary = header {
                found.stage = stage.map(|stage| if stage == Stage::Pixel { Stage::Fragment } else { stage });
            }
            stage = None;
            shaders.push(found);
        } else if r300::begins(line.text) {
            lines.begin("");
            lines.back(line);
            shaders.push(r300::fragment(&mut lines, line)?);
        } else if line.text.contains(ENCODING) {
            lines.begin("");
            shaders.push(llvm::read(&mut lines, line, &mut before)?);
        } else {
            stage = stage_of(line.text).or(stage);
            before.see(line)?;
        }
    }
    Ok(shaders)
}

/// Returns the program type of an r600 dump. After a geometry program, Mesa prints the program that copies the output
/// of the geometry program. The log contains no source for the copy program. Mesa prints the type `VS` or no type for
/// the copy program. (Mesa `r600_shader.c`)
fn stage_after(stated: Option<Stage>, own: Option<Stage>, last: Option<&LoggedShader>) -> Option<Stage> {
    let last = last.and_then(|last| last.stage);
    match (stated, own, last) {
        (None, None | Some(Stage::Vertex), Some(Stage::Geometry | Stage::GsCopy)) => Some(Stage::GsCopy),
        (stated, own, _) => own.or(stated),
    }
}

/// Reads the program type, the chip and the class from a string such as `PS/RV730/R700`.
fn target_of(found: &mut LoggedShader, target: &str) {
    let mut parts = target.split('/');
    let (kind, chip, class) = (parts.next(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    found.stage = match kind {
        Some("VS" | "ES") => Some(Stage::Vertex),
        Some("PS") => Some(Stage::Pixel),
        Some("GS") => Some(Stage::Geometry),
        Some("FETCH") => Some(Stage::Fetch),
        Some("COMPUTE") => Some(Stage::Compute),
        _ => None,
    };
    match class {
        "R600" | "R700" => {
            found.chip = Some(chip.to_ascii_lowercase());
            found.class = class.chars().nth(1);
        }
        _ => found.foreign = Some(format!("{chip} ({class})")),
    }
}

/// Rejects shaders for chips of the classes after R700.
fn settle_class(found: &mut LoggedShader) {
    let class = match found.class {
        Some('E') => "EVERGREEN".to_owned(),
        Some('C') => "CAYMAN".to_owned(),
        None | Some('6' | '7') => return,
        Some(other) => format!("class {other}"),
    };
    found.foreign.get_or_insert(class);
}

/// Returns the chip that the log names for each class. The value is `None` if the log names several chips of the class.
fn chips(shaders: &[LoggedShader]) -> HashMap<char, Option<String>> {
    let mut chips: HashMap<char, Option<String>> = HashMap::new();
    for (class, chip) in shaders.iter().filter_map(|found| Some((found.class?, found.chip.as_ref()?))) {
        let known = chips.entry(class).or_insert_with(|| Some(chip.clone()));
        if known.as_ref() != Some(chip) {
            *known = None;
        }
    }
    chips
}

/// Returns the name of a class of chips.
fn class_name(class: char) -> Option<String> {
    match class {
        '6' => Some("r600".to_owned()),
        '7' => Some("r700".to_owned()),
        _ => None,
    }
}

/// Names each unnamed shader. The name consists of the shader's type and a number. If several shaders have the same
/// name, the function appends the line number of the shader to each name.
fn name(mut shaders: Vec<LoggedShader>) -> Vec<LoggedShader> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut uses: HashMap<String, usize> = HashMap::new();
    for found in &mut shaders {
        if found.name.is_empty() {
            let kind = found.stage.map_or("shader", Stage::name);
            let number = numbers.entry(kind).or_default();
            *number += 1;
            found.name = format!("{kind}{number}");
        }
        *uses.entry(found.name.clone()).or_default() += 1;
    }
    let mut taken: HashSet<String> = uses.keys().cloned().collect();
    for found in shaders.iter_mut().filter(|found| uses[&found.name] > 1) {
        let mut new = format!("{}:{}", found.name, found.line);
        while !taken.insert(new.clone()) {
            new.push('\'');
        }
        found.name = new;
    }
    shaders
}

#[cfg(test)]
mod tests;
