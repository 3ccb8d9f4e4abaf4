//! Selects the programs that a test runs, and reports failures. Environment variables determine the selection.
//!
//! `RECONVERGE_PROGRAMS` is the number of programs, and `RECONVERGE_SEED` is the seed of the first program. Both values
//! are decimal, or hexadecimal with the prefix `0x`. The seed increases by 1 from program to program. `docs/testing.md`
//! shows how to use these variables.

use crate::Random;
use crate::tree::Program;

/// Number of programs that a test runs, and the seed of the first program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// Number of programs to judge. This number does not include programs that are too large for a machine.
    pub programs: u64,
    /// The first seed.
    pub seed: u64,
}

/// A program whose result is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The lowered program.
    pub text: String,
    /// The difference from the expected result, or the trap.
    pub why: String,
}

impl Campaign {
    /// Returns the campaign that the environment variables set. If no variable is set, the campaign has `programs`
    /// programs, from seed 0 on.
    ///
    /// # Panics
    /// Panics if a variable has a value that is not a number.
    pub fn from_environment(programs: u64) -> Campaign {
        let number = |name: &str, otherwise: u64| match std::env::var(name) {
            Ok(text) => parse(&text).unwrap_or_else(|| panic!("{name}={text} is not a number")),
            Err(_) => otherwise,
        };
        Campaign { programs: number("RECONVERGE_PROGRAMS", programs), seed: number("RECONVERGE_SEED", 0) }
    }

    /// Returns the number of programs and a random number generator, for tests that generate programs themselves. The
    /// generator's seed combines the seed of the test and the seed of the campaign. Prints the combined seed.
    ///
    /// # Panics
    /// Panics in the same cases as [`Campaign::from_environment`].
    pub fn of_random(programs: u64, seed: u64) -> (u64, Random) {
        let campaign = Campaign::from_environment(programs);
        let seed = seed ^ campaign.seed;
        println!("{} programs, seed {seed:#x}", campaign.programs);
        (campaign.programs, Random::new(seed))
    }

    /// Returns a campaign with a tenth of the programs of `self`, but at least one program. Tests with long runs use
    /// the returned campaign.
    pub fn tenth(self) -> Campaign {
        Campaign { programs: self.programs.div_ceil(10), ..self }
    }

    /// Judges programs until enough programs have passed. `generate` returns the program of a seed. `judge` runs a
    /// program and returns the verdict. If the program is too large for the machine, `judge` returns `None`.
    ///
    /// # Panics
    /// Panics at the first wrong program. The message contains the seed of this program. The message also contains the
    /// smallest wrong program that the campaign has derived from this program.
    pub fn run(
        self,
        package: &str,
        generate: impl Fn(u64) -> Program,
        judge: impl Fn(u64, &Program) -> Option<Result<(), Wrong>>,
    ) {
        let (mut done, mut too_long) = (0, 0);
        let mut seed = self.seed;
        while done < self.programs {
            let program = generate(seed);
            match judge(seed, &program) {
                None => too_long += 1,
                Some(Ok(())) => done += 1,
                Some(Err(wrong)) => fail(package, seed, program, wrong, |program| judge(seed, program)),
            }
            seed = seed.wrapping_add(1);
        }
        println!("{done} programs, seeds {} to {}, {too_long} too long", self.seed, seed.wrapping_sub(1));
    }
}

fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn fail(
    package: &str,
    seed: u64,
    program: Program,
    wrong: Wrong,
    judge: impl Fn(&Program) -> Option<Result<(), Wrong>>,
) -> ! {
    let (mut program, mut wrong) = (program, wrong);
    let mut attempts = 0;
    // Replaces the program by the first smaller program that also fails. Repeats this step until no smaller program
    // fails.
    'smaller: loop {
        for candidate in program.smaller() {
            attempts += 1;
            if attempts > 20_000 {
                break 'smaller;
            }
            if let Some(Err(found)) = judge(&candidate) {
                (program, wrong) = (candidate, found);
                continue 'smaller;
            }
        }
        break;
    }
    panic!(
        "seed {seed}: {}\n\nthe smallest program found that fails in the same way:\n{program}\nlowered:\n{}\n\nagain: \
         RECONVERGE_SEED={seed} RECONVERGE_PROGRAMS=1 cargo test -p {package} --test structured",
        wrong.why, wrong.text
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Statement;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((parse("10"), parse("0x10"), parse("ten")), (Some(10), Some(16), None));
    }

    #[test]
    fn a_failure_names_its_seed_and_shows_the_smallest_program() {
        // In this test, a program is wrong if some loop of the program contains a step of variable 2.
        let has_step = |statement: &Statement| match statement {
            Statement::Loop(_, body) => body.contains(&Statement::Step(2)),
            _ => false,
        };
        let judge = |_: u64, program: &Program| {
            let wrong = Wrong { text: String::from("words"), why: String::from("differs") };
            Some(if program.body.iter().any(has_step) { Err(wrong) } else { Ok(()) })
        };
        let generate = |seed: u64| Program {
            body: vec![
                Statement::Mix(seed as i32),
                Statement::Loop(3, vec![Statement::Mix(1), Statement::Step(2)]),
            ],
            functions: vec![vec![Statement::Mix(1)]],
            ..Program::default()
        };
        let campaign = Campaign { programs: 5, seed: 77 };
        let panic = std::panic::catch_unwind(|| campaign.run("some-package", generate, judge)).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert_eq!(
            message,
            "seed 77: differs\n\nthe smallest program found that fails in the same way:\nloop 0\n  step v2\n\
             booleans 0x00000000\n\nlowered:\nwords\n\nagain: RECONVERGE_SEED=77 RECONVERGE_PROGRAMS=1 cargo test -p \
             some-package --test structured"
        );
    }
}
