-- Puts an event on the bus, within its limits. KEYS: the bus, the bytes on it.
-- ARGV: the sender, the event's number at its sender, the event; the limits of events and bytes; the bytes of an event
-- besides its message; the lifetime in ms.
local bus, sum = KEYS[1], KEYS[2]
local max_events, max_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local overhead, lifetime = tonumber(ARGV[6]), tonumber(ARGV[7])
redis.call('XADD', bus, '*', 's', ARGV[1], 'n', ARGV[2], 'd', ARGV[3])
local bytes, events = tonumber(redis.call('GET', sum) or '-1'), redis.call('XLEN', bus)
if events == 1 then
  -- The bus may have been evicted without its sum.
  bytes = #ARGV[3] + overhead
elseif bytes < 0 then
  -- The sum was evicted without the bus.
  bytes = 0
  for _, entry in ipairs(redis.call('XRANGE', bus, '-', '+')) do
    bytes = bytes + #entry[2][6] + overhead
  end
else
  bytes = bytes + #ARGV[3] + overhead
end
while events > max_events or (bytes > max_bytes and events > 1) do
  local oldest = redis.call('XRANGE', bus, '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', bus, oldest[1])
  bytes, events = bytes - #oldest[2][6] - overhead, events - 1
end
redis.call('SET', sum, string.format('%.0f', math.max(bytes, 0)), 'PX', lifetime)
redis.call('PEXPIRE', bus, lifetime)
return 1
