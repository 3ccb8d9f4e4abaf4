//! Errors of a launch: the launch does not fit the machine, the program traps, or two engines differ.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use thiserror::Error;

use crate::machine::{Issue, Trap};

/// A group of a launch: lanes that share a program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupId {
    /// A group, identified by the number of its first lane in the launch.
    Lanes {
        /// First lane of the group.
        first: usize,
    },
    /// A warp in a block of a grid.
    Warp {
        /// Index of the block in x and y.
        block: [u32; 2],
        /// Number of the warp in the block.
        warp: u32,
    },
}

impl GroupId {
    /// Returns an address in the notation of the machine's listings. Addresses of warps count bytes and are
    /// hexadecimal. Other addresses are decimal.
    fn address(self, pc: u32) -> String {
        match self {
            GroupId::Lanes { .. } => pc.to_string(),
            GroupId::Warp { .. } => format!("{pc:#x}"),
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupId::Lanes { first } => write!(f, "group from lane {first}"),
            GroupId::Warp { block: [x, y], warp } => write!(f, "block ({x}, {y}), warp {warp}"),
        }
    }
}

/// A trap, with the group and the instruction that caused the trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTrap<Cause> {
    /// The group. Lane numbers of the trap are relative to this group.
    pub group: GroupId,
    /// Words of the instruction, or `None` if the machine's traps do not contain words. A word that does not exist is
    /// 0.
    pub words: Option<[u32; 2]>,
    /// Address, lanes and cause of the trap.
    pub trap: Trap<Cause>,
}

impl<Cause: fmt::Display> fmt::Display for GroupTrap<Cause> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupTrap { group, words, trap: Trap { pc, lanes, cause } } = self;
        write!(f, "trap at {}", group.address(*pc))?;
        if let Some([low, high]) = words {
            write!(f, " ({low:08x} {high:08x})")?;
        }
        write!(f, ", {group}, lanes {lanes}: {cause}")
    }
}

impl<Cause: fmt::Display + fmt::Debug> Error for GroupTrap<Cause> {}

/// The first difference between the engines, as text. A difference is a defect of an engine, not of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The group for which the engines differ.
    pub group: GroupId,
    /// The first instruction after which the engines differ, with the lanes for which the reference interpreter issues
    /// this instruction. This instruction is the last one in the range `instructions`. `None` if the group had already
    /// ended.
    pub at: Option<Issue>,
    /// A range of instructions after which the engines differ, if the fast engine runs the whole range at once.
    /// Instructions are counted from the first instruction of the group (Tesla: of the block). The search found no
    /// shorter range after which the engines differ. The range has one instruction if that instruction alone shows the
    /// difference.
    pub instructions: Range<u64>,
    /// The first instruction in the range `instructions`, with its active lanes.
    pub from: Option<Issue>,
    /// Whether the engines differ only if an observer receives events.
    pub observed: bool,
    /// Name of the item that differs.
    pub what: String,
    /// Value in the reference interpreter.
    pub reference: String,
    /// Value in the fast engine.
    pub fast: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            group,
            at,
            instructions: Range { start, end },
            from,
            observed,
            what,
            reference,
            fast,
        } = self;
        write!(f, "the engines differ: {group}, instruction {}", end.saturating_sub(1).max(*start))?;
        if let Some(Issue { pc, mask }) = at {
            write!(f, " at {} for lanes {mask}", group.address(*pc))?;
        }
        if end - start > 1 {
            write!(f, ", if the fast engine runs instructions {start}")?;
            if let Some(Issue { pc, .. }) = from {
                write!(f, " (at {})", group.address(*pc))?;
            }
            write!(f, " to {} at once", end - 1)?;
        }
        let observed = if *observed { " (only if an observer receives events)" } else { "" };
        write!(f, "{observed}: {what} is {reference}, fast {fast}")
    }
}

impl Error for Difference {}

/// A memory fault in code that the compiled engine generated for a program. The fault is a defect of the engine, not of
/// the program.
///
/// A fault ends the run like a panic, but prints no message. [`CodeFault::unwind`] starts the unwinding, and
/// [`CodeFault::caught`] catches the fault. After a fault, memory and registers of the launch are undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFault {
    /// Address of the instruction at which the group entered the code.
    pub pc: u32,
    /// Whether listings of the machine show addresses in hexadecimal.
    pub hexadecimal: bool,
    /// Address in the host's memory that the code accessed, if the operating system reports this address.
    pub address: usize,
}

impl CodeFault {
    /// Unwinds this thread with the fault, without a panic message.
    pub fn unwind(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// Runs a launch, and converts a fault of its generated code into an error.
    ///
    /// # Errors
    /// Returns the errors of `run`. If the generated code faults, returns the fault.
    pub fn caught<T, E: From<CodeFault>>(run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        // After a fault, no code uses the values that the run has changed. So the run is safe to unwind.
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| match payload.downcast::<CodeFault>() {
            Ok(fault) => Err((*fault).into()),
            Err(other) => resume_unwind(other),
        })
    }
}

