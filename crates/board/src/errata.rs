//! Errata: rules of the chips that violate the OpenGL specification. A driver cannot use a register of the chip to turn
//! an erratum off.
//!
//! By default, all errata of a chip are on, as on silicon. If an erratum is off, the emulated chip follows OpenGL as
//! far as the registers of the chip allow. If the driver takes a rule of the chip into account, the rule is a feature
//! and not an erratum. For example, a format that the chip does not filter is a feature. A bit that makes cube maps
//! seamless is also a feature. The page `docs/mesa.md` has the table of errata.

use std::fmt;

use reconverge_isa::choices;
use thiserror::Error;

use crate::Driver;

choices! {
    /// An erratum.
    pub enum Erratum {
        /// In wide formats, the 8-bit alpha test reads another component instead of alpha.
        AlphaTest = "alpha-test",
        /// Signed fractions blend like unsigned fractions.
        UnsignedBlending = "unsigned-blending",
        /// Border colours of sRGB textures are not decoded to linear values.
        SrgbBorder = "srgb-border",
        /// Signed RGTC decompresses as unsigned values.
        SignedRgtc = "signed-rgtc",
        /// Smooth lines are drawn as rectangles without soft edges.
        SmoothLines = "smooth-lines",
        /// STIPPLE_SCALE counts bits of the pattern per pixel instead of pixels per bit.
        StippleScale = "stipple-scale",
        /// Border colours of integer textures are floats.
        IntegerBorder = "integer-border",
        /// Targets with SNORM formats and with 16-bit fractions do not blend.
        NoBlending = "no-blending",
        /// Flat colours are divided by the w coordinate of the provoking vertex.
        FlatColours = "flat-colours",
        /// Flat inputs of a program never use the back colour.
        FlatBack = "flat-back",
        /// Every second triangle of a strip with adjacency begins with the provoking vertex.
        StripAdjacency = "strip-adjacency",
        /// The counter of generated primitives counts only during transform feedback.
        GeneratedCounter = "generated-counter",
    }
}

/// A row of the table of errata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErratumRow {
    /// The drivers whose chips have the erratum.
    pub drivers: &'static [Driver],
    /// The behaviour of the chip if the erratum is on.
    pub rule: &'static str,
    /// The behaviour of the chip if the erratum is off.
    pub without: &'static str,
    /// Piglit tests that pass only if the erratum is off. These tests also fail on silicon.
    pub tests: &'static str,
}

