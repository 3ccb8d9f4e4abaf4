//! Messages on the standard error of the program around.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How many different messages are shown.
const SHOWN: usize = 100;

static SAID: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Says something, the first time that it comes up in this process.
pub(crate) fn say_once(text: &str) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() >= SHOWN || !said.insert(text.to_owned()) {
        return;
    }
    // One write, so that the lines of several threads do not mix. A standard error that is closed is not our concern.
    let _ = std::io::stderr().write_all(format!("reconverge: {text}\n").as_bytes());
    if said.len() == SHOWN {
        let _ = std::io::stderr().write_all(b"reconverge: further messages are left out\n");
    }
}
