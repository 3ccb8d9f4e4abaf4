//! The queries of an editor, each about a short text.

use reconverge_isa::{Isa, Span};
use reconverge_language::{
    Analysis, ChosenBy, Colour, HintSort, MarkerLevel, NameSort, ProposalSort, Settings, TargetHint, changed,
};

const ODD: &str = "\
.isa tesla
.equ N, 4
.equ M, N*2
.alias acc, $r2
.kernel side
    mov b32 acc 0x64 ; 100
odd:
    add b32 acc acc M
    (lg $c0) bra odd
    exit nop
.kernel other
odd: exit nop
";

fn analysis(text: &str) -> Analysis {
    Analysis::new(text, &Settings::default(), &mut |name| match name {
        "lib.inc" => Ok(b".equ OUTER, 7\n.macro twice a\nadd b32 \\a \\a \\a\n.endm\n".to_vec()),
        "bad.inc" => Ok(b"nop\nwrong here\n".to_vec()),
        _ => Err("no such file".to_owned()),
    })
}

fn errors(text: &str) -> Vec<(String, String)> {
    let analysis = analysis(text);
    let errors = analysis.markers().into_iter().filter(|marker| marker.level == MarkerLevel::Error);
    errors.map(|marker| (text[marker.span.start..marker.span.end].to_owned(), marker.message)).collect()
}

/// Returns the text without its `|`, and the position of the `|`.
fn cursor(text: &str) -> (String, usize) {
    let at = text.find('|').expect("a cursor");
    (text.replacen('|', "", 1), at)
}

fn proposals(text: &str) -> Vec<(ProposalSort, String)> {
    let (text, at) = cursor(text);
    analysis(&text).complete(at).into_iter().map(|proposal| (proposal.sort, proposal.text)).collect()
}

fn proposes(text: &str, sort: ProposalSort, word: &str) {
    let found = proposals(text);
    assert!(found.contains(&(sort, word.to_owned())), "{text}: no {word}: {found:?}");
}

#[test]
fn all_errors_of_a_text_are_found_each_at_its_word() {
    let text = ".isa tesla\nmovv b32 $r0 1\nadd b32 $r0 $r0\nbra nowhere\nexit nop\n";
    let found: Vec<String> = errors(text).into_iter().map(|(word, _)| word).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!((found[0].as_str(), found[2].as_str()), ("movv", "nowhere"));
}

#[test]
fn errors_of_constants_and_of_instructions_are_found_in_one_run() {
    let text = ".isa tesla\n.equ N, M\nmovv b32 $r0 1\n";
    let found = errors(text);
    assert!(found.iter().any(|(_, message)| message.contains("unknown constant `M`")), "{found:?}");
    assert!(found.iter().any(|(word, _)| word == "movv"), "{found:?}");
}

#[test]
fn a_misspelled_word_has_a_remedy_on_every_machine() {
    for (text, old, new) in [
        (".isa tesla\nmovv b32 $r0 1\nexit nop\n", "movv", "mov"),
        (".isa tesla\nodd: nop\nbra odde\n", "odde", "odd"),
        (".isa r500\nOUTT nop\n", "OUTT", "OUT"),
        (".isa r700\nALU:\n 0 x: MULL R0.x, R1.x, R2.x\n", "MULL", "MUL"),
        (".isa r700\n@out: JUMP: ADDR(@outt)\nNOP:\n", "outt", "out"),
        (".isa r700\n.gprz 4\nNOP:\n", "gprz", "gprs"),
        (".isa tesla\nmul f32 $r1 $r0 2\nexit nop\n", "2", "2.0"),
        (".isa r700\n.gprs 1\nALU:\n 0 x: MOV R3.x, R0.x\nNOP: END_OF_PROGRAM\n", ".gprs 1", ".gprs 4"),
    ] {
        let analysis = analysis(text);
        let remedies = analysis.remedies(Span::new(0, text.len()));
        let remedy = remedies.iter().find(|remedy| &text[remedy.span.start..remedy.span.end] == old);
        let remedy = remedy.unwrap_or_else(|| panic!("{text}: {remedies:?} {:?}", analysis.markers()));
        assert_eq!(remedy.text, new, "{text}");
    }
}

