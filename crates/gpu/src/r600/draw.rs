//! Translates registers to a [`Draw`]. A [`Draw`] has the state of the fixed-function units, and the inputs and outputs
//! of programs.

use std::array;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::Columns;
use reconverge_r700::outcome::Outcome;
use reconverge_raster::blend::{self, Blend, Equation, Factor, LogicOp};
use reconverge_raster::clip::Clip;
use reconverge_raster::depth::{Compare, Stencil, Tests};
use reconverge_raster::draw::{
    CopiedTexels, Copy, DepthTarget, Draw, Fill, FragmentProgram, Fragments, LaneColumn, LaneWords,
    Multisample, Offset, Points, ReadColumns, SampleOrder, Shaded, Side, Stipple, Surface, Target, Viewport,
    blend_range,
};
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::primitive::{self, Topology, assemble};
use reconverge_raster::setup::{PIXEL, Rectangle};
use reconverge_raster::vertex::Vertex;

use super::format;
use super::registers::{self as reg, *};
use super::shader::Shader;
use super::state::{State, fields};
use crate::Fault;
use crate::capture::{FragmentRecording, Recording};
use crate::sampling::STENCIL_OPS;

/// ARRAY_BASE of the position. For the other exports of kind POS, ARRAY_BASE is larger.
const POSITION: u16 = 60;
/// ARRAY_BASE of the depth and stencil that a pixel program computes.
const COMPUTED_Z: u16 = 61;
/// Upper limit of the guard band. The guard band is the maximum ratio of x and y to w. With the limit, window
/// coordinates stay within 2^22 for a viewport of 8192 pixels.
const BAND: f32 = 256.;
/// Maximum number of attributes of a vertex.
const MOST_PARAMS: usize = 32;
/// Number of viewports.
const VIEWPORTS: u32 = 16;

/// Registers that determine the meaning of the vertex program's exports.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexLayout {
    out: VsOutCntl,
    clip: ClipCntl,
    /// Number of PARAM exports, which are the attributes.
    params: usize,
}

/// Primitives of a draw that have the same viewport and layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) topology: Topology,
    /// Runs of vertices. Each vertex is stored as the number of the lane that computed the vertex.
    pub(super) runs: Vec<Vec<usize>>,
    /// Number of the viewport.
    pub(super) viewport: usize,
    /// Slice of each target to which the part is drawn, relative to the first slice of the view.
    pub(super) layer: u32,
}

/// Returns the topology that the register selects, or `None` for a type that is not supported.
pub(super) fn topology(state: &mut State) -> Option<Topology> {
    Some(match state.word(reg::VGT_PRIMITIVE_TYPE) & 0x3f {
        0x01 => Topology::Points,
        0x02 => Topology::Lines,
        0x03 => Topology::LineStrip,
        0x04 => Topology::Triangles,
        0x05 => Topology::TriangleFan,
        0x06 => Topology::TriangleStrip,
        0x0a => Topology::LinesAdjacency,
        0x0b => Topology::LineStripAdjacency,
        0x0c => Topology::TrianglesAdjacency,
        0x0d => Topology::TriangleStripAdjacency,
        0x11 => Topology::Rectangles,
        0x12 => Topology::LineLoop,
        0x13 => Topology::Quads,
        0x14 => Topology::QuadStrip,
        0x15 => Topology::Polygon,
        other => {
            state.unknown.note(format!("VGT_PRIMITIVE_TYPE {other:#x}"));
            return None;
        }
    })
}

impl VertexLayout {
    pub(super) fn new(state: &mut State) -> VertexLayout {
        VertexLayout {
            out: fields!(state, VsOutCntl, state.word(reg::PA_CL_VS_OUT_CNTL)),
            clip: fields!(state, ClipCntl, state.word(reg::PA_CL_CLIP_CNTL)),
            params: (state.word(reg::SPI_VS_OUT_CONFIG) >> 1 & 0x1f) as usize + 1,
        }
    }

