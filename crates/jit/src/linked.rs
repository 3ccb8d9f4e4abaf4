//! Linked code of a program. A machine uses this interface to trace a program node by node. A group uses this interface
//! to run the code.

// The module needs unsafe code for two reasons: this module calls generated code, and generated code calls this module.
// A comment at each unsafe block states the assumptions of the block.
#![allow(unsafe_code)]

use std::fmt::Debug;
use std::ptr::null_mut;
use std::sync::Arc;

use reconverge_isa::sets::SortedSet;
use reconverge_simt::CodeFault;
use reconverge_simt::compiling::{accepts, compile, once};

use crate::asm;
use crate::called::{Callee, convention};
use crate::level::Level;
use crate::program::{Branch, Code, Conditional, Left, NO_NODE, Next, Node, Piece, Target, Waits};
use crate::rows::Rows;
use crate::segment::Segment;
use crate::state::{EXIT, State};
use crate::strip::Value;
use crate::turns::{Meeting, Peer};

/// Marks a position of the program at which no node begins.
const NONE: u32 = u32::MAX;

/// The parts of linked code that differ between machines.
pub trait LinkedMachine: Debug + Sized + 'static {
    /// Operations of the fast engine that a node calls.
    type Call: Debug;
    /// Data that the machine defines for each node.
    type Own: Debug;
    /// Data that calls and flow control use.
    type Context<'c, 'a, 'w>
    where
        'a: 'c,
        'w: 'a;

    /// The floating point modes (MXCSR) of generated code.
    const MODE: u32;
    /// Whether the first side of a divergent conditional issues an additional instruction to arrive at the join.
    const JOINS: bool;
    /// Whether the machine records the number of entries on its stack.
    const HOLDS: bool;
    /// Whether listings of the machine show addresses in hexadecimal.
    const HEXADECIMAL: bool;

    /// Executes the operations of a call for the active lanes. Returns whether the operations were executed. If the
    /// function returns `false`, the function has had no effect.
    fn call(call: &Self::Call, state: &mut State, context: &mut Self::Context<'_, '_, '_>) -> bool;

    /// Executes the flow control at the end of a node. If all lanes have [left](State::leave) the node after one piece,
    /// executes the flow control after this piece. Returns the next node, or [`NO_NODE`](crate::NO_NODE) if generated
    /// code cannot continue.
    fn flow(
        linked: &Linked<Self>,
        own: &Self::Own,
        state: &mut State,
        context: &mut Self::Context<'_, '_, '_>,
    ) -> u32;
}

/// The fast or the slow path of a node under construction.
pub trait Path {
    /// Returns an empty path of the same kind.
    fn next(&self) -> Self;

    /// Returns the rows of the path.
    fn rows(&mut self) -> &mut Rows;

    /// Converts the complete path of a node to its rows.
    fn into_rows(self) -> Rows;
}

/// A program that a machine is tracing, node by node.
#[derive(Debug)]
pub struct Linker<M: LinkedMachine, P> {
    /// Fast path of the current node.
    pub fast: P,
    /// Slow path of the current node.
    pub slow: P,
    nodes: Vec<Node>,
    own: Vec<M::Own>,
    calls: Vec<M::Call>,
    parts: u32,
    /// `words` is the number of words that the current node gathers (see [`State::words`]). `pieces` contains the
    /// complete pieces of the node, and `piece` is the current piece.
    words: u32,
    pieces: Vec<Piece>,
    piece: Piece,
    /// The open conditionals. For each conditional: the number of the conditional's word, and the side that is being
    /// traced.
    open: Vec<(u32, usize)>,
    entries: u32,
    needs: u32,
}

/// A program that a machine has traced.
#[derive(Debug)]
pub struct Traced<M: LinkedMachine> {
    nodes: Vec<Node>,
    own: Vec<M::Own>,
    calls: Vec<M::Call>,
    /// The node that begins at each position of the program, or [`NONE`].
    starts: Vec<u32>,
}

