// The samples and exercises of docs/.

const files = import.meta.glob<string>(["../../docs/samples/*.{s,toml}", "../../docs/exercises/*.{s,toml,md}"], {
  query: "?raw",
  import: "default",
  eager: true,
});

export interface Sample {
  /** Name of the launch file, without `.toml`. */
  name: string;
  /** The heading of the samples of its kind. */
  kind: string;
  source: string;
  launch: string;
  /** The purpose, in one sentence. */
  about: string;
  /** The task of an exercise, in paragraphs. */
  task: string[];
}

/** Kinds of samples by the names of their launch files, in the order of the list. */
const KINDS: [RegExp, string][] = [
  [/samples\/(nested-if|loop-break)\./, "Three mechanisms"],
  [/samples\/tutorial-/, "Tutorials"],
  [/exercises\//, "Exercises"],
  [/samples\//, "More samples"],
];

/** The paragraphs of a page before its table, without its title and its marks. */
function task(page: string): string[] {
  const body = page.split(/^\|/m)[0]!.replace(/^# .*$/m, "");
  const plain = body.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");
  return plain.split(/\n\s*\n/).map((text) => text.trim().replace(/\s+/g, " ")).filter(Boolean);
}

function read(path: string, launch: string): Sample | null {
  const program = /^program = "([^"]+)"\n/m.exec(launch);
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  const source = program && files[folder + program[1]];
  const kind = KINDS.find(([pattern]) => pattern.test(path))?.[1];
  // A campaign is not a launch.
  if (!source || !kind || path.endsWith(".campaign.toml")) return null;
  const name = path.slice(folder.length, -".toml".length);
  const page = files[`${folder}${name.replace(/^grade-.*/, "grade")}.md`] ?? "";
  const comment = /^; *(.*)$/m.exec(source)?.[1] ?? name;
  const about = /^# (.*)$/m.exec(page)?.[1] ?? comment;
  return { name, kind, source, launch: launch.replace(program[0], ""), about, task: task(page) };
}

export const SAMPLES: Sample[] = Object.entries(files)
  .filter(([path]) => path.endsWith(".toml"))
  .map(([path, launch]) => read(path, launch))
  .filter((sample) => sample !== null)
  .sort((one, other) => KINDS.findIndex(([, kind]) => kind === one.kind) - KINDS.findIndex(([, kind]) => kind === other.kind));
