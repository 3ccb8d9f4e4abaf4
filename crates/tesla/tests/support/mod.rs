//! One run is a run on every engine, on every level of vector instructions that the processor has; numbers of cases.

use reconverge_isa::Program;
use reconverge_simt::{Engine, Level};
use reconverge_tesla::launch::{self, Launch, Options, Outcome, RunError};
use serde_json::Value;

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
