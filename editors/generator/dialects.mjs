// A pattern of texts.js in the dialect of each editor.

/** JavaScript, TextMate (Oniguruma) and Rust. */
export function textmate(pattern) {
  return translated(pattern, { "<": "\\b", ">": "\\b" });
}

/** Vim's very magic mode. */
export function vim(pattern) {
  return "\\v" + translated(pattern, { "@": "\\@", "%": "\\%", "=": "\\=", "&": "\\&", "~": "\\~", "{": "\\{", "/": "\\/" });
}

/** Emacs. A word there may contain `_`, but `$` and `.` are punctuation. */
export function emacs(pattern) {
  return translated(pattern, { "<": "\\_<", ">": "\\_>", "(": "\\(?:", ")": "\\)", "|": "\\|" }, { "(": "(", ")": ")", "|": "|", "{": "{", "}": "}", "/": "/" });
}

/** Replaces what means something outside classes, by `table`; a character after a backslash by `escaped`, or as it is. */
function translated(pattern, table, escaped = {}) {
  let out = "";
  for (let at = 0; at < pattern.length; at += 1) {
    const letter = pattern[at];
    if (letter === "\\") {
      at += 1;
      out += escaped[pattern[at]] ?? "\\" + pattern[at];
    } else if (letter === "[") {
      const end = pattern.indexOf("]", pattern[at + 1] === "]" ? at + 2 : at + 1);
      let stop = end;
      while (pattern[stop - 1] === "\\" && pattern[stop - 2] !== "\\") stop = pattern.indexOf("]", stop + 1);
      out += pattern.slice(at, stop + 1);
      at = stop;
    } else {
      out += table[letter] ?? letter;
    }
  }
  return out;
}
