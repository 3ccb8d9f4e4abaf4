//! Registers that each instruction reads and writes.
//!
//! The register files have the same names as in assembly text. The numbering depends on the file. In `temp`, `const`
//! and `out`, a number is four times the number of the register plus the channel. The depth output is number 16 of
//! `out`. In `pred`, a number is the channel. In `int` and `bool`, a number is the number of the constant. `alu` is the
//! ALU result. `aL` is the loop register, which the lanes of a group share.
//!
//! A unit of an arithmetic instruction has an entry if the instruction writes a value that the unit computes. The entry
//! lists a source only if the source affects a channel that the instruction writes. An uncached OUT stores to the
//! memory of a CTM launch. This store has no entry, because the instruction does not show whether its outputs are
//! uncached.

use std::ops::Range;

use reconverge_simt::uses::{Read, Role, Slot, Space, Uses, UsesAt};

use crate::fidelity::{self, computes};
use crate::flow;
use crate::inst::{Alu, Body, Fc, Inst, Source, TEMPORARIES, Tex, TexRegister};
use crate::operations::{Unit, Value, each_read, sources_of};
use crate::setup::Setup;
use crate::words::*;

/// Temporaries.
pub const TEMP: &str = "temp";
/// Float constants.
pub const CONST: &str = "const";
/// Predicate bits.
pub const PRED: &str = "pred";
/// The ALU result.
pub const ALU_RESULT: &str = "alu";
/// The loop register.
pub const AL: &str = "aL";
/// Output registers.
pub const OUT: &str = "out";
/// Integer constants.
pub const INT: &str = "int";
/// Boolean constants.
pub const BOOL: &str = "bool";
/// The number of the depth output in `out`.
pub const DEPTH: u32 = 16;

const fn slot(file: &'static str, number: u32) -> Slot {
    Slot { file, number: Some(number) }
}

/// Returns the reads and writes of every instruction in a program, indexed by slot. Words without a meaning do not have
/// an entry.
pub fn uses(setup: &Setup) -> UsesAt {
    let of_slot = |(pc, slot): (u16, &crate::setup::Slot)| {
        Some((u32::from(pc), of_instruction(slot.inst.as_ref().ok()?)))
    };
    UsesAt::from_sorted_store_unchecked(setup.slots().filter_map(of_slot).collect())
}

/// Returns the reads and writes of an instruction.
pub fn of_instruction(inst: &Inst) -> Vec<Uses> {
    match &inst.body {
        Body::Alu(alu) => {
            let [rgb, alpha] = computes(inst, alu);
            let halves = [(rgb, Unit::Rgb, 0..3), (alpha, Unit::Alpha, 3..4)];
            let kept = halves.into_iter().filter(|(kept, ..)| *kept);
            kept.map(|(_, unit, channels)| half(&inst.common, alu, unit, channels)).collect()
        }
        Body::Tex(tex) => texture(&inst.common, tex),
        Body::Fc(fc) => vec![flow_control(&inst.common, fc)],
    }
}

/// Returns, for each channel of a temporary, whether a program may read the channel. The index of an element is the
/// number of its channel.
pub fn temps_read(setup: &Setup) -> Vec<bool> {
    let mut read = vec![false; TEMPORARIES * 4];
    let instructions = setup.slots().filter_map(|(_, slot)| slot.inst.as_ref().ok());
    instructions.for_each(|inst| mark_temps_read(inst, &mut read));
    read
}

/// Marks the channels of temporaries that an instruction may read. The index of an element is the number of its
/// channel.
pub(crate) fn mark_temps_read(inst: &Inst, read: &mut [bool]) {
    let all = of_instruction(inst);
    for Read { slot, .. } in all.iter().flat_map(|uses| &uses.reads).filter(|read| read.slot.file == TEMP) {
        match slot.number {
            Some(number) => read[number as usize] = true,
            None => read.fill(true),
        }
    }
}

/// Returns the reads and writes of an instruction. Unlike [`of_instruction`], returns a separate entry for each channel
/// of an arithmetic instruction.
pub(crate) fn by_channel(inst: &Inst) -> Vec<Uses> {
    let Body::Alu(alu) = &inst.body else { return of_instruction(inst) };
    let channel = |channel: usize| {
        let unit = if channel == 3 { Unit::Alpha } else { Unit::Rgb };
        half(&inst.common, alu, unit, channel..channel + 1)
    };
    (0..4).map(channel).filter(|uses| !uses.writes.is_empty()).collect()
}

