//! Operands of texture instructions. (6.9)

use reconverge_isa::read::push_decimal;
use reconverge_isa::row::{BitPattern, Bits, Custom, Number, Part, Style, Words, at};
use reconverge_isa::write::Reader;

use super::*;

/// Returns the part for `live` or `all`, at bit BIT.
pub(crate) const fn tex_live<const BIT: u8>() -> P {
    word!("lanes that take part", at(BIT, 1), &[Some("all"), Some("live")], |draft, value| draft.tex.live =
        value != 0)
}

pub(crate) const TEX_DERIV: P = flag!("deriv", 35, |draft, value| draft.tex.deriv = value != 0);

pub(crate) const TEX: P =
    number!("texture", at(9, 8), Style::Register("$t", ""), |draft, n| draft.tex.texture = n as u8);

pub(crate) const SAMP: P =
    number!("sampler", at(17, 5), Style::Register("$s", ""), |draft, n| draft.tex.sampler = n as u8);

macro_rules! texel_offset {
    ($axis:literal, $bit:literal) => {
        number!("texel offset", at($bit, 4), Style::Signed, |draft, n| draft.tex.offset[$axis] = n as i8)
    };
}
pub(crate) const TOFFX: P = texel_offset!(0, 56);
pub(crate) const TOFFY: P = texel_offset!(1, 52);
pub(crate) const TOFFZ: P = texel_offset!(2, 48);

/// The only source of texsize.
pub(crate) const TEX_LEVEL: P = number!("level of detail", at(2, 7), R, |draft, n| {
    draft.tex.base = n as u8;
    draft.tex.count = 1;
});

pub(super) const SHORT_BASE: Bits = at(2, 6);
pub(super) const LONG_BASE: Bits = at(2, 7);
pub(super) const COUNT: Bits = at(22, 2);
pub(super) const MASK: Bits = at(25, 2).and(46, 2);

/// Destination components. The components that are written use consecutive registers, starting at the base.
pub(crate) const LTDST: P = Part::Custom(&Custom {
    name: "destination components $r0:$r1:#:#",
    bits: LONG_BASE.mask() | MASK.mask(),
    claims: |word| MASK.mask() | if MASK.get(word) == 0 { 0 } else { LONG_BASE.mask() },
    print: |word, out| print_components(LONG_BASE.get(word), MASK.get(word), 4, out),
    parse: |reader| {
        let (base, mask, count) = parse_components(reader)?;
        let base = base.map(|base| fixed(LONG_BASE, base)).unwrap_or(Some(BitPattern::default()))?;
        (count == 4).then(|| with(base, fixed(MASK, mask)))?
    },
    set: |draft, word| {
        draft.tex.base = LONG_BASE.get(word) as u8;
        draft.tex.mask = MASK.get(word) as u8;
    },
});

/// Destination of the short form: all four components.
pub(crate) const STDST: P = Part::Custom(&Custom {
    name: "destination components $r0:$r1:$r2:$r3",
    bits: SHORT_BASE.mask(),
    claims: |_| SHORT_BASE.mask(),
    print: |word, out| print_components(SHORT_BASE.get(word), 15, 4, out),
    parse: |reader| match parse_components(reader)? {
        (Some(base), 15, 4) => fixed(SHORT_BASE, base),
        _ => None,
    },
    set: |draft, word| draft.tex.base = SHORT_BASE.get(word) as u8,
});

/// Sources: one to four consecutive registers. The first of these registers is the base of the destination.
macro_rules! texture_sources {
    ($base:expr) => {
        Part::Custom(&Custom {
            name: "source registers $r0:$r1",
            bits: $base.mask() | COUNT.mask(),
            claims: |_| $base.mask() | COUNT.mask(),
            print: |word, out| {
                let count = COUNT.get(word) + 1;
                print_components($base.get(word), (1 << count) - 1, count, out);
            },
            parse: |reader| {
                let (base, mask, count) = parse_components(reader)?;
                if mask != (1 << count) - 1 {
                    return None;
                }
                with(fixed($base, base?)?, fixed(COUNT, count - 1))
            },
            set: |draft, word| {
                draft.tex.base = $base.get(word) as u8;
                draft.tex.count = COUNT.get(word) as u8 + 1;
            },
        })
    };
}

/// Sources of the long form.
pub(crate) const LTSRC: P = texture_sources!(LONG_BASE);
/// Sources of the short form.
pub(crate) const STSRC: P = texture_sources!(SHORT_BASE);

fn fixed(field: Bits, value: u32) -> Option<BitPattern> {
    let bits = field.put(value);
    (field.get(bits) == value).then_some(BitPattern { mask: field.mask(), fixed: bits })
}

fn with(one: BitPattern, other: Option<BitPattern>) -> Option<BitPattern> {
    let other = other?;
    Some(BitPattern { mask: one.mask | other.mask, fixed: one.fixed | other.fixed })
}

/// Prints `count` components, as in `$r4:#:$r5`. The components in `mask` have consecutive registers.
fn print_components(base: u32, mask: u32, count: u32, out: &mut String) {
    let mut register = base;
    for component in 0..count {
        if component > 0 {
            out.push(':');
        }
        if mask >> component & 1 != 0 {
            out.push_str("$r");
            push_decimal(register, out);
            register += 1;
        } else {
            out.push('#');
        }
    }
}

/// Returns the first register (if any), the mask and the number of components. Returns `None` if the registers are not
/// consecutive, or if there are more than four components.
fn parse_components(reader: &mut Reader) -> Option<(Option<u32>, u32, u32)> {
    let mut base = None;
    let mut mask = 0_u32;
    let mut count = 0;
    loop {
        if !reader.eat("#") {
            let register = reader.register("$r")?;
            let base = *base.get_or_insert(register);
            if register != base + mask.count_ones() {
                return None;
            }
            mask |= 1_u32 << count;
        }
        count += 1;
        if count == 4 || !reader.eat(":") {
            return Some((base, mask, count));
        }
    }
}
