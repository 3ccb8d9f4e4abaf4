//! Tests with sources of the kinds that occur in practice.

use super::*;

fn load(text: &str) -> Result<Image, Error> {
    super::load(text, &Hints::default())
}

const CUBIN: &str = "architecture {sm_11}\ncode { name = k reg = 3 bincode { 0x10000001 } }\n";

fn dump(kind: &str, name: &str, bytes: &[u8], width: usize) -> String {
    let mut elements = String::new();
    for part in bytes.chunks(width) {
        let mut value = [0; 8];
        value[..part.len()].copy_from_slice(part);
        elements += &format!("{:#x}, ", u64::from_le_bytes(value));
    }
    format!("static const {kind} {name}[] __attribute__((aligned(8))) = {{ {elements} }};\n")
}

#[test]
fn the_bytes_of_every_width_are_recognised_again() {
    for (kind, width) in [
        ("unsigned char", 1),
        ("unsigned short", 2),
        ("unsigned int", 4),
        ("unsigned long long", 8),
        ("uint32_t", 4),
    ] {
        let image = load(&dump(kind, "k_cubin", CUBIN.as_bytes(), width)).unwrap();
        assert_eq!(image.programs[0].name.as_deref(), Some("k"), "{kind}");
        assert_eq!(image.chip.as_deref(), Some("sm_11"), "{kind}");
    }
}

#[test]
fn several_arrays_are_several_programs() {
    let text = format!(
        "/* x[] = {{ */\n#define A[] \\\n = {{\nint table(int a[3]);\n{}const u32 vs[2] = {{ 1u, 0x2, }};\nu32 ps[][2] = {{ {{1, 2}}, {{3, 4}} }};\nconst float f[] = {{ 1.0 }};",
        dump("unsigned char", "c", CUBIN.as_bytes(), 1)
    );
    let image = load(&text).unwrap();
    let names: Vec<_> = image.programs.iter().map(|program| program.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["k", "vs", "ps"]);
    assert_eq!(image.programs[1].words, [1, 2]);
    assert_eq!(image.programs[2].words, [1, 2, 3, 4]);
    assert_eq!(image.modules.len(), 3);
    assert_eq!(image.programs[2].module, 2);
    assert!(image.notes.iter().any(|note| note.contains("array f")), "{:?}", image.notes);
}

#[test]
fn a_wrong_element_is_an_error_with_its_place() {
    for bad in ["256", "1.5", "foo", "0x"] {
        let error = load(&format!("unsigned char a[] = {{\n 1, {bad} }};")).unwrap_err();
        assert!(matches!(error, Error::Syntax { line: 2, column: 5, .. }), "{bad}: {error}");
    }
    assert!(matches!(load("unsigned long a[] = { 1 };"), Err(Error::Syntax { .. })));
    assert!(matches!(load("unsigned char a[1] = { 1, 2 };"), Err(Error::Syntax { .. })));
    assert!(matches!(load("unsigned char a[] = { 1, 2"), Err(Error::Syntax { .. })));
}

#[test]
fn deep_nesting_is_an_error() {
    let text = format!("int a[] = {}", "{".repeat(100_000));
    assert!(matches!(load(&text), Err(Error::TooDeep { .. })));
}

#[test]
fn a_declared_size_beyond_the_elements_allocates_nothing() {
    let image = load("u32 a[0xffffffff] = { 1 };").unwrap();
    assert_eq!(image.programs[0].words, [1]);
    assert_eq!(image.notes.len(), 1);
}

#[test]
fn an_error_inside_an_array_names_the_array() {
    let error = load("unsigned char broken[] = { 0x7f, E };").unwrap_err();
    assert!(matches!(error, Error::Syntax { .. }));
    let error = load("unsigned char broken[] = { 0x7f, 0x45, 0x4c, 0x46 };").unwrap_err();
    assert!(error.to_string().contains("`broken`"), "{error}");
}

fn words_of(elements: &str) -> Vec<u32> {
    let image = load(&format!("u32 a[] = {{ {elements}, 0x80000000 }};"));
    image.unwrap_or_else(|error| panic!("{elements}: {error}")).programs[0].words.clone()
}

