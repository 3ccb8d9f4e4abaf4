//! Guarantees of every session, on all three machines.

use std::path::Path;

use reconverge_isa::Isa;
use reconverge_simt::{Engine, Event, Lane, Mode, Options, Step, Why};
use reconverge_workbench::kernels::{KERNELS, Kernel, LANES, find};
use reconverge_workbench::launch::{LaunchFile, choose_program};
use reconverge_workbench::result::RunResult;
use reconverge_workbench::session::{GroupState, Register, Stepping, Stop, Stride};
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, Session, open};

#[path = "../examples/session.rs"]
#[allow(dead_code)]
mod example;

/// Returns a session of a kernel whose lanes diverge, in several groups.
fn session(isa: Isa) -> Session {
    find(isa, "mandel").unwrap().prepare(512).unwrap()
}

fn started(isa: Isa) -> Stepping {
    session(isa).start(&Options::default()).unwrap()
}

fn to_the_end(stepping: &mut Stepping) -> (RunResult, Vec<(usize, Event)>) {
    let mut events = Vec::new();
    let stop =
        stepping.run_until(u64::MAX, &mut |_, _| false, &mut |group, event| events.push((group, event)));
    assert_eq!((stop.unwrap(), stepping.current()), (Stop::End, None));
    (RunResult::of(&*stepping.outcome()), events)
}

#[test]
fn stepping_to_the_end_leaves_what_a_run_leaves() {
    for isa in Isa::ALL {
        let (stepped, _) = to_the_end(&mut started(isa));
        for engine in [Engine::Reference, Engine::Fast] {
            let options = Options { engine, ..Options::default() };
            let ran = RunResult::of(&*session(isa).run(&options).unwrap());
            assert!(stepped == ran, "{isa}, {engine}");
        }
    }
}

#[test]
fn a_snapshot_brings_back_everything_that_follows() {
    for isa in Isa::ALL {
        let mut stepping = started(isa);
        let budget = stepping.run_until(57, &mut |_, _| false, &mut |_, _| {}).unwrap();
        assert_eq!((budget, stepping.statistics().instructions), (Stop::Budget, 57), "{isa}");
        let (snapshot, place) = (stepping.snapshot(), stepping.current());
        let issue = stepping.issue(place.unwrap());
        let first = to_the_end(&mut stepping);
        stepping.restore(&snapshot);
        assert_eq!((stepping.current(), stepping.statistics().instructions), (place, 57), "{isa}");
        assert_eq!(stepping.issue(place.unwrap()), issue);
        assert!(to_the_end(&mut stepping) == first, "{isa}");
    }
}

#[test]
fn a_step_of_a_group_is_one_instruction_of_it_after_all_that_the_order_puts_before() {
    for isa in Isa::ALL {
        let mut stepping = started(isa);
        let last = stepping.groups() - 1;
        assert!(last >= 1, "{isa}");
        assert_eq!(stepping.lanes(last).end, 512, "{isa}");
        let mut issues = Vec::new();
        let mut observer = |group: usize, event: Event| {
            if let Event::Issue { .. } = event {
                issues.push(group);
            }
        };
        assert_eq!(stepping.step(last, Stride::Instruction, &mut observer).unwrap(), Step::Running, "{isa}");
        assert_eq!(issues.iter().filter(|group| **group == last).count(), 1, "{isa}");
        assert_eq!(issues.len() as u64, stepping.statistics().instructions, "{isa}");
        assert!(issues.is_sorted(), "{isa}");
        assert_eq!(stepping.state(last), GroupState::Running, "{isa}");
        assert_eq!(stepping.state(0), GroupState::Ended, "{isa}");
        // A group that has ended does not have further steps.
        assert_eq!(stepping.step(0, Stride::Instruction, &mut |_, _| {}).unwrap(), Step::Done);
        assert_eq!(stepping.issue(0), None);
    }
}

