//! `reconverge debug`: scripts, and the screen on a real terminal.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples")
}

/// Runs a script for a launch of the samples.
fn debug(launch: &str, script: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
    command.arg("debug").arg(samples().join(launch)).args(["--batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_scripted_session_of_each_machine_passes_a_divergence_and_comes_back_to_the_same_state() {
    for name in ["tutorial-r500", "tutorial-r700", "tutorial-tesla"] {
        let script = std::fs::read_to_string(samples().join(format!("{name}.debug"))).unwrap();
        for line in ["stop diverge", "mark", "follow ", "goto ", "expect marked"] {
            assert!(script.contains(line), "{name}: {line}");
        }
        let (status, stdout, stderr) = debug(&format!("{name}.toml"), &script);
        assert_eq!(status, 0, "{name}: {stdout}{stderr}");
        // After one more instruction, the state is different.
        let further = script.replace("expect marked", "step\nexpect marked");
        let (status, stdout, _) = debug(&format!("{name}.toml"), &further);
        assert_eq!(status, 1, "{name}: {stdout}");
        assert!(stdout.contains("expected marked, but the state after"), "{name}: {stdout}");
    }
}

#[test]
fn a_wrong_line_of_a_script_is_named_and_what_was_printed_stays() {
    let (status, stdout, stderr) = debug("tutorial-tesla.toml", "step 2\nwhere\nstpe\nstep\n");
    assert_eq!(status, 2, "{stderr}");
    assert!(stdout.starts_with("(debug) step 2\ngroup 0, after 2 instructions: 0x10"), "{stdout}");
    assert!(stdout.ends_with("(debug) stpe\n"), "{stdout}");
    assert!(stderr.contains("line 3: unknown command `stpe`, did you mean `step`?"), "{stderr}");
}

#[test]
fn a_launch_names_a_file_unless_a_debug_client_does() {
    let output = Command::new(env!("CARGO_BIN_EXE_reconverge")).arg("debug").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<FILE>"), "{output:?}");
}

/// A tmux terminal that runs a command.
struct Terminal(String);

impl Terminal {
    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.0]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns the screen as soon as it contains a text.
    fn with(&self, text: &str) -> String {
        self.when(text, |screen| screen.contains(text))
    }

    /// Returns the screen as soon as its last line is this text. Keys that arrive before a prompt do not belong to
    /// its line.
    fn ends_with(&self, text: &str) -> String {
        self.when(text, |screen| screen.trim_end().lines().last() == Some(text))
    }

    fn when(&self, text: &str, there: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if there(&screen) {
                return screen;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no `{text}` in:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Starts the debugger in a terminal. Returns `None` if tmux is not installed.
fn terminal(name: &str, options: &str) -> Option<Terminal> {
    let launch = samples().join("tutorial-tesla.toml");
    sized(name, [132, 40], &format!("'{}' {options}", launch.display()))
}

/// Starts the debugger in a terminal of this size.
fn sized(name: &str, [columns, lines]: [u16; 2], arguments: &str) -> Option<Terminal> {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: tmux is not here");
        return None;
    }
    let terminal = Terminal(format!("reconverge-{name}-{}", std::process::id()));
    let command = format!("'{}' debug {arguments}", env!("CARGO_BIN_EXE_reconverge"));
    let (columns, lines) = (columns.to_string(), lines.to_string());
    terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &lines, &command]);
    Some(terminal)
}

#[test]
fn the_screen_answers_why_a_lane_is_idle_in_one_key() {
    let Some(terminal) = terminal("screen", "") else { return };
    terminal.with("step 0  group 0 of 1");
    terminal.tmux(&["send-keys", "d"]);
    terminal.tmux(&["send-keys", "c"]);
    terminal.with("lanes diverge");
    terminal.tmux(&["send-keys", "y"]);
    terminal.with("lane 0: parked: it continues at 0x28, ");
    terminal.tmux(&["send-keys", "-l", ":mem"]);
    terminal.tmux(&["send-keys", "Tab"]);
    terminal.ends_with(": memory");
    terminal.tmux(&["send-keys", "-l", "s 0x0"]);
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.with("memory s 0x0");
    terminal.tmux(&["send-keys", "q"]);
}

/// Fault 7: at 80x24, the lanes and the keys were truncated, the help did not scroll, and neither a source view nor
/// the mouse existed.
#[test]
fn a_session_fits_80x24_scrolls_and_takes_the_mouse() {
    let launch = format!("'{}' --block 32 --buf 'steps=u32[32]'", samples().join("collatz.s").display());
    let Some(terminal) = sized("small", [80, 24], &launch) else { return };
    let screen = terminal.when("the line of keys to its end", |screen| {
        screen.contains("step 0  group 0 of 1") && screen.trim_end().ends_with("? help")
    });
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    // Each of the 32 lanes has a letter.
    assert!(screen.contains("  0 A A A A A A A A A A A A A A A A"), "{screen}");
    assert!(screen.contains(" 16 A A A A A A A A A A A A A A A A"), "{screen}");
    // The screen shows the user's source with its comments and labels. `v` shows the listing.
    assert!(screen.contains("breakaddr done"), "{screen}");
    terminal.tmux(&["send-keys", "v"]);
    terminal.with("and b32 $r0 $r0 0xffff");
    // The listing has the labels of the source.
    terminal.when("the listing is there", |screen| {
        screen.contains("breakaddr done") && !screen.contains("; threadIdx.x")
    });
    terminal.tmux(&["send-keys", "v"]);
    terminal.with("breakaddr done");
    // An enlarged pane shows the whole of long lines.
    terminal.tmux(&["send-keys", "z"]);
    terminal.with("and b32 $r0 $r0 0xffff      ; threadIdx.x");
    terminal.tmux(&["send-keys", "z"]);
    terminal.with("answers");

    // Keys and the wheel scroll the help to its last line.
    terminal.tmux(&["send-keys", "?"]);
    terminal.with("help, lines 1 to 21");
    terminal.tmux(&["send-keys", "End"]);
    terminal.with("and stacks of the last state can be read.");
    terminal.tmux(&["send-keys", "-l", "\u{1b}[<64;10;10M"]);
    terminal.when("the end is scrolled away", |screen| {
        screen.contains("help, lines") && !screen.contains("and stacks of the last state can be read.")
    });
    terminal.tmux(&["send-keys", "q"]);
    terminal.with("answers");

    // A stop at a label. A click on its line removes the stop, and another click sets it again.
    terminal.tmux(&["send-keys", "-l", ":break step"]);
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.with("stop 1 at 0x28, collatz.s:16");
    // The wheel scrolls the program.
    terminal.tmux(&["send-keys", "-l", "\u{1b}[<65;10;5M"]);
    let screen = terminal.with("*  16 ");
    let row = screen.lines().position(|line| line.contains("*  16 ")).expect("the line is there") + 1;
    let click = format!("\u{1b}[<0;20;{row}M\u{1b}[<0;20;{row}m");
    terminal.tmux(&["send-keys", "-l", &click]);
    terminal.with("> delete 1");
    terminal.tmux(&["send-keys", "-l", &click]);
    terminal.with("stop 2 at 0x28, collatz.s:16");
    terminal.tmux(&["send-keys", "c"]);
    let screen = terminal.with("0x28 for 32 of 32 lanes");
    // The table shows registers of several lanes and marks the changed ones.
    assert!(screen.contains("registers of lanes 0 to "), "{screen}");
    assert!(screen.contains("$r1 00000001* 00000001*"), "{screen}");
    terminal.tmux(&["send-keys", "c"]);
    let screen = terminal.with("0x28 for 31 of 32 lanes");
    let flags = screen.lines().find(|line| line.starts_with("$c0 ")).unwrap_or_else(|| panic!("{screen}"));
    assert!(!flags.contains("e-") && (flags.contains('Z') || flags.contains('S')), "{flags}");
    // A click on a lane chooses it, and the table then shows the last lanes.
    let row = screen.lines().position(|line| line.contains(" 16 A A"));
    let row = row.unwrap_or_else(|| panic!("{screen}")) + 1;
    let column = 44 + 3 + 2 * 15 + 1;
    terminal.tmux(&["send-keys", "-l", &format!("\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m")]);
    terminal.with("lane 31: ");
    terminal.with(" to 31, hex");
    terminal.tmux(&["send-keys", "q"]);
}

/// Fault 7: keys that were typed while a movement ran were dropped.
#[test]
fn keys_that_are_typed_during_a_movement_are_carried_out_in_order_and_escape_ends_a_long_one() {
    let launch = format!("'{}' --block 32 --buf 'steps=u32[32]'", samples().join("collatz.s").display());
    let Some(terminal) = sized("ahead", [80, 24], &launch) else { return };
    terminal.with("step 0  group 0 of 1");
    terminal.tmux(&["send-keys", "-l", "sssss"]);
    terminal.with("step 5  group 0 of 1");
    terminal.tmux(&["send-keys", "-l", "bbsbs:goto 17\rs"]);
    terminal.with("step 18  group 0 of 1");
    terminal.tmux(&["send-keys", "q"]);

    // An endless loop: keys wait. Escape ends the movement and drops the keys.
    let endless = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dap/endless.s");
    let launch = format!("'{}' --block 32 --watchdog 100000000000", endless.display());
    let Some(terminal) = sized("endless", [80, 24], &launch) else { return };
    terminal.with("step 0  group 0 of 1");
    terminal.tmux(&["send-keys", "-l", "c???"]);
    std::thread::sleep(Duration::from_millis(300));
    terminal.tmux(&["send-keys", "Escape"]);
    let screen = terminal.with("interrupted");
    assert!(!screen.contains("step 0  ") && !screen.contains("help, lines"), "{screen}");
    terminal.tmux(&["send-keys", "q"]);
}

/// Fault 7: at 80 columns, the panes touched each other, and the command line did not have a cursor.
#[test]
fn panes_have_a_gap_and_the_command_is_edited_at_a_cursor() {
    let launch = format!("'{}' --block 32 --buf 'steps=u32[32]'", samples().join("collatz.s").display());
    let Some(terminal) = sized("edited", [80, 24], &launch) else { return };
    let screen = terminal.when("the line of keys to its end", |screen| screen.trim_end().ends_with("? help"));
    let rows = screen.lines().skip(1).take_while(|line| !line.contains("registers of lanes"));
    assert!(rows.filter_map(|line| line.chars().nth(43)).all(|letter| letter == ' '), "{screen}");
    terminal.tmux(&["send-keys", "-l", ":tep 3"]);
    for key in ["Home", "s", "End", "BSpace", "4", "C-w", "7", "Left", "DC", "2", "Enter"] {
        terminal.tmux(&["send-keys", key]);
    }
    terminal.with("> step 2");
    terminal.with("step 2  group 0 of 1");
    terminal.tmux(&["send-keys", "-l", ":why"]);
    for key in ["Up", "Down", "Enter"] {
        terminal.tmux(&["send-keys", key]);
    }
    terminal.with("> why");
    terminal.tmux(&["send-keys", "q"]);
}

/// Fault 6: traps and the debugger's position showed the text of the listing.
#[test]
fn a_trap_has_the_line_and_text_of_the_users_own_source() {
    let launch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/tesla/beyond.toml");
    let (status, stdout, stderr) = debug(launch.to_str().unwrap(), "continue\nwhere\n");
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("outside every buffer; beyond.s:7: exit st b32 g14[$r1] $r0\n"), "{stdout}");
    let (_, place) = stdout.split_once("(debug) where\n").unwrap();
    assert!(place.contains("0x10, beyond.s:7  exit st b32 g14[$r1] $r0  for lanes 0-1"), "{place}");
}

#[test]
fn the_command_line_completes_and_remembers() {
    let Some(terminal) = terminal("plain", "--plain") else { return };
    terminal.ends_with("(debug)>");
    terminal.tmux(&["send-keys", "-l", "until 0x38"]);
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.with("after 5 instructions: 0x38");
    terminal.ends_with("(debug)>");
    terminal.tmux(&["send-keys", "-l", "reg"]);
    terminal.tmux(&["send-keys", "Tab"]);
    terminal.with("registers");
    terminal.tmux(&["send-keys", "C-c"]);
    terminal.ends_with("(debug)>");
    // Ctrl-C drops the line, and the history still has the previous one.
    terminal.tmux(&["send-keys", "Up"]);
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.with("ended");
    terminal.tmux(&["send-keys", "C-d"]);
}
