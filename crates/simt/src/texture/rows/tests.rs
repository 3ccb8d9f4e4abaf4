//! Tests that compare the sampler over rows with the per-lane sampler.

use std::sync::Arc;

use super::*;
use crate::level::Level as Vectors;
use crate::random::Random;
use crate::texture::anisotropy::{Footprint, Gradients};
use crate::texture::elements::{Channel, Elements, Field, Strides};
use crate::texture::{Wrap, lod_of_gradients, lod_of_quad};

const SHAPES: [Shape; 7] =
    [Shape::D1, Shape::D2, Shape::D3, Shape::Cube, Shape::D1Array, Shape::D2Array, Shape::CubeArray];
const WRAPS: [Wrap; 8] = [
    Wrap::Repeat,
    Wrap::Mirror,
    Wrap::ClampToEdge,
    Wrap::Clamp,
    Wrap::ClampToBorder,
    Wrap::MirrorOnceToEdge,
    Wrap::MirrorOnce,
    Wrap::MirrorOnceToBorder,
];
const FILTERS: [Filter; 2] = [Filter::Nearest, Filter::Linear];
const MIPS: [MipFilter; 3] = [MipFilter::None, MipFilter::Nearest, MipFilter::Linear];
/// The forms in which texels are stored.
#[derive(Clone, Copy, Debug)]
enum ImageForm {
    /// Words: small numbers, and sometimes any bits.
    Words,
    /// Words: bounded numbers, which filtering can mix without checks.
    Bounded,
    /// Elements whose channels are fractions in bytes, in any order, or the constants 0 or 1.
    Bytes,
    /// Elements whose channels are fractions in fields.
    Fractions,
    /// Elements with any channels.
    Elements,
}

const FORMS: [ImageForm; 5] =
    [ImageForm::Words, ImageForm::Bounded, ImageForm::Bytes, ImageForm::Fractions, ImageForm::Elements];

/// Returns random texels for a level of a size.
fn texels([width, height, depth]: [u32; 3], form: ImageForm, random: &mut Random) -> Texels {
    let below = |random: &mut Random, count: usize| random.below(count as u32) as usize;
    let constant = |random: &mut Random| Channel::Word(if random.once_in(2) { 0 } else { 1f32.to_bits() });
    let field = |first: u32, width: u32| Field::new(first as u8, width as u8).expect("a field");
    let (bytes, channels): (usize, [Channel; 4]) = match form {
        ImageForm::Words => {
            let words = (0..width * height * depth).map(|_| [(); 4].map(|()| number(random)));
            return Texels::Words(words.collect());
        }
        ImageForm::Bounded => {
            let words = (0..width * height * depth).map(|_| [(); 4].map(|()| bounded_number(random)));
            return Texels::Words(words.collect());
        }
        ImageForm::Bytes => {
            let bytes = 1 + below(random, 4);
            let channel = |_| match random.once_in(4) {
                true => constant(random),
                false => Channel::Fraction(field(8 * below(random, bytes) as u32, 8)),
            };
            (bytes, std::array::from_fn(channel))
        }
        ImageForm::Fractions => {
            let channel = |_| match random.once_in(4) {
                true => constant(random),
                false => {
                    let width = 1 + random.below(24);
                    Channel::Fraction(field(random.below(33 - width), width))
                }
            };
            (4, std::array::from_fn(channel))
        }
        ImageForm::Elements => {
            let bytes = 1 + below(random, 16);
            let most = 8 * bytes as u32;
            // Returns a field of `least` to `width` bits, or fewer if the element is smaller.
            let any = |random: &mut Random, least: u32, width: u32| {
                let (least, width) = (least.min(most), width.min(most));
                let width = least + random.below(1 + width - least);
                let first = random.below(1 + most - width);
                // A field of more than 24 bits begins at a byte, so that four bytes contain it.
                field(if width > 24 { first & !7 } else { first }, width)
            };
            let channel = |_| match random.below(7) {
                0 => Channel::Bits(any(random, 1, 32)),
                1 => Channel::Signed(any(random, 1, 32)),
                2 => Channel::Fraction(any(random, 1, 24)),
                3 if most >= 16 => Channel::SmallFloat(any(random, 16, 16)),
                4 if most >= 11 => Channel::SmallFloat(any(random, 10, 11)),
                5 => {
                    let field = any(random, 1, 8);
                    Channel::Listed(field, (0..=field.most()).map(|_| number(random)).collect())
                }
                _ => Channel::Word(number(random)),
            };
            (bytes, std::array::from_fn(channel))
        }
    };
    let row = width as usize * bytes + below(random, 9);
    let slice = row * height as usize + below(random, 9);
    let strides = Strides { start: below(random, 9), element: bytes, row, slice };
    let length = strides.start + slice * depth as usize + 16;
    let memory = Arc::new((0..length).map(|_| random.next() as u8).collect::<Vec<u8>>());
    let elements = Elements::new(&memory, strides, channels, [width, height, depth]);
    Texels::Elements(elements.expect("elements inside of the bytes"))
}

