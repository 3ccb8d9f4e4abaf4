//! The 2D object, which stores words of the commands in a surface, and blits surfaces.
//!
//! The driver only uses the scales 1 and -1, so reading the nearest texel is exact. Source: Mesa `nv50_surface.c`,
//! `nv50_transfer.c`, and captured streams.

use std::ops::Range;

use reconverge_simt::vram::Vram;

use super::format::{self, Color};
use super::methods::twod as m;
use super::state::{State, Unknown};
use super::surface::{Layout, TileMode};

/// An upload in progress, with the bytes that the upload has received so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Upload {
    bytes: Vec<u8>,
    /// Number of bytes of the complete upload.
    wanted: usize,
}

/// Source or target of the 2D object.
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
    /// Returns the surface that the methods starting at `base` describe.
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

    /// Returns the offset in memory of an element, or `None` if the element is outside of the surface.
    fn place(&self, x: i64, y: i64) -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let inside = x < self.width && y < self.height;
        let bytes = usize::from(self.color.format.bytes);
        inside.then(|| self.start.saturating_add(self.layout.place(x * bytes, y, self.z)))
    }

    fn bytes(&self) -> usize {
        self.color.format.bytes.into()
    }

    /// Returns the range of memory from the first element to the last element.
    fn range(&self) -> Range<usize> {
        let (x, y) = (self.width.saturating_sub(1), self.height.saturating_sub(1));
        let last = match self.layout {
            Layout::Linear { .. } => self.layout.place(x.saturating_mul(self.bytes()), y, 0),
            Layout::Tiled { mode, .. } => self.layout.bytes(self.z.saturating_add(mode.depth())),
        };
        self.start..self.start.saturating_add(last).saturating_add(self.bytes())
    }

    /// Considers `count` elements of row `y`, from column `x` on. Returns the range of the elements inside of the
    /// surface. The bounds of the range are relative to column `x`.
    fn inside(&self, x: i64, y: i64, count: i64) -> Range<i64> {
        if usize::try_from(y).is_ok_and(|y| y < self.height) {
            let width = i64::try_from(self.width).unwrap_or(i64::MAX);
            return (-x).max(0)..count.min(width.saturating_sub(x));
        }
        0..0
    }

    /// Returns the offset in memory of an element inside of the surface. Also returns how many bytes of the surface are
    /// contiguous from this offset on.
    fn run(&self, x: i64, y: i64) -> Option<(usize, usize)> {
        Some((self.place(x, y)?, self.layout.run(x as usize * self.bytes())))
    }
}

/// Begins an upload. The words of the upload follow in SIFC_DATA.
pub(super) fn begin(state: &State, upload: &mut Upload) {
    let row = row_bytes(state).next_multiple_of(4);
    upload.bytes.clear();
    upload.wanted = row.saturating_mul(state.nth(m::SIFC_WIDTH, 1) as usize);
}

fn row_bytes(state: &State) -> usize {
    let bytes = format::color(state.word(m::SIFC_FORMAT)).map_or(1, |color| color.format.bytes.into());
    (state.nth(m::SIFC_WIDTH, 0) as usize).saturating_mul(bytes)
}

/// Adds the next word of an upload. When the upload is complete, stores all words of the upload. Returns the range of
/// memory that may have changed.
pub(super) fn data(
    state: &State,
    unknown: &mut Unknown,
    upload: &mut Upload,
    memory: Vram<'_>,
    word: u32,
) -> Option<Range<usize>> {
    if upload.wanted == 0 {
        return None;
    }
    upload.bytes.extend(word.to_le_bytes());
    if upload.bytes.len() < upload.wanted {
        return None;
    }
    upload.wanted = 0;
    let target = Surface::new(state, unknown, m::DST_FORMAT, state.nth(m::DST_FORMAT, 4) as usize)?;
    if state.word(m::SIFC_BITMAP_ENABLE) != 0 || state.word(m::SIFC_FORMAT) != target.number {
        unknown.note("2D SIFC that converts");
        return None;
    }
    let (bytes, row) = (target.bytes(), row_bytes(state));
    let (x0, y0) = (state.nth(m::SIFC_WIDTH, 7), state.nth(m::SIFC_WIDTH, 9));
    let (x0, y0) = (i64::from(x0 as i32), i64::from(y0 as i32));
    for y in 0..state.nth(m::SIFC_WIDTH, 1) as usize {
        let from = &upload.bytes[y * row.next_multiple_of(4)..][..row];
        let y = y0 + y as i64;
        let Range { start: mut x, end } = target.inside(x0, y, (row / bytes) as i64);
        while x < end {
            let Some((place, run)) = target.run(x0 + x, y) else { break };
            let elements = (run / bytes).clamp(1, (end - x) as usize);
            let run = &from[x as usize * bytes..][..elements * bytes];
            if !memory.write(place, run) {
                // Elements past the end of memory are not stored.
                for (number, element) in run.chunks_exact(bytes).enumerate() {
                    memory.write(place.saturating_add(number * bytes), element);
                }
            }
            x += elements as i64;
        }
    }
    Some(target.range())
}

