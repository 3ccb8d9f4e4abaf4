//! Runs numbered cases on threads, with a watchdog.
//!
//! Case `n` of a random seed has the same bytes on every thread. Therefore, three values identify a finding: the
//! target, the seed, and the number of the case. A later version may generate different bytes for the same case.
//! Therefore, the file of a finding also contains the bytes.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use reconverge_simt::random::Random;

use crate::Target;
use crate::finding::Finding;
use crate::mutate::mutated;

/// The condition for the end of a run without a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The run ends after this number of cases.
    Cases(u64),
    /// The run ends after the check of this amount. The unit of the amount is [`Target::counts`].
    Counted(u64),
    /// The run ends after this time.
    Time(Duration),
}

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed that determines every case.
    pub seed: u64,
    /// Condition for the end of the run.
    pub until: Until,
    /// Number of threads, at least 1.
    pub jobs: usize,
    /// Maximum duration of one case.
    pub limit: Duration,
    /// A folder in which each thread records the current case of the thread. If a case ends the process, the record
    /// identifies this case.
    pub marks: Option<PathBuf>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of cases that ran.
    pub cases: u64,
    /// Amount that was checked, in the unit of [`Target::counts`].
    pub counted: u64,
    /// The first case that violates the property.
    pub finding: Option<Finding>,
}

/// Returns the bytes of a case.
pub fn bytes_of(target: &Target, seeds: &[Vec<u8>], seed: u64, case: u64) -> Vec<u8> {
    let mut random = Random::new(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    match !seeds.is_empty() && random.once_in(2) {
        true => mutated(seeds, &mut random),
        false => (target.make)(&mut random),
    }
}

/// Checks whether the property is true for some bytes. Returns the checked amount.
///
/// # Errors
/// If the bytes violate the property, returns a description of the violation. A panic is also a violation. The
/// description of a panic contains the source location.
pub fn checked(target: &Target, bytes: &[u8]) -> Result<u64, String> {
    caught(|| (target.check)(bytes)).and_then(|result| result)
}

/// State of a thread.
#[derive(Default)]
struct Worker {
    /// Number of the current case plus 1, or 0 if no case is running.
    case: AtomicU64,
    /// Time between the start of the run and the start of the case, in milliseconds.
    began: AtomicU64,
}

/// State that the threads share.
struct Shared {
    target: &'static Target,
    seeds: Vec<Vec<u8>>,
    plan: Plan,
    start: Instant,
    next: AtomicU64,
    cases: AtomicU64,
    counted: AtomicU64,
    stop: AtomicBool,
    finding: Mutex<Option<Finding>>,
    workers: Vec<Worker>,
}

/// Runs a target. Several times per second, calls `progress` with the number of cases and the checked amount so far.
///
/// A case that takes longer than the limit is a finding. The run does not wait for the thread of this case.
pub fn run(target: &'static Target, plan: &Plan, mut progress: impl FnMut(u64, u64)) -> Outcome {
    let jobs = plan.jobs.max(1);
    let shared = Arc::new(Shared {
        target,
        seeds: (target.seeds)(),
        plan: plan.clone(),
        start: Instant::now(),
        next: AtomicU64::new(0),
        cases: AtomicU64::new(0),
        counted: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        finding: Mutex::new(None),
        workers: (0..jobs).map(|_| Worker::default()).collect(),
    });
    let threads: Vec<_> = (0..jobs)
        .map(|number| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.work(number))
        })
        .collect();
    let outcome = |finding| Outcome {
        cases: shared.cases.load(Ordering::Relaxed),
        counted: shared.counted.load(Ordering::Relaxed),
        finding,
    };
    let mut wait = Duration::from_millis(1);
    loop {
        std::thread::sleep(wait);
        wait = (wait * 2).min(Duration::from_millis(200));
        progress(shared.cases.load(Ordering::Relaxed), shared.counted.load(Ordering::Relaxed));
        if threads.iter().all(|thread| thread.is_finished()) {
            return outcome(shared.finding.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        if let Some(case) = shared.hung() {
            shared.stop.store(true, Ordering::Relaxed);
            let why = format!("the case had not ended after {} s", plan.limit.as_secs_f32());
            return outcome(Some(shared.found(case, why)));
        }
    }
}

impl Shared {
    fn work(&self, number: usize) {
        let worker = &self.workers[number];
        let mut mark =
            self.plan.marks.as_ref().and_then(|folder| File::create(folder.join(number.to_string())).ok());
        while !self.stop.load(Ordering::Relaxed) && !self.ended() {
            let case = self.next.fetch_add(1, Ordering::Relaxed);
            if matches!(self.plan.until, Until::Cases(cases) if case >= cases) {
                break;
            }
            let now = self.start.elapsed().as_millis() as u64;
            worker.began.store(now, Ordering::Relaxed);
            worker.case.store(case + 1, Ordering::Release);
            if let Some(mark) = &mut mark {
                let _ = mark.seek(SeekFrom::Start(0)).and_then(|_| mark.write_all(&case.to_le_bytes()));
            }
            let result = caught(|| {
                let bytes = bytes_of(self.target, &self.seeds, self.plan.seed, case);
                (self.target.check)(&bytes)
            });
            worker.case.store(0, Ordering::Release);
            self.cases.fetch_add(1, Ordering::Relaxed);
            match result.and_then(|result| result) {
                Ok(counted) => {
                    self.counted.fetch_add(counted, Ordering::Relaxed);
                }
                Err(why) => {
                    self.stop.store(true, Ordering::Relaxed);
                    let mut finding = self.finding.lock().unwrap_or_else(PoisonError::into_inner);
                    // If several threads have a finding, the finding with the smallest case number is stored.
                    if finding.as_ref().is_none_or(|known| case < known.case) {
                        *finding = Some(self.found(case, why));
                    }
                }
            }
        }
    }

    fn ended(&self) -> bool {
        match self.plan.until {
            Until::Cases(_) => false,
            Until::Counted(most) => self.counted.load(Ordering::Relaxed) >= most,
            Until::Time(most) => self.start.elapsed() >= most,
        }
    }

    /// Returns the case of a thread that has run for too long.
    fn hung(&self) -> Option<u64> {
        let now = self.start.elapsed();
        let hangs = |worker: &&Worker| {
            let began = Duration::from_millis(worker.began.load(Ordering::Relaxed));
            now.saturating_sub(began) > self.plan.limit
        };
        let worker =
            self.workers.iter().filter(|worker| worker.case.load(Ordering::Acquire) != 0).find(hangs)?;
        worker.case.load(Ordering::Acquire).checked_sub(1)
    }

    fn found(&self, case: u64, why: String) -> Finding {
        let bytes = caught(|| bytes_of(self.target, &self.seeds, self.plan.seed, case)).unwrap_or_default();
        Finding { target: self.target.name.to_owned(), seed: self.plan.seed, case, why, bytes }
    }
}

thread_local! {
    /// Whether panics of this thread are stored instead of printed.
    static KEPT: Cell<bool> = const { Cell::new(false) };
    /// The last panic, with its source location.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the result of a function. If the function panics, returns the panic with its source location.
fn caught<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match KEPT.get() {
            true => PANIC.set(Some(described(info))),
            false => others(info),
        }));
    });
    let before = KEPT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(function));
    KEPT.set(before);
    result.map_err(|payload| PANIC.take().unwrap_or_else(|| format!("panic: {}", message(&*payload))))
}

