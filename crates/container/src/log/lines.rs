//! The lines of a log, and the headers of the drivers' dumps in the log.

use std::borrow::Cow;

use reconverge_isa::program::Stage;

/// A line of a log. If a logger added a prefix to the driver's text, the prefix is removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLine<'a> {
    /// Line number, from 1.
    pub(super) number: usize,
    /// The text.
    pub(super) text: &'a str,
    /// The offset of the text in the log.
    pub(super) at: usize,
}

impl<'a> LogLine<'a> {
    /// Returns the words of the text, with their offsets in the log.
    pub(super) fn tokens(self) -> impl Iterator<Item = (usize, &'a str)> {
        let start = self.text.as_ptr() as usize;
        self.text
            .split_ascii_whitespace()
            .map(move |token| (self.at + token.as_ptr() as usize - start, token))
    }

    /// Returns the line without the characters before `rest`.
    fn cut(self, rest: &'a str) -> LogLine<'a> {
        LogLine { text: rest, at: self.at + self.text.len() - rest.len(), ..self }
    }
}

/// The header of a dump. The header is the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header<'a> {
    /// Mesa r600: `bytecode 12 dw -- 2 gprs -- 1 nstack`.
    Bytecode,
    /// Mesa r600, the optimizer: `===== SHADER #1 OPT ===== PS/RV730/R700 =====`.
    Shader {
        /// Number of the shader.
        id: &'a str,
        /// Whether the optimizer generated the program.
        optimized: bool,
        /// Program type, chip and class.
        target: &'a str,
    },
    /// Mesa r300: `R500 Fragment Program:`.
    Fragment,
    /// Mesa r300: `Hardware program`, for R300 and R400.
    OldFragment,
    /// Mesa r300: `Final vertex program code:`.
    Vertex,
    /// Mesa nouveau: `program binary (40 bytes)`.
    Binary {
        /// The stated number of bytes.
        bytes: &'a str,
    },
    /// Mesa's nouveau driver prints `shader binary code (0x40 bytes):` for Fermi and later chips.
    LaterBinary,
}

const BYTECODE: &str = "bytecode ";
const SHADER: &str = "= SHADER #";
const FRAGMENT: &str = "R500 Fragment Program:";
const OLD_FRAGMENT: &str = "Hardware program";
const VERTEX: &str = "Final vertex program code:";
const BINARY: &str = "program binary (";
const LATER_BINARY: &str = "shader binary code (";

/// First word of an r300 instruction. A dump without a header starts with this text.
pub(super) const FIRST: &str = "0:CMN_INST";
/// Text before the bytes of an instruction in LLVM's text.
pub(super) const ENCODING: &str = "; encoding: [";

/// A log with shaders contains at least one of these strings. Most of these strings are headers of dumps. The remaining
/// strings begin dumps without a header.
pub(super) const MARKS: [&str; 9] =
    [BYTECODE, SHADER, FRAGMENT, OLD_FRAGMENT, VERTEX, BINARY, LATER_BINARY, FIRST, ENCODING];

