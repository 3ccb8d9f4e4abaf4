//! Texture references. A texture reference describes the memory that a texture of a module reads, and the format of the
//! texels.

use std::ffi::{c_int, c_uint};
use std::sync::{Arc, Mutex};

use reconverge_simt::memory::Memory;
use reconverge_simt::texture::{Filter, Image, Level, Sampler, Shape, Texels, Wrap};
use reconverge_tesla::texture::{Texture, TextureSampler, Textures};

use crate::array::{self, ChannelFormat, CudaArray, Descriptor, Texel};
use crate::board::MOST_PITCH;
use crate::call::{give, offer};
use crate::context;
use crate::device;
use crate::driver::ready;
use crate::handles::{Handles, fresh, lock};
use crate::memory;
use crate::status::{CallResult, CudaError};

/// `CU_TRSF_READ_AS_INTEGER` and `CU_TRSF_NORMALIZED_COORDINATES`
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;

/// The texture references of all contexts.
pub(crate) static REFERENCES: Handles<TextureReference> = Handles::new();

/// A texture reference of a context.
#[derive(Debug)]
pub(crate) struct TextureReference {
    pub(crate) handle: usize,
    pub(crate) context: usize,
    pub(crate) name: String,
    state: Mutex<ReferenceState>,
}

/// The memory that a texture reference reads.
#[derive(Clone, Debug, Default)]
enum TexelSource {
    #[default]
    Nothing,
    /// One row of texels. The values are the address and the size in bytes.
    Row(u32, u64),
    /// Rows of texels. The values are the address, the width and the height in texels, and the pitch: the distance in
    /// bytes between the starts of two rows.
    Rows(u32, usize, usize, usize),
    Array(Arc<CudaArray>),
}

#[derive(Debug)]
struct ReferenceState {
    source: TexelSource,
    texel: Texel,
    wraps: [c_int; 3],
    filter: c_int,
    flags: c_uint,
    border: [f32; 4],
    anisotropy: c_uint,
    /// The image of the last launch. Later launches reuse this image until the [`Contents`] change.
    made: Option<(Contents, Arc<Image>)>,
}

/// The data from which an image was created.
#[derive(Debug, PartialEq)]
struct Contents {
    bytes: Vec<u8>,
    texel: Texel,
    flags: c_uint,
    size: [usize; 3],
}

impl TextureReference {
    /// Returns a reference that is not bound to memory.
    pub(crate) fn new(handle: usize, context: usize, name: &str) -> TextureReference {
        let texel = Texel { number: 0x20, format: ChannelFormat::Float, channels: 1 };
        let state = ReferenceState {
            source: TexelSource::Nothing,
            texel,
            wraps: [1; 3],
            filter: 0,
            flags: 0,
            border: [0.0; 4],
            anisotropy: 0,
            made: None,
        };
        TextureReference { handle, context, name: name.to_owned(), state: Mutex::new(state) }
    }
}

impl ReferenceState {
    /// Returns the layout of the texels in memory. The layout consists of the dimensions, the distance in bytes between
    /// the starts of two rows, the shape, and the address.
    fn layout(&self) -> Option<([usize; 3], usize, Shape, u32)> {
        let texel = self.texel.bytes() as usize;
        // The program may have changed the format after the program bound the memory.
        let is_other = match &self.source {
            TexelSource::Rows(_, width, _, pitch) => width * texel > *pitch,
            TexelSource::Array(array) => array.texel.bytes() != self.texel.bytes(),
            TexelSource::Nothing | TexelSource::Row(..) => false,
        };
        if is_other {
            return None;
        }
        Some(match &self.source {
            TexelSource::Nothing => return None,
            TexelSource::Row(address, bytes) => {
                ([*bytes as usize / texel, 1, 1], *bytes as usize / texel * texel, Shape::D1, *address)
            }
            TexelSource::Rows(address, width, height, pitch) => {
                ([*width, *height, 1], *pitch, Shape::D2, *address)
            }
            TexelSource::Array(array) => {
                let shape = match array.size {
                    [_, 0, _] => Shape::D1,
                    [.., 0] => Shape::D2,
                    _ => Shape::D3,
                };
                (array.extent(), array.pitch(), shape, array.address)
            }
        })
    }

