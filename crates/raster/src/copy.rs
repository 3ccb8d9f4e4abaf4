//! Copies texels unchanged, as bytes from the rows of an image to the rows of a target.
//!
//! Drivers blit, upload textures and read textures back with draws that only copy texels. For such a draw, the fragment
//! program does not run. Inputs are interpolated only at both ends of each row. Coordinates are affine, so the
//! coordinates at the ends determine the coordinates between the ends.

use reconverge_simt::texture::elements::{ByteChannel, Strides};
use reconverge_simt::vram::Vram;

use crate::format::Number;
use crate::setup::Quad;
use crate::span::Strip;
use crate::state::{CopiedTexels, Draw, LaneColumn, Target};

/// The copy of bytes that a draw performs.
#[derive(Debug)]
pub(crate) struct ByteRows {
    texels: CopiedTexels,
    /// Offset of the target's first byte.
    start: usize,
    /// Offset of the byte after the target's last byte.
    end: usize,
    /// Number of bytes from one row of the target to the next row.
    stride: usize,
    /// Number of pixels in a row, and number of rows.
    size: [usize; 2],
    /// Source of each byte of a target element. The source is a byte of the texel, or a constant.
    bytes: [ByteChannel; 4],
}

/// Adjacent pixels that are copied from adjacent texels.
#[derive(Clone, Copy, Debug)]
struct CopiedRun {
    /// Offset in bytes of the first texel in the level.
    from: usize,
    /// Offset in bytes of the first pixel in memory.
    to: usize,
    pixels: usize,
}

/// Size of an element in bytes, of both the image and the target.
const ELEMENT: usize = 4;

/// Upper limit of coordinates, in texels. Below this limit, the rounding errors of singles are far below [`MARGIN`].
const FURTHEST: f32 = 65_536.;

/// Minimum distance of coordinates from the edges of their texel, at both ends of a row. Between the ends of the row,
/// the distance of an affine coordinate from the edges is at least as large.
const MARGIN: f32 = 0.25;

impl ByteRows {
    /// Returns the copy that a draw performs. If the draw has tests, the function returns `None`. The function also
    /// returns `None` unless the draw has exactly one target and the target stores four-byte colours unchanged.
    pub(crate) fn new(texels: CopiedTexels, draw: &Draw) -> Option<ByteRows> {
        let [target] = &draw.targets[..] else { return None };
        let Target { surface, format, places, mask, blend, color } = target;
        let plain = format.bits == [8; 4] && format.bytes == 4 && format.numbers == [Number::Unorm; 4];
        let tests = draw.depth.is_some() || draw.alpha_test.is_some();
        let Strides { element, .. } = texels.elements.strides();
        if !plain || tests || blend.is_some() || *color != 0 || element != ELEMENT {
            return None;
        }
        let mut bytes = [None; ELEMENT];
        for (chan, place) in places.iter().enumerate() {
            if let Some(place) = place.filter(|_| mask >> chan & 1 != 0) {
                bytes[usize::from(place)] = Some(texels.elements.channels()[chan].as_byte()?);
            }
        }
        let [a, b, c, d] = bytes;
        Some(ByteRows {
            texels,
            start: surface.start,
            end: surface.end,
            stride: surface.pitch * ELEMENT,
            size: [surface.pitch, surface.rows],
            bytes: [a?, b?, c?, d?],
        })
    }

