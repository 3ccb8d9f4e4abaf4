//! The chips with an R500 fragment processor: their names and group widths.
//!
//! The names of the chips are from AMD's R5xx 3D register reference and Mesa's list of chips. The group widths are from
//! launch reviews of the X1000 series.

/// One chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Name of the chip.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// Lanes per group.
    pub group_width: usize,
}

/// Lanes of a group on R520: a block of 4 x 4. (docs/r500.md, Q1)
pub const WIDTH_R520: usize = 16;
/// Commonly reported number of lanes per group on R580 and RV530. No document states this number. (docs/r500.md, Q1)
pub const WIDTH_R580: usize = 48;

const fn chip(name: &'static str, aliases: &'static [&'static str], group_width: usize) -> Chip {
    Chip { name, aliases, group_width }
}

/// All chips. The first chip of a family has the name of the family as an alias.
#[rustfmt::skip]
pub static CHIPS: [Chip; 6] = [
    chip("R520",  &["R500"], WIDTH_R520),
    chip("RV515", &[],       WIDTH_R520),
    chip("RV530", &[],       WIDTH_R580),
    chip("R580",  &[],       WIDTH_R580),
    chip("RV560", &[],       WIDTH_R580),
    chip("RV570", &[],       WIDTH_R580),
];

impl Chip {
    /// Returns the chip with this name. The case of letters does not matter.
    pub fn named(name: &str) -> Option<Chip> {
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        CHIPS.iter().find(|chip| is(&chip.name) || chip.aliases.iter().any(is)).copied()
    }
}
