//! A draw that is captured: its launch files give what the chip has stored.

mod strip;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use reconverge_gpu::launch_file::{LaunchText, Store};
use reconverge_gpu::observe::{Captured, ChipProgram, Lanes, Launched, Machine, Observer, Output};
use reconverge_gpu::r600::R600;
use reconverge_gpu::{Gpu, Submission};
use reconverge_isa::Image;
use reconverge_isa::program::Stage;
use reconverge_r700::chip::Chip;
use reconverge_simt::Options;
use reconverge_workbench::choose::Asked;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::values::Files;
use strip::{BUFFERS, PIXEL, Stream, TARGET, memory, put, stream};

/// Keeps draws, and replaces a word of pixel programs.
#[derive(Debug)]
struct Keeper {
    draws: Arc<Mutex<Vec<Captured>>>,
    captures: bool,
    replaced: [u32; 2],
}

impl Observer for Keeper {
    fn program(&mut self, program: &mut ChipProgram) {
        let of_pixels = program.stage == Stage::Pixel;
        program
            .words
            .iter_mut()
            .filter(|word| of_pixels && **word == self.replaced[0])
            .for_each(|word| *word = self.replaced[1]);
    }

    fn captures(&self) -> bool {
        self.captures
    }

    fn draw(&mut self, draw: &Captured) {
        self.draws.lock().unwrap().push(draw.clone());
    }
}

/// Submits a stream on a chip that is looked at.
fn submitted(memory: &mut [u8], stream: &Stream, captures: bool, replaced: [u32; 2]) -> Vec<Captured> {
    let draws = Arc::default();
    let mut gpu = R600::new(Chip::RV770);
    assert!(gpu.observe(Box::new(Keeper { draws: Arc::clone(&draws), captures, replaced })));
    let _ = gpu.submit(memory, &Submission { commands: &stream.0, buffers: &BUFFERS });
    draws.lock().unwrap().clone()
}

#[derive(Default)]
struct Shelf(BTreeMap<String, Vec<u8>>);

impl Store for Shelf {
    fn put(&mut self, kind: &str, ending: &str, bytes: Vec<u8>) -> Result<String, String> {
        let name = format!("{kind}-{}.{ending}", self.0.len());
        self.0.insert(name.clone(), bytes);
        Ok(name)
    }
}

impl Files for Shelf {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.get(name).cloned().ok_or_else(|| "no such file".to_owned())
    }
}

/// A captured launch as a launch file.
fn file(launched: &Launched) -> (LaunchFile, Shelf) {
    let mut shelf = Shelf::default();
    let Machine::R700(launch) = &launched.machine;
    let mut text = LaunchText::r700(&launched.program, launch, &launched.options, &mut shelf).unwrap();
    match &launched.lanes {
        Lanes::Pixels(pixels) => text.pixels(pixels, &mut shelf).unwrap(),
        Lanes::Vertices(vertices) => text.vertices(vertices, &mut shelf).unwrap(),
    }
    for (name, output) in &launched.outputs {
        if let Output::Vectors(values) = output {
            text.expect(name, values, &mut shelf).unwrap();
        }
    }
    (LaunchFile::parse(&text.text()).unwrap(), shelf)
}

/// What a launch file leaves as an output, four words a lane.
fn run(file: &LaunchFile, shelf: &Shelf, launched: &Launched, output: &str) -> Vec<[u32; 4]> {
    let image = Image { programs: vec![launched.program.clone()], ..Image::default() };
    let result = file.run(&image, &launched.program, &Options::default(), shelf).unwrap();
    assert_eq!(result.mismatches, Vec::<String>::new());
    let (_, array) = result.outputs.iter().find(|(name, _)| name == output).unwrap();
    array.words().collect::<Vec<_>>().as_chunks::<4>().0.to_vec()
}

fn stored(memory: &[u8], x: i32, y: i32) -> [u8; 4] {
    let at = TARGET.start + (y as usize * 256 + x as usize) * 4;
    memory[at..at + 4].try_into().unwrap()
}

