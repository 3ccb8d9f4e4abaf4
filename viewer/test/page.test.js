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
      const middle = ({ left, scale }) => left + (scale * (box.width - 44)) / 2;
      assert.ok(Math.abs(middle(near) - middle(whole)) < 12, `${middle(near)} and ${middle(whole)}`);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width / 2 - 100, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
      const moved = await view(page);
      assert.ok(moved.left > near.left && moved.scale === near.scale);
      await press(page, ...Array(30).fill("]"));
      const end = await view(page);
      assert.ok(end.left + end.scale * (box.width - 44) <= 214 + 2, JSON.stringify(end));
      await press(page, "0");
      assert.deepEqual(await view(page), whole);
      await page.mouse.click(box.x + box.width - 2, box.y + box.height / 2);
      assert.equal(await step(page), 213);
    });
  });

  /** The rows of the panel of a mechanism: the text of each, and whether it is marked. */
  const rows = (page, pane = 0) => page.locator(".stack").nth(pane).locator("li").evaluateAll((items) =>
    items.map((item) => ({ text: item.textContent.replace(/\s+/g, " ").trim(), holds: item.classList.contains("holds") })));
  const marked = async (page, pane = 0) => (await rows(page, pane)).filter(({ holds }) => holds).map(({ text }) => text);

  it("says for every lane why it runs or does not, and marks the one entry that the lane waits for", async () => {
    const words = {
      tesla: [/^1 p parked at 0x28$/, /resumes at 0x28/, ["BRANCH → 0x28lanes 0-1"]],
      r700: [/^1 b branch, entry 1$/, /entry 1 of the stack/, ["PUSHbefore 0-7"]],
      r500: [/^1 b branch counter 0$/, /branch counter is 0/, []],
    };
    for (const [isa, [lane, why, row]] of Object.entries(words)) {
      await open(write(isa, "trace", nested(isa)), async (page) => {
        await press(page, "Shift+ArrowRight", "ArrowRight", "ArrowDown");
        for (const text of await page.locator(".lane").allTextContents()) assert.match(text, /^\d+ [Abkcpxu] \S+/);
        assert.match(await page.locator(".lane").nth(1).textContent(), lane);
        assert.match(await page.textContent(".why"), why);
        assert.deepEqual(await marked(page), row);
        assert.match(await page.locator(".lane").nth(7).textContent(), /^7 A active$/);
        assert.ok((await page.locator(".about .source").first().textContent()).startsWith("manual: "));
        await press(page, "f");
        assert.match(await page.locator(".lane").nth(1).textContent(), /^1 A active$/, "f follows the lane to where it runs");
      });
    }
  });

  it("draws what each mechanism remembers: counters, masks with broken lanes, tokens with addresses (fault 14)", async () => {
    const loop = (isa) => write(`loop-${isa}`, "trace", `docs/samples/loop-break.${isa}.toml`);
    const words = {
      r500: ["Counters", "loop's frame", ["REP count 6entered 0-7broken 0-2continued none"]],
      r700: ["Masks, innermost first", "inactive-break (IX)", ["LOOPbefore 0-7break IX 0-2continue IC none"]],
      tesla: ["Tokens, innermost first", "mask of broken lanes", ["BREAK → 0x48lanes 0-7"]],
    };
    for (const [isa, [heading, why, held]] of Object.entries(words)) {
      await open(loop(isa), async (page) => {
        // Three lanes have left the loop; lane 1 is one of them.
        await press(page, ..."123".split("").map(() => "Shift+ArrowRight"), "ArrowRight", "ArrowDown");
        assert.equal(await page.textContent(".of-stack h3"), heading);
        assert.ok((await page.textContent(".why")).includes(why), await page.textContent(".why"));
        assert.deepEqual(await marked(page), held);
        // A lane that runs waits for nothing.
        await press(page, ...Array(6).fill("ArrowDown"));
        assert.deepEqual(await marked(page), []);
        if (isa === "tesla") assert.equal((await rows(page))[0].text, "mask of broken lanes 0-2");
      });
    }
    await open(write("r500", "trace", nested("r500")), async (page) => {
      await press(page, "Shift+ArrowRight", "Shift+ArrowRight", "ArrowRight");
      assert.deepEqual(await page.locator(".counter b").allTextContents(), ["1", "1", "0", "0", "0", "–", "–", "–"]);
      assert.equal(await page.locator(".counter.holds").count(), 1);
    });
    await open(write("tesla", "trace", nested("tesla")), async (page) => {
      await press(page, "Shift+ArrowRight", "Shift+ArrowRight", "ArrowRight");
      assert.equal((await rows(page)).length, 4);
      assert.deepEqual(await marked(page), ["BRANCH → 0x28lanes 0-1"], "one of the two that have lane 0");
    });
  });

  it("shows the source with its labels and comments, and the listing (fault 26)", async () => {
    await open(collatz(), async (page) => {
      const code = page.locator(".row[data-line='5'] .code");
      assert.equal(await code.textContent(), "set $c0 # e u32 $r3 $r1  ; n == 1?");
      assert.ok((await page.locator(".label:visible").allTextContents()).includes("step:"));
      assert.equal(await page.locator(".row[data-line='9'] .code").textContent(), "(lg $c0) bra odd");
      assert.equal(await page.locator(".row[data-line='9'] .at").getAttribute("title"), "line 20 of the source");
      await press(page, "s");
      assert.ok((await page.locator(".label:visible").allTextContents()).includes("L28:"));
      assert.equal(await page.locator(".row[data-line='9'] .code").textContent(), "(lg $c0) bra L60");
    });
  });

  it("lists R700's clauses after the instructions that start them, a group of operations as one line (fault 26)", async () => {
    await open(write("loop-r700", "trace", "docs/samples/loop-break.r700.toml"), async (page) => {
      assert.deepEqual(await page.locator(".row:not(.head) .at").allTextContents(), ["0", "6", "1", "2", "8", "3", "9", "11", "4", "5"]);
      await press(page, "s");
      assert.equal(await page.locator(".row[data-line='1'] .code").textContent(), "0 x: MOV R1.x, 0\ny: MOV R1.y, 0");
      assert.equal(await page.locator(".row.never").count(), 0);
    });
  });

  it("lists R500's idioms by name, without sources that nothing reads (fault 26)", async () => {
    await open(write("loop-r500", "trace", "docs/samples/loop-break.r500.toml"), async (page) => {
      await press(page, "s");
      const code = await page.locator(".row:not(.head) .code").allTextContents();
      assert.equal(code[0], "ALU temp[1].rgb = MUL src0.000, src0.000");
      assert.equal(code[4], "ALU temp[1].g = ADD src0.ggg, src0.111 : src0=temp[1]");
      assert.ok(!code.join("\n").includes("0.0078125"), code.join("\n"));
    });
  });

  /** The registers of a pane by name, as text. */
  const values = (page, pane = 0) => page.locator(".values").nth(pane).locator("tbody tr").evaluateAll((lines) =>
    Object.fromEntries(lines.map((line) => [line.cells[0].textContent, [...line.cells].slice(1).map((cell) => cell.firstChild?.textContent ?? "")])));
  const counted = (count) => Array.from({ length: count }, (_, lane) => String(lane));

  it("has inputs in the registers before the first step (fault 2)", async () => {
    await open(collatz(), async (page) => assert.deepEqual((await values(page))["$r0"], counted(12)));
    const names = { tesla: "$r0", r700: "R0.x", r500: "temp0.r" };
    for (const [isa, name] of Object.entries(names)) {
      await open(write(isa, "trace", nested(isa)), async (page) => {
        assert.equal(await step(page), 0);
        assert.deepEqual((await values(page))[name], counted(8), isa);
        // Rows do not come and go: every register that is written is there from the start.
        const first = Object.keys(await values(page));
        await press(page, "End");
        assert.deepEqual(Object.keys(await values(page)), first);
        await press(page, "Home");
        assert.deepEqual((await values(page))[name], counted(8), isa);
      });
    }
  });

  it("has the inputs of every group, not of the first alone (fault 2)", async () => {
    const file = write("groups", "trace", "docs/samples/collatz.s", "--grid", "3", "--block", "32", "--buf", "steps=u32[32]");
    await open(file, async (page) => {
      await press(page, "PageDown", "PageDown");
      assert.equal((await values(page))["$r0"][5], String(5));
    });
  });

  it("names registers as the manual does (fault 3)", async () => {
    await open(collatz(), async (page) => {
      const names = Object.keys(await values(page));
      assert.ok(names.includes("$c0"), names.join());
      assert.ok(!names.some((name) => /\$r\d{3}|^\d|register/.test(name)), names.join());
    });
    await open(write("r700", "trace", nested("r700")), async (page) => assert.ok((await values(page))["R1.x"]));
  });

  /** The events that `trace --print` shows, as the step and the word. */
  function printed(launch) {
    const text = execFileSync(BINARY, ["trace", launch, "--print", "--events", "diverge,resume,reconverge"], { cwd: ROOT, encoding: "utf8" });
    return text.split("\n").map((line) => /^ *(\d+) +0 (diverge|resume|reconverge):/.exec(line)).filter(Boolean).map(([, at, word]) => `${at} ${word}`);
  }

  it("has the events of the trace at the same steps, and tells resume from reconverge (faults 4 and 5)", async () => {
    for (const name of ["nested-if", "loop-break"]) {
      for (const isa of ["r500", "r700", "tesla"]) {
        const launch = `docs/samples/${name}.${isa}.toml`;
        await open(write(`${name}-${isa}`, "trace", launch), async (page) => {
          const found = [];
          for (let before = -1; ; ) {
            const text = await page.textContent(".where");
            const [, at, , words] = /^step (\d+) at (\S+?)(?:: (.*))?$/.exec(text);
            if (Number(at) === before) break;
            before = Number(at);
            for (const word of words?.split(", ") ?? []) found.push(`${at} ${word}`);
            await press(page, "Shift+ArrowRight");
          }
          assert.deepEqual(found, printed(launch), launch);
        });
      }
    }
    await open(write("tesla", "trace", nested("tesla")), async (page) => {
      const legend = await page.textContent(".legend");
      for (const text of ["▼ diverge", "▲ reconverge", "▶ resume", "■ trap", "written in this step"]) assert.ok(legend.includes(text), legend);
    });
  });

  /** Clicks a button that saves a file; gives its bytes. */
  async function saved(page, name) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).first().click()]);
    return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
  }
  /** The numbers of the axis. */
  const axis = (svg) => [...svg.matchAll(/<text [^>]*y="7"[^>]*>(\d+)</g)].map(([, number]) => Number(number));

  it("saves the timeline as PNG and SVG (fault 26)", async () => {
    await open(collatz(), async (page) => {
      const png = await saved(page, "as PNG");
      assert.match(png.name, /collatz.*\.png$/);
      assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
      const svg = await saved(page, "as SVG");
      assert.match(svg.name, /\.svg$/);
      const wrong = await page.evaluate((text) =>
        new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? null, svg.bytes.toString());
      assert.equal(wrong, null);
      for (const text of ["A active", "diverge", "docs/samples/collatz.s, group 0, step 0"]) assert.ok(svg.bytes.toString().includes(text), text);
    });
  });

  it("numbers the axis with multiples of one unit that do not touch, with several warps as well (fault 26)", async () => {
    const file = write("warps", "trace", "docs/samples/collatz.s", "--grid", "2", "--block", "256", "--buf", "steps=u32[256]");
    await open(file, async (page) => {
      for (let group = 0; group < 4; group++, await press(page, "PageDown")) {
        await view(page);
        const svg = (await saved(page, "as SVG")).bytes.toString();
        const numbers = axis(svg);
        assert.ok(numbers.length >= 3, numbers.join());
        const unit = Math.min(...numbers.slice(1).map((number, at) => number - numbers[at]));
        for (const number of numbers) assert.equal(number % unit, 0, numbers.join());
        const places = [...svg.matchAll(/<text x="([\d.]+)" y="7"[^>]*>(\d+)</g)].map(([, x, text]) => [Number(x), Number(x) + 6.7 * text.length]);
        places.slice(1).forEach(([x], at) => assert.ok(x > places[at][1], numbers.join()));
      }
    });
  });

  it("keeps lanes and stacks of three machines in view at 1366x768, in rows that line up (fault 26)", async () => {
    const three = ["r500", "r700", "tesla"].map((isa) => `docs/samples/loop-break.${isa}.toml`);
    const files = [beside(), write("three", "trace", three[0], "--beside", three[1], "--beside", three[2])];
    for (const file of files) {
      await open(file, async (page) => {
        await press(page, "Shift+ArrowRight", "Shift+ArrowRight", "ArrowRight");
        for (const part of ["header", ".bar", ".listing", ".timeline", ".state", ".of-instruction"]) {
          const boxes = await page.locator(`.pane > ${part}, .pane .times ${part}`).evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top));
          assert.equal(boxes.length, 3, part);
          assert.equal(new Set(boxes.map(Math.round)).size, 1, `${part}: ${boxes}`);
        }
        const bottoms = await page.locator(".state").evaluateAll((all) => all.map((each) => each.getBoundingClientRect().bottom));
        for (const bottom of bottoms) assert.ok(bottom <= 768, `${bottoms}`);
        const hidden = await page.locator(".of-lanes, .of-stack").evaluateAll((all) => all.map((each) => each.scrollHeight - each.clientHeight));
        assert.ok(Math.max(...hidden) <= 1, `${hidden}`);
        for (const pane of [0, 1, 2]) {
          const letters = await page.locator(".pane").nth(pane).locator(".lane b").allTextContents();
          assert.equal(letters.length, 8);
          for (const letter of letters) assert.match(letter, /^[Abkcpxu]$/);
        }
      }, { viewport: { width: 1366, height: 768 } });
    }
  });

  it("has column heads that can be read, apart from each other, with three panes and on a phone", async () => {
    const three = ["r500", "r700", "tesla"].map((isa) => `docs/samples/loop-break.${isa}.toml`);
    const file = write("three", "trace", three[0], "--beside", three[1], "--beside", three[2]);
    for (const [width, height, least] of [[1366, 768, 11], [1920, 1080, 11], [390, 844, 10]]) {
      await open(file, async (page) => {
        const heads = await page.locator(".row.head").evaluateAll((all) => all.map((head) => [...head.children].map((cell) => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          const { left, right } = range.getBoundingClientRect();
          return { text: cell.textContent, size: parseFloat(getComputedStyle(cell).fontSize), left, right };
        })));
        assert.equal(heads.length, 3);
        for (const head of heads) {
          for (const cell of head) assert.ok(cell.size >= least, JSON.stringify(cell));
          head.slice(1).forEach((cell, at) => assert.ok(cell.left - head[at].right >= 4, JSON.stringify([head[at], cell])));
        }
      }, { viewport: { width, height } });
    }
  });

  it("prints everything, light, without what is clicked (fault 26)", async () => {
    for (const file of [collatz(), beside()]) {
      await open(file, async (page) => {
        await page.emulateMedia({ media: "print", colorScheme: "dark" });
        const seen = await page.evaluate(() => ({
          paper: getComputedStyle(document.body).backgroundColor,
          buttons: [...document.querySelectorAll("nav button, .bar button, .slider")].filter((each) => each.getClientRects().length > 0).length,
          cut: [...document.querySelectorAll(".scroller, .panel")].filter((each) => each.scrollHeight > each.clientHeight + 1).length,
        }));
        assert.deepEqual(seen, { paper: "rgb(255, 255, 255)", buttons: 0, cut: 0 });
        assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
      }, { colorScheme: "dark" });
    }
  });

  it("has a tooltip with lane, step, state and instruction (fault 26)", async () => {
    await open(collatz(), async (page) => {
      const box = await page.locator(".timeline").boundingBox();
      const scale = (await view(page)).scale;
      await page.mouse.move(box.x + 44 + 50.5 / scale, box.y + 26 + ((box.height - 26) * 1.5) / 12);
      const tip = await page.locator(".tip").innerText();
      assert.match(tip, /^lane 1, step 50: break\n.*left the loop.*\n0x58 +bra L78\nreconverge: lanes that waited run together/);
      await page.mouse.move(box.x, box.y + box.height + 40);
      assert.ok(!(await page.locator(".tip").isVisible()));
    });
  });

  it("names step, lane and group in its address, and opens there (fault 26)", async () => {
    const groups = write("groups", "trace", "docs/samples/collatz.s", "--grid", "3", "--block", "32", "--buf", "steps=u32[32]");
    let address;
    await open(groups, async (page) => {
      await press(page, "PageDown", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown");
      await page.waitForFunction(() => /lane=3/.test(location.hash));
      address = await page.evaluate(() => location.hash);
      assert.match(address, /^#step=\d+&lane=3&group=1$/);
    });
    await open(groups, async (page) => {
      await page.evaluate((hash) => void (location.hash = hash), address);
      await page.waitForFunction(() => document.querySelector(".lane[aria-pressed=true]")?.dataset.lane === "3");
      assert.equal(await step(page), Number(/step=(\d+)/.exec(address)[1]));
      assert.equal(await page.locator(".bar select").inputValue(), "1");
    });
    await open(beside(), async (page) => {
      await page.goto(`${page.url()}#step=3,4,5&lane=1,2,3&pane=2`);
      await page.reload();
      await page.waitForFunction(() => document.documentElement.dataset.ready === "1");
      assert.deepEqual([await step(page, 0), await step(page, 1), await step(page, 2)], [3, 4, 5]);
      assert.deepEqual(await page.locator(".lane[aria-pressed=true] .number").allTextContents(), ["1", "2", "3"]);
      assert.equal(await page.locator(".pane.chosen").getAttribute("aria-label"), nested("r700"));
    });
    await open(collatz(), async (page) => {
      // A wrong address is no error: numbers beyond the end stay at the end.
      await page.evaluate(() => void (location.hash = "step=99999&lane=99&group=x&pane=9"));
      await page.waitForFunction(() => document.querySelector(".where").textContent.startsWith("step 213 "));
    });
  });

  it("plays and pauses with the keyboard, to the end (fault 26)", async () => {
    await open(write("tesla", "trace", nested("tesla")), async (page) => {
      await press(page, ">", ">", ">", "Space");
      await page.waitForFunction(() => /^step [3-9]/.test(document.querySelector(".where").textContent));
      await press(page, "Space");
      const paused = await step(page);
      await page.waitForTimeout(200);
      assert.equal(await step(page), paused);
      await press(page, "p");
      await page.waitForFunction(() => document.querySelector(".where").textContent.startsWith("step 19 "));
      await page.waitForFunction(() => document.querySelector(".transport [aria-pressed]").textContent === "play");
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
      assert.deepEqual(await page.locator(".lane[aria-pressed=true]").allTextContents(), ["2 A active", "2 A active", "2 A active"]);
      const columns = await page.locator(".pane").evaluateAll((panes) => panes.map((pane) => pane.getBoundingClientRect().top));
      assert.equal(new Set(columns).size, 1, "beside each other");
    });
  });

  it("does not scroll sideways on a narrow screen", async () => {
    for (const file of [collatz(), beside()]) {
      await open(file, async (page) => {
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${over} pixels`);
      }, { viewport: { width: 390, height: 844 } });
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
