//! Compares the engines on functions of one operand: the interpreter's lane functions, the fast engine's rows and host
//! code.

use reconverge_isa::Program;
use reconverge_r700::chip::{Chip, Family};
use reconverge_r700::code::ExportKind;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::meaning::{Meaning, op2};
use reconverge_r700::run::run;
use reconverge_r700::words::{AluDword0, AluDword1Op2R700, IndexModeR700, Omod, Op2, PredSel};
use reconverge_simt::compiling::spent;
use reconverge_simt::level::Kind;
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_testkit::{BLOCK, each_block};

/// Every opcode with one operand and a one-word result, eight per program, which is the number of pixel targets.
const OPCODES: [[Op2; 8]; 3] = [
    [
        Op2::FRACT,
        Op2::TRUNC,
        Op2::CEIL,
        Op2::RNDNE,
        Op2::FLOOR,
        Op2::NOT_INT,
        Op2::INT_TO_FLT,
        Op2::UINT_TO_FLT,
    ],
    [
        Op2::EXP_IEEE,
        Op2::LOG_IEEE,
        Op2::LOG_CLAMPED,
        Op2::SIN,
        Op2::COS,
        Op2::SQRT_IEEE,
        Op2::RECIPSQRT_IEEE,
        Op2::RECIP_IEEE,
    ],
    [
        Op2::RECIPSQRT_CLAMPED,
        Op2::RECIPSQRT_FF,
        Op2::RECIP_CLAMPED,
        Op2::RECIP_FF,
        Op2::FLT_TO_INT,
        Op2::FLT_TO_UINT,
        Op2::RECIP_INT,
        Op2::RECIP_UINT,
    ],
];

/// Returns a program that computes R1 to R8 from R0, each component with one instruction, and exports them to the pixel
/// targets.
fn program(opcodes: &[Op2; 8]) -> Program {
    let mut slots = Vec::new();
    for (code, register) in opcodes.iter().zip(1..) {
        for chan in 0..4 {
            let low = AluDword0 {
                src0_sel: 0,
                src0_rel: false,
                src0_chan: chan,
                src0_neg: false,
                src1_sel: 0,
                src1_rel: false,
                src1_chan: 0,
                src1_neg: false,
                index_mode: IndexModeR700::AR_X,
                pred_sel: PredSel::OFF,
                last: true,
            };
            let high = AluDword1Op2R700 {
                src0_abs: false,
                src1_abs: false,
                update_execute_mask: false,
                update_pred: false,
                write_mask: true,
                omod: Omod::OFF,
                alu_inst: *code as u16,
                bank_swizzle: 0,
                dst_gpr: register,
                dst_rel: false,
                dst_chan: chan,
                clamp: false,
            };
            slots.extend([low.pack(), high.pack()]);
        }
    }
    // The clause comes after its own word and eight exports. The last export is EXPORT_DONE with END_OF_PROGRAM.
    let mut words = vec![9, 8 << 26 | 1 << 31 | (slots.len() as u32 / 2 - 1) << 18];
    for target in 0..8u32 {
        words.extend([
            0xc000_0000 | (target + 1) << 15 | target,
            if target == 7 { 0x9420_0688 } else { 0x9380_0688 },
        ]);
    }
    words.extend(slots);
    Program::from_words(words)
}

/// Blocks of words in a launch: enough wavefronts for compilation.
const BLOCKS: usize = 8;

/// Compares the engines, and returns the number of bytes of generated code.
fn check(opcodes: &[Op2; 8]) -> u64 {
    let program = program(opcodes);
    let functions = opcodes.map(|code| match op2(code, Family::R700).expect("R700 has it").meaning {
        Meaning::Float1(function) | Meaning::Bits1(function) => function,
        other => panic!("{other:?}"),
    });
    let mut words: Vec<[u32; 4]> = Vec::new();
    let (mut launches, mut first) = (0u64, true);
    let before = spent();
    let mut go = |words: &mut Vec<[u32; 4]>| {
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, words.len());
        launch.environment_mut().num_gprs = 9;
        launch.inputs.push(Input { gpr: 0, values: std::mem::take(words).into() });
        let values = launch.inputs[0].values.clone();
        let expected =
            functions.map(|function| values.iter().map(|word| word.map(function)).collect::<Vec<_>>());
        // The interpreter takes some microseconds per wavefront, so it runs only in the first launch.
        let levels = if first { Level::available() } else { vec![Level::best()] };
        let ways = levels.into_iter().flat_map(|level| [(Engine::Fast, level), (Engine::Compiled, level)]);
        for (engine, level) in first.then_some((Engine::Reference, Level::best())).into_iter().chain(ways) {
            let options = Options { engine, level: Some(level), mode: Mode::Lenient, ..Options::default() };
            let outcome = run(&program, &launch, &options).unwrap_or_else(|error| panic!("{error}"));
            for (target, expected) in expected.iter().enumerate() {
                let found = &outcome.export(ExportKind::Pixel, target as u16).expect("it is exported").values;
                if let Some(lane) = (0..values.len()).find(|lane| found[*lane] != expected[*lane]) {
                    panic!(
                        "{} on {engine}, {}, of {:x?}: {:x?}, not {:x?}",
                        opcodes[target].name(),
                        level.name(),
                        values[lane],
                        found[lane],
                        expected[lane]
                    );
                }
            }
        }
        (launches, first) = (launches + 1, false);
    };
    each_block(0x5eed_2430, |block| {
        words.extend(block.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]]));
        if words.len() == BLOCKS * BLOCK / 4 {
            go(&mut words);
        }
    });
    let spent = spent().since(before);
    println!("{launches} launches of {} words, {} bytes of code", BLOCKS * BLOCK, spent.bytes);
    spent.bytes
}

#[test]
fn exact_functions_are_the_same_on_every_engine() {
    // These opcodes have templates: they are compiled wherever compilation is possible.
    let code = check(&OPCODES[0]);
    assert!(code > 0 || Level::best().kind() < Kind::Avx2);
}

#[test]
fn curves_are_the_same_on_every_engine() {
    check(&OPCODES[1]);
}

#[test]
fn clamped_functions_and_integers_are_the_same_on_every_engine() {
    check(&OPCODES[2]);
}
