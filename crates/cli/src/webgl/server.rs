//! The server that sends files to the browser's page and receives verdicts.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::json;

use crate::http::{PageRequest, Reply};

use super::verdict::{Assertion, FileEnd, FileVerdict};

/// The page that runs the files.
const PAGE: &str = include_str!("../../assets/webgl.html");

/// Maximum size of a request's body in bytes. The body contains the assertions of a file.
const BODY: usize = 256 << 20;

/// The files to run, and their verdicts.
#[derive(Debug)]
pub(super) struct Queue {
    /// The name of the WebGL renderer. An empty text means that there is no context.
    pub(super) renderer: Option<String>,
    files: Arc<[String]>,
    /// Index of the file that runs next.
    next: usize,
    /// Index of the running file, and the start time of this file.
    pub(super) running: Option<(usize, Instant)>,
    /// The verdicts, in the order of the files.
    pub(super) verdicts: Vec<Option<FileVerdict>>,
}

impl Queue {
    /// Whether every file has a verdict.
    pub(super) fn is_done(&self) -> bool {
        self.verdicts.iter().all(Option::is_some)
    }

    /// Sets the verdict of the running file, although the page has not sent a message. If no file is running, the
    /// function does nothing.
    pub(super) fn cut_off(&mut self, end: FileEnd) {
        self.finish(end, Vec::new());
    }

    fn start(&mut self) -> Option<&str> {
        let file = self.files.get(self.next)?;
        self.running = Some((self.next, Instant::now()));
        self.next += 1;
        Some(file)
    }

    fn finish(&mut self, end: FileEnd, assertions: Vec<Assertion>) {
        if let Some((place, since)) = self.running.take() {
            let seconds = since.elapsed().as_secs_f64();
            self.verdicts[place] = Some(FileVerdict { end, assertions, seconds });
        }
    }
}

/// The message that the page sends when a file has ended.
#[derive(Deserialize)]
struct Sent {
    file: String,
    end: String,
    assertions: Vec<Assertion>,
}

/// A running server. Dropping the value stops the server.
pub(super) struct Server {
    pub(super) port: u16,
    queue: Arc<Mutex<Queue>>,
    ends: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server for files of the suite in the folder `root`, and for a version of WebGL. The timeout applies to
    /// each file separately.
    ///
    /// # Errors
    /// Returns an error if no port of the loopback address can be opened.
    pub(super) fn start(
        root: &Path,
        files: &Arc<[String]>,
        version: u8,
        timeout: Duration,
    ) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("127.0.0.1")?;
        let port = listener.local_addr().context("127.0.0.1")?.port();
        let verdicts = vec![None; files.len()];
        let queue = Queue { renderer: None, files: Arc::clone(files), next: 0, running: None, verdicts };
        let queue = Arc::new(Mutex::new(queue));
        let answers = Answers { root: root.to_path_buf(), version, timeout, queue: Arc::clone(&queue) };
        let answers = Arc::new(answers);
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ends);
        let accepts = thread::spawn(move || {
            // Each connection has a separate thread, because a browser opens several connections at once and does not
            // use all of these connections.
            for stream in listener.incoming().take_while(|_| !asked.load(Ordering::Acquire)).flatten() {
                let answers = Arc::clone(&answers);
                thread::spawn(move || answers.serve(&stream));
            }
        });
        Ok(Server { port, queue, ends, accepts: Some(accepts) })
    }

    /// Calls a function with the queue.
    pub(super) fn with<T>(&self, queue: impl FnOnce(&mut Queue) -> T) -> T {
        queue(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        // The server's thread waits for a connection. This new connection ends the wait of the thread.
        let woken = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(accepts) = self.accepts.take().filter(|_| woken.is_ok()) {
            let _ = accepts.join();
        }
    }
}

/// The state that all connections share.
struct Answers {
    root: PathBuf,
    version: u8,
    timeout: Duration,
    queue: Arc<Mutex<Queue>>,
}

impl Answers {
    /// Answers the request of a connection. The function ignores errors, because the browser may have closed the
    /// connection.
    fn serve(&self, stream: &TcpStream) {
        if let Ok(Some(request)) = PageRequest::read(stream, BODY) {
            let _ = self.reply(&request).write(stream, request.method == "HEAD");
        }
    }

