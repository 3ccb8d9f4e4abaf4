//! Cases of `corpus/r700`.

use crate::engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::fetch::VertexBuffer;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{Exported, Input, Launch, Options, Outcome, Stage};
use reconverge_r700::texture::{Texture, TextureSampler};
use reconverge_simt::texture::{Image, Sampler, Wrap};
use serde_json::Value;

use crate::{judge, records, words};

fn hex(value: &Value) -> u32 {
    u32::from_str_radix(value.as_str().expect("a hex string"), 16).expect("hex digits")
}

fn vectors(values: &Value) -> Vec<[u32; 4]> {
    let lanes = values.as_array().expect("a list");
    lanes.iter().map(|lane| words(lane.as_str().unwrap()).try_into().expect("four words")).collect()
}

/// The program of a case: its 64-bit words are written as they lie in memory, low dword first.
fn program(case: &Value) -> Program {
    let code = case["program"]["code"].as_array().expect("a list");
    Program::from_words(code.iter().flat_map(|pair| words(pair.as_str().unwrap())).collect())
}

fn launch(case: &Value, constants: &Value) -> Launch {
    let chip = Chip::named(case["chip"].as_str().unwrap()).expect("a chip");
    let lanes = case["lanes"].as_u64().unwrap() as usize;
    let mut launch = Launch::new(chip, Stage::Pixel, lanes);
    launch.set_pgm_resources(hex(&case["program"]["regs"]["SQ_PGM_RESOURCES_PS"]));
    for input in case["inputs"].as_array().into_iter().flatten() {
        let gpr = input["gpr"].as_u64().unwrap() as u8;
        launch.inputs.push(Input { gpr, values: vectors(&input["lanes"]).into() });
    }
    for (number, value) in case["program"]["loop_const"].as_object().into_iter().flatten() {
        launch.resources.loop_constants[number.parse::<usize>().unwrap()] = LoopConstant(hex(value));
    }
    for (number, runs) in constants["kcache"].as_object().into_iter().flatten() {
        let number: u8 = number.parse().unwrap();
        let buffer = &mut launch.resources.constant_buffers[usize::from(number)];
        for piece in runs.as_array().unwrap() {
            let first = piece[0].as_u64().unwrap() as usize;
            let values = words(piece[1].as_str().unwrap());
            buffer.resize(buffer.len().max(first + values.len()), 0);
            buffer[first..first + values.len()].copy_from_slice(&values);
        }
    }
    // Every constant buffer can be fetched from as well; words that are not listed are zero.
    for number in 0..16u8 {
        let mut all = launch.resources.constant_buffers[usize::from(number)].clone();
        all.resize(4096 * 4, 0);
        launch.resources.vertex_buffers.insert(number, VertexBuffer::constants(&all));
    }
    for texture in case["textures"].as_array().into_iter().flatten() {
        let number = |field: &str| texture[field].as_u64().unwrap() as u32;
        let texels = words(texture["texels"].as_str().unwrap());
        let texels = texels.chunks_exact(4).map(|texel| texel.try_into().unwrap()).collect();
        let image = Image::flat(number("width"), number("height"), texels).expect("a texture");
        let unit = number("unit") as u8;
        launch.resources.textures.insert(18 + unit, Texture::floats(image));
        let sampler = Sampler { wrap: [Wrap::ClampToEdge; 3], ..Sampler::default() };
        launch.resources.samplers.insert(unit, TextureSampler { sampler, ..TextureSampler::default() });
    }
    launch
}

fn colour(outcome: &Outcome) -> Result<&Exported, String> {
    outcome.export(ExportKind::Pixel, 0).ok_or_else(|| "nothing was exported".to_owned())
}

fn same(out: &str, got: u32, wanted: u32) -> bool {
    match out {
        "float" => f32::from_bits(got) == f32::from_bits(wanted),
        _ => got == wanted,
    }
}

fn fuzz(case: &Value) -> Result<(), String> {
    let program = program(case);
    for part in case["runs"].as_array().unwrap() {
        let outcome = run(&program, &launch(case, &part["const"]), &Options::STRICT)
            .map_err(|trap| trap.to_string())?;
        for (lane, wanted) in part["expect"].as_array().unwrap().iter().enumerate() {
            if wanted.is_null() != outcome.killed[lane] {
                return Err(format!("lane {lane}: killed is {}", outcome.killed[lane]));
            }
            let Some(wanted) = wanted.as_str().map(words) else { continue };
            let got = colour(&outcome)?.values[lane];
            let out = case["out"].as_str().unwrap();
            if !got.iter().zip(&wanted).all(|(got, wanted)| same(out, *got, *wanted)) {
                return Err(format!("lane {lane}: {got:08x?}, expected {wanted:08x?}"));
            }
        }
    }
    Ok(())
}

fn piglit(case: &Value) -> Result<(), String> {
    let program = program(case);
    for (number, part) in case["runs"].as_array().unwrap().iter().enumerate() {
        let outcome = run(&program, &launch(case, &part["const"]), &Options::STRICT)
            .map_err(|trap| trap.to_string())?;
        let got = colour(&outcome)?.values[0].map(f32::from_bits);
        for (component, wanted) in part["probe"].as_array().unwrap().iter().enumerate() {
            let wanted = wanted.as_f64().unwrap();
            // A NaN is clamped to 0, as by the minimum and maximum of a framebuffer with fixed-point colours.
            let value = f64::from(got[component]);
            let clamped = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
            if (clamped - wanted).abs() > 0.01 {
                return Err(format!("run {number}: {got:?}, expected {}", part["probe"]));
            }
        }
    }
    Ok(())
}

#[test]
fn generated_programs_give_their_exact_bits() {
    if let Some(cases) = records("r700/fuzz.jsonl.gz") {
        judge(&cases, "name", fuzz);
    }
}

#[test]
fn piglit_programs_give_their_probed_colours() {
    if let Some(cases) = records("r700/piglit.jsonl.gz") {
        judge(&cases, "name", piglit);
    }
}
