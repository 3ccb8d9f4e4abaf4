//! Words to text and back, without any collection of programs.

use rayon::prelude::*;
use reconverge_isa::row::{Part, Scope};
use reconverge_tesla::draft::Draft;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::table::TABLE;
use reconverge_tesla::text::{Listing, assemble, disassemble};
use reconverge_testkit::Random;

fn back(words: &[u32], base: u32, chip: Chip, stage: Stage, listing: Listing) {
    let text = disassemble(words, base, chip, stage, listing);
    match assemble(&text, chip, stage) {
        Ok(assembled) => {
            let found = assembled.words();
            if let Some(place) =
                (0..words.len().max(found.len())).find(|&place| words.get(place) != found.get(place))
            {
                let line: Vec<&str> = text.lines().skip(place.saturating_sub(3) / 2).take(4).collect();
                panic!(
                    "{chip} {stage}: word {place} is {:08x?}, was {:08x?}\n{}",
                    &found[place.saturating_sub(2)..found.len().min(place + 2)],
                    &words[place.saturating_sub(2)..words.len().min(place + 2)],
                    if words.len() < 20 { text } else { line.join("\n") }
                );
            }
        }
        Err(errors) => {
            let error = &errors[0];
            let (line, column) = error.span.line_column(&text);
            panic!("{chip} {stage}: {error} at {line}:{column}: {}", text.lines().nth(line - 1).unwrap());
        }
    }
}

/// The worked encodings: the text of the reference disassembler, apart from `short`.
#[test]
fn worked_encodings_have_their_text() {
    use Chip::{G80, G84, G200};
    use Stage::{Compute, Fragment, Vertex};
    let cases: &[(&[u32], Chip, Stage, &str)] = &[
        (&[0x1100e804], G80, Compute, "short mov b32 $r1 b32 s[0x10]"),
        (&[0x1500f600], G80, Compute, "short mov b32 $r0 b32 s[$a1+0x2c]"),
        (&[0x10018005, 0x00000003], G80, Compute, "mov b32 $r1 0x1"),
        (&[0x20018c19, 0x00000003], G80, Compute, "add b32 $r6 $r6 0x1"),
        (&[0x2107ea1c], G80, Compute, "short add b32 $r7 b32 s[0x14] $r7"),
        (&[0x30400201, 0x0400c7d0], G80, Compute, "addc b32 $c1 $r0 $r1 $r3 $c0"),
        (&[0x6005081d, 0x600187d0], G80, Compute, "add $c1 $r7 (mul u24 $r4 $r5) $r6"),
        (&[0x307ccffd, 0x6c20c7c8], G80, Compute, "set $c0 # le s32 b32 s[0x1c] $r124"),
        (&[0x60824e05, 0x00608780], G80, Compute, "add $r1 (mul u16 u16 s[0xe] c1[0x4]) $r2"),
        (&[0x30020005, 0xe4100780], G80, Compute, "shr u32 $r1 $r0 0x2"),
        (&[0xb0030811, 0x0c0187c0], G80, Compute, "add rz f32 $c0 $r4 neg $r4 neg $r6"),
        (&[0xb0800001, 0x80400780], G80, Compute, "max f32 $r0 $r0 c1[0x0]"),
        (&[0xe005081d, 0x200187c0], G80, Compute, "add sat f32 $c0 $r7 (mul $r4 $r5) $r6"),
        (&[0xb0000209, 0xc0000780], G80, Compute, "presin f32 $r2 $r1"),
        (&[0x90000409, 0x80000780], G80, Compute, "sin f32 $r2 $r2"),
        (&[0xa0000811, 0x8c064780], G80, Compute, "cvt rzi s32 $r4 f32 $r4"),
        (&[0xa0000009, 0x04000780], G80, Compute, "cvt u32 $r2 u16 $r0l"),
        (&[0x00020005, 0xc0000780], G80, Compute, "shl $a1 $r0 0x2"),
        (&[0x04001601, 0xe4200780], G80, Compute, "st b32 s[$a1+0x2c] $r0"),
        (&[0x14005011, 0x20008780], G80, Compute, "ld $r2l s16 c0[$a1+0x50]"),
        (&[0xd00e0e01, 0x80c00780], G80, Compute, "ld b32 $r0 g14[$r7]"),
        (&[0xd00e0e01, 0xa0c00781], G80, Compute, "exit st b32 g14[$r7] $r0"),
        (&[0xd705021d, 0xe0c00780], G84, Compute, "ld add u32 $r7 g14[$r1] $r5"),
        (&[0x10000419, 0x4480c7e0], G200, Compute, "ld lock $c2 $r6 b32 s[0x8]"),
        (&[0x04000401, 0xe4bfc780], G200, Compute, "st unlock b32 s[$a1+0x8] $r127"),
        (&[0x10000201, 0x60000310], G200, Compute, "(ge $c0) vote any $c1"),
        (&[0xe0060829, 0x400207c0], G200, Compute, "fma rn f64 $c0 $r10d $r4d $r6d $r8d"),
        (&[0x10022003, 0x00000280], G80, Compute, "(lg $c0) bra 0x110"),
        (&[0xa0022003, 0x00000000], G80, Compute, "joinat 0x110"),
        (&[0xf0000001, 0xe0000002], G80, Compute, "join (never) nop"),
        (&[0x861ffe03, 0x00000000], G80, Compute, "bar inc wait 0x0 0xfff"),
        (&[0x30000003, 0x00000780], G80, Compute, "ret"),
        (&[0x20012003, 0x00000000], G80, Compute, "call 0x90"),
        (&[0x40012003, 0x00000000], G80, Compute, "breakaddr 0x90"),
        (&[0x50000003, 0x00000280], G80, Compute, "(lg $c0) break"),
        (&[0x82020204], G80, Fragment, "short interp $r1 v[0x8] $r1"),
        (&[0xf2820001, 0x00000784], G80, Fragment, "texauto live $r0:#:#:# $t0 $s1 $r0:$r1:$r2 0x0 0x0 0x0"),
        (&[0x10000209, 0x0423c788], G80, Vertex, "mov b32 o[0x8] a[0x4]"),
        (&[0xc010081d, 0x8c4187c0], G80, Compute, "quadop f32 mov2 add subr subr $c0 $r7 l0 $r4 $r6"),
    ];
    for &(words, chip, stage, expected) in cases {
        let text = disassemble(words, 0, chip, stage, Listing { labels: false, ..Listing::default() });
        assert_eq!(text.trim(), expected, "{words:08x?}");
        back(words, 0, chip, stage, Listing::default());
    }
}

