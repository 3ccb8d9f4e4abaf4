//! A cache of loaded shaders. Later draws can reuse the shaders.

/// Maximum number of cached shaders.
const MOST: usize = 32;

/// Loaded shaders. The key of a shader describes the source of the shader.
#[derive(Clone, Debug)]
pub(crate) struct Kept<K, L> {
    shaders: Vec<KeptShader<K, L>>,
    /// Number of requests so far.
    requests: u64,
}

#[derive(Clone, Debug)]
struct KeptShader<K, L> {
    key: K,
    loaded: L,
    /// Number of the last request for this shader.
    used: u64,
}

impl<K, L> Default for Kept<K, L> {
    fn default() -> Kept<K, L> {
        Kept { shaders: Vec::new(), requests: 0 }
    }
}

impl<K, L> Kept<K, L> {
    /// Returns the cached shader whose key satisfies `same`, and returns this key. If no key satisfies `same`, calls
    /// `load`. `load` returns a shader and a key, and the cache stores both. A draw passes the comparison `same`
    /// instead of a key, because a comparison takes less time than creating a key.
    ///
    /// # Errors
    /// Returns the error of `load`.
    pub(crate) fn get<E>(
        &mut self,
        same: impl Fn(&K) -> bool,
        load: impl FnOnce() -> Result<(K, L), E>,
    ) -> Result<(&K, &mut L), E> {
        self.requests += 1;
        let place = match self.shaders.iter().position(|shader| same(&shader.key)) {
            Some(place) => place,
            None => {
                let (key, loaded) = load()?;
                if self.shaders.len() == MOST {
                    let oldest = self.shaders.iter().enumerate().min_by_key(|(_, shader)| shader.used);
                    let oldest = oldest.map_or(0, |(place, _)| place);
                    self.shaders.swap_remove(oldest);
                }
                self.shaders.push(KeptShader { key, loaded, used: 0 });
                self.shaders.len() - 1
            }
        };
        let shader = &mut self.shaders[place];
        shader.used = self.requests;
        Ok((&shader.key, &mut shader.loaded))
    }

    /// Drops the shaders whose keys do not satisfy `stays`.
    pub(crate) fn retain(&mut self, stays: impl Fn(&K) -> bool) {
        self.shaders.retain(|shader| stays(&shader.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shader_is_loaded_again_only_after_many_others() {
        let (mut kept, mut loads) = (Kept::default(), 0);
        let mut get = |key: usize| {
            let load = || {
                loads += 1;
                if key == usize::MAX { Err("no program") } else { Ok((key, format!("{key}"))) }
            };
            kept.get(|known| *known == key, load).map(|(_, loaded)| (loaded.clone(), loads))
        };
        assert_eq!([0, 0, 1, 0].map(&mut get).map(|got| got.map(|(_, loads)| loads)), [1, 1, 2, 2].map(Ok));
        assert_eq!(get(usize::MAX), Err("no program"));
        (2..MOST + 1).for_each(|key| drop(get(key)));
        assert_eq!(get(0), Ok(("0".to_owned(), MOST + 2)), "used later than others");
        assert_eq!(get(1), Ok(("1".to_owned(), MOST + 3)), "the oldest has made room");
    }
}
