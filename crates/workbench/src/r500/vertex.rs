//! Launches of R500's vertex unit. Lanes are vertices. The inputs are values of input registers, and the outputs are
//! the output registers.

use std::ops::Range;
use std::sync::Arc;

use reconverge_r500::pvs::cause::Cause;
use reconverge_r500::pvs::group::{Group, WIDTH};
use reconverge_r500::pvs::inst::{ALT_TEMPORARIES, INPUTS, OUTPUTS, TEMPORARIES};
use reconverge_r500::pvs::launch::{Environment, Input, Launch};
use reconverge_r500::pvs::outputs;
use reconverge_r500::pvs::run::{Run, run_watched};
use reconverge_r500::pvs::setup::Setup;
use reconverge_simt::fidelity::Report;
use reconverge_simt::observe::Dynamic;
use reconverge_simt::{Event, FlowView, Lane, Options, Statistics, Watch};
use serde::Deserialize;

use crate::array::{Array, Dtype};
use crate::error::{self, Error};
use crate::request::{Request, by_lane};
use crate::session::{EndedGroups, Inspect, Outcome, Ready, Register, RegisterClass, Session, Steps};
use crate::values::Values;

/// Initial values of an input register. The stream unit writes initial values before the program starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeValues {
    /// Number of the input register.
    pub number: u8,
    /// One to four numbers for each vertex, or one to four numbers for all vertices together.
    pub values: Values,
}

/// Returns a session that is ready to run a vertex program.
pub(super) fn prepare(
    request: &Request<'_>,
    attributes: &[AttributeValues],
    constants: Vec<(u8, [u32; 4])>,
) -> Result<Session, Error> {
    let setup = Setup::new(request.program).map_err(|error| Error::Machine(error.to_string()))?;
    let inputs = attributes.iter().map(|of| (of.number, format!("attribute i{}", of.number), &of.values));
    let input = |register, values: Vec<_>| Input { register, values: values.into() };
    let (vertices, inputs) = by_lane(request, false, inputs, input)?;
    let launch = Launch { environment: Environment { constants }.into(), vertices, inputs };
    Ok(Session::new(Vertices { setup: Arc::new(setup), launch }))
}

impl error::Cause for Cause {}

/// A launch whose lanes are vertices.
#[derive(Clone, Debug)]
struct Vertices {
    setup: Arc<Setup>,
    launch: Launch,
}

impl Ready for Vertices {
    fn copy(&self) -> Box<dyn Ready> {
        Box::new(self.clone())
    }

    fn run(self: Box<Self>, options: &Options, watch: Watch<'_>) -> Result<Box<dyn Outcome>, Error> {
        Ok(Box::new(VerticesOutcome(run_watched(&self.setup, &self.launch, options, watch)?)))
    }

    /// Numbers the vertices of the returned launch from 0. The new numbers do not change results, because no
    /// instruction reads the number of a vertex.
    fn piece(&self, lanes: Range<usize>) -> Option<Box<dyn Ready>> {
        if lanes.is_empty() || lanes.end > self.launch.vertices {
            return None;
        }
        let mut launch = self.launch.clone();
        launch.vertices = lanes.len();
        for input in &mut launch.inputs {
            input.values = input.values.get(lanes.clone()).unwrap_or(&[]).into();
        }
        Some(Box::new(Vertices { setup: Arc::clone(&self.setup), launch }))
    }

    fn start(&self, options: &Options) -> Result<Box<dyn Steps>, Error> {
        let run = Run::new(&self.setup, self.launch.clone(), options);
        let run = run.map_err(|error| Error::Machine(error.to_string()))?;
        Ok(Box::new(VertexSteps(run, EndedGroups::default())))
    }
}

/// The results of a launch over vertices.
struct VerticesOutcome(outputs::Outcome);

impl Outcome for VerticesOutcome {
    fn statistics(&self) -> Statistics {
        self.0.statistics
    }

    fn report(&self) -> &Report {
        &self.0.report
    }

    fn outputs(&self) -> Vec<(String, Array)> {
        let outputs = &self.0.outputs;
        let array = |output: usize| {
            let words = outputs.values(output)?.iter().copied().flatten();
            Some((format!("o{output}"), Array::from_words(Dtype::F32, vec![outputs.vertices(), 4], words)))
        };
        (0..OUTPUTS).filter_map(array).collect()
    }
}

/// A launch over vertices that is executed step by step.
#[derive(Clone)]
struct VertexSteps(Run, EndedGroups<Group>);

impl VertexSteps {
    /// Returns a running group, or an ended group whose state is still stored.
    fn group(&self, number: usize) -> Option<&Group> {
        match self.current() == Some(number) {
            true => Some(self.0.group()),
            false => self.1.of(number),
        }
    }
}

/// Returns the index of a register's channel among the registers of a group.
fn place(Register { class, number, channel }: Register) -> Option<usize> {
    let number = u8::try_from(number).ok()?;
    Group::register(class, number, channel).filter(|_| channel < 4)
}

impl Steps for VertexSteps {
    fn copy(&self) -> Box<dyn Steps> {
        Box::new(self.clone())
    }

    fn shape(&self) -> (usize, usize) {
        (self.0.launch().vertices, WIDTH)
    }

    fn current(&self) -> Option<usize> {
        self.0.first().map(|first| first / WIDTH)
    }

    fn view(&self, group: usize) -> Option<&dyn FlowView> {
        self.group(group).map(|group| group.flow() as &dyn FlowView)
    }

    fn step(&mut self, observer: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let number = self.current();
        let step = self.0.step_watched(Watch::of(&mut Dynamic(observer)));
        if let (Some(number), Some(group)) = (number, self.0.take_ended()) {
            self.1.keep(number, group);
        }
        step.map(drop).map_err(|trap| self.0.locate(trap).into())
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn outcome(&self) -> Box<dyn Outcome> {
        Box::new(VerticesOutcome(self.0.outcome().clone()))
    }
}

/// This launch does not have memory spaces. Vertices read only inputs and constants.
impl Inspect for VertexSteps {
    fn registers(&self) -> Vec<RegisterClass> {
        // In events, one sequence of numbers covers the registers of all register files. In this sequence, the register
        // files have the order of the list below.
        let mut first = 0;
        let mut class = |name, count| {
            let class = RegisterClass { name, count, channels: "xyzw", first };
            first += 4 * count as u32;
            class
        };
        vec![class("t", TEMPORARIES), class("at", ALT_TEMPORARIES), class("i", INPUTS), class("o", OUTPUTS)]
    }

    fn read(&self, group: usize, register: Register) -> Option<Vec<u32>> {
        let (place, state) = (place(register)?, self.group(group)?);
        (0..self.lanes(group).len() as u8).map(|lane| state.value(place, Lane(lane))).collect()
    }

    fn set(&mut self, group: usize, register: Register, lane: Lane, value: u32) -> bool {
        let fits = self.current() == Some(group) && lane.index() < self.lanes(group).len();
        let place = place(register).filter(|_| fits && register.class != "o");
        place.is_some_and(|place| self.0.group_mut().set_value(place, lane, value))
    }
}
