//! Translates registers to a [`Draw`]. A [`Draw`] has the state of the fixed-function units, and the inputs and outputs
//! of the fragment program.

use std::ops::Range;
use std::sync::Arc;

use half::f16;
use reconverge_board::errata::Erratum;
use reconverge_r500::launch::Columns;
use reconverge_r500::words::OutSel;
use reconverge_raster::blend::{Blend, Equation, Factor, LogicOp, Part};
use reconverge_raster::clip::Clip;
use reconverge_raster::depth::{Compare, DepthFormat, Stencil, Tests};
use reconverge_raster::draw::{
    Coordinates, CopiedTexels, Copy, DepthTarget, Draw, Fill, FragmentProgram, Fragments, LaneColumn,
    LaneWords, Multisample, Offset, Points, ReadColumns, SampleOrder, Shaded, Side, Stipple, Surface, Target,
    Viewport, blend_range, samples_of_alpha,
};
use reconverge_raster::format::{Format, Number};
use reconverge_raster::interpolate::{How, Input};
use reconverge_raster::primitive::Topology;
use reconverge_raster::setup::Rectangle;

use super::format;
use super::multisample;
use super::registers::{self as reg, *};
use super::shader::Shader;
use super::state::{State, fields};
use super::vertex::{COLORS, Layout, SETS};
use crate::Fault;
use crate::capture::FragmentRecording;
use crate::sampling::STENCIL_OPS;

/// Number of steps per pixel to which window coordinates are rounded. The kernel clears SUBPIXEL of GB_TILE_CONFIG.
const STEPS: u16 = 12;
/// Number of colour targets.
pub(super) const TARGETS: usize = 4;
/// Value of END_TYPE in GA_LINE_CNTL. With this value, the chip draws the ends of a line at right angles to the line.
/// The driver sets this value for smooth lines. RV530 fails `line-aa-width`, because such lines have too many pixels.
const PERPENDICULAR: u32 = 3;
/// Index of the colour that the depth unit stores in a clear. Lower indices belong to the colour targets.
const CLEAR: usize = TARGETS;

/// Returns the topology of a PRIM_TYPE, or `None` for a type that does not draw anything.
pub(super) fn topology(state: &mut State, prim_type: u8) -> Option<Topology> {
    Some(match prim_type {
        0 => return None,
        1 => Topology::Points,
        2 => Topology::Lines,
        3 => Topology::LineStrip,
        4 => Topology::Triangles,
        5 => Topology::TriangleFan,
        6 => Topology::TriangleStrip,
        8 => Topology::Rectangles,
        12 => Topology::LineLoop,
        13 => Topology::Quads,
        14 => Topology::QuadStrip,
        15 => Topology::Polygon,
        other => {
            state.unknown.note(format!("VAP_VF_CNTL.PRIM_TYPE {other}"));
            return None;
        }
    })
}

/// The state of a draw, and the inputs and outputs of the draw's fragment program.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) draw: Draw,
    pub(super) coordinates: Coordinates,
    pub(super) routes: Routes,
    pub(super) outputs: Outputs,
}

/// Translates the registers to the state of a draw.
///
/// # Errors
/// Returns a fault if a buffer is too small for the rows of the scissor. The kernel also rejects a draw if a buffer is
/// too small (`r100_cs_track_check`).
pub(super) fn prepare(state: &mut State, topology: Topology, layout: &Layout) -> Result<Prepared, Fault> {
    let clip = layout.clip();
    let vte = fields!(state, VteCntl, state.word(reg::VAP_VTE_CNTL));
    let vap = fields!(state, VapCntl, state.word(reg::VAP_CNTL));
    let cull = fields!(state, CullMode, state.word(reg::SU_CULL_MODE));
    let shading = fields!(state, ColorControl, state.word(reg::GA_COLOR_CONTROL));
    // If vertices bypass the vertex unit, VAP_VTE_CNTL may have the reset value. In this case, the code ignores the
    // field VTX_XY_FMT and the fields of the viewport.
    let in_window = layout.bypasses() || vte.vtx_xy_fmt;
    let scale = |enabled: bool, number: usize, without: f32| match enabled && !layout.bypasses() {
        true => state.float(reg::SE_VPORT_XSCALE, number),
        false => without,
    };
    let viewport = Viewport {
        scale: [scale(vte.x_scale_ena, 0, 1.), scale(vte.y_scale_ena, 2, 1.), scale(vte.z_scale_ena, 4, 1.)],
        offset: [
            scale(vte.x_offset_ena, 1, 0.),
            scale(vte.y_offset_ena, 3, 0.),
            scale(vte.z_offset_ena, 5, 0.),
        ],
        depth: Some((0., 1.)),
        divides: vte.vtx_w0_fmt,
    };
    let cut = !clip.clip_disable && !in_window && topology != Topology::Rectangles;
    let (band, discard) = band(state);
    let clip = cut.then_some(Clip {
        near: Some(vap.dx_clip_space_def),
        far: true,
        distances: if clip.ucp_cull_only_ena { 0 } else { clip.ucp_ena },
        culls: if clip.ucp_cull_only_ena { clip.ucp_ena } else { 0 },
        band,
        linear: 0,
        discard,
        cut_edges: true,
    });
    let sides = sides(state, &cull);
    let stipple = stipple(state, topology, &sides);
    let (routes, inputs) = Routes::new(state, layout, &shading);
    let scissor = scissor(state);
    // No register contains the number of rows of a surface. Therefore, the lower edge of the scissor determines the
    // number of rows.
    let rows = usize::try_from(scissor.y1).unwrap_or(0);
    let (depth, tests) = depth(state, rows)?;
    let (mut targets, outputs) = targets(state, rows)?;
    targets.extend(clear(state, rows)?);
    let rop = fields!(state, RopCntl, state.word(reg::RB3D_ROPCNTL));
    let mut draw = Draw {
        topology,
        last_provokes: shading.provoking_vertex == 3,
        viewport,
        clip,
        scissor,
        mask: None,
        front_is_clockwise: cull.face,
        sides,
        points: points(state, layout),
        line_width: (state.word(reg::GA_LINE_CNTL) & 0xffff) as f32 / 6.,
        rectangular_lines: state.errata.has(Erratum::SmoothLines)
            && state.word(reg::GA_LINE_CNTL) >> 16 & 3 == PERPENDICULAR,
        inputs,
        depth,
        tests,
        depth_bounds: None,
        // The alpha test must read the program's outputs before their conversion. Therefore, `Outputs` performs the
        // alpha test.
        alpha_test: None,
        targets,
        logic: if rop.rop_enable { LogicOp(rop.rop) } else { LogicOp::COPY },
        copies_depth: false,
        stipple,
        multisample: Multisample::default(),
    };
    if multisample::prepare(state, &mut draw) {
        resolve(state, rows, &mut draw)?;
    }
    Ok(Prepared { draw, coordinates: Coordinates { in_window, steps: Some(STEPS) }, routes, outputs })
}

