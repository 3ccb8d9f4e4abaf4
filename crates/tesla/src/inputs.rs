//! The inputs of a fragment warp. An input is a word for each lane, or a plane that the warp evaluates at the position
//! of each lane.

use reconverge_simt::level::{Level, Task};
use reconverge_simt::registers::Row;
use reconverge_simt::wide::Wide;

use crate::flow::WARP;
use crate::lane::interpolate::{Interpolant, Position, interp, interp_row};
use crate::launch::{Fragment, Varying};
use crate::state::{Input, Warp};

/// The positions of a warp's lanes in the window, as one list per axis.
#[derive(Clone, Copy)]
pub(crate) struct Positions {
    x: [f32; WARP],
    y: [f32; WARP],
}

impl Positions {
    /// Returns the pixel centres and the centroids for a warp. The warp's first lane is fragment `first`.
    #[inline(always)]
    pub(crate) fn of(fragment: &Fragment, first: usize) -> [Positions; 2] {
        let mut centres = Positions::default_centres(first);
        centres.take(fragment.centres.get(first..).unwrap_or_default());
        let mut centroids = centres;
        centroids.take(fragment.centroids.get(first..).unwrap_or_default());
        [centres, centroids]
    }

    /// Returns the pixel centres of a row of quads. Quad q covers x = 2q and 2q+1, and y = 0 and 1.
    #[inline(always)]
    fn default_centres(first: usize) -> Self {
        let mut centres = Positions { x: [0.0; WARP], y: [0.0; WARP] };
        for lane in 0..WARP {
            // The number of a lane has at most 30 bits, so the conversion to `i32` keeps the number.
            centres.x[lane] = ((first + lane) as u32 / 4 * 2 + lane as u32 % 2) as i32 as f32 + 0.5;
            centres.y[lane] = (lane / 2 % 2) as f32 + 0.5;
        }
        centres
    }

    /// Replaces positions by the positions in a list. The list may have fewer or more entries than there are lanes.
    #[inline(always)]
    fn take(&mut self, given: &[[f32; 2]]) {
        for (lane, [x, y]) in given.iter().take(WARP).enumerate() {
            (self.x[lane], self.y[lane]) = (*x, *y);
        }
    }

    /// Returns the interpolant at each position.
    #[inline(always)]
    pub(crate) fn interpolated(&self, of: Interpolant) -> Row<WARP> {
        Row(interp_row(of, [&self.x, &self.y]))
    }

    /// Computes [`Positions::interpolated`] lane by lane.
    fn by_lane(&self, of: Interpolant) -> Row<WARP> {
        // This code passes one position as both centre and centroid, because this code evaluates the plane only at the
        // centre.
        let at = |lane: usize| [self.x[lane], self.y[lane]];
        Row(std::array::from_fn(|lane| interp(of, Position::Centre, at(lane), at(lane), None)))
    }
}

/// A fragment warp whose inputs are to be set.
pub(crate) struct Fragments<'a> {
    pub(crate) fragment: &'a Fragment,
    /// Index of the fragment in the first lane.
    pub(crate) first: usize,
    pub(crate) warp: &'a mut Warp,
}

impl Fragments<'_> {
    /// Sets the inputs with code for a level. If `level` is `None`, sets the inputs lane by lane. The code for AVX2
    /// takes a seventh of the time of the lane-by-lane code.
    pub(crate) fn set_inputs(self, level: Option<Level>) {
        match level {
            Some(level) => level.run(self),
            None => self.set(Positions::by_lane),
        }
    }

    #[inline(always)]
    fn set(self, interpolated: impl Fn(&Positions, Interpolant) -> Row<WARP>) {
        let Fragments { fragment, first, warp } = self;
        if !fragment.varyings.contains_key(&0) {
            warp.set_input_words(0, &[1.0f32.to_bits(); WARP]);
        }
        let mut positions: Option<[Positions; 2]> = None;
        for (&slot, varying) in &fragment.varyings {
            match varying {
                Varying::Lanes(values) => {
                    warp.set_input_words(slot, values.get(first..).unwrap_or_default());
                }
                &Varying::Plane { base, dx, dy, flat } => {
                    let of = Interpolant { base, dx, dy, flat };
                    let [centres, centroids] =
                        positions.get_or_insert_with(|| Positions::of(fragment, first));
                    let centre = interpolated(centres, of);
                    // Most launches do not provide centroids. Without centroids, the centre serves as the centroid.
                    let centroid =
                        if fragment.centroids.is_empty() { centre } else { interpolated(centroids, of) };
                    warp.set_input(slot, Input::of(centre, centroid, Row([flat; WARP])));
                }
            }
        }
    }
}

impl Task for Fragments<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, _: W) {
        self.set(Positions::interpolated);
    }
}
