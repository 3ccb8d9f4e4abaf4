//! Classifies R700 instructions for counting. The instructions are control-flow instructions, ALU groups and fetches.

use litemap::LiteMap;
use reconverge_isa::Program;
use reconverge_isa::sets::NumberSet;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::{CfOp, Code, CodeOptions, Fetch, FetchOp};
use reconverge_r700::control::{CfWork, cf};

use crate::stats::{Class, Conventions};
use crate::target::TargetError;

pub(super) fn conventions(chip: Chip, program: &Program) -> Result<Conventions, TargetError> {
    let code = Code::new(&program.words, program.base, CodeOptions::new(chip));
    let fetched = |fetch: &Fetch| match fetch.op {
        FetchOp::Texture(..) => Class::Texture,
        FetchOp::Vertex(..) | FetchOp::Memory(..) => Class::Memory,
        FetchOp::DataShareWrite(..) | FetchOp::DataShareRead(..) => Class::Memory,
    };
    let places: NumberSet = code.instructions().flat_map(|(pc, word)| code.places(pc, &word.op)).collect();
    let mut classes = places.map(|_| Class::Other);
    for (pc, word) in code.instructions() {
        let class = match &word.op {
            CfOp::Alu(clause) => {
                for group in code.groups(clause) {
                    classes[&group.addr] = Class::Alu;
                }
                Class::Flow
            }
            CfOp::Fetch(.., fetches) => {
                for fetch in fetches {
                    classes[&fetch.addr] = fetched(fetch);
                }
                Class::Flow
            }
            CfOp::Export(..) => Class::Output,
            CfOp::Memory(..) => Class::Memory,
            CfOp::Control(inst, _) => match cf(*inst).work {
                CfWork::Emit { .. } => Class::Output,
                CfWork::WaitAck => Class::Memory,
                CfWork::Flow(_) | CfWork::Fetch { .. } => Class::Flow,
            },
        };
        classes[&pc] = class;
    }
    Ok(Conventions {
        classes,
        accesses: LiteMap::new(),
        banked: LiteMap::new(),
        coalescing: Err("the documents of R700 do not define coalescing of memory accesses"),
    })
}
