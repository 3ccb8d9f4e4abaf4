//! The 2D object: words of the commands, and blits, to a surface.
//!
//! The driver asks for no scale but 1 and -1, so that a texel is the nearest one. Source: Mesa `nv50_surface.c`,
//! `nv50_transfer.c`, and captured streams.

use reconverge_simt::vram::Vram;

use super::format::{self, Color};
use super::methods::twod as m;
use super::state::{State, Unknown};
use super::surface::{Layout, TileMode};

/// Words of an upload that are on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Upload {
    bytes: Vec<u8>,
    /// How many there will be.
    wanted: usize,
}

/// A surface.
struct Surface {
    start: usize,
    layout: Layout,
    z: usize,
    width: usize,
    height: usize,
    number: u32,
    color: Color,
}

impl Surface {
    /// The surface whose methods begin at `base`.
    fn new(state: &State, unknown: &mut Unknown, base: u32, z: usize) -> Option<Surface> {
        let word = |number: usize| state.nth(base, number);
        let Some(color) = format::color(word(0)) else {
            unknown.note(format!("2D format {:#x}", word(0)));
            return None;
        };
        let (width, height) = (word(6) as usize, word(7) as usize);
        let layout = match word(1) & 1 {
            0 => Layout::tiled(TileMode::new(word(2)), width * usize::from(color.format.bytes), height),
            _ => Layout::Linear { pitch: word(5) as usize },
        };
        Some(Surface { start: state.address(base + 0x20), layout, z, width, height, number: word(0), color })
    }

    /// The place of an element; `None` outside of the surface.
    fn place(&self, x: i64, y: i64) -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let inside = x < self.width && y < self.height;
        let bytes = usize::from(self.color.format.bytes);
        inside.then(|| self.start.saturating_add(self.layout.place(x * bytes, y, self.z)))
    }

    fn bytes(&self) -> usize {
        self.color.format.bytes.into()
    }
}

/// Begins an upload of what SIFC_DATA brings.
pub(super) fn begin(state: &State, upload: &mut Upload) {
    let row = row_bytes(state).next_multiple_of(4);
    upload.bytes.clear();
    upload.wanted = row.saturating_mul(state.nth(m::SIFC_WIDTH, 1) as usize);
}

fn row_bytes(state: &State) -> usize {
    let bytes = format::color(state.word(m::SIFC_FORMAT)).map_or(1, |color| color.format.bytes.into());
    (state.nth(m::SIFC_WIDTH, 0) as usize).saturating_mul(bytes)
}

/// Takes the next word of an upload, and stores it all when it is complete.
pub(super) fn data(state: &State, unknown: &mut Unknown, upload: &mut Upload, memory: Vram<'_>, word: u32) {
    if upload.wanted == 0 {
        return;
    }
    upload.bytes.extend(word.to_le_bytes());
    if upload.bytes.len() < upload.wanted {
        return;
    }
    upload.wanted = 0;
    let Some(target) = Surface::new(state, unknown, m::DST_FORMAT, state.nth(m::DST_FORMAT, 4) as usize)
    else {
        return;
    };
    if state.word(m::SIFC_BITMAP_ENABLE) != 0 || state.word(m::SIFC_FORMAT) != target.number {
        unknown.note("2D SIFC that converts");
        return;
    }
    let (bytes, row) = (target.bytes(), row_bytes(state));
    let (x0, y0) = (state.nth(m::SIFC_WIDTH, 7), state.nth(m::SIFC_WIDTH, 9));
    for y in 0..state.nth(m::SIFC_WIDTH, 1) as usize {
        let from = &upload.bytes[y * row.next_multiple_of(4)..][..row];
        for (x, element) in from.chunks_exact(bytes).enumerate() {
            let place = target.place(i64::from(x0 as i32) + x as i64, i64::from(y0 as i32) + y as i64);
            if let Some(place) = place {
                memory.write(place, element);
            }
        }
    }
}

