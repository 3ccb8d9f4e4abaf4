//! Words in pasted listings and dumps. Drivers and disassemblers print such words next to their text. Hex dumps also
//! contain words.
//!
//! ```text
//! 0000 00000002 A0000000 ALU 1 @4            Mesa r600, without a header: addresses count words, clauses are placed
//! 00000000: 10004205 00000780 mov b32 …      envydis, and listings like it
//! /*0000*/ /*0x1000c8010423c780*/ MOV R0 …   cuobjdump -sass: the first word first
//! /*0000*/ MOV R0, …; /* 0x0423c7801000c801 */   the same of CUDA 5 and later: the second word first
//! 00000000  05 42 00 10 80 07 00 00 |.B..…|  hexdump -C, xxd, od, with bytes, halves or words
//! 0x10004205, 0x00000780,                    numbers alone
//! ```
//! The addresses determine the positions of the words. The reader tries several units of addresses and uses the first
//! unit with which the addresses are consistent. Lines without words are skipped, and a note states the number of
//! skipped lines. A number next to words or between lines of numbers must be a word of the dump. Any other number at
//! such a position is an error. Each `Function : NAME` of cuobjdump begins a program. The preceding line `code for
//! sm_NN` names the chip of the program.

use std::ops::Range;
use std::sync::Arc;

use reconverge_isa::program::{CodeAt, Digits, Module, Numbers};
use reconverge_isa::{Image, Isa};

use crate::bytes::push_element;
use crate::c::GAP;
use crate::cubin_text::CHIPS;
use crate::error::{Unread, counted, quoted};
use crate::{Endian, Error, Format, Hints, bin, load_as, log, recognise_marked};

/// Maximum gap between two lines, in words. Gaps occur because clauses are aligned.
const WIDEST_GAP: usize = 64;

/// A line with words.
struct Line<'a> {
    number: usize,
    address: Option<&'a str>,
    /// The digits of each unit. A unit is a number on the line, or one half of a number that has 16 digits.
    units: Vec<Range<usize>>,
    /// Number of bytes in a unit.
    width: usize,
    /// Whether the bytes of a unit are printed in memory order, as in the 16-bit groups of xxd.
    in_order: bool,
    /// Whether the addresses of lines may have gaps and may be in any order. The value is `true` if no mark, such as a
    /// colon, follows an address, as in Mesa's dumps. Without such a mark, the first number of a line may be something
    /// other than an address.
    loose: bool,
    /// Whether the number follows the text of the instruction, if the units are the two halves of a number. If the
    /// units are not two halves, the value is `None`.
    halves: Option<bool>,
    /// A number in the line that is not one of the units.
    extra: Option<&'a str>,
    /// Whether text follows the units on the line.
    has_text: bool,
}

/// Returns whether a text is a dump. A dump begins with a line of words. The caller has already excluded simpler
/// formats.
pub(crate) fn looks_like(text: &str) -> bool {
    let reads =
        |part: &ListedFunction<'_>| read(text, part).is_ok_and(|dump| dump.addressed || dump.lines > 0);
    let first = text.lines().find(|line| !line.trim().is_empty());
    parts(text).iter().any(reads) || first.is_some_and(|line| numbers(line, 0, 1).is_some())
}

/// Returns whether each line begins with an address. A reader that ignores the addresses would misread a text with
/// addresses.
pub(crate) fn is_addressed(text: &str) -> bool {
    parts(text).iter().any(|part| read(text, part).is_ok_and(|dump| dump.addressed && dump.lines > 1))
}

/// The lines of one program.
struct ListedFunction<'a> {
    name: Option<&'a str>,
    chip: Option<&'a str>,
    bytes: Range<usize>,
    /// Line number of the first line.
    line: usize,
}

