//! The state of a running group that generated code and the engine share.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use reconverge_guarded::{Guarded, Placement, Plain};
use reconverge_simt::Identity;

use crate::turns::{Meeting, Turns};

/// Number of rows that are part of the state itself (*own rows*), in contrast to the rows of the group.
pub(crate) const OWN: usize = 16;

/// Number of the own row that contains the active lanes. In the word of an active lane, all bits are 1. The word of an
/// inactive lane is 0.
pub const MASK: u32 = 0;

/// Number of rows with a byte per lane in a group. A group has the same number of rows with 16 bits per lane.
pub(crate) const NARROW_ROWS: u32 = 4;

/// Maximum number of words that the strips of a node can gather. Each word is a set of lanes, with one bit per lane.
pub(crate) const WORDS: usize = 64;

/// Number of sites.
pub const SITES: u32 = 32;

/// Memory of a site. A site is an instruction of the program that accesses a separate memory instead of the window.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Site {
    /// Address of the first byte of the site's memory.
    pub(crate) start: u32,
    /// Number of byte offsets at which a word can start. The highest bit of this number is inverted.
    pub(crate) bound: u32,
    pub(crate) bytes: *mut u8,
}

impl Site {
    /// A site without memory.
    const NONE: Site = Site { start: 0, bound: 1 << 31, bytes: std::ptr::null_mut() };
}

/// Number of the word for the condition at the end of a node. The word contains the lanes whose condition is true.
pub const EXIT: u32 = 0;

/// Number of ways in which lanes that have left a node can wait.
pub(crate) const KINDS: usize = 2;

/// MXCSR for code. Exceptions are masked, and rounding is to nearest. Denormal operands and results become zeros.
pub const FLUSH: u32 = 0x9fc0;
/// MXCSR for code. Exceptions are masked, and rounding is to nearest. Denormal operands become zeros, and results may
/// be denormals.
pub const FLUSH_OPERANDS: u32 = 0x1fc0;
/// MXCSR for code. Exceptions are masked, and rounding is to nearest. Denormals are kept.
pub(crate) const KEEP_DENORMALS: u32 = 0x1f80;

/// State that generated code and the engine share. Generated code adds to the counts in the state.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct State {
    /// The group's rows with a word per lane.
    pub(crate) rows: *mut u8,
    /// The group's rows with a byte per lane.
    pub(crate) byte_rows: *mut u8,
    /// The group's rows with 16 bits per lane.
    pub(crate) half_rows: *mut u8,
    /// Number of instructions in the remaining budget.
    pub budget: i32,
    /// Number of iterations of the innermost loop that may still begin; `u32::MAX` means any number.
    pub rounds: u32,
    /// The value is not 0 if a lane has left the current node.
    pub(crate) left: u32,
    /// The active lanes.
    pub active: u64,
    /// Number of active lanes.
    pub(crate) population: u64,
    /// The active lanes after the last call of the machine's flow control. Lanes that have left nodes since then are not
    /// part of [`active`](State::active).
    pub known: u64,
    /// The sum of the budgets of all turns since the machine last read the counts, in instructions.
    pub given: u64,
    /// The floating point modes of the host.
    pub(crate) host_mode: u32,
    /// The floating point modes of generated code.
    pub(crate) mode: u32,
    /// Context of the functions that generated code calls.
    pub context: *mut (),
    /// The constant pool.
    pub(crate) pool: *const u8,
    /// Address of the window, the memory that strips load from and store to.
    pub(crate) window: *mut u8,
    /// Size of the window, in bytes.
    pub(crate) window_bytes: usize,
    /// Number of times that lanes have diverged.
    pub divergent: u64,
    /// The node at which the next run begins. After a run, this field is the node at which the run has ended.
    pub(crate) node: u32,
    /// Number of entries that the group's stack has room for.
    pub room: u32,
    /// Number of arrivals of lanes at a join. Each arrival takes one instruction from the budget.
    pub arrivals: u32,
    /// The first node of an iteration of the innermost loop, if generated code may decrement [`rounds`](State::rounds).
    /// Otherwise, [`NO_NODE`](crate::NO_NODE).
    pub body: u32,
    /// Number of the piece after which all lanes have left the node. Pieces are counted from 1. The value is 0 if lanes
    /// have reached the end of the node.
    pub leave: u32,
    /// Bits whose meaning the machine defines. A node can require that some bits are zero. If one of the required bits
    /// is set, the node does not run.
    pub hindered: u32,
    /// Bit N is set if the group's stack has had N entries inside a conditional.
    pub held: u32,
    /// Number of active lanes of each executed instruction, summed over all executed instructions.
    pub lane_instructions: u64,
    /// The memory of each site.
    pub(crate) sites: [Site; SITES as usize],
    /// The code, launch and memory for which the sites are set.
    origin: Option<[Identity; 3]>,
    /// The lanes that have left a node in which some lanes have stayed. The index is the number in
    /// [`Waits::For`](crate::Waits::For).
    pub gone: [u64; KINDS],
    /// Number of runs of each part of the program.
    pub(crate) counts: *mut u64,
    /// The machine's flow control.
    pub(crate) flow: *const (),
    /// The address of the code.
    pub(crate) code: *const u8,
    /// The offset of each node in the code.
    pub(crate) entries: *const u32,
    /// Words that strips gather. Each word is a set of lanes, with one bit per lane.
    pub words: [u64; WORDS],
    /// For each conditional that contains conditionals: the lanes of both sides. The index is the word of the
    /// conditional.
    pub(crate) sides: [[u64; 2]; WORDS],
    pub(crate) own: Rows,
    /// The groups that take turns.
    pub(crate) turns: Turns,
}

