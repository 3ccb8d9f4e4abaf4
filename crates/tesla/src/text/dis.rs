//! The disassembler: from words to text.

use reconverge_isa::limits::NESTING;
use reconverge_isa::program::Module;
use reconverge_isa::read::{Labels, NoReading, push_hex, push_word};
use reconverge_isa::{Mark, Program};

use crate::decode::{decode, joined, length};
use crate::inst::{Chip, Control, Op, Stage};
use crate::parts::here;
use crate::table::TABLE;

use super::notes::{About, Notes, push_comment};
use super::state::{push_name, push_program};

/// The layout of a listing. The assembler reads every layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Whether to print the address before each instruction, `/*0010*/`, and the words of the instruction after the
    /// instruction, as a comment.
    pub hex: bool,
    /// Whether to indent the code from a `joinat` or `breakaddr` to its target, and to comment loops.
    pub structure: bool,
    /// Whether to print labels for the targets of branches. Otherwise, targets are numbers.
    pub labels: bool,
}

impl Default for Listing {
    /// Returns the layout with labels, and without addresses and indentation.
    fn default() -> Self {
        Listing { hex: false, structure: false, labels: true }
    }
}

/// Prints words as text from which [`assemble`](super::assemble) produces the same words.
///
/// `base` is the byte address of the first word in the code window. Words that are not an instruction of this chip and
/// stage are printed as `.word`, with the reason as a comment.
pub fn disassemble(words: &[u32], base: u32, chip: Chip, stage: Stage, listing: Listing) -> String {
    let mut out = String::with_capacity(words.len() * 24);
    print_words(Disassembler { words, base, chip, stage, listing, notes: None }, &mut out, &mut Vec::new());
    out
}

/// Returns the nesting depth of the constructs that [`Listing::structure`] indents in a program.
pub fn nesting(words: &[u32], base: u32, chip: Chip, stage: Stage) -> usize {
    let listing = Listing { hex: false, structure: true, labels: false };
    let places = Disassembler { words, base, chip, stage, listing, notes: None }.places();
    let starts = places.iter().filter(|place| place.start);
    let (_, deepest) = starts.fold((0, 0), |(depth, deepest): (i32, i32), place| {
        (depth + place.nesting, deepest.max(depth + place.nesting))
    });
    deepest as usize
}

fn print_words(disassembler: Disassembler<'_>, out: &mut String, marks: &mut Vec<Mark>) {
    if disassembler.base != 0 {
        out.push_str(".base ");
        push_hex(disassembler.base, out);
        out.push('\n');
    }
    disassembler.print(out, marks);
}

/// Prints a program. The contents of the program's container are printed as directives: name, constants, registers,
/// memory.
pub fn disassemble_program(program: &Program, chip: Chip, stage: Stage, listing: Listing) -> String {
    disassemble_marked(program, (chip.name(), chip), stage, listing, None, &mut Vec::new())
}

/// Prints a program like [`disassemble_program`], with `name` as the name of the chip. Adds comments if `about` is not
/// `None`, and records the end of each instruction in `marks`.
pub fn disassemble_marked(
    program: &Program,
    (name, chip): (&str, Chip),
    stage: Stage,
    listing: Listing,
    about: Option<&About<'_>>,
    marks: &mut Vec<Mark>,
) -> String {
    let mut out = String::with_capacity(program.words.len() * 24 + 256);
    for (directive, value) in [(".chip", name), (".type", stage.name())] {
        out.extend([directive, " ", value, "\n"]);
    }
    let named = program.name.is_some();
    push_body(program, (chip, stage), listing, named, about, marks, &mut out);
    out
}

/// A program of an image, with the data for its listing.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The program.
    pub program: &'a Program,
    /// The stage for which the words of the program are decoded.
    pub stage: Stage,
    /// Names for the comments, or `None` for a listing without comments.
    pub about: Option<About<'a>>,
}