/// A program as linked code.
#[derive(Debug)]
pub struct Linked<M: LinkedMachine> {
    code: Arc<Code>,
    own: Vec<M::Own>,
    calls: Vec<M::Call>,
    starts: Vec<u32>,
    /// Number of instructions that the budget must cover at the entry of each node.
    budgets: Vec<u32>,
    /// For each node, the number of entries for which the stack must have room at the entry of the node.
    entries: Vec<u32>,
    /// Bits of [`State::hindered`] that must be zero at the entry of each node.
    needs: Vec<u32>,
}

/// A group that is about to run a node, and the memory of the group.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// The node that the group runs next.
    pub node: u32,
    /// The rows of the group. The elements are the rows with a word per lane, the rows with a byte per lane, and the
    /// rows with 16 bits per lane.
    pub rows: [*mut [u8]; 3],
    /// Counts of the run. The first counts are the numbers of runs of the parts. One count for each node follows. The
    /// slice has [`Linked::counts`] elements.
    pub counts: &'a mut [u64],
}

impl<M: LinkedMachine, P: Path> Linker<M, P> {
    /// Returns a linker without nodes. `fast` and `slow` are the paths of the first node.
    pub fn new(fast: P, slow: P) -> Self {
        Linker {
            fast,
            slow,
            nodes: Vec::new(),
            own: Vec::new(),
            calls: Vec::new(),
            parts: 0,
            words: EXIT + 1,
            pieces: Vec::new(),
            piece: Piece::default(),
            open: Vec::new(),
            entries: 0,
            needs: 0,
        }
    }

