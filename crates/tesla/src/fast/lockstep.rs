//! The Tesla part of [`reconverge_simt::lockstep`]. It runs two engines on one block and compares the engines.
//!
//! Each engine has a copy of the block and a view of global memory. After each stretch of instructions, the following
//! state must be the same in both engines: the warps (registers, l[], inputs, outputs, token stack), s[] with its
//! locks, the barriers, the bytes written to g[], and the counts. At the end of the block, each word's instruction must
//! have been issued the same number of times by both engines.

use std::cell::RefCell;
use std::collections::BTreeMap;

use reconverge_simt::compiling::Extent;
use reconverge_simt::lockstep::{self, Differs, Stretch, Twin, check, check_rows};
use reconverge_simt::memory::{Footprint, Memory, Plan, Shadow, Store, Tracked};
use reconverge_simt::{Difference, FlowView, GroupId, Issue, Mask, Observer, Shares, Step, Trap};

use super::Fast;
use crate::block::{Block, Executor, Ran};
use crate::context::Context;
use crate::flow::WARP;
use crate::grid::Grid;
use crate::launch::RunError;
use crate::reference::Reference;
use crate::state::{ADDRESS_REGISTERS, CONDITION_REGISTERS, Warp};
use crate::trap::Cause;

/// Runs block `number` to its end on both engines. An extent selects parts of the program, and `made` creates an engine
/// with host code for these parts. Returns the block, and the block's reads and writes of global memory.
///
/// # Errors
/// Both engines trapped, or the engines differ.
pub(crate) fn run(
    grid: &Grid,
    fast: &Fast,
    number: usize,
    memory: &Memory,
    views: &Views,
    made: impl Fn(Extent) -> Fast,
    shares: &mut Shares,
) -> Result<(Block, Footprint), RunError> {
    let seed = lockstep::seed(grid.context().code.words(), number as u64);
    let pair = lockstep::run(|| Pair::new(grid, fast, number, memory, views), seed, shares);
    let again = |extent, known: &Difference| {
        let fast = made(extent);
        lockstep::again(|| Pair::new(grid, &fast, number, memory, views), known)
    };
    let Pair { reference: Side { block, global }, twin, .. } =
        pair.map_err(|failure| failure.first(fast.is_compiled(), again))?;
    views.end(twin.global);
    Ok((block, views.end(global)))
}

/// Views of global memory for the blocks of a launch. The view of a block reuses the memory of earlier views.
pub(crate) struct Views {
    plan: Plan,
    spare: RefCell<Vec<Shadow>>,
}

impl Views {
    /// Creates the views for a launch with this memory.
    pub(crate) fn new(memory: &Memory) -> Views {
        Views { plan: Plan::new(memory), spare: RefCell::default() }
    }

    fn begin<'a>(&self, memory: &'a Memory) -> Logged<'a> {
        let shadow = self.spare.borrow_mut().pop().unwrap_or_default();
        Logged { memory: Tracked::with(memory, &self.plan, shadow), written: BTreeMap::new() }
    }

    fn end(&self, global: Logged<'_>) -> Footprint {
        let (footprint, shadow) = global.memory.finish();
        self.spare.borrow_mut().push(shadow);
        footprint
    }
}

/// One engine's block and view of global memory.
struct Side<'a> {
    block: Block,
    global: Logged<'a>,
}

impl Side<'_> {
    fn advance<E: Executor, O: Observer>(
        &mut self,
        executor: &E,
        context: &Context,
        observer: &mut O,
        most: u32,
    ) -> Ran<Step> {
        self.block.advance(executor, context, &mut self.global, observer, most)
    }
}

struct Pair<'a> {
    context: &'a Context,
    fast: &'a Fast,
    reference: Side<'a>,
    twin: Side<'a>,
}

impl<'a> Pair<'a> {
    fn new(grid: &'a Grid, fast: &'a Fast, number: usize, memory: &'a Memory, views: &Views) -> Self {
        let reference = Side { block: grid.block(&Reference, number, None), global: views.begin(memory) };
        let twin = Side { block: grid.block(fast, number, None), global: views.begin(memory) };
        Pair { context: grid.context(), fast, reference, twin }
    }
}

impl Twin for Pair<'_> {
    type Cause = Cause;

    fn group(&self) -> GroupId {
        self.reference.block.group()
    }

    fn issue(&self) -> Option<Issue> {
        self.reference.block.current().flow.issue()
    }

    fn words(&self, pc: u32) -> Option<[u32; 2]> {
        Some(self.context.code.words_at(pc))
    }

    fn reference<O: Observer>(&mut self, observer: &mut O) -> Result<Step, Trap<Cause>> {
        self.reference.advance(&Reference, self.context, observer, 1).end
    }

    /// Runs only one warp, for up to one slice. So a trap belongs to this warp.
    fn fast<O: Observer>(&mut self, most: u64, observer: &mut O) -> Stretch<Cause> {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let Ran { tried, end } = self.twin.advance(self.fast, self.context, observer, most);
        Stretch { instructions: u64::from(tried) - u64::from(end.is_err() && tried > 0), end }
    }

    fn compare(&mut self, end: &Result<Step, Trap<Cause>>) -> Result<(), Differs> {
        let (Side { block: a, global: a_global }, Side { block: b, global: b_global }) =
            (&mut self.reference, &mut self.twin);
        check("the warp that runs next", &a.current().number, &b.current().number)?;
        for (a, b) in a.warps.iter().zip(&b.warps) {
            check_warps(a, b)?;
        }
        check("s[]", &a.common.shared, &b.common.shared)?;
        check("the barriers", &a.common.barriers, &b.common.barriers)?;
        check("the counts", &a.common.statistics, &b.common.statistics)?;
        check("what was written to g[]", &a_global.written, &b_global.written)?;
        a_global.written.clear();
        b_global.written.clear();
        if *end == Ok(Step::Running) {
            return Ok(());
        }
        self.fast.settle(&mut b.common);
        check("how often each word was issued", &a.common.issued, &b.common.issued)
    }
}

