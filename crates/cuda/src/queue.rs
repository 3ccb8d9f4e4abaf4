//! The order in which tasks run. Each stream has a line. A line is a queue whose tasks run in order. A task may also
//! wait for tasks of other lines.
//!
//! If a task need not wait, the enqueuing thread runs the task. Host functions of the program, and tasks that must
//! wait, run on a separate thread of the line. Therefore, the enqueuing thread never blocks.
//!
//! A task of the null stream waits for all earlier tasks of the context's blocking streams. A task of a blocking stream
//! waits for all earlier tasks of the null stream. (CUDA driver API, "Stream synchronization behavior")

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::handles::lock;

/// The work of a task.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// The end of one task in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    line: usize,
    position: u64,
}

/// The order between the tasks of a line and the tasks of other lines of the same context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The null stream.
    Null,
    /// A stream that is ordered with the null stream.
    Blocking,
    /// A stream that is not ordered with the null stream.
    Free,
}

struct QueuedTask {
    position: u64,
    after: Vec<Point>,
    task: Task,
}

struct StreamLine {
    context: usize,
    order: Order,
    /// Number of tasks that were enqueued so far.
    issued: u64,
    /// Number of tasks that have ended. Tasks end in the order of enqueuing.
    done: u64,
    waiting: VecDeque<QueuedTask>,
    /// Whether a separate thread runs the tasks of the line.
    served: bool,
    /// Whether the stream was destroyed.
    closed: bool,
}

static LINES: Mutex<Option<Lines>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

fn with<T>(work: impl FnOnce(&mut Lines) -> T) -> T {
    work(lock(&LINES).get_or_insert_default())
}

type Lines = HashMap<usize, StreamLine>;

thread_local! {
    /// The guard for the lock on the lines. A thread that calls `fork` holds the guard during the call.
    static FORKING: Cell<Option<MutexGuard<'static, Option<Lines>>>> = const { Cell::new(None) };
}

