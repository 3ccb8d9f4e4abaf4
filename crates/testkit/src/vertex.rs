//! Random programs of R500's vertex unit, and launches of these programs.

use reconverge_isa::Program;
use reconverge_r500::pvs::inst::decode;
use reconverge_r500::pvs::launch::{Environment, Input, Launch};
use reconverge_simt::random::Random;

/// Returns 32 bits from two random numbers.
pub fn word(random: &mut Random) -> u32 {
    random.next() << 12 ^ random.next()
}

/// Returns true with a probability of 1 / `count`.
pub fn one_in(count: u32, random: &mut Random) -> bool {
    word(random).is_multiple_of(count)
}

/// Returns a program of random valid instructions, with the flow-control state that [`state`] returns.
pub fn program(random: &mut Random) -> Program {
    let count = 4 + random.next() as usize % 20;
    let mut words = Vec::new();
    while words.len() < 4 * count {
        let mut record = [0, 1, 2, 3].map(|_| word(random));
        // The programs use few registers, so that an instruction often uses the results of earlier instructions.
        // Predicates and relative addresses are rare.
        record[0] = record[0] & !(0x7f << 13 | 1 << 12 | 1 << 31 | 0xf << 8 | 0x20)
            | (word(random) % 4) << 13
            | [0, 0, 0, 2, 4, 1, 3, 5][word(random) as usize % 8] << 8;
        if !one_in(4, random) {
            record[0] &= !(1 << 26);
        }
        if !one_in(4, random) {
            record[0] &= !(1 << 28);
        }
        if one_in(16, random) {
            record[0] |= 1 << 31;
        }
        for source in &mut record[1..] {
            *source = *source & !(0xff << 5 | 1 << 31) | (word(random) % 4) << 5;
            if !one_in(8, random) {
                *source &= !(1 << 4);
            }
            // Select codes that are reserved are generated rarely.
            for at in [13, 16, 19, 22] {
                if *source >> at & 7 > 5 {
                    *source &= !(4 << at);
                }
            }
        }
        if decode(&record).is_ok() {
            words.extend(record);
        }
    }
    let state = state(random, count);
    Program { words, state, ..Program::default() }
}

/// Returns the flow-control state of a program of `count` instructions. In most cases, the state makes the program
/// loop. In some cases, the state also makes the program call a subroutine.
pub fn state(random: &mut Random, count: usize) -> Vec<(String, u32)> {
    let last = count.saturating_sub(1) as u32;
    let state = [
        ("VAP_PVS_FLOW_CNTL_OPC", [0, 2, 0b1110, 0b1010][random.next() as usize % 4]),
        ("VAP_PVS_FLOW_CNTL_ADDRS_LW_0", (1 + word(random) % 3) << 16),
        ("VAP_PVS_FLOW_CNTL_ADDRS_UW_0", 1 << 16 | last),
        ("VAP_PVS_FLOW_CNTL_LOOP_INDEX_0", word(random) & 0xffff),
        ("VAP_PVS_FLOW_CNTL_ADDRS_LW_1", 1 | 2 << 16),
        ("VAP_PVS_FLOW_CNTL_ADDRS_UW_1", 2 << 16 | 2),
    ];
    state.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Returns a launch with four inputs and eight constants.
pub fn launch(random: &mut Random, vertices: usize) -> Launch {
    let mut value = || match random.next() % 8 {
        0 => [0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0001, 1, 0x7f7f_ffff, 0x3f80_0000]
            [random.next() as usize % 8],
        1 => word(random),
        _ => ((random.next() % 2048) as f32 / 64.0 - 16.0).to_bits(),
    };
    let inputs = (0..4u8).map(|register| {
        let values = (0..vertices).map(|_| [0, 1, 2, 3].map(|_| value())).collect();
        Input { register, values }
    });
    let inputs = inputs.collect();
    let constants = (0..8u8).map(|number| (number, [0, 1, 2, 3].map(|_| value()))).collect();
    Launch { environment: Environment { constants }.into(), vertices, inputs }
}

/// Returns any instruction, in most cases with a valid operation and valid address modes.
pub fn any_record(random: &mut Random) -> [u32; 4] {
    let mut words = [0; 4].map(|_: u32| word(random));
    let kind = random.below(4) as usize;
    if kind != 0 {
        words[0] = words[0] & 0x1fff_e01f & !(3 << 6) | [0, 1 << 6, 0, 1 << 7][kind] | random.below(6) << 8;
        if words[0] >> 7 & 1 == 1 {
            words[0] &= !0x1e;
        }
        words[1..].iter_mut().for_each(|word| *word &= 0x7fff_ffff);
    }
    words
}
