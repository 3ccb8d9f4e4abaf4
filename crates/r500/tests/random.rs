//! Random words never cause a panic in decoding or in strict and lenient execution.

use std::sync::Arc;

use reconverge_isa::Program;
use reconverge_r500::inst::decode;
use reconverge_r500::launch::{Environment, Input, Launch};
use reconverge_r500::run::run;
use reconverge_r500::setup::Setup;
use reconverge_r500::texture::Texture;
use reconverge_simt::texture::{Image, Sampler};
use reconverge_simt::{Mode, Options};
use reconverge_testkit::Random;
use reconverge_testkit::r500::any_record;

/// Returns an instruction that usually has a meaning, and sometimes any words.
fn record(random: &mut Random) -> [u32; 6] {
    let any = any_record(random);
    if random.once_in(64) {
        return any;
    }
    std::iter::repeat_with(|| any_record(random)).find(|words| decode(words).is_ok()).unwrap_or(any)
}

#[test]
fn random_programs_never_panic() {
    let seed = 0x5eed_0500;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    let texels = (0..16).map(|n| [n, random.next(), random.next(), random.next()]).collect();
    let image = Arc::new(Image::flat(4, 4, texels).unwrap());
    let (mut ended, mut trapped) = (0, 0);
    for round in 0..10_000 {
        let count = 1 + random.below(12) as usize;
        let mut words: Vec<u32> = (0..count).flat_map(|_| record(&mut random)).collect();
        words.extend([5, 0, 0, 0, 0, 0]);
        let state = vec![
            ("US_CONFIG".to_owned(), random.next() & 2),
            ("US_PIXSIZE".to_owned(), random.next() & 0x7f),
            ("US_FC_CTRL".to_owned(), random.next() & 0x8000_0000),
            ("US_FC_BOOL_CONST".to_owned(), random.next()),
            ("US_FC_INT_CONST_0".to_owned(), random.next() & 0x00ff_ff03),
        ];
        let setup = Arc::new(Setup::new(&Program { words, state, ..Program::default() }).unwrap());
        for mode in [Mode::Strict, Mode::Lenient] {
            let lanes = 1 + random.below(20) as usize;
            let values = (0..lanes).map(|_| std::array::from_fn(|_| random.next())).collect();
            let launch = Launch {
                lanes,
                inputs: vec![Input { temp: (round % 128) as u8, values }],
                environment: Environment {
                    constants: vec![(0, [random.next(); 4])],
                    textures: vec![(0, Texture { image: image.clone(), sampler: Sampler::default() })],
                    ..Environment::default()
                }
                .into(),
                columns: Vec::new(),
            };
            let options = Options { mode, watchdog: 200, ..Options::default() };
            match run(&setup, &launch, &options) {
                Ok(_) => ended += 1,
                Err(_) => trapped += 1,
            }
        }
    }
    println!("{ended} ended, {trapped} trapped");
    assert!(ended > 1_000 && trapped > 1_000, "the mix must reach both: {ended} ended, {trapped} trapped");
}
