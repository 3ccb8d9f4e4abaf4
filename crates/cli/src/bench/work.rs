//! The programs of `bench`: two kernels that count iterations in each lane, the suite, and launch files.

use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use reconverge_isa::Isa;
use reconverge_simt::Options;
use reconverge_workbench::Session;
use reconverge_workbench::array::Array;
use reconverge_workbench::kernels::{KERNELS, Kernel, LANES, hash};
use reconverge_workbench::session::Outcome;
use reconverge_workbench::suite::{Rule, WORKLOADS, Workload};

use crate::files;
use crate::launch::LaunchOfFile;

/// A program with its launch and its expected result.
pub(super) struct Work {
    of: Of,
    /// Expected result of a workload. [`Work::prepare`] computes this result.
    expected: Vec<u32>,
}

enum Of {
    Counts(&'static Kernel),
    Suite(&'static Workload),
    Launch(Box<FromFile>),
}

/// A launch file.
struct FromFile {
    /// The file's path for messages.
    name: String,
    launch: LaunchOfFile,
    /// Hash of the first run's result. Every later run must have a result with the same hash.
    first: OnceLock<u32>,
}

/// The result of a comparison with the expected result.
pub(super) struct Verdict {
    /// Hash of the result words.
    pub(super) hash: u32,
    pub(super) right: bool,
}

/// Returns all built-in programs.
pub(super) fn all() -> impl Iterator<Item = Work> {
    let counts = KERNELS.iter().map(Of::Counts);
    counts.chain(WORKLOADS.iter().map(Of::Suite)).map(|of| Work { of, expected: Vec::new() })
}

/// Returns the work of a launch file.
pub(super) fn of_file(file: &Path) -> Result<Work> {
    let name = crate::shown::path(&file);
    let launch = LaunchOfFile::read(file)?;
    let of = Of::Launch(Box::new(FromFile { name, launch, first: OnceLock::new() }));
    Ok(Work { of, expected: Vec::new() })
}

impl Work {
    pub(super) fn isa(&self) -> Isa {
        match &self.of {
            Of::Counts(kernel) => kernel.isa,
            Of::Suite(workload) => workload.isa,
            Of::Launch(file) => file.launch.isa(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match &self.of {
            Of::Counts(kernel) => kernel.name,
            Of::Suite(workload) => workload.problem.name,
            Of::Launch(file) => &file.name,
        }
    }

    /// Returns the number of lanes. For a launch file, the function returns `None`, because the number of lanes is not
    /// known before the run.
    pub(super) fn lanes(&self) -> Option<u32> {
        match &self.of {
            Of::Counts(_) => Some(LANES),
            Of::Suite(workload) => Some(workload.lanes),
            Of::Launch(_) => None,
        }
    }

    /// Returns the options of a run. The result is a copy of `asked`. If a launch file states a mode or a watchdog, the
    /// copy has the file's value instead.
    pub(super) fn options(&self, asked: Options) -> Result<Options> {
        match &self.of {
            Of::Counts(_) | Of::Suite(_) => Ok(asked),
            Of::Launch(file) => file.launch.options(&asked),
        }
    }

    /// Returns the first sentence of the program's source. This sentence describes the program.
    pub(super) fn about(&self) -> String {
        let source = match &self.of {
            Of::Counts(kernel) => kernel.source,
            Of::Suite(workload) => workload.source,
            Of::Launch(_) => "",
        };
        let comments = source.lines().map_while(|line| line.strip_prefix("; "));
        let text = comments.collect::<Vec<_>>().join(" ");
        text.split([':', '.']).next().unwrap_or_default().to_owned()
    }

    /// Prepares the launch and computes the expected result.
    pub(super) fn prepare(&mut self) -> Result<Session> {
        Ok(match &self.of {
            Of::Counts(kernel) => kernel.prepare(LANES)?,
            Of::Suite(workload) => {
                self.expected = workload.problem.expected();
                workload.prepare()?
            }
            Of::Launch(file) => file.launch.prepare().with_context(|| file.name.clone())?,
        })
    }

    fn result(&self, outcome: &dyn Outcome) -> Result<Vec<u32>> {
        Ok(match &self.of {
            Of::Counts(kernel) => kernel.counts(outcome)?,
            Of::Suite(workload) => workload.result(outcome, self.expected.len())?,
            Of::Launch(_) => {
                let word =
                    |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
                let words = |(_, array): (String, Array)| array.bytes.chunks(4).map(word).collect::<Vec<_>>();
                outcome.outputs().into_iter().flat_map(words).collect()
            }
        })
    }

    /// Compares the result of a run with the expected result. [`Work::prepare`] has returned the session of the run.
    pub(super) fn judge(&self, outcome: &dyn Outcome) -> Result<Verdict> {
        let found = self.result(outcome)?;
        let hash = hash(&found);
        let right = match &self.of {
            Of::Counts(kernel) => hash == kernel.golden,
            Of::Launch(file) => {
                let as_expected = file.launch.result(outcome)?.mismatches.is_empty();
                as_expected && *file.first.get_or_init(|| hash) == hash
            }
            Of::Suite(workload) => {
                let fits = |(found, expected): (&u32, &u32)| workload.problem.rule.fits(*found, *expected);
                found.len() == self.expected.len() && found.iter().zip(&self.expected).all(fits)
            }
        };
        Ok(Verdict { hash, right })
    }

    /// Returns a phrase that names the expected result, for the end of a message.
    pub(super) fn golden(&self) -> &'static str {
        match &self.of {
            Of::Counts(_) => "the golden hash",
            Of::Suite(_) => "the evaluation",
            Of::Launch(file) if file.launch.expects_something() => "the file's expectation",
            Of::Launch(_) => "the first run",
        }
    }

    /// Writes the inputs and the result as raw words. Also writes a text file that lists these files. The list has, in
    /// this order: the rule of comparison, the file of the result, the number of words in this file, and the files of
    /// the inputs.
    pub(super) fn write(&self, outcome: &dyn Outcome, folder: &Path) -> Result<()> {
        let stem = format!("{}.{}", self.name(), self.isa().name());
        let write = |file: &str, bytes: &[u8]| files::write(&folder.join(file), bytes);
        let result = self.result(outcome)?;
        let (mut list, inputs) = match &self.of {
            Of::Counts(_) | Of::Launch(_) => ("exact\n".to_owned(), Vec::new()),
            Of::Suite(workload) => {
                let rule = match workload.problem.rule {
                    Rule::Exact => "exact\n".to_owned(),
                    Rule::Within { abs, rel } => format!("{abs} {rel}\n"),
                };
                (rule, workload.problem.inputs().0)
            }
        };
        let file = format!("{stem}.result.bin");
        let bytes: Vec<u8> = result.iter().flat_map(|word| word.to_le_bytes()).collect();
        write(&file, &bytes)?;
        let _ = writeln!(list, "{file} {}", result.len());
        for (name, array) in inputs {
            let file = format!("{stem}.{name}.bin");
            write(&file, &array.bytes)?;
            let _ = writeln!(list, "{file}");
        }
        write(&format!("{stem}.list"), list.as_bytes())
    }
}
