//! The operands and results of each instruction of a program, as data. The table has a list of operations for each
//! address. An entry of this list is the [`Uses`] of an operation.
//!
//! Registers are in the file `R`. In this file, the number of a slot is four times the register number plus the
//! component. `PV` and `PS`, `AR`, `aL`, the predicate and the gradients are separate files. Constants (`CB0` to
//! `CB15`, `C`, `BOOL`, `LOOP`) are read and never written. If an index selects a slot, the slot has no number.
//! Literals and inline constants are not listed.

use reconverge_isa::sets::NumberSet;
use reconverge_simt::Fidelity;
use reconverge_simt::uses::{Read, Role, Slot, Space, Uses, UsesAt};

use crate::code::{
    AluClause, AluOp, CfOp, Code, Export, ExportKind, Fetch, FetchOp, Group, MemoryExport, Operand, Select,
    Source, TRANS, read_space,
};
use crate::control::{self, Lod, sample_kind, tex_fidelity};
use crate::flow::{Condition, Control};
use crate::meaning::Meaning;
use crate::words::{CfInst, DsrMux, ExportInst, IndexModeR700, KcacheMode, MemOp, Sel, TexDword2, TexInst};

/// File of the registers.
pub const R: &str = "R";

/// File of the global registers, which all wavefronts share.
pub(crate) const GLOBAL: &str = "global";

/// Returns the smallest NUM_GPRS that covers every register that a program names. The result does not include clause
/// temporaries. (MAN p. 33)
pub fn registers_needed(code: &Code) -> u32 {
    let operations = uses(code);
    let slots = operations
        .values()
        .flatten()
        .flat_map(|uses| uses.reads.iter().map(|read| read.slot).chain(uses.writes.iter().copied()));
    let registers =
        slots.filter(|slot| slot.file == R).filter_map(|slot| slot.number).map(|number| number / 4);
    registers.filter(|register| *register < CLAUSE_TEMPORARIES).max().map_or(0, |highest| highest + 1)
}

/// Number of the first of the four clause temporaries that drivers configure.
pub(crate) const CLAUSE_TEMPORARIES: u32 = 124;

/// Returns the operations of all reachable instructions. The key of an entry is the address of the control-flow
/// instruction, group or fetch.
pub fn uses(code: &Code) -> UsesAt {
    let places: NumberSet = code.instructions().flat_map(|(addr, cf)| code.places(addr, &cf.op)).collect();
    let mut all = places.map(|_| Vec::new());
    for (addr, cf) in code.instructions() {
        match &cf.op {
            CfOp::Control(inst, control) => {
                all[&addr].push(control_uses(*inst, control));
            }
            CfOp::Alu(clause) => {
                all[&addr].push(clause_start(clause));
                for group in code.groups(clause) {
                    all[&group.addr] = group_uses(clause, group);
                }
            }
            CfOp::Fetch(inst, control, fetches) => {
                all[&addr].push(control_uses(*inst, control));
                for fetch in fetches {
                    all[&fetch.addr] = vec![fetch_uses(fetch)];
                }
            }
            CfOp::Export(_, export) => all[&addr].push(export_uses(export)),
            CfOp::Memory(_, export) => all[&addr].push(memory_uses(export)),
        }
    }
    all
}

const fn slot(file: &'static str, number: u32) -> Slot {
    Slot { file, number: Some(number) }
}

const fn read(slot: Slot, role: Role) -> Read {
    Read { slot, role, quad: false }
}

/// Returns the slot of a register component. If the register is indexed, the slot has no number and denotes any
/// register.
fn gpr(number: u8, chan: usize, indexed: bool) -> Slot {
    Slot { file: R, number: (!indexed).then_some(u32::from(number) * 4 + chan as u32) }
}

/// Returns the registers `first`, `first + 1` and so on of a burst.
fn burst(first: u8, count: u8) -> impl Iterator<Item = u8> {
    (0..count).map(move |step| first.saturating_add(step))
}

