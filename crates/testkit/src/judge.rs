//! Compares the results of generated programs with the expected results, for every machine.

use crate::campaign::{Campaign, Wrong};
use crate::evaluate::{Lane, evaluate};
use crate::generate::lanes;
use crate::tree::Program;
use reconverge_simt::random::Random;

/// A program lowered to a machine's code.
pub trait LoweredProgram {
    /// Returns the number of lanes that share a program counter.
    fn width(&self) -> usize;

    /// Returns the code as text.
    fn text(&self) -> String;

    /// Runs lanes whose variables start with the values in `lanes`. Returns the variables of each lane at the end.
    ///
    /// # Errors
    /// Returns a description of the problem in three cases: the run trapped, the engines' results differ, or the
    /// machine's final state is wrong.
    fn outputs(&self, lanes: &[Lane]) -> Result<Vec<Lane>, String>;
}

impl Campaign {
    /// Compares the results of programs with the evaluation of their trees. Each program runs with a random number of
    /// lanes, from one lane to a whole group. `lower` returns `None` if a program is too large for the machine.
    ///
    /// # Panics
    /// Panics in the same cases as [`Campaign::run`].
    pub fn run_against_evaluation<L: LoweredProgram>(
        self,
        package: &str,
        generate: impl Fn(u64) -> Program,
        lower: impl Fn(u64, &Program) -> Option<L>,
    ) {
        self.run(package, generate, |seed, program| {
            let lowered = lower(seed, program)?;
            let count = 1 + Random::new(seed).below(lowered.width() as u32) as usize;
            let lanes = lanes(seed, count);
            let expected: Vec<Lane> = lanes.iter().map(|lane| evaluate(program, *lane)).collect();
            Some(lowered.outputs(&lanes).and_then(|found| equal(&lanes, &expected, &found)).map_err(|why| {
                let text = lowered.text();
                Wrong { text, why }
            }))
        });
    }

    /// Runs each lane twice: alone, and in a group. Compares the results of both runs.
    ///
    /// # Panics
    /// Panics in the same cases as [`Campaign::run`].
    pub fn run_lanes_alone<L: LoweredProgram>(
        self,
        package: &str,
        generate: impl Fn(u64) -> Program,
        lower: impl Fn(u64, &Program) -> Option<L>,
    ) {
        self.run(package, generate, |seed, program| {
            let lowered = lower(seed, program)?;
            let lanes = lanes(seed, 16);
            let alone = |together: Vec<Lane>| {
                lanes.iter().zip(together).try_for_each(|(lane, together)| {
                    let alone = lowered.outputs(std::slice::from_ref(lane));
                    if alone.as_deref() == Ok(&[together]) {
                        return Ok(());
                    }
                    Err(format!(
                        "{lane:?} ends with {alone:?} if it runs alone, but with {together:?} among other lanes"
                    ))
                })
            };
            let judged = lowered.outputs(&lanes).and_then(alone);
            Some(judged.map_err(|why| Wrong { text: lowered.text(), why }))
        });
    }
}

fn equal(lanes: &[Lane], expected: &[Lane], found: &[Lane]) -> Result<(), String> {
    let count = lanes.len();
    match (0..count).find(|lane| found.get(*lane) != Some(&expected[*lane])) {
        None => Ok(()),
        Some(lane) => Err(format!(
            "lane {lane} of {count} starts with {:?}: expected the end {:?}, found {:?}",
            lanes[lane],
            expected[lane],
            found.get(lane)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A machine that evaluates the tree and has a deliberate fault. The fault adds a number to variable 1. The fault
    /// occurs either in all lanes, or only in lanes that do not run alone in their group.
    struct Toy {
        program: Program,
        in_company: i32,
        always: i32,
    }

    impl LoweredProgram for Toy {
        fn width(&self) -> usize {
            8
        }

        fn text(&self) -> String {
            "toy".to_owned()
        }

        fn outputs(&self, lanes: &[Lane]) -> Result<Vec<Lane>, String> {
            assert!(lanes.len() <= 16);
            let mut outputs: Vec<Lane> = lanes.iter().map(|lane| evaluate(&self.program, *lane)).collect();
            for output in &mut outputs {
                output[1] += self.always + if lanes.len() > 1 { self.in_company } else { 0 };
            }
            Ok(outputs)
        }
    }

    fn passes(in_company: i32, always: i32) -> [bool; 2] {
        let generate = |seed| generate(seed, Shape::of(seed));
        let lower = |_, program: &Program| Some(Toy { program: program.clone(), in_company, always });
        let campaign = Campaign { programs: 4, seed: 1 };
        [
            catch_unwind(AssertUnwindSafe(|| campaign.run_against_evaluation("toy", generate, lower)))
                .is_ok(),
            catch_unwind(AssertUnwindSafe(|| campaign.run_lanes_alone("toy", generate, lower))).is_ok(),
        ]
    }

    #[test]
    fn a_wrong_variable_and_a_lane_that_depends_on_others_are_found() {
        assert_eq!(passes(0, 0), [true, true]);
        assert_eq!(passes(0, 1), [false, true]);
        assert_eq!(passes(1, 0), [false, false]);
    }
}
