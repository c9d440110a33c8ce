import { Buffer } from "node:buffer";
import {
  type BrokerUnavailableError,
  type EdaError,
  OutcomeUnknownError,
  PublishRefusedError,
} from "../../core/errors.ts";
import type { Outgoing } from "../../core/transport.ts";
import type { ChannelSlice, MessageSlice } from "./client.ts";
import { harmless, publishFailure, refusedSize } from "./errors.ts";
import { propertiesOf } from "./wire.ts";

/** What came of one message: `undefined` = confirmed, `unroutable` = no queue took it, else why not. */
export type Published = undefined | "unroutable" | EdaError;

interface Pending {
  readonly key: string;
  readonly bytes: number;
  returned: boolean;
  settle(outcome: Published): void;
}

/**
 * One channel with confirms, for one exchange. Everything about an unconfirmed message belongs to this one channel: its
 * successor counts anew.
 *
 * The server returns what no queue took before it confirms it. Returned messages are told apart by id and routing key; of
 * several that are alike in both, which one it was does not matter.
 */
export class PublishChannel {
  readonly #channel: ChannelSlice;
  readonly #exchange: string;
  readonly #pending = new Set<Pending>();
  readonly #byKey = new Map<string, Pending[]>();
  #ended = false;
  /** Whether a message was confirmed on it. */
  warm = false;

  constructor(channel: ChannelSlice, exchange: string) {
    this.#channel = channel;
    this.#exchange = exchange;
    channel.on("return", (message) => this.#returned(message as MessageSlice));
  }

  /** Whether it takes messages. */
  get usable(): boolean {
    return !this.#ended;
  }

  /** Sends one; the promise never rejects. */
  publish(message: Outgoing, routingKey: string, closed: () => BrokerUnavailableError): Promise<Published> {
    return new Promise((resolve) => {
      if (this.#ended) return resolve(closed());
      const content = Buffer.from(message.body, "utf8");
      const properties = propertiesOf(message);
      const pending: Pending = {
        key: `${routingKey}\0${properties.messageId}`,
        bytes: content.byteLength,
        returned: false,
        settle: (outcome) => {
          if (!this.#pending.delete(pending)) return;
          this.#forget(pending);
          resolve(outcome);
        },
      };
      try {
        this.#channel.publish(this.#exchange, routingKey, content, properties, (refused) => {
          // The end of the channel calls it too; that is told by `end`, which knows why.
          if (!isEnd(refused)) pending.settle(outcomeOf(pending, refused));
        });
      } catch {
        return resolve(closed());
      }
      this.#pending.add(pending);
      const alike = this.#byKey.get(pending.key);
      if (alike === undefined) this.#byKey.set(pending.key, [pending]);
      else alike.push(pending);
    });
  }

  #returned({ fields, properties }: MessageSlice): void {
    const alike = this.#byKey.get(`${fields.routingKey}\0${String(properties.messageId)}`);
    const first = alike?.find((pending) => !pending.returned);
    if (first !== undefined) first.returned = true;
  }

  #forget(pending: Pending): void {
    const alike = this.#byKey.get(pending.key);
    if (alike === undefined) return;
    if (alike.length === 1) this.#byKey.delete(pending.key);
    else alike.splice(alike.indexOf(pending), 1);
  }

  /** The channel ended: what the server may have is unknown, but for what it said no to. */
  end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const refused = publishFailure(error);
    const size = refusedSize(error);
    for (const pending of [...this.#pending]) {
      const isIt = refused !== undefined && (size === undefined || size === pending.bytes);
      pending.settle(isIt ? refused : unknown("the connection or its channel closed", error));
    }
  }
}

/** What the client calls back with for all that is unconfirmed when a channel ends. */
function isEnd(refused: unknown): boolean {
  return refused instanceof Error && refused.message === "channel closed";
}

function outcomeOf(pending: Pending, refused: unknown): Published {
  if (refused === null || refused === undefined) return pending.returned ? "unroutable" : undefined;
  return new PublishRefusedError(
    "RabbitMQ refused the message: its queue is full (x-overflow reject-publish), or could not store it",
    { details: { reason: "nack" } },
  );
}

function unknown(why: string, cause: unknown): OutcomeUnknownError {
  return new OutcomeUnknownError(
    `publish was sent to RabbitMQ and not confirmed: ${why}`,
    cause === undefined ? {} : { cause: harmless(cause) },
  );
}
