//! Properties of any text: queries do not panic, and changes preserve the programs.

mod programs;

use programs::{Sample, samples};
use reconverge_isa::{Isa, Span};
use reconverge_language::{
    Analysis, Colour, MarkerLevel, NameSort, ProposalSort, Settings, TargetHint, changed,
};
use reconverge_testkit::{Random, shared};
use reconverge_workbench::{Known, Style, Target, machine, open};

/// Returns the words of a text's programs, or `None` if it does not assemble.
fn words(sample: &Sample, text: &str) -> Option<Vec<Vec<u32>>> {
    let hints = [&sample.settings.launch, &sample.settings.fallback];
    let isa = hints.iter().find_map(|hint| hint.isa);
    let read = |name: &str| std::fs::read(sample.folder.join(name)).map_err(|error| error.to_string());
    let known = Known { isa, stage: sample.settings.launch.stage, ..Known::default() };
    let known = known.with_included(text.as_bytes(), &mut |name| read(name));
    let opened = open(text.as_bytes(), true, &known).ok()?;
    Some(opened.image.programs.into_iter().map(|program| program.words).collect())
}

/// Runs every query that concerns the whole text.
fn ask_all(analysis: &Analysis) {
    let text = analysis.text();
    let whole = Span::new(0, text.len());
    let inside = |span: Span| assert!(text.get(span.start..span.end).is_some(), "{span:?} in {text:?}");
    analysis.markers().iter().for_each(|marker| inside(marker.span));
    analysis.outline().iter().for_each(|entry| inside(entry.span));
    analysis.hints(whole).iter().for_each(|hint| inside(Span::new(hint.at, hint.at)));
    let mut end = 0;
    for part in analysis.colours(whole) {
        inside(part.span);
        assert!(part.span.start >= end && Colour::ALL.contains(&part.colour), "{part:?} in {text:?}");
        end = part.span.end;
    }
    let lines = analysis.lines().count();
    assert!(analysis.folds().iter().all(|fold| fold.first < fold.last && fold.last < lines), "{text:?}");
    analysis.format().iter().for_each(|change| inside(change.span));
}

/// Runs every query that concerns a position.
fn ask_at(analysis: &Analysis, offset: usize) {
    analysis.hover(offset);
    analysis.complete(offset);
    analysis.definition(offset);
    analysis.references(offset, true);
    analysis.highlights(offset);
    let _ = analysis.rename(offset, "renamed_1");
}

/// Returns one short sample of each machine, with macros if there is one.
fn short() -> Vec<Sample> {
    let mut found: Vec<Sample> = Vec::new();
    for isa in Isa::ALL {
        let of_isa = samples().into_iter().filter(|sample| sample.analysis().isa() == isa);
        let fits = |sample: &Sample| (200..1500).contains(&sample.text.len());
        found.extend(
            of_isa.filter(fits).max_by_key(|sample| (sample.text.contains(".equ"), sample.text.len())),
        );
    }
    assert_eq!(found.len(), 3);
    found
}

#[test]
fn every_prefix_has_answers() {
    for sample in short() {
        for (end, _) in sample.text.char_indices() {
            let analysis = sample.with(&sample.text[..end]);
            ask_all(&analysis);
            analysis.complete(end);
            analysis.hover(end);
        }
    }
}

#[test]
fn every_place_has_answers() {
    for sample in short() {
        let analysis = sample.analysis();
        (0..=sample.text.len() + 1).for_each(|offset| ask_at(&analysis, offset));
    }
}

