//! Lowers instructions to blocks of operations, once per launch.
//!
//! | module | contents |
//! |---|---|
//! | `blocks` | divides a program into blocks; a flow instruction ends a block |
//! | `schedule` | lowers one arithmetic instruction to vector operations |
//! | `fetch` | lowers texture fetches |
//! | `operands` | finds the rows and constants that an instruction reads |
//! | `codes` | the table with the vector code of each operation |
//! | `denormals` | finds rows that cannot contain denormals |
//!
//! Lowering resolves all properties that are known before the run: swizzles, modifiers, presubtract, and the channels
//! that an instruction reads. Each float constant has a row. The row receives the value of the constant when a group is
//! created. So the engine does not lower the program again when a draw changes constants. An instruction that cannot be
//! lowered becomes a separate block for the reference interpreter. So every program can run. Examples are an
//! instruction that traps and an instruction that violates a rule of strict mode.

mod blocks;
mod codes;
mod denormals;
mod fetch;
mod operands;
mod schedule;

use std::collections::HashMap;
use std::ops::RangeInclusive;

use reconverge_simt::loaded::count_lowered;
use reconverge_simt::place::Layout;
use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mode};

pub(super) use self::blocks::{Block, Entry, Last, NONE};
pub(super) use self::codes::Computes;
use self::denormals::{Normal, values_of_al, written_by};
pub(super) use self::operands::Uniform;
use super::lanes::{Body, Channel, Operation, handler};
use super::operands::{Fetch, Load, Scatter};
use super::operands::{Place, Set};
use crate::flow;
use crate::group::{DEPTH_ROW, ROWS, WIDEST, color_row};
use crate::inst::{Body as InstBody, SLOTS, TEMPORARIES};
use crate::launch::Launch;
use crate::memory::Bound;
use crate::setup::Setup;
use crate::texture::Texture;
use crate::uses;
use crate::words::{AluResultOp, Omod};

/// The template of an operation, from which the compiled engine emits code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// The operation does not have a template. Only the handler of the operation can execute the operation.
    None,
    /// The operation does not have a template, and the operation also reads lanes that are not active. Only the handler
    /// of the operation can execute the operation.
    Neighbours,
    /// One computation, applied to this number of channels.
    Channels(Computes, usize),
    /// Compares a value with zero and sets the ALU result. The value is the first source, or the sum A * B + C of the
    /// three sources.
    AluResult {
        /// The comparison with zero.
        op: AluResultOp,
        /// Whether the sum is compared with zero instead of the first source.
        of_sum: bool,
    },
}

/// The lowered program.
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    pub(super) operations: Vec<Operation>,
    /// Templates, indexed by operation.
    pub(super) templates: Vec<Template>,
    /// Rows whose values depend on float constants. Operations do not write to these rows.
    pub(super) uniforms: Vec<(Uniform, Place)>,
    /// Maximum number of lanes in a group.
    pub(super) width: usize,
    /// Whether the groups share the surfaces of the CTM model. Groups that share surfaces run one after the other.
    pub(super) shares: bool,
    /// The field US_CONFIG.ZERO_TIMES_ANYTHING_EQUALS_ZERO.
    pub(super) zero_wins: bool,
    pub(super) fetches: Vec<Fetch>,
    pub(super) scatters: Vec<Scatter>,
    pub(super) loads: Vec<Load>,
    pub(super) blocks: Vec<Block>,
    pub(super) flows: Vec<flow::Step>,
    /// The position of each slot in the blocks.
    pub(super) entries: Vec<Entry>,
    /// For each slot, the end of the range of the slot's operations.
    pub(super) ends: Vec<u32>,
    /// The rows that operations access. The rows of registers come first.
    pub(super) layout: Layout<WIDEST>,
    /// Initial values of the rows that follow the registers. The rows of [`Lowered::uniforms`] are zero in these
    /// initial values.
    pub(super) room: Vec<Row<WIDEST>>,
    /// Slots whose instruction the reference interpreter executes.
    pub(super) by_reference: Vec<u16>,
    /// Rows that the program may write.
    pub(super) written: Vec<usize>,
    /// Rows of temporaries. The program may read one of these rows before all lanes have written the row.
    pub(super) cleared: Vec<usize>,
    /// For each row of a temporary, whether the program may read the row.
    pub(super) read: Vec<bool>,
}

