//! The fast engine has the same results as the reference interpreter: outputs, counts, report and traps. The tests
//! cover every level of the host's vector instructions, any number of host threads, and both modes.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::cause::Cause;
use reconverge_r500::ctm::{self, Dispatch, Domain, Format, Surface, Tiling};
use reconverge_r500::fast::Fast;
use reconverge_r500::inst::Body;
use reconverge_r500::launch::{Columns, Environment, Hardware, Input, Launch, RunError};
use reconverge_r500::outputs::{LaneOutput, Outcome};
use reconverge_r500::run::{Loaded, run, run_watched};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_r500::words::InstType;
use reconverge_simt::fidelity::Report;
use reconverge_simt::{Engine, FlowTrace, GroupId, Level, Mode, Options, Statistics, Watch};
use reconverge_testkit::r500::{launch, program, quad, record, relative, setup};
use reconverge_testkit::{Campaign, Random, everywhere, textures};

/// Compares all engines with [`everywhere`], and on one host thread.
fn same_everywhere(
    setup: &Arc<Setup>,
    launch: &Launch,
    options: &Options,
    what: &str,
) -> Result<Outcome, RunError> {
    let on = |engine, level, log: Option<&mut _>| {
        let options = Options { engine, level, ..*options };
        match log {
            Some(log) => run_watched(setup, launch, &options, Watch::of(log)),
            None => run(setup, launch, &options),
        }
    };
    let expected = everywhere(on, |result| format!("{what}: {result:?}"));
    let alone = Options { jobs: NonZeroUsize::new(1), ..*options };
    assert_eq!(run(setup, launch, &alone), expected, "{what}: one job");
    expected
}

/// Returns an error of a piece with positions in the launch. The piece begins with lane `first_lane`.
fn behind(first_lane: usize, error: RunError) -> RunError {
    match error {
        RunError::Trap(mut trap) => {
            if let GroupId::Lanes { first } = &mut trap.group {
                *first += first_lane;
            }
            RunError::Trap(trap)
        }
        error => error,
    }
}

/// Compares a launch in pieces with one run: outputs, counts, report, or the same trap.
fn same_in_pieces(setup: &Arc<Setup>, launch: &Launch, options: &Options, piece: usize, what: &str) {
    let whole = run(setup, launch, options);
    let inputs = |lanes: Range<usize>| {
        let part = |input: &Input| Input { values: input.values[lanes.clone()].into(), ..*input };
        launch.inputs.iter().map(part).collect()
    };
    let mut lanes: Vec<LaneOutput> = Vec::new();
    let loaded = Loaded::of(setup, &launch.environment, options).expect("an environment");
    let size = piece.max(1).next_multiple_of(launch.environment.hardware.group_width);
    let mut pieces = || -> Result<(Statistics, Report), RunError> {
        let (mut statistics, mut report) = (Statistics::default(), Report::default());
        for first in (0..launch.lanes).step_by(size) {
            let range = first..launch.lanes.min(first + size);
            let outcome = loaded.run(range.len(), inputs(range)).map_err(|error| behind(first, error))?;
            statistics.add(&outcome.statistics);
            report.add(&outcome.report);
            lanes.extend(outcome.lanes());
        }
        Ok((statistics, report))
    };
    match (pieces(), whole) {
        (Ok((statistics, report)), Ok(whole)) => {
            assert_eq!((statistics, &report), (whole.statistics, &whole.report), "{what}");
            assert!(lanes.iter().copied().eq(whole.lanes()), "{what}");
        }
        (totals, whole) => assert_eq!(totals.err(), whole.err(), "{what}"),
    }
}

/// Returns options with a low limit of instructions, because a random program may run for ever.
fn short(mode: Mode) -> Options {
    Options { mode, watchdog: 200, ..Options::default() }
}

