//! The files of a campaign. This module has the contents of the files, the launches that the files describe, and one
//! hash of all contents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reconverge_isa::Isa;
use reconverge_workbench::kernels::{self, Kernel};
use reconverge_workbench::keys;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::open::{Known, OpenError, Opened, open_named};
use reconverge_workbench::suite::{self, Workload};
use reconverge_workbench::values::Files;

use crate::file::CampaignFile;
use crate::filter;
use crate::listed::PlacedFault;

/// Maximum number of points in a sweep.
const MOST_POINTS: usize = 10_000;

/// Reads files that are in the folder of another file. Stores the contents of each file that was read.
#[derive(Debug)]
pub(crate) struct Beside {
    folder: PathBuf,
    read: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Beside {
    pub(crate) fn of(file: &Path) -> Beside {
        let folder = file.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        Beside { folder, read: Mutex::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the contents that were read, by file name.
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Beside {
    /// Reads a file that a launch file names. The file must be in the folder of the launch file. The command `run`
    /// follows the same rule.
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        if let Some(bytes) = self.known().get(name) {
            return Ok(bytes.clone());
        }
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
        let path = real(&self.path(name))?;
        if !path.starts_with(real(folder)?) {
            return Err("the file is outside the folder of the launch file".to_owned());
        }
        if !path.is_file() {
            return Err("it is not a file".to_owned());
        }
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        self.known().insert(name.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

/// The launches of a campaign, and their inputs.
pub(crate) struct Sources {
    launch: Launch,
    pub(crate) files: Beside,
    pub(crate) opened: Opened,
    /// The labels in the program's source, and the address of each label.
    pub(crate) labels: Vec<(String, u32)>,
    /// The faults that the campaign states one by one.
    pub(crate) faults: Vec<PlacedFault>,
    /// The name of the program's file, or of the kernel.
    pub(crate) program: String,
    /// The path of the program's file. A kernel does not have a path.
    pub(crate) path: Option<PathBuf>,
    /// The program's source, if the program has a source.
    pub(crate) text: Option<String>,
}

/// The launch of a point. Also has the keys that the sweep sets, and the values of these keys.
pub(crate) type PointLaunch = (LaunchFile, Vec<(String, String)>);

enum Launch {
    /// The fields of a launch file.
    Table(toml::Table),
    Kernel(&'static Kernel, u32),
    Workload(&'static Workload),
}

/// Returns the labels of all programs in a source.
fn labels_of(opened: &Opened, text: Option<&str>) -> Vec<(String, u32)> {
    let lines: Vec<(u32, usize)> = opened.lines.iter().flatten().copied().collect();
    text.filter(|_| !lines.is_empty()).map(|text| filter::labels(text, &lines)).unwrap_or_default()
}

impl Sources {
    /// Reads the files that a campaign file names.
    ///
    /// # Errors
    /// Returns the name of the file, and the problem with the file.
    pub(crate) fn read(path: &Path, file: &CampaignFile) -> Result<Sources, (String, String)> {
        let name = keys::plain(path).display().to_string();
        if let Some(launch) = &file.launch {
            let launch = Beside::of(path).path(launch);
            return Sources::of_launch(&launch)
                .map_err(|why| (keys::plain(&launch).display().to_string(), why));
        }
        let kernel = || {
            let isa: Isa =
                file.isa.as_deref().unwrap_or_default().parse().map_err(|error| format!("isa: {error}"))?;
            let name = file.kernel.as_deref().unwrap_or_default();
            let (launch, source, opened) = match (kernels::find(isa, name), suite::find(isa, name)) {
                (Some(kernel), _) => {
                    let lanes = file.lanes.unwrap_or(kernels::ROW);
                    (Launch::Kernel(kernel, lanes), kernel.source, kernel.open())
                }
                (None, Some(workload)) if file.lanes.is_some() => {
                    let lanes = workload.lanes;
                    return Err(format!("lanes: only for mandel and collatz; {name} has {lanes} lanes"));
                }
                (None, Some(workload)) => (Launch::Workload(workload), workload.source, workload.open()),
                (None, None) => return Err(format!("kernel: {}", suite::no_kernel(isa, name))),
            };
            let opened = opened.map_err(|error| error.to_string())?;
            let text = Some(source.to_owned());
            Ok(Sources {
                launch,
                files: Beside::of(path),
                labels: labels_of(&opened, Some(source)),
                opened,
                faults: Vec::new(),
                program: name.to_owned(),
                path: None,
                text,
            })
        };
        kernel().map_err(|why: String| (name, why))
    }

    fn of_launch(path: &Path) -> Result<Sources, String> {
        let files = Beside::of(path);
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let text = String::from_utf8(text).map_err(|_| "the file is not UTF-8 text".to_owned())?;
        let launch = LaunchFile::parse(&text).map_err(|error| error.to_string())?;
        let table: toml::Table = if text.trim_start().starts_with('{') {
            serde_json::from_str(&text).map_err(|error| error.to_string())?
        } else {
            toml::from_str(&text).map_err(|error| error.to_string())?
        };
        let program = launch.common.program.as_deref();
        let program = program
            .ok_or("missing `program` in the launch file; add a line such as program = \"shader.s\"")?;
        let known = Known {
            isa: Some(launch.isa),
            chip: launch.common.chip.clone(),
            stage: launch.stage().map_err(|error| error.to_string())?,
            ..Known::default()
        };
        let bytes = files.read(program).map_err(|why| format!("program {program}: {why}"))?;
        let read = &mut |file: &str| files.read(file);
        let opened = open_named(program, &bytes, known, read).map_err(|error| match &error {
            OpenError::Source(errors) if !errors.is_empty() => {
                let place = errors[0].place(program, &String::from_utf8_lossy(&bytes));
                format!("program {place}: {}", errors[0])
            }
            _ => format!("program {program}: {error}"),
        })?;
        files.known().insert(String::new(), text.into_bytes());
        let path = files.path(program);
        let source = (!opened.lines.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Sources {
            launch: Launch::Table(table),
            files,
            labels: labels_of(&opened, source.as_deref()),
            opened,
            faults: Vec::new(),
            program: program.to_owned(),
            path: Some(path),
            text: source,
        })
    }

    /// Returns the launches of all points. Each launch contains the keys that the sweep sets, and the values of these
    /// keys.
    ///
    /// # Errors
    /// Returns the key, and the problem with the value of the key.
    pub(crate) fn launches(&self, file: &CampaignFile) -> Result<Vec<PointLaunch>, String> {
        let mut points: Vec<Vec<(&str, &toml::Value)>> = vec![Vec::new()];
        for (key, values) in &file.sweep {
            let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
            points = points
                .into_iter()
                .flat_map(|point| {
                    values.iter().map(move |value| {
                        let mut point = point.clone();
                        point.push((key.as_str(), value));
                        point
                    })
                })
                .collect();
            if points.len() > MOST_POINTS {
                return Err(format!("sweep: expected at most {MOST_POINTS} points"));
            }
        }
        points
            .into_iter()
            .map(|point| {
                let named =
                    point.iter().map(|(key, value)| ((*key).to_owned(), plain(value))).collect::<Vec<_>>();
                let launch = self.launch(file, &point).map_err(|why| {
                    let keys: Vec<String> =
                        named.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                    if keys.is_empty() { why } else { format!("sweep, {}: {why}", keys.join(", ")) }
                })?;
                Ok((launch, named))
            })
            .collect()
    }

    fn launch(&self, file: &CampaignFile, point: &[(&str, &toml::Value)]) -> Result<LaunchFile, String> {
        let launch = match &self.launch {
            Launch::Table(table) => {
                let mut table = table.clone();
                for (key, value) in [("chip", &file.chip), ("mode", &file.mode)] {
                    if let Some(value) = value {
                        table.insert(key.to_owned(), toml::Value::String(value.clone()));
                    }
                }
                for (key, value) in point {
                    set(&mut table, key, value)?;
                }
                let text = toml::to_string(&table).map_err(|error| error.to_string())?;
                LaunchFile::parse(&text).map_err(|error| error.to_string())?
            }
            Launch::Kernel(kernel, lanes) => {
                let mut lanes = *lanes;
                if let Some((_, value)) = point.iter().find(|(key, _)| *key == "lanes") {
                    let number = value.as_integer().and_then(|lanes| u32::try_from(lanes).ok());
                    lanes =
                        number.ok_or_else(|| format!("lanes: expected a number of lanes, found {value}"))?;
                }
                of_kernel(kernel.launch(lanes).map_err(|error| error.to_string())?, file, point, true)?
            }
            Launch::Workload(workload) => of_kernel(workload.launch(), file, point, false)?,
        };
        Ok(launch)
    }

    /// Returns the contents of all files that were read, in a fixed order.
    pub(crate) fn contents(&self) -> Vec<Vec<u8>> {
        let mut contents = match &self.launch {
            Launch::Table(_) => Vec::new(),
            Launch::Kernel(kernel, _) => vec![kernel.source.as_bytes().to_vec()],
            Launch::Workload(workload) => vec![workload.source.as_bytes().to_vec()],
        };
        contents
            .extend(self.files.known().iter().flat_map(|(name, bytes)| [name.clone().into(), bytes.clone()]));
        contents
    }
}

/// Returns the launch of a kernel. Some values of the launch come from the campaign file and from the point of the
/// sweep.
fn of_kernel(
    mut launch: LaunchFile,
    file: &CampaignFile,
    point: &[(&str, &toml::Value)],
    has_lanes: bool,
) -> Result<LaunchFile, String> {
    (launch.common.chip, launch.common.mode) = (file.chip.clone(), file.mode.clone());
    for (key, value) in point {
        let place = match *key {
            "lanes" if has_lanes => continue,
            "chip" => &mut launch.common.chip,
            "mode" => &mut launch.common.mode,
            other => {
                let fits = if has_lanes { "lanes, chip and mode" } else { "chip and mode" };
                return Err(format!("{other}: expected {fits} in the sweep of a kernel"));
            }
        };
        *place =
            Some(value.as_str().ok_or_else(|| format!("{key}: expected a name, found {value}"))?.to_owned());
    }
    Ok(launch)
}

/// Returns a value in the form that results use. In this form, names do not have quotes.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Sets a field of a launch file. The key `param.NAME` sets the value of the parameter NAME. The key `a.b` sets the
/// field `b` of the table `a`.
fn set(table: &mut toml::Table, key: &str, value: &toml::Value) -> Result<(), String> {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value.clone());
        return Ok(());
    };
    match table.get_mut(first) {
        Some(toml::Value::Table(inner)) => set(inner, rest, value),
        Some(toml::Value::Array(list)) => {
            let named =
                |entry: &&mut toml::Value| entry.get("name").and_then(toml::Value::as_str) == Some(rest);
            let entry = list.iter_mut().find(named).and_then(toml::Value::as_table_mut);
            let entry =
                entry.ok_or_else(|| format!("{key}: the launch file has no {first} with the name {rest}"))?;
            entry.insert("value".to_owned(), value.clone());
            Ok(())
        }
        _ => Err(format!("{key}: the launch file has no {first}")),
    }
}

/// Returns one 128-bit FNV-1a hash of several pieces.
pub(crate) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut byte =
        |byte: u8| hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    for piece in pieces {
        // The length of each piece marks the boundary between this piece and the next piece.
        (piece.len() as u64).to_le_bytes().into_iter().for_each(&mut byte);
        piece.iter().copied().for_each(&mut byte);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_sets_fields_by_their_path() {
        let mut table: toml::Table =
            "lanes = 1\n[ctm]\ndomain = [1]\n[[param]]\nname = \"n\"\nvalue = 1\n".parse().unwrap();
        let value = toml::Value::Integer(7);
        for key in ["lanes", "ctm.domain", "param.n", "grid"] {
            set(&mut table, key, &value).unwrap();
        }
        assert_eq!(table["ctm"]["domain"], value);
        assert_eq!((&table["param"][0]["value"], &table["lanes"], &table["grid"]), (&value, &value, &value));
        let missing = set(&mut table, "param.m", &value).unwrap_err();
        assert_eq!(missing, "param.m: the launch file has no param with the name m");
    }

    #[test]
    fn pieces_do_not_run_into_each_other() {
        let of = |pieces: &[&str]| hash(pieces.iter().map(|piece| piece.as_bytes()));
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a"]), of(&["a", ""]));
    }
}
