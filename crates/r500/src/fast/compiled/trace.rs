//! From blocks to passes: where they begin, what follows what, and where they end.
//!
//! A pass begins at a block and goes on for as long as it is known what follows: to the next block, past BREAKs with which some
//! lanes leave the loop. It is a loop if it comes to the end of a loop that leads back to its beginning.

use std::collections::BTreeSet;
use std::ops::Range;

use reconverge_jit::{Back, Plan, Segment, Step};
use reconverge_simt::compiling::Extent;

use super::code::{Program, Way};
use super::{ACTIVE_ROW, After, CALLEE, Found, Loop, NONE};
use crate::fast::lower::{Block, Last, Lowered, Template};
use crate::flow::{self, InLoop};

/// Instructions of a pass at most: what a turn tries must fit into what a group may run at once.
const MOST_INSTRUCTIONS: u32 = 400;

/// Words of lanes that leave, the last ones of the state: between runs these are zero.
const LEAVES: u32 = 16;

/// The other words.
const WORDS: u32 = reconverge_jit::WORDS as u32 - LEAVES;

/// Finds the passes of a program, by the block where they begin.
pub(super) fn passes(lowered: &Lowered, extent: Extent) -> Vec<(u32, Found)> {
    let program = Program { constants: &lowered.constants, zero_wins: lowered.zero_wins };
    let heads: BTreeSet<u32> = lowered
        .blocks
        .iter()
        .filter_map(|block| {
            let Last::Flow(number) = block.last else { return None };
            let ends = lowered.flows[number as usize].in_loop.is_some_and(|it| it.ends());
            (ends && block.jump != NONE).then_some(block.jump)
        })
        .collect();
    // Asked of a segment of its own, once for each operation.
    let has_template: Vec<bool> = (lowered.operations.iter().zip(&lowered.templates))
        .map(|(operation, template)| Way::new(&program, true).operation(operation, *template))
        .collect();
    let trace = |head: u32| Tracer::new(lowered, &program, &has_template, &heads, extent, head).trace();
    extent.choose(&heads, lowered.blocks.len() as u32, trace, |found| (found.plan.most(), found.next))
}

/// A pass while it is found.
struct Tracer<'a> {
    lowered: &'a Lowered,
    program: &'a Program<'a>,
    /// By operation.
    has_template: &'a [bool],
    heads: &'a BTreeSet<u32>,
    extent: Extent,
    head: u32,
    quick: Way<'a>,
    exact: Way<'a>,
    segments: Vec<Segment>,
    steps: Vec<Step>,
    at: Vec<u32>,
    ran: Vec<u32>,
    calls: Vec<Range<u32>>,
    words: u32,
    leaves: u32,
    templates: usize,
    instructions: u32,
    in_loop: Option<Loop>,
    ignores_uncovered: bool,
}

impl<'a> Tracer<'a> {
    fn new(
        lowered: &'a Lowered,
        program: &'a Program<'a>,
        has_template: &'a [bool],
        heads: &'a BTreeSet<u32>,
        extent: Extent,
        head: u32,
    ) -> Self {
        Tracer {
            lowered,
            program,
            has_template,
            heads,
            extent,
            head,
            quick: Way::new(program, false),
            exact: Way::new(program, true),
            segments: Vec::new(),
            steps: Vec::new(),
            at: Vec::new(),
            ran: Vec::new(),
            calls: Vec::new(),
            words: 0,
            leaves: 0,
            templates: 0,
            instructions: 0,
            in_loop: None,
            ignores_uncovered: false,
        }
    }

    fn step(&mut self, step: Step, block: u32) {
        self.steps.push(step);
        self.at.push(block);
    }

