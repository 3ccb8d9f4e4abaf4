//! Vertices: converts the words of arrays and packets to input vectors of the vertex unit. Also converts the output
//! vectors of the vertex unit to vertices that are drawn.
//!
//! Source: AMD's R5xx 3D register reference, VAP_PROG_STREAM_CNTL. The contents of the vectors are from Mesa's
//! `r300_vs_draw.c` and `r300_state_derived.c`.

use std::mem::take;

use half::f16;
use reconverge_raster::vertex::Vertex;

use super::registers::{self as reg, *};
use super::state::{PVS_PLANES, State, fields};

/// Maximum number of vectors of a vertex, before and after the vertex unit.
pub(super) const VECTORS: usize = 16;
/// The vectors of a vertex.
pub(super) type Vectors = [[u32; 4]; VECTORS];

/// Numbers of colours and of sets of texture coordinates of a vertex. A vertex has the attributes in this order: all
/// colours, then all sets of texture coordinates.
pub(super) const COLORS: usize = 4;
pub(super) const SETS: usize = 8;

/// Three indices of vectors: the point size, the first colour, and the first set of coordinates. The indices apply to
/// vertices that bypass the vertex unit. Vector 0 is the position.
const WINDOW_POINT_SIZE: usize = 1;
const WINDOW_COLORS: usize = 2;
const WINDOW_SETS: usize = 6;

/// Conversion of consecutive words of a vertex to one input vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    /// Format of the words: DATA_TYPE.
    kind: u8,
    /// Number of words of the vertex that the stream skips after the words of this vector.
    skip: usize,
    /// Index of the vector.
    target: usize,
    signed: bool,
    normalized: bool,
    /// Method that converts a signed integer v of n bits to a fraction. 0: v / (2^(n-1) - 1). 1: as method 0, but at
    /// least -1. 2: (2v + 1) / (2^n - 1). The result of method 2 is never zero.
    method: u8,
    /// The four entries select x, y, z and w. An entry is the index of a component, 4 for the constant 0, or 5 for the
    /// constant 1.
    select: [u8; 4],
    /// Mask of the components that are written.
    mask: u8,
}

/// Conversion of the words of a vertex to input vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream(Vec<Element>);

impl Stream {
    pub(super) fn new(state: &mut State) -> Stream {
        let methods = state.word(reg::VAP_PSC_SGN_NORM_CNTL);
        let mut elements = Vec::new();
        for number in 0..VECTORS {
            let half = |address: u32| state.nth(address, number / 2) >> (16 * (number % 2)) & 0xffff;
            let (word, extended) = (half(reg::VAP_PROG_STREAM_CNTL_0), half(reg::VAP_PROG_STREAM_CNTL_EXT_0));
            elements.push(Element {
                kind: (word & 0xf) as u8,
                skip: (word >> 4 & 0xf) as usize,
                target: (word >> 8 & 0x1f) as usize,
                signed: word >> 14 & 1 != 0,
                normalized: word >> 15 & 1 != 0,
                method: (methods >> (2 * number) & 3) as u8,
                select: [0, 1, 2, 3].map(|at| (extended >> (3 * at) & 7) as u8),
                mask: (extended >> 12 & 0xf) as u8,
            });
            if word >> 13 & 1 != 0 {
                break;
            }
        }
        let stream = Stream(elements);
        if !stream.is_known() {
            state.unknown.note("VAP_PROG_STREAM_CNTL: data type 13 to 15");
        }
        stream
    }

    /// Returns the mask of the vectors that the stream writes; bit n is vector n.
    pub(super) fn targets(&self) -> u32 {
        self.0.iter().fold(0, |targets, element| targets | 1 << element.target)
    }

    /// Returns whether all formats of the stream are supported.
    pub(super) fn is_known(&self) -> bool {
        self.0.iter().all(|element| !matches!(element.kind, 13..=15))
    }

    /// Converts the words of a vertex to vectors. Missing words read as 0.
    pub(super) fn vectors(&self, words: &[u32]) -> Vectors {
        let (mut vectors, mut at) = ([[0; 4]; VECTORS], 0);
        for element in &self.0 {
            let word = |number: usize| words.get(at + number).copied().unwrap_or(0);
            let (values, used) = element.values(word);
            at += used + element.skip;
            let Some(vector) = vectors.get_mut(element.target) else { continue };
            for (component, place) in vector.iter_mut().enumerate() {
                if element.mask >> component & 1 != 0 {
                    *place = match element.select[component] {
                        select @ 0..=3 => values[usize::from(select)],
                        5 => 1f32.to_bits(),
                        _ => 0,
                    };
                }
            }
        }
        vectors
    }
}

