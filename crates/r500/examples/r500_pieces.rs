//! Runs a short program in pieces and prints the time. The first argument is the number of lanes (default: 2^26), and
//! the second the number of lanes per piece (default: 2^16). The run needs only the memory of one piece:
//! `/usr/bin/time -v` shows it.

use std::sync::Arc;
use std::time::Instant;

use reconverge_r500::launch::{Environment, Input};
use reconverge_r500::run::Loaded;
use reconverge_r500::setup::Setup;
use reconverge_r500::text::assemble;
use reconverge_simt::{Options, Statistics};

/// A triangle wave over the lanes, from -1 to 1.
const SOURCE: &str = "\
.const 0 0.0009765625 0.5 2.0 1.0
ALU temp[0].r = MAD src0.rrr, src1.rrr, src1.ggg : src0=temp[0] src1=const[0]
ALU temp[0].r = FRC src0.rrr : src0=temp[0]
OUT out[A].r = MAD src0.rrr, src1.bbb, -src1.aaa : src0=temp[0] src1=const[0] {TEX_SEM_WAIT}
  + MAD src0.0, src0.0, src0.0 : src1=const[0]
";

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|size| size.parse().ok());
    let lanes = sizes.next().unwrap_or(1 << 26);
    let piece: usize = sizes.next().unwrap_or(1 << 16);
    let assembled = assemble(SOURCE).expect("it assembles");
    let setup = Arc::new(Setup::new(&assembled.program).expect("a program"));
    let environment = Arc::new(Environment::default());
    let loaded = Loaded::of(&setup, &environment, &Options::default()).expect("an environment");
    let position = |lane| [(lane as f32).to_bits(), 0, 0, 0];
    let (start, mut above, mut statistics) = (Instant::now(), 0, Statistics::default());
    // Pieces of whole groups give the same results together as one run.
    let piece = piece.max(1).next_multiple_of(environment.hardware.group_width);
    for first in (0..lanes).step_by(piece) {
        let range = first..lanes.min(first + piece);
        let count = range.len();
        let input = Input { temp: 0, values: range.map(position).collect() };
        let outcome = loaded.run(count, vec![input]).expect("it runs");
        let red = outcome.outputs.color(0, 0).unwrap_or(&[]);
        above += red.iter().filter(|bits| f32::from_bits(**bits) > 0.0).count();
        statistics.add(&outcome.statistics);
    }
    println!(
        "{lanes} lanes in pieces of {piece}: {:.2} s, {} instructions, {above} lanes above zero",
        start.elapsed().as_secs_f64(),
        statistics.instructions
    );
}
