//! Checks that bits outside the fields of an instruction's format are 0. All bits of ALU words belong to fields. The
//! fourth word of a fetch is not checked. This word is padding, and compilers write arbitrary bits to the padding.

use super::{Lint, RESERVED_BITS};
use crate::code::CfOp;
use crate::explain::{Place, formats};

impl Lint<'_> {
    /// Checks the words of a control-flow instruction and of the fetches of its clause.
    pub(super) fn reserved(&mut self, addr: u32, op: &CfOp) {
        self.unowned(addr, Place::ControlFlow);
        let CfOp::Fetch(_, _, fetches) = op else { return };
        for fetch in fetches {
            self.unowned(fetch.addr, Place::Fetch);
        }
    }

    fn unowned(&mut self, addr: u32, place: Place) {
        let words = self.words.get(2 * addr as usize..).unwrap_or_default();
        let formats = formats(words, place, self.chip);
        let stray = words.iter().zip(formats).map(|(word, format)| word & !format.owned).enumerate();
        let stray: Vec<String> = stray
            .filter(|(_, bits)| *bits != 0)
            .map(|(word, bits)| format!("{bits:08x} of the {} word", ["first", "second", "third"][word]))
            .collect();
        if !stray.is_empty() {
            self.find(&RESERVED_BITS, addr, stray.join(" and "));
        }
    }
}
