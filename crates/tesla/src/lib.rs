//! NVIDIA G80 to GT21x: CUDA sm_10 to sm_13, and the graphics programs of nv50.
//!
//! [`lane`] is what one lane computes: pure functions from operand values to a result and its flags.

pub mod lane;
