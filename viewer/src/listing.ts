// The program. Each instruction shows three counts as bars, and the scroll bar marks the lines with the highest counts.

import { address, type Line, type Run } from "./data";
import { make } from "./dom";

const COUNTERS = [
  ["executed", "number of issues to a group"],
  ["lanes executed", "number of issues, summed over the active lanes"],
  ["diverged", "number of times that lanes diverged"],
] as const;

export class Listing {
  readonly element = make("section", "listing");
  private readonly rows: HTMLElement[] = [];
  private readonly labels: HTMLElement[] = [];
  private readonly scroller = make("div", "scroller");
  private readonly hot = make("div", "hot");
  private readonly thumb = make("b");
  private current = -1;
  private asWritten: boolean;
  /** The largest value of each of the three counts. */
  private readonly most: number[];

  constructor(
    private readonly run: Run,
    private readonly onPick: (line: number) => void,
  ) {
    const { element, scroller, hot, thumb } = this;
    element.setAttribute("aria-label", "Program");
    this.asWritten = this.isWritten;
    const head = make("div", "row head");
    head.append(make("span", "at", "address"), make("span", "code", "instruction"));
    for (const [name, what] of COUNTERS) {
      const cell = make("span", "count", name);
      cell.title = what;
      head.append(cell);
    }
    scroller.tabIndex = 0;
    scroller.setAttribute("role", "listbox");
    scroller.setAttribute("aria-label", "Instructions: up and down choose one, Enter goes to its next step");
    this.most = COUNTERS.map((_, counter) => run.counts.reduce((most, counts) => Math.max(most, counts[counter] ?? 0), 1));
    const { most } = this;
    const trapped = run.outcome.trap?.address;
    run.listing.forEach((line, number) => {
      const label = make("div", "label");
      this.labels.push(label);
      const row = make("div", "row");
      row.dataset["line"] = String(number);
      row.setAttribute("role", "option");
      const code = make("span", "code");
      code.style.paddingLeft = `${line.depth * 1.2 + 1}em`;
      row.append(make("span", "at", address(run, line.address)), code);
      const counts = run.counts[number] ?? [];
      COUNTERS.forEach(([name], counter) => {
        const cell = make("span", `count c${counter}`);
        const value = counts[counter] ?? 0;
        if (value > 0) {
          cell.textContent = value.toLocaleString("en");
          cell.style.setProperty("--part", String(value / most[counter]!));
          cell.title = `${name}: ${value.toLocaleString("en")}`;
        }
        row.append(cell);
      });
      if ((counts[0] ?? 0) === 0) row.classList.add("never");
      if (line.address === trapped) row.classList.add("trapped");
      row.addEventListener("click", () => this.onPick(number));
      this.rows.push(row);
      scroller.append(label, row);
    });
    scroller.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (by !== undefined) this.mark(Math.max(0, Math.min(run.listing.length - 1, this.current + by)));
      else if (event.key === "Enter") this.onPick(this.current);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    scroller.addEventListener("scroll", () => this.showThumb());
    new ResizeObserver(() => this.showHot()).observe(scroller);
    const drag = (event: PointerEvent) => {
      const { top, height } = hot.getBoundingClientRect();
      scroller.scrollTop = ((event.clientY - top) / height) * scroller.scrollHeight - scroller.clientHeight / 2;
    };
    hot.addEventListener("pointerdown", (event) => {
      hot.setPointerCapture(event.pointerId);
      drag(event);
    });
    hot.addEventListener("pointermove", (event) => {
      if (hot.hasPointerCapture(event.pointerId)) drag(event);
    });
    hot.title = "scroll bar; blue: executed by many lanes, red: lanes diverge here";
    hot.append(thumb);
    const body = make("div", "body");
    body.append(scroller, hot);
    element.append(head, body);
    this.showText();
  }

  /** Whether the program has a source. */
  get isWritten(): boolean {
    return this.run.listing.some((line) => line.written);
  }

  /** Shows the lines of the source or of the listing. */
  toggleWritten(): boolean {
    this.asWritten = this.isWritten && !this.asWritten;
    this.showText();
    this.showHot();
    return this.asWritten;
  }

