//! The constants of generated code, one vector for each.

use std::collections::HashMap;

use crate::level::Level;

/// Pool of constants. Each constant is a vector with the same word in all lanes.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) level: Level,
    pub(crate) places: HashMap<u32, i32>,
    pub(crate) steps: Option<i32>,
    pub(crate) words: Vec<u32>,
}

impl Pool {
    pub(crate) fn new(level: Level) -> Pool {
        Pool { level, places: HashMap::new(), steps: None, words: Vec::new() }
    }

    fn push(&mut self, word: impl Fn(usize) -> u32) -> i32 {
        let place = 4 * self.words.len() as i32;
        self.words.extend((0..self.level.lanes()).map(word));
        place
    }

    pub(crate) fn place(&mut self, word: u32) -> i32 {
        if let Some(place) = self.places.get(&word) {
            return *place;
        }
        let place = self.push(|_| word);
        self.places.insert(word, place);
        place
    }

    /// Returns the offset of a vector in the pool, in bytes. The vector contains the distances of contiguous words from
    /// the first word.
    pub(crate) fn steps(&mut self) -> i32 {
        let place = self.steps.unwrap_or_else(|| self.push(|lane| 4 * lane as u32));
        self.steps = Some(place);
        place
    }
}