#[test]
fn following_a_lane_stops_in_front_of_each_of_its_instructions() {
    for isa in Isa::ALL {
        let lane = Lane(5);
        let (_, events) = to_the_end(&mut started(isa));
        let own = |(group, event): &&(usize, Event)| {
            *group == 0 && matches!(event, Event::Issue { mask, .. } if mask.has(lane))
        };
        let expected = events.iter().filter(own).count();
        let mut stepping = started(isa);
        let mut stops = usize::from(stepping.issue(0).unwrap().mask.has(lane));
        while stepping.step(0, Stride::Lane(lane), &mut |_, _| {}).unwrap() == Step::Running {
            assert!(stepping.issue(0).unwrap().mask.has(lane), "{isa}");
            stops += 1;
        }
        assert_eq!(stops, expected, "{isa}");
        assert!(expected > 10, "{isa}: {expected}");
    }
}

#[test]
fn a_lane_is_active_when_it_takes_part_and_has_a_reason_when_it_does_not() {
    for isa in Isa::ALL {
        let (mut stepping, mut reasons) = (started(isa), 0);
        while let Some(group) = stepping.current() {
            let (issue, lanes) = (stepping.issue(group).unwrap(), stepping.lanes(group).len());
            for lane in (0..lanes as u8).map(Lane) {
                let active = stepping.why(group, lane) == Some(Why::Active);
                assert!(!issue.mask.has(lane) || active, "{isa}: lane {} at {}", lane.0, issue.pc);
                reasons += usize::from(!active);
            }
            stepping.step(group, Stride::Instruction, &mut |_, _| {}).unwrap();
        }
        assert!(reasons > 50, "{isa}: {reasons}");
    }
}

