//! Tests races on the local data share, and reads of unwritten dwords, on every engine.
//!
//! MAN p. 35: a thread writes its own area and reads any of its group. No instruction of R700 orders wavefronts.

use reconverge_isa::Program;
use reconverge_r700::cause::Cause;
use reconverge_r700::chip::Chip;
use reconverge_r700::control::Stage;
use reconverge_r700::launch::{Input, Launch};
use reconverge_r700::run::{RunError, run, run_in_pieces};
use reconverge_r700::text::assemble;
use reconverge_simt::{Engine, Mode, Options};

/// Each lane writes R0 to its entry, and reads the entry at bank R2.x, dword R2.y.
const SHARED: &str = "TEX:\n LOCAL_DS_WRITE R0 DST_STRIDE(4) WAVE_REL\n LOCAL_DS_READ R1.xyzw, R2.x SRC_Y(Y)
EXPORT_DONE: PIXEL[0], R1.xyzw END_OF_PROGRAM\n";

fn program(source: &str) -> Program {
    Program::from_words(assemble(source, Chip::RV770).expect("it assembles").words)
}

/// Returns a launch in which R0.x is the lane's number and each lane reads the entry of the lane `other`.
fn launch(lanes: usize, other: impl Fn(usize) -> usize) -> Launch {
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
    launch.environment_mut().num_gprs = 4;
    launch.inputs.push(Input { gpr: 0, values: (0..lanes).map(|lane| [lane as u32; 4]).collect() });
    let entry = |lane: usize| [other(lane) as u32 & 3, other(lane) as u32 / 4 * 4, 0, 0];
    launch.inputs.push(Input { gpr: 2, values: (0..lanes).map(entry).collect() });
    launch
}

/// Returns the cause of the trap, if there is one, on all engines.
fn on_all(source: &str, launch: &Launch, options: &Options) -> Option<Cause> {
    let program = program(source);
    let ends = Engine::ALL.map(|engine| match run(&program, launch, &Options { engine, ..*options }) {
        Ok(_) => None,
        Err(RunError::Trap(trap)) => Some((trap.group, trap.trap)),
        Err(other) => panic!("{engine}: {other}"),
    });
    for (engine, end) in Engine::ALL.iter().zip(&ends) {
        assert_eq!(end, &ends[0], "{engine}");
    }
    let [first, ..] = ends;
    first.map(|(_, trap)| {
        let lane = match &trap.cause {
            Cause::Race { accesses, .. } => Some(accesses[1].lane),
            Cause::Unwritten { lane, .. } => Some(*lane),
            _ => None,
        };
        assert_eq!(trap.lanes.lowest(), lane);
        trap.cause
    })
}

fn strict(source: &str, launch: &Launch) -> Option<Cause> {
    on_all(source, launch, &Options::default())
}

#[test]
fn lanes_of_a_wavefront_share_without_a_race() {
    for lanes in [1, 64, 128, 200] {
        let within = launch(lanes, |lane| (lane ^ 1).min(lanes - 1));
        assert_eq!(strict(SHARED, &within), None, "{lanes} lanes");
    }
}

#[test]
fn a_read_of_what_another_wavefront_wrote_is_a_race() {
    let launch = launch(128, |lane| lane % 64);
    let cause = strict(SHARED, &launch).expect("a trap");
    assert_eq!(
        cause.to_string(),
        "race on bank 0, dword 0 of the local data share: LOCAL_DS_WRITE at 2 by lane 0 of wavefront 0 and LOCAL_DS_READ \
         at 4 by lane 0 of wavefront 1, and nothing orders wavefronts"
    );
    assert_eq!(on_all(SHARED, &launch, &Options { mode: Mode::Lenient, ..Options::default() }), None);
    assert_eq!(on_all(SHARED, &launch, &Options { race_check: false, ..Options::default() }), None);
}

#[test]
fn writes_of_two_wavefronts_to_one_dword_race_unless_they_write_the_same() {
    // Counted within the wavefront, the areas of all wavefronts are the same.
    let source = SHARED.replace(" WAVE_REL", "");
    let mut launch = launch(128, |lane| lane % 64);
    match strict(&source, &launch) {
        Some(Cause::Race { bank: 0, dword: 0, accesses }) => {
            // The first wavefront has read its entry before the second one writes it.
            assert_eq!(accesses.map(|access| (access.writes, access.wavefront)), [(true, 0), (true, 1)]);
        }
        other => panic!("{other:?}"),
    }
    launch.inputs[0].values = (0..128).map(|lane| [lane % 64; 4]).collect();
    assert_eq!(strict(&source, &launch), None);
}

#[test]
fn a_read_of_what_nothing_has_written_is_named() {
    let beyond = launch(64, |lane| lane + 64 * usize::from(lane == 5));
    let cause = strict(SHARED, &beyond).expect("a trap");
    assert_eq!(cause.to_string(), "LOCAL_DS_READ by lane 5: nothing has written bank 1, dword 68 before");
    assert_eq!(on_all(SHARED, &beyond, &Options { mode: Mode::Lenient, ..Options::default() }), None);
}

#[test]
fn a_launch_in_pieces_has_the_same_race() {
    let whole = launch(256, |lane| if lane == 200 { 3 } else { lane });
    let race = strict(SHARED, &whole).expect("a trap");
    for piece in [64, 128] {
        let inputs = |range: std::ops::Range<usize>| {
            let part =
                |input: &Input| Input { gpr: input.gpr, values: input.values[range.clone()].to_vec().into() };
            whole.inputs.iter().map(part).collect()
        };
        match run_in_pieces(&program(SHARED), &whole, &Options::default(), piece, inputs, |_, _| {}) {
            Err(RunError::Trap(trap)) => assert_eq!(trap.trap.cause, race),
            other => panic!("{other:?}"),
        }
    }
}