    /// Whether a texture read returns integers.
    fn is_integer(&self) -> bool {
        match self.texel.format {
            ChannelFormat::Unsigned(bytes) | ChannelFormat::Signed(bytes) => {
                bytes == 4 || self.flags & AS_INTEGER != 0
            }
            ChannelFormat::Half | ChannelFormat::Float => false,
        }
    }

    /// Returns an image of the current contents of the memory.
    fn image(&mut self, memory: &Memory) -> Option<Arc<Image>> {
        let (size, pitch, shape, address) = self.layout()?;
        let [width, height, depth] = size;
        let row = width * self.texel.bytes() as usize;
        let rows = (0..height * depth).map(|row| address + (row * pitch) as u32);
        let mut bytes = Vec::with_capacity(row * height * depth);
        for start in rows {
            bytes.extend_from_slice(memory.bytes(start, row)?);
        }
        let contents = Contents { bytes, texel: self.texel, flags: self.flags, size };
        if let Some((before, image)) = &self.made
            && *before == contents
        {
            return Some(image.clone());
        }
        let integer = self.is_integer();
        let one = if integer { 1 } else { 1f32.to_bits() };
        let channel = self.texel.format.bytes() as usize;
        let texels = contents.bytes.chunks_exact(self.texel.bytes() as usize).map(|texel| {
            let mut words = [0, 0, 0, one];
            for (word, bytes) in words.iter_mut().zip(texel.chunks_exact(channel)) {
                *word = value(self.texel.format, bytes, integer);
            }
            words
        });
        let texels = Texels::Words(texels.collect());
        let level = Level { width: width as u32, height: height as u32, depth: depth as u32, texels };
        let image = Arc::new(Image::new(shape, vec![level]).ok()?);
        self.made = Some((contents, image.clone()));
        Some(image)
    }

    fn sampler(&self) -> Sampler {
        let normalized = self.flags & NORMALIZED != 0;
        // `CU_TR_ADDRESS_MODE_WRAP` and `CU_TR_ADDRESS_MODE_MIRROR` apply only to normalized coordinates. Other
        // coordinates are clamped.
        let wrap = |mode| match mode {
            0 if normalized => Wrap::Repeat,
            2 if normalized => Wrap::Mirror,
            3 => Wrap::ClampToBorder,
            _ => Wrap::ClampToEdge,
        };
        let filter = if self.filter == 1 { Filter::Linear } else { Filter::Nearest };
        Sampler {
            wrap: self.wraps.map(wrap),
            mag: filter,
            min: filter,
            border: self.border.map(f32::to_bits),
            unnormalised: !normalized,
            ..Sampler::default()
        }
    }
}

/// Returns the word that a texture read returns for a channel. The word is an integer, or a float from 0 to 1 or from
/// -1 to 1.
fn value(format: ChannelFormat, bytes: &[u8], integer: bool) -> u32 {
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    let raw = u32::from_le_bytes(word);
    let bits = 8 * bytes.len() as u32;
    match format {
        ChannelFormat::Float => raw,
        ChannelFormat::Half => half(raw as u16).to_bits(),
        ChannelFormat::Unsigned(_) if integer => raw,
        ChannelFormat::Unsigned(_) => (raw as f32 / ((1u64 << bits) - 1) as f32).to_bits(),
        ChannelFormat::Signed(_) => {
            let signed = (raw << (32 - bits)) as i32 >> (32 - bits);
            match integer {
                true => signed as u32,
                false => (signed as f32 / ((1u64 << (bits - 1)) - 1) as f32).max(-1.0).to_bits(),
            }
        }
    }
}

/// Converts a 16-bit float to a 32-bit float.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) =
        (u32::from(bits >> 15), u32::from(bits >> 10 & 31), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction as f32 / (1 << 24) as f32,
        31 => f32::from_bits(0x7f80_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    f32::from_bits(magnitude.to_bits() | sign << 31)
}

/// Returns the textures of a kernel. The textures have the current contents of the memory. Returns `None` if the kernel
/// reads no textures.
pub(crate) fn bound(references: &[(u32, Arc<TextureReference>)], memory: &Memory) -> Option<Textures> {
    if references.is_empty() {
        return None;
    }
    let mut textures = Textures::default();
    for (unit, reference) in references {
        let mut state = lock(&reference.state);
        // The result omits a texture without an image. A kernel that reads a texture without an image traps.
        let Some(image) = state.image(memory) else { continue };
        let unit = *unit as u8;
        textures.textures.insert(unit, Texture::new(image, state.is_integer()));
        textures.samplers.insert(unit, TextureSampler { sampler: state.sampler(), compare: None });
    }
    Some(textures)
}

/// Removes the texture references of a context that ends.
pub(crate) fn end_of_context(context: usize) {
    REFERENCES.retain(|reference| reference.context != context);
}

fn with<T>(
    handle: usize,
    work: impl FnOnce(&mut ReferenceState) -> Result<T, CudaError>,
) -> Result<T, CudaError> {
    context::usable()?;
    let reference = ready(&REFERENCES)?.get(handle).ok_or(CudaError::INVALID_HANDLE)?;
    let mut state = lock(&reference.state);
    work(&mut state)
}

/// `cuTexRefCreate`
pub(crate) unsafe fn create(to: *mut usize) -> CallResult {
    let context = context::usable()?;
    let reference = TextureReference::new(fresh(), context.handle, "");
    let handle = reference.handle;
    ready(&REFERENCES)?.insert(handle, Arc::new(reference));
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, handle) }
}

