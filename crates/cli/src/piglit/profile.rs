//! The tests of piglit's profiles: `tests/NAME.xml.gz`, and `tests/NAME.meta.xml`, which lists several profiles.
//!
//! Each test is converted to the command that deqp-runner runs. The option `-auto` comes after the arguments of the
//! test. If other tests may run at the same time, the option `-fbo` also comes after the arguments, because the windows
//! of other tests would disturb the test. The commands of parser tests do not have these options. A test cannot run if
//! the program of the test is missing, or if the test requires another window system. In this case, the module stores
//! the reason with the test, as in piglit's `framework/test`.
//!
//! A `multi_shader` in the profiles `*.no_isolation` is a folder of shader tests for one process. This module replaces
//! the `multi_shader` by the tests in the folder. Like all shader tests, these tests are then divided among processes.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use flate2::read::GzDecoder;
use reconverge_isa::source::closest;
use roxmltree::{Document, Node};

use super::literal::{string, strings};
use super::test::{AUTO, AUTO_FBO, Sharing, Test};

/// Maximum size of a profile in bytes. Debian's largest profile has 12 MB.
const LARGEST: u64 = 1 << 28;

/// Reason for skipping a test whose program was not built.
const NO_PROGRAM: &str = "program not found in piglit";
/// Reason for skipping a test whose file was not installed.
const NO_FILE: &str = "file not found in piglit";

/// Returns the tests of a profile, in the profile's order.
///
/// # Errors
/// Returns an error if the profile does not exist, if the function cannot read the profile, or if two tests have the
/// same name.
pub(super) fn tests(root: &Path, profile: &str, platform: &str) -> Result<Vec<Test>> {
    let mut reading = Reading { root, platform, tests: Vec::new(), names: HashSet::new(), open: Vec::new() };
    reading.profile(profile)?;
    Ok(reading.tests)
}

/// Returns the names of all profiles.
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

/// State of the reader while it reads a profile and the profiles in this profile.
struct Reading<'a> {
    root: &'a Path,
    platform: &'a str,
    tests: Vec<Test>,
    names: HashSet<String>,
    /// Names of the profiles that the reader has not finished: the current profile, and the profiles that list the
    /// current profile.
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
            bail!("unknown --profile `{name}`: {meant}expected one of {}", known.join(", "));
        };
        self.open.push(name.to_owned());
        self.document(&text).with_context(|| format!("tests/{file}"))?;
        self.open.pop();
        Ok(())
    }

    /// Adds the tests in the text of a profile.
    fn document(&mut self, text: &str) -> Result<()> {
        let document = Document::parse(text)?;
        for node in document.descendants().filter(|node| node.has_tag_name("Profile")) {
            self.profile(node.text().unwrap_or_default().trim())?;
        }
        for node in document.descendants().filter(|node| node.has_tag_name("Test")) {
            let test = node.attribute("name").unwrap_or_default();
            self.test(&node).with_context(|| format!("test `{test}`"))?;
        }
        Ok(())
    }

    /// Returns the file name and the text of a profile. Returns `None` if the profile does not exist.
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
                    test.shared = Some(Sharing { stem, needs: needs(&test.program, node) });
                }
            }
            "multi_shader" => return self.shaders(name, node, &test),
            other => test.skipped = Some(format!("tests of the type {other} do not use OpenGL")),
        }
        self.add(name, test)
    }

    /// Sets the command of a test. If `folder` is `Some`, the first argument is a file in this folder.
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

    /// Adds the shader tests of a `multi_shader` element.
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
            test.shared = Some(Sharing { stem, needs });
            self.add(&format!("{name}@{subtest}"), test)?;
        }
        Ok(())
    }

    /// Adds a test under the name that deqp-runner's lists use.
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

/// Returns a text that identifies the OpenGL and GLSL versions that a shader test needs. A process has only one
/// context, so all tests of a process must have equal needs. A test may fail in a context of the version that the test
/// needs, but pass in a context of a later version.
fn needs(program: &str, node: &Node<'_, '_>) -> String {
    let needs = ["api", "api_version", "shader_version"].map(|name| option(node, name).unwrap_or_default());
    format!("{program} {}", needs.join(" "))
}

/// Returns the literal of an option.
fn option<'a>(node: &Node<'a, '_>, name: &str) -> Option<&'a str> {
    let options = node.children().filter(|node| node.has_tag_name("option"));
    options.filter(|node| node.attribute("name") == Some(name)).find_map(|node| node.attribute("value"))
}

/// Returns the string of an option.
fn one(node: &Node<'_, '_>, name: &str) -> Result<String> {
    let literal = option(node, name).ok_or_else(|| anyhow!("missing `{name}`"))?;
    string(literal).ok_or_else(|| anyhow!("{name}: expected a Python string, found `{literal}`"))
}

/// Returns the strings of an option.
fn list(node: &Node<'_, '_>, name: &str) -> Result<Vec<String>> {
    let literal = option(node, name).ok_or_else(|| anyhow!("missing `{name}`"))?;
    strings(literal).ok_or_else(|| anyhow!("{name}: expected a Python list of strings, found `{literal}`"))
}

