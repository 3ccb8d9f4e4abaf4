//! `reconverge piglit --compare A B`: compares two builds of Mesa on the same tests and chip.
//!
//! The command compares the surfaces after every draw, not only the pixels that a test probes. The command pairs the
//! draws of the two drivers by their index. If the two draws of a pair store into surfaces of different shapes, the
//! pairing ends before this pair. After that point, the command compares only verdicts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rayon::prelude::*;
use reconverge_simt::pool;
use serde::{Deserialize, Serialize};

use super::Piglit;
use super::choice::{chosen, root};
use super::lists::text_of;
use super::outcome::Outcome;
use super::process::Runner;
use super::runner::progress;
use super::test::Test;
use crate::args::Answer;
use crate::drm::board;
use crate::drm::setup::{Build, Setup};
use crate::messages::{answer_as, counted};

/// Maximum number of different pixels that are listed.
const NAMED: usize = 4;

/// A draw in the list of the preloaded library.
#[derive(Clone, Debug, Deserialize)]
struct Draw {
    draw: u64,
    targets: Vec<Surface>,
    /// The words of each stage's program, in hexadecimal digits.
    programs: BTreeMap<String, String>,
}

/// A surface after a draw.
#[derive(Clone, Debug, Deserialize)]
struct Surface {
    name: String,
    format: String,
    bytes: usize,
    pitch: usize,
    rows: usize,
    digest: String,
}

impl Surface {
    /// Returns the properties that must be equal in two draws. The command compares the contents of two surfaces only
    /// if these properties are equal.
    fn shape(&self) -> (&str, &str, usize, usize) {
        (&self.name, &self.format, self.pitch, self.rows)
    }
}

/// The output of `--json`.
#[derive(Serialize)]
struct Answered<'a> {
    chip: &'a str,
    /// `GL_VERSION` of both drivers.
    drivers: [&'a str; 2],
    tests: usize,
    /// Number of tests in which the pairs contain all draws of both drivers.
    paired: usize,
    /// Number of draws that were compared.
    draws: usize,
    differences: Vec<Difference>,
}

/// A test with different results on the two drivers.
#[derive(Serialize)]
struct Difference {
    test: String,
    /// The status of the test on each driver.
    status: [&'static str; 2],
    why: [String; 2],
    /// The first draw whose surfaces differ.
    first: Option<First>,
}

/// A draw whose surfaces differ.
#[derive(Serialize)]
struct First {
    /// The number of the draw on each driver.
    draws: [u64; 2],
    surface: String,
    format: String,
    /// Number of pixels that differ.
    pixels: usize,
    /// The first pixels that differ.
    named: Vec<Pixel>,
    /// The words of each stage's program on each driver, in hexadecimal digits.
    programs: [BTreeMap<String, String>; 2],
}

/// A pixel that differs. The fields are the position of the pixel, and the bytes of the pixel on each driver in
/// hexadecimal digits.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Pixel {
    x: usize,
    y: usize,
    values: [String; 2],
}

/// The result of pairing two lists of draws.
#[derive(Debug, Default, PartialEq, Eq)]
struct Paired {
    /// Number of pairs of draws with the same index that store into surfaces of the same shape.
    draws: usize,
    /// Whether all draws of both lists were paired.
    all: bool,
    /// The first number is the index of the first draw whose contents differ. The second number is the index of the
    /// first surface of this draw that differs.
    first: Option<(usize, usize)>,
}

