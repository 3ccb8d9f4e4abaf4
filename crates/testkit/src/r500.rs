//! Random programs of R500's fragment processor, and launches of these programs.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::inst::{Inst, decode};
use reconverge_r500::launch::{Environment, Hardware, Input, Launch};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_r500::texture::Texture;
use reconverge_r500::words::{InstType, layout};
use reconverge_simt::random::Random;
use reconverge_simt::texture::Shape;

use crate::textures;

/// Bit patterns that arithmetic treats as special cases, and the neighbours of such bit patterns.
#[rustfmt::skip]
pub const SPECIAL: [u32; 24] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x0100_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f00_0000,
    0x3f00_0001,
    0x4b80_0000,
    0x4b80_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f00_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7f80_0001,
    0x7fff_ffff,
    0xffc0_1234,
];

/// Returns one of these: arbitrary bits, a special value, the neighbour of a special value, or a number of moderate
/// magnitude.
pub fn value(random: &mut Random) -> u32 {
    match random.below(8) {
        0 | 1 => SPECIAL[random.below(SPECIAL.len() as u32) as usize],
        2 => random.next(),
        3 => SPECIAL[random.below(SPECIAL.len() as u32) as usize] ^ random.below(4),
        4 => ((random.below(64) as i32 - 32) as f32).to_bits(),
        // A number between 2^-8 and 2^8, with few or many significant bits.
        5 => (0x3b80_0000 + (random.below(0x80) << 20)) | random.next() & 0x8000_0000,
        _ => (0x3b80_0000 + random.below(0x800_0000)) | random.next() & 0x8000_0000,
    }
}

/// Returns four results of [`value`].
pub fn quad(random: &mut Random) -> [u32; 4] {
    std::array::from_fn(|_| value(random))
}

/// The types of instructions.
pub const TYPES: [InstType; 4] = [InstType::ALU, InstType::OUT, InstType::FC, InstType::TEX];

/// Returns a valid instruction of a type. Its register numbers are small, and its jump target is near.
pub fn record(random: &mut Random, kind: InstType) -> ([u32; 6], Inst) {
    loop {
        let mut words: [u32; 6] = std::array::from_fn(|_| random.next());
        for (word, info) in words.iter_mut().zip(layout(kind)) {
            *word &= info.owned;
        }
        words[0] = words[0] & !3 | kind as u32;
        match kind {
            InstType::ALU | InstType::OUT => {
                // The sources are temporaries and constants 0 to 7, or inline constants. Few sources are relative.
                let keep = if random.once_in(16) { 0x387 } else { 0x187 };
                for word in &mut words[1..3] {
                    *word &= 3 << 30 | keep << 20 | keep << 10 | keep;
                }
                for word in &mut words[4..6] {
                    *word &= if random.once_in(16) { !0x780 } else { !0xf80 };
                }
                if random.once_in(2) {
                    words[0] &= !(7 << 3 | 7 << 25);
                }
            }
            InstType::FC => words[3] &= !(0x1f8 << 16),
            InstType::TEX => words[2] &= !(0x78 << 16 | 0x78),
        }
        if let Ok(inst) = decode(&words) {
            return (words, inst);
        }
    }
}

/// Returns a program with random state. The program consists of the words `words` and an OUT at the end.
///
/// # Panics
/// Does not panic, because every sequence of instruction words is a valid program.
pub fn setup(random: &mut Random, mut words: Vec<u32>) -> Arc<Setup> {
    words.extend([5, 0, 0, 0, 0, 0]);
    let state = vec![
        ("US_CONFIG".to_owned(), random.next() & 2),
        ("US_PIXSIZE".to_owned(), if random.once_in(8) { random.next() & 7 } else { 0x7f }),
        ("US_FC_CTRL".to_owned(), if random.once_in(8) { 0 } else { 0x8000_0000 }),
        ("US_FC_BOOL_CONST".to_owned(), random.next()),
        ("US_FC_INT_CONST_0".to_owned(), random.next() & 0x00ff_ff03),
    ];
    Arc::new(Setup::new(&Program { words, state, ..Program::default() }).expect("a program"))
}

