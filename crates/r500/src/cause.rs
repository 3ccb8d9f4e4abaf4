//! Causes of traps.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::word::WordError;
use reconverge_simt::texture::Shape;
use thiserror::Error;

use crate::flow::Undefined;
use crate::violations::Violation;
use crate::words::{Format, Tiling};

/// The reason why a program was stopped.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A code without a meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// A combination that the documents forbid. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// A slot without an instruction.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// A slot outside US_CODE_RANGE. (Strict)
    #[error("slot {pc} lies outside the program's slots {start} to {end} (US_CODE_RANGE)")]
    OutsideRange {
        /// The slot.
        pc: u16,
        /// First slot of the window.
        start: u16,
        /// Last slot.
        end: u16,
    },
    /// Undefined flow control. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// The first FC instruction after the write must consume the ALU result. (Strict; CTM guide p. 35)
    #[error("JUMP_FUNC reads an ALU result that no instruction since the last FC has written")]
    StaleAluResult,
    /// CTM guide p. 23: every execution must finish on an OUT instruction. (Strict)
    #[error("the last instruction (US_CODE_ADDR.END_ADDR) is not OUT")]
    EndIsNotOut,
    /// A temporary above US_PIXSIZE. (Strict)
    #[error("temp[{temp}] is not allocated: US_PIXSIZE allows up to temp[{highest}]")]
    NotAllocated {
        /// The temporary.
        temp: usize,
        /// The highest allocated temporary.
        highest: u8,
    },
    /// A relative address outside its file. (Strict; lenient: wraps)
    #[error("{file}[{base}+aL] with aL = {al} lies outside the file")]
    RelativeAddress {
        /// `temp` or `const`.
        file: &'static str,
        /// The address in the instruction.
        base: u8,
        /// The loop register.
        al: i32,
    },
    /// aL outside any LOOP. (Strict; lenient: 0)
    #[error("aL is read outside any LOOP")]
    NoLoopRegister,
    /// A fetch from a unit without a texture or input.
    #[error("texture unit {0} has no texture or input bound to it")]
    NoTexture(u8),
    /// A fetch that the texture does not support.
    #[error("{0}")]
    Texture(#[from] TextureError),
    /// A memory access of the CTM model.
    #[error("{0}")]
    Ctm(#[from] AccessError),
    /// More instructions than the watchdog allows.
    #[error("watchdog: {0} instructions and no end; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}

/// A fetch that has no documented meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextureError {
    /// R500 has no array textures.
    #[error("R500 cannot read a {0:?} texture: 1D, 2D, 3D and cube only")]
    Shape(Shape),
}

/// A memory access that the model does not allow or that the documents do not describe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// A tiled layout.
    #[error("tiling {0} is not documented in the available pages of the CTM guide: use LINEAR")]
    Tiled(Tiling),
    /// An element outside the surface.
    #[error("element ({x}, {y}) lies outside the buffer of {width} x {height} elements")]
    Outside {
        /// Column.
        x: i64,
        /// Row.
        y: i64,
        /// Elements per row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// An address inside the surface but outside memory.
    #[error("byte address {address:#x} lies outside the memory of {size:#x} bytes")]
    OutsideMemory {
        /// The address.
        address: u64,
        /// Size of the memory in bytes.
        size: usize,
    },
    /// A fetch other than a plain unscaled one.
    #[error("{0} on a CTM input: inputs are addressed by unscaled index pairs with LD (CTM guide p. 4)")]
    Fetch(&'static str),
    /// A 2 x 2 fetch from a format with several channels.
    #[error("INP_2X2 is undefined for {0}: it has several channels (CTM guide p. 6)")]
    Neighbours(Format),
    /// A scatter to elements that are not one 32-bit value.
    #[error("an uncached output writes one 32-bit value: format {0} has no documented meaning for it")]
    ScatterFormat(Format),
    /// An uncached OUT without a bound buffer.
    #[error("an uncached output is written but output 0 is not bound to a buffer")]
    NoScatterTarget,
    /// An uncached output that writes only some channels. It must write all four or none. (Strict; CTM guide p. 31)
    #[error("an uncached OUT needs all of RGB_OMASK and ALPHA_OMASK, or none")]
    PartialScatter,
    /// An uncached output whose alpha channel is not 0. (Strict; CTM guide p. 31)
    #[error("the alpha channel of an uncached OUT must be 0")]
    ScatterAlpha,
    /// RNDR_TGT_UMRT_SAME_IDX with different positions. (Strict; CTM guide p. 31)
    #[error("an uncached OUT with one index for all lanes was given different ones")]
    IndexDiffers,
}
