//! Fetch clauses: texture instructions whose image, sampler and registers are known before the launch.
//!
//! Left to the reference interpreter, one instruction at a time: vertex and memory fetches, registers relative to aL,
//! cubes, what asks about a texture (GET_LOD, GET_LERP, GET_TEXTURE_RESINFO), and whatever is not bound.

use reconverge_simt::Fidelity;
use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Sampler, Shape};

use super::super::lanes::Place;
use super::Lowering;
use crate::code::{Fetch, FetchOp, Select};
use crate::control::{self, CfWork};
use crate::flow::Control;
use crate::lane;
use crate::reference::texture::{Lod, SampleKind, exactness, lod_bias, offsets, sample_kind};
use crate::rules::Rule;
use crate::texture::TextureSampler;
use crate::words::{CfInst, CoordType, SelTexSrc, TexDword0R700, TexDword1, TexDword2, TexInst};

/// A fetch clause.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Fetches {
    pub(in crate::fast) control: Control,
    /// Whether WAIT_ACK can wait for it.
    pub(in crate::fast) acknowledged: bool,
    /// Its first instruction, among the program's, and the number of instructions.
    pub(in crate::fast) first: u32,
    pub(in crate::fast) count: u32,
}

/// An instruction of a fetch clause.
#[derive(Clone, Debug)]
pub(in crate::fast) struct FetchInfo {
    pub(in crate::fast) addr: u32,
    /// `None`: the reference interpreter runs it.
    pub(in crate::fast) texture: Option<Texture>,
}

/// A texture instruction.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Texture {
    /// FETCH_WHOLE_QUAD.
    pub(in crate::fast) whole_quad: bool,
    /// The coordinates.
    pub(in crate::fast) src: [Place; 4],
    pub(in crate::fast) dst: [Option<(Place, Chosen)>; 4],
    pub(in crate::fast) work: TextureWork,
    /// What each execution counts.
    pub(in crate::fast) name: &'static str,
    pub(in crate::fast) exactness: Fidelity,
    pub(in crate::fast) rules: Vec<Rule>,
}

/// What a destination component gets.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) enum Chosen {
    Component(usize),
    Word(u32),
}

/// What a texture instruction does.
#[derive(Clone, Debug)]
pub(in crate::fast) enum TextureWork {
    /// SAMPLE and its kin, FETCH4.
    Sample(Box<Sample>),
    /// LD
    Load(Bound, [i32; 3]),
    /// GET_GRADIENTS_H, _V: the lane of the quad from which the first is subtracted.
    Gradients(usize),
    /// SET_GRADIENTS_H, _V: which of the two.
    SetGradients(usize),
}

/// The key of a texture.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Bound {
    pub(in crate::fast) alternate: bool,
    pub(in crate::fast) id: u8,
}

/// A sample with all that does not change in a launch.
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
}

