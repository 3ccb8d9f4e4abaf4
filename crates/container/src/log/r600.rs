//! Dumps of Mesa's r600: lines of an address and up to four words.
//!
//! ```text
//! bytecode 12 dw -- 2 gprs -- 1 nstack -------------      ===== SHADER #1 ========= PS/RV730/R700 =====
//! shader 3 -- 7                                           ===== 12 dw ===== 2 gprs ===== 1 stack ======
//! 0000 00000002 80800000  TEX 1 @4                        0000  00000002 80800000 TEX 1 @4
//!  0004 00000010 F00D1000 68800000   SAMPLE …              0004  00000010 f00d1000 68800000 SAMPLE …
//! 0002 C0008000 94200688  EXPORT_DONE …                   0002  c0008000 94200688 EXPORT_DONE …
//! --------------------------------------                  ===== SHADER_END ============================
//! ```
//! (Mesa `r600_asm.c`, `sb_bc_dump.cpp`.) Mesa does not print two kinds of words: the fourth word of a fetch
//! instruction, and the word after an odd number of literals. Both words are 0.

use std::collections::{HashMap, HashSet};

use reconverge_isa::program::Resources;

use super::found::{LoggedShader, digits_of, is_number, missing};
use super::lines::{LogLine, LogLines};
use crate::Error;

/// Maximum number of words in a dump.
const MOST_WORDS: usize = 1 << 20;

/// The lines of a program.
#[derive(Default)]
struct DumpWords {
    /// For each address, the word and its offset in the log.
    words: HashMap<usize, (u32, usize)>,
    /// Addresses of the lines with one word or three words. Old dumps have one word per line. A fetch has three words.
    short: HashSet<usize>,
}

/// Reads a dump, starting at its second line. The header consists of two lines, and both lines state properties of the
/// program.
pub(super) fn read<'a>(lines: &mut LogLines<'a>, first: LogLine<'a>) -> Result<LoggedShader, Error> {
    let mut found = LoggedShader::new(first);
    state(&mut found, first.text);
    let mut placed = DumpWords::default();
    while let Some(line) = lines.of_dump() {
        let text = line.text.trim();
        if text.starts_with("--------") || text.starts_with("________") || text.contains("SHADER_END") {
            break;
        }
        if placed.words.is_empty() && state(&mut found, text) {
            continue;
        }
        if !placed.add(line)? {
            found.passed.add(line);
        }
    }
    placed.settle(first, &mut found);
    Ok(found)
}

/// Reads properties from a line of a header. Returns whether the line belongs to a header.
fn state(found: &mut LoggedShader, text: &str) -> bool {
    let tokens: Vec<&str> = text.split(|c: char| c.is_ascii_whitespace() || c == '=').collect();
    let before = |name: &str| {
        let at = tokens.iter().position(|token| *token == name)?;
        tokens.get(at.checked_sub(1)?)?.parse().ok()
    };
    if let ["shader", number, "--", class, ..] = tokens[..] {
        found.name = format!("shader{number}");
        found.class = class.chars().next();
        return true;
    }
    let Some(words) = before("dw") else { return false };
    found.expected = Some(words);
    let stack = before("nstack").or_else(|| before("stack")).map(|stack| stack as u32);
    found.resources =
        Resources { registers: before("gprs").map(|gprs| gprs as u32), stack, ..Resources::default() };
    true
}

impl DumpWords {
    /// Adds the words of a line, if the line belongs to the dump.
    fn add(&mut self, line: LogLine<'_>) -> Result<bool, Error> {
        let mut tokens = line.tokens().peekable();
        let Some((_, address)) = tokens.next() else { return Ok(false) };
        let Some((_, second)) = tokens.peek().copied() else { return Ok(false) };
        let is_address = address.len() >= 4 && address.bytes().all(|byte| byte.is_ascii_digit());
        if !is_address {
            // A line that begins with words has no address.
            let word = digits_of(address).is_some() && digits_of(second).is_some();
            return if word {
                Err(wrong(line, address, "the address of a line, in decimal"))
            } else {
                Ok(false)
            };
        }
        if !is_number(second) {
            return Ok(false);
        }
        let at: usize = address
            .parse()
            .ok()
            .filter(|at| *at < MOST_WORDS)
            .ok_or_else(|| wrong(line, address, "an address that counts words"))?;
        let mut words = Vec::new();
        while let Some((place, digits)) = tokens.peek().copied().filter(|_| words.len() < 4)
            && let Some(word) = digits_of(digits)
        {
            words.push((word, place));
            tokens.next();
        }
        // The text after the words can contain numbers of groups, which have few digits.
        let extra = tokens.next().map(|(_, token)| token).filter(|token| is_number(token));
        if let Some(extra) = extra.filter(|extra| words.is_empty() || extra.len() >= 4) {
            return Err(wrong(line, extra, "a word of eight hexadecimal digits"));
        }
        for (address_of, word) in (at..).zip(&words) {
            if self.words.insert(address_of, *word).is_some() {
                return Err(wrong(line, address, "an address that no earlier line has"));
            }
        }
        if words.len() % 2 == 1 {
            self.short.insert(at);
        }
        Ok(true)
    }

    /// Puts the words in order, with zeros for words that Mesa does not print.
    fn settle(self, first: LogLine<'_>, found: &mut LoggedShader) {
        let end = self.words.keys().max().map_or(0, |last| last + 1);
        // The last line may lack a word that is 0. The missing word is the last word of a fetch, or the word after an
        // odd number of literals.
        let whole = end.next_multiple_of(2);
        if let Some(expected) = found.expected.filter(|expected| *expected != whole) {
            found.notes.push(format!("its header states {expected} words, its lines have {end}"));
        }
        for at in 0..whole {
            // Fetch clauses begin at an address that is a multiple of four. All other clauses begin at an even address.
            let after_short = at % 2 == 1 && self.words.contains_key(&(at - 1));
            let aligns = at / 2 % 2 == 1 && self.short.contains(&(at / 2 * 2 + 2));
            let word = self.words.get(&at);
            if word.is_none() && !after_short && !aligns {
                let next = self.words.keys().filter(|next| **next > at).min().map_or(whole, |next| *next);
                found.damage = Some(Box::new(missing(first, format!("words {at} to {}", next - 1))));
                break;
            }
            found.words.push(word.map_or(0, |(word, _)| *word));
            found.places.push(word.map(|(_, place)| *place..*place + 8));
        }
    }
}

fn wrong(line: LogLine<'_>, found: &str, expected: &str) -> Error {
    Error::at(line.number, line.text, found, expected)
}
