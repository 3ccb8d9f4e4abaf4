//! The state of a draw: surfaces, tests, and the data that one stage passes to another stage.

use std::ops::Range;
use std::sync::Arc;

use reconverge_simt::texture::elements::Elements;

use crate::blend::{Blend, LogicOp};
use crate::clip::Clip;
use crate::depth::{Compare, DepthFormat, Tests};
use crate::format::Format;
use crate::interpolate::Input;
use crate::mask::PixelMask;
use crate::primitive::Topology;
use crate::setup::{Corner, Quad, Rectangle};

/// Position of a surface in memory. The elements of the surface are stored row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Offset in bytes of element (0, 0).
    pub start: usize,
    /// Offset of the byte after the last byte that may be accessed.
    pub end: usize,
    /// Pitch: number of elements from one row to the next.
    pub pitch: usize,
    /// Number of rows. Pixels below the last row are not drawn.
    pub rows: usize,
    /// The order of the samples of a pixel.
    pub order: SampleOrder,
}

/// Order of the samples of all pixels in a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleOrder {
    /// The elements of sample 0 of all pixels are contiguous. The elements of sample 1 follow, then the elements of
    /// sample 2, and so on.
    #[default]
    Planes,
    /// Each pixel is a rectangle of elements. The numbers are log2 of the width and of the height of this rectangle.
    /// The pitch and the number of rows of the surface count elements, not pixels. Samples 0 to 3 form a square, row by
    /// row. Samples 4 to 7 form a second square to the right of samples 0 to 3.
    Rectangles([u8; 2]),
    /// The elements of each pixel are contiguous. The number states how many elements a pixel has. The pitch of the
    /// surface counts elements, not pixels.
    Together(u8),
}

impl SampleOrder {
    /// Returns the width and height of a pixel in elements.
    pub(crate) fn scale(self) -> [usize; 2] {
        match self {
            SampleOrder::Planes => [1; 2],
            SampleOrder::Rectangles(size) => size.map(|log2| 1 << log2.min(4)),
            SampleOrder::Together(samples) => [usize::from(samples).max(1), 1],
        }
    }

    /// Returns the column and row of a sample's element, relative to the first element of the pixel.
    pub(crate) fn offset(self, sample: usize) -> [usize; 2] {
        match self {
            SampleOrder::Planes => [0; 2],
            SampleOrder::Rectangles(_) => [sample & 1 | sample >> 1 & 2, sample >> 1 & 1],
            SampleOrder::Together(_) => [sample, 0],
        }
    }
}

impl Surface {
    /// Returns the range of bytes that contains all elements, for pixels with `samples` samples. An element has `bytes`
    /// bytes.
    pub(crate) fn range(&self, bytes: usize, samples: usize) -> Range<usize> {
        let planes = if self.order == SampleOrder::Planes { samples } else { 1 };
        let length = self.rows.saturating_mul(self.pitch).saturating_mul(bytes).saturating_mul(planes);
        self.start..self.start.saturating_add(length).min(self.end)
    }

    /// Returns the range of bytes that contains the rows of pixels from `first` to `end` - 1. Each pixel has `samples`
    /// samples.
    fn rows(&self, [first, end]: [i32; 2], bytes: usize, samples: usize) -> Range<usize> {
        let all = self.range(bytes, samples);
        if self.order == SampleOrder::Planes && samples > 1 {
            return all;
        }
        let row = self.pitch.saturating_mul(bytes).saturating_mul(self.order.scale()[1]);
        let place = |row_number: i32| {
            let rows = usize::try_from(row_number).unwrap_or(0);
            self.start.saturating_add(rows.saturating_mul(row)).min(all.end)
        };
        place(first)..place(end)
    }

    /// Returns the offset in bytes of a pixel's sample, or `None` if the pixel is outside of the surface.
    pub(crate) fn place(&self, x: i32, y: i32, sample: usize, bytes: usize) -> Option<usize> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let (scale, offset) = (self.order.scale(), self.order.offset(sample));
        let (x, y) = (x * scale[0] + offset[0], y * scale[1] + offset[1]);
        let plane = if self.order == SampleOrder::Planes { sample } else { 0 };
        let place = self.start + ((plane * self.rows + y) * self.pitch + x) * bytes;
        (x < self.pitch && y < self.rows && place + bytes <= self.end).then_some(place)
    }
}

