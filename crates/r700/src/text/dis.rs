//! Disassembles words into text.

mod amd;

use reconverge_isa::limits::NESTING;
use reconverge_isa::read::{push_decimal, push_word};
use reconverge_isa::{FieldValue, Mark};

use super::attr::{self, Attr};
use super::{
    CHANS, INDEXES, INLINE, LITERAL, SELECTS, SLOTS, alu_row, is_op3, literal_pairs, op2_shift, slots,
};
use crate::chip::{Chip, Family};
use crate::code::is_final_return;
use crate::control::cf;
use crate::words::{AluForm, CfInst, ExportInst, MemOp, TexInst};

/// Options for the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Adds the address and the words to each line, as a comment.
    pub hex: bool,
    /// Indents the lines of loops, and the lines between a push and the matching pop.
    pub structure: bool,
    /// Start address of the program.
    pub start: u32,
    /// Syntax of the text.
    pub syntax: Syntax,
}

/// Syntax in which the disassembler prints a program. The assembler accepts both syntaxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// The syntax of this project.
    #[default]
    Own,
    /// AMD's syntax, after a line `.syntax amd`.
    Amd,
}

/// The text of a program, with notes about the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disassembly {
    /// The text. [`assemble`](super::assemble) converts the text back to the same words.
    pub text: String,
    /// Notes about words that control flow reaches although the words are not valid instructions. Each entry has the
    /// address of the words, in 64-bit words.
    pub notes: Vec<(u32, String)>,
    /// For each instruction, the position at which its text ends.
    pub marks: Vec<Mark>,
}

/// Returns the text of `words` for `chip`. The words have 32 bits and are in memory order.
pub fn disassemble(words: &[u32], chip: Chip, options: Options) -> Disassembly {
    let mut out = Disassembly::default();
    disassemble_into(words, chip, options, &mut out);
    out
}

/// Works like [`disassemble`], but reuses the memory of `out`.
pub fn disassemble_into(words: &[u32], chip: Chip, options: Options, out: &mut Disassembly) {
    out.text.clear();
    out.notes.clear();
    out.marks.clear();
    let mut dis = Dis { words, family: chip.family, options, out, group: 0, indent: 0 };
    dis.push(".chip ");
    dis.push(chip.name);
    dis.push("\n");
    if dis.is_amd() {
        dis.push(".syntax amd\n");
    }
    dis.program();
}

/// Kind of instruction at an address of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// A control-flow instruction.
    ControlFlow,
    /// An instruction of an ALU group.
    Alu {
        /// Address of the control-flow instruction that launches the clause.
        launch: usize,
        /// The group. The numbers are the address of the first slot, the number of instructions, and the number of
        /// literal pairs.
        group: (usize, usize, usize),
        /// The reason why the words of the clause do not form groups at this address. The disassembler then prints only
        /// the slot. If the words form groups, the field is `None`.
        open: Option<&'static str>,
    },
    /// An instruction of a TEX or VTX clause.
    Fetch,
}

/// Returns the kind of instruction at address `addr` of a program. The disassembly of the whole program shows this kind
/// at `addr`.
pub(crate) fn home(words: &[u32], chip: Chip, start: u32, addr: usize) -> Option<Home> {
    let mut out = Disassembly::default();
    let options = Options { start, ..Options::default() };
    let mut dis = Dis { words, family: chip.family, options, out: &mut out, group: 0, indent: 0 };
    let (owners, _, bodies) = dis.layout();
    if *owners.get(addr)? == Owner::Cf {
        return Some(Home::ControlFlow);
    }
    let clauses = bodies.into_iter().filter_map(|launch| Some((launch, dis.clause(dis.pair(launch))?)));
    let (launch, clause) =
        clauses.into_iter().find(|(_, clause)| (clause.addr..clause.addr + clause.len).contains(&addr))?;
    if !clause.alu {
        return (addr - clause.addr).is_multiple_of(2).then_some(Home::Fetch);
    }
    let mut at = clause.addr;
    loop {
        let (len, pairs) = match dis.group_at(at, clause.addr + clause.len) {
            Ok(group) => group,
            Err(why) => return Some(Home::Alu { launch, group: (addr, 1, 0), open: Some(why) }),
        };
        if addr < at + len {
            return Some(Home::Alu { launch, group: (at, len, pairs), open: None });
        }
        at += len + pairs;
        if addr < at {
            return None;
        }
    }
}

