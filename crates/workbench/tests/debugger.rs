//! The debugger on all three machines: forward over a divergence, along a lane through both sides, and back to the
//! same state.

use std::path::Path;

use reconverge_isa::Isa;
use reconverge_simt::{Event, Lane, Options};
use reconverge_workbench::debugger::command::{self, COMMANDS, Command, CommandError};
use reconverge_workbench::debugger::{Debugger, Halt};
use reconverge_workbench::kernels::{KERNELS, Kernel, find};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::source::UserSource;
use reconverge_workbench::values::NoFiles;
use reconverge_workbench::{Known, open};

fn debugger(kernel: &Kernel, lanes: u32) -> Debugger {
    let opened = kernel.open().unwrap();
    let session = kernel.prepare(lanes).unwrap();
    Debugger::new(&session, &opened.target, &opened.image.programs[0], &Options::default()).unwrap()
}

/// Returns a debugger for each kernel, with lanes on which the kernel diverges.
fn debuggers() -> impl Iterator<Item = (String, Debugger)> {
    KERNELS.iter().map(|kernel| (format!("{} {}", kernel.isa, kernel.name), debugger(kernel, 1 << 14)))
}

fn ask(debugger: &mut Debugger, line: &str) -> String {
    command::run(debugger, line).unwrap_or_else(|error| panic!("{line}: {error}")).text
}

/// Goes to the first divergence and returns the mask before it.
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
    // A lane that a branch switched off is not lost: the next stop is where the lane runs, not where its group runs.
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
        // The lane did not run between the start and the stop.
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
        // An earlier change discards it, because the launch then runs differently.
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
    assert_eq!(refused("stpe"), "unknown command `stpe`, did you mean `step`?; `help` lists the commands");
    assert!(refused("step x").contains("`step` takes [COUNT]: expected a number"), "{}", refused("step x"));
    assert!(refused("why 99").contains("expected a lane from 0 to"), "{}", refused("why 99"));
    assert!(refused("break nowhere").contains("expected the address of an instruction, a label or a line"));
    assert!(refused("registers q7").contains("is not a register such as temp0.r"));
    assert!(refused("where now").contains("unexpected `now`"));
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

/// Returns a debugger for a launch file of docs/samples, with the source of its program.
fn sample(name: &str) -> Debugger {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let launch = LaunchFile::parse(&text).unwrap();
    let path = folder.join(launch.common.program.as_deref().unwrap());
    let source = std::fs::read_to_string(&path).unwrap();
    let known = Known { isa: Some(launch.isa), chip: launch.common.chip.clone(), ..Known::default() };
    let opened = open(source.as_bytes(), true, &known).unwrap();
    let program = &opened.image.programs[0];
    let session = launch.prepare(&opened.image, program, &NoFiles).unwrap();
    let options = launch.options(&Options::default()).unwrap();
    let debugger = Debugger::new(&session, &opened.target, program, &options).unwrap();
    debugger.with_source(Some(UserSource::new(launch.isa, &path, &source, &opened.lines[0])))
}

/// Returns the user's source line of the next instruction.
fn next_line(debugger: &Debugger) -> String {
    let source = debugger.source().unwrap();
    let line = source.line_of(debugger.issue().unwrap().pc).unwrap();
    source.lines()[line - 1].trim().to_owned()
}

