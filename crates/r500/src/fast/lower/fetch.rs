//! Lowers a texture fetch to operations if the texture and the registers of the fetch are known before the launch.
//!
//! The reference interpreter executes fetches that are not lowered. A fetch is not lowered if the unit has no texture
//! or the texture has an unsupported shape. On a surface of the CTM model, a fetch is not lowered if the operation is
//! unsupported.

use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Sampler, Shape};

use super::super::bodies::{Killed, Predicated, TempByAl};
use super::super::fetch::Fetched;
use super::super::lanes::{Body, Operation};
use super::super::memory::Loaded;
use super::super::operands::{Fetch, Load, Written};
use super::super::operands::{Place, Set};
use super::Lowering;
use crate::inst::{Inst, Tex, TexRegister};
use crate::memory::Surface;
use crate::words::{TexOp, Tiling};

impl Lowering<'_> {
    /// Lowers a texture fetch. Returns `false` if the reference interpreter has to execute the fetch.
    pub(super) fn fetch(&mut self, inst: &Inst, tex: &Tex) -> bool {
        let start = self.lowered.operations.len();
        let operation = match self.bound.and_then(|bound| bound.inputs[usize::from(tex.inst.tex_id)]) {
            Some(surface) => self.load_of(inst, tex, &surface),
            None => self.fetch_of(inst, tex),
        };
        let Some(operation) = operation else {
            self.lowered.operations.truncate(start);
            self.lowered.templates.truncate(start);
            return false;
        };
        self.push(operation);
        if self.bound.is_some_and(|bound| bound.has_input(tex.inst.tex_id)) {
            self.split = Some(self.lowered.operations.len() as u32);
        }
        true
    }

    fn operation<B: Body>(&self, inst: &Inst, number: usize) -> Option<Operation> {
        let set = if inst.common.write_inactive { Set::ALL } else { Set::ACTIVE };
        let number = u16::try_from(number).ok()?.to_le_bytes();
        Some(Operation { number, ..self.plain::<B>(set) })
    }

    /// Lowers a fetch from a surface of the CTM model.
    fn load_of(&mut self, inst: &Inst, tex: &Tex, surface: &Surface) -> Option<Operation> {
        let of_four = surface.tiling == Tiling::LINEAR_INP_2X2 && surface.format.channels() == 1;
        let known = of_four || surface.tiling == Tiling::LINEAR;
        if tex.inst.inst != TexOp::LD || !tex.inst.unscaled || !known {
            return None;
        }
        let src = self.source_rows(tex.src())?;
        let dst = self.written(inst, tex.dst())?;
        let load = Load { unit: tex.inst.tex_id, src, dst, ignore_uncovered: tex.inst.ignore_uncovered };
        self.lowered.loads.push(load);
        self.operation::<Loaded>(inst, self.lowered.loads.len() - 1)
    }

    /// Returns the destination of each channel of a fetch.
    fn written(&mut self, inst: &Inst, dst: TexRegister) -> Option<[Option<Written>; 4]> {
        let TexRegister { temp, rel, swizzle } = dst;
        self.reaches_temp(temp, rel).then(|| {
            [0, 1, 2, 3].map(|channel| {
                inst.common.writes_temp(channel).then(|| Written {
                    place: self.row(usize::from(temp) * 4 + channel),
                    by_al: rel.then_some([temp, channel as u8]),
                    component: swizzle[channel] as usize,
                    predicate: inst.common.predicate(channel),
                })
            })
        })
    }

    fn fetch_of(&mut self, inst: &Inst, tex: &Tex) -> Option<Operation> {
        let op = tex.inst.inst;
        match op {
            TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD | TexOp::DXDY => {}
            TexOp::NOP | TexOp::TEXKILL => return None,
        }
        // If the launch binds several textures to a unit, the fetch uses the last one.
        let (_, texture) = self.textures.iter().rev().find(|(unit, _)| *unit == tex.inst.tex_id)?;
        if matches!(texture.image.shape(), Shape::D1Array | Shape::D2Array | Shape::CubeArray) {
            return None;
        }
        let dst = self.written(inst, tex.dst())?;
        let src = self.source_rows(tex.src())?;
        let derivatives = match op {
            TexOp::DXDY => {
                let [dx, dy] = tex.derivatives();
                [self.source_rows(dx)?, self.source_rows(dy)?]
            }
            _ => [[Place::FIRST; 3]; 2],
        };
        let unnormalised = tex.inst.unscaled || texture.sampler.unnormalised;
        let sampler = Sampler { unnormalised, ..texture.sampler };
        let plan = Plan::new(&texture.image, &sampler);
        self.lowered.fetches.push(Fetch {
            op,
            image: texture.image.clone(),
            flat: if plan.is_flat() { by_component(&dst) } else { None },
            plan,
            sampler,
            src,
            derivatives,
            dst,
            ignore_uncovered: tex.inst.ignore_uncovered,
        });
        self.operation::<Fetched>(inst, self.lowered.fetches.len() - 1)
    }

    /// Returns the rows of the first `N` swizzled channels of a temporary. For a temporary relative to aL, emits
    /// operations that copy the channels. For such a temporary, the function returns the rows of the copies. Returns
    /// `None` if the address traps or if all scratch rows are in use.
    fn source_rows<const N: usize>(&mut self, register: TexRegister) -> Option<[Place; N]> {
        let TexRegister { temp, rel, swizzle } = register;
        if !self.reaches_temp(temp, rel) {
            return None;
        }
        let mut rows = [Place::FIRST; N];
        for (row, channel) in rows.iter_mut().zip(swizzle) {
            *row = if rel {
                let dst = self.scratch()?;
                let mut operation = self.plain::<TempByAl>(Set::ACTIVE);
                operation.number = [temp, channel as u8];
                operation.channels[0].dst = dst;
                self.push(operation);
                dst
            } else {
                self.row(usize::from(temp) * 4 + channel as usize)
            };
        }
        Some(rows)
    }

    /// Lowers a TEXKILL. Returns `false` if the reference interpreter has to execute the TEXKILL.
    pub(super) fn kill(&mut self, inst: &Inst, tex: &Tex) -> bool {
        let Some(rows) = self.source_rows::<4>(tex.src()) else { return false };
        for (channel, row) in rows.into_iter().enumerate() {
            let set = match inst.common.predicate(channel) {
                None => Set::ACTIVE,
                Some((bit, inverted)) => {
                    let set = Set(2 + channel as u8);
                    let operation = self.plain::<Predicated>(set);
                    self.push(Operation { number: [bit as u8, Set::ACTIVE.0], inverted, ..operation });
                    set
                }
            };
            let mut operation = self.plain::<Killed>(set);
            operation.channels[0].src[0] = row;
            self.push(operation);
        }
        true
    }
}

/// Returns the destination row of each component of the texels. Returns `None` if a destination has a predicate or
/// depends on aL, or if a component has several destinations.
fn by_component(dst: &[Option<Written>; 4]) -> Option<[Option<Place>; 4]> {
    let mut rows = [None; 4];
    for written in dst.iter().flatten() {
        let Written { place, by_al: None, component, predicate: None } = *written else { return None };
        rows.get_mut(component)?.replace(place).is_none().then_some(())?;
    }
    Some(rows)
}
