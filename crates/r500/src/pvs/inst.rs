//! A decoded instruction. Both engines execute instructions in this form.
//!
//! Decoding rejects codes without a meaning, because no engine can execute codes without a meaning. Decoding accepts
//! encodings that the documents forbid but the hardware would execute. `violations.rs` lists the forbidden encodings.

use reconverge_isa::word::{FieldValue, WordError};

pub use super::words::WORDS;
use super::words::*;

/// Number of instruction slots. R300 to R4xx have 256 slots.
pub const SLOTS: usize = 1024;
/// Number of temporaries of a vertex. (docs/r500-vertex.md, Q1)
pub const TEMPORARIES: usize = 128;
/// Number of alternate temporaries of a vertex. (docs/r500-vertex.md, D3)
pub const ALT_TEMPORARIES: usize = 20;
/// Number of input vectors. The field with the location of a stream has five bits, so the field can address 32 vectors.
pub const INPUTS: usize = 32;
/// Number of output vectors. The rasteriser reads up to 15 output vectors.
pub const OUTPUTS: usize = 32;
/// Number of vectors in the constant file.
pub const CONSTANTS: usize = 256;
/// Number of flow-control descriptors.
pub const DESCRIPTORS: usize = 16;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// The destination.
    pub dst: Dst,
    /// Whether the result is clamped to 0..1. The flag comes from VE_SAT for the vector engine and macros, and from
    /// ME_SAT for the math engine.
    pub saturate: bool,
    /// The predicate value that a vertex must have to execute the instruction. `None` if all vertices execute the
    /// instruction.
    pub predicate: Option<bool>,
    /// Operands A, B, C. In a dual instruction, C is 0.0.
    pub operands: [Operand; 3],
    /// The math half of a dual instruction.
    pub dual: Option<Dual>,
}

/// An operation of one of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// An operation of the vector engine.
    Vector(VeOp),
    /// An operation of the math engine.
    Math(MeOp),
    /// A macro of the vector engine.
    Macro(MacroOp),
}

/// Addressing mode of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The number in the instruction is the register number.
    Absolute,
    /// A component of A0 is added to the number in the instruction.
    A0(Component),
    /// The loop index aL is added to the number in the instruction.
    Loop,
}

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dst {
    /// Register file.
    pub file: DstType,
    /// Register number.
    pub register: u8,
    /// Addressing mode.
    pub mode: Mode,
    /// Write mask. Bit 0 is x.
    pub mask: u8,
}

/// An operand. The value of an operand is computed in this order: channel selection, absolute value, negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Register file.
    pub file: SrcType,
    /// Register number.
    pub register: u8,
    /// Addressing mode.
    pub mode: Mode,
    /// Source channels or literals for x, y, z and w.
    pub select: [Select; 4],
    /// Whether the operand uses the absolute values of the selected channels.
    pub abs: bool,
    /// Channels that are negated. Bit 0 is x.
    pub negate: u8,
}

impl Operand {
    /// The operand that is 0.0 in all channels.
    pub(crate) const ZERO: Operand = Operand {
        file: SrcType::TEMPORARY,
        register: 0,
        mode: Mode::Absolute,
        select: [Select::ZERO; 4],
        abs: false,
        negate: 0,
    };

    /// Returns whether a channel in the mask `used` selects a channel of the register and not a literal. Bit 0 of the
    /// mask is x.
    pub(crate) fn needs_register(&self, used: u8) -> bool {
        self.select.iter().enumerate().any(|(n, select)| used >> n & 1 == 1 && *select <= Select::W)
    }
}

/// The math half of a dual instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dual {
    /// The operation.
    pub op: MeOp,
    /// Whether the result is clamped to 0..1. (ME_SAT)
    pub saturate: bool,
    /// Destination: the number of an alternate temporary, 0 to 3.
    pub register: u8,
    /// Destination channel.
    pub channel: Component,
    /// The source. The x channel of the source is operand A. The y channel of the source is both operand B and operand
    /// C. (docs/r500-vertex.md, Q4)
    pub source: Operand,
}

impl Dst {
    /// Returns whether a channel is written.
    pub const fn writes(&self, channel: usize) -> bool {
        self.mask >> channel & 1 != 0
    }
}

/// Decodes the four words of an instruction, in the order of their upload. Ignores reserved bits. `violations.rs`
/// reports reserved bits that are set.
///
/// # Errors
/// Returns an error if a field holds a code without a meaning. Such an instruction cannot be executed.
pub fn decode(words: &[u32; WORDS]) -> Result<Inst, WordError> {
    let head = DstOperand::unpack_lenient(words[0])?;
    let unassigned = |field, value| WordError::Unassigned { word: DstOperand::INFO.name, field, value };
    let opcode = u32::from(head.opcode);
    let no_op = || unassigned("opcode", opcode);
    let op = match (head.math_inst, head.macro_inst) {
        (false, false) => Op::Vector(VeOp::from_bits(opcode, 6).ok_or_else(no_op)?),
        (true, false) => Op::Math(MeOp::from_bits(opcode, 6).ok_or_else(no_op)?),
        (false, true) => Op::Macro(MacroOp::from_bits(opcode, 6).ok_or_else(no_op)?),
        (true, true) => return Err(unassigned("macro_inst", 1)),
    };
    let mode = mode(DstOperand::INFO.name, head.addr_mode_1, head.addr_mode_0, head.addr_sel)?;
    let dual = is_dual(words[0]).then(|| dual(words[3], head.me_sat)).transpose()?;
    let c = if dual.is_some() { Operand::ZERO } else { operand(words[3])? };
    Ok(Inst {
        op,
        dst: Dst { file: head.reg_type, register: head.offset, mode, mask: head.we },
        saturate: if head.math_inst { head.me_sat } else { head.ve_sat },
        predicate: head.pred_enable.then_some(head.pred_sense),
        operands: [operand(words[1])?, operand(words[2])?, c],
        dual,
    })
}

