//! Control-flow graphs of every program of the built-in corpus: each instruction is drawn once, and runs only follow
//! drawn edges.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reconverge_cases::{Folder, NoFolder, read};
use reconverge_isa::{Isa, Program};
use reconverge_simt::{Event, Mask, Mode, Options};
use reconverge_workbench::graph::{Drawing, Passages};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::trace::{Recorded, Sink};
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Session, Target, open};

/// Returns the files of the built-in corpus with this extension.
fn files(ending: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let folders = Isa::ALL.map(|isa| corpus.join(isa.name()));
    let all = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let mut found: Vec<PathBuf> =
        all.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    found.sort();
    found
}

/// Calls `take` for every program of the corpus, with a launch of it if there is one. Returns the number of programs.
fn each(mut take: impl FnMut(&str, &Target, &Program, Option<Session>)) -> usize {
    let mut count = 0;
    for path in files(".gz") {
        let none: Arc<dyn Folder> = Arc::new(NoFolder);
        for case in read(&path.display().to_string(), &std::fs::read(&path).unwrap(), &none, None).unwrap() {
            let Ok(open) = case.open() else { continue };
            let program = &open.opened.image.programs[0];
            let launch = open.launches.first();
            let session =
                launch.and_then(|launch| launch.prepare(&open.opened.image, program, &NoFiles).ok());
            take(&case.name, &open.opened.target, program, session);
            count += 1;
        }
    }
    for path in files(".toml") {
        let launch = LaunchFile::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let source = path.with_file_name(launch.common.program.as_deref().unwrap());
        let stage = launch.stage().unwrap();
        let known =
            Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), stage, ..Known::default() };
        let opened = open(&std::fs::read(source).unwrap(), true, &known).unwrap();
        let program = choose_program(&opened.image, launch.common.kernel.as_deref()).unwrap();
        let session = launch.prepare(&opened.image, program, &NoFiles).ok();
        take(&path.display().to_string(), &opened.target, program, session);
        count += 1;
    }
    count
}

#[test]
fn every_instruction_is_drawn_once() {
    let count = each(|name, target, program, _| {
        let graph = target.machine().graph(target, program).unwrap();
        let nodes: Vec<String> = graph.nodes.iter().map(|node| target.isa.spelled(node.pc)).collect();
        let drawing = Drawing::of(name, target, program, None).unwrap();
        let rows = drawing.blocks.iter().flat_map(|block| &block.rows);
        let drawn: Vec<String> = rows.clone().map(|row| row.address.clone()).collect();
        assert!(!nodes.is_empty(), "{name}: the graph is empty");
        assert_eq!(drawn, nodes, "{name}");
        assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), drawn.len(), "{name}");
        for row in rows {
            assert!(!row.text.is_empty(), "{name}: {} has no text", row.address);
        }
        let ways: usize = graph.nodes.iter().map(|node| node.next.len()).sum();
        let inside: usize = drawing.blocks.iter().map(|block| block.rows.len().saturating_sub(1)).sum();
        assert_eq!(drawing.edges.len() + inside, ways, "{name}");
    });
    assert!(count >= 60, "{count}");
}

/// Pairs of consecutive instructions of each group, and of each lane in `lanes`.
struct Went {
    lanes: Passages,
    groups: BTreeSet<(u32, u32)>,
    last: BTreeMap<usize, u32>,
}

impl Sink for Went {
    fn issues(&mut self, group: usize, addresses: &[u32], mask: Mask) {
        self.lanes.issues(group, addresses, mask);
        for pc in addresses {
            if let Some(before) = self.last.insert(group, *pc) {
                self.groups.insert((before, *pc));
            }
        }
    }

    fn event(&mut self, group: usize, event: Event) {
        self.lanes.event(group, event);
    }
}

/// Groups of R500 and R700 follow the edges of the graph. On Tesla, a warp goes back for the lanes of the other side,
/// so the test follows each lane.
#[test]
fn runs_go_along_the_ways_of_the_graph() {
    let mut ran = 0;
    each(|name, target, program, session| {
        let Some(session) = session else { return };
        let graph = target.machine().graph(target, program).unwrap();
        let options = Options { mode: Mode::Lenient, ..Options::default() };
        let mut went = Went { lanes: Passages::new(64), groups: BTreeSet::new(), last: BTreeMap::new() };
        // A trap ends the run early.
        let _ = session.run_traced(&options, Recorded::Flow, &mut went);
        let ways: Vec<(u32, u32)> = match target.isa {
            Isa::Tesla => went.lanes.ways().map(|(way, _)| way).collect(),
            Isa::R500 | Isa::R700 => went.groups.into_iter().collect(),
        };
        ran += usize::from(!ways.is_empty());
        for (from, to) in ways {
            let node = graph.node(from);
            let drawn = node.is_some_and(|node| node.next.iter().any(|edge| edge.to == to));
            assert!(drawn, "{name}: from {from} to {to}, but the graph has {node:?}");
        }
    });
    assert!(ran >= 40, "{ran}");
}
