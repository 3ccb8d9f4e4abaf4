//! temp
pub mod flow;
pub mod lane;
pub mod lane64;
pub mod rules;
