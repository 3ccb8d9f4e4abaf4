// An editor with a text area. An element under the text area shows the same text in colours.

import { make } from "../src/dom";
import type { EditorOptions, Mark, TextEditor } from "./text-editor";

export function plainEditor({ label, tokens, changed, moved }: EditorOptions): TextEditor {
  const element = make("div", "plain");
  const behind = make("pre");
  behind.setAttribute("aria-hidden", "true");
  const area = make("textarea");
  area.setAttribute("aria-label", label);
  area.spellcheck = false;
  area.autocapitalize = "off";
  area.wrap = "off";
  element.append(behind, area);
  let marks: Mark[] = [];
  let line = 0;
  let shown = 0;

  const draw = () => {
    behind.replaceChildren();
    let start = 0;
    area.value.split("\n").forEach((text, number) => {
      const row = make("div", number + 1 === shown ? "current" : "");
      const cuts = new Set([0, text.length]);
      const parts = tokens(text);
      const marked = marks.filter(({ from, to }) => from <= start + text.length && to >= start);
      for (const { from, to } of parts) cuts.add(from).add(to);
      for (const { from, to } of marked) {
        cuts.add(Math.max(0, from - start)).add(Math.min(text.length, to - start));
      }
      const places = [...cuts].sort((a, b) => a - b);
      places.slice(1).forEach((to, index) => {
        const from = places[index]!;
        const token = parts.find((part) => part.from <= from && to <= part.to);
        const mark = marked.find((one) => one.from - start <= from && to <= one.to - start);
        const className = [token && `t-${token.kind}`, mark && `m-${mark.severity}`].filter(Boolean).join(" ");
        row.append(className ? make("span", className, text.slice(from, to)) : text.slice(from, to));
      });
      row.append("\n");
      behind.append(row);
      start += text.length + 1;
    });
  };
  const cursor = () => {
    const now = area.value.slice(0, area.selectionStart).split("\n").length;
    if (now !== line) moved?.((line = now));
  };
  area.addEventListener("input", () => {
    shown = 0;
    draw();
    changed();
    cursor();
  });
  area.addEventListener("scroll", () => {
    behind.scrollTop = area.scrollTop;
    behind.scrollLeft = area.scrollLeft;
  });
  for (const event of ["keyup", "click", "focus"]) area.addEventListener(event, cursor);
  return {
    element,
    get text() {
      return area.value;
    },
    set text(text) {
      area.value = text;
      marks = [];
      shown = 0;
      draw();
      changed();
    },
    mark(list) {
      marks = list;
      draw();
    },
    current(number) {
      shown = number;
      draw();
    },
    goTo(at) {
      area.focus();
      area.setSelectionRange(at, at);
      const lines = area.value.slice(0, at).split("\n").length;
      area.scrollTop = (lines - 4) * parseFloat(getComputedStyle(area).lineHeight);
      cursor();
    },
    focus: () => area.focus(),
    change({ from, to, text }) {
      area.setRangeText(text, from, to, "end");
      area.dispatchEvent(new Event("input"));
    },
  };
}
