//! Random vertex fetches, memory reads, memory exports, exports and accesses to the local data share, in a loop. Some
//! register numbers in these instructions are relative to aL.

use reconverge_r700::chip::Chip;
use reconverge_r700::flow::LoopConstant;
use reconverge_r700::format::{Number, Swap};
use reconverge_r700::launch::{Input, Launch, Stage};
use reconverge_r700::memory::VertexBuffer;
use reconverge_simt::random::Random;

/// Returns a register whose number may be relative to aL.
fn register(random: &mut Random) -> String {
    let number = random.below(10);
    if random.once_in(5) { format!("R[{number}+aL]") } else { format!("R{number}") }
}

fn attributes(random: &mut Random, names: &[&str]) -> String {
    names.iter().filter(|_| random.once_in(4)).map(|name| format!(" {name}")).collect()
}

fn selects(random: &mut Random) -> &'static str {
    random.one_of(&["xyzw", "x001", "wzyx", "_yx1", "xxx_"])
}

/// Returns the attributes of a memory read that define the layout of the elements and their conversion to numbers.
fn format(random: &mut Random) -> String {
    let formats =
        ["8_8_8_8", "16_16_FLOAT", "32", "32_32_FLOAT", "32_32_32_32", "32_32_32_32_FLOAT", "2_10_10_10"];
    let numbers = ["NORM", "INT", "SCALED"];
    let attributes = attributes(random, &["SIGNED", "NO_ZERO", "ENDIAN(8IN16)"]);
    format!("FORMAT({}) NUM({}){attributes}", random.one_of(&formats), random.one_of(&numbers))
}

fn fetch(random: &mut Random) -> String {
    let (dst, src, select) = (register(random), register(random), selects(random));
    let chan = random.one_of(&["x", "y", "z"]);
    match random.below(5) {
        0 | 1 => {
            let names =
                ["TYPE(NO_INDEX_OFFSET)", "TYPE(INSTANCE_DATA)", "NO_STRIDE", "OFFSET(4)", "WHOLE_QUAD"];
            let attributes = attributes(random, &names);
            let buffer = random.below(6);
            format!(
                "VTX:\n FETCH {dst}.{select}, {src}.{chan}, b{buffer} CONST_FIELDS{attributes} MEGA(16)\n"
            )
        }
        2 => {
            let space = random.one_of(&["RD_SCRATCH", "RD_REDUC", "RD_SCATTER"]);
            let (element, burst, base) = (random.below(4), random.below(3), random.below(6));
            let attributes = attributes(random, &["INDEXED", "INDEXED", "INDEXED", "WHOLE_QUAD"]);
            let attributes = if attributes.contains("INDEXED") { " INDEXED" } else { "" };
            format!(
                "TEX:\n {space} {dst}.{select}, {src}.{chan} ARRAY_BASE({base}) ARRAY_SIZE(5) \
                 ELEM_SIZE({element}) BURST_CNT({burst}){attributes} {}\n",
                format(random)
            )
        }
        3 => {
            let (stride, index, burst) = (random.below(70), random.below(9), random.below(3));
            let relative = attributes(random, &["WAVE_REL"]);
            format!(
                "TEX:\n LOCAL_DS_WRITE {src} DST_INDEX({index}) DST_STRIDE({stride}) BURST_CNT({burst}){relative}\n"
            )
        }
        _ => {
            let mux = random.one_of(&["", " MUX(FFT_PERMUTE)", " MUX(WORD_SELECT)"]);
            let broadcast = attributes(random, &["BROADCAST"]);
            format!("TEX:\n LOCAL_DS_READ {dst}.{select}, {src}.{chan} SRC_Y(Y){mux}{broadcast}\n")
        }
    }
}

