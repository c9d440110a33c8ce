import { PartitionMismatchError } from "../../core/errors.ts";
import type { Connection } from "./connection.ts";
import { isReply, refusal, replies } from "./errors.ts";
import { TopicKeys } from "./keys.ts";
import { PARTITIONS } from "./scripts/topics.ts";

/** One topic as far as this transport knows it. */
export interface Topic {
  readonly name: string;
  readonly keys: TopicKeys;
  /** Whether the number of partitions was compared with the one recorded at the server, on the present connection. */
  checked: boolean;
  checking: Promise<void> | undefined;
}

/**
 * The topics in use, and the check that all who use one divide it alike. The number is recorded at the server by whoever
 * comes first, and compared once after every connect: a subject whose partition moved would lose its order.
 */
export class TopicBook {
  readonly #prefix: string;
  readonly #partitions: number;
  readonly #topics = new Map<string, Topic>();

  constructor(prefix: string, partitions: number) {
    this.#prefix = prefix;
    this.#partitions = partitions;
  }

  /** The topic called `name`. */
  get(name: string): Topic {
    let topic = this.#topics.get(name);
    if (topic === undefined) {
      topic = {
        name,
        keys: new TopicKeys(this.#prefix, name, this.#partitions),
        checked: false,
        checking: undefined,
      };
      this.#topics.set(name, topic);
    }
    return topic;
  }

  /** Compares the number of partitions with the recorded one; rejects with `PartitionMismatchError` when they differ. */
  check(topic: Topic, connection: Connection): Promise<void> {
    if (topic.checked) return Promise.resolve();
    return topic.checking ??= this.#compare(topic, connection).finally(() => topic.checking = undefined);
  }

  async #compare(topic: Topic, connection: Connection): Promise<void> {
    let recorded: unknown;
    try {
      recorded = await connection.call("GET", [topic.keys.record]);
      if (recorded === null) {
        await this.#refuseOtherForm(topic, connection);
        recorded = await connection.run(PARTITIONS, [topic.keys.record], [String(this.#partitions)]);
      }
    } catch (error) {
      throw isReply(error) ? refusal(PARTITIONS.name, error) : error;
    }
    if (Number(recorded) !== this.#partitions) {
      throw this.#mismatch(topic, `${Number(recorded)} is recorded for topic "${topic.name}"`, Number(recorded));
    }
    topic.checked = true;
  }

  /** Where nothing is recorded, another system may have divided the topic, or not: our streams have to be its streams. */
  async #refuseOtherForm(topic: Topic, connection: Connection): Promise<void> {
    const whole = this.#partitions === 1;
    const other = new TopicKeys(this.#prefix, topic.name, whole ? 2 : 1).streams[0]!;
    if (!await exists(connection, other)) return;
    if (whole) {
      // A topic of ours may be called like a part of this one.
      const { record } = new TopicKeys(this.#prefix, `${topic.name}:0`, 1);
      if (await exists(connection, record)) return;
    }
    throw this.#mismatch(
      topic,
      whole
        ? `topic "${topic.name}" is divided already: give the number of its streams`
        : `topic "${topic.name}" is there already and not divided`,
    );
  }

  #mismatch(topic: Topic, why: string, recorded?: number): PartitionMismatchError {
    const details = { topic: topic.name, given: this.#partitions };
    return new PartitionMismatchError(`partitions is ${this.#partitions} here, but ${why}`, {
      details: recorded === undefined ? details : { ...details, recorded },
    });
  }

  /** Everything is compared anew before it is used again. */
  forget(): void {
    for (const topic of this.#topics.values()) topic.checked = false;
  }
}

/** Whether a key is there. To a user whose rights end before it, it is not. */
async function exists(connection: Connection, key: string): Promise<boolean> {
  try {
    return Number(await connection.call("EXISTS", [key])) === 1;
  } catch (error) {
    if (replies(error, "NOPERM")) return false;
    throw error;
  }
}
