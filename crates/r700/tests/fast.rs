//! Random ALU clauses on every engine: any instructions in a group, in any order, with any predicates.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::{Chip, Family};
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::meaning::{op2, op3};
use reconverge_r700::text::assemble;
use reconverge_r700::words::{
    AluDword0, AluDword1Op2R700, AluDword1Op3, IndexModeR700, Omod, Op2, Op3, PredSel,
};
use reconverge_simt::Options;
use reconverge_simt::{Engine, Mode};
use reconverge_testkit::{Campaign, Random};

/// Options of lenient mode.
const LENIENT: Options =
    Options { mode: Mode::Lenient, engine: Engine::Fast, level: None, watchdog: 1 << 28, jobs: None };

/// A register, a constant of the file, an inline constant, PV or PS.
fn source(random: &mut Random) -> (u16, u8) {
    let chan = random.below(4) as u8;
    let sel = match random.below(10) {
        0..6 => random.below(4) as u16,
        6 => 248 + random.below(5) as u16,
        7 => 256 + random.below(6) as u16,
        8 => 254,
        _ => 255,
    };
    (sel, chan)
}

/// Opcodes of the four vector slots at once.
const ACROSS: [Op2; 3] = [Op2::DOT4, Op2::DOT4_IEEE, Op2::MAX4];

fn instruction(random: &mut Random, chan: u8, across: Option<Op2>, last: bool) -> [u32; 2] {
    let sources = [source(random), source(random), source(random)];
    let relative = random.once_in(60);
    let low = AluDword0 {
        src0_sel: sources[0].0,
        src0_rel: relative && sources[0].0 < 128,
        src0_chan: sources[0].1,
        src0_neg: random.once_in(4),
        src1_sel: sources[1].0,
        src1_rel: false,
        src1_chan: sources[1].1,
        src1_neg: random.once_in(4),
        index_mode: IndexModeR700::AR_X,
        pred_sel: match random.below(8) {
            0 => PredSel::ZERO,
            1 => PredSel::ONE,
            _ => PredSel::OFF,
        },
        last,
    };
    let dst_gpr = random.below(4) as u8;
    let clamp = random.once_in(6);
    // Opcodes of several slots, mostly without their other slots: rarely, since strict mode refuses them.
    let any = random.once_in(12);
    if across.is_none() && random.once_in(4) {
        let codes: Vec<Op3> =
            Op3::ALL.iter().copied().filter(|code| any || !op3(*code).meaning.spans_slots()).collect();
        let code = codes[random.below(codes.len() as u32) as usize];
        let high = AluDword1Op3 {
            src2_sel: sources[2].0,
            src2_rel: false,
            src2_chan: sources[2].1,
            src2_neg: random.once_in(4),
            alu_inst: code,
            bank_swizzle: 0,
            dst_gpr,
            dst_rel: random.once_in(60),
            dst_chan: chan,
            clamp,
        };
        return [low.pack(), high.pack()];
    }
    let alone =
        |code: &Op2| any || op2(*code, Family::R700).is_some_and(|opcode| !opcode.meaning.spans_slots());
    let codes: Vec<Op2> = Op2::ALL.iter().copied().filter(alone).collect();
    let code = across.unwrap_or(codes[random.below(codes.len() as u32) as usize]);
    let high = AluDword1Op2R700 {
        src0_abs: random.once_in(5),
        src1_abs: random.once_in(5),
        update_execute_mask: random.once_in(12),
        update_pred: random.once_in(2),
        write_mask: !random.once_in(4),
        omod: [Omod::OFF, Omod::OFF, Omod::M2, Omod::D2][random.below(4) as usize],
        alu_inst: code as u16,
        bank_swizzle: 0,
        dst_gpr,
        dst_rel: random.once_in(60),
        dst_chan: chan,
        clamp,
    };
    [low.pack(), high.pack()]
}

/// One clause of some groups, then all four registers exported.
fn program(random: &mut Random) -> Program {
    let mut slots: Vec<[u32; 2]> = Vec::new();
    for _ in 0..1 + random.below(8) {
        let across = random.once_in(8).then(|| ACROSS[random.below(3) as usize]);
        let chosen: Vec<u8> = match across {
            Some(_) => vec![0, 1, 2, 3],
            None => (0..4).filter(|_| random.once_in(2)).collect(),
        };
        let chosen = if chosen.is_empty() { vec![random.below(4) as u8] } else { chosen };
        for (number, chan) in chosen.iter().enumerate() {
            slots.push(instruction(random, *chan, across, number + 1 == chosen.len()));
        }
    }
    let form = [8, 8, 9, 10][random.below(4) as usize];
    // The push that a pop behind the clause needs; the clause; four exports.
    let mut words = vec![0, 0x8580_0000, 6, form << 26 | 1 << 31 | (slots.len() as u32 - 1) << 18];
    for register in 0..4u32 {
        // EXPORT, and EXPORT_DONE with END_OF_PROGRAM.
        let high = if register == 3 { 0x9420_0688 } else { 0x9380_0688 };
        words.extend([0xc000_0000 | register << 15 | register, high]);
    }
    words.extend(slots.into_iter().flatten());
    Program::from_words(words)
}