/// `cuTexRefDestroy`
pub(crate) unsafe fn destroy(handle: usize) -> CallResult {
    ready(&REFERENCES)?.remove(handle).map(|_| ()).ok_or(CudaError::INVALID_HANDLE)
}

/// `cuTexRefSetArray`. The call also sets the format of the reference to the format of the array.
pub(crate) unsafe fn set_array(handle: usize, array: usize, flags: c_uint) -> CallResult {
    let array = ready(&array::ARRAYS)?.get(array).ok_or(CudaError::INVALID_HANDLE)?;
    // The only valid flag is `CU_TRSA_OVERRIDE_FORMAT`.
    if flags != 1 {
        return Err(CudaError::INVALID_VALUE);
    }
    with(handle, |state| {
        state.texel = array.texel;
        state.source = TexelSource::Array(array);
        Ok(())
    })
}

/// `cuTexRefSetAddress`. The address need not be aligned. The call rounds the address down to an aligned address. The
/// texture starts at the aligned address. The call stores the distance between the two addresses in `offset`.
pub(crate) unsafe fn set_address(
    offset: *mut usize,
    handle: usize,
    address: u64,
    bytes: usize,
) -> CallResult {
    if address == 0 {
        return with(handle, |state| {
            state.source = TexelSource::Nothing;
            Ok(())
        });
    }
    memory::find(address, bytes as u64)?;
    let misaligned = (address % 256) as usize;
    // If `offset` is null, the address must be aligned.
    if offset.is_null() && misaligned != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    with(handle, |state| {
        let start = address as u32 - misaligned as u32;
        state.source = TexelSource::Row(start, (bytes + misaligned) as u64);
        Ok(())
    })?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { offer(offset, misaligned) };
    Ok(())
}

