//! Runs random ALU clauses on every engine: any instructions in a group, in any order, with any predicates.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{FetchProgram, Input, Launch, Stage};
use reconverge_r700::run::{Loaded, run as run_once};
use reconverge_r700::text::assemble;
use reconverge_simt::{Engine, Mode, Options, Watch};
use reconverge_testkit::r700::{conditional, launch, program};
use reconverge_testkit::{Campaign, Random, special_words};

/// Options of lenient mode.
const LENIENT: Options = Options {
    mode: Mode::Lenient,
    engine: Engine::Fast,
    level: None,
    watchdog: 1 << 28,
    jobs: None,
    always_ahead: false,
    race_check: true,
};

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

#[test]
fn random_conditionals_and_loops_leave_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(1500, 0x1f83_d9ab_fb41_bd6b);
    let mut ended = 0;
    for _ in 0..programs {
        let program = conditional(&mut random);
        let limit = Some(1 + random.below(20));
        let mut launch = launch(&mut random);
        launch.environment_mut().dx10_loop_limit = limit;
        let options = Options { watchdog: 3000, ..LENIENT };
        ended += u64::from(run(&program, &launch, &options).is_ok());
    }
    println!("{ended} ended");
    assert!(ended * 10 >= programs * 9, "{ended}");
}

/// Slots whose factors are both the constant 0 still change the sign of a sum that is -0.
#[test]
fn dot_products_of_constant_zeros_leave_the_same_on_every_engine() {
    let special = special_words();
    let mut random = Random::new(7);
    let lanes = 256;
    let input = |gpr: u8, random: &mut Random| {
        let word = |random: &mut Random| {
            if random.below(3) == 0 { random.one_of(&special) } else { random.next() << 12 ^ random.next() }
        };
        Input { gpr, values: (0..lanes).map(|_| [(); 4].map(|()| word(random))).collect() }
    };
    for (opcode, zeros) in
        ["DOT4", "DOT4_IEEE"].into_iter().flat_map(|opcode| (0..16).map(move |zeros| (opcode, zeros)))
    {
        let slot = |(number, chan): (usize, &str)| {
            let factors = match zeros >> number & 1 {
                0 => format!("R0.{chan}, R1.{chan}"),
                _ => "0, 0".to_owned(),
            };
            let place = if number == 0 { "0" } else { "" };
            format!(" {place} {chan}: {opcode} R2.{chan}, {factors}\n")
        };
        let slots: String = ["x", "y", "z", "w"].into_iter().enumerate().map(slot).collect();
        let source = format!("ALU:\n{slots}EXPORT_DONE: PIXEL[0], R2.xyzw END_OF_PROGRAM\n");
        let program = Program::from_words(assemble(&source, Chip::RV770).expect("it assembles").words);
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
        launch.inputs = vec![input(0, &mut random), input(1, &mut random)];
        run(&program, &launch, &LENIENT).expect("it ends");
        // Sums of only -0.
        let all = |gpr: u8, word: u32| Input { gpr, values: vec![[word; 4]; lanes].into() };
        launch.inputs = vec![all(0, 0x8000_0000), all(1, 0x3f80_0000)];
        run(&program, &launch, &LENIENT).expect("it ends");
    }
}

/// Runs a clause of two groups in each form, after some pushes and in some cases in a loop. If the form needs a loop or
/// an entry that does not exist, or the stack has no room, the program traps, at the clause or at its last group.
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
                (
                    launch.environment_mut().num_gprs,
                    launch.environment_mut().clause_temps,
                    launch.environment_mut().stack_size,
                ) = (3, 0, stack_size);
                launch.environment_mut().resources.loop_constants[0] = LoopConstant(2);
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

/// Outside every loop with an index, aL does not exist, whether or not a component of the register is used.
#[test]
fn a_fetch_without_a_component_of_its_register_asks_for_al_on_every_engine() {
    for fetch in [
        "SET_GRADIENTS_H R3.xyzw, R[1+aL].1_11, t0, s0",
        "GET_GRADIENTS_V R3.xyzw, R[1+aL].0011, t0, s0",
        "GET_GRADIENTS_H R[1+aL].____, R0.xyzw, t0, s0",
    ] {
        let source = format!("TEX:\n {fetch}\nNOP: END_OF_PROGRAM\n");
        let program = Program::from_words(assemble(&source, Chip::RV770).expect("it assembles").words);
        let launch = launch(&mut Random::new(1));
        let trap = run(&program, &launch, &Options::default()).expect_err(fetch).to_string();
        assert!(trap.contains("aL is used outside every loop"), "{fetch}: {trap}");
        assert!(run(&program, &launch, &LENIENT).is_ok(), "{fetch}");
    }
}

