//! Compares the graph and the uses of R700 programs with their runs: steps are edges of the graph, and registers that
//! are written are among the uses. The programs are those of the built-in corpus and of the collections in `shared/`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reconverge_cases::{Folder, read};
use reconverge_isa::Isa;
use reconverge_isa::graph::Graph;
use reconverge_simt::uses::{Slot, UsesAt};
use reconverge_simt::{Engine, Event, Mask, Mode, Options};
use reconverge_testkit::shared;
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::NoFiles;

#[derive(Debug)]
struct Disk(PathBuf);

impl Folder for Disk {
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.with_file_name(relative)).map_err(|error| error.to_string())
    }

    fn above(&self, _: &str) -> Option<(String, Vec<u8>)> {
        None
    }
}

/// Compares the events of a run with the graph and the uses.
struct Steps<'a> {
    graph: &'a Graph,
    uses: &'a UsesAt,
    group: usize,
    last: Option<u32>,
    /// Whether the fetch program runs. It is a separate program, and ends when its call is popped.
    fetching: bool,
    steps: usize,
    writes: usize,
    wrong: Vec<String>,
}

impl Sink for Steps<'_> {
    fn issues(&mut self, group: usize, addresses: &[u32], _: Mask) {
        if group != self.group {
            (self.group, self.last, self.fetching) = (group, None, false);
        }
        for pc in addresses.iter().filter(|_| !self.fetching) {
            let leads =
                |last| self.graph.node(last).is_some_and(|node| node.next.iter().any(|edge| edge.to == *pc));
            let edge = self.last.map_or(self.graph.entries.first() == Some(pc), leads);
            if !edge || self.graph.node(*pc).is_none() || !self.uses.contains_key(pc) {
                self.wrong.push(format!("a step from {:?} to {pc}", self.last));
            }
            self.last = Some(*pc);
            self.steps += 1;
        }
    }

    fn event(&mut self, _: usize, event: Event) {
        let node = self.last.and_then(|last| self.graph.node(last));
        let uses = self.last.and_then(|last| self.uses.get(&last));
        match event {
            Event::Push { kind: "CALL_FS" } => self.fetching = true,
            Event::Pop { kind: "CALL_FS" } => self.fetching = false,
            _ if self.fetching => {}
            Event::Diverge { .. } if node.is_none_or(|node| !node.diverges) => {
                self.wrong.push(format!("lanes part at {:?}", self.last));
            }
            Event::Reconverge { .. } if node.is_none_or(|node| node.reconverges.is_none()) => {
                self.wrong.push(format!("lanes come together at {:?}", self.last));
            }
            Event::Write { register, .. } => {
                self.writes += 1;
                let is =
                    |slot: &Slot| slot.file == "R" && slot.number.is_none_or(|number| number == register);
                if !uses.into_iter().flatten().flat_map(|uses| &uses.writes).any(is) {
                    self.wrong.push(format!("register {register} is written at {:?}", self.last));
                }
            }
            _ => {}
        }
    }
}

/// Compares the launches of a file. Returns the numbers of launches, steps and register writes.
fn compare(path: &Path) -> [usize; 3] {
    let bytes = std::fs::read(path).unwrap();
    let folder: Arc<dyn Folder> = Arc::new(Disk(path.to_owned()));
    let mut sum = [0; 3];
    for case in read(&path.display().to_string(), &bytes, &folder, None).into_iter().flatten() {
        let Ok(opened) = case.open() else { continue };
        let (target, image) = (&opened.opened.target, &opened.opened.image);
        if target.isa != Isa::R700 {
            continue;
        }
        let program = &image.programs[0];
        let graph = target.machine().graph(target, program).unwrap();
        let uses = target.machine().uses(target, program).unwrap();
        assert!(graph.nodes.is_sorted_by_key(|node| node.pc));
        for edge in graph.nodes.iter().flat_map(|node| &node.next) {
            assert!(graph.node(edge.to).is_some(), "{}: {edge:?} leads nowhere", path.display());
        }
        for launch in &opened.launches {
            let Ok(session) = launch.prepare(image, program, &NoFiles) else { continue };
            for (engine, recorded) in [(Engine::Fast, Recorded::Flow), (Engine::Reference, Recorded::Data)] {
                let options = Options { engine, mode: Mode::Lenient, ..Options::default() };
                let mut run = Steps {
                    graph: &graph,
                    uses: &uses,
                    group: 0,
                    last: None,
                    fetching: false,
                    steps: 0,
                    writes: 0,
                    wrong: Vec::new(),
                };
                // A trap also ends the steps.
                let _ = session.copy().run_traced(&options, recorded, &mut run);
                assert_eq!(run.wrong, [""; 0], "{} {} on {engine:?}", path.display(), case.name);
                sum[1] += run.steps;
                sum[2] += run.writes;
            }
            sum[0] += 1;
        }
    }
    sum
}

/// Returns all files of cases in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases = |path: &PathBuf| {
        ["gz", "toml"].iter().any(|ending| path.extension().is_some_and(|own| own == *ending))
    };
    entries.filter(cases).collect()
}

#[test]
fn every_step_is_an_edge_of_the_graph_and_every_written_register_is_among_the_uses() {
    let mut paths = files(Path::new("../../corpus/r700"));
    let beside = ["corpus/r700", "corpus/r700-llvm"].iter().filter_map(|folder| shared(folder));
    paths.extend(beside.flat_map(|folder| files(&folder)));
    let mut sum = [0; 3];
    for path in paths {
        let [launches, steps, writes] = compare(&path);
        println!("{}: {launches} launches, {steps} steps, {writes} writes", path.display());
        sum = [sum[0] + launches, sum[1] + steps, sum[2] + writes];
    }
    assert!(sum[0] >= 6 && sum[1] > 50 && sum[2] > 30, "{sum:?}");
}
