//! JSON messages with `Content-Length` headers, as in the Debug Adapter Protocol and the Language Server Protocol.

use std::io::{self, BufRead, Read, Write};

use serde_json::Value;

/// Input from a client.
pub(crate) enum Incoming {
    Message(Value),
    /// Bytes that are not a message. The text describes the problem with these bytes.
    Malformed(String),
}

/// Maximum size of a message in bytes.
const MOST_BYTES: usize = 1 << 24;

/// Reads the next message. Returns `None` at the end of the input.
pub(crate) fn read_message(input: &mut impl BufRead) -> Option<Incoming> {
    const HEADER: &str = "Content-Length:";
    let malformed = |why: String| Some(Incoming::Malformed(why));
    let mut length = None;
    let mut lines = 0;
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() && lines > 0 {
            break;
        }
        lines += usize::from(!line.is_empty());
        // The previous message may be longer than its header states. In this case, the header of this message does not
        // start at the beginning of a line. Names of headers are not case-sensitive.
        if let Some(at) = line.to_ascii_lowercase().find(&HEADER.to_ascii_lowercase()) {
            length = Some(line[at + HEADER.len()..].trim().to_owned());
        }
    }
    let Some(length) = length else {
        return malformed(format!("missing `{HEADER} BYTES` before a message"));
    };
    let Some(length) = length.parse().ok().filter(|length| *length <= MOST_BYTES) else {
        return malformed(format!("`{HEADER} {length}`: expected a number of bytes up to {MOST_BYTES}"));
    };
    let mut bytes = Vec::new();
    let read = input.take(length as u64).read_to_end(&mut bytes);
    if read.is_err() || bytes.len() < length {
        return malformed(format!(
            "expected a message of {length} bytes as in `{HEADER} {length}`, found {}",
            bytes.len()
        ));
    }
    match serde_json::from_slice(&bytes) {
        Ok(message) => Some(Incoming::Message(message)),
        Err(error) => malformed(format!(
            "expected a JSON message ({error}); `{HEADER} {length}` counts the bytes after the empty line"
        )),
    }
}

/// Writes a message with its header.
pub(crate) fn write_message(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}
