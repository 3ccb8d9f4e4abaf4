//! Memory operands of one lane: addresses, loads, stores and post-increments. (3.3, 4)
//!
//! All engines call the functions of this file for one lane at a time, in ascending order of the lanes. In strict and
//! in lenient mode, an access outside s[] or l[] traps. If a segment of g[] is not lenient, an access outside the
//! segment also traps. The trap names the lane and the address. A read past the end of c[] returns 0.

use reconverge_simt::memory::Store;
use reconverge_simt::{Lane, Mode};

use crate::context::Context;
use crate::inst::{Access, Base, Mem, Space};
use crate::lane::interpolate::Position;
use crate::spaces::{Shared, aligned};
use crate::state::Warp;
use crate::trap::{Access as Kind, Cause};

/// Returns the byte address of a memory operand for a lane. The function neither aligns nor checks the address.
///
/// # Errors
/// The base of the memory operand is an address register that does not exist.
pub fn address(context: &Context, warp: &Warp, lane: Lane, mem: &Mem) -> Result<u32, Cause> {
    match mem.base {
        Base::A(register) => {
            check_address_register(context, register)?;
            if mem.increment && !matches!(register, 1..=4 | 7) {
                return Err(Cause::IllegalPostincr(register));
            }
            let base = warp.a(lane, register);
            Ok(u32::from(if mem.increment { base } else { base.wrapping_add(mem.offset as u16) }))
        }
        Base::R(register) => Ok(warp.r(lane, register).wrapping_add(mem.offset as u32)),
    }
}

/// Checks that an address register exists. **Open** (13.9): `$a5` and `$a6` do not exist, and the source of the value
/// of `$a7` is unknown. In strict mode, an instruction traps if it names `$a5`, `$a6` or `$a7`. In lenient mode, the
/// instruction reads 0 from these registers.
///
/// # Errors
/// Returns [`Cause::NoAddressRegister`] in strict mode if the register does not exist.
pub fn check_address_register(context: &Context, register: u8) -> Result<(), Cause> {
    match (register, context.mode) {
        (0..=4, _) | (_, Mode::Lenient) => Ok(()),
        (_, Mode::Strict) => Err(Cause::NoAddressRegister(register)),
    }
}

/// Suppose that a lane made an access with post-increment. Adds the offset of the access to the address register of the
/// access. (3.3) In lanes without the access, the address register is unchanged (**Open**, 13.22).
pub fn increment(warp: &mut Warp, lane: Lane, mem: &Mem) {
    if let (Base::A(register), true) = (mem.base, mem.increment) {
        let next = warp.a(lane, register).wrapping_add(mem.offset as u16);
        warp.set_a(lane, register, next);
    }
}

/// Loads a memory operand at an address that [`address`] has returned, and returns the value. A value of fewer than 32
/// bits is extended to 32 bits.
///
/// # Errors
/// The address is outside the memory space.
pub fn load<G: Store>(
    context: &Context,
    shared: &Shared,
    global: &mut G,
    warp: &Warp,
    lane: Lane,
    mem: &Mem,
    address: u32,
) -> Result<u128, Cause> {
    let bytes = mem.access.bytes();
    let at = aligned(address, bytes);
    let outside = Cause::Memory { space: mem.space, access: Kind::Read, address, bytes };
    let raw = match mem.space {
        Space::Const(bank) => u128::from(context.setup.constants.read(bank, at, bytes)),
        Space::Shared => u128::from(shared.read(at, bytes).ok_or(outside)?),
        Space::Local => {
            let mut value = [0; 16];
            warp.read_local(lane, at, &mut value[..bytes as usize]).ok_or(outside)?;
            u128::from_le_bytes(value)
        }
        Space::Global(segment) => context.load_global(global, segment, at, bytes).ok_or(outside)?,
        Space::Attribute | Space::Varying => {
            part_of_word(input(context, warp, lane, mem.space, at, Position::Centre)?, at)
        }
        Space::Primitive => part_of_word(primitive(context, at)?, at),
        Space::Output => part_of_word(warp.output(lane, at as usize / 4), at),
    };
    Ok(extended(raw, mem.access))
}

