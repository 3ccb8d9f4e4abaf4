//! Limits on the host resources that input can request, and the files that interrupted commands leave.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The colour of a lane is its input.
const R500: &str = ".isa r500\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";

/// A kernel that does nothing.
const KERNEL: &str = ".isa tesla\n.kernel k\n    exit nop\n";

/// The folder of one test with its files.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, files: &[(&str, &str)]) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits").join(test);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
        Folder(folder)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reconverge"));
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command
    }

    /// Runs a command that must end with this status. Returns standard output and standard error.
    fn ends(&self, arguments: &str, status: i32) -> (String, String) {
        let output = self.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Returns the partial files that a command has left.
    fn unfinished(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.0).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".part")).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_limit_is_named_with_its_value_and_the_way_to_raise_it() {
    let nested = ".isa tesla\n.kernel k\n  joinat a\n  (e $c0) bra a\n  joinat b\n  (e $c0) bra b\n  nop\n\
                  b:\n  join nop\na:\n  join nop\n  exit nop\n";
    let endless = ".isa tesla\n.kernel k\na:\n  bra a\n";
    let files = [("a.s", R500), ("k.s", KERNEL), ("nested.s", nested), ("endless.s", endless)];
    let folder = Folder::new("named", &files);
    for (arguments, status, message) in [
        (
            "run a.s --lanes 20000000",
            2,
            "lanes: expected 1 to 16777216, found 20000000; --limits lanes=N allows more",
        ),
        ("run a.s --lanes 9 --limits lanes=8", 2, "expected 1 to 8, found 9; --limits lanes=N allows more"),
        (
            "run k.s --buf a=u32[257] --limits memory=1K",
            2,
            "1028 bytes exceed the limit `memory` (1024); --limits memory=N allows more",
        ),
        ("run k.s --buf a=0..1000 --limits memory=1K", 2, "8000 bytes exceed the limit `memory`"),
        ("run k.s --buf a=f32[99999999999]", 2, "399999999996 bytes exceed the limit `memory`"),
        ("dis k.s --limits file=16", 2, "bytes exceed the limit `file` (16); --limits file=N allows more"),
        ("check k.s --limits file=16", 1, "bytes exceed the limit `file` (16)"),
        (
            "dis nested.s --structure --limits nesting=1",
            2,
            "2 nested constructs exceed the limit `nesting` (1); --limits nesting=N allows more",
        ),
        ("lint nested.s --limits nesting=1", 2, "exceed the limit `nesting` (1)"),
        (
            "run endless.s --watchdog 1000",
            1,
            "after 1000 instructions; --watchdog N, or watchdog = N in a launch file, allows more",
        ),
        ("dis a.s --limits lanes=0", 2, "lanes: expected 1 to 1073741824"),
        ("dis a.s --limits eggs=1", 2, "NAME is one of lanes, memory, nesting, file"),
        ("dis a.s --limits trace=1", 2, "set this limit with --limit BYTES"),
    ] {
        let (printed, said) = folder.ends(arguments, status);
        assert!(printed.contains(message) || said.contains(message), "{arguments}: {printed}{said}");
    }
    for arguments in [
        "run a.s --lanes 8 --limits lanes=8",
        "run k.s --buf a=u32[256] --limits memory=1K,file=1M",
        "dis nested.s --structure --limits nesting=2",
    ] {
        folder.ends(arguments, 0);
    }
}

