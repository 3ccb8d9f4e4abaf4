//! A pass in the place of blocks: what it is given, and what the warp is behind it.

// Code is called and calls back: each place states what it relies on.
#![allow(unsafe_code)]

use std::cell::Cell;

use reconverge_jit::{Count, Ended, State, StateBox};
use reconverge_simt::{CodeFault, Mask, Statistics};

use super::code::{A, C};
use super::{Access, After, Compiled, Gone};
use crate::fast::lanes::{ACTIVE, Lanes, Set};
use crate::fast::lower::Lowered;
use crate::fast::words::Reach;
use crate::flow::{Flow, WARP};

thread_local! {
    /// The state of a thread, while nothing runs.
    static STATE: Cell<Option<StateBox>> = const { Cell::new(None) };
}

/// Passes, and a state to run them with.
pub(in crate::fast) struct Runner<'a> {
    compiled: &'a Compiled,
    state: Option<StateBox>,
}

/// What a pass works on besides the state.
pub(in crate::fast) struct Work<'a, 'w> {
    pub(in crate::fast) lowered: &'a Lowered,
    pub(in crate::fast) lanes: &'a mut Lanes<'w>,
    pub(in crate::fast) memory: &'a mut dyn Reach,
    pub(in crate::fast) flow: &'a mut Flow,
    pub(in crate::fast) statistics: &'a mut Statistics,
    /// By block, how often it ran.
    pub(in crate::fast) runs: &'a mut [u64],
    pub(in crate::fast) budget: &'a mut u32,
    /// The lanes that run.
    pub(in crate::fast) active: &'a mut u32,
}

/// Where the warp is behind a pass.
pub(in crate::fast) enum Passed {
    /// Before this block.
    Before(u32),
    /// Behind this block, whose flow has not been asked.
    Behind(u32),
    /// At the load or store at the end of this block, which some lane cannot do.
    Refused(u32),
    /// Before this block, which runs without a pass.
    Apart(u32),
}

/// What calls need.
struct Calls<'a, 'w> {
    compiled: &'a Compiled,
    pass: u32,
    lowered: &'a Lowered,
    lanes: &'a mut Lanes<'w>,
    memory: &'a mut dyn Reach,
}

impl<'a> Runner<'a> {
    pub(in crate::fast) fn new(compiled: &'a Compiled) -> Self {
        Runner { compiled, state: Some(STATE.take().unwrap_or_else(State::new)) }
    }

    /// The pass that begins at a block, if it may run now.
    #[inline(always)]
    pub(in crate::fast) fn pass(&self, block: u32, budget: u32, flow: &Flow) -> Option<u32> {
        let number = self.compiled.at(block)?;
        let known = &self.compiled.known[number as usize];
        let each = if known.branches { flow.active().count() as usize } else { 0 };
        (known.most <= budget && flow.has_room_for(known.entries + each)).then_some(number)
    }

    /// Runs a pass for the active lanes.
    #[inline(never)]
    pub(in crate::fast) fn run(&mut self, pass: u32, work: Work<'_, '_>) -> Passed {
        let Runner { compiled, state } = self;
        let Work { lowered, lanes, memory, flow, statistics, runs, budget, active } = work;
        let state = state.get_or_insert_with(State::new);
        let known = &compiled.known[pass as usize];
        // What a whole warp writes first, it need not know.
        let unknown = if *active == u32::MAX { known.registers.fresh } else { 0 };
        take_registers(state, lanes, known.registers.touched & !unknown);
        (state.budget, state.rounds) = (*budget as i32, u32::MAX);
        let rows = lanes.rows.bytes();
        state.set_window(lanes.shared.bytes_mut());
        let mut calls = Calls { compiled, pass, lowered, lanes, memory };
        state.context = (&raw mut calls).cast();
        let (mut broke, mut returned) = (0, 0);
        let count = |Count { runs: range, times, lanes }: Count| {
            let size = u64::from(known.before[range.end] - known.before[range.start]);
            for block in &known.ran[range] {
                runs[*block as usize] += times;
            }
            statistics.instructions += size * times;
            statistics.lane_instructions += size * lanes;
        };
        let gone = |step: usize, lanes: u64| match known.gone.iter().find(|(at, _)| *at as usize == step) {
            Some((_, Gone::Breaks)) => broke |= lanes,
            Some((_, Gone::Returns)) => returned |= lanes,
            Some((_, Gone::Branches { next })) => flow.branch_off(*next, Mask(lanes)),
            Some((_, Gone::Waits)) | None => {}
        };
        // SAFETY: there are passes only where the processor has the level; they were made for the layout of these rows,
        // which hold the mask, and for a window of these bytes; and the context is what their calls take it for.
        let ended =
            unsafe { compiled.passes.run(pass as usize, state, rows, u64::from(*active), count, gone) };
        let ended = ended.unwrap_or_else(|fault| {
            let pc = lowered.first_pc(known.at[0]);
            CodeFault { pc, hexadecimal: true, address: fault.address }.unwind()
        });
        let Calls { lanes, .. } = calls;
        state.context = std::ptr::null_mut();
        // Before anything was done, those that need not be known are not.
        if state.budget as u32 != *budget || ended != Ended::Refused(0) {
            give_registers(state, lanes, known.registers.written);
        }
        *budget = state.budget as u32;
        *active = state.active as u32;
        statistics.divergent_branches += std::mem::take(&mut state.divergent);
        lanes.choose_row(*active);
        if let Ended::Left(_) = ended {
            // The code has taken them out of the row.
            let place = lanes.tables.sets[ACTIVE];
            lanes.row_mut(place).0 = std::array::from_fn(|lane| 0u32.wrapping_sub(*active >> lane & 1));
        }
        if broke | returned != 0 || flow.active() != Mask(state.active) {
            flow.stay(Mask(state.active), Mask(broke), Mask(returned));
        }
        match ended {
            Ended::Budget => Passed::Before(known.at[0]),
            Ended::Turn => match known.after {
                After::Before(block) => Passed::Before(block),
                After::Behind(block) => Passed::Behind(block),
            },
            Ended::Left(step) => Passed::Behind(known.at[step]),
            Ended::Stopped(_, step) => Passed::Refused(known.at[step]),
            Ended::Refused(step) if known.at_access.contains(&(step as u32)) => {
                Passed::Refused(known.at[step])
            }
            Ended::Refused(step) => Passed::Apart(known.at[step]),
        }
    }
}

