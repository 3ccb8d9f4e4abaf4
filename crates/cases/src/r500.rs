//! R500 shader cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::{Isa, Program};
use reconverge_workbench::r500::Launch;
use reconverge_workbench::r500::launch::{ConstantValues, InputValues};
use reconverge_workbench::request::MachineLaunch;
use serde::Deserialize;

use crate::corpus::{Run, Shader, ShaderCase, quads};
use crate::hex::{Quad, Word, Words};

/// A case with an R500 fragment program.
pub type R500Case = ShaderCase<Code, Place, Constants>;

/// Code and registers.
#[derive(Clone, Debug, Deserialize)]
pub struct Code {
    code: Vec<Words>,
    #[serde(default)]
    code_base: u32,
    #[serde(default)]
    regs: BTreeMap<String, Word>,
}

/// Number of the temporary that holds an input.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    temp: u8,
}

/// Float constants, indexed by their number.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    r#const: BTreeMap<u8, Quad>,
}

impl Shader for R500Case {
    type Constants = Constants;
    const ISA: Isa = Isa::R500;
    const OUTPUT: &'static str = "color0";
    const UNWRITTEN: Option<[u32; 4]> = Some([0; 4]);

    fn chip(&self) -> Option<&str> {
        self.chip.as_deref()
    }

    fn program(&self) -> Result<Program, String> {
        let Code { code, code_base, regs } = &self.program;
        Ok(Program {
            words: code.iter().flat_map(|record| record.0.iter().copied()).collect(),
            base: *code_base,
            state: regs.iter().map(|(name, value)| (name.clone(), value.0)).collect(),
            ..Program::default()
        })
    }

    fn launch(&self, run: &Run<Constants>) -> Result<Arc<dyn MachineLaunch>, String> {
        let input = self.inputs.iter();
        let input = input.map(|input| InputValues {
            temp: input.place.temp,
            values: quads(input.lanes.iter().map(|quad| quad.0)),
        });
        let constant = run.constants.r#const.iter();
        let constant = constant
            .map(|(number, quad)| ConstantValues { number: *number, values: quads([quad.0].into_iter()) });
        Ok(Arc::new(Launch { input: input.collect(), constant: constant.collect(), ..Launch::default() }))
    }
}
