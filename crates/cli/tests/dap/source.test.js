// What a developer does in an editor: breakpoints, log points and watches in the user's own source, and a look at memory
// after the end.
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { go, samples, scopes, started, stopped, top, variables } from "./client.js";

const program = join(samples, "collatz.s");
const launch = { program, args: ["--block", "12", "--buf", "steps=u32[12]"], stopAtEnd: true };
const lines = readFileSync(program, "utf8").split("\n");
const line = (text) => lines.findIndex((line) => line.trim().startsWith(text)) + 1;

test("a breakpoint in collatz.s stops there, a log point logs, and memory is read after the end", async () => {
  const odd = line("add b32 $r5");
  const step = line("set $c0");
  const client = await stopped(launch, async (client) => {
    const { body } = await client.setBreakpointsRequest({
      source: { path: program },
      breakpoints: [
        { line: odd, hitCondition: "== 1" },
        // The label has no instruction: it is bound to the one after it.
        { line: line("step:"), logMessage: "step {step}: n of lane 2 is {$r3@2}, lanes {lanes}" },
        { line: 1, condition: "$r0@1 == 77" },
        { line: lines.length + 5 },
      ],
    });
    const [first, log, comment, late] = body.breakpoints;
    assert.deepEqual([first.verified, first.line], [true, odd]);
    assert.deepEqual([log.verified, log.line], [true, step]);
    assert.match(log.message, /has no instruction; the stop is at line \d+/);
    assert.deepEqual([comment.verified, comment.line], [true, line("and b32 $r0")]);
    assert.equal(late.verified, false);
  });
  const logged = [];
  client.on("output", ({ body }) => logged.push(body.output));
  const stop = await go(client, "continue");
  assert.equal(stop.reason, "breakpoint");
  const frame = await top(client);
  assert.deepEqual([frame.line, frame.source.path], [odd, program]);
  assert.match(logged[0], /^step \d+: n of lane 2 is 3, lanes 0-11\n$/);

  // Watches: a register of a lane, a formula, memory, the table of lanes.
  const watch = async (expression) =>
    (await client.evaluateRequest({ expression, context: "watch", frameId: frame.id })).body;
  assert.match((await watch("$r3@5")).result, /^0x00000006 {2}6 /);
  assert.match((await watch("$r3@5 + 1")).result, /^0x00000007 {2}7 /);
  assert.match((await watch("s[0x10]")).result, /^0x/);
  const table = await watch("lanes");
  const rows = (await client.variablesRequest({ variablesReference: table.variablesReference })).body.variables;
  assert.equal(rows.length, 12);
  assert.match(rows[5].value, /\$r3 00000006/);
  const [tabled] = (await scopes(client)).filter(({ name }) => name === "lanes by registers");
  assert.ok(tabled);

  // To the end: the place, the registers and the result can still be read.
  const end = await go(client, "continue");
  assert.match(end.text, /the launch has ended/);
  const last = await top(client);
  assert.match(last.name, /^ended after /);
  assert.equal(last.line, line("exit st"));
  assert.ok((await variables(client, "lane 0")).length > 3);
  const memory = (await variables(client, "memory")).find(({ name }) => name === "g");
  const { body: pointer } = await client.evaluateRequest({ expression: "s[0x10]", context: "watch", frameId: last.id });
  const place = { memoryReference: memory.memoryReference, offset: Number(pointer.result.split(" ")[0]), count: 48 };
  const { body } = await client.customRequest("readMemory", place);
  const bytes = Buffer.from(body.data, "base64");
  const steps = Array.from({ length: 12 }, (_, lane) => bytes.readUInt32LE(4 * lane));
  assert.deepEqual(steps, [0, 1, 7, 2, 5, 8, 16, 3, 19, 6, 14, 9]);
  assert.ok(logged.length > 10, `${logged.length}`);
});

test("a restart assembles the edited source and keeps the breakpoints", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-dap-"));
  const own = join(folder, "own.s");
  copyFileSync(program, own);
  const odd = line("add b32 $r5");
  const client = await stopped({ ...launch, program: own }, (client) =>
    client.setBreakpointsRequest({ source: { path: own }, breakpoints: [{ line: odd }] }));
  await go(client, "continue");
  assert.equal((await top(client)).line, odd);
  writeFileSync(own, "; a new line\n" + readFileSync(own, "utf8"));
  const [changed, entry] = await Promise.all([
    client.waitForEvent("breakpoint"),
    client.waitForEvent("stopped"),
    client.customRequest("restart", {}),
  ]);
  // The label is on that line now, and the instruction on the one after it.
  assert.deepEqual([changed.body.breakpoint.verified, changed.body.breakpoint.line], [true, odd + 1]);
  assert.equal(entry.body.reason, "entry");
  await go(client, "continue");
  assert.equal((await top(client)).line, odd + 1);
});

test("places for breakpoints, ways to a line, completions", async () => {
  const client = await stopped(launch);
  const source = { path: program };
  const places = await client.customRequest("breakpointLocations", { source, line: 1, endLine: lines.length });
  assert.equal(places.body.breakpoints[0].line, line("and b32 $r0"));
  const targets = await client.customRequest("gotoTargets", { source, line: line("shl b32") });
  assert.equal((await go(client, "goto", { targetId: targets.body.targets[0].id })).reason, "goto");
  assert.equal((await top(client)).line, line("shl b32"));
  const completed = await client.completionsRequest({ text: "break do", column: 9 });
  assert.deepEqual(completed.body.targets.map(({ label }) => label), ["done"]);
  const set = await client.customRequest("setExpression", { expression: "$r0@3", value: "9" });
  assert.match(set.body.value, /^0x00000009 /);
});

test("a launch whose file is no source has the listing alone", async () => {
  const client = await started();
  await client.initializeRequest();
  const cubin = { program: join(samples, "vec.cubin"), args: ["--block", "4", "--buf", "a=f32[4]", "--buf", "b=f32[4]", "--buf", "c=f32[4]", "--arg", "n=4"] };
  await Promise.all([client.waitForEvent("initialized"), client.launchRequest(cubin)]);
  const { body } = await client.setBreakpointsRequest({ source: { path: "/vec.s" }, breakpoints: [{ line: 3 }] });
  assert.match(body.breakpoints[0].message, /the source of the program is unknown/);
});

test("a source launches by its path alone, and one that needs values says which arguments have them", async () => {
  const client = await stopped({ program: join(samples, "clamp.s") });
  assert.equal((await top(client)).source.path, join(samples, "clamp.s"));
  const other = await started();
  await other.initializeRequest();
  await assert.rejects(other.launchRequest({ program }), /--buf is `buf`, --arg is `arg`/);
  await assert.rejects(other.launchRequest({ program, blok: 12 }), /unknown launch argument `blok`, did you mean `block`\?/);
  await other.launchRequest({ program, block: 12, buf: ["steps=u32[12]"], stopAtEnd: true });
  const { body } = await other.setBreakpointsRequest({
    source: { path: program },
    breakpoints: [{ line: line("add b32 $r5"), logMessage: "a } b" }, { line: line("add b32 $r5") }],
  });
  assert.deepEqual(body.breakpoints.map(({ verified }) => verified), [false, true]);
  await Promise.all([other.waitForEvent("stopped"), other.configurationDoneRequest()]);
  await go(other, "continue");
  // The text and the label of the source, and not those of the listing.
  assert.match((await top(other)).name, /^0x60 \(odd\) {2}add b32 \$r5 \$r3 \$r3$/);
});