#[test]
fn damaged_texts_have_answers() {
    let pieces = [
        "\"",
        ".macro m a\n",
        ".endm\n",
        "\\a",
        "@",
        ":",
        "\u{e9}",
        "\r\n",
        ".if",
        "(",
        "N",
        ".program\n",
        "\t",
        "/*",
        ";",
    ];
    let mut random = Random::new(5);
    for sample in samples() {
        for _ in 0..6 {
            let mut text = sample.text.clone();
            for _ in 0..4 {
                let mut at = random.next() as usize % (text.len() + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                match random.next() % 3 {
                    0 => text.insert_str(at, pieces[random.next() as usize % pieces.len()]),
                    1 => text.truncate(at.max(text.len() / 2).min(text.len())),
                    _ if at < text.len() => drop(text.remove(at)),
                    _ => {}
                }
                while !text.is_char_boundary(text.len()) {
                    text.pop();
                }
            }
            let analysis = sample.with(&text);
            ask_all(&analysis);
            ask_at(&analysis, random.next() as usize % (text.len() + 1));
        }
    }
}

#[test]
fn samples_have_no_errors_and_all_places_have_answers() {
    for sample in samples() {
        let analysis = sample.analysis();
        ask_all(&analysis);
        if words(&sample, &sample.text).is_some() {
            let errors: Vec<_> = analysis
                .markers()
                .into_iter()
                .filter(|marker| marker.level == MarkerLevel::Error && marker.rule.is_none())
                .collect();
            assert!(errors.is_empty(), "{}: {errors:?}", sample.name);
        }
        (0..sample.text.len()).step_by(23).for_each(|offset| ask_at(&analysis, offset));
    }
}

#[test]
fn a_layout_keeps_the_words_and_has_nothing_more_to_change() {
    let mut laid_out = 0;
    for sample in samples() {
        let Some(before) = words(&sample, &sample.text) else { continue };
        // The same text with other spaces at the starts of lines and between words.
        let wide: String =
            sample.text.lines().map(|line| format!("\t {}  \n", line.replace(' ', "  "))).collect();
        let wide = if sample.text.contains('"') || words(&sample, &wide).as_ref() != Some(&before) {
            sample.text.clone()
        } else {
            wide
        };
        for text in [&sample.text, &wide] {
            let analysis = sample.with(text);
            let new = changed(text, &analysis.format());
            assert_eq!(words(&sample, &new).as_ref(), Some(&before), "{}\n{new}", sample.name);
            let again = sample.with(&new).format();
            assert!(again.is_empty(), "{}: {again:?}\n{new}", sample.name);
            laid_out += usize::from(new != *text);
        }
    }
    assert!(laid_out > 40, "{laid_out}");
}

#[test]
fn a_renamed_source_has_the_same_words() {
    let mut renamed = 0;
    for sample in samples() {
        let Some(before) = words(&sample, &sample.text) else { continue };
        let analysis = sample.analysis();
        for entry in
            analysis.outline().into_iter().flat_map(|entry| [vec![entry.clone()], entry.inside].concat())
        {
            if entry.sort == NameSort::Program {
                continue;
            }
            match analysis.rename(entry.span.start, "renamed_1") {
                Ok(changes) => {
                    let new = changed(&sample.text, &changes);
                    assert_eq!(
                        words(&sample, &new).as_ref(),
                        Some(&before),
                        "{}: {}",
                        sample.name,
                        entry.name
                    );
                    assert!(!changes.is_empty());
                    renamed += 1;
                }
                Err(error) => panic!("{}: {}: {error}", sample.name, entry.name),
            }
        }
    }
    assert!(renamed > 60, "{renamed}");
}

#[test]
fn the_forms_that_are_proposed_assemble() {
    for isa in Isa::ALL {
        let target = Target::of(isa);
        let mut forms = 0;
        for mnemonic in machine(isa).mnemonics() {
            let settings = Settings { fallback: TargetHint::of(isa), ..Settings::default() };
            let analysis = Analysis::new(mnemonic, &settings, &mut |_| Err(String::new()));
            for proposal in analysis.complete(mnemonic.len()) {
                if proposal.sort != ProposalSort::Form {
                    continue;
                }
                forms += 1;
                let vertex = Target { stage: Some(reconverge_isa::program::Stage::Vertex), ..target.clone() };
                let chips = reconverge_workbench::target::chips(isa);
                let mut targets = vec![target.clone(), vertex];
                for chip in chips {
                    for stage in reconverge_isa::program::Stage::ALL {
                        let with = Target::new(isa, Some(chip.name)).unwrap();
                        targets.push(Target { stage: Some(stage), ..with });
                    }
                }
                // Labels for the examples, and the ALU group or clause that an example needs.
                let contexts = ["", "ALU:\n", "TEX:\n", "VTX:\n", "ALU:\n 0 "];
                let fits = targets.iter().any(|target| {
                    contexts.iter().any(|context| {
                        let text = format!("{context}{}\n", proposal.text);
                        reconverge_workbench::assemble(target, &text).is_ok()
                    })
                });
                assert!(fits, "{isa} {mnemonic}: {proposal:?}");
            }
        }
        assert!(forms > 40, "{isa}: {forms}");
    }
}

/// Listings of the programs in the corpora assemble without errors, and queries about them do not panic.
#[test]
fn listings_of_the_corpora_have_answers() {
    let mut files = Vec::new();
    for folder in
        [Some(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")), shared("corpus")]
            .into_iter()
            .flatten()
    {
        collect(&folder, &mut files);
    }
    let mut texts = 0;
    for path in files {
        let name = path.display().to_string();
        let bytes = std::fs::read(&path).expect("a file");
        let folder: std::sync::Arc<dyn reconverge_cases::Folder> =
            std::sync::Arc::new(reconverge_cases::NoFolder);
        let Ok(cases) = reconverge_cases::read(&name, &bytes, &folder, None) else { continue };
        let step = (cases.len() / 40).max(1);
        for case in cases.iter().step_by(step) {
            let Ok(opened) = case.open() else { continue };
            let opened = opened.opened;
            let Ok(text) =
                opened.target.machine().image_text(&opened.target, &opened.image, Style::default())
            else {
                continue;
            };
            let settings = Settings {
                fallback: TargetHint {
                    isa: Some(opened.target.isa),
                    chip: opened.target.chip_name().map(str::to_owned),
                    stage: opened.target.stage,
                },
                ..Settings::default()
            };
            let analysis = Analysis::new(&text, &settings, &mut |_| Err(String::new()));
            ask_all(&analysis);
            let errors = analysis
                .markers()
                .into_iter()
                .find(|marker| marker.level == MarkerLevel::Error && marker.rule.is_none());
            assert!(errors.is_none(), "{name}: {errors:?}\n{text}");
            (0..text.len()).step_by(text.len() / 5 + 1).for_each(|offset| ask_at(&analysis, offset));
            texts += 1;
        }
    }
    assert!(texts > 20, "{texts}");
}

fn collect(folder: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => collect(&path, files),
            false if path.to_string_lossy().ends_with(".jsonl.gz") => files.push(path),
            false => {}
        }
    }
}
