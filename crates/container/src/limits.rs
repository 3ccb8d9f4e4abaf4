//! Maximum amounts of resources that a Tesla program can request. A file with a larger value is damaged.

use crate::Error;

/// Number of registers per lane. Register numbers have seven bits.
pub(crate) const REGISTERS: u32 = 128;
/// Bytes of shared memory per multiprocessor.
pub(crate) const SHARED_BYTES: u32 = 16 << 10;
/// Bytes of local memory that a 16-bit offset can address.
pub(crate) const LOCAL_BYTES: u32 = 64 << 10;
/// Barriers per block.
pub(crate) const BARRIERS: u32 = 16;
/// Number of the last constant bank. Banks 0 to 15 exist. Bank 16 appears in files, but has no known meaning.
pub(crate) const LAST_BANK: u32 = 16;
/// Size of a constant bank in bytes.
pub(crate) const BANK_BYTES: u32 = 64 << 10;

/// Returns `value` if `value` is at most `limit`. Otherwise returns an error.
pub(crate) fn at_most(what: &'static str, at: u64, value: u64, limit: u32) -> Result<u32, Error> {
    match u32::try_from(value) {
        Ok(value) if value <= limit => Ok(value),
        _ => Err(Error::value(what, at, value, format!("at most {limit}: the hardware has no more"))),
    }
}