impl Lowered {
    /// Returns the block that begins at a slot. Returns [`NONE`] if no block begins at the slot.
    #[inline(always)]
    pub(super) fn block_at(&self, slot: u16) -> u32 {
        match self.entries.get(usize::from(slot)) {
            Some(Entry { block, inside: 0 }) => *block,
            _ => NONE,
        }
    }

    /// If a row is a constant that depends only on the program, returns the word of the constant.
    pub(super) fn constant(&self, place: Place) -> Option<u32> {
        let row = place.number().checked_sub(ROWS + MASKS + SCRATCH)?;
        let known = self.uniform(place).is_none();
        self.room.get(MASKS + SCRATCH + row).filter(|_| known).map(|row| row.0[0])
    }

    /// Returns the [`Uniform`] from which each launch computes the value of the row. Returns `None` if launches do not
    /// compute the value of the row from a [`Uniform`].
    fn uniform(&self, place: Place) -> Option<&Uniform> {
        self.uniforms.iter().find(|(_, of)| *of == place).map(|(uniform, _)| uniform)
    }
}

/// Number of rows between the registers and the intermediate results. There is only the row of the active lanes,
/// [`MASK`](super::operands::MASK).
const MASKS: usize = 1;

/// Maximum number of intermediate results of one instruction.
const SCRATCH: usize = 32;

/// Lowers the program of a launch. The result depends on the parts of the environment that
/// [`Environment::lowers_alike`](crate::launch::Environment::lowers_alike) compares. `bound` holds the surfaces of the
/// CTM model. If `singly` is set, each block has one instruction.
pub(super) fn lower(
    setup: &Setup,
    launch: &Launch,
    mode: Mode,
    bound: Option<&Bound>,
    level: Level,
    singly: bool,
) -> Lowered {
    count_lowered();
    let environment = &*launch.environment;
    let inputs = &mut launch.input_temps().map(usize::from);
    let strict = mode == Mode::Strict;
    let room = vec![Row::ZERO; MASKS + SCRATCH];
    let layout = Layout::new(ROWS + room.len());
    let (written, fresh) = (written(setup), written_first(setup));
    let read = uses::temps_read(setup);
    let is_cleared = |row: &usize| read.get(*row).is_some_and(|read| *read) && !fresh.contains(row);
    let cleared = written.iter().copied().filter(is_cleared).collect();
    let mut lowering = Lowering {
        setup,
        denormals: environment.has_denormals(setup),
        textures: &environment.textures,
        strict,
        bound,
        level,
        normal: Normal::new(setup, inputs),
        known: HashMap::new(),
        lowered: Lowered {
            operations: Vec::new(),
            templates: Vec::new(),
            uniforms: Vec::new(),
            width: environment.hardware.group_width,
            shares: bound.is_some(),
            zero_wins: setup.zero_wins,
            fetches: Vec::new(),
            scatters: Vec::new(),
            loads: Vec::new(),
            blocks: Vec::new(),
            flows: Vec::new(),
            entries: vec![Entry { block: NONE, inside: 0 }; SLOTS],
            ends: vec![0; SLOTS],
            layout,
            room,
            by_reference: Vec::new(),
            written,
            cleared,
            read,
        },
        scratch: 0,
        al: None,
        split: None,
        singly,
    };
    lowering.program();
    lowering.lowered
}

/// Returns the rows that the program may write.
fn written(setup: &Setup) -> Vec<usize> {
    let mut rows = vec![false; ROWS];
    let al = values_of_al(setup);
    for inst in setup.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok()) {
        written_by(inst, &al).iter().for_each(|(row, ..)| rows[*row] = true);
        if let InstBody::Alu(alu) = &inst.body {
            for channel in (0..4).filter(|channel| inst.common.writes_output(*channel)) {
                rows[color_row(alu.target(channel) as usize, channel)] = true;
            }
            rows[DEPTH_ROW] |= alu.w_omask;
        }
    }
    (0..ROWS).filter(|row| rows[*row]).collect()
}

