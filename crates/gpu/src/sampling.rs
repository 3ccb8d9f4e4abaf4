//! Codes of sampler state and of stencil operations, which R300 and R600 chips share.

use reconverge_raster::depth::StencilOp;
use reconverge_simt::texture::{MipFilter, Wrap};

/// Wrap modes, indexed by their codes.
pub(crate) const WRAPS: [Wrap; 8] = [
    Wrap::Repeat,
    Wrap::Mirror,
    Wrap::ClampToEdge,
    Wrap::MirrorOnceToEdge,
    Wrap::Clamp,
    Wrap::MirrorOnce,
    Wrap::ClampToBorder,
    Wrap::MirrorOnceToBorder,
];

/// Stencil operations, indexed by their codes.
pub(crate) const STENCIL_OPS: [StencilOp; 8] = [
    StencilOp::Keep,
    StencilOp::Zero,
    StencilOp::Replace,
    StencilOp::IncrementClamp,
    StencilOp::DecrementClamp,
    StencilOp::Invert,
    StencilOp::IncrementWrap,
    StencilOp::DecrementWrap,
];

/// Returns the filter between mip levels with this code.
pub(crate) fn mip_filter(code: u32) -> MipFilter {
    match code {
        0 => MipFilter::None,
        1 => MipFilter::Nearest,
        _ => MipFilter::Linear,
    }
}

/// Returns the maximum number of positions of an anisotropic filter, up to 16. The code is log2 of this number.
pub(crate) fn anisotropy(code: u32) -> u8 {
    1 << code.min(4)
}
