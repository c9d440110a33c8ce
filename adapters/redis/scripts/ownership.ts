/**
 * Scripts about who owns a partition and who is a member.
 *
 * @module
 */
import { ENSURE_GROUP, FLOOR, GROUP_INFO, type Script, script } from "./parts.ts";

/**
 * KEYS stream, owner, epoch, owners, floor. ARGV `<consumer>:<instance>`, group, consumer, lease ms.
 * Answers {1, epoch, last delivered id, whether the group was created}, or {0} while another owner's lease runs. The epoch
 * only grows: it is at least the server's time, so that it does so even when its key was lost.
 */
export const ACQUIRE: Script = script(
  "taking a partition",
  GROUP_INFO,
  ENSURE_GROUP,
  `
local owner = redis.call('GET', KEYS[2])
local suffix = ':' .. ARGV[1]
if owner and string.sub(owner, -#suffix) ~= suffix then return {0} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = math.max(tonumber(redis.call('GET', KEYS[3]) or '0') + 1, now)
local text = string.format('%.0f', epoch)
local created = ensure_group(KEYS[1], ARGV[2], KEYS[5])
if type(created) == 'table' then return created end
redis.call('SET', KEYS[3], text)
redis.call('SET', KEYS[2], text .. suffix, 'PX', ARGV[4])
redis.call('ZADD', KEYS[4], now, ARGV[3])
local info = group_info(KEYS[1], ARGV[2])
return {1, text, field(info, 'last-delivered-id'), created}`,
);

/**
 * KEYS stream, owner, epoch, owners, floor. ARGV token, epoch, lease ms, group, consumer.
 * Answers {1, pending entries of ours or -1 without a group, lag or -1, pending entries of names that never owned the
 * partition}, or {0}. A key that ran out is taken back once, if nobody owned the partition since.
 */
export const RENEW: Script = script(
  "keeping a partition",
  GROUP_INFO,
  FLOOR,
  `
local owner = redis.call('GET', KEYS[2])
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
elseif not owner and redis.call('GET', KEYS[3]) == ARGV[2] then
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[3])
else
  return {0}
end
local time = redis.call('TIME')
redis.pcall('ZADD', KEYS[4], time[1] * 1000, ARGV[5])
local mine, strangers = -1, 0
local pending = save_floor(KEYS[1], ARGV[4], KEYS[5])
if pending then
  mine = 0
  for _, entry in ipairs(pending[4] or {}) do
    if entry[1] == ARGV[5] then
      mine = tonumber(entry[2])
    elseif not redis.call('ZSCORE', KEYS[4], entry[1]) then
      strangers = strangers + entry[2]
    end
  end
end
local info = group_info(KEYS[1], ARGV[4])
return {1, mine, tonumber(info and field(info, 'lag')) or -1, strangers}`,
);

/** KEYS stream, owner. ARGV token. Frees the partition for another member at once, if it is ours. */
export const SURRENDER: Script = script(
  "giving a partition up",
  `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[2])`,
);

/** KEYS members. ARGV consumer, lease ms. Answers the names of the live members. */
export const BEAT: Script = script(
  "telling the group we are alive",
  `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
return redis.call('ZRANGE', KEYS[1], 0, -1)`,
);

/** KEYS members. ARGV consumer. */
export const LEAVE: Script = script("leaving the group", `return redis.call('ZREM', KEYS[1], ARGV[1])`);