/// Collects the reads and writes of one operation without duplicates.
struct Collect(Uses);

impl Collect {
    /// Records that the operation writes an output of the program. The outputs of a killed lane are dropped.
    fn leave(&mut self) {
        self.0.leaves = true;
        self.0.dropped_if_killed = true;
    }

    fn read(&mut self, slot: Slot, role: Role, quad: bool) {
        match self.0.reads.iter_mut().find(|read| read.slot == slot && read.role == role) {
            Some(read) => read.quad |= quad,
            None => self.0.reads.push(Read { slot, role, quad }),
        }
    }

    fn write(&mut self, slot: Slot) {
        if !self.0.writes.contains(&slot) {
            self.0.writes.push(slot);
        }
    }

    /// Returns the slot of a register. If the register is relative to aL, also records a read of aL.
    fn register(&mut self, file: &'static str, addr: u8, rel: bool, channel: usize) -> Slot {
        if rel {
            self.read(slot(AL, 0), Role::Address, false);
            return Slot { file, number: None };
        }
        slot(file, u32::from(addr) * 4 + channel as u32)
    }

    /// Records reads of the first `channels` channels of a register of a texture instruction.
    fn read_vector(&mut self, register: TexRegister, channels: usize, quad: bool) {
        let TexRegister { temp, rel, swizzle } = register;
        for from in &swizzle[..channels] {
            self.read_temp(temp, rel, *from, Role::Address, quad);
        }
    }

    fn write_temp(&mut self, addr: u8, rel: bool, channel: usize) {
        let place = self.register(TEMP, addr, rel, channel);
        self.write(place);
    }

    fn read_temp(&mut self, addr: u8, rel: bool, channel: TexSwiz, role: Role, quad: bool) {
        let place = self.register(TEMP, addr, rel, channel as usize);
        self.read(place, role, quad);
    }

    /// Records a read of the predicate that enables a channel.
    fn gate(&mut self, common: &CmnInst, channel: usize) {
        if let Some((bit, _)) = common.predicate(channel) {
            self.read(slot(PRED, bit as u32), Role::Flow, false);
            self.0.conditional = true;
        }
    }
}

// ---- Arithmetic

/// Returns the reads and writes of a unit for the channels `channels`.
fn half(common: &CmnInst, alu: &Alu, unit: Unit, channels: Range<usize>) -> Uses {
    let operation = match unit {
        Unit::Rgb => alu.rgb.op.name(),
        Unit::Alpha => alu.alpha.op.name(),
    };
    let mut uses = Collect(Uses::new(operation, fidelity::unit(alu, unit)));
    let mut wanted = [false; 3];
    for channel in channels {
        let before = uses.0.writes.len();
        if common.writes_temp(channel) {
            let (addr, rel) = alu.destination(channel);
            uses.write_temp(addr, rel, channel);
        }
        let target = alu.target(channel) as u32;
        match common.r#type {
            InstType::OUT => {
                if common.writes_output(channel) {
                    uses.write(slot(OUT, target * 4 + channel as u32));
                    uses.leave();
                }
                if alu.w_omask && channel == 3 {
                    uses.write(slot(OUT, DEPTH));
                    uses.leave();
                }
            }
            _ => {
                if common.writes_output(channel) {
                    uses.write(slot(PRED, channel as u32));
                }
                if alu.alu_wmask && common.alu_result_channel() == channel {
                    uses.write(slot(ALU_RESULT, 0));
                }
            }
        }
        if uses.0.writes.len() > before {
            uses.gate(common, channel);
            wanted[channel % 3] = true;
        }
    }
    operands(&mut uses, alu, unit, wanted);
    // In lenient mode, DP without a dot product returns the red channel of the RGB unit's operand A. SOP without a
    // transcendental function returns the alpha unit's operand A.
    let forwarded = |operation: Value| matches!(operation, Value::Forwarded);
    match unit {
        Unit::Rgb if forwarded(alu.rgb.op.operation().value) => {
            let first = alu.alpha.operands[0];
            operand(&mut uses, alu, first.sel, first.swiz[0], false);
        }
        Unit::Alpha if forwarded(alu.alpha.op.operation().value) && alu.rgb.op.is_dot_product() => {
            operands(&mut uses, alu, Unit::Rgb, [true; 3]);
        }
        Unit::Alpha if forwarded(alu.alpha.op.operation().value) => {
            let first = alu.rgb.operands[0];
            operand(&mut uses, alu, first.sel, first.swiz[0], false);
        }
        Unit::Rgb | Unit::Alpha => {}
    }
    uses.0
}

