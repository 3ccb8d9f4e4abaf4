//! Receives the frames that the program sends, and counts these frames.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use reconverge_board::screen::FrameHeader;

/// Maximum time between the first and the last byte of a frame. There is a limit because a process can stop in the
/// middle of a frame.
const LONGEST: Duration = Duration::from_secs(1);
/// Period over which the frame rate is measured.
const SECOND: Duration = Duration::from_secs(1);

/// A picture of the screen. A pixel is 0x00RRGGBB.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScreenFrame {
    pub(super) size: [u32; 2],
    pub(super) pixels: Vec<u32>,
}

/// The thread that reads frames.
pub(super) struct FrameReader {
    shared: Arc<Handover>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

#[derive(Default)]
struct Handover {
    state: Mutex<Arrived>,
    changed: Condvar,
}

#[derive(Default)]
struct Arrived {
    newest: Option<ScreenFrame>,
    counts: FrameCounts,
    is_over: bool,
}

/// Counts for the title.
#[derive(Default)]
struct FrameCounts {
    /// Arrival times of the frames in the last second.
    recent: VecDeque<Instant>,
    /// For each process, the number of resets and the number of unknown features.
    troubles: HashMap<u32, [u64; 2]>,
}

impl FrameCounts {
    fn add(&mut self, header: &FrameHeader, now: Instant) {
        self.recent.push_back(now);
        self.drop_old(now);
        self.troubles.insert(header.process, [header.resets, header.unknown]);
    }

    fn drop_old(&mut self, now: Instant) {
        while self.recent.front().is_some_and(|when| now.duration_since(*when) > SECOND) {
            self.recent.pop_front();
        }
    }

    /// Returns the frame rate in tenths of frames per second, and the numbers of resets and unknown features.
    fn sums(&mut self, now: Instant) -> [u64; 3] {
        self.drop_old(now);
        // The rate is measured from the first to the last frame of the last second. With less than one frame per
        // second, the list is often empty. The rate is then 0.
        let rate = match (self.recent.front(), self.recent.len() as u64) {
            (Some(first), count @ 2..) => {
                let last = self.recent.back().unwrap_or(first);
                let span = last.duration_since(*first).as_secs_f64().max(1e-6);
                ((count - 1) as f64 * 10. / span).round() as u64
            }
            (_, count) => count * 10,
        };
        let sum = |at: usize| self.troubles.values().map(|trouble| trouble[at]).fold(0, u64::saturating_add);
        [rate, sum(0), sum(1)]
    }
}

impl Handover {
    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FrameReader {
    /// Starts the thread. `path` is the name of the socket.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub(super) fn new(listener: UnixListener, path: PathBuf) -> io::Result<FrameReader> {
        let shared = Arc::new(Handover::default());
        let thread_shared = Arc::clone(&shared);
        let name = "frames".to_owned();
        let thread =
            std::thread::Builder::new().name(name).spawn(move || read_all(&listener, &thread_shared))?;
        Ok(FrameReader { shared, thread: Some(thread), path })
    }

    /// Returns the newest frame. If the newest frame has already been returned, waits up to `longest` for another
    /// frame.
    pub(super) fn newest(&self, longest: Duration) -> Option<ScreenFrame> {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, longest, |state| state.newest.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.newest.take()
    }

