//! Executes operations on rows. The engine computes the channels of an operation one after the other. The engine
//! computes each channel for all vertices of the group at once.
//!
//! Loops over lanes have no branches. So the compiler turns the loops into vector code at each level. The loops compute
//! all lanes but store only the lanes that the instruction writes.

use reconverge_simt::Mask;
use reconverge_simt::level::Task;
use reconverge_simt::wide::Wide;

use super::lower::{Place, Plain, Target};
use crate::pvs::group::{Group, WIDTH};
use crate::pvs::inst::{Inst, Op, Operand};
use crate::pvs::lane;
use crate::pvs::operations::{Operation, Value};
use crate::pvs::outputs::mark;
use crate::pvs::words::{DstType, Select, VeOp};

type Row<const N: usize> = [f32; N];
type Vector<const N: usize> = [Row<N>; 4];

/// An instruction to be executed for the vertices `lanes` of a group. All these vertices are among the first `N`.
pub(super) struct Execute<'a, const N: usize> {
    pub(super) group: &'a mut Group,
    pub(super) plain: &'a Plain,
    pub(super) inst: &'a Inst,
    pub(super) lanes: Mask,
}

/// The results of an operation.
struct Results<const N: usize> {
    value: Vector<N>,
    /// For each channel, the lanes that do not change.
    kept: [u64; 4],
    predicate: Option<u64>,
}

impl<const N: usize> Task for Execute<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self, _: W) {
        let Execute { group, plain, inst, lanes } = self;
        let mut operands = [[[0.0; N]; 4]; 3];
        for (number, vector) in operands.iter_mut().enumerate() {
            load(group, plain.places[number], &inst.operands[number], plain.reads[number], vector);
        }
        let mut dual = [[0.0; N]; 2];
        if let (Some(half), Some((place, _))) = (&inst.dual, plain.dual) {
            let mut vector = [[0.0; N]; 4];
            load(group, place, &half.source, half.scalars(), &mut vector);
            dual = [vector[0], vector[1]];
        }

        let wanted = inst.dst.wanted();
        let mut results = compute(inst.op, inst.operation(), &operands, wanted);
        if inst.saturate {
            results.value.iter_mut().for_each(saturate);
        }
        if !matches!(inst.operation().value, Value::Nothing) {
            write(group, inst, plain.target, &results, lanes);
        }
        let mut predicate = results.predicate;
        if let (Some(half), Some((_, row))) = (&inst.dual, plain.dual) {
            let [first, second] = dual;
            let operation = half.op.operation();
            let mut math = compute_scalars(operation, &first, &second, &second);
            if half.saturate {
                math.value.iter_mut().for_each(saturate);
            }
            if !matches!(operation.value, Value::Nothing) {
                blend(&mut group.rows[row], &math.value[half.channel as usize], lanes.0);
            }
            predicate = predicate.or(math.predicate);
        }
        if let Some(bits) = predicate {
            group.predicate = (group.predicate - lanes) | (Mask(bits) & lanes);
        }
    }
}

#[inline(always)]
fn saturate<const N: usize>(row: &mut Row<N>) {
    for x in row {
        *x = lane::saturate(*x);
    }
}

// ---- Operands

#[inline(always)]
fn load<const N: usize>(group: &Group, place: Place, operand: &Operand, used: u8, vector: &mut Vector<N>) {
    for (channel, row) in vector.iter_mut().enumerate().filter(|(channel, _)| used >> channel & 1 == 1) {
        let negate = operand.negate >> channel & 1 == 1;
        let from = match operand.select[channel] {
            Select::X => 0,
            Select::Y => 1,
            Select::Z => 2,
            Select::W => 3,
            Select::ZERO | Select::RESERVED | Select::UNUSED => {
                row.fill(lane::operand(0, operand.abs, negate));
                continue;
            }
            Select::ONE => {
                row.fill(lane::operand(1f32.to_bits(), operand.abs, negate));
                continue;
            }
        };
        let constant =
            |number: i32| group.setup.constant(number).map_or(0, |place| group.constants[place][from]);
        match place {
            Place::Rows(start) => {
                for (x, bits) in row.iter_mut().zip(&group.rows[start + from]) {
                    *x = lane::operand(*bits, operand.abs, negate);
                }
            }
            Place::Constant(place) => {
                row.fill(lane::operand(group.constants[place][from], operand.abs, negate))
            }
            Place::LoopConstant(number) => {
                row.fill(lane::operand(constant(number + group.flow.al()), operand.abs, negate));
            }
            Place::A0Constant(number, component) => {
                for (x, address) in row.iter_mut().zip(&group.a0[component]) {
                    *x = lane::operand(constant(number + address), operand.abs, negate);
                }
            }
            Place::Zero => row.fill(lane::operand(0, operand.abs, negate)),
        }
    }
}

