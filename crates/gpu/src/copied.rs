//! Programs whose only result is a texel: draws that copy bytes.

use reconverge_raster::draw::CopiedTexels;
use reconverge_simt::texture::elements::{Channel, Elements};
use reconverge_simt::texture::{Image, Shape, Texels};

use crate::texels::Select;

/// The coordinates of a texel that a program reads, as inputs and components of the draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coordinates {
    /// Coordinates along s and t.
    pub(crate) axes: [(usize, usize); 2],
    /// Inputs that the program rounds to whole numbers, and that must be 0.
    pub(crate) zeros: Vec<(usize, usize)>,
}

/// Returns the copy of texels of a level of an image. `select` contains the components of the colour. Coordinates
/// count texels, or run from 0 to 1 if they are `normalised`.
pub(crate) fn texels(
    image: &Image,
    level: usize,
    select: [Select; 4],
    coordinates: Coordinates,
    normalised: bool,
) -> Option<CopiedTexels> {
    let level = image.levels().get(level).filter(|_| image.shape() == Shape::D2)?;
    let Texels::Elements(elements) = &level.texels else { return None };
    let channels = select.map(|select| match select {
        Select::Component(component) => elements.channels()[usize::from(component & 3)].clone(),
        Select::Word(word) => Channel::Word(word),
    });
    let size = [level.width, level.height];
    let elements = Elements::new(elements.bytes(), elements.strides(), channels, [size[0], size[1], 1])?;
    let factor = size.map(|size| if normalised { size as f32 } else { 1. });
    let Coordinates { axes, zeros } = coordinates;
    Some(CopiedTexels { elements, size, coordinates: axes, factor, zeros })
}