impl Element {
    /// Returns the components, and the number of words that the components occupy.
    fn values(&self, word: impl Fn(usize) -> u32) -> ([u32; 4], usize) {
        let mut values = [0, 0, 0, 1f32.to_bits()];
        let half = |number: usize| (word(number / 2) >> (16 * (number % 2))) as u16;
        let used = match self.kind {
            0..=3 => {
                let count = usize::from(self.kind) + 1;
                (0..count).for_each(|at| values[at] = word(at));
                count
            }
            4 | 5 => {
                let byte = |at: usize| self.number(word(0) >> (8 * at) & 0xff, 8);
                let order = if self.kind == 5 { [2, 1, 0, 3] } else { [0, 1, 2, 3] };
                values = order.map(byte);
                1
            }
            6 | 7 => {
                let count = if self.kind == 6 { 2 } else { 4 };
                (0..count).for_each(|at| values[at] = self.number(half(at).into(), 16));
                count / 2
            }
            8 | 9 => {
                // VECTOR_3_TTT and VECTOR_3_EET: T means ten bits, and E means eleven bits. The lowest bits contain x,
                // as in all formats.
                let widths = if self.kind == 8 { [10; 3] } else { [11, 11, 10] };
                let mut first = 0;
                for (value, width) in values.iter_mut().zip(widths) {
                    *value = self.number(word(0) >> first & ((1 << width) - 1), width);
                    first += width;
                }
                1
            }
            10 => {
                (0..4).for_each(|at| values[at] = word(at));
                8
            }
            11 | 12 => {
                let count = if self.kind == 11 { 2 } else { 4 };
                (0..count).for_each(|at| values[at] = f16::from_bits(half(at)).to_f32().to_bits());
                count / 2
            }
            _ => 1,
        };
        (values, used)
    }

    /// Converts an integer of `bits` bits to the bits of a 32-bit float.
    fn number(&self, raw: u32, bits: u32) -> u32 {
        let signed = f64::from((raw << (32 - bits)) as i32 >> (32 - bits));
        let most = f64::from((1u32 << bits) - 1);
        let half = f64::from((1u32 << (bits - 1)) - 1);
        let value = match (self.normalized, self.signed) {
            (false, false) => f64::from(raw),
            (false, true) => signed,
            (true, false) => f64::from(raw) / most,
            (true, true) => match self.method {
                0 => signed / half,
                1 => (signed / half).max(-1.),
                _ => (2. * signed + 1.) / most,
            },
        };
        (value as f32).to_bits()
    }
}

/// Output vectors of the vertex unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    format: OutputVtxFmt0,
    /// Three bits for each set of coordinates: the number of components of the set.
    sets: u32,
    /// Whether vertices bypass the vertex unit. If so, each kind of vector has a fixed index.
    bypass: bool,
    clip: ClipCntl,
}

impl Layout {
    pub(super) fn new(state: &mut State) -> Layout {
        let status = fields!(state, CntlStatus, state.word(reg::VAP_CNTL_STATUS));
        if status.vc_swap != 0 {
            state.unknown.note(format!("VAP_CNTL_STATUS.VC_SWAP {}", status.vc_swap));
        }
        let sets = state.word(reg::VAP_OUTPUT_VTX_FMT_1);
        for set in 0..SETS {
            let count = sets >> (3 * set) & 7;
            if count > 4 {
                state.unknown.note(format!("VAP_OUTPUT_VTX_FMT_1.TEX_{set}_COMP_CNT {count}"));
            }
        }
        Layout {
            format: fields!(state, OutputVtxFmt0, state.word(reg::VAP_OUTPUT_VTX_FMT_0)),
            sets,
            bypass: status.tcl_bypass,
            clip: fields!(state, ClipCntl, state.word(reg::VAP_CLIP_CNTL)),
        }
    }

    /// Returns whether vertices bypass the vertex unit.
    pub(super) fn bypasses(&self) -> bool {
        self.bypass
    }

    /// Returns the clip planes of the registers.
    pub(super) fn clip(&self) -> ClipCntl {
        self.clip
    }

    /// Returns whether each vertex has a point size.
    pub(super) fn has_point_size(&self) -> bool {
        self.format.pt_size_present
    }

    /// Returns whether vertices have the colour with this number.
    pub(super) fn has_color(&self, number: usize) -> bool {
        self.format.colors_present >> number & 1 != 0
    }

    /// Returns how many components a set of coordinates has. The result is at most 4. The result is 0 if vertices do
    /// not have the set.
    pub(super) fn components(&self, set: usize) -> usize {
        (self.sets >> (3 * set) & 7).min(4) as usize
    }

