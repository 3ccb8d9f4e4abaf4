//! Random programs of R700, and launches of these programs.

pub mod indexed;
pub mod memory;

use reconverge_isa::Program;
use reconverge_r700::chip::{Chip, Family};
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::meaning::{op2, op3};
use reconverge_r700::words::{
    AluDword0, AluDword1Op2R700, AluDword1Op3, IndexModeR700, Omod, Op2, Op3, PredSel,
};
use reconverge_simt::random::Random;

/// Returns a program whose clauses hold the ALU words `alu` and the fetch words `fetch`.
pub fn with_clauses(alu: &[u32], fetch: &[u32]) -> Vec<u32> {
    let slots = alu.len() as u32 / 2;
    let fetches = fetch.len() as u32 / 4;
    let fetch_at = 4 + slots + slots % 2;
    let count = ((fetches - 1) & 7) << 10 | ((fetches - 1) >> 3) << 19;
    let mut words =
        vec![4, 0xa000_0000 | (slots - 1) << 18, fetch_at, 0x8080_0000 | count, 0, 0x8020_0000, 0, 0];
    words.extend(alu);
    words.resize(fetch_at as usize * 2, 0);
    words.extend(fetch);
    words
}

/// Returns a register, a constant of the constant file, an inline constant, PV or PS.
fn source(random: &mut Random) -> (u16, u8) {
    let chan = random.below(4) as u8;
    let sel = match random.below(10) {
        0..6 => random.below(4) as u16,
        6 => 248 + random.below(5) as u16,
        7 => 256 + random.below(6) as u16,
        8 => 254,
        _ => 255,
    };
    (sel, chan)
}

/// Opcodes that use the four vector slots together.
const ACROSS: [Op2; 4] = [Op2::DOT4, Op2::DOT4_IEEE, Op2::MAX4, Op2::CUBE];

/// Returns the first word of an instruction. With a probability of 1 / `predicated`, PRED_SEL makes the instruction run
/// only for a predicate of 0. With an equal probability, PRED_SEL makes the instruction run only for a predicate of 1.
fn operands(random: &mut Random, sources: [(u16, u8); 3], predicated: u32, last: bool) -> AluDword0 {
    let [(src0_sel, src0_chan), (src1_sel, src1_chan), _] = sources;
    AluDword0 {
        src0_sel,
        src0_rel: false,
        src0_chan,
        src0_neg: random.once_in(4),
        src1_sel,
        src1_rel: false,
        src1_chan,
        src1_neg: random.once_in(4),
        index_mode: IndexModeR700::AR_X,
        pred_sel: match random.below(predicated) {
            0 => PredSel::ZERO,
            1 => PredSel::ONE,
            _ => PredSel::OFF,
        },
        last,
    }
}

/// Returns one slot of a group.
fn instruction(random: &mut Random, chan: u8, across: Option<Op2>, last: bool) -> [u32; 2] {
    let sources = [source(random), source(random), source(random)];
    let relative = random.once_in(60);
    let low = AluDword0 { src0_rel: relative && sources[0].0 < 128, ..operands(random, sources, 8, last) };
    let dst_gpr = random.below(4) as u8;
    let clamp = random.once_in(6);
    // Opcodes that need several slots. In most cases, the group has different opcodes in the remaining slots, and
    // strict mode rejects the group. So this code rarely generates such opcodes.
    let any = random.once_in(12);
    if across.is_none() && random.once_in(4) {
        let codes: Vec<Op3> =
            Op3::ALL.iter().copied().filter(|code| any || !op3(*code).meaning.spans_slots()).collect();
        let code = codes[random.below(codes.len() as u32) as usize];
        let high = AluDword1Op3 {
            src2_sel: sources[2].0,
            src2_rel: false,
            src2_chan: sources[2].1,
            src2_neg: random.once_in(4),
            alu_inst: code,
            bank_swizzle: 0,
            dst_gpr,
            dst_rel: random.once_in(60),
            dst_chan: chan,
            clamp,
        };
        return [low.pack(), high.pack()];
    }
    let alone =
        |code: &Op2| any || op2(*code, Family::R700).is_some_and(|opcode| !opcode.meaning.spans_slots());
    let codes: Vec<Op2> = Op2::ALL.iter().copied().filter(alone).collect();
    let code = across.unwrap_or(codes[random.below(codes.len() as u32) as usize]);
    let high = AluDword1Op2R700 {
        src0_abs: random.once_in(5),
        src1_abs: random.once_in(5),
        update_execute_mask: random.once_in(12),
        update_pred: random.once_in(2),
        write_mask: !random.once_in(4),
        omod: [Omod::OFF, Omod::OFF, Omod::M2, Omod::D2][random.below(4) as usize],
        alu_inst: code as u16,
        bank_swizzle: 0,
        dst_gpr,
        dst_rel: random.once_in(60),
        dst_chan: chan,
        clamp,
    };
    [low.pack(), high.pack()]
}

