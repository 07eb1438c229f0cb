-- Takes tokens of a bucket, or gives them back. KEYS: the bucket, a number: the microseconds since 1970 at which it is full
-- again. If it is missing, it is full.
-- ARGV: the nanoseconds until it gets another token, the tokens that it has when it is full, the tokens to take, those to give
-- back before. Returns the tokens taken and, if there are none, the microseconds until there is one.
local bucket = KEYS[1]
local interval, burst = tonumber(ARGV[1]) / 1000, tonumber(ARGV[2])
local wanted, returned = tonumber(ARGV[3]), tonumber(ARGV[4])
-- The server's: those of the processes may differ.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local room = interval * burst
local stored = tonumber(redis.call('GET', bucket) or 0)
-- After a failover the clock may be another one: the bucket lacks no more than all tokens.
local missing = math.min(math.max(stored - now, 0), room)
missing = math.max(missing - returned * interval, 0)
-- Stored to a hundredth of a microsecond, so a token may be missing by less than this part.
local available = math.floor((room - missing) / interval + 0.001)
local taken = math.max(math.min(wanted, available), 0)
-- Valkey cannot represent all times: 100 years are enough.
local longest = 3155760000000000
local function store(missing)
  local lifetime = math.ceil(math.min(missing, longest) / 1000)
  redis.call('SET', bucket, string.format('%.2f', now + missing), 'PX', string.format('%.0f', lifetime))
end
if taken == 0 and returned == 0 then
  if stored - now > room then
    -- So that time fills it.
    store(room)
  end
  return {0, math.ceil(math.min(interval - (room - missing), longest))}
end
missing = missing + taken * interval
if missing > 0 then
  store(missing)
else
  redis.call('DEL', bucket)
end
return {taken, 0}
