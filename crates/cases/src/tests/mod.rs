//! Runs the collections in `shared/` on every engine. The tests compare all results of a case between engines, not only
//! the results for which the case states an expectation.

mod engines;
mod lanes;
mod opened;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Case, Folder, read};

#[derive(Debug)]
struct Disk(PathBuf);

impl Folder for Disk {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        let folder = self.0.parent().ok_or("no folder")?;
        std::fs::read(folder.join(relative)).map_err(|error| error.to_string())
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

fn cases(path: &Path) -> Vec<Case> {
    let folder: Arc<dyn Folder> = Arc::new(Disk(path.to_owned()));
    let bytes = std::fs::read(path).expect("the file is there");
    read(&path.display().to_string(), &bytes, &folder, None).expect("a file of cases")
}
