//! Texture instructions: the coordinates, gradients and level of detail of each lane. [`reconverge_simt::texture`]
//! contains the sampler.
//!
//! MAN chapter 5 and chapter 8 (TEX words) are the sources for the instructions and fields. Mesa's `r600_shader.c` is
//! the source for the positions of coordinates, layers and reference values in the source register. The manual does not
//! describe the arithmetic of filters. Therefore results of any filter except nearest are a recommended interpretation.

use reconverge_isa::word::sign_extend;
use reconverge_simt::texture::anisotropy::{Footprint, Gradients};
use reconverge_simt::texture::{
    Face, Image, Position, Sampler, Shape, gather, gradients_of_quad, lod_of_gradients, sample, sample_bits,
    sample_compare, weights,
};
use reconverge_simt::{Fidelity, Lane, Mask, Observer};

use crate::cause::Cause;
use crate::chip::LANES;
use crate::code::{Fetch, Select, select};
use crate::control::{Lod, SampleKind, sample_kind};
use crate::rules::Rule;
use crate::texture::{Texture, TextureSampler};
use crate::wave::{Values, Wave};
use crate::words::{CoordType, TexDword0R700, TexDword1, TexDword2, TexInst};

/// The words of a texture instruction.
pub(super) struct Words<'a> {
    pub(super) low: &'a TexDword0R700,
    pub(super) high: &'a TexDword1,
    pub(super) third: &'a TexDword2,
}

impl Wave {
    /// Executes a texture instruction.
    pub(super) fn texture<O: Observer>(
        &mut self,
        fetch: &Fetch,
        words: &Words<'_>,
        lanes: Mask,
        observer: &mut O,
    ) -> Result<(), Cause> {
        let inst = words.low.tex_inst;
        let gpr = i32::from(fetch.dst_gpr) + self.loop_offset(fetch.dst_rel)?;
        let coordinates = self.coordinates(fetch, words.third, lanes)?;
        let float = crate::lane::ONE;
        let (values, one) = match inst {
            TexInst::GET_GRADIENTS_H => (self.gradients(&coordinates, lanes, 1), float),
            TexInst::GET_GRADIENTS_V => (self.gradients(&coordinates, lanes, 2), float),
            TexInst::SET_GRADIENTS_H | TexInst::SET_GRADIENTS_V => {
                let direction = usize::from(inst == TexInst::SET_GRADIENTS_V);
                self.held.gradients[direction] = Some(Box::new(coordinates));
                self.fidelity.count(inst.name(), Fidelity::Specified, None);
                return Ok(());
            }
            TexInst::KEEP_GRADIENTS => {
                self.held.gradients =
                    [1, 2].map(|step| Some(Box::new(self.gradients(&coordinates, lanes, step))));
                let rule = Some(Rule::KEEP_GRADIENTS_TAKES_THE_QUADS);
                self.fidelity.count(inst.name(), Fidelity::Recommended, rule);
                return Ok(());
            }
            TexInst::SET_CUBEMAP_INDEX => {
                self.held.cubemap_index = Some(Box::new(coordinates[0]));
                let rule = Some(Rule::CUBEMAP_INDEX_IS_THE_ELEMENT);
                self.fidelity.count(inst.name(), Fidelity::Recommended, rule);
                return Ok(());
            }
            TexInst::PASS => (coordinates, float),
            TexInst::GET_TEXTURE_RESINFO => (self.resource_info(words, &coordinates, lanes)?, 1),
            TexInst::GET_NUMBER_OF_SAMPLES => {
                let launch = self.launch.clone();
                // In lenient mode, a texture that is not bound has 0 samples and size 0.
                let samples = self.bound(&launch, words)?.map_or(0, |texture| texture.image.samples());
                ([[samples; LANES]; 4], 1)
            }
            // LD, SAMPLE*, GET_LOD, GET_LERP and FETCH4 read the texture in this arm.
            _ => (self.read_texture(words, &coordinates, lanes)?, float),
        };
        self.write_selected(gpr, fetch, lanes, &values, one, observer)
    }

