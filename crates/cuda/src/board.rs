//! The boards: their names, their attributes, and the resources of a multiprocessor.
//!
//! The values of compute capabilities 1.0 to 1.3 are from the CUDA C Programming Guide 3.1 to 4.2, appendix G.1. The
//! number of multiprocessors, the clocks and the memory size belong to one board with the chip.

use std::ffi::c_int;

use reconverge_tesla::inst::Chip;

/// A graphics board. Each board has one chip.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) chip: Chip,
    pub(crate) name: &'static str,
    /// Minor number of the compute capability. The major number is 1.
    pub(crate) minor: u32,
    pub(crate) pci_id: u32,
    multiprocessors: u32,
    /// Clock of the multiprocessors in kHz.
    clock: u32,
    /// Clock of the memory in kHz.
    memory_clock: u32,
    /// Width of the memory bus in bits.
    bus: u32,
    /// Size of the memory in bytes.
    pub(crate) memory: u64,
    integrated: bool,
}

#[rustfmt::skip]
static BOARDS: [Board; 5] = [
    Board { chip: Chip::G80, name: "GeForce 8800 GTX", minor: 0, pci_id: 0x191, multiprocessors: 16, clock: 1_350_000,
            memory_clock: 900_000, bus: 384, memory: 768 << 20, integrated: false },
    Board { chip: Chip::G84, name: "GeForce 8600 GTS", minor: 1, pci_id: 0x400, multiprocessors: 4, clock: 1_450_000,
            memory_clock: 1_000_000, bus: 128, memory: 256 << 20, integrated: false },
    Board { chip: Chip::Mcp77, name: "GeForce 8200", minor: 2, pci_id: 0x849, multiprocessors: 1, clock: 1_200_000,
            memory_clock: 400_000, bus: 64, memory: 256 << 20, integrated: true },
    Board { chip: Chip::Gt215, name: "GeForce GT 240", minor: 2, pci_id: 0xca3, multiprocessors: 12, clock: 1_340_000,
            memory_clock: 1_700_000, bus: 128, memory: 1 << 30, integrated: false },
    Board { chip: Chip::G200, name: "GeForce GTX 280", minor: 3, pci_id: 0x5e1, multiprocessors: 30, clock: 1_296_000,
            memory_clock: 1_107_000, bus: 512, memory: 1 << 30, integrated: false },
];

/// The largest number of a device attribute in CUDA 13.5.
const LAST_ATTRIBUTE: c_int = 161;
/// Maximum number of threads per block.
pub(crate) const MOST_THREADS: u32 = 512;
/// Maximum number of threads per block in x, y and z.
pub(crate) const MOST_BLOCK: [u32; 3] = [512, 512, 64];
/// Maximum number of blocks per grid in x, y and z.
pub(crate) const MOST_GRID: [u32; 3] = [65535, 65535, 1];
/// Size of the shared memory of a multiprocessor in bytes.
pub(crate) const SHARED: u32 = 16384;
/// Size of the constant memory in bytes.
const CONSTANT: u32 = 65536;
/// Number of threads per warp.
pub(crate) const WARP: u32 = 32;
/// Maximum number of blocks that a multiprocessor holds at a time.
const MOST_BLOCKS: u32 = 8;
/// Maximum distance between the starts of two consecutive rows, in bytes.
pub(crate) const MOST_PITCH: u64 = 0x7fff_ffff;
/// Shared memory is allocated in multiples of this number of bytes. (CUDA C Programming Guide 4.2, 4.2)
const SHARED_STEP: u32 = 512;

