//! Operations on whole rows: the state they see, their operands, and how one body becomes code for each level.
//!
//! A [`Body`] is written once, as loops over all lanes without branches, and blends its result under the mask. A
//! [`handler`] is that body compiled for a [`Level`]. Which rows an operation reads and writes was decided when it
//! was lowered: rows 0 to n - 1 are the registers, those behind them the [room](reconverge_simt::registers) with
//! constants and intermediate results, so that a handler does not ask where an operand comes from.

use std::marker::PhantomData;

use reconverge_simt::Level;
use reconverge_simt::lanes::{Baseline, Kind, Spread, Wide};
use reconverge_simt::registers::Row;

use crate::flow::WARP;
use crate::inst::{Chip, Inst};
use crate::lane::Flags;
use crate::meaning::Modes;
use crate::spaces::Shared;
use crate::state::{ADDRESS_REGISTERS, CONDITION_REGISTERS};

/// The set of all active lanes among [`Lanes::masks`].
pub(super) const ACTIVE: u8 = 0;

/// The set that the latest predicate left.
pub(super) const PREDICATED: u8 = 1;

/// Where a row stands: registers first, then the room.
pub(super) type Place = u16;

/// What all operations of a program share.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Instructions that some operation refers to by number.
    pub(super) insts: Vec<Inst>,
    pub(super) chip: Chip,
    pub(super) modes: Modes,
    /// Rows of a warp's registers and room together. Every place in an operation is below it.
    pub(super) rows: usize,
}

/// What operations work on.
pub(super) struct Lanes<'a> {
    rows: &'a mut [Row<WARP>],
    a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
    c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
    /// [`ACTIVE`] and [`PREDICATED`].
    pub(super) masks: [Spread; 2],
    pub(super) shared: &'a mut Shared,
    pub(super) tables: &'a Tables,
}

impl<'a> Lanes<'a> {
    /// # Panics
    /// The registers have no room for the program.
    pub(super) fn new(
        rows: &'a mut [Row<WARP>],
        a: &'a mut [[u16; WARP]; ADDRESS_REGISTERS],
        c: &'a mut [[u8; WARP]; CONDITION_REGISTERS],
        shared: &'a mut Shared,
        tables: &'a Tables,
    ) -> Self {
        assert!(rows.len() == tables.rows, "the warp was made for this program");
        Lanes { rows, a, c, masks: [Spread::NONE; 2], shared, tables }
    }

    /// A row by value: operations read all their rows before they write one, which may be the same.
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> [u32; WARP] {
        debug_assert!(usize::from(place) < self.rows.len());
        // SAFETY: lowering makes only places below `tables.rows`, and `new` has seen that there are so many rows.
        // Measured: 0.6 ns of 5 for an operation with three sources (rustc 1.95, AVX-512, an AMD EPYC, 2026-11-21).
        unsafe { self.rows.get_unchecked(usize::from(place)).0 }
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, place: Place) -> &mut Row<WARP> {
        debug_assert!(usize::from(place) < self.rows.len());
        // SAFETY: as in `row`.
        unsafe { self.rows.get_unchecked_mut(usize::from(place)) }
    }

    /// Writes the lanes of a set; the others keep what they have.
    #[inline(always)]
    pub(super) fn write(&mut self, place: Place, masked: u8, values: [u32; WARP]) {
        let words = self.mask(masked).words;
        let old = self.row(place);
        let mut new = [0; WARP];
        for lane in 0..WARP {
            new[lane] = values[lane] & words[lane] | old[lane] & !words[lane];
        }
        self.row_mut(place).0 = new;
    }

    #[inline(always)]
    pub(super) fn mask(&self, masked: u8) -> &Spread {
        &self.masks[usize::from(masked & 1)]
    }

    /// The flags of a `$c`.
    #[inline(always)]
    pub(super) fn c(&self, register: u8) -> &[u8; WARP] {
        &self.c[usize::from(register & 3)]
    }