/// A colour target.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Memory of the target.
    pub surface: Surface,
    /// Format of the target's elements.
    pub format: Format,
    /// For red, green, blue and alpha, the component of the format that stores the channel. `None` for a channel that
    /// is not stored.
    pub places: [Option<u8>; 4],
    /// Channels that are written, from red (bit 0) to alpha (bit 3).
    pub mask: u8,
    /// Blending, or `None` if blending is off.
    pub blend: Option<Blend>,
    /// Index of the fragment program's colour that is stored.
    pub color: usize,
}

impl Target {
    /// Returns the colour in an element. Missing components are 0, 0, 0, 1.
    pub(crate) fn color(&self, element: &[u8]) -> [f32; 4] {
        let values = self.format.read(element);
        std::array::from_fn(|chan| match self.places[chan] {
            Some(place) => f32::from_bits(values[usize::from(place)]),
            None => {
                if chan == 3 {
                    1.
                } else {
                    0.
                }
            }
        })
    }

    /// Stores a colour in an element.
    pub(crate) fn store(&self, element: &mut [u8], color: [u32; 4], logic: LogicOp) {
        let (mut values, mut mask) = ([0; 4], 0);
        for (chan, place) in self.places.iter().enumerate() {
            if let Some(place) = place {
                values[usize::from(*place)] = color[chan];
                mask |= (self.mask >> chan & 1) << place;
            }
        }
        let (mut bits, written) = self.format.write(values, mask);
        // If all bits of the element are written, the old value of the element is not needed.
        if written == u128::MAX >> (128 - 8 * u32::from(self.format.bytes)) && logic == LogicOp::COPY {
            element.copy_from_slice(&bits.to_le_bytes()[..element.len()]);
            return;
        }
        let mut old = [0; 16];
        old[..element.len()].copy_from_slice(element);
        let old = u128::from_le_bytes(old);
        if logic != LogicOp::COPY {
            bits = logic.apply(bits, old);
        }
        let new = old & !written | bits & written;
        element.copy_from_slice(&new.to_le_bytes()[..element.len()]);
    }
}

/// A depth buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DepthTarget {
    /// Memory of the buffer.
    pub surface: Surface,
    /// Format of the buffer's elements.
    pub format: DepthFormat,
}

/// Transformation from clip space to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// Factors for x, y and z.
    pub scale: [f32; 3],
    /// Values that are added to x, y and z after the multiplication.
    pub offset: [f32; 3],
    /// The range to which depth is clamped; `None` if depth is not clamped.
    pub depth: Option<(f32, f32)>,
    /// Whether x, y and z are divided by w before the multiplication.
    pub divides: bool,
}

/// Drawing mode for the inside of a polygon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fill {
    Points,
    Lines,
    #[default]
    Solid,
}

/// Polygon offset, which is added to depth. (OpenGL 3.0, 3.6.4)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// Factor for the maximum slope of depth in the polygon.
    pub slope: f64,
    /// Constant that is added to depth.
    pub constant: f64,
    /// Whether the unit of `constant` is the step of a float near the largest depth of the primitive.
    pub of_float: bool,
    /// A positive number is the upper limit of the offset. A negative number is the lower limit. 0 means no limit.
    pub clamp: f64,
}

/// State for the front or the back side of polygons.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Whether a polygon is culled if this side of the polygon is visible.
    pub culled: bool,
    /// Drawing mode.
    pub fill: Fill,
    /// Polygon offset, or `None` if the polygon offset is off.
    pub offset: Option<Offset>,
}

/// Sizes of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Points {
    /// Width and height in pixels, unless the vertex program writes a size.
    pub size: [f32; 2],
    /// Whether the vertex program writes a size.
    pub from_vertex: bool,
    /// Range to which the vertex program's size is clamped.
    pub range: [f32; 2],
}

