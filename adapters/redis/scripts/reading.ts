/**
 * Scripts about reading and claiming.
 *
 * @module
 */
import { ENSURE_GROUP, FENCE, GROUP_INFO, type Script, script } from "./parts.ts";

/** The body of an entry: false where the entry is gone, empty where it has no field `ce`. */
const BODY = `
local function body(entry)
  if not entry or not entry[2] then return false end
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'ce' then return entry[2][i + 1] end
  end
  return ''
end`;

/**
 * KEYS owner, epoch. ARGV token. The first half of a fenced read, run while both keys are watched: if the partition is not
 * ours it touches one of them, and with that the transaction behind it does nothing. See fenced_read.ts.
 * EXPIRE is the touch since a server whose memory is full still allows it.
 */
export const READ_FENCE: Script = script(
  "reading",
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  if redis.call('PEXPIRE', KEYS[2], '31536000000') == 0 then
    redis.call('SET', KEYS[2], '0')
  else
    redis.call('PERSIST', KEYS[2])
  end
end
return 1`,
);

/**
 * KEYS stream, owner. ARGV token, group, consumer, count. A fenced read in one script: for a server whose memory is full,
 * which then queues no command for a transaction. Answers id, body … in turn.
 */
export const READ: Script = script(
  "reading",
  FENCE,
  BODY,
  `
local read = redis.call('XREADGROUP', 'GROUP', ARGV[2], ARGV[3], 'COUNT', ARGV[4], 'STREAMS', KEYS[1], '>')
local out = {}
if not read then return out end
for _, entry in ipairs(read[1][2]) do
  out[#out + 1] = entry[1]
  out[#out + 1] = body(entry)
end
return out`,
);

/**
 * KEYS stream, owner, owners. ARGV token, group, consumer, first id, count, min idle ms, mode, ids held …
 * Looks at up to `count` pending entries from `first id` on and claims those that are due:
 *
 * - `takeover`: all of ours, whichever member had them (an owner has the partition alone); those of names that never owned the
 *   partition only when idle long enough. Counted.
 * - `strangers`: only those of names that never owned the partition, idle long enough. Counted.
 * - `mine`: those under our own name that we do not hold. Counted.
 * - `lost`: the same, where a reply never arrived: nobody saw them, so the count stays as it is.
 * - `idle`: anybody's that are idle long enough, but for those we hold. Counted.
 *
 * Answers {looked at, last id, strangers left, ms until the first of them is due, then id, deliveries before, body …}. The
 * body is nil where the entry is no longer in the stream, and empty where it has no field `ce`.
 */
export const CLAIM: Script = script(
  "claiming pending entries",
  FENCE,
  BODY,
  `
local stream, group, me = KEYS[1], ARGV[2], ARGV[3]
local count, min_idle, mode = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local held = {}
for i = 8, #ARGV do held[ARGV[i]] = true end
local rows
if mode == 'mine' or mode == 'lost' then
  rows = redis.call('XPENDING', stream, group, ARGV[4], '+', count, me)
elseif mode == 'idle' then
  rows = redis.call('XPENDING', stream, group, 'IDLE', min_idle, ARGV[4], '+', count)
else
  rows = redis.call('XPENDING', stream, group, ARGV[4], '+', count)
end
local out = {#rows, '', 0, 0}
local members = {}
for _, row in ipairs(rows) do
  local id, name, idle, delivered = row[1], row[2], row[3], row[4]
  local due
  if name == me then
    due = mode ~= 'strangers' and not held[id]
  elseif mode == 'idle' then
    due = true
  else
    if members[name] == nil then members[name] = redis.call('ZSCORE', KEYS[3], name) and true or false end
    if members[name] then
      due = mode == 'takeover'
    else
      due = idle >= min_idle
      if not due then
        if out[3] == 0 or min_idle - idle < out[4] then out[4] = min_idle - idle end
        out[3] = out[3] + 1
      end
    end
  end
  if due then
    local entry
    if mode == 'lost' then
      entry = redis.call('XCLAIM', stream, group, me, 0, id, 'RETRYCOUNT', delivered)[1]
      delivered = math.max(0, delivered - 1)
    else
      entry = redis.call('XCLAIM', stream, group, me, 0, id)[1]
    end
    out[#out + 1] = id
    out[#out + 1] = delivered
    out[#out + 1] = body(entry)
  end
  out[2] = id
end
return out`,
);

/** KEYS stream, floor. ARGV group. Creates the group if need be. Answers {whether it was created, last delivered id}. */
export const GROUP: Script = script(
  "creating the group",
  GROUP_INFO,
  ENSURE_GROUP,
  `
local created = ensure_group(KEYS[1], ARGV[1], KEYS[2])
if type(created) == 'table' then return created end
return {created, field(group_info(KEYS[1], ARGV[1]), 'last-delivered-id')}`,
);

/** KEYS stream. ARGV group. Answers {last delivered id, entries not delivered yet or -1}; nil without a group. */
export const GROUP_STATE: Script = script(
  "looking at the group",
  GROUP_INFO,
  `
local info = group_info(KEYS[1], ARGV[1])
return info and {field(info, 'last-delivered-id'), tonumber(field(info, 'lag')) or -1} or false`,
);