// ---- Results

#[inline(always)]
fn each<const N: usize>(
    a: &Row<N>,
    b: &Row<N>,
    c: &Row<N>,
    out: &mut Row<N>,
    function: impl Fn(f32, f32, f32) -> f32,
) {
    for lane in 0..N {
        out[lane] = function(a[lane], b[lane], c[lane]);
    }
}

#[inline(always)]
fn of_lane<const N: usize>([x, y, z, w]: &Vector<N>, lane: usize) -> [f32; 4] {
    [x[lane], y[lane], z[lane], w[lane]]
}

#[inline(always)]
fn holds<const N: usize>(row: &Row<N>, compare: impl Fn(f32) -> bool) -> u64 {
    let mut bits = 0;
    for (lane, x) in row.iter().enumerate() {
        bits |= u64::from(compare(*x)) << lane;
    }
    bits
}

#[inline(always)]
fn compute<const N: usize>(
    op: Op,
    operation: &Operation,
    [a, b, c]: &[Vector<N>; 3],
    wanted: u8,
) -> Results<N> {
    let mut results = Results { value: [[0.0; N]; 4], kept: [0; 4], predicate: None };
    let value = &mut results.value;
    match operation.value {
        Value::Nothing => {}
        Value::Channel(function) => {
            for n in (0..4).filter(|n| wanted >> n & 1 == 1) {
                channel(op, function, &a[n], &b[n], &c[n], &mut value[n]);
            }
        }
        Value::Dot => {
            for lane in 0..N {
                value[0][lane] = lane::dot(of_lane(a, lane), of_lane(b, lane));
            }
            replicate(value);
        }
        Value::Distance => {
            value[0].fill(1.0);
            each(&a[1], &b[1], &c[1], &mut value[1], |a, b, _| lane::multiply(a, b));
            value[2] = a[2];
            value[3] = b[3];
        }
        Value::MultiplyClamp => {
            for lane in 0..N {
                value[0][lane] = lane::multiply_clamp(of_lane(a, lane), of_lane(b, lane), of_lane(c, lane));
            }
            replicate(value);
        }
        Value::Address(function) => {
            for n in (0..4).filter(|n| wanted >> n & 1 == 1) {
                value[n] = a[n].map(function);
            }
        }
        Value::Push(compare) => {
            for lane in 0..N {
                value[0][lane] = lane::push(compare, a[3][lane], b[3][lane]).1;
            }
            results.predicate = Some(holds(&a[3], |x| x == 0.0) & holds(&b[3], |x| compare.holds(x)));
            replicate(value);
        }
        Value::Write(compare) => {
            *value = *b;
            results.kept = [0, 1, 2, 3].map(|n| !holds(&a[n], |x| compare.holds(x)));
        }
        Value::Scalar(_) | Value::Vector(_) | Value::Predicate(_) => {
            return compute_scalars(operation, &a[3], &b[3], &c[3]);
        }
    }
    results
}

