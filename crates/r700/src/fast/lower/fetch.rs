//! Lowers fetch instructions whose resources and registers are known before the launch. A register number may still
//! depend on aL. [`super::memory`] lowers the instructions that access memory.
//!
//! The reference interpreter executes queries of textures (GET_LOD, GET_LERP, GET_TEXTURE_RESINFO) and instructions
//! with unbound resources.

use std::sync::Arc;

use reconverge_simt::Fidelity;
use reconverge_simt::place::Layout;
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Image, Sampler, Shape};

use super::super::lanes::Place;
use super::Lowering;
use crate::chip::LANES;
use crate::code::{Fetch, FetchOp, Select, select};
use crate::control::{self, CfWork, Lod, SampleKind, sample_kind};
use crate::flow::Control;
use crate::format::{self, Number, Swap};
use crate::lane;
use crate::memory::Space;
use crate::reference::texture::{exactness, lod_bias, offsets};
use crate::rules::Rule;
use crate::texture::{Component, Texture, TextureSampler};
use crate::wave::Wave;
use crate::words::{
    CfInst, CoordType, MemDsrDword1, MemDswDword1, TexDword0R700, TexDword1, TexDword2, TexInst,
};

/// Conversion of the words of an element to numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Conversion {
    pub(in crate::fast) layout: format::Layout,
    pub(in crate::fast) numbers: Number,
    pub(in crate::fast) swap: Swap,
}

/// A vertex fetch.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Vertex {
    pub(in crate::fast) bound: Bound,
    /// The number that the fetch adds to the index of the element.
    pub(in crate::fast) base: u32,
    /// Distance between elements in bytes.
    pub(in crate::fast) stride: usize,
    /// Position of the fetched data inside an element, in bytes.
    pub(in crate::fast) offset: usize,
    pub(in crate::fast) conversion: Conversion,
    /// The value of components outside the buffer.
    pub(in crate::fast) outside: u32,
}

/// A read of scratch, reduction or scatter memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct MemoryReads {
    pub(in crate::fast) space: Space,
    /// Whether component x of the source is added to the number of the element.
    pub(in crate::fast) indexed: bool,
    pub(in crate::fast) base: u64,
    /// ARRAY_SIZE: index of the last element.
    pub(in crate::fast) last: u64,
    pub(in crate::fast) elem_dwords: usize,
    pub(in crate::fast) conversion: Conversion,
}

/// A fetch clause.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Fetches {
    pub(in crate::fast) control: Control,
    /// Whether WAIT_ACK can wait for the clause.
    pub(in crate::fast) acknowledged: bool,
    /// First instruction of the clause, as an index into the program's fetch instructions.
    pub(in crate::fast) first: u32,
    /// Number of instructions in the clause.
    pub(in crate::fast) count: u32,
}

/// An instruction of a fetch clause.
#[derive(Clone, Debug)]
pub(in crate::fast) struct FetchInfo {
    pub(in crate::fast) addr: u32,
    /// The lowered instruction, or `None` if the reference interpreter runs the instruction.
    pub(in crate::fast) fetching: Option<Fetching>,
}

/// A lowered fetch instruction.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Fetching {
    /// FETCH_WHOLE_QUAD.
    pub(in crate::fast) whole_quad: bool,
    /// Coordinates, indices, or the words to write. A burst has one entry per register.
    pub(in crate::fast) src: Vec<[Register; 4]>,
    /// Destinations of the results, by component. A burst has one entry per register.
    pub(in crate::fast) dst: Vec<[Option<(Register, Chosen)>; 4]>,
    pub(in crate::fast) work: FetchWork,
    /// Name under which the engine counts executions of the instruction. If the engine does not count the executions,
    /// the field is `None`.
    pub(in crate::fast) name: Option<&'static str>,
    pub(in crate::fast) exactness: Fidelity,
    pub(in crate::fast) rules: Vec<Rule>,
}

/// Location of an operand of an instruction outside ALU clauses.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) enum Register {
    /// A row that is the same in the whole launch.
    Fixed(Place),
    /// A register component. The number of the register is the first field plus aL. The second field is the component.
    Loop(u8, u8),
}

