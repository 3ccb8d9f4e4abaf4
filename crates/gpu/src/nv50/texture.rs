//! Textures and samplers. Reads the entries of textures (TIC), the entries of samplers (TSC) and the images of textures
//! from memory. Source: Mesa `nv50_tex.c`, `nv50_texture.xml.h`.

use std::ops::Range;
use std::sync::Arc;

use reconverge_board::errata::Erratum;
use reconverge_isa::sets::SortedSet;
use reconverge_raster::block::Block;
use reconverge_raster::format::{Format, Number};
use reconverge_simt::texture::elements::Strides;
use reconverge_simt::texture::{Compare, Filter, Image, Level, MipFilter, Sampler, Shape, Wrap};
use reconverge_simt::vram::Vram;
use reconverge_tesla::inst::Chip;
use reconverge_tesla::texture::{Compared, Component, Texture, TextureSampler, Textures};

use super::bindings::{Bindings, Unit};
use super::format;
use super::methods::{TexMisc, tesla as m};
use super::state::{State, Unknown, fields, load};
use super::surface::{Layout, TileMode};
use crate::images::OwnBytes;
use crate::texels::{self, LevelPlace, Select, TexelElement};

/// Size of an entry in bytes.
const ENTRY: usize = 32;

/// Number of the format E5B9G9R9_SHAREDEXP.
const SHARED_EXPONENT: u32 = 0x20;

/// Cache of images from earlier draws. The key has the words of the texture's entry, and a flag that states whether the
/// sampler compares depth.
pub(super) type Images = crate::images::Images<([u32; 8], bool), Texture>;

impl OwnBytes for Texture {
    fn own_bytes(&self) -> usize {
        self.image.own_bytes()
    }
}

/// Numbers of the texture and the sampler of a texture instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Read {
    pub(super) texture: u8,
    pub(super) sampler: u8,
    /// Whether the instruction uses the sampler. An instruction that fetches a single texel does not use a sampler.
    pub(super) samples: bool,
}

/// A texture and a sampler of a shader, and the entries from which the texture and the sampler were created.
#[derive(Debug)]
pub(super) struct BoundTexture {
    /// Address and words of the texture's entry and of the sampler's entry.
    entries: [Option<(usize, [u32; 8])>; 2],
    key: ([u32; 8], bool),
    range: Range<usize>,
    image: Arc<Image>,
}

impl BoundTexture {
    /// Returns whether memory still has the entries and the image from which the texture and the sampler were created.
    pub(super) fn is_there(&self, images: &mut Images, memory: Vram<'_>) -> bool {
        let same = self.entries.iter().flatten().all(|(at, words)| memory.holds_words(*at, words));
        let known = |images: &mut Images| {
            images
                .find(&self.key, &self.range, memory)
                .is_some_and(|texture| Arc::ptr_eq(&texture.image, &self.image))
        };
        same && known(images)
    }
}

