//! The result of decoding: one [`Inst`] for each instruction. All components that use decoded instructions use this
//! type.
//!
//! Execution does not access the table of encodings. Every modifier is a typed value. Most modifiers are inside the
//! [`Op`], in the types that the functions of [`crate::lane`] take. The meaning of an operation is therefore one call:
//! `Arith::Add { addition, width, sat }` is `lane::integer::add(addition, width, sat, a, b, carry)`.
//!
//! Conventions for all forms (short, immediate, long, control):
//! * `src[0]`, `src[1]`, `src[2]` are the sources in the order of the assembly text, whatever their field in the
//!   encoding. For example, the long f32 `add` encodes its second operand in the field SRC3, but here the operand is
//!   `src[1]`. In short and immediate `mad` and `sad`, the destination register is also the accumulator, so `src[2]` is
//!   the destination register.
//! * If an instruction does not have a source, the source is [`Operand::None`].
//! * Memory offsets are in bytes, already scaled and sign-extended.
//! * Code addresses are **byte** addresses in the code window. A code address is 4 times the word address in the
//!   encoding.
//!
//! Numbers in parentheses are sections of docs/tesla.md.

use reconverge_simt::Fidelity;

pub use crate::arith::Arith;
pub use crate::control::{BarrierCount, Control};
use crate::lane::atomic::{Atomic, Atomic64};
use crate::lane::interpolate::Position;
use crate::lane::quad::{QuadOp, QuadSource};
use crate::lane::{Flags, Modifiers};

reconverge_isa::choices! {
    /// The chip groups that differ in their instruction set, oldest first. (1.1)
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Chip {
        /// 0x50: sm_10.
        G80 = "G80",
        /// 0x84 to 0x98: sm_11.
        G84 = "G84",
        /// 0xa0, GT200: sm_13. No other group has f64.
        G200 = "G200",
        /// 0xaa, 0xac: like G200, but without f64.
        Mcp77 = "MCP77",
        /// 0xa3, 0xa5, 0xa8, 0xaf: sm_12, with the additions of Direct3D 10.1.
        Gt215 = "GT215",
    }
}

impl Chip {
    /// Returns the aliases of the chip group: names of products, the CUDA target, and chip numbers.
    #[rustfmt::skip]
    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Chip::G80 => &["SM_10", "NV50"],
            Chip::G84 => &["G86", "G92", "G94", "G96", "G98", "SM_11", "NV84", "NV86", "NV92", "NV94", "NV96", "NV98"],
            Chip::G200 => &["GT200", "SM_13", "NVA0"],
            Chip::Mcp77 => &["MCP79", "MCP7A", "NVAA", "NVAC"],
            Chip::Gt215 => &["GT212", "GT214", "GT216", "GT218", "MCP89", "SM_12", "NVA3", "NVA5", "NVA8", "NVAF"],
        }
    }

    /// Returns the chip with this name, alias or chip number (`50`, `0xa0`). Names and aliases may be in upper or lower
    /// case.
    pub fn from_name(name: &str) -> Option<Chip> {
        let name = name.trim().to_ascii_uppercase();
        let is = |chip: &Chip| chip.name() == name || chip.aliases().contains(&name.as_str());
        let number = || u32::from_str_radix(name.strip_prefix("0X").unwrap_or(&name), 16).ok();
        Chip::ALL.into_iter().find(is).or_else(|| Chip::from_id(number()?))
    }

    /// Returns the chip group that contains a chip number. (1.1)
    pub const fn from_id(id: u32) -> Option<Chip> {
        Some(match id {
            0x50 => Chip::G80,
            0x84 | 0x86 | 0x92 | 0x94 | 0x96 | 0x98 => Chip::G84,
            0xa0 => Chip::G200,
            0xaa | 0xac => Chip::Mcp77,
            0xa3 | 0xa5 | 0xa8 | 0xaf => Chip::Gt215,
            _ => return None,
        })
    }

    /// Returns the CUDA target with the features of this chip. (1.1)
    pub const fn cuda_target(self) -> &'static str {
        match self {
            Chip::G80 => "sm_10",
            Chip::G84 => "sm_11",
            Chip::Mcp77 | Chip::Gt215 => "sm_12",
            Chip::G200 => "sm_13",
        }
    }

    /// Returns whether the chip has the feature `sm12`: locks on s[], `vote`, 64-bit atomics, `sat` on f32 `mul`.
    pub const fn has_sm12(self) -> bool {
        match self {
            Chip::G80 | Chip::G84 => false,
            Chip::G200 | Chip::Mcp77 | Chip::Gt215 => true,
        }
    }
}