    /// Replaces the contents of `vertices` by vertices with the vectors `all`. Reuses the memory of the old vertices.
    pub(super) fn vertices(&self, state: &State, all: &[Vectors], vertices: &mut Vec<Vertex>) {
        // After the vertex unit, vectors are contiguous. If vertices bypass the vertex unit, each kind of vector has a
        // fixed index.
        let (mut next, mut places) = (1, [None; COLORS + SETS]);
        let mut place = |present: bool, fixed: usize| {
            let place = if self.bypass { fixed } else { next };
            next += usize::from(present);
            present.then_some(place)
        };
        let point_size = place(self.has_point_size(), WINDOW_POINT_SIZE);
        for color in 0..COLORS {
            places[color] = place(self.has_color(color), WINDOW_COLORS + color);
        }
        for set in 0..SETS {
            places[COLORS + set] = place(self.components(set) != 0, WINDOW_SETS + set);
        }
        let planes: [[f32; 4]; 6] =
            std::array::from_fn(|plane| state.pvs(PVS_PLANES + plane).map(f32::from_bits));
        let vertex = |vectors: &Vectors, mut attributes: Vec<[u32; 4]>| {
            let vector =
                |place: Option<usize>| place.and_then(|at| vectors.get(at)).copied().unwrap_or_default();
            let position = vectors[0].map(f32::from_bits);
            let distance = |plane: usize| match planes.get(plane) {
                Some(values) if self.clip.ucp_ena >> plane & 1 != 0 => {
                    (0..4).map(|at| position[at] * values[at]).sum()
                }
                _ => 0.,
            };
            attributes.clear();
            attributes.extend(places.iter().map(|place| vector(*place)));
            Vertex {
                inner_side: false,
                position,
                point_size: f32::from_bits(vector(point_size)[0]),
                distances: std::array::from_fn(distance),
                attributes,
            }
        };
        vertices.truncate(all.len());
        let (again, others) = all.split_at(vertices.len());
        for (place, vectors) in vertices.iter_mut().zip(again) {
            *place = vertex(vectors, take(&mut place.attributes));
        }
        vertices.extend(others.iter().map(|vectors| vertex(vectors, Vec::new())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stream is captured from a draw without the vertex unit. The stream has two vectors of four floats: the
    /// position, and the first set of coordinates.
    #[test]
    fn a_captured_stream_goes_to_position_and_first_coordinates() {
        let mut state = State::default();
        state.set(reg::VAP_PROG_STREAM_CNTL_0, 0x2603_0003);
        state.set(reg::VAP_PROG_STREAM_CNTL_EXT_0, 0xf688_f688);
        let vectors = Stream::new(&mut state).vectors(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((vectors[0], vectors[6]), ([1, 2, 3, 4], [5, 6, 7, 8]));
    }

    #[test]
    fn more_than_four_components_of_a_set_are_four_and_named() {
        let mut state = State::default();
        state.set(reg::VAP_OUTPUT_VTX_FMT_1, 4 | 5 << 3 | 7 << 21);
        let layout = Layout::new(&mut state);
        assert_eq!([0, 1, 2, 7].map(|set| layout.components(set)), [4, 4, 0, 4]);
        let named = state.unknown.list();
        assert_eq!(named.len(), 2, "{named:?}");
    }

    #[test]
    fn components_are_selected_and_completed() {
        let mut state = State::default();
        // Two floats are selected as x, y, 0, 1. One float is selected as x, 0, 0, 1.
        state.set(reg::VAP_PROG_STREAM_CNTL_0, 0x2200_0101);
        state.set(reg::VAP_PROG_STREAM_CNTL_EXT_0, 0xfb20_fb08);
        let vectors = Stream::new(&mut state).vectors(&[7, 8, 9]);
        let one = 1f32.to_bits();
        assert_eq!((vectors[1], vectors[2]), ([7, 8, 0, one], [9, 0, 0, one]));
    }

    /// R300_DATA_TYPE_VECTOR_3_TTT and VECTOR_3_EET.
    #[test]
    fn three_components_share_a_word() {
        let mut state = State::default();
        state.set(reg::VAP_PROG_STREAM_CNTL_0, 0x6109_0008);
        state.set(reg::VAP_PROG_STREAM_CNTL_EXT_0, 0xf688_f688);
        let words = [1023 | 2 << 10 | 3 << 20, 0x7ff | 5 << 11 | 0x3ff << 22];
        let vectors = Stream::new(&mut state).vectors(&words);
        let floats = [vectors[0], vectors[1]].map(|vector| vector.map(f32::from_bits));
        assert_eq!(floats, [[1023., 2., 3., 1.], [-1., 5., -1., 1.]]);
        assert!(state.unknown.list().is_empty());
    }

    /// REG, VAP_PSC_SGN_NORM_CNTL: the method "no zero" is (2v + 1) / (2^n - 1).
    #[test]
    fn integers_become_fractions() {
        let element = |signed, normalized, method| Element {
            kind: 4,
            skip: 0,
            target: 0,
            signed,
            normalized,
            method,
            select: [0, 1, 2, 3],
            mask: 0xf,
        };
        let number = |element: Element, raw| f32::from_bits(element.number(raw, 8));
        assert_eq!(number(element(false, true, 2), 0xff), 1.);
        assert_eq!(number(element(true, true, 2), 0x80), -1.);
        assert_eq!(number(element(true, true, 1), 0x80), -1.);
        assert_eq!(number(element(true, false, 2), 0x80), -128.);
    }
}
