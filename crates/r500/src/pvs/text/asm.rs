//! The assembler: converts text to words.

use reconverge_isa::program::Stage;
use reconverge_isa::source::{Cursor, Diagnostic, DirectiveRow, suggest};
use reconverge_isa::{Span, WordInfo};

use super::syntax::{
    CHANNELS, SATURATE, WORD_NAMES, destination, letter, operation, operations, source as source_name,
    with_ignored,
};
use crate::pvs::inst::{CONSTANTS, Mode, Op, Operand, SLOTS, WORDS};
use crate::pvs::words::*;
use crate::text::Assembled;
use crate::text::directives::{Directives, Stated};
use crate::text::reading::{
    Line, Parsed, assigned_field, each_line, end, equals, expected, field as read_field, lines, number,
    place, sign, word, words,
};

/// Assembles a source text with one program. [`crate::programs::assemble_all`] accepts several programs.
///
/// # Errors
/// Returns the errors in the order of the text, with up to twenty messages.
pub fn assemble(source: &str) -> Result<Assembled, Vec<Diagnostic>> {
    assemble_lines(lines(source))
}

pub(crate) fn assemble_lines<'a>(
    lines: impl IntoIterator<Item = Line<'a>>,
) -> Result<Assembled, Vec<Diagnostic>> {
    let mut assembler = Assembler::default();
    let errors = each_line(lines, |_, cursor| assembler.line(cursor));
    assembler.finish(errors)
}

/// An instruction and its position in the text.
struct Record {
    words: [u32; WORDS],
    at: usize,
    /// For each operand, whether the text states the operand.
    given: [bool; 3],
    /// Whether the text of the instruction omits the third operand. If this field is set, the next line must be the
    /// math half of a dual instruction.
    unfinished: bool,
    /// The braces on the first line of the instruction. The assembler parses these braces after the second line. Only
    /// the second line shows whether the instruction is dual.
    braces: Option<Braces>,
}

/// The text after an opening brace, and the byte offset of that text.
struct Braces {
    text: String,
    at: usize,
}

#[derive(Default)]
struct Assembler {
    records: Vec<Record>,
    stated: Stated,
}

const UNIT: Directives = Directives {
    slots: SLOTS,
    constant: ("a constant", CONSTANTS),
    state: &STATE,
    elsewhere: &["VAP_"],
    numbered: false,
    directives: DIRECTIVES,
};

/// The directives of programs of the vertex unit.
#[rustfmt::skip]
pub(crate) const DIRECTIVES: &[DirectiveRow] = &[
    DirectiveRow::new(".isa", "r500", "the machine"),
    DirectiveRow::new(".stage", "vertex", "a program of the vertex unit"),
    DirectiveRow::new(".chip", "NAME", "the chip"),
    DirectiveRow::new(".base", "N", "slot of the first instruction"),
    DirectiveRow::new(".const", "N X Y Z W", "constant"),
    DirectiveRow::new(".state", "REGISTER VALUE", "a state register"),
    DirectiveRow::new(".word", "W0 W1 W2 W3", "an instruction as words"),
    DirectiveRow::new(".data", "WORD", "a word that is not a whole instruction"),
];

impl Assembler {
    fn line(&mut self, mut cursor: Cursor<'_>) -> Parsed<()> {
        if cursor.at_end() {
            return Ok(());
        }
        let at = cursor.offset();
        if cursor.peek() == Some('.') {
            return self.directive(&mut cursor, at);
        }
        if cursor.eat("+") {
            return self.math_half(&mut cursor, at);
        }
        if !self.stated.data.is_empty() {
            return Err(Diagnostic::error(cursor.here(), "an instruction after .data").help(
                ".data must come after all instructions, because it holds words that are not a whole \
                     instruction",
            ));
        }
        let record = instruction(&mut cursor, at)?;
        self.records.push(record);
        Ok(())
    }

