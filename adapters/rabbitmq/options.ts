/** Options of the RabbitMQ transport. Plain data, so that they can cross to a worker. */
export interface RabbitMqTransportOptions {
  /**
   * `amqp://` or `amqps://` (TLS), with user, password and virtual host: `amqp://user:pw@host:5672/vhost`. Several hosts,
   * separated by commas, are tried in turn. Default `amqp://localhost`; the user is `guest` unless one is given.
   */
  readonly url?: string;
  /**
   * Order per subject, one active consumer a partition (default), or free competition. Publishers make the first queue of a
   * topic, so all users of a topic must agree.
   */
  readonly ordered?: boolean;
  /**
   * How many queues a group's messages of a topic are divided into, 1 to 128. Default 1. Recorded at the server; all users of a
   * topic must agree. More than one needs the plugin `rabbitmq_consistent_hash_exchange`.
   */
  readonly partitions?: number;
  /** Whether exchanges, queues and bindings are made (default). `false`: only what is there is used, and nothing is declared. */
  readonly create?: boolean;
  /**
   * Publish to this exchange, with the subject as routing key, instead of to one made for the topic. It must exist. Each group
   * has a queue bound to it, by `bindings`; without any queue a publish is refused.
   */
  readonly exchange?: string;
  /** With `exchange`: the patterns by which a group's queue is bound. Default `["#"]`: everything, on a topic exchange. */
  readonly bindings?: readonly string[];
  /**
   * `"reference"`: one queue without arguments, named after the topic, on the default exchange, as the first reference system
   * declares it. No order across consumers (`ordered: false` is needed), no groups, one partition. Default: none.
   */
  readonly compat?: "reference";
  /** Exchange to which queues made by us send what is dropped. It must exist. Default: none. */
  readonly deadLetterExchange?: string;
  /** Type of queues made by us. Default `quorum`. */
  readonly queueType?: "quorum" | "classic";
  /** Further arguments of queues made by us, such as `x-max-length`. */
  readonly queueArguments?: Readonly<Record<string, string | number | boolean>>;
  /** How often both sides show that they live, 1,000 to 600,000 ms, whole seconds. Default 20,000. */
  readonly heartbeatMs?: number;
  /**
   * The server's own limit for an unsettled message, `consumer_timeout`, 1,000 ms or more. Default 1,800,000, which is the
   * server's. What stays unsettled for half of it is given back: the server would close the channel.
   */
  readonly consumerTimeoutMs?: number;
  /** Our name among the members of a group, for sharing partitions. Default: host name, process id and a random part. */
  readonly consumer?: string;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long a publish may stay unconfirmed, 10 to 3,600,000 ms. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities. Default 1,048,576. */
  readonly maxBytes?: number;
  /** Socket options passed on to amqplib (`ca`, `cert`, `key`, `servername`, `clientProperties` …), but for those set here. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const RABBITMQ_OPTION_NAMES: readonly string[] = [
  "url",
  "ordered",
  "partitions",
  "create",
  "exchange",
  "bindings",
  "compat",
  "deadLetterExchange",
  "queueType",
  "queueArguments",
  "heartbeatMs",
  "consumerTimeoutMs",
  "consumer",
  "client",
];
