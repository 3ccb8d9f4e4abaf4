// Settings, the machine of a document, and messages, for all parts of the extension.
import * as vscode from "vscode";

import { answered, checked, CommandError, type Answer } from "./command";
import { machineOf, MACHINES, type Found } from "./machine";

const GENERIC = "reconverge";
export const LANGUAGES = [GENERIC, ...MACHINES.map((machine) => `${GENERIC}-${machine}`)];

/** The command that the settings name. */
export function commandPath(): string {
  return vscode.workspace.getConfiguration("reconverge").get<string>("path")?.trim() || "reconverge";
}

/** Whether a document has one of the extension's languages. */
export function isOurs(document: vscode.TextDocument): boolean {
  return LANGUAGES.includes(document.languageId);
}

/** Returns the machine of a document. If the text states none, the language of the document decides. */
export function machineOfDocument(document: vscode.TextDocument): Found | undefined {
  const setting = vscode.workspace.getConfiguration("reconverge", document).get<string>("machine");
  const found = machineOf(document.getText(), document.fileName, setting);
  if (found) return found;
  const chosen = MACHINES.find((machine) => document.languageId === `${GENERIC}-${machine}`);
  return chosen && { machine: chosen, stated: false };
}

/** Returns the options that state the machine of a document to the command; none if its text states it. */
export function machineOptions(document: vscode.TextDocument): string[] {
  const found = machineOfDocument(document);
  return found && !found.stated ? ["--isa", found.machine] : [];
}

let usable: { path: string; version: Promise<string> } | undefined;

/** Returns the path of a command that can be used. Shows why if there is none. */
export async function usableCommand(): Promise<string | undefined> {
  const path = commandPath();
  if (usable?.path !== path) usable = { path, version: checked(path) };
  try {
    await usable.version;
    return path;
  } catch (error) {
    usable = undefined;
    await showError(error);
    return undefined;
  }
}

/** Shows an error. One about the command offers its setting. */
export async function showError(error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error);
  const actions = error instanceof CommandError ? ["Open Settings"] : [];
  const chosen = await vscode.window.showErrorMessage(`Reconverge: ${message}`, ...actions);
  if (chosen) await vscode.commands.executeCommand("workbench.action.openSettings", "reconverge.path");
}

/** Runs the command with a progress message that can be cancelled. Returns nothing if it could not run; the user has seen why. */
export async function ask(title: string, args: string[], cwd?: string): Promise<Answer | undefined> {
  const path = await usableCommand();
  if (!path) return undefined;
  const options = { location: vscode.ProgressLocation.Notification, title: `Reconverge: ${title}`, cancellable: true };
  return vscode.window.withProgress(options, async (_progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    try {
      return await answered(path, args, cwd, abort.signal);
    } catch (error) {
      await showError(error);
      return undefined;
    }
  });
}
