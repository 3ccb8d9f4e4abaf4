//! Counts the unsupported features that commands use, by name.

use std::collections::BTreeMap;

/// Maximum number of different names. Uses of further names are counted as [`OTHERS`].
const NAMES: usize = 256;
/// Name under which all further names are counted.
const OTHERS: &str = "others";

/// Names of unsupported features, and the number of uses of each feature.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unknown(BTreeMap<String, u64>);

impl Unknown {
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        let mut name = what.into();
        if self.0.len() >= NAMES && !self.0.contains_key(&name) {
            name = OTHERS.to_owned();
        }
        *self.0.entry(name).or_default() += 1;
    }

    /// Returns the total number of uses of all features.
    pub(crate) fn times(&self) -> u64 {
        self.0.values().sum()
    }

    /// Calls `visit` for each name, in the order of names. `visit` receives the name and the number of uses.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.0.iter().for_each(|(name, count)| visit(name, *count));
    }

    pub(crate) fn list(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|(name, count)| (name.clone(), *count)).collect()
    }
}

/// Unpacks the fields of a register. A set bit outside the fields is reported as unsupported and then ignored.
macro_rules! fields {
    ($state:expr, $Word:ident, $raw:expr) => {{
        let raw: u32 = $raw;
        let bits = raw & (u32::MAX ^ $Word::OWNED);
        if bits != 0 {
            $state.unknown.note(format!("{}: bits {bits:#x}", $Word::INFO.name));
        }
        match $Word::unpack_lenient(raw) {
            Ok(word) => word,
            // All fields are numbers or flags, so every code is valid.
            Err(error) => unreachable!("{error}"),
        }
    }};
}
pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands determine the names. The number of names is limited, so that commands cannot use any amount of memory.
    /// Every use is still counted.
    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut unknown = Unknown::default();
        (0..1000).for_each(|number| unknown.note(format!("register {number:#x}")));
        assert_eq!(unknown.list().len(), NAMES + 1);
        assert!(unknown.list().contains(&(OTHERS.to_owned(), 1000 - NAMES as u64)));
    }
}
