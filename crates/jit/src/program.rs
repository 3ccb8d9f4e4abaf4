//! Compiles the nodes of a program to linked code. In linked code, a node can jump to any other node. A node consists
//! of a segment and the control flow after the segment.
//!
//! ```text
//!   enter --> node --> all lanes go the same way --> node ...
//!              |                                      ^
//!              +--> lanes diverge --> Flow: the machine decides
//! ```
//! A [`Node`] has a [`Segment`] of straight-line code with conditionals. If all active lanes take one path after the
//! segment, generated code jumps to the node on this path. Otherwise, the code calls the flow control of the machine.
//! The flow control changes the stack and the active lanes, and returns the next node. Between two nodes, the complete
//! state of the group is in the group's rows. So a run can start and end at each node.

// Generated code is called only in this file.
#![allow(unsafe_code)]

use std::borrow::Cow;

use iced_x86::{Code as Op, Instruction, MemoryOperand, Register};
use reconverge_guarded::{Guarded, Plain};

use crate::CompileError;
use crate::asm::{Assembler, Label, Rm, at_base};
use crate::barrier::emit_barrier;
use crate::called::Callee;
use crate::cold::{Cold, emit_cold};
use crate::emit::{self, Exits};
use crate::fault::{self, Fault};
use crate::frame::{self, Frame, GATHERED, STATE};
use crate::level::Level;
use crate::pages::Pages;
use crate::pool::Pool;
use crate::segment::Segment;
use crate::state::{EXIT, KEEP_DENORMALS, KINDS, State, place};
use crate::strip::{Row, Strip};
use crate::vectors::Vectors;
use crate::verify::{self, Rejected};

/// Straight-line code with conditionals, and the transition to the next node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// The code. If the segment has a call, the call comes last.
    pub(crate) segment: Segment,
    /// The instructions, in pieces. Lanes may leave the node after each piece, but not after the last piece.
    pub(crate) pieces: Vec<Piece>,
    /// Mask of bits of [`State::hindered`]. The node cannot run if a bit of the mask is set in that field.
    pub(crate) needs: u32,
    /// Number of instructions that the budget must cover at the entry of the node. The number is 0 if an earlier node
    /// has a budget check for this node.
    pub(crate) budget: u32,
    /// Number of entries that the stack must have room for at entry.
    pub(crate) entries: u32,
    pub(crate) next: Next,
    /// Whether the fast path omits stores of rows that the next run of the node overwrites. The last run that the
    /// budget allows takes the slow path, which stores all rows.
    pub(crate) lazy: bool,
    /// The row of the active lanes.
    pub(crate) mask: Row,
}

/// Instructions of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    /// Number of instructions that all active lanes run.
    pub(crate) size: u32,
    /// Number of the part that counts the runs of the piece.
    pub(crate) count: u32,
    pub(crate) conditionals: Vec<Conditional>,
    /// The lanes that leave the node after the piece. The number is the word that contains the leaving lanes. [`Waits`]
    /// states how the leaving lanes wait.
    pub(crate) leave: Option<(u32, Waits)>,
    /// The instructions that the group issues only if some lanes leave and some lanes stay. The first element is the
    /// number of these instructions. The second element is the number of the part that counts their runs. Only the
    /// leaving lanes run the first instruction. No lane runs the other instructions.
    pub(crate) apart: Option<[u32; 2]>,
}

/// If some lanes have left a node and some have stayed: how the lanes wait that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The lanes have arrived at a join, which takes one instruction.
    Arrive,
    /// The lanes wait for the machine's flow control. Generated code collects the waiting lanes at this index of
    /// [`State::gone`].
    For(u8),
}

/// A conditional in a node. The lanes in the conditional's word run the first side. All other active lanes run the
/// second side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conditional {
    pub(crate) word: u32,
    /// The enclosing conditional: its word, and the side that contains this conditional.
    pub(crate) parent: Option<(u32, usize)>,
    /// The first side and the second side.
    pub(crate) sides: [Branch; 2],
    /// Number of stack entries inside the conditional. 0 if the machine does not record the number.
    pub(crate) held: u32,
    /// Whether the first side issues an additional instruction to arrive at the join.
    pub(crate) joins: bool,
}

/// A side of a conditional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// Number of instructions that run if some lane takes the side.
    pub size: u32,
    /// The number of the part that counts the runs of the side's instructions.
    pub count: u32,
    /// Number of instructions of this side that the group issues even if no lane takes the side.
    pub always: u32,
}

/// The transition from a node to the next node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// All active lanes continue at the target.
    To(Target),
    /// The lanes in the word [`EXIT`] continue at the first target. All other active lanes continue at the second
    /// target. If both targets have lanes, the machine's flow control decides which lanes run first.
    Either([Target; 2]),
    /// If the field [`rounds`](State::rounds) allows another iteration, all active lanes continue at the first node of
    /// an iteration of the innermost loop. Otherwise, the machine's flow control selects the next node.
    Again(Target),
    /// The group waits at the barrier with this number until all groups have arrived there. Then its active lanes
    /// continue at the target. If the groups do not [take turns](crate::Linked::take_turns), the machine's flow control
    /// selects the next node.
    Barrier(u8, Target),
}

/// The position at which active lanes continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A node.
    Node(u32),
    /// A position in the program, in the machine's unit, at which no node begins.
    Outside(u32),
    /// The machine's flow control selects the target.
    Flow,
}

