//! The problems of the suite. Each problem has inputs, and a function in plain Rust that computes the expected outputs.
//! The inputs are the same in every run.

use crate::array::{Array, Dtype};

use super::{Inputs, Problem, Rule};

pub(super) const fn problem(
    name: &'static str,
    rule: Rule,
    inputs: fn() -> Inputs,
    expected: fn(&Inputs) -> Vec<u32>,
) -> Problem {
    Problem { name, inputs, expected, rule }
}

/// Returns a pseudo-random word that depends only on `number`. The function is the final mix of MurmurHash3.
pub(super) fn mixed(number: u32) -> u32 {
    let mut h = number.wrapping_mul(0x9e37_79b9);
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^ h >> 16
}

pub(super) fn words(count: u32, word: impl Fn(u32) -> u32) -> Array {
    Array::from_words(Dtype::U32, vec![count as usize], (0..count).map(word))
}

/// Returns an array of `rows` rows, each with `row` numbers. `number` returns the number at an index.
pub(super) fn floats(rows: u32, row: u32, number: impl Fn(u32) -> f32) -> Array {
    let shape = if row == 1 { vec![rows as usize] } else { vec![rows as usize, row as usize] };
    Array::from_words(Dtype::F32, shape, (0..rows * row).map(|at| number(at).to_bits()))
}

/// Returns a pseudo-random multiple of 2^-24 that is at least 0 and less than 1.
fn fraction(number: u32) -> f32 {
    (mixed(number) >> 8) as f32 / (1 << 24) as f32
}

// ---- Matrix product

const SIDE: usize = 256;

/// Multiplies two matrices. The inputs are small whole numbers, so products and sums are exact.
pub(super) static MATMUL: Problem = problem(
    "matmul",
    Rule::Exact,
    || {
        let count = (SIDE * SIDE) as u32;
        let whole = |number: u32| (mixed(number) % 16) as f32 - 8.0;
        Inputs(vec![("a", floats(count, 1, whole)), ("b", floats(count, 1, |at| whole(at + count)))])
    },
    |inputs| {
        let (a, b) = (inputs.floats("a"), inputs.floats("b"));
        let at = |row: usize, column: usize| {
            let products = (0..SIDE).map(|k| a[row * SIDE + k] * b[k * SIDE + column]);
            products.fold(0.0, |sum: f32, product| sum + product)
        };
        (0..SIDE * SIDE).map(|place| at(place / SIDE, place % SIDE).to_bits()).collect()
    },
);

// ---- Gravity of bodies

/// Positions and masses are between 0 and 1. The problem needs a tolerance, because multiply-add truncates its product
/// and the root is approximate. The errors add up over 2048 terms. A term can be as large as 2^15.
pub(super) static NBODY: Problem = problem(
    "nbody",
    Rule::Within { abs: 0.5, rel: 1e-3 },
    || Inputs(vec![("bodies", floats(2048, 4, fraction))]),
    |inputs| {
        let bodies = inputs.floats("bodies");
        let bodies: Vec<[f64; 4]> =
            bodies.chunks(4).map(|body| std::array::from_fn(|at| f64::from(body[at]))).collect();
        let acceleration = |body: &[f64; 4]| {
            let mut sum = [0.0; 3];
            for other in &bodies {
                let d: [f64; 3] = std::array::from_fn(|at| other[at] - body[at]);
                let squared = d.iter().map(|d| d * d).sum::<f64>() + 1.0 / 1024.0;
                let factor = other[3] / (squared * squared.sqrt());
                (0..3).for_each(|at| sum[at] += d[at] * factor);
            }
            [sum[0], sum[1], sum[2], 0.0].map(|sum| (sum as f32).to_bits())
        };
        bodies.iter().flat_map(acceleration).collect()
    },
);

// ---- Shared memory and barriers

pub(super) static SORT: Problem = problem(
    "sort",
    Rule::Exact,
    || Inputs(vec![("keys", words(1 << 18, mixed))]),
    |inputs| {
        let mut keys = inputs.words("keys");
        keys.chunks_mut(512).for_each(<[u32]>::sort_unstable);
        keys
    },
);