    /// Replaces `vertices` by the results of the vertex program. Each lane has computed one vertex. Reuses the memory
    /// of the old vertices.
    pub(super) fn vertices(
        &self,
        state: &State,
        outcome: &Outcome,
        lanes: usize,
        vertices: &mut Vec<Vertex>,
    ) {
        let values = |kind, base| outcome.export(kind, base).map(|exported| &exported.values[..]);
        let positions = values(ExportKind::Pos, POSITION);
        let misc = values(ExportKind::Pos, POSITION + 1).filter(|_| self.out.vs_out_misc_vec_ena);
        let first = POSITION + 1 + u16::from(self.out.vs_out_misc_vec_ena);
        let distances = [
            values(ExportKind::Pos, first).filter(|_| self.out.vs_out_ccdist0_vec_ena),
            values(ExportKind::Pos, first + 1).filter(|_| self.out.vs_out_ccdist1_vec_ena),
        ];
        let param = |param: usize| match param < self.params {
            true => values(ExportKind::Param, param as u16),
            false => None,
        };
        let params: [_; MOST_PARAMS] = array::from_fn(param);
        let planes = [0, 1, 2, 3, 4, 5]
            .map(|plane| [0, 1, 2, 3].map(|at| state.float(reg::PA_CL_UCP0_X, 4 * plane + at)));
        let of = |values: &Option<&[[u32; 4]]>, lane: usize| values.map_or([0; 4], |values| values[lane]);
        let vertex = |lane: usize, mut attributes: Vec<[u32; 4]>| {
            let position = of(&positions, lane).map(f32::from_bits);
            let distance = |plane: usize| match distances[plane / 4] {
                Some(values) => f32::from_bits(values[lane][plane % 4]),
                None if plane < 6 && self.clip.ucp_ena >> plane & 1 != 0 => {
                    (0..4).map(|at| position[at] * planes[plane][at]).sum()
                }
                None => 0.,
            };
            attributes.clear();
            attributes.extend(params[..self.params].iter().map(|param| of(param, lane)));
            // Mesa exports an integer that is 0 or 1. (`sfn_shader_vs.cpp`, VARYING_SLOT_EDGE)
            let inner_side = self.out.use_vtx_edge_flag && of(&misc, lane)[1] & 1 == 0;
            Vertex {
                position,
                inner_side,
                point_size: f32::from_bits(of(&misc, lane)[0]),
                distances: std::array::from_fn(distance),
                attributes,
            }
        };
        vertices.truncate(lanes);
        for (lane, place) in vertices.iter_mut().enumerate() {
            *place = vertex(lane, take(&mut place.attributes));
        }
        vertices.extend((vertices.len()..lanes).map(|lane| vertex(lane, Vec::new())));
    }

    /// Splits a draw into parts with the same viewport and layer. If vertices select the viewport or the layer, each
    /// part is a list of primitives. The primitives stay in the order of the draw. The provoking vertex of a primitive
    /// selects the viewport and the layer of the primitive.
    pub(super) fn parts(
        &self,
        state: &State,
        outcome: &Outcome,
        topology: Topology,
        runs: Vec<Vec<usize>>,
    ) -> impl Iterator<Item = Part> + use<> {
        let VsOutCntl { use_vtx_render_target_indx: layers, use_vtx_viewport_indx: viewports, .. } = self.out;
        let misc = outcome.export(ExportKind::Pos, POSITION + 1).filter(|_| self.out.vs_out_misc_vec_ena);
        let Some(misc) = misc.filter(|_| layers || viewports) else {
            let whole = Part { topology, runs, viewport: 0, layer: 0 };
            return Some(whole).into_iter().chain(Vec::new());
        };
        let last = state.word(reg::PA_SU_SC_MODE_CNTL) >> 19 & 1 != 0;
        let mut parts: Vec<Part> = Vec::new();
        for run in runs {
            for (primitive, corners) in assemble(topology, run.len(), last).into_iter().zip(primitive::list(
                topology,
                run.len(),
                last,
            )) {
                let [_, _, layer, viewport] = misc.values[run[primitive.provoking]];
                let layer = if layers { layer } else { 0 };
                let viewport = if viewports && viewport < VIEWPORTS { viewport as usize } else { 0 };
                let corners = corners.into_iter().map(|corner| run[corner]);
                match parts.last_mut() {
                    Some(part) if (part.layer, part.viewport) == (layer, viewport) => {
                        part.runs[0].extend(corners);
                    }
                    _ => parts.push(Part {
                        topology: primitive::list_of(topology),
                        runs: vec![corners.collect()],
                        viewport,
                        layer,
                    }),
                }
            }
        }
        None.into_iter().chain(parts)
    }

    /// Returns a mask of the clip distances and user planes that are on.
    fn planes(&self) -> u8 {
        self.out.clip_dist_ena | self.clip.ucp_ena
    }
}

/// Values of CB_COLOR_CONTROL.SPECIAL_OP.
mod special_op {
    pub(super) const NORMAL: u8 = 0;
    pub(super) const DISABLE: u8 = 1;
    pub(super) const EXPAND_SAMPLES: u8 = 6;
    pub(super) const RESOLVE_BOX: u8 = 7;
}

