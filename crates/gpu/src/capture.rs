//! Captures draws for an [`Observer`]. Each stage of a captured draw becomes one launch. The launch has the lanes of
//! all batches of the stage.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reconverge_raster::draw::{Draw, Fragments};
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;

use crate::Fault;
use crate::observe::{
    Captured, ChipProgram, Lanes, Launched, MOST_LANES, Machine, Observer, Output, Rows, Target,
};

/// The observer of a chip, or `None` if the chip has no observer.
#[derive(Debug, Default)]
pub(crate) struct Watch(Option<Box<dyn Observer>>);

impl Watch {
    pub(crate) fn new(observer: Box<dyn Observer>) -> Watch {
        Watch(Some(observer))
    }

    /// Returns whether there is an observer.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Passes a program to the observer, and returns the program with the observer's changes.
    pub(crate) fn program(&mut self, mut program: ChipProgram) -> ChipProgram {
        if let Some(observer) = &mut self.0 {
            observer.program(&mut program);
        }
        program
    }

    /// Starts to capture a draw. Returns `None` if the observer does not capture this draw.
    pub(crate) fn begin(&self, number: u64, indices: usize, instances: u32) -> Option<Captured> {
        self.0.as_ref().filter(|observer| observer.captures(number))?;
        Some(Captured { number, indices, instances, ..Captured::default() })
    }

    /// Passes a captured draw and the draw's result to the observer. Returns this result.
    ///
    /// # Errors
    /// Returns the error of the draw. A trap's message begins with the number of the draw.
    pub(crate) fn end(
        &mut self,
        number: u64,
        captured: Option<Captured>,
        drawn: Result<(), Fault>,
    ) -> Result<(), Fault> {
        let drawn = drawn.map_err(|fault| match fault {
            Fault::Trap(what) => Fault::Trap(format!("draw {number}: {what}")),
            other => other,
        });
        self.handed_over(captured, drawn)
    }

    /// Passes a captured draw or launch, and the result of this draw or launch, to the observer. Returns this result.
    ///
    /// # Errors
    /// Returns the fault of the draw or launch.
    pub(crate) fn handed_over(
        &mut self,
        captured: Option<Captured>,
        drawn: Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let (Some(observer), Some(mut captured)) = (&mut self.0, captured) {
            captured.trap = drawn.as_ref().err().map(ToString::to_string);
            observer.draw(&captured);
        }
        drawn
    }

    /// Passes the surfaces of a draw to the observer, if the observer reads surfaces.
    pub(crate) fn surfaces(&mut self, number: u64, draw: &Draw, memory: Vram<'_>) {
        if let Some(observer) = self.0.as_mut().filter(|observer| observer.looks()) {
            observer.surfaces(number, &targets(draw), memory);
        }
    }
}

/// Name of the vertex stage.
pub(crate) const VERTEX: &str = "vertex";
/// Name of the fragment stage.
pub(crate) const FRAGMENT: &str = "fragment";

/// A launch of a stage, recorded while the stage runs in batches.
#[derive(Debug)]
pub(crate) struct Recording {
    launched: Launched,
    /// Number of lanes that have started, and number of lanes that have ended.
    started: usize,
    ended: usize,
    /// Initial values of registers or words, for all lanes that have started. The `u16` is the number of the register
    /// or word.
    inputs: Vec<(u16, Rows)>,
    killed: Vec<bool>,
}

/// The recording of a fragment program, or `None` if the program is not captured. The batches of a captured program run
/// in order.
#[derive(Debug, Default)]
pub(crate) struct FragmentRecording(Option<Mutex<Recording>>);

impl FragmentRecording {
    pub(crate) fn new(recording: Option<Recording>) -> FragmentRecording {
        FragmentRecording(recording.map(Mutex::new))
    }