pub(super) static SCAN: Problem = problem(
    "scan",
    Rule::Exact,
    || Inputs(vec![("values", words(1 << 19, mixed))]),
    |inputs| {
        let running = |sum: &mut u32, value: &u32| {
            *sum = sum.wrapping_add(*value);
            Some(*sum)
        };
        inputs
            .words("values")
            .chunks(256)
            .flat_map(|block| block.iter().scan(0, running).collect::<Vec<_>>())
            .collect()
    },
);

// ---- Only registers

pub(super) static HASH: Problem = problem("hash", Rule::Exact, Inputs::default, |_| {
    let hash = |lane: u32| {
        let (mut h, mut k) = (lane, 0x9e37_79b9_u32);
        for _ in 0..256 {
            h ^= h << 13;
            h ^= h >> 17;
            h ^= h << 5;
            h = h.wrapping_add(k);
            k = k.wrapping_add(0x9e37_79b9);
        }
        h
    };
    (0..1 << 18).map(hash).collect()
});

pub(super) static HASH4: Problem = problem("hash4", Rule::Exact, Inputs::default, |_| {
    let hash = |number: u32| {
        (0..128).fold(number, |h, round| {
            let h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
            let h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
            (h ^ h >> 16).wrapping_add(round)
        })
    };
    (0..4 << 18).map(hash).collect()
});

pub(super) static NESTED: Problem = problem("nested", Rule::Exact, Inputs::default, |_| {
    let count = |lane: u32| {
        let mut a = lane;
        for i in 0..(lane ^ lane >> 7) % 32 {
            for j in 0..(a >> 3) % 16 {
                a = (a << 1 ^ a >> 5).wrapping_add(j);
            }
            a = a.wrapping_add(i);
        }
        a
    };
    (0..1 << 17).map(count).collect()
});

// ---- Tables and trees

/// Searches for keys in a binary tree. The sorted nodes are 1, 5, 9, …, so every fourth key is a node.
pub(super) static SEARCH: Problem = problem(
    "search",
    Rule::Exact,
    || {
        let node = |at: u32| match at {
            0 => 0,
            // The tree is full and has 16 levels. So the level of a node and the index of the node in this level
            // determine the index of the node in sorted order.
            _ => {
                let level = at.ilog2();
                let order = (2 * (at - (1 << level)) + 1) << (15 - level);
                4 * (order - 1) + 1
            }
        };
        Inputs(vec![("tree", words(1 << 16, node)), ("keys", words(1 << 18, |at| mixed(at) >> 14))])
    },
    |inputs| {
        let tree = inputs.words("tree");
        let search = |key: u32| {
            let mut node = 1;
            while node < 1 << 16 && tree[node] != key {
                node = 2 * node + usize::from(tree[node] < key);
            }
            node as u32
        };
        inputs.words("keys").into_iter().map(search).collect()
    },
);

/// Each bit is set in a quarter of the values, so low values occur more often than high values.
pub(super) static HISTOGRAM: Problem = problem(
    "histogram",
    Rule::Exact,
    || Inputs(vec![("values", words(1 << 21, |at| mixed(at) & mixed(at ^ 0x5555_5555) & 0xff))]),
    |inputs| {
        let mut counts = vec![0; 256];
        inputs.words("values").into_iter().for_each(|value| counts[value as usize] += 1);
        counts
    },
);

