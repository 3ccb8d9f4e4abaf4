//! Findings as files that can be run again.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A case that violates a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The target's name.
    pub target: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the case.
    pub case: u64,
    /// Description of the violation.
    pub why: String,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Finding {
    /// Writes the finding atomically into a folder. If the folder does not exist, creates the folder. The name of the
    /// file consists of the target, the seed and the case. Returns the path of the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join(format!("{}-{}-{}.json", self.target, self.seed, self.case));
        let json = json!({
            "target": self.target,
            "seed": self.seed,
            "case": self.case,
            "why": self.why,
            "bytes": hex(&self.bytes),
        });
        let unfinished = file.with_extension("json.new");
        std::fs::write(&unfinished, format!("{json:#}\n"))?;
        std::fs::rename(&unfinished, &file)?;
        Ok(file)
    }

    /// Reads a finding that [`Finding::write`] has written.
    ///
    /// # Errors
    /// Returns a description of the mistake in the text.
    pub fn parse(text: &str) -> Result<Finding, String> {
        let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let text = |name: &str| json[name].as_str().ok_or(format!("missing text `{name}`"));
        let number = |name: &str| json[name].as_u64().ok_or(format!("missing number `{name}`"));
        Ok(Finding {
            target: text("target")?.to_owned(),
            seed: number("seed")?,
            case: number("case")?,
            why: text("why")?.to_owned(),
            bytes: bytes(text("bytes")?).ok_or("`bytes` are not pairs of hexadecimal digits")?,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_comes_back_from_its_file() {
        let folder = std::env::temp_dir().join(format!("reconverge-finding-{}", std::process::id()));
        let finding = Finding {
            target: "decode-r500".to_owned(),
            seed: u64::MAX,
            case: 7,
            why: "word 3 \"differs\"".to_owned(),
            bytes: vec![0, 0x80, 0xff],
        };
        let file = finding.write(&folder).unwrap();
        assert_eq!(Finding::parse(&std::fs::read_to_string(&file).unwrap()), Ok(finding));
        std::fs::remove_dir_all(folder).unwrap();
        assert!(Finding::parse("{}").is_err() && bytes("0").is_none() && bytes("zz").is_none());
    }
}