/// Returns the guard band, and the limits outside of which primitives are dropped. The guard band is the maximum ratio
/// of x and y to w, from VAP_GB_HORZ_CLIP_ADJ and VAP_GB_VERT_CLIP_ADJ. The driver writes 1 to both registers of the
/// guard band. The driver does not set a scissor at the edges of the viewport. Clipping at the guard band therefore
/// limits the drawn area to the viewport.
///
/// The limits are VAP_GB_HORZ_DISC_ADJ and VAP_GB_VERT_DISC_ADJ. The driver also writes 1 to these registers. As on
/// R600, the chip drops a primitive if all vertices of the primitive are beyond the limit of the same side. If both
/// limits are at least as large as the guard band, the limits have no effect. In this case, this function returns
/// `None` for the limits.
fn band(state: &State) -> ([f32; 2], Option<[f32; 2]>) {
    let [y, y_discards, x, x_discards] = [0, 1, 2, 3].map(|at| state.float(reg::VAP_GB_VERT_CLIP_ADJ, at));
    let drops = x_discards < x || y_discards < y;
    ([x, y], drops.then_some([x_discards, y_discards]))
}

/// Returns the pixels inside of the scissor and of the clip rectangles. Each pixel has a number n of four bits. Bit i
/// of n is set if clip rectangle i contains the pixel. The chip draws the pixel if bit n of SC_CLIP_RULE is set. The
/// function supports a rule only if the rule selects some rectangles and draws only the pixels inside of all selected
/// rectangles. The function reports all other rules.
fn scissor(state: &mut State) -> Rectangle {
    let corner = |word: u32| ((word & 0x1fff) as i32, (word >> 13 & 0x1fff) as i32);
    let rectangle = |address: u32, number: usize| {
        let [(x0, y0), (x1, y1)] = [0, 1].map(|at| corner(state.nth(address, 2 * number + at)));
        Rectangle { x0, y0, x1: x1 + 1, y1: y1 + 1 }
    };
    let whole = rectangle(reg::SC_SCISSORS_TL, 0);
    let rule = state.word(reg::SC_CLIP_RULE) & 0xffff;
    if rule == 0 {
        return Rectangle { x1: whole.x0, ..whole };
    }
    let inside_of =
        |all: u32| (0..16).filter(|sets| sets & all == all).fold(0, |rule, sets| rule | 1 << sets);
    match (0..16).find(|all| inside_of(*all) == rule) {
        Some(all) => {
            let wanted = (0..4).filter(|number| all >> number & 1 != 0);
            wanted.fold(whole, |inside, number| inside.and(rectangle(reg::SC_CLIPRECT_TL_0, number)))
        }
        None => {
            state.unknown.note(format!("SC_CLIP_RULE {rule:#x}"));
            whole
        }
    }
}

fn sides(state: &mut State, cull: &CullMode) -> [Side; 2] {
    let mode = fields!(state, PolyMode, state.word(reg::GA_POLY_MODE));
    let enable = fields!(state, PolyOffsetEnable, state.word(reg::SU_POLY_OFFSET_ENABLE));
    let format = fields!(state, ZbFormat, state.word(reg::ZB_FORMAT));
    let most = if format.depthformat == 0 { 65_535. } else { 16_777_215. };
    let offset = |number: usize| {
        let [scale, units] =
            [0, 1].map(|at| f64::from(state.float(reg::SU_POLY_OFFSET_FRONT_SCALE, 2 * number + at)));
        // The register has the slope per subpixel step.
        Offset { slope: scale / f64::from(STEPS), constant: units / most, of_float: false, clamp: 0. }
    };
    let fill = |kind: u8| match kind {
        _ if mode.dual_mode == 0 => Fill::Solid,
        0 => Fill::Points,
        1 => Fill::Lines,
        _ => Fill::Solid,
    };
    [
        Side {
            culled: cull.cull_front,
            fill: fill(mode.front_ptype),
            offset: enable.front_enable.then(|| offset(0)),
        },
        Side {
            culled: cull.cull_back,
            fill: fill(mode.back_ptype),
            offset: enable.back_enable.then(|| offset(1)),
        },
    ]
}

/// Returns the line stipple, or `None` if the line stipple is off.
///
/// STIPPLE_SCALE is interpreted as the number of pattern bits per pixel. Mesa writes OpenGL's factor minus one.
/// Therefore, a line with a factor of 1 uses the first bit of the pattern for all pixels. The test `linestipple` has
/// six parts. RV530 passes only the part with a solid pattern.
fn stipple(state: &mut State, topology: Topology, sides: &[Side; 2]) -> Option<Stipple> {
    let of_lines = matches!(topology, Topology::Lines | Topology::LineStrip | Topology::LineLoop);
    let config = fields!(state, LineStippleConfig, state.word(reg::GA_LINE_STIPPLE_CONFIG));
    let restarts = match config.line_reset {
        1 => true,
        2 => false,
        _ => return None,
    };
    if !of_lines && sides.iter().all(|side| side.fill != Fill::Lines) {
        return None;
    }
    let pattern = state.word(reg::GA_LINE_STIPPLE_VALUE) as u16;
    let scale = f32::from_bits(config.stipple_scale << 2);
    let whole =
        |number: f32| (libm::truncf(number) == number && (0. ..65_536.).contains(&number)).then_some(number);
    if let Some(scale) = whole(scale) {
        if !state.errata.has(Erratum::StippleScale) {
            return Some(Stipple { pattern, factor: (scale as u16).saturating_add(1), restarts });
        }
        let bit = |at: u32| u16::from(pattern >> (at * scale as u32 % 16) & 1 != 0) << at;
        let pattern = (0..16).map(bit).sum();
        return Some(Stipple { pattern, factor: 1, restarts });
    }
    let factor = whole(1. / scale);
    if factor.is_none() {
        state.unknown.note(format!("GA_LINE_STIPPLE_CONFIG.STIPPLE_SCALE {scale}"));
    }
    factor.map(|factor| Stipple { pattern, factor: factor as u16, restarts })
}

