// The tokens of a text by the TextMate grammars, with the tokenizer of VS Code.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

import { editors } from "../../shared.mjs";

/** The grammars, and the library that matches their expressions. */
async function loaded() {
  const wasm = readFileSync(createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm);
  return new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
      const name = scope.replace("source.", "").replace(".", "-");
      const path = join(editors, `vscode/syntaxes/${name}.tmLanguage.json`);
      return textmate.parseRawGrammar(readFileSync(path, "utf8"), path);
    },
  });
}

let registry;

/** The tokens of each line: their place, text and innermost scope. */
export async function tokens(text, machine) {
  registry ??= await loaded();
  const grammar = await registry.loadGrammar(machine ? `source.reconverge.${machine}` : "source.reconverge");
  let state = textmate.INITIAL;
  return text.split("\n").flatMap((line, number) => {
    const read = grammar.tokenizeLine(line, state);
    state = read.ruleStack;
    return read.tokens.map(({ startIndex, endIndex, scopes }) => ({
      line: number, start: startIndex, end: endIndex, text: line.slice(startIndex, endIndex), scope: scopes.slice(1).at(-1) ?? "",
    }));
  });
}