/// The reason for the end of a run of generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The budget does not cover the node with this number.
    Budget(u32),
    /// The node cannot run. There are three reasons: a lane accesses memory outside the window, the stack is too full,
    /// or a bit of [`State::hindered`] is set. The node has had no effect, with one exception. If the only effect of
    /// the node is one store, some lanes may have stored. These lanes have lower numbers than the lane outside the
    /// window.
    Refused(u32),
    /// The call of the node returned `false`, without an effect.
    Stopped(u32),
    /// The lanes continue at this position of the program. The code at this position is not compiled.
    Outside(u32),
    /// The machine's flow control has ended the run.
    Ended,
}

const BUDGET: u32 = 0;
const REFUSED: u32 = 1;
const STOPPED: u32 = 2;
const OUTSIDE: u32 = 3;
const ENDED: u32 = 4;

/// Result of flow control that ends the run of generated code.
pub const NO_NODE: u32 = u32::MAX;

/// The linked code of a program.
#[derive(Debug)]
pub(crate) struct Code {
    pages: Pages,
    pool: Guarded<Constants>,
    entries: Vec<u32>,
    mode: u32,
    /// Number of nodes.
    nodes: usize,
    /// Number of counts. The count of a part is the number of runs of the part. The count of a node is the number of
    /// coming runs of the node that take the slow path.
    counts: usize,
    /// Minimum size of a group's rows, in bytes.
    rows: usize,
    /// Minimum size of the window, in bytes.
    window: usize,
}

/// Words of the constant pool.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Constants([u32; 16]);

impl Plain for Constants {
    const ZERO: Self = Constants([0; 16]);
}

impl Next {
    pub(crate) fn targets_mut(&mut self) -> &mut [Target] {
        match self {
            Next::To(target) | Next::Again(target) | Next::Barrier(_, target) => std::slice::from_mut(target),
            Next::Either(targets) => targets,
        }
    }
}

impl Conditional {
    /// Returns the number of instructions that the group issues even if one side has no lanes.
    fn always(&self) -> u32 {
        self.sides.iter().map(|side| side.always).sum()
    }
}

impl Node {
    /// Returns whether later runs of the node may start with the slow path. A run starts with the slow path after a run
    /// in which a guard failed or a lane left the node.
    fn learns(&self) -> bool {
        self.segment.call.is_none() && self.segment.fast.as_ref().is_some_and(|fast| fast.guard.is_some())
    }

    /// Proves that the code of the node accesses only the group's rows, the state and the window.
    ///
    /// # Errors
    /// Returns the first rule that the node breaks.
    pub(crate) fn verify(&self) -> Result<(), Rejected> {
        verify::row(self.mask)?;
        verify::segment(&self.segment)?;
        let leaves = self.leaves();
        let conditionals = self.conditionals().flat_map(|conditional| {
            [Some(conditional.word), conditional.parent.map(|(word, _)| word)].into_iter().flatten()
        });
        leaves.chain(conditionals).try_for_each(verify::word)
    }

    /// Returns whether one of the node's strips is valid only for all lanes of a group at once.
    fn needs_both(&self) -> bool {
        self.segment.strips().any(Strip::needs_both)
    }

    fn conditionals(&self) -> impl Iterator<Item = &Conditional> {
        self.pieces.iter().flat_map(|piece| &piece.conditionals)
    }

    /// Returns the number of each word that contains lanes that leave the node.
    fn leaves(&self) -> impl Iterator<Item = u32> {
        self.pieces.iter().filter_map(|piece| piece.leave.map(|(word, _)| word))
    }

    /// Returns the maximum number of instructions of a run. A run reaches this number if all sides of conditionals run.
    pub(crate) fn instructions(&self) -> u32 {
        let sides = self.conditionals().flat_map(|conditional| conditional.sides);
        let inside: u32 = sides.map(|side| side.size + side.always).sum();
        let size = |piece: &Piece| piece.size + piece.apart.map_or(0, |[size, _]| size);
        inside + self.pieces.iter().map(size).sum::<u32>()
    }

    pub(crate) fn targets(&self) -> Vec<Target> {
        self.next.clone().targets_mut().to_vec()
    }

    fn parts(&self) -> impl Iterator<Item = u32> {
        let sides = self.conditionals().flat_map(|conditional| conditional.sides);
        let apart = self.pieces.iter().filter_map(|piece| piece.apart).map(|[_, count]| count);
        sides.map(|side| side.count).chain(self.pieces.iter().map(|piece| piece.count)).chain(apart)
    }
}