    /// Returns the four coordinates of all lanes of each quad. Derivatives need the coordinates of the other lanes of
    /// the quad.
    fn coordinates(&mut self, fetch: &Fetch, third: &TexDword2, lanes: Mask) -> Result<Values, Cause> {
        let source = self.source_register(fetch)?;
        let quads = self.whole_quads(lanes);
        let mut coordinates = [[0; LANES]; 4];
        let selects = [third.src_sel_x, third.src_sel_y, third.src_sel_z, third.src_sel_w];
        for (value, sel) in coordinates.iter_mut().zip(selects) {
            *value = match select(sel) {
                Select::Component(chan) => self.read_register(source, chan, quads, fetch.src_rel)?,
                // For coordinates that the resource does not use, Mesa writes the code 7 (MASK). No document states
                // which value such a coordinate has.
                Select::Zero | Select::Mask => [0; LANES],
                Select::One => [crate::lane::ONE; LANES],
            };
        }
        Ok(coordinates)
    }

    /// Computes one difference for each quad: the value of lane `step` minus the value of lane 0. Each lane of `lanes`
    /// receives the difference of its quad. The differences are coarse gradients ([`Rule::GRADIENTS_ARE_COARSE`]).
    fn gradients(&mut self, values: &Values, lanes: Mask, step: usize) -> Values {
        self.fidelity.count("GET_GRADIENTS", Fidelity::Recommended, Some(Rule::GRADIENTS_ARE_COARSE));
        let mut out = [[0; LANES]; 4];
        for (result, value) in out.iter_mut().zip(values) {
            for lane in lanes.lanes() {
                let first = lane.index() & !3;
                result[lane.index()] = crate::lane::add(value[first + step], crate::lane::neg(value[first]));
            }
        }
        out
    }

