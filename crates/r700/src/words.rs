//! Word formats and enumerated fields. Source: the microcode formats chapter of the manual.

use reconverge_isa::{names, word};

names! {
    /// COND
    pub enum Cond(2) {
        CF_COND_ACTIVE = 0,
        CF_COND_FALSE = 1,
        CF_COND_BOOL = 2,
        CF_COND_NOT_BOOL = 3,
    }
    /// KCACHE_MODE
    pub enum KcacheMode(2) {
        NOP = 0,
        LOCK_1 = 1,
        LOCK_2 = 2,
        LOCK_LOOP_INDEX = 3,
    }
    /// EXPORT_TYPE_SWIZ
    pub enum ExportTypeSwiz(2) {
        PIXEL = 0,
        POS = 1,
        PARAM = 2,
        UNUSED = 3,
    }
    /// EXPORT_TYPE_BUF_R600
    pub enum ExportTypeBufR600(2) {
        WRITE = 0,
        WRITE_IND = 1,
        READ = 2,
        READ_IND = 3,
    }
    /// EXPORT_TYPE_BUF_R700
    pub enum ExportTypeBufR700(2) {
        WRITE = 0,
        WRITE_IND = 1,
        WRITE_ACK = 2,
        WRITE_IND_ACK = 3,
    }
    /// INDEX_MODE_R600
    pub enum IndexModeR600(3) {
        AR_X = 0,
        AR_Y = 1,
        AR_Z = 2,
        AR_W = 3,
        LOOP = 4,
    }
    /// INDEX_MODE_R700
    pub enum IndexModeR700(3) {
        AR_X = 0,
        AR_Y = 1,
        AR_Z = 2,
        AR_W = 3,
        LOOP = 4,
        GLOBAL = 5,
        GLOBAL_AR_X = 6,
    }
    /// PRED_SEL
    pub enum PredSel(2) {
        OFF = 0,
        ZERO = 2,
        ONE = 3,
    }
    /// OMOD
    pub enum Omod(2) {
        OFF = 0,
        M2 = 1,
        M4 = 2,
        D2 = 3,
    }
    /// SEL
    pub enum Sel(3) {
        X = 0,
        Y = 1,
        Z = 2,
        W = 3,
        ZERO = 4,
        ONE = 5,
        MASK = 7,
    }
    /// SEL_SRC2
    pub enum SelSrc2(2) {
        X = 0,
        Y = 1,
        Z = 2,
        W = 3,
    }
    /// SEL_TEX_SRC
    pub enum SelTexSrc(3) {
        X = 0,
        Y = 1,
        Z = 2,
        W = 3,
        ZERO = 4,
        ONE = 5,
        MASK = 7,
    }
    /// VTX_FETCH_TYPE
    pub enum VtxFetchType(2) {
        VERTEX_DATA = 0,
        INSTANCE_DATA = 1,
        NO_INDEX_OFFSET = 2,
    }
    /// NUM_FORMAT
    pub enum NumFormat(2) {
        NORM = 0,
        INT = 1,
        SCALED = 2,
    }
    /// FORMAT_COMP
    pub enum FormatComp(1) {
        UNSIGNED = 0,
        SIGNED = 1,
    }
    /// SRF_MODE
    pub enum SrfMode(1) {
        ZERO_CLAMP_MINUS_ONE = 0,
        NO_ZERO = 1,
    }
    /// ENDIAN
    pub enum Endian(2) {
        NONE = 0,
        SWAP_8IN16 = 1,
        SWAP_8IN32 = 2,
        RESERVED_OR_8IN64 = 3,
    }
    /// COORD_TYPE
    pub enum CoordType(1) {
        UNNORMALIZED = 0,
        NORMALIZED = 1,
    }
    /// DATA_FORMAT
    pub enum DataFormat(6) {
        FMT_INVALID = 0,
        FMT_8 = 1,
        FMT_4_4 = 2,
        FMT_3_3_2 = 3,
        FMT_16 = 5,
        FMT_16_FLOAT = 6,
        FMT_8_8 = 7,
        FMT_5_6_5 = 8,
        FMT_6_5_5 = 9,
        FMT_1_5_5_5 = 10,
        FMT_4_4_4_4 = 11,
        FMT_5_5_5_1 = 12,
        FMT_32 = 13,
        FMT_32_FLOAT = 14,
        FMT_16_16 = 15,
        FMT_16_16_FLOAT = 16,
        FMT_8_24 = 17,
        FMT_8_24_FLOAT = 18,
        FMT_24_8 = 19,
        FMT_24_8_FLOAT = 20,
        FMT_10_11_11 = 21,
        FMT_10_11_11_FLOAT = 22,
        FMT_11_11_10 = 23,
        FMT_11_11_10_FLOAT = 24,
        FMT_2_10_10_10 = 25,
        FMT_8_8_8_8 = 26,
        FMT_10_10_10_2 = 27,
        FMT_X24_8_32_FLOAT = 28,
        FMT_32_32 = 29,
        FMT_32_32_FLOAT = 30,
        FMT_16_16_16_16 = 31,
        FMT_16_16_16_16_FLOAT = 32,
        FMT_32_32_32_32 = 34,
        FMT_32_32_32_32_FLOAT = 35,
        FMT_1 = 37,
        FMT_GB_GR = 39,
        FMT_BG_RG = 40,
        FMT_32_AS_8 = 41,
        FMT_32_AS_8_8 = 42,
        FMT_5_9_9_9_SHAREDEXP = 43,
        FMT_8_8_8 = 44,
        FMT_16_16_16 = 45,
        FMT_16_16_16_FLOAT = 46,
        FMT_32_32_32 = 47,
        FMT_32_32_32_FLOAT = 48,
        FMT_BC1 = 49,
        FMT_BC2 = 50,
        FMT_BC3 = 51,
        FMT_BC4 = 52,
        FMT_BC5 = 53,
    }
    /// MEM_OP
    pub enum MemOp(3) {
        RD_SCRATCH = 0,
        RD_REDUC = 1,
        RD_SCATTER = 2,
        LOCAL_DS_WRITE = 4,
        LOCAL_DS_READ = 5,
        GLOBAL_DS_WRITE = 6,
        GLOBAL_DS_READ = 7,
    }
    /// DSR_MUX
    pub enum DsrMux(2) {
        NONE = 0,
        FFT_PERMUTE = 1,
        WORD_SELECT = 2,
    }
    /// cf
    pub enum CfInst(7) {
        NOP = 0,
        TEX = 1,
        VTX = 2,
        VTX_TC = 3,
        LOOP_START = 4,
        LOOP_END = 5,
        LOOP_START_DX10 = 6,
        LOOP_START_NO_AL = 7,
        LOOP_CONTINUE = 8,
        LOOP_BREAK = 9,
        JUMP = 10,
        PUSH = 11,
        PUSH_ELSE = 12,
        ELSE = 13,
        POP = 14,
        POP_JUMP = 15,
        POP_PUSH = 16,
        POP_PUSH_ELSE = 17,
        CALL = 18,
        CALL_FS = 19,
        RETURN = 20,
        EMIT_VERTEX = 21,
        EMIT_CUT_VERTEX = 22,
        CUT_VERTEX = 23,
        KILL = 24,
        END_PROGRAM = 25,
        WAIT_ACK = 26,
        TEX_ACK = 27,
        VTX_ACK = 28,
        VTX_TC_ACK = 29,
    }
    /// cf_export
    pub enum ExportInst(7) {
        MEM_STREAM0 = 32,
        MEM_STREAM1 = 33,
        MEM_STREAM2 = 34,
        MEM_STREAM3 = 35,
        MEM_SCRATCH = 36,
        MEM_REDUCTION = 37,
        MEM_RING = 38,
        EXPORT = 39,
        EXPORT_DONE = 40,
        MEM_EXPORT = 58,
    }
    /// What an ALU clause does to the stack and to lanes that fail its predicate: the 4-bit CF_INST of a CF_ALU word.
    pub enum AluForm(4) {
        ALU = 8,
        ALU_PUSH_BEFORE = 9,
        ALU_POP_AFTER = 10,
        ALU_POP2_AFTER = 11,
        ALU_CONTINUE = 13,
        ALU_BREAK = 14,
        ALU_ELSE_AFTER = 15,
    }
    /// op2
    pub enum Op2(11) {
        ADD = 0,
        MUL = 1,
        MUL_IEEE = 2,
        MAX = 3,
        MIN = 4,
        MAX_DX10 = 5,
        MIN_DX10 = 6,
        FREXP_64 = 7,
        SETE = 8,
        SETGT = 9,
        SETGE = 10,
        SETNE = 11,
        SETE_DX10 = 12,
        SETGT_DX10 = 13,
        SETGE_DX10 = 14,
        SETNE_DX10 = 15,
        FRACT = 16,
        TRUNC = 17,
        CEIL = 18,
        RNDNE = 19,
        FLOOR = 20,
        MOVA = 21,
        MOVA_FLOOR = 22,
        ADD_64 = 23,
        MOVA_INT = 24,
        MOV = 25,
        NOP = 26,
        MUL_64 = 27,
        FLT64_TO_FLT32 = 28,
        FLT32_TO_FLT64 = 29,
        PRED_SETGT_UINT = 30,
        PRED_SETGE_UINT = 31,
        PRED_SETE = 32,
        PRED_SETGT = 33,
        PRED_SETGE = 34,
        PRED_SETNE = 35,
        PRED_SET_INV = 36,
        PRED_SET_POP = 37,
        PRED_SET_CLR = 38,
        PRED_SET_RESTORE = 39,
        PRED_SETE_PUSH = 40,
        PRED_SETGT_PUSH = 41,
        PRED_SETGE_PUSH = 42,
        PRED_SETNE_PUSH = 43,
        KILLE = 44,
        KILLGT = 45,
        KILLGE = 46,
        KILLNE = 47,
        AND_INT = 48,
        OR_INT = 49,
        XOR_INT = 50,
        NOT_INT = 51,
        ADD_INT = 52,
        SUB_INT = 53,
        MAX_INT = 54,
        MIN_INT = 55,
        MAX_UINT = 56,
        MIN_UINT = 57,
        SETE_INT = 58,
        SETGT_INT = 59,
        SETGE_INT = 60,
        SETNE_INT = 61,
        SETGT_UINT = 62,
        SETGE_UINT = 63,
        KILLGT_UINT = 64,
        KILLGE_UINT = 65,
        PRED_SETE_INT = 66,
        PRED_SETGT_INT = 67,
        PRED_SETGE_INT = 68,
        PRED_SETNE_INT = 69,
        KILLE_INT = 70,
        KILLGT_INT = 71,
        KILLGE_INT = 72,
        KILLNE_INT = 73,
        PRED_SETE_PUSH_INT = 74,
        PRED_SETGT_PUSH_INT = 75,
        PRED_SETGE_PUSH_INT = 76,
        PRED_SETNE_PUSH_INT = 77,
        PRED_SETLT_PUSH_INT = 78,
        PRED_SETLE_PUSH_INT = 79,
        DOT4 = 80,
        DOT4_IEEE = 81,
        CUBE = 82,
        MAX4 = 83,
        MOVA_GPR_INT = 96,
        EXP_IEEE = 97,
        LOG_CLAMPED = 98,
        LOG_IEEE = 99,
        RECIP_CLAMPED = 100,
        RECIP_FF = 101,
        RECIP_IEEE = 102,
        RECIPSQRT_CLAMPED = 103,
        RECIPSQRT_FF = 104,
        RECIPSQRT_IEEE = 105,
        SQRT_IEEE = 106,
        FLT_TO_INT = 107,
        INT_TO_FLT = 108,
        UINT_TO_FLT = 109,
        SIN = 110,
        COS = 111,
        ASHR_INT = 112,
        LSHR_INT = 113,
        LSHL_INT = 114,
        MULLO_INT = 115,
        MULHI_INT = 116,
        MULLO_UINT = 117,
        MULHI_UINT = 118,
        RECIP_INT = 119,
        RECIP_UINT = 120,
        FLT_TO_UINT = 121,
        LDEXP_64 = 122,
        FRACT_64 = 123,
        PRED_SETGT_64 = 124,
        PRED_SETE_64 = 125,
        PRED_SETGE_64 = 126,
    }
    /// op3
    pub enum Op3(5) {
        MULADD_64 = 8,
        MULADD_64_M2 = 9,
        MULADD_64_M4 = 10,
        MULADD_64_D2 = 11,
        MUL_LIT = 12,
        MUL_LIT_M2 = 13,
        MUL_LIT_M4 = 14,
        MUL_LIT_D2 = 15,
        MULADD = 16,
        MULADD_M2 = 17,
        MULADD_M4 = 18,
        MULADD_D2 = 19,
        MULADD_IEEE = 20,
        MULADD_IEEE_M2 = 21,
        MULADD_IEEE_M4 = 22,
        MULADD_IEEE_D2 = 23,
        CNDE = 24,
        CNDGT = 25,
        CNDGE = 26,
        CNDE_INT = 28,
        CNDGT_INT = 29,
        CNDGE_INT = 30,
    }
    /// tex
    pub enum TexInst(5) {
        LD = 3,
        GET_TEXTURE_RESINFO = 4,
        GET_NUMBER_OF_SAMPLES = 5,
        GET_LOD = 6,
        GET_GRADIENTS_H = 7,
        GET_GRADIENTS_V = 8,
        GET_LERP = 9,
        KEEP_GRADIENTS = 10,
        SET_GRADIENTS_H = 11,
        SET_GRADIENTS_V = 12,
        PASS = 13,
        SET_CUBEMAP_INDEX = 14,
        FETCH4 = 15,
        SAMPLE = 16,
        SAMPLE_L = 17,
        SAMPLE_LB = 18,
        SAMPLE_LZ = 19,
        SAMPLE_G = 20,
        SAMPLE_G_L = 21,
        SAMPLE_G_LB = 22,
        SAMPLE_G_LZ = 23,
        SAMPLE_C = 24,
        SAMPLE_C_L = 25,
        SAMPLE_C_LB = 26,
        SAMPLE_C_LZ = 27,
        SAMPLE_C_G = 28,
        SAMPLE_C_G_L = 29,
        SAMPLE_C_G_LB = 30,
        SAMPLE_C_G_LZ = 31,
    }
    /// vtx
    pub enum VtxInst(5) {
        FETCH = 0,
        SEMANTIC = 1,
    }
}

