//! The signal handler for memory faults, and calls that continue after a fault.

use std::arch::naked_asm;
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use super::{Entry, Fault};
use crate::state::State;

/// The result of [`enter`] after a fault. Generated code never returns this value, because results of generated code
/// have only 32 bits.
const FAULT: u64 = 1 << 32;

/// State from which a call continues after a fault. [`enter`] and the handler write this state.
#[derive(Debug, Default)]
#[repr(C)]
struct Recovery {
    stack: usize,
    instruction: usize,
    fault: [usize; 2],
}

thread_local! {
    /// The innermost call of this thread.
    static INNERMOST: Cell<*mut Recovery> = const { Cell::new(null_mut()) };
}

/// Calls generated code.
///
/// # Safety
/// The caller must meet the requirements of the called code. After a fault, the state and all memory that the code
/// writes have undefined contents.
#[inline(always)]
pub(crate) unsafe fn call(code: Entry, state: *mut State) -> Result<u32, Fault> {
    let recovery = UnsafeCell::new(Recovery::default());
    let outer = INNERMOST.replace(recovery.get());
    // SAFETY: guaranteed by the caller.
    let result = unsafe { enter(state, code, recovery.get()) };
    INNERMOST.set(outer);
    if result & FAULT == 0 {
        return Ok(result as u32);
    }
    let [address, instruction] = recovery.into_inner().fault;
    Err(Fault { address, instruction })
}

/// Calls generated code. Before the call, this function saves the registers that a function must preserve. The function
/// also saves the state with which the handler returns to the caller.
///
/// # Safety
/// The caller must meet the requirements of the called code. In addition, `recovery` must be writable until this
/// function returns.
#[unsafe(naked)]
unsafe extern "sysv64" fn enter(state: *mut State, code: Entry, recovery: *mut Recovery) -> u64 {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        // This instruction aligns the stack again. The eight bytes hold MXCSR.
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "lea rax, [rip + 2f]",
        "mov [rdx], rsp",
        "mov [rdx + 8], rax",
        "call rsi",
        // The upper half of RAX may contain any bits, so this instruction clears the upper half.
        "mov eax, eax",
        "3:",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        // After a fault, the handler continues here, with the stack pointer of the call.
        "2:",
        "cld",
        "ldmxcsr [rsp]",
        "mov rax, {fault}",
        "jmp 3b",
        fault = const FAULT,
    )
}

