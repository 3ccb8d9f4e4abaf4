//! Random instructions, and machines about to execute them.

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Lane, Options};
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Chip, Inst, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, Setup, Varying};
use reconverge_tesla::run::Run;
use reconverge_tesla::table::TABLE;
use reconverge_tesla::texture::Textures;
use reconverge_testkit::Random;

/// `exit nop`, behind the instruction under test.
pub(crate) const EXIT: [u32; 2] = [0xf000_0001, 0xe000_0781];
const MEMORY: u32 = 0x1000;
const MEMORY_BYTES: u32 = 0x400;

/// Bits that arithmetic finds interesting.
pub(crate) fn value(random: &mut Random) -> u32 {
    const EDGES: [u32; 16] = [
        0,
        1,
        2,
        31,
        32,
        0xffff,
        0x8000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x3f80_0000,
        0x7f80_0000,
        0x7fc0_0000,
        0x0080_0000,
        0x007f_ffff,
        0x4f00_0000,
    ];
    match random.below(5) {
        0 => random.one_of(&EDGES),
        1 => random.below(64),
        2 => MEMORY + random.below(MEMORY_BYTES),
        3 => (random.below(1 << 20) as f32 / 1024.0 - 300.0).to_bits(),
        _ => random.next(),
    }
}

#[allow(dead_code)]
/// A machine about to execute the words; the state depends on the seed alone.
pub(crate) fn machine(words: &[u32], chip: Chip, stage: Stage, options: &Options, seed: u64) -> Run {
    machine_with(words, chip, stage, options, seed, &Textures::default())
}

/// [`machine`] with these textures.
pub(crate) fn machine_with(
    words: &[u32],
    chip: Chip,
    stage: Stage,
    options: &Options,
    seed: u64,
    textures: &Textures,
) -> Run {
    let mut random = Random::new(seed);
    let program = Program::from_words([words, &EXIT].concat());
    let lanes = 1 + random.below(32) as usize;
    let registers = random.one_of(&[20, 64, 128]);
    let mut setup = Setup::new(chip);
    setup.textures = textures.clone();
    setup.registers = registers;
    setup.local_bytes = 256;
    setup.modes.sat_nan = random.below(4) == 0;
    setup.modes.mul_zero_wins = random.below(4) == 0;
    let constants: Vec<u8> = (0..256).flat_map(|_| value(&mut random).to_le_bytes()).collect();
    assert!(setup.constants.place(0, 0, &constants) && setup.constants.place(1, 0, &constants));
    let launch = match stage {
        Stage::Fragment => {
            let mut fragment = Fragment::new(setup, lanes);
            fragment.covered = (0..lanes).map(|_| random.below(3) != 0).collect();
            fragment.covered[0] = true;
            fragment.varyings.insert(1, Varying::Lanes((0..lanes).map(|_| value(&mut random)).collect()));
            Launch::Fragment(fragment)
        }
        Stage::Compute | Stage::Vertex | Stage::Geometry => {
            let mut compute = Compute::of(&program, chip).unwrap();
            compute.setup = setup;
            compute.block = [lanes as u32, 1, 1];
            compute.shared_bytes = Some(0x200);
            compute.segments.0[0] = compute.segments.0[14];
            let bytes = (0..MEMORY_BYTES).map(|_| random.next() as u8).collect();
            compute.memory = Memory::new(vec![Buffer { address: MEMORY, bytes }]).unwrap();
            Launch::Compute(compute)
        }
    };
    let mut run = Run::new(launch, &program, options).unwrap();
    let warp = &mut run.block_mut().warps[0];
    // Now and then addresses that follow each other.
    let stride = random.one_of(&[None, None, Some(4), Some(0)]);
    // In some machines few values, so that operands are equal, or special together.
    let few = random.one_of(&[1, 2, 4, u32::MAX]);
    let pool: Vec<u32> = (0..4).map(|_| value(&mut random)).collect();
    for register in 0..registers as u8 {
        let first = MEMORY + 4 * random.below(100);
        for lane in 0..32 {
            let value = match (stride, few) {
                (Some(stride), _) => first + stride * lane,
                (None, u32::MAX) => value(&mut random),
                (None, few) => pool[random.below(few) as usize],
            };
            warp.set_r(Lane(lane as u8), register, value);
        }
    }
    for register in 0..4 {
        let first = random.below(0x190) as u16;
        for lane in 0..32 {
            warp.set_c(Lane(lane), register, random.next() as u8);
            let address = match stride {
                Some(stride) => first + stride as u16 * u16::from(lane),
                None => random.below(0x220) as u16,
            };
            warp.set_a(Lane(lane), 1 + register, address);
        }
    }
    run
}

/// Random words of a row that decode. Predicates that always hold are made as frequent as all others.
pub(crate) fn words_of(
    row: usize,
    chip: Chip,
    stage: Stage,
    random: &mut Random,
) -> Option<(Vec<u32>, Inst)> {
    let row = &TABLE.rows()[row];
    for _ in 0..20 {
        let mut bits = u64::from(random.next()) | u64::from(random.next()) << 32;
        if row.long && random.below(2) == 0 {
            bits = bits & !(0x1f << 39) | 0xf << 39;
        }
        let word = row.fixed | bits & !row.mask & !row.unclaimed();
        let words = [word as u32, (word >> 32) as u32];
        if let Ok(inst) = decode(words, chip, stage) {
            // A short one stands beside another.
            let second = if inst.form.words() == 2 { words[1] } else { 0x1000_8000 };
            return Some((vec![words[0], second], inst));
        }
    }
    None
}