fn points(state: &State, layout: &Layout) -> Points {
    let size = |word: u32| (word & 0xffff) as f32 / 6.;
    let (fixed, limits) = (state.word(reg::GA_POINT_SIZE), state.word(reg::GA_POINT_MINMAX));
    Points {
        size: [size(fixed >> 16), size(fixed)],
        from_vertex: layout.has_point_size(),
        range: [size(limits), size(limits >> 16)],
    }
}

/// Comparisons, indexed by the codes of the depth unit.
const DEPTH_COMPARES: [Compare; 8] = [
    Compare::Never,
    Compare::Less,
    Compare::LessEqual,
    Compare::Equal,
    Compare::GreaterEqual,
    Compare::Greater,
    Compare::NotEqual,
    Compare::Always,
];

/// Returns the depth buffer and the depth and stencil tests. The depth buffer is `None` if both tests are off.
fn depth(state: &mut State, rows: usize) -> Result<(Option<DepthTarget>, Tests), Fault> {
    let control = fields!(state, ZbCntl, state.word(reg::ZB_CNTL));
    if !control.stencil_enable && !control.z_enable {
        return Ok((None, Tests::default()));
    }
    let c = fields!(state, ZStencilCntl, state.word(reg::ZB_ZSTENCILCNTL));
    let side = |masks: StencilRefMask, [compare, fail, pass, depth_fail]: [u8; 4]| Stencil {
        compare: DEPTH_COMPARES[usize::from(compare)],
        reference: masks.stencilref,
        mask: masks.stencilmask,
        write_mask: masks.stencilwritemask,
        fail: STENCIL_OPS[usize::from(fail)],
        depth_fail: STENCIL_OPS[usize::from(depth_fail)],
        pass: STENCIL_OPS[usize::from(pass)],
    };
    let front_masks = fields!(state, StencilRefMask, state.word(reg::ZB_STENCILREFMASK));
    let back_masks = match control.stencil_refmask_front_back {
        true => fields!(state, StencilRefMask, state.word(reg::ZB_STENCILREFMASK_BF)),
        false => front_masks,
    };
    let front = side(front_masks, [c.stencilfunc, c.stencilfail, c.stencilzpass, c.stencilzfail]);
    let back = match control.stencil_front_back {
        true => side(back_masks, [c.stencilfunc_bf, c.stencilfail_bf, c.stencilzpass_bf, c.stencilzfail_bf]),
        false => front,
    };
    let tests = Tests {
        depth: control.z_enable.then(|| DEPTH_COMPARES[usize::from(c.zfunc)]),
        depth_write: control.zwriteenable,
        stencil: control.stencil_enable.then_some([front, back]),
    };
    Ok((depth_target(state, rows)?, tests))
}

/// Returns the depth buffer, or `None` if the format of the depth buffer is not supported.
fn depth_target(state: &mut State, rows: usize) -> Result<Option<DepthTarget>, Fault> {
    let word = fields!(state, ZbFormat, state.word(reg::ZB_FORMAT));
    let pitch = fields!(state, DepthPitch, state.word(reg::ZB_DEPTHPITCH));
    let Some(format) = format::depth(word.depthformat) else {
        state.unknown.note(format!("ZB_FORMAT.DEPTHFORMAT {}", word.depthformat));
        return Ok(None);
    };
    let offset = (state.word(reg::ZB_DEPTHOFFSET) & !0x1f) as usize;
    let Some(buffer) = state.buffer(reg::ZB_DEPTHOFFSET, 0) else { return Ok(None) };
    let pitch = usize::from(pitch.depthpitch) * 4;
    let surface = surface("the depth buffer", &buffer, offset, pitch, rows, format.bytes())?;
    Ok(Some(DepthTarget { surface, format }))
}

/// Returns a surface at `offset` in a buffer. A row of the surface has `pitch` pixels, and each pixel has `bytes`
/// bytes.
fn surface(
    name: &str,
    buffer: &Range<usize>,
    offset: usize,
    pitch: usize,
    rows: usize,
    bytes: usize,
) -> Result<Surface, Fault> {
    let needed = offset + rows * pitch * bytes;
    if needed > buffer.len() {
        let size = buffer.len();
        return Err(Fault::Malformed(format!(
            "{name}: {rows} rows of {pitch} pixels of {bytes} bytes at {offset:#x} do not fit in a buffer of {size:#x} \
             bytes"
        )));
    }
    Ok(Surface { start: buffer.start + offset, end: buffer.end, pitch, rows, order: SampleOrder::Planes })
}

/// Turns the draw into a resolve if RB3D_AARESOLVE_CTL.AARESOLVE_MODE is set. A resolve computes the mean of the
/// samples of each pixel in the first target. The resolve stores the means in a second buffer, and ignores the results
/// of the program.
fn resolve(state: &mut State, rows: usize, draw: &mut Draw) -> Result<(), Fault> {
    let control = fields!(state, AaResolveCtl, state.word(reg::RB3D_AARESOLVE_CTL));
    if !control.aaresolve_mode {
        return Ok(());
    }
    if control.aaresolve_gamma || !control.aaresolve_alpha {
        state.unknown.note("RB3D_AARESOLVE_CTL other than the mean of all samples");
    }
    draw.multisample.copy = Some(Copy::Nothing);
    draw.targets.truncate(1);
    let buffer = state.buffer(reg::RB3D_AARESOLVE_OFFSET, 0);
    let (Some(from), Some(buffer)) = (draw.targets.first(), buffer) else { return Ok(()) };
    let offset = (state.word(reg::RB3D_AARESOLVE_OFFSET) & !0x1f) as usize;
    let pitch = fields!(state, ColorPitch, state.word(reg::RB3D_AARESOLVE_PITCH));
    let (pitch, bytes) = (usize::from(pitch.colorpitch) * 2, from.format.bytes.into());
    let surface = surface("the resolved buffer", &buffer, offset, pitch, rows, bytes)?;
    draw.targets.push(Target { surface, mask: 0xf, blend: None, ..from.clone() });
    draw.multisample.copy = Some(Copy::Resolve);
    Ok(())
}

