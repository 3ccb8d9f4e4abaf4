//! From text to words.

use std::collections::HashMap;

use reconverge_isa::Program;
use reconverge_isa::program::{ConstantBlock, Param};
use reconverge_isa::source::{Cursor, Diagnostic, Span, lines, suggest};
use reconverge_isa::write::{LabelUse, LineReader, NameHash, Prefixes, Reader};

use crate::draft::Draft;
use crate::inst::{Chip, Stage};
use crate::parts::here;
use crate::table::TABLE;

/// The contents of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The chip it was assembled for.
    pub chip: Chip,
    /// The program type it was assembled for.
    pub stage: Stage,
    /// A program for each `.kernel`; one without a name when there is none.
    pub programs: Vec<Program>,
    /// For each program the instructions by address and their places in the text, in the order of the text.
    pub lines: Vec<Vec<(u32, usize)>>,
}

impl Assembled {
    /// The words of all programs, one after the other.
    pub fn words(&self) -> Vec<u32> {
        self.programs.iter().flat_map(|program| &program.words).copied().collect()
    }
}

/// The prefixes of an instruction's name: `short`, `exit`, `join`, a predicate, a lane mask.
#[derive(Clone, Copy, Debug)]
pub struct Prefix;

impl Prefixes for Prefix {
    #[inline(always)]
    fn skip(reader: &mut Reader) {
        loop {
            match reader.peek() {
                "short" | "exit" | "join" => {
                    reader.take();
                }
                "(" => while !reader.at_end() && !matches!(reader.take(), ")") {},
                _ => return,
            }
        }
    }
}

/// The directives.
const DIRECTIVES: [&str; 14] = [
    ".isa", ".chip", ".type", ".kernel", ".base", ".reg", ".shared", ".local", ".bar", ".stack", ".params",
    ".param", ".const", ".word",
];

/// Assembles a text. `chip` and `stage` hold where the text has no `.chip` and `.type`.
///
/// # Errors
/// Everything that is wrong with the text, in its order.
pub fn assemble(source: &str, chip: Chip, stage: Stage) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler {
        chip,
        stage,
        reader: LineReader::new(&TABLE, here(chip, stage)),
        programs: vec![Program::default()],
        lines: vec![Vec::new()],
        labels: HashMap::default(),
        uses: Vec::new(),
        errors: Vec::new(),
    };
    for (offset, line) in lines(source) {
        assembler.line(offset, line);
    }
    assembler.finish_program();
    assembler.errors.sort_by_key(|error| error.span.start);
    if assembler.errors.is_empty() {
        let Assembler { chip, stage, programs, lines, .. } = assembler;
        Ok(Assembled { chip, stage, programs, lines })
    } else {
        Err(assembler.errors)
    }
}

/// A label that was used before the end of its program.
struct Use<'a> {
    label: LabelUse<'a>,
    /// Its place in the source.
    span: Span,
    /// The first word of the instruction.
    index: usize,
}

struct Assembler<'a> {
    chip: Chip,
    stage: Stage,
    reader: LineReader<'static, Draft>,
    programs: Vec<Program>,
    /// For each program the addresses of its instructions and their places in the text.
    lines: Vec<Vec<(u32, usize)>>,
    /// Labels of the current program, by name: address and position in the text.
    labels: HashMap<&'a str, (u32, Span), NameHash>,
    uses: Vec<Use<'a>>,
    errors: Vec<Diagnostic>,
}

impl<'a> Assembler<'a> {
    fn program(&mut self) -> &mut Program {
        // There is always one: assembly begins with one and only adds.
        self.programs.last_mut().expect("a program is open")
    }

    fn address(&mut self) -> u32 {
        let program = self.program();
        program.base.wrapping_add(4 * program.words.len() as u32)
    }

    fn line(&mut self, mut offset: usize, mut line: &'a str) {
        loop {
            let trimmed = line.trim_start();
            offset += line.len() - trimmed.len();
            line = trimmed.trim_end();
            let Some((name, rest)) = label(line) else { break };
            self.define(name, Span::new(offset, offset + name.len()));
            offset += line.len() - rest.len();
            line = rest;
        }
        if line.starts_with('.') {
            self.directive(offset, line);
        } else if !line.is_empty() {
            self.instruction(offset, line);
        }
    }

