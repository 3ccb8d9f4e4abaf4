//! From words to text.

use reconverge_isa::read::{Labels, NoReading, push_decimal, push_hex};
use reconverge_isa::{Mark, Program};

use crate::decode::{decode, joined, length};
use crate::inst::{Chip, Control, Op, Stage};
use crate::parts::here;
use crate::table::TABLE;

/// How a listing looks. Whatever it is, the assembler takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Address and words of each instruction as a comment behind it.
    pub hex: bool,
    /// Indents what lies between `joinat` or `breakaddr` and the place it names, and comments loops.
    pub structure: bool,
    /// Names the targets of branches; otherwise they are numbers.
    pub labels: bool,
}

impl Default for Listing {
    /// Labels and nothing else.
    fn default() -> Self {
        Listing { hex: false, structure: false, labels: true }
    }
}

/// Prints words as text from which [`assemble`](super::assemble) makes the same words.
///
/// `base` is the byte address of the first word in the code window. What is no instruction of this chip and stage is
/// printed as `.word`, with the reason as a comment.
pub fn disassemble(words: &[u32], base: u32, chip: Chip, stage: Stage, listing: Listing) -> String {
    let mut out = String::with_capacity(words.len() * 24);
    print_words(Disassembler { words, base, chip, stage, listing }, &mut out, &mut Vec::new());
    out
}

fn print_words(disassembler: Disassembler<'_>, out: &mut String, marks: &mut Vec<Mark>) {
    if disassembler.base != 0 {
        out.push_str(".base ");
        push_hex(disassembler.base, out);
        out.push('\n');
    }
    disassembler.print(out, marks);
}

/// Prints a program with what its container states, as directives: name, constants, registers, memory.
pub fn disassemble_program(program: &Program, chip: Chip, stage: Stage, listing: Listing) -> String {
    disassemble_marked(program, chip, stage, listing, &mut Vec::new())
}

/// As [`disassemble_program`], noting where each instruction ends.
pub fn disassemble_marked(
    program: &Program,
    chip: Chip,
    stage: Stage,
    listing: Listing,
    marks: &mut Vec<Mark>,
) -> String {
    let mut out = String::with_capacity(program.words.len() * 24 + 256);
    for (directive, value) in [(".chip", chip.name()), (".type", stage.name())] {
        out.extend([directive, " ", value, "\n"]);
    }
    if let Some(name) = &program.name {
        out.push_str(".kernel ");
        // A name that is no single word would not come back: it is quoted then.
        let plain = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_graphic() && !b";\"/\\".contains(&byte));
        if plain {
            out.push_str(name);
        } else {
            out.push('"');
            for c in name.chars() {
                // What would begin a comment is escaped too.
                if matches!(c, ';' | '/') {
                    out.extend(c.escape_unicode())
                } else {
                    out.extend(c.escape_default())
                }
            }
            out.push('"');
        }
        out.push('\n');
    }
    let resources = &program.resources;
    for (directive, value) in [
        (".reg ", resources.registers),
        (".shared ", resources.shared_bytes),
        (".local ", resources.local_bytes),
        (".bar ", resources.barriers),
        (".stack ", resources.stack),
        (".params ", resources.param_bytes),
    ] {
        if let Some(value) = value {
            out.push_str(directive);
            push_decimal(value, &mut out);
            out.push('\n');
        }
    }
    for param in &program.params {
        out.push_str(".param ");
        push_hex(param.offset, &mut out);
        out.push(' ');
        push_decimal(param.bytes, &mut out);
        out.push('\n');
    }
    for block in &program.constants {
        // The last word is filled with zeros; a block of odd size states its size.
        for (line, chunk) in block.bytes.chunks(16).enumerate() {
            out.push_str(".const ");
            push_decimal(block.bank, &mut out);
            out.push(' ');
            push_hex(block.offset + 16 * line as u32, &mut out);
            for bytes in chunk.chunks(4) {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                out.push(' ');
                push_hex(u32::from_le_bytes(word), &mut out);
            }
            out.push('\n');
        }
    }
    let (words, base) = (&program.words[..], program.base);
    print_words(Disassembler { words, base, chip, stage, listing }, &mut out, marks);
    out
}

/// What a word of the code is.
#[derive(Clone, Copy, Default)]
struct Place {
    /// An instruction, or a `.word`, starts here.
    start: bool,
    /// Something branches here.
    labelled: bool,
    /// A branch from further down comes here.
    loops: bool,
    /// How deep in constructs it lies, as the difference to the place before.
    nesting: i32,
}

struct Disassembler<'a> {
    words: &'a [u32],
    base: u32,
    chip: Chip,
    stage: Stage,
    listing: Listing,
}

/// Labels are named after their address.
struct Places<'a> {
    places: &'a [Place],
    base: u32,
}

impl Labels for Places<'_> {
    fn push(&self, address: u32, out: &mut String) -> bool {
        let offset = address.wrapping_sub(self.base);
        let found = offset & 3 == 0
            && self.places.get(offset as usize / 4).is_some_and(|place| place.start && place.labelled);
        if found {
            push_label(address, out);
        }
        found
    }
}

