//! Methods of the chip's objects. The tables list the methods that the chip model reads, and the methods that do not
//! change results.
//!
//! Source: Mesa `nv50_3d.xml.h`, `nv50_2d.xml.h`, `nv_m2mf.xml.h` and `nv50_compute.xml.h`. Addresses are byte
//! addresses. Calls of a method that is not listed here are counted and reported by name.

use std::sync::LazyLock;

use reconverge_isa::word;

use crate::register::{Register as Method, RegisterTable, ignored};

/// Declares the methods of one object. The chip model reads the words of these methods.
macro_rules! methods {
    ($(#[doc = $doc:literal])* $object:ident { $($name:ident = $method:literal * $count:literal;)* }) => {
        $(#[doc = $doc])*
        #[allow(missing_docs)]
        pub(super) mod $object {
            use crate::register::{Register as Method, read};
            $(pub(crate) const $name: u32 = $method;)*
            pub(super) const READ: &[Method] =
                &[$(read(stringify!($name), $method, $count)),*];
        }
    };
}

methods! {
    /// The 3D object.
    tesla {
        SEMAPHORE_ADDRESS_HIGH = 0x0010 * 4;
        RT_ADDRESS_HIGH = 0x0200 * 64;
        VTX_ATTR_1F = 0x0300 * 16;
        VTX_ATTR_2F = 0x0380 * 32;
        VTX_ATTR_3F = 0x0400 * 64;
        VTX_ATTR_4F = 0x0500 * 64;
        VERTEX_ARRAY_FETCH = 0x0900 * 64;
        VIEWPORT_SCALE_X = 0x0a00 * 128;
        VIEWPORT_HORIZ = 0x0c00 * 64;
        VERTEX_BUFFER_FIRST = 0x0d74 * 1;
        VERTEX_BUFFER_COUNT = 0x0d78 * 1;
        DEPTH_CLIP_NEGATIVE_Z = 0x0d7c * 1;
        CLEAR_COLOR = 0x0d80 * 4;
        CLEAR_DEPTH = 0x0d90 * 1;
        CLEAR_STENCIL = 0x0da0 * 1;
        STRMOUT_PARAMS_LATCH = 0x0da4 * 1;
        STRMOUT_PRIMITIVE_LIMIT = 0x0da8 * 1;
        POLYGON_MODE_FRONT = 0x0dac * 1;
        POLYGON_MODE_BACK = 0x0db0 * 1;
        POLYGON_OFFSET_POINT_ENABLE = 0x0dc0 * 3;
        CLIP_RECT_HORIZ = 0x0d00 * 16;
        SCISSOR_ENABLE = 0x0e00 * 64;
        CB_ADDR = 0x0f00 * 1;
        CB_DATA = 0x0f04 * 16;
        STENCIL_BACK_FUNC_REF = 0x0f54 * 1;
        STENCIL_BACK_MASK = 0x0f58 * 1;
        STENCIL_BACK_FUNC_MASK = 0x0f5c * 1;
        GP_ADDRESS_HIGH = 0x0f70 * 2;
        VP_ADDRESS_HIGH = 0x0f7c * 2;
        VERTEX_RUNOUT_ADDRESS_HIGH = 0x0f84 * 2;
        COLOR_MASK_COMMON = 0x0f90 * 1;
        DEPTH_BOUNDS = 0x0f9c * 2;
        FP_ADDRESS_HIGH = 0x0fa4 * 2;
        MSAA_MASK = 0x0fbc * 4;
        SEMANTIC_VIEWPORT = 0x0fd4 * 1;
        ZETA_ADDRESS_HIGH = 0x0fe0 * 5;
        SCREEN_SCISSOR_HORIZ = 0x0ff4 * 2;
        VERTEX_ARRAY_PER_INSTANCE = 0x1000 * 16;
        VERTEX_ARRAY_LIMIT_HIGH = 0x1080 * 32;
        VERTEX_ID_BASE = 0x1118 * 1;
        RT_CONTROL = 0x121c * 1;
        RT_ARRAY_MODE = 0x1224 * 1;
        ZETA_HORIZ = 0x1228 * 3;
        DRAW_TFB_BYTES = 0x123c * 1;
        RT_HORIZ = 0x1240 * 16;
        CB_DEF_ADDRESS_HIGH = 0x1280 * 2;
        CB_DEF_SET = 0x1288 * 1;
        STRMOUT_BUFFERS_CTRL = 0x1294 * 1;
        FP_RESULT_COUNT = 0x1298 * 1;
        DEPTH_TEST_ENABLE = 0x12cc * 1;
        SHADE_MODEL = 0x12d4 * 1;
        LOCAL_SIZE_LOG = 0x12e0 * 1;
        BLEND_INDEPENDENT = 0x12e4 * 1;
        DEPTH_WRITE_ENABLE = 0x12e8 * 1;
        ALPHA_TEST_ENABLE = 0x12ec * 1;
        VB_ELEMENT_U8_SETUP = 0x1300 * 1;
        VB_ELEMENT_U8 = 0x1304 * 1;
        DEPTH_TEST_FUNC = 0x130c * 1;
        ALPHA_TEST_REF = 0x1310 * 1;
        ALPHA_TEST_FUNC = 0x1314 * 1;
        DRAW_TFB_STRIDE = 0x1318 * 1;
        BLEND_COLOR = 0x131c * 4;
        BLEND_EQUATION_RGB = 0x1340 * 4;
        BLEND_FUNC_SRC_ALPHA = 0x1350 * 1;
        BLEND_FUNC_DST_ALPHA = 0x1358 * 1;
        BLEND_ENABLE_COMMON = 0x135c * 1;
        BLEND_ENABLE = 0x1360 * 8;
        STENCIL_ENABLE = 0x1380 * 8;
        DRAW_TFB_BASE = 0x13a4 * 1;
        FRAG_COLOR_CLAMP_EN = 0x13a8 * 1;
        LINE_WIDTH = 0x13b0 * 1;
        POINT_COORD_REPLACE_MAP = 0x13c0 * 8;
        VP_START_ID = 0x140c * 1;
        GP_START_ID = 0x1410 * 1;
        FP_START_ID = 0x1414 * 1;
        GP_VERTEX_OUTPUT_COUNT = 0x1420 * 1;
        VB_ELEMENT_BASE = 0x1434 * 1;
        VB_INSTANCE_BASE = 0x1438 * 1;
        CLEAR_FLAGS = 0x143c * 1;
        BIND_TSC = 0x1444 * 6;
        STRMOUT_MAP = 0x1480 * 32;
        CLIP_DISTANCE_ENABLE = 0x1510 * 1;
        SAMPLECNT_ENABLE = 0x1514 * 1;
        POINT_SIZE = 0x1518 * 1;
        POINT_SPRITE_ENABLE = 0x1520 * 1;
        COUNTER_RESET = 0x1530 * 1;
        MULTISAMPLE_ENABLE = 0x1534 * 1;
        ZETA_ENABLE = 0x1538 * 1;
        MULTISAMPLE_CTRL = 0x153c * 1;
        NOPERSPECTIVE_BITMAP = 0x1540 * 4;
        COND_ADDRESS_HIGH = 0x1550 * 2;
        COND_MODE = 0x1558 * 1;
        TSC_ADDRESS_HIGH = 0x155c * 3;
        POLYGON_OFFSET_FACTOR = 0x156c * 1;
        TIC_ADDRESS_HIGH = 0x1574 * 3;
        STENCIL_TWO_SIDE_ENABLE = 0x1594 * 5;
        POLYGON_OFFSET_UNITS = 0x15bc * 1;
        LAYER = 0x15cc * 1;
        MULTISAMPLE_MODE = 0x15d0 * 1;
        VERTEX_BEGIN_GL = 0x15dc * 1;
        VERTEX_END_GL = 0x15e0 * 1;
        VB_ELEMENT_U32 = 0x15e8 * 1;
        VB_ELEMENT_U16_SETUP = 0x15ec * 1;
        VB_ELEMENT_U16 = 0x15f0 * 1;
        VERTEX_DATA = 0x1640 * 1;
        PRIM_RESTART_ENABLE = 0x1644 * 1;
        PRIM_RESTART_INDEX = 0x1648 * 1;
        VP_GP_BUILTIN_ATTR_EN = 0x164c * 1;
        VP_ATTR_EN = 0x1650 * 2;
        POINT_SPRITE_CTRL = 0x1660 * 1;
        TEX_MISC = 0x1664 * 1;
        LINE_STIPPLE_ENABLE = 0x166c * 1;
        LINE_STIPPLE = 0x1680 * 1;
        PROVOKING_VERTEX_LAST = 0x1684 * 1;
        VERTEX_TWO_SIDE_ENABLE = 0x1688 * 1;
        POLYGON_STIPPLE_ENABLE = 0x168c * 1;
        MUL_ZERO_WINS = 0x1690 * 1;
        SET_PROGRAM_CB = 0x1694 * 1;
        VP_RESULT_MAP_SIZE = 0x16ac * 1;
        VP_REG_ALLOC_TEMP = 0x16b0 * 1;
        VP_RESULT_MAP = 0x16bc * 17;
        POLYGON_STIPPLE_PATTERN = 0x1700 * 32;
        STRMOUT_OFFSET = 0x1780 * 4;
        GP_ENABLE = 0x1798 * 1;
        GP_REG_ALLOC_TEMP = 0x17a0 * 1;
        GP_RESULT_MAP_SIZE = 0x17ac * 1;
        GP_OUTPUT_PRIMITIVE_TYPE = 0x17b0 * 1;
        RASTERIZE_ENABLE = 0x17b4 * 1;
        STRMOUT_ENABLE = 0x17b8 * 1;
        GP_RESULT_MAP = 0x17fc * 32;
        POLYGON_OFFSET_CLAMP = 0x187c * 1;
        GP_VIEWPORT_ID_ENABLE = 0x1900 * 1;
        SEMANTIC_COLOR = 0x1904 * 1;
        SEMANTIC_CLIP = 0x1908 * 1;
        SEMANTIC_LAYER = 0x190c * 1;
        SEMANTIC_PTSZ = 0x1910 * 1;
        SEMANTIC_PRIM_ID = 0x1914 * 1;
        CULL_FACE_ENABLE = 0x1918 * 1;
        FRONT_FACE = 0x191c * 1;
        CULL_FACE = 0x1920 * 1;
        FP_MULTISAMPLE = 0x1928 * 1;
        VIEWPORT_TRANSFORM_EN = 0x192c * 1;
        VIEW_VOLUME_CLIP_CTRL = 0x193c * 1;
        CLIP_DISTANCE_MODE = 0x1940 * 1;
        CLIP_RECTS_EN = 0x194c * 1;
        CLIP_RECTS_MODE = 0x1950 * 1;
        FP_INTERPOLANT_CTRL = 0x1988 * 1;
        FP_REG_ALLOC_TEMP = 0x198c * 1;
        FP_CONTROL = 0x19a8 * 1;
        DEPTH_BOUNDS_EN = 0x19bc * 1;
        LOGIC_OP_ENABLE = 0x19c4 * 1;
        LOGIC_OP = 0x19c8 * 1;
        CLEAR_BUFFERS = 0x19d0 * 1;
        COLOR_MASK = 0x1a00 * 8;
        STRMOUT_ADDRESS_HIGH = 0x1a80 * 16;
        VERTEX_ARRAY_ATTRIB = 0x1ac0 * 16;
        QUERY_ADDRESS_HIGH = 0x1b00 * 2;
        QUERY_SEQUENCE = 0x1b08 * 1;
        QUERY_GET = 0x1b0c * 1;
        IBLEND_SEPARATE_ALPHA = 0x1e00 * 64;
    }
}

methods! {
    /// The 2D object.
    twod {
        DST_FORMAT = 0x0200 * 10;
        SRC_FORMAT = 0x0230 * 10;
        COND_ADDRESS_HIGH = 0x0264 * 3;
        CLIP_X = 0x0280 * 5;
        ROP = 0x02a0 * 1;
        BETA4 = 0x02a8 * 1;
        OPERATION = 0x02ac * 1;
        PATTERN_COLOR_FORMAT = 0x02e8 * 6;
        SIFC_BITMAP_ENABLE = 0x0800 * 1;
        SIFC_FORMAT = 0x0804 * 1;
        SIFC_WIDTH = 0x0838 * 10;
        SIFC_DATA = 0x0860 * 1;
        BLIT_DST_X = 0x08b0 * 12;
    }
}

methods! {
    /// The copy object.
    m2mf {
        LINEAR_IN = 0x0200 * 7;
        LINEAR_OUT = 0x021c * 7;
        OFFSET_IN_HIGH = 0x0238 * 1;
        OFFSET_OUT_HIGH = 0x023c * 1;
        OFFSET_IN = 0x030c * 1;
        OFFSET_OUT = 0x0310 * 1;
        PITCH_IN = 0x0314 * 1;
        PITCH_OUT = 0x0318 * 1;
        LINE_LENGTH_IN = 0x031c * 1;
        LINE_COUNT = 0x0320 * 1;
        BUF_NOTIFY = 0x0328 * 1;
    }
}

methods! {
    /// The compute object.
    compute {
        CP_ADDRESS_HIGH = 0x0210 * 2;
        CB_ADDR = 0x0238 * 1;
        CB_DATA = 0x023c * 16;
        LOCAL_SIZE_LOG = 0x029c * 1;
        CB_DEF_ADDRESS_HIGH = 0x02a4 * 2;
        CB_DEF_SET = 0x02ac * 1;
        BLOCK_ALLOC = 0x02b4 * 1;
        CP_REG_ALLOC_TEMP = 0x02c0 * 1;
        MP_PM_SET = 0x02d0 * 4;
        MP_PM_CONTROL = 0x02e0 * 4;
        QUERY_ADDRESS_HIGH = 0x0310 * 2;
        QUERY_SEQUENCE = 0x0318 * 1;
        QUERY_GET = 0x031c * 1;
        COND_ADDRESS_HIGH = 0x0320 * 2;
        COND_MODE = 0x0328 * 1;
        LAUNCH = 0x0368 * 1;
        USER_PARAM_COUNT = 0x0374 * 1;
        CODE_CB_FLUSH = 0x0380 * 1;
        GRIDID = 0x0388 * 1;
        GRIDDIM = 0x03a4 * 1;
        SHARED_SIZE = 0x03a8 * 1;
        BLOCKDIM_XY = 0x03ac * 1;
        BLOCKDIM_Z = 0x03b0 * 1;
        CP_START_ID = 0x03b4 * 1;
        BIND_TSC = 0x03c0 * 1;
        BIND_TIC = 0x03c4 * 1;
        SET_PROGRAM_CB = 0x03c8 * 1;
        GLOBAL = 0x0400 * 128;
        USER_PARAM = 0x0600 * 64;
    }
}

/// Returns whether a method of the 3D object starts an action or sets an argument of an action. Draws do not depend on
/// earlier words of these methods.
pub(super) fn acts(method: u32) -> bool {
    use tesla as m;
    matches!(
        method,
        m::SEMAPHORE_ADDRESS_HIGH..0x0020
            | m::VTX_ATTR_1F..m::VERTEX_ARRAY_FETCH
            | m::VERTEX_BUFFER_FIRST
            | m::VERTEX_BUFFER_COUNT
            | m::CB_ADDR..0x0f44
            | m::VERTEX_ID_BASE
            | m::VERTEX_BEGIN_GL
            | m::VERTEX_END_GL
            | m::VB_ELEMENT_U32
            | m::VB_ELEMENT_U16_SETUP
            | m::VB_ELEMENT_U16
            | m::VB_ELEMENT_U8_SETUP
            | m::VB_ELEMENT_U8
            | m::VB_ELEMENT_BASE
            | m::VERTEX_DATA
            | m::CLEAR_BUFFERS
            | m::QUERY_ADDRESS_HIGH..0x1b10
    )
}

const SPEED: &str = "speed only";
const SPACES: &str = "all objects share one address space";
const FIXED: &str = "always the same value, without effect";
const COMPRESSION: &str = "compression; the chip model does not compress";

/// Methods that all objects have.
const COMMON: &[Method] = &[
    ignored("OBJECT", 0x0000, 1, "read by the FIFO"),
    ignored("REF_CNT", 0x0050, 1, "all earlier work is complete"),
    ignored("NOP", 0x0100, 1, "nothing"),
    ignored("NOTIFY", 0x0104, 1, "no notifier is used"),
    ignored("SERIALIZE", 0x0110, 1, "all earlier work is complete"),
    ignored("DMA_OBJECTS", 0x0180, 16, SPACES),
];

const TESLA: &[Method] = &[
    ignored("DMA_COLOR", 0x01c0, 8, SPACES),
    ignored("STACK_ADDRESS_HIGH", 0x0d94, 3, "the token stack has separate memory"),
    ignored("POLYGON_SMOOTH_ENABLE", 0x0db4, 1, FIXED),
    ignored("WATCHDOG_TIMER", 0x0de4, 1, "the watchdog counts instructions"),
    ignored("PRIM_RESTART_WITH_DRAW_ARRAYS", 0x0de8, 1, FIXED),
    ignored("WINDOW_OFFSET_X", 0x0df8, 2, FIXED),
    ignored("UNK0FDC", 0x0fdc, 1, "unknown; always 1"),
    ignored("LINKED_TSC", 0x1234, 1, FIXED),
    ignored("LOCAL_ADDRESS_HIGH", 0x12d8, 2, "each lane has separate local memory"),
    ignored("TSC_FLUSH", 0x1330, 1, SPEED),
    ignored("TIC_FLUSH", 0x1334, 1, SPEED),
    ignored("TEX_CACHE_CTL", 0x1338, 1, SPEED),
    ignored("BLEND_SEPARATE_ALPHA", 0x133c, 1, FIXED),
    ignored("SCREEN_Y_CONTROL", 0x13ac, 1, FIXED),
    ignored("TEX_LIMITS", 0x13b4, 3, "instructions contain the numbers of textures and samplers"),
    ignored("UNK1400_LANES", 0x1400, 1, SPEED),
    ignored("VERTEX_ARRAY_FLUSH", 0x142c, 1, SPEED),
    ignored("CODE_CB_FLUSH", 0x1440, 1, SPEED),
    ignored("LINE_SMOOTH_ENABLE", 0x1570, 1, FIXED),
    ignored("ZCULL_REGION", 0x1590, 1, SPEED),
    ignored("CSAA_ENABLE", 0x15b4, 1, FIXED),
    ignored("FRAMEBUFFER_SRGB", 0x15b8, 1, FIXED),
    ignored("EDGEFLAG", 0x15e4, 1, "always 1; it affects only polygons that are drawn as lines"),
    ignored("POINT_SMOOTH_ENABLE", 0x1658, 1, FIXED),
    ignored("POINT_RASTER_RULES", 0x165c, 1, FIXED),
    ignored("SAMPLE_SHADING", 0x169c, 1, "FP_MULTISAMPLE shades every sample, so the minimum has no effect"),
    ignored("PIXEL_CENTER_INTEGER", 0x1924, 1, FIXED),
    ignored("ZCULL", 0x1958, 5, SPEED),
    ignored("UNK196C", 0x196c, 1, "unknown; 11h if the program outputs depth"),
    ignored("CLIPID_ENABLE", 0x197c, 1, FIXED),
    ignored("REG_MODE", 0x19a0, 1, "layout of registers"),
    ignored("UNK19C0", 0x19c0, 1, "unknown; always 1"),
    ignored("ZETA_COMP_ENABLE", 0x19cc, 1, COMPRESSION),
    ignored("RT_COMP_ENABLE", 0x19e0, 8, COMPRESSION),
    ignored("VP_REG_ALLOC_RESULT", 0x16b8, 1, "the program determines its results"),
    ignored("GP_REG_ALLOC_RESULT", 0x17a8, 1, "the program determines its results"),
];

const TWOD: &[Method] = &[
    ignored("COLOR_KEY_ENABLE", 0x029c, 1, FIXED),
    ignored("SET_PIXELS_FROM_MEMORY_SAFE_OVERLAP", 0x0888, 1, SPEED),
    ignored("BLIT_CONTROL", 0x088c, 1, "filters for scales that the driver does not request"),
];

const OF_3D: &str =
    "the driver sets the same value in the 3D object, and the chip model reads the value of the 3D object";

const COMPUTE: &[Method] = &[
    ignored("DMA_CODE_CB", 0x01c0, 4, SPACES),
    ignored("STACK_ADDRESS_HIGH", 0x0218, 3, "the token stack is not in memory"),
    ignored("CALL_LIMIT_LOG", 0x0224, 1, "the token stack is not in memory"),
    ignored("TSC_ADDRESS_HIGH", 0x022c, 3, OF_3D),
    ignored("TSC_FLUSH", 0x027c, 1, SPEED),
    ignored("TIC_FLUSH", 0x0280, 1, SPEED),
    ignored("DELAY1", 0x0284, 3, "the watchdog counts instructions"),
    ignored("UNK0290", 0x0290, 1, "unknown; always 1"),
    ignored("LOCAL_ADDRESS_HIGH", 0x0294, 2, "each lane has separate local memory"),
    ignored("UNK02A0", 0x02a0, 1, "unknown; always 1"),
    ignored("LANES32_ENABLE", 0x02b8, 1, "a warp has 32 lanes"),
    ignored("TIC_ADDRESS_HIGH", 0x02c4, 3, OF_3D),
    ignored("MP_PM_OVERFLOW_TRAP_ENABLE", 0x02f0, 1, "counters of 32 bits wrap"),
    ignored("BLOCKDIM_LATCH", 0x02f8, 1, "a launch reads the current sizes"),
    ignored("LOCAL_WARPS_LOG_ALLOC", 0x02fc, 4, "each lane has separate local memory"),
    ignored("LINKED_TSC", 0x0378, 1, FIXED),
    ignored("UNK037C", 0x037c, 1, "derivatives, which a compute program does not compute"),
    ignored("UNK0384", 0x0384, 1, "unknown; always 100h"),
    ignored("WRCACHE_FLUSH", 0x0398, 1, SPEED),
    ignored("REG_MODE", 0x03b8, 1, "layout of registers"),
    ignored("TEX_LIMITS", 0x03bc, 1, "instructions contain the numbers of textures and samplers"),
    ignored("TEX_CACHE_CTL", 0x03d0, 1, SPEED),
    ignored("TEX_MISC", 0x03e8, 1, OF_3D),
];

const M2MF: &[Method] = &[ignored("FORMAT", 0x0324, 1, FIXED)];

/// Words of the 3D object's methods after a reset.
const TESLA_INITIAL: &[(u32, u32)] = &[
    (tesla::COND_MODE, 1),
    (tesla::RASTERIZE_ENABLE, 1),
    (tesla::VIEWPORT_TRANSFORM_EN, 1),
    (tesla::LINE_WIDTH, 1f32.to_bits()),
    (tesla::POINT_SIZE, 1f32.to_bits()),
    (tesla::MSAA_MASK, 0xffff),
    (tesla::MSAA_MASK + 4, 0xffff),
    (tesla::MSAA_MASK + 8, 0xffff),
    (tesla::MSAA_MASK + 12, 0xffff),
];

/// Words of the compute object's methods after a reset. The driver's start-up commands set these values, but Mesa
/// 22.3.6 does not submit these commands (see `faults`).
const COMPUTE_INITIAL: &[(u32, u32)] = &[
    (compute::COND_MODE, 1),
    (compute::LOCAL_SIZE_LOG, 0xb),
    // g15[] covers all of memory and is linear.
    (compute::GLOBAL + 0x20 * 15 + 12, u32::MAX),
    (compute::GLOBAL + 0x20 * 15 + 16, 1),
];

/// Words of the 2D object's methods after a reset. OPERATION 3 copies pixels.
const TWOD_INITIAL: &[(u32, u32)] = &[(twod::OPERATION, 3)];

/// The objects of the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// The 3D object, which draws.
    Tesla,
    /// The 2D object, which blits surfaces and stores data from the commands in surfaces.
    TwoD,
    /// The copy object, which copies memory.
    M2mf,
    /// The compute object, which launches compute programs.
    Compute,
}

impl Object {
    /// All objects, in the order of the variants.
    const ALL: [Object; 4] = [Object::Tesla, Object::TwoD, Object::M2mf, Object::Compute];

    /// Returns the object that a handle selects. The lower half of a handle is the class of the object.
    pub(super) fn of_handle(handle: u32) -> Option<Object> {
        match handle & 0xffff {
            0x5097 | 0x8297 | 0x8397 | 0x8597 | 0x8697 => Some(Object::Tesla),
            0x502d => Some(Object::TwoD),
            0x5039 => Some(Object::M2mf),
            0x50c0 | 0x85c0 => Some(Object::Compute),
            _ => None,
        }
    }

    /// Returns the name of the object for messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Object::Tesla => "3D",
            Object::TwoD => "2D",
            Object::M2mf => "M2MF",
            Object::Compute => "compute",
        }
    }

    fn methods(self) -> [&'static [Method]; 3] {
        match self {
            Object::Tesla => [tesla::READ, TESLA, COMMON],
            Object::TwoD => [twod::READ, TWOD, COMMON],
            Object::M2mf => [m2mf::READ, M2MF, COMMON],
            Object::Compute => [compute::READ, COMPUTE, COMMON],
        }
    }

    /// Returns the entry of a method, or `None` if the method is unknown.
    pub(super) fn method(self, method: u32) -> Option<&'static Method> {
        static TABLES: LazyLock<[RegisterTable; 4]> =
            LazyLock::new(|| Object::ALL.map(|object| RegisterTable::new(&object.methods())));
        TABLES[self as usize].get(method)
    }

    /// Returns the reset values of the methods for which the driver relies on the reset value.
    pub(super) const fn initial(self) -> &'static [(u32, u32)] {
        match self {
            Object::Tesla => TESLA_INITIAL,
            Object::TwoD => TWOD_INITIAL,
            Object::M2mf => &[],
            Object::Compute => COMPUTE_INITIAL,
        }
    }
}

