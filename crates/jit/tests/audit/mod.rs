//! Decodes the code of a region. Only listed instructions are allowed. Their stores may only go to the state, the
//! group's rows, the frame and, if the plan allows it, the window.

use std::collections::BTreeSet;

use iced_x86::{
    Code, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};
use reconverge_jit::{Level, State};

/// Instructions that are emitted in addition to vector instructions of integers and floats.
const SCALAR: &[Mnemonic] = &[
    Mnemonic::Adc,
    Mnemonic::Add,
    Mnemonic::And,
    Mnemonic::Andn,
    Mnemonic::Blsr,
    Mnemonic::Call,
    Mnemonic::Cmp,
    Mnemonic::Ja,
    Mnemonic::Jb,
    Mnemonic::Je,
    Mnemonic::Jl,
    Mnemonic::Jmp,
    Mnemonic::Jne,
    Mnemonic::Lea,
    Mnemonic::Mov,
    Mnemonic::Nop,
    Mnemonic::Or,
    Mnemonic::Pop,
    Mnemonic::Popcnt,
    Mnemonic::Push,
    Mnemonic::Ret,
    Mnemonic::Setne,
    Mnemonic::Shlx,
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
    Mnemonic::Vfmadd213ps,
    Mnemonic::Vfmsub213ps,
    Mnemonic::Vmaxps,
    Mnemonic::Vminps,
    Mnemonic::Vmovaps,
    Mnemonic::Vmovd,
    Mnemonic::Vmovmskps,
    Mnemonic::Vmovups,
    Mnemonic::Vmulps,
    Mnemonic::Vpaddd,
    Mnemonic::Vpand,
    Mnemonic::Vpandn,
    Mnemonic::Vpbroadcastd,
    Mnemonic::Vpcmpeqd,
    Mnemonic::Vpcmpgtd,
    Mnemonic::Vpgatherdd,
    Mnemonic::Vpmaxsd,
    Mnemonic::Vpmaxud,
    Mnemonic::Vpminsd,
    Mnemonic::Vpminud,
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

/// Instructions that are emitted with AVX-512, in addition or instead.
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
    Mnemonic::Vpmovm2d,
    Mnemonic::Vpord,
    Mnemonic::Vptestmd,
    Mnemonic::Vpxord,
    Mnemonic::Vrndscaleps,
];

/// Decodes and checks the code of a region for a level. `rows`: bytes of the group's rows. `functions`: the functions
/// that it may call. `window`: whether it may store to the window.
///
/// # Panics
/// Panics if the code contains anything else.
pub(crate) fn audit(level: Level, bytes: &[u8], rows: usize, functions: &[usize], window: bool) {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let all: Vec<Instruction> =
        decoder.iter().take_while(|instruction| instruction.code() != Code::Int3).collect();
    let starts: BTreeSet<u64> = all.iter().map(Instruction::ip).collect();
    let end = all.last().map_or(0, Instruction::next_ip);
    assert!(bytes[end as usize..].iter().all(|byte| *byte == 0xcc), "padding behind the code");
    let frame = all.iter().find(|instruction| {
        instruction.code() == Code::Sub_rm64_imm32 && instruction.op0_register() == Register::RSP
    });
    let frame = frame.map_or(0, |instruction| i64::from(instruction.immediate32to64() as i32));
    let mut info = InstructionInfoFactory::new();
    let mut last: Option<Instruction> = None;
    for instruction in all {
        let what = format!("{instruction:?} at {:#x}", instruction.ip());
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
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                assert!(starts.contains(&instruction.near_branch_target()), "a jump elsewhere: {what}");
            }
            FlowControl::Call => {
                assert!(starts.contains(&instruction.near_branch_target()), "a call elsewhere: {what}");
            }
            FlowControl::IndirectCall => assert_eq!(instruction.op0_register(), Register::RAX, "{what}"),
            _ => panic!("flow: {what}"),
        }
        // The address of a called function is a number in the code.
        if instruction.code() == Code::Mov_r64_imm64 {
            assert!(
                functions.contains(&(instruction.immediate64() as usize)),
                "a call of something else: {what}"
            );
        }
        let used = info.info(&instruction);
        for memory in used.used_memory().iter().filter(|memory| writes(memory.access())) {
            stores(memory, frame, rows, window, &what);
        }
        for memory in used.used_memory().iter().filter(|memory| !writes(memory.access())) {
            loads(memory, &what);
        }
        // Only the prologue and the epilogue move the stack pointer, in these forms.
        if writes_stack_pointer(&instruction) {
            let code = instruction.code();
            let pair = matches!(code, Code::Add_rm64_imm8 | Code::Sub_rm64_imm8 | Code::And_rm64_imm8);
            let known = pair || code == Code::Sub_rm64_imm32 || code == Code::Mov_r64_rm64;
            assert!(known || matches!(mnemonic, Mnemonic::Push | Mnemonic::Pop), "the stack: {what}");
        }
        last = Some(instruction);
    }
    assert!(last.is_some(), "no code");
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes_stack_pointer(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == Register::RSP
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
}

/// Checks the address of a load: the frame, the state, the rows, the pool, or the window at a checked offset.
fn loads(memory: &UsedMemory, what: &str) {
    let index = memory.index();
    let known = match memory.base() {
        Register::RSP => matches!(index, Register::None | Register::RDX),
        Register::RBX => matches!(index, Register::None | Register::R13 | Register::R14 | Register::RDX),
        Register::R12 => index == Register::R13,
        Register::RBP => matches!(index, Register::None | Register::RDX),
        Register::RAX => index == Register::None || index == Register::RCX || index.is_vector_register(),
        _ => false,
    };
    assert!(known, "a load from elsewhere: {what}");
}

/// Checks the address of a store.
fn stores(memory: &UsedMemory, frame: i64, rows: usize, window: bool, what: &str) {
    let displacement = memory.displacement() as i64;
    let size = memory.memory_size().size() as i64;
    match (memory.base(), memory.index()) {
        // Only push and call store below the frame.
        (Register::RSP, Register::None) if displacement < 0 => {
            assert!(
                what.contains("Push")
                    || what.contains("Call")
                    || what.contains("push")
                    || what.contains("call"),
                "{what}"
            );
        }
        (Register::RSP, Register::None) => {
            // A function of the generated code accesses the frame above its return address.
            assert!(displacement + size <= frame + 8, "beyond the frame of {frame}: {what}");
        }
        (Register::RBX, index) => {
            assert!(
                matches!(index, Register::None | Register::R13 | Register::R14 | Register::RDX),
                "an index: {what}"
            );
            let within = displacement >= 0 && displacement + size <= size_of::<State>() as i64;
            assert!(within, "beyond the state: {what}");
        }
        (Register::R12, Register::R13) => {
            assert!(displacement >= 0 && displacement + size <= rows as i64, "beyond the rows: {what}");
        }
        // The window's address, with a checked offset.
        (Register::RAX, Register::RCX | Register::RDX) => assert!(window, "a store to the window: {what}"),
        _ => panic!("a store elsewhere: {what}"),
    }
}
