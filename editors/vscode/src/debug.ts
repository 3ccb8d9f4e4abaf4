// The debug type `reconverge`: F5 without a launch.json, and the adapter `reconverge debug --dap`.
import { dirname } from "node:path";
import * as vscode from "vscode";

import { launchOf } from "./choose";
import { isOurs, usableCommand } from "./context";

const TYPE = "reconverge";

/** Keys of a configuration that do not say what a program starts from. */
const ABOUT_SESSION = /^(type|request|name|program|stopOnEntry|stopAtEnd|noDebug|presentation|preLaunchTask|postDebugTask|internalConsoleOptions|__.*)$/;

/** Whether a configuration states inputs, and so needs no launch file and no question. */
function statesInputs(configuration: vscode.DebugConfiguration): boolean {
  return Object.keys(configuration).some((key) => !ABOUT_SESSION.test(key));
}

/** Whether a breakpoint is set in a file. */
function hasBreakpoint(file: string): boolean {
  return vscode.debug.breakpoints.some(
    (point) => point.enabled && point instanceof vscode.SourceBreakpoint && point.location.uri.fsPath === file,
  );
}

class Configurations implements vscode.DebugConfigurationProvider {
  constructor(private readonly context: vscode.ExtensionContext) {}

  provideDebugConfigurations(): vscode.DebugConfiguration[] {
    return [{ type: TYPE, request: "launch", name: "Run the program in the editor", program: "${file}", stopAtEnd: true }];
  }

  async resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    // Without a launch.json, the configuration is empty.
    const empty = !configuration.type && !configuration.request && !configuration.name;
    const document = vscode.window.activeTextEditor?.document;
    const here = document && isOurs(document) ? document : undefined;
    if (!empty && configuration["program"] && configuration["program"] !== "${file}") return configuration;
    if (!here) {
      await vscode.window.showErrorMessage("Reconverge: open the source of a program, or name a `program` in launch.json");
      return undefined;
    }
    const resolved = { ...configuration, type: TYPE, request: "launch", name: configuration.name || "Program in the editor" };
    if (statesInputs(configuration)) return { ...resolved, program: here.fileName, source: here.fileName };
    const launch = await launchOf(this.context, here);
    return launch && { stopAtEnd: true, ...resolved, ...launch, source: here.fileName };
  }

  resolveDebugConfigurationWithSubstitutedVariables(
    _folder: vscode.WorkspaceFolder | undefined,
    { source, ...configuration }: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration {
    const program = configuration["program"] as string;
    return { stopOnEntry: !hasBreakpoint((source as string | undefined) ?? program), ...configuration };
  }
}

class Adapters implements vscode.DebugAdapterDescriptorFactory {
  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor | undefined> {
    const command = await usableCommand();
    if (!command) return undefined;
    // Inputs name files from the folder of the program.
    const { program } = session.configuration as { program?: string };
    const folder = program ? dirname(program) : session.workspaceFolder?.uri.fsPath;
    return new vscode.DebugAdapterExecutable(command, ["debug", "--dap"], folder ? { cwd: folder } : undefined);
  }
}

export function registerDebugger(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider(TYPE, new Configurations(context)),
    vscode.debug.registerDebugAdapterDescriptorFactory(TYPE, new Adapters()),
  );
}
