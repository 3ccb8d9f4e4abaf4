// One run: its program, its timeline, and the state of every lane before a step.

import { address, EVENTS, has, laneSet, lowerBound, registerName, STATES, type Lanes, type Row, type Run } from "./data";
import { button, make } from "./dom";
import { Listing } from "./listing";
import { outcome } from "./outcome";
import { Registers, shown } from "./registers";
import { Timeline } from "./timeline";

export class Pane {
  readonly element = make("article", "pane");
  readonly timeline: Timeline;
  readonly listing: Listing;
  step = 0;
  group = 0;
  /** The chosen lane. The pane shows in full why this lane runs or waits. */
  lane = 0;
  /** Called after the pane has gone to a step or a lane. */
  onMove: () => void = () => {};
  private registers: Registers;
  private readonly slider = make("input", "slider");
  private readonly where = make("output", "where");
  private readonly lanes = make("div", "lanes");
  private readonly why = make("p", "why");
  private readonly stack = make("ol", "stack");
  private readonly values = make("div", "values");
  private readonly about = make("div", "about");
  private readonly groups = make("select");
  private readonly as = make("select");
  private found: number[] = [];

  constructor(readonly run: Run) {
    this.registers = new Registers(run, 0);
    this.timeline = new Timeline(run, 0, (step, lane) => {
      if (lane >= 0 && lane < run.lanes_per_group) this.lane = lane;
      this.go(step);
    });
    this.listing = new Listing(run, (line) => this.goToLine(line));
    this.element.setAttribute("aria-label", run.title);
    this.element.append(this.head(), outcome(run, () => this.goToTrap()), this.bar(), this.listing.element);
    const time = make("div", "times");
    time.append(this.timeline.element, this.slider);
    this.element.append(time, this.state(), this.panel("of-instruction", "Instruction", this.about), this.ofRegisters());
    this.timeline.show(0);
    this.go(run.stepsOf[0]?.[0] ?? 0);
  }

  /** The line of the source with the instruction of the step, counted from 1, or 0 if the line is unknown. */
  writtenLine(): number {
    return this.run.listing[this.run.line[this.step] ?? -1]?.written?.line ?? 0;
  }

  private head(): HTMLElement {
    const { run } = this;
    const { totals } = run;
    const many = (count: number, what: string) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
    const facts = [
      `${run.isa}${run.chip ? ` (${run.chip})` : ""}`,
      `${many(run.lanes, "lane")} in ${many(run.groups, "group")} of ${run.lanes_per_group}`,
      many(totals.instructions, "instruction"),
      `SIMD efficiency ${(100 * totals.simd_efficiency).toFixed(1)} %`,
      `${totals.divergent_branches.toLocaleString("en")} divergent branch${totals.divergent_branches === 1 ? "" : "es"}`,
      `stack high water ${totals.stack_high_water}`,
    ];
    const head = make("header");
    const line = make("p", "facts", facts.join(" · "));
    line.title = facts.join("\n");
    head.append(make("h2", "", run.title), line);
    return head;
  }

  /** The step of the pane, and the controls that affect only this pane. */
  private bar(): HTMLElement {
    const { run } = this;
    const bar = make("div", "bar");
    this.groups.setAttribute("aria-label", "Group");
    const shownGroups = Math.min(run.groups, 10_000);
    for (let group = 0; group < shownGroups; group++) {
      const option = make("option", "", `group ${group} (${run.stepsOf[group]?.length ?? 0} steps)`);
      option.value = String(group);
      this.groups.append(option);
    }
    this.groups.hidden = run.groups === 1;
    this.groups.addEventListener("change", () => this.show(Number(this.groups.value)));
    this.where.setAttribute("aria-live", "polite");
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.setAttribute("aria-label", "Step");
    this.slider.addEventListener("input", () => {
      const step = run.stepsOf[this.group]?.[Number(this.slider.value)];
      if (step !== undefined) this.go(step);
    });
    bar.append(this.where, this.groups);
    if (this.listing.isWritten) bar.append(button("source", "the source's own lines, or the listing (s)", () => this.listing.toggleWritten()));
    bar.append(
      button("−", "zoom out (-)", () => this.timeline.zoom(1.6)),
      button("+", "zoom in (+)", () => this.timeline.zoom(0.625)),
      button("all", "show all steps (0)", () => this.timeline.fit()),
      button("PNG", "save the timeline as PNG", () => void this.timeline.savePng()),
      button("SVG", "save the timeline as SVG", () => this.timeline.saveSvg()),
    );
    return bar;
  }

