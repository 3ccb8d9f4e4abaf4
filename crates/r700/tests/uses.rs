//! Tests that registers which no instruction reads, according to its uses, have no effect: compiled programs return the
//! same results whatever these registers contain.

use std::collections::BTreeSet;

use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::code::{Code, CodeOptions};
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::run::run;
use reconverge_r700::uses::{R, uses};
use reconverge_simt::{Mode, Options};
use reconverge_testkit::records;

/// Returns a pseudorandom number.
fn noise(seed: u64) -> u32 {
    let mut value = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ value >> 31) as u32
}

#[test]
fn a_register_that_no_instruction_reads_changes_nothing() {
    let word = |text: &str| u32::from_str_radix(text, 16).expect("hexadecimal");
    let (mut programs, mut changed) = (0, 0);
    for record in records("corpus/r700-llvm/exec.jsonl.gz") {
        let words: Vec<u32> = record["words"].as_str().unwrap_or("").split_whitespace().map(word).collect();
        let chip = Chip::named(record["chip"].as_str().unwrap_or("")).expect("a chip");
        let registers = record["num_gprs"].as_u64().expect("a number") as u8;
        let code = Code::new(&words, 0, CodeOptions::new(chip));
        let reads: Vec<Option<u32>> = uses(&code)
            .into_iter()
            .flat_map(|(_, uses)| uses)
            .flat_map(|uses| uses.reads)
            .filter(|read| read.slot.file == R)
            .map(|read| read.slot.number)
            .collect();
        // An index reaches any register.
        let Some(read) = reads.into_iter().collect::<Option<BTreeSet<u32>>>() else { continue };
        let outcome = |other: u64| {
            let mut launch = Launch::new(chip, Stage::Pixel, 16);
            launch.environment_mut().num_gprs = registers;
            launch.inputs = (0..registers)
                .map(|gpr| {
                    let value = |lane: u64, chan: u32| {
                        let number = u32::from(gpr) * 4 + chan;
                        noise(u64::from(number) << 8 | lane | if read.contains(&number) { 0 } else { other })
                    };
                    let values: Vec<_> =
                        (0..16).map(|lane| [0, 1, 2, 3].map(|chan| value(lane, chan))).collect();
                    Input { gpr, values: values.into() }
                })
                .collect();
            let options = Options { mode: Mode::Lenient, watchdog: 20_000, ..Options::default() };
            run(&Program::from_words(words.clone()), &launch, &options)
        };
        let [one, two] = [0, 1 << 32].map(outcome);
        assert_eq!(format!("{one:?}"), format!("{two:?}"), "{}", record["id"]);
        programs += 1;
        changed += u32::from(registers) * 4 - read.len() as u32;
    }
    println!("{programs} programs, {changed} components");
    assert!(programs == 0 || changed > 100, "{changed} components");
}