/// Binds the textures that a program reads. Returns the bound textures and samplers. With this list, a later draw can
/// check whether a texture or a sampler has changed. A texture with an unsupported feature is reported and is not in
/// the returned list.
pub(super) fn bind(
    textures: &mut Textures,
    (unit, chip): (Unit, Chip),
    reads: &SortedSet<Read>,
    (state, bindings, unknown): (&State, &Bindings, &mut Unknown),
    images: &mut Images,
    memory: Vram<'_>,
) -> Vec<BoundTexture> {
    let place = |table: u32, id: u32| state.address(table) + id as usize * ENTRY;
    let entry = |at: usize| -> [u32; 8] { std::array::from_fn(|word| load(memory, at + 4 * word)) };
    let mut all = Vec::new();
    for read in reads {
        let texture = bindings.textures[unit.textures].get(usize::from(read.texture)).copied().flatten();
        let sampler_id = bindings.samplers[unit.textures].get(usize::from(read.sampler)).copied().flatten();
        let texture_place = texture.map(|id| place(m::TIC_ADDRESS_HIGH, id));
        let sampler_place = sampler_id.map(|id| place(m::TSC_ADDRESS_HIGH, id));
        let words = texture_place.map(entry);
        let sampler_words = sampler_place.map(entry);
        let unnormalised = words.is_some_and(|words| words[2] >> 31 == 0);
        let mut sampler = sampler(&sampler_words.unwrap_or_default(), unnormalised);
        sampler.sampler.seamless = fields!(unknown, TexMisc, state.word(m::TEX_MISC)).seamless_cube_map;
        if let Some(most) = words.and_then(|words| anisotropy_of_texture(&words)) {
            sampler.sampler.anisotropy = most;
        }
        let compares = read.samples && sampler.compare.is_some();
        let found = match words {
            Some(words) => image(images, (chip, &words), memory, compares),
            None => Err(format!("texture {} is read but not bound", read.texture)),
        };
        let texture = match found {
            Ok((texture, range)) => {
                let entries = [texture_place.zip(words), sampler_place.zip(sampler_words)];
                let key = (words.unwrap_or_default(), compares);
                all.push(BoundTexture { entries, key, range, image: texture.image.clone() });
                texture
            }
            Err(what) => {
                unknown.note(what);
                nothing()
            }
        };
        let floats = texture.integer && state.errata.has(Erratum::IntegerBorder);
        if let Some(words) = words.filter(|_| floats) {
            sampler.sampler.border = integers(sampler.sampler.border, &words);
        }
        if read.samples || !textures.textures.contains_key(&read.texture) {
            textures.textures.insert(read.texture, texture);
            textures.samplers.insert(read.sampler, sampler);
        }
    }
    all
}

/// Returns the border colour of an integer texture. The chip interprets the border as floats and converts the floats to
/// the integer type of the components, as Direct3D 10 requires. The driver, however, writes integers without a
/// conversion. NV92 fails all tests of borders of integer textures and of stencil textures: [`Erratum::IntegerBorder`].
fn integers(border: [u32; 4], entry: &[u32; 8]) -> [u32; 4] {
    let words = Words::new(entry, Chip::Gt215);
    let bits = format::texture(words.format).unwrap_or([32; 4]);
    std::array::from_fn(|chan| {
        let component = (words.sources[chan] as usize).saturating_sub(2) & 3;
        let most = u32::MAX >> (32 - u32::from(bits[component].clamp(1, 32)));
        let value = f32::from_bits(border[chan]);
        match words.kinds[component] {
            3 => (value as i32).clamp(-((most >> 1) as i32) - 1, (most >> 1) as i32) as u32,
            _ => (value as u32).min(most),
        }
    })
}

/// Returns a texture with one texel of zeros. If a program reads an unbound or unsupported texture, the program reads
/// the returned texture instead.
fn nothing() -> Texture {
    let level = Level { width: 1, height: 1, depth: 1, texels: vec![[0; 4]].into() };
    // One texel is a valid image of this shape.
    let image = Image::new(Shape::D2, vec![level]).unwrap_or_else(|error| unreachable!("{error}"));
    Texture::new(Arc::new(image), false)
}

/// Fields of a texture entry.
struct Words {
    format: u32,
    kinds: [u32; 4],
    sources: [u32; 4],
    address: usize,
    srgb: bool,
    target: u32,
    linear: bool,
    mode: TileMode,
    pitch: usize,
    size: [usize; 3],
    levels: std::ops::RangeInclusive<usize>,
}

impl Words {
    fn new(words: &[u32; 8], chip: Chip) -> Words {
        let field = |word: usize, high: u32, low: u32| words[word] >> low & (u32::MAX >> (31 - (high - low)));
        // On G80, word 7 does not contain levels, and word 5 contains the last level. On later chips, word 7 contains
        // the first and the last level. If both levels are 0, the entry selects only the first level.
        let (first, last) = match chip {
            Chip::G80 => (0, field(5, 31, 28)),
            Chip::G84 | Chip::G200 | Chip::Mcp77 | Chip::Gt215 => (field(7, 3, 0), field(7, 7, 4)),
        };
        Words {
            format: field(0, 5, 0),
            kinds: [6, 9, 12, 15].map(|low| field(0, low + 2, low)),
            sources: [18, 21, 24, 27].map(|low| field(0, low + 2, low)),
            address: ((u64::from(field(2, 7, 0)) << 32) | u64::from(words[1])) as usize,
            srgb: field(2, 10, 10) != 0,
            target: field(2, 17, 14),
            linear: field(2, 18, 18) != 0,
            mode: TileMode { y: field(2, 24, 22).min(5), z: field(2, 27, 25).min(5) },
            pitch: field(3, 19, 0) as usize,
            size: [field(4, 29, 0), field(5, 15, 0), field(5, 27, 16)].map(|size| (size as usize).max(1)),
            levels: first as usize..=last.max(first) as usize,
        }
    }
}

