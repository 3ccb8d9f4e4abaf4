//! Texture reads and quad operations of a warp: [`crate::texture::read`] and [`crate::lane::quad`] on rows.

use reconverge_simt::texture::anisotropy::Gradients;
use reconverge_simt::texture::gradients_of_quad;
use reconverge_simt::texture::rows::{FlatRows, Positions, Read, Texel, lods_of_quads};
use reconverge_simt::wide::Wide;

use super::host_float;
use super::lanes::{Body, Lanes, operands};
use super::operands::{Kind, Lod, Operation, Place, Quad, Sample, Tex, Work};
use crate::flow::WARP;
use crate::lane::Rounding;
use crate::lane::float::{self, Saturate};
#[cfg(doc)]
use crate::lane::quad;
use crate::lane::quad::{QuadOp, QuadSource};
use crate::texture::LAST_LAYER;

/// Executes texture instruction `number`.
pub(super) struct Textured;

impl Body for Textured {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let tex = &lanes.tables.textures[operation.number as usize];
        let dead = if tex.live { lanes.dead } else { 0 };
        let executing = lanes.set(operation.set) & !dead;
        let left = flat(wide, lanes, tex, executing);
        if left != 0 {
            textured(wide, lanes, tex, left);
        }
    }
}

/// Executes a texture read if the read is of a frequent kind. Returns the lanes for which the read was not executed.
#[inline(always)]
fn flat<W: Wide>(wide: W, lanes: &mut Lanes<'_>, tex: &Tex, executing: u32) -> u32 {
    let Work::Sample(sample) = &tex.work else { return executing };
    if !matches!(sample.kind, Kind::Floats) || !sample.plan.is_flat() {
        return executing;
    }
    let (cells, [x, y, _], [dx, dy, _]) = (lanes.rows.cells(), sample.coordinates, tex.offset);
    let [r, g, b, a] = tex.dst;
    let row = |place: Option<Place>| place.map(|place| cells.row(place));
    let rows = FlatRows {
        coordinates: [cells.row(x), cells.row(y)],
        offset: [dx, dy],
        texels: [row(r), row(g), row(b), row(a)],
        lanes: executing.into(),
    };
    sample.plan.read_flat(wide, &tex.image, &rows) as u32
}

#[inline(always)]
fn textured<W: Wide>(wide: W, lanes: &mut Lanes<'_>, tex: &Tex, executing: u32) {
    let mut values = [[0; WARP]; 4];
    match &tex.work {
        Work::Sample(sample) => sampled(wide, lanes, tex, sample, executing, &mut values),
        Work::Fetch(fetch) => {
            let mut numbers = fetch.numbers.map(|place| lanes.row(place));
            if fetch.layered {
                numbers[2].iter_mut().for_each(|layer| *layer = (*layer).min(LAST_LAYER));
            }
            let level = lanes.row(fetch.level);
            let at = Texel { numbers: numbers.each_ref(), offset: fetch.offset, level: &level };
            fetch.plan.fetch(wide, &tex.image, &at, executing.into(), &mut values);
        }
    }
    for (place, values) in tex.dst.iter().zip(&values) {
        if let Some(place) = *place {
            wide.write(&mut lanes.row_mut(place).0, values, executing.into());
        }
    }
}