fn operands(uses: &mut Collect, alu: &Alu, unit: Unit, wanted: [bool; 3]) {
    each_read(alu, unit, wanted, &mut |sel, swiz, quad| operand(uses, alu, sel, swiz, quad));
}

fn operand(uses: &mut Collect, alu: &Alu, sel: Sel, swiz: Swiz, quad: bool) {
    let Some((word, sources, _)) = sources_of(alu, sel, swiz) else { return };
    for source in sources {
        let place = match [&alu.rgb_sources, &alu.alpha_sources][word].src[*source] {
            Source::Temp { addr, rel } => uses.register(TEMP, addr, rel, swiz as usize),
            Source::Const { addr, rel } => uses.register(CONST, addr, rel, swiz as usize),
            Source::Inline { .. } => continue,
        };
        uses.read(place, Role::Value, quad);
    }
}

// ---- Texture

fn texture(common: &CmnInst, tex: &Tex) -> Vec<Uses> {
    let op = tex.inst.inst;
    let mut uses = Collect(Uses::new(op.name(), fidelity::tex(op)));
    let coordinates = match op {
        TexOp::NOP => return Vec::new(),
        TexOp::LD | TexOp::DXDY => 3,
        TexOp::TEXKILL | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD => 4,
    };
    // In these operations, the level of detail depends on the coordinates of all lanes of the quad.
    let quad = matches!(op, TexOp::LD | TexOp::PROJ | TexOp::LODBIAS);
    if op == TexOp::TEXKILL {
        let TexRegister { temp, rel, swizzle } = tex.src();
        for (channel, from) in swizzle.into_iter().enumerate() {
            // A killed lane continues, but its results are dropped. A killed lane does not vote at instructions with
            // IGNORE_UNCOVERED.
            for role in [Role::Flow, Role::Output] {
                uses.read_temp(temp, rel, from, role, false);
            }
            uses.gate(common, channel);
        }
        return vec![uses.0];
    }
    for channel in (0..4).filter(|channel| common.writes_temp(*channel)) {
        uses.write_temp(tex.addr.dst_addr, tex.addr.dst_addr_rel, channel);
        uses.gate(common, channel);
    }
    if uses.0.writes.is_empty() {
        return Vec::new();
    }
    uses.read_vector(tex.src(), coordinates, quad);
    if op == TexOp::DXDY {
        tex.derivatives().into_iter().for_each(|register| uses.read_vector(register, 3, false));
    }
    uses.0.conditional |= tex.inst.ignore_uncovered;
    uses.0.loads = Some(Space { number: Some(tex.inst.tex_id.into()), ..Space::shared("texture") });
    vec![uses.0]
}

// ---- Flow control

fn flow_control(common: &CmnInst, fc: &Fc) -> Uses {
    let mut uses = Collect(Uses::new(fc.inst.op.name(), reconverge_simt::Fidelity::Specified));
    let func = fc.inst.jump_func;
    if flow::reads_alu_result(func) {
        uses.read(slot(ALU_RESULT, 0), Role::Flow, false);
    }
    // An FC instruction has one predicate bit. For the selector RGBA, this bit is the red bit.
    if let Some((bit, _)) = common.predicate(0).filter(|_| flow::reads_predicate(func)) {
        uses.read(slot(PRED, bit as u32), Role::Flow, false);
    }
    if flow::reads_boolean(func) {
        uses.read(slot(BOOL, u32::from(fc.addr.bool_addr)), Role::Flow, false);
    }
    let int = slot(INT, u32::from(fc.addr.int_addr));
    let al = slot(AL, 0);
    match fc.inst.op.role() {
        flow::Role::Jump | flow::Role::Continue => {}
        flow::Role::Begin { al: counts } => {
            uses.read(int, Role::Flow, false);
            if counts {
                uses.read(int, Role::Value, false);
                uses.write(al);
            }
        }
        flow::Role::End { al: counts } => {
            if counts {
                uses.read(int, Role::Value, false);
                uses.read(al, Role::Value, false);
                uses.write(al);
            }
        }
        // A break sets aL to the value of aL in the enclosing loop.
        flow::Role::Break { al: counts } => {
            if counts {
                uses.write(al);
            }
        }
    }
    // Every FC instruction destroys the ALU result. (CTM guide p. 35)
    uses.write(slot(ALU_RESULT, 0));
    uses.0
}

#[cfg(test)]
mod tests;
