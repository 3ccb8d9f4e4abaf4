#!/usr/bin/env node
// Writes the grammars of all editors from what the command says about the three texts.
//
//   node editors/generator/generate.mjs            writes the files
//   node editors/generator/generate.mjs --check    ends with status 1 if a file is not what this script writes
//
// RECONVERGE names another command than target/release/reconverge.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { emacsFile } from "./emacs.mjs";
import { machine, MACHINES } from "./texts.mjs";
import { textmateFiles } from "./textmate.mjs";
import { treeSitterFiles } from "./tree-sitter.mjs";
import { vimFiles } from "./vim.mjs";

const editors = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const command = resolve(process.env.RECONVERGE ?? join(editors, "../target/release/reconverge"));

function existing(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** All files, by path below editors/. */
function generated(machines) {
  const chips = Object.fromEntries(machines.map(({ name, chips }) => [name, chips]));
  const emacs = "emacs/reconverge-mode.el";
  return {
    "vscode/src/chips.json": JSON.stringify(chips, null, 1) + "\n",
    ...textmateFiles(machines),
    ...vimFiles(machines),
    ...treeSitterFiles(machines),
    [emacs]: emacsFile(existing(join(editors, emacs)) ?? "", machines),
  };
}

const check = process.argv.includes("--check");
let different = 0;
for (const [name, text] of Object.entries(generated(MACHINES.map((name) => machine(command, name))))) {
  const path = join(editors, name);
  if (existing(path) === text) continue;
  different += 1;
  if (check) {
    console.error(`editors/${name} is not what editors/generator/generate.mjs writes`);
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`editors/${name}`);
  }
}
process.exitCode = check && different > 0 ? 1 : 0;
