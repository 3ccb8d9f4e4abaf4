// The editor of CodeMirror. It is a script of its own, `editor.js`, which sets RECONVERGE_EDITOR.

import { autocompletion, completionKeymap, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from "@codemirror/view";
import { make } from "../src/dom";
import type { EditorOptions, TextEditor } from "./text-editor";

/** The colours of the lines that are seen. */
function colours(tokens: EditorOptions["tokens"]) {
  const build = (view: EditorView): DecorationSet => {
    const builder = new RangeSetBuilder<Decoration>();
    for (const { from, to } of view.visibleRanges) {
      for (let at = from; at <= to; ) {
        const line = view.state.doc.lineAt(at);
        for (const token of tokens(line.text)) {
          builder.add(line.from + token.from, line.from + token.to, Decoration.mark({ class: `t-${token.kind}` }));
        }
        at = line.to + 1;
      }
    }
    return builder.finish();
  };
  return ViewPlugin.fromClass(
    class {
      decorations: DecorationSet;
      constructor(view: EditorView) {
        this.decorations = build(view);
      }
      update(update: ViewUpdate) {
        if (update.docChanged || update.viewportChanged) this.decorations = build(update.view);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
}

const setCurrent = StateEffect.define<number>();

/** The line that runs next in the recorded run. */
const current = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(set, transaction) {
    for (const effect of transaction.effects) {
      if (!effect.is(setCurrent)) continue;
      const { doc } = transaction.state;
      if (effect.value < 1 || effect.value > doc.lines) return Decoration.none;
      return Decoration.set(Decoration.line({ class: "current" }).range(doc.line(effect.value).from));
    }
    return transaction.docChanged ? Decoration.none : set;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function editor({ label, tokens, changed, moved, words, forms }: EditorOptions): TextEditor {
  const complete = async (context: CompletionContext) => {
    const word = context.matchBefore(/[\w.]+/);
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, (word?.from ?? context.pos) - line.from);
    // An instruction begins after a label, a predicate, the slot of an ALU group, or the number of a clause's instruction.
    const starts = /^\s*(?:[\w.]+:\s*)?(?:\d+\s+)?(?:\([^)]*\)\s*)?(?:[xyzwt]: *)?(?:(?:join|exit)\s+)?$/.test(before);
    if (!starts || (!word && !context.explicit)) return null;
    const options = (await words!()).map((text) => ({ label: text, type: "keyword" }));
    return { from: word?.from ?? context.pos, options, validFor: /^[\w.]*$/ };
  };
  const hover = hoverTooltip(async (view, at) => {
    const range = view.state.wordAt(at);
    const lines = range ? await forms!(view.state.sliceDoc(range.from, range.to)) : [];
    if (!range || lines.length === 0) return null;
    return { pos: range.from, end: range.to, create: () => ({ dom: make("pre", "forms", lines.join("\n")) }) };
  });
  let line = 0;
  const watch = EditorView.updateListener.of((update) => {
    if (update.docChanged) changed();
    if (!update.selectionSet && !update.docChanged && !update.focusChanged) return;
    const now = update.state.doc.lineAt(update.state.selection.main.head).number;
    if (now !== line || update.focusChanged) moved?.((line = now));
  });
  const view = new EditorView({
    state: EditorState.create({
      extensions: [
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        highlightSelectionMatches(),
        lintGutter(),
        current,
        colours(tokens),
        watch,
        words ? autocompletion({ override: [complete] }) : [],
        forms ? hover : [],
        // Mod-Enter runs the program.
        keymap.of([
          { key: "Mod-Enter", run: () => true },
          ...completionKeymap,
          ...lintKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": label }),
      ],
    }),
  });
  return {
    element: view.dom,
    get text() {
      return view.state.doc.toString();
    },
    set text(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
    },
    mark(marks) {
      const { length } = view.state.doc;
      const inside = marks.map((mark) => ({ ...mark, from: Math.min(mark.from, length), to: Math.min(mark.to, length) }));
      view.dispatch(setDiagnostics(view.state, inside));
    },
    current(number) {
      const effects: StateEffect<unknown>[] = [setCurrent.of(number)];
      if (number >= 1 && number <= view.state.doc.lines) {
        effects.push(EditorView.scrollIntoView(view.state.doc.line(number).from, { y: "nearest", yMargin: 40 }));
      }
      view.dispatch({ effects });
    },
    goTo(at) {
      view.dispatch({ selection: { anchor: Math.min(at, view.state.doc.length) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
  };
}

globalThis.RECONVERGE_EDITOR = editor;