/// Returns the header in a line, and the text before the header.
pub(super) fn header(text: &str) -> Option<(&str, Header<'_>)> {
    let after = |mark: &str| text.find(mark).map(|at| (&text[..at], &text[at + mark.len()..]));
    // Prose may also contain the words of a header. Therefore, a header must be at the end of a line.
    let alone = |mark: &str| after(mark).filter(|(_, rest)| rest.trim().is_empty());
    if let Some((before, rest)) = after(BYTECODE)
        && rest.split_ascii_whitespace().nth(1) == Some("dw")
    {
        return Some((before, Header::Bytecode));
    }
    if let Some((before, rest)) = after(SHADER) {
        let before = before.trim_end_matches('=');
        let mut words =
            rest.split(|c: char| c == '=' || c.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let id = words.next()?;
        let target = words.next()?;
        let (optimized, target) = if target == "OPT" { (true, words.next()?) } else { (false, target) };
        return target.contains('/').then_some((before, Header::Shader { id, optimized, target }));
    }
    if let Some((before, rest)) = after(BINARY) {
        let bytes = rest.split_once(" bytes)").map(|(bytes, _)| bytes)?;
        return Some((before, Header::Binary { bytes }));
    }
    if let Some((before, _)) = after(LATER_BINARY).filter(|(_, rest)| rest.contains(" bytes)")) {
        return Some((before, Header::LaterBinary));
    }
    [(FRAGMENT, Header::Fragment), (VERTEX, Header::Vertex), (OLD_FRAGMENT, Header::OldFragment)]
        .into_iter()
        .find_map(|(mark, header)| alone(mark).map(|(before, _)| (before, header)))
}

/// Returns the program type that a line of TGSI, NIR or nouveau states. If a line lists vertex elements, the program is
/// a fetch program.
pub(super) fn stage_of(text: &str) -> Option<Stage> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let last = words.last()?;
    // Tessellation programs have different numbers in different versions of Mesa. All types that the emulated chips
    // have keep the same number in all versions.
    if let Some(at) = text.find("translating program of type ") {
        let number = text[at..].split_ascii_whitespace().nth(4)?;
        return match number {
            "0" => Some(Stage::Vertex),
            "1" | "4" => Some(Stage::Pixel),
            "2" | "3" => Some(Stage::Geometry),
            "5" => Some(Stage::Compute),
            _ => None,
        };
    }
    if text.contains("Vertex elements state:") {
        return Some(Stage::Fetch);
    }
    let name = match last.strip_prefix("MESA_SHADER_").filter(|_| text.contains("shader: ")) {
        Some(name) => name,
        // The value of the property NEXT_SHADER is the type of another program.
        None if words.len() < 2 || words[words.len() - 2] != "NEXT_SHADER" => last,
        None => return None,
    };
    Some(match name {
        "VERT" | "VERTEX" => Stage::Vertex,
        "FRAG" | "FRAGMENT" => Stage::Pixel,
        "GEOM" | "GEOMETRY" => Stage::Geometry,
        "COMP" | "COMPUTE" | "KERNEL" => Stage::Compute,
        _ => return None,
    })
}

/// Returns whether an offset is in a C comment. For example, the source of a driver may quote a dump in a comment.
pub(super) fn in_comment(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
    line.contains("//") || before.rfind("/*").is_some_and(|start| !before[start..].contains("*/"))
}

/// Returns the text of a log. The function replaces escape sequences, control characters and non-ASCII bytes by spaces.
/// Offsets stay the same.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte == b'\n' || byte == b'\t' || (b' '..0x7f).contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    // Position within an escape sequence, which has the form ESC [ PARAMETERS LETTER. Outside such a sequence, the
    // position is 0.
    let mut escape = 0;
    for byte in text.bytes() {
        let keeps = byte == b'\n' || byte == b'\t' || (b' '..0x7f).contains(&byte);
        escape = match (escape, byte) {
            (_, 0x1b) => 1,
            (1, b'[') => 2,
            (2, b'0'..=b'?') => 2,
            (2, _) => 3,
            _ => 0,
        };
        plain.push(if keeps && escape == 0 { char::from(byte) } else { ' ' });
        escape %= 3;
    }
    Cow::Owned(plain)
}

/// The lines of a log. The header of a dump may have a prefix, such as a time. In this case, the iterator removes
/// similar prefixes from the lines of the dump.
pub(super) struct LogLines<'a> {
    rest: std::iter::Enumerate<std::str::Split<'a, char>>,
    /// The offset of the next line.
    at: usize,
    /// The line that [`LogLines::next`] returns next, if this line was already read.
    next: Option<LogLine<'a>>,
    /// Text that precedes the header of the current dump.
    prefix: &'a str,
}

