// The data of the page, and the functions that unpack its columns.
//
// A column is a list of integers. It is stored as the differences of consecutive integers, in zigzag varints that are compressed with zlib
// (RFC 1950) and written in base64.

/** A run as the page stores it. `crates/workbench/src/report.rs` writes this form. */
export interface PackedRun {
  title: string;
  isa: string;
  chip: string | null;
  program: string | null;
  unit: string;
  lanes_per_group: number;
  groups: number;
  lanes: number;
  listing: Line[];
  /** Counts of each line of the program: executed, lanes, diverged, taken_cost, not_cost, reconverged, distance, farthest. */
  counts: number[][];
  totals: Totals;
  /** The reasons why a lane runs or waits: each in a few words and as a sentence, with the lane's state, which determines the colour. */
  whys: { text: string; more: string; state: number }[];
  /** Indices into `whys` for the lanes of a group, as runs: pairs of an index and a number of lanes. */
  vectors: number[][];
  /** Heading of the machine's own flow state. */
  mechanism: string;
  /** The machine's own flow state, innermost first. */
  stacks: Row[][];
  /** Classes of registers. `first` is the number of the first register of the class, as writes state it. */
  registers: { name: string; count: number; channels: string; first: number }[];
  steps: { count: number; group: string; line: string; vector: string; stack: string };
  /** Initial registers of each group, as writes in the group's first step. */
  initial: PackedWrites;
  writes: PackedWrites;
  /** Last step for which the page has the registers. */
  registers_until: number;
  /** Events of the flow: the step, and the index in `EVENTS`. */
  events: { count: number; step: string; kind: string };
  /** Sentences about data that the page does not contain. */
  notes: string[];
  outcome: Outcome;
}

/** Writes to registers. Each write has a step, a register, the lanes (low and high word), and a value for each of these lanes. */
export interface PackedWrites {
  count: number;
  step: string;
  register: string;
  low: string;
  high: string;
  values: string;
}

/** A mask of lanes: low and high word. */
export type Lanes = [number, number];

/** A row of the machine's own flow state, in the manual's words. */
export interface Row {
  kind: string;
  to?: number;
  count?: number;
  /** The lanes that the row stores, by the word for their common property. */
  masks?: [string, Lanes][];
  /** The lanes that wait for this row. */
  holds?: Lanes;
}

/** The end of a run: its trap, findings and outputs. */
export interface Outcome {
  trap: { message: string; address: number; lanes: [number, number] } | null;
  mismatches: string[];
  findings: string[];
  outputs: { name: string; kind: string; rows: string[][]; left_rows: number; left_columns: number }[];
  more_outputs: number;
  fidelity: { grade: string; operations: [string, number][] }[];
}

export interface Line {
  address: number;
  text: string;
  label?: string;
  depth: number;
  words: string;
  notes?: string[];
  meaning?: string[];
  flow?: string[];
  source?: string;
  /** The instruction as in the source, with comments, and the labels and comment lines before it. */
  written?: { line: number; text: string; before?: string[] };
}

export interface Totals {
  instructions: number;
  lane_instructions: number;
  divergent_branches: number;
  simd_efficiency: number;
  stack_high_water: number;
  groups: number;
}

/** The states of a lane, in the order of their numbers: name, letter, colours (Okabe and Ito's) in light and dark. */
export const STATES = [
  { name: "active", letter: "A", light: "#0072b2", dark: "#56b4e9" },
  { name: "branch", letter: "b", light: "#e69f00", dark: "#e69f00" },
  { name: "break", letter: "k", light: "#d55e00", dark: "#d55e00" },
  { name: "continue", letter: "c", light: "#cc79a7", dark: "#cc79a7" },
  { name: "parked", letter: "p", light: "#f0e442", dark: "#f0e442" },
  { name: "exited", letter: "x", light: "#8c8c8c", dark: "#777777" },
  { name: "uncovered", letter: "u", light: "#dddddd", dark: "#3a3a3a" },
] as const;

/** Whether the pattern of a state has a mark at a pixel. Patterns distinguish states without colour. */
export function patterned(state: number, x: number, y: number): boolean {
  switch (state) {
    case 1: return (x + y) % 6 === 0; // branch: strokes to the right
    case 2: return (x - y + 6_000_000) % 6 < 2; // break: thick strokes to the left
    case 3: return x % 4 === 0 && y % 4 === 0; // continue: dots
    case 4: return y % 4 === 0; // parked: lines
    case 6: return x % 6 === 0 && y % 6 === 0; // uncovered: few dots
    default: return false;
  }
}

/** The events of the flow, in the order of their numbers: name, mark, meaning, colours in light and dark. */
export const EVENTS = [
  { name: "diverge", mark: "▼", means: "the active lanes take two paths: one side runs, the other waits", light: "#b34700", dark: "#ff9e57" },
  { name: "reconverge", mark: "▲", means: "lanes that waited run together with those that ran", light: "#00785a", dark: "#3ddcb0" },
  { name: "trap", mark: "■", means: "the run ends", light: "#b00020", dark: "#ff8a80" },
  { name: "resume", mark: "▶", means: "the other side's turn: lanes that waited run alone", light: "#7b3294", dark: "#d3a4f0" },
] as const;

