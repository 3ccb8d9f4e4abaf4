//! Memory that is written first and executed then, never both.

// A page becomes code here: the only place that makes one executable.
#![allow(unsafe_code)]

use std::io;

use memmap2::{Mmap, MmapMut};

use crate::fault::{self, Region};

/// Code that can run. It stays where it is for as long as this lives.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Dropped before the code is.
    _region: Region,
    code: Mmap,
}

impl Pages {
    /// Pages with these bytes, executable and no longer writable.
    ///
    /// # Errors
    /// The system gives no memory, or none that may be executed.
    pub(crate) fn new(code: &[u8]) -> io::Result<Pages> {
        let mut pages = MmapMut::map_anon(code.len().max(1))?;
        pages[..code.len()].copy_from_slice(code);
        let code = pages.make_exec()?;
        fault::install();
        Ok(Pages { _region: Region::new(&code), code })
    }

    /// The address of a byte of the code.
    ///
    /// # Panics
    /// There is no such byte.
    pub(crate) fn address(&self, offset: usize) -> *const u8 {
        &raw const self.code[offset]
    }

    /// The code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.code
    }
}