/// A read of aL as an index.
const LOOP_INDEX: Read = read(slot("aL", 0), Role::Address);

// Functions that return the uses of control-flow instructions.

fn control_uses(inst: CfInst, control: &Control) -> Uses {
    let mut uses = Uses::new(inst.name(), control::cf(inst).exactness);
    if let Condition::Bool(number) | Condition::NotBool(number) = control.cond {
        uses.reads.push(read(slot("BOOL", number.into()), Role::Flow));
    }
    match inst {
        CfInst::LOOP_START => {
            uses.reads.push(read(slot("LOOP", control.cf_const.into()), Role::Flow));
            uses.writes.push(slot("aL", 0));
        }
        CfInst::LOOP_START_NO_AL => {
            uses.reads.push(read(slot("LOOP", control.cf_const.into()), Role::Flow));
        }
        CfInst::LOOP_END => {
            uses.reads.push(read(slot("aL", 0), Role::Value));
            uses.writes.push(slot("aL", 0));
        }
        // Gradients are valid only within one clause. So the start of a clause resets the gradients.
        CfInst::TEX
        | CfInst::VTX
        | CfInst::VTX_TC
        | CfInst::TEX_ACK
        | CfInst::VTX_ACK
        | CfInst::VTX_TC_ACK => {
            uses.writes.extend([slot("gradients", 0), slot("gradients", 1), slot("cubemap index", 0)]);
        }
        // Every other instruction affects only masks and the stack.
        _ => {}
    }
    uses
}

/// Returns the uses of the start of a clause. The start of a clause resets all state that is valid only within one
/// clause.
fn clause_start(clause: &AluClause) -> Uses {
    let mut uses = Uses::new(clause.form.name(), Fidelity::Specified);
    uses.writes.extend((0..4).map(|chan| slot("PV", chan)));
    uses.writes.push(slot("PS", 0));
    uses.writes.extend((0..4).map(|chan| slot("AR", chan)));
    uses.writes.push(slot("predicate", 0));
    uses
}

// Functions that return the uses of ALU groups.

/// Returns the operations of a group. All instructions of a group read their operands before any instruction writes. An
/// indexed write is an exception: later instructions of the group read the new value
/// ([`Rule::INDEXED_WRITES_ARE_SEEN_IN_THE_GROUP`](crate::rules::Rule)).
fn group_uses(clause: &AluClause, group: Group<'_>) -> Vec<Uses> {
    let deciding = group.deciding();
    group
        .ops
        .iter()
        .map(|op| {
            let decides = deciding.is_some_and(|deciding| std::ptr::eq(deciding, op));
            op_uses(clause, group, op, decides)
        })
        .collect()
}

fn op_uses(clause: &AluClause, group: Group<'_>, op: &AluOp, decides: bool) -> Uses {
    let mut uses = Uses::new(op.opcode.name, op.opcode.exactness);
    let role = match op.opcode.meaning {
        Meaning::Kill(_) => Role::Flow,
        Meaning::Mova(_) | Meaning::MovaLoop(_) => Role::Address,
        _ if decides && op.update_execute_mask => Role::Flow,
        _ => Role::Value,
    };
    for slot in 0..5 {
        let spans = match op.opcode.meaning {
            Meaning::Reduce(_) | Meaning::Cube => slot < TRANS,
            Meaning::Double(double) if double.slots() == 4 => slot < TRANS,
            Meaning::Double(_) => slot & !1 == op.slot & !1 && slot < TRANS,
            _ => slot == op.slot,
        };
        for other in group.ops.iter().filter(|other| spans && other.slot == slot) {
            for source in other.read() {
                source_reads(clause, other, source, role, &mut uses.reads);
            }
        }
    }
    if op.pred_sel.is_some() {
        uses.reads.push(read(slot("predicate", 0), Role::Flow));
        uses.conditional = true;
    }
    if op.writes() {
        uses.writes.push(Slot { file: register_file(op), ..gpr(op.dst_gpr, op.dst_chan.into(), op.dst_rel) });
        if op.dst_rel {
            uses.reads.extend(index(op.index_mode));
            uses.conditional = true;
        }
    }
    if !matches!(op.opcode.meaning, Meaning::Nothing) {
        uses.writes.push(if op.slot == TRANS { slot("PS", 0) } else { slot("PV", op.slot.into()) });
    }
    match op.opcode.meaning {
        Meaning::Mova(_) => uses.writes.push(slot("AR", op.dst_chan.into())),
        Meaning::MovaLoop(_) => {
            uses.writes.extend([slot("aL", 0), slot("AR", op.dst_chan.into())]);
        }
        _ if decides && op.update_pred => uses.writes.push(slot("predicate", 0)),
        _ => {}
    }
    uses
}

