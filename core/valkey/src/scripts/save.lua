-- Saves a session unless it was removed or another process has changed it, and lets its streams live as long.
-- KEYS: the session, its index. ARGV: the session's value, its lifetime in ms (0 if it does not end), the values that it may
-- replace. Returns the value that the session has instead if it is none of these.
local session, index = KEYS[1], KEYS[2]
local lifetime = tonumber(ARGV[2])
local stored = redis.call('GET', session)
if stored == '' then
  return 0
end
if stored and stored ~= ARGV[1] then
  local may_replace = false
  for at = 3, #ARGV do
    may_replace = may_replace or stored == ARGV[at]
  end
  if not may_replace then
    return stored
  end
end
if lifetime > 0 then
  redis.call('SET', session, ARGV[1], 'PX', lifetime)
else
  redis.call('SET', session, ARGV[1])
end
local function keep(key)
  if lifetime > 0 then
    redis.call('PEXPIRE', key, lifetime)
  else
    redis.call('PERSIST', key)
  end
end
keep(index)
for _, name in ipairs(redis.call('HKEYS', index)) do
  if name ~= '*' then
    keep(index .. ':' .. name)
  end
end
return 1
