//! Every step of a run is an edge of the program's graph, and the graph has every divergence and reconvergence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use reconverge_cases::{Folder, NoFolder, read};
use reconverge_isa::Isa;
use reconverge_isa::graph::Graph;
use reconverge_simt::{Engine, Event, Mask, Mode, Options};
use reconverge_testkit::shared;
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::NoFiles;

/// The steps of a run, and the instructions at which lanes diverge or reconverge.
#[derive(Default)]
struct Steps {
    last: BTreeMap<usize, u32>,
    first: BTreeSet<u32>,
    steps: BTreeSet<(u32, u32)>,
    diverged: BTreeSet<u32>,
    woke: BTreeSet<u32>,
    /// Lanes of the last issue, by group.
    lanes: BTreeMap<usize, Mask>,
}

impl Sink for Steps {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        for pc in addresses {
            match self.last.insert(group, *pc) {
                Some(last) => self.steps.insert((last, *pc)),
                None => self.first.insert(*pc),
            };
        }
        self.lanes.insert(group, mask);
    }

    fn event(&mut self, group: usize, event: Event) {
        let pc = self.last[&group];
        match event {
            Event::Diverge { .. } => self.diverged.insert(pc),
            // If all lanes that ran before leave at the same time, no lanes reconverge.
            Event::Reconverge { mask } if (mask & self.lanes[&group]).any() => self.woke.insert(pc),
            _ => false,
        };
    }
}

impl Steps {
    fn compare(&self, graph: &Graph, name: &str) {
        for pc in &self.first {
            assert_eq!(Some(pc), graph.entries.first(), "{name}: starts at {pc}");
        }
        for (from, to) in &self.steps {
            let node = graph.node(*from).unwrap_or_else(|| panic!("{name}: {from} is not in the graph"));
            assert!(node.next.iter().any(|edge| edge.to == *to), "{name}: no edge from {from} to {to}");
        }
        for pc in &self.diverged {
            assert!(graph.node(*pc).is_some_and(|node| node.diverges), "{name}: lanes part at {pc}");
        }
        for pc in &self.woke {
            let node = graph.node(*pc);
            assert!(
                node.is_some_and(|node| node.reconverges.is_some()),
                "{name}: lanes come together at {pc}"
            );
        }
    }
}

/// Compares the launches of the files below a folder whose machine is `isa`. Returns their number.
fn compare(isa: Isa, folder: &Path) -> usize {
    let none: Arc<dyn Folder> = Arc::new(NoFolder);
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if !path.extension().is_some_and(|extension| extension == "gz" || extension == "toml") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let Ok(cases) = read(&path.display().to_string(), &bytes, &none, None) else { continue };
        for case in cases {
            let Ok(opened) = case.open() else { continue };
            let (target, image) = (&opened.opened.target, &opened.opened.image);
            assert_eq!(target.isa, isa);
            let program = &image.programs[0];
            let graph = target.machine().graph(target, program).unwrap();
            let name = format!("{} {}", path.display(), case.name);
            for launch in &opened.launches {
                let Ok(session) = launch.prepare(image, program, &NoFiles) else { continue };
                let options = Options { engine: Engine::Fast, mode: Mode::Lenient, ..Options::default() };
                let mut steps = Steps::default();
                // A trap ends the steps.
                let _ = session.copy().run_traced(&options, Recorded::Flow, &mut steps);
                steps.compare(&graph, &name);
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn every_step_of_an_r500_program_is_an_edge_of_its_graph() {
    let own = compare(Isa::R500, Path::new("../../corpus/r500"));
    assert!(own > 20, "{own} launches");
    if let Some(folder) = shared("corpus/r500") {
        let launches = compare(Isa::R500, &folder);
        assert!(launches > 500, "{launches} launches");
    }
}
