//! Loaded programs. This module stores the forms of loaded programs, and counts decoded and lowered programs.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Engine;
use crate::compiling::Extent;

/// The forms of a lowered program. A key contains those options of a run on which lowering depends. For each key, there
/// is one plain form. There is also one compiled form for each [`Extent`] that a run with this key has used. The first
/// run that needs a form creates it. Up to [`MOST_FORMS`] forms are stored for later runs.
#[derive(Debug)]
pub struct Forms<K, F>(Mutex<Vec<Form<K, F>>>);

/// Maximum number of forms that are stored per program. A Tesla geometry program has a separate form for each content
/// of the memory p[].
const MOST_FORMS: usize = 8;

/// The key, the extent of host code, and the form. The extent of a plain form is `None`.
type Form<K, F> = (K, Option<Extent>, Arc<F>);

impl<K, F> Default for Forms<K, F> {
    fn default() -> Self {
        Forms(Mutex::default())
    }
}

impl<K: Clone + PartialEq, F> Forms<K, F> {
    fn get(&self, key: &K, extent: Option<Extent>, make: impl FnOnce() -> F) -> Arc<F> {
        // The lock is not held while a form is created. Two threads may therefore create the same form. Later calls
        // find the form that was stored first.
        let find = || {
            let forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = forms.iter().find(|(known, of, _)| *of == extent && known == key);
            found.map(|(_, _, form)| form.clone())
        };
        find().unwrap_or_else(|| {
            let form = Arc::new(make());
            let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if forms.len() == MOST_FORMS {
                forms.remove(0);
            }
            forms.push((key.clone(), extent, form.clone()));
            form
        })
    }

    /// Returns the form of the program for the fast engine.
    pub fn plain(&self, key: &K, lower: impl FnOnce() -> F) -> Arc<F> {
        self.get(key, None, lower)
    }

    /// Returns the form of the program for `engine` in a launch of `groups` groups, or `None` for the reference
    /// interpreter. `compile` adds host code to the plain form, and receives the extent of this host code.
    pub fn of(
        &self,
        key: &K,
        (engine, groups): (Engine, usize),
        lower: impl FnOnce() -> F,
        compile: impl FnOnce(&F, Extent) -> F,
    ) -> Option<Arc<F>> {
        let extent = match engine {
            Engine::Reference => return None,
            Engine::Fast | Engine::Lockstep => return Some(self.plain(key, lower)),
            Engine::Compiled => Extent::worth(groups),
            Engine::LockstepCompiled => Extent::Throughout,
        };
        Some(self.get(key, Some(extent), || compile(&self.plain(key, lower), extent)))
    }
}

/// A stored group that has ended. The next run of the program reuses the group. Reuse saves time, because creating a
/// group takes longer than running a few instructions. No thread waits for the stored group. If another thread is
/// accessing it, a run creates a new group.
pub struct Spare<T>(Mutex<Option<T>>);

impl<T> fmt::Debug for Spare<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spare")
    }
}

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Spare(Mutex::default())
    }
}

/// A clone of a `Spare` does not contain the stored value.
impl<T> Clone for Spare<T> {
    fn clone(&self) -> Self {
        Spare::default()
    }
}

impl<T> Spare<T> {
    /// Removes and returns the stored value. Returns `None` while another thread is accessing the stored value.
    pub fn take(&self) -> Option<T> {
        self.0.try_lock().ok()?.take()
    }

    /// Replaces the stored value. Does nothing while another thread is accessing the stored value.
    pub fn keep(&self, value: T) {
        if let Ok(mut kept) = self.0.try_lock() {
            *kept = Some(value);
        }
    }
}

/// Counts of the programs that this thread has decoded and lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// Number of programs decoded.
    pub decoded: u64,
    /// Number of programs lowered for the fast engine.
    pub lowered: u64,
}

thread_local! {
    static LOADS: Cell<Loads> = const { Cell::new(Loads { decoded: 0, lowered: 0 }) };
}

/// Returns the counts of this thread so far.
pub fn loads() -> Loads {
    LOADS.get()
}

/// Counts one decoded program.
pub fn count_decoded() {
    LOADS.set(Loads { decoded: LOADS.get().decoded + 1, ..LOADS.get() });
}

/// Counts one lowered program.
pub fn count_lowered() {
    LOADS.set(Loads { lowered: LOADS.get().lowered + 1, ..LOADS.get() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_taken_once_and_not_copied() {
        let spare = Spare::default();
        assert_eq!(spare.take(), None);
        spare.keep(1);
        spare.keep(2);
        assert_eq!((spare.clone().take(), spare.take(), spare.take()), (None, Some(2), None));
    }

    #[test]
    fn a_program_is_lowered_once_and_compiled_once_to_each_extent() {
        let forms = Forms::default();
        let lowered = Cell::new(0);
        let of = |engine, groups| {
            let lower = || {
                lowered.set(lowered.get() + 1);
                Vec::new()
            };
            forms.of(&"", (engine, groups), lower, |plain: &Vec<Extent>, extent| {
                [plain.as_slice(), &[extent]].concat()
            })
        };
        assert_eq!(of(Engine::Reference, 1), None);
        let loops = of(Engine::Compiled, 1).expect("it is lowered");
        assert_eq!(*loops, [Extent::Loops]);
        assert!(Arc::ptr_eq(&loops, &of(Engine::Compiled, 2).expect("it is kept")));
        assert_eq!(*of(Engine::Compiled, 1 << 20).expect("of many groups"), [Extent::Worth]);
        assert_eq!(*of(Engine::LockstepCompiled, 1).expect("compiled throughout"), [Extent::Throughout]);
        assert_eq!((of(Engine::Fast, 1).expect("plain").len(), lowered.get()), (0, 1));
        assert_eq!(*forms.plain(&"other", || vec![Extent::Upto(1)]), [Extent::Upto(1)], "by key");
    }
}