/// Fault 6: the debugger supported only addresses of the listing.
#[test]
fn breaks_are_set_at_labels_and_lines_of_the_users_own_source_on_each_machine() {
    for name in ["loop-break.tesla", "loop-break.r700", "nested-if.r500"] {
        let mut debugger = sample(name);
        let source = debugger.source().unwrap().clone();
        // A line with an instruction is bound to it. A line without an instruction is bound to the next line that has
        // one.
        let last = source.lines_with_instructions(1, usize::MAX).pop().unwrap();
        for line in 1..=last {
            let place = format!(":{line}");
            let answer = ask(&mut debugger, &format!("break {place}"));
            let (_, bound) = source.instruction_at(line).unwrap();
            assert!(answer.ends_with(&format!("{}:{bound}\n", source.name())), "{name} {line}: {answer}");
            assert!(bound >= line);
            let text = source.lines()[bound - 1].trim();
            assert!(!text.is_empty() && !text.starts_with([';', '.']), "{name}: {text}");
        }
        let refused = command::run(&mut debugger, &format!("break :{}", last + 1)).unwrap_err().to_string();
        assert!(refused.contains("has no instruction at or after line"), "{refused}");
        ask(&mut debugger, "delete all");
        for label in source.labels() {
            let address = debugger.named_place(label).unwrap();
            let line = source
                .lines()
                .iter()
                .position(|line| line.trim_start().trim_start_matches('@').starts_with(label));
            assert!(source.line_of(address).unwrap() > line.unwrap(), "{name}: {label}");
        }
        let third = source.lines_with_instructions(1, usize::MAX)[2];
        ask(&mut debugger, &format!("break {}:{third}", source.name()));
        let halt = command::run(&mut debugger, "continue").unwrap().halt;
        assert!(matches!(halt, Some(Halt::Stop(_))), "{name}: {halt:?}");
        assert_eq!(next_line(&debugger), source.lines()[third - 1].trim(), "{name}");
        let other = command::run(&mut debugger, "break other.s:3").unwrap_err().to_string();
        assert!(other.contains("`other.s` is not the source of this program"), "{other}");
    }
}

#[test]
fn a_label_that_does_not_exist_is_answered_with_the_one_that_is_meant() {
    let mut debugger = sample("tutorial-tesla");
    let label = debugger.source().unwrap().labels().next().unwrap().to_owned();
    let refused = command::run(&mut debugger, &format!("break {label}x")).unwrap_err().to_string();
    assert!(refused.contains(&format!("did you mean `{label}`?")), "{refused}");
    let refused = command::run(&mut debugger, "break 3").unwrap_err().to_string();
    assert!(refused.contains("line 3 of tutorial-tesla.s is `:3`"), "{refused}");
}

/// Fault 5: the debugger counted joins that the machine skips.
#[test]
fn a_step_is_an_instruction_that_is_issued() {
    for name in ["nested-if.tesla", "nested-if.r700", "nested-if.r500", "loop-break.tesla", "tutorial-tesla"]
    {
        let mut debugger = sample(name);
        loop {
            let next = debugger.stepping().current().and_then(|group| debugger.stepping().issue(group));
            assert_eq!(debugger.position(), debugger.stepping().statistics().instructions, "{name}");
            let halt = debugger.run(1, &mut |_| true);
            if matches!(halt, Halt::End) && debugger.events().is_empty() {
                break;
            }
            // The step issues exactly one instruction, the next one.
            let issues: Vec<u32> = debugger
                .events()
                .iter()
                .filter_map(|(_, event)| match event {
                    Event::Issue { pc, .. } => Some(*pc),
                    _ => None,
                })
                .collect();
            assert_eq!(issues, [next.unwrap().pc], "{name}, step {}", debugger.position());
            if debugger.stepping().current().is_none() {
                break;
            }
        }
        let last = debugger.position();
        assert_eq!(last, debugger.stepping().statistics().instructions, "{name}");
        assert_eq!((debugger.go_to(last / 2), debugger.position()), (Halt::There, last / 2), "{name}");
    }
}

