//! Operations on whole rows: their state, their operands, and the compilation of one body for each level.
//!
//! A [`Body`] is written once, as loops over all lanes without branches. A [`handler`] is that body compiled for a
//! [`Level`]. Lowering determines the rows that an operation reads and writes.

use reconverge_simt::guarded::Guarded;
use reconverge_simt::place::{Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Mask, handlers};

use crate::chip::LANES;
use crate::lane;
use crate::launch::Environment;
use crate::meaning::Meaning;

/// Index in [`Lanes::sets`] of the lanes that run the group.
pub(super) const ACTIVE: u8 = 0;
/// Index of those lanes whose predicate is true.
pub(super) const TRUE: u8 = 1;
/// Index of those lanes whose predicate is false.
pub(super) const FALSE: u8 = 2;

/// Position of a row: registers and clause temporaries, PV and PS, intermediate results, constants.
pub(super) type Place = reconverge_simt::place::Place<LANES>;

/// Operands of an operation. The body determines which of them it uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) run: Handler,
    pub(super) src: [Place; 3],
    pub(super) dst: Place,
    /// SRC_ABS and SRC_NEG: the bits of a source to keep, and the bits to flip afterwards.
    pub(super) keep: [u32; 3],
    pub(super) flip: [u32; 3],
    /// Factor of the result: OMOD or the factor of a MULADD; 1.0 for none.
    pub(super) factor: f32,
    /// CLAMP.
    pub(super) clamp: bool,
    /// DX10_CLAMP.
    pub(super) dx10_clamp: bool,
    /// Lanes that run the operation, as an index into the sets.
    pub(super) set: u8,
    /// UPDATE_PRED.
    pub(super) update_pred: bool,
    /// UPDATE_EXECUTE_MASK.
    pub(super) update_execute_mask: bool,
    /// Index of the operation in a list of [`Tables`].
    pub(super) number: u32,
}

/// Data of operations that does not fit into [`Operation`].
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Rows of the registers that an index can reach, and the number of those registers.
    pub(super) registers: Layout<LANES>,
    pub(super) indexed: u32,
    /// Constants whose position depends on an index.
    pub(super) constants: Vec<Constants>,
    /// Instructions that run lane by lane: their meaning, and their second factor.
    pub(super) generals: Vec<(Meaning, f32)>,
    /// Operands of operations over the four vector slots: src0 of x to w, src1 of x to w.
    pub(super) across: Vec<[Across; 8]>,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            registers: Layout::new(1),
            indexed: 0,
            constants: Vec::new(),
            generals: Vec::new(),
            across: Vec::new(),
        }
    }
}

/// Constants of an environment. Lowering depends on the position of a constant, not on its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bank {
    /// A constant buffer, by dword.
    Buffer(u8),
    /// A component of the constant file, by entry.
    File(u8),
}

/// A constant by its position; 0 outside the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uniform {
    /// ALT_CONST.
    pub(super) alternate: bool,
    pub(super) bank: Bank,
    /// Number of the dword or entry.
    pub(super) number: usize,
}

impl Uniform {
    /// Returns the word in an environment.
    pub(super) fn word(&self, environment: &Environment) -> u32 {
        let resources = environment.bound(self.alternate);
        let word = match self.bank {
            Bank::Buffer(bank) => resources.constant_buffers[usize::from(bank)].get(self.number),
            Bank::File(chan) => {
                resources.constant_file.get(self.number).map(|entry| &entry[usize::from(chan)])
            }
        };
        word.copied().unwrap_or(0)
    }
}

/// The constants from which an index selects one: number `first + index * step`, or 0 outside the bank.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    /// ALT_CONST.
    pub(super) alternate: bool,
    pub(super) bank: Bank,
    pub(super) first: i32,
    pub(super) step: i32,
}

impl Constants {
    /// Returns the constants of an environment.
    #[inline(always)]
    pub(super) fn of<'a>(&self, environment: &'a Environment) -> Choices<'a> {
        let resources = environment.bound(self.alternate);
        let (words, size, chan) = match self.bank {
            Bank::Buffer(bank) => (&resources.constant_buffers[usize::from(bank)][..], 1, 0),
            Bank::File(chan) => {
                let entries = &resources.constant_file;
                (entries[..entries.len().min(256)].as_flattened(), 4, chan.into())
            }
        };
        Choices { words, first: self.first, step: self.step, size, chan }
    }
}

/// [`Constants`] in an environment.
pub(super) struct Choices<'a> {
    words: &'a [u32],
    first: i32,
    step: i32,
    /// Words of a constant, and the index of the selected word.
    size: usize,
    chan: usize,
}

impl Choices<'_> {
    #[inline(always)]
    pub(super) fn word(&self, index: i32) -> u32 {
        let number = index.wrapping_mul(self.step).wrapping_add(self.first);
        let place = (number as usize).wrapping_mul(self.size).wrapping_add(self.chan);
        self.words.get(place).copied().unwrap_or(0)
    }
}

/// An operand with its modifiers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Across {
    pub(super) place: Place,
    pub(super) keep: u32,
    pub(super) flip: u32,
}

/// State on which operations work.
#[derive(Debug)]
pub(super) struct Lanes<'a> {
    /// Rows of the current wavefront.
    pub(super) frame: Frame<Guarded<Row<LANES>>, LANES>,
    /// [`ACTIVE`], [`TRUE`], [`FALSE`]; four sets, so that two bits are always a valid index.
    pub(super) sets: [Mask; 4],
    /// The predicate of each lane.
    pub(super) predicate: u64,
    /// Lanes that the last PRED_SET* with UPDATE_EXECUTE_MASK switches off.
    pub(super) skip: u64,
    /// Lanes for which a KILL* held.
    pub(super) killed: u64,
    /// aL, for clauses that use it.
    pub(super) loop_index: i32,
    pub(super) tables: &'a Tables,
    /// The environment of the launch.
    pub(super) environment: &'a Environment,
}

impl Lanes<'_> {
    #[inline(always)]
    pub(super) fn row(&self, place: Place) -> &[u32; LANES] {
        self.frame.row(place)
    }

    /// Returns the rows of the operands. Written out, because `array::map` is not always inlined.
    #[inline(always)]
    pub(super) fn sources(&self, operation: &Operation) -> [&[u32; LANES]; 3] {
        let [a, b, c] = operation.src;
        [self.row(a), self.row(b), self.row(c)]
    }

    /// Writes the lanes of a set. Other lanes do not change.
    #[inline(always)]
    pub(super) fn write<W: Wide>(&mut self, wide: W, place: Place, set: u8, values: &[u32; LANES]) {
        let set = self.set(set);
        wide.write(&mut self.frame.row_mut(place).0, values, set);
    }

    /// Returns the lanes of a set.
    #[inline(always)]
    pub(super) fn set(&self, set: u8) -> u64 {
        self.sets[usize::from(set & 3)].0
    }
}

/// The compiled code of an operation. Calling it is sound on a processor that supports the level for which it was
/// compiled.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// Computation of an operation on rows.
pub(super) trait Body {
    /// Runs the operation. Implementations are `#[inline(always)]` so that they are compiled for a level, and are
    /// branch-free loops over all lanes.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

/// Applies OMOD or the factor of a MULADD, then CLAMP.
#[inline(always)]
pub(super) fn finish(value: u32, operation: &Operation) -> u32 {
    let scaled = if operation.factor == 1.0 { value } else { lane::scale(value, operation.factor) };
    if operation.clamp { lane::clamp(scaled, operation.dx10_clamp) } else { scaled }
}
