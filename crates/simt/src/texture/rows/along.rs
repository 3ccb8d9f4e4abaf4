//! Anisotropic filters over rows of lanes. The results equal those of [`Footprint::mean`] for each lane, bit for bit.

use super::super::anisotropy::{Footprint, Gradients, along};
use super::super::{Image, Sampler};
use super::{Plan, Positions, Read, Words, is_cube};
use crate::mask::members;
use crate::wide::Wide;

/// Returns whether a read of this kind can have several positions.
fn is_anisotropic<const N: usize>(sampler: &Sampler, read: Read<'_, N>) -> bool {
    sampler.anisotropy > 1 && matches!(read, Read::Floats | Read::Compare(..))
}

impl Plan {
    /// Reads as [`Plan::read`] does. If `sampler` has an anisotropic filter, a lane has a footprint with several
    /// positions. The result of the lane is the mean over these positions. The plan must have been created for
    /// `sampler`. `lanes` is the set of reading lanes. `at` contains the coordinates of these lanes. `gradients`
    /// returns the changes of the coordinates for a lane.
    #[inline(always)]
    pub fn read_along<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        (at, lanes): (&Positions<'_, N>, u64),
        (sampler, gradients): (&Sampler, impl Fn(usize) -> Gradients),
        values: &mut [Words<N>; 4],
    ) {
        if !is_anisotropic(sampler, read) {
            return self.read(wide, image, read, at, lanes, values);
        }
        let mut rows = Footprints {
            of_lanes: [Footprint::default(); N],
            counts: [1.0; N],
            finer: [0.0; N],
            longer: [[0.0; N]; 3],
        };
        let mut before = None;
        for lane in members(lanes) {
            let gradients = gradients(lane);
            // The lanes of a quad usually have the same footprint.
            let footprint = match before {
                Some((same, footprint)) if same == gradients => footprint,
                _ => Footprint::new(image, sampler, gradients),
            };
            before = Some((gradients, footprint));
            rows.set(lane, footprint);
        }
        self.read_footprints(wide, image, read, (at, &rows), lanes, values);
    }

    /// Reads one position after another. A read of a position covers the lanes whose footprint contains the position.
    #[inline(never)]
    fn read_footprints<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        (at, footprints): (&Positions<'_, N>, &Footprints<N>),
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        let mut sums = [[0.0; N]; 4];
        for number in 0..=u8::MAX {
            let reading = footprints.with_place(number) & lanes;
            if reading == 0 {
                break;
            }
            let (coordinates, lod) = match is_cube(image) {
                true => footprints.places_of_cube(image, at, number),
                false => footprints.places(at, number),
            };
            let places = Positions { coordinates: coordinates.each_ref(), lod: &lod, ..*at };
            let mut texels = [[0; N]; 4];
            self.read(wide, image, read, &places, reading, &mut texels);
            for (sums, texels) in sums.iter_mut().zip(&texels) {
                for lane in 0..N {
                    let sum = sums[lane] + f32::from_bits(texels[lane]);
                    sums[lane] = if footprints.counts[lane] > number.into() { sum } else { sums[lane] };
                }
            }
            if number == 0 {
                *values = texels;
            }
        }
        // The result of a lane with a single position has the bits of the texel at this position.
        for lane in members(lanes & footprints.with_place(1)) {
            let footprint = &footprints.of_lanes[lane];
            (0..4).for_each(|channel| values[channel][lane] = footprint.share(sums[channel][lane]));
        }
    }
}

/// The footprints of lanes. Some fields of each footprint are also stored in rows.
struct Footprints<const N: usize> {
    of_lanes: [Footprint; N],
    counts: [f32; N],
    finer: [f32; N],
    longer: [[f32; N]; 3],
}

impl<const N: usize> Footprints<N> {
    fn set(&mut self, lane: usize, footprint: Footprint) {
        self.of_lanes[lane] = footprint;
        (self.counts[lane], self.finer[lane]) = (footprint.count().into(), footprint.finer);
        (0..3).for_each(|axis| self.longer[axis][lane] = footprint.longer[axis]);
    }

    /// Returns the lanes whose footprint has a position with this number.
    fn with_place(&self, number: u8) -> u64 {
        let has = |lane: usize| u64::from(self.counts[lane] > number.into()) << lane;
        (0..N).fold(0, |set, lane| set | has(lane))
    }

    /// Returns the coordinates and levels of detail of position `number` of each lane, as [`Footprint::place`] does.
    fn places(&self, at: &Positions<'_, N>, number: u8) -> ([Words<N>; 3], Words<N>) {
        let (mut coordinates, mut lods, mut places) = ([[0; N]; 3], [0; N], [0.0; N]);
        for lane in 0..N {
            places[lane] = along(number, self.counts[lane]);
            lods[lane] = (f32::from_bits(at.lod[lane]) - self.finer[lane]).to_bits();
        }
        for axis in 0..3 {
            for lane in 0..N {
                let from = at.coordinates[axis][lane];
                let moved = f32::from_bits(from) + self.longer[axis][lane] * places[lane];
                coordinates[axis][lane] = if self.counts[lane] > 1.0 { moved.to_bits() } else { from };
            }
        }
        (coordinates, lods)
    }

    /// Returns the result of [`Footprints::places`] for a cube, computed lane by lane.
    fn places_of_cube(&self, image: &Image, at: &Positions<'_, N>, number: u8) -> ([Words<N>; 3], Words<N>) {
        let (mut coordinates, mut lods) = ([[0; N]; 3], [0; N]);
        for lane in 0..N {
            let place = self.of_lanes[lane].place(image, &at.of(lane), number);
            (0..3).for_each(|axis| coordinates[axis][lane] = place.coordinates[axis].to_bits());
            lods[lane] = place.lod.to_bits();
        }
        (coordinates, lods)
    }
}