/// Returns the text of a control-flow instruction, an ALU group or a fetch. The text does not contain the address. The
/// text of a group has one line per slot, and includes the group's literals.
pub(crate) fn instruction(words: &[u32], home: Home, chip: Chip) -> Vec<String> {
    let mut out = Disassembly::default();
    let mut dis =
        Dis { words, family: chip.family, options: Options::default(), out: &mut out, group: 0, indent: 0 };
    match home {
        Home::ControlFlow => dis.cf_text(dis.pair(0), false),
        Home::Alu { group: (_, len, pairs), .. } => {
            let group: Vec<[u32; 2]> = (0..len).map(|slot| dis.pair(slot)).collect();
            let mut literals = [0; 4];
            for (literal, word) in literals.iter_mut().zip(&words[2 * len..2 * (len + pairs)]) {
                *literal = *word;
            }
            dis.alu_group(0, &group, literals);
        }
        Home::Fetch => dis.fetch(std::array::from_fn(|index| words.get(index).copied().unwrap_or(0))),
    }
    let plain = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbered = words.first().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
        words[usize::from(numbered)..].join(" ")
    };
    out.text.lines().map(plain).collect()
}

/// Part of the program to which a 64-bit word belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    None,
    Cf,
    Clause,
}

/// A clause. The fields are the clause's first 64-bit word, the number of 64-bit words, and whether the clause is an
/// ALU clause.
#[derive(Clone, Copy)]
struct Clause {
    addr: usize,
    len: usize,
    alu: bool,
}

struct Dis<'a> {
    words: &'a [u32],
    family: Family,
    options: Options,
    out: &'a mut Disassembly,
    group: u32,
    indent: usize,
}