/// Returns the rows of temporaries that all lanes have written before any lane reads the row.
fn written_first(setup: &Setup) -> Vec<usize> {
    let al = values_of_al(setup);
    let (mut read, mut written) = (vec![false; TEMPORARIES * 4], Vec::new());
    for slot in setup.start..SLOTS as u16 {
        let Some(Ok(inst)) = setup.slot(slot).map(|slot| slot.inst.as_ref()) else { break };
        // After a flow instruction, some lanes may not be active.
        if matches!(inst.body, InstBody::Fc(_)) {
            break;
        }
        uses::mark_temps_read(inst, &mut read);
        let always = written_by(inst, &al).into_iter().filter(|(.., always)| *always);
        written.extend(always.map(|(row, ..)| row).filter(|row| !read[*row]));
        if slot == setup.end {
            break;
        }
    }
    written
}

struct Lowering<'a> {
    setup: &'a Setup,
    /// Whether any float constant is a denormal.
    denormals: bool,
    textures: &'a [(u8, Texture)],
    strict: bool,
    /// The surfaces of the CTM model, if the launch uses the CTM model.
    bound: Option<&'a Bound>,
    level: Level,
    normal: Normal,
    /// Rows of constants, indexed by the bits of the constant.
    known: HashMap<u32, Place>,
    lowered: Lowered,
    /// Number of [`SCRATCH`] rows that the current instruction uses.
    scratch: usize,
    /// The values of aL for which no address of the current instruction traps.
    al: Option<RangeInclusive<i32>>,
    /// End of the range of the current instruction's operations that may bail out.
    split: Option<u32>,
    /// Whether each instruction becomes a separate block.
    singly: bool,
}

impl Lowering<'_> {
    /// Returns whether the program's outputs are uncached. Uncached outputs are scattered.
    fn uncached(&self) -> bool {
        self.bound.is_some_and(|bound| bound.uncached)
    }

    /// Returns the row of a constant.
    fn constant(&mut self, bits: u32) -> Place {
        let Lowered { room, layout, .. } = &mut self.lowered;
        *self.known.entry(bits).or_insert_with(|| {
            room.push(Row([bits; WIDEST]));
            layout.add()
        })
    }

    /// Returns the row of a number that is the same in all lanes.
    fn uniform(&mut self, uniform: Uniform) -> Place {
        if let Some(bits) = uniform.known() {
            return self.constant(bits);
        }
        let Lowered { room, layout, uniforms, .. } = &mut self.lowered;
        if let Some((_, place)) = uniforms.iter().find(|(known, _)| *known == uniform) {
            return *place;
        }
        room.push(Row::ZERO);
        let place = layout.add();
        uniforms.push((uniform, place));
        place
    }

    /// Returns whether a row holds a constant that cannot be a denormal.
    fn is_normal_constant(&self, place: Place) -> bool {
        if let Some(uniform) = self.lowered.uniform(place) {
            return uniform.is_normal(self.denormals);
        }
        self.lowered.constant(place).is_some_and(|bits| !f32::from_bits(bits).is_subnormal())
    }

    /// Returns the row with this number.
    fn row(&self, number: usize) -> Place {
        self.lowered.layout.place(number)
    }

    /// Returns a free scratch row for an intermediate result of the current instruction. Returns `None` if all scratch
    /// rows are in use.
    fn scratch(&mut self) -> Option<Place> {
        self.scratch += 1;
        (self.scratch <= SCRATCH).then(|| self.row(ROWS + MASKS + self.scratch - 1))
    }

    fn push(&mut self, operation: Operation) {
        self.push_as(operation, Template::None);
    }

    fn push_as(&mut self, operation: Operation, template: Template) {
        self.lowered.operations.push(operation);
        self.lowered.templates.push(template);
    }

    /// Returns an operation in which all arithmetic fields are unused.
    fn plain<B: Body>(&self, set: Set) -> Operation {
        let handler = handler::<B>(self.level);
        Operation {
            handlers: [handler; 2],
            channels: [Channel::NONE; 4],
            set,
            omod: Omod::DISABLED,
            scale: 1.0,
            clamp: false,
            number: [0; 2],
            inverted: false,
        }
    }
}
