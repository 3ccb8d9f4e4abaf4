//! Reads the inputs of a vertex program from vertex arrays and from commands.

use std::collections::HashMap;

use reconverge_raster::format::{Format, Number};
use reconverge_simt::vram::Vram;
use reconverge_tesla::launch::LaneResults;

use super::format;
use super::methods::{Attrib, tesla as m};
use super::state::{State, Unknown, fields, load};

/// Number of vertex attributes.
pub(super) const ATTRIBUTES: usize = 16;

/// The bit of VERTEX_ARRAY_FETCH that enables an array.
const FETCHES: u32 = 1 << 29;

/// The values of an attribute for several vertices.
#[derive(Clone, Debug, Default)]
pub(super) struct AttributeColumn {
    first: [u32; 4],
    /// Values of all vertices. The list is empty if all values equal `first`.
    all: Vec<[u32; 4]>,
}

impl AttributeColumn {
    /// Adds the value of vertex `number`. The values must be added in the order of the vertices.
    fn push(&mut self, number: usize, value: [u32; 4]) {
        if self.all.is_empty() {
            if number == 0 {
                self.first = value;
            }
            if value == self.first {
                return;
            }
            self.all.resize(number, self.first);
        }
        self.all.push(value);
    }

    /// Returns a component of the attribute for all `count` vertices.
    pub(super) fn component(&self, component: usize, count: usize) -> Vec<u32> {
        let mut words = LaneResults::room();
        match self.all.is_empty() {
            true => words.resize(count, self.first[component]),
            false => words.extend(self.all.iter().map(|value| value[component])),
        }
        words
    }
}

/// Indices below this limit are looked up in a table instead of a hash map.
const DENSE: u32 = 1 << 18;

/// Entry of the table for an index without a vertex.
const NONE: u32 = u32::MAX;

/// The vertices between VERTEX_BEGIN_GL and VERTEX_END_GL.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    /// Word of VERTEX_BEGIN_GL.
    pub(super) begin: u32,
    pub(super) instance: u32,
    /// Ids of the vertices. Each vertex occurs once.
    pub(super) ids: Vec<u32>,
    pub(super) attributes: [AttributeColumn; ATTRIBUTES],
    /// Number of attributes that the vertices have. All later attributes are zeros.
    most: usize,
    /// Vertex numbers in the order of the draw. A primitive restart begins a new run.
    pub(super) runs: Vec<Vec<usize>>,
    /// For each index below [`DENSE`], the number of the vertex with this index, or [`NONE`]. `known` has the numbers
    /// for larger indices.
    dense: Vec<u32>,
    known: HashMap<u32, usize>,
    /// Words of VERTEX_DATA of an incomplete vertex.
    partial: Vec<u32>,
}

impl Batch {
    /// Empties the batch. Later vertices reuse the memory of the batch.
    pub(super) fn begin(&mut self, begin: u32, instance: u32) {
        let Batch { ids, attributes, runs, dense, known, partial, .. } = self;
        ids.clear();
        attributes.iter_mut().for_each(|column| {
            column.first = [0; 4];
            column.all.clear();
        });
        runs.resize_with(1, Vec::new);
        runs[0].clear();
        dense.clear();
        known.clear();
        partial.clear();
        (self.begin, self.instance, self.most) = (begin, instance, 0);
    }

    /// Adds a vertex with the attributes `attributes`. Returns the number of the vertex. Attributes that are not in
    /// `attributes` are zeros.
    fn push(&mut self, attributes: &[[u32; 4]], id: u32) -> usize {
        let place = self.ids.len();
        self.ids.push(id);
        self.most = self.most.max(attributes.len());
        let values = attributes.iter().chain(std::iter::repeat(&[0; 4]));
        for (column, value) in self.attributes[..self.most].iter_mut().zip(values) {
            column.push(place, *value);
        }
        self.add(place);
        place
    }

    fn add(&mut self, place: usize) {
        if let Some(run) = self.runs.last_mut() {
            run.push(place);
        }
    }

    /// Starts a new run of vertices.
    pub(super) fn restart(&mut self) {
        self.runs.push(Vec::new());
    }

