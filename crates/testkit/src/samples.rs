//! The launches of `docs/samples` for tests that compare the front ends.

/// Launches of programs that have a version for each machine. The list contains the names of the launch files without
/// `.toml`.
pub const ON_EACH_MACHINE: [&str; 9] = [
    "nested-if.r500",
    "nested-if.r700",
    "nested-if.tesla",
    "loop-break.r500",
    "loop-break.r700",
    "loop-break.tesla",
    "tutorial-r500",
    "tutorial-r700",
    "tutorial-tesla",
];

/// Launches for one machine. Each launch contains a call, barriers, or several groups.
pub const ON_ONE_MACHINE: [&str; 4] = ["gcd.r700", "primes.tesla", "reduction", "histogram.tesla"];

/// Returns the names of the launches in both lists.
pub fn launch_samples() -> impl Iterator<Item = &'static str> {
    ON_EACH_MACHINE.into_iter().chain(ON_ONE_MACHINE)
}