/// Returns the encoding of a texture's elements.
///
/// # Errors
/// Returns a message with the number of the format if the format is unknown.
fn element(words: &Words, chip: Chip) -> Result<TexelElement, String> {
    let signed = matches!(words.kinds[0], 1);
    // The sRGB curve applies to red, green and blue of the texel. The curve belongs to the channels of the texel, not
    // to the components of the element. For example, luminance with alpha has a format with two components. The driver
    // selects R, R, R and G, and sets the bit for the curve.
    let block = |block: Block| match words.srgb {
        true => TexelElement::CurvedBlock(block),
        false => TexelElement::Block { block, srgb: false },
    };
    Ok(match words.format {
        SHARED_EXPONENT => TexelElement::SharedExponent,
        0x24 => block(Block::Color),
        0x25 => block(Block::ExplicitAlpha),
        0x26 => block(Block::InterpolatedAlpha),
        0x27 => block(Block::One { signed }),
        0x28 => block(Block::Two { signed }),
        number => {
            // Z16 textures exist since GT200. (Mesa `nv50_screen_is_format_supported`)
            let is_known = number != 0x3a || !matches!(chip, Chip::G80 | Chip::G84);
            let bits = format::texture(number).filter(|_| is_known);
            let bits = bits.ok_or_else(|| format!("textures of format {number:#x}"))?;
            let number = |at: usize| match format::texture_number(words.kinds[at]) {
                // Some formats store depth as a 32-bit float. Components of 8 bits and of 24 bits in these formats are
                // not floats.
                Number::Float if bits[at] == 8 || bits[at] == 24 => Number::Uint,
                number => number,
            };
            let numbers = std::array::from_fn(number);
            let format = Format { numbers, ..Format::new(bits, Number::Uint) };
            if words.srgb { TexelElement::Curved(format) } else { TexelElement::Plain(format) }
        }
    })
}

/// Maximum number of texels of a level that must be decoded.
const MOST: usize = 1 << 26;

/// Maximum number of texels of a level, if the sampler reads the texels directly from the bytes of the level. The
/// driver's largest buffer has 2^27 texels.
const MOST_IN_PLACE: usize = 1 << 29;

/// Maximum size of a texture in bytes.
const MOST_BYTES: usize = 1 << 32;

/// Position and size of a level in memory.
struct Stored {
    size: [usize; 3],
    layout: Layout,
    /// Offset in bytes of the level from the start of the texture.
    start: usize,
}

impl Stored {
    /// Returns a level of a texture. The bytes of the texture end at `end`. Layers are `stride` bytes apart. If tiles
    /// have several slices, this function first converts the tiles to rows.
    fn level(
        &self,
        bytes: &Arc<Vec<u8>>,
        (end, stride): (usize, usize),
        element: TexelElement,
        select: [Select; 4],
    ) -> Level {
        let (count, side) = (element.bytes(), element.side());
        let [width, height, depth] = self.size;
        let row = self.layout.pitch();
        if self.layout.has_rows() {
            let strides = Strides { start: self.start, element: count, row, slice: stride };
            return texels::level(bytes, LevelPlace { size: self.size, strides, end }, element, select);
        }
        let (row_bytes, rows) = (width.div_ceil(side) * count, height.div_ceil(side));
        let mut all = Vec::with_capacity(row_bytes * rows * depth + row);
        for (z, y) in (0..depth).flat_map(|z| (0..rows).map(move |y| (z, y))) {
            let mut x = 0;
            while x < row_bytes {
                let run = self.layout.run(x).min(row_bytes - x);
                let at = self.start + self.layout.place(x, y, z);
                let there = bytes.get(at..(at + run).min(end)).unwrap_or(&[]);
                all.extend_from_slice(there);
                all.resize(all.len() + run - there.len(), 0);
                x += run;
            }
        }
        let (end, slice) = (all.len(), row_bytes * rows);
        all.resize(end + size_of::<u128>(), 0);
        let strides = Strides { start: 0, element: count, row: row_bytes, slice };
        let place = LevelPlace { size: self.size, strides, end };
        texels::level(&Arc::new(all), place, element, select)
    }
}

