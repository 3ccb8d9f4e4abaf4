//! Parts of an operation that stay constant during a run of the program.

use std::sync::Arc;

use reconverge_simt::place::{self, Layout};
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Image, Sampler};

use crate::group::{ROWS, WIDEST};
use crate::words::TexOp;

/// A row of the lowered program.
pub(super) type Place = place::Place<WIDEST>;

/// The number of a lane set. An operation writes only the lanes of its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Set(pub(super) u8);

impl Set {
    /// The active lanes.
    pub(super) const ACTIVE: Set = Set(0);
    /// All lanes of the group.
    pub(super) const ALL: Set = Set(1);
    /// Number of sets, a power of two. The sets from number 2 on hold lanes that a predicate selects. Each channel uses
    /// at most two of these predicated sets.
    pub(super) const COUNT: usize = 16;
}

/// The row of the active lanes. All bits of a lane's word are 1 if the lane is active, and 0 otherwise. This row
/// directly follows the rows of registers.
pub(super) const MASK: Place = Layout::new(ROWS + 1).place(ROWS);

/// A texture fetch: the properties that do not change during a launch.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    pub(super) op: TexOp,
    pub(super) image: Arc<Image>,
    pub(super) plan: Plan,
    pub(super) sampler: Sampler,
    /// Rows of the coordinates S, T, R and Q.
    pub(super) src: [Place; 4],
    /// For DXDY, rows of the derivatives of S, T and R by x and by y.
    pub(super) derivatives: [[Place; 3]; 2],
    /// The destination of each channel, if the channel is written.
    pub(super) dst: [Option<Written>; 4],
    /// The destination row of each component of the texels. `None` if [`Plan::read_flat`] cannot execute the fetch.
    pub(super) flat: Option<[Option<Place>; 4]>,
    /// Whether uncovered lanes skip the fetch.
    pub(super) ignore_uncovered: bool,
}

/// The destination of a channel of the fetched value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) place: Place,
    /// The temporary and its channel, if the destination is relative to aL.
    pub(super) by_al: Option<[u8; 2]>,
    pub(super) component: usize,
    /// The predicate bit that enables the write, and whether the bit is inverted.
    pub(super) predicate: Option<(usize, bool)>,
}

/// A scattered output.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    /// Rows of the instruction's channels: the value, the position x and y, and the alpha channel.
    pub(super) src: [Place; 4],
    /// For each channel, the lanes whose predicate enables the channel.
    pub(super) sets: [Set; 4],
    /// Whether strict mode is on. Strict mode requires that alpha is zero. If `same_index` is set, strict mode also
    /// requires that all lanes address one element.
    pub(super) strict: bool,
    pub(super) same_index: bool,
}

/// An unscaled LD from a surface.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) unit: u8,
    /// Rows of the coordinates X and Y.
    pub(super) src: [Place; 2],
    /// The destination of each channel, if the channel is written.
    pub(super) dst: [Option<Written>; 4],
    /// Whether uncovered lanes skip the fetch.
    pub(super) ignore_uncovered: bool,
}
