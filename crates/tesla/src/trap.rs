//! Errors of a program: actions that the hardware forbids, or that the documents leave undefined. (10)
//!
//! Names in capitals are the names of the error registers \[mp.xml\] and of the memory traps \[mpc.xml\].

use std::fmt;

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_simt::races::{Accessor, Hazard};
use thiserror::Error;

use crate::flow::{Fault, WARP};
pub use crate::inst::Space;

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Space::Const(index) => write!(f, "c{index}[]"),
            Space::Local => f.write_str("l[]"),
            Space::Shared => f.write_str("s[]"),
            Space::Global(index) => write!(f, "g{index}[]"),
            Space::Attribute => f.write_str("a[]"),
            Space::Primitive => f.write_str("p[]"),
            Space::Varying => f.write_str("v[]"),
            Space::Output => f.write_str("o[]"),
        }
    }
}

/// The kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic operation that returns the old value.
    Atom,
    /// A reduction.
    Red,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atom => "atomic",
            Access::Red => "reduction",
        })
    }
}

/// The reason for which a trap has stopped a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// An error of the token stack.
    #[error("{0}")]
    Flow(#[from] Fault),
    /// TRAP_INSTRUCTION: the program executed `trap`.
    #[error("TRAP_INSTRUCTION: the program executed `trap`")]
    TrapInstruction,
    /// ILLEGAL_OPCODE and all other decode errors: the words are not an instruction of this chip and stage.
    #[error("ILLEGAL_OPCODE: {0}")]
    Undecodable(String),
    /// UNALIGNED_LONG_INSTRUCTION: a two-word instruction starts at an odd word.
    #[error("UNALIGNED_LONG_INSTRUCTION: a two-word instruction at an odd word")]
    UnalignedLongInstruction,
    /// The program counter is outside the code.
    #[error("no code at this address")]
    OutsideCode,
    /// ILLEGAL_POSTINCR: this address register cannot be incremented.
    #[error("ILLEGAL_POSTINCR: $a{0} cannot be incremented")]
    IllegalPostincr(u8),
    /// An address register that does not exist.
    #[error("$a{0} does not exist, or its use is unknown")]
    NoAddressRegister(u8),
    /// The address is outside the memory: a local, shared or global limit is exceeded.
    #[error("{access} of {bytes} bytes at {space} {address:#x}: outside every buffer")]
    Memory {
        /// The memory space.
        space: Space,
        /// The kind of access.
        access: Access,
        /// Byte address in the space.
        address: u32,
        /// Size of the access in bytes.
        bytes: u32,
    },
    /// A read of bytes in s[] that the block has not written. This trap occurs only in strict mode. In lenient mode,
    /// the read returns zeros.
    #[error("read of {bytes} bytes at s[{address:#x}], which nothing in this block has written")]
    Unwritten {
        /// Byte address in s[].
        address: u32,
        /// Size of the access in bytes.
        bytes: u32,
    },
    /// Two warps access the same bytes of s[] without a barrier between the two accesses. At least one access is a
    /// store. This trap occurs only in strict mode. In lenient mode, the accesses take effect in the order in which the
    /// warps run.
    #[error("race on s[{address:#x}]: {} and {}, without a barrier between them", .accesses[0], .accesses[1])]
    Race {
        /// Byte address in s[].
        address: u32,
        /// The earlier access, and the access that traps.
        accesses: Box<[SharedAccess; 2]>,
    },
    /// An input word that the launch does not provide.
    #[error("{space} {address:#x}: the launch does not provide this input")]
    NoInput {
        /// The space: a[], p[] or v[].
        space: Space,
        /// Byte address in the space.
        address: u32,
    },
    /// TIMEOUT: the watchdog has stopped the program.
    #[error("TIMEOUT: the program has not ended after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Timeout(u64),
    /// A `bar` with a barrier that the program did not allocate.
    #[error("barrier {0} is not allocated")]
    NoBarrier(u8),
    /// Every warp that has not ended waits at a barrier, so no barrier can become complete.
    #[error("a barrier that can never be complete: {}", Waiting(.0))]
    BarrierNever(Vec<(u32, u8)>),
    /// A texture that the launch does not provide.
    #[error("texture {0} is not bound")]
    NoTexture(u8),
    /// A sampler that the launch does not provide.
    #[error("sampler {0} is not bound")]
    NoSampler(u8),
    /// An instruction that the documents do not describe.
    #[error("{0}: not documented, so it cannot be executed")]
    Undocumented(&'static str),
}

/// An access to s[] that is part of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAccess {
    /// Read or write.
    pub access: Access,
    /// Address of the instruction.
    pub pc: u32,
    /// Number of the warp in the block.
    pub warp: u32,
    /// Number of the lane in the warp.
    pub lane: u32,
}

impl SharedAccess {
    fn of(accessor: Accessor, access: Access) -> Self {
        let Accessor { group: warp, lane, pc } = accessor;
        SharedAccess { access, pc, warp, lane }
    }
}

impl fmt::Display for SharedAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SharedAccess { access, pc, warp, lane } = self;
        let thread = warp * WARP as u32 + lane;
        write!(f, "{access} at {pc:#x} by thread {thread} (warp {warp}, lane {lane})")
    }
}

impl Cause {
    /// Returns the cause of a trap for a hazard that the search for races has found.
    pub(crate) fn of_hazard(
        hazard: Hazard,
        accessor: Accessor,
        access: Access,
        address: u32,
        bytes: u32,
    ) -> Cause {
        match hazard {
            Hazard::Unwritten => Cause::Unwritten { address, bytes },
            Hazard::Race { earlier, stored } => {
                let before = if stored { Access::Write } else { Access::Read };
                let accesses = [SharedAccess::of(earlier, before), SharedAccess::of(accessor, access)];
                Cause::Race { address, accesses: Box::new(accesses) }
            }
        }
    }
}

/// Displays warps, and the barrier at which each warp waits.
struct Waiting<'a>(&'a [(u32, u8)]);

impl fmt::Display for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (warp, barrier)) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            write!(f, "{separator}warp {warp} waits at barrier {barrier}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_barrier_names_its_warps() {
        let text = Cause::BarrierNever(vec![(0, 0), (3, 1)]).to_string();
        assert_eq!(
            text,
            "a barrier that can never be complete: warp 0 waits at barrier 0, warp 3 waits at barrier 1"
        );
    }
}
