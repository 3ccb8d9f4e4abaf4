//! A toy instruction set in every operation: decode, describe, print, parse, encode.

use reconverge_isa::read::{Labels, NoReading, Table};
use reconverge_isa::row::{
    BitPattern, Bits, Case, Cases, Custom, Draft, Memory, Number, Part, Row, Scope, Style, Words, at,
};
use reconverge_isa::write::{Line, LineReader, Prefixes, Reader};

/// Notes of the parts of a row, in order.
#[derive(Debug, Default, PartialEq)]
struct Notes(Vec<(&'static str, i64)>);

impl Draft for Notes {
    type Meaning = &'static str;
}

type P = Part<Notes>;

/// Chips: bit 0 is the old one, bit 1 the new one.
const OLD: Scope = Scope(0b01);
const NEW: Scope = Scope(0b10);

const OPCODE: Bits = at(28, 4);

const fn register(name: &'static str, field: Bits) -> Number<Notes> {
    Number {
        name,
        field,
        style: Style::Register("$r", ""),
        set: |notes, n| notes.0.push(("register", n.into())),
    }
}

static DST: Number<Notes> = register("destination", at(0, 4));
static SRC: Number<Notes> = register("source", at(4, 4));
static AGAIN: Number<Notes> = register("third source", at(0, 4));

static SATURATE: Words<Notes> = Words {
    name: "saturate",
    field: at(8, 2),
    texts: &[Some(""), Some("sat"), None, Some("wrap")],
    set: |notes, n| notes.0.push(("saturate", n.into())),
};

static BYTE: Number<Notes> = Number {
    name: "immediate",
    field: at(9, 8),
    style: Style::Hex,
    set: |notes, n| notes.0.push(("immediate", n.into())),
};

static HALF: Number<Notes> = Number {
    name: "half",
    field: at(4, 4),
    style: Style::Half("$r"),
    set: |notes, n| notes.0.push(("half", n.into())),
};

static DOUBLE: Number<Notes> = Number {
    name: "double",
    field: at(4, 4),
    style: Style::Register("$r", "d"),
    set: |notes, n| notes.0.push(("double", n.into())),
};

/// A register; on new chips also half of one, or a byte.
static OPERAND: Cases<Notes> = Cases {
    name: "operand",
    cases: &[
        Case { mask: 1 << 8, fixed: 0, scope: Scope::ALL, parts: &[Part::Number(&SRC)] },
        Case { mask: 3 << 17 | 1 << 8, fixed: 1 << 17 | 1 << 8, scope: NEW, parts: &[Part::Number(&HALF)] },
        Case { mask: 3 << 17 | 1 << 8, fixed: 1 << 8, scope: Scope::ALL, parts: &[Part::Number(&BYTE)] },
    ],
};

const fn shared(increment: bool) -> Memory<Notes> {
    Memory {
        name: "address",
        space: "s",
        bank: None,
        base: Some(("$a", at(4, 2))),
        always_base: increment,
        offset: Some(at(8, 8)),
        shift: 2,
        signed: true,
        increment,
        set: |notes, location| {
            notes.0.push(("base", location.base.into()));
            notes.0.push(("offset", location.offset.into()));
        },
    }
}

static SHARED: Memory<Notes> = shared(false);
static SHARED_INCREMENT: Memory<Notes> = shared(true);

static ADDRESS: Cases<Notes> = Cases {
    name: "addressing",
    cases: &[
        Case { mask: 1 << 16, fixed: 0, scope: Scope::ALL, parts: &[Part::Memory(&SHARED)] },
        Case { mask: 1 << 16, fixed: 1 << 16, scope: Scope::ALL, parts: &[Part::Memory(&SHARED_INCREMENT)] },
    ],
};

static CONSTANT: Memory<Notes> = Memory {
    name: "constant",
    space: "c",
    bank: Some(at(4, 2)),
    base: None,
    always_base: false,
    offset: Some(at(8, 8)),
    shift: 0,
    signed: false,
    increment: false,
    set: |notes, location| {
        notes.0.push(("bank", location.bank.into()));
        notes.0.push(("offset", location.offset.into()));
    },
};

static LIKELY: Words<Notes> = Words {
    name: "likely",
    field: at(26, 1),
    texts: &[Some(""), Some("@")],
    set: |notes, n| notes.0.push(("likely", n.into())),
};

static TARGET: Number<Notes> = Number {
    name: "target",
    field: at(0, 16),
    style: Style::Code(2),
    set: |notes, n| notes.0.push(("target", n.into())),
};

/// Two runs of bits, one in each word.
static SPLIT: Number<Notes> = Number {
    name: "distance",
    field: at(8, 8).and(32, 8),
    style: Style::Signed,
    set: |notes, n| notes.0.push(("distance", (n as i32).into())),
};

/// `.`, repeated by the number in the field.
static DOTS: Custom<Notes> = Custom {
    name: "dots",
    bits: 3 << 40,
    claims: |_| 3 << 40,
    print: |word, out| {
        out.push_str("dots");
        (0..word >> 40 & 3).for_each(|_| out.push('.'));
    },
    parse: |reader| {
        let dots = reader.take().strip_prefix("dots")?.len() as u64;
        (dots <= 3).then_some(BitPattern { mask: 3 << 40, fixed: dots << 40 })
    },
    set: |notes, word| notes.0.push(("dots", (word >> 40 & 3) as i64)),
};

const fn row(id: &'static str, opcode: u32, parts: &'static [P]) -> Row<Notes> {
    Row {
        id,
        names: id,
        long: false,
        fixed: OPCODE.put(opcode),
        mask: OPCODE.mask(),
        default: 0,
        scope: Scope::ALL,
        parts,
        meaning: |_| "a toy",
        source: "this file",
    }
}

static ROWS: &[Row<Notes>] = &[
    row("add", 1, &[Part::Text("add"), Part::Word(&SATURATE), Part::Number(&DST), Part::Number(&SRC)]),
    row("mov", 2, &[Part::Text("mov"), Part::Number(&DST), Part::Case(&OPERAND)]),
    row("ld", 3, &[Part::Text("ld"), Part::Number(&DST), Part::Case(&ADDRESS)]),
    row("ldc", 4, &[Part::Text("ldc"), Part::Number(&DST), Part::Memory(&CONSTANT)]),
    row("bra", 5, &[Part::Word(&LIKELY), Part::Text("bra"), Part::Number(&TARGET)]).usually(1 << 24, 0),
    Row {
        long: true,
        ..row(
            "far",
            6,
            &[
                Part::Text("far"),
                Part::Open,
                Part::Number(&SPLIT),
                Part::Close,
                Part::Custom(&DOTS),
                Part::Set(|notes| notes.0.push(("far", 1))),
            ],
        )
    },
    row("dbl", 7, &[Part::Text("dbl"), Part::Number(&DOUBLE)]).only(NEW),
    // The third source is the destination.
    row("mad", 8, &[Part::Text("mad"), Part::Number(&DST), Part::Number(&SRC), Part::Number(&AGAIN)]),
];

fn table() -> Table<Notes> {
    Table::new(&[ROWS], &[OPCODE])
}

/// `@` may come before a name.
struct At;

impl Prefixes for At {
    fn skip(reader: &mut Reader) {
        reader.eat("@");
    }
}

fn text(word: u64, here: Scope) -> Result<String, NoReading> {
    let mut text = String::new();
    table().print(word, here, None, &mut text).map(|_| text)
}

/// Returns the word of a line, or the parts of its message: the text at the span, the problem, and the text that
/// would fit.
fn word(line: &str, here: Scope) -> Result<u64, (String, String, String)> {
    let table = table();
    let read = LineReader::new(&table, here).read::<At>(line).map(|Line { word, .. }| word);
    read.map_err(|error| {
        let place = line[error.span.start..error.span.end].to_owned();
        (place, error.message.clone(), error.help.clone().unwrap_or_default())
    })
}

fn decoded(word: u64, here: Scope) -> Result<Vec<(&'static str, i64)>, NoReading> {
    let mut notes = Notes::default();
    table().decode(word, here, &mut notes).map(|_| notes.0)
}

/// Seeded numbers: xorshift.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |x| {
        let x = x ^ x << 13;
        let x = x ^ x >> 7;
        Some(x ^ x << 17)
    })
}