/// Returns the multisampling state.
///
/// In this model, samples are never compressed by FMASK or CMASK. Therefore, an expansion has no effect.
fn multisample(
    state: &mut State,
    mode: &ScMode,
    color: &ColorControl,
    render: &RenderControl,
) -> Multisample {
    let config = fields!(state, AaConfig, state.word(reg::PA_SC_AA_CONFIG));
    let count = 1usize << config.msaa_num_samples;
    let alpha = fields!(state, AlphaToMask, state.word(reg::DB_ALPHA_TO_MASK));
    let inputs = fields!(state, PsInControl0, state.word(reg::SPI_PS_IN_CONTROL_0));
    let copy = match color.special_op {
        special_op::EXPAND_SAMPLES => Some(Copy::Nothing),
        special_op::RESOLVE_BOX => Some(Copy::Resolve),
        _ if render.depth_copy_enable || render.stencil_copy_enable => Some(Copy::Depth(render.copy_sample)),
        _ => None,
    };
    let mut found = Multisample { copy, ..Multisample::default() };
    if count == 1 {
        return found;
    }
    let shared = [0, 1].map(|number| state.nth(reg::PA_SC_AA_SAMPLE_LOCS_MCTX, number));
    // On the first R600, each number of samples has separate registers for the sample positions.
    let own = match count {
        2 => [0, 0],
        4 => [1, 1],
        _ => [2, 3],
    };
    let own = own.map(|number| state.nth(reg::PA_SC_AA_SAMPLE_LOCS_2S, number));
    let words = if shared == [0; 2] { own } else { shared };
    let place = |sample: usize, axis: usize| {
        let nibble = words[sample / 4] >> (8 * (sample % 4) + 4 * axis) & 0xf;
        i64::from((nibble << 4) as u8 as i8 >> 4) * PIXEL / 16
    };
    found.places = (0..count).map(|sample| [0, 1].map(|axis| place(sample, axis))).collect();
    found.by_sample = mode.msaa_enable;
    // The register has one byte for each pixel of a quad. The driver sets all four bytes to the same value.
    found.mask = state.word(reg::PA_SC_AA_MASK) as u8;
    found.alpha_to_coverage = alpha.alpha_to_mask_enable;
    found.shades_samples = mode.msaa_enable && mode.ps_iter_sample;
    for number in 0..usize::from(inputs.num_interp).min(32) {
        let input = fields!(state, PsInputCntl, state.nth(reg::SPI_PS_INPUT_CNTL_0, number));
        found.at_centroid |= u64::from(input.sel_centroid) << number;
        found.at_sample |= u64::from(input.sel_sample) << number;
    }
    if inputs.baryc_sample_cntl == 0 {
        // The value 0 is CENTROIDS_ONLY. The driver sets CENTROIDS_ONLY if no program reads the position. RV770 fails
        // `interpolation N non-centroid-deriv`. This test computes differences between partially covered pixels.
        found.at_centroid = !0;
    }
    found.position = (inputs.position_centroid, inputs.position_sample);
    found
}

fn stipple(state: &mut State) -> Stipple {
    let word = fields!(state, LineStipple, state.word(reg::PA_SC_LINE_STIPPLE));
    let pattern = if word.pattern_bit_order { word.line_pattern.reverse_bits() } else { word.line_pattern };
    let restarts = word.auto_reset_cntl == 1;
    Stipple { pattern, factor: u16::from(word.repeat_count) + 1, restarts }
}

