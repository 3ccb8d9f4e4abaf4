//! Memory accesses of the CTM model for whole groups: scattered outputs, and fetches from surfaces.
//!
//! An operation checks every lane before its first effect. If a lane would trap or violate a rule of strict mode, the
//! operation bails out. The reference interpreter then executes the instruction.

use reconverge_simt::wide::Wide;

use super::fetch::put;
use super::lanes::{Body, CHUNK, Lanes, Operation, Words};
use super::operands::{Load, Scatter};
use crate::group::WIDEST;
use crate::memory::Surface;
use crate::words::{Format, Tiling};

/// Returns the byte range of a surface's elements. Returns `None` if the surface is tiled, too large, or not within
/// memory.
fn elements(surface: &Surface, size: usize) -> Option<std::ops::Range<usize>> {
    let linear = matches!(surface.tiling, Tiling::LINEAR | Tiling::LINEAR_INP_2X2);
    let elements = u64::from(surface.pitch) * u64::from(surface.height);
    let bytes = elements.checked_mul(u64::from(surface.format.bytes()))?;
    let (start, end) = (u64::from(surface.base), u64::from(surface.base).checked_add(bytes)?);
    // Element numbers must fit into 31 bits.
    (linear && elements <= i32::MAX as u64 && end <= size as u64).then_some(start as usize..end as usize)
}

/// Returns the element number of each lane in a chunk. Also returns a word per lane. All bits of the word are 1 if the
/// element is inside the surface, and 0 otherwise. The function truncates coordinates. For numbers that are not
/// negative, truncation equals the floor.
#[inline(always)]
fn numbers(surface: &Surface, [x, y]: [&Words; 2]) -> (Words, Words) {
    let (mut numbers, mut inside) = ([0; CHUNK], [0; CHUNK]);
    let (width, height) = (f64::from(surface.pitch), f64::from(surface.height));
    for lane in 0..CHUNK {
        let [x, y] = [x, y].map(|row| f32::from_bits(row[lane]));
        let across = (x >= 0.0) & (f64::from(x) < width);
        let down = (y >= 0.0) & (f64::from(y) < height);
        let names = across & down;
        let [column, line] = [x, y].map(|at| if names { at as i32 as u32 } else { 0 });
        numbers[lane] = line.wrapping_mul(surface.pitch).wrapping_add(column);
        inside[lane] = if names { u32::MAX } else { 0 };
    }
    (numbers, inside)
}

/// Executes the scattered output with index `number`.
pub(super) struct Scattered;

impl Body for Scattered {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let scatters = lanes.state.scatters;
        let scatter = &scatters[usize::from(u16::from_le_bytes(operation.number))];
        lanes.refused = scattered(wide, lanes, scatter).is_none();
    }
}

#[inline(always)]
fn scattered<W: Wide>(wide: W, lanes: &mut Lanes<'_>, scatter: &Scatter) -> Option<()> {
    let members = scatter.sets.iter().fold(lanes.covered, |members, set| members & lanes.set(*set));
    if members.is_empty() {
        return Some(());
    }
    let surface = lanes.memory.as_ref()?.scatter_target?;
    if !matches!(surface.format, Format::FLOAT32_1 | Format::UINT8_4) {
        return None;
    }
    let [_, x, y, alpha] = scatter.src;
    let mut elements_of = [0; WIDEST];
    let (mut inside, mut zero) = (0, 0);
    for chunk in lanes.chunks() {
        let (numbers, names) = numbers(&surface, [&lanes.read(x, chunk), &lanes.read(y, chunk)]);
        inside |= wide.signs(&names) << (chunk * CHUNK);
        elements_of[chunk * CHUNK..][..CHUNK].copy_from_slice(&numbers);
        let mut zeros = lanes.read(alpha, chunk);
        for lane in 0..CHUNK {
            zeros[lane] = if zeros[lane] << 1 == 0 { u32::MAX } else { 0 };
        }
        zero |= wide.signs(&zeros) << (chunk * CHUNK);
    }
    let first = lanes.row(scatter.src[1]);
    let agree = || {
        let [x, y] = [first, lanes.row(scatter.src[2])];
        let at = |lane: usize| (f32::from_bits(x[lane]), f32::from_bits(y[lane]));
        let one = members.lanes().next().map(|lane| at(lane.index()));
        members.lanes().all(|lane| Some(at(lane.index())) == one)
    };
    let objected = scatter.strict && (members.0 & !zero != 0 || scatter.same_index && !agree());
    if members.0 & !inside != 0 || objected {
        return None;
    }
    let values = *lanes.row(scatter.src[0]);
    let memory = &mut lanes.memory.as_mut()?.memory;
    let range = elements(&surface, memory.len())?;
    let elements = memory[range].as_chunks_mut::<4>().0;
    let mut left = members.0;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        elements[elements_of[lane] as usize] = values[lane].to_le_bytes();
        left &= left - 1;
    }
    Some(())
}

