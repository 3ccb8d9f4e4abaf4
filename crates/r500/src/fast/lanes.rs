//! Operations on whole rows: the state they see, their operands, and how one body becomes code for each level.
//!
//! A [`Body`] is written once, as loops without branches over [`CHUNK`] lanes, repeated for as many chunks as the
//! groups of the launch have. A [`handler`] is that body compiled for a [`Level`]. Which rows an operation reads and
//! writes was decided when it was lowered: temporaries and outputs first, then the room with lane
//! sets, intermediate results and constants, so that a handler does not ask where an operand comes from.

use std::hint::assert_unchecked;
use std::ops::{Deref, DerefMut, Range};

use reconverge_simt::level::{Level, Task};
use reconverge_simt::place::{Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::{Wide, spread};
use reconverge_simt::{Mask, handlers};

use super::operands::{Fetch, Load, MASK, Place, Scatter, Set};
use crate::group::{ROWS, WIDEST, Written};
use crate::inst::{CONSTANTS, TEMPORARIES};
use crate::memory::Bound;
use crate::words::Omod;

/// Lanes of a body's loops: a group of R520, and a vector of AVX-512.
pub(super) const CHUNK: usize = 16;

/// A chunk of a row.
pub(super) type Words = [u32; CHUNK];

/// What operations work on.
pub(super) struct Lanes<'a> {
    rows: Frame<&'a mut [Row<WIDEST>], WIDEST>,
    /// The chunks from the first to the last that have lanes of the group.
    chunks: Range<usize>,
    sets: [Mask; Set::COUNT],
    /// aL, as far as the operations of the block at hand ask for it.
    pub(super) al: i32,
    /// An operation has left its instruction to the reference interpreter, before anything was written.
    pub(super) refused: bool,
    pub(super) state: State<'a>,
}

