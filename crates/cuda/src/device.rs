//! The device: its names, its attributes, and what a multiprocessor holds.
//!
//! Figures of compute capabilities 1.0 to 1.3 are those of appendix G.1 of the CUDA C Programming Guide 3.1 to 4.2.
//! Numbers of multiprocessors, clocks and memory are those of one board for each chip.

use std::ffi::{c_char, c_int, c_uint};

use reconverge_tesla::inst::Chip;

use crate::call::{give, give_text, text};
use crate::driver::driver;
use crate::status::{CallResult, CudaError};

/// A board with one of the chips.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) chip: Chip,
    name: &'static str,
    /// Minor number of the compute capability; the major number is 1.
    pub(crate) minor: u32,
    pci_id: u32,
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

/// The last attribute that CUDA 13.5 has.
const LAST_ATTRIBUTE: c_int = 161;
/// Threads of a block, at most.
pub(crate) const MOST_THREADS: u32 = 512;
/// Threads of a block in x, y and z, at most.
pub(crate) const MOST_BLOCK: [u32; 3] = [512, 512, 64];
/// Blocks of a grid in x, y and z, at most.
pub(crate) const MOST_GRID: [u32; 3] = [65535, 65535, 1];
/// Bytes of shared memory.
pub(crate) const SHARED: u32 = 16384;
/// Bytes of constant memory.
const CONSTANT: u32 = 65536;
/// Threads of a warp.
const WARP: u32 = 32;
/// Blocks of a multiprocessor, at most.
const MOST_BLOCKS: u32 = 8;
/// Bytes between rows, at most.
pub(crate) const MOST_PITCH: u64 = 0x7fff_ffff;
/// The step in which shared memory is allocated, in bytes. (CUDA C Programming Guide 4.2, 4.2)
const SHARED_STEP: u32 = 512;

