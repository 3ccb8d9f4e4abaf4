//! State that code and the engine share while a group runs.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use reconverge_guarded::{Guarded, Placement, Plain};
use reconverge_simt::Identity;

/// Number of the state's own rows.
pub(crate) const OWN: usize = 16;

/// The own row of the active lanes: all ones, or zero.
pub const MASK: u32 = 0;

/// Number of rows of a group with a byte per lane, and of those with 16 bits.
pub(crate) const NARROW_ROWS: u32 = 4;

/// Number of words for which strips gather bits.
pub(crate) const WORDS: usize = 64;

/// Number of sites.
pub const SITES: u32 = 32;

/// Memory of a site. A site is an instruction of the program that accesses its own memory instead of the window.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Site {
    /// Address of the first byte.
    pub(crate) start: u32,
    /// Number of offsets at which there are words, with the highest bit inverted.
    pub(crate) bound: u32,
    pub(crate) bytes: *mut u8,
}

impl Site {
    /// No memory.
    const NONE: Site = Site { start: 0, bound: 1 << 31, bytes: std::ptr::null_mut() };
}

/// The word of the lanes whose condition holds at the end of a node.
pub const EXIT: u32 = 0;

/// Number of kinds of lanes that leave a node and wait.
pub(crate) const KINDS: usize = 2;

/// MXCSR for code: exceptions masked, rounding to nearest; denormal operands and results become zeros.
pub const FLUSH: u32 = 0x9fc0;
/// MXCSR for code: exceptions masked, rounding to nearest; denormal operands become zeros, results may be denormals.
pub const FLUSH_OPERANDS: u32 = 0x1fc0;
/// MXCSR for code: exceptions masked, rounding to nearest; denormals are kept.
pub(crate) const KEEP_DENORMALS: u32 = 0x1f80;

/// State that code and the engine share. Counts continue from their values at the entry of code.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct State {
    /// The group's rows: words, bytes, and 16 bits per lane.
    pub(crate) rows: *mut u8,
    pub(crate) byte_rows: *mut u8,
    pub(crate) half_rows: *mut u8,
    /// Number of instructions in the remaining budget.
    pub budget: i32,
    /// Number of iterations of the innermost loop that may still begin; `u32::MAX` for any number.
    pub rounds: u32,
    /// Not 0 if some lane has left the node.
    pub(crate) left: u32,
    /// The active lanes.
    pub active: u64,
    /// Number of these lanes.
    pub(crate) population: u64,
    /// The host's floating point modes, and those of the code.
    pub(crate) host_mode: u32,
    pub(crate) mode: u32,
    /// Context of the functions that code calls.
    pub context: *mut (),
    /// Words that are the same in all lanes.
    pub(crate) pool: *const u8,
    /// The window, which strips load from and store to, and its size in bytes.
    pub(crate) window: *mut u8,
    pub(crate) window_bytes: usize,
    /// Number of times that lanes have diverged.
    pub divergent: u64,
    /// The node that begins, or that code has left.
    pub(crate) node: u32,
    /// Number of entries that the group's stack has room for.
    pub room: u32,
    /// Instructions of the budget that only brought lanes to a join.
    pub arrivals: u32,
    /// The node with which an iteration of the innermost loop begins, if code may count its
    /// [`rounds`](State::rounds); otherwise [`NO_NODE`](crate::NO_NODE).
    pub body: u32,
    /// The piece of the node that lanes have left, counted from 1, or 0 at the end of the node.
    pub leave: u32,
    /// Bits with a meaning of the machine: nodes that need one of them to be zero do not run.
    pub hindered: u32,
    /// Bit N is set if conditionals have held N entries on the stack.
    pub held: u32,
    /// Instructions, summed over their active lanes.
    pub lane_instructions: u64,
    /// The memory of each site.
    pub(crate) sites: [Site; SITES as usize],
    /// The code, launch and memory for which the sites are set.
    origin: Option<[Identity; 3]>,
    /// Lanes that have left nodes while others have stayed, by the kind of their wait.
    pub gone: [u64; KINDS],
    /// Number of runs of each part of the program.
    pub(crate) counts: *mut u64,
    /// The machine's flow control.
    pub(crate) flow: *const (),
    /// The code, and the offset of each node in it.
    pub(crate) code: *const u8,
    pub(crate) entries: *const u32,
    /// Bits of lanes that strips gather.
    pub words: [u64; WORDS],
    /// The lanes of both sides of each conditional that contains others, by its word.
    pub(crate) sides: [[u64; 2]; WORDS],
    pub(crate) own: Rows,
}

