//! Random groups that use registers and constants relative to AR and aL. MOVA* instructions are between these groups.

use reconverge_r700::chip::Chip;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::text::assemble;
use reconverge_simt::random::Random;

/// Number of registers of a launch.
const REGISTERS: u32 = 9;

fn chan(random: &mut Random) -> char {
    random.one_of(&['x', 'y', 'z', 'w'])
}

/// Returns a register, a constant, PV or a number. Some registers and constants are indexed.
fn operand(random: &mut Random, index: &str) -> String {
    let (number, chan) = (random.below(REGISTERS), chan(random));
    let sign = random.one_of(&["", "", "", "-"]);
    match random.below(9) {
        0..3 => format!("{sign}R{number}.{chan}"),
        3 | 4 => format!("{sign}R[{}+{index}].{chan}", random.below(6)),
        5 => format!("{sign}KC0[{}].{chan}", random.below(32)),
        6 => format!("{sign}C[{}+{index}].{chan}", random.below(9)),
        7 => format!("{sign}PV.{chan}"),
        _ => random.one_of(&["0", "1", "1.0", "0.5"]).to_owned(),
    }
}

/// Returns a group of up to four slots with one index.
fn group(random: &mut Random, number: usize) -> String {
    let index = random.one_of(&["AR.x", "AR.x", "AR.y", "AR.w", "aL", "aL"]);
    let mut slots = Vec::new();
    for slot in ['x', 'y', 'z', 'w'] {
        if random.once_in(2) {
            continue;
        }
        let predicate = random.one_of(&["", "", "", " PRED(ONE)", " PRED(ZERO)"]);
        let [a, b] = [operand(random, index), operand(random, index)];
        let dst = match random.below(8) {
            0 => format!("_.{slot}"),
            1 | 2 => format!("R[{}+{index}].{slot}", random.below(6)),
            _ => format!("R{}.{slot}", random.below(REGISTERS)),
        };
        slots.push(match random.below(8) {
            0 | 1 => {
                let name = random.one_of(&["MOVA_INT", "MOVA", "MOVA_FLOOR"]);
                // R8 contains small integers, and R7 contains small floats.
                let register = if name == "MOVA_INT" { 8 } else { 7 };
                let dst = if random.once_in(2) { format!("_.{slot}") } else { format!("R2.{slot}") };
                format!("{slot}: {name} {dst}, R{register}.{slot}{predicate}")
            }
            2 => format!("{slot}: MOV {dst}, {a}{predicate}"),
            3 => format!("{slot}: ADD {dst}, {a}, {b}{predicate}"),
            4 => format!("{slot}: MUL {dst}, {a}, {b} CLAMP{predicate}"),
            5 => format!("{slot}: XOR_INT {dst}, {}, R1.y{predicate}", a.trim_start_matches('-')),
            6 => format!("{slot}: MULADD R3.{slot}, {a}, {b}, R6.y{predicate}"),
            _ if random.once_in(3) => format!("{slot}: PRED_SETGT _.{slot}, {a}, {b} UPDATE_PRED"),
            _ => format!("{slot}: MAX {dst}, {a}, {b}{predicate}"),
        });
    }
    if slots.is_empty() {
        slots.push("x: MOVA_INT _.x, R8.x".to_owned());
    }
    format!(" {number} {}\n", slots.join("\n   "))
}

/// Returns up to two clauses of groups from [`group`], as a loop or as straight-line code. Some lanes break out of the
/// loop or are killed.
pub fn source(random: &mut Random) -> String {
    let window = random.one_of(&["0-15", "0-31", "16-47+aL", "0-31+aL"]);
    let counted = !random.once_in(6);
    let mut source = if counted { "LOOP_START: ADDR(@out) CF_CONST(0)\n@body:\n" } else { "" }.to_owned();
    for _ in 0..1 + random.below(2) {
        if counted && random.once_in(3) {
            source += "ALU_BREAK:\n 0 x: PRED_SETGT_INT _.x, R0.w, R1.x UPDATE_EXEC_MASK\n";
        }
        source += &format!("ALU: KCACHE0(CB0:{window})\n");
        if random.once_in(4) {
            source += " 0 x: KILLGT_INT _.x, R0.z, R1.z\n";
        }
        if !random.once_in(4) {
            source += " 0 x: MOVA_INT _.x, R8.x\n   y: MOVA_INT _.y, R8.y\n   w: MOVA_FLOOR _.w, R7.z\n";
        }
        for number in 1..2 + random.below(5) as usize {
            // A group reads at most one register per component in each of three cycles. Some generated groups would
            // exceed this limit. The code replaces such groups by newly generated groups.
            let groups = std::iter::repeat_with(|| group(random, number));
            let fits = |group: &String| {
                assemble(&format!("ALU: KCACHE0(CB0:{window})\n{group}"), Chip::RV770).is_ok()
            };
            source += &groups.into_iter().find(fits).unwrap_or_default();
        }
    }
    if counted {
        source += "LOOP_END: ADDR(@body) CF_CONST(0)\n@out:\n";
    }
    source += "EXPORT: PIXEL[0], R0.xyzw BURST_CNT(6)\n";
    source + "EXPORT_DONE: PIXEL[7], R7.xyzw END_OF_PROGRAM\n"
}

/// Returns a launch of up to 70 lanes. Some addresses are far outside the registers.
pub fn launch(random: &mut Random) -> Launch {
    let lanes = 1 + random.below(70) as usize;
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (REGISTERS as u8, 0);
    let first = random.one_of(&[0, 0, 1, 2, 7]);
    launch.environment_mut().resources.loop_constants[0] =
        LoopConstant((1 + random.below(2)) | (first << 12) | (1 << 24));
    launch.environment_mut().resources.constant_buffers[0] =
        (0..random.one_of(&[40, 400])).map(|_| random.next()).collect();
    launch.environment_mut().resources.constant_file =
        (0..12).map(|_| [(); 4].map(|()| random.next())).collect();
    let beyond = random.once_in(4);
    for gpr in 0..REGISTERS as u8 {
        let mut value = || match gpr {
            8 if beyond && random.once_in(40) => random.next(),
            8 => random.below(4),
            7 => (random.below(7) as f32 / 2.0).to_bits(),
            _ => random.next(),
        };
        let values = (0..lanes).map(|_| [(); 4].map(|()| value())).collect();
        launch.inputs.push(Input { gpr, values });
    }
    launch
}