    /// Returns the inputs and components that determine the texels.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (usize, usize)> {
        self.texels.coordinates.iter().chain(&self.texels.zeros).copied()
    }

    /// Copies the pixels of strips, and returns the number of pixels. Every pixel must certainly be the copy of one
    /// texel of the level. Otherwise, the function copies nothing and returns `None`. `inputs` interpolates the draw's
    /// inputs at quads. The inputs must be affine along each strip.
    pub(crate) fn copy(
        &self,
        strips: &[Strip],
        inputs: impl FnOnce(&[Quad]) -> Vec<[LaneColumn; 4]>,
        memory: Vram<'_>,
    ) -> Option<u64> {
        let ends: Vec<Quad> = strips.iter().flat_map(|strip| [strip.first, strip.last()]).collect();
        let inputs = inputs(&ends);
        let mut runs = Vec::new();
        for (number, Strip { first, count }) in strips.iter().enumerate() {
            let lanes = 8 * number..;
            // First lane of the strip's first quad, and first lane of the strip's last quad.
            let [left, right] = [lanes.start, lanes.start + 4];
            if first.covered == 0xf {
                for row in 0..2 {
                    let ends = [left + 2 * row, right + 2 * row + 1];
                    runs.push(self.run(
                        &inputs,
                        ends,
                        (first.x, first.y + row as i32),
                        2 * *count as usize,
                    )?);
                }
                continue;
            }
            for lane in (0..4).filter(|lane| first.covered >> lane & 1 != 0) {
                runs.push(self.run(&inputs, [left + lane; 2], first.pixel(lane), 1)?);
            }
        }
        let end = self.end.min(memory.len());
        runs.iter().all(|run| run.to + run.pixels * ELEMENT <= end).then_some(())?;
        let mut row = Vec::new();
        for CopiedRun { from, to, pixels } in &runs {
            let texels = self.texels.elements.bytes().get(*from..from + pixels * ELEMENT)?;
            memory.write(*to, self.arranged(texels, &mut row));
        }
        Some(runs.iter().map(|run| run.pixels as u64).sum())
    }

    /// Returns the source and target of a run of `pixels` pixels that starts at (x, y). `ends` are the lanes of the
    /// first and the last pixel.
    fn run(
        &self,
        inputs: &[[LaneColumn; 4]],
        ends: [usize; 2],
        (x, y): (i32, i32),
        pixels: usize,
    ) -> Option<CopiedRun> {
        let value = |(input, chan): (usize, usize), lane: usize| {
            inputs.get(input)?[chan].get(lane).map(|word| f32::from_bits(*word))
        };
        let CopiedTexels { elements, size, coordinates, factor, zeros } = &self.texels;
        for place in zeros {
            let is_zero = |lane| value(*place, lane).is_some_and(|value| value.abs() < MARGIN);
            ends.into_iter().all(is_zero).then_some(())?;
        }
        let texel = |lane: usize| {
            let mut texel = [0; 2];
            for axis in 0..2 {
                let at = value(coordinates[axis], lane)? * factor[axis];
                let inside = 0. <= at && at < FURTHEST.min(size[axis] as f32);
                let whole = if inside { at as usize } else { return None };
                let part = at - whole as f32;
                (MARGIN..=1. - MARGIN).contains(&part).then_some(())?;
                texel[axis] = whole;
            }
            Some(texel)
        };
        let [first, last] = [texel(ends[0])?, texel(ends[1])?];
        (last == [first[0] + pixels - 1, first[1]]).then_some(())?;
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        (x + pixels <= self.size[0] && y < self.size[1]).then_some(())?;
        let to = self.start + y * self.stride + x * ELEMENT;
        Some(CopiedRun { from: elements.strides().place(first[0], first[1], 0), to, pixels })
    }

    /// Returns the texels, with the bytes of each texel in the order of the target. `row` is memory for the result.
    fn arranged<'a>(&self, texels: &'a [u8], row: &'a mut Vec<u8>) -> &'a [u8] {
        let own = [0, 1, 2, 3].map(ByteChannel::Byte);
        if self.bytes == own {
            return texels;
        }
        let (mut shifts, mut masks, mut set) = ([0; ELEMENT], [0; ELEMENT], 0);
        for (place, byte) in self.bytes.iter().enumerate() {
            match *byte {
                ByteChannel::Byte(number) => (shifts[place], masks[place]) = (8 * u32::from(number), 0xff),
                ByteChannel::Constant(byte) => set |= u32::from(byte) << (8 * place),
            }
        }
        row.clear();
        row.resize(texels.len(), 0);
        let (from, to) = (texels.as_chunks::<ELEMENT>().0, row.as_chunks_mut::<ELEMENT>().0);
        for (from, to) in from.iter().zip(to) {
            let word = u32::from_le_bytes(*from);
            let part = |place: usize| (word >> shifts[place] & masks[place]) << (8 * place);
            *to = (part(0) | part(1) | part(2) | part(3) | set).to_le_bytes();
        }
        row
    }
}
