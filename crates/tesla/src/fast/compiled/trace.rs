//! From blocks to passes: where they begin, what follows what, and where they end.
//!
//! A pass begins at a block and goes on for as long as it is known what follows: to the next block, through conditionals whose
//! sides meet, past branches by which some lanes leave. It is a loop if it comes back to its beginning.

use std::collections::BTreeSet;

use reconverge_jit::{Back, Plan, Segment, Step};

use super::code::{Program, Way};
use super::{Access, After, CALLEE, Call, Found, Gone, Registers};
use crate::context::Context;
use crate::fast::lower::{Block, Last, Lowered, NONE};
use crate::flow::TAKEN_SIDE_RUNS_FIRST;
use crate::inst::{Arith, Base, Control, Dst, Guard, Inst, Memory, Op, Operand};
use crate::lane::integer::Addition;

/// Blocks of a pass at most.
const MOST_BLOCKS: usize = 64;

/// Instructions of a pass at most: what a turn tries must fit into what a warp may run at once.
const MOST_INSTRUCTIONS: usize = 400;

/// Templates that a load or store is as good as.
const ACCESS: usize = 3;

/// Words of lanes that leave, the last ones of the state: between runs these are zero.
const LEAVES: u32 = 16;

/// Finds the passes of a program.
pub(super) fn passes(context: &Context, lowered: &Lowered, program: &Program<'_>) -> Vec<(u32, Found)> {
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    if context.code.slots().flatten().any(quads) {
        return Vec::new();
    }
    let heads = heads(context, lowered);
    let size = |found: &Found| (found.plan.most(), found.blocks.iter().max().map_or(0, |last| last + 1));
    let trace = |head| trace(context, lowered, program, &heads, head);
    program.extent.choose(&heads, lowered.blocks.len() as u32, trace, size)
}

/// The blocks to which a branch goes back.
fn heads(context: &Context, lowered: &Lowered) -> BTreeSet<u32> {
    let back = |block: &Block| match block.last {
        Last::Bra { target, .. } if target <= block.last_pc => {
            let head = lowered.starts[context.code.place(target)?];
            lowered.blocks.get(head as usize).is_some_and(|block| !block.join).then_some(head)
        }
        _ => None,
    };
    lowered.blocks.iter().filter_map(back).collect()
}

/// Where a segment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Nowhere yet: with the next block.
    Not,
    /// Where the warp may go on in another way: with a block, or a load or store.
    Anywhere,
    /// In the middle of a block.
    Inside,
}

/// A pass while it is found.
struct Tracer<'a> {
    context: &'a Context,
    lowered: &'a Lowered,
    program: &'a Program<'a>,
    quick: Way<'a>,
    exact: Way<'a>,
    segments: Vec<Segment>,
    /// What the segment that is made may begin with.
    begun: Begun,
    /// Steps with which segments begin at the load or store at the end of a block, not before the block.
    at_access: Vec<u32>,
    steps: Vec<Step>,
    /// By step: the block that runs there.
    at: Vec<u32>,
    gone: Vec<(u32, Gone)>,
    calls: Vec<Call>,
    blocks: Vec<u32>,
    words: u32,
    templates: usize,
    instructions: usize,
    touched: u32,
    written: u32,
    fresh: u32,
    /// Entries of the stack that must be free, and whether one more for each lane that leaves.
    entries: usize,
    branches: bool,
}

fn trace(
    context: &Context,
    lowered: &Lowered,
    program: &Program<'_>,
    heads: &BTreeSet<u32>,
    head: u32,
) -> Option<Found> {
    let mut tracer = Tracer {
        context,
        lowered,
        program,
        quick: Way::new(program, false),
        exact: Way::new(program, true),
        segments: Vec::new(),
        begun: Begun::Not,
        at_access: Vec::new(),
        steps: Vec::new(),
        at: Vec::new(),
        gone: Vec::new(),
        calls: Vec::new(),
        blocks: Vec::new(),
        words: 0,
        templates: 0,
        instructions: 0,
        touched: 0,
        written: 0,
        fresh: 0,
        entries: 0,
        branches: false,
    };
    let (back, after) = tracer.blocks_from(head, heads)?;
    tracer.finish(back, after)
}

impl<'a> Tracer<'a> {
    fn word(&mut self) -> u32 {
        self.words += 1;
        self.words - 1
    }

    /// Instructions of the pass at most.
    fn most(&self) -> usize {
        MOST_INSTRUCTIONS.min(self.program.extent.most() as usize)
    }

    fn step(&mut self, step: Step, block: u32) {
        self.steps.push(step);
        self.at.push(block);
    }