/// Returns a random image with mip levels.
fn image(shape: Shape, random: &mut Random) -> Image {
    let form = one_of(random, &FORMS);
    let sizes = [1, 2, 3, 4, 5, 7, 8, 12, 16];
    let mut size = || sizes[random.below(sizes.len() as u32) as usize];
    let (width, height, depth) = (size(), size(), size());
    let [mut width, mut height, mut depth] = match shape {
        Shape::D1 => [width, 1, 1],
        Shape::D2 => [width, height, 1],
        Shape::D3 | Shape::D2Array => [width, height, depth],
        Shape::D1Array => [width, 1, depth],
        Shape::Cube => [width, width, 6],
        Shape::CubeArray => [width, width, 6 * depth],
    };
    let mut levels = Vec::new();
    for _ in 0..1 + random.below(4) {
        let texels = texels([width, height, depth], form, random);
        levels.push(Level { width, height, depth, texels });
        let before = [width, height, depth];
        (width, height) = ((width / 2).max(1), (height / 2).max(1));
        if shape == Shape::D3 {
            depth = (depth / 2).max(1);
        }
        if before == [width, height, depth] {
            break;
        }
    }
    Image::new(shape, levels).expect("the levels halve")
}

/// Returns the bits of a number. The number is usually small. Sometimes it is special, or its bits are random.
fn number(random: &mut Random) -> u32 {
    let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, -1e-40, 1e30, -1e30, 1.0];
    match random.below(8) {
        0 => special[random.below(special.len() as u32) as usize].to_bits(),
        1 => random.next(),
        _ => (random.below(1 << 16) as f32 / 8192.0 - 4.0).to_bits(),
    }
}

/// 2^-100 and 2^100, the limits of bounded numbers. Bounded numbers are mixed without checks.
const BOUNDS: [f32; 2] = [7.888_609e-31, 1.267_650_6e30];

/// Returns the bits of a bounded number. It is usually small, and sometimes at the limits.
fn bounded_number(random: &mut Random) -> u32 {
    let [least, most] = BOUNDS;
    match random.below(4) {
        0 => one_of(random, &[0.0, least, -least, most, -most, 1.0, -1.0, least.next_up()]).to_bits(),
        _ => (random.below(1 << 16) as f32 / 8192.0 - 4.0).to_bits(),
    }
}

/// Returns the bits of a coordinate. The coordinate is of one of these kinds: inside or near the image, on the edge or
/// centre of a texel, at the limit up to which lanes are read as rows, or a special number.
fn coordinate(random: &mut Random, size: u32, unnormalised: bool) -> u32 {
    let scale = if unnormalised { 1.0 } else { size as f32 };
    let halves = random.below(12 * size) as f32 / 2.0 - 3.0 * size as f32;
    let limit = [FAR, FAR * 0.5, FAR - 1.0, FAR + 1.0, 1e12, 3e9, 16_777_215.0][random.below(7) as usize];
    let sign = if random.once_in(2) { 1.0 } else { -1.0 };
    match random.below(10) {
        0 => number(random),
        1 => (sign * limit / scale).to_bits(),
        2 => (halves / scale).next_up().to_bits(),
        3 => (halves / scale).next_down().to_bits(),
        4 | 5 => (halves / scale).to_bits(),
        _ => ((random.below(1 << 20) as f32 / (1 << 18) as f32 - 1.5) * size as f32 / scale).to_bits(),
    }
}