#[test]
fn an_expression_of_constants_is_computed_as_c_does() {
    for (element, expected) in [
        ("1 << 4 | 3", 0x13),
        ("(1 << 31)", 0x8000_0000),
        ("2 + 3 * 4 - 1", 13),
        ("(2 + 3) * 4 % 7", 6),
        ("~0u >> 1", 0x7fff_ffff),
        ("~0 >> 1", 0xffff_ffff),
        ("-1", 0xffff_ffff),
        ("0xffffffff << 4", 0xffff_fff0),
        ("(unsigned char)0x1ff", 0xff),
        ("(int8_t)0x80", 0xffff_ff80),
        ("(uint32_t)(0x12 << 8) ^ 0x34", 0x1234),
        ("0x10ull << 32 >> 32", 0x10),
        ("'A' | '\\n' << 8 | '\\x7f' << 16 | '\\0'", 0x007f_0a41),
        ("7 & ~2", 5),
        ("100 / 7", 14),
    ] {
        assert_eq!(words_of(element), [expected, 0x8000_0000], "{element}");
    }
    assert_eq!(words_of("1, (2), 1 + 2, +4"), [1, 2, 3, 4, 0x8000_0000]);
}

#[test]
fn an_array_with_other_elements_is_named_and_does_not_hide_the_rest() {
    let text = "u32 a[] = { 1, MACRO(2, 3), { 4 } };\nu32 b[] = { 1 / 0 };\nu32 c[] = { 1 << 32 };\n\
                u32 d[] = { 1 2 };\nu8 e[] = { 1 = 1, 2, 3, 4 };\nu32 good[] = { 5 };";
    let image = load(text).unwrap();
    assert_eq!(image.programs.len(), 1);
    assert_eq!((image.programs[0].name.as_deref(), &image.programs[0].words[..]), (Some("good"), &[5][..]));
    let lines = ["line 1, column 16", "line 2", "line 3", "line 4", "line 5"];
    for (note, line) in image.notes.iter().zip(lines) {
        assert!(note.contains(line), "{note}");
    }
    assert_eq!(image.notes.len(), 5, "{:?}", image.notes);
    let error = load("u32 a[] = {\n 1,\n FOO };").unwrap_err();
    assert!(matches!(error, Error::Syntax { line: 3, column: 2, .. }), "{error}");
}

#[test]
fn an_unknown_macro_among_words_is_an_error_whatever_else_is_there() {
    for text in ["u32 a[] = {\n 0x94200688, WORD(1) };", "u32 a[] = {\n FOO, 0x94200688 };"] {
        for whole in [format!("{text}\nu32 good[] = {{ 0x80000000 }};"), text.to_owned()] {
            let error = load(&whole).unwrap_err();
            assert!(matches!(error, Error::Syntax { line: 2, .. }), "{error}");
        }
    }
    // A table of small numbers is not code.
    let table = "u32 a[] = { FOO, 17 };\nu8 b[] = { 0x12, FOO };\nu32 good[] = { 0x80000000 };";
    assert_eq!(load(table).unwrap().programs.len(), 1);
}

#[test]
fn elements_in_big_endian_order_are_found_by_the_mark_or_by_the_hint() {
    let swap = |file: &[u8], width: usize| -> Vec<u8> {
        file.chunks(width)
            .flat_map(|part| part.iter().rev().copied().chain([0; 8]).take(width).collect::<Vec<_>>())
            .collect()
    };
    let padded = CUBIN.to_owned() + &" ".repeat(CUBIN.len().next_multiple_of(8) - CUBIN.len());
    for (kind, width) in [("unsigned short", 2), ("unsigned int", 4), ("unsigned long long", 8)] {
        let image = load(&dump(kind, "a", &swap(padded.as_bytes(), width), width)).unwrap();
        assert_eq!(image.programs[0].name.as_deref(), Some("k"), "{kind}");
    }
    let big = Hints { endian: Some(Endian::Big), ..Hints::default() };
    for text in ["u32 a[] = { 0x01000080 };", "u8 a[] = { 0x80, 0, 0, 1 };"] {
        assert_eq!(super::load(text, &big).unwrap().programs[0].words, [0x8000_0001], "{text}");
        let patched = crate::patch(text.as_bytes(), &big, 0, 0, &[0x8000_0002]).unwrap();
        assert_eq!(
            super::load(str::from_utf8(&patched).unwrap(), &big).unwrap().programs[0].words,
            [0x8000_0002]
        );
    }
    // The byte order of the mark takes precedence over the byte order of the hint.
    let image = super::load(&dump("unsigned int", "a", padded.as_bytes(), 4), &big).unwrap();
    assert_eq!(image.programs[0].name.as_deref(), Some("k"));
}

