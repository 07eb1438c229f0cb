-- Marks the end of a stream. KEYS: the index of its session, the stream. ARGV: the stream's name, the number of its last event.
local index, stream, name, number = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local place, first, last, bytes = string.match(redis.call('HGET', index, name) or '', '(%d+) (%d+) (%d+) (%d+)')
if place then
  place, first, last, bytes = tonumber(place), tonumber(first), tonumber(last), tonumber(bytes)
  if last ~= number then
    -- The last event is lost: a client that has not read it cannot resume.
    redis.call('DEL', stream)
    local next_place, total = string.match(redis.call('HGET', index, '*') or '0 0', '(%d+) (%d+)')
    redis.call('HSET', index, '*', string.format('%s %.0f', next_place, math.max(tonumber(total) - bytes, 0)))
    first, last, bytes = number + 1, number, 0
  end
  redis.call('HSET', index, name, string.format('%.0f %.0f %.0f %.0f 1', place, first, last, bytes))
end
return 1
