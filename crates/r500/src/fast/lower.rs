//! From instructions to blocks of operations, once a launch.
//!
//! A [`Block`] is a run of arithmetic instructions that cannot trap, and one instruction behind them that may change the
//! flow. Everything that is known before the program runs is settled here: constants, swizzles, modifiers,
//! presubtract, which channels anybody looks at. An instruction that nothing here knows (texture fetches, relative
//! addresses, scattered outputs, whatever traps) stands alone and is executed by the reference interpreter, so that
//! every program runs.

use std::collections::HashMap;
use std::ops::Range;

use reconverge_simt::registers::Row;
use reconverge_simt::{Level, Mode};

use super::bodies::{
    AluResult, AluResultOf, ColorWritten, DepthWritten, EQ, GE, LT, NE, OfQuad, Predicate, Predicated,
};
use super::kernels::{self, AnyMad, Channels, Cos, Dot, Each, Ex2, Ln2, Mad, Sin};
use super::lanes::{Body, Channel, Handler, Operation, Place, Set, handler};
use crate::inst::{Alu, Body as InstBody, CONSTANTS, Fc, Inst, SLOTS, Source, TEMPORARIES, inline_constant};
use crate::lane;
use crate::launch::{Launch, Setup};
use crate::reference::{DEPTH_ROW, ROWS, WIDEST, color_row, output_mask, temp_mask, used_sources};
use crate::words::*;

/// The instruction behind a block's operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// None: the next one begins another block, or the program has ended.
    Next,
    /// The reference interpreter executes it. It does not count as one of the block.
    Reference,
    /// Flow control, by number.
    Flow(u32),
}

/// Instructions that run together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Its operations.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Its first slot.
    pub(super) first: u16,
    /// Instructions, a flow instruction at the end included.
    pub(super) size: u16,
    /// Some lanes that are not active are written too.
    pub(super) inactive: bool,
    /// Its last instruction is the program's.
    pub(super) ends: bool,
    pub(super) last: Last,
    /// The blocks that follow and that its flow instruction jumps to, or [`NONE`].
    pub(super) fall: u32,
    pub(super) jump: u32,
}

impl Block {
    /// The slots of its instructions.
    pub(super) fn slots(&self) -> Range<usize> {
        let first = usize::from(self.first);
        first..first + usize::from(self.size)
    }
}

/// A flow instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) fc: Fc,
    /// The predicate bit that JUMP_FUNC looks at, if any, and whether it is turned around.
    pub(super) predicate: Option<(u8, bool)>,
    /// The lanes that want to jump, all or none, for each ALU result * 2 + predicate.
    pub(super) wants: [u64; 4],
    /// The ALU result must be valid.
    pub(super) reads_alu_result: bool,
    pub(super) constant: crate::flow::LoopConstant,
}

/// A place in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// [`NONE`] for a slot without instruction.
    pub(super) block: u32,
    /// Which instruction of it.
    pub(super) inside: u16,
}

/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// What lowering gives.
#[derive(Clone, Debug)]
pub(super) struct Lowered {
    pub(super) operations: Vec<Operation>,
    pub(super) blocks: Vec<Block>,
    pub(super) flows: Vec<Flow>,
    /// By slot.
    pub(super) entries: Vec<Entry>,
    /// By slot: the end of its operations.
    pub(super) ends: Vec<u32>,
    /// The rows behind the registers, before the first instruction.
    pub(super) room: Vec<Row<WIDEST>>,
    /// Slots whose instruction the reference interpreter executes.
    pub(super) by_reference: Vec<u16>,
    /// Rows that the program may write.
    pub(super) written: Vec<usize>,
}

/// Intermediate results of one instruction.
const SCRATCH: usize = 32;

/// Lowers the program of a launch. `uncached`: outputs are scattered.
pub(super) fn lower(setup: &Setup, launch: &Launch, uncached: bool, level: Level) -> Lowered {
    let constants = &launch.constants_of(setup);
    let inputs = &mut launch.inputs.iter().map(|input| usize::from(input.temp));
    let options = launch.options;
    let strict = options.mode == Mode::Strict;
    let room = vec![Row::ZERO; Set::COUNT + SCRATCH];
    let mut lowering = Lowering {
        setup,
        constants,
        strict,
        uncached,
        level,
        normal: Normal::new(setup, inputs),
        known: HashMap::new(),
        lowered: Lowered {
            operations: Vec::new(),
            blocks: Vec::new(),
            flows: Vec::new(),
            entries: vec![Entry { block: NONE, inside: 0 }; SLOTS],
            ends: vec![0; SLOTS],
            room,
            by_reference: Vec::new(),
            written: written(setup),
        },
        scratch: 0,
    };
    lowering.program();
    lowering.lowered
}

/// Rows that the program may write, whatever happens.
fn written(setup: &Setup) -> Vec<usize> {
    let mut rows = vec![false; ROWS];
    for inst in setup.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok()) {
        written_by(inst).iter().for_each(|(row, ..)| rows[*row] = true);
        if let InstBody::Alu(alu) = &inst.body {
            for channel in (0..4).filter(|channel| output_mask(&inst.common, *channel)) {
                rows[color_row(target(alu, channel) as usize, channel)] = true;
            }
            rows[DEPTH_ROW] |= alu.w_omask;
        }
    }
    (0..ROWS).filter(|row| rows[*row]).collect()
}

fn target(alu: &Alu, channel: usize) -> Target {
    if channel == 3 { alu.alpha.target } else { alu.rgb.target }
}

struct Lowering<'a> {
    setup: &'a Setup,
    constants: &'a [[u32; 4]],
    strict: bool,
    uncached: bool,
    level: Level,
    normal: Normal,
    /// Rows of constants, by bits.
    known: HashMap<u32, Place>,
    lowered: Lowered,
    /// Rows of [`SCRATCH`] that the instruction at hand uses.
    scratch: usize,
}

