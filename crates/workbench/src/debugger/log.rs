//! Texts of log stops. A log stop prints its text instead of stopping the debugger. An example of a text is `n is
//! {$r3@5}, lanes {lanes}`.

use reconverge_simt::Lane;

use super::Debugger;
use super::formula::Formula;
use super::names::brief;

/// A text with formulas in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct LogText(Vec<LogPiece>);

#[derive(Clone, Debug, PartialEq)]
enum LogPiece {
    Text(String),
    /// The value of a formula.
    Value(Formula),
    /// The active lanes of the next instruction.
    Lanes,
    Lane,
    Group,
}

impl LogText {
    /// Parses a text. `{lanes}`, `{lane}`, `{group}` and `{step}` stand for the current position. Any other text in
    /// braces is a formula. `{{` and `}}` are literal braces.
    ///
    /// # Errors
    /// Returns an error if a brace is unmatched, or if the text between two braces is not a formula.
    pub fn parse(debugger: &Debugger, text: &str) -> Result<LogText, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            pieces.push(LogPiece::Text(before.to_owned()));
            if let Some(doubled) = ["{{", "}}"].into_iter().find(|doubled| brace.starts_with(doubled)) {
                pieces.push(LogPiece::Text(doubled[..1].to_owned()));
                rest = &brace[2..];
                continue;
            }
            let Some(opened) = brace.strip_prefix('{') else {
                return Err(brief(&format!("`{text}`: unmatched `}}`; write `}}}}` for a brace")));
            };
            let Some((inside, after)) = opened.split_once('}') else {
                return Err(brief(&format!("`{text}`: unmatched `{{`; write `{{{{` for a brace")));
            };
            pieces.push(match inside.trim() {
                "" => return Err(brief(&format!("`{text}`: a formula is missing between the braces"))),
                "lanes" => LogPiece::Lanes,
                "lane" => LogPiece::Lane,
                "group" => LogPiece::Group,
                formula => LogPiece::Value(Formula::parse(debugger, formula)?),
            });
            rest = after;
        }
        pieces.push(LogPiece::Text(rest.to_owned()));
        Ok(LogText(pieces))
    }

    /// Returns the text in which values replace the formulas. The values belong to a lane of a group.
    pub(super) fn written(&self, debugger: &Debugger, group: usize, lane: Lane) -> String {
        let here = debugger.here(group);
        let piece = |piece: &LogPiece| match piece {
            LogPiece::Text(text) => text.clone(),
            LogPiece::Lanes => {
                here.stepping.issue(group).map_or("none".to_owned(), |issue| issue.mask.to_string())
            }
            LogPiece::Lane => lane.0.to_string(),
            LogPiece::Group => group.to_string(),
            LogPiece::Value(formula) => match formula.value(&here, lane) {
                Ok(value) => value.short(),
                Err(why) => format!("<{why}>"),
            },
        };
        self.0.iter().map(piece).collect()
    }
}
