//! Registers of the chip, with their fields. The tables list the registers that the chip model reads, and the registers
//! that do not change results.
//!
//! Source: Mesa `r300_reg.h` and the state files of Mesa's driver, and AMD's R5xx 3D register reference. Addresses are
//! byte addresses. Writes to a register that is not listed here are counted and reported by address.

use std::sync::LazyLock;

use reconverge_isa::word;

pub(super) use crate::register::Register;
use crate::register::{RegisterTable, addresses, ignored};

addresses! {
    SE_VPORT_XSCALE = 0x1d98 * 6;
    VAP_ALT_NUM_VERTICES = 0x2088 * 1;
    VAP_INDEX_OFFSET = 0x208c * 1;
    VAP_OUTPUT_VTX_FMT_0 = 0x2090 * 1;
    VAP_OUTPUT_VTX_FMT_1 = 0x2094 * 1;
    VAP_VTE_CNTL = 0x20b0 * 1;
    VAP_VTX_SIZE = 0x20b4 * 1;
    VAP_VF_MAX_VTX_INDX = 0x2134 * 1;
    VAP_VF_MIN_VTX_INDX = 0x2138 * 1;
    VAP_CNTL_STATUS = 0x2140 * 1;
    VAP_CNTL = 0x2080 * 1;
    VAP_PROG_STREAM_CNTL_0 = 0x2150 * 8;
    VAP_PSC_SGN_NORM_CNTL = 0x21dc * 1;
    VAP_PROG_STREAM_CNTL_EXT_0 = 0x21e0 * 8;
    VAP_PVS_VECTOR_INDX_REG = 0x2200 * 1;
    VAP_PVS_UPLOAD_DATA = 0x2208 * 1;
    VAP_CLIP_CNTL = 0x221c * 1;
    VAP_GB_VERT_CLIP_ADJ = 0x2220 * 4;
    VAP_PVS_FLOW_CNTL_LOOP_INDEX_0 = 0x2290 * 16;
    VAP_PVS_CODE_CNTL_0 = 0x22d0 * 1;
    VAP_PVS_CONST_CNTL = 0x22d4 * 1;
    VAP_PVS_CODE_CNTL_1 = 0x22d8 * 1;
    VAP_PVS_FLOW_CNTL_OPC = 0x22dc * 1;
    VAP_PVS_FLOW_CNTL_ADDRS_LW_0 = 0x2500 * 32;
    GB_ENABLE = 0x4008 * 1;
    GB_MSPOS0 = 0x4010 * 2;
    GB_AA_CONFIG = 0x4020 * 1;
    RS_IP_0 = 0x4074 * 16;
    TX_ENABLE = 0x4104 * 1;
    GA_POINT_S0 = 0x4200 * 4;
    GA_POINT_SIZE = 0x421c * 1;
    GA_POINT_MINMAX = 0x4230 * 1;
    GA_LINE_CNTL = 0x4234 * 1;
    GA_LINE_STIPPLE_CONFIG = 0x4238 * 1;
    GA_US_VECTOR_INDEX = 0x4250 * 1;
    GA_US_VECTOR_DATA = 0x4254 * 1;
    GA_LINE_STIPPLE_VALUE = 0x4260 * 1;
    GA_COLOR_CONTROL = 0x4278 * 1;
    GA_POLY_MODE = 0x4288 * 1;
    SU_POLY_OFFSET_FRONT_SCALE = 0x42a4 * 4;
    SU_POLY_OFFSET_ENABLE = 0x42b4 * 1;
    SU_CULL_MODE = 0x42b8 * 1;
    SU_REG_DEST = 0x42c8 * 1;
    RS_INST_COUNT = 0x4304 * 1;
    RS_INST_0 = 0x4320 * 16;
    SC_CLIPRECT_TL_0 = 0x43b0 * 8;
    SC_CLIP_RULE = 0x43d0 * 1;
    SC_SCISSORS_TL = 0x43e0 * 2;
    SC_SCREENDOOR = 0x43e8 * 1;
    TX_FILTER0_0 = 0x4400 * 16;
    TX_FILTER1_0 = 0x4440 * 16;
    TX_FORMAT0_0 = 0x4480 * 16;
    TX_FORMAT1_0 = 0x44c0 * 16;
    TX_FORMAT2_0 = 0x4500 * 16;
    TX_OFFSET_0 = 0x4540 * 16 relocated;
    TX_BORDER_COLOR_0 = 0x45c0 * 16;
    US_CONFIG = 0x4600 * 1;
    US_PIXSIZE = 0x4604 * 1;
    US_FC_BOOL_CONST = 0x4620 * 1;
    US_FC_CTRL = 0x4624 * 1;
    US_CODE_ADDR = 0x4630 * 1;
    US_CODE_RANGE = 0x4634 * 1;
    US_CODE_OFFSET = 0x4638 * 1;
    US_OUT_FMT_0 = 0x46a4 * 4;
    US_W_FMT = 0x46b4 * 1;
    FG_ALPHA_FUNC = 0x4bd4 * 1;
    FG_DEPTH_SRC = 0x4bd8 * 1;
    FG_ALPHA_VALUE = 0x4be0 * 1;
    FG_ZBREG_DEST = 0x4be8 * 1;
    US_FC_INT_CONST_0 = 0x4c00 * 32;
    RB3D_CCTL = 0x4e00 * 1;
    RB3D_CBLEND = 0x4e04 * 1;
    RB3D_ABLEND = 0x4e08 * 1;
    RB3D_COLOR_CHANNEL_MASK = 0x4e0c * 1;
    RB3D_ROPCNTL = 0x4e18 * 1;
    RB3D_COLOROFFSET0 = 0x4e28 * 4 relocated;
    RB3D_COLORPITCH0 = 0x4e38 * 4 relocated;
    RB3D_AARESOLVE_OFFSET = 0x4e80 * 1 relocated;
    RB3D_AARESOLVE_PITCH = 0x4e84 * 1;
    RB3D_AARESOLVE_CTL = 0x4e88 * 1;
    RB3D_CONSTANT_COLOR_AR = 0x4ef8 * 2;
    ZB_CNTL = 0x4f00 * 1;
    ZB_ZSTENCILCNTL = 0x4f04 * 1;
    ZB_STENCILREFMASK = 0x4f08 * 1;
    ZB_FORMAT = 0x4f10 * 1;
    ZB_BW_CNTL = 0x4f1c * 1;
    ZB_DEPTHOFFSET = 0x4f20 * 1 relocated;
    ZB_DEPTHPITCH = 0x4f24 * 1 relocated;
    ZB_DEPTHCLEARVALUE = 0x4f28 * 1;
    ZB_ZPASS_DATA = 0x4f58 * 1;
    ZB_ZPASS_ADDR = 0x4f5c * 1 relocated;
    ZB_STENCILREFMASK_BF = 0x4fd4 * 1;
}

