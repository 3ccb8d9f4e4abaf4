//! The legal forms of a mnemonic.

use reconverge_isa::forms::{self, Form};

use crate::inst::{Chip, Stage};
use crate::parts::here;
use crate::table::TABLE;

/// Returns the forms of a mnemonic, in the order of the machine's description. `chip` and `stage` restrict the forms to
/// a chip and a program type. The list is empty if the word is not a mnemonic.
pub fn forms(mnemonic: &str, chip: Option<Chip>, stage: Option<Stage>) -> Vec<Form> {
    let chips = chip.map_or(Chip::ALL.to_vec(), |chip| vec![chip]);
    let stages = stage.map_or(STAGES.to_vec(), |stage| vec![stage]);
    let rows = TABLE.rows().iter().filter(|row| row.names.split('|').any(|name| name == mnemonic));
    let form = |row: &&'static crate::table::Row| {
        let places = || stages.iter().flat_map(|stage| chips.iter().map(|chip| (*chip, *stage)));
        let admitted = |(chip, stage): &(Chip, Stage)| row.scope.admits(here(*chip, *stage));
        let (first, of) = places().find(admitted)?;
        let circumstance = here(first, of);
        let alone =
            |found: bool, all: bool, text: String| if found && !all { vec![text] } else { Vec::new() };
        let first_chip = alone(chip.is_none(), first == Chip::ALL[0], format!("from {first} on"));
        let types: Vec<&str> =
            stages.iter().filter(|stage| admitted(&(first, **stage))).map(|stage| stage.name()).collect();
        let only =
            alone(stage.is_none(), types.len() == stages.len(), format!("{} programs", types.join(", ")));
        let (text, places) = forms::text(row, mnemonic, circumstance);
        Some(Form {
            text,
            places,
            example: forms::example(&TABLE, row, mnemonic, circumstance)?,
            about: first_chip.into_iter().chain(only).collect::<Vec<_>>().join("; "),
            source: format!("section {}, row {}", row.source, row.id),
        })
    };
    rows.filter_map(form).collect()
}

/// The order of stages. Compute programs come first, so most forms are shown for compute programs.
const STAGES: [Stage; 4] = [Stage::Compute, Stage::Vertex, Stage::Fragment, Stage::Geometry];

/// Returns all mnemonics, sorted.
pub fn mnemonics() -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLE.names().collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::assemble;

    /// Every mnemonic has forms. The example of each form assembles for some chip and stage.
    #[test]
    fn every_example_assembles() {
        let mut rows = 0;
        for name in mnemonics() {
            let found = forms(name, None, None);
            let row =
                TABLE.rows().iter().find(|row| row.names.split('|').any(|known| known == name)).unwrap();
            assert!(
                !found.is_empty(),
                "{name}: {:?}",
                forms::text(row, name, here(Chip::Gt215, Stage::Compute))
            );
            for form in found {
                let fits = Chip::ALL.into_iter().any(|chip| {
                    STAGES
                        .into_iter()
                        .any(|stage| assemble(&format!("L:\n{}\n", form.example), chip, stage).is_ok())
                });
                assert!(fits, "{name}: {form:?}");
                rows += 1;
            }
        }
        assert!(rows > 200, "{rows}");
    }
}
