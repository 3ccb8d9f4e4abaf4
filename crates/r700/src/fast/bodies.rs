//! Three kinds of operations that are not in [`super::kernels`]. The first kind computes the sets of lanes whose
//! predicate is true or false. The second kind computes one result from the four vector slots. The third kind is the
//! general operation. The general operation runs any instruction of one slot lane by lane.

use reconverge_simt::Mask;
use reconverge_simt::mask::members;
use reconverge_simt::wide::Wide;

use super::kernels::{legacy_product, product as usual_product};
#[cfg(doc)]
use super::lanes::Tables;
use super::lanes::{ACTIVE, Across, Body, FALSE, Lanes, Operation, TRUE, finish};
use crate::chip::LANES;
use crate::lane;
use crate::meaning::Meaning;

impl Lanes<'_> {
    /// Updates the predicate and the skipped lanes for a PRED_SET*. `holds` contains the lanes for which the test of
    /// the PRED_SET* holds. The function ignores lanes in `holds` that do not execute the instruction.
    #[inline(always)]
    pub(super) fn decide(&mut self, operation: &Operation, holds: u64) {
        let running = self.set(operation.set);
        let execute = holds & running;
        if operation.update_pred {
            self.predicate = self.predicate & !running | execute;
        }
        if operation.update_execute_mask {
            self.skip = running & !execute;
        }
    }
}

/// Computes the sets of lanes [`TRUE`] and [`FALSE`]. An instruction with a PRED_SEL runs only for the lanes of one of
/// these sets.
pub(super) struct Sets;

impl Body for Sets {
    #[inline(always)]
    fn run<W: Wide>(_wide: W, lanes: &mut Lanes<'_>, _operation: &Operation) {
        let (active, predicate) = (lanes.set(ACTIVE), lanes.predicate);
        lanes.sets[usize::from(TRUE)] = Mask(active & predicate);
        lanes.sets[usize::from(FALSE)] = Mask(active & !predicate);
    }
}

/// Runs any instruction of one slot, one lane after another. The lane functions are the functions that all engines use.
/// Entry `number` of [`Tables::generals`] contains the meaning of the instruction.
pub(super) struct General;

