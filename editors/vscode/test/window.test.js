// The extension in a window of VS Code: an error in the text, its fix, a breakpoint, F5, the page of a run. CODE_SERVER names the command of
// code-server, which is VS Code in a browser, and CHROMIUM a Chromium; without them the test is skipped. SCREENSHOT names a picture to write.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { binary, samples } from "../../shared.mjs";

const { CODE_SERVER, CHROMIUM, SCREENSHOT } = process.env;
const skip = CODE_SERVER && CHROMIUM ? false : "CODE_SERVER and CHROMIUM are not set";
const extension = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const ended = [];
after(() => Promise.all(ended.map((end) => end())));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Starts code-server with the packaged extension. Returns the address of a window that has a folder open. */
async function started(folder) {
  const work = mkdtempSync(join(tmpdir(), "reconverge-window-"));
  const vsix = join(work, "reconverge.vsix");
  execFileSync("npm", ["run", "package", "--", "--out", vsix], { cwd: extension, stdio: "pipe" });
  mkdirSync(join(work, "user/User"), { recursive: true });
  const settings = {
    "workbench.startupEditor": "none", "security.workspace.trust.enabled": false, "telemetry.telemetryLevel": "off",
    "workbench.colorTheme": "Default Light Modern", "editor.minimap.enabled": false, "window.commandCenter": false, "breadcrumbs.enabled": false,
  };
  writeFileSync(join(work, "user/User/settings.json"), JSON.stringify(settings));
  // Paths of commands belong to the machine on which the extension runs.
  mkdirSync(join(work, "user/Machine"), { recursive: true });
  writeFileSync(join(work, "user/Machine/settings.json"), JSON.stringify({ "reconverge.path": binary }));
  const folders = ["--user-data-dir", join(work, "user"), "--extensions-dir", join(work, "extensions")];
  const env = { ...process.env, XDG_CONFIG_HOME: work };
  const installed = spawnSync(CODE_SERVER, [...folders, "--install-extension", vsix], { encoding: "utf8", env });
  assert.equal(installed.status, 0, installed.stderr);
  const port = await freePort();
  const child = spawn(CODE_SERVER, [...folders, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"], { stdio: "ignore", env });
  ended.push(async () => child.kill());
  const address = `http://127.0.0.1:${port}/`;
  for (let tries = 0; tries < 100; tries += 1) {
    if (await fetch(address).then(({ ok }) => ok, () => false)) return `${address}?folder=${folder}`;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error("code-server does not answer");
}

/** Chooses a command of the extension in the palette. */
async function command(page, title) {
  await page.locator(".tab", { hasText: "collatz.s" }).first().click();
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input:visible").first().fill(`>Reconverge: ${title}`);
  await page.locator(".quick-input-list .monaco-list-row .label-name", { hasText: new RegExp(`^Reconverge: ${title}$`) }).first().click();
}

test("an error with its fix, a breakpoint that F5 reaches, the page of the run", { skip, timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-folder-"));
  const text = readFileSync(join(samples, "collatz.s"), "utf8");
  writeFileSync(join(folder, "collatz.s"), text.replace("breakaddr done", "brekaddr done"));
  copyFileSync(join(samples, "gcd.r700.s"), join(folder, "gcd.r700.s"));
  const address = await started(folder);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  ended.push(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(30_000);
  await page.goto(address);
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "collatz.s" }).dblclick();
  const status = page.locator(".statusbar-item", { hasText: "Shader machine code (Tesla)" });
  await status.waitFor();

  // The error and its fix.
  await page.locator(".view-overlays .squiggly-error").waitFor();
  await page.keyboard.press("F8");
  await page.locator(".marker-widget", { hasText: "brekaddr" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .monaco-list-row", { hasText: "breakaddr" }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".view-overlays .squiggly-error").waitFor({ state: "detached" });
  await page.keyboard.press("Control+s");

  // A breakpoint in the line of the label `odd`, and F5 with the options that the user states.
  const line = text.split("\n").indexOf("odd:") + 1;
  await page.keyboard.press("Control+g");
  await page.keyboard.type(String(line));
  await page.keyboard.press("Enter");
  await page.keyboard.press("F9");
  await page.locator(".codicon-debug-breakpoint, .codicon-debug-breakpoint-unverified").first().waitFor();
  await page.keyboard.press("F5");
  const question = page.locator(".quick-input-widget input").first();
  await question.waitFor();
  assert.equal(await question.inputValue(), "--block 32 --buf p0=u32[32]");
  await question.fill("--block 12 --buf steps=u32[12]");
  await page.keyboard.press("Enter");
  await page.locator(".debug-top-stack-frame-line").first().waitFor();
  await page.locator(".debug-call-stack", { hasText: "0x60" }).first().waitFor();
  const lane = page.locator(".debug-variables .monaco-list-row", { hasText: "lane 0" }).first();
  await lane.waitFor();
  assert.match(await lane.innerText(), /left the loop/);
  if (SCREENSHOT) await page.screenshot({ path: SCREENSHOT });
  await page.keyboard.press("Shift+F5");

  // The commands use the options that were stated for F5. Panels are frames within frames.
  await command(page, "Show the Page of a Run");
  const frame = (title) => page.frameLocator(`iframe.webview[name]:visible`).frameLocator(`iframe[title="${title}"]`);
  await frame("Run of collatz.s").getByText("214 instructions").first().waitFor();
  await command(page, "Run");
  await page.locator(".output-view .view-line", { hasText: "214" }).first().waitFor();
  await command(page, "Count Instructions and Lanes");
  await page.locator(".output-view .view-line", { hasText: "g14" }).first().waitFor();
  await command(page, "Disassemble");
  await page.locator(".tab", { hasText: "collatz.dis.s" }).waitFor();
  await command(page, "Show the Control-Flow Graph");
  await frame("Graph of collatz.s").locator("svg").first().waitFor();
});
