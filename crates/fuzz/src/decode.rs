//! Targets for any words. The words are decoded, printed, parsed and encoded. The encoded words must equal the original
//! words.

use reconverge_isa::{Diagnostic, Isa, Program};
use reconverge_r500::pvs;
use reconverge_r500::words::layout;
use reconverge_r700::chip::{CHIPS, Chip};
use reconverge_simt::random::Random;
use reconverge_tesla::inst::{Chip as TeslaChip, Stage};
use reconverge_tesla::table::TABLE;
use reconverge_testkit::r500::TYPES;
use reconverge_testkit::r700::with_clauses;
use reconverge_testkit::vertex;

use crate::input::{chosen, head, input, words};
use crate::{Target, no_seeds};

/// The targets, one per encoding.
pub const TARGETS: &[Target] = &[
    Target {
        name: "decode-r500",
        isa: Some(Isa::R500),
        about: "the text of any words assembles to these words: fragment programs",
        counts: "instructions",
        make: make_r500,
        seeds: no_seeds,
        check: check_r500,
    },
    Target {
        name: "decode-r500-vertex",
        isa: Some(Isa::R500),
        about: "the text of any words assembles to these words: vertex programs",
        counts: "instructions",
        make: make_vertex,
        seeds: no_seeds,
        check: check_vertex,
    },
    Target {
        name: "decode-r700",
        isa: Some(Isa::R700),
        about: "the text of any words assembles to these words: control flow, ALU and fetch clauses of R600 and R700",
        counts: "64-bit words",
        make: make_clauses,
        seeds: no_seeds,
        check: check_clauses,
    },
    Target {
        name: "decode-tesla",
        isa: Some(Isa::Tesla),
        about: "the text of any words assembles to these words: compute, vertex, geometry and fragment programs",
        counts: "instructions",
        make: make_tesla,
        seeds: no_seeds,
        check: check_tesla,
    },
];

/// Bits of the second byte of the head. These bits select the form of the text.
const HEX: u8 = 1;
const STRUCTURE: u8 = 2;
const IDIOMS: u8 = 4;
const NUMBERS: u8 = 8;
/// The lower of the two bits that select the stage of a Tesla program.
const STAGE: u8 = 16;

/// Returns a random head. In most cases, the head selects the plain form of the text.
fn any_head(random: &mut Random) -> [u8; 4] {
    let form = if random.once_in(8) { random.below(u32::from(STAGE)) as u8 } else { 0 };
    [random.next() as u8, form | (random.below(4) as u8 * STAGE), 0, 0]
}

/// Disassembles an input and returns the text in its plain form. Returns `None` if the target does not belong to this
/// module. The function does not check whether the property of the target is true.
pub fn text(target: &Target, bytes: &[u8]) -> Option<String> {
    let words = words(bytes);
    let program = Program::from_words(words.clone());
    Some(match target.name {
        "decode-r500" => reconverge_r500::text::disassemble(&program, Default::default()),
        "decode-r500-vertex" => pvs::text::disassemble(&program, Default::default()),
        "decode-r700" => reconverge_r700::text::disassemble(&words, Chip::RV770, Default::default()).text,
        "decode-tesla" => reconverge_tesla::text::disassemble(
            &words,
            0,
            TeslaChip::Gt215,
            Stage::Compute,
            Default::default(),
        ),
        _ => return None,
    })
}

/// Checks that the words `back` are equal to `words`. The error names the first difference.
fn same(words: &[u32], back: &[u32], text: &str) -> Result<(), String> {
    if words == back {
        return Ok(());
    }
    let at = (0..words.len().max(back.len())).find(|&at| words.get(at) != back.get(at)).unwrap_or(0);
    Err(format!(
        "word {at} of {} is {:08x?}, not {:08x?}, in\n{text}",
        words.len(),
        back.get(at),
        words.get(at)
    ))
}

fn refused(errors: &[Diagnostic], text: &str) -> String {
    let Some(error) = errors.first() else { return "refused without a message".to_owned() };
    let (line, column) = error.span.line_column(text);
    format!("line {line}, column {column} of the text does not assemble: {error}\n{text}")
}

fn make_r500(random: &mut Random) -> Vec<u8> {
    let mut words = Vec::with_capacity(6 * 32);
    for _ in 0..32 {
        let kind = random.one_of(&TYPES);
        // In most cases, only documented bits are set. In one of 16 cases, any bits may be set.
        let any = random.once_in(16);
        let mut record: [u32; 6] = std::array::from_fn(|_| random.next());
        for (word, info) in record.iter_mut().zip(layout(kind)) {
            *word &= if any { u32::MAX } else { info.owned };
        }
        record[0] = record[0] & !3 | kind as u32;
        words.extend(record);
    }
    if random.once_in(16) {
        words.truncate(random.below(words.len() as u32) as usize);
    }
    input(any_head(random), &words)
}

