//! Shader cases: a program as a driver uploaded it, its inputs, and what every lane must give.

use reconverge_simt::texture::{Image, ImageError, Sampler, Wrap};
use serde::Deserialize;

use crate::expect::{Expectation, Out};
use crate::hex::{Quad, Words};
use crate::{Case, CaseKind, ReadError, json_lines, r500, r700, tesla};

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
    /// The same code with several sets of constants.
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
    /// The image, and the one sampler that all cases use.
    ///
    /// # Errors
    /// Texels that do not fit the size.
    pub fn image(&self) -> Result<(Image, Sampler), ImageError> {
        let texels = self.texels.0.as_chunks::<4>().0.to_vec();
        let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], ..Sampler::default() };
        Ok((Image::flat(self.width, self.height, texels)?, sampler))
    }
}

#[derive(Deserialize)]
struct Header {
    name: String,
    arch: String,
}

/// The cases of a JSON Lines file.
///
/// # Errors
/// A line that is not a case.
pub fn read(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    let headers: Vec<Header> = json_lines(path, bytes).collect::<Result<_, _>>()?;
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    headers
        .into_iter()
        .zip(lines)
        .map(|(header, (index, line))| {
            let bad = |error: serde_json::Error| ReadError::Line {
                file: path.to_owned(),
                line: index + 1,
                why: format!("{}: {error}", header.name),
            };
            let kind = match header.arch.as_str() {
                "r500" => {
                    CaseKind::R500(Box::new(serde_json::from_slice::<r500::R500Case>(line).map_err(bad)?))
                }
                "r700" => {
                    CaseKind::R700(Box::new(serde_json::from_slice::<r700::R700Case>(line).map_err(bad)?))
                }
                "tesla" => {
                    CaseKind::Tesla(Box::new(serde_json::from_slice::<tesla::TeslaCase>(line).map_err(bad)?))
                }
                other => CaseKind::Unsupported(format!("machine `{other}`")),
            };
            Ok(Case { file: path.to_owned(), name: header.name, kind })
        })
        .collect()
}

/// The cases of a file of LLVM's programs.
///
/// # Errors
/// A line that is not such a case.
pub fn read_llvm(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    json_lines::<r700::LlvmCase>(path, bytes)
        .map(|case| {
            let case = case?;
            let (file, name) = (path.to_owned(), case.id.clone());
            Ok(Case { file, name, kind: CaseKind::Llvm(Box::new(case)) })
        })
        .collect()
}