/// Computes an operation of the math engine.
#[inline(always)]
fn compute_scalars<const N: usize>(operation: &Operation, a: &Row<N>, b: &Row<N>, c: &Row<N>) -> Results<N> {
    let mut results = Results { value: [[0.0; N]; 4], kept: [0; 4], predicate: None };
    let value = &mut results.value;
    match operation.value {
        Value::Scalar(function) => {
            each(a, b, c, &mut value[0], function);
            replicate(value);
        }
        Value::Vector(function) => {
            for lane in 0..N {
                let vector = function(a[lane], b[lane], c[lane]);
                (0..4).for_each(|n| value[n][lane] = vector[n]);
            }
        }
        Value::Predicate(function) => {
            value[0] = a.map(|a| function(a).1);
            results.predicate = Some(holds(a, |a| function(a).0));
            replicate(value);
        }
        Value::Nothing
        | Value::Channel(_)
        | Value::Dot
        | Value::Distance
        | Value::MultiplyClamp
        | Value::Address(_)
        | Value::Push(_)
        | Value::Write(_) => {}
    }
    results
}

#[inline(always)]
fn replicate<const N: usize>(value: &mut Vector<N>) {
    let [x, rest @ ..] = value;
    rest.fill(*x);
}

/// Computes one channel of an operation that works channel by channel. `function` is the function of the operation for
/// one vertex. The compiler does not vectorise calls of `function`. So this function contains separate code for
/// frequent operations.
#[inline(always)]
fn channel<const N: usize>(
    op: Op,
    function: fn(f32, f32, f32) -> f32,
    a: &Row<N>,
    b: &Row<N>,
    c: &Row<N>,
    out: &mut Row<N>,
) {
    let Op::Vector(op) = op else { return each(a, b, c, out, function_of_macro(op)) };
    match op {
        VeOp::VE_MULTIPLY => each(a, b, c, out, |a, b, _| lane::multiply(a, b)),
        VeOp::VE_ADD => each(a, b, c, out, |a, b, _| lane::add(a, b)),
        VeOp::VE_MULTIPLY_ADD => each(a, b, c, out, lane::multiply_add),
        VeOp::VE_FRACTION => each(a, b, c, out, |a, _, _| lane::fraction(a)),
        VeOp::VE_MAXIMUM => each(a, b, c, out, |a, b, _| lane::maximum(a, b)),
        VeOp::VE_MINIMUM => each(a, b, c, out, |a, b, _| lane::minimum(a, b)),
        VeOp::VE_SET_GREATER_THAN_EQUAL => each(a, b, c, out, |a, b, _| lane::set(a >= b)),
        VeOp::VE_SET_LESS_THAN => each(a, b, c, out, |a, b, _| lane::set(a < b)),
        _ => each(a, b, c, out, function),
    }
}

#[inline(always)]
fn function_of_macro(op: Op) -> fn(f32, f32, f32) -> f32 {
    match op {
        Op::Macro(crate::pvs::words::MacroOp::MACRO_OP_2CLK_M2X_ADD) => lane::multiply_x2_add,
        Op::Macro(_) | Op::Vector(_) | Op::Math(_) => lane::multiply_add,
    }
}

// ---- Writes

/// Writes the lanes whose bit in `lanes` is set.
#[inline(always)]
fn blend<const N: usize>(row: &mut [u32; WIDTH], value: &Row<N>, lanes: u64) {
    for lane in 0..N {
        let keep = ((lanes >> lane & 1) as u32).wrapping_sub(1);
        row[lane] = row[lane] & keep | value[lane].to_bits() & !keep;
    }
}

#[inline(always)]
fn write<const N: usize>(group: &mut Group, inst: &Inst, target: Target, results: &Results<N>, lanes: Mask) {
    let channels = inst.dst.mask;
    for channel in (0..4).filter(|channel| channels >> channel & 1 == 1) {
        let from = if inst.dst.file == DstType::OUT_REPL_X { 0 } else { channel };
        let value = &results.value[from];
        let kept = Mask(results.kept[from]);
        match target {
            Target::Rows(start) | Target::Output(start, _) => {
                blend(&mut group.rows[start + channel], value, (lanes - kept).0);
            }
            Target::A0 => {
                for lane in (lanes - kept).lanes() {
                    group.a0[channel][lane.index()] = lane::address(value[lane.index()]);
                }
                group.a0_written[channel] |= lanes - kept;
            }
            Target::Nothing => {}
        }
        if let Target::Output(_, output) = target {
            mark(&mut group.written[output], 1 << channel, lanes - kept);
        }
    }
}
