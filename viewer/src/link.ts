// The position that an address states: `#step=12&lane=3`; with several reports `#step=12,15,20&lane=3,3,3&pane=2`.
//
// For a run of several groups, the address also has `group`. A step determines the group; a group without a step opens at its first step.

/** A position that an address can state. */
interface Place {
  step: number;
  lane: number;
  group: number;
  run: { groups: number };
}

interface Linked {
  /** A number for each report, as in `lanes` and `groups`. */
  steps: number[];
  lanes: number[];
  groups: number[];
  /** The chosen report, from 0. */
  pane: number | undefined;
}

/** The part of an address after `#` that opens the page at this position. */
export function linkTo(places: Place[], chosen: number): string {
  const list = (of: (place: Place) => number) => places.map(of).join(",");
  const parts = [`step=${list(({ step }) => step)}`, `lane=${list(({ lane }) => lane)}`];
  if (places.some(({ run }) => run.groups > 1)) parts.push(`group=${list(({ group }) => group)}`);
  if (places.length > 1) parts.push(`pane=${chosen + 1}`);
  return `#${parts.join("&")}`;
}

/** Returns the position that the part of an address after `#` states. Ignores parts that are not numbers. */
export function linked(hash: string): Linked {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const list = (name: string) => (parts.get(name) ?? "").split(",").filter((text) => /^\d+$/.test(text)).map(Number);
  const pane = list("pane")[0];
  return { steps: list("step"), lanes: list("lane"), groups: list("group"), pane: pane === undefined ? undefined : pane - 1 };
}
