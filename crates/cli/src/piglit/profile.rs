//! The tests of piglit's profiles: `tests/NAME.xml.gz`, and `tests/NAME.meta.xml`, which names several.
//!
//! A test becomes the command that deqp-runner makes of it: `-auto` follows the arguments, and `-fbo` if the test may run
//! next to others, since a window of another test would disturb it. Parser tests have neither. A test that cannot run has
//! the reason, as in piglit's `framework/test`: its program is missing, or it is for another window system.
//!
//! A `multi_shader` of the profiles `*.no_isolation` is a folder of shader tests for one process. Its tests are divided among
//! processes like all shader tests, so that it stands for its tests.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use flate2::read::GzDecoder;
use reconverge_isa::source::closest;
use roxmltree::{Document, Node};

use super::choice::{AUTO, AUTO_FBO, Shared, Test};
use super::literal::{string, strings};

/// The largest profile that is read, in bytes. Debian's largest has 12 MB.
const LARGEST: u64 = 1 << 28;

/// Reason for a test whose program was not built.
const NO_PROGRAM: &str = "piglit has no such program";
/// Reason for a test whose file was not installed.
const NO_FILE: &str = "piglit has no such file";

/// The tests of a profile, in the order of the profile.
///
/// # Errors
/// The profile does not exist or cannot be read, or two tests have one name.
pub(super) fn tests(root: &Path, profile: &str, platform: &str) -> Result<Vec<Test>> {
    let mut reading = Reading { root, platform, tests: Vec::new(), names: HashSet::new(), open: Vec::new() };
    reading.profile(profile)?;
    Ok(reading.tests)
}

