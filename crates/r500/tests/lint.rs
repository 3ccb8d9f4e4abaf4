//! The rules of `lint`. For each rule, one program breaks only this rule, and a similar program breaks none.

use reconverge_isa::lint::MALFORMED;
use reconverge_r500::lint::{RULES, lint};
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;

/// Returns rule, slot and message of each finding.
fn findings(source: &str) -> Vec<(&'static str, u32, String)> {
    let assembled = assemble(source).unwrap_or_else(|errors| panic!("{source}: {}", errors[0]));
    let found = lint(&Setup::new(&assembled.program).unwrap());
    found.into_iter().map(|finding| (finding.rule.name, finding.pc, finding.message)).collect()
}

const OUT: &str = "OUT nop {TEX_SEM_WAIT}\n";
const COMPARE: &str = "ALU alu_result[LT].r = MAD src0.rrr, src0.111, src0.000 : src0=temp[0]\n";
const PREDICATE: &str = "ALU pred[GE].r = MAD src0.rrr, src0.111, src0.000 : src0=temp[0]\n";
const INTS: &str = ".int 0 2 0 0\n.int 1 3 0 1\n";

fn nested(open: &str, close: &str, times: usize) -> String {
    open.repeat(times) + &close.repeat(times)
}

#[test]
fn each_rule_is_broken_alone_and_kept_by_a_neighbour() {
    let fetch = "TEX temp[1].rgba = LD tex[0], temp[0].rgba TEX_SEM_ACQUIRE {TEX_SEM_WAIT}\n";
    let of_1 = "ALU temp[2].r = MAX src0.rrr, src0.rrr : src0=temp[1]";
    let to_1 = "ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[0]";
    let of_2 = "OUT out[A].r = MAX*off src0.rrr, src0.rrr : src0=temp[2]\n";
    let branches = |depth| format!("{PREDICATE}{}{OUT}", nested("if pred.r\n", "endif\n", depth));
    let loops = |depth| format!("{INTS}{}{OUT}", nested("loop int[0]\n", "endloop int[0]\n", depth));
    let word = |words: &str, end: &str| format!(".word {words}\n{end}");
    let inputs = ".state RS_INST_COUNT 0\n.state RS_INST_0 0x10\n";
    let in_loop =
        |text: &str| format!("{INTS}{PREDICATE}loop int[0]\nif pred.r\n{text}\nendif\nendloop int[0]\n{OUT}");
    let jump_behind = |jump: &str| {
        format!(
            "{PREDICATE}if pred.r\n{COMPARE}{jump}endif\nout:\nALU temp[0].r = MAX src0.000, src0.000\n{OUT}"
        )
    };
    #[rustfmt::skip]
    let cases = [
        ("malformed", format!("{COMPARE}FC JUMP FUNC=0xf0 -> 3\n.word 0 0 0 0 0 6\n{OUT}"), format!("{COMPARE}FC JUMP FUNC=0xf0 -> 3\n.word 0 0 0 0 0 5\n{OUT}")),
        ("reserved-bits", word("0x402 0 0x8 0x10000 0 0", OUT), word("0x402 0 0 0x10000 0 0", OUT)),
        ("fc-predicate", word("0x40a 0 0xff00 0x10000 0 0", OUT), word("0x412 0 0xff00 0x10000 0 0", OUT)),
        ("omask", word("0x47807 0x02400000 0xe400f400 0 0 0", OUT), word("0x7807 0x02400000 0xe400f400 0 0 0", OUT)),
        ("sop-source", word("0x800 0 0 0 0 10", OUT), word("0x800 0 0 0 10 10", OUT)),
        ("dp-source", word("0x4000 0 0 0 1 0", OUT), word("0x4000 0 0 0 1 1", OUT)),
        ("omod-disabled", word("0x800 0 0 0x1c000000 0 0", OUT), word("0x800 0 0 0x1c000000 0 5", OUT)),
        ("clamp-ignored", word("0x80800 0 0 0x1c000000 0 5", OUT), word("0x80800 0 0 0 0 5", OUT)),
        ("relative-inline", word("0 0x280 0 0 0 0", OUT), word("0 0x80 0 0 0 0", OUT)),
        ("alu-result-on-out", word("5 0 0 0x80000000 0 0", ""), word("5 0 0 0 0 0", "")),
        ("depth-on-alu", word("0 0 0 0 0x80000000 0", OUT), word("5 0 0 0 0x80000000 0", "")),
        ("frame", format!(".state US_PIXSIZE 1\n{of_1}\n{OUT}"), format!(".state US_PIXSIZE 2\n{of_1}\n{OUT}")),
        ("full-mode", format!(".state US_FC_CTRL 0\n{INTS}rep int[0]\nendrep int[0]\n{OUT}"), loops(1)),
        ("outside", format!("{COMPARE}FC JUMP FUNC=0xf0 -> 9\n{OUT}"), format!("{COMPARE}FC JUMP FUNC=0xf0 -> 2\n{OUT}")),
        ("outside", format!(".bool 1 false\nFC JUMP FUNC=0x55 BOOL=1 -> 9\n{OUT}"), format!(".bool 1 false\nFC JUMP FUNC=0x55 BOOL=1 -> 1\n{OUT}")),
        ("outside-constant", format!(".bool 1 true\nFC JUMP FUNC=0x55 BOOL=1 -> 9\n{OUT}"), format!(".bool 1 true\nFC JUMP FUNC=0x55 BOOL=1 -> 1\n{OUT}")),
        ("end", ".state US_CODE_ADDR END_ADDR=5\nhere:\ngoto here\n".to_owned(), OUT.to_owned()),
        ("end-out", format!("{to_1}\n"), format!("{to_1}\n{OUT}")),
        ("end-wait", "OUT nop\n".to_owned(), OUT.to_owned()),
        ("unreachable", format!("goto end\n{to_1}\n{to_1}\nend:\n{OUT}"), format!("goto end\nend:\n{OUT}")),
        ("branch-depth", branches(33), branches(32)),
        ("branch-depth", format!(".state US_FC_CTRL 0\n{}", branches(5)), format!(".state US_FC_CTRL 0\n{}", branches(4))),
        ("loop-depth", loops(5), loops(4)),
        ("call-depth", format!("call f\ngoto end\nf:\ncall f\nreturn\nend:\n{OUT}"), format!("call f\ngoto end\nf:\nreturn\nend:\n{OUT}")),
        ("no-if", format!("{PREDICATE}endif -> 0\n{OUT}"), branches(1)),
        ("no-loop", format!("break -> out\nout:\n{OUT}"), format!("{INTS}loop int[0]\nbreak\nendloop int[0]\n{OUT}")),
        ("loop-kind", format!("{INTS}loop int[0] -> 2\nendrep int[0] -> 1\n{OUT}"), loops(1)),
        ("loop-levels", in_loop("FC BREAKLOOP FUNC=0xff -> 6"), in_loop("break")),
        ("loop-levels", in_loop("continue pop=0 -> 5"), in_loop("continue")),
        ("loop-constant", format!("{INTS}loop int[0] -> 2\nendloop int[1] -> 1\n{OUT}"), loops(1)),
        ("loop-skip", format!("{INTS}loop int[0] -> 1\nendloop int[0] -> 1\n{OUT}"), loops(1)),
        ("loop-skip-inside", in_loop("if pred.r\nbreak\nendif\nloop int[0] all -> 7\nendloop int[0] -> 7"), in_loop("if pred.r\nbreak\nendif\nloop int[0] -> 8\nendloop int[0] -> 7")),
        ("loop-skip", in_loop("loop int[0] all -> 4\nendloop int[0] -> 4"), in_loop("loop int[0] -> 5\nendloop int[0] -> 4")),
        // After the branch in which lanes leave, other lanes are active.
        ("loop-skip", in_loop("if pred.r\nif pred.r\nbreak\nendif\nendif\nendif\nloop int[0] all -> 10\nendloop int[0] -> 10\nif pred.r"), in_loop("if pred.r\nbreak\nendif")),
        ("no-call", format!("{COMPARE}FC JUMP FUNC=0xf0 A_OP=POP -> 2\n{OUT}"), format!("{COMPARE}FC JUMP FUNC=0xf0 -> 2\n{OUT}")),
        ("return-levels", format!("call f\ngoto end\nf:\nreturn simple\nend:\n{OUT}"), format!("call f\ngoto end\nf:\nreturn\nend:\n{OUT}")),
        ("join", jump_behind("FC JUMP FUNC=0xf0 -> out\n"), jump_behind("FC JUMP FUNC=0xf0 B_OP1=DECR POP=1 -> out\n")),
        ("join", format!("{INTS}{COMPARE}FC JUMP FUNC=0xf0 -> 3\nloop int[0]\n{to_1}\nendloop int[0]\n{OUT}"), loops(2)),
        ("left-open", format!("FC JUMP FUNC=0 ANY B_OP0=INCR -> 0\n{OUT}"), format!("FC JUMP FUNC=0 ANY B_OP0=INCR -> 0\nendif -> 0\n{OUT}")),
        ("unwritten", format!("{inputs}{of_1}\n{of_2}{OUT}"), format!("{inputs}{to_1}\n{of_1}\n{of_2}{OUT}")),
        ("unwritten-path", format!("{inputs}{PREDICATE}if pred.r\n{to_1}\nendif\n{of_1}\n{of_2}{OUT}"), format!("{inputs}{PREDICATE}if pred.r\n{to_1}\nelse\n{to_1}\nendif\n{of_1}\n{of_2}{OUT}")),
        ("unwritten", format!("{inputs}TEX temp[3].r = LD tex[0], temp[1].rrrr\n{OUT}"), format!("{inputs}TEX temp[3].r = LD tex[0], temp[0].rrrr\n{of_1}\n{OUT}")),
        ("unwritten-predicate", format!("if pred.r\nendif\n{OUT}"), branches(1)),
        ("stale-result", format!("{COMPARE}if alu\nendif\nif alu\nendif\n{OUT}"), format!("{COMPARE}if alu\nendif\n{COMPARE}if alu\nendif\n{OUT}")),
        ("al-outside", format!("ALU temp[1].r = MAX src0.rrr, src0.rrr : src0=const[3+aL]\n{OUT}"), format!("{INTS}loop int[0]\nALU temp[1].r = MAX src0.rrr, src0.rrr : src0=const[3+aL]\nendloop int[0]\n{OUT}")),
        ("texture-wait", format!("{fetch}{of_1}\n{OUT}"), format!("{fetch}{of_1} {{TEX_SEM_WAIT}}\n{OUT}")),
        ("texture-overwrite", format!("{fetch}{to_1}\n{OUT}"), format!("{fetch}{to_1} {{TEX_SEM_WAIT}}\n{OUT}")),
        ("texture-wait", format!("{}{of_1} {{TEX_SEM_WAIT}}\n{OUT}", fetch.replace("TEX_SEM_ACQUIRE ", "")), format!("{}{}{of_1} {{TEX_SEM_WAIT}}\n{OUT}", fetch.replace("TEX_SEM_ACQUIRE ", ""), fetch.replace("temp[1]", "temp[3]"))),
        ("second-acquire", format!("{fetch}{}{OUT}", fetch.replace(" {TEX_SEM_WAIT}", "")), format!("{fetch}{fetch}{OUT}")),
        ("nop-presubtract", format!("{to_1}\nALU temp[2].r = MAX srcp.rrr, srcp.rrr : src0=temp[1] srcp=NEG\n{OUT}"), format!("{to_1} {{NOP}}\nALU temp[2].r = MAX srcp.rrr, srcp.rrr : src0=temp[1] srcp=NEG\n{OUT}")),
        ("nop-derivative", format!("{to_1}\nALU temp[2].r = MDH src0.rrr, -src0.111, src0.rrr : src0=temp[1]\n{OUT}"), format!("{to_1} {{NOP}}\nALU temp[2].r = MDH src0.rrr, -src0.111, src0.rrr : src0=temp[1]\n{OUT}")),
        ("alu-wait", format!("{COMPARE}if alu {{-ALU_WAIT}}\nendif\n{OUT}"), format!("{COMPARE}if alu\nendif\n{OUT}")),
    ];
    let mut wrong = Vec::new();
    for (rule, broken, whole) in &cases {
        let found = findings(broken);
        if found.is_empty() || found.iter().any(|(name, ..)| name != rule) {
            wrong.push(format!("{rule}: {found:#?} in\n{broken}"));
        }
        let found = findings(whole);
        if !found.is_empty() {
            wrong.push(format!("beside {rule}: {found:#?} in\n{whole}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for rule in RULES.iter().chain([&MALFORMED]) {
        assert!(cases.iter().any(|(name, ..)| *name == rule.name), "{} has no case", rule.name);
        assert!(!rule.fix.is_empty() && !rule.source.is_empty(), "{}", rule.name);
    }
}

#[test]
fn a_finding_names_its_place_and_what_is_there() {
    let source = format!(
        "{INTS}{PREDICATE}loop int[0]\nif pred.r\nFC BREAKLOOP FUNC=0xff -> 6\nendif\nendloop int[0]\n{OUT}"
    );
    let message = "BREAKLOOP leaves 1 of the branches in the loop open".to_owned();
    assert_eq!(findings(&source), [("loop-levels", 3, message)]);
    let source = format!("{COMPARE}if alu\nendif\nif alu\nendif\n{OUT}");
    let message = "no instruction since the last FC or the start has written the ALU result".to_owned();
    assert_eq!(findings(&source), [("stale-result", 3, message)]);
    // One path with a comparison is not enough.
    let source = format!(".bool 1 true\nif bool[1] -> there\n{COMPARE}there:\nif alu\nendif\n{OUT}");
    assert_eq!(findings(&source)[0].0, "stale-result");
}

/// A subroutine is checked for each of its calls. In a call inside a loop it may read aL, and its levels include
/// those of the caller.
#[test]
fn subroutines_are_checked_with_what_their_calls_have_open() {
    let sub = "goto end\nf:\nALU temp[1].r = MAX src0.rrr, src0.rrr : src0=const[3+aL]\nreturn\nend:\n";
    let inside = format!("{INTS}loop int[0]\ncall f\nendloop int[0]\n{sub}{OUT}");
    assert_eq!(findings(&inside), []);
    let outside = format!("{INTS}loop int[0]\ncall f\nendloop int[0]\ncall f\n{sub}{OUT}");
    assert_eq!(findings(&outside), [("al-outside", 5, "a relative address outside all LOOPs".to_owned())]);
}
