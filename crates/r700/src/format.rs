//! Memory formats of fetches: the positions of the components, and the conversion of components to numbers.
//!
//! Source: the DATA_FORMAT table of the manual (MAN chapter 8, VTX_DWORD1). The order of packed components is the order
//! in Mesa and DECAF. The name of a format lists the most significant field first. For example, `FMT_5_6_5` has x in
//! bits 4:0. If every component consists of whole bytes, the components are in memory order.

use half::f16;

/// Encoding of the bits of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An integer. NUM_FORMAT selects its conversion to a number.
    Integer,
    /// A float of 32, 16, 11 or 10 bits. Floats of 11 and 10 bits have no sign.
    Float,
    /// The first component is a float, and the second component is an integer (`X24_8_32_FLOAT`).
    FloatThenInteger,
    /// The components are three mantissas with a shared exponent (`5_9_9_9_SHAREDEXP`).
    SharedExponent,
}

/// Layout of the components of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The widths of the components in bits. If the format does not have a component, the width of the component is 0.
    /// Component x starts at the least significant bit. Each later component starts directly above the previous
    /// component.
    bits: [u8; 4],
    kind: Kind,
    /// Size of an element in bytes.
    pub bytes: u32,
}

impl Layout {
    /// Returns the first bit of a component, the number of bits of the component, and whether the component is a float.
    /// If the format does not have the component, the number of bits is 0. If the component shares its exponent with
    /// other components, the function returns `None`.
    pub(crate) fn part(self, component: usize) -> Option<(u32, u8, bool)> {
        let float = match self.kind {
            Kind::Float => true,
            Kind::FloatThenInteger => component == 0,
            Kind::Integer => false,
            Kind::SharedExponent => return None,
        };
        let first = self.bits[..component].iter().map(|width| u32::from(*width)).sum();
        Some((first, self.bits[component], float))
    }

    /// Returns the value of a component that the format does not have.
    pub(crate) fn fill(self, component: usize, number: Number) -> u32 {
        match component {
            0..3 => 0,
            _ if self.kind == Kind::Float => crate::lane::ONE,
            _ => number.one(),
        }
    }

    /// `bits` is a mask of the bits of an element. Returns, for each component, whether all bits of the component are
    /// set in `bits`.
    pub(crate) fn whole(self, bits: u128) -> [bool; 4] {
        if self.kind == Kind::SharedExponent {
            return [bits as u32 == u32::MAX; 4];
        }
        let mut first = 0;
        self.bits.map(|width| {
            let mask = (1u128 << width) - 1;
            let is_whole = bits >> first & mask == mask;
            first += u32::from(width);
            is_whole
        })
    }
}

/// Conversion of an integer component to a number. NUM_FORMAT_ALL, FORMAT_COMP_ALL and SRF_MODE_ALL select the
/// conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A fraction in [0, 1].
    UnsignedNorm,
    /// A fraction in [-1, 1]. If `no_zero` is set, the fractions are spaced evenly and none is zero.
    SignedNorm {
        /// SRF_MODE_ALL.
        no_zero: bool,
    },
    /// The integer, extended with zeros.
    UnsignedInt,
    /// The integer, extended with its sign.
    SignedInt,
    /// The unsigned integer as a float.
    UnsignedScaled,
    /// The signed integer as a float.
    SignedScaled,
}

impl Number {
    /// All conversions.
    pub const ALL: [Number; 7] = [
        Number::UnsignedNorm,
        Number::SignedNorm { no_zero: false },
        Number::SignedNorm { no_zero: true },
        Number::UnsignedInt,
        Number::SignedInt,
        Number::UnsignedScaled,
        Number::SignedScaled,
    ];

    /// Returns the value 1 in the number type of this conversion. A component has this value in two cases: the format
    /// does not have the component, or DST_SEL selects the constant 1.
    pub fn one(self) -> u32 {
        match self {
            Number::UnsignedInt | Number::SignedInt => 1,
            Number::UnsignedNorm
            | Number::SignedNorm { .. }
            | Number::UnsignedScaled
            | Number::SignedScaled => crate::lane::ONE,
        }
    }
}

/// ENDIAN_SWAP: the order of bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// Little endian, without a swap.
    None,
    /// Swaps the two bytes of every 16 bits.
    In16,
    /// Reverses the bytes of every 32 bits.
    In32,
    /// Reverses the bytes of every 64 bits (Mesa's interpretation of code 3).
    In64,
}

