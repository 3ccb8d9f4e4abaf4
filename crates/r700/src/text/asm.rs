//! Text to words.

use std::collections::HashMap;

use reconverge_isa::source::{lines, parse_number, suggest};
use reconverge_isa::{Diagnostic, Span};

use super::attr::{self, Attr};
use super::dis::{export_kinds, is_fetch_clause, mem_attrs};
use super::{CHANS, INDEXES, INLINE, LITERAL, OP3, SELECTS, literal_pairs, op2_rows, op2_shift};
use crate::chip::{CHIPS, Chip, Family};

use crate::words::{AluForm4, CfInst, ExportInst, MemOp, TexInst};

/// What a text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The program, 32-bit words in memory order.
    pub words: Vec<u32>,
    /// The chip of `.chip`, or the one given.
    pub chip: Chip,
    /// State directives in order: name without the dot, numbers.
    pub state: Vec<(String, Vec<u32>)>,
}

/// The words of `source`, for `chip` unless the text names another.
///
/// # Errors
/// Everything in the text that has no meaning, each with its place.
pub fn assemble(source: &str, chip: Chip) -> Result<Assembled, Vec<Diagnostic>> {
    let mut asm = Asm {
        chip,
        state: Vec::new(),
        cf: Vec::new(),
        data: Vec::new(),
        tail: None,
        at: 0,
        labels: HashMap::new(),
        pending_labels: Vec::new(),
        group: Group::default(),
        faults: Vec::new(),
    };
    for (offset, line) in lines(source) {
        if let Err(fault) = asm.line(&tokens(line, offset)) {
            asm.faults.push(fault);
        }
    }
    asm.finish()
}

type Parse<T> = Result<T, Diagnostic>;

/// A word of a line: cut at spaces and commas outside of brackets.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    span: Span,
    comma: bool,
}

fn tokens(line: &str, offset: usize) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut start, mut depth) = (None, 0_i32);
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let cut = (depth <= 0 && (c == ',' || c.is_whitespace())) || at == line.len();
        if cut {
            if let Some(from) = start.take() {
                let from: usize = from;
                let span = Span::new(offset + from, offset + at);
                found.push(Token { text: &line[from..at], span, comma: false });
            }
            if c == ','
                && let Some(token) = found.last_mut()
            {
                let token: &mut Token<'_> = token;
                token.comma = true;
            }
        } else {
            start = start.or(Some(at));
            depth += i32::from(c == '(' || c == '[') - i32::from(c == ')' || c == ']');
        }
    }
    found
}

/// A control-flow word and the clause written behind it.
struct Cf {
    addr: usize,
    words: [u32; 2],
    span: Span,
    /// ADDR was written.
    placed: bool,
    /// CNT was written.
    counted: bool,
    label: Option<(String, Span)>,
    body: Vec<u32>,
}

/// The group that is being read.
#[derive(Default)]
struct Group {
    words: Vec<[u32; 2]>,
    literals: [Option<u32>; 4],
    /// Literals that still need a component: instruction, source, value, place.
    loose: Vec<(usize, usize, u32, Span)>,
}

struct Asm {
    chip: Chip,
    state: Vec<(String, Vec<u32>)>,
    cf: Vec<Cf>,
    data: Vec<(usize, [u32; 2], Span)>,
    tail: Option<u32>,
    at: usize,
    labels: HashMap<String, usize>,
    pending_labels: Vec<String>,
    group: Group,
    faults: Vec<Diagnostic>,
}

/// The largest program: 22 bits of clause address.
const LIMIT: usize = 1 << 22;

fn wrong(token: Token<'_>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(token.span, message).label(format!("found `{}`", token.text))
}

fn number(token: Token<'_>, max: u32) -> Parse<u32> {
    match parse_number(token.text) {
        Some(value) if value <= u64::from(max) => Ok(value as u32),
        Some(_) => Err(wrong(token, format!("the number is larger than {max}"))),
        None => Err(wrong(token, "a number was expected").help(format!("0 to {max} fits here"))),
    }
}

fn chan_of(text: &str) -> Option<u32> {
    (text.len() == 1).then(|| CHANS.find(text)).flatten().map(|at| at as u32)
}

/// `NAME(inner)`, or the name alone.
fn call<'a>(token: Token<'a>) -> (&'a str, Option<Token<'a>>) {
    match token.text.split_once('(') {
        Some((name, rest)) => {
            let start = token.span.start + name.len() + 1;
            let inner = rest.strip_suffix(')').unwrap_or(rest);
            (name, Some(Token { text: inner, span: Span::new(start, start + inner.len()), comma: false }))
        }
        None => (token.text, None),
    }
}

