//! Writes files that are either complete or absent.
//!
//! A function first writes a temporary file `.NAME.PID-RANDOM.part` in the same folder. The function then renames the
//! file to `NAME`. The temporary file is always a new file, so links are not followed. If the process is killed, the
//! temporary file remains.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

/// Maximum number of temporary names that are tried.
const TRIES: u32 = 100;

/// Writes a file. If a file with this name exists, replaces the existing file. A link with this name is replaced and
/// not followed.
///
/// # Errors
/// The errors of the operating system, including the errors of closing the file. After an error, no part of the new
/// file remains.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    finished(path, bytes, |part| fs::rename(part, path))
}

/// Writes a file with a name that does not exist yet.
///
/// # Errors
/// `AlreadyExists` if the name exists, even as a dangling link. Otherwise, the errors of [`replace`].
pub(crate) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    finished(path, bytes, |part| rename_new(part, path))
}

/// Returns whether a path is a regular file with this content. A link is not a regular file.
pub(crate) fn is(path: &Path, bytes: &[u8]) -> bool {
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let Ok(mut file) = open else { return false };
    if !file.metadata().is_ok_and(|about| about.is_file() && about.len() == bytes.len() as u64) {
        return false;
    }
    let mut found = Vec::with_capacity(bytes.len());
    file.read_to_end(&mut found).is_ok() && found == bytes
}

/// Appends a line to a list. If writing fails, removes the partial line. The list must be open for appending.
///
/// # Errors
/// The errors of the operating system.
pub(crate) fn append(list: &mut File, line: &[u8]) -> io::Result<()> {
    let before = list.metadata()?.len();
    let mut written = 0;
    while written < line.len() {
        let error = match list.write(&line[written..]) {
            Ok(0) => io::Error::from(ErrorKind::WriteZero),
            Ok(count) => {
                written += count;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        // A partial line would make the next line unreadable. Therefore, the code removes the partial line. If another
        // process has meanwhile appended a line, the partial line stays.
        if list.metadata().is_ok_and(|about| about.len() == before + written as u64) {
            let _ = list.set_len(before);
        }
        return Err(error);
    }
    Ok(())
}

/// Writes a temporary file and then calls `name`, which renames the file. Deletes the file after an error.
fn finished(path: &Path, bytes: &[u8], name: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let (part, mut file) = temporary(path)?;
    let written = file.write_all(bytes).and_then(|()| closed(file)).and_then(|()| name(&part));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Creates a new temporary file in the folder of `path`.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 0..TRIES {
        let part = path.with_file_name(format!(".{name}.{}-{:016x}.part", process::id(), random(number)));
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (part, file)),
        }
    }
    Err(io::Error::from(ErrorKind::AlreadyExists))
}

/// Returns a random number, or `number` if the system does not have random numbers yet.
fn random(number: u32) -> u64 {
    let mut bytes = [0_u8; 8];
    // SAFETY: the address and the length belong to an array.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    if got == bytes.len() as isize { u64::from_ne_bytes(bytes) } else { u64::from(number) }
}

/// Closes a file. On some file systems, only the close reports errors of earlier writes.
fn closed(file: File) -> io::Result<()> {
    // SAFETY: `into_raw_fd` returns a descriptor, and no value owns this descriptor.
    if unsafe { libc::close(file.into_raw_fd()) } != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Renames a file. Fails if the new name exists.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let [from_text, to_text] = [from, to].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (from_text, to_text) = (from_text?, to_text?);
    let here = libc::AT_FDCWD;
    // SAFETY: the paths are C strings.
    let answer =
        unsafe { libc::renameat2(here, from_text.as_ptr(), here, to_text.as_ptr(), libc::RENAME_NOREPLACE) };
    if answer == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // The file system or the kernel does not support this flag.
        error if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)
        }
        error => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("reconverge-whole-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_planted_link_is_not_followed() {
        let folder = folder("link");
        let (victim, link) = (folder.join("victim"), folder.join("link"));
        fs::write(&victim, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert_eq!(create(&link, b"new").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(!is(&link, b"kept"));
        replace(&link, b"new").unwrap();
        assert!(is(&link, b"new") && is(&victim, b"kept"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_there_is_not_created_again() {
        let folder = folder("create");
        let path = folder.join("file");
        create(&path, b"first").unwrap();
        assert_eq!(create(&path, b"second").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(is(&path, b"first") && !is(&path, b"firs"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_absent() {
        let folder = folder("absent");
        assert!(replace(&folder.join("no/such"), b"").is_err());
        // A file cannot replace a folder, so writing fails and the temporary file is deleted.
        fs::create_dir_all(folder.join("taken/inside")).unwrap();
        assert!(replace(&folder.join("taken"), b"x").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Starts a child process that runs only the test `test`. The child cannot write files of more than `most` bytes.
    /// In the child, a write beyond this size fails like a write on a full disk. Returns true in the child.
    pub(crate) fn on_a_full_disk(test: &str, most: u64) -> bool {
        const NAME: &str = "RECONVERGE_TEST_FULL_DISK";
        if std::env::var_os(NAME).is_none() {
            let mut again = process::Command::new(std::env::current_exe().unwrap());
            let output = again.args(["--exact", test, "--nocapture"]).env(NAME, "1").output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && said.contains("1 passed"), "{said}{output:?}");
            return false;
        }
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the system calls read local data only. The process ignores SIGXFSZ, because this signal would end the
        // process.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
        }
        true
    }

    #[test]
    fn on_a_full_disk_files_are_absent_and_lists_end_with_a_whole_line() {
        if !on_a_full_disk(
            "whole::tests::on_a_full_disk_files_are_absent_and_lists_end_with_a_whole_line",
            100,
        ) {
            return;
        }
        let folder = folder("full");
        let path = folder.join("file");
        assert!(create(&path, &[0; 101]).is_err() && replace(&path, &[0; 101]).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let mut list = OpenOptions::new().append(true).create(true).open(&path).unwrap();
        append(&mut list, &[b'a'; 60]).unwrap();
        append(&mut list, &[b'b'; 60]).unwrap_err();
        append(&mut list, &[b'c'; 40]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [[b'a'; 60].as_slice(), &[b'c'; 40]].concat());
        fs::remove_dir_all(folder).unwrap();
    }
}
