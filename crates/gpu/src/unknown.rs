//! What commands ask for and a chip here does not do, by name.

use std::collections::BTreeMap;

/// The number of different names. Further ones are counted as [`OTHERS`].
const NAMES: usize = 256;
/// Name for the count of all further names.
const OTHERS: &str = "others";

/// Names of what is not understood, each with how often it came up.
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

/// The fields of a register; bits that no field has are noted and left out.
macro_rules! fields {
    ($state:expr, $Word:ident, $raw:expr) => {{
        let raw: u32 = $raw;
        let bits = raw & (u32::MAX ^ $Word::OWNED);
        if bits != 0 {
            $state.unknown.note(format!("{}: bits {bits:#x}", $Word::INFO.name));
        }
        match $Word::unpack_lenient(raw) {
            Ok(word) => word,
            // All fields are numbers and flags, which have no codes without a meaning.
            Err(error) => unreachable!("{error}"),
        }
    }};
}
pub(crate) use fields;

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands decide what the names are: their number is limited, and none goes uncounted.
    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut unknown = Unknown::default();
        (0..1000).for_each(|number| unknown.note(format!("register {number:#x}")));
        assert_eq!(unknown.list().len(), NAMES + 1);
        assert!(unknown.list().contains(&(OTHERS.to_owned(), 1000 - NAMES as u64)));
    }
}
