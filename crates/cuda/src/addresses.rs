//! The table of the device's address ranges that are in use. The table also contains the use of each range. All
//! contexts share one table, so that no two contexts use the same address.

use std::collections::BTreeMap;

/// The lowest device address that an allocation can have. Lower addresses belong to the host. For example, programs
/// with fixed addresses and the heaps of these programs are at lower addresses. `cuMemcpy` derives the direction of a
/// copy from the two addresses. Therefore, no host address may be in the range of device addresses.
const FIRST: u32 = 0x2000_0000;
/// The end of the device addresses that can be allocated.
const LAST: u64 = 0xf000_0000;
/// The start of each allocation is a multiple of this number of bytes.
pub(crate) const ALIGNMENT: u64 = 256;
/// Minimum number of unused bytes between two allocations. An access past the end of an allocation thus does not reach
/// the next allocation.
const GAP: u64 = 4096;

/// An address range that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// First address.
    pub(crate) address: u32,
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// Handle of the context that owns the range.
    pub(crate) context: usize,
    /// A number that is unique among all allocations.
    pub(crate) id: u64,
    /// The use of the addresses.
    pub(crate) kind: AllocationKind,
}

/// The use of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// Device memory that the program has allocated.
    Memory,
    /// Device memory for which the program has called `cuMemFreeAsync`. The stream has not freed the memory yet.
    Leaving,
    /// A variable of a module.
    Variable,
    /// The contents of an array. The program does not get the address of the contents.
    Array,
    /// Host memory that the device can access. The value is the address of the memory on the host.
    Host(usize),
}

/// The allocations, sorted by their addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    allocations: BTreeMap<u32, Allocation>,
    next: u64,
    ids: u64,
    all: u64,
    used: u64,
}

impl Addresses {
    /// Returns a table without allocations for a device with `all` bytes of memory.
    pub(crate) fn new(all: u64) -> Addresses {
        Addresses { allocations: BTreeMap::new(), next: FIRST.into(), ids: 0, all, used: 0 }
    }

    /// Number of free bytes of device memory.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.all - self.used
    }

    /// Allocates an address range. Returns `None` if the free memory or the free addresses do not suffice.
    pub(crate) fn allocate(
        &mut self,
        bytes: u64,
        context: usize,
        kind: AllocationKind,
    ) -> Option<Allocation> {
        let taken = bytes.checked_next_multiple_of(ALIGNMENT)?;
        let own = if matches!(kind, AllocationKind::Host(_)) { 0 } else { taken };
        if own > self.free_bytes() {
            return None;
        }
        let address = self.place(taken)?;
        self.next = u64::from(address) + taken + GAP;
        self.used += own;
        self.ids += 1;
        let allocation = Allocation { address, bytes, context, id: self.ids, kind };
        self.allocations.insert(address, allocation);
        Some(allocation)
    }

    /// Returns the address of a free range of `bytes` bytes. The function prefers addresses after the last allocation.
    /// Thus, freed addresses stay unused for a while. If no later range is large enough, the function returns the
    /// address of the first free range that is large enough.
    fn place(&self, bytes: u64) -> Option<u32> {
        let fits = |start: u64| {
            let end = start.checked_add(bytes)?.checked_add(GAP).filter(|end| *end <= LAST)?;
            let before = self.allocations.range(..end as u32).next_back();
            before
                .is_none_or(|(address, last)| u64::from(*address) + last.bytes <= start)
                .then_some(start as u32)
        };
        let after = self
            .allocations
            .values()
            .map(|last| (u64::from(last.address) + last.bytes).next_multiple_of(ALIGNMENT) + GAP);
        fits(self.next).or_else(|| [u64::from(FIRST)].into_iter().chain(after).find_map(fits))
    }

    /// Frees the allocation that starts at an address, if `wanted` returns true for the allocation.
    pub(crate) fn free(&mut self, address: u32, wanted: impl Fn(&Allocation) -> bool) -> Option<Allocation> {
        let found = *self.allocations.get(&address).filter(|found| wanted(found))?;
        self.allocations.remove(&address);
        if !matches!(found.kind, AllocationKind::Host(_)) {
            self.used -= found.bytes.next_multiple_of(ALIGNMENT);
        }
        Some(found)
    }

    /// Marks the memory that starts at an address as [`AllocationKind::Leaving`]. Returns `None` if no memory starts at
    /// the address, or if the memory is already marked.
    pub(crate) fn leave(&mut self, address: u32) -> Option<()> {
        let found = self.allocations.get_mut(&address)?;
        (found.kind == AllocationKind::Memory).then(|| found.kind = AllocationKind::Leaving)
    }

    /// Frees all allocations of a context.
    pub(crate) fn free_all(&mut self, context: usize) {
        let of_context = |found: &&Allocation| found.context == context;
        let own: Vec<u32> = self.allocations.values().filter(of_context).map(|found| found.address).collect();
        own.into_iter().for_each(|address| {
            self.free(address, |_| true);
        });
    }

    /// Returns the allocation that contains all bytes of a range.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<Allocation> {
        let start = u32::try_from(address).ok()?;
        let (_, found) = self.allocations.range(..=start).next_back()?;
        let end = address.checked_add(bytes)?;
        let last = u64::from(found.address) + found.bytes;
        (end <= last && (address < last || bytes == 0)).then_some(*found)
    }

    /// Returns the ranges of host memory that kernels of a context may access. Each entry contains the address on the
    /// device, the address on the host, and the number of bytes.
    pub(crate) fn mapped(&self, context: usize) -> Vec<(u32, usize, u64)> {
        let own = self.allocations.values().filter(|found| found.context == context);
        let mapped = own.filter_map(|found| match found.kind {
            AllocationKind::Host(start) => Some((found.address, start, found.bytes)),
            _ => None,
        });
        mapped.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_aligned_and_apart_and_count() {
        let mut addresses = Addresses::new(1 << 20);
        let first = addresses.allocate(1, 7, AllocationKind::Memory).unwrap();
        let second = addresses.allocate(1000, 7, AllocationKind::Memory).unwrap();
        assert!(u64::from(second.address - first.address) >= GAP);
        assert!(u64::from(second.address).is_multiple_of(ALIGNMENT));
        assert_eq!(addresses.free_bytes(), (1 << 20) - 256 - 1024);
        assert_eq!(addresses.find(u64::from(second.address) + 999, 1), Some(second));
        assert_eq!(addresses.find(u64::from(second.address) + 999, 2), None);
        assert_eq!(addresses.allocate(1 << 20, 7, AllocationKind::Memory), None);
        // Host memory that the device can access uses addresses of the device, but no memory of the device.
        for bytes in [1 << 32, u64::MAX - 300, u64::MAX] {
            assert_eq!(addresses.allocate(bytes, 7, AllocationKind::Host(16)), None, "{bytes}");
        }
        assert_eq!((addresses.leave(first.address), addresses.leave(first.address)), (Some(()), None));
        addresses.free_all(7);
        assert_eq!(addresses.free_bytes(), 1 << 20);
    }

    #[test]
    fn addresses_are_used_again_when_all_were_used() {
        let mut addresses = Addresses::new(1 << 40);
        let bytes = 1 << 30;
        for _ in 0..20 {
            let one = addresses.allocate(bytes, 1, AllocationKind::Memory).unwrap();
            let other = addresses.allocate(bytes, 1, AllocationKind::Memory).unwrap();
            addresses.free(one.address, |_| true).unwrap();
            addresses.free(other.address, |_| true).unwrap();
        }
    }
}
