//! Tests of the lane functions in addition to the vectors: plain models, an independent soft float, and whole small
//! domains.

mod convert;
mod float;
mod integer;
mod operands;
mod special;
mod words;
