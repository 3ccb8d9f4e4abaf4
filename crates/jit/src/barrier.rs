//! Generated code of barriers: a group that waits gives its turn to the next group ([`Turns`]).

use std::mem::offset_of;

use iced_x86::{Code, MemoryOperand, Register};

use crate::asm::{Assembler, Label, at, at_base};
use crate::frame::STATE;
use crate::state::place;
use crate::turns::{Bound, SIZE, Turns};

macro_rules! turns {
    ($part:ident) => {
        at_base(STATE, place!(turns) + offset_of!(Turns, $part) as i32)
    };
}

/// Emits the code of barriers. ESI is the node that ends with the barrier, EDX the node after the barrier, and ECX the
/// number of the barrier. `dispatch` is the code that jumps to the node in EAX, and `flow` calls the flow control for
/// the node in ESI.
pub(crate) fn emit_barrier(asm: &mut Assembler, dispatch: Label, flow: Label) {
    use Register::{EAX, ECX, EDX, R8, R9D, RAX, RCX};
    let state = |place: i32| at_base(STATE, place);
    macro_rules! group {
        ($part:ident, $number:expr) => {
            at(
                STATE,
                RCX,
                place!(turns) + (offset_of!(Turns, groups) + offset_of!(Bound, $part) + 8 * $number) as i32,
            )
        };
        ($part:ident) => {
            group!($part, 0)
        };
    }
    let [complete, first, same] = [(); 3].map(|()| asm.label());
    let copy = |asm: &mut Assembler, to: MemoryOperand, from: MemoryOperand| {
        asm.two(Code::Mov_r64_rm64, RAX, from);
        asm.store(Code::Mov_rm64_r64, to, RAX);
    };
    // The flow control handles three cases: no switch remains, the budget is used up, or lanes have left nodes since the
    // last call of the flow control.
    asm.two(Code::Mov_r32_rm32, EAX, turns!(remaining));
    asm.two(Code::Test_rm32_r32, EAX, EAX);
    asm.branch(Code::Je_rel32_64, flow);
    asm.number(Code::Cmp_rm32_imm8, state(place!(budget)), 0);
    asm.branch(Code::Jle_rel32_64, flow);
    asm.two(Code::Mov_r64_rm64, R8, state(place!(active)));
    asm.two(Code::Cmp_r64_rm64, R8, state(place!(known)));
    asm.branch(Code::Jne_rel32_64, flow);
    asm.two(Code::Mov_r32_rm32, R9D, turns!(waiting));
    asm.two(Code::Test_rm32_r32, R9D, R9D);
    asm.branch(Code::Je_rel32_64, first);
    asm.two(Code::Cmp_r32_rm32, ECX, turns!(barrier));
    asm.branch(Code::Jne_rel32_64, flow);
    asm.bind(first);
    asm.store(Code::Mov_rm32_r32, turns!(barrier), ECX);
    asm.number(Code::Add_rm32_imm8, R9D, 1);
    asm.two(Code::Cmp_r32_rm32, R9D, turns!(count));
    asm.branch(Code::Je_rel32_64, complete);
    // The group waits, and the next group continues with a new budget.
    asm.store(Code::Mov_rm32_r32, turns!(waiting), R9D);
    asm.number(Code::Sub_rm32_imm8, EAX, 1);
    asm.store(Code::Mov_rm32_r32, turns!(remaining), EAX);
    asm.two(Code::Mov_r32_rm32, EAX, turns!(budget));
    asm.two(Code::Mov_r32_rm32, ECX, EAX);
    asm.two(Code::Sub_r32_rm32, ECX, state(place!(budget)));
    asm.store(Code::Add_rm64_r64, state(place!(given)), RCX);
    asm.store(Code::Mov_rm32_r32, state(place!(budget)), EAX);
    asm.two(Code::Mov_r32_rm32, ECX, turns!(current));
    asm.store(Code::Mov_rm32_r32, group!(node), EDX);
    asm.store(Code::Mov_rm64_r64, group!(active), R8);
    copy(asm, group!(population), state(place!(population)));
    asm.two(Code::Mov_r32_rm32, EAX, state(place!(room)));
    asm.store(Code::Mov_rm32_r32, group!(room), EAX);
    asm.number(Code::Add_rm32_imm8, ECX, SIZE as i32);
    asm.two(Code::Cmp_r32_rm32, ECX, turns!(end));
    asm.branch(Code::Jne_rel32_64, same);
    asm.two(Code::Xor_r32_rm32, ECX, ECX);
    asm.bind(same);
    asm.store(Code::Mov_rm32_r32, turns!(current), ECX);
    let rows = [place!(rows), place!(byte_rows), place!(half_rows)];
    for (number, place) in rows.into_iter().enumerate() {
        copy(asm, state(place), group!(rows, number));
    }
    asm.two(Code::Mov_r64_rm64, R8, group!(active));
    asm.store(Code::Mov_rm64_r64, state(place!(active)), R8);
    asm.store(Code::Mov_rm64_r64, state(place!(known)), R8);
    copy(asm, state(place!(population)), group!(population));
    asm.two(Code::Mov_r32_rm32, EAX, group!(room));
    asm.store(Code::Mov_rm32_r32, state(place!(room)), EAX);
    asm.two(Code::Mov_r32_rm32, EAX, group!(node));
    asm.branch(Code::Jmp_rel32_64, dispatch);
    // All groups have arrived, so this group continues.
    asm.bind(complete);
    asm.number(Code::Mov_rm32_imm32, turns!(waiting), 0);
    asm.two(Code::Mov_r32_rm32, EAX, EDX);
    asm.branch(Code::Jmp_rel32_64, dispatch);
}
