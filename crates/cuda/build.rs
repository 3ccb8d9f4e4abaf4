//! Sets the name of the library to the one that programs load. A program that was linked with it then finds it at run time.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
