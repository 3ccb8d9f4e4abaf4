//! Memory that many groups share. The memory consists of disjoint buffers at addresses. With views of the memory,
//! groups can run in parallel. The result is the same as if the groups ran in order.
//!
//! Groups of a grid (blocks, in CUDA's term) may write the same memory. This module guarantees that **the result of a
//! launch is the same as in launch order**. In launch order, the groups run one after another in the order of their
//! index, each to its end. The number of threads has no effect on the result. To use several processors, a machine runs
//! some groups at the same time. Each group has a separate [`Tracked`] view, which shows the memory as it was before
//! these groups started. The machine then commits the groups in order. The view of a group records the memory that the
//! group has read and the values that the group has written. An earlier group may have since written bytes that a later
//! group has read. In this case, the machine discards the view of the later group and runs this group again on the
//! current memory. Otherwise the group has read the same values as in launch order. So after the commit of the group's
//! writes, the memory has the same contents as in launch order. Atomic operations need no special case, because a view
//! records them as reads and writes. Running threads share no data, so the code does not need locks or relaxed atomics.

mod bytes;
mod view;

use thiserror::Error;

use crate::identity::Identity;

pub use bytes::Bytes;
pub use view::{Footprint, Plan, Shadow, Tracked, Verdict, Written};

/// Contiguous bytes at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Address of the first byte.
    pub address: u32,
    /// The bytes.
    pub bytes: Bytes,
}

impl Buffer {
    /// Returns a buffer with these bytes at `address`.
    pub fn new(address: u32, bytes: impl Into<Bytes>) -> Buffer {
        Buffer { address, bytes: bytes.into() }
    }

    /// Returns the address after the last byte, which may be 2^32.
    fn end(&self) -> u64 {
        u64::from(self.address) + self.bytes.len() as u64
    }
}

/// Reason why buffers cannot be in the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Two buffers share bytes.
    #[error("the buffers at {first:#x} and {second:#x} overlap")]
    Overlap {
        /// Address of the buffer with the lower address.
        first: u32,
        /// Address of the buffer with the higher address.
        second: u32,
    },
    /// The buffer at this address extends past the last 32-bit address.
    #[error("the buffer at {0:#x} reaches beyond 32-bit addresses")]
    Beyond(u32),
}

/// Disjoint buffers in a 32-bit address space. Bytes outside the buffers do not exist.
#[derive(Debug)]
pub struct Memory {
    /// The buffers, by ascending address.
    buffers: Vec<Buffer>,
    /// Identity of the buffers and of their host addresses. The identity changes whenever the buffers or their host
    /// addresses may change.
    layout: Identity,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { buffers: Vec::new(), layout: Identity::new() }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory { buffers: self.buffers.clone(), layout: Identity::new() }
    }
}

impl PartialEq for Memory {
    /// Returns whether the buffers have equal addresses and bytes.
    fn eq(&self, other: &Self) -> bool {
        self.buffers == other.buffers
    }
}

impl Eq for Memory {}

/// Memory that groups load from and store to. If a function returns `false`, some of the bytes do not exist, and the
/// memory is unchanged.
pub trait Store {
    /// Copies the bytes from `address` on into `into`.
    fn load(&mut self, address: u32, into: &mut [u8]) -> bool;
    /// Writes `bytes` to the memory, from `address` on.
    fn store(&mut self, address: u32, bytes: &[u8]) -> bool;

    /// Returns `count` bytes from `address` on. Returns `None` if no single buffer contains all of these bytes, or if
    /// the memory cannot return the bytes as one slice. The group must read only the bytes that `_picked` selects.
    /// Other bytes of the slice may be out of date.
    #[inline(always)]
    fn reading(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&[u8]> {
        None
    }

    /// Returns bytes as [`reading`](Self::reading) does. The group then writes all picked bytes. The group must not
    /// read any of the returned bytes. The group must not change the bytes that are not picked.
    #[inline(always)]
    fn writing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }

    /// Returns all bytes of the buffer that contains `address`, and the address of the buffer's first byte. While
    /// [`layout`](Self::layout) returns the same identity, groups may read all these bytes at any time. If `_writes` is
    /// set, groups may also write the bytes. Returns `None` if the memory does not allow such direct accesses.
    fn whole(&mut self, _address: u32, _writes: bool) -> Option<(u32, *mut [u8])> {
        None
    }