impl Asm {
    fn line(&mut self, tokens: &[Token<'_>]) -> Parse<()> {
        let Some(&first) = tokens.first() else { return Ok(()) };
        if let Some(name) = first.text.strip_prefix('.') {
            return self.directive(name, first, &tokens[1..]);
        }
        if let Some(name) = first.text.strip_prefix('@').and_then(|name| name.strip_suffix(':')) {
            self.pending_labels.push(name.to_owned());
            return Ok(());
        }
        let numbered = parse_number(first.text).filter(|_| tokens.len() > 1);
        let rest = if numbered.is_some() { &tokens[1..] } else { tokens };
        let Some(&head) = rest.first() else { return Ok(()) };
        match head.text {
            "x:" | "y:" | "z:" | "w:" | "t:" | "?:" => {
                if numbered.is_some() {
                    self.close_group()?;
                }
                self.alu(&rest[1..], head)
            }
            text if text.ends_with(':') => {
                self.close_group()?;
                let addr = match numbered {
                    Some(addr) if addr < LIMIT as u64 => addr as usize,
                    Some(_) => return Err(wrong(first, "the address is beyond any program")),
                    None => self.cf.last().map_or(0, |cf| cf.addr + 1),
                };
                for label in std::mem::take(&mut self.pending_labels) {
                    self.labels.insert(label, addr);
                }
                // Kept even when wrong, so that what follows is judged in its place.
                self.cf.push(Cf {
                    addr,
                    words: [0, 0],
                    span: head.span,
                    placed: false,
                    counted: false,
                    label: None,
                    body: Vec::new(),
                });
                self.control(head, &rest[1..])
            }
            _ => self.fetch(head, &rest[1..]),
        }
    }

    fn directive(&mut self, name: &str, at: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        const ALL: [&str; 15] = [
            "chip", "stage", "gprs", "stack", "const", "loop", "bool", "state", "org", "word", "zero",
            "dword", "slot", "literal", "start",
        ];
        let arg = |index: usize| {
            rest.get(index).copied().ok_or_else(|| wrong(at, format!(".{name} needs more operands")))
        };
        match name {
            "chip" => {
                let chip = arg(0)?;
                self.chip = Chip::named(chip.text).ok_or_else(|| {
                    wrong(chip, "unknown chip").help(suggest(chip.text, CHIPS.iter().map(|chip| chip.name)))
                })?;
            }
            "stage" | "gprs" | "stack" | "const" | "loop" | "bool" | "state" | "start" => {
                let (mut key, mut values) = (name.to_owned(), Vec::new());
                for (index, token) in rest.iter().enumerate() {
                    if index == 0 && matches!(name, "stage" | "state") {
                        key = format!("{name} {}", token.text);
                    } else {
                        values.push(number(*token, u32::MAX)?);
                    }
                }
                self.state.push((key, values));
            }
            "org" => self.at = number(arg(0)?, LIMIT as u32)? as usize,
            "word" => {
                let words = [number(arg(0)?, u32::MAX)?, number(arg(1)?, u32::MAX)?];
                self.data.push((self.at, words, at.span));
                self.at += 1;
            }
            "zero" => {
                let count = number(arg(0)?, LIMIT as u32)? as usize;
                if self.at + count > LIMIT {
                    return Err(wrong(at, "the address is beyond any program"));
                }
                for _ in 0..count {
                    self.data.push((self.at, [0, 0], at.span));
                    self.at += 1;
                }
            }
            "dword" => self.tail = Some(number(arg(0)?, u32::MAX)?),
            "slot" => {
                let words = [number(arg(0)?, u32::MAX)?, number(arg(1)?, u32::MAX)?];
                self.close_group()?;
                let body = self.body(at, true)?;
                body.extend(words);
            }
            "literal" => {
                let chan = chan_of(arg(0)?.text)
                    .ok_or_else(|| wrong(at, "a component x, y, z or w was expected"))?;
                self.group.literals[chan as usize] = Some(number(arg(1)?, u32::MAX)?);
            }
            _ => return Err(wrong(at, "unknown directive").help(suggest(name, ALL))),
        }
        Ok(())
    }

    /// The clause that lines are being added to; `alu` says of which kind they are.
    fn body(&mut self, at: Token<'_>, alu: bool) -> Parse<&mut Vec<u32>> {
        let cf =
            self.cf.last_mut().ok_or_else(|| wrong(at, "no control-flow instruction stands before this"))?;
        // A word of zeros is an instruction that has its message already.
        if cf.words != [0, 0] && (cf.words[1] >> 29 & 1 != 0) != alu {
            let kind = if alu { "an ALU" } else { "a TEX or VTX" };
            return Err(wrong(at, format!("this stands in {kind} clause only")));
        }
        Ok(&mut cf.body)
    }

    fn control(&mut self, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let name = head.text.trim_end_matches(':');
        let family = self.chip.family;
        let unassigned = |prefix: &str, max: u64| {
            name.strip_prefix(prefix)
                .and_then(parse_number)
                .filter(|value| *value <= max)
                .map(|value| value as u32)
        };
        let form = AluForm4::ALL.iter().find(|form| form.name() == name).map(|form| *form as u32);
        if let Some(form) = form.or_else(|| unassigned("ALU_", 15).filter(|form| *form > 7)) {
            let bit_25 = &attr::ALU_BIT_25[usize::from(family == Family::R700)];
            return self.fields(rest, [0, form << 26], &[std::slice::from_ref(bit_25), attr::CF_ALU]);
        }
        if let Some(inst) = ExportInst::ALL.iter().find(|inst| inst.name() == name) {
            return self.export(*inst, head, rest);
        }
        let inst = CfInst::ALL.iter().find(|inst| inst.name() == name).map(|inst| *inst as u32);
        let Some(inst) = inst.or_else(|| unassigned("CF_", 63)) else {
            let known = CfInst::ALL.iter().map(|inst| inst.name());
            let known = known.chain(ExportInst::ALL.iter().map(|inst| inst.name()));
            let known = known.chain(AluForm4::ALL.iter().map(|form| form.name()));
            return Err(wrong(head, "unknown control-flow instruction").help(suggest(name, known)));
        };
        self.fields(rest, [0, inst << 23], &[attr::CF])
    }

    /// ADDR, CNT, KCACHE and attributes of the last control-flow word.
    fn fields(&mut self, rest: &[Token<'_>], mut words: [u32; 2], tables: &[&[Attr]]) -> Parse<()> {
        let family = self.chip.family;
        let alu = words[1] >> 29 & 1 != 0;
        usual(tables, &mut words);
        let (mut placed, mut counted, mut label) = (false, false, None);
        for &token in rest {
            let (name, inner) = call(token);
            match (name, inner) {
                ("ADDR", Some(value)) => {
                    placed = true;
                    match value.text.strip_prefix('@') {
                        Some(target) => label = Some((target.to_owned(), value.span)),
                        None => words[0] |= number(value, if alu { 0x3f_ffff } else { u32::MAX })?,
                    }
                }
                ("CNT", Some(value)) => {
                    counted = true;
                    let max = if alu {
                        128
                    } else if family == Family::R700 {
                        16
                    } else {
                        8
                    };
                    let count = number(value, max)?
                        .checked_sub(1)
                        .ok_or_else(|| wrong(value, "a count is at least 1"))?;
                    words[1] |= count_field(count, alu);
                }
                ("KCACHE0" | "KCACHE1", Some(value)) if alu => {
                    let (bank, line, mode) = kcache(value)?;
                    if name == "KCACHE0" {
                        words[0] |= bank << 22 | mode << 30;
                        words[1] |= line << 2;
                    } else {
                        words[0] |= bank << 26;
                        words[1] |= mode | line << 10;
                    }
                }
                _ => attribute(token, tables, &mut words, &["ADDR(…)", "CNT(…)"])?,
            }
        }
        if let Some(cf) = self.cf.last_mut() {
            (cf.words, cf.placed, cf.counted, cf.label) = (words, placed, counted, label);
        }
        Ok(())
    }

    fn export(&mut self, inst: ExportInst, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let swizzle = matches!(inst, ExportInst::EXPORT | ExportInst::EXPORT_DONE);
        let [target, data, rest @ ..] = rest else {
            return Err(wrong(head, "a target and a register were expected")
                .help("as in `EXPORT_DONE: PIXEL[0], R0.xyzw`"));
        };
        let kinds = export_kinds(swizzle, self.chip.family);
        let (kind, base) = target.text.split_once('[').unwrap_or((target.text, ""));
        let Some(code) = kinds.iter().position(|known| *known == kind) else {
            return Err(wrong(*target, "unknown kind of export").help(suggest(kind, kinds)));
        };
        let base = number(Token { text: base.trim_end_matches(']'), ..*target }, 0x1fff)?;
        let (register, select) = data.text.rsplit_once('.').unwrap_or((data.text, "xyzw"));
        let gpr = register.strip_prefix('R').and_then(parse_number).filter(|gpr| *gpr < 128);
        let gpr = gpr.ok_or_else(|| wrong(*data, "a register R0 to R127 was expected"))? as u32;
        let mut words = [base | (code as u32) << 13 | gpr << 15, (inst as u32) << 23];
        let table = if swizzle {
            words[1] |= select_of(select, *data)?;
            attr::EXPORT
        } else {
            for (chan, letter) in select.chars().enumerate() {
                match CHANS.find(letter) {
                    Some(at) if at == chan => words[1] |= 1 << (12 + chan),
                    None if letter == '_' && chan < 4 => {}
                    Some(_) | None => {
                        return Err(wrong(*data, "a component mask is written in order, as x_zw"));
                    }
                }
            }
            attr::MEMORY
        };
        usual(&[table], &mut words);
        for &token in rest {
            attribute(token, &[table], &mut words, &[])?;
        }
        if let Some(cf) = self.cf.last_mut() {
            cf.words = words;
        }
        Ok(())
    }

    fn alu(&mut self, rest: &[Token<'_>], slot: Token<'_>) -> Parse<()> {
        let family = self.chip.family;
        let Some(&head) = rest.first() else {
            return Err(wrong(slot, "an instruction was expected"));
        };
        let rows = op2_rows(family);
        let op2 = |name: &str| rows.iter().position(|row| row.is_some_and(|row| row.name == name));
        let op3 = |name: &str| OP3.iter().position(|row| row.is_some_and(|row| row.name == name));
        let raw = |prefix: &str, max: u64| {
            head.text.strip_prefix(prefix).and_then(parse_number).filter(|n| *n <= max)
        };
        let shift = op2_shift(family);
        let (mut words, sources, table) = if let Some(code) = op2(head.text) {
            let sources = rows[code].map_or(2, |row| row.sources);
            ([0, (code as u32) << shift], sources, attr::op2(family))
        } else if let Some(code) = op3(head.text) {
            ([0, (code as u32) << 13], 3, attr::OP3)
        } else if let Some(code) = raw("OP2_", u64::from(0x7fffu32 >> shift)) {
            ([0, (code as u32) << shift], 2, attr::op2(family))
        } else if let Some(code) = raw("OP3_", 31).filter(|code| *code >= 4) {
            ([0, (code as u32) << 13], 3, attr::OP3)
        } else {
            let known = rows.iter().chain(OP3.iter()).flatten().map(|row| row.name);
            return Err(wrong(head, "unknown ALU instruction").help(suggest(head.text, known)));
        };
        let is_op3 = words[1] >> 15 & 7 != 0;
        let Some((operands, attributes)) = rest[1..].split_at_checked(usize::from(sources) + 1) else {
            return Err(wrong(head, format!("{} has a destination and {sources} sources", head.text)));
        };
        let mut index = None;
        let (target, chan) = split_chan(operands[0])?;
        let (masked, register) = match target.strip_prefix('_') {
            Some(register) if !is_op3 => (true, register),
            Some(_) => return Err(wrong(operands[0], "a three-operand instruction always writes")),
            None => (false, target),
        };
        if !(masked && register.is_empty()) {
            let Some((gpr, rel)) = indexed(register, "R", &mut index).filter(|(gpr, _)| *gpr < 128) else {
                return Err(wrong(operands[0], "a register R0 to R127 was expected"));
            };
            words[1] |= gpr << 21 | u32::from(rel) << 28;
        }
        let slot_chan = CHANS.find(&slot.text[..1]).map(|at| at as u32);
        if slot_chan.is_some_and(|slot| slot != chan) {
            return Err(wrong(slot, "the slot and the destination's component differ"));
        }
        words[1] |= chan << 29;
        if !is_op3 && !masked {
            words[1] |= 1 << 4;
        }
        let at = self.group.words.len();
        for (place, &token) in operands[1..].iter().enumerate() {
            let (raw, abs) = self.source(token, &mut index, (at, place))?;
            if abs && is_op3 {
                return Err(wrong(token, "a three-operand instruction has no absolute values"));
            }
            match place {
                0 => words[0] |= raw,
                1 => words[0] |= raw << 13,
                _ => words[1] |= raw,
            }
            if abs {
                words[1] |= 1 << place;
            }
        }
        words[0] |= index.unwrap_or(0) << 26;
        for &token in attributes {
            attribute(token, &[table], &mut words, &[])?;
        }
        self.body(head, true)?;
        self.group.words.push(words);
        Ok(())
    }

    /// An operand: its thirteen bits, and whether it is an absolute value.
    fn source(
        &mut self,
        token: Token<'_>,
        index: &mut Option<u32>,
        place: (usize, usize),
    ) -> Parse<(u32, bool)> {
        let fault = || {
            wrong(token, "an operand was expected")
                .help("a register, KC0[n].x, a constant, PV.x or PS fits here")
        };
        let mut text = token.text;
        let mut negative = 0;
        if text != "-1"
            && !text.starts_with("-1.x")
            && !is_minus_one(text)
            && let Some(rest) = text.strip_prefix('-')
        {
            (negative, text) = (1 << 12, rest);
        }
        let mut abs = false;
        if let Some(rest) = text.strip_prefix('|') {
            (abs, text) = (true, rest.strip_suffix('|').ok_or_else(fault)?);
        }
        let (mut body, mut chan) = (text, None);
        if let Some((front, last)) = text.rsplit_once('.')
            && let Some(found) = chan_of(last)
        {
            (body, chan) = (front, Some(found));
        }
        let raw = |selector: u32, rel: bool, chan: Option<u32>| {
            Ok((selector | u32::from(rel) << 9 | chan.unwrap_or(0) << 10 | negative, abs))
        };
        let plain = body.strip_prefix('(').and_then(|body| body.strip_suffix(')')).unwrap_or(body);
        if let Some((selector, _)) = INLINE.iter().find(|(_, name)| *name == plain) {
            return raw(*selector, false, chan);
        }
        if body == "PV" {
            return raw(254, false, Some(chan.ok_or_else(fault)?));
        }
        for (prefix, first, count) in
            [("KC0", 128, 32), ("KC1", 160, 32), ("C", 256, 256), ("R", 0, 128), ("SEL", 0, 512)]
        {
            if let Some((number, rel)) = indexed(body, prefix, index) {
                if number >= count {
                    return Err(wrong(token, format!("{prefix} goes from 0 to {}", count - 1)));
                }
                return raw(first + number, rel, Some(chan.ok_or_else(fault)?));
            }
        }
        let value = literal(plain).ok_or_else(fault)?;
        match chan {
            Some(chan) => match self.group.literals[chan as usize] {
                Some(other) if other != value => {
                    return Err(wrong(token, "the group has another literal in this component"));
                }
                Some(_) | None => self.group.literals[chan as usize] = Some(value),
            },
            None => self.group.loose.push((place.0, place.1, value, token.span)),
        }
        raw(LITERAL, false, chan)
    }

    /// Ends the group: LAST, literals, and into the clause with it.
    fn close_group(&mut self) -> Parse<()> {
        let mut group = std::mem::take(&mut self.group);
        let Some(last) = group.words.last_mut() else { return Ok(()) };
        last[0] |= 1 << 31;
        for (inst, place, value, span) in group.loose {
            let same = |literal: &Option<u32>| *literal == Some(value);
            let chan = group
                .literals
                .iter()
                .position(same)
                .or_else(|| group.literals.iter().position(Option::is_none));
            let chan = chan.ok_or_else(|| Diagnostic::error(span, "a group has four literals at most"))?;
            group.literals[chan] = Some(value);
            let (word, shift) = [(0, 10), (0, 23), (1, 10)][place];
            if let Some(words) = group.words.get_mut(inst) {
                words[word] |= (chan as u32) << shift;
            }
        }
        let pairs = literal_pairs(&group.words);
        if let Some(cf) = self.cf.last_mut() {
            cf.body.extend(group.words.iter().flatten());
            cf.body.extend(group.literals.iter().take(2 * pairs).map(|literal| literal.unwrap_or(0)));
        }
        Ok(())
    }

    fn fetch(&mut self, head: Token<'_>, rest: &[Token<'_>]) -> Parse<()> {
        let family = self.chip.family;
        let count = rest.iter().take_while(|token| token.comma).count() + 1;
        let (operands, attributes) = rest.split_at(count.min(rest.len()));
        let want = |index: usize| {
            operands
                .get(index)
                .copied()
                .ok_or_else(|| wrong(head, format!("{} needs more operands", head.text)))
        };
        let register = |token: Token<'_>| -> Parse<(u32, String)> {
            let (body, tail) = token
                .text
                .rsplit_once('.')
                .filter(|(_, tail)| !tail.contains(']'))
                .unwrap_or((token.text, ""));
            let (gpr, rel) = indexed(body, "R", &mut None)
                .filter(|(gpr, _)| *gpr < 128)
                .ok_or_else(|| wrong(token, "a register R0 to R127 was expected"))?;
            Ok((gpr | u32::from(rel) << 7, tail.to_owned()))
        };
        let id = |token: Token<'_>, prefix: &str, max: u64| {
            let found = token.text.strip_prefix(prefix).and_then(parse_number).filter(|value| *value <= max);
            found
                .map(|value| value as u32)
                .ok_or_else(|| wrong(token, format!("{prefix}0 to {prefix}{max} was expected")))
        };
        let one = |text: &str, token: Token<'_>| {
            chan_of(text).ok_or_else(|| wrong(token, "one component was expected"))
        };
        let mut words = [0_u32; 4];
        let mut tables: Vec<&[Attr]> = Vec::new();
        let tex = TexInst::ALL.iter().find(|inst| inst.name() == head.text).map(|inst| *inst as u32);
        let mem = MemOp::ALL.iter().find(|op| op.name() == head.text).map(|op| *op as u32);
        let mem = mem.or_else(|| {
            head.text.strip_prefix("MEM_").and_then(parse_number).filter(|op| *op < 8).map(|op| op as u32)
        });
        if let Some(inst) = tex {
            let (dst, select) = register(want(0)?)?;
            let (src, coords) = register(want(1)?)?;
            words[0] = inst | src << 16 | id(want(2)?, "t", 255)? << 8;
            words[1] = dst | select_of(&select, want(0)?)? << 9;
            words[2] = select_of(&coords, want(1)?)? << 20 | id(want(3)?, "s", 31)? << 15;
            tables.push(attr::TEX);
            if family == Family::R700 {
                tables.push(std::slice::from_ref(&attr::TEX_ALT));
            }
        } else if matches!(head.text, "FETCH" | "SEMANTIC") {
            let target = want(0)?;
            let select;
            if head.text == "FETCH" {
                let (dst, tail) = register(target)?;
                words[1] = dst;
                select = tail;
            } else {
                let (name, tail) = target.text.split_once('.').unwrap_or((target.text, ""));
                words[0] = 1;
                words[1] = id(Token { text: name, ..target }, "S", 255)?;
                select = tail.to_owned();
            }
            words[1] |= select_of(&select, target)? << 9;
            let (src, chan) = register(want(1)?)?;
            words[0] |= src << 16 | one(&chan, want(1)?)? << 24 | id(want(2)?, "b", 255)? << 8;
            tables.push(attr::VTX);
            if family == Family::R700 {
                tables.push(std::slice::from_ref(&attr::VTX_ALT));
            }
        } else if let Some(op) = mem {
            words[0] = 2 | op << 8;
            if matches!(op, 4 | 6) {
                words[0] |= register(want(0)?)?.0 << 16;
            } else {
                let (dst, select) = register(want(0)?)?;
                let (src, chan) = register(want(1)?)?;
                words[0] |= src << 16 | one(&chan, want(1)?)? << 24;
                words[1] = dst | select_of(&select, want(0)?)? << 9;
            }
            tables.push(mem_attrs(op));
        } else {
            let known =
                TexInst::ALL.iter().map(|inst| inst.name()).chain(MemOp::ALL.iter().map(|op| op.name()));
            return Err(wrong(head, "unknown instruction")
                .help(suggest(head.text, known.chain(["FETCH", "SEMANTIC"]))));
        }
        usual(&tables, &mut words);
        for &token in attributes {
            attribute(token, &tables, &mut words, &[])?;
        }
        self.close_group()?;
        self.body(head, false)?.extend(words);
        Ok(())
    }

    /// Addresses, counts, and everything into one image.
    fn finish(mut self) -> Result<Assembled, Vec<Diagnostic>> {
        if let Err(fault) = self.close_group() {
            self.faults.push(fault);
        }
        let mut end = self.cf.iter().map(|cf| cf.addr + 1).max().unwrap_or(0);
        let pinned = self.cf.iter().filter(|cf| cf.placed && cf.label.is_none() && !cf.body.is_empty());
        end = pinned.map(|cf| cf.words[0] as usize & 0x3f_ffff).fold(end, usize::max).max(end);
        for cf in self.cf.iter().filter(|cf| cf.placed && !cf.body.is_empty()) {
            end = end.max((cf.words[0] as usize & 0x3f_ffff) + cf.body.len() / 2);
        }
        end = self.data.iter().map(|(at, ..)| at + 1).fold(end, usize::max);
        let mut image: Vec<Option<u32>> = Vec::new();
        let mut faults = std::mem::take(&mut self.faults);
        let mut put = |at: usize, words: &[u32], span: Span| {
            if 2 * at + words.len() > 2 * LIMIT {
                faults.push(Diagnostic::error(span, "the address is beyond any program"));
                return;
            }
            if image.len() < 2 * at + words.len() {
                image.resize(2 * at + words.len(), None);
            }
            let place = &mut image[2 * at..2 * at + words.len()];
            if place.iter().any(Option::is_some) {
                faults.push(Diagnostic::error(span, format!("address {at} is used twice")));
            }
            for (place, word) in place.iter_mut().zip(words) {
                *place = Some(*word);
            }
        };
        let mut missing = Vec::new();
        for cf in &mut self.cf {
            let alu = cf.words[1] >> 29 & 1 != 0;
            let clause = alu || is_fetch_clause(cf.words[1]);
            if let Some((label, span)) = &cf.label {
                match self.labels.get(label) {
                    Some(addr) => cf.words[0] |= *addr as u32,
                    None => missing.push(
                        Diagnostic::error(*span, format!("no label `@{label}`"))
                            .help(suggest(label, self.labels.keys().map(String::as_str))),
                    ),
                }
            }
            if !cf.body.is_empty() {
                if !clause {
                    missing.push(Diagnostic::error(cf.span, "this instruction has no clause"));
                }
                let len = cf.body.len() / 2;
                if !cf.placed {
                    end += if alu { 0 } else { end % 2 };
                    cf.words[0] |= end as u32;
                    end += len;
                }
                let count = if alu { len } else { len / 2 };
                if !cf.counted {
                    let max = if alu {
                        128
                    } else if self.chip.family == Family::R700 {
                        16
                    } else {
                        8
                    };
                    if count > max || count == 0 {
                        let message = format!("the clause has {count} instructions or slots; 1 to {max} fit");
                        missing.push(Diagnostic::error(cf.span, message));
                    } else {
                        cf.words[1] |= count_field(count as u32 - 1, alu);
                    }
                }
                let addr = if alu { cf.words[0] & 0x3f_ffff } else { cf.words[0] };
                put(addr as usize, &cf.body, cf.span);
            }
            put(cf.addr, &cf.words, cf.span);
        }
        for (at, words, span) in &self.data {
            put(*at, words, *span);
        }
        faults.extend(missing);
        if !faults.is_empty() {
            faults.sort_by_key(|fault| fault.span.start);
            return Err(faults);
        }
        let mut words: Vec<u32> = image.into_iter().map(|word| word.unwrap_or(0)).collect();
        words.extend(self.tail);
        Ok(Assembled { words, chip: self.chip, state: self.state })
    }
}

