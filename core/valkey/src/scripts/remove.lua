-- Removes a session and its streams. KEYS: the session, its index.
local session, index = KEYS[1], KEYS[2]
for _, name in ipairs(redis.call('HKEYS', index)) do
  redis.call('DEL', index .. ':' .. name)
end
redis.call('DEL', session, index)
return 1
