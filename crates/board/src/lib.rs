//! The emulated boards. Each board has a chip, and a PCI id by which a driver recognizes the board.
//!
//! This crate contains no emulation. Two parts of the project use the crate: the command line and the driver library.
//! The command line starts a program on a board, and this program loads the driver library. Only the driver library
//! contains the emulation. The command line and the driver library also use [`mod@patch`], [`errata`] and [`screen`].

#![forbid(unsafe_code)]

pub mod driver_fixes;
pub mod errata;
mod ids;
pub mod patch;
pub mod screen;

use reconverge_isa::Isa;

/// An emulated board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// The product name.
    pub name: &'static str,
    /// The PCI device id.
    pub pci: u16,
    /// The name of the chip in lower case, as in the table of chips of the emulated machine.
    pub chip: &'static str,
    /// The kernel driver and the Mesa driver for the board.
    pub driver: Driver,
}

/// The drivers of a board: a kernel driver and a Mesa driver. The kernel driver has a device node, which this project
/// emulates. The Mesa driver creates the command streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The kernel's `radeon` and Mesa's `r300`.
    R300,
    /// The kernel's `radeon` and Mesa's `r600`.
    R600,
    /// The kernel's `nouveau` and Mesa's `nv50`.
    Nv50,
}

impl Driver {
    /// Returns the name of the kernel driver that `DRM_IOCTL_VERSION` reports.
    pub const fn kernel(self) -> &'static str {
        match self {
            Driver::R300 | Driver::R600 => "radeon",
            Driver::Nv50 => "nouveau",
        }
    }

    /// Returns the machine that executes the driver's programs.
    pub const fn isa(self) -> Isa {
        match self {
            Driver::R300 => Isa::R500,
            Driver::R600 => Isa::R700,
            Driver::Nv50 => Isa::Tesla,
        }
    }

    /// Returns the PCI id of the vendor of these boards.
    pub const fn vendor(self) -> u16 {
        match self {
            // Advanced Micro Devices, formerly ATI.
            Driver::R300 | Driver::R600 => 0x1002,
            // NVIDIA.
            Driver::Nv50 => 0x10de,
        }
    }

    /// Returns the file name of Mesa's driver.
    pub const fn mesa(self) -> &'static str {
        match self {
            Driver::R300 => "r300_dri.so",
            Driver::R600 => "r600_dri.so",
            Driver::Nv50 => "nouveau_dri.so",
        }
    }
}

#[rustfmt::skip]
const fn board(chip: &'static str, pci: u16, driver: Driver, name: &'static str) -> Board {
    Board { name, pci, chip, driver }
}

/// One board for each chip.
///
/// The ids and their chips are from Mesa, `include/pci_ids/r300_pci_ids.h` and `r600_pci_ids.h`. The product names are
/// from the PCI ID repository, `pci.ids`, vendors 1002 and 10de. If the repository lists several products for an id,
/// this table has only one of these products.
#[rustfmt::skip]
pub const BOARDS: &[Board] = &[
    //     chip     id      driver        product
    board("rv515", 0x7140, Driver::R300, "Radeon X1300"),
    board("r520",  0x7100, Driver::R300, "Radeon X1800 XT"),
    board("rv530", 0x71c0, Driver::R300, "Radeon X1600 XT"),
    board("r580",  0x7249, Driver::R300, "Radeon X1900 XT"),
    board("rv560", 0x7291, Driver::R300, "Radeon X1650 XT"),
    board("rv570", 0x7280, Driver::R300, "Radeon X1950 PRO"),
    board("rv770", 0x9440, Driver::R600, "Radeon HD 4870"),
    board("rv740", 0x94b3, Driver::R600, "Radeon HD 4770"),
    board("rv730", 0x9490, Driver::R600, "Radeon HD 4670"),
    board("rv710", 0x9540, Driver::R600, "Radeon HD 4550"),
    board("r600",  0x9400, Driver::R600, "Radeon HD 2900 XT"),
    board("rv670", 0x9501, Driver::R600, "Radeon HD 3870"),
    board("rv630", 0x9588, Driver::R600, "Radeon HD 2600 XT"),
    board("rv635", 0x9598, Driver::R600, "Radeon HD 3650"),
    board("rv610", 0x94c1, Driver::R600, "Radeon HD 2400 XT"),
    board("rv620", 0x95c0, Driver::R600, "Radeon HD 3470"),
    board("rs780", 0x9610, Driver::R600, "Radeon HD 3200"),
    board("rs880", 0x9710, Driver::R600, "Radeon HD 4200"),
    board("g80",   0x0191, Driver::Nv50, "GeForce 8800 GTX"),
    board("g84",   0x0400, Driver::Nv50, "GeForce 8600 GTS"),
    board("gt200", 0x05e1, Driver::Nv50, "GeForce GTX 280"),
    board("gt215", 0x0ca3, Driver::Nv50, "GeForce GT 240"),
    board("g86",   0x0421, Driver::Nv50, "GeForce 8500 GT"),
    board("g92",   0x0611, Driver::Nv50, "GeForce 8800 GT"),
    board("g94",   0x0622, Driver::Nv50, "GeForce 9600 GT"),
    board("g96",   0x0640, Driver::Nv50, "GeForce 9500 GT"),
    board("g98",   0x06e4, Driver::Nv50, "GeForce 8400 GS"),
    board("gt216", 0x0a20, Driver::Nv50, "GeForce GT 220"),
    board("gt218", 0x0a65, Driver::Nv50, "GeForce 210"),
    board("mcp77", 0x0849, Driver::Nv50, "GeForce 8200"),
    board("mcp79", 0x0861, Driver::Nv50, "GeForce 9400"),
    board("mcp89", 0x08a0, Driver::Nv50, "GeForce 320M"),
];

