//! Traces a program: turns blocks of the fast engine into nodes of linked code.
//!
//! A node is a chain of blocks. Each block after the first is reached only from the block before it. The chain may
//! contain BREAKs at which some lanes leave the loop. A node also ends before an instruction without a template. That
//! instruction begins a node that calls the fast engine.

use std::ops::Range;

use reconverge_jit::{Linker, Next, Target, Waits};
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

/// The traced nodes, and the slots of the instructions in each part. Compiled code counts the runs of each part.
type Found = (reconverge_jit::Traced<R500>, Vec<Range<usize>>);

/// Traces a program.
pub(super) fn trace(lowered: &Lowered, extent: Extent) -> Found {
    // To find out whether an operation has a template, emit it in a separate node.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(lowered, true).operation(operation, *template))
        .collect();
    let count = lowered.blocks.len();
    let (mut targets, mut loops) = (vec![false; count], Vec::new());
    for (number, block) in lowered.blocks.iter().enumerate() {
        let Last::Flow(flow) = block.last else { continue };
        let step = &lowered.flows[flow as usize];
        let target = block.jump as usize;
        if let Some(is_target) = targets.get_mut(target) {
            *is_target = true;
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
        // A loop with two end instructions that add different numbers to aL is not compiled as a loop.
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
#[derive(Clone, Copy, Debug)]
enum Flow {
    /// All lanes go to the target.
    To(Target),
    /// The lanes with this ALU result go to the first target. The other lanes go to the second.
    Either([Target; 2], bool),
    /// The lanes with this ALU result leave the loop.
    Break(bool),
    /// All lanes start another iteration of the loop.
    Round(Target),
}

/// Returns the target for a block. For [`NONE`], flow control determines the target.
fn to_block(block: u32) -> Target {
    match block {
        NONE => Target::Flow,
        block => Target::Outside(block),
    }
}

/// A block, the index of an instruction in the block, and whether a chain begins at that instruction.
type At = (u32, u16, bool);

/// The node that is being traced.
struct Open {
    own: Own,
    /// The slots of the node's instructions after the last BREAK of the node, and the number of its earlier
    /// instructions.
    slots: Range<usize>,
    before: u32,
    call: Option<Range<u32>>,
    /// Whether compiled code checks the instruction budget at the entry of the node.
    is_checked: bool,
}

/// The state of tracing a program.
struct Tracer<'a> {
    lowered: &'a Lowered,
    /// Whether each operation has a template.
    has_template: Vec<bool>,
    /// For each block, whether it is compiled (`chosen`), whether flow instructions jump to it (`targets`), and whether
    /// it is part of the node of an earlier block (`absorbed`).
    chosen: Vec<bool>,
    targets: Vec<bool>,
    absorbed: Vec<bool>,
    /// The innermost loop around each block.
    loops: Vec<Option<Loop>>,
    /// Maximum number of instructions in a node.
    most: u32,
    linker: Linker<R500, Way<'a>>,
    /// The node that begins at each block.
    starts: Vec<Option<u32>>,
    parts: Vec<Range<usize>>,
    open: Option<Open>,
    /// The latest node at which compiled code checks the budget, and the number of instructions that this check covers
    /// so far.
    checked: u32,
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

    /// Returns whether compiling saves enough dispatches of operations, either in loops or in the whole program.
    fn pays(&self, extent: Extent) -> bool {
        let gain = |number: usize| -> i32 {
            let block = &self.lowered.blocks[number];
            let of = |operations: Range<u32>| match self.has_templates(operations.clone()) {
                true => operations
                    .map(|number| match self.lowered.templates[number as usize] {
                        Template::Channels(_, count) => 2 * count as i32,
                        _ => 2,
                    })
                    .sum(),
                false => -8,
            };
            self.instructions(block).map(of).sum()
        };
        let all = |once: bool| -> i32 {
            let counts = |number: &usize| self.chosen[*number] && (once || self.loops[*number].is_some());
            (0..self.loops.len()).filter(counts).map(gain).sum()
        };
        extent.pays(all(false), false) || extent.pays(all(true), true)
    }

    /// Traces a chain of blocks from block `first` on.
    fn chain(&mut self, first: u32) {
        let mut number = first;
        self.covered = 0;
        self.starts[first as usize] = Some(self.linker.next_node());
        loop {
            let block = self.block(number);
            let flow = self.flow(block);
            self.execute(number, flow.is_some());
            let (next, wish) = match flow {
                None if !matches!(block.last, Last::Next) || block.kills || block.ends => {
                    return self.end(Next::To(Target::Flow), number, false, None);
                }
                Some(Flow::Break(wish)) => {
                    self.leave(number, wish);
                    (Next::To(to_block(block.fall)), None)
                }
                None => (Next::To(to_block(block.fall)), None),
                Some(Flow::To(target)) => (Next::To(target), None),
                Some(Flow::Round(target)) => (Next::Again(target), None),
                Some(Flow::Either(targets, wish)) => (Next::Either(targets), Some(wish)),
            };
            let falls = matches!(flow, None | Some(Flow::Break(_)));
            if falls && self.continues(block.fall) {
                number = block.fall;
                self.absorbed[number as usize] = true;
                continue;
            }
            return self.end(next, number, !falls, wish);
        }
    }

    /// Returns whether block `number` can be appended to the current chain.
    fn continues(&self, number: u32) -> bool {
        let place = number as usize;
        let Some(block) = self.lowered.blocks.get(place) else { return false };
        self.chosen[place]
            && !self.targets[place]
            && !self.absorbed[place]
            && self.covered() + u32::from(block.size) <= self.most
    }

    /// Returns the number of instructions since compiled code last checked the budget.
    fn covered(&self) -> u32 {
        self.covered + self.open.as_ref().map_or(0, |open| open.before + open.slots.len() as u32)
    }

    /// Returns the number of BREAKs in the open node at which lanes may leave the loop.
    fn leaves(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.own.leaves.len())
    }

    /// Returns how compiled code executes the flow instruction of a block, or `None` if flow control executes it.
    fn flow(&self, block: &Block) -> Option<Flow> {
        let Last::Flow(number) = block.last else { return None };
        let step = &self.lowered.flows[number as usize];
        let known = self.judged(block)?;
        let [no, yes] = step.votes().filter(|_| !block.ends && !block.kills)?;
        // In strict mode, an instruction that reads an invalid ALU result traps, even if its vote is the same for both
        // values of the ALU result.
        if (no != yes || step.reads_alu_result()) && !known {
            return None;
        }
        if step.repeats().is_some() {
            return Some(Flow::Round(to_block(block.jump)));
        }
        if step.breaks() && no != yes && block.fall != NONE && self.leaves() < MOST_LEAVES {
            return Some(Flow::Break(yes));
        }
        let pc = block.first + block.size - 1;
        let passes = |jump: bool| step.passes_to(pc, jump).map(|slot| to_block(self.lowered.block_at(slot)));
        match no == yes {
            true => passes(yes).map(Flow::To),
            false => Some(Flow::Either([passes(true)?, passes(false)?], yes)),
        }
    }

    /// Returns whether compiled code has the ALU result of the active lanes as a value at the end of a block. Returns
    /// `None` if a called operation sets the ALU result, which is then stored in the group.
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
            let at = (number, place as u16, place == 0 && !goes_on);
            let is_flow = place + 1 == usize::from(block.size) && flow.is_some();
            if is_flow && !passes {
                if self.open.is_none() {
                    self.at(at, |_| false);
                }
                break;
            }
            let calls = !self.has_templates(operations.clone()) || !passes && self.judges(operations.clone());
            if calls {
                self.call(at, operations);
            } else if is_flow {
                self.at(at, |_| false);
                self.linker.need(flow.map_or(0, Step::needs));
            } else {
                self.at(at, |open| open.call.is_some());
                self.operate(operations);
            }
            if let Some(open) = &mut self.open {
                open.slots.end += 1;
            }
        }
    }

    /// Traces an instruction whose operations have templates.
    fn operate(&mut self, operations: Range<u32>) {
        for number in operations {
            let (operation, template) =
                (&self.lowered.operations[number as usize], self.lowered.templates[number as usize]);
            self.linker.both(|way| {
                way.operation(operation, template);
            });
        }
        self.linker.both(Way::end);
    }

    /// Traces an instruction as a call of the fast engine.
    fn call(&mut self, at: At, operations: Range<u32>) {
        let open = self.open.as_mut().filter(|_| !at.2);
        // Consecutive instructions share one call.
        if let Some(range) = open.and_then(|open| open.call.as_mut()) {
            range.end = operations.end;
            return;
        }
        self.at(at, |_| true);
        if let Some(open) = &mut self.open {
            open.call = Some(operations);
        }
    }

    /// Prepares the open node for the next instruction. Starts a new node if none is open, if the open node is full, or
    /// if `ends` returns true for it.
    fn at(&mut self, (block, first, is_first): At, ends: impl FnOnce(&Open) -> bool) {
        let judged = self.linker.slow.alu_result.is_some();
        let is_full = self.covered() >= self.most && first > 0 && !judged;
        if self.open.as_ref().is_some_and(|open| is_full || ends(open)) {
            let next = Target::Node(self.linker.next_node() + 1);
            self.end(Next::To(next), block, false, None);
        }
        let slot = usize::from(self.block(block).first + first);
        let in_loop = self.loops[block as usize];
        let own = Own { block, first, in_loop, leaves: Vec::new(), ends: block, is_counted: false };
        let is_checked = is_first || is_full;
        self.open.get_or_insert(Open { own, slots: slot..slot, before: 0, call: None, is_checked });
    }

    /// Adds a part that consists of the instructions in these slots. A run of the part counts as an issue of each of
    /// these instructions. Returns the number of instructions and the index of the part.
    fn piece(&mut self, slots: Range<usize>) -> [u32; 2] {
        let size = slots.len() as u32;
        self.parts.push(slots);
        [size, self.linker.part()]
    }

    /// Traces a BREAK: the lanes whose ALU result is `wish` leave the loop.
    fn leave(&mut self, number: u32, wish: bool) {
        let Some(open) = &mut self.open else { return };
        let end = open.slots.end;
        let slots = std::mem::replace(&mut open.slots, end..end);
        open.own.leaves.push(number);
        open.before += slots.len() as u32;
        let piece = self.piece(slots);
        self.linker.leave(piece, Waits::For(0), |way| way.judged(wish));
        self.linker.both(|way| way.alu_result = None);
    }

    /// Ends the open node in block `ends`. `is_counted` states whether compiled code counts the flow instruction of
    /// that block. The lanes whose ALU result is `wish` take the first target.
    fn end(&mut self, next: Next, ends: u32, is_counted: bool, wish: Option<bool>) {
        let Some(Open { own, slots, before, call, is_checked }) = self.open.take() else { return };
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
