//! The rules of `lint`: each is broken once, next to a program that follows it. Also counts the rules that compiled
//! programs break.

use std::collections::BTreeMap;
use std::fmt::Write;

use reconverge_container::{Hints, load};
use reconverge_isa::{Isa, Program};
use reconverge_tesla::driver_fixes::DriverFixes;
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::lint::{RULES, lint, lint_fixed};
use reconverge_tesla::text::assemble;
use reconverge_testkit::{page_is_current, records, shared};
use serde_json::Value;

/// A change of declarations, or of bits that the assembler does not write.
type Change = fn(&mut Program);

#[rustfmt::skip]
const CASES: &[(&str, &str, Change, &str, Change)] = &[
    ("outside", "nop\n", |_| {}, "exit nop\n", |_| {}),
    ("unaligned", "exit nop\n", |program| program.words.insert(0, 0x1000_8000), "exit nop\n", |program| program.words.splice(0..0, [0x1000_8000; 2]).for_each(drop)),
    ("inside", "bra a\na: exit nop\n", |program| program.words[0] = 0x1000_0803, "bra a\na: exit nop\n", |_| {}),
    ("unreachable", "bra a\nadd b32 $r1 $r0 $r0\na: exit nop\n", |_| {}, "add b32 $r1 $r0 $r0\nbra a\na: exit nop\n", |_| {}),
    ("join-empty", "join nop\nexit nop\n", |_| {}, "joinat a\na: join nop\nexit nop\n", |_| {}),
    ("join-mismatch", "call f\nexit nop\nf: join nop\nret\n", |_| {}, "call f\nexit nop\nf: joinat a\na: join nop\nret\n", |_| {}),
    ("joinat-unanswered", "joinat a\na: nop\nexit nop\n", |_| {}, "joinat a\na: exit nop\n", |_| {}),
    ("joinat-address", "joinat b\njoin nop\nb: exit nop\n", |_| {}, "joinat a\na: join nop\nexit nop\n", |_| {}),
    ("break-empty", "break\nexit nop\n", |_| {}, "breakaddr a\nbreak\na: exit nop\n", |_| {}),
    ("break-mismatch", "breakaddr a\ncall f\na: exit nop\nf: break\n", |_| {}, "call f\nexit nop\nf: breakaddr a\nbreak\na: ret\n", |_| {}),
    ("breakaddr-unanswered", "breakaddr a\na: exit nop\n", |_| {}, "breakaddr a\nbreak\na: exit nop\n", |_| {}),
    ("ret-mixed", "call f\nnop\nf: ret\n", |_| {}, "call f\nexit nop\nf: ret\n", |_| {}),
    ("quadpop", "quadpop\nexit nop\n", |_| {}, "quadon\nquadpop\nexit nop\n", |_| {}),
    ("quadon-flow", "quadon\nexit nop\n", |_| {}, "quadon\nquadpop\nexit nop\n", |_| {}),
    ("stack-differs", "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\n(e $c0) bra a\njoinat b\na: nop\nb: join nop\nexit nop\n", |_| {}, "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\njoinat b\n(e $c0) bra b\nnop\nb: join nop\nexit nop\n", |_| {}),
    ("stack-grows", "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\na: joinat b\n(e $c0) bra a\nb: join nop\nexit nop\n", |_| {}, "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\njoinat b\na: nop\n(e $c0) bra a\nb: join nop\nexit nop\n", |_| {}),
    ("stack-need", "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\njoinat a\n(e $c0) bra a\na: join nop\nexit nop\n", |program| program.resources.stack = Some(1), "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\njoinat a\n(e $c0) bra a\na: join nop\nexit nop\n", |program| program.resources.stack = Some(2)),
    ("recursion", "call f\nexit nop\nf: call f\nret\n", |_| {}, "call f\nexit nop\nf: call g\nret\ng: ret\n", |_| {}),
    ("bar-divergent", "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\njoinat a\n(e $c0) bra a\nbar inc wait 0x0 0xfff\na: join nop\nexit nop\n", |_| {}, "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\nset $c0 # e u32 $r1 $r1\njoinat a\n(e $c0) bra a\nbar inc wait 0x0 0xfff\na: join nop\nexit nop\n", |_| {}),
    ("bar-idle", "bar 0x0 all\nexit nop\n", |_| {}, "bar inc wait 0x0 0xfff\nexit nop\n", |_| {}),
    ("barrier", "bar inc wait 0x1 0xfff\nexit nop\n", |program| program.resources.barriers = Some(1), "bar inc wait 0x1 0xfff\nexit nop\n", |program| program.resources.barriers = Some(2)),
    ("unwritten", "add b32 $r2 $r1 $r0\nexit nop\n", |_| {}, "mov b32 $r1 0x1\nadd b32 $r2 $r1 $r0\nexit nop\n", |_| {}),
    ("odd-pair", "ld b64 $r2d g14[$r0]\nexit nop\n", |program| program.words[0] |= 1 << 2, "ld b64 $r2d g14[$r0]\nexit nop\n", |_| {}),
    ("misaligned", "ld b32 $r1 l[0x2]\nexit nop\n", |_| {}, "ld b32 $r1 l[0x4]\nexit nop\n", |_| {}),
    ("local-range", "ld b32 $r1 l[0x10]\nexit nop\n", |program| program.resources.local_bytes = Some(16), "ld b32 $r1 l[0xc]\nexit nop\n", |program| program.resources.local_bytes = Some(16)),
    ("shared-range", "ld $r1 b32 s[0x4000]\nexit nop\n", |_| {}, "ld $r1 b32 s[0x3ffc]\nexit nop\n", |_| {}),
    ("shared-header", "ld $r1 b32 s[0x8]\nexit nop\n", |_| {}, "ld $r1 b32 s[0x10]\nexit nop\n", |_| {}),
    ("postincr", "ld $r1 b32 s[0x10]\nexit nop\n", |program| program.words[0] |= 1 << 25, "ld $r1 b32 s[0x10]\nexit nop\n", |_| {}),
    ("address-register", "ld $r1 b32 s[0x10]\nexit nop\n", |program| { program.words[0] |= 1 << 26; program.words[1] |= 1 << 2 }, "shl $a1 $r0 0x2\nld $r1 b32 s[$a1+0x10]\nexit nop\n", |_| {}),
    ("condition", "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\n(e $c0) add b32 $r1 $r0 $r0\nexit nop\n", |program| program.words[5] = program.words[5] & !(0x1f << 7) | 0x14 << 7, "mov b32 $r1 0x5\nset $c0 # e u32 $r0 $r1\n(e $c0) add b32 $r1 $r0 $r0\nexit nop\n", |_| {}),
    ("rounding", "add rz f32 $r1 $r0 $r0\nexit nop\n", |program| program.words[0] &= !(1 << 16), "add rz f32 $r1 $r0 $r0\nexit nop\n", |_| {}),
    ("special-register", "mov $r1 $clock\nexit nop\n", |program| program.words[1] |= 8 << 14, "mov $r1 $clock\nexit nop\n", |_| {}),
    ("undocumented", "texcsaa all #:#:#:# $t0 $s0 $r0 0x0 0x0 0x0\nexit nop\n", |_| {}, "exit nop\n", |_| {}),
    ("spare-bits", "call f\nexit nop\nf: ret\n", |program| program.words[1] |= 0x780, "call f\nexit nop\nf: ret\n", |_| {}),
];

