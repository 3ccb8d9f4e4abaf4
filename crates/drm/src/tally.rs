//! Counts that have names. The number of names is limited.

use std::collections::BTreeMap;

/// Maximum number of different names. All further names are counted as [`OTHERS`].
pub(crate) const NAMES: usize = 128;
/// Maximum length of a name in bytes. Longer names are truncated.
pub(crate) const LONGEST: usize = 160;
/// Name under which all further names are counted.
pub(crate) const OTHERS: &str = "others";

/// Adds one to the count of a name.
pub(crate) fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    let name = &name[..name.floor_char_boundary(LONGEST)];
    let name = if counts.len() < NAMES || counts.contains_key(name) { name } else { OTHERS };
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => _ = counts.insert(name.to_owned(), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_are_counted_together_and_none_is_lost() {
        let mut counts = BTreeMap::new();
        for number in 0..10_000 {
            count(&mut counts, &format!("name {number:05}"));
            count(&mut counts, "name 00001");
        }
        assert_eq!(counts.len(), NAMES + 1);
        assert_eq!((counts["name 00001"], counts[OTHERS]), (10_001, 10_000 - NAMES as u64));
        assert_eq!(counts.values().sum::<u64>(), 20_000);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let mut counts = BTreeMap::new();
        count(&mut counts, &"é".repeat(LONGEST));
        assert_eq!(counts.keys().next().unwrap().len(), LONGEST);
    }
}
