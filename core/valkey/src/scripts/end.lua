-- Marks the end of a stream. KEYS: the index of its session. ARGV: the stream's name.
local index, name = KEYS[1], ARGV[1]
local found = redis.call('HGET', index, name)
if found then
  redis.call('HSET', index, name, string.match(found, '%d+ %d+ %d+ %d+') .. ' 1')
end
return 1
