//! Targets for any file. Containers, case files, launch files and campaign files must be read, or rejected with a
//! message.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use reconverge_campaign::file::CampaignFile;
use reconverge_cases::{Folder, read};
use reconverge_container::{Format, Hints, ctm_elf, load};
use reconverge_isa::{Isa, Program};
use reconverge_simt::random::Random;
use reconverge_testkit::containers;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::open::{Known, open};
use reconverge_workbench::round_trip_image;

use crate::repository::{Beside, corpus};
use crate::{Target, input};

/// The targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "containers",
        isa: None,
        about: "in every format, any bytes are read or rejected; the text of a module or program assembles to the \
                same module or program",
        counts: "files",
        make,
        seeds: container_seeds,
        check: check_container,
    },
    Target {
        name: "cases",
        isa: None,
        about: "any bytes are read or rejected as cases of a corpus, vectors, manifests and launches",
        counts: "files",
        make,
        seeds: case_seeds,
        check: check_cases,
    },
    Target {
        name: "launches",
        isa: None,
        about: "any text is read or rejected as a launch file",
        counts: "files",
        make,
        seeds: || samples(is_launch),
        check: check_launch,
    },
    Target {
        name: "campaigns",
        isa: None,
        about: "any text is read or rejected as a campaign file",
        counts: "files",
        make,
        seeds: || samples(|name| name.ends_with(".campaign.toml")),
        check: check_campaign,
    },
];

/// Returns random bytes. In half of the cases, all bytes are printable.
fn make(random: &mut Random) -> Vec<u8> {
    let length = random.below(300);
    let printable = random.once_in(2);
    let byte = |random: &mut Random| match printable {
        true => 32 + random.below(95) as u8,
        false => random.next() as u8,
    };
    (0..length).map(|_| byte(random)).collect()
}

fn container_seeds() -> Vec<Vec<u8>> {
    let program = Program {
        name: Some("p".to_owned()),
        words: vec![3; 12],
        state: vec![("US_CONFIG".to_owned(), 2)],
        ..Program::default()
    };
    let ctm = ctm_elf::write(&program).map(|written| written.content).unwrap_or_default();
    let others = containers::samples().into_iter().map(|(_, bytes)| bytes);
    others.chain([ctm]).map(|bytes| [&[0; input::HEAD][..], &bytes].concat()).collect()
}

/// Reads the bytes in a format that the head selects, for the machine that the head states.
fn check_container(bytes: &[u8]) -> Result<u64, String> {
    let [format, isa, ..] = input::head(bytes);
    let bytes = bytes.get(input::HEAD..).unwrap_or_default();
    let format = input::chosen(format, &Format::ALL);
    let hints = [Hints::default(), Hints { format: Some(format), ..Hints::default() }];
    for error in hints.iter().filter_map(|hints| load(bytes, hints).err()) {
        if error.to_string().is_empty() {
            return Err(format!("an error without a message: {error:?}"));
        }
    }
    let isas = [None, Some(Isa::R500), Some(Isa::R700), Some(Isa::Tesla)];
    let known = Known { isa: input::chosen(isa, &isas), ..Known::default() };
    if let Ok(opened) = open(bytes, false, &known) {
        round_trip_image(&opened.target, &opened.image)?;
    }
    Ok(1)
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    match bytes.starts_with(&[0x1f, 0x8b]) {
        // Errors are ignored here. If the file is truncated, the part that could be decompressed is sufficient.
        true => drop(flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut unpacked)),
        false => unpacked.extend(bytes),
    }
    unpacked
}

/// A run manifest, in the format that the collections use.
const MANIFEST: &str = r#"{"schema": 1, "id": "m", "isa": "tesla", "arch": "sm_12", "binary": "m.cubin", "what": "w",
 "launches": [{"kernel": "k", "grid": [1, 1], "block": [8, 1, 1], "dynamic_shared_bytes": 0, "params": [
  {"name": "out", "kind": "buffer", "offset": 0, "bytes": 8, "buffer": "out"},
  {"name": "n", "kind": "u32", "offset": 8, "bytes": 4, "value": 2}]}],
 "buffers": [{"name": "out", "address": 4096, "bytes": 16, "rule": "zero", "init": "zero"}],
 "expect": [{"buffer": "out", "offset": 0, "bytes": 4, "elem": "u32", "file": "m.bin", "tolerance": {"exact": true}}]}"#;

/// Returns some cases of each case file in the corpus. Also returns all files of the corpus that are not case files.
fn case_seeds() -> Vec<Vec<u8>> {
    let mut seeds = samples(is_launch);
    for (_, bytes) in corpus().iter().filter(|(name, _)| name.ends_with(".jsonl.gz")) {
        let lines = unpacked(bytes);
        seeds.extend(lines.split(|byte| *byte == b'\n').take(40).map(<[u8]>::to_vec));
    }
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tesla/tests/vectors-sample.csv.gz");
    let text = String::from_utf8(unpacked(&std::fs::read(vectors).unwrap_or_default())).unwrap_or_default();
    // The text has one table per family. The name of the family precedes the table.
    for table in text.split("# ") {
        let lines = table.lines().skip(1).take(20).flat_map(|line| [line, "\n"]);
        seeds.push(lines.collect::<String>().into_bytes());
    }
    seeds.push(MANIFEST.as_bytes().to_vec());
    seeds
}

fn check_cases(bytes: &[u8]) -> Result<u64, String> {
    for name in ["r500/a.json", "tesla/atom32.csv"] {
        let folder: Arc<dyn Folder> = Arc::new(Beside(name.to_owned()));
        match read(name, bytes, &folder, None) {
            Ok(cases) => {
                for case in cases.iter().take(100) {
                    let _ = case.about();
                    let _ = case.open();
                }
            }
            Err(error) if error.to_string().is_empty() => return Err("an error without a message".to_owned()),
            Err(_) => {}
        }
    }
    Ok(1)
}

/// Returns the files of `corpus/` and of `docs/samples` whose names `of_name` accepts.
fn samples(of_name: fn(&str) -> bool) -> Vec<Vec<u8>> {
    let docs = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples"));
    let docs = docs.into_iter().flatten().filter_map(|entry| {
        let path = entry.ok()?.path();
        of_name(path.to_str()?).then(|| std::fs::read(path).ok())?
    });
    let own = corpus().iter().filter(|(name, _)| of_name(name)).map(|(_, bytes)| bytes.clone());
    let mut samples: Vec<Vec<u8>> = own.chain(docs).collect();
    samples.sort();
    samples
}

fn is_launch(name: &str) -> bool {
    name.ends_with(".json") || name.ends_with(".toml") && !name.ends_with(".campaign.toml")
}

fn check_launch(bytes: &[u8]) -> Result<u64, String> {
    match LaunchFile::parse(&String::from_utf8_lossy(bytes)) {
        Ok(launch) => {
            let _ = (launch.mode(), launch.stage(), launch.options(&Default::default()));
            Ok(1)
        }
        Err(why) if why.to_string().is_empty() => Err("an error without a message".to_owned()),
        Err(_) => Ok(1),
    }
}

fn check_campaign(bytes: &[u8]) -> Result<u64, String> {
    match CampaignFile::parse(&String::from_utf8_lossy(bytes)) {
        Err(why) if why.is_empty() => Err("an error without a message".to_owned()),
        _ => Ok(1),
    }
}
