//! Operations on whole rows. This module contains the state and the operands of operations, and compiles the body of an
//! operation for each level of vector instructions.
//!
//! The source of a [`Body`] consists of loops over [`CHUNK`] lanes. These loops have no branches. The body runs once
//! for each chunk of a group. A [`handler`] is a body compiled for a [`Level`]. Lowering selects the rows that an
//! operation reads and writes. The rows of temporaries and outputs come first. The rows of lane sets, intermediate
//! results and constants follow. So a handler does not distinguish kinds of operands.

use std::hint::assert_unchecked;
use std::ops::{Deref, DerefMut, Range};

use reconverge_simt::level::{Level, Task};
use reconverge_simt::place::{Cells, Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::{Wide, spread};
use reconverge_simt::{Mask, handlers};

use super::operands::{Fetch, Load, MASK, Place, Scatter, Set};
use crate::group::{ROWS, WIDEST, Written};
use crate::inst::{CONSTANTS, TEMPORARIES};
use crate::memory::Bound;
use crate::words::Omod;

/// Number of lanes that a loop of a body processes. A group of R520 and a vector of AVX-512 have this many lanes.
pub(super) const CHUNK: usize = 16;

/// The words of a chunk of a row, one per lane.
pub(super) type Words = [u32; CHUNK];

/// The state on which operations work.
pub(super) struct Lanes<'a> {
    rows: Frame<&'a mut [Row<WIDEST>], WIDEST>,
    /// Numbers of the chunks that contain lanes of the group.
    chunks: Range<usize>,
    sets: [Mask; Set::COUNT],
    /// The value of aL, if an operation of the current block uses aL.
    pub(super) al: i32,
    /// Whether an operation has bailed out. An operation bails out before its first write. The reference interpreter
    /// then executes the instruction.
    pub(super) refused: bool,
    pub(super) state: State<'a>,
}

/// State other than rows. Some fields belong to the group, and some belong to the program.
pub(super) struct State<'a> {
    pub(super) predicate: &'a mut [Mask; 4],
    pub(super) alu_result: &'a mut Mask,
    pub(super) alu_result_valid: &'a mut Mask,
    pub(super) written: &'a mut Written,
    /// Lanes that a TEXKILL has ended.
    pub(super) killed: &'a mut Mask,
    /// Lanes that are not helper lanes.
    pub(super) covered: Mask,
    /// The float constants.
    pub(super) constants: &'a [[u32; 4]],
    /// The texture fetches of the program.
    pub(super) fetches: &'a [Fetch],
    /// The scattered outputs of the program.
    pub(super) scatters: &'a [Scatter],
    /// The program's fetches from surfaces.
    pub(super) loads: &'a [Load],
    /// The surfaces of the CTM model.
    pub(super) memory: Option<&'a mut Bound>,
}

impl<'a> Deref for Lanes<'a> {
    type Target = State<'a>;

    #[inline(always)]
    fn deref(&self) -> &State<'a> {
        &self.state
    }
}

impl DerefMut for Lanes<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.state
    }
}

impl<'a> Lanes<'a> {
    /// Returns the state of a group that has the lanes `lanes`. No lane is active.
    ///
    /// # Panics
    /// Panics if `rows` has fewer rows than the layout.
    ///
    /// # Safety
    /// All operations that run on this state must have been lowered with this layout.
    pub(super) unsafe fn new(
        rows: &'a mut [Row<WIDEST>],
        layout: &Layout<WIDEST>,
        lanes: Mask,
        state: State<'a>,
    ) -> Self {
        // SAFETY: the caller guarantees that all operands are within the layout.
        let rows = unsafe { Frame::new(rows, layout) };
        let end = (WIDEST - lanes.0.leading_zeros() as usize).div_ceil(CHUNK);
        let chunks = (lanes.0.trailing_zeros() as usize / CHUNK).min(end)..end;
        Lanes { rows, chunks, sets: [Mask::NONE; Set::COUNT], al: 0, refused: false, state }
    }

    /// Returns the numbers of the chunks that contain lanes of the group.
    #[inline(always)]
    pub(super) fn chunks(&self) -> Range<usize> {
        // SAFETY: a mask has as many lanes as a row. Without the assertion, the compiler would add a bounds check to
        // each access to a chunk.
        unsafe { assert_unchecked(self.chunks.end <= WIDEST / CHUNK) };
        self.chunks.clone()
    }

    /// Returns all lanes of the chunks that contain lanes of the group.
    pub(super) fn reach(&self) -> Mask {
        let Range { start, end } = self.chunks();
        Mask::first(end * CHUNK) - Mask::first(start * CHUNK)
    }

    /// Returns the row of a channel of a temporary. The number of the temporary is `base` + aL. (r500.md Q6)
    #[inline(always)]
    pub(super) fn temp_by_al(&self, base: u8, channel: u8) -> Place {
        const LAYOUT: Layout<WIDEST> = Layout::new(ROWS);
        let temp = (i32::from(base) + self.al).rem_euclid(TEMPORARIES as i32) as usize;
        LAYOUT.place(temp * 4 + usize::from(channel & 3))
    }

