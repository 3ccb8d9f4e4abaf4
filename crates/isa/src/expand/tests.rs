//! Tests of expanded texts and of the positions of messages.

use super::*;

fn plain(source: &str) -> String {
    with(source, &Given::default())
}

fn with(source: &str, given: &Given) -> String {
    match expand(source, given) {
        Ok(Some(expanded)) => expanded.text,
        Ok(None) => source.to_owned(),
        Err(errors) => panic!("{errors:?}"),
    }
}

fn wrong(source: &str) -> Vec<(usize, String)> {
    match expand(source, &Given::default()) {
        Err(errors) => errors.iter().map(|error| (error.line_column(source).0, error.to_string())).collect(),
        Ok(expanded) => panic!("{expanded:?}"),
    }
}

fn file(name: &str, text: &str) -> Included {
    Included { name: name.to_owned(), text: Ok(text.to_owned()) }
}

#[test]
fn a_listing_has_nothing_to_expand() {
    for text in
        ["", "ADD R0.x, R1.x, R2.x\n.gprs 4\n", "KCACHE0(CB0:0-15)\n  .if\u{e9}\n", ".kernel \"a\\\"b\"\n"]
    {
        assert!(expand(text, &Given::default()).unwrap().is_none(), "{text}");
    }
}

#[test]
fn constants_are_replaced_as_whole_words() {
    let head = ".equ N, 4\n.equ x 8\n.equ HALF, 0.5\n";
    for (line, out) in [
        ("ADD R0.x, N, HALF", "ADD R0.x, 4, 0.5"),
        ("MUL R0.x, R1.x, (HALF*3).x", "MUL R0.x, R1.x, (1.5).x"),
        ("ld b32 $r0 g0[$r2+N*4]", "ld b32 $r0 g0[$r2+16]"),
        ("ld b32 $r0 g0[$r2-N+4]", "ld b32 $r0 g0[$r2-4+4]"),
        ("mov b32 $r0 N - 1", "mov b32 $r0 3"),
        ("set N -1", "set 4 -1"),
        ("f -N*2, ~N", "f -8, -5"),
        ("N: bra N", "N: bra 4"),
        ("NN N_ $N @N .N", "NN N_ $N @N .N"),
        ("KCACHE0(CB0:0-15) ADDR(N)", "KCACHE0(CB0:0-15) ADDR(4)"),
        ("MAD*2.sat temp[N]", "MAD*2.sat temp[4]"),
        ("(lg $c0) x", "(lg $c0) 8"),
        ("R\\(N+1).x \"N\"", "R5.x \"N\""),
        ("a (N+1)*2 (N)", "a 10 (4)"),
        ("a 2*N, 3", "a 8, 3"),
        ("N ; N", "4 ; N"),
        ("\u{e9}N \u{e9} N", "\u{e9}4 \u{e9} 4"),
    ] {
        assert_eq!(plain(&format!("{head}{line}")), format!("{out}\n"), "{line}");
    }
    assert_eq!(plain("\\(2*3)"), "6\n");
}

#[test]
fn an_alias_stands_for_any_text() {
    assert_eq!(
        plain(".equ N 2\n.alias acc, $r\\(N+1)\n.alias sum R4\nadd acc acc\nMUL sum.x, sum.y\n"),
        "add $r3 $r3\nMUL R4.x, R4.y\n"
    );
}

#[test]
fn macros_have_parameters_defaults_and_a_number_of_their_own() {
    let source = ".macro add3 to, a, b=1, c=1\nL\\@: add \\to \\a \\b\nadd \\to \\to \\c\n.endm\nhere: add3 $r0, $r1, (x, y)\nadd3 $r2, $r3,,7\n";
    let out = "here:\nL0: add $r0 $r1 (x, y)\nadd $r0 $r0 1\nL1: add $r2 $r3 1\nadd $r2 $r2 7\n";
    assert_eq!(plain(source), out);
}

#[test]
fn arguments_are_computed_with() {
    let source = ".macro m n\nADD R\\n, \\n*2, (\\n+1)*4, -\\n\nKCACHE0(CB0:0-\\n) \\n\n.endm\nm 3\n";
    assert_eq!(plain(source), "ADD R3, 6, 16, -3\nKCACHE0(CB0:0-3) 3\n");
}

#[test]
fn macros_use_macros_and_conditions_end_them() {
    let source = ".macro down n\n.if \\n > 0\nstep \\n\ndown \\n-1\n.else\ndone\n.endif\n.endm\ndown 3\n";
    assert_eq!(plain(source), "step 3\nstep 2\nstep 1\ndone\n");
}