/// If ZB_CB_CLEAR is set, returns the target to which the depth unit stores the depth unit's clear value. To clear a
/// colour buffer, the driver uses the depth unit for one half of the buffer and the colour unit for the second half.
fn clear(state: &mut State, rows: usize) -> Result<Option<Target>, Fault> {
    let control = fields!(state, BwCntl, state.word(reg::ZB_BW_CNTL));
    if !control.zb_cb_clear {
        return Ok(None);
    }
    let Some(DepthTarget { surface, format }) = depth_target(state, rows)? else { return Ok(None) };
    let bits = if format == DepthFormat::Unorm16 { 16 } else { 32 };
    Ok(Some(Target {
        surface,
        format: Format::new([bits, 0, 0, 0], Number::Uint),
        places: [Some(0), None, None, None],
        mask: 1,
        blend: None,
        color: CLEAR,
    }))
}

/// Conversion of the fragment program's outputs before the outputs are stored.
#[derive(Clone, Debug)]
pub(super) struct Outputs {
    /// An entry belongs to a target. The entry has the number of an output of the program, and the channels of this
    /// output that the chip stores as C0 to C3.
    targets: [Option<(usize, [u8; 4])>; TARGETS],
    /// An entry belongs to a target. If blending treats the target's signed fractions as unsigned fractions, the entry
    /// is the width of a component in bits. Otherwise, the entry is `None`.
    signed: [Option<u8>; TARGETS],
    /// The alpha test for output 0, or `None` if the alpha test is off.
    alpha: Option<Alpha>,
    /// Value that the depth unit stores, if ZB_CB_CLEAR is set.
    clear: Option<u32>,
    /// Whether the program outputs depth.
    depth: bool,
    /// Number of samples per pixel, if alpha of output 0 determines how many samples are covered.
    covers: Option<usize>,
}

/// The alpha test.
#[derive(Clone, Copy, Debug)]
struct Alpha {
    compare: Compare,
    reference: Reference,
    /// Channel of output 0 that is compared.
    channel: u8,
}

/// The reference value of an alpha test.
#[derive(Clone, Copy, Debug)]
enum Reference {
    /// A half-precision float. Alpha is converted to half precision before the comparison.
    Float(f32),
    /// An eight-bit value. The test compares this value with bits 31 to 24 of a pixel's first word. The pixel has the
    /// format in which the fragment unit outputs the pixel. If components have eight bits, bits 31 to 24 are alpha. See
    /// [`upper_byte`].
    Byte(u8, OutputFormat),
}

/// Format in which the fragment unit outputs a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    Fraction,
    Signed,
    Wide,
    WideSigned,
    Half,
    Single,
}

impl OutputFormat {
    /// Returns the format of US_OUT_FMT. Also returns the number of the component in bits 31 to 24 of a pixel's first
    /// word. The number is 0 to 3 for C0 to C3. If components have ten bits, the returned component is alpha.
    fn of(out: u32) -> (OutputFormat, usize) {
        let signed = out >> 16 & 0xf != 0;
        match (out & 0x1f, signed) {
            (3..=5, false) => (OutputFormat::Wide, 1),
            (3..=5, true) => (OutputFormat::WideSigned, 1),
            (16..=18, _) => (OutputFormat::Half, 1),
            (19..=21, _) => (OutputFormat::Single, 0),
            (_, false) => (OutputFormat::Fraction, 3),
            (_, true) => (OutputFormat::Signed, 3),
        }
    }
}

/// Returns the upper eight bits of a component in a format.
///
/// The eight-bit alpha test reads the component in bits 31 to 24 of a pixel's first word. If components have more than
/// eight bits, the read component may be red, green or blue instead of alpha. The evidence is `fbo-alphatest-formats`
/// on an RV530. The test fails for all signed and floating-point formats, and for R, RG, RGB and RGBA of 16 bits. The
/// test passes for LA of 16 bits, whose second component is alpha.
fn upper_byte(value: f32, format: OutputFormat) -> u8 {
    let fraction = |least: f64, steps: f64| {
        let value = if value.is_nan() { 0. } else { f64::from(value).clamp(least, 1.) };
        libm::rint(value * steps) as i32
    };
    match format {
        OutputFormat::Fraction => fraction(0., 255.) as u8,
        OutputFormat::Signed => fraction(-1., 127.) as u8,
        OutputFormat::Wide => (fraction(0., 65_535.) >> 8) as u8,
        OutputFormat::WideSigned => (fraction(-1., 32_767.) >> 8) as u8,
        OutputFormat::Half => (f16::from_f32(value).to_bits() >> 8) as u8,
        OutputFormat::Single => (value.to_bits() >> 24) as u8,
    }
}

impl Alpha {
    fn passes(self, value: f32) -> bool {
        match self.reference {
            Reference::Byte(reference, format) => self.compare.passes(upper_byte(value, format), reference),
            Reference::Float(reference) => self.compare.passes(f16::from_f32(value).to_f32(), reference),
        }
    }
}

