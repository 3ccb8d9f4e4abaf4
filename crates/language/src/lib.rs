//! Analyses an assembler source for editors: messages with fixes, explanations, completions and definitions.
//!
//! * [`Analysis`]: one version of a text, and the machine of the text. Editors call the methods of [`Analysis`].
//! * [`Settings`]: facts about a source that the text of the source may not state.
//! * [`LineStarts`]: lines and columns, in the unit that the editor uses.
//!
//! The crate does not read files, print, or start threads. The caller passes included files to [`Analysis::new`]. The
//! mnemonics, forms, directives and registers come from the machines' tables.
//!
//! ```
//! use reconverge_language::{Analysis, Settings};
//!
//! let text = ".isa tesla\n.equ N, 4\n    movv b32 $r0 N\n    exit nop\n";
//! let analysis = Analysis::new(text, &Settings::default(), &mut |_| Err("no such file".to_owned()));
//! let markers = analysis.markers();
//! assert_eq!(&text[markers[0].span.start..markers[0].span.end], "movv");
//! let remedy = &analysis.remedies(markers[0].span)[0];
//! assert_eq!(remedy.text, "mov");
//! let hover = analysis.hover(text.find("N, 4").unwrap()).unwrap();
//! assert!(hover.markdown.contains("N = 4"));
//! ```

#![forbid(unsafe_code)]

mod analysis;
mod choice;
mod completion;
mod format;
mod hints;
mod hover;
mod launch;
mod lexemes;
mod lines;
mod markers;
mod message;
mod names;
mod outline;
mod passes;
mod references;
mod tokens;
mod vocabulary;

pub use analysis::{Analysis, Settings};
pub use choice::{ChosenBy, TargetHint};
pub use completion::{Proposal, ProposalSort, mnemonic_help};
pub use hints::{HintSort, InlineHint};
pub use hover::Explained;
pub use launch::{is_launch, launch_markers};
pub use lexemes::{LexedLine, Lexeme, LexemeKind, lex};
pub use lines::{ColumnUnit, LineStarts};
pub use message::{FilePlace, Marker, MarkerLevel, Remedy, TextChange, changed};
pub use names::{Definition, NameSort};
pub use outline::{FoldedLines, OutlineEntry};
pub use references::RenameError;
pub use tokens::{Colour, ColouredPart};