word! {
    /// Targets to which the outputs of a fragment program are stored.
    pub(super) struct RtControl(u32) = "RT_CONTROL" {
        count: u8 [3:0],
        map: u32 [27:4],
    }
    /// Layers of the targets.
    pub(super) struct ArrayMode(u32) = "RT_ARRAY_MODE" {
        layers: u16 [15:0],
        has_depth: bool [16:16],
    }
    /// Surfaces that a clear affects.
    pub(super) struct ClearBuffers(u32) = "CLEAR_BUFFERS" {
        z: bool [0:0],
        s: bool [1:1],
        color: u8 [5:2],
        rt: u8 [9:6],
        layer: u16 [20:10],
    }
    /// A constant buffer that is bound to a program.
    pub(super) struct ProgramCb(u32) = "SET_PROGRAM_CB" {
        valid: bool [0:0],
        program: u8 [7:4],
        slot: u8 [11:8],
        buffer: u8 [18:12],
    }
    /// A constant buffer that is bound to a compute program.
    pub(super) struct ComputeCb(u32) = "SET_PROGRAM_CB" {
        valid: u8 [7:0],
        slot: u8 [11:8],
        buffer: u8 [18:12],
    }
    /// Number of threads and of barriers of a block.
    pub(super) struct BlockAlloc(u32) = "BLOCK_ALLOC" {
        threads: u16 [15:0],
        barriers: u8 [23:16],
    }
    /// Signal and logic function of a multiprocessor's counter.
    pub(super) struct MpPmControl(u32) = "MP_PM_CONTROL" {
        pulse: bool [0:0],
        unit: u8 [6:4],
        function: u16 [23:8],
        signal: u8 [31:24],
    }
    /// Layout of a segment of g[].
    pub(super) struct GlobalMode(u32) = "GLOBAL_MODE" {
        linear: bool [0:0],
        tile_rows: u8 [11:8],
    }
    /// Format and source of a vertex attribute.
    pub(super) struct Attrib(u32) = "VERTEX_ARRAY_ATTRIB" {
        buffer: u8 [3:0],
        is_const: bool [4:4],
        offset: u16 [18:5],
        format: u8 [24:19],
        number: u8 [30:25],
        bgra: bool [31:31],
    }
    /// Inputs of a fragment program.
    pub(super) struct Interpolants(u32) = "FP_INTERPOLANT_CTRL" {
        count: u8 [7:0],
        offset: u8 [15:8],
        count_nonflat: u8 [23:16],
        umask: u8 [27:24],
    }
    /// Slots that contain colours.
    pub(super) struct SemanticColor(u32) = "SEMANTIC_COLOR" {
        ffc0: u8 [7:0],
        bfc0: u8 [15:8],
        count: u8 [23:16],
        clamp: bool [24:24],
    }
    /// Properties of a fragment program.
    pub(super) struct FpControl(u32) = "FP_CONTROL" {
        multiple_results: bool [0:0],
        exports_z: bool [8:8],
        uses_kil: bool [20:20],
    }
    /// Multisampling properties of a fragment program. Chips before GT215 do not have this method.
    pub(super) struct FpMultisample(u32) = "FP_MULTISAMPLE" {
        export_sample_mask: bool [0:0],
        force_per_sample: bool [1:1],
    }
    /// Effects of alpha on a pixel with several samples.
    pub(super) struct MultisampleCtrl(u32) = "MULTISAMPLE_CTRL" {
        alpha_to_coverage: bool [0:0],
        alpha_to_one: bool [4:4],
    }
    /// Sampler state that all samplers share. The state enables filtering across the edges of a cube's faces on GT200
    /// and later chips. The entry of a single sampler does not have this bit (Mesa, `nv50_tex.c`).
    pub(super) struct TexMisc(u32) = "TEX_MISC" {
        seamless_cube_map: bool [2:2],
    }
    /// Source of a query's result.
    pub(super) struct QueryGet(u32) = "QUERY_GET" {
        mode: u8 [1:0],
        fence: bool [4:4],
        index: u8 [7:5],
        unit: u8 [15:12],
        sync: bool [16:16],
        interrupt: bool [20:20],
        counter: bool [23:23],
        select: u8 [27:24],
        short: bool [28:28],
    }
    /// A texture that is bound to a program.
    pub(super) struct BindTic(u32) = "BIND_TIC" {
        valid: bool [0:0],
        unit: u8 [8:1],
        id: u32 [30:9],
    }
    /// A sampler that is bound to a program. The number of the sampler has nine bits in Mesa's headers, but the driver
    /// has 2,048 samplers.
    pub(super) struct BindTsc(u32) = "BIND_TSC" {
        valid: bool [0:0],
        unit: u8 [7:4],
        id: u16 [22:12],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_method_is_listed_twice() {
        for object in Object::ALL {
            let mut all: Vec<_> = object.methods().into_iter().flatten().collect();
            all.sort_by_key(|known| known.address);
            for pair in all.windows(2) {
                let end = pair[0].address + 4 * pair[0].count;
                assert!(end <= pair[1].address, "{}: {} and {}", object.name(), pair[0].name, pair[1].name);
            }
        }
    }
}
