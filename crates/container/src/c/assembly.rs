//! Reads data directives of assembler text in a C string. nvcc writes fat binaries in this form: `asm(".quad
//! 0x00100001ba55ed50, …\n")`.

use crate::bytes::push_element;

/// Names of directives, each with the number of bytes per value.
const DIRECTIVES: [(&str, usize); 8] = [
    (".quad", 8),
    (".8byte", 8),
    (".long", 4),
    (".int", 4),
    (".4byte", 4),
    (".short", 2),
    (".2byte", 2),
    (".byte", 1),
];

/// Returns the bytes of all data directives in a text, or `None` if the text has no data directive. At an invalid
/// number, the function stops and returns the bytes of the preceding numbers, together with the invalid number.
pub(super) fn data(text: &[u8]) -> Option<(Vec<u8>, Option<String>)> {
    let text = str::from_utf8(text).ok()?;
    let mut bytes = Vec::new();
    let mut found = false;
    for line in text.split(['\n', ';']).map(str::trim) {
        let (name, numbers) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Some((_, width)) = DIRECTIVES.iter().find(|(known, _)| *known == name) else { continue };
        found = true;
        for number in numbers.split(',').map(str::trim) {
            match value(number).filter(|value| *width == 8 || value >> (8 * width) == 0) {
                Some(value) => push_element(&mut bytes, value, *width, false),
                None => return Some((bytes, Some(number.to_owned()))),
            }
        }
    }
    found.then_some((bytes, None))
}

fn value(number: &str) -> Option<u64> {
    match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if number.starts_with(|c: char| c.is_ascii_digit()) => number.parse().ok(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hints, fatbin};

    #[test]
    fn data_directives_are_bytes_in_the_order_of_memory() {
        let text = b".section .x, \"a\"\n.align 8\nname:\n.quad 0x0102030405060708,9\n.long 0x11223344; .byte 1, 0x2\n.text\n";
        let bytes = data(text).unwrap().0;
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 1, 2]);
        assert_eq!(data(b"no directive: .quadruple 1"), None);
        for wrong in [".quad name", ".byte 256", ".long 0x1ffffffff", ".quad 0x+1", ".quad"] {
            assert!(data(wrong.as_bytes()).unwrap().1.is_some(), "{wrong}");
        }
    }

    #[test]
    fn the_fat_binary_of_an_asm_statement_is_read() {
        let cubin = b"architecture {sm_11}\ncode { name = k bincode { 0x10000001 0xe0000001 } }";
        let mut member = vec![0; 64];
        for (at, value) in [(0, 2_u64), (4, 64), (8, cubin.len() as u64), (28, 11)] {
            member[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes());
        }
        member.extend(cubin);
        member.resize(member.len().next_multiple_of(8), b' ');
        let payload = (member.len() - 64) as u64;
        member[8..16].copy_from_slice(&payload.to_le_bytes());
        let mut file = fatbin::HEADER.to_le_bytes().to_vec();
        file.extend([1, 0, 16, 0]);
        file.extend((member.len() as u64).to_le_bytes());
        file.extend(member);
        let lines: String = file
            .chunks(16)
            .map(|pair| {
                let quads = pair.chunks(8).map(|quad| {
                    let mut bytes = [0; 8];
                    bytes[..quad.len()].copy_from_slice(quad);
                    format!("{:#018x}", u64::from_le_bytes(bytes))
                });
                format!("\".quad {}\\n\"\n", quads.collect::<Vec<_>>().join(","))
            })
            .collect();
        let source = format!(
            "#include \"host.h\"\nasm(\n\".section .nv_fatbin, \\\"a\\\"\\n\"\n\".align 8\\n\"\n\"fatbinData:\\n\"\n{lines}\".text\");\n"
        );
        let image = crate::load(source.as_bytes(), &Hints::default()).unwrap();
        assert_eq!(image.programs[0].name.as_deref(), Some("k"));
        assert_eq!(image.programs[0].words, [0x1000_0001, 0xe000_0001]);
        let broken = source.replacen(",0x", ",0y", 1);
        let error = crate::load(broken.as_bytes(), &Hints::default()).unwrap_err().to_string();
        assert!(error.contains("0y"), "{error}");
    }
}
