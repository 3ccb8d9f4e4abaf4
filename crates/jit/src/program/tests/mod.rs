//! Tests with programs of a few nodes, which run without a machine.

#[cfg(target_arch = "x86_64")]
mod audit;
#[cfg(target_arch = "x86_64")]
mod strips;
#[cfg(target_arch = "x86_64")]
mod window;
#[cfg(target_arch = "x86_64")]
mod words;

use reconverge_guarded::Placement::AtEnd;

use super::*;
use crate::called::convention;
use crate::state::{MASK, StateBox};

/// The position at which a program continues after [`node`].
const AFTER: u32 = 7;

/// Returns a node that runs a segment as one instruction. After the node, the program continues at a position outside
/// the compiled code.
pub(crate) fn node(segment: Segment) -> Node {
    Node {
        segment,
        pieces: vec![Piece { size: 1, ..Piece::default() }],
        needs: 0,
        budget: 1,
        entries: 0,
        next: Next::To(Target::Outside(AFTER)),
        lazy: false,
        mask: Row::Own(MASK),
    }
}

// Flow control that ends the run.
convention! {
    fn ends(_state: *mut State, _node: u32) -> u32 {
        NO_NODE
    }
}

/// Result of a run: the reason for its end, the counts and the state.
struct Over {
    left: Left,
    counts: Vec<u64>,
    state: StateBox,
}

/// Runs a program from its first node for some of its lanes. `prepare` sets the memory of the window or of sites.
fn run<const N: usize>(
    code: &Code,
    budget: i32,
    active: u64,
    rows: &mut [[u32; N]],
    memory: &mut [u8],
    prepare: impl FnOnce(&mut State, &mut [u8]),
) -> Over {
    let mut state = State::new();
    (state.budget, state.active) = (budget, active);
    *state.own_mut::<N>(MASK) = std::array::from_fn(|lane| 0u32.wrapping_sub((active >> lane) as u32 & 1));
    let mut own_rows = Guarded::copied(rows.as_flattened(), AtEnd);
    let mut own_memory = Guarded::copied(memory, AtEnd);
    prepare(&mut state, &mut own_memory);
    let all = std::ptr::slice_from_raw_parts_mut(own_rows.as_mut_ptr().cast(), size_of_val(&own_rows[..]));
    let none = || std::ptr::slice_from_raw_parts_mut(std::ptr::null_mut(), 0);
    [state.rows, state.byte_rows, state.half_rows] = code.bound([all, none(), none()]);
    let mut counts = vec![0; code.counts()];
    // SAFETY: the callers check that the processor has the level. The programs access only the rows and the memory that
    // are passed.
    let left = unsafe { code.run(0, &mut state, &mut counts, ends) }.expect("no fault");
    rows.as_flattened_mut().copy_from_slice(&own_rows);
    memory.copy_from_slice(&own_memory);
    Over { left, counts, state }
}
