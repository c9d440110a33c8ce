/**
 * What members cost a server while nothing is published: commands a second, by INFO commandstats.
 *
 * @module
 */
import { Redis } from "ioredis";
import { RedisStreamsBroker } from "../../adapters/redis/mod.ts";
import { fresh, until } from "../support/test.ts";
import { ServerView } from "./view.ts";

/** Commands a second of one setting. */
export interface IdleCost {
  readonly what: string;
  /** Sent by clients. */
  readonly sent: number;
  /** Run by the server: those inside scripts as well. */
  readonly run: number;
  /** The most frequent ones. */
  readonly most: string;
}

/** Members that have nothing to do, each with a worker of its own. */
class Members {
  readonly #url: string;
  readonly #partitions: number;
  readonly #prefix = fresh("idle");
  readonly #view: ServerView;
  readonly #brokers: RedisStreamsBroker[] = [];

  constructor(url: string, partitions: number) {
    this.#url = url;
    this.#partitions = partitions;
    this.#view = new ServerView({ url, partitions, prefix: this.#prefix, topic: "orders", group: "billing" });
  }

  /** Adds members; resolves when each owns its share and has been idle for a while. */
  async add(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const broker = new RedisStreamsBroker({
        url: this.#url,
        prefix: this.#prefix,
        partitions: this.#partitions,
        group: "billing",
        logger: false,
      });
      this.#brokers.push(broker);
      void (async () => {
        for await (const delivery of broker.subscribe("orders")) await delivery.ack();
      })().catch(() => {});
    }
    const expected = Math.min(this.#partitions, this.#brokers.length);
    await until(async () => {
      const owners = await this.#view.owners();
      return !owners.includes(undefined) && new Set(owners).size === expected;
    }, { timeoutMs: 30_000, everyMs: 100, what: `${expected} owners` });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }

  async end(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.close()));
    await this.#view.clear();
  }
}

/** Measures on a server that nobody else uses; `seconds` each. */
export async function idleCosts(url: string, seconds: number, say: (cost: IdleCost) => void): Promise<IdleCost[]> {
  const client = new Redis(url);
  const costs: IdleCost[] = [];
  const measure = async (what: string, less?: Counts): Promise<Counts> => {
    const before = await countsOf(client);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    const counts = perSecond(before, await countsOf(client), seconds);
    const cost = costOf(what, less === undefined ? counts : minus(counts, less));
    costs.push(cost);
    say(cost);
    return counts;
  };
  try {
    for (const partitions of [1, 8]) {
      const members = new Members(url, partitions);
      try {
        await members.add(1);
        let owners = await measure(`partitions ${partitions}: its only member, which owns all`);
        if (partitions > 1) {
          await members.add(partitions - 1);
          owners = await measure(`partitions ${partitions}: as many members, which own one each, together`);
        }
        await members.add(1);
        await measure(`partitions ${partitions}: one more member, which stands by, alone`, owners);
      } finally {
        await members.end();
      }
    }
  } finally {
    client.disconnect();
  }
  return costs;
}

type Counts = ReadonlyMap<string, number>;

async function countsOf(client: Redis): Promise<Counts> {
  const counts = new Map<string, number>();
  for (const [, name, calls] of (await client.info("commandstats")).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    counts.set(name!, Number(calls));
  }
  // What asking for the counts costs.
  counts.delete("info");
  return counts;
}

/** Commands that are sent; all others that an idle member makes the server run are inside scripts. */
const SENT = new Set(["evalsha", "eval", "xread", "watch", "multi", "xreadgroup", "exec", "ping"]);

function perSecond(before: Counts, after: Counts, seconds: number): Counts {
  return new Map([...after].map(([name, calls]) => [name, (calls - (before.get(name) ?? 0)) / seconds]));
}

function minus(counts: Counts, less: Counts): Counts {
  return new Map([...counts].map(([name, calls]) => [name, calls - (less.get(name) ?? 0)]));
}

function costOf(what: string, counts: Counts): IdleCost {
  const commands = [...counts];
  const sum = (list: readonly (readonly [string, number])[]): number =>
    round(list.reduce((total, [, calls]) => total + calls, 0));
  const most = commands.filter(([, calls]) => calls >= 0.05).sort((a, b) => b[1] - a[1]).slice(0, 8);
  return {
    what,
    sent: sum(commands.filter(([name]) => SENT.has(name))),
    run: sum(commands),
    most: most.map(([name, calls]) => `${name} ${round(calls)}`).join(", "),
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
