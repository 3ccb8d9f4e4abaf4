// The page: one pane for each run, side by side if there are several.

import { EVENTS, STATES, unpack, type PackedRun } from "./data";
import { button, make } from "./dom";
import { linked, linkTo } from "./link";
import { Pane } from "./pane";
import { Player } from "./player";
import "./style.css";
import { swatch } from "./surface";

const KEYS: [string, string][] = [
  ["← →", "step back, step"],
  ["Shift ← →", "event before, next event: where lanes diverge, resume, reconverge or trap"],
  ["Home End", "first, last step"],
  ["Space p", "play, pause"],
  ["< >", "play slower, faster"],
  ["↑ ↓", "choose a lane"],
  ["f F", "follow the chosen lane: where it runs next, ran before"],
  ["+ − 0", "zoom in, out, all; the wheel zooms, dragging pans"],
  ["[ ]", "pan"],
  ["PageUp PageDown", "group before, next group"],
  ["/ n", "search, next line found"],
  ["s", "the source's own lines, or the listing"],
  ["t", "light, dark"],
  ["?", "this help"],
];
const BESIDE: [string, string][] = [
  ["1 2 3", "choose a report"],
  ["l", "steps, events and lanes move all reports, or only the chosen one"],
];

/** The legend: the states of a lane with their patterns, the events, and the colour of written registers. */
function legend(element: HTMLElement): void {
  element.replaceChildren();
  STATES.forEach((state, number) => {
    const entry = make("span");
    entry.append(swatch(number, isDark()), make("b", "", state.letter), ` ${state.name}`);
    element.append(entry);
  });
  for (const { name, mark, means, light, dark } of EVENTS) {
    const entry = make("span");
    entry.title = means;
    const picture = make("b", "", mark);
    picture.style.color = isDark() ? dark : light;
    entry.append(picture, ` ${name}`);
    element.append(entry);
  }
  const written = make("span");
  written.title = "a yellow register cell: the value before the step, and the value that the step writes";
  written.append(make("i", "swatch yellow"), "written in this step");
  element.append(written);
}

function isDark(): boolean {
  return getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
}

/** Whether another page, such as the playground, shows this page in a frame. The other page then has the address and receives the positions. */
const isEmbedded = window.parent !== window;

