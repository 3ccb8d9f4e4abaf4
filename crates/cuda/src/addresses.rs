//! The addresses of the device that are in use, and their uses. One table serves all contexts, so that an address is unique.

use std::collections::BTreeMap;

/// The first address that is allocated. Addresses below are where programs that are linked to fixed addresses, and their heap, are:
/// a copy whose direction follows from its addresses must not mistake them.
const FIRST: u32 = 0x2000_0000;
/// The end of addresses that are allocated.
const LAST: u64 = 0xf000_0000;
/// Allocations start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 256;
/// At least as many bytes are between two allocations, so that an access past the end of one does not hit the next.
const GAP: u64 = 4096;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    /// First address.
    pub(crate) address: u32,
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// Handle of the context.
    pub(crate) context: usize,
    /// A number that no other allocation has.
    pub(crate) id: u64,
    /// The use of the addresses.
    pub(crate) kind: AllocationKind,
}

/// The use of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// Memory of the device that the program has allocated.
    Memory,
    /// Memory that a stream will free.
    Leaving,
    /// A variable of a module.
    Variable,
    /// The contents of an array, whose address the program does not get.
    Array,
    /// Memory of the host at this address.
    Host(usize),
}

/// The allocations by their address.
#[derive(Debug)]
pub(crate) struct Addresses {
    allocations: BTreeMap<u32, Allocation>,
    next: u64,
    ids: u64,
    all: u64,
    used: u64,
}

impl Addresses {
    /// Returns the addresses of a device with `all` bytes of memory, all of them free.
    pub(crate) fn new(all: u64) -> Addresses {
        Addresses { allocations: BTreeMap::new(), next: FIRST.into(), ids: 0, all, used: 0 }
    }

    /// Bytes that are free.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.all - self.used
    }

    /// Allocates addresses; `None` if memory or addresses do not suffice.
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

    /// Addresses after the last allocation, so that those that were freed stay unused for a while; else the first that fit.
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

    /// Frees what starts at an address, if a condition holds for it.
    pub(crate) fn free(&mut self, address: u32, wanted: impl Fn(&Allocation) -> bool) -> Option<Allocation> {
        let found = *self.allocations.get(&address).filter(|found| wanted(found))?;
        self.allocations.remove(&address);
        if !matches!(found.kind, AllocationKind::Host(_)) {
            self.used -= found.bytes.next_multiple_of(ALIGNMENT);
        }
        Some(found)
    }

    /// Marks memory that starts at an address for [`Addresses::free`]; `None` if there is none, or if it is marked already.
    pub(crate) fn leave(&mut self, address: u32) -> Option<()> {
        let found = self.allocations.get_mut(&address)?;
        (found.kind == AllocationKind::Memory).then(|| found.kind = AllocationKind::Leaving)
    }

    /// Frees everything of a context.
    pub(crate) fn free_all(&mut self, context: usize) {
        let of_context = |found: &&Allocation| found.context == context;
        let own: Vec<u32> = self.allocations.values().filter(of_context).map(|found| found.address).collect();
        own.into_iter().for_each(|address| {
            self.free(address, |_| true);
        });
    }

    /// The allocation with all of these bytes.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Option<Allocation> {
        let start = u32::try_from(address).ok()?;
        let (_, found) = self.allocations.range(..=start).next_back()?;
        let end = address.checked_add(bytes)?;
        let last = u64::from(found.address) + found.bytes;
        (end <= last && (address < last || bytes == 0)).then_some(*found)
    }

    /// Memory of the host that kernels of a context may access: address on the device, address on the host, number of bytes.
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
        // Memory of the host takes addresses only.
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