/// The program ends with a conditional or a loop. The program traps after its last instruction, although the list of all
/// instructions continues with the fetch program.
#[test]
fn a_program_without_an_end_traps_on_every_engine() {
    let push = "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT_INT _.x, (20).x, R0.x UPDATE_EXEC_MASK\n";
    let (add, more) = (" 1 x: ADD_INT R1.x, R0.x, R0.x\n", " 2 x: ADD_INT R1.x, R0.x, R1.x\n");
    let words = |source: &str| assemble(source, Chip::RV770).expect("it assembles").words;
    for end in [
        format!("JUMP: ADDR(@out)\nALU:\n{add}@out:\nPOP: POP_CNT(1)\n"),
        format!("JUMP: ADDR(@out) POP_CNT(1)\nALU_POP_AFTER:\n{add}@out:\n"),
        format!(
            "JUMP: ADDR(@else)\nALU:\n{add}@else:\nELSE: ADDR(@out) POP_CNT(1)\nALU_POP_AFTER:\n{more}@out:\n"
        ),
        String::from(
            "JUMP: ADDR(@out)\n@out:\nPOP: POP_CNT(1)\nLOOP_START_DX10: ADDR(@end)\n@body:\nALU_BREAK:\n \
             3 x: PRED_SETGT_INT _.x, 0, R0.x UPDATE_EXEC_MASK\nLOOP_END: ADDR(@body)\n@end:\n",
        ),
    ] {
        let mut main = words(&format!("{push}{end}NOP: END_OF_PROGRAM\n"));
        // No instruction has this number.
        *main.iter_mut().find(|word| **word == words("NOP: END_OF_PROGRAM\n")[1]).expect("a NOP") =
            0x0f80_0000;
        // Compiling a clause of this length saves time.
        let groups: String = (0..8).map(|group| format!(" {group} x: ADD_INT R1.x, R0.x, R1.x\n")).collect();
        let fetch = words(&format!("ALU:\n{groups}RETURN:\n"));
        // In a launch of many wavefronts, code outside loops is compiled too.
        let mut launch = Launch::new(Chip::RV770, Stage::Vertex, 1 << 15);
        launch.inputs.push(Input { gpr: 0, values: (0..1 << 15).map(|lane| [lane % 64, 0, 0, 0]).collect() });
        for fetch in [None, Some(FetchProgram { words: fetch.into(), start: 0 })] {
            launch.environment_mut().fetch_program = fetch;
            for options in [Options::default(), LENIENT] {
                let trap = run(&Program::from_words(main.clone()), &launch, &options).expect_err(&end);
                assert!(trap.to_string().contains("is not an instruction"), "{end}: {trap}");
            }
        }
    }
}

/// The next launch reuses a wavefront that has ended. Registers, predicates, masks and the stack must equal those of a
/// new one.
#[test]
fn a_launch_leaves_nothing_to_the_next_one_of_its_program() {
    let (programs, mut random) = Campaign::of_random(600, 0x510e_527f_ade6_82d1);
    let (mut ended, mut mixed) = (0, 0);
    for round in 0..programs {
        let code = if random.once_in(2) { program(&mut random) } else { conditional(&mut random) };
        let engine = random.one_of(&[Engine::Fast, Engine::Fast, Engine::Compiled]);
        let mode = random.one_of(&[Mode::Lenient, Mode::Lenient, Mode::Strict]);
        let options = Options { engine, mode, watchdog: 3000, ..LENIENT };
        let first = launch(&mut random).environment;
        let mut loaded = Loaded::new(&code, &first, &options).unwrap();
        let (mut good, mut bad) = (0, 0);
        for number in 0..8 {
            let mut launch = launch(&mut random);
            launch.environment_mut().chip = first.chip;
            launch.environment_mut().dx10_clamp = first.dx10_clamp;
            launch.environment_mut().dx10_loop_limit = Some(9);
            if random.once_in(6) {
                // Another number of registers requires another form of the program.
                launch.environment_mut().num_gprs = 5;
            }
            // Fewer inputs than before, or none.
            launch.inputs.truncate(random.one_of(&[4, 4, 2, 0]));
            loaded = loaded.with_environment(&launch.environment).unwrap();
            let found = loaded.run_watched(launch.clone(), Watch::Nothing);
            assert_eq!(found, run_once(&code, &launch, &options), "round {round}, launch {number}");
            if found.is_ok() { good += 1 } else { bad += 1 }
        }
        ended += good;
        mixed += u64::from(good > 0 && bad > 0);
    }
    println!("{ended} ended, {mixed} programs ended and trapped");
    assert!(ended >= 2 * programs && mixed > 0);
}
