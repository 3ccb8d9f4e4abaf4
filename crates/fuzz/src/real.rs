//! Targets that execute mutated programs of the corpora on every engine. The mutated program uses the launch of the
//! original program.
//!
//! An input consists of three parts: a head (mode, level, threads), a hash, and the words of a program. The hash of a case's
//! name selects the case. The target runs the launch of this case with the words of the input as the program. The cases
//! are from three sources: the corpus, the collections in `shared/` if these folders exist, and the kernels of `bench`.

use std::collections::HashMap;
use std::sync::OnceLock;

use reconverge_isa::{Isa, Program};
use reconverge_simt::random::Random;
use reconverge_simt::{Options, Shares};
use reconverge_workbench::Error;
use reconverge_workbench::Opened;
use reconverge_workbench::kernels::KERNELS;
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::values::NoFiles;

use crate::execute::{on_threads, options, same_on_every_engine, threads};
use crate::input::{head, input, words, words_from};
use crate::mutate::mutated;
use crate::repository::{Beside, cases};
use crate::{Target, no_seeds};

/// The targets, one per machine.
pub const TARGETS: &[Target] = &[
    real("real-r500", Isa::R500, |random| make(random, Isa::R500), |bytes| check(bytes, Isa::R500)),
    real("real-r700", Isa::R700, |random| make(random, Isa::R700), |bytes| check(bytes, Isa::R700)),
    real("real-tesla", Isa::Tesla, |random| make(random, Isa::Tesla), |bytes| check(bytes, Isa::Tesla)),
    Target {
        name: "kernels-tesla",
        isa: Some(Isa::Tesla),
        about: "mutated kernels of `bench` have the same result on every engine if warps take turns at barriers",
        counts: "programs",
        make: make_kernel,
        seeds: no_seeds,
        check: check_turns,
    },
];

const fn real(
    name: &'static str,
    isa: Isa,
    make: fn(&mut Random) -> Vec<u8>,
    check: fn(&[u8]) -> Result<u64, String>,
) -> Target {
    let about = "mutated programs of the corpora have the same result on the reference, the fast and the compiled engine";
    Target { name, isa: Some(isa), about, counts: "programs", make, seeds: no_seeds, check }
}

/// A program of a corpus with its launch.
struct Real {
    opened: Opened,
    launch: LaunchFile,
    program: Program,
    beside: Option<Beside>,
}

/// The programs of a machine. The key of a program is the hash of the program's name. `hashes` is the list of all keys.
struct Reals {
    by_hash: HashMap<u32, Real>,
    hashes: Vec<u32>,
}

/// Number of lanes in a launch of a kernel. With this number, a launch has a few groups.
const KERNEL_LANES: u32 = 256;

fn reals(isa: Isa) -> &'static Reals {
    static REALS: [OnceLock<Reals>; 3] = [const { OnceLock::new() }; 3];
    let place = Isa::ALL.iter().position(|known| *known == isa).unwrap_or(0);
    REALS[place].get_or_init(|| {
        let mut by_hash = HashMap::new();
        for (file, case) in cases(isa.name()) {
            let Ok(open) = case.open() else { continue };
            for (number, launch) in open.launches.into_iter().enumerate() {
                let kernel = launch.common.kernel.as_deref();
                let Ok(program) = choose_program(&open.opened.image, kernel).cloned() else { continue };
                let hash = hash(&format!("{}#{number}", case.id()));
                let (opened, beside) = (open.opened.clone(), Some(Beside(file.clone())));
                by_hash.insert(hash, Real { opened, launch, program, beside });
            }
        }
        for kernel in KERNELS.iter().filter(|kernel| kernel.isa == isa) {
            let (Ok(opened), Ok(launch)) = (kernel.open(), kernel.launch(KERNEL_LANES)) else { continue };
            let Ok(program) = choose_program(&opened.image, None).cloned() else { continue };
            by_hash.insert(hash(kernel.name), Real { opened, launch, program, beside: None });
        }
        let mut hashes: Vec<u32> = by_hash.keys().copied().collect();
        hashes.sort_unstable();
        Reals { by_hash, hashes }
    })
}

