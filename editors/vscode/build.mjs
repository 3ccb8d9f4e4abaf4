// Bundles the extension into dist/extension.cjs. With --release also copies the licenses, with --tests also builds the modules that
// need no editor.
import { copyFileSync } from "node:fs";

import { build } from "esbuild";

const release = process.argv.includes("--release");
const shared = { bundle: true, platform: "node", target: "node20", logLevel: "warning", minify: release };
await build({
  ...shared,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.cjs",
  format: "cjs",
  external: ["vscode"],
  // Licenses of what is bundled stay in the bundle.
  legalComments: "eof",
});
if (release) for (const name of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(`../../${name}`, name);
if (process.argv.includes("--tests")) {
  await build({ ...shared, entryPoints: ["src/machine.ts", "src/launches.ts", "src/command.ts"], outdir: "dist/tests", format: "esm" });
}