/// Returns the colour targets. Also returns the conversion of the program's outputs for the colour targets.
fn targets(state: &mut State, rows: usize) -> Result<(Vec<Target>, Outputs), Fault> {
    let control = fields!(state, Cctl, state.word(reg::RB3D_CCTL));
    let alpha = fields!(state, AlphaFunc, state.word(reg::FG_ALPHA_FUNC));
    let compare = Compare::ALL[usize::from(alpha.af_func)];
    let half = f16::from_bits(state.word(reg::FG_ALPHA_VALUE) as u16).to_f32();
    let first = state.word(reg::US_OUT_FMT_0);
    let (format, place) = match state.errata.has(Erratum::AlphaTest) {
        true => OutputFormat::of(first),
        false => (OutputFormat::Fraction, 3),
    };
    let test = match alpha.alpha_thresh_use_16bit {
        true => Alpha { compare, reference: Reference::Float(half), channel: 3 },
        false => {
            let channel = if place == 3 { 3 } else { channel(first >> (8 + 2 * place) & 3) };
            Alpha { compare, reference: Reference::Byte(alpha.af_val, format), channel }
        }
    };
    let mut outputs = Outputs {
        targets: [None; TARGETS],
        signed: [None; TARGETS],
        alpha: alpha.af_en.then_some(test),
        clear: (state.word(reg::ZB_BW_CNTL) >> 5 & 1 != 0).then(|| state.word(reg::ZB_DEPTHCLEARVALUE)),
        depth: state.word(reg::US_W_FMT) & 3 != 0 && state.word(reg::FG_DEPTH_SRC) & 1 != 0,
        covers: multisample::samples(state).filter(|_| alpha.am_en),
    };
    let masks = state.word(reg::RB3D_COLOR_CHANNEL_MASK);
    let mut found = Vec::new();
    for number in 0..TARGETS {
        // If the chip stores output 0 in several targets, US_OUT_FMT marks all outputs except output 0 as unused.
        let shared = control.num_multiwrites > 0 && number <= usize::from(control.num_multiwrites);
        let output = if shared { 0 } else { number };
        let out = state.nth(reg::US_OUT_FMT_0, output);
        let shift = if control.independent_color_channel_mask_enable { 4 * number } else { 0 };
        let mask = masks >> shift & 0xf;
        // Format 15 is UNUSED.
        if out & 0x1f == 15 || mask == 0 {
            continue;
        }
        let pitch = fields!(state, ColorPitch, state.nth(reg::RB3D_COLORPITCH0, number));
        let offset = (state.nth(reg::RB3D_COLOROFFSET0, number) & !0x1f) as usize;
        let Some(buffer) = state.buffer(reg::RB3D_COLOROFFSET0, number) else { continue };
        let blends = state.word(reg::RB3D_CBLEND) & 1 != 0;
        let signed = out >> 16 & 0xf != 0;
        let unsigned = blends && state.errata.has(Erratum::UnsignedBlending);
        let Some(color) = format::color(pitch.colorformat, (out & 0x1f) as u8, signed && !unsigned) else {
            let (color, out) = (pitch.colorformat, out & 0x1f);
            state.unknown.note(format!("RB3D_COLORPITCH0.COLORFORMAT {color:#x} with US_OUT_FMT {out}"));
            continue;
        };
        let (name, pitch) = (format!("colour buffer {number}"), usize::from(pitch.colorpitch) * 2);
        let surface = surface(&name, &buffer, offset, pitch, rows, color.format.bytes.into())?;
        let select = [0, 1, 2, 3].map(|at| channel(out >> (8 + 2 * at) & 3));
        outputs.targets[number] = Some((output, select));
        let is_fraction = color.format.numbers[0] == Number::Unorm;
        outputs.signed[number] = (signed && unsigned && is_fraction).then_some(color.format.bits[0]);
        let mask = (0..4).fold(0, |all, at| all | ((mask >> color.mask_bits[at] & 1) as u8) << at);
        found.push(Target {
            surface,
            format: color.format,
            places: color.places,
            mask,
            blend: blend(state, &color),
            color: number,
        });
    }
    Ok((found, outputs))
}

/// Returns the channel, from 0 for red to 3 for alpha, that a code in US_OUT_FMT selects.
fn channel(code: u32) -> u8 {
    const ORDER: [(OutSel, u8); 4] = [(OutSel::A, 3), (OutSel::R, 0), (OutSel::G, 1), (OutSel::B, 2)];
    ORDER[code as usize & 3].1
}

/// Returns the blending of a target, or `None` if blending is off. Colours have the components C0 to C3.
fn blend(state: &mut State, target: &format::Color) -> Option<Blend> {
    let range = blend_range(target.format.numbers[0]);
    let is_byte = target.is_byte();
    let color = fields!(state, BlendControl, state.word(reg::RB3D_CBLEND));
    if !color.alpha_blend_enable {
        return None;
    }
    let alpha = match color.separate_alpha_enable {
        true => fields!(state, BlendControl, state.word(reg::RB3D_ABLEND)),
        false => color,
    };
    let mut factor = |code: u8| match code {
        // The codes 0 and 32 mean the factor zero. The codes 1 and 33 mean the factor one. (REG)
        0 | 32 => Factor::Zero,
        1 | 33 => Factor::One,
        34 => Factor::Source,
        35 => Factor::OneMinusSource,
        36 => Factor::Destination,
        37 => Factor::OneMinusDestination,
        38 => Factor::SourceAlpha,
        39 => Factor::OneMinusSourceAlpha,
        40 if is_byte => Factor::Destination,
        41 if is_byte => Factor::OneMinusDestination,
        40 => Factor::DestinationAlpha,
        41 => Factor::OneMinusDestinationAlpha,
        42 => Factor::SourceAlphaSaturate,
        43 => Factor::Constant,
        44 => Factor::OneMinusConstant,
        45 => Factor::ConstantAlpha,
        46 => Factor::OneMinusConstantAlpha,
        other => {
            state.unknown.note(format!("blend factor {other}"));
            Factor::One
        }
    };
    let equation = |code: u8| match code {
        2 | 3 => Equation::Subtract,
        4 => Equation::Min,
        5 => Equation::Max,
        6 | 7 => Equation::ReverseSubtract,
        _ => Equation::Add,
    };
    let mut part = |word: BlendControl| -> Part {
        (factor(word.srcblend), equation(word.comb_fcn), factor(word.destblend))
    };
    let (color, alpha) = (part(color), part(alpha));
    let [red, green] = [0, 1].map(|number| state.nth(reg::RB3D_CONSTANT_COLOR_AR, number));
    // A component of the constant is a fraction of ten bits. For floating-point targets, a component is a
    // half-precision float.
    let value = |bits: u32| match range {
        Some(_) => (bits & 0xffff) as f32 / 1023.,
        None => f16::from_bits(bits as u16).to_f32(),
    };
    let [c0, c1, c2, c3] = [green, green >> 16, red, red >> 16].map(value);
    let constant = if is_byte { [c1, c1, c1, c3] } else { [c0, c1, c2, c3] };
    Some(Blend { color, alpha, constant, range })
}

/// Converts a value to a signed fraction of `bits` bits. Returns the unsigned fraction that has the same bits as the
/// signed fraction.
///
/// The output format of the fragment unit has a sign, but the format of the colour buffer does not. Blending therefore
/// treats all fractions as unsigned. RV530 fails `gl_rgba8_snorm-render-sanity`, in which blending produces values
/// outside of the range of a signed fraction. RV530 also fails `fbo-blending-formats` for all signed formats. RV530
/// passes `fbo-colormask-formats`, which stores signed formats without blending.
fn unsigned(word: u32, bits: u8) -> u32 {
    let value = f32::from_bits(word);
    let value = if value.is_nan() { 0. } else { f64::from(value).clamp(-1., 1.) };
    let most = (1u32 << bits.clamp(2, 16)) - 1;
    let code = libm::rint(value * f64::from(most >> 1)) as i32 as u32 & most;
    ((f64::from(code) / f64::from(most)) as f32).to_bits()
}

