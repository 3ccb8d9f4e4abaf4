//! temp
pub mod chip;
pub mod code;
mod decode;
mod export;
pub mod fetch;
pub mod flow;
pub mod format;
pub mod lane;
pub mod lane64;
pub mod launch;
pub mod meaning;
pub mod memory;
pub mod reference;
pub mod rules;
pub mod text;
pub mod words;
