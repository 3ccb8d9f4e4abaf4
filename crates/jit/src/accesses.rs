//! Loads and stores of one word per lane, at addresses that are contiguous, equal or independent.

use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

use crate::asm::{Assembler, Label, Rm, at, at_base};
use crate::frame::{ANY_BITS, ANY_SIGNS, PER_LANE, STATE, WORD};
use crate::level::Level;
use crate::state::{Site, place};
use crate::strip::Two;

/// Access to words of the window. For each lane, `address` contains the offset of the span's first word. `distance`, in
/// bytes, is added to this offset. All lanes of the mask are inside the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    /// Offset of the field with the memory's address in the state.
    pub(crate) memory: i32,
    pub(crate) address: Register,
    pub(crate) distance: i32,
    pub(crate) mask: Register,
    /// Whether a load gives zeros to the lanes outside the mask. If `false`, these lanes get arbitrary words.
    pub(crate) zeros: bool,
}

/// Sets RAX to an address that is stored in the state, at the offset `memory`.
pub(crate) fn window(asm: &mut Assembler, memory: i32) {
    asm.two(Code::Mov_r64_rm64, Register::RAX, at_base(STATE, memory));
}

/// Returns the offset of a site in the state. The constants after this function are offsets of fields in a site.
pub(crate) fn site_place(site: u32) -> i32 {
    place!(sites) + (site as usize * size_of::<Site>()) as i32
}
pub(crate) const SITE_BOUND: i32 = std::mem::offset_of!(Site, bound) as i32;
pub(crate) const SITE_BYTES: i32 = std::mem::offset_of!(Site, bytes) as i32;

/// Returns the memory operand of the first lane's word in the window. The address of the window is in RAX. Sets RCX to
/// the offset of this word.
pub(crate) fn first_word(level: Level, asm: &mut Assembler, access: Lanes) -> MemoryOperand {
    asm.two(level.first(), Register::ECX, level.xmm(access.address));
    at(Register::RAX, Register::RCX, access.distance)
}

/// Orders of the words of an access. `ROW` means that the words of all lanes are contiguous. `ONE` means that all lanes
/// access the same word.
pub(crate) const ROW: i32 = 0;
pub(crate) const ONE: i32 = 1;

/// Lanes that a comparison includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// All lanes of the vector. The comparison also fails if a lane of the vector is not in the mask.
    All,
    /// The lanes of the mask. The comparison also fails if the first lane of the vector is not in the mask.
    Active,
}

/// Compares the addresses of the lanes' words. Sets ZF if the words are contiguous.
pub(crate) fn in_a_row(
    level: Level,
    asm: &mut Assembler,
    access: Lanes,
    steps: Rm,
    free: Register,
    among: Among,
) {
    let Lanes { address, mask, .. } = access;
    asm.two(level.broadcast(), free, level.xmm(address));
    asm.three(level.two(Two::Add).0, free, free, steps);
    all_equal(level, asm, [address, free], mask, among);
}

/// Compares two values in all lanes that `among` includes, and sets ZF if all compared lanes are equal. Overwrites the
/// second value.
pub(crate) fn all_equal(
    level: Level,
    asm: &mut Assembler,
    [a, b]: [Register; 2],
    mask: Register,
    among: Among,
) {
    match level {
        Level::Avx2 => {
            asm.three(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, b, b, a);
            asm.three(Code::VEX_Vpand_ymm_ymm_ymmm256, b, b, mask);
            bits(level, asm, Register::ECX, b);
        }
        Level::Avx512 => {
            let equal = Instruction::with3(Code::EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32, ANY_BITS, b, a);
            asm.masked(equal, mask);
            bits(level, asm, Register::ECX, ANY_BITS);
        }
    }
    match among {
        Among::All => asm.number(Code::Cmp_rm32_imm32, Register::ECX, level.all()),
        Among::Active => {
            bits(level, asm, Register::EDX, mask);
            asm.two(Code::Xor_r32_rm32, Register::EDX, Register::ECX);
            asm.push(Instruction::with1(Code::Not_rm32, Register::ECX));
            asm.number(Code::And_rm32_imm8, Register::ECX, 1);
            asm.two(Code::Or_r32_rm32, Register::EDX, Register::ECX);
        }
    }
}

/// Emits a move of the sign bits of all lanes to a general register.
pub(crate) fn bits(level: Level, asm: &mut Assembler, to: Register, from: Register) {
    asm.two(level.of(Code::VEX_Vmovmskps_r32_ymm, Code::VEX_Kmovw_r32_kr), to, from);
}

/// Returns the instruction with the mode that writes zeros to the lanes outside its mask.
fn zeroing(instruction: Result<Instruction, IcedError>) -> Result<Instruction, IcedError> {
    instruction.map(|mut instruction| {
        instruction.set_zeroing_masking(true);
        instruction
    })
}