impl<'a> Lowering<'a> {
    fn program(&mut self) {
        let starts = self.starts();
        let mut open: Option<Block> = None;
        for slot in 0..SLOTS as u16 {
            if starts[usize::from(slot)] {
                self.close(&mut open, Last::Next);
            }
            if self.setup.slot(slot).is_none() {
                self.close(&mut open, Last::Next);
                continue;
            }
            let at = self.lowered.operations.len() as u32;
            let block = open.get_or_insert(Block {
                start: at,
                end: at,
                first: slot,
                size: 0,
                inactive: false,
                ends: false,
                last: Last::Next,
                fall: NONE,
                jump: NONE,
            });
            let entry = Entry { block: self.lowered.blocks.len() as u32, inside: block.size };
            self.lowered.entries[usize::from(slot)] = entry;
            let ends = slot == self.setup.end;
            let executable = self.executable(slot);
            let last = match executable.map(|inst| (inst, &inst.body)) {
                Some((inst, InstBody::Fc(fc))) => {
                    self.lowered.flows.push(flow(self.setup, inst, fc));
                    Some(Last::Flow(self.lowered.flows.len() as u32 - 1))
                }
                Some((_, InstBody::Tex(tex))) if tex.inst.inst == TexOp::NOP => None,
                Some((inst, InstBody::Alu(alu))) if self.alu(slot, inst, alu) => {
                    block.inactive |= inst.common.write_inactive;
                    None
                }
                Some((_, InstBody::Alu(_) | InstBody::Tex(_))) | None => {
                    self.lowered.by_reference.push(slot);
                    Some(Last::Reference)
                }
            };
            self.lowered.ends[usize::from(slot)] = self.lowered.operations.len() as u32;
            if !matches!(last, Some(Last::Reference)) {
                block.size += 1;
                block.ends = ends;
            }
            if let Some(last) = last {
                self.close(&mut open, last);
            } else if ends {
                self.close(&mut open, Last::Next);
            }
        }
        self.close(&mut open, Last::Next);
        let at = |slot: u16| match self.lowered.entries.get(usize::from(slot)) {
            Some(Entry { block, inside: 0 }) => *block,
            _ => NONE,
        };
        for block in &mut self.lowered.blocks {
            block.fall = at(block.first + block.size);
            if let Last::Flow(number) = block.last {
                block.jump = at(target_of(self.setup, &self.lowered.flows[number as usize].fc));
            }
        }
    }

    fn close(&mut self, open: &mut Option<Block>, last: Last) {
        if let Some(block) = open.take() {
            let end = self.lowered.operations.len() as u32;
            self.lowered.blocks.push(Block { end, last, ..block });
        }
    }

    /// Slots that something jumps to. What a call returns to stands behind a flow instruction anyhow.
    fn starts(&self) -> Vec<bool> {
        let mut starts = vec![false; SLOTS];
        starts[usize::from(self.setup.start) % SLOTS] = true;
        for (_, slot) in self.setup.slots() {
            if let Ok(Inst { body: InstBody::Fc(fc), .. }) = &slot.inst
                && let Some(start) = starts.get_mut(usize::from(target_of(self.setup, fc)))
            {
                *start = true;
            }
        }
        starts
    }

    /// The instruction in a slot, unless it traps whatever the state.
    fn executable(&self, pc: u16) -> Option<&'a Inst> {
        let slot = self.setup.slot(pc)?;
        let inst = slot.inst.as_ref().ok()?;
        let inside = (self.setup.range_start..=self.setup.range_end).contains(&pc);
        let ends_well = pc != self.setup.end || inst.common.r#type == InstType::OUT;
        (!self.strict || inside && slot.violations.is_empty() && ends_well).then_some(inst)
    }

    /// Lowers an arithmetic instruction; `false` when the reference interpreter has to execute it.
    fn alu(&mut self, slot: u16, inst: &Inst, alu: &Alu) -> bool {
        let start = self.lowered.operations.len();
        self.scratch = 0;
        let scatters = inst.common.r#type == InstType::OUT && self.uncached;
        let masked = (0..4).any(|channel| output_mask(&inst.common, channel));
        if scatters && masked || !self.addresses_are_known(&inst.common, alu) {
            return false;
        }
        let mut instruction = Instruction {
            lowering: self,
            common: &inst.common,
            alu,
            slot,
            normal: Vec::new(),
            presubtracted: Vec::new(),
            sets: Vec::new(),
        };
        if instruction.lower().is_none() {
            self.lowered.operations.truncate(start);
            return false;
        }
        true
    }

    /// Whether no address is relative, and none traps.
    fn addresses_are_known(&self, common: &CmnInst, alu: &Alu) -> bool {
        let allocated = |temp: u8| !self.strict || temp <= self.setup.pix_size;
        let (rgb, alpha) = used_sources(alu);
        let sources = alu.rgb_sources.src.iter().zip(rgb).chain(alu.alpha_sources.src.iter().zip(alpha));
        let read = sources.filter(|(_, used)| *used).all(|(source, _)| match source {
            Source::Temp { addr, rel } => !rel && allocated(*addr),
            Source::Const { rel, .. } => !rel,
            Source::Inline { .. } => true,
        });
        let mut written = (0..4).filter(|channel| temp_mask(common, *channel)).map(|channel| match channel {
            3 => (alu.alpha.addrd, alu.alpha.addrd_rel),
            _ => (alu.rgb.addrd, alu.rgb.addrd_rel),
        });
        read && written.all(|(temp, rel)| !rel && allocated(temp))
    }

    /// The row of a constant.
    fn constant(&mut self, bits: u32) -> Place {
        let room = &mut self.lowered.room;
        *self.known.entry(bits).or_insert_with(|| {
            room.push(Row([bits; WIDEST]));
            Place::of(ROWS + room.len() - 1)
        })
    }

    /// Whether a row is one of a constant, and no denormal.
    fn is_normal_constant(&self, row: usize) -> bool {
        let row = row - ROWS;
        row >= Set::COUNT + SCRATCH && !f32::from_bits(self.lowered.room[row].0[0]).is_subnormal()
    }

    /// A row for an intermediate result of the instruction at hand, if there is another.
    fn scratch(&mut self) -> Option<Place> {
        self.scratch += 1;
        (self.scratch <= SCRATCH).then(|| Place::of(ROWS + Set::COUNT + self.scratch - 1))
    }

    fn push(&mut self, operation: Operation) {
        self.lowered.operations.push(operation);
    }

    /// An operation without arithmetic.
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

