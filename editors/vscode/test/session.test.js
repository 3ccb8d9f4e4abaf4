// A session of protocol clients: a wrong program is opened, mended, explained, completed and renamed by the language server, then debugged
// at a breakpoint in its source. test/session.txt is what happens; with UPDATE=1 it is written anew.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import support from "@vscode/debugadapter-testsupport";
import protocol from "vscode-languageserver-protocol/node";

import { statedMachine } from "../dist/tests/machine.js";
import { binary, place, samples, sources } from "../../shared.mjs";
import { tokens } from "./tokens.js";

const here = dirname(fileURLToPath(import.meta.url));
const ended = [];
after(() => Promise.all(ended.map((end) => end())));

/** A client with an open document whose text follows the edits of the server. */
class Document {
  version = 1;
  waiting = [];

  constructor(connection, uri, text) {
    Object.assign(this, { connection, uri, text });
    connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) => {
      if (params.uri !== uri) return;
      this.published = params;
      this.waiting.splice(0).forEach((done) => done());
    });
  }

  get id() {
    return { uri: this.uri };
  }

  async open() {
    const textDocument = { uri: this.uri, languageId: "reconverge-tesla", version: this.version, text: this.text };
    await this.connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, { textDocument });
  }

  /** The messages about the current version. */
  async diagnostics() {
    while (this.published?.version !== this.version) await new Promise((done) => this.waiting.push(done));
    return this.published.diagnostics;
  }

  offset({ line, character }) {
    return this.text.split("\n").slice(0, line).join("\n").length + (line > 0 ? 1 : 0) + character;
  }

  /** Makes edits that do not overlap, and tells the server. */
  async edit(edits) {
    const last = [...edits].sort((a, b) => this.offset(b.range.start) - this.offset(a.range.start));
    const contentChanges = last.map(({ range, newText }) => ({ range, text: newText }));
    for (const { range, newText } of last) {
      this.text = this.text.slice(0, this.offset(range.start)) + newText + this.text.slice(this.offset(range.end));
    }
    this.version += 1;
    await this.connection.sendNotification(protocol.DidChangeTextDocumentNotification.type, {
      textDocument: { uri: this.uri, version: this.version }, contentChanges,
    });
  }

  ask(type, params = {}) {
    return this.connection.sendRequest(type, { textDocument: this.id, ...params });
  }
}

