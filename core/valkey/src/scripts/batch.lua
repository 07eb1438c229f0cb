-- Executes operations in order, until one fails. `operations` has a function for each, whose parameters are its keys and
-- arguments.
-- KEYS: the keys of all operations. ARGV: for each operation its name, how many keys and arguments it has, and its arguments.
-- Returns how many succeeded, the error of the next one, and the texts that operations returned, each with the number of its
-- operation from 0.
local next_key, at, done, returned = 1, 1, 0, {}
while at <= #ARGV do
  local operation = operations[ARGV[at]]
  local keys, arguments = {}, {}
  for key = 1, tonumber(ARGV[at + 1]) do
    keys[key] = KEYS[next_key]
    next_key = next_key + 1
  end
  local count = tonumber(ARGV[at + 2])
  for argument = 1, count do
    arguments[argument] = ARGV[at + 2 + argument]
  end
  at = at + 3 + count
  local succeeded, result = pcall(operation, keys, arguments)
  if not succeeded then
    -- Redis 6 raises errors of commands as texts.
    return {done, type(result) == 'table' and result.err or tostring(result), returned}
  end
  if type(result) == 'string' then
    returned[#returned + 1] = {done, result}
  end
  done = done + 1
end
return {done, '', returned}