    fn both(&mut self, mut each: impl FnMut(&mut Way<'a>)) {
        each(&mut self.quick);
        each(&mut self.exact);
    }

    fn block(&self, number: u32) -> Option<&'a Block> {
        self.lowered.blocks.get(number as usize)
    }

    /// The instructions of a block but for its flow.
    fn instructions(&self, number: u32) -> Vec<Inst> {
        let places = &self.lowered.inside[number as usize].places;
        let insts = places.iter().filter_map(|place| self.context.code.slot(*place).copied());
        insts.filter(|inst| !matches!(inst.op, Op::Control(_))).collect()
    }

    /// The guard of the flow at a block's end.
    fn guard(&self, number: u32) -> Guard {
        let place = self.lowered.inside[number as usize].places.last();
        let inst = place.and_then(|place| self.context.code.slot(*place));
        inst.map_or(Guard::ALWAYS, |inst| inst.guard)
    }

    /// Goes from block to block. Gives whether and how it comes back, and what follows else.
    fn blocks_from(&mut self, head: u32, heads: &BTreeSet<u32>) -> Option<(Back, After)> {
        let mut number = head;
        loop {
            let block = self.block(number)?;
            let seen = self.blocks.contains(&number);
            let begins = number == head && self.blocks.is_empty();
            let size = self.instructions + block.size as usize;
            if seen
                || (!begins && heads.contains(&number))
                || self.blocks.len() >= MOST_BLOCKS
                || size > self.most()
                || matches!(block.last, Last::Reference | Last::Discard { .. } | Last::Bar { .. })
                || self.words + 2 >= reconverge_jit::WORDS as u32 - LEAVES
                || self.gone.len() as u32 >= LEAVES
            {
                return Some((Back::Never, After::Before(number)));
            }
            self.instructions = size;
            self.blocks.push(number);
            self.execute(number)?;
            let guard = self.guard(number);
            // A join would have to be done each time.
            let joins = self.block(head)?.join;
            let is_back = |target: u32| {
                !joins
                    && self.context.code.place(target).is_some_and(|place| self.lowered.starts[place] == head)
            };
            match block.last {
                _ if block.exit => return Some((Back::Never, After::Behind(number))),
                Last::Next | Last::Memory(_) if block.fall != NONE => number = block.fall,
                Last::Bra { target, guard: test } if test.always => {
                    if is_back(target) {
                        return Some((Back::Always, After::Behind(number)));
                    }
                    if block.jump == NONE {
                        return Some((Back::Never, After::Behind(number)));
                    }
                    number = block.jump;
                }
                // Those that go back run first: the others wait, by an entry each time.
                Last::Bra { target, .. } if is_back(target) && TAKEN_SIDE_RUNS_FIRST => {
                    self.leave(number, (guard, false), Gone::Branches { next: block.next }, false);
                    return Some((Back::Always, After::Behind(number)));
                }
                Last::Bra { target, .. } if block.fall != NONE && self.is_join(target) => {
                    self.leave(number, (guard, true), Gone::Waits, true);
                    number = block.fall;
                }
                Last::Break { guard: test } if !test.always && block.fall != NONE => {
                    self.leave(number, (guard, true), Gone::Breaks, false);
                    number = block.fall;
                }
                Last::Ret { guard: test } if !test.always && block.fall != NONE => {
                    self.leave(number, (guard, true), Gone::Returns, false);
                    number = block.fall;
                }
                Last::Joinat { .. } => match self.conditional(number) {
                    Some(joins) => number = joins,
                    None => return Some((Back::Never, After::Behind(number))),
                },
                _ => return Some((Back::Never, After::Behind(number))),
            }
        }
    }

    fn is_join(&self, pc: u32) -> bool {
        let place = self.context.code.place(pc);
        place.and_then(|place| self.block(self.lowered.starts[place])).is_some_and(|block| block.join)
    }

    /// Lanes leave at the end of a block: those for which the guard holds, or does not.
    fn leave(&mut self, number: u32, (guard, holds): (Guard, bool), gone: Gone, arrives: bool) {
        let word = reconverge_jit::WORDS as u32 - 1 - self.gone.len() as u32;
        self.both(|way| way.leave(word, guard, holds));
        self.gone.push((self.steps.len() as u32, gone));
        // The entries of the stack come in the order of turns.
        let step = match gone {
            Gone::Branches { .. } => Step::LeaveInTurn(word),
            Gone::Waits | Gone::Breaks | Gone::Returns => Step::Leave { word, arrives },
        };
        self.step(step, number);
        self.entries = self.entries.max(usize::from(arrives));
        self.branches |= matches!(gone, Gone::Branches { .. });
    }

