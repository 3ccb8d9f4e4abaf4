//! Writes launch files. A launch file contains or names all inputs of a launch. The named files are in the same folder.
//!
//! Commands such as `reconverge run` read a launch file and create the launch (docs/launch-files.md). Short lists of
//! numbers are written inline, as bits. Longer lists are written to a file, through a [`Store`].

mod r500;
mod r700;
mod tesla;

use std::fmt::Write;

use reconverge_isa::Isa;
use reconverge_r700::texture::{COMPARES, FILTERS, MIP_FILTERS, WRAPS};
use reconverge_simt::Options;
use reconverge_simt::texture::{Compare, Image, Sampler, Shape};

use crate::observe::{ChipProgram, Lanes, Launched, Machine, Output, Rows};

/// Storage of the files that a launch file names.
pub trait Store {
    /// Stores a file and returns the name of the file. The name has the extension `ending`. If an earlier file has the
    /// same contents, the store may return the name of the earlier file.
    ///
    /// # Errors
    /// Returns a message if the file cannot be stored.
    fn put(&mut self, kind: &str, ending: &str, bytes: Vec<u8>) -> Result<String, String>;
}

/// Maximum number of words that are written inline.
const IN_PLACE: usize = 64;

/// A launch file under construction.
#[derive(Clone, Debug, Default)]
pub struct LaunchText {
    /// Fields of the launch. In TOML, the fields precede all tables.
    fields: String,
    /// Tables of the launch. The file contains the tables after the fields.
    tables: String,
}

impl LaunchText {
    /// Writes a captured launch: the program, the inputs, the lanes and the expected outputs. `trap` is the trap that
    /// ended the draw, if any. After a trap, the launch in which the trap occurred has no outputs. Only this launch
    /// gets the field `trap`.
    ///
    /// # Errors
    /// Returns the store's error, or a message about a feature that launch files cannot describe.
    pub fn captured(
        launched: &Launched,
        trap: Option<&str>,
        store: &mut dyn Store,
    ) -> Result<LaunchText, String> {
        let Launched { program, machine, options, lanes, outputs, .. } = launched;
        let mut text = LaunchText::of(program, machine, options, store)?;
        match lanes {
            Lanes::Vertices(vertices) => text.vertices(vertices, store)?,
            Lanes::Pixels(pixels) => text.pixels(pixels, store)?,
            Lanes::Threads(_) => {}
        }
        if launched.integers && program.isa == Isa::R700 {
            text.field("output_type", format_args!("\"u32\""));
        }
        if let Some(trap) = trap.filter(|_| outputs.is_empty()) {
            text.field("trap", format_args!("{:?}", trap.rsplit(": ").next().unwrap_or(trap)));
        }
        for (name, output) in outputs {
            match output {
                Output::Words(rows) => text.expect(name, rows, store)?,
                Output::Flags(flags) => text.expect_flags(name, flags, store)?,
            }
        }
        Ok(text)
    }

    /// Writes a launch with the program. Writes no lanes and no expected outputs.
    ///
    /// # Errors
    /// Returns the store's error, or a message about a feature that launch files cannot describe.
    pub fn of(
        program: &ChipProgram,
        machine: &Machine,
        options: &Options,
        store: &mut dyn Store,
    ) -> Result<LaunchText, String> {
        let mut text = LaunchText::default();
        let (ending, bytes) = match program.isa {
            Isa::R700 => ("bin", program.words.iter().flat_map(|word| word.to_le_bytes()).collect()),
            // In addition to words, a program file for R500 or Tesla contains state registers and addresses.
            Isa::R500 | Isa::Tesla => {
                let (ending, file) = program.file();
                (ending, file.into_bytes())
            }
        };
        let file = store.put("program", ending, bytes)?;
        text.field("isa", format_args!("{:?}", program.isa.name()));
        text.field("program", format_args!("{file:?}"));
        text.field("chip", format_args!("{:?}", program.chip.to_uppercase()));
        text.field("stage", format_args!("{:?}", program.stage.name()));
        text.field("mode", format_args!("{:?}", options.mode.name()));
        text.field("watchdog", format_args!("{}", options.watchdog));
        match machine {
            Machine::R700(launch) => r700::fields(&mut text, launch, store)?,
            Machine::R500(launch) => r500::fragments(&mut text, launch, store)?,
            Machine::Pvs(launch) => r500::vertices(&mut text, launch, store)?,
            Machine::TeslaFragment(launch) => tesla::fragments(&mut text, launch, store)?,
            Machine::TeslaVertex(launch) => tesla::vertices(&mut text, launch, store)?,
            Machine::TeslaCompute(launch) => tesla::grid(&mut text, launch, store)?,
        }
        Ok(text)
    }

    /// Writes three numbers for the pixel of each lane: x, y, and a flag. The flag is 1 if the primitive covers the
    /// pixel, otherwise 0.
    fn pixels(&mut self, pixels: &[[i32; 3]], store: &mut dyn Store) -> Result<(), String> {
        let bytes = pixels.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect();
        let file = store.put("pixels", "bin", bytes)?;
        self.field("pixels", format_args!("\"{file}:i32\""));
        Ok(())
    }

    /// Writes the index and the instance of each lane's vertex.
    fn vertices(&mut self, vertices: &[[u32; 2]], store: &mut dyn Store) -> Result<(), String> {
        let values = typed("vertices", "u32", (2, vertices.as_flattened()), store)?;
        self.field("vertices", format_args!("{values}"));
        Ok(())
    }

