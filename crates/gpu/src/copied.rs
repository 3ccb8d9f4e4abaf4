//! Programs whose only result is a texel. The chip does not run these programs. Instead, the chip copies the bytes of
//! texels.

use reconverge_raster::draw::CopiedTexels;
use reconverge_simt::texture::elements::{Channel, Elements};
use reconverge_simt::texture::{Image, Shape, Texels};

use crate::texels::Select;

/// The coordinates at which a program reads a texel. Each coordinate is a component of an input of the draw. The
/// coordinate is stored as the index of the input and the index of the component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coordinates {
    /// Coordinates s and t.
    pub(crate) axes: [(usize, usize); 2],
    /// Inputs that the program rounds to whole numbers. The chip copies the texel only if each of these inputs rounds
    /// to 0.
    pub(crate) zeros: Vec<(usize, usize)>,
}

/// Describes a program that copies texels of one level of an image. `select` contains the source of each component of
/// the colour. If `normalised` is set, coordinates run from 0 to 1. Otherwise, coordinates count texels.
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