#[test]
fn every_part_has_one_spelling_and_one_value() {
    for (word, here, text_is, value) in [
        (0x1000_0012, OLD, "add $r2 $r1", &[("saturate", 0), ("register", 2), ("register", 1)][..]),
        (0x1000_0112, OLD, "add sat $r2 $r1", &[("saturate", 1), ("register", 2), ("register", 1)]),
        (0x2000_00f3, OLD, "mov $r3 $r15", &[("register", 3), ("register", 15)]),
        (0x2000_ff03, OLD, "mov $r3 0x7f", &[("register", 3), ("immediate", 0x7f)]),
        (0x2002_0153, NEW, "mov $r3 $r2h", &[("register", 3), ("half", 5)]),
        (0x3000_0100, OLD, "ld $r0 s[0x4]", &[("register", 0), ("base", 0), ("offset", 4)]),
        (0x3000_ff20, OLD, "ld $r0 s[$a2+-0x4]", &[("register", 0), ("base", 2), ("offset", -4)]),
        (0x3000_0010, OLD, "ld $r0 s[$a1]", &[("register", 0), ("base", 1), ("offset", 0)]),
        (0x3001_0110, OLD, "ld $r0 s[$a1++0x4]", &[("register", 0), ("base", 1), ("offset", 4)]),
        (0x4000_ff31, OLD, "ldc $r1 c3[0xff]", &[("register", 1), ("bank", 3), ("offset", 255)]),
        (0x5100_0010, OLD, "bra 0x40", &[("likely", 0), ("target", 0x40)]),
        (0x5500_0010, OLD, "@ bra 0x40", &[("likely", 1), ("target", 0x40)]),
        (0x280_6000_ff00, OLD, "far (-0x7f01) dots..", &[("distance", -0x7f01), ("dots", 2), ("far", 1)]),
        (0x7000_0040, NEW, "dbl $r4d", &[("double", 4)]),
    ] {
        assert_eq!(text(word, here).as_deref(), Ok(text_is), "{word:#x}");
        assert_eq!(decoded(word, here).as_deref(), Ok(value), "{text_is}");
        assert_eq!(crate::word(text_is, here), Ok(word), "{text_is}");
    }
}

