import type { ClientFactory, ProducerSlice } from "./client.ts";
import { Gate } from "./gate.ts";

/** One producer of the client with its sockets. */
class OpenProducer {
  readonly client: ProducerSlice;
  readonly gate: Gate;
  /** Requests on their way. */
  users = 0;
  retired = false;

  constructor(client: ProducerSlice, gate: Gate) {
    this.client = client;
    this.gate = gate;
  }
}

/**
 * The producer of the moment.
 *
 * The client counts its sends for the server, which writes each number once. When a send fails it counts back, whether the
 * server has those records or not, and the next records under the same numbers would be taken for them and not written. So a
 * producer that failed is never used for other records: it is replaced, which costs one request.
 */
export class Producers {
  readonly #create: ClientFactory;
  readonly #timeoutMs: number;
  #current: Promise<OpenProducer> | undefined;
  #gate: Gate | undefined;
  #closed = false;

  constructor(create: ClientFactory, timeoutMs: number) {
    this.#create = create;
    this.#timeoutMs = timeoutMs;
  }

  /** Runs one request on a connected producer. Rejects with the client's own error. */
  async use(run: (client: ProducerSlice, gate: Gate) => Promise<void>): Promise<void> {
    const producer = await (this.#current ??= this.#open());
    producer.users++;
    try {
      await run(producer.client, producer.gate);
    } finally {
      producer.users--;
      if (producer.retired && producer.users === 0) producer.gate.close();
    }
  }

  async #open(): Promise<OpenProducer> {
    const gate = this.#gate = new Gate({ lost: () => this.#lost(gate) });
    if (this.#closed) gate.close();
    try {
      const client = this.#create(gate, this.#timeoutMs).producer({
        idempotent: true,
        allowAutoTopicCreation: false,
        createPartitioner: () => ({ message }: { readonly message: { readonly partition: number } }) =>
          message.partition,
        // It refuses to number its sends without at least one retry. That one is safe: it repeats the same numbers.
        retry: { retries: 1, initialRetryTime: 50, maxRetryTime: 50 },
      });
      await client.connect();
      return new OpenProducer(client, gate);
    } catch (error) {
      gate.close();
      this.#lost(gate);
      throw error;
    }
  }

  #lost(gate: Gate): void {
    if (this.#gate === gate) this.retire();
  }

  /** Uses the producer of the moment for nothing new; what is on its way on it may end. */
  retire(): void {
    const current = this.#current;
    this.#current = undefined;
    this.#gate = undefined;
    current?.then((producer) => {
      producer.retired = true;
      if (producer.users === 0) producer.gate.close();
    }, () => {});
  }

  /** Destroys the connections at once. */
  reset(): void {
    this.#gate?.close();
    this.retire();
  }

  close(): void {
    this.#closed = true;
    this.reset();
  }
}
