//! The instruction words and state registers, with every bit.
//!
//! Sources: "AMD R5xx 3D register reference" (REG), US, GA and FG register tables; CTM guide chapter 3. REG and the
//! guide agree on every position. Mesa's header has one bit (DY_ADDR_REL) at another position. This table follows REG.
//!
//! | word | ALU, OUT            | TEX                | FC            |
//! |------|---------------------|--------------------|---------------|
//! | 0    | [`CmnInst`]         | [`CmnInst`]        | [`CmnInst`]   |
//! | 1    | [`AluRgbAddr`]      | [`TexInst`]        | not used      |
//! | 2    | [`AluAlphaAddr`]    | [`TexAddr`]        | [`FcInst`]    |
//! | 3    | [`AluRgbInst`]      | [`TexAddrDxDy`]    | [`FcAddr`]    |
//! | 4    | [`AluAlphaInst`]    | not used           | not used      |
//! | 5    | [`AluRgbaInst`]     | not used           | not used      |

use reconverge_isa::word::WordInfo;
use reconverge_isa::{names, word};

names! {
    /// Instruction type. (US_CMN_INST.TYPE)
    pub enum InstType(2) {
        /// Arithmetic that may write temporaries, predicate bits and the ALU result.
        ALU = 0,
        /// Arithmetic that may write temporaries and output registers.
        OUT = 1,
        /// Flow control.
        FC = 2,
        /// Texture or memory read, or a test that kills lanes.
        TEX = 3,
    }

    /// Predicate bit that enables a channel.
    pub enum PredSel(3) {
        /// No predication.
        NONE = 0,
        /// Each channel is enabled by its own bit.
        RGBA = 1, RRRR = 2, GGGG = 3, BBBB = 4, AAAA = 5,
    }

    /// Channel from which the ALU result is computed.
    pub enum AluResultSel(1) { RED = 0, ALPHA = 1 }

    /// Comparison with zero that sets the ALU result.
    pub enum AluResultOp(2) { EQ = 0, LT = 1, GE = 2, NE = 3 }

    /// Function of src0 and src1 that the presubtract unit computes. (CTM guide: BIAS, SUB, ADD, INV)
    pub enum SrcpOp(2) {
        /// 1 - 2 * src0
        NEG2 = 0,
        /// src1 - src0
        SUB = 1,
        /// src1 + src0
        ADD = 2,
        /// 1 - src0
        NEG = 3,
    }

    /// Source vector of an operand.
    pub enum Sel(2) { SRC0 = 0, SRC1 = 1, SRC2 = 2, SRCP = 3 }

    /// Source channel or literal for an operand channel. Code 7 is not assigned.
    pub enum Swiz(3) { R = 0, G = 1, B = 2, A = 3, ZERO = 4, HALF = 5, ONE = 6 }

    /// Input modifier, applied after the swizzle.
    pub enum Imod(2) {
        NOP = 0,
        NEG = 1,
        ABS = 2,
        /// -|x|
        NAB = 3,
    }

    /// Output modifier.
    pub enum Omod(3) {
        /// The result, with denormals flushed and NaN replaced
        MUL_1 = 0,
        /// 2 * result
        MUL_2 = 1,
        /// 4 * result
        MUL_4 = 2,
        /// 8 * result
        MUL_8 = 3,
        /// Result / 2
        DIV_2 = 4,
        /// Result / 4
        DIV_4 = 5,
        /// Result / 8
        DIV_8 = 6,
        /// The bits of the result do not change. Only for MIN, MAX, CND, CMP.
        DISABLED = 7,
    }

    /// Render target of an OUT instruction, or comparison with zero of an ALU instruction that writes predicate bits
    /// (A: equal, B: less, C: not less, D: not equal).
    pub enum Target(2) { A = 0, B = 1, C = 2, D = 3 }

    /// Operation of the RGB unit. The codes 6 and 13 to 15 are not assigned. (CTM guide p. 28)
    pub enum RgbOp(4) {
        /// A * B + C
        MAD = 0,
        /// Three-term dot product.
        DP3 = 1,
        /// Four-term dot product. The fourth term is the alpha unit's A * B.
        DP4 = 2,
        /// A.r * B.r + A.g * B.g + C.b
        D2A = 3,
        /// A < B ? A : B
        MIN = 4,
        /// A >= B ? A : B; B if both are zeros
        MAX = 5,
        /// C > 0.5 ? A : B
        CND = 7,
        /// C >= 0 ? A : B
        CMP = 8,
        /// A - floor(A)
        FRC = 9,
        /// The result of the alpha unit's transcendental operation.
        SOP = 10,
        /// Derivative between the columns of the quad.
        MDH = 11,
        /// Derivative between the rows of the quad.
        MDV = 12,
    }

    /// Operation of the alpha unit. Code 4 is not assigned. (CTM guide p. 29)
    pub enum AlphaOp(4) {
        /// A * B + C
        MAD = 0,
        /// The RGB unit's dot product.
        DP = 1,
        /// A < B ? A : B
        MIN = 2,
        /// A >= B ? A : B; B if both are zeros
        MAX = 3,
        /// C > 0.5 ? A : B
        CND = 5,
        /// C >= 0 ? A : B
        CMP = 6,
        /// A - floor(A)
        FRC = 7,
        /// 2 to the power of A
        EX2 = 8,
        /// Base-two logarithm of A
        LN2 = 9,
        /// 1 / A
        RCP = 10,
        /// 1 / sqrt(A)
        RSQ = 11,
        /// sin(2 * pi * A)
        SIN = 12,
        /// cos(2 * pi * A)
        COS = 13,
        /// Derivative between the columns of the quad.
        MDH = 14,
        /// Derivative between the rows of the quad.
        MDV = 15,
    }

    /// Texture operation. Code 7 is not assigned.
    pub enum TexOp(3) {
        /// Neither fetches nor writes, but may acquire the semaphore.
        NOP = 0,
        /// Plain fetch at S, T, R.
        LD = 1,
        /// Kills lanes in which a component is negative.
        TEXKILL = 2,
        /// Fetch at S/Q, T/Q, R/Q.
        PROJ = 3,
        /// Fetch with the level of detail biased by Q.
        LODBIAS = 4,
        /// Fetch with the level of detail in Q.
        LOD = 5,
        /// Fetch with the level of detail from two derivative registers.
        DXDY = 6,
    }

    /// Channel of a texture coordinate or result. Literals cannot be selected. (CTM guide p. 32)
    pub enum TexSwiz(2) { R = 0, G = 1, B = 2, A = 3 }

    /// Flow-control operation. (CTM guide p. 37)
    pub enum FcOp(3) {
        /// Jumps, calls and returns; opens and closes branches.
        JUMP = 0,
        /// Enters a loop with aL, or skips it.
        LOOP = 1,
        /// Starts the next iteration of a LOOP, or ends the loop.
        ENDLOOP = 2,
        /// Enters a loop without aL, or skips it.
        REP = 3,
        /// Starts the next iteration of a REP, or ends the loop.
        ENDREP = 4,
        /// Leaves a LOOP.
        BREAKLOOP = 5,
        /// Leaves a REP.
        BREAKREP = 6,
        /// Continues with the next iteration of a loop.
        CONTINUE = 7,
    }

    /// Effect of a taken jump on the address stack. Code 3 is not assigned.
    pub enum AOp(2) { NONE = 0, POP = 1, PUSH = 2 }

    /// Operation on the branch counters. Code 3 is not assigned.
    pub enum BOp(2) {
        NONE = 0,
        /// Subtracts B_POP_CNT from the counters of lanes that are off. Lanes below zero become active.
        DECR = 1,
        /// Adds one to the counters of lanes that are off. Active lanes that voted against the decision are switched
        /// off with counter 0.
        INCR = 2,
    }

    /// Render target format. The codes 14 and 22 to 31 are not assigned. (US_OUT_FMT)
    pub enum OutFmt(5) {
        C4_8 = 0, C4_10 = 1, C4_10_GAMMA = 2, C_16 = 3, C2_16 = 4, C4_16 = 5, C_16_MPEG = 6, C2_16_MPEG = 7,
        C2_4 = 8, C_3_3_2 = 9, C_6_5_6 = 10, C_11_11_10 = 11, C_10_11_11 = 12, C_2_10_10_10 = 13,
        UNUSED = 15, C_16_FP = 16, C2_16_FP = 17, C4_16_FP = 18, C_32_FP = 19, C2_32_FP = 20, C4_32_FP = 21,
    }

    /// Channel that a component of a render target receives.
    pub enum OutSel(2) { A = 0, R = 1, G = 2, B = 3 }

    /// Rounding mode of a render target.
    pub enum RoundAdj(1) { NORMAL = 0, MODIFIED = 1 }

    /// Depth output format. Code 3 is not assigned.
    pub enum WFmt(2) {
        /// Always zero.
        W0 = 0,
        /// 24-bit fixed point.
        W24 = 1,
        /// 24-bit float whose bits sort like an integer.
        W24_FP = 2,
    }

    /// Source of the depth output.
    pub enum WSrc(1) { US = 0, RAS = 1 }

    /// Destination of a vector upload.
    pub enum VecType(1) { INSTRUCTIONS = 0, CONSTANTS = 1 }

    /// Result of zero times infinity or NaN.
    pub enum ZeroMul(1) { IEEE = 0, ZERO_WINS = 1 }

    /// Kinds of flow control that are available.
    pub enum FcMode(1) {
        /// Branches only, with a small branch counter. Twice as many threads fit.
        PARTIAL = 0,
        /// Branches, loops and subroutines.
        FULL = 1,
    }

    /// Source of the value for the depth test.
    pub enum DepthSrc(1) { SCAN = 0, SHADER = 1 }
}

