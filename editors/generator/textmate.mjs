// TextMate grammars, for VS Code and other editors that read them. The scopes are ones that themes give different colours.
import { textmate } from "./dialects.mjs";
import { literal, NAMING, oneOf, SHARED } from "./texts.mjs";

const rule = (name, match) => ({ name: `${name}.reconverge`, match });
/** A rule whose groups have scopes. */
const captured = (match, ...names) => ({
  match,
  captures: Object.fromEntries(names.map((name, at) => [at + 1, { name: `${name}.reconverge` }])),
});
const words = (list) => `<${oneOf(list.map(literal))}>`;
/** A pattern without groups of its own, so that captures keep their numbers. */
const plain = (pattern) => textmate(pattern).replace(/(?<!\\)\((?!\?)/g, "(?:");

/** What all three texts share; the rules of a machine come between the two halves. */
function first() {
  return [
    rule("comment.line", plain(SHARED.comment)),
    rule("comment.block", plain(SHARED.address)),
    rule("string.quoted.double", plain(SHARED.string)),
    captured(`^\\s*(${NAMING.map((name) => "\\" + name).join("|")})\\s+([\\w.$]+)`, "keyword.control.directive", "entity.name.function"),
    captured(`^\\s*(${plain(SHARED.directive)})`, "keyword.control.directive"),
    rule("variable.parameter", plain(SHARED.argument)),
  ];
}

function last(hasFlags) {
  return [
    rule("constant.numeric", plain(SHARED.number)),
    rule("entity.name.label", plain(SHARED.jump)),
    rule("variable.other.member", "(?<=[\\w\\])|])\\.[a-z0-9_]+\\b"),
    ...(hasFlags ? [rule("support.constant.flag", plain(SHARED.flag))] : []),
    rule("variable.other", plain(SHARED.name)),
    rule("keyword.operator", "[-+*/%=!<>&|^~#?]+"),
  ];
}

/** The rules of one machine. */
function own(text) {
  const rules = [];
  const add = (name, list, build) => list.length > 0 && rules.push(rule(name, plain(build(list))));
  rules.push(captured(`^\\s*(${plain(text.label)}):(?=\\s|$)`, "entity.name.label"));
  if (text.name === "r700") {
    rules.push(captured("(?:^|(?<=:))\\s*([0-9]+)\\b(?=\\s+(?:[xyzwt?]|[A-Z]\\w*):|\\s+[A-Z])", "constant.numeric.address"));
    rules.push(captured("(?<![\\w.])([xyzwt?]):(?=\\s)", "keyword.other.slot"));
  }
  add("variable.parameter.register", text.registers, oneOf);
  add("support.variable.builtin", text.builtins, oneOf);
  for (const space of text.spaces) rules.push(captured(`(${plain(space).replace(/\\\[$/, "")})(?=\\[)`, "support.variable.space"));
  if (text.conditions.length > 0) {
    rules.push(captured(`\\((${text.conditions.join("|")})(?=\\s+\\$c|\\))`, "keyword.other.condition"));
  }
  add("keyword.control.prefix", text.prefixes, words);
  add("support.function.mnemonic", text.mnemonics, words);
  add("storage.type", text.types, words);
  add("storage.modifier", text.modifiers, words);
  return rules;
}

function grammar(scopeName, name, rules) {
  const about = "Written by editors/generator/generate.mjs; do not edit.";
  return JSON.stringify({ information_for_contributors: [about], name, scopeName, patterns: rules }, null, 1) + "\n";
}

/** The grammars by file: one per machine, and one for a text whose machine is not known. */
export function textmateFiles(machines) {
  const file = (name) => `vscode/syntaxes/${name}.tmLanguage.json`;
  const files = { [file("reconverge")]: grammar("source.reconverge", "Shader machine code", [...first(), ...last(true)]) };
  for (const text of machines) {
    const rules = [...first(), ...own(text), ...last(text.hasFlags)];
    files[file(`reconverge-${text.name}`)] = grammar(`source.reconverge.${text.name}`, `Shader machine code (${text.name})`, rules);
  }
  return files;
}
