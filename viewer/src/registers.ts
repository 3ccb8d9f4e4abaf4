// The registers of a group in front of any step: the writes replayed from the nearest place that is kept.

import { has, lowerBound, type Run } from "./data";

/** Writes between two places that are kept. */
const INTERVAL = 20_000;

export class Registers {
  /** Registers by number, channels counted as registers; of each, its lanes. */
  private values: Int32Array;
  private written: Uint8Array;
  private at = 0;
  private readonly kept: { at: number; values: Int32Array; written: Uint8Array }[] = [];
  private readonly lanes: number;
  readonly count: number;

  constructor(
    private readonly run: Run,
    private readonly group: number,
  ) {
    this.lanes = run.lanes_per_group;
    let most = 0;
    for (const register of run.writeRegister) most = Math.max(most, register + 1);
    this.count = most;
    this.values = new Int32Array(most * this.lanes);
    this.written = new Uint8Array(most);
  }

  /** Goes to the front of a step. */
  seek(step: number): void {
    const end = lowerBound(this.run.writeStep, step);
    if (end < this.at) {
      while (this.kept.length > 0 && this.kept[this.kept.length - 1]!.at > end) this.kept.pop();
      const from = this.kept[this.kept.length - 1];
      this.at = from?.at ?? 0;
      this.values = from ? from.values.slice() : new Int32Array(this.values.length);
      this.written = from ? from.written.slice() : new Uint8Array(this.written.length);
    }
    while (this.at < end) {
      const last = this.kept[this.kept.length - 1]?.at ?? 0;
      if (this.at - last >= INTERVAL) {
        this.kept.push({ at: this.at, values: this.values.slice(), written: this.written.slice() });
      }
      this.apply(this.at++);
    }
  }

  private apply(write: number): void {
    const { run } = this;
    if (run.group[run.writeStep[write]!] !== this.group) return;
    const register = run.writeRegister[write]!;
    const low = run.writeLow[write]!;
    const high = run.writeHigh[write]!;
    let from = run.writeStart[write]!;
    this.written[register] = 1;
    for (let lane = 0; lane < this.lanes; lane++) {
      if (has(low, high, lane)) this.values[register * this.lanes + lane] = run.writeValues[from++]!;
    }
  }

  isWritten(register: number): boolean {
    return this.written[register] === 1;
  }

  value(register: number, lane: number): number {
    return this.values[register * this.lanes + lane]!;
  }

  /** The registers that a step writes, with their lanes. */
  writesOf(step: number): Map<number, (lane: number) => boolean> {
    const found = new Map<number, (lane: number) => boolean>();
    const { run } = this;
    for (let write = lowerBound(run.writeStep, step); run.writeStep[write] === step; write++) {
      const low = run.writeLow[write]!;
      const high = run.writeHigh[write]!;
      found.set(run.writeRegister[write]!, (lane) => has(low, high, lane));
    }
    return found;
  }
}

/** The manual's name of a register by its number in a trace: channels count where a register has them. */
export function registerName(run: Run, number: number): string {
  const first = run.registers[0];
  if (!first) return `r${number}`;
  const width = Math.max(1, first.channels.length);
  const channel = first.channels[number % width];
  return `${first.name}${Math.floor(number / width)}${channel ? `.${channel}` : ""}`;
}

const buffer = new DataView(new ArrayBuffer(4));

/** A value in a way of showing numbers; `auto` takes what is small as an integer and the rest as a float, if it is one. */
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