/// Returns the layout of DATA_FORMAT `number`. Returns `None` if a buffer fetch cannot convert the format. Buffer
/// fetches cannot convert block-compressed and packed-chroma formats, 24-bit floats, and reserved numbers.
pub fn layout(number: u32) -> Option<Layout> {
    use Kind::{Float, Integer};
    let (bits, kind): ([u8; 4], Kind) = match number {
        1 => ([8, 0, 0, 0], Integer),
        2 => ([4, 4, 0, 0], Integer),
        3 => ([2, 3, 3, 0], Integer),
        5 => ([16, 0, 0, 0], Integer),
        6 => ([16, 0, 0, 0], Float),
        7 => ([8, 8, 0, 0], Integer),
        8 => ([5, 6, 5, 0], Integer),
        9 => ([5, 5, 6, 0], Integer),
        10 => ([5, 5, 5, 1], Integer),
        11 => ([4, 4, 4, 4], Integer),
        12 => ([1, 5, 5, 5], Integer),
        13 => ([32, 0, 0, 0], Integer),
        14 => ([32, 0, 0, 0], Float),
        15 => ([16, 16, 0, 0], Integer),
        16 => ([16, 16, 0, 0], Float),
        17 => ([24, 8, 0, 0], Integer),
        19 => ([8, 24, 0, 0], Integer),
        21 => ([11, 11, 10, 0], Integer),
        22 => ([11, 11, 10, 0], Float),
        23 => ([10, 11, 11, 0], Integer),
        24 => ([10, 11, 11, 0], Float),
        25 => ([10, 10, 10, 2], Integer),
        26 => ([8, 8, 8, 8], Integer),
        27 => ([2, 10, 10, 10], Integer),
        28 => ([32, 8, 0, 0], Kind::FloatThenInteger),
        29 => ([32, 32, 0, 0], Integer),
        30 => ([32, 32, 0, 0], Float),
        31 => ([16, 16, 16, 16], Integer),
        32 => ([16, 16, 16, 16], Float),
        34 => ([32, 32, 32, 32], Integer),
        35 => ([32, 32, 32, 32], Float),
        43 => ([9, 9, 9, 0], Kind::SharedExponent),
        44 => ([8, 8, 8, 0], Integer),
        45 => ([16, 16, 16, 0], Integer),
        46 => ([16, 16, 16, 0], Float),
        47 => ([32, 32, 32, 0], Integer),
        48 => ([32, 32, 32, 0], Float),
        _ => return None,
    };
    let bytes = match kind {
        Kind::FloatThenInteger => 8,
        Kind::SharedExponent => 4,
        Integer | Float => bits.iter().map(|width| u32::from(*width)).sum::<u32>() / 8,
    };
    Some(Layout { bits, kind, bytes })
}

/// Reverses the bytes of each unit as ENDIAN_SWAP specifies. If the last bytes do not fill a unit, these bytes do not
/// change.
pub fn swap(bytes: &mut [u8], swap: Swap) {
    let unit = match swap {
        Swap::None => return,
        Swap::In16 => 2,
        Swap::In32 => 4,
        Swap::In64 => 8,
    };
    for piece in bytes.chunks_exact_mut(unit) {
        piece.reverse();
    }
}

/// Returns the four components of an element.
///
/// `bytes` holds at least `layout.bytes` bytes, in little-endian order. If the format does not have w, w is 1. If the
/// format does not have x, y or z, the missing component is 0. No source documents these values.
pub fn convert(layout: Layout, number: Number, bytes: &[u8]) -> [u32; 4] {
    let mut element = [0u8; 16];
    let length = layout.bytes as usize;
    element[..length].copy_from_slice(&bytes[..length]);
    let all = u128::from_le_bytes(element);
    if layout.kind == Kind::SharedExponent {
        return shared_exponent(all as u32, number);
    }
    let mut values = [0, 0, 0, number.one()];
    let mut at = 0;
    for (component, (value, &width)) in values.iter_mut().zip(&layout.bits).enumerate() {
        if width == 0 {
            continue;
        }
        let raw = (all >> at) as u32 & (u32::MAX >> (32 - width));
        at += u32::from(width);
        let float = match layout.kind {
            Kind::Float => true,
            Kind::FloatThenInteger => component == 0,
            Kind::Integer | Kind::SharedExponent => false,
        };
        *value = if float { float_bits(raw, width) } else { integer(raw, width, number) };
    }
    if layout.kind == Kind::Float && layout.bits[3] == 0 {
        values[3] = crate::lane::ONE;
    }
    values
}

/// Returns whether elements of `bytes` bytes consist of whole swap units. If an element does not consist of whole
/// units, [`swap`] leaves the bytes at the end unchanged.
pub(crate) fn swaps_all(bytes: u32, swap: Swap) -> bool {
    match swap {
        Swap::None => true,
        Swap::In16 => bytes.is_multiple_of(2),
        Swap::In32 => bytes.is_multiple_of(4),
        Swap::In64 => bytes.is_multiple_of(8),
    }
}

