//! The parts of the C preprocessor that are necessary for C sources with embedded binaries: conditional groups and
//! macros.
//!
//! As in C, a name is undefined if neither the file nor [`Hints::defines`](crate::Hints) defines the name. Notes name
//! the omitted groups. `#include` and other directives are skipped. Inside an initialiser, such a directive is an
//! error, because the directive could add elements. The operators `#` and `##` are not supported.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};

use super::tokens::{Kind, Lexer, Token};
use super::value::{Names, evaluate};
use crate::Error;
use crate::error::quoted;

/// Maximum nesting of macros.
const DEEPEST: usize = 32;
/// Maximum number of tokens in the expansion of one macro use.
const MOST_TOKENS: usize = 1000;
/// Maximum number of tokens in all macro expansions, per byte of the source. In practice, a macro that swaps bytes
/// needs about 12 tokens for each source byte of a use such as `SWAP(x)`.
const STEPS_PER_BYTE: usize = 64;
/// Maximum number of omitted groups that notes name. A last note states the number of further groups.
const MOST_NAMED: usize = 20;

/// A macro, from a `#define` or from the caller.
#[derive(Clone)]
struct Macro<'a> {
    parameters: Option<Vec<&'a str>>,
    /// The first value is a text that ends with the body of the macro. The second value is the offset of the body in
    /// this text.
    body: (&'a str, usize),
    /// Whether the macro comes from the caller instead of the source.
    given: bool,
}

/// An `#if` that is not yet closed.
struct OpenIf {
    /// Offset of the `#if`.
    start: usize,
    /// Whether one of the groups of this `#if` has been read.
    taken: bool,
    /// Whether the `#else` of this `#if` has been read.
    last: bool,
}

/// The tokens of a source after preprocessing.
pub(super) struct Tokens<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    macros: HashMap<&'a str, Macro<'a>>,
    conditions: Vec<OpenIf>,
    /// Expanded tokens that are returned before the next token of the lexer.
    pending: VecDeque<Token<'a>>,
    /// Whether the code is reading an initialiser. Groups and directives in an initialiser cannot be skipped without
    /// changing the elements of the initialiser.
    pub(super) inside: bool,
    /// Number of tokens to which macros may still expand.
    room: Cell<usize>,
    notes: Vec<String>,
    left_out: usize,
}

impl<'a> Tokens<'a> {
    /// Returns the tokens of a source, starting at the first token. Each item of `defines` has the form `NAME`,
    /// `NAME=VALUE` or `NAME(x)=VALUE`.
    pub(super) fn new(text: &'a str, defines: &'a [String]) -> Result<Self, Error> {
        let mut macros = HashMap::new();
        for define in defines {
            let (head, value) = define.split_once('=').unwrap_or((define, "1"));
            let wrong = || Error::Define(define.clone());
            let (name, found) = definition(head, 0, head.len())
                .filter(|(_, found)| found.1 == head.len())
                .ok_or_else(wrong)?;
            macros.insert(name, Macro { parameters: found.0, body: (value, 0), given: true });
        }
        Ok(Tokens {
            text,
            lexer: Lexer::new(text),
            macros,
            conditions: Vec::new(),
            pending: VecDeque::new(),
            inside: false,
            room: Cell::new(MOST_TOKENS + STEPS_PER_BYTE * text.len()),
            notes: Vec::new(),
            left_out: 0,
        })
    }

