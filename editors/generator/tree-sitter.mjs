// The queries of the tree-sitter grammar for Helix: which words are what, in all three texts at once.
import { textmate } from "./dialects.mjs";
import { oneOf } from "./texts.mjs";

const distinct = (lists) => [...new Set(lists.flat())].sort();
const anyOf = (node, scope, words) => `((${node}) @${scope}\n (#any-of? @${scope}\n  ${words.map((word) => JSON.stringify(word)).join(" ")}))`;
const matching = (node, scope, pattern) => `((${node}) @${scope}\n (#match? @${scope} ${JSON.stringify(pattern)}))`;

export function treeSitterFiles(machines) {
  const all = (key) => distinct(machines.map((text) => text[key]));
  // A register of a form such as `temp[1]` is a word with a bracket after it.
  const registers = all("registers").concat(all("builtins")).map((pattern) => textmate(pattern).replace(/\\\[$/, ""));
  const spaces = all("spaces").map((pattern) => textmate(pattern).replace(/\\\[$/, ""));
  const text = [
    "; Written by editors/generator/generate.mjs; do not edit.",
    "; Where several queries match, the last one counts.",
    "(word) @variable",
    "(member) @variable.other.member",
    "(operator) @operator",
    "(closing) @punctuation.bracket",
    matching("word", "constant", "^[A-Z][A-Z0-9_]+$"),
    matching("word", "type.builtin", `^(${spaces.join("|")})$`),
    anyOf("word", "attribute", all("modifiers")),
    matching("word", "variable.builtin", `^${oneOf(registers)}$`),
    // `b32` is a type of Tesla; R700 has no buffer of that number.
    anyOf("word", "type", all("types")),
    anyOf("word", "keyword.control", all("prefixes")),
    anyOf("word", "function.builtin", all("mnemonics")),
    "(label) @label",
    "(jump) @label",
    // R700 writes a colon after instructions and slots.
    anyOf("label", "function.builtin", distinct(machines.filter(({ name }) => name === "r700").map((text) => text.mnemonics)).map((word) => `${word}:`)),
    matching("label", "keyword", "^[xyzwt]:$"),
    "(register) @variable.builtin",
    "(number) @constant.numeric",
    "(argument) @variable.parameter",
    "(string) @string",
    "(directive) @keyword.directive",
    "(comment) @comment",
  ];
  return { "helix/queries/reconverge/highlights.scm": text.join("\n") + "\n" };
}