impl Body for General {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let (meaning, second_factor) = lanes.tables.generals[operation.number as usize];
        let rows = lanes.sources(operation);
        let source = |lane: usize| {
            [0, 1, 2]
                .map(|number: usize| rows[number][lane] & operation.keep[number] ^ operation.flip[number])
        };
        let running = lanes.set(operation.set);
        let mut result = [0; LANES];
        let mut holds = 0;
        for lane in members(running) {
            let [a, b, c] = source(lane);
            result[lane] = match meaning {
                Meaning::Float1(f) => finish(f(a), operation),
                Meaning::Float2(f) => finish(f(a, b), operation),
                Meaning::Float3(f, _) => {
                    let value = f(a, b, c);
                    let scaled = if second_factor == 1.0 { value } else { lane::scale(value, second_factor) };
                    finish(scaled, operation)
                }
                Meaning::Bits1(f) => f(a),
                Meaning::Bits2(f) => f(a, b),
                Meaning::Bits3(f) => f(a, b, c),
                Meaning::PredSet(f) => {
                    let predicate = f(a, b);
                    holds |= u64::from(predicate.execute) << lane;
                    predicate.value
                }
                Meaning::Kill(f) => {
                    let kill = f(a, b);
                    holds |= u64::from(kill) << lane;
                    if kill { lane::ONE } else { 0 }
                }
                Meaning::Nothing
                | Meaning::Mova(_)
                | Meaning::MovaLoop(_)
                | Meaning::Reduce(_)
                | Meaning::Cube
                | Meaning::Double(_) => unreachable!("the reference interpreter runs these"),
            };
        }
        match meaning {
            Meaning::PredSet(_) => lanes.decide(operation, holds),
            Meaning::Kill(_) => lanes.killed |= holds,
            _ => {}
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// DOT4 and DOT4_IEEE: the sum of the products in the four vector slots. Entry `number` of [`Tables::across`] contains
/// the operands of the slots. `MODIFIED`: whether some operand has abs or neg.
pub(super) struct Dot4<const IEEE: bool, const MODIFIED: bool>;

impl<const IEEE: bool, const MODIFIED: bool> Body for Dot4<IEEE, MODIFIED> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let sources = &lanes.tables.across[operation.number as usize];
        let [ax, ay, az, aw, bx, by, bz, bw] = sources;
        let rows = [[ax, bx], [ay, by], [az, bz], [aw, bw]];
        let rows = rows.map(|pair| pair.map(|source| (lanes.row(source.place), source.keep, source.flip)));
        let factors = |slot: usize, lane: usize| {
            let [(a, keep_a, flip_a), (b, keep_b, flip_b)] = rows[slot];
            match MODIFIED {
                true => (a[lane] & keep_a ^ flip_a, b[lane] & keep_b ^ flip_b),
                false => (a[lane], b[lane]),
            }
        };
        let mut result = [0; LANES];
        let mut nan = 0;
        // This loop does not apply the rules that determine which NaN an operation returns. If a NaN occurs, the code
        // below recomputes the results.
        for lane in 0..LANES {
            let product = |slot: usize| {
                let (a, b) = factors(slot, lane);
                if IEEE { usual_product(a, b) } else { legacy_product(a, b) }
            };
            let add = |a: u32, b: u32| lane::flush((f32::from_bits(a) + f32::from_bits(b)).to_bits());
            let sum = add(add(add(product(0), product(1)), product(2)), product(3));
            nan |= u32::from(lane::is_nan(sum));
            result[lane] = sum;
        }
        if nan != 0 {
            let product = |a: u32, b: u32| if IEEE { lane::mul_ieee(a, b) } else { lane::mul(a, b) };
            for lane in 0..LANES {
                let term = |slot: usize| {
                    let (a, b) = factors(slot, lane);
                    product(a, b)
                };
                result[lane] = lane::add(lane::add(lane::add(term(0), term(1)), term(2)), term(3));
            }
        }
        if operation.factor != 1.0 || operation.clamp {
            for lane in 0..LANES {
                result[lane] = finish(result[lane], operation);
            }
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// MAX4: the largest of the four src0 values of the vector slots.
pub(super) struct Max4;

impl Body for Max4 {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let sources = &lanes.tables.across[operation.number as usize];
        let mut result = [0; LANES];
        for slot in 0..4 {
            let row = lanes.row(sources[slot].place);
            for lane in 0..LANES {
                let word = modified(row[lane], sources[slot]);
                result[lane] = if slot == 0 { word } else { lane::max(result[lane], word) };
            }
        }
        for lane in 0..LANES {
            result[lane] = finish(result[lane], operation);
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

/// CUBE: the result of one of the four vector slots. The result of slot 3 is the face number. Neither OMOD nor CLAMP
/// applies to the face number.
pub(super) struct CubeSlot<const SLOT: usize>;

impl<const SLOT: usize> Body for CubeSlot<SLOT> {
    #[inline(always)]
    fn run<W: Wide>(wide: W, lanes: &mut Lanes<'_>, operation: &Operation) {
        let sources = &lanes.tables.across[operation.number as usize];
        let mut directions = [[0; LANES]; 4];
        for (words, source) in directions.iter_mut().zip(sources) {
            let row = lanes.row(source.place);
            for lane in 0..LANES {
                words[lane] = modified(row[lane], *source);
            }
        }
        let [x, y, z, w] = &directions;
        let mut result = [0; LANES];
        for lane in 0..LANES {
            result[lane] = lane::cube([x[lane], y[lane], z[lane], w[lane]], [0; 4])[SLOT];
        }
        if SLOT < 3 && (operation.factor != 1.0 || operation.clamp) {
            for lane in 0..LANES {
                result[lane] = finish(result[lane], operation);
            }
        }
        lanes.write(wide, operation.dst, operation.set, &result);
    }
}

#[inline(always)]
fn modified(word: u32, source: Across) -> u32 {
    word & source.keep ^ source.flip
}
