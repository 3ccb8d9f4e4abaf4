//! The interface of a machine to its compiled engine, and the function that regions call.

// Generated code calls functions: each block states its assumptions.
#![allow(unsafe_code)]

use std::fmt::Debug;

use crate::called::{Callee, convention};
use crate::level::Level;
use crate::region::FLUSH_OPERANDS;
use crate::state::State;

/// The parts of a compiled engine that differ between machines.
pub trait Machine: Debug + Sized + 'static {
    /// The position in the program to which a step of a region belongs.
    type At: Copy + Debug;
    /// Operations of the fast engine that a region calls.
    type Call: Debug;
    /// Data that the machine needs to run a region.
    type Region: Debug;
    /// Data that calls use.
    type Context<'a, 'w>
    where
        'w: 'a;

    /// The highest level whose code is faster than the one below.
    const LEVEL: Level;
    /// The floating point modes of the code. By default, operations flush denormal operands.
    const MODE: u32 = FLUSH_OPERANDS;
    /// Whether branches reconverge at a join, which takes one instruction.
    const JOINS: bool = false;
    /// Whether listings of the machine show addresses in hexadecimal.
    const HEXADECIMAL: bool = false;

    /// Executes the operations of a call for the active lanes. Returns `false` if the region ends here.
    fn call(call: &Self::Call, active: u64, state: &mut State, context: &mut Self::Context<'_, '_>) -> bool;
}

/// The context of [`callee`].
pub(crate) struct Calls<'c, 'a, 'w: 'a, M: Machine> {
    pub(crate) calls: &'c [M::Call],
    pub(crate) context: &'c mut M::Context<'a, 'w>,
}

/// Returns the function that regions call.
pub(crate) fn callee<M: Machine>() -> Callee {
    call::<M>
}

convention! {
    fn call<M: Machine>(state: *mut State, number: u32, active: u64) -> u32 {
        // SAFETY: code passes its own state.
        let state = unsafe { &mut *state };
        // SAFETY: `Compiled::run` has set it for the duration of the run, and nothing else uses it meanwhile.
        let Calls { calls, context } = unsafe { &mut *state.context.cast::<Calls<'_, '_, '_, M>>() };
        u32::from(!M::call(&calls[number as usize], active, state, context))
    }
}
