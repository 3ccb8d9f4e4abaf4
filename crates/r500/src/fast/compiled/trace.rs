//! Forms regions from blocks: their entries, the order of their blocks, and their ends.
//!
//! A region begins at a block. It continues with the next block while that is known, past BREAKs at which some lanes
//! exit the loop. The region is a loop if it reaches the end of a loop that leads back to its entry.

use std::ops::Range;

use reconverge_isa::sets::NumberSet;
use reconverge_jit::{Back, Builder, Step};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::R500;
use super::{After, Found, Loop, Own};
use crate::fast::lower::{Block, Last, Lowered, NONE, Template};
use crate::flow::{self, InLoop};

/// Finds the regions of a program. Returns them with the numbers of their first blocks.
pub(super) fn regions(lowered: &Lowered, extent: Extent) -> Vec<(u32, Found)> {
    let heads: NumberSet = lowered
        .blocks
        .iter()
        .filter_map(|block| {
            let Last::Flow(number) = block.last else { return None };
            let ends = lowered.flows[number as usize].in_loop.is_some_and(|it| it.ends());
            (ends && block.jump != NONE).then_some(block.jump)
        })
        .collect();
    // Each operation is compiled once in a separate segment to check whether it has a template.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(lowered, true).operation(operation, *template))
        .collect();
    let trace = |head: u32| {
        let builder = Builder::new(extent, Way::new(lowered, false), Way::new(lowered, true));
        let (has_template, heads) = (&has_template, &heads);
        let tracer =
            Tracer { lowered, has_template, heads, head, builder, in_loop: None, ignores_uncovered: false };
        tracer.trace()
    };
    extent.choose(&heads, lowered.blocks.len() as u32, trace, Found::size)
}

/// A region that is being traced.
struct Tracer<'a> {
    lowered: &'a Lowered,
    /// Indexed by operation.
    has_template: &'a [bool],
    heads: &'a NumberSet,
    head: u32,
    builder: Builder<R500, Way<'a>>,
    in_loop: Option<Loop>,
    ignores_uncovered: bool,
}

impl<'a> Tracer<'a> {
    /// Traces one block after another.
    fn trace(mut self) -> Option<Found> {
        let mut number = self.head;
        let (back, after) = loop {
            let block = self.lowered.blocks.get(number as usize);
            let Some(block) = block.filter(|block| self.fits(number, block)) else {
                let first = block?.first;
                break (Back::Never, After::Before(first));
            };
            let flow = match block.last {
                Last::Flow(flow) => Some(&self.lowered.flows[flow as usize]),
                Last::Next | Last::Reference => None,
            };
            // The flow within the region, or `None` for an instruction that the fast engine runs.
            let within = flow.filter(|_| !block.ends);
            let within = within.and_then(|flow| Some((flow, self.within(block, flow)?)));
            let judges =
                |number: u32| matches!(self.lowered.templates[number as usize], Template::AluResult { .. });
            if within.is_none() && self.in_loop.is_some() && (block.start..block.end).any(judges) {
                // The ALU result does not exist after the region.
                break (Back::Never, After::Before(block.first));
            }
            self.execute(number, block, within.is_some());
            self.builder.instructions += u32::from(block.size);
            if flow.is_some() && within.is_none() || block.ends {
                break (Back::Never, After::Behind(number));
            }
            self.builder.step(Step::Run(block.size.into()), number);
            if let Some((flow, it)) = within {
                self.in_loop = Some(Loop { al: it.al()?, step: it.step() });
                self.ignores_uncovered |= it.ignores_uncovered();
                if it.ends() {
                    break (Back::Always, After::Behind(number));
                }
                self.leave(number, flow);
            }
            if block.fall == NONE || matches!(block.last, Last::Reference) {
                break (Back::Never, After::Before(block.first + block.size));
            }
            number = block.fall;
        };
        self.finish(back, after, number)
    }

