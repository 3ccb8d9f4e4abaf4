//! Every row of the arithmetic vectors as the machine executes it: from the encoded words, through decode and the
//! interpreter, to the registers, flags and memory that it leaves.
//!
//! The registers are those that the collection names for its encodings.

use reconverge_isa::Program;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Lane, Machine, Silent, Step};
use reconverge_tesla::decode::decode;
use reconverge_tesla::inst::{Base, Chip, Dst, Inst, Operand, Stage};
use reconverge_tesla::launch::{Compute, Fragment, Launch, Options, Run, Setup};
use reconverge_tesla::meaning::Modes;
use reconverge_testkit::{shared, unpacked};

/// `exit nop`, behind the instruction under test.
const EXIT: [u32; 2] = [0xf000_0001, 0xe000_0781];
const WORD: u32 = 0x1000;

type Row = Vec<String>;

fn hex(text: &str) -> Option<u64> {
    (text != "-").then(|| u64::from_str_radix(text, 16).unwrap())
}

fn chip(column: &str) -> Chip {
    match column {
        "G80+G84" => Chip::G84,
        "G84+" => Chip::G84,
        "any" | "G200" | "G200+" => Chip::G200,
        "GT215" => Chip::Gt215,
        other => panic!("chip {other}"),
    }
}

fn modes(column: &str) -> Modes {
    let has = |flag: &str| column.contains(flag);
    Modes {
        mul_zero_wins: has("mul_zero_wins=1"),
        sat_nan: has("sat_nan=1"),
        nonfp_deriv: has("nonfp_deriv=1"),
    }
}

/// A machine about to execute the row's instruction, in as many lanes as given.
fn machine(row: &Row, stage: Stage, lanes: u32, engine: Engine) -> (Run, Inst) {
    let chip = chip(&row[1]);
    let w0 = hex(&row[3]).unwrap() as u32;
    let instruction = match hex(&row[4]) {
        Some(w1) => vec![w0, w1 as u32],
        // A short one stands beside another: itself, which is not reached.
        None => vec![w0, w0],
    };
    let inst = decode([instruction[0], instruction[1]], chip, stage)
        .unwrap_or_else(|error| panic!("{row:?}: {error}"));
    let program = Program::from_words([&instruction[..], &EXIT].concat());
    let mut setup = Setup::new(chip);
    setup.modes = modes(&row[2]);
    let launch = match stage {
        Stage::Fragment => Launch::Fragment(Fragment::new(setup, lanes as usize)),
        Stage::Compute | Stage::Vertex | Stage::Geometry => {
            let mut compute = Compute::of(&program, chip).unwrap();
            compute.setup = setup;
            compute.block = [lanes, 1, 1];
            compute.segments.0[0] = compute.segments.0[14];
            compute.memory = Memory::new(vec![Buffer { address: WORD, bytes: vec![0; 8] }]).unwrap();
            Launch::Compute(compute)
        }
    };
    (Run::new(launch, &program, &Options { engine, ..Options::default() }).unwrap(), inst)
}

/// Result and flags of a lane.
fn left(run: &Run, inst: &Inst, lane: Lane) -> (Option<u64>, Option<u64>) {
    let warp = run.block().current();
    let result = match inst.dst {
        Dst::R32(register) => Some(warp.r(lane, register).into()),
        Dst::R16(half) => Some(warp.half(lane, half.0).into()),
        Dst::R64(register) => Some(warp.pair(lane, register)),
        _ => None,
    };
    (result, inst.cdst.map(|register| warp.c(lane, register).into()))
}

fn step(run: &mut Run, row: &Row) {
    assert_eq!(run.step(&mut Silent), Ok(Step::Running), "{row:?}");
}

