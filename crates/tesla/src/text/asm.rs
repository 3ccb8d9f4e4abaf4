//! The assembler: from text to words.

use std::collections::HashMap;

use reconverge_isa::Program;
use reconverge_isa::program::{ConstantBlock, Module, Param, Place, Sampler, Slot, Variable};
use reconverge_isa::source::{Cursor, Diagnostic, DirectiveRow, Span, lines, parse_number, suggest};
use reconverge_isa::write::{LabelUse, Line, LineReader, NameHash, Prefixes, Reader};

use super::written::{ACCESSES, Names, PARAMETERS, bits_of, written};
use crate::draft::Draft;
use crate::inst::{Chip, Stage};
use crate::parts::here;
use crate::table::TABLE;

/// The result of assembling a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The chip for which the text was assembled.
    pub chip: Chip,
    /// The program type of the first program.
    pub stage: Stage,
    /// The name of the chip, in the spelling of the text. The field is `None` if the text does not state a chip, or
    /// states different chips for different programs.
    pub chip_name: Option<String>,
    /// Modules, from `.module` and the directives after `.module`.
    pub modules: Vec<Module>,
    /// A program for each `.kernel`. If the text has no `.kernel`, the list has a single program without a name.
    pub programs: Vec<Program>,
    /// For each program, the address and the position in the text of each instruction, in the order of the text.
    pub lines: Vec<Vec<(u32, usize)>>,
    /// Warnings about text that is valid but probably a mistake.
    pub warnings: Vec<Diagnostic>,
}

impl Assembled {
    /// Returns the words of all programs, concatenated.
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

/// The directives of the assembler.
#[rustfmt::skip]
pub const DIRECTIVES: &[DirectiveRow] = &[
    DirectiveRow::new(".isa", "tesla", "the machine"),
    DirectiveRow::new(".chip", "NAME", "the chip"),
    DirectiveRow::new(".type", "VP|GP|FP|CP", "the program type"),
    DirectiveRow::new(".module", "NAME", "begins a module"),
    DirectiveRow::new(".abi", "N", "`abiversion` of a text cubin; belongs to a module"),
    DirectiveRow::new(".pointers", "BYTES", "bytes per pointer, 4 or 8; belongs to a module"),
    DirectiveRow::new(".variable", "NAME BYTES PLACE", "a variable of a module, in a constant bank, `c0[0x10]`, or in memory, `global c14[0x0]`"),
    DirectiveRow::new(".sampler", "NAME UNIT", "a texture of a module or a program"),
    DirectiveRow::new(".const", "BANK OFFSET WORD…", "contents of a constant bank"),
    DirectiveRow::new(".data", "WORD…", "more contents of the `.const` or `.variable` before"),
    DirectiveRow::program(".kernel"),
    DirectiveRow::new(".base", "ADDRESS", "address of the program's first word"),
    DirectiveRow::new(".reg", "N", "registers that the program needs"),
    DirectiveRow::new(".shared", "BYTES", "shared memory that the program needs"),
    DirectiveRow::new(".local", "BYTES", "local memory that the program needs"),
    DirectiveRow::new(".bar", "N", "barriers that the program needs"),
    DirectiveRow::new(".stack", "N", "entries of the stack that the program needs"),
    DirectiveRow::new(".params", "BYTES", "size of the parameters"),
    DirectiveRow::new(".param", "s[0x10] BYTES NAME", "a parameter of the kernel"),
    DirectiveRow::new(".state", "NAME VALUE", "another number that the container states for the program"),
    DirectiveRow::new(".word", "WORD…", "words as they are"),
];

/// Maximum number of errors for which the assembler lists chips and program types that have the instruction.
const MOST_ADVICE: usize = 64;

/// Directives of a module. `.sampler`, `.const` and `.data` are valid in modules and in programs.
const OF_MODULES: [&str; 3] = [".abi", ".pointers", ".variable"];
/// Directives of a program.
#[rustfmt::skip]
const OF_PROGRAMS: [&str; 10] = [
    ".base", ".reg", ".shared", ".local", ".bar", ".stack", ".params", ".param", ".state", ".word",
];

/// Assembles a text. `chip` and `stage` are the defaults for a text without `.chip` and `.type`.
///
/// # Errors
/// All errors in the text, in the order of their positions.
pub fn assemble(source: &str, chip: Chip, stage: Stage) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler {
        chip,
        stage,
        chip_name: None,
        own_chip: chip,
        reader: reader(chip, stage),
        modules: Vec::new(),
        in_module: false,
        opened: false,
        data: None,
        programs: vec![Program::default()],
        lines: vec![Vec::new()],
        labels: HashMap::default(),
        uses: Vec::new(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    for (offset, line) in lines(source) {
        assembler.line(offset, line);
    }
    assembler.finish_program();
    Diagnostic::sort(&mut assembler.errors);
    if assembler.errors.is_empty() {
        let Assembler {
            stage, own_chip, chip_name, modules, opened, mut programs, mut lines, warnings, ..
        } = assembler;
        if !modules.is_empty() && !opened && programs[0].words.is_empty() {
            programs.clear();
            lines.clear();
        }
        let first = programs.first().and_then(|program| program.stage).and_then(Stage::of);
        let chip_name = match modules.split_first() {
            Some((first, rest)) if rest.iter().all(|module| module.chip == first.chip) => first.chip.clone(),
            Some(_) => None,
            None => chip_name,
        };
        let chip = chip_name.as_deref().and_then(Chip::from_name).unwrap_or(own_chip);
        Ok(Assembled { chip, stage: first.unwrap_or(stage), chip_name, modules, programs, lines, warnings })
    } else {
        Err(assembler.errors)
    }
}

/// A use of a label. The label is resolved at the end of the program.
struct Use<'a> {
    label: LabelUse<'a>,
    /// The position of the use in the source.
    span: Span,
    /// Index of the first word of the instruction.
    index: usize,
}

/// The contents that `.data` continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Data {
    /// The last constants of the module.
    Module,
    /// The last constants of the program.
    Program,
    /// The last variable.
    Variable,
}

