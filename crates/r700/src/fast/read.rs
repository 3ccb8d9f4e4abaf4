//! Determines the registers whose initial values a program may read.
//!
//! All lanes run every instruction that comes before the first change of the execute mask. If such an instruction
//! writes a register and no earlier instruction reads the register, the initial value of the register does not matter.

use std::collections::BTreeSet;
use std::sync::Arc;

use reconverge_simt::uses::{Slot, UsesAt};

use super::lower::{Lowered, Work};
use super::straight::{is_plain, plain_groups};
use crate::code::Code;
use crate::launch::Environment;
use crate::uses::{GLOBAL, R, uses};
use crate::wave::ReadRows;
use crate::words::CfInst;

/// Returns the rows that a program or its fetch program may read before either program has written the rows.
pub(super) fn read_at_start(
    lowered: &Lowered,
    (code, fetch_code): (&Code, Option<&Arc<Code>>),
    environment: &Environment,
) -> ReadRows {
    let program = uses(code);
    let fetch_program = fetch_code.map(|code| uses(code)).unwrap_or_default();
    let operations = || [&program, &fetch_program].into_iter().flat_map(UsesAt::values).flatten();
    let mut all: BTreeSet<usize> = BTreeSet::new();
    for read in operations().flat_map(|uses| &uses.reads) {
        all.extend(rows(read.slot, environment));
    }
    let fresh = written_first(lowered, &program, environment);
    ReadRows { whole: all.difference(&fresh).copied().collect(), all: all.into_iter().collect() }
}

/// Returns the rows that a read of `slot` may access.
fn rows(slot: Slot, environment: &Environment) -> Vec<usize> {
    // A read of a register that does not exist returns R0. A read of a global register that does not exist also returns
    // R0.
    match slot
        .number
        .filter(|_| slot.file == R)
        .map(|number| environment.register_row((number / 4) as i32, number as usize % 4))
    {
        Some(Some(row)) => vec![row],
        Some(None) => (0..4).collect(),
        None if slot.file == GLOBAL => (0..4).collect(),
        // An index selects the register, so the read may access any register.
        None if slot.file == R => (0..environment.register_rows()).collect(),
        None => Vec::new(),
    }
}

/// Returns the rows that an instruction writes in all lanes of a whole wavefront before any lane may read the rows.
fn written_first(lowered: &Lowered, uses: &UsesAt, environment: &Environment) -> BTreeSet<usize> {
    let (mut fresh, mut read) = (BTreeSet::new(), BTreeSet::new());
    let (_, nodes) = lowered.program(false);
    for (addr, node) in (0..).zip(nodes).skip(environment.start as usize) {
        let addresses: Vec<u32> = match &node.work {
            Work::Alu(clause) => match plain_groups(clause) {
                Some(run) => lowered.addresses[run.first as usize..][..run.count as usize].to_vec(),
                None => break,
            },
            Work::Fetch(clause) if is_plain(&clause.control) => {
                let fetches = &lowered.fetches[clause.first as usize..][..clause.count as usize];
                fetches.iter().map(|fetch| fetch.addr).collect()
            }
            Work::Export(exports) if is_plain(&exports.control) => vec![addr],
            Work::Flow(CfInst::NOP, control) if is_plain(control) => Vec::new(),
            _ => break,
        };
        for operations in addresses.iter().filter_map(|addr| uses.get(addr)) {
            read.extend(
                operations.iter().flat_map(|of| &of.reads).flat_map(|read| rows(read.slot, environment)),
            );
            let whole = operations.iter().filter(|of| !of.conditional).flat_map(|of| &of.writes);
            let written = whole.filter(|slot| slot.file == R).filter_map(|slot| slot.number);
            let written = written
                .filter_map(|number| environment.register_row((number / 4) as i32, number as usize % 4));
            fresh.extend(written.filter(|row| !read.contains(row)));
        }
        if node.end {
            break;
        }
    }
    fresh
}
