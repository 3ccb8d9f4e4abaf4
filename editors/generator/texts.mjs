// The texts of the three machines as data: the words come from the command, the shapes of everything else are stated here once for
// all editors.
//
// A pattern is written in a small dialect that every editor's expressions can express: `<` and `>` are the start and the end of a
// word, `[…]`, `(…|…)`, `?`, `*` and `+` are as everywhere, and `\` makes the next character literal.
import { execFileSync, spawnSync } from "node:child_process";

export const MACHINES = ["r500", "r700", "tesla"];

/** What the command answers. */
function asked(command, ...args) {
  return execFileSync(command, args, { encoding: "utf8", maxBuffer: 1 << 26 });
}

/** The names of a machine's chips, from the message about a chip that does not exist. */
function chips(command, machine) {
  const { stderr } = spawnSync(command, ["forms", "--isa", machine, "--chip", "none"], { encoding: "utf8" });
  const names = stderr.split(`${machine} has `)[1];
  if (!names) throw new Error(`${machine}: the command does not list its chips: ${stderr}`);
  return names.trim().split(", ");
}

/** The program types whose forms differ. */
const STAGES = { r500: [], r700: [], tesla: ["compute", "vertex", "geometry", "fragment"] };

/** The forms of each mnemonic: the text of the form, with the meaning of its places. */
function forms(command, machine, mnemonics) {
  const found = [];
  const all = STAGES[machine].flatMap((stage) => mnemonics.map((mnemonic) => [mnemonic, "--stage", stage]));
  for (const which of all.length > 0 ? all : mnemonics.map((mnemonic) => [mnemonic])) {
    const { stdout, status } = spawnSync(command, ["forms", ...which, "--isa", machine, "--json"], { encoding: "utf8" });
    if (status !== 0) continue; // an operation of another program type or chip
    for (const form of JSON.parse(stdout).forms) {
      found.push({ text: form.form.replace(/<[^>]*>/g, " "), example: form.example });
      for (const place of form.places) found.push({ text: place.text.replace(/<[^>]*>/g, " "), name: place.name, example: "" });
    }
  }
  return found;
}

const distinct = (words) => [...new Set(words)].sort();
const words = (texts, shape) => distinct(texts.flatMap((text) => [...text.matchAll(shape)].map((found) => found[0])));
export const literal = (text) => text.replace(/[$.[\](){}|?*+<>\\]/g, "\\$&");
/** A name of a form, in which N is a number. */
const numbered = (name) => literal(name).replace(/N/, "[0-9]+");
export const oneOf = (list) => `(${list.join("|")})`;

/** The name of a label. */
const NAME = "[A-Za-z_][A-Za-z0-9_.$]*";
const WORD = /(?<![\w$.@])[a-z][\w.]*(?![\w[])/g;

/** Words that only Tesla's text has, from its forms. */
function tesla(known, mnemonics) {
  const texts = known.map((form) => form.text);
  const predicates = known.filter((form) => form.name === "<predicate>").map((form) => form.text);
  // Listings name registers in full; numbered ones differ only in their number.
  const named = words(texts, /\$[a-z]+(?:[0-9]+|N)?[a-z]*/g);
  const registers = named.filter((name) => !/[0-9]$/.test(name) || !named.includes(name.replace(/[0-9]+$/, "N"))).map(numbered);
  const spaces = words(texts, /(?<![\w$])[a-z]N?(?=\[)/g).map(numbered);
  const conditions = words(predicates, WORD).filter((word) => word !== "cN");
  const all = words(texts, WORD).filter((word) => !mnemonics.includes(word) && !conditions.includes(word));
  const types = all.filter((word) => /^[bfsu][0-9]+(\.[0-9])?$/.test(word));
  const prefixes = ["exit", "join", "short"];
  return {
    registers: [`${oneOf(registers)}>`],
    spaces: [`<${oneOf(spaces)}\\[`],
    conditions,
    types,
    prefixes,
    modifiers: all.filter((word) => !types.includes(word) && !prefixes.includes(word) && word.length > 1),
    hasFlags: false,
    builtins: ["<(threadIdx|blockIdx|blockDim|gridDim)\\.[xyz]>"],
    label: NAME,
  };
}

/** R500's fragment processor, and the vertex unit, whose registers are one letter and a number. */
function r500(known, mnemonics) {
  const texts = known.flatMap((form) => [form.text, form.example]);
  const files = words(texts, /(?<![\w$])[a-z_]+(?=\[[A-Z0-9])/g);
  const sources = words(texts, /(?<![\w$])src[0-9p]/g);
  // `TEX` begins a line, but is none of the operations.
  const heads = known.flatMap(({ text }) => /^[A-Z|]+(?= )/.exec(text)?.[0].split("|") ?? []);
  const lower = words(texts, WORD).filter((word) => !mnemonics.includes(word) && !files.includes(word));
  return {
    registers: [`<${oneOf([...files, ...sources])}>`, "<(at|ox|[aciot])[0-9]+>", "<aL>"],
    spaces: [],
    conditions: [],
    types: [],
    prefixes: [],
    mnemonics: distinct([...mnemonics, ...heads]),
    modifiers: lower.filter((word) => word.length > 1 && !/[.0-9]/.test(word) && !/^[rgba]+$/.test(word)),
    hasFlags: true,
    builtins: [],
    label: NAME,
  };
}

/** R700: registers of clauses, constants, resources. */
function r700() {
  return {
    registers: [
      "<(R|T|KC|CB|PV|PS|S)[0-9]+>", "<[tsbi][0-9]+>", "<(PV|PS|AR|aL|GLOBAL_AR|GLOBAL)>", "<(R|C|KC[01])\\[", "<_R[0-9]+>",
    ],
    spaces: ["<(PIXEL|POS|PARAM|READ|WRITE|READ_IND|WRITE_IND|DWORD_PTR|VEC_PTR)\\["],
    conditions: [],
    types: [],
    prefixes: [],
    modifiers: [],
    hasFlags: true,
    builtins: [],
    // A name with a colon is an instruction or a slot.
    label: `@${NAME}`,
  };
}

const OWN = { r500, r700, tesla };

/** Everything that differs between the machines. */
export function machine(command, name) {
  const mnemonics = asked(command, "forms", "--isa", name).trim().split("\n");
  const known = forms(command, name, mnemonics);
  return { name, chips: chips(command, name), mnemonics, ...OWN[name](known, mnemonics) };
}

/** What all machines share. The shapes are those of docs/writing.md and of the pages about the three texts. */
export const SHARED = {
  comment: "(;|//).*",
  address: "/\\*[^*]*\\*/",
  string: "\"(\\\\.|[^\"\\\\])*\"",
  directive: "\\.[A-Za-z_][A-Za-z0-9_]*",
  number: "#?-?<(0x[0-9a-fA-F]+|0b[01]+|[0-9]+(\\.[0-9]*)?([eE][-+]?[0-9]+)?f?)>",
  jump: "@[A-Za-z_][A-Za-z0-9_.$]*",
  argument: "\\\\([A-Za-z_][A-Za-z0-9_]*|@)",
  flag: "<([A-Z][A-Z0-9_]+|[0-9]+_[A-Z0-9_]+)>",
  name: "<[A-Za-z_][A-Za-z0-9_]*>",
};

/** Directives that give the next word a name. */
export const NAMING = [".alias", ".equ", ".kernel", ".macro", ".module", ".program", ".sampler", ".variable"];
