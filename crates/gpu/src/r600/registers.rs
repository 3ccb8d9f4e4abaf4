//! Registers of the chip, with their fields. The tables list the registers that the chip model reads, and the registers
//! that do not change results.
//!
//! Source: Mesa `r600d.h` and `r600_state.c`. Addresses are byte addresses, as in AMD's register manual. Writes to a
//! register that is not listed here are counted and reported by address.

use std::sync::LazyLock;

use reconverge_isa::word;

pub(super) use crate::register::Register;
use crate::register::{RegisterTable, addresses, ignored};

addresses! {
    CP_STRMOUT_CNTL = 0x8490 * 1;
    VGT_PRIMITIVE_TYPE = 0x8958 * 1;
    /// Sample positions on the first R600. Two samples have one register. Four samples have one register. Eight samples
    /// have two registers.
    PA_SC_AA_SAMPLE_LOCS_2S = 0x8b40 * 4;
    SQ_CONFIG = 0x8c00 * 1;
    SQ_GPR_RESOURCE_MGMT_1 = 0x8c04 * 1;
    /// Bit 0 is DISABLE_CUBE_WRAP.
    TA_CNTL_AUX = 0x9508 * 1;
    TD_PS_SAMPLER0_BORDER_RED = 0xa400 * 72;
    TD_VS_SAMPLER0_BORDER_RED = 0xa600 * 72;
    TD_GS_SAMPLER0_BORDER_RED = 0xa800 * 72;
    DB_DEPTH_SIZE = 0x28000 * 1;
    DB_DEPTH_VIEW = 0x28004 * 1;
    DB_DEPTH_BASE = 0x2800c * 1 relocated;
    DB_DEPTH_INFO = 0x28010 * 1;
    CB_COLOR0_BASE = 0x28040 * 8 relocated;
    CB_COLOR0_SIZE = 0x28060 * 8;
    CB_COLOR0_VIEW = 0x28080 * 8;
    CB_COLOR0_INFO = 0x280a0 * 8;
    ALU_CONST_BUFFER_SIZE_PS_0 = 0x28140 * 16;
    ALU_CONST_BUFFER_SIZE_VS_0 = 0x28180 * 16;
    ALU_CONST_BUFFER_SIZE_GS_0 = 0x281c0 * 16;
    PA_SC_SCREEN_SCISSOR_TL = 0x28030 * 2;
    PA_SC_WINDOW_SCISSOR_TL = 0x28204 * 2;
    CB_TARGET_MASK = 0x28238 * 1;
    CB_SHADER_MASK = 0x2823c * 1;
    PA_SC_GENERIC_SCISSOR_TL = 0x28240 * 2;
    PA_SC_VPORT_SCISSOR_0_TL = 0x28250 * 32;
    PA_SC_VPORT_ZMIN_0 = 0x282d0 * 32;
    SX_MISC = 0x28350 * 1;
    VGT_MAX_VTX_INDX = 0x28400 * 1;
    VGT_MIN_VTX_INDX = 0x28404 * 1;
    VGT_INDX_OFFSET = 0x28408 * 1;
    VGT_MULTI_PRIM_IB_RESET_INDX = 0x2840c * 1;
    SX_ALPHA_TEST_CONTROL = 0x28410 * 1;
    CB_BLEND_RED = 0x28414 * 4;
    DB_STENCILREFMASK = 0x28430 * 1;
    DB_STENCILREFMASK_BF = 0x28434 * 1;
    SX_ALPHA_REF = 0x28438 * 1;
    PA_CL_VPORT_XSCALE_0 = 0x2843c * 96;
    SPI_VS_OUT_ID_0 = 0x28614 * 10;
    SPI_PS_INPUT_CNTL_0 = 0x28644 * 32;
    SPI_VS_OUT_CONFIG = 0x286c4 * 1;
    SPI_PS_IN_CONTROL_0 = 0x286cc * 1;
    SPI_PS_IN_CONTROL_1 = 0x286d0 * 1;
    SPI_INTERP_CONTROL_0 = 0x286d4 * 1;
    CB_BLEND0_CONTROL = 0x28780 * 8;
    DB_DEPTH_CONTROL = 0x28800 * 1;
    CB_BLEND_CONTROL = 0x28804 * 1;
    CB_COLOR_CONTROL = 0x28808 * 1;
    DB_SHADER_CONTROL = 0x2880c * 1;
    PA_CL_CLIP_CNTL = 0x28810 * 1;
    PA_SU_SC_MODE_CNTL = 0x28814 * 1;
    PA_CL_VTE_CNTL = 0x28818 * 1;
    PA_CL_VS_OUT_CNTL = 0x2881c * 1;
    SQ_PGM_START_PS = 0x28840 * 1 relocated;
    SQ_PGM_RESOURCES_PS = 0x28850 * 1;
    SQ_PGM_START_VS = 0x28858 * 1 relocated;
    SQ_PGM_RESOURCES_VS = 0x28868 * 1;
    SQ_PGM_START_GS = 0x2886c * 1 relocated;
    SQ_PGM_RESOURCES_GS = 0x2887c * 1;
    SQ_PGM_START_ES = 0x28880 * 1 relocated;
    SQ_PGM_RESOURCES_ES = 0x28890 * 1;
    SQ_PGM_START_FS = 0x28894 * 1 relocated;
    SQ_ESGS_RING_ITEMSIZE = 0x288a8 * 1;
    SQ_GSVS_RING_ITEMSIZE = 0x288ac * 1;
    SQ_GS_VERT_ITEMSIZE = 0x288c8 * 1;
    ALU_CONST_CACHE_PS_0 = 0x28940 * 16 relocated;
    ALU_CONST_CACHE_VS_0 = 0x28980 * 16 relocated;
    ALU_CONST_CACHE_GS_0 = 0x289c0 * 16 relocated;
    PA_SU_POINT_SIZE = 0x28a00 * 1;
    PA_SU_POINT_MINMAX = 0x28a04 * 1;
    PA_SU_LINE_CNTL = 0x28a08 * 1;
    PA_SC_LINE_STIPPLE = 0x28a0c * 1;
    VGT_GS_MODE = 0x28a40 * 1;
    PA_SC_MODE_CNTL = 0x28a4c * 1;
    VGT_GS_OUT_PRIM_TYPE = 0x28a6c * 1;
    VGT_MULTI_PRIM_IB_RESET_EN = 0x28a94 * 1;
    VGT_STRMOUT_EN = 0x28ab0 * 1;
    /// Size of a stream-out buffer. The register after this register contains the stride of the buffer. Both values
    /// count dwords. Each buffer has registers for the size, the stride and the base. The registers of the next buffer
    /// are 16 bytes after the registers of this buffer.
    VGT_STRMOUT_BUFFER_SIZE_0 = 0x28ad0 * 2;
    VGT_STRMOUT_BUFFER_BASE_0 = 0x28ad8 * 1 relocated;
    VGT_STRMOUT_BUFFER_SIZE_1 = 0x28ae0 * 2;
    VGT_STRMOUT_BUFFER_BASE_1 = 0x28ae8 * 1 relocated;
    VGT_STRMOUT_BUFFER_SIZE_2 = 0x28af0 * 2;
    VGT_STRMOUT_BUFFER_BASE_2 = 0x28af8 * 1 relocated;
    VGT_STRMOUT_BUFFER_SIZE_3 = 0x28b00 * 2;
    VGT_STRMOUT_BUFFER_BASE_3 = 0x28b08 * 1 relocated;
    VGT_STRMOUT_BUFFER_EN = 0x28b20 * 1;
    VGT_STRMOUT_DRAW_OPAQUE_OFFSET = 0x28b28 * 3;
    VGT_GS_MAX_VERT_OUT = 0x28b38 * 1;
    PA_SC_AA_CONFIG = 0x28c04 * 1;
    PA_CL_GB_VERT_CLIP_ADJ = 0x28c0c * 1;
    PA_CL_GB_VERT_DISC_ADJ = 0x28c10 * 1;
    PA_CL_GB_HORZ_CLIP_ADJ = 0x28c14 * 1;
    PA_CL_GB_HORZ_DISC_ADJ = 0x28c18 * 1;
    PA_SC_AA_SAMPLE_LOCS_MCTX = 0x28c1c * 2;
    PA_SC_AA_MASK = 0x28c48 * 1;
    DB_RENDER_CONTROL = 0x28d0c * 1;
    DB_ALPHA_TO_MASK = 0x28d44 * 1;
    PA_SU_POLY_OFFSET_DB_FMT_CNTL = 0x28df8 * 1;
    PA_SU_POLY_OFFSET_CLAMP = 0x28dfc * 1;
    PA_SU_POLY_OFFSET_FRONT_SCALE = 0x28e00 * 4;
    PA_CL_UCP0_X = 0x28e20 * 24;
}

