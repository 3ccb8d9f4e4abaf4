//! Records the shown frames, in order, in a file that ffmpeg can read.
//!
//! The format is YUV4MPEG2. A file has a header line. Each frame consists of a line and three planes of the picture's
//! size. The planes are luma and the two chromas of BT.601 in the limited range, which readers assume by default. The
//! rate is 60 frames per second, because each frame of the screen counts as 1/60 s.
//!
//! A frame is appended completely or not at all. If the size of the frames changes, the recording starts a new file. If
//! several processes record, each process starts a new file. The names of the new files are `NAME-2.y4m` and so on. The
//! recording uses the first unused name. The recording opens the file for each frame again, because a program may close
//! descriptors that this library has opened.
//!
//! Source: "YUV4MPEG2" of MJPEG Tools, `yuv4mpeg(5)`; ITU-R BT.601-7, 2.5.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::whole;

/// Maximum number of files in a recording.
const FILES: u32 = 10_000;

/// A recording of the screen.
#[derive(Debug)]
pub(super) struct ScreenRecording {
    /// Path of the first file.
    path: PathBuf,
    /// The file to which this process appends frames, and the size of the frames in this file.
    current: Option<(PathBuf, [u32; 2])>,
}

impl ScreenRecording {
    /// Creates a recording. `path` is the path of the first file. Later files have similar names.
    pub(super) fn new(path: PathBuf) -> ScreenRecording {
        ScreenRecording { path, current: None }
    }

    /// Makes the next frame start a new file.
    pub(super) fn restart(&mut self) {
        self.current = None;
    }

    /// Returns the path of the current file. Before the recording starts, returns the path of the first file.
    pub(super) fn file(&self) -> &Path {
        self.current.as_ref().map_or(&self.path, |(path, _)| path)
    }

    /// Appends a picture with three bytes per pixel as a frame.
    ///
    /// # Errors
    /// The errors of the operating system. After an error, the file does not contain any part of the frame.
    pub(super) fn append(&mut self, picture: &[u8], size: [u32; 2]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        if let Some((path, _)) = self.current.as_ref().filter(|(_, of)| *of == size) {
            return whole::append(&mut options.open(path)?, &frame(picture));
        }
        for number in 1..=FILES {
            let path = self.name(number);
            let mut file = match options.create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            let mut bytes = header(size).into_bytes();
            bytes.extend(frame(picture));
            let written = whole::append(&mut file, &bytes);
            match &written {
                Ok(()) => self.current = Some((path, size)),
                Err(_) => _ = fs::remove_file(&path),
            }
            return written;
        }
        Err(io::Error::other(format!("{FILES} files exist")))
    }

    /// Returns the path of the file with a number. The first file has the number 1.
    fn name(&self, number: u32) -> PathBuf {
        if number == 1 {
            return self.path.clone();
        }
        let mut name = self.path.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{number}"));
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        self.path.with_file_name(name)
    }
}

/// Returns the header line of a file.
fn header([width, height]: [u32; 2]) -> String {
    format!("YUV4MPEG2 W{width} H{height} F60:1 Ip A1:1 C444 XCOLORRANGE=LIMITED\n")
}

/// Returns a frame in the format of the file: a line and three planes.
fn frame(picture: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(6 + picture.len());
    frame.extend(b"FRAME\n");
    for plane in PLANES {
        frame.extend(picture.as_chunks::<3>().0.iter().map(|pixel| sample(plane, *pixel)));
    }
    frame
}

/// Factors of red, green and blue, and a constant term, all in units of 1/65536. The first row computes luma. The
/// second row computes blue chroma. The third row computes red chroma.
///
/// Source: BT.601-7, 2.5.1 and 2.5.3. Luma is 0.299 R + 0.587 G + 0.114 B, scaled to 219 steps above 16. The chromas
/// are (B - luma) / 1.772 and (R - luma) / 1.402, scaled to 224 steps around 128.
const PLANES: [[i32; 4]; 3] =
    [[16829, 33039, 6416, 16 << 16], [-9714, -19070, 28784, 128 << 16], [28784, -24103, -4681, 128 << 16]];

