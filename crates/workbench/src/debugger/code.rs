//! Formats instructions and addresses. If the user's source contains an instruction, the text and labels of the
//! instruction come from the user's source.
//!
//! All front ends print instructions and addresses with these functions. The listing also shows the labels of the
//! user's source ([`relabelled`]).

use super::Debugger;
use crate::listing::Line;
use crate::source::UserSource;

impl Debugger {
    /// Returns the text of the instruction at an address, as one line. If the user's source contains the instruction,
    /// the text comes from the source. Otherwise, the text comes from the listing.
    pub fn instruction(&self, address: u32) -> String {
        let own = self.source.as_ref().and_then(|source| source.instruction(address));
        own.map_or_else(|| self.line(address).map(Line::code).unwrap_or_default(), str::to_owned)
    }

    /// Returns an address with its line in the user's source, for example `0x38, collatz.s:14`.
    pub fn placed(&self, address: u32) -> String {
        let place = self.source_place(address).map(|place| format!(", {place}"));
        self.spelled(address) + &place.unwrap_or_default()
    }

    /// Returns an address with its label in the user's source, for example `0x78 (next)`. If the address does not have
    /// a label, returns the address with its source line number, for example `0x50 (:20)`.
    pub fn named(&self, address: u32) -> String {
        let name = self.source.as_ref().and_then(|source| {
            let label = source.label_of(address).map(str::to_owned);
            label.or_else(|| Some(format!(":{}", source.line_of(address)?)))
        });
        self.spelled(address) + &name.map(|name| format!(" ({name})")).unwrap_or_default()
    }
}

/// Returns the lines of a listing with the labels of a source. If the source has a label at an address, the source's
/// label replaces the listing's label at this address.
pub(super) fn relabelled(mut lines: Vec<Line>, source: &UserSource) -> Vec<Line> {
    let own = |line: &Line| {
        let label = source.label_of(line.address?)?;
        Some((line.label.clone()?, label.to_owned()))
    };
    let labels: Vec<(String, String)> = lines.iter().filter_map(own).collect();
    let renamed =
        |name: &str| labels.iter().find(|(known, _)| known == name).map(|(_, label)| label.as_str());
    for line in &mut lines {
        line.text = with_words(&line.text, renamed);
        if let Some(label) = line.label.as_deref().and_then(renamed) {
            line.label = Some(label.to_owned());
        }
    }
    lines
}

/// Replaces words of the text, and returns the new text. If `renamed` returns a new word for a word of the text, the
/// new word replaces the old word. A word consists of letters, digits and `_`.
fn with_words<'a>(text: &str, renamed: impl Fn(&str) -> Option<&'a str>) -> String {
    let belongs = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(start) = rest.find(belongs) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|letter| !belongs(letter)).unwrap_or(word.len()));
        out += before;
        out += renamed(word).unwrap_or(word);
        rest = after;
    }
    out + rest
}