/// Prints modules and their programs. The programs of a module follow the directives of the module.
///
/// `chip` is the chip for which the words are decoded. If `chip` is `None` or equals the chip of a module, the listing
/// contains the module's name for the chip.
pub fn disassemble_image(
    modules: &[Module],
    members: &[Member<'_>],
    chip: Option<&str>,
    listing: Listing,
) -> String {
    let mut out = String::from(".isa tesla\n");
    let word_of = |module: &Module| -> Option<String> {
        let own = module.chip.as_deref().filter(|own| {
            Chip::from_name(own).is_some_and(|own| chip.is_none_or(|chip| Chip::from_name(chip) == Some(own)))
        });
        own.or(chip).map(str::to_owned)
    };
    let words: Vec<Option<String>> = modules.iter().map(word_of).collect();
    let shared = match words.split_first() {
        Some((first, rest)) if rest.iter().all(|word| word == first) => first.clone(),
        Some(_) => None,
        None => chip.map(str::to_owned),
    };
    let each = modules.len() > 1 && shared.is_none();
    if !each {
        let shared = shared.as_deref().unwrap_or(Chip::G80.name());
        out.extend([".chip ", shared, "\n"]);
    }
    let mut stage = members.first().map_or(Stage::Compute, |first| first.stage);
    out.extend([".type ", stage.name(), "\n"]);
    let named = members.len() > 1 || !modules.is_empty();
    let mut first = true;
    let mut print = |member: &Member<'_>, chip: Chip, out: &mut String| {
        let named = named || member.program.name.is_some();
        if !modules.is_empty() || !std::mem::take(&mut first) {
            out.push('\n');
        }
        if member.stage != stage {
            stage = member.stage;
            let (listing, about) = (listing, member.about.as_ref());
            push_kernel(member.program, about, out);
            out.extend([".type ", stage.name(), "\n"]);
            push_body(member.program, (chip, stage), listing, false, about, &mut Vec::new(), out);
        } else {
            let about = member.about.as_ref();
            push_body(member.program, (chip, stage), listing, named, about, &mut Vec::new(), out);
        }
    };
    if modules.is_empty() {
        members.iter().for_each(|member| print(member, chip_of(shared.as_deref()), &mut out));
        return out;
    }
    for (index, module) in modules.iter().enumerate() {
        out.push('\n');
        let word = words[index].as_deref();
        super::state::push_module(module, word.filter(|_| each), &mut out);
        let own = members.iter().filter(|member| member.program.module.min(modules.len() - 1) == index);
        own.for_each(|member| print(member, chip_of(word), &mut out));
    }
    out
}

/// Returns the chip with this name. The default is G80, because every chip has the instructions of G80.
fn chip_of(name: Option<&str>) -> Chip {
    name.and_then(Chip::from_name).unwrap_or(Chip::G80)
}

/// Prints `.kernel NAME`.
fn push_kernel(program: &Program, about: Option<&About<'_>>, out: &mut String) {
    out.push_str(".kernel");
    if let Some(name) = &program.name {
        out.push(' ');
        push_name(name, out);
    }
    if let Some(demangled) = about.and_then(|about| about.demangled.as_deref()) {
        push_comment(demangled, out);
    }
    out.push('\n');
}

fn push_body(
    program: &Program,
    (chip, stage): (Chip, Stage),
    listing: Listing,
    named: bool,
    about: Option<&About<'_>>,
    marks: &mut Vec<Mark>,
    out: &mut String,
) {
    if named {
        push_kernel(program, about, out);
    }
    push_program(program, about, out);
    let (words, base) = (&program.words[..], program.base);
    let notes = about.map(|about| Notes::new(about, program, chip, stage));
    print_words(Disassembler { words, base, chip, stage, listing, notes: notes.as_ref() }, out, marks);
}