/// Returns the FNV-1a hash of a name.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns a random program of the corpora. The function changes some words of the program.
fn make(random: &mut Random, isa: Isa) -> Vec<u8> {
    changed(random, isa, &reals(isa).hashes)
}

/// Returns a random kernel of `bench` for Tesla. The function changes some words of the kernel.
fn make_kernel(random: &mut Random) -> Vec<u8> {
    let kernels = KERNELS.iter().filter(|kernel| kernel.isa == Isa::Tesla);
    let mut bytes = changed(random, Isa::Tesla, &kernels.map(|kernel| hash(kernel.name)).collect::<Vec<_>>());
    let threads = threads(random);
    bytes.get_mut(2).into_iter().for_each(|place| *place = threads);
    bytes
}

/// Returns a random program with one of these hashes. The function changes some words of the program.
fn changed(random: &mut Random, isa: Isa, hashes: &[u32]) -> Vec<u8> {
    let reals = reals(isa);
    if reals.hashes.is_empty() || hashes.is_empty() {
        return Vec::new();
    }
    let hash = random.one_of(hashes);
    let Some(real) = reals.by_hash.get(&hash) else { return Vec::new() };
    let mut words = real.program.words.clone();
    match random.below(4) {
        // Changes bits and words in place.
        0..3 => {
            for _ in 0..1 + random.below(4) {
                let at = random.next() as usize % words.len().max(1);
                let Some(other) = words.get(random.next() as usize % words.len().max(1)).copied() else {
                    break;
                };
                words[at] = match random.below(4) {
                    0 => random.next(),
                    1 => other,
                    _ => words[at] ^ 1 << random.below(32),
                };
            }
        }
        // Replaces words by arbitrary words or by words of another program.
        _ => {
            let other = reals.by_hash.get(&random.one_of(&reals.hashes));
            let seeds = [real, other.unwrap_or(real)].map(|real| {
                real.program.words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
            });
            words = words_from(&mutated(&seeds, random), 0);
        }
    }
    let head = [random.next() as u8, random.next() as u8, 0, 0];
    input(head, &[&[hash], &words[..]].concat())
}

fn check(bytes: &[u8], isa: Isa) -> Result<u64, String> {
    let [mode, level, ..] = head(bytes);
    check_with(bytes, isa, &options(mode, level, 3000))
}

/// Runs a program without the check for races. With this check, warps do not take turns in compiled code.
fn check_turns(bytes: &[u8]) -> Result<u64, String> {
    let [mode, level, threads, _] = head(bytes);
    let options = on_threads(Options { race_check: false, ..options(mode, level, 1 << 14) }, threads);
    check_with(bytes, Isa::Tesla, &options)
}

fn check_with(bytes: &[u8], isa: Isa, options: &Options) -> Result<u64, String> {
    let words = words(bytes);
    let Some((hash, words)) = words.split_first() else { return Ok(0) };
    let Some(real) = reals(isa).by_hash.get(hash) else { return Ok(0) };
    let program = Program { words: words.to_vec(), ..real.program.clone() };
    let prepared = match &real.beside {
        Some(beside) => real.launch.prepare(&real.opened.image, &program, beside),
        None => real.launch.prepare(&real.opened.image, &program, &NoFiles),
    };
    // If the machine cannot run the program, `prepared` is an error, and the program does not run.
    let Ok(session) = prepared else { return Ok(0) };
    same_on_every_engine(options, |options| {
        let outcome = session.copy().run(options)?;
        // The shares of the engine's paths are not compared, because only lockstep sets the shares.
        Ok::<_, Error>(RunResult { shares: Shares::default(), ..RunResult::of(&*outcome) })
    })
    .map(|_| 1)
}