/// The slot that a flow instruction jumps to, unless it returns.
fn target_of(setup: &Setup, fc: &Fc) -> u16 {
    fc.addr.jump_addr + if fc.addr.jump_global { 0 } else { setup.offset }
}

fn flow(setup: &Setup, inst: &Inst, fc: &Fc) -> Flow {
    let boolean = setup.bools >> fc.addr.bool_addr & 1;
    let wants = [0u32, 2, 4, 6].map(|index| match fc.inst.jump_func >> (index + boolean) & 1 {
        0 => 0,
        _ => u64::MAX,
    });
    // One predicate only; RGBA is forbidden and read as red in lenient mode.
    Flow {
        fc: *fc,
        predicate: predicate_bit(inst.common.rgb_pred_sel, 0).map(|bit| (bit, inst.common.rgb_pred_inv)),
        wants,
        reads_alu_result: crate::flow::reads_alu_result(fc.inst.jump_func),
        constant: setup.ints[usize::from(fc.addr.int_addr)],
    }
}

/// The predicate bit that decides about a channel, if any.
fn predicate_bit(select: PredSel, channel: u8) -> Option<u8> {
    match select {
        PredSel::NONE => None,
        PredSel::RGBA => Some(channel),
        PredSel::RRRR => Some(0),
        PredSel::GGGG => Some(1),
        PredSel::BBBB => Some(2),
        PredSel::AAAA => Some(3),
    }
}

/// Rows of temporaries and outputs in which no denormal can stand.
///
/// All that is written there comes from arithmetic, which flushes. Inputs may bring denormals; they are gone where all
/// lanes overwrite them in the instructions before the first one of flow control.
struct Normal {
    rows: Vec<Known>,
    /// The first slot.
    start: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Everywhere.
    Yes,
    /// Everywhere but from the first slot to this one.
    Behind(u16),
    No,
}

impl Normal {
    fn new(setup: &Setup, inputs: &mut dyn Iterator<Item = usize>) -> Normal {
        let mut normal = Normal { rows: vec![Known::Yes; ROWS], start: setup.start };
        inputs.for_each(|temp| normal.rows[temp * 4..temp * 4 + 4].fill(Known::Behind(u16::MAX)));
        for slot in setup.start..SLOTS as u16 {
            let Some(Ok(inst)) = setup.slot(slot).map(|slot| slot.inst.as_ref()) else { break };
            if matches!(inst.body, InstBody::Fc(_)) {
                break;
            }
            for (row, flushed, always) in written_by(inst) {
                if flushed && always && normal.rows[row] == Known::Behind(u16::MAX) {
                    normal.rows[row] = Known::Behind(slot);
                }
            }
            if slot == setup.end {
                break;
            }
        }
        for (_, slot) in setup.slots() {
            let written = slot.inst.iter().flat_map(written_by);
            written.filter(|(_, flushed, _)| !flushed).for_each(|(row, ..)| normal.rows[row] = Known::No);
        }
        normal
    }

    /// Whether no denormal can stand in a row when the instruction in a slot reads it.
    fn is(&self, row: usize, slot: u16) -> bool {
        match self.rows[row] {
            Known::Yes => true,
            Known::Behind(last) => last != u16::MAX && !(self.start..=last).contains(&slot),
            Known::No => false,
        }
    }
}

/// Rows of temporaries that an instruction writes, whether denormals are flushed then, and whether all active lanes write
/// them.
fn written_by(inst: &Inst) -> Vec<(usize, bool, bool)> {
    let mut rows = Vec::new();
    for channel in (0..4).filter(|channel| temp_mask(&inst.common, *channel)) {
        let select = if channel == 3 { inst.common.alpha_pred_sel } else { inst.common.rgb_pred_sel };
        let always = predicate_bit(select, channel as u8).is_none();
        let (base, rel, flushed) = match &inst.body {
            InstBody::Alu(Alu { rgb, .. }) if channel < 3 => {
                (rgb.addrd, rgb.addrd_rel, rgb.omod != Omod::DISABLED)
            }
            InstBody::Alu(Alu { alpha, .. }) => (alpha.addrd, alpha.addrd_rel, alpha.omod != Omod::DISABLED),
            InstBody::Tex(tex) => (tex.addr.dst_addr, tex.addr.dst_addr_rel, false),
            InstBody::Fc(_) => continue,
        };
        if rel {
            rows.extend((0..TEMPORARIES).map(|temp| (temp * 4 + channel, flushed, false)));
        } else {
            rows.push((usize::from(base) * 4 + channel, flushed, always));
        }
    }
    rows
}

/// What a channel computes, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Mad,
    Min,
    Max,
    Cnd,
    Cmp,
    Frc,
    Pass,
    Magnitude,
    Rcp,
    Rsq,
    Ex2,
    Ln2,
    Sin,
    Cos,
}

/// A source component: the same for all lanes, or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Bits(u32),
    Row(Place),
}

/// An operand: a row, and sign bits that are turned around.
#[derive(Clone, Copy, Debug)]
struct Operand {
    place: Place,
    flip: u32,
}

/// One channel's result.
#[derive(Clone, Copy, Debug)]
struct Computed {
    code: Code,
    src: [Operand; 3],
    omod: Omod,
    clamp: bool,
}