/// Multisampling state. (OpenGL 3.0, 3.3.1)
#[derive(Clone, Debug, PartialEq)]
pub struct Multisample {
    /// Fixed-point offsets of the samples from the centre of their pixel. The list is empty for surfaces with one
    /// sample.
    pub places: Vec<Corner>,
    /// Whether coverage is determined separately for each sample. If not, all samples of a pixel have the coverage of
    /// the pixel's centre.
    pub by_sample: bool,
    /// Bit n: sample n may be covered.
    pub mask: u8,
    /// Whether alpha of colour 0 determines the number of covered samples.
    pub alpha_to_coverage: bool,
    /// Whether alpha of all colours is set to 1 after the coverage is determined.
    pub alpha_to_one: bool,
    /// Whether each sample is shaded separately.
    pub shades_samples: bool,
    /// Bit n: input n is evaluated at the centroid. If only some samples of a pixel are covered, the centroid is the
    /// pixel's first covered sample. Otherwise, the centroid is the centre of the pixel.
    pub at_centroid: u64,
    /// Bit n: input n is evaluated at the sample that a lane shades. If lanes do not shade single samples, input n is
    /// evaluated at the centre of the pixel.
    pub at_sample: u64,
    /// First: whether the position is evaluated at the centroid. Second: whether the position is evaluated at the
    /// sample that a lane shades. The second value applies only if samples are shaded separately.
    pub position: (bool, bool),
    /// Copy that is performed for covered samples instead of tests and blending.
    pub copy: Option<Copy>,
}

impl Default for Multisample {
    fn default() -> Multisample {
        Multisample {
            places: Vec::new(),
            by_sample: false,
            mask: !0,
            alpha_to_coverage: false,
            alpha_to_one: false,
            shades_samples: false,
            at_centroid: 0,
            at_sample: 0,
            position: (false, false),
            copy: None,
        }
    }
}

impl Multisample {
    /// Returns the offset of a sample from the centre of its pixel.
    pub(crate) fn place(&self, sample: usize) -> Corner {
        self.places.get(sample).copied().unwrap_or_default()
    }

    /// Returns the first covered sample, which is the centroid of the pixel. Returns `None` if all samples or no
    /// samples are covered. In these two cases, the centroid is the centre of the pixel.
    pub(crate) fn centroid(&self, mask: u8, samples: usize) -> Option<usize> {
        let is_part = self.by_sample && mask != 0 && mask != (u32::MAX >> (32 - samples)) as u8;
        is_part.then_some(mask.trailing_zeros() as usize)
    }
}

/// Returns a mask of the samples that alpha covers; bit n is sample n. The documents do not state which samples a chip
/// covers. This function returns the first samples.
pub fn samples_of_alpha(alpha: f32, samples: usize) -> u32 {
    (1 << libm::rintf(alpha.clamp(0., 1.) * samples as f32) as u32) - 1
}

/// A copy between surfaces for the pixels that a draw covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// For each pixel, stores the mean of the samples of the first target in the second target. The second target has
    /// one sample per pixel.
    Resolve,
    /// Copies depth and stencil of the sample with this number, as [`Draw::copies_depth`] describes.
    Depth(u8),
    /// Stores nothing.
    Nothing,
}

/// A stipple pattern along lines. (OpenGL 3.0, 3.5.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stipple {
    /// Bit n: whether the line is drawn at position n of the pattern.
    pub pattern: u16,
    /// Number of pixels for which each bit is used.
    pub factor: u16,
    /// Whether the pattern restarts at each line. If not, the pattern restarts at each run of vertices.
    pub restarts: bool,
}

impl Stipple {
    /// Returns whether the pixel at this distance from the line's first pixel is drawn. The distance is in pixels.
    pub(crate) fn draws(self, distance: i64) -> bool {
        self.pattern >> (distance / i64::from(self.factor.max(1))).rem_euclid(16) & 1 != 0
    }
}

