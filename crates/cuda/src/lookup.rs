//! `cuGetProcAddress`: the addresses of functions.

use std::ffi::{c_char, c_int, c_void};

use crate::call::{give, offer, text};
use crate::general::VERSION;
use crate::rows::{FunctionRow, functions};
use crate::status::{CallResult, CudaError};
use crate::{missing, table};

functions! {
    cuGetProcAddress 11030 cuGetProcAddress
        (symbol: *const c_char, to: *mut *const c_void, version: c_int, flags: u64) => address;
    cuGetProcAddress 12000 cuGetProcAddress_v2
        (symbol: *const c_char, to: *mut *const c_void, version: c_int, flags: u64, status: *mut c_int) =>
         address_with_status;
}

/// Returns the rows of all functions.
fn rows() -> impl Iterator<Item = &'static FunctionRow> {
    ROWS.iter().chain(table::ROWS).chain(missing::ROWS).flat_map(|rows| rows.iter())
}

/// The result of a search for a function by its name. (`CUdriverProcAddressQueryResult`)
#[derive(Clone, Copy, Debug)]
enum SearchResult {
    Function(FunctionRow),
    NoName,
    NotYet,
}

/// Returns the newest form of the function `name` in a version of CUDA. For example, `cuMemAlloc_v2` is a form of
/// `cuMemAlloc`. If `name` is the symbol of a form, returns that form for any version.
fn find(name: &str, version: c_int, per_thread: bool) -> SearchResult {
    let named: Vec<&FunctionRow> = rows().filter(|row| row.name == name).collect();
    if named.is_empty() {
        return rows()
            .find(|row| row.symbol == name)
            .map_or(SearchResult::NoName, |row| SearchResult::Function(*row));
    }
    let fitting = named.into_iter().filter(|row| row.since <= version && (per_thread || !row.per_thread));
    fitting
        .max_by_key(|row| (row.per_thread, row.since))
        .map_or(SearchResult::NotYet, |row| SearchResult::Function(*row))
}

unsafe fn search(
    symbol: *const c_char,
    to: *mut *const c_void,
    version: c_int,
    flags: u64,
) -> Result<SearchResult, CudaError> {
    /// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`
    const PER_THREAD: u64 = 2;
    if symbol.is_null() || to.is_null() || version > VERSION || flags > PER_THREAD {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: the caller passes null or a C string.
    let name = unsafe { text(symbol) }.unwrap_or_default();
    let found = find(name, version, flags == PER_THREAD);
    let address = match found {
        SearchResult::Function(row) => row.address as *const c_void,
        SearchResult::NoName | SearchResult::NotYet => std::ptr::null(),
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { give(to, address)? };
    Ok(found)
}

/// `cuGetProcAddress`
pub(crate) unsafe fn address(
    symbol: *const c_char,
    to: *mut *const c_void,
    version: c_int,
    flags: u64,
) -> CallResult {
    // SAFETY: the caller passes null or valid pointers.
    match unsafe { search(symbol, to, version, flags) }? {
        SearchResult::Function(_) => Ok(()),
        SearchResult::NoName | SearchResult::NotYet => Err(CudaError::NOT_FOUND),
    }
}

/// `cuGetProcAddress` of CUDA 12. If the call finds no function, the call also stores the reason.
pub(crate) unsafe fn address_with_status(
    symbol: *const c_char,
    to: *mut *const c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> CallResult {
    // SAFETY: the caller passes null or valid pointers.
    let found = unsafe { search(symbol, to, version, flags) }?;
    let number = match found {
        SearchResult::Function(_) => 0,
        SearchResult::NoName => 1,
        SearchResult::NotYet => 2,
    };
    // SAFETY: the caller passes null or a valid pointer.
    unsafe { offer(status, number) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, version: c_int, per_thread: bool) -> &'static str {
        match find(name, version, per_thread) {
            SearchResult::Function(row) => row.symbol,
            SearchResult::NoName => "no name",
            SearchResult::NotYet => "not yet",
        }
    }

    /// The rules are from the description of `cuGetProcAddress` in the CUDA driver API.
    #[test]
    fn a_function_has_the_form_of_the_version_and_of_the_default_stream() {
        for (name, version, per_thread, expected) in [
            ("cuMemAlloc", 2000, false, "cuMemAlloc"),
            ("cuMemAlloc", 3020, true, "cuMemAlloc_v2"),
            ("cuCtxCreate", 12000, false, "cuCtxCreate_v3"),
            ("cuCtxCreate", 13000, false, "cuCtxCreate_v4"),
            ("cuMemcpyHtoD", 13000, false, "cuMemcpyHtoD_v2"),
            ("cuMemcpyHtoD", 13000, true, "cuMemcpyHtoD_v2_ptds"),
            ("cuMemcpyHtoD", 6050, true, "cuMemcpyHtoD_v2"),
            ("cuLaunchKernel", 12000, true, "cuLaunchKernel_ptsz"),
            ("cuLibraryLoadData", 11000, false, "not yet"),
            ("cuGraphCreate", 13000, false, "cuGraphCreate"),
            ("cuSomethingElse", 13000, false, "no name"),
        ] {
            assert_eq!(symbol(name, version, per_thread), expected, "{name} {version} {per_thread}");
        }
    }

    #[test]
    fn no_symbol_is_exported_twice() {
        let mut symbols: Vec<_> = table::ROWS
            .iter()
            .chain(missing::ROWS)
            .flat_map(|rows| rows.iter())
            .map(|row| row.symbol)
            .collect();
        symbols.sort_unstable();
        assert!(symbols.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
