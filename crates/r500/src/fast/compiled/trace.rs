//! Traces a program: turns blocks of the fast engine into nodes of linked code.
//!
//! A node is a chain of blocks. Only the previous block of the chain leads to a block. A chain can continue after a
//! BREAK at which some lanes leave the loop. A chain can also continue after a branch with short sides. Such a branch
//! becomes a conditional. For operations without a template, the node calls functions of the fast engine. The node ends
//! after these calls.

use std::ops::Range;

use reconverge_jit::{Branch, Linker, Next, Target, Waits};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::R500;
use super::{Loop, Own};
use crate::fast::lower::{Block, Last, Lowered, NONE, Template};
use crate::flow::Step;

/// Maximum number of instructions in a node.
const MOST_INSTRUCTIONS: u32 = 200;

/// Maximum number of BREAKs in a node at which lanes may leave the loop.
const MOST_LEAVES: usize = 8;

/// Maximum number of instructions in the sides of a conditional. Compiled code runs both sides.
const MOST_OF_SIDES: u32 = 24;

/// Maximum number of words that a node gathers. Each word is a set of lanes.
const MOST_WORDS: u32 = 16;

/// The traced nodes, and the slots of the instructions in each part. Compiled code counts how often each part runs.
type Found = (reconverge_jit::Traced<R500>, Vec<Vec<Range<usize>>>);

/// Traces a program.
pub(super) fn trace(lowered: &Lowered, extent: Extent) -> Found {
    // This code emits each operation in a separate node to find out whether the operation has a template.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(lowered, true).operation(operation, *template))
        .collect();
    let count = lowered.blocks.len();
    let (mut targets, mut loops) = (vec![0; count], Vec::new());
    for (number, block) in lowered.blocks.iter().enumerate() {
        let Last::Flow(flow) = block.last else { continue };
        let step = &lowered.flows[flow as usize];
        let target = block.jump as usize;
        if let Some(jumps) = targets.get_mut(target) {
            *jumps += 1;
            if let Some((al, step)) = step.repeats().filter(|_| target <= number) {
                let head = target as u32;
                loops.push((head..=number as u32, Loop { head, al, step }));
            }
        }
    }
    let sizes: Vec<u32> = lowered.blocks.iter().map(|block| block.size.into()).collect();
    let around = |number: usize| -> Option<Loop> {
        let around = || loops.iter().filter(|(blocks, _)| blocks.contains(&(number as u32)));
        let (_, inner) = around().max_by_key(|(blocks, _)| *blocks.start())?;
        // Two end instructions of a loop can add different numbers to aL. A loop with different numbers is not compiled
        // as a loop.
        around().all(|(_, other)| other.head != inner.head || other == inner).then_some(*inner)
    };
    let loops: Vec<_> = (0..count).map(around).collect();
    let mut chosen = extent.chosen(&sizes, |number| loops[number].is_some());
    for (block, chosen) in lowered.blocks.iter().zip(&mut chosen) {
        *chosen &= block.size > 0 && block.al.is_none() && block.split.is_none();
    }
    let linker = Linker::new(Way::new(lowered, false), Way::new(lowered, true));
    let mut tracer = Tracer {
        lowered,
        has_template,
        chosen,
        targets,
        most: MOST_INSTRUCTIONS.min(extent.most()),
        linker,
        loops,
        starts: vec![None; count],
        absorbed: vec![false; count],
        parts: Vec::new(),
        open: None,
        checked: 0,
        covered: 0,
    };
    if !tracer.pays(extent) {
        tracer.chosen.fill(false);
    }
    for number in 0..count as u32 {
        if tracer.chosen[number as usize] && !tracer.absorbed[number as usize] {
            tracer.chain(number);
        }
    }
    (tracer.linker.finish(&tracer.starts), tracer.parts)
}

/// How compiled code executes the flow instruction at the end of a block.
#[derive(Clone, Debug)]
enum Flow {
    /// The chain ends with this transition. For a transition with two targets, the second element is the ALU result of
    /// the lanes that go to the first target.
    End(Next, Option<bool>),
    /// A part of the lanes leaves the loop. The lanes that stay in the loop continue.
    Leave(Leave),
    /// The lanes run both sides of a branch. After the branch, all lanes continue.
    Sides(Sides),
}

