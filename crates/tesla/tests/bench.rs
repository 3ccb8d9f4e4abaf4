//! The two divergent kernels give their golden hashes.

mod support;

use reconverge_container::Hints;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch, Options, run};
use support::shared;

fn golden(kernel: &str) -> Option<u32> {
    let file = std::fs::read(shared("bench")?.join(kernel)).unwrap();
    let image = reconverge_container::load(&file, &Hints::default()).unwrap();
    let mut compute = Compute::of(&image.programs[0], Chip::from_name("sm_10").unwrap()).unwrap();
    compute.grid = [4096, 1];
    compute.block = [256, 1, 1];
    compute.params = 0x1_0000u32.to_le_bytes().to_vec();
    compute.memory = Memory::new(vec![Buffer { address: 0x1_0000, bytes: vec![0; 4 << 20] }]).unwrap();
    let outcome = run(Launch::Compute(compute), &image.programs[0], &Options::default()).unwrap();
    eprintln!("{kernel}: {:?}", outcome.statistics);
    let words = outcome.memory.at(0x1_0000).unwrap().bytes.chunks(4);
    // FNV-1a over words instead of bytes.
    Some(words.fold(2_166_136_261, |hash: u32, word| {
        (hash ^ u32::from_le_bytes(word.try_into().unwrap())).wrapping_mul(16_777_619)
    }))
}

#[test]
fn mandel_gives_its_golden_hash() {
    let Some(hash) = golden("mandel.cubin") else { return };
    assert_eq!(hash, 0xcc8e_da81, "{hash:08x}");
}

#[test]
fn collatz_gives_its_golden_hash() {
    let Some(hash) = golden("collatz.cubin") else { return };
    assert_eq!(hash, 0xac70_67e1, "{hash:08x}");
}
