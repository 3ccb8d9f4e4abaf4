//! Runs random vertex fetches, memory reads, memory exports, exports and uses of the local data share on every engine,
//! in a loop whose aL is added to some register numbers.

mod engines;

use engines::run;
use reconverge_isa::Program;
use reconverge_r700::chip::Chip;
use reconverge_r700::launch::{Input, Launch, Stage};
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