/// The own rows of the state. A row has up to 64 lanes and is aligned for vectors.
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
        known: 0,
        given: 0,
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
        turns: Turns::NONE,
    };
}

/// A state in memory. If the process uses guard pages, this memory has guard pages.
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
    /// The state of a thread. The variable contains the state while the thread does not run generated code.
    static IDLE: Cell<Option<StateBox>> = const { Cell::new(None) };
}

/// The state of a thread during a run. The next run of the thread uses the same state.
#[derive(Debug)]
pub struct Held(Option<StateBox>);

impl Held {
    /// Takes the state of this thread. When the returned value is dropped, the thread gets the state back.
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
    /// Returns a state in which no code has run.
    // The constructor returns a box that dereferences to the type.
    #[allow(clippy::new_ret_no_self)]
    pub fn new() -> StateBox {
        let mut state = StateBox(Guarded::new(1, Placement::process()));
        state.reset();
        state
    }

    /// Resets the state to the state that [`State::new`] returns.
    pub(crate) fn reset(&mut self) {
        *self = State { rounds: u32::MAX, sites: [Site::NONE; SITES as usize], ..State::ZERO };
    }

    /// Sets the window. The window consists of the bytes that strips load and store while generated code runs.
    pub fn set_window(&mut self, bytes: &mut [u8]) {
        (self.window, self.window_bytes) = (bytes.as_mut_ptr(), bytes.len());
    }

    /// `origin` identifies the code, the launch and the memory for which the sites are set. If `origin` has not
    /// changed, the sites keep their memory. If `origin` has changed or is `None`, the sites have no memory afterwards.
    /// Returns whether the sites keep their memory.
    #[inline]
    pub fn keep_sites(&mut self, origin: Option<[Identity; 3]>) -> bool {
        let kept = origin.is_some() && self.origin == origin;
        if !kept {
            self.sites = [Site::NONE; SITES as usize];
            self.origin = origin;
        }
        kept
    }

    /// If `layout` is not the identity of the memory for which the sites are set, the sites have no memory afterwards.
    #[inline]
    pub fn follow_layout(&mut self, layout: Option<Identity>) {
        if let Some([code, launch, last]) = self.origin
            && layout != Some(last)
        {
            self.keep_sites(layout.map(|layout| [code, launch, layout]));
        }
    }