/// A BREAK, or a branch that contains only a BREAK.
#[derive(Clone, Debug)]
struct Leave {
    /// The ALU result of the lanes that leave the loop.
    wish: bool,
    /// Whether the lanes that leave the loop vote to jump.
    jump: bool,
    /// The blocks that run if some lanes leave the loop and some lanes stay. For a plain BREAK, the list is empty. For
    /// a branch, the list has two blocks: the block of the BREAK and the block of the branch's end.
    blocks: Vec<u32>,
    /// The block at which the remaining lanes continue.
    next: u32,
    /// The number of jumps from this branch to the block `next`.
    jumps: u32,
}

/// The sides of a branch.
#[derive(Clone, Debug)]
struct Sides {
    /// The blocks of the sides: one or two.
    blocks: Vec<u32>,
    /// The ALU result of the lanes that run the first side.
    wish: bool,
    /// The block after the sides.
    join: u32,
    /// The number of jumps from the branch and its sides to the block `join`.
    jumps: u32,
}

/// Returns the target for a block. If the block is [`NONE`], flow control determines the target.
fn to_block(block: u32) -> Target {
    match block {
        NONE => Target::Flow,
        block => Target::Outside(block),
    }
}

/// Returns the total number of slots in the ranges.
fn size(slots: &[Range<usize>]) -> u32 {
    slots.iter().map(Range::len).sum::<usize>() as u32
}

/// A position in a block.
#[derive(Clone, Copy)]
struct At {
    block: u32,
    /// Number of the instruction in the block.
    first: u16,
    /// Whether a chain begins at this position.
    is_first: bool,
    /// Whether this position is inside an instruction, after an operation of the instruction.
    is_inside: bool,
}

/// The node that is being traced.
struct Open {
    own: Own,
    /// The slots of the instructions after the latest BREAK at which lanes may leave the loop.
    slots: Vec<Range<usize>>,
    /// The number of the node's instructions that precede the instructions in `slots`.
    before: u32,
    call: Option<Range<u32>>,
    /// Whether compiled code checks the instruction budget at the entry of the node.
    is_checked: bool,
    /// Whether the node begins inside an instruction. Compiled code must always run such a node.
    is_inside: bool,
}

/// The state of tracing a program.
struct Tracer<'a> {
    lowered: &'a Lowered,
    /// Whether each operation has a template.
    has_template: Vec<bool>,
    /// Whether each block is compiled.
    chosen: Vec<bool>,
    /// The number of jumps to each block.
    targets: Vec<u32>,
    /// Whether each block is part of a node that begins at another block.
    absorbed: Vec<bool>,
    /// The innermost loop around each block.
    loops: Vec<Option<Loop>>,
    /// Maximum number of instructions in a node.
    most: u32,
    linker: Linker<R500, Way<'a>>,
    /// The node that begins at each block.
    starts: Vec<Option<u32>>,
    parts: Vec<Vec<Range<usize>>>,
    open: Option<Open>,
    /// The latest node at which compiled code checks the instruction budget.
    checked: u32,
    /// The number of instructions that the latest check of the budget covers so far.
    covered: u32,
}

