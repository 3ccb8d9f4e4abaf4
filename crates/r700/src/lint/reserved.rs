//! Bits that no field of an instruction's format owns. ALU words have none; the fourth word of a fetch is padding, into
//! which compilers write what they like.

use super::{Lint, RESERVED_BITS};
use crate::chip::Family;
use crate::code::{CfOp, FetchOp, VertexFormat};
use crate::words::*;

impl Lint<'_> {
    /// Looks at the words of a control-flow instruction and of the fetches of its clause.
    pub(super) fn reserved(&mut self, addr: u32, op: &CfOp) {
        self.unowned(addr, &owned(op, self.chip.family));
        let CfOp::Fetch(_, _, fetches) = op else { return };
        for fetch in fetches {
            self.unowned(fetch.addr, &owned_by_fetch(&fetch.op, self.chip.family));
        }
    }

    fn unowned(&mut self, addr: u32, owned: &[u32]) {
        let words = self.words.iter().skip(2 * addr as usize);
        let stray = words.zip(owned).map(|(word, owned)| word & !owned).enumerate();
        let stray: Vec<String> = stray
            .filter(|(_, bits)| *bits != 0)
            .map(|(word, bits)| format!("{bits:08x} of the {} word", ["first", "second", "third"][word]))
            .collect();
        if !stray.is_empty() {
            self.find(&RESERVED_BITS, addr, stray.join(" and "));
        }
    }
}

/// The bits of the two words that fields own.
fn owned(op: &CfOp, family: Family) -> [u32; 2] {
    let of = |r600, r700| if family == Family::R700 { r700 } else { r600 };
    match op {
        CfOp::Control(..) | CfOp::Fetch(..) => {
            [CfDword0::OWNED, of(CfDword1R600::OWNED, CfDword1R700::OWNED)]
        }
        CfOp::Alu(_) => [CfAluDword0::OWNED, of(CfAluDword1R600::OWNED, CfAluDword1R700::OWNED)],
        CfOp::Export(..) => [
            CfAllocExportDword0::OWNED,
            of(CfAllocExportDword1SwizR600::OWNED, CfAllocExportDword1SwizR700::OWNED),
        ],
        CfOp::Memory(..) => [
            CfAllocExportDword0::OWNED,
            of(CfAllocExportDword1BufR600::OWNED, CfAllocExportDword1BufR700::OWNED),
        ],
    }
}

/// The bits of the first three words that fields own; of a data share, of the first two.
fn owned_by_fetch(op: &FetchOp, family: Family) -> Vec<u32> {
    let of = |r600, r700| if family == Family::R700 { r700 } else { r600 };
    match op {
        FetchOp::Vertex(_, format, _) => {
            let second = match format {
                VertexFormat::Gpr(_) => VtxDword1Gpr::OWNED,
                VertexFormat::Semantic(_) => VtxDword1Sem::OWNED,
            };
            vec![VtxDword0::OWNED, second, of(VtxDword2R600::OWNED, VtxDword2R700::OWNED)]
        }
        FetchOp::Texture(..) => {
            vec![of(TexDword0R600::OWNED, TexDword0R700::OWNED), TexDword1::OWNED, TexDword2::OWNED]
        }
        FetchOp::Memory(..) => vec![MemRdDword0::OWNED, MemRdDword1::OWNED, MemRdDword2::OWNED],
        FetchOp::DataShareWrite(_) => vec![MemDswDword0::OWNED, MemDswDword1::OWNED],
        FetchOp::DataShareRead(..) => vec![MemDsrDword0::OWNED, MemDsrDword1::OWNED],
    }
}
