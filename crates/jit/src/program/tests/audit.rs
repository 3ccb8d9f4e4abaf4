//! Decodes linked code and checks every instruction. Only listed instructions are allowed. Stores may only access the
//! state, the group's rows, the counts and the frame. If the test allows it, stores may also access the window and
//! sites.

use std::collections::BTreeSet;

use iced_x86::{
    Code as Op, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use super::*;
use crate::state::NARROW_ROWS;
use crate::turns::Turns;

/// Allowed scalar instructions, in addition to vector instructions for integers and floats.
const SCALAR: &[Mnemonic] = &[
    Mnemonic::Add,
    Mnemonic::And,
    Mnemonic::Andn,
    Mnemonic::Blsr,
    Mnemonic::Call,
    Mnemonic::Cmp,
    Mnemonic::Imul,
    Mnemonic::Jb,
    Mnemonic::Je,
    Mnemonic::Jl,
    Mnemonic::Jle,
    Mnemonic::Jmp,
    Mnemonic::Jne,
    Mnemonic::Lea,
    Mnemonic::Mov,
    Mnemonic::Nop,
    Mnemonic::Not,
    Mnemonic::Or,
    Mnemonic::Pop,
    Mnemonic::Popcnt,
    Mnemonic::Push,
    Mnemonic::Ret,
    Mnemonic::Sbb,
    Mnemonic::Setne,
    Mnemonic::Shl,
    Mnemonic::Shlx,
    Mnemonic::Shr,
    Mnemonic::Sub,
    Mnemonic::Test,
    Mnemonic::Tzcnt,
    Mnemonic::Vldmxcsr,
    Mnemonic::Vzeroupper,
    Mnemonic::Xor,
];

const VECTOR: &[Mnemonic] = &[
    Mnemonic::Vaddps,
    Mnemonic::Vblendvps,
    Mnemonic::Vcmpps,
    Mnemonic::Vcvtdq2ps,
    Mnemonic::Vcvtps2dq,
    Mnemonic::Vcvttps2dq,
    Mnemonic::Vdivps,
    Mnemonic::Vextracti128,
    Mnemonic::Vfmadd213ps,
    Mnemonic::Vfmsub213ps,
    Mnemonic::Vmaxps,
    Mnemonic::Vminps,
    Mnemonic::Vmovaps,
    Mnemonic::Vmovd,
    Mnemonic::Vmovdqu,
    Mnemonic::Vmovmskps,
    Mnemonic::Vmovq,
    Mnemonic::Vmovups,
    Mnemonic::Vmulps,
    Mnemonic::Vpackusdw,
    Mnemonic::Vpackuswb,
    Mnemonic::Vpaddd,
    Mnemonic::Vpand,
    Mnemonic::Vpandn,
    Mnemonic::Vpbroadcastd,
    Mnemonic::Vpcmpeqd,
    Mnemonic::Vpcmpgtd,
    Mnemonic::Vpgatherdd,
    Mnemonic::Vpmaskmovd,
    Mnemonic::Vpmaxsd,
    Mnemonic::Vpmaxud,
    Mnemonic::Vpminsd,
    Mnemonic::Vpminud,
    Mnemonic::Vpmovzxbd,
    Mnemonic::Vpmovzxwd,
    Mnemonic::Vpmulld,
    Mnemonic::Vpor,
    Mnemonic::Vpslld,
    Mnemonic::Vpsllvd,
    Mnemonic::Vpsrad,
    Mnemonic::Vpsravd,
    Mnemonic::Vpsrld,
    Mnemonic::Vpsrlvd,
    Mnemonic::Vpsubd,
    Mnemonic::Vpxor,
    Mnemonic::Vroundps,
    Mnemonic::Vsqrtps,
    Mnemonic::Vsubps,
    Mnemonic::Vtestps,
];

/// Instructions that are also allowed with AVX-512.
const AVX512: &[Mnemonic] = &[
    Mnemonic::Kandnw,
    Mnemonic::Kandw,
    Mnemonic::Kmovw,
    Mnemonic::Knotw,
    Mnemonic::Korw,
    Mnemonic::Ktestw,
    Mnemonic::Kxorw,
    Mnemonic::Vblendmps,
    Mnemonic::Vextractf64x4,
    Mnemonic::Vinsertf64x4,
    Mnemonic::Vpandd,
    Mnemonic::Vpandnd,
    Mnemonic::Vpmovd2m,
    Mnemonic::Vpmovdb,
    Mnemonic::Vpmovdw,
    Mnemonic::Vpmovm2d,
    Mnemonic::Vpord,
    Mnemonic::Vpscatterdd,
    Mnemonic::Vptestmd,
    Mnemonic::Vpxord,
    Mnemonic::Vrndscaleps,
];

/// Operations that code may execute.
pub(super) struct Allowed<'a> {
    /// Number of bytes of the group's rows.
    pub(super) rows: usize,
    /// Addresses of the functions that the code may call.
    pub(super) functions: &'a [usize],
    /// Whether the code may store to the window and to sites.
    pub(super) window: bool,
}

