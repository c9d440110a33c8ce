/**
 * Scripts about a topic as a whole: publishing, its number of partitions, and its upkeep.
 *
 * @module
 */
import { FIELD, type Script, script } from "./parts.ts";

/**
 * KEYS stream. ARGV MAXLEN or '', then subject, body …
 * Appends in order. After the first refusal of a subject its later messages are left out; messages without a subject stand
 * each for itself. Answers the refusals: position from 0, reply ('' = left out) …
 */
export const PUBLISH: Script = script(
  "XADD",
  `
local failed, out = {}, {}
local stream, max = KEYS[1], ARGV[1]
for i = 2, #ARGV, 2 do
  local subject = ARGV[i]
  if failed[subject] then
    out[#out + 1] = i / 2 - 1
    out[#out + 1] = ''
  else
    local reply
    if max == '' then
      reply = redis.pcall('XADD', stream, '*', 'ce', ARGV[i + 1], 'subject', subject)
    else
      reply = redis.pcall('XADD', stream, 'MAXLEN', '~', max, '*', 'ce', ARGV[i + 1], 'subject', subject)
    end
    if type(reply) == 'table' and reply.err then
      if subject ~= '' then failed[subject] = true end
      out[#out + 1] = i / 2 - 1
      out[#out + 1] = reply.err
    end
  end
end
return out`,
);

/** KEYS record. ARGV number of partitions. Records the number if there is none; answers what is recorded. */
export const PARTITIONS: Script = script(
  "reading the number of partitions",
  `
local recorded = redis.call('GET', KEYS[1])
if not recorded then
  redis.call('SET', KEYS[1], ARGV[1])
  recorded = ARGV[1]
end
return recorded`,
);

/**
 * KEYS stream, owners. ARGV group, our name, idle ms, whether we leave ('1').
 * Removes consumers that have nothing pending and were not seen for that long, and when we leave our own name: a consumer
 * removed with entries pending would take them with it. Answers how many went.
 */
export const TIDY: Script = script(
  "removing consumers",
  FIELD,
  `
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end
local gone, there = 0, {}
for _, info in ipairs(consumers) do
  local name = field(info, 'name')
  local idle = field(info, 'idle') > tonumber(ARGV[3])
  if name == ARGV[2] then idle = ARGV[4] == '1' end
  if idle and field(info, 'pending') == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], name)
    redis.call('ZREM', KEYS[2], name)
    gone = gone + 1
  else
    there[name] = true
  end
end
local time = redis.call('TIME')
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', time[1] * 1000 - ARGV[3]))
for _, name in ipairs(old) do
  if not there[name] then redis.call('ZREM', KEYS[2], name) end
end
return gone`,
);

/**
 * KEYS stream. ARGV retention ms. Removes entries that are older and that every group has read and settled. Answers
 * {how many went, whether older ones had to stay}. While there is no group, nobody has read anything.
 */
export const TRIM: Script = script(
  "trimming",
  FIELD,
  `
local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err then return {0, 0} end
local time = redis.call('TIME')
local cut = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1]
local bound
local function lower(id)
  local at = tonumber(string.match(id, '^(%d+)'))
  if not bound or at < bound then bound = at end
end
for _, info in ipairs(groups) do
  lower(field(info, 'last-delivered-id'))
  local pending = redis.call('XPENDING', KEYS[1], field(info, 'name'))
  if pending[1] > 0 then lower(pending[2]) end
end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
local stale = first and tonumber(string.match(first[1], '^(%d+)')) < cut
if not bound then return {0, stale and 1 or 0} end
local to = string.format('%.0f', math.min(bound, cut))
return {redis.call('XTRIM', KEYS[1], 'MINID', '~', to), bound < cut and stale and 1 or 0}`,
);