/// Decodes an operand from a source word. The caller must not pass the third source word of a dual instruction, because
/// that word has another format.
pub(crate) fn operand(word: u32) -> Result<Operand, WordError> {
    let source = SrcOperand::unpack_lenient(word)?;
    Ok(Operand {
        file: source.reg_type,
        register: source.offset,
        mode: mode(SrcOperand::INFO.name, source.addr_mode_1, source.addr_mode_0, source.addr_sel)?,
        select: [source.swizzle_x, source.swizzle_y, source.swizzle_z, source.swizzle_w],
        abs: source.abs_xyzw,
        negate: source.modifier,
    })
}

fn dual(word: u32, saturate: bool) -> Result<Dual, WordError> {
    let name = DualMath::INFO.name;
    let math = DualMath::unpack_lenient(word)?;
    let code = u32::from(math.opcode) | u32::from(math.opcode_msb) << 4;
    let no_op = WordError::Unassigned { word: name, field: "opcode", value: code };
    Ok(Dual {
        op: MeOp::from_bits(code, 6).ok_or(no_op)?,
        saturate,
        register: math.dst_offset,
        channel: math.we_sel,
        source: Operand {
            file: math.reg_type,
            register: math.offset,
            mode: mode(name, math.addr_mode_1, math.addr_mode_0, math.addr_sel)?,
            select: [math.swizzle_x, math.swizzle_y, Select::ZERO, Select::ZERO],
            abs: math.abs_xyzw,
            negate: math.modifier,
        },
    })
}

fn mode(word: &'static str, high: bool, low: bool, component: Component) -> Result<Mode, WordError> {
    match (high, low) {
        (false, false) => Ok(Mode::Absolute),
        (false, true) => Ok(Mode::A0(component)),
        (true, false) => Ok(Mode::Loop),
        (true, true) => Err(WordError::Unassigned { word, field: "addr_mode", value: 3 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/r500-vertex.md, worked example: `o0 = i0`.
    #[test]
    fn a_move_is_an_addition_of_zero() {
        let inst = decode(&[0x00f0_0203, 0x00d1_0001, 0x0124_8001, 0x0124_8001]).unwrap();
        assert_eq!(inst.op, Op::Vector(VeOp::VE_ADD));
        let dst = Dst { file: DstType::OUT, register: 0, mode: Mode::Absolute, mask: 15 };
        assert_eq!(inst.dst, dst);
        let [a, b, _] = inst.operands;
        assert_eq!((a.file, a.select), (SrcType::INPUT, [Select::X, Select::Y, Select::Z, Select::W]));
        assert_eq!((b.file, b.select), (SrcType::INPUT, [Select::ZERO; 4]));
        assert_eq!((inst.predicate, inst.saturate, inst.dual), (None, false, None));
    }

    /// The words encode t1.yz = i0._-zz_ * t3._xy_ with at3.z = sin t0.y. A program with these words ran on hardware.
    #[test]
    fn a_dual_instruction_has_its_math_operation_in_word_3() {
        let inst = decode(&[0x1060_2002, 0x05d2_e001, 0x01c8_e060, 0x1019_2004]).unwrap();
        let dual = inst.dual.unwrap();
        assert_eq!((inst.op, inst.dst.register, inst.dst.mask), (Op::Vector(VeOp::VE_MULTIPLY), 1, 6));
        assert_eq!((dual.op, dual.register, dual.channel), (MeOp::ME_SIN, 3, Component::Z));
        assert_eq!((dual.source.register, dual.source.select[0]), (0, Select::Y));
        assert_eq!(inst.operands[0].negate, 2);
        assert_eq!(inst.operands[2], Operand::ZERO);
    }

    #[test]
    fn codes_without_a_meaning_do_not_decode() {
        let no = |words: [u32; 4]| decode(&words).unwrap_err().to_string();
        assert_eq!(no([29, 0, 0, 0]), "PVS_OP_DST_OPERAND.opcode: value 29 is not assigned");
        assert_eq!(no([0x40 | 29, 0, 0, 0]), "PVS_OP_DST_OPERAND.opcode: value 29 is not assigned");
        assert_eq!(no([0x80 | 2, 0, 0, 0]), "PVS_OP_DST_OPERAND.opcode: value 2 is not assigned");
        assert_eq!(no([0xc0, 0, 0, 0]), "PVS_OP_DST_OPERAND.macro_inst: value 1 is not assigned");
        assert_eq!(no([6 << 8, 0, 0, 0]), "PVS_OP_DST_OPERAND.reg_type: value 6 is not assigned");
        assert_eq!(no([1 << 12 | 1 << 31, 0, 0, 0]), "PVS_OP_DST_OPERAND.addr_mode: value 3 is not assigned");
        assert_eq!(no([0, 1 << 31 | 1 << 4, 0, 0]), "PVS_SRC_OPERAND.addr_mode: value 3 is not assigned");
        assert_eq!(no([1 << 28, 0, 0, 4 | 13 << 21]), "PVS_DUAL_MATH_INST.opcode: value 29 is not assigned");
    }
}
