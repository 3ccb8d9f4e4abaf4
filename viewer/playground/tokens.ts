// The colours of the parts of a line, by their spelling alone. The engine's diagnostics decide whether they are right.

export interface Token {
  from: number;
  to: number;
  kind: "comment" | "directive" | "label" | "mnemonic" | "register" | "number" | "string";
}

/** Parts of a line by pattern, in the order in which they are tried at each position. */
type Patterns = [RegExp, Token["kind"] | null][];

const PROGRAM: Patterns = [
  [/;.*|\/\*.*?\*\//y, "comment"],
  [/"[^"]*"?/y, "string"],
  [/(?<=^\s*)\.[A-Za-z_]\w*/y, "directive"],
  [/(?<=^\s*)[A-Za-z_][\w.]*:(?!:)/y, "label"],
  [/\$[a-z]*\d*[a-z]*|\b(?:temp|const|out|in|src|addr|KC\d*)\[[^\]]*\]|\b(?:[RTCovgsa]\d+|src[p\d]\d?)\b(?:\.[\w-]+)?|\b[gscl]\d*\[/y, "register"],
  [/-?\b(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b/iy, "number"],
  [/(?<=^\s*(?:\d+\s+)?(?:\([^)]*\)\s*)?(?:[xyzwt]: *)?(?:(?:join|exit)\s+)?)[A-Za-z_]\w*|\b[A-Z][A-Z\d_]{2,}\b/y, "mnemonic"],
  [/[\w.]+/y, null],
];

const LAUNCH: Patterns = [
  [/#.*/y, "comment"],
  [/"(?:[^"\\]|\\.)*"?/y, "string"],
  [/(?<=^\s*)\[+[^\]]*\]+(?=\s*(?:#.*)?$)/y, "directive"],
  [/[A-Za-z_][\w-]*(?=\s*=)/y, "label"],
  [/-?\b(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b|\b(?:true|false)\b/iy, "number"],
  [/[\w.]+/y, null],
];

function read(patterns: Patterns, line: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  scan: while (at < line.length) {
    for (const [pattern, kind] of patterns) {
      pattern.lastIndex = at;
      const length = pattern.exec(line)?.[0].length ?? 0;
      if (length === 0) continue;
      if (kind) tokens.push({ from: at, to: at + length, kind });
      at += length;
      continue scan;
    }
    at++;
  }
  return tokens;
}

/** The parts of a line of a program. */
export const programTokens = (line: string): Token[] => read(PROGRAM, line);

/** The parts of a line of a launch file. */
export const launchTokens = (line: string): Token[] => read(LAUNCH, line);
