//! Measures ALU slots decoded and printed per second.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reconverge_r700::chip::Chip;
use reconverge_r700::code::{Code, CodeOptions};
use reconverge_r700::text::{Disassembly, Options, assemble, disassemble, disassemble_into};

/// Returns 64 clauses of 120 slots: groups of five without literals.
fn program() -> (Vec<u32>, u64) {
    let (clauses, slots) = (64_u32, 120_u32);
    let mut words = Vec::new();
    for clause in 0..clauses {
        words.extend([clauses + 2 + clause * slots, 0xa000_0000 | (slots - 1) << 18]);
    }
    words.extend([0, 0x8020_0000, 0, 0]);
    for slot in 0..clauses * slots {
        let chan = slot % 5;
        // MULADD R2.c, R0.c, KC0[1].c, PV.c; the fifth is RECIP_IEEE R3.x, R0.y.
        words.extend(match chan {
            4 => [0x8000_0400, 0x0060_3310],
            _ => [chan << 10 | 0x81 << 13 | chan << 23, 0x0042_00fe | chan << 10 | chan << 29],
        });
    }
    (words, u64::from(clauses * slots))
}

fn text(criterion: &mut Criterion) {
    let (words, slots) = program();
    let mut group = criterion.benchmark_group("alu");
    group.throughput(Throughput::Elements(slots));
    group.bench_function("decode", |bencher| {
        bencher.iter(|| Code::new(black_box(&words), 0, CodeOptions::new(Chip::RV770)));
    });
    group.bench_function("disassemble", |bencher| {
        let mut out = Disassembly::default();
        bencher.iter(|| {
            disassemble_into(black_box(&words), Chip::RV770, Options::default(), &mut out);
            out.text.len()
        });
    });
    group.bench_function("assemble", |bencher| {
        let source = disassemble(&words, Chip::RV770, Options::default()).text;
        bencher.iter(|| assemble(black_box(&source), Chip::RV770));
    });
    group.finish();
}

criterion_group!(benches, text);
criterion_main!(benches);
