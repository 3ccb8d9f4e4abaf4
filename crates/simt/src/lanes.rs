//! [`level`](crate::level) under its former name.

pub use crate::level::Kind;
