//! Texture fetches on whole rows. Each lane gets the result of [`crate::texture::fetch`].

use reconverge_simt::texture::Shape;
use reconverge_simt::texture::anisotropy::Gradients;
use reconverge_simt::texture::rows::{
    FlatRows, Positions, Read, lods_of_gradients, lods_of_quads, lods_on_faces,
};
use reconverge_simt::wide::Wide;

use super::lanes::{Body, CHUNK, Lanes, Operation};
use super::operands::Place;
use super::operands::{Fetch, Written};
use crate::group::WIDEST;
use crate::texture::Coordinates;
use crate::words::TexOp;

/// Executes the texture fetch with index `number`, for the lanes of the operation's set.
pub(super) struct Fetched;

impl Body for Fetched {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let fetches = lanes.state.fetches;
        let fetch = &fetches[usize::from(u16::from_le_bytes(operation.number))];
        let covered = if fetch.ignore_uncovered { lanes.covered.0 } else { u64::MAX };
        let fetching = lanes.set(operation.set).0 & covered;
        if fetching == 0 {
            return;
        }
        // A group of R520 has 16 lanes. So the group uses only one chunk of each row.
        if lanes.chunks().end == 1 {
            run::<W, CHUNK>(wide, lanes, fetch, fetching);
        } else {
            run::<W, WIDEST>(wide, lanes, fetch, fetching);
        }
    }
}

/// Returns the first `N` lanes of a row.
#[inline(always)]
fn row<'a, const N: usize>(lanes: &'a Lanes<'_>, place: Place) -> &'a [u32; N] {
    lanes.row(place).first_chunk().expect("no group has more lanes than a row")
}

#[inline(always)]
fn run<W: Wide, const N: usize>(wide: W, lanes: &mut Lanes<'_>, fetch: &Fetch, fetching: u64) {
    let fetching = flat::<W, N>(wide, lanes, fetch, fetching);
    if fetching == 0 {
        return;
    }
    let [s, t, r, q] = fetch.src.map(|place| row::<N>(lanes, place));
    let projected;
    let coordinates = if fetch.op == TexOp::PROJ {
        projected = projected_by([s, t, r], q);
        projected.each_ref()
    } else {
        [s, t, r]
    };
    let derivatives = fetch.derivatives.map(|places| places.map(|place| row(lanes, place)));
    let mut lods = [0; N];
    if fetch.plan.needs_lod::<N>(Read::Floats) {
        let of_quads = || lods_of_quads(wide, &fetch.image, &fetch.sampler, coordinates, fetching);
        lods = match fetch.op {
            TexOp::LODBIAS => {
                let mut lods = of_quads();
                for lane in 0..N {
                    lods[lane] = (f32::from_bits(lods[lane]) + f32::from_bits(q[lane])).to_bits();
                }
                lods
            }
            TexOp::LOD => *q,
            TexOp::DXDY => lods_of_derivatives(wide, fetch, coordinates, derivatives, fetching),
            TexOp::LD | TexOp::PROJ | TexOp::NOP | TexOp::TEXKILL => of_quads(),
        };
    }
    let at = Positions { coordinates, layer: &[0; N], offset: [0; 3], lod: &lods };
    let mut values = [[0; N]; 4];
    if fetch.op == TexOp::LOD {
        fetch.plan.read(wide, &fetch.image, Read::Floats, &at, fetching, &mut values);
    } else {
        let gradients = |lane| gradients(fetch, [s, t, r, q], &derivatives, lane);
        let along = (&fetch.sampler, gradients);
        fetch.plan.read_along(wide, &fetch.image, Read::Floats, (&at, fetching), along, &mut values);
    }
    for written in fetch.dst.iter().flatten() {
        put(wide, lanes, written, fetching, &values[written.component]);
    }
}

/// If the plan and the destinations of a fetch allow `Plan::read_flat`, executes the fetch by `Plan::read_flat`.
/// Returns the lanes for which the fetch is still to be executed.
#[inline(always)]
fn flat<W: Wide, const N: usize>(wide: W, lanes: &mut Lanes<'_>, fetch: &Fetch, fetching: u64) -> u64 {
    let Some([r, g, b, a]) = fetch.flat else { return fetching };
    let [s, t, _, q] = fetch.src;
    // The function does not initialize these rows, because the initialization would take as long as reading eight
    // texels.
    let mut projected: [[u32; N]; 2];
    let projects = fetch.op == TexOp::PROJ;
    let of_projected = if projects {
        projected = projected_by([row(lanes, s), row(lanes, t)], row(lanes, q));
        Some(&mut projected)
    } else {
        None
    };
    let cells = lanes.cells();
    let row = |place: Option<Place>| place.map(|place| cells.row(place));
    let coordinates = match of_projected {
        Some([s, t]) => [FlatRows::row(s), FlatRows::row(t)],
        None => [cells.row(s), cells.row(t)],
    };
    let texels = [row(r), row(g), row(b), row(a)];
    let rows = FlatRows { coordinates, offset: [0; 2], texels, lanes: fetching };
    fetch.plan.read_flat(wide, &fetch.image, &rows)
}