/// Turns coordinates into directions. In some quads, the directions are close to one another. Most of these quads are
/// on one face, and some of these quads cross an edge. In other quads, two components have the same size.
fn directions<const N: usize>(coordinates: &mut [[u32; N]; 3], random: &mut Random) {
    let signed = |random: &mut Random| random.below(1 << 16) as f32 / 32768.0 - 1.0;
    for lane in 0..N {
        match (random.below(3), lane / 4 % 3) {
            (_, 0) => {
                let step = random.one_of(&[0.0, 1e-3, 0.1]);
                for row in coordinates.iter_mut() {
                    row[lane] = match lane % 4 {
                        0 => signed(random),
                        _ => f32::from_bits(row[lane & !3]) + step * signed(random),
                    }
                    .to_bits();
                }
            }
            (0, _) => {
                let [from, to] = [random.below(3), random.below(3)].map(|axis| axis as usize);
                coordinates[to][lane] = coordinates[from][lane] ^ random.next() & 1 << 31;
            }
            _ => {}
        }
    }
}

/// Returns the expected result of one lane.
fn plain<const N: usize>(
    (image, sampler): (&Image, &Sampler),
    read: Read<'_, N>,
    at: &Position,
    lane: usize,
) -> [u32; 4] {
    match read {
        Read::Floats => sample(image, sampler, at),
        Read::Bits => sample_bits(image, sampler, at),
        Read::Compare(compare, reference) => {
            let reference = f32::from_bits(reference[lane]);
            [sample_compare(image, sampler, at, compare, reference).to_bits(); 4]
        }
        Read::Gather => gather(image, sampler, at).map(|texel| texel[0]),
    }
}

fn one_of<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len() as u32) as usize]
}

struct AtLevel<'a, const N: usize>(&'a Plan, &'a Image, Read<'a, N>, &'a Positions<'a, N>, u64);

impl<const N: usize> Task for AtLevel<'_, N> {
    type Output = [Words<N>; 4];
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Self::Output {
        let AtLevel(plan, image, read, at, lanes) = self;
        let mut values = [[0; N]; 4];
        plan.read(wide, image, read, at, lanes, &mut values);
        values
    }
}

struct Lods<'a, const N: usize>(&'a Image, &'a Sampler, [&'a Words<N>; 3], u64);

impl<const N: usize> Task for Lods<'_, N> {
    type Output = Words<N>;
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Words<N> {
        let Lods(image, sampler, coordinates, lanes) = self;
        lods_of_quads(wide, image, sampler, coordinates, lanes)
    }
}

struct LodsOfGradients<'a, const N: usize>(&'a Image, &'a Sampler, [[&'a Words<N>; 3]; 2], u64);

impl<const N: usize> Task for LodsOfGradients<'_, N> {
    type Output = Words<N>;
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Words<N> {
        let LodsOfGradients(image, sampler, gradients, lanes) = self;
        lods_of_gradients(wide, image, sampler, gradients, lanes)
    }
}

struct LodsOnFaces<'a, const N: usize>(&'a Image, &'a Sampler, [[&'a Words<N>; 3]; 4], u64);

impl<const N: usize> Task for LodsOnFaces<'_, N> {
    type Output = Words<N>;
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Words<N> {
        let LodsOnFaces(image, sampler, [facing, quad @ ..], lanes) = self;
        lods_on_faces(wide, image, sampler, facing, quad, lanes)
    }
}

struct Numbered<'a, const N: usize>(&'a Plan, &'a Image, &'a Texel<'a, N>, u64);

impl<const N: usize> Task for Numbered<'_, N> {
    type Output = [Words<N>; 4];
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Self::Output {
        let Numbered(plan, image, at, lanes) = self;
        let mut values = [[0; N]; 4];
        plan.fetch(wide, image, at, lanes, &mut values);
        values
    }
}

/// The task of a read with [`Plan::read_along`], with the gradients of each lane.
struct OfFootprints<'a, 'b, const N: usize>(
    &'a Plan,
    &'a Image,
    Read<'a, N>,
    &'a Positions<'b, N>,
    (&'a Sampler, &'a [Gradients]),
    u64,
);

impl<const N: usize> Task for OfFootprints<'_, '_, N> {
    type Output = [Words<N>; 4];

    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> Self::Output {
        let OfFootprints(plan, image, read, at, (sampler, gradients), lanes) = self;
        let mut values = [[0; N]; 4];
        plan.read_along(wide, image, read, (at, lanes), (sampler, |lane| gradients[lane]), &mut values);
        values
    }
}

