//! Texture fetches. The module computes the coordinates and levels of detail of the TEX operations. (CTM guide p. 33;
//! REG, US_TEX_INST)

use reconverge_simt::texture::anisotropy::{Footprint, Gradients};
use reconverge_simt::texture::{
    Image, Position, Sampler, Shape, gradients_of_quad, lod_of_gradients, sample,
};
use std::sync::Arc;

use crate::cause::TextureError;
use crate::words::TexOp;

/// The texture and sampler that are bound to a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Texture {
    /// The texels.
    pub image: Arc<Image>,
    /// Filtering and wrapping.
    pub sampler: Sampler,
}

impl Texture {
    /// Returns whether both textures share an image and have equal samplers.
    pub(crate) fn is_same(&self, other: &Texture) -> bool {
        Arc::ptr_eq(&self.image, &other.image) && self.sampler == other.sampler
    }
}

/// The coordinates of a fetch, and the data on which the level of detail may depend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// S, T, R and Q of the lane.
    pub position: [f32; 4],
    /// S, T, R and Q for each lane of the quad. The lanes are in the order top left, top right, bottom left, bottom
    /// right.
    pub quad: [[f32; 4]; 4],
    /// For DXDY, the derivatives by x.
    pub dx: Option<[f32; 4]>,
    /// For DXDY, the derivatives by y.
    pub dy: Option<[f32; 4]>,
    /// Whether the coordinates are in texels instead of 0..1.
    pub unscaled: bool,
}

impl Coordinates {
    /// Returns the derivatives of S, T and R that determine the level of detail and the footprint of an operation.
    /// Returns `None` for LOD, because Q states the level of detail of this operation.
    pub(crate) fn gradients(&self, image: &Image, op: TexOp) -> Option<Gradients> {
        let position = coordinates(op, self.position);
        let quad = match op {
            TexOp::LD | TexOp::PROJ | TexOp::LODBIAS | TexOp::NOP | TexOp::TEXKILL => {
                [0, 1, 2].map(|lane| coordinates(op, self.quad[lane]))
            }
            TexOp::DXDY => {
                let step = |by: Option<[f32; 4]>| {
                    let by = by.unwrap_or_default();
                    [0, 1, 2].map(|axis| position[axis] + by[axis])
                };
                [position, step(self.dx), step(self.dy)]
            }
            TexOp::LOD => return None,
        };
        Some(gradients_of_quad(image, position, quad))
    }
}

/// Returns the S, T and R that an operation uses. PROJ divides S, T and R by Q.
fn coordinates(op: TexOp, [s, t, r, q]: [f32; 4]) -> [f32; 3] {
    if op == TexOp::PROJ { [s / q, t / q, r / q] } else { [s, t, r] }
}

/// Fetches for one lane, and returns the bits of the four channels.
///
/// The index of a texel is the floor of the scaled coordinate (recommended, r500.md Q13). The level of detail depends
/// on the operation. LD, PROJ and LODBIAS use the differences between the quad's coordinates. DXDY uses derivatives
/// from two registers. An anisotropic filter also places its samples by these differences or derivatives. LOD uses Q as
/// the level of detail, and takes a single sample.
///
/// # Errors
/// Returns an error if the machine does not support the shape of the texture.
pub fn fetch(texture: &Texture, op: TexOp, at: &Coordinates) -> Result<[u32; 4], TextureError> {
    let image: &Image = &texture.image;
    if matches!(image.shape(), Shape::D1Array | Shape::D2Array | Shape::CubeArray) {
        return Err(TextureError::Shape(image.shape()));
    }
    if matches!(op, TexOp::NOP | TexOp::TEXKILL) {
        return Ok([0; 4]);
    }
    let sampler = Sampler { unnormalised: at.unscaled || texture.sampler.unnormalised, ..texture.sampler };
    let read = |position: &Position| sample(image, &sampler, position);
    let position = Position { coordinates: coordinates(op, at.position), ..Position::default() };
    let Some([dx, dy]) = at.gradients(image, op) else {
        return Ok(read(&Position { lod: at.position[3], ..position }));
    };
    let bias = if op == TexOp::LODBIAS { at.position[3] } else { 0.0 };
    let position = Position { lod: lod_of_gradients(image, &sampler, dx, dy) + bias, ..position };
    Ok(Footprint::new(image, &sampler, [dx, dy]).mean(image, &position, read))
}

