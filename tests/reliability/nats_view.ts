/**
 * What a NATS server knows of a team.
 *
 * @module
 */
import { connect } from "@nats-io/transport-node";
import type { TeamView, Watched } from "./view.ts";

interface Durable {
  readonly name: string;
  readonly num_ack_pending: number;
  readonly num_pending: number;
  readonly ack_floor: { readonly stream_seq: number };
}

/** One topic and group at a NATS server. */
export class NatsView implements TeamView {
  readonly #settings: Watched;
  readonly #client: ReturnType<typeof connect>;

  constructor(settings: Watched) {
    this.#settings = settings;
    this.#client = connect({ servers: settings.url.replace("nats://", "") });
  }

  async #api<T>(verb: string, body: object = {}): Promise<T | undefined> {
    const client = await this.#client;
    const reply = await client.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 10_000 });
    const answer = reply.json<T & { error?: unknown }>();
    return answer.error === undefined ? answer : undefined;
  }

  /** The owner's name by partition; undefined = nobody's. */
  async owners(): Promise<(string | undefined)[]> {
    const { topic, group, partitions } = this.#settings;
    return await Promise.all(Array.from({ length: partitions }, async (_, at) => {
      const found = await this.#api<{ message: { data: string } }>("STREAM.MSG.GET.KV_xsm", {
        last_by_subj: `$KV.xsm.owner.${topic}.${group}.${at}`,
      });
      const owner = found === undefined ? "" : (JSON.parse(atob(found.message.data)) as { owner: string }).owner;
      return owner === "" ? undefined : owner.split(":")[0];
    }));
  }

  /** The durable of each partition, the newest of several. */
  async #durables(): Promise<(Durable | undefined)[]> {
    const { topic, group, partitions } = this.#settings;
    const found = new Array<Durable | undefined>(partitions).fill(undefined);
    for (let offset = 0;;) {
      const page = await this.#api<{ consumers: Durable[] | null; total: number }>(`CONSUMER.LIST.${topic}`, {
        offset,
      });
      const durables = page?.consumers ?? [];
      for (const durable of durables) {
        const [, partition] = new RegExp(`^${group}-(\\d+)-\\d+$`).exec(durable.name) ?? [];
        const at = Number(partition);
        if (partition !== undefined && (found[at]?.name ?? "") < durable.name) found[at] = durable;
      }
      offset += durables.length;
      if (durables.length === 0 || offset >= page!.total) return found;
    }
  }

  /** Unsettled messages of the whole topic, and messages not delivered yet. */
  async backlog(): Promise<{ pending: number; waiting: number }> {
    const durables = await this.#durables();
    const sum = (count: (durable: Durable) => number): number =>
      durables.reduce((total, durable) => total + (durable === undefined ? 1 : count(durable)), 0);
    return { pending: sum((one) => one.num_ack_pending), waiting: sum((one) => one.num_pending) };
  }

  /** Up to which message everything is known to be settled, by partition. */
  async floors(): Promise<readonly (string | null)[]> {
    return (await this.#durables()).map((durable) =>
      durable === undefined ? null : String(durable.ack_floor.stream_seq)
    );
  }

  /** How many messages each owner has unsettled, over all partitions. */
  async pendingByName(): Promise<Readonly<Record<string, number>>> {
    const counts: Record<string, number> = {};
    const [owners, durables] = await Promise.all([this.owners(), this.#durables()]);
    durables.forEach((durable, at) => {
      const name = owners[at];
      if (name === undefined || durable === undefined || durable.num_ack_pending === 0) return;
      counts[name] = (counts[name] ?? 0) + durable.num_ack_pending;
    });
    return counts;
  }

  /** Removes everything of the team, and ends the connection. */
  async clear(): Promise<void> {
    await this.#api(`STREAM.DELETE.${this.#settings.topic}`);
    const client = await this.#client;
    await client.close();
  }
}
