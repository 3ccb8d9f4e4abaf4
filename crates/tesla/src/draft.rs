//! The parts of a row of the instruction table read values into a draft. The row then builds an instruction from the
//! draft.

use reconverge_isa::row;

use crate::inst::{Access, Form, Idle, Inst, Op, Tex, TexOp};
use crate::lane::convert::{Integer, Size};
use crate::lane::integer::{Addition, Logic};
use crate::lane::quad::{QuadOp, QuadSource};
use crate::lane::{Compare, Rounding};

/// A partial instruction, and the modifiers from which the row of the instruction builds an [`Op`].
#[derive(Debug)]
pub struct Draft {
    /// All fields except for the operation.
    pub inst: Inst,
    /// The kind of addition: add, sub, subr or addc.
    pub addition: Addition,
    /// The comparison of `set`.
    pub compare: Compare,
    /// The logic operation: and, or, xor or mov2.
    pub logic: Logic,
    /// Whether the type of each source is signed. The entries are for the first and the second source. If the
    /// instruction has only one type, the first entry applies to both sources.
    pub signed: [bool; 2],
    /// Whether to take the upper bits of a 24-bit product.
    pub high: bool,
    /// Whether to invert the first and the second source.
    pub not: [bool; 2],
    /// Rounding mode.
    pub rounding: Rounding,
    /// Whether to saturate the result.
    pub sat: bool,
    /// Whether an atomic operation has 64 bits.
    pub wide: bool,
    /// Whether a store is `st unlock`.
    pub unlock: bool,
    /// The type of a memory access. A later part of the row, the part for the memory operand, uses this type.
    pub access: Access,
    /// Integer source type of a conversion.
    pub from: Integer,
    /// Operations of the lanes of a quad.
    pub quad: [QuadOp; 4],
    /// Selected lane of a quad.
    pub quad_from: QuadSource,
    /// Fields of a texture instruction.
    pub tex: Tex,
    /// Code address.
    pub target: u32,
    /// Whether a jump or call is limited.
    pub lim: bool,
    /// Whether a `bar` increments the barrier's counter, and whether the warp of the `bar` waits.
    pub barrier: [bool; 2],
    /// Numeric operands. Either a barrier and its count, or the number of an event.
    pub numbers: [u32; 2],
}

impl Default for Draft {
    fn default() -> Self {
        Draft {
            inst: Inst::new(Op::Idle(Idle::Nop), Form::Long),
            addition: Addition::Add,
            compare: Compare::from_bits(0),
            logic: Logic::And,
            signed: [false; 2],
            high: false,
            not: [false; 2],
            rounding: Rounding::Nearest,
            sat: false,
            wide: false,
            unlock: false,
            access: Access::B32,
            from: Integer { size: Size::B32, signed: false },
            quad: [QuadOp::Add; 4],
            quad_from: QuadSource::Lane(0),
            tex: Tex {
                op: TexOp::Auto,
                cube: false,
                live: false,
                deriv: false,
                base: 0,
                count: 1,
                mask: 15,
                texture: 0,
                sampler: 0,
                offset: [0; 3],
            },
            target: 0,
            lim: false,
            barrier: [false; 2],
            numbers: [0; 2],
        }
    }
}

impl row::Draft for Draft {
    type Meaning = Op;
}
