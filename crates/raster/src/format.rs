//! Formats of surfaces: bit widths and number types of an element's components.
//!
//! Sources: OpenGL 3.0, 2.1.2 (fixed-point conversions), 3.8.1 and 4.1.8 (sRGB), EXT_packed_float,
//! EXT_texture_shared_exponent. Fixed-point numbers are rounded to nearest, ties to even. The documents of the chips do
//! not specify this rounding.

use std::sync::LazyLock;

/// Interpretation of a component's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A fraction in [0, 1].
    Unorm,
    /// A fraction in [-1, 1].
    Snorm,
    /// An unsigned integer that is converted to a float.
    Uscaled,
    /// A signed integer that is converted to a float.
    Sscaled,
    /// An unsigned integer.
    Uint,
    /// A signed integer.
    Sint,
    /// A fraction in [0, 1] on the sRGB curve. The fourth component is linear.
    Srgb,
    /// A float of 32, 16, 11 or 10 bits. Floats of 11 and 10 bits do not have a sign.
    Float,
}

impl Number {
    /// Returns whether shaders read the number as an integer. Integers are neither blended nor filtered.
    pub fn is_integer(self) -> bool {
        matches!(self, Number::Uint | Number::Sint)
    }

    /// Returns the bits of the value 1 in this number type.
    pub fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }
}

/// The components of an element, up to four, from the least significant bit upward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Widths in bits, or 0 for a component that does not exist.
    pub bits: [u8; 4],
    /// Number type of each component.
    pub numbers: [Number; 4],
    /// Size of an element in bytes.
    pub bytes: u8,
}

impl Format {
    /// Returns a format in which all components have the same number type. The element has the minimum number of bytes.
    pub const fn new(bits: [u8; 4], number: Number) -> Format {
        let total = bits[0] as u32 + bits[1] as u32 + bits[2] as u32 + bits[3] as u32;
        let mut numbers = [number; 4];
        if matches!(number, Number::Srgb) {
            numbers[3] = Number::Unorm;
        }
        Format { bits, numbers, bytes: total.div_ceil(8) as u8 }
    }

    /// Returns the components of an element as bits of floats, or as integers. A component that does not exist is 0.
    /// Bytes after the end of `bytes` read as 0.
    pub fn read(&self, bytes: &[u8]) -> [u32; 4] {
        let mut element = [0; 16];
        let length = bytes.len().min(usize::from(self.bytes));
        element[..length].copy_from_slice(&bytes[..length]);
        let mut values = [0; 4];
        if self.has_words() {
            let words = element.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
            let places = values.iter_mut().zip(self.bits).filter(|(_, width)| *width != 0);
            places.zip(words).for_each(|((value, _), word)| *value = word);
            return values;
        }
        let (all, mut at) = (u128::from_le_bytes(element), 0);
        for (value, (width, number)) in values.iter_mut().zip(self.bits.into_iter().zip(self.numbers)) {
            if width != 0 {
                let raw = (all >> at) as u32 & (u32::MAX >> (32 - width));
                *value = to_value(raw, width, number);
                at += u32::from(width);
            }
        }
        values
    }

    /// Returns whether all components are words that are read unchanged, as in most vertex attributes.
    fn has_words(&self) -> bool {
        let is_word = |(width, number): (u8, Number)| {
            width == 0 || width == 32 && matches!(number, Number::Uint | Number::Sint | Number::Float)
        };
        self.bits.into_iter().zip(self.numbers).all(is_word)
    }

