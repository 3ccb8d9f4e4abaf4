// Sessions of `reconverge debug --dap` with VS Code's own test client, on all three machines.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { binary, go, here, root, samples, scopes, started, stopped, top, variables } from "./client.js";

/** A launch of each machine that diverges, and the address of an instruction behind the divergence. */
const launches = {
  r500: { program: join(samples, "tutorial-r500.s"), args: ["--input", "temp0=2,9,16,100,5,3,-1,40,1,200"] },
  r700: { program: join(samples, "tutorial-r700.s"), args: ["--lanes", "16", "--input", "R0=0..16"] },
  tesla: { program: join(samples, "tutorial-tesla.s"), args: ["--block", "32", "--buf", "out=u32[32]"] },
};

/** The bytes of an instruction of each machine. */
const widths = { r500: 24, r700: 8, tesla: 8 };

/** A session of a machine that has stopped at its first instruction. */
const launched = (machine, set) => stopped(launches[machine], set);

const exceptions = (filters) => (client) => client.setExceptionBreakpointsRequest({ filters });

test("the capabilities are those that the disassembly view and reverse debugging need", async () => {
  const client = await started();
  const { body } = await client.initializeRequest();
  for (const name of ["DisassembleRequest", "InstructionBreakpoints", "SteppingGranularity", "StepBack",
    "ReadMemoryRequest", "WriteMemoryRequest", "DataBreakpoints", "ConditionalBreakpoints",
    "HitConditionalBreakpoints", "SetVariable", "SetExpression", "ExceptionInfoRequest", "TerminateRequest",
    "LogPoints", "CompletionsRequest", "RestartRequest", "GotoTargetsRequest", "BreakpointLocationsRequest"]) {
    assert.equal(body[`supports${name}`], true, name);
  }
});