impl Register {
    /// Returns the row of the operand for the current aL. Returns `None` if the register does not exist. In strict
    /// mode, also returns `None` if aL does not exist.
    #[inline(always)]
    pub(in crate::fast) fn place(self, wave: &Wave, layout: &Layout<LANES>) -> Option<Place> {
        match self {
            Register::Fixed(place) => Some(place),
            Register::Loop(gpr, chan) => {
                let register = i32::from(gpr) + wave.loop_offset(true).ok()?;
                wave.row_for(register, chan.into(), true).map(|row| layout.place(row))
            }
        }
    }
}

/// Source of a destination component.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) enum Chosen {
    Component(usize),
    Word(u32),
}

/// Operation of a fetch instruction.
#[derive(Clone, Debug)]
pub(in crate::fast) enum FetchWork {
    /// SAMPLE, its variants, and FETCH4.
    Sample(Box<Sample>),
    /// LD: reads one texel.
    Load(Box<Load>),
    /// GET_GRADIENTS_H or GET_GRADIENTS_V. The instruction subtracts the value of lane 0 of a quad from the value of a
    /// second lane of the quad. The field is the number of the second lane in the quad.
    Gradients(usize),
    /// SET_GRADIENTS_H (0) or SET_GRADIENTS_V (1).
    SetGradients(usize),
    /// FETCH or SEMFETCH.
    Vertex(Vertex),
    /// A SEMFETCH whose semantic has no register. This SEMFETCH does nothing.
    Nothing,
    /// READ_SCRATCH, READ_REDUCTION or READ_SCATTER.
    Read(MemoryReads),
    /// LOCAL_DS_WRITE, with its second word.
    ShareWrite(MemDswDword1),
    /// LOCAL_DS_READ, with its second word.
    ShareRead(MemDsrDword1),
}

/// A bound texture or vertex buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::fast) struct Bound {
    /// ALT_CONST. If this field is set, a vertex program uses a resource of the pixel stage, and a pixel program uses a
    /// resource of the vertex stage.
    pub(in crate::fast) alternate: bool,
    pub(in crate::fast) id: u8,
}

/// Data of an LD instruction. The data are the same in the whole launch.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Load {
    pub(in crate::fast) bound: Bound,
    pub(in crate::fast) plan: Plan,
    /// Whether the image has an x, y and z axis. The source has a coordinate for each existing axis.
    pub(in crate::fast) axes: [bool; 3],
    pub(in crate::fast) offset: [i32; 3],
}

/// Data of a SAMPLE instruction. The data are the same in the whole launch.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Sample {
    pub(in crate::fast) bound: Bound,
    pub(in crate::fast) plan: Plan,
    pub(in crate::fast) sampler: Sampler,
    pub(in crate::fast) state: TextureSampler,
    pub(in crate::fast) kind: SampleKind,
    pub(in crate::fast) gathers: bool,
    pub(in crate::fast) integer: bool,
    pub(in crate::fast) offset: [i32; 3],
    pub(in crate::fast) bias: f32,
    pub(in crate::fast) flat: Option<FlatSample>,
}

/// Rows of a sample that [`Plan::read_flat`] computes.
#[derive(Clone, Debug)]
pub(in crate::fast) struct FlatSample {
    pub(in crate::fast) image: Arc<Image>,
    pub(in crate::fast) coordinates: [Place; 2],
    /// The destination of each component of the texels.
    pub(in crate::fast) texels: [Option<Place>; 4],
    /// The destinations that receive a constant, each with its constant.
    pub(in crate::fast) words: Vec<(Place, u32)>,
}

impl FlatSample {
    /// Returns the rows of the sample. The function returns `None` if the rows can change within a launch, or if some
    /// component has several destinations.
    fn new(
        sample: &Sample,
        texture: &Texture,
        [x, y, ..]: [Register; 4],
        dst: &[Option<(Register, Chosen)>; 4],
    ) -> Option<FlatSample> {
        if sample.gathers || sample.kind.compare || sample.integer || !sample.plan.is_flat() {
            return None;
        }
        let fixed = |register| match register {
            Register::Fixed(place) => Some(place),
            Register::Loop(..) => None,
        };
        let (image, coordinates) = (texture.image.clone(), [fixed(x)?, fixed(y)?]);
        let mut flat = FlatSample { image, coordinates, texels: [None; 4], words: Vec::new() };
        for (register, chosen) in dst.iter().flatten() {
            let place = fixed(*register)?;
            let component = match *chosen {
                Chosen::Component(component) => texture.select[component],
                Chosen::Word(word) => Component::Word(word),
            };
            match component {
                Component::Texel(number) => {
                    let before = flat.texels[usize::from(number & 3)].replace(place);
                    before.is_none().then_some(())?;
                }
                Component::Word(word) => flat.words.push((place, word)),
            }
        }
        Some(flat)
    }
}

