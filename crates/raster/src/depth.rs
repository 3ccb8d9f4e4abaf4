//! Depth and stencil tests.
//!
//! Source: OpenGL 3.0, 4.1.5 and 4.1.6. The depth test compares depths in their stored form.

/// Comparison of a value with a stored value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Compare {
    Never,
    Less,
    Equal,
    LessEqual,
    Greater,
    NotEqual,
    GreaterEqual,
    #[default]
    Always,
}

impl Compare {
    /// All comparisons, in the order in which the three chips number the comparisons.
    pub const ALL: [Compare; 8] = [
        Compare::Never,
        Compare::Less,
        Compare::Equal,
        Compare::LessEqual,
        Compare::Greater,
        Compare::NotEqual,
        Compare::GreaterEqual,
        Compare::Always,
    ];

    /// Returns whether the comparison of `value` with `stored` is true. If one of the two values is a NaN, only the
    /// comparisons "not equal" and "always" are true.
    pub fn passes<T: PartialOrd>(self, value: T, stored: T) -> bool {
        match self {
            Compare::Never => false,
            Compare::Less => value < stored,
            Compare::Equal => value == stored,
            Compare::LessEqual => value <= stored,
            Compare::Greater => value > stored,
            Compare::NotEqual => value != stored,
            Compare::GreaterEqual => value >= stored,
            Compare::Always => true,
        }
    }
}

/// Operation on a stored stencil value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StencilOp {
    #[default]
    Keep,
    Zero,
    Replace,
    IncrementClamp,
    DecrementClamp,
    Invert,
    IncrementWrap,
    DecrementWrap,
}

impl StencilOp {
    /// Returns the result of the operation for a stored value.
    #[inline(always)]
    pub fn apply(self, stored: u8, reference: u8) -> u8 {
        match self {
            StencilOp::Keep => stored,
            StencilOp::Zero => 0,
            StencilOp::Replace => reference,
            StencilOp::IncrementClamp => stored.saturating_add(1),
            StencilOp::DecrementClamp => stored.saturating_sub(1),
            StencilOp::Invert => !stored,
            StencilOp::IncrementWrap => stored.wrapping_add(1),
            StencilOp::DecrementWrap => stored.wrapping_sub(1),
        }
    }
}

/// The stencil test for one side of polygons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stencil {
    /// Comparison of the reference with the stored value. Both values are masked before the comparison.
    pub compare: Compare,
    /// The reference value.
    pub reference: u8,
    /// Mask of the bits that are compared.
    pub mask: u8,
    /// Mask of the bits that are written.
    pub write_mask: u8,
    /// Operation if the stencil test fails.
    pub fail: StencilOp,
    /// Operation if the depth test fails.
    pub depth_fail: StencilOp,
    /// Operation if the stencil and depth tests pass.
    pub pass: StencilOp,
}

/// Storage format of depth and stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthFormat {
    /// A depth of 16 bits, as a fraction.
    Unorm16,
    /// A 24-bit depth in the lower bits, stored as a fraction, and 8 bits of stencil.
    Unorm24,
    /// 8 bits of stencil in the lower bits, and a 24-bit depth, stored as a fraction.
    StencilUnorm24,
    /// A depth in single precision.
    Float32,
    /// A depth in single precision, followed by a byte of stencil. The whole element has 8 bytes.
    Float32Stencil,
}