/// Translates the registers to the state of a draw. Returns `None` if the draw cannot draw any pixel.
pub(super) fn draw(state: &mut State, part: &Part, layout: &VertexLayout) -> Option<Draw> {
    let topology = part.topology;
    let clip = layout.clip;
    if clip.dx_rasterization_kill || state.word(reg::SX_MISC) & 1 != 0 {
        return None;
    }
    let vte = fields!(state, VteCntl, state.word(reg::PA_CL_VTE_CNTL));
    let mode = fields!(state, ScModeCntl, state.word(reg::PA_SU_SC_MODE_CNTL));
    let sc = fields!(state, ScMode, state.word(reg::PA_SC_MODE_CNTL));
    let render = fields!(state, RenderControl, state.word(reg::DB_RENDER_CONTROL));
    let color = fields!(state, ColorControl, state.word(reg::CB_COLOR_CONTROL));
    let missing = [
        (layout.out.use_vtx_kill_flag, "PA_CL_VS_OUT_CNTL.USE_VTX_KILL_FLAG"),
        (mode.persp_corr_dis, "PA_SU_SC_MODE_CNTL.PERSP_CORR_DIS"),
    ];
    for (_, name) in missing.into_iter().filter(|(used, _)| *used) {
        state.unknown.note(name);
    }
    let multisample = multisample(state, &sc, &color, &render);
    let samples = multisample.places.len().max(1);
    let viewport = |enabled: bool, number: usize, without: f32| match enabled {
        true => state.float(reg::PA_CL_VPORT_XSCALE_0, 6 * part.viewport + number),
        false => without,
    };
    let range = |at: usize| state.float(reg::PA_SC_VPORT_ZMIN_0, 2 * part.viewport + at);
    let viewport = Viewport {
        scale: [
            viewport(vte.vport_x_scale_ena, 0, 1.),
            viewport(vte.vport_y_scale_ena, 2, 1.),
            viewport(vte.vport_z_scale_ena, 4, 1.),
        ],
        offset: [
            viewport(vte.vport_x_offset_ena, 1, 0.),
            viewport(vte.vport_y_offset_ena, 3, 0.),
            viewport(vte.vport_z_offset_ena, 5, 0.),
        ],
        depth: Some((range(0), range(1))),
        divides: vte.vtx_w0_fmt && !vte.vtx_xy_fmt,
    };
    let inputs = inputs(state);
    let linear = inputs.iter().fold(0, |linear, input| match input {
        Input::Attribute { index, how: How::Linear } if *index < 64 => linear | 1 << index,
        _ => linear,
    });
    let cut = !clip.clip_disable && topology != Topology::Rectangles && viewport.divides;
    // Returns the maximum ratios of x and y to w, from two registers.
    let adjust = |x, y| [x, y].map(|register| state.float(register, 0));
    let cut = cut.then(|| Clip {
        near: (!clip.zclip_near_disable).then_some(clip.dx_clip_space_def),
        far: !clip.zclip_far_disable,
        distances: if clip.ucp_cull_only_ena { 0 } else { layout.planes() },
        culls: layout.out.cull_dist_ena | if clip.ucp_cull_only_ena { layout.planes() } else { 0 },
        band: adjust(reg::PA_CL_GB_HORZ_CLIP_ADJ, reg::PA_CL_GB_VERT_CLIP_ADJ).map(|band| band.min(BAND)),
        linear,
        discard: Some(adjust(reg::PA_CL_GB_HORZ_DISC_ADJ, reg::PA_CL_GB_VERT_DISC_ADJ)),
        cut_edges: clip.boundary_edge_flag_ena,
    });
    let depth_info = fields!(state, DepthInfo, state.word(reg::DB_DEPTH_INFO));
    let depth = format::depth(depth_info.format).and_then(|format| {
        let surface = surface(
            state,
            (reg::DB_DEPTH_BASE, 0),
            [reg::DB_DEPTH_SIZE, reg::DB_DEPTH_VIEW],
            format.bytes(),
            part.layer,
        )?;
        Some(DepthTarget { surface, format })
    });
    let copies_depth = render.depth_copy_enable || render.stencil_copy_enable;
    let alpha = fields!(state, AlphaTest, state.word(reg::SX_ALPHA_TEST_CONTROL));
    let alpha_test = (alpha.alpha_test_enable && !alpha.alpha_test_bypass)
        .then(|| (Compare::ALL[usize::from(alpha.alpha_func)], state.float(reg::SX_ALPHA_REF, 0)));
    Some(Draw {
        topology,
        last_provokes: mode.provoking_vtx_last,
        viewport,
        clip: cut,
        scissor: scissor(state, part.viewport),
        mask: None,
        front_is_clockwise: mode.face,
        sides: sides(state, &mode),
        points: points(state, layout),
        line_width: (state.word(reg::PA_SU_LINE_CNTL) & 0xffff) as f32 / 8.,
        rectangular_lines: false,
        stipple: sc.line_stipple_enable.then(|| stipple(state)),
        inputs,
        tests: tests(state),
        depth_bounds: None,
        depth,
        alpha_test,
        targets: targets(state, &color, part.layer, samples),
        logic: LogicOp(color.rop3 & 0xf),
        copies_depth,
        multisample,
    })
}

/// Returns the pixels inside of all scissors.
fn scissor(state: &State, viewport: usize) -> Rectangle {
    let pairs = [
        (reg::PA_SC_SCREEN_SCISSOR_TL, 0),
        (reg::PA_SC_WINDOW_SCISSOR_TL, 0),
        (reg::PA_SC_GENERIC_SCISSOR_TL, 0),
        (reg::PA_SC_VPORT_SCISSOR_0_TL, 2 * viewport),
    ];
    let corner = |word: u32| ((word & 0x3fff) as i32, (word >> 16 & 0x3fff) as i32);
    let all = pairs.map(|(address, first)| {
        let [(x0, y0), (x1, y1)] = [first, first + 1].map(|number| corner(state.nth(address, number)));
        Rectangle { x0, y0, x1, y1 }
    });
    all[1..].iter().fold(all[0], |found, next| found.and(*next))
}

