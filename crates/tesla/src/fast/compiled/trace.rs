//! Traces a program: converts blocks of the fast engine to nodes of linked code.
//!
//! A node is a chain of blocks. Each block of the chain, except the first, can be reached only from the previous block.
//! The node includes the conditionals between these blocks. The [order of loads and stores](SharedAccesses) can end a node. An
//! operation without a template also ends a node, and a separate node calls this operation.

use std::ops::Range;

use reconverge_jit::{Branch, Linker, Next, SITES, Target, Waits};
use reconverge_simt::compiling::Extent;

use super::code::Way;
use super::run::Tesla;
use super::{Access, BROKE, Call, LocalSites, Own, Parts, RETURNED, Traced};
use crate::barrier::BARRIERS;
use crate::context::Context;
use crate::fast::lower::{self, Block, Conditional, Diamond, Last, Lowered, NONE, Side, Template, Test};
use crate::fast::words::{Kind, Transfer};
use crate::flow::TAKEN_SIDE_RUNS_FIRST;
use crate::inst::{Control, Inst, Op, Space};

/// Maximum number of instructions of a node.
const MOST_INSTRUCTIONS: u32 = 200;

/// Maximum number of conditionals and of exits of a node.
const MOST_WORDS: u32 = 16;

/// Traces a program. Returns the nodes, the parts and the sites of l[]. The nodes count how often each part runs. If
/// `both` is set, compiled code completes each load or store for all lanes of a warp before it starts the next load or
/// store.
pub(super) fn trace<'a>(
    context: &'a Context,
    lowered: &'a Lowered,
    extent: Extent,
    both: bool,
) -> (Traced, Parts, LocalSites) {
    let linker = || Linker::new(Way::new(lowered, false), Way::new(lowered, true));
    let quads = |inst: &Inst| matches!(inst.op, Op::Control(Control::Quadon | Control::Quadpop));
    let sizes: Vec<u32> = lowered.blocks.iter().map(|block| block.size).collect();
    let loops = loops(context, lowered);
    let mut chosen = extent.chosen(&sizes, |number| loops[number]);
    for (block, chosen) in lowered.blocks.iter().zip(&mut chosen) {
        *chosen &= !matches!(block.last, Last::Reference);
    }
    if context.code.slots().flatten().any(quads) {
        chosen.fill(false);
    }
    // Each operation is compiled once, alone, to find out whether the operation has a template.
    let has_template = (lowered.operations.iter().zip(&lowered.templates))
        .map(|((_, operation), template)| Way::new(lowered, true).operation(operation, template))
        .collect();
    let starts = vec![None; lowered.blocks.len()];
    let targets = targets(context, lowered);
    let most = MOST_INSTRUCTIONS.min(extent.most());
    let mut tracer = Tracer {
        context,
        lowered,
        has_template,
        chosen,
        targets,
        most,
        linker: linker(),
        starts,
        absorbed: vec![false; lowered.blocks.len()],
        both,
        parts: Vec::new(),
        sites: 0,
        local: LocalSites::default(),
        open: None,
        checked: 0,
        covered: 0,
    };
    for number in 0..lowered.blocks.len() as u32 {
        if tracer.chosen[number as usize] && !tracer.absorbed[number as usize] {
            tracer.chain(number);
        }
    }
    (tracer.linker.finish(&tracer.starts), tracer.parts, tracer.local)
}

/// Returns, for each block, whether the block is part of a loop. A block is part of a loop if it is between a backward
/// branch and the target of the branch.
fn loops(context: &Context, lowered: &Lowered) -> Vec<bool> {
    let mut loops = vec![false; lowered.blocks.len()];
    for (number, block) in lowered.blocks.iter().enumerate() {
        if let Last::Bra { target, .. } = block.last
            && target <= block.last_pc
            && let Some(place) = context.code.place(target)
            && lowered.starts[place] != NONE
        {
            loops[lowered.starts[place] as usize..=number].fill(true);
        }
    }
    loops
}

