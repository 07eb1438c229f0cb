-- Removes a session and its streams. An empty value remains for a while, so that a process that has not yet received that the
-- session ended does not restore it.
-- KEYS: the session, its index. ARGV: how long the empty value remains, in ms.
local session, index = KEYS[1], KEYS[2]
for _, name in ipairs(redis.call('HKEYS', index)) do
  redis.call('DEL', index .. ':' .. name)
end
redis.call('DEL', session, index)
redis.call('SET', session, '', 'PX', ARGV[1])
return 1