/// Stores the low bytes of `value` at an address that [`address`] has returned.
///
/// If several lanes of one instruction store to the same byte, the engine stores the lanes in ascending order.
/// (**Open**: the documents do not say which lane's value remains in memory.)
///
/// # Errors
/// The address is outside the memory space, or the program cannot write to the space.
#[allow(clippy::too_many_arguments)]
pub fn store<G: Store>(
    context: &Context,
    shared: &mut Shared,
    global: &mut G,
    warp: &mut Warp,
    lane: Lane,
    mem: &Mem,
    address: u32,
    value: u128,
) -> Result<(), Cause> {
    let bytes = mem.access.bytes();
    let at = aligned(address, bytes);
    let outside = Cause::Memory { space: mem.space, access: Kind::Write, address, bytes };
    match mem.space {
        Space::Shared => shared.write(at, bytes, value as u32).ok_or(outside),
        Space::Local => warp.write_local(lane, at, &value.to_le_bytes()[..bytes as usize]).ok_or(outside),
        Space::Global(segment) => context.store_global(global, segment, at, bytes, value).ok_or(outside),
        Space::Output => {
            warp.set_output(lane, at as usize / 4, value as u32);
            Ok(())
        }
        Space::Const(_) => Err(Cause::Undocumented("a store to c[]")),
        Space::Attribute | Space::Primitive | Space::Varying => {
            Err(Cause::Undocumented("a store to a stage's inputs"))
        }
    }
}

/// Reads, modifies and writes one word of g[] (4 or 8 bytes) for one lane. Returns the old value. The caller processes
/// the lanes one after another, in ascending order (**Open**, 6.8).
///
/// # Errors
/// The address is outside the memory space.
pub fn atomic<G: Store>(
    context: &Context,
    global: &mut G,
    mem: &Mem,
    address: u32,
    kind: Kind,
    new: &mut dyn FnMut(u64) -> u64,
) -> Result<u64, Cause> {
    let bytes = mem.access.bytes();
    let at = aligned(address, bytes);
    let Space::Global(segment) = mem.space else { return Err(Cause::Undocumented("an atomic outside g[]")) };
    let outside = Cause::Memory { space: mem.space, access: kind, address, bytes };
    let old = context.load_global(global, segment, at, bytes).ok_or_else(|| outside.clone())? as u64;
    context.store_global(global, segment, at, bytes, u128::from(new(old))).ok_or(outside)?;
    Ok(old)
}

/// Returns a word of a[] or v[]. If the launch does not provide the word, the read traps in strict mode and returns 0
/// in lenient mode.
///
/// # Errors
/// Returns [`Cause::NoInput`] in strict mode if the launch does not provide the word.
pub fn input(
    context: &Context,
    warp: &Warp,
    lane: Lane,
    space: Space,
    address: u32,
    position: Position,
) -> Result<u32, Cause> {
    match (warp.inputs.get(address as usize / 4), context.mode) {
        (Some(Some(input)), _) => Ok(input.at(position).0[lane.index()]),
        (_, Mode::Lenient) => Ok(0),
        (_, Mode::Strict) => Err(Cause::NoInput { space, address }),
    }
}

/// Returns a word of p[]. If the launch does not provide the word, the read traps in strict mode and returns 0 in
/// lenient mode. [`input`] has the same rule.
fn primitive(context: &Context, address: u32) -> Result<u32, Cause> {
    match (context.vertices.get(address as usize / 4), context.mode) {
        (Some(word), _) => Ok(*word),
        (None, Mode::Lenient) => Ok(0),
        (None, Mode::Strict) => Err(Cause::NoInput { space: Space::Primitive, address }),
    }
}

/// Returns the bytes of a word from the byte that `address` selects to the end of the word.
fn part_of_word(word: u32, address: u32) -> u128 {
    u128::from(word >> (8 * (address & 3)))
}

/// Returns the loaded bytes of an access. If the access is narrower than 32 bits, the bytes are extended to 32 bits.
#[inline(always)]
pub fn extended(raw: u128, access: Access) -> u128 {
    match access {
        Access::U8 => raw & 0xff,
        Access::S8 => u128::from(raw as u8 as i8 as u32),
        Access::U16 => raw & 0xffff,
        Access::S16 => u128::from(raw as u16 as i16 as u32),
        Access::B32 => raw & 0xffff_ffff,
        Access::B64 => raw & u128::from(u64::MAX),
        Access::B128 => raw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_loads_are_extended_to_a_word() {
        assert_eq!(extended(0x1_80ff, Access::U8), 0xff);
        assert_eq!(extended(0x1_80ff, Access::S8), 0xffff_ffff);
        assert_eq!(extended(0x1_80ff, Access::U16), 0x80ff);
        assert_eq!(extended(0x1_80ff, Access::S16), 0xffff_80ff);
        assert_eq!(extended(u128::MAX, Access::B64), u128::from(u64::MAX));
    }
}