impl Code {
    /// Compiles nodes for groups of `lanes` lanes. `lanes` is a multiple of [`LANES`](crate::LANES), up to 64. If
    /// `lanes` is not a multiple of the vector size of the level, the function uses [`Level::Avx2`].
    ///
    /// # Errors
    /// Fails if memory for code cannot be allocated, a node cannot be encoded, or the verifier rejects a node.
    pub(crate) fn compile(
        nodes: &[Node],
        level: Level,
        lanes: usize,
        mode: u32,
    ) -> Result<Code, CompileError> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(CompileError::Target);
        }
        nodes.iter().try_for_each(Node::verify)?;
        let level = level.dividing(lanes);
        let both = both(nodes, level.has_both(lanes));
        if nodes.iter().zip(&both).any(|(node, both)| node.needs_both() && !both) {
            return Err(Rejected::Stores.into());
        }
        let mut pool = Pool::new(level);
        let mut asm = Assembler::default();
        let [dispatch, leave, flow, barrier] = [(); 4].map(|()| asm.label());
        let labels: Vec<Label> = nodes.iter().map(|_| asm.label()).collect();
        let strips = || nodes.iter().flat_map(|node| node.segment.strips());
        let floats = strips().any(Strip::has_floats);
        let parts = nodes.iter().flat_map(Node::parts).max().map_or(0, |part| part + 1);
        let compiler = Compiler {
            asm,
            parts,
            level,
            pool: &mut pool,
            cold: Vec::new(),
            later: Vec::new(),
            leaving: Vec::new(),
            floats,
            both: &both,
            computes_both: false,
            lanes: lanes as i32,
            frame: 0,
            labels: &labels,
            dispatch,
            leave,
            flow,
            barrier,
        };
        let (bytes, entries) = compiler.program(nodes)?;
        let constants =
            |words: &[u32]| Constants(std::array::from_fn(|number| words.get(number).copied().unwrap_or(0)));
        let pool = pool.words.chunks(16).map(constants).collect();
        let rows = strips().flat_map(Strip::rows).chain(nodes.iter().map(|node| node.mask));
        let rows = rows.filter_map(|row| match row {
            Row::Group(distance) => Some(distance as usize + 4 * lanes),
            Row::Own(_) | Row::Bytes(_) | Row::Halves(_) => None,
        });
        let (rows, window) = (rows.max().unwrap_or(0), strips().map(Strip::reached).max().unwrap_or(0));
        let inside = |node: &Node| {
            node.targets()
                .iter()
                .all(|target| !matches!(target, Target::Node(to) if *to as usize >= nodes.len()))
        };
        assert!(nodes.iter().all(inside), "every target is a node of the program");
        let counts = parts as usize + nodes.len();
        Ok(Code { pages: Pages::new(&bytes)?, pool, entries, mode, nodes: nodes.len(), counts, rows, window })
    }

    /// Returns the number of counts that a run needs.
    pub(crate) fn counts(&self) -> usize {
        self.counts
    }

    /// Returns the number of bytes of code.
    pub(crate) fn size(&self) -> usize {
        self.pages.bytes().len()
    }

    /// Returns the addresses of three kinds of rows: rows with a word per lane, rows with a byte per lane, and rows
    /// with 16 bits per lane.
    ///
    /// # Panics
    /// Panics if there are fewer rows with a word per lane than the code needs.
    #[inline]
    pub(crate) fn bound(&self, [rows, byte_rows, half_rows]: [*mut [u8]; 3]) -> [*mut u8; 3] {
        assert!(rows.len() >= self.rows, "the group has all rows that the code can access");
        [fault::rows(rows.cast()), byte_rows.cast(), half_rows.cast()]
    }

    /// Runs the code from a node on, until the code returns. Only the state's [`active`](State::active) lanes run. The
    /// code runs at most as many instructions as the state's budget allows.
    ///
    /// # Panics
    /// Panics if there are too few counts or nodes for the code, or if the window is too small for the code.
    ///
    /// # Errors
    /// Returns an error if the code accesses forbidden memory. A forbidden access is a defect of this crate or of the
    /// node.
    ///
    /// # Safety
    /// The processor must have the level. While generated code runs, only generated code and the functions that
    /// generated code calls may use the group's memory or the window. The rows must be aligned to 32 bytes, and the row
    /// of the mask must contain the active lanes. If a node uses rows with a byte per lane or rows with 16 bits per
    /// lane, there must be [`NARROW_ROWS`](crate::state::NARROW_ROWS) rows of each kind. The state's context must have
    /// the type that the functions expect.
    #[inline]
    pub(crate) unsafe fn run(
        &self,
        node: u32,
        state: &mut State,
        counts: &mut [u64],
        flow: Callee,
    ) -> Result<Left, Fault> {
        assert!((node as usize) < self.nodes, "the node exists");
        assert!(counts.len() >= self.counts, "each part and each node has a count");
        assert!(state.window_bytes >= self.window, "the window contains all bytes that the code can access");
        state.counts = counts.as_mut_ptr();
        state.pool = self.pool.as_ptr().cast();
        (state.host_mode, state.mode) = (KEEP_DENORMALS, self.mode);
        state.population = state.active.count_ones().into();
        (state.node, state.flow) = (node, flow as *const ());
        (state.code, state.entries) = (self.pages.bytes().as_ptr(), self.entries.as_ptr());
        // SAFETY: the code takes a state and returns a number.
        let code: fault::Entry = unsafe { std::mem::transmute(self.pages.address(0)) };
        // SAFETY: guaranteed by the caller.
        let left = unsafe { fault::call(code, state) }?;
        Ok(match left {
            BUDGET => Left::Budget(state.node),
            REFUSED => Left::Refused(state.node),
            STOPPED => Left::Stopped(state.node),
            OUTSIDE => Left::Outside(state.node),
            _ => Left::Ended,
        })
    }
}

/// Returns, for each node, whether the code of the node computes both vectors of a group at once. `can` states whether
/// code for both vectors is possible. A node in a loop of the program computes one vector at a time if the node does
/// not require both vectors. In a loop, lanes often leave one by one. Finally, only one vector has active lanes. Code
/// for one vector at a time skips a vector without active lanes. If nodes in loops computed both vectors at once, the
/// kernels `bfs` and `nested` would take 1.1 times as long (an AMD EPYC).
fn both(nodes: &[Node], can: bool) -> Vec<bool> {
    let mut loops = vec![false; nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        for target in node.targets() {
            if let Target::Node(to) = target
                && to as usize <= number
            {
                loops[to as usize..=number].fill(true);
            }
        }
    }
    nodes.iter().zip(loops).map(|(node, in_loop)| can && (node.needs_both() || !in_loop)).collect()
}

