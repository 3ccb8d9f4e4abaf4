//! Real compute programs with their inputs and the memory they must leave.

mod support;

use std::path::Path;

use reconverge_container::Hints;
use reconverge_isa::{Image, Isa, Program};
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Statistics};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch, Options, run};
use reconverge_testkit::shared;
use serde_json::Value;
use support::{bytes, number};

fn chip(arch: &str) -> Chip {
    Chip::from_name(arch).expect("an sm_10 to sm_13 chip")
}

fn image(folder: &Path, manifest: &Value) -> Image {
    let file = std::fs::read(folder.join(manifest["binary"].as_str().unwrap())).unwrap();
    let hints = Hints { isa: Some(Isa::Tesla), ..Hints::default() };
    reconverge_container::load(&file, &hints).unwrap()
}

fn program<'a>(image: &'a Image, kernel: &Value) -> &'a Program {
    match kernel.as_str() {
        None => &image.programs[0],
        Some(name) => {
            image.programs.iter().find(|program| program.name.as_deref() == Some(name)).expect(name)
        }
    }
}

fn parameters(launch: &Value, manifest: &Value) -> Vec<u8> {
    let mut area = Vec::new();
    for param in launch["params"].as_array().unwrap() {
        let [offset, size] = ["offset", "bytes"].map(|name| param[name].as_u64().unwrap() as usize);
        let value = match param["kind"].as_str().unwrap() {
            "buffer" => {
                let buffers = manifest["buffers"].as_array().unwrap();
                number(&buffers.iter().find(|buffer| buffer["name"] == param["buffer"]).unwrap()["address"])
            }
            "f32" => u64::from((param["value"].as_f64().unwrap() as f32).to_bits()),
            _ => number(&param["value"]),
        };
        area.resize(area.len().max(offset + size), 0);
        area[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    area
}

fn memory(folder: &Path, manifest: &Value) -> Memory {
    let buffers = manifest["buffers"].as_array().unwrap().iter().map(|buffer| {
        let mut bytes = match buffer["init_file"].as_str() {
            Some(file) => std::fs::read(folder.join("runs").join(file)).unwrap(),
            None => Vec::new(),
        };
        bytes.resize(buffer["bytes"].as_u64().unwrap() as usize, 0);
        Buffer { address: number(&buffer["address"]) as u32, bytes }
    });
    Memory::new(buffers.collect()).unwrap()
}

fn matches(expect: &Value, got: &[u8], expected: &[u8]) -> Result<(), String> {
    let tolerance = &expect["tolerance"];
    if tolerance["exact"] == true {
        return match got.iter().zip(expected).position(|(a, b)| a != b) {
            None if got.len() == expected.len() => Ok(()),
            place => Err(format!("differs at byte {place:?}")),
        };
    }
    let value = |bytes: &[u8]| match expect["elem"].as_str().unwrap() {
        "f32" => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        "f64" => f64::from_le_bytes(bytes.try_into().unwrap()),
        other => panic!("tolerance for {other}"),
    };
    let size = if expect["elem"] == "f64" { 8 } else { 4 };
    let [abs, rel] = ["abs", "rel"].map(|name| tolerance[name].as_f64().unwrap_or(0.0));
    for (index, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
        let (got, expected) = (value(got), value(expected));
        let close = got == expected
            || got.is_nan() && expected.is_nan()
            || (got - expected).abs() <= abs + rel * expected.abs();
        if !close {
            return Err(format!("element {index}: {got} instead of {expected}"));
        }
    }
    Ok(())
}

fn judge(folder: &Path, manifest: &Value, options: &Options) -> Result<Statistics, String> {
    let image = image(folder, manifest);
    let mut memory = memory(folder, manifest);
    let mut statistics = Statistics::default();
    for launch in manifest["launches"].as_array().unwrap() {
        let program = program(&image, &launch["kernel"]);
        let mut compute = Compute::of(program, chip(manifest["arch"].as_str().unwrap()))
            .map_err(|error| error.to_string())?;
        for source in ["constants", "user_constants"] {
            for (bank, content) in manifest[source].as_object().into_iter().flatten() {
                assert!(compute.setup.constants.place(bank[1..].parse().unwrap(), 0, &bytes(content)));
            }
        }
        let side = |name: &str, axis: usize| launch[name][axis].as_u64().unwrap() as u32;
        compute.grid = [0, 1].map(|axis| side("grid", axis));
        compute.block = [0, 1, 2].map(|axis| side("block", axis));
        compute.dynamic_shared = launch["dynamic_shared_bytes"].as_u64().unwrap() as u32;
        compute.params = parameters(launch, manifest);
        compute.memory = memory;
        let outcome = run(Launch::Compute(compute), program, options).map_err(|error| error.to_string())?;
        statistics.add(&outcome.statistics);
        memory = outcome.memory;
    }
    for expect in manifest["expect"].as_array().unwrap() {
        let buffers = manifest["buffers"].as_array().unwrap();
        let address =
            number(&buffers.iter().find(|buffer| buffer["name"] == expect["buffer"]).unwrap()["address"]);
        let [offset, count] = ["offset", "bytes"].map(|name| expect[name].as_u64().unwrap());
        let got = memory
            .bytes((address + offset) as u32, count as usize)
            .ok_or("expected bytes outside the buffer")?;
        let expected = std::fs::read(folder.join("runs").join(expect["file"].as_str().unwrap())).unwrap();
        matches(expect, got, &expected[..count as usize])?;
    }
    let wanted = manifest["thread_instructions"].as_u64().unwrap();
    if statistics.lane_instructions != wanted {
        return Err(format!("{} thread instructions instead of {wanted}", statistics.lane_instructions));
    }
    Ok(statistics)
}

#[test]
fn every_run_leaves_the_expected_memory_after_the_expected_instructions() {
    let Some(folder) = shared("binaries") else { return };
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let manifest: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        count += 1;
        let in_order = Options { parallel: false, ..Options::default() };
        let mut ways = vec![Options { engine: Engine::Reference, parallel: true, ..in_order }];
        ways.push(Options { engine: Engine::Fast, parallel: true, ..in_order });
        ways.extend(support::ways(&in_order));
        let results: Vec<_> = ways.iter().map(|way| judge(&folder, &manifest, way)).collect();
        for (way, result) in ways.iter().zip(&results) {
            if *result != results[0] {
                wrong
                    .push(format!("{}: {result:?} with {way:?} instead of {:?}", manifest["id"], results[0]));
            }
        }
        if let Err(why) = &results[0] {
            wrong.push(format!("{}: {why}", manifest["id"]));
        }
    }
    eprintln!("{count} runs, {} wrong", wrong.len());
    assert!(count >= 48, "{count} runs");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
