//! The copy object, M2MF, which copies rows of bytes between linear and tiled memory.

use std::ops::Range;

use reconverge_simt::vram::Vram;

use super::methods::m2mf as m;
use super::state::{State, Unknown};
use super::surface::{Layout, TileMode};

/// Source or target of a copy.
struct Side {
    start: usize,
    layout: Layout,
    x: usize,
    y: usize,
    z: usize,
}

impl Side {
    fn new(state: &State, is_linear: u32, high: u32, low: u32, pitch: u32) -> Side {
        let start = ((u64::from(state.word(high) & 0xff) << 32) | u64::from(state.word(low))) as usize;
        if state.flag(is_linear) {
            // The pitch may be negative.
            let layout = Layout::Linear { pitch: state.word(pitch) as i32 as isize as usize };
            return Side { start, layout, x: 0, y: 0, z: 0 };
        }
        let word = |number: usize| state.nth(is_linear, number);
        let layout = Layout::tiled(TileMode::new(word(1)), word(2) as usize, word(3) as usize);
        let position = word(6);
        Side {
            start,
            layout,
            x: (position & 0xffff) as usize,
            y: (position >> 16) as usize,
            z: word(5) as usize,
        }
    }

    fn place(&self, x: usize, y: usize) -> usize {
        let inside = match self.layout {
            Layout::Linear { pitch } => y.wrapping_mul(pitch).wrapping_add(x),
            Layout::Tiled { .. } => self.layout.place(self.x + x, self.y + y, self.z),
        };
        self.start.wrapping_add(inside)
    }

    fn run(&self, x: usize) -> usize {
        self.layout.run(self.x + x)
    }
}

/// Maximum number of rows of a copy. The driver splits larger copies. (Mesa `nv50_transfer.c`,
/// `nv50_m2mf_transfer_rect`)
const MOST_ROWS: usize = 2047;

/// Executes the copy that the methods describe. The copy ends at the first bytes that are outside of memory. Returns
/// the range of memory that may have changed.
pub(super) fn copy(state: &State, unknown: &mut Unknown, memory: Vram<'_>) -> Range<usize> {
    let from = Side::new(state, m::LINEAR_IN, m::OFFSET_IN_HIGH, m::OFFSET_IN, m::PITCH_IN);
    let to = Side::new(state, m::LINEAR_OUT, m::OFFSET_OUT_HIGH, m::OFFSET_OUT, m::PITCH_OUT);
    let (length, count) = (state.word(m::LINE_LENGTH_IN) as usize, state.word(m::LINE_COUNT) as usize);
    if count > MOST_ROWS {
        unknown.note(format!("M2MF copy of more than {MOST_ROWS} rows"));
        return 0..0;
    }
    let mut written: Option<Range<usize>> = None;
    for y in 0..count {
        let mut x = 0;
        while x < length {
            let bytes = from.run(x).min(to.run(x)).min(length - x);
            let (source, target) = (from.place(x, y), to.place(x, y));
            let fits = |start: usize| start.checked_add(bytes).is_some_and(|end| end <= memory.len());
            if !fits(source) || !fits(target) {
                return written.unwrap_or_default();
            }
            memory.copy_within(source..source + bytes, target);
            let all = written.unwrap_or(target..target);
            written = Some(all.start.min(target)..all.end.max(target + bytes));
            x += bytes;
        }
    }
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use reconverge_simt::random::Random;

    use super::*;
    use crate::nv50::methods::Object;

    /// Copies between linear and tiled memory, with a pitch that may be negative.
    #[test]
    fn bytes_that_change_are_in_the_range_of_a_copy() {
        const MEMORY: usize = 1 << 16;
        let (mut random, mut changed) = (Random::new(9), 0);
        for round in 0..300 {
            let (mut state, mut unknown) = (State::new(Object::M2mf), Unknown::default());
            state.set(m::LINEAR_IN, 1);
            state.set(m::LINEAR_OUT, u32::from(random.once_in(2)));
            let tiled = [random.below(4) << 4, 64 + 64 * random.below(4), 16, 1, random.below(2)];
            for (number, word) in (1..).zip(tiled) {
                state.set(m::LINEAR_OUT + 4 * number, word);
            }
            state.set(m::LINEAR_OUT + 24, random.below(8) << 16 | random.below(40));
            state.set(m::OFFSET_IN, random.below(1 << 12));
            state.set(m::OFFSET_OUT, random.below(1 << 16));
            state.set(m::PITCH_IN, 100);
            state.set(m::PITCH_OUT, if random.once_in(3) { (-80_i32) as u32 } else { 90 });
            state.set(m::LINE_LENGTH_IN, random.below(80));
            state.set(m::LINE_COUNT, random.below(12));
            let memory: Vec<u8> = (0..MEMORY).map(|_| random.next() as u8).collect();
            let mut after = memory.clone();
            let written = copy(&state, &mut unknown, Vram::new(&mut after));
            let differ = |at: &usize| memory[*at] != after[*at];
            assert!((0..MEMORY).filter(differ).all(|at| written.contains(&at)), "{round}: {written:?}");
            changed += usize::from(memory != after);
        }
        assert!(changed > 150, "{changed}");
    }
}