/// Returns, for each block, whether the block is the target of a control-flow instruction.
fn targets(context: &Context, lowered: &Lowered) -> Vec<bool> {
    let mut targets = vec![false; lowered.blocks.len()];
    for inst in context.code.slots().flatten() {
        let Op::Control(control) = inst.op else { continue };
        let place = control.target().and_then(|target| context.code.place(target));
        let block = place.map_or(NONE, |place| lowered.starts[place]);
        if let Some(target) = targets.get_mut(block as usize) {
            *target = true;
        }
    }
    targets
}

fn is_store(transfer: &Transfer) -> bool {
    matches!(transfer.kind, Kind::Store { .. })
}

/// The accesses to s[] that a node has so far.
///
/// A strip is a group of lanes. If compiled code does not complete each load or store for all lanes of a warp before the
/// next load or store, a node runs completely for one strip before it runs for the next strip. So within a node, a store
/// must not follow a load or another store. If compiled code does so (`both`), a node executes first its loads and then
/// its stores, each in program order. In each case, a load must not follow a store.
///
/// The sides of a conditional are in program order too: the lanes of the second side run after the lanes of the first
/// side. So without `both`, a side that loads and stores is never part of a node, but a side that only loads can be. An
/// example of the former is the side of the kernel `reduce`.
#[derive(Clone, Copy, Debug)]
struct SharedAccesses {
    both: bool,
    loads: bool,
    stores: bool,
}

impl SharedAccesses {
    /// Returns the accesses of a node without instructions.
    fn none(both: bool) -> SharedAccesses {
        SharedAccesses { both, loads: false, stores: false }
    }

    /// Returns whether the node may have one more access.
    fn allow(&self, stores: bool) -> bool {
        if stores { self.both || !self.loads && !self.stores } else { !self.stores }
    }

    /// Adds an access. Returns whether the node may have the access.
    fn add(&mut self, stores: bool) -> bool {
        let allowed = self.allow(stores);
        *if stores { &mut self.stores } else { &mut self.loads } = true;
        allowed
    }
}

/// The node that is being traced.
struct Open {
    own: Own,
    /// The instructions that all active lanes run.
    places: Vec<usize>,
    call: Option<Call>,
    accesses: SharedAccesses,
    /// Whether the budget is checked at the entry of the node.
    is_checked: bool,
    /// A sum of three numbers: the instructions before the last exit of the node, the instructions in the node's
    /// conditionals, and the arrivals at joins.
    inside: u32,
}

/// A program during tracing.
struct Tracer<'a> {
    context: &'a Context,
    lowered: &'a Lowered,
    /// Whether each operation has a template.
    has_template: Vec<bool>,
    /// Three flags for each block. `chosen`: the block is compiled. `targets`: the block is a target of control flow.
    /// `absorbed`: the block is part of the node of another block.
    chosen: Vec<bool>,
    targets: Vec<bool>,
    absorbed: Vec<bool>,
    /// Whether compiled code completes each load or store for all lanes before it starts the next load or store.
    both: bool,
    /// Number of sites so far. An access to g[] or c[] has a separate site, unless compiled code calls the fast engine for
    /// the access.
    sites: u32,
    local: LocalSites,
    /// Maximum number of instructions of a node.
    most: u32,
    linker: Linker<Tesla, Way<'a>>,
    /// The node that begins at each block.
    starts: Vec<Option<u32>>,
    parts: Parts,
    open: Option<Open>,
    /// `checked` is the latest node that checks the budget. `covered` is the number of instructions that this check
    /// covers so far.
    checked: u32,
    covered: u32,
}

