//! Registers of chips whose drivers write them by address: which there are, and what becomes of a write.

/// Some registers one behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    /// The manual's name, of the first.
    pub(crate) name: &'static str,
    /// Byte address of the first.
    pub(crate) address: u32,
    /// How many.
    pub(crate) count: u32,
    /// Why it changes no result; `None` for one that is read.
    pub(crate) ignored: Option<&'static str>,
    /// Whether it holds an address, so that a relocation follows.
    pub(crate) relocated: bool,
}

impl Register {
    /// A relocation follows.
    pub(crate) const fn relocated(self) -> Register {
        Register { relocated: true, ..self }
    }

    /// Whether the register at an address is one of these.
    pub(crate) const fn has(&self, address: u32) -> bool {
        address >= self.address && address < self.address + 4 * self.count
    }
}

/// Registers that are read.
pub(crate) const fn read(name: &'static str, address: u32, count: u32) -> Register {
    Register { name, address, count, ignored: None, relocated: false }
}

/// Registers that change no result, with the reason.
pub(crate) const fn ignored(name: &'static str, address: u32, count: u32, why: &'static str) -> Register {
    Register { name, address, count, ignored: Some(why), relocated: false }
}

/// Registers that are read, by name: `NAME = address * count`, and `relocated` where a relocation follows.
macro_rules! addresses {
    ($($(#[doc = $doc:literal])* $name:ident = $address:literal * $count:literal $($how:ident)?;)*) => {
        $($(#[doc = $doc])* #[allow(missing_docs)] pub(super) const $name: u32 = $address;)*
        /// The registers that are read.
        const READ: &[$crate::register::Register] =
            &[$($crate::register::read(stringify!($name), $address, $count)$(.$how())?),*];
    };
}

pub(crate) use addresses;