const SPEED: &str = "speed only";
const SHARES: &str = "how stages share registers, threads and stack";
const FIXED: &str = "always the same value, without effect";
const META: &str = "compression metadata; the chip model does not compress";
const SCRATCH: &str = "addresses of scratch memory; each lane has separate memory here";
const RINGS: &str = "addresses of vertex records between stages; each stage receives its records directly";

/// Registers that do not change results.
const IGNORED: &[Register] = &[
    ignored("CB_SHADER_CONTROL", 0x287a0, 1, "the program determines the exports"),
    ignored("SQ_PGM_EXPORTS_PS", 0x28854, 1, "the program determines the exports"),
    ignored("VGT_PRIMITIVEID_EN", 0x28a84, 1, "primitives are always numbered"),
    ignored("WAIT_UNTIL", 0x8040, 1, "all earlier work is complete"),
    ignored("VGT_CACHE_INVALIDATION", 0x88c4, 1, SPEED),
    ignored("VGT_ES_PER_GS", 0x88c8, 3, SPEED),
    ignored("VGT_GS_VERTEX_REUSE", 0x88d4, 1, SPEED),
    ignored("VGT_GS_PER_VS", 0x88e8, 1, SPEED),
    ignored("PA_CL_ENHANCE", 0x8a14, 1, SPEED),
    ignored("PA_SC_LINE_STIPPLE_STATE", 0x8b10, 1, "each draw restarts the pattern"),
    ignored("SQ_GPR_RESOURCE_MGMT_2", 0x8c08, 1, SHARES),
    ignored("SQ_THREAD_RESOURCE_MGMT", 0x8c0c, 1, SHARES),
    ignored("SQ_STACK_RESOURCE_MGMT_1", 0x8c10, 2, SHARES),
    ignored("SQ_ESGS_RING_BASE", 0x8c40, 1, RINGS).relocated(),
    ignored("SQ_ESGS_RING_SIZE", 0x8c44, 1, RINGS),
    ignored("SQ_GSVS_RING_BASE", 0x8c48, 1, RINGS).relocated(),
    ignored("SQ_GSVS_RING_SIZE", 0x8c4c, 1, RINGS),
    ignored("SQ_ESTMP_RING_BASE", 0x8c50, 1, SCRATCH).relocated(),
    ignored("SQ_ESTMP_RING_SIZE", 0x8c54, 1, SCRATCH),
    ignored("SQ_GSTMP_RING_BASE", 0x8c58, 1, SCRATCH).relocated(),
    ignored("SQ_GSTMP_RING_SIZE", 0x8c5c, 1, SCRATCH),
    ignored("SQ_VSTMP_RING_BASE", 0x8c60, 1, SCRATCH).relocated(),
    ignored("SQ_VSTMP_RING_SIZE", 0x8c64, 1, SCRATCH),
    ignored("SQ_PSTMP_RING_BASE", 0x8c68, 1, SCRATCH).relocated(),
    ignored("SQ_PSTMP_RING_SIZE", 0x8c6c, 1, SCRATCH),
    ignored("SQ_DYN_GPR_CNTL_PS_FLUSH_REQ", 0x8d8c, 1, SHARES),
    ignored("SPI_CONFIG_CNTL", 0x9100, 1, SPEED),
    ignored("SPI_CONFIG_CNTL_1", 0x913c, 1, SPEED),
    ignored("SX_DEBUG_1", 0x9054, 1, SPEED),
    ignored("VC_ENHANCE", 0x9714, 1, SPEED),
    ignored("DB_DEBUG", 0x9830, 1, SPEED),
    ignored("DB_WATERMARKS", 0x9838, 1, SPEED),
    ignored("CB_COLOR0_TILE", 0x280c0, 8, META).relocated(),
    ignored("CB_COLOR0_FRAG", 0x280e0, 8, META).relocated(),
    ignored("CB_COLOR0_MASK", 0x28100, 8, META),
    ignored("DB_HTILE_DATA_BASE", 0x28014, 1, META).relocated(),
    ignored("DB_STENCIL_CLEAR", 0x28028, 2, "the driver clears with draws whose vertices contain the value"),
    ignored("CB_CLEAR_RED", 0x28120, 4, META),
    ignored("PA_SC_WINDOW_OFFSET", 0x28200, 1, FIXED),
    ignored("PA_SC_CLIPRECT_RULE", 0x2820c, 9, FIXED),
    ignored("PA_SC_EDGERULE", 0x28230, 1, "always the rule of left and top edges"),
    ignored("SX_SURFACE_SYNC", 0x28354, 1, SPEED),
    ignored("SPI_THREAD_GROUPING", 0x286c8, 1, SPEED),
    ignored("SPI_INPUT_Z", 0x286d8, 1, "the position is always interpolated if a program reads it"),
    ignored("SPI_FOG_CNTL", 0x286dc, 4, FIXED),
    ignored("PA_CL_NANINF_CNTL", 0x28820, 1, FIXED),
    ignored("SQ_PGM_RESOURCES_FS", 0x288a4, 1, FIXED),
    ignored("SQ_ESTMP_RING_ITEMSIZE", 0x288b0, 6, "rings of scratch memory and reductions"),
    ignored("SQ_PGM_CF_OFFSET_PS", 0x288cc, 5, FIXED),
    ignored("SQ_VTX_SEMANTIC_CLEAR", 0x288e0, 1, FIXED),
    ignored("VGT_OUTPUT_PATH_CNTL", 0x28a10, 1, FIXED),
    ignored("VGT_HOS_CNTL", 0x28a14, 11, FIXED),
    ignored("PA_SC_MPASS_PS_CNTL", 0x28a48, 1, FIXED),
    ignored("VGT_ENHANCE", 0x28a50, 1, SPEED),
    ignored("VGT_DMA_NUM_INSTANCES", 0x28a88, 1, FIXED),
    ignored("VGT_INSTANCE_STEP_RATE_0", 0x28aa0, 2, FIXED),
    ignored("VGT_REUSE_OFF", 0x28ab4, 1, "a vertex that is shaded twice has the same result"),
    ignored("VGT_VTX_CNT_EN", 0x28ab8, 1, SPEED),
    ignored("PA_SC_LINE_CNTL", 0x28c00, 1, "whether the last pixel of a line is drawn"),
    ignored("PA_SU_VTX_CNTL", 0x28c08, 1, "pixel centres at 0.5, positions in steps of 1/256 of a pixel"),
    ignored("CB_CLRCMP_CONTROL", 0x28c30, 4, FIXED),
    ignored("DB_RENDER_OVERRIDE", 0x28d10, 1, SPEED),
    ignored("DB_HTILE_SURFACE", 0x28d24, 5, META),
    ignored("VGT_VERTEX_REUSE_BLOCK_CNTL", 0x28c58, 2, SPEED),
];