/// Divides each coordinate by `by`.
#[inline(always)]
fn projected_by<const N: usize, const A: usize>(coordinates: [&[u32; N]; A], by: &[u32; N]) -> [[u32; N]; A] {
    let mut projected = [[0; N]; A];
    for axis in 0..A {
        for lane in 0..N {
            let quotient = f32::from_bits(coordinates[axis][lane]) / f32::from_bits(by[lane]);
            projected[axis][lane] = quotient.to_bits();
        }
    }
    projected
}

/// Returns the derivatives of a lane's coordinates, for an anisotropic filter.
#[inline(never)]
fn gradients<const N: usize>(
    fetch: &Fetch,
    src: [&[u32; N]; 4],
    derivatives: &[[&[u32; N]; 3]; 2],
    lane: usize,
) -> Gradients {
    let of_lane = |lane: usize| src.map(|row| f32::from_bits(row[lane]));
    let [dx, dy] = derivatives.map(|rows| {
        let [s, t, r] = rows.map(|row| f32::from_bits(row[lane]));
        Some([s, t, r, 0.0])
    });
    let first = lane & !3;
    let quad = [0, 1, 2, 3].map(|place| of_lane(first + place));
    let at = Coordinates { position: of_lane(lane), quad, dx, dy, unscaled: false };
    at.gradients(&fetch.image, fetch.op).unwrap_or_default()
}

/// Writes a channel of the fetched value.
#[inline(always)]
pub(super) fn put<W: Wide, const N: usize>(
    wide: W,
    lanes: &mut Lanes<'_>,
    written: &Written,
    fetching: u64,
    values: &[u32; N],
) {
    let Written { place, by_al, predicate, .. } = *written;
    let holding = match predicate {
        None => u64::MAX,
        Some((bit, inverted)) => lanes.predicate[bit & 3].0 ^ if inverted { u64::MAX } else { 0 },
    };
    let place = by_al.map_or(place, |[base, channel]| lanes.temp_by_al(base, channel));
    let row = lanes.row_mut(place).first_chunk_mut::<N>().expect("no group has more lanes than a row");
    wide.merge(row, values, fetching & holding);
}

/// Returns the level of detail of each lane for DXDY. DXDY is rare, so this function is not inlined.
#[inline(never)]
fn lods_of_derivatives<W: Wide, const N: usize>(
    wide: W,
    fetch: &Fetch,
    coordinates: [&[u32; N]; 3],
    derivatives: [[&[u32; N]; 3]; 2],
    fetching: u64,
) -> [u32; N] {
    if fetch.image.shape() == Shape::Cube {
        let [right, below] = derivatives.map(|derivatives| one_step_on(coordinates, derivatives));
        let quad = [coordinates, right.each_ref(), below.each_ref()];
        lods_on_faces(wide, &fetch.image, &fetch.sampler, coordinates, quad, fetching)
    } else {
        let steps = derivatives.map(|derivatives| steps(coordinates, derivatives));
        let gradients = steps.each_ref().map(|rows| rows.each_ref());
        lods_of_gradients(wide, &fetch.image, &fetch.sampler, gradients, fetching)
    }
}

/// Returns the sums of coordinates and derivatives. These sums are the coordinates of the neighbouring pixel.
fn one_step_on<const N: usize>(coordinates: [&[u32; N]; 3], derivatives: [&[u32; N]; 3]) -> [[u32; N]; 3] {
    let mut moved = [[0; N]; 3];
    for axis in 0..3 {
        for lane in 0..N {
            let [at, by] = [coordinates, derivatives].map(|rows| f32::from_bits(rows[axis][lane]));
            moved[axis][lane] = (at + by).to_bits();
        }
    }
    moved
}

/// Returns the differences between the coordinates of the neighbouring pixel and the coordinates of this pixel. The
/// coordinates of the neighbouring pixel are sums of coordinates and derivatives. The function rounds sums and
/// differences like the reference interpreter.
fn steps<const N: usize>(coordinates: [&[u32; N]; 3], derivatives: [&[u32; N]; 3]) -> [[u32; N]; 3] {
    let mut steps = one_step_on(coordinates, derivatives);
    for (steps, coordinates) in steps.iter_mut().zip(coordinates) {
        for (step, at) in steps.iter_mut().zip(coordinates) {
            *step = (f32::from_bits(*step) - f32::from_bits(*at)).to_bits();
        }
    }
    steps
}
