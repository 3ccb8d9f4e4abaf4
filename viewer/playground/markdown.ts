// The Markdown of explanations: fenced code, tables, lists and paragraphs with `code` and **strong** text.

import { make } from "../src/dom";

/** Adds the text of a line, whose escaped characters are plain. */
function inline(element: HTMLElement, text: string): void {
  for (const [part] of text.matchAll(/`[^`]*`|\*\*.+?\*\*|(?:\\.|[^`*\\])+|[`*\\]/g)) {
    const plain = (marked: string) => marked.replace(/\\(.)/g, "$1");
    if (/^`.*`$/.test(part)) element.append(make("code", "", part.slice(1, -1)));
    else if (/^\*\*.*\*\*$/.test(part)) element.append(make("strong", "", plain(part.slice(2, -2))));
    else element.append(plain(part));
  }
}

function table(rows: string[]): HTMLElement {
  const element = make("table");
  rows.forEach((text, number) => {
    if (/^\|[-|: ]*$/.test(text)) return;
    const row = element.insertRow();
    for (const cell of text.slice(1, -1).split(/(?<!\\)\|/)) {
      const one = make(number === 0 ? "th" : "td");
      inline(one, cell.trim());
      row.append(one);
    }
  });
  return element;
}

/** Returns the elements of a text. */
export function markdown(text: string): HTMLElement[] {
  const elements: HTMLElement[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    const block = (inside: (line: string) => boolean) => {
      const first = at;
      while (at < lines.length && inside(lines[at]!)) at++;
      return lines.slice(first, at);
    };
    const line = lines[at]!;
    if (line.startsWith("```")) {
      at++;
      elements.push(make("pre", "", block((text) => !text.startsWith("```")).join("\n")));
      at++;
    } else if (line.startsWith("|")) {
      elements.push(table(block((text) => text.startsWith("|"))));
    } else if (line.startsWith("- ")) {
      const list = make("ul");
      for (const text of block((text) => text.startsWith("- "))) {
        const entry = make("li");
        inline(entry, text.slice(2));
        list.append(entry);
      }
      elements.push(list);
    } else if (line.trim() === "") {
      at++;
    } else {
      const paragraph = make("p");
      inline(paragraph, block((text) => text.trim() !== "" && !/^(```|\||- )/.test(text)).join(" "));
      elements.push(paragraph);
    }
  }
  return elements;
}