fn described(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    format!("panic{}: {}", place.unwrap_or_default(), message(info.payload()))
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::no_seeds;

    fn byte(random: &mut Random) -> Vec<u8> {
        vec![random.below(200) as u8]
    }

    static SOUND: Target = Target {
        name: "sound",
        isa: None,
        about: "",
        counts: "bytes",
        make: byte,
        seeds: no_seeds,
        check: |bytes| Ok(bytes.len() as u64),
    };
    static WRONG: Target = Target {
        check: |bytes| match bytes[0] {
            100 => Err("it is 100".to_owned()),
            101 => panic!("it is {}", bytes[0]),
            _ => Ok(1),
        },
        ..SOUND
    };
    static ENDLESS: Target = Target {
        check: |bytes| {
            // Case 100 sleeps longer than any time limit in these tests.
            if bytes[0] == 100 {
                std::thread::sleep(Duration::from_secs(30));
            }
            Ok(1)
        },
        ..SOUND
    };

    fn plan(until: Until) -> Plan {
        Plan { seed: 9, until, jobs: 2, limit: Duration::from_millis(300), marks: None }
    }

    #[test]
    fn a_run_ends_after_as_many_cases_or_as_much_as_is_asked_for() {
        let outcome = run(&SOUND, &plan(Until::Cases(1000)), |_, _| {});
        assert_eq!(outcome, Outcome { cases: 1000, counted: 1000, finding: None });
        let outcome = run(&SOUND, &plan(Until::Counted(500)), |_, _| {});
        assert!((500..502).contains(&outcome.counted) && outcome.finding.is_none(), "{outcome:?}");
    }

    #[test]
    fn what_is_wrong_and_what_panics_is_found_with_its_bytes() {
        let finding = run(&WRONG, &plan(Until::Cases(100_000)), |_, _| {}).finding.unwrap();
        let checked = checked(&WRONG, &finding.bytes);
        assert_eq!(checked, Err(finding.why.clone()));
        assert_eq!(finding.bytes, bytes_of(&WRONG, &[], 9, finding.case));
        let panics = super::checked(&WRONG, &[101]).unwrap_err();
        assert!(panics.starts_with("panic at ") && panics.ends_with(": it is 101"), "{panics}");
    }

    #[test]
    fn a_case_that_does_not_end_is_named() {
        let finding = run(&ENDLESS, &plan(Until::Cases(100_000)), |_, _| {}).finding.unwrap();
        assert_eq!((finding.bytes, &*finding.why), (vec![100], "the case had not ended after 0.3 s"));
    }
}