word! {
    /// Fields that all instruction types have. (REG)
    pub struct CmnInst(u32) = "US_CMN_INST" {
        r#type:         InstType [1:0],
        /// The instruction is not issued until the texture semaphore is free.
        tex_sem_wait:   bool [2:2],
        /// Predicate of the RGB channels. For an FC instruction, this is the predicate that JUMP_FUNC reads.
        rgb_pred_sel:   PredSel [5:3],
        /// Inverts the predicate of RGB_PRED_SEL.
        rgb_pred_inv:   bool [6:6],
        /// Also writes lanes that are not active.
        write_inactive: bool [7:7],
        /// A hint that active lanes may stop here. The hint does not guarantee that these lanes stop.
        last:           bool [8:8],
        /// One idle issue slot follows.
        nop:            bool [9:9],
        /// The instruction waits until earlier ALU instructions have completed.
        alu_wait:       bool [10:10],
        /// Write mask of the temporary. Bit 0 is red.
        rgb_wmask:      u8 [13:11],
        /// Write mask of the temporary, for alpha.
        alpha_wmask:    bool [14:14],
        /// Output mask of an OUT instruction, or predicate bits that an ALU instruction writes. Bit 0 is red.
        rgb_omask:      u8 [17:15],
        /// Output mask of an OUT instruction for alpha, or whether an ALU instruction writes the alpha predicate bit.
        alpha_omask:    bool [18:18],
        /// Clamps the RGB result to 0..1.
        rgb_clamp:      bool [19:19],
        /// Clamps the alpha result to 0..1.
        alpha_clamp:    bool [20:20],
        /// Channel from which the ALU result is computed.
        alu_result_sel: AluResultSel [21:21],
        /// Inverts the alpha predicate.
        alpha_pred_inv: bool [22:22],
        /// Comparison with zero that sets the ALU result.
        alu_result_op:  AluResultOp [24:23],
        /// Predicate of the alpha channel.
        alpha_pred_sel: PredSel [27:25],
        /// Channels that a statistics counter counts. The field does not affect results.
        stat_we:        u8 [31:28],
    }

    /// Addresses of the sources whose RGB part is read. (REG; CTM guide p. 26)
    pub struct AluRgbAddr(u32) = "US_ALU_RGB_ADDR" {
        addr0:       u8 [7:0],
        addr0_const: bool [8:8],
        addr0_rel:   bool [9:9],
        addr1:       u8 [17:10],
        addr1_const: bool [18:18],
        addr1_rel:   bool [19:19],
        addr2:       u8 [27:20],
        addr2_const: bool [28:28],
        addr2_rel:   bool [29:29],
        srcp_op:     SrcpOp [31:30],
    }

    /// Addresses of the sources whose alpha part is read. (REG; CTM guide p. 26)
    pub struct AluAlphaAddr(u32) = "US_ALU_ALPHA_ADDR" {
        addr0:       u8 [7:0],
        addr0_const: bool [8:8],
        addr0_rel:   bool [9:9],
        addr1:       u8 [17:10],
        addr1_const: bool [18:18],
        addr1_rel:   bool [19:19],
        addr2:       u8 [27:20],
        addr2_const: bool [28:28],
        addr2_rel:   bool [29:29],
        srcp_op:     SrcpOp [31:30],
    }

    /// Operands A and B and output modifier of the RGB unit. (REG; CTM guide p. 27)
    pub struct AluRgbInst(u32) = "US_ALU_RGB_INST" {
        rgb_sel_a:    Sel [1:0],
        red_swiz_a:   Swiz [4:2],
        green_swiz_a: Swiz [7:5],
        blue_swiz_a:  Swiz [10:8],
        rgb_mod_a:    Imod [12:11],
        rgb_sel_b:    Sel [14:13],
        red_swiz_b:   Swiz [17:15],
        green_swiz_b: Swiz [20:18],
        blue_swiz_b:  Swiz [23:21],
        rgb_mod_b:    Imod [25:24],
        omod:         Omod [28:26],
        /// Render target of an OUT instruction, or predicate comparison of an ALU instruction.
        target:       Target [30:29],
        /// Writes the ALU result.
        alu_wmask:    bool [31:31],
    }

    /// Operation, destination, and operands A and B of the alpha unit. (REG; CTM guide p. 29)
    pub struct AluAlphaInst(u32) = "US_ALU_ALPHA_INST" {
        alpha_op:        AlphaOp [3:0],
        alpha_addrd:     u8 [10:4],
        alpha_addrd_rel: bool [11:11],
        alpha_sel_a:     Sel [13:12],
        alpha_swiz_a:    Swiz [16:14],
        alpha_mod_a:     Imod [18:17],
        alpha_sel_b:     Sel [20:19],
        alpha_swiz_b:    Swiz [23:21],
        alpha_mod_b:     Imod [25:24],
        omod:            Omod [28:26],
        /// Render target of an OUT instruction, or predicate comparison of an ALU instruction.
        target:          Target [30:29],
        /// Writes the alpha result to the depth (W) output.
        w_omask:         bool [31:31],
    }

    /// Operation and destination of the RGB unit, and operand C of both units. (REG; CTM guide p. 28)
    pub struct AluRgbaInst(u32) = "US_ALU_RGBA_INST" {
        rgb_op:        RgbOp [3:0],
        rgb_addrd:     u8 [10:4],
        rgb_addrd_rel: bool [11:11],
        rgb_sel_c:     Sel [13:12],
        red_swiz_c:    Swiz [16:14],
        green_swiz_c:  Swiz [19:17],
        blue_swiz_c:   Swiz [22:20],
        rgb_mod_c:     Imod [24:23],
        alpha_sel_c:   Sel [26:25],
        alpha_swiz_c:  Swiz [29:27],
        alpha_mod_c:   Imod [31:30],
    }

    /// Texture operation. (REG; CTM guide p. 32)
    pub struct TexInst(u32) = "US_TEX_INST" {
        tex_id:           u8 [19:16],
        inst:             TexOp [24:22],
        /// Holds the texture semaphore until the data has arrived.
        tex_sem_acquire:  bool [25:25],
        /// Uncovered lanes do not fetch.
        ignore_uncovered: bool [26:26],
        /// Coordinates are in texels instead of 0..1.
        unscaled:         bool [27:27],
    }

    /// Coordinate and destination of a texture operation. (REG; CTM guide p. 32)
    pub struct TexAddr(u32) = "US_TEX_ADDR" {
        src_addr:     u8 [6:0],
        src_addr_rel: bool [7:7],
        src_s_swiz:   TexSwiz [9:8],
        src_t_swiz:   TexSwiz [11:10],
        src_r_swiz:   TexSwiz [13:12],
        src_q_swiz:   TexSwiz [15:14],
        dst_addr:     u8 [22:16],
        dst_addr_rel: bool [23:23],
        dst_r_swiz:   TexSwiz [25:24],
        dst_g_swiz:   TexSwiz [27:26],
        dst_b_swiz:   TexSwiz [29:28],
        dst_a_swiz:   TexSwiz [31:30],
    }

    /// Derivative registers of DXDY. (REG. Mesa's header puts DY_ADDR_REL at bit 17, which is inside DY_ADDR)
    pub struct TexAddrDxDy(u32) = "US_TEX_ADDR_DXDY" {
        dx_addr:     u8 [6:0],
        dx_addr_rel: bool [7:7],
        dx_s_swiz:   TexSwiz [9:8],
        dx_t_swiz:   TexSwiz [11:10],
        dx_r_swiz:   TexSwiz [13:12],
        dx_q_swiz:   TexSwiz [15:14],
        dy_addr:     u8 [22:16],
        dy_addr_rel: bool [23:23],
        dy_s_swiz:   TexSwiz [25:24],
        dy_t_swiz:   TexSwiz [27:26],
        dy_r_swiz:   TexSwiz [29:28],
        dy_q_swiz:   TexSwiz [31:30],
    }

    /// Flow control, first half. (REG; CTM guide p. 37)
    pub struct FcInst(u32) = "US_FC_INST" {
        op:               FcOp [2:0],
        /// Before anything else, swaps active lanes with branch-inactive lanes whose counter is 0.
        b_else:           bool [4:4],
        /// If set, the group jumps if any voter votes to jump. If not set, the group jumps only if all voters vote to
        /// jump.
        jump_any:         bool [5:5],
        a_op:             AOp [7:6],
        /// Truth table with the index 4 * ALU result + 2 * predicate + boolean.
        jump_func:        u8 [15:8],
        /// Number of levels that DECR closes.
        b_pop_cnt:        u8 [20:16],
        /// Operation on the branch counters if the thread stays.
        b_op0:            BOp [25:24],
        /// Operation on the branch counters if the thread jumps.
        b_op1:            BOp [27:26],
        /// Uncovered lanes do not vote.
        ignore_uncovered: bool [28:28],
    }

    /// Flow control, second half. (REG)
    pub struct FcAddr(u32) = "US_FC_ADDR" {
        bool_addr:   u8 [4:0],
        int_addr:    u8 [12:8],
        jump_addr:   u16 [24:16],
        /// If set, JUMP_ADDR is absolute. If not set, OFFSET_ADDR is added to JUMP_ADDR.
        jump_global: bool [31:31],
    }

    /// Floating-point mode. (REG 0x4600)
    pub struct Config(u32) = "US_CONFIG" {
        zero_times_anything_equals_zero: ZeroMul [1:1],
    }

    /// Number of allocated temporaries. (REG 0x4604)
    pub struct PixSize(u32) = "US_PIXSIZE" {
        /// The highest temporary, which is the frame size minus one.
        pix_size: u8 [6:0],
    }

    /// Boolean constants. (REG 0x4620)
    pub struct FcBoolConst(u32) = "US_FC_BOOL_CONST" {
        kbool: u32 [31:0],
    }

    /// Flow-control mode. (REG 0x4624)
    pub struct FcCtrl(u32) = "US_FC_CTRL" {
        test_en:    bool [30:30],
        full_fc_en: FcMode [31:31],
    }

    /// First and last instruction, relative to OFFSET_ADDR. (REG 0x4630)
    pub struct CodeAddr(u32) = "US_CODE_ADDR" {
        start_addr: u16 [8:0],
        end_addr:   u16 [24:16],
    }

    /// Range of the instruction memory that the program may use. (REG 0x4634)
    pub struct CodeRange(u32) = "US_CODE_RANGE" {
        code_addr: u16 [8:0],
        /// Size of the range in instructions, minus one.
        code_size: u16 [24:16],
    }

    /// Number that is added to addresses that are not global. (REG 0x4638)
    pub struct CodeOffset(u32) = "US_CODE_OFFSET" {
        offset_addr: u16 [8:0],
    }

    /// Size of a texture. (REG 0x4640 + 4n)
    pub struct Format0(u32) = "US_FORMAT0" {
        txwidth:  u16 [10:0],
        txheight: u16 [21:11],
        /// Also extends the size: 13 for a width above 2048, 14 for a height above 2048, 15 for both.
        txdepth:  u8 [25:22],
    }

    /// Render target format. (REG 0x46a4 + 4n)
    pub struct OutFmtReg(u32) = "US_OUT_FMT" {
        out_fmt:   OutFmt [4:0],
        c0_sel:    OutSel [9:8],
        c1_sel:    OutSel [11:10],
        c2_sel:    OutSel [13:12],
        c3_sel:    OutSel [15:14],
        out_sign:  u8 [19:16],
        round_adj: RoundAdj [20:20],
    }

    /// Depth output. (REG 0x46b4)
    pub struct WFmtReg(u32) = "US_W_FMT" {
        w_fmt: WFmt [1:0],
        w_src: WSrc [2:2],
    }

    /// Integer constant of a loop. (REG 0x4c00 + 4n)
    pub struct FcIntConst(u32) = "US_FC_INT_CONST" {
        /// Number of iterations.
        kr: u8 [7:0],
        /// Value of aL in the first iteration.
        kg: u8 [15:8],
        /// Number that each iteration adds to aL.
        kb: i8 [23:16],
    }

    /// Destination of the next upload. (REG 0x4250)
    pub struct VectorIndex(u32) = "GA_US_VECTOR_INDEX" {
        index:    u16 [8:0],
        vec_type: VecType [16:16],
        /// Clamps uploaded constants to -1..1.
        clamp:    bool [17:17],
    }

    /// One word of an upload. (REG 0x4254)
    pub struct VectorData(u32) = "GA_US_VECTOR_DATA" {
        data: u32 [31:0],
    }

    /// Source of the depth value. (REG 0x4bd8)
    pub struct DepthSrcReg(u32) = "FG_DEPTH_SRC" {
        depth_src: DepthSrc [0:0],
    }
}

