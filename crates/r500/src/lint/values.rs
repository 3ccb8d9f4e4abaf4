//! Checks for uninitialized values, and for hazards between instructions, along the edges of the control-flow graph.
//!
//! The checks follow the paths of the group and not of single lanes. The checks assume that each write on a path writes
//! the value in all lanes. So the checks report a read that precedes every write on the path.

use litemap::LiteMap;
use reconverge_isa::graph::EdgeKind;
use reconverge_simt::uses::{Slot, Uses};

use super::*;
use crate::flow::Role;
use crate::graph::wishes;
use crate::inst::{TEMPORARIES, TexRegister};
use crate::operations::{Unit, each_read, sources_of};

/// A set of components of temporaries. A component's number is the temporary times 4 plus the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Components([u64; TEMPORARIES * 4 / 64]);

impl Components {
    const NONE: Components = Components([0; TEMPORARIES * 4 / 64]);
    const ALL: Components = Components([u64::MAX; TEMPORARIES * 4 / 64]);

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    fn put(&mut self, number: u32, there: bool) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word = *word & !(1 << (number % 64)) | u64::from(there) << (number % 64);
        }
    }

    fn with(self, other: &Components, of: impl Fn(u64, u64) -> u64) -> Components {
        Components(std::array::from_fn(|word| of(self.0[word], other.0[word])))
    }
}

/// The state before an instruction: the values that instructions have written, and the fetches that may not have ended.
#[derive(Clone, Debug, PartialEq)]
struct State {
    written: Components,
    predicates: u32,
    alu_result: bool,
    /// Components that the program fetched after the last acquire of the semaphore.
    fetched: Components,
    /// Components that were fetched before the last acquire of the semaphore. This set becomes empty when an
    /// instruction waits for the semaphore.
    acquired: Components,
    held: bool,
}

impl State {
    /// Merges the states of two paths. In the merged state, a value is written if the value is written on at least one
    /// path.
    fn join_some(&self, other: &State) -> State {
        let written = self.written.with(&other.written, |one, other| one | other);
        State { written, ..self.join(other) }
    }

    /// Merges the states of two paths. In the merged state, a value is written only if the value is written on both
    /// paths.
    fn join(&self, other: &State) -> State {
        let either = |one: u64, other: u64| one | other;
        State {
            written: self.written.with(&other.written, |one, other| one & other),
            predicates: self.predicates & other.predicates,
            alu_result: self.alu_result && other.alu_result,
            fetched: self.fetched.with(&other.fetched, either),
            acquired: self.acquired.with(&other.acquired, either),
            held: self.held || other.held,
        }
    }
}

pub(super) fn check(setup: &Setup, graph: &Graph, found: &mut Found) {
    let (mut every, mut some) = (Found::default(), Found::default());
    follow(setup, graph, State::join, &mut every);
    follow(setup, graph, State::join_some, &mut some);
    for finding in every.0 {
        let by_path = finding.rule == &UNWRITTEN && !some.0.contains(&finding);
        let rule = if by_path { &UNWRITTEN_PATH } else { finding.rule };
        found.add(rule, finding.pc as u16, finding.message);
    }
}

/// Checks all instructions. `join` merges the states of paths that reach the same instruction.
fn follow(setup: &Setup, graph: &Graph, join: fn(&State, &State) -> State, found: &mut Found) {
    let mut written = if setup.inputs.is_some() { Components::NONE } else { Components::ALL };
    for number in
        setup.inputs.iter().flatten().flat_map(|temp| u32::from(*temp) * 4..u32::from(*temp) * 4 + 4)
    {
        written.put(number, true);
    }
    let start = State {
        written,
        predicates: 0,
        alu_result: false,
        fetched: Components::NONE,
        acquired: Components::NONE,
        held: false,
    };
    let mut pending = vec![u32::from(setup.start)];
    let mut states: LiteMap<u32, State> = LiteMap::new();
    states.insert(pending[0], start);
    while let Some(pc) = pending.pop() {
        let (Some(node), Some(inst)) = (graph.node(pc), instruction_at(setup, pc)) else { continue };
        let after = step(pc as u16, inst, states[&pc].clone(), &mut Found::default());
        for edge in node.next.iter().filter(|edge| has_lanes(setup, inst, edge.kind)) {
            let joined = states.get(&edge.to).map_or_else(|| after.clone(), |before| join(before, &after));
            if states.get(&edge.to) != Some(&joined) {
                states.insert(edge.to, joined);
                pending.push(edge.to);
            }
        }
    }
    for (pc, state) in states {
        let Some(inst) = instruction_at(setup, pc) else { continue };
        step(pc as u16, inst, state, found);
        let next = instruction_at(setup, pc + 1).filter(|_| pc != u32::from(setup.end));
        idle_slot(pc as u16, inst, next, found);
    }
}

