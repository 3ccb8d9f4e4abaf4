//! Word formats and enumerated fields. Source: the microcode formats chapter of the manual.

use reconverge_isa::{names, word};

names! {
    /// Condition of a control-flow word: the field COND.
    pub enum Cond(2) {
        /// Active lanes pass.
        CF_COND_ACTIVE = 0,
        /// No lane passes.
        CF_COND_FALSE = 1,
        /// Active lanes pass if boolean constant CF_CONST is 1.
        CF_COND_BOOL = 2,
        /// Active lanes pass if boolean constant CF_CONST is 0.
        CF_COND_NOT_BOOL = 3,
    }
    /// Mode in which a clause locks constants: the field KCACHE_MODE.
    pub enum KcacheMode(2) {
        NOP = 0,
        LOCK_1 = 1,
        LOCK_2 = 2,
        LOCK_LOOP_INDEX = 3,
    }
    /// Index of relative operands: the field INDEX_MODE.
    pub enum IndexModeR700(3) {
        AR_X = 0,
        AR_Y = 1,
        AR_Z = 2,
        AR_W = 3,
        LOOP = 4,
        GLOBAL = 5,
        GLOBAL_AR_X = 6,
    }
    /// Predicate that a lane must have: the field PRED_SEL.
    pub enum PredSel(2) {
        OFF = 0,
        ZERO = 2,
        ONE = 3,
    }
    /// Factor of a result: the field OMOD.
    pub enum Omod(2) {
        OFF = 0,
        M2 = 1,
        M4 = 2,
        D2 = 3,
    }
    /// Source of a component: the selects of fetches and exports.
    pub enum Sel(3) {
        X = 0,
        Y = 1,
        Z = 2,
        W = 3,
        ZERO = 4,
        ONE = 5,
        MASK = 7,
    }
    /// Component of a source register: the two-bit selects of fetches.
    pub enum SelSrc2(2) {
        X = 0,
        Y = 1,
        Z = 2,
        W = 3,
    }
    /// Base of a vertex fetch: the field FETCH_TYPE.
    pub enum VtxFetchType(2) {
        VERTEX_DATA = 0,
        INSTANCE_DATA = 1,
        NO_INDEX_OFFSET = 2,
    }
    /// Conversion of integers to numbers: the field NUM_FORMAT_ALL.
    pub enum NumFormat(2) {
        NORM = 0,
        INT = 1,
        SCALED = 2,
    }
    /// Whether components are signed: the field FORMAT_COMP_ALL.
    pub enum FormatComp(1) {
        UNSIGNED = 0,
        SIGNED = 1,
    }
    /// Conversion of signed fractions: the field SRF_MODE_ALL.
    pub enum SrfMode(1) {
        ZERO_CLAMP_MINUS_ONE = 0,
        NO_ZERO = 1,
    }
    /// Order of bytes in memory: the field ENDIAN_SWAP.
    pub enum Endian(2) {
        NONE = 0,
        SWAP_8IN16 = 1,
        SWAP_8IN32 = 2,
        RESERVED_OR_8IN64 = 3,
    }
    /// Unit of a texture coordinate: the COORD_TYPE fields.
    pub enum CoordType(1) {
        UNNORMALIZED = 0,
        NORMALIZED = 1,
    }
    /// Format of an element in memory: the field DATA_FORMAT.
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
    /// Memory instructions of fetch clauses: the field MEM_OP.
    pub enum MemOp(3) {
        /// Reads the lane's scratch memory.
        RD_SCRATCH = 0,
        /// Reads the reduction buffer.
        RD_REDUC = 1,
        /// Reads the buffer that MEM_EXPORT writes.
        RD_SCATTER = 2,
        /// Writes a register to the thread's own area of the local data share.
        LOCAL_DS_WRITE = 4,
        /// Reads any area of the local data share.
        LOCAL_DS_READ = 5,
        /// Writes the global data share. (The layout of its words is not documented.)
        GLOBAL_DS_WRITE = 6,
        /// Reads the global data share. (The layout of its words is not documented.)
        GLOBAL_DS_READ = 7,
    }
    /// Distribution of the dwords that LOCAL_DS_READ reads: the field MUX_CNTL.
    pub enum DsrMux(2) {
        NONE = 0,
        FFT_PERMUTE = 1,
        WORD_SELECT = 2,
    }
    /// Control-flow instructions, except for ALU clauses and exports: the 7-bit CF_INST.
    pub enum CfInst(7) {
        /// Does nothing.
        NOP = 0,
        /// Runs a clause of fetch instructions, through the texture cache.
        TEX = 1,
        /// Runs a clause of vertex fetches, through the vertex cache.
        VTX = 2,
        /// Runs a clause of vertex fetches, through the texture cache.
        VTX_TC = 3,
        /// Begins a loop that runs COUNT times. aL starts at INIT and increases by INC in each iteration. Loop constant
        /// CF_CONST contains the three numbers.
        LOOP_START = 4,
        /// Ends an iteration of a loop. Jumps to the instruction after its LOOP_START, or continues if no lane runs
        /// another iteration.
        LOOP_END = 5,
        /// Begins a loop without a count. Only breaks end the loop.
        LOOP_START_DX10 = 6,
        /// Begins a loop that runs COUNT times. Loop constant CF_CONST contains this number. The aL of the enclosing
        /// loop does not change.
        LOOP_START_NO_AL = 7,
        /// Ends the iteration of the innermost loop for the lanes that pass.
        LOOP_CONTINUE = 8,
        /// Ends the innermost loop for the lanes that pass.
        LOOP_BREAK = 9,
        /// Jumps to ADDR if no lane passes.
        JUMP = 10,
        /// Pushes the active mask and continues with the lanes that pass.
        PUSH = 11,
        /// Pushes the active mask and continues with the lanes that do not pass.
        PUSH_ELSE = 12,
        /// Swaps the sides of the innermost push: the active lanes wait, and the waiting lanes of the push run.
        ELSE = 13,
        /// Pops POP_COUNT entries.
        POP = 14,
        /// Pops POP_COUNT entries, then jumps to ADDR if no lane passes.
        POP_JUMP = 15,
        /// Pops POP_COUNT entries, then pushes the active mask and continues with the lanes that pass.
        POP_PUSH = 16,
        /// Pops POP_COUNT entries, then pushes the active mask and continues with the lanes that do not pass.
        POP_PUSH_ELSE = 17,
        /// Calls the subroutine at ADDR.
        CALL = 18,
        /// Calls the fetch program that the host has set.
        CALL_FS = 19,
        /// Returns from a subroutine or a fetch program.
        RETURN = 20,
        /// Ends the current vertex of the lanes that pass.
        EMIT_VERTEX = 21,
        /// Ends the current vertex and the strip of the lanes that pass.
        EMIT_CUT_VERTEX = 22,
        /// Ends the strip of the lanes that pass.
        CUT_VERTEX = 23,
        /// Removes from the valid mask the lanes that pass. The exports of these lanes are dropped.
        KILL = 24,
        /// Ends the program. (Only opcode tables contain this instruction. The manual reserves its number.)
        END_PROGRAM = 25,
        /// Waits until ADDR or fewer acknowledges of writes are outstanding.
        WAIT_ACK = 26,
        /// Runs a clause of fetch instructions, through the texture cache, and requests an acknowledge.
        TEX_ACK = 27,
        /// Runs a clause of vertex fetches, through the vertex cache, and requests an acknowledge.
        VTX_ACK = 28,
        /// Runs a clause of vertex fetches, through the texture cache, and requests an acknowledge.
        VTX_TC_ACK = 29,
    }
    /// Export instructions: the 7-bit CF_INST of their words.
    pub enum ExportInst(7) {
        /// Writes registers to stream-out buffer 0.
        MEM_STREAM0 = 32,
        /// Writes registers to stream-out buffer 1.
        MEM_STREAM1 = 33,
        /// Writes registers to stream-out buffer 2.
        MEM_STREAM2 = 34,
        /// Writes registers to stream-out buffer 3.
        MEM_STREAM3 = 35,
        /// Writes registers to the lane's scratch memory. On R600, the instruction can also read.
        MEM_SCRATCH = 36,
        /// Writes registers to the reduction buffer. On R600, the instruction can also read.
        MEM_REDUCTION = 37,
        /// Writes registers to the ring between the vertex and the geometry program.
        MEM_RING = 38,
        /// Exports registers: colours, positions or parameters.
        EXPORT = 39,
        /// Exports registers, as the last export of its kind.
        EXPORT_DONE = 40,
        /// Writes registers to the buffer that all lanes share. The order of the writes of different lanes is not
        /// defined.
        MEM_EXPORT = 58,
    }
    /// Effect of an ALU clause on the stack, and on lanes that fail its predicate. The 4-bit CF_INST of a CF_ALU word
    /// encodes this effect.
    pub enum AluForm(4) {
        /// Runs a clause of ALU groups.
        ALU = 8,
        /// Pushes the active mask, then runs a clause of ALU groups.
        ALU_PUSH_BEFORE = 9,
        /// Runs a clause of ALU groups, then pops one entry.
        ALU_POP_AFTER = 10,
        /// Runs a clause of ALU groups, then pops two entries.
        ALU_POP2_AFTER = 11,
        /// Runs a clause of ALU groups. Lanes that fail the predicate of the clause end their iteration of the loop.
        ALU_CONTINUE = 13,
        /// Runs a clause of ALU groups. Lanes that fail the predicate of the clause leave the loop.
        ALU_BREAK = 14,
        /// Runs a clause of ALU groups, then swaps the sides of the innermost push.
        ALU_ELSE_AFTER = 15,
    }
    /// Opcodes with up to two operands: ALU_INST of OP2.
    pub enum Op2(11) {
        /// Adds src0 and src1, and rounds the sum to nearest even. Denormals are treated as 0.
        ADD = 0,
        /// Multiplies src0 by src1. If a factor is 0, the product is 0, whatever the other factor is.
        MUL = 1,
        /// Multiplies src0 by src1 according to IEEE 754. Denormals are treated as 0.
        MUL_IEEE = 2,
        /// Returns the larger of src0 and src1. If one operand is a NaN, returns src1.
        MAX = 3,
        /// Returns the smaller of src0 and src1. If one operand is a NaN, returns src1.
        MIN = 4,
        /// Returns the larger of src0 and src1. If one operand is a NaN, returns the other operand.
        MAX_DX10 = 5,
        /// Returns the smaller of src0 and src1. If one operand is a NaN, returns the other operand.
        MIN_DX10 = 6,
        /// Splits a double into an integer exponent and a mantissa, over four slots.
        FREXP_64 = 7,
        /// Returns 1.0 if src0 equals src1 as floats, and otherwise 0.0.
        SETE = 8,
        /// Returns 1.0 if src0 is greater than src1 as floats, and otherwise 0.0.
        SETGT = 9,
        /// Returns 1.0 if src0 is greater than or equal to src1 as floats, and otherwise 0.0.
        SETGE = 10,
        /// Returns 1.0 if src0 differs from src1 as floats, and otherwise 0.0.
        SETNE = 11,
        /// Returns all bits set if src0 equals src1 as floats, and otherwise 0.
        SETE_DX10 = 12,
        /// Returns all bits set if src0 is greater than src1 as floats, and otherwise 0.
        SETGT_DX10 = 13,
        /// Returns all bits set if src0 is greater than or equal to src1 as floats, and otherwise 0.
        SETGE_DX10 = 14,
        /// Returns all bits set if src0 differs from src1 as floats, and otherwise 0.
        SETNE_DX10 = 15,
        /// Returns src0 minus the largest integer that is not above src0.
        FRACT = 16,
        /// Rounds src0 toward 0 to an integer, as a float.
        TRUNC = 17,
        /// Rounds src0 up to an integer, as a float.
        CEIL = 18,
        /// Rounds src0 to the nearest integer, ties to even, as a float.
        RNDNE = 19,
        /// Rounds src0 down to an integer, as a float.
        FLOOR = 20,
        /// Rounds src0 to the nearest integer, clamps this integer to -256 to 255, and writes the result to the address
        /// register AR.
        MOVA = 21,
        /// Rounds src0 down, clamps the integer to -256 to 255, and writes the result to the address register AR.
        MOVA_FLOOR = 22,
        /// Adds two doubles, over two slots. The lower slot has the high halves of the operands.
        ADD_64 = 23,
        /// Clamps the integer src0 to -256 to 255 and writes the result to the address register AR.
        MOVA_INT = 24,
        /// Returns src0. Without modifiers, all bits are preserved.
        MOV = 25,
        /// Computes nothing and writes nothing.
        NOP = 26,
        /// Multiplies two doubles, over four slots.
        MUL_64 = 27,
        /// Converts a double to a float, over two slots.
        FLT64_TO_FLT32 = 28,
        /// Converts a float to a double, over two slots.
        FLT32_TO_FLT64 = 29,
        /// Tests whether src0 is greater than src1 as unsigned integers. If so, the predicate is 1 and the result is
        /// 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGT_UINT = 30,
        /// Tests whether src0 is greater than or equal to src1 as unsigned integers. If so, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGE_UINT = 31,
        /// Tests whether src0 equals src1 as floats. If so, the predicate is 1 and the result is 0.0. Otherwise the
        /// predicate is 0 and the result is 1.0.
        PRED_SETE = 32,
        /// Tests whether src0 is greater than src1 as floats. If so, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGT = 33,
        /// Tests whether src0 is greater than or equal to src1 as floats. If so, the predicate is 1 and the result is
        /// 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGE = 34,
        /// Tests whether src0 differs from src1 as floats. If so, the predicate is 1 and the result is 0.0. Otherwise
        /// the predicate is 0 and the result is 1.0.
        PRED_SETNE = 35,
        /// Inverts a nesting counter. If src0 is 1.0, the predicate is 1 and the result is 0.0. Otherwise the predicate
        /// is 0. In this case, the result is 1.0 if src0 is 0.0, and otherwise src0.
        PRED_SET_INV = 36,
        /// Subtracts src1 from a nesting counter. If src0 is at most src1, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is src0 - src1.
        PRED_SET_POP = 37,
        /// Clears a nesting counter: the predicate is 0, and the result is the largest float.
        PRED_SET_CLR = 38,
        /// Reads a nesting counter. If src0 is 0.0, the predicate is 1 and the result is 0.0. Otherwise the predicate
        /// is 0 and the result is src0.
        PRED_SET_RESTORE = 39,
        /// Counts nested branches. If src0 is 0.0 and src1 equals 0.0, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETE_PUSH = 40,
        /// Counts nested branches. If src0 is 0.0 and src1 is greater than 0.0, the predicate is 1 and the result is
        /// 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETGT_PUSH = 41,
        /// Counts nested branches. If src0 is 0.0 and src1 is greater than or equal to 0.0, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETGE_PUSH = 42,
        /// Counts nested branches. If src0 is 0.0 and src1 differs from 0.0, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETNE_PUSH = 43,
        /// Removes a lane from the valid mask if src0 equals src1 as floats. The result is 1.0 for such a lane, and 0.0
        /// for all other lanes.
        KILLE = 44,
        /// Removes a lane from the valid mask if src0 is greater than src1 as floats. The result is 1.0 for such a
        /// lane, and 0.0 for all other lanes.
        KILLGT = 45,
        /// Removes a lane from the valid mask if src0 is greater than or equal to src1 as floats. The result is 1.0 for
        /// such a lane, and 0.0 for all other lanes.
        KILLGE = 46,
        /// Removes a lane from the valid mask if src0 differs from src1 as floats. The result is 1.0 for such a lane,
        /// and 0.0 for all other lanes.
        KILLNE = 47,
        /// Returns the bits that are set in both src0 and src1.
        AND_INT = 48,
        /// Returns the bits that are set in src0 or src1.
        OR_INT = 49,
        /// Returns the bits that are set in exactly one of src0 and src1.
        XOR_INT = 50,
        /// Inverts all bits of src0.
        NOT_INT = 51,
        /// Adds the integers src0 and src1, modulo 2^32.
        ADD_INT = 52,
        /// Subtracts the integer src1 from src0, modulo 2^32.
        SUB_INT = 53,
        /// Returns the larger of the signed integers src0 and src1.
        MAX_INT = 54,
        /// Returns the smaller of the signed integers src0 and src1.
        MIN_INT = 55,
        /// Returns the larger of the unsigned integers src0 and src1.
        MAX_UINT = 56,
        /// Returns the smaller of the unsigned integers src0 and src1.
        MIN_UINT = 57,
        /// Returns all bits set if src0 equals src1 as signed integers, and otherwise 0.
        SETE_INT = 58,
        /// Returns all bits set if src0 is greater than src1 as signed integers, and otherwise 0.
        SETGT_INT = 59,
        /// Returns all bits set if src0 is greater than or equal to src1 as signed integers, and otherwise 0.
        SETGE_INT = 60,
        /// Returns all bits set if src0 differs from src1 as signed integers, and otherwise 0.
        SETNE_INT = 61,
        /// Returns all bits set if src0 is greater than src1 as unsigned integers, and otherwise 0.
        SETGT_UINT = 62,
        /// Returns all bits set if src0 is greater than or equal to src1 as unsigned integers, and otherwise 0.
        SETGE_UINT = 63,
        /// Removes a lane from the valid mask if src0 is greater than src1 as unsigned integers. The result is 1.0 for
        /// such a lane, and 0.0 for all other lanes.
        KILLGT_UINT = 64,
        /// Removes a lane from the valid mask if src0 is greater than or equal to src1 as unsigned integers. The result
        /// is 1.0 for such a lane, and 0.0 for all other lanes.
        KILLGE_UINT = 65,
        /// Tests whether src0 equals src1 as signed integers. If so, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETE_INT = 66,
        /// Tests whether src0 is greater than src1 as signed integers. If so, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGT_INT = 67,
        /// Tests whether src0 is greater than or equal to src1 as signed integers. If so, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGE_INT = 68,
        /// Tests whether src0 differs from src1 as signed integers. If so, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETNE_INT = 69,
        /// Removes a lane from the valid mask if src0 equals src1 as signed integers. The result is 1.0 for such a
        /// lane, and 0.0 for all other lanes.
        KILLE_INT = 70,
        /// Removes a lane from the valid mask if src0 is greater than src1 as signed integers. The result is 1.0 for
        /// such a lane, and 0.0 for all other lanes.
        KILLGT_INT = 71,
        /// Removes a lane from the valid mask if src0 is greater than or equal to src1 as signed integers. The result
        /// is 1.0 for such a lane, and 0.0 for all other lanes.
        KILLGE_INT = 72,
        /// Removes a lane from the valid mask if src0 differs from src1 as signed integers. The result is 1.0 for such
        /// a lane, and 0.0 for all other lanes.
        KILLNE_INT = 73,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 equals 0, the predicate is 1 and the result is
        /// 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETE_PUSH_INT = 74,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 is greater than 0, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETGT_PUSH_INT = 75,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 is greater than or equal to 0, the predicate is
        /// 1 and the result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETGE_PUSH_INT = 76,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 differs from 0, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETNE_PUSH_INT = 77,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 is less than 0, the predicate is 1 and the
        /// result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETLT_PUSH_INT = 78,
        /// Counts nested branches. If src0 is 0.0 and the integer src1 is less than or equal to 0, the predicate is 1
        /// and the result is 0.0. Otherwise the predicate is 0 and the result is src0 + 1.0.
        PRED_SETLE_PUSH_INT = 79,
        /// Adds the four products of src0 and src1 in slots x to w. If a factor is 0, its product is 0. Every slot
        /// receives the sum.
        DOT4 = 80,
        /// Adds the four products of src0 and src1 in slots x to w according to IEEE 754. Every slot receives the sum.
        DOT4_IEEE = 81,
        /// Determines the cube-map face of a direction, over slots x to w. Slots x and y receive the coordinates tc and
        /// sc, slot z receives twice the major axis, and slot w receives the face.
        CUBE = 82,
        /// Returns the largest src0 of slots x to w. Every slot receives this value.
        MAX4 = 83,
        /// Clamps the integer src0 to -256 to 255 and writes the result to aL, which indexes registers on early R600
        /// chips.
        MOVA_GPR_INT = 96,
        /// Returns 2 to the power of src0.
        EXP_IEEE = 97,
        /// Returns the logarithm of src0 to base 2. If the logarithm is minus infinity, returns the lowest float.
        LOG_CLAMPED = 98,
        /// Returns the logarithm of src0 to base 2.
        LOG_IEEE = 99,
        /// Returns 1 / src0. If the quotient is infinite, returns the largest float with the sign of the quotient.
        RECIP_CLAMPED = 100,
        /// Returns 1 / src0. If the quotient is infinite, returns 0 with the sign of the quotient.
        RECIP_FF = 101,
        /// Returns 1 / src0.
        RECIP_IEEE = 102,
        /// Returns 1 / sqrt(src0). If the quotient is infinite, returns the largest float with the sign of the
        /// quotient.
        RECIPSQRT_CLAMPED = 103,
        /// Returns 1 / sqrt(src0). If the quotient is infinite, returns 0 with the sign of the quotient.
        RECIPSQRT_FF = 104,
        /// Returns 1 / sqrt(src0).
        RECIPSQRT_IEEE = 105,
        /// Returns the square root of src0.
        SQRT_IEEE = 106,
        /// Converts the float src0 to a signed integer, rounding toward 0 and saturating. A NaN becomes 0.
        FLT_TO_INT = 107,
        /// Converts the signed integer src0 to a float, rounded to nearest even.
        INT_TO_FLT = 108,
        /// Converts the unsigned integer src0 to a float, rounded to nearest even.
        UINT_TO_FLT = 109,
        /// Returns the sine of src0, an angle in revolutions (on R600: in radians).
        SIN = 110,
        /// Returns the cosine of src0, an angle in revolutions (on R600: in radians).
        COS = 111,
        /// Shifts src0 right by the low five bits of src1, copying the sign bit.
        ASHR_INT = 112,
        /// Shifts src0 right by the low five bits of src1, inserting zeros.
        LSHR_INT = 113,
        /// Shifts src0 left by the low five bits of src1.
        LSHL_INT = 114,
        /// Returns the low 32 bits of the product of the signed integers src0 and src1.
        MULLO_INT = 115,
        /// Returns the high 32 bits of the product of the signed integers src0 and src1.
        MULHI_INT = 116,
        /// Returns the low 32 bits of the product of the unsigned integers src0 and src1.
        MULLO_UINT = 117,
        /// Returns the high 32 bits of the product of the unsigned integers src0 and src1.
        MULHI_UINT = 118,
        /// Returns 2^32 divided by the signed integer src0, approximately.
        RECIP_INT = 119,
        /// Returns 2^32 divided by the unsigned integer src0, approximately.
        RECIP_UINT = 120,
        /// Converts the float src0 to an unsigned integer, rounding toward 0 and saturating. A NaN becomes 0.
        FLT_TO_UINT = 121,
        /// Adds an integer to the exponent of a double, over two slots.
        LDEXP_64 = 122,
        /// Returns a double minus the largest integer that is not above this double, over two slots.
        FRACT_64 = 123,
        /// Tests whether src0 is greater than src1 as doubles, over two slots. If so, the predicate is 1 and the result
        /// is 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGT_64 = 124,
        /// Tests whether src0 equals src1 as doubles, over two slots. If so, the predicate is 1 and the result is 0.0.
        /// Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETE_64 = 125,
        /// Tests whether src0 is greater than or equal to src1 as doubles, over two slots. If so, the predicate is 1
        /// and the result is 0.0. Otherwise the predicate is 0 and the result is 1.0.
        PRED_SETGE_64 = 126,
    }
    /// Opcodes with three operands: ALU_INST of OP3.
    pub enum Op3(5) {
        /// Multiplies two doubles and adds a third double, over four slots.
        MULADD_64 = 8,
        /// Multiplies two doubles, adds a third double, and multiplies the sum by 2, over four slots.
        MULADD_64_M2 = 9,
        /// Multiplies two doubles, adds a third double, and multiplies the sum by 4, over four slots.
        MULADD_64_M4 = 10,
        /// Multiplies two doubles, adds a third double, and halves the sum, over four slots.
        MULADD_64_D2 = 11,
        /// Multiplies src0 by src1 for a specular term. The result is the lowest float if src1 is the lowest float,
        /// minus infinity or a NaN, or if src2 is not above 0.
        MUL_LIT = 12,
        /// Multiplies src0 by src1 for a specular term and multiplies the product by 2. The result is the lowest float
        /// if src1 is the lowest float, minus infinity or a NaN, or if src2 is not above 0.
        MUL_LIT_M2 = 13,
        /// Multiplies src0 by src1 for a specular term and multiplies the product by 4. The result is the lowest float
        /// if src1 is the lowest float, minus infinity or a NaN, or if src2 is not above 0.
        MUL_LIT_M4 = 14,
        /// Multiplies src0 by src1 for a specular term and halves the product. The result is the lowest float if src1
        /// is the lowest float, minus infinity or a NaN, or if src2 is not above 0.
        MUL_LIT_D2 = 15,
        /// Multiplies src0 by src1 and adds src2. If a factor is 0, the product is 0. Product and sum are rounded.
        MULADD = 16,
        /// Multiplies src0 by src1, adds src2, and multiplies the sum by 2. If a factor is 0, the product is 0. Product
        /// and sum are rounded.
        MULADD_M2 = 17,
        /// Multiplies src0 by src1, adds src2, and multiplies the sum by 4. If a factor is 0, the product is 0. Product
        /// and sum are rounded.
        MULADD_M4 = 18,
        /// Multiplies src0 by src1, adds src2, and halves the sum. If a factor is 0, the product is 0. Product and sum
        /// are rounded.
        MULADD_D2 = 19,
        /// Multiplies src0 by src1 and adds src2 according to IEEE 754. Product and sum are rounded.
        MULADD_IEEE = 20,
        /// Multiplies src0 by src1 and adds src2 according to IEEE 754, and multiplies the sum by 2. Product and sum
        /// are rounded.
        MULADD_IEEE_M2 = 21,
        /// Multiplies src0 by src1 and adds src2 according to IEEE 754, and multiplies the sum by 4. Product and sum
        /// are rounded.
        MULADD_IEEE_M4 = 22,
        /// Multiplies src0 by src1 and adds src2 according to IEEE 754, and halves the sum. Product and sum are
        /// rounded.
        MULADD_IEEE_D2 = 23,
        /// Returns src1 if the float src0 equals 0, and otherwise src2.
        CNDE = 24,
        /// Returns src1 if the float src0 is above 0, and otherwise src2.
        CNDGT = 25,
        /// Returns src1 if the float src0 is at least 0, and otherwise src2.
        CNDGE = 26,
        /// Returns src1 if the signed integer src0 equals 0, and otherwise src2.
        CNDE_INT = 28,
        /// Returns src1 if the signed integer src0 is above 0, and otherwise src2.
        CNDGT_INT = 29,
        /// Returns src1 if the signed integer src0 is at least 0, and otherwise src2.
        CNDGE_INT = 30,
    }
    /// Texture instructions: the field TEX_INST.
    pub enum TexInst(5) {
        /// Reads one texel without filtering. x, y and z are integer coordinates, and w is the mip level.
        LD = 3,
        /// Returns properties of mip level x as integers: width, height, depth or number of layers, and number of mip
        /// levels.
        GET_TEXTURE_RESINFO = 4,
        /// Returns the number of samples of a texture.
        GET_NUMBER_OF_SAMPLES = 5,
        /// Returns the level of detail of the quad. Component x is clamped, and component y is not clamped.
        GET_LOD = 6,
        /// Returns the difference between the source values of horizontal neighbours in the quad.
        GET_GRADIENTS_H = 7,
        /// Returns the difference between the source values of vertical neighbours in the quad.
        GET_GRADIENTS_V = 8,
        /// Returns the weights with which the texture would be filtered.
        GET_LERP = 9,
        /// Keeps the gradients of the coordinates for the samples that follow in the clause.
        KEEP_GRADIENTS = 10,
        /// Sets the horizontal gradients for the samples that follow in the clause.
        SET_GRADIENTS_H = 11,
        /// Sets the vertical gradients for the samples that follow in the clause.
        SET_GRADIENTS_V = 12,
        /// Returns the source. (Only opcode tables contain this instruction. The manual reserves its number.)
        PASS = 13,
        /// Sets the element of the cube-map array for the samples that follow in the clause.
        SET_CUBEMAP_INDEX = 14,
        /// Returns one channel of four neighbouring texels.
        FETCH4 = 15,
        /// Samples a texture with filtering. The level of detail comes from the coordinate differences within the quad.
        SAMPLE = 16,
        /// Samples a texture with filtering. w is the level of detail.
        SAMPLE_L = 17,
        /// Samples a texture with filtering. The level of detail comes from the coordinate differences within the quad.
        /// w is added to the level of detail.
        SAMPLE_LB = 18,
        /// Samples a texture with filtering. The level of detail is 0.
        SAMPLE_LZ = 19,
        /// Samples a texture with filtering. The level of detail comes from the gradients that the clause has set.
        SAMPLE_G = 20,
        /// Samples a texture with filtering. w is the level of detail.
        SAMPLE_G_L = 21,
        /// Samples a texture with filtering. The level of detail comes from the gradients that the clause has set. w is
        /// added to the level of detail.
        SAMPLE_G_LB = 22,
        /// Samples a texture with filtering. The level of detail is 0.
        SAMPLE_G_LZ = 23,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail comes from the coordinate differences within the quad.
        SAMPLE_C = 24,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. w is the level
        /// of detail.
        SAMPLE_C_L = 25,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail comes from the coordinate differences within the quad. w is added to the level of detail.
        SAMPLE_C_LB = 26,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail is 0.
        SAMPLE_C_LZ = 27,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail comes from the gradients that the clause has set.
        SAMPLE_C_G = 28,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. w is the level
        /// of detail.
        SAMPLE_C_G_L = 29,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail comes from the gradients that the clause has set. w is added to the level of detail.
        SAMPLE_C_G_LB = 30,
        /// Samples a texture with filtering, and compares the texels with the reference value in w or z. The level of
        /// detail is 0.
        SAMPLE_C_G_LZ = 31,
    }
    /// Vertex fetches: the field VTX_INST.
    pub enum VtxInst(5) {
        /// Fetches an element of a buffer into the register that the instruction states.
        FETCH = 0,
        /// Fetches an element of a buffer into the register that the table of semantics states.
        SEMANTIC = 1,
    }
}