/// Splits a listing of cuobjdump into functions. For any other text, returns one part.
fn parts(text: &str) -> Vec<ListedFunction<'_>> {
    let mut parts: Vec<ListedFunction<'_>> = Vec::new();
    let mut chip = None;
    // Most texts are not listings of cuobjdump. For these texts, the code skips the search for functions. This saves 5
    // % of the time to open a text of words.
    let lines = if text.contains("code for ") || text.contains("Function :") { text } else { "" };
    let mut start = 0;
    let after = |line: &'_ str, mark: &str| line.trim().strip_prefix(mark).map(str::trim_ascii).map(str::len);
    for (number, line) in (1..).zip(lines.split('\n')) {
        let rest = |len: usize| &line.trim_end()[line.trim_end().len() - len..];
        if let Some(len) = after(line, "code for ") {
            chip = Some(rest(len));
        } else if let Some(len) = after(line, "Function :") {
            if let Some(last) = parts.last_mut() {
                last.bytes.end = start;
            }
            parts.push(ListedFunction {
                name: Some(rest(len)),
                chip,
                bytes: start..text.len(),
                line: number,
            });
        }
        start += line.len() + 1;
    }
    if parts.is_empty() {
        parts.push(ListedFunction { name: None, chip, bytes: 0..text.len(), line: 1 });
    }
    parts
}

struct Dump {
    bytes: Vec<u8>,
    /// Positions of the words, if the text contains all words.
    numbers: Option<Numbers>,
    lines: usize,
    addressed: bool,
    /// Whether the dump is a dump of Mesa's r600 that omits the last word of the program. The omitted word is 0. This
    /// word is the fourth word of a fetch, or the word after an odd number of literals.
    lacks_word: bool,
    notes: Vec<String>,
}

/// Reads the words of a dump as one program, which has no name. In a listing of cuobjdump, each `Function :` becomes a
/// separate program. If the words are the dump of another container, the function reads that container.
pub fn load(text: &str, hints: &Hints) -> Result<Image, Error> {
    let parts = parts(text);
    if let [part @ ListedFunction { name: None, .. }] = &parts[..] {
        return load_part(text, part, hints);
    }
    let mut image = Image { format: Format::Dump.name(), isa: Some(Isa::Tesla), ..Image::default() };
    let mut unread = Unread::default();
    for part in &parts {
        let name = part.name.unwrap_or("");
        match load_part(text, part, hints) {
            Ok(mut found) => {
                let module = image.modules.iter().position(|module| module.chip == found.chip);
                let module = module.unwrap_or_else(|| {
                    image.modules.push(Module { chip: found.chip.clone(), ..Module::default() });
                    image.modules.len() - 1
                });
                for program in &mut found.programs {
                    program.module = module;
                    program.name = Some(name.to_owned());
                }
                image.programs.append(&mut found.programs);
                image.notes.extend(found.notes.iter().map(|note| format!("{name}: {note}")));
            }
            Err(source) => {
                let (name, at) = (name.to_owned(), part.bytes.start as u64);
                unread.push(Error::Member { name, at, source: Box::new(source) });
            }
        }
    }
    unread.settle(&mut image, "a word", "no function has words".to_owned())?;
    if let [module] = &image.modules[..] {
        image.chip.clone_from(&module.chip);
    }
    Ok(image)
}

fn load_part(text: &str, part: &ListedFunction<'_>, hints: &Hints) -> Result<Image, Error> {
    if let Some(chip) = part.chip.filter(|chip| !CHIPS.contains(chip)) {
        let expected = "code for sm_10, sm_11, sm_12 or sm_13: later chips have another instruction set";
        return Err(Error::OtherChip { found: quoted(chip), expected });
    }
    let mut dump = read(text, part)?;
    if let Some((line, name)) = log::foreign(&text[part.bytes.clone()]) {
        let (line, name, chip) = (part.line + line - 1, quoted(name), "Evergreen or Cayman".to_owned());
        return Err(Error::OtherShader { line, name, chip });
    }
    if dump.lacks_word && matches!(hints.isa, None | Some(Isa::R700)) {
        dump.bytes.extend([0; 4]);
        dump.numbers = None;
        dump.notes.push("the last line lacks a word, which is taken as 0".to_owned());
    }
    let mut image = match recognise_marked(&dump.bytes)? {
        Some(format) => load_as(&dump.bytes, format, hints)?,
        None => Image {
            format: Format::Dump.name(),
            ..bin::load(&dump.bytes, hints.endian.unwrap_or(Endian::Little))?
        },
    };
    image.notes.extend(dump.notes);
    if let Some(chip) = part.chip {
        (image.isa, image.chip) = (Some(Isa::Tesla), Some(chip.to_owned()));
    }
    for program in &mut image.programs {
        let inner = Box::new(std::mem::take(&mut program.code_at));
        if let Some(numbers) = &dump.numbers {
            program.code_at = CodeAt::Numbers(numbers.clone(), inner);
        }
    }
    Ok(image)
}