/// Where a count (minus one) stands. COUNT_3 follows COUNT at a distance.
fn count_field(count: u32, alu: bool) -> u32 {
    if alu { count << 18 } else { (count & 7) << 10 | (count >> 3) << 19 }
}

/// The inline constant −1, with or without a component, as opposed to a minus sign.
fn is_minus_one(text: &str) -> bool {
    text.strip_prefix("-1.").is_some_and(|rest| chan_of(rest).is_some())
}

/// Every attribute as it is when nothing is written.
fn usual(tables: &[&[Attr]], words: &mut [u32]) {
    for attr in tables.iter().copied().flatten() {
        words[attr.word] |= attr.usual << attr.lo;
    }
}

/// Reads one attribute, or BITS, into `words`.
fn attribute(token: Token<'_>, tables: &[&[Attr]], words: &mut [u32], also: &[&str]) -> Parse<()> {
    let (name, inner) = call(token);
    if let ("BITS", Some(inner)) = (name, inner) {
        for (word, part) in words.iter_mut().zip(inner.text.split(',')) {
            *word |= number(Token { text: part.trim(), ..inner }, u32::MAX)?;
        }
        return Ok(());
    }
    let Some(attr) = tables.iter().copied().flatten().find(|attr| attr.name == name) else {
        let known: Vec<&str> =
            tables.iter().copied().flatten().map(|attr| attr.name).chain(also.iter().copied()).collect();
        return Err(wrong(token, "unknown attribute").help(suggest(name, known)));
    };
    let value = match inner {
        None if attr.bits == 1 => 1 - attr.usual,
        None => return Err(wrong(token, format!("{name} needs a value: {name}(…)"))),
        Some(inner) => match attr.names.iter().position(|known| *known == inner.text && !known.is_empty()) {
            Some(value) => value as u32,
            None => match number(inner, attr.max() + attr.add)?.checked_sub(attr.add) {
                Some(value) => value,
                None => return Err(wrong(inner, "a count is at least 1")),
            },
        },
    };
    words[attr.word] = words[attr.word] & !attr.mask() | value << attr.lo;
    Ok(())
}

