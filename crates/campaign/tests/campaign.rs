//! Campaigns from file to results: every site and model on every machine, equal bytes from any number of workers,
//! resuming, and error messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use reconverge_campaign::experiment::{EndedExperiment, Outcome, Record};
use reconverge_campaign::site::{Model, Site};
use reconverge_campaign::{Campaign, Error, PointDescription, Progress, Taken};
use reconverge_isa::Isa;
use reconverge_simt::Engine;
use reconverge_simt::random::Random;
use reconverge_workbench::faults::Kind;

/// A folder of this test's own, with files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaigns").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    files.iter().for_each(|(file, text)| std::fs::write(path.join(file), text).unwrap());
    path
}

fn open(name: &str, text: &str) -> Campaign {
    Campaign::open(&folder(name, &[("c.toml", text)]).join("c.toml")).unwrap()
}

fn refused(files: &[(&str, &str)], name: &str) -> String {
    match Campaign::open(&folder(name, files).join("c.toml")) {
        Ok(_) => panic!("it is accepted"),
        Err(error) => error.to_string(),
    }
}

fn records(campaign: &Campaign) -> Vec<Record> {
    (0..campaign.describe().injections).map(|it| campaign.experiment(it, Engine::Fast).unwrap()).collect()
}

const ALL_MODELS: &str = "bits = 3\nmodels = [\"flip\", \"double\", \"random\", \"zero\", \"warp-wide\", \"bits\", \
                          \"stuck-at-0\", \"stuck-at-1\"]\n";

/// Collatz and Mandelbrot of each machine: every site that the machine has, with every model. If an experiment finds
/// nothing to change, it fails, so every experiment injects a fault.
#[test]
fn every_site_and_model_is_injected_on_every_machine() {
    for (isa, kernel, lanes) in [
        (Isa::R500, "mandel", 32),
        (Isa::R700, "collatz", 64),
        (Isa::R700, "mandel", 64),
        (Isa::Tesla, "collatz", 256),
        (Isa::Tesla, "mandel", 256),
    ] {
        let text = format!(
            "kernel = \"{kernel}\"\nisa = \"{isa}\"\nlanes = {lanes}\ninjections = 240\n{ALL_MODELS}"
        );
        let campaign = open(&format!("all-{isa}-{kernel}"), &text);
        let has: BTreeSet<Site> = campaign.describe().sites.iter().copied().collect();
        let wanted: BTreeSet<Site> = Site::all().filter(|site| site.machines().contains(&isa)).collect();
        let missing: Vec<Site> = wanted.difference(&has).copied().collect();
        // Pixels have no memory. mandel of R500 has a loop but no branches. The loops of R700's kernels do not have a
        // counter.
        let expected: &[Site] = match isa {
            Isa::R500 => &[Site::Flow(Kind::BranchCounter), Site::Memory],
            Isa::R700 => &[Site::Flow(Kind::LoopCounter), Site::Memory],
            Isa::Tesla => &[],
        };
        assert_eq!(missing, expected, "{isa} {kernel}");
        let records = records(&campaign);
        let of: BTreeSet<(Site, Model)> = records.iter().map(|it| (it.site, it.model)).collect();
        assert_eq!(of.len(), has.len() * Model::ALL.len(), "{isa} {kernel}");
        for record in &records {
            // Zero, or the value of a stuck bit, can equal the old value. Every other model changes something.
            let may_stay = record.model == Model::Zero || record.model.stuck().is_some();
            assert!(record.before != record.after || may_stay, "{record:?}");
        }
        let ended: BTreeSet<Outcome> = records.iter().map(|it| it.outcome).collect();
        assert!(
            ended.contains(&Outcome::Sdc) && ended.contains(&Outcome::Masked),
            "{isa} {kernel}: {ended:?}"
        );
    }
}

/// A campaign over a program and a launch file.
fn over(name: &str, program: &str, launch: &str, more: &str) -> Vec<Record> {
    let text = format!("launch = \"l.toml\"\n{more}");
    let files = [("p.s", program), ("l.toml", launch), ("c.toml", &text)];
    records(&Campaign::open(&folder(name, &files).join("c.toml")).unwrap())
}

/// Branches on R500, counted loops on R500 and R700: the sites that the kernels do not have.
#[test]
fn branch_counters_and_loop_counters_are_injected() {
    let unlike = |records: &[Record], model: Model| {
        records.iter().any(|it| it.model == model && it.outcome != Outcome::Masked)
    };
    let launch = "isa = \"r500\"\nprogram = \"p.s\"\ninput = [{ temp = 0, values = \"0..16:f32\" }]\n";
    let nested = include_str!("../../../docs/samples/nested-if.r500.s");
    let sites = |site: &str| format!("injections = 96\nsites = [\"{site}\"]\n{ALL_MODELS}");
    let found = over("counters-r500", nested, launch, &sites("branch-counter"));
    let changes = |model: &&Model| **model != Model::Zero && model.stuck().is_none();
    assert!(Model::ALL.iter().filter(changes).all(|model| unlike(&found, *model)), "{found:#?}");
    let counted = include_str!("../../../docs/samples/loop-break.r500.s");
    let found = over("loops-r500", counted, launch, &sites("loop-counter"));
    assert!(unlike(&found, Model::Zero) && unlike(&found, Model::Random), "{found:#?}");

    let rounds = ".isa r700\n.chip rv770\n.stage pixel\n.gprs 2\n.stack 1\nALU:\n 0 x: MOV R1.x, 0\n\
        LOOP_START: ADDR(@done) CF_CONST(0)\n@body:\nALU:\n 1 x: ADD R1.x, R1.x, 1.0f\nLOOP_END: ADDR(@body)\n\
        @done:\nEXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM\n";
    let launch = "isa = \"r700\"\nprogram = \"p.s\"\nlanes = 64\nloop = [{ number = 0, count = 5, init = 0, inc = 1 }]\n";
    let found = over("loops-r700", rounds, launch, &sites("loop-counter"));
    assert!(unlike(&found, Model::Zero) && unlike(&found, Model::Random), "{found:#?}");
}

