//! Reading of the shared collections, as far as these tests need it.

use std::io::Read;
use std::path::{Path, PathBuf};

use reconverge_isa::Program;
use reconverge_simt::{Engine, Level};
use reconverge_tesla::launch::{self, Launch, Options, Outcome, RunError};
use serde_json::Value;

/// The folder with the shared collections; `None` (with a message) where it is missing, except under CI.
#[allow(dead_code)]
pub(crate) fn shared(what: &str) -> Option<PathBuf> {
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
#[allow(dead_code)]
pub(crate) fn text(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the file can be opened");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip'd text");
    text
}

/// The lines of a gzip'd JSON Lines file.
#[allow(dead_code)]
pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    text(path).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Words of eight hexadecimal digits without anything between.
#[allow(dead_code)]
pub(crate) fn words(value: &Value) -> Vec<u32> {
    let text = value.as_str().expect("words are text").as_bytes();
    let word = |digits: &[u8]| {
        u32::from_str_radix(std::str::from_utf8(digits).expect("ASCII"), 16).expect("hexadecimal")
    };
    text.chunks(8).map(word).collect()
}

/// Text of two hexadecimal digits a byte.
#[allow(dead_code)]
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("bytes are text");
    (0..text.len() / 2)
        .map(|byte| u8::from_str_radix(&text[2 * byte..2 * byte + 2], 16).expect("hexadecimal"))
        .collect()
}

/// A number that may be signed.
#[allow(dead_code)]
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_i64().map(|value| value as u64)).expect("an integer")
}

/// The same options for each way to execute: the reference interpreter, the fast engine on every level that the
/// processor has, and both in lockstep.
#[allow(dead_code)]
pub(crate) fn ways(options: &Options) -> Vec<Options> {
    let fast = |level| Options { engine: Engine::Fast, level: Some(level), ..*options };
    let mut ways = vec![Options { engine: Engine::Reference, ..*options }];
    ways.extend(Level::available().into_iter().map(fast));
    ways.push(Options { engine: Engine::Lockstep, ..*options });
    ways
}

/// Runs a launch in every way; all must leave the same.
#[allow(dead_code)]
pub(crate) fn run(launch: Launch, program: &Program, options: &Options) -> Result<Outcome, RunError> {
    let mut results = ways(options).into_iter().map(|way| (way, launch::run(launch.clone(), program, &way)));
    let (_, reference) = results.next().expect("there is a first way");
    for (way, result) in results {
        match (&reference, &result) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a.statistics, b.statistics, "{way:?}");
                assert_eq!(a.report, b.report, "{way:?}");
                assert_eq!(a.lanes, b.lanes, "{way:?}");
                assert!(a.memory == b.memory, "{way:?}: memory differs");
            }
            (Err(a), Err(b)) => assert_eq!(a, b, "{way:?}"),
            (a, b) => panic!("{way:?}: {:?}, reference {:?}", b.as_ref().err(), a.as_ref().err()),
        }
    }
    reference
}
