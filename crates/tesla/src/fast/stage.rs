//! Inputs and outputs of graphics stages: words of a[] and v[], interpolants, words of o[].

use reconverge_simt::registers::Row;
use reconverge_simt::wide::Wide;

use super::lanes::{Body, Lanes};
use super::operands::Operation;
use crate::flow::WARP;
use crate::lane::interpolate::Position;

/// Sets a row to input word `number` at a position. The launch provides this word. [`Operation::c`] holds the position,
/// as [`code`] encodes positions.
pub(super) struct FromInput;

impl Body for FromInput {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let input = lanes.inputs.get(operation.number as usize).and_then(Option::as_ref);
        let values = input.map_or([0; WARP], |input| input.at(position(operation.c)).0);
        lanes.write(wide, operation.dst, operation.set, values);
    }
}

const CENTRE: u8 = 0;
const CENTROID: u8 = 1;
const FLAT: u8 = 2;

/// Returns the number that stands for a position in [`FromInput`].
pub(super) const fn code(position: Position) -> u8 {
    match position {
        Position::Centre => CENTRE,
        Position::Centroid => CENTROID,
        Position::Flat => FLAT,
    }
}

/// Returns the position for a number. This function is the inverse of [`code`].
#[inline(always)]
pub(super) const fn position(code: u8) -> Position {
    match code {
        CENTRE => Position::Centre,
        CENTROID => Position::Centroid,
        _ => Position::Flat,
    }
}

/// Sets a row to word `number` of o[].
pub(super) struct FromOutput;

impl Body for FromOutput {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let values = lanes.outputs.get(operation.number as usize).map_or([0; WARP], |row| row.0);
        lanes.row_mut(operation.dst).0 = values;
    }
}

/// Sets word `number` of o[] to a row. If `narrow[0]` is set, the operation writes the low half of the row to both
/// halves of word `number`. If no lane executes the operation, the word is not created.
pub(super) struct ToOutput;

impl Body for ToOutput {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let members = lanes.set(operation.set);
        if members == 0 {
            return;
        }
        let mut values = lanes.row(operation.src[0]);
        if operation.narrow[0] {
            for lane in 0..WARP {
                values[lane] = (values[lane] & 0xffff) * 0x1_0001;
            }
        }
        let word = operation.number as usize;
        if lanes.outputs.len() <= word {
            lanes.outputs.resize(word + 1, Row::ZERO);
        }
        if let Some(row) = lanes.outputs.get_mut(word) {
            wide.write(&mut row.0, &values, members.into());
        }
    }
}
