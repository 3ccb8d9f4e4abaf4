//! Shader cases. A case has a program that a driver uploaded, the inputs of the program, and the expected results of
//! every lane.

use std::sync::Arc;

use reconverge_isa::{Image, Isa, Program};
use reconverge_workbench::array::{Array, Dtype};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::request::TextureValues;
use reconverge_workbench::request::{Common, MachineLaunch};
use reconverge_workbench::values::{NoFiles, Values};
use reconverge_workbench::{Outcome, Session, Target, round_trip};
use serde::Deserialize;

use crate::expect::{Expectation, Out};
use crate::hex::{Quad, Words};
use crate::modes::{Trouble, ended, in_modes, lanes_fit};
use crate::opened::OpenedCase;
use crate::{Settings, Verdict};

/// A shader case. The type parameters are the parts whose format depends on the machine.
#[derive(Clone, Debug, Deserialize)]
pub struct ShaderCase<Program, Place, Constants> {
    /// Unique name.
    pub name: String,
    /// The machine.
    pub arch: String,
    /// The chip.
    pub chip: Option<String>,
    /// Hexadecimal number that identified the chip to the driver: a PCI id (Radeon) or a chipset number (GeForce).
    pub id: Option<String>,
    /// The pipeline stage. The default is a fragment program.
    pub stage: Option<String>,
    /// Code and registers.
    pub program: Program,
    /// Number of independent fragments.
    pub lanes: usize,
    /// Interpolated values.
    #[serde(default = "Vec::new")]
    pub inputs: Vec<InputCase<Place>>,
    /// Textures.
    #[serde(default)]
    pub textures: Vec<TextureCase>,
    /// The interpretation of the four output words of a lane.
    #[serde(default)]
    pub out: Out,
    /// Sets of constants, and the expected results for each set. The code is the same in all runs.
    pub runs: Vec<Run<Constants>>,
}

/// An interpolated value.
#[derive(Clone, Debug, Deserialize)]
pub struct InputCase<Place> {
    /// Register or slot that holds the input's value when the program starts.
    #[serde(flatten)]
    pub place: Place,
    /// The value in each lane.
    pub lanes: Vec<Quad>,
}

/// One set of constants and the expected results.
#[derive(Clone, Debug, Deserialize)]
pub struct Run<Constants> {
    /// The constants.
    #[serde(rename = "const")]
    pub constants: Constants,
    /// The expected results.
    #[serde(flatten)]
    pub expectation: Expectation,
}

/// A texture with one level. The sampler of the texture uses nearest filtering, clamps to the edge, and has normalised
/// coordinates.
#[derive(Clone, Debug, Deserialize)]
pub struct TextureCase {
    /// Texture unit.
    pub unit: u32,
    /// Texels per row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
    /// Bits of the texels, row by row. The first row is at t = 0.
    pub texels: Words,
}

impl TextureCase {
    /// Returns the texture as part of a launch.
    ///
    /// # Errors
    /// Fails if the unit or the number of texels is invalid.
    pub(crate) fn values(&self) -> Result<TextureValues, String> {
        let TextureCase { unit, width, height, texels: Words(texels) } = self;
        let unit = u8::try_from(*unit).map_err(|_| format!("texture unit {unit}"))?;
        let size = vec![*width, *height];
        let texels = Array::from_words(Dtype::F32, vec![texels.len()], texels.iter().copied()).into();
        Ok(TextureValues::new(unit, size, texels))
    }
}

/// The parts of a shader case that depend on the machine.
pub trait Shader {
    /// One set of constants.
    type Constants;
    /// The machine.
    const ISA: Isa;
    /// The output that is compared with the expected results.
    const OUTPUT: &'static str;
    /// Default output of a lane. If a lane does not write an output, the check compares the default output with the
    /// expected result. If the default is `None`, the case fails instead.
    const UNWRITTEN: Option<[u32; 4]>;

    /// Returns the program.
    ///
    /// # Errors
    /// Fails if the program is invalid.
    fn program(&self) -> Result<Program, String>;

    /// Returns the launch of the machine, with the constants of `run`.
    ///
    /// # Errors
    /// Fails if the launch is invalid.
    fn launch(&self, run: &Run<Self::Constants>) -> Result<Arc<dyn MachineLaunch>, String>;

    /// Returns the chip.
    fn chip(&self) -> Option<&str>;

    /// Returns a texture of the launch.
    ///
    /// # Errors
    /// Fails if the texture is invalid.
    fn texture(&self, texture: &TextureCase) -> Result<TextureValues, String> {
        texture.values()
    }
}

