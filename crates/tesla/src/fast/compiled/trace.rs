//! Finds regions in blocks: their entry, their order of blocks, and their end.
//!
//! A region begins at a block. It continues with the next block as long as that is known: through conditionals
//! whose sides meet, and past branches at which some lanes exit. It is a loop if it returns to its entry.

use std::ops::Range;

use reconverge_isa::sets::NumberSet;
use reconverge_jit::{Back, Builder, Step};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::Tesla;
use super::{Access, After, At, Call, Found, Gone, Is, Own, Registers};
use crate::context::Context;
use crate::fast::lower::{self, Block, Last, Lowered, NONE, Test};
use crate::fast::words::Kind;
use crate::flow::TAKEN_SIDE_RUNS_FIRST;
use crate::inst::{Control, Inst, Op};
use crate::uses::{Place, accesses};

/// Maximum number of blocks in a region.
const MOST_BLOCKS: usize = 64;

/// Number of templates that a load or store is worth.
const ACCESS: usize = 3;

/// Finds the regions of a program.
pub(super) fn regions(context: &Context, lowered: &Lowered, extent: Extent) -> Vec<(u32, Found)> {
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    if context.code.slots().flatten().any(quads) {
        return Vec::new();
    }
    let heads = heads(context, lowered);
    // Each operation is probed once, in a separate segment.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|((_, operation), template)| Way::new(lowered, true).operation(operation, template))
        .collect();
    let trace = |head| {
        let mut tracer = Tracer {
            context,
            lowered,
            has_template: &has_template,
            builder: Builder::new(extent, Way::new(lowered, false), Way::new(lowered, true)),
            begun: Begun::Not,
            blocks: Vec::new(),
            registers: Registers { touched: 0, written: 0, fresh: 0 },
            entries: 0,
            branches: false,
        };
        let (back, after) = tracer.blocks_from(head, &heads)?;
        tracer.finish(back, after, head)
    };
    extent.choose(&heads, lowered.blocks.len() as u32, trace, Found::size)
}

/// Returns the blocks to which a branch jumps back.
fn heads(context: &Context, lowered: &Lowered) -> NumberSet {
    let back = |block: &Block| match block.last {
        Last::Bra { target, .. } if target <= block.last_pc => {
            let head = lowered.starts[context.code.place(target)?];
            lowered.blocks.get(head as usize).is_some_and(|block| !block.join).then_some(head)
        }
        _ => None,
    };
    lowered.blocks.iter().filter_map(back).collect()
}

/// The start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// The segment begins with the next block.
    Not,
    /// The segment begins at a position where the warp can continue without the region: a block, or a load or store.
    Anywhere,
    /// The segment begins in the middle of a block.
    Inside,
}

/// A region during tracing.
struct Tracer<'a> {
    context: &'a Context,
    lowered: &'a Lowered,
    /// Whether each operation has a template.
    has_template: &'a [bool],
    builder: Builder<Tesla, Way<'a>>,
    /// The start of the current segment.
    begun: Begun,
    blocks: Vec<u32>,
    registers: Registers,
    /// Number of stack entries that must be free, and whether one more is needed for each lane that exits.
    entries: usize,
    branches: bool,
}

