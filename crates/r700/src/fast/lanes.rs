//! Operations on whole rows: the state they see, their operands, and how one body becomes code for each level.
//!
//! A [`Body`] is written once, as loops over all lanes without branches. A [`handler`] is that body compiled for a
//! [`Level`]. Which rows an operation reads and writes was decided when it was lowered.

use reconverge_simt::guarded::Guarded;
use reconverge_simt::place::{Frame, Layout};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Wide;
use reconverge_simt::{Mask, handlers};

use crate::chip::LANES;
use crate::lane;
use crate::launch::Environment;
use crate::meaning::Meaning;

/// The lanes that run the group, among the [`Lanes::sets`].
pub(super) const ACTIVE: u8 = 0;
/// Those of them whose predicate is true.
pub(super) const TRUE: u8 = 1;
/// Those of them whose predicate is false.
pub(super) const FALSE: u8 = 2;

/// The place of a row: registers and clause temporaries, PV and PS, intermediate results, constants.
pub(super) type Place = reconverge_simt::place::Place<LANES>;

/// Operands of an operation. Which of them count is the body's matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) run: Handler,
    pub(super) src: [Place; 3],
    pub(super) dst: Place,
    /// SRC_ABS and SRC_NEG: the bits of a source that stay, and those that are flipped then.
    pub(super) keep: [u32; 3],
    pub(super) flip: [u32; 3],
    /// What the result is multiplied with: OMOD or the factor of a MULADD; 1.0 for nothing.
    pub(super) factor: f32,
    /// CLAMP.
    pub(super) clamp: bool,
    /// DX10_CLAMP.
    pub(super) dx10_clamp: bool,
    /// The lanes that run it, among the sets.
    pub(super) set: u8,
    /// UPDATE_PRED.
    pub(super) update_pred: bool,
    /// UPDATE_EXECUTE_MASK.
    pub(super) update_execute_mask: bool,
    /// Its place in a list of what has no room here.
    pub(super) number: u32,
}

/// What [`Operation`] has no room for.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    /// The rows of the registers, which an index reaches, and how many of the registers it does.
    pub(super) registers: Layout<LANES>,
    pub(super) indexed: u32,
    /// Constants whose place depends on an index.
    pub(super) constants: Vec<Constants>,
    /// Instructions that go lane by lane: what they mean, and their second factor.
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

/// Constants of an environment. Lowering depends on where a constant is, not on its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bank {
    /// A constant buffer, by dword.
    Buffer(u8),
    /// A component of the constant file, by entry.
    File(u8),
}

/// A constant by its place; 0 outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uniform {
    /// ALT_CONST.
    pub(super) alternate: bool,
    pub(super) bank: Bank,
    /// The dword or entry.
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

/// The constants from which an index chooses one: number `first + index * step`; 0 outside.
#[derive(Clone, Debug)]
pub(super) struct Constants {
    /// ALT_CONST.
    pub(super) alternate: bool,
    pub(super) bank: Bank,
    pub(super) first: i32,
    pub(super) step: i32,
}

impl Constants {
    /// The constants of an environment.
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
    /// Words of a constant, and which of them it is.
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

/// What operations work on.
#[derive(Debug)]
pub(super) struct Lanes<'a> {
    /// The rows of the wavefront that runs.
    pub(super) frame: Frame<Guarded<Row<LANES>>, LANES>,
    /// [`ACTIVE`], [`TRUE`], [`FALSE`]; four, so that two bits always find one.
    pub(super) sets: [Mask; 4],
    /// The predicate of each lane.
    pub(super) predicate: u64,
    /// The lanes that the last PRED_SET* with UPDATE_EXECUTE_MASK switches off.
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

    /// The rows of the operands. Written out: `array::map` is not always inlined.
    #[inline(always)]
    pub(super) fn sources(&self, operation: &Operation) -> [&[u32; LANES]; 3] {
        let [a, b, c] = operation.src;
        [self.row(a), self.row(b), self.row(c)]
    }

    /// Writes the lanes of a set; the others keep what they have.
    #[inline(always)]
    pub(super) fn write<W: Wide>(&mut self, wide: W, place: Place, set: u8, values: &[u32; LANES]) {
        let set = self.set(set);
        wide.write(&mut self.frame.row_mut(place).0, values, set);
    }

    /// The lanes of a set.
    #[inline(always)]
    pub(super) fn set(&self, set: u8) -> u64 {
        self.sets[usize::from(set & 3)].0
    }
}

/// An operation's code. Calling it is sound on a processor that has the level it was made for.
pub(super) type Handler = unsafe fn(&mut Lanes<'_>, &Operation);

/// What an operation does to the rows.
pub(super) trait Body {
    /// To be compiled for a level, as `#[inline(always)]`: branch-free loops over all lanes.
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation);
}

handlers!(pub(super) fn handler<Body>(&mut Lanes<'_>, &Operation) -> Handler);

/// OMOD or the factor of a MULADD, then CLAMP.
#[inline(always)]
pub(super) fn finish(value: u32, operation: &Operation) -> u32 {
    let scaled = if operation.factor == 1.0 { value } else { lane::scale(value, operation.factor) };
    if operation.clamp { lane::clamp(scaled, operation.dx10_clamp) } else { scaled }
}