    /// Returns an element that contains these components, and a mask of the bits to write to memory. If bit n of `mask`
    /// is set, component n is written.
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

/// The format of most surfaces.
const RGBA8: Format = Format::new([8; 4], Number::Unorm);

/// Returns the result of [`Format::write`] for [`RGBA8`]. Converts all components at once.
fn bytes_of(values: [u32; 4]) -> u32 {
    // `clamp` returns a NaN unchanged. The conversion to an integer then converts the NaN to 0.
    let fraction = |value: u32| f64::from(f32::from_bits(value).clamp(0., 1.));
    let bytes = values.map(|value| nearest(fraction(value) * 255.) as u8);
    u32::from_le_bytes(bytes)
}

/// Converts the `width` bits of a component to the bits of a float, or to an integer of 32 bits.
#[inline(always)]
pub(crate) fn to_value(raw: u32, width: u8, number: Number) -> u32 {
    let signed = (raw << (32 - width)) as i32 >> (32 - width);
    let most = u32::MAX >> (32 - width);
    let value = match number {
        Number::Uint => return raw,
        Number::Sint => return signed as u32,
        Number::Float => return float_to_single(raw, width),
        Number::Unorm => f64::from(raw) / f64::from(most),
        // A signed component of one bit has the codes 0 and -1.
        Number::Snorm => (f64::from(signed) / f64::from(most >> 1).max(1.)).max(-1.),
        Number::Uscaled => f64::from(raw),
        Number::Sscaled => f64::from(signed),
        Number::Srgb => return from_srgb(f64::from(raw) / f64::from(most)).to_bits(),
    };
    (value as f32).to_bits()
}

/// Converts a value to the `width` bits of a component. A value out of range becomes the nearest value that fits, and a
/// NaN becomes 0.
#[inline(always)]
pub(crate) fn from_value(value: u32, width: u8, number: Number) -> u32 {
    let most = u32::MAX >> (32 - width);
    let float = f64::from(f32::from_bits(value));
    let float = if float.is_nan() { 0. } else { float };
    let fixed = |value: f64, low: f64, high: f64| integer(value.clamp(low, high)) & most;
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

/// 1.5 * 2^52. Adding this constant to a double rounds the double to a whole number. The lowest bits of the sum are
/// this whole number.
const WHOLE: f64 = 6_755_399_441_055_744.;

/// Rounds a value below 2^51 to the nearest whole number, ties to even.
fn nearest(value: f64) -> f64 {
    value + WHOLE - WHOLE
}

/// Returns the lowest 32 bits of the result of [`nearest`] as an integer.
#[inline(always)]
fn integer(value: f64) -> u32 {
    (value + WHOLE).to_bits() as u32
}

/// Converts a float of 32, 16, 11 or 10 bits to a single. Floats of 11 and 10 bits do not have a sign. They have a
/// five-bit exponent with the same bias as the exponent of a half, followed by the fraction.
#[inline(always)]
fn float_to_single(raw: u32, width: u8) -> u32 {
    match width {
        32 => raw,
        16 => half_to_single(raw),
        11 => half_to_single(raw << 4),
        _ => half_to_single(raw << 5),
    }
}

/// Converts a half to a single. A NaN becomes a quiet NaN. The code does not branch, so that the compiler can vectorize
/// loops. In a loop, a conversion by the crate `half` takes 2 ns. A conversion by this code takes 0.2 ns (an AMD EPYC,
/// AVX2).
#[inline(always)]
fn half_to_single(raw: u32) -> u32 {
    let magnitude = (raw & 0x7fff) << 13;
    // The exponent bias of a single is 112 more than the exponent bias of a half.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = 0xff << 23 | magnitude | if magnitude > 0x1f << 23 { 1 << 22 } else { 0 };
    let value = if magnitude >= 0x1f << 23 { special } else { scaled };
    (raw & 0x8000) << 16 | value
}

/// Converts a single to a float of 32, 16, 11 or 10 bits, rounded to nearest even. If the result has no sign, negative
/// numbers become 0.
#[inline(always)]
fn single_to_float(value: f32, width: u8) -> u32 {
    let bits = value.to_bits();
    match width {
        32 => bits,
        16 => {
            let magnitude = bits & 0x7fff_ffff;
            let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
            let half = if magnitude > 0xff << 23 { nan } else { rounded(magnitude, 10) };
            bits >> 16 & 0x8000 | half
        }
        _ => {
            let fraction = u32::from(width) - 5;
            let number = if bits >> 31 == 0 { rounded(bits, fraction) } else { 0 };
            if value.is_nan() { (1 << width) - 1 } else { number }
        }
    }
}

/// Converts a non-negative single to a float with five exponent bits and `fraction` fraction bits. Both floats are bit
/// patterns.
#[inline(always)]
fn rounded(bits: u32, fraction: u32) -> u32 {
    // Below 2^-14, the result is denormal. `unit` contains the bits of a power of two. Adding this power of two rounds
    // the number to the precision of a denormal.
    let unit = 0x3f00_0000 + ((10 - fraction) << 23);
    let small = (f32::from_bits(bits) + f32::from_bits(unit)).to_bits().wrapping_sub(unit);
    // Rounding may carry into the exponent, up to infinity.
    let left = 23 - fraction;
    let normal = bits.wrapping_add((1 << (left - 1)) - 1).wrapping_add(bits >> left & 1) >> left;
    let normal = normal.wrapping_sub((127 - 15) << fraction).min(31 << fraction);
    if bits < (127 - 14) << 23 { small } else { normal }
}

/// Tables for sRGB components of eight bits. The tables contain the results of [`to_value`] and [`from_value`].
pub(crate) struct SrgbBytes {
    values: [u32; 256],
    /// For each code, the smallest value that converts to this code or to a larger code. The entry is the value's bit
    /// pattern.
    least: [u32; 257],
    /// For each pattern of a value's upper 16 bits, the code of the smallest value with this pattern. A larger value
    /// with the same pattern has either the same code or the next code.
    first: Vec<u8>,
}

impl SrgbBytes {
    /// Returns the tables.
    pub(crate) fn get() -> &'static SrgbBytes {
        static TABLES: LazyLock<SrgbBytes> = LazyLock::new(SrgbBytes::new);
        &TABLES
    }

    fn new() -> SrgbBytes {
        let values = std::array::from_fn(|code| to_value(code as u32, 8, Number::Srgb));
        let code_of = |bits: u32| from_value(bits, 8, Number::Srgb);
        let one = 1f32.to_bits();
        let mut least = [u32::MAX; 257];
        let (mut low, mut first) = (0, Vec::new());
        for code in 0..256 {
            let (mut high, wanted) = (one, code as u32);
            while low < high {
                let middle = low.midpoint(high);
                if code_of(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            least[code] = low;
        }
        for upper in 0..=one >> 16 {
            first.push(code_of(upper << 16) as u8);
        }
        SrgbBytes { values, least, first }
    }

    /// Returns the value of a code, which is less than 256.
    #[inline(always)]
    pub(crate) fn value(&self, code: u32) -> u32 {
        self.values[(code & 0xff) as usize]
    }

    /// Returns the code of a value.
    #[inline(always)]
    pub(crate) fn code(&self, value: u32) -> u32 {
        let value = f32::from_bits(value);
        let value = if value > 0. { value } else { 0. };
        let bits = if value < 1. { value } else { 1. }.to_bits();
        let first = self.first[(bits >> 16) as usize];
        u32::from(first) + u32::from(bits >= self.least[usize::from(first) + 1])
    }
}

/// Converts an sRGB fraction to a linear fraction. (OpenGL 3.0, 3.9.15)
pub fn from_srgb(value: f64) -> f32 {
    let linear = if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) };
    linear as f32
}

/// Converts a linear fraction to an sRGB fraction. (OpenGL 3.0, 4.1.8)
fn to_srgb(value: f64) -> f64 {
    if value < 0.0031308 { value * 12.92 } else { 1.055 * libm::pow(value, 1. / 2.4) - 0.055 }
}

/// Converts an element with a shared exponent and three components of nine bits.
pub fn shared_exponent(raw: u32) -> [u32; 4] {
    let scale = libm::exp2(f64::from(raw >> 27) - 15. - 9.);
    let part = |at: u32| ((f64::from(raw >> at & 0x1ff) * scale) as f32).to_bits();
    [part(0), part(9), part(18), 1f32.to_bits()]
}

#[cfg(test)]
mod tests {
    use half::f16;

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
                    // The two lowest codes of a signed fraction both mean -1. A write of -1 uses the higher of these
                    // two codes.
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
    fn srgb_by_tables_is_srgb_by_formulas() {
        let tables = SrgbBytes::get();
        for code in 0..256 {
            assert_eq!(tables.value(code), to_value(code, 8, Number::Srgb));
        }
        let near = tables.least[..256].iter().flat_map(|least| least.saturating_sub(2)..least + 2);
        let all = (0..=0x3f80_0000).step_by(10_007);
        let odd = [f32::NAN, f32::INFINITY, -0., -1., 1.5, f32::MIN_POSITIVE].map(f32::to_bits);
        for value in near.chain(all).chain(odd) {
            assert_eq!(tables.code(value), from_value(value, 8, Number::Srgb), "{value:#x}");
        }
        let codes = tables.first.windows(2);
        assert!(codes.into_iter().all(|pair| pair[1] - pair[0] <= 1));
    }

    /// Compares the conversions with the conversions of the crate half.
    #[test]
    fn halves_are_those_of_a_library() {
        for raw in 0..=u16::MAX {
            assert_eq!(half_to_single(raw.into()), f16::from_bits(raw).to_f32().to_bits(), "{raw:#x}");
        }
        // Singles near every half-precision number, and other singles.
        let near = (0..=u16::MAX).flat_map(|raw| {
            let single = f16::from_bits(raw).to_f32().to_bits();
            [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff].map(|more| single.wrapping_add(more))
        });
        for bits in near.chain((0..u32::MAX).step_by(9_973)) {
            let value = f32::from_bits(bits);
            assert_eq!(single_to_float(value, 16), f16::from_f32(value).to_bits().into(), "{bits:#x}");
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