/// Returns the entry of the register at a byte address, or `None` if the register is unknown.
pub(super) fn register(address: u32) -> Option<&'static Register> {
    static TABLE: LazyLock<RegisterTable> = LazyLock::new(|| RegisterTable::new(&[READ, IGNORED]));
    TABLE.get(address)
}

word! {
    /// Size of a colour or depth buffer.
    pub(super) struct Size(u32) = "CB_COLOR0_SIZE" {
        /// Pitch in units of eight elements, minus one.
        pitch_tile_max: u16 [9:0],
        /// Number of elements per slice in units of 64, minus one.
        slice_tile_max: u32 [29:10],
    }
    /// Range of slices of a colour or depth buffer to which a draw may write.
    pub(super) struct View(u32) = "CB_COLOR0_VIEW" {
        slice_start: u16 [10:0],
        slice_max: u16 [23:13],
    }
    /// Format of a colour buffer.
    pub(super) struct ColorInfo(u32) = "CB_COLOR0_INFO" {
        endian: u8 [1:0],
        format: u8 [7:2],
        array_mode: u8 [11:8],
        number_type: u8 [14:12],
        read_size: bool [15:15],
        comp_swap: u8 [17:16],
        tile_mode: u8 [19:18],
        blend_clamp: bool [20:20],
        clear_color: bool [21:21],
        blend_bypass: bool [22:22],
        blend_float32: bool [23:23],
        simple_float: bool [24:24],
        round_mode: bool [25:25],
        tile_compact: bool [26:26],
        source_format: bool [27:27],
    }
    /// Format of the depth buffer.
    pub(super) struct DepthInfo(u32) = "DB_DEPTH_INFO" {
        format: u8 [2:0],
        read_size: bool [3:3],
        array_mode: u8 [18:15],
        tile_surface_enable: bool [25:25],
        tile_compact: bool [26:26],
        zrange_precision: bool [31:31],
    }
    /// Depth and stencil tests.
    pub(super) struct DepthControl(u32) = "DB_DEPTH_CONTROL" {
        stencil_enable: bool [0:0],
        z_enable: bool [1:1],
        z_write_enable: bool [2:2],
        zfunc: u8 [6:4],
        backface_enable: bool [7:7],
        stencilfunc: u8 [10:8],
        stencilfail: u8 [13:11],
        stencilzpass: u8 [16:14],
        stencilzfail: u8 [19:17],
        stencilfunc_bf: u8 [22:20],
        stencilfail_bf: u8 [25:23],
        stencilzpass_bf: u8 [28:26],
        stencilzfail_bf: u8 [31:29],
    }
    /// Reference and masks of the stencil test.
    pub(super) struct StencilRefMask(u32) = "DB_STENCILREFMASK" {
        stencilref: u8 [7:0],
        stencilmask: u8 [15:8],
        stencilwritemask: u8 [23:16],
    }
    /// Exports of the pixel program other than colours.
    pub(super) struct DbShaderControl(u32) = "DB_SHADER_CONTROL" {
        z_export_enable: bool [0:0],
        stencil_ref_export_enable: bool [1:1],
        z_order: u8 [5:4],
        kill_enable: bool [6:6],
        mask_export_enable: bool [8:8],
        dual_export_enable: bool [9:9],
    }
    /// Clears, copies and queries of the depth unit.
    pub(super) struct RenderControl(u32) = "DB_RENDER_CONTROL" {
        depth_clear_enable: bool [0:0],
        stencil_clear_enable: bool [1:1],
        depth_copy_enable: bool [2:2],
        stencil_copy_enable: bool [3:3],
        resummarize_enable: bool [4:4],
        stencil_compress_disable: bool [5:5],
        depth_compress_disable: bool [6:6],
        copy_centroid: bool [7:7],
        copy_sample: u8 [9:8],
        zpass_increment_disable: bool [11:11],
        conservative_z_export: u8 [14:13],
        perfect_zpass_counts: bool [15:15],
    }
    /// State that all colour targets share.
    pub(super) struct ColorControl(u32) = "CB_COLOR_CONTROL" {
        fog_enable: bool [0:0],
        multiwrite_enable: bool [1:1],
        dither_enable: bool [2:2],
        degamma_enable: bool [3:3],
        special_op: u8 [6:4],
        per_mrt_blend: bool [7:7],
        target_blend_enable: u8 [15:8],
        rop3: u8 [23:16],
    }
    /// Blending of a colour target.
    pub(super) struct BlendControl(u32) = "CB_BLEND_CONTROL" {
        color_srcblend: u8 [4:0],
        color_comb_fcn: u8 [7:5],
        color_destblend: u8 [12:8],
        opacity_weight: bool [13:13],
        alpha_srcblend: u8 [20:16],
        alpha_comb_fcn: u8 [23:21],
        alpha_destblend: u8 [28:24],
        separate_alpha_blend: bool [29:29],
    }
    /// The alpha test.
    pub(super) struct AlphaTest(u32) = "SX_ALPHA_TEST_CONTROL" {
        alpha_func: u8 [2:0],
        alpha_test_enable: bool [3:3],
        alpha_test_bypass: bool [8:8],
    }
    /// Clip planes, and the definition of clip space.
    pub(super) struct ClipCntl(u32) = "PA_CL_CLIP_CNTL" {
        ucp_ena: u8 [5:0],
        ps_ucp_y_scale_neg: bool [13:13],
        ps_ucp_mode: u8 [15:14],
        clip_disable: bool [16:16],
        ucp_cull_only_ena: bool [17:17],
        boundary_edge_flag_ena: bool [18:18],
        dx_clip_space_def: bool [19:19],
        dis_clip_err_detect: bool [20:20],
        vtx_kill_or: bool [21:21],
        dx_rasterization_kill: bool [22:22],
        dx_linear_attr_clip_ena: bool [24:24],
        vte_vport_provoke_disable: bool [25:25],
        zclip_near_disable: bool [26:26],
        zclip_far_disable: bool [27:27],
    }
    /// Transformation from clip space to the window.
    pub(super) struct VteCntl(u32) = "PA_CL_VTE_CNTL" {
        vport_x_scale_ena: bool [0:0],
        vport_x_offset_ena: bool [1:1],
        vport_y_scale_ena: bool [2:2],
        vport_y_offset_ena: bool [3:3],
        vport_z_scale_ena: bool [4:4],
        vport_z_offset_ena: bool [5:5],
        vtx_xy_fmt: bool [8:8],
        vtx_z_fmt: bool [9:9],
        vtx_w0_fmt: bool [10:10],
    }
    /// Exports of the vertex program that follow the position.
    pub(super) struct VsOutCntl(u32) = "PA_CL_VS_OUT_CNTL" {
        clip_dist_ena: u8 [7:0],
        cull_dist_ena: u8 [15:8],
        use_vtx_point_size: bool [16:16],
        use_vtx_edge_flag: bool [17:17],
        use_vtx_render_target_indx: bool [18:18],
        use_vtx_viewport_indx: bool [19:19],
        use_vtx_kill_flag: bool [20:20],
        vs_out_misc_vec_ena: bool [21:21],
        vs_out_ccdist0_vec_ena: bool [22:22],
        vs_out_ccdist1_vec_ena: bool [23:23],
    }
    /// State of the front and back sides of polygons.
    pub(super) struct ScModeCntl(u32) = "PA_SU_SC_MODE_CNTL" {
        cull_front: bool [0:0],
        cull_back: bool [1:1],
        face: bool [2:2],
        poly_mode: u8 [4:3],
        polymode_front_ptype: u8 [7:5],
        polymode_back_ptype: u8 [10:8],
        poly_offset_front_enable: bool [11:11],
        poly_offset_back_enable: bool [12:12],
        poly_offset_para_enable: bool [13:13],
        vtx_window_offset_enable: bool [16:16],
        provoking_vtx_last: bool [19:19],
        persp_corr_dis: bool [20:20],
        multi_prim_ib_ena: bool [21:21],
    }
    /// An input of the pixel program.
    pub(super) struct PsInputCntl(u32) = "SPI_PS_INPUT_CNTL_0" {
        semantic: u8 [7:0],
        default_val: u8 [9:8],
        flat_shade: bool [10:10],
        sel_centroid: bool [11:11],
        sel_linear: bool [12:12],
        cyl_wrap: u8 [16:13],
        pt_sprite_tex: bool [17:17],
        sel_sample: bool [18:18],
    }
    /// Number of inputs of the pixel program, and the register that receives the position.
    pub(super) struct PsInControl0(u32) = "SPI_PS_IN_CONTROL_0" {
        num_interp: u8 [5:0],
        position_ena: bool [8:8],
        position_centroid: bool [9:9],
        position_addr: u8 [14:10],
        param_gen: u8 [18:15],
        param_gen_addr: u8 [25:19],
        baryc_sample_cntl: u8 [27:26],
        persp_gradient_ena: bool [28:28],
        linear_gradient_ena: bool [29:29],
        position_sample: bool [30:30],
        baryc_at_sample_ena: bool [31:31],
    }
    /// Register that receives the visible side of the polygon.
    pub(super) struct PsInControl1(u32) = "SPI_PS_IN_CONTROL_1" {
        gen_index_pix: bool [0:0],
        gen_index_pix_addr: u8 [7:1],
        front_face_ena: bool [8:8],
        front_face_chan: u8 [10:9],
        front_face_all_bits: bool [11:11],
        front_face_addr: u8 [16:12],
        fog_addr: u8 [23:17],
        fixed_pt_position_ena: bool [24:24],
        fixed_pt_position_addr: u8 [29:25],
    }
    /// Flat shading and point sprites.
    pub(super) struct InterpControl(u32) = "SPI_INTERP_CONTROL_0" {
        flat_shade_ena: bool [0:0],
        pnt_sprite_ena: bool [1:1],
        pnt_sprite_ovrd_x: u8 [4:2],
        pnt_sprite_ovrd_y: u8 [7:5],
        pnt_sprite_ovrd_z: u8 [10:8],
        pnt_sprite_ovrd_w: u8 [13:11],
        pnt_sprite_top_1: bool [14:14],
    }
    /// Multisampling and line stipple.
    pub(super) struct ScMode(u32) = "PA_SC_MODE_CNTL" {
        msaa_enable: bool [0:0],
        cliprect_enable: bool [1:1],
        line_stipple_enable: bool [2:2],
        /// Fields that affect only speed.
        order: u16 [16:3],
        ps_iter_sample: bool [17:17],
        /// Fields of R700. Only R700 has these fields. One of the fields enables the viewport scissors. On R600, the
        /// viewport scissors are always on.
        others: u16 [31:18],
    }
    /// Number of samples per pixel.
    pub(super) struct AaConfig(u32) = "PA_SC_AA_CONFIG" {
        /// log2 of the number of samples.
        msaa_num_samples: u8 [1:0],
        aa_mask_centroid_dtmn: bool [4:4],
        max_sample_dist: u8 [16:13],
    }
    /// Line stipple.
    pub(super) struct LineStipple(u32) = "PA_SC_LINE_STIPPLE" {
        line_pattern: u16 [15:0],
        /// Number of pixels per bit, minus one.
        repeat_count: u8 [23:16],
        pattern_bit_order: bool [28:28],
        auto_reset_cntl: u8 [30:29],
    }
    /// Conversion of alpha to coverage.
    pub(super) struct AlphaToMask(u32) = "DB_ALPHA_TO_MASK" {
        alpha_to_mask_enable: bool [0:0],
        alpha_to_mask_offset0: u8 [9:8],
        alpha_to_mask_offset1: u8 [11:10],
        alpha_to_mask_offset2: u8 [13:12],
        alpha_to_mask_offset3: u8 [15:14],
        offset_round: bool [16:16],
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
