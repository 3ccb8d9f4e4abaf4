//! Causes of traps.

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_isa::word::WordError;
use reconverge_simt::texture::Shape;
use thiserror::Error;

use crate::flow::Undefined;
use crate::violations::Violation;
use crate::words::{Format, Tiling};

/// The reason why a program was stopped. A cause with the mark "(Strict)" occurs only in strict mode.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// A field has a code without a meaning.
    #[error("not an instruction: {0}")]
    NoMeaning(WordError),
    /// The documents forbid a combination of fields. (Strict)
    #[error("{0}")]
    Forbidden(Violation),
    /// The program counter is at a slot without an instruction.
    #[error("slot {0} holds no instruction")]
    EmptySlot(u16),
    /// The program counter is at a slot outside US_CODE_RANGE. (Strict)
    #[error("slot {pc} lies outside the program's slots {start} to {end} (US_CODE_RANGE)")]
    OutsideRange {
        /// The slot.
        pc: u16,
        /// First slot of the range.
        start: u16,
        /// Last slot of the range.
        end: u16,
    },
    /// The documents do not define the result of a flow instruction. (Strict)
    #[error("{0}")]
    Flow(#[from] Undefined),
    /// A flow instruction reads an ALU result that is no longer valid. An ALU result is valid only for the first FC
    /// instruction after the write of the ALU result. (Strict; CTM guide p. 35)
    #[error("JUMP_FUNC reads an ALU result that no instruction since the last FC has written")]
    StaleAluResult,
    /// The program ends with an instruction other than OUT. Every execution must end with an OUT instruction. (Strict;
    /// CTM guide p. 23)
    #[error("the last instruction (US_CODE_ADDR.END_ADDR) is not OUT")]
    EndIsNotOut,
    /// An instruction accesses a temporary above US_PIXSIZE. (Strict)
    #[error("temp[{temp}] is not allocated: US_PIXSIZE allows up to temp[{highest}]")]
    NotAllocated {
        /// The temporary.
        temp: usize,
        /// The highest allocated temporary.
        highest: u8,
    },
    /// A relative address is outside its register file. In lenient mode, the address wraps. (Strict)
    #[error("{file}[{base}+aL] with aL = {al} lies outside the file")]
    RelativeAddress {
        /// `temp` or `const`.
        file: &'static str,
        /// The address in the instruction.
        base: u8,
        /// The value of the loop register aL.
        al: i32,
    },
    /// An address uses aL outside any LOOP. In lenient mode, aL is then 0. (Strict)
    #[error("aL is read outside any LOOP")]
    NoLoopRegister,
    /// A fetch from a unit that does not have a bound texture or input.
    #[error("no texture or input is bound to texture unit {0}")]
    NoTexture(u8),
    /// A fetch that the texture does not support.
    #[error("{0}")]
    Texture(#[from] TextureError),
    /// An invalid access to the memory or to a surface of the CTM model.
    #[error("{0}")]
    Ctm(#[from] AccessError),
    /// The program has executed more instructions than the watchdog allows.
    #[error("watchdog: no end after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}

/// A fetch that has no documented meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextureError {
    /// The texture has a shape that R500 does not support.
    #[error("R500 cannot read a {0:?} texture: 1D, 2D, 3D and cube only")]
    Shape(Shape),
}

/// A memory access that the CTM model does not allow or that the documents do not describe.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// The surface has a tiled layout.
    #[error("tiling {0} is not documented in the available pages of the CTM guide: use LINEAR")]
    Tiled(Tiling),
    /// The element is outside the surface.
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
    /// The address is inside the surface but outside memory.
    #[error("byte address {address:#x} lies outside the memory of {size:#x} bytes")]
    OutsideMemory {
        /// The address.
        address: u64,
        /// Size of the memory in bytes.
        size: usize,
    },
    /// The fetch is not an unscaled LD.
    #[error("{0} on a CTM input: inputs are addressed by unscaled index pairs with LD (CTM guide p. 4)")]
    Fetch(&'static str),
    /// A 2 x 2 fetch reads a surface whose elements have several channels.
    #[error("INP_2X2 is undefined for {0}: the format has several channels (CTM guide p. 6)")]
    Neighbours(Format),
    /// A scatter writes to a surface whose elements are not single 32-bit values.
    #[error("format {0} has no documented meaning for an uncached output, which writes one 32-bit value")]
    ScatterFormat(Format),
    /// An uncached OUT is executed, but no buffer is bound to output 0.
    #[error("an uncached output is written but output 0 is not bound to a buffer")]
    NoScatterTarget,
    /// An uncached OUT writes one, two or three channels. The instruction must write all four channels or none.
    /// (Strict; CTM guide p. 31)
    #[error("an uncached OUT needs all of RGB_OMASK and ALPHA_OMASK, or none")]
    PartialScatter,
    /// An uncached OUT has an alpha value other than 0. (Strict; CTM guide p. 31)
    #[error("the alpha channel of an uncached OUT must be 0")]
    ScatterAlpha,
    /// An OUT has RNDR_TGT_UMRT_SAME_IDX, but two lanes of the OUT write to different positions. (Strict; CTM guide p.
    /// 31)
    #[error("an uncached OUT has RNDR_TGT_UMRT_SAME_IDX, but its lanes have different indices")]
    IndexDiffers,
}
