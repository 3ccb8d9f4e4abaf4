// The checked-in grammars are those that the generator writes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { binary, editors, root } from "../shared.mjs";

test("the grammars are what the generator writes from the command's tables", () => {
  const env = { ...process.env, RECONVERGE: binary };
  const { status, stderr } = spawnSync("node", [join(editors, "generator/generate.mjs"), "--check"], { env, encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

test("the extension and the Emacs mode have the version of the workspace", () => {
  const read = (...path) => readFileSync(join(...path), "utf8");
  const version = /^version = "(.*)"/m.exec(read(root, "Cargo.toml"))[1];
  const json = (name) => JSON.parse(read(editors, "vscode", name)).version;
  assert.deepEqual([json("package.json"), json("package-lock.json")], [version, version]);
  assert.equal(/^;; Version: (.*)/m.exec(read(editors, "emacs/reconverge-mode.el"))[1], version);
});
