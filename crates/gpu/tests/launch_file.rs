//! A launch that is written to a launch file and read again is the same launch.

mod shelf;

use std::any::Any;

use reconverge_gpu::launch_file::LaunchText;
use reconverge_gpu::observe::{ChipProgram, Lanes, Launched, Machine, Output, Rows};
use reconverge_isa::program::Stage as Any_;
use reconverge_isa::{Image, Isa, Program};
use reconverge_r500::launch as r500;
use reconverge_r700::chip::Chip;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::launch::{FetchProgram, Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::texture::{Component, Texture, TextureSampler};
use reconverge_simt::texture::{Compare, Filter, Level, MipFilter, Sampler, Shape, Wrap};
use reconverge_simt::{Mode, Options};
use reconverge_tesla::launch::{self as tesla, Varying};
use reconverge_tesla::texture as tesla_texture;
use reconverge_workbench::choose::Asked;
use reconverge_workbench::launch::LaunchFile;
use reconverge_workbench::r500::launch::Pixels;
use reconverge_workbench::r700::launch::Waves;
use reconverge_workbench::tesla::launch::Grid;
use shelf::Shelf;

/// Returns a program of R700 that exports register 0 to colour 0, and ends.
fn program() -> ChipProgram {
    of_r700(Any_::Pixel)
}

fn of_r700(stage: Any_) -> ChipProgram {
    let words = vec![0xc000_0000, 0x9420_0688];
    ChipProgram { isa: Isa::R700, chip: "RV610", stage, words, base: 0, state: Vec::new() }
}

/// Returns a launch file after it is read and prepared.
fn ready<T: Any>(text: &str, program: &ChipProgram, shelf: &Shelf) -> T {
    let file = LaunchFile::parse(text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let session = file.prepare(&Image::default(), &program.program(), shelf);
    let session = session.unwrap_or_else(|why| panic!("{why}\n{text}"));
    let ready: Box<dyn Any> = session.into_ready();
    *ready.downcast::<T>().unwrap()
}

/// Returns the launch of R700 that a text describes.
fn read(text: &str, shelf: &Shelf) -> Launch {
    ready::<Waves>(text, &program(), shelf).launch
}

fn text_of(program: &ChipProgram, machine: &Machine, shelf: &mut Shelf) -> Result<String, String> {
    let options = Options { mode: Mode::Lenient, watchdog: 77, ..Options::default() };
    Ok(LaunchText::of(program, machine, &options, shelf)?.text())
}

fn written(launch: &Launch) -> (String, Shelf) {
    let mut shelf = Shelf::default();
    let stage = if launch.environment.stage == Stage::Vertex { Any_::Vertex } else { Any_::Pixel };
    let program = ChipProgram { chip: launch.environment.chip.name, ..of_r700(stage) };
    let text = text_of(&program, &Machine::R700(Box::new(launch.clone())), &mut shelf).unwrap();
    (text, shelf)
}

/// Returns `count` arbitrary words, including NaNs with payloads and denormals.
fn words(count: u32) -> Vec<u32> {
    (0..count).map(|word| word.wrapping_mul(0x9e37_79b9) ^ 0x7f80_0001).collect()
}

fn texels(count: u32) -> Vec<[u32; 4]> {
    words(4 * count).as_chunks::<4>().0.to_vec()
}

/// Returns a launch with a value in every field that a draw can set.
fn everything() -> Launch {
    let mut launch = Launch::new(Chip::named("RV610").unwrap(), Stage::Pixel, 20);
    let environment = launch.environment_mut();
    (environment.num_gprs, environment.stack_size, environment.clause_temps) = (7, Some(3), 2);
    (environment.dx10_clamp, environment.prefer_vector) = (false, false);
    (environment.start, environment.base_vertex, environment.base_instance) = (1, 5, u32::MAX);
    environment.semantics = vec![3, 1];
    environment.fetch_program = Some(FetchProgram { words: words(8).into(), start: 2 });
    launch.covered = Some((0..20).map(|lane| lane % 3 != 0).collect());
    launch.scatter = words(9);
    launch.inputs = vec![
        Input { gpr: 0, values: texels(20).into() },
        Input { gpr: 6, values: vec![[1, 0, 0, u32::MAX]; 20].into() },
    ];
    let all = &mut launch.environment_mut().resources;
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
    let level =
        |width, height, depth| Level { width, height, depth, texels: texels(width * height * depth).into() };
    let image = |shape, levels| reconverge_simt::texture::Image::new(shape, levels).unwrap();
    let one = 1f32.to_bits();
    for (unit, shape, levels, integer, last) in [
        (0, Shape::D1, vec![level(5, 1, 1), level(2, 1, 1)], false, Component::Word(one)),
        (1, Shape::D2, vec![level(6, 5, 1), level(3, 2, 1), level(1, 1, 1)], true, Component::Word(1)),
        (2, Shape::D3, vec![level(4, 4, 4), level(2, 2, 2)], false, Component::Texel(3)),
        (3, Shape::Cube, vec![level(4, 4, 6), level(2, 2, 6)], false, Component::Word(0)),
        (4, Shape::D1Array, vec![level(4, 1, 3), level(2, 1, 3)], false, Component::Texel(0)),
        (5, Shape::D2Array, vec![level(4, 4, 3), level(2, 2, 3)], false, Component::Texel(1)),
        (6, Shape::CubeArray, vec![level(4, 4, 12), level(2, 2, 12)], false, Component::Texel(1)),
    ] {
        let select = [Component::Texel(2), Component::Texel(1), Component::Texel(0), last];
        all.textures.insert(
            unit,
            Texture { integer, fractions: !integer, select, ..Texture::floats(image(shape, levels)) },
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
        unnormalised: true,
        seamless: true,
        anisotropy: 6,
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
    assert_eq!(read.environment.resources, launch.environment.resources, "{text}");
    assert_eq!(read, launch, "{text}");
}

/// A launch of one lane without resources: its only file is the program.
#[test]
fn a_small_launch_is_all_in_its_text() {
    let mut launch = Launch::new(Chip::RV770, Stage::Vertex, 1);
    launch.inputs = vec![Input { gpr: 0, values: vec![[3, 0, 0, 1]].into() }];
    launch.environment_mut().resources.constant_buffers[0] = words(4);
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
        text_of(&program(), &Machine::R700(Box::new(launch)), &mut shelf).unwrap_err()
    };
    assert!(refused(|launch| launch.first_lane = 4).ends_with("cannot describe a first lane other than 0"));
    assert!(
        refused(|launch| launch.environment_mut().call_limit = 1)
            .ends_with("cannot describe the limit of calls")
    );
    let scratch = refused(|launch| launch.environment_mut().scratch_dwords += 1);
    assert!(scratch.ends_with("cannot describe the size of scratch memory"), "{scratch}");
}

/// Returns a launch of these lanes, in which lane n has the result n + 1.
fn numbered(lanes: Lanes) -> (LaunchFile, Shelf) {
    let count = match &lanes {
        Lanes::Pixels(pixels) => pixels.len() as u32,
        Lanes::Vertices(vertices) => vertices.len() as u32,
        Lanes::Threads(count) => *count as u32,
    };
    let colors: Vec<[u32; 4]> = (0..count).map(|lane| [lane + 1, 0, 0, 0]).collect();
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, count as usize);
    launch.inputs = vec![Input { gpr: 0, values: colors.clone().into() }];
    let words = colors.as_flattened().to_vec();
    let launched = Launched {
        stage: "fragment",
        program: program(),
        machine: Machine::R700(Box::new(launch)),
        options: Options::default(),
        lanes,
        outputs: vec![("pixel0".to_owned(), Output::Words(Rows { width: 4, words }))],
        integers: false,
        too_large: None,
    };
    let mut shelf = Shelf::default();
    let text = LaunchText::captured(&launched, None, &mut shelf).unwrap();
    (LaunchFile::parse(&text.text()).unwrap(), shelf)
}

/// Returns two quads. The second one covers the pixels of the first again.
fn pixels() -> (LaunchFile, Shelf) {
    let quad = [[2, 4, 1], [3, 4, 1], [2, 5, 0], [3, 5, 1]];
    let second = [[2, 4, 1], [3, 4, 1], [2, 5, 0], [3, 5, 0]];
    numbered(Lanes::Pixels([quad, second].as_flattened().to_vec()))
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
        let program = program().program();
        let image = Image { programs: vec![program.clone()], ..Image::default() };
        let result = file.run(&image, &program, &Options::default(), &shelf).unwrap();
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
        "pixel 2,5: no fragment covers this pixel; x is from 2 to 3, y from 4 to 5"
    );
    assert_eq!(refused(pixel(2, 4, Some(2))), "pixel 2,4: 2 fragments cover this pixel, numbered from 0");
    let vertex = Asked::Vertex { index: 0, instance: 0 };
    assert_eq!(
        refused(vertex),
        "missing `vertices` in the launch; this field states the positions of the lanes"
    );
    let (mut file, shelf) = numbered(Lanes::Vertices(vec![[7, 0], [7, 1]]));
    assert_eq!(file.choose(Asked::Vertex { index: 7, instance: 1 }, &shelf).unwrap().lanes, 1..2);
    let refused = file.choose(Asked::Vertex { index: 8, instance: 1 }, &shelf).unwrap_err().to_string();
    assert_eq!(refused, "vertex 8 of instance 1: not found; indices are from 7 to 7");
}

/// The fields of textures that R500 does not have.
#[test]
fn r500_refuses_what_is_of_the_other_machines() {
    let text =
        "isa = \"r500\"\nlanes = 1\n[[texture]]\nunit = 0\nsize = [1]\ntexels = [1.0]\nselect = \"xyz1\"\n";
    let file = LaunchFile::parse(text).unwrap();
    let program = Program::from_words(vec![0; 6]);
    let error = file.prepare(&Image::default(), &program, &Shelf::default());
    let error = error.err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some(&*format!("texture 0: `select` is not for {} programs", Isa::R500)));
}