    fn both(&mut self, mut each: impl FnMut(&mut Way<'a>)) {
        each(&mut self.quick);
        each(&mut self.exact);
    }

    /// Goes from block to block.
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
            // What the flow does within the pass, or `None` for an instruction that the fast engine runs.
            let within = flow.filter(|_| !block.ends);
            let within = within.and_then(|flow| Some((flow, self.within(block, flow)?)));
            let judges =
                |number: u32| matches!(self.lowered.templates[number as usize], Template::AluResult { .. });
            if within.is_none() && self.in_loop.is_some() && (block.start..block.end).any(judges) {
                // Behind the pass the ALU result is none.
                break (Back::Never, After::Before(block.first));
            }
            self.execute(number, block, within.is_some());
            self.instructions += u32::from(block.size);
            if flow.is_some() && within.is_none() || block.ends {
                break (Back::Never, After::Behind(number));
            }
            self.ran.push(number);
            self.step(Step::Run(block.size.into()), number);
            if let Some((flow, it)) = within {
                self.in_loop = Some(Loop { al: it.al()?, step: it.step(), turns: it.ends() });
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

    /// Whether all of a block but its flow can be in the pass.
    fn fits(&self, number: u32, block: &Block) -> bool {
        let called = |number: u32| {
            let template = self.lowered.templates[number as usize];
            !self.has_template[number as usize] || matches!(template, Template::AluResult { .. })
        };
        let calls = (block.start..block.end).filter(|number| called(*number)).count() as u32;
        let neighbours = |number: u32| self.operation(number).1 == Template::Neighbours;
        // A loop that begins here has a pass of its own.
        let other_loop = self.heads.contains(&number) && (number != self.head || !self.ran.is_empty());
        let known = block.al.is_none() && block.split.is_none() && !block.kills && !block.inactive;
        !other_loop
            && !self.ran.contains(&number)
            && known
            && block.size > 0
            && !(block.start..block.end).any(neighbours)
            && self.instructions + u32::from(block.size) <= MOST_INSTRUCTIONS.min(self.extent.most())
            && self.words + calls <= WORDS
            && self.leaves < LEAVES
    }

    fn operation(&self, number: u32) -> (&'a crate::fast::lanes::Operation, Template) {
        (&self.lowered.operations[number as usize], self.lowered.templates[number as usize])
    }

    /// A break by all lanes whose ALU result says so, or the end of the pass's loop.
    fn within(&self, block: &Block, flow: &flow::Step) -> Option<InLoop> {
        let it = flow.in_loop?;
        it.al()?;
        let always = flow.wants == [u64::MAX; 4];
        if it.ends() {
            // In strict mode it traps where it looks at an ALU result that nothing has written, also where every result jumps.
            let goes_back = block.jump == self.head && always && !flow.reads_alu_result();
            return goes_back.then_some(it);
        }
        // Whether lanes leave depends on what this block has found out, for all active lanes.
        // Calls come before it.
        let result = (block.start..block.end).rev().find_map(|number| {
            let template = self.lowered.templates[number as usize];
            let computes = self.has_template[number as usize];
            (!computes || matches!(template, Template::AluResult { .. })).then_some(computes)
        });
        let by_result = flow.wants == [0, 0, u64::MAX, u64::MAX] || flow.wants == [u64::MAX, u64::MAX, 0, 0];
        (by_result && result == Some(true) && flow.predicate.is_none() && !flow.inst.jump_any).then_some(it)
    }

    fn leave(&mut self, number: u32, flow: &flow::Step) {
        let word = reconverge_jit::WORDS as u32 - 1 - self.leaves;
        self.leaves += 1;
        let holds = flow.wants[2] != 0;
        self.both(|way| {
            let Some(result) = way.alu_result.take() else { return };
            let held = if holds { result } else { way.rows.slice.not(result) };
            way.rows.leave(word, held);
        });
        self.step(Step::Leave { word, arrives: false }, number);
    }

    /// The operations of a block. Where its flow is `within` the pass, that takes the ALU result; else the machine has it.
    fn execute(&mut self, number: u32, block: &Block, within: bool) {
        let mut called: Option<Range<u32>> = None;
        let mut slot = usize::from(block.first);
        for at in block.start..block.end {
            while self.lowered.ends[slot] <= at {
                slot += 1;
                if called.is_none() {
                    self.both(Way::end);
                }
            }
            let (operation, template) = self.operation(at);
            let result = matches!(template, Template::AluResult { .. });
            if self.has_template[at as usize] && (within || !result) {
                if let Some(range) = called.take() {
                    self.call(number, range);
                }
                self.both(|way| {
                    way.operation(operation, template);
                });
                self.templates += match template {
                    Template::Channels(_, count) => count,
                    _ => 1,
                };
            } else {
                let start = called.take().map_or(at, |range| range.start);
                called = Some(start..at + 1);
            }
        }
        match called {
            Some(range) => self.call(number, range),
            None => self.both(Way::end),
        }
    }

    /// Ends the segment with a call of operations.
    fn call(&mut self, number: u32, operations: Range<u32>) {
        let word = self.words;
        self.words += 1;
        let callee = (CALLEE, self.calls.len() as u32, word);
        let nothing = BTreeSet::new();
        let (quick, exact) = self.ways();
        let (quick, exact) = (quick.store(&nothing, Some(word)), exact.store(&nothing, Some(word)));
        self.segments.push(Segment::new(Some(quick), exact, Some(callee)));
        self.calls.push(operations);
        self.step(Step::Call, number);
    }

    /// The segment's ways; others begin.
    fn ways(&mut self) -> (Way<'a>, Way<'a>) {
        let (mut quick, mut exact) = (Way::new(self.program, false), Way::new(self.program, true));
        std::mem::swap(&mut self.quick, &mut quick);
        std::mem::swap(&mut self.exact, &mut exact);
        (quick, exact)
    }

    fn finish(mut self, back: Back, after: After, number: u32) -> Option<Found> {
        let (quick, exact) = self.ways();
        let lazy = back == Back::Always && self.segments.is_empty();
        let mut dropped = BTreeSet::new();
        if lazy {
            dropped.extend(quick.rows.covered().intersection(exact.rows.covered()).copied());
        }
        let nothing = BTreeSet::new();
        let (quick, exact) = (quick.store(&dropped, None), exact.store(&nothing, None));
        self.segments.push(Segment::new(Some(quick), exact, None));
        let lazy = lazy && !dropped.is_empty();
        let plan =
            Plan { segments: self.segments, steps: self.steps, back, mask: ACTIVE_ROW, lazy, joins: false };
        let gain = 2 * self.templates as i32 - 8 * self.calls.len() as i32;
        let worth = self.extent.pays(gain, back == Back::Never);
        let next = match after {
            After::Before(_) => number,
            After::Behind(_) => number + 1,
        };
        (worth && self.instructions > 0 && plan.fits()).then_some(Found {
            plan,
            at: self.at,
            ran: self.ran,
            calls: self.calls,
            after,
            next,
            in_loop: self.in_loop,
            ignores_uncovered: self.ignores_uncovered,
        })
    }
}
