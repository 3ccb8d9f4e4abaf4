//! The chips. The fields of a chip are properties that a program can observe.
//!
//! Mesa's `r600_asm.c` (`stack_entry_size`) is the source of the wavefront widths. Mesa's opcode table and `r600_asm.c`
//! are the source for doubles and the index register.

/// The encoding of a chip's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// R6xx: R600, RV610 to RV670, RS780, RS880.
    R600,
    /// R7xx: RV770, RV710, RV730, RV740.
    R700,
}

/// One chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Name of the chip, in lower case.
    pub name: &'static str,
    /// Other names of the chip, in upper case. A name is the name of a product with the same instruction set, or of a
    /// family.
    pub aliases: &'static [&'static str],
    /// Encoding of the chip's instructions.
    pub family: Family,
    /// Lanes of a wavefront: 16, 32 or 64.
    pub wave_width: u8,
    /// Whether the chip has the double-precision operations.
    pub fp64: bool,
    /// Whether instructions index registers through aL instead of through AR. On such a chip, MOVA_GPR_INT writes aL.
    pub indexes_by_loop: bool,
}

#[rustfmt::skip]
const fn chip(name: &'static str, family: Family, wave_width: u8, fp64: bool, indexes_by_loop: bool) -> Chip {
    Chip { name, aliases: &[], family, wave_width, fp64, indexes_by_loop }
}

impl Chip {
    /// Returns a copy of this chip. `aliases` are the other names of the copy.
    const fn or(self, aliases: &'static [&'static str]) -> Chip {
        Chip { aliases, ..self }
    }
}

/// All chips. The Wii U's graphics processor, Latte, has RV770's encoding. Only RV670 and RV770 have doubles.
#[rustfmt::skip]
pub const CHIPS: &[Chip] = &[
    //     name     family       width fp64 indexes_by_loop
    chip("rv770", Family::R700, 64, true,  false).or(&["R700", "RV790", "LATTE"]),
    chip("rv740", Family::R700, 64, false, false),
    chip("rv730", Family::R700, 32, false, false),
    chip("rv710", Family::R700, 32, false, false),
    chip("r600",  Family::R600, 64, false, true),
    chip("rv670", Family::R600, 64, true,  false),
    chip("rv630", Family::R600, 32, false, true),
    chip("rv635", Family::R600, 32, false, true),
    chip("rv610", Family::R600, 16, false, true),
    chip("rv620", Family::R600, 16, false, true),
    chip("rs780", Family::R600, 16, false, false),
    chip("rs880", Family::R600, 16, false, false),
];

impl Chip {
    /// The default chip: RV770.
    pub const RV770: Chip = CHIPS[0];

    /// Returns whether this chip and `other` run every program in the same way.
    pub(crate) fn is_like(&self, other: &Chip) -> bool {
        let Chip { name: _, aliases: _, family, wave_width, fp64, indexes_by_loop } = *self;
        (family, wave_width) == (other.family, other.wave_width)
            && (fp64, indexes_by_loop) == (other.fp64, other.indexes_by_loop)
    }

    /// Returns the chip that has the name `name`, or that has `name` among its other names. The comparison ignores
    /// case.
    pub fn named(name: &str) -> Option<Chip> {
        let is = |known: &&str| known.eq_ignore_ascii_case(name);
        CHIPS.iter().find(|chip| is(&chip.name) || chip.aliases.iter().any(is)).copied()
    }
}

/// Lanes of the widest wavefront. Every lane-wide array has this length.
pub const LANES: usize = 64;