/// The properties of a word of the code in a listing.
#[derive(Clone, Copy, Default)]
struct WordMarks {
    /// Whether an instruction or a `.word` starts here.
    start: bool,
    /// Whether an instruction branches here.
    labelled: bool,
    /// Whether an instruction calls this address.
    called: bool,
    /// Whether a later instruction branches back here.
    loops: bool,
    /// Change of the nesting depth relative to the previous word.
    nesting: i32,
}

struct Disassembler<'a> {
    words: &'a [u32],
    base: u32,
    chip: Chip,
    stage: Stage,
    listing: Listing,
    notes: Option<&'a Notes<'a>>,
}

/// Labels whose names contain the address of the label.
struct Places<'a> {
    places: &'a [WordMarks],
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

/// Prints the label of an address, such as `L110`.
fn push_label(address: u32, out: &mut String) {
    let start = out.len();
    push_hex(address, out);
    out.replace_range(start..start + 2, "L");
}

impl Disassembler<'_> {
    fn address(&self, index: usize) -> u32 {
        self.base.wrapping_add(4 * index as u32)
    }

    /// Returns the words of the instruction at `index`, if the code has enough words and the instruction is aligned.
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

    /// Prints `/*0010*/`. The address has 4 digits, or 8 digits if the code extends past 0xffff.
    fn push_address(&self, index: usize, out: &mut String) {
        let digits = if self.address(self.words.len()) > 0xffff { 8 } else { 4 };
        let address = self.address(index);
        out.push_str("/*");
        for place in (0..digits).rev() {
            out.push(char::from(b"0123456789abcdef"[(address >> (4 * place) & 15) as usize]));
        }
        out.push_str("*/");
    }

    fn print(&self, out: &mut String, marks: &mut Vec<Mark>) {
        let places = if self.listing.labels || self.listing.structure { self.places() } else { Vec::new() };
        let labels = Places { places: &places, base: self.base };
        let labels: Option<&dyn Labels> = if self.listing.labels { Some(&labels) } else { None };
        let deepest = i32::try_from(NESTING.get()).unwrap_or(i32::MAX);
        let mut depth = 0;
        let mut index = 0;
        while index < self.words.len() {
            let place = places.get(index).copied().unwrap_or_default();
            depth += place.nesting;
            if self.listing.labels && place.labelled {
                push_label(self.address(index), out);
                out.push(':');
                let comments = self.listing.structure || self.notes.is_some();
                match (place.called && comments, self.listing.structure && place.loops) {
                    (true, true) => out.push_str(" ; function, loop"),
                    (true, false) => out.push_str(" ; function"),
                    (false, true) => out.push_str(" ; loop"),
                    (false, false) => {}
                }
                out.push('\n');
            }
            let line = out.len();
            if self.listing.hex {
                self.push_address(index, out);
            }
            out.push_str("    ");
            if self.listing.structure {
                (0..depth.min(deepest)).for_each(|_| out.push_str("  "));
            }
            let (taken, problem) = self.instruction(index, labels, out);
            if self.listing.hex {
                let width = out.len() - line;
                (width..68).for_each(|_| out.push(' '));
                out.push_str(" ;");
                for &word in &self.words[index..index + taken] {
                    out.push(' ');
                    push_word(word, out);
                }
            }
            if let Some(notes) = self.notes {
                notes.push(index, self.listing.hex, line, out);
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

    /// Prints the line of one instruction. Returns the number of words in the line, and an error if the words are not
    /// an instruction.
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

    /// Returns the properties of each word: starts of instructions, targets and nesting.
    fn places(&self) -> Vec<WordMarks> {
        let mut places = vec![WordMarks::default(); self.words.len() + 1];
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
                Control::Call { .. } => places[to].called = true,
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

/// Prints `.word 0x12345678 0x00000000`.
fn push_raw(words: &[u32], out: &mut String) {
    out.push_str(".word");
    for &word in words {
        out.push_str(" 0x");
        push_word(word, out);
    }
}
