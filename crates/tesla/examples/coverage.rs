//! Prints docs/coverage/tesla.md.

fn main() {
    print!("{}", reconverge_tesla::coverage::coverage());
}