    fn define(&mut self, name: &'a str, span: Span) {
        let address = self.address();
        if let Some((_, first)) = self.labels.insert(name, (address, span)) {
            self.labels.insert(name, (address, first));
            self.errors.push(Diagnostic::error(span, format!("the label `{name}` is defined twice")));
        }
    }

    #[inline]
    fn instruction(&mut self, offset: usize, line: &'a str) {
        match self.reader.read::<Prefix>(line) {
            Err(mut error) => {
                error.span = moved(error.span, offset);
                self.errors.push(*error);
            }
            Ok(read) => {
                if read.row.long && self.address() & 4 != 0 {
                    let span = Span::new(offset, offset + line.len());
                    let message = "a two-word instruction must start at an even word";
                    let help =
                        "make the `short` instruction before it long, or put another `short` one beside it";
                    self.errors.push(Diagnostic::error(span, message).help(help));
                }
                let (index, address) = (self.program().words.len(), self.address());
                if let Some(lines) = self.lines.last_mut() {
                    lines.push((address, offset));
                }
                if let Some(label) = read.label {
                    self.uses.push(Use { label, span: moved(label.span, offset), index });
                }
                let words = &mut self.program().words;
                words.push(read.word as u32);
                if read.row.long {
                    words.push((read.word >> 32) as u32);
                }
            }
        }
    }

    /// Fills in the labels of the current program.
    fn finish_program(&mut self) {
        let uses = std::mem::take(&mut self.uses);
        for Use { label, span, index } in uses {
            let Some(&(address, _)) = self.labels.get(label.name) else {
                let message = format!("there is no label `{}` in this program", label.name);
                let help = suggest(label.name, self.labels.keys().copied());
                self.errors.push(Diagnostic::error(span, message).help(help));
                continue;
            };
            let Some(bits) = label.bits(address) else {
                self.errors
                    .push(Diagnostic::error(span, format!("the address {address:#x} is out of reach")));
                continue;
            };
            let words = &mut self.program().words[index..];
            words[0] |= bits as u32;
            if let Some(second) = words.get_mut(1) {
                *second |= (bits >> 32) as u32;
            }
        }
        self.labels.clear();
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.errors.push(Diagnostic::error(span, message));
    }

    fn directive(&mut self, offset: usize, line: &'a str) {
        let mut cursor = Cursor::new(line, offset);
        let start = cursor.offset();
        let name = cursor.token();
        let span = cursor.since(start);
        match name {
            ".isa" => {
                self.machine(
                    &mut cursor,
                    "machine",
                    |name| (name == "tesla").then_some(()),
                    |_, ()| false,
                    || vec!["tesla"],
                );
            }
            ".chip" => self.machine(
                &mut cursor,
                "chip",
                Chip::from_name,
                |this, chip| std::mem::replace(&mut this.chip, chip) != chip,
                || Chip::ALL.map(Chip::name).to_vec(),
            ),
            ".type" => self.machine(
                &mut cursor,
                "program type",
                Stage::from_name,
                |this, stage| std::mem::replace(&mut this.stage, stage) != stage,
                || Stage::ALL.map(Stage::name).to_vec(),
            ),
            ".kernel" => self.kernel(&mut cursor, span),
            ".base" => {
                if let Some(base) = self.number(&mut cursor) {
                    if !self.program().words.is_empty() || !self.labels.is_empty() {
                        self.error(span, "`.base` must stand before the first instruction and label");
                    } else if base & 3 != 0 {
                        self.error(span, "`.base` must be a multiple of 4");
                    } else {
                        self.program().base = base;
                    }
                }
            }
            ".reg" | ".shared" | ".local" | ".bar" | ".stack" | ".params" => {
                if let Some(value) = self.number(&mut cursor) {
                    let resources = &mut self.program().resources;
                    let place = match name {
                        ".reg" => &mut resources.registers,
                        ".shared" => &mut resources.shared_bytes,
                        ".local" => &mut resources.local_bytes,
                        ".bar" => &mut resources.barriers,
                        ".stack" => &mut resources.stack,
                        _ => &mut resources.param_bytes,
                    };
                    *place = Some(value);
                }
            }
            ".param" => {
                if let (Some(offset), Some(bytes)) = (self.number(&mut cursor), self.number(&mut cursor)) {
                    self.program().params.push(Param { name: None, offset, bytes });
                }
            }
            ".const" => self.constants(&mut cursor),
            ".word" => {
                while let Some(word) = self.number(&mut cursor) {
                    self.program().words.push(word);
                    if cursor.at_end() {
                        break;
                    }
                }
            }
            unknown => {
                let message = format!("there is no directive `{unknown}`");
                self.errors.push(Diagnostic::error(span, message).help(suggest(unknown, DIRECTIVES)));
                return;
            }
        }
        if !cursor.at_end() && self.errors.last().is_none_or(|error| error.span.start < start) {
            let span = Span::new(cursor.offset(), offset + line.len());
            self.error(span, format!("`{name}` takes no more than that"));
        }
    }