/// Executes the unscaled LD with index `number`, which reads from a surface.
pub(super) struct Loaded;

impl Body for Loaded {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let loads = lanes.state.loads;
        let load = &loads[usize::from(u16::from_le_bytes(operation.number))];
        let covered = if load.ignore_uncovered { lanes.covered.0 } else { u64::MAX };
        let fetching = lanes.set(operation.set).0 & covered;
        let mut values = [[0; WIDEST]; 4];
        lanes.refused = fetching != 0 && loaded(wide, lanes, load, fetching, &mut values).is_none();
        if lanes.refused {
            return;
        }
        for written in load.dst.iter().flatten() {
            put(wide, lanes, written, fetching, &values[written.component]);
        }
    }
}

#[inline(always)]
fn loaded<W: Wide>(
    wide: W,
    lanes: &Lanes<'_>,
    load: &Load,
    fetching: u64,
    values: &mut [[u32; WIDEST]; 4],
) -> Option<()> {
    let bound = lanes.memory.as_ref()?;
    let surface = bound.inputs[usize::from(load.unit)]?;
    let elements = &bound.memory[elements(&surface, bound.memory.len())?];
    let of_four = surface.tiling == Tiling::LINEAR_INP_2X2;
    let mut numbers_of = [0; WIDEST];
    let mut inside = 0;
    // For a 2 x 2 fetch, the right and lower neighbours of the element must also be inside the surface.
    let reach = if of_four { 1 } else { 0 };
    let room = Surface {
        pitch: surface.pitch.checked_sub(reach)?,
        height: surface.height.checked_sub(reach)?,
        ..surface
    };
    for chunk in lanes.chunks() {
        let [x, y] = load.src.map(|place| lanes.read(place, chunk));
        let names = numbers(&room, [&x, &y]).1;
        inside |= wide.signs(&names) << (chunk * CHUNK);
        numbers_of[chunk * CHUNK..][..CHUNK].copy_from_slice(&numbers(&surface, [&x, &y]).0);
    }
    // A helper lane at the edge of a domain may fetch outside the surface, because no lane uses the fetched value.
    if fetching & lanes.covered.0 & !inside != 0 {
        return None;
    }
    let reading = fetching & inside;
    if of_four {
        if surface.format.channels() != 1 {
            return None;
        }
        // The last channel receives the requested element. The first three channels receive the neighbours of the
        // requested element. (CTM guide p. 6)
        for (values, distance) in values.iter_mut().zip([1, surface.pitch, surface.pitch + 1, 0]) {
            let numbers = numbers_of.map(|number| number.wrapping_add(distance));
            read(surface.format, elements, &numbers, reading, |lane, value| values[lane] = value[0]);
        }
    } else {
        read(surface.format, elements, &numbers_of, reading, |lane, value| {
            for channel in 0..4 {
                values[channel][lane] = value[channel];
            }
        });
    }
    Some(())
}

/// For each lane in `lanes`, reads the element that `numbers` states for the lane. Passes the lane and the value of the
/// element to `put`.
#[inline(always)]
fn read(
    format: Format,
    elements: &[u8],
    numbers: &[u32; WIDEST],
    lanes: u64,
    put: impl FnMut(usize, [u32; 4]),
) {
    #[inline(always)]
    fn each<const N: usize>(
        elements: &[u8],
        numbers: &[u32; WIDEST],
        mut lanes: u64,
        mut put: impl FnMut(usize, [u32; 4]),
        format: Format,
    ) {
        let elements = elements.as_chunks::<N>().0;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            put(lane, format.decode(&elements[numbers[lane] as usize]));
            lanes &= lanes - 1;
        }
    }
    match format {
        Format::UINT16_1 => each::<2>(elements, numbers, lanes, put, Format::UINT16_1),
        Format::UINT8_4 => each::<4>(elements, numbers, lanes, put, Format::UINT8_4),
        Format::FLOAT32_1 => each::<4>(elements, numbers, lanes, put, Format::FLOAT32_1),
        Format::FLOAT32_2 => each::<8>(elements, numbers, lanes, put, Format::FLOAT32_2),
        Format::FLOAT32_4 => each::<16>(elements, numbers, lanes, put, Format::FLOAT32_4),
    }
}
