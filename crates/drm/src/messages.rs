//! Messages on the standard error of the program around.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::Lock;

/// How many different messages are shown.
const SHOWN: usize = 100;
/// Number of bytes of a message that are shown.
const LONGEST: usize = 4096;

/// Messages that were shown.
pub(crate) static SAID: Lock<BTreeSet<String>> = Lock::new(BTreeSet::new());

/// Says something, the first time that it comes up in this process.
pub(crate) fn say_once(text: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    // A signal handler that interrupted this function, and a process that was forked during it, repeat the message.
    let said = SAID.lock();
    let last = match said {
        Ok(mut said) => {
            if said.len() >= SHOWN || !said.insert(text.to_owned()) {
                return;
            }
            said.len() == SHOWN
        }
        Err(_) => false,
    };
    write(&format!("reconverge: {text}\n"));
    if last {
        write("reconverge: further messages are left out\n");
    }
}

/// Says that the node cannot be used, once. Allocates nothing: a process that was forked by a plain `clone` may not.
pub(crate) fn say_unusable() {
    static UNSAID: AtomicBool = AtomicBool::new(true);
    if UNSAID.swap(false, Ordering::Relaxed) {
        write(
            "reconverge: this process was forked in the middle of a request of another thread: it cannot use the device\n",
        );
    }
}

/// Writes a line in one call, so that the lines of several threads do not mix. Errors are ignored. The standard library's
/// lock is not used, because a forked process may never get it.
fn write(line: &str) {
    // SAFETY: the address and the length are those of a string.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
