/**
 * What the server knows of a team.
 *
 * @module
 */
import { Redis } from "ioredis";
import { TopicKeys } from "../../adapters/redis/keys.ts";
import type { TeamSettings } from "./settings.ts";

/** What is looked at. */
export type Watched = Pick<TeamSettings, "url" | "prefix" | "topic" | "group" | "partitions">;

/** What a team needs to see. */
export type TeamView = Pick<ServerView, "owners" | "backlog" | "floors" | "pendingByName" | "clear">;

/** One topic and group at a Redis. */
export class ServerView {
  readonly keys: TopicKeys;
  readonly #settings: Watched;
  readonly #client: Redis;

  constructor(settings: Watched) {
    this.#settings = settings;
    this.keys = new TopicKeys(settings.prefix, settings.topic, settings.partitions);
    this.#client = new Redis(settings.url);
    this.#client.on("error", () => {});
  }

  /** The owner's name by partition; undefined = nobody's lease runs. */
  async owners(): Promise<(string | undefined)[]> {
    const { partitions, group } = this.#settings;
    const keys = Array.from({ length: partitions }, (_, at) => this.keys.partition(at, group).owner);
    const tokens = await this.#client.mget(keys);
    return tokens.map((token) => token?.split(":")[1]);
  }

  /** Pending entries of the whole topic, and entries not delivered yet, at one moment. */
  async backlog(): Promise<{ pending: number; waiting: number }> {
    const script = `
local pending, waiting = 0, 0
for _, key in ipairs(KEYS) do
  local sum = redis.pcall('XPENDING', key, ARGV[1])
  if not sum.err then
    pending = pending + sum[1]
    local info = redis.call('XINFO', 'GROUPS', key)[1]
    local last
    for i = 1, #info, 2 do if info[i] == 'last-delivered-id' then last = info[i + 1] end end
    waiting = waiting + #redis.call('XRANGE', key, '(' .. last, '+', 'COUNT', 1)
  else
    waiting = waiting + redis.call('EXISTS', key)
  end
end
return {pending, waiting}`;
    const { streams } = this.keys;
    const reply = await this.#client.eval(script, streams.length, ...streams, this.#settings.group);
    const [pending, waiting] = reply as [number, number];
    return { pending, waiting };
  }

  /** Up to which entry everything is known to be settled, by partition. */
  async floors(): Promise<readonly (string | null)[]> {
    const { partitions, group } = this.#settings;
    return await this.#client.mget(
      Array.from({ length: partitions }, (_, at) => this.keys.partition(at, group).floor),
    );
  }

  /** How many entries are pending under each consumer's name, over all partitions. */
  async pendingByName(): Promise<Readonly<Record<string, number>>> {
    const counts: Record<string, number> = {};
    for (const stream of this.keys.streams) {
      const reply = await this.#client.xpending(stream, this.#settings.group) as [
        number,
        string,
        string,
        [string, string][],
      ];
      for (const [name, count] of reply[3] ?? []) counts[name] = (counts[name] ?? 0) + Number(count);
    }
    return counts;
  }

  /** Removes everything of the team, and ends the connection. */
  async clear(): Promise<void> {
    for (let cursor = "0";;) {
      const [next, keys] = await this.#client.scan(cursor, "MATCH", `*${this.#settings.prefix}:*`, "COUNT", 1_000);
      if (keys.length > 0) await this.#client.del(keys);
      if ((cursor = next) === "0") break;
    }
    await new Promise<void>((resolve) => {
      this.#client.once("end", () => resolve());
      this.#client.disconnect();
    });
  }
}
