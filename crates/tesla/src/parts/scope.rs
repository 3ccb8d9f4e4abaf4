//! The chips and stages for which rows and cases are valid. A scope has one bit per stage and one bit per chip.

use reconverge_isa::row::Scope;

use crate::inst::{Chip, Stage};

pub(super) const fn stage_bit(stage: Stage) -> u16 {
    1 << match stage {
        Stage::Vertex => 0,
        Stage::Geometry => 1,
        Stage::Fragment => 2,
        Stage::Compute => 3,
    }
}

pub(super) const fn chip_bit(chip: Chip) -> u16 {
    1 << match chip {
        Chip::G80 => 4,
        Chip::G84 => 5,
        Chip::G200 => 6,
        Chip::Mcp77 => 7,
        Chip::Gt215 => 8,
    }
}

pub(super) const STAGES: u16 = 0x00f;
pub(super) const CHIPS: u16 = 0x1f0;

/// Returns the scope of one chip and one stage.
pub const fn here(chip: Chip, stage: Stage) -> Scope {
    Scope(chip_bit(chip) | stage_bit(stage))
}

/// Returns the intersection of two scopes.
pub(crate) const fn both(one: Scope, other: Scope) -> Scope {
    Scope(one.0 & other.0)
}

pub(super) const VP: u16 = stage_bit(Stage::Vertex);
pub(super) const GP: u16 = stage_bit(Stage::Geometry);
pub(super) const FP: u16 = stage_bit(Stage::Fragment);
pub(super) const CP: u16 = stage_bit(Stage::Compute);
/// All chips and stages.
pub(crate) const ALL: Scope = Scope(CHIPS | STAGES);
/// Geometry programs.
pub(crate) const G: Scope = Scope(CHIPS | GP);
/// Fragment programs.
pub(crate) const F: Scope = Scope(CHIPS | FP);
/// Compute programs.
pub(crate) const C: Scope = Scope(CHIPS | CP);
/// Vertex and geometry programs.
pub(crate) const VG: Scope = Scope(CHIPS | VP | GP);
/// Graphics programs.
pub(crate) const VGF: Scope = Scope(CHIPS | VP | GP | FP);
/// Chips with feature sm11.
pub(crate) const SM11: Scope = Scope(CHIPS & !chip_bit(Chip::G80) | STAGES);
/// Chips with feature sm12: chip numbers from 0xa0 on.
pub(crate) const SM12: Scope = Scope(SM11.0 & !chip_bit(Chip::G84));
/// Chips with feature fp64.
pub(crate) const FP64: Scope = Scope(chip_bit(Chip::G200) | STAGES);
/// Chips with feature d3d10_1.
pub(crate) const D3D10_1: Scope = Scope(chip_bit(Chip::Gt215) | STAGES);
