//! Executes the flow constructs of source texts. Every lane ends as if it had run alone.

use std::sync::Arc;

use reconverge_r500::launch::{Input, Launch};
use reconverge_r500::run::run;
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::Options;

const OUT: &str = "OUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[1] {TEX_SEM_WAIT}\n";

/// Returns temp[1].r of each lane after `source`. temp[0] holds the lane's inputs.
fn temp1(source: &str, lanes: &[[f32; 4]]) -> Vec<f32> {
    let assembled = assemble(&format!("{source}{OUT}")).unwrap_or_else(|errors| panic!("{errors:?}"));
    let setup = Arc::new(Setup::new(&assembled.program).unwrap());
    let values = lanes.iter().map(|lane| lane.map(f32::to_bits)).collect();
    let inputs = vec![Input { temp: 0, values }];
    let launch = Launch { lanes: lanes.len(), inputs, ..Launch::default() };
    let outcome = run(&setup, &launch, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    outcome.lanes().map(|lane| f32::from_bits(lane.color[0][0])).collect()
}

/// Sets the ALU result to whether the channel of temp[0] is not zero.
fn test(channel: char) -> String {
    format!("ALU alu_result[NE].r = MAX src0.{channel}00, src0.{channel}00 : src0=temp[0]\n")
}

/// Adds `value` to temp[1].r.
fn add(value: u32) -> String {
    format!("ALU temp[1].r = MAD src0.r00, src1.111, src2.r00 : src0=temp[1] src1=#1 src2=#{value}\n")
}

/// Returns sixteen sets of four lanes: every combination of two bits for lanes 0 and 1, with fixed other lanes.
fn lane_sets() -> Vec<Vec<[f32; 4]>> {
    let lane = |bits: u32| [(bits & 1) as f32, (bits >> 1 & 1) as f32, (bits >> 2 & 1) as f32, 0.0];
    (0..64).map(|n| vec![lane(n & 7), lane(n >> 3), lane(n & 7), lane(n >> 3)]).collect()
}

#[track_caller]
fn lanes_agree_with_themselves_alone(source: &str) {
    for lanes in lane_sets() {
        let alone: Vec<f32> = lanes.iter().map(|lane| temp1(source, &[*lane; 4])[0]).collect();
        assert_eq!(temp1(source, &lanes), alone, "{lanes:?}\n{source}");
    }
}

#[test]
fn a_merged_endif_wakes_the_lanes_of_every_if_it_closes() {
    let source = format!("{}if alu\n{}{}if alu\n{}endif 2\n{}", test('r'), add(1), test('g'), add(2), add(8));
    lanes_agree_with_themselves_alone(&source);
}

#[test]
fn three_merged_endifs_wake_the_lanes_of_every_if() {
    let source = format!(
        "{}if alu\n{}if alu\n{}{}if alu\n{}endif 3\n{}",
        test('r'),
        test('g'),
        add(1),
        test('b'),
        add(2),
        add(8)
    );
    lanes_agree_with_themselves_alone(&source);
}

#[test]
fn an_else_whose_endif_is_merged_takes_the_levels_around_it_along() {
    let source =
        format!("{}if alu\n{}if alu\n{}else\n{}endif 2\n{}", test('r'), test('g'), add(1), add(2), add(8));
    lanes_agree_with_themselves_alone(&source);
}

#[test]
fn merged_ifs_assemble_to_the_words_of_r500_md_5_5() {
    let words = assemble("if alu\nif alu\nif alu\nOUT nop\nendif 3\nOUT nop").unwrap().program.words;
    let flow: Vec<_> = words.chunks(6).take(3).map(|r| (r[2], r[3] >> 16)).collect();
    assert_eq!(flow, [(0x02000f00, 5), (0x06010f00, 5), (0x06020f00, 5)]);
}

#[test]
fn a_loops_end_takes_the_integer_constant_of_its_head() {
    let words = assemble("loop int[3]\nOUT nop\nendloop\nOUT nop").unwrap().program.words;
    assert_eq!(words[12 + 3], 0x0001_0300);
    let words = assemble("loop int[3]\nOUT nop\nendloop int[0]\nOUT nop").unwrap().program.words;
    assert_eq!(words[12 + 3], 0x0001_0000, "what is said stays");
}

#[test]
fn a_global_label_counts_from_slot_0() {
    let source = ".state US_CODE_OFFSET OFFSET_ADDR=4\n.base 4\ngoto global -> e\nOUT nop\ne:\nOUT nop";
    assert_eq!(assemble(source).unwrap().program.words[3], 0x8006_0000);
    assert_eq!(assemble(&source.replace("global ", "")).unwrap().program.words[3], 0x0002_0000);
}

#[test]
fn a_register_known_by_its_address_alone_keeps_its_value() {
    let program = assemble(".state 0x4bdc 0x7\nOUT nop").unwrap().program;
    assert_eq!(program.state, [("0x4bdc".to_owned(), 7)]);
}

#[track_caller]
fn the_error(source: &str) -> String {
    match assemble(source) {
        Ok(_) => panic!("no error"),
        Err(errors) => errors[0].to_string(),
    }
}

#[test]
fn what_would_silently_be_something_else_is_an_error() {
    assert_eq!(
        the_error("ALU temp[0].r = MAD src0.rgb, src1.rgb"),
        "MAD takes 3 operands, not 2 (expected 3 operands, separated by commas)"
    );
    assert_eq!(
        the_error("ALU temp[1].r, temp[2].g = FRC src0.rgb"),
        "a second destination of the same kind (a half writes at most one temporary and one output)"
    );
    let deep =
        format!("loop int[0]\n{}break\n{}endloop\nOUT nop", "if alu\n".repeat(32), "endif\n".repeat(32));
    assert_eq!(
        the_error(&deep),
        "`break` leaves 32 ifs (B_POP_CNT counts to 31: nest fewer ifs in the loop)"
    );
    let full = format!("goto past\n{}past:", "OUT nop\n".repeat(511));
    assert_eq!(
        the_error(&full),
        "the target is at address 512, outside 0 to 511 (addresses count from US_CODE_OFFSET)"
    );
}