#[test]
fn findings_of_rules_have_the_place_of_their_instruction() {
    let text = ".isa r700\n.stage pixel\n.gprs 3\nALU:\n    0 x: ADD R2.x, R0.x, R0.y\n      t: RECIP_IEEE R2.x, R0.x\nEXPORT_DONE: PIXEL[0], R2.xxxx END_OF_PROGRAM\n";
    let analysis = analysis(text);
    let rules: Vec<_> = analysis.markers().into_iter().filter(|marker| marker.rule.is_some()).collect();
    let marker = rules.first().expect("two instructions of a group write one register");
    assert!(text[marker.span.start..marker.span.end].contains("R2.x"), "{marker:?}");
    assert!(marker.message.contains("\nrule: ") && marker.message.contains("\nfix: "), "{marker:?}");
}

#[test]
fn an_error_in_an_included_file_is_at_the_line_that_includes_it() {
    let text = ".isa tesla\n.include \"bad.inc\"\nexit nop\n";
    let analysis = analysis(text);
    let marker = &analysis.markers()[0];
    assert_eq!(&text[marker.span.start..marker.span.end], ".include \"bad.inc\"");
    assert_eq!(marker.related[0].0.file.as_deref(), Some("bad.inc"));
    assert_eq!(marker.related[0].0.span.start, 4);
    let missing = self::analysis(".isa tesla\n.include \"none.inc\"\n").markers();
    assert!(missing[0].message.contains("no such file"), "{missing:?}");
}

#[test]
fn the_machine_is_stated_or_the_one_with_the_fewest_errors() {
    let with = |text: &str, launch: Option<Isa>, fallback: Option<Isa>| {
        let hint = |isa: Option<Isa>| TargetHint { isa, ..TargetHint::default() };
        let settings = Settings { launch: hint(launch), fallback: hint(fallback), ..Settings::default() };
        let analysis = Analysis::new(text, &settings, &mut |_| Err(String::new()));
        (analysis.isa(), analysis.chosen_by())
    };
    assert_eq!(with(".isa r500\n", Some(Isa::R700), None), (Isa::R500, ChosenBy::Source));
    assert_eq!(with("nop\n", Some(Isa::R700), Some(Isa::Tesla)), (Isa::R700, ChosenBy::Launch));
    assert_eq!(with("nop\n", None, Some(Isa::R500)), (Isa::R500, ChosenBy::Setting));
    assert_eq!(with("mov b32 $r0 0x1\nexit nop\n", None, None), (Isa::Tesla, ChosenBy::Fewest));
    assert_eq!(with("OUT nop\n", None, None), (Isa::R500, ChosenBy::Fewest));
    assert_eq!(with("ALU:\n 0 x: MOV R0.x, R1.x\n", None, None), (Isa::R700, ChosenBy::Fewest));
    let text = "mov b32 $r0 0x1\nexit nop\n";
    let guessed = analysis(text);
    let remedy = &guessed.remedies(Span::default())[0];
    assert_eq!((remedy.span, remedy.text.as_str()), (Span::default(), ".isa tesla\n"));
    assert_eq!(TargetHint::of_launch("isa = \"r700\"\nchip = \"rv610\"\n").chip.as_deref(), Some("rv610"));
}

#[test]
fn a_hover_explains_the_instruction_with_its_fields() {
    let analysis = analysis(ODD);
    let hover = analysis.hover(ODD.find("bra odd").unwrap()).unwrap();
    for part in ["bra", "address 0x10", "| word | bits | field |", "tesla.md"] {
        assert!(hover.markdown.contains(part), "{part}: {}", hover.markdown);
    }
    assert_eq!(&ODD[hover.span.start..hover.span.end], "(lg $c0) bra odd");
    // An error elsewhere does not remove the explanation.
    let text = format!("{ODD}wrong\n");
    assert!(self::analysis(&text).hover(ODD.find("bra odd").unwrap()).unwrap().markdown.contains("| bits |"));
}

