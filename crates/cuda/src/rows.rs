//! Rows of the function tables, and the macros that define the exported functions from the rows.

use std::ffi::c_int;

/// An exported function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionRow {
    /// The name without a version suffix.
    pub(crate) name: &'static str,
    /// The version of CUDA that introduced this form of the function.
    pub(crate) since: c_int,
    /// Whether this form uses the default stream of the thread as the null stream.
    pub(crate) per_thread: bool,
    /// The symbol that the library exports.
    pub(crate) symbol: &'static str,
    /// The address of the function.
    pub(crate) address: unsafe extern "C" fn(),
}

/// Returns the address of a function for the field `address` of a row.
macro_rules! address {
    ($symbol:ident) => {{
        // SAFETY: the value is a function pointer. Before a call, the caller converts the pointer to the real type of
        // the function.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>($symbol as *const ()) }
    }};
}

macro_rules! exported {
    ($symbol:ident $per_thread:literal ($($argument:ident: $kind:ty),*) $body:path) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> u32 {
            // SAFETY: the program passes the arguments that CUDA documents for this function.
            #[allow(unused_unsafe, reason = "some of the functions are safe")]
            $crate::call::enter(stringify!($symbol), $per_thread, || unsafe { $body($($argument),*) })
        }
    };
}

macro_rules! functions {
    ($($name:ident $since:literal $symbol:ident $(/ $per_since:literal $per_thread:ident)?
       ($($argument:ident: $kind:ty),* $(,)?) => $body:path;)*) => {
        $($crate::rows::functions!(@ $symbol $($per_thread)? ($($argument: $kind),*) $body);)*

        /// The rows of all functions, in the order of the table.
        pub(crate) static ROWS: &[&[$crate::rows::FunctionRow]] = &[$(&[
            $crate::rows::FunctionRow {
                name: stringify!($name),
                since: $since,
                per_thread: false,
                symbol: stringify!($symbol),
                address: $crate::rows::address!($symbol),
            },
            $($crate::rows::FunctionRow {
                name: stringify!($name),
                since: $per_since,
                per_thread: true,
                symbol: stringify!($per_thread),
                address: $crate::rows::address!($per_thread),
            },)?
        ]),*];
    };
    (@ $symbol:ident ($($argument:ident: $kind:ty),*) $body:path) => {
        $crate::rows::exported!($symbol false ($($argument: $kind),*) $body);
    };
    (@ $symbol:ident $per_thread:ident ($($argument:ident: $kind:ty),*) $body:path) => {
        $crate::rows::exported!($symbol false ($($argument: $kind),*) $body);
        $crate::rows::exported!($per_thread true ($($argument: $kind),*) $body);
    };
}

pub(crate) use {address, exported, functions};