fn read(text: &str, part: &ListedFunction<'_>) -> Result<Dump, Error> {
    let mut lines = Vec::new();
    let mut passed = Passed::default();
    let (mut stray, mut stray_addressed) = (None, None);
    let mut start = part.bytes.start;
    for (number, line) in (part.line..).zip(text[part.bytes.clone()].split('\n')) {
        match numbers(line, start, number) {
            Some(found) => lines.push(found),
            None if line.trim() == GAP && !lines.is_empty() => {
                return Err(Error::line(number, line, "all lines of the dump (lines are missing here)"));
            }
            None if line.trim() == "*" => {
                return Err(Error::line(
                    number,
                    line,
                    "all lines of the dump (hexdump -v and od -v print all lines)",
                ));
            }
            None => {
                let mut tokens =
                    line.split(|c: char| c.is_whitespace() || c == ',').filter(|token| !token.is_empty());
                if let Some(first) = tokens.next().filter(|first| log::is_number(first)) {
                    // A line of a dump begins with an address and a number. In prose, a number at the start of a line
                    // is not followed by a second number.
                    let second = tokens.next().filter(|second| first.len() >= 4 && log::is_number(second));
                    stray.get_or_insert((number, line, first));
                    if let Some(second) = second {
                        stray_addressed.get_or_insert((number, line, second));
                    }
                }
                passed.add(number, line);
            }
        }
        start += line.len() + 1;
    }
    // The output of hexdump and od ends with the address after the last byte.
    if lines.len() > 1
        && lines[0].address.is_some()
        && lines
            .last()
            .is_some_and(|line| line.address.is_none() && line.units.len() == 1 && line.extra.is_none())
    {
        lines.pop();
    }
    let Some(first) = lines.first() else {
        return Err(Error::missing("a word", "no line has words"));
    };
    let (width, in_order, addressed) = (first.width, first.in_order, first.address.is_some());
    let other = |line: &&Line<'_>| {
        line.width != width
            || line.in_order != in_order
            || line.address.is_some() != addressed && !line.units.is_empty()
    };
    if let Some(line) = lines.iter().find(other) {
        return Err(wrong(
            text,
            line,
            "numbers of the same form as in the first line, with an address if the first line has one",
        ));
    }
    let as_long = || {
        let digits = 2 * width;
        format!("a number of {digits} digits, like the preceding numbers; for a C source, use --format c")
    };
    if let Some((line, extra)) = lines.iter().find_map(|line| Some((line, line.extra?))) {
        return Err(Error::at(
            line.number,
            text.split('\n').nth(line.number - 1).unwrap_or(""),
            extra,
            as_long(),
        ));
    }
    // In a listing with addresses, prose between the lines may begin with a number. A list of numbers without addresses
    // does not contain prose.
    if let Some((number, line, found)) = if addressed { stray_addressed } else { stray } {
        return Err(Error::at(number, line, found, as_long()));
    }
    let order = order_halves(text, &mut lines)?;
    let count = lines.len();
    let places = place(text, &lines)?;
    let is_mesa = addressed && lines.iter().all(|line| line.loose) && lines.iter().any(|line| line.has_text);
    let lacks_word = is_mesa && places.len() % 2 == 1;
    let mut notes = passed.note();
    notes.extend(order);
    let mut bytes = Vec::new();
    let mut gaps = 0;
    for place in &places {
        gaps += usize::from(place.is_none());
        let digits = place.clone().map_or("", |place| &text[place]);
        let value = u64::from_str_radix(digits, 16).unwrap_or(0);
        push_element(&mut bytes, value, width, in_order);
    }
    if gaps > 0 {
        notes.push(format!("{} between the lines' addresses are taken as 0", counted(gaps, "number")));
    }
    let places = places.into_iter().collect::<Option<Vec<_>>>();
    let numbers = places.map(|places| Numbers {
        start: 0,
        places: Arc::new(places),
        digits: Digits::Hexadecimal,
        width,
        big_endian: in_order,
    });
    Ok(Dump { bytes, numbers, lines: count, addressed, lacks_word, notes })
}