/** Writes to registers, unpacked. */
export interface Writes {
  step: Int32Array;
  register: Int32Array;
  low: Int32Array;
  high: Int32Array;
  /** Index of the first value of each write. */
  start: Int32Array;
  values: Int32Array;
}

/** A run, unpacked. */
export interface Run extends Omit<PackedRun, "steps" | "initial" | "writes" | "events" | "vectors"> {
  stepCount: number;
  group: Int32Array;
  line: Int32Array;
  vector: Int32Array;
  stack: Int32Array;
  /** The `why` of each lane, indexed by vector. */
  vectors: Uint16Array[];
  /** The state of each lane, indexed by vector. */
  states: Uint8Array[];
  initial: Writes;
  writes: Writes;
  eventStep: Int32Array;
  eventKind: Int32Array;
  /** The steps of each group, indexed by group. */
  stepsOf: Int32Array[];
}

/** The integers of a column. */
export async function column(packed: string, count: number): Promise<Int32Array> {
  const numbers = new Int32Array(count);
  if (count === 0) return numbers;
  const raw = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let at = 0;
  let last = 0;
  for (let index = 0; index < count; index++) {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error(`a column ends at number ${index} of ${count}`);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    last = (last + ((value >>> 1) ^ -(value & 1))) | 0;
    numbers[index] = last;
  }
  return numbers;
}

/** Whether a lane is in a mask of two words. */
export function has(low: number, high: number, lane: number): boolean {
  return ((lane < 32 ? low >>> lane : high >>> (lane - 32)) & 1) !== 0;
}

function bits(word: number): number {
  let count = 0;
  for (let rest = word; rest !== 0; rest &= rest - 1) count++;
  return count;
}

async function unpackWrites(packed: PackedWrites): Promise<Writes> {
  const { count } = packed;
  const [step, register, low, high] = await Promise.all([
    column(packed.step, count),
    column(packed.register, count),
    column(packed.low, count),
    column(packed.high, count),
  ]);
  const start = new Int32Array(count + 1);
  for (let write = 0; write < count; write++) {
    start[write + 1] = start[write]! + bits(low[write]!) + bits(high[write]!);
  }
  return { step, register, low, high, start, values: await column(packed.values, start[count]!) };
}

export async function unpack(packed: PackedRun): Promise<Run> {
  const { steps, events } = packed;
  const [group, line, vector, stack, eventStep, eventKind, initial, writes] = await Promise.all([
    column(steps.group, steps.count),
    column(steps.line, steps.count),
    column(steps.vector, steps.count),
    column(steps.stack, steps.count),
    column(events.step, events.count),
    column(events.kind, events.count),
    unpackWrites(packed.initial),
    unpackWrites(packed.writes),
  ]);
  const vectors = packed.vectors.map((runs) => {
    const lanes = new Uint16Array(packed.lanes_per_group);
    let lane = 0;
    for (let pair = 0; pair + 1 < runs.length; pair += 2) {
      for (let left = runs[pair + 1]!; left > 0 && lane < lanes.length; left--) lanes[lane++] = runs[pair]!;
    }
    return lanes;
  });
  const states = vectors.map((lanes) => Uint8Array.from(lanes, (why) => packed.whys[why]?.state ?? 6));
  const counts = new Int32Array(packed.groups);
  for (const of of group) counts[of] = (counts[of] ?? 0) + 1;
  const stepsOf = Array.from(counts, (count) => new Int32Array(count));
  counts.fill(0);
  group.forEach((of, step) => {
    stepsOf[of]![counts[of]!] = step;
    counts[of] = counts[of]! + 1;
  });
  return {
    ...packed,
    stepCount: steps.count,
    group,
    line,
    vector,
    stack,
    vectors,
    states,
    initial,
    writes,
    eventStep,
    eventKind,
    stepsOf,
  };
}

/** The first index in a sorted list whose number is not below `value`. */
export function lowerBound(list: Int32Array, value: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A set of lanes as text, such as `0-3,8`. */
export function laneSet([low, high]: Lanes, width: number): string {
  const parts: string[] = [];
  for (let lane = 0; lane < width; lane++) {
    if (!has(low, high, lane)) continue;
    const first = lane;
    while (lane + 1 < width && has(low, high, lane + 1)) lane++;
    parts.push(first === lane ? `${lane}` : `${first}-${lane}`);
  }
  return parts.join(",");
}

/** The manual's name of a register, which a write states by number. */
export function registerName(run: Run, number: number): string {
  for (const { name, count, channels, first } of run.registers) {
    const width = Math.max(1, channels.length);
    const place = number - first;
    if (place < 0 || place >= count * width) continue;
    return `${name}${Math.floor(place / width)}${channels ? `.${channels[place % width]}` : ""}`;
  }
  return `register ${number}`;
}

/** An address as the machine's manual spells it. */
export function address(run: Run, at: number): string {
  return run.unit === "bytes" ? `0x${at.toString(16)}` : String(at);
}