/// Returns the strings of an option, or an empty list if the option is missing.
fn list_or_none(node: &Node<'_, '_>, name: &str) -> Result<Vec<String>> {
    if option(node, name).is_some() { list(node, name) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Parses the tests of a text, with a folder that does not contain files.
    fn read(text: &str) -> Result<Vec<Test>> {
        let (root, open) = (Path::new("/no-piglit"), Vec::new());
        let mut reading = Reading { root, platform: "gbm", tests: Vec::new(), names: HashSet::new(), open };
        reading.document(&format!("<PiglitTestList>{text}</PiglitTestList>"))?;
        Ok(reading.tests)
    }

    /// Returns the command of the only test.
    fn command(kind: &str, options: &[(&str, &str)]) -> String {
        let options =
            options.iter().map(|(name, value)| format!("<option name=\"{name}\" value=\"{value}\" />"));
        let text = format!("<Test type=\"{kind}\" name=\"t\">{}</Test>", options.collect::<String>());
        let test = read(&text).unwrap().remove(0);
        let arguments = test.arguments.iter().map(|argument| argument.to_str().unwrap());
        let words = std::iter::once(&*test.program).chain(arguments).chain(test.options.iter().copied());
        words.collect::<Vec<_>>().join("|")
    }

    /// Source: deqp-runner, `parse_piglit.rs`. That file defines the options of each type of test. That file also
    /// defines which arguments are files in piglit's folder.
    #[test]
    fn each_type_of_test_makes_its_command() {
        let gl = |value, concurrent| command("gl", &[("command", value), ("run_concurrent", concurrent)]);
        assert_eq!(gl("['fcc', 'blit rb', '-auto']", "True"), "fcc|blit rb|-auto|-fbo");
        assert_eq!(gl("['glx-tfp']", "False"), "glx-tfp|-auto");
        assert_eq!(
            command("gl_builtin", &[("command", "['built-in', 'spec/m.txt']"), ("run_concurrent", "True")]),
            "built-in|/no-piglit/tests/spec/m.txt|-auto|-fbo"
        );
        assert_eq!(
            command("shader", &[("command", "['shader_runner', 'tests/a.shader_test']")]),
            "shader_runner|/no-piglit/tests/a.shader_test|-auto|-fbo"
        );
        assert_eq!(
            command(
                "glsl_parser",
                &[("command", "['glslparsertest', 'tests/a.vert', 'fail', '1.10', '!GL_A']")]
            ),
            "glslparsertest|/no-piglit/tests/a.vert|fail|1.10|!GL_A"
        );
        assert_eq!(
            command("asm_parser", &[("type_", "'ARBvp1.0'"), ("filename", "'tests/xpd.txt'")]),
            "asmparsertest|ARBvp1.0|/no-piglit/tests/xpd.txt"
        );
    }

    #[test]
    fn tests_of_other_platforms_and_missing_programs_have_a_reason() {
        let skipped = |options: &str| {
            let command = "<option name=\"command\" value=\"['a']\" />";
            let text = format!("<Test type=\"gl\" name=\"t\">{command}{options}</Test>");
            read(&text).unwrap()[0].skipped.clone().unwrap()
        };
        let option = |name: &str, value: &str| format!("<option name=\"{name}\" value=\"{value}\" />");
        let needed = skipped(&option("require_platforms", "['glx', 'mixed_glx_egl']"));
        assert_eq!(needed, "only for the platform glx or mixed_glx_egl");
        assert_eq!(skipped(&option("exclude_platforms", "['gbm']")), "not for the platform gbm");
        for (name, value) in [("require_platforms", "['gbm']"), ("exclude_platforms", "['glx']")] {
            assert_eq!(skipped(&option(name, value)), NO_PROGRAM, "{name} lets the test run");
        }
        let other = read("<Test type=\"cl\" name=\"t\"></Test>").unwrap();
        assert_eq!(other[0].skipped.as_deref(), Some("tests of the type cl do not use OpenGL"));
    }

    #[test]
    fn shader_tests_with_equal_needs_may_share_a_process() {
        let text = "<Test type=\"shader\" name=\"Spec@A, b\"><option name=\"api\" value=\"'core'\" />\
            <option name=\"shader_version\" value=\"1.5\" />\
            <option name=\"command\" value=\"['shader_runner', 'tests/A b.shader_test']\" /></Test>\
            <Test type=\"multi_shader\" name=\"spec@a\"><option name=\"prog\" value=\"'shader_runner'\" />\
            <option name=\"files\" value=\"['tests/one.shader_test', 'tests/Two.shader_test']\" />\
            <option name=\"subtests\" value=\"['one', 'two']\" /><Skips>\
            <Skip><option name=\"shader_version\" value=\"1.5\" /><option name=\"api\" value=\"'core'\" /></Skip>\
            <Skip><option name=\"shader_version\" value=\"1.2\" /><option name=\"api\" value=\"'compat'\" /></Skip>\
            </Skips></Test>";
        let tests = read(text).unwrap();
        let shared = tests.iter().map(|test| {
            let Sharing { stem, needs } = test.shared.as_ref().unwrap();
            (&*test.name, &**stem, &**needs)
        });
        let core = "shader_runner 'core'  1.5";
        let expected = [
            ("spec@a- b", "A b", core),
            ("spec@a@one", "one", core),
            ("spec@a@two", "Two", "shader_runner 'compat'  1.2"),
        ];
        assert_eq!(shared.collect::<Vec<_>>(), expected);
        assert!(tests.iter().all(|test| test.skipped.as_deref() == Some(NO_FILE)));
    }

    #[test]
    fn elements_that_cannot_be_read_are_named() {
        let message = |text: &str| format!("{:#}", read(text).unwrap_err());
        let gl = |value: &str| {
            let text = format!("<option name=\"command\" value=\"{value}\" />");
            message(&format!("<Test type=\"gl\" name=\"t\">{text}</Test>"))
        };
        assert_eq!(gl("a"), "test `t`: command: expected a Python list of strings, found `a`");
        assert_eq!(gl("[]"), "test `t`: `command` is empty");
        assert_eq!(message("<Test type=\"gl\" name=\"t\"/>"), "test `t`: missing `command`");
        let cl = "<Test type=\"cl\" name=\"T,\"/><Test type=\"cl\" name=\"t-\"/>";
        assert_eq!(message(cl), "test `t-`: another test has the name `t-`");
    }
}
