//! The frame of generated code: reserved registers, the code before and after the body, and the loop over vectors.

use iced_x86::{Code, Instruction, Register};

use crate::asm::{Assembler, Label, at_base};
use crate::called::PerLaneFrame;
use crate::level::Level;
use crate::state::place;

/// Registers for five values, in this order: the address of the [`State`](crate::State), the address of the group's
/// rows, the number of the strip's first lane, the active lanes from that lane on, and the address of the constants.
pub(crate) const STATE: Register = Register::RBX;
pub(crate) const ROWS: Register = Register::R12;
pub(crate) const LANE: Register = Register::R13;
pub(crate) const REST: Register = Register::R14;
pub(crate) const POOL: Register = Register::RBP;

/// Registers in which the strips of a group collect one bit per lane. A load of a whole word from memory would stall if
/// each strip had stored only a part of the word.
pub(crate) const GATHERED: [Register; 4] = [Register::RSI, Register::RDI, Register::R8, Register::R9];

/// Scratch register for a few instructions, in addition to RAX, RCX and RDX.
pub(crate) const WORD: Register = Register::R10D;

/// Mask registers. Truth values use the registers from [`Register::K1`] on. The last two constants are scratch
/// registers for a few instructions.
pub(crate) const SIGNS: Register = Register::K1;
pub(crate) const ANY_BITS: Register = Register::K0;
pub(crate) const ANY_SIGNS: Register = Register::K7;

/// Offset of the data of per-lane functions in the frame, in bytes.
pub(crate) const PER_LANE: i32 = 0;

/// Offsets in the frame, in bytes. The frame contains four areas in this order: the data of per-lane functions, the
/// registers that a call of a per-lane function saves, the caller's stack pointer, and spilled values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) kept: i32,
    /// Offset of three consecutive areas: the saved registers [`GATHERED`], the address of the called function, and
    /// saved truth values. A saved register and the address have eight bytes each.
    pub(crate) numbers: i32,
    pub(crate) caller: i32,
    pub(crate) values: i32,
}

impl Frame {
    pub(crate) fn of(level: Level) -> Frame {
        let kept = size_of::<PerLaneFrame>() as i32 * level.bits();
        let numbers = kept + level.registers() as i32 * level.vector();
        let caller = numbers + 2 * level.vector();
        Frame { kept, numbers, caller, values: caller + level.vector() }
    }
}

/// Emits the start of a loop over the vectors with active lanes.
pub(crate) fn begin_vectors(level: Level, asm: &mut Assembler, strip: Label, next: Label) {
    asm.two(Code::Xor_r32_rm32, Register::R13D, Register::R13D);
    asm.two(Code::Mov_r64_rm64, REST, at_base(STATE, place!(active)));
    asm.bind(strip);
    match level {
        Level::Avx2 => asm.two(Code::Test_rm8_r8, Register::R14L, Register::R14L),
        Level::Avx512 => asm.two(Code::Test_rm16_r16, Register::R14W, Register::R14W),
    }
    asm.branch(Code::Je_rel32_64, next);
}

/// Emits the end of the loop that [`begin_vectors`] starts.
pub(crate) fn end_vectors(level: Level, asm: &mut Assembler, strip: Label, next: Label) {
    asm.bind(next);
    asm.number(Code::Add_rm64_imm8, LANE, level.lanes() as i32);
    asm.number(Code::Shr_rm64_imm8, REST, level.lanes() as i32);
    asm.branch(Code::Jne_rel32_64, strip);
}

/// Registers that a function must preserve.
pub(crate) const SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// If the code depends on floating point modes, sets the modes of generated code.
pub(crate) fn enter_mode(asm: &mut Assembler, floats: bool) {
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place!(mode))));
    }
}

/// Restores the host's floating point modes, and clears the upper halves of vector registers.
pub(crate) fn leave_mode(asm: &mut Assembler, floats: bool) {
    asm.plain(Code::VEX_Vzeroupper);
    if floats {
        asm.push(Instruction::with1(Code::VEX_Vldmxcsr_m32, at_base(STATE, place!(host_mode))));
    }
}

/// Emits the start of a function whose argument is a state. `caller` is the offset in the frame at which the caller's
/// stack pointer is saved.
pub(crate) fn prologue(asm: &mut Assembler, frame: i32, caller: i32, floats: bool) {
    for register in SAVED {
        asm.push(Instruction::with1(Code::Push_r64, register));
    }
    asm.push(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, Register::RSP));
    asm.number(Code::And_rm64_imm8, Register::RSP, -64);
    let frame = (frame.max(caller + 64) + 63) & !63;
    asm.number(Code::Sub_rm64_imm32, Register::RSP, frame);
    asm.store(Code::Mov_rm64_r64, at_base(Register::RSP, caller), Register::RAX);
    asm.push(Instruction::with2(Code::Mov_r64_rm64, STATE, Register::RDI));
    asm.two(Code::Mov_r64_rm64, ROWS, at_base(STATE, place!(rows)));
    asm.two(Code::Mov_r64_rm64, POOL, at_base(STATE, place!(pool)));
    enter_mode(asm, floats);
}

/// Emits the end of a function that returns ECX.
pub(crate) fn epilogue(asm: &mut Assembler, caller: i32, floats: bool) {
    leave_mode(asm, floats);
    asm.push(Instruction::with2(Code::Mov_r32_rm32, Register::EAX, Register::ECX));
    asm.two(Code::Mov_r64_rm64, Register::RSP, at_base(Register::RSP, caller));
    for register in SAVED.into_iter().rev() {
        asm.push(Instruction::with1(Code::Pop_r64, register));
    }
    asm.plain(Code::Retnq);
}