// ---- The CTM model (CTM guide pp. 4-6)

names! {
    /// Layout of the elements. (CTM guide, format parameter)
    pub enum Tiling(2) {
        LINEAR = 0,
        /// The available pages do not document this layout, so this project rejects the layout.
        TILED = 1,
        /// Only for inputs: one fetch returns four neighbours of a single-channel buffer.
        LINEAR_INP_2X2 = 2,
        /// The available pages do not document this layout, so this project rejects the layout.
        TILED_INP_2X2 = 3,
    }

    /// Type of an element. The codes 5 to 7 are reserved. An integer reads as value / maximum, and a channel that does
    /// not exist reads as 0 (recommended, r500.md Q21).
    pub enum Format(3) { UINT16_1 = 0, UINT8_4 = 1, FLOAT32_1 = 2, FLOAT32_2 = 3, FLOAT32_4 = 4 }

    /// Conditional test. The test compares v, the conditional value, with b, the buffer's value. (set_cond_test)
    pub enum CondTest(3) {
        NEVER = 0, LESS = 1, LESS_EQUAL = 2, EQUAL = 3, GREATER_EQUAL = 4, GREATER = 5, NOT_EQUAL = 6, ALWAYS = 7,
    }

    /// Point at which the conditional test applies. (set_cond_loc)
    pub enum CondLoc(1) {
        /// At the end of a program, the test decides whether the outputs of the program are written.
        DPP = 0,
        /// Before a pair is scheduled, the test decides whether the program runs for this pair.
        PE = 1,
    }
}