    /// Returns the identity of the buffers that [`whole`](Self::whole) returns, or `None` if `whole` returns no
    /// buffers. A store may change the identity.
    fn layout(&self) -> Option<Identity> {
        None
    }

    /// Returns bytes as [`writing`](Self::writing) does. The group first reads the picked bytes, and then writes the
    /// picked bytes.
    #[inline(always)]
    fn changing(&mut self, _address: u32, _count: usize, _picked: Picked<'_>) -> Option<&mut [u8]> {
        None
    }
}

/// Selection of the bytes in a range that a group reads or writes.
#[derive(Clone, Copy, Debug)]
pub enum Picked<'a> {
    /// All bytes.
    All,
    /// A selection of the contiguous 32-bit words. Word n is picked if bit n is set.
    Row(u32),
    /// A selection of elements. In `Each(offsets, bits, size)`, the element at offset `offsets[n]` is picked if bit n
    /// of `bits` is set. `size` is the size of an element in bytes. All these elements are inside the range.
    Each(&'a [u32], u32, u32),
}

/// Checks that buffers do not overlap. `buffers` must be sorted by ascending address.
fn disjoint(buffers: &[Buffer]) -> Result<(), LayoutError> {
    match buffers.windows(2).find(|pair| pair[0].end() > u64::from(pair[1].address)) {
        Some(pair) => Err(LayoutError::Overlap { first: pair[0].address, second: pair[1].address }),
        None => Ok(()),
    }
}

impl Memory {
    /// Returns a memory that consists of these buffers.
    ///
    /// # Errors
    /// Returns an error if two buffers overlap, or if a buffer does not fit into 32-bit addresses.
    pub fn new(mut buffers: Vec<Buffer>) -> Result<Self, LayoutError> {
        buffers.sort_by_key(|buffer| buffer.address);
        if let Some(beyond) = buffers.iter().find(|buffer| buffer.end() > 1 << 32) {
            return Err(LayoutError::Beyond(beyond.address));
        }
        disjoint(&buffers)?;
        Ok(Memory { buffers, layout: Identity::new() })
    }

    /// Adds a buffer to the memory.
    ///
    /// # Errors
    /// Returns an error if the buffer overlaps another buffer or does not fit into 32-bit addresses. After an error,
    /// the memory is unchanged.
    pub fn insert(&mut self, buffer: Buffer) -> Result<(), LayoutError> {
        if buffer.end() > 1 << 32 {
            return Err(LayoutError::Beyond(buffer.address));
        }
        self.layout = Identity::new();
        let place = self.buffers.partition_point(|other| other.address < buffer.address);
        self.buffers.insert(place, buffer);
        let end = self.buffers.len().min(place + 2);
        disjoint(&self.buffers[place.saturating_sub(1)..end]).inspect_err(|_| {
            self.buffers.remove(place);
        })
    }

    /// Removes and returns the buffer that starts at `address`.
    pub fn remove(&mut self, address: u32) -> Option<Buffer> {
        let index = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        self.layout = Identity::new();
        Some(self.buffers.remove(index))
    }

    /// Returns the buffers, by ascending address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Returns the buffer that starts at `address`.
    pub fn at(&self, address: u32) -> Option<&Buffer> {
        let index = self.buffers.binary_search_by_key(&address, |buffer| buffer.address).ok()?;
        Some(&self.buffers[index])
    }

    /// Returns `count` bytes from `address` on, if one buffer contains all `count` bytes.
    #[inline]
    pub fn bytes(&self, address: u32, count: usize) -> Option<&[u8]> {
        let (index, offset) = self.find(address)?;
        self.buffers[index].bytes.get(offset..offset + count)
    }

    /// Returns `count` bytes from `address` on for writing, if one buffer contains all `count` bytes.
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

    fn whole(&mut self, address: u32, _: bool) -> Option<(u32, *mut [u8])> {
        let (index, offset) = self.find(address)?;
        let Buffer { address, bytes } = &mut self.buffers[index];
        (offset < bytes.len()).then_some((*address, &raw mut **bytes))
    }

    #[inline]
    fn layout(&self) -> Option<Identity> {
        Some(self.layout)
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
