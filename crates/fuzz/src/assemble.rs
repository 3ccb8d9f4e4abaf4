//! Targets for any text. The assembler must return either a program or errors with positions in the text. If the
//! assembler returns a program, a printer converts the program to text. The assembler must return the same program for
//! this text.

use reconverge_isa::Isa;
use reconverge_isa::program::Stage;
use reconverge_simt::random::Random;
use reconverge_workbench::kernels::KERNELS;
use reconverge_workbench::suite::WORKLOADS;
use reconverge_workbench::{Target as Machine, assemble, round_trip};

use crate::mutate::mutated;
use crate::{Target, decode, repository};

/// The targets, one per assembler.
pub const TARGETS: &[Target] = &[
    Target {
        name: "assemble-r500",
        isa: Some(Isa::R500),
        about: "any text causes errors with positions, or assembles to a fragment program whose text assembles to the \
                same program",
        counts: "texts",
        make: |random| text(random, "decode-r500"),
        seeds: || seeds("r500", Isa::R500),
        check: |bytes| check(bytes, Isa::R500, None),
    },
    Target {
        name: "assemble-r500-vertex",
        isa: Some(Isa::R500),
        about: "any text causes errors with positions, or assembles to a vertex program whose text assembles to the \
                same program",
        counts: "texts",
        make: |random| text(random, "decode-r500-vertex"),
        seeds: || seeds("r500", Isa::R500),
        check: |bytes| check(bytes, Isa::R500, Some(Stage::Vertex)),
    },
    Target {
        name: "assemble-r700",
        isa: Some(Isa::R700),
        about: "any text causes errors with positions, or assembles to an R600 or R700 program whose text assembles \
                to the same program",
        counts: "texts",
        make: |random| text(random, "decode-r700"),
        seeds: || seeds("r700", Isa::R700),
        check: |bytes| check(bytes, Isa::R700, None),
    },
    Target {
        name: "assemble-tesla",
        isa: Some(Isa::Tesla),
        about: "any text causes errors with positions, or assembles to a Tesla program whose text assembles to the \
                same program",
        counts: "texts",
        make: |random| text(random, "decode-tesla"),
        seeds: || seeds("tesla", Isa::Tesla),
        check: |bytes| check(bytes, Isa::Tesla, None),
    },
];

/// Returns the assembler sources for a machine, from the corpus and from the kernels of `bench`.
fn seeds(folder: &str, isa: Isa) -> Vec<Vec<u8>> {
    let kernels = KERNELS.iter().filter(|kernel| kernel.isa == isa).map(|kernel| kernel.source);
    let workloads = WORKLOADS.iter().filter(|workload| workload.isa == isa).map(|workload| workload.source);
    let mut seeds: Vec<Vec<u8>> = repository::sources(folder).map(<[u8]>::to_vec).collect();
    seeds.extend(kernels.chain(workloads).map(|source| source.as_bytes().to_vec()));
    seeds
}

/// Returns the text of random words, with some changes. In one of eight cases, the text consists of random printable
/// characters instead.
fn text(random: &mut Random, words: &str) -> Vec<u8> {
    if random.once_in(8) {
        let length = random.below(400);
        return (0..length)
            .map(|_| if random.once_in(16) { b'\n' } else { 32 + random.below(95) as u8 })
            .collect();
    }
    let Some(target) = decode::TARGETS.iter().find(|target| target.name == words) else { return Vec::new() };
    let mut text = decode::text(target, &(target.make)(random)).unwrap_or_default();
    // Keeps only a few lines of the text.
    let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    if let Some(end) = lines.get(random.below(12) as usize) {
        text.truncate(*end);
    }
    mutated(&[text.into_bytes()], random)
}

fn check(bytes: &[u8], isa: Isa, stage: Option<Stage>) -> Result<u64, String> {
    let text = String::from_utf8_lossy(bytes);
    let target = Machine { stage, ..Machine::of(isa) };
    let assembled = match assemble(&target, &text) {
        Ok(assembled) => assembled,
        Err(errors) if errors.is_empty() => return Err("refused without a message".to_owned()),
        Err(errors) => {
            let outside = errors.iter().find(|error| text.get(error.span.start..error.span.end).is_none());
            return match outside {
                Some(error) => Err(format!("`{error}` is at {:?} of {} bytes", error.span, text.len())),
                None => Ok(1),
            };
        }
    };
    for program in &assembled.image.programs {
        round_trip(&assembled.target, program)?;
    }
    Ok(1)
}