/// Returns the file of the destination. If INDEX_MODE is GLOBAL or GLOBAL_AR_X, the index selects a global register,
/// which all wavefronts share.
fn register_file(op: &AluOp) -> &'static str {
    if op.dst_rel { indexed_file(op.index_mode) } else { R }
}

fn indexed_file(mode: IndexModeR700) -> &'static str {
    if mode.is_global() { GLOBAL } else { R }
}

/// Returns the read of the index that INDEX_MODE selects, or `None` if INDEX_MODE selects no index.
fn index(mode: IndexModeR700) -> Option<Read> {
    match mode.address() {
        Some(chan) => Some(read(slot("AR", chan as u32), Role::Address)),
        None => (mode == IndexModeR700::LOOP).then_some(LOOP_INDEX),
    }
}

const BUFFERS: [&str; 16] = [
    "CB0", "CB1", "CB2", "CB3", "CB4", "CB5", "CB6", "CB7", "CB8", "CB9", "CB10", "CB11", "CB12", "CB13",
    "CB14", "CB15",
];

fn source_reads(clause: &AluClause, op: &AluOp, source: &Source, role: Role, reads: &mut Vec<Read>) {
    let place = match source.operand {
        Operand::Value(_) => return,
        Operand::Gpr { gpr: number, chan } if source.rel => {
            Slot { file: indexed_file(op.index_mode), ..gpr(number, chan.into(), true) }
        }
        Operand::Gpr { gpr: number, chan } => gpr(number, chan.into(), false),
        Operand::Kcache { set, index, chan } => {
            let window = clause.kcache[usize::from(set & 1)];
            let constant = (u32::from(window.line) * 16 + u32::from(index)) * 4 + u32::from(chan);
            let by_loop = window.mode == KcacheMode::LOCK_LOOP_INDEX;
            reads.extend(by_loop.then_some(LOOP_INDEX));
            Slot { file: BUFFERS[usize::from(window.bank & 15)], number: (!by_loop).then_some(constant) }
        }
        Operand::ConstantFile { index, chan } => {
            let constant = u32::from(index) * 4 + u32::from(chan);
            Slot { file: "C", number: (!source.rel).then_some(constant) }
        }
        Operand::Previous(chan) => slot("PV", chan.into()),
        Operand::PreviousScalar => slot("PS", 0),
    };
    reads.push(read(place, role));
    let indexed = matches!(source.operand, Operand::Gpr { .. } | Operand::ConstantFile { .. });
    reads.extend(index(op.index_mode).filter(|_| source.rel && indexed));
}

// Functions that return the uses of fetches.

