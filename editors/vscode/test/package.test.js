// The package: its files, and the same bytes each time.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const extension = resolve(dirname(fileURLToPath(import.meta.url)), "..");

function packaged() {
  const file = join(mkdtempSync(join(tmpdir(), "reconverge-package-")), "reconverge.vsix");
  const env = { ...process.env, SOURCE_DATE_EPOCH: "1700000000" };
  execFileSync("npm", ["run", "package", "--", "--out", file], { cwd: extension, stdio: "pipe", env });
  return readFileSync(file);
}

/** The names of a zip archive, from its central directory. */
function names(archive) {
  const found = [];
  for (let at = archive.indexOf("PK\x01\x02", 0, "latin1"); at >= 0; at = archive.indexOf("PK\x01\x02", at + 4, "latin1")) {
    found.push(archive.toString("utf8", at + 46, at + 46 + archive.readUInt16LE(at + 28)));
  }
  return found;
}

test("two packages have the same bytes, and only the files of the extension", () => {
  const [one, other] = [packaged(), packaged()];
  assert.ok(one.equals(other));
  const syntaxes = ["reconverge-r500", "reconverge-r700", "reconverge-tesla", "reconverge"].map((name) => `syntaxes/${name}.tmLanguage.json`);
  const files = ["LICENSE-APACHE", "LICENSE-MIT", "dist/extension.cjs", "language-configuration.json", "package.json", "readme.md", ...syntaxes];
  assert.deepEqual(names(one).sort(), ["[Content_Types].xml", "extension.vsixmanifest", ...files.map((name) => `extension/${name}`)].sort());
  assert.ok(one.length < 200_000, `${one.length} bytes`);
});
