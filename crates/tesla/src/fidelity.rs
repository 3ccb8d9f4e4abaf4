//! The exactness of each operation, and the operation's name in reports.

use reconverge_simt::Fidelity;

use crate::inst::{Arith, Control, Group, Memory, Op, TexOp};
use crate::lane::Rounding;
use crate::lane::interpolate::Position;

/// Returns the name and the grade of an operation. The operation's row in [`crate::inst`] contains the name and the
/// grade. For some operations, the modifiers change the name or the grade.
///
/// Arithmetic, conversions, special functions and atomics have the same results as models. Tests compared these models
/// with the chips. Moves, memory and the common control flow follow the documents. All other operations follow
/// recommended interpretations.
pub const fn of(op: &Op) -> (&'static str, Fidelity) {
    match op {
        Op::Arith(op) => arith(op),
        Op::Memory(Memory::Interp { position: Position::Flat }) => ("interp flat", Fidelity::Specified),
        Op::Memory(op) => op.fidelity(),
        Op::Group(Group::Tex(tex)) => (texture(tex.op), Fidelity::Recommended),
        Op::Group(op) => op.fidelity(),
        Op::Control(Control::Call { lim: true, .. }) => ("call lim", Fidelity::Recommended),
        Op::Control(op) => op.fidelity(),
        Op::Idle(op) => op.fidelity(),
    }
}

const fn arith(op: &Arith) -> (&'static str, Fidelity) {
    let (name, grade) = op.fidelity();
    match op {
        // No comparison with hardware covered the two invalid codes of the rounding field. The engines interpret these
        // two codes as the rounding directions down and up. (13.16)
        Arith::FAdd { rounding: Rounding::Down | Rounding::Up, .. }
        | Arith::FMul { rounding: Rounding::Down | Rounding::Up, .. } => (name, Fidelity::Recommended),
        _ => (name, grade),
    }
}

const fn texture(op: TexOp) -> &'static str {
    match op {
        TexOp::Auto => "texauto",
        TexOp::Bias => "texbias",
        TexOp::Lod => "texlod",
        TexOp::Fetch => "texfetch",
        TexOp::Size => "texsize",
        TexOp::Csaa => "texcsaa",
        TexOp::Gather => "texgather",
        TexOp::Prep => "texprep",
        TexOp::QueryLod => "texquerylod",
    }
}
