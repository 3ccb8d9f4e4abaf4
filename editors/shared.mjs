// What the tests of editors share. RECONVERGE names another command than target/debug/reconverge.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const editors = dirname(fileURLToPath(import.meta.url));
export const root = resolve(editors, "..");
export const samples = join(root, "docs/samples");
export const binary = resolve(process.env.RECONVERGE ?? join(root, "target/debug/reconverge"));

/** Whether a program is here, for tests that are skipped without it. */
export function without(program) {
  return spawnSync("sh", ["-c", `command -v ${program}`]).status === 0 ? false : `${program} is not here`;
}

/** The sources of docs/samples and docs/exercises with their text. */
export function sources() {
  const found = [];
  for (const folder of ["docs/samples", "docs/exercises", "docs/notebooks"]) {
    for (const name of readdirSync(join(root, folder), { recursive: true })) {
      if (name.endsWith(".s")) found.push({ name: join(folder, name), text: readFileSync(join(root, folder, name), "utf8") });
    }
  }
  return found;
}

/** Where `word` is for the first time after `after`: its line, column and offset, all from 0. */
export function place(text, word, after = "") {
  const at = text.indexOf(word, text.indexOf(after) + after.length);
  if (at < 0) throw new Error(`no ${word} after ${after}`);
  const before = text.slice(0, at).split("\n");
  return { line: before.length - 1, character: before.at(-1).length, offset: at };
}

/** A word of each kind, in a text of each machine: sample, kind, word, and what comes before it. */
export const KINDS = {
  "collatz.s": [
    ["comment", "; How many"],
    ["directive", ".kernel"],
    ["mnemonic", "breakaddr"],
    ["type", "b32", "and "],
    ["register", "$r3", "add b32 "],
    ["number", "0xffff"],
    ["label", "step:"],
    ["condition", "lg", "("],
    ["prefix", "join", "next:\n    "],
    ["space", "s[", "add b32 $r0 b32 "],
  ],
  "tutorial-r500.s": [
    ["directive", ".isa"],
    ["mnemonic", "MAD"],
    ["register", "temp", "ALU "],
    ["number", "1", "ALU temp["],
    ["comment", ";"],
  ],
  "tutorial-r700.s": [
    ["directive", ".gprs"],
    ["mnemonic", "ALU_PUSH_BEFORE"],
    ["mnemonic", "PRED_SETGT"],
    ["slot", "x:"],
    ["register", "R0", "8.0f, "],
    ["number", "8.0f"],
    ["label", "@other", "ADDR("],
    ["label", "@middle:"],
    ["flag", "UPDATE_PRED"],
  ],
};