fn export(random: &mut Random) -> String {
    let src = random.below(8);
    let relative = attributes(random, &["REL"]);
    if random.once_in(3) {
        let (select, burst) = (selects(random), random.below(3));
        return format!("EXPORT: PARAM[{}], R{src}.{select} BURST_CNT({burst}){relative}\n", random.below(4));
    }
    let name = random.one_of(&["MEM_SCRATCH", "MEM_REDUCTION", "MEM_RING", "MEM_STREAM1", "MEM_EXPORT"]);
    let kind = random.one_of(&["WRITE", "WRITE_IND", "WRITE_ACK", "WRITE_IND_ACK"]);
    let (base, element, burst) = (random.below(8), random.below(4), random.below(3));
    let mask = random.one_of(&["xyzw", "x___", "_yz_", "xy__"]);
    format!(
        "{name}: {kind}[{base}], R{src}.{mask} INDEX_GPR({}) ELEM_SIZE({element}) ARRAY_SIZE(6) BURST_CNT({burst}){relative}\n",
        random.below(10)
    )
}

/// Returns a loop of up to four fetches and exports. A conditional contains some of the fetches and exports. Further
/// exports follow the loop.
pub fn source(random: &mut Random) -> String {
    let mut source = "LOOP_START: ADDR(@out) CF_CONST(0)\n@body:\n".to_owned();
    for _ in 0..1 + random.below(4) {
        if random.once_in(3) {
            source += "ALU_PUSH_BEFORE:\n 0 x: PRED_SETGT_INT _.x, R0.w, (30).x UPDATE_EXEC_MASK\n";
            source += &(fetch(random) + &export(random));
            source += "POP: POP_CNT(1)\n";
        } else if random.once_in(2) {
            source += &fetch(random);
        } else {
            source += &export(random);
        }
    }
    source += "LOOP_END: ADDR(@body) CF_CONST(0)\n@out:\n";
    for (number, register) in [1, 4, 7].iter().enumerate() {
        source += &format!("EXPORT: PIXEL[{number}], R{register}.xyzw BURST_CNT(1)\n");
    }
    source + "EXPORT_DONE: PIXEL[6], R9.xyzw END_OF_PROGRAM\n"
}

/// Returns a vertex buffer, which is sometimes too short.
fn buffer(random: &mut Random) -> VertexBuffer {
    let length = random.one_of(&[0, 3, 64, 300, 2000, 5000]);
    VertexBuffer {
        bytes: (0..length).map(|_| random.next() as u8).collect(),
        stride: random.one_of(&[0, 1, 4, 4, 8, 12, 16, 24]),
        nan_outside: random.once_in(2),
        format: 1 + random.below(48),
        number: random.one_of(&Number::ALL),
        swap: random.one_of(&[Swap::None, Swap::None, Swap::In16, Swap::In32, Swap::In64]),
    }
}

/// Returns a launch with the resources that [`source`] uses.
pub fn launch(random: &mut Random) -> Launch {
    let lanes = 1 + random.below(100) as usize;
    let mut launch = Launch::new(Chip::RV770, Stage::Pixel, lanes);
    (launch.environment_mut().num_gprs, launch.environment_mut().clause_temps) = (12, 0);
    (launch.environment_mut().scratch_dwords, launch.environment_mut().record_dwords) = (48, 32);
    launch.scatter = (0..random.one_of(&[16, 64])).collect();
    launch.environment_mut().base_vertex = random.one_of(&[0, 0, 3, u32::MAX]);
    launch.environment_mut().base_instance = random.below(3);
    // The loop has up to two iterations. In few cases, the initial aL is out of range.
    let first = random.one_of(&[0, 0, 1, 2, 9]);
    launch.environment_mut().resources.loop_constants[0] =
        LoopConstant((1 + random.below(2)) | (first << 12) | (1 << 24));
    if random.once_in(3) {
        launch.covered = Some((0..lanes).map(|_| random.once_in(2)).collect());
    }
    for gpr in 0..10 {
        let kind = random.below(6);
        let mut value = |lane: u32| match kind {
            // Addresses are contiguous, the same for all lanes, scattered, mostly inside the memory, or arbitrary.
            0 | 1 => lane,
            2 => 2,
            3 => random.below(4),
            4 => random.below(60),
            _ => random.next(),
        };
        let values = (0..lanes as u32).map(|lane| [value(lane), value(lane), value(lane), lane]).collect();
        launch.inputs.push(Input { gpr, values });
    }
    for number in 0..5 {
        launch.environment_mut().resources.vertex_buffers.insert(number, buffer(random));
    }
    launch
}