    /// Returns the number of the node that is being traced.
    pub fn next_node(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Calls a function for the fast path and for the slow path.
    pub fn both(&mut self, mut each: impl FnMut(&mut P)) {
        each(&mut self.fast);
        each(&mut self.slow);
    }

    /// Returns the number of a new part. A part consists of instructions that run together, and generated code counts
    /// the runs of each part.
    pub fn part(&mut self) -> u32 {
        self.parts += 1;
        self.parts - 1
    }

    /// Opens a conditional. The code after this call runs for the lanes whose condition is true. The stack must have
    /// room for `entries` entries.
    pub fn open(&mut self, entries: u32, condition: impl FnMut(&mut P) -> Value) {
        let parent = self.open.last().copied();
        let word = self.split(condition, |rows, word, held| rows.open(word, held));
        let held = if M::HOLDS { entries } else { 0 };
        self.piece.conditionals.push(Conditional {
            word,
            parent,
            sides: [Branch::default(); 2],
            held,
            joins: M::JOINS,
        });
        self.open.push((word, 0));
        self.entries = self.entries.max(entries);
    }

    /// Reserves a new word for the lanes whose condition is true. Calls `split` for the rows of both paths. The
    /// arguments of `split` are the rows, the number of the word, and the condition. Returns the number of the word.
    fn split(
        &mut self,
        mut condition: impl FnMut(&mut P) -> Value,
        split: impl Fn(&mut Rows, u32, Value),
    ) -> u32 {
        let word = self.words;
        self.words += 1;
        self.both(|path| {
            let held = condition(path);
            split(path.rows(), word, held);
        });
        word
    }

    /// Returns the number of words that the current node gathers. Each of these words is a set of lanes.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Returns whether lanes can leave the current node before the end of the node.
    pub fn leaves(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Starts the second side of the conditional, for the lanes whose condition is false.
    pub fn other(&mut self) {
        self.both(|path| path.rows().other());
        if let Some((_, side)) = self.open.last_mut() {
            *side = 1;
        }
    }

    /// Closes the conditional. The lanes of both sides reconverge. The first element of `sides` describes the side of
    /// the lanes whose condition is true. The second element describes the side of all other active lanes.
    pub fn close(&mut self, sides: [Branch; 2]) {
        self.both(|path| path.rows().close());
        let word = self.open.pop().map(|(word, _)| word);
        let mut conditionals = self.piece.conditionals.iter_mut();
        if let Some(conditional) = conditionals.find(|conditional| Some(conditional.word) == word) {
            conditional.sides = sides;
        }
    }

    /// Lets the lanes whose condition is true leave the node. `size` is the number of instructions after the last
    /// piece. `count` is the number of the part that counts how often these `size` instructions run. No conditional may
    /// be open.
    pub fn leave(&mut self, [size, count]: [u32; 2], waits: Waits, condition: impl FnMut(&mut P) -> Value) {
        let word = self.split(condition, |rows, word, held| rows.leave(word, held));
        let piece = std::mem::take(&mut self.piece);
        self.pieces.push(Piece { size, count, leave: Some((word, waits)), ..piece });
    }

    /// Describes additional instructions. The group issues them if some lanes leave the node at the last call of
    /// [`leave`](Self::leave) and some lanes stay. `counts` contains the number of additional instructions, and the
    /// number of the part that counts their runs. The leaving lanes run the first additional instruction. No lane runs
    /// the second or a later one.
    pub fn apart(&mut self, counts: [u32; 2]) {
        if let Some(piece) = self.pieces.last_mut() {
            piece.apart = Some(counts);
        }
    }

    /// Stores a set of lanes in a word, which the machine's flow control reads. The set contains the lanes whose
    /// condition is true. Returns the number of the word.
    pub fn gather(&mut self, condition: impl FnMut(&mut P) -> Value) -> u32 {
        self.split(condition, |rows, word, held| rows.strip.gather(word, held))
    }

    /// Requires the stack to have room for `entries` entries at the entry of the current node.
    pub fn reserve(&mut self, entries: u32) {
        self.entries = self.entries.max(entries);
    }

    /// Requires the bits `bits` of [`State::hindered`] to be zero at the entry of the current node.
    pub fn need(&mut self, bits: u32) {
        self.needs |= bits;
    }

    /// Ends the node. `size` is the number of instructions that all lanes run after the last piece. `part` is the
    /// number of the part that counts how often these `size` instructions run. `condition` is the condition of
    /// [`Next::Either`]. If `repeats` is set, the lanes whose condition is true run the node again. Without a
    /// condition, all lanes run the node again.
    pub fn end(
        &mut self,
        [size, part]: [u32; 2],
        next: Next,
        condition: Option<&dyn Fn(&mut P) -> Value>,
        repeats: bool,
        own: M::Own,
    ) {
        // The next run of a node may overwrite a row before any instruction reads the row. If all lanes repeat the
        // node, the fast path does not store rows that the next run overwrites. But in a node that accesses the window,
        // the fast path stores all rows. If a lane is outside the window, the machine executes the node without
        // generated code. For this execution, all rows must have the machine's values.
        let repeats = repeats && !self.slow.rows().strip.has_spans();
        if let Some(condition) = condition {
            let held = condition(&mut self.slow);
            self.slow.rows().strip.gather(EXIT, held);
            let held = condition(&mut self.fast);
            let strip = &mut self.fast.rows().strip;
            strip.gather(EXIT, held);
            if repeats {
                let leaves = strip.not(held);
                strip.guard(leaves);
            }
        }
        let (fast, slow) = (self.fast.next(), self.slow.next());
        let fast = std::mem::replace(&mut self.fast, fast).into_rows();
        let slow = std::mem::replace(&mut self.slow, slow).into_rows();
        let mask = slow.mask_row();
        let mut dropped = SortedSet::new();
        if repeats {
            dropped.extend(fast.covered().iter().filter(|row| slow.covered().contains(row)).copied());
        }
        let (fast, slow) = (fast.finish(&dropped), slow.finish(&SortedSet::new()));
        let entries = std::mem::take(&mut self.entries);
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.push(Piece { size, count: part, ..std::mem::take(&mut self.piece) });
        self.words = EXIT + 1;
        self.nodes.push(Node {
            segment: Segment::restarting(fast, slow),
            pieces,
            needs: std::mem::take(&mut self.needs),
            budget: 0,
            entries,
            lazy: !dropped.is_empty(),
            next,
            mask,
        });
        self.own.push(own);
    }

    /// Ends the node with a call. If the node does not access memory, the call runs after the code of the node. If the
    /// node accesses memory, the call runs only if a lane is outside the memory. The call then replaces the code.
    pub fn call(&mut self, counts: [u32; 2], call: M::Call, next: Next, own: M::Own) {
        self.end(counts, next, None, false, own);
        if let Some(node) = self.nodes.last_mut() {
            node.segment.call = Some((call_of::<M>(), self.calls.len() as u32));
        }
        self.calls.push(call);
    }

    /// Requires the budget to cover additional instructions at the entry of an earlier node.
    pub fn cover(&mut self, node: u32, instructions: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.budget += instructions;
        }
    }

    /// The last node has a check of the budget and a check of the stack. This function moves both checks to the entry
    /// of another node.
    pub fn check_at(&mut self, node: u32) {
        let Some(last) = self.nodes.last_mut() else { return };
        let (instructions, entries) = (last.instructions(), std::mem::take(&mut last.entries));
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.budget += instructions;
            node.entries = node.entries.max(entries);
        }
    }

