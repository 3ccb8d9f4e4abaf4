//! Changes words of a program in the file that contains the program. All other bytes of the file stay unchanged.

use std::ops::Range;

use reconverge_isa::program::{CodeAt, Digits, Numbers};

use crate::bytes::push_element;
use crate::c::{constant, integer};
use crate::error::counted;
use crate::{Error, Hints, load};

/// Replaces words of a program by `words`, starting at the word with index `first`. Returns the bytes of the new file.
///
/// [`load`] with the same `hints` returns an image. `program` is an index into the programs of this image. In a text
/// file, the new number has the style of the old number, such as the base and the case. The new number is longer than
/// the old number only if the new value needs more digits.
///
/// # Errors
/// Four situations are errors. The file cannot be read. The program does not have the words. The file contains the
/// words only in compressed or computed form. The replacement would also change other data, such as the words of
/// another program.
pub fn patch(
    bytes: &[u8],
    hints: &Hints,
    program: usize,
    first: usize,
    words: &[u32],
) -> Result<Vec<u8>, Error> {
    let mut image = load(bytes, hints)?;
    let unpatchable = |remedy: String| Error::Unpatchable {
        what: match words.len() {
            1 => format!("word {first} of program {program}"),
            count => format!("{count} words from word {first} of program {program}"),
        },
        remedy,
    };
    let count = image.programs.len();
    let Some(target) = image.programs.get_mut(program) else {
        return Err(unpatchable(format!("the file has {}", counted(count, "program"))));
    };
    let have = target.words.len();
    let Some(old) = first.checked_add(words.len()).and_then(|end| target.words.get_mut(first..end)) else {
        return Err(unpatchable(format!("the program has {}", counted(have, "word"))));
    };
    old.copy_from_slice(words);
    let edits = edits(bytes, &target.code_at, first, words).map_err(unpatchable)?;
    let patched = apply(bytes, edits);
    let again = load(&patched, hints)?;
    if again != image {
        let why = "other programs or data share the bytes of these words and would also change";
        return Err(unpatchable(why.to_owned()));
    }
    Ok(patched)
}

/// A range of bytes, with the new bytes for this range.
struct Edit {
    place: Range<usize>,
    with: Vec<u8>,
}

/// Applies edits and returns the new bytes. The edits are sorted by offset.
fn apply(bytes: &[u8], edits: Vec<Edit>) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut kept = 0;
    for Edit { place, with } in edits {
        out.extend_from_slice(&bytes[kept..place.start]);
        out.extend(with);
        kept = place.end;
    }
    out.extend_from_slice(&bytes[kept..]);
    out
}

/// Returns the edits that replace words by `words`. `place` is the location of a program's words in `bytes`. `first` is
/// the index of the first replaced word.
fn edits(bytes: &[u8], place: &CodeAt, first: usize, words: &[u32]) -> Result<Vec<Edit>, String> {
    let beyond = || "its place in the file is not known".to_owned();
    match place {
        CodeAt::Nowhere => Err(
            "the file contains them only in compressed form or in a string of a C source: unpack it first"
                .to_owned(),
        ),
        CodeAt::Bytes { start, big_endian } => {
            let at = start + 4 * first;
            let place = at..at + 4 * words.len();
            bytes.get(place.clone()).ok_or_else(beyond)?;
            let spell = |word: &u32| if *big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
            Ok(vec![Edit { place, with: words.iter().flat_map(spell).collect() }])
        }
        CodeAt::Numbers(numbers, inner) => {
            let text = bytes.get(numbers.start..).ok_or_else(beyond)?;
            let member = spelled(text, numbers)
                .ok_or_else(|| "a number there comes from a macro: change its definition".to_owned())?;
            let edits = edits(&member, inner, first, words)?;
            if edits.iter().any(|edit| edit.place.len() != edit.with.len()) {
                return Err("the new number needs more room than the array has".to_owned());
            }
            let changed = apply(&member, edits);
            let elements = member.chunks(numbers.width).zip(changed.chunks(numbers.width));
            let changes = numbers.places.iter().zip(elements).filter(|(_, (old, new))| old != new);
            let respelled = changes.map(|(place, (_, new))| {
                let old = str::from_utf8(&text[place.clone()]).map_err(|_| beyond())?;
                let place = place.start + numbers.start..place.end + numbers.start;
                Ok(Edit { place, with: respell(old, value(new, numbers), numbers).into_bytes() })
            });
            respelled.collect()
        }
    }
}

/// Returns the bytes that the numbers of a text represent.
fn spelled(text: &[u8], numbers: &Numbers) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(numbers.places.len() * numbers.width);
    for place in numbers.places.iter() {
        let digits = str::from_utf8(text.get(place.clone())?).ok()?;
        let value = match numbers.digits {
            Digits::Hexadecimal => u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()?,
            Digits::Octal => u64::from_str_radix(digits, 8).ok()?,
            Digits::C => constant(digits, numbers.width)?,
        };
        push_element(&mut bytes, value, numbers.width, numbers.big_endian);
    }
    Some(bytes)
}

/// Returns the value of an element's bytes.
fn value(element: &[u8], numbers: &Numbers) -> u64 {
    let fold = |value, byte: &u8| value << 8 | u64::from(*byte);
    match numbers.big_endian {
        true => element.iter().fold(0, fold),
        false => element.iter().rev().fold(0, fold),
    }
}