/// Code that is emitted after the nodes. This code ends the run with a reason and a number.
struct Later {
    enter: Label,
    reason: u32,
    number: u32,
}

/// Code that is emitted after the nodes. The code updates the counts of a node after some lanes have left the node.
struct Leaving {
    enter: Label,
    back: Label,
    node: u32,
}

/// Number of runs of a node that start with the slow path after a guard has failed. In the kernel `matmul`, products of
/// zero make the guards of sums fail repeatedly. If every run started with the fast path, generated code would compute
/// all strips of `matmul` twice.
const SLOW_RUNS: i32 = 4;

/// Number of runs of a node that start with the slow path after a lane has left. If this number is 1 instead of 2, the
/// kernel `nested` takes 1.1 times as long.
const LEFT_RUNS: i32 = 2;

/// Number of runs of a node in which the call replaces the strips. These runs follow an access outside the memory.
const CALLS: i32 = 3;

/// Register that is not 0 if the node must take the slow path.
const EXACT: Register = Register::R15D;

struct Compiler<'a> {
    asm: Assembler,
    /// Number of parts. The counts of parts come before the counts of nodes.
    parts: u32,
    level: Level,
    pool: &'a mut Pool,
    cold: Vec<Cold>,
    later: Vec<Later>,
    leaving: Vec<Leaving>,
    /// Whether some node depends on the host's floating point modes.
    floats: bool,
    /// For each node, whether the strips of the node compute both vectors of a group at once.
    both: &'a [bool],
    /// Whether the strips of the current node are for both vectors.
    computes_both: bool,
    lanes: i32,
    frame: i32,
    labels: &'a [Label],
    /// Code that jumps to the node whose number is in EAX.
    dispatch: Label,
    /// Code that ends the run and returns ECX.
    leave: Label,
    /// Code that calls the flow control. ESI contains the number of the node.
    flow: Label,
    /// Code of barriers ([`emit_barrier`]).
    barrier: Label,
}

