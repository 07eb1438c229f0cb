-- Finds the positions of messages on the bus without returning the messages. KEYS: the bus. ARGV: the first id to look for.
-- Returns the id of the latest message, and the id and the bytes of the first one from that id on; empty and 0 without one.
local latest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local next_entry = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 1)[1]
local bytes = 0
if next_entry then
  for _, field in ipairs(next_entry[2]) do
    bytes = bytes + #field
  end
end
return {latest and latest[1] or '', next_entry and next_entry[1] or '', bytes}