    /// Adds the vertex that has this index in the arrays. `id` is the vertex id of this vertex.
    pub(super) fn fetched(&mut self, fetch: &Fetch, memory: Vram<'_>, index: u32, id: u32) {
        let known = match index < DENSE {
            true => {
                self.dense.get(index as usize).filter(|place| **place != NONE).map(|place| *place as usize)
            }
            false => self.known.get(&index).copied(),
        };
        if let Some(place) = known {
            return self.add(place);
        }
        let mut attributes = [[0; 4]; ATTRIBUTES];
        let attributes = &mut attributes[..fetch.used];
        fetch.attributes(memory, index, self.instance, attributes);
        let place = self.push(attributes, id);
        if index >= DENSE {
            self.known.insert(index, place);
            return;
        }
        if self.dense.len() <= index as usize {
            self.dense.resize(index as usize + 1, NONE);
        }
        self.dense[index as usize] = place as u32;
    }

    /// Adds a word of VERTEX_DATA. Returns whether the word completes a vertex.
    pub(super) fn data(&mut self, fetch: &Fetch, word: u32, id: u32) -> bool {
        self.partial.push(word);
        if self.partial.len() < fetch.inline_words() {
            return false;
        }
        let words = std::mem::take(&mut self.partial);
        let attributes = fetch.inline(&words);
        self.push(&attributes, id);
        true
    }

    /// Adds a vertex with the current values of all attributes.
    pub(super) fn current(&mut self, current: &[[u32; 4]; ATTRIBUTES], id: u32) {
        self.push(current, id);
    }
}

/// Source of an attribute's values.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The current value, for all vertices.
    Current([u32; 4]),
    /// Zeros, for all vertices.
    None,
    /// An array in memory.
    Array(Array),
}

#[derive(Clone, Copy, Debug)]
struct Array {
    format: Format,
    bgra: bool,
    enabled: bool,
    start: usize,
    stride: usize,
    /// Offset in memory of the end of the array.
    end: usize,
    divisor: Option<u32>,
}

/// Returns the value for a read past the end of an array.
fn runout(state: &State, memory: Vram<'_>) -> [u32; 4] {
    let runout = state.address(m::VERTEX_RUNOUT_ADDRESS_HIGH);
    [0, 1, 2, 3].map(|word| load(memory, runout + 4 * word))
}

/// Sources of all attributes of a draw.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    /// Two numbers at the time when the sources were created: [`State::changes`], and the number of changes of current
    /// attribute values. Later draws may reuse the sources until one of these numbers changes. The value is `None` if
    /// the creation reported an unsupported feature. In this case, later draws must not reuse the sources.
    made_after: Option<[u64; 2]>,
    sources: [Source; ATTRIBUTES],
    /// Number of sources up to the last source that is not [`Source::None`].
    used: usize,
    first_instance: u32,
    /// Value that a read past the end of an array returns.
    runout: [u32; 4],
}

impl Fetch {
    pub(super) fn new(
        state: &State,
        unknown: &mut Unknown,
        memory: Vram<'_>,
        current: &[[u32; 4]; ATTRIBUTES],
        changes: [u64; 2],
    ) -> Fetch {
        let named = unknown.times();
        let sources: [Source; ATTRIBUTES] = std::array::from_fn(|number| {
            let attrib = fields!(unknown, Attrib, state.nth(m::VERTEX_ARRAY_ATTRIB, number));
            if attrib.is_const {
                return Source::Current(current[number]);
            }
            if attrib.number == 0 && attrib.format == 0 {
                return Source::None;
            }
            let (Some(bits), Some(kind)) =
                (format::vertex(attrib.format.into()), format::vertex_number(attrib.number.into()))
            else {
                unknown.note(format!("vertex format {:#x}, type {:#x}", attrib.format, attrib.number));
                return Source::None;
            };
            let buffer = u32::from(attrib.buffer);
            let at = m::VERTEX_ARRAY_FETCH + 0x10 * buffer;
            let start = state.address(at + 4);
            let per_instance = state.nth(m::VERTEX_ARRAY_PER_INSTANCE, buffer as usize) & 1 != 0;
            Source::Array(Array {
                format: Format::new(bits, kind),
                bgra: attrib.bgra,
                enabled: state.word(at) & FETCHES != 0,
                start: start + usize::from(attrib.offset),
                stride: (state.word(at) & 0xfff) as usize,
                end: state.address(m::VERTEX_ARRAY_LIMIT_HIGH + 8 * buffer).saturating_add(1),
                divisor: per_instance.then(|| state.word(at + 12).max(1)),
            })
        });
        let last = sources.iter().rposition(|source| !matches!(source, Source::None));
        Fetch {
            used: last.map_or(0, |last| last + 1),
            made_after: (unknown.times() == named).then_some(changes),
            sources,
            first_instance: state.word(m::VB_INSTANCE_BASE),
            runout: runout(state, memory),
        }
    }

