//! Sums to which OMOD applies before rounding, so that the rounded sum does not decide the result, lane by lane.

// Code calls these: each place states what it relies on.
#![allow(unsafe_code)]

use reconverge_jit::{LANES, Rescue, Rescuer};

use crate::lane::{self, Term};
use crate::words::Omod;

/// The function for an OMOD.
pub(super) fn sum(omod: Omod, zero_wins: bool) -> Rescuer {
    match zero_wins {
        false => with::<false>(omod),
        true => with::<true>(omod),
    }
}

fn with<const ZERO_WINS: bool>(omod: Omod) -> Rescuer {
    match omod {
        Omod::MUL_1 | Omod::DISABLED => scaled::<0, ZERO_WINS>,
        Omod::MUL_2 => scaled::<1, ZERO_WINS>,
        Omod::MUL_4 => scaled::<2, ZERO_WINS>,
        Omod::MUL_8 => scaled::<3, ZERO_WINS>,
        Omod::DIV_2 => scaled::<4, ZERO_WINS>,
        Omod::DIV_4 => scaled::<5, ZERO_WINS>,
        Omod::DIV_8 => scaled::<6, ZERO_WINS>,
    }
}

/// # Safety
/// As for [`Rescuer`].
unsafe extern "sysv64" fn scaled<const OMOD: u8, const ZERO_WINS: bool>(rescue: *mut Rescue) {
    const OMODS: [Omod; 7] =
        [Omod::MUL_1, Omod::MUL_2, Omod::MUL_4, Omod::MUL_8, Omod::DIV_2, Omod::DIV_4, Omod::DIV_8];
    // SAFETY: as the caller says.
    let Rescue { sources, mask, value } = unsafe { &mut *rescue };
    for lane in (0..LANES).filter(|lane| mask[*lane] >> 31 != 0) {
        let [a, b, c] = [0, 1, 2].map(|number: usize| f32::from_bits(sources[number][lane]));
        let terms = [Term::product(a, b, ZERO_WINS), Term::value(c)];
        value[lane] = lane::sum(&terms, OMODS[usize::from(OMOD)]).to_bits();
    }
}
