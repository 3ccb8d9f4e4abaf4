vim.bo.commentstring = "; %s"
