//! Reading of the shared collections.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file or folder of the collections; `None` (with a message) where it is missing, except under CI.
pub(crate) fn path(what: &str) -> Option<PathBuf> {
    // Beside the repository, or beside the folder of a worktree.
    let places =
        ["/../../../shared", "/../../../../shared"].map(|up| format!("{}{up}", env!("CARGO_MANIFEST_DIR")));
    if let Some(path) = places.iter().map(|place| Path::new(place).join(what)).find(|path| path.exists()) {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{what} is missing");
    eprintln!("skipped: {what} is not here");
    None
}

/// The content of a gzip'd text file.
pub(crate) fn text(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The lines of a gzip'd JSON Lines file.
pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    text(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Words of eight hexadecimal digits without anything between.
pub(crate) fn words(value: &Value) -> Vec<u32> {
    let digits = value.as_str().unwrap();
    (0..digits.len() / 8).map(|at| u32::from_str_radix(&digits[8 * at..8 * at + 8], 16).unwrap()).collect()
}