/// Returns the words of some slots. Most words are from instructions of a random program. In some words from
/// instructions, this function changes a few bits. A few words are arbitrary. If all words were arbitrary, hardly any
/// group would run.
pub fn any_slots(random: &mut Random) -> Vec<u32> {
    let (changed, any) = random.one_of(&[(2, 8), (8, 32), (32, 128)]);
    let (mut slots, mut chan) = (Vec::new(), 0);
    for _ in 0..1 + random.below(16) {
        chan = (chan + random.below(4) as u8).min(3);
        let last = chan == 3 || random.once_in(2);
        let mut words = instruction(random, chan, None, last);
        if random.once_in(any) {
            words = [random.next(), random.next()];
        } else if random.once_in(changed) {
            for _ in 0..1 + random.below(3) {
                words[random.below(2) as usize] ^= 1 << random.below(32);
            }
        }
        slots.extend(words);
        chan = if last { 0 } else { chan + 1 };
    }
    slots
}

/// Returns a program with one ALU clause of random groups. After the clause, the program exports all four registers.
pub fn program(random: &mut Random) -> Program {
    let mut slots: Vec<[u32; 2]> = Vec::new();
    for _ in 0..1 + random.below(8) {
        let across = random.once_in(8).then(|| random.one_of(&ACROSS));
        let chosen: Vec<u8> = match across {
            Some(_) => vec![0, 1, 2, 3],
            None => (0..4).filter(|_| random.once_in(2)).collect(),
        };
        let chosen = if chosen.is_empty() { vec![random.below(4) as u8] } else { chosen };
        for (number, chan) in chosen.iter().enumerate() {
            slots.push(instruction(random, *chan, across, number + 1 == chosen.len()));
        }
    }
    Program::from_words(with_exports(random, slots.as_flattened()))
}

/// Returns a program whose only ALU clause has the words `alu`. After the clause, the program exports all four
/// registers.
pub fn with_exports(random: &mut Random, alu: &[u32]) -> Vec<u32> {
    let form = [8, 8, 9, 10][random.below(4) as usize];
    // The program consists of a push, the clause and four exports. Some forms of the clause pop the entry of the push.
    let mut words = vec![0, 0x8580_0000, 6, form << 26 | 1 << 31 | (alu.len() as u32 / 2 - 1) << 18];
    for register in 0..4u32 {
        // The instruction is an EXPORT. For the last register, the instruction is an EXPORT_DONE with END_OF_PROGRAM.
        let high = if register == 3 { 0x9420_0688 } else { 0x9380_0688 };
        words.extend([0xc000_0000 | register << 15 | register, high]);
    }
    words.extend(alu);
    words
}

/// Opcodes that do not compute transcendental functions. The clauses of [`conditional`] use these opcodes.
const PLAIN2: [Op2; 40] = [
    Op2::ADD,
    Op2::MUL,
    Op2::MUL_IEEE,
    Op2::MAX,
    Op2::MIN,
    Op2::MAX_DX10,
    Op2::MIN_DX10,
    Op2::SETE,
    Op2::SETGT,
    Op2::SETGE,
    Op2::SETNE,
    Op2::SETGT_DX10,
    Op2::SETNE_DX10,
    Op2::MOV,
    Op2::MOV,
    Op2::AND_INT,
    Op2::XOR_INT,
    Op2::NOT_INT,
    Op2::ADD_INT,
    Op2::SUB_INT,
    Op2::MAX_INT,
    Op2::MIN_UINT,
    Op2::SETE_INT,
    Op2::SETGE_INT,
    Op2::SETGT_UINT,
    Op2::SETGE_UINT,
    Op2::ASHR_INT,
    Op2::LSHR_INT,
    Op2::LSHL_INT,
    Op2::FRACT,
    Op2::FLOOR,
    Op2::CEIL,
    Op2::TRUNC,
    Op2::RNDNE,
    Op2::PRED_SETE,
    Op2::PRED_SETGT,
    Op2::PRED_SETGE_INT,
    Op2::PRED_SETNE_INT,
    Op2::PRED_SETGT_UINT,
    Op2::DOT4,
];
const PLAIN3: [Op3; 10] = [
    Op3::MULADD,
    Op3::MULADD_M2,
    Op3::MULADD_D2,
    Op3::MULADD_IEEE,
    Op3::CNDE,
    Op3::CNDGT,
    Op3::CNDGE,
    Op3::CNDE_INT,
    Op3::CNDGT_INT,
    Op3::CNDGE_INT,
];
const DECIDING: [Op2; 10] = [
    Op2::PRED_SETE,
    Op2::PRED_SETGT,
    Op2::PRED_SETGE,
    Op2::PRED_SETNE,
    Op2::PRED_SETE_INT,
    Op2::PRED_SETGT_INT,
    Op2::PRED_SETGE_INT,
    Op2::PRED_SETNE_INT,
    Op2::PRED_SETGT_UINT,
    Op2::PRED_SETGE_UINT,
];