/// Instructions without flow, on special values and random bits.
#[test]
fn arithmetic_is_the_same_bit_for_bit() {
    let seed = 0x5eed_0501;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let (mut fast, mut values) = (0, 0);
    for round in 0..3_000 {
        let count = 1 + random.below(10) as usize;
        let mut words = Vec::new();
        for _ in 0..count {
            let kind = if random.once_in(4) { InstType::OUT } else { InstType::ALU };
            words.extend(record(&mut random, kind).0);
        }
        let setup = setup(&mut random, words);
        let mode = if random.once_in(8) { Mode::Strict } else { Mode::Lenient };
        let lanes = 1 + random.below(130) as usize;
        let launch = launch(&mut random, lanes);
        let options = short(mode);
        fast += count + 1 - Fast::new(&setup, &launch, &options).by_reference().len();
        if same_everywhere(&setup, &launch, &options, &format!("round {round}")).is_ok() {
            values += lanes * count;
        }
    }
    println!("{fast} instructions have a fast way, {values} were compared lane by lane");
    assert!(values > 500_000, "{values}");
}

/// Every operation of both units with every OMOD, with and without clamp, and with both rules for zero. Millions of
/// lanes compare every vector body with the lane functions on every level.
#[test]
fn every_operation_gives_the_bits_that_the_lane_functions_give() {
    let seed = 0x5eed_0503;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let lanes = 4_096;
    let mut round = 0;
    for rgb in [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12] {
        for omod in 0..8 {
            for (clamp, zero_wins) in [(0, 0), (0, 2), (1, 0), (1, 2)] {
                round += 1;
                // Alpha operations in rotation. DP with a dot product and SOP with a transcendental occur often
                // enough.
                let alpha = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15][round % 15];
                let mut words = record(&mut random, InstType::ALU).0;
                words[0] = 0xf << 11 | clamp << 19 | clamp << 20;
                // Both units use temporaries 0, 1, 2, with any presubtract.
                for word in &mut words[1..3] {
                    *word = *word & 3 << 30 | 2 << 20 | 1 << 10;
                }
                words[3] = words[3] & !(0xf << 28 | 7 << 26) | omod << 26;
                words[4] = words[4] & !(0xf << 28 | 7 << 26 | 0xfff) | omod << 26 | 4 << 4 | alpha;
                words[5] = words[5] & !0xfff | 4 << 4 | rgb;
                let copy = assemble(COPY).expect("it assembles").program.words;
                let words = words.into_iter().chain(copy).collect();
                let state = vec![("US_CONFIG".to_owned(), zero_wins)];
                let program = Program { words, state, ..Program::default() };
                let setup = Arc::new(Setup::new(&program).expect("a program"));
                let hardware = Hardware { group_width: 64, ..Hardware::default() };
                let environment = Environment { hardware, ..Environment::default() }.into();
                let launch = Launch {
                    lanes,
                    inputs: [0, 1, 2]
                        .map(|temp| Input { temp, values: (0..lanes).map(|_| quad(&mut random)).collect() })
                        .to_vec(),
                    environment,
                    columns: Vec::new(),
                };
                let on = |engine, level| {
                    let options = Options { engine, level, mode: Mode::Lenient, ..Options::default() };
                    let inst = || setup.slot(0).map_or(String::new(), |slot| format!("{:?}", slot.inst));
                    run(&setup, &launch, &options).unwrap_or_else(|error| panic!("{}: {error}", inst()))
                };
                let expected = on(Engine::Reference, None);
                let ways = Level::available().into_iter().map(|level| (Engine::Fast, level));
                // Lockstep compiles as much as possible.
                let compiled =
                    Level::available().into_iter().skip(1).map(|level| (Engine::LockstepCompiled, level));
                for (engine, level) in ways.chain(compiled) {
                    let found = on(engine, Some(level));
                    let same = |lane: &usize| found.lane(*lane) == expected.lane(*lane);
                    if let Some(lane) = (0..lanes).find(|lane| !same(lane)) {
                        panic!(
                            "{} on {engine}, {}: inputs {:x?} give {:x?}, not {:x?}",
                            setup.slot(0).map_or(String::new(), |slot| format!("{:?}", slot.inst)),
                            level.name(),
                            [0, 1, 2].map(|temp: usize| launch.inputs[temp].values[lane]),
                            found.lane(lane).map(|output| output.color[0]),
                            expected.lane(lane).map(|output| output.color[0])
                        );
                    }
                }
            }
        }
    }
}

