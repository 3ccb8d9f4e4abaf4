//! Formats of surfaces: where the components of an element lie, and what number each is.
//!
//! Sources: OpenGL 3.0, 2.1.2 (fixed-point conversions), 3.8.1 and 4.1.8 (sRGB), EXT_packed_float, EXT_texture_shared_exponent.
//! Rounding to a fixed-point number is to the nearest, ties to even; no document of the chips states it.

use half::f16;

/// What the bits of a component mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A fraction in [0, 1].
    Unorm,
    /// A fraction in [-1, 1].
    Snorm,
    /// An unsigned integer as a float.
    Uscaled,
    /// A signed integer as a float.
    Sscaled,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
    /// A fraction in [0, 1] along the sRGB curve; the fourth component is linear.
    Srgb,
    /// A float of 32, 16, 11 or 10 bits, the last two without a sign.
    Float,
}

impl Number {
    /// Whether shaders see integers, which neither blend nor filter.
    pub fn is_integer(self) -> bool {
        matches!(self, Number::Uint | Number::Sint)
    }

    /// The bits of one: what a component reads as that a format does not have, where a selection asks for it.
    pub fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }
}

/// The components of an element, at most four, from the least significant bit upward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Widths in bits; 0 for a component that is not there.
    pub bits: [u8; 4],
    /// What each is.
    pub numbers: [Number; 4],
    /// Bytes of an element.
    pub bytes: u8,
}

impl Format {
    /// A format whose components are all of one kind, in as many bytes as they fill.
    pub const fn new(bits: [u8; 4], number: Number) -> Format {
        let total = bits[0] as u32 + bits[1] as u32 + bits[2] as u32 + bits[3] as u32;
        let mut numbers = [number; 4];
        if matches!(number, Number::Srgb) {
            numbers[3] = Number::Unorm;
        }
        Format { bits, numbers, bytes: total.div_ceil(8) as u8 }
    }

    /// The components of an element as bits of floats, or as integers; 0 for one that is not there. Bytes beyond the end of
    /// `bytes` read as 0.
    pub fn read(&self, bytes: &[u8]) -> [u32; 4] {
        let mut element = [0; 16];
        let length = bytes.len().min(usize::from(self.bytes));
        element[..length].copy_from_slice(&bytes[..length]);
        let (all, mut at) = (u128::from_le_bytes(element), 0);
        let mut values = [0; 4];
        for (value, (width, number)) in values.iter_mut().zip(self.bits.into_iter().zip(self.numbers)) {
            if width != 0 {
                let raw = (all >> at) as u32 & (u32::MAX >> (32 - width));
                *value = to_value(raw, width, number);
                at += u32::from(width);
            }
        }
        values
    }

    /// The element of these components, and which of its bits belong to those that `mask` has (bit n is component n).
    pub fn write(&self, values: [u32; 4], mask: u8) -> (u128, u128) {
        if mask == 0xf && *self == RGBA8 {
            return (bytes_of(values).into(), u32::MAX.into());
        }
        let (mut all, mut written, mut at) = (0, 0, 0);
        for (component, (width, number)) in self.bits.into_iter().zip(self.numbers).enumerate() {
            if width != 0 {
                let bits = u128::from(u32::MAX >> (32 - width));
                all |= u128::from(from_value(values[component], width, number)) << at;
                if mask >> component & 1 != 0 {
                    written |= bits << at;
                }
                at += u32::from(width);
            }
        }
        (all, written)
    }
}

/// What most surfaces are made of.
const RGBA8: Format = Format::new([8; 4], Number::Unorm);

/// [`Format::write`] for [`RGBA8`], all components at once.
fn bytes_of(values: [u32; 4]) -> u32 {
    // A NaN stays one, which is 0 as an integer.
    let fraction = |value: u32| f64::from(f32::from_bits(value).clamp(0., 1.));
    let bytes = values.map(|value| nearest(fraction(value) * 255.) as u8);
    u32::from_le_bytes(bytes)
}

