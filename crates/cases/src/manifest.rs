//! Run manifests. A manifest has a binary, launches, and the memory that is expected after the launches.

use std::sync::Arc;

use reconverge_isa::Isa;
use reconverge_simt::Options;
use reconverge_workbench::Error;
use reconverge_workbench::assemble;
use reconverge_workbench::keys::line_of;
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::open::open;
use reconverge_workbench::result::RunResult;
use reconverge_workbench::{Known, Opened, Style};

use crate::launch::Beside;
use crate::modes::{Trouble, in_modes};
use crate::opened::OpenedCase;
use crate::{Case, CaseKind, Folder, ReadError, Settings, Verdict};

/// A manifest and its program.
#[derive(Clone, Debug)]
pub struct ManifestCase {
    manifest: Manifest,
    opened: Opened,
    folder: Arc<dyn Folder>,
}

/// Returns the case of a manifest, or `None` if the bytes are not a manifest.
pub fn read(path: &str, bytes: &[u8], folder: &Arc<dyn Folder>) -> Option<Result<Vec<Case>, ReadError>> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let manifest = match Manifest::parse(bytes)? {
        Ok(manifest) => manifest,
        Err(why) => {
            let line = line_of(&why).map(|(line, rest)| (line, rest.to_owned()));
            return Some(Err(match line {
                Some((line, why)) => ReadError::Line { file: path.to_owned(), line, why },
                None => damaged(why),
            }));
        }
    };
    Some(load(path, manifest, folder).map_err(damaged))
}

fn load(path: &str, manifest: Manifest, folder: &Arc<dyn Folder>) -> Result<Vec<Case>, String> {
    let case = |name: &str, kind| Ok(vec![Case { file: path.to_owned(), name: name.to_owned(), kind }]);
    let isa: Isa = manifest.isa.parse().map_err(|unknown| format!("{unknown}"))?;
    if isa != Manifest::ISA {
        return case(&manifest.id, CaseKind::Unsupported(format!("run manifests for {isa}")));
    }
    let binary = folder.read(&format!("../{}", manifest.binary)).or_else(|_| folder.read(&manifest.binary));
    let binary = binary.map_err(|why| format!("the program {}: {why}", manifest.binary))?;
    let known = Known { isa: Some(isa), chip: Some(manifest.arch.clone()), ..Known::default() };
    let opened = open(&binary, false, &known).map_err(|error| format!("{}: {error}", manifest.binary))?;
    let (name, folder) = (manifest.id.clone(), folder.clone());
    case(&name, CaseKind::Manifest(Box::new(ManifestCase { manifest, opened, folder })))
}

impl ManifestCase {
    /// Runs the launches. If the settings do not state a mode, the launches run in both modes. The function then
    /// converts the program to text, assembles the text, and runs the launches again with the assembled program. After
    /// both runs, memory must have the same bytes.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        let back = match self.of_text() {
            Ok(back) => back,
            Err(why) => return Verdict::Failed(why),
        };
        in_modes(settings, &[()], |(), options| {
            let result = self.run(options)?;
            settings.count(&result.shares);
            let of_text = self.manifest.run(&back, options, &Beside(&*self.folder))?;
            let mut pairs = result.outputs.iter().zip(&of_text.outputs);
            if let Some(((name, _), _)) = pairs.find(|((_, array), (_, back))| array.bytes != back.bytes) {
                let why = format!("{name} has different bytes if the program is assembled from its own text");
                return Err(Trouble::Wrong(why));
            }
            if let Some(mismatch) = result.mismatches.into_iter().next() {
                return Err(Trouble::Wrong(mismatch));
            }
            result.findings.into_iter().next().map_or(Ok(()), |finding| Err(Trouble::Finding(finding)))
        })
    }

    /// Returns the program's file without any launch. The launches of a manifest share memory, so a launch cannot run
    /// without the earlier launches.
    pub(crate) fn open(&self) -> OpenedCase {
        OpenedCase { opened: self.opened.clone(), launches: Vec::new() }
    }

    /// Converts the program's image to text, assembles the text, and returns the program's file with the assembled
    /// image.
    fn of_text(&self) -> Result<Opened, String> {
        let Opened { target, image, .. } = &self.opened;
        let text = target.machine().image_text(target, image, Style::default());
        let text = text.map_err(|error| error.to_string())?;
        let back = assemble(target, &text).map_err(|errors| format!("the program's text: {}", errors[0]))?;
        Ok(Opened { image: back.image, ..self.opened.clone() })
    }

    pub(crate) fn run(&self, options: &Options) -> Result<RunResult, Error> {
        self.manifest.run(&self.opened, options, &Beside(&*self.folder))
    }
}
