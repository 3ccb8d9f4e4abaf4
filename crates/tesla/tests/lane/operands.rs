//! Operands for tests that compare: seeded random numbers, and edge values.

use reconverge_testkit::Random;

/// A generator of operands.
pub(crate) struct Operands(Random);

impl Operands {
    /// Creates a generator from a seed, and prints the seed.
    pub(crate) fn new(seed: u64) -> Operands {
        println!("seed {seed:#x}");
        Operands(Random::new(seed))
    }

    /// Returns 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns one of the given values.
    pub(crate) fn of<T: Copy>(&mut self, values: &[T]) -> T {
        self.0.one_of(values)
    }

    /// Returns an f32: any bits, a special value, or few significant bits so that ties and cancellations occur.
    pub(crate) fn f32(&mut self) -> u32 {
        let bits = self.bits();
        match bits >> 60 {
            0..=2 => self.of(&F32) ^ (bits as u32 & 0x8000_0000),
            3..=7 => bits as u32,
            8..=10 => bits as u32 & 0xbfff_ffff | 0x3000_0000, // near one
            11..=12 => bits as u32 & 0xff80_0007,
            13 => bits as u32 | 0x007f_fff8,
            _ => bits as u32 & 0x83ff_ffff, // tiny
        }
    }

    /// Returns an f64, in the same way.
    pub(crate) fn f64(&mut self) -> u64 {
        let bits = self.bits();
        let other = self.bits();
        match bits >> 60 {
            0..=2 => self.of(&F64) ^ (other & 1 << 63),
            3..=7 => other,
            8..=10 => other & 0x800f_ffff_ffff_ffff | (0x3f0 + (bits & 0x1f)) << 52,
            11..=12 => other & 0xfff0_0000_0000_0007,
            13 => other | 0x000f_ffff_ffff_fff8,
            _ => other & 0x803f_ffff_ffff_ffff,
        }
    }
}

/// Zero, denormals, the ends of the normal range, one and its neighbours, infinity, NaN.
pub(crate) const F32: [u32; 20] = [
    0,
    1,
    2,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x0100_0000,
    0x3380_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x4b7f_ffff,
    0x4b80_0000,
    0x7f7f_fffe,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fff_ffff,
];

/// Zero, denormals, the ends of the normal range, one and its neighbours, infinity, NaN, for f64.
pub(crate) const F64: [u64; 18] = [
    0,
    1,
    2,
    0x0008_0000_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x001f_ffff_ffff_ffff,
    0x3ca0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x4340_0000_0000_0000,
    0x7fef_ffff_ffff_fffe,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7fff_ffff_ffff_ffff,
];