impl DepthFormat {
    /// Returns the size of an element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            DepthFormat::Unorm16 => 2,
            DepthFormat::Unorm24 | DepthFormat::StencilUnorm24 | DepthFormat::Float32 => 4,
            DepthFormat::Float32Stencil => 8,
        }
    }

    /// Returns whether the format has stencil.
    pub const fn has_stencil(self) -> bool {
        matches!(self, DepthFormat::Unorm24 | DepthFormat::StencilUnorm24 | DepthFormat::Float32Stencil)
    }

    /// Returns a depth in its stored form. The form is the integer code of a fraction, or the bits of a single.
    pub fn code(self, depth: f32) -> u32 {
        let fraction = |most: u32| {
            let depth = if depth.is_nan() { 0. } else { f64::from(depth).clamp(0., 1.) };
            libm::rint(depth * f64::from(most)) as u32
        };
        match self {
            DepthFormat::Unorm16 => fraction(0xffff),
            DepthFormat::Unorm24 | DepthFormat::StencilUnorm24 => fraction(0xff_ffff),
            DepthFormat::Float32 | DepthFormat::Float32Stencil => depth.to_bits(),
        }
    }

    /// Returns the stored depth and stencil of an element.
    pub fn read(self, bytes: &[u8]) -> (u32, u8) {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        match self {
            DepthFormat::Unorm16 => (u16::from_le_bytes([bytes[0], bytes[1]]).into(), 0),
            DepthFormat::Unorm24 => (word(0) & 0xff_ffff, bytes[3]),
            DepthFormat::StencilUnorm24 => (word(0) >> 8, bytes[0]),
            DepthFormat::Float32 => (word(0), 0),
            DepthFormat::Float32Stencil => (word(0), bytes[4]),
        }
    }

    /// Stores depth and stencil.
    pub fn write(self, bytes: &mut [u8], depth: u32, stencil: u8) {
        match self {
            DepthFormat::Unorm16 => bytes[..2].copy_from_slice(&(depth as u16).to_le_bytes()),
            DepthFormat::Unorm24 => {
                let word = depth & 0xff_ffff | u32::from(stencil) << 24;
                bytes[..4].copy_from_slice(&word.to_le_bytes());
            }
            DepthFormat::StencilUnorm24 => {
                let word = depth << 8 | u32::from(stencil);
                bytes[..4].copy_from_slice(&word.to_le_bytes());
            }
            DepthFormat::Float32 => bytes[..4].copy_from_slice(&depth.to_le_bytes()),
            DepthFormat::Float32Stencil => {
                bytes[..4].copy_from_slice(&depth.to_le_bytes());
                bytes[4] = stencil;
            }
        }
    }

    /// Returns whether the stored depth of an element is in the range from `least` to `most`, inclusive.
    pub(crate) fn is_within(self, bytes: &[u8], [least, most]: [f32; 2]) -> bool {
        let (stored, _) = self.read(bytes);
        self.compare(Compare::LessEqual, self.code(least), stored)
            && self.compare(Compare::GreaterEqual, self.code(most), stored)
    }

    /// Compares stored depths.
    pub fn compare(self, compare: Compare, depth: u32, stored: u32) -> bool {
        match self {
            DepthFormat::Unorm16 | DepthFormat::Unorm24 | DepthFormat::StencilUnorm24 => {
                compare.passes(depth, stored)
            }
            DepthFormat::Float32 | DepthFormat::Float32Stencil => {
                compare.passes(f32::from_bits(depth), f32::from_bits(stored))
            }
        }
    }
}

/// The depth and stencil tests of a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// The depth test, or `None` if the draw has no depth test.
    pub depth: Option<Compare>,
    /// Whether depth is written if all tests pass. Without a depth test, depth is not written.
    pub depth_write: bool,
    /// The stencil tests of the front side and the back side. If the stencil test is off, the field is `None`.
    pub stencil: Option<[Stencil; 2]>,
}