impl Board {
    /// The board with a chip.
    pub(crate) fn of(chip: Chip) -> &'static Board {
        BOARDS.iter().find(|board| board.chip == chip).unwrap_or(&BOARDS[3])
    }

    /// Registers of a multiprocessor, and the step in which a block gets them.
    fn registers(&self) -> (u32, u32) {
        if self.minor < 2 { (8192, 256) } else { (16384, 512) }
    }

    /// Warps of a multiprocessor, at most.
    fn most_warps(&self) -> u32 {
        if self.minor < 2 { 24 } else { 32 }
    }

    /// Whether kernels can access memory of the host. (CUDA C Programming Guide 3.1, 3.2.5.3)
    pub(crate) fn maps_host_memory(&self) -> bool {
        self.minor >= 2 || self.integrated
    }

    /// Returns the number of registers of a block, which gets them for an even number of warps and in steps.
    fn registers_of_block(&self, threads: u32, registers: u32) -> u32 {
        let warps = threads.div_ceil(WARP).next_multiple_of(2);
        (warps * WARP * registers).next_multiple_of(self.registers().1)
    }

    /// Whether a multiprocessor has the registers of a block.
    pub(crate) fn has_registers(&self, threads: u32, registers: u32) -> bool {
        self.registers_of_block(threads, registers) <= self.registers().0
    }

    /// Returns the maximum number of threads of a block, if each thread has `registers`.
    pub(crate) fn most_threads(&self, registers: u32) -> u32 {
        let fits = |warps: &u32| self.has_registers(warps * WARP, registers);
        (1..=MOST_THREADS / WARP).rev().find(fits).unwrap_or(0) * WARP
    }

    /// Returns the number of blocks of a kernel that a multiprocessor holds at a time. (CUDA C Programming Guide 4.2, 4.2 and G.1)
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

    /// An attribute by its number in `CUdevice_attribute`; `None` if no attribute has it. Features of later chips are 0.
    fn attribute(&self, number: c_int) -> Option<u32> {
        let (registers, _) = self.registers();
        Some(match number {
            1 => MOST_THREADS,
            2..=4 => MOST_BLOCK[number as usize - 2],
            5..=7 => MOST_GRID[number as usize - 5],
            // Shared memory: per block, per multiprocessor, and per block on request.
            8 | 81 | 97 => SHARED,
            9 => CONSTANT,
            10 => WARP,
            11 => MOST_PITCH as u32,
            // Registers of a block and of a multiprocessor.
            12 | 82 => registers,
            13 => self.clock,
            // Alignment of textures and of surfaces.
            14 | 30 => 256,
            // Copies during kernels; copy engines.
            15 | 40 => u32::from(self.minor >= 1),
            16 => self.multiprocessors,
            18 => u32::from(self.integrated),
            19 => u32::from(self.maps_host_memory()),
            // Textures: 1D, 2D, 3D, layers.
            21 | 27 | 28 | 42 => 8192,
            22 => 65536,
            23 => 32768,
            24..=26 => 2048,
            29 | 43 => 512,
            33 => 1,
            36 => self.memory_clock,
            37 => self.bus,
            39 => self.most_warps() * WARP,
            // Alignment of rows of textures.
            51 => 32,
            // Textures in linear memory: 1D, then 2D with its rows.
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

/// Checks that a device is the only one there is.
pub(crate) fn check(device: c_int) -> CallResult {
    driver()?;
    if device == 0 { Ok(()) } else { Err(CudaError::INVALID_DEVICE) }
}

fn board(device: c_int) -> Result<&'static Board, CudaError> {
    check(device)?;
    Ok(driver()?.board)
}

/// `cuDeviceGet`
pub(crate) unsafe fn get(device: *mut c_int, ordinal: c_int) -> CallResult {
    driver()?;
    if device.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    check(ordinal)?;
    // SAFETY: the caller's pointer.
    unsafe { give(device, 0) }
}

/// `cuDeviceGetCount`
pub(crate) unsafe fn count(count: *mut c_int) -> CallResult {
    driver()?;
    // SAFETY: the caller's pointer.
    unsafe { give(count, 1) }
}

/// `cuDeviceGetName`
pub(crate) unsafe fn name(name: *mut c_char, room: c_int, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller's buffer.
    unsafe { give_text(name, room, board.name) }
}

/// The identifier of the device: the project's name and the PCI id.
const fn uuid(pci_id: u32) -> [u8; 16] {
    let id = pci_id.to_be_bytes();
    [
        b'R',
        b'e',
        b'c',
        b'o',
        b'n',
        b'v',
        0x40 | b'e' & 0xf,
        b'r',
        0x80 | b'g' & 0x3f,
        b'e',
        0,
        0,
        id[0],
        id[1],
        id[2],
        id[3],
    ]
}

/// `cuDeviceGetUuid`
pub(crate) unsafe fn get_uuid(to: *mut [u8; 16], device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(to, uuid(board.pci_id)) }
}

/// `cuDeviceGetLuid`: only on Windows.
pub(crate) unsafe fn get_luid(_luid: *mut c_char, _mask: *mut c_uint, device: c_int) -> CallResult {
    check(device)?;
    Err(CudaError::NOT_SUPPORTED)
}

/// `cuDeviceTotalMem`
pub(crate) unsafe fn total_memory(bytes: *mut usize, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(bytes, board.memory as usize) }
}

/// `cuDeviceTotalMem` of CUDA 3.1 and before.
pub(crate) unsafe fn total_memory_32(bytes: *mut u32, device: c_int) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(bytes, board.memory as u32) }
}

/// `cuDeviceGetAttribute`
pub(crate) unsafe fn get_attribute(value: *mut c_int, attribute: c_int, device: c_int) -> CallResult {
    driver()?;
    let found = driver()?.board.attribute(attribute).ok_or(CudaError::INVALID_VALUE)?;
    if value.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    check(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(value, found as c_int) }
}

