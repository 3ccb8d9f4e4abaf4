//! Which programs a test runs, chosen from the command line, and how it reports a failure.
//!
//! `RECONVERGE_PROGRAMS` says how many programs, `RECONVERGE_SEED` the seed of the first one; both are numbers, decimal
//! or hexadecimal with `0x`. The seeds count up from there. `docs/testing.md` shows how to use them.

use crate::Random;
use crate::tree::Program;

/// How many programs a test runs, and where their seeds start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Campaign {
    /// Programs to judge; those that a machine cannot hold do not count.
    pub programs: u64,
    /// The first seed.
    pub seed: u64,
}

/// A program whose result is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The program as it was lowered.
    pub text: String,
    /// What differs, or the trap.
    pub why: String,
}

impl Campaign {
    /// The campaign that the environment asks for; by default `programs` programs from seed 0 on.
    ///
    /// # Panics
    /// A variable is set, but not to a number.
    pub fn from_environment(programs: u64) -> Campaign {
        let number = |name: &str, otherwise: u64| match std::env::var(name) {
            Ok(text) => parse(&text).unwrap_or_else(|| panic!("{name}={text} is not a number")),
            Err(_) => otherwise,
        };
        Campaign { programs: number("RECONVERGE_PROGRAMS", programs), seed: number("RECONVERGE_SEED", 0) }
    }

    /// For tests that make programs of random numbers themselves: how many programs, and the numbers, from a seed of the
    /// test's own and that of the campaign. Prints both seeds as one.
    ///
    /// # Panics
    /// As [`Campaign::from_environment`].
    pub fn of_random(programs: u64, seed: u64) -> (u64, Random) {
        let campaign = Campaign::from_environment(programs);
        let seed = seed ^ campaign.seed;
        println!("{} programs, seed {seed:#x}", campaign.programs);
        (campaign.programs, Random::new(seed))
    }

    /// A tenth of the programs, at least one: for tests that take long for each.
    pub fn tenth(self) -> Campaign {
        Campaign { programs: self.programs.div_ceil(10), ..self }
    }

    /// Judges programs until enough have passed. `generate` gives the program of a seed; `judge` runs one and gives its
    /// verdict, or `None` if the machine has no room for it.
    ///
    /// # Panics
    /// At the first program that is wrong, with its seed and the smallest program found that fails in the same test.
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
    // Takes the first smaller program that fails as well, until none does.
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
        "seed {seed}: {}\n\nthe smallest program found that fails so:\n{program}\nlowered:\n{}\n\nagain: \
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
        // Wrong is every program with a step of variable 2 in a loop.
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
            "seed 77: differs\n\nthe smallest program found that fails so:\nloop 0\n  step v2\nbooleans \
             0x00000000\n\nlowered:\nwords\n\nagain: RECONVERGE_SEED=77 RECONVERGE_PROGRAMS=1 cargo test -p \
             some-package --test structured"
        );
    }
}
