// The tree-sitter grammar and its queries. Without tree-sitter, the tokens are read by its rules: the highest precedence wins, then
// the longest token, then the first rule.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import vm from "node:vm";

import { editors, KINDS, place, samples, sources, without } from "../shared.mjs";

const folder = join(editors, "helix/tree-sitter-reconverge");
const queries = readFileSync(join(editors, "helix/queries/reconverge/highlights.scm"), "utf8");

/** The tokens of grammar.js: name, expression, precedence, and whether nothing may be before them. */
function grammar() {
  const source = (rule) => (rule.any ? `(?:${rule.any.map(source).join("|")})` : rule.source);
  const token = (rule) => ({ precedence: 0, ...(rule.precedence === undefined ? { rule } : rule) });
  token.immediate = (rule) => ({ ...token(rule), immediate: true });
  const sandbox = {
    module: {}, token, RegExp,
    prec: (precedence, rule) => ({ precedence, rule }),
    choice: (...any) => ({ any }),
    seq: (...all) => ({ all }),
    repeat: (again) => ({ again }),
    grammar: (whole) => whole,
  };
  vm.runInNewContext(readFileSync(join(folder, "grammar.js"), "utf8"), sandbox);
  const names = new Proxy({}, { get: (_, name) => name });
  return Object.entries(sandbox.module.exports.rules)
    .map(([name, rule]) => ({ name, ...rule(names) }))
    .filter(({ rule }) => rule)
    .map((token) => ({ ...token, shape: new RegExp(source(token.rule), "y") }));
}

const tokens = grammar();

/** The tokens of a text. Fails at a character that belongs to none. */
function lexed(text) {
  const found = [];
  for (let at = 0; at < text.length; ) {
    if (/\s/.test(text[at])) {
      at += 1;
      continue;
    }
    const before = found.at(-1);
    const next = before?.end === at && ["register", "word", "closing", "member"].includes(before.name);
    let best;
    for (const token of tokens) {
      if (token.immediate && !next) continue;
      token.shape.lastIndex = at;
      const length = token.shape.exec(text)?.[0].length ?? 0;
      const better = !best || token.precedence > best.precedence || (token.precedence === best.precedence && length > best.length);
      if (length > 0 && better) best = { name: token.name, precedence: token.precedence, length };
    }
    assert.ok(best, `nothing matches ${JSON.stringify(text.slice(at, at + 20))}`);
    found.push({ name: best.name, start: at, end: at + best.length, text: text.slice(at, at + best.length) });
    at += best.length;
  }
  return found;
}

/** The queries: a node, a scope, and what the text must be. */
const rules = queries.split(/\n(?=\()/).slice(1).map((query) => {
  const [, node, scope] = /^\(?\((\w+)\) @([\w.]+)/.exec(query);
  const words = [...query.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([word]) => JSON.parse(word));
  if (query.includes("#match?")) return { node, scope, matches: (text) => new RegExp(words[0]).test(text) };
  return { node, scope, matches: (text) => words.length === 0 || words.includes(text) };
});
/** The scope of a token: that of the last query that matches. */
const scope = (token) => rules.findLast(({ node, matches }) => node === token.name && matches(token.text))?.scope;

const SCOPES = {
  comment: "comment", directive: "keyword.directive", mnemonic: "function.builtin", type: "type", register: "variable.builtin",
  number: "constant.numeric", label: "label", prefix: "keyword.control", space: "type.builtin", flag: "constant", slot: "keyword",
};

for (const [sample, kinds] of Object.entries(KINDS)) {
  test(`Helix: ${sample}: each kind of word has its scope`, () => {
    const text = readFileSync(join(samples, sample), "utf8");
    const all = lexed(text);
    for (const [kind, word, after] of kinds) {
      if (!(kind in SCOPES)) continue; // Conditions are plain words: a query does not see the bracket before.
      const { offset } = place(text, word, after);
      const token = all.find(({ start, end }) => start <= offset && offset < end);
      assert.equal(scope(token), SCOPES[kind], `${word} is ${token.name}`);
    }
  });
}

test("Helix: every source is read to its end, and a directive in the first line is one", () => {
  for (const { text } of sources()) lexed(text);
  assert.equal(lexed(".isa tesla")[0].name, "directive");
  assert.deepEqual(lexed("temp[1].rgb R0.x").map(({ name }) => name), ["word", "operator", "number", "closing", "member", "word", "member"]);
});

test("Helix: tree-sitter generates a parser that reads every source without an error", { skip: without("tree-sitter") }, () => {
  const copy = mkdtempSync(join(tmpdir(), "reconverge-tree-sitter-"));
  cpSync(folder, copy, { recursive: true });
  const run = (...args) => spawnSync("tree-sitter", args, { cwd: copy, encoding: "utf8" });
  assert.equal(run("generate").status, 0);
  for (const [number, { text }] of sources().entries()) {
    writeFileSync(join(copy, `${number}.s`), text);
    const { status, stdout } = run("parse", "--quiet", `${number}.s`);
    assert.equal(status, 0, stdout);
  }
});
