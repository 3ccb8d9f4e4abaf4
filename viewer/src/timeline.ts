// The lanes of a group against its steps, coloured by state. Pan by dragging, zoom with the wheel or + and -.

import { EVENTS, lowerBound, STATES, type Run } from "./data";

const AXIS = 18;
const GUTTER = 34;
const EVENT_COLOURS = ["#d55e00", "#009e73", "#cc0000"];

function rgb(colour: string): [number, number, number] {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export class Timeline {
  readonly canvas = document.createElement("canvas");
  /** The first step shown, and steps a pixel. */
  private left = 0;
  private scale = 1;
  private steps: Int32Array;
  private cursor = 0;
  private dragged: { x: number; left: number; moved: boolean } | null = null;
  private frame = 0;
  /** Whether all steps are shown, whatever the size of the canvas. */
  private fitted = true;

  constructor(
    private readonly run: Run,
    private group: number,
    private readonly onPick: (step: number) => void,
  ) {
    this.steps = run.stepsOf[group] ?? new Int32Array();
    const { canvas } = this;
    canvas.className = "timeline";
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
      if (!dragged) return;
      const by = event.offsetX - dragged.x;
      if (Math.abs(by) > 3) dragged.moved = true;
      if (dragged.moved) this.moveTo(dragged.left - by * this.scale);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (this.dragged && !this.dragged.moved) {
        const at = Math.floor(this.left + (event.offsetX - GUTTER) * this.scale);
        const step = this.steps[Math.max(0, Math.min(this.steps.length - 1, at))];
        if (step !== undefined) this.onPick(step);
      }
      this.dragged = null;
    });
    new ResizeObserver(() => this.resize()).observe(canvas);
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
    this.group = group;
    this.steps = this.run.stepsOf[group] ?? new Int32Array();
    this.fit();
  }

  /** Shows all steps. */
  fit(): void {
    this.fitted = true;
    this.left = 0;
    this.scale = Math.max(this.steps.length / this.width(), 1 / 24);
    this.draw();
  }

  /** What is visible, in steps of the group: for tests and for the slider. */
  get view(): { left: number; scale: number; steps: number; group: number } {
    return { left: this.left, scale: this.scale, steps: this.steps.length, group: this.group };
  }

  zoom(by: number, around?: number): void {
    const at = around === undefined ? this.place(this.cursor) : this.left + (around - GUTTER) * this.scale;
    const widest = Math.max(this.steps.length / this.width(), 1 / 24);
    const scale = Math.min(widest, Math.max(1 / 24, this.scale * by));
    this.fitted = scale === widest;
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

  /** Marks a step, and shows it if it is not visible. */
  mark(step: number): void {
    this.cursor = step;
    const at = this.place(step);
    const end = this.left + this.width() * this.scale;
    if (at < this.left || at >= end) this.left = at - (this.width() * this.scale) / 2;
    this.moveTo(this.left);
  }

  private draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const { canvas, run, steps } = this;
    const context = canvas.getContext("2d");
    if (!context || canvas.width < 2) return;
    const style = getComputedStyle(canvas);
    const dark = style.getPropertyValue("--dark").trim() === "1";
    const ratio = canvas.width / Math.max(1, canvas.clientWidth);
    const lanes = run.lanes_per_group;
    const palette = STATES.map((state) => rgb(dark ? state.dark : state.light));
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = style.getPropertyValue("--paper");
    context.fillRect(0, 0, canvas.width, canvas.height);
    const columns = Math.max(1, Math.floor(this.width()));
    const height = canvas.clientHeight - AXIS;
    // One pixel a lane and column; drawn larger below. A column of several steps mixes the colours of up to eight.
    const image = new ImageData(columns, lanes);
    const pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < columns; x++) {
      const from = this.left + x * this.scale;
      const first = Math.floor(from);
      if (first >= steps.length) break;
      const last = Math.max(first, Math.min(steps.length - 1, Math.ceil(from + this.scale) - 1));
      const samples = Math.min(8, last - first + 1);
      for (let lane = 0; lane < lanes; lane++) {
        let r = 0;
        let g = 0;
        let b = 0;
        for (let sample = 0; sample < samples; sample++) {
          const at = first + Math.floor((sample * (last - first + 1)) / samples);
          const state = run.states[run.vector[steps[at]!]!]?.[lane] ?? 6;
          const colour = palette[state]!;
          r += colour[0];
          g += colour[1];
          b += colour[2];
        }
        pixels[lane * columns + x] =
          (255 << 24) | ((b / samples) << 16) | ((g / samples) << 8) | (r / samples);
      }
    }
    const small = new OffscreenCanvas(columns, lanes);
    small.getContext("2d")!.putImageData(image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, GUTTER, AXIS, columns, height);
    const ink = style.getPropertyValue("--ink");
    context.fillStyle = ink;
    context.strokeStyle = style.getPropertyValue("--rule");
    context.font = "11px ui-monospace, monospace";
    context.textBaseline = "middle";
    const row = height / lanes;
    if (row >= 4) {
      context.beginPath();
      for (let lane = 1; lane < lanes; lane++) {
        context.moveTo(GUTTER, AXIS + lane * row);
        context.lineTo(GUTTER + columns, AXIS + lane * row);
      }
      context.stroke();
    }
    const every = row >= 11 ? 1 : row >= 5 ? 4 : 8;
    context.textAlign = "right";
    for (let lane = 0; lane < lanes; lane += every) {
      context.fillText(String(lane), GUTTER - 5, AXIS + (lane + 0.5) * row);
    }
    // Letters of the states where a step has room for one.
    if (1 / this.scale >= 10 && row >= 10) {
      context.textAlign = "center";
      context.fillStyle = dark ? "#000000" : "#ffffff";
      for (let at = Math.floor(this.left); at < Math.min(steps.length, this.left + columns * this.scale); at++) {
        for (let lane = 0; lane < lanes; lane++) {
          const state = STATES[run.states[run.vector[steps[at]!]!]?.[lane] ?? 6]!;
          context.fillText(state.letter, GUTTER + (at + 0.5 - this.left) / this.scale, AXIS + (lane + 0.5) * row);
        }
      }
      context.fillStyle = ink;
    }
    // The axis, and what happened to the flow.
    context.textAlign = "left";
    const span = columns * this.scale;
    const unit = 10 ** Math.max(0, Math.ceil(Math.log10(Math.max(1, span / 8))));
    for (let at = Math.ceil(this.left / unit) * unit; at < this.left + span; at += unit) {
      const x = GUTTER + (at - this.left) / this.scale;
      context.fillRect(x, AXIS - 4, 1, 4);
      context.fillText(String(steps[at] ?? ""), x + 3, AXIS / 2);
    }
    if (this.scale <= 4) {
      const first = steps[Math.floor(this.left)] ?? 0;
      const end = this.left + span;
      for (let event = lowerBound(run.eventStep, first); event < run.eventStep.length; event++) {
        const step = run.eventStep[event]!;
        const at = this.place(step);
        if (at >= end) break;
        if (steps[at] !== step) continue;
        context.fillStyle = EVENT_COLOURS[run.eventKind[event]!] ?? ink;
        context.fillRect(GUTTER + (at + 1 - this.left) / this.scale - 1, AXIS - 8, 2, 8);
      }
    }
    const cursor = GUTTER + (this.place(this.cursor) + 0.5 - this.left) / this.scale;
    if (cursor >= GUTTER) {
      context.fillStyle = ink;
      context.fillRect(cursor - 1, 0, 2, canvas.clientHeight);
    }
  }

  /** The words for the event at a step, if it has one. */
  eventsAt(step: number): string[] {
    const { run } = this;
    const words: string[] = [];
    for (let event = lowerBound(run.eventStep, step); run.eventStep[event] === step; event++) {
      words.push(EVENTS[run.eventKind[event]!] ?? "?");
    }
    return words;
  }

  /** Draws again, after the colours have changed. */
  redraw(): void {
    this.draw();
  }
}
