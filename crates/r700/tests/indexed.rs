//! Runs random groups with registers and constants relative to AR and aL, between MOVA* instructions that write AR, on
//! every engine.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::text::assemble;
use reconverge_simt::{Mode, Options};
use reconverge_testkit::Campaign;
use reconverge_testkit::r700::indexed::{launch, source};

#[test]
fn indexed_operands_and_results_are_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(4000, 0x01d3_7ed0_0a1a_5eed);
    let (mut ended, mut assembled) = ([0u64; 2], 0);
    for _ in 0..programs {
        let source = source(&mut random);
        let words = match assemble(&source, Chip::RV770) {
            Ok(assembled) => assembled.words,
            Err(error) => panic!("{error:?}: {source}"),
        };
        assembled += 1;
        let launch = launch(&mut random);
        for (number, mode) in [Mode::Strict, Mode::Lenient].into_iter().enumerate() {
            let options = Options { mode, ..Options::default() };
            ended[number] += u64::from(run(&Program::from_words(words.clone()), &launch, &options).is_ok());
        }
    }
    println!("{ended:?} of {assembled} ended");
    assert!(ended[0] >= programs / 20 && ended[1] == programs, "{ended:?}");
}
