//! The lane functions against the expected values of the hardware models, every row of every family.
//!
//! The operation and its modifiers come from the `op` column. Other tests check the encoded words against the
//! instruction tables; here they count only if one name covers two encodings with different results.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use reconverge_tesla::lane::atomic::{Atomic, Atomic64, atomic32, atomic64};
use reconverge_tesla::lane::convert::{self, FloatSize, Integer, Size};
use reconverge_tesla::lane::float::Saturate;
use reconverge_tesla::lane::integer::{self, Addition, Flagged, Logic, Product};
use reconverge_tesla::lane::quad::{QuadOp, QuadSource, derivative_outside_fragment, quadop};
use reconverge_tesla::lane::{Compare, Flags, Modifiers, Rounding, Width};
use reconverge_tesla::lane::{convert64, double, float, special};
use reconverge_testkit::shared;

/// The families of the set; a missing file is also a failure.
const FAMILIES: [&str; 38] = [
    "atom32",
    "atom64",
    "cvt_f2f",
    "cvt_f2f64",
    "cvt_f2i",
    "cvt_f2i64",
    "cvt_i2f",
    "cvt_i2f64",
    "cvt_i2i",
    "dadd",
    "dfma",
    "dminmax",
    "dmul",
    "dset",
    "fadd",
    "fmad",
    "fminmax",
    "fmul",
    "fset",
    "fslct",
    "iadd",
    "imad",
    "iminmax",
    "iset",
    "logic",
    "mul16",
    "mul24",
    "quadop",
    "sad",
    "sfu_cos",
    "sfu_ex2",
    "sfu_lg2",
    "sfu_preex2",
    "sfu_presin",
    "sfu_rcp",
    "sfu_rsqrt",
    "sfu_sin",
    "shift",
];

/// One line, as columns by name.
struct Row(BTreeMap<String, String>);

impl Row {
    fn new(header: &[String], line: &str) -> Row {
        Row(header.iter().cloned().zip(line.split(',').map(str::to_string)).collect())
    }

    fn text(&self, column: &str) -> &str {
        &self.0[column]
    }

    /// Returns a hexadecimal column; 0 if the column has no operand.
    fn value(&self, column: &str) -> u64 {
        match self.text(column) {
            "-" => 0,
            hex => u64::from_str_radix(hex, 16).expect(hex),
        }
    }

    fn word(&self, column: &str) -> u32 {
        self.value(column) as u32
    }

    /// Returns the second operand of add: SRC3 in the long form, SRC2 in the others.
    fn second(&self) -> u32 {
        self.word(if self.text("src3") == "-" { "src2" } else { "src3" })
    }

    fn carry_in(&self) -> Flags {
        Flags::from_bits(self.value("cc_in") as u8)
    }

    fn saturate(&self, op: &Op) -> Saturate {
        let sat_nan = self.text("mode").contains("sat_nan=1");
        match (op.has("sat"), sat_nan, self.text("chip")) {
            (false, ..) => Saturate::No,
            (true, false, _) => Saturate::Plain,
            (true, true, "G200") => Saturate::ZeroNanOperands,
            (true, true, _) => Saturate::ZeroNan,
        }
    }

    fn zero_wins(&self) -> bool {
        self.text("mode").contains("mul_zero_wins=1")
    }
}

/// The words of the `op` column.
struct Op<'a>(Vec<&'a str>);