impl IndexModeR700 {
    /// Returns the component of AR that is the index, 0 to 3, or `None` if the mode does not use AR.
    pub const fn address(self) -> Option<usize> {
        match self {
            IndexModeR700::AR_X | IndexModeR700::GLOBAL_AR_X => Some(0),
            IndexModeR700::AR_Y => Some(1),
            IndexModeR700::AR_Z => Some(2),
            IndexModeR700::AR_W => Some(3),
            IndexModeR700::LOOP | IndexModeR700::GLOBAL => None,
        }
    }

    /// Returns whether the index is relative to the start of the global registers.
    pub const fn is_global(self) -> bool {
        matches!(self, IndexModeR700::GLOBAL | IndexModeR700::GLOBAL_AR_X)
    }
}

// If only one family has a field, this field is the last field of its word. `WordInfo::without_last` returns the word
// of the family that does not have the field.
word! {
    /// CF_DWORD0.
    pub struct CfDword0(u32) = "CF_DWORD0" {
        addr: u32 [31:0],
    }
    /// CF_DWORD1.
    pub struct CfDword1R700(u32) = "CF_DWORD1" {
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
        count_3: bool [19:19],
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
    pub struct CfAllocExportDword1Buf(u32) = "CF_ALLOC_EXPORT_DWORD1_BUF" {
        array_size: u16 [11:0],
        comp_mask: u8 [15:12],
        burst_count: u8 [20:17],
        end_of_program: bool [21:21],
        valid_pixel_mode: bool [22:22],
        cf_inst: u8 [29:23],
        whole_quad_mode: bool [30:30],
        barrier: bool [31:31],
        elem_loop: bool [16:16],
    }
    /// CF_ALLOC_EXPORT_DWORD1_SWIZ.
    pub struct CfAllocExportDword1Swiz(u32) = "CF_ALLOC_EXPORT_DWORD1_SWIZ" {
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
        elem_loop: bool [16:16],
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
    pub struct VtxDword2R700(u32) = "VTX_DWORD2" {
        offset: u16 [15:0],
        endian_swap: Endian [17:16],
        const_buf_no_stride: bool [18:18],
        mega_fetch: bool [19:19],
        alt_const: bool [20:20],
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
        src_sel_x: Sel [22:20],
        src_sel_y: Sel [25:23],
        src_sel_z: Sel [28:26],
        src_sel_w: Sel [31:29],
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