fn loaded(text: &str, defines: &[&str]) -> Image {
    let defines = defines.iter().map(|define| (*define).to_owned()).collect();
    let hints = Hints { defines, ..Hints::default() };
    crate::load(text.as_bytes(), &hints).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    crate::load(text.as_bytes(), &Hints::default()).map(|_| ()).unwrap_err().to_string()
}

/// Returns the names and words of the programs.
fn programs(image: &Image) -> Vec<(&str, &[u32])> {
    image.programs.iter().map(|program| (program.name.as_deref().unwrap_or(""), &program.words[..])).collect()
}

/// Returns the words of the only program, and the notes.
#[track_caller]
fn check(text: &str, defines: &[&str], words: &[u32], notes: &[&str]) {
    let image = loaded(text, defines);
    assert_eq!(image.format, "c", "{text}");
    assert_eq!(
        image.programs.iter().map(|program| &program.words[..]).collect::<Vec<_>>(),
        [words],
        "{text}"
    );
    assert_eq!(image.notes.len(), notes.len(), "{text}: {:?}", image.notes);
    for (note, expected) in image.notes.iter().zip(notes) {
        assert!(note.contains(expected), "{note}");
    }
}

#[test]
fn a_source_is_never_taken_for_a_dump() {
    let two = "static const u32 ps[] = {\n\t0x00000000, 0x94200688,\n};\n\
               static const u32 vs[] = {\n\t0x0000203c, 0x94200688,\n};\n";
    let expected: [(&str, &[u32]); 2] = [("ps", &[0, 0x9420_0688]), ("vs", &[0x203c, 0x9420_0688])];
    assert_eq!(programs(&loaded(two, &[])), expected);
    let mixed = "u32 p[] = { 0x00000000,\n 0x94200688, 0x12345,\n 0xa03c, 0x94200688 };";
    check(mixed, &[], &[0, 0x9420_0688, 0x12345, 0xa03c, 0x9420_0688], &[]);
    // One element per line, after comments that look like addresses.
    let lines = "uint32_t a[2] =\n{\n/* 0000 */ 0x00000002,\n/* 0001 */ 0xA0000000, // 0x12345678\n};";
    check(lines, &[], &[2, 0xa000_0000], &[]);
    check("const uint32_t a[] {\n0x00000002,\n0xA0000000,\n};", &[], &[2, 0xa000_0000], &[]);
}

