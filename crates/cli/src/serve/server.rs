//! The server of the page.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Serve;
use super::answering::Answering;
use crate::args::Answer;
use crate::http::{PageRequest, Reply};
use crate::messages::note;

/// The page. `npm run build` in viewer/ creates this page.
const PAGE: &str = include_str!("../../assets/playground.html");

/// The script with which the page sends requests to the server.
const ENGINE: &str = "globalThis.RECONVERGE_ENGINE = { served: true };\n";

/// Maximum size of a request's body in bytes.
const BODY: usize = 16 << 20;

/// Serves the page until Ctrl-C.
///
/// # Errors
/// Returns an error if the port is in use, or if the folder of `--page` does not contain a page.
pub(super) fn run(args: &Serve) -> Result<Answer> {
    let address = SocketAddr::new(args.address, args.port);
    let listener = TcpListener::bind(address).with_context(|| {
        format!("{address}: choose another port with --port N, or a free one with --port 0")
    })?;
    let address = listener.local_addr().with_context(|| address.to_string())?;
    let pages = Pages::new(args.page.as_ref())?;
    let serving = Arc::new(Serving { pages, timeout: args.timeout.0, answering: Answering::default() });
    let host = if address.ip().is_unspecified() { "localhost".to_owned() } else { host(address.ip()) };
    let place = format!("http://{host}:{}/", address.port());
    say!("{place}");
    crate::messages::finish();
    note("Ctrl-C ends the server");
    if !address.ip().is_loopback() {
        note("other machines can reach the server and run programs on it");
    }
    if args.open {
        open(&place);
    }
    // Each connection has a separate thread, because a browser opens several connections at once and does not use all
    // of these connections.
    for stream in listener.incoming().flatten() {
        let serving = Arc::clone(&serving);
        thread::spawn(move || serving.serve(&stream));
    }
    Ok(Answer::Yes)
}

/// Returns an address in the form of a URL's host.
fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Opens the page at this address in the user's browser.
fn open(place: &str) {
    let (program, first): (_, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let quiet = Stdio::null;
    let started =
        Command::new(program).args(first).arg(place).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    if let Err(error) = started {
        note(&format!("--open: {program}: {error}; open {place} in a browser"));
    }
}

/// The files of the page.
struct Pages {
    page: Vec<u8>,
    /// The script with the CodeMirror editor. The text is empty if the page does not have this script.
    editor: Vec<u8>,
}

impl Pages {
    /// Returns the built-in page. If `folder` is `Some`, returns the page in this folder, and the editor that belongs
    /// to this page.
    fn new(folder: Option<&PathBuf>) -> Result<Pages> {
        let Some(folder) = folder else {
            return Ok(Pages { page: PAGE.as_bytes().to_vec(), editor: Vec::new() });
        };
        let read = |name: &str| {
            let path = folder.join(name);
            let place =
                || format!("--page: {}; create the page with scripts/build-web", crate::shown::path(&path));
            fs::read(&path).with_context(place)
        };
        Ok(Pages { page: read("index.html")?, editor: read("editor.js")? })
    }
}

/// The state that all connections share.
struct Serving {
    pages: Pages,
    timeout: Duration,
    answering: Answering,
}

impl Serving {
    /// Answers the request of a connection. The function ignores errors, because the browser may have closed the
    /// connection.
    fn serve(&self, stream: &TcpStream) {
        match PageRequest::read(stream, BODY) {
            Ok(Some(request)) => {
                drop(self.reply(&request, stream).write(stream, request.method == "HEAD"));
            }
            Ok(None) => {}
            Err(error) => drop(Reply::refused(400, &format!("{error}\n")).write(stream, false)),
        }
    }

    fn reply(&self, request: &PageRequest, stream: &TcpStream) -> Reply {
        if let Some(why) = foreign(request) {
            return Reply::refused(403, &format!("{why}\n"));
        }
        let (path, name) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let file = |media, content: &[u8]| Reply::new(media, content.to_vec());
        match (&*request.method, path) {
            ("GET" | "HEAD", "/" | "/index.html") => file("text/html; charset=utf-8", &self.pages.page),
            ("GET" | "HEAD", "/engine.js") => file("text/javascript", ENGINE.as_bytes()),
            ("GET" | "HEAD", "/editor.js") => file("text/javascript", &self.pages.editor),
            ("POST", "/answer") => self.answer(name, request, stream),
            ("POST", "/stop") => {
                self.answering.stop(name);
                Reply::status(204)
            }
            ("GET" | "HEAD", _) => Reply::status(404),
            _ => Reply::status(405),
        }
    }

    fn answer(&self, name: &str, request: &PageRequest, stream: &TcpStream) -> Reply {
        // If a page of another origin makes a browser send this media type, the browser first sends a request for
        // permission to the server (CORS preflight). The server does not give this permission, so the browser does not
        // send the request.
        if request.media.as_deref() != Some("application/json") {
            return Reply::refused(415, "expected a request of type application/json\n");
        }
        match self.answering.answer(name, &request.body, self.timeout, || is_closed(stream)) {
            Ok(Some(reply)) => Reply::new("application/json", reply),
            Ok(None) => Reply::refused(
                503,
                "the server has too many runs at the same time; stop one of them, or wait\n",
            ),
            Err(error) => Reply::refused(500, &format!("{error:#}\n")),
        }
    }
}

/// Whether the browser has closed a connection. When the user leaves a page, the browser closes the connections of the
/// page.
fn is_closed(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let read = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    match read {
        Ok(bytes) => bytes == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Returns the reason to refuse a request. Returns `None` if the request can come from this server's page.
///
/// Another site can make the host name of the site refer to this machine (DNS rebinding). In the requests of the site's
/// page, `Host` is then the host name of the site. The server therefore rejects requests whose `Host` is neither
/// `localhost` nor an address.
fn foreign(request: &PageRequest) -> Option<&'static str> {
    let Some(host) = request.host.as_deref() else { return Some("missing Host in a request") };
    if !is_address(host) {
        return Some("expected localhost or an address in Host");
    }
    let own =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host));
    request
        .origin
        .as_deref()
        .is_some_and(|origin| !own(origin))
        .then_some("the request is from a page of another origin")
}

/// Whether a host, with or without a port, is `localhost` or an address.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let plain = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || plain.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_name_of_another_site_is_no_host_of_the_server() {
        for own in ["localhost", "LOCALHOST:8660", "127.0.0.1:1", "[::1]:8660", "10.0.0.2"] {
            assert!(is_address(own), "{own}");
        }
        for other in ["example.com", "localhost.example.com:8660", "127.0.0.1.example.com", "", "[::1", "a:b"]
        {
            assert!(!is_address(other), "{other}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let request = |host: &str, origin: Option<&str>| PageRequest {
            host: Some(host.to_owned()),
            origin: origin.map(str::to_owned),
            ..PageRequest::default()
        };
        assert_eq!(foreign(&request("localhost:1", None)), None);
        assert_eq!(foreign(&request("localhost:1", Some("http://localhost:1"))), None);
        for other in ["http://localhost:2", "https://localhost:1", "null", "http://example.com"] {
            assert!(foreign(&request("localhost:1", Some(other))).is_some(), "{other}");
        }
        assert!(foreign(&PageRequest::default()).is_some());
    }
}
