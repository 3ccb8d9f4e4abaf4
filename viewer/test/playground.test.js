// The playground in headless Chromium, and its engine in node: `npm test`. RECONVERGE names a binary with the command `serve`,
// PLAYGROUND the folder that scripts/build-web made; without it, the page that `reconverge serve` has is tested alone.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { deflateSync, gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BINARY = process.env.RECONVERGE
  ? resolve(process.env.RECONVERGE)
  : ["release", "debug"].map((profile) => join(ROOT, "target", profile, "reconverge")).find(existsSync);
const FOLDER = process.env.PLAYGROUND ? resolve(process.env.PLAYGROUND) : undefined;
const SHARED = process.env.RECONVERGE_SHARED ?? join(ROOT, "../shared");
const GOLDENS = [["r500", "mandel"], ["r700", "mandel"], ["tesla", "mandel"], ["r700", "collatz"], ["tesla", "collatz"]];
const LANES = 1 << 20;
/** Bytes of the engine, compressed, at most. */
const BYTES = 2 * 1024 * 1024;

const PROGRAM = [
  ".isa tesla",
  ".kernel twice",
  ".reg 2",
  ".param s[0x10] 4 out",
  "    and b32 $r0 $r0 0xffff      ; the thread",
  "    shl b32 $r1 $r0 0x1",
  "    shl b32 $r0 $r0 0x2",
  "    add b32 $r0 b32 s[0x10] $r0",
  "    exit st b32 g14[$r0] $r1",
].join("\n");
const LAUNCH = 'block = [4]\nparam = [{ name = "out", buffer = "u32[4]" }]\n';
const ENDLESS = ".isa tesla\n.kernel endless\nagain:\n    bra again\n    exit nop\n";

const isServing = BINARY !== undefined && spawnSync(BINARY, ["serve", "--answer"], { input: "" }).status === 0;

/** The engine of the folder in node, as `request => reply`. */
function inNode() {
  const [, packed] = /"([^"]*)"/.exec(readFileSync(join(FOLDER, "engine.js"), "utf8"));
  const module = new WebAssembly.Module(gunzipSync(Buffer.from(packed, "base64")));
  assert.deepEqual(WebAssembly.Module.imports(module), [], "the engine needs nothing of its page");
  const { memory, allocate, answer, release } = new WebAssembly.Instance(module, {}).exports;
  return (request) => {
    const bytes = Buffer.from(JSON.stringify(request));
    const block = allocate(bytes.length);
    new Uint8Array(memory.buffer, block, bytes.length).set(bytes);
    const reply = answer(block, bytes.length);
    const length = new DataView(memory.buffer).getUint32(reply, true);
    const text = Buffer.from(memory.buffer, reply + 4, length).toString();
    release(reply);
    return text;
  };
}

/** The replies of the binary. */
function natively(requests) {
  const input = requests.map((request) => JSON.stringify(request)).join("\n") + "\n";
  const options = { input, encoding: "utf8", maxBuffer: 1 << 30 };
  return execFileSync(BINARY, ["serve", "--answer"], options).trimEnd().split("\n");
}

/** Files below a folder. */
function walk(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? walk(path) : [path];
  });
}

const samples = (folder) =>
  readdirSync(join(ROOT, folder)).filter((name) => name.endsWith(".toml") && !name.includes("campaign")).flatMap((name) => {
    const launch = readFileSync(join(ROOT, folder, name), "utf8");
    const program = join(ROOT, folder, /^program = "(.*)"$/m.exec(launch)?.[1] ?? "");
    return statSync(program, { throwIfNoEntry: false })?.isFile() ? [{ name, launch, source: readFileSync(program, "utf8") }] : [];
  });