#[test]
fn groups_of_the_preprocessor_are_chosen_as_c_does() {
    let text = |condition: &str| format!("u32 a[] = {{ 1, 0x80000000,\n{condition}\n 3,\n#endif\n 4 }};");
    let (with, without) = ([1, 0x8000_0000, 3, 4], [1, 0x8000_0000, 4]);
    for condition in [
        "#if 1",
        "#ifndef X",
        "#if !defined(X)",
        "#if defined X || 2 * 3 == 6",
        "# if (1 << 3) > 7 /* \n */ && -1 < 0",
    ] {
        check(&text(condition), &[], &with, &[]);
    }
    for condition in
        ["#if 0", "#ifdef X", "#if X", "#if defined(X) && X > 1", "#if 1 ? 0 : 1", "#if 1 \\\n - 1"]
    {
        let continued = usize::from(condition.contains('\n'));
        let note =
            format!("line 2: `#if{}", &condition[3..].split('\n').next().unwrap().replace('\\', "\\\\"));
        let lines = format!("line {} is left out", 3 + continued);
        let image = loaded(&text(condition), &[]);
        assert_eq!(image.programs[0].words, without, "{condition}");
        assert!(
            image.notes[0].contains(&note) && image.notes[0].contains(&lines),
            "{:?} {note}",
            image.notes
        );
    }
    check(&text("#ifdef X"), &["X"], &with, &[]);
    check(&text("#if X >= 0x10"), &["X=0x10"], &with, &[]);
    check(&text("#if X"), &["X=0"], &without, &["line 3 is left out"]);
    check(&text("#define X 2\n#if X == 2"), &[], &with, &[]);
    check(&text("#define X 2\n#undef X\n#ifdef X"), &[], &without, &["(X is not defined, -D X=VALUE"]);
    check(&text("#define X 0\n#if X"), &["X=1"], &without, &["line 2 defines X again", "line 3: `#if X`"]);
    // There are notes only for groups that could have defined something.
    check(
        "#ifndef A_H\n#define A_H\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nu32 a[] = { 0x80000000 };\n#endif",
        &[],
        &[0x8000_0000],
        &[],
    );
}

