// The language of a document is that of the machine that its text states.
import * as vscode from "vscode";

import { isOurs, LANGUAGES, machineOfDocument } from "./context";

/** Sets the language of a document when it opens, and when its text states another machine. */
export function followMachines(context: vscode.ExtensionContext): void {
  const status = vscode.languages.createLanguageStatusItem("reconverge.machine", LANGUAGES);
  status.name = "Machine";
  const showStatus = (editor = vscode.window.activeTextEditor) => {
    if (!editor || !isOurs(editor.document)) return;
    const found = machineOfDocument(editor.document);
    status.text = found ? found.machine : "no machine";
    status.detail = found ? (found.stated ? "as the text states" : "as the file name, the setting or the language states") : "begin the text with .isa or .chip";
    status.severity = found ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
  };
  const follow = async (document: vscode.TextDocument) => {
    // Another extension may have the language of `.s`.
    if (!isOurs(document) && !/\.(s|asm)$/.test(document.fileName)) return;
    const found = machineOfDocument(document);
    const language = found && `reconverge-${found.machine}`;
    if (language && language !== document.languageId && (found.stated || isOurs(document))) {
      await vscode.languages.setTextDocumentLanguage(document, language);
    }
    showStatus();
  };
  const changes = new Map<vscode.TextDocument, NodeJS.Timeout>();
  context.subscriptions.push(
    status,
    vscode.workspace.onDidOpenTextDocument(follow),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      clearTimeout(changes.get(document));
      changes.set(document, setTimeout(() => void follow(document), 300));
    }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      clearTimeout(changes.get(document));
      changes.delete(document);
    }),
    vscode.window.onDidChangeActiveTextEditor(showStatus),
  );
  for (const document of vscode.workspace.textDocuments) void follow(document);
}