/// The complete state of a draw, except for its vertices and its fragment program.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// Topology by which vertices form primitives.
    pub topology: Topology,
    /// Whether the last vertex of a primitive is the provoking vertex, whose flat attributes are used. If not, the
    /// first vertex is the provoking vertex.
    pub last_provokes: bool,
    /// Transformation from clip space to the window.
    pub viewport: Viewport,
    /// Clipping state; `None` if primitives are not clipped.
    pub clip: Option<Clip>,
    /// The rectangle of pixels that may be drawn.
    pub scissor: Rectangle,
    /// Mask that removes some of the pixels inside of the scissor. The field is `None` if all pixels are drawn.
    pub mask: Option<Box<PixelMask>>,
    /// Whether the vertices of a polygon run clockwise on the screen if the front of the polygon is visible.
    pub front_is_clockwise: bool,
    /// State of the front and the back side.
    pub sides: [Side; 2],
    /// Sizes of points.
    pub points: Points,
    /// Width of lines, in pixels.
    pub line_width: f32,
    /// Whether a line is a rectangle in the direction of the line. If not, the width of the line is measured along the
    /// x or y axis. A line whose samples have separate coverage is always a rectangle.
    pub rectangular_lines: bool,
    /// The stipple pattern of lines, if the stipple is on.
    pub stipple: Option<Stipple>,
    /// Inputs of the fragment program.
    pub inputs: Vec<Input>,
    /// The depth buffer, or `None` if the draw has no depth buffer.
    pub depth: Option<DepthTarget>,
    /// Depth and stencil tests.
    pub tests: Tests,
    /// Range of the depth bounds test, or `None` if the test is off. A sample is drawn only if its stored depth is in
    /// this range. (EXT_depth_bounds_test)
    pub depth_bounds: Option<[f32; 2]>,
    /// Comparison of the alpha of colour 0 with a reference, if the alpha test is on.
    pub alpha_test: Option<(Compare, f32)>,
    /// The colour targets.
    pub targets: Vec<Target>,
    /// The logic operation, which is applied after blending. [`LogicOp::COPY`] if the logic operation is off.
    pub logic: LogicOp,
    /// Whether the draw only copies stored depth and stencil to the first colour target.
    pub copies_depth: bool,
    /// Multisampling state.
    pub multisample: Multisample,
}

impl Draw {
    /// Returns the ranges of bytes that the draw may write to.
    pub fn written(&self) -> impl Iterator<Item = Range<usize>> {
        let depth = self.depth.iter().map(|depth| (&depth.surface, depth.format.bytes()));
        let targets = self.targets.iter().map(|target| (&target.surface, target.format.bytes.into()));
        let (rows, samples) = ([self.scissor.y0, self.scissor.y1], self.multisample.places.len().max(1));
        targets.chain(depth).map(move |(surface, bytes)| surface.rows(rows, bytes, samples))
    }
}

/// One word per lane.
pub type LaneWords = Vec<u32>;

/// One word per lane. A column is shared with a program while the program runs.
pub type LaneColumn = Arc<LaneWords>;

/// Fragments to shade: whole quads, with four lanes each in the order of [`Quad`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fragments {
    /// Number of lanes.
    pub lanes: usize,
    /// For each of [`Draw::inputs`], the columns of x, y, z and w as bits. Columns that [`ReadColumns`] omits are
    /// empty.
    pub inputs: Vec<[LaneColumn; 4]>,
    /// Columns of x, y, depth and clip-space w at the pixel's centre, as bits of floats. A column of x, y or w that
    /// [`ReadColumns`] omits is empty.
    pub positions: [LaneColumn; 4],
    /// The quads. Lanes that are not covered only provide values for derivatives.
    pub quads: Vec<Quad>,
    /// For each quad, whether the front of its primitive is visible.
    pub fronts: Vec<bool>,
    /// Mask of the covered samples in each lane's pixel. Bit n is for sample n. The list is empty if pixels have one
    /// sample.
    pub samples: Vec<u8>,
    /// For each lane, the sample that the lane shades. The list is empty if samples are not shaded separately.
    pub sample: Vec<u8>,
}