/// Prepares the process for `fork`. The child process does not have the threads of lines. If a line of a context is
/// busy, the child removes all lines of this context. The child then calls `lost` with the context.
pub(crate) fn survive_fork(lost: fn(usize)) {
    static LOST: OnceLock<fn(usize)> = OnceLock::new();
    unsafe extern "C" fn before() {
        let _ = FORKING.try_with(|forking| forking.set(Some(lock(&LINES))));
    }
    unsafe extern "C" fn in_parent() {
        let _ = FORKING.try_with(Cell::take);
    }
    unsafe extern "C" fn in_child() {
        let Ok(Some(mut lines)) = FORKING.try_with(Cell::take) else { return };
        let known = lines.get_or_insert_default();
        let busy = known.values().filter(|line| line.done < line.issued);
        let contexts: BTreeSet<usize> = busy.map(|line| line.context).collect();
        // The child does not drop the tasks of these lines. To drop a task, the child may need a lock that only a
        // thread of the parent can release.
        known.extract_if(|_, line| contexts.contains(&line.context)).for_each(std::mem::forget);
        drop(lines);
        if let Some(lost) = LOST.get() {
            contexts.into_iter().for_each(lost);
        }
    }
    if LOST.set(lost).is_ok() {
        // SAFETY: the functions exist as long as the library. If `pthread_atfork` fails for lack of memory, a forked
        // child that waits for a busy stream waits forever.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    }
}

fn is_over(lines: &Lines, point: &Point) -> bool {
    lines.get(&point.line).is_none_or(|line| line.done >= point.position)
}

/// Waits until `condition` holds for the lines.
fn until(mut condition: impl FnMut(&Lines) -> bool) {
    let mut lines = lock(&LINES);
    while !condition(lines.get_or_insert_default()) {
        lines = CHANGED.wait(lines).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Adds a line without tasks.
pub(crate) fn open(line: usize, context: usize, order: Order) {
    let new = StreamLine {
        context,
        order,
        issued: 0,
        done: 0,
        waiting: VecDeque::new(),
        served: false,
        closed: false,
    };
    with(|lines| lines.insert(line, new));
}

/// Removes a line after its last task has ended.
pub(crate) fn close(line: usize) {
    with(|lines| {
        let Some(found) = lines.get_mut(&line) else { return };
        found.closed = true;
        if found.done == found.issued {
            lines.remove(&line);
        }
    });
}

/// Enqueues a task that waits for the points in `after`. If `elsewhere` is true, the task must not run on this thread.
/// Returns the point at the end of the task.
pub(crate) fn enqueue(line: usize, after: &[Point], elsewhere: bool, task: Task) -> Point {
    let mut lines = lock(&LINES);
    let known = lines.get_or_insert_default();
    let (context, order) = match known.get(&line) {
        Some(found) => (found.context, found.order),
        // Another thread has destroyed the stream in the meantime.
        None => return Point { line, position: 0 },
    };
    let mut after = after.to_vec();
    let ordered = |other: &StreamLine| match order {
        Order::Null => other.order == Order::Blocking,
        Order::Blocking => other.order == Order::Null,
        Order::Free => false,
    };
    let others = known.iter().filter(|(_, other)| other.context == context && ordered(other));
    after.extend(others.map(|(&line, other)| Point { line, position: other.issued }));
    after.retain(|point| !is_over(known, point));
    let Some(found) = known.get_mut(&line) else { return Point { line, position: 0 } };
    found.issued += 1;
    let point = Point { line, position: found.issued };
    if after.is_empty() && !elsewhere && found.done + 1 == point.position {
        drop(lines);
        // Other tasks may wait for this task. Therefore, a task that panics also counts as ended.
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
        finish(point);
        if let Err(panic) = ran {
            std::panic::resume_unwind(panic);
        }
        return point;
    }
    found.waiting.push_back(QueuedTask { position: point.position, after, task });
    if !std::mem::replace(&mut found.served, true) {
        drop(lines);
        let spawned = std::thread::Builder::new().name("cuda stream".to_owned()).spawn(move || serve(line));
        if spawned.is_err() {
            // If the system cannot start a thread, the tasks run on this thread.
            serve(line);
        }
    }
    point
}

fn finish(point: Point) {
    with(|lines| {
        if let Some(line) = lines.get_mut(&point.line) {
            line.done = point.position;
            if line.closed && line.done == line.issued {
                lines.remove(&point.line);
            }
        }
    });
    CHANGED.notify_all();
}

/// Runs the tasks of a line until the queue is empty.
fn serve(line: usize) {
    loop {
        let next = with(|lines| {
            let found = lines.get_mut(&line)?;
            let next = found.waiting.pop_front();
            found.served = next.is_some();
            next
        });
        let Some(QueuedTask { position, after, task }) = next else { return };
        let before = Point { line, position: position - 1 };
        until(|lines| is_over(lines, &before) && after.iter().all(|point| is_over(lines, point)));
        // A panic of the task ends neither the line nor the program. The panic hook has already printed the panic.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(task));
        finish(Point { line, position });
    }
}

/// Returns the end of the last task that was enqueued in a line.
pub(crate) fn last(line: usize) -> Point {
    Point { line, position: with(|lines| lines.get(&line).map_or(0, |found| found.issued)) }
}

/// Whether the task of a point has ended.
pub(crate) fn is_reached(point: Point) -> bool {
    with(|lines| is_over(lines, &point))
}

/// Waits until the task of a point has ended.
pub(crate) fn wait(point: Point) {
    until(|lines| is_over(lines, &point));
}

/// Returns the end of the last enqueued task of each line of a context.
pub(crate) fn points_of_context(context: usize) -> Vec<Point> {
    with(|lines| {
        let own = lines.iter().filter(|(_, line)| line.context == context);
        own.map(|(&line, found)| Point { line, position: found.issued }).collect()
    })
}

/// Waits until all tasks that are now in the lines of a context have ended.
pub(crate) fn wait_for_context(context: usize) {
    points_of_context(context).into_iter().for_each(wait);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    /// Enqueues tasks in a null stream and in a second stream. A host function blocks the second stream for a while.
    /// Returns the names of the tasks in the order of execution.
    fn order_of(order: Order) -> Vec<&'static str> {
        let (null, other, context) =
            (crate::handles::fresh(), crate::handles::fresh(), crate::handles::fresh());
        open(null, context, Order::Null);
        open(other, context, order);
        let ran = Arc::new(Mutex::new(Vec::new()));
        let (go, gone) = channel::<()>();
        let note = |what| {
            let ran = ran.clone();
            move || lock(&ran).push(what)
        };
        let held = note("held");
        enqueue(
            other,
            &[],
            true,
            Box::new(move || {
                let _ = gone.recv();
                held();
            }),
        );
        let after = enqueue(null, &[], false, Box::new(note("null")));
        lock(&ran).push("main");
        let _ = go.send(());
        wait(after);
        wait_for_context(context);
        lock(&ran).clone()
    }

    #[test]
    fn the_null_stream_waits_for_blocking_streams_and_not_for_others() {
        assert_eq!(order_of(Order::Blocking), ["main", "held", "null"]);
        assert_eq!(order_of(Order::Free), ["null", "main", "held"]);
    }

    #[test]
    fn a_task_that_panics_is_over() {
        let line = crate::handles::fresh();
        open(line, 1, Order::Free);
        let panics = || enqueue(line, &[], false, Box::new(|| panic!("expected")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(is_reached(last(line)));
        wait(enqueue(line, &[], true, Box::new(|| panic!("expected"))));
    }

    #[test]
    fn a_point_of_a_line_that_has_ended_is_reached() {
        let line = crate::handles::fresh();
        open(line, 1, Order::Free);
        let point = enqueue(line, &[], true, Box::new(|| {}));
        close(line);
        wait(point);
        assert!(is_reached(point) && is_reached(last(line)));
    }
}
