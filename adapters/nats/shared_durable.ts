import { BrokerUnavailableError, InvalidOptionError } from "../../core/errors.ts";
import { type ConsumerInfo, nanos } from "./api.ts";
import type { NatsContext } from "./context.ts";
import { API, refusal, refusedAs } from "./errors.ts";
import type { GroupFloor } from "./group_floor.ts";
import { nameOf } from "./names.ts";
import type { Topic } from "./topic_book.ts";

/**
 * The durable that all members of a group read with `ordered: false`. Made where it is missing, behind the last message of
 * which it is known that all before were settled; looked for again when a read says that it is gone.
 */
export class SharedDurable {
  readonly #context: NatsContext;
  readonly #topic: Topic;
  readonly #name: string;
  readonly #floor: GroupFloor;
  readonly #lost: () => void;
  #info: ConsumerInfo | undefined;
  /** When it was made, at the last look: another one under the same name has another time. */
  #created: string | undefined;
  #looking: Promise<ConsumerInfo> | undefined;

  /** @param lost Told when it was made anew, or by another member. */
  constructor(context: NatsContext, topic: Topic, group: string, floor: GroupFloor, lost: () => void) {
    this.#context = context;
    this.#topic = topic;
    this.#name = nameOf("group", group);
    this.#floor = floor;
    this.#lost = lost;
  }

  /** Resolves to it; with no doubt about it, without asking. */
  ready(): Promise<ConsumerInfo> {
    if (this.#info !== undefined) return Promise.resolve(this.#info);
    return this.#looking ??= this.#find().catch((error) => {
      throw refusal("looking at the durable", error);
    }).finally(() => this.#looking = undefined);
  }

  /** Has the server look at it. */
  async look(): Promise<void> {
    await this.#context.api.consumer(this.#topic.names.stream, this.#name);
  }

  /** It may be gone: it is looked for before the next read. */
  doubt(): void {
    this.#info = undefined;
    this.#topic.checked = false;
  }

  async #find(): Promise<ConsumerInfo> {
    const { api, topics, options, events } = this.#context;
    // Its stream may be gone too.
    if (!this.#topic.checked) await topics.check(this.#topic, api);
    const { stream } = this.#topic.names;
    const info = await api.consumer(stream, this.#name) ?? await this.#make();
    mustFit(info);
    const before = this.#created;
    this.#created = info.created;
    this.#info = info;
    const { max_deliver: most = -1, ack_wait: wait } = info.config;
    if (before === undefined) {
      const facts = { group: this.#name };
      if (most > 0) events.signal("delivery-limit", this.#topic.name, { ...facts, most });
      if (wait !== nanos(options.ackWaitMs)) events.signal("other-ack-wait", this.#topic.name, facts);
    } else if (before !== info.created) {
      this.#lost();
    }
    return info;
  }

  async #make(): Promise<ConsumerInfo> {
    const { api, options } = this.#context;
    const { stream } = this.#topic.names;
    if (!options.create) {
      throw new BrokerUnavailableError(
        `the group has no durable on topic "${this.#topic.name}", and it may not be made (create is false)`,
        { details: { topic: this.#topic.name } },
      );
    }
    const floor = this.#topic.workQueue ? 0 : await this.#floor.known();
    try {
      return await api.createConsumer(stream, this.#name, {
        description: "xsm: competing members of a group",
        ...(floor === 0
          ? { deliver_policy: "all" }
          : { deliver_policy: "by_start_sequence", opt_start_seq: floor + 1 }),
        ack_policy: "explicit",
        ack_wait: nanos(options.ackWaitMs),
        max_deliver: -1,
        max_ack_pending: -1,
      });
    } catch (error) {
      // Another member made it in the same moment.
      const made = refusedAs(error, API.consumerExists) ? await api.consumer(stream, this.#name) : undefined;
      if (made === undefined) throw error;
      return made;
    }
  }
}

/** @throws InvalidOptionError where a durable that was made elsewhere is of another kind. */
function mustFit({ config }: ConsumerInfo): void {
  const pull = config.deliver_subject === undefined || config.deliver_subject === "";
  if (pull && config.ack_policy === "explicit") return;
  throw new InvalidOptionError(
    "the durable of this group is there and of another kind: it must be a pull consumer with explicit acks",
    { details: { option: "group" } },
  );
}
