//! Pictures of a replay, and their comparison.
//!
//! docs/mesa.md, "Programs", states the rule. A pixel agrees if every channel is within a tolerance of the reference.
//! Renderers round the positions of edges differently. If a pixel does not agree, the function compares this pixel with
//! the eight neighbouring pixels in the reference. If the pixel is within the tolerance of one of these eight reference
//! pixels, the pixel is *at an edge*. The functions do not list a pixel at an edge as different. Pictures do not have
//! alpha, and start with the top row.

use std::io::{self, BufRead, Read};

use serde::Serialize;

/// Maximum length of a line in a picture's head, in bytes.
const LINE: u64 = 256;
/// Maximum size of a picture in bytes: 16,384 x 16,384 pixels.
const MOST: usize = 3 << 28;

/// A picture with 3 bytes per pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

impl Picture {
    /// Reads the next picture that apitrace's retracer has written, in PNM format. Returns the picture and the number
    /// of its call. Returns `None` at the end of the output.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or is not a picture.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<(u64, Picture)>> {
        if from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let kind = line(from)?;
        let call = line(from)?;
        let call = call.strip_prefix('#').and_then(|call| call.trim().parse().ok());
        let call = call.ok_or_else(|| not_a_picture(&kind))?;
        let (size, most) = (line(from)?, line(from)?);
        let numbers: Vec<usize> = size.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let &[width, height] = &numbers[..] else { return Err(not_a_picture(&size)) };
        // The first line consists of `P` and the format. The format is grey or colour, with bytes or floats.
        let (channels, bytes) = match (&*kind, &*most) {
            ("P5", "255") => (1, 1),
            ("P6", "255") => (3, 1),
            ("Pf", _) => (1, 4),
            ("PF", _) => (3, 4),
            _ => return Err(not_a_picture(&kind)),
        };
        let count = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels));
        let count = count.filter(|count| *count <= MOST).ok_or_else(|| not_a_picture(&size))?;
        let mut data = Vec::new();
        from.take((count * bytes) as u64).read_to_end(&mut data)?;
        if data.len() < count * bytes {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("the picture of call {call} is truncated"),
            ));
        }
        if bytes == 4 {
            data = data.as_chunks().0.iter().map(|value| unorm(f32::from_le_bytes(*value))).collect();
        }
        if channels == 1 {
            data = data.iter().flat_map(|value| [*value; 3]).collect();
        }
        Ok(Some((call, Picture { width, height, pixels: data })))
    }

    /// Returns the picture as a PPM file.
    pub(super) fn ppm(&self) -> Vec<u8> {
        let mut file = format!("P6\n{} {}\n255\n", self.width, self.height).into_bytes();
        file.extend(&self.pixels);
        file
    }

    /// Returns the number of pixels.
    pub(super) fn count(&self) -> u64 {
        (self.width * self.height) as u64
    }

    /// Returns the colour of a pixel.
    pub(super) fn at(&self, x: usize, y: usize) -> [u8; 3] {
        self.pixels.as_chunks().0[y * self.width + x]
    }

    /// Returns a picture of the absolute differences between two pictures of the same size. The differences are
    /// multiplied by 16.
    pub(super) fn difference(&self, other: &Picture) -> Picture {
        let pairs = self.pixels.iter().zip(&other.pixels);
        let pixels = pairs.map(|(one, other)| one.abs_diff(*other).saturating_mul(16)).collect();
        Picture { pixels, ..*self }
    }
}

/// Converts a channel of a float target to 8 bits. Values outside of 0 to 1 are clamped, and a NaN becomes 0.
fn unorm(value: f32) -> u8 {
    (value.clamp(0., 1.) * 255.).round() as u8
}

/// Reads a line of the head.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(LINE).read_until(b'\n', &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

fn not_a_picture(found: &str) -> io::Error {
    let found: String = found.chars().take(80).collect();
    io::Error::new(io::ErrorKind::InvalidData, format!("expected a picture (PNM), found `{found}`"))
}

/// The differences between two pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PictureDifference {
    /// Number of pixels that differ.
    pub(super) pixels: u64,
    /// Number of pixels outside the tolerance that are at an edge.
    pub(super) at_edges: u64,
    /// Maximum difference of a channel among the pixels that differ, in steps of 1/255.
    pub(super) worst: u8,
    /// The first pixel that differs, in row order from the top.
    pub(super) first: PixelPair,
    /// First and last column of the smallest rectangle that contains all different pixels.
    pub(super) x: [usize; 2],
    /// First and last row of the rectangle that contains all different pixels.
    pub(super) y: [usize; 2],
}

/// The position of a pixel, and the colours at this position in both pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct PixelPair {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) chip: [u8; 3],
    pub(super) reference: [u8; 3],
}

/// Maximum difference of a channel that the rounding of a colour or of a texture coordinate can cause.
const NEAR: u8 = 16;

/// Number of pixels in each class of distance from the reference. The classes are the columns of the table in
/// docs/mesa.md, "Programs".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct PixelCounts {
    /// Pixels within the tolerance.
    pub(super) agree: u64,
    /// Pixels outside the tolerance that are at an edge.
    pub(super) at_edges: u64,
    /// Pixels that are neither within the tolerance nor at an edge, but within 16/255 of the reference.
    pub(super) near: u64,
    /// Pixels that belong to none of the classes above.
    pub(super) rest: u64,
}

