//! Captures draws as launch files in a folder. `run`, `trace` and `debug` open these files.
//!
//! | in the folder | contents |
//! |---|---|
//! | `draw-0012.vertex.toml`, `draw-0012.fragment.toml` | launch files for the programs of draw 12 |
//! | `data/KIND-DIGEST.bin` | the programs, registers, textures and buffers to which launch files refer. Each distinct content has one file |
//! | `draws.jsonl` | a JSON object for each draw |
//!
//! The first process that opens the device writes to the folder. Later processes write to `process-2`, `process-3` and
//! so on inside the folder. The functions of [`whole`] write the files, so a file in these folders is either complete
//! or absent.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use reconverge_gpu::launch_file::{LaunchText, Store};
use reconverge_gpu::observe::{Captured, Lanes, Launched};

use crate::json;
use crate::whole;

/// Maximum number of captured draws per process.
pub(crate) const MOST_DRAWS: u64 = 10_000;
/// Maximum total size in bytes of the data files to which one launch file refers.
pub(crate) const MOST_BYTES_OF_A_LAUNCH: u64 = 256 << 20;
/// Maximum total size in bytes of all files of a process.
pub(crate) const MOST_BYTES: u64 = 4 << 30;
/// Maximum number of processes that have a folder.
const MOST_PROCESSES: u32 = 10_000;

/// Name of the file that lists the captured draws.
const INDEX: &str = "draws.jsonl";
/// Name of the folder with the data files to which launch files refer.
const DATA: &str = "data";

/// The folder into which one process captures draws.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    index: File,
    process: u32,
    /// Names of the files in `data`. The key is a digest. The value is a list of the files whose contents have this
    /// digest.
    known: HashMap<u64, Vec<String>>,
    /// Total size in bytes of all files so far.
    bytes: u64,
    draws: u64,
    /// Maximum total size in bytes of the data files to which one launch file refers.
    bound: u64,
}

/// The result of capturing a draw.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Number of launch files that were written.
    pub(crate) launches: usize,
    /// Reasons why some launch files of the draw were not written.
    pub(crate) not: Vec<String>,
}