/** A message from the page that shows this page in a frame. */
interface Sent {
  /** A key that the user pressed in the other page. */
  key?: string;
  theme?: "light" | "dark";
}

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  const packed = JSON.parse(document.getElementById("runs")!.textContent ?? "[]") as PackedRun[];
  if (packed.length === 0) {
    app.textContent = "This page has no run. `reconverge run LAUNCH --html FILE` writes one that has.";
    return;
  }
  document.title = `${packed.map((run) => run.title).join(" beside ")} · Reconverge`;
  const bar = make("nav");
  const search = make("input");
  search.type = "search";
  search.placeholder = "search the program ( / )";
  search.setAttribute("aria-label", "Search the program");
  const found = make("output");
  const dialog = make("dialog");
  dialog.setAttribute("aria-label", "Keys");
  const list = make("dl");
  for (const [keys, what] of packed.length > 1 ? [...BESIDE, ...KEYS] : KEYS) {
    list.append(make("dt", "", keys), make("dd", "", what));
  }
  const note = make("p", "note", "The address of the page names the step and the lane: a copy of it opens there.");
  dialog.append(list, note, button("close", "close (Escape)", () => dialog.close()));

  const panes = await Promise.all(packed.map(async (run) => new Pane(await unpack(run))));
  let active = panes[0]!;
  let together = panes.length > 1;
  const choose = (pane: Pane | undefined) => {
    if (!pane) return;
    active = pane;
    for (const other of panes) other.element.classList.toggle("chosen", other === pane && panes.length > 1);
    remember();
  };
  /** Applies the action of a key to all panes, or to the chosen one. */
  const moved = (act: (pane: Pane) => void) => (together ? panes : [active]).forEach(act);
  const link = button("in step", "steps, events and lanes move all reports, or only the chosen one (l)", () => {
    together = !together;
    link.setAttribute("aria-pressed", String(together));
  });
  link.setAttribute("aria-pressed", String(together));
  const states = make("div", "legend");
  const recolour = () => {
    legend(states);
    for (const pane of panes) pane.timeline.draw();
  };
  const setTheme = (theme: string) => {
    document.documentElement.dataset["theme"] = theme;
    recolour();
  };
  const toggleTheme = () => setTheme(isDark() ? "light" : "dark");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  // The page is printed in the light theme.
  const print = () => {
    legend(states);
    for (const pane of panes) pane.timeline.paint();
  };
  matchMedia("print").addEventListener("change", print);
  window.addEventListener("beforeprint", print);
  recolour();
  const player = new Player(() => {
    let more = false;
    moved((pane) => void (more = pane.move(1) || more));
    return more;
  });
  const move = (by: number) => () => moved((pane) => pane.move(by));
  const event = (by: 1 | -1) => () => moved((pane) => pane.nextEvent(by));
  const steps = make("span", "transport");
  steps.append(
    button("|◀", "first step (Home)", move(-Infinity)),
    button("◀", "step back (left)", move(-1)),
    player.button,
    button("▶", "step (right)", move(1)),
    button("▶|", "last step (End)", move(Infinity)),
    button("◀ event", "event before (Shift left)", event(-1)),
    button("event ▶", "next event (Shift right)", event(1)),
    player.speed,
  );
  bar.append(steps);
  if (panes.length > 1) bar.append(link);
  bar.append(search, found, button("◐", "light, dark (t)", toggleTheme), button("?", "keys (?)", () => dialog.showModal()), states);
  const row = make("main");
  row.style.setProperty("--panes", String(panes.length));
  if (panes.length > 1) row.className = "beside";
  row.append(...panes.map((pane) => pane.element));
  app.append(bar, dialog, row);
  for (const pane of panes) {
    pane.element.addEventListener("pointerdown", () => choose(pane));
    pane.element.addEventListener("focusin", () => choose(pane));
    pane.onMove = () => remember();
  }

  // The address states the steps and lanes. It is updated a moment after they change.
  let waiting = 0;
  const remember = () => {
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => {
      const hash = linkTo(panes, panes.indexOf(active));
      if (isEmbedded) {
        window.parent.postMessage({ place: hash, line: active.writtenLine() }, "*");
      } else if (location.hash !== hash) {
        history.replaceState(null, "", hash);
      }
    }, 150);
  };
  const fromAddress = (address: string) => {
    window.clearTimeout(waiting);
    const place = linked(new URL(address).hash);
    choose(panes[place.pane ?? panes.indexOf(active)]);
    const chosen = place.steps.length > 1 || place.lanes.length > 1 ? panes : [active];
    chosen.forEach((pane, number) => pane.open(place.steps[number], place.lanes[number], place.groups[number]));
  };
  // The address of the event is used, because the address of the page may have changed since the event.
  window.addEventListener("hashchange", (event) => fromAddress(event.newURL));
  choose(active);
  // A page that shows this page in a frame writes the position into the attribute `data-place` of this page.
  fromAddress(`about:blank${document.documentElement.dataset["place"] ?? location.hash}`);
  if (isEmbedded) {
    window.addEventListener("message", ({ source, data }: MessageEvent<Sent>) => {
      if (source !== window.parent) return;
      if (data.theme) setTheme(data.theme);
      if (data.key) document.dispatchEvent(new KeyboardEvent("keydown", { key: data.key }));
    });
  }

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
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target instanceof HTMLSelectElement) return;
    // If a button has the focus, the space key presses this button.
    if (event.key === " " && event.target instanceof HTMLElement && event.target.closest("button, summary, input")) return;
    const chooseLane = (lane: number) => moved((pane) => pane.choose(lane));
    const pan = () => active.timeline.view.scale * 200;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => moved((pane) => (event.shiftKey ? pane.nextEvent(-1) : pane.move(-1))),
      ArrowRight: () => moved((pane) => (event.shiftKey ? pane.nextEvent(1) : pane.move(1))),
      ArrowUp: () => chooseLane(active.lane - 1),
      ArrowDown: () => chooseLane(active.lane + 1),
      Home: move(-Infinity),
      End: move(Infinity),
      " ": () => player.toggle(),
      p: () => player.toggle(),
      "<": () => player.faster(-1),
      ">": () => player.faster(1),
      PageUp: () => active.moveGroup(-1),
      PageDown: () => active.moveGroup(1),
      "+": () => active.timeline.zoom(0.625),
      "=": () => active.timeline.zoom(0.625),
      "-": () => active.timeline.zoom(1.6),
      "0": () => active.timeline.fit(),
      "[": () => active.timeline.pan(-pan()),
      "]": () => active.timeline.pan(pan()),
      f: () => moved((pane) => pane.follow(1)),
      F: () => moved((pane) => pane.follow(-1)),
      "/": () => search.focus(),
      n: () => active.nextFound(),
      s: () => panes.forEach((pane) => pane.listing.toggleWritten()),
      t: toggleTheme,
      "?": () => dialog.showModal(),
      l: () => link.click(),
      1: () => choose(panes[0]),
      2: () => choose(panes[1]),
      3: () => choose(panes[2]),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") player.stop();
    act();
  });
  document.documentElement.dataset["ready"] = "1";
}

start().catch((error: unknown) => {
  const text = `The page's data cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  document.getElementById("app")!.append(make("p", "trap", text));
});
