//! Textures and samplers of a launch. [`reconverge_simt::texture`] contains the arithmetic of the sampler.
//! `reference/texture.rs` contains the texture instructions.

use std::sync::Arc;

use reconverge_simt::texture::{Compare, Filter, Image, MipFilter, Sampler, Wrap};

/// A texture resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// Texels of the texture. Copies of a launch share the image, so a copy is cheap.
    pub image: Arc<Image>,
    /// Whether the texels are integers. Integers are never filtered.
    pub integer: bool,
    /// Whether the texels are fractions. If this field is set, a comparison clamps its reference value to [0, 1].
    /// (OpenGL 3.0, 3.9.14)
    pub fractions: bool,
    /// DST_SEL of the resource: the source of each component of a result.
    pub select: [Component; 4],
    /// Whether the border colour of an integer texture consists of integers. On the chips, this colour consists of
    /// floats, which the chip converts to integers.
    pub integer_border: bool,
}

impl Texture {
    /// Returns whether this texture and `other` share an image and have the same settings. With the same settings, the
    /// chip reads the image in the same way.
    pub fn is_same(&self, other: &Texture) -> bool {
        let Texture { image, integer, fractions, select, integer_border } = self;
        Arc::ptr_eq(image, &other.image)
            && (*integer, *fractions, *select) == (other.integer, other.fractions, other.select)
            && *integer_border == other.integer_border
    }

    /// Returns the border colour in the component order of texels. DST_SEL later moves each component of the colour
    /// back to its original position.
    ///
    /// This order is inferred from `texwrap bordercolor` in the list of failures on RV770. In this test, the colour is
    /// right for the orders ZYXW, XXX1, XXXY and 000X. The colour is wrong for orders that rotate three components
    /// (ZXYW), and for 0X01. Therefore the chip takes x, y and z of a border texel from the components that DST_SEL
    /// names. The chip stores alpha in the component from which DST_SEL reads alpha. The colour of an integer texture
    /// is wrong in every order, because the chip interprets the colour as floats. If [`Texture::integer_border`] is
    /// set, the chip instead interprets the colour as integers.
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

/// Source of a component of a texture's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Component 0 to 3 of the texel. The result of a comparison is the same in all components.
    Texel(u8),
    /// A constant.
    Word(u32),
}

impl Component {
    /// DST_SEL that reads x, y, z and w in this order.
    pub const ALL: [Component; 4] =
        [Component::Texel(0), Component::Texel(1), Component::Texel(2), Component::Texel(3)];

    /// Returns the letter that denotes the component in launch files. The letter 1 denotes the number one in the type
    /// of the texels.
    pub fn letter(self, integer: bool) -> Option<char> {
        "xyzw01".chars().find(|letter| Component::of_letter(*letter, integer) == Some(self))
    }

    /// Returns the component that a letter in launch files denotes.
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

    /// Returns this component of a texel.
    pub(crate) fn of(self, texel: &[u32; 4]) -> u32 {
        match self {
            Component::Texel(component) => texel[usize::from(component & 3)],
            Component::Word(word) => word,
        }
    }
}

impl Texture {
    /// Returns a texture of floats.
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

/// A texture sampler: the settings for reading an image, and the comparison function of SAMPLE_C*.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextureSampler {
    /// Settings for reading an image. In addition, COORD_TYPE of an instruction determines whether its coordinates are
    /// numbers of texels.
    pub sampler: Sampler,
    /// DEPTH_COMPARE_FUNCTION.
    pub compare: Compare,
}

impl Default for TextureSampler {
    /// Returns a sampler that reads the nearest texel and repeats the image. Comparisons with this sampler never pass.
    fn default() -> Self {
        TextureSampler { sampler: Sampler::default(), compare: Compare::Never }
    }
}

// Names of values in launch files.

/// Names of filters.
pub const FILTERS: [(&str, Filter); 2] = [("nearest", Filter::Nearest), ("linear", Filter::Linear)];

/// Names of filters between mip levels.
pub const MIP_FILTERS: [(&str, MipFilter); 3] =
    [("none", MipFilter::None), ("nearest", MipFilter::Nearest), ("linear", MipFilter::Linear)];

/// Names of wrap modes, for coordinates outside an image.
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

/// Names of comparisons.
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

    /// RV770 fails `texwrap bordercolor` for all integer formats. The driver writes the border colour of integer
    /// formats as integers.
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
