// The functions of the WebAssembly module; `crates/playground/src/abi.rs` is the other side.

interface Exports {
  memory: WebAssembly.Memory;
  allocate(length: number): number;
  answer(block: number, length: number): number;
  panicked(): number;
  release(reply: number): void;
}

/** The text of a reply, which it releases. */
function taken(exports: Exports, reply: number): string {
  const length = new DataView(exports.memory.buffer).getUint32(reply, true);
  const text = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, reply + 4, length));
  exports.release(reply);
  return text;
}

/** Returns a function that answers requests. It throws an error with the message of a panic, and cannot be used after that. */
export function answering(module: WebAssembly.Module): (request: string) => string {
  const exports = new WebAssembly.Instance(module, {}).exports as unknown as Exports;
  return (request) => {
    const bytes = new TextEncoder().encode(request);
    try {
      const block = exports.allocate(bytes.length);
      new Uint8Array(exports.memory.buffer, block, bytes.length).set(bytes);
      return taken(exports, exports.answer(block, bytes.length));
    } catch (error) {
      const panic = taken(exports, exports.panicked());
      throw new Error(panic || `the engine ended: ${String(error)}; the memory of a page may be used up`);
    }
  };
}
