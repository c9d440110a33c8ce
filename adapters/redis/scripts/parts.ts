/**
 * What runs inside Redis, so that a check and what depends on it are one step. Every key a script touches is named in KEYS and
 * lies in the slot of the stream. Nothing here is newer than Redis 6.2.
 *
 * A `token` names one ownership of one partition: `<epoch>:<consumer>:<instance>`. A script that is given one does nothing
 * unless the owner key holds exactly that, and answers -1. An empty token asks for no ownership (`ordered: false`).
 *
 * @module
 */
import { createHash } from "node:crypto";

/** A script, known to the server by the hash of its text. */
export interface Script {
  /** What it does, for errors. */
  readonly name: string;
  readonly text: string;
  readonly sha: string;
}

/** Joins the parts of a script. */
export function script(name: string, ...parts: readonly string[]): Script {
  const text = parts.map((part) => part.trim()).join("\n");
  return { name, text, sha: createHash("sha1").update(text).digest("hex") };
}

/** Nothing happens unless the partition is ours. */
export const FENCE: string = `
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then return -1 end`;

/** A field of a reply that lists names and values in turn. */
export const FIELD: string = `
local function field(list, name)
  for i = 1, #list, 2 do
    if list[i] == name then return list[i + 1] end
  end
  return nil
end`;

/** What XINFO GROUPS says of one group; nil if there is no such group or no stream. */
export const GROUP_INFO: string = `${FIELD}
local function group_info(stream, group)
  local groups = redis.pcall('XINFO', 'GROUPS', stream)
  if groups.err then
    if string.find(groups.err, 'no such key', 1, true) then return nil end
    error(groups.err)
  end
  for _, info in ipairs(groups) do
    if field(info, 'name') == group then return info end
  end
  return nil
end`;

/**
 * Saves the floor: the entry id up to which everything is settled. It is the one before the oldest pending entry; with
 * nothing pending, the last one delivered. A server without memory to spare may refuse, which must not fail the caller.
 * Answers the summary of what is pending, nil without a group.
 */
export const FLOOR: string = `
local function before(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  if seq ~= '0' and #seq < 16 then return ms .. '-' .. string.format('%.0f', tonumber(seq) - 1) end
  if ms == '0' then return nil end
  return string.format('%.0f', tonumber(ms) - 1) .. '-18446744073709551615'
end
local function save_floor(stream, group, key)
  local pending = redis.pcall('XPENDING', stream, group)
  if pending.err then return nil end
  local floor
  if pending[1] > 0 then
    floor = before(pending[2])
  else
    local info = group_info(stream, group)
    floor = info and field(info, 'last-delivered-id')
  end
  if floor then redis.pcall('SET', key, floor) end
  return pending
end`;

/**
 * Sees to it that the group exists. A group that was lost starts again at the saved floor, unless the stream itself is a new
 * one (its last id is below the floor); a group that never was starts at the first entry. Answers whether it was created.
 */
export const ENSURE_GROUP: string = `
local function split(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return ms, seq
end
local function less(a, b)
  local a1, a2 = split(a)
  local b1, b2 = split(b)
  if #a1 ~= #b1 then return #a1 < #b1 end
  if a1 ~= b1 then return a1 < b1 end
  if #a2 ~= #b2 then return #a2 < #b2 end
  return a2 < b2
end
local function ensure_group(stream, group, floor_key)
  local start = '0-0'
  local floor = redis.call('GET', floor_key)
  if floor and redis.call('EXISTS', stream) == 1 then
    local last = field(redis.call('XINFO', 'STREAM', stream), 'last-generated-id')
    if not less(last, floor) then start = floor end
  end
  local made = redis.pcall('XGROUP', 'CREATE', stream, group, start, 'MKSTREAM')
  if type(made) == 'table' and made.err then
    if string.find(made.err, 'BUSYGROUP', 1, true) then return 0 end
    return made
  end
  return 1
end`;
