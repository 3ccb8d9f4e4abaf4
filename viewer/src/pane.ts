// One run: its program, its timeline, and what every lane does in front of a step.

import { address, lowerBound, STATES, type Run } from "./data";
import { Listing } from "./listing";
import { registerName, Registers, shown } from "./registers";
import { Timeline } from "./timeline";

function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

export class Pane {
  readonly element = make("article", "pane");
  readonly timeline: Timeline;
  readonly listing: Listing;
  step = 0;
  group = 0;
  private registers: Registers;
  private readonly slider = make("input", "slider");
  private readonly where = make("output", "where");
  private readonly lanes = make("div", "lanes");
  private readonly stack = make("ol", "stack");
  private readonly values = make("div", "values");
  private readonly about = make("div", "about");
  private readonly groups = make("select");
  private readonly as = make("select");
  private found: number[] = [];

  constructor(readonly run: Run) {
    this.registers = new Registers(run, 0);
    this.timeline = new Timeline(run, 0, (step) => this.go(step));
    this.listing = new Listing(run, (line) => this.goToLine(line, 1));
    this.element.append(this.head(), this.body());
    this.timeline.show(0);
    this.go(run.stepsOf[0]?.[0] ?? 0);
  }

  private head(): HTMLElement {
    const { run } = this;
    const head = make("header");
    head.append(make("h2", "", run.title));
    const { totals } = run;
    const facts = [
      `${run.isa}${run.chip ? ` (${run.chip})` : ""}`,
      `${run.lanes.toLocaleString("en")} lanes in ${run.groups.toLocaleString("en")} groups of ${run.lanes_per_group}`,
      `${totals.instructions.toLocaleString("en")} instructions`,
      `SIMD efficiency ${(100 * totals.simd_efficiency).toFixed(1)} %`,
      `${totals.divergent_branches.toLocaleString("en")} divergent branches`,
      `stack high water ${totals.stack_high_water}`,
    ];
    head.append(make("p", "facts", facts.join(" · ")));
    for (const note of run.notes) head.append(make("p", "note", note));
    if (run.trap) head.append(make("p", "trap", run.trap));
    return head;
  }

  private body(): HTMLElement {
    const { run } = this;
    const right = make("div", "right");
    const bar = make("div", "bar");
    this.groups.setAttribute("aria-label", "Group");
    const shownGroups = Math.min(run.groups, 10_000);
    for (let group = 0; group < shownGroups; group++) {
      const option = make("option", "", `group ${group} (${run.stepsOf[group]?.length ?? 0} steps)`);
      option.value = String(group);
      this.groups.append(option);
    }
    this.groups.addEventListener("change", () => this.show(Number(this.groups.value)));
    const button = (text: string, title: string, act: () => void) => {
      const element = make("button", "", text);
      element.title = title;
      element.setAttribute("aria-label", title);
      element.addEventListener("click", act);
      return element;
    };
    bar.append(
      this.groups,
      button("|◀", "first step (Home)", () => this.move(-Infinity)),
      button("◀", "step back (left)", () => this.move(-1)),
      button("▶", "step (right)", () => this.move(1)),
      button("▶|", "last step (End)", () => this.move(Infinity)),
      button("−", "zoom out (-)", () => this.timeline.zoom(1.6)),
      button("+", "zoom in (+)", () => this.timeline.zoom(0.625)),
      button("all", "show all steps (0)", () => this.timeline.fit()),
    );
    bar.append(this.where);
    this.where.setAttribute("aria-live", "polite");
    const legend = make("div", "legend");
    for (const state of STATES) {
      const entry = make("span", "", `${state.letter} ${state.name}`);
      entry.style.setProperty("--light", state.light);
      entry.style.setProperty("--night", state.dark);
      legend.append(entry);
    }
    this.slider.type = "range";
    this.slider.min = "0";
    this.slider.setAttribute("aria-label", "Step");
    this.slider.addEventListener("input", () => {
      const step = run.stepsOf[this.group]?.[Number(this.slider.value)];
      if (step !== undefined) this.go(step);
    });
    this.as.setAttribute("aria-label", "How register values are shown");
    for (const way of ["float", "int", "uint", "hex"]) this.as.append(make("option", "", way));
    this.as.addEventListener("change", () => this.showRegisters());
    const panel = (title: string, ...content: HTMLElement[]) => {
      const section = make("section", "panel");
      section.append(make("h3", "", title), ...content);
      return section;
    };
    const panels = make("div", "panels");
    const registers = panel("Registers in front of the step", this.values);
    registers.querySelector("h3")!.append(this.as);
    panels.append(
      panel("Lanes, and why", this.lanes),
      panel("Stack, innermost first", this.stack),
      panel("Instruction", this.about),
      registers,
    );
    right.append(bar, legend, this.timeline.canvas, this.slider, panels);
    const body = make("div", "split");
    body.append(this.listing.element, right);
    return body;
  }