/// Channels that one operation computes. `set`: the lanes that are written; `None` for all, into scratch.
#[derive(Clone, Debug)]
struct Together {
    code: Code,
    omod: Omod,
    clamp: bool,
    set: Option<Set>,
    channels: Vec<Channel>,
}

impl Code {
    const fn sources(self) -> usize {
        match self {
            Code::Mad | Code::Cnd | Code::Cmp => 3,
            Code::Min | Code::Max => 2,
            Code::Frc | Code::Pass | Code::Magnitude => 1,
            Code::Rcp | Code::Rsq | Code::Ex2 | Code::Ln2 | Code::Sin | Code::Cos => 1,
        }
    }

    /// How many channels one operation computes at most.
    const fn most(self) -> usize {
        match self {
            Code::Mad | Code::Min | Code::Max | Code::Cnd | Code::Cmp | Code::Pass => 4,
            Code::Frc | Code::Magnitude | Code::Rcp | Code::Rsq => 1,
            Code::Ex2 | Code::Ln2 | Code::Sin | Code::Cos => 1,
        }
    }

    fn of_rgb(op: RgbOp) -> Option<Code> {
        match op {
            RgbOp::MAD | RgbOp::MDH | RgbOp::MDV => Some(Code::Mad),
            RgbOp::MIN => Some(Code::Min),
            RgbOp::MAX => Some(Code::Max),
            RgbOp::CND => Some(Code::Cnd),
            RgbOp::CMP => Some(Code::Cmp),
            RgbOp::FRC => Some(Code::Frc),
            RgbOp::DP3 | RgbOp::DP4 | RgbOp::D2A | RgbOp::SOP => None,
        }
    }

    fn of_alpha(op: AlphaOp) -> Option<Code> {
        match op {
            AlphaOp::MAD | AlphaOp::MDH | AlphaOp::MDV => Some(Code::Mad),
            AlphaOp::MIN => Some(Code::Min),
            AlphaOp::MAX => Some(Code::Max),
            AlphaOp::CND => Some(Code::Cnd),
            AlphaOp::CMP => Some(Code::Cmp),
            AlphaOp::FRC => Some(Code::Frc),
            AlphaOp::EX2 => Some(Code::Ex2),
            AlphaOp::LN2 => Some(Code::Ln2),
            AlphaOp::RCP => Some(Code::Rcp),
            AlphaOp::RSQ => Some(Code::Rsq),
            AlphaOp::SIN => Some(Code::Sin),
            AlphaOp::COS => Some(Code::Cos),
            AlphaOp::DP => None,
        }
    }

    /// For all lanes, or for those of a set.
    fn handlers(self, count: usize, clamp: bool, plain: Plain, zero_wins: bool, level: Level) -> Handlers {
        match (self, zero_wins, plain.unscaled) {
            (Code::Mad, false, true) => mad::<false>(count, clamp, plain, level),
            (Code::Mad, true, true) => mad::<true>(count, clamp, plain, level),
            (Code::Mad, false, false) => channels::<AnyMad<false, true>>(count, clamp, level),
            (Code::Mad, true, false) => channels::<AnyMad<true, true>>(count, clamp, level),
            (Code::Min, ..) => channels::<kernels::Min>(count, clamp, level),
            (Code::Max, ..) => channels::<kernels::Max>(count, clamp, level),
            (Code::Cnd, ..) => channels::<kernels::Cnd>(count, clamp, level),
            (Code::Cmp, ..) => channels::<kernels::Cmp>(count, clamp, level),
            (Code::Frc, ..) => channel::<kernels::Frc>(clamp, level),
            (Code::Pass, ..) => channels::<kernels::Pass>(count, clamp, level),
            (Code::Magnitude, ..) => channel::<kernels::Magnitude>(clamp, level),
            (Code::Rcp, ..) => channel::<kernels::Rcp>(clamp, level),
            (Code::Rsq, ..) => channel::<kernels::Rsq>(clamp, level),
            (Code::Ex2, ..) => pair::<Each<Ex2, true>, Each<Ex2, false>>(level),
            (Code::Ln2, ..) => pair::<Each<Ln2, true>, Each<Ln2, false>>(level),
            (Code::Sin, ..) => pair::<Each<Sin, true>, Each<Sin, false>>(level),
            (Code::Cos, ..) => pair::<Each<Cos, true>, Each<Cos, false>>(level),
        }
    }
}

/// What is known of the sources of some sums.
#[derive(Clone, Copy)]
struct Plain {
    /// None is a denormal.
    normal: bool,
    /// No sign is turned around.
    signs: bool,
    /// OMOD is ×1.
    unscaled: bool,
}

/// Code that writes the lanes of a set, and code that writes all lanes.
struct Handlers {
    blend: Handler,
    full: Handler,
}

impl Handlers {
    fn for_set(&self, set: Option<Set>) -> [Handler; 2] {
        match set {
            None => [self.full; 2],
            Some(Set::ACTIVE | Set::ALL) => [self.blend, self.full],
            Some(_) => [self.blend; 2],
        }
    }
}

fn pair<B: Body, F: Body>(level: Level) -> Handlers {
    Handlers { blend: handler::<B>(level), full: handler::<F>(level) }
}

/// A sum without OMOD.
fn mad<const ZERO_WINS: bool>(count: usize, clamp: bool, plain: Plain, level: Level) -> Handlers {
    match (plain, count) {
        _ if clamp => channels::<AnyMad<ZERO_WINS, false>>(count, clamp, level),
        (Plain { normal: false, .. }, _) => channels::<AnyMad<ZERO_WINS, false>>(count, clamp, level),
        (Plain { signs: false, .. }, _) => unclamped::<Mad<ZERO_WINS, false, false, true>>(count, level),
        (Plain { signs: true, .. }, _) => unclamped::<Mad<ZERO_WINS, false, false, false>>(count, level),
    }
}

