//! The causes of traps.

use std::fmt;

use reconverge_isa::limits::INSTRUCTIONS;
use reconverge_simt::races::{Accessor, Hazard};
use reconverge_simt::{Lane, Mask};
use thiserror::Error;

use crate::code::CodeFault;
use crate::control::Stage;
use crate::flow::FlowFault;
use crate::words::KcacheMode;

/// Reason why a program traps. Some causes trap only in strict mode. In lenient mode, the program then continues with a
/// defined effect.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Cause {
    /// The words of the instruction have no meaning.
    #[error(transparent)]
    Code(#[from] CodeFault),
    /// The control flow of the program is malformed.
    #[error(transparent)]
    Flow(#[from] FlowFault),
    /// The program runs CALL_FS, but the launch has no fetch program.
    #[error("the program runs CALL_FS, but the launch has no fetch program")]
    NoFetchProgram,
    /// The program accesses a register that is not allocated. This access traps only in strict mode. In lenient mode, a
    /// read returns R0, and a write has no effect.
    #[error("register {register} is outside the {declared} that NUM_GPRS declares")]
    Register {
        /// Number of the register, including the index.
        register: i32,
        /// NUM_GPRS, the number of allocated registers.
        declared: u8,
    },
    /// The program uses a component of AR that the clause has not written. This use traps only in strict mode. In
    /// lenient mode, the component is 0.
    #[error("AR.{0} is used, but no MOVA of this clause has written it")]
    AddressRegister(char),
    /// The program uses aL outside every DX9 loop. This use traps only in strict mode. In lenient mode, aL is 0.
    #[error("aL is used outside every loop that has an index")]
    LoopIndex,
    /// The program accesses a global register that the launch does not have. This access traps only in strict mode. In
    /// lenient mode, a read returns R0, and a write has no effect.
    #[error("global register {register} is outside the {declared} of the launch")]
    GlobalRegister {
        /// Number of the register, including the index.
        register: i32,
        /// Number of global registers.
        declared: usize,
    },
    /// An instruction reads PV or PS for a slot that the previous group did not use. This read traps only in strict
    /// mode. In lenient mode, the read returns the latest earlier result of the slot.
    #[error("an instruction reads {0}, but the previous group has not defined {0}")]
    Previous(&'static str),
    /// An instruction reads a constant that the clause has not locked. This read traps only in strict mode. In lenient
    /// mode, the constant is 0.
    #[error("constant {index} of kcache set {set} is read, but its mode is {mode}")]
    NotLocked {
        /// Constant set, 0 or 1.
        set: u8,
        /// Index of the constant in the set's window.
        index: u8,
        /// KCACHE_MODE of the set.
        mode: KcacheMode,
    },
    /// A group follows an UPDATE_EXECUTE_MASK in the same clause. The group traps only in strict mode.
    #[error("a group follows UPDATE_EXECUTE_MASK in the same clause")]
    ExecuteMaskNotLast,
    /// The program contains an instruction that this kind of program may not contain. The instruction traps only in
    /// strict mode. In lenient mode, the instruction runs.
    #[error("{name} does not belong in a {stage:?} program")]
    WrongStage {
        /// The instruction.
        name: &'static str,
        /// The program's kind.
        stage: Stage,
    },
    /// An instruction fetches from a resource that is not bound. This fetch traps only in strict mode. In lenient mode,
    /// the fetch returns zeros.
    #[error("{what} {id} is not bound")]
    NoResource {
        /// Kind of resource.
        what: &'static str,
        /// Number of the resource.
        id: u8,
    },
    /// A SAMPLE_*_G runs in a clause that has not run SET_GRADIENTS. This SAMPLE_*_G traps only in strict mode. In
    /// lenient mode, the gradients are zero.
    #[error("gradients are used, but no SET_GRADIENTS of this clause has loaded them")]
    Gradients,
    /// A DATA_FORMAT that a buffer fetch cannot convert.
    #[error("data format {0} has no conversion")]
    Format(u32),
    /// An instruction stores outside its buffer. The store traps only in strict mode. In lenient mode, the store has no
    /// effect.
    #[error("{what} of lanes {lanes} is outside its buffer")]
    MemoryBounds {
        /// The instruction.
        what: &'static str,
        /// The lanes whose store is outside the buffer.
        lanes: Mask,
    },
    /// An instruction reads a dword of the local data share that no lane of the launch has written. This read traps
    /// only in strict mode. In lenient mode, the read returns 0.
    #[error("LOCAL_DS_READ by lane {}: nothing has written bank {bank}, dword {dword} before", .lane.0)]
    Unwritten {
        /// The bank.
        bank: u32,
        /// The dword in the bank.
        dword: u32,
        /// Number of the lane in its wavefront.
        lane: Lane,
    },
    /// Two wavefronts access the same dword of the local data share. At least one access is a write. R700 has no
    /// instruction that orders wavefronts. The race traps only in strict mode. In lenient mode, the accesses happen in
    /// the order of the wavefronts' numbers.
    #[error(
        "race on bank {bank}, dword {dword} of the local data share: {} and {}, and nothing orders wavefronts",
        .accesses[0], .accesses[1]
    )]
    Race {
        /// The bank.
        bank: u32,
        /// The dword in the bank.
        dword: u32,
        /// The two accesses. The earlier access comes first. The second access traps.
        accesses: Box<[ShareAccess; 2]>,
    },
    /// The wavefront has issued as many instructions as the watchdog allows.
    #[error("watchdog: no end after {0} instructions; {more}", more = INSTRUCTIONS.remedy())]
    Watchdog(u64),
}

/// One of the two accesses of a race on the local data share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareAccess {
    /// Whether the access is a write.
    pub writes: bool,
    /// Address of the instruction.
    pub pc: u32,
    /// The wavefront's number in the launch.
    pub wavefront: u32,
    /// Number of the lane in its wavefront.
    pub lane: Lane,
}

impl fmt::Display for ShareAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShareAccess { writes, pc, wavefront, lane } = self;
        let name = if *writes { "LOCAL_DS_WRITE" } else { "LOCAL_DS_READ" };
        write!(f, "{name} at {pc} by lane {} of wavefront {wavefront}", lane.0)
    }
}

impl Cause {
    /// Converts a hazard into the cause of a trap. The hazard belongs to an access to a dword of the local data share.
    pub(crate) fn of_hazard(
        hazard: Hazard,
        accessor: Accessor,
        writes: bool,
        (bank, dword): (u32, u32),
    ) -> Cause {
        let access = |Accessor { group: wavefront, lane, pc }, writes| ShareAccess {
            writes,
            pc,
            wavefront,
            lane: Lane(lane as u8),
        };
        match hazard {
            Hazard::Unwritten => Cause::Unwritten { bank, dword, lane: Lane(accessor.lane as u8) },
            Hazard::Race { earlier, stored } => Cause::Race {
                bank,
                dword,
                accesses: Box::new([access(earlier, stored), access(accessor, writes)]),
            },
        }
    }

    /// Returns the lanes that cause the trap, or `None` if all active lanes cause the trap.
    pub(crate) fn lanes(&self) -> Option<Mask> {
        match self {
            Cause::Unwritten { lane, .. } => Some(Mask::only(*lane)),
            Cause::Race { accesses, .. } => Some(Mask::only(accesses[1].lane)),
            _ => None,
        }
    }
}