reconverge_isa::choices! {
    /// The program types, in the order of the pipeline. The meaning of an encoding can depend on the program type.
    /// (1.2)
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Stage {
        /// VP, a vertex program.
        Vertex = "VP",
        /// GP, a geometry program.
        Geometry = "GP",
        /// FP, a fragment program.
        Fragment = "FP",
        /// CP, a compute program.
        Compute = "CP",
    }
}

impl Stage {
    /// Returns the stage with this name. For example, the vertex stage is `VP`, `vp` or `vertex`.
    pub fn from_name(name: &str) -> Option<Stage> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "vp" | "vertex" => Stage::Vertex,
            "gp" | "geometry" => Stage::Geometry,
            "fp" | "fragment" => Stage::Fragment,
            "cp" | "compute" => Stage::Compute,
            _ => return None,
        })
    }

    /// Returns the stage of a container's program as the type of this machine. Returns `None` if this machine does not
    /// have the stage.
    pub const fn of(stage: reconverge_isa::program::Stage) -> Option<Stage> {
        use reconverge_isa::program::Stage as Any;
        match stage {
            Any::Vertex => Some(Stage::Vertex),
            Any::Geometry => Some(Stage::Geometry),
            Any::Fragment => Some(Stage::Fragment),
            Any::Compute => Some(Stage::Compute),
            Any::GsCopy | Any::Pixel | Any::Fetch => None,
        }
    }

    /// Returns the stage as the type that containers use.
    pub const fn any(self) -> reconverge_isa::program::Stage {
        use reconverge_isa::program::Stage as Any;
        match self {
            Stage::Vertex => Any::Vertex,
            Stage::Geometry => Any::Geometry,
            Stage::Fragment => Any::Fragment,
            Stage::Compute => Any::Compute,
        }
    }
}

/// The encoding form of an instruction. (2)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One word. The instruction has no predicate and does not write a `$c`.
    Short,
    /// Two words, of which the second is mostly an immediate. The instruction has no predicate and does not write a
    /// `$c`.
    Immediate,
    /// Two words. The instruction has fields for a predicate, a `$c` output, exit and join.
    Long,
    /// Two words: a control-flow instruction.
    Control,
    /// One word: the control-flow instructions `trap` and `brkpt`.
    ShortControl,
}

impl Form {
    /// Returns the length of the instruction in words.
    pub const fn words(self) -> u32 {
        match self {
            Form::Short | Form::ShortControl => 1,
            Form::Immediate | Form::Long | Form::Control => 2,
        }
    }

    /// Returns the length of the instruction in bytes, by which the program counter advances.
    pub const fn bytes(self) -> u32 {
        4 * self.words()
    }
}

/// The exit or join modifier of a long instruction. Neither modifier is predicated. (2.2, 9.3)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum End {
    /// No exit and no join.
    #[default]
    None,
    /// All active lanes end after the instruction.
    Exit,
    /// The warp joins before the instruction. The join may switch the warp to another path.
    Join,
}

/// A condition on the flags of a `$c` register. A code from 0 to 31 represents the condition. (2.3)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition(u8);

/// For each condition code, the truth table of the condition: bit f is the result for the flag nibble f. (2.3)
///
/// Codes 0x14 to 0x1b are unassigned. Measurements show that their conditions are always false (13.1).
const CONDITIONS: [u16; 32] = [
    0x0000, 0xbb44, 0x2222, 0x3366, 0x4411, 0x5555, 0xcc33, 0x7777, // never l e le g lg ge lge
    0x8888, 0x33cc, 0xaaaa, 0xbbee, 0xcc99, 0xdddd, 0x44bb, 0xffff, // u lu eu leu gu lgu geu always
    0xff00, 0xf0f0, 0x5050, 0xcccc, 0, 0, 0, 0, // o c a s
    0, 0, 0, 0, 0x3333, 0xafaf, 0x0f0f, 0x00ff, // ns na nc no
];

