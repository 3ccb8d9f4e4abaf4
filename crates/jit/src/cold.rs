//! Code for rare cases, which is placed after the code that usually runs.

use iced_x86::{Code, Instruction, MemoryOperand, Register};

use crate::accesses::{Lanes, emit_load, emit_store};
use crate::asm::{Assembler, Label, Rm, at_base};
use crate::called::{PerLane, PerLaneFrame};
use crate::frame::{Frame, GATHERED, PER_LANE, SIGNS, enter_mode, leave_mode};
use crate::level::Level;

/// Code for a rare case. This code is placed after the code that usually runs. At its end, the code for the rare case
/// jumps back to the usual code.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) enter: Label,
    pub(crate) back: Label,
    pub(crate) does: Rare,
}

#[derive(Debug)]
pub(crate) enum Rare {
    /// A call of a per-lane function. `given` contains the sources and the mask, each in a register or in memory.
    /// `value` is the register that holds the value before and after the call.
    PerLane { with: PerLane, given: [Rm; 4], value: Register },
    /// A load of words that may not be contiguous in all lanes. If all words are contiguous, the offset of a lane's
    /// word from the first word is the lane's element of `steps`. If several loads have words in one common order,
    /// `order` is the frame slot that contains the order.
    Load { to: Register, free: Register, access: Lanes, steps: Rm, order: Option<i32> },
    /// A store of words that may not be contiguous in all lanes.
    Store { from: Register, free: Register, access: Lanes, steps: Rm },
}

/// Emits the code for rare cases.
pub(crate) fn emit_cold(level: Level, asm: &mut Assembler, cold: &[Cold]) {
    let shared = asm.label();
    for Cold { enter, back, does } in cold {
        asm.bind(*enter);
        match does {
            Rare::PerLane { with, given, value } => emit_rescue(level, asm, shared, *with, given, *value),
            Rare::Load { to, free, access, steps, order } => {
                emit_load(level, asm, [*to, *free], (*access, *steps, *order), *back);
            }
            Rare::Store { from, free, access, steps } => {
                emit_store(level, asm, [*from, *free], (*access, *steps), *back);
            }
        }
        asm.branch(Code::Jmp_rel32_64, *back);
    }
    if cold.iter().any(|cold| matches!(cold.does, Rare::PerLane { .. })) {
        emit_shared(level, asm, shared);
    }
}

/// Returns the address of a field of a [`PerLaneFrame`]. The lower eight lanes have one frame. The upper eight lanes
/// have a second frame. `half` selects the frame.
pub(crate) fn part(half: i32, number: i32) -> MemoryOperand {
    at_base(Register::RSP, PER_LANE + size_of::<PerLaneFrame>() as i32 * half + Level::Avx2.vector() * number)
}

/// Returns the lower half of a register.
pub(crate) fn lower(register: Register) -> Register {
    Register::YMM0 + (register as u32 - Register::ZMM0 as u32)
}

/// Stores a register in a field of a per-lane function's frame.
pub(crate) fn give(level: Level, asm: &mut Assembler, number: i32, from: Register) {
    match level {
        Level::Avx2 => asm.store(level.store(), part(0, number), from),
        Level::Avx512 => {
            asm.store(Code::EVEX_Vmovups_ymmm256_k1z_ymm, part(0, number), lower(from));
            let upper = Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8;
            asm.push(Instruction::with3(upper, part(1, number), from, 1));
        }
    }
}

/// Emits the call of a per-lane function.
pub(crate) fn emit_rescue(
    level: Level,
    asm: &mut Assembler,
    shared: Label,
    with: PerLane,
    given: &[Rm; 4],
    value: Register,
) {
    give(level, asm, 4, value);
    for (number, given) in given.iter().enumerate() {
        let from = match given {
            // The contents of the register `value` are already in the frame. This code may therefore overwrite the
            // register.
            Rm::Register(signs) if number == 3 && level.signs() > 0 => {
                asm.two(Code::EVEX_Vpmovm2d_zmm_kr, value, *signs);
                value
            }
            Rm::Register(register) => *register,
            Rm::Memory(_) => {
                asm.two(level.load(), value, *given);
                value
            }
        };
        give(level, asm, number as i32, from);
    }
    asm.push(Instruction::with2(Code::Mov_r64_imm64, Register::RAX, with.address() as u64));
    asm.branch(Code::Call_rel32_64, shared);
    match level {
        Level::Avx2 => asm.two(level.load(), value, part(0, 4)),
        Level::Avx512 => {
            let lower = lower(value);
            asm.two(Code::EVEX_Vmovups_ymm_k1z_ymmm256, lower, part(0, 4));
            let both = Code::EVEX_Vinsertf64x4_zmm_k1z_zmm_ymmm256_imm8;
            asm.push(Instruction::with4(both, value, value, part(1, 4), 1));
        }
    }
}

/// Emits the common part of all calls of per-lane functions.
pub(crate) fn emit_shared(level: Level, asm: &mut Assembler, shared: Label) {
    let frame = Frame::of(level);
    asm.bind(shared);
    // The return address is below the frame, so offsets in the frame increase by 8.
    let place = |place: i32| at_base(Register::RSP, 8 + place);
    let vectors = || {
        (0..level.registers())
            .map(|number| (level.register(number), place(frame.kept + level.vector() * number as i32)))
    };
    let numbers = || {
        let all = GATHERED.into_iter().zip((frame.numbers..).step_by(8));
        all.map(|(register, at)| (register, place(at)))
    };
    let called = frame.numbers + 8 * GATHERED.len() as i32;
    let signs =
        || (0..level.signs()).map(|number| (SIGNS + number as u32, place(called + 8 * (number as i32 + 1))));
    for (register, place) in vectors() {
        asm.store(level.store(), place, register);
    }
    for (register, place) in signs() {
        asm.store(Code::VEX_Kmovw_m16_kr, place, register);
    }
    for (register, place) in numbers() {
        asm.store(Code::Mov_rm64_r64, place, register);
    }
    if level.bits() > 1 {
        asm.store(Code::Mov_rm64_r64, place(called), Register::RAX);
    }
    asm.two(Code::Lea_r64_m, Register::RDI, place(PER_LANE));
    asm.number(Code::Sub_rm64_imm8, Register::RSP, 8);
    leave_mode(asm, true);
    asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
    for half in 1..level.bits() {
        let per_lane = 8 + PER_LANE + size_of::<PerLaneFrame>() as i32 * half;
        asm.two(Code::Mov_r64_rm64, Register::RAX, place(8 + called));
        asm.two(Code::Lea_r64_m, Register::RDI, place(per_lane));
        asm.push(Instruction::with1(Code::Call_rm64, Register::RAX));
    }
    enter_mode(asm, true);
    asm.number(Code::Add_rm64_imm8, Register::RSP, 8);
    for (register, place) in vectors() {
        asm.two(level.load(), register, place);
    }
    for (register, place) in signs() {
        asm.two(Code::VEX_Kmovw_kr_km16, register, place);
    }
    for (register, place) in numbers() {
        asm.two(Code::Mov_r64_rm64, register, place);
    }
    asm.plain(Code::Retnq);
}