    /// Parses a math half and adds this half to the previous instruction.
    fn math_half(&mut self, cursor: &mut Cursor<'_>, at: usize) -> Parsed<()> {
        let alone = || {
            Diagnostic::error(cursor.since(at), "a math half must follow an operation of the vector engine")
                .help("expected `VE_ADD t0 = i0, i0`, then `+ ME_SIN at0.x = t1.x`")
        };
        let vector = |record: &&mut Record| record.words[0] >> 6 & 3 == 0 && record.words[0] >> 28 & 1 == 0;
        let Some(record) = self.records.last_mut().filter(vector) else { return Err(alone()) };
        if record.given == [true; 3] {
            return Err(Diagnostic::error(cursor.here(), "the previous operation has three operands")
                .help("a dual instruction has two operands in its vector half"));
        }
        let here = cursor.here();
        let (op, saturate) = mnemonic(cursor)?;
        let Op::Math(op) = op else {
            return Err(Diagnostic::error(here, "the second operation must be one of the math engine"));
        };
        let here = cursor.here();
        let dst = read_destination(cursor)?;
        let channel = [1, 2, 4, 8].iter().position(|mask| *mask == dst.mask);
        let (Some(channel), "at", Mode::Absolute, 0..=3) = (channel, dst.file, dst.mode, dst.register) else {
            return Err(Diagnostic::error(here, "a math half writes one channel of at0 to at3"));
        };
        equals(cursor)?;
        let operand = read_operand(cursor, 2)?;
        end(cursor)?;
        let mut word = operand.word(&DualMath::INFO);
        let mut set = |name: &str, value: u32| word = field(&DualMath::INFO, name).set(word, value);
        set("opcode", op as u32 & 15);
        set("opcode_msb", op as u32 >> 4);
        set("dst_offset", u32::from(dst.register));
        set("we_sel", channel as u32);
        set("swizzle_x", operand.select[0] as u32);
        set("swizzle_y", operand.select[1] as u32);
        set("modifier", u32::from(operand.negate));
        record.words[3] = word;
        record.words[0] |= 1 << 28 | u32::from(saturate) << 25;
        Ok(())
    }

    fn directive(&mut self, cursor: &mut Cursor<'_>, start: usize) -> Parsed<()> {
        cursor.eat(".");
        let name = format!(".{}", cursor.word());
        let span = cursor.since(start);
        match name.as_str() {
            ".isa" | ".stage" => {
                let at = cursor.here();
                let fits = if name == ".isa" { "r500" } else { "vertex" };
                let found = cursor.token();
                if found != fits {
                    return Err(Diagnostic::error(
                        at,
                        format!("this is the assembler of r500's vertex unit, not of {found}"),
                    )
                    .help(format!("expected `{fits}`")));
                }
            }
            ".word" => {
                let words = words(cursor)?;
                let (given, unfinished, braces) = ([true; 3], false, None);
                self.records.push(Record { words, at: start, given, unfinished, braces });
            }
            _ => self.stated.directive(cursor, &UNIT, &name, span)?,
        }
        end(cursor)
    }

    fn finish(mut self, mut errors: Vec<Diagnostic>) -> Result<Assembled, Vec<Diagnostic>> {
        for record in &mut self.records {
            let dual = is_dual(record.words[0]);
            if record.unfinished && !dual {
                let error = Diagnostic::error(source_span(record.at), "the operation needs a third operand");
                errors.push(error.help("expected a comma and an operand"));
            }
            record.words = with_ignored(record.words, record.given, dual);
            if let Some(braces) = record.braces.take()
                && let Err(error) = read_braces(&braces, dual, &mut record.words)
            {
                errors.push(error);
            }
        }
        let base = self.stated.base as usize;
        if self.records.len() + base > SLOTS {
            let at = self.records.get(SLOTS.saturating_sub(base)).map_or(0, |record| record.at);
            let message = format!("{} instructions do not fit: there are {SLOTS} slots", self.records.len());
            errors.push(Diagnostic::error(source_span(at), message));
        }
        if !errors.is_empty() {
            Diagnostic::sort(&mut errors);
            return Err(errors);
        }
        let words = self.records.iter().map(|record| record.words);
        let mut assembled = self.stated.assembled(words, self.records.iter().map(|record| record.at));
        assembled.program.stage = Some(Stage::Vertex);
        Ok(assembled)
    }
}

fn source_span(at: usize) -> Span {
    Span::new(at, at)
}

