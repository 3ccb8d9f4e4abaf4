//! Tables of the known registers of a chip, by address. For each register, a table states whether the chip model reads
//! the register. If the chip model does not read a register, the table also states the reason.

/// One register, or an array of registers at consecutive addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    /// Name of the first register, from the manual.
    pub(crate) name: &'static str,
    /// Byte address of the first register.
    pub(crate) address: u32,
    /// Number of registers.
    pub(crate) count: u32,
    /// Reason for which the register does not change results, or `None` if the chip model reads the register.
    pub(crate) ignored: Option<&'static str>,
    /// Whether the register holds an address. If so, a relocation follows each write to the register.
    pub(crate) relocated: bool,
}

impl Register {
    /// Returns a copy of this entry. The copy states that the registers hold addresses.
    pub(crate) const fn relocated(self) -> Register {
        Register { relocated: true, ..self }
    }

    /// Returns whether `address` is the address of a register of this entry.
    #[cfg(test)]
    pub(crate) const fn has(&self, address: u32) -> bool {
        address >= self.address && address < self.address + 4 * self.count
    }
}

/// Returns registers that the chip model reads.
pub(crate) const fn read(name: &'static str, address: u32, count: u32) -> Register {
    Register { name, address, count, ignored: None, relocated: false }
}

/// Returns registers that do not change results, with the reason.
pub(crate) const fn ignored(name: &'static str, address: u32, count: u32, why: &'static str) -> Register {
    Register { name, address, count, ignored: Some(why), relocated: false }
}

/// A table of registers by address.
#[derive(Debug)]
pub(crate) struct RegisterTable {
    registers: Vec<&'static Register>,
    /// Lowest address of the table.
    first: u32,
    /// Indices into `registers`, by address minus `first`. The index is past the end if no register has the address.
    places: Vec<u16>,
}

impl RegisterTable {
    /// Returns the table for these lists. If several entries have the same address, the first entry is used.
    pub(crate) fn new(lists: &[&'static [Register]]) -> RegisterTable {
        let registers: Vec<&'static Register> = lists.iter().copied().flatten().collect();
        let first = registers.iter().map(|register| register.address).min().unwrap_or(0);
        let end = registers.iter().map(|register| register.address + 4 * register.count).max();
        let mut places = vec![u16::MAX; (end.unwrap_or(first) - first) as usize / 4];
        for (place, register) in registers.iter().enumerate().rev() {
            let start = (register.address - first) as usize / 4;
            places[start..][..register.count as usize].fill(place as u16);
        }
        RegisterTable { registers, first, places }
    }

    /// Returns the entry with this address, or `None` if no register has the address.
    pub(crate) fn get(&self, address: u32) -> Option<&'static Register> {
        let place = address.checked_sub(self.first)? / 4;
        self.registers.get(usize::from(*self.places.get(place as usize)?)).copied()
    }
}

/// Declares registers that the chip model reads: `NAME = address * count`. The suffix `relocated` means that a
/// relocation follows each write.
macro_rules! addresses {
    ($($(#[doc = $doc:literal])* $name:ident = $address:literal * $count:literal $($how:ident)?;)*) => {
        $($(#[doc = $doc])* #[allow(missing_docs)] pub(super) const $name: u32 = $address;)*
        /// Registers that the chip model reads.
        const READ: &[$crate::register::Register] =
            &[$($crate::register::read(stringify!($name), $address, $count)$(.$how())?),*];
    };
}

pub(crate) use addresses;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_found_in_the_first_list_that_has_it() {
        const FIRST: &[Register] = &[read("A", 0x20, 2), read("B", 0x40, 1)];
        const SECOND: &[Register] = &[ignored("C", 0x18, 4, "none"), ignored("D", 0x30, 1, "none")];
        let table = RegisterTable::new(&[FIRST, SECOND]);
        for address in (0..0x60).step_by(4) {
            let found = FIRST.iter().chain(SECOND).find(|register| register.has(address));
            assert_eq!(table.get(address), found, "{address:#x}");
        }
        assert_eq!(RegisterTable::new(&[]).get(0), None);
    }
}