impl Condition {
    /// The condition that is false for all flags.
    pub const NEVER: Condition = Condition(0);
    /// The condition that is true for all flags.
    pub const ALWAYS: Condition = Condition(15);

    /// Returns the condition of a 5-bit code; higher bits are ignored.
    pub const fn from_code(code: u8) -> Condition {
        Condition(code & 31)
    }

    /// Returns the code, 0 to 31.
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns the truth table: bit f is the result for the flag nibble f.
    pub const fn table(self) -> u16 {
        CONDITIONS[self.0 as usize]
    }

    /// Returns whether the condition is true for these flags.
    #[inline(always)]
    pub const fn holds(self, flags: Flags) -> bool {
        self.table() >> flags.bits() & 1 != 0
    }
}

/// The predicate of an instruction. The active lanes whose `$c` satisfies the condition execute the instruction. (2.2)
///
/// If the instruction also reads a `$c` as data (`addc`), the data and the predicate come from one `$c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The condition. Instructions without a predicate have [`Condition::ALWAYS`].
    pub condition: Condition,
    /// Number of the `$c`, 0 to 3. 0 for short and immediate forms.
    pub c: u8,
}

impl Guard {
    /// The guard that holds for all active lanes.
    pub const ALWAYS: Guard = Guard { condition: Condition::ALWAYS, c: 0 };

    /// Returns whether the guard holds for every lane, whatever its flags.
    pub const fn is_always(self) -> bool {
        self.condition.0 == Condition::ALWAYS.0
    }
}

/// A 16-bit half of a general register. The value is the field F of the encoding: the low half of `$r<F/2>` for even F,
/// and the high half for odd F. (1.4)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Half(pub u8);

impl Half {
    /// Returns the number of the general register.
    #[inline(always)]
    pub const fn register(self) -> u8 {
        self.0 >> 1
    }

    /// Returns whether the value is the upper half of its register.
    #[inline(always)]
    pub const fn is_high(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A memory space. (1.7)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// c0..c15[], the constant banks.
    Const(u8),
    /// l[], the local memory of a thread.
    Local,
    /// s[], the shared memory of a block.
    Shared,
    /// g0..g15[], segments of global memory.
    Global(u8),
    /// a[], the inputs of vertex and geometry programs.
    Attribute,
    /// p[], the attributes of the vertices of a primitive.
    Primitive,
    /// v[], the interpolants of fragment programs.
    Varying,
    /// o[], the outputs.
    Output,
}

/// The width of an access in bytes, and the extension of a load. (3.3, 4)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A byte, zero-extended.
    U8,
    /// A byte, sign-extended.
    S8,
    /// Two bytes, zero-extended.
    U16,
    /// Two bytes, sign-extended.
    S16,
    /// Four bytes.
    B32,
    /// Eight bytes, low word first.
    B64,
    /// Sixteen bytes, low word first.
    B128,
}

impl Access {
    /// Returns the number of bytes that an access moves.
    pub const fn bytes(self) -> u32 {
        match self {
            Access::U8 | Access::S8 => 1,
            Access::U16 | Access::S16 => 2,
            Access::B32 => 4,
            Access::B64 => 8,
            Access::B128 => 16,
        }
    }

    /// Returns whether a load sign-extends.
    pub const fn is_signed(self) -> bool {
        match self {
            Access::S8 | Access::S16 => true,
            Access::U8 | Access::U16 | Access::B32 | Access::B64 | Access::B128 => false,
        }
    }
}

/// The base of a memory operand's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// An address register `$a0` to `$a7`, 16 bits. `$a0` reads 0. Operands that cannot be indexed have the base `$a0`.
    A(u8),
    /// A general register, 32 bits. Only operands in g[] have this base.
    R(u8),
}

/// A memory operand. (3.3)
///
/// Without `increment`, the byte address is base + offset. If the base is an `$a`, the address has 16 bits. With
/// `increment`, the address is the base alone, and after the access the `$a` becomes `$a` + offset (16 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mem {
    /// The space, with its bank.
    pub space: Space,
    /// Width and extension. `access` is the width of the memory access for a b16 operand in c[], a[] or p[] of an
    /// ordinary instruction.
    pub access: Access,
    /// The register to which the offset is added.
    pub base: Base,
    /// Whether the access has a post-increment.
    pub increment: bool,
    /// Offset in bytes. The offset is signed if the encoding has a sign (post-increment of short and long operands).
    pub offset: i32,
}

