//! Textures and samplers of a launch. The sampler's arithmetic is [`reconverge_simt::texture`]; what a texture instruction
//! does with them is in `reference/texture.rs`.

use std::sync::Arc;

use reconverge_simt::texture::{Compare, Image, Sampler};

/// A texture resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Its texels. Shared, so that a launch is cheap to copy.
    pub image: Arc<Image>,
    /// Whether the texels are integers, which are never filtered.
    pub integer: bool,
    /// Whether the texels are fractions: the reference of a comparison is clamped to [0, 1] then. (OpenGL 3.0, 3.9.14)
    pub fractions: bool,
    /// DST_SEL of the resource: where each component of a result comes from.
    pub select: [Component; 4],
}

/// A component of what a texture gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// That of the texels, 0 to 3; of the result of a comparison, which is the same in all.
    Texel(u8),
    /// A constant.
    Word(u32),
}

impl Component {
    /// Every component is that of the texels.
    pub const ALL: [Component; 4] =
        [Component::Texel(0), Component::Texel(1), Component::Texel(2), Component::Texel(3)];

    /// The component of what was read.
    pub(crate) fn of(self, texel: &[u32; 4]) -> u32 {
        match self {
            Component::Texel(component) => texel[usize::from(component & 3)],
            Component::Word(word) => word,
        }
    }
}

impl Texture {
    /// A texture of floats.
    pub fn floats(image: impl Into<Arc<Image>>) -> Texture {
        Texture { image: image.into(), integer: false, fractions: false, select: Component::ALL }
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
