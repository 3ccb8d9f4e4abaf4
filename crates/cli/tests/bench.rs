//! Tests of `reconverge bench --draw`.

#![cfg(target_os = "linux")]

mod driver;

use std::process::Output;

use driver::{has_driver, on_driver, refuses, text};

/// Runs `bench --draw` with additional arguments.
fn bench(arguments: &[&str]) -> Output {
    on_driver("bench").arg("--draw").args(arguments).output().unwrap()
}

#[test]
fn loads_are_listed_and_unknown_ones_are_refused() {
    let list = bench(&["--list"]);
    assert_eq!(list.status.code(), Some(0), "{}", text(&list.stderr));
    let names: Vec<String> = text(&list.stdout)
        .lines()
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    assert!(names.len() >= 8 && names.iter().any(|name| name == "fill"), "{names:?}");
    refuses(&bench(&["--kernel", "fil"]), &["unknown load --kernel `fil`", "did you mean `fill`"]);
    refuses(&bench(&["--chip", "gt2155", "--list"]), &["gt2155"]);
    refuses(&on_driver("bench").args(["--chip", "rv770"]).output().unwrap(), &["--draw"]);
}

#[test]
fn loads_are_timed_on_an_emulated_chip() {
    if !has_driver() {
        return;
    }
    let output =
        bench(&["--chip", "rv770", "--kernel", "clear", "--runs", "1", "--threads", "1,2", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_chip = |entry: &&serde_json::Value| entry["renderer"] == "rv770";
    let results: Vec<_> = measured["results"].as_array().unwrap().iter().filter(of_chip).collect();
    assert_eq!(results.len(), 2, "{measured}");
    assert!(results.iter().all(|entry| entry["ns"].as_f64().is_some_and(|ns| ns > 0.)), "{measured}");
    assert!(results[1]["speedup"].is_number(), "{measured}");
}
