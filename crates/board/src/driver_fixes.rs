//! Fixes of known faults in drivers. If a fix is on, the emulated chip computes the results that a driver without the
//! fault would get. By default, no fix is on.

use reconverge_isa::choices;

use crate::Driver;

choices! {
    /// Faults that are fixed together.
    pub enum DriverFixes {
        /// Faults of Mesa's compute driver for NVIDIA's chips before Fermi. The page `docs/mesa.md` lists these faults.
        Nv50Compute = "nv50-compute",
    }
}

impl DriverFixes {
    /// Returns the fixes with this name.
    pub fn from_name(name: &str) -> Option<DriverFixes> {
        DriverFixes::ALL.into_iter().find(|fixes| fixes.name() == name)
    }

    /// Returns the driver that has the faults.
    pub const fn driver(self) -> Driver {
        match self {
            DriverFixes::Nv50Compute => Driver::Nv50,
        }
    }
}