#[test]
fn any_word_of_a_row_survives_the_way_through_text() {
    for row in ROWS {
        for number in numbers(row.fixed | 1).take(2000) {
            let word = (number & !row.mask | row.fixed) & row.width();
            for here in [OLD, NEW] {
                match text(word, here) {
                    Ok(text) => assert_eq!(crate::word(&text, here), Ok(word), "{text}"),
                    Err(NoReading::NoPart { .. } | NoReading::Elsewhere { .. }) => {}
                    Err(NoReading::NoRow) => panic!("{word:#x} is of row {}", row.id),
                }
            }
        }
    }
}

#[test]
fn bits_that_no_part_claims_follow_the_instruction_unless_they_are_the_default() {
    assert_eq!(text(0x1004_0012, OLD).as_deref(), Ok("add $r2 $r1 bits 0x40000"));
    assert_eq!(text(0x8000_0000_6000_0000, OLD).as_deref(), Ok("far (0x0) dots bits 0x0 0x80000000"));
    // Bit 24 of `bra` is usually set.
    assert_eq!(text(0x5000_0010, OLD).as_deref(), Ok("bra 0x40 bits 0x1000000"));
    assert_eq!(word("bra 0x40 bits 0x1000000", OLD), Ok(0x5000_0010));
}

#[test]
fn a_word_without_a_reading_says_why() {
    assert_eq!(text(0xf000_0000, OLD), Err(NoReading::NoRow));
    assert_eq!(text(0x7000_0000, OLD), Err(NoReading::Elsewhere { row: "dbl" }));
    assert_eq!(text(0x1000_0200, OLD), Err(NoReading::NoPart { row: "add", part: "saturate" }));
    // The half register is a case of new chips.
    assert_eq!(decoded(0x2002_0100, OLD), Err(NoReading::NoPart { row: "mov", part: "operand" }));
    let mut out = "before".to_owned();
    assert!(table().print(0x2002_0100, OLD, None, &mut out).is_err());
    assert_eq!(out, "before", "an error leaves the text as it was");
}

#[test]
fn a_description_covers_each_bit_of_the_word() {
    for row in ROWS {
        let described = table().describe(row.fixed, NEW).expect("all rows exist on the new chip");
        let all = described.iter().fold(0, |bits, part| bits | part.bits);
        assert_eq!(all, row.width(), "{}", row.id);
    }
    let described = table().describe(0x4000_ff31 | 3 << 20, OLD).expect("ldc");
    let parts: Vec<_> = described.iter().map(|part| (part.bits, part.name, part.text.as_str())).collect();
    assert_eq!(
        parts,
        [
            (0xf000_0000, "opcode", "ldc"),
            (0xf, "destination", "$r1"),
            (0xff30, "constant", "c3[0xff]"),
            (0x0fff_00c0, "spare", "0x300000 differs from its default"),
        ]
    );
    let described = table().describe(0x2000_ff03, OLD).expect("mov");
    assert!(described.iter().any(|part| (part.name, part.text.as_str()) == ("operand", "0x7f")));
}

#[test]
fn a_label_takes_the_place_of_a_code_address() {
    struct Start;
    impl Labels for Start {
        fn push(&self, address: u32, out: &mut String) -> bool {
            let known = address == 0x40;
            out.push_str(if known { "start" } else { "" });
            known
        }
    }
    let mut out = String::new();
    table().print(0x5100_0010, OLD, Some(&Start), &mut out).expect("bra");
    table().print(0x5100_0011, OLD, Some(&Start), &mut out).expect("bra");
    assert_eq!(out, "bra startbra 0x44");

    let table = table();
    let mut lines = LineReader::new(&table, OLD);
    let line = lines.read::<At>("@bra start").expect("a prefix, a name and a label");
    assert_eq!((line.row.id, line.word), ("bra", 0x5500_0000));
    let label = line.label.expect("it names a label");
    assert_eq!((label.name, label.span.start..label.span.end), ("start", 5..10));
    assert_eq!([0x40, 0x42, 0x4_0000].map(|address| label.bits(address)), [Some(0x10), None, None]);
}

