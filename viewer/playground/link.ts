// Links that contain a program and its launch: `#1.DATA`, DATA being JSON, compressed (RFC 1950) and in base64url (RFC 4648, 5).
// The number is the version of the format. zlib's checksum finds a damaged link.

export interface LinkedLaunch {
  /** The name of the program, for people. */
  title: string;
  /** The text of the program. */
  source: string;
  /** The text of the launch file. */
  launch: string;
  /** The place in the recorded run, as the page of a run has it in its address: `#step=12&lane=3`. */
  place?: string;
}

const VERSION = "1";

/** Bytes of a program with its launch, at most. */
const MOST = 1 << 22;

class TooLarge extends Error {}

/** Returns transformed bytes, up to a number: a short link can contain any number of them. */
async function through(bytes: Uint8Array<ArrayBuffer>, transform: GenericTransformStream): Promise<Uint8Array<ArrayBuffer>> {
  const reader = new Blob([bytes]).stream().pipeThrough(transform).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    size += value.length;
    if (size <= MOST) continue;
    void reader.cancel();
    throw new TooLarge(`The link contains more than ${MOST >> 20} MiB: a program in a link is shorter.`);
  }
}

interface GenericTransformStream extends ReadableWritablePair<Uint8Array<ArrayBuffer>, BufferSource> {}

/** The end of an address that opens a program with its launch. */
export async function linkTo(linked: LinkedLaunch): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(linked));
  const packed = await through(bytes, new CompressionStream("deflate"));
  let letters = "";
  for (const byte of packed) letters += String.fromCharCode(byte);
  return `#${VERSION}.${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** Reads the end of an address; `null` if it has no program. */
export async function linked(hash: string): Promise<LinkedLaunch | null> {
  const [, version, data] = /^#(\d+)\.(.*)$/.exec(hash) ?? [];
  if (version === undefined || data === undefined) return null;
  if (version !== VERSION) {
    const remedy = Number(version) > Number(VERSION) ? ": a newer page opens it" : "";
    throw new Error(`The link has version ${version} of the format, and this page reads version ${VERSION}${remedy}.`);
  }
  try {
    const letters = atob(data.replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const text = new TextDecoder().decode(await through(packed, new DecompressionStream("deflate")));
    const { title, source, launch, place } = JSON.parse(text) as Partial<LinkedLaunch>;
    if (typeof source !== "string" || typeof launch !== "string") throw new Error("no program");
    return { title: String(title ?? "program"), source, launch, ...(typeof place === "string" ? { place } : {}) };
  } catch (error) {
    if (error instanceof TooLarge) throw error;
    throw new Error("The link is damaged: a part of it is missing or changed. Copy the whole link again.");
  }
}
