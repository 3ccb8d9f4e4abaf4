//! Dumps that Mesa's nouveau driver prints for chips before Fermi. A dump has the header `program binary (40 bytes)`
//! and lines of up to eight words.
//!
//! (Mesa `nv50_ir_target.cpp`, with `NV50_PROG_DEBUG=1`.) Fermi and later print `shader binary code (0x40 bytes):`.

use reconverge_isa::Isa;

use super::found::{LoggedShader, digits_of, is_number, missing};
use super::lines::{LogLine, LogLines};
use crate::Error;

/// Maximum number of words in a line.
const WORDS: usize = 8;

/// Reads a dump, starting at its second line. The first line states the number of bytes.
pub(super) fn read<'a>(
    lines: &mut LogLines<'a>,
    first: LogLine<'a>,
    bytes: &str,
) -> Result<LoggedShader, Error> {
    let mut found = LoggedShader { isa: Some(Isa::Tesla), ..LoggedShader::new(first) };
    let count = bytes.parse::<usize>().ok().filter(|bytes| bytes.is_multiple_of(4)).map(|bytes| bytes / 4);
    let count = count.ok_or_else(|| {
        Error::at(first.number, first.text, bytes, "a number of bytes that is a multiple of four")
    })?;
    while found.words.len() < count {
        let Some(line) = lines.of_dump() else { break };
        let tokens: Vec<(usize, &str)> = line.tokens().collect();
        let is_words = tokens.first().is_some_and(|(_, first)| digits_of(first).is_some());
        if !is_words {
            found.passed.add(line);
            continue;
        }
        for (number, (place, token)) in tokens.into_iter().enumerate() {
            match digits_of(token) {
                Some(word) if number < WORDS && found.words.len() < count => {
                    found.words.push(word);
                    found.places.push(Some(place..place + 8));
                }
                // On the line, text that is not part of the dump may follow the words.
                None if !is_number(token) => break,
                _ => {
                    let expected = "up to eight words of eight hexadecimal digits, and no more words in total than the \
                                    header states";
                    return Err(Error::at(line.number, line.text, token, expected));
                }
            }
        }
    }
    if found.words.len() < count {
        found.damage = Some(Box::new(missing(first, format!("{count} words, found {}", found.words.len()))));
    }
    Ok(found)
}
