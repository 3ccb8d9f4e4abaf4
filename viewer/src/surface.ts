// Surfaces on which a timeline draws: a canvas, or an SVG text.

import { patterned, STATES } from "./data";
import { make } from "./dom";

export type Colour = [number, number, number];

export function rgb(colour: string): Colour {
  const value = parseInt(colour.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** The colours of the states. */
export function stateColours(dark: boolean): Colour[] {
  return STATES.map((state) => rgb(dark ? state.dark : state.light));
}

/** The colour in which the pattern of a state is drawn on the colour of the state. */
export function marked([r, g, b]: Colour): Colour {
  return [r * 0.6, g * 0.6, b * 0.6];
}

/** Black or white, depending on which has more contrast to a colour. */
export function readable([r, g, b]: Colour): string {
  return 0.3 * r + 0.6 * g + 0.1 * b > 120 ? "#000000" : "#ffffff";
}

/** A small picture of a state, for legends. */
export function swatch(state: number, dark: boolean): HTMLCanvasElement {
  const canvas = make("canvas", "swatch");
  canvas.width = canvas.height = 14;
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d")!;
  const base = stateColours(dark)[state]!;
  for (let y = 0; y < 14; y++) {
    for (let x = 0; x < 14; x++) {
      context.fillStyle = `rgb(${patterned(state, x, y) ? marked(base) : base})`;
      context.fillRect(x, y, 1, 1);
    }
  }
  return canvas;
}

/** The cells of a timeline. Each pixel column has, for each lane, a state or a mixture of colours. */
export interface Cells {
  columns: number;
  lanes: number;
  /** The state by column and lane, `MIXED` if several steps of a column differ, `NONE` after the end. */
  state: Int8Array;
  /** The colour of each mixture, as 0xrrggbb. */
  mixture: Uint32Array;
}

export const MIXED = -1;
export const NONE = -2;

export interface Surface {
  rect(x: number, y: number, width: number, height: number, colour: string): void;
  frame(x: number, y: number, width: number, height: number, colour: string): void;
  polygon(points: [number, number][], colour: string): void;
  text(text: string, x: number, y: number, colour: string, size: number, align: "left" | "center" | "right"): void;
  /** Draws cells into a rectangle, optionally with the patterns of the states. */
  cells(cells: Cells, x: number, y: number, height: number, dark: boolean, patterns: boolean): void;
}

/** A colour as a pixel of an image. */
function pixel([r, g, b]: Colour): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export class CanvasSurface implements Surface {
  constructor(private readonly context: CanvasRenderingContext2D) {
    context.textBaseline = "middle";
    context.imageSmoothingEnabled = false;
  }

  rect(x: number, y: number, width: number, height: number, colour: string): void {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, height);
  }

  frame(x: number, y: number, width: number, height: number, colour: string): void {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(x, y, width, height);
  }

  polygon(points: [number, number][], colour: string): void {
    const { context } = this;
    context.fillStyle = colour;
    context.beginPath();
    for (const [x, y] of points) context.lineTo(x, y);
    context.fill();
  }

  text(text: string, x: number, y: number, colour: string, size: number, align: CanvasTextAlign): void {
    const { context } = this;
    context.font = `${size}px ui-monospace, monospace`;
    context.fillStyle = colour;
    context.textAlign = align;
    context.fillText(text, x, y);
  }

  cells({ columns, lanes, state, mixture }: Cells, left: number, top: number, height: number, dark: boolean, patterns: boolean): void {
    const colours = stateColours(dark);
    const plain = colours.map(pixel);
    const strokes = colours.map((colour) => pixel(marked(colour)));
    const image = new ImageData(columns, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < columns; x++) {
      for (let lane = 0; lane < lanes; lane++) {
        const cell = x * lanes + lane;
        const only = state[cell]!;
        if (only === NONE) continue;
        const from = Math.floor((lane * height) / lanes);
        const to = Math.floor(((lane + 1) * height) / lanes);
        const mixed = mixture[cell]!;
        const whole = only === MIXED ? pixel([mixed >> 16, (mixed >> 8) & 255, mixed & 255]) : plain[only]!;
        for (let y = from; y < to; y++) {
          const stroke = patterns && only !== MIXED && patterned(only, x, y - from);
          pixels[y * columns + x] = stroke ? strokes[only]! : whole;
        }
      }
    }
    const small = new OffscreenCanvas(columns, height);
    small.getContext("2d")!.putImageData(image, 0, 0);
    this.context.drawImage(small, left, top, columns, height);
  }
}

/** Collects the elements of an SVG picture. */
export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private readonly used = new Set<number>();

  rect(x: number, y: number, width: number, height: number, colour: string): void {
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="${colour}"/>`);
  }

  frame(x: number, y: number, width: number, height: number, colour: string): void {
    this.parts.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" fill="none" stroke="${colour}" stroke-width="2"/>`);
  }

  polygon(points: [number, number][], colour: string): void {
    this.parts.push(`<polygon points="${points.map((point) => point.map(n).join(",")).join(" ")}" fill="${colour}"/>`);
  }

  text(text: string, x: number, y: number, colour: string, size: number, align: "left" | "center" | "right"): void {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const escaped = text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`);
    this.parts.push(`<text x="${n(x)}" y="${n(y)}" font-size="${n(size)}" text-anchor="${anchor}" fill="${colour}">${escaped}</text>`);
  }

  /** Consecutive cells of one state become one rectangle. */
  cells({ columns, lanes, state, mixture }: Cells, left: number, top: number, height: number, dark: boolean, patterns: boolean): void {
    const colours = stateColours(dark).map(hex);
    for (let lane = 0; lane < lanes; lane++) {
      const y = top + Math.floor((lane * height) / lanes);
      const tall = top + Math.floor(((lane + 1) * height) / lanes) - y;
      for (let x = 0; x < columns; ) {
        const only = state[x * lanes + lane]!;
        const mixed = mixture[x * lanes + lane]!;
        let end = x + 1;
        while (end < columns && state[end * lanes + lane] === only && mixture[end * lanes + lane] === mixed) end++;
        if (only !== NONE) {
          this.rect(left + x, y, end - x, tall, only === MIXED ? `#${mixed.toString(16).padStart(6, "0")}` : colours[only]!);
          if (patterns && only !== MIXED && hasPattern(only)) {
            this.used.add(only);
            this.rect(left + x, y, end - x, tall, `url(#state${only})`);
          }
        }
        x = end;
      }
    }
  }

  /** The picture. */
  document(width: number, height: number, dark: boolean): string {
    const patterns = [...this.used].map((state) => pattern(state, dark)).join("");
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" ` +
      `font-family="ui-monospace, monospace" dominant-baseline="central"><defs>${patterns}</defs>${this.parts.join("")}</svg>\n`;
  }
}

/** A length, to a tenth of a pixel. */
function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function hex(colour: Colour): string {
  return `#${colour.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}

/** Period of every pattern, in pixels. */
const PERIOD = 12;

function hasPattern(state: number): boolean {
  return [...Array(PERIOD).keys()].some((x) => patterned(state, x, 0));
}

function pattern(state: number, dark: boolean): string {
  const colour = hex(marked(stateColours(dark)[state]!));
  let dots = "";
  for (let y = 0; y < PERIOD; y++) {
    for (let x = 0; x < PERIOD; x++) if (patterned(state, x, y)) dots += `M${x} ${y}h1v1h-1z`;
  }
  return `<pattern id="state${state}" width="${PERIOD}" height="${PERIOD}" patternUnits="userSpaceOnUse"><path d="${dots}" fill="${colour}"/></pattern>`;
}