/// Compares two pictures of the same size, and counts the pixels of each class in `counts`. Returns `None` if no pixel
/// differs.
pub(super) fn compare(
    chip: &Picture,
    reference: &Picture,
    tolerance: u8,
    counts: &mut PixelCounts,
) -> Option<PictureDifference> {
    if chip.pixels == reference.pixels {
        counts.agree += chip.count();
        return None;
    }
    let Picture { width, height, .. } = *chip;
    let mut found: Option<PictureDifference> = None;
    let mut at_edges = 0;
    for y in 0..height {
        for x in 0..width {
            let here = chip.at(x, y);
            let apart = distance(here, reference.at(x, y));
            if apart <= tolerance {
                counts.agree += 1;
                continue;
            }
            let mut around = (y.saturating_sub(1)..(y + 2).min(height))
                .flat_map(|v| (x.saturating_sub(1)..(x + 2).min(width)).map(move |u| (u, v)));
            if around.any(|(u, v)| distance(here, reference.at(u, v)) <= tolerance) {
                at_edges += 1;
                continue;
            }
            if apart <= NEAR {
                counts.near += 1;
            } else {
                counts.rest += 1;
            }
            let first = || PictureDifference {
                pixels: 0,
                at_edges: 0,
                worst: 0,
                first: PixelPair { x, y, chip: here, reference: reference.at(x, y) },
                x: [x, x],
                y: [y, y],
            };
            let found = found.get_or_insert_with(first);
            found.pixels += 1;
            found.worst = found.worst.max(apart);
            found.x = [found.x[0].min(x), found.x[1].max(x)];
            found.y[1] = y;
        }
    }
    counts.at_edges += at_edges;
    found.map(|found| PictureDifference { at_edges, ..found })
}

/// Returns the maximum difference of a channel.
fn distance(one: [u8; 3], other: [u8; 3]) -> u8 {
    one.iter().zip(other).map(|(one, other)| one.abs_diff(other)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, grey: &[u8]) -> Picture {
        Picture {
            width,
            height: grey.len() / width,
            pixels: grey.iter().flat_map(|value| [*value; 3]).collect(),
        }
    }

    #[test]
    fn pictures_are_read_one_after_the_other() {
        let mut bytes = b"P6\n#81\n2 1\n255\n\x01\x02\x03\x04\x05\x06".to_vec();
        bytes.extend(b"P5\n#90\n1 1\n255\n\x07PF\n#91\n1 1\n1\n");
        bytes.extend([0.5_f32, -1., 2.].iter().flat_map(|value| value.to_le_bytes()));
        let mut from = &bytes[..];
        let mut next = || Picture::read(&mut from).unwrap();
        let (call, colours) = next().unwrap();
        assert_eq!((call, colours.at(1, 0)), (81, [4, 5, 6]));
        assert_eq!(next(), Some((90, picture(1, &[7]))));
        assert_eq!(next().unwrap().1.at(0, 0), [128, 0, 255]);
        assert_eq!(next(), None);
    }

    #[test]
    fn what_is_no_picture_is_an_error_by_name() {
        let why = |bytes: &[u8]| Picture::read(&mut &bytes[..]).unwrap_err().to_string();
        assert_eq!(why(b"Rendered 3 frames\n"), "expected a picture (PNM), found `Rendered 3 frames`");
        assert_eq!(why(b"P6\n#4\n2 2\n255\nabc"), "the picture of call 4 is truncated");
        assert!(why(b"P6\n#4\n99999999 99999999\n255\n").contains("99999999"));
        assert!(why(b"P6\n#4\n18446744073709551615 2\n255\n").contains("expected a picture"));
        assert!(why(b"P7\n#4\n1 1\n255\n").contains("`P7`"));
    }

    #[test]
    fn a_pixel_within_the_tolerance_or_of_a_neighbour_agrees() {
        let reference = picture(3, &[10, 10, 200, 10, 10, 200]);
        let edge = picture(3, &[11, 200, 200, 9, 10, 200]);
        let mut counts = PixelCounts::default();
        assert_eq!(compare(&edge, &reference, 1, &mut counts), None);
        assert_eq!(counts, PixelCounts { agree: 5, at_edges: 1, near: 0, rest: 0 });
        let wrong = picture(3, &[11, 90, 200, 9, 10, 10]);
        let found = compare(&wrong, &reference, 1, &mut counts).unwrap();
        assert_eq!(counts, PixelCounts { agree: 9, at_edges: 2, near: 0, rest: 1 });
        let first = PixelPair { x: 1, y: 0, chip: [90; 3], reference: [10; 3] };
        let (x, y) = ([1, 1], [0, 0]);
        assert_eq!(found, PictureDifference { pixels: 1, at_edges: 1, worst: 80, first, x, y });
        assert_eq!(compare(&wrong, &reference, 80, &mut counts), None);
    }

    #[test]
    fn the_rectangle_holds_every_pixel_that_differs() {
        let reference = picture(4, &[0; 12]);
        let wrong = picture(4, &[0, 0, 9, 0, 9, 0, 0, 0, 0, 0, 0, 9]);
        let mut counts = PixelCounts::default();
        let found = compare(&wrong, &reference, 1, &mut counts).unwrap();
        assert_eq!(counts, PixelCounts { agree: 9, at_edges: 0, near: 3, rest: 0 });
        assert_eq!((found.pixels, found.x, found.y), (3, [0, 3], [0, 2]));
        assert_eq!((found.first.x, found.first.y), (2, 0));
        assert_eq!(wrong.difference(&reference).at(2, 0), [144; 3]);
    }
}
