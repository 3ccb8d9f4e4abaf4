//! Kernels of [`crate::lane::integer`].

use crate::lane::integer::{self, Addition, Logic as LogicOp, Product};
use crate::lane::{Compare, Width};

const fn width(wide: bool) -> Width {
    if wide { Width::B32 } else { Width::B16 }
}

const fn addition(code: u8) -> Addition {
    match code {
        0 => Addition::Add,
        1 => Addition::Sub,
        2 => Addition::Subr,
        _ => Addition::Addc,
    }
}

const fn addition_code(addition: Addition) -> u8 {
    match addition {
        Addition::Add => 0,
        Addition::Sub => 1,
        Addition::Subr => 2,
        Addition::Addc => 3,
    }
}

const fn product(wide: bool, first: bool, second: bool) -> Product {
    match wide {
        false => Product::Bits16 { signed1: first, signed2: second },
        true => Product::Bits24 { signed: first, high: second },
    }
}

kernels! {
    Mov<>(a, _b, _c, _carry) (a, Flags::NONE);
    Add<CODE: u8, WIDE: bool>(a, b, _c, carry) integer::add(addition(CODE), width(WIDE), false, a, b, carry);
    Mul<WIDE: bool, FIRST: bool, SECOND: bool>(a, b, _c, _carry) integer::mul(product(WIDE, FIRST, SECOND), a, b);
    Mad<WIDE: bool, FIRST: bool, SECOND: bool>(a, b, c, carry)
        integer::mad(product(WIDE, FIRST, SECOND), Addition::Add, false, a, b, c, carry);
    Sad<WIDE: bool, SIGNED: bool>(a, b, c, _carry) integer::sad(width(WIDE), SIGNED, a, b, c);
    Min<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::min(width(WIDE), SIGNED, a, b);
    Max<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::max(width(WIDE), SIGNED, a, b);
    Set<CODE: u8, SIGNED: bool>(a, b, _c, _carry)
        integer::set(Compare::from_bits(CODE), Width::B32, SIGNED, a, b);
    And<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::And, width(WIDE), false, false, a, b);
    Or<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Or, width(WIDE), false, false, a, b);
    Xor<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Xor, width(WIDE), false, false, a, b);
    Mov2<WIDE: bool>(a, b, _c, _carry) integer::logic(LogicOp::Mov2, width(WIDE), false, false, a, b);
    Shl<WIDE: bool>(a, b, _c, _carry) integer::shl(width(WIDE), a, b);
    Shr<WIDE: bool, SIGNED: bool>(a, b, _c, _carry) integer::shr(width(WIDE), SIGNED, a, b);
}

/// Returns the code of an integer operation: see [`super::choose`].
pub(super) fn choose(op: &Arith, shape: Shape, level: Level) -> Option<Handler> {
    match *op {
        Arith::Mov { .. } if shape.halves => half::<Mov>(shape, level),
        Arith::Mov { .. } => word::<Mov>(shape, level),
        Arith::Add { addition, width, sat: false } => match (addition_code(addition), width) {
            (0, Width::B32) => word::<Add<0, true>>(shape, level),
            (1, Width::B32) => word::<Add<1, true>>(shape, level),
            (2, Width::B32) => word::<Add<2, true>>(shape, level),
            (_, Width::B32) => word::<Add<3, true>>(shape, level),
            (0, Width::B16) => half::<Add<0, false>>(shape, level),
            (1, Width::B16) => half::<Add<1, false>>(shape, level),
            _ => None,
        },
        Arith::Mul { product } => match product {
            Product::Bits16 { signed1: false, signed2: false } => {
                half::<Mul<false, false, false>>(shape, level)
            }
            Product::Bits16 { signed1: false, signed2: true } => {
                half::<Mul<false, false, true>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: false } => {
                half::<Mul<false, true, false>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: true } => half::<Mul<false, true, true>>(shape, level),
            Product::Bits24 { signed: false, high: false } => word::<Mul<true, false, false>>(shape, level),
            Product::Bits24 { signed: false, high: true } => word::<Mul<true, false, true>>(shape, level),
            Product::Bits24 { signed: true, high: false } => word::<Mul<true, true, false>>(shape, level),
            Product::Bits24 { signed: true, high: true } => word::<Mul<true, true, true>>(shape, level),
        },
        Arith::Mad { product, addition: Addition::Add, sat: false } => match product {
            Product::Bits16 { signed1: false, signed2: false } => {
                half::<Mad<false, false, false>>(shape, level)
            }
            Product::Bits16 { signed1: true, signed2: true } => half::<Mad<false, true, true>>(shape, level),
            Product::Bits24 { signed: false, high: false } => word::<Mad<true, false, false>>(shape, level),
            Product::Bits24 { signed: true, high: false } => word::<Mad<true, true, false>>(shape, level),
            _ => None,
        },
        Arith::Sad { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Sad<true, false>>(shape, level),
            (Width::B32, true) => word::<Sad<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Min { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Min<true, false>>(shape, level),
            (Width::B32, true) => word::<Min<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Max { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Max<true, false>>(shape, level),
            (Width::B32, true) => word::<Max<true, true>>(shape, level),
            (Width::B16, _) => None,
        },
        Arith::Set { compare, width: Width::B32, signed } => match (compare.bits(), signed) {
            (1, false) => word::<Set<1, false>>(shape, level),
            (2, _) => word::<Set<2, false>>(shape, level),
            (3, false) => word::<Set<3, false>>(shape, level),
            (4, false) => word::<Set<4, false>>(shape, level),
            (5, _) => word::<Set<5, false>>(shape, level),
            (6, false) => word::<Set<6, false>>(shape, level),
            (1, true) => word::<Set<1, true>>(shape, level),
            (3, true) => word::<Set<3, true>>(shape, level),
            (4, true) => word::<Set<4, true>>(shape, level),
            (6, true) => word::<Set<6, true>>(shape, level),
            _ => None,
        },
        Arith::Logic { logic, width, .. } => match (logic, width) {
            (LogicOp::And, Width::B32) => modified::<And<true>>(shape, level),
            (LogicOp::Or, Width::B32) => modified::<Or<true>>(shape, level),
            (LogicOp::Xor, Width::B32) => modified::<Xor<true>>(shape, level),
            (LogicOp::Mov2, Width::B32) => modified::<Mov2<true>>(shape, level),
            (LogicOp::And, Width::B16) => half::<And<false>>(shape, level),
            (LogicOp::Or, Width::B16) => half::<Or<false>>(shape, level),
            (LogicOp::Xor, Width::B16) => half::<Xor<false>>(shape, level),
            (LogicOp::Mov2, Width::B16) => half::<Mov2<false>>(shape, level),
        },
        Arith::Shl { width } => match width {
            Width::B32 => word::<Shl<true>>(shape, level),
            Width::B16 => half::<Shl<false>>(shape, level),
        },
        Arith::Shr { width, signed } => match (width, signed) {
            (Width::B32, false) => word::<Shr<true, false>>(shape, level),
            (Width::B32, true) => word::<Shr<true, true>>(shape, level),
            (Width::B16, false) => half::<Shr<false, false>>(shape, level),
            (Width::B16, true) => half::<Shr<false, true>>(shape, level),
        },
        _ => None,
    }
}
