import type { AdminSlice, ClientFactory } from "./client.ts";
import { failureOf, typeOf } from "./errors.ts";
import { Gate } from "./gate.ts";

/** Questions and administration: one client, made when it is first needed and anew after it failed. */
export class Admin {
  readonly #create: ClientFactory;
  readonly #timeoutMs: number;
  readonly #keepsTopics: boolean;
  #client: Promise<AdminSlice> | undefined;
  #gate = new Gate({ lost: () => {} });
  #closed = false;

  /** @param keepsTopics Whether it is asked for offsets, so that its client keeps the topics in mind. */
  constructor(create: ClientFactory, timeoutMs: number, keepsTopics: boolean) {
    this.#keepsTopics = keepsTopics;
    this.#create = create;
    this.#timeoutMs = timeoutMs;
  }

  #connect(): Promise<AdminSlice> {
    if (this.#client !== undefined) return this.#client;
    const gate = this.#gate = new Gate({ lost: () => {} });
    if (this.#closed) gate.close();
    const connecting = (async () => {
      const admin = this.#create(gate, this.#timeoutMs).admin();
      await admin.connect();
      // It knows no broker before it has asked for all of them.
      await admin.describeCluster();
      return admin;
    })();
    return this.#client = connecting;
  }

  /**
   * Runs one request. `action` is for errors: "creating a topic".
   *
   * @throws one of our errors; the client is replaced after one that is no answer of the server.
   */
  async call<T>(action: string, run: (admin: AdminSlice) => Promise<T>): Promise<T> {
    try {
      return await this.raw(run);
    } catch (error) {
      throw failureOf(action, error);
    }
  }

  /** The same, with the client's own error. */
  async raw<T>(run: (admin: AdminSlice) => Promise<T>): Promise<T> {
    const client = this.#connect();
    try {
      return await run(await client);
    } catch (error) {
      const type = typeOf(error);
      // Asked once for the ends of a topic, the client asks for it with every other one, also when it is gone.
      const poisoned = type === undefined || type === "UNKNOWN_TOPIC_OR_PARTITION" && this.#keepsTopics;
      if (poisoned && this.#client === client) this.reset();
      throw error;
    }
  }

  /** Connects, or finds out whether the connection still answers. */
  async check(): Promise<void> {
    await this.call("connecting", (admin) => admin.describeCluster());
  }

  /** Destroys the connection; the next call makes a new one. */
  reset(): void {
    this.#client = undefined;
    this.#gate.close();
  }

  close(): void {
    this.#closed = true;
    this.reset();
  }
}
