// The checked-in grammars are those that the generator writes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { binary, editors } from "../shared.mjs";

test("the grammars are what the generator writes from the command's tables", () => {
  const env = { ...process.env, RECONVERGE: binary };
  const { status, stderr } = spawnSync("node", [join(editors, "generator/generate.mjs"), "--check"], { env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
});
