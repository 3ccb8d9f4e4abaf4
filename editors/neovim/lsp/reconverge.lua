-- For `vim.lsp.enable("reconverge")` of Neovim 0.11 and later.
return {
  cmd = { "reconverge", "lsp" },
  filetypes = { "reconverge-r500", "reconverge-r700", "reconverge-tesla" },
  root_markers = { ".git" },
}
