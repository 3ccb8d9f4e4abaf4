//! Functions of one 32-bit word, computed with integers and compared with the results of every engine.
//!
//! The tests run a sample of all words; with `RECONVERGE_WORDS=all`, and a release build, all 2^32
//! (docs/testing.md).

use reconverge_isa::Program;
use reconverge_simt::compiling::spent;
use reconverge_simt::level::Kind;
use reconverge_simt::{Engine, Level, Mode, Options};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::lane::convert::{self, FloatSize, Integer, Size};
use reconverge_tesla::lane::float::{self, NAN, Saturate};
use reconverge_tesla::lane::{Modifiers, Rounding, Width, special};
use reconverge_tesla::launch::{Launch, Setup, Vertex};
use reconverge_tesla::run::run;
use reconverge_tesla::text::assemble;
use reconverge_testkit::exact::{self, Real, Whole};
use reconverge_testkit::{BLOCK, each_block, same_of_each};

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const NONE: Modifiers = Modifiers::NONE;

/// Returns a zero of the same sign for a denormal, and any other word as it is.
fn flushed(x: u32) -> u32 {
    if x << 1 < 1 << 24 { x & SIGN } else { x }
}

fn is_nan(x: u32) -> bool {
    x << 1 > INFINITY << 1
}

fn how(rounding: Rounding) -> Whole {
    match rounding {
        Rounding::Nearest => Whole::Nearest,
        Rounding::Down => Whole::Floor,
        Rounding::Up => Whole::Ceil,
        Rounding::Zero => Whole::Trunc,
    }
}

#[test]
fn floats_become_whole_numbers_and_integers_in_every_mode() {
    same_of_each("flush", float::flush, |x, _| flushed(x));
    for rounding in Rounding::ALL {
        let whole = |x| convert::f2f32(Some(rounding), Saturate::No, FloatSize::F32, NONE, x).0;
        same_of_each("cvt to a whole f32", whole, |x, _| {
            if is_nan(x) { NAN } else { exact::made_whole(flushed(x), how(rounding)) }
        });
        for (to, signed, low, high) in [
            (Width::B32, true, i64::from(i32::MIN), i64::from(i32::MAX)),
            (Width::B32, false, 0, i64::from(u32::MAX)),
            (Width::B16, true, i64::from(i16::MIN), i64::from(i16::MAX)),
            (Width::B16, false, 0, i64::from(u16::MAX)),
        ] {
            let found = |x| convert::f2i(to, signed, rounding, FloatSize::F32, NONE, x).0;
            same_of_each("cvt to an integer", found, |x, _| {
                let value = match exact::whole(flushed(x), how(rounding)) {
                    Some(whole) => whole.clamp(low, high),
                    None if is_nan(x) => 0,
                    None if x >= SIGN => low,
                    None => high,
                };
                value as u32 & (u32::MAX >> (32 - to.bits()))
            });
        }
    }
}

/// Returns a whole number as an f32, rounded in a mode.
fn float_of(number: i64, rounding: Rounding) -> u32 {
    let (negative, magnitude) = (number < 0, number.unsigned_abs());
    // Truncated to 24 bits, plus one unit of the last place if the mode demands it.
    let down = (64 - magnitude.leading_zeros()).saturating_sub(24);
    let cut = magnitude >> down << down;
    let away = match rounding {
        Rounding::Nearest => return exact::nearest(negative, magnitude.into(), 0),
        Rounding::Zero => false,
        Rounding::Up => !negative,
        Rounding::Down => negative,
    };
    exact::nearest(negative, u128::from(cut) + if away && cut != magnitude { 1 << down } else { 0 }, 0)
}

#[test]
fn integers_become_floats_in_every_mode() {
    for rounding in Rounding::ALL {
        for signed in [false, true] {
            let from = Integer { size: Size::B32, signed };
            let found = |x| convert::i2f(rounding, Saturate::No, from, NONE, x).0;
            same_of_each("cvt from an integer", found, |x, _| {
                float_of(if signed { i64::from(x as i32) } else { i64::from(x) }, rounding)
            });
        }
    }
}

