//! Clears. A clear ignores the scissors of viewports, write masks and blending. Source: Mesa `nv50_surface.c` and
//! captured streams.

use std::ops::Range;

use reconverge_raster::draw::Surface;
use reconverge_raster::setup::Rectangle;
use reconverge_simt::vram::{RowFill, Vram};

use super::draw::{clear_rectangle, color_surface, zeta};
use super::methods::{ClearBuffers, tesla as m};
use super::multisample::elements;
use super::state::{State, Unknown, fields};
use super::surface::Slices;

/// Size of a word in bytes.
const WORD: usize = 4;

/// Clears the surfaces that a word of CLEAR_BUFFERS selects. Returns the ranges of memory that may have changed.
pub(super) fn clear(
    state: &State,
    unknown: &mut Unknown,
    memory: Vram<'_>,
    word: u32,
) -> [Option<Range<usize>>; 2] {
    let what = fields!(unknown, ClearBuffers, word);
    let (has_color, has_depth) = (what.color != 0, what.z || what.s);
    let color = has_color.then(|| clear_color(state, unknown, memory, &what));
    let depth = has_depth.then(|| clear_depth(state, unknown, memory, &what));
    [color.flatten(), depth.flatten()]
}

/// Returns the range of memory of a cleared surface, whose elements have `bytes` bytes. If the surface is a temporary
/// copy of slices, the slices are in a different part of memory. In this case, returns all of memory.
fn cleared(surface: &Surface, bytes: usize, slices: &Slices, memory: Vram<'_>) -> Range<usize> {
    let length = surface.pitch.saturating_mul(surface.rows).saturating_mul(bytes);
    match slices.is_empty() {
        true => surface.start..surface.start.saturating_add(length),
        false => 0..memory.len(),
    }
}

fn clear_color(
    state: &State,
    unknown: &mut Unknown,
    memory: Vram<'_>,
    what: &ClearBuffers,
) -> Option<Range<usize>> {
    let mut slices = Slices::new(memory.len());
    let found = color_surface((state, unknown, &mut slices), what.rt.into(), what.layer.into());
    let (surface, color) = found?;
    // Some components, such as X, store no channel. The chip sets these components to 1.
    let mut values = [color.format.numbers[0].one(); 4];
    let mut mask = if what.color == 0xf { 0xf } else { 0 };
    for (chan, place) in color.places.iter().enumerate() {
        let Some(place) = *place else { continue };
        values[usize::from(place)] = state.nth(m::CLEAR_COLOR, chan);
        mask |= (what.color >> chan & 1) << place;
    }
    let (bits, written) = color.format.write(values, mask);
    slices.take(memory);
    fill(
        &surface,
        color.format.bytes.into(),
        elements(state, clear_rectangle(state)),
        memory,
        (bits, written),
    );
    let cleared = cleared(&surface, color.format.bytes.into(), &slices, memory);
    slices.put(memory);
    Some(cleared)
}

fn clear_depth(
    state: &State,
    unknown: &mut Unknown,
    memory: Vram<'_>,
    what: &ClearBuffers,
) -> Option<Range<usize>> {
    let mut slices = Slices::new(memory.len());
    let target = zeta((state, unknown, &mut slices), what.layer.into())?;
    let (format, depth) = (target.format, state.float(m::CLEAR_DEPTH, 0));
    let (code, value) = (format.code(depth), state.word(m::CLEAR_STENCIL) as u8);
    // If bit 0 of CLEAR_FLAGS is set, the write mask of the stencil test applies to the clear.
    let mask = if state.flag(m::CLEAR_FLAGS) { state.nth(m::STENCIL_ENABLE, 6) as u8 } else { u8::MAX };
    slices.take(memory);
    let element = |depth: u32, stencil: u8| {
        let mut element = [0; 16];
        format.write(&mut element[..format.bytes()], depth, stencil);
        u128::from_le_bytes(element)
    };
    // Masks of the stencil bits and of the depth bits in an element.
    let stencil = if what.s { element(0, mask) } else { 0 };
    let depths = if what.z { element(u32::MAX, 0) } else { 0 };
    let bits = element(if what.z { code } else { 0 }, value);
    fill(
        &target.surface,
        format.bytes(),
        elements(state, clear_rectangle(state)),
        memory,
        (bits, depths | stencil),
    );
    let cleared = cleared(&target.surface, format.bytes(), &slices, memory);
    slices.put(memory);
    Some(cleared)
}

/// Stores `bits` in the elements of a surface that are inside of a rectangle. `written` is the mask of the bits that
/// are stored.
fn fill(
    surface: &Surface,
    bytes: usize,
    rectangle: Rectangle,
    memory: Vram<'_>,
    (bits, written): (u128, u128),
) {
    let whole = Rectangle {
        x0: 0,
        y0: 0,
        x1: surface.pitch.min(1 << 20) as i32,
        y1: surface.rows.min(1 << 20) as i32,
    };
    let inside = rectangle.and(whole);
    if inside.x0 >= inside.x1 {
        return;
    }
    if bytes == WORD {
        let filled = memory.fill(&RowFill {
            start: surface
                .start
                .saturating_add((inside.y0 as usize * surface.pitch + inside.x0 as usize) * WORD),
            words: (inside.x1 - inside.x0) as usize,
            pitch: surface.pitch * WORD,
            rows: (inside.y1 - inside.y0).max(0) as usize,
            value: bits as u32,
            mask: written as u32,
        });
        if filled {
            return;
        }
    }
    // The bits to store for a row of elements, and the mask of the bits that are written.
    let count = (inside.x1 - inside.x0) as usize;
    let [bits, written] = [bits & written, written].map(|bits| bits.to_le_bytes()[..bytes].repeat(count));
    let (mut row, keeps) = (bits.clone(), written.iter().any(|bits| *bits != u8::MAX));
    for y in inside.y0..inside.y1 {
        let first = y as usize * surface.pitch + inside.x0 as usize;
        let at = surface.start.saturating_add(first * bytes);
        // If memory ends within a row, the chip writes only the elements before the end of memory.
        let length = (memory.len().saturating_sub(at) / bytes * bytes).min(row.len());
        let row = &mut row[..length];
        if keeps {
            if memory.read(at, row).is_none() {
                continue;
            }
            for ((byte, bits), written) in row.iter_mut().zip(&bits).zip(&written) {
                *byte = *byte & !written | bits;
            }
        }
        memory.write(at, row);
    }
}