/// Compares texels that are fetched by their indices, inside and outside the image.
fn compare_numbers<const N: usize>(plan: &Plan, image: &Image, random: &mut Random) {
    let mut numbers = [[0; N]; 3];
    let mut level = [0; N];
    for lane in 0..N {
        for row in &mut numbers {
            row[lane] = match random.below(16) {
                0 => random.next(),
                1 => i32::MAX as u32,
                _ => random.below(20).wrapping_sub(3),
            };
        }
        let levels = if random.once_in(3) { 6 } else { 1 };
        level[lane] = random.below(levels);
    }
    let offset = [(); 3].map(|()| match random.below(6) {
        0 => random.below(16) as i32 - 8,
        1 if random.once_in(8) => random.next() as i32,
        _ => 0,
    });
    let at = Texel { numbers: numbers.each_ref(), offset, level: &level };
    let lanes = random.next_u64() & if N == 64 { u64::MAX } else { (1 << N) - 1 };
    for vectors in Vectors::available() {
        let found = vectors.run(Numbered(plan, image, &at, lanes));
        for lane in members(lanes) {
            let expected = at.of(image, lane);
            let found = found.each_ref().map(|row| row[lane]);
            let place = (image.shape, numbers.map(|row| row[lane]), level[lane], offset);
            assert_eq!(found.map(Hex), expected.map(Hex), "{place:x?}");
        }
    }
}

/// Compares the results of every lane for each kind of read, and the levels of detail. The comparison is repeated for
/// every level of vector instructions.
fn compare<const N: usize>(image: &Image, sampler: &Sampler, random: &mut Random) {
    let size = [image.levels[0].width, image.levels[0].height, image.levels[0].depth];
    let mut coordinates = [[0; N]; 3];
    for (row, size) in coordinates.iter_mut().zip(size) {
        row.iter_mut().for_each(|word| *word = coordinate(random, size, sampler.unnormalised));
    }
    if is_cube(image) {
        directions(&mut coordinates, random);
    }
    let [mut layer, mut lod, mut reference] = [[0; N]; 3];
    for lane in 0..N {
        layer[lane] = match random.below(3) {
            0 => number(random),
            _ => (random.below(8 * size[2]) as f32 / 4.0 - 1.0).to_bits(),
        };
        reference[lane] = number(random);
        lod[lane] = match random.below(4) {
            0 if lane > 0 => lod[lane - 1],
            1 => (random.below(24) as f32 / 4.0 - 2.0).to_bits(),
            _ => number(random),
        };
    }
    let offset = [(); 3].map(|()| match random.below(4) {
        0 => random.below(16) as i32 - 8,
        1 if random.once_in(8) => random.next() as i32,
        _ => 0,
    });
    let coordinates = coordinates.each_ref();
    let at = Positions { coordinates, layer: &layer, offset, lod: &lod };
    let lanes = if random.once_in(2) { u64::MAX } else { random.next_u64() };
    let lanes = if N == 64 { lanes } else { lanes & ((1 << N) - 1) };
    let plan = Plan::new(image, sampler);
    let compares = Read::Compare(one_of(random, &Compare::ALL), &reference);
    for read in [Read::Floats, Read::Bits, compares, Read::Gather] {
        for vectors in Vectors::available() {
            let found = vectors.run(AtLevel(&plan, image, read, &at, lanes));
            for lane in members(lanes) {
                let expected = plain((image, sampler), read, &at.of(lane), lane);
                let found = found.each_ref().map(|row| row[lane]);
                let place = (vectors.name(), image.shape, size, sampler, read_name(read), at.of(lane));
                assert_eq!(found.map(Hex), expected.map(Hex), "{place:?}");
            }
        }
    }
    // Gradients of about a texel. One gradient may be many times as long as the other gradient.
    let change = |random: &mut Random| (random.below(64) as f32 - 32.0) / (1 << random.below(8)) as f32;
    let sides: Vec<Gradients> = (0..N)
        .map(|_| match random.below(8) {
            0 => [(); 2].map(|()| [(); 3].map(|()| f32::from_bits(number(random)))),
            _ => [(); 2].map(|()| [(); 3].map(|()| change(random) / size[0] as f32)),
        })
        .collect();
    for read in [Read::Floats, Read::Bits, compares, Read::Gather] {
        let several = matches!(read, Read::Floats | Read::Compare(..)) && sampler.anisotropy > 1;
        for vectors in Vectors::available() {
            let of_lanes = (sampler, &sides[..]);
            let found = vectors.run(OfFootprints(&plan, image, read, &at, of_lanes, lanes));
            for lane in members(lanes) {
                let read_at = |place: &Position| plain((image, sampler), read, place, lane);
                let expected = match several {
                    true => Footprint::new(image, sampler, sides[lane]).mean(image, &at.of(lane), read_at),
                    false => read_at(&at.of(lane)),
                };
                let found = found.each_ref().map(|row| row[lane]);
                let place = (vectors.name(), image.shape, sampler, read_name(read), at.of(lane), sides[lane]);
                assert_eq!(found.map(Hex), expected.map(Hex), "{place:?}");
            }
        }
    }
    compare_numbers::<N>(&plan, image, random);
    let gradients = [coordinates, [&layer, &lod, &reference]];
    for vectors in Vectors::available() {
        let lods = vectors.run(LodsOfGradients(image, sampler, gradients, lanes));
        for lane in members(lanes) {
            let [dx, dy] = gradients.map(|rows| rows.map(|row| f32::from_bits(row[lane])));
            same_lod(lods[lane], lod_of_gradients(image, sampler, dx, dy), &[dx, dy]);
        }
    }
    let [rows, others] = [coordinates, [&layer, &lod, &reference]];
    for vectors in Vectors::available() {
        let lods = vectors.run(Lods(image, sampler, rows, lanes));
        let place = |rows: [&Words<N>; 3], lane: usize| rows.map(|row| f32::from_bits(row[lane]));
        for lane in members(lanes) {
            let quad = [0, 1, 2].map(|other| place(rows, lane & !3 | other));
            same_lod(lods[lane], lod_of_quad(image, sampler, place(rows, lane), quad), &quad);
        }
        if is_cube(image) {
            let lods = vectors.run(LodsOnFaces(image, sampler, [rows, rows, others, rows], lanes));
            for lane in members(lanes) {
                let [facing, other] = [rows, others].map(|rows| place(rows, lane));
                let quad = [facing, other, facing];
                same_lod(lods[lane], lod_of_quad(image, sampler, facing, quad), &quad);
            }
        }
    }
}