/// Returns whether lanes can be active on an edge of this kind. There are two edges without active lanes. If all lanes
/// break, no lane is active in the next slot. If the count of a loop is not 0 and no lane votes to skip the loop, no
/// lane is active on the edge that skips the loop. The checks omit edges without active lanes, because an edge with
/// active lanes also leads to the instructions after the omitted edge.
fn has_lanes(setup: &Setup, inst: &Inst, kind: EdgeKind) -> bool {
    let Body::Fc(fc) = &inst.body else { return true };
    let wishes = wishes(&inst.common, &fc.inst);
    match fc.inst.op.role() {
        Role::Break { .. } | Role::Continue => wishes.stay || kind != EdgeKind::Next,
        Role::Begin { .. } => {
            let count = setup.ints[usize::from(fc.addr.int_addr)].count;
            wishes.jump || count == 0 || kind == EdgeKind::Next
        }
        Role::Jump | Role::End { .. } => true,
    }
}

fn instruction_at(setup: &Setup, pc: u32) -> Option<&Inst> {
    setup.slot(pc as u16)?.inst.as_ref().ok()
}

fn spelled(number: u32) -> String {
    format!("temp[{}].{}", number / 4, ["r", "g", "b", "a"][number as usize % 4])
}

/// Checks one instruction and returns the state after this instruction.
fn step(pc: u16, inst: &Inst, mut state: State, found: &mut Found) -> State {
    if inst.common.tex_sem_wait {
        state.acquired = Components::NONE;
        state.held = false;
    }
    let uses = uses::of_instruction(inst);
    let places = |of: &dyn Fn(&Uses) -> Vec<Slot>| uses.iter().flat_map(of).collect::<Vec<_>>();
    let mut reads = places(&|uses| uses.reads.iter().map(|read| read.slot).collect());
    reads.retain(|read| needed(inst, read));
    let writes = places(&|uses| uses.writes.clone());
    let on_its_way = state.fetched.with(&state.acquired, |one, other| one | other);
    for Slot { file, number } in reads {
        match (file, number) {
            (uses::TEMP, Some(number)) if on_its_way.has(number) => {
                let message = format!("{} is read, but its fetch may not have ended", spelled(number));
                found.add(&TEXTURE_WAIT, pc, message);
            }
            (uses::PRED, Some(number)) if state.predicates >> number & 1 == 0 => {
                let channel = ["r", "g", "b", "a"][number as usize % 4];
                found.add(
                    &UNWRITTEN_PREDICATE,
                    pc,
                    format!("predicate {channel} may be read before it is written"),
                );
                state.predicates |= 1 << number;
            }
            (uses::ALU_RESULT, _) if !state.alu_result => {
                found.add(
                    &STALE_RESULT,
                    pc,
                    "no instruction since the last FC or the start has written the ALU result",
                );
            }
            // A read of a relative address may read any register.
            _ => {}
        }
    }
    let written = defined(pc, inst, &state, found);
    let fetches = matches!(inst.body, Body::Tex(_));
    for Slot { file, number } in writes {
        match (file, number) {
            (uses::TEMP, Some(number)) => {
                if !fetches && on_its_way.has(number) {
                    let what = spelled(number);
                    found.add(
                        &TEXTURE_OVERWRITE,
                        pc,
                        format!("{what} is also written by a fetch that may not have ended"),
                    );
                }
                state.fetched.put(number, fetches);
                state.acquired.put(number, false);
            }
            (uses::PRED, Some(number)) => state.predicates |= 1 << number,
            (uses::ALU_RESULT, _) => state.alu_result = !matches!(inst.body, Body::Fc(_)),
            _ => {}
        }
    }
    state.written = written;
    match &inst.body {
        Body::Tex(tex) if tex.inst.tex_sem_acquire => {
            if state.held {
                found.add(&SECOND_ACQUIRE, pc, "the semaphore may be held by an earlier fetch");
            }
            state.acquired = state.acquired.with(&state.fetched, |one, other| one | other);
            (state.fetched, state.held) = (Components::NONE, true);
        }
        Body::Fc(_)
            if !inst.common.alu_wait
                && uses[0]
                    .reads
                    .iter()
                    .any(|read| [uses::ALU_RESULT, uses::PRED].contains(&read.slot.file)) =>
        {
            found.add(&ALU_WAIT, pc, "the instruction does not wait for the result that it reads");
        }
        Body::Tex(_) | Body::Fc(_) | Body::Alu(_) => {}
    }
    state
}

