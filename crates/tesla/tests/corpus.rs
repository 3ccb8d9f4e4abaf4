//! Every shader case of the corpus gives what it must, in strict mode.

mod support;

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_simt::texture::{Image, Sampler, Wrap};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Fragment, LaneResult, Launch, MOST_LOCAL, Options, Setup, Varying};
use reconverge_testkit::{records, shared};
use serde_json::Value;
use support::{run, words};

fn register(case: &Value, name: &str) -> u32 {
    words(&case["program"]["regs"][name])[0]
}

fn setup(case: &Value, constants: &Value) -> Setup {
    let id = u32::from_str_radix(case["id"].as_str().unwrap(), 16).unwrap();
    let mut setup = Setup::new(Chip::from_id(id).expect("a chip of this generation"));
    setup.registers = register(case, "FP_REG_ALLOC_TEMP");
    setup.code_base = register(case, "FP_START_ID");
    setup.local_bytes = MOST_LOCAL;
    for (bank, runs) in constants["cb"].as_object().unwrap() {
        for run in runs.as_array().unwrap() {
            let bytes: Vec<u8> = words(&run[1]).into_iter().flat_map(u32::to_le_bytes).collect();
            assert!(setup.constants.place(
                bank.parse().unwrap(),
                4 * run[0].as_u64().unwrap() as usize,
                &bytes
            ));
        }
    }
    for texture in case["textures"].as_array().into_iter().flatten() {
        let size = |name: &str| texture[name].as_u64().unwrap() as u32;
        let texels = words(&texture["texels"]).chunks(4).map(|texel| texel.try_into().unwrap()).collect();
        let image = Image::flat(size("width"), size("height"), texels).unwrap();
        let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], ..Sampler::default() };
        setup.textures.bind(size("unit") as u8, Arc::new(image), sampler);
    }
    setup
}

fn fragment(case: &Value, constants: &Value) -> Fragment {
    let mut fragment = Fragment::new(setup(case, constants), case["lanes"].as_u64().unwrap() as usize);
    for input in case["inputs"].as_array().into_iter().flatten() {
        let lanes: Vec<Vec<u32>> = input["lanes"].as_array().unwrap().iter().map(words).collect();
        for (component, slot) in input["slots"].as_array().unwrap().iter().enumerate() {
            let values = lanes.iter().map(|lane| lane[component]).collect();
            fragment.varyings.insert(slot.as_u64().unwrap() as u16, Varying::Lanes(values));
        }
    }
    fragment
}

fn judge(case: &Value, run: &Value, lanes: &[LaneResult]) -> Result<(), String> {
    if let Some(expect) = run["expect"].as_array() {
        for (lane, (expected, result)) in expect.iter().zip(lanes).enumerate() {
            let got = &result.registers[..4];
            let right = match expected {
                Value::Null => result.dead,
                _ if result.dead => false,
                _ if case["out"] == "int" => words(expected) == got,
                _ => words(expected).iter().zip(got).all(|(a, b)| f32::from_bits(*a) == f32::from_bits(*b)),
            };
            if !right {
                return Err(format!("lane {lane}: expected {expected}, got {got:08x?} dead {}", result.dead));
            }
        }
        return Ok(());
    }
    // A NaN is clamped to 0.
    let clamped = |word: &u32| if f32::from_bits(*word) > 0.0 { f32::from_bits(*word).min(1.0) } else { 0.0 };
    let got: Vec<f32> = lanes[0].registers[..4].iter().map(clamped).collect();
    let probe = run["probe"].as_array().unwrap();
    let right = probe
        .iter()
        .zip(&got)
        .all(|(expected, got)| (expected.as_f64().unwrap() - f64::from(*got)).abs() <= 0.01);
    if right { Ok(()) } else { Err(format!("expected {probe:?}, got {got:?}")) }
}

/// The cases that fail.
fn wrong(file: &str, least: usize) -> Vec<String> {
    if shared("corpus/tesla").is_none() {
        return Vec::new();
    }
    let cases = records(&format!("corpus/tesla/{file}"));
    assert!(cases.len() >= least, "{} cases", cases.len());
    let mut wrong = Vec::new();
    let mut runs = 0;
    for case in &cases {
        let program = Program::from_words(words(&case["program"]["code"]));
        for expectation in case["runs"].as_array().unwrap() {
            runs += 1;
            let launch = Launch::Fragment(fragment(case, &expectation["const"]));
            let result = run(launch, &program, &Options::default())
                .map_err(|error| error.to_string())
                .and_then(|outcome| judge(case, expectation, &outcome.lanes));
            if let Err(why) = result {
                wrong.push(format!("{} ({}): {why}", case["name"], case["variant"]));
            }
        }
    }
    eprintln!("{file}: {} cases, {runs} runs, {} wrong", cases.len(), wrong.len());
    wrong
}

#[test]
fn every_fuzz_case_gives_its_lanes() {
    let wrong = wrong("fuzz.jsonl.gz", 324);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_piglit_case_gives_its_colours() {
    let wrong = wrong("piglit.jsonl.gz", 528);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The programs have no instruction that looks at another lane, so that running together changes nothing.
#[test]
fn every_lane_alone_equals_all_together() {
    if shared("corpus/tesla").is_none() {
        return;
    }
    let (mut lanes, mut different) = (0, Vec::new());
    // One lane of each case in turn; over the collection every place in a warp has its turn.
    for (number, case) in records("corpus/tesla/fuzz.jsonl.gz").iter().enumerate() {
        let program = Program::from_words(words(&case["program"]["code"]));
        let together = fragment(case, &case["runs"][0]["const"]);
        let chosen = number % together.lanes;
        let mut alone = together.clone();
        alone.lanes = 1;
        for varying in alone.varyings.values_mut() {
            if let Varying::Lanes(values) = varying {
                *values = vec![values[chosen]];
            }
        }
        let results = [together, alone]
            .map(|launch| run(Launch::Fragment(launch), &program, &Options::default()).unwrap().lanes);
        lanes += 1;
        if results[0][chosen] != results[1][0] {
            different.push(format!("{} lane {chosen}", case["name"]));
        }
    }
    assert!(lanes >= 324 && different.is_empty(), "{lanes} lanes, different: {different:?}");
}
