//! The instruction words and flow-control registers of the vertex unit, with every bit.
//!
//! Source: AMD R5xx 3D register reference (REG), VAP and PVS tables. Mesa's header has two bits at other positions:
//! DUAL_MATH_OP, and the high address-mode bit of a source. This table follows REG. (docs/r500-vertex.md, D1, D2)
//!
//! | word | ordinary             | dual math             |
//! |------|----------------------|-----------------------|
//! | 0    | [`DstOperand`]       | [`DstOperand`]        |
//! | 1    | [`SrcOperand`] A     | [`SrcOperand`] A      |
//! | 2    | [`SrcOperand`] B     | [`SrcOperand`] B      |
//! | 3    | [`SrcOperand`] C     | [`DualMath`]          |

use reconverge_isa::word::{Field, WordInfo};
use reconverge_isa::{names, word};

use crate::words::{StateRegister, named_register};

/// Words per instruction.
pub const WORDS: usize = 4;

names! {
    /// Destination file. The codes 6 to 15 are not assigned.
    pub enum DstType(4) {
        /// Temporary.
        TEMPORARY = 0,
        /// The address register A0.
        A0 = 1,
        /// Output.
        OUT = 2,
        /// Output. The x result is written to all enabled channels.
        OUT_REPL_X = 3,
        /// Alternate temporary.
        ALT_TEMPORARY = 4,
        /// Input memory.
        INPUT = 5,
    }

    /// Source file.
    pub enum SrcType(2) {
        /// Temporary.
        TEMPORARY = 0,
        /// Input.
        INPUT = 1,
        /// Constant.
        CONSTANT = 2,
        /// Alternate temporary.
        ALT_TEMPORARY = 3,
    }

    /// Source channel or literal for an operand channel.
    pub enum Select(3) {
        X = 0, Y = 1, Z = 2, W = 3, ZERO = 4, ONE = 5,
        /// No source documents this code. It is read as 0.0. (docs/r500-vertex.md, Q3)
        RESERVED = 6,
        /// Assemblers write this code for an unused channel. It is read as 0.0. (docs/r500-vertex.md, Q3)
        UNUSED = 7,
    }

    /// A component of A0, or the only channel that a dual math operation writes.
    pub enum Component(2) { X = 0, Y = 1, Z = 2, W = 3 }

    /// Operation of the vector engine. The codes 29 to 63 are not assigned.
    pub enum VeOp(6) {
        /// Writes nothing.
        VECTOR_NO_OP = 0,
        /// A.x * B.x + A.y * B.y + A.z * B.z + A.w * B.w in all channels.
        VE_DOT_PRODUCT = 1,
        /// A * B
        VE_MULTIPLY = 2,
        /// A + B
        VE_ADD = 3,
        /// A * B + C
        VE_MULTIPLY_ADD = 4,
        /// 1, A.y * B.y, A.z, B.w
        VE_DISTANCE_VECTOR = 5,
        /// A - floor(A)
        VE_FRACTION = 6,
        /// A > B ? A : B
        VE_MAXIMUM = 7,
        /// A < B ? A : B
        VE_MINIMUM = 8,
        /// A >= B ? 1 : 0
        VE_SET_GREATER_THAN_EQUAL = 9,
        /// A < B ? 1 : 0
        VE_SET_LESS_THAN = 10,
        /// 2 * (A * B) + C
        VE_MULTIPLYX2_ADD = 11,
        /// C.w < A.w * B.w ? C.w : C.x >= A.x * B.x ? C.x : A.x * B.x, in all channels.
        VE_MULTIPLY_CLAMP = 12,
        /// floor(A) as an integer for A0.
        VE_FLT2FIX_DX = 13,
        /// floor(A + 0.5) as an integer for A0.
        VE_FLT2FIX_DX_RND = 14,
        /// Predicate: A.w == 0 and B.w == 0; value: predicate ? 0 : A.w + 1.
        VE_PRED_SET_EQ_PUSH = 15,
        /// Predicate: A.w == 0 and B.w > 0; value: predicate ? 0 : A.w + 1.
        VE_PRED_SET_GT_PUSH = 16,
        /// Predicate: A.w == 0 and B.w >= 0; value: predicate ? 0 : A.w + 1.
        VE_PRED_SET_GTE_PUSH = 17,
        /// Predicate: A.w == 0 and B.w != 0; value: predicate ? 0 : A.w + 1.
        VE_PRED_SET_NEQ_PUSH = 18,
        /// B in the channels in which A == 0; other channels do not change.
        VE_COND_WRITE_EQ = 19,
        /// B in the channels in which A > 0; other channels do not change.
        VE_COND_WRITE_GT = 20,
        /// B in the channels in which A >= 0; other channels do not change.
        VE_COND_WRITE_GTE = 21,
        /// B in the channels in which A != 0; other channels do not change.
        VE_COND_WRITE_NEQ = 22,
        /// A == 0 ? B : C
        VE_COND_MUX_EQ = 23,
        /// A > 0 ? B : C
        VE_COND_MUX_GT = 24,
        /// A >= 0 ? B : C
        VE_COND_MUX_GTE = 25,
        /// A > B ? 1 : 0
        VE_SET_GREATER_THAN = 26,
        /// A == B ? 1 : 0
        VE_SET_EQUAL = 27,
        /// A != B ? 1 : 0
        VE_SET_NOT_EQUAL = 28,
    }

    /// Operation of the math engine, which reads the w channel of its operands. The codes 29 to 63 are not assigned.
    pub enum MeOp(6) {
        /// Writes nothing.
        MATH_NO_OP = 0,
        /// 2^floor(a), a - floor(a), 2^a, 1
        ME_EXP_BASE2_DX = 1,
        /// Exponent, mantissa and logarithm of |a|, 1
        ME_LOG_BASE2_DX = 2,
        /// e^a
        ME_EXP_BASEE_FF = 3,
        /// 1, max(b, 0), b > 0 ? max(a, 0)^c : 0, 1
        ME_LIGHT_COEFF_DX = 4,
        /// a^c
        ME_POWER_FUNC_FF = 5,
        /// 1 / a, or the largest finite number if a is zero
        ME_RECIP_DX = 6,
        /// 1 / a, or 0 if a is zero
        ME_RECIP_FF = 7,
        /// 1 / sqrt(|a|), or the largest finite number if a is zero
        ME_RECIP_SQRT_DX = 8,
        /// 1 / sqrt(|a|), or 0 if a is zero
        ME_RECIP_SQRT_FF = 9,
        /// a * b
        ME_MULTIPLY = 10,
        /// 2^a
        ME_EXP_BASE2_FULL_DX = 11,
        /// log2(|a|), or the lowest finite number if a is zero
        ME_LOG_BASE2_FULL_DX = 12,
        /// a < b ? 0 : a^c
        ME_POWER_FUNC_FF_CLAMP_B = 13,
        /// a < b ? 0 : a > 1 ? 1 : a^c
        ME_POWER_FUNC_FF_CLAMP_B1 = 14,
        /// a <= 0 ? 0 : a > 1 ? 1 : a^c
        ME_POWER_FUNC_FF_CLAMP_01 = 15,
        /// sin(a), with a clamped to -pi..pi
        ME_SIN = 16,
        /// cos(a), with a clamped to -pi..pi
        ME_COS = 17,
        /// log2(|a|), or -infinity if a is zero
        ME_LOG_BASE2_IEEE = 18,
        /// 1 / a, or infinity if a is zero
        ME_RECIP_IEEE = 19,
        /// 1 / sqrt(|a|), or infinity if a is zero
        ME_RECIP_SQRT_IEEE = 20,
        /// Predicate: a == 0; value: predicate ? 0 : 1.
        ME_PRED_SET_EQ = 21,
        /// Predicate: a > 0; value: predicate ? 0 : 1.
        ME_PRED_SET_GT = 22,
        /// Predicate: a >= 0; value: predicate ? 0 : 1.
        ME_PRED_SET_GTE = 23,
        /// Predicate: a != 0; value: predicate ? 0 : 1.
        ME_PRED_SET_NEQ = 24,
        /// Predicate: false; value: the largest finite number.
        ME_PRED_SET_CLR = 25,
        /// Predicate: a == 1; value: a == 1 ? 0 : a == 0 ? 1 : a.
        ME_PRED_SET_INV = 26,
        /// Predicate: a <= 1; value: a <= 1 ? 0 : a - 1.
        ME_PRED_SET_POP = 27,
        /// Predicate: a == 0; value: a.
        ME_PRED_SET_RESTORE = 28,
    }

    /// A macro of the vector engine, which may read three temporaries. The codes 2 to 63 are not assigned.
    pub enum MacroOp(6) {
        /// A * B + C
        MACRO_OP_2CLK_MADD = 0,
        /// 2 * (A * B) + C
        MACRO_OP_2CLK_M2X_ADD = 1,
    }

    /// The action of a flow-control descriptor after its instruction.
    pub enum FlowOp(2) {
        /// No action.
        NO_OP = 0,
        /// Jumps to another instruction.
        JUMP = 1,
        /// Enters a loop.
        LOOP = 2,
        /// Enters a subroutine.
        JSR = 3,
    }
}

