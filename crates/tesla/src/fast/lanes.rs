//! Operations on whole rows: the state they see, their operands, and how one body becomes code for each level.
//!
//! A [`Body`] is written once, as loops over all lanes without branches, and blends its result under the mask. A
//! [`handler`] is that body compiled for a [`Level`]. Which rows an operation reads and writes was decided when it
//! was lowered: rows 0 to n - 1 are the registers, those behind them the [room](reconverge_simt::registers) with
//! constants and intermediate results, so that a handler does not depend on where an operand comes from.

use std::marker::PhantomData;

use reconverge_simt::handlers;
use reconverge_simt::level::Task;
use reconverge_simt::place::{Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::{Wide, spread};

use super::operands::{GeneralOperands, Operation, Place, Quad, Tex};
use crate::flow::WARP;
use crate::inst::{Arith, Chip};
use crate::lane::{Flags, Modifiers};
use crate::meaning::{self, Modes, Operands};
use crate::spaces::Shared;
use crate::state::{ADDRESS_REGISTERS, CONDITION_REGISTERS, Input};

/// All active lanes, among the [`Lanes::sets`].
pub(super) const ACTIVE: usize = 0;

/// The lanes for which the latest predicate holds.
pub(super) const PREDICATED: usize = 1;

/// What all operations of a program share.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Instructions that go lane by lane, by number.
    pub(super) generals: Vec<GeneralOperands>,
    /// Texture instructions and `quadop`s, by number.
    pub(super) textures: Vec<Tex>,
    pub(super) quads: Vec<Quad>,
    pub(super) chip: Chip,
    pub(super) modes: Modes,
    /// Rows of a warp's registers and room together, of which every place in an operation is one.
    pub(super) layout: Layout<WARP>,
    /// The row of the active lanes, all ones or all zeros a lane, which compiled code reads.
    pub(super) mask: Place,
}

/// What operations work on.
pub(super) struct Lanes<'a> {
    pub(super) rows: Frame<&'a mut [Row<WARP>], WARP>,
    pub(super) a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
    pub(super) c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
    /// [`ACTIVE`] and [`PREDICATED`].
    pub(super) sets: [u32; 2],
    pub(super) shared: &'a mut Shared,
    /// a[] or v[] and o[], by word.
    pub(super) inputs: &'a [Option<Input>],
    pub(super) outputs: &'a mut Vec<Row<WARP>>,
    /// The warp's number in the block.
    pub(super) warp: u32,
    /// Lanes that are only helpers.
    pub(super) dead: u32,
    pub(super) tables: &'a Tables,
}

impl<'a> Lanes<'a> {
    /// Both sets are empty.
    ///
    /// # Panics
    /// The registers have no room for the program.
    ///
    /// # Safety
    /// All operations that run on these lanes were lowered with the layout of the tables.
    pub(super) unsafe fn new(
        rows: &'a mut [Row<WARP>],
        a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
        c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
        (inputs, outputs): (&'a [Option<Input>], &'a mut Vec<Row<WARP>>),
        shared: &'a mut Shared,
        (warp, dead): (u32, u32),
        tables: &'a Tables,
    ) -> Self {
        // SAFETY: as the caller says.
        let rows = unsafe { Frame::new(rows, &tables.layout) };
        Lanes { rows, a, c, sets: [0; 2], shared, inputs, outputs, warp, dead, tables }
    }

    /// A row by value: operations read all their rows before they write one, which may be the same.
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> [u32; WARP] {
        *self.rows.row(place)
    }

    /// A row that is not copied.
    #[inline(always)]
    pub(super) fn row_of(&self, place: Place) -> &[u32; WARP] {
        self.rows.row(place)
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, place: Place) -> &mut Row<WARP> {
        self.rows.row_mut(place)
    }

    /// Writes the lanes of a set, given by number; the others keep what they have.
    #[inline(always)]
    pub(super) fn write<W: Wide>(&mut self, wide: W, place: Place, set: u8, values: [u32; WARP]) {
        let bits = self.set(set);
        wide.write(&mut self.row_mut(place).0, &values, bits.into());
    }

    /// The bits of a set, given by number.
    #[inline(always)]
    pub(super) fn set(&self, number: u8) -> u32 {
        self.sets[usize::from(number & 1)]
    }

