//! Recognizes fragment programs that only read a texel and output the texel. The driver uses such programs for blits.
//!
//! ```text
//! TEX temp[0].rgba = LD tex[0], temp[0].rgaa
//! OUT out[A].rgb = MAD src0.rgb, src0.111, src0.000 : src0=temp[0]
//!   + out[A].a = MAD src0.a, src0.1, src0.0 : src0=temp[0]
//! ```

use reconverge_r500::inst::{self, Alu, Body, Half, Inst, Source, Sources, WORDS};
use reconverge_r500::words::{
    AlphaOp, CmnInst, CodeAddr, CodeOffset, Imod, InstType, Omod, PredSel, RgbOp, Swiz, Target, TexOp,
};

/// The texel that a program reads and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TexelRead {
    pub(super) unit: u8,
    /// Temporary and channel of coordinates s and t.
    pub(super) axes: [(u8, u8); 2],
    /// Whether coordinates count texels, instead of running from 0 to 1.
    pub(super) unscaled: bool,
    /// For red, green, blue and alpha, the channel of the texel.
    pub(super) select: [u8; 4],
}

/// Returns the texel that a program outputs in target A. Returns `None` if the program does more than output a texel.
/// `first` is the slot of the first word, `code` is US_CODE_ADDR, and `offset` is US_CODE_OFFSET.
pub(super) fn texel_read(words: &[u32], first: usize, code: u32, offset: u32) -> Option<TexelRead> {
    let (code, offset) = (CodeAddr::unpack(code).ok()?, CodeOffset::unpack(offset).ok()?);
    let start = usize::from(offset.offset_addr) + usize::from(code.start_addr);
    (start == first && code.end_addr == code.start_addr + 1).then_some(())?;
    let [read, put] = words.as_chunks::<WORDS>().0.get(..2)?.as_array::<2>()?;
    let (read, put) = (inst::decode(read).ok()?, inst::decode(put).ok()?);
    let (Body::Tex(tex), Body::Alu(alu)) = (&read.body, &put.body) else { return None };
    let addr = &tex.addr;
    let whole = read.common.rgb_wmask == 7 && read.common.alpha_wmask;
    let plain = !addr.src_addr_rel && !addr.dst_addr_rel && is_unpredicated(&read.common);
    (tex.inst.inst == TexOp::LD && whole && plain).then_some(())?;
    let texel = [addr.dst_r_swiz, addr.dst_g_swiz, addr.dst_b_swiz, addr.dst_a_swiz].map(|swiz| swiz as u8);
    let channels = put_out(&put, alu, addr.dst_addr)?;
    Some(TexelRead {
        unit: tex.inst.tex_id,
        axes: [addr.src_s_swiz, addr.src_t_swiz].map(|swiz| (addr.src_addr, swiz as u8)),
        unscaled: tex.inst.unscaled,
        select: channels.map(|channel| texel[usize::from(channel)]),
    })
}

fn is_unpredicated(common: &CmnInst) -> bool {
    common.rgb_pred_sel == PredSel::NONE && common.alpha_pred_sel == PredSel::NONE
}

/// Returns the channels of the temporary `temp` that an instruction outputs in target A. Returns `None` if the
/// instruction has a different effect.
fn put_out(inst: &Inst, alu: &Alu, temp: u8) -> Option<[u8; 4]> {
    let common = &inst.common;
    let whole = common.rgb_omask == 7 && common.alpha_omask && common.r#type == InstType::OUT;
    (whole && is_unpredicated(common) && !alu.w_omask).then_some(())?;
    let (rgb, alpha) = (&alu.rgb, &alu.alpha);
    (rgb.op == RgbOp::MAD && alpha.op == AlphaOp::MAD).then_some(())?;
    let [red, green, blue] = unchanged(rgb, &alu.rgb_sources, temp, 3)?;
    let [alpha, ..] = unchanged(alpha, &alu.alpha_sources, temp, 1)?;
    Some([red, green, blue, alpha])
}

/// Returns the channels of the temporary `temp` that a MAD passes unchanged. For these channels, the MAD multiplies by
/// 1 and adds 0.
fn unchanged<Op>(half: &Half<Op>, sources: &Sources, temp: u8, count: usize) -> Option<[u8; 3]> {
    let [a, b, c] = &half.operands;
    let source = sources.src.get(a.sel as usize)?;
    let is = |swiz: &[Swiz; 3], literal: Swiz| swiz[..count].iter().all(|swiz| *swiz == literal);
    let plain = [a, b, c].iter().all(|operand| operand.modifier == Imod::NOP)
        && (half.omod, half.target) == (Omod::MUL_1, Target::A)
        && *source == (Source::Temp { addr: temp, rel: false })
        && is(&b.swiz, Swiz::ONE)
        && is(&c.swiz, Swiz::ZERO);
    plain.then_some(())?;
    let mut channels = [0; 3];
    for (channel, swiz) in channels.iter_mut().zip(&a.swiz[..count]) {
        *channel = match swiz {
            Swiz::R | Swiz::G | Swiz::B | Swiz::A => *swiz as u8,
            Swiz::ZERO | Swiz::HALF | Swiz::ONE => return None,
        };
    }
    Some(channels)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured: the program of the driver's blits, with the instructions `TEX` and `OUT`.
    #[rustfmt::skip]
    const BLIT: [u32; 12] = [
        0x0000_7807, 0x0240_0000, 0xe400_f400, 0x0000_0000, 0x0000_0000, 0x0000_0000,
        0x0007_8005, 0x0802_0000, 0x0802_0000, 0x00db_0220, 0x00c0_c000, 0x2049_0000,
    ];

    #[test]
    fn the_program_of_a_blit_puts_out_a_texel() {
        let found = texel_read(&BLIT, 0, 0x1_0000, 0);
        let expected = TexelRead { unit: 0, axes: [(0, 0), (0, 1)], unscaled: false, select: [0, 1, 2, 3] };
        assert_eq!(found, Some(expected));
        assert_eq!(texel_read(&BLIT, 4, 0x1_0000, 4), Some(expected));
    }

    #[test]
    fn other_programs_are_run() {
        assert_eq!(texel_read(&BLIT[..6], 0, 0x1_0000, 0), None, "one instruction");
        for (code, offset) in [(0x2_0000, 0), (0x1_0000, 1), (0x2_0001, 0)] {
            assert_eq!(texel_read(&BLIT, 0, code, offset), None, "another entry or end");
        }
        // If a bit of the program changes, the result changes. The exceptions are bits of timing, masks of temporaries
        // and unused sources.
        let mut same = 0;
        for bit in 0..12 * 32 {
            let mut words = BLIT;
            words[bit / 32] ^= 1 << (bit % 32);
            same += usize::from(texel_read(&words, 0, 0x1_0000, 0) == texel_read(&BLIT, 0, 0x1_0000, 0));
        }
        assert!(same < 300, "{same} of 384 bits");
    }
}
