-- Shader machine code of ATI R500, AMD R700 and NVIDIA Tesla.
local M = {}

local machines = { r500 = true, r700 = true, tesla = true }

--- Returns the machine of a text, or nil: what `.isa` states, or else the machine of the chip that `.chip` states.
function M.machine(lines)
  local of_chip
  for _, line in ipairs(lines) do
    local directive, value = line:match("^%s*%.(%w+)%s+([%w_-]+)")
    value = value and value:lower()
    if directive == "isa" and machines[value] then
      return value
    elseif directive == "chip" then
      of_chip = of_chip or require("reconverge.chips")[value]
    end
  end
  return of_chip
end

--- Returns the file type of an assembler file: that of its machine, or `asm` if the text and its name state none.
function M.filetype(path, bufnr)
  local machine = M.machine(vim.api.nvim_buf_get_lines(bufnr or 0, 0, 200, false))
  if not machine then
    local named = path:match("%.(%w+)%.%w+$")
    machine = machines[named] and named
  end
  return machine and "reconverge-" .. machine or "asm"
end

return M
