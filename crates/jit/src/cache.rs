//! Cache of generated code for launches of the same program: bounded in size, shared by threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::CompileError;
use crate::level::Level;
use crate::program::{Code, Node};
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
static CACHE: Cache<Plan, Regions> = Cache::new();

/// Programs whose code is linked.
static LINKED: Cache<Node, Code> = Cache::new();

struct Cache<P, C>(Mutex<VecDeque<Kept<P, C>>>);

struct Kept<P, C> {
    plans: Vec<P>,
    level: Level,
    lanes: usize,
    mode: u32,
    bytes: usize,
    code: Arc<C>,
}

impl<P: PartialEq, C> Cache<P, C> {
    const fn new() -> Self {
        Cache(Mutex::new(VecDeque::new()))
    }

    /// Returns what `compile` returns, or its earlier result for the same arguments. `size` returns its bytes.
    fn get(
        &self,
        plans: Vec<P>,
        (level, lanes, mode): (Level, usize, u32),
        compile: impl Fn(&[P], Level, usize, u32) -> Result<C, CompileError>,
        size: impl Fn(&C) -> usize,
    ) -> Result<Arc<C>, CompileError> {
        let same = |kept: &Kept<P, C>| {
            (kept.level, kept.lanes, kept.mode) == (level, lanes, mode) && kept.plans == plans
        };
        let Some(mut cache) = lock(&self.0) else {
            return Ok(Arc::new(compile(&plans, level, lanes, mode)?));
        };
        if let Some(kept) = cache.iter().position(same).and_then(|place| cache.remove(place)) {
            let code = kept.code.clone();
            cache.push_back(kept);
            return Ok(code);
        }
        // Other threads wait meanwhile: they usually need the same program.
        let code = Arc::new(compile(&plans, level, lanes, mode)?);
        cache.push_back(Kept { plans, level, lanes, mode, bytes: size(&code), code: code.clone() });
        let bytes = |cache: &VecDeque<Kept<P, C>>| cache.iter().map(|kept| kept.bytes).sum::<usize>();
        while cache.len() > MOST_PROGRAMS || bytes(&cache) > MOST_BYTES {
            cache.pop_front();
        }
        Ok(code)
    }
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
        CACHE.get(plans, (level, lanes, mode), Regions::compile, Regions::size)
    }
}

impl Code {
    /// Returns the result of [`Code::compile`], or its earlier result for the same nodes.
    ///
    /// # Errors
    /// As for [`Code::compile`].
    pub(crate) fn shared(
        nodes: Vec<Node>,
        level: Level,
        lanes: usize,
        mode: u32,
    ) -> Result<Arc<Code>, CompileError> {
        LINKED.get(nodes, (level, lanes, mode), Code::compile, Code::size)
    }
}

/// Returns the cache, or `None` if it stays locked for longer than it takes to compile several programs.
fn lock<T>(cache: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    static LOST: AtomicBool = AtomicBool::new(false);
    let start = Instant::now();
    loop {
        match cache.try_lock() {
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
        assert!(CACHE.0.lock().expect("the cache is not poisoned").len() <= MOST_PROGRAMS);
    }
}