    /// Returns a channel of constant `base` + aL.
    #[inline(always)]
    pub(super) fn constant_by_al(&self, base: u8, channel: u8) -> u32 {
        let number = (i32::from(base) + self.al).rem_euclid(CONSTANTS as i32) as usize;
        self.constants[number][usize::from(channel & 3)]
    }

    /// Returns the bytes of all rows. Compiled code addresses rows by byte offsets from the first row.
    pub(super) fn row_bytes(&mut self) -> *mut [u8] {
        self.rows.bytes()
    }

    /// Returns all rows as cells.
    #[inline(always)]
    pub(super) fn cells(&mut self) -> Cells<'_, WIDEST> {
        self.rows.cells()
    }

    /// Returns a whole row.
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> &[u32; WIDEST] {
        self.rows.row(place)
    }

    /// Returns a whole row, mutably.
    #[inline(always)]
    pub(super) fn row_mut(&mut self, place: Place) -> &mut [u32; WIDEST] {
        &mut self.rows.row_mut(place).0
    }

    /// Returns a copy of a chunk of a row. A copy is necessary because an operation may write to a row that the
    /// operation has read.
    #[inline(always)]
    pub(super) fn read(&self, place: Place, chunk: usize) -> Words {
        self.rows.chunk(place, chunk)
    }

    /// Writes all lanes of a chunk.
    #[inline(always)]
    pub(super) fn write(&mut self, place: Place, chunk: usize, words: Words) {
        self.rows.set_chunk(place, chunk, words);
    }

    /// Writes the lanes of a set. The other lanes of the chunk keep their values.
    #[inline(always)]
    pub(super) fn blend<W: Wide>(&mut self, wide: W, place: Place, chunk: usize, set: Set, words: Words) {
        let mut row = self.read(place, chunk);
        wide.merge(&mut row, &words, self.set(set).0 >> (chunk * CHUNK));
        self.write(place, chunk, row);
    }

    /// Returns the lanes of a set.
    #[inline(always)]
    pub(super) fn set(&self, set: Set) -> Mask {
        self.sets[usize::from(set.0) % Set::COUNT]
    }

    /// Assigns `lanes` to a set. Does not update the row of active lanes. To update that row as well, call the function
    /// [`choose`].
    #[inline(always)]
    pub(super) fn choose(&mut self, set: Set, lanes: Mask) {
        self.sets[usize::from(set.0) % Set::COUNT] = lanes;
    }
}

/// Assigns `members` to a set. For [`Set::ACTIVE`], also updates the row of active lanes, which compiled code reads.
pub(super) fn choose(level: Level, lanes: &mut Lanes<'_>, set: Set, members: Mask) {
    struct Spread<'l>(&'l mut [u32; WIDEST], Mask);

    impl Task for Spread<'_> {
        type Output = ();
        #[inline(always)]
        fn run<W: Wide>(self, _: W) {
            *self.0 = spread(self.1.0);
        }
    }

    lanes.choose(set, members);
    if set == Set::ACTIVE {
        level.run(Spread(lanes.row_mut(MASK), members));
    }
}

/// Sources and destination of one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Channel {
    pub(super) src: [Place; 3],
    pub(super) dst: Place,
    /// Sign bits to flip. For a sum, the first element is for the product and the third element is for the addend. For
    /// any other operation, element i is for source i.
    pub(super) flip: [u32; 3],
    /// OMOD of a sum, as an enum value.
    pub(super) omod: Omod,
    /// OMOD of a sum, as a factor.
    pub(super) scale: f32,
    /// Exponents that OMOD moves out of range. The first element is the lowest exponent, and the second is the number
    /// of exponents. Both elements are shifted to the position of the exponent field in a float.
    pub(super) beyond: [u32; 2],
}

impl Channel {
    pub(super) const NONE: Channel = Channel {
        src: [Place::FIRST; 3],
        dst: Place::FIRST,
        flip: [0; 3],
        omod: Omod::MUL_1,
        scale: 1.0,
        beyond: [0; 2],
    };
}

/// An operation on rows. Lowering turns an instruction into several operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The code of the operation. The first handler works for any set of active lanes. The second handler works only if
    /// every lane of the group is active.
    pub(super) handlers: [Handler; 2],
    /// The channels. The handler determines how many channels are used.
    pub(super) channels: [Channel; 4],
    /// The lanes to which the operation writes.
    pub(super) set: Set,
    /// OMOD, as an enum value. A sum does not use this field, because each channel of a sum has an OMOD.
    pub(super) omod: Omod,
    /// OMOD, as a factor. If OMOD is disabled, the factor is 1.
    pub(super) scale: f32,
    /// Whether the result is clamped to 0..1.
    pub(super) clamp: bool,
    /// Numbers whose meaning depends on the handler. Examples are a predicate bit, a target and a channel, a lane of
    /// the quad, or the index of a fetch.
    pub(super) number: [u8; 2],
    /// Whether the predicate bit is inverted.
    pub(super) inverted: bool,
}

/// Compiled body of an operation. The processor must support the level for which the body is compiled.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// The effect of an operation.
pub(super) trait Body {
    /// Executes the operation. `wide` selects the level for which the code is compiled.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);
