//! The table of errata in docs/mesa.md is that of the library.

use reconverge_board::Driver;
use reconverge_board::errata::Erratum;
use reconverge_testkit::page_is_current;

/// Returns the families of the chips of a driver.
fn family(driver: Driver) -> &'static str {
    match driver {
        Driver::R300 => "R500",
        Driver::R600 => "R600, R700",
        Driver::Nv50 => "Tesla",
    }
}

#[test]
fn the_page_has_all_errata() {
    let head = "| name | chips | with it, as silicon | without it | tests of piglit that fail with the erratum and \
                pass without it |\n\
                |---|---|---|---|---|\n";
    let rows = Erratum::ALL.map(|erratum| {
        let row = erratum.row();
        let families: Vec<&str> = row.drivers.iter().map(|driver| family(*driver)).collect();
        let (rule, without, tests) = (row.rule, row.without, row.tests);
        format!("| `{erratum}` | {} | {rule} | {without} | {tests} |\n", families.join(", "))
    });
    page_is_current("mesa.md", Some("errata"), &(head.to_owned() + &rows.concat()));
}

#[test]
fn every_erratum_is_of_some_chip_and_has_a_name_of_its_own() {
    for (number, erratum) in Erratum::ALL.into_iter().enumerate() {
        let row = erratum.row();
        assert!(!row.drivers.is_empty() && !row.tests.is_empty(), "{erratum}");
        assert!(Erratum::ALL[..number].iter().all(|other| other.name() != erratum.name()), "{erratum}");
        assert!(!["all", "none"].contains(&erratum.name()) && !erratum.name().starts_with('-'), "{erratum}");
    }
}
