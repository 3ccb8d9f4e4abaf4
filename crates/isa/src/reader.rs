//! Splits a line into tokens, and reads the tokens in order.

use std::hash::{BuildHasherDefault, Hasher};

use crate::source::{Span, parse_number};

/// A cheap hash (FNV-1a) for the short names of instructions.
#[derive(Clone, Copy, Debug)]
pub struct NameHasher(u64);

impl Default for NameHasher {
    fn default() -> Self {
        NameHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Builds [`NameHasher`]s.
pub type NameHash = BuildHasherDefault<NameHasher>;

/// A word or a single character. A word consists of letters, digits, `_`, `$`, `#` and `.`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let c = byte as u8;
            table[byte] = c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'#' | b'.');
            byte += 1;
        }
        table
    };
    WORD[byte as usize]
}

/// Splits a line into tokens. `tokens` is a buffer that callers reuse. Its earlier content is deleted.
///
/// Returns the [`token_bit`]s of all tokens of the line.
pub(crate) fn tokenize(line: &str, tokens: &mut Vec<Token>) -> u64 {
    let mut bits = 0;
    tokens.clear();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let first = bytes[at];
        if is_word(first) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
        } else if first.is_ascii() {
            at += 1;
            if first.is_ascii_whitespace() {
                continue;
            }
        } else {
            // A character outside ASCII is a single token, so that spans do not split the character.
            at += line[start..].chars().next().map_or(1, char::len_utf8);
        }
        bits |= token_bit(&bytes[start..at]);
        tokens.push(Token { start: start as u32, end: at as u32 });
    }
    bits
}

/// A reader over the tokens of a line.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a, 't> {
    pub(crate) line: &'a str,
    pub(crate) tokens: &'t [Token],
    pub(crate) at: usize,
}

impl<'a, 't> Reader<'a, 't> {
    /// Returns a reader at the start of `line`. `tokens` is the result of [`tokenize`] for this line.
    pub(crate) fn new(line: &'a str, tokens: &'t [Token]) -> Self {
        Reader { line, tokens, at: 0 }
    }

    /// Returns the text of the next token. At the end of the line, the text is empty.
    #[inline(always)]
    pub fn peek(&self) -> &'a str {
        self.peek_at(0)
    }

    /// Returns the text of the token that is `ahead` tokens after the next token. Returns an empty text beyond the end
    /// of the line.
    #[inline(always)]
    pub fn peek_at(&self, ahead: usize) -> &'a str {
        match self.tokens.get(self.at + ahead) {
            Some(token) => &self.line[token.start as usize..token.end as usize],
            None => "",
        }
    }

    /// Returns the bytes of the next token, or an empty slice at the end of the line.
    #[inline(always)]
    pub(crate) fn token(&self) -> &'a [u8] {
        self.token_at(self.at)
    }

    /// Returns the bytes of token number `place`, or an empty slice beyond the end of the line.
    #[inline(always)]
    pub(crate) fn token_at(&self, place: usize) -> &'a [u8] {
        match self.tokens.get(place) {
            Some(token) => &self.line.as_bytes()[token.start as usize..token.end as usize],
            None => &[],
        }
    }

    /// Returns the first byte of the token that is `ahead` tokens after the next token.
    #[inline(always)]
    pub(crate) fn byte_at(&self, ahead: usize) -> Option<u8> {
        self.tokens.get(self.at + ahead).map(|token| self.line.as_bytes()[token.start as usize])
    }

    /// Reads the next token if its text is `text`. Returns whether the reader has read the token.
    #[inline(always)]
    pub fn eat(&mut self, text: &str) -> bool {
        let found = same(self.token(), text);
        self.at += usize::from(found);
        found
    }

    /// Reads the next token and returns its text.
    #[inline(always)]
    pub fn take(&mut self) -> &'a str {
        let text = self.peek();
        self.at += usize::from(self.at < self.tokens.len());
        text
    }

    /// Returns whether all tokens have been read.
    #[inline(always)]
    pub fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Returns the number of tokens read so far.
    pub fn place(&self) -> usize {
        self.at
    }

    /// Moves the reader to token number `place`.
    pub fn go_to(&mut self, place: usize) {
        self.at = place;
    }

    /// Returns the span of token number `place` in the line. If the line has fewer tokens, returns an empty span at the
    /// end of the line.
    pub fn span_of(&self, place: usize) -> Span {
        match self.tokens.get(place) {
            Some(token) => Span::new(token.start as usize, token.end as usize),
            None => Span::new(self.line.len(), self.line.len()),
        }
    }

    /// Reads a register `<prefix><number>` of at most three digits without leading zeros.
    #[inline(always)]
    pub fn register(&mut self, prefix: &str) -> Option<u32> {
        let (number, rest) = split_decimal(strip(self.token(), prefix)?)?;
        if !rest.is_empty() {
            return None;
        }
        self.at += 1;
        Some(number)
    }

    /// Returns the text of token number `place`.
    pub(crate) fn text_at(&self, place: usize) -> &'a str {
        let Span { start, end } = self.span_of(place);
        &self.line[start..end]
    }

    /// Returns the text of the number (and of the sign) that begins at token number `place`.
    pub(crate) fn text_from(&self, place: usize) -> &'a str {
        let start = self.span_of(place).start;
        let last = if self.text_at(place) == "-" { place + 1 } else { place };
        &self.line[start..self.span_of(last).end]
    }

    /// Reads a number, with an optional `-`.
    #[inline(always)]
    pub fn signed(&mut self) -> Option<i64> {
        let start = self.at;
        let negative = self.eat("-");
        match self.number() {
            Some(number) => Some(if negative { -i64::from(number) } else { i64::from(number) }),
            None => {
                self.at = start;
                None
            }
        }
    }

    /// Reads a number of at most 32 bits.
    #[inline(always)]
    pub fn number(&mut self) -> Option<u32> {
        let number = number(self.peek())?;
        self.at += 1;
        Some(number)
    }
}

