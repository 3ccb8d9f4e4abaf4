//! Problems that are typical of parallel programs. The problems are tree reduction, a sparse matrix, a graph, a grid,
//! text search, and a radix sort.

use crate::array::{Array, Dtype};

use super::problems::{floats, mixed, picture, problem, words};
use super::{Inputs, Problem, Rule};

// ---- Tree reduction

/// Sums blocks of 1024 numbers. The inputs are small whole numbers, so the sums are exact in any order.
pub(super) static REDUCE: Problem = problem(
    "reduce",
    Rule::Exact,
    || Inputs(vec![("values", floats(1 << 21, 1, whole))]),
    |inputs| inputs.floats("values").chunks(1024).map(|block| block.iter().sum::<f32>().to_bits()).collect(),
);

/// Returns a pseudo-random whole number from -8 to 7.
fn whole(number: u32) -> f32 {
    (mixed(number) % 16) as f32 - 8.0
}

// ---- Sparse matrix

const ROWS: u32 = 1 << 17;

/// Multiplies a sparse matrix by a vector. Each row of the matrix has 0 to 31 elements, and 8 on average. The inputs
/// are small whole numbers, so products and sums are exact.
pub(super) static SPMV: Problem = problem(
    "spmv",
    Rule::Exact,
    || {
        let lengths = (0..ROWS).map(|row| (mixed(row) & mixed(row ^ 0x5555_5555) & 31) as usize);
        let starts = starts(lengths);
        let count = starts[ROWS as usize];
        Inputs(vec![
            ("rows", words(ROWS + 1, |row| starts[row as usize])),
            ("columns", words(count, |at| mixed(at ^ 0x3333_3333) % ROWS)),
            ("values", floats(count, 1, whole)),
            ("x", floats(ROWS, 1, |row| whole(row ^ 0x0f0f_0f0f))),
        ])
    },
    |inputs| {
        let (starts, columns) = (inputs.words("rows"), inputs.words("columns"));
        let (values, x) = (inputs.floats("values"), inputs.floats("x"));
        let row = |ends: &[u32]| {
            let products =
                (ends[0]..ends[1]).map(|at| at as usize).map(|at| values[at] * x[columns[at] as usize]);
            products.fold(0.0, |sum: f32, product| sum + product).to_bits()
        };
        starts.windows(2).map(row).collect()
    },
);

/// Concatenates lists of these lengths. For each list, returns the index of its first element in the concatenation. The
/// last item of the result is the number of all elements.
fn starts(lengths: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut starts = vec![0];
    for length in lengths {
        starts.push(starts[starts.len() - 1] + length as u32);
    }
    starts
}

// ---- Graph

const VERTICES: u32 = 1 << 18;
const NO_LEVEL: u32 = u32::MAX;
/// Level of the vertices in the frontier. In the next step of the search, the neighbours of these vertices get the next
/// level.
const FRONTIER: u32 = 4;

/// One step of a breadth-first search. Each vertex of the frontier sets the level of its neighbours.
pub(super) static BFS: Problem = problem("bfs", Rule::Exact, searched_graph, next_level);

/// One step of the search of [`BFS`], in the opposite direction. Each vertex without a level checks whether one of its
/// neighbours is in the frontier. Edges are undirected, so the result equals the result of [`BFS`].
pub(super) static PULL: Problem = problem("pull", Rule::Exact, searched_graph, next_level);

/// Returns a graph as lists of neighbours. A search from four vertices has set the levels of all vertices up to the
/// frontier. A vertex has 0 to 46 neighbours, and 8 on average. Few vertices have more than 20 neighbours.
fn searched_graph() -> Inputs {
    let edge = |edge: u32| {
        let other = mixed(2 * edge + 1) & (mixed((2 * edge + 1) ^ 0x5555_5555) | !15);
        // Multiplication by an odd number maps different vertices to different vertices. The vertices that have many
        // neighbours are then spread over all numbers.
        [mixed(2 * edge) % VERTICES, other.wrapping_mul(0x9e37_79b1) % VERTICES]
    };
    let mut lists = vec![Vec::new(); VERTICES as usize];
    for [one, other] in (0..4 * VERTICES).map(edge) {
        lists[one as usize].push(other);
        lists[other as usize].push(one);
    }
    let starts = starts(lists.iter().map(Vec::len));
    let neighbours = lists.concat();
    let mut levels = vec![NO_LEVEL; VERTICES as usize];
    levels[..4].fill(0);
    for level in 0..FRONTIER {
        levels = stepped_from(level, &starts, &neighbours, &levels);
    }
    let array = |words: Vec<u32>| Array::from_words(Dtype::U32, vec![words.len()], words);
    Inputs(vec![("rows", array(starts)), ("neighbours", array(neighbours)), ("levels", array(levels))])
}

