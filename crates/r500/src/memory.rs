//! The memory of the CTM model: typed linear buffers, fetches, and uncached outputs. (CTM guide pp. 4-6, 31)

use crate::cause::AccessError;
use crate::inst::SAMPLERS;
use crate::lane;
use crate::words::{CondTest, Format, Target, TexOp, Tiling};

impl Format {
    /// Returns the size of an element in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Format::UINT16_1 => 2,
            Format::UINT8_4 | Format::FLOAT32_1 => 4,
            Format::FLOAT32_2 => 8,
            Format::FLOAT32_4 => 16,
        }
    }

    /// Returns the number of channels in an element.
    pub const fn channels(self) -> usize {
        match self {
            Format::UINT16_1 | Format::FLOAT32_1 => 1,
            Format::FLOAT32_2 => 2,
            Format::UINT8_4 | Format::FLOAT32_4 => 4,
        }
    }

    /// Returns the bits of the four channels of an element. Channels that the format does not have are zero.
    #[inline(always)]
    pub(crate) fn decode(self, element: &[u8]) -> [u32; 4] {
        let mut value = [0u32; 4];
        match self {
            Format::UINT16_1 => {
                value[0] = (f32::from(u16::from_le_bytes([element[0], element[1]])) / 65535.0).to_bits();
            }
            Format::UINT8_4 => {
                for (channel, byte) in value.iter_mut().zip(element) {
                    *channel = (f32::from(*byte) / 255.0).to_bits();
                }
            }
            Format::FLOAT32_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                for (channel, word) in value.iter_mut().zip(element.as_chunks::<4>().0) {
                    *channel = u32::from_le_bytes(*word);
                }
            }
        }
        value
    }
}

impl CondTest {
    /// Returns whether the value `v` passes the test against the buffer's value `b`. If `v` or `b` is a NaN, only the
    /// test "not equal" passes.
    pub fn passes(self, v: f32, b: f32) -> bool {
        match self {
            CondTest::NEVER => false,
            CondTest::LESS => v < b,
            CondTest::LESS_EQUAL => v <= b,
            CondTest::EQUAL => v == b,
            CondTest::GREATER_EQUAL => v >= b,
            CondTest::GREATER => v > b,
            CondTest::NOT_EQUAL => v != b,
            CondTest::ALWAYS => true,
        }
    }
}

/// A typed 1D or 2D buffer in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Address of the first byte. The hardware requires a multiple of 2048.
    pub base: u32,
    /// Number of elements per row.
    pub pitch: u32,
    /// Number of rows.
    pub height: u32,
    /// Type of an element.
    pub format: Format,
    /// Layout of the elements.
    pub tiling: Tiling,
}

/// A variant of an uncached output (CTM guide p. 31). The numbers of the variants follow the order of the guide's list.
/// (r500.md Q19)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// Whether all lanes must write to the same element.
    pub same_index: bool,
    /// Whether the output acquires the texture semaphore.
    pub acquire: bool,
}

impl Scatter {
    /// Returns the variant that the RGB unit's TARGET selects.
    pub const fn from_target(target: Target) -> Scatter {
        match target {
            Target::A => Scatter { same_index: true, acquire: false },
            Target::B => Scatter { same_index: true, acquire: true },
            Target::C => Scatter { same_index: false, acquire: false },
            Target::D => Scatter { same_index: false, acquire: true },
        }
    }
}

impl Surface {
    /// Returns the byte address of an element: base + (y * pitch + x) * size. This formula is a recommended
    /// interpretation, because the guide shows the formula only in a figure.
    ///
    /// # Errors
    /// Returns an error if the layout is tiled or the position is outside the surface.
    pub fn address(&self, x: i64, y: i64) -> Result<u64, AccessError> {
        if matches!(self.tiling, Tiling::TILED | Tiling::TILED_INP_2X2) {
            return Err(AccessError::Tiled(self.tiling));
        }
        if !(0..i64::from(self.pitch)).contains(&x) || !(0..i64::from(self.height)).contains(&y) {
            return Err(AccessError::Outside { x, y, width: self.pitch, height: self.height });
        }
        let element = y as u64 * u64::from(self.pitch) + x as u64;
        Ok(u64::from(self.base) + element * u64::from(self.format.bytes()))
    }