word! {
    /// The format parameter of set_inp_fmt, set_out_fmt and set_cond_out_fmt. (CTM guide p. 6)
    pub struct FormatParam(u32) = "FORMAT" {
        /// Pitch in elements, divided by four.
        pitch4: u16 [12:2],
        tiling: Tiling [17:16],
        format: Format [26:24],
    }
}

/// The format of an instruction word that the hardware does not read.
pub const UNUSED: WordInfo =
    WordInfo { name: "UNUSED", doc: "Not read for this instruction type.", fields: &[], owned: 0 };

/// Returns the formats of the six words of an instruction of type `kind`, in upload order. (REG)
pub const fn layout(kind: InstType) -> [WordInfo; 6] {
    match kind {
        InstType::ALU | InstType::OUT => [
            CmnInst::INFO,
            AluRgbAddr::INFO,
            AluAlphaAddr::INFO,
            AluRgbInst::INFO,
            AluAlphaInst::INFO,
            AluRgbaInst::INFO,
        ],
        InstType::FC => [CmnInst::INFO, UNUSED, FcInst::INFO, FcAddr::INFO, UNUSED, UNUSED],
        InstType::TEX => [CmnInst::INFO, TexInst::INFO, TexAddr::INFO, TexAddrDxDy::INFO, UNUSED, UNUSED],
    }
}

