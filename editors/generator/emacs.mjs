// The words of the Emacs mode, between two lines of editors/emacs/reconverge-mode.el.
import { emacs } from "./dialects.mjs";
import { oneOf, SHARED } from "./texts.mjs";

const FROM = ";; Written by editors/generator/generate.mjs from here on; do not edit.\n";
const TO = ";; Written by editors/generator/generate.mjs up to here.\n";

const quoted = (text) => JSON.stringify(text);
const list = (name, words) => `     (${name} ${words.map(quoted).join(" ")})`;
const pattern = (name, text) => `     (${name} . ${quoted(emacs(text))})`;

function machine(text) {
  const rows = [
    list("chips", [...new Set(text.chips.map((chip) => chip.toLowerCase()))]),
    list("mnemonics", [...text.mnemonics, ...text.prefixes]),
    list("types", text.types),
    list("modifiers", text.modifiers),
    pattern("register", oneOf([...text.registers, ...text.builtins])),
    ...(text.spaces.length > 0 ? [pattern("space", oneOf(text.spaces))] : []),
    ...(text.conditions.length > 0 ? [pattern("condition", `\\(${oneOf(text.conditions)}>`)] : []),
    pattern("label", `${text.label}:`),
  ];
  return `    (${text.name}\n${rows.join("\n")})`;
}

/** The file with its part between the two lines written anew. */
export function emacsFile(before, machines) {
  const [head, rest] = before.split(FROM);
  const tail = rest?.split(TO)[1];
  if (tail === undefined) throw new Error("emacs/reconverge-mode.el lacks the lines between which words are written");
  const shared = ["string", "number", "jump", "argument", "directive", "flag"].map((name) => pattern(name, SHARED[name]));
  return `${head}${FROM}(defconst reconverge--texts
  '(
${machines.map(machine).join("\n")})
  "Words and patterns of each machine.")
(defconst reconverge--shared
  '(
${shared.join("\n")})
  "Patterns of all three texts.")
${TO}${tail}`;
}
