// The page: one pane a run, side by side where there are several.

import { unpack, type PackedRun } from "./data";
import { Pane } from "./pane";
import "./style.css";

const KEYS: [string, string][] = [
  ["← →", "step back, step"],
  ["Shift ← →", "event before, next event"],
  ["Home End", "first, last step"],
  ["+ − 0", "zoom in, out, all"],
  ["[ ]", "pan"],
  ["f F", "follow a lane: where the lane under the focus (or lane 0) runs next, ran before"],
  ["/ n", "search, next line found"],
  ["t", "light, dark"],
  ["?", "this help"],
];

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  const packed = JSON.parse(document.getElementById("runs")!.textContent ?? "[]") as PackedRun[];
  if (packed.length === 0) {
    app.textContent = "This page has no run. `reconverge run LAUNCH --html FILE` writes one that has.";
    return;
  }
  document.title = `${packed.map((run) => run.title).join(" beside ")} · Reconverge`;
  const bar = document.createElement("nav");
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "search the program ( / )";
  search.setAttribute("aria-label", "Search the program");
  const found = document.createElement("output");
  const theme = document.createElement("button");
  theme.textContent = "◐";
  theme.title = "light, dark (t)";
  const help = document.createElement("button");
  help.textContent = "?";
  help.title = "keys (?)";
  const dialog = document.createElement("dialog");
  const list = document.createElement("dl");
  for (const [keys, what] of KEYS) {
    const term = document.createElement("dt");
    term.textContent = keys;
    const text = document.createElement("dd");
    text.textContent = what;
    list.append(term, text);
  }
  dialog.append(list);
  dialog.addEventListener("click", () => dialog.close());
  bar.append(search, found, theme, help);
  app.append(bar, dialog);

  const panes: Pane[] = [];
  const row = document.createElement("main");
  row.className = packed.length > 1 ? "beside" : "";
  for (const run of packed) {
    const pane = new Pane(await unpack(run));
    panes.push(pane);
    row.append(pane.element);
  }
  app.append(row);

  let active = panes[0]!;
  for (const pane of panes) {
    const choose = () => {
      active = pane;
      for (const other of panes) other.element.classList.toggle("chosen", other === pane && panes.length > 1);
    };
    pane.element.addEventListener("pointerdown", choose);
    pane.element.addEventListener("focusin", choose);
  }
  const toggleTheme = () => {
    const root = document.documentElement;
    const dark = getComputedStyle(root).getPropertyValue("--dark").trim() === "1";
    root.dataset["theme"] = dark ? "light" : "dark";
    for (const pane of panes) pane.timeline.redraw();
  };
  theme.addEventListener("click", toggleTheme);
  help.addEventListener("click", () => dialog.showModal());
  search.addEventListener("input", () => {
    const counts = panes.map((pane) => pane.search(search.value));
    found.textContent = search.value ? `${counts.join(" and ")} found` : "";
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") active.nextFound();
    if (event.key === "Escape") search.blur();
    event.stopPropagation();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLSelectElement) return;
    const focus = document.activeElement;
    const lane = focus instanceof HTMLElement ? Number(focus.dataset["lane"] ?? 0) : 0;
    const pan = () => active.timeline.view.scale * 200;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => (event.shiftKey ? active.nextEvent(-1) : active.move(-1)),
      ArrowRight: () => (event.shiftKey ? active.nextEvent(1) : active.move(1)),
      Home: () => active.move(-Infinity),
      End: () => active.move(Infinity),
      "+": () => active.timeline.zoom(0.625),
      "=": () => active.timeline.zoom(0.625),
      "-": () => active.timeline.zoom(1.6),
      "0": () => active.timeline.fit(),
      "[": () => active.timeline.pan(-pan()),
      "]": () => active.timeline.pan(pan()),
      f: () => active.follow(lane, 1),
      F: () => active.follow(lane, -1),
      "/": () => search.focus(),
      n: () => active.nextFound(),
      t: toggleTheme,
      "?": () => dialog.showModal(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  // `#step=120` in the address: this step of the chosen report.
  const fromAddress = () => {
    const step = /(?:^#|&)step=(\d+)/.exec(location.hash)?.[1];
    if (step !== undefined) active.go(Math.min(Number(step), active.run.stepCount - 1));
  };
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
  document.documentElement.dataset["ready"] = "1";
}

start().catch((error: unknown) => {
  const message = document.createElement("p");
  message.className = "trap";
  message.textContent = `The page's data cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  document.getElementById("app")!.append(message);
});
