//! Output files. An output file appears only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Temporary paths of the files that are being written.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Maximum number of random names to try. The process needs a second name only if a file with the first name exists.
/// This is extremely unlikely.
const TRIES: usize = 16;

/// An output file. The file appears only when it is complete.
///
/// Data is written to a new file `.NAME.RANDOM.part` in the folder of the output file. [`Whole::finish`] gives this
/// file its final name. If the value is dropped before the call of [`Whole::finish`], the file is deleted. If a pipe or
/// a device exists at the path, data is written directly to the pipe or device. `RANDOM` comes from the operating
/// system. The creation fails if the file already exists. Therefore an attacker cannot place a link with the file's
/// name beforehand. Also, two processes never write the same file, even if their process numbers are equal.
#[derive(Debug)]
pub struct Whole {
    file: File,
    /// Temporary path and final path of the file. If data is written directly, this field is `None`.
    places: Option<(PathBuf, PathBuf)>,
}

impl Whole {
    /// Creates a file that will appear at `path`. If `path` is a link, the new file replaces the link's target.
    ///
    /// # Errors
    /// Returns an error if the folder or an existing file at `path` is not writable.
    pub fn create(path: &Path) -> io::Result<Whole> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let before = fs::metadata(&path).ok();
        if before.as_ref().is_some_and(|before| !before.is_file()) {
            let file = OpenOptions::new().write(true).truncate(true).open(&path)?;
            return Ok(Whole { file, places: None });
        }
        if before.is_some() {
            // This call fails if the existing file is not writable. Without this check, a rename would replace the
            // file.
            OpenOptions::new().write(true).open(&path)?;
        }
        let whole = Whole::replace(&path)?;
        if let Some(before) = before {
            whole.file.set_permissions(before.permissions())?;
        }
        Ok(whole)
    }

    /// Creates a file that will appear at `path`. The file will replace anything with this name, including a link.
    ///
    /// # Errors
    /// Returns an error if the folder is not writable.
    pub fn replace(path: &Path) -> io::Result<Whole> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let mut tries = 0;
        loop {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}.part", random_name()?));
            let meanwhile = path.with_file_name(hidden);
            tries += 1;
            match OpenOptions::new().write(true).create_new(true).open(&meanwhile) {
                Ok(file) => {
                    unfinished().push(meanwhile.clone());
                    return Ok(Whole { file, places: Some((meanwhile, path.to_path_buf())) });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the time at which the file was last written, by the clock of the file system.
    ///
    /// # Errors
    /// Returns an error if the file system does not report the time.
    pub fn modified(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Renames the file to its final path.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written or renamed. In this case, the file is deleted.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((meanwhile, path)) = &self.places {
            fs::rename(meanwhile, path)?;
            unfinished().retain(|other| other != meanwhile);
            self.places = None;
        }
        Ok(())
    }

    /// Writes the content to the disk and gives the file the final name.
    ///
    /// # Errors
    /// Returns an error if the content cannot be written to the disk, or if [`Whole::finish`] fails.
    pub fn finish_on_disk(self) -> io::Result<()> {
        self.file.sync_all()?;
        self.finish()
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
            // This code ignores an error, because `discard_unfinished` may already have deleted the file.
            let _ = fs::remove_file(meanwhile);
            unfinished().retain(|other| other != meanwhile);
        }
    }
}

/// Returns 32 hexadecimal digits from the operating system's random number generator.
///
/// # Errors
/// Returns an error if the operating system does not provide random numbers.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While an `Unfinished` exists, no other thread can create or finish an output file. See [`discard_unfinished`].
#[derive(Debug)]
pub struct Unfinished(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, Vec<PathBuf>>);

/// Deletes all unfinished output files. A process calls this function before an immediate exit. While the returned
/// value exists, no other thread can create or finish an output file.
pub fn discard_unfinished() -> Unfinished {
    let unfinished = unfinished();
    unfinished.iter().for_each(|file| drop(fs::remove_file(file)));
    Unfinished(unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("reconverge-whole-{name}-{}", random_name().unwrap()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_finished_and_leaves_nothing_when_it_is_dropped() {
        let folder = folder("appears");
        let path = folder.join("a.bin");
        let mut file = Whole::create(&path).unwrap();
        file.write_all(b"one").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        drop(Whole::create(&path).unwrap());
        assert_eq!((fs::read(&path).unwrap(), names(&folder)), (b"one".to_vec(), vec!["a.bin".to_owned()]));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_unfinished_files_of_one_name_are_two_files_with_unpredictable_names() {
        let folder = folder("names");
        let path = folder.join("a");
        let files = [Whole::create(&path).unwrap(), Whole::create(&path).unwrap()];
        let found = names(&folder);
        assert_eq!(found.len(), 2);
        for name in &found {
            let random = name.strip_prefix(".a.").and_then(|rest| rest.strip_suffix(".part")).unwrap();
            assert!(random.len() == 32 && random.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
        }
        drop(files);
        assert!(names(&folder).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_followed_by_create_and_replaced_by_replace() {
        let folder = folder("links");
        let (target, link) = (folder.join("target"), folder.join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = Whole::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert!(link.is_symlink() && fs::read(&target).unwrap() == b"new");
        Whole::replace(&link).unwrap().finish_on_disk().unwrap();
        assert!(!link.is_symlink() && fs::read(&target).unwrap() == b"new");
        fs::remove_dir_all(folder).unwrap();
    }
}