/// A state register with its name in the manual. If the unit has several such registers, the names of these registers
/// are `NAME_n`.
#[derive(Clone, Copy, Debug)]
pub struct StateRegister {
    /// Format of the register.
    pub word: WordInfo,
    /// Byte address of the first register in the register space.
    pub mmio: u32,
    /// Number of registers.
    pub count: u32,
    /// Distance from one register to the next, in bytes.
    pub stride: u32,
}

/// The state registers that a program needs. (REG)
#[rustfmt::skip]
pub const STATE: &[StateRegister] = &[
    StateRegister { word: VectorIndex::INFO, mmio: 0x4250, count: 1, stride: 4 },
    StateRegister { word: VectorData::INFO,  mmio: 0x4254, count: 1, stride: 4 },
    StateRegister { word: Config::INFO,      mmio: 0x4600, count: 1, stride: 4 },
    StateRegister { word: PixSize::INFO,     mmio: 0x4604, count: 1, stride: 4 },
    StateRegister { word: FcBoolConst::INFO, mmio: 0x4620, count: 1, stride: 4 },
    StateRegister { word: FcCtrl::INFO,      mmio: 0x4624, count: 1, stride: 4 },
    StateRegister { word: CodeAddr::INFO,    mmio: 0x4630, count: 1, stride: 4 },
    StateRegister { word: CodeRange::INFO,   mmio: 0x4634, count: 1, stride: 4 },
    StateRegister { word: CodeOffset::INFO,  mmio: 0x4638, count: 1, stride: 4 },
    StateRegister { word: Format0::INFO,     mmio: 0x4640, count: 16, stride: 4 },
    StateRegister { word: OutFmtReg::INFO,   mmio: 0x46a4, count: 4, stride: 4 },
    StateRegister { word: WFmtReg::INFO,     mmio: 0x46b4, count: 1, stride: 4 },
    StateRegister { word: DepthSrcReg::INFO, mmio: 0x4bd8, count: 1, stride: 4 },
    StateRegister { word: FcIntConst::INFO,  mmio: 0x4c00, count: 32, stride: 4 },
];