describe("the playground's engine in WebAssembly", { skip: FOLDER === undefined && "PLAYGROUND names no folder" }, () => {
  it("has at most 2 MiB, compressed", () => {
    const [, packed] = /"([^"]*)"/.exec(readFileSync(join(FOLDER, "engine.js"), "utf8"));
    const bytes = Buffer.from(packed, "base64").length;
    console.log(`engine: ${bytes} bytes, compressed`);
    assert.ok(bytes <= BYTES, `${bytes}`);
  });

  it("names a limit without the options of the command line", () => {
    const source = readFileSync(join(ROOT, "docs/samples/nested-if.r500.s"), "utf8");
    const launch = 'isa = "r500"\nlanes = 8388608\ninput = [{ temp = 0, values = [1.0, 2.0, 3.0, 4.0] }]\n';
    const { error } = JSON.parse(inNode()({ request: "run", source, launch }));
    assert.match(error.message, /limit `lanes` \(4194304\)|expected 1 to 4194304/);
    assert.doesNotMatch(error.message, /--limits/);
  });

  it("runs every sample as the binary does", { skip: !isServing && "the binary has no serve" }, () => {
    const all = [...samples("docs/samples"), ...samples("docs/exercises")];
    assert.ok(all.length > 30, `${all.length} samples`);
    const requests = all.flatMap(({ source, launch, name }) => [
      { request: "run", source, launch },
      { request: "diagnose", source, launch },
      { request: "record", source, launch, title: name },
    ]);
    const answer = inNode();
    natively(requests).forEach((reply, number) => {
      const own = answer(requests[number]);
      // The command line has other limits, which an error may name.
      assert.equal(own, reply, `${all[Math.floor(number / 3)].name}: ${requests[number].request}`);
    });
  });

  it("brings the words of the shared corpora back, as the binary does", { skip: !isServing && "the binary has no serve" }, (test) => {
    if (!existsSync(join(SHARED, "corpus"))) return test.skip(`${SHARED}/corpus is not here`);
    const stages = { r500: "pixel", r700: "pixel", tesla: "fragment" };
    const requests = Object.entries(stages).flatMap(([isa, stage]) =>
      ["fuzz", "piglit"].flatMap((kind) => {
        const lines = gunzipSync(readFileSync(join(SHARED, "corpus", isa, `${kind}.jsonl.gz`))).toString().trimEnd().split("\n");
        return lines.map((line) => {
          const { chip, program } = JSON.parse(line);
          const words = [program.code].flat().join("").match(/.{8}/g);
          return { request: "round_trip", isa, chip, stage, text: words.join("\n") };
        });
      }),
    );
    for (const path of walk(join(SHARED, "binaries"))) {
      if (/\.(md|json|npy)$/.test(path) || statSync(path).size > 1 << 20) continue;
      const [isa] = /r500|r700|tesla/.exec(path) ?? ["tesla"];
      requests.push({ request: "round_trip", isa, base64: readFileSync(path, "base64") });
    }
    const answer = inNode();
    let programs = 0;
    natively(requests).forEach((reply, number) => {
      const own = answer(requests[number]);
      assert.equal(own, reply, JSON.stringify(requests[number]).slice(0, 300));
      for (const program of JSON.parse(own).reply?.programs ?? []) {
        assert.equal(program.difference, null);
        programs++;
      }
    });
    console.log(`round trips: ${programs} programs of ${requests.length} files`);
    assert.ok(programs > 2000, `${programs}`);
  });
});