/// Loads words for lanes. The words are one word for all lanes, contiguous words for some lanes, or one word per lane.
pub(crate) fn emit_load(
    level: Level,
    asm: &mut Assembler,
    [to, free]: [Register; 2],
    (access, steps, order): (Lanes, Rm, Option<i32>),
    back: Label,
) {
    let Lanes { memory, address, distance, mask, zeros } = access;
    let [some, each] = [(); 2].map(|()| asm.label());
    match order {
        Some(place) => {
            asm.number(Code::Cmp_rm8_imm8, at_base(Register::RSP, place), ONE);
        }
        None => {
            asm.two(level.broadcast(), free, level.xmm(address));
            all_equal(level, asm, [address, free], mask, Among::Active);
        }
    }
    window(asm, memory);
    asm.branch(Code::Jne_rel32_64, some);
    let word = first_word(level, asm, access);
    asm.two(level.broadcast(), to, word);
    if zeros {
        match level {
            Level::Avx2 => {
                asm.three(level.two(Two::Xor).0, free, free, free);
                asm.push(Instruction::with4(level.select(), to, free, to, mask));
            }
            Level::Avx512 => asm.masked(zeroing(Instruction::with2(level.load(), to, to)), mask),
        }
    }
    asm.branch(Code::Jmp_rel32_64, back);
    asm.bind(some);
    in_a_row(level, asm, access, steps, free, Among::Active);
    asm.branch(Code::Jne_rel32_64, each);
    let row = first_word(level, asm, access);
    match level {
        Level::Avx2 => asm.three(Code::VEX_Vpmaskmovd_ymm_ymm_m256, to, mask, Rm::Memory(row)),
        Level::Avx512 => {
            asm.masked(zeroing(Instruction::with2(level.load_anywhere(), to, row)), mask);
        }
    }
    asm.branch(Code::Jmp_rel32_64, back);
    asm.bind(each);
    asm.three(level.two(Two::Xor).0, to, to, to);
    let words = at(Register::RAX, address, distance);
    match level {
        Level::Avx2 => {
            asm.two(level.load(), free, mask);
            asm.push(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, to, words, free));
        }
        Level::Avx512 => {
            // The mask is copied first, because the gather instruction clears its mask.
            asm.two(Code::VEX_Kmovw_kr_km16, ANY_SIGNS, mask);
            asm.masked(Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, to, words), ANY_SIGNS);
        }
    }
}

/// Minimum number of lanes for a scatter instruction. With fewer lanes, one store per lane takes less time. With 16
/// lanes (the kernel radix), the instruction saves a seventh of the kernel's time. With 8 lanes (the kernel sort), the
/// instruction would take a tenth more (AMD EPYC).
const MANY: i32 = 12;

/// Stores contiguous words of some lanes, or stores the word of each lane separately.
pub(crate) fn emit_store(
    level: Level,
    asm: &mut Assembler,
    [from, free]: [Register; 2],
    (access, steps): (Lanes, Rm),
    back: Label,
) {
    let Lanes { memory, address, distance, mask, .. } = access;
    let lane = asm.label();
    let (addresses, values) = (PER_LANE, PER_LANE + level.vector());
    if level == Level::Avx512 {
        let each = asm.label();
        in_a_row(level, asm, access, steps, free, Among::Active);
        asm.branch(Code::Jne_rel32_64, each);
        window(asm, memory);
        let row = first_word(level, asm, access);
        asm.masked(Instruction::with2(level.store_anywhere(), row, from), mask);
        asm.branch(Code::Jmp_rel32_64, back);
        asm.bind(each);
    }
    bits(level, asm, Register::ECX, mask);
    asm.push(Instruction::with2(Code::Test_rm32_r32, Register::ECX, Register::ECX));
    asm.branch(Code::Je_rel32_64, back);
    window(asm, memory);
    if level == Level::Avx512 {
        let few = asm.label();
        asm.two(Code::Popcnt_r32_rm32, Register::EDX, Register::ECX);
        asm.number(Code::Cmp_rm32_imm8, Register::EDX, MANY);
        asm.branch(Code::Jb_rel32_64, few);
        // The mask is copied first, because the scatter instruction clears its mask. The instruction stores the words
        // in the order of the lanes. (Intel SDM, volume 2, VPSCATTERDD)
        asm.two(Code::VEX_Kmovw_kr_km16, ANY_SIGNS, mask);
        let words = at(Register::RAX, address, distance);
        asm.masked(Instruction::with2(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, words, from), ANY_SIGNS);
        asm.branch(Code::Jmp_rel32_64, back);
        asm.bind(few);
    }
    asm.store(level.store(), at_base(Register::RSP, addresses), address);
    asm.store(level.store(), at_base(Register::RSP, values), from);
    let part = |start: i32| {
        MemoryOperand::with_base_index_scale_displ_size(Register::RSP, Register::RDX, 4, start.into(), 1)
    };
    asm.bind(lane);
    asm.two(Code::Tzcnt_r32_rm32, Register::EDX, Register::ECX);
    asm.two(Code::Mov_r32_rm32, WORD, part(values));
    asm.two(Code::Mov_r32_rm32, Register::EDX, part(addresses));
    asm.store(Code::Mov_rm32_r32, at(Register::RAX, Register::RDX, distance), WORD);
    asm.two(Code::VEX_Blsr_r32_rm32, Register::ECX, Register::ECX);
    asm.branch(Code::Jne_rel32_64, lane);
}