impl<'a> Tracer<'a> {
    fn block(&self, number: u32) -> Option<&'a Block> {
        self.lowered.blocks.get(number as usize)
    }

    /// Traces consecutive blocks. Returns whether control returns to the entry, and where the warp continues
    /// otherwise.
    fn blocks_from(&mut self, head: u32, heads: &NumberSet) -> Option<(Back, After)> {
        let mut number = head;
        loop {
            let block = self.block(number)?;
            let seen = self.blocks.contains(&number);
            let begins = number == head && self.blocks.is_empty();
            if seen
                || (!begins && heads.contains(number))
                || self.blocks.len() >= MOST_BLOCKS
                || matches!(block.last, Last::Reference | Last::Discard { .. } | Last::Bar { .. })
                || !self.builder.has_room(block.size, 3, 0)
            {
                return Some((Back::Never, After::Before(number)));
            }
            self.builder.instructions += block.size;
            self.blocks.push(number);
            self.execute(number)?;
            // A join at the entry would have to be executed in each iteration.
            let joins = self.block(head)?.join;
            let is_back = |target: u32| {
                !joins
                    && self.context.code.place(target).is_some_and(|place| self.lowered.starts[place] == head)
            };
            match block.last {
                _ if block.exit => return Some((Back::Never, After::Behind(number))),
                Last::Next | Last::Memory(_) if block.fall != NONE => number = block.fall,
                Last::Bra { target, guard } if guard.always => {
                    if is_back(target) {
                        return Some((Back::Always, After::Behind(number)));
                    }
                    if block.jump == NONE {
                        return Some((Back::Never, After::Behind(number)));
                    }
                    number = block.jump;
                }
                // The lanes that jump back run first. The others wait, with one stack entry per iteration.
                Last::Bra { target, guard } if is_back(target) && TAKEN_SIDE_RUNS_FIRST => {
                    self.leave(number, (&guard, false), Gone::Branches { next: block.next }, false);
                    return Some((Back::Always, After::Behind(number)));
                }
                Last::Bra { target, guard } if block.fall != NONE && self.is_join(target) => {
                    self.leave(number, (&guard, true), Gone::Waits, true);
                    number = block.fall;
                }
                Last::Break { guard } if !guard.always && block.fall != NONE => {
                    self.leave(number, (&guard, true), Gone::Breaks, false);
                    number = block.fall;
                }
                Last::Ret { guard } if !guard.always && block.fall != NONE => {
                    self.leave(number, (&guard, true), Gone::Returns, false);
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

    /// Adds the exit of lanes at the end of a block: those for which the guard holds, or does not hold.
    fn leave(&mut self, number: u32, (guard, holds): (&Test, bool), gone: Gone, arrives: bool) {
        // The entries of the stack are in the order of iterations.
        let branches = matches!(gone, Gone::Branches { .. });
        let step = |word| if branches { Step::LeaveInIteration(word) } else { Step::Leave { word, arrives } };
        self.builder.leave(At { block: number, is: Is::Exit(gone) }, step, |way| way.lanes(guard, holds));
        self.entries = self.entries.max(usize::from(arrives));
        self.branches |= branches;
    }

    /// Traces the code after a `joinat`, if it is a conditional whose sides are templates only. Returns the block
    /// of the join.
    fn conditional(&mut self, number: u32) -> Option<u32> {
        let conditional = self.lowered.conditionals[number as usize]?;
        let diamond = conditional.diamond;
        let templates =
            |number: u32| self.block(number).is_none_or(|block| self.has_templates(block.start..block.end));
        if ![diamond.taken.block, diamond.not.block].into_iter().all(templates) {
            return None;
        }
        // The region executes the join, so other engines must not.
        let joins = self.block(conditional.joins)?;
        let size = [conditional.branch, diamond.taken.block, diamond.not.block].into_iter();
        let size: u32 = size.filter_map(|block| self.block(block)).map(|block| block.size).sum();
        let inside = [conditional.branch, diamond.taken.block, diamond.not.block, conditional.joins];
        if matches!(joins.last, Last::Reference | Last::Discard { .. } | Last::Bar { .. } | Last::Memory(_))
            || self.blocks.len() + 4 > MOST_BLOCKS
            || inside.iter().any(|block| *block != NONE && self.blocks.contains(block))
            || !self.builder.has_room(size + joins.size, 9, 1)
        {
            return None;
        }
        self.builder.instructions += size;
        self.blocks.push(conditional.branch);
        self.execute(conditional.branch)?;
        let at = At { block: conditional.branch, is: Is::Block };
        self.builder.open(at, |way| way.lanes(&conditional.guard, true));
        self.side(diamond.taken.block)?;
        self.builder.other(at);
        self.side(diamond.not.block)?;
        self.builder.close(at);
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

    /// Traces the instructions of a block except for its flow.
    fn execute(&mut self, number: u32) -> Option<()> {
        let block = self.block(number)?;
        if self.begun == Begun::Not {
            self.begin(number, false);
        }
        let inside = &self.lowered.inside[number as usize];
        let mut start = block.start;
        for (place, end) in inside.places.iter().zip(&inside.ends) {
            let operations = std::mem::replace(&mut start, *end)..*end;
            if self.has_templates(operations.clone()) {
                self.operate(operations)?;
                self.builder.templates += 1;
            } else {
                self.call(number, operations, None, *place)?;
            }
        }
        if let Last::Memory(access) = block.last {
            self.access(number, start..block.end, access)?;
        }
        self.builder.step(Step::Run(block.size), At { block: number, is: Is::Block });
        Some(())
    }

    fn has_templates(&self, mut operations: Range<u32>) -> bool {
        operations.all(|number| self.has_template[number as usize])
    }

    /// Traces operations that have templates.
    fn operate(&mut self, operations: Range<u32>) -> Option<()> {
        let mut done = true;
        for number in operations {
            let ((_, operation), template) =
                (&self.lowered.operations[number as usize], &self.lowered.templates[number as usize]);
            self.builder.both(|way| done &= way.operation(operation, template));
        }
        done.then_some(())
    }

    /// Traces the load or store at the end of a block, and the operations of its instruction before it.
    fn access(&mut self, block: u32, before: Range<u32>, number: u32) -> Option<()> {
        let lower::Access { transfer, after } = &self.lowered.accesses[number as usize];
        let templates = self.has_templates(before.clone()) && self.has_templates(after.clone());
        if !templates || !self.builder.slow.reaches(transfer) {
            let place = *self.lowered.inside[block as usize].places.last()?;
            return self.call(block, before, Some(number), place);
        }
        // The segment checks at its entry whether all lanes can execute the access. A store ends a segment and must
        // not follow a load in it, because strips run one after another.
        let stores = matches!(transfer.kind, Kind::Store { .. });
        if self.begun != Begun::Anywhere || stores && self.builder.slow.loads() {
            self.cut(block);
        }
        self.operate(before)?;
        let mut done = true;
        self.builder.both(|way| done &= way.transfer(transfer).is_some());
        self.operate(after.clone())?;
        if stores {
            self.end_segment();
            self.begun = Begun::Not;
        }
        self.builder.templates += ACCESS;
        done.then_some(())
    }

    /// Begins a segment before a block, or at its load or store.
    fn begin(&mut self, block: u32, at_access: bool) {
        self.builder.begin(At { block, is: if at_access { Is::Access } else { Is::Block } });
        self.begun = Begun::Anywhere;
    }

    /// Ends the segment before the load or store of a block, and begins another.
    fn cut(&mut self, block: u32) {
        self.end_segment();
        self.begin(block, true);
    }

    /// Ends the segment with a call of the operations of the instruction at an index of the code.
    fn call(&mut self, block: u32, operations: Range<u32>, access: Option<u32>, place: usize) -> Option<()> {
        if !self.builder.has_room(0, 1, 0) {
            return None;
        }
        let registers = self.context.code.slot(place).map_or(0, |inst| registers(self.context, inst));
        self.note_registers();
        self.registers.touched |= registers;
        self.registers.written |= registers;
        self.begun = if access.is_some() { Begun::Not } else { Begun::Inside };
        let call = Call { operations, access: Access(access), registers };
        self.builder.call(At { block, is: Is::Block }, call);
        Some(())
    }

    fn end_segment(&mut self) {
        self.note_registers();
        self.builder.end_segment();
    }

    /// Records the registers of the segment that ends.
    fn note_registers(&mut self) {
        let Builder { fast, slow, .. } = &self.builder;
        if !self.builder.has_segments() {
            self.registers.fresh = fast.covers() & slow.covers();
        }
        self.registers.touched |= fast.touched() | slow.touched();
        self.registers.written |= fast.writes() | slow.writes();
    }

    fn finish(mut self, back: Back, after: After, head: u32) -> Option<Found> {
        self.note_registers();
        let next = self.blocks.iter().max().map_or(0, |last| last + 1);
        let Tracer { lowered, builder, registers, entries, branches, .. } = self;
        builder.finish(back, lowered.first_pc(head), next, Own { after, registers, entries, branches })
    }
}

/// Returns the `$c` and `$a` that an instruction reads or writes, by bit as in [`Way::touched`].
fn registers(context: &Context, inst: &Inst) -> u32 {
    let accesses = accesses(inst, context.stage);
    let places = accesses.reads.into_iter().map(|(place, ..)| place).chain(accesses.writes);
    places.fold(0, |all, place| match place {
        Place::C(register) => all | 1 << (register & 3),
        Place::A(register @ 1..=4) => all | 1 << (3 + register),
        _ => all,
    })
}