    /// Returns the bits of the four channels of an element.
    ///
    /// # Errors
    /// Returns an [`AccessError`] if the layout is tiled or the element is outside the surface or memory.
    pub fn load(&self, memory: &[u8], x: i64, y: i64) -> Result<[u32; 4], AccessError> {
        let address = self.address(x, y)?;
        let bytes = self.format.bytes() as usize;
        let element = usize::try_from(address)
            .ok()
            .and_then(|start| memory.get(start..start.checked_add(bytes)?))
            .ok_or(AccessError::OutsideMemory { address, size: memory.len() })?;
        Ok(self.format.decode(element))
    }

    /// Writes the channels that the format has. For integer formats, clamps values to 0..1 and rounds the clamped
    /// values to the nearest integer.
    ///
    /// # Errors
    /// Returns an [`AccessError`] if the layout is tiled or the element is outside the surface or memory.
    pub fn store(&self, memory: &mut [u8], x: i64, y: i64, value: [u32; 4]) -> Result<(), AccessError> {
        let unorm = |bits: u32, max: f32| (lane::clamp(f32::from_bits(bits)) * max).round_ties_even();
        let mut bytes = [0u8; 16];
        match self.format {
            Format::UINT16_1 => {
                bytes[..2].copy_from_slice(&(unorm(value[0], 65535.0) as u16).to_le_bytes());
            }
            Format::UINT8_4 => {
                for (byte, bits) in bytes.iter_mut().zip(value) {
                    *byte = unorm(bits, 255.0) as u8;
                }
            }
            Format::FLOAT32_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                for (word, bits) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(value) {
                    *word = bits.to_le_bytes();
                }
            }
        }
        self.write(memory, x, y, &bytes[..self.format.bytes() as usize]).map(|_| ())
    }

    fn write(&self, memory: &mut [u8], x: i64, y: i64, bytes: &[u8]) -> Result<u64, AccessError> {
        let address = self.address(x, y)?;
        let size = memory.len();
        usize::try_from(address)
            .ok()
            .and_then(|start| memory.get_mut(start..start.checked_add(bytes.len())?))
            .ok_or(AccessError::OutsideMemory { address, size })?
            .copy_from_slice(bytes);
        Ok(address)
    }
}

/// The memory and the surfaces that are bound to a group.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) memory: Vec<u8>,
    pub(crate) inputs: [Option<Surface>; SAMPLERS],
    pub(crate) scatter_target: Option<Surface>,
    pub(crate) uncached: bool,
}

impl Bound {
    pub(crate) fn has_input(&self, unit: u8) -> bool {
        self.inputs[usize::from(unit)].is_some()
    }

    /// Executes an LD at unscaled coordinates. The index of an element is the floor of its coordinate. (Recommended,
    /// r500.md Q13)
    pub(crate) fn fetch(
        &self,
        unit: u8,
        position: [f32; 4],
        op: TexOp,
        unscaled: bool,
    ) -> Result<[u32; 4], AccessError> {
        if op != TexOp::LD {
            return Err(AccessError::Fetch(op.name()));
        }
        if !unscaled {
            return Err(AccessError::Fetch("a scaled LD"));
        }
        let Some(surface) = &self.inputs[usize::from(unit)] else { return Ok([0; 4]) };
        let (x, y) = (index(position[0]), index(position[1]));
        if surface.tiling != Tiling::LINEAR_INP_2X2 {
            return surface.load(&self.memory, x, y);
        }
        if surface.format.channels() != 1 {
            return Err(AccessError::Neighbours(surface.format));
        }
        // The last channel receives the requested element. The first three channels receive the neighbours of the
        // requested element. (CTM guide p. 6)
        let mut value = [0; 4];
        for (channel, (dx, dy)) in value.iter_mut().zip([(1, 0), (0, 1), (1, 1), (0, 0)]) {
            *channel = surface.load(&self.memory, x + dx, y + dy)?[0];
        }
        Ok(value)
    }

    /// Writes one 32-bit value to output 0. Returns the byte address of the value.
    pub(crate) fn scatter(&mut self, at: (f32, f32), bits: u32) -> Result<u32, AccessError> {
        let surface = self.scatter_target.ok_or(AccessError::NoScatterTarget)?;
        match surface.format {
            Format::FLOAT32_1 | Format::UINT8_4 => {}
            Format::UINT16_1 | Format::FLOAT32_2 | Format::FLOAT32_4 => {
                return Err(AccessError::ScatterFormat(surface.format));
            }
        }
        let address = surface.write(&mut self.memory, index(at.0), index(at.1), &bits.to_le_bytes())?;
        Ok(address as u32)
    }
}

/// Returns the element index of a coordinate, or -1 for a NaN.
fn index(coordinate: f32) -> i64 {
    if coordinate.is_nan() { -1 } else { f64::from(coordinate).floor() as i64 }
}