    /// Returns whether the sources can be reused for these change numbers. If the sources can be reused, reads `runout`
    /// from memory again.
    pub(super) fn renew(&mut self, state: &State, memory: Vram<'_>, changes: [u64; 2]) -> bool {
        let same = self.made_after == Some(changes);
        if same {
            self.runout = runout(state, memory);
        }
        same
    }

    /// Reads the first `values.len()` attributes of the vertex with this index.
    fn attributes(&self, memory: Vram<'_>, index: u32, instance: u32, values: &mut [[u32; 4]]) {
        let value = |source: &Source| match source {
            Source::Current(value) => *value,
            Source::None => [0; 4],
            Source::Array(array) if !array.enabled => [0; 4],
            Source::Array(array) => {
                let index = match array.divisor {
                    Some(divisor) => self.first_instance.wrapping_add(instance / divisor),
                    None => index,
                };
                let at = array.start.saturating_add((index as usize).saturating_mul(array.stride));
                let end = at.saturating_add(array.format.bytes.into());
                let mut element = [0; 16];
                let element = &mut element[..array.format.bytes.into()];
                match memory.read(at, element).filter(|_| end <= array.end) {
                    Some(bytes) => array.value(bytes),
                    None => self.runout,
                }
            }
        };
        values.iter_mut().zip(&self.sources).for_each(|(place, source)| *place = value(source));
    }

    /// Returns the number of words of VERTEX_DATA per vertex. Each attribute begins at the start of a word.
    fn inline_words(&self) -> usize {
        let words = |source: &Source| match source {
            Source::Array(array) => usize::from(array.format.bytes).div_ceil(4),
            Source::Current(_) | Source::None => 0,
        };
        self.sources.iter().map(words).sum::<usize>().max(1)
    }

    fn inline(&self, words: &[u32]) -> [[u32; 4]; ATTRIBUTES] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut at = 0;
        self.sources.map(|source| match source {
            Source::Current(value) => value,
            Source::None => [0; 4],
            Source::Array(array) => {
                let end = at + usize::from(array.format.bytes).next_multiple_of(4);
                let value = array.value(bytes.get(at..end).unwrap_or(&[]));
                at = end;
                value
            }
        })
    }
}

impl Array {
    /// Returns the four components of an element. Missing components are 0, 0, 0, 1.
    fn value(&self, bytes: &[u8]) -> [u32; 4] {
        let mut value = self.format.read(bytes);
        if self.format.bits[3] == 0 {
            let integer = matches!(self.format.numbers[0], Number::Uint | Number::Sint);
            value[3] = if integer { 1 } else { 1f32.to_bits() };
        }
        if self.bgra {
            value.swap(0, 2);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_a_vertex_lacks_are_zeros_whatever_the_others_have() {
        let value = |number: u32| [number; 4];
        let mut batch = Batch::default();
        for counts in [[1, 3, 2, 0], [3, 1, 3, 2], [2, 2, 2, 2]] {
            batch.begin(4, 0);
            for (vertex, count) in (1..).zip(counts) {
                batch.push(&vec![value(vertex); count], vertex);
            }
            for (number, column) in batch.attributes.iter().enumerate() {
                let expected: Vec<u32> = (1..)
                    .zip(counts)
                    .map(|(vertex, count)| if number < count { vertex } else { 0 })
                    .collect();
                assert_eq!(column.component(2, 4), expected, "{counts:?}, attribute {number}");
            }
        }
    }
}
