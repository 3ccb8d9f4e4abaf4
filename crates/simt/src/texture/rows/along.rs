//! Anisotropic filters over rows of lanes: what [`Footprint::mean`] gives lane by lane, bit for bit.

use super::super::anisotropy::{Footprint, Gradients};
use super::super::{Image, Sampler};
use super::{Plan, Positions, Read, Words};
use crate::mask::members;
use crate::wide::Wide;

/// Returns whether a read of this kind has several places.
fn is_anisotropic<const N: usize>(sampler: &Sampler, read: Read<'_, N>) -> bool {
    sampler.anisotropy > 1 && matches!(read, Read::Floats | Read::Compare(..))
}

impl Plan {
    /// Reads as [`Plan::read`], or the mean of the places of each lane's footprint if `sampler`, for which the plan was made, has an
    /// anisotropic filter. `gradients` returns the changes of a lane's coordinates.
    #[inline(always)]
    pub fn read_along<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        at: &Positions<'_, N>,
        (sampler, gradients): (&Sampler, impl Fn(usize) -> Gradients),
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        if !is_anisotropic(sampler, read) {
            return self.read(wide, image, read, at, lanes, values);
        }
        let mut footprints = [Footprint::default(); N];
        for lane in members(lanes) {
            footprints[lane] = Footprint::new(image, sampler, gradients(lane));
        }
        self.read_footprints(wide, image, read, (at, &footprints), lanes, values);
    }

    /// Reads place by place, each for the lanes that have it.
    #[inline(never)]
    fn read_footprints<W: Wide, const N: usize>(
        &self,
        wide: W,
        image: &Image,
        read: Read<'_, N>,
        (at, footprints): (&Positions<'_, N>, &[Footprint; N]),
        lanes: u64,
        values: &mut [Words<N>; 4],
    ) {
        let mut sums = [[0.0; N]; 4];
        for number in 0..=u8::MAX {
            let has_place = |lane: &usize| footprints[*lane].count() > number;
            let reading = members(lanes).filter(has_place).fold(0, |set, lane| set | 1u64 << lane);
            if reading == 0 {
                break;
            }
            let (mut coordinates, mut lod) = ([[0; N]; 3], [0; N]);
            for lane in members(reading) {
                let place = footprints[lane].place(image, &at.of(lane), number);
                (0..3).for_each(|axis| coordinates[axis][lane] = place.coordinates[axis].to_bits());
                lod[lane] = place.lod.to_bits();
            }
            let places = Positions { coordinates: coordinates.each_ref(), lod: &lod, ..*at };
            let mut texels = [[0; N]; 4];
            self.read(wide, image, read, &places, reading, &mut texels);
            for channel in 0..4 {
                for lane in members(reading) {
                    sums[channel][lane] += f32::from_bits(texels[channel][lane]);
                }
            }
            if number == 0 {
                *values = texels;
            }
        }
        // The texel of a single place keeps its bits.
        for lane in members(lanes).filter(|lane| footprints[*lane].count() > 1) {
            (0..4).for_each(|channel| values[channel][lane] = footprints[lane].share(sums[channel][lane]));
        }
    }
}
