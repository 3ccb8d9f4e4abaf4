//! Names of the registers and memory that instructions read and write. Listings use the same names.

use reconverge_isa::Isa;
use reconverge_r500::pvs::inst::{ALT_TEMPORARIES, INPUTS, TEMPORARIES};
use reconverge_r500::uses::{DEPTH, OUT};
use reconverge_simt::uses::Slot;
use reconverge_tesla::state::{REGISTER_A, REGISTER_C, REGISTER_O};

/// Register files with the channels `rgba`. (R500)
const COLORS: [&str; 3] = ["temp", "const", "out"];
/// Register files with the channels `xyzw`.
const VECTORS: [&str; 8] = ["R", "T", "C", "t", "at", "i", "o", "c"];
/// Register files with a single register.
const ALONE: [&str; 8] = ["aL", "alu", "p", "predicate", "PS", "cubemap index", "gradients", "AL"];

/// Returns the name of a slot: `$r3`, `o[0x10]`, `R1.x`, `temp0.r`, `pred.g`. If an index selects the register at run
/// time, the name is `R[]`.
pub fn slot_name(isa: Isa, slot: Slot) -> String {
    let Slot { file, number } = slot;
    let Some(number) = number else { return format!("{}[]", file.trim_end_matches("[]")) };
    let vector = |name: &str, number: u32, channels: &str| {
        let channel = channels.chars().nth(number as usize % 4).unwrap_or('x');
        format!("{name}{}.{channel}", number / 4)
    };
    match (isa, file) {
        (Isa::Tesla, "$a") => format!("$a{}", number.saturating_sub(REGISTER_A)),
        (Isa::Tesla, "$c") => format!("$c{}", number.saturating_sub(REGISTER_C)),
        (Isa::Tesla, "o[]") => format!("o[{:#x}]", 4 * number.saturating_sub(REGISTER_O)),
        (Isa::R500, OUT) if number == DEPTH => "depth".to_owned(),
        (Isa::R500, OUT) => vector("color", number, "rgba"),
        (Isa::R500, "pred") => format!("pred.{}", "rgba".chars().nth(number as usize % 4).unwrap_or('r')),
        (Isa::R500, "a0") => format!("a0.{}", "xyzw".chars().nth(number as usize % 4).unwrap_or('x')),
        (Isa::R500, "t" | "at" | "i" | "o") => vector(file, number.saturating_sub(first_of(file)), "xyzw"),
        (Isa::R700, "PV" | "AR") => {
            format!("{file}.{}", "xyzw".chars().nth(number as usize % 4).unwrap_or('x'))
        }
        (Isa::R700, "T") => vector("T", 4 * (127u32.saturating_sub(number / 4)) + number % 4, "xyzw"),
        (_, file) if COLORS.contains(&file) => vector(file, number, "rgba"),
        (_, file) if VECTORS.contains(&file) || file.starts_with("CB") => vector_of(file, number),
        (_, file) if ALONE.contains(&file) => file.to_owned(),
        _ => format!("{file}{number}"),
    }
}

/// Returns the name of a constant, `CB0[3].x`, or of a register, `R1.x`. Only the name of a constant has brackets.
fn vector_of(file: &str, number: u32) -> String {
    let channel = "xyzw".chars().nth(number as usize % 4).unwrap_or('x');
    match file.starts_with('C') {
        true => format!("{file}[{}].{channel}", number / 4),
        false => format!("{file}{}.{channel}", number / 4),
    }
}

/// Returns the number of a register file's first channel. In vertex programs, one sequence of numbers covers the
/// channels of all register files.
fn first_of(file: &str) -> u32 {
    let before = match file {
        "at" => TEMPORARIES,
        "i" => TEMPORARIES + ALT_TEMPORARIES,
        "o" => TEMPORARIES + ALT_TEMPORARIES + INPUTS,
        _ => 0,
    };
    4 * before as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_names_of_listings() {
        let name = |isa, file, number| slot_name(isa, Slot { file, number: Some(number) });
        assert_eq!(name(Isa::Tesla, "$r", 3), "$r3");
        assert_eq!(name(Isa::Tesla, "$c", REGISTER_C), "$c0");
        assert_eq!(name(Isa::Tesla, "o[]", REGISTER_O + 4), "o[0x10]");
        assert_eq!(name(Isa::R700, "R", 5), "R1.y");
        assert_eq!(name(Isa::R700, "CB0", 5), "CB0[1].y");
        assert_eq!(name(Isa::R500, "temp", 4), "temp1.r");
        assert_eq!(name(Isa::R500, "pred", 1), "pred.g");
        assert_eq!(name(Isa::R500, "alu", 0), "alu");
        assert_eq!(slot_name(Isa::R700, Slot { file: "R", number: None }), "R[]");
    }
}