fn names(source: &str, change: Change) -> Vec<&'static str> {
    let assembled = assemble(source, Chip::G200, Stage::Compute);
    let assembled = assembled.unwrap_or_else(|errors| panic!("{source}: {}", errors[0]));
    let mut program = Program::from_words(assembled.words());
    change(&mut program);
    lint(&program, Stage::Compute, Chip::G200).iter().map(|finding| finding.rule.name).collect()
}

#[test]
fn each_rule_finds_the_program_that_breaks_it_and_not_its_neighbour() {
    for (rule, source, change, fine, same) in CASES {
        let found = names(source, *change);
        assert!(found.contains(rule), "{rule}: {source} breaks {found:?}");
        assert_eq!(names(fine, *same), Vec::<&str>::new(), "{rule}: {fine}");
    }
    // Tokens that accumulate in each iteration of a loop are reported once.
    let (_, grows, change, ..) = CASES.iter().find(|case| case.0 == "stack-grows").unwrap();
    assert_eq!(names(grows, *change), ["stack-grows"]);
    let tested: Vec<&str> = CASES.iter().map(|case| case.0).collect();
    assert_eq!(tested, RULES.iter().map(|rule| rule.name).collect::<Vec<_>>());
}

/// `ld lock` writes its flags with or without bit 6 of the second word, and all compilers set it.
#[test]
fn a_spare_bit_is_one_that_the_assembler_does_not_write() {
    let lock = "ld lock $c0 $r1 b32 s[0x10]\nexit nop\n";
    let changed = |bits: u32| {
        let words = assemble(lock, Chip::G200, Stage::Compute).unwrap().words();
        let mut program = Program::from_words(words);
        program.words[1] ^= bits;
        lint(&program, Stage::Compute, Chip::G200)
            .into_iter()
            .map(|finding| finding.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(changed(0), Vec::<String>::new());
    assert_eq!(changed(0x40), Vec::<String>::new());
    assert_eq!(changed(0x1000_0000), ["10000000 of the second word"]);
}

/// Kernels of Mesa's compiler have an argument at s\[0x0\] and a byte in a whole register (F2, F6). A launch with
/// [`DriverFixes`] runs the intended program, and an unwritten register is still a finding.
#[test]
fn faults_that_a_launch_fixes_are_no_findings_in_it() {
    let kernel = |read: &str| {
        format!(
            "mov b16 $r0h u8 s[0x4]\ncvt u32 $r1 u8 {read}\nadd b32 $r0 b32 s[0x0] $r0\nexit st b32 g15[$r0] $r1\n"
        )
    };
    let found = |read: &str, fixes: Option<DriverFixes>| {
        let words = assemble(&kernel(read), Chip::Gt215, Stage::Compute).unwrap().words();
        let mut program = Program::from_words(words);
        program.resources.registers = Some(4);
        let found = match fixes {
            Some(fixes) => lint_fixed(&program, Chip::Gt215, fixes),
            None => lint(&program, Stage::Compute, Chip::Gt215),
        };
        found.iter().map(|finding| (finding.rule.name, finding.pc)).collect::<Vec<_>>()
    };
    let fixes = DriverFixes { argument_bytes: 8, shared_bytes: 0x1c };
    assert_eq!(found("$r1", None), [("unwritten", 0x8), ("shared-header", 0x10)]);
    assert_eq!(found("$r1", Some(fixes)), []);
    assert_eq!(found("$r2", Some(fixes)), [("unwritten", 0x8)]);
}

#[test]
fn the_page_lists_every_lint() {
    let mut table = String::from("\n| rule | severity | demands | source |\n|---|---|---|---|\n");
    for rule in RULES {
        let _ = writeln!(table, "| {} | {} | {} | {} |", rule.name, rule.severity, rule.demands, rule.source);
    }
    page_is_current("tesla.md", Some("lint"), &(table + "\n"));
}

/// A compiled program, with its name, stage and chip.
struct Compiled {
    name: String,
    program: Program,
    stage: Stage,
    chip: Chip,
}

fn chip_of(name: &str) -> Chip {
    if name == "nv50" { Chip::G80 } else { Chip::from_name(name).unwrap_or_else(|| panic!("chip {name}")) }
}

/// Returns the shaders that Mesa compiled.
fn shaders() -> Vec<Compiled> {
    let mut found = Vec::new();
    for file in ["fuzz", "piglit"] {
        for case in records(&format!("corpus/tesla/{file}.jsonl.gz")) {
            let digits = case["program"]["code"].as_str().unwrap();
            let words = digits.as_bytes().chunks(8);
            let word = |digits| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
            let mut program = Program::from_words(words.map(word).collect());
            let register = |name: &str| {
                let value = case["program"]["regs"][name].as_str()?;
                u32::from_str_radix(value, 16).ok()
            };
            program.base = register("FP_START_ID").unwrap_or(0);
            program.resources.registers = register("FP_REG_ALLOC_TEMP");
            found.push(Compiled {
                name: case["name"].as_str().unwrap().to_owned(),
                program,
                stage: Stage::from_name(case["stage"].as_str().unwrap()).unwrap(),
                chip: chip_of(case["id"].as_str().unwrap()),
            });
        }
    }
    found
}

/// Returns the kernels and shaders of other people's binaries.
fn binaries() -> Vec<Compiled> {
    let Some(folder) = shared("binaries") else { return Vec::new() };
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut found = Vec::new();
    for item in index["items"].as_array().unwrap().iter().filter(|item| item["isa"] == "tesla") {
        let file = item["file"].as_str().unwrap();
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let image = load(&bytes, &Hints { isa: Some(Isa::Tesla), ..Hints::default() }).unwrap();
        for program in image.programs {
            found.push(Compiled {
                name: format!("{file} {}", program.name.clone().unwrap_or_default()),
                program,
                stage: Stage::from_name(item["stage"].as_str().unwrap()).unwrap(),
                chip: chip_of(item["arch"].as_str().unwrap()),
            });
        }
    }
    found
}

/// Returns, for each rule, the number of programs that break it and the number of findings.
fn broken(programs: &[Compiled]) -> BTreeMap<&'static str, (usize, usize)> {
    let mut counts: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    for Compiled { name, program, stage, chip } in programs {
        let mut by_rule: BTreeMap<&'static str, usize> = BTreeMap::new();
        for finding in lint(program, *stage, *chip) {
            println!("{name}: {:#x} {}: {}", finding.pc, finding.rule.name, finding.message);
            *by_rule.entry(finding.rule.name).or_default() += 1;
        }
        for (rule, findings) in by_rule {
            let count = counts.entry(rule).or_default();
            *count = (count.0 + 1, count.1 + findings);
        }
    }
    counts
}

#[test]
fn what_compilers_break() {
    let shaders = shaders();
    if shaders.is_empty() {
        return;
    }
    // docs/tesla.md describes each finding.
    let of_shaders = [("stack-grows", (56, 72)), ("unreachable", (24, 54)), ("unwritten", (2, 2))];
    assert_eq!(broken(&shaders), BTreeMap::from(of_shaders));
    let of_binaries =
        [("shared-header", (1, 1)), ("spare-bits", (7, 7)), ("unreachable", (18, 18)), ("unwritten", (3, 5))];
    assert_eq!(broken(&binaries()), BTreeMap::from(of_binaries));
}