#[test]
fn lines_are_repeated_with_their_number() {
    assert_eq!(
        plain(".rept 3, i\nMOV R\\i.x, \\(\\i*2)\n.endr\n"),
        "MOV R0.x, 0\nMOV R1.x, 2\nMOV R2.x, 4\n"
    );
    assert_eq!(plain(".rept 2\n.rept 2, j\na\\j\n.endr\n.endr"), "a0\na1\na0\na1\n");
    assert_eq!(plain(".macro m n\n.rept \\n, i\nx\\i \\n\n.endr\n.endm\nm 2"), "x0 2\nx1 2\n");
}

#[test]
fn conditions_choose_lines() {
    let source = ".ifdef N\n.if N == 1\na\n.elif N == 2\nb\n.else\nc\n.endif\n.else\nd\n.endif\n.ifndef N\ne\n.endif\n";
    for (define, out) in [(Some("N"), "a\n"), (Some("N=2"), "b\n"), (Some("N=1+2"), "c\n"), (None, "d\ne\n")]
    {
        let given = Given { defines: define.map(str::to_owned).into_iter().collect(), ..Given::default() };
        assert_eq!(with(source, &given), out, "{define:?}");
    }
    // Skipped lines are not read. But a skipped macro extends to its own `.endm`, so the `.endif` in the macro does not
    // end the `.if`.
    assert_eq!(plain(".if 0\n.macro m\n.endif\n.endm\n.equ X, Y\n.endif\n"), "");
}

#[test]
fn files_are_included_from_the_folder_of_the_file_that_names_them() {
    let source = ".include \"lib/a.inc\"\nuse N\n";
    let (first, second) = (".include \"b.inc\"\n.equ N, M*2\n", ".equ M, 8\nmid\n");
    assert_eq!(included_by(source, ""), ["lib/a.inc"]);
    assert_eq!(included_by(first, "lib/a.inc"), ["lib/b.inc"]);
    assert_eq!(included_by(".include \"/x\"", "lib/a.inc"), ["/x"]);
    let given =
        Given { files: vec![file("lib/a.inc", first), file("lib/b.inc", second)], ..Given::default() };
    assert_eq!(with(source, &given), "mid\nuse 16\n");
}

#[test]
fn errors_have_the_place_of_what_is_wrong() {
    for (source, line, message) in [
        (".equ N", 1, "a number or the name"),
        (".equ N, M", 1, "unknown constant `M`"),
        (".equ N, 1\n.equ N, 2", 2, "already has another value"),
        (".equ 1, 1", 1, "a name is missing"),
        (".equ NUM, 1\n\\(NUN)", 2, "unknown constant `NUN` (did you mean `NUM`"),
        (".endm", 1, "without `.macro`"),
        ("x\n.macro m\n", 2, "has no `.endm`"),
        (".rept 2\n.endm", 1, "has no `.endr`"),
        (".if 1", 1, "has no `.endif`"),
        (".else", 1, "without `.if`"),
        (".if 0\n.else\n.else\n.endif", 3, "after `.else`"),
        (".macro m a\n.endm\nm", 3, "`a` of the macro `m` is missing"),
        (".macro m a\n.endm\nm 1, 2", 3, "has 1 parameter, not 2"),
        (".macro m a\n\\b\n.endm\nm 1", 2, "unknown parameter `\\b`"),
        (".macro m a, a\n.endm", 1, "occurs twice"),
        (".macro m\n.endm\n.macro m\n.endm", 3, "defined twice"),
        (".macro m\nm\n.endm\nm", 2, "nested"),
        (".rept -1\n.endr", 1, "at least 0, found -1"),
        (".rept 2, 3\n.endr", 1, "a name is missing after the comma"),
        (".include \"a\"", 1, "no such file"),
        (".include a", 1, "in quotation marks"),
        (".include \"\"", 1, "in quotation marks"),
        (".rept 100000000\n.rept 1000000000\n.endr\n.endr", 2, "the limit `expansion`"),
        (".alias x", 1, "the text of the alias is missing"),
        (".ifdef", 1, "takes the name"),
    ] {
        let found = wrong(source);
        assert!(found[0].0 == line && found[0].1.contains(message), "{source}: {found:?}");
    }
}

#[test]
fn a_file_that_includes_itself_ends() {
    let given = Given { files: vec![file("a", ".include \"a\"\n")], ..Given::default() };
    let errors = expand(".include \"a\"\n", &given).unwrap_err();
    assert!(errors[0].to_string().contains("nested"), "{errors:?}");
    let given = Given {
        files: vec![Included { name: "a".to_owned(), text: Err("no room".to_owned()) }],
        ..Given::default()
    };
    assert_eq!(expand(".include \"a\"\n", &given).unwrap_err()[0].to_string(), "a: no room");
}

