//! Tesla shader cases.

use std::collections::BTreeMap;

use reconverge_isa::program::Stage;
use reconverge_isa::{Isa, Program};
use reconverge_simt::Options;
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Fragment, Launch, MOST_LOCAL, Outcome, RunError, Setup, Varying};
use reconverge_tesla::run::run;
use reconverge_workbench::{Target, round_trip};
use serde::Deserialize;

use crate::corpus::{Run, ShaderCase};
use crate::hex::{Word, Words};
use crate::modes::{Trouble, in_modes};
use crate::{Settings, Verdict};

/// A fragment program that Mesa compiled.
pub type TeslaCase = ShaderCase<Code, Place, Constants>;

/// Code and registers.
#[derive(Clone, Debug, Deserialize)]
pub struct Code {
    code: Words,
    regs: BTreeMap<String, Word>,
}

/// Four interpolant slots.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    slots: Vec<u16>,
}

/// Constant segments: runs of a first word and words.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    cb: BTreeMap<usize, Vec<(usize, Words)>>,
}

impl TeslaCase {
    /// Round-trips the program and runs it, in both modes unless one is chosen.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let program = match self.program() {
            Ok(program) => program,
            Err(why) => return Verdict::Failed(why),
        };
        let target = Target::new(Isa::Tesla, self.chip.as_deref());
        if let Err(why) = round_trip(&target, &program) {
            return Verdict::Failed(why);
        }
        let (engine, level) = (settings.how.engine(), settings.how.level);
        in_modes(settings, &self.runs, |case_run, mode| {
            let options = Options { mode, engine, level, ..Options::default() };
            let launch = Launch::Fragment(self.fragment(case_run)?);
            let outcome = run(launch, &program, &options).map_err(|error| match error {
                RunError::Trap(trap) => Trouble::Trap(trap.to_string()),
                RunError::Launch(error) => Trouble::Wrong(error.to_string()),
                RunError::Differ(difference) => Trouble::Wrong(difference.to_string()),
            })?;
            self.compare(case_run, &outcome).map_err(Trouble::Wrong)
        })
    }

    pub(crate) fn program(&self) -> Result<Program, String> {
        let mut program = Program::from_words(self.program.code.0.clone());
        program.base = self.register("FP_START_ID").unwrap_or(0);
        program.stage = Some(match self.stage.as_deref() {
            None => Stage::Fragment,
            Some(name) => name.parse().map_err(|unknown| format!("{unknown}"))?,
        });
        Ok(program)
    }

    fn register(&self, name: &str) -> Option<u32> {
        self.program.regs.get(name).map(|word| word.0)
    }

    pub(crate) fn compare(&self, case_run: &Run<Constants>, outcome: &Outcome) -> Result<(), String> {
        let colour = |registers: &[u32]| {
            std::array::from_fn(|channel| registers.get(channel).copied().unwrap_or_default())
        };
        let lanes: Vec<Option<[u32; 4]>> =
            outcome.lanes.iter().map(|lane| (!lane.dead).then(|| colour(&lane.registers))).collect();
        case_run.expectation.compare(self.out, &lanes)
    }

    fn chip(&self) -> Result<Chip, Trouble> {
        // The number that was presented to the driver tells more than the name of the group.
        let number =
            self.id.as_deref().and_then(|id| u32::from_str_radix(id, 16).ok()).and_then(Chip::from_id);
        let name = self.chip.as_deref().unwrap_or("G80");
        number.or_else(|| Chip::from_name(name)).ok_or_else(|| Trouble::Wrong(format!("unknown chip {name}")))
    }

    pub(crate) fn fragment(&self, case_run: &Run<Constants>) -> Result<Fragment, Trouble> {
        crate::modes::lanes_fit(self.lanes)?;
        let mut setup = Setup::new(self.chip()?);
        if let Some(registers) = self.register("FP_REG_ALLOC_TEMP") {
            setup.registers = registers;
        }
        setup.code_base = self.register("FP_START_ID").unwrap_or(0);
        setup.local_bytes = MOST_LOCAL;
        for (bank, runs) in &case_run.constants.cb {
            for (first, Words(words)) in runs {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let offset = first.checked_mul(4).unwrap_or(usize::MAX);
                if !setup.constants.place(*bank, offset, &bytes) {
                    return Err(Trouble::Wrong(format!("constants c{bank}[4 * {first}]")));
                }
            }
        }
        for texture in &self.textures {
            let (image, sampler) = texture.image().map_err(|error| Trouble::Wrong(error.to_string()))?;
            let unit = u8::try_from(texture.unit);
            let unit = unit.map_err(|_| Trouble::Wrong(format!("texture unit {}", texture.unit)))?;
            setup.textures.bind(unit, image.into(), sampler);
        }
        let mut fragment = Fragment::new(setup, self.lanes);
        for input in &self.inputs {
            for (component, slot) in input.place.slots.iter().enumerate() {
                let values = input.lanes.iter().map(|quad| quad.0.get(component).copied().unwrap_or(0));
                fragment.varyings.insert(*slot, Varying::Lanes(values.collect()));
            }
        }
        Ok(fragment)
    }
}
