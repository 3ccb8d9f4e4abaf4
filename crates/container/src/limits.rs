//! The largest values a Tesla program can ask for; anything above is damage, not a program.

use crate::Error;

/// Registers a lane: seven bits of register number.
pub(crate) const REGISTERS: u32 = 128;
/// Bytes of shared memory a multiprocessor has.
pub(crate) const SHARED_BYTES: u32 = 16 << 10;
/// Bytes of local memory that a 16-bit offset reaches.
pub(crate) const LOCAL_BYTES: u32 = 64 << 10;
/// Barriers of a block.
pub(crate) const BARRIERS: u32 = 16;
/// Constant banks: 0 to 15 exist, 16 appears in files with no known meaning.
pub(crate) const LAST_BANK: u32 = 16;
/// Bytes of a constant bank.
pub(crate) const BANK_BYTES: u32 = 64 << 10;

/// `value` if it is at most `limit`.
pub(crate) fn at_most(what: &'static str, at: u64, value: u64, limit: u32) -> Result<u32, Error> {
    match u32::try_from(value) {
        Ok(value) if value <= limit => Ok(value),
        _ => Err(Error::value(what, at, value, format!("at most {limit}: the hardware has no more"))),
    }
}