fn words_of(word: u64, long: bool) -> Vec<u32> {
    let mut words = vec![word as u32];
    if long {
        words.push((word >> 32) as u32);
    }
    words
}

/// Returns the fields of a row's parts, each as the list of its bits.
fn fields(parts: &[Part<Draft>], found: &mut Vec<u64>) {
    for part in parts {
        if let Part::Case(cases) = part {
            for case in cases.cases {
                found.push(case.mask);
                fields(case.parts, found);
            }
        } else {
            found.push(part.bits());
        }
    }
}

/// Moves the bits of `value`, one by one, to the bits that are set in `mask`.
fn scatter(mask: u64, value: u64) -> u64 {
    (0..64)
        .filter(|bit| mask >> bit & 1 != 0)
        .enumerate()
        .fold(0, |word, (place, bit)| word | (value >> place & 1) << bit)
}

#[test]
fn all_values_of_all_fields_come_back() {
    let checked = Chip::ALL.into_par_iter().enumerate().map(|(number, chip)| {
        let seed = 0x5eed_0001 + number as u64;
        println!("seed {seed:#x}");
        let mut random = Random::new(seed);
        let mut checked = 0;
        for stage in Stage::ALL {
            for row in TABLE.rows() {
                let mut masks = vec![row.unclaimed()];
                fields(row.parts, &mut masks);
                masks.sort_unstable();
                masks.dedup();
                let mut words = Vec::new();
                for mask in masks.into_iter().filter(|mask| *mask != 0) {
                    let count = mask.count_ones();
                    let noise = random.next_u64() & row.width();
                    for base in [row.default, noise] {
                        let base = base & !row.mask | row.fixed;
                        for step in 0..1_u64 << count.min(9) {
                            let value = if count <= 9 { step } else { random.next_u64() };
                            let word = base & !mask | scatter(mask & !row.mask, value);
                            words.extend(words_of(word & !row.mask | row.fixed, row.long));
                        }
                    }
                }
                checked += words.len();
                back(&words, 0, chip, stage, Listing { labels: false, ..Listing::default() });
            }
        }
        checked
    });
    let checked: usize = checked.sum();
    println!("{checked} words");
    assert!(checked > 1_000_000);
}

