//! The engine of the playground. [`answer`] takes a request and returns a reply, both in JSON.
//!
//! The page in `viewer/playground` sends the requests. In a browser, this crate is a WebAssembly module. The module
//! `abi` contains the functions that the WebAssembly module exports. The compiler compiles `abi` only for WebAssembly.
//! `reconverge serve` and its tests call [`answer`] natively. The replies have the same bytes in a browser and
//! natively.
//!
//! * [`request`]: the requests. The enum has one variant per request. A reply is `{"reply": …}` or `{"error": …}`
//!   ([`error`]).
//! * [`source`]: messages, explanations and proposals for a source text in an editor.
//! * [`place`]: positions in a text, counted in UTF-16 code units.
//! * [`launch`]: runs a launch file, compares the results with the expected results, and records the run for the page.
//! * [`words`]: disassembles words and assembles the text again.
//! * [`describe`]: returns machines, chips and limits, and runs kernels of `bench`.
//!
//! This crate does not read files. So a launch file in the playground contains values instead of names of files.
//!
//! ```
//! let request = r#"{"request": "diagnose", "source": ".isa tesla\nmovv b32 $r0 0x4\nexit nop\n"}"#;
//! let reply = String::from_utf8(reconverge_playground::answer(request.as_bytes())).unwrap();
//! assert!(reply.contains(r#""line":2"#) && reply.contains("mov"), "{reply}");
//! ```

#[cfg(target_family = "wasm")]
pub mod abi;
pub mod describe;
pub mod error;
mod given;
pub mod launch;
pub mod place;
pub mod request;
pub mod source;
pub mod words;

use serde::Serialize;

use error::PlayError;
use request::PlayRequest;

/// A reply without an error.
#[derive(Serialize)]
struct Replied<T> {
    reply: T,
}

/// Answers a request. `request` contains the bytes of a JSON object in the form of [`PlayRequest`]. Returns the bytes
/// of the reply.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let answered = serde_json::from_slice(request).map_err(PlayError::request).and_then(answered);
    answered.unwrap_or_else(|error| error.to_json())
}

fn answered(request: PlayRequest) -> Result<Vec<u8>, PlayError> {
    match request {
        PlayRequest::Describe => bytes(&describe::describe()),
        PlayRequest::Kernel { isa, kernel, lanes } => bytes(&describe::run_kernel(&isa, &kernel, lanes)?),
        PlayRequest::Diagnose { source, launch } => bytes(&source::diagnose(&source, &launch)),
        PlayRequest::Hover { source, launch, at } => bytes(&source::hover(&source, &launch, at)),
        PlayRequest::Complete { source, launch, at } => bytes(&source::complete(&source, &launch, at)),
        PlayRequest::Run { source, launch } => bytes(&launch::run(&source, &launch)?),
        PlayRequest::Record { source, launch, title } => bytes(&launch::record(&source, &launch, &title)?),
        PlayRequest::Disassemble(words) => bytes(&words::disassemble(&words)?),
        PlayRequest::RoundTrip(words) => bytes(&words::round_trip(&words)?),
    }
}

fn bytes<T: Serialize>(reply: &T) -> Result<Vec<u8>, PlayError> {
    serde_json::to_vec(&Replied { reply }).map_err(PlayError::request)
}
