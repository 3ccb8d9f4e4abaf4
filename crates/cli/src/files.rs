//! Reading and writing files. The file name `-` means standard input or standard output.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use reconverge_cases::{Case, Folder, NoFolder};
use reconverge_container::{Format, Hints, recognise};
use reconverge_isa::limits::{FILE, Limit, host_room};
use reconverge_output::{Whole, discard_unfinished};
use reconverge_workbench::keys::plain;
use reconverge_workbench::open::{OpenError, has_source};
use reconverge_workbench::target::isa_of_source;
use reconverge_workbench::{Known, Opened, open};

use crate::args::{InputArgs, TargetArgs};
use crate::messages::{SourceErrors, answer_bytes, note, warn};

/// Reads a file, up to the limit [`FILE`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let (read, name) = match path == Path::new("-") {
        true => (bounded(io::stdin(), &FILE), "standard input".to_owned()),
        false => (read_bounded(path, &FILE), crate::shown::path(&path)),
    };
    let has_room = |bytes: Vec<u8>| -> Result<Vec<u8>> {
        host_room((bytes.len() as u64).saturating_mul(COPIES))?;
        Ok(bytes)
    };
    read.and_then(has_room).context(name)
}

/// While the command reads a program or launch file, memory contains approximately this number of copies of the file.
const COPIES: u64 = 16;

/// Reads a file, up to a limit in bytes.
pub(crate) fn read_bounded(path: &Path, limit: &'static Limit) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    // Pipes and other files that are not regular have the length 0. So the function also limits the number of bytes
    // that it reads from the file.
    limit.check(file.metadata()?.len())?;
    bounded(file, limit)
}

fn bounded(from: impl Read, limit: &'static Limit) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit.get().saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit.get() {
        true => Err(limit.exceeded().into()),
        false => Ok(bytes),
    }
}

/// Writes a file atomically; `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        answer_bytes(bytes);
        return Ok(());
    }
    write_whole(path, |file| file.write_all(bytes))
}

/// Writes a file atomically. `make` writes the content.
pub(crate) fn write_whole(path: &Path, make: impl FnOnce(&mut Whole) -> io::Result<()>) -> Result<()> {
    let written = Whole::create(path).and_then(|mut file| {
        make(&mut file)?;
        file.finish()
    });
    written.with_context(|| crate::shown::path(&path))
}

/// Ends the process at once, after deleting the partial files.
pub(crate) fn leave(status: i32) -> ! {
    // The process holds the lock until the process ends, so that no other thread starts or finishes an output file.
    let _unfinished = discard_unfinished();
    std::process::exit(status)
}

/// Opens a program file, and prints the notes and warnings about the file.
pub(crate) fn open_program(path: &Path, args: &InputArgs) -> Result<Opened> {
    opened(path, &read(path)?, args)
}

/// Opens a program file, or the program of one case in a file of cases.
pub(crate) fn open_program_or_case(path: &Path, case: Option<&str>, args: &InputArgs) -> Result<Opened> {
    let Some(case) = case else { return open_program(path, args) };
    args.no_case()?;
    let cases = cases(path, &args.target)?;
    let found = reconverge_cases::find(&cases, case).with_context(|| crate::shown::path(&path))?;
    Ok(found.open().with_context(|| crate::shown::path(&path))?.opened)
}

/// Returns the cases of a file.
pub(crate) fn cases(path: &Path, args: &TargetArgs) -> Result<Vec<Case>> {
    let folder: Arc<dyn Folder> = Arc::new(NoFolder);
    Ok(reconverge_cases::read(&plain(path).display().to_string(), &read(path)?, &folder, args.isa)?)
}

/// Opens the content of a program file, and prints the notes and warnings about the file.
pub(crate) fn opened(path: &Path, bytes: &[u8], args: &InputArgs) -> Result<Opened> {
    let name = crate::shown::path(&path);
    let source = || has_source(&name, bytes) || path == Path::new("-") && reads_as_source(bytes);
    let source = args.read.is_source(source);
    let known = if source { with_included(args.known(), path, bytes) } else { args.known() };
    match open(bytes, source, &known) {
        Ok(opened) => {
            opened.image.notes.iter().for_each(|text| note(&format!("{name}: {text}")));
            warn(path, &String::from_utf8_lossy(bytes), &opened.warnings);
            Ok(opened)
        }
        Err(OpenError::Source(errors)) => {
            let text = String::from_utf8_lossy(bytes);
            Err(SourceErrors::new(&name, &text, &errors).into())
        }
        Err(error) => Err(anyhow!(error).context(name)),
    }
}

/// Adds the files that a source includes. The names of these files are relative to the source's folder.
pub(crate) fn with_included(known: Known, path: &Path, source: &[u8]) -> Known {
    let folder = path.parent().unwrap_or(Path::new(""));
    known.with_included(source, &mut |name| {
        read_bounded(&folder.join(name), &FILE).map_err(|error| format!("{error:#}"))
    })
}

/// Returns whether a file without a name is an assembler source. The file is a source if its text names a machine, or
/// if its text does not begin like a file of another format.
fn reads_as_source(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let words = || reconverge_container::load(bytes, &Hints::default()).is_ok();
    isa_of_source(text).is_some() || matches!(recognise(bytes), Ok(Format::Hex32)) && !words()
}