impl<'a> Op<'a> {
    fn new(text: &'a str) -> Op<'a> {
        let spelled = text.split(" [short]").next().unwrap_or(text).split(" [imm").next().unwrap_or(text);
        Op(spelled.split([' ', '(', ')']).filter(|word| !word.is_empty()).collect())
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    /// Returns the modifiers directly before a word.
    fn before(&self, word: &str) -> Modifiers {
        let mut modifiers = Modifiers::NONE;
        let place = self.0.iter().position(|&found| found == word).expect(word);
        for found in self.0[..place].iter().rev() {
            match *found {
                "abs" => modifiers.abs = true,
                "neg" | "not" => modifiers.neg = true,
                _ => break,
            }
        }
        modifiers
    }

    /// Returns the modifiers of the only source, at any position.
    fn modifiers(&self) -> Modifiers {
        Modifiers { abs: self.has("abs"), neg: self.has("neg") }
    }

    fn width(&self) -> Width {
        if self.has("b16") || self.has("u16") || self.has("s16") { Width::B16 } else { Width::B32 }
    }

    fn signed(&self) -> bool {
        self.0.iter().any(|word| ["s16", "s24", "s32"].contains(word))
    }

    fn addition(&self) -> Addition {
        match self.0[0] {
            "add" => Addition::Add,
            "sub" => Addition::Sub,
            "subr" => Addition::Subr,
            "addc" => Addition::Addc,
            other => panic!("no addition: {other}"),
        }
    }

    fn compare(&self) -> Compare {
        const CODES: [&str; 16] = [
            "never", "l", "e", "le", "g", "lg", "ge", "lge", "u", "lu", "eu", "leu", "gu", "lgu", "geu",
            "always",
        ];
        Compare::from_bits(CODES.iter().position(|code| *code == self.0[1]).expect("a condition") as u8)
    }

    /// Returns the rounding mode, if one is spelled, and whether it rounds to a whole number.
    fn rounding(&self) -> Option<(Rounding, bool)> {
        self.0.iter().find_map(|word| {
            let (mode, integral) = match word.strip_suffix('i') {
                Some(mode) => (mode, true),
                None => (*word, false),
            };
            Some((
                match mode {
                    "rn" => Rounding::Nearest,
                    "rm" => Rounding::Down,
                    "rp" => Rounding::Up,
                    "rz" => Rounding::Zero,
                    _ => return None,
                },
                integral,
            ))
        })
    }

    /// Returns the rounding mode; nearest if none is spelled.
    fn mode(&self) -> Rounding {
        self.rounding().map_or(Rounding::Nearest, |(mode, _)| mode)
    }

    /// Returns destination and source type of a cvt.
    fn types(&self) -> (&'a str, &'a str) {
        let end = self.0.len() - 1;
        (self.0[end - 2], self.0[end - 1])
    }
}

fn product(op: &Op) -> Product {
    let kinds: Vec<&str> =
        op.0.iter().copied().filter(|word| ["u16", "s16", "u24", "s24"].contains(word)).collect();
    match kinds[0] {
        "u24" | "s24" => Product::Bits24 { signed: kinds[0] == "s24", high: op.has("high") },
        first => {
            Product::Bits16 { signed1: first == "s16", signed2: *kinds.last().expect("a kind") == "s16" }
        }
    }
}

fn integer_type(name: &str) -> Integer {
    let size = match &name[1..] {
        "8" => Size::B8,
        "16" => Size::B16,
        "32" => Size::B32,
        other => panic!("no size: {other}"),
    };
    Integer { size, signed: name.starts_with('s') }
}

fn wide_integer_type(name: &str) -> convert64::Integer {
    convert64::Integer { wide: name.ends_with("64"), signed: name.starts_with('s') }
}

fn float_size(name: &str) -> FloatSize {
    match name {
        "f16" => FloatSize::F16,
        "f32" => FloatSize::F32,
        other => panic!("no size: {other}"),
    }
}

fn extended((result, flags): (u32, Flags)) -> (u64, Flags) {
    (u64::from(result), flags)
}

/// Returns the result of an operation on integers. Returns `None` for other families.
fn integers(family: &str, op: &Op, row: &Row) -> Option<Flagged<u32>> {
    let (a, b, c) = (row.word("src1"), row.word("src2"), row.word("src3"));
    let carry = row.carry_in().carry().into();
    Some(match family {
        "iadd" => integer::add(op.addition(), op.width(), op.has("sat"), a, row.second(), carry),
        "mul16" | "mul24" => integer::mul(product(op), a, b),
        "imad" => integer::mad(product(op), op.addition(), op.has("sat"), [a, b, c], carry),
        "sad" => integer::sad(op.width(), op.signed(), a, b, c),
        "iminmax" if op.has("min") => integer::min(op.width(), op.signed(), a, b),
        "iminmax" => integer::max(op.width(), op.signed(), a, b),
        "iset" => integer::set(op.compare(), op.width(), op.signed(), a, b),
        "logic" => {
            let logic = match op.0[0] {
                "and" => Logic::And,
                "or" => Logic::Or,
                "xor" => Logic::Xor,
                "mov2" => Logic::Mov2,
                other => panic!("no operation: {other}"),
            };
            integer::logic(logic, op.width(), op.before("a").neg, op.before("b").neg, a, b)
        }
        "shift" if op.has("shl") => integer::shl(op.width(), a, b),
        "shift" => integer::shr(op.width(), op.signed(), a, b),
        _ => return None,
    })
}

/// Returns the results of the functions for a row of any family with a `result` column, except for quadop.
fn computed(family: &str, row: &Row) -> (u64, Flags) {
    let op = Op::new(row.text("op"));
    let (a, b, c) = (row.word("src1"), row.word("src2"), row.word("src3"));
    let (a64, b64, c64) = (row.value("src1"), row.value("src2"), row.value("src3"));
    let sat = row.saturate(&op);
    let special = |function: fn(u32) -> u32| (function(op.before("a").f32(a)), Flags::NONE);
    if let Some(result) = integers(family, &op, row) {
        return extended(result.of_lane());
    }
    extended(match family {
        "fadd" => {
            let second = op.before(if op.has("c") { "c" } else { "b" }).f32(row.second());
            float::add(op.before("a").f32(a), second, op.mode(), sat)
        }
        "fmul" => {
            let (a, b) = (op.before("a").f32(a), op.before("b").f32(b));
            float::mul(a, b, op.mode(), sat, row.zero_wins())
        }
        "fmad" => float::mad(a, b, op.before("c").f32(c), op.before("mul").neg, sat, row.zero_wins()),
        "fminmax" if op.has("min") => float::min(op.before("a").f32(a), op.before("b").f32(b)),
        "fminmax" => float::max(op.before("a").f32(a), op.before("b").f32(b)),
        "fset" => float::set(op.compare(), op.before("a").f32(a), op.before("b").f32(b)),
        "fslct" => float::slct(a, b, op.before("c").f32(c)),
        "cvt_i2i" => {
            let (to, from) = op.types();
            // One name covers byte results in both register widths.
            let register = if row.word("w1") >> 26 & 1 != 0 { Width::B32 } else { Width::B16 };
            convert::i2i(integer_type(to), register, integer_type(from), op.modifiers(), a)
        }
        "cvt_i2f" => {
            let (to, from) = op.types();
            let convert = if to == "f16" { convert::i2f16 } else { convert::i2f };
            convert(op.mode(), sat, integer_type(from), op.modifiers(), a)
        }
        "cvt_f2i" => {
            let (to, from) = op.types();
            let width = if to.ends_with("16") { Width::B16 } else { Width::B32 };
            convert::f2i(width, to.starts_with('s'), op.mode(), float_size(from), op.modifiers(), a)
        }
        "cvt_f2f" => {
            let (to, from) = op.types();
            let (mode, integral) = op.rounding().unwrap_or((Rounding::Nearest, false));
            match float_size(to) {
                FloatSize::F16 => convert::f2f16(integral, mode, sat, float_size(from), op.modifiers(), a),
                FloatSize::F32 => {
                    convert::f2f32(integral.then_some(mode), sat, float_size(from), op.modifiers(), a)
                }
            }
        }
        "cvt_i2f64" => {
            let (to, from) = op.types();
            let from = wide_integer_type(from);
            if to == "f64" {
                return convert64::i2f64(op.mode(), from, op.modifiers(), a64);
            }
            convert64::i2f32(op.mode(), from, op.modifiers(), a64)
        }
        "cvt_f2i64" => {
            let (to, from) = op.types();
            let to = wide_integer_type(to);
            return match from {
                "f64" => convert64::f64_to_i(to, op.mode(), op.modifiers(), a64),
                _ => convert64::f32_to_i(to, op.mode(), op.modifiers(), a),
            };
        }
        "cvt_f2f64" => match op.types() {
            ("f32", _) => convert64::f64_to_f32(op.mode(), op.modifiers(), a64),
            (_, "f32") => return convert64::f32_to_f64(op.modifiers(), a),
            _ => {
                let integral = op.rounding().map(|(mode, _)| mode);
                return convert64::f64_to_f64(integral, op.modifiers(), a64);
            }
        },
        "dadd" => return double::add(op.mode(), op.before("a").neg, op.before("c").neg, a64, c64),
        "dmul" => return double::mul(op.mode(), op.before("a").neg, a64, b64),
        "dfma" => return double::fma(op.mode(), op.before("a").neg, op.before("c").neg, a64, b64, c64),
        "dminmax" if op.has("min") => return double::min(op.before("a"), op.before("b"), a64, b64),
        "dminmax" => return double::max(op.before("a"), op.before("b"), a64, b64),
        "dset" => double::set(op.compare(), op.before("a"), op.before("b"), a64, b64),
        "sfu_rcp" => special(special::rcp),
        "sfu_rsqrt" => special(special::rsqrt),
        "sfu_lg2" => special(special::lg2),
        "sfu_presin" => special(special::presin),
        "sfu_preex2" => special(special::preex2),
        "sfu_sin" => special(special::sin),
        "sfu_cos" => special(special::cos),
        "sfu_ex2" => (special::ex2(a, sat), Flags::NONE),
        other => panic!("no such family: {other}"),
    })
}

/// Returns the new memory word of an atomic or a reduction.
fn new_memory(family: &str, row: &Row) -> u64 {
    let op = Op::new(row.text("op"));
    let name = op.0.iter().find(|word| !["ld", "red"].contains(*word)).copied().expect("an operation");
    let (old, src2, src3) = (row.value("mem_old"), row.value("src2"), row.value("src3"));
    if family == "atom64" {
        let op = match name {
            "add" => Atomic64::Add,
            "exch" => Atomic64::Exch,
            "cas" => Atomic64::Cas,
            other => panic!("no operation: {other}"),
        };
        return atomic64(op, old, src2, src3);
    }
    let atomic = match name {
        "add" => Atomic::Add,
        "exch" => Atomic::Exch,
        "cas" => Atomic::Cas,
        "inc" => Atomic::Inc,
        "dec" => Atomic::Dec,
        "max" => Atomic::Max,
        "min" => Atomic::Min,
        "and" => Atomic::And,
        "or" => Atomic::Or,
        "xor" => Atomic::Xor,
        other => panic!("no operation: {other}"),
    };
    u64::from(atomic32(atomic, op.has("s32"), false, old as u32, src2 as u32, src3 as u32))
}

/// Checks four rows, which are one quad.
fn quad(rows: &[Row], differences: &mut Vec<String>) {
    for row in rows {
        let op = Op::new(row.text("op"));
        let lane: u8 = row.text("lane").parse().expect("a lane");
        let action = match op.0[2 + usize::from(lane)] {
            "add" => QuadOp::Add,
            "subr" => QuadOp::Subr,
            "sub" => QuadOp::Sub,
            "mov2" => QuadOp::Mov2,
            other => panic!("no operation: {other}"),
        };
        let source = QuadSource::from_code((row.word("w0") >> 16) as u8);
        let spelled = match op.0[6] {
            "dx" => QuadSource::Dx,
            "dy" => QuadSource::Dy,
            name => QuadSource::Lane(name[1..].parse().expect("a lane")),
        };
        assert_eq!(source, spelled);
        let fragment = !row.text("mode").contains("non_fp_stage");
        let got = match source {
            QuadSource::Dx | QuadSource::Dy if !fragment => {
                derivative_outside_fragment(row.text("mode").contains("nonfp_deriv=1"))
            }
            _ => quadop(action, rows[usize::from(source.lane(lane))].word("src1"), row.word("src3")),
        };
        compare("quadop", row, extended(got), differences);
    }
}

fn compare(family: &str, row: &Row, (result, flags): (u64, Flags), differences: &mut Vec<String>) {
    let same_flags = row.text("cc_out") == "-" || row.value("cc_out") == u64::from(flags.bits());
    if result != row.value("result") || !same_flags {
        differences.push(format!("{family}: {:?}\n    got {result:x} {:x}", row.0, flags.bits()));
    }
}

/// Returns all differences of a family's rows.
fn judge(family: &str, rows: &[Row]) -> Vec<String> {
    let mut differences = Vec::new();
    match family {
        "quadop" => rows.chunks(4).for_each(|rows| quad(rows, &mut differences)),
        "atom32" | "atom64" => {
            for row in rows {
                let got = new_memory(family, row);
                let returned = row.text("returned") == "-" || row.value("returned") == row.value("mem_old");
                if got != row.value("mem_new") || !returned {
                    differences.push(format!("{family}: {:?}\n    got {got:x}", row.0));
                }
            }
        }
        _ => rows.iter().for_each(|row| compare(family, row, computed(family, row), &mut differences)),
    }
    differences
}

/// Returns the families of a reader. Each is a header and its rows, with a line `# family` before it.
fn families(input: impl Read) -> BTreeMap<String, Vec<Row>> {
    let mut all = BTreeMap::new();
    let (mut name, mut header) = (String::new(), None::<Vec<String>>);
    for line in BufReader::new(flate2::read::MultiGzDecoder::new(input)).lines() {
        let line = line.expect("text");
        if let Some(family) = line.strip_prefix("# ") {
            (name, header) = (family.to_string(), None);
        } else if let Some(columns) = &header {
            all.entry(name.clone()).or_insert_with(Vec::new).push(Row::new(columns, &line));
        } else {
            header = Some(line.split(',').map(str::to_string).collect());
        }
    }
    all
}

fn report(rows: usize, differences: &[String]) {
    for difference in differences.iter().take(20) {
        println!("{difference}");
    }
    println!("{rows} rows, {} differences", differences.len());
    assert!(differences.is_empty(), "{} of {rows} rows differ", differences.len());
}

#[test]
fn every_vector_is_reproduced() {
    let Some(folder) = shared("vectors/tesla") else { return };
    let (mut count, mut differences) = (0, Vec::new());
    for family in FAMILIES {
        let path = folder.join(format!("{family}.csv.gz"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let rows = families(file).remove("").unwrap_or_default();
        let found = judge(family, &rows);
        println!("{family}: {} rows, {} differences", rows.len(), found.len());
        assert!(rows.len() > 3000, "{family} is cut");
        count += rows.len();
        differences.extend(found.into_iter().take(10));
    }
    report(count, &differences);
}

#[test]
fn the_sample_of_every_family_is_reproduced() {
    let all = families(&include_bytes!("vectors-sample.csv.gz")[..]);
    assert!(all.keys().map(String::as_str).eq(FAMILIES));
    let mut differences = Vec::new();
    for (family, rows) in &all {
        assert!(rows.len() >= 24, "{family} has {} rows", rows.len());
        differences.extend(judge(family, rows));
    }
    report(all.values().map(Vec::len).sum(), &differences);
}
