//! Accuracy of each operation.

use reconverge_simt::Fidelity;
use reconverge_simt::fidelity::Report;

use crate::inst::{Alu, Body, Inst};
use crate::operations::{Unit, each_read, sources_of};
use crate::words::{InstType, Omod, RgbOp, SrcpOp, TexOp};

/// Returns the accuracy of a texture operation. The documents do not state which texel a coordinate selects, so fetches
/// have the grade "recommended".
pub const fn tex(op: TexOp) -> Fidelity {
    match op {
        TexOp::NOP | TexOp::TEXKILL => Fidelity::Specified,
        TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::LOD | TexOp::DXDY => Fidelity::Recommended,
    }
}

/// Returns the accuracy of a presubtract. The result is approximate, because the documents do not state how the
/// hardware rounds the sum.
pub const fn srcp(op: SrcpOp) -> Fidelity {
    match op {
        SrcpOp::NEG2 | SrcpOp::SUB | SrcpOp::ADD | SrcpOp::NEG => Fidelity::Approximate,
    }
}

/// Returns the accuracy of an output modifier. Scaling is approximate, because the result may overflow or underflow.
/// According to the CTM guide (p. 29), a factor of 1 changes only NaNs and denormals.
pub const fn omod(omod: Omod) -> Fidelity {
    match omod {
        Omod::DISABLED | Omod::MUL_1 => Fidelity::Specified,
        Omod::MUL_2 | Omod::MUL_4 | Omod::MUL_8 | Omod::DIV_2 | Omod::DIV_4 | Omod::DIV_8 => {
            Fidelity::Approximate
        }
    }
}

/// Returns the accuracy of a unit's result. The accuracy takes the presubtract and the output modifier of the unit into
/// account.
pub(crate) fn unit(alu: &Alu, unit: Unit) -> Fidelity {
    let mut fidelity = match unit {
        Unit::Rgb => alu.rgb.op.operation().fidelity.max(omod(alu.rgb.omod)),
        Unit::Alpha => alu.alpha.op.operation().fidelity.max(omod(alu.alpha.omod)),
    };
    each_read(alu, unit, [true; 3], &mut |sel, swiz, _| {
        if let Some((word, _, true)) = sources_of(alu, sel, swiz) {
            let op = [alu.rgb_sources.srcp_op, alu.alpha_sources.srcp_op][word];
            fidelity = fidelity.max(srcp(op));
        }
    });
    fidelity
}

/// Returns, for the RGB unit and for the alpha unit, whether an instruction writes the value that the unit computes.
pub(crate) fn computes(inst: &Inst, alu: &Alu) -> [bool; 2] {
    let common = &inst.common;
    let kept = |channel| {
        common.writes_temp(channel)
            || common.writes_output(channel)
            || (common.r#type == InstType::ALU && alu.alu_wmask && common.alu_result_channel() == channel)
            || (common.r#type == InstType::OUT && alu.w_omask && channel == 3)
    };
    let rgb = (0..3).any(kept);
    [rgb, kept(3) || (rgb && alu.rgb.op == RgbOp::SOP)]
}

/// Adds `times` issues of an instruction to a report.
pub fn count(inst: &Inst, times: u64, report: &mut Report) {
    match &inst.body {
        Body::Alu(alu) => {
            let [rgb, alpha] = computes(inst, alu);
            if rgb {
                report.count(alu.rgb.op.name(), unit(alu, Unit::Rgb), times);
            }
            if alpha {
                report.count(alu.alpha.op.name(), unit(alu, Unit::Alpha), times);
            }
            if inst.common.r#type == InstType::OUT {
                report.count("OUT", Fidelity::Specified, times);
            }
        }
        Body::Tex(texture) => report.count(texture.inst.inst.name(), tex(texture.inst.inst), times),
        Body::Fc(fc) => report.count(fc.inst.op.name(), Fidelity::Specified, times),
    }
}