    /// Writes flags in the lanes of a set.
    #[inline(always)]
    pub(super) fn write_c(&mut self, register: u8, masked: u8, flags: [u8; WARP]) {
        let bytes = self.mask(masked).bytes;
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

    /// Writes `$a1` to `$a4` in the lanes of a set; writing another does nothing.
    #[inline(always)]
    pub(super) fn write_a(&mut self, register: u8, masked: u8, values: [u16; WARP]) {
        if let 1..=4 = register {
            let words = self.mask(masked).words;
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

/// Operands of an operation. Which of them count is the body's matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Sources: the row, or the lower of two.
    pub(super) src: [Place; 3],
    /// The upper row of a 64-bit source.
    pub(super) src_high: [Place; 3],
    /// Where the result goes: the row, or the lower of two.
    pub(super) dst: Place,
    /// The upper row of a 64-bit result.
    pub(super) dst_high: Place,
    /// Halves: how far a source is moved down, and which bits of it count then.
    pub(super) shift: [u8; 3],
    pub(super) width: [u32; 3],
    /// Halves: how far the result is moved up, and which of its bits are written.
    pub(super) dst_shift: u8,
    pub(super) dst_width: u32,
    /// f32 modifiers: the bits of a source that stay, and those that are flipped then.
    pub(super) keep: [u32; 3],
    pub(super) flip: [u32; 3],
    /// [`ACTIVE`] or [`PREDICATED`].
    pub(super) masked: u8,
    /// The `$c` that is read, as carry or as predicate.
    pub(super) c: u8,
    /// The `$c` that is written.
    pub(super) cdst: u8,
    /// A number of the body's own: an instruction, an address.
    pub(super) number: u32,
}

impl Operation {
    /// Reads and writes row `place` everywhere.
    pub(super) fn on(place: Place) -> Self {
        Operation {
            src: [place; 3],
            src_high: [place; 3],
            dst: place,
            dst_high: place,
            shift: [0; 3],
            width: [u32::MAX; 3],
            dst_shift: 0,
            dst_width: u32::MAX,
            keep: [u32::MAX; 3],
            flip: [0; 3],
            masked: ACTIVE,
            c: 0,
            cdst: 0,
            number: 0,
        }
    }
}

/// An operation's code. Calling it is sound on a processor that has the level it was made for.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// What an operation does to the rows.
pub(super) trait Body {
    /// To be compiled for a level: branch-free loops over all lanes.
    ///
    /// # Safety
    /// The processor has the level of `W`.
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation);
}

/// The code of a body for a level.
pub(super) fn handler<B: Body>(level: Level) -> Handler {
    match level.kind() {
        Kind::Baseline => baseline::<B>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => avx2::<B>,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => avx512::<B>,
        #[cfg(not(target_arch = "x86_64"))]
        Kind::Avx2 | Kind::Avx512 => baseline::<B>,
    }
}

unsafe fn baseline<B: Body>(lanes: &mut Lanes<'_>, operation: &Operation) {
    // SAFETY: every processor has the baseline.
    unsafe { B::run::<Baseline>(lanes, operation) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn avx2<B: Body>(lanes: &mut Lanes<'_>, operation: &Operation) {
    // SAFETY: who calls a handler has its level.
    unsafe { B::run::<reconverge_simt::lanes::Avx2>(lanes, operation) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn avx512<B: Body>(lanes: &mut Lanes<'_>, operation: &Operation) {
    // SAFETY: who calls a handler has its level.
    unsafe { B::run::<reconverge_simt::lanes::Avx512>(lanes, operation) }
}

/// A lane function with its modifiers fixed, for [`Lanewise`].
pub(super) trait Kernel {
    /// Result and flags of one lane; flags that nobody looks at cost nothing.
    fn lane(src: [u32; 3], carry: Flags) -> (u32, Flags);
}

/// A 32-bit kernel for every lane. `FLAGS`: it writes a `$c`. `HALVES`: some operand is half a register.
/// `MODIFIED`: some source has abs or neg.
pub(super) struct Lanewise<K, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool>(PhantomData<K>);

impl<K: Kernel, const FLAGS: bool, const HALVES: bool, const MODIFIED: bool> Body
    for Lanewise<K, FLAGS, HALVES, MODIFIED>
{
    #[inline(always)]
    unsafe fn run<W: Wide>(lanes: &mut Lanes<'_>, operation: &Operation) {
        let Operation { src, dst, shift, width, keep, flip, masked, c, cdst, .. } = *operation;
        let sources = src.map(|place| lanes.row(place));
        let carry = *lanes.c(c);
        let mut result = [0; WARP];
        let mut flags = [0; WARP];
        for lane in 0..WARP {
            let operand = |number: usize| {
                let mut word = sources[number][lane];
                if HALVES {
                    word = word >> (shift[number] & 31) & width[number];
                }
                if MODIFIED {
                    word = word & keep[number] ^ flip[number];
                }
                word
            };
            let (value, flag) = K::lane([operand(0), operand(1), operand(2)], Flags::from_bits(carry[lane]));
            result[lane] = value;
            flags[lane] = flag.bits();
        }
        if HALVES {
            result = inserted(lanes.row(dst), result, operation.dst_shift, operation.dst_width);
        }
        lanes.write(dst, masked, result);
        if FLAGS {
            lanes.write_c(cdst, masked, flags);
        }
    }
}

/// `old` with the bits of `width`, `shift` further up, replaced by those of `new`.
#[inline(always)]
pub(super) fn inserted(old: [u32; WARP], new: [u32; WARP], shift: u8, width: u32) -> [u32; WARP] {
    let mut all = [0; WARP];
    for lane in 0..WARP {
        let (place, bits) = (width << (shift & 31), (new[lane] & width) << (shift & 31));
        all[lane] = old[lane] & !place | bits;
    }
    all
}