fn launch(random: &mut Random) -> Launch {
    let chip = [Chip::RV770, Chip::RV770, Chip::named("rv730").unwrap()][random.below(3) as usize];
    let lanes = 1 + random.below(130) as usize;
    let mut launch = Launch::new(chip, Stage::Pixel, lanes);
    launch.num_gprs = 4;
    launch.clause_temps = 0;
    launch.dx10_clamp = random.once_in(2);
    let word = |random: &mut Random| match random.below(4) {
        0 => [0, 0x8000_0000, 1, 0x7f80_0000, 0x7fc0_0000, 0xff80_0001, 0x3f80_0000, 0x0080_0000]
            [random.below(8) as usize],
        1 => (random.below(9) as f32 - 4.0).to_bits(),
        2 => random.below(6),
        _ => random.next(),
    };
    for gpr in 0..4 {
        let values = (0..lanes).map(|_| [0; 4].map(|_: u32| word(random))).collect();
        launch.inputs.push(Input { gpr, values });
    }
    launch.resources.constant_file = (0..5).map(|_| [0; 4].map(|_: u32| word(random))).collect();
    launch
}

#[test]
fn random_groups_leave_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(5000, 0x9e37_79b9_7f4a_7c15);
    let (mut strict, mut lenient) = (0, 0);
    for _ in 0..programs {
        let program = program(&mut random);
        let launch = launch(&mut random);
        strict += u64::from(run(&program, &launch, &Options::default()).is_ok());
        lenient += u64::from(run(&program, &launch, &LENIENT).is_ok());
    }
    println!("{strict} ran in strict mode, {lenient} in lenient mode");
    assert!(strict * 25 >= programs * 2 && lenient * 5 >= programs * 3, "{strict}, {lenient}");
}

/// A clause of two groups in each form, behind some pushes and perhaps in a loop: where the form wants a loop or an
/// entry that is not there, or the stack has no room, it is a trap, at the clause or at its last group.
#[test]
fn a_clause_traps_at_the_same_place_on_every_engine() {
    const FORMS: [&str; 7] = [
        "ALU",
        "ALU_PUSH_BEFORE",
        "ALU_POP_AFTER",
        "ALU_POP2_AFTER",
        "ALU_CONTINUE",
        "ALU_BREAK",
        "ALU_ELSE_AFTER",
    ];
    let mut traps = 0;
    let mut runs = 0;
    for form in FORMS {
        for (pushes, looped) in [(0, false), (1, false), (2, false), (0, true), (1, true)] {
            let push = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT_INT _.x, (40).x, R0.x UPDATE_EXEC_MASK\n";
            let (begin, end) = match looped {
                true => ("LOOP_START: ADDR(@out)\n@body:\n", "LOOP_END: ADDR(@body)\n@out:\n"),
                false => ("", ""),
            };
            let source = format!(
                "NOP:\n{begin}{}{form}:\n 1 x: ADD_INT R1.x, R0.x, R0.x\n\
                 2 x: PRED_SETNE_INT R2.x, R1.x, (20).x UPDATE_EXEC_MASK UPDATE_PRED\n{end}\
                 EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n",
                push.repeat(pushes)
            );
            let assembled = assemble(&source, Chip::RV770);
            let assembled = assembled.unwrap_or_else(|faults| panic!("{source}: {}", faults[0]));
            let program = Program::from_words(assembled.words);
            for stack_size in [None, Some(1), Some(0)] {
                let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 64);
                (launch.num_gprs, launch.clause_temps, launch.stack_size) = (3, 0, stack_size);
                launch.resources.loop_constants[0] = LoopConstant(2);
                launch.inputs.push(Input { gpr: 0, values: (0..64).map(|lane| [lane, 0, 0, 0]).collect() });
                for options in [Options::default(), LENIENT] {
                    match run(&program, &launch, &options) {
                        Ok(_) => runs += 1,
                        Err(_) => traps += 1,
                    }
                }
            }
        }
    }
    println!("{runs} ran, {traps} trapped");
    assert!(runs > 20 && traps > 20, "{runs}, {traps}");
}

#[test]
fn a_watchdog_bites_at_the_same_instruction_on_every_engine() {
    let mut random = Random::new(0xd1b5_4a32_d192_ed03);
    for _ in 0..200 {
        let program = program(&mut random);
        let launch = launch(&mut random);
        for watchdog in 0..12 {
            let _ = run(&program, &launch, &Options { watchdog, ..LENIENT });
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut random = Random::new(0x1234_5678_9abc_def1);
    for _ in 0..20 {
        let program = program(&mut random);
        let mut launch = launch(&mut random);
        launch.lanes = 64 * 400 + 7;
        let options = Options { engine: Engine::Fast, ..LENIENT };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| reconverge_r700::run::run(&program, &launch, &options))
        };
        let reference = on(1);
        assert!(reference == on(2) && reference == on(5), "threads matter");
    }
}
