//! `--shard K/N` selects one part of a list, so that N commands can divide the list.

use std::fmt;
use std::str::FromStr;

/// Part K/N of a list: the items with the numbers K, K + N, K + 2N and so on. The first item has the number 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    part: usize,
    of: usize,
}

impl Part {
    /// Returns the items of this part.
    pub(crate) fn of<T>(self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        items.into_iter().skip(self.part - 1).step_by(self.of).collect()
    }

    /// Returns whether the item with this index is in this part.
    #[cfg(feature = "campaign")]
    pub(crate) fn has(self, number: usize) -> bool {
        number % self.of == self.part - 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        let part = numbers.map(|(part, of)| Part { part, of });
        part.filter(|Part { part, of }| (1..=*of).contains(part))
            .ok_or_else(|| "expected K/N with K from 1 to N, for instance 1/4".to_owned())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.part, self.of)
    }
}
