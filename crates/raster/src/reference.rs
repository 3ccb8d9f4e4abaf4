//! Draws whose fragments are made and merged one by one.
//!
//! [`draw`](crate::draw::draw) gives the same.

use reconverge_simt::vram::Vram;

use crate::draw::{Coordinates, Vertices, run};
use crate::state::{Counts, Draw, FragmentProgram};

/// [`draw_with`](crate::draw::draw_with), pixel by pixel.
///
/// # Errors
/// The fragment program's; what was merged before stays.
pub fn draw_with<P: FragmentProgram>(
    draw: &Draw,
    coordinates: Coordinates,
    vertices: Vertices<'_>,
    memory: Vram<'_>,
    program: &P,
) -> Result<Counts, P::Error> {
    run(draw, coordinates, vertices, memory, program, None)
}