fn sides(state: &mut State, mode: &ScModeCntl) -> [Side; 2] {
    let format = state.word(reg::PA_SU_POLY_OFFSET_DB_FMT_CNTL);
    let bits = i32::from(format as u8 as i8);
    let of_float = format >> 8 & 1 != 0;
    let clamp = f64::from(state.float(reg::PA_SU_POLY_OFFSET_CLAMP, 0));
    let offset = |number: usize| {
        let [scale, units] =
            [0, 1].map(|at| f64::from(state.float(reg::PA_SU_POLY_OFFSET_FRONT_SCALE, 2 * number + at)));
        let step = if of_float { 1. } else { libm::exp2(bits.into()) };
        Offset { slope: scale / 16., constant: units * step, of_float, clamp }
    };
    let fill = |kind: u8| match kind {
        _ if mode.poly_mode == 0 => Fill::Solid,
        0 => Fill::Points,
        1 => Fill::Lines,
        _ => Fill::Solid,
    };
    let (front, back) = (mode.poly_offset_front_enable, mode.poly_offset_back_enable);
    [
        Side {
            culled: mode.cull_front,
            fill: fill(mode.polymode_front_ptype),
            offset: front.then(|| offset(0)),
        },
        Side {
            culled: mode.cull_back,
            fill: fill(mode.polymode_back_ptype),
            offset: back.then(|| offset(1)),
        },
    ]
}

fn points(state: &State, layout: &VertexLayout) -> Points {
    // The registers contain half of the point size, in sixteenths of a pixel.
    let size = |word: u32| (word & 0xffff) as f32 / 8.;
    let (fixed, limits) = (state.word(reg::PA_SU_POINT_SIZE), state.word(reg::PA_SU_POINT_MINMAX));
    Points {
        size: [size(fixed >> 16), size(fixed)],
        from_vertex: layout.out.use_vtx_point_size,
        range: [size(limits), size(limits >> 16)],
    }
}

fn tests(state: &mut State) -> Tests {
    let control = fields!(state, DepthControl, state.word(reg::DB_DEPTH_CONTROL));
    let side = |masks: StencilRefMask, [compare, fail, pass, depth_fail]: [u8; 4]| Stencil {
        compare: Compare::ALL[usize::from(compare)],
        reference: masks.stencilref,
        mask: masks.stencilmask,
        write_mask: masks.stencilwritemask,
        fail: STENCIL_OPS[usize::from(fail)],
        depth_fail: STENCIL_OPS[usize::from(depth_fail)],
        pass: STENCIL_OPS[usize::from(pass)],
    };
    let front = fields!(state, StencilRefMask, state.word(reg::DB_STENCILREFMASK));
    let back = fields!(state, StencilRefMask, state.word(reg::DB_STENCILREFMASK_BF));
    let c = control;
    let front = side(front, [c.stencilfunc, c.stencilfail, c.stencilzpass, c.stencilzfail]);
    let back = side(back, [c.stencilfunc_bf, c.stencilfail_bf, c.stencilzpass_bf, c.stencilzfail_bf]);
    Tests {
        depth: c.z_enable.then(|| Compare::ALL[usize::from(c.zfunc)]),
        depth_write: c.z_write_enable,
        stencil: c.stencil_enable.then_some([front, if c.backface_enable { back } else { front }]),
    }
}

/// Returns a layer of a colour or depth buffer. `bytes` is the size of an element with all its samples. Returns `None`
/// if the base register had no relocation.
fn surface(
    state: &mut State,
    (base, number): (u32, usize),
    [size, view]: [u32; 2],
    bytes: usize,
    layer: u32,
) -> Option<Surface> {
    let place = state.place(base, number)?;
    let size = fields!(state, Size, state.nth(size, number));
    let view = fields!(state, View, state.nth(view, number));
    let pitch = (usize::from(size.pitch_tile_max) + 1) * 8;
    let elements = (size.slice_tile_max as usize + 1) * 64;
    // If the view does not contain the layer, the last slice of the view is used.
    let slice =
        (u32::from(view.slice_start).saturating_add(layer)).min(view.slice_max.max(view.slice_start).into());
    let start = place.start + slice as usize * elements * bytes;
    Some(Surface { start, end: place.end, pitch, rows: elements / pitch, order: SampleOrder::Planes })
}