/// Dot products of two products, with special values, random bits, and sums halfway between two singles.
#[test]
fn a_dot_product_of_two_products_is_rounded_as_the_lane_function_rounds_it() {
    let seed = 0x5eed_050b;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for (omod, signs, zero_wins) in
        [("", "", 0), ("", "-", 2), ("*2", "", 2), ("/8", "-", 0), ("*8", "", 0), ("/2", "", 2)]
    {
        let source = format!(
            ".state US_CONFIG {zero_wins}\n\
             ALU temp[4].rgb = DP3{omod} src0.rg0, {signs}src1.rg0 : src0=temp[1] src1=temp[2]\n{COPY}"
        );
        let setup = Setup::new(&assemble(&source).expect("it assembles").program).expect("a program");
        let near = |random: &mut Random| {
            let sign = if random.once_in(2) { -1. } else { 1. };
            (sign * (1 + random.below(1 << 13)) as f32 * 2f32.powi(random.below(24) as i32 - 12)).to_bits()
        };
        let mut values = |_| match random.once_in(3) {
            true => quad(&mut random),
            false => [0; 4].map(|_| near(&mut random)),
        };
        let inputs = [1, 2].map(|temp| Input { temp, values: (0..8192).map(&mut values).collect() });
        let launch = Launch { lanes: 8192, inputs: inputs.to_vec(), ..Launch::default() };
        let what = format!("DP3{omod}, sign {signs:?}, {zero_wins}");
        same_everywhere(&Arc::new(setup), &launch, &short(Mode::Lenient), &what).expect("it ends");
    }
}

/// The sign of a product that is too small for a single decides the sign of the zero that a dot product returns. The
/// other terms are zeros of either sign.
#[test]
fn a_dot_product_keeps_the_sign_of_a_product_too_small_for_a_single() {
    let values = [0., -0., 2f32.powi(-100), -(2f32.powi(-100)), f32::MIN_POSITIVE, 1.].map(f32::to_bits);
    let count = values.len().pow(4);
    let of = |first: usize, number: usize| {
        let value = |digit: u32| values[number / values.len().pow(digit) % values.len()];
        [value(first as u32), value(first as u32 + 1), values[first], values[first]]
    };
    for (op, omod) in [("DP3", ""), ("DP4", "*off"), ("D2A", "/2"), ("DP4", "*8")] {
        let source = format!(
            "ALU temp[4].rgb = {op}{omod} src0.rgb, src1.rgb, src0.bbb : src0=temp[1] src1=temp[2]\n  \
             + temp[4].a = DP{omod} src0.a, src1.a : src0=temp[1] src1=temp[2]\n{COPY}"
        );
        let source = if op == "D2A" { source } else { source.replace(", src0.bbb", "") };
        let setup = Setup::new(&assemble(&source).expect("it assembles").program).expect("a program");
        let input = |temp: u8, first: usize| Input {
            temp,
            values: (0..count).map(|number| of(first, number)).collect(),
        };
        let launch = Launch { lanes: count, inputs: vec![input(1, 0), input(2, 2)], ..Launch::default() };
        let what = format!("{op}{omod}");
        same_everywhere(&Arc::new(setup), &launch, &short(Mode::Lenient), &what).expect("it ends");
    }
}

/// OMOD computes: a NaN that the sign modifier has made negative becomes the machine's own NaN again. This also holds
/// in compiled code for a result that is already a canonical NaN.
#[test]
fn a_negated_nan_is_the_machines_own_after_any_omod() {
    let source = "ALU temp[0].rgb = MAX -srcp.rgb, -srcp.rgb : src0=temp[1] srcp=NEG\n\
                  OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let values = vec![[f32::NAN.to_bits(); 4]; 16].into();
    let launch = Launch { lanes: 16, inputs: vec![Input { temp: 1, values }], ..Launch::default() };
    let outcome = same_everywhere(&setup, &launch, &short(Mode::Lenient), "a NaN").expect("it ends");
    assert!(outcome.lanes().all(|lane| lane.color[0][..3] == [0x7fff_ffff; 3]));
}