/** Starts the language server. Returns the connection and what it can do. */
async function server() {
  const child = spawn(binary, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
  const connection = protocol.createProtocolConnection(child.stdout, child.stdin);
  connection.listen();
  ended.push(async () => {
    await connection.sendRequest(protocol.ShutdownRequest.type).catch(() => undefined);
    await connection.sendNotification(protocol.ExitNotification.type).catch(() => undefined);
    connection.dispose();
    child.kill();
  });
  const capabilities = { textDocument: { publishDiagnostics: { versionSupport: true }, codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix"] } } } } };
  const { capabilities: offered } = await connection.sendRequest(protocol.InitializeRequest.type, { processId: process.pid, rootUri: null, capabilities });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  return { connection, offered };
}

/** The edits of a document in a workspace edit. */
function editsOf({ changes, documentChanges }, uri) {
  return changes?.[uri] ?? documentChanges.filter((change) => change.textDocument.uri === uri).flatMap(({ edits }) => edits);
}

/** The lines that differ. */
function differences(before, now) {
  const old = before.split("\n");
  return now.split("\n").flatMap((line, at) => (line === old[at] ? [] : [`  ${at + 1}: ${line.trim()}`]));
}

test("a wrong program is mended, explained, completed, renamed and debugged", async () => {
  const log = [];
  const file = join(mkdtempSync(join(tmpdir(), "reconverge-session-")), "collatz.s");
  const text = readFileSync(join(samples, "collatz.s"), "utf8").replace("breakaddr done", "brekaddr done");
  writeFileSync(file, text);
  const { connection } = await server();
  const document = new Document(connection, pathToFileURL(file).href, text);
  await document.open();

  const [wrong, ...others] = await document.diagnostics();
  assert.deepEqual(others, []);
  assert.deepEqual(wrong.range.start, { line: 13, character: 4 });
  log.push("open collatz.s", `  ${wrong.range.start.line + 1}: ${wrong.message.split("\n")[0]}`);

  const actions = await document.ask(protocol.CodeActionRequest.type, { range: wrong.range, context: { diagnostics: [wrong] } });
  const fix = actions.find(({ edit }) => edit);
  let before = document.text;
  await document.edit(editsOf(fix.edit, document.uri));
  assert.deepEqual(await document.diagnostics(), []);
  log.push(`apply the fix: ${fix.title}`, ...differences(before, document.text), "  no messages");

  const { contents } = await document.ask(protocol.HoverRequest.type, { position: place(document.text, "joinat") });
  assert.match(contents.value, /joinat/);
  // The table of fields is that of `explain`.
  const [sentences] = contents.value.split("\n|");
  log.push("hover over joinat", ...sentences.trim().split("\n").map((line) => `  ${line}`.trimEnd()));

  const end = place(document.text, "bra step");
  const typed = { line: end.line + 1, character: 0 };
  await document.edit([{ range: { start: typed, end: typed }, newText: "    jo\n" }]);
  const completed = await document.ask(protocol.CompletionRequest.type, { position: { line: typed.line, character: 6 } });
  const items = (completed.items ?? completed).filter(({ label }) => label.startsWith("jo"));
  assert.ok(items.some(({ label }) => label === "joinat"));
  log.push("complete jo", ...items.map(({ label, detail }) => `  ${[label, detail].filter(Boolean).join("  ")}`));
  await document.edit([{ range: { start: typed, end: { line: typed.line + 1, character: 0 } }, newText: "" }]);

  before = document.text;
  const renamed = await document.ask(protocol.RenameRequest.type, { position: place(document.text, "odd:"), newName: "is_odd" });
  await document.edit(editsOf(renamed, document.uri));
  assert.deepEqual(await document.diagnostics(), []);
  assert.equal(document.text, before.replace("bra odd", "bra is_odd").replace("\nodd:", "\nis_odd:"));
  log.push("rename the label odd to is_odd", ...differences(before, document.text), "  no messages");

  writeFileSync(file, document.text);
  const debug = new support.DebugClient(binary, ["debug", "--dap"], "reconverge");
  // The test client runs scripts of node; the adapter is a program.
  const adapter = spawn(binary, ["debug", "--dap"], { stdio: ["pipe", "pipe", "inherit"] });
  debug.connect(adapter.stdout, adapter.stdin);
  ended.push(async () => adapter.kill());
  await debug.initializeRequest();
  const launch = { program: file, block: 12, buf: ["steps=u32[12]"], stopOnEntry: false };
  await Promise.all([debug.waitForEvent("initialized"), debug.launchRequest(launch)]);
  const line = place(document.text, "is_odd:").line + 1;
  const { body: set } = await debug.setBreakpointsRequest({ source: { path: file }, breakpoints: [{ line }] });
  log.push(`debug with a breakpoint in line ${line}`, `  bound to line ${set.breakpoints[0].line}: ${document.text.split("\n")[set.breakpoints[0].line - 1].trim()}`);
  const [stop] = await Promise.all([debug.waitForEvent("stopped"), debug.configurationDoneRequest()]);
  const { body: stack } = await debug.stackTraceRequest({ threadId: stop.body.threadId });
  const frame = stack.stackFrames[0];
  assert.equal(frame.source.path, file);
  assert.equal(frame.line, set.breakpoints[0].line);
  const { body: value } = await debug.evaluateRequest({ expression: "$r3@2", frameId: frame.id, context: "watch" });
  log.push(`  ${stop.body.reason} in line ${frame.line}`, `  $r3 of lane 2 is ${value.result}`);

  const recorded = join(here, "session.txt");
  const transcript = `${log.join("\n")}\n`;
  if (process.env.UPDATE) writeFileSync(recorded, transcript);
  assert.equal(transcript, readFileSync(recorded, "utf8"));
});

test("the server has an answer to every request of the extension, for every source", async () => {
  const { connection, offered } = await server();
  for (const name of ["hoverProvider", "completionProvider", "definitionProvider", "referencesProvider", "documentSymbolProvider", "foldingRangeProvider", "renameProvider", "inlayHintProvider", "semanticTokensProvider", "documentFormattingProvider", "codeActionProvider"]) {
    assert.ok(offered[name], name);
  }
  for (const { name, text } of sources()) {
    const document = new Document(connection, `untitled:${name}`, text);
    await document.open();
    const position = { line: Math.floor(text.split("\n").length / 2), character: 6 };
    assert.ok(Array.isArray(await document.ask(protocol.DocumentSymbolRequest.type)), name);
    await document.ask(protocol.FoldingRangeRequest.type);
    await document.ask(protocol.HoverRequest.type, { position });
    await document.ask(protocol.CompletionRequest.type, { position });
    const { data } = await document.ask(protocol.SemanticTokensRequest.type);
    assert.ok(data.length > 0, `${name} has no tokens`);
  }
});

test("the colours of the grammars are those of the server", async () => {
  const expected = {
    comment: /^comment/, decorator: /^keyword\.control\.directive/, keyword: /^(support\.function\.mnemonic|keyword\.control\.prefix|storage)/,
    label: /^(entity\.name\.label|variable\.other)/, number: /^(constant\.numeric|support\.constant|variable\.other\.member)/,
  };
  const { connection, offered } = await server();
  const { tokenTypes } = offered.semanticTokensProvider.legend;
  const different = [];
  for (const { name, text } of sources()) {
    const document = new Document(connection, `untitled:colours/${name}`, text);
    await document.open();
    const { data } = await document.ask(protocol.SemanticTokensRequest.type);
    const parts = await tokens(text, statedMachine(text));
    for (let at = 0, line = 0, character = 0; at < data.length; at += 5) {
      character = data[at] === 0 ? character + data[at + 1] : data[at + 1];
      line += data[at];
      const type = tokenTypes[data[at + 3]];
      const found = parts.find((part) => part.line === line && part.start <= character && character < part.end);
      if (expected[type] && !expected[type].test(found?.scope ?? "")) different.push(`${name}:${line + 1}: ${type} \`${text.split("\n")[line].slice(character, character + data[at + 2])}\` is ${found?.scope}`);
    }
  }
  assert.deepEqual(different, []);
});