fn targets(state: &mut State, control: &ColorControl, layer: u32, samples: usize) -> Vec<Target> {
    let mask = state.word(reg::CB_TARGET_MASK) & state.word(reg::CB_SHADER_MASK)
        | if control.multiwrite_enable { state.word(reg::CB_TARGET_MASK) } else { 0 };
    let mut found = Vec::new();
    match control.special_op {
        special_op::NORMAL | special_op::EXPAND_SAMPLES | special_op::RESOLVE_BOX => {}
        special_op::DISABLE => return found,
        other => state.unknown.note(format!("CB_COLOR_CONTROL.SPECIAL_OP {other}")),
    }
    let resolves = control.special_op == special_op::RESOLVE_BOX;
    for number in 0..8 {
        let mask = if resolves { 0xf } else { (mask >> (4 * number) & 0xf) as u8 };
        // The second target of a resolve has one sample per pixel.
        let samples = if resolves && number == 1 { 1 } else { samples };
        let info = fields!(state, ColorInfo, state.nth(reg::CB_COLOR0_INFO, number));
        if info.format == 0 || mask == 0 {
            continue;
        }
        let Some(format) = format::color(info.format, info.number_type) else {
            state.unknown.note(format!("CB_COLOR0_INFO.FORMAT {:#x}", info.format));
            continue;
        };
        let sizes = [reg::CB_COLOR0_SIZE, reg::CB_COLOR0_VIEW];
        let base = (reg::CB_COLOR0_BASE, number);
        let Some(surface) = surface(state, base, sizes, usize::from(format.bytes) * samples, layer) else {
            continue;
        };
        let blends = control.target_blend_enable >> number & 1 != 0 && !info.blend_bypass;
        let word = match control.per_mrt_blend {
            true => state.nth(reg::CB_BLEND0_CONTROL, number),
            false => state.word(reg::CB_BLEND_CONTROL),
        };
        let integer = format.numbers[0].is_integer();
        let blend = (blends && !integer && control.rop3 == 0xcc).then(|| {
            let range = blend_range(format.numbers[0]).filter(|_| info.blend_clamp);
            blend(state, word, range)
        });
        let color = if control.multiwrite_enable { 0 } else { number };
        found.push(Target {
            surface,
            format,
            places: format::places(&format, info.comp_swap),
            mask,
            blend,
            color,
        });
    }
    found
}

fn blend(state: &mut State, word: u32, range: Option<(f32, f32)>) -> Blend {
    let word = fields!(state, BlendControl, word);
    let mut factor = |code: u8| match code {
        0x00 => Factor::Zero,
        0x01 => Factor::One,
        0x02 => Factor::Source,
        0x03 => Factor::OneMinusSource,
        0x04 => Factor::SourceAlpha,
        0x05 => Factor::OneMinusSourceAlpha,
        0x06 => Factor::DestinationAlpha,
        0x07 => Factor::OneMinusDestinationAlpha,
        0x08 => Factor::Destination,
        0x09 => Factor::OneMinusDestination,
        0x0a => Factor::SourceAlphaSaturate,
        0x0d => Factor::Constant,
        0x0e => Factor::OneMinusConstant,
        0x0f => Factor::Second,
        0x10 => Factor::OneMinusSecond,
        0x11 => Factor::SecondAlpha,
        0x12 => Factor::OneMinusSecondAlpha,
        0x13 => Factor::ConstantAlpha,
        0x14 => Factor::OneMinusConstantAlpha,
        other => {
            state.unknown.note(format!("blend factor {other:#x}"));
            Factor::One
        }
    };
    let equation = |code: u8| match code {
        1 => Equation::Subtract,
        2 => Equation::Min,
        3 => Equation::Max,
        4 => Equation::ReverseSubtract,
        _ => Equation::Add,
    };
    let color: blend::Part =
        (factor(word.color_srcblend), equation(word.color_comb_fcn), factor(word.color_destblend));
    let alpha = match word.separate_alpha_blend {
        true => (factor(word.alpha_srcblend), equation(word.alpha_comb_fcn), factor(word.alpha_destblend)),
        false => color,
    };
    let constant = [0, 1, 2, 3].map(|at| state.float(reg::CB_BLEND_RED, at));
    Blend { color, alpha, constant, range }
}

