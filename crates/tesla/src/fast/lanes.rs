//! Operations on whole rows of lanes. This file contains the state that operations access, the operands of operations,
//! and the compilation of an operation's body for each level.
//!
//! A [`Body`] is written once, as loops without branches over all lanes. It stores its result only in the lanes of a
//! mask. A [`handler`] is a body that is compiled for a [`Level`]. Lowering decides which rows an operation reads and
//! writes. Rows 0 to n - 1 are the registers. The rows after the registers are the [room](reconverge_simt::registers),
//! which holds constants and intermediate results. So a handler does not depend on the origin of its operands.

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

/// Index in [`Lanes::sets`] of the active lanes.
pub(super) const ACTIVE: usize = 0;

/// Index in [`Lanes::sets`] of the lanes for which the latest predicate holds.
pub(super) const PREDICATED: usize = 1;

/// The data that all operations of a program share.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Operands of the instructions that are executed lane by lane. `Operation::number` is an index into this list.
    pub(super) generals: Vec<GeneralOperands>,
    /// Texture instructions and `quadop`s, by number.
    pub(super) textures: Vec<Tex>,
    pub(super) quads: Vec<Quad>,
    pub(super) chip: Chip,
    pub(super) modes: Modes,
    /// The rows of a warp. The registers are the first rows, and the room follows. Every [`Place`] in an operation
    /// refers to one of these rows.
    pub(super) layout: Layout<WARP>,
    /// Compiled code reads the active lanes from this row. The word of an active lane is all ones. The word of any
    /// other lane is 0.
    pub(super) mask: Place,
}

/// The state that operations read and write.
pub(super) struct Lanes<'a> {
    pub(super) rows: Frame<&'a mut [Row<WARP>], WARP>,
    pub(super) a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
    pub(super) c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
    /// The lanes of the sets [`ACTIVE`] and [`PREDICATED`], one bit per lane.
    pub(super) sets: [u32; 2],
    pub(super) shared: &'a mut Shared,
    /// Inputs (a[] or v[]) and outputs (o[]), by word.
    pub(super) inputs: &'a [Option<Input>],
    pub(super) outputs: &'a mut Vec<Row<WARP>>,
    /// Number of the warp in the block.
    pub(super) warp: u32,
    /// Lanes that are only helpers.
    pub(super) dead: u32,
    pub(super) tables: &'a Tables,
}

impl<'a> Lanes<'a> {
    /// Creates the state for a warp. Both sets of lanes are empty.
    ///
    /// # Panics
    /// There are fewer rows than in the layout of the tables.
    ///
    /// # Safety
    /// All operations that run on these lanes must have been lowered with the layout of `tables`.
    pub(super) unsafe fn new(
        rows: &'a mut [Row<WARP>],
        a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
        c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
        (inputs, outputs): (&'a [Option<Input>], &'a mut Vec<Row<WARP>>),
        shared: &'a mut Shared,
        (warp, dead): (u32, u32),
        tables: &'a Tables,
    ) -> Self {
        // SAFETY: the caller guarantees that operations use this layout.
        let rows = unsafe { Frame::new(rows, &tables.layout) };
        Lanes { rows, a, c, sets: [0; 2], shared, inputs, outputs, warp, dead, tables }
    }

    /// Continues with the state of another warp. Both sets of lanes become empty.
    ///
    /// # Panics
    /// There are fewer rows than in the layout of the tables.
    ///
    /// # Safety
    /// The conditions of [`Lanes::new`] must hold.
    pub(super) unsafe fn change(
        &mut self,
        (rows, a, c): (
            &'a mut [Row<WARP>],
            &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
            &'a mut [[u8; WARP]; CONDITION_REGISTERS],
        ),
        (inputs, outputs): (&'a [Option<Input>], &'a mut Vec<Row<WARP>>),
        (warp, dead): (u32, u32),
    ) {
        // SAFETY: the caller guarantees that operations use this layout.
        self.rows = unsafe { Frame::new(rows, &self.tables.layout) };
        (self.a, self.c, self.inputs, self.outputs) = (a, c, inputs, outputs);
        (self.warp, self.dead, self.sets) = (warp, dead, [0; 2]);
    }

    /// Returns a row by value. An operation may write a row that it also reads. So operations read all source rows
    /// before they write a row.
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> [u32; WARP] {
        *self.rows.row(place)
    }

    /// Returns a row without a copy.
    #[inline(always)]
    pub(super) fn row_of(&self, place: Place) -> &[u32; WARP] {
        self.rows.row(place)
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, place: Place) -> &mut Row<WARP> {
        self.rows.row_mut(place)
    }

    /// Writes a row in the lanes of the set with number `set`. The other lanes keep their values.
    #[inline(always)]
    pub(super) fn write<W: Wide>(&mut self, wide: W, place: Place, set: u8, values: [u32; WARP]) {
        let bits = self.set(set);
        wide.write(&mut self.row_mut(place).0, &values, bits.into());
    }

    /// Returns the set with this number, one bit per lane.
    #[inline(always)]
    pub(super) fn set(&self, number: u8) -> u32 {
        self.sets[usize::from(number & 1)]
    }

