//! What code and the engine that calls it share while a group runs.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use reconverge_guarded::{Guarded, Placement, Plain};

/// Rows of a state's own.
pub const OWN: usize = 16;

/// The own row of the lanes that take part: all ones, or zero.
pub const MASK: u32 = 0;

/// Words that strips gather bits for.
pub(crate) const WORDS: usize = 64;

/// Branches of a region that may divide the lanes.
pub(crate) const BRANCHES: usize = 16;

/// Steps of a region with which lanes leave, for the code to count them itself.
pub(crate) const LEAVES: usize = 16;

/// What code and the engine share. Numbers of lanes and instructions count up from what they are when a region is called.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct State {
    /// The group's rows.
    pub(crate) rows: *mut u8,
    /// Instructions that may still be tried.
    pub budget: i32,
    /// Iterations that may still begin in a region that comes back to its beginning; `u32::MAX` for any number.
    pub rounds: u32,
    /// Some lane has left in this iteration of a region.
    pub(crate) left: u32,
    /// The lanes that take part when an iteration begins.
    pub active: u64,
    /// How many these are.
    pub(crate) population: u64,
    /// Iterations that the code has counted.
    pub(crate) iterations: u64,
    /// The lanes of those, summed.
    pub(crate) lanes: u64,
    /// The host's floating point modes, and the code's.
    pub(crate) host_mode: u32,
    pub(crate) mode: u32,
    /// For functions that code calls.
    pub context: *mut (),
    /// Words that are the same in all lanes.
    pub(crate) pool: *const u8,
    /// The call that did not go on.
    pub(crate) stopped: u32,
    /// The segment that bailed out, counted from 1.
    pub(crate) refused: u32,
    /// The window, which strips load from and store to, and its size in bytes.
    pub(crate) window: *mut u8,
    pub(crate) window_bytes: usize,
    /// Branches that divided the lanes.
    pub divergent: u64,
    /// Bits of lanes that strips give.
    pub words: [u64; WORDS],
    /// By branch and outcome, how often in iterations that the code has counted: all took it, none came, both, none took it.
    pub(crate) outcomes: [[u64; 4]; BRANCHES],
    /// By branch, the lanes that took it, summed.
    pub(crate) taken: [u64; BRANCHES],
    /// By step with which lanes leave, in iterations that the code has counted: which, and how many of each iteration, summed.
    pub(crate) exits: [u64; LEAVES],
    pub(crate) gone_lanes: [u64; LEAVES],
    pub(crate) own: Rows,
}

/// The own rows, each of 64 lanes or less, where vectors may lie.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Rows([u32; 64 * OWN]);

impl Plain for State {
    const ZERO: State = State {
        rows: std::ptr::null_mut(),
        budget: 0,
        rounds: 0,
        left: 0,
        active: 0,
        population: 0,
        iterations: 0,
        lanes: 0,
        host_mode: 0,
        mode: 0,
        context: std::ptr::null_mut(),
        pool: std::ptr::null(),
        stopped: 0,
        refused: 0,
        window: std::ptr::null_mut(),
        window_bytes: 0,
        divergent: 0,
        words: [0; WORDS],
        outcomes: [[0; 4]; BRANCHES],
        taken: [0; BRANCHES],
        exits: [0; LEAVES],
        gone_lanes: [0; LEAVES],
        own: Rows([0; 64 * OWN]),
    };
}

/// A state that is allocated with the placement of the process.
#[derive(Clone, Debug)]
pub struct StateBox(Guarded<State>);

impl Deref for StateBox {
    type Target = State;

    #[inline(always)]
    fn deref(&self) -> &State {
        &self.0[0]
    }
}

impl DerefMut for StateBox {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0[0]
    }
}

thread_local! {
    /// The state of a thread that runs no region.
    static IDLE: Cell<Option<StateBox>> = const { Cell::new(None) };
}

/// The state of a thread, which goes from run to run.
#[derive(Debug)]
pub struct Held(Option<StateBox>);

impl Held {
    /// Takes the state of this thread. Dropping the value gives it back.
    #[inline]
    pub fn take() -> Held {
        Held(IDLE.take())
    }

    /// Returns the state.
    #[inline]
    pub fn state(&mut self) -> &mut State {
        self.0.get_or_insert_with(State::new)
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        IDLE.set(self.0.take());
    }
}

impl State {
    /// A state in which nothing has run.
    // The name of a constructor, of memory that derefs to the type.
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> StateBox {
        let mut state = StateBox(Guarded::new(1, Placement::process()));
        state.rounds = u32::MAX;
        state
    }

    /// Forgets all that has run.
    pub(crate) fn reset(&mut self) {
        *self = State { rounds: u32::MAX, ..State::ZERO };
    }

    /// Sets the window: the bytes that strips load from and store to while a region runs.
    pub fn set_window(&mut self, bytes: &mut [u8]) {
        (self.window, self.window_bytes) = (bytes.as_mut_ptr(), bytes.len());
    }

    /// An own row, for groups of `N` lanes, at most 64.
    ///
    /// # Panics
    /// There is no such row.
    pub fn own<const N: usize>(&self, number: u32) -> &[u32; N] {
        let at = number as usize * N;
        self.own.0[at..at + N].as_array().unwrap_or(&[0; N])
    }

    /// An own row, for writing.
    ///
    /// # Panics
    /// There is no such row.
    pub fn own_mut<const N: usize>(&mut self, number: u32) -> &mut [u32; N] {
        let at = number as usize * N;
        let row = &mut self.own.0[at..at + N];
        row.as_mut_array().unwrap_or_else(|| unreachable!("as many as were taken"))
    }
}

/// The offset of a part, in bytes from the start.
macro_rules! place {
    ($part:ident) => {
        std::mem::offset_of!($crate::state::State, $part) as i32
    };
}
pub(crate) use place;
