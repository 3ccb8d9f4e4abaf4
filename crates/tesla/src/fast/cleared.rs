//! The registers that the start of a warp sets to zero. The memory of these registers may still contain values of a
//! warp that ran earlier.
//!
//! If no instruction writes a register, the register is already zero. If all lanes write a register before any lane
//! reads it, the start of a warp does not clear this register. The search for such registers covers the instructions
//! before the first branch or join.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inst::{End, Op};
use crate::uses::{Place, accesses};

/// The registers to clear for a warp.
#[derive(Clone, Debug)]
pub(super) struct Cleared {
    /// The registers to clear. The first list is for a warp in which all lanes run, and the second list is for any
    /// other warp. `None` means all registers.
    registers: Option<[Vec<u8>; 2]>,
}

impl Cleared {
    /// Finds the registers to clear for a program.
    pub(super) fn of(context: &Context) -> Cleared {
        let Some(reached) = context.code.reached() else { return Cleared { registers: None } };
        let writes = reached.iter().flat_map(|inst| accesses(inst, context.stage).writes);
        let written: BTreeSet<u8> = writes.filter_map(register).collect();
        let fresh = written_first(context);
        let whole = written.difference(&fresh).copied().collect();
        Cleared { registers: Some([whole, written.into_iter().collect()]) }
    }

    /// Returns the registers to clear, or `None` for all registers. `whole` means that all lanes of the warp run.
    pub(super) fn registers(&self, whole: bool) -> Option<&[u8]> {
        let [of_whole, of_others] = self.registers.as_ref()?;
        Some(if whole { of_whole } else { of_others })
    }
}

/// Returns the registers that all lanes write before any lane reads the register. The search covers only instructions
/// before the first branch or join. Only writes of whole registers count.
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
                // After this write, the register keeps a part of its value: the other half, or the value in some lanes.
                // So the register counts as read.
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

/// Returns the general register that contains a location, if any.
fn register(place: Place) -> Option<u8> {
    match place {
        Place::R(register) => Some(register),
        Place::Half(half) => Some(half / 2),
        Place::A(_) | Place::C(_) | Place::O(_) | Place::IndexedO => None,
    }
}
