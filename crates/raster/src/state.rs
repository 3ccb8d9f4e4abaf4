//! The state of a draw: surfaces, tests, and what passes between the stages.

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

/// Elements of a surface in memory, one row after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Place of element (0, 0), in bytes.
    pub start: usize,
    /// The place behind the last byte: what is not below is neither read nor written.
    pub end: usize,
    /// Elements from one row to the next.
    pub pitch: usize,
    /// Rows; below them nothing is drawn.
    pub rows: usize,
    /// The order of the samples of a pixel.
    pub order: SampleOrder,
}

/// Places of the samples of a pixel in a surface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleOrder {
    /// The elements of one sample are contiguous. The elements of the next sample follow.
    #[default]
    Planes,
    /// Each pixel is a rectangle of elements: log2 of their number in a row, and of rows. Pitch and rows of the surface count
    /// elements. Four samples are a square, row by row, and the next four are to the right of it.
    Rectangles([u8; 2]),
    /// The elements of each pixel are contiguous: this number of them. The pitch of the surface counts elements.
    Together(u8),
}

impl SampleOrder {
    /// The number of elements of a pixel along each axis.
    pub(crate) fn scale(self) -> [usize; 2] {
        match self {
            SampleOrder::Planes => [1; 2],
            SampleOrder::Rectangles(size) => size.map(|log2| 1 << log2.min(4)),
            SampleOrder::Together(samples) => [usize::from(samples).max(1), 1],
        }
    }

    /// Column and row of a sample in the rectangle of its pixel.
    pub(crate) fn offset(self, sample: usize) -> [usize; 2] {
        match self {
            SampleOrder::Planes => [0; 2],
            SampleOrder::Rectangles(_) => [sample & 1 | sample >> 1 & 2, sample >> 1 & 1],
            SampleOrder::Together(_) => [sample, 0],
        }
    }
}

impl Surface {
    /// The bytes of its elements, if each pixel has `samples` samples.
    pub(crate) fn range(&self, bytes: usize, samples: usize) -> Range<usize> {
        let planes = if self.order == SampleOrder::Planes { samples } else { 1 };
        let length = self.rows.saturating_mul(self.pitch).saturating_mul(bytes).saturating_mul(planes);
        self.start..self.start.saturating_add(length).min(self.end)
    }

    /// The bytes of its elements in some rows of pixels, which have `samples` samples each.
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

    /// The place of a sample of a pixel; `None` outside.
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
    /// Where it is.
    pub surface: Surface,
    /// Its elements.
    pub format: Format,
    /// The component of the format that red, green, blue and alpha go to; `None` for one that is not there.
    pub places: [Option<u8>; 4],
    /// Which of red (bit 0) to alpha are written.
    pub mask: u8,
    /// Blending, if it is on.
    pub blend: Option<Blend>,
    /// The number of the fragment program's colour.
    pub color: usize,
}

impl Target {
    /// The colour that an element stores; missing components are 0, 0, 0, 1.
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

    /// Stores a colour.
    pub(crate) fn store(&self, element: &mut [u8], color: [u32; 4], logic: LogicOp) {
        let (mut values, mut mask) = ([0; 4], 0);
        for (chan, place) in self.places.iter().enumerate() {
            if let Some(place) = place {
                values[usize::from(*place)] = color[chan];
                mask |= (self.mask >> chan & 1) << place;
            }
        }
        let (mut bits, written) = self.format.write(values, mask);
        // Whole elements need not be read.
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
    /// Where it is.
    pub surface: Surface,
    /// Its elements.
    pub format: DepthFormat,
}

/// From clip space to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Viewport {
    /// Of x, y and z.
    pub scale: [f32; 3],
    /// Added after.
    pub offset: [f32; 3],
    /// The range to which depth is clamped, if it is.
    pub depth: Option<(f32, f32)>,
    /// Whether x, y and z are divided by w first.
    pub divides: bool,
}

/// How the inside of a polygon is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fill {
    Points,
    Lines,
    #[default]
    Solid,
}

/// Polygon offset. (OpenGL 3.0, 3.6.4)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// Times the steepest slope of depth.
    pub slope: f64,
    /// Added, in depth.
    pub constant: f64,
    /// Whether `constant` counts in the smallest steps of a float as large as the largest depth of the primitive.
    pub of_float: bool,
    /// The most that is added: the least if it is negative; 0 for no limit.
    pub clamp: f64,
}

