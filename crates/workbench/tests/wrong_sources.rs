//! Sources with one mistake each: the message names the mistake, and the range or the form that fits.

use reconverge_isa::Isa;
use reconverge_workbench::open::{OpenError, open_named};
use reconverge_workbench::{Known, Opened};

/// Returns the first message about an instruction of a machine, with its help.
fn message(isa: Isa, line: &str) -> String {
    let name = if isa == Isa::Tesla { ".kernel k\n" } else { "" };
    let source = format!(".isa {isa}\n{name}{line}\n");
    let opened: Result<Opened, OpenError> =
        open_named("k.s", source.as_bytes(), Known::default(), &mut |_| Err("no such file".to_owned()));
    match opened {
        Err(OpenError::Source(errors)) => errors[0].to_string(),
        Err(error) => panic!("{line}: {error}"),
        Ok(_) => panic!("{line}: it assembles"),
    }
}

#[track_caller]
fn says(isa: Isa, cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|(line, wanted)| (line, wanted, message(isa, line)))
        .filter(|(_, wanted, found)| !found.contains(*wanted))
        .map(|(line, wanted, found)| format!("{line}\n  wanted {wanted}\n  found  {found}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_number_that_does_not_fit_comes_with_the_range_that_fits_on_tesla() {
    says(
        Isa::Tesla,
        &[
            ("mov b32 $r1 0x1ffffffff", "0x1ffffffff is too large for immediate: expected 0x0 to 0xffffffff"),
            (
                "mov b32 $r1 -0x1ffffffff",
                "`-0x1ffffffff` is not a number of 32 bits (expected -0x80000000 to 0xffffffff",
            ),
            ("shl b32 $r1 $r1 0x100000000", "0x100000000 is too large for shift count: expected 0x0 to 0x7f"),
            ("ld b32 $r1 g14[$r200]", "$r200 does not exist: expected $r0 to $r127"),
            ("st b32 g14[$r200] $r1", "$r200 does not exist: expected $r0 to $r127"),
            ("ld b32 $r1 g16[$r1]", "g16[] does not exist: expected g0[] to g15[]"),
            ("mov b32 $r1 $r200", "$r200 is too large: expected $r0 to $r127"),
            ("add b32 $r1 $r1 c16[0x0]", "c16[] does not exist: expected c0[] to c15[]"),
            ("add b32 $r1 $r1 c1[0x1]", "0x1 is not a multiple of 4: expected 0x0 or 0x4"),
            ("add b32 $r1 $r1 c1[0x100000]", "0x100000 is out of range: expected 0x0 to "),
            ("mov b32 $r1 b32 s[0x11]", "0x11 is not a multiple of 4: expected 0x10 or 0x14"),
            ("mov b32 $r1 b32 s[$a8+0x10]", "$a8 does not exist: expected $a1 to $a"),
            ("ld b32 $r1 l[0x12345678]", "0x12345678 is out of range: expected 0x0 to "),
            ("bra 0x12345678", "0x12345678 is too large for target: expected 0x0 to 0xfffffc"),
            ("set $c9 # e u32 $r1 $r2", "$c9 is too large: expected $c0 to $c3"),
            ("(lg $c9) bra 0x0", "$c9 is too large: expected $c0 to $c3"),
        ],
    );
}

/// The help mentions forms with an immediate only if the line has an immediate.
#[test]
fn a_wrong_flag_condition_or_modifier_gets_no_advice_about_immediates() {
    for line in [
        "set $c9 # e u32 $r1 $r2",
        "($c9 ne) mov b32 $r1 $r2",
        "(foo $c0) mov b32 $r1 $r2",
        "(lg $c9) bra 0x0",
        "exit exit nop",
        "join exit nop",
    ] {
        let found = message(Isa::Tesla, line);
        assert!(!found.contains("immediate"), "{line}: {found}");
    }
    assert!(message(Isa::Tesla, "exit mov b32 $r1 0x4").contains("a form with an immediate writes no flags"));
    assert!(
        message(Isa::Tesla, "mul rn f32 $r1 $r2 $r3 $r4").contains("the instruction ends before this text")
    );
}

#[test]
fn a_wrong_operand_is_named_with_what_fits_on_r700() {
    let alu = |line: &str| format!("00 ALU: ADDR(1) CNT(1)\n0 x: {line}");
    for (line, wanted) in [
        ("ADD R1.x, R2.x, 0x1ffffffff", "0x1ffffffff does not fit into 32 bits (expected 0x0 to 0xffffffff)"),
        ("ADD R1.x, R2.x, (0x1ffffffff, 3).x", "0x1ffffffff does not fit into 32 bits"),
        ("MOV R1.x, R0.q", "`q` is not a component (expected x, y, z or w)"),
        ("MOV R1.x, KC4[0].x", "KC4 does not exist (expected KC0 and KC1"),
        ("MOV R1.x, T9.x", "T9 does not exist (expected T0 to T3)"),
        ("MOV R1.x, KC0[32].x", "KC0 goes from 0 to 31"),
        ("MOV R200.x, R0.x", "a register R0 to R127 was expected"),
    ] {
        let found = message(Isa::R700, &alu(line));
        assert!(found.contains(wanted), "{line}: {found}");
    }
    says(
        Isa::R700,
        &[
            ("00 JUMP: ADDR(1) POP_CNT(9)", "the number is larger than 7 (expected 0 to 7)"),
            (
                "0 q: ADD R1.x, R2.x, R3.x",
                "`q:` is not a slot of an ALU group (expected x:, y:, z:, w: or t:)",
            ),
        ],
    );
}

#[test]
fn a_wrong_operand_is_named_with_what_fits_on_r500() {
    says(
        Isa::R500,
        &[
            (
                "ALU temp[200].r = MOV src0.rrr : src0=temp[1]",
                "a temporary cannot be 200 (expected 0 to 127)",
            ),
            ("ALU temp[1].r = MOV src0.rrr : src0=const[256]", "expected 0 to 255"),
            ("TEX temp[1].rgba = LD tex[16] temp[0].rgba", "a texture unit cannot be 16 (expected 0 to 15)"),
            ("if alu else -> L99\nendif", "undefined label `L99` (the program has no labels: put `L99:`"),
            (
                "OUT out[E].rgb = MOV src0.rgb : src0=temp[1]",
                "`E` is not a render target (expected one of A, B, C, D",
            ),
        ],
    );
}
