-- Saves a session unless it was removed, and lets its streams live as long. KEYS: the session, its index.
-- ARGV: the session's value, its lifetime in ms (0 if it does not end).
local session, index = KEYS[1], KEYS[2]
local lifetime = tonumber(ARGV[2])
if redis.call('STRLEN', session) == 0 and redis.call('EXISTS', session) == 1 then
  return 0
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
