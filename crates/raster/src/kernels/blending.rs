//! Blends by rows. Computes [`Blend::apply`] for all lanes of a row, and converts colours to the bytes of elements.

use super::{Floats, LANES, Words};
use crate::blend::{Blend, Equation, Factor, stored_bits};
use crate::state::Target;

/// Converts the written components of colours to bytes. Each byte is at the position of its component in an element.
#[inline(always)]
pub(super) fn placed(target: &Target, colors: [&Words; 4]) -> Words {
    // One loop processes all components, so that intermediate values stay in registers.
    let is_written = |chan: usize| target.mask >> chan & 1 != 0 && target.places[chan].is_some();
    let masks = [0, 1, 2, 3].map(|chan| if is_written(chan) { 0xff } else { 0 });
    let shifts = target.places.map(|place| 8 * place.map_or(0, u32::from));
    let mut words = [0; LANES];
    for lane in 0..LANES {
        for chan in 0..4 {
            words[lane] |= (byte(f32::from_bits(colors[chan][lane])) & masks[chan]) << shifts[chan];
        }
    }
    words
}

/// Converts a fraction to a byte, like [`Format::write`](crate::format::Format::write).
#[inline(always)]
fn byte(value: f32) -> u32 {
    /// 1.5 * 2^23. Adding this constant to a single rounds the single to a whole number. The lowest bits of the sum are
    /// this whole number. The fused multiply-add does not round the product before the addition.
    const WHOLE: f32 = 12_582_912.;
    unit(value).mul_add(255., WHOLE).to_bits() & 0xff
}

/// Clamps a value to the range from 0 to 1. A NaN becomes 0.
#[inline(always)]
fn unit(value: f32) -> f32 {
    let value = if value > 0. { value } else { 0. };
    if value < 1. { value } else { 1. }
}

/// Returns whether a factor reads the second colour.
pub(super) fn reads_second(blend: &Blend) -> bool {
    let second = |factor: Factor| {
        matches!(
            factor,
            Factor::Second | Factor::OneMinusSecond | Factor::SecondAlpha | Factor::OneMinusSecondAlpha
        )
    };
    [blend.color, blend.alpha].iter().any(|(source, _, destination)| second(*source) || second(*destination))
}

/// Computes [`Blend::apply`] and [`placed`] for common blends of fractions: sums whose factors are 1 or depend on
/// source alpha. Returns `None` for other blends. One loop blends all components of a pixel, so the components stay in
/// registers. All colours are numbers from 0 to 1. A product with a factor of 0 is therefore 0 without a special case.
#[inline(always)]
pub(super) fn mixed(blend: &Blend, source: [&Words; 4], target: &Target, stored: &Words) -> Option<Words> {
    let pixels = (source, target, stored);
    let (by_source, equation, by_destination) = blend.color;
    if blend.color != blend.alpha || equation != Equation::Add || blend.range != Some((0., 1.)) {
        return None;
    }
    Some(match (by_source, by_destination) {
        (Factor::SourceAlpha, Factor::OneMinusSourceAlpha) => {
            weighted(pixels, |alpha| alpha, |alpha| 1. - alpha)
        }
        (Factor::One, Factor::OneMinusSourceAlpha) => weighted(pixels, |_| 1., |alpha| 1. - alpha),
        (Factor::SourceAlpha, Factor::One) => weighted(pixels, |alpha| alpha, |_| 1.),
        (Factor::One, Factor::One) => weighted(pixels, |_| 1., |_| 1.),
        _ => return None,
    })
}