impl Compiler<'_> {
    /// Returns the code, and the offset of each node.
    fn program(mut self, nodes: &[Node]) -> Result<(Vec<u8>, Vec<u32>), CompileError> {
        for (number, node) in nodes.iter().enumerate() {
            self.node(number as u32, node);
        }
        for leaving in std::mem::take(&mut self.leaving) {
            let node = &nodes[leaving.node as usize];
            self.pieces(leaving, node);
        }
        let Compiler { mut asm, level, cold, later, floats, frame, labels, .. } = self;
        let Compiler { dispatch, leave, flow, barrier, .. } = self;
        for Later { enter, reason, number } in later {
            asm.bind(enter);
            asm.number(Op::Mov_rm32_imm32, at_base(STATE, place!(node)), number as i32);
            asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ECX, reason));
            asm.branch(Op::Jmp_rel32_64, leave);
        }
        emit_cold(level, &mut asm, &cold);
        if nodes.iter().any(|node| matches!(node.next, Next::Barrier(_, Target::Node(_)))) {
            asm.bind(barrier);
            emit_barrier(&mut asm, dispatch, flow);
        }
        asm.bind(flow);
        call_flow(&mut asm, floats);
        asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ECX, ENDED));
        asm.number(Op::Cmp_rm32_imm8, Register::EAX, -1);
        asm.branch(Op::Je_rel32_64, leave);
        asm.bind(dispatch);
        // The flow control may have switched to another group. So the code reads the address of the rows again.
        asm.two(Op::Mov_r64_rm64, frame::ROWS, at_base(STATE, place!(rows)));
        asm.two(Op::Mov_r64_rm64, Register::RCX, at_base(STATE, place!(entries)));
        let entry = MemoryOperand::with_base_index_scale(Register::RCX, Register::RAX, 4);
        asm.two(Op::Mov_r32_rm32, Register::EAX, entry);
        asm.two(Op::Add_r64_rm64, Register::RAX, at_base(STATE, place!(code)));
        asm.push(Instruction::with1(Op::Jmp_rm64, Register::RAX));
        asm.bind(leave);
        let caller = Frame::of(level).caller;
        frame::epilogue(&mut asm, caller, floats);
        asm.before(|asm| {
            frame::prologue(asm, frame, caller, floats);
            asm.two(Op::Mov_r32_rm32, Register::EAX, at_base(STATE, place!(node)));
            asm.branch(Op::Jmp_rel32_64, dispatch);
        });
        asm.encode(labels)
    }

    fn node(&mut self, number: u32, node: &Node) {
        let label = self.labels[number as usize];
        self.asm.bind(label);
        if node.needs != 0 {
            let refused = self.later(REFUSED, number);
            self.asm.number(Op::Test_rm32_imm32, at_base(STATE, place!(hindered)), node.needs as i32);
            self.asm.branch(Op::Jne_rel32_64, refused);
        }
        if node.budget > 0 {
            let short = self.later(BUDGET, number);
            self.asm.number(Op::Cmp_rm32_imm32, at_base(STATE, place!(budget)), node.budget as i32);
            self.asm.branch(Op::Jl_rel32_64, short);
        }
        let guards = node.learns();
        if guards {
            // After guards have failed, some runs start with the slow path.
            let often = self.asm.label();
            let slow = self.slow_runs(Register::RCX, number);
            self.asm.two(Op::Mov_r32_rm32, EXACT, slow);
            self.asm.two(Op::Test_rm32_r32, EXACT, EXACT);
            self.asm.branch(Op::Je_rel32_64, often);
            self.asm.number(Op::Sub_rm64_imm8, slow, 1);
            self.asm.bind(often);
        }
        if node.lazy {
            let [exact, lazy] = [(); 2].map(|()| self.asm.label());
            let (budget, room) = (at_base(STATE, place!(budget)), at_base(STATE, place!(room)));
            self.asm.number(Op::Cmp_rm32_imm32, budget, 2 * node.budget as i32);
            self.asm.branch(Op::Jl_rel32_64, exact);
            if let Next::Again(_) = node.next {
                self.iterates(number, exact);
            } else {
                // In each run of the node, lanes may diverge, and the divergence pushes one entry. Without
                // reconvergence, a group of N lanes diverges fewer than N times. So this comparison ensures that the
                // stack has room for the next run.
                self.asm.number(Op::Cmp_rm32_imm32, room, node.entries as i32 + self.lanes);
                self.asm.branch(Op::Jb_rel32_64, exact);
            }
            if !guards {
                self.asm.two(Op::Xor_r32_rm32, EXACT, EXACT);
            }
            self.asm.branch(Op::Jmp_rel32_64, lazy);
            self.asm.bind(exact);
            self.asm.push(Instruction::with2(Op::Mov_r32_imm32, EXACT, 1));
            self.asm.bind(lazy);
        }
        if node.entries > 0 {
            let full = self.later(REFUSED, number);
            self.asm.number(Op::Cmp_rm32_imm32, at_base(STATE, place!(room)), node.entries as i32);
            self.asm.branch(Op::Jb_rel32_64, full);
        }
        self.segment(number, node);
        let some_left = node.leaves().next().map(|_| [(); 2].map(|()| self.asm.label()));
        if let Some([enter, back]) = some_left {
            self.asm.number(Op::Cmp_rm32_imm8, at_base(STATE, place!(left)), 0);
            self.asm.branch(Op::Jne_rel32_64, enter);
            self.leaving.push(Leaving { enter, back, node: number });
        }
        self.count(node, &node.pieces);
        if let Some([_, back]) = some_left {
            self.asm.bind(back);
        }
        match node.next {
            Next::To(target) => self.go(number, target),
            Next::Either([taken, not]) => self.either(number, taken, not),
            Next::Again(Target::Node(to)) => {
                let flow = self.asm.label();
                self.iterates(to, flow);
                self.asm.number(Op::Sub_rm32_imm8, at_base(STATE, place!(rounds)), 1);
                self.asm.branch(Op::Jmp_rel32_64, self.labels[to as usize]);
                self.asm.bind(flow);
                self.go(number, Target::Flow);
            }
            Next::Barrier(barrier, Target::Node(to)) => {
                for (register, value) in
                    [(Register::ESI, number), (Register::EDX, to), (Register::ECX, barrier.into())]
                {
                    self.asm.push(Instruction::with2(Op::Mov_r32_imm32, register, value));
                }
                self.asm.branch(Op::Jmp_rel32_64, self.barrier);
            }
            Next::Again(_) | Next::Barrier(..) => self.go(number, Target::Flow),
        }
    }

    /// Emits a conditional jump to the label `otherwise`. The jump is taken if no iteration of the innermost loop may
    /// begin with this node.
    fn iterates(&mut self, node: u32, otherwise: Label) {
        self.asm.number(Op::Cmp_rm32_imm32, at_base(STATE, place!(body)), node as i32);
        self.asm.branch(Op::Jne_rel32_64, otherwise);
        self.asm.number(Op::Cmp_rm32_imm8, at_base(STATE, place!(rounds)), 0);
        self.asm.branch(Op::Je_rel32_64, otherwise);
    }

    /// Emits code that updates the counts of a node after some lanes have left the node.
    fn pieces(&mut self, Leaving { enter, back, node: number }: Leaving, node: &Node) {
        let active = at_base(STATE, place!(active));
        self.asm.bind(enter);
        self.asm.number(Op::Mov_rm32_imm32, at_base(STATE, place!(left)), 0);
        for (place, piece) in node.pieces.iter().enumerate() {
            self.count(node, std::slice::from_ref(piece));
            let Some((word, waits)) = piece.leave else { continue };
            let asm = &mut self.asm;
            let [none, all] = [(); 2].map(|()| asm.label());
            asm.two(Op::Mov_r64_rm64, Register::RAX, at_base(STATE, place!(words) + 8 * word as i32));
            asm.two(Op::And_r64_rm64, Register::RAX, active);
            asm.branch(Op::Je_rel32_64, none);
            asm.two(Op::Cmp_r64_rm64, Register::RAX, active);
            asm.branch(Op::Je_rel32_64, all);
            asm.store(Op::Xor_rm64_r64, active, Register::RAX);
            match waits {
                Waits::For(kind) => {
                    let gone = at_base(STATE, place!(gone) + 8 * i32::from(kind % KINDS as u8));
                    asm.store(Op::Or_rm64_r64, gone, Register::RAX);
                }
                Waits::Arrive => {
                    asm.number(Op::Sub_rm32_imm32, at_base(STATE, place!(budget)), 1);
                    asm.number(Op::Add_rm32_imm8, at_base(STATE, place!(arrivals)), 1);
                }
            }
            asm.two(Op::Popcnt_r64_rm64, Register::RAX, Register::RAX);
            asm.store(Op::Sub_rm64_r64, at_base(STATE, place!(population)), Register::RAX);
            asm.number(Op::Add_rm64_imm8, at_base(STATE, place!(divergent)), 1);
            if let Some([size, count]) = piece.apart {
                asm.store(Op::Add_rm64_r64, at_base(STATE, place!(lane_instructions)), Register::RAX);
                asm.number(Op::Sub_rm32_imm32, at_base(STATE, place!(budget)), size as i32);
                asm.two(Op::Mov_r64_rm64, Register::RAX, at_base(STATE, place!(counts)));
                asm.number(Op::Add_rm64_imm8, at_base(Register::RAX, 8 * count as i32), 1);
            }
            if node.segment.fast.as_ref().is_none_or(|fast| !fast.leaves()) {
                // If a lane has left in this run, lanes often also leave in the next runs. So the next runs take the
                // slow path.
                let slow = self.slow_runs(Register::RAX, number);
                self.asm.number(Op::Mov_rm64_imm32, slow, LEFT_RUNS);
            }
            let asm = &mut self.asm;
            asm.branch(Op::Jmp_rel32_64, none);
            asm.bind(all);
            // The guards of all strips have failed because all lanes have left, not because of values. If the code
            // counted these failures, half of the runs of the kernel `table16` would take the slow path.
            let slow = self.slow_runs(Register::RAX, number);
            let asm = &mut self.asm;
            asm.number(Op::Mov_rm64_imm32, slow, 0);
            asm.number(Op::Mov_rm32_imm32, at_base(STATE, place!(leave)), place as i32 + 1);
            asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ESI, number));
            asm.branch(Op::Jmp_rel32_64, self.flow);
            asm.bind(none);
        }
        self.asm.branch(Op::Jmp_rel32_64, back);
    }

    /// Returns the memory operand that contains the number of coming runs of a node that take the slow path. Overwrites
    /// the register `to`.
    fn slow_runs(&mut self, to: Register, node: u32) -> MemoryOperand {
        self.asm.two(Op::Mov_r64_rm64, to, at_base(STATE, place!(counts)));
        at_base(to, 8 * (self.parts + node) as i32)
    }

    fn later(&mut self, reason: u32, number: u32) -> Label {
        let known = self.later.iter().find(|later| (later.reason, later.number) == (reason, number));
        if let Some(later) = known {
            return later.enter;
        }
        let enter = self.asm.label();
        self.later.push(Later { enter, reason, number });
        enter
    }

    /// Returns the label of a target, or `None` if flow control selects the next node.
    fn label(&mut self, target: Target) -> Option<Label> {
        match target {
            Target::Node(to) => Some(self.labels[to as usize]),
            Target::Outside(place) => Some(self.later(OUTSIDE, place)),
            Target::Flow => None,
        }
    }

    /// Emits a jump from a node to a target, for all active lanes.
    fn go(&mut self, from: u32, target: Target) {
        match self.label(target) {
            Some(_) if target == Target::Node(from + 1) => {}
            Some(label) => self.asm.branch(Op::Jmp_rel32_64, label),
            None => {
                self.asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ESI, from));
                self.asm.branch(Op::Jmp_rel32_64, self.flow);
            }
        }
    }

    fn either(&mut self, from: u32, taken: Target, not: Target) {
        let flow = self.asm.label();
        let [taken, not_label] = [taken, not].map(|target| self.label(target).unwrap_or(flow));
        let (word, active) =
            (at_base(STATE, place!(words) + 8 * EXIT as i32), at_base(STATE, place!(active)));
        self.asm.two(Op::Mov_r64_rm64, Register::RAX, word);
        // Strips without active lanes do not write their bits of the word. The code therefore clears these bits.
        self.asm.two(Op::And_r64_rm64, Register::RAX, active);
        self.asm.branch(Op::Je_rel32_64, not_label);
        self.asm.two(Op::Cmp_r64_rm64, Register::RAX, active);
        self.asm.branch(Op::Je_rel32_64, taken);
        self.asm.bind(flow);
        self.asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ESI, from));
        self.asm.branch(Op::Jmp_rel32_64, self.flow);
    }

    fn segment<'n>(&mut self, number: u32, node: &'n Node) {
        let segment = &node.segment;
        let both = self.both[number as usize];
        self.computes_both = both;
        let [failed, call, done] = [(); 3].map(|()| self.asm.label());
        let reaches = segment.exact.has_spans();
        // If the code computes both vectors at once, a separate check is unnecessary. The guards of code for both
        // vectors check all lanes before any effect.
        let check = segment.check.as_ref().filter(|_| !both);
        let guards = both && segment.check.is_some();
        let guarded = |strip: &'n Strip| match guards {
            true => Cow::Owned(strip.clone().with_guarded_spans()),
            false => Cow::Borrowed(strip),
        };
        let (fast, exact) = (segment.fast.as_ref().map(guarded), guarded(&segment.exact));
        let (fast, exact) = (fast.as_deref(), &*exact);
        match (check, segment.call) {
            (_, Some(_)) if reaches => {
                // After an access outside the memory, the call replaces the code in this run and in the next runs of
                // the node.
                let inside = self.asm.label();
                let slow = self.slow_runs(Register::RCX, number);
                self.asm.number(Op::Cmp_rm64_imm8, slow, 0);
                self.asm.branch(Op::Je_rel32_64, inside);
                self.asm.number(Op::Sub_rm64_imm8, slow, 1);
                self.asm.branch(Op::Jmp_rel32_64, call);
                self.asm.bind(inside);
                if let Some(check) = check {
                    self.strips(&[], |compiler| compiler.strip(node, check, Some(failed), &[]));
                }
            }
            (Some(check), _) => {
                let refused = self.later(REFUSED, number);
                self.strips(&[], |compiler| compiler.strip(node, check, Some(refused), &[]));
            }
            (None, _) => {}
        }
        let exact_guard = match (exact.guard, segment.call) {
            (None, _) => None,
            (Some(_), Some(_)) => Some(failed),
            (Some(_), None) => Some(self.later(REFUSED, number)),
        };
        let has_effects = |strip: &Strip| !strip.effects.is_empty();
        // Guards replace the check of a node. So the code with the guards is necessary even if it has no effects.
        if guards || has_effects(exact) || fast.is_some_and(has_effects) {
            let mut words: Vec<u32> = fast.into_iter().chain([exact]).flat_map(Strip::words).collect();
            words.sort_unstable();
            words.dedup();
            words.truncate(GATHERED.len());
            // The fast path does not write the words that contain leaving lanes. So the code first clears these words.
            for word in node.leaves().filter(|word| !words.contains(word)) {
                self.asm.number(Op::Mov_rm64_imm32, at_base(STATE, place!(words) + 8 * word as i32), 0);
            }
            self.strips(&words, |compiler| match fast {
                Some(fast) if fast != exact => {
                    let [failed, slow, over] = [(); 3].map(|()| compiler.asm.label());
                    if node.lazy || node.learns() {
                        compiler.asm.two(Op::Test_rm32_r32, EXACT, EXACT);
                        compiler.asm.branch(Op::Jne_rel32_64, slow);
                    }
                    compiler.strip(node, fast, Some(failed), &words);
                    compiler.asm.branch(Op::Jmp_rel32_64, over);
                    compiler.asm.bind(failed);
                    if node.learns() {
                        let runs = compiler.slow_runs(Register::RAX, number);
                        compiler.asm.number(Op::Add_rm64_imm8, runs, SLOW_RUNS);
                    }
                    compiler.asm.bind(slow);
                    compiler.strip(node, exact, exact_guard, &words);
                    compiler.asm.bind(over);
                }
                _ => compiler.strip(node, exact, exact_guard, &words),
            });
        }
        let Some((callee, argument)) = segment.call else { return };
        if reaches {
            self.asm.branch(Op::Jmp_rel32_64, done);
            self.asm.bind(failed);
            let slow = self.slow_runs(Register::RCX, number);
            self.asm.number(Op::Add_rm64_imm8, slow, CALLS);
            self.asm.bind(call);
        }
        let asm = &mut self.asm;
        asm.push(Instruction::with2(Op::Mov_r64_rm64, Register::RDI, STATE));
        asm.push(Instruction::with2(Op::Mov_r32_imm32, Register::ESI, argument));
        asm.push(Instruction::with2(Op::Mov_r64_imm64, Register::RAX, callee as usize as u64));
        frame::leave_mode(asm, self.floats);
        asm.push(Instruction::with1(Op::Call_rm64, Register::RAX));
        frame::enter_mode(asm, self.floats);
        asm.push(Instruction::with2(Op::Test_rm32_r32, Register::EAX, Register::EAX));
        let stopped = self.later(STOPPED, number);
        self.asm.branch(Op::Jne_rel32_64, stopped);
        self.asm.bind(done);
    }

    /// Emits a loop over the vectors of the group, or code for both vectors at once.
    fn strips(&mut self, words: &[u32], body: impl FnOnce(&mut Self)) {
        let (level, asm) = (self.level, &mut self.asm);
        let [strip, next] = [(); 2].map(|()| asm.label());
        let gathered = || words.iter().zip(GATHERED);
        for (_, register) in gathered() {
            asm.two(Op::Xor_r64_rm64, register, register);
        }
        if self.computes_both {
            asm.two(Op::Xor_r32_rm32, Register::R13D, Register::R13D);
            body(self);
        } else {
            frame::begin_vectors(level, asm, strip, next);
            body(self);
            frame::end_vectors(level, &mut self.asm, strip, next);
        }
        let asm = &mut self.asm;
        for (word, register) in gathered() {
            let word = at_base(STATE, place!(words) + 8 * *word as i32);
            asm.store(Op::Mov_rm64_r64, word, register);
        }
    }

    fn strip(&mut self, node: &Node, strip: &Strip, guard: Option<Label>, words: &[u32]) {
        let exits = Exits { guard, words, cold: &mut self.cold };
        let stride = 4 * self.lanes as u32;
        let vectors = if self.computes_both { Vectors::both(strip) } else { Vectors::one(strip) };
        let frame = emit::emit(&mut self.asm, self.pool, &vectors, stride, node.mask, exits);
        self.frame = self.frame.max(frame);
    }

    /// Emits code that updates the counts for `pieces` of a node. One set of lanes runs all of `pieces`.
    fn count(&mut self, node: &Node, pieces: &[Piece]) {
        let asm = &mut self.asm;
        let counts = Register::RCX;
        let of = |count: u32| at_base(counts, 8 * count as i32);
        let side_of =
            |word: u32, side: usize| at_base(STATE, place!(sides) + 16 * word as i32 + 8 * side as i32);
        let lane_instructions = at_base(STATE, place!(lane_instructions));
        let budget = at_base(STATE, place!(budget));
        let conditionals = || pieces.iter().flat_map(|piece| &piece.conditionals);
        let size: u32 = pieces.iter().map(|piece| piece.size).sum();
        if size > 0 || conditionals().next().is_some() {
            asm.two(Op::Mov_r64_rm64, counts, at_base(STATE, place!(counts)));
        }
        for piece in pieces.iter().filter(|piece| piece.size > 0) {
            asm.number(Op::Add_rm64_imm8, of(piece.count), 1);
        }
        if size > 0 {
            asm.push(Instruction::with3(
                Op::Imul_r64_rm64_imm32,
                Register::RAX,
                at_base(STATE, place!(population)),
                size as i32,
            ));
            asm.store(Op::Add_rm64_r64, lane_instructions, Register::RAX);
        }
        let top = conditionals().filter(|conditional| conditional.parent.is_none());
        let size = size + top.map(Conditional::always).sum::<u32>();
        if size > 0 {
            asm.number(Op::Sub_rm32_imm32, budget, size as i32);
        }
        for conditional in conditionals() {
            let Conditional { word, parent, sides, held, joins } = *conditional;
            let (taken, not, around) = (Register::RAX, Register::RDX, Register::R8);
            match parent {
                None => asm.two(Op::Mov_r64_rm64, not, at_base(STATE, place!(active))),
                Some((word, side)) => {
                    asm.two(Op::Mov_r64_rm64, not, side_of(word, side));
                    // The code sets R8 to 1 if a lane runs the side that contains the conditional.
                    asm.two(Op::Xor_r32_rm32, Register::R8D, Register::R8D);
                    asm.two(Op::Test_rm64_r64, not, not);
                    asm.push(Instruction::with1(Op::Setne_rm8, Register::R8L));
                    if conditional.always() > 0 {
                        let always = conditional.always() as i32;
                        asm.push(Instruction::with3(
                            Op::Imul_r32_rm32_imm32,
                            Register::R9D,
                            Register::R8D,
                            always,
                        ));
                        asm.store(Op::Sub_rm32_r32, budget, Register::R9D);
                    }
                }
            }
            match parent {
                _ if held == 0 => {}
                None => asm.number(Op::Or_rm32_imm32, at_base(STATE, place!(held)), 1 << held),
                Some(_) => {
                    asm.number(Op::Shl_rm64_imm8, around, held as i32);
                    asm.store(Op::Or_rm32_r32, at_base(STATE, place!(held)), Register::R8D);
                }
            }
            asm.two(Op::Mov_r64_rm64, taken, at_base(STATE, place!(words) + 8 * word as i32));
            asm.two(Op::And_r64_rm64, taken, not);
            asm.three(Op::VEX_Andn_r64_r64_rm64, not, taken, Rm::Register(not));
            if node.conditionals().any(|inner| inner.parent.is_some_and(|(parent, _)| parent == word)) {
                asm.store(Op::Mov_rm64_r64, side_of(word, 0), taken);
                asm.store(Op::Mov_rm64_r64, side_of(word, 1), not);
            }
            let runs = [Register::R10, Register::R11];
            let lanes = [(taken, Register::EAX), (not, Register::EDX)];
            for (((lanes, low), side), run) in lanes.into_iter().zip(sides).zip(runs) {
                let all = side.size + side.always;
                if all > 0 {
                    asm.two(Op::Popcnt_r64_rm64, run, lanes);
                    asm.push(Instruction::with3(Op::Imul_r64_rm64_imm32, run, run, all as i32));
                    asm.store(Op::Add_rm64_r64, lane_instructions, run);
                }
                // The code sets `run` to 1 if a lane runs the side.
                asm.number(Op::Cmp_rm64_imm8, lanes, 1);
                asm.two(Op::Sbb_r64_rm64, run, run);
                asm.number(Op::Add_rm64_imm8, run, 1);
                if side.size > 0 {
                    asm.store(Op::Add_rm64_r64, of(side.count), run);
                    asm.push(Instruction::with3(Op::Imul_r64_rm64_imm32, lanes, run, side.size as i32));
                    asm.store(Op::Sub_rm32_r32, budget, low);
                }
            }
            let [run, other] = runs;
            asm.two(Op::And_r64_rm64, run, other);
            asm.store(Op::Add_rm64_r64, at_base(STATE, place!(divergent)), run);
            if joins {
                // If both sides run, the group issues one more instruction, because the first side arrives at the join.
                asm.store(Op::Add_rm32_r32, at_base(STATE, place!(arrivals)), Register::R10D);
                asm.store(Op::Sub_rm32_r32, budget, Register::R10D);
            }
        }
    }
}

/// Emits a call of the machine's flow control for the node whose number is in ESI.
fn call_flow(asm: &mut Assembler, floats: bool) {
    asm.push(Instruction::with2(Op::Mov_r64_rm64, Register::RDI, STATE));
    frame::leave_mode(asm, floats);
    asm.push(Instruction::with1(Op::Call_rm64, at_base(STATE, place!(flow))));
    frame::enter_mode(asm, floats);
}

#[cfg(test)]
pub(crate) mod tests;