    /// `.chip` and `.type`.
    fn machine<T>(
        &mut self,
        cursor: &mut Cursor<'a>,
        what: &str,
        from_name: fn(&str) -> Option<T>,
        set: fn(&mut Self, T) -> bool,
        all: fn() -> Vec<&'static str>,
    ) {
        let start = cursor.offset();
        let name = cursor.token();
        let span = cursor.since(start);
        let begun = self.programs.iter().any(|program| !program.words.is_empty());
        match from_name(name) {
            None => {
                let message = format!("there is no {what} `{name}`");
                self.errors.push(Diagnostic::error(span, message).help(suggest(name, all())));
            }
            Some(value) => {
                // A repeated directive is allowed if it has the same value, so that listings can be concatenated.
                if set(self, value) && begun {
                    self.error(span, format!("the {what} must be told before the first instruction"));
                }
                self.reader = LineReader::new(&TABLE, here(self.chip, self.stage));
            }
        }
    }

    fn kernel(&mut self, cursor: &mut Cursor<'a>, span: Span) {
        cursor.skip_space();
        let text = cursor.rest().trim_end();
        let name = if text.starts_with('"') {
            unquote(text)
        } else {
            text.split_whitespace().next().filter(|name| *name == text).map(str::to_owned)
        };
        while !cursor.at_end() {
            cursor.token();
        }
        let Some(name) = name else {
            self.error(span, "`.kernel` needs a name: one word, or a text in quotation marks");
            return;
        };
        let open = self.program();
        let begun = open.name.is_some() || !open.words.is_empty();
        if begun {
            self.finish_program();
            self.programs.push(Program::default());
            self.lines.push(Vec::new());
        }
        self.program().name = Some(name);
    }

    /// `.const bank offset word...`; a block that continues the one before is one with it.
    fn constants(&mut self, cursor: &mut Cursor<'a>) {
        let (Some(bank), Some(offset)) = (self.number(cursor), self.number(cursor)) else { return };
        let mut bytes = Vec::new();
        while !cursor.at_end() {
            match self.number(cursor) {
                Some(word) => bytes.extend(word.to_le_bytes()),
                None => return,
            }
        }
        let blocks = &mut self.program().constants;
        match blocks.last_mut() {
            Some(last)
                if last.bank == bank
                    && u64::from(last.offset) + last.bytes.len() as u64 == u64::from(offset) =>
            {
                last.bytes.extend(bytes);
            }
            _ => blocks.push(ConstantBlock { bank, offset, bytes }),
        }
    }

    /// Reads a 32-bit number.
    fn number(&mut self, cursor: &mut Cursor<'a>) -> Option<u32> {
        let here = cursor.here();
        match cursor.number().map(u32::try_from) {
            Some(Ok(number)) => Some(number),
            Some(Err(_)) => {
                self.error(here, "the number has more than 32 bits");
                None
            }
            None => {
                self.error(here, "a number is missing here");
                None
            }
        }
    }
}

fn moved(span: Span, by: usize) -> Span {
    Span::new(span.start + by, span.end + by)
}

/// A label at the start of a line, and what follows its colon.
#[inline(always)]
fn label(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    if !bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_') {
        return None;
    }
    let end = bytes.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    (bytes[end] == b':').then(|| (&line[..end], &line[end + 1..]))
}

/// The content of a text in quotation marks, with Rust's escapes.
fn unquote(text: &str) -> Option<String> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    let mut rest = inside.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'u' => {
                let tail = rest.as_str().strip_prefix('{')?;
                let (digits, after) = tail.split_once('}')?;
                rest = after.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            c @ ('\\' | '"' | '\'') => c,
            _ => return None,
        });
    }
    Some(out)
}