    /// Returns whether the program is captured.
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Locks and returns the recording, so that a run of the program can add lanes.
    pub(crate) fn lock(&self) -> Option<MutexGuard<'_, Recording>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the recording. All runs of the program must have ended.
    pub(crate) fn end(self) -> Option<Recording> {
        Some(self.0?.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Recording {
    /// Returns a recording of vertices. `vertices` contains the index and instance of each vertex.
    pub(crate) fn vertices(
        program: &ChipProgram,
        machine: Machine,
        options: Options,
        vertices: Vec<[u32; 2]>,
    ) -> Recording {
        Recording::new(VERTEX, program, machine, options, Lanes::Vertices(vertices))
    }

    /// Returns a recording of the fragments of a draw. The recording has no lanes yet.
    pub(crate) fn fragments(
        program: &ChipProgram,
        machine: Machine,
        options: Options,
        (captured, draw): (&mut Captured, &Draw),
    ) -> Recording {
        captured.targets = targets(draw);
        let mut recording = Recording::new(FRAGMENT, program, machine, options, Lanes::Pixels(Vec::new()));
        recording.launched.integers = draw.targets.iter().any(|target| target.format.numbers[0].is_integer());
        if captured.launches.iter().any(|launched| launched.stage == FRAGMENT) {
            recording.refuse("only the first layer or viewport of a draw is captured");
        }
        recording
    }

    fn new(
        stage: &'static str,
        program: &ChipProgram,
        machine: Machine,
        options: Options,
        lanes: Lanes,
    ) -> Recording {
        let launched = Launched {
            stage,
            program: program.clone(),
            machine,
            options,
            lanes,
            outputs: Vec::new(),
            integers: false,
            too_large: None,
        };
        Recording { launched, started: 0, ended: 0, inputs: Vec::new(), killed: Vec::new() }
    }

    /// Records the reason for which the launch is not captured.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.launched.too_large = Some(why.to_owned());
    }

    /// Marks the recording as the recording of a geometry launch. Launch files cannot describe geometry launches. The
    /// observer therefore receives the recording together with the reason for which the launch is not captured.
    pub(crate) fn of_geometry(mut self) -> Recording {
        self.launched.stage = "geometry";
        self.refuse("launches of geometry programs are not captured");
        self
    }

    /// Adds lanes with their inputs. An input has three parts: the index of a register or word, the number of 32-bit
    /// words per lane, and the words of all lanes. `fragments` contains the pixels of the lanes.
    pub(crate) fn start<'a>(
        &mut self,
        lanes: usize,
        inputs: impl Iterator<Item = (u16, usize, &'a [u32])>,
        fragments: Option<&Fragments>,
    ) {
        let all = self.started + lanes;
        if self.launched.too_large.is_some() || all > MOST_LANES {
            self.launched.too_large.get_or_insert(format!("more than {MOST_LANES} lanes"));
            return;
        }
        self.started = all;
        for (number, width, words) in inputs {
            let place = self.inputs.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
                self.inputs.push((number, Rows { width, words: Vec::new() }));
                self.inputs.len() - 1
            });
            self.inputs[place].1.words.extend_from_slice(words);
        }
        if let (Lanes::Pixels(pixels), Some(fragments)) = (&mut self.launched.lanes, fragments) {
            pixels.extend((0..fragments.lanes).map(|lane| {
                let (x, y) = fragments.pixel(lane);
                [x, y, i32::from(fragments.is_covered(lane))]
            }));
        }
    }

    /// Adds the results of the lanes that the last call of [`Recording::start`] added. The results are the named
    /// outputs. The results also contain one flag for each lane, which states whether the lane was killed.
    pub(crate) fn end(
        &mut self,
        outputs: impl Iterator<Item = (String, Rows)>,
        killed: impl Iterator<Item = bool>,
    ) {
        if self.launched.too_large.is_some() {
            return;
        }
        let (before, known) = (self.ended, &mut self.launched.outputs);
        self.ended = self.started;
        for (name, Rows { width, words }) in outputs {
            let place = known.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                known.push((name, Output::Words(Rows { width, words: Vec::new() })));
                known.len() - 1
            });
            if let Output::Words(rows) = &mut known[place].1 {
                // If a batch did not write an output, the recording contains zeros for this output of the batch.
                rows.words.resize(before * width, 0);
                rows.words.extend(words);
            }
        }
        self.killed.extend(killed);
    }

    /// Returns the captured launch, or `None` if no lane has started.
    pub(crate) fn finish(self) -> Option<Launched> {
        let Recording { mut launched, started, ended, inputs, killed } = self;
        if started == 0 && launched.too_large.is_none() {
            return None;
        }
        launched.machine.set_lanes(started, &launched.lanes, inputs);
        // After a trap, the recorded outputs are incomplete. These outputs are removed from the launch.
        if ended < started {
            launched.outputs.clear();
            return Some(launched);
        }
        for (_, output) in &mut launched.outputs {
            if let Output::Words(rows) = output {
                rows.words.resize(started * rows.width, 0);
            }
        }
        if killed.contains(&true) {
            launched.outputs.push(("killed".to_owned(), Output::Flags(killed)));
        }
        Some(launched)
    }
}

/// Returns the surfaces that a draw stores into.
fn targets(draw: &Draw) -> Vec<Target> {
    let colors = draw.targets.iter().enumerate().map(|(number, target)| {
        let kind = format!("{:?}", target.format.numbers[0]).to_lowercase();
        let bits: Vec<String> =
            target.format.bits.iter().filter(|bits| **bits > 0).map(u8::to_string).collect();
        (
            format!("color{number}"),
            format!("{} {kind}", bits.join("_")),
            usize::from(target.format.bytes),
            &target.surface,
        )
    });
    let depth = draw.depth.iter().map(|target| {
        let format = format!("{:?}", target.format).to_lowercase();
        ("depth".to_owned(), format, target.format.bytes(), &target.surface)
    });
    colors
        .chain(depth)
        .map(|(name, format, bytes, surface)| Target {
            name,
            format,
            bytes,
            start: surface.start,
            pitch: surface.pitch,
            rows: surface.rows,
        })
        .collect()
}

/// Adds the launch of a recorded stage to a captured draw.
pub(crate) fn add(captured: &mut Option<Captured>, recording: Option<Recording>) {
    if let Some(captured) = captured {
        captured.launches.extend(recording.and_then(Recording::finish));
    }
}