/// Returns an array of numbers with four channels. `lanes` has the bits of the numbers.
pub(crate) fn quads(lanes: impl ExactSizeIterator<Item = [u32; 4]>) -> Values {
    Array::from_words(Dtype::F32, vec![lanes.len(), 4], lanes.flatten()).into()
}

/// Returns an array of words.
pub(crate) fn words(list: impl ExactSizeIterator<Item = u32>) -> Values {
    Array::from_words(Dtype::U32, vec![list.len()], list).into()
}

impl<P, Place, Constants> ShaderCase<P, Place, Constants>
where
    Self: Shader<Constants = Constants>,
{
    /// Converts the program to text and back, and runs the converted program. If the settings do not state a mode, the
    /// program runs in both modes.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let image = match self.image() {
            Ok(image) => image,
            Err(why) => return Verdict::Failed(why),
        };
        let target = match self.target() {
            Ok(target) => target,
            Err(why) => return Verdict::Failed(why),
        };
        in_modes(settings, &self.runs, |run, options| {
            let ran = self.prepare(&image, run)?.run(options);
            let outcome = ran.map_err(|error| Trouble::of(error, &target, &image.programs[0]))?;
            self.compare(run, &*outcome).map_err(Trouble::Wrong)?;
            settings.count(&outcome.shares());
            ended(&*outcome)
        })
    }

    fn target(&self) -> Result<Target, String> {
        Target::new(Self::ISA, self.chip()).map_err(|error| error.to_string())
    }

    /// Returns the program after its conversion to text and back.
    ///
    /// # Errors
    /// Fails if the program is invalid, or if the conversion to text and back changes the program.
    pub(crate) fn image(&self) -> Result<Image, String> {
        let program = self.program()?;
        round_trip(&self.target()?, &program)?;
        Ok(Image { programs: vec![program], ..Image::default() })
    }

    /// Returns the program, and one launch for each run of the case.
    ///
    /// # Errors
    /// Fails if the program or a launch is invalid.
    pub(crate) fn open(&self) -> Result<OpenedCase, String> {
        let program = self.program()?;
        let target = Target { stage: program.stage, ..self.target()? };
        let launches = self.runs.iter().map(|run| self.launch_file(run)).collect::<Result<_, _>>()?;
        Ok(OpenedCase::of(target, program, launches))
    }

    /// Returns the launch with the constants of a run.
    ///
    /// # Errors
    /// Fails if the launch is invalid.
    fn launch_file(&self, run: &Run<Constants>) -> Result<LaunchFile, String> {
        lanes_fit(self.lanes)?;
        let common = Common {
            chip: self.chip().map(str::to_owned),
            lanes: Some(self.lanes),
            texture: self.textures.iter().map(|texture| self.texture(texture)).collect::<Result<_, _>>()?,
            ..Common::default()
        };
        Ok(LaunchFile { isa: Self::ISA, common, machine: self.launch(run)? })
    }

    /// Returns a session that is ready to run the program with the constants of `run`.
    ///
    /// # Errors
    /// Fails if the launch is invalid.
    pub(crate) fn prepare(&self, image: &Image, run: &Run<Constants>) -> Result<Session, Trouble> {
        let launch = self.launch_file(run).map_err(Trouble::Wrong)?;
        Ok(launch.prepare(image, &image.programs[0], &NoFiles)?)
    }

    /// Compares the results of a run with the expected results.
    ///
    /// # Errors
    /// Returns a description of the first difference.
    pub(crate) fn compare(&self, run: &Run<Constants>, outcome: &dyn Outcome) -> Result<(), String> {
        let outputs = outcome.outputs();
        let output = |name: &str| outputs.iter().find(|(known, _)| known == name).map(|(_, array)| array);
        let killed = output("killed").map(|array| &array.bytes[..]);
        let colours: Option<Vec<u32>> = output(Self::OUTPUT).map(|array| array.words().collect());
        let lane = |lane: usize| {
            let killed = killed.is_some_and(|killed| killed[lane] != 0);
            let colour = || match &colours {
                Some(all) => Ok(all.as_chunks::<4>().0[lane]),
                None => Self::UNWRITTEN.ok_or_else(|| format!("no value was written to {}", Self::OUTPUT)),
            };
            (!killed).then(colour).transpose()
        };
        let lanes = (0..self.lanes).map(lane).collect::<Result<Vec<_>, String>>()?;
        run.expectation.compare(self.out, &lanes)
    }
}