struct Assembler<'a> {
    chip: Chip,
    stage: Stage,
    /// The name of the chip that the text states outside modules, in the spelling of the text. `own_chip` is the chip
    /// with this name.
    chip_name: Option<String>,
    own_chip: Chip,
    reader: LineReader<'static, Draft>,
    modules: Vec<Module>,
    /// Whether directives belong to the last module. The flag is set between `.module` and `.kernel`.
    in_module: bool,
    /// Whether a `.kernel` directive opened the last program.
    opened: bool,
    data: Option<Data>,
    programs: Vec<Program>,
    /// For each program, the address and the position in the text of each instruction.
    lines: Vec<Vec<(u32, usize)>>,
    /// The address and the position in the text of each label of the current program, by name.
    labels: HashMap<&'a str, (u32, Span), NameHash>,
    uses: Vec<Use<'a>>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Assembler<'a> {
    fn program(&mut self) -> &mut Program {
        // The list is never empty. Assembly begins with one program and only adds programs.
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
            // In listings, each line starts with the address.
            if let Some((_, rest)) = line.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
                offset += line.len() - rest.len();
                line = rest;
                continue;
            }
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
            let message = format!("the label `{name}` is defined twice");
            self.errors.push(Diagnostic::error(span, message).related(first, "the first"));
        }
    }

    #[inline]
    fn instruction(&mut self, offset: usize, line: &'a str) {
        if self.in_module {
            self.belongs_to_a_program(Span::new(offset, offset + line.len()), "an instruction");
        }
        let read = match self.reader.read::<Prefix>(line) {
            Ok(read) => Ok(read),
            Err(error) => self.read_written(line, error),
        };
        match read {
            Err(mut error) => {
                error.span = moved(error.span, offset);
                self.errors.push(*error);
            }
            Ok(read) => {
                if read.row.id.starts_with("i.f") {
                    self.integer_in_floats(offset, line);
                }
                if read.row.long && self.address() & 4 != 0 {
                    let span = Span::new(offset, offset + line.len());
                    let message = "a two-word instruction must start at an even word";
                    let help = "remove `short` from the instruction before it, or put a second `short` instruction \
                                next to that instruction";
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

    /// Reads a line that is not in the form of listings. `error` is the error in the original line.
    #[cold]
    fn read_written(
        &mut self,
        line: &'a str,
        mut error: Box<Diagnostic>,
    ) -> Result<Line<'a, Draft>, Box<Diagnostic>> {
        let Some(program) = self.programs.last() else { return Err(error) };
        let names = Names { program, module: self.modules.last(), stage: self.stage };
        let mut first = None;
        for access in ACCESSES {
            let Some(written) = written(line, names, access)? else {
                self.refer_elsewhere(line, &mut error);
                return Err(error);
            };
            match self.reader.read::<Prefix>(&written.text) {
                Ok(Line { row, word, label }) => {
                    let label = label.map(|label| {
                        let span = written.in_line(label.span);
                        LabelUse { name: &line[span.start..span.end], span, ..label }
                    });
                    return Ok(Line { row, word, label });
                }
                Err(error) => drop(first.get_or_insert((error, written))),
            }
        }
        let Some((mut error, written)) = first else { return Err(error) };
        self.refer_elsewhere(&written.text, &mut error);
        error.span = written.in_line(error.span);
        Err(error)
    }

    /// Warns if the immediate of a float operation is a decimal integer. The bits of such an integer represent a float
    /// near 0.
    #[cold]
    fn integer_in_floats(&mut self, offset: usize, line: &str) {
        let is_integer = |word: &&str| *word != "0" && word.bytes().all(|byte| byte.is_ascii_digit());
        let words = line.split([' ', '\t', ',', ')']).filter(|word| !word.is_empty());
        if let Some(word) = words.take_while(|word| *word != "bits").find(is_integer) {
            let start = offset + (word.as_ptr() as usize - line.as_ptr() as usize);
            let message = format!("`{word}` is an integer, and the operation is on floats");
            let warning = Diagnostic::warning(Span::new(start, start + word.len()), message);
            self.warnings
                .push(warning.help(format!("write `{word}.0`, or its bits as a hexadecimal number")));
        }
    }

    /// Adds a hint to the error of a line if the line would be valid for another chip, for another program type, or in
    /// another form. If a number in the line is out of range, the line is never valid, and the error gets no hint.
    #[cold]
    fn refer_elsewhere(&mut self, line: &str, error: &mut Diagnostic) {
        if error.help.is_some()
            && self.errors.len() < MOST_ADVICE
            && let Some(help) = self.elsewhere(line)
        {
            error.help = Some(help);
        }
    }

    /// Returns a hint if an invalid line would be valid on other chips or in other program types. Some parts cannot
    /// occur in an immediate form. If the line would be valid without these parts, the function also returns a hint.
    #[cold]
    fn elsewhere(&mut self, line: &str) -> Option<String> {
        let reads =
            |line: &str, chip, stage| LineReader::new(&TABLE, here(chip, stage)).read::<Prefix>(line).is_ok();
        let chips: Vec<&str> =
            Chip::ALL.into_iter().filter(|chip| reads(line, *chip, self.stage)).map(Chip::name).collect();
        if !chips.is_empty() {
            let (own, list) = (self.chip, chips.join(", "));
            return Some(format!("{own} does not have this form; {list} do: choose one with `.chip`"));
        }
        let stages: Vec<&str> =
            Stage::ALL.into_iter().filter(|stage| reads(line, self.chip, *stage)).map(Stage::name).collect();
        if !stages.is_empty() {
            let (own, list) = (self.stage, stages.join(", "));
            return Some(format!("{own} programs do not have this form; {list} programs do"));
        }
        let plain = without_long_parts(line).filter(|plain| has_immediate(plain))?;
        reads(&plain, self.chip, self.stage).then(|| {
            "a form with an immediate writes no flags and has no predicate, exit or join: move the number to a register \
             first"
                .to_owned()
        })
    }

    /// Resolves the labels of the current program.
    fn finish_program(&mut self) {
        self.program().stage = Some(self.stage.any());
        let uses = std::mem::take(&mut self.uses);
        for Use { label, span, index } in uses {
            let Some(&(address, _)) = self.labels.get(label.name) else {
                let message = format!("undefined label `{}` in this program", label.name);
                let help = match self.labels.is_empty() {
                    true => {
                        format!("the program has no labels: put `{}:` in front of an instruction", label.name)
                    }
                    false => {
                        let mut names: Vec<&str> = self.labels.keys().copied().collect();
                        names.sort_unstable();
                        suggest(label.name, names)
                    }
                };
                self.errors.push(Diagnostic::error(span, message).help(help));
                continue;
            };
            let Some(bits) = label.bits(address) else {
                self.errors.push(Diagnostic::error(
                    span,
                    format!("the address {address:#x} does not fit into the instruction"),
                ));
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
        if self.in_module && OF_PROGRAMS.contains(&name) {
            self.belongs_to_a_program(span, &format!("`{name}`"));
        } else if !self.in_module && OF_MODULES.contains(&name) {
            let message = format!("`{name}` belongs to a module");
            let help = "begin a module with `.module`, before its kernels";
            self.errors.push(Diagnostic::error(span, message).help(help));
            return;
        }
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
            ".chip" => {
                let word = cursor.clone().token();
                self.machine(
                    &mut cursor,
                    "chip",
                    Chip::from_name,
                    |this, chip| std::mem::replace(&mut this.chip, chip) != chip && !this.in_module,
                    || Chip::ALL.map(Chip::name).to_vec(),
                );
                match self.modules.last_mut().filter(|_| self.in_module) {
                    Some(module) => module.chip = Some(word.to_owned()),
                    None => (self.chip_name, self.own_chip) = (Some(word.to_owned()), self.chip),
                }
            }
            ".type" => {
                self.machine(
                    &mut cursor,
                    "program type",
                    Stage::from_name,
                    |this, stage| std::mem::replace(&mut this.stage, stage) != stage && !this.is_new(),
                    || Stage::ALL.map(Stage::name).to_vec(),
                );
            }
            ".module" => {
                let name = if cursor.at_end() { None } else { self.name(&mut cursor) };
                self.finish_program();
                self.modules.push(Module { name, chip: self.chip_name.clone(), ..Module::default() });
                (self.in_module, self.data) = (true, None);
                self.chip = self.own_chip;
                self.reader = reader(self.chip, self.stage);
            }
            ".abi" | ".pointers" => {
                if let (Some(value), Some(module)) = (self.number(&mut cursor), self.modules.last_mut()) {
                    let place =
                        if name == ".abi" { &mut module.abi_version } else { &mut module.pointer_bytes };
                    *place = Some(value);
                }
            }
            ".variable" => self.variable(&mut cursor),
            ".sampler" => {
                if let (Some(name), Some(unit)) = (self.name(&mut cursor), self.number(&mut cursor)) {
                    let sampler = Sampler { name, unit };
                    match self.modules.last_mut().filter(|_| self.in_module) {
                        Some(module) => module.samplers.push(sampler),
                        None => self.program().samplers.push(sampler),
                    }
                }
            }
            ".data" => match self.data {
                None => {
                    let message = "`.data` continues the contents of a `.const` or `.variable` before it";
                    self.error(span, message);
                }
                Some(data) => {
                    let bytes = self.bytes(&mut cursor);
                    self.contents(data).extend(bytes);
                }
            },
            ".state" => {
                if let (Some(name), Some(value)) = (self.name(&mut cursor), self.number(&mut cursor)) {
                    self.program().state.push((name, value));
                }
            }
            ".kernel" => self.kernel(&mut cursor),
            ".base" => {
                if let Some(base) = self.number(&mut cursor) {
                    if !self.program().words.is_empty() || !self.labels.is_empty() {
                        self.error(span, "`.base` must come before the first instruction and label");
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
                if let (Some(offset), Some(bytes)) =
                    (self.param_offset(&mut cursor), self.number(&mut cursor))
                {
                    let name = if cursor.at_end() { None } else { self.name(&mut cursor) };
                    self.program().params.push(Param { name, offset, bytes });
                }
            }
            ".const" => self.constants(&mut cursor),
            ".word" => {
                while let Some(word) = self.bits(&mut cursor) {
                    self.program().words.push(word);
                    if cursor.at_end() {
                        break;
                    }
                }
            }
            unknown => {
                let message = format!("unknown directive `{unknown}`");
                let names = DIRECTIVES.iter().map(|row| row.name);
                self.errors.push(Diagnostic::error(span, message).help(suggest(unknown, names)));
                return;
            }
        }
        if !cursor.at_end() && self.errors.last().is_none_or(|error| error.span.start < start) {
            let span = Span::new(cursor.offset(), offset + line.len());
            self.error(span, format!("unexpected text after the operands of `{name}`"));
        }
    }

    /// Reads `.chip` or `.type`.
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
                let message = format!("unknown {what} `{name}`");
                self.errors.push(Diagnostic::error(span, message).help(suggest(name, all())));
            }
            Some(value) => {
                // A directive may occur again with the value of its first occurrence, so that users can concatenate
                // listings.
                if set(self, value) && begun {
                    self.error(span, format!("the {what} must be stated before the first instruction"));
                }
                self.reader = reader(self.chip, self.stage);
            }
        }
    }

    /// Returns whether the current program has no instruction yet. A directive can still change the settings of such a
    /// program.
    fn is_new(&mut self) -> bool {
        self.in_module || self.program().words.is_empty()
    }

    /// Reports content between `.module` and `.kernel` that is only valid in a program. Begins a program, so that the
    /// assembler reads the following lines as part of this program.
    fn belongs_to_a_program(&mut self, span: Span, what: &str) {
        let message = format!("{what} belongs to a program");
        self.errors.push(Diagnostic::error(span, message).help("put `.kernel NAME` in front of it"));
        self.begin_program(None);
    }

    /// Begins a program. If the text has a module, the program belongs to the last module.
    fn begin_program(&mut self, name: Option<String>) {
        if self.opened || !self.program().words.is_empty() {
            self.finish_program();
            self.programs.push(Program::default());
            self.lines.push(Vec::new());
        }
        (self.in_module, self.opened, self.data) = (false, true, None);
        let module = self.modules.len().saturating_sub(1);
        let program = self.program();
        (program.name, program.module) = (name, module);
    }

    /// Reads `.kernel NAME`. The name is optional.
    fn kernel(&mut self, cursor: &mut Cursor<'a>) {
        let name = if cursor.at_end() { None } else { self.name(cursor) };
        self.begin_program(name);
    }

    /// Reads a name: one word, or a text in quotation marks.
    fn name(&mut self, cursor: &mut Cursor<'a>) -> Option<String> {
        cursor.skip_space();
        let rest = cursor.rest();
        let here = Span::new(cursor.offset(), cursor.offset() + rest.trim_end().len());
        if !rest.starts_with('"') {
            let word = cursor.token();
            if word.is_empty() {
                self.error(here, "a name is missing here: one word, or a text in quotation marks");
                return None;
            }
            return Some(word.to_owned());
        }
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let text = end.map(|(end, _)| &rest[..=end]);
        let name = text.and_then(unquote);
        if name.is_none() {
            self.error(here, "this text in quotation marks does not end, or has an unknown escape");
        }
        cursor.eat(text.unwrap_or(rest));
        name
    }

    /// Reads `.const BANK OFFSET WORD…`: contents of a constant bank, as a separate block.
    fn constants(&mut self, cursor: &mut Cursor<'a>) {
        let (Some(bank), Some(offset)) = (self.number(cursor), self.number(cursor)) else { return };
        let bytes = self.bytes(cursor);
        let block = ConstantBlock { bank, offset, bytes };
        match self.modules.last_mut().filter(|_| self.in_module) {
            Some(module) => {
                module.constants.push(block);
                self.data = Some(Data::Module);
            }
            None => {
                self.program().constants.push(block);
                self.data = Some(Data::Program);
            }
        }
    }

    /// Reads `.variable NAME BYTES c0[0x10]`, or `.variable NAME BYTES global c14[0x0] c14[0x8]+0x4`.
    fn variable(&mut self, cursor: &mut Cursor<'a>) {
        let (Some(name), Some(bytes)) = (self.name(cursor), self.number(cursor)) else { return };
        let mut slots = Vec::new();
        let global = cursor.eat_word("global");
        while !cursor.at_end() {
            let start = cursor.offset();
            let token = cursor.token();
            match slot(token) {
                Some(slot) => slots.push(slot),
                None => {
                    let span = cursor.since(start);
                    let message = format!("expected the position of a variable, found `{token}`");
                    let help = "expected `c0[0x10]`, or `global` and the words that receive the address of the \
                                variable";
                    self.errors.push(Diagnostic::error(span, message).help(help));
                    return;
                }
            }
        }
        let place = match slots[..] {
            _ if global => Place::Global { slots, init: Vec::new() },
            [Slot { bank, offset, addend: 0 }] => Place::Constant { bank, offset },
            _ => {
                let here = Span::new(cursor.offset(), cursor.offset());
                self.error(here, "expected one position of the variable: `c0[0x10]`, or `global`");
                return;
            }
        };
        self.data = matches!(place, Place::Global { .. }).then_some(Data::Variable);
        if let Some(module) = self.modules.last_mut() {
            module.variables.push(Variable { name, bytes, place });
        }
    }

    /// Returns the contents that `.data` continues.
    fn contents(&mut self, data: Data) -> &mut Vec<u8> {
        let last = match data {
            Data::Program => self.program().constants.last_mut().map(|block| &mut block.bytes),
            Data::Module => self
                .modules
                .last_mut()
                .and_then(|module| module.constants.last_mut())
                .map(|block| &mut block.bytes),
            Data::Variable => {
                self.modules.last_mut().and_then(|module| module.variables.last_mut()).and_then(|variable| {
                    match &mut variable.place {
                        Place::Global { init, .. } => Some(init),
                        Place::Constant { .. } => None,
                    }
                })
            }
        };
        last.expect("`data` names what has just been added")
    }

    /// Reads words, or single bytes after the word `bytes`.
    fn bytes(&mut self, cursor: &mut Cursor<'a>) -> Vec<u8> {
        let (mut bytes, mut single) = (Vec::new(), false);
        while !cursor.at_end() {
            single |= cursor.eat_word("bytes");
            let here = cursor.here();
            let Some(number) = self.bits(cursor) else {
                while !cursor.at_end() {
                    cursor.token();
                }
                break;
            };
            match (single, u8::try_from(number)) {
                (false, _) => bytes.extend(number.to_le_bytes()),
                (true, Ok(byte)) => bytes.push(byte),
                (true, Err(_)) => self.error(here, "expected a byte of at most 0xff after `bytes`"),
            }
        }
        bytes
    }

    /// Reads the position of a parameter and returns the offset in the parameter area. The text has this offset, or an
    /// address such as `s[0x10]`.
    fn param_offset(&mut self, cursor: &mut Cursor<'a>) -> Option<u32> {
        let start = cursor.offset();
        if !cursor.eat("s[") {
            return self.number(cursor);
        }
        let address = cursor.number().and_then(|address| u32::try_from(address).ok());
        let offset = address.filter(|_| cursor.eat("]")).and_then(|address| address.checked_sub(PARAMETERS));
        if offset.is_none() {
            self.error(cursor.since(start), "expected a parameter at `s[0x10]` or a higher address");
        }
        offset
    }

    /// Reads a 32-bit number. A negative number or a float stands for its bits.
    fn bits(&mut self, cursor: &mut Cursor<'a>) -> Option<u32> {
        let mut plain = cursor.clone();
        if plain.number().is_some_and(|number| number <= u64::from(u32::MAX))
            && !plain.rest().starts_with('.')
        {
            return self.number(cursor);
        }
        let mut ahead = cursor.clone();
        match bits_of(ahead.token()) {
            Some(bits) => {
                *cursor = ahead;
                Some(bits)
            }
            None => self.number(cursor),
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

/// Returns the reader of lines. The messages of the reader do not mention o[] for fragment and compute programs, which
/// do not have this space.
fn reader(chip: Chip, stage: Stage) -> LineReader<'static, Draft> {
    let hidden: &[&str] = match stage {
        Stage::Vertex | Stage::Geometry => &[],
        Stage::Fragment | Stage::Compute => &["o["],
    };
    LineReader::new(&TABLE, here(chip, stage)).hiding(hidden)
}

/// Returns the line without predicate, exit, join and flags output. A form with an immediate cannot have these parts.
/// Returns `None` if the line has none of these four parts.
fn without_long_parts(line: &str) -> Option<String> {
    let mut rest = line.trim_start();
    let mut plain = String::new();
    loop {
        rest = rest.trim_start();
        if let Some((_, behind)) = rest.strip_prefix('(').and_then(|inside| inside.split_once(')')) {
            rest = behind;
        } else if let Some(behind) = ["exit ", "join "].iter().find_map(|word| rest.strip_prefix(word)) {
            rest = behind;
        } else {
            break;
        }
    }
    for word in rest.split_whitespace().filter(|word| !word.starts_with("$c")) {
        plain.push_str(word);
        plain.push(' ');
    }
    (plain.trim() != line.trim()).then_some(plain)
}

/// Returns whether an operand of a line is a number.
fn has_immediate(line: &str) -> bool {
    let operands = line.split_whitespace().skip(1).filter(|word| !word.contains(['[', ']']));
    operands
        .map(|word| word.trim_start_matches('-'))
        .any(|word| word.starts_with(|first: char| first.is_ascii_digit()))
}

fn moved(span: Span, by: usize) -> Span {
    Span::new(span.start + by, span.end + by)
}

/// Splits a label from the start of a line. Returns the label and the text after the label's colon.
#[inline(always)]
fn label(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    if !bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_') {
        return None;
    }
    let end = bytes.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    (bytes[end] == b':').then(|| (&line[..end], &line[end + 1..]))
}

/// Reads a slot: `c14[0x8]` or `c14[0x8]+0x4`.
fn slot(token: &str) -> Option<Slot> {
    let number = |text: &str| parse_number(text).and_then(|number| u32::try_from(number).ok());
    let (bank, rest) = token.strip_prefix('c')?.split_once('[')?;
    let (offset, rest) = rest.split_once(']')?;
    let addend = match rest {
        "" => 0,
        rest => number(rest.strip_prefix('+')?)?,
    };
    Some(Slot { bank: bank.parse().ok()?, offset: number(offset)?, addend })
}

/// Returns the content of a text in quotation marks, with Rust's escapes.
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
