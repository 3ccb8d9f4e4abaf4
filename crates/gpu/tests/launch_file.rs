//! A launch that is written as a launch file is the same launch when it is read.

use std::any::Any;
use std::collections::BTreeMap;

use reconverge_gpu::launch_file::{LaunchText, Store};
use reconverge_isa::{Image, Isa, Program};
use reconverge_r700::chip::Chip;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{FetchProgram, Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_simt::texture::{Compare, Filter, Level, MipFilter, Sampler, Shape, Wrap};
use reconverge_simt::{Mode, Options};
use reconverge_workbench::choose::Asked;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::r700::launch::Waves;
use reconverge_workbench::values::Files;

/// Files in memory, by name.
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

/// A program that exports register 0 to colour 0, and ends.
fn program() -> Program {
    Program::from_words(vec![0xc000_0000, 0x9420_0688])
}

/// The launch that a text describes.
fn read(text: &str, shelf: &Shelf) -> Launch {
    let file = LaunchFile::parse(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let session = file.prepare(&Image::default(), &program(), shelf);
    let session = session.unwrap_or_else(|why| panic!("{why}\n{text}"));
    let waves: Box<dyn Any> = session.into_ready();
    waves.downcast::<Waves>().unwrap().launch
}

fn written(launch: &Launch) -> (String, Shelf) {
    let mut shelf = Shelf::default();
    let options = Options { mode: Mode::Lenient, watchdog: 77, ..Options::default() };
    let text = LaunchText::r700(&program(), launch, &options, &mut shelf).unwrap();
    (text.text(), shelf)
}

/// `count` words that are no numbers in particular: NaNs with payloads and denormals among them.
fn words(count: u32) -> Vec<u32> {
    (0..count).map(|word| word.wrapping_mul(0x9e37_79b9) ^ 0x7f80_0001).collect()
}

fn texels(count: u32) -> Vec<[u32; 4]> {
    words(4 * count).as_chunks::<4>().0.to_vec()
}

/// A launch with something in every field that a draw can set.
fn everything() -> Launch {
    let mut launch = Launch::new(Chip::named("RV610").unwrap(), Stage::Pixel, 20);
    (launch.num_gprs, launch.stack_size, launch.clause_temps) = (7, Some(3), 2);
    (launch.dx10_clamp, launch.prefer_vector) = (false, false);
    (launch.start, launch.base_vertex, launch.base_instance) = (1, 5, u32::MAX);
    launch.semantics = vec![3, 1];
    launch.covered = Some((0..20).map(|lane| lane % 3 != 0).collect());
    launch.scatter = words(9);
    launch.fetch_program = Some(FetchProgram { words: words(8), start: 2 });
    launch.inputs = vec![
        Input { gpr: 0, values: texels(20).into() },
        Input { gpr: 6, values: vec![[1, 0, 0, u32::MAX]; 20].into() },
    ];
    let all = &mut launch.resources;
    all.constant_buffers[0] = words(8);
    all.constant_buffers[3] = words(1001);
    all.constant_buffers[15] = vec![0, 1, 2];
    all.constant_file = vec![[1, 2, 3, 4], [5, 6, 7, 0x7fa0_0000]];
    all.loop_constants[31] = LoopConstant(0xff00_2003);
    all.booleans = 0x8000_0001;
    for (number, word2) in [(3, 0x0008_0c00), (160, 0xf8a0_1000), (161, 0x5c0f_ff00 & 0xfff7_ff00)] {
        let bytes: Vec<u8> = (0..33).collect();
        let resource = [0, bytes.len() as u32 - 1, word2, 0, 0, 0, 0];
        all.vertex_buffers.insert(number, VertexBuffer::from_resource(resource, bytes));
    }
    all.vertex_buffers.insert(9, VertexBuffer::constants(&[]));
    let level = |width, height, depth| Level { width, height, depth, texels: texels(width * height * depth) };
    let image = |shape, levels| reconverge_simt::texture::Image::new(shape, levels).unwrap();
    let one = 1f32.to_bits();
    for (unit, shape, levels, integer, last) in [
        (0, Shape::D1, vec![level(5, 1, 1), level(2, 1, 1)], false, Component::Word(one)),
        (1, Shape::D2, vec![level(6, 5, 1), level(3, 2, 1), level(1, 1, 1)], true, Component::Word(1)),
        (2, Shape::D3, vec![level(4, 4, 4), level(2, 2, 2)], false, Component::Texel(3)),
        (3, Shape::Cube, vec![level(4, 4, 6), level(2, 2, 6)], false, Component::Word(0)),
        (4, Shape::D1Array, vec![level(4, 1, 3), level(2, 1, 3)], false, Component::Texel(0)),
        (5, Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 3)], false, Component::Texel(1)),
    ] {
        let select = [Component::Texel(2), Component::Texel(1), Component::Texel(0), last];
        all.textures.insert(
            unit,
            Texture { image: image(shape, levels).into(), integer, fractions: !integer, select },
        );
    }
    let sampler = Sampler {
        wrap: [Wrap::Clamp, Wrap::MirrorOnceToBorder, Wrap::Repeat],
        mag: Filter::Linear,
        min: Filter::Nearest,
        mip: MipFilter::Linear,
        border: [0x7fc0_0001, 1, 0x8000_0000, 0],
        min_lod: 0.1,
        max_lod: 15.,
        lod_bias: -0.015_625,
        unnormalised: false,
    };
    all.samplers.insert(4, TextureSampler { sampler, compare: Compare::NotEqual });
    all.samplers.insert(17, TextureSampler::default());
    launch
}

#[test]
fn a_launch_that_is_written_is_read_as_the_same() {
    let launch = everything();
    let (text, shelf) = written(&launch);
    let read = read(&text, &shelf);
    assert_eq!(read.resources, launch.resources, "{text}");
    assert_eq!(read, launch, "{text}");
}

