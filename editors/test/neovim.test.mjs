// Highlight groups, file types and the language server in Neovim, without a screen.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { binary, editors, KINDS, place, samples, without } from "../shared.mjs";

const skip = without("nvim");

/** Runs Lua in Neovim after opening a file. Returns what the Lua code returns. */
function inNeovim(file, lua) {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-nvim-"));
  const answer = join(folder, "answer.json");
  const script = join(folder, "test.lua");
  writeFileSync(script, `local function test()\n${lua}\nend\nlocal ok, said = pcall(test)\nvim.fn.writefile({vim.fn.json_encode({ok, said})}, ${JSON.stringify(answer)})`);
  const options = ["--headless", "--clean", "--cmd", "let g:do_filetype_lua = 1", "--cmd", `set runtimepath^=${join(editors, "neovim")}`];
  const { status, stderr } = spawnSync("nvim", [...options, file, "-c", `luafile ${script}`, "-c", "qall!"], {
    encoding: "utf8", timeout: 30_000, env: { ...process.env, RECONVERGE: binary, XDG_STATE_HOME: folder },
  });
  assert.equal(status, 0, stderr);
  const [ok, said] = JSON.parse(readFileSync(answer, "utf8"));
  assert.ok(ok, said);
  return said;
}

for (const [sample, kinds] of Object.entries(KINDS)) {
  test(`Neovim: ${sample} has the file type of its machine and a group for each kind of word`, { skip }, () => {
    const text = readFileSync(join(samples, sample), "utf8");
    const places = kinds.map(([, word, after]) => place(text, word, after));
    const rows = places.map(({ line, character }) => `{${line + 1}, ${character + 1}}`).join(", ");
    const [type, groups] = inNeovim(join(samples, sample), `
      local groups = {}
      for at, place in ipairs({${rows}}) do
        groups[at] = vim.fn.synIDattr(vim.fn.synID(place[1], place[2], 1), "name")
      end
      return { vim.bo.filetype, groups }`);
    assert.match(type, /^reconverge-(r500|r700|tesla)$/);
    const found = kinds.map(([, word], at) => `${word}: ${groups[at]}`);
    const expected = kinds.map(([kind, word]) => `${word}: reconverge${kind[0].toUpperCase()}${kind.slice(1)}`);
    assert.deepEqual(found, expected);
  });
}

test("Neovim: a text that states no machine stays an assembler text", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-nvim-"));
  writeFileSync(join(folder, "x86.s"), "\tmov %eax, %ebx\n");
  writeFileSync(join(folder, "part.tesla.s"), "  add b32 $r0 $r1 $r2\n");
  assert.equal(inNeovim(join(folder, "x86.s"), "return vim.bo.filetype"), "asm");
  assert.equal(inNeovim(join(folder, "part.tesla.s"), "return vim.bo.filetype"), "reconverge-tesla");
});

test("Neovim: the language server attaches and reports an error", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "reconverge-nvim-"));
  const file = join(folder, "wrong.s");
  writeFileSync(file, readFileSync(join(samples, "collatz.s"), "utf8").replace("breakaddr", "brekaddr"));
  const [attached, message] = inNeovim(file, `
    local config = dofile(${JSON.stringify(join(editors, "neovim/lsp/reconverge.lua"))})
    config.cmd[1] = vim.env.RECONVERGE
    config.name, config.root_dir = "reconverge", ${JSON.stringify(folder)}
    assert(vim.tbl_contains(config.filetypes, vim.bo.filetype), vim.bo.filetype)
    local client = vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(0, client)
    vim.wait(10000, function() return #vim.diagnostic.get(0) > 0 end, 20)
    return { vim.lsp.buf_is_attached(0, client), vim.diagnostic.get(0)[1].message }`);
  assert.equal(attached, true);
  assert.match(message, /brekaddr/);
});