/// What operations work on besides rows: parts of a group, and the program's.
pub(super) struct State<'a> {
    pub(super) predicate: &'a mut [Mask; 4],
    pub(super) alu_result: &'a mut Mask,
    pub(super) alu_result_valid: &'a mut Mask,
    pub(super) written: &'a mut Written,
    /// Lanes that TEXKILL removed.
    pub(super) killed: &'a mut Mask,
    /// Lanes whose results count.
    pub(super) covered: Mask,
    /// The float constants.
    pub(super) constants: &'a [[u32; 4]],
    /// The texture fetches of the program.
    pub(super) fetches: &'a [Fetch],
    /// Its scattered outputs.
    pub(super) scatters: &'a [Scatter],
    /// Its fetches from surfaces.
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
    /// No lane is active, and other lanes than `lanes` do not exist.
    ///
    /// # Panics
    /// There are fewer rows than the layout has.
    ///
    /// # Safety
    /// The operations that run were lowered with this layout.
    pub(super) unsafe fn new(
        rows: &'a mut [Row<WIDEST>],
        layout: &Layout<WIDEST>,
        lanes: Mask,
        state: State<'a>,
    ) -> Self {
        // SAFETY: the places of operations are those of the layout, as the caller promises.
        let rows = unsafe { Frame::new(rows, layout) };
        let end = (WIDEST - lanes.0.leading_zeros() as usize).div_ceil(CHUNK);
        let chunks = (lanes.0.trailing_zeros() as usize / CHUNK).min(end)..end;
        Lanes { rows, chunks, sets: [Mask::NONE; Set::COUNT], al: 0, refused: false, state }
    }

    /// The numbers of the chunks that have lanes of the group, and of those between.
    #[inline(always)]
    pub(super) fn chunks(&self) -> Range<usize> {
        // SAFETY: a mask has no more lanes than a row. Without the bound, each access would ask for it.
        unsafe { assert_unchecked(self.chunks.end <= WIDEST / CHUNK) };
        self.chunks.clone()
    }

    /// All lanes of those chunks.
    pub(super) fn reach(&self) -> Mask {
        let Range { start, end } = self.chunks();
        Mask::first(end * CHUNK) - Mask::first(start * CHUNK)
    }

    /// The row of a channel of a temporary relative to aL. (r500.md Q6)
    #[inline(always)]
    pub(super) fn temp_by_al(&self, base: u8, channel: u8) -> Place {
        const LAYOUT: Layout<WIDEST> = Layout::new(ROWS);
        let temp = (i32::from(base) + self.al).rem_euclid(TEMPORARIES as i32) as usize;
        LAYOUT.place(temp * 4 + usize::from(channel & 3))
    }

    /// A channel of a constant relative to aL.
    #[inline(always)]
    pub(super) fn constant_by_al(&self, base: u8, channel: u8) -> u32 {
        let number = (i32::from(base) + self.al).rem_euclid(CONSTANTS as i32) as usize;
        self.constants[number][usize::from(channel & 3)]
    }

    /// The first row, for code that finds the others by their distance.
    pub(super) fn row_bytes(&mut self) -> *mut [u8] {
        self.rows.bytes()
    }

    /// A whole row.
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> &[u32; WIDEST] {
        self.rows.row(place)
    }

    /// A whole row, for writing.
    #[inline(always)]
    pub(super) fn row_mut(&mut self, place: Place) -> &mut [u32; WIDEST] {
        &mut self.rows.row_mut(place).0
    }

    /// A chunk of a row, by value: operations read all that they need before they write, perhaps the same row.
    #[inline(always)]
    pub(super) fn read(&self, place: Place, chunk: usize) -> Words {
        self.rows.chunk(place, chunk)
    }

    /// Writes all lanes of a chunk.
    #[inline(always)]
    pub(super) fn write(&mut self, place: Place, chunk: usize, words: Words) {
        self.rows.set_chunk(place, chunk, words);
    }

    /// Writes the lanes of a set; the others keep what they have.
    #[inline(always)]
    pub(super) fn blend<W: Wide>(&mut self, wide: W, place: Place, chunk: usize, set: Set, words: Words) {
        let mut row = self.read(place, chunk);
        wide.merge(&mut row, &words, self.set(set).0 >> (chunk * CHUNK));
        self.write(place, chunk, row);
    }

    /// The lanes of a set.
    #[inline(always)]
    pub(super) fn set(&self, set: Set) -> Mask {
        self.sets[usize::from(set.0) % Set::COUNT]
    }

    /// Makes a set of the instruction at hand these lanes; [`choose`] does it for the group.
    #[inline(always)]
    pub(super) fn choose(&mut self, set: Set, lanes: Mask) {
        self.sets[usize::from(set.0) % Set::COUNT] = lanes;
    }
}

/// Makes a set these lanes, and of the active ones the row that compiled code reads.
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
    /// Sign bits to flip: of the sources, or of the product and the addend.
    pub(super) flip: [u32; 3],
    /// For a sum: OMOD, also as a factor.
    pub(super) omod: Omod,
    pub(super) scale: f32,
    /// Exponents that OMOD takes out of the range: from the first, as many as the second, as bits.
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

/// One step of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// What runs: when some lane that the operation writes may be off, and when every lane of the group is active.
    pub(super) handlers: [Handler; 2],
    /// As many as the handler wants.
    pub(super) channels: [Channel; 4],
    /// The lanes that are written.
    pub(super) set: Set,
    /// OMOD, also as a factor; disabled is 1. Of sums each channel has its own.
    pub(super) omod: Omod,
    pub(super) scale: f32,
    /// The result is clamped to 0..1.
    pub(super) clamp: bool,
    /// Which predicate bit, target and channel, lane of the quad, or texture fetch.
    pub(super) number: [u8; 2],
    /// The predicate bit is inverted.
    pub(super) inverted: bool,
}

/// An operation's code. Calling it is sound on a processor that has the level it was made for.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// What an operation does.
pub(super) trait Body {
    /// Does it, in code for a level.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);