for (const machine of Object.keys(launches)) {
  test(`${machine}: a stop at an instruction, a step back over a divergence, memory`, async () => {
    const client = await launched(machine, exceptions(["diverge"]));
    // To the first divergence; the instruction behind it gets a breakpoint of its own.
    assert.equal((await go(client, "continue")).reason, "breakpoint");
    const behind = (await top(client)).instructionPointerReference;
    const registers = await variables(client, "lane 0");
    const masks = await variables(client, "masks");
    assert.ok(masks.length > 1, "lanes part");
    assert.equal((await go(client, "stepBack")).reason, "step");
    assert.notEqual((await top(client)).instructionPointerReference, behind);
    const before = await variables(client, "masks");
    assert.notDeepEqual(before, masks);
    await exceptions([])(client);
    const set = await client.customRequest("setInstructionBreakpoints", {
      breakpoints: [{ instructionReference: behind }],
    });
    assert.deepEqual([set.body.breakpoints[0].verified, set.body.breakpoints[0].instructionReference], [true, behind]);
    assert.equal((await go(client, "continue")).reason, "instruction breakpoint");
    assert.equal((await top(client)).instructionPointerReference, behind);
    assert.deepEqual(await variables(client, "lane 0"), registers);
    assert.deepEqual(await variables(client, "masks"), masks);

    for (const space of await variables(client, "memory")) {
      const place = { memoryReference: space.memoryReference, offset: 0, count: 16 };
      const { body } = await client.customRequest("readMemory", place);
      const bytes = Buffer.from(body.data, "base64").length;
      assert.equal(bytes + body.unreadableBytes, 16, space.name);
    }
    await client.customRequest("setInstructionBreakpoints", { breakpoints: [] });
    const [back] = await Promise.all([client.waitForEvent("stopped"), client.reverseContinueRequest({ threadId: 1 })]);
    assert.equal(back.body.reason, "entry");
    await Promise.all([client.waitForEvent("terminated"), client.continueRequest({ threadId: 1 })]);
  });

  test(`${machine}: exactly the lines asked for, of one spelling, with bytes and the line of the source`, async () => {
    const client = await launched(machine);
    const pointer = (await top(client)).instructionPointerReference;
    assert.match(pointer, /^0x[0-9a-f]+$/);
    for (const [instructionOffset, instructionCount] of [[-50, 50], [-50, 100], [0, 50], [50, 50], [-3, 7]]) {
      const { body } = await client.disassembleRequest({ memoryReference: pointer, offset: 0, instructionOffset, instructionCount });
      const lines = body.instructions;
      assert.equal(lines.length, instructionCount);
      assert.equal(new Set(lines.map(({ address }) => address)).size, instructionCount, "addresses are distinct");
      for (const line of lines) {
        assert.match(line.address, /^0x[0-9a-f]+$/);
        if (line.presentationHint === "invalid") {
          assert.deepEqual([line.instructionBytes, line.location], [undefined, undefined]);
        } else {
          assert.match(line.instructionBytes, /^([0-9a-f]{2} )+[0-9a-f]{2}$/);
          assert.equal(line.location.path, launches[machine].program);
          assert.ok(line.line > 0);
        }
      }
      const here = lines[-instructionOffset];
      if (here) assert.deepEqual([here.address, here.presentationHint], [pointer, undefined]);
      // The program begins here: what is before it is none.
      assert.ok(lines.slice(0, Math.max(0, -instructionOffset)).every((line) => line.presentationHint === "invalid"));
    }
    const far = await client.disassembleRequest({ memoryReference: "0xfffff0", instructionOffset: 10, instructionCount: 5 });
    assert.deepEqual(far.body.instructions.map((line) => line.presentationHint), Array(5).fill("invalid"));
    // Offsets of breakpoints count bytes.
    const at = (offset) => ({ instructionReference: pointer, offset });
    const width = widths[machine];
    const { body } = await client.customRequest("setInstructionBreakpoints", { breakpoints: [at(width), at(width - 1)] });
    assert.deepEqual(body.breakpoints.map(({ verified }) => verified), [true, false]);
    assert.equal(Number(body.breakpoints[0].instructionReference), Number(pointer) + width);
  });

  test(`${machine}: groups are threads, lanes are scopes that say why`, async () => {
    const client = await launched(machine, exceptions(["diverge"]));
    await go(client, "continue");
    const { body } = await client.threadsRequest();
    assert.match(body.threads[0].name, /^group 0 \(lanes 0 to \d+\)$/);
    const names = (await scopes(client)).map(({ name }) => name);
    for (const name of ["all lanes", "masks", "stack", "memory"]) assert.ok(names.includes(name), name);
    const idle = names.filter((name) => /^lane \d+ \((off: |parked at )/.test(name));
    assert.ok(idle.length > 0, names.join());
    if (machine === "tesla") assert.match(idle[0], /^lane \d+ \(parked at 0x28 \(:14\): branch\)$/);
    assert.ok(names.some((name) => /^lane \d+ \(active\)$/.test(name)));
    const [register] = await variables(client, "all lanes");
    assert.ok(register.indexedVariables >= 10);
    const some = await client.variablesRequest({ variablesReference: register.variablesReference, filter: "indexed", start: 2, count: 3 });
    assert.deepEqual(some.body.variables.map(({ name }) => name), ["[2]", "[3]", "[4]"]);
  });

  test(`${machine}: a step into a lane follows it across both sides`, async () => {
    const client = await launched(machine, exceptions(["diverge"]));
    await go(client, "continue");
    await exceptions([])(client);
    const { body } = await client.stepInTargetsRequest({ frameId: (await top(client)).id });
    const idle = body.targets.find(({ label }) => !label.includes("(active"));
    const active = body.targets.find(({ label }) => label.endsWith("(active)"));
    for (const target of [active, idle]) {
      assert.equal((await go(client, "stepIn", { targetId: target.id })).reason, "step");
      const names = (await scopes(client)).map(({ name }) => name);
      assert.ok(names.includes(`${target.label.split(" (")[0]} (active)`), `${target.label}: ${names[0]}`);
    }
  });

  test(`${machine}: the listing is a source, a custom event has the lanes`, async () => {
    const client = await started();
    const { program, args } = launches[machine];
    await client.initializeRequest();
    await Promise.all([client.waitForEvent("initialized"), client.launchRequest({ program, args })]);
    const { body } = await client.customRequest("source", { sourceReference: 1, source: { sourceReference: 1 } });
    assert.ok(body.content.split("\n").length > 8);
    const [lanes] = await Promise.all([client.waitForEvent("reconvergeLanes"), client.configurationDoneRequest()]);
    assert.match(lanes.body.mask, /^0x[0-9a-f]+$/);
    // The frame is in the user's own source.
    assert.equal((await top(client)).source.path, program);
    const set = await client.setBreakpointsRequest({ source: { sourceReference: 1 }, breakpoints: [{ line: 3 }] });
    assert.equal(set.body.breakpoints[0].verified, true);
    await go(client, "continue");
    const listed = body.content.split("\n")[2].trim().split(" ")[0];
    assert.equal((await top(client)).name.split(" ")[0], listed);
  });
}

test("data breakpoints, conditions, hits and changed registers", async () => {
  const client = await launched("r500");
  const { variablesReference } = (await scopes(client)).find(({ name }) => name.startsWith("lane 0"));
  const info = await client.dataBreakpointInfoRequest({ variablesReference, name: "temp2.r" });
  await client.setDataBreakpointsRequest({ breakpoints: [{ dataId: info.body.dataId, hitCondition: ">= 2" }] });
  const stopped = await go(client, "continue");
  assert.equal(stopped.reason, "data breakpoint");
  assert.match(stopped.text, /lane 0: 0x3f800000 becomes 0x40000000, time 2$/);
  await client.setDataBreakpointsRequest({ breakpoints: [] });
  const pointer = (await top(client)).instructionPointerReference;
  const conditional = { instructionReference: pointer, condition: "temp2.r@6 >= 9.0" };
  await client.customRequest("setInstructionBreakpoints", { breakpoints: [conditional] });
  assert.equal((await go(client, "continue")).reason, "instruction breakpoint");
  const evaluated = await client.evaluateRequest({ expression: "registers temp2.r", context: "repl" });
  assert.match(evaluated.body.result, /temp2\.r@6 +0x41100000/);
  const lane = (await scopes(client)).find(({ name }) => name.startsWith("lane 6"));
  const set = await client.setVariableRequest({ variablesReference: lane.variablesReference, name: "temp1.r", value: "0.5" });
  assert.match(set.body.value, /^0x3f000000/);
  // The lane that kept the loop going leaves it now.
  await client.customRequest("setInstructionBreakpoints", { breakpoints: [] });
  await go(client, "stepOut");
  const result = await client.evaluateRequest({ expression: "registers temp2.r", context: "repl" });
  assert.match(result.body.result, /temp2\.r@6 +0x41100000/);
});

test("a trap is an exception with what it was", async () => {
  const client = await started();
  await client.initializeRequest();
  const launch = { program: join(root, "corpus/tesla/beyond.toml"), stopOnEntry: false };
  await Promise.all([client.waitForEvent("initialized"), client.launchRequest(launch)]);
  await assert.rejects(client.exceptionInfoRequest({ threadId: 1 }), /has not trapped/);
  const [stopped] = await Promise.all([client.waitForEvent("stopped"), client.configurationDoneRequest()]);
  assert.equal(stopped.body.reason, "exception");
  const { body } = await client.exceptionInfoRequest({ threadId: 1 });
  assert.equal(body.exceptionId, "trap");
  assert.ok(body.description.length > 10);
});

test("messages out of order are refused with the remedy", async () => {
  const client = await started();
  await assert.rejects(client.threadsRequest(), /was sent before `initialize`/);
  await client.initializeRequest();
  await assert.rejects(client.continueRequest({ threadId: 1 }), /was sent before `launch`/);
  await assert.rejects(client.launchRequest({}), /missing `program`/);
  await assert.rejects(client.launchRequest({ program: "no-such-file.s" }), /no-such-file\.s/);
  const { program, args } = launches.tesla;
  await assert.rejects(client.launchRequest({ program, args: ["--no-such"] }), /--no-such/);
  await client.launchRequest({ program, args });
  await assert.rejects(client.continueRequest({ threadId: 1 }), /was sent before `configurationDone`/);
  await assert.rejects(client.customRequest("modules"), /is not supported/);
  await Promise.all([client.waitForEvent("terminated"), client.terminateRequest()]);
  await assert.rejects(client.continueRequest({ threadId: 1 }), /send `disconnect` and start another session/);
});

test("a run that does not end can be paused and left", async () => {
  const client = await started();
  await client.initializeRequest();
  const endless = join(here, "endless.s");
  const launch = { program: endless, args: ["--block", "32", "--watchdog", "100000000000"], stopOnEntry: false };
  await Promise.all([client.waitForEvent("initialized"), client.launchRequest(launch)]);
  await client.configurationDoneRequest();
  const [stopped] = await Promise.all([client.waitForEvent("stopped"), client.pauseRequest({ threadId: 1 })]);
  assert.equal(stopped.body.reason, "pause");
  await client.continueRequest({ threadId: 1 });
  await client.disconnectRequest();
});

/** What the adapter answers to bytes, and its status at their end. */
function spoken(bytes) {
  return new Promise((done) => {
    const adapter = spawn(binary, ["debug", "--dap"]);
    let said = "";
    adapter.stdout.on("data", (data) => (said += data));
    // `close` comes after the last byte of its output; `exit` may come before.
    adapter.on("close", (code) => done([said, code]));
    adapter.stdin.end(bytes);
  });
}

test("bytes that are no message are answered, and the next message is read", async () => {
  const good = '{"seq":7,"type":"request","command":"initialize"}';
  const message = `Content-Length: ${good.length}\r\n\r\n${good}`;
  for (const [bad, why] of [
    ["Content-Length: 4\r\n\r\n{nix", "expected a JSON message"],
    ["Content-Length: 20\r\n\r\n{\"seq\":1}           ", "expected a request"],
    ["Content-Length: many\r\n\r\n", "expected a number of bytes up to"],
    ["Content-Length: 99999999999999\r\n\r\n", "expected a number of bytes up to"],
    ["Content-Type: x\r\n\r\n", "missing `Content-Length: BYTES` before a message"],
    // The header says less than there is.
    ["Content-Length: 10\r\n\r\n{\"seq\":1,\"type\":\"request\"}", "expected a JSON message"],
  ]) {
    const [said, code] = await spoken(bad + message);
    assert.ok(said.includes(why), `${bad}: ${said}`);
    assert.ok(said.includes('"request_seq":7') && said.includes('"success":true'), `${bad}: ${said}`);
    assert.equal(code, 0);
  }
  const [said] = await spoken("Content-Length: 500\r\n\r\n{}");
  assert.ok(said.includes("expected a message of 500 bytes as in `Content-Length: 500`, found 2"), said);
});

test("the example of docs/ is for the debug type of the extension, and launches", async () => {
  const read = (...name) => JSON.parse(readFileSync(join(root, ...name), "utf8"));
  const [{ type }] = read("editors/vscode/package.json").contributes.debuggers;
  for (const configuration of read("docs/samples/launch.json").configurations) {
    assert.deepEqual([configuration.type, configuration.request], [type, "launch"]);
    const client = await started();
    const launch = { ...configuration, program: configuration.program.replace("${workspaceFolder}", root) };
    await client.initializeRequest();
    await Promise.all([client.waitForEvent("initialized"), client.launchRequest(launch)]);
    await Promise.all([client.waitForEvent("stopped"), client.configurationDoneRequest()]);
    // At the end of the launch the session stays, and steps back are possible.
    const end = await go(client, "continue");
    assert.match(end.text, /the launch has ended; steps back are possible/);
    assert.equal((await go(client, "stepBack")).reason, "step");
    assert.equal((await top(client)).instructionPointerReference, "0x98");
  }
});