/// Words of the memory of a CTM run.
#[test]
fn memory_is_injected_over_a_domain_of_r500() {
    let program = include_str!("../../../corpus/r500/ctm-scale.s");
    let launch = include_str!("../../../corpus/r500/ctm-scale.toml").replace("ctm-scale.s", "p.s");
    let found = over("ctm", program, &launch, "injections = 200\nsites = [\"memory\", \"register\"]\n");
    assert!(found.iter().any(|it| it.site == Site::Memory && it.outcome == Outcome::Sdc));
}

/// R700's predicate decides for instructions with PRED. A flip before the comparison is overwritten; a flip after it
/// makes one lane wrong.
#[test]
fn predicates_of_r700_are_injected() {
    let program = ".isa r700\n.chip rv770\n.stage pixel\n.gprs 2\nALU:\n \
        0 x: PRED_SETGT _.x, R0.x, 8.0f UPDATE_PRED\n 1 x: MOV R1.x, 1.0f PRED(ONE)\n\
        EXPORT_DONE: PIXEL[0], R1.x___ END_OF_PROGRAM\n";
    let launch =
        "isa = \"r700\"\nprogram = \"p.s\"\nlanes = 64\ninput = [{ gpr = 0, values = \"0..64:f32\" }]\n";
    let found = over("predicate", program, launch, "injections = 60\nsites = [\"predicate\"]\n");
    for record in &found {
        // The clause also counts as an instruction.
        let wanted = if record.step == 2 { (Outcome::Sdc, 1) } else { (Outcome::Masked, 0) };
        assert_eq!((record.outcome, record.hits), wanted, "{record:?}");
    }
    assert!(found.iter().any(|it| it.step == 2) && found.iter().any(|it| it.step == 1));
}

/// Words of R700's scatter buffer: lane n writes to word n, and no lane writes to the words after those of the lanes.
#[test]
fn memory_is_injected_in_the_scatter_buffer_of_r700() {
    let program = ".isa r700\n.chip rv770\n.stage geometry\n.gprs 2\nALU:\n 0 x: MOV R1.x, R1.x\n\
        MEM_EXPORT: WRITE_IND[0], R0.x___ INDEX_GPR(1) ELEM_SIZE(0) ARRAY_SIZE(4095)\nNOP: END_OF_PROGRAM\n";
    let lanes = "values = \"0..64:u32\"";
    let launch = format!(
        "isa = \"r700\"\nprogram = \"p.s\"\nlanes = 64\nscatter = \"u32[128]\"\n\
         input = [{{ gpr = 0, {lanes} }}, {{ gpr = 1, {lanes} }}]\n"
    );
    let found = over("scatter", program, &launch, "injections = 200\nsites = [\"memory\"]\n");
    for record in &found {
        let word = record.place.strip_prefix("scatter 0x").and_then(|it| u32::from_str_radix(it, 16).ok());
        // A fault in a word that is written later is masked. The clause also counts as an instruction.
        let written = word.unwrap() < 4 * 64 && record.step < 3;
        let wanted = if written { Outcome::Masked } else { Outcome::Sdc };
        assert_eq!((record.outcome, record.hits), (wanted, u32::from(!written)), "{record:?}");
    }
    let outcomes: BTreeSet<Outcome> = found.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, BTreeSet::from([Outcome::Masked, Outcome::Sdc]));
}

/// The vertex unit has one flow for all its lanes, so faults are in registers.
#[test]
fn registers_of_vertex_programs_of_r500_are_injected() {
    let program = include_str!("../../../corpus/r500/vertex-loop.s");
    let launch = include_str!("../../../corpus/r500/vertex-loop.toml").replace("vertex-loop.s", "p.s");
    let found = over("vertex", program, &launch, &format!("injections = 100\n{ALL_MODELS}"));
    assert!(found.iter().all(|it| matches!(it.site, Site::Register | Site::Destination)));
    assert!(found.iter().any(|it| it.outcome == Outcome::Sdc));
}

const SHARDED: &str = "kernel = \"collatz\"\nisa = \"r700\"\nlanes = 128\ninjections = 60\nshard = 16\nseed = 3\nmodels = [\"flip\", \"random\"]\n";

fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = |path: PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

