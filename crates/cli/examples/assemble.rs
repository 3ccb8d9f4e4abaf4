//! Assembles a source: shows the position of an error, then writes the corrected program in two formats and reads one
//! back.
//!
//! `cargo run -p reconverge --example assemble`

use std::error::Error;
use std::io::Write;

use reconverge::{Error as Failure, OpenOptions, State, assemble, open};

/// A kernel that writes three times the thread number. `ad` is not an instruction.
const SOURCE: &str = "\
.isa tesla
.kernel triple
.reg 2
    and b32 $r0 $r0 0xffff      ; the thread
    ad b32 $r1 $r0 $r0
    add b32 $r1 $r1 $r0
    shl b32 $r0 $r0 0x2
    add b32 $r0 b32 s[0x10] $r0 ; the buffer
    exit st b32 g14[$r0] $r1
";

fn main() -> Result<(), Box<dyn Error>> {
    show(&mut std::io::stdout())
}

pub(crate) fn show(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    match assemble(SOURCE, &OpenOptions::default()) {
        Err(Failure::Source(source)) => {
            for (line, column, error) in source.errors() {
                writeln!(out, "line {line}, column {column}: {error}")?;
            }
        }
        other => writeln!(out, "expected an error of the source, found {other:?}")?,
    }

    let file = assemble(&SOURCE.replace("    ad b32", "    add b32"), &OpenOptions::default())?;
    writeln!(out, "\nformats of {}: {}", file.isa(), file.isa().formats().join(", "))?;
    for format in ["hex", "cubin"] {
        let written = file.write(format, State::Required)?;
        write!(out, "\n{format}, {} bytes:\n{}", written.content.len(), String::from_utf8(written.content)?)?;
    }

    let cubin = file.write("cubin-elf32", State::Required)?.content;
    let again = open(&cubin, &OpenOptions::default())?;
    assert_eq!(again.only_program()?.words(), file.only_program()?.words());
    writeln!(out, "\n{} contains the same {} words", again.format(), again.only_program()?.words().len())?;
    Ok(())
}
