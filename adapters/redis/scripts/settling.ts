/**
 * Scripts about settling, extending and giving back.
 *
 * @module
 */
import { FENCE, FLOOR, GROUP_INFO, type Script, script } from "./parts.ts";

/** Which of the ids in ARGV from `from` on are pending under our name: a set. One look at a range where there are many. */
const MINE: string = `
local function mine(stream, group, me, from, first, last)
  local set = {}
  if #ARGV - from < 16 then
    for i = from, #ARGV do
      if redis.call('XPENDING', stream, group, ARGV[i], ARGV[i], 1, me)[1] then set[ARGV[i]] = true end
    end
  else
    for _, row in ipairs(redis.call('XPENDING', stream, group, first, last, 1000000, me)) do set[row[1]] = true end
  end
  return set
end`;

/**
 * KEYS stream, owner, floor. ARGV token, group, whether to save the floor ('1'), ids …
 * Acknowledges. Answers how many of them were pending; for up to 8 ids, where some were not, a list of 1 and 0.
 */
export const ACK: Script = script(
  "acknowledging",
  FENCE,
  GROUP_INFO,
  FLOOR,
  `
local done = 0
local single = {}
if #ARGV <= 11 then
  for i = 4, #ARGV do
    local n = redis.call('XACK', KEYS[1], ARGV[2], ARGV[i])
    single[#single + 1] = n
    done = done + n
  end
else
  done = redis.call('XACK', KEYS[1], ARGV[2], unpack(ARGV, 4))
end
if ARGV[3] == '1' then save_floor(KEYS[1], ARGV[2], KEYS[3]) end
if #single > 0 and done < #single then return single end
return done`,
);

/**
 * KEYS stream, floor. ARGV group, consumer, what ('ack', 'ack+floor' or 'extend'), lowest id, highest id, ids …
 * Settles or extends what is still pending under our name. Answers a list of 1 and 0. Extending leaves the count alone.
 */
export const SETTLE_MINE: Script = script(
  "settling",
  MINE,
  GROUP_INFO,
  FLOOR,
  `
local stream, group, me = KEYS[1], ARGV[1], ARGV[2]
local ours = mine(stream, group, me, 6, ARGV[4], ARGV[5])
local ids, out = {}, {}
for i = 6, #ARGV do
  local id = ARGV[i]
  if ours[id] then
    ids[#ids + 1] = id
    ours[id] = nil
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
end
if #ids > 0 then
  if ARGV[3] == 'extend' then
    ids[#ids + 1] = 'JUSTID'
    redis.call('XCLAIM', stream, group, me, 0, unpack(ids))
  else
    redis.call('XACK', stream, group, unpack(ids))
    if ARGV[3] == 'ack+floor' then save_floor(stream, group, KEYS[2]) end
  end
end
return out`,
);

/**
 * KEYS stream, owner. ARGV token, group, consumer, idle ms ('' = leave), ids … (none = all of ours).
 * Takes the delivery that is given back out of the count, and with \`idle ms\` lets others claim it at once. Answers a list of
 * 1 and 0 for the ids.
 */
export const RELEASE: Script = script(
  "giving back",
  FENCE,
  `
local stream, group, me = KEYS[1], ARGV[2], ARGV[3]
local function give(id)
  local row = redis.call('XPENDING', stream, group, id, id, 1, me)[1]
  if not row then return 0 end
  local args = {'XCLAIM', stream, group, me, 0, id}
  if ARGV[4] ~= '' then
    args[#args + 1] = 'IDLE'
    args[#args + 1] = ARGV[4]
  end
  args[#args + 1] = 'RETRYCOUNT'
  args[#args + 1] = math.max(0, row[4] - 1)
  args[#args + 1] = 'JUSTID'
  redis.call(unpack(args))
  return 1
end
local out = {}
if #ARGV > 4 then
  for i = 5, #ARGV do out[#out + 1] = give(ARGV[i]) end
else
  for _, row in ipairs(redis.call('XPENDING', stream, group, '-', '+', 100000, me)) do give(row[1]) end
end
return out`,
);