fn check_warps(a: &Warp, b: &Warp) -> Result<(), Differs> {
    if a == b {
        return Ok(());
    }
    let of = |what: String| if a.number == 0 { what } else { format!("{what} of warp {}", a.number) };
    check_rows(a.file().rows(), b.file().rows(), Mask::first(WARP), |row| of(format!("$r{row}")))?;
    for register in 0..CONDITION_REGISTERS as u8 {
        check(&of(format!("$c{register}")), a.c_row(register), b.c_row(register))?;
    }
    for register in 1..=ADDRESS_REGISTERS as u8 {
        check(&of(format!("$a{register}")), a.a_row(register), b.a_row(register))?;
    }
    check(&of("the flow".to_owned()), &a.flow, &b.flow)?;
    check(&of("l[], inputs or outputs".to_owned()), a, b)
}

/// A view of memory that records each byte that is written to the view.
struct Logged<'a> {
    memory: Tracked<'a>,
    written: BTreeMap<u32, u8>,
}

impl Store for Logged<'_> {
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        self.memory.load(address, into)
    }

    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        let stored = self.memory.store(address, bytes);
        if stored {
            self.written.extend((address..).zip(bytes.iter().copied()));
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use reconverge_isa::Program;
    use reconverge_simt::{Lane, Options};

    use super::*;
    use crate::inst::Chip;
    use crate::launch::{Launch, Setup, Vertex};

    fn vertices(program: &Program) -> (Grid, Memory) {
        let setup = Setup::new(Chip::G80);
        let launch = Launch::Vertex(Vertex { setup: setup.into(), lanes: 4, inputs: Default::default() });
        Grid::new(launch, program, &Options::default()).unwrap()
    }

    /// The compiled code subtracts although the program adds. The states of the engines first differ after an iteration
    /// of the loop. The report names the instruction whose compiled code is wrong.
    #[test]
    fn an_instruction_whose_code_is_wrong_is_named() {
        use crate::inst::Stage;
        use crate::text::assemble;
        let program = |rounds: u32, wrong: &str| {
            let text = format!(
                "mov b32 $r1 {rounds:#x}\nmov b32 $r3 0x1\nLOOP:\nadd b32 $r2 $r2 $r1\nadd b32 $r2 $r2 $r3\n\
                 {wrong} b32 $r4 $r2 $r1\nadd b32 $r5 $r4 $r1\nsub b32 $c0 $r1 $r1 $r3\n(lg $c0) bra LOOP\nexit nop\n"
            );
            Program::from_words(assemble(&text, Chip::G80, Stage::Vertex).expect("it assembles").words())
        };
        let level = Options::default().level();
        let mut found = 0;
        for rounds in 4..16 {
            let (grid, memory) = vertices(&program(rounds, "add"));
            let (other, _) = vertices(&program(rounds, "sub"));
            let made = |extent: Extent| Fast {
                compiled: Fast::compiled(&other, level, extent).compiled,
                ..Fast::lowered(&grid, level, extent.cuts_blocks())
            };
            let (fast, views) = (made(Extent::Throughout), Views::new(&memory));
            if !fast.is_compiled() {
                return;
            }
            match run(&grid, &fast, 0, &memory, &views, made, &mut Shares::default()) {
                Ok(_) => {}
                Err(RunError::Differ(difference)) => {
                    found += 1;
                    assert_eq!(difference.instructions, 4..5, "{difference}");
                    let Issue { pc, mask } = difference.at.expect("an instruction");
                    assert_eq!(mask, Mask::first(4), "{difference}");
                    let [right, wrong] = [&grid, &other].map(|grid| grid.context().code.words_at(pc));
                    assert_ne!(right, wrong, "{difference}");
                    let (sum, other) = (2 * rounds + 1, 1);
                    let [reference, fast] = [sum, other].map(|value| format!("{value:#x}"));
                    let Difference { what, reference: a, fast: b, .. } = &*difference;
                    assert_eq!([&**what, a, b], ["$r4 of lane 0", &reference, &fast]);
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(found > 4, "{found} of 12");
    }

    #[test]
    fn a_difference_names_the_register_and_the_lane() {
        let program = Program::from_words(vec![0xf000_0001, 0xe000_0781]);
        let (grid, memory) = vertices(&program);
        let fast = Fast::of(&grid, Options::default().level());
        let mut pair = Pair::new(&grid, &fast, 0, &memory, &Views::new(&memory));
        assert_eq!(pair.compare(&Ok(Step::Running)), Ok(()));
        pair.twin.block.warps[0].set_r(Lane(2), 5, 7);
        let Differs { what, reference, fast } = pair.compare(&Ok(Step::Running)).unwrap_err();
        assert_eq!([what, reference, fast], ["$r5 of lane 2", "0x0", "0x7"]);
    }
}
