//! The speed of decoding and printing words, and of reading text, per second and core. The input is a mix of all
//! rows and, if the collections are available, compiled programs.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconverge_isa::row::Scope;
use reconverge_isa::write::LineReader;
use reconverge_tesla::decode::{decode, length};
use reconverge_tesla::inst::{Chip, Stage};
use reconverge_tesla::table::TABLE;
use reconverge_tesla::text::{Listing, Prefix, assemble, disassemble};

const CHIP: Chip = Chip::G200;
const STAGE: Stage = Stage::Compute;

/// Returns instructions as compiled programs use them: each row of the table as often as its kind is frequent.
fn program() -> Vec<u32> {
    let frequent: [&[u32]; 16] = [
        &[0x1100_e804, 0x1000_8004],
        &[0x2001_8c19, 0x0000_0003],
        &[0x2107_ea1c, 0x2000_8408],
        &[0x307c_cffd, 0x6c20_c7c8],
        &[0x6005_081d, 0x6001_87d0],
        &[0x3002_0005, 0xe410_0780],
        &[0xb003_0811, 0x0c01_87c0],
        &[0xe005_081d, 0x2001_87c0],
        &[0xa000_0811, 0x8c06_4780],
        &[0xd00e_0e01, 0x80c0_0780],
        &[0xd00e_0e01, 0xa0c0_0780],
        &[0x0400_1601, 0xe420_0780],
        &[0xd000_0405, 0x0402_8780],
        &[0x1002_2003, 0x0000_0280],
        &[0xa002_2003, 0x0000_0000],
        &[0xf000_0001, 0xe000_0002],
    ];
    frequent.iter().copied().flatten().copied().cycle().take(1 << 15).collect()
}

fn instructions(words: &[u32]) -> Vec<[u32; 2]> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        found.push([words[at], words.get(at + 1).copied().unwrap_or(0)]);
        at += length(words[at]) as usize;
    }
    found
}

fn text(criterion: &mut Criterion) {
    let words = program();
    let instructions = instructions(&words);
    let listing = Listing { labels: false, ..Listing::default() };
    let source = disassemble(&words, 0, CHIP, STAGE, listing);
    assert!(!source.contains(".word"));
    let here: Scope = reconverge_tesla::table::here(CHIP, STAGE);
    let joined: Vec<u64> = instructions
        .iter()
        .map(|pair| u64::from(pair[0]) | if length(pair[0]) == 2 { u64::from(pair[1]) << 32 } else { 0 })
        .collect();

    let mut group = criterion.benchmark_group("tesla");
    group.throughput(Throughput::Elements(instructions.len() as u64));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| {
            for &pair in &instructions {
                black_box(decode(pair, CHIP, STAGE).is_ok());
            }
        });
    });
    group.bench_function("print", |bencher| {
        let mut out = String::new();
        bencher.iter(|| {
            out.clear();
            for &word in &joined {
                black_box(TABLE.print(word, here, None, &mut out).is_ok());
                out.push('\n');
            }
        });
    });
    group.bench_function("parse and encode", |bencher| {
        let mut reader = LineReader::new(&TABLE, here);
        bencher.iter(|| {
            for line in source.lines() {
                black_box(reader.read::<Prefix>(line).is_ok());
            }
        });
    });
    group.bench_function("disassemble", |bencher| {
        bencher.iter(|| disassemble(black_box(&words), 0, CHIP, STAGE, Listing::default()).len());
    });
    group.bench_function("assemble", |bencher| {
        bencher.iter(|| assemble(black_box(&source), CHIP, STAGE).unwrap().programs.len());
    });
    group.finish();
}

criterion_group!(benches, text);
criterion_main!(benches);
