// The lanes of a group against its steps, coloured by state. Pan by dragging, zoom with the wheel or + and -.

import { address, EVENTS, lowerBound, patterned, STATES, type Run } from "./data";
import { make } from "./dom";

const AXIS = 26;
const GUTTER = 30;
/** Pixels of a step, at most. */
const WIDEST = 24;
const EVENT_COLOURS = { light: ["#b34700", "#00785a", "#b00020"], dark: ["#ff9e57", "#3ddcb0", "#ff8a80"] };

type Colour = [number, number, number];

function rgb(colour: string): Colour {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** As a pixel of an image. */
function pixel([r, g, b]: Colour): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** The colour of a state's pattern on its own colour. */
function marked([r, g, b]: Colour): Colour {
  return [r * 0.6, g * 0.6, b * 0.6];
}

/** A small picture of a state, for legends. */
export function swatch(state: number, dark: boolean): HTMLCanvasElement {
  const canvas = make("canvas", "swatch");
  canvas.width = canvas.height = 14;
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d")!;
  for (let y = 0; y < 14; y++) {
    for (let x = 0; x < 14; x++) {
      const base = rgb(dark ? STATES[state]!.dark : STATES[state]!.light);
      context.fillStyle = `rgb(${patterned(state, x, y) ? marked(base) : base})`;
      context.fillRect(x, y, 1, 1);
    }
  }
  return canvas;
}

export class Timeline {
  readonly canvas = make("canvas", "timeline");
  /** The first step shown, and steps a pixel. */
  private left = 0;
  private scale = 1;
  private steps: Int32Array = new Int32Array();
  /** The events of the group: places among its steps, and kinds. */
  private eventAt: number[] = [];
  private eventKind: number[] = [];
  private cursor = 0;
  private lane = -1;
  private dragged: { x: number; left: number; moved: boolean } | null = null;
  private frame = 0;
  /** Whether all steps are shown, whatever the size of the canvas. */
  private fitted = true;

  constructor(
    private readonly run: Run,
    private group: number,
    private readonly onPick: (step: number, lane: number) => void,
  ) {
    const { canvas } = this;
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
    new ResizeObserver(() => this.resize()).observe(canvas);
  }

  /** The step and the lane at a place of the canvas. */
  private under(event: PointerEvent): { step: number | undefined; lane: number } {
    const at = Math.floor(this.left + (event.offsetX - GUTTER) * this.scale);
    const row = (this.canvas.clientHeight - AXIS) / this.run.lanes_per_group;
    const lane = Math.floor((event.offsetY - AXIS) / row);
    return { step: this.steps[Math.max(0, Math.min(this.steps.length - 1, at))], lane };
  }

  private hover(event: PointerEvent): void {
    const { step, lane } = this.under(event);
    const { run } = this;
    if (step === undefined) return;
    const line = run.listing[run.line[step]!];
    const why = run.whys[run.vectors[run.vector[step]!]?.[lane] ?? -1];
    const at = `step ${step} at ${address(run, line?.address ?? 0)}: ${line?.text ?? ""}`;
    this.canvas.title = why ? `${at}\nlane ${lane}: ${why.text}: ${why.more}` : at;
  }

  private width(): number {
    return Math.max(1, this.canvas.clientWidth - GUTTER);
  }

  private resize(): void {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
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

  /** Steps a pixel when all are shown. */
  private most(): number {
    return Math.max(this.steps.length / this.width(), 1 / WIDEST);
  }

  /** What is visible, in steps of the group. */
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
  mark(step: number, lane: number): void {
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

  private paint(): void {
    const { canvas, run } = this;
    const context = canvas.getContext("2d");
    if (!context || canvas.width < 2) return;
    const style = getComputedStyle(canvas);
    const dark = style.getPropertyValue("--dark").trim() === "1";
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    const lanes = run.lanes_per_group;
    const columns = Math.max(1, Math.floor(this.width()));
    const height = Math.max(1, Math.floor(canvas.clientHeight - AXIS));
    const row = height / lanes;
    const letters = 1 / this.scale >= 10 && row >= 10;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = style.getPropertyValue("--paper");
    context.fillRect(0, 0, canvas.width, canvas.height);
    const small = new OffscreenCanvas(columns, height);
    small.getContext("2d")!.putImageData(this.cells(columns, height, dark, !letters), 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, GUTTER, AXIS, columns, height);
    const ink = style.getPropertyValue("--ink");
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    if (row >= 4) {
      context.fillStyle = style.getPropertyValue("--paper");
      for (let lane = 1; lane < lanes; lane++) context.fillRect(GUTTER, AXIS + Math.floor(lane * row), columns, 1);
    }
    if (letters) this.letters(context, columns, row, dark);
    context.fillStyle = ink;
    const every = row >= 11 ? 1 : row >= 5 ? 4 : 8;
    context.textAlign = "right";
    for (let lane = 0; lane < lanes; lane += every) {
      context.fillText(String(lane), GUTTER - 5, AXIS + (lane + 0.5) * row);
    }
    this.axis(context, columns, ink, dark);
    // The step, and the lane.
    context.fillStyle = context.strokeStyle = ink;
    const at = GUTTER + (this.place(this.cursor) - this.left) / this.scale;
    const wide = 1 / this.scale;
    context.lineWidth = 2;
    if (at >= GUTTER - 1 && at <= GUTTER + columns) {
      if (wide >= 5) context.strokeRect(at, AXIS - 8, wide, height + 8);
      else context.fillRect(at + wide / 2 - 1, AXIS - 8, 2, height + 8);
    }
    if (this.lane >= 0) context.strokeRect(1, AXIS + this.lane * row + 1, GUTTER - 2, Math.max(3, row - 2));
  }

  /** The cells as pixels. A column of several steps mixes the colours of up to eight of them. */
  private cells(columns: number, height: number, dark: boolean, patterns: boolean): ImageData {
    const { run, steps } = this;
    const lanes = run.lanes_per_group;
    const colours = STATES.map((state) => rgb(dark ? state.dark : state.light));
    const plain = colours.map(pixel);
    const strokes = colours.map((colour) => pixel(marked(colour)));
    const image = new ImageData(columns, height);
    const pixels = new Uint32Array(image.data.buffer);
    // The samples stand at multiples of a power of two, so that they stay the same while the picture moves.
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
          only = samples === 0 || only === state ? state : -1;
          const colour = colours[state]!;
          r += colour[0];
          g += colour[1];
          b += colour[2];
          samples++;
        }
        const top = Math.floor((lane * height) / lanes);
        const bottom = Math.floor(((lane + 1) * height) / lanes);
        const mixed = only < 0 ? pixel([r / samples, g / samples, b / samples]) : plain[only]!;
        for (let y = top; y < bottom; y++) {
          const stroke = patterns && only >= 0 && patterned(only, x, y - top);
          pixels[y * columns + x] = stroke ? strokes[only]! : mixed;
        }
      }
    }
    return image;
  }

  /** The letters of the states, where a step has room for one. */
  private letters(context: CanvasRenderingContext2D, columns: number, row: number, dark: boolean): void {
    const { run, steps } = this;
    context.textAlign = "center";
    for (let at = Math.floor(this.left); at < Math.min(steps.length, this.left + columns * this.scale); at++) {
      const x = GUTTER + (at + 0.5 - this.left) / this.scale;
      if (x < GUTTER) continue;
      run.states[run.vector[steps[at]!]!]?.forEach((state, lane) => {
        const [r, g, b] = rgb(dark ? STATES[state]!.dark : STATES[state]!.light);
        context.fillStyle = 0.3 * r + 0.6 * g + 0.1 * b > 120 ? "#000000" : "#ffffff";
        context.fillText(STATES[state]!.letter, x, AXIS + (lane + 0.5) * row);
      });
    }
  }

  /** The axis, and what happened to the flow: ▼ diverge, ▲ reconverge, ✕ trap. */
  private axis(context: CanvasRenderingContext2D, columns: number, ink: string, dark: boolean): void {
    const { steps, eventAt, eventKind } = this;
    context.fillStyle = ink;
    context.textAlign = "left";
    const span = columns * this.scale;
    const rough = Math.max(1, span / Math.max(2, columns / 90));
    const power = 10 ** Math.floor(Math.log10(rough));
    const unit = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
    for (let at = Math.ceil(this.left / unit) * unit; at < Math.min(steps.length, this.left + span); at += unit) {
      const x = GUTTER + (at - this.left) / this.scale;
      context.fillRect(x, 0, 1, 12);
      context.fillText(String(steps[at]), x + 3, 7);
    }
    const colours = EVENT_COLOURS[dark ? "dark" : "light"];
    let drawn = [-Infinity, -Infinity, -Infinity];
    for (let event = 0; event < eventAt.length; event++) {
      const x = GUTTER + (eventAt[event]! + 0.5 - this.left) / this.scale;
      if (x < GUTTER || x > GUTTER + columns) continue;
      const kind = eventKind[event]!;
      if (x - drawn[kind]! < 1) continue;
      drawn[kind] = x;
      context.fillStyle = colours[kind] ?? ink;
      const size = Math.max(1.5, Math.min(4, 0.5 / this.scale));
      const y = kind === 0 ? AXIS - 11 : AXIS - 4;
      context.beginPath();
      if (kind === 0) context.moveTo(x - size, y), context.lineTo(x + size, y), context.lineTo(x, y + 5);
      else if (kind === 1) context.moveTo(x - size, y + 3), context.lineTo(x + size, y + 3), context.lineTo(x, y - 2);
      else context.rect(x - 3, AXIS - 12, 6, 11);
      context.fill();
    }
  }

  /** The words for the events at a step. */
  eventsAt(step: number): string[] {
    const { run } = this;
    const words: string[] = [];
    for (let event = lowerBound(run.eventStep, step); run.eventStep[event] === step; event++) {
      words.push(EVENTS[run.eventKind[event]!] ?? "?");
    }
    return words;
  }

  /** The step with the next event, or with the one before. */
  eventFrom(step: number, by: 1 | -1): number | undefined {
    const at = this.place(step);
    const places = by > 0 ? this.eventAt.filter((place) => place > at) : this.eventAt.filter((place) => place < at);
    const place = by > 0 ? places[0] : places[places.length - 1];
    return place === undefined ? undefined : this.steps[place];
  }
}