  /** Shows another group. */
  show(group: number): void {
    const steps = this.run.stepsOf[group];
    if (!steps) return;
    this.group = group;
    this.groups.value = String(group);
    this.registers = new Registers(this.run, group);
    this.timeline.show(group);
    const at = Math.min(lowerBound(steps, this.step), steps.length - 1);
    this.go(steps[Math.max(0, at)] ?? 0);
  }

  /** Goes to a step of the run. */
  go(step: number): void {
    const { run } = this;
    if (run.stepCount === 0) return;
    if (run.group[step] !== this.group) {
      this.step = step;
      this.show(run.group[step]!);
      return;
    }
    this.step = step;
    const steps = run.stepsOf[this.group]!;
    this.slider.max = String(Math.max(0, steps.length - 1));
    this.slider.value = String(lowerBound(steps, step));
    const line = run.line[step]!;
    this.listing.mark(line);
    this.timeline.mark(step);
    const events = this.timeline.eventsAt(step);
    const at = address(run, run.listing[line]?.address ?? 0);
    this.where.textContent = `step ${step} at ${at}${events.length ? `: ${events.join(", ")}` : ""}`;
    this.showLanes();
    this.showStack();
    this.showInstruction(line);
    this.showRegisters();
  }

  /** Moves by steps of the group. */
  move(by: number): void {
    const steps = this.run.stepsOf[this.group];
    if (!steps?.length) return;
    const at = Math.max(0, Math.min(steps.length - 1, lowerBound(steps, this.step) + by));
    this.go(steps[at]!);
  }

  /** Goes to the next step, or the one before, at which a lane takes part. */
  follow(lane: number, by: 1 | -1): void {
    this.seek(by, (step) => this.run.states[this.run.vector[step]!]?.[lane] === 0);
  }

  /** Goes to the next step, or the one before, of this group that has an event. */
  nextEvent(by: 1 | -1): void {
    this.seek(by, (step) => this.timeline.eventsAt(step).length > 0);
  }

  private seek(by: 1 | -1, wanted: (step: number) => boolean): void {
    const steps = this.run.stepsOf[this.group];
    if (!steps) return;
    for (let at = lowerBound(steps, this.step) + by; at >= 0 && at < steps.length; at += by) {
      if (wanted(steps[at]!)) return this.go(steps[at]!);
    }
  }

  private goToLine(line: number, by: 1 | -1): void {
    const steps = this.run.stepsOf[this.group];
    if (!steps) return;
    const start = lowerBound(steps, this.step);
    for (let count = 1; count <= steps.length; count++) {
      const step = steps[(start + by * count + steps.length * count) % steps.length]!;
      if (this.run.line[step] === line) return this.go(step);
    }
    this.showInstruction(line);
  }

  /** Searches the program; gives how many lines were found. */
  search(word: string): number {
    this.found = this.listing.search(word);
    const first = this.found[0];
    if (first !== undefined) this.goToLine(first, 1);
    return this.found.length;
  }