    /// What follows a `joinat`, if it is a conditional whose sides are templates only. Gives the block of the join.
    fn conditional(&mut self, number: u32) -> Option<u32> {
        let conditional = self.lowered.conditionals[number as usize]?;
        let diamond = conditional.diamond;
        let templates = |block: u32| {
            block == NONE
                || self.instructions(block).iter().all(|inst| {
                    // Asked of a segment of its own.
                    Way::new(self.program, true).instruction(inst)
                })
        };
        if ![diamond.taken.block, diamond.not.block].into_iter().all(templates) {
            return None;
        }
        // The join is done within: what carries it is not left to others.
        let joins = self.block(conditional.joins)?;
        let size = [conditional.branch, diamond.taken.block, diamond.not.block].into_iter();
        let size: u32 = size.filter_map(|block| self.block(block)).map(|block| block.size).sum();
        let inside = [conditional.branch, diamond.taken.block, diamond.not.block, conditional.joins];
        if matches!(joins.last, Last::Reference | Last::Discard { .. } | Last::Bar { .. } | Last::Memory(_))
            || self.instructions + (size + joins.size) as usize > self.most()
            || self.blocks.len() + 4 > MOST_BLOCKS
            || inside.iter().any(|block| *block != NONE && self.blocks.contains(block))
            || self.steps.iter().filter(|step| matches!(step, Step::If(_))).count()
                >= reconverge_jit::BRANCHES
            || self.words + 8 >= reconverge_jit::WORDS as u32 - LEAVES
            || self.gone.len() as u32 >= LEAVES
        {
            return None;
        }
        self.instructions += size as usize;
        self.blocks.push(conditional.branch);
        self.execute(conditional.branch)?;
        let guard = self.guard(conditional.branch);
        let word = self.word();
        self.both(|way| way.open(word, guard));
        self.step(Step::If(word), conditional.branch);
        self.side(diamond.taken.block)?;
        self.both(Way::other);
        self.step(Step::Else, conditional.branch);
        self.side(diamond.not.block)?;
        self.both(Way::close);
        self.step(Step::End, conditional.branch);
        self.entries = self.entries.max(2);
        Some(conditional.joins)
    }

    fn side(&mut self, number: u32) -> Option<()> {
        if number == NONE {
            return Some(());
        }
        self.blocks.push(number);
        self.execute(number)
    }

    /// A block's instructions but for its flow.
    fn execute(&mut self, number: u32) -> Option<()> {
        let block = self.block(number)?;
        let inside = &self.lowered.inside[number as usize];
        if self.begun == Begun::Not {
            self.begin(number, false);
        }
        let mut start = block.start;
        for (place, inst) in self.instructions(number).iter().enumerate() {
            let accesses = place + 1 == block.size as usize && matches!(block.last, Last::Memory(_));
            let end = inside.ends.get(place).copied().unwrap_or(block.end);
            let range = std::mem::replace(&mut start, end)..end;
            if accesses && matches!(inst.op, Op::Memory(Memory::St)) {
                if self.store(number, inst) {
                    self.templates += ACCESS;
                    continue;
                }
            } else if (!accesses || self.loads(number, inst)) && self.quick.instruction(inst) {
                if !self.exact.instruction(inst) {
                    return None;
                }
                self.templates += if accesses { ACCESS } else { 1 };
                continue;
            }
            let access = match block.last {
                Last::Memory(access) if accesses => Some(access),
                _ => None,
            };
            if range.is_empty() && access.is_none() {
                continue;
            }
            self.call(
                number,
                Call { operations: range, access: Access(access), registers: registers(inst) },
            )?;
        }
        self.step(Step::Run(block.size), number);
        Some(())
    }

    /// A segment begins before a block, or at its load or store.
    fn begin(&mut self, block: u32, at_access: bool) {
        if at_access {
            self.at_access.push(self.steps.len() as u32);
        }
        self.step(Step::Begin(self.segments.len() as u32), block);
        self.begun = Begun::Anywhere;
    }

    /// Ends the segment before the load or store of a block, and begins another.
    fn cut(&mut self, block: u32) {
        self.end_segment(None, None);
        self.begin(block, true);
    }

    /// Whether the load of a block has a template. Then the segment is one that can see before it begins whether all lanes can
    /// load.
    fn loads(&mut self, block: u32, inst: &Inst) -> bool {
        let reaches = |operand: &Operand| matches!(operand, Operand::Mem(mem) if self.exact.reaches(mem));
        let reaches = inst.src.iter().any(reaches);
        if reaches && self.begun != Begun::Anywhere {
            self.cut(block);
        }
        reaches
    }

