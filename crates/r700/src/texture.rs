//! Textures and samplers of a launch. The sampler's arithmetic is [`reconverge_simt::texture`]; what a texture instruction
//! does with them is in `reference/texture.rs`.

use std::sync::Arc;

use reconverge_simt::texture::{Compare, Filter, Image, MipFilter, Sampler, Wrap};

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
    /// Whether the border colour of an integer texture is integers. It is floats, which become integers, on the chips.
    pub integer_border: bool,
}

impl Texture {
    /// Returns whether both share an image and read it alike.
    pub fn is_same(&self, other: &Texture) -> bool {
        let Texture { image, integer, fractions, select, integer_border } = self;
        Arc::ptr_eq(image, &other.image)
            && (*integer, *fractions, *select) == (other.integer, other.fractions, other.select)
            && *integer_border == other.integer_border
    }

    /// The border colour as texels hold it, so that DST_SEL moves its components back to their places.
    ///
    /// Inferred from `texwrap bordercolor` in the list of what fails on RV770. The colour is right for the orders ZYXW, XXX1, XXXY
    /// and 000X, and wrong for those that move three components around (ZXYW), or one that has no counterpart (0X01): the chip takes
    /// x, y and z of a texel from the components that DST_SEL names, and stores alpha where DST_SEL reads it. The colour of an integer
    /// texture is wrong in every order: it is taken as floats, unless [`Texture::integer_border`] is set.
    pub(crate) fn border(&self, color: [u32; 4]) -> [u32; 4] {
        let whole = |bits: u32| {
            let value = f32::from_bits(bits);
            if value < 0. { value as i32 as u32 } else { value as u32 }
        };
        let color = if self.integer && !self.integer_border { color.map(whole) } else { color };
        let mut texel = self.select.map(|component| component.of(&color));
        if let Component::Texel(alpha) = self.select[3] {
            texel[usize::from(alpha & 3)] = color[3];
        }
        texel
    }
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

    /// The letters of components in launch files, 1 being of the texels' type.
    pub fn letter(self, integer: bool) -> Option<char> {
        "xyzw01".chars().find(|letter| Component::of_letter(*letter, integer) == Some(self))
    }

    /// The component of a letter.
    pub fn of_letter(letter: char, integer: bool) -> Option<Component> {
        match letter {
            'x' => Some(Component::Texel(0)),
            'y' => Some(Component::Texel(1)),
            'z' => Some(Component::Texel(2)),
            'w' => Some(Component::Texel(3)),
            '0' => Some(Component::Word(0)),
            '1' => Some(Component::Word(if integer { 1 } else { 1f32.to_bits() })),
            _ => None,
        }
    }

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
        Texture {
            image: image.into(),
            integer: false,
            fractions: false,
            select: Component::ALL,
            integer_border: false,
        }
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

// The names of values in launch files.

/// The names of filters.
pub const FILTERS: [(&str, Filter); 2] = [("nearest", Filter::Nearest), ("linear", Filter::Linear)];

/// The names of ways between mip levels.
pub const MIP_FILTERS: [(&str, MipFilter); 3] =
    [("none", MipFilter::None), ("nearest", MipFilter::Nearest), ("linear", MipFilter::Linear)];

/// The names of what a coordinate outside of an image means.
pub const WRAPS: [(&str, Wrap); 8] = [
    ("repeat", Wrap::Repeat),
    ("mirror", Wrap::Mirror),
    ("clamp_to_edge", Wrap::ClampToEdge),
    ("clamp_to_border", Wrap::ClampToBorder),
    ("clamp", Wrap::Clamp),
    ("mirror_once", Wrap::MirrorOnce),
    ("mirror_once_to_edge", Wrap::MirrorOnceToEdge),
    ("mirror_once_to_border", Wrap::MirrorOnceToBorder),
];

/// The names of comparisons.
pub const COMPARES: [(&str, Compare); 8] = [
    ("never", Compare::Never),
    ("less", Compare::Less),
    ("equal", Compare::Equal),
    ("less_equal", Compare::LessEqual),
    ("greater", Compare::Greater),
    ("not_equal", Compare::NotEqual),
    ("greater_equal", Compare::GreaterEqual),
    ("always", Compare::Always),
];

#[cfg(test)]
mod tests {
    use reconverge_simt::texture::{Level, Shape};

    use super::*;

    /// RV770 fails `texwrap bordercolor` of all formats of integers, where the driver writes integers.
    #[test]
    fn the_border_of_integers_is_that_of_floats_or_of_integers() {
        let level = Level { width: 1, height: 1, depth: 1, texels: vec![[0; 4]].into() };
        let texture = Texture::floats(Image::new(Shape::D2, vec![level]).unwrap());
        let floats = [3.7f32, -2., 300., 0.].map(f32::to_bits);
        let integers = Texture { integer: true, ..texture.clone() };
        assert_eq!(integers.border(floats), [3, -2, 300, 0].map(i32::cast_unsigned));
        assert_eq!(integers.border([25, 200, 1, 0]), [0; 4]);
        let raw = Texture { integer_border: true, ..integers };
        assert_eq!(raw.border([25, 200, 1, 0]), [25, 200, 1, 0]);
        assert_eq!(texture.border(floats), floats);
    }
}