#[test]
fn the_first_group_that_holds_is_taken() {
    let text = "u32 a[] = {\n#if A\n 1,\n#elif B\n 2,\n# if C\n 3,\n# else\n 4,\n# endif\n#elif B\n 5,\n#else\n 6,\n#endif\n 0x80000000 };";
    for (defines, words) in [
        (&["A"][..], &[1][..]),
        (&["B"], &[2, 4]),
        (&["B", "C"], &[2, 3]),
        (&[], &[6]),
        (&["A", "B", "C"], &[1]),
    ] {
        let expected: Vec<u32> = words.iter().copied().chain([0x8000_0000]).collect();
        assert_eq!(loaded(text, defines).programs[0].words, expected, "{defines:?}");
    }
    let both = "#ifdef BIG\nu32 a[] = { 0x80000001 };\n#else\nu32 a[] = { 0x80000002 };\n#endif";
    check(both, &["BIG"], &[0x8000_0001], &["line 3: `#else`: line 4 is left out"]);
    check(
        both,
        &[],
        &[0x8000_0002],
        &["line 1: `#ifdef BIG`: line 2 is left out (BIG is not defined, -D BIG=VALUE"],
    );
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_an_error_with_its_line() {
    let with = |line: &str| refused(&format!("u32 a[] = {{ 1,\n{line}\n3\n#endif\n }};"));
    for (line, why) in [
        ("#if VERSION(2, 6)", "VERSION is not known here, -D 'VERSION(x)=x'"),
        ("#if", "integer constant"),
        ("#if 1 +", "integer constant"),
        ("#if 1 / 0", "divisor"),
        ("#ifdef", "a name"),
        ("#if defined(", "`defined(NAME)`"),
        ("#if \"a\"", "integer constant"),
        ("#elif 1", "an #if before it"),
        ("#include \"words.inc\"\n#if 1", "other files are not read"),
    ] {
        assert!(with(line).starts_with("line 2, ") && with(line).contains(why), "{line}: {}", with(line));
    }
    assert!(refused("#if 1\nu32 a[] = { 0x80000000 };").contains("an #endif for this #if"));
    assert!(refused("#if 0\nu32 a[] = { 0x80000000 };").contains("an #endif for this #if"));
    assert!(refused("u32 a[] = {0};\n#endif").starts_with("line 2, "));
    let twice = "u32 a[] = {0};\n#if 1\n#else\n#else\n#endif";
    assert!(refused(twice).starts_with("line 4, "), "{}", refused(twice));
    // The error names the omitted group.
    let nothing = refused("#ifdef A\nu32 a[] = { 0x80000000 };\n#endif");
    assert!(nothing.contains("-D A=VALUE"), "{nothing}");
}

#[test]
fn macros_around_numbers_are_read_where_their_value_is_certain() {
    for (element, word) in [
        ("cpu_to_le32(0x12345678)", 0x1234_5678),
        ("util_cpu_to_le32(0x12345678u)", 0x1234_5678),
        ("htonl(0x12345678)", 0x7856_3412),
        ("__builtin_bswap32(0x12345678)", 0x7856_3412),
        ("be32_to_cpu(1 | 2)", 0x0300_0000),
        ("UINT32_C(0x12345678)", 0x1234_5678),
        ("(uint32_t)0x12345678", 0x1234_5678),
        ("(const unsigned int)(0x12345678)", 0x1234_5678),
        ("0x1234'5678UL", 0x1234_5678),
        ("0b1000'0001", 0x81),
        ("-2", 0xffff_fffe),
        ("1 ? 2 : 3", 2),
        ("2 == 2 && 3 != 4", 1),
    ] {
        assert_eq!(words_of(element), [word, 0x8000_0000], "{element}");
    }
    let big = Hints { endian: Some(Endian::Big), ..Hints::default() };
    for (element, bytes) in [("htonl", [0x12, 0x34, 0x56, 0x78]), ("cpu_to_le32", [0x78, 0x56, 0x34, 0x12])] {
        let image = super::load(&format!("u32 a[] = {{ {element}(0x12345678), 0xff }};"), &big).unwrap();
        assert_eq!(image.programs[0].words[0].to_le_bytes(), bytes, "{element}");
    }
}

#[test]
fn macros_are_replaced_as_c_does() {
    let text = "#define SWAP(x) ((((x) & 0xff) << 24) | (((x) & 0xff00) << 8) | (((x) >> 8) & 0xff00) | ((x) >> 24))\n\
        #define ONE 1\n#define SUM ONE + ONE\n#define TWO_OF(a, b) \\\n a, \\\n b\n#define NOTHING\n#define F() 9\n\
        u32 a[] = { SWAP(0x12345678), SUM * 3, TWO_OF((5, 6) , SWAP(1)) NOTHING, F(), ONE, 0x80000000 };";
    let error = refused(text);
    assert!(error.starts_with("line 9, ") && error.contains("operator or `)`"), "{error}");
    let text = text.replace("(5, 6)", "5");
    check(&text, &[], &[0x7856_3412, 4, 5, 0x0100_0000, 9, 1, 0x8000_0000], &[]);
    check("u32 a[] = { CP(0x12345678), CP(0x80000000) };", &["CP(x)=x"], &[0x1234_5678, 0x8000_0000], &[]);
    check("word a[] = { A, 0x80000000 };", &["A=(1<<4)", "word=uint32_t"], &[16, 0x8000_0000], &[]);
    let unknown = refused("u32 a[] = {\n CP(0x12345678) };");
    assert!(unknown.contains("line 2, column 2") && unknown.contains("-D 'CP(x)=x'"), "{unknown}");
    let unknown = refused("u32 a[] = { 1,\n  REG };");
    assert!(
        unknown.contains("line 2, column 3: found `REG`") && unknown.contains("-D REG=VALUE"),
        "{unknown}"
    );
    for (macros, why) in [
        ("#define A(x) x ## 1", "# and ##"),
        ("#define A(x, y) x", "2 arguments"),
        ("#define A(x) A(x)", "A is not known"),
    ] {
        let error = refused(&format!("{macros}\nu32 a[] = {{ A(0x80000000) }};"));
        assert!(error.starts_with("line 2, ") && error.contains(why), "{macros}: {error}");
    }
    for define in ["", "1", "A(x", "A(x)y", "A B"] {
        let hints = Hints { defines: vec![define.to_owned()], ..Hints::default() };
        let error = super::load("u32 a[] = { 1 };", &hints).unwrap_err();
        assert_eq!(error, Error::Define(define.to_owned()));
    }
}

#[test]
fn macros_that_grow_without_end_are_an_error() {
    let mut text = "#define A0 1,1,1,1,1,1,1,1,1,1\n#define E0\n".to_owned();
    for level in 1..30 {
        let ten = |name: &str| format!("{name}{} ", level - 1).repeat(10);
        text += &format!("#define A{level} {}\n#define E{level} {}\n", ten("A").replace(' ', ","), ten("E"));
    }
    for name in ["A29", "E29", "E29 E28 E27", "A3"] {
        let error = refused(&format!("{text}u32 a[] = {{ {name} 0x80000000 }};"));
        assert!(error.contains("at most"), "{name}: {error}");
    }
    let many = format!("#define A {}\nu32 a[] = {{ {} }};", "1,".repeat(400), "A ".repeat(400));
    assert!(refused(&many).contains("at most"), "{}", refused(&many));
}

#[test]
fn arrays_of_one_name_are_told_apart_by_their_lines() {
    let image = loaded(
        "u32 a[]={0,0x94200688};\nu32 b[]={0x80000000};\nu32 a[]={0x203c,0x94200688}; u32 a[]={0x80000003};",
        &[],
    );
    let names: Vec<&str> = programs(&image).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a:1", "b", "a:3", "a:3.2"]);
    assert!(image.notes[0].contains("such as a:1 for a"), "{:?}", image.notes);
}

#[test]
fn every_declarator_and_compound_literal_is_read() {
    let image = loaded(
        "u32 a[1] = { 0x80000001 }, b[] = { 0x80000002 };\nvoid f(u32 x[], int n) { if (sizeof(u32[4])) { g(); } }\nvoid g(const u32 y[]) { h(1); }\n\
         int i = send((const u32[]){ 0x80000003 }, 1);\nu32 x[2], c[] = { 0x80000004 };",
        &[],
    );
    let expected: [(&str, &[u32]); 4] =
        [("a", &[0x8000_0001]), ("b", &[0x8000_0002]), ("u32", &[0x8000_0003]), ("c", &[0x8000_0004])];
    assert_eq!(programs(&image), expected);
    assert!(image.notes.is_empty(), "{:?}", image.notes);
}

#[test]
fn a_text_cubin_in_a_string_is_read() {
    for text in [
        "const char *k = \"architecture {sm_11}\\n\"\n  \"code { name = k reg = 3 \" \"bincode { 0x10000001 } }\\n\";",
        "const char k[] = \"architecture {sm_11}\\n\\\ncode { name = k reg = 3 bincode {\\t0x10000001 } }\\n\";",
        "auto k = R\"x(architecture {sm_11}\ncode { name = k reg = 3 bincode { 0x10000001 } }\n)x\";",
        "const char *k[] = { \"architecture {sm_11} code { name = k reg = 3 bincode { 0x10000001 } }\", \"no\" };",
        "load(\"\\x61rchitecture {sm_11}\\12code { name = k reg = 3 bincode { 0x10000001 } }\", 3);",
        "#define K \"architecture {sm_11}\\n\" \\\n \"code { name = k reg = 3 bincode { 0x10000001 } }\"\nconst char *k = K;",
    ] {
        let image = loaded(text, &[]);
        assert_eq!(programs(&image), [("k", &[0x1000_0001][..])], "{text}");
        assert_eq!((image.chip.as_deref(), image.isa), (Some("sm_11"), Some(reconverge_isa::Isa::Tesla)));
        assert_eq!(crate::recognise(text.as_bytes()), Ok(Format::C), "{text}");
    }
    let cut = refused("const char *k = \"architecture {sm_11} code { name = k bincode { 0x1 }\";");
    assert!(cut.contains("in member `k`"), "{cut}");
}

#[test]
fn bytes_in_a_string_are_words_or_what_their_mark_says() {
    check(
        "unsigned char a[] = \"\\x01\\x00\\0\\200\" \"\\2\\0\\0\\x80\";",
        &[],
        &[0x8000_0001, 0x8000_0002],
        &[],
    );
    let error = refused("unsigned char a[] = \"\\x01\\x00\\0\\777\";\n");
    assert!(error.contains("escape sequence"), "{error}");
    // A string of plain text is not an image.
    assert!(refused("char a[] = \"abcd\"; int b[] = {};").contains("missing"));
}

#[test]
fn a_fat_binary_in_an_array_of_long_elements_is_read() {
    let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 0x10, 0];
    let mut member = vec![2, 0, 1, 1, 0x40, 0, 0, 0];
    member.extend((CUBIN.len() as u64).to_le_bytes());
    member.resize(0x1c, 0);
    member.extend(11_u32.to_le_bytes());
    member.resize(0x40, 0);
    member.extend(CUBIN.as_bytes());
    bytes.extend((member.len() as u64).to_le_bytes());
    bytes.extend(member);
    for (kind, width) in [("unsigned long long", 8), ("unsigned char", 1)] {
        let image = load(&dump(kind, "fatbinData", &bytes, width)).unwrap();
        assert_eq!(programs(&image), [("k", &[0x1000_0001][..])], "{kind}");
    }
}