  private panel(name: string, title: string, ...content: HTMLElement[]): HTMLElement {
    const section = make("section", `panel ${name}`);
    section.setAttribute("aria-label", title);
    section.append(make("h3", "", title), ...content);
    return section;
  }

  /** The lanes, and the machine's own flow state. */
  private state(): HTMLElement {
    const state = make("div", "state");
    const lanes = this.panel("of-lanes", "Lanes", this.why, this.lanes);
    lanes.querySelector("h3")!.append(button("follow ▶", "where the chosen lane runs next (f)", () => this.follow(1)));
    state.append(lanes, this.panel("of-stack", this.run.mechanism, this.stack));
    return state;
  }

  private ofRegisters(): HTMLElement {
    this.as.setAttribute("aria-label", "How register values are shown");
    for (const way of ["auto", "float", "int", "uint", "hex"]) this.as.append(make("option", "", way));
    if (this.run.isa === "r500") this.as.value = "float";
    this.as.addEventListener("change", () => this.showRegisters());
    const panel = this.panel("of-registers", "Registers before the step", this.values);
    panel.querySelector("h3")!.append(this.as);
    return panel;
  }

  /** Shows another group. */
  show(group: number): void {
    const steps = this.run.stepsOf[group];
    if (!steps?.length) return;
    this.group = group;
    this.groups.value = String(group);
    this.registers = new Registers(this.run, group);
    this.timeline.show(group);
    this.go(steps[Math.min(lowerBound(steps, this.step), steps.length - 1)]!);
  }

  /** Goes to a step of the run. */
  go(step: number): void {
    const { run } = this;
    if (run.group[step] === undefined) return;
    this.step = step;
    if (run.group[step] !== this.group) return this.show(run.group[step]!);
    const steps = run.stepsOf[this.group]!;
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.slider.value = String(lowerBound(steps, step));
    const line = run.line[step]!;
    const events = this.timeline.eventsAt(step);
    const at = address(run, run.listing[line]?.address ?? 0);
    this.slider.setAttribute("aria-valuetext", `step ${step} at ${at}`);
    this.where.textContent = `step ${step} at ${at}${events.length ? `: ${events.join(", ")}` : ""}`;
    this.where.title = events.map((name) => `${name}: ${EVENTS.find((known) => known.name === name)?.means ?? ""}`).join("\n");
    this.listing.mark(line);
    this.timeline.choose(step, this.lane);
    this.showLanes();
    this.showStack();
    this.showInstruction(line);
    this.showRegisters();
    this.onMove();
  }

  /** Moves by steps of the group, and returns whether such a step exists. */
  move(by: number): boolean {
    const steps = this.run.stepsOf[this.group];
    if (!steps?.length) return false;
    const from = lowerBound(steps, this.step);
    const at = Math.max(0, Math.min(steps.length - 1, from + by));
    this.go(steps[at]!);
    return at !== from;
  }

  /** Goes to the next or the previous group that has steps. */
  moveGroup(by: 1 | -1): void {
    for (let group = this.group + by; group >= 0 && group < this.run.groups; group += by) {
      if (this.run.stepsOf[group]?.length) return this.show(group);
    }
  }

  /** Goes to the position that an address states. Parts that the address does not state remain unchanged. */
  open(step: number | undefined, lane: number | undefined, group: number | undefined): void {
    if (lane !== undefined) this.lane = Math.min(lane, this.run.lanes_per_group - 1);
    if (step !== undefined) this.go(Math.min(step, this.run.stepCount - 1));
    else if (group !== undefined) this.show(group);
    else if (lane !== undefined) this.go(this.step);
  }

  /** Chooses another lane. */
  choose(lane: number): void {
    this.lane = Math.max(0, Math.min(this.run.lanes_per_group - 1, lane));
    this.go(this.step);
  }

