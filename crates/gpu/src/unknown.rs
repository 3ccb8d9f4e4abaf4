//! Unsupported features that commands use, by name.

use std::collections::BTreeMap;

/// Maximum number of different names. Further ones are counted as [`OTHERS`].
const NAMES: usize = 256;
/// Name for the count of all further names.
const OTHERS: &str = "others";

/// Names of unknown features, each with its number of uses.
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

    /// Returns the number of notes, repeated ones included.
    pub(crate) fn times(&self) -> u64 {
        self.0.values().sum()
    }

    /// Visits each name, in order.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.0.iter().for_each(|(name, count)| visit(name, *count));
    }

    pub(crate) fn list(&self) -> Vec<(String, u64)> {
        self.0.iter().map(|(name, count)| (name.clone(), *count)).collect()
    }
}

/// Unpacks the fields of a register. Bits outside the fields are reported and ignored.
macro_rules! fields {
    ($state:expr, $Word:ident, $raw:expr) => {{
        let raw: u32 = $raw;
        let bits = raw & (u32::MAX ^ $Word::OWNED);
        if bits != 0 {
            $state.unknown.note(format!("{}: bits {bits:#x}", $Word::INFO.name));
        }
        match $Word::unpack_lenient(raw) {
            Ok(word) => word,
            // All fields are numbers and flags, so every code has a meaning.
            Err(error) => unreachable!("{error}"),
        }
    }};
}
pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;

    /// Names depend on commands, so their number is limited. None goes uncounted.
    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut unknown = Unknown::default();
        (0..1000).for_each(|number| unknown.note(format!("register {number:#x}")));
        assert_eq!(unknown.list().len(), NAMES + 1);
        assert!(unknown.list().contains(&(OTHERS.to_owned(), 1000 - NAMES as u64)));
    }
}