fn fetch_uses(fetch: &Fetch) -> Uses {
    let source = |chan: usize, role: Role| read(gpr(fetch.src_gpr, chan, fetch.src_rel), role);
    let mut uses;
    let mut written = 1;
    match &fetch.op {
        FetchOp::Vertex(low, format, _) => {
            uses = Uses::new("VTX", Fidelity::Specified);
            uses.loads = Some(Space { number: Some(low.buffer_id.into()), ..Space::shared("buffer") });
            uses.reads.push(source(low.src_sel_x as usize, Role::Address));
            if format.semantic.is_some() {
                // The host's table of semantics determines the register, so the number of the written slot is unknown.
                written = 0;
                uses.writes.push(Slot { file: R, number: None });
                uses.conditional = true;
            }
        }
        FetchOp::Texture(low, _, third) => {
            uses = Uses::new(low.tex_inst.name(), tex_fidelity(low.tex_inst));
            texture(low.tex_inst, third, source, &mut uses);
            written = u8::from(!sets_state(low.tex_inst));
        }
        FetchOp::Memory(low, ..) => {
            uses = Uses::new(low.mem_op.name(), fidelity_of(low.mem_op));
            if low.indexed {
                uses.reads.push(source(low.src_sel_x as usize, Role::Address));
            }
            uses.loads = Some(space_of(read_space(low.mem_op)));
            written = low.burst_count.saturating_add(1);
        }
        FetchOp::DataShareWrite(high) => {
            uses = Uses::new(MemOp::LOCAL_DS_WRITE.name(), fidelity_of(MemOp::LOCAL_DS_WRITE));
            for number in burst(fetch.src_gpr, high.burst_count.saturating_add(1)) {
                let component = |chan| read(gpr(number, chan, fetch.src_rel), Role::Value);
                uses.reads.extend((0..4).map(component));
            }
            uses.stores = Some(SHARE);
            written = 0;
        }
        FetchOp::DataShareRead(low, high) => {
            uses = Uses::new(MemOp::LOCAL_DS_READ.name(), fidelity_of(MemOp::LOCAL_DS_READ));
            // A broadcast uses the address of one lane for all lanes. For a permutation, each lane uses the addresses
            // of all lanes of its quad.
            let quad = high.broadcast || high.mux_cntl == DsrMux::FFT_PERMUTE;
            let address = [low.src_sel_x, low.src_sel_y].map(|chan| source(chan as usize, Role::Address));
            uses.reads.extend(address.map(|address| Read { quad, ..address }));
            uses.loads = Some(SHARE);
        }
    }
    uses.reads.extend((fetch.src_rel && !uses.reads.is_empty()).then_some(LOOP_INDEX));
    for number in burst(fetch.dst_gpr, written) {
        let chans = (0..4).filter(|chan| fetch.select[*chan] != Select::Mask);
        uses.writes.extend(chans.map(|chan| gpr(number, chan, fetch.dst_rel)));
    }
    if fetch.dst_rel && written > 0 {
        uses.reads.push(LOOP_INDEX);
        uses.conditional = true;
    }
    uses
}

/// Returns the fidelity of a memory instruction. If no source documents the encoding of the instruction, the
/// instruction traps.
fn fidelity_of(op: MemOp) -> Fidelity {
    control::mem_fidelity(op).unwrap_or(Fidelity::Recommended)
}

/// Returns whether a texture instruction sets state instead of writing a register. Later instructions of the clause
/// read this state.
fn sets_state(inst: TexInst) -> bool {
    matches!(
        inst,
        TexInst::SET_GRADIENTS_H
            | TexInst::SET_GRADIENTS_V
            | TexInst::KEEP_GRADIENTS
            | TexInst::SET_CUBEMAP_INDEX
    )
}