#[test]
fn each_slot_of_a_group_is_explained_as_itself() {
    let text = ".isa r700\nALU:\n    0 x: MUL R0.x, R1.x, R2.x\n      y: ADD R0.y, R1.y, R2.y\n    1 x: MOV R0.x, R0.y\nTEX:\n    SAMPLE R0.xyzw, R1.xyzw, t0, s0\n";
    let analysis = analysis(text);
    for (word, other) in [("MUL", "ADD"), ("ADD", "MOV"), ("MOV", "ADD"), ("SAMPLE", "MUL")] {
        let hover = analysis.hover(text.find(word).unwrap()).unwrap().markdown;
        let first = hover.lines().nth(1).unwrap();
        assert!(first.contains(word) && !first.contains(other), "{word}: {hover}");
    }
}

#[test]
fn a_hover_on_a_name_shows_what_it_stands_for() {
    let analysis = analysis(ODD);
    let at = |text: &str| analysis.hover(ODD.find(text).unwrap()).unwrap().markdown;
    assert!(at("M\n    (lg").contains("M = 8"));
    assert!(at("acc 0x64").contains(".alias acc, $r2"));
    assert!(at("odd:").contains("odd: address 0x8"), "{}", at("odd:"));
    assert!(at(".alias").contains(".alias NAME, TEXT"));
    assert!(analysis.hover(ODD.find("100").unwrap()).is_none());
    let text = ".isa tesla\n.include \"lib.inc\"\n    twice $r1\n    exit nop\n";
    let included = self::analysis(text);
    assert!(included.hover(text.find("twice").unwrap()).unwrap().markdown.contains(".macro twice a"));
    assert!(included.hover(text.find("$r1").unwrap()).unwrap().markdown.contains("add b32 $r1 $r1 $r1"));
}

#[test]
fn completion_proposes_what_fits_at_the_place() {
    use ProposalSort::*;
    proposes(".isa tesla\n    ad|", Mnemonic, "add");
    proposes(".isa tesla\n.|", Directive, ".kernel");
    proposes(".isa tesla\n.|", Directive, ".macro");
    proposes(".isa tesla\n.chip |", Word, "G80");
    proposes(".isa r700\n.stage |", Word, "vertex");
    proposes(".isa |tesla\n", Word, "tesla");
    proposes(".isa tesla\n    add b32 $r0 $r0 |", Register, "$r1");
    proposes(".isa tesla\n    add |", Word, "b32");
    proposes(".isa tesla\nodd: nop\n    bra |", Name(NameSort::Label), "odd");
    proposes(".isa tesla\n.equ N, 4\n    mov b32 $r0 |", Name(NameSort::Constant), "N");
    proposes(".isa tesla\n.macro m a\n    mov b32 \\|\n.endm\n", Name(NameSort::MacroParameter), "a");
    proposes(".isa tesla\n.macro twice\nnop\n.endm\n    tw|", Name(NameSort::Macro), "twice");
    proposes(
        ".isa tesla\n.param s[0x10] 4 count\n    mov b32 $r0 b32 s[|",
        Name(NameSort::Parameter),
        "count",
    );
    proposes(".isa r700\nJU|", Mnemonic, "JUMP:");
    proposes(".isa r700\nALU:\n    0 x: M|", Mnemonic, "MUL");
    proposes(".isa r700\nALU:\n    0 x: MUL R0.x, |", Register, "R1");
    proposes(".isa r700\nALU:\n    0 x: MUL R0.x, R1.x, R2.x |", Word, "OMOD(M2)");
    proposes(".isa r700\n@out: JUMP: ADDR(@|", Name(NameSort::Label), "out");
    proposes(".isa r500\nALU temp[0].rgb = M|", Mnemonic, "MAD");
    proposes(".isa r500\nAL|", Mnemonic, "ALU");
    proposes(".isa r500\nOUT out[A].rgb = MAD |", Register, "temp[0]");
    for nothing in [".isa tesla\n; a|", ".include \"a|", ".isa r700\nALU:\n 0 x: MUL R0.|"] {
        assert!(proposals(nothing).is_empty(), "{nothing}");
    }
    let heads = proposals(".isa r500\nM|");
    assert!(!heads.contains(&(Mnemonic, "MAD".to_owned())), "an operation does not begin a line");
}