impl Fragments {
    /// Returns the pixel of a lane.
    pub fn pixel(&self, lane: usize) -> (i32, i32) {
        self.quads[lane / 4].pixel(lane % 4)
    }

    /// Returns whether a lane is a covered pixel of its primitive.
    pub fn is_covered(&self, lane: usize) -> bool {
        self.quads[lane / 4].covered >> (lane % 4) & 1 != 0
    }

    /// Returns whether the front of a lane's primitive is visible.
    pub fn is_front(&self, lane: usize) -> bool {
        self.fronts[lane / 4]
    }

    /// Returns the covered samples of a lane's pixel; bit n is sample n.
    pub fn samples(&self, lane: usize) -> u8 {
        self.samples.get(lane).copied().unwrap_or(u8::from(self.is_covered(lane)))
    }

    /// Returns the components of an input for each lane. Empty columns read as zeros.
    pub fn input(&self, number: usize) -> Vec<[u32; 4]> {
        interleaved(&self.inputs[number], self.lanes)
    }

    /// Returns the components of the position for each lane. Empty columns read as zeros.
    pub fn position(&self) -> Vec<[u32; 4]> {
        interleaved(&self.positions, self.lanes)
    }
}

/// Converts columns to one array per lane. Empty columns read as zeros.
pub fn interleaved(columns: &[LaneColumn; 4], lanes: usize) -> Vec<[u32; 4]> {
    let mut all = vec![[0; 4]; lanes];
    for (chan, column) in columns.iter().enumerate() {
        all.iter_mut().zip(&**column).for_each(|(values, word)| values[chan] = *word);
    }
    all
}

/// Masks of the columns of [`Fragments`] that a program reads. Bit n is component n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumns {
    /// A mask for each of [`Draw::inputs`]. If this list is shorter than [`Draw::inputs`], the remaining inputs have no
    /// mask, and the program reads all their components.
    pub inputs: Vec<u8>,
    /// The mask of the position.
    pub position: u8,
}

impl Default for ReadColumns {
    fn default() -> ReadColumns {
        ReadColumns { inputs: Vec::new(), position: 0xf }
    }
}

impl ReadColumns {
    /// Returns whether a component of an input is read.
    pub(crate) fn has(&self, input: usize, chan: usize) -> bool {
        self.inputs.get(input).is_none_or(|chans| chans >> chan & 1 != 0)
    }
}

/// Results of a fragment program.
#[derive(Clone, Debug, Default)]
pub struct Shaded {
    /// For each colour that the program writes, the columns of red, green, blue and alpha. An empty column stands for
    /// zeros.
    pub colors: Vec<Option<[LaneWords; 4]>>,
    /// Depth, which replaces the interpolated depth.
    pub depth: Option<LaneWords>,
    /// Stencil reference, which replaces [`Stencil::reference`](crate::depth::Stencil::reference).
    pub stencil: Option<LaneWords>,
    /// For each lane, whether the lane ended without a fragment. The list is empty if no lane ended in this way.
    pub killed: Vec<bool>,
    /// For each lane, a mask of the samples that may be covered. Bit n is for sample n. If the program does not write a
    /// mask, this field is `None`.
    pub mask: Option<LaneWords>,
}

/// Describes a fragment program that copies colour 0 from a texel and writes no other result. See
/// [`FragmentProgram::copied`].
///
/// The coordinates, multiplied by `factor`, are a point in the level. The colour is the texel that contains the point.
/// The description is valid only if the point is inside of the level.
#[derive(Clone, Debug, PartialEq)]
pub struct CopiedTexels {
    /// The elements of a level with one slice. The channels of an element are the red, green, blue and alpha of the
    /// colour.
    pub elements: Elements,
    /// Width and height of the level.
    pub size: [u32; 2],
    /// Input and component of each coordinate.
    pub coordinates: [(usize, usize); 2],
    /// Texels per unit of each coordinate.
    pub factor: [f32; 2],
    /// Inputs and components that the program rounds to whole numbers. The description is valid only if all of the
    /// rounded numbers are 0.
    pub zeros: Vec<(usize, usize)>,
}