  /** Goes to the next or the previous step at which the chosen lane is active. */
  follow(by: 1 | -1): void {
    const steps = this.run.stepsOf[this.group];
    if (!steps) return;
    for (let at = lowerBound(steps, this.step) + by; at >= 0 && at < steps.length; at += by) {
      const step = steps[at]!;
      if (this.run.states[this.run.vector[step]!]?.[this.lane] === 0) return this.go(step);
    }
  }

  /** Goes to the next or the previous step of this group that has an event. */
  nextEvent(by: 1 | -1): void {
    const step = this.timeline.eventFrom(this.step, by);
    if (step !== undefined) this.go(step);
  }

  private goToTrap(): void {
    this.go(this.run.stepCount - 1);
  }

  private goToLine(line: number): void {
    const steps = this.run.stepsOf[this.group] ?? new Int32Array();
    const start = lowerBound(steps, this.step);
    for (let count = 1; count <= steps.length; count++) {
      const step = steps[(start + count) % steps.length]!;
      if (this.run.line[step] === line) return this.go(step);
    }
    this.listing.mark(line);
    this.showInstruction(line);
  }

  /** Searches the program, and returns the number of lines that match. */
  search(word: string): number {
    this.found = this.listing.search(word);
    const first = this.found[0];
    if (first !== undefined) this.goToLine(first);
    return this.found.length;
  }

  /** Goes to the next line that matches. */
  nextFound(): void {
    const line = this.run.line[this.step]!;
    const next = this.found.find((found) => found > line) ?? this.found[0];
    if (next !== undefined) this.goToLine(next);
  }

  private showLanes(): void {
    const { run } = this;
    const whys = run.vectors[run.vector[this.step]!];
    if (!whys) return;
    if (this.lanes.children.length !== whys.length) {
      this.lanes.replaceChildren(
        ...Array.from(whys, (_, lane) => {
          const chip = button("", "", () => this.choose(lane));
          chip.className = "lane";
          chip.dataset["lane"] = String(lane);
          return chip;
        }),
      );
    }
    whys.forEach((why, lane) => {
      const chip = this.lanes.children[lane] as HTMLElement;
      const { text, more, state } = run.whys[why] ?? { text: "?", more: "", state: 6 };
      const { name, letter, light, dark } = STATES[state]!;
      chip.replaceChildren(make("span", "number", String(lane)), " ", make("b", "", letter), " ", make("span", "text", text));
      chip.title = `lane ${lane}: ${more}`;
      chip.setAttribute("aria-label", `lane ${lane}: ${text}`);
      chip.setAttribute("aria-pressed", String(lane === this.lane));
      chip.dataset["state"] = name;
      chip.style.setProperty("--light", light);
      chip.style.setProperty("--night", dark);
    });
    const chosen = run.whys[whys[this.lane] ?? -1];
    this.why.textContent = chosen ? `lane ${this.lane}: ${chosen.text}: ${chosen.more}` : "";
  }

  private showStack(): void {
    const { run } = this;
    const rows = run.stacks[run.stack[this.step]!] ?? [];
    const counters = rows.filter(({ kind }) => kind === COUNTER);
    const entries = rows.filter(({ kind }) => kind !== COUNTER);
    const items = entries.map((row) => this.entry(row));
    if (run.mechanism === "Counters") items.unshift(this.counters(counters));
    else if (items.length === 0) items.push(make("li", "none", "empty"));
    this.stack.replaceChildren(...items);
  }

  /** R500: a counter for each lane that a branch switched off. */
  private counters(rows: Row[]): HTMLElement {
    const item = make("li", "counters");
    item.append(make("b", "", "branch counter"), make("span", "none", ": one for each lane that a branch switched off"));
    const cells = make("div", "cells");
    for (let lane = 0; lane < this.run.lanes_per_group; lane++) {
      const row = rows.find(({ holds }) => holds && has(...holds, lane));
      const cell = make("span", "counter");
      cell.append(make("i", "", String(lane)), make("b", "", row ? String(row.count) : "–"));
      cell.title = row ? `lane ${lane}: branch counter ${row.count}` : `lane ${lane}: no branch switched it off`;
      if (row && lane === this.lane) cell.classList.add("holds");
      cells.append(cell);
    }
    item.append(cells);
    return item;
  }

