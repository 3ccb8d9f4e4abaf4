//! Tests with hand-written code that faults.

use std::arch::asm;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::AtomicU32;

use super::*;
use crate::pages::Pages;

/// Code that changes every register that a function must preserve, MXCSR and the stack, and then reads the word at RDI.
const READS: [u8; 33] = [
    0x31, 0xdb, 0x31, 0xed, 0x45, 0x31, 0xe4, 0x45, 0x31, 0xed, 0x45, 0x31, 0xf6, 0x45, 0x31,
    0xff, // zeros
    0x68, 0xc0, 0x9f, 0x00, 0x00, 0x0f, 0xae, 0x14, 0x24, // push 0x9fc0; ldmxcsr [rsp]
    0x48, 0x83, 0xe4, 0xc0, // and rsp, -64
    0xfd, // std
    0x8b, 0x07, // mov eax, [rdi]
    0xcc,
];

/// Code that returns the word at RDI.
const RETURNS: [u8; 3] = [0x8b, 0x07, 0xc3];

fn mxcsr() -> u32 {
    let mut word = 0u32;
    // SAFETY: the instruction stores a word into `word`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word) };
    word
}

fn run(pages: &Pages, address: usize) -> Result<u32, Fault> {
    // SAFETY: the code is a function with this signature, unless it faults.
    let code: Entry = unsafe { std::mem::transmute(pages.address(0)) };
    // SAFETY: the code reads the address. If the address cannot be read, the code faults, and these tests check the
    // fault.
    unsafe { call(code, std::ptr::without_provenance_mut(address)) }
}

fn pages(code: &[u8]) -> Pages {
    Pages::new(code).expect("pages")
}

/// Addresses that cannot be accessed: one near 0, and one that is not canonical on current processors.
const NOWHERE: [usize; 2] = [0x10, 1 << 63];

#[test]
fn a_fault_of_code_is_a_value_as_often_as_it_comes() {
    let (reads, returns) = (pages(&READS), pages(&RETURNS));
    let word = u32::MAX;
    for address in NOWHERE.repeat(500) {
        let mode = mxcsr();
        let Err(fault) = run(&reads, address) else { panic!("{address:#x} can be read") };
        assert_eq!(mxcsr(), mode);
        assert_eq!(fault.instruction, reads.address(30) as usize);
        // The processor does not report the address of an access to a non-canonical address.
        if address == NOWHERE[0] {
            assert_eq!(fault.address, address);
        }
        assert_eq!(run(&returns, (&raw const word).addr()), Ok(word));
    }
}

#[test]
fn threads_fault_while_others_make_and_drop_code() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let reads = pages(&READS);
                    assert!(run(&reads, NOWHERE[0]).is_err());
                }
            });
            scope.spawn(|| {
                let reads = pages(&READS);
                for _ in 0..3000 {
                    assert!(run(&reads, NOWHERE[0]).is_err());
                }
            });
        }
    });
}

/// Returns code that calls [`faults_outside`]. The called function is not generated code.
fn calls_outside() -> Pages {
    let mut code = vec![0x48, 0x83, 0xec, 0x08, 0x48, 0xb8]; // sub rsp, 8; mov rax, …
    code.extend((faults_outside as *const () as usize).to_le_bytes());
    code.extend([0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3]); // call rax; add rsp, 8; ret
    pages(&code)
}

extern "sysv64" fn faults_outside() -> u32 {
    // SAFETY: this read is deliberately not sound, because it must fault.
    unsafe { std::ptr::without_provenance::<u32>(NOWHERE[0]).read_volatile() }
}

static SEEN: AtomicU32 = AtomicU32::new(0);
static OURS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn exits_with_42(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(42) }
}

extern "C" fn exits_with_43(_: i32) {
    // SAFETY: the call ends the process.
    unsafe { libc::_exit(43) }
}

/// Counts a fault, and calls the previous handler.
extern "C" fn continues(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::Relaxed);
    type Long = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: the address is the address of a handler with SA_SIGINFO.
    let ours = unsafe { std::mem::transmute::<usize, Long>(OURS.load(Ordering::Relaxed)) };
    ours(signal, info, context);
}

/// Sets a handler for SIGSEGV and returns the previous handler.
fn set(handler: usize, flags: i32) -> usize {
    // SAFETY: the handler has the signature that its flags require.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before), 0);
        before.sa_sigaction
    }
}

/// Runs in a separate process. Installs the handlers that `handlers` names, lets code fault, and then performs the
/// action that `then` names.
fn in_a_process(handlers: &str, then: &str) -> ! {
    match handlers {
        "runtime" => {}
        "default" => _ = set(libc::SIG_DFL, 0),
        "ignore" => _ = set(libc::SIG_IGN, 0),
        "long" => _ = set(exits_with_42 as *const () as usize, libc::SA_SIGINFO),
        "short" => _ = set(exits_with_43 as *const () as usize, 0),
        _ => {
            install();
            OURS.store(set(continues as *const () as usize, libc::SA_SIGINFO), Ordering::Relaxed);
        }
    }
    assert!(run(&pages(&READS), NOWHERE[0]).is_err());
    assert_eq!(SEEN.load(Ordering::Relaxed), u32::from(handlers == "after"));
    match then {
        "outside" => _ = faults_outside(),
        "called" => _ = run(&calls_outside(), 0),
        // SAFETY: the call sends a signal to this thread.
        _ => _ = unsafe { libc::raise(libc::SIGSEGV) },
    }
    assert!(run(&pages(&READS), NOWHERE[0]).is_err());
    std::process::exit(44);
}

#[test]
fn a_fault_outside_code_is_what_it_was_without_this_handler() {
    const NAME: &str = "fault::linux::tests::a_fault_outside_code_is_what_it_was_without_this_handler";
    if let Ok(request) = std::env::var("FAULT_IN_A_PROCESS") {
        let (handlers, then) = request.split_once(' ').expect("two words");
        in_a_process(handlers, then);
    }
    for (handlers, then, expected) in [
        ("runtime", "outside", Err(libc::SIGSEGV)),
        ("runtime", "called", Err(libc::SIGSEGV)),
        ("runtime", "sent", Err(libc::SIGSEGV)),
        ("default", "outside", Err(libc::SIGSEGV)),
        ("default", "called", Err(libc::SIGSEGV)),
        ("default", "sent", Err(libc::SIGSEGV)),
        ("ignore", "outside", Err(libc::SIGSEGV)),
        ("ignore", "sent", Ok(44)),
        ("long", "outside", Ok(42)),
        ("long", "called", Ok(42)),
        ("long", "sent", Ok(42)),
        ("short", "outside", Ok(43)),
        ("short", "sent", Ok(43)),
        ("after", "outside", Err(libc::SIGSEGV)),
        ("after", "sent", Err(libc::SIGSEGV)),
    ] {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", NAME, "--nocapture"])
            .env("FAULT_IN_A_PROCESS", format!("{handlers} {then}"));
        let output = command.output().expect("a process");
        let status = output.status.code().ok_or(output.status.signal().unwrap_or(0));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(status, expected, "{handlers}, {then}: {text}");
    }
}
