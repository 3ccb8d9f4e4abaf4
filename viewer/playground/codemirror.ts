// The editor with CodeMirror, as a separate script, `editor.js`. The script sets RECONVERGE_EDITOR.

import { autocompletion, completionKeymap, type Completion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
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
import { markdown } from "./markdown";
import type { EditorOptions, Fix, TextEditor } from "./text-editor";

/** The colours of the visible lines. */
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

/** The icons of completions. */
const KINDS = { mnemonic: "function", form: "text", directive: "keyword", word: "constant", register: "variable", name: "namespace" };

function editor({ label, tokens, changed, moved, complete, hover }: EditorOptions): TextEditor {
  const proposals = async (context: CompletionContext) => {
    const { pos, explicit } = context;
    if (!explicit && !context.matchBefore(/[\w.$@]/)) return null;
    const found = await complete!(pos);
    const options = found.map(({ kind, label, detail, text }): Completion => ({ label, detail, apply: text, type: KINDS[kind] }));
    return { from: found[0]?.from ?? pos, options, validFor: /^[\w.$]*$/ };
  };
  const explained = hoverTooltip(async (_, at) => {
    const found = await hover!(at);
    if (!found) return null;
    const dom = make("div", "explained");
    dom.append(...markdown(found.markdown));
    return { pos: found.from, end: found.to, create: () => ({ dom }) };
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
        complete ? autocompletion({ override: [proposals] }) : [],
        hover ? explained : [],
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
  const change = ({ from, to, text }: Fix) => view.dispatch({ changes: { from, to, insert: text } });
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
      const inside = marks.map(({ severity, from, to, message, fixes }): Diagnostic => ({
        severity,
        from: Math.min(from, length),
        to: Math.min(to, length),
        message,
        actions: fixes.map((fix) => ({ name: fix.title, apply: () => change(fix) })),
      }));
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
    change,
  };
}

globalThis.RECONVERGE_EDITOR = editor;
