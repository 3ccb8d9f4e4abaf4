//! Disassembles words, and assembles the text again.

use reconverge_isa::Program;
use reconverge_isa::program::Stage;
use reconverge_workbench::{Known, Opened, Style, open, round_trip as returns, round_trip_image};
use serde::Serialize;

use crate::error::{FaultyPart, PlayError};
use crate::request::WordsGiven;

/// The text of the program in a file of words.
#[derive(Clone, Debug, Serialize)]
pub struct Disassembled {
    /// The machine.
    pub isa: &'static str,
    /// The format of the file.
    pub format: &'static str,
    /// The text. If the text is assembled, the result is the words of the file.
    pub text: String,
}

/// The result of disassembling words and assembling the text again.
#[derive(Clone, Debug, Serialize)]
pub struct RoundTripped {
    /// The programs of the file.
    pub programs: Vec<ProgramBack>,
    /// The first difference between the file of the request and the reassembled file. `None` if both files are equal.
    pub difference: Option<String>,
}

/// A program that was disassembled and assembled again.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramBack {
    /// Name of the program.
    pub name: Option<String>,
    /// Number of words.
    pub words: usize,
    /// The disassembled text.
    pub text: String,
    /// The first difference between the words of the request and the assembled words. `None` if all words are equal.
    pub difference: Option<String>,
}

fn given(words: &WordsGiven) -> Result<Opened, PlayError> {
    let wrong = |message: String| PlayError::of(FaultyPart::Words, message);
    let bytes = match (&words.text, &words.base64) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(text)) => {
            decoded(text).ok_or_else(|| wrong("base64: expected a text in base64".to_owned()))?
        }
        _ => return Err(wrong("expected either `text` or `base64`".to_owned())),
    };
    let isa = words.isa.as_deref().map(str::parse).transpose();
    let isa = isa.map_err(|error: reconverge_isa::program::UnknownIsa| wrong(error.to_string()))?;
    let stage = words.stage.as_deref().map(|name| {
        let known = Stage::ALL.into_iter().find(|stage| stage.name() == name);
        known.ok_or_else(|| wrong(format!("stage: unknown value `{name}`")))
    });
    let known = Known { isa, chip: words.chip.clone(), stage: stage.transpose()?, ..Known::default() };
    open(&bytes, false, &known).map_err(|error| PlayError::open(FaultyPart::Words, "", &error))
}

/// Decodes a base64 text (RFC 4648, section 4). Returns `None` if the text is not base64.
fn decoded(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// Disassembles words.
///
/// # Errors
/// Returns an error if the words are not a program of a known machine.
pub fn disassemble(words: &WordsGiven) -> Result<Disassembled, PlayError> {
    let opened = given(words)?;
    let style = Style { structure: true, idioms: true, ..Style::default() };
    let text = opened.target.machine().image_text(&opened.target, &opened.image, style)?;
    Ok(Disassembled { isa: opened.target.isa.name(), format: opened.image.format, text })
}

/// Disassembles words and assembles the text again.
///
/// # Errors
/// Returns an error if the words are not a program of a known machine.
pub fn round_trip(words: &WordsGiven) -> Result<RoundTripped, PlayError> {
    let opened = given(words)?;
    let program = |program: &Program| -> Result<ProgramBack, PlayError> {
        let target = opened.target.for_program(&opened.image, program);
        let listing = target.machine().disassemble(&target, program, Style::default())?;
        let difference = returns(&target, program).err();
        Ok(ProgramBack {
            name: program.name.clone(),
            words: program.words.len(),
            text: listing.text,
            difference,
        })
    };
    let programs = opened.image.programs.iter().map(program).collect::<Result<_, _>>()?;
    let difference = round_trip_image(&opened.target, &opened.image).err();
    Ok(RoundTripped { programs, difference })
}