describe("the playground", () => {
  const folder = mkdtempSync(join(tmpdir(), "playground-"));
  let browser, server, host, served, hosted;
  before(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
    if (isServing) {
      server = spawn(BINARY, ["serve", "--port", "0"], { stdio: ["ignore", "pipe", "ignore"] });
      served = await new Promise((done) => server.stdout.once("data", (data) => done(data.toString().trim())));
    }
    if (FOLDER) {
      const types = { html: "text/html", js: "text/javascript" };
      host = createServer(({ url }, response) => {
        const name = url === "/" ? "index.html" : url.slice(1);
        response.setHeader("Content-Type", types[name.split(".").at(-1)] ?? "text/plain");
        const file = join(FOLDER, name);
        response.end(existsSync(file) ? readFileSync(file) : "");
      });
      await new Promise((done) => host.listen(0, "127.0.0.1", done));
      hosted = `http://127.0.0.1:${host.address().port}/`;
    }
  });
  after(async () => {
    await browser?.close();
    server?.kill();
    host?.close();
    rmSync(folder, { recursive: true });
  });

  /** Opens a page in a fresh profile, acts on it, and asserts that it complained about nothing and asked nobody else. */
  async function open(address, act, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, ...options });
    const page = await context.newPage();
    const complaints = [];
    const own = new URL(address).origin;
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("request", (request) => {
      const url = request.url();
      if (!/^(file|data|blob|about):/.test(url) && !(own !== "null" && url.startsWith(own))) complaints.push(`asks for ${url}`);
    });
    await page.goto(address);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "1");
    await act(page);
    assert.deepEqual(complaints, []);
    await context.close();
  }

  /** Replaces the text of an editor, as a person types it. */
  async function type(page, label, text) {
    const editor = page.getByRole("textbox", { name: label, exact: true });
    await editor.click();
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Delete");
    await page.keyboard.insertText(text);
  }
  const text = (page, label) =>
    page.getByRole("textbox", { name: label, exact: true }).evaluate((element) => element.value ?? element.innerText);
  const done = (page) => page.waitForFunction(() => document.documentElement.dataset.busy === "0", null, { timeout: 120_000 });
  const run = async (page) => {
    await page.getByRole("button", { name: /^run the program/ }).click();
    await done(page);
  };
  const status = (page) => page.getByRole("status").textContent();
  const inPage = (page) => page.frameLocator("iframe.run-page");

  const ways = [
    ["from file://", FOLDER && pathToFileURL(join(FOLDER, "index.html")).href],
    ["from a static host", FOLDER && (() => hosted)],
    ["from reconverge serve", isServing && (() => served)],
  ];
  for (const [way, address] of ways) {
    const skip = !address && "not built";
    const place = () => (typeof address === "function" ? address() : address);

    it(`runs a typed program, steps, and shares it, ${way}`, { skip }, async () => {
      let link;
      await open(place(), async (page) => {
        await type(page, "Program", PROGRAM);
        await type(page, "Launch file", LAUNCH);
        await run(page);
        assert.match(await status(page), /^5 group instructions, 20 lane instructions, 0 divergent branches; /);
        assert.deepEqual(await page.locator(".results td").allTextContents(), ["0", "2", "4", "6"]);
        const where = inPage(page).locator(".where");
        await where.waitFor();
        assert.match(await where.textContent(), /step 0 at 0x0/);
        await page.keyboard.press("F10");
        await page.keyboard.press("F10");
        await page.waitForFunction(() => /step 2/.test(document.querySelector("iframe").contentDocument?.querySelector(".where")?.textContent ?? ""));
        await page.locator(".current", { hasText: "shl b32 $r0 $r0 0x2" }).waitFor();
        await page.getByRole("button", { name: /^make a link/ }).click();
        link = await page.getByRole("textbox", { name: "Link to program and launch" }).inputValue();
        assert.match(await status(page), /^5 group instructions/, "the link does not replace the results");
      });
      assert.match(link, /#1\.[\w-]+$/);
      assert.ok(link.length < 1000, link);
      await open(link, async (page) => {
        assert.equal((await text(page, "Program")).trim(), PROGRAM);
        assert.equal((await text(page, "Launch file")).trim(), LAUNCH.trim());
        // The link is opened at its step, without Run.
        const where = inPage(page).locator(".where", { hasText: "step 2" });
        await where.waitFor();
      });
    });

    // A static host differs from a folder only in the origin.
    if (way === "from a static host") continue;

    it(`offers the fix of an error, ${way}`, { skip }, async () => {
      await open(place(), async (page) => {
        await type(page, "Program", PROGRAM.replace("shl b32 $r1", "shll b32 $r1"));
        const message = page.getByRole("button", { name: /^line 6: error: / });
        await message.waitFor();
        await page.locator(".messages").getByRole("button", { name: "Replace `shll` by `shl`" }).click();
        await message.waitFor({ state: "detached" });
        assert.equal((await text(page, "Program")).trim(), PROGRAM);
      });
    });

    it(`stops an endless program, and runs the next, ${way}`, { skip }, async () => {
      await open(place(), async (page) => {
        await type(page, "Program", ENDLESS);
        await type(page, "Launch file", "block = [32]\nwatchdog = 1000000000000\n");
        await page.getByRole("button", { name: /^run the program/ }).click();
        await page.waitForTimeout(300);
        await page.getByRole("button", { name: /^end the run/ }).click();
        await done(page);
        assert.equal(await status(page), "Stopped.");
        await type(page, "Program", PROGRAM);
        await type(page, "Launch file", LAUNCH);
        await run(page);
        assert.match(await status(page), /^5 group instructions/);
      });
    });

    it(`runs every sample of its list, ${way}`, { skip }, async () => {
      await open(place(), async (page) => {
        const names = await page.locator("nav select").first().locator("option").evaluateAll((options) =>
          options.map((option) => option.value).filter(Boolean));
        assert.ok(names.length > 30, names.join(" "));
        for (const name of names) {
          await page.getByLabel("Sample").selectOption(name);
          await run(page);
          const said = await status(page);
          // An exercise starts with a program that works and wastes lanes; a sample may show a trap.
          const wanted = /^(r500|r700|tesla|grade)-/.test(name) ? /^Failed\./ : /^(Passed|Failed\. Trapped|Trapped|\d)/;
          assert.match(said, wanted, name);
        }
      });
    });
  }

  const first = ways.find(([, address]) => address)?.[1];
  const anywhere = () => (typeof first === "function" ? first() : first);
  const skip = !first && "neither a folder nor a binary with serve";

  it("says that a link is damaged or of another version", { skip }, async () => {
    for (const [hash, message] of [["#1.eJxLTEoG", /damaged/], ["#1.%%", /damaged/], ["#1.", /damaged/], ["#7.eJxL", /version 7.*: a newer page/], ["#0.eJxL", /version 0[^:]*\.$/]]) {
      await open(anywhere() + hash, async (page) => {
        assert.match(await page.locator(".alert").textContent(), message);
        await page.getByRole("textbox", { name: "Program", exact: true }).waitFor();
      });
    }
  });

  const linkOf = (program) => `#1.${deflateSync(Buffer.from(JSON.stringify(program))).toString("base64url")}`;

  it("refuses a short link that contains very much", { skip }, async () => {
    const link = linkOf({ title: "much", source: " ".repeat(1 << 26), launch: "" });
    await open(anywhere() + link, async (page) => {
      assert.match(await page.locator(".alert").textContent(), /more than 4 MiB/);
    });
  });

  it("leaves a long run of a link to the reader", { skip }, async () => {
    const launch = "block = [32]\nwatchdog = 1000000000000\n";
    await open(anywhere() + linkOf({ title: "without end", source: ENDLESS, launch, place: "#step=7&lane=0" }), async (page) => {
      await page.getByRole("status").filter({ hasText: "Run starts it again. The link shows step 7." }).waitFor();
      assert.equal(await page.getByLabel("Sample").evaluate((list) => list.selectedOptions[0].text), "without end");
    });
  });

  it("shows a hint until a program has run, and then its results", { skip }, async () => {
    await open(anywhere(), async (page) => {
      await page.locator(".hint", { hasText: "F10 steps" }).waitFor();
      await run(page);
      await page.locator(".hint").waitFor({ state: "hidden" });
      const place = await page.getByRole("status").boundingBox();
      assert.ok(place.y >= 0 && place.y < 844, `${place.y}`);
    }, { viewport: { width: 390, height: 844 } });
  });

  it("names the line of a launch that is wrong", { skip }, async () => {
    await open(anywhere(), async (page) => {
      await type(page, "Program", PROGRAM);
      await type(page, "Launch file", LAUNCH + "blcok = 3\n");
      await page.locator(".launch-message", { hasText: "line 3: unknown key `blcok`: did you mean `block`?" }).waitFor();
      await run(page);
      assert.match(await page.locator(".launch-message").textContent(), /^line 3: unknown key/);
      assert.equal(await status(page), "Not run.");
    });
  });

  it("states machine and chip, and solves an exercise", { skip }, async () => {
    await open(anywhere(), async (page) => {
      await page.getByLabel("Sample").selectOption("r700-select");
      await page.waitForFunction(() => document.querySelectorAll("nav select")[1].value === "r700");
      await type(page, "Program", readFileSync(join(ROOT, "docs/exercises/solutions/r700-select.s"), "utf8"));
      await run(page);
      assert.match(await status(page), /^Passed/);
      await page.waitForTimeout(600);
      await page.getByLabel("Chip").selectOption("rv610");
      assert.match(await text(page, "Launch file"), /^isa = "r700"\nchip = "rv610"/m);
    });
  });

  it("shows where a program traps", { skip }, async () => {
    await open(anywhere(), async (page) => {
      await type(page, "Program", PROGRAM);
      await type(page, "Launch file", LAUNCH.replace("[4]", "[8]"));
      await run(page);
      assert.match(await status(page), /^Trapped; \d+\.\d\d s\.$/);
      await page.locator(".results .trap", { hasText: "trap at 0x20" }).waitFor();
      await page.locator(".current", { hasText: "exit st" }).first().waitFor();
    });
  });

  for (const [width, colorScheme] of [[390, "light"], [390, "dark"], [1366, "dark"]]) {
    it(`fits into ${width} pixels, ${colorScheme}`, { skip }, async () => {
      await open(anywhere(), async (page) => {
        await run(page);
        await inPage(page).locator(".where").waitFor();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${wide} pixels`);
        const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(paper === "rgb(255, 255, 255)", colorScheme === "light");
      }, { viewport: { width, height: 844 }, colorScheme });
    });
  }

  it("is used with the keyboard alone", { skip }, async () => {
    await open(anywhere(), async (page) => {
      await page.getByRole("textbox", { name: "Program", exact: true }).focus();
      await page.keyboard.press("Control+Enter");
      await done(page);
      assert.match(await status(page), /^Passed/);
      // The editor keeps no one: Tab leaves it.
      await page.keyboard.press("Tab");
      const label = await page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
      assert.notEqual(label, "Program");
      const unnamed = await page.locator("button, input:not([hidden]), select, textarea, iframe").evaluateAll((elements) =>
        elements.filter((element) => !(element.getAttribute("aria-label") || element.title || element.textContent.trim() || element.labels?.length)).map((element) => element.outerHTML));
      assert.deepEqual(unnamed, []);
    });
  });

  it("gives the goldens of bench in the browser", { skip: !FOLDER && "PLAYGROUND names no folder" }, async () => {
    await open(ways[0][1], async (page) => {
      for (const [isa, kernel] of GOLDENS) {
        const [reply, seconds] = await page.evaluate(async (request) => {
          const start = performance.now();
          const reply = await globalThis.RECONVERGE_ASK(request);
          return [reply, (performance.now() - start) / 1000];
        }, { request: "kernel", isa, kernel, lanes: LANES });
        console.log(`${kernel} on ${isa}, 2^20 lanes: ${seconds.toFixed(2)} s`);
        assert.deepEqual([reply.hash, reply.full], [reply.golden, true]);
      }
    });
  });
});