/// Compares the bits of a level of detail with the expected level. All NaNs count as equal.
fn same_lod(found: u32, expected: f32, of: &[[f32; 3]]) {
    let same = found == expected.to_bits() || expected.is_nan() && f32::from_bits(found).is_nan();
    assert!(same, "{found:x} {expected} {of:?}");
}

fn read_name<const N: usize>(read: Read<'_, N>) -> String {
    match read {
        Read::Compare(compare, _) => format!("{compare:?}"),
        Read::Floats => "Floats".to_owned(),
        Read::Bits => "Bits".to_owned(),
        Read::Gather => "Gather".to_owned(),
    }
}

/// A word that assertions show in hexadecimal.
#[derive(PartialEq)]
struct Hex(u32);

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[test]
fn rows_give_what_lanes_give_for_every_shape_wrap_filter_and_level() {
    let mut random = Random::new(19);
    for shape in SHAPES {
        for (number, wrap) in WRAPS.into_iter().enumerate() {
            for filters in 0..4 {
                for mip in MIPS {
                    let image = image(shape, &mut random);
                    let lod = |random: &mut Random| random.below(12) as f32 / 2.0 - 3.0;
                    let bounded = random.once_in(3);
                    let sampler = Sampler {
                        wrap: [wrap, one_of(&mut random, &WRAPS), WRAPS[(number + 3) % 8]],
                        mag: FILTERS[filters & 1],
                        min: FILTERS[filters >> 1],
                        mip,
                        border: [(); 4].map(|()| self::number(&mut random)),
                        min_lod: if bounded { lod(&mut random) } else { -1000.0 },
                        max_lod: if bounded { lod(&mut random) } else { 1000.0 },
                        lod_bias: if random.once_in(3) { lod(&mut random) } else { 0.0 },
                        unnormalised: random.once_in(3),
                        seamless: random.once_in(3),
                        anisotropy: if random.once_in(2) { random.below(17) as u8 } else { 0 },
                    };
                    compare::<64>(&image, &sampler, &mut random);
                    compare::<32>(&image, &sampler, &mut random);
                }
            }
        }
    }
}