#[test]
fn registers_labels_and_constants_that_are_proposed_assemble() {
    let text = ".isa tesla\n.equ N, 4\n.alias acc, $r3\nodd: nop\n    add b32 $r0 $r1 |\n    exit nop\n";
    let (source, at) = cursor(text);
    let mut tried = 0;
    for proposal in analysis(&source).complete(at) {
        let fits = match proposal.sort {
            ProposalSort::Register => {
                proposal.text.starts_with("$r")
                    && proposal.text.bytes().skip(2).all(|byte| byte.is_ascii_digit())
            }
            ProposalSort::Name(_) => true,
            _ => false,
        };
        if fits {
            let new = format!(
                "{}{}{}",
                &source[..proposal.span.start],
                proposal.text,
                &source[proposal.span.end..]
            );
            assert!(analysis(&new).is_complete(), "{proposal:?}: {:?}", analysis(&new).markers());
            tried += 1;
        }
    }
    assert!(tried >= 5, "{tried}");
}

#[test]
fn a_definition_is_found_from_each_use_and_labels_belong_to_their_program() {
    let analysis = analysis(ODD);
    let place = analysis.definition(ODD.find("bra odd").unwrap() + 5).unwrap();
    assert_eq!((place.file, place.span.start), (None, ODD.find("odd:").unwrap()));
    assert_eq!(analysis.references(ODD.find("odd:").unwrap(), true).len(), 2);
    assert_eq!(analysis.references(ODD.rfind("odd:").unwrap(), true).len(), 1);
    assert_eq!(analysis.references(ODD.find("acc").unwrap(), false).len(), 3);
    let text = ".isa tesla\n.include \"lib.inc\"\n    mov b32 $r0 OUTER\n";
    let included = self::analysis(text);
    let place = included.definition(text.find("OUTER").unwrap()).unwrap();
    assert_eq!((place.file.as_deref(), place.span), (Some("lib.inc"), Span::new(5, 10)));
    assert_eq!(included.definition(text.find("lib").unwrap()).unwrap().file.as_deref(), Some("lib.inc"));
    assert!(included.included_text("lib.inc").unwrap().starts_with(".equ OUTER"));
}

#[test]
fn renaming_changes_all_uses_and_refuses_what_would_change_the_programs() {
    let analysis = analysis(ODD);
    let renamed = |of: &str, name: &str| analysis.rename(ODD.find(of).unwrap(), name);
    let new = changed(ODD, &renamed("odd:", "even").unwrap());
    assert!(new.contains("even:\n") && new.contains("bra even") && new.contains("odd: exit nop"), "{new}");
    let new = changed(ODD, &renamed("N,", "WIDTH").unwrap());
    assert!(new.contains(".equ WIDTH, 4") && new.contains("WIDTH*2"), "{new}");
    for (of, name, why) in [
        ("odd:", "acc", "`acc` is in use (alias)"),
        ("odd:", "1a", "is not a name"),
        ("N,", "add", "in use (mnemonic)"),
        ("side", "x", "cannot be renamed"),
        ("0x64", "x", "expected a name"),
    ] {
        let error = renamed(of, name).unwrap_err().to_string();
        assert!(error.contains(why), "{of}: {error}");
    }
    let text = ".isa tesla\n.include \"lib.inc\"\n    mov b32 $r0 OUTER\n";
    let error = self::analysis(text).rename(text.find("OUTER").unwrap(), "X").unwrap_err().to_string();
    assert!(error.contains("lib.inc"), "{error}");
    // A constant named `b32` would replace the type.
    let error = renamed("N,", "b32").unwrap_err().to_string();
    assert!(error.contains("would change the programs"), "{error}");
}

#[test]
fn parameters_of_macros_are_renamed_within_their_macro() {
    let text = ".isa tesla\n.macro m a, b=1\nadd b32 \\a \\a \\b\n.endm\n.macro n a\nmov b32 \\a 1\n.endm\n    m $r0\n    n $r1\n    exit nop\n";
    let new = changed(text, &analysis(text).rename(text.find("\\a").unwrap() + 1, "to").unwrap());
    assert!(
        new.contains(".macro m to, b=1\nadd b32 \\to \\to \\b") && new.contains(".macro n a\nmov b32 \\a 1"),
        "{new}"
    );
}