    /// Sets the memory of a site to `bytes`, up to 2 GB. `start` is the address of the first byte. If the site does not
    /// exist or if the address is not a multiple of 4, the function does nothing.
    ///
    /// # Safety
    /// As long as [`keep_sites`](Self::keep_sites) and [`follow_layout`](Self::follow_layout) keep the sites, generated
    /// code must be able to read the bytes. If the code stores to the site, generated code must also be able to write
    /// the bytes.
    #[allow(unsafe_code, reason = "code accesses the bytes")]
    pub unsafe fn set_site(&mut self, site: u32, start: u32, bytes: *mut [u8]) {
        let Some(site) = self.sites.get_mut(site as usize).filter(|_| start & 3 == 0) else { return };
        // Gather instructions read the offset as a signed number of 32 bits.
        let words = bytes.len().saturating_sub(3).min(i32::MAX as usize) as u32;
        *site = Site { start, bound: words ^ 1 << 31, bytes: bytes.cast() };
    }

    /// Returns the active lanes for which the condition at the end of a node is true.
    pub fn taken(&self) -> u64 {
        self.words[EXIT as usize] & self.active
    }

    /// Returns the current group, if groups [take turns](crate::Linked::take_turns).
    #[inline(always)]
    pub fn current(&self) -> Option<usize> {
        self.turns.current()
    }

    /// Ends the turns of groups, if groups take turns. Returns the position of the groups, and the number of times that
    /// generated code has switched to another group.
    pub fn end_turns(&mut self) -> Option<(Meeting, u32)> {
        self.turns.end()
    }

    /// Returns the node at which a group other than the current group continues, and the active lanes of the group. The
    /// turns of the groups may have ended.
    pub fn turn(&self, group: usize) -> (u32, u64) {
        self.turns.group(group)
    }

    /// Returns a row of the state itself, for groups of `N` lanes. `N` is at most 64.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn own<const N: usize>(&self, number: u32) -> &[u32; N] {
        let at = number as usize * N;
        self.own.0[at..at + N].as_array().unwrap_or(&[0; N])
    }

    /// Returns an own row of the state, for writing.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    pub fn own_mut<const N: usize>(&mut self, number: u32) -> &mut [u32; N] {
        let at = number as usize * N;
        let row = &mut self.own.0[at..at + N];
        row.as_mut_array().unwrap_or_else(|| unreachable!("as many as were taken"))
    }
}

/// Returns the offset of a field from the start of the state, in bytes.
macro_rules! place {
    ($part:ident) => {
        std::mem::offset_of!($crate::state::State, $part) as i32
    };
}
pub(crate) use place;

#[cfg(test)]
#[allow(unsafe_code, reason = "sites are set, but no code uses them")]
mod tests {
    use super::*;

    /// The sites become empty if the code, the launch or the memory changes.
    #[test]
    fn sites_keep_their_memory_for_the_same_origin() {
        let mut bytes = [0; 16];
        let mut state = State::new();
        let origin = [(); 3].map(|()| Identity::new());
        state.keep_sites(Some(origin));
        // SAFETY: no generated code runs.
        unsafe { state.set_site(3, 0x1000, &mut bytes) };
        state.keep_sites(Some(origin));
        assert_eq!((state.sites[3].start, state.sites[3].bound ^ 1 << 31), (0x1000, 13));
        for part in 0..3 {
            let mut other = origin;
            other[part] = Identity::new();
            for origin in [Some(other), None] {
                // SAFETY: no generated code runs.
                unsafe { state.set_site(3, 0x1000, &mut bytes) };
                state.keep_sites(origin);
                assert_eq!(state.sites[3].bound, Site::NONE.bound, "part {part}");
            }
            state.keep_sites(Some(origin));
        }
    }
}