struct Flatly<'a>(&'a Plan, &'a Image, &'a FlatRows<'a>);

impl Task for Flatly<'_> {
    type Output = u64;
    #[inline(always)]
    fn run<W: Wide>(self, wide: W) -> u64 {
        self.0.read_flat(wide, self.1, self.2)
    }
}

/// Checks the lanes that a flat read has read: their results must equal those of the per-lane sampler, on every level
/// of vector instructions. The flat read may write its results to any rows, including the rows of the coordinates.
/// Returns the number of lanes compared.
fn compare_flat<const N: usize>(image: &Image, sampler: &Sampler, random: &mut Random) -> u32 {
    let plan = Plan::new(image, sampler);
    let mut rows = [[0; N]; 6];
    rows.as_flattened_mut().iter_mut().for_each(|word| *word = random.next());
    let mut usual = 0;
    for vector in 0..N / EIGHT {
        // In most vectors, no coordinate is special.
        let special = random.once_in(3);
        for (axis, size) in [image.levels[0].width, image.levels[0].height].into_iter().enumerate() {
            for word in &mut rows[axis][EIGHT * vector..][..EIGHT] {
                let any = std::iter::repeat_with(|| coordinate(random, size, sampler.unnormalised));
                let mut near = any.filter(|bits| special || f32::from_bits(*bits).abs() * size as f32 <= 1e6);
                *word = near.next().expect("there is always another one");
            }
        }
        usual |= if special { 0 } else { EIGHT_LANES << (EIGHT * vector) };
    }
    let offset = [(); 2].map(|()| if random.once_in(2) { random.below(16) as i32 - 8 } else { 0 });
    let lanes = if random.once_in(2) { u64::MAX } else { random.next_u64() } & u64::MAX >> (64 - N);
    // Each result gets a different row.
    let mut free = vec![0, 1, 2, 3, 4, 5];
    let chosen = [(); 4].map(|()| {
        let row = free.swap_remove(random.below(free.len() as u32) as usize);
        (!random.once_in(8)).then_some(row)
    });
    let mut read = 0;
    for vectors in Vectors::available() {
        let mut found = rows;
        let cells = found.each_mut().map(FlatRows::row);
        let texels = chosen.map(|row: Option<usize>| row.map(|row| cells[row]));
        let flat = FlatRows { coordinates: [cells[0], cells[1]], offset, texels, lanes };
        let left = vectors.run(Flatly(&plan, image, &flat));
        assert_eq!(left & !lanes, 0);
        assert_eq!(left & usual, if plan.is_flat() { 0 } else { lanes & usual });
        let mut expected = rows;
        for lane in members(lanes & !left) {
            let [s, t] = [rows[0][lane], rows[1][lane]].map(f32::from_bits);
            let offset = [offset[0], offset[1], 0];
            let at = Position { coordinates: [s, t, 0.0], offset, ..Position::default() };
            for (row, texel) in chosen.iter().zip(sample(image, sampler, &at)) {
                row.iter().for_each(|row| expected[*row][lane] = texel);
            }
            let [found, expected] = [found, expected].map(|rows| rows.map(|row| Hex(row[lane])));
            assert_eq!(found, expected, "{} {sampler:?} {at:?} {:?}", vectors.name(), image.shape);
        }
        assert!(found == expected, "other lanes and rows change");
        read += (lanes & !left).count_ones();
    }
    read
}

#[test]
fn flat_reads_give_what_lanes_give_for_every_wrap_filter_size_and_form() {
    let mut random = Random::new(29);
    for wrap in WRAPS.into_iter().flat_map(|s| WRAPS.map(|t| [s, t, Wrap::Repeat])) {
        for (filter, form) in FILTERS.into_iter().flat_map(|filter| FORMS.map(|form| (filter, form))) {
            for size in [[1, 1], [8, 8], [16, 2], [3, 8], [4, 7], [64, 5]] {
                let [width, height] = size;
                let texels = texels([width, height, 1], form, &mut random);
                let level = Level { width, height, depth: 1, texels };
                let image = Image::new(Shape::D2, vec![level]).expect("texels for the size");
                let border = [(); 4].map(|()| number(&mut random));
                let unnormalised = random.once_in(4);
                let sampler =
                    Sampler { wrap, mag: filter, min: filter, border, unnormalised, ..Sampler::default() };
                let is_simple = |axis: usize| match wrap[axis] {
                    Wrap::ClampToEdge => true,
                    Wrap::Clamp => filter == Filter::Nearest,
                    Wrap::Repeat => size[axis].is_power_of_two(),
                    _ => false,
                };
                let mixes =
                    !matches!(form, ImageForm::Words | ImageForm::Elements) || filter == Filter::Nearest;
                let flat = is_simple(0) && is_simple(1) && mixes;
                assert!(Plan::new(&image, &sampler).is_flat() == flat || !mixes, "{sampler:?} {form:?}");
                let read = compare_flat::<64>(&image, &sampler, &mut random)
                    + compare_flat::<32>(&image, &sampler, &mut random)
                    + compare_flat::<16>(&image, &sampler, &mut random);
                assert!(read > 0 || !flat, "{sampler:?}");
            }
        }
    }
}

