// The TextMate grammars over the sources of docs/samples, docs/exercises and docs/notebooks, with the tokenizer of VS Code.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { statedMachine } from "../dist/tests/machine.js";
import { KINDS, place, samples, sources } from "../../shared.mjs";
import { tokens } from "./tokens.js";

const SCOPES = {
  comment: "comment.line", directive: "keyword.control.directive", mnemonic: "support.function.mnemonic", type: "storage.type",
  register: "variable.parameter.register", number: "constant.numeric", label: "entity.name.label",
  condition: "keyword.other.condition", prefix: "keyword.control.prefix", space: "support.variable.space",
  flag: "support.constant.flag", slot: "keyword.other.slot",
};

for (const [sample, kinds] of Object.entries(KINDS)) {
  test(`${sample}: each kind of word has its scope`, async () => {
    const text = readFileSync(join(samples, sample), "utf8");
    const all = await tokens(text, statedMachine(text));
    for (const [kind, word, after] of kinds) {
      const { line, character } = place(text, word, after);
      const token = all.find((token) => token.line === line && token.start <= character && character < token.end);
      assert.equal(token?.scope.replace(".reconverge", ""), SCOPES[kind], `${word} in line ${line + 1}`);
    }
  });
}

test("every word of every source has a scope", async () => {
  const all = sources();
  assert.ok(all.length > 50, `${all.length} sources`);
  for (const { name, text } of all) {
    const machine = statedMachine(text);
    assert.ok(machine, `${name} states no machine`);
    for (const token of await tokens(text, machine)) {
      assert.ok(token.scope !== "" || !/\w/.test(token.text), `${name}:${token.line + 1}: \`${token.text}\``);
    }
  }
});

test("every instruction of every source begins with a word that the grammar knows", async () => {
  const known = ["support.function.mnemonic", "keyword.control.prefix", "storage.modifier", "entity.name.function", "keyword.control.directive"];
  for (const { name, text } of sources()) {
    const machine = statedMachine(text);
    const lines = new Map();
    const macros = [...text.matchAll(/\.macro\s+(\w+)/g)].map(([, name]) => name);
    // The alpha half of R500 begins with `+` and its destinations.
    const half = text.split("\n").map((line) => /^\s*\+/.test(line));
    for (const token of await tokens(text, machine)) {
      // Before the mnemonic: labels, addresses, slots, predicates.
      if (!/^[A-Za-z.]\w*/.test(token.text.trim()) || /label|slot|condition|register|comment|member/.test(token.scope)) continue;
      if (!half[token.line] && !lines.has(token.line)) lines.set(token.line, token);
    }
    for (const [line, token] of lines) {
      const scope = token.scope.replace(".reconverge", "");
      if (!known.includes(scope) && !macros.includes(token.text)) assert.fail(`${name}:${line + 1}: \`${token.text}\` is ${scope}`);
    }
  }
});

test("a comment ends the tokens of a line, and quotation marks keep a semicolon", async () => {
  const [directive, , text, , comment] = await tokens('.kernel "a;b" ; c', "tesla");
  assert.match(directive.scope, /directive/);
  assert.match(text.scope, /string/);
  assert.match(comment.scope, /comment/);
  assert.equal(comment.text, "; c");
});