/// Adds the operands of a texture instruction to `uses`. The resource determines which components of the source
/// register the instruction reads. The resource is unknown, so this function adds every component that the instruction
/// can read. This function also adds the clause state that the instruction reads.
fn texture(inst: TexInst, third: &TexDword2, source: impl Fn(usize, Role) -> Read, uses: &mut Uses) {
    // The level of detail and GET_GRADIENTS depend on the values of other lanes of the quad.
    let lod = sample_kind(inst).map(|kind| kind.lod);
    let asks_quad = matches!(
        inst,
        TexInst::GET_LOD
            | TexInst::GET_LERP
            | TexInst::FETCH4
            | TexInst::GET_GRADIENTS_H
            | TexInst::GET_GRADIENTS_V
            | TexInst::KEEP_GRADIENTS
    );
    let (quad, gradients) = (asks_quad || lod == Some(Lod::Quad), lod == Some(Lod::Gradients));
    // The following instructions return or store their operands. For all other instructions, the operands are
    // coordinates.
    let role = match inst {
        TexInst::PASS
        | TexInst::GET_GRADIENTS_H
        | TexInst::GET_GRADIENTS_V
        | TexInst::KEEP_GRADIENTS
        | TexInst::SET_GRADIENTS_H
        | TexInst::SET_GRADIENTS_V
        | TexInst::SET_CUBEMAP_INDEX => Role::Value,
        _ => Role::Address,
    };
    let selects = [third.src_sel_x, third.src_sel_y, third.src_sel_z, third.src_sel_w];
    let chans = selects.into_iter().filter(|select| *select < Sel::ZERO).map(|select| select as usize);
    uses.reads.extend(chans.map(|chan| Read { quad, ..source(chan, role) }));
    if gradients {
        uses.reads.extend([0, 1].map(|direction| read(slot("gradients", direction), Role::Address)));
    }
    match inst {
        TexInst::SET_GRADIENTS_H => uses.writes.push(slot("gradients", 0)),
        TexInst::SET_GRADIENTS_V => uses.writes.push(slot("gradients", 1)),
        TexInst::KEEP_GRADIENTS => uses.writes.extend([slot("gradients", 0), slot("gradients", 1)]),
        TexInst::SET_CUBEMAP_INDEX => uses.writes.push(slot("cubemap index", 0)),
        _ if role == Role::Address => uses.reads.push(read(slot("cubemap index", 0), Role::Address)),
        _ => {}
    }
}

// Functions that return the uses of exports and memory instructions.

const SCATTER: Space = Space::shared("scatter");
const SHARE: Space = Space::shared("LDS");

fn space_of(space: crate::code::Space) -> Space {
    match space {
        crate::code::Space::Scratch => Space::private("scratch"),
        crate::code::Space::Reduction => Space::private("reduction"),
        crate::code::Space::Ring => Space::private("ring"),
        crate::code::Space::Stream(number) => {
            Space { number: Some(number as u32), ..Space::private("stream") }
        }
        crate::code::Space::Scatter => SCATTER,
    }
}

fn export_uses(export: &Export) -> Uses {
    let name = if export.done { ExportInst::EXPORT_DONE } else { ExportInst::EXPORT }.name();
    let mut uses = Uses::new(name, Fidelity::Specified);
    // Pixels of lanes that are not valid do not reach the framebuffer (MAN p. 47).
    uses.dropped_if_killed = export.kind == ExportKind::Pixel;
    for number in burst(export.gpr, export.burst) {
        for select in export.select {
            if let Select::Component(chan) = select {
                uses.reads.push(read(gpr(number, chan, export.rel), Role::Output));
            }
        }
    }
    uses.reads.extend(export.rel.then_some(LOOP_INDEX));
    uses
}

fn memory_uses(memory: &MemoryExport) -> Uses {
    let mut uses = Uses::new(memory.inst.name(), Fidelity::Specified);
    let space = space_of(memory.space());
    // After the run, the host can read all memory except the scratch memory.
    let role = if memory.inst == ExportInst::MEM_SCRATCH { Role::Value } else { Role::Output };
    let chans = || (0..memory.components()).filter(|chan| memory.comp_mask >> chan & 1 != 0);
    for number in burst(memory.gpr, memory.burst) {
        for chan in chans() {
            let place = gpr(number, chan, memory.rel);
            match memory.read {
                true => uses.writes.push(place),
                false => uses.reads.push(read(place, role)),
            }
        }
    }
    uses.reads.extend(memory.rel.then_some(LOOP_INDEX));
    if memory.indexed {
        uses.reads.push(read(gpr(memory.index_gpr, 0, false), Role::Address));
    }
    match memory.read {
        true => uses.loads = Some(space),
        false => uses.stores = Some(space),
    }
    // A killed lane can write only to scratch memory. So stores to other memory are conditional.
    uses.conditional = memory.read && memory.rel || memory.inst != ExportInst::MEM_SCRATCH;
    uses
}