    /// Returns the frame rate in tenths of frames per second, and the numbers of resets and unknown features.
    pub(super) fn counts(&self) -> [u64; 3] {
        self.shared.lock().counts.sums(Instant::now())
    }
}

impl Drop for FrameReader {
    /// Closes the socket.
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        // The reader's thread waits for a connection. `connect` opens a connection, so that the wait ends.
        let woken = UnixStream::connect(&self.path);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Reads the frames of all connections. The function reads the connections in the order in which the processes
/// connected.
fn read_all(listener: &UnixListener, shared: &Handover) {
    let mut said = false;
    loop {
        let accepted = listener.accept();
        if shared.lock().is_over {
            return;
        }
        let read = accepted.and_then(|(stream, _)| read(Timed { stream, end: Instant::now() + LONGEST }));
        match read {
            Ok((header, frame)) => {
                let mut state = shared.lock();
                state.counts.add(&header, Instant::now());
                state.newest = Some(frame);
                drop(state);
                shared.changed.notify_one();
            }
            Err(why) => {
                if !std::mem::replace(&mut said, true) {
                    tell!("warning: --screen window: a frame is not shown: {why}");
                }
                // Waits before the next attempt to accept a connection. If no file descriptor is free, an attempt fails
                // at once. The pause limits the number of failed attempts.
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// A stream with a deadline for reads.
struct Timed {
    stream: UnixStream,
    end: Instant,
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Reads a frame.
///
/// # Errors
/// Returns an error if the bytes are not a frame, or if the frame is incomplete.
fn read(mut from: impl Read) -> io::Result<(FrameHeader, ScreenFrame)> {
    let mut header = [0; FrameHeader::LENGTH];
    from.read_exact(&mut header)?;
    let header = FrameHeader::from_bytes(&header).map_err(io::Error::other)?;
    let mut bytes = vec![0; header.pixel_bytes()];
    from.read_exact(&mut bytes)?;
    let pixels =
        bytes.as_chunks::<4>().0.iter().map(|pixel| u32::from_le_bytes(*pixel) & 0xff_ffff).collect();
    Ok((header, ScreenFrame { size: header.size, pixels }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const HEADER: FrameHeader = FrameHeader { size: [1, 2], process: 7, resets: 1, unknown: 2 };

    #[test]
    fn a_frame_is_read_and_a_part_of_one_is_an_error() {
        let bytes = [&HEADER.to_bytes()[..], &[3, 2, 1, 9, 6, 5, 4, 9]].concat();
        let (header, frame) = read(&bytes[..]).unwrap();
        assert_eq!((header, frame.pixels), (HEADER, vec![0x01_0203, 0x04_0506]));
        for length in [0, 39, 47] {
            assert_eq!(read(&bytes[..length]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
        assert_eq!(read(&[0; 48][..]).unwrap_err().to_string(), "not a frame of the driver library");
    }

    #[test]
    fn a_frame_that_comes_in_drops_ends_at_its_time() {
        let [reader, mut writer] = <[_; 2]>::from(UnixStream::pair().unwrap());
        let drops = std::thread::spawn(move || {
            // The reader waits for 48 bytes: a header, and eight bytes of pixels. The writer sends these bytes slowly.
            // Without the deadline, the reader would receive all 48 bytes.
            while writer.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut timed = Timed { stream: reader, end: Instant::now() + Duration::from_millis(100) };
        let kind = timed.read_exact(&mut [0; 48]).unwrap_err().kind();
        assert!(matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{kind}");
        drop(timed);
        drops.join().unwrap();
    }

    #[test]
    fn the_newest_frame_is_taken_and_the_socket_is_closed_at_the_end() {
        let path = std::env::temp_dir().join(format!("reconverge-reader-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let reader = FrameReader::new(UnixListener::bind(&path).unwrap(), path.clone()).unwrap();
        for byte in [1, 2] {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(&[&HEADER.to_bytes()[..], &[byte; 8]].concat()).unwrap();
        }
        let mut last = None;
        while last.as_ref().is_none_or(|frame: &ScreenFrame| frame.pixels[0] != 0x02_0202) {
            last = reader.newest(Duration::from_secs(60)).or(last);
        }
        assert_eq!(reader.newest(Duration::ZERO), None);
        drop(reader);
        assert_eq!(UnixStream::connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn counts_are_those_of_the_last_second_and_of_all_processes() {
        let mut counts = FrameCounts::default();
        let begin = Instant::now();
        for number in 0..31 {
            let process = 7 + number % 2;
            counts.add(&FrameHeader { process, ..HEADER }, begin + Duration::from_millis(50) * number);
        }
        let now = begin + Duration::from_millis(1500);
        assert_eq!(counts.sums(now), [200, 2, 4]);
        assert_eq!(counts.sums(now + Duration::from_secs(2)), [0, 2, 4]);
    }
}