#[test]
fn the_outline_has_programs_with_their_labels() {
    let outline = analysis(ODD).outline();
    let names: Vec<(&str, usize)> =
        outline.iter().map(|entry| (entry.name.as_str(), entry.inside.len())).collect();
    assert_eq!(names, [("N", 0), ("M", 0), ("acc", 0), ("side", 1), ("other", 1)]);
}

#[test]
fn blocks_clauses_programs_and_comments_fold() {
    let folds = |text: &str| {
        analysis(text).folds().into_iter().map(|fold| (fold.first, fold.last)).collect::<Vec<_>>()
    };
    assert_eq!(
        folds(".isa tesla\n; one\n; two\n.macro m\nnop\n.endm\n.if 1\nnop\n.else\nnop\n.endif\n"),
        [(1, 2), (3, 5), (6, 7), (8, 10)]
    );
    assert_eq!(folds(".isa r700\nALU:\n 0 x: MOV R0.x, R1.x\n   y: MOV R0.y, R1.x\nNOP:\n"), [(1, 3)]);
    let r500 = ".isa r500\n.program a\nif alu\nOUT nop\nelse\nOUT nop\nendif\n.program b\nOUT nop\n";
    assert_eq!(folds(r500), [(1, 6), (2, 3), (4, 6), (7, 8)]);
}