fn sample([red, green, blue, offset]: [i32; 4], [r, g, b]: [u8; 3]) -> u8 {
    let sum = red * i32::from(r) + green * i32::from(g) + blue * i32::from(b) + offset;
    ((sum + (1 << 15)) >> 16) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(pixel: [u8; 3]) -> [u8; 3] {
        PLANES.map(|plane| sample(plane, pixel))
    }

    /// The expected values of black and white are from BT.601-7, table 3. The expected values of colours are the values
    /// of the 100 % colour bars in EBU Tech 3280.
    #[test]
    fn colours_are_those_of_bt_601_in_the_limited_range() {
        for (pixel, expected) in [
            ([0, 0, 0], [16, 128, 128]),
            ([255, 255, 255], [235, 128, 128]),
            ([255, 0, 0], [81, 90, 240]),
            ([0, 255, 0], [145, 54, 34]),
            ([0, 0, 255], [41, 240, 110]),
        ] {
            assert_eq!(samples(pixel), expected, "{pixel:?}");
        }
    }

    /// The test compares each sample with its definition in floating point.
    #[test]
    fn no_sample_is_more_than_a_step_from_its_definition() {
        for number in 0..1 << 12 {
            let pixel = [number >> 8, number >> 4 & 15, number & 15].map(|value: u32| (value * 17) as u8);
            let [r, g, b] = pixel.map(|value| f64::from(value) / 255.);
            let luma = 0.299 * r + 0.587 * g + 0.114 * b;
            let exact =
                [16. + 219. * luma, 128. + 224. * (b - luma) / 1.772, 128. + 224. * (r - luma) / 1.402];
            for (sample, exact) in samples(pixel).into_iter().zip(exact) {
                assert!((f64::from(sample) - exact).abs() < 0.51, "{pixel:?}");
            }
        }
    }

    #[test]
    fn another_size_and_another_process_start_files_and_none_is_overwritten() {
        let folder = std::env::temp_dir().join(format!("reconverge-record-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.b.y4m");
        // A dangling link occupies the second name.
        std::os::unix::fs::symlink(folder.join("victim"), folder.join("a.b-2.y4m")).unwrap();
        let (mut first, mut other) = (ScreenRecording::new(path.clone()), ScreenRecording::new(path.clone()));
        first.append(&[255; 6], [2, 1]).unwrap();
        other.append(&[0; 3], [1, 1]).unwrap();
        first.append(&[0; 6], [2, 1]).unwrap();
        first.append(&[0; 6], [1, 2]).unwrap();
        let line = "F60:1 Ip A1:1 C444 XCOLORRANGE=LIMITED\n";
        let white = [235, 235, 128, 128, 128, 128];
        let black = [16, 16, 128, 128, 128, 128];
        let file = |size: &str, frames: &[&[u8]]| {
            let mut bytes = format!("YUV4MPEG2 {size} {line}").into_bytes();
            frames.iter().for_each(|frame| bytes.extend([b"FRAME\n", *frame].concat()));
            bytes
        };
        assert_eq!(fs::read(&path).unwrap(), file("W2 H1", &[&white, &black]));
        assert_eq!(fs::read(folder.join("a.b-3.y4m")).unwrap(), file("W1 H1", &[&[16, 128, 128]]));
        assert_eq!(fs::read(folder.join("a.b-4.y4m")).unwrap(), file("W1 H2", &[&black]));
        assert_eq!(first.file(), folder.join("a.b-4.y4m"));
        first.restart();
        first.append(&[0; 6], [1, 2]).unwrap();
        assert_eq!(first.file(), folder.join("a.b-5.y4m"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_gone_is_an_error_and_not_a_new_file() {
        let folder = std::env::temp_dir().join(format!("reconverge-record-gone-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut recording = ScreenRecording::new(folder.join("a.y4m"));
        recording.append(&[0; 3], [1, 1]).unwrap();
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(recording.append(&[0; 3], [1, 1]).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
