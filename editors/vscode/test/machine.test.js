// The machine of a text, and what F5 launches.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { checked, older } from "../dist/tests/command.js";
import { launches, suggested, words } from "../dist/tests/launches.js";
import { machineOf, statedMachine } from "../dist/tests/machine.js";
import { binary, root, sources } from "../../shared.mjs";

test("the text states the machine as it does for the command", () => {
  for (const { name, text } of sources()) {
    const { stdout, status } = spawnSync(binary, ["list", join(root, name), "--json"], { encoding: "utf8" });
    if (status !== 0) continue; // Some exercises are wrong on purpose.
    assert.equal(statedMachine(text), JSON.parse(stdout).programs[0].isa, name);
  }
});

test("a text decides before its name, and its name before the setting", () => {
  assert.deepEqual(machineOf(".chip RV770\n", "a.tesla.s", "r500"), { machine: "r700", stated: true });
  assert.deepEqual(machineOf("; nothing\n", "a.tesla.s", "r500"), { machine: "tesla", stated: false });
  assert.deepEqual(machineOf("", "a.s", "r500"), { machine: "r500", stated: false });
  assert.deepEqual(machineOf("", "a.psh", ""), { machine: "r700", stated: false });
  assert.equal(machineOf("", "a.s", ""), undefined);
});

test("`.isa` decides before `.chip`, in any case", () => {
  assert.equal(statedMachine(".chip g80\n\t.isa R500\n"), "r500");
  assert.equal(statedMachine("; .isa r500\n.chip g80\n"), "tesla");
});

test("a launch file belongs to the source that it names", () => {
  assert.ok(launches('isa = "tesla"\nprogram = "a.s"\n', "/folder/a.s"));
  assert.ok(launches("program='./a.s'", "/folder/a.s"));
  assert.ok(!launches('# program = "a.s"\nprogram = "b.s"', "/folder/a.s"));
});

test("options are split into words as a shell does", () => {
  assert.deepEqual(words(`--block 12 --buf "steps=u32[12]"`), ["--block", "12", "--buf", "steps=u32[12]"]);
  assert.deepEqual(words(`--input 'R0=(1, 2)' a\\ b`), ["--input", "R0=(1, 2)", "a b"]);
  assert.deepEqual(words("  "), []);
  assert.throws(() => words(`--buf "a`), /"a.* is not closed/);
});

test("a kernel with parameters gets a buffer for each, other programs nothing", () => {
  const kernel = { isa: "tesla", stage: "compute", parameters: [{ name: "out", bytes: 4 }, { name: null, bytes: 4 }] };
  assert.equal(suggested([kernel]), "--block 32 --buf out=u32[32] --buf p1=u32[32]");
  assert.equal(suggested([{ isa: "r700", stage: "pixel", parameters: [] }]), "");
});

test("a command that is missing, another or too old is named with the remedy", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-command-"));
  const program = (name, text) => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(folder, name), 0o755);
    return join(folder, name);
  };
  const fails = (path, pattern) => assert.rejects(checked(path), pattern);
  await fails(join(folder, "none"), /cannot be started: the command does not exist.*reconverge\.path/);
  await fails(program("other", "echo hello"), /is another program: `--version` answers "hello"/);
  await fails(program("old", "echo reconverge 0.0.9"), /is version 0\.0\.9, which is too old.*needs 0\.1\.0/);
  await fails(program("bare", '[ "$1" = --version ] && echo reconverge 0.1.0'), /has no `reconverge lsp`/);
  assert.match(await checked(binary), /^\d+\.\d+\.\d+$/);
  assert.ok(older("0.9.9", "0.10.0") && !older("1.0.0", "0.10.0") && !older("0.1.0", "0.1.0"));
});