    /// Returns the traced program. For each position of the program, `starts` contains the node that begins there, or
    /// `None`. If a node begins at the position of a [`Target::Outside`], that node becomes the target.
    pub fn finish(mut self, starts: &[Option<u32>]) -> Traced<M> {
        for target in self.nodes.iter_mut().flat_map(|node| node.next.targets_mut()) {
            if let Target::Outside(place) = *target
                && let Some(&Some(node)) = starts.get(place as usize)
            {
                *target = Target::Node(node);
            }
        }
        let starts = starts.iter().map(|start| start.unwrap_or(NONE)).collect();
        Traced { nodes: self.nodes, own: self.own, calls: self.calls, starts }
    }
}

impl<M: LinkedMachine> Traced<M> {
    /// Propagates data backward: updates the data of each node from the data of the node's targets. A node that only
    /// the machine's flow control selects is not a target. `change` updates the second argument from the first
    /// argument. `change` returns whether the second argument has changed.
    pub fn spread(&mut self, change: impl Fn(&M::Own, &mut M::Own) -> bool) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (number, node) in self.nodes.iter().enumerate() {
                for target in node.targets() {
                    let Target::Node(to) = target else { continue };
                    if let Ok([own, next]) = self.own.get_disjoint_mut([number, to as usize]) {
                        changed |= change(next, own);
                    }
                }
            }
        }
    }
}

impl<M: LinkedMachine> Linked<M> {
    /// Compiles a program of `instructions` instructions, for groups of `lanes` lanes.
    ///
    /// Returns `None` if code cannot be compiled for this level. Also returns `None` if compilation saves no time for
    /// any code of the program.
    pub fn new(
        level: reconverge_simt::Level,
        instructions: usize,
        lanes: usize,
        trace: impl FnOnce() -> Traced<M>,
    ) -> Option<Arc<Linked<M>>> {
        compile(level, instructions, || {
            let Traced { nodes, own, calls, starts } = trace();
            let Some(level) = Level::from_name(level.name()).filter(|_| !nodes.is_empty()) else {
                return Ok(None);
            };
            if !accepts(nodes.iter().try_for_each(Node::verify)) {
                return Ok(None);
            }
            once(asm::prepare);
            let budgets = nodes.iter().map(|node| node.budget).collect();
            let entries = nodes.iter().map(|node| node.entries).collect();
            let needs = nodes.iter().map(|node| node.needs).collect();
            let code = Code::shared(nodes, level, lanes, M::MODE)?;
            let size = code.size();
            let linked = Linked { code, own, calls, starts, budgets, entries, needs };
            Ok::<_, crate::CompileError>(Some((linked, size)))
        })
    }

    /// Returns the node that begins at a position of the program.
    #[inline(always)]
    pub fn starting_at(&self, place: u32) -> Option<u32> {
        self.starts.get(place as usize).copied().filter(|number| *number != NONE)
    }

    /// Returns the number of instructions that the budget must cover at the entry of a node.
    #[inline(always)]
    pub fn budget(&self, node: u32) -> u32 {
        self.budgets[node as usize]
    }

    /// Returns the number of entries that the stack must have room for at the entry of a node.
    #[inline(always)]
    pub fn entries(&self, node: u32) -> u32 {
        self.entries[node as usize]
    }

    /// Returns the bits of [`State::hindered`] that must be zero at the entry of a node.
    #[inline(always)]
    pub fn needs(&self, node: u32) -> u32 {
        self.needs[node as usize]
    }

    /// Returns the number of counts that a run needs. Each part and each node has one count.
    pub fn counts(&self) -> usize {
        self.code.counts()
    }