/// Facts that the audit has established before it checks an instruction.
struct Known {
    /// Number of bytes of the frame.
    frame: i64,
    /// Number of counts.
    counts: usize,
    /// Registers that contain a field of the state, each register with the offset of the field.
    held: Vec<(Register, i32)>,
}

impl Known {
    fn holds(&self, register: Register, part: i32) -> bool {
        self.held.contains(&(register, part))
    }

    /// Returns whether a memory operand is a count.
    fn is_count(&self, memory: &UsedMemory) -> bool {
        let place = memory.displacement() as i64;
        self.holds(memory.base(), place!(counts))
            && memory.index() == Register::None
            && (0..8 * self.counts as i64).contains(&place)
            && place % 8 == 0
    }

    /// Returns whether a memory operand is in a row whose lanes have fewer bytes than a word.
    fn is_narrow(&self, memory: &UsedMemory) -> bool {
        let bytes = [(place!(byte_rows), 1), (place!(half_rows), 2)];
        let size = memory.memory_size().size() as i64;
        memory.index() == Register::R13
            && bytes.into_iter().any(|(part, bytes)| {
                let end = i64::from(NARROW_ROWS) * bytes * 32;
                self.holds(memory.base(), part)
                    && i64::from(memory.scale()) == bytes
                    && (0..=end - size).contains(&(memory.displacement() as i64))
            })
    }

    /// Updates the known facts for the state after an instruction.
    fn after(&mut self, instruction: &Instruction, written: &[Register]) {
        self.held.retain(|(register, _)| !written.contains(register));
        if instruction.code() == Op::Mov_r64_rm64
            && instruction.op1_kind() == OpKind::Memory
            && (instruction.memory_base(), instruction.memory_index()) == (STATE, Register::None)
        {
            self.held.push((instruction.op0_register(), instruction.memory_displacement64() as i32));
        }
        if !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) {
            self.held.clear();
        }
    }
}

impl Allowed<'_> {
    /// Decodes and checks code for a level.
    ///
    /// # Panics
    /// Panics if the code contains an instruction that is not allowed.
    pub(super) fn audit(&self, level: Level, code: &Code) {
        self.audit_bytes(level, code.pages.bytes(), &code.entries, code.counts);
    }

    /// Decodes and checks code for a level. `entries` are the offsets of the nodes in the code, and `counts` is the
    /// number of counts.
    pub(super) fn audit_bytes(&self, level: Level, bytes: &[u8], entries: &[u32], counts: usize) {
        const START: u64 = 64;
        let mut decoder = Decoder::with_ip(64, bytes, START, DecoderOptions::NONE);
        let all: Vec<Instruction> = decoder.iter().collect();
        let starts: BTreeSet<u64> = all.iter().map(Instruction::ip).collect();
        let mut targets: BTreeSet<u64> = entries.iter().map(|entry| START + u64::from(*entry)).collect();
        assert!(targets.is_subset(&starts), "a node starts between two instructions");
        let branches = all.iter().filter(|instruction| instruction.op0_kind() == OpKind::NearBranch64);
        targets.extend(branches.map(Instruction::near_branch_target));
        let frame = all.iter().find(|instruction| {
            instruction.code() == Op::Sub_rm64_imm32 && instruction.op0_register() == Register::RSP
        });
        let frame = frame.map_or(0, |instruction| i64::from(instruction.immediate32to64() as i32));
        let mut known = Known { frame, counts, held: Vec::new() };
        let mut info = InstructionInfoFactory::new();
        for (number, instruction) in all.iter().enumerate() {
            let what = format!("{instruction:?} at {:#x}", instruction.ip());
            if targets.contains(&instruction.ip()) {
                known.held.clear();
            }
            let mnemonic = instruction.mnemonic();
            let listed = SCALAR.contains(&mnemonic)
                || VECTOR.contains(&mnemonic)
                || level == Level::Avx512 && AVX512.contains(&mnemonic);
            assert!(listed, "not listed: {what}");
            if level == Level::Avx2 {
                assert!(instruction.encoding() != EncodingKind::EVEX, "an encoding of AVX-512: {what}");
            }
            match instruction.flow_control() {
                FlowControl::Next | FlowControl::Return => {}
                FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch | FlowControl::Call => {
                    assert!(starts.contains(&instruction.near_branch_target()), "a jump elsewhere: {what}");
                }
                FlowControl::IndirectCall => {
                    let is_flow = is_at(instruction, 0, place!(flow));
                    assert!(is_flow || instruction.op0_register() == Register::RAX, "{what}");
                }
                FlowControl::IndirectBranch => {
                    assert!(number >= 2 && dispatches(&all[number - 2..=number]), "a jump elsewhere: {what}");
                }
                _ => panic!("flow: {what}"),
            }
            // The address of a called function is a number in the code.
            if instruction.code() == Op::Mov_r64_imm64 {
                let function = instruction.immediate64() as usize;
                assert!(self.functions.contains(&function), "a call of something else: {what}");
            }
            let used = info.info(instruction);
            for memory in used.used_memory() {
                match writes(memory.access()) {
                    true => self.stores(memory, &known, &what),
                    false => loads(memory, &known, &what),
                }
            }
            // Only the prologue and the epilogue change the stack pointer, with these instructions.
            if writes_stack_pointer(instruction) {
                let code = instruction.code();
                let pair = matches!(code, Op::Add_rm64_imm8 | Op::Sub_rm64_imm8 | Op::And_rm64_imm8);
                let moves = pair || code == Op::Sub_rm64_imm32 || code == Op::Mov_r64_rm64;
                assert!(moves || matches!(mnemonic, Mnemonic::Push | Mnemonic::Pop), "the stack: {what}");
            }
            let registers = used.used_registers().iter().filter(|register| writes(register.access()));
            let written: Vec<Register> =
                registers.map(|register| register.register().full_register()).collect();
            known.after(instruction, &written);
        }
        assert!(!all.is_empty(), "no code");
    }

    /// Checks the address of a store.
    fn stores(&self, memory: &UsedMemory, known: &Known, what: &str) {
        let displacement = memory.displacement() as i64;
        let size = memory.memory_size().size() as i64;
        match (memory.base(), memory.index()) {
            // Only push and call store below the frame.
            (Register::RSP, Register::None) if displacement < 0 => {
                let lower = what.to_lowercase();
                assert!(lower.contains("push") || lower.contains("call"), "{what}");
            }
            (Register::RSP, Register::None) => {
                // A subroutine of the generated code accesses the frame that is above the return address of the
                // subroutine.
                let frame = known.frame;
                assert!(displacement + size <= frame + 8, "beyond the frame of {frame}: {what}");
            }
            (STATE, index) => {
                assert!(matches!(index, Register::None | Register::R13 | Register::RCX), "an index: {what}");
                let within = displacement >= 0 && displacement + size <= size_of::<State>() as i64;
                assert!(within, "beyond the state: {what}");
            }
            (Register::R12, Register::R13) => {
                let within = displacement >= 0 && displacement + size <= self.rows as i64;
                assert!(within, "beyond the rows: {what}");
            }
            _ if known.is_count(memory) || known.is_narrow(memory) => {}
            // RAX contains the address of the window or of a site. An earlier instruction has checked the offset.
            (Register::RAX, index) if index.is_zmm() || matches!(index, Register::RCX | Register::RDX) => {
                assert!(self.window, "a store to the window: {what}");
            }
            _ => panic!("a store elsewhere: {what}"),
        }
    }
}

