//! Distribution of work to the threads of the host. The work consists of pieces, which are started one after another in
//! a fixed order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::pool;

/// The results of all pieces, and the workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done<R, W> {
    /// Result of each piece, in the order of the pieces.
    pub results: Vec<R>,
    /// The workers, in no particular order.
    pub workers: Vec<W>,
}

/// Hands out pieces to `workers` threads of the pool of [`pool::install`]
/// ([`Options::workers`](crate::Options::workers)). The pieces are handed out in order, one at a time. Each thread
/// creates one worker, and this worker processes all pieces of the thread.
///
/// A piece is handed out only after all earlier pieces. So the result of a piece can cancel later pieces, but not
/// earlier pieces. The pieces are not divided among the threads in advance. With such a division, one thread could be
/// idle while another thread still has pieces.
///
/// ```
/// use reconverge_simt::workers::hand_out;
///
/// let done = hand_out(2, 1..=4, || 0, |sum, piece| { *sum += piece; 10 * piece });
/// assert_eq!(done.results, [10, 20, 30, 40]);
/// assert_eq!(done.workers.iter().sum::<i32>(), 10);
/// ```
pub fn hand_out<I, R, W>(
    workers: usize,
    pieces: I,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, I::Item) -> R + Sync,
) -> Done<R, W>
where
    I: Iterator + Send,
    R: Send,
    W: Send,
{
    let left = Mutex::new(pieces.enumerate());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = |_| {
        let mut results = Vec::new();
        let mut worker = worker();
        while let Some((number, piece)) = next() {
            results.push((number, work(&mut worker, piece)));
        }
        (results, worker)
    };
    let parts: Vec<_> = match workers {
        // A single worker runs on this thread, so that no pool is necessary.
        0 | 1 => vec![run(0)],
        _ => pool::install(|| (0..workers).into_par_iter().with_max_len(1).map(run).collect()),
    };
    let mut done = Done { results: Vec::new(), workers: Vec::with_capacity(workers) };
    let count: usize = parts.iter().map(|(part, _)| part.len()).sum();
    let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
    for (part, worker) in parts {
        for (number, result) in part {
            results[number] = Some(result);
        }
        done.workers.push(worker);
    }
    done.results.extend(results.into_iter().flatten());
    done
}

/// Hands out pieces as [`hand_out`] does, for work that can fail. After a failure, no more pieces are handed out.
///
/// # Errors
/// Returns an error if a piece failed. If several pieces failed, returns the error of the failed piece that is first in
/// the order of the pieces. The number of workers has no effect on this error.
pub fn try_hand_out<I, R, E, W>(
    workers: usize,
    pieces: I,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, I::Item) -> Result<R, E> + Sync,
) -> Result<Done<R, W>, E>
where
    I: Iterator + Send,
    R: Send,
    E: Send,
    W: Send,
{
    // All pieces before a failed piece have been handed out. So the results contain the first failure.
    let failed = AtomicBool::new(false);
    let pieces = pieces.take_while(|_| !failed.load(Ordering::Relaxed));
    let Done { results, workers } = hand_out(workers, pieces, worker, |worker, piece| {
        let result = work(worker, piece);
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    });
    Ok(Done { results: results.into_iter().collect::<Result<_, _>>()?, workers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_piece_is_worked_on_once_and_results_are_in_order_for_any_number_of_threads() {
        for threads in 1..5 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            for pieces in [0, 1, 2, 1000usize] {
                let done = pool.install(|| {
                    hand_out(
                        threads,
                        0..pieces,
                        || 0usize,
                        |count, piece| {
                            *count += 1;
                            3 * piece
                        },
                    )
                });
                assert_eq!(done.results, (0..pieces).map(|piece| 3 * piece).collect::<Vec<_>>());
                assert_eq!(done.workers.len(), threads);
                assert_eq!(done.workers.iter().sum::<usize>(), pieces);
            }
        }
    }

    #[test]
    fn pieces_are_handed_out_in_order() {
        let last = AtomicUsize::new(0);
        let pieces =
            (1..=100usize).inspect(|piece| assert_eq!(last.fetch_add(1, Ordering::SeqCst) + 1, *piece));
        assert_eq!(
            hand_out(rayon::current_num_threads(), pieces, || (), |(), piece| piece).results.len(),
            100
        );
    }

    #[test]
    fn the_first_failure_is_the_result_for_any_number_of_threads_and_ends_the_work() {
        for threads in 1..5 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let worked = AtomicUsize::new(0);
            let work = |(): &mut (), piece: usize| {
                worked.fetch_add(1, Ordering::Relaxed);
                if piece % 40 == 39 { Err(piece) } else { Ok(piece) }
            };
            let failed = pool.install(|| try_hand_out(threads, 0..1_000_000, || (), work));
            assert_eq!(failed.map(|done| done.results.len()), Err(39));
            assert!(worked.into_inner() < 1_000_000);
            let done = pool.install(|| try_hand_out(threads, 0..39, || (), |(), piece| Ok::<_, ()>(piece)));
            assert_eq!(done.map(|done| done.results), Ok((0..39).collect()));
        }
    }
}
