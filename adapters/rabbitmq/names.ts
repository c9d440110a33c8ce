/**
 * Names of exchanges and queues.
 *
 * ```text
 *                      partitions 1               partitions n > 1
 * exchange of a topic  orders (fanout)            orders (fanout)
 * its first group      queue orders               orders::hash (x-consistent-hash) -> orders::0 … orders::<n-1>
 * every other group    queue orders::billing      orders::billing::hash -> orders::billing::0 … orders::billing::<n-1>
 * records              orders::partitions, orders::group: internal exchanges that nothing is published to
 * ```
 *
 * Publishing makes the first group's queues, so that nothing is lost before the first consumer comes; the group that
 * subscribes first is recorded and has them. With an exchange of the user's own there is no first group: each has its own.
 *
 * @module
 */
import { InvalidOptionError } from "../../core/errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** What separates the parts of a name; neither topic nor group may hold it. */
const SEPARATOR = "::";
const MAX_BYTES = 255;
const utf8 = new TextEncoder();

/** The queues of one group. */
export interface GroupNames {
  /** One a partition. */
  readonly queues: readonly string[];
  /** The exchange that divides messages among them; absent with one partition. */
  readonly hash?: string;
}

/** Where a topic is published, and what is recorded about it. */
export interface TopicNames {
  readonly exchange: string;
  /** Absent where nothing is recorded. */
  readonly partitions?: string;
  readonly firstGroup?: string;
  /** The queues of the group that was first; absent where there is none. */
  readonly first?: GroupNames;
}

/** A name as AMQP takes it. */
function checked(name: string): string {
  if (utf8.encode(name).byteLength > MAX_BYTES) {
    throw new InvalidOptionError(
      `topic and group give a name of more than ${MAX_BYTES} bytes, which AMQP does not take`,
      {
        details: { option: "topic" },
      },
    );
  }
  return name;
}

function part(what: string, name: string): string {
  if (name.includes(SEPARATOR)) {
    throw new InvalidOptionError(`${what} must not contain ${SEPARATOR} on RabbitMQ`, { details: { option: what } });
  }
  if (what === "topic" && name.startsWith("amq.")) {
    throw new InvalidOptionError("topic must not begin with amq. on RabbitMQ, which keeps such names", {
      details: { option: "topic" },
    });
  }
  return name;
}

function group(base: string, partitions: number): GroupNames {
  if (partitions === 1) return { queues: [checked(base)] };
  return {
    queues: Array.from({ length: partitions }, (_, partition) => checked(`${base}${SEPARATOR}${partition}`)),
    hash: checked(`${base}${SEPARATOR}hash`),
  };
}

/** The names of a topic. */
export function topicNames(topic: string, options: ResolvedOptions): TopicNames {
  part("topic", topic);
  if (options.reference) return { exchange: options.exchange ?? "", first: { queues: [checked(topic)] } };
  const partitions = checked(`${topic}${SEPARATOR}partitions`);
  if (options.exchange !== undefined) return { exchange: options.exchange, partitions };
  return {
    exchange: checked(topic),
    partitions,
    firstGroup: checked(`${topic}${SEPARATOR}group`),
    first: group(topic, options.partitions),
  };
}

/** The names of a group that is not the first. */
export function groupNames(topic: string, name: string, options: ResolvedOptions): GroupNames {
  return group(`${part("topic", topic)}${SEPARATOR}${part("group", name)}`, options.partitions);
}
