//! Memory for generated code. The memory is first writable and later executable. The memory is never writable and
//! executable at once.

// Only this file makes a page executable.
#![allow(unsafe_code)]

use std::io;

use memmap2::{Mmap, MmapMut};

use crate::fault::{self, Watched};

/// Executable code. Its address does not change during the lifetime of the value.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Registration of the code for the fault handler. The registration is dropped before the code.
    _watched: Watched,
    code: Mmap,
}

impl Pages {
    /// Returns executable pages that contain the bytes `code`. The returned pages are not writable.
    ///
    /// # Errors
    /// Fails if the system does not provide memory, or does not make the memory executable.
    pub(crate) fn new(code: &[u8]) -> io::Result<Pages> {
        let mut pages = MmapMut::map_anon(code.len().max(1))?;
        pages[..code.len()].copy_from_slice(code);
        let code = pages.make_exec()?;
        fault::install();
        Ok(Pages { _watched: Watched::new(&code), code })
    }

    /// Returns the address of a byte of the code.
    ///
    /// # Panics
    /// Panics if the byte does not exist.
    pub(crate) fn address(&self, offset: usize) -> *const u8 {
        &raw const self.code[offset]
    }

    /// Returns the code.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.code
    }
}
