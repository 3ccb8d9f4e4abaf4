vim.filetype.add({ extension = { s = require("reconverge").filetype, asm = require("reconverge").filetype } })