    /// Returns the machine's data of a node.
    pub fn own(&self, node: u32) -> &M::Own {
        &self.own[node as usize]
    }

    /// Switches the code to the rows of another group that runs this program.
    ///
    /// # Panics
    /// Panics if there are fewer rows than the code needs.
    #[inline]
    pub fn rebind(&self, state: &mut State, rows: [*mut [u8]; 3]) {
        [state.rows, state.byte_rows, state.half_rows] = self.code.bound(rows);
    }

    /// Lets groups take turns: at a barrier at the end of a node, generated code switches to the next group. `position`
    /// is the current position of the groups. Generated code may switch `switches` times. The budget of each turn is
    /// `budget` instructions. Before another function than generated code depends on a position of a group, the caller
    /// [ends the turns](State::end_turns).
    ///
    /// # Panics
    /// Panics if there are more than [`GROUPS`](crate::GROUPS) groups, or if a group has fewer rows than the code needs.
    pub fn take_turns(
        &self,
        state: &mut State,
        groups: impl Iterator<Item = Peer>,
        position: Meeting,
        limits: (u32, u32),
    ) {
        let groups = groups.map(|group| (group, self.code.bound(group.rows)));
        state.turns.begin(groups, position, limits);
    }

    /// Runs the code from the node `node` on, for the active lanes of the state. The run ends when the state's budget
    /// is used up. `pc` is the address of the instruction at which the run starts, for messages.
    ///
    /// # Safety
    /// The processor must have the level for which the nodes were compiled. The rows (including the row of active
    /// lanes) must have the layout for which the program was traced. The rows must be aligned to 32 bytes. During the
    /// run, only generated code and the calls of nodes may use the rows and the state's window.
    #[inline]
    pub unsafe fn run(
        &self,
        Arrived { node, rows, counts }: Arrived<'_>,
        pc: impl Fn(&M::Own) -> u32,
        state: &mut State,
        context: &mut M::Context<'_, '_, '_>,
    ) -> Left {
        let mut running = Running::<M> { linked: self, context };
        state.context = (&raw mut running).cast();
        self.rebind(state, rows);
        // SAFETY: the caller guarantees the requirements, and the context has the type that the functions expect.
        let left = unsafe { self.code.run(node, state, counts, flow_of::<M>()) };
        state.context = null_mut();
        left.unwrap_or_else(|fault| {
            state.reset();
            let pc = pc(self.own(node));
            CodeFault { pc, hexadecimal: M::HEXADECIMAL, address: fault.address }.unwind()
        })
    }
}

/// The context of the functions that generated code calls.
struct Running<'r, 'c, 'a: 'c, 'w: 'a, M: LinkedMachine> {
    linked: &'r Linked<M>,
    context: &'r mut M::Context<'c, 'a, 'w>,
}

fn call_of<M: LinkedMachine>() -> Callee {
    call::<M>
}

fn flow_of<M: LinkedMachine>() -> Callee {
    flow::<M>
}

convention! {
    fn call<M: LinkedMachine>(state: *mut State, number: u32) -> u32 {
        // SAFETY: generated code passes a pointer to the state of the current run.
        let state = unsafe { &mut *state };
        // SAFETY: `Linked::run` has set the context. During the run, no other code uses the context.
        let Running { linked, context } = unsafe { &mut *state.context.cast::<Running<'_, '_, '_, '_, M>>() };
        u32::from(!M::call(&linked.calls[number as usize], state, context))
    }
}

convention! {
    fn flow<M: LinkedMachine>(state: *mut State, node: u32) -> u32 {
        // SAFETY: generated code passes a pointer to the state of the current run.
        let state = unsafe { &mut *state };
        // SAFETY: `Linked::run` has set the context. During the run, no other code uses the context.
        let Running { linked, context } = unsafe { &mut *state.context.cast::<Running<'_, '_, '_, '_, M>>() };
        let next = M::flow(linked, &linked.own[node as usize], state, context);
        state.population = state.active.count_ones().into();
        state.leave = 0;
        // Generated code jumps to the node `next` without a check. So this function checks the number.
        if (next as usize) < linked.own.len() { next } else { NO_NODE }
    }
}