/// Returns the state register with the name `name`. If the unit has several registers of this kind, `name` is the
/// manual's name followed by `_n`, and the function also returns the number n. Otherwise, `name` is the manual's name,
/// and the number is 0.
pub fn state_register(name: &str) -> Option<(&'static StateRegister, u32)> {
    named_register(STATE, name)
}

/// Returns the register with the name `name` in a table, and the number n at the end of the name.
pub(crate) fn named_register(
    table: &'static [StateRegister],
    name: &str,
) -> Option<(&'static StateRegister, u32)> {
    table.iter().find_map(|register| {
        if register.count == 1 {
            return (name == register.word.name).then_some((register, 0));
        }
        let digits = name.strip_prefix(register.word.name)?.strip_prefix('_')?;
        let number = digits.parse().ok().filter(|n: &u32| *n < register.count && digits == n.to_string())?;
        Some((register, number))
    })
}

impl CmnInst {
    /// Returns whether the instruction writes a channel of the destination temporary.
    pub(crate) fn writes_temp(&self, channel: usize) -> bool {
        if channel == 3 { self.alpha_wmask } else { self.rgb_wmask >> channel & 1 != 0 }
    }

    /// For an OUT instruction, returns whether the instruction writes this channel of the output. For an ALU
    /// instruction, returns whether the instruction writes the predicate bit of this channel.
    pub(crate) fn writes_output(&self, channel: usize) -> bool {
        if channel == 3 { self.alpha_omask } else { self.rgb_omask >> channel & 1 != 0 }
    }

