//! The two divergent kernels as a compiler of CUDA built them.

use reconverge_container::Hints;
use reconverge_simt::Options;
use reconverge_simt::memory::{Buffer, Memory};
use reconverge_tesla::inst::Chip;
use reconverge_tesla::launch::{Compute, Launch};
use reconverge_tesla::run::run;
use reconverge_testkit::shared;

const OUT: u32 = 0x1_0000;
const BLOCKS: u32 = 4096;

#[test]
fn both_cubins_give_their_golden_hashes() {
    let Some(folder) = shared("bench") else { return };
    for (kernel, golden) in [("mandel.cubin", 0xcc8e_da81), ("collatz.cubin", 0xac70_67e1u32)] {
        let file = std::fs::read(folder.join(kernel)).unwrap();
        let image = reconverge_container::load(&file, &Hints::default()).unwrap();
        let mut compute = Compute::of(&image.programs[0], Chip::from_name("sm_10").unwrap()).unwrap();
        (compute.grid, compute.block) = ([BLOCKS, 1], [256, 1, 1]);
        compute.params = OUT.to_le_bytes().to_vec();
        compute.memory = Memory::new(vec![Buffer::new(OUT, vec![0; 1024 * BLOCKS as usize])]).unwrap();
        let outcome = run(&image.programs[0], Launch::Compute(compute), &Options::default()).unwrap();
        // FNV-1a over words instead of bytes.
        let words = outcome.memory.at(OUT).unwrap().bytes.as_chunks::<4>().0.iter();
        let hash = words.fold(2_166_136_261, |hash: u32, word| {
            (hash ^ u32::from_le_bytes(*word)).wrapping_mul(16_777_619)
        });
        assert_eq!(hash, golden, "{kernel}: {hash:08x}");
    }
}