const SPEED: &str = "speed only";
const FIXED: &str = "always the same value, without effect";
const META: &str = "compression metadata; the chip model does not compress";
const REDUNDANT: &str = "another register contains the same information";

/// Registers that do not change results.
const IGNORED: &[Register] = &[
    ignored("WAIT_UNTIL", 0x1720, 1, "all earlier work is complete"),
    ignored("VAP_PVS_STATE_FLUSH_REG", 0x2284, 1, SPEED),
    ignored("VAP_PVS_VTX_TIMEOUT_REG", 0x2288, 1, SPEED),
    ignored("VAP_VTX_STATE_CNTL", 0x2180, 1, FIXED),
    ignored("VAP_VSM_VTX_ASSM", 0x2184, 1, REDUNDANT),
    ignored("VAP_TEX_TO_COLOR_CNTL", 0x2218, 1, FIXED),
    ignored("GB_SELECT", 0x401c, 1, FIXED),
    ignored("GB_Z_PEQ_CONFIG", 0x4028, 1, SPEED),
    ignored("TX_INVALTAGS", 0x4100, 1, SPEED),
    ignored("SU_TEX_WRAP_PS3", 0x4114, 1, FIXED),
    ignored("GA_COLOR_CONTROL_PS3", 0x4258, 1, "coordinates are interpolated, whatever the value"),
    ignored("GA_LINE_S0", 0x4264, 2, FIXED),
    ignored("GA_ENHANCE", 0x4274, 1, SPEED),
    ignored("GA_ROUND_MODE", 0x428c, 1, "coordinates are rounded to nearest, and colours are not clamped"),
    ignored("RS_COUNT", 0x4300, 1, REDUNDANT),
    ignored("GA_OFFSET", 0x4290, 1, FIXED),
    ignored("SU_TEX_WRAP", 0x42a0, 1, FIXED),
    ignored("SU_DEPTH_SCALE", 0x42c0, 2, "depth values are 0 to the largest 24-bit number"),
    ignored("SC_HYPERZ", 0x43a4, 1, META),
    ignored("SC_EDGERULE", 0x43a8, 1, "always the rule of left and top edges"),
    ignored("US_FORMAT0_0", 0x4640, 16, REDUNDANT),
    ignored("FG_FOG_BLEND", 0x4bc0, 1, "fog is part of the fragment program"),
    ignored("FG_FOG_COLOR_R", 0x4bc8, 3, "fog is part of the fragment program"),
    ignored("RB3D_BLEND_COLOR", 0x4e10, 1, REDUNDANT),
    ignored("RB3D_COLOR_CLEAR_VALUE", 0x4e14, 1, META),
    ignored("RB3D_CLRCMP_FLIPE", 0x4e1c, 3, FIXED),
    ignored("RB3D_DSTCACHE_CTLSTAT", 0x4e4c, 1, SPEED),
    ignored("RB3D_DITHER_CTL", 0x4e50, 1, "no dithering"),
    ignored("RB3D_CMASK_OFFSET0", 0x4e54, 11, META),
    ignored("RB3D_DISCARD_SRC_PIXEL_LTE_THRESHOLD", 0x4ea0, 2, "blending is exact"),
    ignored("RB3D_COLOR_CLEAR_VALUE_AR", 0x46c0, 2, META),
    ignored("ZB_ZTOP", 0x4f14, 1, "the driver changes the order of tests only if the results are the same"),
    ignored("ZB_ZCACHE_CTLSTAT", 0x4f18, 1, SPEED),
    ignored("ZB_ZMASK_OFFSET", 0x4f30, 10, META),
    ignored("ZB_DEPTHXY_OFFSET", 0x4f60, 1, FIXED),
];