/// One side of a polygon.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// It is not drawn.
    pub culled: bool,
    /// What is drawn.
    pub fill: Fill,
    /// What is added to depth.
    pub offset: Option<Offset>,
}

/// Sizes of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Points {
    /// Width and height in pixels, where the vertex program gives none.
    pub size: [f32; 2],
    /// Whether it gives one.
    pub from_vertex: bool,
    /// The range of what it gives.
    pub range: [f32; 2],
}

/// Several samples a pixel. (OpenGL 3.0, 3.3.1)
#[derive(Clone, Debug, PartialEq)]
pub struct Multisample {
    /// Where the samples of a pixel are, from its centre, fixed-point; none for surfaces of one sample.
    pub places: Vec<Corner>,
    /// Whether each sample is covered by itself; else all are where the centre is.
    pub by_sample: bool,
    /// Bit n: sample n may be covered.
    pub mask: u8,
    /// Whether alpha of colour 0 says how many samples are covered.
    pub alpha_to_coverage: bool,
    /// Whether alpha of all colours is 1 after that.
    pub alpha_to_one: bool,
    /// Whether each sample is shaded by itself.
    pub shades_samples: bool,
    /// Bit n: input n is taken where the primitive covers the pixel, if it does not cover the centre.
    pub at_centroid: u64,
    /// Bit n: input n is taken at the sample, where each is shaded by itself.
    pub at_sample: u64,
    /// The same two of the position.
    pub position: (bool, bool),
    /// What becomes of samples that are covered, instead of tests and blending.
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
    /// The place of a sample from the centre of its pixel.
    pub(crate) fn place(&self, sample: usize) -> Corner {
        self.places.get(sample).copied().unwrap_or_default()
    }

    /// The sample at which the centroid of a pixel is taken: the first one that is covered. `None` for the centre, if all samples
    /// are covered or none.
    pub(crate) fn centroid(&self, mask: u8, samples: usize) -> Option<usize> {
        let is_part = self.by_sample && mask != 0 && mask != (u32::MAX >> (32 - samples)) as u8;
        is_part.then_some(mask.trailing_zeros() as usize)
    }
}

/// The samples that alpha covers: bit n is sample n. Unknown: which samples a chip covers. Here they are the first ones.
pub fn samples_of_alpha(alpha: f32, samples: usize) -> u32 {
    (1 << libm::rintf(alpha.clamp(0., 1.) * samples as f32) as u32) - 1
}

/// A copy between surfaces, of pixels that a draw covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// The mean of all samples of the first target goes to the second, which has one.
    Resolve,
    /// [`Draw::copies_depth`] from this sample of the depth buffer.
    Depth(u8),
    /// Everything stays as it is.
    Nothing,
}

/// A pattern along lines. (OpenGL 3.0, 3.5.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stipple {
    /// Bit n: whether pixel n is drawn, the lowest first.
    pub pattern: u16,
    /// Pixels a bit.
    pub factor: u16,
    /// Whether it begins anew with each line, not only with each run of vertices.
    pub restarts: bool,
}

impl Stipple {
    /// Whether the pixel at a distance from the first is drawn.
    pub(crate) fn draws(self, distance: i64) -> bool {
        self.pattern >> (distance / i64::from(self.factor.max(1))).rem_euclid(16) & 1 != 0
    }
}

/// All that a draw depends on besides its vertices and the fragment program.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// How vertices make primitives.
    pub topology: Topology,
    /// Whether the last vertex of a primitive gives its flat attributes.
    pub last_provokes: bool,
    /// From clip space to the window.
    pub viewport: Viewport,
    /// What is cut; `None` for nothing.
    pub clip: Option<Clip>,
    /// The pixels that may be drawn.
    pub scissor: Rectangle,
    /// The pixels inside of the scissor that may be drawn; `None` for all.
    pub mask: Option<Box<PixelMask>>,
    /// Whether the front of a polygon runs clockwise on the screen.
    pub front_is_clockwise: bool,
    /// Front and back.
    pub sides: [Side; 2],
    /// Sizes of points.
    pub points: Points,
    /// Width of lines, in pixels.
    pub line_width: f32,
    /// Whether the sides and ends of lines are at right angles. Otherwise their width counts along an axis, unless pixels have several
    /// samples.
    pub rectangular_lines: bool,
    /// The pattern of lines, if there is one.
    pub stipple: Option<Stipple>,
    /// What the fragment program reads.
    pub inputs: Vec<Input>,
    /// The depth buffer, if there is one.
    pub depth: Option<DepthTarget>,
    /// Depth and stencil tests.
    pub tests: Tests,
    /// The least and the greatest stored depth at which samples are drawn, if there are such bounds. (EXT_depth_bounds_test)
    pub depth_bounds: Option<[f32; 2]>,
    /// Comparison of the alpha of colour 0.
    pub alpha_test: Option<(Compare, f32)>,
    /// The colour targets.
    pub targets: Vec<Target>,
    /// The logic operation, instead of blending, if it is not [`LogicOp::COPY`].
    pub logic: LogicOp,
    /// Depth and stencil go to the first colour target as they are stored; nothing else is.
    pub copies_depth: bool,
    /// Samples of pixels.
    pub multisample: Multisample,
}