impl Tests {
    /// Tests a fragment against an element of the depth buffer, and updates the element. Returns whether the fragment
    /// passes.
    pub fn run(
        &self,
        format: DepthFormat,
        element: &mut [u8],
        depth: f32,
        front: bool,
        reference: Option<u8>,
    ) -> bool {
        let (stored_depth, stored_stencil) = format.read(element);
        let code = format.code(depth);
        let depth_passes = self.depth.is_none_or(|compare| format.compare(compare, code, stored_depth));
        let (mut passes, mut stencil) = (depth_passes, stored_stencil);
        if let Some(sides) = self.stencil.filter(|_| format.has_stencil()) {
            let side = sides[usize::from(!front)];
            let reference = reference.unwrap_or(side.reference);
            let holds = side.compare.passes(reference & side.mask, stored_stencil & side.mask);
            let op = match (holds, depth_passes) {
                (false, _) => side.fail,
                (true, false) => side.depth_fail,
                (true, true) => side.pass,
            };
            let written = op.apply(stored_stencil, reference);
            stencil = stored_stencil & !side.write_mask | written & side.write_mask;
            passes &= holds;
        }
        let new_depth = if passes && self.depth.is_some() && self.depth_write { code } else { stored_depth };
        if (new_depth, stencil) != (stored_depth, stored_stencil) {
            format.write(element, new_depth, stencil);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_passes_and_is_written() {
        let tests = Tests { depth: Some(Compare::Less), depth_write: true, stencil: None };
        let mut element = [0; 4];
        DepthFormat::Unorm24.write(&mut element, 0x80_0000, 7);
        assert!(!tests.run(DepthFormat::Unorm24, &mut element, 0.75, true, None));
        assert!(tests.run(DepthFormat::Unorm24, &mut element, 0.25, true, None));
        assert_eq!(DepthFormat::Unorm24.read(&element), (0x40_0000, 7));
    }

    /// R500: ZB_FORMAT 2 has the stencil in the lower bits.
    #[test]
    fn stencil_lies_below_or_above_depth() {
        let mut element = [0; 4];
        DepthFormat::StencilUnorm24.write(&mut element, 0x12_3456, 0x78);
        assert_eq!(u32::from_le_bytes(element), 0x1234_5678);
        assert_eq!(DepthFormat::StencilUnorm24.read(&element), (0x12_3456, 0x78));
        assert_eq!(DepthFormat::Unorm24.read(&element), (0x34_5678, 0x12));
    }

    /// OpenGL 3.0, 4.1.5: each outcome of the tests has a separate operation. Stencil bits that are not in the write
    /// mask do not change.
    #[test]
    fn stencil_follows_the_outcome() {
        let side = Stencil {
            compare: Compare::Equal,
            reference: 5,
            mask: 0xf,
            write_mask: 0x0f,
            fail: StencilOp::Zero,
            depth_fail: StencilOp::Invert,
            pass: StencilOp::IncrementWrap,
        };
        let tests = Tests { depth: Some(Compare::Less), depth_write: false, stencil: Some([side; 2]) };
        let run = |stencil, depth| {
            let mut element = [0; 4];
            DepthFormat::Unorm24.write(&mut element, 0x80_0000, stencil);
            let passes = tests.run(DepthFormat::Unorm24, &mut element, depth, true, None);
            (passes, DepthFormat::Unorm24.read(&element).1)
        };
        assert_eq!(run(0xf5, 0.), (true, 0xf6));
        assert_eq!(run(0xf5, 1.), (false, 0xfa));
        assert_eq!(run(0xf4, 0.), (false, 0xf0));
    }

    #[test]
    fn stencil_operations_clamp_and_wrap() {
        assert_eq!(
            [StencilOp::IncrementClamp.apply(255, 0), StencilOp::IncrementWrap.apply(255, 0)],
            [255, 0]
        );
        assert_eq!([StencilOp::DecrementClamp.apply(0, 0), StencilOp::DecrementWrap.apply(0, 0)], [0, 255]);
    }

    #[test]
    fn every_format_gives_back_what_was_stored() {
        for format in
            [DepthFormat::Unorm16, DepthFormat::Unorm24, DepthFormat::Float32, DepthFormat::Float32Stencil]
        {
            let mut element = vec![0; format.bytes()];
            let code = format.code(0.3);
            format.write(&mut element, code, 9);
            assert_eq!(format.read(&element), (code, if format.has_stencil() { 9 } else { 0 }));
        }
    }
}