  /** Goes to the next line that was found. */
  nextFound(): void {
    const line = this.run.line[this.step]!;
    const next = this.found.find((found) => found > line) ?? this.found[0];
    if (next !== undefined) this.goToLine(next, 1);
  }

  private showLanes(): void {
    const { run } = this;
    const whys = run.vectors[run.vector[this.step]!];
    if (!whys) return;
    if (this.lanes.children.length !== whys.length) {
      this.lanes.replaceChildren(
        ...Array.from(whys, (_, lane) => {
          const chip = make("button", "lane");
          chip.dataset["lane"] = String(lane);
          chip.addEventListener("click", () => this.follow(lane, 1));
          return chip;
        }),
      );
    }
    whys.forEach((why, lane) => {
      const chip = this.lanes.children[lane] as HTMLElement;
      const { text, state } = run.whys[why] ?? { text: "?", state: 6 };
      chip.style.setProperty("--light", STATES[state]!.light);
      chip.style.setProperty("--night", STATES[state]!.dark);
      chip.textContent = `${lane} ${text}`;
      chip.title = `lane ${lane}: ${text}; click: go to where it runs next`;
      chip.dataset["state"] = STATES[state]!.name;
    });
  }

  private showStack(): void {
    const rows = this.run.stacks[this.run.stack[this.step]!] ?? [];
    this.stack.replaceChildren(...rows.map((row) => make("li", "", row)));
    if (rows.length === 0) this.stack.replaceChildren(make("li", "none", "empty"));
  }

  private showInstruction(number: number): void {
    const { run } = this;
    const line = run.listing[number];
    if (!line) return;
    const counts = run.counts[number] ?? [];
    const facts: string[] = [];
    const [executed = 0, lanes = 0, diverged = 0, taken = 0, not = 0, reconverged = 0, distance = 0, farthest = 0] =
      counts;
    facts.push(`executed ${executed}, lanes ${lanes}, diverged ${diverged}`);
    if (executed > 0) facts.push(`${((100 * lanes) / executed / run.lanes_per_group).toFixed(1)} % of the lanes`);
    if (diverged > 0) facts.push(`cost of the sides: ${taken} and ${not} instructions`);
    if (reconverged > 0) {
      facts.push(`runs together again after ${(distance / reconverged).toFixed(1)} instructions on average, ${farthest} at most`);
    } else if (diverged > 0) {
      facts.push("its sides never run together again");
    }
    const parts: HTMLElement[] = [make("code", "", `${address(run, line.address)}  ${line.text}`)];
    parts.push(make("p", "words", line.words));
    for (const text of [...(line.meaning ?? []), ...(line.flow ?? [])]) parts.push(make("p", "", text));
    parts.push(make("p", "", facts.join("; ")));
    if (line.source) parts.push(make("p", "source", line.source));
    this.about.replaceChildren(...parts);
  }

  private showRegisters(): void {
    const { run } = this;
    if (this.step > run.registers_until) {
      this.values.replaceChildren(
        make("p", "none", `registers are recorded up to step ${run.registers_until} (--registers N records more)`),
      );
      return;
    }
    this.registers.seek(this.step);
    const written = this.registers.writesOf(this.step);
    const table = make("table");
    const head = table.createTHead().insertRow();
    head.append(make("th", "", "register"));
    for (let lane = 0; lane < run.lanes_per_group; lane++) head.append(make("th", "", String(lane)));
    const body = table.createTBody();
    for (let register = 0; register < this.registers.count; register++) {
      const writes = written.get(register);
      if (!this.registers.isWritten(register) && !writes) continue;
      const row = body.insertRow();
      row.append(make("th", "", registerName(run, register)));
      for (let lane = 0; lane < run.lanes_per_group; lane++) {
        const cell = row.insertCell();
        cell.textContent = shown(this.registers.value(register, lane), this.as.value || "float");
        if (writes?.(lane)) cell.className = "written";
      }
    }
    if (body.rows.length === 0) {
      this.values.replaceChildren(make("p", "none", "no register has been written yet"));
    } else {
      this.values.replaceChildren(table);
    }
  }
}
