// Faces, the mode and the language server in Emacs, without a screen.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { binary, editors, KINDS, place, samples, without } from "../shared.mjs";

const skip = without("emacs");
const mode = join(editors, "emacs/reconverge-mode.el");
const quoted = JSON.stringify;

/** Evaluates Lisp in Emacs with the mode loaded. Returns what it prints. */
function inEmacs(lisp, ...more) {
  const { status, stdout, stderr } = spawnSync("emacs", ["--batch", "-Q", ...more, "-l", mode, "--eval", `(progn ${lisp})`], {
    encoding: "utf8", timeout: 60_000, env: { ...process.env, RECONVERGE: binary },
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

const FACES = {
  comment: "comment", directive: "preprocessor", mnemonic: "keyword", type: "type", register: "variable-name", number: "constant",
  label: "function-name", condition: "builtin", prefix: "keyword", space: "builtin", flag: "builtin", slot: "nil",
};

for (const [sample, kinds] of Object.entries(KINDS)) {
  test(`Emacs: ${sample} has a face for each kind of word`, { skip }, () => {
    const text = readFileSync(join(samples, sample), "utf8");
    const places = kinds.map(([, word, after]) => place(text, word, after).offset + 1);
    const printed = inEmacs(`
      (find-file ${quoted(join(samples, sample))})
      (font-lock-ensure)
      (princ (format "%s\\n" major-mode))
      (dolist (at '(${places.join(" ")}))
        (let ((face (get-text-property at 'face)))
          (princ (format "%s\\n" (if (consp face) (car face) face)))))`);
    const [major, ...faces] = printed.trim().split("\n");
    assert.equal(major, "reconverge-mode");
    const short = (face) => face.replace(/^font-lock-(.*)-face$/, "$1").replace("comment-delimiter", "comment");
    const found = kinds.map(([, word], at) => `${word}: ${short(faces[at])}`);
    assert.deepEqual(found, kinds.map(([kind, word]) => `${word}: ${FACES[kind]}`));
  });
}

test("Emacs: a text that states no machine stays an assembler text", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-emacs-"));
  writeFileSync(join(folder, "x86.s"), "\tmov %eax, %ebx\n");
  assert.equal(inEmacs(`(find-file ${quoted(join(folder, "x86.s"))}) (princ major-mode)`), "asm-mode");
});

test("Emacs: the mode compiles without a warning", { skip }, () => {
  const { status, stderr } = spawnSync("emacs", ["--batch", "-Q", "--eval",
    `(progn (require 'bytecomp) (setq byte-compile-error-on-warn t byte-compile-dest-file-function (lambda (_) "/dev/null"))
       (with-temp-buffer (insert-file-contents ${quoted(mode)}) (unless (byte-compile-from-buffer (current-buffer)) (kill-emacs 1))))`,
  ], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /warning|error/i);
});

/** The folders of Debian's packages of Emacs Lisp; Emacs 29 has eglot itself. */
const packages = existsSync("/usr/share/emacs/site-lisp/elpa")
  ? readdirSync("/usr/share/emacs/site-lisp/elpa").flatMap((name) => ["-L", join("/usr/share/emacs/site-lisp/elpa", name)])
  : [];
const eglot = skip || (spawnSync("emacs", ["--batch", "-Q", ...packages, "--eval", "(require 'eglot)"]).status === 0 ? false : "eglot is not here");

test("Emacs: eglot starts the language server and shows an error", { skip: eglot }, () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-emacs-"));
  const file = join(folder, "wrong.s");
  writeFileSync(file, readFileSync(join(samples, "collatz.s"), "utf8").replace("breakaddr", "brekaddr"));
  const printed = inEmacs(`
    (require 'eglot)
    (setq reconverge-command (getenv "RECONVERGE") eglot-sync-connect 10 eglot-autoshutdown t)
    (find-file ${quoted(file)})
    (apply #'eglot (let ((found (eglot--guess-contact))) found))
    (let ((tries 200))
      (while (and (> tries 0) (not (flymake-diagnostics)))
        (setq tries (1- tries))
        (accept-process-output nil 0.05)))
    (princ (mapconcat #'flymake-diagnostic-text (flymake-diagnostics) "\n"))`, ...packages);
  assert.match(printed, /brekaddr/);
});