    /// Returns whether all of a block except for its flow can be in the region.
    fn fits(&self, number: u32, block: &Block) -> bool {
        let called = |number: u32| {
            let template = self.lowered.templates[number as usize];
            !self.has_template[number as usize] || matches!(template, Template::AluResult { .. })
        };
        let calls = (block.start..block.end).filter(|number| called(*number)).count();
        let neighbours = |number: u32| self.operation(number).1 == Template::Neighbours;
        // A loop that begins in this block has a region of its own.
        let other_loop =
            self.heads.contains(number) && (number != self.head || self.builder.instructions > 0);
        let known = block.al.is_none() && block.split.is_none() && !block.kills && !block.inactive;
        !other_loop
            && !self.builder.ran().any(|block| block == number)
            && known
            && block.size > 0
            && !(block.start..block.end).any(neighbours)
            && self.builder.has_room(block.size.into(), calls, 0)
    }

    fn operation(&self, number: u32) -> (&'a crate::fast::lanes::Operation, Template) {
        (&self.lowered.operations[number as usize], self.lowered.templates[number as usize])
    }

    /// Returns a BREAK whose votes are the ALU result, or the end of the region's loop.
    fn within(&self, block: &Block, flow: &flow::Step) -> Option<InLoop> {
        let it = flow.in_loop?;
        it.al()?;
        let always = flow.wants == [u64::MAX; 4];
        if it.ends() {
            // In strict mode, a loop end that reads an invalid ALU result traps, even if it jumps for every result.
            let goes_back = block.jump == self.head && always && !flow.reads_alu_result();
            return goes_back.then_some(it);
        }
        // The votes are this block's ALU result for all active lanes. Calls come before it.
        let result = (block.start..block.end).rev().find_map(|number| {
            let template = self.lowered.templates[number as usize];
            let computes = self.has_template[number as usize];
            (!computes || matches!(template, Template::AluResult { .. })).then_some(computes)
        });
        let by_result = flow.wants == [0, 0, u64::MAX, u64::MAX] || flow.wants == [u64::MAX, u64::MAX, 0, 0];
        (by_result && result == Some(true) && flow.predicate.is_none() && !flow.inst.jump_any).then_some(it)
    }

    fn leave(&mut self, number: u32, flow: &flow::Step) {
        let holds = flow.wants[2] != 0;
        let step = |word| Step::Leave { word, arrives: false };
        self.builder.leave(number, step, |way| {
            let result = way.alu_result.take().unwrap_or_else(|| way.rows.strip.constant(0));
            if holds { result } else { way.rows.strip.not(result) }
        });
    }

    /// Adds the operations of a block. If its flow is `within` the region, the region uses the ALU result; otherwise
    /// the group holds it.
    fn execute(&mut self, number: u32, block: &Block, within: bool) {
        let mut called: Option<Range<u32>> = None;
        let mut slot = usize::from(block.first);
        for at in block.start..block.end {
            while self.lowered.ends[slot] <= at {
                slot += 1;
                if called.is_none() {
                    self.builder.both(Way::end);
                }
            }
            let (operation, template) = self.operation(at);
            let result = matches!(template, Template::AluResult { .. });
            if self.has_template[at as usize] && (within || !result) {
                if let Some(range) = called.take() {
                    self.builder.call(number, range);
                }
                self.builder.both(|way| {
                    way.operation(operation, template);
                });
                self.builder.templates += match template {
                    Template::Channels(_, count) => count,
                    _ => 1,
                };
            } else {
                let start = called.take().map_or(at, |range| range.start);
                called = Some(start..at + 1);
            }
        }
        match called {
            Some(range) => self.builder.call(number, range),
            None => self.builder.both(Way::end),
        }
    }

    fn finish(self, back: Back, after: After, number: u32) -> Option<Found> {
        let Tracer { lowered, head, builder, in_loop, ignores_uncovered, .. } = self;
        let block = |number: u32| &lowered.blocks[number as usize];
        let (next, rest) = match after {
            After::Before(_) => (number, 0),
            After::Behind(_) if back != Back::Never => (number + 1, 0),
            // The fast engine counts this block.
            After::Behind(_) => (number + 1, block(number).size.into()),
        };
        let own = Own { after, in_loop, ignores_uncovered };
        let mut found = builder.finish(back, block(head).first.into(), next, own)?;
        found.most += rest;
        Some(found)
    }
}