#[test]
fn one_thread_two_threads_and_a_resumed_run_leave_the_same_bytes() {
    let path = folder("bytes", &[("c.toml", SHARDED)]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let shards = campaign.shards();
    assert_eq!(shards.iter().map(|it| it.range.clone()).collect::<Vec<_>>(), [0..16, 16..32, 32..48, 48..60]);
    let [one, two, resumed] = ["one", "two", "resumed"].map(|name| path.join(name));
    for shard in &shards {
        campaign.run_shard(shard, &one).unwrap();
    }
    std::thread::scope(|scope| {
        for half in [[0, 2], [3, 1]] {
            let (campaign, shards, two) = (&campaign, &shards, &two);
            scope.spawn(move || half.map(|shard| campaign.run_shard(&shards[shard], two).unwrap()));
        }
    });
    // Another process begins, runs one shard, and stops in the middle of the next.
    campaign.run_shard(&shards[2], &resumed).unwrap();
    let left = std::cell::Cell::new(5);
    let go_on = || left.replace(left.get() - 1) > 0;
    assert_eq!(campaign.run_shard_while(&shards[0], &resumed, &go_on).unwrap(), None);
    let again = Campaign::open(&path.join("c.toml")).unwrap();
    let missing = again.missing(&resumed).unwrap();
    assert_eq!(missing.iter().map(|shard| shard.index).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(again.summary(&resumed).unwrap().finished, 16);
    missing.iter().for_each(|shard| drop(again.run_shard(shard, &resumed).unwrap()));
    assert_eq!(bytes(&one).len(), 4);
    assert!(bytes(&one) == bytes(&two) && bytes(&one) == bytes(&resumed));
    let summary = again.summary(&resumed).unwrap();
    assert_eq!((summary.finished, summary.missing), (60, 0));
    let counted: u64 = summary.sites.iter().map(|counts| counts.injections).sum();
    assert_eq!(counted, 60);
}

#[test]
fn the_reference_engine_agrees_with_what_is_stored() {
    for (isa, kernel, lanes) in
        [(Isa::R500, "mandel", 16), (Isa::R700, "collatz", 64), (Isa::Tesla, "collatz", 256)]
    {
        let text = format!(
            "kernel = \"{kernel}\"\nisa = \"{isa}\"\nlanes = {lanes}\ninjections = 80\nshard = 40\nfuel = 3\n{ALL_MODELS}"
        );
        let path = folder(&format!("recheck-{isa}"), &[("c.toml", &text)]);
        let campaign = Campaign::open(&path.join("c.toml")).unwrap();
        campaign.shards().iter().for_each(|shard| drop(campaign.run_shard(shard, &path).unwrap()));
        let recheck = campaign.recheck(&path, 60, 1).unwrap();
        assert_eq!(recheck.checked, 60);
        assert!(recheck.differ.is_empty(), "{isa}: {:#?}", recheck.differ);
    }
}

/// Programs in which a fault has only one effect.
#[test]
fn outcomes_have_their_names() {
    let header = ".isa tesla\n.chip sm_10\n.type CP\n.kernel k\n.reg 3\n.shared 20\n.param 0 4\n";
    let launch =
        "isa = \"tesla\"\nprogram = \"p.s\"\nblock = [32]\n[[param]]\nname = \"out\"\nbuffer = \"u32[32]\"\n";
    let outcomes = |name: &str, code: &str, campaign: &str| {
        let files = [("p.s", &*format!("{header}{code}")), ("l.toml", launch), ("c.toml", campaign)];
        let campaign = Campaign::open(&folder(name, &files).join("c.toml")).unwrap();
        records(&campaign)
    };
    let of = |sites: &str| format!("launch = \"l.toml\"\ninjections = 64\nfuel = 4\nsites = [\"{sites}\"]\n");
    // Registers that are written and never read.
    let dead = outcomes("masked", "mov b32 $r1 0x1\nmov b32 $r2 0x2\nexit nop\n", &of("register"));
    assert!(dead.iter().all(|it| it.outcome == Outcome::Masked && it.flow_step.is_none()));
    // The mask changes while nothing depends on the lanes: other lanes, the same outputs.
    let lanes = outcomes("diverged", "mov b32 $r1 0x1\nmov b32 $r2 0x2\nexit nop\n", &of("active-mask"));
    assert!(lanes.iter().all(|it| it.outcome == Outcome::Diverged && it.flow_step == Some(it.step)));
    // The value that a lane stores, at the store.
    let store =
        "shl b32 $r0 $r0 0x2\nadd b32 $r0 b32 s[0x10] $r0\nmov b32 $r1 0x0\nexit st b32 g14[$r0] $r1\n";
    let stored = outcomes("sdc", store, &of("register"));
    let sdc: Vec<&Record> = stored.iter().filter(|it| it.outcome == Outcome::Sdc && it.step == 3).collect();
    assert!(!sdc.is_empty());
    for record in sdc.iter().filter(|it| it.place == "$r1") {
        assert_eq!((record.hits, record.error), (1, Some(record.after as f64)), "{record:?}");
    }
    // A distant address.
    let trapped: Vec<&Record> = stored.iter().filter(|it| it.outcome == Outcome::Trap).collect();
    assert!(
        !trapped.is_empty() && trapped.iter().all(|it| it.trap.as_deref() == Some("Memory")),
        "{trapped:?}"
    );
    // A count that does not reach its end.
    let endless = "mov b32 $r1 0x3\nmov b32 $r2 0x1\nbreakaddr out\nagain:\nsub b32 $c0 $r1 $r1 $r2\n(e $c0) break\n\
        bra again\nout:\nexit nop\n";
    let hung = outcomes("hang", endless, &of("register"));
    assert!(hung.iter().any(|it| it.outcome == Outcome::Hang && it.trap.is_none() && it.flow_step.is_some()));
}

#[test]
fn a_folder_of_another_campaign_or_version_and_a_damaged_shard_are_refused() {
    let path = folder("other", &[("c.toml", SHARDED), ("d.toml", &SHARDED.replace("seed = 3", "seed = 4"))]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let other = Campaign::open(&path.join("d.toml")).unwrap();
    let results = path.join("results");
    let shard = &campaign.shards()[0];
    let file = campaign.run_shard(shard, &results).unwrap();
    let why = other.missing(&results).unwrap_err().to_string();
    assert!(why.contains("it belongs to another campaign") && why.contains("use another folder"), "{why}");
    let why = other.run_shard(shard, &results).unwrap_err().to_string();
    assert!(why.contains("does not belong to the campaign") && why.contains("the same version"), "{why}");
    // The file states its version, so that a program of another version can report it.
    let whole = std::fs::read(&file).unwrap();
    let version = campaign.describe().version.as_bytes();
    let mut older = whole.clone();
    let at = older.windows(version.len()).position(|bytes| bytes == version).unwrap();
    older[at] = b'9';
    let foreign = results.join("00000000000000000000000000000000-000000.parquet");
    std::fs::write(&foreign, older).unwrap();
    let why = campaign.missing(&results).unwrap_err().to_string();
    assert!(why.contains("found version 9") && why.contains("use one version"), "{why}");
    std::fs::write(&foreign, "no table").unwrap();
    assert!(campaign.missing(&results).unwrap_err().to_string().contains("expected a result of a campaign"));
    std::fs::remove_file(&foreign).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let why = campaign.summary(&results).unwrap_err().to_string();
    assert!(why.contains("damaged; remove it and run the campaign again"), "{why}");
}

/// Flips one bit in 1,009. The tests of `table` flip each bit of a file.
#[test]
fn a_flipped_bit_of_a_shard_is_never_counted_and_the_shard_is_run_again() {
    let path = folder("flipped", &[("c.toml", &SHARDED.replace("injections = 60", "injections = 20"))]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let results = path.join("results");
    let shards = campaign.shards();
    let files: Vec<PathBuf> =
        shards.iter().map(|shard| campaign.run_shard(shard, &results).unwrap()).collect();
    let whole = std::fs::read(&files[1]).unwrap();
    for bit in (0..8 * whole.len()).step_by(1009) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&files[1], flipped).unwrap();
        let state = campaign.state(&results).unwrap();
        assert_eq!((&state.missing[..], &state.damaged[0].file), (&shards[1..2], &files[1]), "bit {bit}");
        let why = campaign.summary(&results).unwrap_err().to_string();
        assert!(why.contains(shards[1].name()) && why.contains("checksum"), "bit {bit}: {why}");
        assert!(
            campaign.recheck(&results, 20, 1).is_err() && campaign.shard_bytes(&shards[1], &results).is_err()
        );
    }
    let taken = campaign.take_shard_while(&shards[1], &results, &|| true).unwrap();
    assert_eq!(taken, Taken::Ran(files[1].clone()));
    assert!(std::fs::read(&files[1]).unwrap() == whole);
    assert_eq!(
        campaign.take_shard_while(&shards[1], &results, &|| true).unwrap(),
        Taken::Finished(files[1].clone())
    );
    assert_eq!(campaign.summary(&results).unwrap().finished, 20);
}

/// Tries a whole file under another name, a file without a checksum (from an earlier version), and a folder.
#[test]
fn what_is_not_the_shard_of_its_name_is_damaged() {
    let path = folder("misplaced", &[("c.toml", SHARDED)]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let results = path.join("results");
    let shards = campaign.shards();
    let files: Vec<PathBuf> =
        shards[..2].iter().map(|shard| campaign.run_shard(shard, &results).unwrap()).collect();
    let why = || campaign.state(&results).unwrap().damaged.remove(0).why;
    std::fs::copy(&files[0], &files[1]).unwrap();
    assert_eq!(why(), "the file does not contain the shard's experiments");
    let mut older = std::fs::read(&files[0]).unwrap();
    let at = older.windows(9).position(|bytes| bytes == b"fnv1a128:").unwrap();
    older[at] = b'-';
    std::fs::write(&files[1], older).unwrap();
    assert!(why().starts_with("missing checksum: an old version wrote the file"));
    std::fs::remove_file(&files[1]).unwrap();
    std::fs::create_dir(&files[1]).unwrap();
    assert_eq!(why(), "not a regular file");
}

/// A shard replaces a link with the shard's name, and the target of the link does not change.
#[test]
#[cfg(unix)]
fn a_planted_link_is_not_followed_when_a_shard_is_written() {
    let path = folder("planted", &[("c.toml", SHARDED), ("victim", "precious")]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let results = path.join("results");
    let shard = &campaign.shards()[0];
    std::fs::create_dir(&results).unwrap();
    std::os::unix::fs::symlink(path.join("victim"), results.join(shard.name())).unwrap();
    let taken = campaign.take_shard_while(shard, &results, &|| true).unwrap();
    assert_eq!(taken, Taken::Ran(results.join(shard.name())));
    assert!(!results.join(shard.name()).is_symlink());
    assert_eq!(std::fs::read(path.join("victim")).unwrap(), b"precious");
}

/// Threads divide the shards, so that each experiment runs once.
#[test]
fn threads_that_take_shards_divide_them() {
    let path = folder("divided", &[("c.toml", SHARDED)]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let (results, alone) = (path.join("results"), path.join("alone"));
    let ran = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut open = campaign.shards();
                while !open.is_empty() {
                    open.retain(|shard| {
                        let taken = campaign.take_shard_while(shard, &results, &|| true).unwrap();
                        ran.fetch_add(
                            usize::from(matches!(taken, Taken::Ran(_))),
                            std::sync::atomic::Ordering::Relaxed,
                        );
                        matches!(taken, Taken::Elsewhere(_))
                    });
                }
            });
        }
    });
    assert_eq!(ran.into_inner(), campaign.shards().len());
    campaign.shards().iter().for_each(|shard| drop(campaign.run_shard(shard, &alone).unwrap()));
    assert!(bytes(&results) == bytes(&alone));
}

