//! The launch files of the draws that belong to a call.
//!
//! A driver also draws for its own purposes. So the number of a draw on the chip differs from the number of the draw in
//! a trace. A first replay ends before the call and counts the chip's draws. A second replay includes the call and
//! captures all draws after this number of draws. The captured draws are the draws that the driver submits for the
//! call.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// A draw in `draws.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draw {
    pub(super) number: u64,
    /// The launch file for the vertices of the draw.
    pub(super) vertices: Option<PathBuf>,
    /// The launch file for the fragments of the draw.
    pub(super) fragments: Option<PathBuf>,
}

/// Returns the captured draws in a folder. If the folder does not contain `draws.jsonl`, the list is empty.
pub(super) fn draws(folder: &Path) -> Vec<Draw> {
    let list = fs::read_to_string(folder.join("draws.jsonl")).unwrap_or_default();
    let lines = list.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let draw = |line: Value| {
        let of_stage = |stage: &str| {
            let launch = line["launches"].as_array()?.iter().find(|launch| launch["stage"] == stage)?;
            Some(folder.join(launch["file"].as_str()?))
        };
        let (vertices, fragments) = (of_stage("vertex"), of_stage("fragment"));
        Some(Draw { number: line["draw"].as_u64()?, vertices, fragments })
    };
    lines.filter_map(draw).collect()
}

/// Returns the launch file for the fragments of the last draw that covers a pixel.
pub(super) fn covering(draws: &[Draw], [x, y]: [usize; 2]) -> Result<Option<&Path>> {
    for draw in draws.iter().rev() {
        if let Some(file) = &draw.fragments
            && covers(file, [x, y]).with_context(|| crate::shown::path(file))?
        {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Returns whether a fragment of a launch covers a pixel. The launch file lists x, y and 1 for each covered pixel
/// (docs/launch-files.md).
fn covers(file: &Path, [x, y]: [usize; 2]) -> Result<bool> {
    let text = fs::read_to_string(file)?;
    let launch: toml::Table = text.parse()?;
    let pixels = launch.get("pixels").and_then(|pixels| pixels.as_str()).unwrap_or_default();
    let Some(name) = pixels.strip_suffix(":i32") else { return Ok(false) };
    let bytes = fs::read(file.with_file_name("").join(name))?;
    let word = |bytes: &[u8]| bytes.try_into().map(i32::from_le_bytes).map(i64::from).unwrap_or(-1);
    let is_it = |pixel: &[u8; 12]| {
        let [u, v, covered] = [0, 4, 8].map(|at| word(&pixel[at..at + 4]));
        (u, v, covered) == (x as i64, y as i64, 1)
    };
    Ok(bytes.as_chunks().0.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_draw_that_covers_the_pixel_is_found() {
        let folder = std::env::temp_dir().join(format!("reconverge-covering-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let list = "{\"draw\": 7, \"launches\": [{\"stage\": \"vertex\", \"file\": \"v.toml\"}, \
            {\"stage\": \"fragment\", \"file\": \"7.toml\"}]}\n\
            {\"draw\": 8, \"launches\": [{\"stage\": \"fragment\", \"file\": \"8.toml\"}]}\n\
            {\"draw\": 9, \"launches\": [{\"stage\": \"fragment\", \"not_captured\": \"large\"}]}\n";
        fs::write(folder.join("draws.jsonl"), list).unwrap();
        for (name, pixels) in [("7", [[2, 3, 1], [3, 3, 1]]), ("8", [[2, 3, 0], [3, 3, 1]])] {
            let bytes: Vec<u8> =
                pixels.as_flattened().iter().flat_map(|word: &i32| word.to_le_bytes()).collect();
            fs::write(folder.join(format!("{name}.bin")), bytes).unwrap();
            fs::write(folder.join(format!("{name}.toml")), format!("pixels = \"{name}.bin:i32\"\n")).unwrap();
        }
        let draws = draws(&folder);
        assert_eq!(draws.iter().map(|draw| draw.number).collect::<Vec<_>>(), [7, 8, 9]);
        let found = |pixel| covering(&draws, pixel).unwrap().map(|file| file.file_name().unwrap().to_owned());
        assert_eq!(found([2, 3]).unwrap(), "7.toml");
        assert_eq!(found([3, 3]).unwrap(), "8.toml");
        assert_eq!(found([4, 3]), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
