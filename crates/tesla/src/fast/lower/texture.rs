//! Lowers texture instructions whose texture and sampler are bound, and `quadop`.
//!
//! The reference interpreter executes the following texture instructions: queries of a texture (`texsize`,
//! `texquerylod`), `texprep`, `texcsaa`, and instructions whose texture or sampler is not bound.

use reconverge_simt::texture::Sampler;
use reconverge_simt::texture::rows::Plan;

use super::super::lanes::handler;
use super::super::operands::{Kind, Lod, Place, Quad, Sample, Tex, TexelFetch, Work};
use super::super::texture::{Quadop, Textured};
use super::{Lower, Lowering};
use crate::inst::{self, Dst, Inst, Stage, TexOp};
use crate::lane::quad::{QuadOp, QuadSource, derivative_outside_fragment};
use crate::texture::{SourceOrder, Texture};

impl Lower<'_> {
    /// Lowers a texture instruction.
    pub(super) fn texture(&mut self, tex: &inst::Tex, set: usize) -> Option<Lowering> {
        let texture = self.context.setup.textures.textures.get(&tex.texture)?;
        let sources = [0, 1, 2, 3].map(|word| self.register(tex.base.saturating_add(word)));
        let work = match tex.op {
            TexOp::Fetch => Work::Fetch(Box::new(self.fetch(tex, texture, sources))),
            TexOp::Auto | TexOp::Bias | TexOp::Lod | TexOp::Gather => {
                Work::Sample(Box::new(self.sample(tex, texture, sources)?))
            }
            TexOp::Size | TexOp::Csaa | TexOp::Prep | TexOp::QueryLod => return None,
        };
        // Enabled components go to consecutive registers.
        let mut dst = [None; 4];
        let enabled = (0..4).filter(|component| tex.mask >> component & 1 != 0);
        for (step, component) in enabled.enumerate() {
            dst[component] = Some(self.target(tex.base.saturating_add(step as u8)));
        }
        let lowered = Tex {
            image: match tex.op {
                TexOp::Fetch => texture.image.clone(),
                _ => texture.sampled(tex.cube).clone(),
            },
            work,
            dst,
            offset: tex.offset.map(i32::from),
            live: tex.live,
        };
        let mut operation = self.operation(self.sink(), set);
        operation.number = u32::try_from(self.lowered.tables.textures.len()).ok()?;
        self.lowered.tables.textures.push(lowered);
        self.push(handler::<Textured>(self.level), operation);
        Some(Lowering::Straight)
    }

    /// Lowers `texfetch`. [`fetch`](crate::texture::fetch) defines the result of `texfetch`.
    fn fetch(&self, tex: &inst::Tex, texture: &Texture, sources: [Place; 4]) -> TexelFetch {
        let image = &*texture.image;
        let order = SourceOrder::of(image.shape(), false);
        let source = |word: Option<usize>| match word {
            Some(word) if word < usize::from(tex.count).min(4) => sources[word],
            _ => self.zero(),
        };
        let mut numbers = order.coordinates.map(source);
        if let Some(word) = order.layer {
            numbers[2] = source(Some(word));
        }
        let offset = [0, 1, 2].map(|axis| match order.coordinates[axis] {
            Some(_) if axis < 2 || order.layer.is_none() => i32::from(tex.offset[axis]),
            _ => 0,
        });
        TexelFetch {
            plan: Plan::new(image, &Sampler::default()),
            numbers,
            layered: order.layer.is_some(),
            level: source(Some(order.last)),
            offset,
        }
    }

    fn sample(&self, tex: &inst::Tex, texture: &Texture, sources: [Place; 4]) -> Option<Sample> {
        let state = self.context.setup.textures.samplers.get(&tex.sampler)?;
        let image = &**texture.sampled(tex.cube);
        let order = SourceOrder::of(image.shape(), state.compare.is_some());
        let source = |word: Option<usize>| match word {
            Some(word) if word < usize::from(tex.count).min(4) => sources[word],
            _ => self.zero(),
        };
        let derivatives = tex.deriv || self.context.stage == Stage::Fragment;
        Some(Sample {
            plan: Plan::new(image, &state.sampler),
            sampler: state.sampler,
            kind: match state.compare {
                _ if tex.op == TexOp::Gather => Kind::Gather,
                Some(compare) => Kind::Compare(compare, source(order.reference), texture.compared),
                None if texture.integer => Kind::Bits,
                None => Kind::Floats,
            },
            coordinates: order.coordinates.map(source),
            layer: order.layer.map(|word| source(Some(word))),
            last: source(Some(order.last)),
            lod: match tex.op {
                TexOp::Lod => Lod::Last,
                TexOp::Bias if derivatives => Lod::Bias,
                _ if derivatives => Lod::Quad,
                _ => Lod::Still,
            },
        })
    }

    /// Lowers `quadop`.
    pub(super) fn quadop(
        &mut self,
        inst: &Inst,
        (ops, from): ([QuadOp; 4], QuadSource),
        set: usize,
    ) -> Option<Lowering> {
        let mut operation = self.operation(self.sink(), set);
        let transfer = self.sources(inst, &mut operation, &mut [self.zero(); 3], set)?;
        // A `quadop` reads sources of all lanes of a quad. But a source that differs between lanes is loaded only for
        // the lanes that execute the `quadop`. So the reference interpreter executes a `quadop` with this kind of
        // source.
        if transfer.is_some() {
            return None;
        }
        match inst.dst {
            Dst::None | Dst::Discard => {}
            Dst::R32(register) => operation.dst = self.target(register),
            Dst::R16(_)
            | Dst::R64(_)
            | Dst::R128(_)
            | Dst::A(_)
            | Dst::C(_)
            | Dst::Out32(_)
            | Dst::Out16(_) => {
                return None;
            }
        }
        let neighbours = matches!(from, QuadSource::Dx | QuadSource::Dy);
        let fixed = (neighbours && self.context.stage != Stage::Fragment)
            .then(|| derivative_outside_fragment(self.context.setup.modes.nonfp_deriv));
        operation.number = u32::try_from(self.lowered.tables.quads.len()).ok()?;
        self.lowered.tables.quads.push(Quad { ops, from, fixed });
        let code = match inst.cdst {
            Some(cdst) => {
                operation.cdst = cdst;
                handler::<Quadop<true>>(self.level)
            }
            None => handler::<Quadop<false>>(self.level),
        };
        self.push(code, operation);
        Some(Lowering::Straight)
    }
}