impl<'a> Tracer<'a> {
    fn block(&self, number: u32) -> &'a Block {
        &self.lowered.blocks[number as usize]
    }

    /// Traces the blocks of a chain.
    fn chain(&mut self, first: u32) {
        let mut number = first;
        self.covered = 0;
        self.starts[first as usize] = Some(self.linker.next_node());
        loop {
            self.execute(number, self.open.is_some());
            let block = self.block(number);
            let to = |block: u32| if block == NONE { Target::Flow } else { Target::Outside(block) };
            let next = match block.last {
                _ if block.exit => Next::To(Target::Flow),
                Last::Next | Last::Memory(_) => {
                    if self.continues(block.fall) {
                        number = block.fall;
                        self.absorbed[number as usize] = true;
                        continue;
                    }
                    Next::To(to(block.fall))
                }
                Last::Bra { guard, .. } if guard.always => Next::To(to(block.jump)),
                // The lanes that branch to a join arrive at the join immediately. Their arrival counts as one
                // instruction. The other lanes run the next block.
                Last::Bra { target, guard }
                    if TAKEN_SIDE_RUNS_FIRST && self.is_join(target) && self.goes_on(block.fall) =>
                {
                    number = self.leave(number, &guard, Waits::Arrive);
                    continue;
                }
                Last::Bra { .. } => Next::Either([to(block.jump), to(block.fall)]),
                Last::Break { guard } | Last::Ret { guard } if !guard.always => {
                    if self.goes_on(block.fall) {
                        let broke = matches!(block.last, Last::Break { .. });
                        number = self.leave(number, &guard, Waits::For(if broke { BROKE } else { RETURNED }));
                        continue;
                    }
                    Next::Either([Target::Flow, to(block.fall)])
                }
                Last::Discard { guard } if !guard.always => Next::Either([Target::Flow; 2]),
                Last::Joinat { .. } => match self.lowered.conditional_of_chains(self.context, number) {
                    Some(conditional) if self.converts(&conditional, self.accesses()) => {
                        self.conditional(&conditional);
                        number = conditional.joins;
                        continue;
                    }
                    _ => Next::To(Target::Flow),
                },
                _ => match block.barrier_of_all() {
                    Some(barrier) => Next::Barrier(barrier % BARRIERS as u8, to(block.fall)),
                    None => Next::To(Target::Flow),
                },
            };
            return self.end(next, Some(number));
        }
    }

    /// Returns whether a chain continues with a block.
    fn continues(&self, number: u32) -> bool {
        let number = number as usize;
        let Some(block) = self.lowered.blocks.get(number) else { return false };
        self.chosen[number]
            && !self.targets[number]
            && !self.absorbed[number]
            && self.covered() + block.size <= self.most
    }

    /// Returns the number of instructions since the last check of the budget.
    fn covered(&self) -> u32 {
        self.covered + self.open.as_ref().map_or(0, |open| open.places.len() as u32 + open.inside)
    }

    /// Returns whether a node continues with a block for the lanes that have not left the node.
    fn goes_on(&self, number: u32) -> bool {
        let is_call = self.open.as_ref().is_none_or(|open| open.call.is_some());
        !is_call && self.has_room() && self.continues(number)
    }

    /// Returns whether a block with a join begins at an address.
    fn is_join(&self, pc: u32) -> bool {
        let place = self.context.code.place(pc);
        let block = place.and_then(|place| self.lowered.blocks.get(self.lowered.starts[place] as usize));
        block.is_some_and(|block| block.join)
    }

    /// Lets lanes leave the node at the end of a block. Returns the block with which the remaining lanes continue.
    fn leave(&mut self, number: u32, guard: &Test, waits: Waits) -> u32 {
        let fall = self.block(number).fall;
        let piece = self.piece();
        self.linker.leave(piece, waits, |way| way.lanes(guard, true));
        let arrives = u32::from(waits == Waits::Arrive);
        self.linker.reserve(arrives);
        if let Some(open) = &mut self.open {
            open.own.leaves.push(number);
            open.inside += arrives;
        }
        self.absorbed[fall as usize] = true;
        fall
    }

    /// Returns two numbers: the number of instructions since the last exit, and the number of the part for these
    /// instructions.
    fn piece(&mut self) -> [u32; 2] {
        let places = self.open.as_mut().map_or_else(Vec::new, |open| std::mem::take(&mut open.places));
        let size = places.len() as u32;
        if let Some(open) = &mut self.open {
            open.inside += size;
        }
        [size, self.part(places)]
    }

    /// Returns whether the node has room for one more conditional or exit.
    fn has_room(&self) -> bool {
        self.linker.words() <= MOST_WORDS
    }

    /// Returns the accesses to s[] that the open node has so far.
    fn accesses(&self) -> SharedAccesses {
        self.open.as_ref().map_or(SharedAccesses::none(self.both), |open| open.accesses)
    }

    /// Returns whether a conditional can become part of a node that has the accesses `accesses`. All operations, loads
    /// and stores of its sides must have templates.
    fn converts(&self, conditional: &Conditional, mut accesses: SharedAccesses) -> bool {
        let Conditional { branch, diamond, joins, .. } = *conditional;
        let Diamond { taken, not, tried, .. } = diamond;
        let before = std::iter::once(branch).chain(self.lowered.blocks_of(taken));
        let mut before = before.chain(self.lowered.blocks_of(not)).map(|number| self.block(number));
        let size = self.block(branch).size + tried + self.block(joins).size;
        TAKEN_SIDE_RUNS_FIRST
            && self.has_room()
            && self.covered() + size <= self.most
            && before.all(|block| self.fits(block, &mut accesses))
            && self.carries(joins, &mut accesses)
    }

    /// Returns whether a node can contain the first instruction of a block. This instruction has a join. Compiled code
    /// cannot stop between the join and the rest of this instruction.
    fn carries(&self, number: u32, accesses: &mut SharedAccesses) -> bool {
        let block = self.block(number);
        let first = self.lowered.inside[number as usize].ends.first();
        !matches!(block.last, Last::Reference | Last::Discard { .. })
            && match first {
                Some(end) => self.fit(block.start..*end, accesses),
                None => self.fits(block, accesses),
            }
    }

    /// Returns whether all instructions of a block, up to a branch at its end, have templates, and whether the node may
    /// have the accesses of the block. Adds these accesses to `accesses`.
    fn fits(&self, block: &Block, accesses: &mut SharedAccesses) -> bool {
        let before = self.fit(block.start..block.end, accesses);
        let Last::Memory(number) = block.last else { return before };
        let lower::Access { transfer, after } = &self.lowered.accesses[number as usize];
        before
            && self.linker.slow.reaches(transfer)
            && accesses.add(is_store(transfer))
            && self.fit(after.clone(), accesses)
    }

    /// Returns whether all of the operations have templates, and whether the node may have their loads. Adds the loads
    /// to `accesses`.
    fn fit(&self, operations: Range<u32>, accesses: &mut SharedAccesses) -> bool {
        self.has_templates(operations.clone()) && (!self.loads(operations) || accesses.add(false))
    }

    /// Traces the code after a `joinat` that [converts](Self::converts), up to the join of the conditional.
    fn conditional(&mut self, conditional: &Conditional) {
        let Conditional { branch, guard, diamond, .. } = *conditional;
        self.execute(branch, true);
        let sides = [diamond.taken, diamond.not].map(|side| {
            let inside = self.lowered.blocks_of(side).map(|number| &self.lowered.inside[number as usize]);
            let places: Vec<usize> = inside.flat_map(|inside| inside.places.iter().copied()).collect();
            Branch { size: places.len() as u32, count: self.part(places), always: 0 }
        });
        self.linker.open(2, |way| way.lanes(&guard, true));
        self.side(diamond.taken);
        self.linker.other();
        self.side(diamond.not);
        self.linker.close(sides);
        if let Some(open) = &mut self.open {
            // The first side's arrival at the join counts as one instruction.
            open.inside += sides.iter().map(|side| side.size).sum::<u32>() + 1;
        }
    }

    fn side(&mut self, side: Side) {
        for number in self.lowered.blocks_of(side) {
            let block = self.block(number);
            match block.last {
                Last::Memory(access) => self.transfer(block.start..block.end, access),
                _ => self.operate(block.start..block.end),
            }
        }
    }

    /// Adds a part. The part counts how often the instructions in `places` run.
    fn part(&mut self, places: Vec<usize>) -> u32 {
        self.parts.push(places);
        self.linker.part()
    }

    /// Traces the instructions of a block. If `goes_on` is set, the block continues a node. The entry of this node has
    /// already checked the budget.
    fn execute(&mut self, number: u32, goes_on: bool) {
        let block = self.block(number);
        let inside = &self.lowered.inside[number as usize];
        let mut start = block.start;
        for (instruction, place) in inside.places.iter().enumerate() {
            let is_first = instruction == 0 && !goes_on;
            let own = Own { block: number, first: instruction as u32, ends: number, leaves: Vec::new() };
            match inside.ends.get(instruction) {
                Some(end) => {
                    let operations = std::mem::replace(&mut start, *end)..*end;
                    if self.has_templates(operations.clone()) {
                        let loads = self.loads(operations.clone());
                        self.at(own, is_first, |open| {
                            open.call.is_some() || loads && !open.accesses.allow(false)
                        });
                        self.operate(operations);
                    } else {
                        let call = Call { operations, access: Access::default() };
                        self.call(own, is_first, call);
                    }
                }
                None => match block.last {
                    Last::Memory(access) => self.access(own, is_first, start..block.end, access),
                    Last::Joinat { .. } => {
                        // If the accesses of a conditional must not follow the accesses of the open node, the
                        // conditional can be part of a new node. But a node never begins between a join and the rest of
                        // the instruction.
                        let conditional = self.lowered.conditional_of_chains(self.context, number);
                        let begins = conditional.is_some_and(|conditional| {
                            (own.first > 0 || !block.join)
                                && !self.converts(&conditional, self.accesses())
                                && self.converts(&conditional, SharedAccesses::none(self.both))
                        });
                        self.at(own, is_first, |open| open.call.is_some() || begins);
                    }
                    _ => self.at(own, is_first, |open| open.call.is_some()),
                },
            }
            if let Some(open) = &mut self.open {
                open.places.push(*place);
            }
        }
    }

    /// Traces the load or store at the end of a block. Also traces the operations of the same instruction before and
    /// after the load or store.
    fn access(&mut self, own: Own, is_first: bool, before: Range<u32>, access: u32) {
        let lower::Access { transfer, after } = &self.lowered.accesses[access as usize];
        let templates = self.has_templates(before.clone()) && self.has_templates(after.clone());
        let number = Some(access);
        if templates
            && self.linker.slow.reaches_site(transfer)
            && let Some(site) = self.site(transfer)
        {
            let access = Access { number, site: Some(site) };
            self.call(own, is_first, Call { operations: before.clone(), access });
            self.operate(before);
            self.linker.both(|way| {
                let _ = way.transfer(transfer, Some(site));
            });
            return self.operate(after.clone());
        }
        if !templates || !self.linker.slow.reaches(transfer) {
            let access = Access { number, site: None };
            return self.call(own, is_first, Call { operations: before, access });
        }
        let stores = is_store(transfer);
        self.at(own, is_first, |open| open.call.is_some() || !open.accesses.allow(stores));
        self.transfer(before, access);
    }

    /// Returns the site for an access. Returns `None` if no site is left. All loads of l[] have the same site, and all
    /// stores to l[] have the same site.
    fn site(&mut self, transfer: &Transfer) -> Option<u32> {
        let mut new = None;
        let site = match (transfer.mem.space, is_store(transfer)) {
            (Space::Local, false) => &mut self.local.loads,
            (Space::Local, true) => &mut self.local.stores,
            _ => &mut new,
        };
        if site.is_none() && self.sites < SITES {
            *site = Some(self.sites);
            self.sites += 1;
        }
        *site
    }

    /// Traces a load or store of s[] that has a template. Also traces the operations of the same instruction before and
    /// after the load or store.
    fn transfer(&mut self, before: Range<u32>, access: u32) {
        let lower::Access { transfer, after } = &self.lowered.accesses[access as usize];
        self.operate(before);
        self.linker.both(|way| {
            // The caller has found out that the access has a template.
            let _ = way.transfer(transfer, None);
        });
        if let Some(open) = &mut self.open {
            open.accesses.add(is_store(transfer));
        }
        self.operate(after.clone());
    }

    /// Traces a call for an instruction.
    fn call(&mut self, own: Own, is_first: bool, call: Call) {
        let follows = |open: &Open| match &open.call {
            Some(Call { operations, access: Access { number: None, .. } }) => {
                operations.end == call.operations.start
            }
            _ => false,
        };
        // Consecutive instructions without a memory access share one call.
        if let Some(open) =
            self.open.as_mut().filter(|open| follows(open) && call.access.number.is_none() && !is_first)
        {
            if let Some(open) = &mut open.call {
                open.operations.end = call.operations.end;
            }
            return;
        }
        self.at(own, is_first, |_| true);
        if let Some(open) = &mut self.open {
            open.call = Some(call);
        }
    }

    /// Adds the next instruction to the open node. Starts a new node if no node is open, or if `ends` returns true for
    /// the open node.
    fn at(&mut self, own: Own, is_first: bool, ends: impl FnOnce(&Open) -> bool) {
        let is_full = self.covered() >= self.most && own.first > 0;
        if self.open.as_ref().is_some_and(|open| is_full || ends(open)) {
            let next = Target::Node(self.linker.next_node() + 1);
            self.end(Next::To(next), None);
        }
        self.open.get_or_insert_with(|| Open {
            own,
            places: Vec::new(),
            call: None,
            accesses: SharedAccesses::none(self.both),
            is_checked: is_first || is_full,
            inside: 0,
        });
    }

    /// Ends the open node. If `flow` contains a block, the control flow at the end of this block runs after the node.
    fn end(&mut self, next: Next, flow: Option<u32>) {
        if self.open.is_none() {
            return;
        }
        let piece = self.piece();
        let Some(Open { mut own, call, is_checked, inside, .. }) = self.open.take() else { return };
        let guard = match (next, flow) {
            (Next::Either(_), Some(block)) => self.block(block).last.guard(),
            _ => None,
        };
        own.ends = flow.unwrap_or(own.block);
        let node = self.linker.next_node();
        let back = match next {
            Next::To(Target::Outside(block)) | Next::Either([Target::Outside(block), _]) => block,
            _ => NONE,
        };
        let repeats = TAKEN_SIDE_RUNS_FIRST && back != NONE && self.starts[back as usize] == Some(node);
        if is_checked {
            (self.checked, self.covered) = (node, 0);
        }
        match (call, guard) {
            (Some(call), _) => self.linker.call(piece, call, next, own),
            (None, Some(guard)) => {
                let condition = |way: &mut Way<'a>| way.lanes(guard, true);
                self.linker.end(piece, next, Some(&condition), repeats, own);
            }
            (None, None) => self.linker.end(piece, next, None, repeats, own),
        }
        self.covered += inside;
        self.linker.cover(self.checked, inside);
    }

    fn has_templates(&self, mut operations: Range<u32>) -> bool {
        operations.all(|number| self.has_template[number as usize])
    }

    /// Returns whether some of the operations load a word of s[].
    fn loads(&self, operations: Range<u32>) -> bool {
        let is_load = |template: &Template| matches!(template, Template::SharedWord);
        self.lowered.templates[operations.start as usize..operations.end as usize].iter().any(is_load)
    }

    /// Traces operations that have templates.
    fn operate(&mut self, operations: Range<u32>) {
        if self.loads(operations.clone())
            && let Some(open) = &mut self.open
        {
            open.accesses.add(false);
        }
        for number in operations {
            let ((_, operation), template) =
                (&self.lowered.operations[number as usize], &self.lowered.templates[number as usize]);
            self.linker.both(|way| {
                way.operation(operation, template);
            });
        }
    }
}