impl Board {
    /// Returns the board with a chip.
    pub(crate) fn of(chip: Chip) -> &'static Board {
        BOARDS.iter().find(|board| board.chip == chip).unwrap_or(&BOARDS[3])
    }

    /// Returns the number of registers of a multiprocessor, and the allocation unit of registers. The number of
    /// registers that are allocated for a block is a multiple of the allocation unit.
    fn registers(&self) -> (u32, u32) {
        if self.minor < 2 { (8192, 256) } else { (16384, 512) }
    }

    /// Maximum number of warps that a multiprocessor holds at a time.
    fn most_warps(&self) -> u32 {
        if self.minor < 2 { 24 } else { 32 }
    }

    /// Whether kernels can access memory of the host. (CUDA C Programming Guide 3.1, 3.2.5.3)
    pub(crate) fn maps_host_memory(&self) -> bool {
        self.minor >= 2 || self.integrated
    }

    /// Returns the number of registers that are allocated for a block. The number of warps is rounded up to an even
    /// number. The number of registers is rounded up to a multiple of the allocation unit.
    fn registers_of_block(&self, threads: u32, registers: u32) -> u32 {
        let warps = threads.div_ceil(WARP).next_multiple_of(2);
        (warps * WARP * registers).next_multiple_of(self.registers().1)
    }

    /// Whether a multiprocessor has enough registers for a block.
    pub(crate) fn has_registers(&self, threads: u32, registers: u32) -> bool {
        self.registers_of_block(threads, registers) <= self.registers().0
    }

    /// Returns the maximum number of threads per block if each thread uses `registers` registers.
    pub(crate) fn most_threads(&self, registers: u32) -> u32 {
        let fits = |warps: &u32| self.has_registers(warps * WARP, registers);
        (1..=MOST_THREADS / WARP).rev().find(fits).unwrap_or(0) * WARP
    }

    /// Returns how many blocks of a kernel a multiprocessor holds at a time. (CUDA C Programming Guide 4.2, 4.2 and
    /// G.1)
    pub(crate) fn resident_blocks(&self, threads: u32, registers: u32, shared: u64) -> u32 {
        if threads == 0 || threads > MOST_THREADS || shared > u64::from(SHARED) {
            return 0;
        }
        let by_warps = self.most_warps() / threads.div_ceil(WARP);
        let by_registers = self
            .registers()
            .0
            .checked_div(self.registers_of_block(threads, registers))
            .unwrap_or(MOST_BLOCKS);
        let shared = (shared as u32).next_multiple_of(SHARED_STEP);
        let by_shared = SHARED.checked_div(shared).unwrap_or(MOST_BLOCKS);
        MOST_BLOCKS.min(by_warps).min(by_registers).min(by_shared)
    }

    /// Number of multiprocessors.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Returns the attribute with a number of `CUdevice_attribute`, or `None` if the number is unassigned. Attributes
    /// for features of later chips are 0.
    pub(crate) fn attribute(&self, number: c_int) -> Option<u32> {
        let (registers, _) = self.registers();
        Some(match number {
            1 => MOST_THREADS,
            2..=4 => MOST_BLOCK[number as usize - 2],
            5..=7 => MOST_GRID[number as usize - 5],
            // Attribute 8 is the shared memory per block. Attribute 81 is the shared memory per multiprocessor.
            // Attribute 97 is the shared memory per block if the kernel requests more than the default.
            8 | 81 | 97 => SHARED,
            9 => CONSTANT,
            10 => WARP,
            11 => MOST_PITCH as u32,
            // Registers per block and per multiprocessor.
            12 | 82 => registers,
            13 => self.clock,
            // Alignment of textures and of surfaces.
            14 | 30 => 256,
            // Attribute 15 states whether copies can overlap kernels. Attribute 40 is the number of copy engines.
            15 | 40 => u32::from(self.minor >= 1),
            16 => self.multiprocessors,
            18 => u32::from(self.integrated),
            19 => u32::from(self.maps_host_memory()),
            // Maximum sizes of textures with one, two and three dimensions, and of layered textures.
            21 | 27 | 28 | 42 => 8192,
            22 => 65536,
            23 => 32768,
            24..=26 => 2048,
            29 | 43 => 512,
            33 => 1,
            36 => self.memory_clock,
            37 => self.bus,
            39 => self.most_warps() * WARP,
            // Alignment of the rows of textures.
            51 => 32,
            // Maximum sizes of textures in linear memory. Attribute 69 is the width of a texture with one dimension.
            // Attributes 70 to 72 are the width, height and pitch of a texture with two dimensions.
            69 => 1 << 27,
            70 | 71 => 65000,
            72 => 1_048_544,
            75 => 1,
            76 => self.minor,
            87 => {
                if self.minor == 3 {
                    8
                } else {
                    0
                }
            }
            99 => 1,
            106 => MOST_BLOCKS,
            131 | 134 => u32::MAX,
            139 => self.pci_id << 16 | 0x10de,
            number if (1..=LAST_ATTRIBUTE).contains(&number) => 0,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from the CUDA C Programming Guide 4.2, table F-2.
    #[test]
    fn figures_of_compute_capabilities_are_those_of_the_guide() {
        for (chip, registers, threads, minor) in [
            (Chip::G80, 8192, 768, 0),
            (Chip::G84, 8192, 768, 1),
            (Chip::Gt215, 16384, 1024, 2),
            (Chip::G200, 16384, 1024, 3),
        ] {
            let board = Board::of(chip);
            let attributes = [12, 39, 76].map(|number| board.attribute(number));
            assert_eq!(attributes, [Some(registers), Some(threads), Some(minor)], "{chip}");
        }
        assert_eq!(BOARDS[0].attribute(0), None);
        assert_eq!(BOARDS[0].attribute(5000), None);
    }

    /// NVIDIA's occupancy calculator shows the expected values for these kernels.
    #[test]
    fn a_multiprocessor_holds_as_many_blocks_as_its_warps_registers_and_shared_memory_allow() {
        let (old, new) = (Board::of(Chip::G80), Board::of(Chip::G200));
        assert_eq!((old.resident_blocks(256, 10, 0), new.resident_blocks(256, 10, 0)), (3, 4));
        assert_eq!((old.resident_blocks(256, 11, 0), new.resident_blocks(256, 16, 0)), (2, 4));
        assert_eq!((old.resident_blocks(32, 4, 16), new.resident_blocks(64, 4, 8192)), (8, 2));
        assert_eq!((old.resident_blocks(512, 17, 0), old.resident_blocks(0, 4, 0)), (0, 0));
        assert_eq!((old.most_threads(16), old.most_threads(17), old.most_threads(32)), (512, 448, 256));
    }
}
