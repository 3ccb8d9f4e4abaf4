//! Operands of operations: the fields that do not change while a program runs.

use std::sync::Arc;

use reconverge_simt::place::{self, Layout};
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Image, Sampler};

use crate::group::{ROWS, WIDEST};
use crate::words::TexOp;

/// A row of the lowered program.
pub(super) type Place = place::Place<WIDEST>;

/// A set of lanes that operations write, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u8);

impl Set {
    /// The active lanes.
    pub(super) const ACTIVE: Set = Set(0);
    /// All lanes of the group.
    pub(super) const ALL: Set = Set(1);
    /// The number of sets, a power of two. Sets from 2 on are the lanes that a predicate selects, two per channel.
    pub(super) const COUNT: usize = 16;
}

/// The row of the active lanes: a word per lane, all ones or all zeros. It is the first row after the registers.
pub(super) const MASK: Place = Layout::new(ROWS + 1).place(ROWS);

/// A fetch with its properties that do not change in a launch.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) op: TexOp,
    pub(super) image: Arc<Image>,
    pub(super) plan: Plan,
    pub(super) sampler: Sampler,
    /// S, T, R, Q.
    pub(super) src: [Place; 4],
    /// S, T, R of the derivatives by x and y, for DXDY.
    pub(super) derivatives: [[Place; 3]; 2],
    /// The destination of each channel.
    pub(super) dst: [Option<Written>; 4],
    /// The destination of each component of the texels, for [`Plan::read_flat`].
    pub(super) flat: Option<[Option<Place>; 4]>,
    /// Uncovered lanes fetch nothing.
    pub(super) ignore_uncovered: bool,
}

/// A channel of the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) place: Place,
    /// The temporary and its channel, if it is relative to aL.
    pub(super) by_al: Option<[u8; 2]>,
    pub(super) component: usize,
    /// The predicate bit, and whether it is inverted.
    pub(super) predicate: Option<(usize, bool)>,
}

/// A scattered output.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    /// The value, the position, and the alpha channel, by channel of the instruction.
    pub(super) src: [Place; 4],
    /// The lanes whose predicate enables each channel.
    pub(super) sets: [Set; 4],
    /// Whether strict mode checks that alpha is zero and, with `same_index`, that all lanes address one element.
    pub(super) strict: bool,
    pub(super) same_index: bool,
}

/// An unscaled LD from a surface.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) unit: u8,
    /// X and Y.
    pub(super) src: [Place; 2],
    /// The destination of each channel.
    pub(super) dst: [Option<Written>; 4],
    /// Uncovered lanes fetch nothing.
    pub(super) ignore_uncovered: bool,
}