/// Returns a sampler with a value in every field.
fn sampler() -> Sampler {
    Sampler {
        wrap: [Wrap::Clamp, Wrap::MirrorOnceToBorder, Wrap::Repeat],
        mag: Filter::Linear,
        min: Filter::Nearest,
        mip: MipFilter::Linear,
        border: [0x7fc0_0001, 1, 0x8000_0000, 0],
        min_lod: 0.1,
        max_lod: 15.,
        lod_bias: -0.015_625,
        unnormalised: true,
        seamless: true,
        anisotropy: 6,
    }
}

fn image() -> reconverge_simt::texture::Image {
    let level = |width, height| Level { width, height, depth: 1, texels: texels(width * height).into() };
    reconverge_simt::texture::Image::new(Shape::D2, vec![level(6, 5), level(3, 2), level(1, 1)]).unwrap()
}

#[test]
fn a_launch_of_r500_that_is_written_is_read_as_the_same() {
    let launch = r500::Launch {
        lanes: 20,
        inputs: vec![r500::Input { temp: 3, values: texels(20).into() }],
        environment: r500::Environment {
            constants: vec![(0, [1, 2, 3, 0x7fa0_0000]), (255, [0, 0, 0, 7])],
            textures: vec![
                (0, reconverge_r500::texture::Texture { image: image().into(), sampler: sampler() }),
                (9, reconverge_r500::texture::Texture { image: image().into(), sampler: Sampler::default() }),
            ],
            hardware: r500::Hardware { group_width: 48, ..r500::Hardware::default() },
        }
        .into(),
        columns: Vec::new(),
    };
    let program = ChipProgram {
        isa: Isa::R500,
        chip: "R580",
        stage: Any_::Fragment,
        words: vec![0x0007_8005, 0x0802_0000, 0x0802_00a8, 0x00db_0420, 0x00c1_0000, 0x3039_0000],
        base: 4,
        state: vec![("US_CODE_OFFSET".to_owned(), 4)],
    };
    let mut shelf = Shelf::default();
    let text = text_of(&program, &Machine::R500(Box::new(launch.clone())), &mut shelf).unwrap();
    let read = ready::<Pixels>(&text, &program, &shelf).launch;
    assert_eq!((read.lanes, &read.inputs), (launch.lanes, &launch.inputs), "{text}");
    let (mut read, launch) = (r500::Environment::clone(&read.environment), launch.environment);
    // The sizes of stacks are the recommended ones, whether they are stated or not.
    read.hardware.limits = None;
    assert_eq!((&read.constants, read.hardware), (&launch.constants, launch.hardware), "{text}");
    assert_eq!(read.textures, launch.textures, "{text}");
}