#[test]
fn the_inputs_of_sin_cos_and_ex2_are_cut_products() {
    // Sign, and the magnitude with 23 bits after the point. Bit 30 marks values that are not a number in range;
    // with bit 23, an infinity.
    same_of_each("presin", special::presin, |x, _| {
        let ((significand, exponent), sign) = (exact::parts(flushed(x)), x & SIGN);
        match x % SIGN {
            INFINITY => sign | 0x4080_0000,
            nan if is_nan(nan) => sign | 0x4000_0000,
            // The result is in quadrants, of which two bits count. If the last place is 2^25 or more, these bits
            // are zero.
            _ => {
                let product = (u128::from(significand) * 0xa2_f983) >> 16;
                let place = exponent + 150 - 127 - 8;
                let quadrants = match place {
                    25.. => 0,
                    0.. => product << place,
                    _ => product >> (-place).min(100),
                };
                sign | quadrants as u32 & 0x01ff_ffff
            }
        }
    });
    same_of_each("preex2", special::preex2, |x, _| {
        let ((significand, exponent), sign) = (exact::parts(flushed(x)), x & SIGN);
        match x % SIGN {
            nan if is_nan(nan) => sign | 0x4000_0000,
            // 2^7 and larger.
            0x4300_0000.. => sign | 0x4080_0000,
            _ => {
                let place = exponent + 23;
                let number = u64::from(significand);
                sign | if place >= 0 { number << place } else { number >> (-place).min(60) } as u32
            }
        }
    });
}

/// Returns the distance of two results in units of the last place, or u32::MAX if only one is finite or their signs
/// differ.
fn units(found: u32, value: Real) -> u32 {
    let [near, _] = value.candidates();
    let near = flushed(near);
    if (found ^ near) & SIGN != 0 && (found | near) << 1 != 0 { u32::MAX } else { found.abs_diff(near) }
}

/// The unit interpolates in tables. The results are within two units of the function if that is not near zero, and
/// exact in all bits if the tables are. (8; the tables' own check values are in `special.rs`)
#[test]
fn reciprocals_roots_and_logarithms_are_within_units_of_the_functions() {
    let within = |found: u32, value: Option<Real>, most: u32| match value {
        Some(value) if units(found, value) <= most => found,
        Some(value) => value.candidates()[0],
        None => 0,
    };
    same_of_each("rcp", special::rcp, |x, found| match flushed(x) {
        nan if is_nan(nan) => NAN,
        zero @ (0 | SIGN) => zero | INFINITY,
        infinity @ (INFINITY | 0xff80_0000) => infinity & SIGN,
        // Below the smallest normal number, and near it, the result is zero.
        small if small % SIGN >= 0x7e80_0000 => judge(found, found << 1 == 0 || found % SIGN == 0x0080_0000),
        number => {
            let near = |r: u32| exact::is_reciprocal(number % SIGN, r);
            let magnitude = found % SIGN;
            judge(found, (found ^ x) < SIGN && (magnitude - 1..=magnitude + 1).any(near))
        }
    });
    same_of_each("rsqrt", special::rsqrt, |x, found| match flushed(x) {
        nan if is_nan(nan) => NAN,
        zero @ (0 | SIGN) => zero | INFINITY,
        SIGN.. => NAN,
        INFINITY => 0,
        number => judge(found, (found - 2..=found + 2).any(|r| exact::is_reciprocal_root(number, r))),
    });
    same_of_each("lg2", special::lg2, |x, found| match flushed(x) {
        nan if is_nan(nan) => NAN,
        0 | SIGN => SIGN | INFINITY,
        SIGN.. => NAN,
        INFINITY => INFINITY,
        // 36 bits after the point: near one, only the absolute error is small.
        0x3f00_0000..0x4000_0000 => {
            // Not rounded: half a unit of the last place is an eighth of the bound.
            let exact = exact::log2(x).map_or(0.0, |value| {
                let magnitude = value.significand as f64 * 2f64.powi(value.exponent);
                if value.negative { -magnitude } else { magnitude }
            });
            judge(found, (f64::from(f32::from_bits(found)) - exact).abs() < 2f64.powi(-22))
        }
        number => within(found, exact::log2(number), 4),
    });
}

/// Returns `found` if it is right, and another word otherwise.
fn judge(found: u32, right: bool) -> u32 {
    if right { found } else { !found }
}

type Function = fn(u32) -> u32;

