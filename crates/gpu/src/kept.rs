//! Loaded shaders that later draws use again.

use std::collections::VecDeque;

/// Shaders that are kept, at most.
const MOST: usize = 32;

/// Loaded shaders by what they were loaded from, the latest used last.
#[derive(Clone, Debug)]
pub(crate) struct Kept<K, L>(VecDeque<(K, L)>);

impl<K, L> Default for Kept<K, L> {
    fn default() -> Kept<K, L> {
        Kept(VecDeque::new())
    }
}

impl<K: PartialEq, L: Clone> Kept<K, L> {
    /// Returns the shader of a key, and loads it if it is not kept.
    ///
    /// # Errors
    /// The errors of `load`.
    pub(crate) fn get<E>(&mut self, key: K, load: impl FnOnce(&K) -> Result<L, E>) -> Result<L, E> {
        let at = self.0.iter().position(|(known, _)| *known == key);
        let kept = match at.and_then(|at| self.0.remove(at)) {
            Some(kept) => kept,
            None => {
                let loaded = load(&key)?;
                (key, loaded)
            }
        };
        let loaded = kept.1.clone();
        self.0.push_back(kept);
        if self.0.len() > MOST {
            self.0.pop_front();
        }
        Ok(loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shader_is_loaded_again_only_after_many_others() {
        let (mut kept, mut loads) = (Kept::default(), 0);
        let mut get = |key: usize| {
            kept.get(key, |key| {
                loads += 1;
                if *key == usize::MAX { Err("no program") } else { Ok(format!("{key}")) }
            })
            .map(|loaded| (loaded, loads))
        };
        assert_eq!([0, 0, 1, 0].map(&mut get).map(|got| got.map(|(_, loads)| loads)), [1, 1, 2, 2].map(Ok));
        assert_eq!(get(usize::MAX), Err("no program"));
        (2..MOST + 1).for_each(|key| drop(get(key)));
        assert_eq!(get(0), Ok(("0".to_owned(), MOST + 2)), "used later than others");
        assert_eq!(get(1), Ok(("1".to_owned(), MOST + 3)), "the oldest has made room");
    }
}