/// A special register. (1.5)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// 0: numbers of the lane, warp, multiprocessor and TPC.
    Physid,
    /// 1: cycle counter.
    Clock,
    /// 2: reads 0.
    Sr2,
    /// 3: spacing of the attributes of a vertex.
    Vstride,
    /// 4 to 7: performance counters, numbered 0 to 3 here.
    Pm(u8),
    /// 8: sample number.
    Sampleid,
    /// 9 to 15: unknown. The machine description recommends that these registers read 0.
    Unknown(u8),
}

impl Special {
    /// Returns the register with this 4-bit number; higher bits are ignored.
    pub const fn from_code(code: u8) -> Special {
        match code & 15 {
            0 => Special::Physid,
            1 => Special::Clock,
            2 => Special::Sr2,
            3 => Special::Vstride,
            code @ 4..=7 => Special::Pm(code - 4),
            8 => Special::Sampleid,
            code => Special::Unknown(code),
        }
    }
}

/// A source of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The instruction does not have this source.
    #[default]
    None,
    /// A general register `$r`, 32 bits.
    R32(u8),
    /// A half of a `$r`.
    R16(Half),
    /// An aligned pair of registers. The number is as encoded; the effect of an odd number is undefined.
    R64(u8),
    /// Four registers. The number is as encoded.
    R128(u8),
    /// An immediate. 16-bit operations use the low half of the immediate.
    Imm(u32),
    /// Memory that the instruction reads, or the address of a load or store.
    Mem(Mem),
    /// An address register `$a`, zero-extended.
    A(u8),
    /// A condition register `$c`, zero-extended.
    C(u8),
    /// A special register.
    Special(Special),
}

impl Operand {
    /// Returns the memory operand, if this source is a memory operand.
    pub const fn mem(&self) -> Option<&Mem> {
        if let Operand::Mem(mem) = self { Some(mem) } else { None }
    }
}

/// The destination of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dst {
    /// The instruction has no result. The instruction may affect flags, memory or control flow.
    #[default]
    None,
    /// The bit bucket: the result is dropped, but flags are still written.
    Discard,
    /// A general register `$r`, 32 bits.
    R32(u8),
    /// A half of a `$r`. The instruction does not change the other half of the `$r`.
    R16(Half),
    /// An aligned pair of registers. The number is as encoded.
    R64(u8),
    /// Four registers. The number is as encoded.
    R128(u8),
    /// An address register `$a`, which receives the low 16 bits of the result.
    A(u8),
    /// `$c`, for `mov $c, $r` and `vote`. The instruction writes this register even if `Inst::cdst` is `None`.
    C(u8),
    /// o[] at a byte address that is a multiple of 4: 32 bits.
    Out32(u16),
    /// o[] at a byte address that is a multiple of 4. Both halves of the word receive the 16-bit result.
    Out16(u16),
}

/// The operation of a texture instruction. (6.9)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TexOp {
    /// texauto
    Auto,
    /// texbias
    Bias,
    /// texlod
    Lod,
    /// texfetch
    Fetch,
    /// texsize
    Size,
    /// texcsaa
    Csaa,
    /// texgather
    Gather,
    /// texprep
    Prep,
    /// texquerylod
    QueryLod,
}

/// The fields of a texture instruction. The base register of the destination is also the first source register. (6.9)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tex {
    /// The operation.
    pub op: TexOp,
    /// Whether the instruction has the cube form.
    pub cube: bool,
    /// Whether to skip lanes whose dead bit is set.
    pub live: bool,
    /// Whether derivatives are used outside fragment programs as well.
    pub deriv: bool,
    /// Number of the first register of the sources and of the results.
    pub base: u8,
    /// Number of source registers, 1 to 4.
    pub count: u8,
    /// Mask of the components that the instruction writes to registers: x = 1, y = 2, z = 4, w = 8. Other components do
    /// not use a register.
    pub mask: u8,
    /// Texture number.
    pub texture: u8,
    /// Sampler number.
    pub sampler: u8,
    /// Texel offsets in x, y, z: -8 to 7.
    pub offset: [i8; 3],
}