/// Returns a texture, and the range of memory that contains the texture's bytes.
///
/// # Errors
/// Returns the name of an unsupported feature of the texture.
fn image(
    images: &mut Images,
    (chip, entry): (Chip, &[u32; 8]),
    memory: Vram<'_>,
    compares: bool,
) -> Result<(Texture, Range<usize>), String> {
    let words = Words::new(entry, chip);
    let element = element(&words, chip)?;
    let (bytes, side) = (element.bytes(), element.side());
    let [width, height, depth] = words.size;
    let (shape, has_height, has_depth, layers) = match words.target {
        0 => (Shape::D1, false, false, 1),
        1 | 7 => (Shape::D2, true, false, 1),
        2 => (Shape::D3, true, true, 1),
        3 => (Shape::Cube, true, false, 6),
        4 => (Shape::D1Array, false, false, depth),
        5 => (Shape::D2Array, true, false, depth),
        6 => (Shape::D1, false, false, 1),
        8 => (Shape::CubeArray, true, false, 6 * depth),
        target => return Err(format!("textures of target {target}")),
    };
    let integer = words.kinds.iter().all(|kind| matches!(kind, 3 | 4));
    let one = |source: u32| if source == 6 { 1 } else { 1f32.to_bits() };
    let select = words.sources.map(|source| match source {
        // The sampler compares the depth component. After the comparison, the sources in the entry select components of
        // the result.
        _ if compares => Select::Component(depth_component(words.format) as u8),
        2..=5 => Select::Component(source as u8 - 2),
        6 | 7 => Select::Word(one(source)),
        _ => Select::Word(0),
    });
    // Memory contains all levels of the texture. The texture's entry may select a part of the levels.
    let levels = if words.linear { 0..=0 } else { words.levels.clone() };
    let level_size = |number: usize| {
        let shrunk = |size: usize| (size >> number).max(1);
        let high = if has_height { shrunk(height) } else { 1 };
        (shrunk(width), high, if has_depth { shrunk(depth) } else { 1 })
    };
    let layout = |number: usize| {
        let (width, height, depth) = level_size(number);
        let (wide, high) = (width.div_ceil(side), height.div_ceil(side));
        if words.linear {
            return Layout::Linear { pitch: if words.target == 6 { wide * bytes } else { words.pitch } };
        }
        let mode =
            if number == 0 { words.mode } else { TileMode::of_level(high, has_depth.then_some(depth)) };
        Layout::tiled(mode, wide * bytes, high)
    };
    // Number of the last level in memory, from word 5.
    let stored = (entry[5] >> 28) as usize;
    let mut starts = Vec::new();
    let mut at = 0;
    for number in 0..=stored.max(*levels.end()) {
        starts.push(at);
        let (_, high, depth) = level_size(number);
        at += match layout(number) {
            Layout::Linear { pitch } => pitch.saturating_mul(high.div_ceil(side)),
            tiled => tiled.bytes(depth),
        };
    }
    let layer_stride = match words.linear {
        true => 0,
        false => at.next_multiple_of(layout(0).pitch().min(64) * words.mode.height() * words.mode.depth()),
    };
    // Number of bytes of the texture that the sampler may read.
    let most = if has_depth { 1 } else { layers };
    let size = most.saturating_sub(1).saturating_mul(layer_stride).saturating_add(at);
    let levels: Vec<Stored> = levels
        .map(|number| {
            let (width, height, depth) = level_size(number);
            let slices = if has_depth { depth } else { layers };
            Stored { size: [width, height, slices], layout: layout(number), start: starts[number] }
        })
        .collect();
    let counts = levels.iter().map(|level| level.size.into_iter().fold(1, usize::saturating_mul));
    let range = words.address..words.address.saturating_add(size);
    // The sampler can read texels of some formats directly from memory. In this case, the texels need no additional
    // memory.
    let in_place = element.is_in_place(select) && range.end <= memory.len();
    let most = if in_place { MOST_IN_PLACE } else { MOST };
    if size > MOST_BYTES || counts.max().is_some_and(|count| count > most) {
        return Err("textures that exceed the limit of texels".to_owned());
    }
    let texture = images.get((*entry, compares), range.clone(), memory, |bytes| {
        // A level with depth has no layers, so the distance of layers is 0. This distance is also not needed for
        // slices. A level with several slices has tiles with several slices. For these levels, `Stored::level` computes
        // the positions of slices from the tiles.
        let stride = if has_depth { 0 } else { layer_stride };
        let levels = levels.iter().map(|level| level.level(bytes, (size, stride), element, select));
        let image = Image::new(shape, levels.collect()).map_err(|error| error.to_string())?;
        let components = words.sources.map(|source| match source {
            2..=5 => Component::Share,
            6 | 7 => Component::One,
            _ => Component::Zero,
        });
        let clamps = !matches!(words.kinds[depth_component(words.format)], 7);
        let mut texture = Texture::new(Arc::new(image), integer);
        texture.compared = Compared { components, clamps };
        Ok::<_, String>(texture)
    })?;
    Ok((texture, range))
}