/// Writes temp[4] to the output, bit for bit.
const COPY: &str = "OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[4]\n\
                    + out[A].a = MAX*off src0.a, src0.a : src0=temp[4]\n";

#[test]
fn random_programs_run_the_same() {
    let (programs, mut random) = Campaign::of_random(3_000, 0x5eed_0502);
    let (mut ended, mut trapped) = (0, 0);
    for round in 0..programs {
        let words = program(&mut random);
        let setup = setup(&mut random, words);
        for mode in [Mode::Strict, Mode::Lenient] {
            let lanes = 1 + random.below(70) as usize;
            let (launch, options) = (launch(&mut random, lanes), short(mode));
            let what = format!("round {round}, {mode:?}");
            let piece = [0, 1, 16, 20, 47, 64, 100][random.below(7) as usize];
            same_in_pieces(&setup, &launch, &options, piece, &format!("{what}, pieces of {piece}"));
            match same_everywhere(&setup, &launch, &options, &what) {
                Ok(_) => ended += 1,
                Err(RunError::Trap(_)) => trapped += 1,
                Err(other) => panic!("round {round}: {other}"),
            }
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(
        ended * 6 >= programs && trapped * 6 >= programs,
        "the mix must reach both: {ended} ended, {trapped} trapped"
    );
}

/// Without an observer, groups run together; with one, each group runs alone. Inputs may be by column.
#[test]
fn groups_give_together_what_they_give_alone() {
    let (programs, mut random) = Campaign::of_random(1_500, 0x5eed_050a);
    let mut ended = 0;
    for round in 0..programs {
        let words = program(&mut random);
        let setup = setup(&mut random, words);
        let mode = random.one_of(&[Mode::Strict, Mode::Lenient, Mode::Lenient]);
        let options = Options { engine: Engine::Fast, ..short(mode) };
        let lanes = 65 + random.below(200) as usize;
        let mut launch = launch(&mut random, lanes);
        if random.once_in(2) {
            let mut column = |input: &Input, channel| {
                // Columns may end before the last lanes, which then read zero.
                let values = input.values[..lanes - random.below(8) as usize].iter();
                Arc::new(values.map(|value: &[u32; 4]| value[channel]).collect())
            };
            let inputs = std::mem::take(&mut launch.inputs);
            let columns = inputs.iter().map(|input| Columns {
                temp: input.temp,
                components: [0, 1, 2, 3].map(|channel| column(input, channel)),
            });
            launch.columns = columns.collect();
        }
        let together = run(&setup, &launch, &options);
        let mut trace = FlowTrace::default();
        let alone = run_watched(&setup, &launch, &options, Watch::of(&mut trace));
        assert_eq!(together, alone, "round {round}");
        let reference = Options { engine: Engine::Reference, ..options };
        assert_eq!(together, run(&setup, &launch, &reference), "round {round}");
        ended += u64::from(together.is_ok());
    }
    println!("{ended} ended");
    assert!(ended * 6 >= programs);
}

/// Coverage: each operation alone has a fast path, with every modifier and with relative addresses.
#[test]
fn every_operation_has_a_fast_way() {
    let mut random = Random::new(7);
    for _ in 0..5_000 {
        let (words, inst) = record(&mut random, InstType::ALU);
        let Body::Alu(alu) = inst.body else { continue };
        let setup = Setup::new(&Program {
            words: words.into_iter().chain([5, 0, 0, 0, 0, 0]).collect(),
            ..Program::default()
        });
        let options = Options { mode: Mode::Lenient, ..Options::default() };
        let fast = Fast::new(&setup.expect("a program"), &Launch::default(), &options);
        assert_eq!(fast.by_reference(), [0u16; 0], "{:?} + {:?}", alu.rgb.op, alu.alpha.op);
    }
}

/// Every fetch with random swizzles, predicates and textures, on coordinates near the image.
#[test]
fn texture_fetches_are_the_same_bit_for_bit_and_have_a_fast_way() {
    let (programs, mut random) = Campaign::of_random(1000, 0x5eed_0519);
    let mut fast = 0u64;
    for round in 0..programs {
        let mut words = Vec::new();
        for _ in 0..3 {
            let (mut record, inst) = record(&mut random, InstType::TEX);
            // Units 0 to 7. Bit 3 of the unit is cleared.
            record[1] &= !(8 << 16);
            if matches!(inst.body, Body::Tex(_)) {
                words.extend(record);
            }
        }
        let setup = setup(&mut random, words);
        let lanes = 1 + random.below(130) as usize;
        let mut launch = launch(&mut random, lanes);
        for input in &mut launch.inputs {
            input.values = (0..lanes).map(|_| [(); 4].map(|()| textures::coordinate(&mut random))).collect();
        }
        let options = short(Mode::Lenient);
        fast += u64::from(Fast::new(&setup, &launch, &options).by_reference().is_empty());
        let _ = same_everywhere(&setup, &launch, &options, &format!("round {round}"));
    }
    assert!(fast >= programs * 3 / 10, "{fast} programs without the reference interpreter");
}

/// A loop over instructions of all kinds, including TEXKILL. Most addresses are relative to aL, which increases,
/// decreases or stays.
#[test]
fn relative_addresses_are_the_same_bit_for_bit_and_have_a_fast_way() {
    let (programs, mut random) = Campaign::of_random(1500, 0x5eed_0520);
    let (mut fast, mut ended, mut trapped) = (0u64, 0u64, 0u64);
    for round in 0..programs {
        let mode = if random.once_in(3) { Mode::Strict } else { Mode::Lenient };
        let (words, constant) = relative(&mut random);
        let state = vec![
            ("US_CONFIG".to_owned(), random.next() & 2),
            ("US_PIXSIZE".to_owned(), 0x7f),
            ("US_FC_INT_CONST_0".to_owned(), constant),
        ];
        let program = Program { words, state, ..Program::default() };
        let setup = Arc::new(Setup::new(&program).expect("a program"));
        let lanes = 1 + random.below(130) as usize;
        let (launch, options) = (launch(&mut random, lanes), short(mode));
        fast += u64::from(Fast::new(&setup, &launch, &options).by_reference().is_empty());
        match same_everywhere(&setup, &launch, &options, &format!("round {round}")) {
            Ok(_) => ended += 1,
            Err(_) => trapped += 1,
        }
    }
    println!("{fast} without the reference interpreter, {ended} ended, {trapped} trapped");
    assert!(
        fast >= programs / 3 && ended >= programs / 3 && trapped >= programs / 30,
        "{fast} {ended} {trapped}"
    );
}

/// Compares scattered outputs and fetches from surfaces of every format: memory, counts and traps. Some accesses are
/// outside the surface.
#[test]
fn surfaces_are_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(1500, 0x5eed_0521);
    let (mut ended, mut trapped) = (0u64, 0u64);
    for round in 0..programs {
        // Coordinates from the pair and from fetched values; they are seldom outside the surface.
        let far = if random.once_in(4) { "1.5" } else { "0.75" };
        let at = ["src0.rgb", "src0.grb", "src0.rrg", "src0.ggr"][random.below(4) as usize];
        let [unit, other] = [0, 1].map(|_| random.below(4));
        let kill = if random.once_in(4) { "TEX TEXKILL tex[0], temp[1].rgba\n" } else { "" };
        let target = ["A", "C", "C", "C", "D"][random.below(5) as usize];
        let alpha = if random.once_in(12) { "src0.1" } else { "src0.0" };
        let source = format!(
            ".const 0 {far} 0.25 -0.125 4\n.state US_PIXSIZE 8\n\
             ALU temp[1].rgb = MAD src0.rgb, src1.rrr, src1.ggg : src0=temp[0] src1=const[0]\n\
             TEX temp[2].rgba = LD tex[{unit}], temp[1].rgba UNSCALED\n\
             TEX temp[3].rgba = LD tex[{other}], temp[1].grba UNSCALED IGNORE_UNCOVERED\n\
             {kill}\
             ALU temp[4].rgb = MAD {at}, src1.111, src1.000 : src0=temp[1] src1=const[0]\n\
             ALU temp[4].r = MAX src0.rrr, src0.rrr : src0=temp[2]\n\
             OUT temp[4].r, out[{target}].rgb = MAD src0.rgb, src1.111, src0.r00 : src0=temp[4] src1=const[0]\n  \
             + out[A].a = MAX {alpha}, {alpha}\n\
             ALU temp[5].r = MAD src0.rrr, src0.111, src1.ggg : src0=temp[3] src1=const[0]\n\
             OUT out[{target}].rgb = MAD src0.ggb, src1.111, src2.r00 : src0=temp[4] src1=const[0] src2=temp[3]\n  \
             + out[A].a = MAX src0.0, src0.0\n"
        );
        let assembled = assemble(&source).unwrap_or_else(|errors| panic!("{source}: {errors:?}"));
        let setup = Arc::new(Setup::new(&assembled.program).expect("a program"));
        let surface = |random: &mut Random, number: u32| Surface {
            base: 4096 * number + 2 * random.below(3),
            pitch: 8 + random.below(8),
            height: 6 + random.below(10),
            format: [
                Format::UINT16_1,
                Format::UINT8_4,
                Format::FLOAT32_1,
                Format::FLOAT32_2,
                Format::FLOAT32_4,
            ][random.below(5) as usize],
            tiling: if random.once_in(4) { Tiling::LINEAR_INP_2X2 } else { Tiling::LINEAR },
        };
        let formats = [Format::FLOAT32_1, Format::UINT8_4];
        let format = formats[random.below(2) as usize];
        let output =
            Surface { pitch: 16, height: 16, format, tiling: Tiling::LINEAR, ..surface(&mut random, 4) };
        let mut memory: Vec<u8> = Vec::new();
        let size = if random.once_in(16) { 3 * 1024 } else { 6 * 1024 };
        memory.extend((0..size).flat_map(|_| textures::coordinate(&mut random).to_le_bytes()));
        let dispatch = Dispatch {
            memory,
            inputs: (0..4).map(|number| (number as u8, surface(&mut random, number))).collect(),
            outputs: [Some(output), None, None, None],
            uncached: !random.once_in(8),
            conditional: None,
            constants: Vec::new(),
            domain: Domain { i: 0, j: 0, width: 1 + random.below(10), height: 1 + random.below(10) },
            hardware: Hardware { group_width: [16, 48, 64][random.below(3) as usize], ..Hardware::default() },
        };
        let mode = if random.once_in(2) { Mode::Strict } else { Mode::Lenient };
        let on = |engine, level| {
            let options = Options { engine, level, ..short(mode) };
            ctm::run(&setup, dispatch.clone(), &options)
        };
        let expected = on(Engine::Reference, None);
        for level in Level::available() {
            assert_eq!(on(Engine::Fast, Some(level)), expected, "round {round}, {}: {source}", level.name());
        }
        assert_eq!(on(Engine::Lockstep, None), expected, "round {round}: {source}");
        match expected {
            Ok(_) => ended += 1,
            Err(_) => trapped += 1,
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended >= programs / 8 && trapped >= programs / 8, "{ended} ended, {trapped} trapped");
}

#[test]
fn the_first_trap_in_the_order_of_the_threads_counts() {
    // Lanes from 1600 on fetch from a unit without a texture, which traps.
    let source = "ALU alu_result[GE].r = MAD src0.rrr, src0.111, -src1.rrr : src0=temp[0] src1=const[0]\n\
                  .const 0 1600 0 0 0\nif alu\nTEX temp[1].rgba = LD tex[3], temp[0].rgba\nendif\nOUT nop\n";
    let setup = Arc::new(Setup::new(&assemble(source).expect("it assembles").program).expect("a program"));
    let values = (0..4096).map(|lane| [(lane as f32).to_bits(), 0, 0, 0]).collect();
    let launch = Launch { lanes: 4096, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    match same_everywhere(&setup, &launch, &Options::default(), "traps") {
        Err(RunError::Trap(trap)) => assert_eq!(trap.group, GroupId::Lanes { first: 1600 }),
        other => panic!("{other:?}"),
    }
    for piece in [1, 500, 1600, 1616, 4096] {
        same_in_pieces(&setup, &launch, &Options::default(), piece, &format!("pieces of {piece}"));
    }
}

/// A flow instruction destroys the ALU result, even if a jump target separates the flow instruction from the comparison
/// and the flow instruction does not read the ALU result. In strict mode, the next branch traps. In lenient mode, the
/// branch reads zero in every lane.
#[test]
fn a_flow_instruction_at_a_jump_target_destroys_the_alu_result() {
    let compute = "ALU temp[1].rgb = MAD src0.rgb, src0.rgb, src0.rgb : src0=temp[0]\n".repeat(8);
    let source = format!(
        "{compute}ALU alu_result[GE].r = MAD src0.rrr, src0.111, src0.000 : src0=temp[0]\n\
         here:\nFC JUMP FUNC=0 -> here\n\
         if alu\nALU temp[0].rgb = MAD src0.111, src0.111, src0.111 : src0=temp[0]\nendif\n\
         OUT out[A].rgb = MAX src0.rgb, src0.rgb : src0=temp[0]\n"
    );
    let setup = Arc::new(Setup::new(&assemble(&source).expect("it assembles").program).expect("a program"));
    let values = [[0.5f32.to_bits(); 4]; 64].into();
    let launch = Launch { lanes: 64, inputs: vec![Input { temp: 0, values }], ..Launch::default() };
    let lenient = same_everywhere(&setup, &launch, &short(Mode::Lenient), "lenient").expect("it ends");
    assert!(lenient.lanes().all(|lane| lane.color[0][..3] == [0.5f32.to_bits(); 3]));
    match same_everywhere(&setup, &launch, &short(Mode::Strict), "strict") {
        Err(RunError::Trap(trap)) => assert_eq!((trap.trap.pc, trap.trap.cause), (10, Cause::StaleAluResult)),
        other => panic!("{other:?}"),
    }
}

/// The next launch reuses a group that has ended. Registers, predicates, masks and textures are those of a new group.
#[test]
fn a_launch_leaves_nothing_to_the_next_one_of_its_program() {
    let (programs, mut random) = Campaign::of_random(400, 0x5eed_0509);
    let (mut ended, mut mixed) = (0, 0);
    for round in 0..programs {
        let words = program(&mut random);
        let setup = setup(&mut random, words);
        let engine = random.one_of(&[Engine::Fast, Engine::Fast, Engine::Compiled]);
        let options =
            Options { engine, ..short(random.one_of(&[Mode::Lenient, Mode::Lenient, Mode::Strict])) };
        let shared = launch(&mut random, 1).environment;
        let mut loaded = Loaded::of(&setup, &shared, &options).unwrap();
        let (mut good, mut bad) = (0, 0);
        for number in 0..8 {
            let lanes = 1 + random.below(70) as usize;
            let mut launch = launch(&mut random, lanes);
            let constants = launch.environment.constants.clone();
            // Changes the textures and constants, or only the constants.
            if !random.once_in(6) {
                launch.environment = Environment { constants, ..(*shared).clone() }.into();
            }
            // Fewer inputs than in the previous launch, or none.
            launch.inputs.truncate(random.one_of(&[4, 4, 4, 2, 0]));
            loaded = loaded.with_environment(&launch.environment).unwrap();
            let found = loaded.run_watched(launch.clone(), Watch::Nothing);
            assert_eq!(found, run(&setup, &launch, &options), "round {round}, launch {number}");
            let outputs = found.clone().map(|outcome| outcome.outputs);
            assert_eq!(
                loaded.run_for_outputs(launch),
                outputs,
                "round {round}, launch {number}: outputs alone"
            );
            if found.is_ok() { good += 1 } else { bad += 1 }
        }
        ended += good;
        mixed += u64::from(good > 0 && bad > 0);
    }
    println!("{ended} ended, {mixed} programs ended and trapped");
    assert!(ended >= programs);
}
