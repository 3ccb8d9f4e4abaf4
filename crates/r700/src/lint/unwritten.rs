//! Registers that may be read before they are written: which components are written on every path to an instruction.
//!
//! Where the words leave it open, a register counts as written: writes under a predicate, through an index, or of a fetch
//! program.

use reconverge_isa::graph::EdgeKind;
use reconverge_isa::lint::Finding;

use super::UNWRITTEN;
use crate::code::{Cf, CfOp, Code, FetchOp, Operand, Select, VertexFormat, always_passes};
use crate::graph::Ways;
use crate::words::{CfInst, SelTexSrc};

/// Components of registers, a set each for x, y, z and w.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Components([u128; 4]);

impl Components {
    /// None.
    pub const NONE: Components = Components([0; 4]);
    /// All of every register.
    pub const ALL: Components = Components([u128::MAX; 4]);

    /// With all components of one more register.
    pub fn with(self, gpr: u8) -> Components {
        Components(self.0.map(|set| set | 1 << (gpr & 127)))
    }

    fn add(&mut self, gpr: u8, chan: usize) {
        self.0[chan & 3] |= 1 << (gpr & 127);
    }

    fn has(&self, gpr: u8, chan: usize) -> bool {
        self.0[chan & 3] >> (gpr & 127) & 1 != 0
    }

    fn and(self, other: Components) -> Components {
        Components(std::array::from_fn(|chan| self.0[chan] & other.0[chan]))
    }
}

/// The first reads of components that no path before writes, when `inputs` are written at the start.
pub(super) fn unwritten(code: &Code, start: u32, inputs: Components) -> Vec<Finding> {
    let ways = Ways::of(code, start);
    let last = code.instructions().map(|(addr, _)| addr as usize + 2).max().unwrap_or(0);
    let mut written: Vec<Option<Components>> = vec![None; last];
    let mut open = vec![(start, inputs)];
    while let Some((addr, from)) = open.pop() {
        let (Some(place), Ok(cf)) = (written.get_mut(addr as usize), code.cf(addr)) else { continue };
        let before = place.map_or(from, |known| known.and(from));
        if *place == Some(before) {
            continue;
        }
        *place = Some(before);
        let mut after = before;
        visit(code, cf, &mut after, &mut |_, _, _, _| {});
        // A lane that is active at a CALL without a condition comes back from the subroutine.
        let calls = matches!(&cf.op, CfOp::Control(CfInst::CALL, call) if always_passes(call));
        let next = ways.next.get(&addr).into_iter().flatten();
        open.extend(next.filter(|edge| !calls || edge.kind == EdgeKind::Call).map(|edge| (edge.to, after)));
    }
    let (mut found, mut told) = (Vec::new(), Components::NONE);
    for (addr, cf) in code.instructions() {
        let Some(mut before) = written.get(addr as usize).copied().flatten() else { continue };
        visit(code, cf, &mut before, &mut |at, gpr, chan, written: &Components| {
            if !written.has(gpr, chan) && !told.has(gpr, chan) {
                told.add(gpr, chan);
                let message =
                    format!("R{gpr}.{} may be read before it is written", char::from(b"xyzw"[chan & 3]));
                found.push(Finding { rule: &UNWRITTEN, pc: at.unwrap_or(addr), message });
            }
        });
    }
    found
}

/// Shows `read` each component that an instruction reads, with its address in a clause and what is written then, and
/// adds to `written` what it writes.
fn visit(
    code: &Code,
    cf: &Cf,
    written: &mut Components,
    read: &mut impl FnMut(Option<u32>, u8, usize, &Components),
) {
    match &cf.op {
        // The host chooses the fetch program, which fetches what the program wants.
        CfOp::Control(CfInst::CALL_FS, _) => *written = Components::ALL,
        CfOp::Control(..) => {}
        CfOp::Fetch(_, _, fetches) => {
            for fetch in fetches {
                let mut source = |chan: usize| {
                    if !fetch.src_rel {
                        read(Some(fetch.addr), fetch.src_gpr, chan, written);
                    }
                };
                match &fetch.op {
                    FetchOp::Vertex(low, ..) => source(low.src_sel_x as usize),
                    FetchOp::Texture(_, _, third) => {
                        let coordinates =
                            [third.src_sel_x, third.src_sel_y, third.src_sel_z, third.src_sel_w];
                        for select in coordinates.into_iter().filter(|select| *select < SelTexSrc::ZERO) {
                            source(select as usize);
                        }
                    }
                    FetchOp::Memory(_, low, ..) if low.indexed => source(low.src_sel_x as usize),
                    FetchOp::Memory(..) => {}
                    FetchOp::DataShareWrite(_) => (0..4).for_each(source),
                    FetchOp::DataShareRead(low, _) => {
                        source(low.src_sel_x as usize);
                        source(low.src_sel_y as usize);
                    }
                }
                if fetch.dst_rel || matches!(fetch.op, FetchOp::Vertex(_, VertexFormat::Semantic(_), _)) {
                    *written = Components::ALL;
                }
                let burst = match &fetch.op {
                    FetchOp::Memory(_, low, ..) => low.burst_count,
                    _ => 0,
                };
                for (chan, _) in (0..).zip(fetch.select).filter(|(_, select)| *select != Select::Mask) {
                    (0..=burst).for_each(|number| written.add(fetch.dst_gpr.saturating_add(number), chan));
                }
            }
        }
        CfOp::Alu(clause) => {
            for group in code.groups(clause) {
                for (op, addr) in group.ops.iter().zip(group.addr..) {
                    for source in op.read().iter().filter(|source| !source.rel) {
                        if let Operand::Gpr { gpr, chan } = source.operand {
                            read(Some(addr), gpr, usize::from(chan), written);
                        }
                    }
                }
                for op in group.ops.iter().filter(|op| op.writes()) {
                    if op.dst_rel {
                        *written = Components::ALL;
                    }
                    written.add(op.dst_gpr, usize::from(op.dst_chan));
                }
            }
        }
        CfOp::Export(_, export) if !export.rel => {
            for number in 0..export.burst {
                for select in export.select {
                    if let Select::Component(chan) = select {
                        read(None, export.gpr.saturating_add(number), chan, written);
                    }
                }
            }
        }
        CfOp::Memory(_, memory) if memory.read => {
            (0..memory.burst).for_each(|number| *written = written.with(memory.gpr.saturating_add(number)));
        }
        CfOp::Memory(_, memory) if !memory.rel => {
            for number in 0..memory.burst {
                for chan in (0..4).filter(|chan| memory.comp_mask >> chan & 1 != 0) {
                    read(None, memory.gpr.saturating_add(number), chan, written);
                }
            }
            if memory.indexed {
                read(None, memory.index_gpr, 0, written);
            }
        }
        CfOp::Export(..) | CfOp::Memory(..) => {}
    }
}
