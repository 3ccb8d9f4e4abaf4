// The engine of the playground: WebAssembly in a worker, or the program that serves the page.

import WorkerScript from "./worker?worker&inline";

/** The value that `engine.js` sets: a WebAssembly module (gzip, in base64), or the server of the page as the engine. */
interface EngineGiven {
  wasm?: string;
  served?: boolean;
}

declare global {
  var RECONVERGE_ENGINE: EngineGiven | undefined;
}

/** A message about a position in the source; `crates/playground/src/source.rs` writes it. */
export interface SourcePlace {
  severity: "error" | "warning" | "info";
  from: number;
  to: number;
  line: number;
  message: string;
  rule?: string;
  fixes?: { title: string; from: number; to: number; text: string }[];
}

/** The reason that a request has no reply. */
export class EngineError extends Error {
  constructor(
    message: string,
    /** The part that is at fault: `request`, `source`, `launch`, `words` or `engine`. */
    readonly of: string,
    readonly line?: number,
    readonly diagnostics: SourcePlace[] = [],
  ) {
    super(message);
  }
}

/** The run was stopped. */
export class Stopped extends Error {}

export interface Engine {
  /** Answers a request of `crates/playground`. */
  ask<T>(request: object): Promise<T>;
  /** Stops the current run; its request fails with [`Stopped`]. */
  stop(): void;
}

interface Answer {
  reply?: unknown;
  error?: { of: string; message: string; line?: number; diagnostics?: SourcePlace[] };
}

function open<T>(text: string): T {
  const { reply, error } = JSON.parse(text) as Answer;
  if (error) throw new EngineError(error.message, error.of, error.line, error.diagnostics);
  return reply as T;
}

/** A worker with the module. Requests are answered one after another. */
class InWorker implements Engine {
  private worker: Worker | undefined;
  private waiting = new Map<number, { done: (text: string) => void; failed: (error: Error) => void }>();
  private next = 0;

  constructor(private readonly module: WebAssembly.Module) {}

  ask<T>(request: object): Promise<T> {
    const worker = (this.worker ??= this.start());
    const id = this.next++;
    const answered = new Promise<string>((done, failed) => this.waiting.set(id, { done, failed }));
    worker.postMessage({ id, request: JSON.stringify(request) });
    return answered.then(open<T>);
  }

  stop(): void {
    this.end(new Stopped("stopped"));
  }

  private end(error: Error): void {
    this.worker?.terminate();
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { failed } of waiting) failed(error);
  }

  private start(): Worker {
    const worker = new WorkerScript();
    worker.onmessage = ({ data }: MessageEvent<{ id: number; text?: string; fault?: string }>) => {
      // After a panic, the memory of the module is unreliable: the next request gets a new worker.
      if (data.fault !== undefined) return this.end(new EngineError(data.fault, "engine"));
      this.waiting.get(data.id)?.done(data.text!);
      this.waiting.delete(data.id);
    };
    worker.onerror = (event) => this.end(new EngineError(event.message || "the worker did not start", "engine"));
    worker.postMessage({ module: this.module });
    return worker;
  }
}

/** The program that serves the page: `reconverge serve`. */
class Served implements Engine {
  private running = new Map<string, AbortController>();

  async ask<T>(request: object): Promise<T> {
    const id = crypto.randomUUID();
    const abort = new AbortController();
    this.running.set(id, abort);
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await fetch(`answer?${id}`, { method: "POST", headers, body: JSON.stringify(request), signal: abort.signal });
      const text = await response.text();
      if (!response.ok) throw new EngineError(text || `the server answers with status ${response.status}`, "engine");
      return open<T>(text);
    } catch (error) {
      if (abort.signal.aborted) throw new Stopped("stopped");
      if (error instanceof EngineError) throw error;
      throw new EngineError("the server does not answer: `reconverge serve` has ended", "engine");
    } finally {
      this.running.delete(id);
    }
  }

  stop(): void {
    for (const [id, abort] of this.running) {
      abort.abort();
      void fetch(`stop?${id}`, { method: "POST" }).catch(() => {});
    }
  }
}

async function unpacked(packed: string): Promise<WebAssembly.Module> {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** Returns two engines, for the editor and for runs: the editor does not wait for a long run. */
export async function engines(): Promise<{ editor: Engine; runs: Engine }> {
  const given = globalThis.RECONVERGE_ENGINE;
  if (given?.served) return { editor: new Served(), runs: new Served() };
  if (!given?.wasm) throw new Error("engine.js is missing next to the page: scripts/build-web writes both");
  const module = await unpacked(given.wasm);
  globalThis.RECONVERGE_ENGINE = undefined;
  return { editor: new InWorker(module), runs: new InWorker(module) };
}
