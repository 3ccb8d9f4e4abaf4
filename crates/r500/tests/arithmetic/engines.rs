//! Results of the engines of both units for functions of one operand.

use std::sync::Arc;

use reconverge_r500::launch::{Environment, Hardware, Input, Launch};
use reconverge_r500::setup::Setup;
use reconverge_r500::words::Omod;
use reconverge_r500::{lane, pvs, run, text};
use reconverge_simt::compiling::spent;
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_testkit::{BLOCK, each_block};

/// Number of blocks of words in a launch: enough groups for the compiled engine to compile.
const BLOCKS: usize = 8;

/// Passes launches of words to `check`, and whether the launch is the first. The interpreter takes some microseconds
/// per group.
fn each_launch(mut check: impl FnMut(Vec<[u32; 4]>, bool)) {
    let mut words: Vec<[u32; 4]> = Vec::new();
    let mut first = true;
    each_block(0x5eed_2460, |block| {
        words.extend(block.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]));
        if words.len() == BLOCKS * BLOCK / 4 {
            check(std::mem::take(&mut words), first);
            first = false;
        }
    });
}

/// Returns the options of each run. The first launch runs on all levels and the interpreter.
fn ways(first: bool, engines: &[Engine]) -> Vec<Options> {
    let levels = if first { Level::available() } else { vec![Level::best()] };
    let on =
        |engine, level| Options { engine, level: Some(level), mode: Mode::Lenient, ..Options::default() };
    let quick = levels.iter().flat_map(|level| engines.iter().map(|engine| on(*engine, *level)));
    first.then(|| on(Engine::Reference, Level::best())).into_iter().chain(quick).collect()
}

#[track_caller]
fn same(name: &str, options: &Options, words: &[[u32; 4]], found: &[[u32; 4]], expected: &[[u32; 4]]) {
    if let Some(lane) = (0..words.len()).find(|lane| found[*lane] != expected[*lane]) {
        let (engine, level) = (options.engine, options.level().name());
        let (of, found, expected) = (words[lane], found[lane], expected[lane]);
        panic!("{name} on {engine}, {level}, of {of:x?}: {found:x?}, not {expected:x?}");
    }
}