word! {
    /// Operation and destination. (REG)
    pub struct DstOperand(u32) = "PVS_OP_DST_OPERAND" {
        /// Operation of the vector engine, the math engine, or a macro.
        opcode:       u8 [5:0],
        /// Whether OPCODE is an operation of the math engine.
        math_inst:    bool [6:6],
        /// Whether OPCODE is a macro.
        macro_inst:   bool [7:7],
        /// Destination file.
        reg_type:     DstType [11:8],
        /// High bit of the address mode.
        addr_mode_1:  bool [12:12],
        /// Destination register.
        offset:       u8 [19:13],
        /// Write mask. Bit 0 is x. (WE_X to WE_W)
        we:           u8 [23:20],
        /// Clamps the result of the vector engine to 0..1.
        ve_sat:       bool [24:24],
        /// Clamps the result of the math engine to 0..1.
        me_sat:       bool [25:25],
        /// Only vertices whose predicate equals PRED_SENSE execute the instruction.
        pred_enable:  bool [26:26],
        /// The required value of the predicate, if PRED_ENABLE is set.
        pred_sense:   bool [27:27],
        /// Word 3 holds a second operation, which the math engine executes.
        dual_math_op: bool [28:28],
        /// Component of A0 for relative addressing.
        addr_sel:     Component [30:29],
        /// Low bit of the address mode. The mode is 0 for absolute, 1 for relative to A0, and 2 for relative to aL.
        addr_mode_0:  bool [31:31],
    }

    /// An operand. (REG)
    pub struct SrcOperand(u32) = "PVS_SRC_OPERAND" {
        /// Source file.
        reg_type:    SrcType [1:0],
        /// Takes the absolute value of all channels, before the negation.
        abs_xyzw:    bool [3:3],
        /// Low bit of the address mode. The mode is 0 for absolute, 1 for relative to A0, and 2 for relative to aL.
        addr_mode_0: bool [4:4],
        /// Source register.
        offset:      u8 [12:5],
        swizzle_x:   Select [15:13],
        swizzle_y:   Select [18:16],
        swizzle_z:   Select [21:19],
        swizzle_w:   Select [24:22],
        /// Channels that are negated. Bit 0 is x. (MODIFIER_X to MODIFIER_W)
        modifier:    u8 [28:25],
        /// Component of A0 for relative addressing.
        addr_sel:    Component [30:29],
        /// High bit of the address mode.
        addr_mode_1: bool [31:31],
    }

    /// The math operation of a dual instruction. The only source of this operation has two scalars. (REG)
    pub struct DualMath(u32) = "PVS_DUAL_MATH_INST" {
        /// Source file.
        reg_type:    SrcType [1:0],
        /// Bit 4 of the operation code.
        opcode_msb:  bool [2:2],
        /// Takes the absolute value of both scalars, before the negation.
        abs_xyzw:    bool [3:3],
        /// Low bit of the address mode. The mode is 0 for absolute, 1 for relative to A0, and 2 for relative to aL.
        addr_mode_0: bool [4:4],
        /// Source register.
        offset:      u8 [12:5],
        /// The first scalar, which is operand A.
        swizzle_x:   Select [15:13],
        /// The second scalar, which is operands B and C.
        swizzle_y:   Select [18:16],
        /// Destination: alternate temporary 0 to 3.
        dst_offset:  u8 [20:19],
        /// Bits 3:0 of the operation code.
        opcode:      u8 [24:21],
        /// Scalars that are negated. Bit 0 is the first scalar. (MODIFIER_X, MODIFIER_Y)
        modifier:    u8 [26:25],
        /// The only channel of the destination.
        we_sel:      Component [28:27],
        /// Component of A0 for relative addressing.
        addr_sel:    Component [30:29],
        /// High bit of the address mode.
        addr_mode_1: bool [31:31],
    }
}

