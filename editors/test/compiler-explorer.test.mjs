// Every command line that Compiler Explorer makes of the properties runs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { binary, editors, root, samples } from "../shared.mjs";

const folder = join(editors, "compiler-explorer");

/** Reads properties as Compiler Explorer does: `#` begins a comment anywhere, and the first `=` ends the key. */
function properties(text) {
  const known = {};
  for (const line of text.split("\n").map((line) => line.replace(/#.*/, "").trim())) {
    if (line === "") continue;
    const found = /(.+?)(\+?=)(.*)/.exec(line);
    assert.ok(found, `a line without \`=\`: ${line}`);
    assert.ok(!(found[1].trim() in known), `stated twice: ${found[1]}`);
    known[found[1].trim()] = found[3].trim();
  }
  return known;
}

const known = properties(readFileSync(join(folder, "assembly.local.properties"), "utf8"));
const words = (text) => (text ? text.split(" ") : []);

/** Runs `exe` in a folder with the source under the name that Compiler Explorer gives it. */
function run(exe, args) {
  const place = mkdtempSync(join(tmpdir(), "reconverge-explorer-"));
  copyFileSync(join(samples, "collatz.s"), join(place, "example.asm"));
  const program = exe.endsWith("reconverge-explorer") ? join(folder, "reconverge-explorer") : binary;
  const done = spawnSync(program, args, { cwd: place, encoding: "utf8", env: { ...process.env, RECONVERGE: binary } });
  return { ...done, place };
}

test("each compiler of the group writes its output to the file that is asked for", () => {
  assert.equal(known.compilers, "&reconverge");
  const expected = { "reconverge-dis": /^\/\*0000\*\/\s+and b32/m, "reconverge-asm": /^d03f0001$/m, "reconverge-stats": /^\s+0x28\s+20\s+102/m };
  const compilers = known["group.reconverge.compilers"].split(":");
  assert.deepEqual(compilers, Object.keys(expected));
  assert.ok(compilers.includes(known.defaultCompiler));
  for (const id of compilers) {
    const inputs = id === "reconverge-stats" ? ["--block", "12", "--buf", "steps=u32[12]"] : [];
    const args = ["-o", "output.s", ...words(known[`compiler.${id}.options`]), ...inputs, "example.asm"];
    const { status, stdout, stderr, place } = run(known[`compiler.${id}.exe`], args);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, "");
    assert.match(readFileSync(join(place, "output.s"), "utf8"), expected[id]);
  }
  // The instance asks for the version before it offers a compiler.
  assert.match(run(known["compiler.reconverge-dis.exe"], ["--version"]).stdout, /^reconverge \d/);
});

test("each tool runs with its options and arguments", () => {
  const expected = { "reconverge-run": /^214 group instructions/m, "reconverge-lint": /^1 program: 0 errors/m, "reconverge-trace": /AAAAAAAAAAAA\s+0x0/ };
  assert.deepEqual(known.tools.split(":"), Object.keys(expected));
  for (const [id, output] of Object.entries(expected)) {
    const of = (key) => known[`tools.${id}.${key}`];
    assert.deepEqual([of("type"), of("class"), of("exclude")], ["independent", "testing-tool", ""]);
    const { status, stdout, stderr } = run(of("exe"), [...words(of("options")), ...words(of("args")), "example.asm"]);
    assert.equal(status, 0, stderr);
    assert.match(stdout, output);
  }
});

test("a wrong source ends with a status and a message, and leaves no output", () => {
  const { status, stderr, place } = run("reconverge-explorer", ["-o", "output.s", "asm", "absent.asm"]);
  assert.notEqual(status, 0);
  assert.match(stderr, /absent\.asm/);
  assert.equal(readFileSync(join(place, "output.s"), "utf8"), "");
});

test("the page names each compiler and tool, and the keys of the properties that it explains", () => {
  const page = readFileSync(join(root, "docs/compiler-explorer.md"), "utf8");
  const ids = Object.keys(known).filter((key) => /^compiler\..*\.name$/.test(key));
  for (const key of ids) assert.ok(page.includes(`| ${known[key]} |`), known[key]);
  for (const id of known.tools.split(":")) assert.match(page, new RegExp(`\\b${known[`tools.${id}.name`]}\\b`));
  for (const key of ["compilerType=osaca", "class=testing-tool"]) assert.ok(page.includes(`\`${key}\``), key);
});