fn check_r500(bytes: &[u8]) -> Result<u64, String> {
    use reconverge_r500::text::{Listing, assemble, disassemble};
    let [_, style, ..] = head(bytes);
    let program = Program::from_words(words(bytes));
    let (records, _) = program.words.as_chunks();
    for record in records {
        let _ = reconverge_r500::inst::decode(record);
    }
    let [hex, structure, idioms] = [HEX, STRUCTURE, IDIOMS].map(|bit| style & bit != 0);
    let text = disassemble(&program, Listing { hex, structure, idioms });
    let back = assemble(&text).map_err(|errors| refused(&errors, &text))?;
    same(&program.words, &back.program.words, &text)?;
    Ok(records.len() as u64)
}

fn make_vertex(random: &mut Random) -> Vec<u8> {
    let mut words: Vec<u32> = (0..32).flat_map(|_| vertex::any_record(random)).collect();
    if random.once_in(16) {
        words.truncate(random.below(words.len() as u32) as usize);
    }
    input(any_head(random), &words)
}

fn check_vertex(bytes: &[u8]) -> Result<u64, String> {
    use pvs::text::{Listing, assemble, disassemble};
    let [_, style, ..] = head(bytes);
    let program = Program::from_words(words(bytes));
    let (records, _) = program.words.as_chunks();
    for record in records {
        let _ = pvs::inst::decode(record);
    }
    let [hex, structure] = [HEX, STRUCTURE].map(|bit| style & bit != 0);
    let text = disassemble(&program, Listing { hex, structure, idioms: false });
    let back = assemble(&text).map_err(|errors| refused(&errors, &text))?;
    same(&program.words, &back.program.words, &text)?;
    Ok(records.len() as u64)
}

fn make_clauses(random: &mut Random) -> Vec<u8> {
    let head = any_head(random);
    if random.once_in(4) {
        // In each word, few bits are set. Therefore, some words are control flow instructions with valid targets.
        let words: Vec<u32> = (0..2 * random.below(24)).map(|_| random.next() & random.next()).collect();
        return input(head, &words);
    }
    let alu: Vec<u32> = (0..64).map(|_| random.next()).collect();
    let fetch: Vec<u32> = (0..32).map(|_| random.next()).collect();
    input(head, &with_clauses(&alu, &fetch))
}

fn check_clauses(bytes: &[u8]) -> Result<u64, String> {
    use reconverge_r700::text::{Options, assemble, disassemble};
    let [chip, style, ..] = head(bytes);
    let words = words(bytes);
    let chip = chosen(chip, CHIPS);
    let [hex, structure] = [HEX, STRUCTURE].map(|bit| style & bit != 0);
    let text = disassemble(&words, chip, Options { hex, structure, ..Options::default() }).text;
    let back = assemble(&text, Chip::RV770).map_err(|errors| refused(&errors, &text))?;
    same(&words, &back.words, &text)?;
    if back.chip != chip {
        return Err(format!("{} comes back as {}", chip.name, back.chip.name));
    }
    Ok(words.len() as u64 / 2)
}

fn make_tesla(random: &mut Random) -> Vec<u8> {
    let mut words = Vec::with_capacity(64);
    while words.len() < 64 {
        // In most cases, the code chooses a random row of the instruction table. The word has the fixed bits of the
        // row. The remaining bits are random. Otherwise, all bits of the word are random.
        let word = random.next_u64();
        let row = random.one_of(TABLE.rows());
        let (word, long) = match random.once_in(8) {
            true => (word, true),
            false => (word & !row.mask & row.width() | row.fixed, row.long),
        };
        words.push(word as u32);
        if long {
            words.push((word >> 32) as u32);
        }
    }
    let mut head = any_head(random);
    if random.once_in(8) {
        // The base address of the program, in words of 4 bytes.
        (head[2], head[3]) = (random.next() as u8, random.next() as u8);
    }
    input(head, &words)
}

fn check_tesla(bytes: &[u8]) -> Result<u64, String> {
    use reconverge_tesla::text::{Listing, assemble, disassemble};
    let [chip, style, low, high] = head(bytes);
    let words = words(bytes);
    let chip = chosen(chip, &TeslaChip::ALL);
    let stage = chosen(style / STAGE, &Stage::ALL);
    let [hex, structure, numbers] = [HEX, STRUCTURE, NUMBERS].map(|bit| style & bit != 0);
    let base = 4 * u32::from(u16::from_le_bytes([low, high]));
    let text = disassemble(&words, base, chip, stage, Listing { hex, structure, labels: !numbers });
    let back = assemble(&text, chip, stage).map_err(|errors| refused(&errors, &text))?;
    same(&words, &back.words(), &text)?;
    // The text has one line per instruction. More lines contain directives and labels.
    let is_instruction = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with('.') && !line.ends_with(':')
    };
    Ok(text.lines().filter(is_instruction).count() as u64)
}
