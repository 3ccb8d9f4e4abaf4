//! Properties of the table as a whole.

use std::collections::BTreeSet;

use super::*;

/// Returns whether two rows that match the same word are in the right order. The first row must be a special case of
/// the second row.
fn is_ordered(first: &Row, second: &Row) -> bool {
    let immediate = first.id.starts_with("i.") && second.id.starts_with("l.");
    immediate || (first.id, second.id) == ("l.imad.8", "l.imad.9")
}

#[test]
fn no_two_rows_hold_one_word_but_in_a_listed_order() {
    let rows = TABLE.rows();
    for (index, first) in rows.iter().enumerate() {
        for second in &rows[index + 1..] {
            let together = first.scope.0 & second.scope.0;
            let somewhere = together & 0xf != 0 && together & 0x1f0 != 0;
            let same_length = first.long == second.long;
            assert!(
                !(somewhere && same_length && first.overlaps(second)) || is_ordered(first, second),
                "{} and {}",
                first.id,
                second.id
            );
        }
    }
}

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = TABLE.rows().iter().map(|row| row.id).collect();
    assert_eq!(names.len(), TABLE.rows().len());
}