impl Folder {
    /// Creates the folder for this process. Uses the folder `path` if no other process uses `path`. Otherwise, uses the
    /// first unused folder `process-N` inside `path`.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn new(path: &Path) -> io::Result<Folder> {
        fs::create_dir_all(path)?;
        let claim = |path: PathBuf| {
            let index = OpenOptions::new().append(true).create_new(true).open(path.join(INDEX))?;
            fs::create_dir_all(path.join(DATA))?;
            let (known, process) = (HashMap::new(), process::id());
            Ok(Folder { path, index, process, known, bytes: 0, draws: 0, bound: MOST_BYTES_OF_A_LAUNCH })
        };
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        match claim(path.to_path_buf()) {
            Err(error) if taken(&error) => {}
            claimed => return claimed,
        }
        for number in 2..=MOST_PROCESSES {
            let inside = path.join(format!("process-{number}"));
            match fs::create_dir(&inside) {
                Err(error) if taken(&error) => {}
                made => return made.and_then(|()| claim(inside)),
            }
        }
        Err(io::Error::other(format!(
            "{MOST_PROCESSES} processes have already captured draws to this folder"
        )))
    }

    /// Writes the files of a draw.
    ///
    /// # Errors
    /// The capture ends in three cases: the system reports an error, the capture reaches a limit, or the process was
    /// forked after the device was opened. In these cases, the function removes all files of this draw, and the library
    /// captures no later draws.
    pub(crate) fn draw(&mut self, draw: &Captured) -> Result<Written, End> {
        let bound = |why| Err(End { why, lost: false });
        if self.process != process::id() {
            return bound("this process was forked from the process that opened the device".to_owned());
        }
        if self.draws >= MOST_DRAWS {
            return bound(format!("more than {MOST_DRAWS} draws"));
        }
        if self.bytes >= MOST_BYTES {
            return bound(format!("more than {} GiB", MOST_BYTES >> 30));
        }
        let mut named = Vec::new();
        self.whole_draw(draw, &mut named).map_err(|why| {
            for name in named {
                let _ = fs::remove_file(self.path.join(name));
            }
            End { why, lost: true }
        })
    }

    /// Writes the files of a draw. Stores the names of the draw's launch files in `named`. `named` contains these names
    /// even if a later write fails.
    fn whole_draw(&mut self, draw: &Captured, named: &mut Vec<String>) -> Result<Written, String> {
        self.draws += 1;
        let (mut written, mut launches) = (Written::default(), Vec::new());
        for launched in &draw.launches {
            let name = format!("draw-{:04}.{}.toml", draw.number, launched.stage);
            let entry = match self.launch(&name, launched, draw) {
                Ok(()) => {
                    written.launches += 1;
                    named.push(name.clone());
                    format!("\"file\": {}", json::string(&name))
                }
                Err(Refused::Launch(why)) => {
                    let entry = format!("\"not_captured\": {}", json::string(&why));
                    written.not.push(format!("{}: {why}", launched.stage));
                    entry
                }
                Err(Refused::All(why)) => return Err(why),
            };
            launches.push(format!(
                "{{\"stage\": {}, {entry}{}}}",
                json::string(launched.stage),
                described(&launched.lanes)
            ));
        }
        let targets = draw.targets.iter().map(|target| {
            format!(
                "{{\"name\": {}, \"format\": {}, \"start\": {}, \"pitch\": {}, \"rows\": {}}}",
                json::string(&target.name),
                json::string(&target.format),
                target.start,
                target.pitch,
                target.rows
            )
        });
        let line = format!(
            "{{\"draw\": {}, \"primitive\": {}, \"indices\": {}, \"instances\": {}, \"targets\": [{}], \
             \"launches\": [{}], \"trap\": {}}}\n",
            draw.number,
            json::string(&draw.primitive),
            draw.indices,
            draw.instances,
            targets.collect::<Vec<_>>().join(", "),
            launches.join(", "),
            draw.trap.as_deref().map_or("null".to_owned(), json::string),
        );
        whole::append(&mut self.index, line.as_bytes()).map_err(|error| self.failed(INDEX, &error))?;
        Ok(written)
    }

    fn failed(&self, name: &str, error: &io::Error) -> String {
        format!("{}: {error}", self.path.join(name).display())
    }

    /// Writes a launch file and the data files to which the launch file refers.
    fn launch(&mut self, name: &str, launched: &Launched, draw: &Captured) -> Result<(), Refused> {
        if let Some(why) = &launched.too_large {
            return Err(Refused::Launch(why.clone()));
        }
        let mut files = Files { folder: self, new: Vec::new(), bytes: 0, failed: None };
        let text = LaunchText::captured(launched, draw.trap.as_deref(), &mut files);
        let Files { new, failed, .. } = files;
        let written = match (failed, text) {
            (Some(why), _) => Err(Refused::All(why)),
            (None, Ok(text)) => self
                .write(name, text.text().as_bytes())
                .map_err(|error| Refused::All(self.failed(name, &error))),
            (None, Err(why)) => Err(Refused::Launch(why)),
        };
        if written.is_err() {
            // No remaining launch file refers to these new data files. Therefore, this loop removes the data files.
            for (digest, name) in new {
                let _ = fs::remove_file(self.path.join(&name));
                if let Some(names) = self.known.get_mut(&digest) {
                    names.retain(|known| *known != name);
                }
            }
        }
        written
    }

    /// Writes a file, either completely or not at all.
    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        whole::replace(&self.path.join(name), bytes)
    }
}

/// The reason why no more draws are captured.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) why: String,
    /// Whether writing failed with a system error. If the field is `false`, a limit was reached, or this process is a
    /// forked process.
    pub(crate) lost: bool,
}

/// The reason why a launch file is not written.
enum Refused {
    /// This launch file cannot be written. The launch files of other launches are written nevertheless.
    Launch(String),
    /// No more files can be written.
    All(String),
}

/// The data files to which one launch file refers.
struct Files<'a> {
    folder: &'a mut Folder,
    /// Digests and names of the files that were written for this launch.
    new: Vec<(u64, String)>,
    bytes: u64,
    failed: Option<String>,
}

