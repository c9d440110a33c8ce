/**
 * The kinds of server that the bed knows. A further one is one more file and one more line here.
 *
 * @module
 */
import type { ServerKind, ToolKind } from "./kind.ts";
import { kafka } from "./kafka_kind.ts";
import { nats, nats215, nats29 } from "./nats_kind.ts";
import { postgres, postgres15 } from "./postgres_kind.ts";
import { rabbitmq, rabbitmq310 } from "./rabbitmq_kind.ts";
import { redis, redis8, valkey } from "./redis_kind.ts";
import { sqs } from "./sqs_kind.ts";
import { reference } from "./reference_tool.ts";

/** All kinds, in the order in which they are started. */
export const kinds: readonly ServerKind[] = [
  redis,
  redis8,
  valkey,
  nats,
  nats29,
  nats215,
  kafka,
  sqs,
  postgres,
  postgres15,
  rabbitmq,
  rabbitmq310,
];

/** Programs that are legs without being servers. */
export const tools: readonly ToolKind[] = [reference];

/** The kind called `name`. */
export function kindOf(name: string): ServerKind {
  const kind = kinds.find((kind) => kind.name === name);
  if (kind === undefined) {
    throw new TypeError(`The bed knows no server "${name}": use ${kinds.map((k) => k.name).join(", ")}`);
  }
  return kind;
}