impl Lowering<'_> {
    /// Lowers a fetch clause. Returns `None` if the reference interpreter runs all instructions of the clause.
    pub(super) fn fetches(&mut self, inst: CfInst, control: &Control, fetches: &[Fetch]) -> Option<Fetches> {
        let infos: Vec<FetchInfo> = fetches
            .iter()
            .map(|fetch| FetchInfo { addr: fetch.addr, fetching: self.fetching(fetch) })
            .collect();
        infos.iter().any(|info| info.fetching.is_some()).then_some(())?;
        let acknowledged = matches!(control::cf(inst).work, CfWork::Fetch { acknowledged: true });
        let (first, count) = (self.lowered.fetches.len() as u32, infos.len() as u32);
        self.lowered.fetches.extend(infos);
        Some(Fetches { control: *control, acknowledged, first, count })
    }

    fn fetching(&mut self, fetch: &Fetch) -> Option<Fetching> {
        let fetching = match &fetch.op {
            FetchOp::Texture(low, high, third) => self.texture(fetch, low, high, third),
            FetchOp::Vertex(low, format, third) => self.vertex(fetch, low, *format, third),
            FetchOp::Memory(low, high, third) => self.memory_read(fetch, low, high, third),
            FetchOp::DataShareWrite(high) => self.share_write(fetch, high),
            FetchOp::DataShareRead(low, high) => self.share_read(fetch, low, high),
        }?;
        // An instruction can compute its register number from aL but use no component of the register. At such an
        // instruction, the fast engine would not notice that aL does not exist. So the reference interpreter runs the
        // instruction.
        let asks = |row: &Register| matches!(row, Register::Loop(..));
        let source = !fetch.src_rel || fetching.src.as_flattened().iter().any(asks);
        let rows = fetching.dst.as_flattened().iter().flatten();
        let destination = !fetch.dst_rel || rows.map(|(row, _)| row).any(asks);
        (source && destination).then_some(fetching)
    }

    fn texture(
        &mut self,
        fetch: &Fetch,
        low: &TexDword0R700,
        high: &TexDword1,
        third: &TexDword2,
    ) -> Option<Fetching> {
        let src = self.coordinates(fetch, third)?;
        let dst = self.destinations(fetch, fetch.dst_gpr, lane::ONE)?;
        let inst = low.tex_inst;
        let specified = |work| (work, inst.name(), Fidelity::Specified, Vec::new());
        let coarse = Rule::GRADIENTS_ARE_COARSE;
        let gradients =
            |step| (FetchWork::Gradients(step), "GET_GRADIENTS", Fidelity::Recommended, vec![coarse]);
        let (work, name, exactness, rules) = match inst {
            TexInst::GET_GRADIENTS_H => gradients(1),
            TexInst::GET_GRADIENTS_V => gradients(2),
            TexInst::SET_GRADIENTS_H => specified(FetchWork::SetGradients(0)),
            TexInst::SET_GRADIENTS_V => specified(FetchWork::SetGradients(1)),
            TexInst::LD => specified(FetchWork::Load(Box::new(self.load(low, third)?))),
            _ => {
                let mut sample = self.sample(low, high, third)?;
                let texture = &self.resources(sample.bound).textures[&sample.bound.id];
                sample.flat = FlatSample::new(&sample, texture, src, &dst);
                let image = &texture.image;
                let mut rules = vec![Rule::LOD_BIAS_IN_EIGHTHS];
                if sample.kind.lod == Lod::Quad {
                    rules.push(coarse);
                }
                let exactness = exactness(&sample.sampler, image);
                (FetchWork::Sample(Box::new(sample)), inst.name(), exactness, rules)
            }
        };
        let (src, dst) = (vec![src], vec![dst]);
        Some(Fetching { whole_quad: fetch.whole_quad, src, dst, work, name: Some(name), exactness, rules })
    }

    pub(super) fn resources(&self, bound: Bound) -> &crate::launch::Resources {
        self.environment.bound(bound.alternate)
    }

    /// Returns the number of an instruction's texture, or `None` if the texture is not bound.
    fn bound(&self, low: &TexDword0R700) -> Option<Bound> {
        let bound = Bound { alternate: low.alt_const, id: low.resource_id };
        self.resources(bound).textures.contains_key(&bound.id).then_some(bound)
    }

    /// Lowers LD, whose result [`load`](crate::reference::texture::load) defines.
    fn load(&self, low: &TexDword0R700, third: &TexDword2) -> Option<Load> {
        let bound = self.bound(low)?;
        let image = &self.resources(bound).textures[&bound.id].image;
        let axes = match image.shape() {
            Shape::D1 => [true, false, false],
            Shape::D1Array => [true, false, true],
            Shape::D2 => [true, true, false],
            Shape::D3 | Shape::D2Array | Shape::Cube | Shape::CubeArray => [true; 3],
        };
        let offsets = offsets(third);
        let offset = [0, 1, 2].map(|axis| if axes[axis] { offsets[axis] } else { 0 });
        Some(Load { bound, plan: Plan::new(image, &Sampler::default()), axes, offset })
    }

    fn sample(&self, low: &TexDword0R700, high: &TexDword1, third: &TexDword2) -> Option<Sample> {
        let quad = SampleKind { lod: Lod::Quad, biased: false, compare: false };
        let gathers = low.tex_inst == TexInst::FETCH4;
        let kind = if gathers { quad } else { sample_kind(low.tex_inst)? };
        let bound = self.bound(low)?;
        let resources = self.resources(bound);
        let texture = &resources.textures[&bound.id];
        let state = match resources.samplers.get(&third.sampler_id) {
            Some(state) => *state,
            None if self.strict => return None,
            None => TextureSampler::default(),
        };
        let unnormalised = high.coord_type_x == CoordType::UNNORMALIZED;
        let border = texture.border(state.sampler.border);
        let sampler = Sampler { unnormalised, border, ..state.sampler };
        Some(Sample {
            bound,
            plan: Plan::new(&texture.image, &sampler),
            sampler,
            state,
            kind,
            gathers,
            integer: texture.integer,
            offset: offsets(third),
            bias: lod_bias(high),
            flat: None,
        })
    }

    /// Returns the rows of the coordinates.
    fn coordinates(&mut self, fetch: &Fetch, third: &TexDword2) -> Option<[Register; 4]> {
        let mut places = [Register::Fixed(Place::FIRST); 4];
        let selects = [third.src_sel_x, third.src_sel_y, third.src_sel_z, third.src_sel_w];
        for (place, sel) in places.iter_mut().zip(selects) {
            *place = match select(sel) {
                Select::Component(chan) => self.register(fetch.src_gpr.into(), chan, fetch.src_rel)?,
                Select::Zero | Select::Mask => Register::Fixed(self.constant_place(0)),
                Select::One => Register::Fixed(self.constant_place(lane::ONE)),
            };
        }
        Some(places)
    }

    /// Returns component `chan` of a register. If `relative` is set, aL is added to the register number. Returns `None`
    /// if the register does not exist.
    pub(super) fn register(&self, gpr: i32, chan: usize, relative: bool) -> Option<Register> {
        if relative {
            return Some(Register::Loop(u8::try_from(gpr).ok()?, chan as u8));
        }
        self.environment.register_row(gpr, chan).map(|row| Register::Fixed(self.place(row)))
    }

    /// Returns the rows of register `gpr` that receive the results. `one` is the value that a component receives if
    /// DST_SEL selects the constant 1.
    pub(super) fn destinations(
        &self,
        fetch: &Fetch,
        gpr: u8,
        one: u32,
    ) -> Option<[Option<(Register, Chosen)>; 4]> {
        let mut places = [None; 4];
        for (chan, (place, select)) in places.iter_mut().zip(fetch.select).enumerate() {
            let chosen = match select {
                Select::Component(component) => Chosen::Component(component),
                Select::Zero => Chosen::Word(0),
                Select::One => Chosen::Word(one),
                Select::Mask => continue,
            };
            *place = Some((self.register(gpr.into(), chan, fetch.dst_rel)?, chosen));
        }
        Some(places)
    }
}