/// Looks up values in the table of CRC-32.
pub(super) static TABLE: Problem = problem(
    "table",
    Rule::Exact,
    || {
        let entry =
            |byte: u32| (0..8).fold(byte, |c, _| if c & 1 != 0 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
        Inputs(vec![("table", words(256, entry))])
    },
    |inputs| stepped(&inputs.words("table"), 1 << 18, 8),
);

pub(super) static TABLE16: Problem = problem(
    "table16",
    Rule::Exact,
    || Inputs(vec![("table", words(16, mixed))]),
    |inputs| stepped(&inputs.words("table"), 1 << 17, 4),
);

/// Performs 64 table look-ups per lane. The first look-up depends on the lane's number. Each later look-up depends on
/// the previous look-up. An index of the table has `bits` bits.
fn stepped(table: &[u32], lanes: u32, bits: u32) -> Vec<u32> {
    let steps = |lane: u32| {
        let (mut c, mut n) = (u32::MAX, lane);
        for _ in 0..64 {
            c = table[(c ^ n) as usize % table.len()] ^ c >> bits;
            n = n.wrapping_add(c);
        }
        c
    };
    (0..lanes).map(steps).collect()
}

// ---- Iteration

/// Computes square roots by Newton's method. The reciprocal is approximate, so an error of a millionth remains after
/// the last iteration.
pub(super) static NEWTON: Problem = problem(
    "newton",
    Rule::Within { abs: 0.0, rel: 2e-6 },
    || {
        let a = |at| 0.001 + 1e6 * fraction(at) * fraction(at + (1 << 20)).powi(8);
        Inputs(vec![("a", floats(1 << 20, 1, a))])
    },
    |inputs| inputs.floats("a").into_iter().map(|a| (f64::from(a).sqrt() as f32).to_bits()).collect(),
);

// ---- Functions

/// Prices of options by the Black-Scholes formula. The machines approximate logarithms, exponentials, reciprocals and
/// roots. In addition, Tesla's multiply-add truncates its product.
pub(super) static OPTIONS: Problem = problem(
    "options",
    Rule::Within { abs: 1e-4, rel: 1e-5 },
    || {
        let ranges = [(5.0, 25.0), (1.0, 99.0), (0.25, 9.75), (0.0, 0.0)];
        let number = |at: u32| ranges[at as usize % 4].0 + ranges[at as usize % 4].1 * fraction(at);
        Inputs(vec![("options", floats(1 << 18, 4, number))])
    },
    |inputs| {
        // The cumulative normal distribution. A polynomial in 1 / (1 + 0.2316419 |d|) approximates this function.
        let normal = |d: f64| {
            let k = 1.0 / (1.0 + 0.231_641_9 * d.abs());
            let factors = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
            let polynomial = factors.iter().fold(0.0, |sum, factor| (sum + factor) * k);
            let below = polynomial * 0.398_942_28 * (-d * d / 2.0).exp();
            if d > 0.0 { 1.0 - below } else { below }
        };
        let price = |option: &[f32]| {
            let [share, strike, time] = [0, 1, 2].map(|at| f64::from(option[at]));
            let d = ((share / strike).ln() + 0.065 * time) / (0.3 * time.sqrt());
            let price = share * normal(d) - strike * (-0.02 * time).exp() * normal(d - 0.3 * time.sqrt());
            (price as f32).to_bits()
        };
        inputs.floats("options").chunks(4).map(price).collect()
    },
);

// ---- Textures

/// Returns an image. Each texel has four whole numbers from 0 to 255.
pub(super) fn picture(size: u32) -> Array {
    floats(size * size, 4, |at| (mixed(at) % 256) as f32)
}

/// Convolves an image with weights. The texels and the weights are whole numbers, so the results are exact.
pub(super) static CONVOLVE: Problem = problem(
    "convolve",
    Rule::Exact,
    || Inputs(vec![("texels", picture(512))]),
    |inputs| {
        let texels = inputs.floats("texels");
        let clamped = |at: i32| at.clamp(0, 511) as usize;
        let weighed = |place: i32, component: usize| {
            let mut sum = 0.0;
            for (dy, down) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                for (dx, along) in [(-1, 1.0), (0, 2.0), (1, 1.0)] {
                    let at = clamped(place / 512 + dy) * 512 + clamped(place % 512 + dx);
                    sum += down * along * texels[4 * at + component];
                }
            }
            sum.to_bits()
        };
        (0..1 << 18).flat_map(|place| [0, 1, 2, 3].map(|component| weighed(place, component))).collect()
    },
);

