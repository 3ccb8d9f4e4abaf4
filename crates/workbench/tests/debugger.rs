//! The debugger on all three machines: forward over a divergence, by lane through both sides, and back to the same state.

use reconverge_simt::{Lane, Options};
use reconverge_workbench::debugger::command::{self, COMMANDS, Command, CommandError};
use reconverge_workbench::debugger::{Debugger, Halt};
use reconverge_workbench::kernels::{KERNELS, Kernel};

fn debugger(kernel: &Kernel, lanes: u32) -> Debugger {
    let opened = kernel.open().unwrap();
    let session = kernel.prepare(lanes).unwrap();
    Debugger::new(&session, &opened.target, &opened.image.programs[0], &Options::default()).unwrap()
}

/// Each kernel with lanes on which it diverges.
fn debuggers() -> impl Iterator<Item = (String, Debugger)> {
    KERNELS.iter().map(|kernel| (format!("{} {}", kernel.isa, kernel.name), debugger(kernel, 1 << 14)))
}

fn ask(debugger: &mut Debugger, line: &str) -> String {
    command::run(debugger, line).unwrap_or_else(|error| panic!("{line}: {error}")).text
}

/// Goes to the first divergence; the mask before it.
fn to_divergence(debugger: &mut Debugger) {
    ask(debugger, "stop diverge");
    let answer = command::run(debugger, "continue").unwrap();
    assert!(matches!(answer.halt, Some(Halt::Stop(_))), "{answer:?}");
    ask(debugger, "delete all");
}

#[test]
fn a_step_back_over_a_divergence_finds_the_same_state() {
    for (what, mut debugger) in debuggers() {
        to_divergence(&mut debugger);
        let (after, position) = (debugger.digest(), debugger.position());
        assert_eq!(debugger.back(1), Halt::There, "{what}");
        let before = debugger.digest();
        assert_ne!(before, after, "{what}");
        assert_eq!(debugger.position(), position - 1, "{what}");
        debugger.step(1, u64::MAX);
        assert_eq!(debugger.digest(), after, "{what}");
        // The group may end before 50 instructions.
        let ran = (0..50).take_while(|_| debugger.step(1, u64::MAX) == Halt::There).count();
        for _ in 0..ran + 1 {
            assert_eq!(debugger.back(1), Halt::There, "{what}");
        }
        assert_eq!(debugger.digest(), before, "{what}");
    }
}

#[test]
fn a_step_back_of_a_group_passes_the_stops_of_others() {
    for (what, mut debugger) in debuggers() {
        let second = &mut |debugger: &Debugger| debugger.stepping().current() == Some(1);
        assert_eq!(debugger.run(u64::MAX, second), Halt::There, "{what}");
        let last = debugger.position() - 1;
        ask(&mut debugger, "group 1");
        debugger.step(1, u64::MAX);
        let stop = debugger.spelled(debugger.issue().unwrap().pc);
        debugger.step(2, u64::MAX);
        ask(&mut debugger, &format!("break {stop}"));
        assert!(debugger.choose_group(0), "{what}");
        assert_eq!((debugger.back(1), debugger.position()), (Halt::There, last), "{what}");
    }
}

#[test]
fn a_lane_is_followed_through_both_sides_of_a_branch() {
    // A lane that a branch has switched off is not lost: the next stop is where it runs, not where its group does.
    for (what, mut debugger) in debuggers() {
        to_divergence(&mut debugger);
        let active = debugger.issue().unwrap().mask;
        let idle = (0..debugger.width()).map(|lane| Lane(lane as u8)).find(|lane| !active.has(*lane));
        let (idle, running) = (idle.unwrap(), active.lanes().next().unwrap());
        for lane in [idle, running] {
            let start = debugger.position();
            let halt = debugger.follow(lane, 1 << 20);
            assert_eq!(halt, Halt::There, "{what}, lane {}", lane.0);
            assert!(debugger.issue().is_none_or(|issue| issue.mask.has(lane)), "{what}");
            debugger.go_to(start);
        }
        // Where it stops, nothing between ran the lane.
        let start = debugger.position();
        debugger.follow(idle, 1 << 20);
        let end = debugger.position();
        debugger.go_to(start);
        loop {
            debugger.step(1, u64::MAX);
            if debugger.position() >= end {
                break;
            }
            assert!(!debugger.issue().is_some_and(|issue| issue.mask.has(idle)), "{what}");
        }
    }
}

#[test]
fn a_script_goes_over_a_divergence_follows_a_lane_through_both_sides_and_goes_back_to_the_same_state() {
    for (what, mut debugger) in debuggers() {
        to_divergence(&mut debugger);
        ask(&mut debugger, "back");
        let (before, start) = (ask(&mut debugger, "state"), debugger.position());
        ask(&mut debugger, "step");
        let active = debugger.issue().unwrap().mask;
        let lanes = || (0..debugger.width()).map(|lane| Lane(lane as u8));
        let (mut idle, mut running) = (lanes().filter(|lane| !active.has(*lane)), active.lanes());
        let (idle, running) = (idle.next().unwrap(), running.next().unwrap());
        for lane in [running, idle] {
            ask(&mut debugger, &format!("follow {}", lane.0));
            ask(&mut debugger, &format!("expect lane {} active", lane.0));
        }
        assert_ne!(ask(&mut debugger, "state"), before, "{what}");
        ask(&mut debugger, &format!("goto {start}"));
        assert_eq!(ask(&mut debugger, "state"), before, "{what}");
    }
}