impl Dis<'_> {
    fn is_amd(&self) -> bool {
        self.options.syntax == Syntax::Amd
    }

    fn push(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    fn number(&mut self, value: u32) {
        push_decimal(value, &mut self.out.text);
    }

    fn hex(&mut self, value: u32) {
        self.push("0x");
        push_word(value, &mut self.out.text);
    }

    fn chan(&mut self, chan: u32) {
        self.push(".");
        self.push(&CHANS[(chan & 3) as usize..][..1]);
    }

    fn pair(&self, addr: usize) -> [u32; 2] {
        [self.words[2 * addr], self.words[2 * addr + 1]]
    }

    fn clause(&self, [word0, word1]: [u32; 2]) -> Option<Clause> {
        if word1 >> 29 & 1 != 0 {
            let len = (word1 >> 18 & 0x7f) as usize + 1;
            return Some(Clause { addr: (word0 & 0x3f_ffff) as usize, len, alu: true });
        }
        is_fetch_clause(word1).then(|| Clause {
            addr: word0 as usize,
            len: 2 * (fetch_count(word1, self.family) as usize + 1),
            alu: false,
        })
    }

    /// Returns the owner of each 64-bit word. A word belongs to control flow if two conditions are met: the word is not
    /// in a clause, and the word is reachable from the entry point or from address 0.
    fn owners(&self) -> Vec<Owner> {
        let total = self.words.len() / 2;
        let mut owners = vec![Owner::None; total];
        let mut starts = vec![false; total];
        let mut open = vec![0, self.options.start as usize];
        while let Some(first) = open.pop() {
            let mut addr: usize = first;
            while addr < total && owners[addr] == Owner::None && !starts[addr] {
                owners[addr] = Owner::Cf;
                let pair = self.pair(addr);
                let alu = pair[1] >> 29 & 1 != 0;
                if let Some(start) = self.clause(pair).and_then(|clause| starts.get_mut(clause.addr)) {
                    *start = true;
                }
                let inst = CfInst::from_bits(pair[1] >> 23 & 0x7f, 7).filter(|_| !alu);
                if inst.is_some_and(|inst| cf(inst).jumps) {
                    open.push(pair[0] as usize);
                }
                let ends = inst == Some(CfInst::END_PROGRAM) || (!alu && pair[1] >> 21 & 1 != 0);
                if ends || is_final_return(pair) {
                    break;
                }
                addr += 1;
            }
        }
        owners
    }

    /// Returns three lists: the owner of each 64-bit word, the addresses of the control-flow words, and the addresses
    /// of the control-flow words that the listing shows together with their clauses.
    fn layout(&mut self) -> (Vec<Owner>, Vec<usize>, Vec<usize>) {
        let mut owners = self.owners();
        let total = owners.len();
        let mut bodies = Vec::new();
        let cf: Vec<usize> = (0..total).filter(|&addr| owners[addr] == Owner::Cf).collect();
        for &addr in &cf {
            let Some(clause) = self.clause(self.pair(addr)) else {
                continue;
            };
            let range = clause.addr..clause.addr.saturating_add(clause.len);
            match owners.get_mut(range) {
                Some(place) if place.iter().all(|owner| *owner == Owner::None) => {
                    place.fill(Owner::Clause);
                    bodies.push(addr);
                }
                Some(_) => {}
                None => self.out.notes.push((addr as u32, "the clause lies beyond the program".into())),
            }
        }
        (owners, cf, bodies)
    }

    fn program(&mut self) {
        let (owners, cf, bodies) = self.layout();
        let last = cf.last().copied();
        for addr in cf {
            self.cf(addr, last == Some(addr));
            if bodies.binary_search(&addr).is_ok()
                && let Some(clause) = self.clause(self.pair(addr))
            {
                if clause.alu { self.alu_clause(clause) } else { self.fetch_clause(clause) }
            }
        }
        let ends = |addr: usize| self.words[2 * addr + 1] >> 21 & 0x101 == 1;
        if self.is_amd() && last.is_some_and(ends) {
            self.push("END_OF_PROGRAM\n");
        }
        self.data(&owners);
    }

    /// Prints the words that do not belong to any instruction.
    fn data(&mut self, owners: &[Owner]) {
        let mut at = None;
        let mut addr = 0;
        while addr < owners.len() {
            if owners[addr] != Owner::None {
                addr += 1;
                continue;
            }
            if at != Some(addr) {
                self.push(".org ");
                self.number(addr as u32);
                self.push("\n");
            }
            let zeros = (addr..owners.len())
                .take_while(|&at| owners[at] == Owner::None && self.pair(at) == [0, 0])
                .count();
            if zeros > 0 {
                self.push(".zero ");
                self.number(zeros as u32);
                addr += zeros;
            } else {
                let [word0, word1] = self.pair(addr);
                self.push(".word ");
                self.hex(word0);
                self.push(", ");
                self.hex(word1);
                addr += 1;
            }
            self.push("\n");
            at = Some(addr);
        }
        if self.words.len() % 2 == 1 {
            self.push(".dword ");
            self.hex(self.words[self.words.len() - 1]);
            self.push("\n");
        }
    }

    fn end_line(&mut self, addr: usize, words: usize) {
        if self.options.hex {
            self.push("  ; ");
            self.number(addr as u32);
            self.push(":");
            for at in 2 * addr..2 * addr + words {
                self.push(" ");
                self.hex(self.words[at]);
            }
        }
        self.push("\n");
        let (end, words) = (self.out.text.len(), 2 * addr..2 * addr + words);
        self.out.marks.push(Mark { end, address: addr as u32, words, depth: self.indent });
    }

    /// Prints the attributes that differ from their defaults. Adds the bits of the printed attributes to `owned`.
    fn attrs(&mut self, table: &[Attr], words: &[u32], owned: &mut [u32]) {
        for attr in table {
            owned[attr.word] |= attr.mask();
            let value = attr.get(words);
            if value == attr.usual {
                continue;
            }
            self.push(" ");
            self.push(attr.name);
            if attr.bits > 1 {
                self.push("(");
                match attr.names.get(value as usize) {
                    Some(name) if !name.is_empty() => self.push(name),
                    _ => self.number(value + attr.add),
                }
                self.push(")");
            }
        }
    }

    /// Prints the bits that neither the operands nor an attribute have shown.
    fn bits(&mut self, words: &[u32], owned: &[u32]) {
        if words.iter().zip(owned).all(|(word, owned)| word & !owned == 0) {
            return;
        }
        if let ([used @ .., padding], [owned @ .., _]) = (words, owned)
            && words.len() == 4
            && used.iter().zip(owned).all(|(word, owned)| word & !owned == 0)
        {
            // The fourth word of a fetch is padding.
            self.push(" PAD(");
            self.hex(*padding);
            self.push(")");
            return;
        }
        self.push(" BITS(");
        for (at, (word, owned)) in words.iter().zip(owned).enumerate() {
            if at > 0 {
                self.push(", ");
            }
            self.hex(word & !owned);
        }
        self.push(")");
    }

    fn cf(&mut self, addr: usize, last: bool) {
        let words = self.pair(addr);
        let word1 = words[1];
        let inst = CfInst::from_bits(word1 >> 23 & 0x7f, 7).filter(|_| word1 >> 29 & 1 == 0);
        if self.options.structure && inst.is_some_and(closes) {
            self.indent = self.indent.saturating_sub(1);
        }
        for _ in 0..self.indent.min(NESTING.size()) {
            self.push("  ");
        }
        if addr < 10 {
            self.push("0");
        }
        self.number(addr as u32);
        self.push(" ");
        self.cf_text(words, last);
        self.end_line(addr, 2);
        if self.options.structure {
            let form = AluForm::from_bits(word1 >> 26 & 15, 4).filter(|_| word1 >> 29 & 1 != 0);
            match form {
                Some(AluForm::ALU_POP_AFTER) => self.indent = self.indent.saturating_sub(1),
                Some(AluForm::ALU_POP2_AFTER) => self.indent = self.indent.saturating_sub(2),
                _ => {}
            }
            if form == Some(AluForm::ALU_PUSH_BEFORE) || inst.is_some_and(opens) {
                self.indent += 1;
            }
        }
    }

    /// Prints a control-flow instruction. `last`: whether the instruction is the last instruction of a program.
    fn cf_text(&mut self, words: [u32; 2], last: bool) {
        if words[1] >> 29 & 1 != 0 {
            self.cf_alu(words);
        } else if let Some(inst) = ExportInst::from_bits(words[1] >> 23 & 0x7f, 7) {
            if self.is_amd() { self.amd_export(inst, words, last) } else { self.export(inst, words) }
        } else if self.is_amd() {
            self.amd_cf_plain(words, last);
        } else {
            self.cf_plain(words);
        }
    }

    fn cf_alu(&mut self, words: [u32; 2]) {
        let [word0, word1] = words;
        let number = word1 >> 26 & 15;
        match AluForm::from_bits(number, 4) {
            Some(form) => self.push(form.name()),
            None => {
                self.push("ALU_");
                self.number(number);
            }
        }
        self.push(": ADDR(");
        self.number(word0 & 0x3f_ffff);
        self.push(") CNT(");
        self.number((word1 >> 18 & 0x7f) + 1);
        self.push(")");
        let sets = [
            (" KCACHE0(CB", word0 >> 22 & 15, word0 >> 30, word1 >> 2 & 0xff),
            (" KCACHE1(CB", word0 >> 26 & 15, word1 & 3, word1 >> 10 & 0xff),
        ];
        for (text, bank, mode, line) in sets {
            if (bank, mode, line) == (0, 0, 0) {
                continue;
            }
            self.push(text);
            self.number(bank);
            self.push(":");
            self.number(16 * line);
            self.push("-");
            self.number(16 * line + if mode > 1 { 31 } else { 15 });
            self.push(["+OFF", "", "", "+aL"][mode as usize]);
            self.push(")");
        }
        let mut owned = [!0, 0x3fff_ffff & !(1 << 25)];
        let bit_25 = &attr::ALU_BIT_25[usize::from(self.family == Family::R700)];
        self.attrs(std::slice::from_ref(bit_25), &words, &mut owned);
        self.attrs(attr::CF_ALU, &words, &mut owned);
    }

    fn cf_plain(&mut self, words: [u32; 2]) {
        let [word0, word1] = words;
        let number = word1 >> 23 & 0x7f;
        let inst = CfInst::from_bits(number, 7);
        match inst {
            Some(inst) => self.push(inst.name()),
            None => {
                self.push("CF_");
                self.number(number);
            }
        }
        self.push(":");
        let clause = is_fetch_clause(word1);
        if word0 != 0 || clause || inst.is_some_and(|inst| cf(inst).jumps) {
            self.push(" ADDR(");
            self.number(word0);
            self.push(")");
        }
        let count = fetch_count(word1, self.family);
        if clause || count != 0 {
            self.push(" CNT(");
            self.number(count + 1);
            self.push(")");
        }
        let mut owned = [!0, 0x7f << 23 | 7 << 10];
        if self.family == Family::R700 {
            owned[1] |= 1 << 19;
        }
        self.attrs(attr::CF, &words, &mut owned);
        self.bits(&words, &owned);
    }

    fn export(&mut self, inst: ExportInst, words: [u32; 2]) {
        let [word0, word1] = words;
        let kind = (word0 >> 13 & 3) as usize;
        let swizzle = matches!(inst, ExportInst::EXPORT | ExportInst::EXPORT_DONE);
        self.push(inst.name());
        self.push(": ");
        self.push(export_kinds(swizzle, self.family)[kind]);
        self.push("[");
        self.number(word0 & 0x1fff);
        self.push("], R");
        self.number(word0 >> 15 & 0x7f);
        self.push(".");
        let mut owned = [0x003f_ffff, 0x7f << 23];
        if swizzle {
            self.select(word1);
            owned[1] |= 0xfff;
            self.attrs(attr::EXPORT, &words, &mut owned);
        } else {
            for chan in 0..4 {
                self.push(if word1 >> (12 + chan) & 1 != 0 { &CHANS[chan..=chan] } else { "_" });
            }
            owned[1] |= 0xf000;
            self.attrs(attr::MEMORY, &words, &mut owned);
        }
        self.bits(&words, &owned);
    }

    /// Prints four three-bit selects.
    fn select(&mut self, raw: u32) {
        for at in 0..4 {
            self.push(&SELECTS[(raw >> (3 * at) & 7) as usize..][..1]);
        }
    }

    fn alu_clause(&mut self, clause: Clause) {
        let end = clause.addr + clause.len;
        let mut at = clause.addr;
        while at < end {
            let (len, pairs) = match self.group_at(at, end) {
                Ok(group) => group,
                Err(why) => {
                    self.out.notes.push((at as u32, why.into()));
                    self.push("      ; ");
                    self.push(why);
                    self.push("\n");
                    for slot in at..end {
                        let [word0, word1] = self.pair(slot);
                        self.push("      .slot ");
                        self.hex(word0);
                        self.push(", ");
                        self.hex(word1);
                        self.end_line(slot, 2);
                    }
                    return;
                }
            };
            let group: [[u32; 2]; 5] =
                std::array::from_fn(|slot| if slot < len { self.pair(at + slot) } else { [0; 2] });
            let mut literals = [0; 4];
            for pair in 0..pairs {
                let words = self.pair(at + len + pair);
                literals[2 * pair..2 * pair + 2].copy_from_slice(&words);
            }
            self.alu_group(at, &group[..len], literals);
            at += len + pairs;
        }
    }

    /// Returns the number of instructions and the number of literal pairs of the group at `at`. The clause of this
    /// group ends before `end`.
    fn group_at(&self, at: usize, end: usize) -> Result<(usize, usize), &'static str> {
        let mut group = [[0; 2]; 5];
        let mut len = 0;
        loop {
            if len == 5 {
                return Err("a group of more than five instructions");
            }
            if at + len == end {
                return Err("the clause ends inside a group");
            }
            group[len] = self.pair(at + len);
            len += 1;
            if group[len - 1][0] >> 31 != 0 {
                break;
            }
        }
        let pairs = literal_pairs(&group[..len]);
        if at + len + pairs > end { Err("the clause ends inside a group") } else { Ok((len, pairs)) }
    }

    fn alu_group(&mut self, addr: usize, group: &[[u32; 2]], literals: [u32; 4]) {
        let mut letters = [0; 5];
        slots(group, self.family, &mut letters);
        let mut shown = 0;
        for (index, words) in group.iter().enumerate() {
            if index == 0 {
                let width = if self.group < 10 {
                    "      "
                } else if self.group < 100 {
                    "     "
                } else {
                    "    "
                };
                self.push(width);
                self.number(self.group);
                self.push("  ");
            } else {
                self.push("         ");
            }
            self.push(SLOTS[usize::from(letters[index])]);
            self.push(": ");
            if self.is_amd() {
                self.amd_alu(*words, letters[index], &literals, &mut shown);
            } else {
                self.alu(*words, &literals, &mut shown);
            }
            self.end_line(addr + index, 2);
        }
        for (chan, literal) in literals.into_iter().enumerate() {
            if literal != 0 && shown >> chan & 1 == 0 {
                self.push("         .literal ");
                self.push(&CHANS[chan..=chan]);
                self.push(", ");
                self.hex(literal);
                self.push("\n");
            }
        }
        self.group += 1;
    }

    fn alu(&mut self, words: [u32; 2], literals: &[u32; 4], shown: &mut u8) {
        let [word0, word1] = words;
        let op3 = is_op3(word1);
        let row = alu_row(word1, self.family);
        let sources = match row {
            Some(row) => {
                self.push(row.name);
                for _ in row.name.len()..15 {
                    self.out.text.push(' ');
                }
                self.out.text.push(' ');
                row.sources
            }
            None if op3 => {
                self.push("OP3_");
                self.number(word1 >> 13 & 31);
                self.push(" ");
                3
            }
            None => {
                self.push("OP2_");
                self.number((word1 & 0x3ffff) >> op2_shift(self.family));
                self.push(" ");
                2
            }
        };
        let index = word0 >> 26 & 7;
        // The disassembler does not print LAST, because the text shows where the group ends.
        let mut owned = [1 << 31, 0x7fe0_0000];
        let mut related = false;
        let gpr = word1 >> 21 & 0x7f;
        let dst_rel = word1 >> 28 & 1 != 0;
        let written = op3 || word1 >> 4 & 1 != 0;
        if !written {
            self.push("_");
        }
        if written || gpr != 0 || dst_rel {
            self.register("R", gpr, dst_rel, index);
        }
        related |= dst_rel;
        self.chan(word1 >> 29);
        let encoding = if op3 {
            owned[1] |= 31 << 13;
            attr::OP3
        } else {
            owned[1] |= 1 << 4 | (0x3ffff >> op2_shift(self.family)) << op2_shift(self.family);
            attr::op2(self.family)
        };
        for source in 0..sources {
            let (raw, abs) = match source {
                0 => (word0, word1 & 1),
                1 => (word0 >> 13, word1 >> 1 & 1),
                _ => (word1, 0),
            };
            let abs = !op3 && abs != 0;
            self.push(", ");
            self.source(raw & 0x1fff, abs, index, literals, shown);
            related |= raw >> 9 & 1 != 0;
            match source {
                0 => {
                    owned[0] |= 0x1fff;
                    owned[1] |= u32::from(!op3);
                }
                1 => {
                    owned[0] |= 0x1fff << 13;
                    owned[1] |= u32::from(!op3) << 1;
                }
                _ => owned[1] |= 0x1fff,
            }
        }
        if related {
            owned[0] |= 7 << 26;
        }
        // Most instructions have no attributes, so checking for set bits first saves time.
        let masked = [words[0] & !owned[0], words[1] & !owned[1]];
        if masked != [0, 0] {
            self.attrs(encoding, &masked, &mut owned);
            self.unused_source(word0, sources == 1 && row.is_some() && !op3, &mut owned);
            self.bits(&words, &owned);
        }
    }

    /// Prints the second source of an operation that reads only one source. Vendors' compilers often set the second
    /// source to R0, with the component of the first source. The text of this second source is `~`. For any other
    /// second source, the text is `~` followed by the source.
    fn unused_source(&mut self, word0: u32, is_unary: bool, owned: &mut [u32; 2]) {
        let (first, raw) = (word0 & 0x1fff, word0 >> 13 & 0x1fff);
        let (selector, rel) = (raw & 0x1ff, raw >> 9 & 1 != 0);
        if !is_unary || raw == 0 || rel {
            return;
        }
        owned[0] |= 0x1fff << 13;
        self.push(" ~");
        if raw == first & 3 << 10 {
            return;
        }
        if selector == LITERAL {
            self.push(if raw >> 12 & 1 != 0 { "-SEL253" } else { "SEL253" });
            self.chan(raw >> 10);
        } else {
            self.source(raw, false, 0, &[0; 4], &mut 0);
        }
    }

    fn register(&mut self, name: &str, number: u32, rel: bool, index: u32) {
        self.push(name);
        if rel {
            self.push("[");
            self.number(number);
            self.push("+");
            self.push(INDEXES[index as usize]);
            self.push("]");
        } else {
            self.number(number);
        }
    }

    /// Prints one operand. In `raw`, the selector is in bits 8:0, REL in bit 9, CHAN in bits 11:10, and NEG in bit 12.
    fn source(&mut self, raw: u32, abs: bool, index: u32, literals: &[u32; 4], shown: &mut u8) {
        let (selector, rel, chan) = (raw & 0x1ff, raw >> 9 & 1 != 0, raw >> 10 & 3);
        if raw >> 12 & 1 != 0 {
            self.push("-");
        }
        if abs {
            self.push("|");
        }
        match selector {
            0..=127 => self.register("R", selector, rel, index),
            128..=191 | 256.. => {
                let (name, number) = match selector {
                    128..=159 => ("KC0[", selector - 128),
                    160..=191 => ("KC1[", selector - 160),
                    _ => ("C[", selector - 256),
                };
                self.push(name);
                self.number(number);
                if rel {
                    self.push("+");
                    self.push(INDEXES[index as usize]);
                }
                self.push("]");
            }
            LITERAL if !rel => {
                let value = literals[chan as usize];
                *shown |= 1 << chan;
                self.push("(");
                self.hex(value);
                self.push(", ");
                self.push(&f32::from_bits(value).to_string());
                self.push(")");
            }
            254 if !rel => self.push("PV"),
            _ => {
                let inline = INLINE.iter().find(|(known, _)| *known == selector).filter(|_| !rel);
                let Some((_, name)) = inline else {
                    self.push("SEL");
                    self.register("", selector, rel, index);
                    self.chan(chan);
                    if abs {
                        self.push("|");
                    }
                    return;
                };
                let bracket = matches!(selector, 250 | 251) && raw >> 12 & 1 != 0 && !abs;
                self.push(if bracket { "(" } else { "" });
                self.push(name);
                self.push(if bracket { ")" } else { "" });
                if chan != 0 {
                    self.chan(chan);
                }
                self.push(if abs { "|" } else { "" });
                return;
            }
        }
        self.chan(chan);
        if abs {
            self.push("|");
        }
    }

    fn fetch_clause(&mut self, clause: Clause) {
        for at in (clause.addr..clause.addr + clause.len).step_by(2) {
            let words: [u32; 4] = std::array::from_fn(|index| self.words[2 * at + index]);
            self.push("      ");
            self.number(self.group);
            self.push("  ");
            self.group += 1;
            if self.is_amd() {
                self.amd_fetch(words)
            } else {
                self.fetch(words)
            }
            self.end_line(at, 4);
        }
    }

    fn fetch(&mut self, words: [u32; 4]) {
        let mut owned = [0x1f, 0, 0, 0];
        let number = words[0] & 31;
        let gpr = |raw: u32, lo: u32| (raw >> lo & 0x7f, raw >> (lo + 7) & 1 != 0);
        let (src, src_rel) = gpr(words[0], 16);
        let (dst, dst_rel) = gpr(words[1], 0);
        match number {
            0 | 1 => {
                if number == 0 {
                    self.push("FETCH ");
                    self.register("R", dst, dst_rel, 4);
                    owned[1] |= 0xff;
                } else {
                    self.push("SEMANTIC S");
                    self.number(words[1] & 0xff);
                    owned[1] |= 0xff;
                }
                self.push(".");
                self.select(words[1] >> 9);
                self.push(", ");
                self.register("R", src, src_rel, 4);
                self.chan(words[0] >> 24);
                self.push(", b");
                self.number(words[0] >> 8 & 0xff);
                owned[0] |= 0x03ff_ff00;
                owned[1] |= 0xfff << 9;
                self.attrs(attr::VTX, &words, &mut owned);
                if self.family == Family::R700 {
                    self.attrs(&[attr::VTX_ALT], &words, &mut owned);
                }
            }
            2 => {
                let op = words[0] >> 8 & 7;
                owned[0] |= 7 << 8;
                match MemOp::from_bits(op, 3) {
                    Some(op) => self.push(op.name()),
                    None => {
                        self.push("MEM_");
                        self.number(op);
                    }
                }
                self.push(" ");
                let write = matches!(op, 4 | 6);
                if !write {
                    self.register("R", dst, dst_rel, 4);
                    self.push(".");
                    self.select(words[1] >> 9);
                    self.push(", ");
                    owned[1] |= 0xff | 0xfff << 9;
                }
                self.register("R", src, src_rel, 4);
                owned[0] |= 0xff << 16;
                if !write {
                    self.chan(words[0] >> 24);
                    owned[0] |= 3 << 24;
                }
                self.attrs(mem_attrs(op), &words, &mut owned);
            }
            _ => {
                match TexInst::from_bits(number, 5) {
                    Some(inst) => self.push(inst.name()),
                    None => {
                        self.push("TEX_");
                        self.number(number);
                    }
                }
                self.push(" ");
                self.register("R", dst, dst_rel, 4);
                self.push(".");
                self.select(words[1] >> 9);
                self.push(", ");
                self.register("R", src, src_rel, 4);
                self.push(".");
                self.select(words[2] >> 20);
                self.push(", t");
                self.number(words[0] >> 8 & 0xff);
                self.push(", s");
                self.number(words[2] >> 15 & 31);
                owned[0] |= 0x00ff_ff00;
                owned[1] |= 0xff | 0xfff << 9;
                owned[2] |= 0xffff_8000;
                self.attrs(attr::TEX, &words, &mut owned);
                if self.family == Family::R700 {
                    self.attrs(&[attr::TEX_ALT], &words, &mut owned);
                }
            }
        }
        self.bits(&words, &owned);
    }
}