/// `name.c`.
fn split_chan(token: Token<'_>) -> Parse<(&str, u32)> {
    let split = token.text.rsplit_once('.').and_then(|(name, chan)| Some((name, chan_of(chan)?)));
    split.ok_or_else(|| wrong(token, "a component was expected").help("as in R0.x"))
}

/// `prefix` and a number, `prefix[n]` or `prefix[n+index]`: the number, and whether an index is added.
fn indexed(text: &str, prefix: &str, index: &mut Option<u32>) -> Option<(u32, bool)> {
    let rest = text.strip_prefix(prefix)?;
    let plain = |text: &str| parse_number(text).and_then(|value| u32::try_from(value).ok());
    let Some(inner) = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Some((plain(rest)?, false));
    };
    match inner.split_once('+') {
        None => Some((plain(inner)?, false)),
        Some((base, by)) => {
            let mode = INDEXES.iter().position(|known| *known == by)? as u32;
            if index.is_some_and(|known| known != mode) {
                return None;
            }
            *index = Some(mode);
            Some((plain(base)?, true))
        }
    }
}

/// Four selects as a twelve-bit field.
fn select_of(text: &str, token: Token<'_>) -> Parse<u32> {
    let fault =
        || wrong(token, "four selects were expected").help("of x, y, z, w, 0, 1 and _, as in R0.xyz1");
    if text.chars().count() != 4 {
        return Err(fault());
    }
    let mut raw = 0;
    for (at, letter) in text.chars().enumerate() {
        raw |= (SELECTS.find(letter).ok_or_else(fault)? as u32) << (3 * at);
    }
    Ok(raw)
}