    /// All ones for the lanes of a set, given by number, zeros for the others.
    #[inline(always)]
    pub(super) fn members(&self, number: u8) -> [u32; WARP] {
        match self.set(number) {
            u32::MAX => [u32::MAX; WARP],
            bits => spread(bits.into()),
        }
    }

    /// The active lanes become these; costs nothing if they are that already.
    #[inline(always)]
    pub(super) fn activate(&mut self, bits: u32) {
        if self.sets[ACTIVE] != bits {
            self.sets[ACTIVE] = bits;
            self.row_mut(self.tables.mask).0 = spread(bits.into());
        }
    }

    /// The flags of a `$c`.
    #[inline(always)]
    pub(super) fn c(&self, register: u8) -> &[u8; WARP] {
        &self.c[usize::from(register & 3)]
    }

    /// Writes flags in the lanes of a set, given by number.
    #[inline(always)]
    pub(super) fn write_c<W: Wide>(&mut self, wide: W, register: u8, set: u8, flags: [u8; WARP]) {
        let bytes = wide.spread_bytes::<WARP>(self.set(set).into());
        let old = *self.c(register);
        let mut new = [0; WARP];
        for lane in 0..WARP {
            new[lane] = flags[lane] & bytes[lane] | old[lane] & !bytes[lane];
        }
        self.c[usize::from(register & 3)] = new;
    }

    /// `$a1` to `$a4`, by their number; the others read 0.
    #[inline(always)]
    pub(super) fn a(&self, register: u8) -> [u16; WARP] {
        match register {
            1..=4 => self.a[usize::from(register) - 1],
            _ => [0; WARP],
        }
    }

    /// Writes `$a1` to `$a4` in the lanes of a set, given by number; writing another does nothing.
    #[inline(always)]
    pub(super) fn write_a(&mut self, register: u8, set: u8, values: [u16; WARP]) {
        if let 1..=4 = register {
            let words = self.members(set);
            let row = &mut self.a[usize::from(register) - 1];
            let old = *row;
            let mut new = [0; WARP];
            for lane in 0..WARP {
                new[lane] = values[lane] & words[lane] as u16 | old[lane] & !words[lane] as u16;
            }
            *row = new;
        }
    }
}

/// 16 bits or all of them.
#[inline(always)]
pub(super) const fn bits(narrow: bool) -> u32 {
    if narrow { 0xffff } else { u32::MAX }
}

/// An operation's code. Calling it is sound on a processor that has the level it was made for.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// What an operation does to the rows.
pub(super) trait Body {
    /// To be compiled for a level: branch-free loops over all lanes.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

/// The words of three sources.
pub(super) type Sources = [[u32; WARP]; 3];

/// Results and flags of all lanes, or nothing for a row with an exception.
pub(super) type Results = Option<([u32; WARP], [u8; WARP])>;

/// An operation that is known when its code is compiled, for [`Lanewise`].
pub(super) trait Kernel {
    /// The operation. The modifiers of its sources are applied before.
    const OP: Arith;
    /// The modes of its results.
    const MODES: Modes = Modes::NONE;

    /// Result and flags of one lane; flags that are not used cost nothing.
    #[inline(always)]
    fn lane(src: [u32; 3], carry: Flags) -> (u32, Flags) {
        let [a, b, c] = src;
        let src = [a.into(), b.into(), c.into()];
        let operands = Operands { src, modifiers: [Modifiers::NONE; 3], carry, writes_flags: false };
        let (value, flags) = meaning::value_of_known(&Self::OP, &operands, Chip::G80, Self::MODES);
        (value as u32, flags)
    }

    /// Whether there is [`Kernel::by_host`].
    const BY_HOST: bool = false;

    /// All lanes by the host's operation alone, if none of them is an exception to it.
    #[inline(always)]
    fn by_host<W: Wide>(_wide: W, _src: &Sources) -> Results {
        None
    }

