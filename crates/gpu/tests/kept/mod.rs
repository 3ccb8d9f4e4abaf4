//! Captured draws as launch files, which are opened and run as by the command line.

use std::sync::{Arc, Mutex};

use reconverge_gpu::Gpu;
use reconverge_gpu::launch_file::LaunchText;
use reconverge_gpu::observe::{Captured, ChipProgram, Lanes, Launched, Observer, Target};
use reconverge_isa::program::Stage;
use reconverge_simt::Options;
use reconverge_simt::vram::Vram;
use reconverge_workbench::choose::{Asked, Piece};
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::open::{Known, is_source, open};

use super::shelf::Shelf;

/// Contents of the surfaces after a draw.
type Contents = Vec<(Target, Vec<u8>)>;

/// Data that an observer has received.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) draws: Vec<Captured>,
    /// Contents of the surfaces after each draw.
    pub(crate) surfaces: Vec<(u64, Contents)>,
    pub(crate) programs: Vec<ChipProgram>,
}

/// Keeps draws, and replaces a word of fragment programs.
#[derive(Debug)]
struct Keeper {
    seen: Arc<Mutex<Seen>>,
    captures: bool,
    replaced: [u32; 2],
}

impl Observer for Keeper {
    fn program(&mut self, program: &mut ChipProgram) {
        let of_pixels = matches!(program.stage, Stage::Pixel | Stage::Fragment);
        let [old, new] = self.replaced;
        let words = program.words.iter_mut().filter(|word| of_pixels && old != new && **word == old);
        words.for_each(|word| *word = new);
        self.seen.lock().unwrap().programs.push(program.clone());
    }

    fn captures(&self, _draw: u64) -> bool {
        self.captures
    }

    fn draw(&mut self, draw: &Captured) {
        self.seen.lock().unwrap().draws.push(draw.clone());
    }

    fn looks(&self) -> bool {
        true
    }

    fn surfaces(&mut self, draw: u64, targets: &[Target], memory: Vram<'_>) {
        let content = |target: &Target| (target.clone(), target.content(memory));
        self.seen.lock().unwrap().surfaces.push((draw, targets.iter().map(content).collect()));
    }
}

/// Executes commands on a chip with an observer.
pub(crate) fn seen(
    gpu: &mut dyn Gpu,
    captures: bool,
    replaced: [u32; 2],
    execute: impl FnOnce(&mut dyn Gpu),
) -> Seen {
    let seen = Arc::new(Mutex::new(Seen::default()));
    gpu.observe(Box::new(Keeper { seen: Arc::clone(&seen), captures, replaced }));
    execute(gpu);
    let mut seen = seen.lock().unwrap();
    std::mem::take(&mut *seen)
}

/// A launch file with the files that it refers to.
pub(crate) struct Kept {
    file: LaunchFile,
    shelf: Shelf,
}

impl Kept {
    /// A captured launch as a launch file.
    pub(crate) fn new(launched: &Launched) -> Kept {
        let mut shelf = Shelf::default();
        let text = LaunchText::captured(launched, None, &mut shelf).unwrap().text();
        let file = LaunchFile::parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        Kept { file, shelf }
    }

    /// Reduces the launch to the quad of a pixel.
    fn pixel(&mut self, x: i32, y: i32) -> Piece {
        self.file.choose(Asked::Pixel { x, y, fragment: None }, &self.shelf).unwrap()
    }

    /// Runs the launch and checks all expected outputs. Returns an output, one row of `N` words per lane.
    pub(crate) fn run<const N: usize>(&self, output: &str) -> Vec<[u32; N]> {
        let name = self.file.common.program.clone().unwrap();
        let known = Known {
            isa: Some(self.file.isa),
            chip: self.file.common.chip.clone(),
            stage: self.file.stage().unwrap(),
            ..Known::default()
        };
        let opened = open(&self.shelf.0[&name], is_source(&name), &known).unwrap();
        let [program] = &opened.image.programs[..] else { panic!("{}", opened.image.programs.len()) };
        let result = self.file.run(&opened.image, program, &Options::default(), &self.shelf).unwrap();
        assert_eq!(result.mismatches, Vec::<String>::new());
        let (_, array) = result.outputs.iter().find(|(name, _)| name == output).unwrap();
        array.words().collect::<Vec<_>>().as_chunks::<N>().0.to_vec()
    }
}

/// Converts four fractions to bytes.
fn bytes(color: [u32; 4]) -> [u8; 4] {
    color.map(|word| (f32::from_bits(word).clamp(0., 1.) * 255. + 0.5) as u8)
}

/// Runs the launch of all fragments of a draw. `stored` returns the chip's pixel at a position. The pixels of a
/// single quad are the same.
pub(crate) fn every_pixel_is_that_of_its_launch(
    fragment: &Launched,
    output: &str,
    count: usize,
    stored: impl Fn(i32, i32) -> [u8; 4],
) {
    let colors: Vec<[u32; 4]> = Kept::new(fragment).run(output);
    let Lanes::Pixels(pixels) = &fragment.lanes else { panic!("no pixels") };
    assert_eq!(pixels.len(), colors.len());
    assert_eq!(pixels.iter().filter(|pixel| pixel[2] == 1).count(), count);
    for ([x, y, _], color) in pixels.iter().zip(&colors).filter(|(pixel, _)| pixel[2] == 1) {
        assert_eq!(stored(*x, *y), bytes(*color), "{x} {y}");
    }
    let mut quad = Kept::new(fragment);
    let piece = quad.pixel(130, 77);
    let colors: Vec<[u32; 4]> = quad.run(output);
    assert_eq!(colors.len(), 4);
    assert_eq!(stored(130, 77), bytes(colors[piece.lane - piece.lanes.start]));
}