/// Returns the entry of the register at a byte address, or `None` if the register is unknown.
pub(super) fn register(address: u32) -> Option<&'static Register> {
    static TABLE: LazyLock<RegisterTable> = LazyLock::new(|| RegisterTable::new(&[READ, IGNORED]));
    TABLE.get(address)
}

word! {
    /// Control word of a draw: source of the vertices, and type of the primitives.
    pub(super) struct VfCntl(u32) = "VAP_VF_CNTL" {
        prim_type: u8 [3:0],
        /// 1: vertices by indices. 2: vertices in order. 3: vertices in the packet.
        prim_walk: u8 [5:4],
        index_size: bool [11:11],
        vtx_reuse_dis: bool [12:12],
        dual_index_mode: bool [13:13],
        /// Whether VAP_ALT_NUM_VERTICES has the number of vertices.
        use_alt_num_verts: bool [14:14],
        num_vertices: u16 [31:16],
    }
    /// Output vectors of the vertex program.
    pub(super) struct OutputVtxFmt0(u32) = "VAP_OUTPUT_VTX_FMT_0" {
        pos_present: bool [0:0],
        colors_present: u8 [4:1],
        pt_size_present: bool [16:16],
    }
    /// Transformation from clip space to the window.
    pub(super) struct VteCntl(u32) = "VAP_VTE_CNTL" {
        x_scale_ena: bool [0:0],
        x_offset_ena: bool [1:1],
        y_scale_ena: bool [2:2],
        y_offset_ena: bool [3:3],
        z_scale_ena: bool [4:4],
        z_offset_ena: bool [5:5],
        /// Whether x and y are already divided by w.
        vtx_xy_fmt: bool [8:8],
        vtx_z_fmt: bool [9:9],
        /// Whether the fourth component is w. If not, the fourth component is 1/w.
        vtx_w0_fmt: bool [10:10],
        serial_proc_ena: bool [11:11],
    }
    /// Control of the vertex unit.
    pub(super) struct CntlStatus(u32) = "VAP_CNTL_STATUS" {
        vc_swap: u8 [1:0],
        /// Whether vertices bypass the vertex unit, because the vertices are already in window coordinates.
        tcl_bypass: bool [8:8],
    }
    /// Sizes of the vertex unit's memories, and definition of clip space.
    pub(super) struct VapCntl(u32) = "VAP_CNTL" {
        pvs_num_slots: u8 [3:0],
        pvs_num_cntlrs: u8 [7:4],
        pvs_num_fpus: u8 [11:8],
        vap_no_render: bool [17:17],
        vf_max_vtx_num: u8 [21:18],
        dx_clip_space_def: bool [22:22],
        tcl_state_optimization: bool [23:23],
    }
    /// First and last instruction of a vertex program.
    pub(super) struct PvsCodeCntl0(u32) = "VAP_PVS_CODE_CNTL_0" {
        pvs_first_inst: u16 [9:0],
        pvs_xyzw_valid_inst: u16 [19:10],
        pvs_last_inst: u16 [29:20],
    }
    /// Clip planes.
    pub(super) struct ClipCntl(u32) = "VAP_CLIP_CNTL" {
        ucp_ena: u8 [5:0],
        ps_ucp_mode: u8 [15:14],
        clip_disable: bool [16:16],
        ucp_cull_only_ena: bool [17:17],
        boundary_edge_flag_ena: bool [18:18],
        color_is_tex: u8 [21:20],
    }
    /// Sources of texture coordinates.
    pub(super) struct GbEnable(u32) = "GB_ENABLE" {
        point_stuff_enable: bool [0:0],
        line_stuff_enable: bool [1:1],
        triangle_stuff_enable: bool [2:2],
        stencil_auto: u8 [5:4],
        /// Each set of coordinates has two bits. 0: vertices contain the set. 1: points get s and t. 2: points get s, t
        /// and r.
        tex_source: u16 [31:16],
    }
    /// Multisampling.
    pub(super) struct AaConfig(u32) = "GB_AA_CONFIG" {
        aa_enable: bool [0:0],
        /// The values 0 to 3 mean two, three, four and six samples.
        num_aa_subsamples: u8 [2:1],
    }
    /// Flat shading of colours, and the provoking vertex.
    pub(super) struct ColorControl(u32) = "GA_COLOR_CONTROL" {
        /// Each colour has four bits. Two bits control red, green and blue, and two bits control alpha. 0: solid. 1:
        /// flat. 2: Gouraud.
        shading: u16 [15:0],
        /// Selects the provoking vertex. 0: the first vertex. 1: the second vertex. 2: the third vertex. 3: the last
        /// vertex.
        provoking_vertex: u8 [17:16],
    }
    /// Line stipple.
    pub(super) struct LineStippleConfig(u32) = "GA_LINE_STIPPLE_CONFIG" {
        /// When the pattern restarts. 0: never. 1: at each line. 2: at each packet.
        line_reset: u8 [1:0],
        /// Upper 30 bits of a 32-bit float.
        stipple_scale: u32 [31:2],
    }
    /// Drawing mode of polygons.
    pub(super) struct PolyMode(u32) = "GA_POLY_MODE" {
        dual_mode: u8 [1:0],
        front_ptype: u8 [6:4],
        back_ptype: u8 [9:7],
    }
    /// Sides of polygons that have a polygon offset.
    pub(super) struct PolyOffsetEnable(u32) = "SU_POLY_OFFSET_ENABLE" {
        front_enable: bool [0:0],
        back_enable: bool [1:1],
        para_enable: bool [2:2],
    }
    /// Culled sides of polygons.
    pub(super) struct CullMode(u32) = "SU_CULL_MODE" {
        cull_front: bool [0:0],
        cull_back: bool [1:1],
        /// Whether the vertices of a polygon run clockwise if the front of the polygon is visible.
        face: bool [2:2],
    }
    /// Number of instructions of the rasteriser.
    pub(super) struct RsInstCount(u32) = "RS_INST_COUNT" {
        /// Number of instructions, minus one.
        inst_count: u8 [3:0],
        tx_offset: u8 [7:5],
    }
    /// Source of an interpolated value: four coordinate components, and a colour.
    pub(super) struct RsIp(u32) = "RS_IP_0" {
        /// Number of the component, counted over all sets of coordinates. The number 62 means the constant 0, and 63
        /// means the constant 1.
        tex_ptr_s: u8 [5:0],
        tex_ptr_t: u8 [11:6],
        tex_ptr_r: u8 [17:12],
        tex_ptr_q: u8 [23:18],
        col_ptr: u8 [26:24],
        col_fmt: u8 [30:27],
        offset_en: bool [31:31],
    }
    /// Temporaries to which interpolated values are written.
    pub(super) struct RsInst(u32) = "RS_INST_0" {
        tex_id: u8 [3:0],
        tex_cn: bool [4:4],
        tex_addr: u8 [11:5],
        col_id: u8 [15:12],
        /// The written value. 0: none. 1: the colour. 2: the position in the frame buffer. 3: the visible side.
        col_cn: u8 [17:16],
        col_addr: u8 [24:18],
        tex_adj: bool [25:25],
        w_cn: bool [26:26],
    }
    /// The alpha test.
    pub(super) struct AlphaFunc(u32) = "FG_ALPHA_FUNC" {
        af_val: u8 [7:0],
        af_func: u8 [10:8],
        af_en: bool [11:11],
        af_en_8bit: bool [12:12],
        am_en: bool [16:16],
        am_cfg: bool [17:17],
        dith_en: bool [20:20],
        alpha_thresh_use_16bit: bool [28:28],
    }
    /// State that all colour targets share.
    pub(super) struct Cctl(u32) = "RB3D_CCTL" {
        /// Number of targets that store output 0, minus one.
        num_multiwrites: u8 [6:5],
        clrcmp_flipe_enable: bool [7:7],
        aa_compression_enable: bool [9:9],
        cmask_enable: bool [10:10],
        independent_color_channel_mask_enable: bool [12:12],
        write_compression_disable: bool [13:13],
        independent_colorformat_enable: bool [14:14],
    }
    /// Blending of red, green and blue. RB3D_ABLEND has the same fields for alpha.
    pub(super) struct BlendControl(u32) = "RB3D_CBLEND" {
        alpha_blend_enable: bool [0:0],
        separate_alpha_enable: bool [1:1],
        read_enable: bool [2:2],
        discard_src_pixels: u8 [5:3],
        comb_fcn: u8 [14:12],
        srcblend: u8 [21:16],
        destblend: u8 [29:24],
        src_alpha_0_no_read: bool [30:30],
        src_alpha_1_no_read: bool [31:31],
    }
    /// The logic operation.
    pub(super) struct RopCntl(u32) = "RB3D_ROPCNTL" {
        rop_enable: bool [2:2],
        rop: u8 [11:8],
    }
    /// Pitch and format of a colour target.
    pub(super) struct ColorPitch(u32) = "RB3D_COLORPITCH0" {
        /// Pitch in units of two elements.
        colorpitch: u16 [13:1],
        colortile: bool [16:16],
        colormicrotile: u8 [18:17],
        colorendian: u8 [20:19],
        colorformat: u8 [24:21],
    }
    /// Resolve of a multisampled target.
    pub(super) struct AaResolveCtl(u32) = "RB3D_AARESOLVE_CTL" {
        aaresolve_mode: bool [0:0],
        aaresolve_gamma: bool [1:1],
        aaresolve_alpha: bool [2:2],
    }
    /// Enables of the depth and stencil tests.
    pub(super) struct ZbCntl(u32) = "ZB_CNTL" {
        stencil_enable: bool [0:0],
        z_enable: bool [1:1],
        zwriteenable: bool [2:2],
        zsignedcompare: bool [3:3],
        stencil_front_back: bool [4:4],
        zsignedmagnitude: bool [5:5],
        stencil_refmask_front_back: bool [6:6],
    }
    /// Comparisons of the depth and stencil tests, and stencil operations.
    pub(super) struct ZStencilCntl(u32) = "ZB_ZSTENCILCNTL" {
        zfunc: u8 [2:0],
        stencilfunc: u8 [5:3],
        stencilfail: u8 [8:6],
        stencilzpass: u8 [11:9],
        stencilzfail: u8 [14:12],
        stencilfunc_bf: u8 [17:15],
        stencilfail_bf: u8 [20:18],
        stencilzpass_bf: u8 [23:21],
        stencilzfail_bf: u8 [26:24],
        zerooutputmask: bool [27:27],
    }
    /// Reference and masks of the stencil test.
    pub(super) struct StencilRefMask(u32) = "ZB_STENCILREFMASK" {
        stencilref: u8 [7:0],
        stencilmask: u8 [15:8],
        stencilwritemask: u8 [23:16],
    }
    /// Format of the depth buffer.
    pub(super) struct ZbFormat(u32) = "ZB_FORMAT" {
        depthformat: u8 [3:0],
        invert: bool [4:4],
    }
    /// Compression and clears of the depth unit.
    pub(super) struct BwCntl(u32) = "ZB_BW_CNTL" {
        hiz_enable: bool [0:0],
        hiz_min: bool [1:1],
        fast_fill: bool [2:2],
        rd_comp_enable: bool [3:3],
        wr_comp_enable: bool [4:4],
        /// Whether the depth unit also stores a clear value for each pixel that the colour unit stores.
        zb_cb_clear: bool [5:5],
        /// Cache and compression fields of R500.
        others: u32 [31:6],
    }
    /// Pitch of the depth buffer.
    pub(super) struct DepthPitch(u32) = "ZB_DEPTHPITCH" {
        /// Pitch in units of four elements.
        depthpitch: u16 [13:2],
        depthmacrotile: bool [16:16],
        depthmicrotile: u8 [18:17],
        depthendian: u8 [20:19],
    }
    /// Wrap modes and filters of a sampler.
    pub(super) struct TxFilter0(u32) = "TX_FILTER0_0" {
        clamp_s: u8 [2:0],
        clamp_t: u8 [5:3],
        clamp_r: u8 [8:6],
        /// 1: nearest. 2: linear. 3: anisotropic.
        mag_filter: u8 [10:9],
        min_filter: u8 [12:11],
        mip_filter: u8 [14:13],
        vol_filter: u8 [16:15],
        max_mip_level: u8 [20:17],
        max_aniso: u8 [23:21],
        id: u8 [31:28],
    }
    /// State of a sampler, such as the bias of the level of detail.
    pub(super) struct TxFilter1(u32) = "TX_FILTER1_0" {
        chroma_key_mode: u8 [1:0],
        mc_coord_truncate: bool [2:2],
        /// Bias in steps of 1/32.
        lod_bias: i32 [12:3],
        mc_speedup: u8 [14:14],
        tri_perf: u8 [16:15],
        others: u8 [20:17],
        dxtc_swizzle: bool [21:21],
        macro_switch: bool [22:22],
        aniso: u8 [28:23],
        zero_edge: u8 [30:29],
        border_fix: bool [31:31],
    }
    /// Size of a texture.
    pub(super) struct TxFormat0(u32) = "TX_FORMAT0_0" {
        /// Width in texels, minus one.
        txwidth: u16 [10:0],
        txheight: u16 [21:11],
        /// log2 of the depth.
        txdepth: u8 [25:22],
        num_levels: u8 [29:26],
        projected: bool [30:30],
        txpitch_en: bool [31:31],
    }
    /// Format of a texture, and selection of its components.
    pub(super) struct TxFormat1(u32) = "TX_FORMAT1_0" {
        txformat: u8 [4:0],
        /// Bit n: component n is signed.
        signed: u8 [8:5],
        sel_alpha: u8 [11:9],
        sel_red: u8 [14:12],
        sel_green: u8 [17:15],
        sel_blue: u8 [20:18],
        gamma: bool [21:21],
        yuv_to_rgb: bool [22:22],
        swap_yuv: bool [23:23],
        /// 0: two-dimensional. 1: three-dimensional. 2: a cube.
        tex_coord_type: u8 [26:25],
        cache: u8 [31:27],
    }
    /// Pitch of a texture. The register also contains the upper bits of fields that are in other registers of the
    /// texture.
    pub(super) struct TxFormat2(u32) = "TX_FORMAT2_0" {
        /// Pitch in texels, minus one.
        txpitch: u16 [12:0],
        txformat_msb: bool [14:14],
        txwidth_11: bool [15:15],
        txheight_11: bool [16:16],
        us_aggressive: u16 [31:17],
    }
    /// Address and tiling of a texture.
    pub(super) struct TxOffset(u32) = "TX_OFFSET_0" {
        endian_swap: u8 [1:0],
        macro_tile: bool [2:2],
        micro_tile: u8 [4:3],
        /// Offset in the buffer, in units of 32 bytes.
        txoffset: u32 [31:5],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_listed_twice() {
        let mut all: Vec<_> = READ.iter().chain(IGNORED).collect();
        all.sort_by_key(|register| register.address);
        for pair in all.windows(2) {
            let end = pair[0].address + 4 * pair[0].count;
            assert!(end <= pair[1].address, "{} and {}", pair[0].name, pair[1].name);
        }
    }
}