/// 400 MB of address space. A command that needs more reports so and ends with status 2. `check` judges the other
/// cases.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_the_host_has_not_is_an_error() {
    let launch = "isa = \"r500\"\nprogram = \"a.s\"\nlanes = 16777216\n[[expect]]\noutput = \"color0\"\nvalues = [1]\n";
    let good = "isa = \"r500\"\nprogram = \"a.s\"\nlanes = 1\n[[expect]]\noutput = \"color0\"\nvalues = [[0, 0, 0, 0]]\n";
    let files = [("a.s", R500), ("k.s", KERNEL), ("big.toml", launch), ("good.toml", good)];
    let folder = Folder::new("memory", &files);
    // Sparse files, which do not use space on the disk.
    let header =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (600000000,), }";
    for (name, start, length) in [("big.hex", &b""[..], 900_000_000), ("big.npy", &header[..], 600_000_128)] {
        std::fs::write(folder.0.join(name), start).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(folder.0.join(name)).unwrap();
        file.set_len(length).unwrap();
    }
    let limited = |arguments: &str| {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_reconverge");
        shell.current_dir(&folder.0).arg("-c").arg(format!("ulimit -v 400000; exec {program} {arguments}"));
        // The stack of a worker thread also uses address space.
        shell.env("RAYON_NUM_THREADS", "2").output().unwrap()
    };
    for arguments in [
        "run k.s --buf a=u8[300000000]",
        "run k.s --buf a=0..20000000",
        "run k.s --buf a=big.npy",
        "run a.s --lanes 16000000",
        "run a.s --lanes 4 --texture 0=f32[30000000]:5000x6000",
        "dis big.hex",
        "check big.hex",
        "check big.toml good.toml",
    ] {
        let output = limited(arguments);
        let said = text(&output.stderr) + &text(&output.stdout);
        let status = if arguments.starts_with("check") { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(status), "{arguments}: {said}");
        assert!(said.contains("no memory: ") || said.contains("out of memory"), "{arguments}: {said}");
        if arguments.contains("good") {
            assert!(said.contains("1 passed, 1 failed"), "{said}");
        }
    }
}

