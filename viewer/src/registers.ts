// The registers of a group before any step. They are computed from the nearest snapshot and the writes after it.

import { has, lowerBound, registerName, type Run, type Writes } from "./data";

/** Number of writes between two snapshots. */
const INTERVAL = 20_000;

export class Registers {
  /** The values of the lanes of each register, by the number of the register. */
  private values: Int32Array;
  private at = 0;
  private readonly kept: { at: number; values: Int32Array }[] = [];
  private readonly lanes: number;
  /** The registers that are shown, in the order of their numbers: those that the group writes or that are not 0 at its
   * start. A register without any such channel is shown with all of its channels, because the program names it. */
  readonly shown: number[];

  constructor(
    private readonly run: Run,
    private readonly group: number,
  ) {
    this.lanes = run.lanes_per_group;
    const used = new Set<number>();
    const named = new Set<number>();
    run.writes.step.forEach((step, write) => {
      if (run.group[step] === group) used.add(run.writes.register[write]!);
    });
    run.initial.step.forEach((step, write) => {
      if (run.group[step] !== group) return;
      const { register, start, values } = run.initial;
      const isZero = values.subarray(start[write]!, start[write + 1]!).every((value) => value === 0);
      (isZero ? named : used).add(register[write]!);
    });
    const whole = (register: number) => registerName(run, register).split(".")[0]!;
    const known = new Set([...used].map(whole));
    const others = [...named].filter((register) => !used.has(register) && !known.has(whole(register)));
    this.shown = [...used, ...others].sort((a, b) => a - b);
    const most = Math.max(-1, ...this.shown, ...named);
    this.values = new Int32Array((most + 1) * this.lanes);
    run.initial.step.forEach((step, write) => {
      if (run.group[step] === group) this.apply(run.initial, write);
    });
    this.kept.push({ at: 0, values: this.values.slice() });
  }

  /** Goes to the state before a step. */
  seek(step: number): void {
    const { run, kept } = this;
    const end = lowerBound(run.writes.step, step);
    if (end < this.at) {
      while (kept.length > 1 && kept.at(-1)!.at > end) kept.pop();
      const from = kept.at(-1)!;
      this.at = from.at;
      this.values = from.values.slice();
    }
    while (this.at < end) {
      if (this.at - kept.at(-1)!.at >= INTERVAL) kept.push({ at: this.at, values: this.values.slice() });
      if (run.group[run.writes.step[this.at]!] === this.group) this.apply(run.writes, this.at);
      this.at++;
    }
  }

  private apply(writes: Writes, write: number): void {
    const register = writes.register[write]!;
    const low = writes.low[write]!;
    const high = writes.high[write]!;
    let from = writes.start[write]!;
    for (let lane = 0; lane < this.lanes; lane++) {
      if (has(low, high, lane)) this.values[register * this.lanes + lane] = writes.values[from++]!;
    }
  }

  value(register: number, lane: number): number {
    return this.values[register * this.lanes + lane]!;
  }

  /** The registers that a step writes, with the new value of each lane that it writes. */
  writesOf(step: number): Map<number, Map<number, number>> {
    const found = new Map<number, Map<number, number>>();
    const { writes } = this.run;
    for (let write = lowerBound(writes.step, step); writes.step[write] === step; write++) {
      const lanes = found.get(writes.register[write]!) ?? new Map<number, number>();
      let from = writes.start[write]!;
      for (let lane = 0; lane < this.lanes; lane++) {
        if (has(writes.low[write]!, writes.high[write]!, lane)) lanes.set(lane, writes.values[from++]!);
      }
      found.set(writes.register[write]!, lanes);
    }
    return found;
  }
}

const buffer = new DataView(new ArrayBuffer(4));

/** Formats a value. `auto` shows a small value as an integer, and any other value as a float if its bits are a plausible float. */
export function shown(value: number, as: string): string {
  if (as === "hex") return (value >>> 0).toString(16).padStart(8, "0");
  if (as === "int") return String(value);
  if (as === "uint") return String(value >>> 0);
  buffer.setInt32(0, value);
  if (as === "auto" && Math.abs(value) < 1 << 20) return String(value);
  const float = buffer.getFloat32(0);
  if (as === "auto" && !(Math.abs(float) > 1e-12 && Math.abs(float) < 1e12)) return `0x${shown(value, "hex")}`;
  return Number.isFinite(float) ? String(Number(float.toPrecision(6))) : String(float);
}