// ---- Instructions

fn instruction(cursor: &mut Cursor<'_>, at: usize) -> Parsed<Record> {
    let mut head = 0;
    let mut set = |name: &str, value: u32| head = field(&DstOperand::INFO, name).set(head, value);
    if cursor.eat("(") {
        let sense = !cursor.eat("!");
        if !cursor.eat_word("p") || !cursor.eat(")") {
            return Err(expected(cursor, "expected a predicate", "write (p) or (!p)"));
        }
        set("pred_enable", 1);
        set("pred_sense", u32::from(sense));
    }
    let (op, saturate) = mnemonic(cursor)?;
    let operands = op.operation().operands;
    let math = matches!(op, Op::Math(_));
    set("opcode", op.names().1);
    set("math_inst", u32::from(math));
    set("macro_inst", u32::from(matches!(op, Op::Macro(_))));
    set(if math { "me_sat" } else { "ve_sat" }, u32::from(saturate));
    let nothing = op.operation().operands == [false; 3] && !op.operation().sets_predicate();
    if !(nothing && (cursor.at_end() || cursor.peek() == Some('{'))) {
        let here = cursor.here();
        let dst = read_destination(cursor)?;
        let file = file(dst.file, here, DstType::ALL, destination, "written")?;
        if dst.register > 127 {
            return Err(Diagnostic::error(here, "a destination register is 0 to 127"));
        }
        set("reg_type", file as u32);
        set("offset", u32::from(dst.register));
        set("we", u32::from(dst.mask));
        put_mode(dst.mode, &DstOperand::INFO, &mut head);
    }
    let mut words = [head, 0, 0, 0];
    let (mut given, mut unfinished) = ([false; 3], false);
    let mut first = true;
    for number in (0..3).filter(|number| operands[*number]) {
        if first {
            equals(cursor)?;
        } else if !cursor.eat(",") {
            // The text may omit the third operand, because a math half can replace this operand.
            if number == 2 && matches!(op, Op::Vector(_)) {
                unfinished = true;
                break;
            }
            return Err(expected(
                cursor,
                format!("{} needs another operand", op.name()),
                "expected a comma and an operand",
            ));
        }
        first = false;
        words[number + 1] = read_operand(cursor, 4)?.source_word();
        given[number] = true;
    }
    let braces = match cursor.eat("{") {
        true => Some(Braces { at: cursor.offset(), text: cursor.skip_space().rest().to_owned() }),
        false => {
            end(cursor)?;
            None
        }
    };
    Ok(Record { words, at, given, unfinished, braces })
}

fn mnemonic(cursor: &mut Cursor<'_>) -> Parsed<(Op, bool)> {
    let start = cursor.offset();
    let name = cursor.word();
    if let Some(op) = operation(name) {
        return Ok((op, false));
    }
    let bare = name.strip_suffix(SATURATE).and_then(operation);
    bare.map(|op| (op, true)).ok_or_else(|| {
        Diagnostic::error(cursor.since(start), format!("unknown operation `{name}`"))
            .help(suggest(name, operations()))
    })
}

fn put_mode(mode: Mode, info: &WordInfo, word: &mut u32) {
    let mut set = |name: &str, value: u32| *word = field(info, name).set(*word, value);
    match mode {
        Mode::Absolute => {}
        Mode::A0(component) => {
            set("addr_mode_0", 1);
            set("addr_sel", component as u32);
        }
        Mode::Loop => set("addr_mode_1", 1),
    }
}

/// Returns the register file with this name.
fn file<T: Copy>(
    name: &str,
    here: Span,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
    done: &str,
) -> Parsed<T> {
    all.iter().copied().find(|file| name_of(*file) == name).ok_or_else(|| {
        let names = all.iter().map(|file| name_of(*file)).collect::<Vec<_>>();
        Diagnostic::error(here, format!("`{name}` cannot be {done}")).help(suggest(name, names))
    })
}

