// The client of `reconverge lsp`.
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

import { LANGUAGES, showError, usableCommand } from "./context";

let client: LanguageClient | undefined;

/** Starts the server, or starts it again. Shows why if it cannot be started. */
export async function startClient(): Promise<void> {
  await stopClient();
  const command = await usableCommand();
  if (!command) return;
  const server: ServerOptions = { command, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [
      ...LANGUAGES.flatMap((language) => [{ language, scheme: "file" }, { language, scheme: "untitled" }]),
      // Launch files. The server has nothing to say about other files of this format.
      { scheme: "file", pattern: "**/*.toml" },
    ],
    initializationOptions: vscode.workspace.getConfiguration("reconverge"),
    synchronize: {
      configurationSection: "reconverge",
      // Included files and launch files.
      fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{s,asm,inc,toml}"),
    },
  };
  client = new LanguageClient("reconverge", "Reconverge", server, options);
  try {
    await client.start();
  } catch (error) {
    await showError(error);
  }
}

export async function stopClient(): Promise<void> {
  const running = client;
  client = undefined;
  // A server that ended by itself cannot be stopped once more.
  await running?.stop().catch(() => undefined);
  await running?.dispose().catch(() => undefined);
}

/** Starts the server again if another command is set. */
export function followSettings(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("reconverge.path")) void startClient();
    }),
    vscode.commands.registerCommand("reconverge.restart", startClient),
  );
}