#[test]
fn a_changed_register_stays_changed_when_its_place_is_passed_again() {
    for (what, mut debugger) in debuggers() {
        let (name, register) = debugger.register_names().swap_remove(0);
        ask(&mut debugger, "step 3");
        let before = debugger.digest();
        ask(&mut debugger, &format!("set {name}@1 0x1234"));
        let after = debugger.digest();
        assert_ne!(before, after, "{what}");
        let value = debugger.stepping().read(debugger.group(), register).unwrap()[1];
        assert_eq!(value, 0x1234, "{what}");
        ask(&mut debugger, "back 2");
        ask(&mut debugger, "step 2");
        assert_eq!(debugger.digest(), after, "{what}");
        // A change before it forgets it: the launch has another future.
        ask(&mut debugger, "back 2");
        ask(&mut debugger, &format!("set {name}@1 0x77"));
        ask(&mut debugger, "step 2");
        assert_ne!(debugger.digest(), after, "{what}");
    }
}

#[test]
fn a_movement_can_be_interrupted_and_goes_on() {
    for (what, mut debugger) in debuggers() {
        let mut asked = 0;
        debugger.interrupt = Some(Box::new(move || {
            asked += 1;
            asked == 3
        }));
        assert_eq!(debugger.run(u64::MAX, &mut |_| false), Halt::Interrupted, "{what}");
        let place = debugger.position();
        assert!(place > 0, "{what}");
        debugger.interrupt = Some(Box::new(|| true));
        let back = debugger.back_until(&mut |_| false);
        assert_eq!((back, debugger.position()), (Halt::Interrupted, place), "{what}");
        debugger.interrupt = None;
        assert_eq!(debugger.run(1, &mut |_| true), Halt::There, "{what}");
    }
}

#[test]
fn why_a_lane_is_idle_is_one_command() {
    for (what, mut debugger) in debuggers() {
        to_divergence(&mut debugger);
        let active = debugger.issue().unwrap().mask;
        for lane in 0..debugger.width() {
            let answer = ask(&mut debugger, &format!("why {lane}"));
            assert_eq!(answer.contains("active"), active.has(Lane(lane as u8)), "{what}: {answer}");
        }
    }
}

#[test]
fn stops_are_reached_forward_and_backward_at_the_same_places() {
    for (what, mut debugger) in debuggers() {
        ask(&mut debugger, "stop diverge");
        let mut places = Vec::new();
        for _ in 0..5 {
            assert!(matches!(debugger.run(1 << 24, &mut |_| false), Halt::Stop(_)), "{what}");
            places.push(debugger.position());
        }
        places.pop();
        while let Some(place) = places.pop() {
            assert!(matches!(debugger.back_until(&mut |_| false), Halt::Stop(_)), "{what}");
            assert_eq!(debugger.position(), place, "{what}");
        }
        assert_eq!(debugger.back_until(&mut |_| false), Halt::Start, "{what}");
        assert_eq!(debugger.position(), 0, "{what}");
    }
}

#[test]
fn a_breakpoint_stops_in_front_of_its_instruction_when_its_condition_holds() {
    let kernel =
        KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla" && kernel.name == "mandel").unwrap();
    let mut debugger = debugger(kernel, 256);
    ask(&mut debugger, "break Lb0 if $r7 == 2");
    let answer = ask(&mut debugger, "continue");
    assert!(answer.contains("stop 1 in group 7: at 0xb0, in lane 8"), "{answer}");
    ask(&mut debugger, "expect $r7@8 == 2");
    ask(&mut debugger, "expect at Lb0");
    ask(&mut debugger, "expect lane 8 active");
    let refused = command::run(&mut debugger, "expect $r7@8 == 3").unwrap_err();
    assert!(matches!(refused, CommandError::Expectation { .. }), "{refused}");
}

#[test]
fn a_watched_register_stops_behind_the_instruction_that_writes_it() {
    let kernel =
        KERNELS.iter().find(|kernel| kernel.isa.name() == "tesla" && kernel.name == "mandel").unwrap();
    let mut debugger = debugger(kernel, 256);
    ask(&mut debugger, "watch $r9@3");
    let answer = ask(&mut debugger, "continue");
    assert!(answer.contains("lane 3: 0x00000000 becomes 0x000000ff"), "{answer}");
}

#[test]
fn a_wrong_line_says_what_the_command_takes() {
    let kernel = &KERNELS[0];
    let mut debugger = debugger(kernel, 256);
    let mut refused = |line: &str| command::run(&mut debugger, line).unwrap_err().to_string();
    assert_eq!(refused("stpe"), "there is no command `stpe`, did you mean `step`?; `help` lists them");
    assert!(refused("step x").contains("`step` takes [COUNT]: `x` is no number"), "{}", refused("step x"));
    assert!(refused("why 99").contains("is no lane of 0 to"), "{}", refused("why 99"));
    assert!(refused("break nowhere").contains("neither an instruction's address nor a label"));
    assert!(refused("registers q7").contains("is no register; there is"));
    assert!(refused("where now").contains("`now` is too much"));
}

#[test]
fn every_command_of_the_help_answers() {
    for Command { names, takes, .. } in COMMANDS {
        let mut debugger = debugger(&KERNELS[0], 256);
        let result = command::run(&mut debugger, names[0]);
        assert!(
            result.is_ok() || matches!(result, Err(CommandError::Usage { .. })) && !takes.is_empty(),
            "{names:?}: {result:?}"
        );
    }
}
