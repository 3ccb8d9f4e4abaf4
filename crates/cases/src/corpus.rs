//! Shader cases: a program as a driver uploaded it, its inputs, and what every lane must give.

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

/// A case; what differs between machines is in the type parameters.
#[derive(Clone, Debug, Deserialize)]
pub struct ShaderCase<Program, Place, Constants> {
    /// Unique name.
    pub name: String,
    /// The machine.
    pub arch: String,
    /// The chip.
    pub chip: Option<String>,
    /// The number that was presented to the driver, hexadecimal.
    pub id: Option<String>,
    /// The step of the pipeline; a fragment program when absent.
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
    /// How to read the four output words.
    #[serde(default)]
    pub out: Out,
    /// Several sets of constants for the one code.
    pub runs: Vec<Run<Constants>>,
}

/// An interpolated value.
#[derive(Clone, Debug, Deserialize)]
pub struct InputCase<Place> {
    /// Where the program finds it.
    #[serde(flatten)]
    pub place: Place,
    /// The value by lane.
    pub lanes: Vec<Quad>,
}

/// One set of constants and what it must give.
#[derive(Clone, Debug, Deserialize)]
pub struct Run<Constants> {
    /// The constants.
    #[serde(rename = "const")]
    pub constants: Constants,
    /// What must come out.
    #[serde(flatten)]
    pub expectation: Expectation,
}

/// A texture: nearest filtering, clamp to edge, normalised coordinates, one level.
#[derive(Clone, Debug, Deserialize)]
pub struct TextureCase {
    /// Texture unit.
    pub unit: u32,
    /// Texels a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Bits of the texels, row by row from t = 0.
    pub texels: Words,
}

impl TextureCase {
    /// The texture of this unit.
    ///
    /// # Errors
    /// A unit or a number of texels that cannot be.
    pub(crate) fn values(&self) -> Result<TextureValues, String> {
        let TextureCase { unit, width, height, texels: Words(texels) } = self;
        let unit = u8::try_from(*unit).map_err(|_| format!("texture unit {unit}"))?;
        let size = vec![*width, *height];
        let texels = Array::from_words(Dtype::F32, vec![texels.len()], texels.iter().copied()).into();
        Ok(TextureValues::new(unit, size, texels))
    }
}

/// What differs between the machines' cases.
pub trait Shader {
    /// One set of constants.
    type Constants;
    /// The machine.
    const ISA: Isa;
    /// The output that is compared.
    const OUTPUT: &'static str;
    /// What lanes leave in it where it was not written; `None` where that is a failure.
    const UNWRITTEN: Option<[u32; 4]>;

    /// The program.
    ///
    /// # Errors
    /// A program that cannot be.
    fn program(&self) -> Result<Program, String>;

    /// The machine's part of the launch with these constants.
    ///
    /// # Errors
    /// A launch that cannot be.
    fn launch(&self, run: &Run<Self::Constants>) -> Result<Arc<dyn MachineLaunch>, String>;

    /// The chip.
    fn chip(&self) -> Option<&str>;

    /// A texture of the launch.
    ///
    /// # Errors
    /// A texture that cannot be.
    fn texture(&self, texture: &TextureCase) -> Result<TextureValues, String> {
        texture.values()
    }
}

/// Numbers of four channels, as bits.
pub(crate) fn quads(lanes: impl ExactSizeIterator<Item = [u32; 4]>) -> Values {
    Array::from_words(Dtype::F32, vec![lanes.len(), 4], lanes.flatten()).into()
}

/// Words.
pub(crate) fn words(list: impl ExactSizeIterator<Item = u32>) -> Values {
    Array::from_words(Dtype::U32, vec![list.len()], list).into()
}

impl<P, Place, Constants> ShaderCase<P, Place, Constants>
where
    Self: Shader<Constants = Constants>,
{
    /// Round-trips the program and runs it, in both modes unless one is chosen.
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

    /// The program, after its round trip.
    ///
    /// # Errors
    /// A program that cannot be, or that does not survive the round trip.
    pub(crate) fn image(&self) -> Result<Image, String> {
        let program = self.program()?;
        round_trip(&self.target()?, &program)?;
        Ok(Image { programs: vec![program], ..Image::default() })
    }

    /// The program and one launch a run.
    ///
    /// # Errors
    /// A program or a launch that cannot be.
    pub(crate) fn open(&self) -> Result<OpenedCase, String> {
        let program = self.program()?;
        let target = Target { stage: program.stage, ..self.target()? };
        let launches = self.runs.iter().map(|run| self.launch_file(run)).collect::<Result<_, _>>()?;
        Ok(OpenedCase::of(target, program, launches))
    }

    /// The launch with the constants of a run.
    ///
    /// # Errors
    /// A launch that cannot be.
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

    /// The launch with the constants of a run, ready.
    ///
    /// # Errors
    /// A launch that cannot be.
    pub(crate) fn prepare(&self, image: &Image, run: &Run<Constants>) -> Result<Session, Trouble> {
        let launch = self.launch_file(run).map_err(Trouble::Wrong)?;
        Ok(launch.prepare(image, &image.programs[0], &NoFiles)?)
    }

    /// Compares what a run leaves with what it must leave.
    ///
    /// # Errors
    /// The first difference, in words.
    pub(crate) fn compare(&self, run: &Run<Constants>, outcome: &dyn Outcome) -> Result<(), String> {
        let outputs = outcome.outputs();
        let output = |name: &str| outputs.iter().find(|(known, _)| known == name).map(|(_, array)| array);
        let killed = output("killed").map(|array| &array.bytes[..]);
        let colours: Option<Vec<u32>> = output(Self::OUTPUT).map(|array| array.words().collect());
        let lane = |lane: usize| {
            let killed = killed.is_some_and(|killed| killed[lane] != 0);
            let colour = || match &colours {
                Some(all) => Ok(all.as_chunks::<4>().0[lane]),
                None => Self::UNWRITTEN.ok_or_else(|| format!("nothing was written to {}", Self::OUTPUT)),
            };
            (!killed).then(colour).transpose()
        };
        let lanes = (0..self.lanes).map(lane).collect::<Result<Vec<_>, String>>()?;
        run.expectation.compare(self.out, &lanes)
    }
}
