//! Cache of generated code for launches of the same program: bounded in size, shared by threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::CompileError;
use crate::level::Level;
use crate::region::{Plan, Regions};

/// Maximum number of bytes of code in the cache. The code of a program has several thousand.
const MOST_BYTES: usize = 16 << 20;

/// Maximum number of programs in the cache. A lookup compares each of them with the requested one.
const MOST_PROGRAMS: usize = 64;

/// Time that a thread waits for others that compile.
const PATIENCE: Duration = Duration::from_secs(1);

/// The compiled programs, the latest last.
///
/// No thread waits for the lock for long: in a forked child it stays locked if another thread held it.
static CACHE: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());

struct Kept {
    plans: Vec<Plan>,
    level: Level,
    lanes: usize,
    mode: u32,
    regions: Arc<Regions>,
}

impl Regions {
    /// Returns the result of [`Regions::compile`], or its earlier result for the same plans.
    ///
    /// # Errors
    /// As for [`Regions::compile`].
    pub fn shared(
        plans: Vec<Plan>,
        level: Level,
        lanes: usize,
        mode: u32,
    ) -> Result<Arc<Regions>, CompileError> {
        let same =
            |kept: &Kept| (kept.level, kept.lanes, kept.mode) == (level, lanes, mode) && kept.plans == plans;
        let Some(mut cache) = lock() else {
            return Ok(Arc::new(Regions::compile(&plans, level, lanes, mode)?));
        };
        if let Some(kept) = cache.iter().position(same).and_then(|place| cache.remove(place)) {
            let regions = kept.regions.clone();
            cache.push_back(kept);
            return Ok(regions);
        }
        // Other threads wait meanwhile: they usually need the same program.
        let regions = Arc::new(Regions::compile(&plans, level, lanes, mode)?);
        cache.push_back(Kept { plans, level, lanes, mode, regions: regions.clone() });
        let bytes = |cache: &VecDeque<Kept>| cache.iter().map(|kept| kept.regions.size()).sum::<usize>();
        while cache.len() > MOST_PROGRAMS || bytes(&cache) > MOST_BYTES {
            cache.pop_front();
        }
        Ok(regions)
    }
}

/// Returns the cache, or `None` if it stays locked for longer than it takes to compile several programs.
fn lock() -> Option<MutexGuard<'static, VecDeque<Kept>>> {
    static LOST: AtomicBool = AtomicBool::new(false);
    let start = Instant::now();
    loop {
        match CACHE.try_lock() {
            Ok(cache) => return Some(cache),
            Err(TryLockError::Poisoned(cache)) => return Some(cache.into_inner()),
            Err(TryLockError::WouldBlock) if LOST.load(Ordering::Relaxed) => return None,
            Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => {
                LOST.store(true, Ordering::Relaxed);
                return None;
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Back, FLUSH, Segment, Step};
    use crate::strip::{Row, Strip};

    fn plan(word: u32) -> Plan {
        let mut strip = Strip::new();
        let value = strip.constant(word);
        strip.store(Row::Group(0), value);
        Plan {
            segments: vec![Segment::new(None, strip, None)],
            steps: vec![Step::Run(1)],
            back: Back::Never,
            mask: Row::Own(0),
            lazy: false,
            joins: false,
        }
    }

    #[test]
    fn the_same_plans_give_the_same_code_until_others_have_come() {
        let at = |word: u32, level: Level, mode: u32| {
            Regions::shared(vec![plan(word)], level, 32, mode).expect("code")
        };
        let of = |word: u32, mode: u32| at(word, Level::Avx2, mode);
        let first = of(1, FLUSH);
        assert!(Arc::ptr_eq(&first, &of(1, FLUSH)));
        assert!(!Arc::ptr_eq(&first, &of(2, FLUSH)) && !Arc::ptr_eq(&first, &of(1, FLUSH ^ 1)));
        assert!(!Arc::ptr_eq(&first, &at(1, Level::Avx512, FLUSH)));
        for word in 0..2 * MOST_PROGRAMS as u32 {
            of(1000 + word, FLUSH);
        }
        assert!(!Arc::ptr_eq(&first, &of(1, FLUSH)), "it has made room");
        assert!(CACHE.lock().expect("the cache is not poisoned").len() <= MOST_PROGRAMS);
    }
}