/// Puts the words of each long instruction into memory order. Bit 0 of the first word of an instruction is set. In the
/// second word, bit 0 marks the end of the program. If bit 0 is set in both words, another line of the listing
/// determines the order. If no line determines the order, the form of the listing determines the order. CUDA 5 and
/// later versions print the number after the text of the instruction. In this form, the second word comes first.
fn order_halves(text: &str, lines: &mut [Line<'_>]) -> Result<Option<String>, Error> {
    let mut second_first = None;
    let mut after_text = None;
    for line in lines.iter() {
        let Some(after) = line.halves else { continue };
        let odd = |unit: &Range<usize>| {
            text.as_bytes()
                .get(unit.end - 1)
                .is_some_and(|digit| char::from(*digit).to_digit(16).is_some_and(|digit| digit & 1 == 1))
        };
        after_text.get_or_insert(after);
        let order = match (odd(&line.units[0]), odd(&line.units[1])) {
            (true, false) => false,
            (false, true) => true,
            _ => continue,
        };
        if *second_first.get_or_insert(order) != order {
            return Err(wrong(
                text,
                line,
                "a number whose two words have the same order as in the preceding numbers",
            ));
        }
    }
    let swap = second_first.or(after_text).unwrap_or(false);
    if swap {
        lines.iter_mut().filter(|line| line.halves.is_some()).for_each(|line| line.units.reverse());
    }
    let uncertain = second_first.is_none() && after_text.is_some();
    Ok(uncertain.then(|| {
        let which = if swap { "second" } else { "first" };
        format!("no instruction shows the order of its words (bit 0 set in one word only); the {which} word is taken \
                 as the first")
    }))
}

/// Returns the numbers of a line that starts at byte `start`.
fn numbers(line: &str, start: usize, number: usize) -> Option<Line<'_>> {
    let place = |part: &str| {
        let at = start + (part.as_ptr() as usize - line.as_ptr() as usize);
        at..at + part.len()
    };
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // In a listing of cuobjdump, the address and the words are in comments.
    let comments: Vec<&str> = line
        .split("/*")
        .skip(1)
        .filter_map(|rest| rest.split_once("*/"))
        .map(|(text, _)| text.trim())
        .collect();
    if let Some(words) = comments.iter().find_map(|text| text.strip_prefix("0x"))
        && is_hex(words)
    {
        let address = comments.first().copied().filter(|text| is_hex(text));
        let units: Vec<_> = match words.len() {
            8 | 16 => (0..words.len() / 8).map(|unit| place(&words[8 * unit..][..8])).collect(),
            _ => vec![place(words)],
        };
        let extra = (![8, 16].contains(&words.len())).then_some(words);
        let text = |from: &str| !from.trim_start().starts_with("/*");
        let after = line.split_once("*/").is_some_and(|(_, rest)| text(rest));
        let halves = (units.len() == 2).then_some(after);
        let (width, in_order, loose, has_text) = (4, false, false, true);
        return Some(Line { number, address, units, width, in_order, loose, halves, extra, has_text });
    }
    // Removes the column of characters that follows the bytes in a hex dump.
    let mut rest = line.split('|').next().unwrap_or("").split("//").next().unwrap_or("").trim();
    let mut address = None;
    let mut colon = false;
    let first = rest.split_whitespace().next()?;
    if let Some(text) = first.strip_suffix(':').filter(|text| is_hex(text.trim_start_matches("0x"))) {
        (address, colon) = (Some(text), true);
        rest = rest[first.len()..].trim_start();
        rest = rest.split("  ").next().unwrap_or("");
    }
    let mut tokens: Vec<&str> = rest
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|token| !token.is_empty())
        .map(|token| token.strip_prefix("0x").unwrap_or(token))
        .collect();
    let bare = !colon && rest.starts_with(|c: char| c.is_ascii_hexdigit()) && !rest.starts_with("0x");
    let units_from = |tokens: &[&str]| {
        let len = tokens.first().map_or(0, |token| token.len());
        if ![2, 4, 8].contains(&len) {
            return 0;
        }
        tokens.iter().take_while(|token| token.len() == len && is_hex(token)).count()
    };
    if bare && tokens.len() > 1 && is_hex(tokens[0]) && tokens[0].len() >= 4 && units_from(&tokens[1..]) > 0 {
        address = Some(tokens.remove(0));
    }
    let count = units_from(&tokens);
    let width = tokens.first().map_or(0, |token| token.len()) / 2;
    // A number with few digits and without an address is more likely prose than code.
    if count == 0 || (address.is_none() && width < 4) {
        return None;
    }
    let units = tokens[..count].iter().map(|token| place(token)).collect();
    // In Mesa's dumps, the text of a line can begin with the number of a group.
    let loose = bare && width == 4;
    let extra = tokens.get(count).copied().filter(|token| log::is_number(token));
    let has_prefix = |token: &str| line[..place(token).start - start].ends_with("0x");
    let extra = extra.filter(|token| !loose || address.is_none() || token.len() >= 4 || has_prefix(token));
    // xxd prints groups of bytes. hexdump and od print 16-bit units in host order. All three tools can also print words
    // as numbers.
    let in_order = width == 2 && colon;
    let has_text = tokens.len() > count;
    Some(Line { number, address, units, width, in_order, loose, halves: None, extra, has_text })
}