#[test]
fn a_macro_is_not_patched_and_a_function_around_a_number_is() {
    let text = "#define A 1\nu32 a[] = { A, 0x80000000 };";
    let patched = crate::patch(text.as_bytes(), &Hints::default(), 0, 1, &[0x8000_0001]).unwrap_err();
    assert!(patched.to_string().contains("macro"), "{patched}");
    let text = "u32 a[] = { cpu_to_le32(0x80000000) };";
    let patched = crate::patch(text.as_bytes(), &Hints::default(), 0, 0, &[0x8000_0001]).unwrap();
    assert_eq!(String::from_utf8(patched).unwrap(), "u32 a[] = { 0x80000001              };");
}

#[test]
fn the_lists_of_a_structure_are_arrays() {
    let names = |text: &str| {
        let image = load(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let program =
            |program: &reconverge_isa::Program| (program.name.clone().unwrap(), program.words.clone());
        image.programs.iter().map(program).collect::<Vec<_>>()
    };
    let words = [0x203c_u32, 0x9420_0688];
    let one = |name: &str| vec![(name.to_owned(), words.to_vec())];
    for (text, name) in [
        ("static struct shader a = { 5, { 0x203c, 0x94200688 } };", "a"),
        ("struct shader a = { \"vs\", { 0x203c, 0x94200688 } };", "vs"),
        ("struct shader a = { \"a long title\", { 0x203c, 0x94200688, }, };", "a"),
        ("struct shader a = { .name = \"vs\", .n = 3, .code = { 0x203c, 0x94200688 } };", "vs"),
        (
            "static const struct { const char *n; unsigned w[2]; } s = { \"vs\", { 0x203c, 0x94200688 } };",
            "vs",
        ),
        ("shader_t all[] = { [0] = { \"vs\", 1, { 0x203c, 0x94200688 } } };", "vs"),
        ("struct { unsigned w[2]; } s[] = { { { 0x203c, 0x94200688 } }, };", "s"),
        ("struct s a = { { 1, 2, 3 }, { 0x203c, 0x94200688 }, f(1, 2), other };", "a"),
    ] {
        assert_eq!(names(text), one(name), "{text}");
    }
    let two = names(
        "struct s a[] = {\n{ \"vs\", {\n0x0000203c,\n0x94200688 } },\n{ \"ps\", {\n0x0000203c,\n0x94200688 } },\n};",
    );
    assert_eq!(two, [one("vs"), one("ps")].concat());
    let bytes =
        crate::load(b"struct s a = { \"vs\", {\n0x0000203c, 0x94200688,\n} };", &Hints::default()).unwrap();
    assert_eq!((bytes.format, bytes.programs[0].words.as_slice()), (Format::C.name(), words.as_slice()));
}

#[test]
fn a_list_of_a_structure_that_cannot_be_read_is_reported() {
    let error = load("struct s a = { \"vs\", { 0x203c, UNKNOWN, 0x94200688 } };").unwrap_err();
    assert!(error.to_string().contains("UNKNOWN"), "{error}");
    let both = load("struct s a[] = { { { 0x203c, 0x94200688 } }, { { 0x203c, UNKNOWN, 0x94200688 } } };");
    let notes = both.unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("UNKNOWN")), "{notes:?}");
}

#[test]
fn a_source_without_arrays_is_reported_as_c() {
    let error = crate::load(b"int main(void) {\n    return 3;\n}\n", &Hints::default()).unwrap_err();
    assert!(error.to_string().starts_with("an array with machine code is missing"), "{error}");
}