/// The folder of results is a file, which fails like a full disk or missing rights. Existing results are not lost.
#[test]
fn a_shard_that_cannot_be_written_says_what_to_do() {
    let path = folder("unwritable", &[("c.toml", SHARDED), ("taken", "")]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let error = campaign.run_shard(&campaign.shards()[3], &path.join("taken")).unwrap_err();
    assert!(matches!(error, Error::File { .. }));
    let why = error.to_string();
    assert!(why.contains("finished shards are kept; free disk space or choose another folder"), "{why}");
}

#[test]
fn what_cannot_be_is_refused_with_what_fits() {
    let kernel = |isa: &str, more: &str| format!("kernel = \"mandel\"\nisa = \"{isa}\"\nlanes = 256\n{more}");
    let one = "injections = 1\n";
    let case = |name: &str, text: &str, parts: &[&str]| {
        let why = refused(&[("c.toml", text)], name);
        assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    };
    case(
        "token",
        &kernel("r500", &format!("{one}sites = [\"token\"]\n")),
        &["r500 does not have a token, which tesla has", "active-mask"],
    );
    case(
        "memory",
        &kernel("r700", &format!("{one}sites = [\"memory\"]\n")),
        &["does not have a memory", "expected"],
    );
    case(
        "kernel",
        "kernel = \"mandle\"\nisa = \"r500\"\ninjections = 1\n",
        &[
            "c.toml: kernel: r500 has no kernel `mandle`: did you mean `mandel`? expected one of mandel, scale, newton, options, stencil4, lit",
        ],
    );
    case("isa", "kernel = \"mandel\"\nisa = \"r800\"\ninjections = 1\n", &["isa: ", "r800"]);
    case("lanes", &kernel("tesla", one).replace("256", "100"), &["a multiple of 256), found 100"]);
    case("none", "launch = \"no.toml\"\ninjections = 1\n", &["no.toml: ", "No such file"]);
    case(
        "chip",
        &kernel("r500", &format!("{one}chip = \"rv770\"\n")),
        &["rv770 is a chip of r700, not of r500"],
    );
    case(
        "shards",
        &kernel("r500", "injections = 10000000\nshard = 1\n"),
        &["shard: 1 experiments", "expected 10 or more"],
    );
    case("sweep", &kernel("r500", "[sweep]\ngrid = [1]\n"), &["sweep, grid = 1", "lanes, chip and mode"]);
    let launch = "isa = \"tesla\"\nprogram = \"p.s\"\n";
    let loops = ".isa tesla\n.chip sm_10\n.type CP\n.kernel k\n.reg 1\nagain:\nbra again\n";
    let text = "launch = \"l.toml\"\ninjections = 1\n";
    let trapping = format!("{launch}watchdog = 100\n");
    let why = refused(&[("p.s", loops), ("l.toml", &trapping), ("c.toml", text)], "golden-trap");
    assert!(why.contains("the run without a fault: ") && why.contains("TIMEOUT"), "{why}");
    let outside = "isa = \"tesla\"\nprogram = \"../p.s\"\n";
    let why = refused(&[("l.toml", outside), ("c.toml", text)], "outside");
    assert!(why.contains("program ../p.s: "), "{why}");
}

const TESLA: &str = ".isa tesla\n.chip sm_10\n.type CP\n.kernel k\n.reg 3\n.shared 20\n.param 0 4\n";
const OF_TESLA: &str =
    "isa = \"tesla\"\nprogram = \"p.s\"\nblock = [64]\n[[param]]\nname = \"out\"\nbuffer = \"u32[64]\"\n";

/// Sets `$r1` to 5, and then doubles it.
const SUMS: &str = "start:\nmov b32 $r1 0x5\nadd b32 $r1 $r1 $r1\ndone:\nmov b32 $r0 0x0\nexit nop\n";

fn of_tesla(name: &str, more: &str, files: &[(&str, &str)]) -> Result<Campaign, Error> {
    let (program, text) = (format!("{TESLA}{SUMS}"), format!("launch = \"l.toml\"\n{more}"));
    let mut all = vec![("p.s", &*program), ("l.toml", OF_TESLA), ("c.toml", &*text)];
    all.extend(files);
    Campaign::open(&folder(name, &all).join("c.toml"))
}

/// Every filter, over all experiments: all faults are inside the filter, and every allowed value occurs.
#[test]
fn filters_keep_faults_in_their_instructions_registers_lanes_and_groups() {
    let of = |name: &str, filter: &str| {
        let more = format!("injections = 200\nsites = [\"register\"]\n[filter]\n{filter}\n");
        records(&of_tesla(name, &more, &[]).unwrap())
    };
    let seen =
        |records: &[Record], key: fn(&Record) -> u32| records.iter().map(key).collect::<BTreeSet<u32>>();
    let pcs = seen(&of("filter-none", ""), |it| it.pc);
    assert_eq!(pcs.len(), 4, "{pcs:?}");
    let pcs: Vec<u32> = pcs.into_iter().collect();
    let at = of("filter-pc", &format!("pc = {:#x}", pcs[1]));
    assert_eq!(seen(&at, |it| it.pc), BTreeSet::from([pcs[1]]));
    let labels = of("filter-label", "pc = \"start-done\"");
    assert_eq!(seen(&labels, |it| it.pc), pcs[..3].iter().copied().collect());
    let opcode = of("filter-opcode", "opcode = \"add\"");
    assert_eq!(seen(&opcode, |it| it.pc), BTreeSet::from([pcs[1]]));
    let register = of("filter-register", "register = \"$r0\"");
    assert!(register.iter().all(|it| it.place == "$r0"));
    let lanes = of("filter-lane", "lane = \"0-1,8\"");
    assert_eq!(seen(&lanes, |it| it.lane.unwrap()), BTreeSet::from([0, 1, 8]));
    let group = of("filter-group", "group = 1");
    assert_eq!(seen(&group, |it| it.group), BTreeSet::from([1]));
    let wrong = of_tesla("filter-wrong", "injections = 1\n[filter]\nopcode = \"ad\"\n", &[]);
    let why = wrong.err().unwrap().to_string();
    assert!(why.contains("filter, opcode: the program has no `ad`: did you mean `add`?"), "{why}");
    let none = of_tesla("filter-empty", "injections = 1\n[filter]\nlane = 60\nsites = 1\n", &[]);
    assert!(none.err().unwrap().to_string().contains("c.toml:5: unknown key `sites`"));
}

/// Random filters at all sites of each machine: all injected faults are inside the filter.
#[test]
fn whatever_a_filter_leaves_is_inside() {
    let mut random = Random::new(11);
    for (isa, kernel, lanes) in
        [(Isa::R500, "mandel", 32), (Isa::R700, "collatz", 128), (Isa::Tesla, "collatz", 256)]
    {
        let text = format!("kernel = \"{kernel}\"\nisa = \"{isa}\"\nlanes = {lanes}\ninjections = 60\n");
        let all: Vec<u32> = records(&open(&format!("inside-{isa}"), &text)).iter().map(|it| it.pc).collect();
        for number in 0..4 {
            let mut chosen = || all[random.below(all.len() as u32) as usize];
            let (one, other) = (chosen(), chosen());
            let (first, last) = (one.min(other), one.max(other));
            let (low, high) = (random.below(8), 8 + random.below(8));
            let filter = format!("[filter]\npc = \"{first}-{last}\"\nlane = \"{low}-{high}\"\ngroup = 0\n");
            let campaign = open(&format!("inside-{isa}-{number}"), &format!("{text}{filter}"));
            assert!(!campaign.describe().sites.is_empty());
            for it in records(&campaign) {
                assert!((first..=last).contains(&it.pc) && it.group == 0, "{filter}{it:?}");
                let inside = (low..=high).fold(0u64, |mask, lane| mask | 1 << lane);
                match it.lane {
                    Some(lane) => assert!((low..=high).contains(&lane), "{filter}{it:?}"),
                    None => assert_eq!((it.before ^ it.after) & !inside, 0, "{filter}{it:?}"),
                }
            }
        }
    }
}

/// A destination register changes after the instruction that writes it, so that the next one reads the changed value.
#[test]
fn destination_registers_change_after_the_instruction_that_writes_them() {
    let more = "injections = 120\nsites = [\"destination\"]\n[filter]\nopcode = \"add\"\n";
    for record in records(&of_tesla("destination", more, &[]).unwrap()) {
        assert_eq!((&*record.place, record.before), ("$r1", 10), "{record:?}");
    }
    let more = "injections = 120\nsites = [\"destination\"]\nmodels = [\"stuck-at-1\"]\n";
    let found = records(&of_tesla("destination-stuck", more, &[]).unwrap());
    assert!(found.iter().any(|it| it.place == "$r0"));
    assert!(found.iter().all(|it| it.before & !it.after == 0), "a bit that is stuck at 1 never falls");
}

/// A stuck bit stays through the instructions that write the register; a flipped one does not.
#[test]
fn a_stuck_bit_outlives_what_is_written_over_it() {
    let store = "mov b32 $r1 0x5\nmov b32 $r1 0x5\nshl b32 $r0 $r0 0x2\nadd b32 $r0 b32 s[0x10] $r0\n\
                 exit st b32 g14[$r0] $r1\n";
    let program = format!("{TESLA}{store}");
    let outcome = |name: &str, model: &str| {
        let text = format!(
            "launch = \"l.toml\"\n[[fault]]\nsite = \"register\"\nmodel = \"{model}\"\nstep = 0\nplace = \"$r1\"\nlane = 0\nbit = 7\n"
        );
        let files = [("p.s", &*program), ("l.toml", OF_TESLA), ("c.toml", &*text)];
        let path = folder(name, &files).join("c.toml");
        match Campaign::open(&path) {
            Ok(campaign) => records(&campaign).remove(0),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(outcome("stuck-not", "flip").outcome, Outcome::Masked);
    assert_eq!(outcome("stuck-at-1", "stuck-at-1").outcome, Outcome::Sdc);
    assert_eq!(outcome("stuck-at-0", "stuck-at-0").outcome, Outcome::Masked);
}

/// A list in the file, in CSV and as the results of another campaign give the same experiments.
#[test]
fn listed_faults_are_the_experiments_of_a_campaign() {
    let fault = "[[fault]]\nsite = \"register\"\nstep = 1\nplace = \"$r1\"\nlane = 5\nxor = 0x3\n";
    let own = records(&of_tesla("listed", fault, &[]).unwrap());
    let Record { step, lane, before, after, .. } = &own[0];
    assert_eq!((own.len(), *step, *lane, *before, *after), (1, 1, Some(5), 5, 6));
    let list = "site,step,place,lane,before,after\nregister,1,$r1,5,5,6\n";
    let csv = records(&of_tesla("listed-csv", "faults = \"list.csv\"\n", &[("list.csv", list)]).unwrap());
    assert_eq!(csv, own);
    let campaign = of_tesla("listed-results", fault, &[]).unwrap();
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaigns/listed-results");
    let shard = campaign.run_shard(&campaign.shards()[0], &results).unwrap();
    std::fs::rename(shard, results.join("list.parquet")).unwrap();
    std::fs::write(results.join("d.toml"), "launch = \"l.toml\"\nfaults = \"list.parquet\"\n").unwrap();
    assert_eq!(records(&Campaign::open(&results.join("d.toml")).unwrap()), own);
    let late = of_tesla("listed-late", &fault.replace("step = 1", "step = 99"), &[]);
    let why = late.err().unwrap().to_string();
    assert!(
        why.contains("fault 1: the site register does not exist at step 99; the golden run has 8 steps"),
        "{why}"
    );
    let lost = of_tesla("listed-lost", &fault.replace("$r1", "$r9"), &[]);
    let why = lost.err().unwrap().to_string();
    assert!(why.contains("register `$r9` of lane 5 does not exist at this step; $r0, $r1 exist"), "{why}");
}

/// The message about a list of one fault at step 1 of `SUMS`.
fn fault_refused(name: &str, fault: &str) -> String {
    let more = format!("[[fault]]\nstep = 1\n{fault}\n");
    of_tesla(name, &more, &[]).err().unwrap_or_else(|| panic!("{fault} is accepted")).to_string()
}

#[test]
fn a_value_that_does_not_fit_the_place_is_refused() {
    let register = "site = \"register\"\nplace = \"$r1\"\n";
    for (key, value) in [("value", "0x100000001"), ("xor", "0x100000000"), ("bit", "32")] {
        let why = fault_refused("value-wide", &format!("{register}{key} = {value}"));
        let wanted = format!("fault 1: {key} = {value} does not fit: $r1 has the bits 0xffffffff");
        assert!(why.contains(&wanted), "{why}");
    }
    let list = [("list.csv", "site,step,place,after\nregister,1,$r1,0x100000001\n")];
    let why = of_tesla("after-wide", "faults = \"list.csv\"\n", &list).err().unwrap().to_string();
    assert!(why.contains("list.csv:2: value = 0x100000001 does not fit: $r1"), "{why}");
}

#[test]
fn a_lane_that_the_group_or_the_site_does_not_have_is_refused() {
    let why = fault_refused("lane-99", "site = \"register\"\nlane = 99");
    assert!(why.contains("lane 99: expected a lane of the group, 0 to 31"), "{why}");
    let why = fault_refused("lane-mask", "site = \"active-mask\"\nlane = 32");
    assert!(why.contains("lane 32: expected a lane of the group, 0 to 31"), "{why}");
    for (site, place) in [("instruction", "word 0"), ("memory", "g 0x10000")] {
        let why = fault_refused("lane-none", &format!("site = \"{site}\"\nlane = 1"));
        assert!(why.contains(&format!("fault 1: lane 1: {site} does not have lanes; omit lane")), "{why}");
        let named = format!("site = \"{site}\"\nplace = \"{place}\"\nlane = 1");
        let why = fault_refused("lane-none", &named);
        assert!(why.contains(" does not have lane") || why.contains("does not exist at this step"), "{why}");
    }
    let why = fault_refused("lane-double", "site = \"active-mask\"\nlane = 1\nmodel = \"double\"");
    assert!(
        why.contains(
            "model `double` changes several lanes of active, but lane = 1 names one lane; omit lane"
        ),
        "{why}"
    );
}

/// In a list and in a filter, the lane of a fault in a mask chooses its bit. The other lanes store the expected values.
#[test]
fn a_lane_chooses_its_bit_of_a_mask() {
    let store =
        "mov b32 $r1 0x5\nshl b32 $r0 $r0 0x2\nadd b32 $r0 b32 s[0x10] $r0\nexit st b32 g14[$r0] $r1\n";
    let listed = "[[fault]]\nsite = \"active-mask\"\nstep = 3\nlane = 3\n";
    let zero = format!("{listed}model = \"zero\"\n");
    let filter = "injections = 1\nsites = [\"active-mask\"]\n[filter]\nlane = 3\npc = \"last\"\ngroup = 0\n";
    let program = format!("{TESLA}{}", store.replace("exit", "last:\nexit"));
    for (name, more) in [("listed", listed), ("zero", &zero), ("filter", filter)] {
        for record in over(&format!("lane-of-mask-{name}"), &program, OF_TESLA, more) {
            assert_eq!((record.before, record.after), (0xffff_ffff, 0xffff_fff7), "{record:?}");
            assert_eq!((record.outcome, record.hits), (Outcome::Sdc, 1), "{name}: {record:?}");
        }
    }
}

#[test]
fn a_wrong_fault_is_named_by_its_list_and_its_number_or_line() {
    let good = "[[fault]]\nsite = \"register\"\n";
    let why = of_tesla("named-own", &format!("{good}{good}xor = 0\n"), &[]).err().unwrap().to_string();
    assert!(why.contains("c.toml: fault 2: xor = 0"), "{why}");
    let list = [("list.csv", "# by hand\nsite,step,place\nregister,1,$r1\nregister,2,$r9\nregister,99,\n")];
    let why = of_tesla("named-csv", "faults = \"list.csv\"\n", &list).err().unwrap().to_string();
    assert!(
        why.contains("list.csv:4: register `$r9` does not exist at this step; $r0, $r1 exist; 1 more"),
        "{why}"
    );
    let list = [("list.csv", "site,step\n")];
    let why = of_tesla("named-empty", "faults = \"list.csv\"\n", &list).err().unwrap().to_string();
    assert!(why.contains("list.csv: the list has no faults"), "{why}");
}

/// Each wrong fault listed the names of all registers for all lanes: 100,000 faults took 8 s.
#[test]
fn a_long_list_of_faults_that_do_not_exist_is_refused_soon() {
    let list = format!("site,place\n{}", "register,R99.x\n".repeat(100_000));
    let text = "kernel = \"collatz\"\nisa = \"r700\"\nlanes = 256\nfaults = \"list.csv\"\n";
    let folder = folder("named-many", &[("c.toml", text), ("list.csv", &list)]);
    let start = std::time::Instant::now();
    let why = Campaign::open(&folder.join("c.toml")).err().unwrap().to_string();
    assert!(why.contains("list.csv:2: register `R99.x` does not exist at this step; "), "{why}");
    assert!(why.ends_with(" exist; 99999 more are wrong"), "{why}");
    // Far above the usual time, because other tests run at the same time.
    assert!(start.elapsed() < std::time::Duration::from_secs(6), "{:?}", start.elapsed());
}

#[test]
fn a_filter_of_something_else_says_what_fits() {
    let why = of_tesla("filter-negative", "injections = 1\n[filter]\ngroup = -1\n", &[]).err().unwrap();
    assert!(
        why.to_string().contains("c.toml:4: expected a number that is not negative, a text such as"),
        "{why}"
    );
}

/// The names of an outcome function are a column of the results and rows of the summary, and part of the campaign's
/// hash.
#[test]
fn an_outcome_function_names_outcomes() {
    let text = "injections = 40\nshard = 40\nsites = [\"register\"]\n";
    let plain = of_tesla("classes", text, &[]).unwrap();
    let hash = plain.describe().campaign.clone();
    let classify = |ended: EndedExperiment<'_>| {
        assert_eq!(ended.outputs.is_none(), matches!(ended.record.outcome, Outcome::Trap | Outcome::Hang));
        Ok(if ended.record.lane < Some(16) { "low" } else { "high" }.to_owned())
    };
    let campaign = plain.with_outcomes("halves", Arc::new(classify)).unwrap();
    assert_ne!(campaign.describe().campaign, hash);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaigns/classes/results");
    campaign.run_shard(&campaign.shards()[0], &folder).unwrap();
    let summary = campaign.summary(&folder).unwrap();
    let classes: Vec<(&str, u64)> =
        summary.sites[0].classes.iter().map(|class| (&*class.class, class.count)).collect();
    let low = records(&campaign).iter().filter(|it| it.lane < Some(16)).count() as u64;
    assert_eq!(classes, [("high", 40 - low), ("low", low)]);
    let failing = of_tesla("classes-failing", text, &[]).unwrap();
    let failing = failing.with_outcomes("fails", Arc::new(|_| Err("no".to_owned()))).unwrap();
    let why = failing.experiment(3, Engine::Fast).unwrap_err().to_string();
    assert_eq!(why, "experiment 3: the outcome function: no");
}

/// A progress callback is called for every experiment, and stops the run by returning `false`.
#[test]
fn progress_is_told_after_each_experiment_and_can_stop_the_run() {
    let path = folder("progress", &[("c.toml", SHARDED)]);
    let campaign = Campaign::open(&path.join("c.toml")).unwrap();
    let seen = Mutex::new(Vec::new());
    let tell = |progress: Progress| {
        seen.lock().unwrap().push(progress.done);
        true
    };
    let ran = campaign.run_shards(campaign.shards(), &path.join("results"), 1, &tell).unwrap();
    assert_eq!(ran, Some(60));
    assert_eq!(seen.into_inner().unwrap(), (1..=60).collect::<Vec<u64>>());
    let stop = |progress: Progress| progress.done < 20;
    assert_eq!(campaign.run_shards(campaign.shards(), &path.join("stopped"), 1, &stop).unwrap(), None);
    assert_eq!(campaign.summary(&path.join("stopped")).unwrap().finished, 16);
}

/// A replay runs with and without the fault. On each machine, the outputs differ if and only if the record is an SDC.
#[test]
fn a_replay_ends_as_its_experiment() {
    for (isa, kernel, lanes) in
        [(Isa::R500, "mandel", 16), (Isa::R700, "collatz", 64), (Isa::Tesla, "collatz", 256)]
    {
        let text = format!(
            "kernel = \"{kernel}\"\nisa = \"{isa}\"\nlanes = {lanes}\ninjections = 120\nfuel = 3\n{ALL_MODELS}"
        );
        let campaign = open(&format!("replay-{isa}"), &text);
        for index in 0..120 {
            let replay = campaign.replay(index).unwrap();
            let golden = replay.golden.run(&replay.options).unwrap().outputs();
            let faulty = replay.faulty.run(&replay.options);
            let record = &replay.record;
            match faulty {
                Ok(outcome) => {
                    let same = outcome.outputs() == golden;
                    let wanted = if same { [Outcome::Masked, Outcome::Diverged] } else { [Outcome::Sdc; 2] };
                    assert!(wanted.contains(&record.outcome), "{record:?}");
                }
                Err(_) => assert!(matches!(record.outcome, Outcome::Trap | Outcome::Hang), "{record:?}"),
            }
        }
    }
}

/// Campaigns accept every kernel of `bench`, and the error message lists them.
#[test]
fn all_kernels_of_bench_are_kernels_of_campaigns() {
    let all: Vec<(Isa, &str)> = reconverge_workbench::suite::WORKLOADS
        .iter()
        .map(|workload| (workload.isa, workload.problem.name))
        .collect();
    assert_eq!(all.len(), 33);
    for (isa, name) in &all {
        let text = format!("kernel = \"{name}\"\nisa = \"{isa}\"\nlanes = 32\ninjections = 1\n");
        let why = refused(&[("c.toml", &text)], "all-kernels");
        assert!(why.contains("lanes: only for mandel and collatz"), "{why}");
    }
    let campaign =
        open("nbody", "kernel = \"nbody\"\nisa = \"tesla\"\ninjections = 2\nsites = [\"register\"]\n");
    assert_eq!(records(&campaign).len(), 2);
}

/// For an endless loop of few lanes, the message names the limit, not the number of lanes.
#[test]
fn an_endless_golden_run_is_said_to_be_a_loop() {
    let launch = "isa = \"tesla\"\nprogram = \"p.s\"\nblock = [12]\nwatchdog = 1000000000\n";
    let loops = ".isa tesla\n.chip sm_10\n.type CP\n.kernel k\n.reg 1\nagain:\nbra again\n";
    let text = "launch = \"l.toml\"\ninjections = 1\n";
    let why = refused(&[("p.s", loops), ("l.toml", launch), ("c.toml", text)], "endless");
    assert!(why.contains("has not ended: is it an endless loop? watchdog = N"), "{why}");
    assert!(!why.contains("use fewer lanes"), "{why}");
}

/// A sweep without injections consists of the golden runs of its points.
#[test]
fn a_sweep_runs_every_combination() {
    let text = "kernel = \"mandel\"\nisa = \"r500\"\n[sweep]\nlanes = [16, 48]\nchip = [\"R520\", \"RV530\"]\nmode = [\"strict\", \"lenient\"]\n";
    let campaign = open("sweep", text);
    let points = &campaign.describe().points;
    assert_eq!((points.len(), campaign.shards().len()), (8, 0));
    let keys: Vec<&str> = points[0].parameters.keys().map(String::as_str).collect();
    assert_eq!(keys, ["chip", "lanes", "mode"]);
    let groups: BTreeSet<usize> = points.iter().map(|point| point.groups).collect();
    assert!(groups.len() > 1, "{groups:?}");
    // Mode and chip do not change the results of mandel; the number of lanes does.
    let outputs: BTreeSet<&str> = points.iter().map(|point| &*point.outputs).collect();
    assert_eq!(outputs.len(), 2);
    let text = format!("{text}\n").replace("isa = \"r500\"\n", "isa = \"r500\"\ninjections = 3\n");
    let campaign = open("sweep-injected", &text);
    assert_eq!(campaign.describe().injections, 24);
    let points: BTreeSet<u32> = records(&campaign).iter().map(|it| it.point).collect();
    assert_eq!(points.len(), 8);
}

/// A named parameter changes the outputs; the chip does not.
#[test]
fn a_sweep_runs_over_parameters_of_a_kernel() {
    let launch = "isa = \"tesla\"\nprogram = \"p.s\"\ngrid = [1]\nblock = [4]\n\
        [[param]]\nname = \"a\"\nbuffer = \"0..4:i32\"\n[[param]]\nname = \"out\"\nbuffer = \"i32[4]\"\n\
        [[param]]\nname = \"n\"\nvalue = 5\n";
    let text = "launch = \"l.toml\"\n[sweep]\n\"param.n\" = [5, 6]\nchip = [\"sm_10\", \"sm_12\"]\n";
    let files = [("p.s", include_str!("../../../docs/samples/vec.s")), ("l.toml", launch), ("c.toml", text)];
    let campaign = Campaign::open(&folder("sweep-param", &files).join("c.toml")).unwrap();
    let points = &campaign.describe().points;
    let outputs = |value: &str| -> BTreeSet<&str> {
        let of = |point: &&PointDescription| point.parameters["param.n"] == value;
        points.iter().filter(of).map(|point| &*point.outputs).collect()
    };
    assert_eq!(points.len(), 4);
    let (five, six) = (outputs("5"), outputs("6"));
    assert!(five.len() == 1 && six.len() == 1 && five != six, "{points:#?}");
}

#[test]
fn a_margin_decides_how_many_experiments_there_are() {
    let text = "kernel = \"mandel\"\nisa = \"r500\"\nlanes = 16\nmargin = 0.05\nsites = [\"register\", \"active-mask\"]\n";
    let campaign = open("margin", text);
    let described = campaign.describe();
    assert_eq!((described.size_of_site, described.injections), (Some(385), 770));
}