#[test]
fn hints_show_addresses_words_and_values() {
    let analysis = analysis(ODD);
    let hints = analysis.hints(Span::new(0, ODD.len()));
    let of = |sort| {
        hints.iter().filter(|hint| hint.sort == sort).map(|hint| hint.text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(HintSort::Address), ["0x0", "0x8", "0x10", "0x18", "0x0"]);
    assert_eq!(of(HintSort::Words).len(), 5);
    assert_eq!(of(HintSort::Value), ["= 8", "= 8"]);
    let wrong = format!("{ODD}wrong\n");
    let hints = self::analysis(&wrong).hints(Span::new(0, wrong.len()));
    assert!(
        hints.iter().all(|hint| hint.sort != HintSort::Address)
            && hints.iter().any(|hint| hint.sort == HintSort::Words)
    );
}

#[test]
fn each_part_of_a_line_has_its_colour() {
    let colour = |text: &str, word: &str| {
        let at = text.find(word).unwrap();
        analysis(text)
            .colours(Span::new(0, text.len()))
            .into_iter()
            .find(|part| part.span.start == at)
            .map(|part| part.colour)
    };
    for (word, expected) in [
        (".equ", Colour::Directive),
        ("N,", Colour::Constant),
        ("acc", Colour::Alias),
        ("$r2", Colour::Register),
        ("mov", Colour::Mnemonic),
        ("b32", Colour::Modifier),
        ("0x64", Colour::Number),
        ("; 100", Colour::Comment),
        ("odd:", Colour::Label),
        ("side", Colour::Text),
    ] {
        assert_eq!(colour(ODD, word), Some(expected), "{word}");
    }
    let r700 = ".isa r700\nALU:\n 0 x: MUL R0.x, R1.x, R2.x CLAMP\n";
    assert_eq!(colour(r700, "R1"), Some(Colour::Register));
    assert_eq!(colour(r700, "CLAMP"), Some(Colour::Modifier));
    let r500 = ".isa r500\nOUT out[A].rgb = MAD src0.rgb, src0.rgb, src0.rgb : src0=temp[0]\n";
    assert_eq!(colour(r500, "temp"), Some(Colour::Register));
}

#[test]
fn a_layout_has_indented_instructions_and_comments_in_columns() {
    let laid_out = |text: &str| changed(text, &analysis(text).format());
    assert_eq!(
        laid_out(".isa tesla\nodd:  nop ;a\n  mov   b32 $r0 0x1  ; b\n ; alone\nexit nop  \n"),
        ".isa tesla\nodd: nop             ;a\n    mov b32 $r0 0x1  ; b\n    ; alone\n    exit nop\n"
    );
    assert_eq!(
        laid_out(".isa r700\n  ALU:\n0 x: MUL   R0.x, R1.x, R2.x\ny: MULADD R0.y, R1.x, R2.x, R3.x\nNOP:\n"),
        ".isa r700\nALU:\n    0 x: MUL    R0.x, R1.x, R2.x\n      y: MULADD R0.y, R1.x, R2.x, R3.x\nNOP:\n"
    );
    assert_eq!(
        laid_out(
            ".isa r500\nif alu\nALU nop\n+ temp[0].a = MAD src0.0, src0.0, src0.0\nelse\nOUT nop\nendif\n"
        ),
        ".isa r500\nif alu\n    ALU nop\n      + temp[0].a = MAD src0.0, src0.0, src0.0\nelse\n    OUT nop\nendif\n"
    );
}

#[test]
fn a_text_with_many_errors_has_a_bounded_number_of_messages() {
    let text = format!(".isa tesla\n{}", "foo bar\n".repeat(3000));
    let analysis = analysis(&text);
    let markers = analysis.markers();
    assert_eq!(markers.len(), 1001);
    let last = markers.last().expect("the last");
    assert!(last.message.starts_with("2000 more errors are not shown"), "{last:?}");
    assert_eq!(last.level, MarkerLevel::Note);
}

#[test]
fn a_long_line_has_colours_and_positions_in_linear_time() {
    for line in [format!("mov b32 $r0 {}", "0x1 ".repeat(50_000)), "\"".repeat(99_999)] {
        let analysis = analysis(&format!(".isa tesla\n{line}\n"));
        assert!(analysis.colours(Span::new(0, analysis.text().len())).len() > 10_000);
        assert!(!analysis.markers().is_empty());
    }
}

#[test]
fn a_text_for_another_processor_is_judged_within_a_second() {
    let text =
        format!(".isa tesla\n{}", "push rbp\nlea rax, [rip+4]\ncall foo@PLT\nxorps xmm0, xmm0\n".repeat(500));
    let before = std::time::Instant::now();
    assert!(analysis(&text).markers().len() > 900);
    assert!(before.elapsed().as_millis() < 1000, "{:?}", before.elapsed());
    eprintln!("{:?}", before.elapsed());
}

#[test]
fn many_remedies_are_tried_together() {
    let text = format!(".isa tesla\n.kernel a\n{}", "    movv b32 $r0 $r1\n".repeat(300));
    let analysis = analysis(&text);
    let before = std::time::Instant::now();
    let remedies = analysis.remedies(Span::new(0, text.len()));
    assert_eq!(remedies.len(), 64);
    // One by one, they took a minute.
    assert!(before.elapsed().as_secs() < 10, "{:?}", before.elapsed());
    assert_eq!(analysis.remedies(Span::new(0, text.len())), remedies);
}

#[test]
fn the_only_label_is_no_remedy_for_another_name() {
    let text = ".isa tesla\nx: bra y\nexit nop\n";
    assert_eq!(analysis(text).remedies(Span::new(0, text.len())), []);
    let text = ".isa tesla\nodd: bra od\nexit nop\n";
    assert_eq!(analysis(text).remedies(Span::new(0, text.len()))[0].text, "odd");
}

#[test]
fn a_word_has_a_remedy_although_its_line_has_another_error() {
    for (text, old, new) in [
        (".isa tesla\n movv b32 $r0 foo\nexit nop\n", "movv", "mov"),
        (".isa r700\nALU:\n 0 y: MOVE R0.y, R1.x\n", "MOVE", "MOV"),
        (".isa r500\nOUT temp[0].rgb = MADD src0.rgb, src0.rgb, src0.rgb : src0=temp[0]\n", "MADD", "MAD"),
    ] {
        let found = analysis(text).remedies(Span::new(0, text.len()));
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|remedy| (&text[remedy.span.start..remedy.span.end], remedy.text.as_str()))
            .collect();
        assert!(found.contains(&(old, new)), "{text}: {found:?} {:?}", errors(text));
    }
}

#[test]
fn a_text_for_no_machine_has_one_hint() {
    let text = "push rbp\nlea rax, [rip+4]\ncall foo@PLT\nxorps xmm0, xmm0\nret\n".repeat(50);
    let markers = analysis(&text).markers();
    assert_eq!(markers.len(), 1, "{markers:?}");
    assert!(markers[0].level == MarkerLevel::Hint && markers[0].message.contains(".isa tesla"));
    // With the machine stated, every line is judged.
    assert!(errors(&format!(".isa tesla\n{text}")).len() >= 200);
}