#[test]
fn a_million_random_words_come_back() {
    let seed = 0x5eed_0002;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    for (turn, chip) in Chip::ALL.into_iter().enumerate() {
        for stage in Stage::ALL {
            let words: Vec<u32> = (0..50_001).map(|_| random.next()).collect();
            let base = if turn == 0 { 0 } else { 4 * random.below(1 << 20) };
            let listing = Listing { hex: turn == 1, structure: turn == 2, labels: turn != 3 };
            back(&words, base, chip, stage, listing);
        }
    }
}

#[test]
fn random_edits_never_panic_and_errors_have_places() {
    let seed = 0x5eed_0003;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let pieces = [
        "$r1",
        "(",
        ")",
        "bits",
        "0x",
        "$c9",
        "s[",
        "]",
        "-",
        ":",
        ".word",
        ".chip",
        "é",
        "short",
        "#",
        "+",
        "99999999999",
    ];
    for round in 0..3_000 {
        let chip = random.one_of(&Chip::ALL);
        let stage = random.one_of(&Stage::ALL);
        let words: Vec<u32> = (0..6)
            .flat_map(|_| {
                let row = random.one_of(TABLE.rows());
                words_of(random.next_u64() & !row.mask & row.width() | row.fixed, row.long)
            })
            .collect();
        let mut text =
            disassemble(&words, 0, chip, stage, Listing { labels: round % 2 == 0, ..Listing::default() });
        for _ in 0..1 + random.below(4) {
            let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
            if places.is_empty() {
                break;
            }
            let place = random.one_of(&places);
            match random.below(3) {
                0 => {
                    text.remove(place);
                }
                1 => text.insert_str(place, random.one_of(&pieces)),
                _ => text.insert(place, char::from(32 + random.below(95) as u8)),
            }
        }
        if let Err(errors) = assemble(&text, chip, stage) {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(
                    error.span.start <= error.span.end && error.span.end <= text.len(),
                    "{error:?}\n{text}"
                );
                assert!(
                    text.is_char_boundary(error.span.start) && text.is_char_boundary(error.span.end),
                    "{text}"
                );
                assert!(!error.message.is_empty());
            }
        }
    }
}

fn errors(text: &str) -> Vec<(String, String)> {
    let errors = assemble(text, Chip::G80, Stage::Compute).unwrap_err();
    errors
        .into_iter()
        .map(|error| (text[error.span.start..error.span.end].to_owned(), error.to_string()))
        .collect()
}

#[test]
fn an_error_says_what_would_fit_where_the_furthest_row_stopped() {
    let [(found, message)] = &errors("  mov b32 $r1 $q5")[..] else { panic!() };
    assert_eq!(found, "$q5");
    assert!(message.contains("$r0") && message.contains("0x0"), "{message}");
    let [(found, message)] = &errors("  cvt rzi s32 $r1 f33 $r2")[..] else { panic!() };
    assert_eq!(found, "f33");
    assert!(message.contains("did you mean `f32`") && message.contains("f16"), "{message}");
}

/// Each help must address the mistake that a user made.
#[test]
fn a_missing_word_and_the_range_of_registers_are_told() {
    let told = |text: &str| {
        let error = assemble(text, Chip::G80, Stage::Compute).expect_err(text).swap_remove(0);
        (error.message, error.help.unwrap_or_default())
    };
    let (message, help) = told("foo");
    assert_eq!(message, "unknown instruction `foo`");
    assert!(!help.contains("did you mean"), "{help}");
    let (message, help) = told("mul f32 $r1 $r2 $r3");
    assert_eq!(message, "unexpected `$r3`");
    assert!(help.contains("did you mean `mul rn f32 $r1 $r2 $r3`?"), "{help}");
    let (message, _) = told("mov b32 $r1 $r200");
    assert_eq!(message, "$r200 is too large: expected $r0 to $r127");
}