word! {
    /// CF_DWORD0.
    pub struct CfDword0(u32) = "CF_DWORD0" {
        addr: u32 [31:0],
    }
    /// CF_DWORD1.
    pub struct CfDword1R600(u32) = "CF_DWORD1" {
        pop_count: u8 [2:0],
        cf_const: u8 [7:3],
        cond: Cond [9:8],
        count: u8 [12:10],
        call_count: u8 [18:13],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_DWORD1.
    pub struct CfDword1R700(u32) = "CF_DWORD1" {
        pop_count: u8 [2:0],
        cf_const: u8 [7:3],
        cond: Cond [9:8],
        count: u8 [12:10],
        call_count: u8 [18:13],
        count_3: bool [19:19],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALU_DWORD0.
    pub struct CfAluDword0(u32) = "CF_ALU_DWORD0" {
        addr: u32 [21:0],
        kcache_bank0: u8 [25:22],
        kcache_bank1: u8 [29:26],
        kcache_mode0: KcacheMode [31:30],
    }
    /// CF_ALU_DWORD1.
    pub struct CfAluDword1R600(u32) = "CF_ALU_DWORD1" {
        kcache_mode1: KcacheMode [1:0],
        kcache_addr0: u8 [9:2],
        kcache_addr1: u8 [17:10],
        count: u8 [24:18],
        uses_waterfall: bool [25:25],
        cf_inst: u8 [29:26],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALU_DWORD1.
    pub struct CfAluDword1R700(u32) = "CF_ALU_DWORD1" {
        kcache_mode1: KcacheMode [1:0],
        kcache_addr0: u8 [9:2],
        kcache_addr1: u8 [17:10],
        count: u8 [24:18],
        alt_const: bool [25:25],
        cf_inst: u8 [29:26],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALLOC_EXPORT_DWORD0.
    pub struct CfAllocExportDword0(u32) = "CF_ALLOC_EXPORT_DWORD0" {
        array_base: u16 [12:0],
        type_code: u8 [14:13],
        rw_gpr: u8 [21:15],
        rw_rel: bool [22:22],
        index_gpr: u8 [29:23],
        elem_size: u8 [31:30],
    }
    /// CF_ALLOC_EXPORT_DWORD1_BUF.
    pub struct CfAllocExportDword1BufR600(u32) = "CF_ALLOC_EXPORT_DWORD1_BUF" {
        array_size: u16 [11:0],
        comp_mask: u8 [15:12],
        elem_loop: bool [16:16],
        burst_count: u8 [20:17],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALLOC_EXPORT_DWORD1_SWIZ.
    pub struct CfAllocExportDword1SwizR600(u32) = "CF_ALLOC_EXPORT_DWORD1_SWIZ" {
        sel_x: Sel [2:0],
        sel_y: Sel [5:3],
        sel_z: Sel [8:6],
        sel_w: Sel [11:9],
        elem_loop: bool [16:16],
        burst_count: u8 [20:17],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALLOC_EXPORT_DWORD1_BUF.
    pub struct CfAllocExportDword1BufR700(u32) = "CF_ALLOC_EXPORT_DWORD1_BUF" {
        array_size: u16 [11:0],
        comp_mask: u8 [15:12],
        burst_count: u8 [20:17],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// CF_ALLOC_EXPORT_DWORD1_SWIZ.
    pub struct CfAllocExportDword1SwizR700(u32) = "CF_ALLOC_EXPORT_DWORD1_SWIZ" {
        sel_x: Sel [2:0],
        sel_y: Sel [5:3],
        sel_z: Sel [8:6],
        sel_w: Sel [11:9],
        burst_count: u8 [20:17],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
    }
    /// ALU_DWORD0.
    pub struct AluDword0(u32) = "ALU_DWORD0" {
        src0_sel: u16 [8:0],
        src0_rel: bool [9:9],
        src0_chan: u8 [11:10],
        src0_neg: bool [12:12],
        src1_sel: u16 [21:13],
        src1_rel: bool [22:22],
        src1_chan: u8 [24:23],
        src1_neg: bool [25:25],
        index_mode: IndexModeR700 [28:26],
        pred_sel: PredSel [30:29],
        last: bool [31:31],
    }
    /// ALU_DWORD1_OP2.
    pub struct AluDword1Op2R600(u32) = "ALU_DWORD1_OP2" {
        src0_abs: bool [0:0],
        src1_abs: bool [1:1],
        update_execute_mask: bool [2:2],
        update_pred: bool [3:3],
        write_mask: bool [4:4],
        fog_merge: bool [5:5],
        omod: Omod [7:6],
        alu_inst: u16 [17:8],
        bank_swizzle: u8 [20:18],
        dst_gpr: u8 [27:21],
        dst_rel: bool [28:28],
        dst_chan: u8 [30:29],
        clamp: bool [31:31],
    }
    /// ALU_DWORD1_OP2.
    pub struct AluDword1Op2R700(u32) = "ALU_DWORD1_OP2" {
        src0_abs: bool [0:0],
        src1_abs: bool [1:1],
        update_execute_mask: bool [2:2],
        update_pred: bool [3:3],
        write_mask: bool [4:4],
        omod: Omod [6:5],
        alu_inst: u16 [17:7],
        bank_swizzle: u8 [20:18],
        dst_gpr: u8 [27:21],
        dst_rel: bool [28:28],
        dst_chan: u8 [30:29],
        clamp: bool [31:31],
    }
    /// ALU_DWORD1_OP3.
    pub struct AluDword1Op3(u32) = "ALU_DWORD1_OP3" {
        src2_sel: u16 [8:0],
        src2_rel: bool [9:9],
        src2_chan: u8 [11:10],
        src2_neg: bool [12:12],
        alu_inst: Op3 [17:13],
        bank_swizzle: u8 [20:18],
        dst_gpr: u8 [27:21],
        dst_rel: bool [28:28],
        dst_chan: u8 [30:29],
        clamp: bool [31:31],
    }
    /// ALU_LITERAL_PAIR_DWORD0.
    pub struct AluLiteralPairDword0(u32) = "ALU_LITERAL_PAIR_DWORD0" {
        value: u32 [31:0],
    }
    /// ALU_LITERAL_PAIR_DWORD1.
    pub struct AluLiteralPairDword1(u32) = "ALU_LITERAL_PAIR_DWORD1" {
        value: u32 [31:0],
    }
    /// VTX_DWORD0.
    pub struct VtxDword0(u32) = "VTX_DWORD0" {
        vtx_inst: VtxInst [4:0],
        fetch_type: VtxFetchType [6:5],
        fetch_whole_quad: bool [7:7],
        buffer_id: u8 [15:8],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
        src_sel_x: SelSrc2 [25:24],
        mega_fetch_count: u8 [31:26],
    }
    /// VTX_DWORD1_GPR.
    pub struct VtxDword1Gpr(u32) = "VTX_DWORD1_GPR" {
        dst_gpr: u8 [6:0],
        dst_rel: bool [7:7],
        dst_sel_x: Sel [11:9],
        dst_sel_y: Sel [14:12],
        dst_sel_z: Sel [17:15],
        dst_sel_w: Sel [20:18],
        use_const_fields: bool [21:21],
        data_format: DataFormat [27:22],
        num_format_all: NumFormat [29:28],
        format_comp_all: FormatComp [30:30],
        srf_mode_all: SrfMode [31:31],
    }
    /// VTX_DWORD1_SEM.
    pub struct VtxDword1Sem(u32) = "VTX_DWORD1_SEM" {
        semantic_id: u8 [7:0],
        dst_sel_x: Sel [11:9],
        dst_sel_y: Sel [14:12],
        dst_sel_z: Sel [17:15],
        dst_sel_w: Sel [20:18],
        use_const_fields: bool [21:21],
        data_format: DataFormat [27:22],
        num_format_all: NumFormat [29:28],
        format_comp_all: FormatComp [30:30],
        srf_mode_all: SrfMode [31:31],
    }
    /// VTX_DWORD2.
    pub struct VtxDword2R600(u32) = "VTX_DWORD2" {
        offset: u16 [15:0],
        endian_swap: Endian [17:16],
        const_buf_no_stride: bool [18:18],
        mega_fetch: bool [19:19],
    }
    /// VTX_DWORD2.
    pub struct VtxDword2R700(u32) = "VTX_DWORD2" {
        offset: u16 [15:0],
        endian_swap: Endian [17:16],
        const_buf_no_stride: bool [18:18],
        mega_fetch: bool [19:19],
        alt_const: bool [20:20],
    }
    /// TEX_DWORD0.
    pub struct TexDword0R600(u32) = "TEX_DWORD0" {
        tex_inst: TexInst [4:0],
        bc_frac_mode: bool [5:5],
        fetch_whole_quad: bool [7:7],
        resource_id: u8 [15:8],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
    }
    /// TEX_DWORD0.
    pub struct TexDword0R700(u32) = "TEX_DWORD0" {
        tex_inst: TexInst [4:0],
        bc_frac_mode: bool [5:5],
        fetch_whole_quad: bool [7:7],
        resource_id: u8 [15:8],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
        alt_const: bool [24:24],
    }
    /// TEX_DWORD1.
    pub struct TexDword1(u32) = "TEX_DWORD1" {
        dst_gpr: u8 [6:0],
        dst_rel: bool [7:7],
        dst_sel_x: Sel [11:9],
        dst_sel_y: Sel [14:12],
        dst_sel_z: Sel [17:15],
        dst_sel_w: Sel [20:18],
        lod_bias: u8 [27:21],
        coord_type_x: CoordType [28:28],
        coord_type_y: CoordType [29:29],
        coord_type_z: CoordType [30:30],
        coord_type_w: CoordType [31:31],
    }
    /// TEX_DWORD2.
    pub struct TexDword2(u32) = "TEX_DWORD2" {
        offset_x: u8 [4:0],
        offset_y: u8 [9:5],
        offset_z: u8 [14:10],
        sampler_id: u8 [19:15],
        src_sel_x: SelTexSrc [22:20],
        src_sel_y: SelTexSrc [25:23],
        src_sel_z: SelTexSrc [28:26],
        src_sel_w: SelTexSrc [31:29],
    }
    /// MEM_RD_DWORD0.
    pub struct MemRdDword0(u32) = "MEM_RD_DWORD0" {
        mem_inst: u8 [4:0],
        elem_size: u8 [6:5],
        fetch_whole_quad: bool [7:7],
        mem_op: MemOp [10:8],
        uncached: bool [11:11],
        indexed: bool [12:12],
        src_sel_y: SelSrc2 [14:13],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
        src_sel_x: SelSrc2 [25:24],
        burst_count: u8 [29:26],
        lds_req: bool [30:30],
        coalesced_read: bool [31:31],
    }
    /// MEM_RD_DWORD1.
    pub struct MemRdDword1(u32) = "MEM_RD_DWORD1" {
        dst_gpr: u8 [6:0],
        dst_rel: bool [7:7],
        dst_sel_x: Sel [11:9],
        dst_sel_y: Sel [14:12],
        dst_sel_z: Sel [17:15],
        dst_sel_w: Sel [20:18],
        data_format: DataFormat [27:22],
        num_format_all: NumFormat [29:28],
        format_comp_all: FormatComp [30:30],
        srf_mode_all: SrfMode [31:31],
    }
    /// MEM_RD_DWORD2.
    pub struct MemRdDword2(u32) = "MEM_RD_DWORD2" {
        array_base: u16 [12:0],
        endian_swap: Endian [17:16],
        array_size: u16 [31:20],
    }
    /// MEM_DSW_DWORD0.
    pub struct MemDswDword0(u32) = "MEM_DSW_DWORD0" {
        mem_inst: u8 [4:0],
        mem_op: MemOp [10:8],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
    }
    /// MEM_DSW_DWORD1.
    pub struct MemDswDword1(u32) = "MEM_DSW_DWORD1" {
        dst_index: u8 [5:0],
        dst_stride: u8 [12:6],
        simd_wave_rel: bool [13:13],
        burst_count: u8 [17:14],
    }
    /// MEM_DSR_DWORD0.
    pub struct MemDsrDword0(u32) = "MEM_DSR_DWORD0" {
        mem_inst: u8 [4:0],
        mem_op: MemOp [10:8],
        src_gpr: u8 [22:16],
        src_rel: bool [23:23],
        src_sel_x: SelSrc2 [25:24],
        src_sel_y: SelSrc2 [27:26],
    }
    /// MEM_DSR_DWORD1.
    pub struct MemDsrDword1(u32) = "MEM_DSR_DWORD1" {
        dst_gpr: u8 [6:0],
        dst_rel: bool [7:7],
        dst_sel_x: Sel [11:9],
        dst_sel_y: Sel [14:12],
        dst_sel_z: Sel [17:15],
        dst_sel_w: Sel [20:18],
        mux_cntl: DsrMux [22:21],
        simd_wave_rel: bool [23:23],
        broadcast: bool [24:24],
        waterfall: bool [25:25],
    }
}
