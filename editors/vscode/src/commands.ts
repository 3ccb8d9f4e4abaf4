// The commands: run, page, counts, graph, disassembly.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";

import { chooseOptions, launchOf } from "./choose";
import { ask, isOurs, machineOptions, showError } from "./context";
import type { Answer } from "./command";

/** The document of the editor that has the focus, if it is one of ours. */
function current(): vscode.TextDocument | undefined {
  const document = vscode.window.activeTextEditor?.document;
  if (document && isOurs(document)) return document;
  void showError(new Error("open the source of a program first"));
  return undefined;
}

/** Shows the messages of a command that failed. Returns whether it failed. */
function failed(output: vscode.OutputChannel, { status, stderr }: Answer): boolean {
  if (status === 0) return false;
  output.appendLine(stderr.trimEnd());
  output.show(true);
  return true;
}

/** Runs `reconverge VERB` on the launch of the current document. Returns its title and the answer. */
async function launched(context: vscode.ExtensionContext, verb: string, title: string, more: string[] = []) {
  const document = current();
  const launch = document && (await launchOf(context, document));
  if (!launch) return undefined;
  const answer = await ask(title, [verb, basename(launch.program), ...launch.args, ...more], dirname(launch.program));
  return answer && { answer, name: basename(document.fileName), launch };
}

async function printed(context: vscode.ExtensionContext, output: vscode.OutputChannel, verb: string, title: string): Promise<void> {
  const done = await launched(context, verb, title);
  if (!done) return;
  const { answer, launch } = done;
  output.appendLine(`> reconverge ${[verb, basename(launch.program), ...launch.args].join(" ")}`);
  output.append(answer.stdout);
  // Traps and failed expectations end with status 1 and have printed results as well.
  output.appendLine(answer.stderr);
  output.show(true);
}

/** Reads what the command writes to a file of this name. */
async function written<T>(name: string, use: (path: string) => Promise<T>): Promise<{ text: string; used: T }> {
  const folder = await mkdtemp(join(tmpdir(), "reconverge-"));
  try {
    const used = await use(join(folder, name));
    return { used, text: await readFile(join(folder, name), "utf8").catch(() => "") };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The open panels, by title. */
const panels = new Map<string, vscode.WebviewPanel>();

/** Shows HTML in the panel of this title. */
function panel(type: string, title: string, html: string): void {
  let shown = panels.get(title);
  if (!shown) {
    const options = { enableScripts: true, retainContextWhenHidden: true };
    shown = vscode.window.createWebviewPanel(`reconverge.${type}`, title, vscode.ViewColumn.Beside, options);
    shown.onDidDispose(() => panels.delete(title));
    panels.set(title, shown);
  }
  shown.webview.html = html;
  shown.reveal(undefined, true);
}

async function showPage(context: vscode.ExtensionContext, output: vscode.OutputChannel): Promise<void> {
  const { text, used } = await written("page.html", (path) => launched(context, "run", "running", ["--html", path]));
  if (!used) return;
  // A run that traps has a page, too.
  if (text === "" && failed(output, used.answer)) return;
  panel("page", `Run of ${used.name}`, text);
}

async function showGraph(output: vscode.OutputChannel): Promise<void> {
  const document = current();
  if (!document) return;
  if (document.isDirty) await document.save();
  const { text, used } = await written("graph.svg", (path) =>
    ask("control-flow graph", ["cfg", document.fileName, "-o", path, ...machineOptions(document)], dirname(document.fileName)),
  );
  if (!used || failed(output, used)) return;
  const style = "body { background: #fff; margin: 1em } svg { max-width: 100%; height: auto }";
  const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  const html = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><style>${style}</style>${text}`;
  panel("cfg", `Graph of ${basename(document.fileName)}`, html);
}

const LISTING = "reconverge-listing";

/** Listings as documents that cannot be changed; the path of the file is the query. */
class Listings implements vscode.TextDocumentContentProvider {
  readonly texts = new Map<string, string>();

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }
}

async function disassemble(listings: Listings, output: vscode.OutputChannel, chosen?: vscode.Uri): Promise<void> {
  const uri = chosen ?? vscode.window.activeTextEditor?.document.uri ?? (await vscode.window.showOpenDialog({}))?.[0];
  if (!uri || uri.scheme !== "file") return;
  const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
  const isa = document && isOurs(document) ? machineOptions(document) : [];
  const answer = await ask("disassembling", ["dis", uri.fsPath, ...isa], dirname(uri.fsPath));
  if (!answer || failed(output, answer)) return;
  const name = basename(uri.fsPath).replace(/(\.\w+)?$/, ".dis.s");
  const listing = vscode.Uri.from({ scheme: LISTING, path: `/${name}`, query: uri.fsPath });
  listings.texts.set(listing.toString(), answer.stdout);
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(listing), { viewColumn: vscode.ViewColumn.Beside });
}

export function registerCommands(context: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel("Reconverge: runs");
  const listings = new Listings();
  const add = (name: string, run: (argument?: vscode.Uri) => Promise<void>) =>
    context.subscriptions.push(vscode.commands.registerCommand(`reconverge.${name}`, (argument) => run(argument).catch(showError)));
  context.subscriptions.push(output, vscode.workspace.registerTextDocumentContentProvider(LISTING, listings));
  add("run", () => printed(context, output, "run", "running"));
  add("stats", () => printed(context, output, "stats", "counting"));
  add("page", () => showPage(context, output));
  add("cfg", () => showGraph(output));
  add("disassemble", (uri) => disassemble(listings, output, uri));
  add("options", async () => {
    const document = current();
    if (document) await chooseOptions(context, document);
  });
}
