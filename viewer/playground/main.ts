// The playground: a program, its launch, the results, and the page of the run.

import report from "../../crates/cli/assets/report.html?raw";
import { button, make } from "../src/dom";
import { outcome } from "../src/outcome";
import type { PackedRun } from "../src/data";
import "../src/style.css";
import "./playground.css";
import { EngineError, engines, Stopped, type Engine, type SourcePlace } from "./engine";
import { linked, linkTo, type LinkedLaunch } from "./link";
import { markdown } from "./markdown";
import { plainEditor } from "./plain";
import { SAMPLES, type Sample } from "./samples";
import type { Hovered, Mark, Proposal, TextEditor } from "./text-editor";
import { launchTokens, programTokens } from "./tokens";

interface Described {
  engine: "wasm" | "native";
  machines: { isa: string; chips: string[] }[];
}

interface Diagnosed {
  isa: string;
  chip: string | null;
  source: SourcePlace[];
  launch: SourcePlace[];
}

interface Ran {
  isa: string;
  chip: string | null;
  outcome: PackedRun["outcome"];
  group_instructions: number;
  lane_instructions: number;
  divergent_branches: number;
  held: string[];
  passed: boolean | null;
  trap: { message: string; line: number | null; details: string[]; endless: boolean } | null;
  short: boolean;
}

/** A message from the page of a run: the place in it, and the line of the source with the next instruction. */
interface Moved {
  place?: string;
  line?: number;
}

/** Characters of a link beyond which some programs shorten it. */
const LONG_LINK = 8_000;
/** Pause between a change of the text and its check, in milliseconds. */
const PAUSE = 250;
/** Longest run of a program that a link opens, in milliseconds. */
const OPENING = 3_000;
const HINT = "Choose a sample or write a program. Run shows its results here, and the page of the run below; F10 steps through it.";
const DRAFT = "reconverge-playground";
const FIRST = "nested-if.tesla";

const count = (number: number, what: string) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

declare global {
  /** Sends a request to the engine of runs; for the console of a browser, and for tests. */
  var RECONVERGE_ASK: ((request: object) => Promise<unknown>) | undefined;
}

/** A message in one line. */
const inLine = (message: string) => message.replace(/\n/g, "; ");

const mark = (place: SourcePlace): Mark => ({ ...place, fixes: place.fixes ?? [] });

/** Calls a function after a pause in which it was not called again. */
function afterwards(act: () => void): () => void {
  let waiting = 0;
  return () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(act, PAUSE);
  };
}

function labelled<T extends HTMLElement>(text: string, element: T): HTMLLabelElement {
  const label = make("label", "", `${text} `);
  label.append(element);
  return label;
}

function option(value: string, text = value): HTMLOptionElement {
  const element = make("option", "", text);
  element.value = value;
  return element;
}

function region(name: string, title: string, ...content: (HTMLElement | string)[]): HTMLElement {
  const section = make("section", name);
  section.setAttribute("aria-label", title);
  section.append(...content);
  return section;
}

