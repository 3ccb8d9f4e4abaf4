//! What commands ask for and a chip here does not do, by name.

use std::collections::BTreeMap;

/// Names of what is not understood, each with how often it came up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unknown(BTreeMap<String, u64>);

impl Unknown {
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
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