/// `L110`
fn push_label(address: u32, out: &mut String) {
    let start = out.len();
    push_hex(address, out);
    out.replace_range(start..start + 2, "L");
}

impl Disassembler<'_> {
    fn address(&self, index: usize) -> u32 {
        self.base.wrapping_add(4 * index as u32)
    }

    /// The words of what starts at `index`, if there are enough and they are aligned.
    fn pair(&self, index: usize) -> Result<[u32; 2], &'static str> {
        let first = self.words[index];
        if length(first) == 1 {
            return Ok([first, 0]);
        }
        if self.address(index) & 4 != 0 {
            return Err("UNALIGNED_LONG_INSTRUCTION: a two-word instruction at an odd word");
        }
        match self.words.get(index + 1) {
            Some(&second) => Ok([first, second]),
            None => Err("the second word is missing"),
        }
    }

    fn print(&self, out: &mut String, marks: &mut Vec<Mark>) {
        let places = if self.listing.labels || self.listing.structure { self.places() } else { Vec::new() };
        let labels = Places { places: &places, base: self.base };
        let labels: Option<&dyn Labels> = if self.listing.labels { Some(&labels) } else { None };
        let mut depth = 0;
        let mut index = 0;
        while index < self.words.len() {
            let place = places.get(index).copied().unwrap_or_default();
            depth += place.nesting;
            if self.listing.labels && place.labelled {
                push_label(self.address(index), out);
                out.push(':');
                if self.listing.structure && place.loops {
                    out.push_str(" ; loop");
                }
                out.push('\n');
            }
            let line = out.len();
            out.push_str("    ");
            if self.listing.structure {
                (0..depth).for_each(|_| out.push_str("  "));
            }
            let (taken, problem) = self.instruction(index, labels, out);
            if self.listing.hex {
                let width = out.len() - line;
                (width..60).for_each(|_| out.push(' '));
                out.push_str(" ; ");
                push_hex(self.address(index), out);
                out.push(':');
                for &word in &self.words[index..index + taken] {
                    out.push(' ');
                    push_word(word, out);
                }
            }
            if let Some(problem) = problem {
                out.push_str(" ; ");
                out.push_str(&problem);
            }
            out.push('\n');
            let (address, words) = (self.address(index), index..index + taken);
            marks.push(Mark { end: out.len(), address, words, depth: depth.max(0) as usize });
            index += taken;
        }
    }

    /// Prints one line. Gives the number of its words, and what is wrong with them.
    fn instruction(
        &self,
        index: usize,
        labels: Option<&dyn Labels>,
        out: &mut String,
    ) -> (usize, Option<String>) {
        let problem: String = match self.pair(index) {
            Err(problem) => {
                push_raw(&self.words[index..index + 1], out);
                return (1, Some(problem.to_owned()));
            }
            Ok(pair) => match TABLE.print(joined(pair), here(self.chip, self.stage), labels, out) {
                Ok(row) => return (1 + usize::from(row.long), None),
                Err(
                    problem @ (NoReading::NoRow | NoReading::Elsewhere { .. } | NoReading::NoPart { .. }),
                ) => problem.to_string(),
            },
        };
        let taken = length(self.words[index]) as usize;
        push_raw(&self.words[index..index + taken], out);
        (taken, Some(problem))
    }

    /// By word: starts of instructions, targets, nesting.
    fn places(&self) -> Vec<Place> {
        let mut places = vec![Place::default(); self.words.len() + 1];
        let mut uses = Vec::new();
        let mut index = 0;
        while index < self.words.len() {
            places[index].start = true;
            let mut taken = 1;
            if let Ok(pair) = self.pair(index) {
                taken = length(pair[0]) as usize;
                // Only control instructions have targets.
                if pair[0] & 3 == 3
                    && let Ok(inst) = decode(pair, self.chip, self.stage)
                    && let Op::Control(control) = inst.op
                    && let Some(address) = control.target()
                {
                    uses.push((index, address, control));
                }
            }
            index += taken;
        }
        for (from, address, control) in uses {
            let offset = address.wrapping_sub(self.base);
            let to = offset as usize / 4;
            if offset & 3 != 0 || to >= self.words.len() || !places[to].start {
                continue;
            }
            places[to].labelled = true;
            match control {
                Control::Bra { .. } if to <= from => places[to].loops = true,
                Control::Joinat { .. } | Control::Breakaddr { .. } if to > from => {
                    places[(from + 2).min(to)].nesting += 1;
                    places[to].nesting -= 1;
                }
                _ => {}
            }
        }
        places
    }
}

/// `.word 0x12345678 0x00000000`
fn push_raw(words: &[u32], out: &mut String) {
    out.push_str(".word");
    for &word in words {
        out.push_str(" 0x");
        push_word(word, out);
    }
}

/// Eight hexadecimal digits.
fn push_word(word: u32, out: &mut String) {
    for place in (0..8).rev() {
        out.push(char::from(b"0123456789abcdef"[(word >> (4 * place) & 15) as usize]));
    }
}
