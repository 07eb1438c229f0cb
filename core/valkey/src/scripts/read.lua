-- Reads a part of a stream. KEYS: the index of its session, the stream.
-- ARGV: the stream's name, the id to begin at, the limits of events and bytes; one event is returned however large it is.
-- Returns what the index says about the stream, 1 if there are further events, and the ids and events; nothing if the stream is
-- unknown.
local index, stream, name = KEYS[1], KEYS[2], ARGV[1]
local max_events, max_bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local entry = redis.call('HGET', index, name)
if not entry then
  return false
end
local answer, bytes = {entry, 0}, 0
for at, event in ipairs(redis.call('XRANGE', stream, ARGV[2], '+', 'COUNT', max_events + 1)) do
  local size = #event[2][2]
  if at > max_events or (at > 1 and bytes + size > max_bytes) then
    answer[2] = 1
    break
  end
  bytes = bytes + size
  answer[#answer + 1] = event[1]
  answer[#answer + 1] = event[2][2]
end
return answer
