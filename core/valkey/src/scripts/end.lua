-- Marks the end of a stream. KEYS: the index of its session. ARGV: the stream's name.
local index, name = KEYS[1], ARGV[1]
local entry = string.match(redis.call('HGET', index, name) or '', '%d+ %d+ %d+ %d+')
if entry then
  redis.call('HSET', index, name, entry .. ' 1')
end
return 1
