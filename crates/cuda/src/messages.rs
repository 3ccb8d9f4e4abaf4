//! Messages on the standard error of the CUDA program.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Writes a line to standard error.
pub(crate) fn say(text: &str) {
    // If standard error is closed, nobody can read the message. The result of the write is therefore ignored.
    let _ = std::io::stderr().write_all(format!("reconverge: cuda: {text}\n").as_bytes());
}

/// Writes a line to standard error, but only once per process.
pub(crate) fn say_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        say(text);
    }
}