  /** An entry of a stack, or a frame of a loop. It is marked if the chosen lane waits for it. */
  private entry({ kind, to, count, masks, holds }: Row): HTMLElement {
    const { run } = this;
    const item = make("li");
    item.append(make("b", "", kind));
    if (count !== undefined) item.append(` count ${count}`);
    if (to !== undefined) item.append(` → ${address(run, to)}`);
    for (const [name, lanes] of masks ?? []) item.append(this.mask(name, lanes));
    if (holds && has(...holds, this.lane)) {
      item.className = "holds";
      item.title = `lane ${this.lane} waits for it`;
    }
    return item;
  }

  /** A mask as a row of cells, and as a set of lanes. */
  private mask(name: string, lanes: Lanes): HTMLElement {
    const width = this.run.lanes_per_group;
    const row = make("div", "mask");
    const cells = make("span", "bits");
    cells.setAttribute("aria-hidden", "true");
    for (let lane = 0; lane < width; lane++) {
      const set = has(...lanes, lane);
      cells.append(make("i", `${set ? "set" : ""}${lane === this.lane ? " chosen" : ""}`));
    }
    const text = laneSet(lanes, width);
    row.append(make("span", "name", name), " ", cells, " ", make("code", "", text || "none"));
    return row;
  }

  private showInstruction(number: number): void {
    const { run } = this;
    const line = run.listing[number];
    if (!line) return;
    const [executed = 0, lanes = 0, diverged = 0, taken = 0, not = 0, reconverged = 0, distance = 0, farthest = 0] =
      run.counts[number] ?? [];
    const facts = [`executed ${executed}, lanes executed ${lanes}, diverged ${diverged}`];
    if (executed > 0) facts.push(`${((100 * lanes) / executed / run.lanes_per_group).toFixed(1)} % of the lanes`);
    if (diverged > 0) facts.push(`cost of the sides: ${taken} and ${not} instructions`);
    if (reconverged > 0) {
      facts.push(`reconverges after ${(distance / reconverged).toFixed(1)} instructions on average, ${farthest} at most`);
    } else if (diverged > 0) {
      facts.push("its sides never reconverge");
    }
    const parts: HTMLElement[] = [make("code", "", `${address(run, line.address)}  ${line.text}`)];
    parts.push(make("p", "words", line.words));
    for (const text of [...(line.meaning ?? []), ...(line.flow ?? [])]) parts.push(make("p", "", text));
    parts.push(make("p", "", facts.join("; ")));
    if (line.source) parts.push(make("p", "source", `manual: ${line.source}`));
    if (line.written) parts.push(make("p", "source", `line ${line.written.line} of the source: ${line.written.text}`));
    this.about.replaceChildren(...parts);
  }

  private showRegisters(): void {
    const { run, registers } = this;
    if (this.step > run.registers_until) {
      const text = `the page has registers up to step ${run.registers_until}; --page-limit and --steps decide how much it has`;
      this.values.replaceChildren(make("p", "none", text));
      return;
    }
    registers.seek(this.step);
    const written = registers.writesOf(this.step);
    const table = make("table");
    const head = table.createTHead().insertRow();
    head.append(make("th", "", "lane"));
    for (let lane = 0; lane < run.lanes_per_group; lane++) {
      head.append(make("th", lane === this.lane ? "chosen" : "", String(lane)));
    }
    const body = table.createTBody();
    for (const register of registers.shown) {
      const row = body.insertRow();
      row.append(make("th", "", registerName(run, register)));
      const writes = written.get(register);
      for (let lane = 0; lane < run.lanes_per_group; lane++) {
        const cell = row.insertCell();
        cell.textContent = shown(registers.value(register, lane), this.as.value);
        const value = writes?.get(lane);
        if (value === undefined) continue;
        cell.className = "written";
        const after = shown(value, this.as.value);
        cell.title = `lane ${lane}: step ${this.step} writes ${after}`;
        if (after !== cell.textContent) cell.append(make("i", "", `→${after}`));
      }
    }
    this.values.replaceChildren(body.rows.length === 0 ? make("p", "none", "the program uses no register") : table);
  }
}

const COUNTER = "branch counter";