    /// The store of a block, if it has a template: behind all that the segment does, which loads nothing, for slices come one
    /// after another.
    fn store(&mut self, block: u32, inst: &Inst) -> bool {
        let Operand::Mem(mem) = inst.src[0] else { return false };
        if !self.exact.reaches(&mem) || !matches!(inst.src[1], Operand::R32(_)) || inst.lanes & 15 != 15 {
            return false;
        }
        if inst.gate().is_some_and(|register| usize::from(register) >= self.program.registers) {
            return true; // It vanishes. (1.4)
        }
        if self.begun != Begun::Anywhere || self.exact.loads() {
            self.cut(block);
        }
        let mut done = true;
        self.both(|way| done &= way.store_shared(inst).is_some());
        debug_assert!(done, "a store that has a template");
        self.end_segment(None, None);
        self.begun = Begun::Not;
        done
    }

    /// Ends the segment with a call.
    fn call(&mut self, block: u32, call: Call) -> Option<()> {
        let word = self.word();
        if word >= reconverge_jit::WORDS as u32 - LEAVES {
            return None;
        }
        self.touched |= call.registers;
        self.written |= call.registers;
        let ends = call.access.0.is_some();
        self.end_segment(Some((CALLEE, self.calls.len() as u32, word)), Some(word));
        self.calls.push(call);
        self.step(Step::Call, block);
        self.begun = if ends { Begun::Not } else { Begun::Inside };
        Some(())
    }

    fn end_segment(&mut self, call: Option<(reconverge_jit::Callee, u32, u32)>, lanes: Option<u32>) {
        let nothing = BTreeSet::new();
        let (quick, exact) = self.ways();
        let (quick, exact) = (quick.finish(&nothing, lanes), exact.finish(&nothing, lanes));
        self.segments.push(Segment::new(Some(quick), exact, call));
    }

    /// The segment's ways; others begin.
    fn ways(&mut self) -> (Way<'a>, Way<'a>) {
        let quick = std::mem::replace(&mut self.quick, Way::new(self.program, false));
        let exact = std::mem::replace(&mut self.exact, Way::new(self.program, true));
        if self.segments.is_empty() {
            self.fresh = quick.covers() & exact.covers();
        }
        self.touched |= quick.touched() | exact.touched();
        self.written |= quick.writes() | exact.writes();
        (quick, exact)
    }

    fn finish(mut self, back: Back, after: After) -> Option<Found> {
        let (quick, exact) = self.ways();
        // Where a segment refuses, everything is the machine's own.
        let lazy = back == Back::Always && self.segments.is_empty() && !exact.slice.has_spans();
        let mut dropped = BTreeSet::new();
        if lazy {
            dropped.extend(quick.covered().intersection(exact.covered()).copied());
        }
        let nothing = BTreeSet::new();
        let (quick, exact) = (quick.finish(&dropped, None), exact.finish(&nothing, None));
        self.segments.push(Segment::new(Some(quick), exact, None));
        let plan = Plan {
            segments: self.segments,
            steps: self.steps,
            back,
            mask: self.program.mask,
            lazy: lazy && !dropped.is_empty(),
            joins: true,
        };
        let gain = 2 * self.templates as i32 - 8 * self.calls.len() as i32;
        let worth = self.program.extent.pays(gain, back == Back::Never);
        (worth && plan.fits() && plan.steps.iter().any(|step| matches!(step, Step::Run(_)))).then_some(
            Found {
                plan,
                at: self.at,
                at_access: self.at_access,
                gone: self.gone,
                calls: self.calls,
                after,
                blocks: self.blocks,
                registers: Registers { touched: self.touched, written: self.written, fresh: self.fresh },
                entries: self.entries,
                branches: self.branches,
            },
        )
    }
}

/// The `$c` and `$a` that an instruction reads or writes, by bit as [`Way::touched`].
fn registers(inst: &Inst) -> u32 {
    let c = |register: u8| 1 << (register & 3);
    let a = |register: u8| if let 1..=4 = register { 1 << (3 + register) } else { 0 };
    let mut all = inst.cdst.map_or(0, c);
    let adds = |addition: Addition| addition == Addition::Addc;
    let carries = match inst.op {
        Op::Arith(Arith::Add { addition, .. } | Arith::Mad { addition, .. }) => adds(addition),
        _ => false,
    };
    if !inst.guard.is_always() || carries {
        all |= c(inst.guard.c);
    }
    match inst.dst {
        Dst::A(register) => all |= a(register),
        Dst::C(register) => all |= c(register),
        _ => {}
    }
    for operand in inst.src {
        all |= match operand {
            Operand::A(register) => a(register),
            Operand::C(register) => c(register),
            Operand::Mem(mem) => match mem.base {
                Base::A(register) => a(register),
                Base::R(_) => 0,
            },
            _ => 0,
        };
    }
    all
}