    /// Returns the number of the predicate bit that enables a channel, and whether the bit is inverted. Returns `None`
    /// if the instruction does not select a predicate.
    ///
    /// If the instruction does not select a predicate, the predicate is true, even if the inversion bit is set.
    /// (docs/r500.md, Q4)
    pub(crate) fn predicate(&self, channel: usize) -> Option<(usize, bool)> {
        let (select, inverted) = match channel {
            3 => (self.alpha_pred_sel, self.alpha_pred_inv),
            _ => (self.rgb_pred_sel, self.rgb_pred_inv),
        };
        let bit = match select {
            PredSel::NONE => return None,
            PredSel::RGBA => channel,
            PredSel::RRRR => 0,
            PredSel::GGGG => 1,
            PredSel::BBBB => 2,
            PredSel::AAAA => 3,
        };
        Some((bit, inverted))
    }

    /// Returns the number of the channel from which the ALU result is computed.
    pub(crate) fn alu_result_channel(&self) -> usize {
        match self.alu_result_sel {
            AluResultSel::RED => 0,
            AluResultSel::ALPHA => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_registers_are_found_by_their_manual_name() {
        assert_eq!(state_register("US_CONFIG").unwrap().0.mmio, 0x4600);
        assert_eq!(state_register("US_FC_INT_CONST_31").unwrap().1, 31);
        for wrong in ["US_FC_INT_CONST", "US_FC_INT_CONST_32", "US_FC_INT_CONST_01", "US_CONFIG_0", "US"] {
            assert!(state_register(wrong).is_none(), "{wrong}");
        }
    }

    /// REG lists the used bits of each word.
    #[test]
    fn every_word_owns_the_documented_bits() {
        let owned = |info: WordInfo| (info.name, info.owned);
        assert_eq!(owned(CmnInst::INFO), ("US_CMN_INST", 0xffff_ffff));
        assert_eq!(owned(TexInst::INFO), ("US_TEX_INST", 0x0fcf_0000));
        assert_eq!(owned(FcInst::INFO), ("US_FC_INST", 0x1f1f_fff7));
        assert_eq!(owned(FcAddr::INFO), ("US_FC_ADDR", 0x81ff_1f1f));
        assert_eq!(owned(OutFmtReg::INFO), ("US_OUT_FMT", 0x001f_ff1f));
        assert_eq!(owned(VectorIndex::INFO), ("GA_US_VECTOR_INDEX", 0x0003_01ff));
        for info in [AluRgbAddr::INFO, AluAlphaAddr::INFO, AluRgbInst::INFO, AluAlphaInst::INFO] {
            assert_eq!(info.owned, 0xffff_ffff, "{}", info.name);
        }
    }
}