/// A launch of one lane and no resources: nothing of it is a file but the program.
#[test]
fn a_small_launch_is_all_in_its_text() {
    let mut launch = Launch::new(Chip::RV770, Stage::Vertex, 1);
    launch.inputs = vec![Input { gpr: 0, values: vec![[3, 0, 0, 1]].into() }];
    launch.resources.constant_buffers[0] = words(4);
    let (text, shelf) = written(&launch);
    assert_eq!(shelf.0.len(), 1, "{text}");
    assert!(text.contains("list = [[0x3, 0x0, 0x0, 0x1]]"), "{text}");
    assert_eq!(read(&text, &shelf), launch, "{text}");
}

#[test]
fn what_no_launch_file_can_say_is_named() {
    let mut shelf = Shelf::default();
    let mut refused = |change: fn(&mut Launch)| {
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 4);
        change(&mut launch);
        LaunchText::r700(&program(), &launch, &Options::default(), &mut shelf).unwrap_err()
    };
    assert!(refused(|launch| launch.first_lane = 4).starts_with("a first lane other than 0: "));
    assert!(refused(|launch| launch.call_limit = 1).starts_with("the limit of calls: "));
    let texels = refused(|launch| {
        let sampler = Sampler { unnormalised: true, ..Sampler::default() };
        launch.resources.samplers.insert(2, TextureSampler { sampler, compare: Compare::Never });
    });
    assert!(texels.starts_with("sampler 2 counts texels: "), "{texels}");
}

/// Two quads, the second of which covers the pixels of the first again.
fn pixels() -> (LaunchFile, Shelf) {
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 8);
    launch.inputs = vec![Input { gpr: 0, values: (0..8).map(|lane| [lane + 1, 0, 0, 0]).collect() }];
    let mut shelf = Shelf::default();
    let mut text = LaunchText::r700(&program(), &launch, &Options::default(), &mut shelf).unwrap();
    let quad = [[2, 4, 1], [3, 4, 1], [2, 5, 0], [3, 5, 1]];
    let second = [[2, 4, 1], [3, 4, 1], [2, 5, 0], [3, 5, 0]];
    text.pixels([quad, second].as_flattened(), &mut shelf).unwrap();
    let colors: Vec<[u32; 4]> = (0..8).map(|lane| [lane + 1, 0, 0, 0]).collect();
    text.expect("pixel0", &colors, &mut shelf).unwrap();
    (LaunchFile::parse(&text.text()).unwrap(), shelf)
}

#[test]
fn a_pixel_is_the_last_covered_fragment_and_its_quad_alone_gives_the_same() {
    for (x, y, fragment, lane, fragments) in
        [(2, 4, None, 4, 2), (2, 4, Some(0), 0, 2), (3, 5, None, 3, 1), (3, 4, Some(1), 5, 2)]
    {
        let (mut file, shelf) = pixels();
        let piece = file.choose(Asked::Pixel { x, y, fragment }, &shelf).unwrap();
        let quad = lane / 4 * 4;
        assert_eq!((piece.lane, piece.lanes, piece.fragments), (lane, quad..quad + 4, fragments));
        let image = Image { programs: vec![program()], ..Image::default() };
        let result = file.run(&image, &program(), &Options::default(), &shelf).unwrap();
        let (_, colors) = &result.outputs[0];
        assert_eq!(
            colors.words().step_by(4).collect::<Vec<_>>(),
            (quad as u32 + 1..quad as u32 + 5).collect::<Vec<_>>()
        );
        assert_eq!(result.mismatches, Vec::<String>::new());
    }
}

#[test]
fn a_pixel_or_vertex_that_is_not_there_is_named_with_what_is() {
    let (mut file, shelf) = pixels();
    let mut refused = |asked| file.choose(asked, &shelf).unwrap_err().to_string();
    let pixel = |x, y, fragment| Asked::Pixel { x, y, fragment };
    assert_eq!(
        refused(pixel(2, 5, None)),
        "pixel 2,5: no fragment covers it; x is from 2 to 3, y from 4 to 5"
    );
    assert_eq!(refused(pixel(2, 4, Some(2))), "pixel 2,4: 2 fragments cover it, from 0 on");
    let vertex = Asked::Vertex { index: 0, instance: 0 };
    assert_eq!(refused(vertex), "the launch does not say what its lanes are: it has no `vertices`");
    let launch = Launch::new(Chip::RV770, Stage::Vertex, 2);
    let mut shelf = Shelf::default();
    let mut text = LaunchText::r700(&program(), &launch, &Options::default(), &mut shelf).unwrap();
    text.vertices(&[[7, 0], [7, 1]], &mut shelf).unwrap();
    let mut file = LaunchFile::parse(&text.text()).unwrap();
    assert_eq!(file.choose(Asked::Vertex { index: 7, instance: 1 }, &shelf).unwrap().lanes, 1..2);
    let refused = file.choose(Asked::Vertex { index: 8, instance: 1 }, &shelf).unwrap_err().to_string();
    assert_eq!(refused, "vertex 8 of instance 1: no lane is it; indices are from 7 to 7");
}

/// The fields of textures that only R700 has.
#[test]
fn other_machines_refuse_what_is_of_r700_only() {
    let text =
        "isa = \"r500\"\nlanes = 1\n[[texture]]\nunit = 0\nsize = [1]\ntexels = [1.0]\nselect = \"xyz1\"\n";
    let file = LaunchFile::parse(text).unwrap();
    let program = Program::from_words(vec![0; 6]);
    let error = file.prepare(&Image::default(), &program, &Shelf::default());
    let error = error.err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some(&*format!("texture 0: `select` is not for {} programs", Isa::R500)));
}