/// Parses a register: file, number and addressing mode.
fn read_register<'a>(cursor: &mut Cursor<'a>) -> Parsed<(&'a str, u8, Mode)> {
    let here = cursor.clone();
    let word = cursor.word();
    let digits = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
    let (file, rest) = word.split_at(digits);
    let wrong = || {
        Diagnostic::error(here.here(), format!("`{word}` is not a register"))
            .help("a register is t0, at0, i0, c0, o0 or a0, or relative: c[3+a0.x], c[3+aL]")
    };
    if !rest.is_empty() {
        let register = rest.parse().map_err(|_| wrong())?;
        return Ok((file, register, Mode::Absolute));
    }
    if file.is_empty() || !cursor.eat("[") {
        return Err(wrong());
    }
    let register = number(cursor, "a register", 255)? as u8;
    if !cursor.eat("+") {
        return Err(expected(cursor, "expected what is added", "write +a0.x or +aL"));
    }
    let here = cursor.here();
    let mode = match cursor.word() {
        "aL" => Mode::Loop,
        "a0" if cursor.eat(".") => {
            let here = cursor.here();
            let component = cursor.word();
            let component = CHANNELS.iter().position(|letter| component.chars().eq([*letter]));
            let unknown = || Diagnostic::error(here, "a component of A0 is x, y, z or w");
            Mode::A0(Component::ALL[component.ok_or_else(unknown)?])
        }
        _ => return Err(Diagnostic::error(here, "this cannot be added").help("expected a0.x or aL")),
    };
    sign(cursor, "]", "expected ]")?;
    Ok((file, register, mode))
}

struct Destination<'a> {
    file: &'a str,
    register: u8,
    mode: Mode,
    mask: u8,
}

fn read_destination<'a>(cursor: &mut Cursor<'a>) -> Parsed<Destination<'a>> {
    let (file, register, mode) = read_register(cursor)?;
    let mut mask = 15;
    if cursor.eat(".") {
        let here = cursor.here();
        let letters = cursor.word();
        mask = 0;
        for letter in letters.chars().filter(|_| letters != "_") {
            let channel = CHANNELS.iter().position(|known| *known == letter);
            let channel = channel.filter(|channel| mask >> channel == 0).ok_or_else(|| {
                Diagnostic::error(here, format!("`{letters}` is not a write mask"))
                    .help("expected letters of xyzw in order, or _ for none")
            })?;
            mask |= 1 << channel;
        }
    }
    Ok(Destination { file, register, mode, mask })
}

impl Operand {
    /// Encodes the fields that exist in both kinds of words: ordinary source words, and the word of a math half.
    fn word(&self, info: &WordInfo) -> u32 {
        let mut word = 0;
        let mut set = |name: &str, value: u32| word = field(info, name).set(word, value);
        set("reg_type", self.file as u32);
        set("offset", u32::from(self.register));
        set("abs_xyzw", u32::from(self.abs));
        put_mode(self.mode, info, &mut word);
        word
    }

    fn source_word(&self) -> u32 {
        let mut word = self.word(&SrcOperand::INFO);
        let mut set = |name: &str, value: u32| word = field(&SrcOperand::INFO, name).set(word, value);
        let swizzle = ["swizzle_x", "swizzle_y", "swizzle_z", "swizzle_w"];
        swizzle.into_iter().zip(self.select).for_each(|(name, select)| set(name, select as u32));
        set("modifier", u32::from(self.negate));
        word
    }
}

/// Parses an operand with `count` channels.
fn read_operand(cursor: &mut Cursor<'_>, count: usize) -> Parsed<Operand> {
    let all = (1u8 << count) - 1;
    let mut negate = if cursor.eat("-") { all } else { 0 };
    let abs = cursor.eat("|");
    let here = cursor.here();
    let (name, register, mode) = read_register(cursor)?;
    let file = file(name, here, SrcType::ALL, source_name, "read")?;
    if abs {
        sign(cursor, "|", "expected |")?;
    }
    let mut select = [Select::X, Select::Y, Select::Z, Select::W];
    if cursor.eat(".") {
        let here = cursor.here();
        let wrong = || {
            Diagnostic::error(here, "this is not a choice of channels")
                .help(format!("expected 1 or {count} of x, y, z, w, 0, 1, _ and r, each with or without -"))
        };
        let mut read = Vec::new();
        loop {
            let minus = cursor.eat("-");
            for (place, letter) in cursor.word().chars().enumerate() {
                let select = Select::ALL.iter().copied().find(|select| self::letter(*select) == letter);
                read.push((select.ok_or_else(wrong)?, minus && place == 0));
            }
            if cursor.peek() != Some('-') {
                break;
            }
        }
        match read[..] {
            [(one, minus)] => {
                select[..count].fill(one);
                negate ^= if minus { all } else { 0 };
            }
            _ if read.len() == count => {
                for (number, (one, minus)) in read.into_iter().enumerate() {
                    select[number] = one;
                    negate ^= u8::from(minus) << number;
                }
            }
            _ => return Err(wrong()),
        }
    } else if count < 4 {
        return Err(expected(cursor, "expected the channels of two scalars", "write .x or .xy"));
    }
    Ok(Operand { file, register, mode, select, abs, negate })
}

