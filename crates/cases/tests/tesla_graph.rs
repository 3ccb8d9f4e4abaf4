//! Every step of a lane is an edge of its program's graph, in every launch of the built-in corpus and of the
//! collections in `shared/`. The registers that an instruction writes and its memory accesses are among its uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reconverge_cases::{Folder, read};
use reconverge_isa::Isa;
use reconverge_isa::program::ConstantBlock;
use reconverge_simt::{Event, Mask, Mode, Observer, Options};
use reconverge_testkit::{LaneSteps, shared, unpacked};
use reconverge_workbench::launch::choose_program;
use reconverge_workbench::manifest::Manifest;
use reconverge_workbench::open::open;
use reconverge_workbench::session::Session;
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::Files;
use reconverge_workbench::{Known, Target};
use serde_json::Value;

#[derive(Debug)]
struct Disk(PathBuf);

impl Folder for Disk {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.join(relative)).map_err(|error| error.to_string())
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

impl Files for Disk {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        Folder::read(self, name)
    }
}

#[derive(Default)]
struct Groups {
    steps: BTreeMap<usize, LaneSteps>,
    /// The current instruction.
    pc: u32,
    /// Registers that each instruction wrote, by its address.
    writes: BTreeMap<u32, BTreeSet<u32>>,
    loads: BTreeSet<u32>,
    stores: BTreeSet<u32>,
}

impl Sink for Groups {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.steps.entry(group).or_default().issues(addresses, mask);
        self.pc = addresses.last().copied().unwrap_or(self.pc);
    }

    fn event(&mut self, group: usize, event: Event) {
        self.steps.entry(group).or_default().event(event);
        match event {
            Event::Write { register, .. } => {
                self.writes.entry(self.pc).or_default().insert(register);
            }
            Event::Load { .. } => drop(self.loads.insert(self.pc)),
            Event::Store { .. } => drop(self.stores.insert(self.pc)),
            _ => {}
        }
    }
}

/// Checks that all accesses that were observed are among the uses.
fn listed(name: &str, target: &Target, program: &reconverge_isa::Program, groups: &Groups) {
    let uses = target.machine().uses(target, program).unwrap();
    for (pc, registers) in &groups.writes {
        let listed: BTreeSet<u32> =
            uses[pc].iter().flat_map(|uses| &uses.writes).filter_map(|slot| slot.number).collect();
        assert!(
            registers.is_subset(&listed),
            "{name}: {pc:#x} writes {registers:x?}, listed are {listed:x?}"
        );
    }
    for pc in &groups.loads {
        assert!(uses[pc].iter().any(|uses| uses.loads.is_some()), "{name}: {pc:#x} loads");
    }
    for pc in &groups.stores {
        assert!(uses[pc].iter().any(|uses| uses.stores.is_some()), "{name}: {pc:#x} stores");
    }
}

/// Returns the program with the constants of a launch. The graph needs them for the targets of `bra c[]`.
fn with_constants(program: &reconverge_isa::Program, blocks: Vec<ConstantBlock>) -> reconverge_isa::Program {
    reconverge_isa::Program { constants: blocks, ..program.clone() }
}

/// Returns the constants of each run of each case of a file, by the case's name. Each entry is a first word and its
/// words.
fn constants_of_cases(path: &Path) -> BTreeMap<String, Vec<Vec<ConstantBlock>>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        return BTreeMap::new();
    }
    let word = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    let block = |bank: &str, run: &Value| ConstantBlock {
        bank: bank.parse().unwrap(),
        offset: 4 * run[0].as_u64().unwrap() as u32,
        bytes: run[1]
            .as_str()
            .unwrap()
            .as_bytes()
            .chunks(8)
            .flat_map(|digits| word(digits).to_le_bytes())
            .collect(),
    };
    let of_run = |run: &Value| {
        let banks = run["const"]["cb"].as_object().into_iter().flatten();
        banks.flat_map(|(bank, runs)| runs.as_array().unwrap().iter().map(|run| block(bank, run))).collect()
    };
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let runs = case["runs"].as_array().into_iter().flatten().map(of_run).collect();
        (case["name"].as_str().unwrap_or_default().to_owned(), runs)
    };
    unpacked(path).lines().map(case).collect()
}

