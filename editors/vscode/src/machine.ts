// The machine of a text, as `reconverge asm` finds it: `.isa`, or else the machine of the chip of `.chip`. If the text states none, the name
// of the file or the setting decides, and commands need --isa.
import chips from "./chips.json";

export type Machine = keyof typeof chips;

export const MACHINES = Object.keys(chips) as Machine[];

/** The machine of a text, and its origin. */
export interface Found {
  machine: Machine;
  /** The text states it, so the command finds it as well. */
  stated: boolean;
}

const DIRECTIVE = /^[ \t]*\.(isa|chip)[ \t]+([\w-]+)/gm;

function named(name: string | undefined): Machine | undefined {
  return MACHINES.find((machine) => machine === name?.toLowerCase());
}

/** Returns the machine with a chip of this name, in any case. */
export function machineOfChip(chip: string): Machine | undefined {
  return MACHINES.find((machine) => chips[machine].some((known) => known.toLowerCase() === chip.toLowerCase()));
}

/** Returns the machine that a text states. */
export function statedMachine(text: string): Machine | undefined {
  let ofChip: Machine | undefined;
  for (const [, directive, value] of text.matchAll(DIRECTIVE)) {
    const isa = directive === "isa" ? named(value) : undefined;
    if (isa) return isa;
    if (directive === "chip") ofChip ??= machineOfChip(value ?? "");
  }
  return ofChip;
}

/** Returns the machine of a text, its file name and the setting, in this order. */
export function machineOf(text: string, fileName: string, setting: string | undefined): Found | undefined {
  const stated = statedMachine(text);
  if (stated) return { machine: stated, stated: true };
  const ending = /\.(\w+)\.\w+$/.exec(fileName)?.[1];
  const latte = /\.[vp]sh$/.test(fileName) ? "r700" : undefined;
  const machine = named(ending) ?? named(latte) ?? named(setting);
  return machine && { machine, stated: false };
}