pub(super) fn run(args: &Piglit, drivers: &[PathBuf]) -> Result<Answer> {
    let board = board(&args.chip)?;
    args.errata.check(board)?;
    let root = root(args.piglit.as_deref())?;
    let tests = chosen(args, &root, "")?.tests;
    let (mut setups, mut versions) = (Vec::new(), Vec::new());
    for folder in drivers {
        let setup = Setup::new(board, true, Build::new(folder)?)?.with_errata(&args.errata);
        versions.push(setup.check_renderer().with_context(|| crate::shown::path(&folder))?);
        setups.push(setup);
    }
    let bar = progress(2 * tests.len() as u64);
    let runner = Runner { args, root: &root };
    let pool = pool::pool(runner.jobs()).context("threads")?;
    let compared: Result<Vec<_>> = pool.install(|| {
        let each = tests.par_iter().map(|test| one(&runner, &setups, test));
        each.inspect(|_| bar.inc(2)).collect()
    });
    bar.finish_and_clear();
    let compared = compared?;
    let answered = Answered {
        chip: board.chip,
        drivers: [&versions[0], &versions[1]],
        tests: tests.len(),
        paired: compared.iter().filter(|(paired, _)| paired.all).count(),
        draws: compared.iter().map(|(paired, _)| paired.draws).sum(),
        differences: compared.into_iter().filter_map(|(_, difference)| difference).collect(),
    };
    answer_as(args.json, &answered, |answered| show(answered, args, drivers));
    Ok(if answered.differences.is_empty() { Answer::Yes } else { Answer::No })
}

fn show(answered: &Answered<'_>, args: &Piglit, drivers: &[PathBuf]) {
    for Difference { test, status: [a, b], why, first } in &answered.differences {
        say!("{test}: {a}, {b}");
        for (why, name) in why.iter().zip(["A", "B"]).filter(|(why, _)| !why.is_empty()) {
            say!("  {name}: {why}");
        }
        let Some(first) = first else { continue };
        let First { draws: [a, b], surface, format, pixels, named, programs } = first;
        say!("  draws {a} and {b}, {surface} ({format}): {} differ", counted(*pixels as u64, "pixel"));
        for Pixel { x, y, values: [a, b] } in named {
            say!("    ({x}, {y}): {a}, {b}");
        }
        for (stage, words) in &programs[0] {
            let other = programs[1].get(stage);
            let word = |words: &String| counted(words.len() as u64 / 8, "word");
            match other {
                Some(other) if other == words => say!("    {stage}: the same {}", word(words)),
                other => say!("    {stage}: {}, {}", word(words), other.map_or("none".to_owned(), word)),
            }
        }
    }
    let [a, b] = answered.drivers;
    say!("A: {a}\nB: {b}");
    say!(
        "{}, {}: {}; for {}, all draws were paired",
        counted(answered.tests as u64, "test"),
        counted(answered.draws as u64, "draw"),
        counted(answered.differences.len() as u64, "difference"),
        counted(answered.paired as u64, "test")
    );
    if answered.differences.iter().any(|difference| difference.first.is_some()) {
        let driver = drivers.last().map(|driver| crate::shown::path(&driver)).unwrap_or_default();
        say!(
            "`reconverge drm --chip {} --driver {driver} --capture DIR -- shader_runner TEST` writes launch files of \
             the draws",
            args.chip
        );
    }
}

/// Runs a test with both drivers and compares the results.
fn one(runner: &Runner<'_>, setups: &[Setup], test: &Test) -> Result<(Paired, Option<Difference>)> {
    let seen = |setup: &Setup| {
        runner.in_folder(|folder| {
            let (outcome, _) =
                runner.alone(setup, test, folder, &[("RECONVERGE_DRM_SURFACES", folder.as_os_str())])?;
            Ok((outcome, listed(folder)?))
        })
    };
    let ((a, draws_a), (b, draws_b)) = (seen(&setups[0])?, seen(&setups[1])?);
    let paired = paired(&draws_a, &draws_b);
    if a.status == b.status && paired.first.is_none() {
        return Ok((paired, None));
    }
    let first = match paired.first {
        None => None,
        Some((place, surface)) => {
            let draws = [&draws_a[place], &draws_b[place]];
            let name = &draws[0].targets[surface].name;
            let content = |setup: &Setup, draw: u64| {
                runner.in_folder(|folder| {
                    let number = draw.to_string();
                    let variables = [
                        ("RECONVERGE_DRM_SURFACES", folder.as_os_str()),
                        ("RECONVERGE_DRM_SURFACES_OF", number.as_ref()),
                    ];
                    runner.alone(setup, test, folder, &variables)?;
                    let path = folder.join(format!("draw-{draw}.{name}.bin"));
                    fs::read(&path).with_context(|| crate::shown::path(&path))
                })
            };
            let contents = [content(&setups[0], draws[0].draw)?, content(&setups[1], draws[1].draw)?];
            let surface = &draws[0].targets[surface];
            let (pixels, named) = differing(surface, &contents);
            Some(First {
                draws: draws.map(|draw| draw.draw),
                surface: surface.name.clone(),
                format: surface.format.clone(),
                pixels,
                named,
                programs: draws.map(|draw| draw.programs.clone()),
            })
        }
    };
    let status = [&a, &b].map(|outcome: &Outcome| outcome.status.name());
    Ok((paired, Some(Difference { test: test.name.clone(), status, why: [a.why, b.why], first })))
}