#[test]
fn all_errors_of_a_text_are_told() {
    let found =
        errors("addd b32 $r1 $r2 $r3\n mov b32 $r1 0x1\nbra nowhere\n.chop G80\n mov b32 $r200 $r1\n");
    let places: Vec<&str> = found.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["addd", "nowhere", ".chop", "$r200"]);
    assert!(found[0].1.contains("did you mean `add`"), "{}", found[0].1);
    assert!(found[2].1.contains("`.chip`"), "{}", found[2].1);
}

#[test]
fn a_long_instruction_at_an_odd_word_is_refused() {
    let found = errors("short mov b32 $r1 $r2\n mov b32 $r1 $r2\n");
    assert!(found[0].1.contains("even word"), "{found:?}");
}

#[test]
fn what_is_no_instruction_here_is_raw_words_with_the_reason() {
    // f64 is for G200 only.
    let fma = [0xe006_0829, 0x4002_07c0];
    let text = disassemble(&fma, 0, Chip::Gt215, Stage::Compute, Listing::default());
    assert!(
        text.contains(".word 0xe0060829 0x400207c0 ; l.dfma has these bits, but not on this chip"),
        "{text}"
    );
    let cut = disassemble(&fma[..1], 0, Chip::G200, Stage::Compute, Listing::default());
    assert!(cut.contains(".word 0xe0060829 ; the second word is missing"), "{cut}");
    let odd = disassemble(&fma, 4, Chip::G200, Stage::Compute, Listing::default());
    assert!(odd.contains("UNALIGNED_LONG_INSTRUCTION"), "{odd}");
}

#[test]
fn bits_that_nothing_tells_are_kept() {
    // mov b32 $r1 $r2 with bit 28 of the second word.
    let words = [0x1000_0405, 0x1403_c780];
    let text = disassemble(&words, 0, Chip::G80, Stage::Compute, Listing::default());
    assert_eq!(text.trim(), "mov b32 $r1 $r2 bits 0x0 0x10000000");
    back(&words, 0, Chip::G80, Stage::Compute, Listing::default());
}

#[test]
fn a_written_program_tells_everything_about_itself() {
    let source = "\
.chip sm_13 // G200
.type compute
.kernel first
.reg 4
.shared 24
.local 16
.const 1 0x0 0x3f800000 0x40000000
top: short mov b32 $r0 b32 s[0x10] ; a pair
     short mov b32 $r1 $r0
  (lg $c0) bra top
  exit nop
.kernel \"two words\"
  bra end
end: exit (never) nop
";
    let assembled = assemble(source, Chip::G80, Stage::Vertex).unwrap();
    assert_eq!((assembled.chip, assembled.stage), (Chip::G200, Stage::Compute));
    let [first, second] = &assembled.programs[..] else { panic!() };
    assert_eq!(first.name.as_deref(), Some("first"));
    assert_eq!(first.resources.registers, Some(4));
    assert_eq!(first.resources.shared_bytes, Some(24));
    assert_eq!(first.resources.local_bytes, Some(16));
    assert_eq!(first.constants[0].bytes, [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
    assert_eq!(first.words.len(), 6);
    assert_eq!(second.name.as_deref(), Some("two words"));
    assert_eq!(second.words, [0x1000_1003, 0x0000_0780, 0xf000_0001, 0xe000_0001]);
    for program in &assembled.programs {
        let text = reconverge_tesla::text::disassemble_program(
            program,
            Chip::G200,
            Stage::Compute,
            Listing::default(),
        );
        assert_eq!(&assemble(&text, Chip::G80, Stage::Vertex).unwrap().programs[0], program, "{text}");
    }
}

#[test]
fn constructs_are_indented_and_the_text_still_comes_back() {
    let source = "    joinat L18
      (lg $c0) bra L18
      mov b32 $r1 $r2
L18:
    join nop
";
    let words = assemble(source, Chip::G80, Stage::Compute).unwrap().words();
    let listing = Listing { structure: true, ..Listing::default() };
    assert_eq!(disassemble(&words, 0, Chip::G80, Stage::Compute, listing), source);
}

#[test]
fn rows_exist_somewhere() {
    for row in TABLE.rows() {
        let somewhere = Chip::ALL.iter().any(|_| row.scope.0 & 0x1f0 != 0 && row.scope.0 & 0xf != 0);
        assert!(somewhere && row.scope != Scope(0), "{}", row.id);
    }
}
