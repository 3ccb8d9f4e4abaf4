//! Rows of the tables of functions, and the macros that define the functions of rows.

use std::ffi::c_int;

/// An exported function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionRow {
    /// The name without a version.
    pub(crate) name: &'static str,
    /// The version of CUDA that introduced this form.
    pub(crate) since: c_int,
    /// Whether its null stream is that of the thread.
    pub(crate) per_thread: bool,
    /// The name that the library exports.
    pub(crate) symbol: &'static str,
    /// The function.
    pub(crate) address: unsafe extern "C" fn(),
}

/// The address of a function, for a row.
macro_rules! address {
    ($symbol:ident) => {{
        // SAFETY: a function pointer; it is called as what it is.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn()>($symbol as *const ()) }
    }};
}

macro_rules! exported {
    ($symbol:ident $per_thread:literal ($($argument:ident: $kind:ty),*) $body:path) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $symbol($($argument: $kind),*) -> u32 {
            // SAFETY: the program passes what CUDA documents for this function.
            #[allow(unused_unsafe, reason = "a few need no promise")]
            $crate::call::enter(stringify!($symbol), $per_thread, || unsafe { $body($($argument),*) })
        }
    };
}

macro_rules! functions {
    ($($name:ident $since:literal $symbol:ident $(/ $per_since:literal $per_thread:ident)?
       ($($argument:ident: $kind:ty),* $(,)?) => $body:path;)*) => {
        $($crate::rows::functions!(@ $symbol $($per_thread)? ($($argument: $kind),*) $body);)*

        /// All of them, in the order of the rows.
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
