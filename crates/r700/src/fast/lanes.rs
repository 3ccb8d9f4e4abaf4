//! Operations on whole rows. This module defines the state and the operands of operations. The module compiles each
//! operation body once for each instruction set level of the host.
//!
//! A [`Body`] is Rust source: a loop over all lanes, without branches. A [`handler`] is a body that is compiled for one
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

/// Index in [`Lanes::sets`] of the active lanes. The active lanes run the group.
pub(super) const ACTIVE: u8 = 0;
/// Index in [`Lanes::sets`] of the active lanes whose predicate is true.
pub(super) const TRUE: u8 = 1;
/// Index in [`Lanes::sets`] of the active lanes whose predicate is false.
pub(super) const FALSE: u8 = 2;

/// Position of a row. Rows are registers, clause temporaries, PV and PS, intermediate results, and constants.
pub(super) type Place = reconverge_simt::place::Place<LANES>;

/// Operands of an operation. The body of the operation may ignore some of these operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) run: Handler,
    pub(super) src: [Place; 3],
    pub(super) dst: Place,
    /// SRC_ABS: for each source, a mask of the bits to keep.
    pub(super) keep: [u32; 3],
    /// SRC_NEG: for each source, a mask of the bits to flip.
    pub(super) flip: [u32; 3],
    /// The factor of OMOD or of a MULADD. The operation multiplies its result by this factor. Without a factor, the
    /// field is 1.0.
    pub(super) factor: f32,
    /// CLAMP.
    pub(super) clamp: bool,
    /// DX10_CLAMP.
    pub(super) dx10_clamp: bool,
    /// Lanes that run the operation, as an index into [`Lanes::sets`].
    pub(super) set: u8,
    /// UPDATE_PRED.
    pub(super) update_pred: bool,
    /// UPDATE_EXECUTE_MASK.
    pub(super) update_execute_mask: bool,
    /// Index into a list of [`Tables`]. The body of the operation determines the list.
    pub(super) number: u32,
}

/// Data that operations need and that do not fit into [`Operation`].
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// Rows of the registers that an index can select.
    pub(super) registers: Layout<LANES>,
    /// Number of the registers that an index can select.
    pub(super) indexed: u32,
    /// Constants that an index selects.
    pub(super) constants: Vec<Constants>,
    /// For each instruction that runs lane by lane, the meaning of the instruction, and the factor that applies after
    /// OMOD.
    pub(super) generals: Vec<(Meaning, f32)>,
    /// Operands of operations over the four vector slots. An entry has src0 of slots x to w, then src1 of slots x to w.
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

/// Constants of an environment. Lowering depends on the position of a constant, not on the value of the constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bank {
    /// The constant buffer with this number. A constant is one dword.
    Buffer(u8),
    /// A component of the constant file, 0 to 3. A constant is this component of one entry of the file.
    File(u8),
}

/// The position of a constant. A constant outside its bank is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uniform {
    /// ALT_CONST. If this field is set, a vertex program reads a constant of the pixel stage, and a pixel program reads
    /// a constant of the vertex stage.
    pub(super) alternate: bool,
    pub(super) bank: Bank,
    /// Number of the dword or entry.
    pub(super) number: usize,
}

impl Uniform {
    /// Returns the constant's word in an environment.
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

/// A list of constants. An index selects the constant with the number `first + index * step`. A constant outside the
/// bank is 0.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    /// ALT_CONST. If this field is set, a vertex program reads constants of the pixel stage, and a pixel program reads
    /// constants of the vertex stage.
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

/// The words of [`Constants`] in an environment.
pub(super) struct Choices<'a> {
    words: &'a [u32],
    first: i32,
    step: i32,
    /// Number of words of a constant.
    size: usize,
    /// Index of the selected word in a constant.
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

/// An operand of an operation over the four vector slots, with its modifiers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Across {
    pub(super) place: Place,
    pub(super) keep: u32,
    pub(super) flip: u32,
}

/// State that operations read and change.
#[derive(Debug)]
pub(super) struct Lanes<'a> {
    /// Rows of the current wavefront.
    pub(super) frame: Frame<Guarded<Row<LANES>>, LANES>,
    /// The sets [`ACTIVE`], [`TRUE`] and [`FALSE`]. The array has four elements, so that every number of two bits is a
    /// valid index.
    pub(super) sets: [Mask; 4],
    /// The predicate of each lane.
    pub(super) predicate: u64,
    /// Lanes that the last PRED_SET* with UPDATE_EXECUTE_MASK disables.
    pub(super) skip: u64,
    /// Lanes that a KILL* has killed because its test held.
    pub(super) killed: u64,
    /// The value of aL. The value is valid only in clauses that use aL.
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

    /// Returns the rows of the operands. The code writes out three calls, because the compiler does not always inline
    /// `array::map`.
    #[inline(always)]
    pub(super) fn sources(&self, operation: &Operation) -> [&[u32; LANES]; 3] {
        let [a, b, c] = operation.src;
        [self.row(a), self.row(b), self.row(c)]
    }

    /// Writes the values to a row, for the lanes of a set. The row does not change in other lanes.
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

/// The compiled code of an operation for one instruction set level. A call of the code is sound only on a processor
/// that supports this level.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// Computation of an operation on rows.
pub(super) trait Body {
    /// Runs the operation. Implementations are branch-free loops over all lanes. Each implementation is
    /// `#[inline(always)]`. So the compiler compiles the implementation for the level of the caller.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

/// Applies OMOD or the factor of a MULADD to a value. Then applies CLAMP to the product.
#[inline(always)]
pub(super) fn finish(value: u32, operation: &Operation) -> u32 {
    let scaled = if operation.factor == 1.0 { value } else { lane::scale(value, operation.factor) };
    if operation.clamp { lane::clamp(scaled, operation.dx10_clamp) } else { scaled }
}
