//! A decoded instruction. All engines execute instructions in this form.
//!
//! Decoding rejects codes without a meaning, because no engine can execute codes without a meaning. Decoding accepts
//! encodings that the documents forbid but the hardware would execute. `violations.rs` lists the forbidden encodings.

use reconverge_isa::word::WordError;

use crate::words::*;

/// Words per instruction of any type. (CTM guide p. 23)
pub const WORDS: usize = 6;
/// Number of instruction slots. (CTM guide p. 23)
pub const SLOTS: usize = 512;
/// Number of temporaries of a lane.
pub const TEMPORARIES: usize = 128;
/// Number of float constants.
pub const CONSTANTS: usize = 256;
/// Number of integer constants. The number of boolean constants is the same.
pub const LOOP_CONSTANTS: usize = 32;
/// Number of texture units. The number of CTM inputs is the same. (CTM guide p. 6)
pub const SAMPLERS: usize = 16;
/// Number of render targets. The number of CTM outputs is the same.
pub const TARGETS: usize = 4;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inst {
    /// Word 0.
    pub common: CmnInst,
    /// The remaining words, decoded according to the type of the instruction.
    pub body: Body,
}

/// The part of an instruction after its common word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// An ALU or OUT instruction, with its RGB half and its alpha half.
    Alu(Alu),
    /// A flow-control instruction.
    Fc(Fc),
    /// A texture instruction.
    Tex(Tex),
}

/// A flow-control instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fc {
    /// Word 2.
    pub inst: FcInst,
    /// Word 3.
    pub addr: FcAddr,
}

/// A texture instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tex {
    /// Word 1.
    pub inst: TexInst,
    /// Word 2.
    pub addr: TexAddr,
    /// Word 3.
    pub dxdy: TexAddrDxDy,
}

/// A temporary of a texture instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TexRegister {
    /// The number of the register.
    pub(crate) temp: u8,
    /// Whether aL is added to the number.
    pub(crate) rel: bool,
    /// The swizzle. For a coordinate, the elements are the channels of S, T, R and Q. For a result, the elements are
    /// the channels of red, green, blue and alpha.
    pub(crate) swizzle: [TexSwiz; 4],
}

impl Tex {
    /// Returns the register of the coordinate.
    pub(crate) fn src(&self) -> TexRegister {
        let it = &self.addr;
        let swizzle = [it.src_s_swiz, it.src_t_swiz, it.src_r_swiz, it.src_q_swiz];
        TexRegister { temp: it.src_addr, rel: it.src_addr_rel, swizzle }
    }

    /// Returns the register of the result.
    pub(crate) fn dst(&self) -> TexRegister {
        let it = &self.addr;
        let swizzle = [it.dst_r_swiz, it.dst_g_swiz, it.dst_b_swiz, it.dst_a_swiz];
        TexRegister { temp: it.dst_addr, rel: it.dst_addr_rel, swizzle }
    }

    /// Returns the registers of the derivatives of DXDY, by x and by y.
    pub(crate) fn derivatives(&self) -> [TexRegister; 2] {
        let it = &self.dxdy;
        let dx = [it.dx_s_swiz, it.dx_t_swiz, it.dx_r_swiz, it.dx_q_swiz];
        let dy = [it.dy_s_swiz, it.dy_t_swiz, it.dy_r_swiz, it.dy_q_swiz];
        [(it.dx_addr, it.dx_addr_rel, dx), (it.dy_addr, it.dy_addr_rel, dy)]
            .map(|(temp, rel, swizzle)| TexRegister { temp, rel, swizzle })
    }
}

/// Both halves of an arithmetic instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alu {
    /// Sources of the RGB half, with the presubtract of the RGB half.
    pub rgb_sources: Sources,
    /// Sources of the alpha half, with the presubtract of the alpha half.
    pub alpha_sources: Sources,
    /// The RGB half.
    pub rgb: Half<RgbOp>,
    /// The alpha half.
    pub alpha: Half<AlphaOp>,
    /// Whether the instruction writes the ALU result.
    pub alu_wmask: bool,
    /// Whether the instruction writes the alpha result to the depth (W) output.
    pub w_omask: bool,
}

/// Three sources, and the presubtract of the first two sources.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sources {
    /// src0, src1, src2.
    pub src: [Source; 3],
    /// The presubtract operation, which computes srcp.
    pub srcp_op: SrcpOp,
}

/// Origin of a source. (CTM guide p. 26)
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// A temporary, plus aL if `rel` is set.
    Temp {
        /// Number of the temporary, 0 to 127.
        addr: u8,
        /// Whether aL is added to the number.
        rel: bool,
    },
    /// A float constant, plus aL if `rel` is set.
    Const {
        /// Number of the constant, 0 to 255.
        addr: u8,
        /// Whether aL is added to the number.
        rel: bool,
    },
    /// An inline constant.
    Inline {
        /// The seven-bit code. See [`inline_constant`].
        code: u8,
    },
}

/// An operand of a unit: source, swizzle and modifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operand {
    /// Source vector.
    pub sel: Sel,
    /// Source channels for red, green and blue. The alpha unit uses only one channel. For the alpha unit, all three
    /// elements are that channel.
    pub swiz: [Swiz; 3],
    /// Modifier, applied after the swizzle.
    pub modifier: Imod,
}