    /// Returns the next token.
    pub(super) fn next(&mut self) -> Result<Option<Token<'a>>, Error> {
        loop {
            if let Some(token) = self.pending.pop_front() {
                return Ok(Some(token));
            }
            let Some(token) = self.lexer.next() else {
                return match self.conditions.pop() {
                    None => Ok(None),
                    Some(open) => {
                        let found = "the end of the text".to_owned();
                        Err(Error::syntax(self.text, open.start, found, "an #endif for this #if"))
                    }
                };
            };
            match token.kind {
                Kind::Directive => self.directive(token)?,
                Kind::Word if self.macros.contains_key(token.text) => self.expand(token)?,
                _ => return Ok(Some(token)),
            }
        }
    }

    /// Puts a token back, so that the next call of `next` returns this token.
    pub(super) fn unread(&mut self, token: Token<'a>) {
        self.pending.push_front(token);
    }

    /// Returns notes about the omitted groups.
    pub(super) fn into_notes(mut self) -> Vec<String> {
        if let Some(more) = self.left_out.checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            self.notes.push(format!("{more} more groups of #if were left out"));
        }
        self.notes
    }

    fn line(&self, at: usize) -> usize {
        reconverge_isa::Span::new(at, at).line_column(self.text).0
    }

    fn directive(&mut self, token: Token<'a>) -> Result<(), Error> {
        let (name, rest) = directive_name(token);
        match name {
            "define" => self.define(token, rest)?,
            "undef" => {
                if let Some(word) = self.part(rest, token.end).next() {
                    self.macros.remove(word.text);
                }
            }
            "if" | "ifdef" | "ifndef" => {
                let (holds, undefined) = self.holds(token, name, rest)?;
                self.conditions.push(OpenIf { start: token.start, taken: holds, last: false });
                if !holds {
                    self.skip(token, &undefined)?;
                }
            }
            "elif" | "elifdef" | "elifndef" | "else" => {
                // The reader has read the group before this directive, so the reader skips the groups after the
                // directive.
                self.check_open(token, name)?;
                self.skip(token, &[])?;
            }
            "endif" => {
                self.check_open(token, name)?;
                self.conditions.pop();
            }
            "include" | "include_next" | "embed" | "import" if self.inside => {
                let expected =
                    "elements instead of a directive: other files are not read, so insert their text here";
                return Err(token.wrong(self.text, expected));
            }
            _ => {}
        }
        Ok(())
    }

    fn part(&self, start: usize, end: usize) -> Lexer<'a> {
        Lexer::part(self.text, start, end)
    }

    fn check_open(&mut self, token: Token<'a>, name: &str) -> Result<(), Error> {
        let wrong = |expected: &str| Err(token.wrong(self.text, expected));
        match self.conditions.last_mut() {
            None => wrong("an #if before it"),
            Some(open) if open.last && name != "endif" => {
                wrong("#endif, because this #if already has an #else")
            }
            Some(open) => {
                open.last |= name == "else";
                Ok(())
            }
        }
    }

    /// Skips the groups after a directive. The function stops at the first group that must be read, or at the end of
    /// the `#if`.
    fn skip(&mut self, mut from: Token<'a>, undefined: &[&'a str]) -> Result<(), Error> {
        let mut undefined = undefined.to_vec();
        let mut depth = 0;
        while let Some(token) = self.lexer.next() {
            if token.kind != Kind::Directive {
                continue;
            }
            let (name, rest) = directive_name(token);
            match name {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" if depth > 0 => depth -= 1,
                "elif" | "elifdef" | "elifndef" | "else" | "endif" if depth == 0 => {
                    self.leave_out(from, token, &undefined);
                    self.check_open(token, name)?;
                    if name == "endif" {
                        self.conditions.pop();
                        return Ok(());
                    }
                    let taken = self.conditions.last().is_some_and(|open| open.taken);
                    let (holds, missing) = match (taken, name) {
                        (true, _) => (false, Vec::new()),
                        (false, "else") => (true, Vec::new()),
                        (false, _) => self.holds(token, &name[2..], rest)?,
                    };
                    if holds {
                        if let Some(open) = self.conditions.last_mut() {
                            open.taken = true;
                        }
                        return Ok(());
                    }
                    (from, undefined) = (token, missing);
                }
                _ => {}
            }
        }
        self.leave_out(from, Token { start: self.text.len(), ..from }, &undefined);
        Ok(())
    }

    /// Adds a note about an omitted group. A group without digits contains neither words nor definitions, so the
    /// function adds no note about a group without digits.
    fn leave_out(&mut self, from: Token<'a>, until: Token<'a>, undefined: &[&'a str]) {
        if !self.text[from.end..until.start.max(from.end)].contains(|c: char| c.is_ascii_digit()) {
            return;
        }
        self.left_out += 1;
        if self.left_out > MOST_NAMED {
            return;
        }
        let line = self.line(from.start);
        let (first, last) = (self.line(from.end) + 1, self.line(until.start));
        let last = if until.start == self.text.len() { last } else { last - 1 };
        let lines =
            if first >= last { format!("line {first} is") } else { format!("lines {first} to {last} are") };
        let why = match undefined {
            [] => String::new(),
            [name, ..] => format!(" ({name} is not defined, -D {name}=VALUE defines it)"),
        };
        self.notes.push(format!("line {line}: {}: {lines} left out{why}", quoted(from.text)));
    }

    /// Returns whether a condition is true, and the undefined names in the condition.
    fn holds(&self, token: Token<'a>, name: &str, rest: usize) -> Result<(bool, Vec<&'a str>), Error> {
        let mut words = self.part(rest, token.end);
        let undefined = |word: &Token<'a>| word.kind == Kind::Word && !self.macros.contains_key(word.text);
        if let "ifdef" | "ifndef" = name {
            let word = words.next().filter(|word| word.kind == Kind::Word);
            let word = word.ok_or_else(|| token.wrong(self.text, "a name after it"))?;
            let is_defined = !undefined(&word);
            let missing = if is_defined { Vec::new() } else { vec![word.text] };
            return Ok((is_defined == (name == "ifdef"), missing));
        }
        let mut tokens = Vec::new();
        let mut missing = Vec::new();
        while let Some(word) = words.next() {
            if word.kind == Kind::Word && word.text == "defined" {
                let wrong = || token.wrong(self.text, "`defined(NAME)` or `defined NAME`");
                let mut asked = words.next().ok_or_else(wrong)?;
                let parenthesis = asked.is("(");
                if parenthesis {
                    asked = words.next().ok_or_else(wrong)?;
                }
                if asked.kind != Kind::Word || parenthesis && !words.next().is_some_and(|close| close.is(")"))
                {
                    return Err(wrong());
                }
                if undefined(&asked) {
                    missing.push(asked.text);
                }
                let text = if undefined(&asked) { "0" } else { "1" };
                tokens.push(Token { kind: Kind::Number, text, ..asked });
            } else {
                tokens.push(word);
            }
        }
        let mut expanded = Vec::new();
        self.expand_all(&tokens, &mut Vec::new(), &mut expanded)?;
        missing.extend(expanded.iter().filter(|word| word.kind == Kind::Word).map(|word| word.text));
        let end = Token { text: "the end of the line", start: token.end, end: token.end, ..token };
        Ok((evaluate(self.text, &expanded, end, Names::AreZero)?.value != 0, missing))
    }

    fn define(&mut self, token: Token<'a>, rest: usize) -> Result<(), Error> {
        let found = definition(self.text, rest, token.end);
        let (name, (parameters, body)) =
            found.ok_or_else(|| token.wrong(self.text, "#define NAME VALUE or #define NAME(x) VALUE"))?;
        let new = Macro { parameters, body: (&self.text[..token.end], body), given: false };
        if self.macros.insert(name, new).is_some_and(|old| old.given) {
            let line = self.line(token.start);
            self.notes
                .push(format!("line {line} defines {name} again: from there on -D {name} has no effect"));
        }
        Ok(())
    }

    /// Inserts the expansion of a macro use before the tokens that have not been read yet.
    fn expand(&mut self, name: Token<'a>) -> Result<(), Error> {
        let mut used = vec![name];
        if self.macros.get(name.text).is_some_and(|found| found.parameters.is_some()) {
            // The name of a macro with parameters is a use of the macro only if a parenthesis follows this name.
            let before = self.lexer;
            match self.lexer.next() {
                Some(open) if open.is("(") => {
                    used.push(open);
                    let mut depth = 1;
                    while depth > 0 {
                        let next = self.lexer.next().filter(|next| next.kind != Kind::Directive);
                        let next = next.filter(|_| used.len() < MOST_TOKENS);
                        let next = next.ok_or_else(|| name.wrong(self.text, "a use with a `)`"))?;
                        depth += usize::from(next.is("("));
                        depth -= usize::from(next.is(")"));
                        used.push(next);
                    }
                }
                _ => {
                    self.lexer = before;
                    self.pending.push_back(name);
                    return Ok(());
                }
            }
        }
        let end = used.last().map_or(name.end, |last| last.end);
        let mut expanded = Vec::new();
        self.expand_all(&used, &mut Vec::new(), &mut expanded)?;
        let placed = |token: Token<'a>| Token { start: name.start, end, ..token };
        self.pending.extend(expanded.into_iter().map(placed));
        Ok(())
    }

    /// Adds one token to the count of an expansion that has `len` tokens so far. Fails if the expansion has too many
    /// tokens.
    fn check_room(&self, token: &Token<'a>, len: usize) -> Result<(), Error> {
        match self.room.get().checked_sub(1).filter(|_| len < MOST_TOKENS) {
            Some(left) => {
                self.room.set(left);
                Ok(())
            }
            None => Err(token.wrong(self.text, format!("macros that become at most {MOST_TOKENS} tokens"))),
        }
    }

    /// Appends the expansion of tokens. Macros in `hidden` are not replaced.
    fn expand_all(
        &self,
        tokens: &[Token<'a>],
        hidden: &mut Vec<&'a str>,
        out: &mut Vec<Token<'a>>,
    ) -> Result<(), Error> {
        let mut at = 0;
        while let Some(token) = tokens.get(at).copied() {
            at += 1;
            let found = self.macros.get(token.text).filter(|_| token.kind == Kind::Word);
            let Some(found) = found.filter(|_| !hidden.contains(&token.text)) else {
                self.check_room(&token, out.len())?;
                out.push(token);
                continue;
            };
            if hidden.len() >= DEEPEST {
                return Err(token.wrong(self.text, format!("macros that nest at most {DEEPEST} deep")));
            }
            let mut arguments: Vec<Vec<Token<'a>>> = Vec::new();
            if let Some(parameters) = &found.parameters {
                if !tokens.get(at).is_some_and(|open| open.is("(")) {
                    out.push(token);
                    continue;
                }
                at += 1;
                let mut depth = 1;
                arguments.push(Vec::new());
                while depth > 0 {
                    let next = *tokens.get(at).ok_or_else(|| token.wrong(self.text, "a use with a `)`"))?;
                    at += 1;
                    depth += usize::from(next.is("("));
                    depth -= usize::from(next.is(")"));
                    match arguments.last_mut() {
                        Some(last) if depth > 1 || depth == 1 && !next.is(",") => last.push(next),
                        _ if depth == 1 => arguments.push(Vec::new()),
                        _ => {}
                    }
                }
                if arguments.len() != parameters.len() && !(parameters.is_empty() && arguments[0].is_empty())
                {
                    let expected = format!("a use with {} arguments", parameters.len());
                    return Err(token.wrong(self.text, expected));
                }
            }
            let (body, start) = found.body;
            let mut replaced: Vec<Token<'a>> = Vec::new();
            for part in Lexer::part(body, start, body.len()) {
                let parameter = found.parameters.iter().flatten().position(|name| *name == part.text);
                match parameter.and_then(|at| arguments.get(at)) {
                    Some(argument) => self.expand_all(argument, hidden, &mut replaced)?,
                    None if part.is("#") => {
                        let expected = "a macro without # and ##, which are not supported";
                        return Err(token.wrong(self.text, expected));
                    }
                    None => replaced.push(Token { start: token.start, end: token.end, ..part }),
                }
                self.check_room(&token, replaced.len())?;
            }
            hidden.push(token.text);
            let result = self.expand_all(&replaced, hidden, out);
            hidden.pop();
            result?;
        }
        Ok(())
    }
}

/// Returns the name of a directive, and the offset of the text after the name.
fn directive_name<'a>(token: Token<'a>) -> (&'a str, usize) {
    let word = Lexer::part(token.text, 1, token.text.len()).next();
    word.map_or(("", token.end), |word| (word.text, token.start + word.end))
}

