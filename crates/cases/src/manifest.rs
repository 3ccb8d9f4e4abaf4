//! Run manifests: a binary, launches, and the memory that they must leave.

use std::collections::BTreeMap;

use reconverge_isa::Isa;
use reconverge_simt::Mode;
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::open::open;
use reconverge_workbench::request::{Error, How};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::{Known, Opened};

use crate::launch::Loaded;
use crate::modes::{Trouble, in_modes};
use crate::{Case, CaseKind, Folder, ReadError, Settings, Verdict};

/// A manifest with everything it names.
#[derive(Clone, Debug)]
pub struct ManifestCase {
    manifest: Manifest,
    opened: Opened,
    files: Loaded,
}

/// The case of a manifest; `None` when the bytes are something else.
pub fn read(path: &str, bytes: &[u8], folder: &dyn Folder) -> Option<Result<Vec<Case>, ReadError>> {
    let damaged = |why: String| ReadError::Damaged { file: path.to_owned(), why };
    let manifest = match Manifest::parse(bytes)? {
        Ok(manifest) => manifest,
        Err(why) => return Some(Err(damaged(why))),
    };
    Some(load(path, manifest, folder).map_err(damaged))
}

fn load(path: &str, manifest: Manifest, folder: &dyn Folder) -> Result<Vec<Case>, String> {
    let case = |name: &str, kind| Ok(vec![Case { file: path.to_owned(), name: name.to_owned(), kind }]);
    let isa: Isa = manifest.isa.parse().map_err(|unknown| format!("{unknown}"))?;
    if isa != Isa::Tesla {
        return case(&manifest.id, CaseKind::Unsupported(format!("run manifests for {isa}")));
    }
    let binary = folder.read(&format!("../{}", manifest.binary)).or_else(|| folder.read(&manifest.binary));
    let binary = binary.ok_or_else(|| format!("the program {} is not there", manifest.binary))?;
    let known = Known { isa: Some(isa), chip: Some(manifest.arch.clone()), stage: None };
    let opened = open(&binary, false, &known).map_err(|error| format!("{}: {error}", manifest.binary))?;
    let files = manifest.files().filter_map(|file| Some((file.to_owned(), folder.read(file)?)));
    let files = Loaded(files.collect::<BTreeMap<_, _>>());
    let name = manifest.id.clone();
    case(&name, CaseKind::Manifest(Box::new(ManifestCase { manifest, opened, files })))
}

impl ManifestCase {
    /// Runs the launches, in both modes unless one is chosen.
    pub fn judge(&self, settings: &Settings) -> Verdict {
        in_modes(settings, &[()], |(), mode| {
            let result = self.run(mode, settings.how).map_err(|error| match error {
                Error::Trap(trap) => Trouble::Trap(trap),
                error => Trouble::Wrong(error.to_string()),
            })?;
            match result.mismatches.into_iter().next() {
                None => Ok(()),
                Some(mismatch) => Err(Trouble::Wrong(mismatch)),
            }
        })
    }

    pub(crate) fn run(&self, mode: Mode, how: How) -> Result<RunResult, Error> {
        let name = match mode {
            Mode::Strict => "strict",
            Mode::Lenient => "lenient",
        };
        self.manifest.run(&self.opened.image, Some(name), how, &self.files)
    }
}