/// Blits as the methods say.
pub(super) fn blit(state: &State, unknown: &mut Unknown, memory: Vram<'_>) {
    let target = Surface::new(state, unknown, m::DST_FORMAT, state.nth(m::DST_FORMAT, 4) as usize);
    let source = Surface::new(state, unknown, m::SRC_FORMAT, state.nth(m::SRC_FORMAT, 4) as usize);
    let (Some(target), Some(source)) = (target, source) else { return };
    let word = |number: usize| state.nth(m::BLIT_DST_X, number);
    // 32.32 fixed point.
    let fixed = |number: usize| i64::from(word(number + 1) as i32) << 32 | i64::from(word(number));
    let (du, dv, u0, v0) = (fixed(4), fixed(6), fixed(8), fixed(10));
    let [x0, y0] = [word(0), word(1)].map(|at| i64::from(at as i32));
    let [width, height] = [word(2), word(3)].map(|size| i64::from(size.min(1 << 14)));
    let clips = state.nth(m::CLIP_X, 4) & 1 != 0;
    let clip: [i64; 4] = std::array::from_fn(|at| i64::from(state.nth(m::CLIP_X, at)));
    let operation = Operation::new(state, unknown);
    let same = source.number == target.number;
    for y in 0..height {
        for x in 0..width {
            let (to_x, to_y) = (x0 + x, y0 + y);
            let inside = |at: i64, first: i64, size: i64| at >= first && at < first + size;
            if clips && !(inside(to_x, clip[0], clip[2]) && inside(to_y, clip[1], clip[3])) {
                continue;
            }
            let from = source
                .place(u0.wrapping_add(du.wrapping_mul(x)) >> 32, v0.wrapping_add(dv.wrapping_mul(y)) >> 32);
            let (Some(from), Some(to)) = (from, target.place(to_x, to_y)) else { continue };
            let (mut element, mut old) = ([0; 16], [0; 16]);
            let count = target.bytes();
            let (Some(element), Some(_)) =
                (memory.read(from, &mut element[..source.bytes()]), memory.read(to, &mut old[..count]))
            else {
                continue;
            };
            let bits = match same && !operation.multiplies() {
                true => {
                    let mut all = [0; 16];
                    all[..count].copy_from_slice(element);
                    u128::from_le_bytes(all)
                }
                false => operation.convert(&source, &target, element),
            };
            let new = operation.merge(bits, u128::from_le_bytes(old));
            memory.write(to, &new.to_le_bytes()[..count]);
        }
    }
}

/// What becomes of a colour on its way.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Nothing.
    Copy,
    /// Bits of a mask only.
    Masked(u32),
    /// Components are multiplied.
    Multiplied([f32; 4]),
}

impl Operation {
    fn new(state: &State, unknown: &mut Unknown) -> Operation {
        match state.word(m::OPERATION) {
            3 => Operation::Copy,
            4 if state.word(m::ROP) == 0xca => Operation::Masked(state.nth(m::PATTERN_COLOR_FORMAT, 3)),
            5 => {
                // Blue, green, red, alpha from the lowest byte up.
                let beta = state.word(m::BETA4).to_le_bytes().map(|byte| f32::from(byte) / 255.);
                Operation::Multiplied([beta[2], beta[1], beta[0], beta[3]])
            }
            other => {
                unknown.note(format!("2D OPERATION {other}, ROP {:#x}", state.word(m::ROP)));
                Operation::Copy
            }
        }
    }

    fn multiplies(self) -> bool {
        matches!(self, Operation::Multiplied(_))
    }

    fn merge(self, bits: u128, old: u128) -> u128 {
        match self {
            Operation::Masked(mask) => {
                let mask = u128::from(mask) * 0x1_0000_0001_0000_0001_0000_0001;
                bits & mask | old & !mask
            }
            Operation::Copy | Operation::Multiplied(_) => bits,
        }
    }

    /// An element of the source as one of the target.
    fn convert(self, source: &Surface, target: &Surface, element: &[u8]) -> u128 {
        let values = source.color.format.read(element);
        let one = source.color.format.numbers[0].one();
        let luminance = matches!(source.number, 0xe5 | 0xee | 0xf3);
        let mut color: [u32; 4] = std::array::from_fn(|chan| match source.color.places[chan] {
            Some(place) => values[usize::from(place)],
            None if luminance && chan < 3 => values[0],
            None if chan == 3 => one,
            None => 0,
        });
        if let Operation::Multiplied(factors) = self {
            color = std::array::from_fn(|chan| (f32::from_bits(color[chan]) * factors[chan]).to_bits());
        }
        // What a format has and the colour has not, such as X, is one.
        let mut stored = [target.color.format.numbers[0].one(); 4];
        for (place, value) in target.color.places.iter().zip(color) {
            if let Some(place) = place {
                stored[usize::from(*place)] = value;
            }
        }
        target.color.format.write(stored, 0xf).0
    }
}
