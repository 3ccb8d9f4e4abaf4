//! One property of `reconverge-fuzz` for libFuzzer; the variable `RECONVERGE_TARGET` names it.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use reconverge_fuzz::{Target, target};

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("RECONVERGE_TARGET").unwrap_or_default();
        target(&name).unwrap_or_else(|| panic!("RECONVERGE_TARGET={name}: `cargo xtask fuzz --list` lists the targets"))
    });
    if let Err(why) = (target.check)(bytes) {
        panic!("{}: {why}", target.name);
    }
});