impl fmt::Display for CodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CodeFault { pc, hexadecimal, address } = self;
        f.write_str("internal error of the compiled engine: the generated code that starts at ")?;
        match hexadecimal {
            true => write!(f, "{pc:#x}")?,
            false => write!(f, "{pc}")?,
        }
        write!(f, " accessed host address {address:#x}, which does not belong to the launch; ")?;
        f.write_str("use the fast engine, which does not generate code")
    }
}

impl Error for CodeFault {}

/// Reason why a launch fails.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError<Launch, Cause> {
    /// The launch does not fit the machine.
    #[error(transparent)]
    Launch(Launch),
    /// The program trapped.
    #[error(transparent)]
    Trap(GroupTrap<Cause>),
    /// The engines differ ([`Engine::Lockstep`](crate::Engine::Lockstep)).
    #[error(transparent)]
    Differ(Box<Difference>),
    /// The code of the compiled engine caused a memory fault.
    #[error(transparent)]
    Fault(CodeFault),
}

impl<Launch, Cause> From<CodeFault> for RunError<Launch, Cause> {
    fn from(fault: CodeFault) -> Self {
        RunError::Fault(fault)
    }
}

impl<Launch, Cause> From<GroupTrap<Cause>> for RunError<Launch, Cause> {
    fn from(trap: GroupTrap<Cause>) -> Self {
        RunError::Trap(trap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::Mask;

    fn trap(group: GroupId, words: Option<[u32; 2]>) -> GroupTrap<&'static str> {
        GroupTrap { group, words, trap: Trap { pc: 0x48, lanes: Mask(0x80), cause: "no such register" } }
    }

    #[test]
    fn a_trap_names_address_words_group_and_lanes() {
        let warp = GroupId::Warp { block: [3, 0], warp: 1 };
        assert_eq!(
            trap(warp, Some([0xd00e_0e01, 0xa0c0_0780])).to_string(),
            "trap at 0x48 (d00e0e01 a0c00780), block (3, 0), warp 1, lanes 7: no such register"
        );
        let error: RunError<fmt::Error, &str> = trap(GroupId::Lanes { first: 16 }, None).into();
        assert_eq!(error.to_string(), "trap at 72, group from lane 16, lanes 7: no such register");
    }

    #[test]
    fn a_fault_of_code_is_an_error_on_whichever_thread_it_is() {
        let fault = CodeFault { pc: 0x48, hexadecimal: true, address: 0x10 };
        let run = |jobs: usize| -> Result<(), RunError<fmt::Error, &str>> {
            CodeFault::caught(|| {
                let work = |(): &mut (), piece: usize| {
                    if piece == 70 {
                        fault.unwind()
                    }
                };
                crate::workers::hand_out(jobs, 0..100, || (), work);
                Ok(())
            })
        };
        for jobs in [1, 4] {
            assert_eq!(run(jobs), Err(RunError::Fault(fault)));
        }
        let text = fault.to_string();
        let start = "internal error of the compiled engine: the generated code that starts at 0x48 accessed ";
        assert!(text.starts_with(start), "{text}");
        let other =
            catch_unwind(|| CodeFault::caught(|| -> Result<(), CodeFault> { resume_unwind(Box::new(7)) }));
        assert_eq!(other.unwrap_err().downcast_ref(), Some(&7), "a panic stays one");
    }

    #[test]
    fn a_difference_says_where_it_is_and_how_it_shows() {
        let mut difference = Difference {
            group: GroupId::Lanes { first: 16 },
            at: Some(Issue { pc: 5, mask: Mask::first(4) }),
            instructions: 30..31,
            from: Some(Issue { pc: 5, mask: Mask::first(4) }),
            observed: false,
            what: "R1.x of lane 2".to_owned(),
            reference: "0x0".to_owned(),
            fast: "0x3f800000".to_owned(),
        };
        assert_eq!(
            difference.to_string(),
            "the engines differ: group from lane 16, instruction 30 at 5 for lanes 0-3: R1.x of lane 2 is 0x0, \
             fast 0x3f800000"
        );
        difference.instructions.end = 37;
        difference.at = Some(Issue { pc: 11, mask: Mask::first(2) });
        difference.observed = true;
        assert_eq!(
            difference.to_string(),
            "the engines differ: group from lane 16, instruction 36 at 11 for lanes 0-1, if the fast engine runs \
             instructions 30 (at 5) to 36 at once (only if an observer receives events): R1.x of lane 2 is 0x0, \
             fast 0x3f800000"
        );
    }
}