word! {
    /// First and last slot of a program. (REG)
    pub struct CodeCntl0(u32) = "VAP_PVS_CODE_CNTL_0" {
        /// First slot to execute.
        pvs_first_inst:      u16 [9:0],
        /// The slot after which the position is complete.
        pvs_xyzw_valid_inst: u16 [19:10],
        /// Last slot to execute.
        pvs_last_inst:       u16 [29:20],
    }

    /// The last slot of a program that reads an input. (REG)
    pub struct CodeCntl1(u32) = "VAP_PVS_CODE_CNTL_1" {
        /// The last slot that reads inputs.
        pvs_last_vtx_src_inst: u16 [9:0],
    }

    /// The part of the constant file that a program can read. (REG)
    pub struct ConstCntl(u32) = "VAP_PVS_CONST_CNTL" {
        /// Index in the constant file of the program's constant 0.
        pvs_const_base_offset: u8 [7:0],
        /// The highest constant of the program. Higher constants read as zero.
        pvs_max_const_addr:    u8 [23:16],
    }

    /// Operations of the flow-control descriptors, with two bits for each descriptor. Bits 1:0 are descriptor 0. (REG)
    pub struct FlowCntlOpc(u32) = "VAP_PVS_FLOW_CNTL_OPC" {
        opc: u32 [31:0],
    }

    /// Addresses of a descriptor in R300 to R4xx. (REG)
    pub struct FlowCntlAddrs(u32) = "VAP_PVS_FLOW_CNTL_ADDRS" {
        /// The slot after which the descriptor acts.
        pvs_fc_act_adrs:          u8 [7:0],
        /// Number of iterations of a LOOP, or target slot of a JUMP or JSR.
        pvs_fc_loop_cnt_jmp_inst: u8 [15:8],
        /// Last slot of the loop or subroutine.
        pvs_fc_last_inst:         u8 [23:16],
        /// First slot of the body of a LOOP, or return slot of a JSR.
        pvs_fc_rtn_inst:          u8 [31:24],
    }

    /// Addresses of a descriptor: the low word. (REG)
    pub struct FlowCntlAddrsLw(u32) = "VAP_PVS_FLOW_CNTL_ADDRS_LW" {
        /// The slot after which the descriptor acts.
        pvs_fc_act_adrs:          u16 [15:0],
        /// Number of iterations of a LOOP, or target slot of a JUMP or JSR.
        pvs_fc_loop_cnt_jmp_inst: u16 [31:16],
    }

    /// Addresses of a descriptor: the high word. (REG)
    pub struct FlowCntlAddrsUw(u32) = "VAP_PVS_FLOW_CNTL_ADDRS_UW" {
        /// Last slot of the loop or subroutine.
        pvs_fc_last_inst: u16 [15:0],
        /// First slot of the body of a LOOP, or return slot of a JSR.
        pvs_fc_rtn_inst:  u16 [31:16],
    }

    /// The loop index of a descriptor. (REG)
    pub struct FlowCntlLoopIndex(u32) = "VAP_PVS_FLOW_CNTL_LOOP_INDEX" {
        /// Value of aL in the first iteration.
        pvs_fc_loop_init_val:      u8 [7:0],
        /// Number that each iteration adds to aL.
        pvs_fc_loop_step_val:      i8 [15:8],
        /// Whether the loop starts with the aL of the enclosing loop.
        pvs_fc_loop_repeat_no_fli: bool [31:31],
    }
}