/// An operation and its lane function.
type Named = (&'static str, fn(f32) -> f32);

/// Checks four functions. Each writes its results for the four channels of an input to one target.
fn check_fragment(functions: [Named; 4]) {
    let mut source = String::new();
    for (name, temp) in functions.map(|(name, _)| name).iter().zip(1..) {
        for (channel, of) in ["r", "g", "b"].iter().zip(["rrr", "ggg", "bbb"]) {
            source += &match *name {
                "FRC" => format!("ALU temp[{temp}].{channel} = FRC src0.{of} : src0=temp[0]\n"),
                _ => format!("ALU temp[{temp}].{channel} = SOP : src0=temp[0]\n  + {name} src0.{channel}\n"),
            };
        }
        source += &format!("ALU nop\n  + temp[{temp}].a = {name} src0.a : src0=temp[0]\n");
    }
    for (target, temp) in ["A", "B", "C", "D"].iter().zip(1..) {
        source += &format!(
            "OUT out[{target}].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[{temp}]\n  \
             + out[{target}].a = MAX*off src0.a, src0.a : src0=temp[{temp}]\n"
        );
    }
    let program = text::assemble(&source).unwrap_or_else(|errors| panic!("{source}{errors:?}")).program;
    let setup = Arc::new(Setup::new(&program).expect("a program"));
    let before = spent();
    each_launch(|words, first| {
        let hardware = Hardware { group_width: 64, ..Hardware::default() };
        let environment = Environment { hardware, ..Environment::default() }.into();
        let launch = Launch {
            lanes: words.len(),
            inputs: vec![Input { temp: 0, values: words.clone().into() }],
            environment,
            columns: Vec::new(),
        };
        let of = |function: fn(f32) -> f32| move |x: u32| function(f32::from_bits(x)).to_bits();
        let expected = functions
            .map(|(_, function)| words.iter().map(|word| word.map(of(function))).collect::<Vec<_>>());
        for options in ways(first, &[Engine::Fast, Engine::Compiled]) {
            let outcome = run::run(&setup, &launch, &options).unwrap_or_else(|error| panic!("{error}"));
            let colors: Vec<[[u32; 4]; 4]> = outcome.lanes().map(|lane| lane.color).collect();
            for (target, (name, _)) in functions.iter().enumerate() {
                let found: Vec<[u32; 4]> = colors.iter().map(|color| color[target]).collect();
                same(name, &options, &words, &found, &expected[target]);
            }
        }
    });
    println!("{} bytes of code", spent().since(before).bytes);
}

#[test]
fn functions_of_the_fragment_processor_are_the_same_on_every_engine() {
    check_fragment([
        ("EX2", |x| lane::scaled(lane::ex2(x), Omod::MUL_1)),
        ("LN2", |x| lane::scaled(lane::ln2(x), Omod::MUL_1)),
        ("RCP", |x| lane::scaled(lane::rcp(x), Omod::MUL_1)),
        ("RSQ", |x| lane::scaled(lane::rsq(x), Omod::MUL_1)),
    ]);
    check_fragment([
        ("SIN", |x| lane::scaled(lane::sin(x), Omod::MUL_1)),
        ("COS", |x| lane::scaled(lane::cos(x), Omod::MUL_1)),
        ("FRC", |x| lane::frc(x, Omod::MUL_1)),
        ("RCP", |x| lane::scaled(lane::rcp(x), Omod::MUL_1)),
    ]);
}

#[test]
fn functions_of_the_vertex_unit_are_the_same_on_every_engine() {
    const FUNCTIONS: [Named; 16] = [
        ("VE_FRACTION", pvs::lane::fraction),
        ("VE_FLT2FIX_DX", pvs::lane::to_fixed),
        ("VE_FLT2FIX_DX_RND", pvs::lane::to_fixed_rounded),
        ("ME_EXP_BASE2_FULL_DX", pvs::lane::exp_base2_full),
        ("ME_EXP_BASEE_FF", pvs::lane::exp_base_e),
        ("ME_LOG_BASE2_FULL_DX", pvs::lane::log_base2_full),
        ("ME_LOG_BASE2_IEEE", pvs::lane::log_base2_ieee),
        ("ME_RECIP_FF", pvs::lane::recip_ff),
        ("ME_RECIP_DX", pvs::lane::recip_dx),
        ("ME_RECIP_IEEE", pvs::lane::recip_ieee),
        ("ME_RECIP_SQRT_FF", pvs::lane::recip_sqrt_ff),
        ("ME_RECIP_SQRT_DX", pvs::lane::recip_sqrt_dx),
        ("ME_RECIP_SQRT_IEEE", pvs::lane::recip_sqrt_ieee),
        ("ME_SIN", pvs::lane::sine),
        ("ME_COS", pvs::lane::cosine),
        ("VE_ADD", pvs::lane::result),
    ];
    let mut source = String::new();
    for ((name, _), output) in FUNCTIONS.iter().zip(0..) {
        source += &match *name {
            "VE_ADD" => format!("VE_ADD o{output} = i0, i0.-0-0-0-0\n"),
            vector if vector.starts_with("VE") => format!("{vector} o{output} = i0\n"),
            math => ["x", "y", "z", "w"].map(|c| format!("{math} o{output}.{c} = i0.{c}\n")).concat(),
        };
    }
    let program = pvs::text::assemble(&source).unwrap_or_else(|errors| panic!("{source}{errors:?}")).program;
    let setup = Arc::new(pvs::setup::Setup::new(&program).expect("a program"));
    each_launch(|words, first| {
        let launch = pvs::launch::Launch {
            vertices: words.len(),
            inputs: vec![pvs::launch::Input { register: 0, values: words.clone().into() }],
            ..pvs::launch::Launch::default()
        };
        let of =
            |function: fn(f32) -> f32| move |x: u32| function(pvs::lane::operand(x, false, false)).to_bits();
        let expected = FUNCTIONS
            .map(|(_, function)| words.iter().map(|word| word.map(of(function))).collect::<Vec<_>>());
        for options in ways(first, &[Engine::Fast]) {
            let outcome = pvs::run::run(&setup, &launch, &options).unwrap_or_else(|error| panic!("{error}"));
            for (output, (name, _)) in FUNCTIONS.iter().enumerate() {
                let found = outcome.outputs.values(output).expect("it is written");
                same(name, &options, &words, found, &expected[output]);
            }
        }
    });
}
