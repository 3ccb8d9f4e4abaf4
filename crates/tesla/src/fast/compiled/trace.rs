//! From blocks to regions: where they begin, what follows what, and where they end.
//!
//! A region begins at a block. It continues with the next block for as long as that is known, through conditionals whose sides
//! meet, past branches with which some lanes exit. It is a loop if it comes back to its entry.

use std::collections::BTreeSet;

use reconverge_jit::{Back, Builder, Step};
use reconverge_simt::compiling::Extent;

use super::code::{Program, Way};
use super::run::Tesla;
use super::{Access, After, At, Call, Found, Gone, Is, Own, Registers};
use crate::context::Context;
use crate::fast::lower::{Block, Last, Lowered, NONE};
use crate::flow::TAKEN_SIDE_RUNS_FIRST;
use crate::inst::{Arith, Base, Control, Dst, Guard, Inst, Memory, Op, Operand};
use crate::lane::integer::Addition;

/// The maximum of blocks of a region.
const MOST_BLOCKS: usize = 64;

/// Templates that a load or store is as good as.
const ACCESS: usize = 3;

/// Finds the regions of a program.
pub(super) fn regions(
    context: &Context,
    lowered: &Lowered,
    program: &Program<'_>,
    extent: Extent,
) -> Vec<(u32, Found)> {
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    if context.code.slots().flatten().any(quads) {
        return Vec::new();
    }
    let heads = heads(context, lowered);
    let trace = |head| {
        let mut tracer = Tracer {
            context,
            lowered,
            program,
            builder: Builder::new(extent, Way::new(program, false), Way::new(program, true)),
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

/// Where a segment began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Nowhere yet: with the next block.
    Not,
    /// Where the warp can continue without the region: at a block, or at a load or store.
    Anywhere,
    /// In the middle of a block.
    Inside,
}

/// A region while it is traced.
struct Tracer<'a> {
    context: &'a Context,
    lowered: &'a Lowered,
    program: &'a Program<'a>,
    builder: Builder<Tesla, Way<'a>>,
    /// Where the current segment began.
    begun: Begun,
    blocks: Vec<u32>,
    registers: Registers,
    /// Entries of the stack that must be free, and whether one more for each lane that exits.
    entries: usize,
    branches: bool,
}

impl<'a> Tracer<'a> {
    fn block(&self, number: u32) -> Option<&'a Block> {
        self.lowered.blocks.get(number as usize)
    }

    /// The instructions of a block except for its flow.
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

    /// Traces block after block. Returns whether control comes back, and where the warp continues otherwise.
    fn blocks_from(&mut self, head: u32, heads: &BTreeSet<u32>) -> Option<(Back, After)> {
        let mut number = head;
        loop {
            let block = self.block(number)?;
            let seen = self.blocks.contains(&number);
            let begins = number == head && self.blocks.is_empty();
            if seen
                || (!begins && heads.contains(&number))
                || self.blocks.len() >= MOST_BLOCKS
                || matches!(block.last, Last::Reference | Last::Discard { .. } | Last::Bar { .. })
                || !self.builder.has_room(block.size, 3, 0)
            {
                return Some((Back::Never, After::Before(number)));
            }
            self.builder.instructions += block.size;
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

    /// Lanes exit at the end of a block: those for which the guard holds, or does not hold.
    fn leave(&mut self, number: u32, (guard, holds): (Guard, bool), gone: Gone, arrives: bool) {
        // The entries of the stack come in the order of iterations.
        let branches = matches!(gone, Gone::Branches { .. });
        let step = |word| if branches { Step::LeaveInIteration(word) } else { Step::Leave { word, arrives } };
        self.builder.leave(At { block: number, is: Is::Exit(gone) }, step, |way| way.lanes(guard, holds));
        self.entries = self.entries.max(usize::from(arrives));
        self.branches |= branches;
    }

    /// The code after a `joinat`, if it is a conditional whose sides are templates only. Returns the block of the join.
    fn conditional(&mut self, number: u32) -> Option<u32> {
        let conditional = self.lowered.conditionals[number as usize]?;
        let diamond = conditional.diamond;
        let templates = |block: u32| {
            block == NONE
                || self.instructions(block).iter().all(|inst| {
                    // Probed in a segment of its own.
                    Way::new(self.program, true).instruction(inst)
                })
        };
        if ![diamond.taken.block, diamond.not.block].into_iter().all(templates) {
            return None;
        }
        // The region executes the join, so that no other engine does.
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
        let guard = self.guard(conditional.branch);
        let at = At { block: conditional.branch, is: Is::Block };
        self.builder.open(at, |way| way.lanes(guard, true));
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

    /// The instructions of a block except for its flow.
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
                    self.builder.templates += ACCESS;
                    continue;
                }
            } else if (!accesses || self.loads(number, inst)) && self.builder.fast.instruction(inst) {
                if !self.builder.slow.instruction(inst) {
                    return None;
                }
                self.builder.templates += if accesses { ACCESS } else { 1 };
                continue;
            }
            let access = match block.last {
                Last::Memory(access) if accesses => Some(access),
                _ => None,
            };
            if range.is_empty() && access.is_none() {
                continue;
            }
            let registers = registers(inst);
            self.call(number, Call { operations: range, access: Access(access), registers })?;
        }
        self.builder.step(Step::Run(block.size), At { block: number, is: Is::Block });
        Some(())
    }

    /// A segment begins before a block, or at its load or store.
    fn begin(&mut self, block: u32, at_access: bool) {
        self.builder.begin(At { block, is: if at_access { Is::Access } else { Is::Block } });
        self.begun = Begun::Anywhere;
    }

    /// Ends the segment before the load or store of a block, and begins another.
    fn cut(&mut self, block: u32) {
        self.end_segment();
        self.begin(block, true);
    }

    /// Whether the load of a block has a template. Then the segment is one that can check at its entry whether all lanes can
    /// load.
    fn loads(&mut self, block: u32, inst: &Inst) -> bool {
        let reaches =
            |operand: &Operand| matches!(operand, Operand::Mem(mem) if self.builder.slow.reaches(mem));
        let reaches = inst.src.iter().any(reaches);
        if reaches && self.begun != Begun::Anywhere {
            self.cut(block);
        }
        reaches
    }

    /// The store of a block, if it has a template: at the end of a segment that loads nothing, because strips run one after
    /// another.
    fn store(&mut self, block: u32, inst: &Inst) -> bool {
        let Operand::Mem(mem) = inst.src[0] else { return false };
        if !self.builder.slow.reaches(&mem)
            || !matches!(inst.src[1], Operand::R32(_))
            || inst.lanes & 15 != 15
        {
            return false;
        }
        if inst.gate().is_some_and(|register| usize::from(register) >= self.program.registers) {
            return true; // It vanishes. (1.4)
        }
        if self.begun != Begun::Anywhere || self.builder.slow.loads() {
            self.cut(block);
        }
        let mut done = true;
        self.builder.both(|way| done &= way.store_shared(inst).is_some());
        debug_assert!(done, "a store that has a template");
        self.end_segment();
        self.begun = Begun::Not;
        done
    }

    /// Ends the segment with a call.
    fn call(&mut self, block: u32, call: Call) -> Option<()> {
        if !self.builder.has_room(0, 1, 0) {
            return None;
        }
        self.note_registers();
        self.registers.touched |= call.registers;
        self.registers.written |= call.registers;
        self.begun = if call.access.0.is_some() { Begun::Not } else { Begun::Inside };
        self.builder.call(At { block, is: Is::Block }, call);
        Some(())
    }

    fn end_segment(&mut self) {
        self.note_registers();
        self.builder.end_segment();
    }

    /// Notes the registers of the segment that ends.
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