/// Fault 21: the debugger's own syntax was refused, and `p` was `where`.
#[test]
fn p_prints_a_register_and_formulas() {
    let kernel = find(Isa::Tesla, "collatz").unwrap();
    let mut debugger = debugger(kernel, 256);
    ask(&mut debugger, "step 4");
    let lines = ask(&mut debugger, "p $r0");
    assert!(lines.starts_with("$r0\n"), "{lines}");
    ask(&mut debugger, "set $r3@5 41");
    assert_eq!(ask(&mut debugger, "p $r3@5"), "$r3@5  0x00000029  41           5.7e-44\n");
    assert!(ask(&mut debugger, "p $r3@5 + 1").contains("0x0000002a  42 "));
    assert_eq!(
        ask(&mut debugger, "p ($r3@5 + 1) * 2 == 84 && $r3@5 >= -1"),
        "($r3@5 + 1) * 2 == 84 && $r3@5 >= -1  1\n"
    );
    assert!(ask(&mut debugger, "p 7 / 2 + (1 << 4) - 3 % 2").ends_with("  18\n"));
    ask(&mut debugger, "expect $r3@5 == 41");
    assert!(ask(&mut debugger, "w").starts_with("group 0, after "));
    // Flags are not printed as a float.
    ask(&mut debugger, "set $c0@5 3");
    assert_eq!(ask(&mut debugger, "p $c0@5"), "$c0@5  0x3  ZS\n");
    let refused = |debugger: &mut Debugger, line: &str| command::run(debugger, line).unwrap_err().to_string();
    for (line, why) in [
        ("p $r3@5 +", "expected a register, memory or a number at the end"),
        ("p $q3", "is not a register such as $r0, $a0, $c0"),
        ("p $r3@99", "expected a lane from 0 to"),
        ("p ($r3@5", "missing closing parenthesis"),
        ("p 1 / 0", "division by zero"),
        ("p s[0x100000]", "no word exists at this address"),
        ("p", "a formula is missing"),
    ] {
        let text = refused(&mut debugger, line);
        assert!(text.contains(why), "{line}: {text}");
    }
    // If registers are floats, numbers next to them are floats.
    let mut debugger = sample("nested-if.r500");
    ask(&mut debugger, "set temp0.r@3 2.5");
    assert!(
        ask(&mut debugger, "p temp0.x@3 * 2").contains("  5.0  "),
        "{}",
        ask(&mut debugger, "p temp0.x@3 * 2")
    );
}

#[test]
fn memory_is_a_value_and_changes_with_its_address() {
    let kernel = find(Isa::Tesla, "collatz").unwrap();
    let mut debugger = debugger(kernel, 256);
    let first = ask(&mut debugger, "p s[0x10]");
    assert!(first.starts_with("s[0x10]  0x"), "{first}");
    ask(&mut debugger, "write s 0x10 0x1234");
    assert!(ask(&mut debugger, "p s[0x8 + 8]").contains("0x00001234"));
    assert!(ask(&mut debugger, "p s[0x10] + 1").contains("0x00001235"));
}

#[test]
fn a_log_stop_writes_values_and_does_not_stop() {
    let mut debugger = sample("tutorial-tesla");
    let line = debugger.source().unwrap().lines_with_instructions(1, usize::MAX)[1];
    let answer = ask(&mut debugger, &format!("log :{line} : step {{step}}, lanes {{lanes}}, r0 {{$r0@2}}"));
    assert!(answer.contains("writes at"), "{answer}");
    let answer = command::run(&mut debugger, "continue").unwrap();
    assert_eq!(answer.halt, Some(Halt::End), "{}", answer.text);
    assert!(answer.text.contains("step 1, lanes 0-31, r0 "), "{}", answer.text);
    // Going back does not write it again.
    assert!(!ask(&mut debugger, "back-continue").contains("lanes 0-31, r0"));
    let refused = command::run(&mut debugger, &format!("log :{line} : {{$q}}")).unwrap_err().to_string();
    assert!(refused.contains("`$q` is not a register"), "{refused}");
}

/// Returns the answer to a command in the first state in which it is accepted.
fn first_taken(debugger: &mut Debugger, line: &str) -> String {
    for _ in 0..2000 {
        if let Ok(answer) = command::run(debugger, line) {
            return answer.text;
        }
        assert_ne!(debugger.run(1, &mut |_| true), Halt::End, "`{line}` is never taken");
    }
    panic!("`{line}` is not taken")
}