/// Returns whether a token has this text. The loop ends early in most cases, because most tokens differ in length or in
/// the first bytes.
#[inline(always)]
pub(crate) fn same(token: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    if token.len() != text.len() {
        return false;
    }
    let mut place = 0;
    while place < token.len() {
        if token[place] != text[place] {
            return false;
        }
        place += 1;
    }
    true
}

/// Returns the part of a token after a prefix, or `None` if the token does not begin with the prefix.
#[inline(always)]
pub(crate) fn strip<'a>(token: &'a [u8], prefix: &str) -> Option<&'a [u8]> {
    let start = token.get(..prefix.len())?;
    same(start, prefix).then(|| &token[prefix.len()..])
}

/// Parses a number of at most 32 bits. A fast path parses hexadecimal numbers without `_`. [`parse_number`] parses all
/// other numbers.
#[inline(always)]
fn number(text: &str) -> Option<u32> {
    let bytes = text.as_bytes();
    if let [b'0', b'x', digits @ ..] = bytes
        && (1..=8).contains(&digits.len())
    {
        let mut value = 0;
        for &digit in digits {
            let nibble = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return parse_number(text).and_then(|number| u32::try_from(number).ok()),
            };
            value = value << 4 | u32::from(nibble);
        }
        return Some(value);
    }
    if !bytes.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    parse_number(text).and_then(|number| u32::try_from(number).ok())
}

/// Returns the decimal number of up to three digits at the start of a text, and the text after the number.
#[inline(always)]
pub(crate) fn split_decimal(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 3 || (digits > 1 && bytes[0] == b'0') {
        return None;
    }
    let value = bytes[..digits].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((value, &bytes[digits..]))
}

/// Returns a mask with one of 64 bits set. A hash of the token selects this bit. If a row needs a bit that no token of
/// a line has, the line does not match the row.
#[inline(always)]
pub(crate) fn token_bit(token: &[u8]) -> u64 {
    match *token {
        [] => 0,
        [first, .., last] => 1 << ((first as usize * 7 + last as usize * 3 + token.len()) % 64),
        [only] => 1 << ((only as usize * 11) % 64),
    }
}