impl Operand {
    /// Returns the sources that the first `channels` channels read, without literals. A source is an address word (0
    /// for RGB, 1 for alpha) and a source number. For srcp, the number is 0 (src0). The presubtract operation
    /// determines whether srcp also reads src1.
    pub(crate) fn stated(&self, channels: usize) -> impl Iterator<Item = (usize, usize)> {
        let number = if self.sel == Sel::SRCP { 0 } else { self.sel as usize };
        self.swiz[..channels].iter().filter_map(move |swiz| match swiz {
            Swiz::R | Swiz::G | Swiz::B => Some((0, number)),
            Swiz::A => Some((1, number)),
            Swiz::ZERO | Swiz::HALF | Swiz::ONE => None,
        })
    }
}

/// The computation of the RGB unit or the alpha unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half<Op> {
    /// Operation.
    pub op: Op,
    /// Operands A, B, C.
    pub operands: [Operand; 3],
    /// Output modifier.
    pub omod: Omod,
    /// Destination temporary.
    pub addrd: u8,
    /// Whether aL is added to the number of the destination.
    pub addrd_rel: bool,
    /// For an OUT instruction, the render target. For an ALU instruction, the predicate comparison.
    pub target: Target,
}

impl Alu {
    /// Returns the source, channel and modifier of an operand. `channel` (0 red to 3 alpha) selects the unit.
    pub(crate) fn operand(&self, channel: usize, number: usize) -> (Sel, Swiz, Imod) {
        let Operand { sel, swiz, modifier } = match channel {
            3 => self.alpha.operands[number],
            _ => self.rgb.operands[number],
        };
        (sel, swiz[channel % 3], modifier)
    }

    /// Returns the output modifier of a channel.
    pub(crate) fn omod(&self, channel: usize) -> Omod {
        if channel == 3 { self.alpha.omod } else { self.rgb.omod }
    }

    /// Returns the render target or predicate comparison of a channel.
    pub(crate) fn target(&self, channel: usize) -> Target {
        if channel == 3 { self.alpha.target } else { self.rgb.target }
    }

    /// Returns the number of the destination temporary of a channel, and whether aL is added to the number.
    pub(crate) fn destination(&self, channel: usize) -> (u8, bool) {
        match channel {
            3 => (self.alpha.addrd, self.alpha.addrd_rel),
            _ => (self.rgb.addrd, self.rgb.addrd_rel),
        }
    }
}

/// Decodes the six words of an instruction, in the order of their upload. Ignores reserved bits. `violations.rs`
/// reports reserved bits that are set.
///
/// # Errors
/// Returns an error if a field holds a code without a meaning. Such an instruction cannot be executed.
pub fn decode(words: &[u32; WORDS]) -> Result<Inst, WordError> {
    let common = CmnInst::unpack_lenient(words[0])?;
    let body = match common.r#type {
        InstType::ALU | InstType::OUT => Body::Alu(decode_alu(words)?),
        InstType::FC => {
            Body::Fc(Fc { inst: FcInst::unpack_lenient(words[2])?, addr: FcAddr::unpack_lenient(words[3])? })
        }
        InstType::TEX => Body::Tex(Tex {
            inst: TexInst::unpack_lenient(words[1])?,
            addr: TexAddr::unpack_lenient(words[2])?,
            dxdy: TexAddrDxDy::unpack_lenient(words[3])?,
        }),
    };
    Ok(Inst { common, body })
}

fn decode_alu(words: &[u32; WORDS]) -> Result<Alu, WordError> {
    let rgb = AluRgbInst::unpack_lenient(words[3])?;
    let alpha = AluAlphaInst::unpack_lenient(words[4])?;
    let rgba = AluRgbaInst::unpack_lenient(words[5])?;
    Ok(Alu {
        rgb_sources: sources(words[1])?,
        alpha_sources: sources(words[2])?,
        rgb: Half {
            op: rgba.rgb_op,
            operands: [
                operand(rgb.rgb_sel_a, [rgb.red_swiz_a, rgb.green_swiz_a, rgb.blue_swiz_a], rgb.rgb_mod_a),
                operand(rgb.rgb_sel_b, [rgb.red_swiz_b, rgb.green_swiz_b, rgb.blue_swiz_b], rgb.rgb_mod_b),
                operand(
                    rgba.rgb_sel_c,
                    [rgba.red_swiz_c, rgba.green_swiz_c, rgba.blue_swiz_c],
                    rgba.rgb_mod_c,
                ),
            ],
            omod: rgb.omod,
            addrd: rgba.rgb_addrd,
            addrd_rel: rgba.rgb_addrd_rel,
            target: rgb.target,
        },
        alpha: Half {
            op: alpha.alpha_op,
            operands: [
                operand(alpha.alpha_sel_a, [alpha.alpha_swiz_a; 3], alpha.alpha_mod_a),
                operand(alpha.alpha_sel_b, [alpha.alpha_swiz_b; 3], alpha.alpha_mod_b),
                operand(rgba.alpha_sel_c, [rgba.alpha_swiz_c; 3], rgba.alpha_mod_c),
            ],
            omod: alpha.omod,
            addrd: alpha.alpha_addrd,
            addrd_rel: alpha.alpha_addrd_rel,
            target: alpha.target,
        },
        alu_wmask: rgb.alu_wmask,
        w_omask: alpha.w_omask,
    })
}

