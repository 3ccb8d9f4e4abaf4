//! Launch files of what was launched elsewhere: everything that a program started from, as text and files beside it.
//!
//! What is written here `reconverge run` and the others read as the same launch (docs/launch-files.md). A few numbers are
//! written in place, as bits; more of them go to a file, through a [`Store`].

mod r700;

use std::fmt::Write;

use reconverge_isa::{Isa, Program};
use reconverge_r700::launch::Launch;
use reconverge_simt::Options;

/// Takes the files that launch files name.
pub trait Store {
    /// Takes a file and gives its name, which ends as asked; a file of the same content may have been taken before.
    ///
    /// # Errors
    /// Why it cannot be taken, for people.
    fn put(&mut self, kind: &str, ending: &str, bytes: Vec<u8>) -> Result<String, String>;
}

/// Words that are written in place.
const IN_PLACE: usize = 64;

/// A launch file while it is written.
#[derive(Clone, Debug, Default)]
pub struct LaunchText {
    /// Fields of the launch itself: in TOML they come first.
    fields: String,
    /// Tables behind them.
    tables: String,
}

impl LaunchText {
    /// A launch of R600 or R700, with its program.
    ///
    /// # Errors
    /// The store's, and what no launch file can say, by name.
    pub fn r700(
        program: &Program,
        launch: &Launch,
        options: &Options,
        store: &mut dyn Store,
    ) -> Result<LaunchText, String> {
        let mut text = LaunchText::default();
        let words = program.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = store.put("program", "bin", words)?;
        text.field("isa", format_args!("{:?}", Isa::R700.to_string()));
        text.field("program", format_args!("{file:?}"));
        text.field("chip", format_args!("{:?}", launch.chip.name.to_uppercase()));
        text.field("lanes", format_args!("{}", launch.lanes));
        text.field("mode", format_args!("{:?}", options.mode.name()));
        text.field("watchdog", format_args!("{}", options.watchdog));
        r700::fields(&mut text, launch, store)?;
        Ok(text)
    }

    /// x, y and whether the primitive covers it (1), of the pixel of each lane.
    ///
    /// # Errors
    /// The store's.
    pub fn pixels(&mut self, pixels: &[[i32; 3]], store: &mut dyn Store) -> Result<(), String> {
        let bytes = pixels.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect();
        let file = store.put("pixels", "bin", bytes)?;
        self.field("pixels", format_args!("\"{file}:i32\""));
        Ok(())
    }

    /// Index and instance of the vertex of each lane.
    ///
    /// # Errors
    /// The store's.
    pub fn vertices(&mut self, vertices: &[[u32; 2]], store: &mut dyn Store) -> Result<(), String> {
        let values = typed("vertices", "u32", vertices, store)?;
        self.field("vertices", format_args!("{values}"));
        Ok(())
    }

    /// The type of the outputs, where it is not `f32`.
    pub fn output_type(&mut self, name: &str) {
        self.field("output_type", format_args!("{name:?}"));
    }

    /// Four words a lane that must come out.
    ///
    /// # Errors
    /// The store's.
    pub fn expect(&mut self, output: &str, values: &[[u32; 4]], store: &mut dyn Store) -> Result<(), String> {
        let values = bits(output, values, store)?;
        self.table("expect", &[("output", format!("{output:?}")), ("values", values)]);
        Ok(())
    }

    /// A flag a lane that must come out.
    ///
    /// # Errors
    /// The store's.
    pub fn expect_flags(
        &mut self,
        output: &str,
        flags: &[bool],
        store: &mut dyn Store,
    ) -> Result<(), String> {
        let file = store.put(output, "bin", flags.iter().map(|flag| u8::from(*flag)).collect())?;
        self.table("expect", &[("output", format!("{output:?}")), ("values", format!("\"{file}:u8\""))]);
        Ok(())
    }

    /// Part of the message of the trap that it must end with.
    pub fn trap(&mut self, message: &str) {
        self.field("trap", format_args!("{message:?}"));
    }

    /// The text.
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

/// Words by row, as bits: in place, or the name of a file of them.
fn bits<const N: usize>(kind: &str, rows: &[[u32; N]], store: &mut dyn Store) -> Result<String, String> {
    typed(kind, "bits", rows, store)
}

fn typed<const N: usize>(
    kind: &str,
    dtype: &str,
    rows: &[[u32; N]],
    store: &mut dyn Store,
) -> Result<String, String> {
    if (1..=IN_PLACE).contains(&rows.as_flattened().len()) {
        let words =
            |row: &[u32; N]| row.iter().map(|word| format!("{word:#x}")).collect::<Vec<_>>().join(", ");
        let rows: Vec<String> = rows.iter().map(|row| format!("[{}]", words(row))).collect();
        return Ok(format!("{{ type = \"{dtype}\", list = [{}] }}", rows.join(", ")));
    }
    let bytes = rows.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(format!("\"{}:{dtype}\"", store.put(kind, "bin", bytes)?))
}