impl Erratum {
    /// Returns the row of this erratum in the table of errata.
    pub const fn row(self) -> ErratumRow {
        const R500: &[Driver] = &[Driver::R300];
        const TESLA: &[Driver] = &[Driver::Nv50];
        match self {
            Erratum::AlphaTest => ErratumRow {
                drivers: R500,
                rule: "the 8-bit alpha test compares bits 31 to 24 of the first word that the fragment unit outputs",
                without: "the alpha test compares alpha in every format",
                tests: "`fbo-alphatest-formats` of all extensions",
            },
            Erratum::UnsignedBlending => ErratumRow {
                drivers: R500,
                rule: "signed fractions blend as if their bits were unsigned fractions",
                without: "signed fractions blend with their signs",
                tests: "`gl_rgba8_snorm-render` (4 commands)",
            },
            Erratum::SrgbBorder => ErratumRow {
                drivers: R500,
                rule: "the border colour of an sRGB texture is not decoded, although the driver writes encoded values",
                without: "the border colour is decoded",
                tests: "`texwrap bordercolor` of EXT_texture_sRGB (4 commands)",
            },
            Erratum::SignedRgtc => ErratumRow {
                drivers: R500,
                rule: "blocks of signed RGTC are interpolated as unsigned values, and the resulting eight bits are read as signed values",
                without: "blocks are interpolated as signed values, even if their endpoints have different signs",
                tests: "`rgtc-teximage-01`, `-02`",
            },
            Erratum::SmoothLines => ErratumRow {
                drivers: R500,
                rule: "smooth lines are rectangles without soft edges",
                without: "smooth lines are drawn like other lines",
                tests: "`line-aa-width`",
            },
            Erratum::StippleScale => ErratumRow {
                drivers: R500,
                rule: "STIPPLE_SCALE is the number of pattern bits per pixel of a line, and the driver writes the \
                       stipple factor minus one",
                without: "STIPPLE_SCALE plus one is the number of pixels per bit",
                tests: "`linestipple`, the part \"Restarting lines within a single Begin-End block\"",
            },
            Erratum::IntegerBorder => ErratumRow {
                drivers: &[Driver::R600, Driver::Nv50],
                rule: "border colours of integer and stencil textures are floats, which the chip converts to integers",
                without: "border colours are integers, as the driver writes them",
                tests: "`texwrap bordercolor` of integer and stencil formats (4 commands; 8 commands on Tesla)",
            },
            Erratum::NoBlending => ErratumRow {
                drivers: TESLA,
                rule: "targets with SNORM formats and with 16-bit fractions do not blend",
                without: "they blend",
                tests: "`fbo-blending-formats` of fractions (3 commands), `gl_rgba8_snorm-render` (4)",
            },
            Erratum::FlatColours => ErratumRow {
                drivers: TESLA,
                rule: "a flat gl_Color is divided by the w of the provoking vertex, but the program multiplies it by the w of the pixel",
                without: "a flat gl_Color is divided by the w of the pixel",
                tests: "`interpolation-none-gl_*Color-flat-*` (16)",
            },
            Erratum::FlatBack => ErratumRow {
                drivers: TESLA,
                rule: "an input that the program declares as flat has the front colour, unless SHADE_MODEL is flat",
                without: "the input has the colour of the visible side",
                tests: "`interpolation-flat-gl_Back*Color-smooth-*` (8)",
            },
            Erratum::StripAdjacency => ErratumRow {
                drivers: TESLA,
                rule: "if the first vertex provokes, every second triangle of a strip with adjacency begins with its \
                       provoking vertex",
                without: "the vertices of the triangle have the order of OpenGL 3.2, table 2.4",
                tests: "`gl-3.2-adj-prims` with pv-first (5 commands)",
            },
            Erratum::GeneratedCounter => ErratumRow {
                drivers: TESLA,
                rule: "the counter of generated primitives counts only during transform feedback",
                without: "the counter always counts, and it also counts the primitives of the driver's blits",
                tests: "`primgen-query transform-feedback-disabled`, `pipeline-basic-primgen`; `generatemipmap prims_generated` passes with the erratum and fails without it",
            },
        }
    }

    /// Returns whether the chips of a driver have the erratum.
    pub fn is_of(self, driver: Driver) -> bool {
        self.row().drivers.contains(&driver)
    }

    /// Returns the errata of the chips of a driver.
    pub fn all_of(driver: Driver) -> impl Iterator<Item = Erratum> {
        Erratum::ALL.into_iter().filter(move |erratum| erratum.is_of(driver))
    }
}

/// A set of errata.
///
/// ```
/// use reconverge_board::Driver;
/// use reconverge_board::errata::{Errata, Erratum};
/// let errata = Errata::chosen("all,-signed-rgtc", Driver::R300)?;
/// assert!(errata.has(Erratum::AlphaTest) && !errata.has(Erratum::SignedRgtc));
/// assert_eq!(Errata::chosen("none", Driver::R300)?, Errata::NONE);
/// # Ok::<(), reconverge_board::errata::ErrataError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errata(u32);

/// Error for a text that is not a valid selection of errata.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ErrataError {
    /// The name is unknown.
    #[error("unknown erratum `{name}`: expected {}", Names(Erratum::ALL.to_vec()))]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// The erratum belongs to the chips of another driver.
    #[error("the chip does not have the erratum `{erratum}`: expected {}", Names(Erratum::all_of(*.driver).collect()))]
    OtherChips {
        /// The erratum.
        erratum: Erratum,
        /// The driver of the chip.
        driver: Driver,
    },
    /// The text is not `all`, `none`, a list of names, or `all` followed by names with a minus.
    #[error("expected all, none, NAME,NAME or all,-NAME,-NAME, found `{0}`")]
    Form(String),
}

/// Names to be listed in a message.
struct Names(Vec<Erratum>);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|erratum| erratum.name()).collect();
        f.write_str(&names.join(", "))
    }
}

