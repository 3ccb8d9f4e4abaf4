//! The sources of the repository.

use std::path::{Path, PathBuf};

use reconverge_isa::Isa;
use reconverge_language::{Analysis, Settings, TargetHint};
use reconverge_workbench::kernels;

/// A source of the repository, with its name.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) folder: PathBuf,
    /// Settings with the target in the launch file next to the source.
    pub(crate) settings: Settings,
}

impl Sample {
    pub(crate) fn analysis(&self) -> Analysis {
        self.with(&self.text)
    }

    /// Returns the analysis of another text in place of the source.
    pub(crate) fn with(&self, text: &str) -> Analysis {
        Analysis::new(text, &self.settings, &mut |name| {
            std::fs::read(self.folder.join(name)).map_err(|error| error.to_string())
        })
    }
}

/// Returns every source of the documentation, the corpus and the benchmark.
pub(crate) fn samples() -> Vec<Sample> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["docs", "corpus"] {
        find(&root.join(folder), &mut found);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    for isa in Isa::ALL {
        for name in ["mandel", "collatz"] {
            if let Some(kernel) = kernels::find(isa, name) {
                let settings = Settings { fallback: TargetHint::of(isa), ..Settings::default() };
                let text = kernel.source.to_string();
                found.push(Sample { name: format!("{name} of {isa}"), text, folder: root.clone(), settings });
            }
        }
    }
    assert!(found.len() > 60, "{} samples", found.len());
    found
}

fn find(folder: &Path, found: &mut Vec<Sample>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find(&path, found);
            continue;
        }
        if path.extension().is_none_or(|ending| ending != "s") {
            continue;
        }
        let launch = std::fs::read_to_string(path.with_extension("toml")).unwrap_or_default();
        let settings = Settings { launch: TargetHint::of_launch(&launch), ..Settings::default() };
        let text = std::fs::read_to_string(&path).expect("a text");
        found.push(Sample { name: path.display().to_string(), text, folder: folder.to_owned(), settings });
    }
}
