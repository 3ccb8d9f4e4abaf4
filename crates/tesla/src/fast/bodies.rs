//! Operations that do not consist of a single lane function over words. Some of these operations handle predicates,
//! address registers or condition registers. Others read s[] at an address that is the same for all lanes. A general
//! operation executes any arithmetic instruction.

use reconverge_simt::wide::{Table, Wide};

use super::lanes::{ACTIVE, Body, Lanes, PREDICATED, inserted, operands};
use super::operands::{GeneralOperands, Operation};
use crate::access::extended;
use crate::flow::WARP;
use crate::inst::{Access, Condition};
use crate::lane::Flags;
use crate::meaning::{self, Operands};
use crate::reference::truth;

/// The truth tables of all conditions, by code.
pub(super) static CONDITIONS: [Table; 32] = {
    let mut tables = [Table::of(0); 32];
    let mut code = 0;
    while code < 32 {
        tables[code] = Table::of(Condition::from_code(code as u8).table());
        code += 1;
    }
    tables
};

/// Sets [`PREDICATED`] to the active lanes whose `$c` satisfies the condition with code `number`. In each quad, removes
/// the lanes whose bits are clear in `shift[0]`. (2.2, 3.4)
pub(super) struct Predicate;

impl Body for Predicate {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let table = &CONDITIONS[operation.number as usize & 31];
        let holding = wide.select(table, lanes.c(operation.c)) as u32;
        let quads = u32::from(operation.shift[0] & 15) * 0x1111_1111;
        lanes.sets[PREDICATED] = lanes.sets[ACTIVE] & holding & quads;
    }
}

/// Reads s[] at one address for all lanes, and sets a row to the value. The value has `shift[0]` bytes at byte address
/// `number`. It is signed if `narrow[0]` is set.
pub(super) struct SharedWord;

impl Body for SharedWord {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let access = match (operation.shift[0], operation.narrow[0]) {
            (1, false) => Access::U8,
            (1, true) => Access::S8,
            (2, false) => Access::U16,
            (2, true) => Access::S16,
            _ => Access::B32,
        };
        let start = operation.number as usize;
        // Lowering checks that s[] is large enough.
        let bytes = lanes.shared.bytes().get(start..start + access.bytes() as usize).unwrap_or_default();
        let raw = bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        lanes.row_mut(operation.dst).0 = [extended(raw, access) as u32; WARP];
    }
}

/// Sets a row to the flags of a vote. If `number` is 1, the condition must be true in all active lanes. Otherwise, it
/// must be true in any active lane. (6.10)
pub(super) struct Vote;

impl Body for Vote {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (holding, active) = (lanes.set(operation.set), lanes.sets[ACTIVE]);
        let answer = if operation.number == 1 { holding == active } else { holding != 0 };
        lanes.row_mut(operation.dst).0 = [truth(answer).bits().into(); WARP];
    }
}

/// Sets a row to the flags of `$c`. (4: mov $r $c)
pub(super) struct FromC;

impl Body for FromC {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (flags, mut values) = (lanes.c(operation.c), [0; WARP]);
        for lane in 0..WARP {
            values[lane] = flags[lane].into();
        }
        lanes.row_mut(operation.dst).0 = values;
    }
}

/// Sets `$c` to bits 0 to 3 of a row. (4: mov $c $r)
pub(super) struct ToC;

impl Body for ToC {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (words, mut values) = (lanes.row(operation.src[0]), [0; WARP]);
        for lane in 0..WARP {
            values[lane] = words[lane] as u8 & 0xf;
        }
        lanes.write_c(wide, operation.cdst, operation.set, values);
    }
}

/// Copies a register `$a` to a row. `number` is the number of the register. (4: mov $r $a)
pub(super) struct FromA;

impl Body for FromA {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (words, mut values) = (lanes.a(operation.number as u8), [0; WARP]);
        for lane in 0..WARP {
            values[lane] = words[lane].into();
        }
        lanes.row_mut(operation.dst).0 = values;
    }
}

/// Copies the low half of a row to a register `$a`. `number` is the number of the register. (4: shl $a, add $a)
pub(super) struct ToA;

impl Body for ToA {
    #[inline(always)]
    fn run<W: Wide>(_: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (words, mut values) = (lanes.row(operation.src[0]), [0; WARP]);
        for lane in 0..WARP {
            values[lane] = words[lane] as u16;
        }
        lanes.write_a(operation.number as u8, operation.set, values);
    }
}

/// Any arithmetic instruction, executed lane by lane with the functions that all engines share. `number` is the index
/// of the instruction's operands in the tables. If `FLAGS` is set, the instruction writes a `$c`.
pub(super) struct General<const FLAGS: bool>;

impl<const FLAGS: bool> Body for General<FLAGS> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let tables = lanes.tables;
        let &GeneralOperands { ref op, modifiers, writes_flags, src_high, dst_high } =
            &tables.generals[operation.number as usize];
        let low = operands::<true, false>(lanes, operation);
        let high = src_high.map(|place| lanes.row(place));
        let carry = *lanes.c(operation.c);
        let mut result = [0; WARP];
        let mut result_high = [0; WARP];
        let mut flags = [0; WARP];
        for lane in members(lanes.set(operation.set)) {
            let src = [0, 1, 2]
                .map(|number: usize| u64::from(low[number][lane]) | u64::from(high[number][lane]) << 32);
            let carry = Flags::from_bits(carry[lane]);
            let operands = Operands { src, modifiers, carry, writes_flags };
            let (value, flag) = meaning::value(op, &operands, tables.chip, tables.modes);
            result[lane] = value as u32;
            result_high[lane] = (value >> 32) as u32;
            flags[lane] = flag.bits();
        }
        let old = lanes.row(operation.dst);
        let low = inserted(old, result, operation.dst_shift, operation.dst_narrow);
        lanes.write(wide, operation.dst, operation.set, low);
        lanes.write(wide, dst_high, operation.set, result_high);
        if FLAGS {
            lanes.write_c(wide, operation.cdst, operation.set, flags);
        }
    }
}

/// Returns the numbers of the lanes of a set, in ascending order.
#[inline(always)]
pub(super) fn members(bits: u32) -> impl Iterator<Item = usize> {
    reconverge_simt::mask::members(bits.into()).map(|lane| lane % WARP)
}