    /// `number` selects a set of lanes. Returns all ones for lanes of this set, and zeros for all other lanes.
    #[inline(always)]
    pub(super) fn members(&self, number: u8) -> [u32; WARP] {
        match self.set(number) {
            u32::MAX => [u32::MAX; WARP],
            bits => spread(bits.into()),
        }
    }

    /// Sets the active lanes. Does nothing if the active lanes do not change.
    #[inline(always)]
    pub(super) fn activate(&mut self, bits: u32) {
        if self.sets[ACTIVE] != bits {
            self.sets[ACTIVE] = bits;
            self.row_mut(self.tables.mask).0 = spread(bits.into());
        }
    }

    /// Returns the flags of a `$c`.
    #[inline(always)]
    pub(super) fn c(&self, register: u8) -> &[u8; WARP] {
        &self.c[usize::from(register & 3)]
    }

    /// Writes the flags of a `$c` in the lanes of the set with number `set`.
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

    /// Returns the `$a` register with this number. If the register is not one of `$a1` to `$a4`, returns zeros.
    #[inline(always)]
    pub(super) fn a(&self, register: u8) -> [u16; WARP] {
        match register {
            1..=4 => self.a[usize::from(register) - 1],
            _ => [0; WARP],
        }
    }

    /// Writes one of `$a1` to `$a4` in the lanes of the set with number `set`. A write to another register has no
    /// effect.
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

/// Returns a mask of the low 16 bits if `narrow` is set, otherwise a mask of all 32 bits.
#[inline(always)]
pub(super) const fn bits(narrow: bool) -> u32 {
    if narrow { 0xffff } else { u32::MAX }
}

/// The code of an operation, compiled for a level. A call is sound on a processor that has this level.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// The effect of an operation on the rows.
pub(super) trait Body {
    /// Runs the operation. The function consists of branch-free loops over all lanes and is compiled for each level.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

/// The values of three sources in all lanes.
pub(super) type Sources = [[u32; WARP]; 3];

/// Results and flags of all lanes. The value is `None` if some lane is an exception.
pub(super) type Results = Option<([u32; WARP], [u8; WARP])>;

/// An operation that is known at compile time, with the functions that [`Lanewise`] calls.
pub(super) trait Kernel {
    /// The operation. [`Lanewise`] applies the modifiers of the sources before this operation.
    const OP: Arith;
    /// The modes of the launch in which the kernel computes its results.
    const MODES: Modes = Modes::NONE;

    /// Returns the result and flags of one lane. If the caller does not use the flags, the compiler removes their
    /// computation.
    #[inline(always)]
    fn lane(src: [u32; 3], carry: Flags) -> (u32, Flags) {
        let [a, b, c] = src;
        let src = [a.into(), b.into(), c.into()];
        let operands = Operands { src, modifiers: [Modifiers::NONE; 3], carry, writes_flags: false };
        let (value, flags) = meaning::value_of_known(&Self::OP, &operands, Chip::G80, Self::MODES);
        (value as u32, flags)
    }

    /// Whether [`Kernel::by_host`] is implemented.
    const BY_HOST: bool = false;

    /// Computes all lanes with only the operation of the host. Returns `None` if some lane is an exception.
    #[inline(always)]
    fn by_host<W: Wide>(_wide: W, _src: &Sources) -> Results {
        None
    }

    /// Computes all lanes of a row for which [`Kernel::by_host`] has returned `None`. If some lane is an exception to
    /// this second computation, returns `None`.
    #[inline(always)]
    fn rarely<W: Wide>(_wide: W, _src: &Sources) -> Results {
        None
    }
}

/// Applies a 32-bit kernel to every lane. Each flag states a fact about the operation. `DST`: it writes a row. `FLAGS`:
/// it writes a `$c`. `HALVES`: some operand is a half register. `MODIFIED`: some source has a modifier.
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
            // The rare computation is a separate function. So the fast path does not keep the sources. If it kept the
            // sources, a `mad` would take a tenth longer.
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

/// The computation of a row for which [`Kernel::by_host`] returns `None`, as a task.
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

/// Returns the sources, with halves extracted and modifiers applied.
#[inline(always)]
pub(super) fn operands<const HALVES: bool, const MODIFIED: bool>(
    lanes: &Lanes<'_>,
    operation: &Operation,
) -> Sources {
    let Operation { src, shift, narrow, keep, flip, .. } = *operation;
    // The array is written out, because `array::map` is not always inlined.
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

/// Shifts `new` left by `shift`. Returns `old` after replacing some of its bits by the shifted bits. Replaces 16 bits
/// if `narrow` is set, otherwise all bits.
#[inline(always)]
pub(super) fn inserted(old: [u32; WARP], new: [u32; WARP], shift: u8, narrow: bool) -> [u32; WARP] {
    let place = bits(narrow) << (shift & 31);
    let mut all = [0; WARP];
    for lane in 0..WARP {
        all[lane] = old[lane] & !place | new[lane] << (shift & 31) & place;
    }
    all
}