/// Returns the text of a value. The text has the base, the prefix, the case and the suffix of the number `old`. If the
/// value fits, the text also has the width of `old`. If the text replaces an expression, the text is hexadecimal.
fn respell(old: &str, value: u64, numbers: &Numbers) -> String {
    let (sign, unsigned) = match old.strip_prefix('-') {
        Some(rest) => ("-", rest.trim_start()),
        None => ("", old),
    };
    if numbers.digits == Digits::C && integer(unsigned).is_none() {
        return format!("{:<len$}", format!("{value:#x}"), len = old.len());
    }
    let base = match numbers.digits {
        Digits::Hexadecimal => 16,
        Digits::Octal => 8,
        Digits::C if unsigned.starts_with("0x") || unsigned.starts_with("0X") => 16,
        // In a text cubin, nvcc prints a zero word as 0000000000. This text is as wide as `0x` and eight digits.
        Digits::C if unsigned.len() == 10 && unsigned.bytes().all(|byte| byte == b'0') => {
            return format!("{value:#010x}");
        }
        Digits::C if unsigned.len() > 1 && unsigned.starts_with('0') => 8,
        Digits::C => 10,
    };
    let prefix =
        &unsigned[..if base == 16 && unsigned.get(1..).is_some_and(|rest| rest.starts_with(['x', 'X'])) {
            2
        } else {
            0
        }];
    let suffix_at = match numbers.digits {
        Digits::C => unsigned.trim_end_matches(['u', 'U', 'l', 'L']).len(),
        Digits::Hexadecimal | Digits::Octal => unsigned.len(),
    };
    let (digits, suffix) = unsigned[prefix.len()..].split_at(suffix_at - prefix.len());
    // The new number keeps the minus sign only if the sign bit of the new value is set. The width of the element
    // determines the sign bit.
    let bits = 8 * numbers.width as u32;
    let negative = !sign.is_empty() && value >> (bits - 1) & 1 == 1;
    let magnitude = if negative { value.wrapping_neg() & (u64::MAX >> (64 - bits)) } else { value };
    let width = digits.len();
    let digits = match base {
        16 if digits.contains(|c: char| c.is_ascii_uppercase()) => format!("{magnitude:0width$X}"),
        16 => format!("{magnitude:0width$x}"),
        8 => format!("{magnitude:0width$o}"),
        // A decimal number with leading zeros would be octal.
        _ => magnitude.to_string(),
    };
    let sign = if negative { &old[..old.len() - unsigned.len()] } else { "" };
    let number = format!("{sign}{prefix}{digits}{suffix}");
    format!("{number:>len$}", len = old.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, first: usize, words: &[u32]) -> String {
        let hints = Hints::default();
        String::from_utf8(patch(text.as_bytes(), &hints, 0, first, words).unwrap()).unwrap()
    }

    #[test]
    fn a_number_keeps_its_style() {
        assert_eq!(changed("# a\n00000001 ; b\nDEADBEEF\n", 1, &[0xab]), "# a\n00000001 ; b\n000000AB\n");
        assert_eq!(changed("DEADBEEF 0x0000000a", 0, &[0xab, 7]), "000000AB 0x00000007");
        let cubin = "code { name = k bincode { 0x10000001 0000000000 0x5 } }";
        let expected = "code { name = k bincode { 0x10000001 0xdeadbeef 0x6 } }";
        assert_eq!(changed(cubin, 1, &[0xdead_beef, 6]), expected);
    }

    #[test]
    fn an_element_of_an_array_keeps_its_style() {
        let cases = [
            ("u32 a[] = { 0x0000000Aul, 300, -1, 010 };", "u32 a[] = { 0x000000FFul,   9, -2, 007 };"),
            ("u32 a[]={0xa,1,-5,3};", "u32 a[]={0xff,9,-2,7};"),
        ];
        for (text, expected) in cases {
            assert_eq!(changed(text, 0, &[0xff, 9, 0xffff_fffe, 7]), expected);
        }
        assert_eq!(changed("u32 a[]={-1};", 0, &[1]), "u32 a[]={ 1};");
        assert_eq!(changed("uint64_t a[]={ 0x1000000002 };", 0, &[5]), "uint64_t a[]={ 0x1000000005 };");
        assert_eq!(changed("u8 a[]={1,255,0,0};", 0, &[0x0102]), "u8 a[]={2,  1,0,0};");
        assert_eq!(changed("u32 a[]={ 1 << 4 | 3, 2};", 0, &[5]), "u32 a[]={ 0x5       , 2};");
    }

    #[test]
    fn a_cubin_in_an_array_of_characters_keeps_its_length() {
        let cubin = "code { name = k bincode { 0x10000001 0000000000 } }";
        let list = |text: &str| text.bytes().map(|byte| format!("{byte:#04x}, ")).collect::<String>();
        let array = |text: &str| format!("char a[] = {{ {}0x00 }};", list(text));
        let expected = "code { name = k bincode { 0x10000001 0x00abcdef } }";
        assert_eq!(changed(&array(cubin), 1, &[0xab_cdef]), array(expected));
        let short = array("code { name = k bincode { 0x1 } }");
        let refused = patch(short.as_bytes(), &Hints::default(), 0, 0, &[0x10]).unwrap_err();
        assert!(refused.to_string().contains("more room"), "{refused}");
    }

    #[test]
    fn words_that_are_not_there_are_refused() {
        let refused = |program, first, words: &[u32]| {
            patch(b"00000001", &Hints::default(), program, first, words).unwrap_err().to_string()
        };
        let expected = "word 0 of program 1 cannot be changed in the file: the file has 1 program";
        assert_eq!(refused(1, 0, &[0]), expected);
        assert!(refused(0, 1, &[0]).ends_with("the program has 1 word"));
        assert!(refused(0, usize::MAX, &[0]).ends_with("the program has 1 word"));
        assert!(refused(0, 0, &[0, 0]).starts_with("2 words from word 0"));
    }
}
