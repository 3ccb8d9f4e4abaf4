// Runs of the command `reconverge`, and a check that the extension can use it.
import { execFile } from "node:child_process";

/** The oldest version that has what the extension uses. */
export const NEEDED = "0.1.0";

/** The answer of a run of the command. */
export interface Answer {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** A command that cannot be used; the message says what to do. */
export class CommandError extends Error {}

const MOST_BYTES = 1 << 28;

/** Runs the command. Rejects with a [`CommandError`] if it cannot be started. */
export function answered(path: string, args: string[], cwd?: string, signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { maxBuffer: MOST_BYTES, ...(cwd && { cwd }), ...(signal && { signal }) };
    execFile(path, args, options, (error, stdout, stderr) => {
      const status = error ? error.code : 0;
      if (typeof status === "number") return resolve({ status, stdout, stderr });
      if (error?.name === "AbortError") return resolve({ status: null, stdout, stderr: "cancelled" });
      if (error?.signal) return resolve({ status: null, stdout, stderr: `${stderr}ended by ${error.signal}` });
      reject(new CommandError(`\`${path}\` cannot be started: ${reason(error)}. Install it, or set reconverge.path to its path.`));
    });
  });
}

function reason(error: { code?: unknown; message?: string } | null): string {
  switch (error?.code) {
    case "ENOENT":
      return "the command does not exist";
    case "EACCES":
      return "the file is not executable";
    default:
      return error?.message ?? "for an unknown reason";
  }
}

const numbers = (version: string) => version.split(".").map(Number);

/** Whether a version is older than another, both three numbers. */
export function older(version: string, than: string): boolean {
  const [ours, theirs] = [numbers(version), numbers(than)];
  const at = ours.findIndex((number, index) => number !== theirs[index]);
  return at >= 0 && (ours[at] ?? 0) < (theirs[at] ?? 0);
}

/** Returns the version of the command. Rejects with a [`CommandError`] if the extension cannot use it. */
export async function checked(path: string): Promise<string> {
  const { stdout, stderr } = await answered(path, ["--version"]);
  const version = /^reconverge (\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  if (!version) {
    throw new CommandError(`\`${path}\` is another program: \`--version\` answers ${JSON.stringify((stdout || stderr).trim().slice(0, 80))}. Set reconverge.path.`);
  }
  const old = `\`${path}\` is version ${version}, which is too old for this extension`;
  if (older(version, NEEDED)) throw new CommandError(`${old}: it needs ${NEEDED}. Install a newer one, or set reconverge.path.`);
  const { status } = await answered(path, ["lsp", "--help"]);
  if (status !== 0) throw new CommandError(`${old}: it has no \`reconverge lsp\`. Install a newer one, or set reconverge.path.`);
  return version;
}