/// Returns a group with opcodes of `PLAIN2` and `PLAIN3`. If `decides` is set, the group is one PRED_SET* with
/// UPDATE_EXEC_MASK.
fn plain_group(random: &mut Random, decides: bool, predicates: bool) -> Vec<[u32; 2]> {
    let chosen: Vec<u8> = (0..4).filter(|_| !decides && random.once_in(2)).collect();
    let chosen = if chosen.is_empty() { vec![random.below(4) as u8] } else { chosen };
    let mut slots = Vec::new();
    for (number, chan) in chosen.iter().enumerate() {
        let sources = [source(random), source(random), source(random)];
        let low = operands(random, sources, 5, number + 1 == chosen.len());
        let low = AluDword0 { pred_sel: if predicates { low.pred_sel } else { PredSel::OFF }, ..low };
        let (dst_gpr, clamp) = (random.below(4) as u8, random.once_in(4));
        let high = if !decides && random.once_in(4) {
            AluDword1Op3 {
                src2_sel: sources[2].0,
                src2_rel: false,
                src2_chan: sources[2].1,
                src2_neg: random.once_in(4),
                alu_inst: PLAIN3[random.below(PLAIN3.len() as u32) as usize],
                bank_swizzle: 0,
                dst_gpr,
                dst_rel: false,
                dst_chan: *chan,
                clamp,
            }
            .pack()
        } else {
            // The last opcode uses four slots.
            let plain = PLAIN2[random.below(PLAIN2.len() as u32 - 1) as usize];
            AluDword1Op2R700 {
                src0_abs: random.once_in(5),
                src1_abs: random.once_in(5),
                update_execute_mask: decides,
                update_pred: predicates && random.once_in(2),
                write_mask: !random.once_in(4),
                omod: [Omod::OFF, Omod::OFF, Omod::M2, Omod::D2][random.below(4) as usize],
                alu_inst: if decides { DECIDING[random.below(10) as usize] } else { plain } as u16,
                bank_swizzle: 0,
                dst_gpr,
                dst_rel: false,
                dst_chan: *chan,
                clamp,
            }
            .pack()
        };
        slots.push([low.pack(), high]);
    }
    slots
}