#[test]
fn a_message_names_the_furthest_place_and_what_would_fit_there() {
    for (line, place, message, help) in [
        ("", "", "an instruction is missing here", ""),
        ("ad $r1 $r2", "ad", "unknown instruction `ad`", "did you mean `add`?"),
        ("add $r1", "", "the instruction is not complete", "expected `$r0`"),
        ("add $r1 0x4", "0x4", "unexpected `0x4`", "expected `$r0`"),
        ("add $r1 $r2 $r3", "$r3", "unexpected `$r3`", "the instruction ends before this text"),
        ("mov $r1 -", "-", "unexpected `-`", "expected one of $r0, 0x0"),
        ("ld $r1 s[$a1+0x3]", "0x3", "0x3 is not a multiple of 4: expected 0x0 or 0x4", ""),
        (
            "ld $r1 s[$a1+0x200]",
            "0x200",
            "0x200 is out of range: expected -0x200 to 0x1fc, multiples of 4",
            "",
        ),
        ("ldc $r1 c4[0x0]", "c4", "c4[] does not exist: expected c0[] to c3[]", ""),
        ("ld $r1 s[$a4]", "$a4", "$a4 does not exist: expected $a1 to $a3", ""),
        ("mov $r1 0x100", "0x100", "0x100 is too large for immediate: expected 0x0 to 0xff", ""),
        (
            "mov $r1 0x1ffffffff",
            "0x1ffffffff",
            "0x1ffffffff is too large for immediate: expected 0x0 to 0xff",
            "",
        ),
        ("bra 0x41", "0x41", "target: expected a multiple of 0x4, found 0x41", ""),
        (
            "far (0x8000) dots",
            "0x8000",
            "0x8000 is out of range for distance: expected -0x8000 to 0x7fff",
            "",
        ),
        ("mad $r1 $r2 $r3", "$r3", "this text contradicts the earlier text of the instruction", ""),
        ("dbl $r1d", "dbl", "`dbl` does not exist on this chip or in this program type", "choose another"),
        ("add $r1 $r2 bits 0x1", "0x1", "the text before `bits` already determines the bits 0x1", ""),
        ("add $r1 $r2 bits", "", "the instruction is not complete", "expected `a 32-bit number`"),
        ("add ß $r2", "ß", "unexpected `ß`", ""),
    ] {
        let (found, says, advice) = word(line, OLD).expect_err(line);
        assert_eq!((found.as_str(), says.as_str()), (place, message), "{line}");
        assert!(advice.contains(help), "{line}: {advice}");
    }
}

#[test]
fn text_of_a_case_is_refused_when_its_bits_are_those_of_an_earlier_one() {
    /// A register in two bits, unless both are set, which is `none`.
    static EARLY: Number<Notes> = Number { field: at(0, 2), ..register("index", at(0, 2)) };
    static INDEX: Cases<Notes> = Cases {
        name: "index",
        cases: &[
            Case { mask: 3, fixed: 3, scope: Scope::ALL, parts: &[Part::Text("none")] },
            Case { mask: 0, fixed: 0, scope: Scope::ALL, parts: &[Part::Number(&EARLY)] },
        ],
    };
    static INDEXED: &[Row<Notes>] = &[row("get", 9, &[Part::Text("get"), Part::Case(&INDEX)])];
    let table = Table::new(&[INDEXED], &[OPCODE]);
    let mut lines = LineReader::new(&table, OLD);
    assert_eq!(lines.read::<At>("get $r2").map(|line| line.word).ok(), Some(0x9000_0002));
    assert_eq!(lines.read::<At>("get none").map(|line| line.word).ok(), Some(0x9000_0003));
    let error = lines.read::<At>("get $r3").expect_err("register 3 is spelled none");
    assert_eq!(error.message, "these bits select another form of index");
}

#[test]
fn rows_of_the_table_do_not_overlap_and_are_found_by_name() {
    for (number, row) in ROWS.iter().enumerate() {
        assert!(ROWS[number + 1..].iter().all(|other| !row.overlaps(other)), "{}", row.id);
        assert_eq!(row.unclaimed() & row.mask, 0);
    }
    let table = table();
    let mut names: Vec<_> = table.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["add", "bra", "dbl", "far", "ld", "ldc", "mad", "mov"]);
    assert_eq!(table.rows().len(), ROWS.len());
}