/// Scales an image. The weights of the texels are multiples of 1/8, so the results are exact.
pub(super) static SCALE: Problem = problem(
    "scale",
    Rule::Exact,
    || Inputs(vec![("texels", picture(128))]),
    |inputs| {
        let texels = inputs.floats("texels");
        let at = |place: u32| {
            let along = |pixel: u32| (pixel as f32 + 0.5) / 4.0 - 0.5;
            let (x, y) = (along(place % 512), along(place / 512));
            bilinear(&texels, x, y, |texel| texel.clamp(0, 127) as usize, 128)
        };
        (0..1 << 18).flat_map(at).map(f32::to_bits).collect()
    },
);

/// Returns the weighted mean of the four texels around a position. `x` and `y` are the distances of the position from
/// the centre of the first texel, in texels.
fn bilinear(texels: &[f32], x: f32, y: f32, wrap: impl Fn(i32) -> usize, size: usize) -> [f32; 4] {
    let (left, top) = (x.floor(), y.floor());
    let (right_weight, bottom_weight) = (x - left, y - top);
    let mut sum = [0.0; 4];
    for (down, vertical) in [(0, 1.0 - bottom_weight), (1, bottom_weight)] {
        for (along, horizontal) in [(0, 1.0 - right_weight), (1, right_weight)] {
            let texel = 4 * (wrap(top as i32 + down) * size + wrap(left as i32 + along));
            (0..4).for_each(|at| sum[at] += vertical * horizontal * texels[texel + at]);
        }
    }
    sum
}

const FRAGMENTS: u32 = 1 << 19;

/// Planes of the texture coordinates, and then planes of the normal's components. Three numbers define a plane: the
/// value at (0, 0), the change of the value with x, and the change of the value with y. All three numbers are exact.
pub(super) const PLANES: [[f32; 3]; 5] = [
    [0.25, 0.004_882_812_5, 0.000_976_562_5],
    [0.125, 0.000_976_562_5, 0.007_812_5],
    [-0.75, 0.000_030_517_578, 0.0625],
    [0.5, -0.000_007_629_394_5, 0.125],
    [1.0, 0.000_015_258_789, 0.0],
];

/// Returns the values of planes at the pixel centres of all fragments. The fragments are quads in one row.
fn over(planes: &[[f32; 3]]) -> Array {
    let row = planes.len() as u32;
    floats(FRAGMENTS, row, |at| {
        let (lane, [start, with_x, with_y]) = (at / row, planes[(at % row) as usize]);
        let x = (lane / 4 * 2 + lane % 2) as f32 + 0.5;
        let y = (lane / 2 % 2) as f32 + 0.5;
        start + with_x * x + with_y * y
    })
}

/// A textured surface under a light. The square root and the products for the light are approximate.
pub(super) static LIT: Problem = problem(
    "lit",
    Rule::Within { abs: 1e-3, rel: 1e-5 },
    || {
        Inputs(vec![
            ("texels", picture(64)),
            ("coordinates", over(&PLANES[..2])),
            ("normals", over(&PLANES[2..])),
            ("light", floats(4, 1, |at| [0.5, 0.75, 0.25, 0.0][at as usize])),
        ])
    },
    |inputs| {
        let (texels, light) = (inputs.floats("texels"), inputs.floats("light"));
        let (coordinates, normals) = (inputs.floats("coordinates"), inputs.floats("normals"));
        let lit = |(place, normal): (&[f32], &[f32])| {
            let dot = |other: &[f32]| -> f64 {
                normal.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
            };
            let falls = (dot(&light[..3]) / dot(normal).sqrt()).max(0.0) * 0.75 + 0.25;
            let [x, y] = [place[0] * 64.0 - 0.5, place[1] * 64.0 - 0.5];
            bilinear(&texels, x, y, |texel| texel.rem_euclid(64) as usize, 64)
                .map(|number| ((f64::from(number) * falls) as f32).to_bits())
        };
        coordinates.chunks(2).zip(normals.chunks(3)).flat_map(lit).collect()
    },
);