/// Defines a class of operations. Each operation has a name for reports and a grade of exactness.
macro_rules! operations {
    (
        $(#[$docs:meta])*
        $Class:ident { $(
            $(#[$doc:meta])*
            $Name:ident $(($inner:ty))? $({ $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })?
                => $name:literal, $grade:ident;
        )* }
    ) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Class { $(
            $(#[$doc])*
            $Name $(($inner))? $({ $($(#[$field_doc])* $field: $type,)* })?,
        )* }

        impl $Class {
            /// Returns the name of the operation in reports, and the exactness of the operation with any modifiers.
            pub const fn fidelity(&self) -> (&'static str, Fidelity) {
                match self { $( $Class::$Name { .. } => ($name, Fidelity::$grade), )* }
            }
        }
    };
}

/// The operation of an instruction. Each variant contains the operations that access the same kind of state.
///
/// `dst`, `src`, `modifiers`, `guard` and `cdst` in the descriptions are the fields of [`Inst`]. Words in brackets
/// are mnemonics. Numbers in parentheses are sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Computes the result and flags of one lane from the sources of that lane.
    Arith(Arith),
    /// Reads or writes memory, or an input of the stage, for one lane.
    Memory(Memory),
    /// Operates on several lanes together: a quad, the active lanes, or the warp's outputs.
    Group(Group),
    /// Controls the flow of the warp and sets the program counter.
    Control(Control),
    /// Has no effect that a program can detect.
    Idle(Idle),
}

operations! {
    /// Memory accesses. An access executes one lane at a time, in ascending order.
    Memory {
        /// dst = src\[0\], memory of any space except for o[]. \[ld\]
        Ld => "ld", Specified;
        /// src\[0\] (memory) = src\[1\]. \[st\]
        St => "st", Specified;
        /// dst = src\[0\] (s[]). Takes the lock of the loaded word. The instruction always has a `cdst`, which becomes
        /// S if the lane gets the lock. \[ld lock\]
        LdLock => "ld lock", Recommended;
        /// src\[0\] (s[]) = src\[1\]. Releases the lock of the stored word. \[st unlock\]
        StUnlock => "st unlock", Recommended;
        /// dst = the interpolant src\[0\] (v[]). If src\[1\] is not none, dst is the product of the interpolant and
        /// src\[1\]. `modifiers[1]` applies to src\[1\] before the multiplication. \[interp\]
        Interp {
            /// The position at which the interpolant is evaluated.
            position: Position,
        } => "interp", Recommended;
        /// dst = the old word of src\[0\] (g[]). [`crate::lane::atomic::atomic32`] computes the new word from the old
        /// word, src\[1\] and src\[2\]. \[ld add, exch, cas, ...\]
        Atom {
            /// The operation.
            atomic: Atomic,
            /// Whether the type is s32 rather than u32.
            signed: bool,
        } => "atomic", Exact;
        /// An atomic on 64 bits. [`crate::lane::atomic::atomic64`] computes the new value.
        Atom64 {
            /// The operation.
            atomic: Atomic64,
        } => "atomic", Exact;
        /// A reduction. A reduction is an atomic without a result: it combines src\[1\] with the word of src\[0\].
        /// \[red\]
        Red {
            /// The operation.
            atomic: Atomic,
            /// Whether the type is s32 rather than u32.
            signed: bool,
        } => "red", Exact;
        /// A reduction on 64 bits.
        Red64 {
            /// The operation.
            atomic: Atomic64,
        } => "red", Exact;
    }
}

operations! {
    /// Operations on several lanes together.
    Group {
        /// [`crate::lane::quad::quadop`] of src\[0\] of the selected lane and src\[1\] of the executing lane.
        /// \[quadop\]
        Quadop {
            /// The operation of each lane of the quad.
            ops: [QuadOp; 4],
            /// The lane that provides src\[0\].
            from: QuadSource,
        } => "quadop", Exact;
        /// A texture instruction. \[tex...\]
        Tex(Tex) => "tex", Recommended;
        /// Emits o[] as a vertex, ends the strip, or first emits o[] and then ends the strip. \[emit restart\]
        Emit {
            /// Whether to emit a vertex.
            vertex: bool,
            /// Whether to end the strip.
            restart: bool,
        } => "emit restart", Specified;
        /// In **all** active lanes, dst (a [`Dst::C`]) = whether all active lanes, or any active lanes, satisfy
        /// `guard`. Here `guard` is an operand, not a predicate. \[vote\]
        Vote {
            /// Whether the vote is `all` rather than `any`.
            all: bool,
        } => "vote", Recommended;
    }
}

operations! {
    /// Instructions without effect. (6.10)
    Idle {
        /// Does nothing. \[nop\]
        Nop => "nop", Specified;
        /// Counts a performance event. \[pmevent\]
        PmEvent {
            /// The number of the event, 0 to 15.
            event: u8,
        } => "pmevent", Specified;
        /// A breakpoint. In the long form, the breakpoint has a predicate. \[brkpt\]
        Brkpt => "brkpt", Specified;
    }
}

/// One instruction. (2)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// The encoding form, which determines the length.
    pub form: Form,
    /// The exit or join modifier.
    pub end: End,
    /// The predicate.
    pub guard: Guard,
    /// The `$c` that receives the flags.
    pub cdst: Option<u8>,
    /// Mask of the lanes of each quad that execute the write: bit (lane & 3). The mask is 15 except for `mov` and `ld
    /// a[]` with a lane prefix. (3.4)
    pub lanes: u8,
    /// The destination of the result.
    pub dst: Dst,
    /// The sources.
    pub src: [Operand; 3],
    /// abs and neg of the sources of floating-point operations and conversions.
    pub modifiers: [Modifiers; 3],
}

impl Inst {
    /// Creates an instruction without operands.
    pub const fn new(op: Op, form: Form) -> Inst {
        Inst {
            op,
            form,
            end: End::None,
            guard: Guard::ALWAYS,
            cdst: None,
            lanes: 15,
            dst: Dst::None,
            src: [Operand::None; 3],
            modifiers: [Modifiers::NONE; 3],
        }
    }

    /// Returns the general register in the destination *field* of the encoding, if the field selects a register.
    ///
    /// If the program does not have this register, the hardware drops the whole instruction. In stores to l[] and g[]
    /// and in reductions, the data register is in the destination field. The rule therefore also holds for stores and
    /// reductions. (1.4)
    pub const fn gate(&self) -> Option<u8> {
        match self.dst {
            Dst::R32(register) | Dst::R64(register) | Dst::R128(register) => return Some(register),
            Dst::R16(half) => return Some(half.register()),
            Dst::None | Dst::Discard | Dst::A(_) | Dst::C(_) | Dst::Out32(_) | Dst::Out16(_) => {}
        }
        let in_destination_field = match (self.op, self.src[0]) {
            (Op::Memory(Memory::Red { .. } | Memory::Red64 { .. }), _) => true,
            (Op::Memory(Memory::St), Operand::Mem(mem)) => {
                matches!(mem.space, Space::Local | Space::Global(_))
            }
            (Op::Group(Group::Tex(tex)), _) => return Some(tex.base),
            _ => false,
        };
        match self.src[1] {
            Operand::R32(register) | Operand::R64(register) | Operand::R128(register)
                if in_destination_field =>
            {
                Some(register)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_small() {
        assert!(size_of::<Inst>() <= 96, "{}", size_of::<Inst>());
    }

    #[test]
    fn conditions_share_codes_between_integers_and_floats() {
        let less = Condition::from_code(1);
        assert!(less.holds(Flags::S) && !less.holds(Flags::UNORDERED) && less.holds(Flags::O));
        assert!(Condition::ALWAYS.table() == 0xffff && Condition::NEVER.table() == 0);
        let unassigned = (0x14..0x1c).all(|code| Condition::from_code(code).table() == 0);
        assert!(unassigned);
    }

    #[test]
    fn a_chip_has_many_names() {
        for name in ["GT200", "g200", "sm_13", "a0", "0xA0", "nva0"] {
            assert_eq!(Chip::from_name(name), Some(Chip::G200), "{name}");
        }
        assert_eq!(Chip::from_name("R700"), None);
    }
}