impl Store for Files<'_> {
    fn put(&mut self, kind: &str, ending: &str, bytes: Vec<u8>) -> Result<String, String> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.folder.bound {
            return Err(format!("more than {} bytes", self.folder.bound));
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(kind.as_bytes());
        hasher.write(&bytes);
        let digest = hasher.finish();
        let names = self.folder.known.entry(digest).or_default();
        let same = |name: &&String| fs::read(self.folder.path.join(name)).is_ok_and(|found| found == bytes);
        if let Some(name) = names.iter().find(same) {
            return Ok(name.clone());
        }
        let again = match names.len() {
            0 => String::new(),
            count => format!("-{count}"),
        };
        let name = format!("{DATA}/{kind}-{digest:016x}{again}.{ending}");
        names.push(name.clone());
        self.new.push((digest, name.clone()));
        let written = self.folder.write(&name, &bytes);
        written.map(|()| name.clone()).map_err(|error| {
            let why = self.folder.failed(&name, &error);
            self.failed = Some(why.clone());
            why
        })
    }
}

/// Returns the number of lanes and the positions of pixels as JSON fields. A comma precedes each field.
fn described(lanes: &Lanes) -> String {
    match lanes {
        Lanes::Vertices(vertices) => format!(", \"lanes\": {}", vertices.len()),
        Lanes::Threads(count) => format!(", \"lanes\": {count}"),
        Lanes::Pixels(pixels) => {
            let covered: Vec<&[i32; 3]> = pixels.iter().filter(|pixel| pixel[2] == 1).collect();
            let range = |axis: usize| {
                let at = covered.iter().map(|pixel| pixel[axis]);
                let (low, high) = (at.clone().min().unwrap_or(0), at.max().unwrap_or(0));
                format!("[{low}, {high}]")
            };
            let place = match covered.is_empty() {
                true => String::new(),
                false => format!(", \"x\": {}, \"y\": {}", range(0), range(1)),
            };
            format!(", \"lanes\": {}, \"covered\": {}{place}", pixels.len(), covered.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use reconverge_gpu::observe::{ChipProgram, Machine, Output, Target};
    use reconverge_isa::Isa;
    use reconverge_isa::program::Stage as Any;
    use reconverge_r700::chip::Chip;
    use reconverge_r700::launch::{Input, Launch, Stage};
    use reconverge_simt::Options;

    use super::*;

    /// Returns an empty folder for this test.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("reconverge-capture-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    /// Returns a draw of one quad.
    fn draw(number: u64) -> Captured {
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 4);
        let values = (0..4).map(|lane| [lane, 0, 0, 0]).collect();
        launch.inputs = vec![Input { gpr: 0, values }];
        launch.environment_mut().resources.constant_buffers[0] = vec![7; 400];
        let launched = Launched {
            stage: "fragment",
            program: ChipProgram {
                isa: Isa::R700,
                chip: "RV770",
                stage: Any::Pixel,
                words: vec![0xc000_0000, 0x9420_0688],
                base: 0,
                state: Vec::new(),
            },
            machine: Machine::R700(Box::new(launch)),
            options: Options::default(),
            lanes: Lanes::Pixels(vec![[2, 4, 1], [3, 4, 1], [2, 5, 0], [3, 5, 1]]),
            outputs: vec![("killed".to_owned(), Output::Flags(vec![false, true, false, false]))],
            integers: false,
            too_large: None,
        };
        let target = Target {
            name: "color0".to_owned(),
            format: "8 unorm".to_owned(),
            start: 9,
            bytes: 1,
            pitch: 8,
            rows: 8,
        };
        let primitive = "Points".to_owned();
        let (targets, launches) = (vec![target], vec![launched]);
        Captured { number, primitive, indices: 1, instances: 1, targets, launches, trap: None }
    }

    /// Returns the names of the entries in a folder.
    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn draws_share_what_they_have_in_common_and_are_listed() {
        let path = folder("shared");
        let mut capture = Folder::new(&path).unwrap();
        let one = Written { launches: 1, not: Vec::new() };
        assert_eq!(capture.draw(&draw(1)), Ok(one));
        let data = names(&path.join(DATA));
        capture.draw(&draw(12)).unwrap();
        assert_eq!(names(&path.join(DATA)), data, "the second draw names the same files");
        let all = ["data", "draw-0001.fragment.toml", "draw-0012.fragment.toml", "draws.jsonl"];
        assert_eq!(names(&path), all);
        let index = fs::read_to_string(path.join(INDEX)).unwrap();
        let first = "{\"draw\": 1, \"primitive\": \"Points\", \"indices\": 1, \"instances\": 1, \"targets\": \
            [{\"name\": \"color0\", \"format\": \"8 unorm\", \"start\": 9, \"pitch\": 8, \"rows\": 8}], \
            \"launches\": [{\"stage\": \"fragment\", \"file\": \"draw-0001.fragment.toml\", \"lanes\": 4, \
            \"covered\": 3, \"x\": [2, 3], \"y\": [4, 5]}], \"trap\": null}";
        assert_eq!((index.lines().next(), index.lines().count()), (Some(first), 2));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn another_process_has_a_folder_of_its_own() {
        let path = folder("processes");
        let [first, second, third] = [0; 3].map(|_| Folder::new(&path).unwrap().path);
        assert_eq!([first, second, third], [path.clone(), path.join("process-2"), path.join("process-3")]);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_launch_that_is_too_large_is_named_and_leaves_no_file() {
        let path = folder("large");
        let mut capture = Folder::new(&path).unwrap();
        let mut large = draw(1);
        large.launches[0].too_large = Some("more than 2097152 lanes".to_owned());
        let mut wide = draw(2);
        let Machine::R700(launch) = &mut wide.launches[0].machine else { panic!("of R700") };
        launch.inputs[0].values = vec![[1; 4]; 256].into();
        capture.bound = 4096;
        for (draw, why) in
            [(large, "fragment: more than 2097152 lanes"), (wide, "fragment: more than 4096 bytes")]
        {
            let written = capture.draw(&draw).unwrap();
            assert_eq!(written, Written { launches: 0, not: vec![why.to_owned()] });
        }
        assert_eq!(
            (names(&path), names(&path.join(DATA))),
            (vec!["data".to_owned(), INDEX.to_owned()], vec![])
        );
        let index = fs::read_to_string(path.join(INDEX)).unwrap();
        assert!(index.contains("\"not_captured\": \"more than 4096 bytes\", \"lanes\": 4"), "{index}");
        // The library writes the draw after the two rejected draws.
        assert_eq!(capture.draw(&draw(3)).unwrap().launches, 1);
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn bounds_and_a_folder_that_is_gone_end_the_capture_by_name() {
        let path = folder("bounds");
        let bound = |why: &str| End { why: why.to_owned(), lost: false };
        let mut capture = Folder::new(&path).unwrap();
        capture.draws = MOST_DRAWS;
        assert_eq!(capture.draw(&draw(1)), Err(bound("more than 10000 draws")));
        (capture.draws, capture.bytes) = (0, MOST_BYTES);
        assert_eq!(capture.draw(&draw(1)), Err(bound("more than 4 GiB")));
        capture.bytes = 0;
        fs::remove_dir_all(&path).unwrap();
        let End { why, lost } = capture.draw(&draw(1)).unwrap_err();
        assert!(lost && why.contains("/data/program-") && why.contains("No such file"), "{why}");
    }

    #[test]
    fn on_a_full_disk_a_capture_ends_with_the_last_whole_draw() {
        let name = "capture::tests::on_a_full_disk_a_capture_ends_with_the_last_whole_draw";
        if !crate::whole::tests::on_a_full_disk(name, 3000) {
            return;
        }
        let path = folder("full");
        let mut capture = Folder::new(&path).unwrap();
        capture.draw(&draw(1)).unwrap();
        let files = |path: &Path| fs::read_dir(path).unwrap().count();
        let (before, data) = (files(&path), files(&path.join(DATA)));
        let mut large = draw(2);
        let Machine::R700(launch) = &mut large.launches[0].machine else { unreachable!("as made above") };
        launch.environment_mut().resources.constant_buffers[1] = vec![9; 4000];
        let End { why, lost } = capture.draw(&large).unwrap_err();
        assert!(lost && why.contains("File too large"), "{why}");
        assert_eq!((files(&path), files(&path.join(DATA))), (before, data));
        let index = fs::read_to_string(path.join(INDEX)).unwrap();
        assert_eq!((index.lines().count(), index.ends_with('\n')), (1, true), "{index}");
        fs::remove_dir_all(path).unwrap();
    }
}
