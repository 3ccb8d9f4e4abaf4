// The launch of a source: a launch file of its folder, or options that the user states once.
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";

import { answered } from "./command";
import { machineOptions, showError, usableCommand } from "./context";
import { launches, suggested, words, type Launch, type Listed } from "./launches";

const MOST_FILES = 500;

/** The launch files of a source's folder whose program it is. */
async function launchFiles(source: string): Promise<string[]> {
  const folder = dirname(source);
  const entries = await vscode.workspace.fs.readDirectory(vscode.Uri.file(folder));
  const names = entries.map(([name]) => name).filter((name) => /\.(toml|json)$/.test(name) && name !== "package.json");
  const files = await Promise.all(
    names.slice(0, MOST_FILES).map(async (name) => {
      const text = await readFile(join(folder, name), "utf8").catch(() => "");
      return launches(text, source) ? join(folder, name) : undefined;
    }),
  );
  return files.filter((file) => file !== undefined).sort();
}

const key = (source: string) => `options:${source}`;

/** Shows an input box for the options of a source. Returns `undefined` if the user closes it. */
async function askedOptions(context: vscode.ExtensionContext, source: string, value: string): Promise<string | undefined> {
  const answer = await vscode.window.showInputBox({
    title: `Options of reconverge run for ${basename(source)}`,
    prompt: "Inputs, as on the command line; kept for this file",
    value,
    ignoreFocusOut: true,
    validateInput: (line) => {
      try {
        return words(line) && undefined;
      } catch (error) {
        return (error as Error).message;
      }
    },
  });
  if (answer !== undefined) await context.workspaceState.update(key(source), answer);
  return answer;
}

/** Returns the programs of a source; none if it does not assemble. The run then reports the errors. */
async function programs(source: string, more: string[]): Promise<Listed[]> {
  const path = await usableCommand();
  if (!path) return [];
  const { status, stdout } = await answered(path, ["list", source, "--json", ...more]);
  return status === 0 ? (JSON.parse(stdout) as { programs: Listed[] }).programs : [];
}

/** Returns the launch of a source; `undefined` if the user leaves a question open. */
export async function launchOf(context: vscode.ExtensionContext, document: vscode.TextDocument): Promise<Launch | undefined> {
  const source = document.fileName;
  if (document.isUntitled) {
    await showError(new Error("save the text first: the command reads files"));
    return undefined;
  }
  if (document.isDirty) await document.save();
  const files = await launchFiles(source);
  const own = files.find((file) => file === source.replace(/\.\w+$/, ".toml"));
  const kept = context.workspaceState.get<string>(key(source));
  const machine = machineOptions(document);
  if (kept === undefined && own) return { program: own, args: [] };
  if (kept === undefined && files.length > 0) {
    const picked = await vscode.window.showQuickPick(files.map((file) => ({ label: basename(file), file })), {
      title: `Launch file for ${basename(source)}`,
    });
    return picked && { program: picked.file, args: [] };
  }
  let options = kept;
  if (options === undefined) {
    const proposal = suggested(await programs(source, machine));
    options = proposal === "" ? "" : await askedOptions(context, source, proposal);
  }
  return options === undefined ? undefined : { program: source, args: [...machine, ...words(options)] };
}

/** Lets the user choose the options of a source. An empty answer forgets them. */
export async function chooseOptions(context: vscode.ExtensionContext, document: vscode.TextDocument): Promise<void> {
  const source = document.fileName;
  const kept = context.workspaceState.get<string>(key(source)) ?? suggested(await programs(source, machineOptions(document)));
  if ((await askedOptions(context, source, kept)) === "") await context.workspaceState.update(key(source), undefined);
}
