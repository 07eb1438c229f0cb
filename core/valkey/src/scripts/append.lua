-- Adds an event to a stream, within the limits of the stream and of its session, unless the session was removed.
-- KEYS: the session, its index, the stream. All other streams of the index are in the same slot.
-- ARGV: the stream's name, the event's number, the event; the limits of events and bytes of a stream and of bytes and
-- streams of a session; the bytes of an event besides its message; the lifetime in ms if the session is not saved.
local session, index, stream = KEYS[1], KEYS[2], KEYS[3]
local name, number, event = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local max_events, max_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local max_session_bytes, max_streams = tonumber(ARGV[6]), tonumber(ARGV[7])
local overhead, lifetime = tonumber(ARGV[8]), tonumber(ARGV[9])

if redis.call('STRLEN', session) == 0 and redis.call('EXISTS', session) == 1 then
  return 0
end
local next_place, total = string.match(redis.call('HGET', index, '*') or '0 0', '(%d+) (%d+)')
next_place, total = tonumber(next_place), tonumber(total)
local has_events = redis.call('EXISTS', stream) == 1
local place, first, last, bytes = string.match(redis.call('HGET', index, name) or '', '(%d+) (%d+) (%d+) (%d+)')
local had_gap = false
if place then
  place, first, last, bytes = tonumber(place), tonumber(first), tonumber(last), tonumber(bytes)
  if number <= last then
    return 0
  end
  -- The events may have been evicted without the index.
  had_gap = number > last + 1 or not has_events
else
  -- The index may have been evicted without the events: what came before this event is unknown.
  if has_events then
    redis.call('DEL', stream)
  end
  place, first, last, bytes = next_place, number, number - 1, 0
  next_place = next_place + 1
end

-- The write that may fail for lack of memory comes first, so that a failure changes nothing.
redis.call('XADD', stream, string.format('%.0f-1', number), 'd', event)
if had_gap then
  -- Events in between are lost: a client that has not read them cannot resume.
  redis.call('XTRIM', stream, 'MAXLEN', 1)
  total = math.max(total - bytes, 0)
  first, bytes = number, 0
end
last = number
bytes = bytes + #event + overhead
total = total + #event + overhead
while last - first + 1 > max_events or (bytes > max_bytes and first < last) do
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', stream, oldest[1])
  local size = #oldest[2][2] + overhead
  bytes, total, first = math.max(bytes - size, 0), math.max(total - size, 0), first + 1
end
redis.call('HSET', index, name, string.format('%.0f %.0f %.0f %.0f 0', place, first, last, bytes))

while total > max_session_bytes or redis.call('HLEN', index) > max_streams + 1 do
  local all = redis.call('HGETALL', index)
  local oldest, oldest_place, oldest_bytes
  for at = 1, #all, 2 do
    if all[at] ~= '*' and all[at] ~= name then
      local other, size = string.match(all[at + 1], '(%d+) %d+ %d+ (%d+)')
      other = tonumber(other)
      if not oldest or other < oldest_place then
        oldest, oldest_place, oldest_bytes = all[at], other, tonumber(size)
      end
    end
  end
  if not oldest then
    break
  end
  redis.call('DEL', index .. ':' .. oldest)
  redis.call('HDEL', index, oldest)
  total = math.max(total - oldest_bytes, 0)
end
redis.call('HSET', index, '*', string.format('%.0f %.0f', next_place, total))

local left = redis.call('PTTL', session)
if left == -1 then
  redis.call('PERSIST', index)
  redis.call('PERSIST', stream)
else
  if left < 0 then
    left = lifetime
  end
  redis.call('PEXPIRE', index, left)
  redis.call('PEXPIRE', stream, left)
end
return 1