#[rustfmt::skip]
/// The state registers of a program. R300 to R4xx have all of these registers except for the last two. (REG)
pub static STATE: [StateRegister; 8] = [
    StateRegister { word: CodeCntl0::INFO,         mmio: 0x22d0, count: 1,  stride: 4 },
    StateRegister { word: ConstCntl::INFO,         mmio: 0x22d4, count: 1,  stride: 4 },
    StateRegister { word: CodeCntl1::INFO,         mmio: 0x22d8, count: 1,  stride: 4 },
    StateRegister { word: FlowCntlOpc::INFO,       mmio: 0x22dc, count: 1,  stride: 4 },
    StateRegister { word: FlowCntlAddrs::INFO,     mmio: 0x2230, count: 16, stride: 4 },
    StateRegister { word: FlowCntlLoopIndex::INFO, mmio: 0x2290, count: 16, stride: 4 },
    StateRegister { word: FlowCntlAddrsLw::INFO,   mmio: 0x2500, count: 16, stride: 8 },
    StateRegister { word: FlowCntlAddrsUw::INFO,   mmio: 0x2504, count: 16, stride: 8 },
];

/// Returns the state register with the name `name`. If the unit has several registers of this kind, `name` is the
/// manual's name followed by `_n`, and the function also returns the number n. Otherwise, `name` is the manual's name,
/// and the number is 0.
pub fn state_register(name: &str) -> Option<(&'static StateRegister, u32)> {
    named_register(&STATE, name)
}

