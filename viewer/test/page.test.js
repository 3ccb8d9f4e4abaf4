// The page in headless Chromium: `npm test`. RECONVERGE names the binary that writes the pages, CHROMIUM the browser.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.RECONVERGE
  ? resolve(process.env.RECONVERGE)
  : ["release", "debug"].map((profile) => join(ROOT, "target", profile, "reconverge")).find(existsSync);
/** Bytes of a page, at most. */
const BYTES = 10_000_000;
const COLLATZ = ["docs/samples/collatz.s", "--block", "12", "--buf", "steps=u32[12]"];
const nested = (isa) => `docs/samples/nested-if.${isa}.toml`;

describe("the report page", () => {
  const folder = mkdtempSync(join(tmpdir(), "viewer-"));
  let browser;
  before(async () => {
    assert.ok(BINARY, "cargo build -p reconverge makes the binary that writes the pages");
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  /** Writes a page; gives its file. */
  function write(name, ...args) {
    const file = join(folder, `${name}.html`);
    if (!existsSync(file)) execFileSync(BINARY, [...args, "--html", file], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
    return file;
  }
  const collatz = () => write("collatz", "trace", ...COLLATZ);
  const beside = () => write("beside", "trace", nested("tesla"), "--beside", nested("r700"), "--beside", nested("r500"));

  /** Opens a page, acts on it, and asserts that it complained about nothing and asked for nothing. */
  async function open(file, act, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 }, ...options });
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("request", (request) => {
      if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asks for ${request.url()}`);
    });
    const start = performance.now();
    await page.goto(pathToFileURL(file).href);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "1");
    await act(page, performance.now() - start);
    assert.deepEqual(complaints, []);
    await page.close();
  }

  const where = async (page, pane = 0) => {
    const [, step, address] = /step (\d+) at (\S+?)(?::|$)/.exec(await page.locator(".where").nth(pane).textContent());
    return { step: Number(step), address };
  };
  const step = async (page, pane = 0) => (await where(page, pane)).step;
  const press = async (page, ...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  /** What the timeline shows, after it is drawn. */
  const view = async (page) => {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    return JSON.parse(await page.locator(".timeline").first().getAttribute("data-view"));
  };

  it("needs no network: no address of another host is in it", () => {
    const html = readFileSync(collatz(), "utf8");
    // The name of a namespace is no address that is asked for.
    const addresses = html.replaceAll("http://www.w3.org/", "").match(/(https?:)?\/\/[\w-]+\.[\w.-]+\/|@import|<link|src=/g);
    assert.deepEqual(addresses ?? [], []);
  });

  it("opens the report of the first program of docs/start.md", async () => {
    const text = readFileSync(join(ROOT, "docs/start.md"), "utf8");
    const [, source] = /Save this as `first.s`:\n\n```text\n([^]*?)```/.exec(text);
    const [, command] = /^\$ reconverge (run first.s .*--html first.html.*)$/m.exec(text);
    const file = join(folder, "first.html");
    writeFileSync(join(folder, "first.s"), source);
    // The quotes are for the shell.
    execFileSync(BINARY, command.replaceAll('"', "").split(" "), { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    await open(file, async (page) => {
      await press(page, "End");
      assert.deepEqual(await where(page), { step: 117, address: "0x80" });
      assert.ok(await page.getByText("then this lane leaves the loop").first().isVisible());
    });
  });

  it("steps with the keyboard, forward and back, to both ends, and with the buttons", async () => {
    await open(collatz(), async (page) => {
      assert.equal(await step(page), 0);
      await press(page, "ArrowRight", "ArrowRight");
      assert.equal(await step(page), 2);
      await press(page, "ArrowLeft");
      assert.equal(await step(page), 1);
      await press(page, "End");
      assert.deepEqual(await where(page), { step: 213, address: "0x98" });
      await press(page, "Home");
      assert.equal(await step(page), 0);
      await page.getByRole("button", { name: "next event" }).click();
      assert.deepEqual(await where(page), { step: 6, address: "0x30" }, "the break parts the lanes");
      await press(page, "Shift+ArrowLeft");
      assert.equal(await step(page), 6, "there is no event before");
    });
  });

  it("numbers steps as the trace does, and counts as stats does", async () => {
    const trace = execFileSync(BINARY, ["trace", ...COLLATZ, "--print", "--addresses", "0x70"], { cwd: ROOT, encoding: "utf8" });
    const steps = trace.split("\n").map((line) => /^ *(\d+) +0 +[.A-Za-z]+ +0x70 /.exec(line)?.[1]).filter(Boolean).map(Number);
    assert.equal(steps.length, 11);
    const stats = JSON.parse(execFileSync(BINARY, ["stats", ...COLLATZ, "--json"], { cwd: ROOT, encoding: "utf8" }));
    await open(collatz(), async (page) => {
      const row = page.locator(".listing .row:not(.head)", { hasText: "0x70" });
      for (const expected of steps) {
        await row.click();
        assert.equal(await step(page), expected);
      }
      const heads = await page.locator(".row.head .count").allTextContents();
      assert.deepEqual(heads, ["executed", "lanes executed", "diverged"]);
      for (const { pc, executed, lanes, diverged } of stats.instructions) {
        const counts = page.locator(".listing .row:not(.head)").filter({ has: page.locator(".at", { hasText: new RegExp(`^0x${pc.toString(16)}$`) }) });
        const shown = (await counts.locator(".count").allTextContents()).map((text) => Number(text.replace(",", "") || 0));
        assert.deepEqual(shown, [executed, lanes, diverged], `at ${pc}`);
      }
    });
  });

  it("shows registers as they are in front of a step, in whatever order steps are visited", async () => {
    await open(collatz(), async (page) => {
      const values = () => page.textContent(".values");
      const forward = [];
      for (let count = 0; count < 40; count++, await press(page, "ArrowRight")) forward.push(await values());
      assert.ok(new Set(forward).size > 10);
      await press(page, "End");
      for (const at of [39, 3, 20]) {
        await page.evaluate((at) => void (location.hash = `step=${at}`), at);
        await page.waitForFunction((at) => document.querySelector(".where").textContent.startsWith(`step ${at} `), at);
        assert.equal(await values(), forward[at], `step ${at}`);
      }
    });
  });

  it("finds lines of the program by text, label and comment", async () => {
    await open(collatz(), async (page) => {
      await press(page, "/");
      await page.keyboard.type("joinat");
      assert.equal(await page.textContent("nav output"), "1 found");
      assert.equal((await where(page)).address, "0x38");
      await page.locator("nav input").fill("is n odd");
      assert.equal((await where(page)).address, "0x40", "a comment of the source");
      await page.locator("nav input").fill("add b32");
      assert.equal(await page.textContent("nav output"), "6 found");
      const first = (await where(page)).address;
      await press(page, "Enter");
      assert.notEqual((await where(page)).address, first);
      await page.locator("nav input").fill("nothing of the kind");
      assert.equal(await page.textContent("nav output"), "0 found");
      assert.equal(await page.locator(".row.found").count(), 0);
    });
  });

  it("zooms around the pointer, pans, and stays inside the run", async () => {
    await open(collatz(), async (page) => {
      const whole = await view(page);
      assert.equal(whole.left, 0);
      assert.equal(whole.steps, 214);
      const box = await page.locator(".timeline").boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      for (let count = 0; count < 4; count++) await page.mouse.wheel(0, -100);
      const near = await view(page);
      assert.ok(near.scale < whole.scale / 2, `${near.scale} of ${whole.scale}`);
      const middle = ({ left, scale }) => left + (scale * (box.width - 30)) / 2;
      assert.ok(Math.abs(middle(near) - middle(whole)) < 12, `${middle(near)} and ${middle(whole)}`);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 - 100, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
      const moved = await view(page);
      assert.ok(moved.left > near.left && moved.scale === near.scale);
      await press(page, ...Array(30).fill("]"));
      const end = await view(page);
      assert.ok(end.left + end.scale * (box.width - 30) <= 214 + 2, JSON.stringify(end));
      await press(page, "0");
      assert.deepEqual(await view(page), whole);
      await page.mouse.click(box.x + box.width - 2, box.y + box.height / 2);
      assert.equal(await step(page), 213);
    });
  });

  it("says for every lane why it runs or does not, and which row of the stack has it", async () => {
    const words = {
      tesla: [/^1 parked at 0x28$/, /goes on at 0x28/, /^BRANCH to 0x28 AA\.\.\.\.\.\.$/],
      r700: [/^1 branch, entry 1$/, /entry 1 of the stack/, /^PUSH AAAAAAAA$/],
      r500: [/^1 branch counter 0$/, /branch counter is 0/, /^branch counter 0 AA\.\.\.\.\.\.$/],
    };
    for (const [isa, [lane, why, row]] of Object.entries(words)) {
      await open(write(isa, "trace", nested(isa)), async (page) => {
        await press(page, "Shift+ArrowRight", "ArrowRight", "ArrowDown");
        for (const text of await page.locator(".lane").allTextContents()) assert.match(text, /^\d+ \S+/);
        assert.match(await page.locator(".lane").nth(1).textContent(), lane);
        assert.match(await page.textContent(".why"), why);
        assert.match(await page.locator(".stack .holds").first().textContent(), row);
        assert.match(await page.locator(".lane").nth(7).textContent(), /^7 active$/);
        assert.ok((await page.locator(".about .source").first().textContent()).startsWith("manual: "));
        await press(page, "f");
        assert.match(await page.locator(".lane").nth(1).textContent(), /^1 active$/, "f follows the lane to where it runs");
      });
    }
  });

  it("shows the source's own lines beside the listing", async () => {
    await open(collatz(), async (page) => {
      const code = page.locator(".row[data-line='5'] .code");
      assert.equal(await code.textContent(), "set $c0 # e u32 $r3 $r1  ; n == 1?");
      assert.equal(await page.locator(".label:visible").first().textContent(), "L28:");
      await press(page, "s");
      assert.equal(await page.locator(".label:visible").first().textContent(), "step:");
      assert.equal(await page.locator(".row[data-line='9'] .code").textContent(), "(lg $c0) bra odd");
    });
  });

  it("puts the same program on three machines side by side, in step by event or one alone", async () => {
    await open(beside(), async (page) => {
      const all = async () => [await step(page, 0), await step(page, 1), await step(page, 2)];
      assert.equal(await page.locator(".pane").count(), 3);
      await press(page, "Shift+ArrowRight");
      const first = await all();
      for (const pane of [0, 1, 2]) assert.match(await page.locator(".where").nth(pane).textContent(), /diverge/);
      await press(page, "3", "l", "Shift+ArrowRight");
      assert.deepEqual((await all()).slice(0, 2), first.slice(0, 2), "only the chosen one moves");
      assert.notEqual(await step(page, 2), first[2]);
      assert.equal(await page.locator(".pane.chosen").getAttribute("aria-label"), nested("r500"));
      await press(page, "1", "l", "Home");
      assert.deepEqual(await all(), [0, 0, 0]);
      await press(page, "ArrowDown", "ArrowDown");
      assert.deepEqual(await page.locator(".lane[aria-pressed=true]").allTextContents(), ["2 active", "2 active", "2 active"]);
      const columns = await page.locator(".pane").evaluateAll((panes) => panes.map((pane) => pane.getBoundingClientRect().top));
      assert.equal(new Set(columns).size, 1, "beside each other");
    });
  });

  it("does not scroll sideways on a narrow screen", async () => {
    for (const file of [collatz(), beside()]) {
      await open(file, async (page) => {
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${over} pixels`);
      }, { viewport: { width: 420, height: 800 } });
    }
  });

  it("has a light and a dark face, by the system's wish and by a switch", async () => {
    const paper = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await open(collatz(), async (page) => assert.equal(await paper(page), "rgb(255, 255, 255)"), { colorScheme: "light" });
    await open(collatz(), async (page) => {
      assert.equal(await paper(page), "rgb(20, 22, 26)");
      await press(page, "t");
      assert.equal(await paper(page), "rgb(255, 255, 255)");
      await press(page, "t");
      assert.equal(await paper(page), "rgb(20, 22, 26)");
    }, { colorScheme: "dark" });
  });

  it("is used by keyboard alone: focus is visible, help opens and closes", async () => {
    await open(collatz(), async (page) => {
      await press(page, "Tab", "Tab");
      const focus = await page.evaluate(() => {
        const { tagName } = document.activeElement;
        return { tagName, style: getComputedStyle(document.activeElement).outlineStyle };
      });
      assert.deepEqual(focus, { tagName: "BUTTON", style: "solid" });
      await press(page, "?");
      assert.ok(await page.locator("dialog").isVisible());
      await press(page, "ArrowRight", "Escape");
      assert.ok(!(await page.locator("dialog").isVisible()));
      assert.equal(await step(page), 0, "keys are the help's while it is open");
      const nameless = await page.evaluate(() =>
        [...document.querySelectorAll("button, input, select")].filter((element) => !element.getAttribute("aria-label")).length);
      assert.equal(nameless, 0);
    });
  });

  it("shows the trap that ended a run, with what ran before it", async () => {
    const file = join(folder, "trap.html");
    const ran = spawnSync(BINARY, ["run", "corpus/tesla/beyond.toml", "--html", file], { cwd: ROOT, encoding: "utf8" });
    assert.ok(existsSync(file), ran.stderr);
    await open(file, async (page) => {
      assert.match(await page.textContent(".outcome .trap"), /^trap\b.+/);
      await page.locator(".outcome button").click();
      assert.match(await page.textContent(".where"), /trap/);
      assert.equal(await page.locator(".row.trapped.current").count(), 1);
    });
  });

  it("shows what a run left", async () => {
    await open(write("run", "run", nested("tesla")), async (page) => {
      await page.locator(".outcome summary").first().click();
      assert.equal(await page.locator(".outcome td").first().textContent(), "13");
    });
  });

  it("has 100,000 steps in less than 10 MB, and moves smoothly in them", async (test) => {
    const file = write("large", "trace", "docs/samples/collatz.s", "--grid", "12", "--block", "256", "--buf", "steps=u32[256]", "-q");
    const bytes = statSync(file).size;
    assert.ok(bytes < BYTES, `${bytes} bytes`);
    await open(file, async (page, took) => {
      const count = JSON.parse(await page.textContent("#runs"))[0].steps.count;
      assert.equal(count, 100_000);
      await page.locator(".timeline").hover();
      const paints = [];
      for (let turn = 0; turn < 20; turn++) {
        await page.mouse.wheel(0, turn < 12 ? -100 : 100);
        await view(page);
        paints.push(Number(await page.locator(".timeline").getAttribute("data-paint")));
      }
      test.diagnostic(`${bytes} bytes, ready after ${took.toFixed(0)} ms; a picture takes ${Math.max(...paints)} ms at most`);
    });
  });

  it("keeps a page inside a bound, and says what it leaves out", async () => {
    const args = ["trace", "docs/samples/collatz.s", "--block", "256", "--buf", "steps=u32[256]", "--page-limit", "150000"];
    const file = join(folder, "small.html");
    const { stderr } = spawnSync(BINARY, [...args, "--html", file], { cwd: ROOT, encoding: "utf8" });
    assert.match(stderr, /registers are recorded up to step/);
    assert.ok(statSync(file).size <= 150_000);
    await open(file, async (page) => {
      const notes = (await page.locator(".outcome .note").allTextContents()).join("\n");
      assert.match(notes, /the first \d+ of 10850 steps/);
      assert.match(notes, /registers are recorded up to step \d+/);
      await press(page, "End");
      assert.match(await page.textContent(".values"), /--page-limit/);
    });
  });
});