/// Returns the position of each number in the text, sorted by the addresses of the numbers. `None` stands for a gap.
/// The function tries several units of addresses. The function uses the first unit with which all lines are contiguous.
/// If the lines are not contiguous with any unit, the text can only be a dump of Mesa. In Mesa's dumps, addresses count
/// words in decimal, lines can be in any order, and small gaps occur between clauses.
fn place(text: &str, lines: &[Line<'_>]) -> Result<Vec<Option<Range<usize>>>, Error> {
    let all = || lines.iter().flat_map(|line| line.units.iter().cloned().map(Some)).collect();
    if lines[0].address.is_none() {
        return Ok(all());
    }
    // Base of the digits of an address, and number of bytes per address unit. The address unit is a byte, a word, a
    // slot of two words (R700) or a slot of six words (R500).
    const WAYS: [(u32, usize); 8] = [(16, 1), (8, 1), (10, 1), (10, 4), (16, 4), (10, 8), (16, 8), (10, 24)];
    let width = lines[0].width;
    let address = |line: &Line<'_>, (radix, bytes): (u32, usize)| {
        // Only od prints octal addresses. These addresses have seven digits.
        let digits = line.address.filter(|digits| radix != 8 || digits.len() == 7)?.trim_start_matches("0x");
        usize::from_str_radix(digits, radix).ok()?.checked_mul(bytes)
    };
    // Returns the number of lines at the start of the text whose words are contiguous, for addresses with the base and
    // the unit in `way`.
    let follow = |way: &(u32, usize)| {
        let mut next = address(&lines[0], *way);
        let follows = |line: &&Line<'_>| {
            let fits = next.is_some() && address(line, *way) == next;
            next = next.and_then(|next| next.checked_add(width * line.units.len()));
            fits
        };
        lines.iter().take_while(follows).count()
    };
    let most = WAYS.iter().map(follow).max().unwrap_or(0);
    if most == lines.len() {
        return Ok(all());
    }
    if !lines[most].loose {
        return Err(wrong(
            text,
            &lines[most],
            "an address that follows the line before; a line may be missing",
        ));
    }
    let mut placed: Vec<(usize, &Line<'_>)> =
        lines.iter().filter_map(|line| Some((address(line, (10, 4))? / width, line))).collect();
    placed.sort_by_key(|(at, _)| *at);
    let mut numbers = Vec::new();
    for (at, line) in placed {
        if line.address.is_none_or(|address| address.starts_with("0x"))
            || at < numbers.len()
            || at > numbers.len() + WIDEST_GAP
        {
            let expected = "an address that follows those of the other lines";
            return Err(wrong(text, line, expected));
        }
        numbers.resize(at, None);
        numbers.extend(line.units.iter().cloned().map(Some));
    }
    match numbers.iter().flatten().count() == lines.iter().map(|line| line.units.len()).sum() {
        true => Ok(numbers),
        false => Err(wrong(
            text,
            &lines[0],
            "addresses that all count words in decimal, or addresses that follow each other",
        )),
    }
}

