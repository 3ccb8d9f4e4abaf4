//! Cases of `corpus/r700-llvm`.

use crate::engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::ExportKind;
use reconverge_r700::fetch::VertexBuffer;
use reconverge_r700::launch::{Input, Launch, Options, Stage};
use serde_json::Value;

use crate::{judge, records, words};

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

/// A launch of the lanes `lanes` of a case.
fn launch(case: &Value, lanes: &[usize]) -> Launch {
    let chip = Chip::named(case["chip"].as_str().unwrap()).expect("a chip");
    let stage = if case["stage"] == "ps" { Stage::Pixel } else { Stage::Vertex };
    let mut launch = Launch::new(chip, stage, lanes.len());
    launch.num_gprs = number(&case["num_gprs"]) as u8;
    launch.stack_size = Some(number(&case["stack_size"]) as u32);
    let mut inputs = vec![Input::default(); 4];
    for (gpr, input) in inputs.iter_mut().enumerate() {
        input.gpr = gpr as u8;
        let mut own = vec![[0; 4]; lanes.len()];
        for (chan, letter) in ["x", "y", "z", "w"].iter().enumerate() {
            let values = words(case["gprs"][format!("T{gpr}.{letter}")].as_str().expect("a register"));
            for (place, lane) in own.iter_mut().zip(lanes) {
                place[chan] = values[*lane];
            }
        }
        input.values = own.into();
    }
    launch.inputs = inputs;
    for (number, values) in case["const"].as_object().into_iter().flatten() {
        let number: u8 = number.parse().expect("a buffer number");
        let values = words(values.as_str().expect("words"));
        launch.resources.vertex_buffers.insert(number, VertexBuffer::constants(&values));
        launch.resources.constant_buffers[usize::from(number)] = values;
    }
    launch
}

/// Whether two words are the same, or floats at most `ulp` apart.
fn near(got: u32, wanted: u32, ulp: u32) -> bool {
    let ordered = |bits: u32| if bits >> 31 != 0 { -i64::from(bits & 0x7fff_ffff) } else { i64::from(bits) };
    got == wanted || ulp > 0 && (ordered(got) - ordered(wanted)).abs() <= i64::from(ulp)
}

fn check(case: &Value, lanes: &[usize]) -> Result<(), String> {
    let program = Program::from_words(words(case["words"].as_str().unwrap()));
    let outcome = run(&program, &launch(case, lanes), &Options::STRICT).map_err(|trap| trap.to_string())?;
    let killed: Vec<usize> =
        case["expect"]["killed"].as_array().into_iter().flatten().map(|lane| number(lane) as usize).collect();
    let ulp = case["expect"]["ulp"].as_u64().unwrap_or(0) as u32;
    for (place, lane) in lanes.iter().enumerate() {
        if outcome.killed[place] != killed.contains(lane) {
            return Err(format!("lane {lane}: killed is {}", outcome.killed[place]));
        }
    }
    for export in case["expect"]["exports"].as_array().unwrap() {
        let kind = match export["type"].as_str().unwrap() {
            "pixel" => ExportKind::Pixel,
            "pos" => ExportKind::Pos,
            _ => ExportKind::Param,
        };
        let got = outcome.export(kind, number(&export["base"]) as u16);
        for (chan, letter) in ["x", "y", "z", "w"].iter().enumerate() {
            let wanted = words(export[*letter].as_str().unwrap());
            for (place, lane) in lanes.iter().enumerate() {
                let written = got.map_or(0, |got| got.written[place]);
                if killed.contains(lane) {
                    if written != 0 {
                        return Err(format!("lane {lane} was killed and exported"));
                    }
                    continue;
                }
                let value = got.map_or(0, |got| got.values[place][chan]);
                if written >> chan & 1 == 0 || !near(value, wanted[*lane], ulp) {
                    return Err(format!(
                        "{kind:?} {} lane {lane} {letter}: {value:08x}, expected {:08x}",
                        export["base"], wanted[*lane]
                    ));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn llvm_programs_give_what_their_source_computes() {
    let Some(cases) = records("r700-llvm/exec.jsonl.gz") else { return };
    let all: Vec<usize> = (0..64).collect();
    judge(&cases, "id", |case| check(case, &all));
}

#[test]
fn any_subset_of_lanes_gives_the_same() {
    let Some(cases) = records("r700-llvm/exec.jsonl.gz") else { return };
    judge(&cases, "id", |case| {
        for lane in 0..64 {
            check(case, &[lane]).map_err(|why| format!("alone: {why}"))?;
        }
        for size in [16, 32] {
            for first in (0..64).step_by(size) {
                let lanes: Vec<usize> = (first..first + size).collect();
                check(case, &lanes).map_err(|why| format!("{size} together: {why}"))?;
            }
        }
        Ok(())
    });
}