  private showText(): void {
    this.element.classList.toggle("written", this.asWritten);
    this.element.querySelector(".head .code")!.textContent = this.asWritten ? "source" : "instruction";
    this.run.listing.forEach((line, number) => {
      const { text, remark, before } = this.textOf(line);
      const code = this.rows[number]!.querySelector<HTMLElement>(".code")!;
      code.replaceChildren(text, ...(remark ? [make("i", "remark", `  ; ${remark}`)] : []));
      const words = [`${address(this.run, line.address)}: ${line.words}`, ...(line.notes ?? [])];
      if (line.written) words.push(this.asWritten ? line.text : `line ${line.written.line} of the source: ${line.written.text}`);
      code.title = words.join("\n");
      const place = this.rows[number]!.querySelector<HTMLElement>(".at")!;
      place.title = line.written ? `line ${line.written.line} of the source` : "";
      const label = this.labels[number]!;
      label.replaceChildren(...before.map((text) => make("div", text.startsWith(";") ? "remark" : "", text)));
      label.hidden = before.length === 0;
    });
  }

  private textOf(line: Line): { text: string; remark: string; before: string[] } {
    const remarks: string[] = [];
    const lines = (line.written?.text ?? "").split("\n").map((text) => {
      const [code, ...rest] = text.split(";");
      if (rest.length > 0) remarks.push(rest.join(";").trim());
      return code!.trim();
    });
    const remark = remarks.join("; ");
    if (!this.asWritten || !line.written) return { text: line.text, remark, before: line.label ? [`${line.label}:`] : [] };
    return { text: lines.join("\n"), remark, before: line.written.before ?? [] };
  }

  /** Marks the lines with the highest counts, at their positions in the program. */
  private showHot(): void {
    const { scroller, hot, thumb, run, most } = this;
    const height = Math.max(1, scroller.scrollHeight);
    const marks = this.rows.flatMap((row, number) => {
      const [executed = 0, lanes = 0, diverged = 0] = run.counts[number] ?? [];
      if (executed === 0) return [];
      const mark = make("i", diverged > 0 ? "parts" : "");
      mark.style.top = `${(100 * (row.offsetTop + row.offsetHeight / 2)) / Math.max(height, scroller.clientHeight)}%`;
      mark.style.opacity = String(0.15 + (0.85 * lanes) / most[1]!);
      return [mark];
    });
    hot.replaceChildren(thumb, ...marks);
    this.showThumb();
  }

  private showThumb(): void {
    const { scroller, thumb } = this;
    const height = Math.max(1, scroller.scrollHeight);
    thumb.style.top = `${(100 * scroller.scrollTop) / height}%`;
    thumb.style.height = `${(100 * scroller.clientHeight) / height}%`;
    thumb.hidden = scroller.clientHeight >= height;
  }

  /** Marks a line and shows it. */
  mark(line: number): void {
    if (line === this.current) return;
    const before = this.rows[this.current];
    before?.classList.remove("current");
    before?.removeAttribute("aria-selected");
    this.current = line;
    const row = this.rows[line];
    if (!row) return;
    row.classList.add("current");
    row.setAttribute("aria-selected", "true");
    // Only the listing scrolls, not the page. Some lines before and after the marked line stay visible.
    const { scroller } = this;
    const margin = Math.min(3 * 18, scroller.clientHeight / 3);
    const top = row.offsetTop - margin;
    const bottom = row.offsetTop + row.offsetHeight + margin;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
  }

  /** Marks the lines whose text contains a word, and returns the numbers of these lines. */
  search(word: string): number[] {
    const wanted = word.trim().toLowerCase();
    const found: number[] = [];
    this.run.listing.forEach((line, number) => {
      const written = line.written ? `${(line.written.before ?? []).join(" ")} ${line.written.text}` : "";
      const text = `${address(this.run, line.address)} ${line.label ?? ""} ${line.text} ${line.words} ${written}`;
      const hit = wanted !== "" && text.toLowerCase().includes(wanted);
      this.rows[number]?.classList.toggle("found", hit);
      if (hit) found.push(number);
    });
    return found;
  }
}