/// The own rows, each of up to 64 lanes, aligned for vectors.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Rows([u32; 64 * OWN]);

impl Plain for State {
    const ZERO: State = State {
        rows: std::ptr::null_mut(),
        byte_rows: std::ptr::null_mut(),
        half_rows: std::ptr::null_mut(),
        budget: 0,
        rounds: 0,
        left: 0,
        active: 0,
        population: 0,
        host_mode: 0,
        mode: 0,
        context: std::ptr::null_mut(),
        pool: std::ptr::null(),
        window: std::ptr::null_mut(),
        window_bytes: 0,
        divergent: 0,
        node: 0,
        room: 0,
        arrivals: 0,
        body: 0,
        leave: 0,
        held: 0,
        hindered: 0,
        lane_instructions: 0,
        gone: [0; KINDS],
        sites: [Site { bound: 0, ..Site::NONE }; SITES as usize],
        origin: None,
        counts: std::ptr::null_mut(),
        flow: std::ptr::null(),
        code: std::ptr::null(),
        entries: std::ptr::null(),
        words: [0; WORDS],
        sides: [[0; 2]; WORDS],
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
    /// The state of a thread that is not running code.
    static IDLE: Cell<Option<StateBox>> = const { Cell::new(None) };
}

/// The state of a thread, which is reused for each run.
#[derive(Debug)]
pub struct Held(Option<StateBox>);

impl Held {
    /// Takes the state of this thread. Dropping the value returns it.
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
    /// Returns a state in which nothing has run.
    // The constructor returns a box that derefs to the type.
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> StateBox {
        let mut state = StateBox(Guarded::new(1, Placement::process()));
        state.reset();
        state
    }

    /// Resets the state of all runs.
    pub(crate) fn reset(&mut self) {
        *self = State { rounds: u32::MAX, sites: [Site::NONE; SITES as usize], ..State::ZERO };
    }

    /// Sets the window: the bytes that strips load from and store to while code runs.
    pub fn set_window(&mut self, bytes: &mut [u8]) {
        (self.window, self.window_bytes) = (bytes.as_mut_ptr(), bytes.len());
    }

    /// Keeps the memory of all sites if it was set with the same code, launch and memory, which `origin` identifies.
    /// Otherwise, or without an origin, the sites have no memory. Returns whether they are kept.
    #[inline]
    pub fn keep_sites(&mut self, origin: Option<[Identity; 3]>) -> bool {
        let kept = origin.is_some() && self.origin == origin;
        if !kept {
            self.sites = [Site::NONE; SITES as usize];
            self.origin = origin;
        }
        kept
    }

    /// Sets the memory of a site: the bytes from an address on, up to 2 GB. Has no effect if there is no such site, or if
    /// the address is not a multiple of 4.
    ///
    /// # Safety
    /// While [`keep_sites`](Self::keep_sites) keeps the sites, the bytes are valid for reads by code, and for writes if it
    /// stores to the site.
    #[allow(unsafe_code, reason = "code accesses the bytes")]
    pub unsafe fn set_site(&mut self, site: u32, start: u32, bytes: *mut [u8]) {
        let Some(site) = self.sites.get_mut(site as usize).filter(|_| start & 3 == 0) else { return };
        // Gathers take the offset as a signed number.
        let words = bytes.len().saturating_sub(3).min(i32::MAX as usize) as u32;
        *site = Site { start, bound: words ^ 1 << 31, bytes: bytes.cast() };
    }

    /// Returns the active lanes for which the condition at the end of a node holds.
    pub fn taken(&self) -> u64 {
        self.words[EXIT as usize] & self.active
    }

    /// Returns an own row, for groups of `N` lanes, up to 64.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn own<const N: usize>(&self, number: u32) -> &[u32; N] {
        let at = number as usize * N;
        self.own.0[at..at + N].as_array().unwrap_or(&[0; N])
    }

    /// Returns an own row, for writing.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn own_mut<const N: usize>(&mut self, number: u32) -> &mut [u32; N] {
        let at = number as usize * N;
        let row = &mut self.own.0[at..at + N];
        row.as_mut_array().unwrap_or_else(|| unreachable!("as many as were taken"))
    }
}

/// Returns the offset of a part from the start of the state, in bytes.
macro_rules! place {
    ($part:ident) => {
        std::mem::offset_of!($crate::state::State, $part) as i32
    };
}
pub(crate) use place;