impl<'a> LogLines<'a> {
    pub(super) fn new(text: &'a str) -> LogLines<'a> {
        LogLines { rest: text.split('\n').enumerate(), at: 0, next: None, prefix: "" }
    }

    /// Returns the next line unchanged.
    pub(super) fn next(&mut self) -> Option<LogLine<'a>> {
        self.next.take().or_else(|| {
            let (number, text) = self.rest.next()?;
            let at = self.at;
            self.at += text.len() + 1;
            Some(LogLine { number: number + 1, text, at })
        })
    }

    /// Puts a line back. The next read returns this line.
    pub(super) fn back(&mut self, line: LogLine<'a>) {
        self.next = Some(line);
    }

    /// Begins a dump whose lines start with a prefix similar to `prefix`.
    pub(super) fn begin(&mut self, prefix: &'a str) {
        self.prefix = prefix;
    }

    /// Returns a line without the prefix of the dump. If the line does not begin with the prefix, the line is returned
    /// unchanged.
    pub(super) fn stripped(&self, line: LogLine<'a>) -> LogLine<'a> {
        after_prefix(self.prefix, line.text).map_or(line, |rest| line.cut(rest))
    }

    /// Returns the next line of the dump, or `None` if another dump begins.
    pub(super) fn of_dump(&mut self) -> Option<LogLine<'a>> {
        let line = self.next()?;
        if header(line.text).is_some() {
            self.back(line);
            return None;
        }
        Some(self.stripped(line))
    }
}

/// Returns the text after a prefix that is similar to `prefix`. In a similar prefix, the digits of numbers and the
/// number of spaces may differ from `prefix`.
fn after_prefix<'a>(prefix: &str, line: &'a str) -> Option<&'a str> {
    let (mut prefix, mut line) = (prefix, line);
    let digit = |c: char| c.is_ascii_digit();
    while let Some(first) = prefix.chars().next() {
        if digit(first) {
            let rest = line.trim_start_matches(digit);
            (rest.len() < line.len()).then_some(())?;
            (prefix, line) = (prefix.trim_start_matches(digit), rest);
        } else if first.is_ascii_whitespace() {
            (prefix, line) = (prefix.trim_ascii_start(), line.trim_ascii_start());
        } else {
            (prefix, line) = (&prefix[first.len_utf8()..], line.strip_prefix(first)?);
        }
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_behind_what_a_log_puts_before_them() {
        for (text, before) in [
            ("bytecode 12 dw -- 2 gprs -- 1 nstack -------------", ""),
            ("[   12.375] bytecode 12 dw -- 2 gprs -- 1 nstack", "[   12.375] "),
            ("ninja: ===== SHADER #7 OPT ==== PS/RV730/R700 =====", "ninja: "),
            ("R500 Fragment Program:", ""),
            ("12:01:02 Final vertex program code:", "12:01:02 "),
            ("program binary (40 bytes)", ""),
            ("shader binary code (0x40 bytes):", ""),
        ] {
            assert_eq!(header(text).map(|(before, _)| before), Some(before), "{text}");
        }
        for text in [
            "the bytecode is good",
            "===== SHADER_END =====",
            "Hardware program and more",
            "program binary (none)",
            "===== SHADER #",
            "===== SHADER #1 =====",
        ] {
            assert_eq!(header(text), None, "{text}");
        }
    }

    #[test]
    fn a_prefix_may_have_other_digits() {
        assert_eq!(after_prefix("[   12.375] ", "[  112.001]  0008 00000001"), Some("0008 00000001"));
        assert_eq!(after_prefix("ninja: ", "0008 00000001"), None);
        assert_eq!(after_prefix("", " x"), Some(" x"));
    }

    #[test]
    fn escape_sequences_are_spaces() {
        assert_eq!(plain("\x1b[1;32mab\x1b[0m\r\n"), "       ab     \n");
        assert_eq!(plain("é\x07[1m"), "   [1m");
        assert!(matches!(plain("a\tb\n"), Cow::Borrowed(_)));
    }
}