#[test]
fn flow_state_is_set_in_the_words_of_each_machine() {
    // Tesla: the active mask, and an entry of the token stack.
    let mut debugger = sample("loop-break.tesla");
    assert_eq!(ask(&mut debugger, "set mask 0-3,5"), "mask is lanes 0-3,5\n");
    assert_eq!(debugger.issue().unwrap().mask.to_string(), "0-3,5");
    assert_eq!(first_taken(&mut debugger, "set token 0 mask 1,2"), "token 0 mask is lanes 1-2\n");
    assert!(ask(&mut debugger, "stack").contains("lanes 1-2"), "{}", ask(&mut debugger, "stack"));
    let address = debugger.spelled(debugger.lines()[1].address.unwrap());
    assert_eq!(
        ask(&mut debugger, &format!("set token 0 address {address}")),
        format!("token 0 address is {}\n", debugger.named(debugger.lines()[1].address.unwrap()))
    );
    assert_eq!(ask(&mut debugger, "set token 0 type joinat"), "token 0 type is JOINAT\n");
    assert!(ask(&mut debugger, "stack").starts_with("  0  JOINAT  to "));
    let refused = |debugger: &mut Debugger, line: &str| command::run(debugger, line).unwrap_err().to_string();
    for (line, why) in [
        ("set token 9 mask 1", "expected token 0 to"),
        ("set token 0 mask 40", "outside the lanes of the group"),
        ("set token 0 mask x", "`x` is not a lane"),
        ("set token 0 type jump", "expected a type of token (BRANCH"),
        ("set token 0 adress 0x8", "expected mask, address or type of a token, found `adress`"),
        ("set token 0 address 0x3", "is not the address of an instruction"),
        ("set counter branch 0 1", "flow state of r500"),
        ("set entry 0 active 1", "flow state of r700"),
        ("set tokn 0 mask 1", "did you mean `token`?"),
        ("set mask 3-1", "`3-1`: expected the smaller lane first"),
    ] {
        let text = refused(&mut debugger, line);
        assert!(text.contains(why), "{line}: {text}");
    }
    // A change is repeated when the launch reaches its step again.
    let (place, state) = (debugger.position(), debugger.digest());
    debugger.go_to(0);
    debugger.go_to(place);
    assert_eq!(debugger.digest(), state);

    // R700: the masks of the stack's entries. A loop's entry also has the lanes that broke.
    let mut debugger = sample("loop-break.r700");
    assert_eq!(first_taken(&mut debugger, "set entry 0 active 0,2"), "entry 0 active is lanes 0,2\n");
    assert_eq!(ask(&mut debugger, "set entry 0 break 1"), "entry 0 break is lanes 1\n");
    assert!(refused(&mut debugger, "set entry 0 middle 1").contains("expected active, or break"));
    assert!(first_taken(&mut debugger, "set predicate 0").starts_with("predicate is lanes 0"));
    assert!(refused(&mut debugger, "set entry 7 active 1").contains("expected entry 0 to 0, found `7`"));

    // R500: a counter for each lane that waits.
    let mut debugger = sample("nested-if.r500");
    ask(&mut debugger, "stop diverge");
    ask(&mut debugger, "continue");
    let active = debugger.issue().unwrap().mask;
    let idle = (0..debugger.width() as u8).map(Lane).find(|lane| !active.has(*lane)).unwrap().0;
    let set = format!("set counter branch {idle} 3");
    assert_eq!(ask(&mut debugger, &set), format!("counter branch {idle} is 3\n"));
    assert!(ask(&mut debugger, "stack").contains(&format!("branch counter 3  lanes {idle}\n")));
    let running = active.lanes().next().unwrap().0;
    assert!(
        refused(&mut debugger, &format!("set counter branch {running} 1"))
            .contains("has no branch counter: active")
    );
    assert!(refused(&mut debugger, &format!("set counter branch {idle} 4000")).contains("expected 0 to"));
    assert!(refused(&mut debugger, "set counter loop 0 1").contains("no open loop has a counter"));
    let mut debugger = sample("tutorial-r500");
    assert_eq!(first_taken(&mut debugger, "set counter loop 0 7"), "counter loop 0 is 7\n");
    assert!(ask(&mut debugger, "stack").contains("count 7"));
}