/// A program that shades fragments. Several threads may run the program at once.
pub trait FragmentProgram: Sync {
    /// The reason for which a program stops.
    type Error: Send + 'static;

    /// Returns the columns that [`FragmentProgram::run`] reads. The default is all columns.
    fn reads(&self) -> ReadColumns {
        ReadColumns::default()
    }

    /// Returns whether the results of a lane depend only on two things: the columns that the program reads, and the
    /// visible side. Suppose that the function returns `true` and each of these columns is constant. Then all lanes of
    /// a primitive have the same results.
    fn is_uniform(&self) -> bool {
        false
    }

    /// Returns whether the draw may skip lanes that fail the depth test. This function may return `true` only if the
    /// program does not compute depth, and if a lane has no effects except its results.
    fn may_skip_hidden(&self) -> bool {
        false
    }

    /// If the program only copies texels, returns these texels. The draw may then copy the texels without running the
    /// program.
    fn copied(&self) -> Option<CopiedTexels> {
        None
    }

    /// Returns whether the program has effects other than its results. A program with such effects must run in the
    /// order of the fragments and on the thread that draws.
    fn in_order(&self) -> bool {
        false
    }

    /// Shades fragments.
    ///
    /// # Errors
    /// Returns an error if the program does not complete. In that case, the draw stores no results of these fragments
    /// and of later fragments.
    fn run(&self, fragments: &Fragments) -> Result<Shaded, Self::Error>;

    /// Receives results after the draw has merged these results. The program may reuse the memory of the results.
    fn merged(&self, _shaded: Shaded) {}
}

/// Counts of a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Primitives that were assembled.
    pub primitives: u64,
    /// Primitives that were not clipped away.
    pub clipped: u64,
    /// Samples that passed all tests.
    pub passed: u64,
}

/// Lanes that are shaded and merged together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) fragments: Fragments,
    /// The depths of all lanes, one entry per sample. If the list is empty, every sample has the depth in
    /// [`Fragments::positions`].
    pub(crate) depths: Vec<LaneWords>,
    /// The first lane of each primitive. Lanes of one primitive have different pixels.
    pub(crate) starts: Vec<usize>,
    /// Number of lanes that were not added because the lanes are hidden.
    pub(crate) skipped: u64,
}

impl Batch {
    pub(crate) fn new(draw: &Draw) -> Batch {
        let mut batch = Batch::default();
        batch.start(draw);
        batch
    }

    /// Removes all lanes from the batch, and prepares the batch for a draw.
    pub(crate) fn start(&mut self, draw: &Draw) {
        self.clear();
        self.fragments.inputs.resize_with(draw.inputs.len(), Default::default);
        let multisample = &draw.multisample;
        self.depths.resize_with(if multisample.by_sample { multisample.places.len() } else { 0 }, Vec::new);
    }

    /// Returns the depths of all lanes for a sample.
    pub(crate) fn depths(&self, sample: usize) -> &LaneWords {
        self.depths.get(sample).unwrap_or(&self.fragments.positions[2])
    }

    /// Removes all lanes. Reuses the memory of each column to which the program no longer refers.
    pub(crate) fn clear(&mut self) {
        let Fragments { lanes, inputs, positions, fronts, samples, sample, quads } = &mut self.fragments;
        *lanes = 0;
        // The loop skips empty columns, because an atomic operation is necessary to check whether other references to a
        // column exist.
        for column in inputs.iter_mut().flatten().chain(positions).filter(|column| !column.is_empty()) {
            match Arc::get_mut(column) {
                Some(words) => words.clear(),
                None => *column = LaneColumn::default(),
            }
        }
        fronts.clear();
        [samples, sample].into_iter().for_each(Vec::clear);
        quads.clear();
        self.depths.iter_mut().for_each(Vec::clear);
        self.starts.clear();
        self.skipped = 0;
    }
}