/// Source of the value that the rasteriser writes to a temporary before the fragment program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Components of texture coordinates.
    Coordinates([Component; 4]),
    /// A colour. The fields are the input for the front, the input for the back, and the format of the colour.
    Color { front: usize, back: usize, format: u8 },
    /// A colour that vertices do not have. All channels of this colour are zero, but the format may replace channels by
    /// constants.
    NoColor { format: u8 },
    /// x and y in the frame buffer.
    Position,
    /// The visible side: 0 for the front, 1 for the back.
    Side,
}

/// Source of one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Component {
    /// An input of the draw, and a channel of this input.
    Input(usize, usize),
    Bits(u32),
}

/// The rasteriser's instructions. An instruction writes an interpolated value to a temporary. Each entry has the number
/// of the temporary and the source of the value. The second field is an empty column, which reads as zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes(Vec<(u8, Source)>, LaneColumn);

/// Codes that mean the constants 0 and 1 in RS_IP.
const ZERO: u8 = 62;
const ONE: u8 = 63;

impl Routes {
    /// Returns the rasteriser's instructions, and the inputs that the instructions read.
    fn new(state: &mut State, layout: &Layout, shading: &ColorControl) -> (Routes, Vec<Input>) {
        let enable = fields!(state, GbEnable, state.word(reg::GB_ENABLE));
        let count = fields!(state, RsInstCount, state.word(reg::RS_INST_COUNT));
        let corner = |number: usize| state.float(reg::GA_POINT_S0, number);
        let ([s0, t0], [s1, t1]) = ([corner(0), corner(1)], [corner(2), corner(3)]);
        let stretched = Input::Stretched { low: [s0, t1], high: [s1, t0] };
        // Set and channel of each component. RS_IP numbers the components of all sets consecutively.
        let mut components = Vec::new();
        let mut sets = [stretched; SETS];
        for (set, input) in sets.iter_mut().enumerate() {
            let stuffed = enable.tex_source >> (2 * set) & 3;
            let found = match stuffed {
                0 => layout.components(set),
                _ => 2,
            };
            if stuffed == 0 {
                *input = Input::Attribute { index: COLORS + set, how: How::Perspective };
            }
            components.extend((0..found).map(|channel| (set, channel)));
        }
        let (mut routes, mut inputs): (Routes, Vec<Input>) = Default::default();
        let mut input = |wanted: Input| {
            let place = inputs.iter().position(|known| *known == wanted);
            place.unwrap_or_else(|| {
                inputs.push(wanted);
                inputs.len() - 1
            })
        };
        for number in 0..=usize::from(count.inst_count) {
            let inst = fields!(state, RsInst, state.nth(reg::RS_INST_0, number));
            if inst.tex_cn {
                let ip = fields!(state, RsIp, state.nth(reg::RS_IP_0, usize::from(inst.tex_id)));
                let mut component = |code: u8| match code {
                    ZERO => Component::Bits(0),
                    ONE => Component::Bits(1f32.to_bits()),
                    _ => match components.get(usize::from(code)) {
                        Some((set, channel)) => Component::Input(input(sets[*set]), *channel),
                        None => Component::Bits(0),
                    },
                };
                let all = [ip.tex_ptr_s, ip.tex_ptr_t, ip.tex_ptr_r, ip.tex_ptr_q].map(&mut component);
                routes.0.push((inst.tex_addr, Source::Coordinates(all)));
            }
            let source = match inst.col_cn {
                0 => continue,
                1 => {
                    let ip = fields!(state, RsIp, state.nth(reg::RS_IP_0, usize::from(inst.col_id)));
                    let color = usize::from(ip.col_ptr) % COLORS;
                    let flat = shading.shading >> (4 * color) & 3 == 1;
                    let how = if flat { How::Flat } else { How::Perspective };
                    let attribute = |index| Input::Attribute { index, how };
                    match layout.has_color(color) {
                        false => Source::NoColor { format: ip.col_fmt },
                        true => {
                            let front = input(attribute(color));
                            let has_back = color < 2 && layout.has_color(color + 2);
                            let back = if has_back { input(attribute(color + 2)) } else { front };
                            Source::Color { front, back, format: ip.col_fmt }
                        }
                    }
                }
                2 => Source::Position,
                _ => Source::Side,
            };
            if inst.w_cn {
                state.unknown.note("RS_INST_0.W_CN");
            }
            routes.0.push((inst.col_addr, source));
        }
        (routes, inputs)
    }

    /// Returns which columns of the fragments the instructions read.
    fn reads(&self, inputs: usize) -> ReadColumns {
        let mut reads = ReadColumns { inputs: vec![0; inputs], position: 0 };
        for (_, source) in &self.0 {
            match *source {
                Source::Coordinates(all) => {
                    for component in all {
                        if let Component::Input(input, channel) = component {
                            reads.inputs[input] |= 1 << channel;
                        }
                    }
                }
                Source::Color { front, back, .. } => {
                    (reads.inputs[front], reads.inputs[back]) = (0xf, 0xf);
                }
                Source::Position => reads.position |= 0b11,
                Source::NoColor { .. } | Source::Side => {}
            }
        }
        reads
    }

    /// Returns the input, and the channel of this input, from which the rasteriser interpolates a channel of a
    /// temporary. Returns `None` if the channel of the temporary is not interpolated, or is converted.
    fn input(&self, temp: u8, channel: u8) -> Option<(usize, usize)> {
        let (_, source) = self.0.iter().rfind(|(number, _)| *number == temp)?;
        let Source::Coordinates(all) = source else { return None };
        match all[usize::from(channel & 3)] {
            Component::Input(input, channel) => Some((input, channel)),
            Component::Bits(_) => None,
        }
    }