/// Returns the attributes of a memory instruction with this MEM_OP.
pub(super) fn mem_attrs(op: u32) -> &'static [Attr] {
    match op {
        4 | 6 => attr::MEM_DSW,
        5 | 7 => attr::MEM_DSR,
        _ => attr::MEM_RD,
    }
}

/// Returns the names of the TYPE values in an export.
pub(super) fn export_kinds(swizzle: bool, family: Family) -> [&'static str; 4] {
    match (swizzle, family) {
        (true, _) => ["PIXEL", "POS", "PARAM", "TYPE3"],
        (false, Family::R600) => ["WRITE", "WRITE_IND", "READ", "READ_IND"],
        (false, Family::R700) => ["WRITE", "WRITE_IND", "WRITE_ACK", "WRITE_IND_ACK"],
    }
}

/// Returns COUNT of a control-flow word as stored. The stored number is the count minus one.
pub(super) fn fetch_count(word1: u32, family: Family) -> u32 {
    let high = if family == Family::R700 { (word1 >> 19 & 1) << 3 } else { 0 };
    (word1 >> 10 & 7) | high
}

/// Returns whether a control-flow word is TEX, VTX, VTX_TC, or an ACK form of these instructions.
pub(super) fn is_fetch_clause(word1: u32) -> bool {
    word1 >> 29 & 1 == 0 && matches!(word1 >> 23 & 0x7f, 1..=3 | 27..=29)
}

fn opens(inst: CfInst) -> bool {
    use CfInst::*;
    matches!(inst, LOOP_START | LOOP_START_DX10 | LOOP_START_NO_AL | PUSH | PUSH_ELSE | ELSE)
}

fn closes(inst: CfInst) -> bool {
    use CfInst::*;
    matches!(inst, LOOP_END | POP | ELSE)
}
