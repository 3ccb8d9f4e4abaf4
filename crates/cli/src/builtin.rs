//! The built-in corpus, which `check` runs without a path.

use std::sync::Arc;

use anyhow::Result;
use reconverge_cases::{Case, Folder};
use reconverge_isa::Isa;

/// A file of the repository's `corpus/` folder.
struct File {
    path: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[ $( File { path: $path, bytes: include_bytes!(concat!("../corpus/", $path)) } ),* ]
    };
}

/// Every file in the folder `corpus/`. A test compares this list with the folder.
const FILES: &[File] = files![
    "r500/call.s",
    "r500/call.toml",
    "r500/ctm-scale.s",
    "r500/ctm-scale.toml",
    "r500/ctm-scatter.s",
    "r500/ctm-scatter.toml",
    "r500/fuzz.jsonl.gz",
    "r500/loops.s",
    "r500/loops.toml",
    "r500/overflow.s",
    "r500/overflow.toml",
    "r500/predicate.s",
    "r500/predicate.toml",
    "r500/stale.s",
    "r500/stale.toml",
    "r500/vertex-loop.s",
    "r500/vertex-loop.toml",
    "r700/branch.s",
    "r700/branch.toml",
    "r700/call.s",
    "r700/call.toml",
    "r700/fetch.s",
    "r700/fetch.toml",
    "r700/kill.s",
    "r700/kill.toml",
    "r700/loop-aL.s",
    "r700/loop-aL.toml",
    "r700/overflow.s",
    "r700/overflow.toml",
    "tesla/atomic.s",
    "tesla/atomic.toml",
    "tesla/barrier.s",
    "tesla/barrier.toml",
    "tesla/beyond.s",
    "tesla/beyond.toml",
    "tesla/call.s",
    "tesla/call.toml",
    "tesla/diverge.s",
    "tesla/diverge.toml",
    "tesla/fragment.s",
    "tesla/fragment.toml",
    "tesla/loop-break.s",
    "tesla/loop-break.toml",
    "tesla/no-token.s",
    "tesla/no-token.toml",
    "tesla/planes.s",
    "tesla/planes.toml",
];

/// Returns the cases of all files.
pub(crate) fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in FILES.iter().filter(|file| !file.path.ends_with(".s")) {
        let folder: Arc<dyn Folder> = Arc::new(Beside(file.path));
        cases.extend(reconverge_cases::read(file.path, file.bytes, &folder, None)?);
    }
    Ok(cases)
}

/// Returns the machine of a case in the built-in corpus. The name of the case's folder is the name of the machine. If
/// the folder does not have a machine's name, returns `None`.
pub(crate) fn machine(case: &Case) -> Option<Isa> {
    case.file.split('/').next()?.parse().ok()
}

/// Access to the files of the corpus that are in the same folder as a given file. The field is the path of the given
/// file in the corpus.
#[derive(Debug)]
struct Beside(&'static str);

impl Folder for Beside {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        let folder = self.0.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = format!("{folder}/{relative}");
        let file = FILES.iter().find(|file| file.path == path).ok_or("not found in the built-in corpus")?;
        Ok(file.bytes.to_vec())
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_corpus_is_built_in() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
        let mut found = Vec::new();
        for folder in
            std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        {
            for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let path = file.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push(path);
            }
        }
        found.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        listed.sort_unstable();
        assert_eq!(listed, found);
    }

    #[test]
    fn every_case_of_the_corpus_has_a_machine() {
        let without: Vec<String> =
            cases().unwrap().iter().filter(|case| machine(case).is_none()).map(Case::id).collect();
        assert!(without.is_empty(), "{without:?}");
    }
}