function save(name: string, text: string, type: string): void {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

class Playground {
  private title = "program";
  /** The texts as they were opened. A different text is a draft. */
  private opened = { source: "", launch: "" };
  private place = "";
  private pageText = "";
  private isBusy = false;
  /** Resolves when the engine of runs is free. */
  private free: Promise<void> = Promise.resolve();
  private described: Described | null = null;
  private known: { isa: string | null; chip: string | null } = { isa: null, chip: null };

  private readonly source: TextEditor;
  private readonly launch: TextEditor;
  private readonly samples = make("select");
  private readonly own = option("", "own program");
  private readonly machine = make("select");
  private readonly chip = make("select");
  private readonly run = button("Run", "run the program (Ctrl Enter)", () => {
    // On a narrow page the results are below the program.
    void this.execute().then(() => {
      if (window.matchMedia("(max-width: 60em)").matches) this.resultsHead.scrollIntoView();
    });
  });
  private readonly stop = button("Stop", "end the run (Escape)", () => this.engine.stop());
  private readonly status = make("p", "status");
  private readonly alert = make("p", "trap alert");
  private readonly task = make("div", "task");
  private readonly messages = make("ul", "messages");
  private readonly launchMessage = make("p", "trap launch-message");
  private readonly about = make("div", "about");
  private readonly results = make("div", "results");
  private readonly hint = make("p", "hint", HINT);
  private readonly link = make("input", "link");
  private readonly shared = make("p", "note shared");
  private readonly frame = make("iframe", "run-page");
  private readonly resultsHead = make("h2", "", "Results");
  private readonly page = region("page", "Page of the run");

  constructor(
    app: HTMLElement,
    private readonly language: Engine,
    private readonly engine: Engine,
  ) {
    const editor = globalThis.RECONVERGE_EDITOR ?? plainEditor;
    const look = afterwards(() => void this.diagnose());
    const explain = afterwards(() => void this.explain());
    this.source = editor({
      label: "Program",
      tokens: programTokens,
      changed: look,
      moved: (line) => {
        this.line = line;
        explain();
      },
      complete: async (at) => (await this.asked<Proposal[]>({ request: "complete", at })) ?? [],
      hover: (at) => this.asked<Hovered>({ request: "hover", at }),
    });
    this.launch = editor({ label: "Launch file", tokens: launchTokens, changed: look });
    app.append(this.bar(), this.alert, this.columns(), this.page);
    this.page.hidden = true;
    this.alert.setAttribute("role", "alert");
    this.status.setAttribute("role", "status");
    this.stop.disabled = true;
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("message", ({ source, data }: MessageEvent<Moved>) => {
      if (source !== this.frame.contentWindow || typeof data.place !== "string") return;
      this.place = data.place;
      this.source.current(data.line ?? 0);
    });
    window.addEventListener("hashchange", () => void this.fromAddress());
    window.addEventListener("beforeunload", () => this.keep());
  }

  private line = 1;
  /** Whether the alert says that the texts were not checked. */
  private isUnchecked = false;

  async start(): Promise<void> {
    this.described = await this.language.ask<Described>({ request: "describe" });
    this.machine.append(option("", "as stated"), ...this.described.machines.map(({ isa }) => option(isa)));
    if (!(await this.fromAddress())) this.fromDraft();
    document.documentElement.dataset["ready"] = "1";
  }

  private bar(): HTMLElement {
    const bar = make("nav");
    bar.setAttribute("aria-label", "Playground");
    for (const kind of new Set(SAMPLES.map((sample) => sample.kind))) {
      const group = make("optgroup");
      group.label = kind;
      group.append(...SAMPLES.filter((sample) => sample.kind === kind).map(({ name }) => option(name)));
      this.samples.append(group);
    }
    this.samples.prepend(this.own);
    this.samples.addEventListener("change", () => this.choose());
    this.machine.addEventListener("change", () => this.state("isa", this.machine.value));
    this.chip.addEventListener("change", () => this.state("chip", this.chip.value));
    const file = make("input");
    file.type = "file";
    file.hidden = true;
    file.addEventListener("change", () => void this.openFile(file));
    bar.append(
      make("h1", "", "Reconverge"),
      labelled("Sample", this.samples),
      labelled("Machine", this.machine),
      labelled("Chip", this.chip),
      this.run,
      this.stop,
      button("Share", "make a link that contains program and launch", () => void this.share()),
      button("Open…", "open a program (.s, or a file with machine code) or a launch file (.toml)", () => file.click()),
      file,
      button("◐", "light, dark", () => this.toggleTheme()),
    );
    this.run.className = "primary";
    return bar;
  }

  private columns(): HTMLElement {
    const columns = make("main", "playground");
    const save_ = (what: string, text: () => string, ending: string) =>
      button(`save ${ending}`, `save ${what} as a file`, () => save(`${this.title}${ending}`, text(), "text/plain"));
    const head = (title: string, ...more: HTMLElement[]) => {
      const heading = make("h2", "", title);
      heading.append(...more);
      return heading;
    };
    this.messages.setAttribute("aria-label", "Errors and warnings");
    this.link.readOnly = true;
    this.link.hidden = true;
    this.link.setAttribute("aria-label", "Link to program and launch");
    this.launchMessage.setAttribute("role", "alert");
    this.about.setAttribute("aria-live", "polite");
    this.shared.setAttribute("aria-live", "polite");
    columns.append(
      region(
        "program",
        "Program",
        head("Program", save_("the program", () => this.source.text, ".s")),
        this.task,
        this.source.element,
        this.messages,
        this.about,
      ),
      region(
        "launch",
        "Launch and results",
        head("Launch", save_("the launch", () => this.launchFile(), ".toml")),
        this.launch.element,
        this.launchMessage,
        this.resultsHead,
        this.hint,
        this.shared,
        this.link,
        this.status,
        this.results,
      ),
    );
    return columns;
  }

  /** The launch as a file that names the program's file. */
  private launchFile(): string {
    const program = `program = "${this.title}.s"\n`;
    return /^isa = .*\n/m.test(this.launch.text)
      ? this.launch.text.replace(/^isa = .*\n/m, (line) => line + program)
      : program + this.launch.text;
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void this.execute();
    } else if (event.key === "Escape" && this.isBusy) {
      this.engine.stop();
    } else if (event.key === "F10" || event.key === "F9") {
      event.preventDefault();
      const key = event.key === "F10" ? "ArrowRight" : "ArrowLeft";
      this.frame.contentWindow?.postMessage({ key }, "*");
    }
  }

  private toggleTheme(): void {
    const root = document.documentElement;
    const isDark = getComputedStyle(root).getPropertyValue("--dark").trim() === "1";
    root.dataset["theme"] = isDark ? "light" : "dark";
    this.frame.contentWindow?.postMessage({ theme: root.dataset["theme"] }, "*");
  }

  private open(title: string, source: string, launch: string): void {
    this.title = title;
    this.opened = { source, launch };
    this.place = "";
    this.source.text = source;
    this.launch.text = launch;
    const isSample = SAMPLES.some(({ name }) => name === title);
    this.own.textContent = isSample || title === "program" ? "own program" : title;
    this.samples.value = isSample ? title : "";
    document.title = `${title} – Reconverge playground`;
    this.task.replaceChildren();
    this.results.replaceChildren();
    this.launchMessage.textContent = "";
    this.say("");
    this.hint.hidden = false;
    this.hideLink();
    this.hidePage();
    const sample = SAMPLES.find(({ name }) => name === title);
    if (!sample) return;
    this.task.append(make("p", "", sample.about), ...sample.task.map((text) => make("p", "", text)));
  }

  private openSample(sample: Sample): void {
    this.open(sample.name, sample.source, sample.launch);
  }

  private choose(): void {
    const sample = SAMPLES.find(({ name }) => name === this.samples.value);
    if (!sample || (this.isChanged() && !window.confirm("The sample replaces the program and the launch, which have changes."))) {
      this.samples.value = SAMPLES.some(({ name }) => name === this.title) ? this.title : "";
      return;
    }
    this.openSample(sample);
    this.leaveLink();
  }

  private isChanged(): boolean {
    return this.source.text !== this.opened.source || this.launch.text !== this.opened.launch;
  }

  /** Removes the program from the address, because the page shows another one. */
  private leaveLink(): void {
    this.hideLink();
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  }

  /** Opens the program of the address; false if it has none, or a damaged one. */
  private async fromAddress(): Promise<boolean> {
    try {
      const found = await linked(location.hash);
      this.alert.textContent = "";
      if (!found) return false;
      this.open(found.title, found.source, found.launch);
      this.place = found.place ?? "";
      void this.executeLinked();
      return true;
    } catch (error) {
      this.alert.textContent = (error as Error).message;
      return false;
    }
  }

  /** Opens the draft of the last visit, or the first sample. */
  private fromDraft(): void {
    try {
      const draft = JSON.parse(localStorage.getItem(DRAFT) ?? "null") as LinkedLaunch | null;
      if (draft) return this.open(draft.title, draft.source, draft.launch);
    } catch {
      // A browser can refuse to store data for the page. Then a draft does not exist.
    }
    this.openSample(SAMPLES.find(({ name }) => name === FIRST) ?? SAMPLES[0]!);
  }

  private keep(): void {
    try {
      const { title, source, launch } = this;
      localStorage.setItem(DRAFT, JSON.stringify({ title, source: source.text, launch: launch.text }));
    } catch {
      // As above.
    }
  }

  /** Sets a field of the launch. An empty value removes the field. */
  private state(field: string, value: string): void {
    const line = new RegExp(`^${field} *=.*\\n?`, "m");
    const text = this.launch.text;
    const stated = value ? `${field} = "${value}"\n` : "";
    if (line.test(text)) {
      this.launch.text = text.replace(line, stated);
    } else {
      // The chip after the machine.
      const at = field === "chip" ? (/^isa *=.*\n/m.exec(text)?.[0].length ?? 0) + Math.max(0, text.search(/^isa *=/m)) : 0;
      this.launch.text = text.slice(0, at) + stated + text.slice(at);
    }
  }

  private async openFile(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    this.alert.textContent = "";
    const name = file.name.replace(/\.\w+$/, "");
    if (/\.toml$/.test(file.name)) {
      this.launch.text = (await file.text()).replace(/^program *=.*\n/m, "");
    } else if (/\.(s|asm|vsh|psh)$/.test(file.name)) {
      this.open(name, await file.text(), this.launch.text);
    } else {
      const bytes = new Uint8Array(await file.arrayBuffer());
      let letters = "";
      for (const byte of bytes) letters += String.fromCharCode(byte);
      try {
        const isa = this.machine.value || null;
        const chip = this.chip.value || null;
        const { text } = await this.language.ask<{ text: string }>({ request: "disassemble", base64: btoa(letters), isa, chip });
        this.open(name, text, this.launch.text);
      } catch (error) {
        this.alert.textContent = `${file.name}: ${(error as Error).message}`;
      }
    }
  }

  /** Returns the reply to a request about the texts, or null without a reply. */
  private async asked<T>(request: object): Promise<T | null> {
    try {
      return await this.language.ask<T>({ source: this.source.text, launch: this.launch.text, ...request });
    } catch (error) {
      if (error instanceof EngineError && error.of === "engine") {
        this.alert.textContent = error.message;
        this.isUnchecked = true;
      }
      return null;
    }
  }

  private async diagnose(): Promise<void> {
    const text = this.source.text;
    if (this.isChanged()) this.leaveLink();
    const found = await this.asked<Diagnosed>({ request: "diagnose" });
    if (!found || text !== this.source.text) return;
    if (this.isUnchecked) this.alert.textContent = "";
    this.isUnchecked = false;
    this.show(found.source);
    this.launch.mark(found.launch.map(mark));
    this.showLaunch(found.launch[0]);
    const { isa, chip } = found;
    if (isa !== this.known.isa || chip !== this.known.chip) {
      this.known = { isa, chip };
      const chips = this.described!.machines.find((machine) => machine.isa === isa)?.chips ?? [];
      this.chip.replaceChildren(option("", "as stated"), ...chips.map((name) => option(name)));
    }
    this.machine.value = isa ?? "";
    const stated = /^chip *= *"([^"]*)"/m.exec(this.launch.text)?.[1] ?? chip ?? "";
    const same = [...this.chip.options].find(({ value }) => value.toLowerCase() === stated.toLowerCase());
    this.chip.value = same?.value ?? "";
    document.documentElement.dataset["diagnosed"] = String(Number(document.documentElement.dataset["diagnosed"] ?? 0) + 1);
  }

  private show(places: SourcePlace[]): void {
    this.source.mark(places.map(mark));
    const entries = places.map((place) => {
      const entry = make("li", place.severity);
      const text = `line ${place.line}: ${place.severity}: ${inLine(place.message)}`;
      const go = button(text, `go to line ${place.line}`, () => this.source.goTo(place.from));
      // The text is more specific than the title.
      go.removeAttribute("aria-label");
      entry.append(go);
      for (const fix of place.fixes ?? []) {
        entry.append(button(fix.title, fix.title, () => this.source.change(fix)));
      }
      return entry;
    });
    this.messages.replaceChildren(...entries);
  }

  private showLaunch(place: { line?: number; message: string } | undefined): void {
    this.launchMessage.textContent = place ? `${place.line ? `line ${place.line}: ` : ""}${inLine(place.message)}` : "";
  }

  /** Explains the instruction of the cursor's line. */
  private async explain(): Promise<void> {
    const lines = this.source.text.split("\n");
    const code = (lines[this.line - 1] ?? "").replace(/;.*/, "");
    const at = lines.slice(0, this.line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const first = code.search(/\S/);
    const found = first < 0 ? null : await this.asked<Hovered>({ request: "hover", at: at + first });
    this.about.replaceChildren(...(found ? markdown(found.markdown) : []));
  }

  private say(text: string): void {
    this.status.className = "status";
    this.status.textContent = text;
  }

  private busy(isBusy: boolean): void {
    this.isBusy = isBusy;
    this.run.disabled = isBusy;
    this.stop.disabled = !isBusy;
    document.documentElement.dataset["busy"] = isBusy ? "1" : "0";
  }

  /** Does something with the engine, and shows what it fails with. */
  private working(act: () => Promise<void>): Promise<void> {
    if (!this.isBusy) this.free = this.worked(act);
    return this.free;
  }

  private async worked(act: () => Promise<void>): Promise<void> {
    this.busy(true);
    this.alert.textContent = "";
    this.launchMessage.textContent = "";
    try {
      await act();
    } catch (error) {
      this.fail(error);
    } finally {
      this.busy(false);
    }
  }

  private fail(error: unknown): void {
    if (error instanceof Stopped) return this.say("Stopped.");
    this.say("Not run.");
    if (!(error instanceof EngineError)) throw error;
    if (error.of === "source") {
      // The page already shows the messages about the source, with their fixes.
      this.say(`Not run: ${error.message}`);
    } else if (error.of === "launch") {
      this.showLaunch(error);
    } else {
      this.say(`Not run: ${error.message.trim()}`);
    }
  }

  private hideLink(): void {
    this.shared.textContent = "";
    this.link.hidden = true;
  }

  private hidePage(): void {
    this.page.hidden = true;
    // Without a page of a run, the editors have its place.
    delete document.documentElement.dataset["recorded"];
  }

  /** Runs the program of a link, which shows its step. A long run is left to the reader. */
  private async executeLinked(): Promise<void> {
    // The run of another program ends first.
    if (this.isBusy) this.engine.stop();
    await this.free;
    let isLong = false;
    const bound = window.setTimeout(() => {
      isLong = true;
      this.engine.stop();
    }, OPENING);
    await this.execute(() => window.clearTimeout(bound));
    window.clearTimeout(bound);
    const step = /step=(\d+)/.exec(this.place)?.[1];
    const at = step ? ` The link shows step ${step}.` : "";
    if (isLong) this.say(`The program of the link runs for more than ${OPENING / 1_000} seconds: Run starts it again.${at}`);
  }

  /** Runs the program. `hasRun` is called before the run is recorded. */
  private execute(hasRun: () => void = () => {}): Promise<void> {
    return this.working(async () => {
      this.say("Running…");
      this.hint.hidden = true;
      this.hideLink();
      this.results.replaceChildren();
      this.page.hidden = true;
      this.source.current(0);
      const texts = { source: this.source.text, launch: this.launch.text };
      const start = performance.now();
      const ran = await this.engine.ask<Ran>({ request: "run", ...texts });
      hasRun();
      this.showResults(ran, (performance.now() - start) / 1_000);
      const record = () => this.record(texts);
      if (ran.short) return record();
      const first = button("record the first steps", "show the page of the run", () => void this.working(record));
      first.removeAttribute("aria-label");
      this.results.append(make("p", "note", "The page of a long run shows its first 50,000 steps, and counts all of them. "), first);
    });
  }

  private showResults(ran: Ran, seconds: number): void {
    const counts = [
      count(ran.group_instructions, "group instruction"),
      count(ran.lane_instructions, "lane instruction"),
      `${ran.divergent_branches.toLocaleString("en")} divergent branch${ran.divergent_branches === 1 ? "" : "es"}`,
    ];
    const verdict = ran.passed === null ? "" : ran.passed ? "Passed: all is as the launch expects. " : "Failed. ";
    this.say(`${verdict}${ran.trap ? "Trapped" : counts.join(", ")}; ${seconds.toFixed(2)} s.`);
    this.status.className = ran.passed === null ? "status" : `status ${ran.passed ? "passed" : "failed"}`;
    const { trap } = ran;
    if (trap) {
      const text = make("p", "trap", trap.endless ? `endless: ${trap.message}` : trap.message);
      this.results.append(text, ...trap.details.map((line) => make("p", "note", line)));
      if (trap.line) this.source.current(trap.line);
    }
    this.results.append(outcome({ outcome: ran.outcome, notes: [] }, () => {}));
    for (const details of this.results.querySelectorAll("details")) details.open = details.querySelector("table") !== null;
    for (const text of ran.held) this.results.append(make("p", "held", text));
  }

  private async record(texts: { source: string; launch: string }): Promise<void> {
    const run = await this.engine.ask<PackedRun>({ request: "record", title: this.title, ...texts });
    // `<` could end the script. JSON allows this spelling.
    const data = JSON.stringify([run]).replaceAll("<", "\\u003c");
    const empty = '<script id="runs" type="application/json">[]</script>';
    const parts = report.split(empty);
    this.pageText = `${parts[0]}${empty.replace("[]", () => data)}${parts[1]}`;
    const { theme } = document.documentElement.dataset;
    const root = `<html lang="en"${theme ? ` data-theme="${theme}"` : ""} data-place="${this.place.replace(/[^#\w=&,]/g, "")}">`;
    this.frame.title = "Page of the run";
    this.frame.srcdoc = this.pageText.replace('<html lang="en">', root);
    const heading = make("h2", "", "Run");
    heading.append(
      make("span", "note", "F9 and F10 step back and forth, from the editor as well; ? in the page lists its keys"),
      button("save page", "save the page of the run as a file", () => save(`${this.title}.html`, this.pageText, "text/html")),
    );
    this.page.replaceChildren(heading, this.frame);
    this.page.hidden = false;
    document.documentElement.dataset["recorded"] = "1";
  }

  private async share(): Promise<void> {
    const { title, place } = this;
    const hash = await linkTo({ title, source: this.source.text, launch: this.launch.text, ...(place ? { place } : {}) });
    this.opened = { source: this.source.text, launch: this.launch.text };
    history.replaceState(null, "", hash);
    this.link.value = location.href;
    this.link.hidden = false;
    this.link.select();
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    const long = location.href.length > LONG_LINK ? ` It has ${count(location.href.length, "character")}: some programs shorten such links.` : "";
    const step = place ? ", launch and step" : " and launch";
    this.shared.textContent = `The link has program${step}; it is in the field below${copied ? " and on the clipboard" : ""}.${long}`;
    this.link.scrollIntoView({ block: "nearest" });
  }
}

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  try {
    const { editor, runs } = await engines();
    globalThis.RECONVERGE_ASK = (request) => runs.ask(request);
    await new Playground(app, editor, runs).start();
  } catch (error) {
    app.prepend(make("p", "trap", error instanceof Error ? error.message : String(error)));
  }
}

void start();