impl Lanes<'_> {
    /// The active lanes become these, which their row has already.
    fn choose_row(&mut self, bits: u32) {
        if self.sets[ACTIVE].bits != bits {
            let of = |lane: usize| 0u8.wrapping_sub((bits >> lane & 1) as u8);
            self.sets[ACTIVE] = Set { bits, bytes: std::array::from_fn(of) };
        }
    }

    /// `$a1` to `$a4`, for writing.
    fn a_mut(&mut self, register: u8) -> &mut [u16; WARP] {
        &mut self.a[usize::from(register.wrapping_sub(1) & 3)]
    }

    /// The flags of a `$c`, for writing; only the low four bits of each may be set.
    fn c_mut(&mut self, register: u8) -> &mut [u8; WARP] {
        &mut self.c[usize::from(register & 3)]
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        STATE.set(self.state.take());
    }
}

/// `$c` and `$a` as words, for those of the bits: `$c0` is the first, `$a1` the fifth.
#[inline]
fn take_registers(state: &mut State, lanes: &Lanes<'_>, registers: u32) {
    if registers != 0 {
        // SAFETY: there are passes only where the processor has the level.
        unsafe { take_registers_of(state, lanes, registers) };
    }
}

/// The other way round.
#[inline]
fn give_registers(state: &State, lanes: &mut Lanes<'_>, registers: u32) {
    if registers != 0 {
        // SAFETY: there are passes only where the processor has the level.
        unsafe { give_registers_of(state, lanes, registers) };
    }
}

/// [`take_registers`], for vectors of the level.
#[target_feature(enable = "avx2")]
fn take_registers_of(state: &mut State, lanes: &Lanes<'_>, registers: u32) {
    #[inline(always)]
    fn widen<T: Copy + Into<u32>>(to: &mut [u32; WARP], from: &[T; WARP]) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = (*from).into());
    }
    for register in (0..8).filter(|register| registers >> register & 1 != 0) {
        if register < 4 {
            widen(state.own_mut::<WARP>(C + register), lanes.c(register as u8));
        } else {
            widen(state.own_mut::<WARP>(A + register - 4), &lanes.a(register as u8 - 3));
        }
    }
}

/// [`give_registers`], for vectors of the level.
#[target_feature(enable = "avx2")]
fn give_registers_of(state: &State, lanes: &mut Lanes<'_>, registers: u32) {
    for register in (0..8).filter(|register| registers >> register & 1 != 0) {
        if register < 4 {
            let (to, from) = (lanes.c_mut(register as u8), state.own::<WARP>(C + register));
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as u8);
        } else {
            let (to, from) = (lanes.a_mut(register as u8 - 3), state.own::<WARP>(A + register - 4));
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from as u16);
        }
    }
}

/// Operations of the fast engine for lanes of a pass; not 0 where some lane cannot load or store.
///
/// # Safety
/// As for [`reconverge_jit::Callee`]: the context is [`Calls`], which nothing else uses meanwhile.
pub(super) unsafe extern "sysv64" fn callee(state: *mut State, number: u32, active: u64) -> u32 {
    // SAFETY: as the caller says.
    let state = unsafe { &mut *state };
    // SAFETY: `Runner::run` has put it there for as long as the pass runs.
    let Calls { compiled, pass, lowered, lanes, memory } =
        unsafe { &mut *state.context.cast::<Calls<'_, '_>>() };
    let call = &compiled.known[*pass as usize].calls[number as usize];
    lanes.choose_row(active as u32);
    give_registers(state, lanes, call.registers);
    let execute = |lanes: &mut Lanes<'_>, start: u32, end: u32| {
        for (handler, operation) in &lowered.operations[start as usize..end as usize] {
            // SAFETY: operations were made for the level of the engine.
            unsafe { handler(lanes, operation) };
        }
    };
    execute(lanes, call.operations.start, call.operations.end);
    let mut done = true;
    if let Access(Some(access)) = call.access {
        let access = &lowered.accesses[access as usize];
        // SAFETY: as above.
        done = unsafe { (access.transfer.mover)(lanes, *memory, &access.transfer) };
        if done {
            execute(lanes, access.after.start, access.after.end);
        }
    }
    take_registers(state, lanes, call.registers);
    u32::from(!done)
}