/// Returns the formats of an instruction's words. `dual` is the bit DUAL_MATH_OP of a vector operation.
pub const fn layout(dual: bool) -> [WordInfo; WORDS] {
    let last = if dual { DualMath::INFO } else { SrcOperand::INFO };
    [DstOperand::INFO, SrcOperand::INFO, SrcOperand::INFO, last]
}

/// Returns whether word 3 of an instruction is a math operation. Word 3 is a math operation if DUAL_MATH_OP is set, and
/// neither MATH_INST nor MACRO_INST is set. If MATH_INST or MACRO_INST is set, DUAL_MATH_OP is invalid and ignored.
/// (REG; docs/r500-vertex.md, Q4)
pub const fn is_dual(word: u32) -> bool {
    word >> 28 & 1 == 1 && word >> 6 & 3 == 0
}

/// Returns the field with this name in a format. The field must exist. Only tables of this crate call this function.
pub(crate) fn field(info: &WordInfo, name: &str) -> &'static Field {
    match info.field(name) {
        Some(field) => field,
        None => unreachable!("{} has a field {name}", info.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_registers_are_found_by_their_manual_name() {
        assert_eq!(state_register("VAP_PVS_CODE_CNTL_0").unwrap().0.mmio, 0x22d0);
        assert_eq!(state_register("VAP_PVS_CODE_CNTL_1").unwrap().0.mmio, 0x22d8);
        let (register, number) = state_register("VAP_PVS_FLOW_CNTL_ADDRS_UW_3").unwrap();
        assert_eq!((register.mmio + number * register.stride, number), (0x251c, 3));
        assert_eq!(state_register("VAP_PVS_FLOW_CNTL_ADDRS_15").unwrap().0.mmio, 0x2230);
        for wrong in
            ["VAP_PVS_CODE_CNTL_2", "VAP_PVS_FLOW_CNTL_ADDRS_16", "VAP_PVS_FLOW_CNTL_ADDRS_LW_01", "VAP_CNTL"]
        {
            assert!(state_register(wrong).is_none(), "{wrong}");
        }
    }

    /// REG lists the used bits of each word.
    #[test]
    fn every_word_owns_the_documented_bits() {
        assert_eq!(DstOperand::OWNED, u32::MAX);
        assert_eq!(SrcOperand::OWNED, !4);
        assert_eq!(DualMath::OWNED, u32::MAX);
        assert_eq!(FlowCntlLoopIndex::OWNED, 0x8000_ffff);
        assert_eq!(CodeCntl0::OWNED, 0x3fff_ffff);
        assert_eq!(ConstCntl::OWNED, 0x00ff_00ff);
    }
}