fn wrong(text: &str, line: &Line<'_>, expected: &str) -> Error {
    Error::line(line.number, text.split('\n').nth(line.number - 1).unwrap_or(""), expected)
}

/// Number of skipped lines.
#[derive(Default)]
struct Passed {
    count: usize,
    first: Option<(usize, String)>,
}

impl Passed {
    fn add(&mut self, number: usize, line: &str) {
        if !line.trim().is_empty() {
            self.count += 1;
            self.first.get_or_insert_with(|| (number, quoted(line.trim())));
        }
    }

    fn note(self) -> Vec<String> {
        let Some((number, line)) = self.first else { return Vec::new() };
        let lines = counted(self.count, "line");
        vec![format!("skipped {lines} without words; the first is line {number}: {line}")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch;

    #[track_caller]
    fn check(text: &str, words: &[u32]) -> Vec<String> {
        assert_eq!(crate::recognise(text.as_bytes()), Ok(Format::Dump), "{text}");
        let image =
            crate::load(text.as_bytes(), &Hints::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(image.programs[0].words, words, "{text}");
        image.notes
    }

    #[test]
    fn the_dumps_of_mesa_r600_are_placed_by_their_addresses() {
        let text = "--------------------------------------\nAn ALU clause\n\
            of one group\n0000 00000004 A0040000 ALU 2 @8\n 0008 801F4C00 00000C90    1     x: MOV R0.x, 1.0\n \
            0010 000004FD 80800C90          y: MOV R0.y, L.x\n 0012 3F800000 00000000\n\
            0002 C0008000 94600688 EXPORT_DONE PIXEL 0 R0\n";
        let notes = check(
            text,
            &[
                4,
                0xa004_0000,
                0xc000_8000,
                0x9460_0688,
                0,
                0,
                0,
                0,
                0x801f_4c00,
                0xc90,
                0x4fd,
                0x8080_0c90,
                0x3f80_0000,
                0,
            ],
        );
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("skipped 3 lines without words; the first is line 1"), "{notes:?}");
        let second = "\
            0000  00000002 a0000000     ALU 1 @4\n0004  801f4c00 00000c90         x:     MOV R0.x, 1.0\n\
            0002  c0008000 94600688     EXPORT_DONE PIXEL 0 R0.xyzw\n";
        check(second, &[2, 0xa000_0000, 0xc000_8000, 0x9460_0688, 0x801f_4c00, 0xc90]);
    }

    #[test]
    fn listings_of_disassemblers_give_their_words() {
        let words = [0x1000_4205, 0x780, 0x1000_8009, 0xf000_0001, 0xe000_0001];
        check(
            "00000000: 10004205 00000780 mov b32 $r1 s[0x10]\n00000008: 10008009          mov b32 $r2 $r0\n\
             0000000c: f0000001 e0000001 exit nop\n",
            &words,
        );
        let sass = "\tcode for sm_10\n\t\tFunction : k\n\t/*0000*/     /*0x1000420500000780*/ \tMOV R1, g [0x4];\n\
            \t/*0008*/     /*0x10008009*/         \tMOV R2, R0;\n\t/*000c*/     /*0xf0000001e0000001*/ \tNOP;\n\t.....\n";
        check(sass, &words);
        let behind = "        /*0000*/         MOV R1, g [0x4];   /* 0x1000420500000780 */\n\
            /*0008*/  MOV R2, R0; /* 0x10008009 */\n/*000c*/ NOP; /* 0xf0000001e0000001 */";
        check(behind, &words);
        check("0x10004205, 0x00000780,\n0x10008009,\n// end\n0xf0000001, 0xe0000001\n", &words);
    }

    #[test]
    fn listings_with_the_second_word_first_are_read_by_the_bit_of_long_instructions() {
        let text = "\tcode for sm_12\n\t\tFunction : first\n\t.headerflags    @\"EF_CUDA_SM12\"\n\
            \t/*0000*/     I2I.U32.U16 R0, R0L;   /* 0x04000780a0000001 */\n\
            \t/*0008*/     MOV R2, R0;   /* 0x10008008 */\n\
            \t/*000c*/     NOP;   /* 0xe0000001f0000001 */\n\t\t........\n\n\t\tFunction : _Z6secondPf\n\
            \t/*0000*/     NOP;   /* 0xe0000001f0000001 */\n\t\t........\n";
        assert_eq!(crate::recognise(text.as_bytes()), Ok(Format::Dump));
        let image = crate::load(text.as_bytes(), &Hints::default()).unwrap();
        assert_eq!((image.isa, image.chip.as_deref()), (Some(Isa::Tesla), Some("sm_12")));
        let [first, second] = &image.programs[..] else { panic!("{:?}", image.programs) };
        assert_eq!(first.name.as_deref(), Some("first"));
        assert_eq!(first.words, [0xa000_0001, 0x0400_0780, 0x1000_8008, 0xf000_0001, 0xe000_0001]);
        // The listing has only one instruction, which does not determine the order. So the form of the listing
        // determines the order.
        assert_eq!(
            (second.name.as_deref(), &second.words[..]),
            (Some("_Z6secondPf"), &[0xf000_0001, 0xe000_0001][..])
        );
        assert!(
            image.notes.iter().any(|note| note.contains("the second word is taken as")),
            "{:?}",
            image.notes
        );
        let patched = patch(text.as_bytes(), &Hints::default(), 0, 1, &[0x1234_5678]).unwrap();
        assert!(String::from_utf8(patched).unwrap().contains("/* 0x12345678a0000001 */"));
        let both = text.replace("0xe0000001f0000001", "0x1000420500000780");
        let error = crate::load(both.as_bytes(), &Hints::default()).unwrap().notes.join("\n");
        assert!(
            error.contains("`first`") && error.contains("line 6") && error.contains("same order as"),
            "{error}"
        );
        let error = crate::load(text.replace("sm_12", "sm_20").as_bytes(), &Hints::default()).unwrap_err();
        assert!(error.to_string().contains("`sm_20`"), "{error}");
    }

    #[test]
    fn a_number_that_is_not_taken_is_an_error_with_its_line() {
        for (text, line, found) in [
            ("0x10004205, 0x00000780,\n0x12345, 0x00000780\n", 2, "0x12345"),
            ("0x10004205, 0x00000780, 0x12345,\n0x00000780\n", 1, "0x12345"),
            ("0x10004205,\n0xa03c, 0x00000780\n", 2, "0xa03c"),
            ("0x10004205,\n17,\n", 2, "17"),
            ("10004205 00000780\n10004205 1234567g\n", 2, "1234567g"),
            ("00000000: 10004205 0000780\n", 1, "0000780"),
            ("00000000: 0542 0010 80\n", 1, "80"),
            ("0000 00000004 A0040000 0x12\n0002 00000004 A0040000 ALU\n", 1, "12"),
            ("/*0000*/ /*0x1000420500000780*/ MOV;\n/*0008*/ /*0x100042*/ MOV;\n", 2, "100042"),
        ] {
            assert_eq!(crate::recognise(text.as_bytes()), Ok(Format::Dump), "{text}");
            let error = crate::load(text.as_bytes(), &Hints::default()).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("line {line}, "))
                    && error.contains(found.trim_start_matches("0x")),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn hex_dumps_of_every_kind_give_their_words() {
        let words = [0x1000_4205, 0x780, 0xf000_0001, 0xe000_0001, 0x4142_4344];
        for text in [
            "00000000  05 42 00 10 80 07 00 00  01 00 00 f0 01 00 00 e0  |.B..............|\n00000010  44 43 42 41  |DCBA|\n00000014\n",
            "00000000: 0542 0010 8007 0000 0100 00f0 0100 00e0  .B..............\n00000010: 4443 4241                                DCBA\n",
            "0000000 4205 1000 0780 0000 0001 f000 0001 e000\n0000010 4344 4142\n0000014\n",
            "0000000 10004205 00000780 f0000001 e0000001\n0000020 41424344\n0000024\n",
            "00000000 10004205 00000780 f0000001 e0000001\n00000010 41424344\n",
        ] {
            check(text, &words);
            let patched = patch(text.as_bytes(), &Hints::default(), 0, 2, &[0x1122_3344]).unwrap();
            assert_eq!(patched.len(), text.len());
            let again = crate::load(&patched, &Hints::default()).unwrap();
            assert_eq!(again.programs[0].words[2], 0x1122_3344, "{text}");
        }
    }

    #[test]
    fn a_text_that_does_not_fit_is_refused_with_its_line() {
        let refused = |text: &str| {
            crate::load(text.as_bytes(), &Hints { format: Some(Format::Dump), ..Hints::default() })
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        let gap = "00000000: 10004205 00000780 mov\n00000010: f0000001 exit\n00000014: f0000001 exit\n";
        assert!(refused(gap).starts_with("line "), "{}", refused(gap));
        assert!(
            refused("00000000  05 42 00 10\n*\n00000010  05 42 00 10\n")
                .starts_with("line 2, column 1: found `*`")
        );
        assert!(refused("nothing here").contains("no line has words"));
        // The line has the highest 64-bit address, so no address can follow the line.
        let last = format!("{} 4205 1000\n", u64::MAX);
        assert!(load(&last, &Hints::default()).is_ok());
        assert!(refused(&format!("{last}0003 4205 1000\n")).starts_with("line 2, "));
        // Words without addresses are still recognised as plain words.
        assert_eq!(crate::recognise(b"00000000 10004205\n00000780 f0000001\n"), Ok(Format::Hex32));
        assert_eq!(crate::recognise(b"hello"), Ok(Format::Hex32));
    }

    #[test]
    fn a_dump_of_a_container_is_that_container() {
        let cubin = "code { name = k bincode { 0x10000001 0x00000780 } }";
        let line = |(at, bytes): (usize, &[u8])| {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:08x}  {}\n", 16 * at, bytes.join(" "))
        };
        let text: String = cubin.as_bytes().chunks(16).enumerate().map(line).collect();
        let read = |text: &[u8]| crate::load(text, &Hints::default()).unwrap();
        assert_eq!(read(text.as_bytes()).programs[0].name.as_deref(), Some("k"));
        let patched = patch(text.as_bytes(), &Hints::default(), 0, 1, &[0x1234_5678]).unwrap();
        assert_eq!(read(&patched).programs[0].words, [0x1000_0001, 0x1234_5678]);
        assert_eq!(patched.len(), text.len());
    }
}
