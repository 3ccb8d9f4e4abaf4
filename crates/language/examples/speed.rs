//! Prints the time of each query about a text of 2,000 lines, in milliseconds: the median and the maximum of ten
//! runs.
//!
//! `cargo run --release -p reconverge-language --example speed`

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use reconverge_isa::{Isa, Span};
use reconverge_language::{Analysis, Settings};

const LINES: usize = 2000;
const TIMES: usize = 10;

/// Returns a text of 2,000 lines with constants, labels and comments. If `wrong` is set, every hundredth line has an
/// error.
fn text(isa: Isa, wrong: bool) -> String {
    let mut text =
        format!(".isa {isa}\n.equ WIDTH, 4\n.alias acc, {}\n", if isa == Isa::Tesla { "$r2" } else { "R2" });
    let mut count = 3;
    let mut number = 0;
    while count < LINES {
        number += 1;
        let word = if wrong && number % 50 == 0 { "wrongg" } else { "" };
        let (lines, part) = match isa {
            Isa::Tesla => (
                5,
                format!(
                    "l{number}:\n    add b32 acc $r0 WIDTH*{number}{word}\n    mul f32 $r1 $r1 0.5 ; half\n    set $c0 # l u32 $r0 acc\n    (lg $c0) bra l{number}\n"
                ),
            ),
            Isa::R700 => (
                5,
                format!(
                    "@l{number}: ALU:\n    0 x: MUL R0.x, R1.x, R2.x ; first\n      y: ADD R0.y, R1.y, R2.y{word}\n    1 x: MOV R0.x, R0.y\nJUMP: ADDR(@l{number})\n"
                ),
            ),
            Isa::R500 => {
                let program = if number % 60 == 1 { format!(".program p{number}\n") } else { String::new() };
                let head = usize::from(!program.is_empty());
                (
                    head + 5,
                    format!(
                        "{program}if alu\n    ALU temp[1].r = MAD src0.rrr, src0.111, src1.rrr : src0=temp[1] src1=#0.5\n      + temp[1].a = MAX src0.a, src0.a : src0=temp[0] ; alpha\n    OUT out[A].rgb = MAX src0.rgb, src0.rgb : src0=temp[0]{word}\nendif\n"
                    ),
                )
            }
        };
        count += lines;
        text.push_str(&part);
    }
    if isa == Isa::Tesla {
        text.push_str("    exit nop\n");
    }
    text
}

fn measured(mut action: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<Duration> = (0..TIMES)
        .map(|_| {
            let start = Instant::now();
            action();
            start.elapsed()
        })
        .collect();
    times.sort();
    (1e3 * times[TIMES / 2].as_secs_f64(), 1e3 * times[TIMES - 1].as_secs_f64())
}

fn main() {
    let mut table = String::new();
    for isa in Isa::ALL {
        for wrong in [false, true] {
            let text = text(isa, wrong);
            let analyse = || Analysis::new(&text, &Settings::default(), &mut |_| Err(String::new()));
            let analysis = analyse();
            let _ = writeln!(
                table,
                "{isa}, {} lines, {} messages",
                text.lines().count(),
                analysis.markers().len()
            );
            let middle = text.len() / 2;
            let at = middle + text[middle..].find("\n    ").map_or(0, |at| at + 8);
            let label = text.find("l7").unwrap_or(at);
            let whole = Span::new(0, text.len());
            let mut row = |name: &str, action: &mut dyn FnMut()| {
                let (median, most) = measured(action);
                let _ = writeln!(table, "  {name:<28} {median:8.2} {most:8.2}");
            };
            row("analysis", &mut || drop(analyse()));
            row("analysis and messages", &mut || drop(analyse().markers()));
            row("analysis and hover", &mut || drop(analyse().hover(at)));
            row("hover", &mut || drop(analysis.hover(at)));
            row("completion of a mnemonic", &mut || drop(analysis.complete(at - 4)));
            row("completion of an operand", &mut || drop(analysis.complete(at + 6)));
            row("definition", &mut || drop(analysis.definition(label)));
            row("references", &mut || drop(analysis.references(label, true)));
            row("rename", &mut || drop(analysis.rename(label, "renamed_1")));
            row("outline", &mut || drop(analysis.outline()));
            row("folds", &mut || drop(analysis.folds()));
            row("hints, first time", &mut || drop(analyse().hints(whole)));
            row("hints", &mut || drop(analysis.hints(whole)));
            row("colours", &mut || drop(analysis.colours(whole)));
            row("layout", &mut || drop(analysis.format()));
            row("remedies of a line", &mut || drop(analysis.remedies(Span::new(at, at + 20))));
        }
    }
    println!("milliseconds                     median     most\n{table}");
}