#[test]
fn an_empty_text_proposes_the_machines() {
    let texts: Vec<String> = proposals("|").into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [".isa r500\n", ".isa r700\n", ".isa tesla\n"]);
}

#[test]
fn completion_proposes_words_of_the_language_only_where_they_may_stand() {
    let words = |text: &str| proposals(text).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    for text in [".isa tesla\n    mov |", ".isa tesla\n    add b32 $r0 $r1 $r2 |"] {
        let found = words(text);
        assert!(!found.iter().any(|word| matches!(word.as_str(), "of" | "source" | "kind")), "{found:?}");
    }
    let found = words(".isa tesla\n    add b32 $r0 |");
    assert_eq!(found[0], "$r0", "{found:?}");
    assert!(
        !found.iter().any(|word| matches!(word.as_str(), "short" | "sat" | "never" | "cc20")),
        "{found:?}"
    );
    let found = words(".isa tesla\n    mov b32 $r0 g14[|");
    assert!(found.iter().all(|word| word.starts_with('$')), "{found:?}");
    // A mnemonic has its examples after the space too.
    assert!(proposals(".isa tesla\n    mov |").iter().any(|(sort, _)| *sort == ProposalSort::Form));
}

#[test]
fn a_message_names_the_place_in_an_included_file() {
    let markers = analysis(".isa tesla\nexit nop\n.include \"bad.inc\"\n").markers();
    let message = &markers[0].message;
    assert!(message.starts_with("bad.inc:2: ") && message.ends_with("included in line 3"), "{message}");
}

#[test]
fn messages_about_machines_chips_and_labels_of_others_say_so() {
    let message = |text: &str| errors(text).into_iter().map(|(_, message)| message).collect::<Vec<_>>();
    let found = message(".isa tesla\n.chip RV770\nnop\n");
    assert!(found[0].contains("it is a chip of r700"), "{found:?}");
    let found = message(".isa tesla\n.kernel a\nx: exit nop\n.kernel b\nbra x\nexit nop\n");
    assert!(found[0].ends_with("`x` in line 3 is a label of another program"), "{found:?}");
    let all = analysis(".isa tesl\nmov b32 $r0 0x1\nexit nop\n").markers();
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].message.contains("did you mean `tesla`?"), "{all:?}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    for text in
        ["\u{feff}.isa tesla\nexit nop\n", "\u{feff}.isa r500\nOUT nop\n", "\u{feff}.isa r700\nNOP:\n"]
    {
        let analysis = analysis(text);
        assert!(analysis.is_complete(), "{text}: {:?}", analysis.markers());
        assert_eq!(analysis.chosen_by(), ChosenBy::Source);
    }
}

#[test]
fn a_hover_has_the_meaning_before_the_fields_and_no_spare_ones() {
    let text = ".isa tesla\n    add b32 $r2 $r2 $r0\n    exit nop\n";
    let shown = analysis(text).hover(text.find("$r0").unwrap()).unwrap().markdown;
    assert!(shown.starts_with("`$r0`: a general register"), "{shown}");
    assert!(
        !shown.contains("spare") && !shown.contains("not used by") && !shown.contains("opcode"),
        "{shown}"
    );
    assert!(shown.find("modulo").unwrap() < shown.find("address").unwrap(), "{shown}");
}

#[test]
fn the_layout_of_a_source_stays_where_it_is_consistent() {
    for text in [
        ".isa r700\nALU:\n    0 x: MUL R0.x, R1.x, R2.x\n    1 y: MULADD R0.y, R1.x, R2.x, R3.x\nNOP:\n",
        ".isa r700\nALU:\n  x: MUL R0.x, R0.x, R0.x\nNOP:\n",
        ".isa r500\n.const 0   1.0 2.0   3.0 4.0\nOUT nop\n",
    ] {
        assert_eq!(analysis(text).format(), [], "{text}");
    }
}

#[test]
fn no_space_stands_before_a_comma() {
    let text = ".isa tesla\n.macro m a, b\n    mov b32 \\a \\b\n.endm\n    m $r0 , $r1\n    exit nop\n";
    assert_eq!(changed(text, &analysis(text).format()), text.replace(" ,", ","));
}