/// Fault 16: nothing could be inspected after the end.
#[test]
fn registers_memory_and_place_can_be_read_after_the_end() {
    for (name, register) in
        [("tutorial-tesla", "$r0"), ("nested-if.r700", "R0.x"), ("nested-if.r500", "temp1.r")]
    {
        let mut debugger = sample(name);
        let answer = command::run(&mut debugger, "continue").unwrap();
        assert_eq!(answer.halt, Some(Halt::End), "{name}: {}", answer.text);
        let text = ask(&mut debugger, &format!("p {register}"));
        assert!(text.lines().count() > 1, "{name}: {text}");
        assert!(ask(&mut debugger, "table").starts_with("lane  "), "{name}");
        assert!(debugger.place().is_some(), "{name}");
        ask(&mut debugger, "stack");
        let refused = command::run(&mut debugger, &format!("set {register} 1")).unwrap_err().to_string();
        assert!(refused.contains("to 0x1 here"), "{name}: {refused}");
        let refused = command::run(&mut debugger, "set mask 0").unwrap_err().to_string();
        assert!(refused.contains("the launch has ended"), "{name}: {refused}");
    }
    let mut debugger = sample("tutorial-tesla");
    ask(&mut debugger, "continue");
    assert!(ask(&mut debugger, "p s[0x10]").starts_with("s[0x10]  0x"));
}

#[test]
fn the_last_word_of_a_line_is_completed() {
    let debugger = sample("tutorial-tesla");
    let completed = |line: &str| command::completions(&debugger, line);
    assert_eq!(completed("reg"), ["registers"]);
    assert_eq!(completed("stop di"), ["diverge"]);
    assert!(completed("print $r1").contains(&"$r1".to_owned()));
    let label = debugger.source().unwrap().labels().next().unwrap().to_owned();
    assert!(completed(&format!("break {}", &label[..1])).contains(&label));
    assert!(completed("print $r0 +").is_empty());
}

