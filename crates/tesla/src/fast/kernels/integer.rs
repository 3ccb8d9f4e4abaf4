//! Kernels of [integers](crate::lane::integer).

use crate::lane::Compare;
use crate::lane::Width::{self, B16, B32};
use crate::lane::integer::{Addition, Logic, Product};

const fn add(addition: Addition, width: Width) -> Arith {
    Arith::Add { addition, width, sat: false }
}

const fn bits16(signed1: bool, signed2: bool) -> Product {
    Product::Bits16 { signed1, signed2 }
}

const fn bits24(signed: bool, high: bool) -> Product {
    Product::Bits24 { signed, high }
}

const fn mul(product: Product) -> Arith {
    Arith::Mul { product }
}

const fn mad(product: Product) -> Arith {
    Arith::Mad { product, addition: Addition::Add, sat: false }
}

const fn set(compare: u8, signed: bool) -> Arith {
    Arith::Set { compare: Compare::from_bits(compare), width: B32, signed }
}

const fn shl(width: Width, wrap: bool) -> Arith {
    Arith::Shl { width, wrap }
}

const fn shr(width: Width, signed: bool, wrap: bool) -> Arith {
    Arith::Shr { width, signed, wrap }
}

const fn logic(logic: Logic, width: Width) -> Arith {
    Arith::Logic { logic, width, not1: false, not2: false }
}

kernels! {
    word {}: Arith::Mov { width: B32 }, Arith::Mov { width: B16 };
    half {}: Arith::Mov { width: B32 }, Arith::Mov { width: B16 };
    word {}: add(Addition::Add, B32), add(Addition::Sub, B32), add(Addition::Subr, B32), add(Addition::Addc, B32);
    half {}: add(Addition::Add, B16), add(Addition::Sub, B16);
    half {}: mul(bits16(false, false)), mul(bits16(false, true)), mul(bits16(true, false)), mul(bits16(true, true));
    word {}: mul(bits24(false, false)), mul(bits24(false, true)), mul(bits24(true, false)), mul(bits24(true, true));
    half {}: mad(bits16(false, false)), mad(bits16(true, true));
    word {}: mad(bits24(false, false)), mad(bits24(true, false));
    word {}: Arith::Sad { width: B32, signed: false }, Arith::Sad { width: B32, signed: true };
    word {}: Arith::Min { width: B32, signed: false }, Arith::Min { width: B32, signed: true };
    word {}: Arith::Max { width: B32, signed: false }, Arith::Max { width: B32, signed: true };
    word {}: set(1, false), set(2, false), set(3, false), set(4, false), set(5, false), set(6, false);
    word {}: set(1, true), set(2, true), set(3, true), set(4, true), set(5, true), set(6, true);
    modified {}: logic(Logic::And, B32), logic(Logic::Or, B32), logic(Logic::Xor, B32), logic(Logic::Mov2, B32);
    half {}: logic(Logic::And, B16), logic(Logic::Or, B16), logic(Logic::Xor, B16), logic(Logic::Mov2, B16);
    word {}: shl(B32, false), shr(B32, false, false), shr(B32, true, false);
    word {}: shl(B32, true), shr(B32, false, true), shr(B32, true, true);
    half {}: shl(B16, false), shr(B16, false, false), shr(B16, true, false);
}
