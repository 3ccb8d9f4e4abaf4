//! Cache of generated code for launches of the same program. The size of the cache is bounded. All threads share the
//! cache.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::CompileError;
use crate::level::Level;
use crate::program::{Code, Node};

/// Maximum number of bytes of code in the cache. The code of a program has several thousand bytes.
const MOST_BYTES: usize = 16 << 20;

/// Maximum number of programs in the cache. A lookup compares each program in the cache with the requested program.
const MOST_PROGRAMS: usize = 64;

/// Maximum time that a thread waits for the cache during another thread's compilation.
const PATIENCE: Duration = Duration::from_secs(1);

/// The compiled programs. The most recently used program is last.
///
/// Threads wait for the lock only for a limited time, because a fork may leave the lock locked. If another thread holds
/// the lock during the fork, no thread of the child process ever releases the lock.
static CACHE: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());

struct Kept {
    nodes: Vec<Node>,
    level: Level,
    lanes: usize,
    mode: u32,
    bytes: usize,
    code: Arc<Code>,
}

impl Code {
    /// Returns the result of [`Code::compile`]. If equal nodes were compiled before, the result comes from the cache.
    ///
    /// # Errors
    /// The errors are those of [`Code::compile`].
    pub(crate) fn shared(
        nodes: Vec<Node>,
        level: Level,
        lanes: usize,
        mode: u32,
    ) -> Result<Arc<Code>, CompileError> {
        let same =
            |kept: &Kept| (kept.level, kept.lanes, kept.mode) == (level, lanes, mode) && kept.nodes == nodes;
        let Some(mut cache) = lock(&CACHE) else {
            return Ok(Arc::new(Code::compile(&nodes, level, lanes, mode)?));
        };
        if let Some(kept) = cache.iter().position(same).and_then(|place| cache.remove(place)) {
            let code = kept.code.clone();
            cache.push_back(kept);
            return Ok(code);
        }
        // All other threads wait during the compilation. The waiting threads usually need the compiled program.
        let code = Arc::new(Code::compile(&nodes, level, lanes, mode)?);
        cache.push_back(Kept { nodes, level, lanes, mode, bytes: code.size(), code: code.clone() });
        let bytes = |cache: &VecDeque<Kept>| cache.iter().map(|kept| kept.bytes).sum::<usize>();
        while cache.len() > MOST_PROGRAMS || bytes(&cache) > MOST_BYTES {
            cache.pop_front();
        }
        Ok(code)
    }
}

/// Returns the cache. Returns `None` if the cache stays locked for longer than [`PATIENCE`]. In this time, a thread can
/// compile several programs.
fn lock(cache: &Mutex<VecDeque<Kept>>) -> Option<MutexGuard<'_, VecDeque<Kept>>> {
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
    use crate::program::tests::node;
    use crate::segment::Segment;
    use crate::state::FLUSH;
    use crate::strip::{Row, Strip};

    /// Returns a program with one node, which stores a word.
    fn program(word: u32) -> Vec<Node> {
        let mut strip = Strip::new();
        let value = strip.constant(word);
        strip.store(Row::Group(0), value);
        vec![node(Segment::new(None, strip))]
    }

    #[test]
    fn the_same_nodes_give_the_same_code_until_others_have_come() {
        let at =
            |word: u32, level: Level, mode: u32| Code::shared(program(word), level, 32, mode).expect("code");
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