/// Returns a program with a conditional and exports at the end. In some programs, the conditional is inside a loop that
/// lanes leave. The clauses do not compute transcendental functions.
pub fn conditional(random: &mut Random) -> Program {
    let looped = random.once_in(2);
    let otherwise = random.once_in(2);
    let mut clauses: Vec<Vec<[u32; 2]>> = Vec::new();
    let mut clause = |random: &mut Random, decides: bool| {
        let predicates = random.once_in(3);
        let groups = random.below(4) + u32::from(!decides);
        let mut slots: Vec<[u32; 2]> =
            (0..groups).flat_map(|_| plain_group(random, false, predicates)).collect();
        if decides {
            slots.extend(plain_group(random, true, predicates));
        }
        clauses.push(slots);
        clauses.len() as u32 - 1
    };
    // Word 0 contains the address. Word 1 contains CF_INST, POP_COUNT and BARRIER. Until the addresses of the clauses
    // are known, the address field of a clause instruction contains the clause's number.
    let cf = |address: u32, inst: u32, pops: u32| [address, 1 << 31 | inst << 23 | pops];
    let alu = |number: u32, form: u32| [number, 1 << 31 | form << 26];
    const LOOP_END: u32 = 5;
    const LOOP_START_DX10: u32 = 6;
    const JUMP: u32 = 10;
    const ELSE: u32 = 13;
    const POP: u32 = 14;
    const ALU: u32 = 8;
    const PUSH_BEFORE: u32 = 9;
    const POP_AFTER: u32 = 10;
    const BREAK: u32 = 14;
    let mut words: Vec<[u32; 2]> = Vec::new();
    if looped {
        words.push(cf(0, LOOP_START_DX10, 0));
        words.push(alu(clause(random, true), BREAK));
    }
    words.push(alu(clause(random, true), PUSH_BEFORE));
    let jump = words.len();
    words.push(cf(0, JUMP, 0));
    words.push(alu(clause(random, false), ALU));
    if otherwise {
        words[jump][0] = words.len() as u32;
        words.push(cf(words.len() as u32 + 2, ELSE, 1));
        words.push(alu(clause(random, false), POP_AFTER));
    } else if random.once_in(2) {
        words[jump] = cf(words.len() as u32 + 1, JUMP, 1);
        words.push(cf(0, POP, 1));
    } else {
        // Both paths of the conditional execute the POP.
        words[jump][0] = words.len() as u32;
        words.push(cf(0, POP, 1));
    }
    words.push(alu(clause(random, false), ALU));
    if looped {
        words[0][0] = words.len() as u32 + 1;
        words.push(cf(1, LOOP_END, 0));
    }
    for register in 0..4u32 {
        let high = if register == 3 { 0x9420_0688 } else { 0x9380_0688 };
        words.push([0xc000_0000 | register << 15 | register, high]);
    }
    for number in 0..words.len() {
        if let 8 | 9 | 10 | 14 = words[number][1] >> 26 & 15
            && words[number][1] >> 30 & 1 == 0
            && words[number][1] >> 29 & 1 == 1
        {
            let slots = &clauses[words[number][0] as usize];
            words[number][0] = words.len() as u32;
            words[number][1] |= (slots.len() as u32 - 1) << 18;
            words.extend(slots);
        }
    }
    Program::from_words(words.into_iter().flatten().collect::<Vec<u32>>())
}

/// The upper words of control flow instructions that access no register. Each has the bit BARRIER.
const CALL_FS: u32 = 1 << 31 | 0x13 << 23;
const RETURN: u32 = 1 << 31 | 0x14 << 23;
const END_OF_PROGRAM: u32 = 1 << 21;

/// Returns the number of control flow instructions before the exports of a [`conditional`] program.
fn flow_length(words: &[u32]) -> usize {
    words.chunks(2).position(|word| word[1] == 0x9380_0688).unwrap_or(0)
}

/// Returns a [`conditional`] program in which CALL_FS replaces some control flow instruction. Some programs end before
/// their exports.
pub fn calling(random: &mut Random) -> Program {
    let mut words = conditional(random).words;
    let count = flow_length(&words) as u32;
    words[2 * random.below(count + 2) as usize..][..2].copy_from_slice(&[0, CALL_FS]);
    if random.once_in(4) {
        words[2 * random.below(count) as usize + 1] |= END_OF_PROGRAM;
    }
    Program::from_words(words)
}

/// Returns the words of a fetch program: a [`conditional`] program with a RETURN before its exports. Some fetch programs
/// have no RETURN, and some return earlier.
pub fn fetch_program(random: &mut Random) -> Vec<u32> {
    let mut words = conditional(random).words;
    let count = flow_length(&words) as u32;
    let at = if random.once_in(4) { random.below(count + 4) } else { count };
    words[2 * at as usize..][..2].copy_from_slice(&[0, RETURN]);
    words
}

/// Returns a launch on an R700 with four registers and six constants.
pub fn launch(random: &mut Random) -> Launch {
    let chip = [Chip::RV770, Chip::RV770, Chip::named("rv730").unwrap()][random.below(3) as usize];
    let lanes = 1 + random.below(130) as usize;
    let mut launch = Launch::new(chip, Stage::Pixel, lanes);
    launch.environment_mut().num_gprs = 4;
    launch.environment_mut().clause_temps = 0;
    launch.environment_mut().dx10_clamp = random.once_in(2);
    let word = |random: &mut Random| match random.below(4) {
        0 => [0, 0x8000_0000, 1, 0x7f80_0000, 0x7fc0_0000, 0xff80_0001, 0x3f80_0000, 0x0080_0000]
            [random.below(8) as usize],
        1 => (random.below(9) as f32 - 4.0).to_bits(),
        2 => random.below(6),
        _ => random.next(),
    };
    for gpr in 0..4 {
        let values = (0..lanes).map(|_| [0; 4].map(|_: u32| word(random))).collect();
        launch.inputs.push(Input { gpr, values });
    }
    launch.environment_mut().resources.constant_file =
        (0..5).map(|_| [0; 4].map(|_: u32| word(random))).collect();
    launch
}
