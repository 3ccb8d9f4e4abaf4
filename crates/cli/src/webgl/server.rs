//! The server that a browser's page gets the files from, and sends verdicts to.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::json;
use tiny_http::{Header, Method, Request, Response};

use super::verdict::{Assertion, FileEnd, FileVerdict};

/// The page that runs the files.
const PAGE: &str = include_str!("../../assets/webgl.html");

/// Threads that answer: a browser loads several parts of a page at once.
const THREADS: usize = 4;

/// The largest message of the page, in bytes; the longest of the suite has some 20 MB.
const MESSAGE: u64 = 256 << 20;

/// The files to run, and what has come of them.
#[derive(Debug)]
pub(super) struct Queue {
    /// The name of the renderer of WebGL; an empty text if there is no context.
    pub(super) renderer: Option<String>,
    files: Arc<[String]>,
    /// The next file.
    next: usize,
    /// The running file, by its place in the list, and since when.
    pub(super) running: Option<(usize, Instant)>,
    /// The verdicts, in the order of the files.
    pub(super) verdicts: Vec<Option<FileVerdict>>,
}

impl Queue {
    /// Whether every file has a verdict.
    pub(super) fn is_done(&self) -> bool {
        self.verdicts.iter().all(Option::is_some)
    }

    /// Ends the running file without the page; does nothing if none runs.
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

/// The message of the page at the end of a file.
#[derive(Deserialize)]
struct Sent {
    file: String,
    end: String,
    assertions: Vec<Assertion>,
}

/// A running server.
pub(super) struct Server {
    server: Arc<tiny_http::Server>,
    pub(super) port: u16,
    queue: Arc<Mutex<Queue>>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a server of these files of a suite, for this version of WebGL; a file may take as long as the timeout.
    ///
    /// # Errors
    /// No port of the host's own address can be opened.
    pub(super) fn start(
        root: &Path,
        files: &Arc<[String]>,
        version: u8,
        timeout: Duration,
    ) -> Result<Server> {
        let server = tiny_http::Server::http("127.0.0.1:0").map_err(|error| anyhow!("127.0.0.1: {error}"))?;
        let port = server.server_addr().to_ip().map_or(0, |address| address.port());
        let server = Arc::new(server);
        let verdicts = vec![None; files.len()];
        let queue = Queue { renderer: None, files: Arc::clone(files), next: 0, running: None, verdicts };
        let queue = Arc::new(Mutex::new(queue));
        let answers = Answers { root: root.to_path_buf(), version, timeout, queue: Arc::clone(&queue) };
        let answers = Arc::new(answers);
        let threads = (0..THREADS).map(|_| {
            let (server, answers) = (Arc::clone(&server), Arc::clone(&answers));
            thread::spawn(move || server.incoming_requests().for_each(|request| answers.answer(request)))
        });
        let threads = threads.collect();
        Ok(Server { server, port, queue, threads })
    }

    /// Does something with the queue.
    pub(super) fn with<T>(&self, queue: impl FnOnce(&mut Queue) -> T) -> T {
        queue(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A call ends the wait of one thread.
        self.threads.iter().for_each(|_| self.server.unblock());
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// The data of the answers.
struct Answers {
    root: PathBuf,
    version: u8,
    timeout: Duration,
    queue: Arc<Mutex<Queue>>,
}

impl Answers {
    /// Answers a request. The browser may have given up waiting.
    fn answer(&self, mut request: Request) {
        let url = request.url().to_owned();
        let path = url.split(['?', '#']).next().unwrap_or_default();
        let queue = || self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match (request.method().clone(), path) {
            (Method::Get, "/") => request.respond(typed(PAGE.as_bytes().to_vec(), "text/html")),
            (Method::Get, "/version") => respond(request, &json!({ "version": self.version })),
            (Method::Post, "/next") => {
                let timeout = self.timeout.as_millis() as u64;
                let next = queue()
                    .start()
                    .map(|file| json!({ "file": file, "version": self.version, "timeout": timeout }));
                respond(request, &json!(next))
            }
            (Method::Post, "/renderer") => {
                queue().renderer = Some(sent::<String>(&mut request).unwrap_or_default());
                respond(request, &json!(null))
            }
            (Method::Post, "/verdict") => {
                if let Some(Sent { file, end, assertions }) = sent(&mut request) {
                    let mut queue = queue();
                    // The verdict on a file that was cut off comes too late.
                    let is_running =
                        queue.running.is_some_and(|(place, _)| queue.files.get(place) == Some(&file));
                    let end = FileEnd::ALL.into_iter().find(|known| known.name() == end);
                    if let Some(end) = end.filter(|_| is_running) {
                        queue.finish(end, assertions);
                    }
                }
                respond(request, &json!(null))
            }
            (Method::Get | Method::Head, _) => match path.strip_prefix("/suite/") {
                Some(path) => self.file(request, path),
                None => request.respond(Response::empty(404)),
            },
            _ => request.respond(Response::empty(405)),
        };
    }

    /// Answers with a file of the suite, or with the part of it that the request names.
    fn file(&self, request: Request, path: &str) -> std::io::Result<()> {
        let path = PathBuf::from(decoded(path));
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let Some(bytes) = is_below.then(|| fs::read(self.root.join(&path)).ok()).flatten() else {
            return request.respond(Response::empty(404));
        };
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let length = bytes.len();
        // Players of videos ask for parts.
        let range = request.headers().iter().find(|header| header.field.equiv("Range"));
        match range.and_then(|header| range_of(header.value.as_str(), length)) {
            Some((first, end)) => {
                let part = bytes[first..end].to_vec();
                let place = header("Content-Range", &format!("bytes {first}-{}/{length}", end - 1));
                request.respond(typed(part, media(&extension)).with_status_code(206).with_header(place))
            }
            None => request.respond(typed(bytes, media(&extension))),
        }
    }
}

/// The value that the page sent; `None` if it is another one.
fn sent<T: for<'de> Deserialize<'de>>(request: &mut Request) -> Option<T> {
    let mut bytes = Vec::new();
    // Read as a whole: `serde_json::from_reader` takes single bytes, each of which passes several readers of the request.
    request.as_reader().take(MESSAGE).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn respond(request: Request, value: &serde_json::Value) -> std::io::Result<()> {
    request.respond(typed(value.to_string().into_bytes(), "application/json"))
}

fn typed(bytes: Vec<u8>, media: &str) -> Response<std::io::Cursor<Vec<u8>>> {
    let response = Response::from_data(bytes).with_header(header("Content-Type", media));
    response.with_header(header("Accept-Ranges", "bytes")).with_header(header("Cache-Control", "no-store"))
}

fn header(name: &str, value: &str) -> Header {
    // Names and values are ASCII: those of this file and numbers.
    Header::from_bytes(name, value).unwrap_or_else(|()| unreachable!("a header of ASCII"))
}

/// The media type of files with this extension.
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

/// A path with the characters that `%` and two digits stand for.
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

/// The bytes of a file of this length that a header `bytes=FIRST-LAST` asks for: first and end. (RFC 9110, 14.1.2)
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
