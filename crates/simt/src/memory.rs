//! Memory that many groups share: disjoint buffers at addresses, and a view of it for running groups in parallel
//! with the result of running them one after another.
//!
//! Groups of a grid (blocks, in CUDA's word) may write the same memory. What is guaranteed: **the result of a
//! launch is that of running its groups to their end one after another in the order of their index**, whatever
//! the number of threads. To use several processors, a machine runs some groups at a time, each against its own
//! [`Tracked`] view of the memory as it was, and commits them in order. A view keeps what its group read from the
//! memory, and what it wrote. If a group may have read what an earlier group has written since, its view is discarded
//! and the group runs again, on the memory as it is then. Otherwise it saw exactly what it would have seen in its turn, so
//! that committing its bytes gives the same memory. Atomic operations need no special case: they read and write. Running
//! threads share no data, so there are no locks and no relaxed atomics.

mod bytes;
mod view;

use thiserror::Error;

pub use bytes::Bytes;
pub use view::{Footprint, Plan, Shadow, Tracked, Verdict, Written};

/// A run of bytes at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Address of the first byte.
    pub address: u32,
    /// The bytes.
    pub bytes: Bytes,
}

impl Buffer {
    /// Creates a buffer.
    pub fn new(address: u32, bytes: impl Into<Bytes>) -> Buffer {
        Buffer { address, bytes: bytes.into() }
    }

    /// One past its last address, which may be 2^32.
    fn end(&self) -> u64 {
        u64::from(self.address) + self.bytes.len() as u64
    }
}

/// Why buffers do not fit into one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Two buffers share bytes.
    #[error("the buffers at {first:#x} and {second:#x} overlap")]
    Overlap {
        /// Address of the lower one.
        first: u32,
        /// Address of the other.
        second: u32,
    },
    /// A buffer reaches beyond the last address.
    #[error("the buffer at {0:#x} reaches beyond 32-bit addresses")]
    Beyond(u32),
}

/// Disjoint buffers in a 32-bit address space. Bytes outside them do not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// By ascending address.
    buffers: Vec<Buffer>,
}

/// Something groups load from and store to. `false`: some of the bytes do not exist, and nothing has changed.
pub trait Store {
    /// Copies the bytes from `address` on.
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool;
    /// Replaces the bytes from `address` on.
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool;

    /// The bytes from `address` on, where all of them exist in one buffer and are to be had together: for a group that reads
    /// the picked ones with one question. The others may be what the memory was some time ago.
    #[inline(always)]
    fn reading(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&[u8]> {
        None
    }

    /// The bytes from `address` on, as [`reading`](Self::reading) gives them, for a group that then writes exactly the
    /// picked ones. It may write the others with what they are, and may read none of them.
    #[inline(always)]
    fn writing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }

    /// The same for a group that reads the picked bytes before it writes them.
    #[inline(always)]
    fn changing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }
}

/// Which of the bytes from one address to another a group reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum Picked<'a> {
    /// All of them.
    All,
    /// Of words one behind another those whose bit is set.
    Row(u32),
    /// Elements of so many bytes, at the offsets whose bit is set; all lie within the bytes.
    Each(&'a [u32], u32, u32),
}

/// Checks that no buffer reaches into the next one.
fn disjoint(buffers: &[Buffer]) -> Result<(), LayoutError> {
    match buffers.windows(2).find(|pair| pair[0].end() > u64::from(pair[1].address)) {
        Some(pair) => Err(LayoutError::Overlap { first: pair[0].address, second: pair[1].address }),
        None => Ok(()),
    }
}

impl Memory {
    /// Memory that consists of these buffers.
    ///
    /// # Errors
    /// Two of them overlap, or one does not fit into 32-bit addresses.
    pub fn new(mut buffers: Vec<Buffer>) -> Result<Self, LayoutError> {
        buffers.sort_by_key(|buffer| buffer.address);
        if let Some(beyond) = buffers.iter().find(|buffer| buffer.end() > 1 << 32) {
            return Err(LayoutError::Beyond(beyond.address));
        }
        disjoint(&buffers)?;
        Ok(Memory { buffers })
    }

    /// Adds a buffer.
    ///
    /// # Errors
    /// It overlaps one of them, or does not fit into 32-bit addresses; then nothing has changed.
    pub fn insert(&mut self, buffer: Buffer) -> Result<(), LayoutError> {
        if buffer.end() > 1 << 32 {
            return Err(LayoutError::Beyond(buffer.address));
        }
        let place = self.buffers.partition_point(|other| other.address < buffer.address);
        self.buffers.insert(place, buffer);
        let end = self.buffers.len().min(place + 2);
        disjoint(&self.buffers[place.saturating_sub(1)..end]).inspect_err(|_| {
            self.buffers.remove(place);
        })
    }

    /// Removes the buffer that starts at `address`.
    pub fn remove(&mut self, address: u32) -> Option<Buffer> {
        let index = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        Some(self.buffers.remove(index))
    }

    /// The buffers by ascending address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffer that starts at `address`.
    pub fn at(&self, address: u32) -> Option<&Buffer> {
        let index = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        Some(&self.buffers[index])
    }

    /// The bytes from `address` on, if all of them exist in one buffer.
    #[inline]
    pub fn bytes(&self, address: u32, count: usize) -> Option<&[u8]> {
        let (index, offset) = self.find(address)?;
        self.buffers[index].bytes.get(offset..offset + count)
    }

    /// The bytes from `address` on for writing, if all of them exist in one buffer.
    #[inline]
    pub fn bytes_mut(&mut self, address: u32, count: usize) -> Option<&mut [u8]> {
        let (index, offset) = self.find(address)?;
        self.buffers[index].bytes.get_mut(offset..offset + count)
    }

    #[inline]
    fn find(&self, address: u32) -> Option<(usize, usize)> {
        let index = self.buffers.partition_point(|buffer| buffer.address <= address).checked_sub(1)?;
        Some((index, (address - self.buffers[index].address) as usize))
    }
}

impl Store for Memory {
    #[inline]
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool {
        self.bytes(address, into.len()).map(|bytes| into.copy_from_slice(bytes)).is_some()
    }

    #[inline]
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool {
        self.bytes_mut(address, bytes.len()).map(|place| place.copy_from_slice(bytes)).is_some()
    }

    #[inline]
    fn reading(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&[u8]> {
        self.bytes(address, count)
    }

    #[inline]
    fn writing(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&mut [u8]> {
        self.bytes_mut(address, count)
    }

    #[inline]
    fn changing(&mut self, address: u32, count: usize, _: Picked<'_>) -> Option<&mut [u8]> {
        self.bytes_mut(address, count)
    }
}

#[cfg(test)]
mod tests;
