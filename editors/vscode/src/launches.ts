// Launches of a source: a launch file that names it, or the source with options.
import { basename } from "node:path";

/** A launch: FILE of `reconverge run`, and its options. */
export interface Launch {
  program: string;
  args: string[];
}

/** A parameter of a kernel, as `reconverge list --json` shows it. */
export interface Parameter {
  name: string | null;
  bytes: number;
}

/** A program of a file, as `reconverge list --json` shows it. */
export interface Listed {
  isa: string;
  stage: string | null;
  parameters: Parameter[];
}

/** Whether the text of a launch file names a source in its own folder as its program. */
export function launches(text: string, source: string): boolean {
  const program = /^[ \t]*program[ \t]*=[ \t]*(?:"([^"\n]*)"|'([^'\n]*)')/m.exec(text);
  const path = program?.[1] ?? program?.[2];
  return path?.replace(/^\.\//, "") === basename(source);
}

/** Options to begin with for a program that needs some, else nothing: each parameter of a kernel gets a buffer. */
export function suggested(programs: Listed[]): string {
  const kernel = programs.find(({ isa, stage }) => isa === "tesla" && (stage === "compute" || stage === null));
  if (!kernel || kernel.parameters.length === 0) return "";
  const buffers = kernel.parameters.map(({ name }, at) => `--buf ${name ?? `p${at}`}=u32[32]`);
  return ["--block 32", ...buffers].join(" ");
}

/** Splits options into words as a shell does: spaces separate, quotation marks keep them. Throws if a mark is not closed. */
export function words(line: string): string[] {
  const found: string[] = [];
  const shape = /\s*((?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+)/gy;
  let end = 0;
  for (let match = shape.exec(line); match; match = shape.exec(line)) {
    end = shape.lastIndex;
    found.push((match[1] ?? "").replace(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/g, (_all, one?: string, two?: string, three?: string) =>
      one ?? two?.replace(/\\(.)/g, "$1") ?? three ?? ""));
  }
  if (line.slice(end).trim() !== "") throw new Error(`the quotation mark in \`${line.slice(end).trim()}\` is not closed`);
  return found;
}