    /// Returns the columns of the temporaries that the rasteriser writes. Channels for which `needed` returns `false`
    /// are zero.
    fn temporaries(&self, fragments: &Fragments, needed: impl Fn(u8, usize) -> bool) -> Vec<Columns> {
        let one = 1f32.to_bits();
        let everywhere = |word: u32| match word {
            0 => self.1.clone(),
            _ => Arc::new(vec![word; fragments.lanes]),
        };
        let component = |source: &Source, channel: usize| -> LaneColumn {
            match *source {
                Source::Coordinates(all) => match all[channel] {
                    Component::Input(input, channel) => fragments.inputs[input][channel].clone(),
                    Component::Bits(bits) => everywhere(bits),
                },
                Source::Color { front, back, format } => match formatted(format, one)[channel] {
                    Component::Input(_, chan) => {
                        let (seen, other) = (&fragments.inputs[front][chan], &fragments.inputs[back][chan]);
                        if front == back || fragments.fronts.iter().all(|front| *front) {
                            return seen.clone();
                        }
                        let mut column = LaneWords::clone(other);
                        for (lane, (word, seen)) in column.iter_mut().zip(&**seen).enumerate() {
                            *word = if fragments.is_front(lane) { *seen } else { *word };
                        }
                        Arc::new(column)
                    }
                    Component::Bits(bits) => everywhere(bits),
                },
                Source::NoColor { format } => match formatted(format, one)[channel] {
                    Component::Input(..) => self.1.clone(),
                    Component::Bits(bits) => everywhere(bits),
                },
                Source::Position if channel < 2 => fragments.positions[channel].clone(),
                Source::Side if channel == 0 => {
                    let sides =
                        (0..fragments.lanes).map(|lane| if fragments.is_front(lane) { 0 } else { one });
                    Arc::new(sides.collect())
                }
                Source::Position | Source::Side => self.1.clone(),
            }
        };
        let columns = |(temp, source): &(u8, Source)| {
            let component = |channel| match needed(*temp, channel) {
                true => component(source, channel),
                false => self.1.clone(),
            };
            Columns { temp: *temp, components: [0, 1, 2, 3].map(component) }
        };
        self.0.iter().map(columns).collect()
    }
}

/// Returns the components of a colour. `format` is COL_FMT of RS_IP. [`Component::Input`] means a channel of the
/// colour.
fn formatted(format: u8, one: u32) -> [Component; 4] {
    let [r, g, b, a] = [0, 1, 2, 3].map(|channel| Component::Input(0, channel));
    let [zero, one] = [0, one].map(Component::Bits);
    match format {
        1 => [r, g, b, zero],
        2 => [r, g, b, one],
        4 => [zero, zero, zero, a],
        5 => [zero; 4],
        6 => [zero, zero, zero, one],
        8 => [one, one, one, a],
        9 => [one, one, one, zero],
        10 => [one; 4],
        _ => [r, g, b, a],
    }
}

/// The fragment stage of a draw, which implements [`FragmentProgram`].
pub(super) struct PixelProgram<'a> {
    pub(super) shader: &'a Shader,
    pub(super) routes: &'a Routes,
    pub(super) outputs: &'a Outputs,
    /// Number of inputs of the draw.
    pub(super) inputs: usize,
    pub(super) recording: FragmentRecording,
}

impl FragmentProgram for PixelProgram<'_> {
    type Error = Fault;

    fn reads(&self) -> ReadColumns {
        self.routes.reads(self.inputs)
    }

    fn may_skip_hidden(&self) -> bool {
        // In a captured draw, all lanes run.
        !self.recording.is_on() && !self.outputs.depth
    }

    fn is_uniform(&self) -> bool {
        // A captured launch contains all lanes.
        !self.recording.is_on()
    }

    fn copied(&self) -> Option<CopiedTexels> {
        let Outputs { targets, signed, alpha, clear, depth, covers } = self.outputs;
        // The chip copies texels only if the outputs need no test and no conversion. The chip does not copy texels in a
        // captured draw, because a capture needs a run of the program.
        let is_signed = signed.iter().any(Option::is_some);
        let uses_alpha = alpha.is_some() || covers.is_some();
        let plain = !self.recording.is_on() && !is_signed && !uses_alpha && clear.is_none() && !depth;
        let [Some((0, select)), None, None, None] = targets else { return None };
        if plain {
            self.shader.copied(*select, |temp, channel| self.routes.input(temp, channel))
        } else {
            None
        }
    }

    fn in_order(&self) -> bool {
        self.recording.is_on()
    }

    fn run(&self, fragments: &Fragments) -> Result<Shaded, Fault> {
        // A captured launch contains all temporaries.
        let needed = |temp, channel| self.recording.is_on() || self.shader.reads(temp, channel);
        let temps = self.routes.temporaries(fragments, needed);
        let mut left = self.shader.run(fragments, temps, self.recording.lock().as_deref_mut())?;
        let depth = self.outputs.depth.then(|| left.depth().map(<[u32]>::to_vec)).flatten();
        let mut killed = Vec::new();
        if left.any_killed() || self.outputs.alpha.is_some() {
            killed = left.killed();
            killed.resize(fragments.lanes, false);
        }
        if let Some(alpha) = self.outputs.alpha {
            let values = left.color(0, alpha.channel.into());
            for (lane, killed) in killed.iter_mut().enumerate() {
                let value = values.map_or(0., |values| f32::from_bits(values[lane]));
                *killed |= !alpha.passes(value);
            }
        }
        let mask = self.outputs.covers.map(|samples| {
            let values = left.color(0, 3);
            let alpha = |lane: usize| values.map_or(0., |values| f32::from_bits(values[lane]));
            (0..fragments.lanes).map(|lane| samples_of_alpha(alpha(lane), samples)).collect()
        });
        let mut colors: Vec<Option<[LaneWords; 4]>> = Vec::with_capacity(TARGETS + 1);
        for (number, target) in self.outputs.targets.iter().enumerate() {
            colors.push(target.and_then(|(output, select)| {
                let written = (0..4).any(|channel| left.color(output, channel).is_some());
                let later = &self.outputs.targets[number + 1..];
                let is_last = later.iter().flatten().all(|(other, _)| *other != output);
                let mut place = 0;
                let column = |channel: u8| {
                    place += 1;
                    let channel_is_read = select[place..].contains(&channel);
                    let channel = usize::from(channel);
                    match is_last && !channel_is_read {
                        true => left.take_color(output, channel).unwrap_or_default(),
                        false => left.color(output, channel).unwrap_or_default().to_vec(),
                    }
                };
                let mut color = written.then(|| select.map(column))?;
                if let Some(bits) = self.outputs.signed[number] {
                    color.iter_mut().flatten().for_each(|word| *word = unsigned(*word, bits));
                }
                Some(color)
            }));
        }
        let clear = |value| [vec![value; fragments.lanes], Vec::new(), Vec::new(), Vec::new()];
        colors.push(self.outputs.clear.map(clear));
        Ok(Shaded { colors, depth, stencil: None, killed, mask })
    }
}