    /// Writes the expected words of an output.
    fn expect(&mut self, output: &str, rows: &Rows, store: &mut dyn Store) -> Result<(), String> {
        let values = typed(output, "bits", (rows.width, &rows.words), store)?;
        self.table("expect", &[("output", format!("{output:?}")), ("values", values)]);
        Ok(())
    }

    /// Writes the expected flags of an output. Each lane has one flag.
    fn expect_flags(&mut self, output: &str, flags: &[bool], store: &mut dyn Store) -> Result<(), String> {
        let file = store.put(output, "bin", flags.iter().map(|flag| u8::from(*flag)).collect())?;
        self.table("expect", &[("output", format!("{output:?}")), ("values", format!("\"{file}:u8\""))]);
        Ok(())
    }

    /// Returns the text of the launch file.
    pub fn text(&self) -> String {
        format!("{}{}", self.fields, self.tables)
    }

    fn field(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.fields, "{name} = {value}");
    }

    fn table(&mut self, name: &str, fields: &[(&str, String)]) {
        let _ = writeln!(self.tables, "\n[[{name}]]");
        for (field, value) in fields {
            let _ = writeln!(self.tables, "{field} = {value}");
        }
    }
}

/// Returns rows of words as a value of type `bits`. The value contains the words inline, or names a file that contains
/// the words.
fn bits<const N: usize>(kind: &str, rows: &[[u32; N]], store: &mut dyn Store) -> Result<String, String> {
    typed(kind, "bits", (N, rows.as_flattened()), store)
}

/// Returns rows of words as a typed value of a launch file. The value contains the words inline, or names a file that
/// contains the words.
fn typed(
    kind: &str,
    dtype: &str,
    (width, words): (usize, &[u32]),
    store: &mut dyn Store,
) -> Result<String, String> {
    if (1..=IN_PLACE).contains(&words.len()) {
        let row = |row: &[u32]| row.iter().map(|word| format!("{word:#x}")).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = words.chunks(width.max(1)).map(|words| format!("[{}]", row(words))).collect();
        return Ok(format!("{{ type = \"{dtype}\", list = [{}] }}", rows.join(", ")));
    }
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(format!("\"{}:{dtype}\"", store.put(kind, "bin", bytes)?))
}

/// Returns three kinds of fields for a `[[texture]]` table: sizes, levels and texels. These fields describe the image
/// of the texture.
fn image(unit: u8, image: &Image, store: &mut dyn Store) -> Result<Vec<(&'static str, String)>, String> {
    let Some(first) = image.levels().first() else { return Err(format!("texture {unit} has no level")) };
    let (width, height, depth) = (first.width, first.height, first.depth);
    let (size, kinds): (Vec<u32>, &[&'static str]) = match image.shape() {
        Shape::D1 => (vec![width], &[]),
        Shape::D2 => (vec![width, height], &[]),
        Shape::D3 => (vec![width, height, depth], &[]),
        Shape::Cube => (vec![width], &["cube"]),
        Shape::D1Array => (vec![width, depth], &["layers"]),
        Shape::D2Array => (vec![width, height, depth], &["layers"]),
        Shape::CubeArray => (vec![width, depth / 6], &["cube", "layers"]),
    };
    let texels = image.levels().iter().flat_map(|level| level.texels().flatten());
    let bytes = texels.flat_map(|word| word.to_le_bytes()).collect();
    let file = store.put("texture", "bin", bytes)?;
    let mut fields = vec![
        ("unit", unit.to_string()),
        ("size", format!("{size:?}")),
        ("levels", image.levels().len().to_string()),
        ("texels", format!("\"{file}:bits\"")),
    ];
    fields.extend(kinds.iter().map(|kind| (*kind, "true".to_owned())));
    Ok(fields)
}

/// Writes a `[[sampler]]` table.
fn sampler(
    text: &mut LaunchText,
    number: u8,
    (sampler, compare): (&Sampler, Option<Compare>),
    store: &mut dyn Store,
) -> Result<(), String> {
    let Sampler {
        wrap,
        mag,
        min,
        mip,
        border,
        min_lod,
        max_lod,
        lod_bias,
        unnormalised,
        seamless,
        anisotropy,
    } = *sampler;
    let mut fields = vec![
        ("number", number.to_string()),
        ("wrap", format!("{:?}", wrap.map(|wrap| named(&WRAPS, wrap)))),
        ("mag", format!("{:?}", named(&FILTERS, mag))),
        ("min", format!("{:?}", named(&FILTERS, min))),
        ("mip", format!("{:?}", named(&MIP_FILTERS, mip))),
        ("border", bits("border", &[border], store)?),
        ("min_lod", format!("{min_lod:?}")),
        ("max_lod", format!("{max_lod:?}")),
        ("lod_bias", format!("{lod_bias:?}")),
    ];
    fields.extend(compare.map(|compare| ("compare", format!("{:?}", named(&COMPARES, compare)))));
    fields.extend(unnormalised.then(|| ("unnormalised", "true".to_owned())));
    fields.extend(seamless.then(|| ("seamless", "true".to_owned())));
    fields.extend((anisotropy > 1).then(|| ("anisotropy", anisotropy.to_string())));
    text.table("sampler", &fields);
    Ok(())
}

/// Returns the name of a value.
fn named<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}