/// Returns the components that hold initialized values after an instruction. Compilers compute whole vectors, so
/// arithmetic on uninitialized sources alone is not a finding. Only a use of the arithmetic result is a finding.
fn defined(pc: u16, inst: &Inst, before: &State, found: &mut Found) -> Components {
    let mut written = before.written;
    for uses in uses::by_channel(inst) {
        let temps = uses
            .reads
            .iter()
            .map(|read| read.slot)
            .filter(|slot| slot.file == uses::TEMP && needed(inst, slot));
        let undefined: Vec<u32> =
            temps.filter_map(|slot| slot.number).filter(|number| !before.written.has(*number)).collect();
        let moves =
            matches!(inst.body, Body::Alu(_)) && uses.writes.iter().all(|write| write.file == uses::TEMP);
        for number in undefined.iter().filter(|_| !moves) {
            let what = spelled(*number);
            found.add(
                &UNWRITTEN,
                pc,
                format!("{what} is used here, but may depend on registers that are never written"),
            );
        }
        for write in uses.writes.iter().filter(|write| write.file == uses::TEMP) {
            match write.number {
                Some(number) => written.put(number, !moves || undefined.is_empty()),
                // A write to a relative address may write any register.
                None => written = Components::ALL,
            }
        }
    }
    written
}

/// Returns whether a read affects the result for every kind of texture. A read of the third coordinate does not affect
/// every result, because a two-dimensional texture ignores that coordinate.
fn needed(inst: &Inst, read: &Slot) -> bool {
    let Body::Tex(tex) = &inst.body else { return true };
    let (src, [dx, dy]) = (tex.src(), tex.derivatives());
    let two = |register: TexRegister| vec![(register, 0), (register, 1)];
    let mut coordinates = two(src);
    match tex.inst.inst {
        TexOp::NOP | TexOp::LD => {}
        TexOp::TEXKILL => return true,
        TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD => coordinates.push((src, 3)),
        TexOp::DXDY => coordinates.extend([two(dx), two(dy)].concat()),
    }
    let number = |(register, n): &(TexRegister, usize)| {
        Some(u32::from(register.temp) * 4 + register.swizzle[*n] as u32)
    };
    read.file != uses::TEMP || coordinates.iter().any(|coordinate| number(coordinate) == read.number)
}

/// Reports an instruction that uses the result of the previous arithmetic instruction in a presubtract or a derivative.
/// (r500.md 8.1)
fn idle_slot(pc: u16, inst: &Inst, next: Option<&Inst>, found: &mut Found) {
    let (Body::Alu(_), Some(Inst { body: Body::Alu(alu), .. })) = (&inst.body, next) else { return };
    if inst.common.nop {
        return;
    }
    let mut writes = Components::NONE;
    for write in uses::of_instruction(inst).iter().flat_map(|uses| &uses.writes) {
        write
            .number
            .filter(|_| write.file == uses::TEMP)
            .into_iter()
            .for_each(|number| writes.put(number, true));
    }
    let kept = crate::fidelity::computes(next.unwrap_or(inst), alu);
    let units = [Unit::Rgb, Unit::Alpha].into_iter().zip(kept).filter(|(_, kept)| *kept);
    for (unit, _) in units {
        each_read(alu, unit, [true; 3], &mut |sel, swiz, quad| {
            let Some((word, sources, presubtract)) = sources_of(alu, sel, swiz) else { return };
            for source in sources {
                let crate::inst::Source::Temp { addr, rel: false } =
                    [&alu.rgb_sources, &alu.alpha_sources][word].src[*source]
                else {
                    continue;
                };
                let number = u32::from(addr) * 4 + swiz as u32;
                if !writes.has(number) {
                    continue;
                }
                let what = spelled(number);
                if presubtract {
                    found.add(
                        &NOP_PRESUBTRACT,
                        pc,
                        format!("the next instruction reads {what} in a presubtract"),
                    );
                }
                if quad {
                    found.add(
                        &NOP_DERIVATIVE,
                        pc,
                        format!("the next instruction reads {what} in a derivative"),
                    );
                }
            }
        });
    }
}