impl Draw {
    /// The memory that the draw may write to.
    pub fn written(&self) -> impl Iterator<Item = Range<usize>> {
        let depth = self.depth.iter().map(|depth| (&depth.surface, depth.format.bytes()));
        let targets = self.targets.iter().map(|target| (&target.surface, target.format.bytes.into()));
        let (rows, samples) = ([self.scissor.y0, self.scissor.y1], self.multisample.places.len().max(1));
        targets.chain(depth).map(move |(surface, bytes)| surface.rows(rows, bytes, samples))
    }
}

/// A word of each lane.
pub type LaneWords = Vec<u32>;

/// A word of each lane, which a program may keep while it runs.
pub type LaneColumn = Arc<LaneWords>;

/// Fragments to shade: whole quads, four lanes each, in the order of [`Quad`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fragments {
    /// How many lanes.
    pub lanes: usize,
    /// For each of [`Draw::inputs`] the columns of x, y, z and w, as bits. A column that [`ReadColumns`] leaves out is empty.
    pub inputs: Vec<[LaneColumn; 4]>,
    /// x and y of the pixel's centre, depth, and clip-space w, as bits of floats. Of x, y and w, a column that [`ReadColumns`]
    /// leaves out is empty.
    pub positions: [LaneColumn; 4],
    /// The quads. Lanes that are not covered only help with differences.
    pub quads: Vec<Quad>,
    /// Whether the front of each quad's primitive is seen.
    pub fronts: Vec<bool>,
    /// Masks by lane: bit n means that sample n of the pixel is covered. Empty if pixels have one sample.
    pub samples: Vec<u8>,
    /// The sample that each lane is for. Empty if samples are not shaded by themselves.
    pub sample: Vec<u8>,
}

impl Fragments {
    /// The pixel of a lane.
    pub fn pixel(&self, lane: usize) -> (i32, i32) {
        self.quads[lane / 4].pixel(lane % 4)
    }

    /// Whether a lane is a pixel of its primitive.
    pub fn is_covered(&self, lane: usize) -> bool {
        self.quads[lane / 4].covered >> (lane % 4) & 1 != 0
    }

    /// Whether the front of a lane's primitive is seen.
    pub fn is_front(&self, lane: usize) -> bool {
        self.fronts[lane / 4]
    }

    /// The samples of a lane's pixel that are covered: bit n is sample n.
    pub fn samples(&self, lane: usize) -> u8 {
        self.samples.get(lane).copied().unwrap_or(u8::from(self.is_covered(lane)))
    }

    /// The components of an input in each lane; zeros for columns that are empty.
    pub fn input(&self, number: usize) -> Vec<[u32; 4]> {
        interleaved(&self.inputs[number], self.lanes)
    }

    /// The components of the position in each lane; zeros for columns that are empty.
    pub fn position(&self) -> Vec<[u32; 4]> {
        interleaved(&self.positions, self.lanes)
    }
}

/// Columns lane by lane, with zeros for columns that are empty.
pub fn interleaved(columns: &[LaneColumn; 4], lanes: usize) -> Vec<[u32; 4]> {
    let mut all = vec![[0; 4]; lanes];
    for (chan, column) in columns.iter().enumerate() {
        all.iter_mut().zip(&**column).for_each(|(values, word)| values[chan] = *word);
    }
    all
}

/// The columns of [`Fragments`] that a program reads, as masks: bit n is component n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumns {
    /// A mask for each of [`Draw::inputs`]. Inputs past the end of the list are read whole.
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
    /// Whether a component of an input is read.
    pub(crate) fn has(&self, input: usize, chan: usize) -> bool {
        self.inputs.get(input).is_none_or(|chans| chans >> chan & 1 != 0)
    }
}

