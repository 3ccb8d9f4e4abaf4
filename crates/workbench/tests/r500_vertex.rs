//! Programs of R500's vertex unit through the workbench's interface.

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_simt::{Engine, Options};
use reconverge_testkit::shared;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Style, open, round_trip};

const LOOP: &str = include_str!("../../../corpus/r500/vertex-loop.s");
const LAUNCH: &str = include_str!("../../../corpus/r500/vertex-loop.toml");

#[test]
fn a_source_states_its_stage_and_comes_back_from_its_text() {
    let opened = open(LOOP.as_bytes(), true, &Known::default()).unwrap();
    assert_eq!(opened.target.stage, Some(Stage::Vertex));
    let program = &opened.image.programs[0];
    round_trip(&opened.target, program).unwrap();
    let machine = opened.target.machine();
    let hex = Style { hex: true, structure: true, ..Style::default() };
    let text = machine.disassemble(&opened.target, program, hex).unwrap().text;
    assert!(text.contains("VECTOR_NO_OP  ; 0: loop, 8 times slots 4 to 9\n"), "{text}");
    assert_eq!(machine.lint(&opened.target, program).unwrap(), []);
    let explained = machine.explain_at(&opened.target, program, 5).unwrap();
    assert_eq!(explained.text, "VE_PRED_SET_NEQ_PUSH t1.w = t1, t2.x");
    assert_eq!(explained.words.len(), 4);
}

#[test]
fn every_engine_leaves_what_the_launch_expects() {
    let opened = open(LOOP.as_bytes(), true, &Known::default()).unwrap();
    let launch = LaunchFile::parse(LAUNCH).unwrap();
    for engine in [Engine::Reference, Engine::Fast, Engine::Lockstep] {
        let options = Options { engine, ..Options::default() };
        let result = launch.run(&opened.image, &opened.image.programs[0], &options, &NoFiles).unwrap();
        let (name, array) = &result.outputs[0];
        let json = array.to_json().to_string();
        assert_eq!(name, "o0");
        assert_eq!(json.replace(".0", ""), "[[0.625,4,0,1],[0.5,0,0,1],[4,8,0,1],[0.5,1,0,1]]", "{engine}");
    }
}

#[test]
fn inputs_of_the_other_unit_are_refused() {
    let opened = open(LOOP.as_bytes(), true, &Known::default()).unwrap();
    let launch = LaunchFile::parse("isa = \"r500\"\ninput = [{ temp = 0, values = [1] }]\n").unwrap();
    let refused = launch.prepare(&opened.image, &opened.image.programs[0], &NoFiles);
    assert!(refused.is_err_and(|error| error.to_string().contains("attributes")));
}

/// The vertex programs of a driver. Their files state chip and stage.
#[test]
fn the_programs_of_a_driver_come_back_from_their_text() {
    for name in ["pvs-0", "pvs-1", "pvs-2"] {
        let Some(file) = shared(&format!("binaries/r500/xf86-video-ati/{name}.hex")) else { return };
        let known = Known { isa: Some(Isa::R500), stage: Some(Stage::Vertex), ..Known::default() };
        let opened = open(&std::fs::read(file).unwrap(), false, &known).unwrap();
        let program = &opened.image.programs[0];
        round_trip(&opened.target, program).unwrap_or_else(|why| panic!("{name}: {why}"));
        let text =
            opened.target.machine().disassemble(&opened.target, program, Style::default()).unwrap().text;
        assert!(!text.contains(".word") && text.contains("o0"), "{name}: {text}");
    }
}