/// Returns the index of the component that contains depth.
fn depth_component(format: u32) -> usize {
    // In format 29h, the stencil is in the lower bits.
    usize::from(format == 0x29)
}

/// Returns the maximum number of positions of an anisotropic filter, if the texture's entry overrides the sampler. To
/// resolve eight samples, the driver sets USE_HEADER_OPT_CONTROL and MAX_ANISOTROPY of the entry.
fn anisotropy_of_texture(words: &[u32; 8]) -> Option<u8> {
    (words[3] >> 29 & 1 != 0).then(|| 1 << (words[6] >> 27 & 7).min(4))
}

/// Returns the sampler of an entry. `unnormalised` states whether coordinates of the texture count texels.
fn sampler(words: &[u32; 8], unnormalised: bool) -> TextureSampler {
    let field = |word: usize, high: u32, low: u32| words[word] >> low & (u32::MAX >> (31 - (high - low)));
    const WRAPS: [Wrap; 8] = [
        Wrap::Repeat,
        Wrap::Mirror,
        Wrap::ClampToEdge,
        Wrap::ClampToBorder,
        Wrap::Clamp,
        Wrap::MirrorOnceToEdge,
        Wrap::MirrorOnceToBorder,
        Wrap::MirrorOnce,
    ];
    let wrap = |low: u32| WRAPS[field(0, low + 2, low) as usize];
    let filter = |code: u32| if code == 2 { Filter::Linear } else { Filter::Nearest };
    let fixed = |value: u32| value as f32 / 256.;
    let bias = (field(1, 24, 12) << 19) as i32 >> 19;
    TextureSampler {
        sampler: Sampler {
            wrap: [wrap(0), wrap(3), wrap(6)],
            mag: filter(field(1, 1, 0)),
            min: filter(field(1, 5, 4)),
            mip: match field(1, 7, 6) {
                2 => MipFilter::Nearest,
                3 => MipFilter::Linear,
                _ => MipFilter::None,
            },
            border: [words[4], words[5], words[6], words[7]],
            min_lod: fixed(field(2, 11, 0)),
            max_lod: fixed(field(2, 23, 12)),
            lod_bias: bias as f32 / 256.,
            unnormalised,
            seamless: false,
            // Mesa, `nv50_sampler_state_create`.
            anisotropy: [1, 2, 4, 6, 8, 10, 12, 16][field(0, 22, 20) as usize],
        },
        compare: (field(0, 9, 9) != 0).then(|| Compare::ALL[field(0, 12, 10) as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured: an RGBA8 texture of 64 x 64 texels with seven levels.
    #[test]
    fn the_levels_of_a_captured_texture_are_where_the_driver_put_them() {
        let words = [0x2c69_2488, 0, 0xd100_5000, 0x0030_0000, 0x8000_0040, 0x6001_0040, 0x0300_0000, 0x60];
        let mut memory = vec![0; 0x6000];
        for (level, start) in [0, 0x4000, 0x5000, 0x5400, 0x5600, 0x5700, 0x5800].into_iter().enumerate() {
            memory[start] = level as u8 + 1;
        }
        let (texture, _) =
            image(&mut Images::default(), (Chip::Gt215, &words), Vram::new(&mut memory), false).unwrap();
        for level in 0..7 {
            let red = f32::from_bits(texture.image.texel(level, 0, 0, 0).unwrap()[0]) * 255.;
            assert!((red - (level + 1) as f32).abs() < 0.01, "{level}: {red}");
        }
    }

    /// Mesa `nv50_create_texture_view`: on G80, word 7 is 0, and word 5 has the last level. On later chips, word 7 has
    /// the first and the last level of the view. If the view has one level, the first and the last level are both 0.
    #[test]
    fn a_view_of_the_first_level_has_one_level() {
        let words = [0x2c69_2488, 0, 0xd100_5000, 0x0030_0000, 0x8000_0040, 0x6001_0040, 0x0300_0000, 0];
        let mut memory = vec![0; 0x6000];
        let mut levels = |chip: Chip| {
            let (texture, _) =
                image(&mut Images::default(), (chip, &words), Vram::new(&mut memory), false).unwrap();
            texture.image.levels().len()
        };
        assert_eq!([Chip::G84, Chip::G200, Chip::Mcp77, Chip::Gt215].map(&mut levels), [1; 4]);
        assert_eq!(levels(Chip::G80), 7);
    }

    /// Mesa `nv50_formats.c`: L8A8_SRGB has two components. The format selects R, R, R and G, and sets the bit for the
    /// sRGB curve. NV92 passes piglit's `teximage-colors GL_SLUMINANCE8_ALPHA8`.
    #[test]
    fn alpha_beside_luminance_is_not_on_the_curve() {
        // A linear texture with one texel. The components of the texel are selected from R, R, R and G.
        let sources = 2 << 18 | 2 << 21 | 2 << 24 | 3 << 27;
        let words = [0x18 | 0o2222 << 6 | sources, 0, 0x9005_4400, 64, 1, 0x0001_0001, 0, 0];
        let mut memory = vec![128; 64];
        let entry = (Chip::Gt215, &words);
        let (texture, _) = image(&mut Images::default(), entry, Vram::new(&mut memory), false).unwrap();
        let texel = texture.image.texel(0, 0, 0, 0).unwrap().map(f32::from_bits);
        assert!((texel[0] - 0.2158).abs() < 0.001 && texel[..3] == [texel[0]; 3], "{texel:?}");
        assert_eq!(texel[3], 128. / 255.);
    }

    /// Inferred from NV92, which fails all tests in which the driver writes the border as integers.
    #[test]
    fn the_border_of_a_texture_of_integers_is_that_of_floats() {
        let sources = 2 << 18 | 3 << 21 | 4 << 24 | 5 << 27;
        let entry = |kind: u32| [0x08 | (kind * 0o1111) << 6 | sources, 0, 0, 0, 0, 0, 0, 0];
        let floats = [3.7f32, -2., 300., -300.].map(f32::to_bits);
        assert_eq!(integers(floats, &entry(4)), [3, 0, 255, 0]);
        assert_eq!(integers(floats, &entry(3)).map(|word| word as i32), [3, -2, 127, -128]);
        // The bits of a small integer, interpreted as a float, are nearly zero.
        assert_eq!(integers([25, 200, 1, 0], &entry(4)), [0; 4]);
    }

    /// Captured: the default sampler of OpenGL.
    #[test]
    fn the_default_sampler_reads_as_gl_says() {
        let found = sampler(&[0x0002_6000, 0xd2, 0x00f0_0000, 0, 0, 0, 0, 0], false);
        assert_eq!((found.sampler.mag, found.sampler.min), (Filter::Linear, Filter::Nearest));
        assert_eq!((found.sampler.mip, found.compare, found.sampler.max_lod), (MipFilter::Linear, None, 15.));
    }

    /// Mesa `nv50_sampler_state_create`: for an anisotropy of up to 10, the code is half of the anisotropy. For 12, the
    /// code is 6. For 16, the code is 7.
    #[test]
    fn the_anisotropy_of_a_sampler_is_a_code() {
        let read = |code: u32| sampler(&[code << 20, 0, 0, 0, 0, 0, 0, 0], false).sampler.anisotropy;
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(read), [1, 2, 4, 6, 8, 10, 12, 16]);
    }
}