fn next_level(inputs: &Inputs) -> Vec<u32> {
    let (starts, neighbours) = (inputs.words("rows"), inputs.words("neighbours"));
    stepped_from(FRONTIER, &starts, &neighbours, &inputs.words("levels"))
}

/// Returns the levels after one step. If a neighbour of a vertex with `level` does not have a level yet, the neighbour
/// gets the next level.
fn stepped_from(level: u32, starts: &[u32], neighbours: &[u32], levels: &[u32]) -> Vec<u32> {
    let mut after = levels.to_vec();
    for vertex in (0..levels.len()).filter(|&vertex| levels[vertex] == level) {
        for &neighbour in &neighbours[starts[vertex] as usize..starts[vertex + 1] as usize] {
            let found = &mut after[neighbour as usize];
            *found = if *found == NO_LEVEL { level + 1 } else { *found };
        }
    }
    after
}

// ---- Grid

/// One step of heat diffusion on a grid. The inputs are whole numbers, and the weight is a power of two. So the results
/// are exact.
pub(super) static STENCIL: Problem = problem(
    "stencil",
    Rule::Exact,
    || Inputs(vec![("cells", floats(1 << 20, 1, |at| (mixed(at) % 256) as f32))]),
    |inputs| heat(&inputs.floats("cells"), 1024, 1),
);

/// One step of [`STENCIL`] on four grids at the same time. Each grid is one component of a texture.
pub(super) static STENCIL4: Problem = problem(
    "stencil4",
    Rule::Exact,
    || Inputs(vec![("texels", picture(512))]),
    |inputs| heat(&inputs.floats("texels"), 512, 4),
);

/// Computes one diffusion step for each cell of `components` grids. A cell at the border uses its own value for a
/// missing neighbour.
fn heat(cells: &[f32], side: usize, components: usize) -> Vec<u32> {
    let at = |x: usize, y: usize, component: usize| cells[(y * side + x) * components + component];
    let cell = |place: usize| {
        let (component, x, y) = (place % components, place / components % side, place / components / side);
        let (left, up) = (x.saturating_sub(1), y.saturating_sub(1));
        let (right, down) = ((x + 1).min(side - 1), (y + 1).min(side - 1));
        let around =
            [at(left, y, component), at(right, y, component), at(x, up, component), at(x, down, component)];
        let centre = at(x, y, component);
        (centre + (around.iter().sum::<f32>() - 4.0 * centre) * 0.125).to_bits()
    };
    (0..cells.len()).map(cell).collect()
}

// ---- Text search

const LINE: usize = 64;
const WORD: &[u8] = b"GATTACAT";

/// Finds a word in lines of text. The lines consist of the letters ACGT. About half of the lines contain the word, at a
/// random position.
pub(super) static FIND: Problem = problem(
    "find",
    Rule::Exact,
    || {
        let bytes = |bytes: Vec<u8>| Array { dtype: Dtype::U8, shape: vec![bytes.len()], bytes };
        let mut lines: Vec<u8> = (0..1 << 21).map(|at| b"ACGT"[mixed(at) as usize % 4]).collect();
        for (number, line) in (0..).zip(lines.chunks_mut(LINE)) {
            let chosen = mixed(number ^ 0x5555_5555) as usize;
            if chosen.is_multiple_of(2) {
                let place = (chosen >> 1) % PLACES;
                line[place..place + WORD.len()].copy_from_slice(WORD);
            }
        }
        Inputs(vec![("lines", bytes(lines)), ("word", bytes(WORD.to_vec()))])
    },
    |inputs| {
        let (lines, word) = (&inputs.array("lines").bytes, &inputs.array("word").bytes);
        let found = |line: &[u8]| line.windows(word.len()).position(|letters| letters == word);
        lines.chunks(LINE).map(|line| found(line).unwrap_or(PLACES) as u32).collect()
    },
);

/// Number of possible positions of the word in a line.
const PLACES: usize = LINE - WORD.len() + 1;

// ---- Radix sort

/// Sorts each block of 512 numbers by bits 8 to 11. The sort is stable.
pub(super) static RADIX: Problem = problem(
    "radix",
    Rule::Exact,
    || Inputs(vec![("keys", words(1 << 20, mixed))]),
    |inputs| {
        let mut keys = inputs.words("keys");
        keys.chunks_mut(512).for_each(|block| block.sort_by_key(|key| key >> 8 & 15));
        keys
    },
);
