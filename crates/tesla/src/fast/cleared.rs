//! The registers that the start of a warp sets to zero, if an earlier warp of the program has used its memory.
//!
//! Registers that no instruction writes are zero already. Registers that all lanes write before any lane reads them
//! have no value from the start: those that the instructions before the first branch or join write.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inst::{End, Op};
use crate::uses::{Place, accesses};

/// The registers to clear for a warp.
#[derive(Clone, Debug)]
pub(super) struct Cleared {
    /// For a warp of which all lanes run, and for others; `None` for all registers.
    registers: Option<[Vec<u8>; 2]>,
}

impl Cleared {
    /// Finds the registers of a program.
    pub(super) fn of(context: &Context) -> Cleared {
        let Some(reached) = context.code.reached() else { return Cleared { registers: None } };
        let writes = reached.iter().flat_map(|inst| accesses(inst, context.stage).writes);
        let written: BTreeSet<u8> = writes.filter_map(register).collect();
        let fresh = written_first(context);
        let whole = written.difference(&fresh).copied().collect();
        Cleared { registers: Some([whole, written.into_iter().collect()]) }
    }

    /// Returns the registers for a warp of which all lanes run (`whole`) or only some; `None` for all.
    pub(super) fn registers(&self, whole: bool) -> Option<&[u8]> {
        let [of_whole, of_others] = self.registers.as_ref()?;
        Some(if whole { of_whole } else { of_others })
    }
}

/// Returns the registers that the instructions before the first branch or join write as a whole in all lanes, and that
/// no instruction reads before.
fn written_first(context: &Context) -> BTreeSet<u8> {
    let (mut fresh, mut read) = (BTreeSet::new(), BTreeSet::new());
    let mut pc = context.code.base();
    while let Ok(inst) = context.code.at(pc) {
        if inst.end == End::Join || matches!(inst.op, Op::Control(_)) {
            break;
        }
        let of = accesses(inst, context.stage);
        read.extend(of.reads.iter().filter_map(|(place, ..)| register(*place)));
        for place in of.writes {
            match place {
                Place::R(register) if !of.conditional && !read.contains(&register) => {
                    fresh.insert(register);
                }
                // The other half, or the other lanes, keep their value.
                _ => read.extend(register(place)),
            }
        }
        if inst.end == End::Exit {
            break;
        }
        pc += inst.form.bytes();
    }
    fresh
}

/// Returns the register of a location.
fn register(place: Place) -> Option<u8> {
    match place {
        Place::R(register) => Some(register),
        Place::Half(half) => Some(half / 2),
        Place::A(_) | Place::C(_) | Place::O(_) | Place::IndexedO => None,
    }
}