fn unclamped<K: kernels::Kernel>(count: usize, level: Level) -> Handlers {
    match count {
        1 => pair::<Channels<K, 1, false, true>, Channels<K, 1, false, false>>(level),
        2 => pair::<Channels<K, 2, false, true>, Channels<K, 2, false, false>>(level),
        3 => pair::<Channels<K, 3, false, true>, Channels<K, 3, false, false>>(level),
        _ => pair::<Channels<K, 4, false, true>, Channels<K, 4, false, false>>(level),
    }
}

fn channels<K: kernels::Kernel>(count: usize, clamp: bool, level: Level) -> Handlers {
    match (count, clamp) {
        (1, _) => channel::<K>(clamp, level),
        (_, false) => unclamped::<K>(count, level),
        (2, true) => pair::<Channels<K, 2, true, true>, Channels<K, 2, true, false>>(level),
        (3, true) => pair::<Channels<K, 3, true, true>, Channels<K, 3, true, false>>(level),
        (_, true) => pair::<Channels<K, 4, true, true>, Channels<K, 4, true, false>>(level),
    }
}

fn channel<K: kernels::Kernel>(clamp: bool, level: Level) -> Handlers {
    match clamp {
        false => pair::<Channels<K, 1, false, true>, Channels<K, 1, false, false>>(level),
        true => pair::<Channels<K, 1, true, true>, Channels<K, 1, true, false>>(level),
    }
}

/// A dot product into scratch.
fn dot(op: RgbOp, zero_wins: bool, level: Level) -> Option<Handler> {
    Some(match (op, zero_wins) {
        (RgbOp::DP3, false) => handler::<Dot<3, false, false>>(level),
        (RgbOp::DP3, true) => handler::<Dot<3, false, true>>(level),
        (RgbOp::DP4, false) => handler::<Dot<4, false, false>>(level),
        (RgbOp::DP4, true) => handler::<Dot<4, false, true>>(level),
        (RgbOp::D2A, false) => handler::<Dot<3, true, false>>(level),
        (RgbOp::D2A, true) => handler::<Dot<3, true, true>>(level),
        (op, _) => {
            debug_assert!(!op.is_dot_product());
            return None;
        }
    })
}

/// An instruction being lowered. Its functions give `None` when there is not enough room.
struct Instruction<'a, 'l> {
    lowering: &'a mut Lowering<'l>,
    common: &'a CmnInst,
    alu: &'a Alu,
    /// Presubtracted channels, by channel.
    presubtracted: Vec<(usize, Value)>,
    slot: u16,
    /// Rows of scratch in which no denormal can stand.
    normal: Vec<Place>,
    /// Sets that are made for this instruction: base, predicate bit, inversion.
    sets: Vec<((Set, u8, bool), Set)>,
}

impl Instruction<'_, '_> {
    fn lower(&mut self) -> Option<()> {
        let (common, alu) = (self.common, self.alu);
        let out = common.r#type == InstType::OUT;
        // An uncached OUT that comes here writes nothing but temporaries.
        let cached = out && !self.lowering.uncached;
        let mut together: Vec<Together> = Vec::new();
        let mut after: Vec<Together> = Vec::new();
        let mut marks = Vec::new();
        let mut halves = [None; 2];
        for channel in 0..4 {
            let mut writes = Vec::new();
            let mut flags = Vec::new();
            if temp_mask(common, channel) {
                let temp = if channel == 3 { alu.alpha.addrd } else { alu.rgb.addrd };
                let base = if common.write_inactive { Set::ALL } else { Set::ACTIVE };
                writes.push((Place::of(usize::from(temp) * 4 + channel), self.set(base, channel)));
            }
            let active = |this: &mut Self| this.set(Set::ACTIVE, channel);
            if cached && output_mask(common, channel) {
                let target = target(alu, channel) as u8;
                let set = active(self);
                writes.push((Place::of(color_row(usize::from(target), channel)), set));
                marks.push(Operation {
                    number: [target, channel as u8],
                    ..self.lowering.plain::<ColorWritten>(set)
                });
            }
            if cached && channel == 3 && alu.w_omask {
                let set = active(self);
                writes.push((Place::of(DEPTH_ROW), set));
                marks.push(self.lowering.plain::<DepthWritten>(set));
            }
            if !out && output_mask(common, channel) {
                let set = active(self);
                let operation = match target(alu, channel) {
                    Target::A => self.lowering.plain::<Predicate<EQ>>(set),
                    Target::B => self.lowering.plain::<Predicate<LT>>(set),
                    Target::C => self.lowering.plain::<Predicate<GE>>(set),
                    Target::D => self.lowering.plain::<Predicate<NE>>(set),
                };
                flags.push(Operation { number: [channel as u8, 0], ..operation });
            }
            let selected = match common.alu_result_sel {
                AluResultSel::RED => 0,
                AluResultSel::ALPHA => 3,
            };
            if !out && alu.alu_wmask && channel == selected {
                let set = active(self);
                flags.push(match common.alu_result_op {
                    AluResultOp::EQ => self.lowering.plain::<AluResult<EQ>>(set),
                    AluResultOp::LT => self.lowering.plain::<AluResult<LT>>(set),
                    AluResultOp::GE => self.lowering.plain::<AluResult<GE>>(set),
                    AluResultOp::NE => self.lowering.plain::<AluResult<NE>>(set),
                });
            }
            if writes.is_empty() && flags.is_empty() {
                continue;
            }
            let computed = self.computed(channel, &mut halves)?;
            if let ([(place, set)], []) = (writes.as_slice(), flags.as_slice()) {
                add(&mut together, &computed, *place, Some(*set));
                continue;
            }
            if let ([], [flag]) = (writes.as_slice(), flags.as_slice())
                && let Some(judged) = self.judged(&computed, flag.set)
            {
                // Reads before anything is written, and what it writes nothing here reads.
                self.lowering.push(judged);
                continue;
            }
            let scratch = self.lowering.scratch()?;
            add(&mut together, &computed, scratch, None);
            let moved = Computed::moved(scratch);
            writes.iter().for_each(|(place, set)| add(&mut after, &moved, *place, Some(*set)));
            for mut flag in flags {
                flag.channels[0].src[0] = scratch;
                marks.push(flag);
            }
        }
        self.in_order(together, &mut after)?;
        after.iter().for_each(|moves| self.emit(moves));
        marks.into_iter().for_each(|mark| self.lowering.push(mark));
        Some(())
    }