/// Decodes the sources of an address word. The word US_ALU_ALPHA_ADDR has the same fields as US_ALU_RGB_ADDR.
fn sources(word: u32) -> Result<Sources, WordError> {
    let addr = AluRgbAddr::unpack_lenient(word)?;
    let src = [
        source(addr.addr0, addr.addr0_const, addr.addr0_rel),
        source(addr.addr1, addr.addr1_const, addr.addr1_rel),
        source(addr.addr2, addr.addr2_const, addr.addr2_rel),
    ];
    Ok(Sources { src, srcp_op: addr.srcp_op })
}

fn operand(sel: Sel, swiz: [Swiz; 3], modifier: Imod) -> Operand {
    Operand { sel, swiz, modifier }
}

/// Decodes a source. If CONST is not set and bit 7 of the address is set, the source is an inline constant. For an
/// inline constant, the REL bit is invalid, and this function ignores the REL bit (see `Violation::RelativeInline`).
/// (CTM guide p. 26)
fn source(addr: u8, is_const: bool, rel: bool) -> Source {
    match (is_const, addr & 0x80 != 0) {
        (true, _) => Source::Const { addr, rel },
        (false, false) => Source::Temp { addr, rel },
        (false, true) => Source::Inline { code: addr & 0x7f },
    }
}

/// Returns the value of a seven-bit inline constant, from 2^-7 to 480. Bits 6:3 are the exponent with the bias 7. Bits
/// 2:0 are the mantissa after an implicit one. Signs and infinities cannot be encoded.
///
/// The documents disagree on codes whose exponent field is 0 (r500.md D4). In REG and the open R500 assembler, these
/// codes are denormals: mantissa / 8 * 2^-6. So code 0 is zero. In Mesa's encoder, the mantissa of these codes follows
/// an implicit one, as in all codes with a larger exponent field. So Mesa's encoder emits code 0 for 1/128. Compiled
/// programs with known results agree only with Mesa's interpretation. So this function follows Mesa's interpretation.
/// No known program uses codes 1 to 7. On a real card, a program that multiplies 1 by inline code 0 would show the
/// right interpretation.
pub const fn inline_constant(code: u8) -> f32 {
    let (exponent, mantissa) = ((code >> 3 & 0xf) as u32, (code & 7) as u32);
    f32::from_bits((exponent + 120) << 23 | mantissa << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// r500.md 2.2: the values are from programs that run on cards.
    #[test]
    fn inline_constants_have_the_values_seen_in_running_programs() {
        let seen = [
            (40, 0.25),
            (45, 0.40625),
            (48, 0.5),
            (49, 0.5625),
            (56, 1.0),
            (60, 1.5),
            (64, 2.0),
            (80, 8.0),
            (96, 32.0),
            (29, 0.1015625),
        ];
        for (code, value) in seen {
            assert_eq!(inline_constant(code), value, "code {code}");
        }
        assert_eq!(inline_constant(127), 480.0);
    }

    /// Compiled programs use code 0 as 1/128, although REG says otherwise (r500.md D4).
    #[test]
    fn inline_code_zero_is_a_128th() {
        assert_eq!(inline_constant(0), 1.0 / 128.0);
        assert_eq!(inline_constant(7), 1.875 / 128.0);
    }

    /// r500.md 7, E5.
    #[test]
    fn sources_follow_the_operand_table() {
        let words = [0x0008_7800, 0xc802_c001, 0x3c84_0c01, 0x0400_2223, 0x0068_c020, 0x3036_e020];
        let Body::Alu(alu) = decode(&words).unwrap().body else { panic!("an ALU instruction") };
        assert_eq!(
            alu.rgb_sources.src,
            [Source::Temp { addr: 1, rel: false }, Source::Inline { code: 48 }, Source::Inline { code: 0 }]
        );
        assert_eq!(
            alu.alpha_sources.src,
            [
                Source::Temp { addr: 1, rel: false },
                Source::Const { addr: 3, rel: false },
                Source::Const { addr: 200, rel: true }
            ]
        );
        assert_eq!(alu.rgb_sources.srcp_op, SrcpOp::NEG);
        assert_eq!(alu.rgb.omod, Omod::MUL_2);
    }

    #[test]
    fn codes_without_a_meaning_do_not_decode() {
        let rgb_op_6 = WordError::Unassigned { word: "US_ALU_RGBA_INST", field: "rgb_op", value: 6 };
        assert_eq!(decode(&[0, 0, 0, 0, 0, 6]), Err(rgb_op_6));
        let tex_op_7 = WordError::Unassigned { word: "US_TEX_INST", field: "inst", value: 7 };
        assert_eq!(decode(&[3, 7 << 22, 0, 0, 0, 0]), Err(tex_op_7));
    }
}
