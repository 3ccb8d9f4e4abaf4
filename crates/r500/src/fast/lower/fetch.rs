//! Texture fetches whose texture and registers are known before the launch: operations like those of arithmetic.
//!
//! Left to the reference interpreter: relative addresses, textures that are not bound or of a shape that the machine does
//! not have, the surfaces of the CTM model, TEXKILL.

use std::sync::Arc;

use reconverge_simt::texture::rows::Plan;
use reconverge_simt::texture::{Image, Sampler, Shape};

use super::super::fetch::Fetched;
use super::super::lanes::{Operation, Place, Set};
use super::Lowering;
use crate::inst::{Inst, Tex};
use crate::words::{TexOp, TexSwiz};

/// A fetch with all that does not change in a launch.
#[derive(Clone, Debug)]
pub(in crate::fast) struct Fetch {
    pub(in crate::fast) op: TexOp,
    pub(in crate::fast) image: Arc<Image>,
    pub(in crate::fast) plan: Plan,
    pub(in crate::fast) sampler: Sampler,
    /// S, T, R, Q.
    pub(in crate::fast) src: [Place; 4],
    /// S, T, R of the derivatives by x and y, for DXDY.
    pub(in crate::fast) derivatives: [[Place; 3]; 2],
    /// By channel, what is written.
    pub(in crate::fast) dst: [Option<Written>; 4],
    /// Uncovered lanes fetch nothing.
    pub(in crate::fast) ignore_uncovered: bool,
}

/// A channel of the result.
#[derive(Clone, Copy, Debug)]
pub(in crate::fast) struct Written {
    pub(in crate::fast) place: Place,
    pub(in crate::fast) component: usize,
    /// The predicate bit, and whether it is inverted.
    pub(in crate::fast) predicate: Option<(usize, bool)>,
}

impl Lowering<'_> {
    /// Lowers a texture fetch; `false` when the reference interpreter has to execute it.
    pub(super) fn fetch(&mut self, inst: &Inst, tex: &Tex) -> bool {
        let Some(fetch) = self.fetch_of(inst, tex) else { return false };
        let Ok(number) = u16::try_from(self.lowered.fetches.len()) else { return false };
        self.lowered.fetches.push(fetch);
        let set = if inst.common.write_inactive { Set::ALL } else { Set::ACTIVE };
        let operation = self.plain::<Fetched>(set);
        self.push(Operation { number: number.to_le_bytes(), ..operation });
        true
    }

    fn fetch_of(&self, inst: &Inst, tex: &Tex) -> Option<Fetch> {
        let op = tex.inst.inst;
        match op {
            TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD | TexOp::DXDY => {}
            TexOp::NOP | TexOp::TEXKILL => return None,
        }
        // The last of several under one number is bound.
        let (_, texture) = self.textures.iter().rev().find(|(unit, _)| *unit == tex.inst.tex_id)?;
        let shape = texture.image.shape();
        let cube = shape == Shape::Cube;
        let array = matches!(shape, Shape::D1Array | Shape::D2Array | Shape::CubeArray);
        if array || cube && op == TexOp::DXDY {
            return None;
        }
        let allocated = |temp: u8, rel: bool| !rel && (!self.strict || temp <= self.setup.pix_size);
        let row = |temp: u8, channel: TexSwiz| self.row(usize::from(temp) * 4 + channel as usize);
        let (addr, dxdy) = (&tex.addr, &tex.dxdy);
        let derivatives = match op {
            TexOp::DXDY => {
                let known =
                    allocated(dxdy.dx_addr, dxdy.dx_addr_rel) && allocated(dxdy.dy_addr, dxdy.dy_addr_rel);
                known.then_some([
                    [dxdy.dx_s_swiz, dxdy.dx_t_swiz, dxdy.dx_r_swiz].map(|swiz| row(dxdy.dx_addr, swiz)),
                    [dxdy.dy_s_swiz, dxdy.dy_t_swiz, dxdy.dy_r_swiz].map(|swiz| row(dxdy.dy_addr, swiz)),
                ])?
            }
            _ => [[Place::FIRST; 3]; 2],
        };
        if !allocated(addr.src_addr, addr.src_addr_rel) || !allocated(addr.dst_addr, addr.dst_addr_rel) {
            return None;
        }
        let src = [addr.src_s_swiz, addr.src_t_swiz, addr.src_r_swiz, addr.src_q_swiz];
        let components = [addr.dst_r_swiz, addr.dst_g_swiz, addr.dst_b_swiz, addr.dst_a_swiz];
        let dst = [0, 1, 2, 3].map(|channel| {
            inst.common.writes_temp(channel).then(|| Written {
                place: self.row(usize::from(addr.dst_addr) * 4 + channel),
                component: components[channel] as usize,
                predicate: inst.common.predicate(channel),
            })
        });
        let unnormalised = tex.inst.unscaled || texture.sampler.unnormalised;
        let sampler = Sampler { unnormalised, ..texture.sampler };
        Some(Fetch {
            op,
            image: texture.image.clone(),
            plan: Plan::new(&texture.image, &sampler),
            sampler,
            src: src.map(|swiz| row(addr.src_addr, swiz)),
            derivatives,
            dst,
            ignore_uncovered: tex.inst.ignore_uncovered,
        })
    }
}
