//! The two divergent kernels: a part of them against a direct evaluation, all of them against their golden hashes.

mod engines;

use engines::ways;
use reconverge_container::Hints;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_simt::{Engine, Level};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch, Options, run};
use reconverge_testkit::shared;

const OUT: u32 = 0x1_0000;

/// What `blocks` blocks of 256 threads leave, one word a thread.
fn output(kernel: &str, blocks: u32, options: &Options) -> Option<Vec<u32>> {
    let file = std::fs::read(shared("bench")?.join(kernel)).unwrap();
    let image = reconverge_container::load(&file, &Hints::default()).unwrap();
    let mut compute = Compute::of(&image.programs[0], Chip::from_name("sm_10").unwrap()).unwrap();
    compute.grid = [blocks, 1];
    compute.block = [256, 1, 1];
    compute.params = OUT.to_le_bytes().to_vec();
    let bytes = vec![0; 1024 * blocks as usize];
    compute.memory = Memory::new(vec![Buffer { address: OUT, bytes }]).unwrap();
    let outcome = run(Launch::Compute(compute), &image.programs[0], options).unwrap();
    eprintln!("{kernel}, {}: {:?}", options.engine, outcome.statistics);
    let words = outcome.memory.at(OUT).unwrap().bytes.chunks(4);
    Some(words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

fn mandel(lane: u32) -> u32 {
    let cx = (lane & 1023) as f32 * 0.002_929_687_5 - 2.0;
    let cy = (lane >> 10) as f32 * 0.002_929_687_5 - 1.5;
    let (mut zx, mut zy, mut zx2, mut zy2) = (0.0f32, 0.0f32, 0.0f32, 0.0f32);
    let mut steps = 0;
    while steps < 255 && zx2 + zy2 <= 4.0 {
        zy = 2.0 * zx * zy + cy;
        zx = zx2 - zy2 + cx;
        (zx2, zy2) = (zx * zx, zy * zy);
        steps += 1;
    }
    steps
}

fn collatz(lane: u32) -> u32 {
    let (mut n, mut steps) = (lane + 1, 0);
    while n != 1 && steps < 255 {
        n = if n & 1 != 0 { n.wrapping_mul(3).wrapping_add(1) } else { n >> 1 };
        steps += 1;
    }
    steps
}

/// FNV-1a over words instead of bytes.
fn hash(words: &[u32]) -> u32 {
    words.iter().fold(2_166_136_261, |hash, word| (hash ^ word).wrapping_mul(16_777_619))
}

#[test]
fn mandel_equals_a_direct_evaluation() {
    for way in ways(&Options::default()) {
        let Some(found) = output("mandel.cubin", 100, &way) else { return };
        assert!(found.iter().zip(0..).all(|(found, lane)| *found == mandel(lane)));
    }
}

#[test]
fn collatz_equals_a_direct_evaluation() {
    for way in ways(&Options::default()) {
        let Some(found) = output("collatz.cubin", 32, &way) else { return };
        assert!(found.iter().zip(0..).all(|(found, lane)| *found == collatz(lane)));
    }
}

#[test]
fn both_kernels_give_their_golden_hashes() {
    for (kernel, golden) in [("mandel.cubin", 0xcc8e_da81), ("collatz.cubin", 0xac70_67e1u32)] {
        for level in Level::available() {
            for parallel in [true, false] {
                let options =
                    Options { engine: Engine::Fast, level: Some(level), parallel, ..Options::default() };
                let Some(found) = output(kernel, 4096, &options) else { return };
                assert_eq!(hash(&found), golden, "{kernel}: {:08x}", hash(&found));
            }
        }
    }
}