#[cfg(test)]
mod tests {
    use reconverge_board::errata::Errata;

    use super::*;

    /// Captured: a colour, back colours that are not used, facing, a varying and the position.
    #[test]
    fn captured_instructions_of_the_rasteriser_go_to_their_temporaries() {
        let mut state = State::default();
        let registers = [
            (reg::VAP_OUTPUT_VTX_FMT_0, &[0x1_0007, 0x924][..]),
            (reg::RS_IP_0, &[0x000c_2040, 0x011c_6144, 0x022c_a248, 0x003c_e34c]),
            (reg::RS_INST_COUNT, &[3]),
            (reg::RS_INST_0, &[0x0001_0000, 0x1001, 0x0007_2052, 0x73]),
            (reg::GA_COLOR_CONTROL, &[0x3_5555]),
        ];
        for (address, words) in registers {
            words.iter().zip((address..).step_by(4)).for_each(|(word, at)| state.set(at, *word));
        }
        let layout = Layout::new(&mut state);
        let shading = fields!(state, ColorControl, state.word(reg::GA_COLOR_CONTROL));
        let (routes, inputs) = Routes::new(&mut state, &layout, &shading);
        let all = |input| Source::Coordinates([0, 1, 2, 3].map(|channel| Component::Input(input, channel)));
        let color = Source::Color { front: 0, back: 0, format: 0 };
        assert_eq!(routes.0, [(0, color), (2, all(1)), (1, Source::Side), (3, all(2))]);
        let set = |set| Input::Attribute { index: COLORS + set, how: How::Perspective };
        assert_eq!(inputs, [Input::Attribute { index: 0, how: How::Flat }, set(2), set(3)]);
        assert!(state.unknown.list().is_empty());
    }

    /// Formats for which RV530 fails `fbo-alphatest-formats`, and formats for which RV530 passes this test. An alpha of
    /// 0.4 is 66h as a byte.
    #[test]
    fn the_alpha_test_of_eight_bits_reads_the_upper_byte_of_a_word() {
        // RGBA8, RGB10_A2, RGBA8_SNORM, RG16, LA16, R16_SNORM, LA16F, LA32F.
        let formats = [0x3900, 0x3901, 0xf_3900, 0x3904, 0x104, 0xf_3903, 0x111, 0x114];
        let found = formats.map(|out| {
            let (format, place) = OutputFormat::of(out);
            // Alpha is 0.4, and red, green and blue are 1.
            let channel = if place == 3 { 3 } else { channel(out >> (8 + 2 * place) & 3) };
            upper_byte(if channel == 3 { 0.4 } else { 1. }, format)
        });
        assert_eq!(found, [0x66, 0x66, 0x33, 0xff, 0x66, 0x7f, 0x36, 0x3f]);
    }

    /// OpenGL 3.0, 4.1.4: the test compares alpha in every format.
    #[test]
    fn the_alpha_test_without_its_erratum_reads_alpha_in_every_format() {
        let passes = |errata: Errata, out: u32| {
            let mut state = State::default();
            state.errata = errata;
            // The test passes if the value is less than one half. Alpha is 0.4, and red is 1.
            state.set(reg::FG_ALPHA_FUNC, 1 << 11 | 1 << 8 | 0x80);
            state.set(reg::US_OUT_FMT_0, out);
            let alpha = targets(&mut state, 0).unwrap().1.alpha.expect("the test is on");
            alpha.passes(if alpha.channel == 3 { 0.4 } else { 1. })
        };
        // RGBA8, RGBA8_SNORM, RG16, R16_SNORM, LA16F.
        let formats = [0x3900, 0xf_3900, 0x3904, 0xf_3903, 0x111];
        assert_eq!(formats.map(|out| passes(Errata::ALL, out)), [true, true, false, true, true]);
        let without = Errata::ALL.without(Erratum::AlphaTest);
        assert_eq!(formats.map(|out| passes(without, out)), [true; 5]);
    }

    /// For R8, L8, I8 and A8, Mesa sets C1 of the blend constant. Mesa does not replace DST_ALPHA, so the chip reads
    /// the stored byte as alpha. RV530 passes `fbo-blending-formats` for these formats.
    #[test]
    fn a_target_of_a_byte_blends_with_itself_as_alpha_and_the_second_constant() {
        let mut state = State::default();
        state.set(reg::RB3D_CBLEND, 1 | 43 << 16 | 40 << 24);
        state.set(reg::RB3D_CONSTANT_COLOR_AR, 1023 << 16);
        state.set(reg::RB3D_CONSTANT_COLOR_AR + 4, 1023 << 16);
        let target = |color_format| format::color(color_format, 0, false).unwrap();
        let byte = blend(&mut state, &target(0x9)).unwrap();
        assert_eq!((byte.constant, byte.color.2), ([1.; 4], Factor::Destination));
        let word = blend(&mut state, &target(0x6)).unwrap();
        assert_eq!((word.constant, word.color.2), ([0., 1., 0., 1.], Factor::DestinationAlpha));
    }

    #[test]
    fn components_beyond_those_of_the_vertices_are_zero_and_one() {
        let mut state = State::default();
        state.set(reg::GB_ENABLE, 0x0001_0001);
        state.set(reg::RS_IP_0, 0x00ff_e040);
        state.set(reg::RS_INST_0, 0x10);
        let layout = Layout::new(&mut state);
        let shading = fields!(state, ColorControl, 0);
        let (routes, inputs) = Routes::new(&mut state, &layout, &shading);
        let stuffed = |channel| Component::Input(0, channel);
        let ends = [Component::Bits(0), Component::Bits(1f32.to_bits())];
        assert_eq!(routes.0, [(0, Source::Coordinates([stuffed(0), stuffed(1), ends[0], ends[1]]))]);
        assert!(matches!(inputs[..], [Input::Stretched { .. }]));
    }
}