/// Adds source and destination with factors that depend on source alpha. Returns the sums as bytes at their positions
/// in an element.
#[inline(always)]
fn weighted(
    (source, target, stored): ([&Words; 4], &Target, &Words),
    left: impl Fn(f32) -> f32,
    right: impl Fn(f32) -> f32,
) -> Words {
    let is_written = |chan: usize| target.mask >> chan & 1 != 0 && target.places[chan].is_some();
    let masks = [0, 1, 2, 3].map(|chan| if is_written(chan) { 0xff } else { 0 });
    let shifts = target.places.map(|place| 8 * place.map_or(0, u32::from));
    let mut words = [0; LANES];
    for lane in 0..LANES {
        let alpha = unit(f32::from_bits(source[3][lane]));
        let (left, right) = (left(alpha), right(alpha));
        for chan in 0..4 {
            let source = unit(f32::from_bits(source[chan][lane]));
            let destination = fraction(stored[lane] >> shifts[chan] & 0xff);
            words[lane] |= (byte(source * left + destination * right) & masks[chan]) << shifts[chan];
        }
    }
    words
}

/// Computes [`Blend::apply`] for the lanes of a row.
pub(super) struct Blending<'a> {
    blend: &'a Blend,
    source: [Floats; 4],
    /// The second colour, or `None` if no factor reads the second colour.
    second: Option<[Floats; 4]>,
    destination: [Floats; 4],
    constant: [f32; 4],
}

/// Clamps values to the range of a blend. A NaN becomes the lower bound.
#[inline(always)]
fn clamp(range: Option<(f32, f32)>, values: &mut Floats) {
    if let Some((low, high)) = range {
        for value in values {
            let below = if *value < high { *value } else { high };
            *value = if *value > low { below } else { low };
        }
    }
}

/// Clamps the components of a colour to the range of a blend.
#[inline(always)]
fn clamped(range: Option<(f32, f32)>, rows: [&Words; 4]) -> [Floats; 4] {
    let mut colors = [[0.; LANES]; 4];
    for (color, row) in colors.iter_mut().zip(rows) {
        for lane in 0..LANES {
            color[lane] = f32::from_bits(row[lane]);
        }
        clamp(range, color);
    }
    colors
}

/// Calls a function for each lane, and returns a row with the returned values.
#[inline(always)]
fn each(value: impl Fn(usize) -> f32) -> Floats {
    let mut values = [0.; LANES];
    for lane in 0..LANES {
        values[lane] = value(lane);
    }
    values
}

/// Converts a byte to a fraction. A multiplication and a correction replace the single-precision division by 255.
#[inline(always)]
fn fraction(byte: u32) -> f32 {
    const RECIPROCAL: f32 = 1. / 255.;
    let byte = byte as i32 as f32;
    let near = byte * RECIPROCAL;
    (-near).mul_add(255., byte).mul_add(RECIPROCAL, near)
}

/// Returns the colours in elements of four bytes. Missing components are 0, 0, 0, 1.
#[inline(always)]
pub(super) fn fractions_of(target: &Target, stored: &Words) -> [Floats; 4] {
    let mut colors = [[0.; LANES], [0.; LANES], [0.; LANES], [1.; LANES]];
    for (color, place) in colors.iter_mut().zip(target.places) {
        if let Some(place) = place {
            *color = each(|lane| fraction(stored[lane] >> (8 * place) & 0xff));
        }
    }
    colors
}

/// Returns a colour times a factor. If the factor is 0, the product is 0, even if the colour is infinite or a NaN.
#[inline(always)]
fn product(color: f32, factor: f32) -> f32 {
    if factor == 0. { 0. } else { color * factor }
}

