//! `reconverge bench --draw` measures the time of OpenGL frames on Mesa's drivers and emulated chips. For comparison,
//! the command also measures Mesa's software renderers.
//!
//! A load is an OpenGL frame. The loads are part of the library that `reconverge drm` preloads into programs. For each
//! load and renderer, a new process runs this program with the library preloaded. In this process, the library draws
//! the load before `main` starts, and then prints the measurements.

use std::collections::BTreeMap;
use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use reconverge_isa::source::closest;
use serde::{Deserialize, Serialize};

use super::{Bench, geometric_mean, median};
use crate::args::Answer;
use crate::drm::board;
use crate::drm::setup::Setup;
use crate::messages::counted;

/// Chips to measure if the command line has no `--chip`: one chip for each of Mesa's drivers.
const CHIPS: [&str; 3] = ["rv770", "gt215", "rv515"];

/// Mesa's software renderers. Ratios are relative to the first renderer in this list.
const SOFTWARE: [&str; 2] = ["llvmpipe", "softpipe"];

/// A load in the library's list.
#[derive(Deserialize)]
struct ListedLoad {
    name: String,
    about: String,
    /// Name of the unit of work.
    unit: String,
    /// Number of units of work per frame.
    count: u32,
}

/// The JSON object that the library prints.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Printed {
    loads: Vec<ListedLoad>,
    renderer: String,
    /// Processor time and wall time of each frame, in seconds.
    processor: Vec<f64>,
    wall: Vec<f64>,
    error: Option<String>,
}

/// An emulated chip or a software renderer.
struct Renderer {
    name: String,
    /// The environment of the emulated chip. The value is `None` for a renderer in [`SOFTWARE`].
    setup: Option<Setup>,
}

/// The time of a load on a renderer. Each figure is the median of the runs.
#[derive(Serialize)]
struct Measured {
    load: String,
    renderer: String,
    threads: u16,
    /// Processor time per unit in nanoseconds.
    ns: f64,
    /// Processor time and wall time per frame in seconds.
    processor_s: f64,
    wall_s: f64,
    /// Time of the load as a multiple of llvmpipe's time. The value is the median of the ratios of all iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<f64>,
    /// Speedup in wall time relative to the first number of threads, as the median of the ratios of all iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<f64>,
}

/// Runs the loads that the arguments select.
///
/// # Errors
/// Returns an error if the library does not exist, if a chip or load is unknown, or if a driver does not draw.
pub(super) fn run(args: &Bench) -> Result<Answer> {
    let chips = if args.chips.is_empty() { CHIPS.map(str::to_owned).to_vec() } else { args.chips.clone() };
    let boards = chips.iter().map(|name| board(name)).collect::<Result<Vec<_>>>()?;
    let software = Setup::new(boards[0], false, None)?;
    let loads = wanted(args, start(&software, None, "list", 1)?.loads)?;
    if args.list {
        list(&loads, args.json);
        return Ok(Answer::Yes);
    }
    let mut renderers = Vec::new();
    for name in SOFTWARE {
        match software_renderer(&software, name) {
            Ok(()) => renderers.push(Renderer { name: name.to_owned(), setup: None }),
            Err(why) => tell!("{name} is skipped: {why:#}"),
        }
    }
    for board in boards {
        let setup = Setup::new(board, true, None)?.with_engine(args.engine.engine);
        setup.check_renderer()?;
        renderers.push(Renderer { name: board.chip.to_ascii_lowercase(), setup: Some(setup) });
    }
    let threads = if args.threads.is_empty() { &[1][..] } else { &args.threads };
    if !args.json {
        head(&renderers);
    }
    let mut results = Vec::new();
    for load in &loads {
        let measured = measure(load, args, &software, &renderers, threads)?;
        if !args.json {
            threads.iter().for_each(|threads| print_row(load, *threads, &renderers, &measured));
        }
        results.extend(measured);
    }
    if args.json {
        crate::messages::answer_json(&serde_json::json!({ "results": results }));
    } else {
        summary(&renderers, threads, &results);
    }
    Ok(Answer::Yes)
}

