//! Messages on the standard error of the program around.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Writes a line.
pub(crate) fn say(text: &str) {
    // A closed standard error has no reader to miss it.
    let _ = std::io::stderr().write_all(format!("reconverge: cuda: {text}\n").as_bytes());
}

/// Writes a line the first time that it comes up in this process.
pub(crate) fn say_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        say(text);
    }
}