/// The numbers by which NVIDIA's chips identify themselves. (envytools, `chipsets`)
#[rustfmt::skip]
const CHIPSETS: &[(&str, u16)] = &[
    ("g80", 0x50), ("g84", 0x84), ("g86", 0x86), ("g92", 0x92), ("g94", 0x94), ("g96", 0x96), ("g98", 0x98), ("gt200", 0xa0),
    ("gt215", 0xa3), ("gt216", 0xa5), ("gt218", 0xa8), ("mcp77", 0xaa), ("mcp79", 0xac), ("mcp89", 0xaf),
];

impl Board {
    /// Returns the identification number of the chip. Returns `None` if the vendor of the chip does not assign numbers
    /// to chips.
    pub fn chipset(&self) -> Option<u16> {
        CHIPSETS.iter().find(|(chip, _)| *chip == self.chip).map(|(_, number)| *number)
    }

    /// Returns the PCI ids of all boards with this board's chip. For NVIDIA's chips, returns only the id of this board.
    pub fn ids(&self) -> &[u16] {
        let found = ids::IDS.iter().find(|(chip, _)| *chip == self.chip);
        found.map_or(std::slice::from_ref(&self.pci), |(_, ids)| ids)
    }

    /// Returns the board whose chip has this PCI id.
    ///
    /// ```
    /// use reconverge_board::Board;
    /// assert_eq!(Board::of_id(0x9460).map(|board| board.chip), Some("rv770"));
    /// assert_eq!(Board::of_id(0x68f9), None);
    /// ```
    pub fn of_id(id: u16) -> Option<&'static Board> {
        BOARDS.iter().find(|board| board.ids().contains(&id))
    }

    /// Returns the board whose chip has this identification number.
    ///
    /// ```
    /// use reconverge_board::Board;
    /// assert_eq!(Board::of_chipset(0xac).map(|board| board.chip), Some("mcp79"));
    /// ```
    pub fn of_chipset(number: u16) -> Option<&'static Board> {
        BOARDS.iter().find(|board| board.chipset() == Some(number))
    }

    /// Returns the prefix of the renderer name that Mesa's driver reports for this board.
    pub fn renderer(&self) -> String {
        match self.chipset() {
            Some(number) => format!("NV{number:02X}"),
            None => {
                let maker = if self.driver == Driver::R300 { "ATI" } else { "AMD" };
                format!("{maker} {}", self.chip.to_ascii_uppercase())
            }
        }
    }

    /// Returns the board that a text names. The text is a chip's name or number, a product name, or a PCI id in
    /// hexadecimal digits, with or without `0x`. Case is ignored.
    ///
    /// ```
    /// use reconverge_board::Board;
    /// assert_eq!(Board::named("RV770").map(|board| board.pci), Some(0x9440));
    /// assert_eq!(Board::named("0x9440"), Board::named("Radeon HD 4870"));
    /// assert_eq!(Board::named("9442"), Board::named("Radeon HD 4870"));
    /// assert_eq!(Board::named("NVA3").map(|board| board.chip), Some("gt215"));
    /// assert_eq!(Board::named("R300"), None);
    /// ```
    pub fn named(name: &str) -> Option<&'static Board> {
        let digits = name.strip_prefix("0x").unwrap_or(name);
        let id = u16::from_str_radix(digits, 16).ok();
        let numbered = name.get(..2).filter(|start| start.eq_ignore_ascii_case("nv")).map(|_| &name[2..]);
        let number = numbered.map_or(id, |digits| u16::from_str_radix(digits, 16).ok());
        BOARDS.iter().find(|board| {
            board.chip.eq_ignore_ascii_case(name)
                || board.name.eq_ignore_ascii_case(name)
                || id.is_some_and(|id| board.ids().contains(&id))
                || number.is_some() && board.chipset() == number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_is_found_by_chip_product_and_id() {
        for board in BOARDS {
            for name in [board.chip, board.name, &format!("{:04x}", board.pci), &format!("0x{:X}", board.pci)]
            {
                assert_eq!(Board::named(name), Some(board), "{name}");
            }
        }
    }

    #[test]
    fn an_id_is_of_one_chip() {
        let mut all: Vec<u16> = BOARDS.iter().flat_map(|board| board.ids()).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), count), (241, all.len()));
        assert!(BOARDS.iter().all(|board| board.ids().contains(&board.pci)));
    }

    #[test]
    fn chips_with_numbers_are_found_by_them() {
        for (number, chip) in [
            ("50", "g80"),
            ("NV84", "g84"),
            ("0xa0", "gt200"),
            ("nva3", "gt215"),
            ("NV96", "g96"),
            ("af", "mcp89"),
        ] {
            assert_eq!(Board::named(number).map(|board| board.chip), Some(chip), "{number}");
        }
    }

    #[test]
    fn nothing_else_is_a_board() {
        for name in ["", "0x", "gt300", "r300", "rv77", "94401", "-9440", "ffff"] {
            assert_eq!(Board::named(name), None, "{name}");
        }
    }
}
