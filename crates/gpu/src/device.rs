//! Creates the chips of boards.

use reconverge_board::driver_fixes::DriverFixes;
use reconverge_board::errata::Errata;
use reconverge_board::{Board, Driver};
use reconverge_r500::chip::Chip as R500Chip;
use reconverge_r700::chip::Chip;
use reconverge_tesla::inst::Chip as TeslaChip;

use crate::Gpu;
use crate::nv50::Nv50;
use crate::r300::R300;
use crate::r600::R600;

/// Returns the chip of a board, in its state after a reset. Returns `None` if the name of the board's chip is unknown.
///
/// ```
/// use reconverge_board::BOARDS;
/// assert!(BOARDS.iter().all(|board| reconverge_gpu::device::chip(board).is_some()));
/// ```
pub fn chip(board: &Board) -> Option<Box<dyn Gpu>> {
    chip_with(board, Errata::default(), None)
}

/// Returns the chip of a board, in its state after a reset. `errata` selects the errata of the chip. `fixes` selects
/// the driver whose faults the chip handles. Returns `None` if the name of the board's chip is unknown.
pub fn chip_with(board: &Board, errata: Errata, fixes: Option<DriverFixes>) -> Option<Box<dyn Gpu>> {
    match board.driver {
        Driver::R300 => Some(Box::new(R300::new(R500Chip::named(board.chip)?).with_errata(errata))),
        Driver::R600 => Some(Box::new(R600::new(Chip::named(board.chip)?).with_errata(errata))),
        Driver::Nv50 => {
            let chip = Nv50::new(TeslaChip::from_name(board.chip)?).with_errata(errata);
            Some(Box::new(chip.with_driver_fixes(fixes == Some(DriverFixes::Nv50Compute))))
        }
    }
}