    /// Returns the bound texture. If no texture is bound, returns `None` in lenient mode and a cause in strict mode.
    fn bound<'a>(
        &self,
        launch: &'a crate::launch::Launch,
        words: &Words<'_>,
    ) -> Result<Option<&'a Texture>, Cause> {
        let resources = launch.environment.bound(words.low.alt_const);
        match resources.textures.get(&words.low.resource_id) {
            None if self.strict() => Err(Cause::NoResource { what: "texture", id: words.low.resource_id }),
            found => Ok(found),
        }
    }

    /// Returns properties of a mip level. The source component x is the number of the level. The properties are width,
    /// height, depth or number of layers, and the number of levels. A level that does not exist has size 0.
    fn resource_info(
        &mut self,
        words: &Words<'_>,
        coordinates: &Values,
        lanes: Mask,
    ) -> Result<Values, Cause> {
        self.fidelity.count("GET_TEXTURE_RESINFO", Fidelity::Specified, None);
        let mut values = [[0; LANES]; 4];
        let launch = self.launch.clone();
        let Some(texture) = self.bound(&launch, words)? else { return Ok(values) };
        let levels = texture.image.levels();
        for lane in lanes.lanes().map(Lane::index) {
            if let Some(level) = levels.get(coordinates[0][lane] as usize) {
                let (height, depth) = match texture.image.shape() {
                    Shape::Cube | Shape::CubeArray => (level.height, level.depth / 6),
                    // The number of layers is the component directly after the last size. (Mesa's shaders read the
                    // number of layers from this component.)
                    Shape::D1Array => (level.depth, 0),
                    Shape::D1 | Shape::D2 | Shape::D3 | Shape::D2Array => (level.height, level.depth),
                };
                (values[0][lane], values[1][lane], values[2][lane]) = (level.width, height, depth);
            }
            values[3][lane] = levels.len() as u32;
        }
        Ok(values)
    }

    fn read_texture(
        &mut self,
        words: &Words<'_>,
        coordinates: &Values,
        lanes: Mask,
    ) -> Result<Values, Cause> {
        let inst = words.low.tex_inst;
        let mut values = [[0; LANES]; 4];
        let launch = self.launch.clone();
        let Some(texture) = self.bound(&launch, words)? else { return Ok(values) };
        let image = &texture.image;
        let offset = offsets(words.third);
        let mut store = |lane: usize, texel: [u32; 4]| {
            for (value, component) in values.iter_mut().zip(texel) {
                value[lane] = component;
            }
        };
        if inst == TexInst::LD {
            self.fidelity.count(inst.name(), Fidelity::Specified, None);
            for lane in lanes.lanes().map(Lane::index) {
                let texel = load(image, [0, 1, 2, 3].map(|axis| coordinates[axis][lane]), offset);
                store(lane, texture.select.map(|component| component.of(&texel)));
            }
            return Ok(values);
        }
        let resources = launch.environment.bound(words.low.alt_const);
        let state = match resources.samplers.get(&words.third.sampler_id) {
            Some(state) => *state,
            None if self.strict() => {
                return Err(Cause::NoResource { what: "sampler", id: words.third.sampler_id });
            }
            None => TextureSampler::default(),
        };
        let unnormalised = words.high.coord_type_x == CoordType::UNNORMALIZED;
        let border = texture.border(state.sampler.border);
        let sampler = Sampler { unnormalised, border, ..state.sampler };
        let kind = sample_kind(inst).unwrap_or(SampleKind { lod: Lod::Quad, biased: false, compare: false });
        if inst == TexInst::GET_LERP {
            let rule = Some(Rule::GET_LERP_GIVES_FOUR_WEIGHTS);
            self.fidelity.count(inst.name(), Fidelity::Recommended, rule);
        } else {
            let rule = Some(Rule::LOD_BIAS_IN_EIGHTHS);
            self.fidelity.count(inst.name(), exactness(&sampler, image), rule);
        }
        let gradients = match kind.lod {
            Lod::Gradients => Some(self.loaded_gradients()?),
            Lod::Quad => {
                self.fidelity.rules.insert(Rule::GRADIENTS_ARE_COARSE);
                None
            }
            Lod::Register | Lod::Zero => None,
        };
        let index = self.held.cubemap_index.as_deref();
        let bias = lod_bias(words.high);
        for lane in lanes.lanes().map(Lane::index) {
            let coordinate = |axis: usize, lane: usize| f32::from_bits(coordinates[axis][lane]);
            let own = [0, 1, 2, 3].map(|axis| coordinate(axis, lane));
            let quad = || {
                let first = lane & !3;
                [first, first + 1, first + 2].map(|lane| [0, 1, 2].map(|axis| coordinate(axis, lane)))
            };
            let changes: Option<Gradients> = match (&gradients, kind.lod) {
                (Some(both), _) => {
                    let of = |values: &Values| [0, 1, 2].map(|axis| f32::from_bits(values[axis][lane]));
                    Some([of(&both[0]), of(&both[1])])
                }
                (None, Lod::Register | Lod::Zero) => None,
                (None, Lod::Quad | Lod::Gradients) => Some(gradients_of_lane(image, own, quad())),
            };
            let lod = match changes {
                Some([dx, dy]) => lod_of_gradients(image, &sampler, dx, dy),
                None if kind.lod == Lod::Register => own[3],
                None => 0.0,
            };
            let footprint =
                changes.map(|changes| Footprint::new(image, &sampler, changes)).unwrap_or_default();
            let lod = lod + bias + if kind.biased { own[3] } else { 0.0 };
            let position = position(image, own, offset, lod, index.map(|index| f32::from_bits(index[lane])));
            let texel = if inst == TexInst::GET_LOD {
                let clamped = (lod + sampler.lod_bias)
                    .max(sampler.min_lod)
                    .min(sampler.max_lod)
                    .clamp(0.0, image.levels().len() as f32 - 1.0);
                [clamped.to_bits(), lod.to_bits(), 0, 0]
            } else if inst == TexInst::GET_LERP {
                weights(image, &sampler, &position).map(f32::to_bits)
            } else if inst == TexInst::FETCH4 {
                gather(image, &sampler, &position).map(|texel| texel[0])
            } else if kind.compare {
                let reference = own[kind.reference_component()];
                let reference = if texture.fractions { clamp(reference) } else { reference };
                footprint.mean(image, &position, |place| {
                    [sample_compare(image, &sampler, place, state.compare, reference).to_bits(); 4]
                })
            } else if texture.integer {
                sample_bits(image, &sampler, &position)
            } else {
                footprint.mean(image, &position, |place| sample(image, &sampler, place))
            };
            let told = matches!(inst, TexInst::GET_LOD | TexInst::GET_LERP);
            store(lane, if told { texel } else { texture.select.map(|component| component.of(&texel)) });
        }
        Ok(values)
    }

    /// Returns the gradients that SET_GRADIENTS_H and SET_GRADIENTS_V of this clause have loaded.
    fn loaded_gradients(&self) -> Result<[Values; 2], Cause> {
        let mut both = [[[0; LANES]; 4]; 2];
        for (values, loaded) in both.iter_mut().zip(&self.held.gradients) {
            match loaded {
                Some(loaded) => *values = **loaded,
                None if self.strict() => return Err(Cause::Gradients),
                None => {}
            }
        }
        Ok(both)
    }
}

/// Clamps a reference value to [0, 1]. A NaN becomes 0.
pub(crate) fn clamp(reference: f32) -> f32 {
    if reference > 0. { reference.min(1.) } else { 0. }
}