impl<'a> Tracer<'a> {
    fn block(&self, number: u32) -> &'a Block {
        &self.lowered.blocks[number as usize]
    }

    /// Returns the range of operations of each instruction in a block.
    fn instructions(&self, block: &'a Block) -> impl Iterator<Item = Range<u32>> + use<'a> {
        let mut start = block.start;
        self.lowered.ends[block.slots()].iter().map(move |end| std::mem::replace(&mut start, *end)..*end)
    }

    fn has_templates(&self, mut operations: Range<u32>) -> bool {
        operations.all(|number| self.has_template[number as usize])
    }

    /// Returns whether any of the operations sets the ALU result.
    fn judges(&self, operations: Range<u32>) -> bool {
        let judges = |template: &Template| matches!(template, Template::AluResult { .. });
        self.lowered.templates[operations.start as usize..operations.end as usize].iter().any(judges)
    }

    /// Returns how many dispatches compiled code saves for an operation with a template. The unit is half a dispatch.
    fn gain(&self, operation: usize) -> i32 {
        match self.lowered.templates[operation] {
            Template::Channels(_, count) => 2 * count as i32,
            _ => 2,
        }
    }

    /// Returns whether compiled code calls functions for all operations of an instruction. Otherwise, calls execute
    /// only the operations without a template.
    fn is_called(&self, operations: Range<u32>) -> bool {
        let places = operations.start as usize..operations.end as usize;
        let of_quad = |template: &Template| matches!(template, Template::Neighbours);
        !self.has_templates(operations.clone())
            && (self.judges(operations) || self.lowered.templates[places].iter().any(of_quad))
    }

    /// Returns whether compiled code saves enough dispatches of operations, either in the loops or in the whole
    /// program.
    fn pays(&self, extent: Extent) -> bool {
        let gain = |number: usize| -> i32 {
            let block = &self.lowered.blocks[number];
            let (mut gain, mut calls) = (0, false);
            for operations in self.instructions(block) {
                let is_called = self.is_called(operations.clone());
                for number in operations {
                    let (before, operation) = (calls, number as usize);
                    calls = is_called || !self.has_template[operation];
                    gain += match (calls, before) {
                        (false, _) => self.gain(operation),
                        (true, false) => -8,
                        (true, true) => 0,
                    };
                }
            }
            gain
        };
        let all = |once: bool| -> i32 {
            let counts = |number: &usize| self.chosen[*number] && (once || self.loops[*number].is_some());
            (0..self.loops.len()).filter(counts).map(gain).sum()
        };
        extent.pays(all(false), false) || extent.pays(all(true), true)
    }

    /// Traces the chain of blocks that begins with block `first`.
    fn chain(&mut self, first: u32) {
        let mut number = first;
        self.covered = 0;
        self.starts[first as usize] = Some(self.linker.next_node());
        loop {
            let block = self.block(number);
            let flow = self.flow(block);
            self.execute(number, flow.is_some());
            // A call that sets the ALU result stores the result in the group. Compiled code cannot read or clear a
            // stored ALU result, so flow control continues.
            let stores = flow.is_none() && self.judges(block.start..block.end);
            let (next, jumps) = match flow {
                None if !matches!(block.last, Last::Next) || block.kills || block.ends || stores => {
                    return self.end(Next::To(Target::Flow), number, false, None);
                }
                None => (block.fall, 0),
                Some(Flow::Leave(ref leave)) => {
                    self.leave(number, leave);
                    (leave.next, leave.jumps)
                }
                Some(Flow::Sides(ref sides)) => {
                    self.sides(sides);
                    (sides.join, sides.jumps)
                }
                Some(Flow::End(next, wish)) => return self.end(next, number, true, wish),
            };
            if !self.continues(next, jumps) {
                return self.end(Next::To(to_block(next)), number, false, None);
            }
            number = next;
            self.absorbed[number as usize] = true;
        }
    }

    /// Returns whether a chain continues with block `number`. The chain contains `jumps` jumps to this block.
    fn continues(&self, number: u32, jumps: u32) -> bool {
        let place = number as usize;
        let Some(block) = self.lowered.blocks.get(place) else { return false };
        self.chosen[place]
            && self.targets[place] == jumps
            && !self.absorbed[place]
            && self.covered() + u32::from(block.size) <= self.most
    }

    /// Returns the number of instructions after the latest point at which compiled code checks the budget.
    fn covered(&self) -> u32 {
        self.covered + self.open.as_ref().map_or(0, |open| open.before + size(&open.slots))
    }

    /// Returns the number of BREAKs in the open node at which lanes may leave the loop.
    fn leaves(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.own.leaves.len())
    }

    /// Returns how compiled code executes the flow instruction of a block. Returns `None` if flow control executes the
    /// instruction.
    fn flow(&self, block: &Block) -> Option<Flow> {
        let Last::Flow(number) = block.last else { return None };
        let step = &self.lowered.flows[number as usize];
        let known = self.judged(block)?;
        let [no, yes] = step.votes().filter(|_| !block.ends && !block.kills)?;
        // In strict mode, an instruction that reads an invalid ALU result traps. The instruction traps even if the vote
        // does not depend on the ALU result.
        if (no != yes || step.reads_alu_result()) && !known {
            return None;
        }
        // If flow control traps, the group must hold the ALU result. Compiled code passes the ALU result to flow control
        // only as different votes of the lanes.
        if no == yes && self.judges(block.start..block.end) {
            return None;
        }
        if step.repeats().is_some() {
            return Some(Flow::End(Next::Again(to_block(block.jump)), None));
        }
        if step.breaks() && no != yes && block.fall != NONE && self.leaves() < MOST_LEAVES {
            let (blocks, next) = (Vec::new(), block.fall);
            return Some(Flow::Leave(Leave { wish: yes, jump: true, blocks, next, jumps: 0 }));
        }
        let pc = block.first + block.size - 1;
        let passes = |jump: bool| step.passes_to(pc, jump).map(|slot| to_block(self.lowered.block_at(slot)));
        match no == yes {
            true => Some(Flow::End(Next::To(passes(yes)?), None)),
            false => {
                let sides = self.conditional(block, step, yes).map(Flow::Sides);
                let leave = || self.breaking(block, step, yes).map(Flow::Leave);
                let either = || Some(Flow::End(Next::Either([passes(true)?, passes(false)?]), Some(yes)));
                sides.or_else(leave).or_else(either)
            }
        }
    }

    /// Returns the branch at the end of a block, if the branch contains only a BREAK. Lanes whose ALU result is `yes`
    /// jump.
    fn breaking(&self, block: &Block, step: &Step, yes: bool) -> Option<Leave> {
        let inside = block.fall;
        let blocks = vec![inside, self.lowered.blocks.get(inside as usize)?.fall];
        let steps = [self.side(blocks[0], 0)?.1, self.side(blocks[1], 0)?.1];
        let to = step.leaves(block.first + block.size - 1, steps)?;
        let next = self.lowered.block_at(to);
        let [inside, end] = [blocks[0], blocks[1]].map(|number| self.block(number));
        let jumps = u32::from(block.jump == next) + u32::from(end.jump == next);
        let fits = inside.size == 1
            && end.size == 1
            && next != NONE
            && self.leaves() < MOST_LEAVES
            && self.covered() + u32::from(block.size) + 2 <= self.most;
        fits.then_some(Leave { wish: !yes, jump: false, blocks, next, jumps })
    }

    /// If compiled code executes the branch at the end of a block as a conditional, returns the sides of the branch.
    /// Lanes whose ALU result is `yes` jump.
    fn conditional(&self, block: &Block, step: &Step, yes: bool) -> Option<Sides> {
        let mut blocks = vec![block.fall];
        let mut ends = vec![self.side(block.fall, 0)?];
        let pc = block.first + block.size - 1;
        let mut to = step.meets(pc, &ends);
        if to.is_none() {
            let other = self.block(block.fall).fall;
            blocks.push(other);
            ends.push(self.side(other, u32::from(block.jump == other))?);
            to = step.meets(pc, &ends);
        }
        let join = self.lowered.block_at(to?);
        let jumps = blocks.iter().map(|side| self.block(*side)).chain([block]);
        let jumps = jumps.filter(|block| block.jump == join).count() as u32;
        let size: u32 = blocks.iter().map(|side| u32::from(self.block(*side).size)).sum();
        let fits = size <= MOST_OF_SIDES
            && self.covered() + u32::from(block.size) + size <= self.most
            && self.linker.words() < MOST_WORDS;
        (fits && join != NONE).then_some(Sides { blocks, wish: !yes, join, jumps })
    }

    /// If a block can be a side of a conditional, returns the slot and the flow instruction at the end of the block.
    /// The conditional has `jumps` jumps to the block.
    fn side(&self, number: u32, jumps: u32) -> Option<(u16, &'a Step)> {
        let block = self.lowered.blocks.get(number as usize)?;
        let Last::Flow(flow) = block.last else { return None };
        let step = &self.lowered.flows[flow as usize];
        let computes =
            |operations: Range<u32>| self.has_templates(operations.clone()) && !self.judges(operations);
        let fits = self.chosen[number as usize]
            && self.targets[number as usize] == jumps
            && !self.absorbed[number as usize]
            && !(block.kills || block.ends || step.reads_alu_result())
            && self.instructions(block).all(computes);
        fits.then_some((block.first + block.size - 1, step))
    }

    /// Traces the sides of a branch.
    fn sides(&mut self, Sides { blocks, wish, .. }: &Sides) {
        self.linker.open(0, |way| way.judged(*wish));
        self.linker.both(|way| way.alu_result = None);
        let mut branches = [Branch::default(); 2];
        for (side, number) in blocks.iter().enumerate() {
            if side > 0 {
                self.linker.other();
            }
            let block = self.block(*number);
            for operations in self.instructions(block) {
                for number in operations {
                    self.compute(number);
                }
                self.linker.both(Way::end);
            }
            if let Last::Flow(flow) = block.last {
                self.linker.need(self.lowered.flows[flow as usize].needs());
            }
            let [size, count] = self.piece(vec![block.slots()]);
            branches[side] = Branch { size, count, always: 0 };
            self.absorbed[*number as usize] = true;
            if let Some(open) = &mut self.open {
                open.before += size;
            }
        }
        self.linker.close(branches);
    }

    /// Returns whether, at the end of a block, a value of compiled code contains the ALU result of the active lanes.
    /// Returns `None` if a called operation sets the ALU result. The call then stores the ALU result in the group.
    fn judged(&self, block: &'a Block) -> Option<bool> {
        let mut known = false;
        for operations in self.instructions(block) {
            let templates = self.has_templates(operations.clone());
            if self.judges(operations) {
                known = true;
                if !templates {
                    return None;
                }
            } else {
                known &= templates;
            }
        }
        Some(known)
    }

    /// Traces the instructions of a block. If `passes` is set, compiled code executes the flow instruction of the
    /// block.
    fn execute(&mut self, number: u32, passes: bool) {
        let block = self.block(number);
        let goes_on = self.open.is_some();
        let flow = match block.last {
            Last::Flow(flow) => Some(&self.lowered.flows[flow as usize]),
            Last::Next | Last::Reference => None,
        };
        for (place, operations) in self.instructions(block).enumerate() {
            let (first, is_first) = (place as u16, place == 0 && !goes_on);
            let at = At { block: number, first, is_first, is_inside: false };
            let is_flow = place + 1 == usize::from(block.size) && flow.is_some();
            if is_flow && !passes {
                if self.open.is_none() {
                    self.at(at, |_| false);
                }
                break;
            }
            if self.is_called(operations.clone()) || !passes && self.judges(operations.clone()) {
                self.call(at, operations);
            } else if is_flow {
                self.at(at, |open| open.call.is_some() || open.is_inside);
                self.linker.need(flow.map_or(0, Step::needs));
            } else {
                self.operate(at, operations);
            }
            if let Some(open) = &mut self.open {
                let slot = usize::from(block.first) + place;
                match open.slots.last_mut() {
                    Some(slots) if slots.end == slot => slots.end += 1,
                    _ => open.slots.push(slot..slot + 1),
                }
            }
        }
    }

    /// Traces an instruction, with calls for the operations that have no template.
    fn operate(&mut self, mut at: At, operations: Range<u32>) {
        // The node that sets the ALU result also executes the flow instruction that reads the ALU result. A node with a
        // flow instruction runs only if the conditions of the flow instruction hold. But a node that begins inside an
        // instruction must always run. So the node that sets the ALU result must not begin inside an instruction.
        let judges = self.judges(operations.clone());
        if operations.is_empty() || judges {
            self.at(at, |open| open.call.is_some() || judges && open.is_inside);
        }
        for number in operations {
            let place = number as usize;
            if self.has_template[place] {
                self.at(at, |open| open.call.is_some());
                self.compute(number);
            } else {
                self.call(at, number..number + 1);
            }
            at = At { is_first: false, is_inside: true, ..at };
        }
        // If the node has a call, the call still reads the intermediate results of the instruction. Otherwise, these
        // results are dead now.
        if self.open.as_ref().is_some_and(|open| open.call.is_none()) {
            self.linker.both(Way::end);
        }
    }

    /// Traces an operation that has a template.
    fn compute(&mut self, number: u32) {
        let place = number as usize;
        let (operation, template) = (&self.lowered.operations[place], self.lowered.templates[place]);
        self.linker.both(|way| {
            way.operation(operation, template);
        });
    }

    /// Traces a call for operations.
    fn call(&mut self, at: At, operations: Range<u32>) {
        // In a node with a call, lanes can leave the loop only after the call. So a call after a BREAK starts a new
        // node.
        self.at(at, |open| !open.own.leaves.is_empty());
        if let Some(open) = &mut self.open {
            // One call executes consecutive operations without a template.
            let start = open.call.as_ref().map_or(operations.start, |call| call.start);
            open.call = Some(start..operations.end);
        }
    }

    /// Prepares the open node for the next operations. Starts a new node if no node is open, or if `ends` returns true
    /// for the open node.
    fn at(&mut self, at: At, ends: impl FnOnce(&Open) -> bool) {
        let At { block, first, is_first, is_inside } = at;
        let judged = self.linker.slow.alu_result.is_some();
        let is_full = self.covered() >= self.most && first > 0 && !judged && !is_inside;
        if self.open.as_ref().is_some_and(|open| is_full || ends(open)) {
            let next = Target::Node(self.linker.next_node() + 1);
            self.end(Next::To(next), block, false, None);
        }
        let in_loop = self.loops[block as usize];
        let own = Own { block, first, in_loop, leaves: Vec::new(), ends: block, is_counted: false };
        let is_checked = is_first || is_full;
        self.open.get_or_insert(Open {
            own,
            slots: Vec::new(),
            before: 0,
            call: None,
            is_checked,
            is_inside,
        });
    }

    /// Adds a part with the instructions in `slots`. Each run of the part counts as one issue of each instruction.
    /// Returns the number of instructions and the index of the part.
    fn piece(&mut self, slots: Vec<Range<usize>>) -> [u32; 2] {
        let size = size(&slots);
        self.parts.push(slots);
        [size, self.linker.part()]
    }

    /// Traces a flow instruction at the end of a block, at which lanes may leave the loop.
    fn leave(&mut self, number: u32, Leave { wish, jump, blocks, .. }: &Leave) {
        let Some(open) = &mut self.open else { return };
        let slots = std::mem::take(&mut open.slots);
        open.own.leaves.push((number, *jump));
        open.before += size(&slots) + blocks.len() as u32;
        let piece = self.piece(slots);
        self.linker.leave(piece, Waits::For(0), |way| way.judged(*wish));
        self.linker.both(|way| way.alu_result = None);
        let slots: Vec<_> = blocks.iter().map(|block| self.block(*block).slots()).collect();
        if !slots.is_empty() {
            let counts = self.piece(slots);
            self.linker.apart(counts);
        }
        for block in blocks {
            self.absorbed[*block as usize] = true;
            if let Last::Flow(flow) = self.block(*block).last {
                self.linker.need(self.lowered.flows[flow as usize].needs());
            }
        }
    }

    /// Ends the open node in block `ends`. `is_counted` states whether compiled code counts the flow instruction of
    /// that block. If `wish` is set, a lane continues at the first target if the lane's ALU result equals `wish`.
    fn end(&mut self, next: Next, ends: u32, is_counted: bool, wish: Option<bool>) {
        let Some(Open { own, slots, before, call, is_checked, .. }) = self.open.take() else { return };
        let (node, own) = (self.linker.next_node(), Own { ends, is_counted, ..own });
        let repeats = match next {
            Next::Again(Target::Outside(block)) => self.starts[block as usize] == Some(node),
            _ => false,
        };
        let [size, part] = self.piece(slots);
        if is_checked {
            (self.checked, self.covered) = (node, 0);
        }
        match (call, wish) {
            (Some(call), _) => self.linker.call([size, part], call, next, own),
            (None, Some(wish)) => {
                self.linker.end([size, part], next, Some(&|way| way.judged(wish)), repeats, own);
            }
            (None, None) => self.linker.end([size, part], next, None, repeats, own),
        }
        self.linker.check_at(self.checked);
        self.covered += before + size;
    }
}