impl<'a> Blending<'a> {
    #[inline(always)]
    pub(super) fn new(
        blend: &'a Blend,
        source: [&Words; 4],
        second: Option<[&Words; 4]>,
        destination: [Floats; 4],
    ) -> Blending<'a> {
        let mut constant = blend.constant;
        for value in &mut constant {
            let mut row = [*value; LANES];
            clamp(blend.range, &mut row);
            *value = row[0];
        }
        Blending {
            blend,
            source: clamped(blend.range, source),
            second: second.map(|second| clamped(blend.range, second)),
            destination,
            constant,
        }
    }

    /// Returns the components of the blended colours.
    #[inline(always)]
    pub(super) fn colors(&self) -> [Words; 4] {
        let mut colors = [[0; LANES]; 4];
        for (part, chans) in [(self.blend.color, 0..3), (self.blend.alpha, 3..4)] {
            let (by_source, equation, by_destination) = part;
            let weighs = !matches!(equation, Equation::Min | Equation::Max);
            let (mut left, mut right) = ([0.; LANES], [0.; LANES]);
            for chan in chans.clone() {
                // A factor that is equal for all components is computed once.
                if weighs && (chan == chans.start || has_components(by_source)) {
                    left = self.factor(by_source, chan);
                }
                if weighs && (chan == chans.start || has_components(by_destination)) {
                    right = self.factor(by_destination, chan);
                }
                let (source, destination) = (&self.source[chan], &self.destination[chan]);
                let one = |lane: usize| product(source[lane], left[lane]);
                let other = |lane: usize| product(destination[lane], right[lane]);
                let mut result = match equation {
                    Equation::Add => each(|lane| one(lane) + other(lane)),
                    Equation::Subtract => each(|lane| one(lane) - other(lane)),
                    Equation::ReverseSubtract => each(|lane| other(lane) - one(lane)),
                    Equation::Min => each(|lane| source[lane].min(destination[lane])),
                    Equation::Max => each(|lane| source[lane].max(destination[lane])),
                };
                clamp(self.blend.range, &mut result);
                for lane in 0..LANES {
                    colors[chan][lane] = stored_bits(result[lane]);
                }
            }
        }
        colors
    }

    /// Returns the values of a factor for a component.
    #[inline(always)]
    fn factor(&self, factor: Factor, at: usize) -> Floats {
        let Blending { source, destination, constant, .. } = self;
        let second = |at: usize| self.second.as_ref().map_or([0.; LANES], |second| second[at]);
        match factor {
            Factor::Zero => [0.; LANES],
            Factor::One => [1.; LANES],
            Factor::Source => source[at],
            Factor::OneMinusSource => subtracted(&source[at]),
            Factor::SourceAlpha => source[3],
            Factor::OneMinusSourceAlpha => subtracted(&source[3]),
            Factor::DestinationAlpha => destination[3],
            Factor::OneMinusDestinationAlpha => subtracted(&destination[3]),
            Factor::Destination => destination[at],
            Factor::OneMinusDestination => subtracted(&destination[at]),
            Factor::SourceAlphaSaturate if at == 3 => [1.; LANES],
            Factor::SourceAlphaSaturate => each(|lane| source[3][lane].min(1. - destination[3][lane])),
            Factor::Constant => [constant[at]; LANES],
            Factor::OneMinusConstant => [1. - constant[at]; LANES],
            Factor::ConstantAlpha => [constant[3]; LANES],
            Factor::OneMinusConstantAlpha => [1. - constant[3]; LANES],
            Factor::Second => second(at),
            Factor::OneMinusSecond => subtracted(&second(at)),
            Factor::SecondAlpha => second(3),
            Factor::OneMinusSecondAlpha => subtracted(&second(3)),
        }
    }
}

/// Returns one minus each value.
#[inline(always)]
fn subtracted(values: &Floats) -> Floats {
    each(|lane| 1. - values[lane])
}

/// Returns whether a factor may differ between the components of a colour.
fn has_components(factor: Factor) -> bool {
    matches!(
        factor,
        Factor::Source
            | Factor::OneMinusSource
            | Factor::Destination
            | Factor::OneMinusDestination
            | Factor::Constant
            | Factor::OneMinusConstant
            | Factor::Second
            | Factor::OneMinusSecond
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_the_quotient_by_255() {
        (0..256)
            .for_each(|byte| assert_eq!(fraction(byte).to_bits(), (byte as f32 / 255.).to_bits(), "{byte}"));
    }
}