/// Executes the blit that the methods describe. Returns the range of memory that may have changed.
pub(super) fn blit(state: &State, unknown: &mut Unknown, memory: Vram<'_>) -> Option<Range<usize>> {
    blit_as(state, unknown, memory, true)
}

/// Implements [`blit`]. If `rows` is set and whole rows can be copied, copies row by row. Otherwise, copies pixel by
/// pixel.
fn blit_as(state: &State, unknown: &mut Unknown, memory: Vram<'_>, rows: bool) -> Option<Range<usize>> {
    let target = Surface::new(state, unknown, m::DST_FORMAT, state.nth(m::DST_FORMAT, 4) as usize);
    let source = Surface::new(state, unknown, m::SRC_FORMAT, state.nth(m::SRC_FORMAT, 4) as usize);
    let (target, source) = (target?, source?);
    let word = |number: usize| state.nth(m::BLIT_DST_X, number);
    // Fixed-point numbers with 32 bits of fraction.
    let fixed = |number: usize| i64::from(word(number + 1) as i32) << 32 | i64::from(word(number));
    let (du, dv, u0, v0) = (fixed(4), fixed(6), fixed(8), fixed(10));
    let [x0, y0] = [word(0), word(1)].map(|at| i64::from(at as i32));
    let [width, height] = [word(2), word(3)].map(|size| i64::from(size.min(1 << 14)));
    let clips = state.nth(m::CLIP_X, 4) & 1 != 0;
    let clip: [i64; 4] = std::array::from_fn(|at| i64::from(state.nth(m::CLIP_X, at)));
    let operation = Operation::new(state, unknown);
    let same = source.number == target.number;
    let inside = |at: i64, first: i64, size: i64| at >= first && at < first + size;
    const ONE: i64 = 1 << 32;
    // If the surfaces overlap, the order of reads and writes matters.
    let (one, other) = (source.range(), target.range());
    let apart = one.end <= other.start || other.end <= one.start;
    let there = one.end.max(other.end) <= memory.len();
    let plain = same && du == ONE && matches!(operation, Operation::Copy);
    let by_rows = rows && plain && apart && there;
    for y in 0..height {
        if by_rows {
            let mut within = 0..width;
            if clips {
                let end = if inside(y0 + y, clip[1], clip[3]) { clip[0] + clip[2] - x0 } else { 0 };
                within = (clip[0] - x0).max(0)..width.min(end);
            }
            let from = (u0 >> 32, v0.wrapping_add(dv.wrapping_mul(y)) >> 32);
            copy_row(&source, &target, from, (x0, y0 + y), within, memory);
            continue;
        }
        for x in 0..width {
            let (to_x, to_y) = (x0 + x, y0 + y);
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
    Some(other)
}

/// Copies elements of a row. `within` is the range of these elements. An element that is outside of the source or
/// outside of the target is not copied.
fn copy_row(
    source: &Surface,
    target: &Surface,
    (from_x, from_y): (i64, i64),
    (to_x, to_y): (i64, i64),
    within: Range<i64>,
    memory: Vram<'_>,
) {
    let [one, other] = [source.inside(from_x, from_y, within.end), target.inside(to_x, to_y, within.end)];
    let (mut x, end) = (within.start.max(one.start).max(other.start), one.end.min(other.end));
    let bytes = target.bytes();
    while x < end {
        let runs = (source.run(from_x + x, from_y), target.run(to_x + x, to_y));
        let (Some((from, one)), Some((to, other))) = runs else { return };
        let count = (one.min(other) / bytes).clamp(1, (end - x) as usize);
        memory.copy_within(from..from.saturating_add(count * bytes), to);
        x += count as i64;
    }
}

/// Operation on the colours of a blit.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// Colours are copied unchanged.
    Copy,
    /// Only the bits of this mask are written.
    Masked(u32),
    /// The chip multiplies red, green, blue and alpha by these four factors.
    Multiplied([f32; 4]),
}

impl Operation {
    fn new(state: &State, unknown: &mut Unknown) -> Operation {
        match state.word(m::OPERATION) {
            3 => Operation::Copy,
            4 if state.word(m::ROP) == 0xca => Operation::Masked(state.nth(m::PATTERN_COLOR_FORMAT, 3)),
            5 => {
                // From the lowest byte upward: blue, green, red, alpha.
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

    /// Converts an element of the source to an element of the target.
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
        // Some components, such as X, store no channel. The chip sets these components to 1.
        let mut stored = [target.color.format.numbers[0].one(); 4];
        for (place, value) in target.color.places.iter().zip(color) {
            if let Some(place) = place {
                stored[usize::from(*place)] = value;
            }
        }
        target.color.format.write(stored, 0xf).0
    }
}

#[cfg(test)]
mod tests {
    use reconverge_simt::random::Random;

    use super::super::methods::Object;
    use super::*;

    /// Size of memory in bytes.
    const MEMORY: usize = 1 << 17;

    /// Returns the numbers of all formats.
    fn formats() -> Vec<u32> {
        (0..=0xff).filter(|number| format::color(*number).is_some()).collect()
    }

    /// Sets the methods of a surface with random properties.
    fn surface(state: &mut State, base: u32, number: u32, random: &mut Random, start: u32) {
        let linear = random.once_in(2);
        let bytes = u32::from(format::color(number).unwrap().format.bytes);
        let (width, height) = (1 + random.below(50), 1 + random.below(40));
        // Some of the random pitches are not a multiple of the element size. Some pitches are so small that rows
        // overlap.
        let pitch = (bytes * (width + random.below(4))).saturating_sub(random.one_of(&[0, 0, 0, 1, 9]));
        let start = start + random.one_of(&[0, 0, 1, 6, 64]);
        let mode = random.below(3) << 4 | u32::from(random.once_in(3)) << 8;
        let words = [number, linear.into(), mode, 1, random.below(2), pitch, width, height, 0, start];
        words.iter().zip((base..).step_by(4)).for_each(|(word, at)| state.set(at, *word));
    }

    fn set(state: &mut State, first: u32, words: &[u32]) {
        words.iter().zip((first..).step_by(4)).for_each(|(word, at)| state.set(at, *word));
    }

    fn any_bytes(random: &mut Random) -> Vec<u8> {
        (0..MEMORY).map(|_| random.next() as u8).collect()
    }

    /// Returns whether all bytes that differ between `before` and `after` are in the range.
    fn changes_within(before: &[u8], after: &[u8], range: Option<Range<usize>>) -> bool {
        let range = range.unwrap_or_default();
        let mut both = before.iter().zip(after).enumerate();
        both.all(|(at, (before, after))| before == after || range.contains(&at))
    }

    #[test]
    fn rows_that_are_copied_are_those_that_are_copied_pixel_by_pixel() {
        let (mut random, formats) = (Random::new(41), formats());
        let mut changed = 0;
        for round in 0..3_000 {
            let mut state = State::new(Object::TwoD);
            let number = formats[round % formats.len()];
            let other = if random.once_in(8) { random.one_of(&formats) } else { number };
            surface(&mut state, m::SRC_FORMAT, other, &mut random, 0);
            // Some of the random targets overlap the source. Some targets extend past the end of memory.
            let start = random.one_of(&[0, 256, 4096, 1, 1, 1, 1, 1, 1, MEMORY as u32 - 999]);
            let start = if start == 1 { MEMORY as u32 / 2 } else { start };
            surface(&mut state, m::DST_FORMAT, number, &mut random, start);
            let operation = random.one_of(&[3, 3, 3, 3, 3, 3, 4, 5]);
            state.set(m::OPERATION, operation);
            state.set(m::ROP, 0xca);
            state.set(m::PATTERN_COLOR_FORMAT + 12, random.next());
            state.set(m::BETA4, random.next());
            let at = |random: &mut Random| random.below(20).wrapping_sub(5);
            let scale = if random.once_in(6) { 2 } else { 1 };
            let turned = if random.once_in(3) { u32::MAX } else { 1 };
            let [x, y, u, v] = [(); 4].map(|()| at(&mut random));
            let [width, height] = [(); 2].map(|()| random.below(50));
            // Some coordinates have an offset of half a texel.
            let half = if random.once_in(2) { 1 << 31 } else { 0 };
            let words = [x, y, width, height, 0, scale, 0, turned, half, u, half, v];
            set(&mut state, m::BLIT_DST_X, &words);
            let clip = [random.below(20), random.below(20), random.below(40), random.below(40)];
            let clip = [clip[0], clip[1], clip[2], clip[3], u32::from(random.once_in(2))];
            set(&mut state, m::CLIP_X, &clip);
            let memory = any_bytes(&mut random);
            let with = |rows: bool| {
                let (mut memory, mut unknown) = (memory.clone(), Unknown::default());
                let written = blit_as(&state, &mut unknown, Vram::new(&mut memory), rows);
                (memory, written)
            };
            let (by_rows, written) = with(true);
            assert!(changes_within(&memory, &by_rows, written), "{round}: {number:#x} {words:?} {clip:?}");
            assert!(by_rows == with(false).0, "{round}: {number:#x} {operation} {words:?} {clip:?}");
            changed += usize::from(by_rows != memory);
        }
        assert!(changed > 800, "{changed}");
    }

    /// Performs the upload of [`data`], but stores one element at a time.
    fn upload_by_elements(state: &State, words: &[u32], memory: Vram<'_>) {
        let mut unknown = Unknown::default();
        let target =
            Surface::new(state, &mut unknown, m::DST_FORMAT, state.nth(m::DST_FORMAT, 4) as usize).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let row = row_bytes(state);
        let [x0, y0] = [7, 9].map(|number| i64::from(state.nth(m::SIFC_WIDTH, number) as i32));
        for (y, from) in bytes.chunks(row.next_multiple_of(4)).enumerate() {
            for (x, element) in from[..row].chunks(target.bytes()).enumerate() {
                if let Some(place) = target.place(x0 + x as i64, y0 + y as i64) {
                    memory.write(place, element);
                }
            }
        }
    }

    #[test]
    fn rows_that_are_uploaded_are_those_that_are_uploaded_element_by_element() {
        let (mut random, formats) = (Random::new(42), formats());
        let mut changed = 0;
        for round in 0..1_500 {
            let mut state = State::new(Object::TwoD);
            let number = formats[round % formats.len()];
            let start = random.one_of(&[0, 256, MEMORY as u32 - 999]);
            surface(&mut state, m::DST_FORMAT, number, &mut random, start);
            set(&mut state, m::SIFC_BITMAP_ENABLE, &[0, number]);
            let [width, height] = [(); 2].map(|()| 1 + random.below(40));
            let [x, y] = [(); 2].map(|()| random.below(20).wrapping_sub(5));
            set(&mut state, m::SIFC_WIDTH, &[width, height, 0, 1, 0, 1, 0, x, 0, y]);
            let count = row_bytes(&state).div_ceil(4) * height as usize;
            let words: Vec<u32> = (0..count).map(|_| random.next()).collect();
            let memory = any_bytes(&mut random);
            let (mut found, mut expected, mut unknown) = (memory.clone(), memory.clone(), Unknown::default());
            let mut upload = Upload::default();
            begin(&state, &mut upload);
            let mut written = None;
            for word in &words {
                written = data(&state, &mut unknown, &mut upload, Vram::new(&mut found), *word);
            }
            assert!(changes_within(&memory, &found, written), "{round}: {number:#x}");
            upload_by_elements(&state, &words, Vram::new(&mut expected));
            assert!(found == expected, "{round}: {number:#x} {width} {height} {x} {y}");
            changed += usize::from(found != memory);
        }
        assert!(changed > 700, "{changed}");
    }
}