    fn reply(&self, request: &PageRequest) -> Reply {
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        let queue = || self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*request.method, path) {
            ("GET", "/") => Reply::new("text/html", PAGE.as_bytes().to_vec()),
            ("GET", "/version") => Reply::json(&json!({ "version": self.version })),
            ("POST", "/next") => {
                let timeout = self.timeout.as_millis() as u64;
                let next = queue()
                    .start()
                    .map(|file| json!({ "file": file, "version": self.version, "timeout": timeout }));
                Reply::json(&json!(next))
            }
            ("POST", "/renderer") => {
                queue().renderer = Some(sent::<String>(request).unwrap_or_default());
                Reply::json(&json!(null))
            }
            ("POST", "/verdict") => {
                let Some(Sent { file, end, assertions }) = sent(request) else { return Reply::status(400) };
                let mut queue = queue();
                // If the server has already ended the file, the server ignores a later verdict of the page for this
                // file.
                let is_running =
                    queue.running.is_some_and(|(place, _)| queue.files.get(place) == Some(&file));
                let end = FileEnd::ALL.into_iter().find(|known| known.name() == end);
                if let Some(end) = end.filter(|_| is_running) {
                    queue.finish(end, assertions);
                }
                Reply::json(&json!(null))
            }
            ("GET" | "HEAD", _) => match path.strip_prefix("/suite/") {
                Some(path) => self.file(request, path),
                None => Reply::status(404),
            },
            _ => Reply::status(405),
        }
    }

    /// Answers with a file of the suite, or with the requested part of the file.
    fn file(&self, request: &PageRequest, path: &str) -> Reply {
        let path = PathBuf::from(decoded(path));
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let Some(bytes) = is_below.then(|| fs::read(self.root.join(&path)).ok()).flatten() else {
            return Reply::status(404);
        };
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let length = bytes.len();
        // Video players request only parts of files.
        match request.range.as_deref().and_then(|range| range_of(range, length)) {
            Some((first, end)) => {
                let part = bytes[first..end].to_vec();
                Reply::part(media(&extension), part, &format!("bytes {first}-{}/{length}", end - 1))
            }
            None => Reply::new(media(&extension), bytes),
        }
    }
}

/// Returns the value that the page sent. Returns `None` if the body does not have the expected form.
fn sent<T: for<'de> Deserialize<'de>>(request: &PageRequest) -> Option<T> {
    serde_json::from_slice(&request.body).ok()
}

/// Returns the media type for an extension.
fn media(extension: &str) -> &'static str {
    match extension {
        "html" => "text/html",
        "js" | "mjs" => "text/javascript",
        "css" => "text/css",
        "json" => "application/json",
        "txt" | "vert" | "frag" | "run" | "test" => "text/plain",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "ogv" | "ogg" => "video/ogg",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// Returns a path with its percent-encoding decoded.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let coded = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(coded.unwrap_or(*first));
        rest = if coded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the range of bytes that a header `bytes=FIRST-LAST` requests from a file of this length. The result consists
/// of the index of the first byte and the index after the last byte. (RFC 9110, 14.1.2)
fn range_of(value: &str, length: usize) -> Option<(usize, usize)> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    let (first, end) = match (first.trim(), last.trim()) {
        ("", last) => (length.saturating_sub(last.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => (first.parse().ok()?, last.parse::<usize>().ok()?.saturating_add(1).min(length)),
    };
    (first < end).then_some((first, end))
}

#[cfg(test)]
mod unit {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn paths_are_decoded() {
        assert_eq!(decoded("a%20b%2Fc.html"), "a b/c.html");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }

    /// RFC 9110, section 14.1.2.
    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(range_of("bytes=0-499", 1000), Some((0, 500)));
        assert_eq!(range_of("bytes=500-", 1000), Some((500, 1000)));
        assert_eq!(range_of("bytes=-100", 1000), Some((900, 1000)));
        assert_eq!(range_of("bytes=900-2000", 1000), Some((900, 1000)));
        assert_eq!(range_of("bytes=1000-", 1000), None);
        assert_eq!(range_of("bytes=5-4", 1000), None);
        assert_eq!(range_of("words=0-1", 1000), None);
    }

    /// Chromium opens some connections before it needs these connections.
    #[test]
    fn connections_without_a_request_do_not_hold_up_others() {
        let files: Arc<[String]> = ["a.html".to_owned()].into();
        let server = Server::start(Path::new("."), &files, 1, Duration::from_secs(1)).unwrap();
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).unwrap();
        let _idle: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
        let asked = |request: &str| {
            let mut stream = connect();
            stream.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        assert!(asked("POST /next HTTP/1.1\r\n\r\n").contains("a.html"));
        assert!(asked("GET /suite/../x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(asked("PUT / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(server.with(|queue| queue.running.is_some()));
    }

    #[test]
    fn late_verdicts_do_not_count() {
        let files: Arc<[String]> = ["a".to_owned(), "b".to_owned()].into();
        let mut queue = Queue { renderer: None, files, next: 0, running: None, verdicts: vec![None; 2] };
        assert_eq!(queue.start(), Some("a"));
        queue.cut_off(FileEnd::Timeout);
        queue.cut_off(FileEnd::Crash);
        assert_eq!(queue.start(), Some("b"));
        queue.finish(FileEnd::Done, vec![]);
        assert_eq!(queue.start(), None);
        let ends: Vec<FileEnd> = queue.verdicts.iter().flatten().map(|verdict| verdict.end).collect();
        assert_eq!(ends, [FileEnd::Timeout, FileEnd::Done]);
        assert!(queue.is_done());
    }
}