#[cfg(test)]
mod tests {
    use reconverge_simt::texture::{Filter, Level, MipFilter, Wrap};

    use super::*;

    /// Returns an 8 x 8 texture with four levels. Every texel of a level holds the number of the level.
    fn levels() -> Texture {
        let level = |n: u32| {
            let size = 8 >> n;
            let texels = vec![[(n as f32).to_bits(); 4]; (size * size) as usize];
            Level { width: size, height: size, depth: 1, texels: texels.into() }
        };
        let image = Arc::new(Image::new(Shape::D2, (0..4).map(level).collect()).unwrap());
        Texture { image, sampler: Sampler { mip: MipFilter::Nearest, ..Sampler::default() } }
    }

    fn at(step: f32, q: f32) -> Coordinates {
        let quad = [[0.5, 0.5], [0.5 + step, 0.5], [0.5, 0.5 + step], [0.5 + step, 0.5 + step]];
        Coordinates {
            position: [0.5, 0.5, 0.0, q],
            quad: quad.map(|[s, t]| [s, t, 0.0, q]),
            dx: None,
            dy: None,
            unscaled: false,
        }
    }

    fn level(op: TexOp, at: &Coordinates) -> f32 {
        f32::from_bits(fetch(&levels(), op, at).unwrap()[0])
    }

    #[test]
    fn ld_takes_the_level_from_the_quad() {
        assert_eq!(level(TexOp::LD, &at(0.125, 9.0)), 0.0);
        assert_eq!(level(TexOp::LD, &at(0.25, 9.0)), 1.0);
        assert_eq!(level(TexOp::LD, &at(0.5, 9.0)), 2.0);
    }

    #[test]
    fn lodbias_adds_q_and_lod_is_q() {
        assert_eq!(level(TexOp::LODBIAS, &at(0.25, 1.0)), 2.0);
        assert_eq!(level(TexOp::LOD, &at(0.25, 3.0)), 3.0);
    }

    #[test]
    fn proj_divides_by_q_before_everything() {
        let at = at(0.5, 2.0);
        assert_eq!(level(TexOp::PROJ, &at), 1.0, "half the step, one level less");
    }

    #[test]
    fn dxdy_takes_the_level_from_its_registers() {
        let at = Coordinates { dx: Some([0.5, 0.0, 0.0, 0.0]), dy: Some([0.0; 4]), ..at(0.0, 1.0) };
        assert_eq!(level(TexOp::DXDY, &at), 2.0);
    }

    #[test]
    fn unscaled_coordinates_are_floored() {
        let texels = (0..6).map(|n| [(n as f32).to_bits(); 4]).collect();
        let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], mag: Filter::Nearest, ..Sampler::default() };
        let texture = Texture { image: Arc::new(Image::flat(3, 2, texels).unwrap()), sampler };
        let read = |s: f32, t: f32| {
            let at = Coordinates {
                position: [s, t, 0.0, 1.0],
                quad: [[s, t, 0.0, 1.0]; 4],
                dx: None,
                dy: None,
                unscaled: true,
            };
            f32::from_bits(fetch(&texture, TexOp::LD, &at).unwrap()[0])
        };
        assert_eq!([read(0.0, 0.0), read(2.9, 0.0), read(1.0, 1.0)], [0.0, 2.0, 4.0]);
    }

    #[test]
    fn arrays_are_refused_by_name() {
        let image = Image::new(
            Shape::D2Array,
            vec![Level { width: 1, height: 1, depth: 2, texels: vec![[0; 4]; 2].into() }],
        );
        let texture = Texture { image: Arc::new(image.unwrap()), sampler: Sampler::default() };
        assert_eq!(fetch(&texture, TexOp::LD, &at(0.0, 1.0)), Err(TextureError::Shape(Shape::D2Array)));
    }
}
