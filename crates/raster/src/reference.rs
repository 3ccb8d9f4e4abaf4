//! Reference implementation of draws. It computes and merges fragments one by one.
//!
//! [`draw`](crate::draw::draw) must have the same results.

use reconverge_simt::vram::Vram;

use crate::draw::{Coordinates, Vertices, run};
use crate::state::{Counts, Draw, FragmentProgram};

/// Draws as [`draw_with`](crate::draw::draw_with) does, pixel by pixel.
///
/// # Errors
/// Returns the error with which the fragment program stopped. Results that the draw merged before the error stay in
/// memory.
pub fn draw_with<P: FragmentProgram>(
    draw: &Draw,
    coordinates: Coordinates,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &P,
) -> Result<Counts, P::Error> {
    run(draw, coordinates, vertices, memory, program, None)
}