    /// A sum of which only the ALU result is wanted, in one operation.
    fn judged(&self, computed: &Computed, set: Set) -> Option<Operation> {
        let clamps = computed.clamp && computed.omod != Omod::DISABLED;
        let only = (0..4).all(|channel| !output_mask(self.common, channel));
        if computed.code != Code::Mad || kernels::factor(computed.omod) != 1.0 || clamps || !only {
            return None;
        }
        let normal = computed.src.iter().all(|operand| self.is_normal(operand.place));
        let op = self.common.alu_result_op;
        let mut operation = match (self.lowering.setup.zero_wins, normal) {
            (false, false) => self.alu_result_of::<AnyMad<false, false>>(op, set),
            (false, true) => self.alu_result_of::<Mad<false, false, false, true>>(op, set),
            (true, false) => self.alu_result_of::<AnyMad<true, false>>(op, set),
            (true, true) => self.alu_result_of::<Mad<true, false, false, true>>(op, set),
        };
        operation.channels[0].src = computed.src.map(|operand| operand.place);
        operation.channels[0].flip = computed.src.map(|operand| operand.flip);
        Some(operation)
    }

    fn alu_result_of<K: kernels::Kernel>(&self, op: AluResultOp, set: Set) -> Operation {
        match op {
            AluResultOp::EQ => self.lowering.plain::<AluResultOf<K, EQ>>(set),
            AluResultOp::LT => self.lowering.plain::<AluResultOf<K, LT>>(set),
            AluResultOp::GE => self.lowering.plain::<AluResultOf<K, GE>>(set),
            AluResultOp::NE => self.lowering.plain::<AluResultOf<K, NE>>(set),
        }
    }

    /// Emits operations so that none writes what another still reads: both units read before either writes. (r500.md 3.1)
    fn in_order(&mut self, mut left: Vec<Together>, after: &mut Vec<Together>) -> Option<()> {
        while !left.is_empty() {
            let harmless = (0..left.len()).find(|&at| {
                let written = |place: Place| left[at].channels.iter().any(|channel| channel.dst == place);
                let reads = |other: &Together| {
                    other.channels.iter().any(|channel| channel.src.iter().any(|src| written(*src)))
                };
                !left.iter().enumerate().any(|(place, other)| place != at && reads(other))
            });
            let mut next = left.remove(harmless.unwrap_or(0));
            if harmless.is_none() {
                for channel in &mut next.channels {
                    let scratch = self.lowering.scratch()?;
                    add(after, &Computed::moved(scratch), channel.dst, next.set);
                    channel.dst = scratch;
                }
                next.set = None;
            }
            self.emit(&next);
        }
        Some(())
    }

    fn emit(&mut self, together: &Together) {
        let Together { code, omod, clamp, set, ref channels } = *together;
        let Lowering { setup, level, .. } = *self.lowering;
        let arithmetic = code != Code::Magnitude && omod != Omod::DISABLED;
        let plain = Plain {
            normal: channels.iter().all(|channel| channel.src.iter().all(|src| self.is_normal(*src))),
            signs: channels.iter().all(|channel| channel.flip == [0; 3]),
            unscaled: channels.iter().all(|channel| channel.scale == 1.0),
        };
        let handlers = code.handlers(channels.len(), clamp, plain, setup.zero_wins, level).for_set(set);
        let mut operation = Operation {
            handlers,
            set: set.unwrap_or(self.base()),
            omod,
            scale: kernels::factor(omod),
            clamp,
            ..self.lowering.plain::<OfQuad>(Set::ACTIVE)
        };
        operation.channels[..channels.len()].copy_from_slice(channels);
        self.lowering.push(operation);
        if arithmetic || code == Code::Mad {
            self.normal.extend(channels.iter().map(|channel| channel.dst));
        }
    }

    /// Whether a row is one in which no denormal can stand.
    fn is_normal(&self, place: Place) -> bool {
        match place.number() {
            row @ 0..ROWS => self.lowering.normal.is(row, self.slot),
            row => self.normal.contains(&place) || self.lowering.is_normal_constant(row),
        }
    }

    /// Lanes that any channel may be written in.
    fn base(&self) -> Set {
        if self.common.write_inactive { Set::ALL } else { Set::ACTIVE }
    }

    /// Emits an operation into scratch and gives its row.
    fn scratched(&mut self, computed: &Computed) -> Option<Place> {
        let dst = self.lowering.scratch()?;
        let mut together = Vec::new();
        add(&mut together, computed, dst, None);
        together.iter().for_each(|together| self.emit(together));
        Some(dst)
    }

    /// The lanes of `base` whose predicate lets a channel be written. (r500.md 2.1)
    fn set(&mut self, base: Set, channel: usize) -> Set {
        let (select, inverted) = match channel {
            3 => (self.common.alpha_pred_sel, self.common.alpha_pred_inv),
            _ => (self.common.rgb_pred_sel, self.common.rgb_pred_inv),
        };
        let Some(bit) = predicate_bit(select, channel as u8) else { return base };
        let key = (base, bit, inverted);
        if let Some((_, set)) = self.sets.iter().find(|(known, _)| *known == key) {
            return *set;
        }
        // At most two a channel, so that there are enough.
        let set = Set(2 + self.sets.len() as u8);
        self.sets.push((key, set));
        let operation = self.lowering.plain::<Predicated>(set);
        self.lowering.push(Operation { number: [bit, base.0], inverted, ..operation });
        set
    }