impl Default for Errata {
    /// Returns the set of all errata. A chip ignores the errata of other chips.
    fn default() -> Errata {
        Errata::ALL
    }
}

impl Errata {
    /// All errata.
    pub const ALL: Errata = Errata(!0);

    /// No erratum.
    pub const NONE: Errata = Errata(0);

    /// Returns whether an erratum is on.
    pub const fn has(self, erratum: Erratum) -> bool {
        self.0 >> erratum as u32 & 1 != 0
    }

    /// Returns this set plus an erratum.
    #[must_use]
    pub const fn with(self, erratum: Erratum) -> Errata {
        Errata(self.0 | 1 << erratum as u32)
    }

    /// Returns this set minus an erratum.
    #[must_use]
    pub const fn without(self, erratum: Erratum) -> Errata {
        Errata(self.0 & !(1 << erratum as u32))
    }

    /// Returns the errata that a text selects for the chips of a driver. The text is `all`, `none`, a list of the
    /// errata that are on, or `all` followed by a list of the errata that are off. In the last form, a minus precedes
    /// each name.
    ///
    /// # Errors
    /// Returns an error for an unknown name, for an erratum of other chips, and for a text that mixes the allowed
    /// forms.
    pub fn chosen(text: &str, driver: Driver) -> Result<Errata, ErrataError> {
        let named = |name: &str| {
            let found = Erratum::ALL.into_iter().find(|erratum| erratum.name() == name);
            let erratum = found.ok_or_else(|| ErrataError::Unknown { name: name.to_owned() })?;
            if erratum.is_of(driver) { Ok(erratum) } else { Err(ErrataError::OtherChips { erratum, driver }) }
        };
        let mut parts = text.split(',');
        match (parts.next(), text) {
            (_, "none") => Ok(Errata::NONE),
            (Some("all"), _) => parts.try_fold(Errata::ALL, |errata, part| {
                let name = part.strip_prefix('-').ok_or_else(|| ErrataError::Form(text.to_owned()))?;
                Ok(errata.without(named(name)?))
            }),
            _ => text.split(',').try_fold(Errata::NONE, |errata, part| match part {
                "all" | "none" => Err(ErrataError::Form(text.to_owned())),
                part if part.starts_with('-') => Err(ErrataError::Form(text.to_owned())),
                name => Ok(errata.with(named(name)?)),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_those_that_are_on_or_all_but_those_that_are_off() {
        let chosen = |text: &str| {
            let errata = Errata::chosen(text, Driver::R300).unwrap();
            Erratum::all_of(Driver::R300).filter(|erratum| errata.has(*erratum)).count()
        };
        let all = Erratum::all_of(Driver::R300).count();
        assert_eq!([chosen("all"), chosen("none"), chosen("signed-rgtc,alpha-test")], [all, 0, 2]);
        assert_eq!(chosen("all,-signed-rgtc,-alpha-test"), all - 2);
    }

    #[test]
    fn names_of_no_erratum_and_of_other_chips_are_refused_with_those_that_fit() {
        let refused = |text: &str| Errata::chosen(text, Driver::R600).unwrap_err().to_string();
        assert!(
            refused("integer-borders")
                .starts_with("unknown erratum `integer-borders`: expected alpha-test, ")
        );
        assert_eq!(
            refused("all,-signed-rgtc"),
            "the chip does not have the erratum `signed-rgtc`: expected integer-border"
        );
        for form in ["none,integer-border", "integer-border,all", "all,integer-border", "-integer-border"] {
            assert!(refused(form).contains("expected all, none"), "{form}");
        }
        assert!(
            refused("").starts_with("unknown erratum ``") && refused("all,").contains("expected all, none")
        );
    }

    /// A set of errata is a 32-bit mask, so there can be at most 32 errata.
    #[test]
    fn a_set_has_room_for_all_errata() {
        assert!(Erratum::ALL.len() <= 32);
        assert!(Erratum::ALL.into_iter().all(|erratum| !Errata::ALL.without(erratum).has(erratum)));
        assert!(Erratum::ALL.into_iter().all(|erratum| Errata::NONE.with(erratum).has(erratum)));
    }
}