/// Programs that are ended by signals.
#[cfg(target_os = "linux")]
mod signals {
    use std::process::{Child, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// A kernel whose first block ends and whose second block does not.
    const SECOND_ENDLESS: &str = "
.isa tesla
.chip sm_10
.kernel k
.reg 4
    mov b32 $r1 b32 s[0x10]
    mov b32 $r2 0x7
    mov b32 $r3 u16 s[0xc]
    and b32 $c0 # $r3 $r3
    (lg $c0) bra again
    exit st b32 g14[$r1] $r2
again:
    bra again
";

    fn started(mut command: Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until a process has used `ticks` hundredths of a second of processor time.
    fn ran_for(child: &mut Child, ticks: u64) {
        loop {
            assert!(child.try_wait().unwrap().is_none(), "it runs until it is interrupted");
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
            if fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap() >= ticks {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn interrupted(mut child: Child) -> Output {
        ran_for(&mut child, 30);
        send(&child, "INT");
        child.wait_with_output().unwrap()
    }

    fn send(child: &Child, signal: &str) {
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    fn json(output: &Output) -> serde_json::Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }

    #[test]
    fn a_run_that_ctrl_c_ends_prints_its_results_so_far() {
        let folder = Folder::new("run", &[("k.s", SECOND_ENDLESS)]);
        for engine in ["reference", "fast", "compiled", "lockstep"] {
            let run =
                "run k.s --grid 2 --block 1 --buf a=u32[2] --out a=a.npy --json --watchdog 99999999999999";
            let output = interrupted(started(folder.command(&format!("{run} --engine {engine}"))));
            assert_eq!(output.status.code(), Some(130), "{engine}: {}", text(&output.stderr));
            let found = json(&output);
            assert_eq!(found["interrupted"], true, "{engine}");
            assert_eq!(found["outputs"]["a"], serde_json::json!([7, 0]), "{engine}");
            assert!(found["group_instructions"].as_u64().unwrap() > 1000, "{engine}: {found}");
            assert!(text(&output.stderr).contains("interrupted: these are the results so far"));
            assert!(!folder.0.join("a.npy").exists(), "a part is no result");
        }
    }

    #[test]
    fn every_engine_of_the_other_machines_stops() {
        let r700 = ".isa r700\n.chip RV770\n.stack 1\n00 LOOP_START_DX10: ADDR(3)\n01 NOP:\n02 LOOP_END: ADDR(1)\n\
                    03 NOP: END_OF_PROGRAM\n";
        let r500 = ".isa r500\nagain:\nALU temp[1].r = MAX src0.rrr, src0.rrr : src0=temp[0]\n\
                    FC JUMP FUNC=0xff -> again\nOUT out[A].rgb = MAX*off src0.rgb, src0.rgb : src0=temp[0]\n";
        let folder = Folder::new("stops", &[("r700.s", r700), ("r500.s", r500)]);
        for program in ["r700.s", "r500.s"] {
            for engine in ["reference", "fast", "compiled", "lockstep"] {
                let run =
                    format!("run {program} --mode lenient --lanes 5000 --watchdog 99999999999999 --rows 1");
                let output = interrupted(started(folder.command(&format!("{run} --engine {engine}"))));
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(130), "{program}, {engine}: {said}");
                assert!(said.contains("interrupted: these are the results so far"), "{said}");
            }
        }
    }

    #[test]
    fn a_check_that_ctrl_c_ends_has_the_verdicts_so_far() {
        let good = "isa = \"r500\"\nprogram = \"a.s\"\nlanes = 1\n[[expect]]\noutput = \"color0\"\nvalues = [[0, 0, 0, 0]]\n";
        let endless = ".isa tesla\n.kernel k\na:\n  bra a\n";
        let launch = "isa = \"tesla\"\nprogram = \"b.s\"\nwatchdog = 99999999999999\ntrap = \"TIMEOUT\"\nblock = [1]\ngrid = [1]\n";
        let files = [("a.s", R500), ("a.toml", good), ("b.s", endless), ("b.toml", launch)];
        let folder = Folder::new("check", &files);
        let check = "check a.toml b.toml --jobs 1 --junit report.xml --results list.csv --json";
        let output = interrupted(started(folder.command(check)));
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        let found = json(&output);
        assert_eq!(
            (&found["passed"], &found["failed"], &found["not_judged"]),
            (&1.into(), &0.into(), &1.into())
        );
        assert_eq!(found["interrupted"], true);
        assert!(text(&output.stderr).contains("interrupted: 1 case not judged"), "{}", text(&output.stderr));
        assert!(!folder.0.join("report.xml").exists() && !folder.0.join("list.csv").exists());
    }

    /// A process that is killed while it writes keeps the old content. A second Ctrl-C does not leave a partial file.
    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let endless = ".isa tesla\n.kernel k\na:\n  bra a\n";
        let folder = Folder::new("whole", &[("k.s", KERNEL), ("endless.s", endless), ("t.rtrace", "before")]);
        let read = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
        let mut child = started(
            folder.command("trace endless.s --watchdog 99999999999999 -o t.rtrace --limit 100000000000"),
        );
        ran_for(&mut child, 30);
        assert_eq!(folder.unfinished().len(), 1);
        send(&child, "KILL");
        child.wait().unwrap();
        assert_eq!(read("t.rtrace"), b"before");
        let left = folder.unfinished();
        std::fs::remove_file(folder.0.join(&left[0])).unwrap();
        // A file whose creation fails does not exist afterwards, and an existing file keeps its content.
        folder.ends("asm t.rtrace -o out.hex --isa tesla", 2);
        assert!(!folder.0.join("out.hex").exists());
        std::fs::write(folder.0.join("out.hex"), "before").unwrap();
        folder.ends("asm t.rtrace -o out.hex --isa tesla", 2);
        assert_eq!(read("out.hex"), b"before");
        // Links and permissions are preserved.
        let mode = |name: &str| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::metadata(folder.0.join(name)).unwrap().permissions().mode() & 0o777
        };
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(folder.0.join("out.hex"), private).unwrap();
        std::os::unix::fs::symlink("out.hex", folder.0.join("link.hex")).unwrap();
        folder.ends("asm k.s -o link.hex", 0);
        assert!(folder.0.join("link.hex").is_symlink());
        assert_ne!(read("out.hex"), b"before");
        assert_eq!(mode("out.hex"), 0o600);
        assert_eq!(folder.unfinished(), [""; 0]);
        // A device is written directly.
        folder.ends("asm k.s -o /dev/null --format hex", 0);
        assert!(!Path::new("/dev/null").is_file());
    }
}
