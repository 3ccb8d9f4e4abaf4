//! Messages on the standard error of the program that loads this library.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::Lock;

/// Maximum number of different messages that are shown.
const SHOWN: usize = 100;
/// Maximum length of a message, in bytes.
const LONGEST: usize = 4096;

/// Messages that were printed.
pub(crate) static SAID: Lock<BTreeSet<String>> = Lock::new(BTreeSet::new());

/// Prints a message when the message occurs for the first time in this process.
pub(crate) fn say_once(text: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    // This function cannot take the lock in two cases: in a signal handler that interrupted this function, and in a
    // process that was forked during this function. In these cases, the function may print the message twice.
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
        write("reconverge: this process prints no further messages\n");
    }
}

/// Reports once that the node cannot be used. Does not allocate, because a process that plain `clone` has created must
/// not allocate.
pub(crate) fn say_unusable() {
    static UNSAID: AtomicBool = AtomicBool::new(true);
    if UNSAID.swap(false, Ordering::Relaxed) {
        write(
            "reconverge: this process cannot use the device, because it was forked in the middle of a request of another thread\n",
        );
    }
}

/// Writes a whole line with one system call, so that lines of different threads do not mix. Errors are ignored. The
/// function does not use the lock of the standard library. In a forked process, that lock may never be released.
fn write(line: &str) {
    // SAFETY: the address and the length belong to a string.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
