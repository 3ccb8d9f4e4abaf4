//! Classifies R500 instructions for counting. The first word of an instruction (US_CMN_INST) states its type.

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_r500::pvs::{self, words::DstType};
use reconverge_r500::setup::Setup;
use reconverge_r500::words::InstType;

use crate::stats::{Class, Conventions};
use crate::target::TargetError;

pub(super) fn conventions(program: &Program) -> Result<Conventions, TargetError> {
    let setup = Setup::new(program).map_err(|error| TargetError::Program(error.to_string()))?;
    let class = |kind| match kind {
        InstType::ALU => Class::Alu,
        InstType::OUT => Class::Output,
        InstType::FC => Class::Flow,
        InstType::TEX => Class::Texture,
    };
    let classes = setup.slots().filter_map(|(slot, loaded)| {
        let inst = loaded.inst.as_ref().ok()?;
        Some((slot.into(), class(inst.common.r#type)))
    });
    Ok(Conventions {
        classes: LiteMap::from_sorted_store_unchecked(classes.collect()),
        accesses: Default::default(),
        banked: Default::default(),
        coalescing: Err("the documents of R500 do not define coalescing of memory accesses"),
    })
}

/// Classifies the instructions of a vertex program. The classes are output, ALU and other.
pub(super) fn of_vertex(program: &Program) -> Result<Conventions, TargetError> {
    let setup = pvs::setup::Setup::new(program).map_err(|error| TargetError::Program(error.to_string()))?;
    let classes = setup.slots().filter_map(|(slot, loaded)| {
        let inst = loaded.inst.as_ref().ok()?;
        let class = match inst.dst.file {
            DstType::OUT | DstType::OUT_REPL_X if inst.dst.mask != 0 => Class::Output,
            _ if inst.operation().operands == [false; 3] && !inst.operation().sets_predicate() => {
                Class::Other
            }
            _ => Class::Alu,
        };
        Some((slot.into(), class))
    });
    Ok(Conventions {
        classes: LiteMap::from_sorted_store_unchecked(classes.collect()),
        accesses: Default::default(),
        banked: Default::default(),
        coalescing: Err("the vertex unit of R500 has no memory accesses"),
    })
}
