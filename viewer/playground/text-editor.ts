// What the playground needs of an editor. `editor.js`, where it is there, has one made of CodeMirror (codemirror.ts); `plain.ts`
// has one that is a text area.

import type { Token } from "./tokens";

/** A message about a place of a text, in UTF-16 code units. */
export interface Mark {
  severity: "error" | "warning";
  from: number;
  to: number;
  message: string;
}

export interface EditorOptions {
  /** The name of the text for people who do not see it. */
  label: string;
  tokens: (line: string) => Token[];
  /** Called after the text has changed. */
  changed: () => void;
  /** Called after the cursor has moved to another line, from 1. */
  moved?: (line: number) => void;
  /** Words that fit at the start of an instruction. */
  words?: () => Promise<string[]>;
  /** Legal forms of a word of the text, a line each; empty for another word. */
  forms?: (word: string) => Promise<string[]>;
}

export interface TextEditor {
  readonly element: HTMLElement;
  text: string;
  /** Replaces all marks. */
  mark(marks: Mark[]): void;
  /** Shows a line, from 1, as the one that runs next; none for 0. */
  current(line: number): void;
  /** Puts the cursor at a place. */
  goTo(at: number): void;
  focus(): void;
}

export type MakeEditor = (options: EditorOptions) => TextEditor;

declare global {
  // eslint-disable-next-line no-var
  var RECONVERGE_EDITOR: MakeEditor | undefined;
}
