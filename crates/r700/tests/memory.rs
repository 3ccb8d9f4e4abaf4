//! Runs random vertex fetches, memory reads, memory exports, exports and uses of the local data share on every engine,
//! in a loop whose aL is added to some register numbers.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::format::{Number, Swap, layout};
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_r700::text::assemble;
use reconverge_simt::{Mode, Options};
use reconverge_testkit::Campaign;
use reconverge_testkit::r700::memory;

#[test]
fn what_reaches_memory_does_the_same_on_every_engine() {
    let (programs, mut random) = Campaign::of_random(3000, 0x0700_3e30_0017_5eed);
    let mut ended = 0u64;
    for _ in 0..programs {
        let source = memory::source(&mut random);
        let words =
            assemble(&source, Chip::RV770).unwrap_or_else(|error| panic!("{error:?}: {source}")).words;
        let launch = memory::launch(&mut random);
        let mode = if random.once_in(2) { Mode::Strict } else { Mode::Lenient };
        let options = Options { mode, ..Options::default() };
        ended += u64::from(run(&Program::from_words(words), &launch, &options).is_ok());
    }
    println!("{ended} of {programs} ended");
    assert!(ended >= programs / 2, "{ended} programs came to their end");
}

/// Mesa `r600_shader.c`, `emit_streamout`: ARRAY_BASE is a component's offset in the vertex, in dwords, whatever the
/// element's size. The same holds for rings. In scratch memory it counts elements (the manual, p. 45).
#[test]
fn array_base_counts_dwords_in_streams_and_rings_and_elements_elsewhere() {
    let source = "MEM_STREAM1: WRITE[1], R0.xyzw ELEM_SIZE(3) ARRAY_SIZE(4095)\n\
                  MEM_RING: WRITE[2], R0.xyzw ELEM_SIZE(3) ARRAY_SIZE(4095)\n\
                  MEM_SCRATCH: WRITE[1], R0.xyzw ELEM_SIZE(3) ARRAY_SIZE(4095)\n\
                  EXPORT_DONE: PIXEL[0], R0.xyzw END_OF_PROGRAM\n";
    let program = Program::from_words(assemble(source, Chip::RV770).expect("it assembles").words);
    let mut launch = Launch::new(Chip::RV770, Stage::Vertex, 1);
    launch.inputs.push(Input { gpr: 0, values: [[5, 6, 7, 8]].into() });
    let options = Options { mode: Mode::Lenient, ..Options::default() };
    let memory = run(&program, &launch, &options).expect("it ends").memory;
    assert_eq!(memory.streams[1], [[0, 5, 6, 7, 8]]);
    assert_eq!(memory.ring, [[0, 0, 5, 6, 7, 8]]);
    assert_eq!(memory.scratch, [[0, 0, 0, 0, 5, 6, 7, 8]]);
}

/// Compiled code loads from buffers without a callback. The elements of some lanes are outside the buffer, or partly.
#[test]
fn fetches_at_the_end_of_a_buffer_do_the_same_on_every_engine() {
    let source = "VTX:\n FETCH R1.xyzw, R0.x, b0 FORMAT(32) CONST_FIELDS\n FETCH R2.wz1x, R0.y, b0 FORMAT(32) CONST_FIELDS OFFSET(3)\n\
                  ALU:\n 0 x: ADD_INT R0.x, R0.x, 1\n\
                  EXPORT: PIXEL[0], R1.xyzw\nEXPORT: PIXEL[1], R2.xyzw\nEXPORT_DONE: PIXEL[2], R0.xyzw END_OF_PROGRAM\n";
    let program = Program::from_words(assemble(source, Chip::RV770).expect("it assembles").words);
    let (launches, mut random) = Campaign::of_random(1500, 0x0700_fe7c_4000_5eed);
    for _ in 0..launches {
        let format = loop {
            let format = random.below(64);
            if layout(format).is_some() {
                break format;
            }
        };
        let length = random.below(40);
        let buffer = VertexBuffer {
            bytes: (0..length).map(|_| random.next() as u8).collect(),
            stride: random.one_of(&[0, 1, 2, 3, 4, 8, 12, 16, 20]),
            nan_outside: random.once_in(2),
            format,
            number: random.one_of(&Number::ALL),
            swap: if random.once_in(4) { Swap::In16 } else { Swap::None },
        };
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 64);
        launch.environment_mut().resources.vertex_buffers.insert(0, buffer);
        let mut index = || match random.below(12) {
            0 => random.next(),
            1 => random.one_of(&[u32::MAX, 1 << 28, 1 << 30, 1 << 31, 0x4000_0001]),
            _ => random.below(24),
        };
        launch.inputs.push(Input { gpr: 0, values: (0..64).map(|_| [index(), index(), 0, 0]).collect() });
        run(&program, &launch, &Options::default()).expect("it ends");
    }
}

/// The registers of lanes are written in the same clause, before and after, or do not exist.
#[test]
fn registers_relative_to_ar_are_those_of_the_clause_on_every_engine() {
    let source = "ALU:\n 0 x: MOVA_INT _.x, R0.x\n 1 x: ADD_INT R2.x, R0.y, 7\n    y: MOV R1.y, R0.y\n\
                  2 x: MOV R3.x, R[1+AR.x].x\n    y: MOV R3.y, R[1+AR.x].y\n 3 z: ADD_INT R3.z, R3.x, R[2+AR.x].y\n\
                  ALU:\n 4 w: MOV R3.w, R3.x\n\
                  EXPORT: PIXEL[0], R3.xyzw\nEXPORT_DONE: PIXEL[1], R2.xyzw END_OF_PROGRAM\n";
    let program = Program::from_words(assemble(source, Chip::RV770).expect("it assembles").words);
    let (launches, mut random) = Campaign::of_random(200, 0x0700_a400_0000_5eed);
    let mut trapped = 0;
    for number in 0..launches {
        let mut launch = Launch::new(Chip::RV770, Stage::Pixel, 64);
        launch.environment_mut().num_gprs = 6;
        let outside = random.once_in(4).then(|| random.below(64) as usize);
        let mut values = |lane: usize| {
            let index = if outside == Some(lane) {
                random.one_of(&[4, 200, u32::MAX - 1, 1 << 22])
            } else {
                random.below(3)
            };
            [index, random.next(), 0, 0]
        };
        launch.inputs.push(Input { gpr: 0, values: (0..64).map(&mut values).collect() });
        let words =
            |gpr: u32| (0..64).map(|lane| [1, 2, 3, 4].map(|chan| gpr << 16 | lane << 8 | chan)).collect();
        launch.inputs.extend((1..6).map(|gpr| Input { gpr, values: words(gpr.into()) }));
        let mode = if number % 2 == 0 { Mode::Strict } else { Mode::Lenient };
        trapped += u64::from(run(&program, &launch, &Options { mode, ..Options::default() }).is_err());
    }
    assert!(trapped > 0, "some register does not exist");
}