/// What a fragment program gives.
#[derive(Clone, Debug, Default)]
pub struct Shaded {
    /// By number of the colour: the columns of red, green, blue and alpha, if it was written. An empty column is zeros.
    pub colors: Vec<Option<[LaneWords; 4]>>,
    /// Depth in place of the interpolated one.
    pub depth: Option<LaneWords>,
    /// Stencil reference in place of the state's.
    pub stencil: Option<LaneWords>,
    /// Lanes that end without a fragment; none if it is empty.
    pub killed: Vec<bool>,
    /// Samples that may be covered, bit n sample n, if the program says which.
    pub mask: Option<LaneWords>,
}

/// A fragment program whose only result is colour 0, a texel: see [`FragmentProgram::copied`].
///
/// The texel is that into which the coordinates fall, times the factor, if it is in the level.
#[derive(Clone, Debug, PartialEq)]
pub struct CopiedTexels {
    /// The elements of a level with one slice. Their channels are red, green, blue and alpha of the colour.
    pub elements: Elements,
    /// Width and height of the level.
    pub size: [u32; 2],
    /// Input and component of both coordinates.
    pub coordinates: [(usize, usize); 2],
    /// Texels per unit of each coordinate.
    pub factor: [f32; 2],
    /// Inputs and components that the program only rounds to whole numbers, which must be 0.
    pub zeros: Vec<(usize, usize)>,
}

/// A program that shades fragments. Several threads may run it at once.
pub trait FragmentProgram: Sync {
    /// Why it does not.
    type Error: Send + 'static;

    /// Returns which columns [`FragmentProgram::run`] reads: all, unless the program knows better.
    fn reads(&self) -> ReadColumns {
        ReadColumns::default()
    }

    /// Returns whether results depend on nothing but the columns that are read and the side that is seen: all lanes of a
    /// primitive whose columns are the same everywhere have the same result.
    fn is_uniform(&self) -> bool {
        false
    }

    /// Returns whether lanes that the depth test drops need not run: the program computes no depth, and nothing is left of a lane
    /// but its results.
    fn may_skip_hidden(&self) -> bool {
        false
    }

    /// Returns the texels that the program copies, if that is all that it does. Such a program may not be run.
    fn copied(&self) -> Option<CopiedTexels> {
        None
    }

    /// Returns whether it runs in the order of the fragments, on the thread that draws: something else than results is left of a
    /// run.
    fn in_order(&self) -> bool {
        false
    }

    /// Shades fragments.
    ///
    /// # Errors
    /// The program does not run to its end; nothing of these fragments and of later ones is stored then.
    fn run(&self, fragments: &Fragments) -> Result<Shaded, Self::Error>;

    /// Takes back results that are merged, so that their memory may serve later ones.
    fn merged(&self, _shaded: Shaded) {}
}

/// What a draw counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Primitives that were assembled.
    pub primitives: u64,
    /// Primitives of which clipping has left something.
    pub clipped: u64,
    /// Samples that passed all tests.
    pub passed: u64,
}

/// Lanes that are shaded and merged together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) fragments: Fragments,
    /// For each sample the depths of all lanes, if they are not those of the position.
    pub(crate) depths: Vec<LaneWords>,
    /// The lane with which each primitive begins. No pixel is twice among the lanes of one.
    pub(crate) starts: Vec<usize>,
    /// Number of lanes that are not here because they are hidden.
    pub(crate) skipped: u64,
}

impl Batch {
    pub(crate) fn new(draw: &Draw) -> Batch {
        let mut batch = Batch::default();
        batch.start(draw);
        batch
    }

    /// Becomes the first batch of a draw.
    pub(crate) fn start(&mut self, draw: &Draw) {
        self.clear();
        self.fragments.inputs.resize_with(draw.inputs.len(), Default::default);
        let multisample = &draw.multisample;
        self.depths.resize_with(if multisample.by_sample { multisample.places.len() } else { 0 }, Vec::new);
    }

    /// The depths of all lanes in a sample.
    pub(crate) fn depths(&self, sample: usize) -> &LaneWords {
        self.depths.get(sample).unwrap_or(&self.fragments.positions[2])
    }

    /// Removes all lanes, and keeps the memory of the columns, unless a program has kept it.
    pub(crate) fn clear(&mut self) {
        let Fragments { lanes, inputs, positions, fronts, samples, sample, quads } = &mut self.fragments;
        *lanes = 0;
        // To ask an empty one whether it is shared takes an atomic operation.
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
