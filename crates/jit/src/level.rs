//! Selects vector instructions by level. Only this file names instructions that depend on the level.
//!
//! For the emitter, the levels differ in the storage of truth values. With AVX2, truth values are vectors like all
//! other values. With AVX-512, comparisons return one bit per lane in a mask register. Instructions that select, load
//! or count lanes read the mask register.

use iced_x86::{Code, Register};

use crate::strip::{One, Two};

/// The processor instructions that generated code uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// AVX2, FMA, BMI1, BMI2 and POPCNT: eight lanes at a time.
    Avx2,
    /// The instructions of [`Level::Avx2`], and AVX-512 F, BW, DQ and VL: sixteen lanes at a time.
    Avx512,
}

impl Level {
    /// Returns the levels that this processor has, lowest first.
    pub fn available() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            [(avx2, Level::Avx2), (avx512, Level::Avx512)]
                .into_iter()
                .filter_map(|(has, level)| has.then_some(level))
                .collect()
        }
        #[cfg(not(target_arch = "x86_64"))]
        Vec::new()
    }

    /// Returns the level with the name `avx2` or `avx512`, if this processor supports the level.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::available().into_iter().find(|level| level.name() == name)
    }

    /// Returns the name of the level: `avx2`, `avx512`.
    pub const fn name(self) -> &'static str {
        self.of("avx2", "avx512")
    }

    /// Returns the number of lanes that are computed at a time.
    pub const fn lanes(self) -> usize {
        self.of(8, 16)
    }

    /// Returns the level for groups of `lanes` lanes. If `lanes` is a multiple of the vector size of this level,
    /// returns this level. Otherwise, returns [`Level::Avx2`].
    pub(crate) fn dividing(self, lanes: usize) -> Level {
        if lanes.is_multiple_of(self.lanes()) { self } else { Level::Avx2 }
    }

    /// Returns whether code for a group of `lanes` lanes computes two vectors at once. The group must have two vectors,
    /// and the level must have enough registers for both vectors.
    pub const fn has_both(self, lanes: usize) -> bool {
        self.of(false, lanes == 2 * self.lanes())
    }

    /// Returns the number of bytes of a vector.
    pub(crate) const fn vector(self) -> i32 {
        4 * self.lanes() as i32
    }

    /// Returns the number of bytes that are needed for one bit per lane of a vector.
    pub(crate) const fn bits(self) -> i32 {
        self.lanes() as i32 / 8
    }

    /// Returns a mask in which the bits of all lanes of a vector are set.
    pub(crate) const fn all(self) -> i32 {
        (1 << self.lanes()) - 1
    }

    /// Returns the number of vector registers.
    pub(crate) const fn registers(self) -> usize {
        self.of(16, 32)
    }

    /// Returns the number of mask registers for truth values, from [`SIGNS`] on.
    pub(crate) const fn signs(self) -> usize {
        self.of(0, 6)
    }

    /// Returns a vector register.
    pub(crate) fn register(self, number: usize) -> Register {
        self.of(Register::YMM0, Register::ZMM0) + number as u32
    }

    /// Returns the lowest 128 bits of a vector register as a register.
    pub(crate) fn xmm(self, register: Register) -> Register {
        Register::XMM0 + (register as u32 - self.register(0) as u32)
    }

    /// Returns the first argument for AVX2 and the second argument for AVX-512.
    pub(crate) const fn of<T: Copy>(self, avx2: T, avx512: T) -> T {
        match self {
            Level::Avx2 => avx2,
            Level::Avx512 => avx512,
        }
    }

    /// Returns the instruction that loads a vector from memory or another register. With AVX2, the memory must be
    /// aligned.
    pub(crate) fn load(self) -> Code {
        self.of(Code::VEX_Vmovaps_ymm_ymmm256, Code::EVEX_Vmovups_zmm_k1z_zmmm512)
    }

    /// Returns the instruction that stores a vector. The memory must be aligned as for [`load`](Self::load).
    pub(crate) fn store(self) -> Code {
        self.of(Code::VEX_Vmovaps_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm)
    }

    /// Returns the instruction that loads a vector from unaligned memory.
    pub(crate) fn load_anywhere(self) -> Code {
        self.of(Code::VEX_Vmovups_ymm_ymmm256, Code::EVEX_Vmovups_zmm_k1z_zmmm512)
    }

    /// Returns the instruction that stores a vector to unaligned memory.
    pub(crate) fn store_anywhere(self) -> Code {
        self.of(Code::VEX_Vmovups_ymmm256_ymm, Code::EVEX_Vmovups_zmmm512_k1z_zmm)
    }

    /// Returns the instruction that copies a word to all lanes.
    pub(crate) fn broadcast(self) -> Code {
        self.of(Code::VEX_Vpbroadcastd_ymm_xmmm32, Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32)
    }

    /// Returns the instruction that reads the word of the first lane.
    pub(crate) fn first(self) -> Code {
        self.of(Code::VEX_Vmovd_rm32_xmm, Code::EVEX_Vmovd_rm32_xmm)
    }

    /// Returns the instruction that selects an operand: the second operand if the condition is true, otherwise the
    /// first.
    pub(crate) fn select(self) -> Code {
        self.of(Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm, Code::EVEX_Vblendmps_zmm_k1z_zmm_zmmm512b32)
    }

    /// Returns the instruction that multiplies the first two operands and adds or subtracts the third operand. The
    /// result overwrites the first operand.
    pub(crate) fn fused(self, minus: bool) -> Code {
        match minus {
            true => self
                .of(Code::VEX_Vfmsub213ps_ymm_ymm_ymmm256, Code::EVEX_Vfmsub213ps_zmm_k1z_zmm_zmmm512b32_er),
            false => self
                .of(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er),
        }
    }

    /// Returns the instruction for an operation, and its immediate. With AVX-512, comparisons return bits in a mask
    /// register.
    #[rustfmt::skip]
    pub(crate) fn two(self, op: Two) -> (Code, Option<u8>) {
        let number = match op {
            Two::FCompare(predicate) => Some(predicate),
            _ => None,
        };
        let (avx2, avx512) = match op {
            Two::Add => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32),
            Two::Sub => (Code::VEX_Vpsubd_ymm_ymm_ymmm256, Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32),
            Two::Mul => (Code::VEX_Vpmulld_ymm_ymm_ymmm256, Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32),
            Two::And => (Code::VEX_Vpand_ymm_ymm_ymmm256, Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32),
            Two::AndNot => (Code::VEX_Vpandn_ymm_ymm_ymmm256, Code::EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32),
            Two::Or => (Code::VEX_Vpor_ymm_ymm_ymmm256, Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32),
            Two::Xor => (Code::VEX_Vpxor_ymm_ymm_ymmm256, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
            Two::Equal => (Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32),
            Two::Greater => (Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256, Code::EVEX_Vpcmpgtd_kr_k1_zmm_zmmm512b32),
            Two::MinSigned => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32),
            Two::MaxSigned => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32),
            Two::MinUnsigned => (Code::VEX_Vpminud_ymm_ymm_ymmm256, Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32),
            Two::MaxUnsigned => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32),
            Two::Shl => (Code::VEX_Vpsllvd_ymm_ymm_ymmm256, Code::EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32),
            Two::Shr => (Code::VEX_Vpsrlvd_ymm_ymm_ymmm256, Code::EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32),
            Two::Sar => (Code::VEX_Vpsravd_ymm_ymm_ymmm256, Code::EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32),
            Two::FAdd => (Code::VEX_Vaddps_ymm_ymm_ymmm256, Code::EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er),
            Two::FSub => (Code::VEX_Vsubps_ymm_ymm_ymmm256, Code::EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er),
            Two::FMul => (Code::VEX_Vmulps_ymm_ymm_ymmm256, Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er),
            Two::FMin => (Code::VEX_Vminps_ymm_ymm_ymmm256, Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae),
            Two::FMax => (Code::VEX_Vmaxps_ymm_ymm_ymmm256, Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae),
            Two::FDiv => (Code::VEX_Vdivps_ymm_ymm_ymmm256, Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er),
            Two::FCompare(_) => {
                (Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae)
            }
        };
        (self.of(avx2, avx512), number)
    }

    /// Returns the instruction for a logic operation on mask registers.
    pub(crate) fn logic(op: Two) -> Option<Code> {
        match op {
            Two::And => Some(Code::VEX_Kandw_kr_kr_kr),
            Two::AndNot => Some(Code::VEX_Kandnw_kr_kr_kr),
            Two::Or => Some(Code::VEX_Korw_kr_kr_kr),
            Two::Xor => Some(Code::VEX_Kxorw_kr_kr_kr),
            _ => None,
        }
    }

    /// Returns the instruction for an operation, its immediate, and whether its source can be in memory.
    #[rustfmt::skip]
    pub(crate) fn one(self, op: One) -> (Code, Option<u8>, bool) {
        let (avx2, avx512, number) = match op {
            One::Float => (Code::VEX_Vcvtdq2ps_ymm_ymmm256, Code::EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er, None),
            One::Truncate => {
                (Code::VEX_Vcvttps2dq_ymm_ymmm256, Code::EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae, None)
            }
            One::Nearest => (Code::VEX_Vcvtps2dq_ymm_ymmm256, Code::EVEX_Vcvtps2dq_zmm_k1z_zmmm512b32_er, None),
            One::Round(mode) => (
                Code::VEX_Vroundps_ymm_ymmm256_imm8,
                Code::EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae,
                Some(mode | 8),
            ),
            One::Sqrt => (Code::VEX_Vsqrtps_ymm_ymmm256, Code::EVEX_Vsqrtps_zmm_k1z_zmmm512b32_er, None),
            One::Shl(count) => {
                (Code::VEX_Vpslld_ymm_ymm_imm8, Code::EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8, Some(count))
            }
            One::Shr(count) => {
                (Code::VEX_Vpsrld_ymm_ymm_imm8, Code::EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8, Some(count))
            }
            One::Sar(count) => {
                (Code::VEX_Vpsrad_ymm_ymm_imm8, Code::EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8, Some(count))
            }
        };
        let shifts = matches!(op, One::Shl(_) | One::Shr(_) | One::Sar(_));
        (self.of(avx2, avx512), number, self == Level::Avx512 || !shifts)
    }
}
