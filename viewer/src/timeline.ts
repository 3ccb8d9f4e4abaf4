// The lanes of a group against its steps, coloured by state. Pan by dragging, zoom with the wheel or + and -.

import { address, EVENTS, lowerBound, STATES, type Run } from "./data";
import { make } from "./dom";
import { CanvasSurface, MIXED, NONE, readable, stateColours, SvgSurface, type Cells, type Surface } from "./surface";

const AXIS = 26;
/** Width of the columns with the numbers of the lanes and the letters of their states at the step. */
const GUTTER = 44;
/** Maximum width of a step, in pixels. */
const WIDEST = 40;
/** Minimum size of a step and of a lane with a letter, in pixels. */
const LETTER = { wide: 7, high: 9 };
/** Pixels between two numbers of the axis. */
const APART = 80;

/** The size and the colours with which the timeline is drawn. */
interface Look {
  width: number;
  height: number;
  dark: boolean;
  ink: string;
  paper: string;
}

export class Timeline {
  readonly element = make("div", "time");
  readonly canvas = make("canvas", "timeline");
  private readonly tip = make("div", "tip");
  /** The first visible step, and the number of steps per pixel. */
  private left = 0;
  private scale = 1;
  private steps: Int32Array = new Int32Array();
  /** The events of the group: the index of each event's step among the steps of the group, and the kind of the event. */
  private eventAt: number[] = [];
  private eventKind: number[] = [];
  private cursor = 0;
  private lane = -1;
  private dragged: { x: number; left: number; moved: boolean } | null = null;
  private frame = 0;
  /** Whether the timeline always shows all steps, for any size of the canvas. */
  private fitted = true;

