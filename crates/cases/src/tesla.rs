//! Tesla shader cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::request::MachineLaunch;
use reconverge_workbench::target::Model;
use reconverge_workbench::tesla::Launch;
use reconverge_workbench::tesla::launch::{ConstantValues, InputValues, MOST_LOCAL};
use serde::Deserialize;

use crate::corpus::{Run, Shader, ShaderCase, words};
use crate::hex::{Word, Words};

/// A fragment program that Mesa compiled.
pub type TeslaCase = ShaderCase<Code, Place, Constants>;

/// Code and registers.
#[derive(Clone, Debug, Deserialize)]
pub struct Code {
    code: Words,
    regs: BTreeMap<String, Word>,
}

/// Numbers of the four interpolant slots that hold an input.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    slots: Vec<u16>,
}

/// Contents of the constant segments. Each entry of a list has an index, and the words that start at this index.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    cb: BTreeMap<u32, Vec<(u32, Words)>>,
}

impl TeslaCase {
    fn register(&self, name: &str) -> Option<u32> {
        self.program.regs.get(name).map(|word| word.0)
    }
}

impl Shader for TeslaCase {
    type Constants = Constants;
    const ISA: Isa = Isa::Tesla;
    const OUTPUT: &'static str = "color0";
    const UNWRITTEN: Option<[u32; 4]> = None;

    /// Returns the case's `id` if the `id` names a known chip. Otherwise, returns `chip`, which states only a chip
    /// family.
    fn chip(&self) -> Option<&str> {
        let known = |id: &&str| Model::named(Isa::Tesla, id).is_some();
        self.id.as_deref().filter(known).or(self.chip.as_deref())
    }

    fn program(&self) -> Result<Program, String> {
        let mut program = Program::from_words(self.program.code.0.clone());
        program.base = self.register("FP_START_ID").unwrap_or(0);
        program.stage = Some(match self.stage.as_deref() {
            None => Stage::Fragment,
            Some(name) => name.parse().map_err(|unknown| format!("{unknown}"))?,
        });
        Ok(program)
    }

    fn launch(&self, run: &Run<Constants>) -> Result<Arc<dyn MachineLaunch>, String> {
        let mut constant = Vec::new();
        for (bank, runs) in &run.constants.cb {
            for (first, Words(list)) in runs {
                let offset = first.checked_mul(4).ok_or_else(|| format!("constants c{bank}[4 * {first}]"))?;
                constant.push(ConstantValues { bank: *bank, offset, values: words(list.iter().copied()) });
            }
        }
        let mut input = Vec::new();
        for case in &self.inputs {
            for (component, slot) in case.place.slots.iter().enumerate() {
                let values = case.lanes.iter().map(|quad| quad.0.get(component).copied().unwrap_or(0));
                let values = Array::from_words(Dtype::U32, vec![case.lanes.len()], values);
                input.push(InputValues {
                    word: *slot,
                    values: Some(values.into()),
                    ..InputValues::default()
                });
            }
        }
        Ok(Arc::new(Launch {
            registers: self.register("FP_REG_ALLOC_TEMP"),
            local_bytes: Some(MOST_LOCAL),
            constant,
            input,
            ..Launch::default()
        }))
    }
}
