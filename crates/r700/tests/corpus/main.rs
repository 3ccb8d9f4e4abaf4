//! The corpora of compiled programs, run on the reference interpreter in strict mode.
//!
//! * `mesa`: fragment programs that Mesa's driver compiled (`corpus/r700/{fuzz,piglit}.jsonl.gz`);
//! * `llvm`: programs that LLVM's R600 back end compiled (`corpus/r700-llvm/exec.jsonl.gz`).

#[path = "../engines/mod.rs"]
mod engines;
mod llvm;
mod mesa;

use reconverge_testkit::shared;
use serde_json::Value;

/// The records of a file of the corpus; `None`, with a message, when the corpus is not here.
fn records(file: &str) -> Option<Vec<Value>> {
    let path = format!("corpus/{file}");
    shared(&path).map(|_| reconverge_testkit::records(&path))
}

/// Words written as eight hex digits each, with or without spaces between.
fn words(text: &str) -> Vec<u32> {
    let digits: String = text.split_whitespace().collect();
    digits
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).expect("ASCII"), 16).expect("hex digits"))
        .collect()
}

/// Judges every record; fails with the first few complaints.
fn judge(records: &[Value], name: &str, judge: impl Fn(&Value) -> Result<(), String>) {
    let mut failures = Vec::new();
    for record in records {
        if let Err(why) = judge(record) {
            failures.push(format!("{} {}: {why}", record[name].as_str().unwrap_or("?"), record["variant"]));
        }
    }
    println!("{} of {} records agree", records.len() - failures.len(), records.len());
    let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {} records differ:\n{shown}", failures.len(), records.len());
}