/// A range of addresses of generated code. The handler recognises these addresses during the lifetime of the value.
#[derive(Debug)]
pub(crate) struct Watched(&'static Slot);

/// The addresses of a range of code, or zeros. Slots form a list. The handler can read the list at any time without a
/// lock, so the list only grows.
#[derive(Debug, Default)]
struct Slot {
    used: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    next: AtomicPtr<Slot>,
}

static WATCHED: AtomicPtr<Slot> = AtomicPtr::new(null_mut());

fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: slots are never freed.
    let at = |slot: &AtomicPtr<Slot>| unsafe { slot.load(Ordering::Acquire).as_ref::<'static>() };
    std::iter::successors(at(&WATCHED), move |slot| at(&slot.next))
}

impl Watched {
    pub(crate) fn new(code: &[u8]) -> Watched {
        let take = |slot: &&Slot| !slot.used.swap(true, Ordering::Acquire);
        let slot = slots().find(take).unwrap_or_else(|| {
            let slot = Box::leak(Box::new(Slot { used: AtomicBool::new(true), ..Slot::default() }));
            let mut first = WATCHED.load(Ordering::Relaxed);
            loop {
                slot.next.store(first, Ordering::Relaxed);
                match WATCHED.compare_exchange_weak(first, slot, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => return slot,
                    Err(other) => first = other,
                }
            }
        });
        let range = code.as_ptr_range();
        slot.start.store(range.start as usize, Ordering::Release);
        slot.end.store(range.end as usize, Ordering::Release);
        Watched(slot)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // The end of the range is set last and cleared first, so the handler never reads an invalid range.
        self.0.end.store(0, Ordering::Release);
        self.0.start.store(0, Ordering::Release);
        self.0.used.store(false, Ordering::Release);
    }
}

/// Returns whether an address is in generated code. Code that the current thread runs stays in the list during the run.
/// So the result is right for that code.
fn is_code(address: usize) -> bool {
    slots().any(|slot| {
        let end = slot.end.load(Ordering::Acquire);
        slot.start.load(Ordering::Acquire) <= address && address < end
    })
}

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The previous handlers of the signals. The function `install` stores these handlers.
static BEFORE: [Before; 2] = [Before::new(), Before::new()];

struct Before {
    known: AtomicBool,
    action: UnsafeCell<MaybeUninit<libc::sigaction>>,
}

// SAFETY: one thread writes the action and then sets `known`. Afterwards, threads only read the action.
unsafe impl Sync for Before {}

impl Before {
    const fn new() -> Before {
        Before { known: AtomicBool::new(false), action: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    fn get(&self) -> Option<libc::sigaction> {
        // SAFETY: `known` is set only after the action was written.
        self.known.load(Ordering::Acquire).then(|| unsafe { (*self.action.get()).assume_init() })
    }
}

/// Installs the handler, once per process. If the program installs another handler later, the later handler gets faults
/// first. As is usual for signal handlers, the later handler must pass unknown faults to this handler.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (signal, before) in SIGNALS.iter().zip(&BEFORE) {
            // SAFETY: all zeros are a valid action without flags. The handler has the signature that SA_SIGINFO
            // requires. The previous action is written before `known` is set.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&raw mut action.sa_mask);
                // This call reads the previous action, and the next call sets the new action. So the previous action is
                // known if a fault occurs between the calls.
                if libc::sigaction(*signal, std::ptr::null(), (*before.action.get()).as_mut_ptr()) == 0 {
                    before.known.store(true, Ordering::Release);
                    libc::sigaction(*signal, &raw const action, null_mut());
                }
            }
        }
    });
}

/// Continues the call in which generated code has faulted, or calls the previous handler.
unsafe extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes both pointers to a handler with SA_SIGINFO.
    let (info, registers) = unsafe { (&*info, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    let instruction = registers[libc::REG_RIP as usize] as usize;
    // `si_code` is not positive for signals that a process has sent. The code checks the address before it uses the
    // thread-local variable. The reason is that the first use of the variable in a thread could allocate memory. A
    // thread that runs generated code has already used the variable.
    if info.si_code > 0 && is_code(instruction) {
        let recovery = INNERMOST.get();
        if !recovery.is_null() {
            // SAFETY: `call` waits for the code, and `enter` has filled in the recovery.
            let recovery = unsafe { &mut *recovery };
            // SAFETY: the signal is a memory fault, so the information has an address.
            recovery.fault = [unsafe { info.si_addr() } as usize, instruction];
            registers[libc::REG_RSP as usize] = recovery.stack as i64;
            registers[libc::REG_RIP as usize] = recovery.instruction as i64;
            return;
        }
    }
    let number = usize::from(signal == libc::SIGBUS);
    let before = BEFORE[number].get();
    match before {
        Some(before) if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN => {
            // SAFETY: the flags of the action indicate the signature of the action's function.
            unsafe {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    type Long = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
                    let action = std::mem::transmute::<usize, Long>(before.sa_sigaction);
                    action(signal, std::ptr::from_ref(info).cast_mut(), context);
                } else {
                    type Short = unsafe extern "C" fn(i32);
                    std::mem::transmute::<usize, Short>(before.sa_sigaction)(signal);
                }
            }
        }
        // A process sent the signal, and the previous action ignores the signal.
        Some(before) if before.sa_sigaction == libc::SIG_IGN && info.si_code <= 0 => {}
        _ => {
            // The code removes the handler. After this handler returns, the instruction faults again and ends the
            // process. If a process sent the signal, the code below sends the signal again. SAFETY: the call only
            // changes the handler of the signal.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            if info.si_code <= 0 {
                // SAFETY: the call only sends a signal to this thread. The thread receives the signal when the handler
                // returns.
                unsafe { libc::raise(signal) };
            }
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