    /// The result of a channel. `halves` keeps what the channels of a half share.
    fn computed(&mut self, channel: usize, halves: &mut [Option<Place>; 2]) -> Option<Computed> {
        let alu = self.alu;
        let (rgb_op, alpha_op) = (alu.rgb.op, alu.alpha.op);
        let (half, omod, clamp) = match channel {
            3 => (1, alu.alpha.omod, self.common.alpha_clamp),
            _ => (0, alu.rgb.omod, self.common.rgb_clamp),
        };
        let one = |code, operand| Computed { code, src: [operand; 3], omod, clamp };
        if half == 0 && rgb_op == RgbOp::SOP || half == 1 && alpha_op.is_transcendental() {
            let a = self.alpha_operand(0)?;
            let Some(code) = Code::of_alpha(alpha_op).filter(|_| alpha_op.is_transcendental()) else {
                // Lenient reading of an SOP without a transcendental: the alpha unit's operand A.
                return Some(one(Code::Pass, a));
            };
            if rgb_op != RgbOp::SOP {
                return Some(one(code, a));
            }
            // Both units may want the value; each scales it for itself.
            let place = match halves[0] {
                Some(place) => place,
                None => self.scratched(&Computed { code, src: [a; 3], omod: Omod::MUL_1, clamp: false })?,
            };
            halves[0] = Some(place);
            return Some(one(Code::Pass, Operand { place, flip: 0 }));
        }
        if half == 1 && alpha_op == AlphaOp::DP && !rgb_op.is_dot_product() {
            // Lenient reading of a DP without a dot product: the RGB unit's red value.
            let a = self.rgb_operand(0, 0)?;
            return Some(one(Code::Pass, a));
        }
        if half == 0 && rgb_op.is_dot_product() || half == 1 && alpha_op == AlphaOp::DP {
            let place = match halves[half] {
                Some(place) => place,
                None => self.dot_product(omod, clamp)?,
            };
            halves[half] = Some(place);
            return Some(Computed::moved(place));
        }
        let code = if half == 1 { Code::of_alpha(alpha_op) } else { Code::of_rgb(rgb_op) }?;
        let mut src = [Operand { place: Place::of(0), flip: 0 }; 3];
        let neighbours = match half {
            1 => matches!(alpha_op, AlphaOp::MDH | AlphaOp::MDV).then_some(alpha_op == AlphaOp::MDH),
            _ => matches!(rgb_op, RgbOp::MDH | RgbOp::MDV).then_some(rgb_op == RgbOp::MDH),
        };
        for number in 0..code.sources() {
            src[number] = match neighbours {
                Some(horizontal) if number != 1 => {
                    let lane = match (number, horizontal) {
                        (0, _) => 0,
                        (_, true) => 1,
                        (_, false) => 2,
                    };
                    self.neighbour(channel, number, lane)?
                }
                _ => self.operand(channel, number)?,
            };
        }
        if code == Code::Mad {
            // Of the signs of the factors only that of the product counts.
            src[0].flip ^= src[1].flip;
            src[1].flip = 0;
        }
        Some(Computed { code, src, omod, clamp })
    }

    /// Emits a dot product and gives its row.
    fn dot_product(&mut self, omod: Omod, clamp: bool) -> Option<Place> {
        let op = self.alu.rgb.op;
        let handler = dot(op, self.lowering.setup.zero_wins, self.lowering.level)?;
        let mut channels = [Channel::NONE; 4];
        for (term, channel) in channels.iter_mut().enumerate() {
            let operands = match (op, term) {
                (RgbOp::D2A, 2) => [None, None, Some(self.rgb_operand(2, 2)?)],
                // The fourth product is the alpha unit's, whatever the alpha opcode is. (CTM guide p. 27)
                (RgbOp::DP4, 3) => [Some(self.alpha_operand(0)?), Some(self.alpha_operand(1)?), None],
                (_, 3) => continue,
                _ => [Some(self.rgb_operand(0, term)?), Some(self.rgb_operand(1, term)?), None],
            };
            for (number, operand) in operands.into_iter().enumerate() {
                if let Some(Operand { place, flip }) = operand {
                    (channel.src[number], channel.flip[number]) = (place, flip);
                }
            }
        }
        let dst = self.lowering.scratch()?;
        channels[0].dst = dst;
        let operation = Operation {
            handlers: [handler; 2],
            channels,
            omod,
            scale: kernels::factor(omod),
            clamp: clamp && omod != Omod::DISABLED,
            ..self.lowering.plain::<OfQuad>(Set::ACTIVE)
        };
        self.lowering.push(operation);
        self.normal.push(dst);
        Some(dst)
    }

    // ---- Operands. r500.md 2.3: fetch, presubtract, select, swizzle, modify.

    fn operand(&mut self, channel: usize, number: usize) -> Option<Operand> {
        if channel == 3 { self.alpha_operand(number) } else { self.rgb_operand(number, channel) }
    }

    fn rgb_operand(&mut self, number: usize, channel: usize) -> Option<Operand> {
        let operand = &self.alu.rgb.operands[number];
        let value = self.swizzled(operand.sel, operand.swiz[channel])?;
        self.modified(value, operand.modifier)
    }

    fn alpha_operand(&mut self, number: usize) -> Option<Operand> {
        let operand = &self.alu.alpha.operands[number];
        let value = self.swizzled(operand.sel, operand.swiz)?;
        self.modified(value, operand.modifier)
    }

    /// src0 of another lane of the quad, with the modifier of an operand of the channel's unit.
    fn neighbour(&mut self, channel: usize, number: usize, lane: u8) -> Option<Operand> {
        let modifier = match channel {
            3 => self.alu.alpha.operands[number].modifier,
            _ => self.alu.rgb.operands[number].modifier,
        };
        let mut value = self.component(Sel::SRC0, channel)?;
        if let Value::Row(place) = value {
            let dst = self.lowering.scratch()?;
            let mut operation = self.lowering.plain::<OfQuad>(Set::ACTIVE);
            operation.number[0] = lane;
            (operation.channels[0].src[0], operation.channels[0].dst) = (place, dst);
            if self.is_normal(place) {
                self.normal.push(dst);
            }
            self.lowering.push(operation);
            value = Value::Row(dst);
        }
        self.modified(value, modifier)
    }