/// Returns the loads that the arguments select.
fn wanted(args: &Bench, loads: Vec<ListedLoad>) -> Result<Vec<ListedLoad>> {
    let Some(name) = args.kernel.as_deref() else { return Ok(loads) };
    let names: Vec<String> = loads.iter().map(|load| load.name.clone()).collect();
    let chosen: Vec<ListedLoad> = loads.into_iter().filter(|load| load.name == name).collect();
    if chosen.is_empty() {
        let meant = closest(name, names.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        bail!("unknown load --kernel `{name}`: {meant}expected one of {}", names.join(", "));
    }
    Ok(chosen)
}

fn list(loads: &[ListedLoad], json: bool) {
    let entry = |load: &ListedLoad| serde_json::json!({ "load": load.name, "about": load.about });
    if json {
        crate::messages::answer_json(
            &serde_json::json!({ "loads": loads.iter().map(entry).collect::<Vec<_>>() }),
        );
        return;
    }
    loads.iter().for_each(|load| say!("{:<15} {}", load.name, load.about));
}

/// Checks that a software renderer draws.
fn software_renderer(software: &Setup, name: &str) -> Result<()> {
    let found = start(software, Some(name), "clear", 1)?.renderer;
    if !found.starts_with(name) {
        bail!("unexpected OpenGL renderer `{found}`");
    }
    Ok(())
}

/// Starts a process that runs this program with the library. The library draws a load. If `software` names a software
/// renderer, this renderer draws the load instead of the chip.
fn start(setup: &Setup, software: Option<&str>, load: &str, threads: u16) -> Result<Printed> {
    let program = env::current_exe().context("the path of this program")?;
    let mut command = Command::new(&program);
    setup.apply(&mut command);
    if let Some(name) = software {
        Setup::draw_in_software(&mut command, name);
    }
    let threads = threads.to_string();
    command.env("RAYON_NUM_THREADS", &threads).env("LP_NUM_THREADS", &threads);
    command.env("RECONVERGE_DRM_LOAD", load).env_remove("RECONVERGE_DRM_REPORT");
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| crate::shown::program(&program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let printed: Option<Printed> = text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    let messages = String::from_utf8_lossy(&output.stderr);
    match printed {
        Some(Printed { error: Some(error), .. }) => bail!("{load}: {error}"),
        Some(printed) => Ok(printed),
        None => {
            bail!("{load}: the process ended with {} and without figures\n{}", output.status, messages.trim())
        }
    }
}

/// Processor time and wall time per frame in seconds, by renderer and number of threads.
type Turn<'a> = BTreeMap<(&'a str, u16), [f64; 2]>;

/// Runs a load `runs` times on each renderer. Every second iteration uses the renderers in reverse order.
fn measure(
    load: &ListedLoad,
    args: &Bench,
    software: &Setup,
    renderers: &[Renderer],
    threads: &[u16],
) -> Result<Vec<Measured>> {
    let mut sides: Vec<(&Renderer, u16)> = renderers
        .iter()
        .flat_map(|renderer| threads.iter().map(move |threads| (renderer, *threads)))
        .collect();
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for _ in 0..args.runs {
        let mut turn = BTreeMap::new();
        for (renderer, threads) in &sides {
            let name = renderer.name.as_str();
            let printed = match &renderer.setup {
                Some(setup) => start(setup, None, &load.name, *threads),
                None => start(software, Some(name), &load.name, *threads),
            };
            let printed = printed.with_context(|| name.to_owned())?;
            turn.insert((name, *threads), [median(printed.processor), median(printed.wall)]);
        }
        turns.push(turn);
        sides.reverse();
    }
    sides.sort_by_key(|(renderer, threads)| {
        (renderers.iter().position(|known| known.name == renderer.name), *threads)
    });
    let of = |value: &dyn Fn(&Turn<'_>) -> Option<f64>| {
        let values: Vec<f64> = turns.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| median(values))
    };
    let measured = |(renderer, own): &(&Renderer, u16)| {
        let side = (renderer.name.as_str(), *own);
        let ratio = |over: (&str, u16), under: (&str, u16), what: usize| {
            of(&|turn| Some(turn.get(&over)?[what] / turn.get(&under)?[what].max(1e-9)))
        };
        let processor_s = of(&|turn| Some(turn[&side][0])).unwrap_or_default();
        Measured {
            load: load.name.clone(),
            renderer: renderer.name.clone(),
            threads: *own,
            ns: processor_s * 1e9 / f64::from(load.count),
            processor_s,
            wall_s: of(&|turn| Some(turn[&side][1])).unwrap_or_default(),
            times: ratio(side, (SOFTWARE[0], *own), 0).filter(|_| renderer.setup.is_some()),
            speedup: ratio((side.0, threads[0]), side, 1).filter(|_| *own != threads[0]),
        }
    };
    Ok(sides.iter().map(measured).collect())
}

fn head(renderers: &[Renderer]) {
    let columns: Vec<String> = renderers.iter().map(|renderer| format!("{:>22}", renderer.name)).collect();
    say!("{:<15} {:<10} {:>7}{}", "load", "ns for a", "threads", columns.join(""));
}

fn print_row(load: &ListedLoad, threads: u16, renderers: &[Renderer], measured: &[Measured]) {
    let column = |renderer: &Renderer| {
        let found = measured.iter().find(|entry| entry.renderer == renderer.name && entry.threads == threads);
        let Some(Measured { ns, times, speedup, .. }) = found else { return String::new() };
        let digits = if *ns < 100. { 2 } else { 0 };
        let mut text = format!("{ns:.digits$}");
        if let Some(times) = times {
            text += &format!(" {times:>6.2}x");
        }
        if let Some(speedup) = speedup {
            text += &format!(" ({speedup:.2})");
        }
        text
    };
    let columns: Vec<String> = renderers.iter().map(|renderer| format!("{:>22}", column(renderer))).collect();
    say!("{:<15} {:<10} {threads:>7}{}", load.name, load.unit, columns.join(""));
}

/// Prints the geometric means of the ratios to llvmpipe, and the speedup of several threads.
fn summary(renderers: &[Renderer], threads: &[u16], results: &[Measured]) {
    for renderer in renderers.iter().filter(|renderer| renderer.setup.is_some()) {
        for threads in threads {
            let of =
                results.iter().filter(|found| found.renderer == renderer.name && found.threads == *threads);
            let of: Vec<&Measured> = of.collect();
            let times: Vec<f64> = of.iter().filter_map(|found| found.times).collect();
            let Some(most) = times.iter().copied().max_by(f64::total_cmp) else { continue };
            let mut line = format!(
                "{} on {}: {:.2} times as long as {} (geometric mean of {}), maximum {most:.2} times",
                renderer.name,
                counted(u64::from(*threads), "thread"),
                geometric_mean(times.iter().copied()),
                SOFTWARE[0],
                counted(times.len() as u64, "load"),
            );
            let speedups: Vec<f64> = of.iter().filter_map(|found| found.speedup).collect();
            if !speedups.is_empty() {
                line += &format!(
                    "; {:.2} times as fast as with the first number of threads",
                    geometric_mean(speedups.into_iter())
                );
            }
            say!("{line}");
        }
    }
}
