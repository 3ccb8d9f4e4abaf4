//! HTTP/1.1 requests and answers, one per connection.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Maximum wait for the next bytes of a request.
const WAIT: Duration = Duration::from_secs(60);

/// Maximum size of a request's head in bytes.
const HEAD: usize = 64 << 10;

/// Maximum number of lines in a request's head.
const LINES: usize = 64;

/// A request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PageRequest {
    pub(crate) method: String,
    /// The path and the query after `?`.
    pub(crate) target: String,
    /// The value of `Host`.
    pub(crate) host: Option<String>,
    /// The value of `Origin`.
    pub(crate) origin: Option<String>,
    /// The value of `Content-Type`.
    pub(crate) media: Option<String>,
    /// The value of `Range`.
    pub(crate) range: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl PageRequest {
    /// Reads the request of a connection. The body of the request may have up to `most` bytes. Returns `None` if the
    /// connection ends without a request.
    ///
    /// # Errors
    /// Returns an error if the request cannot be read, is not HTTP/1, or exceeds [`HEAD`], [`LINES`] or `most`.
    pub(crate) fn read(stream: &TcpStream, most: usize) -> Result<Option<PageRequest>> {
        stream.set_read_timeout(Some(WAIT))?;
        PageRequest::read_from(stream, most)
    }

    fn read_from(mut stream: impl Read, most: usize) -> Result<Option<PageRequest>> {
        let refused = |why: &str| Error::new(ErrorKind::InvalidData, why);
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        loop {
            let mut lines = [httparse::EMPTY_HEADER; LINES];
            let mut head = httparse::Request::new(&mut lines);
            let status = head.parse(&bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
            if let httparse::Status::Complete(length) = status {
                let header = |name: &str| {
                    let line = head.headers.iter().find(|line| line.name.eq_ignore_ascii_case(name));
                    line.and_then(|line| std::str::from_utf8(line.value).ok()).map(str::trim)
                };
                let body = header("Content-Length").map_or(Ok(0), str::parse);
                let body = body.ok().filter(|body| *body <= most).ok_or_else(|| refused("Content-Length"))?;
                let mut request = PageRequest {
                    method: head.method.unwrap_or_default().to_owned(),
                    target: head.path.unwrap_or_default().to_owned(),
                    host: header("Host").map(str::to_owned),
                    origin: header("Origin").map(str::to_owned),
                    media: header("Content-Type").map(str::to_owned),
                    range: header("Range").map(str::to_owned),
                    body: bytes.split_off(length),
                };
                let rest = body.saturating_sub(request.body.len());
                stream.take(rest as u64).read_to_end(&mut request.body)?;
                request.body.truncate(body);
                return if request.body.len() == body {
                    Ok(Some(request))
                } else {
                    Err(ErrorKind::UnexpectedEof.into())
                };
            }
            if bytes.len() > HEAD {
                return Err(refused("a head of more than 64 KiB"));
            }
            match stream.read(&mut part)? {
                0 if bytes.is_empty() => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => bytes.extend(&part[..count]),
            }
        }
    }
}

/// An answer.
pub(crate) struct Reply {
    status: u16,
    /// The lines of the header, each with its line ending.
    lines: String,
    body: Vec<u8>,
}

impl Reply {
    /// Returns an answer without a body.
    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, lines: String::new(), body: Vec::new() }
    }

    /// Returns an answer with a body of this media type.
    pub(crate) fn new(media: &str, body: Vec<u8>) -> Reply {
        Reply { status: 200, lines: format!("Content-Type: {media}\r\n"), body }
    }

    /// Returns an answer with a part of a file. `place` is the value of `Content-Range`.
    #[cfg(all(target_os = "linux", feature = "webgl"))]
    pub(crate) fn part(media: &str, body: Vec<u8>, place: &str) -> Reply {
        let lines = format!("Content-Type: {media}\r\nContent-Range: {place}\r\n");
        Reply { status: 206, lines, body }
    }

    /// Returns an answer with a text and a status other than 200.
    #[cfg(feature = "serve")]
    pub(crate) fn refused(status: u16, why: &str) -> Reply {
        Reply { status, ..Reply::new("text/plain", why.as_bytes().to_vec()) }
    }

    #[cfg(all(target_os = "linux", feature = "webgl"))]
    pub(crate) fn json(value: &serde_json::Value) -> Reply {
        Reply::new("application/json", value.to_string().into_bytes())
    }

    /// Writes the answer. If `head` is true, the function does not write the body.
    ///
    /// # Errors
    /// Returns an error if the client has closed the connection.
    pub(crate) fn write(&self, mut stream: impl Write, head: bool) -> Result<()> {
        let Reply { status, lines, body } = self;
        // The reason phrase after the status may be empty. (RFC 9112, section 4)
        let fixed = "Accept-Ranges: bytes\r\nCache-Control: no-store\r\nConnection: close\r\n";
        let length = body.len();
        write!(stream, "HTTP/1.1 {status} \r\n{lines}{fixed}Content-Length: {length}\r\n\r\n")?;
        if !head {
            stream.write_all(body)?;
        }
        stream.flush()
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    /// A reader that returns one byte per call.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, into: &mut [u8]) -> Result<usize> {
            let count = self.0.len().min(into.len()).min(1);
            self.0.read(&mut into[..count])
        }
    }

    /// RFC 9112, sections 3 and 6.2.
    #[test]
    fn requests_have_a_line_lines_of_the_head_and_a_body() {
        let text =
            b"POST /verdict?a HTTP/1.1\r\nhost: x\r\nrange: bytes=0-1\r\ncontent-length: 3\r\n\r\nabcd";
        let request = PageRequest {
            method: "POST".to_owned(),
            target: "/verdict?a".to_owned(),
            host: Some("x".to_owned()),
            range: Some("bytes=0-1".to_owned()),
            body: b"abc".to_vec(),
            ..PageRequest::default()
        };
        assert_eq!(PageRequest::read_from(&text[..], 3).unwrap().as_ref(), Some(&request));
        assert_eq!(PageRequest::read_from(Slowly(text), 3).unwrap(), Some(request));
        assert_eq!(PageRequest::read_from(&b""[..], 3).unwrap(), None);
    }

    #[test]
    fn requests_that_are_cut_off_or_too_large_are_errors() {
        let kind = |text: &[u8]| PageRequest::read_from(text, 3).unwrap_err().kind();
        assert_eq!(kind(b"GET / HT"), ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab"), ErrorKind::UnexpectedEof);
        assert_eq!(kind(b"\x00\r\n\r\n"), ErrorKind::InvalidData);
        assert_eq!(kind(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), ErrorKind::InvalidData);
        assert_eq!(kind(b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n"), ErrorKind::InvalidData);
        let long = [b"GET /".to_vec(), vec![b'a'; 2 * HEAD]].concat();
        assert_eq!(kind(&long), ErrorKind::InvalidData);
    }

    /// RFC 9110, sections 9.3.2 and 14.4.
    #[test]
    fn answers_have_a_status_and_the_length_of_the_body() {
        let text = |reply: &Reply, head| {
            let mut bytes = Vec::new();
            reply.write(&mut bytes, head).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let part = Reply::part("text/plain", b"ab".to_vec(), "bytes 0-1/9");
        assert_eq!(
            text(&part, false),
            "HTTP/1.1 206 \r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/9\r\nAccept-Ranges: bytes\r\n\
             Cache-Control: no-store\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab"
        );
        assert!(text(&part, true).ends_with("Content-Length: 2\r\n\r\n"));
        assert!(text(&Reply::status(404), false).starts_with("HTTP/1.1 404 \r\n"));
    }
}