/// `cuDeviceComputeCapability`
pub(crate) unsafe fn compute_capability(major: *mut c_int, minor: *mut c_int, device: c_int) -> CallResult {
    let board = board(device)?;
    if major.is_null() || minor.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller's pointers.
    unsafe {
        give(major, 1)?;
        give(minor, board.minor as c_int)
    }
}

/// `CUdevprop`
#[repr(C)]
pub(crate) struct Properties {
    most_threads: c_int,
    most_block: [c_int; 3],
    most_grid: [c_int; 3],
    shared: c_int,
    constant: c_int,
    warp: c_int,
    most_pitch: c_int,
    registers: c_int,
    clock: c_int,
    texture_alignment: c_int,
}

/// `cuDeviceGetProperties`
pub(crate) unsafe fn properties(properties: *mut Properties, device: c_int) -> CallResult {
    let board = board(device)?;
    let attribute = |number| board.attribute(number).unwrap_or(0) as c_int;
    let found = Properties {
        most_threads: attribute(1),
        most_block: [attribute(2), attribute(3), attribute(4)],
        most_grid: [attribute(5), attribute(6), attribute(7)],
        shared: attribute(8),
        constant: attribute(9),
        warp: attribute(10),
        most_pitch: attribute(11),
        registers: attribute(12),
        clock: attribute(13),
        texture_alignment: attribute(14),
    };
    // SAFETY: the caller's pointer.
    unsafe { give(properties, found) }
}

/// The place of the device on the bus.
const BUS_ID: &str = "0000:01:00.0";

/// `cuDeviceGetPCIBusId`
pub(crate) unsafe fn bus_id(to: *mut c_char, room: c_int, device: c_int) -> CallResult {
    check(device)?;
    // SAFETY: the caller's buffer.
    unsafe { give_text(to, room, BUS_ID) }
}

/// `cuDeviceGetByPCIBusId`: domain and function may be absent.
pub(crate) unsafe fn by_bus_id(device: *mut c_int, id: *const c_char) -> CallResult {
    driver()?;
    // SAFETY: the caller's text.
    let id = unsafe { text(id) }.map_err(|_| CudaError::INVALID_VALUE)?;
    let forms = [BUS_ID, &BUS_ID[..10], &BUS_ID[5..], &BUS_ID[5..10]];
    if device.is_null() || !id.contains(':') {
        return Err(CudaError::INVALID_VALUE);
    }
    let found = forms.iter().any(|form| form.eq_ignore_ascii_case(id));
    if !found {
        return Err(CudaError::INVALID_DEVICE);
    }
    // SAFETY: the caller's pointer.
    unsafe { give(device, 0) }
}

/// `cuDeviceCanAccessPeer`
pub(crate) unsafe fn can_access_peer(can: *mut c_int, device: c_int, peer: c_int) -> CallResult {
    check(device)?;
    check(peer)?;
    // SAFETY: the caller's pointer.
    unsafe { give(can, 0) }
}

/// `cuDeviceGetP2PAttribute`: there is no second device.
pub(crate) unsafe fn peer_attribute(
    value: *mut c_int,
    _attribute: c_int,
    from: c_int,
    to: c_int,
) -> CallResult {
    check(from)?;
    check(to)?;
    if value.is_null() { Err(CudaError::INVALID_VALUE) } else { Err(CudaError::INVALID_DEVICE) }
}

/// `cuDeviceGetExecAffinitySupport`
pub(crate) unsafe fn exec_affinity(supported: *mut c_int, _kind: c_int, device: c_int) -> CallResult {
    check(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(supported, 0) }
}

/// `cuDeviceGetTexture1DLinearMaxWidth`
pub(crate) unsafe fn linear_width(
    width: *mut usize,
    _format: c_int,
    _channels: c_uint,
    device: c_int,
) -> CallResult {
    let board = board(device)?;
    // SAFETY: the caller's pointer.
    unsafe { give(width, board.attribute(69).unwrap_or(0) as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CUDA C Programming Guide 4.2, table F-2.
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

    /// The figures of NVIDIA's occupancy calculator for these kernels.
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
