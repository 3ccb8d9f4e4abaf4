//! Finds one pixel or vertex of a launch by its position in the launch. Reduces the launch to the quad that contains
//! this pixel, or to this vertex. The launch file must list the positions of the pixels or vertices.

use std::fmt;
use std::ops::Range;

use crate::array::Dtype;
use crate::error::Error;
use crate::launch::LaunchFile;
use crate::values::{Files, Values};

/// The requested pixel or vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A pixel with these coordinates.
    Pixel {
        /// Column, counted from the left.
        x: i32,
        /// Row, counted from the row that is first in memory.
        y: i32,
        /// Number of the fragment, from 0. Several primitives may cover one pixel. `None` selects the last fragment.
        fragment: Option<usize>,
    },
    /// A vertex with this index in this instance.
    Vertex {
        /// Index of the vertex.
        index: u32,
        /// Number of the instance.
        instance: u32,
    },
}

/// The lane that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane's index in the whole launch.
    pub lane: usize,
    /// The lanes that remain in the reduced launch. The remaining lanes are a quad of pixels, or one vertex.
    pub lanes: Range<usize>,
    /// Number of lanes of the whole launch.
    pub of: usize,
    /// Number of fragments that cover the pixel. For a vertex, the number is 1.
    pub fragments: usize,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Pixel { x, y, .. } => write!(f, "pixel {x},{y}"),
            Asked::Vertex { index, instance: 0 } => write!(f, "vertex {index}"),
            Asked::Vertex { index, instance } => write!(f, "vertex {index} of instance {instance}"),
        }
    }
}

impl LaunchFile {
    /// Reduces the launch to a vertex, or to the quad that contains a pixel.
    ///
    /// # Errors
    /// Returns an error if the launch file does not list the positions of the lanes, or if no lane has the requested
    /// position.
    pub fn choose(&mut self, asked: Asked, files: &dyn Files) -> Result<Piece, Error> {
        let piece = match asked {
            Asked::Pixel { x, y, fragment } => {
                let rows = rows(self.common.pixels.as_ref(), "pixels", Dtype::I32, files)?;
                let rows = rows.as_chunks::<3>().0;
                let found: Vec<usize> = (0..rows.len())
                    .filter(|lane| rows[*lane] == [x.cast_unsigned(), y.cast_unsigned(), 1])
                    .collect();
                let lane = fragment.map_or(found.last(), |number| found.get(number));
                let lane = *lane.ok_or_else(|| {
                    let why = match found.len() {
                        0 => format!("no fragment covers this pixel; {}", extent(rows)),
                        count => format!("{count} fragments cover this pixel, numbered from 0"),
                    };
                    Error::Machine(format!("{asked}: {why}"))
                })?;
                let quad = lane / 4 * 4;
                Piece {
                    lane,
                    lanes: quad..(quad + 4).min(rows.len()),
                    of: rows.len(),
                    fragments: found.len(),
                }
            }
            Asked::Vertex { index, instance } => {
                let rows = rows(self.common.vertices.as_ref(), "vertices", Dtype::U32, files)?;
                let rows = rows.as_chunks::<2>().0;
                let lane = rows.iter().position(|row| *row == [index, instance]).ok_or_else(|| {
                    let indices = rows.iter().map(|[index, _]| *index);
                    let (low, high) = (indices.clone().min().unwrap_or(0), indices.max().unwrap_or(0));
                    Error::Machine(format!("{asked}: not found; indices are from {low} to {high}"))
                })?;
                Piece { lane, lanes: lane..lane + 1, of: rows.len(), fragments: 1 }
            }
        };
        self.common.piece = Some(piece.lanes.clone());
        Ok(piece)
    }
}

/// Returns the 32-bit words of the field `field`. The field must have one row per lane.
fn rows(values: Option<&Values>, field: &str, dtype: Dtype, files: &dyn Files) -> Result<Vec<u32>, Error> {
    let values = values.ok_or_else(|| {
        Error::Machine(format!(
            "missing `{field}` in the launch; this field states the positions of the lanes"
        ))
    })?;
    Ok(values.load_as(field, dtype, files)?.words().collect())
}

/// Describes the ranges of the x and y coordinates of a launch's pixels.
fn extent(rows: &[[u32; 3]]) -> String {
    let covered =
        || rows.iter().filter(|row| row[2] == 1).map(|[x, y, _]| (x.cast_signed(), y.cast_signed()));
    let range = |of: fn((i32, i32)) -> i32| Some((covered().map(of).min()?, covered().map(of).max()?));
    match range(|(x, _)| x).zip(range(|(_, y)| y)) {
        Some(((x0, x1), (y0, y1))) => format!("x is from {x0} to {x1}, y from {y0} to {y1}"),
        None => "no pixel is covered".to_owned(),
    }
}
