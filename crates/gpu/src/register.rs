//! Registers of chips whose drivers write them by address: the known registers, and the effect of a write.

/// A contiguous group of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    /// Name of the first register in the manual.
    pub(crate) name: &'static str,
    /// Byte address of the first register.
    pub(crate) address: u32,
    /// Number of registers.
    pub(crate) count: u32,
    /// Reason why the register does not change results; `None` if it is read.
    pub(crate) ignored: Option<&'static str>,
    /// Whether the register holds an address, so that a relocation follows.
    pub(crate) relocated: bool,
}

impl Register {
    /// Returns the registers, followed by a relocation.
    pub(crate) const fn relocated(self) -> Register {
        Register { relocated: true, ..self }
    }

    /// Returns whether the register at an address is one of these.
    #[cfg(test)]
    pub(crate) const fn has(&self, address: u32) -> bool {
        address >= self.address && address < self.address + 4 * self.count
    }
}

/// Returns registers that are read.
pub(crate) const fn read(name: &'static str, address: u32, count: u32) -> Register {
    Register { name, address, count, ignored: None, relocated: false }
}

/// Returns registers that do not change results, with the reason.
pub(crate) const fn ignored(name: &'static str, address: u32, count: u32, why: &'static str) -> Register {
    Register { name, address, count, ignored: Some(why), relocated: false }
}

/// Registers by address.
#[derive(Debug)]
pub(crate) struct RegisterTable {
    registers: Vec<&'static Register>,
    /// Address of the first register.
    first: u32,
    /// Index into `registers` for each address from `first` on; past its end if no register has the address.
    places: Vec<u16>,
}

impl RegisterTable {
    /// Returns the table of these lists. If several registers have an address, the first one is used.
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

    /// Returns the registers at an address, if they are known.
    pub(crate) fn get(&self, address: u32) -> Option<&'static Register> {
        let place = address.checked_sub(self.first)? / 4;
        self.registers.get(usize::from(*self.places.get(place as usize)?)).copied()
    }
}

/// Declares registers that are read: `NAME = address * count`, with `relocated` if a relocation follows.
macro_rules! addresses {
    ($($(#[doc = $doc:literal])* $name:ident = $address:literal * $count:literal $($how:ident)?;)*) => {
        $($(#[doc = $doc])* #[allow(missing_docs)] pub(super) const $name: u32 = $address;)*
        /// The registers that are read.
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