/// The names of all profiles.
fn known(root: &Path) -> Vec<String> {
    let files = fs::read_dir(root.join("tests")).into_iter().flatten().flatten();
    let names = files.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let name = name.strip_suffix(".gz").unwrap_or(&name).strip_suffix(".xml")?;
        Some(name.strip_suffix(".meta").unwrap_or(name).to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

/// Profiles that are being read.
struct Reading<'a> {
    root: &'a Path,
    platform: &'a str,
    tests: Vec<Test>,
    names: HashSet<String>,
    /// Names of the profiles that contain the current one.
    open: Vec<String>,
}

impl Reading<'_> {
    fn profile(&mut self, name: &str) -> Result<()> {
        if self.open.iter().any(|open| open == name) {
            bail!("--profile {name}: the profile contains itself");
        }
        let Some((file, text)) = self.text(name)? else {
            let known = known(self.root);
            let meant = closest(name, known.iter().map(|known| &**known));
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            bail!("--profile {name}: no such profile; {meant}this piglit has {}", known.join(", "));
        };
        let place = || format!("tests/{file}");
        let document = Document::parse(&text).with_context(place)?;
        self.open.push(name.to_owned());
        for node in document.descendants().filter(|node| node.has_tag_name("Profile")) {
            self.profile(node.text().unwrap_or_default().trim())?;
        }
        for node in document.descendants().filter(|node| node.has_tag_name("Test")) {
            let test = node.attribute("name").unwrap_or_default();
            self.test(&node).with_context(|| format!("tests/{file}: test `{test}`"))?;
        }
        self.open.pop();
        Ok(())
    }

    /// The file name and the text of a profile, or `None` if there is no such profile.
    fn text(&self, name: &str) -> Result<Option<(String, String)>> {
        if name.contains('/') {
            return Ok(None);
        }
        for (extension, is_packed) in [("meta.xml", false), ("xml.gz", true), ("xml", false)] {
            let file = format!("{name}.{extension}");
            let path = self.root.join("tests").join(&file);
            if !path.is_file() {
                continue;
            }
            let read = || -> Result<String> {
                let opened = File::open(&path)?;
                let reader: Box<dyn Read> =
                    if is_packed { Box::new(GzDecoder::new(opened)) } else { Box::new(opened) };
                let mut text = String::new();
                if reader.take(LARGEST + 1).read_to_string(&mut text)? as u64 > LARGEST {
                    bail!("expected at most {LARGEST} bytes");
                }
                Ok(text)
            };
            return Ok(Some((file, read().with_context(|| crate::shown::path(&path))?)));
        }
        Ok(None)
    }

    /// Adds the tests of an element.
    fn test(&mut self, node: &Node<'_, '_>) -> Result<()> {
        let name = node.attribute("name").context("missing `name`")?;
        let kind = node.attribute("type").context("missing `type`")?;
        let environment = node.descendants().filter(|node| node.has_tag_name("env"));
        let environment = environment.filter_map(|node| {
            let name = node.attribute("name").filter(|name| !name.is_empty() && !name.contains('='))?;
            Some((name.to_owned(), node.attribute("value")?.to_owned()))
        });
        let environment: Vec<_> = environment.collect();
        let options = if option(node, "run_concurrent") == Some("False") { AUTO } else { AUTO_FBO };
        let mut test = Test { environment, options, ..Test::default() };
        match kind {
            "gl" => self.command(node, &mut test, None)?,
            "gl_builtin" => self.command(node, &mut test, Some("tests"))?,
            "glsl_parser" => {
                test.options = &[];
                self.command(node, &mut test, Some(""))?;
            }
            "asm_parser" => {
                test.options = &[];
                test.program = "asmparsertest".to_owned();
                test.arguments.push(one(node, "type_")?.into());
                let file = one(node, "filename")?;
                self.file(&mut test, "", &file);
            }
            "shader" => {
                self.command(node, &mut test, Some(""))?;
                if let [file] = &*test.arguments {
                    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    test.shared = Some(Shared { stem, needs: needs(&test.program, node) });
                }
            }
            "multi_shader" => return self.shaders(name, node, &test),
            other => test.skipped = Some(format!("tests of the type {other} do not use OpenGL")),
        }
        self.add(name, test)
    }

    /// The command of a test. Its first argument is a file in this folder, if there is one.
    fn command(&self, node: &Node<'_, '_>, test: &mut Test, folder: Option<&str>) -> Result<()> {
        let mut command = list(node, "command")?.into_iter();
        test.program = command.next().context("`command` is empty")?;
        let file = folder.and_then(|folder| Some((folder, command.next()?)));
        if let Some((folder, file)) = file {
            self.file(test, folder, &file);
        }
        let arguments = command.filter(|argument| !AUTO_FBO.contains(&argument.as_str()));
        test.arguments.extend(arguments.map(OsString::from));
        for (platforms, is_needed) in [
            (list_or_none(node, "require_platforms")?, true),
            (list_or_none(node, "exclude_platforms")?, false),
        ] {
            if !platforms.is_empty() && platforms.iter().any(|known| known == self.platform) != is_needed {
                let which = if is_needed { "only" } else { "not" };
                test.skipped = Some(format!("{which} for the platform {}", platforms.join(" or ")));
            }
        }
        Ok(())
    }

    /// Adds a file to the arguments.
    fn file(&self, test: &mut Test, folder: &str, file: &str) {
        let path = self.root.join(folder).join(file);
        if !path.is_file() {
            test.skipped = Some(NO_FILE.to_owned());
        }
        test.arguments.push(path.into());
    }

    /// Adds the shader tests of a `multi_shader`.
    fn shaders(&mut self, name: &str, node: &Node<'_, '_>, common: &Test) -> Result<()> {
        let (program, files, names) = (one(node, "prog")?, list(node, "files")?, list(node, "subtests")?);
        if files.len() != names.len() {
            bail!("expected as many `subtests` as `files`, found {} and {}", names.len(), files.len());
        }
        let mut skips = node.descendants().filter(|node| node.has_tag_name("Skip"));
        for (file, subtest) in files.iter().zip(names) {
            let mut test = Test { program: program.clone(), ..common.clone() };
            self.file(&mut test, "", file);
            let needs = skips.next().map_or_else(|| program.clone(), |skip| needs(&program, &skip));
            let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            test.shared = Some(Shared { stem, needs });
            self.add(&format!("{name}@{subtest}"), test)?;
        }
        Ok(())
    }

    /// Adds a test with its name in deqp-runner's lists.
    fn add(&mut self, name: &str, mut test: Test) -> Result<()> {
        test.name = name.to_lowercase().replace(',', "-");
        let is_installed =
            || !test.program.contains('/') && self.root.join("bin").join(&test.program).is_file();
        if test.skipped.is_none() && !is_installed() {
            test.skipped = Some(NO_PROGRAM.to_owned());
        }
        if !self.names.insert(test.name.clone()) {
            bail!("another test has the name `{}`", test.name);
        }
        self.tests.push(test);
        Ok(())
    }
}

/// The versions that a shader test needs of OpenGL. A process has one context, so that only tests that need the same share
/// one. A context of a later version could pass a test that fails in its own.
fn needs(program: &str, node: &Node<'_, '_>) -> String {
    let needs = ["api", "api_version", "shader_version"].map(|name| option(node, name).unwrap_or_default());
    format!("{program} {}", needs.join(" "))
}

/// The literal of an option.
fn option<'a>(node: &Node<'a, '_>, name: &str) -> Option<&'a str> {
    let options = node.children().filter(|node| node.has_tag_name("option"));
    options.filter(|node| node.attribute("name") == Some(name)).find_map(|node| node.attribute("value"))
}

/// The string of an option.
fn one(node: &Node<'_, '_>, name: &str) -> Result<String> {
    let literal = option(node, name).ok_or_else(|| anyhow!("missing `{name}`"))?;
    string(literal).ok_or_else(|| anyhow!("{name}: expected a Python string, found `{literal}`"))
}

/// The strings of an option.
fn list(node: &Node<'_, '_>, name: &str) -> Result<Vec<String>> {
    let literal = option(node, name).ok_or_else(|| anyhow!("missing `{name}`"))?;
    strings(literal).ok_or_else(|| anyhow!("{name}: expected a Python list of strings, found `{literal}`"))
}

/// The strings of an option, none if it is missing.
fn list_or_none(node: &Node<'_, '_>, name: &str) -> Result<Vec<String>> {
    if option(node, name).is_some() { list(node, name) } else { Ok(Vec::new()) }
}
