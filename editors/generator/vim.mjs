// Syntax files for Vim and Neovim, and the table of chips by which Neovim finds the machine of a text.
import { vim } from "./dialects.mjs";
import { literal, oneOf, SHARED } from "./texts.mjs";

const HEAD = (comment) => `${comment} Written by editors/generator/generate.mjs; do not edit.\n`;
const group = (kind) => `reconverge${kind}`;
const match = (kind, pattern) => `syntax match ${group(kind)} '${pattern}'`;

/** Words of a group. A match, since words such as \`contains\` cannot be keywords of Vim's syntax. */
function words(kind, list) {
  return list.length === 0 ? [] : [match(kind, vim(`<${oneOf(list.map(literal))}>`))];
}

const LINKS = {
  Comment: "Comment", String: "String", Directive: "PreProc", Argument: "Special", Register: "Identifier", Builtin: "Constant",
  Space: "Structure", Condition: "Conditional", Prefix: "Statement", Mnemonic: "Statement", Type: "Type", Modifier: "StorageClass",
  Number: "Number", Label: "Label", Flag: "Constant", Slot: "Special",
};

function syntax(text) {
  // Of two matches at one place, Vim takes the one that is stated last.
  const lines = [
    ...(text.hasFlags ? [match("Flag", vim(SHARED.flag))] : []),
    match("Number", vim(SHARED.number)),
    ...words("Modifier", text.modifiers),
    ...words("Type", text.types),
    ...words("Mnemonic", text.mnemonics),
    ...words("Prefix", text.prefixes),
    ...(text.conditions.length > 0 ? [match("Condition", vim(`\\(${oneOf(text.conditions)}>`) + "\\ze(\\s+\\$c|\\))")] : []),
    ...text.spaces.map((space) => match("Space", vim(space).replace(/\\\[$/, "\\ze\\["))),
    ...text.builtins.map((pattern) => match("Builtin", vim(pattern))),
    ...text.registers.map((pattern) => match("Register", vim(pattern).replace(/\\\[$/, "\\ze\\["))),
    ...(text.name === "r700" ? [match("Slot", "\\v<[xyzwt]:\\ze\\s")] : []),
    match("Label", vim(SHARED.jump)),
    match("Label", `\\v^\\s*${vim(text.label).slice(2)}:\\ze(\\s|$)`),
    match("Argument", vim(SHARED.argument)),
    match("Directive", `\\v^\\s*${vim(SHARED.directive).slice(2)}`),
    match("String", vim(SHARED.string)),
    match("Comment", vim(SHARED.address)),
    match("Comment", vim(SHARED.comment)),
  ];
  const links = Object.entries(LINKS).map(([kind, known]) => `highlight default link ${group(kind)} ${known}`);
  return `${HEAD('"')}if exists("b:current_syntax")
  finish
endif
syntax case match
${lines.join("\n")}
${links.join("\n")}
let b:current_syntax = "reconverge-${text.name}"
`;
}

export function vimFiles(machines) {
  const chips = machines.map(({ name, chips }) => {
    const rows = chips.map((chip) => `  ["${chip.toLowerCase()}"] = "${name}",`);
    return [...new Set(rows)].join("\n");
  });
  const files = { "neovim/lua/reconverge/chips.lua": `${HEAD("--")}return {\n${chips.join("\n")}\n}\n` };
  for (const text of machines) files[`neovim/syntax/reconverge-${text.name}.vim`] = syntax(text);
  return files;
}
