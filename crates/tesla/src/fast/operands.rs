//! Operands of operations. They do not change while a program runs.

use std::sync::Arc;

use reconverge_simt::place;
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Compare, Image, Sampler};

use crate::flow::WARP;
use crate::inst::Arith;
use crate::lane::quad::{QuadOp, QuadSource};
use crate::lane::{Flags, Modifiers};
use crate::texture::Compared;

/// The index of a row. The first rows are the registers. The room (constants and intermediate results) follows.
pub(super) type Place = place::Place<WARP>;

/// Operands of an operation. The operation uses only some of these operands. Its body defines which operands it uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The rows of the sources.
    pub(super) src: [Place; 3],
    /// The row of the result.
    pub(super) dst: Place,
    /// The number of the set of lanes that execute the operation.
    pub(super) set: u8,
    /// The `$c` that the operation reads, as carry or as predicate.
    pub(super) c: u8,
    /// The `$c` that the operation writes.
    pub(super) cdst: u8,
    /// For half-register sources. `shift` is the right shift (0 or 16). `narrow` states whether only 16 bits remain
    /// after the shift.
    pub(super) shift: [u8; 3],
    pub(super) narrow: [bool; 3],
    /// For half-register results: the left shift (0 or 16), and whether the write covers only 16 bits.
    pub(super) dst_shift: u8,
    pub(super) dst_narrow: bool,
    /// A number whose meaning depends on the body, for example an instruction or an address.
    pub(super) number: u32,
    /// f32 modifiers. The operation keeps the bits of a source that are set in `keep`, and then flips the bits in
    /// `flip`.
    pub(super) keep: [u32; 3],
    pub(super) flip: [u32; 3],
}

/// Operands of the general operation that do not fit into [`Operation`].
#[derive(Clone, Debug)]
pub(super) struct GeneralOperands {
    pub(super) op: Arith,
    pub(super) modifiers: [Modifiers; 3],
    pub(super) writes_flags: bool,
    /// The upper rows of 64-bit sources.
    pub(super) src_high: [Place; 3],
    /// The upper row of a 64-bit result.
    pub(super) dst_high: Place,
}

/// A texture instruction, with all data of the instruction that is constant in a launch.
#[derive(Clone, Debug)]
pub(super) struct Tex {
    pub(super) image: Arc<Image>,
    pub(super) work: Work,
    /// The destination of each component.
    pub(super) dst: [Option<Place>; 4],
    pub(super) offset: [i32; 3],
    /// Whether the instruction skips lanes that are only helpers.
    pub(super) live: bool,
}

/// The kind of a texture instruction.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// `texauto`, `texbias`, `texlod`, `texgather`
    Sample(Box<Sample>),
    /// `texfetch`
    Fetch(Box<TexelFetch>),
}

/// The image, coordinates and filter of a sample.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) plan: Plan,
    pub(super) sampler: Sampler,
    pub(super) kind: Kind,
    pub(super) coordinates: [Place; 3],
    pub(super) layer: Option<Place>,
    pub(super) last: Place,
    pub(super) lod: Lod,
}

/// A fetch of a texel at an integer position.
#[derive(Clone, Debug)]
pub(super) struct TexelFetch {
    pub(super) plan: Plan,
    /// The positions along x, y and z, as integers.
    pub(super) numbers: [Place; 3],
    /// Whether the last position is a layer.
    pub(super) layered: bool,
    pub(super) level: Place,
    pub(super) offset: [i32; 3],
}

/// The form of the result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Floats,
    Bits,
    /// A comparison with a reference value.
    Compare(Compare, Place, Compared),
    Gather,
}

/// The source of the level of detail.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lod {
    /// The differences between the coordinates of the quad's lanes.
    Quad,
    /// The differences between the coordinates of the quad's lanes, plus the last source as a bias.
    Bias,
    /// The last source.
    Last,
    /// No source. The level of detail is minus infinity, because the stage has no derivatives.
    Still,
}

/// A `quadop`, with all its data that is constant in a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quad {
    pub(super) ops: [QuadOp; 4],
    pub(super) from: QuadSource,
    /// The result of every lane, if the stage has no derivatives.
    pub(super) fixed: Option<(u32, Flags)>,
}
