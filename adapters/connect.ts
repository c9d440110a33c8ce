/**
 * A broker by its URL, connected or failed: the provider switch.
 *
 * | scheme | broker |
 * |---|---|
 * | `memory:` | {@link MemoryBroker} |
 * | `amqp:`, `amqps:` | `RabbitMqBroker` (npm package `amqplib`) |
 * | `kafka:` | `KafkaBroker` (npm package `kafkajs`) |
 * | `redis:`, `rediss:` | `RedisStreamsBroker` (npm package `ioredis`) |
 * | `nats:`, `tls:` | `NatsJetStreamBroker` (npm package `@nats-io/transport-node`) |
 * | `sqs:` | `SqsBroker` (npm package `@aws-sdk/client-sqs`) |
 *
 * On Deno this entry brings every adapter's client with it; a service that stays on one broker imports that adapter.
 *
 * @example
 * ```ts
 * import { connect } from "@xsm/eda/connect";
 *
 * const broker = await connect("memory:", { source: "/shop" });
 * await broker.publish("orders", { type: "shop.order.placed", data: { total: 42 } });
 * await broker.close();
 * ```
 *
 * @module
 */
import type { BrokerOptions, WorkerOptions } from "../core/broker_options.ts";
import type { BrokerAdapter } from "../core/contract.ts";
import { InvalidOptionError } from "../core/errors.ts";
import type { AnyTopics, Topics } from "../core/topics.ts";
import { parseBrokerUrl } from "../core/url.ts";

/** Options of {@link connect}: what every broker takes, plus `adapter` for those of the broker at hand. */
export interface ConnectOptions<T extends Topics = AnyTopics> extends BrokerOptions<T>, WorkerOptions {
  /** Options of the chosen adapter, such as `partitions` of Redis; see its entry. */
  readonly adapter?: Readonly<Record<string, unknown>>;
}

/**
 * Makes the broker that `url` names and connects it.
 *
 * @throws InvalidOptionError for a URL that is none, a scheme without an adapter, or an unknown option; what connecting failed
 * with (`BrokerUnavailableError`, `AuthenticationError`, `ClientMissingError` …) otherwise. Nothing stays open then.
 */
export async function connect<T extends Topics = AnyTopics>(
  url: string,
  options: ConnectOptions<T> = {},
): Promise<BrokerAdapter<T>> {
  const broker = await make(url, options);
  try {
    await broker.connect();
    return broker;
  } catch (error) {
    await broker.close();
    throw error;
  }
}

async function make<T extends Topics>(url: string, options: ConnectOptions<T>): Promise<BrokerAdapter<T>> {
  const { adapter = {}, ...common } = options;
  const { scheme } = parseBrokerUrl(url);
  switch (scheme) {
    case "memory": {
      const { MemoryBroker } = await import("./memory/mod.ts");
      const {
        isolation: _isolation,
        worker: _worker,
        clientModule: _module,
        maxStallMs: _stall,
        keepAlive: _keep,
        ...rest
      } = common;
      return new MemoryBroker<T>({ ...rest as BrokerOptions<T>, ...adapter });
    }
    case "amqp":
    case "amqps": {
      const { RabbitMqBroker } = await import("./rabbitmq/mod.ts");
      return new RabbitMqBroker<T>({ ...common as BrokerOptions<T>, ...adapter, url });
    }
    case "kafka": {
      const { KafkaBroker } = await import("./kafka/mod.ts");
      return new KafkaBroker<T>({ ...common as BrokerOptions<T>, ...adapter, url });
    }
    case "redis":
    case "rediss": {
      const { RedisStreamsBroker } = await import("./redis/mod.ts");
      return new RedisStreamsBroker<T>({ ...common as BrokerOptions<T>, ...adapter, url });
    }
    case "nats":
    case "tls": {
      const { NatsJetStreamBroker } = await import("./nats/mod.ts");
      return new NatsJetStreamBroker<T>({ ...common as BrokerOptions<T>, ...adapter, url });
    }
    case "sqs": {
      const { SqsBroker } = await import("./sqs/mod.ts");
      return new SqsBroker<T>({ ...common as BrokerOptions<T>, ...adapter, url });
    }
    default:
      throw new InvalidOptionError(
        `url: there is no adapter for ${scheme} yet; there are memory, amqp(s), kafka, redis(s), nats, tls and sqs`,
      );
  }
}