/// Returns the inputs of the pixel program. Input i is written to register i.
fn inputs(state: &mut State) -> Vec<Input> {
    let control = fields!(state, PsInControl0, state.word(reg::SPI_PS_IN_CONTROL_0));
    let interp = fields!(state, InterpControl, state.word(reg::SPI_INTERP_CONTROL_0));
    let params = (state.word(reg::SPI_VS_OUT_CONFIG) >> 1 & 0x1f) as usize + 1;
    let id = |param: usize| (state.nth(reg::SPI_VS_OUT_ID_0, param / 4) >> (8 * (param % 4))) as u8;
    let ids: Vec<u8> = (0..params.min(40)).map(id).collect();
    let one = 1f32.to_bits();
    (0..usize::from(control.num_interp).min(32))
        .map(|number| {
            let input = fields!(state, PsInputCntl, state.nth(reg::SPI_PS_INPUT_CNTL_0, number));
            let param = match input.semantic {
                // The number 0 means that the input has no parameter.
                0 => None,
                semantic => ids.iter().position(|id| *id == semantic),
            };
            let how = match (input.flat_shade && interp.flat_shade_ena, input.sel_linear) {
                (true, _) => How::Flat,
                (false, true) => How::Linear,
                (false, false) => How::Perspective,
            };
            if input.pt_sprite_tex && interp.pnt_sprite_ena {
                return Input::Sprite { otherwise: param, top_is_one: interp.pnt_sprite_top_1 };
            }
            match param {
                Some(index) => Input::Attribute { index, how },
                None => Input::Constant(match input.default_val {
                    0 => [0; 4],
                    1 => [0, 0, 0, one],
                    2 => [one, one, one, 0],
                    _ => [one; 4],
                }),
            }
        })
        .collect()
}

/// Registers that control the inputs and exports of the pixel program.
#[derive(Clone, Copy, Debug)]
pub(super) struct PixelControl {
    control: PsInControl0,
    side: PsInControl1,
    exports: DbShaderControl,
}

impl PixelControl {
    pub(super) fn new(state: &mut State) -> PixelControl {
        let side = fields!(state, PsInControl1, state.word(reg::SPI_PS_IN_CONTROL_1));
        if side.gen_index_pix {
            state.unknown.note("SPI_PS_IN_CONTROL_1.GEN_INDEX_PIX");
        }
        PixelControl {
            control: fields!(state, PsInControl0, state.word(reg::SPI_PS_IN_CONTROL_0)),
            side,
            exports: fields!(state, DbShaderControl, state.word(reg::DB_SHADER_CONTROL)),
        }
    }
}

/// The pixel stage of a draw, which implements [`FragmentProgram`].
pub(super) struct PixelProgram<'a> {
    shader: &'a Shader,
    control: PsInControl0,
    side: PsInControl1,
    exports: DbShaderControl,
    pub(super) recording: FragmentRecording,
    rooms: &'a PixelRooms,
}

/// Memory of earlier runs of pixel programs. Later runs reuse this memory.
#[derive(Debug, Default)]
pub(super) struct PixelRooms(Mutex<Vec<PixelRoom>>);

/// Memory for a run of a pixel program.
#[derive(Debug, Default)]
struct PixelRoom {
    outcome: Outcome,
    colors: Vec<Option<[LaneWords; 4]>>,
}

impl PixelRooms {
    fn all(&self) -> MutexGuard<'_, Vec<PixelRoom>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> PixelProgram<'a> {
    pub(super) fn new(
        shader: &'a Shader,
        control: PixelControl,
        recording: Option<Recording>,
        rooms: &'a PixelRooms,
    ) -> PixelProgram<'a> {
        let PixelControl { control, side, exports } = control;
        let recording = FragmentRecording::new(recording);
        PixelProgram { shader, control, side, exports, recording, rooms }
    }
}

