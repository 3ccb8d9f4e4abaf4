//! A fault of a list: `[[fault]]` of a campaign file, or an entry of another file (`lists.rs`).

use serde::{Deserialize, Serialize};

use crate::site::{Model, Site};

/// A fault that is stated. The seed chooses absent fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFault {
    /// The site; required.
    pub site: Option<Site>,
    /// The fault model (default: `flip`).
    pub model: Option<Model>,
    /// Step of the golden run. The state changes before it. A destination register changes after its step.
    pub step: Option<u64>,
    /// The place, as results name it: `$r1`, `token 2 mask`, `g 0x100`.
    pub place: Option<String>,
    /// The lane, where the place belongs to one.
    pub lane: Option<u32>,
    /// The bit that flips, or that is stuck.
    pub bit: Option<u32>,
    /// The bits that flip, instead of `bit`.
    pub xor: Option<u64>,
    /// The word after the fault, instead of `bit`.
    pub value: Option<u64>,
}

impl ListedFault {
    /// Checks that the fault states its site, and bits in one way at most.
    ///
    /// # Errors
    /// The message names the field.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.site.is_none() {
            return Err("add the site: site = \"register\"".to_owned());
        }
        let stated = [self.bit.is_some(), self.xor.is_some(), self.value.is_some()];
        if stated.iter().filter(|stated| **stated).count() > 1 {
            return Err("give one of bit, xor and value".to_owned());
        }
        if let Some(bit) = self.bit.filter(|bit| *bit > 63) {
            return Err(format!("bit {bit}: 0 to 63 fits here"));
        }
        Ok(())
    }
}