/// A component as the bits of a float, or as an integer of 32 bits.
fn to_value(raw: u32, width: u8, number: Number) -> u32 {
    let signed = (raw << (32 - width)) as i32 >> (32 - width);
    let most = u32::MAX >> (32 - width);
    let value = match number {
        Number::Uint => return raw,
        Number::Sint => return signed as u32,
        Number::Float => return float_to_single(raw, width),
        Number::Unorm => f64::from(raw) / f64::from(most),
        // A component of one bit has the codes 0 and -1.
        Number::Snorm => (f64::from(signed) / f64::from(most >> 1).max(1.)).max(-1.),
        Number::Uscaled => f64::from(raw),
        Number::Sscaled => f64::from(signed),
        Number::Srgb => return from_srgb(f64::from(raw) / f64::from(most)).to_bits(),
    };
    (value as f32).to_bits()
}

/// A component's bits of a value; what is out of range becomes the nearest that fits, a NaN 0.
fn from_value(value: u32, width: u8, number: Number) -> u32 {
    let most = u32::MAX >> (32 - width);
    let float = f64::from(f32::from_bits(value));
    let float = if float.is_nan() { 0. } else { float };
    let fixed = |value: f64, low: f64, high: f64| nearest(value.clamp(low, high)) as i64 as u32 & most;
    let (high, low) = (f64::from(most >> 1), -f64::from(most >> 1) - 1.);
    match number {
        Number::Uint => value.min(most),
        Number::Sint => (value as i32).clamp(low as i32, high as i32) as u32 & most,
        Number::Float => single_to_float(f32::from_bits(value), width),
        Number::Unorm => fixed(float.clamp(0., 1.) * f64::from(most), 0., f64::from(most)),
        Number::Snorm => fixed(float.clamp(-1., 1.) * high.max(1.), low, high.max(0.)),
        Number::Uscaled => fixed(libm::trunc(float), 0., f64::from(most)),
        Number::Sscaled => fixed(libm::trunc(float), low, high),
        Number::Srgb => fixed(to_srgb(float.clamp(0., 1.)) * f64::from(most), 0., f64::from(most)),
    }
}

/// The nearest whole number, an even one where two are as near: of what is below 2^51.
///
/// A sum with 1.5 * 2^52 has no bits for a fraction.
fn nearest(value: f64) -> f64 {
    const WHOLE: f64 = 6_755_399_441_055_744.;
    value + WHOLE - WHOLE
}

/// A float of fewer bits as a single; 11 and 10 bits have no sign, five of exponent and the rest of fraction, as a half.
fn float_to_single(raw: u32, width: u8) -> u32 {
    let half = match width {
        32 => return raw,
        16 => raw,
        11 => raw << 4,
        _ => raw << 5,
    };
    f16::from_bits(half as u16).to_f32().to_bits()
}

/// A single as a float of fewer bits, rounded to nearest even; without a sign, negative numbers become 0.
fn single_to_float(value: f32, width: u8) -> u32 {
    match width {
        32 => value.to_bits(),
        16 => f16::from_f32(value).to_bits().into(),
        _ if value.is_nan() => (1 << width) - 1,
        _ if value <= 0. => 0,
        _ => {
            // Numbers below 2^-14 have no leading one. A carry goes to the exponent as it should, up to infinity.
            let fraction = i32::from(width) - 5;
            let exponent = libm::ilogb(value.min(f32::MAX).into()).max(-14);
            let units = libm::rint(libm::scalbn(value.into(), fraction - exponent)) as u32;
            (units.saturating_add(((exponent + 14) as u32) << fraction)).min(31 << fraction)
        }
    }
}

/// A linear fraction of an sRGB one. (OpenGL 3.0, 3.9.15)
pub fn from_srgb(value: f64) -> f32 {
    let linear = if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) };
    linear as f32
}

/// An sRGB fraction of a linear one. (OpenGL 3.0, 4.1.8)
fn to_srgb(value: f64) -> f64 {
    if value < 0.0031308 { value * 12.92 } else { 1.055 * libm::pow(value, 1. / 2.4) - 0.055 }
}

