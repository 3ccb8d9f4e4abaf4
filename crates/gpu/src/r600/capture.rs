//! Draws for an [`Observer`](crate::observe::Observer): what each stage ran, batch after batch.

use reconverge_r700::launch::Input;
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::outcome::Outcome;
use reconverge_raster::draw::{Draw, Fragments};

use super::shader::Shader;
use crate::observe::{Lanes, Launched, MOST_LANES, Machine, Output, Target};

/// A stage that is captured while it runs.
pub(super) struct Recording {
    launched: Launched,
    launch: reconverge_r700::launch::Launch,
    /// Registers at the start, of all batches so far.
    inputs: Vec<(u8, Vec<[u32; 4]>)>,
}

impl Recording {
    /// Of vertices, each with its index and its instance.
    pub(super) fn vertices(shader: &Shader, vertices: &[(u32, u32)]) -> Recording {
        let vertices = vertices.iter().map(|(index, instance)| [*index, *instance]).collect();
        Recording::new(shader, "vertex", Lanes::Vertices(vertices), false)
    }

    /// Of the fragments of a draw, none so far.
    pub(super) fn fragments(shader: &Shader, draw: &Draw) -> Recording {
        let integers = draw.targets.iter().any(|target| target.format.numbers[0].is_integer());
        Recording::new(shader, "fragment", Lanes::Pixels(Vec::new()), integers)
    }

    fn new(shader: &Shader, stage: &'static str, lanes: Lanes, integers: bool) -> Recording {
        let mut launch = shader.launch().clone();
        launch.resources.vertex_buffers.values_mut().for_each(shorten);
        let launched = Launched {
            stage,
            program: shader.program().clone(),
            machine: Machine::R700(Box::new(launch.clone())),
            options: shader.options(),
            lanes,
            outputs: Vec::new(),
            integers,
            too_large: None,
        };
        Recording { launched, launch, inputs: Vec::new() }
    }

    /// Takes what more lanes start from; `fragments` says which pixels they are.
    pub(super) fn start(
        &mut self,
        lanes: usize,
        inputs: &[(u8, Vec<[u32; 4]>)],
        fragments: Option<&Fragments>,
    ) {
        let all = self.launch.lanes + lanes;
        if self.launched.too_large.is_some() || all > MOST_LANES {
            self.launched.too_large = Some(format!("more than {MOST_LANES} lanes"));
            return;
        }
        self.launch.lanes = all;
        for (gpr, values) in inputs {
            match self.inputs.iter_mut().find(|(known, _)| known == gpr) {
                Some((_, before)) => before.extend_from_slice(values),
                None => self.inputs.push((*gpr, values.clone())),
            }
        }
        if let (Lanes::Pixels(pixels), Some(fragments)) = (&mut self.launched.lanes, fragments) {
            let places = fragments.positions.iter().zip(&fragments.covered);
            pixels.extend(places.map(|([x, y, ..], covered)| [*x as i32, *y as i32, i32::from(*covered)]));
        }
    }

    /// Takes what the lanes that were started last have left.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        if self.launched.too_large.is_some() {
            return;
        }
        let before = self.launch.lanes - outcome.killed.len();
        let outputs = &mut self.launched.outputs;
        let mut place = |name: &str, empty: Output| match outputs.iter().position(|(known, _)| known == name)
        {
            Some(place) => place,
            None => {
                outputs.push((name.to_owned(), empty));
                outputs.len() - 1
            }
        };
        let exports: Vec<usize> =
            outcome.exports.iter().map(|export| place(&export.name(), Output::Vectors(Vec::new()))).collect();
        let killed = place("killed", Output::Flags(Vec::new()));
        for (place, export) in exports.into_iter().zip(&outcome.exports) {
            if let Output::Vectors(values) = &mut outputs[place].1 {
                // A batch that did not write it has zeros.
                values.resize(before, [0; 4]);
                values.extend_from_slice(&export.values);
            }
        }
        if let Output::Flags(flags) = &mut outputs[killed].1 {
            flags.extend_from_slice(&outcome.killed);
        }
    }

    /// What was captured; `None` if nothing ran.
    pub(super) fn finish(self) -> Option<Launched> {
        let Recording { mut launched, mut launch, inputs } = self;
        if launch.lanes == 0 {
            return None;
        }
        let lanes = launch.lanes;
        let inputs = inputs.into_iter().map(|(gpr, values)| Input { gpr, values: values.into() });
        launch.inputs = inputs.collect();
        launched.machine = Machine::R700(Box::new(launch));
        // What a trap has cut short is no result.
        let whole = matches!(launched.outputs.iter().find(|(name, _)| name == "killed"),
            Some((_, Output::Flags(flags))) if flags.len() == lanes);
        match whole {
            true => launched.outputs.iter_mut().for_each(|(_, output)| {
                if let Output::Vectors(values) = output {
                    values.resize(lanes, [0; 4]);
                }
            }),
            false => launched.outputs.clear(),
        }
        launched
            .outputs
            .retain(|(_, output)| !matches!(output, Output::Flags(flags) if !flags.contains(&true)));
        Some(launched)
    }
}

/// Drops zeros at the end of a buffer, which reads as zero behind its end: drivers put the vertices of many draws into
/// one large buffer. An element, of 16 bytes at most, that is not zero stays whole.
fn shorten(buffer: &mut VertexBuffer) {
    const KEPT: usize = 16;
    if !buffer.nan_outside {
        let used = buffer.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        buffer.bytes.truncate(used + KEPT);
    }
}

/// What a draw stores into.
pub(super) fn targets(draw: &Draw) -> Vec<Target> {
    let colors = draw.targets.iter().enumerate().map(|(number, target)| {
        let kind = format!("{:?}", target.format.numbers[0]).to_lowercase();
        let bits: Vec<String> =
            target.format.bits.iter().filter(|bits| **bits > 0).map(u8::to_string).collect();
        (format!("color{number}"), format!("{} {kind}", bits.join("_")), &target.surface)
    });
    let depth = draw
        .depth
        .iter()
        .map(|target| ("depth".to_owned(), format!("{:?}", target.format).to_lowercase(), &target.surface));
    colors
        .chain(depth)
        .map(|(name, format, surface)| Target {
            name,
            format,
            start: surface.start,
            pitch: surface.pitch,
            rows: surface.rows,
        })
        .collect()
}
