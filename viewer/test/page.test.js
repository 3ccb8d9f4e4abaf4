// The page in headless Chromium: `PAGES=FOLDER npm test`. The folder has pages that `reconverge` wrote.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = process.env.PAGES;
const pages = folder ? readdirSync(folder).filter((name) => name.endsWith(".html")) : [];
assert.ok(pages.length > 0, "PAGES names a folder with pages");

/** Milliseconds in which a page must be ready. */
const READY = 2000;

describe("the report page", () => {
  let browser;
  before(async () => {
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
  });
  after(() => browser?.close());

  /** Opens a page; gives it with what it complained about. */
  async function open(name, options = {}) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 }, ...options });
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("request", (request) => {
      if (!/^(file|data|blob):/.test(request.url())) complaints.push(`asks for ${request.url()}`);
    });
    const start = performance.now();
    await page.goto(pathToFileURL(resolve(folder, name)).href);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "1");
    return { page, complaints, took: performance.now() - start };
  }

  const step = async (page) => Number(/step (\d+)/.exec(await page.textContent(".where"))[1]);

  for (const name of pages) {
    describe(name, () => {
      it("is ready at once, asks for nothing and complains about nothing", async () => {
        const { page, complaints, took } = await open(name);
        assert.deepEqual(complaints, []);
        assert.ok(took < READY, `${took} ms`);
        await page.close();
      });

      it("steps with the keyboard, forward and back, and to both ends", async () => {
        const { page } = await open(name);
        const first = await step(page);
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("ArrowRight");
        assert.equal(await step(page), first + 2);
        await page.keyboard.press("ArrowLeft");
        assert.equal(await step(page), first + 1);
        await page.keyboard.press("End");
        const last = await step(page);
        assert.ok(last > first + 2);
        await page.keyboard.press("Home");
        assert.equal(await step(page), first);
        await page.close();
      });

      it("shows registers at a step as they were when the step was first reached", async () => {
        const { page } = await open(name);
        for (let count = 0; count < 30; count++) await page.keyboard.press("ArrowRight");
        const before = await page.textContent(".values");
        await page.keyboard.press("End");
        for (let count = 0; count < 5; count++) await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("Home");
        for (let count = 0; count < 30; count++) await page.keyboard.press("ArrowRight");
        assert.equal(await page.textContent(".values"), before);
        await page.close();
      });

      it("finds lines of the program", async () => {
        const { page } = await open(name);
        const word = (await page.textContent(".row[data-line='1'] .code")).trim().split(" ")[0];
        await page.keyboard.press("/");
        await page.keyboard.type(word);
        assert.match(await page.textContent("nav output"), /^[1-9]\d* found$/);
        assert.ok((await page.locator(".row.found").count()) > 0);
        await page.close();
      });

      it("zooms and pans, and stays inside the run", async () => {
        const { page } = await open(name);
        const canvas = page.locator(".timeline");
        const box = await canvas.boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        for (let count = 0; count < 30; count++) await page.mouse.wheel(0, -100);
        for (let count = 0; count < 5; count++) await page.keyboard.press("]");
        for (let count = 0; count < 30; count++) await page.keyboard.press("-");
        await page.mouse.click(box.x + box.width - 2, box.y + box.height / 2);
        const picked = await step(page);
        await page.keyboard.press("End");
        const last = await step(page);
        assert.ok(picked <= last && picked > last * 0.9, `${picked} of ${last}`);
        await page.close();
      });

      it("says for every lane why it runs or does not, and follows one", async () => {
        const { page } = await open(name);
        const lanes = page.locator(".lane");
        assert.ok((await lanes.count()) > 0);
        for (const text of await lanes.allTextContents()) assert.match(text, /^\d+ \S+/);
        await page.keyboard.press("Shift+ArrowRight");
        await page.keyboard.press("f");
        assert.match(await lanes.first().textContent(), /^0 active$/);
        await page.close();
      });

      it("has a light and a dark face", async () => {
        const { page } = await open(name, { colorScheme: "dark" });
        const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const dark = await paper();
        await page.keyboard.press("t");
        assert.notEqual(await paper(), dark);
        await page.close();
      });
    });
  }
});