impl FragmentProgram for PixelProgram<'_> {
    type Error = Fault;

    fn reads(&self) -> ReadColumns {
        // A captured launch contains all inputs.
        if self.recording.is_on() {
            return ReadColumns::default();
        }
        let position = self.control.position_ena.then(|| self.shader.reads(self.control.position_addr));
        ReadColumns {
            inputs: (0..32).map(|gpr| self.shader.reads(gpr)).collect(),
            position: position.unwrap_or(0),
        }
    }

    fn may_skip_hidden(&self) -> bool {
        // In a captured draw, all lanes run.
        !self.recording.is_on() && !self.exports.z_export_enable
    }

    fn is_uniform(&self) -> bool {
        let own = self.side.front_face_ena || self.side.fixed_pt_position_ena;
        // A captured launch contains all lanes.
        !self.recording.is_on() && !own && self.shader.is_uniform()
    }

    fn copied(&self) -> Option<CopiedTexels> {
        // If the draw is captured, the texels are not copied, because a capture needs a run of the program.
        (!self.recording.is_on()).then_some(())?;
        let own = [
            self.control.position_ena.then_some(self.control.position_addr),
            self.side.front_face_ena.then_some(self.side.front_face_addr),
            self.side.fixed_pt_position_ena.then_some(self.side.fixed_pt_position_addr),
        ];
        self.shader.copied(&own.into_iter().flatten().collect::<Vec<_>>())
    }

    fn in_order(&self) -> bool {
        self.recording.is_on()
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Fault> {
        // `own` contains the registers whose values are not interpolated inputs. All remaining registers have the
        // unchanged columns of the inputs.
        let mut own: Vec<(u8, [LaneColumn; 4])> = Vec::new();
        let mut register = |gpr: u8| {
            let place = own.iter().position(|(number, _)| *number == gpr);
            place.unwrap_or_else(|| {
                own.push((gpr, fragments.inputs.get(usize::from(gpr)).cloned().unwrap_or_default()));
                own.len() - 1
            })
        };
        let position = self.control.position_ena.then(|| register(self.control.position_addr));
        let side = self.side.front_face_ena.then(|| register(self.side.front_face_addr));
        let fixed = self.side.fixed_pt_position_ena.then(|| register(self.side.fixed_pt_position_addr));
        if let Some(place) = position {
            own[place].1 = fragments.positions.clone();
        }
        if let Some(place) = side {
            let [one, other] = [1f32, -1.].map(f32::to_bits);
            let sides = (0..fragments.lanes).map(|lane| if fragments.is_front(lane) { one } else { other });
            own[place].1[usize::from(self.side.front_face_chan)] = Arc::new(sides.collect());
            // The third component of the same register is the mask of covered samples. (Mesa `r600_shader.c`,
            // allocate_system_value_inputs)
            let samples = (0..fragments.lanes).map(|lane| u32::from(fragments.samples(lane)));
            own[place].1[2] = Arc::new(samples.collect());
        }
        if let Some(place) = fixed {
            own[place].1[3] = Arc::new(fragments.sample.iter().map(|sample| u32::from(*sample)).collect());
        }
        let interpolated = fragments.inputs.iter().enumerate().map(|(gpr, values)| (gpr as u8, values));
        let others = interpolated.filter(|(gpr, _)| own.iter().all(|(number, _)| number != gpr));
        let all = others.chain(own.iter().map(|(gpr, values)| (*gpr, values)));
        let read = all.filter(|(_, values)| values.iter().any(|column| !column.is_empty()));
        let columns = read.map(|(gpr, values)| Columns { gpr, components: values.clone() }).collect();
        let PixelRoom { mut outcome, mut colors } = self.rooms.all().pop().unwrap_or_default();
        let mut recording = self.recording.lock();
        self.shader.run_fragments(&mut outcome, columns, recording.as_deref_mut(), fragments)?;
        let mut exported = |base: u16| {
            let mut found = outcome.columns.iter_mut();
            let columns = found.find(|found| found.kind == ExportKind::Pixel && found.base == base);
            if let Some(columns) = columns {
                return columns.written.then(|| take(&mut columns.components));
            }
            let whole = outcome.export(ExportKind::Pixel, base)?;
            whole.written.iter().any(|mask| *mask != 0).then(|| columns_of(&whole.values))
        };
        let mut computed = exported(COMPUTED_Z);
        let mut component = |enabled: bool, at: usize| {
            computed.as_mut().filter(|_| enabled).map(|computed| take(&mut computed[at]))
        };
        let depth = component(self.exports.z_export_enable, 0);
        let stencil = component(self.exports.stencil_ref_export_enable, 1);
        let mask = component(self.exports.mask_export_enable, 2);
        colors.clear();
        colors.extend((0..8).map(&mut exported));
        let some_are = outcome.killed.iter().fold(false, |any, killed| any | killed);
        let killed = if some_are { take(&mut outcome.killed) } else { Vec::new() };
        self.rooms.all().push(PixelRoom { outcome, colors: Vec::new() });
        Ok(Shaded { colors, depth, stencil, killed, mask })
    }

    fn merged(&self, shaded: Shaded) {
        let mut rooms = self.rooms.all();
        let Some(PixelRoom { outcome, colors }) = rooms.last_mut() else { return };
        *colors = shaded.colors;
        for (base, color) in (0..).zip(&mut *colors) {
            let mut all = outcome.columns.iter_mut();
            let columns = all.find(|columns| (columns.kind, columns.base) == (ExportKind::Pixel, base));
            if let (Some(columns), Some(color)) = (columns, color.take()) {
                columns.components = color;
            }
        }
    }
}

/// Converts one array per lane to columns.
fn columns_of(values: &[[u32; 4]]) -> [LaneWords; 4] {
    [0, 1, 2, 3].map(|chan| values.iter().map(|value| value[chan]).collect())
}
