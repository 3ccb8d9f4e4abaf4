//! A stream of Mesa's driver for a strip of four vertices with one varying.

use std::ops::Range;

/// Ranges of the buffers in the relocation list.
pub(crate) const TARGET: Range<usize> = 0x1_0000..0x5_0000;
const VERTICES: Range<usize> = 0x5_0000..0x6_0000;
const FETCH: Range<usize> = 0x6_0000..0x7_0000;
pub(crate) const PIXEL: Range<usize> = 0x7_0000..0x8_0000;
pub(crate) const VERTEX: Range<usize> = 0x8_0000..0x9_0000;
pub(crate) const BUFFERS: [Range<usize>; 5] = [TARGET, VERTICES, FETCH, PIXEL, VERTEX];

#[derive(Default)]
pub(crate) struct Stream(pub(crate) Vec<u32>);

impl Stream {
    pub(crate) fn packet(&mut self, op: u32, payload: &[u32]) {
        self.0.push(3 << 30 | (payload.len() as u32 - 1) << 16 | op << 8);
        self.0.extend(payload);
    }

    pub(crate) fn context(&mut self, address: u32, values: &[u32]) {
        let payload: Vec<u32> = [(address - 0x28000) / 4].into_iter().chain(values.iter().copied()).collect();
        self.packet(0x69, &payload);
    }

    pub(crate) fn relocation(&mut self, buffer: u32) {
        self.packet(0x10, &[4 * buffer]);
    }
}

pub(crate) fn put(memory: &mut [u8], at: usize, words: &[u32]) {
    for (place, word) in words.iter().enumerate() {
        memory[at + 4 * place..][..4].copy_from_slice(&word.to_le_bytes());
    }
}

pub(crate) fn memory() -> Vec<u8> {
    let mut memory = vec![0; 0x9_0000];
    let corner = |x: f32, y: f32| [x, y, 0., 1.].map(f32::to_bits);
    let corners = [corner(-1., -1.), corner(1., -1.), corner(-1., 1.), corner(1., 1.)];
    put(&mut memory, VERTICES.start + 0x8c0, corners.as_flattened());
    let fetch = [0x0000_0002, 0x8100_0000, 0, 0x8a00_0000, 0x7c00_a000, 0x08cd_1001, 0x0008_0000, 0];
    put(&mut memory, FETCH.start + 0x500, &fetch);
    #[rustfmt::skip]
    let vertex = [
        0x0000_0000, 0x8980_0000, 0x0000_0004, 0xa00c_0000, 0xc000_a03c, 0x9400_0688, 0xc000_4000, 0x9420_0688,
        // The clause begins at word 4 of 64 bits; its literals follow.
        0x001f_8001, 0x0002_80fc, 0x001f_8401, 0x2002_80fc, 0x001f_8801, 0x4002_80fc, 0x801f_8c01, 0x6002_80fc,
    ];
    put(&mut memory, VERTEX.start, &vertex);
    put(&mut memory, PIXEL.start, &[0xc000_0000, 0x9420_0688]);
    memory
}

pub(crate) fn stream() -> Stream {
    let mut stream = Stream::default();
    stream.packet(0x28, &[0x8000_0000, 0x8000_0000]);
    stream.context(0x28030, &[0, 0x2000_2000]);
    stream.context(0x28204, &[0x8000_0000, 0x00fa_00fa]);
    stream.context(0x28240, &[0, 0x2000_2000]);
    stream.context(0x28250, &[0x8000_0000, 0x00fa_00fa]);
    stream.context(0x280a0, &[0x0910_0468]);
    stream.context(0x28040, &[0]);
    stream.relocation(0);
    stream.context(0x28060, &[0x000f_fc1f]);
    stream.context(0x28238, &[0xf, 0xf]);
    stream.context(0x28808, &[0x00cc_0080]);
    stream.context(0x2880c, &[0x210]);
    stream.context(0x28810, &[0x0100_0000, 0x0008_0244, 0x43f, 0]);
    stream.context(0x2843c, &[125., 125., 125., 125., 0.5, 0.5].map(f32::to_bits));
    stream.context(0x28c0c, &[0x4302_1062, 0x3f80_0000, 0x4302_1062, 0x3f80_0000]);
    stream.context(0x282d0, &[0., 1.].map(f32::to_bits));
    stream.context(0x286d4, &[0x86b]);
    stream.context(0x28614, &[0xa]);
    stream.context(0x286c4, &[0]);
    stream.context(0x28644, &[0xa]);
    stream.context(0x286cc, &[0x1000_0001, 0]);
    stream.context(0x28894, &[5]);
    stream.relocation(2);
    stream.context(0x28850, &[0x0020_0001, 2]);
    stream.context(0x28840, &[0]);
    stream.relocation(3);
    stream.context(0x28868, &[0x0020_0102]);
    stream.context(0x28858, &[0]);
    stream.relocation(4);
    stream.packet(0x6d, &[320 * 7, 0x8c0, 0x180, 0x000f_fe7f & 0x1000, 0, 0, 0, 0xc000_0000]);
    stream.relocation(1);
    stream.context(0x28400, &[u32::MAX, 0, 0]);
    stream.packet(0x68, &[0x256, 6]);
    stream.packet(0x2f, &[1]);
    stream.packet(0x2d, &[4, 2]);
    stream
}
