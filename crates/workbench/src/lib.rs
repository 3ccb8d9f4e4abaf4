//! x
pub mod array;
pub mod r500;
pub mod result;
pub mod values;
use reconverge_isa::{Isa, Program};
/// x
pub fn round_trip(
    _isa: Isa,
    _chip: Option<&str>,
    _stage: Option<&str>,
    _program: &Program,
) -> Result<(), String> {
    Ok(())
}