#[inline(always)]
fn sampled<W: Wide>(
    wide: W,
    lanes: &Lanes<'_>,
    tex: &Tex,
    sample: &Sample,
    executing: u32,
    values: &mut [[u32; WARP]; 4],
) {
    let Sample { plan, sampler, .. } = sample;
    let [x, y, z] = sample.coordinates;
    let coordinates = [lanes.row_of(x), lanes.row_of(y), lanes.row_of(z)];
    let mut layers = [0; WARP];
    if let Some(place) = sample.layer {
        let integers = lanes.row(place);
        for lane in 0..WARP {
            layers[lane] = (integers[lane].min(LAST_LAYER) as f32).to_bits();
        }
    }
    let reference;
    let read = match sample.kind {
        Kind::Floats => Read::Floats,
        Kind::Bits => Read::Bits,
        Kind::Gather => Read::Gather,
        Kind::Compare(compare, place, compared) => {
            reference = lanes.row(place).map(|bits| compared.reference(bits));
            Read::Compare(compare, &reference)
        }
    };
    let lods = if !plan.needs_lod(read) {
        [0; WARP]
    } else {
        let of_quads = || lods_of_quads(wide, &tex.image, sampler, coordinates, executing.into());
        match sample.lod {
            Lod::Quad => of_quads(),
            Lod::Bias => {
                let (mut lods, bias) = (of_quads(), lanes.row(sample.last));
                for lane in 0..WARP {
                    lods[lane] = (f32::from_bits(lods[lane]) + f32::from_bits(bias[lane])).to_bits();
                }
                lods
            }
            Lod::Last => lanes.row(sample.last),
            Lod::Still => [f32::NEG_INFINITY.to_bits(); WARP],
        }
    };
    let at = Positions { coordinates, layer: &layers, offset: tex.offset, lod: &lods };
    let executing = u64::from(executing);
    match sample.lod {
        Lod::Quad | Lod::Bias => {
            let gradients = |lane| gradients(tex, coordinates, lane);
            plan.read_along(wide, &tex.image, read, (&at, executing), (sampler, gradients), values);
        }
        Lod::Last | Lod::Still => plan.read(wide, &tex.image, read, &at, executing, values),
    }
    if let Kind::Compare(.., compared) = sample.kind {
        for lane in 0..WARP {
            let components = compared.spread(f32::from_bits(values[0][lane]));
            (0..4).for_each(|component| values[component][lane] = components[component]);
        }
    }
}

/// Returns the gradients of a lane's coordinates, for an anisotropic filter.
#[inline(never)]
fn gradients(tex: &Tex, coordinates: [&[u32; WARP]; 3], lane: usize) -> Gradients {
    let of_lane = |lane: usize| coordinates.map(|row| f32::from_bits(row[lane]));
    gradients_of_quad(&tex.image, of_lane(lane), [0, 1, 2].map(|place| of_lane((lane & !3) + place)))
}

/// Returns two rows of terms. In each lane, the sum of the two terms is the result of [`quad::quadop`]. The third row
/// is not used.
#[inline(always)]
fn terms(ops: [QuadOp; 4], from: QuadSource, theirs: &[u32; WARP], own: &[u32; WARP]) -> [[u32; WARP]; 3] {
    let places = [0, 1, 2, 3].map(|place| usize::from(from.lane(place)));
    let mask = |yes: bool| if yes { u32::MAX } else { 0 };
    let own_first = ops.map(|op| mask(matches!(op, QuadOp::Subr | QuadOp::Mov2)));
    let second = ops.map(|op| mask(op != QuadOp::Mov2));
    let minus = ops.map(|op| mask(matches!(op, QuadOp::Subr | QuadOp::Sub)) & 1 << 31);
    let mut terms = [[0; WARP]; 3];
    let [a, b, _] = &mut terms;
    for quad in 0..WARP / 4 {
        for place in 0..4 {
            let lane = 4 * quad + place;
            let (t, c) = (theirs[4 * quad + places[place]], own[lane]);
            let swapped = (t ^ c) & own_first[place];
            a[lane] = t ^ swapped;
            b[lane] = (c ^ swapped) & second[place] ^ minus[place];
        }
    }
    terms
}

/// Returns the sums of two rows, with their flags.
#[inline(always)]
fn sums([a, b, _]: &[[u32; WARP]; 3]) -> ([u32; WARP], [u8; WARP]) {
    let (mut result, mut flags) = ([0; WARP], [0; WARP]);
    for lane in 0..WARP {
        let (sum, of_sum) = float::add(a[lane], b[lane], Rounding::Nearest, Saturate::No);
        (result[lane], flags[lane]) = (sum, of_sum.bits());
    }
    (result, flags)
}

/// Executes `quadop` number `number`. If `FLAGS` is set, the instruction writes a `$c`.
pub(super) struct Quadop<const FLAGS: bool>;

impl<const FLAGS: bool> Body for Quadop<FLAGS> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let Quad { ops, from, fixed } = lanes.tables.quads[operation.number as usize];
        let [theirs, own, _] = operands::<true, false>(lanes, operation);
        let (result, flags) = match fixed {
            Some((value, flags)) => ([value; WARP], [flags.bits(); WARP]),
            None => {
                let terms = terms(ops, from, &theirs, &own);
                host_float::add(wide, &terms).unwrap_or_else(|| sums(&terms))
            }
        };
        lanes.write(wide, operation.dst, operation.set, result);
        if FLAGS {
            lanes.write_c(wide, operation.cdst, operation.set, flags);
        }
    }
}
