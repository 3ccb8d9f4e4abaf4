//! Words with a listing. The words must survive the conversion to text and back. If a record has a listing but no
//! words, the case is skipped.

use reconverge_isa::{Isa, Program};
use reconverge_workbench::Target;
use serde::Deserialize;

use crate::binary::RoundTrip;
use crate::hex::Words;
use crate::{Case, CaseKind, ReadError, json_lines};

#[derive(Deserialize)]
struct Line {
    #[serde(alias = "id")]
    name: String,
    arch: Option<String>,
    chip: Option<String>,
    stage: Option<String>,
    words: Option<Words>,
}

/// Returns the cases of a JSON Lines file.
///
/// # Errors
/// Fails if a line is not a record of words with a listing.
pub fn read(path: &str, bytes: &[u8]) -> Result<Vec<Case>, ReadError> {
    json_lines::<Line>(path, bytes)
        .map(|line| {
            let line = line?;
            let kind = match (line.words, line.arch.as_deref().map(str::parse::<Isa>)) {
                (None, _) => {
                    CaseKind::Skip("the listing does not contain words to run or to round-trip".to_owned())
                }
                (Some(Words(words)), Some(Ok(isa))) => match Target::new(isa, line.chip.as_deref()) {
                    Ok(target) => CaseKind::RoundTrip(Box::new(RoundTrip {
                        target: Target { stage: line.stage.and_then(|stage| stage.parse().ok()), ..target },
                        program: Program::from_words(words),
                        image: None,
                    })),
                    Err(error) => CaseKind::Broken(error.to_string()),
                },
                (Some(_), arch) => CaseKind::Skip(format!(
                    "expected code for R500, R700 or Tesla, found code for {}",
                    arch.and_then(Result::err).map_or("an unnamed machine".to_owned(), |unknown| unknown.0)
                )),
            };
            Ok(Case { file: path.to_owned(), name: line.name, kind })
        })
        .collect()
}