    fn modified(&mut self, value: Value, modifier: Imod) -> Option<Operand> {
        const SIGN: u32 = 1 << 31;
        let place = match value {
            Value::Bits(bits) => {
                let bits = lane::modify(f32::from_bits(bits), modifier).to_bits();
                return Some(Operand { place: self.lowering.constant(bits), flip: 0 });
            }
            Value::Row(place) => place,
        };
        let plain = Operand { place, flip: 0 };
        let magnitude =
            Computed { code: Code::Magnitude, src: [plain; 3], omod: Omod::DISABLED, clamp: false };
        Some(match modifier {
            Imod::NOP => plain,
            Imod::NEG => Operand { flip: SIGN, ..plain },
            Imod::ABS => Operand { place: self.scratched(&magnitude)?, flip: 0 },
            Imod::NAB => Operand { place: self.scratched(&magnitude)?, flip: SIGN },
        })
    }

    fn swizzled(&mut self, sel: Sel, swiz: Swiz) -> Option<Value> {
        match swiz {
            Swiz::R => self.component(sel, 0),
            Swiz::G => self.component(sel, 1),
            Swiz::B => self.component(sel, 2),
            Swiz::A => self.component(sel, 3),
            Swiz::ZERO => Some(Value::Bits(0)),
            Swiz::HALF => Some(Value::Bits(0.5f32.to_bits())),
            Swiz::ONE => Some(Value::Bits(1f32.to_bits())),
        }
    }

    /// R, G and B come from the RGB address word, A from the alpha address word. (CTM guide p. 27)
    fn component(&mut self, sel: Sel, channel: usize) -> Option<Value> {
        match sel {
            Sel::SRC0 => Some(self.fetched(0, channel)),
            Sel::SRC1 => Some(self.fetched(1, channel)),
            Sel::SRC2 => Some(self.fetched(2, channel)),
            Sel::SRCP => self.presubtract(channel),
        }
    }

    fn fetched(&self, number: usize, channel: usize) -> Value {
        let (rgb, alpha) = used_sources(self.alu);
        let (sources, used) = match channel {
            3 => (&self.alu.alpha_sources, alpha),
            _ => (&self.alu.rgb_sources, rgb),
        };
        if !used[number] {
            return Value::Bits(0);
        }
        match sources.src[number] {
            Source::Temp { addr, .. } => Value::Row(Place::of(usize::from(addr) * 4 + channel)),
            Source::Const { addr, .. } => {
                Value::Bits(self.lowering.constants[usize::from(addr) % CONSTANTS][channel])
            }
            Source::Inline { code } => Value::Bits(inline_constant(code).to_bits()),
        }
    }

    fn presubtract(&mut self, channel: usize) -> Option<Value> {
        if let Some((_, value)) = self.presubtracted.iter().find(|(known, _)| *known == channel) {
            return Some(*value);
        }
        let op = match channel {
            3 => self.alu.alpha_sources.srcp_op,
            _ => self.alu.rgb_sources.srcp_op,
        };
        let value = match (self.fetched(0, channel), self.fetched(1, channel)) {
            (Value::Bits(a), Value::Bits(b)) => {
                Value::Bits(lane::presubtract(op, f32::from_bits(a), f32::from_bits(b)).to_bits())
            }
            (a, b) => {
                let a = self.modified(a, Imod::NOP)?;
                let b = self.modified(b, Imod::NOP)?;
                let mut bits = |x: f32| Operand { place: self.lowering.constant(x.to_bits()), flip: 0 };
                // As a product and a sum, which round once too. (lane::presubtract)
                let (factor, addend) = match op {
                    SrcpOp::NEG2 => (bits(-2.0), bits(1.0)),
                    SrcpOp::SUB => (bits(-1.0), b),
                    SrcpOp::ADD => (bits(1.0), b),
                    SrcpOp::NEG => (bits(-1.0), bits(1.0)),
                };
                let src = [a, factor, addend];
                let computed = Computed { code: Code::Mad, src, omod: Omod::MUL_1, clamp: false };
                Value::Row(self.scratched(&computed)?)
            }
        };
        self.presubtracted.push((channel, value));
        Some(value)
    }
}

impl Computed {
    /// What stands in a row, bit for bit.
    fn moved(place: Place) -> Computed {
        let src = [Operand { place, flip: 0 }; 3];
        Computed { code: Code::Pass, src, omod: Omod::DISABLED, clamp: false }
    }
}

/// Adds a channel to the operation that computes others in the same way, or as another operation.
fn add(all: &mut Vec<Together>, computed: &Computed, dst: Place, set: Option<Set>) {
    let Computed { code, src, mut omod, clamp } = *computed;
    // Clamp is not applied where OMOD is disabled, even if its bit is set. (CTM guide p. 29)
    let clamp = clamp && omod != Omod::DISABLED;
    let mut channel = Channel { dst, ..Channel::NONE };
    if code == Code::Mad {
        (channel.omod, channel.scale, channel.beyond) = (omod, kernels::factor(omod), kernels::beyond(omod));
        omod = Omod::MUL_1;
    }
    for (number, operand) in src.iter().enumerate() {
        // Sources beyond those of the code are those before, so that they say nothing of their own.
        let operand = if number < code.sources() { operand } else { &src[0] };
        (channel.src[number], channel.flip[number]) = (operand.place, operand.flip);
    }
    let same = |other: &&mut Together| {
        let alike = (other.code, other.omod, other.clamp, other.set) == (code, omod, clamp, set);
        alike && other.channels.len() < code.most()
    };
    match all.iter_mut().find(same) {
        Some(together) => together.channels.push(channel),
        None => all.push(Together { code, omod, clamp, set, channels: vec![channel] }),
    }
}
