//! Clears. The scissor of a viewport, masks and blending do not apply. Source: Mesa `nv50_surface.c` and captured streams.

use reconverge_raster::draw::Surface;
use reconverge_raster::setup::Rectangle;
use reconverge_simt::vram::Vram;

use super::draw::{clear_rectangle, color_surface, zeta};
use super::methods::{ClearBuffers, tesla as m};
use super::state::{State, Unknown, fields};
use super::surface::Slices;

/// Clears what a word of CLEAR_BUFFERS says.
pub(super) fn clear(state: &State, unknown: &mut Unknown, memory: Vram<'_>, word: u32) {
    let what = fields!(unknown, ClearBuffers, word);
    if what.color != 0 {
        clear_color(state, unknown, memory, &what);
    }
    if what.z || what.s {
        clear_depth(state, unknown, memory, &what);
    }
}

fn clear_color(state: &State, unknown: &mut Unknown, memory: Vram<'_>, what: &ClearBuffers) {
    let mut slices = Slices::new(memory.len());
    let found = color_surface((state, unknown, &mut slices), what.rt.into(), what.layer.into());
    let Some((surface, color)) = found else { return };
    // A component that a format does not have, X, is one.
    let mut values = [color.format.numbers[0].one(); 4];
    let mut mask = if what.color == 0xf { 0xf } else { 0 };
    for (chan, place) in color.places.iter().enumerate() {
        let Some(place) = *place else { continue };
        values[usize::from(place)] = state.nth(m::CLEAR_COLOR, chan);
        mask |= (what.color >> chan & 1) << place;
    }
    let (bits, written) = color.format.write(values, mask);
    slices.take(memory);
    fill(&surface, color.format.bytes.into(), clear_rectangle(state), memory, |element| {
        merge(element, bits, written);
    });
    slices.put(memory);
}

fn clear_depth(state: &State, unknown: &mut Unknown, memory: Vram<'_>, what: &ClearBuffers) {
    let mut slices = Slices::new(memory.len());
    let Some(target) = zeta((state, unknown, &mut slices), what.layer.into()) else { return };
    let (format, depth) = (target.format, state.float(m::CLEAR_DEPTH, 0));
    let (code, value) = (format.code(depth), state.word(m::CLEAR_STENCIL) as u8);
    // Bit 0 of CLEAR_FLAGS: the mask of stencil writes holds.
    let mask = if state.flag(m::CLEAR_FLAGS) { state.nth(m::STENCIL_ENABLE, 6) as u8 } else { u8::MAX };
    slices.take(memory);
    fill(&target.surface, format.bytes(), clear_rectangle(state), memory, |element| {
        let (old, stencil) = format.read(element);
        let new = if what.s { stencil & !mask | value & mask } else { stencil };
        format.write(element, if what.z { code } else { old }, new);
    });
    slices.put(memory);
}

fn merge(element: &mut [u8], bits: u128, written: u128) {
    let mut old = [0; 16];
    old[..element.len()].copy_from_slice(element);
    let new = u128::from_le_bytes(old) & !written | bits & written;
    element.copy_from_slice(&new.to_le_bytes()[..element.len()]);
}

/// Changes the elements of a surface inside of a rectangle.
fn fill(
    surface: &Surface,
    bytes: usize,
    rectangle: Rectangle,
    memory: Vram<'_>,
    mut change: impl FnMut(&mut [u8]),
) {
    let whole = Rectangle {
        x0: 0,
        y0: 0,
        x1: surface.pitch.min(1 << 20) as i32,
        y1: surface.rows.min(1 << 20) as i32,
    };
    let inside = rectangle.and(whole);
    for y in inside.y0..inside.y1 {
        for x in inside.x0..inside.x1 {
            let at = surface.start.saturating_add((y as usize * surface.pitch + x as usize) * bytes);
            memory.update(at, bytes, &mut change);
        }
    }
}