/// Returns whether an operand is the field of the state at the offset `part`.
fn is_at(instruction: &Instruction, operand: u32, part: i32) -> bool {
    instruction.op_kind(operand) == OpKind::Memory
        && (instruction.memory_base(), instruction.memory_index()) == (STATE, Register::None)
        && instruction.memory_displacement64() as i32 == part
}

/// Returns whether three instructions form the jump to the node whose number is in EAX. This function does not check
/// the load from the table of nodes, because the check of loads covers this load.
fn dispatches(all: &[Instruction]) -> bool {
    let [entry, add, jump] = all else { return false };
    (entry.code(), entry.op0_register()) == (Op::Mov_r32_rm32, Register::EAX)
        && (entry.memory_base(), entry.memory_index()) == (Register::RCX, Register::RAX)
        && (entry.memory_index_scale(), entry.memory_displacement64()) == (4, 0)
        && (add.code(), add.op0_register()) == (Op::Add_r64_rm64, Register::RAX)
        && is_at(add, 1, place!(code))
        && (jump.code(), jump.op0_register()) == (Op::Jmp_rm64, Register::RAX)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes_stack_pointer(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == Register::RSP
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}

/// Checks the address of a load. The address must be in the frame, the state, the rows, the pool, the counts or the
/// offsets of nodes. The address can also be in the window if an instruction has checked the offset.
fn loads(memory: &UsedMemory, known: &Known, what: &str) {
    let index = memory.index();
    let listed = match memory.base() {
        Register::RSP => matches!(index, Register::None | Register::RDX),
        // RCX is the offset of a group that takes turns.
        STATE if index == Register::RCX => {
            let turns = place!(turns) as u64..place!(turns) as u64 + size_of::<Turns>() as u64;
            turns.contains(&memory.displacement())
        }
        STATE => matches!(index, Register::None | Register::R13),
        Register::R12 => index == Register::R13,
        Register::RBP => index == Register::None,
        Register::RAX if index == Register::RCX || index.is_vector_register() => true,
        Register::RAX if index == Register::None && known.holds(Register::RAX, place!(window)) => true,
        Register::RCX if index == Register::RAX => known.holds(Register::RCX, place!(entries)),
        _ => known.is_count(memory) || known.is_narrow(memory),
    };
    assert!(listed, "a load from elsewhere: {what}");
}