/// The parameters of a macro, and the offset of the macro's body.
type Head<'a> = (Option<Vec<&'a str>>, usize);

/// Parses the name of a macro, the parameters of the macro, and the offset of the macro's body.
fn definition(text: &str, start: usize, end: usize) -> Option<(&str, Head<'_>)> {
    let mut lexer = Lexer::part(text, start, end);
    let name = lexer.next().filter(|name| name.kind == Kind::Word)?;
    // A parenthesis directly after the name begins the parameters.
    if !text[name.end..end].starts_with('(') {
        return Some((name.text, (None, name.end)));
    }
    lexer.next();
    let mut parameters = Vec::new();
    let mut seen = HashSet::new();
    loop {
        let word = lexer.next()?;
        match word.kind {
            Kind::Word if seen.insert(word.text) => parameters.push(word.text),
            Kind::Mark if word.text == ")" && parameters.is_empty() => break,
            // The code reads `...` as one parameter, so a use of the macro must have exactly one argument at this
            // position.
            Kind::Mark if word.text == "." => parameters.push("..."),
            _ => return None,
        }
        let next = lexer.next()?;
        match next.text {
            "," => {}
            ")" => break,
            "." => while !lexer.next()?.is(")") {},
            _ => return None,
        }
        if next.is(".") {
            break;
        }
    }
    Some((name.text, (Some(parameters), lexer.at())))
}