/// Returns the draws in a folder, or an empty list if nothing was drawn.
fn listed(folder: &Path) -> Result<Vec<Draw>> {
    let path = folder.join("surfaces.jsonl");
    let text = text_of(&path)?;
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().with_context(|| crate::shown::path(&path))
}

/// Pairs draws of two lists by index. Finds the first pair whose contents differ.
fn paired(a: &[Draw], b: &[Draw]) -> Paired {
    let alike = |(a, b): &(&Draw, &Draw)| {
        a.targets.iter().map(Surface::shape).eq(b.targets.iter().map(Surface::shape))
    };
    let draws = a.iter().zip(b).take_while(alike).count();
    let first = a.iter().zip(b).take(draws).enumerate().find_map(|(place, (a, b))| {
        let mut surfaces = a.targets.iter().zip(&b.targets);
        surfaces.position(|(a, b)| a.digest != b.digest).map(|surface| (place, surface))
    });
    Paired { draws, all: draws == a.len() && draws == b.len(), first }
}

/// Returns the number of different pixels, and the first of these pixels.
fn differing(surface: &Surface, [a, b]: &[Vec<u8>; 2]) -> (usize, Vec<Pixel>) {
    let bytes = surface.bytes.max(1);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let pairs = a.chunks_exact(bytes).zip(b.chunks_exact(bytes)).enumerate();
    let (mut count, mut named) = (0, Vec::new());
    for (place, (a, b)) in pairs.filter(|(_, (a, b))| a != b) {
        count += 1;
        if named.len() < NAMED {
            let pitch = surface.pitch.max(1);
            named.push(Pixel { x: place % pitch, y: place / pitch, values: [hex(a), hex(b)] });
        }
    }
    (count, named)
}

#[cfg(test)]
mod unit {
    use super::*;

    fn draw(number: u64, rows: usize, digest: &str) -> Draw {
        let surface = Surface {
            name: "color0".to_owned(),
            format: "8_8_8_8 unorm".to_owned(),
            bytes: 4,
            pitch: 2,
            rows,
            digest: digest.to_owned(),
        };
        Draw { draw: number, targets: vec![surface], programs: BTreeMap::new() }
    }

    #[test]
    fn the_first_pair_with_different_content_is_found() {
        let a = [draw(1, 2, "a"), draw(2, 2, "b"), draw(4, 2, "c")];
        let b = [draw(1, 2, "a"), draw(3, 2, "x"), draw(4, 2, "y")];
        assert_eq!(paired(&a, &b), Paired { draws: 3, all: true, first: Some((1, 0)) });
        assert_eq!(paired(&a, &a).first, None);
    }

    #[test]
    fn draws_into_other_surfaces_end_the_pairs() {
        let a = [draw(1, 2, "a"), draw(2, 2, "b")];
        let b = [draw(1, 2, "a"), draw(2, 8, "x"), draw(3, 2, "b")];
        assert_eq!(paired(&a, &b), Paired { draws: 1, all: false, first: None });
    }

    #[test]
    fn pixels_that_differ_are_counted_and_named() {
        let surface = &draw(1, 2, "").targets[0];
        let (a, mut b) = (vec![0; 16], vec![0; 16]);
        b[13] = 0xff;
        let expected = Pixel { x: 1, y: 1, values: ["00000000".to_owned(), "00ff0000".to_owned()] };
        assert_eq!(differing(surface, &[a, b]), (1, vec![expected]));
    }
}
