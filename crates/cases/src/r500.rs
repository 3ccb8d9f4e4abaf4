//! R500 shader cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use reconverge_isa::{Isa, Program};
use reconverge_r500::launch::{Hardware, Input, Launch, RunError, group_width};
use reconverge_r500::outputs::Outcome;
use reconverge_r500::run::run;
use reconverge_r500::setup::Setup;
use reconverge_r500::texture::Texture;
use reconverge_simt::{Mode, Options};
use reconverge_workbench::request::How;
use reconverge_workbench::{Target, round_trip};
use serde::Deserialize;

use crate::corpus::{Run, ShaderCase, TextureCase};
use crate::hex::{Quad, Word, Words};
use crate::modes::{Trouble, in_modes};
use crate::{Settings, Verdict};

/// A case.
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

/// A temporary.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    temp: u8,
}

/// Float constants by number.
#[derive(Clone, Debug, Deserialize)]
pub struct Constants {
    #[serde(default)]
    r#const: BTreeMap<u8, Quad>,
}

impl Code {
    pub(crate) fn program(&self) -> Program {
        Program {
            words: self.code.iter().flat_map(|record| record.0.iter().copied()).collect(),
            base: self.code_base,
            state: self.regs.iter().map(|(name, value)| (name.clone(), value.0)).collect(),
            ..Program::default()
        }
    }
}

impl R500Case {
    /// Round-trips the program and runs it, in both modes unless one is chosen.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let program = self.program.program();
        let target = Target::new(Isa::R500, self.chip.as_deref());
        if let Err(why) = round_trip(&target, &program) {
            return Verdict::Failed(why);
        }
        let setup = match Setup::new(&program) {
            Ok(setup) => Arc::new(setup),
            Err(error) => return Verdict::Failed(error.to_string()),
        };
        in_modes(settings, &self.runs, |case_run, mode| {
            let outcome = run(&setup, &self.launch(case_run)?, &options(mode, settings.how))?;
            self.compare(case_run, &outcome).map_err(Trouble::Wrong)?;
            match outcome.finding {
                None => Ok(()),
                Some(finding) => Err(Trouble::Finding(finding.to_string())),
            }
        })
    }

    pub(crate) fn compare(&self, case_run: &Run<Constants>, outcome: &Outcome) -> Result<(), String> {
        let lanes: Vec<Option<[u32; 4]>> =
            outcome.lanes().map(|lane| (!lane.killed).then_some(lane.color[0])).collect();
        case_run.expectation.compare(self.out, &lanes)
    }

    pub(crate) fn launch(&self, case_run: &Run<Constants>) -> Result<Launch, Trouble> {
        crate::modes::lanes_fit(self.lanes)?;
        let textures = self.textures.iter().map(texture).collect::<Result<_, _>>()?;
        Ok(Launch {
            lanes: self.lanes,
            inputs: self
                .inputs
                .iter()
                .map(|input| Input {
                    temp: input.place.temp,
                    values: input.lanes.iter().map(|quad| quad.0).collect(),
                })
                .collect(),
            constants: case_run.constants.r#const.iter().map(|(number, quad)| (*number, quad.0)).collect(),
            textures,
            hardware: Hardware { group_width: group_width(self.chip.as_deref()), ..Hardware::default() },
        })
    }
}

pub(crate) fn options(mode: Mode, how: How) -> Options {
    Options { mode, engine: how.engine(), level: how.level, ..Options::default() }
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Trouble {
        match error {
            RunError::Trap(_) => Trouble::Trap(error.to_string()),
            RunError::Launch(_) | RunError::Differ(_) => Trouble::Wrong(error.to_string()),
        }
    }
}

fn texture(case: &TextureCase) -> Result<(u8, Texture), Trouble> {
    let unit = u8::try_from(case.unit).map_err(|_| Trouble::Wrong(format!("texture unit {}", case.unit)))?;
    let (image, sampler) =
        case.image().map_err(|error| Trouble::Wrong(format!("texture {unit}: {error}")))?;
    Ok((unit, Texture { image: Arc::new(image), sampler }))
}