/// Applies [`swap`] to rows of lanes. Row n contains word n of each lane's element. The result is correct only if
/// [`swaps_all`] returns `true` for the elements.
#[inline(always)]
pub(crate) fn swap_rows<const N: usize>(words: &mut [[u32; N]; 4], swap: Swap) {
    match swap {
        Swap::None => return,
        Swap::In16 => {
            for word in words.as_flattened_mut() {
                *word = *word >> 8 & 0x00ff_00ff | (*word & 0x00ff_00ff) << 8;
            }
            return;
        }
        Swap::In32 => {}
        Swap::In64 => {
            words.swap(0, 1);
            words.swap(2, 3);
        }
    }
    for word in words.as_flattened_mut() {
        *word = word.swap_bytes();
    }
}

/// Applies [`convert`] to rows of lanes. Row n of the words contains word n of each lane's element. Row n of the values
/// contains component n. The function writes only the components in `wanted`.
#[inline(always)]
pub(crate) fn convert_rows<const N: usize>(
    layout: Layout,
    number: Number,
    words: &[[u32; N]; 4],
    wanted: [bool; 4],
    values: &mut [[u32; N]; 4],
) {
    if layout.kind == Kind::SharedExponent {
        for lane in 0..N {
            let element = shared_exponent(words[0][lane], number);
            (0..4).for_each(|component| values[component][lane] = element[component]);
        }
        return;
    }
    let mut at = 0;
    for component in 0..4 {
        let width = layout.bits[component];
        let (word, shift) = (at / 32 % 4, at % 32);
        at += usize::from(width);
        if !wanted[component] {
            continue;
        }
        let (row, values) = (&words[word], &mut values[component]);
        if width == 0 {
            *values = [layout.fill(component, number); N];
            continue;
        }
        let float = match layout.kind {
            Kind::Float => true,
            Kind::FloatThenInteger => component == 0,
            Kind::Integer | Kind::SharedExponent => false,
        };
        let mask = u32::MAX >> (32 - width);
        // Each kind of number has its own loop. So no loop contains a branch on the kind.
        macro_rules! each {
            ($raw:ident => $value:expr) => {
                for lane in 0..N {
                    let $raw = row[lane] >> shift & mask;
                    values[lane] = $value;
                }
            };
        }
        match number {
            _ if float && width == 32 => *values = *row,
            _ if float => each!(raw => float_bits(raw, width)),
            Number::UnsignedInt => each!(raw => raw),
            Number::SignedInt => each!(raw => integer(raw, width, Number::SignedInt)),
            Number::UnsignedNorm => each!(raw => integer(raw, width, Number::UnsignedNorm)),
            Number::SignedNorm { no_zero: true } => {
                each!(raw => integer(raw, width, Number::SignedNorm { no_zero: true }));
            }
            Number::SignedNorm { no_zero: false } => {
                each!(raw => integer(raw, width, Number::SignedNorm { no_zero: false }));
            }
            Number::UnsignedScaled => each!(raw => integer(raw, width, Number::UnsignedScaled)),
            Number::SignedScaled => each!(raw => integer(raw, width, Number::SignedScaled)),
        }
    }
}

/// Converts a float of `width` bits to a binary32. A float of 32 bits is returned unchanged.
#[inline(always)]
fn float_bits(raw: u32, width: u8) -> u32 {
    match width {
        32 => raw,
        16 => f16::from_bits(raw as u16).to_f32().to_bits(),
        // These floats have no sign. Their exponent has five bits, as in binary16. Their mantissa has six or five bits.
        11 => f16::from_bits((raw << 4) as u16).to_f32().to_bits(),
        _ => f16::from_bits((raw << 5) as u16).to_f32().to_bits(),
    }
}

#[inline(always)]
fn integer(raw: u32, width: u8, number: Number) -> u32 {
    let signed = (raw << (32 - width)) as i32 >> (32 - width);
    let codes = f64::from(u32::MAX >> (32 - width));
    let value = match number {
        Number::UnsignedInt => return raw,
        Number::SignedInt => return signed as u32,
        Number::UnsignedNorm => f64::from(raw) / codes,
        Number::SignedNorm { no_zero: true } => (2.0 * f64::from(signed) + 1.0) / codes,
        // A one-bit signed component has the codes 0 and -1.
        Number::SignedNorm { no_zero: false } => {
            (f64::from(signed) / f64::from((u32::MAX >> (32 - width)) >> 1).max(1.0)).max(-1.0)
        }
        Number::UnsignedScaled => f64::from(raw),
        Number::SignedScaled => f64::from(signed),
    };
    (value as f32).to_bits()
}

