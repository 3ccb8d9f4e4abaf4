//! The files of `--record`. The preloaded library writes these files. See `screen/record.rs` in `crates/drm`.

use std::ffi::OsStr;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::setup::absolute;

/// A recording in one or more files.
pub(super) struct RecordingFiles {
    path: PathBuf,
}

impl RecordingFiles {
    /// Returns a recording whose files do not exist yet.
    ///
    /// # Errors
    /// Returns an error if the extension is not .y4m, if a file of a recording with this name already exists, or if the
    /// file cannot be created.
    pub(super) fn new(path: &Path) -> Result<RecordingFiles> {
        let named = || format!("--record {}", crate::shown::path(&path));
        if path.extension() != Some(OsStr::new("y4m")) {
            bail!("{}: expected the extension .y4m; ffmpeg converts this format to others", named());
        }
        let recording = RecordingFiles { path: absolute(path) };
        if let Some((_, old)) = recording.existing().into_iter().next() {
            let old = old.file_name().unwrap_or_default().display().to_string();
            bail!(
                "{}: {} exists; name a new file or remove the old recording",
                named(),
                crate::shown::name(&old)
            );
        }
        // Creates the file only to check whether the file can be created. The library creates the file again with the
        // first frame.
        OpenOptions::new().write(true).create_new(true).open(&recording.path).with_context(named)?;
        fs::remove_file(&recording.path).with_context(named)?;
        Ok(recording)
    }

    /// Returns the absolute path of the first file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files and the number of frames in each file. The function counts the frames in the files, because a
    /// killed process does not report the number of its frames.
    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        let files: Vec<_> = self.existing().into_iter().map(|(_, path)| (frames(&path), path)).collect();
        match files.is_empty() {
            true => vec![(self.path.clone(), 0)],
            false => files.into_iter().map(|(frames, path)| (path, frames.unwrap_or(0))).collect(),
        }
    }

    /// Returns the files that exist, in the order of their numbers.
    fn existing(&self) -> Vec<(u32, PathBuf)> {
        let stem = self.path.file_stem().unwrap_or_default().as_encoded_bytes();
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let number_of = |path: &Path| {
            if path.file_name() == self.path.file_name() {
                return Some(1);
            }
            let rest = path.file_stem()?.as_encoded_bytes().strip_prefix(stem)?.strip_prefix(b"-")?;
            let number = std::str::from_utf8(rest).ok()?.parse().ok()?;
            (path.extension() == self.path.extension()).then_some(number)
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<_> = entries.filter_map(|path| Some((number_of(&path)?, path))).collect();
        files.sort();
        files
    }
}

/// Maximum length of a recording's first line, in bytes.
const LONGEST_LINE: u64 = 256;

/// Returns the number of complete frames in a file.
fn frames(path: &Path) -> Option<u64> {
    // If a pipe has this name, O_NONBLOCK prevents the call from blocking.
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).ok()?;
    let about = file.metadata().ok().filter(Metadata::is_file)?;
    let mut line = String::new();
    BufReader::new(file.take(LONGEST_LINE)).read_line(&mut line).ok()?;
    let size = |letter: char| line.split(' ').find_map(|word| word.strip_prefix(letter)?.parse::<u64>().ok());
    // A frame is a line of six bytes, followed by three planes.
    let frame = size('W')?.checked_mul(size('H')?)?.checked_mul(3)?.checked_add(6)?;
    Some(about.len().checked_sub(line.len() as u64)? / frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_new_and_its_files_are_counted() {
        let folder = std::env::temp_dir().join(format!("reconverge-recording-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.y4m");
        let recording = RecordingFiles::new(&path).unwrap();
        assert_eq!(recording.files(), [(path.clone(), 0)]);
        // Each file contains one complete frame and a part of another frame. Two of the file names only resemble names
        // of a recording.
        let file = [b"YUV4MPEG2 W2 H1 F60:1 C444\n".to_vec(), vec![0; 12], vec![0; 5]].concat();
        for name in ["a-10.y4m", "a-2.y4m", "a-b.y4m", "ab.y4m"] {
            fs::write(folder.join(name), &file).unwrap();
        }
        let found = [(folder.join("a-2.y4m"), 1), (folder.join("a-10.y4m"), 1)];
        assert_eq!(recording.files(), found);
        // The function counts no frames in a pipe, in a file whose frame size overflows, and in a file without a line.
        let pipe = std::process::Command::new("mkfifo").arg(folder.join("a-11.y4m")).status().unwrap();
        assert!(pipe.success());
        fs::write(folder.join("a-12.y4m"), format!("YUV4MPEG2 W2 H{} F60:1\n", u64::MAX / 6)).unwrap();
        fs::write(folder.join("a-13.y4m"), [0xff; 1000]).unwrap();
        assert_eq!(recording.files()[2..].iter().map(|(_, frames)| *frames).collect::<Vec<_>>(), [0; 3]);
        let refused = |path: &Path| format!("{:#}", RecordingFiles::new(path).err().unwrap());
        assert!(
            refused(&path).ends_with("a.y4m: a-2.y4m exists; name a new file or remove the old recording")
        );
        assert!(refused(&folder.join("a.mp4")).contains("a.mp4: expected the extension .y4m"));
        assert!(refused(&folder.join("none/b.y4m")).contains("No such file"));
        fs::remove_dir_all(folder).unwrap();
    }
}
