//! Decodes a binary: opens a cubin, lists its programs, prints one as text, and explains an instruction field by field.
//!
//! `cargo run -p reconverge --example decode`

use std::error::Error;
use std::io::Write;

use reconverge::{OpenOptions, TextOptions, open};

/// A text cubin of CUDA 1.x. Any format that `reconverge list` reads works here.
const CUBIN: &[u8] = include_bytes!("../../../docs/samples/vec.cubin");

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let file = open(CUBIN, &OpenOptions::default())?;
    writeln!(out, "{}: {} for {}", file.format(), file.isa(), file.chip().unwrap_or("any chip"))?;
    for program in file.programs() {
        writeln!(out, "  program {}: {} words", program.name().unwrap_or("?"), program.words().len())?;
    }

    let program = file.program("add")?;
    writeln!(out, "\n{}", program.text(&TextOptions::default().hex().notes())?)?;

    // The third instruction. Its line has the address.
    let lines = program.lines(&TextOptions::default())?;
    let address = lines.iter().filter_map(|line| line.address).nth(2).ok_or("the program is too short")?;
    let explained = program.explain(address)?;
    writeln!(out, "{}: {}", program.spelled(address), explained.text)?;
    for field in explained.fields.iter().filter(|field| field.value != 0 && !field.text.is_empty()) {
        writeln!(
            out,
            "  {:>2}-{:<2} of word {}: {} = {}",
            field.hi, field.lo, field.index, field.name, field.text
        )?;
    }
    writeln!(out, "  {}", explained.meaning.join(" "))?;
    Ok(())
}
