//! The parts of docs/ that are generated from this crate's tables.

use reconverge_r500::coverage::coverage;
use reconverge_testkit::page_is_current;

#[test]
fn the_coverage_page_is_current() {
    page_is_current("coverage/r500.md", None, &coverage());
}