/// `CBb:first-last`: bank, line and mode.
fn kcache(token: Token<'_>) -> Parse<(u32, u32, u32)> {
    let fault = || wrong(token, "a window of constants was expected").help("as in CB0:0-15 or CB1:32-63");
    let (bank, range) =
        token.text.strip_prefix("CB").and_then(|rest| rest.split_once(':')).ok_or_else(fault)?;
    let (first, last) = range.split_once('-').ok_or_else(fault)?;
    let (last, suffix) = last.split_once('+').unwrap_or((last, ""));
    let bank = parse_number(bank).filter(|bank| *bank < 16).ok_or_else(fault)? as u32;
    let first =
        parse_number(first).filter(|first| first % 16 == 0 && *first < 4096).ok_or_else(fault)? as u32;
    let count =
        parse_number(last).and_then(|last| (last + 1).checked_sub(u64::from(first))).ok_or_else(fault)?;
    let mode = match (count, suffix) {
        (16, "OFF") => 0,
        (16, "") => 1,
        (32, "") => 2,
        (32, "aL") => 3,
        _ => return Err(fault()),
    };
    Ok((bank, first / 16, mode))
}

/// `0xbits, float`, bits alone, an integer or a float: its 32 bits.
fn literal(text: &str) -> Option<u32> {
    let text = text.split(',').next()?.trim();
    if let Some(bits) = parse_number(text) {
        return u32::try_from(bits).ok();
    }
    let digits = text.strip_suffix('f').unwrap_or(text);
    digits
        .starts_with(|c: char| c.is_ascii_digit() || c == '.')
        .then(|| digits.parse::<f32>().ok())
        .flatten()
        .map(f32::to_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jump_targets_and_clauses_are_laid_out_from_labels() {
        let source = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT _.x, R0.x, 0 UPDATE_EXEC_MASK\nJUMP: ADDR(@end) POP_CNT(1)\n\
                      ALU_POP_AFTER:\n 1 x: MOV R1.x, 3.5f\n@end:\nEXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM";
        let words = assemble(source, Chip::RV770).unwrap().words;
        assert_eq!(words[..4], [4, 0xa400_0000, 3, 0x8500_0001]);
        assert_eq!(words[8..], [0x801f_0000, 0x0000_1084, 0x8000_00fd, 0x0020_0c90, 0x4060_0000, 0]);
    }
}