#[test]
fn only_bounded_texels_are_mixed_without_checks() {
    let [least, most] = BOUNDS;
    let is_flat = |number: f32, filter: Filter| {
        let mut texels = vec![[1f32.to_bits(); 4]; 2000];
        texels[1999][3] = number.to_bits();
        let image = Image::flat(2000, 1, texels).expect("it fits");
        let wrap = [Wrap::ClampToEdge; 3];
        Plan::new(&image, &Sampler { wrap, mag: filter, min: filter, ..Sampler::default() }).is_flat()
    };
    for number in [0.0, least, -least, most, -most, 0.5] {
        assert!(is_flat(number, Filter::Linear), "{number}");
    }
    for number in [-0.0, least.next_down(), -most.next_up(), 1e-40, f32::INFINITY, f32::NAN, -f32::NAN] {
        assert!(!is_flat(number, Filter::Linear) && is_flat(number, Filter::Nearest), "{number}");
    }
}

#[test]
fn the_level_of_detail_is_needed_only_where_it_chooses() {
    let level =
        |size: u32| Level { width: size, height: 1, depth: 1, texels: vec![[0; 4]; size as usize].into() };
    let one = Image::new(Shape::D1, vec![level(2)]).expect("one level");
    let two = Image::new(Shape::D1, vec![level(2), level(1)]).expect("two levels");
    let needs = |image: &Image, sampler: Sampler, read| Plan::new(image, &sampler).needs_lod::<32>(read);
    let plain = Sampler::default();
    assert!(!needs(&one, Sampler { mip: MipFilter::Linear, ..plain }, Read::Floats));
    assert!(!needs(&two, plain, Read::Floats), "no filter between levels");
    assert!(needs(&two, Sampler { mip: MipFilter::Nearest, ..plain }, Read::Floats));
    let differ = Sampler { min: Filter::Linear, ..plain };
    assert!(needs(&one, differ, Read::Floats), "magnified or minified");
    assert!(!needs(&one, differ, Read::Bits), "integers are not filtered");
    assert!(!needs(&one, Sampler { max_lod: 0.0, ..differ }, Read::Floats), "always magnified");
    assert!(!needs(&one, Sampler { min_lod: 0.5, ..differ }, Read::Floats), "always minified");
}

#[test]
fn only_lanes_far_outside_go_lane_by_lane() {
    let image = Image::flat(3, 1, vec![[1; 4]; 3]).expect("it fits");
    let plan = Plan::new(&image, &Sampler::default());
    let mut s = [[0.5f32.to_bits(); EIGHT]; 2];
    (s[0][3], s[0][5], s[1][7]) = (1e9f32.to_bits(), f32::NAN.to_bits(), f32::INFINITY.to_bits());
    let zero = [[0; EIGHT]; 2];
    let at = Eights { coordinates: [&s, &zero, &zero], layer: &zero, offset: [0; 3], lod: &zero };
    let mut values = [[[0; EIGHT]; 2]; 4];
    let values = values.each_mut().map(|row| &mut row[..]);
    let rows = ReadRows { plan: &plan, image: &image, read: Reading::Floats, at, lanes: 0xffff, values };
    assert_eq!(rows.at_level(Vectors::best()), 1 << 3 | 1 << 15);
    let mut random = Random::new(23);
    for shape in SHAPES {
        let image = self::image(shape, &mut random);
        assert_eq!(Plan::new(&image, &Sampler::default()).grids.len(), image.levels.len(), "{shape:?}");
    }
}