fn arithmetic(family: &str, row: &Row, engine: Engine) -> bool {
    let (mut run, inst) = machine(row, Stage::Compute, 1, engine);
    let warp = &mut run.block_mut().warps[0];
    let sources = [5, 6, 7].map(|column: usize| hex(&row[column]));
    let wide = family.starts_with('d') || family.ends_with("64");
    for (place, value) in sources.into_iter().enumerate() {
        let Some(value) = value else { continue };
        let place = place as u8;
        match () {
            () if family.starts_with("sfu") => warp.set_r(Lane(0), 1 + place, value as u32),
            () if wide => warp.set_pair(Lane(0), 4 + 2 * place, value),
            () => warp.set_r(Lane(0), 4 + place, value as u32),
        }
    }
    if let Some(carry) = hex(&row[8]) {
        warp.set_c(Lane(0), 0, carry as u8);
    }
    step(&mut run, row);
    left(&run, &inst, Lane(0)) == (hex(&row[9]), hex(&row[10]))
}

fn atomic(row: &Row, engine: Engine) -> bool {
    let (mut run, inst) = machine(row, Stage::Compute, 1, engine);
    let [old, src2, src3] = [5, 6, 7].map(|column: usize| hex(&row[column]));
    let Operand::Mem(mem) = inst.src[0] else { panic!("{row:?}") };
    let bytes = mem.access.bytes() as usize;
    // The word starts as given: a store by the same interpreter would test less.
    let mut memory = run.memory().clone();
    memory.bytes_mut(WORD, bytes).unwrap().copy_from_slice(&old.unwrap().to_le_bytes()[..bytes]);
    run.set_memory(memory);
    let warp = &mut run.block_mut().warps[0];
    let mut set = |operand: Operand, value: Option<u64>| match (operand, value) {
        (Operand::R32(register), Some(value)) => warp.set_r(Lane(0), register, value as u32),
        (Operand::R64(register), Some(value)) => warp.set_pair(Lane(0), register, value),
        _ => {}
    };
    set(inst.src[1], src2);
    set(inst.src[2], src3);
    if let Base::R(register) = mem.base {
        set(Operand::R32(register), Some(WORD.into()));
    }
    step(&mut run, row);
    let new = run
        .memory()
        .bytes(WORD, bytes)
        .unwrap()
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte));
    (Some(new), left(&run, &inst, Lane(0)).0) == (hex(&row[8]), hex(&row[9]))
}

fn quad(rows: &[Row], engine: Engine) -> bool {
    let stage = if rows[0][2].contains("non_fp_stage") { Stage::Compute } else { Stage::Fragment };
    let (mut run, inst) = machine(&rows[0], stage, 4, engine);
    let warp = &mut run.block_mut().warps[0];
    for (lane, row) in rows.iter().enumerate() {
        warp.set_r(Lane(lane as u8), 4, hex(&row[6]).unwrap() as u32);
        warp.set_r(Lane(lane as u8), 6, hex(&row[7]).unwrap() as u32);
    }
    step(&mut run, &rows[0]);
    let right =
        |(lane, row): (usize, &Row)| left(&run, &inst, Lane(lane as u8)) == (hex(&row[8]), hex(&row[9]));
    rows.iter().enumerate().all(right)
}

#[test]
fn every_vector_holds_for_the_executed_instruction() {
    let Some(folder) = shared("vectors/tesla") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gz"));
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for path in &files {
        let family = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".csv.gz").to_owned();
        let text = unpacked(path);
        let rows: Vec<Row> =
            text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect();
        count += rows.len();
        for engine in [Engine::Reference, Engine::Fast] {
            let mut judge = |row: &Row, right: bool| {
                if !right {
                    wrong.push(format!("{family} ({engine}): {}", row.join(",")));
                }
            };
            match family.as_str() {
                "quadop" => rows.chunks(4).for_each(|rows| judge(&rows[0], quad(rows, engine))),
                "atom32" | "atom64" => rows.iter().for_each(|row| judge(row, atomic(row, engine))),
                family => rows.iter().for_each(|row| judge(row, arithmetic(family, row, engine))),
            }
        }
    }
    eprintln!("{} families, {count} rows, {} wrong", files.len(), wrong.len());
    assert!(count > 100_000, "{count} rows");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