/// `cuTexRefSetAddress2D`
pub(crate) unsafe fn set_rows(
    handle: usize,
    descriptor: *const Descriptor,
    address: u64,
    pitch: usize,
) -> CallResult {
    // SAFETY: the caller passes null or a pointer to a valid structure.
    let descriptor = *unsafe { descriptor.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let texel = Texel::new(descriptor.format, descriptor.channels)?;
    let Descriptor { width, height, .. } = descriptor;
    let row = width.checked_mul(texel.bytes() as usize).ok_or(CudaError::INVALID_VALUE)?;
    if width == 0
        || height == 0
        || width > 65000
        || height > 65000
        || pitch < row
        || pitch as u64 > MOST_PITCH
        || !pitch.is_multiple_of(32)
    {
        return Err(CudaError::INVALID_VALUE);
    }
    memory::find(address, (pitch * (height - 1) + row) as u64)?;
    with(handle, |state| {
        state.texel = texel;
        state.source = TexelSource::Rows(address as u32, width, height, pitch);
        Ok(())
    })
}

/// `cuTexRefSetFormat`
pub(crate) unsafe fn set_format(handle: usize, format: c_int, channels: c_int) -> CallResult {
    let texel = Texel::new(format, u32::try_from(channels).unwrap_or(0))?;
    with(handle, |state| {
        state.texel = texel;
        Ok(())
    })
}

/// `cuTexRefSetAddressMode`
pub(crate) unsafe fn set_wrap(handle: usize, axis: c_int, mode: c_int) -> CallResult {
    let axis = usize::try_from(axis).ok().filter(|axis| *axis < 3 && (0..=3).contains(&mode));
    let axis = axis.ok_or(CudaError::INVALID_VALUE)?;
    with(handle, |state| {
        state.wraps[axis] = mode;
        Ok(())
    })
}

/// `cuTexRefSetFilterMode`
pub(crate) unsafe fn set_filter(handle: usize, filter: c_int) -> CallResult {
    if !(0..=1).contains(&filter) {
        return Err(CudaError::INVALID_VALUE);
    }
    with(handle, |state| {
        state.filter = filter;
        Ok(())
    })
}

/// `cuTexRefSetFlags`
pub(crate) unsafe fn set_flags(handle: usize, flags: c_uint) -> CallResult {
    if flags & !(AS_INTEGER | NORMALIZED) != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    with(handle, |state| {
        state.flags = flags;
        Ok(())
    })
}

/// `cuTexRefSetMaxAnisotropy`. This call has no effect on results, because textures have one level.
pub(crate) unsafe fn set_anisotropy(handle: usize, most: c_uint) -> CallResult {
    with(handle, |state| {
        state.anisotropy = most;
        Ok(())
    })
}

/// `cuTexRefSetBorderColor`
pub(crate) unsafe fn set_border(handle: usize, border: *const [f32; 4]) -> CallResult {
    // SAFETY: the caller passes null or the address of four floats.
    let border = *unsafe { border.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    with(handle, |state| {
        state.border = border;
        Ok(())
    })
}

/// `cuTexRefGetAddress`
pub(crate) unsafe fn get_address(to: *mut u64, handle: usize) -> CallResult {
    let address = with(handle, |state| match state.source {
        TexelSource::Row(address, _) | TexelSource::Rows(address, ..) => Ok(address),
        _ => Err(CudaError::INVALID_VALUE),
    })?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, address.into()) }
}

/// `cuTexRefGetArray`
pub(crate) unsafe fn get_array(to: *mut usize, handle: usize) -> CallResult {
    let array = with(handle, |state| match &state.source {
        TexelSource::Array(array) => Ok(array.handle),
        _ => Err(CudaError::INVALID_VALUE),
    })?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, array) }
}

/// `cuTexRefGetAddressMode`
pub(crate) unsafe fn get_wrap(to: *mut c_int, handle: usize, axis: c_int) -> CallResult {
    let axis = usize::try_from(axis).ok().filter(|axis| *axis < 3).ok_or(CudaError::INVALID_VALUE)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, with(handle, |state| Ok(state.wraps[axis]))?) }
}

/// `cuTexRefGetFilterMode`
pub(crate) unsafe fn get_filter(to: *mut c_int, handle: usize) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, with(handle, |state| Ok(state.filter))?) }
}

/// `cuTexRefGetFlags`
pub(crate) unsafe fn get_flags(to: *mut c_uint, handle: usize) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, with(handle, |state| Ok(state.flags))?) }
}

/// `cuTexRefGetFormat`
pub(crate) unsafe fn get_format(format: *mut c_int, channels: *mut c_int, handle: usize) -> CallResult {
    let texel = with(handle, |state| Ok(state.texel))?;
    // SAFETY: the caller passes null or valid pointers.
    unsafe {
        offer(format, texel.number);
        offer(channels, texel.channels as c_int);
    }
    Ok(())
}

/// `cuTexRefGetMaxAnisotropy`
pub(crate) unsafe fn get_anisotropy(to: *mut c_int, handle: usize) -> CallResult {
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, with(handle, |state| Ok(state.anisotropy as c_int))?) }
}

/// `cuDeviceGetTexture1DLinearMaxWidth`
pub(crate) unsafe fn linear_width(
    width: *mut usize,
    format: c_int,
    channels: c_uint,
    device: c_int,
) -> CallResult {
    let board = device::board(device)?;
    Texel::new(format, channels)?;
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(width, board.attribute(69).unwrap_or(0) as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_become_floats_unless_they_are_read_as_integers() {
        let float = |format, bytes: &[u8]| f32::from_bits(value(format, bytes, false));
        assert_eq!(
            (float(ChannelFormat::Unsigned(1), &[255]), float(ChannelFormat::Signed(1), &[0x80])),
            (1.0, -1.0)
        );
        assert_eq!(value(ChannelFormat::Signed(2), &[0xff, 0xff], true), u32::MAX);
        assert_eq!([0x3c00, 0xc000, 0x0001].map(half), [1.0, -2.0, 2f32.powi(-24)]);
    }
}