/// The three components of an element with nine bits of each and a shared exponent.
pub fn shared_exponent(raw: u32) -> [u32; 4] {
    let scale = libm::exp2(f64::from(raw >> 27) - 15. - 9.);
    let part = |at: u32| ((f64::from(raw >> at & 0x1ff) * scale) as f32).to_bits();
    [part(0), part(9), part(18), 1f32.to_bits()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Number; 7] = [
        Number::Unorm,
        Number::Snorm,
        Number::Uscaled,
        Number::Sscaled,
        Number::Uint,
        Number::Sint,
        Number::Srgb,
    ];

    #[test]
    fn every_code_of_every_component_is_written_as_it_was_read() {
        for number in ALL {
            for width in [1u8, 2, 4, 5, 6, 8, 10, 16] {
                for raw in 0..1u32 << width {
                    let value = to_value(raw, width, number);
                    let least = number == Number::Snorm && width > 1 && raw == 1 << (width - 1);
                    // The lowest code of a signed fraction is -1 as well.
                    let expected = if least { raw + 1 } else { raw };
                    assert_eq!(from_value(value, width, number), expected, "{number:?} {width} {raw:#x}");
                }
            }
        }
    }

    #[test]
    fn the_nearest_whole_number_is_that_of_rint() {
        for value in [0., 0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 4_294_967_294.5, -2_147_483_648.5, 0.499_999_999]
        {
            assert_eq!(nearest(value), libm::rint(value), "{value}");
        }
    }

    #[test]
    fn four_bytes_at_once_are_what_each_is_by_itself() {
        let odd = [f32::NAN, f32::INFINITY, -0., -1., 1.5, 0.5 / 255., 1.5 / 255., f32::MIN_POSITIVE];
        let fractions = (0..2_000).map(|number| number as f32 / 1_900.);
        for value in odd.into_iter().chain(fractions).map(f32::to_bits) {
            let one = from_value(value, 8, Number::Unorm);
            assert_eq!(bytes_of([value; 4]), one * 0x0101_0101, "{value:#x}");
        }
    }

    #[test]
    fn every_small_float_is_written_as_it_was_read() {
        for width in [10u8, 11, 16] {
            for raw in 0..1u32 << width {
                let value = f32::from_bits(to_value(raw, width, Number::Float));
                if !value.is_nan() {
                    assert_eq!(single_to_float(value, width), raw, "{width} {raw:#x}");
                }
            }
        }
    }

    #[test]
    fn small_floats_round_once_to_the_nearest() {
        let mut random = 0x2545_f491u32;
        for _ in 0..200_000 {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            let value = f32::from_bits(0x3700_0000 + random % 0x1000_0000);
            for width in [10u8, 11] {
                let found = single_to_float(value, width);
                let distance = |code: u32| (f32::from_bits(float_to_single(code, width)) - value).abs();
                if found < 31 << (width - 5) {
                    assert!(distance(found) <= distance(found + 1), "{value} {width}");
                    assert!(found == 0 || distance(found) <= distance(found - 1), "{value} {width}");
                }
            }
        }
    }

    #[test]
    #[allow(clippy::unusual_byte_groupings)]
    fn components_lie_from_the_low_bits_upward() {
        let format = Format::new([5, 6, 5, 0], Number::Uint);
        assert_eq!(format.read(&0b10000_000010_00001u16.to_le_bytes()), [1, 2, 16, 0]);
        let (bits, mask) = format.write([1, 2, 16, 0], 0b101);
        assert_eq!((bits, mask), (0b10000_000010_00001, 0b11111_000000_11111));
    }

    #[test]
    fn the_alpha_of_an_srgb_format_is_linear() {
        let format = Format::new([8; 4], Number::Srgb);
        let texel = format.read(&[188, 188, 188, 128]).map(f32::from_bits);
        assert!((texel[0] - 0.5029).abs() < 0.001 && (texel[3] - 128. / 255.).abs() < 1e-6, "{texel:?}");
    }

    #[test]
    fn what_does_not_fit_becomes_the_nearest_that_does() {
        let write = |number, value: f32| from_value(value.to_bits(), 8, number);
        assert_eq!(
            [write(Number::Unorm, 2.), write(Number::Unorm, -1.), write(Number::Unorm, f32::NAN)],
            [255, 0, 0]
        );
        assert_eq!([write(Number::Snorm, 2.), write(Number::Snorm, -2.)], [127, 129]);
        assert_eq!(from_value(300, 8, Number::Uint), 255);
        assert_eq!(from_value(-300i32 as u32, 8, Number::Sint), 0x80);
    }
}
