//! Numbers that identify values in a process.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that identifies a value. No other value of this process has this number, or had this number earlier. If
/// data was derived from one value, the data is valid for every value with the same number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity(u64);

/// Omits the number, so that equal results of two runs have the same text.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Returns a new number.
    #[allow(clippy::new_without_default, reason = "two of them differ")]
    pub fn new() -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Identity(NEXT.fetch_add(1, Relaxed))
    }
}
