// The program, with the three counters of each instruction as bars and the hot places beside the scroll bar.

import { address, type Run } from "./data";

export class Listing {
  readonly element = document.createElement("section");
  private readonly rows: HTMLElement[] = [];
  private readonly scroller = document.createElement("div");
  private current = -1;

  constructor(
    private readonly run: Run,
    onPick: (line: number) => void,
  ) {
    const { element, scroller } = this;
    element.className = "listing";
    element.setAttribute("aria-label", "Program");
    const head = document.createElement("div");
    head.className = "row head";
    head.innerHTML =
      "<span class=at>address</span><span class=code>instruction</span>" +
      "<span class=count title='issued to a group'>executed</span>" +
      "<span class=count title='of those, summed over the lanes that took part'>lanes</span>" +
      "<span class=count title='decisions that split the lanes'>diverged</span>";
    scroller.className = "scroller";
    scroller.tabIndex = 0;
    const most = [0, 1, 2].map((counter) => Math.max(1, ...run.counts.map((counts) => counts[counter] ?? 0)));
    const hot = document.createElement("div");
    hot.className = "hot";
    run.listing.forEach((line, number) => {
      const row = document.createElement("div");
      row.className = "row";
      row.dataset["line"] = String(number);
      if (line.label) {
        const label = document.createElement("div");
        label.className = "label";
        label.textContent = `${line.label}:`;
        scroller.append(label);
      }
      const at = document.createElement("span");
      at.className = "at";
      at.textContent = address(run, line.address);
      const code = document.createElement("span");
      code.className = "code";
      code.style.paddingLeft = `${line.depth * 1.2}em`;
      code.textContent = line.text;
      code.title = [line.words, ...(line.notes ?? [])].join("\n");
      row.append(at, code);
      const counts = run.counts[number] ?? [];
      for (let counter = 0; counter < 3; counter++) {
        const cell = document.createElement("span");
        cell.className = `count c${counter}`;
        const value = counts[counter] ?? 0;
        if (value > 0) {
          cell.textContent = value.toLocaleString("en");
          cell.style.setProperty("--part", String(value / most[counter]!));
        }
        row.append(cell);
      }
      const executed = counts[0] ?? 0;
      if (executed > 0) {
        const mark = document.createElement("i");
        mark.style.top = `${(number / run.listing.length) * 100}%`;
        mark.style.opacity = String(0.15 + (0.85 * (counts[1] ?? 0)) / most[1]!);
        if ((counts[2] ?? 0) > 0) mark.className = "split";
        hot.append(mark);
      } else {
        row.classList.add("never");
      }
      row.addEventListener("click", () => onPick(number));
      this.rows.push(row);
      scroller.append(row);
    });
    const body = document.createElement("div");
    body.className = "body";
    body.append(scroller, hot);
    element.append(head, body);
  }

  /** Marks a line and shows it. */
  mark(line: number): void {
    if (line === this.current) return;
    this.rows[this.current]?.classList.remove("current");
    this.current = line;
    const row = this.rows[line];
    row?.classList.add("current");
    row?.scrollIntoView({ block: "nearest" });
  }

  /** Marks the lines whose text has a word; gives their numbers. */
  search(word: string): number[] {
    const wanted = word.trim().toLowerCase();
    const found: number[] = [];
    this.run.listing.forEach((line, number) => {
      const text = `${address(this.run, line.address)} ${line.label ?? ""} ${line.text} ${line.words}`.toLowerCase();
      const hit = wanted !== "" && text.includes(wanted);
      this.rows[number]?.classList.toggle("found", hit);
      if (hit) found.push(number);
    });
    return found;
  }
}