#[test]
fn messages_about_the_plain_text_become_messages_about_the_source() {
    let inc = "\n.macro m a\nbad \\a\n.endm\nworse\n";
    let source = ".equ N, 4\n.include \"a.inc\"\nx N*2, wrong\nm ugly\n";
    let given = Given { files: vec![file("a.inc", inc)], ..Given::default() };
    let expanded = expand(source, &given).unwrap().unwrap();
    assert_eq!(expanded.text, "\nworse\nx 8, wrong\nbad ugly\n");
    let about = |text: &str| {
        let at = expanded.text.find(text).unwrap();
        let found = expanded.in_source(Diagnostic::error(Span::new(at, at + text.len()), "no"));
        let shown = found.text(source)[found.span.start..found.span.end].to_owned();
        (found.place("s", source), shown, found.help.unwrap_or_default(), expanded.offset_in_source(at))
    };
    let line = |number: usize| source.match_indices('\n').nth(number - 2).map_or(0, |(at, _)| at + 1);
    assert_eq!(about("wrong"), ("s:3:8".to_owned(), "wrong".to_owned(), String::new(), line(3) + 7));
    assert_eq!(about("8"), ("s:3:3".to_owned(), "N*2".to_owned(), String::new(), line(3) + 2));
    assert_eq!(
        about("worse"),
        ("a.inc:5:1".to_owned(), "worse".to_owned(), "included in line 2".to_owned(), line(2))
    );
    assert_eq!(
        about("bad"),
        ("a.inc:3:1".to_owned(), "bad".to_owned(), "in the macro `m`, line 4".to_owned(), line(4))
    );
}

#[test]
fn related_places_are_lines_of_the_source() {
    let source = ".rept 2\na: x\n.endr\n";
    let expanded = expand(source, &Given::default()).unwrap().unwrap();
    assert_eq!(expanded.text, "a: x\na: x\n");
    let found =
        expanded.in_source(Diagnostic::error(Span::new(5, 6), "twice").related(Span::new(0, 1), "the first"));
    assert_eq!(found.to_string(), "twice (in lines that are repeated, line 1; the first is in line 2)");
}

#[test]
fn any_text_expands_or_is_refused_with_places_inside_it() {
    let pieces = [
        ".equ N, ",
        "N",
        "\\(",
        ")",
        ".macro m a",
        ".endm",
        "\n",
        "\\a",
        "\\@",
        ".rept 2, i",
        ".endr",
        ".if ",
        ".else",
        ".endif",
        "+",
        "-",
        " ",
        "(",
        "4",
        "é",
        "\"",
        ",",
        ":",
        "m 1",
        ".alias x ",
        "x",
        ";",
        "0.5",
        "<<",
    ];
    let mut state = 1_u32;
    for _ in 0..20_000 {
        let mut source = String::new();
        for _ in 0..state % 24 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            source.push_str(pieces[(state >> 16) as usize % pieces.len()]);
        }
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match expand(&source, &Given::default()) {
            Ok(Some(expanded)) => {
                for (at, character) in expanded.text.char_indices() {
                    let span = Span::new(at, at + character.len_utf8());
                    let found = expanded.in_source(Diagnostic::error(span, ""));
                    assert!(
                        source.get(found.span.start..found.span.end).is_some(),
                        "{source:?} {span:?} {:?}",
                        found.span
                    );
                }
            }
            Ok(None) => {}
            Err(errors) => {
                for error in errors {
                    assert!(source.get(error.span.start..error.span.end).is_some(), "{source:?} {error:?}");
                }
            }
        }
    }
}

#[test]
fn a_text_that_doubles_ends_at_the_limit() {
    let limit = crate::limits::EXPANSION.get();
    let arguments = ".macro m a\nm \\a\\a\n.endm\nm xxxxxxxxxx\n".to_owned();
    let mut aliases = ".alias a0, xxxxxxxxxx\n".to_owned();
    for number in 1..64 {
        aliases += &format!(".alias a{number}, a{before} a{before}\n", before = number - 1);
    }
    let wide = format!(".alias a, {}\n{}\n", "x".repeat(1 << 16), "a ".repeat(1 << 16));
    for text in [arguments, aliases, wide] {
        let (expanded, errors) = expand_partly(&text, &Given::default());
        assert!(expanded.text.len() as u64 <= limit);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].message.contains("limit `expansion`"), "{errors:?}");
    }
}

#[test]
fn a_byte_order_mark_belongs_to_no_line() {
    assert_eq!(plain("\u{feff}.equ N, 4\nADD N\n"), "ADD 4\n");
}
