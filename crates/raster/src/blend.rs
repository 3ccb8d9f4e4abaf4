//! Blending and logic operations. From a fragment's colour and the stored value, these operations compute the new value
//! to store.
//!
//! Source: OpenGL 3.0, 4.1.7 and 4.1.10. Blending uses single precision. The precision of the chips is not documented.

use std::ops::{BitAnd, BitOr, Not};

/// Factor by which blending multiplies a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Factor {
    Zero,
    One,
    Source,
    OneMinusSource,
    SourceAlpha,
    OneMinusSourceAlpha,
    DestinationAlpha,
    OneMinusDestinationAlpha,
    Destination,
    OneMinusDestination,
    /// For red, green and blue, the smaller of source alpha and 1 - destination alpha. For alpha, 1.
    SourceAlphaSaturate,
    Constant,
    OneMinusConstant,
    ConstantAlpha,
    OneMinusConstantAlpha,
    /// The second colour of the fragment program.
    Second,
    OneMinusSecond,
    SecondAlpha,
    OneMinusSecondAlpha,
}

/// Operation that combines two products. The first product is the source times the source factor. The second product is
/// the destination times the destination factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Equation {
    Add,
    /// The source product minus the destination product.
    Subtract,
    /// Minimum of both colours. The factors are ignored.
    Min,
    Max,
    /// The destination product minus the source product.
    ReverseSubtract,
}

/// Source factor, equation, and destination factor.
pub type Part = (Factor, Equation, Factor);

/// Blending state of a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    /// Equation for red, green and blue.
    pub color: Part,
    /// Equation for alpha.
    pub alpha: Part,
    /// The constant colour.
    pub constant: [f32; 4],
    /// For a fixed-point target, the range to which sources, constant and result are clamped.
    pub range: Option<(f32, f32)>,
}

/// Returns the bits of a blended value. All NaNs get the same bits. Otherwise, the bits of a NaN would depend on the
/// order of the operands.
#[inline(always)]
pub(crate) fn stored_bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

impl Blend {
    /// Returns the colour to store. `source` and `second` are the two colours of a fragment, and `destination` is the
    /// stored colour.
    pub fn apply(&self, source: [f32; 4], second: [f32; 4], destination: [f32; 4]) -> [f32; 4] {
        let clamp = |color: [f32; 4]| match self.range {
            // A NaN becomes the lower bound.
            Some((low, high)) => color.map(|x| if x > low { x.min(high) } else { low }),
            None => color,
        };
        let (source, second, constant) = (clamp(source), clamp(second), clamp(self.constant));
        let factor = |factor: Factor, at: usize| match factor {
            Factor::Zero => 0.,
            Factor::One => 1.,
            Factor::Source => source[at],
            Factor::OneMinusSource => 1. - source[at],
            Factor::SourceAlpha => source[3],
            Factor::OneMinusSourceAlpha => 1. - source[3],
            Factor::DestinationAlpha => destination[3],
            Factor::OneMinusDestinationAlpha => 1. - destination[3],
            Factor::Destination => destination[at],
            Factor::OneMinusDestination => 1. - destination[at],
            Factor::SourceAlphaSaturate if at == 3 => 1.,
            Factor::SourceAlphaSaturate => source[3].min(1. - destination[3]),
            Factor::Constant => constant[at],
            Factor::OneMinusConstant => 1. - constant[at],
            Factor::ConstantAlpha => constant[3],
            Factor::OneMinusConstantAlpha => 1. - constant[3],
            Factor::Second => second[at],
            Factor::OneMinusSecond => 1. - second[at],
            Factor::SecondAlpha => second[3],
            Factor::OneMinusSecondAlpha => 1. - second[3],
        };
        // A product with a factor of 0 is 0, even if the colour is infinite.
        let product = |color: f32, factor: f32| if factor == 0. { 0. } else { color * factor };
        let result = std::array::from_fn(|at| {
            let (source_factor, equation, destination_factor) = if at == 3 { self.alpha } else { self.color };
            let from_source = product(source[at], factor(source_factor, at));
            let from_destination = product(destination[at], factor(destination_factor, at));
            match equation {
                Equation::Add => from_source + from_destination,
                Equation::Subtract => from_source - from_destination,
                Equation::ReverseSubtract => from_destination - from_source,
                Equation::Min => source[at].min(destination[at]),
                Equation::Max => source[at].max(destination[at]),
            }
        });
        clamp(result)
    }
}

/// A logic operation as a table of four bits. The result for a source bit and a destination bit is bit 2 * source +
/// destination of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicOp(pub u8);

impl LogicOp {
    /// Stores the source unchanged.
    pub const COPY: LogicOp = LogicOp(0xc);

    /// Returns the bits to store.
    #[inline(always)]
    pub fn apply<T>(self, source: T, destination: T) -> T
    where
        T: Copy + Default + Not<Output = T> + BitAnd<Output = T> + BitOr<Output = T>,
    {
        let term = |bit: u8, bits: T| if self.0 >> bit & 1 != 0 { bits } else { T::default() };
        term(0, !source & !destination)
            | term(1, !source & destination)
            | term(2, source & !destination)
            | term(3, source & destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: Part = (Factor::SourceAlpha, Equation::Add, Factor::OneMinusSourceAlpha);

    #[test]
    fn a_transparent_colour_lies_over_another() {
        let blend = Blend { color: OVER, alpha: OVER, constant: [0.; 4], range: Some((0., 1.)) };
        let found = blend.apply([1., 0., 2., 0.25], [0.; 4], [0., 1., 0., 1.]);
        assert_eq!(found, [0.25, 0.75, 0.25, 0.8125]);
    }

    #[test]
    fn min_and_max_take_no_factors() {
        let part = |equation| (Factor::Zero, equation, Factor::Zero);
        let blend =
            Blend { color: part(Equation::Min), alpha: part(Equation::Max), constant: [0.; 4], range: None };
        assert_eq!(blend.apply([1., 3., 1., 0.5], [0.; 4], [2.; 4]), [1., 2., 1., 2.]);
    }

    #[test]
    fn colours_of_a_fixed_point_target_are_clamped_first() {
        let add = (Factor::One, Equation::Subtract, Factor::One);
        let blend = Blend { color: add, alpha: add, constant: [0.; 4], range: Some((0., 1.)) };
        assert_eq!(blend.apply([2., -1., 0.5, f32::NAN], [0.; 4], [0.5, 0., 0.25, 0.]), [0.5, 0., 0.25, 0.]);
    }

    /// OpenGL 3.0, table 4.3: COPY, XOR, NOR, AND_INVERTED.
    #[test]
    fn logic_operations_are_tables_of_four() {
        let apply = |table| LogicOp(table).apply(0b1100_u32, 0b1010) & 0xf;
        assert_eq!([apply(0xc), apply(0x6), apply(0x1), apply(0x2)], [0b1100, 0b0110, 0b0001, 0b0010]);
    }
}