/// Parses text in braces, such as `{WORD=operand WORD.FIELD=value WORD|=bits}`. Braces set fields that the ordinary
/// syntax cannot express.
fn read_braces(braces: &Braces, dual: bool, words: &mut [u32; WORDS]) -> Parsed<()> {
    let mut cursor = Cursor::new(&braces.text, braces.at);
    loop {
        if cursor.eat("}") {
            return end(&cursor);
        }
        let word = place(&mut cursor, WORD_NAMES, |_| "expected a word or `}`".to_owned())?;
        if cursor.eat("|=") {
            words[word] |= self::word(&mut cursor, "the bits to set")?;
        } else if cursor.eat(".") {
            let unknown = |name: &str| format!("unknown field `{name}`");
            let field = read_field(&mut cursor, &layout(dual)[word], unknown)?;
            words[word] = assigned_field(&mut cursor, field, words[word])?;
        } else if word > 0 && cursor.eat("=") {
            words[word] = read_operand(&mut cursor, 4)?.source_word();
        } else {
            return Err(expected(&cursor, "expected a field", "write A.FIELD=VALUE, A=OPERAND or A|=BITS"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_error(source: &str) -> String {
        assemble(source).unwrap_err()[0].to_string()
    }

    #[test]
    fn messages_say_what_fits() {
        assert!(first_error("VE_AD t0 = i0, i0").contains("did you mean `VE_ADD`?"));
        assert!(first_error("VE_ADD c0 = i0, i0").contains("`c` cannot be written"));
        assert!(first_error("VE_ADD t0 = o0, i0").contains("`o` cannot be read"));
        assert!(first_error("VE_ADD t0.yx = i0, i0").contains("not a write mask"));
        assert!(first_error("VE_ADD t0 = i0.xyq, i0").contains("not a choice of channels"));
        assert!(first_error("VE_ADD t0 = i0").contains("needs another operand"));
        assert!(first_error("VE_MULTIPLY_ADD t0 = i0, i0").contains("needs a third operand"));
        assert!(first_error("+ ME_SIN at0.x = t0.x").contains("must follow an operation"));
        assert!(first_error("VE_ADD t0 = i0, i0\n + ME_SIN at4.x = t0.x").contains("at0 to at3"));
        assert!(first_error(".stage fragment").contains("expected `vertex`"));
        assert!(first_error(".state VAP_PVS_CONST_CNTL PVS_MAX=3").contains("has no field"));
        assert!(first_error("VE_ADD t0 = i0, i0 {X=1}").contains("expected a word"));
    }

    #[test]
    fn state_and_constants_are_directives() {
        let source = ".stage vertex\n.base 3\n.state VAP_PVS_CONST_CNTL PVS_CONST_BASE_OFFSET=1 PVS_MAX_CONST_ADDR=9\n\
                      .state VAP_PVS_FLOW_CNTL_OPC 0x2\n.const 1 1.0 -2.5 0.1 0.0\nVECTOR_NO_OP\n";
        let program = assemble(source).unwrap().program;
        assert_eq!((program.base, program.state("VAP_PVS_CONST_CNTL")), (3, Some(0x0009_0001)));
        assert_eq!(super::super::disassemble(&program, super::super::Listing::default()), source);
    }
}
