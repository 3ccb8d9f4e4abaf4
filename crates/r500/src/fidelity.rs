//! How exact each operation is.

use reconverge_simt::Fidelity;
use reconverge_simt::fidelity::Report;

use crate::inst::{Body, Inst};
use crate::words::{InstType, RgbOp, TexOp};

/// How exact a texture operation is: where a coordinate falls between texels is a recommended reading.
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
                report.count(alu.rgb.op.name(), alu.rgb.op.operation().fidelity, times);
            }
            if writes_alpha || alu.rgb.op == RgbOp::SOP {
                report.count(alu.alpha.op.name(), alu.alpha.op.operation().fidelity, times);
            }
            if inst.common.r#type == InstType::OUT {
                report.count("OUT", Fidelity::Specified, times);
            }
        }
        Body::Tex(texture) => report.count(texture.inst.inst.name(), tex(texture.inst.inst), times),
        Body::Fc(fc) => report.count(fc.inst.op.name(), Fidelity::Specified, times),
    }
}