/// After each write event, the register has the written value. The first class has the registers in which lanes
/// compute.
#[test]
fn registers_hold_what_was_written_to_them() {
    for isa in Isa::ALL {
        let mut stepping = started(isa);
        let class = stepping.registers()[0];
        let channels = class.channels.len().max(1);
        let mut checked = 0;
        for _ in 0..200 {
            let Some(group) = stepping.current() else { break };
            let mut writes = std::collections::BTreeMap::new();
            let mut observer = |_: usize, event: Event| {
                if let Event::Write { lane, register, value } = event {
                    writes.insert((register as usize, lane), value);
                }
            };
            stepping.step(group, Stride::Instruction, &mut observer).unwrap();
            for ((register, lane), value) in writes {
                let (number, channel) = (register / channels, register % channels);
                if stepping.current() == Some(group) && number < class.count {
                    let read = stepping.read(group, Register { class: class.name, number, channel });
                    assert_eq!(read.unwrap()[lane.index()], value, "{isa}: {register}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 500, "{isa}: {checked}");
        assert_eq!(stepping.read(0, Register { class: "nonsense", number: 0, channel: 0 }), None);
        let beyond = Register { class: class.name, number: 1 << 20, channel: 0 };
        assert_eq!(stepping.read(stepping.current().unwrap(), beyond), None, "{isa}");
    }
}

/// Fault 16 in the reports of the debugger's users: nothing could be read after the end.
#[test]
fn after_the_end_registers_memory_and_flow_of_each_group_are_those_of_its_last_step() {
    for isa in Isa::ALL {
        let mut stepping = started(isa);
        let class = stepping.registers()[0];
        let channels = class.channels.len().max(1);
        // Register values by group, from the events of every step.
        let mut written = std::collections::BTreeMap::new();
        let mut observer = |group: usize, event: Event| {
            if let Event::Write { lane, register, value } = event {
                written.insert((group, register as usize, lane), value);
            }
        };
        stepping.run_until(u64::MAX, &mut |_, _| false, &mut observer).unwrap();
        assert_eq!(stepping.current(), None, "{isa}");
        let mut checked = 0;
        for ((group, register, lane), value) in written {
            let (number, channel) = (register / channels, register % channels);
            if number < class.count {
                let read = stepping.read(group, Register { class: class.name, number, channel });
                assert_eq!(
                    read.expect("it is kept")[lane.index()],
                    value,
                    "{isa}: group {group}, {register}"
                );
                checked += 1;
            }
        }
        assert!(checked > 500, "{isa}: {checked}");
        for group in 0..stepping.groups() {
            assert_eq!((stepping.state(group), stepping.issue(group)), (GroupState::Ended, None), "{isa}");
            assert!(stepping.why(group, Lane(0)).is_some_and(|why| why != Why::Active), "{isa}");
            assert!(!stepping.set(group, Register { class: class.name, number: 0, channel: 0 }, Lane(0), 1));
        }
        // Memory of the launch, and on Tesla the memory of each block, which contains the parameters.
        for space in stepping.spaces() {
            let (buffers, first) =
                (stepping.buffers(space.name, 0, Lane(0)), stepping.memory(space.name, 0, Lane(0), 0, 4));
            assert!(space.name != "s" || (buffers.len(), first.len()) == (1, 4), "{isa}: {buffers:?}");
        }
        let again = stepping.copy();
        assert!(again.read(0, Register { class: class.name, number: 0, channel: 0 }).is_some(), "{isa}");
    }
}

#[test]
fn every_memory_can_be_read_and_ends() {
    for isa in Isa::ALL {
        let stepping = started(isa);
        for space in stepping.spaces() {
            let read = |address, count| stepping.memory(space.name, 0, Lane(0), address, count).len();
            assert!(read(0, 8) <= 8 && read(u32::MAX, 8) == 0, "{isa}: {}", space.name);
        }
        assert!(stepping.memory("nonsense", 0, Lane(0), 0, 8).is_empty());
    }
}

/// Only the groups that run are in memory.
#[test]
fn a_launch_of_a_million_lanes_starts_at_once() {
    for kernel in &KERNELS {
        let Kernel { name, isa, .. } = kernel;
        let session = kernel.prepare(LANES).unwrap();
        let mut stepping = session.start(&Options::default()).unwrap();
        let groups = stepping.groups();
        let running = (0..groups).filter(|group| stepping.state(*group) == GroupState::Running).count();
        assert!(groups >= 1 << 14 && running <= 8, "{name} on {isa}: {running} of {groups}");
        stepping.step(0, Stride::Instruction, &mut |_, _| {}).unwrap();
        assert_eq!(stepping.state(groups - 1), GroupState::Waiting);
    }
}

#[test]
fn the_example_walks_through_all_three_machines() {
    for isa in Isa::ALL {
        let text = example::walk(isa).unwrap();
        for part in ["groups", "does not run: ", "ran 3 times in", "back at", "as a run"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}

/// The repository's launch files, including runs over domains and traps: steps have the same results as a run, or stop
/// at the same trap, in both modes.
#[test]
fn every_launch_of_the_corpus_steps_to_what_its_run_gives() {
    let mut launches = 0;
    for isa in Isa::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(isa.name());
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let launch = LaunchFile::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
            let source = std::fs::read(folder.join(launch.common.program.as_deref().unwrap())).unwrap();
            let known = Known { isa: Some(isa), chip: launch.common.chip.clone(), ..Known::default() };
            let opened = open(&source, true, &known).unwrap();
            let program = choose_program(&opened.image, launch.common.kernel.as_deref()).unwrap();
            let session = launch.prepare(&opened.image, program, &NoFiles).unwrap();
            for mode in Mode::ALL {
                let options = launch.options(&Options { mode, ..Options::default() }).unwrap();
                let ran = session.copy().run(&options).map(|outcome| RunResult::of(&*outcome));
                let mut stepping = session.start(&options).unwrap();
                let stop = stepping.run_until(u64::MAX, &mut |_, _| false, &mut |_, _| {});
                // After the end, pixels, pairs, vertices, wavefronts and warps can all be inspected.
                let groups = stepping.groups();
                let seen = (0..groups).any(|group| stepping.view(group).is_some());
                assert!(seen || groups == 0, "{}", file.display());
                let stepped = stop.map(|_| RunResult::of(&*stepping.outcome()));
                assert!(stepped == ran, "{}, {mode}: {stepped:?}\n{ran:?}", file.display());
                launches += 1;
            }
        }
    }
    assert!(launches >= 40, "{launches}");
}
