/**
 * A plain client that tests look at a NATS server with, and disturb it; it shares nothing with the adapter.
 *
 * @module
 */
import { connect } from "@nats-io/transport-node";

type Client = Awaited<ReturnType<typeof connect>>;

/** One durable as the server tells it. */
export interface DurableInfo {
  readonly name: string;
  readonly created: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly delivered: { readonly stream_seq: number };
  readonly ack_floor: { readonly stream_seq: number };
  readonly num_ack_pending: number;
  readonly num_pending: number;
  readonly num_waiting: number;
}

/** One stream as the server tells it. */
export interface StreamInfo {
  readonly created: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly state: { readonly messages: number; readonly first_seq: number; readonly last_seq: number };
}

/** A connected client. */
export class NatsAdmin {
  readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }

  static async connect(url: string, options: object = {}): Promise<NatsAdmin> {
    return new NatsAdmin(await connect({ servers: url.replace(/^\w+:\/\//, ""), reconnect: false, ...options }));
  }

  async api<T>(verb: string, body?: object): Promise<T> {
    const reply = await this.client.request(`$JS.API.${verb}`, body === undefined ? "" : JSON.stringify(body), {
      timeout: 5_000,
    });
    const answer = reply.json<{ error?: { description: string } }>();
    if (answer.error !== undefined) throw new Error(`${verb}: ${answer.error.description}`);
    return answer as T;
  }

  stream(name: string): Promise<StreamInfo> {
    return this.api(`STREAM.INFO.${name}`);
  }

  durable(stream: string, name: string): Promise<DurableInfo> {
    return this.api(`CONSUMER.INFO.${stream}.${name}`);
  }

  async durables(stream: string): Promise<DurableInfo[]> {
    const page = await this.api<{ consumers: DurableInfo[] | null }>(`CONSUMER.LIST.${stream}`, {});
    return page.consumers ?? [];
  }

  /** The durables by which a group reads a topic, whichever way it does. */
  async durablesOf(stream: string, group: string): Promise<DurableInfo[]> {
    const all = await this.durables(stream).catch(() => []);
    return all.filter(({ name }) => name === group || new RegExp(`^${group}-\\d+-\\d+$`).test(name));
  }

  /** Removes a durable. A busy server may say that it could not clear all files of one that is gone by then. */
  async removeDurable(stream: string, name: string): Promise<void> {
    await this.api(`CONSUMER.DELETE.${stream}.${name}`).catch((error) => {
      if (!/directory not empty/.test((error as Error).message)) throw error;
    });
  }

  /** How many messages a group holds. */
  async inFlight(stream: string, group: string): Promise<number> {
    return (await this.durablesOf(stream, group)).reduce((sum, { num_ack_pending: n }) => sum + n, 0);
  }

  /** Publishes bytes and waits for the stream. */
  async put(subject: string, data: Uint8Array | string, headers?: unknown): Promise<{ seq: number }> {
    const reply = await this.client.request(subject, data, {
      timeout: 5_000,
      ...(headers === undefined ? {} : { headers: headers as never }),
    });
    return reply.json();
  }

  /** The message with a sequence, as text. */
  async message(stream: string, seq: number): Promise<{ subject: string; data: string; headers: string }> {
    const { message } = await this.api<{ message: { subject: string; data?: string; hdrs?: string } }>(
      `STREAM.MSG.GET.${stream}`,
      { seq },
    );
    return { subject: message.subject, data: atob(message.data ?? ""), headers: atob(message.hdrs ?? "") };
  }

  async close(): Promise<void> {
    await this.client.close();
  }
}