  constructor(
    private readonly run: Run,
    private group: number,
    private readonly onPick: (step: number, lane: number) => void,
  ) {
    const { canvas } = this;
    this.tip.hidden = true;
    this.element.append(canvas, this.tip);
    this.element.style.setProperty("--lanes", String(run.lanes_per_group));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Timeline: lanes against steps, coloured by what each lane does");
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.pan((event.deltaY || event.deltaX) * this.scale);
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX * this.scale);
      else this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.dragged = { x: event.offsetX, left: this.left, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => {
      const { dragged } = this;
      if (!dragged) return this.hover(event);
      const by = event.offsetX - dragged.x;
      if (Math.abs(by) > 3) dragged.moved = true;
      if (dragged.moved) this.moveTo(dragged.left - by * this.scale);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.dragged && !this.dragged.moved) {
        const { step, lane } = this.under(event);
        if (step !== undefined) this.onPick(step, lane);
      }
      this.dragged = null;
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  /** The step and the lane at a position of the canvas; the step is `undefined` outside the steps. */
  private under(event: PointerEvent): { step: number | undefined; lane: number } {
    const at = Math.floor(this.left + (event.offsetX - GUTTER) * this.scale);
    const row = (this.canvas.clientHeight - AXIS) / this.run.lanes_per_group;
    const lane = Math.floor((event.offsetY - AXIS) / row);
    return { step: this.steps[Math.max(0, Math.min(this.steps.length - 1, at))], lane };
  }

  /** Shows the lane, step, state and instruction under the pointer. */
  private hover(event: PointerEvent): void {
    const { step, lane } = this.under(event);
    const { run, tip } = this;
    if (step === undefined) return;
    const line = run.listing[run.line[step]!];
    const why = run.whys[run.vectors[run.vector[step]!]?.[lane] ?? -1];
    const lines = [make("b", "", why ? `lane ${lane}, step ${step}: ${why.text}` : `step ${step}`)];
    if (why) lines.push(make("span", "", why.more));
    lines.push(make("code", "", `${address(run, line?.address ?? 0)}  ${line?.text ?? ""}`));
    for (const name of this.eventsAt(step)) {
      lines.push(make("span", "", `${name}: ${EVENTS.find((known) => known.name === name)?.means ?? ""}`));
    }
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const { offsetWidth, offsetHeight } = tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - offsetWidth - 8))}px`;
    const below = event.clientY + 16;
    tip.style.top = `${below + offsetHeight < innerHeight ? below : event.clientY - offsetHeight - 8}px`;
  }

  private width(): number {
    return Math.max(1, this.canvas.clientWidth - GUTTER);
  }

  /** Sets the size of the canvas to the size of its element. */
  private resize(): void {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    if (canvas.width === width && canvas.height === height) return;
    canvas.width = width;
    canvas.height = height;
    if (this.fitted) this.fit();
    else this.moveTo(this.left);
  }

  /** Shows another group. */
  show(group: number): void {
    const { run } = this;
    this.group = group;
    this.steps = run.stepsOf[group] ?? new Int32Array();
    this.eventAt = [];
    this.eventKind = [];
    run.eventStep.forEach((step, event) => {
      if (run.group[step] !== group) return;
      this.eventAt.push(this.place(step));
      this.eventKind.push(run.eventKind[event]!);
    });
    this.fit();
  }

  /** Shows all steps. */
  fit(): void {
    this.fitted = true;
    this.left = 0;
    this.scale = this.most();
    this.draw();
  }

  /** Steps per pixel if all steps are shown. */
  private most(): number {
    return Math.max(this.steps.length / this.width(), 1 / WIDEST);
  }

  /** The visible range, in steps of the group. */
  get view(): { left: number; scale: number; steps: number; group: number } {
    return { left: this.left, scale: this.scale, steps: this.steps.length, group: this.group };
  }

  zoom(by: number, around?: number): void {
    const at = around === undefined ? this.place(this.cursor) : this.left + (around - GUTTER) * this.scale;
    const scale = Math.min(this.most(), Math.max(1 / WIDEST, this.scale * by));
    this.fitted = scale === this.most();
    this.left = at - ((at - this.left) * scale) / this.scale;
    this.scale = scale;
    this.moveTo(this.left);
  }

  pan(by: number): void {
    this.moveTo(this.left + by);
  }

  private moveTo(left: number): void {
    const most = Math.max(0, this.steps.length - this.width() * this.scale);
    this.left = Math.max(0, Math.min(most, left));
    this.draw();
  }

  private place(step: number): number {
    return lowerBound(this.steps, step);
  }

  /** Marks a step and a lane, and shows the step if it is not visible. */
  choose(step: number, lane: number): void {
    this.cursor = step;
    this.lane = lane;
    const at = this.place(step);
    const end = this.left + this.width() * this.scale;
    if (at < this.left || at >= end) this.left = at - (this.width() * this.scale) / 2;
    this.moveTo(this.left);
  }

  /** Draws again. */
  draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const start = performance.now();
      this.paint();
      this.canvas.dataset["paint"] = (performance.now() - start).toFixed(1);
      this.canvas.dataset["view"] = JSON.stringify(this.view);
    });
  }

  /** Draws immediately, for example before the page is printed. */
  paint(): void {
    const { canvas } = this;
    this.resize();
    const context = canvas.getContext("2d");
    if (!context || canvas.width < 2) return;
    const style = getComputedStyle(canvas);
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.picture(new CanvasSurface(context), {
      width: canvas.clientWidth,
      height: canvas.clientHeight,
      dark: style.getPropertyValue("--dark").trim() === "1",
      ink: style.getPropertyValue("--ink").trim(),
      paper: style.getPropertyValue("--paper").trim(),
    });
  }

  /** The visible picture for use in a document: in the light theme, with a caption. */
  private document(): { look: Look; caption: string; name: string } {
    const { canvas, run, group } = this;
    const look = { width: canvas.clientWidth, height: canvas.clientHeight, dark: false, ink: "#1b1b1b", paper: "#ffffff" };
    const caption = `${run.title}, group ${group}, step ${this.cursor}`;
    return { look, caption, name: `${run.title.replace(/[^\w.-]+/g, "-")}-group${group}-step${this.cursor}` };
  }

  /** Saves the visible picture as SVG. */
  saveSvg(): void {
    const { look, caption, name } = this.document();
    const surface = new SvgSurface();
    this.picture(surface, look);
    this.caption(surface, look, caption);
    save(new Blob([surface.document(look.width, look.height + CAPTION, false)], { type: "image/svg+xml" }), `${name}.svg`);
  }

  /** Saves the visible picture as PNG, with twice the resolution. */
  async savePng(): Promise<void> {
    const { look, caption, name } = this.document();
    const canvas = make("canvas");
    canvas.width = look.width * 2;
    canvas.height = (look.height + CAPTION) * 2;
    const context = canvas.getContext("2d")!;
    context.scale(2, 2);
    const surface = new CanvasSurface(context);
    this.picture(surface, look);
    this.caption(surface, look, caption);
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
    if (blob) save(blob, `${name}.png`);
  }

  /** The legend and the title below a saved picture. */
  private caption(surface: Surface, { width, height, ink, paper, dark }: Look, caption: string): void {
    surface.rect(0, height, width, CAPTION, paper);
    surface.text(caption, 4, height + 11, ink, 11, "left");
    const colours = stateColours(dark);
    const states = new Set<number>();
    for (const step of this.steps) for (const state of this.run.states[this.run.vector[step]!] ?? []) states.add(state);
    let x = 4;
    for (const state of [...states].sort()) {
      const { name, letter } = STATES[state]!;
      surface.rect(x, height + 22, 10, 10, `rgb(${colours[state]})`);
      surface.text(`${letter} ${name}`, x + 14, height + 27, ink, 11, "left");
      x += 24 + 7 * (name.length + 2);
    }
    for (const kind of new Set(this.eventKind)) {
      const { name, light } = EVENTS[kind]!;
      surface.polygon(this.mark(kind, x + 5, height + 27, 5), light);
      surface.text(name, x + 14, height + 27, ink, 11, "left");
      x += 24 + 7 * name.length;
    }
  }

  private picture(surface: Surface, look: Look): void {
    const { run } = this;
    const { width, dark, ink, paper } = look;
    const lanes = run.lanes_per_group;
    const columns = Math.max(1, Math.floor(width - GUTTER));
    const height = Math.max(1, Math.floor(look.height - AXIS));
    const row = height / lanes;
    const letters = 1 / this.scale >= LETTER.wide && row >= LETTER.high;
    surface.rect(0, 0, width, look.height, paper);
    surface.cells(this.cells(columns, dark), GUTTER, AXIS, height, dark, !letters);
    if (row >= 4) for (let lane = 1; lane < lanes; lane++) surface.rect(GUTTER, AXIS + Math.floor(lane * row), columns, 1, paper);
    if (letters) this.letters(surface, columns, row, dark);
    this.gutter(surface, row, look);
    this.axis(surface, columns, look);
    // Marks the chosen step and the chosen lane.
    const at = GUTTER + (this.place(this.cursor) - this.left) / this.scale;
    const wide = 1 / this.scale;
    if (at >= GUTTER - 1 && at <= GUTTER + columns) {
      if (wide >= 5) surface.frame(at, AXIS - 8, wide, height + 8, ink);
      else surface.rect(at + wide / 2 - 1, AXIS - 8, 2, height + 8, ink);
    }
    if (this.lane >= 0) surface.frame(1, AXIS + this.lane * row + 1, GUTTER - 2, Math.max(3, row - 2), ink);
  }

  /** Draws the numbers of the lanes, and the letters of their states at the step. */
  private gutter(surface: Surface, row: number, { dark, ink }: Look): void {
    const { run } = this;
    const colours = stateColours(dark);
    const every = row >= 9 ? 1 : row >= 5 ? 4 : 8;
    const size = Math.min(11, Math.max(8, row));
    run.states[run.vector[this.cursor]!]?.forEach((state, lane) => {
      const y = AXIS + (lane + 0.5) * row;
      if (lane % every === 0) surface.text(String(lane), GUTTER - 20, y, ink, size, "right");
      surface.rect(GUTTER - 16, AXIS + Math.floor(lane * row), 13, Math.max(1, Math.ceil(row) - (row >= 4 ? 1 : 0)), `rgb(${colours[state]})`);
      if (row >= LETTER.high) surface.text(STATES[state]!.letter, GUTTER - 9.5, y, readable(colours[state]!), size, "center");
    });
  }

  /** Returns the cells. If a pixel column has several steps, its colour is a mixture of up to eight of them. */
  private cells(columns: number, dark: boolean): Cells {
    const { run, steps } = this;
    const lanes = run.lanes_per_group;
    const colours = stateColours(dark);
    const cells = { columns, lanes, state: new Int8Array(columns * lanes).fill(NONE), mixture: new Uint32Array(columns * lanes) };
    // The samples are at multiples of a power of two, so they stay the same while the picture moves.
    const stride = 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(1, this.scale / 8))));
    for (let x = 0; x < columns; x++) {
      const first = Math.floor(this.left + x * this.scale);
      if (first >= steps.length) break;
      const last = Math.max(first + 1, Math.min(steps.length, Math.ceil(this.left + (x + 1) * this.scale)));
      let start = stride === 1 ? first : Math.ceil(first / stride) * stride;
      if (start >= last) start = first;
      for (let lane = 0; lane < lanes; lane++) {
        let r = 0;
        let g = 0;
        let b = 0;
        let samples = 0;
        let only = -1;
        for (let at = start; at < last; at += stride) {
          const state = run.states[run.vector[steps[at]!]!]?.[lane] ?? 6;
          only = samples === 0 || only === state ? state : MIXED;
          const colour = colours[state]!;
          r += colour[0];
          g += colour[1];
          b += colour[2];
          samples++;
        }
        cells.state[x * lanes + lane] = only;
        if (only === MIXED) cells.mixture[x * lanes + lane] = ((r / samples) << 16) | ((g / samples) << 8) | (b / samples);
      }
    }
    return cells;
  }

  /** Draws the letters of the states, if a step is wide enough for a letter. */
  private letters(surface: Surface, columns: number, row: number, dark: boolean): void {
    const { run, steps } = this;
    const inks = stateColours(dark).map(readable);
    const size = Math.min(11, row, 1.25 / this.scale);
    for (let at = Math.floor(this.left); at < Math.min(steps.length, this.left + columns * this.scale); at++) {
      const x = GUTTER + (at + 0.5 - this.left) / this.scale;
      if (x < GUTTER) continue;
      run.states[run.vector[steps[at]!]!]?.forEach((state, lane) => {
        surface.text(STATES[state]!.letter, x, AXIS + (lane + 0.5) * row, inks[state]!, size, "center");
      });
    }
  }

  /** Returns the numbers of the axis. They are multiples of a unit, each with the index of the first step from this number on. */
  private ticks(columns: number): { at: number; text: string; gap: boolean }[] {
    const { steps } = this;
    const rough = Math.max(1, (columns * this.scale) / Math.max(2, columns / APART));
    const power = 10 ** Math.floor(Math.log10(rough));
    const unit = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
    const ticks: { at: number; text: string; gap: boolean }[] = [];
    const end = Math.min(steps.length, Math.ceil(this.left + columns * this.scale));
    for (let at = Math.ceil(this.left); at < end; at++) {
      const step = steps[at]!;
      const before = at === 0 ? step - 1 : steps[at - 1]!;
      const multiple = Math.floor(step / unit) * unit;
      // Other groups ran in between, so the axis has a gap without numbers.
      if (at > 0 && step - before > unit) ticks.push({ at, text: "", gap: true });
      else if (multiple > before || step === multiple) ticks.push({ at, text: String(multiple), gap: false });
    }
    return ticks;
  }

  /** Draws the axis, and the events of the flow. */
  private axis(surface: Surface, columns: number, { width, height, ink, dark }: Look): void {
    let free = -Infinity;
    for (const { at, text, gap } of this.ticks(columns)) {
      const x = GUTTER + (at - this.left) / this.scale;
      if (gap) for (let y = 0; y < height; y += 4) surface.rect(x, y, 1, 2, ink);
      const end = x + 5 + 6.7 * text.length;
      if (gap || x < free || end > width) continue;
      surface.rect(x, 0, 1, 12, ink);
      surface.text(text, x + 3, 7, ink, 11, "left");
      free = end + 6;
    }
    const drawn = EVENTS.map(() => -Infinity);
    this.eventAt.forEach((at, event) => {
      const x = GUTTER + (at + 0.5 - this.left) / this.scale;
      const kind = this.eventKind[event]!;
      if (x < GUTTER || x > GUTTER + columns || x - drawn[kind]! < 1) return;
      drawn[kind] = x;
      const size = Math.max(2.5, Math.min(4.5, 0.5 / this.scale));
      const { name, light, dark: night } = EVENTS[kind]!;
      surface.polygon(this.mark(kind, x, name === "diverge" ? AXIS - 10 : AXIS - 4, size), dark ? night : light);
    });
  }

  /** Draws the mark of an event around a point: a triangle that points down, up or to the right, or a square. */
  private mark(kind: number, x: number, y: number, size: number): [number, number][] {
    const tall = Math.min(3, size);
    switch (EVENTS[kind]!.name) {
      case "diverge": return [[x - size, y - tall], [x + size, y - tall], [x, y + tall]];
      case "reconverge": return [[x - size, y + tall], [x + size, y + tall], [x, y - tall]];
      case "resume": return [[x - size, y - tall], [x + size, y], [x - size, y + tall]];
      case "trap": return [[x - 3, y - 5], [x + 3, y - 5], [x + 3, y + 3], [x - 3, y + 3]];
    }
  }

  /** Returns the text for the events at a step. */
  eventsAt(step: number): string[] {
    const { run } = this;
    const words: string[] = [];
    for (let event = lowerBound(run.eventStep, step); run.eventStep[event] === step; event++) {
      words.push(EVENTS[run.eventKind[event]!]?.name ?? "?");
    }
    return words;
  }

  /** Returns the step with the next or the previous event. */
  eventFrom(step: number, by: 1 | -1): number | undefined {
    const at = this.place(step);
    const places = by > 0 ? this.eventAt.filter((place) => place > at) : this.eventAt.filter((place) => place < at);
    const place = by > 0 ? places[0] : places[places.length - 1];
    return place === undefined ? undefined : this.steps[place];
  }
}

/** Height of the legend and title below a saved picture, in pixels. */
const CAPTION = 38;

/** Downloads a file. */
function save(blob: Blob, name: string): void {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
