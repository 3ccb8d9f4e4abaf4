//! Names that traces show for registers and for the memory that instructions access.

use litemap::LiteMap;
use reconverge_isa::{Isa, Program};
use reconverge_trace::RegisterNames;

use crate::session::RegisterClass;
use crate::target::{Target, TargetError};

/// Names of the memory that an instruction accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accessed {
    /// Names of the memory that the instruction reads. If the list has one name, the name applies to all loads.
    /// Otherwise, the list has one name for each load of a single lane, in the order of the loads.
    pub loads: Vec<String>,
    /// Name of the memory that the instruction writes.
    pub stores: Option<String>,
}

/// Returns the names of the registers, for the header of a trace.
pub fn registers(classes: &[RegisterClass]) -> Vec<RegisterNames> {
    let names = |class: &RegisterClass| RegisterNames {
        name: class.name.to_owned(),
        first: class.first,
        count: class.count as u32,
        channels: class.channels.to_owned(),
    };
    classes.iter().map(names).collect()
}

/// For each instruction of a program, returns the names of the memory that the instruction accesses. The address of the
/// instruction is the key.
///
/// # Errors
/// Returns an error if the program cannot be loaded.
pub fn accessed(target: &Target, program: &Program) -> Result<LiteMap<u32, Accessed>, TargetError> {
    let uses = target.machine().uses(target, program)?;
    let mut found: LiteMap<u32, Accessed> = LiteMap::new();
    for (pc, operations) in uses.iter() {
        let mut accessed = Accessed::default();
        for operation in operations {
            match &operation.operands[..] {
                [] => accessed.loads.extend(operation.loads.map(|space| space.to_string())),
                several => accessed.loads.extend(several.iter().map(ToString::to_string)),
            }
            accessed.stores = accessed.stores.or(operation.stores.map(|space| space.to_string()));
        }
        // In programs of the CTM model, the instruction OUT stores to memory. `uses` does not include this store.
        if target.isa == Isa::R500 && accessed.stores.is_none() {
            accessed.stores = Some("memory".to_owned());
        }
        found.insert(*pc, accessed);
    }
    Ok(found)
}
