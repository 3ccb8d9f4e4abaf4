//! Textures and samplers of a launch. The sampler's arithmetic is [`reconverge_simt::texture`]; what a texture instruction
//! does with them is in `reference/texture.rs`.

use reconverge_simt::texture::{Compare, Image, Sampler};

/// A texture resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Its texels.
    pub image: Image,
    /// Whether the texels are integers, which are never filtered.
    pub integer: bool,
}

impl Texture {
    /// A texture of floats.
    pub fn floats(image: Image) -> Texture {
        Texture { image, integer: false }
    }
}

/// A texture sampler: how an image is read, and the comparison of SAMPLE_C*.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextureSampler {
    /// How an image is read. COORD_TYPE of the instruction decides whether coordinates count texels.
    pub sampler: Sampler,
    /// DEPTH_COMPARE_FUNCTION.
    pub compare: Compare,
}

impl Default for TextureSampler {
    /// Nearest, repeating; comparisons never pass.
    fn default() -> Self {
        TextureSampler { sampler: Sampler::default(), compare: Compare::Never }
    }
}