/// Returns the constants of a run manifest: the bytes of each bank.
fn constants_of_manifest(bytes: &[u8]) -> Vec<ConstantBlock> {
    let manifest: Value = serde_json::from_slice(bytes).unwrap();
    let banks = manifest["constants"].as_object().into_iter().flatten();
    let block = |(bank, digits): (&String, &Value)| {
        let pairs = digits.as_str()?.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        Some(ConstantBlock {
            bank: bank.strip_prefix('c')?.parse().ok()?,
            offset: 0,
            bytes: pairs.map(byte).collect(),
        })
    };
    banks.filter_map(block).collect()
}

/// Runs a launch and compares. Returns the edges that were taken.
fn compare(
    name: &str,
    target: &Target,
    program: &reconverge_isa::Program,
    session: Session,
    recorded: Recorded,
) -> BTreeSet<(u32, u32)> {
    let graph = target.machine().graph(target, program).unwrap();
    let mut groups = Groups::default();
    let options = Options { mode: Mode::Lenient, ..Options::default() };
    // Steps before a trap also count.
    let _ = session.run_traced(&options, recorded, &mut groups);
    listed(name, target, program, &groups);
    let mut taken = BTreeSet::new();
    for steps in groups.steps.into_values() {
        for start in steps.starts {
            assert_eq!(start, program.base, "{name}: a lane starts at {start:#x}");
            assert!(graph.entries.contains(&start), "{name}: {start:#x} is no entry: {:x?}", graph.entries);
        }
        taken.extend(steps.steps);
    }
    for (from, to) in &taken {
        let node = graph.node(*from).unwrap_or_else(|| panic!("{name}: no node at {from:#x}"));
        assert!(
            node.next.iter().any(|edge| edge.to == *to),
            "{name}: a lane goes from {from:#x} to {to:#x}, the graph has {:x?}",
            node.next
        );
    }
    taken
}

/// Compares the launches of a file. Returns their number.
fn file(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let disk = || Disk(path.parent().unwrap().to_owned());
    let name = path.display().to_string();
    if let Some(Ok(manifest)) = Manifest::parse(&bytes) {
        let known = Known { isa: Some(Isa::Tesla), chip: Some(manifest.arch.clone()), ..Known::default() };
        let beside = path.parent().unwrap();
        let binary = std::fs::read(beside.join("..").join(&manifest.binary));
        let binary = binary.or_else(|_| std::fs::read(beside.join(&manifest.binary)));
        let opened = open(&binary.unwrap(), false, &known).unwrap();
        let data = Disk(path.parent().unwrap().to_owned());
        // Several launches share memory, so none can run alone.
        let Ok((session, program)) = manifest.prepare(&opened.image, &data) else { return 0 };
        let blocks = constants_of_manifest(&bytes);
        let program = if blocks.is_empty() { program } else { with_constants(&program, blocks) };
        assert!(!compare(&name, &opened.target, &program, session, Recorded::Flow).is_empty());
        return 1;
    }
    let folder: Arc<dyn Folder> = Arc::new(disk());
    let Ok(cases) = read(&name, &bytes, &folder, None) else { return 0 };
    let mut compared = 0;
    let constants = constants_of_cases(path);
    for case in cases {
        let Ok(opened) = case.open() else { continue };
        let (target, image) = (&opened.opened.target, &opened.opened.image);
        if target.isa != Isa::Tesla {
            return 0;
        }
        for (run, launch) in opened.launches.iter().enumerate() {
            let program = choose_program(image, launch.common.kernel.as_deref()).unwrap();
            let Ok(session) = launch.prepare(image, program, &disk()) else { continue };
            let blocks = constants.get(&case.name).and_then(|runs| runs.get(run)).cloned();
            let program = &blocks.map_or_else(|| program.clone(), |blocks| with_constants(program, blocks));
            // The reference interpreter is slow.
            let recorded = if compared % 16 == 0 { Recorded::Data } else { Recorded::Flow };
            compare(&format!("{name} {}", case.name), target, program, session, recorded);
            compared += 1;
        }
    }
    compared
}

fn folder(path: &Path) -> usize {
    let mut files: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let cases = files.iter().filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        path.is_file() && !name.contains("disasm") && name != "index.json" && !name.ends_with(".s")
    });
    cases.map(|path| file(path)).sum()
}

#[test]
fn every_step_of_a_lane_is_an_edge() {
    let compared = folder(Path::new("../../corpus/tesla"));
    println!("corpus: {compared} launches");
    assert!(compared >= 8, "{compared} launches");
    for collection in ["corpus/tesla", "binaries/runs", "binaries/flow-runs"] {
        let Some(path) = shared(collection) else { continue };
        let compared = folder(&path);
        println!("{collection}: {compared} launches");
        assert!(compared > 20, "{collection}: {compared} launches");
    }
}