/// Returns a launch with four inputs, constants and a texture on each of eight units.
pub fn launch(random: &mut Random, lanes: usize) -> Launch {
    let inputs = [0, 1, 2, 3].map(|temp| Input { temp, values: (0..lanes).map(|_| quad(random)).collect() });
    let shapes =
        [Shape::D2, Shape::D1, Shape::D2, Shape::D3, Shape::Cube, Shape::D2Array, Shape::D2, Shape::D1];
    let textures = shapes.into_iter().zip(0..).map(|(shape, unit)| {
        let image = Arc::new(textures::image(shape, random));
        (unit, Texture { image, sampler: textures::sampler(random) })
    });
    let textures = textures.collect();
    let group_width = [16, 16, 4, 48, 64, 12][random.below(6) as usize];
    Launch {
        lanes,
        inputs: inputs.to_vec(),
        environment: Environment {
            constants: (0..8).map(|number| (number, quad(random))).collect(),
            textures,
            hardware: Hardware { group_width, ..Hardware::default() },
        }
        .into(),
        columns: Vec::new(),
    }
}

/// Returns an arbitrary instruction. In most cases, the instruction has only documented bits, and the jump target is
/// near the instruction. The program then runs for some time.
pub fn any_record(random: &mut Random) -> [u32; 6] {
    let mut words = std::array::from_fn(|_| random.next());
    let kind = TYPES[random.below(4) as usize];
    if !random.once_in(8) {
        for (word, info) in words.iter_mut().zip(layout(kind)) {
            *word &= info.owned;
        }
        words[0] = words[0] & !3 | kind as u32;
        if kind == InstType::FC {
            words[3] &= !(0x1f0 << 16);
        }
    }
    words
}

/// Returns the words of up to twelve instructions of all types.
pub fn program(random: &mut Random) -> Vec<u32> {
    let count = 1 + random.below(12) as usize;
    let mut words = Vec::new();
    for _ in 0..count {
        let kind = TYPES[[0, 0, 1, 2, 2, 3][random.below(6) as usize]];
        words.extend(record(random, kind).0);
    }
    words
}

/// Returns a loop over instructions of all kinds, including TEXKILL. Most addresses in the loop are relative to aL.
/// Also returns the integer constant of the loop. This constant makes aL rise, fall or stay constant.
///
/// # Panics
/// Does not panic, because the text of the loop without a body assembles.
pub fn relative(random: &mut Random) -> (Vec<u32>, u32) {
    let frame = assemble("loop int[0]\nendloop int[0]\nOUT nop\n").expect("it assembles").program.words;
    let [begin, end, out] = [0, 1, 2].map(|slot: usize| &frame[slot * 6..slot * 6 + 6]);
    let mut words = begin.to_vec();
    for _ in 0..1 + random.below(6) {
        let kind = [InstType::ALU, InstType::ALU, InstType::OUT, InstType::TEX][random.below(4) as usize];
        let mut record = record(random, kind).0;
        let bits = random.next() | random.next();
        match kind {
            InstType::TEX => {
                record[1] &= !(8 << 16);
                record[2] |= bits & (1 << 23 | 1 << 7);
            }
            _ => {
                for word in &mut record[1..3] {
                    *word |= bits & (1 << 9 | 1 << 19 | 1 << 29);
                }
                record[4] |= bits & 1 << 11;
                record[5] |= bits & 1 << 11;
            }
        }
        if decode(&record).is_ok() {
            words.extend(record);
        }
    }
    // ENDLOOP jumps to the instruction after the LOOP, and LOOP jumps to the instruction after the ENDLOOP.
    let slots = (words.len() / 6) as u32;
    words[3] = words[3] & 0xffff | (slots + 1) << 16;
    words.extend(end);
    let last = words.len() - 6;
    words[last + 3] = words[last + 3] & 0xffff | 1 << 16;
    words.extend(out);
    let steps = [0, 1, 1, 3, 0xff, 0x80, random.next() & 0xff];
    let constant = (1 + random.below(6)) | random.below(10) << 8 | steps[random.below(7) as usize] << 16;
    (words, constant)
}
