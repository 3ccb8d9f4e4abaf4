//! Requests of the page's editor about a source text: messages with fixes, explanations, proposals. The crate
//! `reconverge_language` computes the replies. This module converts the positions in the replies to UTF-16 code units.

use reconverge_isa::Span;
use reconverge_language::{
    Analysis, Marker, MarkerLevel, ProposalSort, Settings, TargetHint, launch_markers,
};
use serde::Serialize;

use crate::given::with_machine;
use crate::place::{SourceFix, SourcePlace, byte, place, units};

/// Maximum number of messages for which the playground tries fixes. To try a fix, the playground assembles the fixed
/// source.
const MENDED: usize = 8;

/// Maximum number of proposals in a reply.
const PROPOSED: usize = 400;

/// Messages about a source and its launch file.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosed {
    /// The machine.
    pub isa: &'static str,
    /// The chip, or `None` if neither the source nor the launch file states the chip.
    pub chip: Option<String>,
    /// The messages about the source, in text order.
    pub source: Vec<SourcePlace>,
    /// The messages about the launch file.
    pub launch: Vec<SourcePlace>,
}

fn marked(text: &str, marker: &Marker) -> SourcePlace {
    let severity = match marker.level {
        MarkerLevel::Error => "error",
        MarkerLevel::Warning => "warning",
        MarkerLevel::Note | MarkerLevel::Hint => "info",
    };
    SourcePlace { rule: marker.rule, ..place(text, marker.span, severity, marker.message.clone()) }
}

fn analysis(source: &str, launch: &str) -> Analysis {
    let settings = Settings { launch: TargetHint::of_launch(launch), ..Settings::default() };
    Analysis::new(source, &settings, &mut |_| Err("the playground has no files".to_owned()))
}

/// Returns the messages about a source and its launch file.
pub fn diagnose(source: &str, launch: &str) -> Diagnosed {
    let analysis = analysis(source, launch);
    let mended = |(number, marker): (usize, &Marker)| {
        let mut place = marked(source, marker);
        if number < MENDED {
            let remedies = analysis.remedies(marker.span);
            let own = remedies.into_iter().filter(|remedy| remedy.marker == *marker);
            place.fixes = own
                .map(|remedy| SourceFix {
                    title: remedy.title,
                    from: units(source, remedy.span.start),
                    to: units(source, remedy.span.end),
                    text: remedy.text,
                })
                .collect();
        }
        place
    };
    let target = analysis.target();
    Diagnosed {
        isa: target.isa.name(),
        chip: target.chip_name().map(str::to_owned),
        source: analysis.markers().iter().enumerate().map(mended).collect(),
        launch: launch_places(source, launch),
    }
}

/// Returns the messages about a launch file. If the launch file does not state a machine, the function uses the machine
/// that the source states.
fn launch_places(source: &str, launch: &str) -> Vec<SourcePlace> {
    let Some((text, added)) = with_machine(launch, source) else { return Vec::new() };
    let places = launch_markers(&text).into_iter().map(|mut marker| {
        let back = |at: usize| at.saturating_sub(added);
        marker.span = Span::new(back(marker.span.start), back(marker.span.end));
        marked(launch, &marker)
    });
    places.collect()
}

/// The explanation of a part of the source.
#[derive(Clone, Debug, Serialize)]
pub struct Hovered {
    /// First UTF-16 code unit of the explained part.
    pub from: usize,
    /// One past the last UTF-16 code unit of the explained part.
    pub to: usize,
    /// The explanation, as Markdown.
    pub markdown: String,
}

/// Explains the text at the position `at`, in UTF-16 code units. Returns `None` if there is no explanation.
pub fn hover(source: &str, launch: &str, at: usize) -> Option<Hovered> {
    let explained = analysis(source, launch).hover(byte(source, at))?;
    let (from, to) = (units(source, explained.span.start), units(source, explained.span.end));
    Some(Hovered { from, to, markdown: explained.markdown })
}

/// A proposal: a text that is valid at a position of the source.
#[derive(Clone, Debug, Serialize)]
pub struct ShownProposal {
    /// `mnemonic`, `form`, `directive`, `word`, `register` or `name`.
    pub kind: &'static str,
    /// The text that the editor shows in its list of proposals.
    pub label: String,
    /// A remark that the editor shows next to the label. The text may be empty.
    pub detail: String,
    /// First UTF-16 code unit of the part that the proposal replaces.
    pub from: usize,
    /// The text that replaces this part.
    pub text: String,
}

/// Returns the texts that are valid at the position `at`, in UTF-16 code units.
pub fn complete(source: &str, launch: &str, at: usize) -> Vec<ShownProposal> {
    let found = analysis(source, launch).complete(byte(source, at)).into_iter().take(PROPOSED);
    let shown = found.map(|proposal| ShownProposal {
        kind: match proposal.sort {
            ProposalSort::Mnemonic => "mnemonic",
            ProposalSort::Form => "form",
            ProposalSort::Directive => "directive",
            ProposalSort::Word => "word",
            ProposalSort::Register => "register",
            ProposalSort::Name(_) => "name",
        },
        label: proposal.label,
        detail: proposal.detail,
        from: units(source, proposal.span.start),
        text: proposal.text,
    });
    shown.collect()
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn places_count_as_a_browser_does() {
        // The comment in this source contains a character of four bytes. In UTF-16, this character has two code units.
        let source = "; 𝄞\n.isa tesla\nmovv b32 $r0 0x4\nexit nop\n";
        let diagnosed = diagnose(source, "");
        let place = &diagnosed.source[0];
        assert_eq!((place.from, place.to, place.line), (16, 20, 3), "{place:?}");
        let fix = place.fixes.first().unwrap_or_else(|| panic!("{place:?}"));
        assert_eq!((fix.from, fix.to, fix.text.as_str()), (16, 20, "mov"), "{fix:?}");
        assert!(hover(source, "", 1).is_none());
        let proposals = complete(source, "", 18);
        assert!(
            proposals.iter().any(|proposal| proposal.label == "mov" && proposal.from == 16),
            "{proposals:?}"
        );
    }

    #[test]
    fn messages_about_the_launch_are_at_its_own_lines() {
        for launch in ["block = [4]\nblcok = [1]\n", "isa = \"tesla\"\nblcok = [1]\n"] {
            let place = &diagnose(".isa tesla\nexit nop\n", launch).launch[0];
            assert_eq!(place.line, 2, "{place:?}");
            assert_eq!(&launch[place.from..place.to], "blcok = [1]");
        }
    }
}