#[test]
fn a_long_formula_is_refused_without_its_text() {
    let mut debugger = sample("tutorial-tesla");
    assert!(ask(&mut debugger, &format!("print 1{}", " + 1".repeat(400))).contains(" 401\n"));
    for text in [format!("1{}", "+1".repeat(40_000)), "(".repeat(40_000), "x".repeat(40_000)] {
        let refused = command::run(&mut debugger, &format!("print {text}")).unwrap_err().to_string();
        assert!(refused.len() < 400, "{refused}");
        let refused = command::run(&mut debugger, &text).unwrap_err().to_string();
        assert!(refused.len() < 400, "{refused}");
    }
    for (text, why) in [
        ("1 << 64", "shifts by 0 to 63 bits"),
        ("1 >> -1", "shifts by 0 to 63 bits"),
        ("1 << 63", "does not fit in 64 bits"),
        ("9223372036854775807 + 1", "does not fit in 64 bits"),
        ("s[4294967296]", "expected a 32-bit address"),
    ] {
        let refused = command::run(&mut debugger, &format!("print {text}")).unwrap_err().to_string();
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

#[test]
fn a_launch_whose_last_lanes_are_taken_away_has_ended() {
    // If several warps run, the first one passes control to the next.
    let mut several = debugger(find(Isa::Tesla, "collatz").unwrap(), 256);
    assert_eq!(ask(&mut several, "set mask none"), "mask is lanes none\n");
    assert_eq!(several.stepping().current(), Some(1));
    for movement in ["continue", "step", "over", "until 0", "goto 50"] {
        let mut debugger = sample("tutorial-tesla");
        ask(&mut debugger, "goto 9");
        assert_eq!(ask(&mut debugger, "set mask none"), "mask is lanes none\n");
        let answer = command::run(&mut debugger, movement).unwrap();
        assert_eq!((answer.halt, debugger.position()), (Some(Halt::End), 9), "{movement}");
        assert!(answer.text.contains("the launch or the group has ended"), "{}", answer.text);
        assert_eq!(debugger.stepping().current(), None, "{movement}");
        assert_eq!(debugger.back(1), Halt::There, "{movement}");
        assert_eq!(debugger.position(), 8, "{movement}");
    }
}

#[test]
fn what_a_lane_is_expected_to_do_is_whole_words() {
    let mut debugger = debugger(find(Isa::Tesla, "collatz").unwrap(), 256);
    to_divergence(&mut debugger);
    let left = (0..32).find(|lane| debugger.why(Lane(*lane)).contains("left the loop")).unwrap();
    let mut expect = |text: String| command::run(&mut debugger, &format!("expect lane {text}"));
    expect(format!("{left} left the loop")).unwrap();
    expect(format!("{left} it has left the loop")).unwrap();
    for wrong in ["end", "left the loo", "eft", "active", "waits"] {
        let refused = expect(format!("{left} {wrong}")).unwrap_err();
        assert!(matches!(refused, CommandError::Expectation { .. }), "{wrong}: {refused}");
    }
    for wrong in ["99 covered", "32 active", "x active", "0"] {
        let refused = expect(wrong.to_owned()).unwrap_err();
        assert!(matches!(refused, CommandError::Usage { .. }), "{wrong}: {refused}");
    }
}

#[test]
fn a_stop_that_can_never_count_is_refused_and_one_without_a_value_stops_once() {
    let mut debugger = debugger(find(Isa::Tesla, "collatz").unwrap(), 256);
    for wrong in ["hits 0", "hits >= 0", "hits < 1", "hits 1 hits 2", "if 1 if 2"] {
        let refused = command::run(&mut debugger, &format!("stop diverge {wrong}")).unwrap_err();
        assert!(matches!(refused, CommandError::Usage { .. }), "{wrong}: {refused}");
    }
    ask(&mut debugger, "stop if 1 / 0 == 1");
    for _ in 0..2 {
        let answer = command::run(&mut debugger, "continue").unwrap();
        assert!(answer.text.contains("cannot be computed: division by zero"), "{}", answer.text);
        assert_eq!(debugger.position(), 1);
        let answer = command::run(&mut debugger, "continue").unwrap();
        assert_eq!(answer.halt, Some(Halt::End), "{}", answer.text);
        ask(&mut debugger, "goto 0");
    }
}

/// Returns a debugger for a kernel, with its source.
fn sourced(kernel: &Kernel, lanes: u32) -> Debugger {
    let opened = kernel.open().unwrap();
    let source = UserSource::new(kernel.isa, Path::new("kernel.s"), kernel.source, &opened.lines[0]);
    debugger(kernel, lanes).with_source(Some(source))
}

/// Fault 6: `bra odd` was printed as `bra L60` in every text with an instruction or address.
#[test]
fn instructions_and_addresses_have_the_text_and_labels_of_the_users_own_source() {
    let mut instructions = 0;
    for kernel in &KERNELS {
        let what = format!("{} {}", kernel.isa, kernel.name);
        let mut debugger = sourced(kernel, 256);
        let source = debugger.source().unwrap().clone();
        let own: Vec<&str> = source.labels().collect();
        let is_of_listing = |word: &str| {
            let digits = word.strip_prefix('L').unwrap_or("");
            !digits.is_empty()
                && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
                && !own.contains(&word)
        };
        for _ in 0..100 {
            if let Some(issue) = debugger.issue() {
                let line = source.line_of(issue.pc).unwrap();
                let text = source.instruction(issue.pc);
                let place = format!(", kernel.s:{line}  {}", text.unwrap_or_default());
                let said = ask(&mut debugger, "where");
                assert!(said.contains(&place), "{what}: {place}: {said}");
                instructions += usize::from(text.is_some());
            }
            for command in ["where", "lanes", "stack", "events", "groups", "list", "source"] {
                // Constructs of R500 do not have labels in the source, so the listing generates labels.
                if command == "list" && own.is_empty() {
                    continue;
                }
                let said = ask(&mut debugger, command);
                let words = said.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
                assert_eq!(
                    words.filter(|word| is_of_listing(word)).collect::<Vec<_>>(),
                    [""; 0],
                    "{what}: {said}"
                );
            }
            debugger.step(1, 1 << 20);
        }
    }
    assert!(instructions > 200, "{instructions}");

    // At a divergence, both sides have the source's label or line.
    let mut debugger = sourced(find(Isa::Tesla, "collatz").unwrap(), 256);
    to_divergence(&mut debugger);
    let label = debugger.source().unwrap().labels().last().unwrap().to_owned();
    let address = debugger.named_place(&label).unwrap();
    assert!(debugger.named(address).ends_with(&format!(" ({label})")), "{}", debugger.named(address));
    assert!(ask(&mut debugger, "stack").contains(" ("), "{}", ask(&mut debugger, "stack"));
    assert!(ask(&mut debugger, "list").contains(&format!("{label}:")) || debugger.lines().len() > 13);
    // The listing's own label still names an address.
    assert_eq!(debugger.named_place(&format!("L{address:x}")), Ok(address));
}

/// Fault 6: an instruction from a macro has the listing's text, since its source line is the macro call.
#[test]
fn instructions_that_share_a_line_have_the_text_of_the_listing() {
    let text = ".isa tesla\n.macro two a\n    mov b32 \\a 0x1\n    mov b32 \\a 0x2\n.endm\n.kernel k\n    two $r1\nend: exit mov b32 $r2 $r1 // the end\n";
    let known = Known::default();
    let opened = open(text.as_bytes(), true, &known).unwrap_or_else(|error| panic!("{error}"));
    let source = UserSource::new(Isa::Tesla, Path::new("k.s"), text, &opened.lines[0]);
    assert_eq!((source.instruction(0), source.instruction(8)), (None, None));
    let last = opened.lines[0].last().unwrap().0;
    assert_eq!(source.instruction(last), Some("exit mov b32 $r2 $r1"));
    assert_eq!(source.label_of(last), Some("end"));
}

#[test]
fn a_wrong_argument_is_answered_with_what_fits() {
    let mut debugger = sample("tutorial-tesla");
    for (line, wanted) in [
        ("memory", "a space and an address are missing, such as `"),
        ("memory g", "an address in g is missing, such as `g 0x10`"),
        ("memory g[]", "an address in g is missing"),
        ("memory g x", "expected an address in g such as 16 or 0x10, up to 0xffffffff, found `x`"),
        ("memory g[x]", "expected an address in g"),
        ("memory h 0", "unknown space `h`; expected one of "),
        ("memory g 0 many", "expected a number of bytes such as 16 or 0x40, found `many`"),
        ("memory g 0 0", "expected a number of bytes"),
        ("memory g 0 4 4", "unexpected `4`"),
        ("write g 0", "the new words are missing"),
        ("write g", "an address in g is missing"),
        ("write g 0 x", "expected a 32-bit number such as 7, 0x1f, -3 or 0.5, found `x`"),
        ("step x", "expected a number of instructions, 1 or more, found `x`"),
        ("step 0", "expected a number of instructions"),
        ("step -1", "expected a number of instructions"),
        ("step 1 2", "unexpected `2`"),
        ("back 1 2", "unexpected `2`"),
        ("until", "a place is missing: an address, a label or a line"),
        ("until 0 8", "unexpected `8`"),
        ("goto", "the number of a step is missing"),
        (
            "goto end",
            "expected the number of a step, from 0, found `end`; `until PLACE` goes to a label or line",
        ),
        ("why x", "expected a lane from 0 to 31, found `x`"),
        ("why 32", "expected a lane from 0 to 31, found `32`"),
        ("lane 1 2", "unexpected `2`"),
        ("group 9", "expected a group from 0 to 0, found `9`"),
        ("delete 7", "stop 7 does not exist; `stops` lists the stops"),
        ("delete", "expected the number of a stop or `all`"),
        ("delete one", "expected the number of a stop or `all`, found `one`"),
        ("break", "a place is missing"),
        ("break 0 1", "expected `if CONDITION`, `group NUMBER` or `hits 3`, found `1`"),
        ("break 0 hits", "expected a condition on the number of hits"),
        ("break 0 group 9", "expected a group from 0 to 0, found `9`"),
        ("break 0 if", "a formula is missing"),
        ("log 0", "` : TEXT` is missing"),
        ("log : x", "a place is missing"),
        ("log 0 :", "` : TEXT` is missing"),
        ("log 0 : a } b", "unmatched `}`; write `}}` for a brace"),
        ("log 0 : a { b", "unmatched `{`; write `{{` for a brace"),
        ("log 0 : {}", "a formula is missing between the braces"),
        ("stop", "expected diverge, resume, reconverge, lane LANE or if CONDITION"),
        ("stop diverg", "did you mean `diverge`?"),
        ("stop lane", "the number of a lane is missing"),
        ("watch", "a register, memory or an address is missing"),
        ("watch g", "an address in g is missing"),
        ("watch $r1 $r2", "found `$r2`"),
        ("watch 0x999999999", "expected a 32-bit address"),
        ("watch $r1@99", "expected a lane from 0 to 31, found `99`"),
        ("watch g 0 0", "expected a number of bytes"),
        (
            "set",
            "expected a register and a number, or flow state (mask, token, counter, entry, predicate), found nothing",
        ),
        ("set $r1", "the new value of $r1 is missing, such as 7, 0x1f, -3 or 0.5"),
        ("set $r1 x", "expected a 32-bit number"),
        ("set $r1 1 2", "unexpected `2`"),
        ("set $r1 99999999999", "expected a 32-bit number"),
        ("set msk 1", "did you mean `mask`?"),
        ("print", "a formula is missing"),
        ("print $r1 +", "expected a register, memory or a number at the end"),
        ("print $r1 $r2", "expected an operator, found `$r2`"),
        ("print g", "memory needs an address, such as `g[0x10]`"),
        ("print $q1", "`$q1` is not a register such as $r0, $a0, $c0"),
        ("print q[0]", "unknown memory `q`; expected one of "),
        ("print $r999", "`$r999`: expected a number from 0 to "),
        ("set mask 5-3", "`5-3`: expected the smaller lane first"),
        ("set mask", "expected mask LANES or token N"),
        ("registers $r1,$r2", "expected spaces between registers"),
        ("expect", "a condition is missing"),
        ("expect at", "a place is missing"),
        ("expect lane", "the number of a lane is missing"),
        ("expect lane 0", "`lanes` shows it"),
        ("list nowhere", "expected the address of an instruction, a label or a line"),
    ] {
        let refused = command::run(&mut debugger, line).map(|answer| answer.text);
        let refused = refused.err().unwrap_or_else(|| panic!("`{line}` is taken")).to_string();
        assert!(refused.contains(wanted), "{line}: {refused}");
    }
    // Memory can also be written as in formulas.
    assert_eq!(ask(&mut debugger, "memory s[0x10] 4"), ask(&mut debugger, "memory s 0x10 4"));
    assert!(ask(&mut debugger, "watch s[0x10]").starts_with("stop 1 when s[0x10] changes"));
    assert!(ask(&mut debugger, "memory g 0x0").contains("bytes from 0x0; its buffers are "));
}

#[test]
fn braces_of_a_log_are_doubled() {
    let mut debugger = sample("tutorial-tesla");
    let second = debugger.spelled(debugger.lines()[1].address.unwrap());
    ask(&mut debugger, &format!("log {second} : {{{{step {{step}}}}}}"));
    assert!(ask(&mut debugger, "step 2").starts_with("{step 1}\n"), "{}", ask(&mut debugger, "where"));
}
