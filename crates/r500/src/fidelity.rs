//! How exact each operation is.

use reconverge_simt::Fidelity;
use reconverge_simt::fidelity::Report;

use crate::inst::{Body, Inst};
use crate::words::{AlphaOp, InstType, RgbOp, TexOp};

/// Moves and comparisons are documented bit for bit; what rounds follows profile R, since the rounding of the
/// hardware is not documented (about one bit an input, CTM guide p. 41); where a coordinate falls between texels
/// is a recommended reading.
pub const fn rgb(op: RgbOp) -> Fidelity {
    match op {
        RgbOp::MIN | RgbOp::MAX | RgbOp::CND | RgbOp::CMP => Fidelity::Specified,
        RgbOp::MAD | RgbOp::DP3 | RgbOp::DP4 | RgbOp::D2A | RgbOp::FRC => Fidelity::Approximate,
        RgbOp::SOP | RgbOp::MDH | RgbOp::MDV => Fidelity::Approximate,
    }
}

/// The same for the alpha unit.
pub const fn alpha(op: AlphaOp) -> Fidelity {
    match op {
        AlphaOp::MIN | AlphaOp::MAX | AlphaOp::CND | AlphaOp::CMP => Fidelity::Specified,
        AlphaOp::MAD | AlphaOp::DP | AlphaOp::FRC | AlphaOp::MDH | AlphaOp::MDV => Fidelity::Approximate,
        AlphaOp::EX2 | AlphaOp::LN2 | AlphaOp::RCP | AlphaOp::RSQ | AlphaOp::SIN | AlphaOp::COS => {
            Fidelity::Approximate
        }
    }
}

/// The same for texture operations.
pub const fn tex(op: TexOp) -> Fidelity {
    match op {
        TexOp::NOP | TexOp::TEXKILL => Fidelity::Specified,
        TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD | TexOp::DXDY => Fidelity::Recommended,
    }
}

/// Adds `times` issues of an instruction to a report.
pub fn count(inst: &Inst, times: u64, report: &mut Report) {
    match &inst.body {
        Body::Alu(alu) => {
            let writes_rgb = inst.common.rgb_wmask != 0 || inst.common.rgb_omask != 0;
            let writes_alpha = inst.common.alpha_wmask || inst.common.alpha_omask || alu.w_omask;
            if writes_rgb || alu.alu_wmask {
                report.count(alu.rgb.op.name(), rgb(alu.rgb.op), times);
            }
            if writes_alpha || alu.rgb.op == RgbOp::SOP {
                report.count(alu.alpha.op.name(), alpha(alu.alpha.op), times);
            }
            if inst.common.r#type == InstType::OUT {
                report.count("OUT", Fidelity::Specified, times);
            }
        }
        Body::Tex(texture) => report.count(texture.inst.inst.name(), tex(texture.inst.inst), times),
        Body::Fc(fc) => report.count(fc.inst.op.name(), Fidelity::Specified, times),
    }
}