impl Lowering<'_> {
    /// A fetch clause; `None` if the reference interpreter runs all of it.
    pub(super) fn fetches(&mut self, inst: CfInst, control: &Control, fetches: &[Fetch]) -> Option<Fetches> {
        let infos: Vec<FetchInfo> = fetches
            .iter()
            .map(|fetch| FetchInfo { addr: fetch.addr, texture: self.texture(fetch) })
            .collect();
        infos.iter().any(|info| info.texture.is_some()).then_some(())?;
        let acknowledged = matches!(control::cf(inst).work, CfWork::Fetch { acknowledged: true });
        let (first, count) = (self.lowered.fetches.len() as u32, infos.len() as u32);
        self.lowered.fetches.extend(infos);
        Some(Fetches { control: *control, acknowledged, first, count })
    }

    fn texture(&mut self, fetch: &Fetch) -> Option<Texture> {
        let FetchOp::Texture(low, high, third) = &fetch.op else { return None };
        if fetch.src_rel || fetch.dst_rel {
            return None;
        }
        let inst = low.tex_inst;
        let specified = |work| (work, inst.name(), Fidelity::Specified, Vec::new());
        let coarse = Rule::GRADIENTS_ARE_COARSE;
        let gradients =
            |step| (TextureWork::Gradients(step), "GET_GRADIENTS", Fidelity::Recommended, vec![coarse]);
        let (work, name, exactness, rules) = match inst {
            TexInst::GET_GRADIENTS_H => gradients(1),
            TexInst::GET_GRADIENTS_V => gradients(2),
            TexInst::SET_GRADIENTS_H => specified(TextureWork::SetGradients(0)),
            TexInst::SET_GRADIENTS_V => specified(TextureWork::SetGradients(1)),
            TexInst::LD => specified(TextureWork::Load(self.bound(low)?, offsets(third))),
            _ => {
                let sample = self.sample(low, high, third)?;
                let image = &self.resources(sample.bound).textures[&sample.bound.id].image;
                let mut rules = vec![Rule::LOD_BIAS_IN_EIGHTHS];
                if sample.kind.lod == Lod::Quad {
                    rules.push(coarse);
                }
                let exactness = exactness(&sample.sampler, image);
                (TextureWork::Sample(Box::new(sample)), inst.name(), exactness, rules)
            }
        };
        let (src, dst) = (self.coordinates(fetch, third)?, self.destinations(fetch)?);
        Some(Texture { whole_quad: fetch.whole_quad, src, dst, work, name, exactness, rules })
    }

    fn resources(&self, bound: Bound) -> &crate::launch::Resources {
        if bound.alternate { &self.launch.alternate } else { &self.launch.resources }
    }

    /// The texture of an instruction, if there is one.
    fn bound(&self, low: &TexDword0R700) -> Option<Bound> {
        let bound = Bound { alternate: low.alt_const, id: low.resource_id };
        self.resources(bound).textures.contains_key(&bound.id).then_some(bound)
    }

    fn sample(&self, low: &TexDword0R700, high: &TexDword1, third: &TexDword2) -> Option<Sample> {
        let quad = SampleKind { lod: Lod::Quad, biased: false, compare: false };
        let gathers = low.tex_inst == TexInst::FETCH4;
        let kind = if gathers { quad } else { sample_kind(low.tex_inst)? };
        let bound = self.bound(low)?;
        let resources = self.resources(bound);
        let texture = &resources.textures[&bound.id];
        if matches!(texture.image.shape(), Shape::Cube | Shape::CubeArray) {
            return None;
        }
        let state = match resources.samplers.get(&third.sampler_id) {
            Some(state) => *state,
            None if self.strict => return None,
            None => TextureSampler::default(),
        };
        let unnormalised = high.coord_type_x == CoordType::UNNORMALIZED;
        let sampler = Sampler { unnormalised, ..state.sampler };
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
        })
    }

    /// The rows of the coordinates.
    fn coordinates(&mut self, fetch: &Fetch, third: &TexDword2) -> Option<[Place; 4]> {
        let mut places = [Place::FIRST; 4];
        let selects = [third.src_sel_x, third.src_sel_y, third.src_sel_z, third.src_sel_w];
        for (place, select) in places.iter_mut().zip(selects) {
            let chan = match select {
                SelTexSrc::X => 0,
                SelTexSrc::Y => 1,
                SelTexSrc::Z => 2,
                SelTexSrc::W => 3,
                SelTexSrc::ZERO | SelTexSrc::MASK => {
                    *place = self.constant_place(0);
                    continue;
                }
                SelTexSrc::ONE => {
                    *place = self.constant_place(lane::ONE);
                    continue;
                }
            };
            *place = self.place(self.launch.register_row(fetch.src_gpr.into(), chan)?);
        }
        Some(places)
    }

    /// The rows of the result.
    fn destinations(&self, fetch: &Fetch) -> Option<[Option<(Place, Chosen)>; 4]> {
        let mut places = [None; 4];
        for (chan, (place, select)) in places.iter_mut().zip(fetch.select).enumerate() {
            let chosen = match select {
                Select::Component(component) => Chosen::Component(component),
                Select::Zero => Chosen::Word(0),
                Select::One => Chosen::Word(lane::ONE),
                Select::Mask => continue,
            };
            let row = self.launch.register_row(fetch.dst_gpr.into(), chan)?;
            *place = Some((self.place(row), chosen));
        }
        Some(places)
    }
}