#[test]
fn a_launch_of_tesla_that_is_written_is_read_as_the_same() {
    let mut setup = tesla::Setup::new(reconverge_tesla::inst::Chip::Gt215);
    (setup.registers, setup.local_bytes, setup.modes.mul_zero_wins) = (9, 64, true);
    assert!(setup.constants.place(0, 0, &[1; 200]) && setup.constants.place(15, 4, &[9, 0, 8]));
    let share = tesla_texture::Component::Share;
    let components = [share, tesla_texture::Component::Zero, share, tesla_texture::Component::One];
    let compared = tesla_texture::Compared { components, clamps: true };
    let mut texture = tesla_texture::Texture::new(image().into(), true);
    texture.compared = compared;
    setup.textures.textures.insert(5, texture);
    let compare = Some(Compare::Less);
    setup.textures.samplers.insert(2, tesla_texture::TextureSampler { sampler: sampler(), compare });
    setup.textures.samplers.insert(5, tesla_texture::TextureSampler::default());
    let mut launch = tesla::Fragment::new(setup, 20);
    (launch.helpers, launch.kept) = (true, Some(5));
    launch.covered = (0..20).map(|lane| lane % 3 != 0).collect();
    launch.varyings = [(0, words(20)), (255, words(20))]
        .map(|(word, values)| (word, Varying::Lanes(values.into())))
        .into_iter()
        .collect();
    let program = ChipProgram {
        isa: Isa::Tesla,
        chip: "GT215",
        stage: Any_::Fragment,
        words: vec![0xf000_0001, 0xe000_0001],
        base: 0x40,
        state: Vec::new(),
    };
    let mut shelf = Shelf::default();
    let text = text_of(&program, &Machine::TeslaFragment(Box::new(launch.clone())), &mut shelf).unwrap();
    let Grid { launch: read, .. } = ready::<Grid>(&text, &program, &shelf);
    let tesla::Launch::Fragment(read) = read else { panic!("{text}") };
    let (setup, known) = (&read.setup, &launch.setup);
    assert_eq!((setup.registers, setup.local_bytes, setup.code_base), (9, 64, 0x40), "{text}");
    assert_eq!((setup.chip, setup.modes), (known.chip, known.modes), "{text}");
    // Zeros at the end of a bank equal the words past its end.
    assert!(setup.constants.bank(0).starts_with(&[1; 200]) && setup.constants.read(0, 200, 4) == 0);
    assert_eq!(setup.constants.read(15, 4, 4), 0x0008_0009);
    assert_eq!(setup.textures.samplers, known.textures.samplers, "{text}");
    let (read_texture, texture) = (&setup.textures.textures[&5], &known.textures.textures[&5]);
    assert_eq!((read_texture.integer, read_texture.compared), (true, texture.compared), "{text}");
    assert_eq!(read_texture.image, texture.image);
    assert_eq!((read.lanes, read.helpers, read.kept), (20, true, Some(5)), "{text}");
    assert_eq!((&read.covered, &read.varyings), (&launch.covered, &launch.varyings), "{text}");
}
