// The end of a run: the trap, the outputs, and the expectations that failed.

import type { Run } from "./data";
import { button, make } from "./dom";

/** The part of a report below its title. `goToTrap` shows the step that trapped. */
export function outcome(run: Pick<Run, "outcome" | "notes">, goToTrap: () => void): HTMLElement {
  const { trap, mismatches, findings, outputs, more_outputs, fidelity } = run.outcome;
  const element = make("div", "outcome");
  if (trap) {
    const line = make("p", "trap", `${trap.message.startsWith("trap") ? "" : "trap: "}${trap.message} `);
    line.append(button("show", "go to the trap (End)", goToTrap));
    element.append(line);
  }
  for (const text of mismatches) element.append(make("p", "trap", `not as expected: ${text}`));
  for (const text of findings) element.append(make("p", "trap", `strict finding: ${text}`));
  for (const line of element.querySelectorAll<HTMLElement>(".trap")) line.title = line.textContent ?? "";
  for (const note of run.notes) element.append(make("p", "note", note));
  if (outputs.length > 0) {
    const details = make("details");
    details.append(make("summary", "", `outputs: ${outputs.map((output) => output.name).join(", ")}`));
    for (const output of outputs) {
      details.append(make("p", "note", `${output.name}: ${output.kind}`));
      const table = make("table");
      output.rows.forEach((numbers, number) => {
        const row = table.insertRow();
        row.append(make("th", "", String(number)), ...numbers.map((text) => make("td", "", text)));
        if (output.left_columns > 0) row.append(make("td", "none", `… ${output.left_columns} more`));
      });
      details.append(table);
      if (output.left_rows > 0) details.append(make("p", "none", `… ${output.left_rows} more rows`));
    }
    if (more_outputs > 0) details.append(make("p", "none", `… ${more_outputs} more outputs`));
    element.append(details);
  }
  if (fidelity.length > 0) {
    const details = make("details");
    details.append(make("summary", "", `fidelity: ${fidelity.map(({ grade }) => grade).join(", ")}`));
    for (const { grade, operations } of fidelity) {
      details.append(make("p", "note", `${grade}: ${operations.map(([name, times]) => `${name} ×${times}`).join(", ")}`));
    }
    element.append(details);
  }
  return element;
}