    /// All lanes of a row that [`Kernel::by_host`] refuses, if none of them is an exception to this way either.
    #[inline(always)]
    fn rarely<W: Wide>(_wide: W, _src: &Sources) -> Results {
        None
    }
}

/// A 32-bit kernel for every lane. `DST`: it writes a row. `FLAGS`: it writes a `$c`. `HALVES`: some operand is half a
/// register. `MODIFIED`: some source has abs or neg.
pub(super) struct Lanewise<K, const DST: bool, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool>(
    PhantomData<K>,
);

impl<K: Kernel, const DST: bool, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool> Body
    for Lanewise<K, DST, FLAGS, HALVES, MODIFIED>
{
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        if !K::BY_HOST {
            return Self::by_lane(wide, lanes, operation, &operands::<HALVES, MODIFIED>(lanes, operation));
        }
        match K::by_host(wide, &operands::<HALVES, MODIFIED>(lanes, operation)) {
            Some((result, flags)) => Self::write(wide, lanes, operation, result, flags),
            // In a function of its own, for which the usual rows need not keep their sources (a tenth of a `mad`).
            None => wide.call(Rarely::<Self>(lanes, operation, PhantomData)),
        }
    }
}

impl<K: Kernel, const DST: bool, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool>
    Lanewise<K, DST, FLAGS, HALVES, MODIFIED>
{
    #[inline(always)]
    fn by_lane<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation, sources: &Sources) {
        let carry = *lanes.c(operation.c);
        let mut result = [0; WARP];
        let mut flags = [0; WARP];
        for lane in 0..WARP {
            let src = [sources[0][lane], sources[1][lane], sources[2][lane]];
            let (value, flag) = K::lane(src, Flags::from_bits(carry[lane]));
            result[lane] = value;
            flags[lane] = flag.bits();
        }
        if HALVES {
            result = inserted(lanes.row(operation.dst), result, operation.dst_shift, operation.dst_narrow);
        }
        Self::write(wide, lanes, operation, result, flags);
    }

    #[inline(always)]
    fn write<W: Wide>(
        wide: W,
        lanes: &mut Lanes<'_>,
        operation: &Operation,
        result: [u32; WARP],
        flags: [u8; WARP],
    ) {
        if DST {
            lanes.write(wide, operation.dst, operation.set, result);
        }
        if FLAGS {
            lanes.write_c(wide, operation.cdst, operation.set, flags);
        }
    }
}

/// An operation on a row that [`Kernel::by_host`] refuses, as a task.
struct Rarely<'a, 'b, B>(&'a mut Lanes<'b>, &'a Operation, PhantomData<B>);

impl<K: Kernel, const DST: bool, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool> Task
    for Rarely<'_, '_, Lanewise<K, DST, FLAGS, HALVES, MODIFIED>>
{
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) {
        let Rarely(lanes, operation, _) = self;
        let sources = operands::<HALVES, MODIFIED>(lanes, operation);
        match K::rarely(wide, &sources) {
            Some((result, flags)) => {
                Lanewise::<K, DST, FLAGS, HALVES, MODIFIED>::write(wide, lanes, operation, result, flags);
            }
            None => Lanewise::<K, DST, FLAGS, HALVES, MODIFIED>::by_lane(wide, lanes, operation, &sources),
        }
    }
}

/// The sources with their halves taken and their modifiers applied.
#[inline(always)]
pub(super) fn operands<const HALVES: bool, const MODIFIED: bool>(
    lanes: &Lanes<'_>,
    operation: &Operation,
) -> Sources {
    let Operation { src, shift, narrow, keep, flip, .. } = *operation;
    // Written out: `array::map` is not always inlined.
    let mut sources = [lanes.row(src[0]), lanes.row(src[1]), lanes.row(src[2])];
    for number in 0..3 {
        for lane in 0..WARP {
            let word = &mut sources[number][lane];
            if HALVES {
                *word = *word >> (shift[number] & 31) & bits(narrow[number]);
            }
            if MODIFIED {
                *word = *word & keep[number] ^ flip[number];
            }
        }
    }
    sources
}

/// `old` with 16 bits, or all, replaced by those of `new` moved up.
#[inline(always)]
pub(super) fn inserted(old: [u32; WARP], new: [u32; WARP], shift: u8, narrow: bool) -> [u32; WARP] {
    let place = bits(narrow) << (shift & 31);
    let mut all = [0; WARP];
    for lane in 0..WARP {
        all[lane] = old[lane] & !place | new[lane] << (shift & 31) & place;
    }
    all
}