/// Returns the functions as source text, each with its own destination register from $r2 on, and as lane functions.
fn functions() -> Vec<(String, Function)> {
    let mut all: Vec<(String, Function)> = vec![
        ("rcp f32 $r$ $r1".to_owned(), special::rcp),
        ("rsqrt f32 $r$ $r1".to_owned(), special::rsqrt),
        ("lg2 f32 $r$ $r1".to_owned(), special::lg2),
        ("presin f32 $r$ $r1".to_owned(), special::presin),
        ("preex2 f32 $r$ $r1".to_owned(), special::preex2),
        ("sin f32 $r$ $r1".to_owned(), special::sin),
        ("cos f32 $r$ $r1".to_owned(), special::cos),
        ("ex2 f32 $r$ $r1".to_owned(), |x| special::ex2(x, Saturate::No)),
    ];
    macro_rules! rounded {
        ($($name:literal $rounding:ident),*) => { $(
            all.push((concat!("cvt ", $name, "i f32 $r$ f32 $r1").to_owned(), |x| {
                convert::f2f32(Some(Rounding::$rounding), Saturate::No, FloatSize::F32, NONE, x).0
            }));
            all.push((concat!("cvt ", $name, "i s32 $r$ f32 $r1").to_owned(), |x| {
                convert::f2i(Width::B32, true, Rounding::$rounding, FloatSize::F32, NONE, x).0
            }));
            all.push((concat!("cvt ", $name, "i u32 $r$ f32 $r1").to_owned(), |x| {
                convert::f2i(Width::B32, false, Rounding::$rounding, FloatSize::F32, NONE, x).0
            }));
            all.push((concat!("cvt ", $name, " f32 $r$ s32 $r1").to_owned(), |x| {
                convert::i2f(Rounding::$rounding, Saturate::No, Integer { size: Size::B32, signed: true }, NONE, x).0
            }));
            all.push((concat!("cvt ", $name, " f32 $r$ u32 $r1").to_owned(), |x| {
                convert::i2f(Rounding::$rounding, Saturate::No, Integer { size: Size::B32, signed: false }, NONE, x).0
            }));
        )* };
    }
    rounded!("rn" Nearest, "rm" Down, "rp" Up, "rz" Zero);
    all
}

/// Number of blocks of words in a launch. They have enough warps to make the engine compile code.
const BLOCKS: usize = 4;

/// Runs the functions with the source in `$r1` on every engine. Returns the number of bytes of code compiled
/// meanwhile.
fn check(functions: &[(String, Function)]) -> u64 {
    let mut text = "mov b32 $r1 a[0x0]\n".to_owned();
    for ((line, _), register) in functions.iter().zip(2..) {
        text += &format!("{}\n", line.replace("$r$", &format!("$r{register}")));
    }
    text += "exit nop\n";
    let words =
        assemble(&text, Chip::Gt215, Stage::Vertex).unwrap_or_else(|e| panic!("{text}\n{e:?}")).words();
    let program = Program { words, ..Program::default() };
    let (before, mut first) = (spent(), true);
    let mut sources: Vec<u32> = Vec::new();
    let mut go = |sources: Vec<u32>| {
        let mut setup = Setup::new(Chip::Gt215);
        setup.registers = 2 + functions.len() as u32;
        let vertex = Vertex {
            setup: setup.into(),
            lanes: sources.len(),
            inputs: [(0, sources.clone())].into_iter().collect(),
        };
        let expected: Vec<Vec<u32>> =
            functions.iter().map(|(_, function)| sources.iter().map(|x| function(*x)).collect()).collect();
        let levels = if first { Level::available() } else { vec![Level::best()] };
        let ways = levels.iter().flat_map(|level| [(Engine::Fast, *level), (Engine::Compiled, *level)]);
        // The interpreter takes some microseconds per warp, so it runs only for the first launch.
        for (engine, level) in first.then(|| (Engine::Reference, Level::best())).into_iter().chain(ways) {
            let options = Options { engine, level: Some(level), mode: Mode::Lenient, ..Options::default() };
            let outcome = run(&program, Launch::Vertex(vertex.clone()), &options);
            let lanes = outcome.unwrap_or_else(|error| panic!("{error}")).lanes;
            for ((line, _), (register, expected)) in functions.iter().zip((2..).zip(&expected)) {
                for (lane, (source, expected)) in sources.iter().zip(expected).enumerate() {
                    let found = lanes.register(lane, register);
                    let way = || format!("{engine}, {}", level.name());
                    assert_eq!(found, Some(*expected), "{line} of {source:#010x} on {}", way());
                }
            }
        }
        first = false;
    };
    each_block(0x5eed_2470, |block| {
        sources.extend(block);
        if sources.len() == BLOCKS * BLOCK {
            go(std::mem::take(&mut sources));
        }
    });
    spent().since(before).bytes
}

#[test]
fn functions_of_one_word_are_the_same_on_every_engine() {
    check(&functions());
}

/// The conversions that have templates. Each appears three times, so that compiling is worthwhile.
#[test]
fn host_code_converts_as_the_lane_functions_do() {
    let templates = ["cvt rn f32", "cvt rni s32", "cvt rni u32", "cvt rzi s32", "cvt rzi u32"];
    let conversions =
        functions().into_iter().filter(|(line, _)| templates.iter().any(|start| line.starts_with(start)));
    let conversions: Vec<(String, Function)> = conversions.collect();
    let code = check(&[conversions.clone(), conversions.clone(), conversions].concat());
    assert!(code > 0 || Level::best().kind() < Kind::Avx2);
}