/// All 62,500 pixels: several batches of the rasteriser are one launch.
#[test]
fn the_launch_of_the_fragments_gives_every_stored_pixel() {
    let mut memory = memory();
    let draws = submitted(&mut memory, &stream(), true, [0, 0]);
    let [draw] = &draws[..] else { panic!("{} draws", draws.len()) };
    assert_eq!((draw.number, &*draw.primitive, draw.indices, &draw.trap), (1, "TriangleStrip", 4, &None));
    assert_eq!(draw.targets[0].format, "8_8_8_8 unorm");
    let [vertex, fragment] = &draw.launches[..] else { panic!("{} launches", draw.launches.len()) };

    let (vertices, shelf) = file(vertex);
    let positions = run(&vertices, &shelf, vertex, "pos60");
    assert_eq!(positions[3].map(f32::from_bits), [1., 1., 0., 1.]);

    let (fragments, shelf) = file(fragment);
    let colors = run(&fragments, &shelf, fragment, "pixel0");
    let Lanes::Pixels(pixels) = &fragment.lanes else { panic!("pixels") };
    assert_eq!(pixels.iter().filter(|pixel| pixel[2] == 1).count(), 62_500);
    assert!(pixels.len() > 1 << 15 && pixels.len() == colors.len());
    for ([x, y, _], color) in pixels.iter().zip(&colors).filter(|(pixel, _)| pixel[2] == 1) {
        let bytes = color.map(|word| (f32::from_bits(word).clamp(0., 1.) * 255. + 0.5) as u8);
        assert_eq!(stored(&memory, *x, *y), bytes, "{x} {y}");
    }
}

#[test]
fn a_quad_alone_gives_the_pixel_that_the_draw_stored() {
    let mut memory = memory();
    let draws = submitted(&mut memory, &stream(), true, [0, 0]);
    let fragment = &draws[0].launches[1];
    let (mut fragments, shelf) = file(fragment);
    let piece = fragments.choose(Asked::Pixel { x: 130, y: 77, fragment: None }, &shelf).unwrap();
    let colors = run(&fragments, &shelf, fragment, "pixel0");
    assert_eq!(colors.len(), 4);
    let color = colors[piece.lane - piece.lanes.start];
    let bytes = color.map(|word| (f32::from_bits(word) * 255. + 0.5) as u8);
    assert_eq!(stored(&memory, 130, 77), bytes);
}

/// Words are replaced before they are decoded; what is captured has the new ones.
#[test]
fn a_replaced_word_runs_and_is_captured() {
    let mut memory = memory();
    // EXPORT_DONE of R0.xyzw, and of R0.zyxw.
    let [old, new] = [0x9420_0688, 0x9420_060a];
    let draws = submitted(&mut memory, &stream(), true, [old, new]);
    let [r, g, b, a] = stored(&memory, 200, 20);
    assert_eq!(([r, a], b > 200, g < 30), ([128, 255], true, true));
    assert!(draws[0].launches[1].program.words.contains(&new));
    // Without it nothing is captured, and words are replaced all the same.
    let mut memory = strip::memory();
    assert_eq!(submitted(&mut memory, &stream(), false, [old, new]).len(), 0);
    assert_eq!(stored(&memory, 200, 20)[0], 128);
}

#[test]
fn a_draw_that_traps_is_captured_with_what_it_started_from() {
    let mut memory = memory();
    // LOOP_START_DX10, and LOOP_END at once.
    put(&mut memory, PIXEL.start, &[2, 0x8300_0000, 1, 0x8280_0000, 0, 0x8020_0000]);
    let draws = submitted(&mut memory, &stream(), true, [0, 0]);
    assert!(draws[0].trap.as_ref().is_some_and(|trap| trap.starts_with("draw 1: pixel shader: ")));
    let fragment = &draws[0].launches[1];
    assert_eq!(fragment.outputs, []);
    let Machine::R700(launch) = &fragment.machine;
    assert_eq!((launch.lanes, launch.inputs[0].values.len()), (1 << 14, 1 << 14));
}