/// Returns the texel that LD reads. Coordinates and level are integers. A texel outside the image is 0.
#[inline]
pub(crate) fn load(image: &Image, [x, y, z, level]: [u32; 4], offset: [i32; 3]) -> [u32; 4] {
    let [x, y, z] = [x as i32, y as i32, z as i32].map(i64::from);
    let (x, y, z) = (x + i64::from(offset[0]), y + i64::from(offset[1]), z + i64::from(offset[2]));
    let (y, z) = match image.shape() {
        Shape::D1 => (0, 0),
        Shape::D1Array => (0, z),
        Shape::D2 => (y, 0),
        Shape::D3 | Shape::D2Array | Shape::Cube | Shape::CubeArray => (y, z),
    };
    image.texel(level as usize, x, y, z).unwrap_or_default()
}

/// Returns the fidelity of a sample. Documents define the results of nearest sampling. Filtered results depend on this
/// project's interpretation of the filter.
pub(crate) fn exactness(sampler: &Sampler, image: &Image) -> Fidelity {
    use reconverge_simt::texture::Filter;
    let nearest = sampler.mag == Filter::Nearest && sampler.min == Filter::Nearest && sampler.anisotropy <= 1;
    if nearest && image.levels().len() == 1 { Fidelity::Specified } else { Fidelity::Recommended }
}

/// Returns LOD_BIAS as a float. The field states the bias in eighths of a level.
pub(crate) fn lod_bias(high: &TexDword1) -> f32 {
    sign_extend(high.lod_bias.into(), 7) as f32 / 8.0
}

/// Returns OFFSET_X to OFFSET_Z in whole texels. The unit of these fields is half a texel. Compilers write only even
/// numbers to these fields.
pub(crate) fn offsets(third: &TexDword2) -> [i32; 3] {
    [third.offset_x, third.offset_y, third.offset_z].map(|offset| sign_extend(offset.into(), 5) >> 1)
}

/// Returns the gradients of a lane's coordinates. The gradients determine the level of detail and the footprint of the
/// lane. `quad` contains the coordinates of three lanes: the quad's first lane, the lane to the right of the first
/// lane, and the lane below the first lane.
///
/// In a cube, the lanes of a quad may be on different faces. In this case, the function projects the positions of the
/// other lanes onto the face of the lane with the coordinates `own`. This behaviour is inferred from the test
/// `tex-miplevel-selection`. RV770 passes this test although the test's quads cover several faces.
pub(crate) fn gradients_of_lane(image: &Image, own: [f32; 4], quad: [[f32; 3]; 3]) -> Gradients {
    let [origin, right, below] = quad;
    if matches!(image.shape(), Shape::Cube | Shape::CubeArray)
        && quad.iter().any(|[_, _, z]| face_number(*z) != face_number(own[2]))
    {
        let direction = |[x, y, z]: [f32; 3]| position(image, [x, y, z, 0.], [0; 3], 0., None).coordinates;
        let [x, y, z, _] = own;
        return gradients_of_quad(image, direction([x, y, z]), quad.map(direction));
    }
    let change = |other: [f32; 3]| [0, 1, 2].map(|axis| other[axis] - origin[axis]);
    [change(right), change(below)]
}

/// Converts component z of a cube's coordinates to an integer. The integer is the face plus eight times the element.
fn face_number(z: f32) -> u32 {
    libm::rintf(z).clamp(0.0, 65_535.0) as u32
}

/// Returns the position at which the sampler samples an image. If the image is an array, z is the layer.
///
/// A cube's coordinates are the results of CUBE after the multiply-add that compilers emit. On the face, x and y range
/// from 1 to 2. z is the face plus eight times the element. `index` is the element that SET_CUBEMAP_INDEX has set.
pub(crate) fn position(
    image: &Image,
    [x, y, z, _]: [f32; 4],
    offset: [i32; 3],
    lod: f32,
    index: Option<f32>,
) -> Position {
    let plain = Position { coordinates: [x, y, z], layer: z, offset, lod };
    match image.shape() {
        Shape::D1 | Shape::D2 | Shape::D3 | Shape::D1Array | Shape::D2Array => plain,
        Shape::Cube | Shape::CubeArray => {
            let number = face_number(z);
            let coordinates = Face((number % 8) as u8).direction([(x - 1.5) * 2.0, (y - 1.5) * 2.0]);
            Position { coordinates, layer: index.unwrap_or((number / 8) as f32), ..plain }
        }
    }
}
