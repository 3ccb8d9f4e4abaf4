// The interface of an editor. `editor.js` has one with CodeMirror (codemirror.ts); without that script, the page uses a text area
// (plain.ts).

import type { Token } from "./tokens";

/** A message about a range of a text, in UTF-16 code units. */
export interface Mark {
  severity: "error" | "warning" | "info";
  from: number;
  to: number;
  message: string;
  fixes: Fix[];
}

/** A change of the text that fixes the problem of a message. */
export interface Fix {
  title: string;
  from: number;
  to: number;
  text: string;
}

/** A completion at a position. */
export interface Proposal {
  kind: "mnemonic" | "form" | "directive" | "word" | "register" | "name";
  label: string;
  detail: string;
  /** First UTF-16 code unit of the part that it replaces; the last is at the cursor. */
  from: number;
  text: string;
}

/** The explanation of a part of the text. */
export interface Hovered {
  from: number;
  to: number;
  markdown: string;
}

export interface EditorOptions {
  /** The name of the text, for screen readers. */
  label: string;
  tokens: (line: string) => Token[];
  /** Called after the text has changed. */
  changed: () => void;
  /** Called after the cursor has moved to another line, from 1. */
  moved?: (line: number) => void;
  complete?: (at: number) => Promise<Proposal[]>;
  hover?: (at: number) => Promise<Hovered | null>;
}

export interface TextEditor {
  readonly element: HTMLElement;
  text: string;
  /** Replaces all marks. */
  mark(marks: Mark[]): void;
  /** Shows a line, from 1, as the one that runs next; none for 0. */
  current(line: number): void;
  /** Moves the cursor to a position. */
  goTo(at: number): void;
  focus(): void;
  /** Replaces a part of the text. */
  change(fix: Fix): void;
}

export type MakeEditor = (options: EditorOptions) => TextEditor;

declare global {
  var RECONVERGE_EDITOR: MakeEditor | undefined;
}
