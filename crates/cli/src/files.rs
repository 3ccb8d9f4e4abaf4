//! Reading and writing files; `-` is standard input or output.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use reconverge_cases::{Case, Folder, NoFolder};
use reconverge_container::{Format, Hints, recognise};
use reconverge_isa::limits::{FILE, Limit, host_room};
use reconverge_workbench::machine::isa_of_source;
use reconverge_workbench::open::{OpenError, is_source};
use reconverge_workbench::{Opened, open};

use crate::TargetArgs;
use crate::messages::{SourceErrors, answer_bytes, note, warn};

/// The bytes of a file, as many as [`FILE`] allows.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let (read, name) = match path == Path::new("-") {
        true => (bounded(io::stdin(), &FILE), "standard input".to_owned()),
        false => (read_bounded(path, &FILE), path.display().to_string()),
    };
    let has_room = |bytes: Vec<u8>| -> Result<Vec<u8>> {
        host_room((bytes.len() as u64).saturating_mul(COPIES))?;
        Ok(bytes)
    };
    read.and_then(has_room).context(name)
}

/// How many times the bytes of a program's or launch's file are there at once while it is read, about.
const COPIES: u64 = 16;

/// The bytes of a file, as many as a limit allows.
pub(crate) fn read_bounded(path: &Path, limit: &'static Limit) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    // What is no regular file has no length.
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

/// Writes a file, whole or not at all; `-` is standard output.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        answer_bytes(bytes);
        return Ok(());
    }
    write_whole(path, |file| file.write_all(bytes))
}

/// Writes a file by `make`, whole or not at all.
pub(crate) fn write_whole(path: &Path, make: impl FnOnce(&mut Whole) -> io::Result<()>) -> Result<()> {
    let written = Whole::create(path).and_then(|mut file| {
        make(&mut file)?;
        file.finish()
    });
    written.with_context(|| path.display().to_string())
}

/// Files that are being written, under the names that they have meanwhile.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is whole or not there: it is written beside its place, under a name that begins with a dot and ends in
/// `.part`, and moved there by [`Whole::finish`]. When it is dropped before, nothing is left of it. What has its place
/// already and is no regular file (a pipe, a device) is written as it is.
pub(crate) struct Whole {
    file: File,
    /// Where it is meanwhile, and where it goes.
    places: Option<(PathBuf, PathBuf)>,
}

impl Whole {
    /// A file that will be at `path`.
    pub(crate) fn create(path: &Path) -> io::Result<Whole> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A link stays one: the file that it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let before = fs::metadata(&path).ok();
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            let file = OpenOptions::new().write(true).truncate(true).open(&path)?;
            return Ok(Whole { file, places: None });
        }
        if before.is_some() {
            // One that may not be written is not replaced either.
            OpenOptions::new().write(true).open(&path)?;
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let meanwhile = path.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&meanwhile)?;
        unfinished().push(meanwhile.clone());
        let whole = Whole { file, places: Some((meanwhile, path)) };
        if let Some(before) = before {
            whole.file.set_permissions(before.permissions())?;
        }
        Ok(whole)
    }

    /// Moves the file to its place.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((meanwhile, path)) = &self.places {
            fs::rename(meanwhile, path)?;
            unfinished().retain(|other| other != meanwhile);
            self.places = None;
        }
        Ok(())
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some((meanwhile, _)) = &self.places {
            // It may have been removed when the program is being left.
            let _ = fs::remove_file(meanwhile);
            unfinished().retain(|other| other != meanwhile);
        }
    }
}

fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the program at once. Nothing is left of files that are being written.
pub(crate) fn leave(status: i32) -> ! {
    let unfinished = unfinished();
    unfinished.iter().for_each(|file| drop(fs::remove_file(file)));
    // Locked until the end: no other thread begins or finishes a file.
    std::process::exit(status)
}

/// Opens a program file, printing its notes and warnings.
pub(crate) fn open_program(path: &Path, args: &TargetArgs) -> Result<Opened> {
    opened(path, &read(path)?, args)
}

/// Opens a program file, or of a file of cases the program of one.
pub(crate) fn open_program_or_case(path: &Path, case: Option<&str>, args: &TargetArgs) -> Result<Opened> {
    let Some(case) = case else { return open_program(path, args) };
    let cases = cases(path, args)?;
    let found = reconverge_cases::find(&cases, case).with_context(|| path.display().to_string())?;
    Ok(found.open().with_context(|| path.display().to_string())?.opened)
}

/// The cases of a file.
pub(crate) fn cases(path: &Path, args: &TargetArgs) -> Result<Vec<Case>> {
    let folder: Arc<dyn Folder> = Arc::new(NoFolder);
    Ok(reconverge_cases::read(&path.display().to_string(), &read(path)?, &folder, args.isa)?)
}

/// Opens the content of a program file, printing its notes and warnings.
pub(crate) fn opened(path: &Path, bytes: &[u8], args: &TargetArgs) -> Result<Opened> {
    let name = path.display().to_string();
    match open(bytes, is_source(&name) || path == Path::new("-") && reads_as_source(bytes), &args.known()) {
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

/// Whether what has no name is a source: a text that says which machine it is for, or one that begins like no other
/// format.
fn reads_as_source(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let words = || reconverge_container::load(bytes, &Hints::default()).is_ok();
    isa_of_source(text).is_some() || matches!(recognise(bytes), Ok(Format::Hex32)) && !words()
}
