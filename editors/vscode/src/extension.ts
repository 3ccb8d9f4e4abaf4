// Reconverge in VS Code: languages, the language server, the debugger, and commands.
import type * as vscode from "vscode";

import { followSettings, startClient, stopClient } from "./client";
import { registerCommands } from "./commands";
import { registerDebugger } from "./debug";
import { followMachines } from "./languages";

export function activate(context: vscode.ExtensionContext): void {
  followMachines(context);
  registerCommands(context);
  registerDebugger(context);
  followSettings(context);
  void startClient();
}

export function deactivate(): Promise<void> {
  return stopClient();
}