fn shared_exponent(raw: u32, number: Number) -> [u32; 4] {
    let scale = libm::exp2(f64::from(raw >> 27) - 15.0 - 9.0);
    let part = |at: u32| ((f64::from(raw >> at & 0x1ff) * scale) as f32).to_bits();
    let one = match number {
        Number::UnsignedInt | Number::SignedInt => crate::lane::ONE,
        other => other.one(),
    };
    [part(0), part(9), part(18), one]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(number: u32, how: Number, bytes: &[u8]) -> [f32; 4] {
        convert(layout(number).unwrap(), how, bytes).map(f32::from_bits)
    }

    #[test]
    fn rows_convert_and_swap_as_single_elements_do() {
        let mut random = reconverge_simt::random::Random::new(0x00f0_0d00);
        let mut compared = 0;
        for (format, how) in (0..64).flat_map(|format| Number::ALL.map(|how| (format, how))) {
            let Some(layout) = layout(format) else { continue };
            for order in [Swap::None, Swap::In16, Swap::In32, Swap::In64] {
                if !swaps_all(layout.bytes, order) {
                    continue;
                }
                let mut word = || match random.below(4) {
                    0 => random.one_of(&[0, u32::MAX, 0x8000_8000, 0x7fff_7fff, 0x7c00_fc01, 0x8080_8080]),
                    _ => random.next(),
                };
                let words: [[u32; 16]; 4] = std::array::from_fn(|_| std::array::from_fn(|_| word()));
                let mut swapped = words;
                swap_rows(&mut swapped, order);
                let mut values = [[0x0bad_0bad; 16]; 4];
                let wanted = [true, true, format & 1 == 0, true];
                convert_rows(layout, how, &swapped, wanted, &mut values);
                for lane in 0..16 {
                    let element = words.map(|row| row[lane].to_le_bytes());
                    let bytes = &mut element.as_flattened().to_vec()[..layout.bytes as usize];
                    swap(bytes, order);
                    let expected = convert(layout, how, bytes);
                    for component in (0..4).filter(|component| wanted[*component]) {
                        let found = values[component][lane];
                        assert_eq!(found, expected[component], "{format} {how:?} {order:?} {component}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 30_000, "{compared}");
    }

    #[test]
    fn packed_formats_have_x_in_the_low_bits() {
        let bytes = 0b1000_0000_0100_0001u16.to_le_bytes();
        assert_eq!(floats(8, Number::UnsignedScaled, &bytes), [1.0, 2.0, 16.0, 1.0]);
    }

    #[test]
    fn byte_formats_lie_in_memory_order() {
        assert_eq!(floats(26, Number::UnsignedScaled, &[1, 2, 3, 4]), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn norms_reach_their_ends() {
        assert_eq!(floats(26, Number::UnsignedNorm, &[0, 255, 51, 255]), [0.0, 1.0, 0.2, 1.0]);
        let signed = floats(26, Number::SignedNorm { no_zero: false }, &[0x80, 0x81, 0x7f, 0]);
        assert_eq!(signed, [-1.0, -1.0, 1.0, 0.0]);
        let even = floats(26, Number::SignedNorm { no_zero: true }, &[0x80, 0x7f, 0, 0]);
        assert_eq!(even[..2], [-1.0, 1.0]);
    }

    #[test]
    fn small_floats_become_singles() {
        assert_eq!(floats(6, Number::UnsignedNorm, &0x3c00u16.to_le_bytes())[0], 1.0);
        // Each of the three components is 1.0. The components have eleven, eleven and ten bits.
        let word: u32 = 15 << 6 | 15 << 17 | 15 << 27;
        assert_eq!(floats(22, Number::UnsignedNorm, &word.to_le_bytes()), [1.0; 4]);
    }

    #[test]
    fn integers_are_extended() {
        let bytes = [0xff, 0x7f, 0, 0];
        assert_eq!(convert(layout(26).unwrap(), Number::SignedInt, &bytes), [u32::MAX, 0x7f, 0, 0]);
        assert_eq!(convert(layout(7).unwrap(), Number::UnsignedInt, &bytes), [0xff, 0x7f, 0, 1]);
    }

    #[test]
    fn bytes_swap_in_their_unit() {
        let swapped = |how| {
            let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
            swap(&mut bytes, how);
            bytes
        };
        assert_eq!(swapped(Swap::In16), [2, 1, 4, 3, 6, 5, 8, 7]);
        assert_eq!(swapped(Swap::In32), [4, 3, 2, 1, 8, 7, 6, 5]);
        assert_eq!(swapped(Swap::In64), [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
