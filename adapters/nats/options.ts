/** Options of the NATS JetStream transport. Plain data, so that they can cross to a worker. */
export interface NatsTransportOptions {
  /** `nats://` or `tls://`, with user and password, one host or several: `nats://a:4222,b:4222`. Default: localhost. */
  readonly url?: string;
  /** Order per subject, one owner a partition (default), or free competition. */
  readonly ordered?: boolean;
  /**
   * How many parts a topic is divided into, 1 to 128. Default 1. Stands in the subjects of the stream; all users of a topic
   * must agree.
   */
  readonly partitions?: number;
  /**
   * Whether streams, the bucket, and with `ordered: false` the group's durable, are made where they are missing (default), or
   * only used. The durable of a partition's owner is made in any case: each owner has one of its own.
   */
  readonly create?: boolean;
  /** How long a message may stay unsettled without a sign of life before it comes again, 100 to 86,400,000 ms. Default 30,000. */
  readonly ackWaitMs?: number;
  /** How long the owner of a partition may stay silent before another takes over, 300 to 600,000 ms. Default 15,000. */
  readonly ownerLeaseMs?: number;
  /** Where streams and the bucket are kept that are made here. Default `file`. */
  readonly storage?: "file" | "memory";
  /** Copies of streams and the bucket that are made here, 1 to 5. Default 1. */
  readonly replicas?: number;
  /** How long the server drops duplicates at publish, for streams made here, 100 to 86,400,000 ms. Default 120,000. */
  readonly duplicateWindowMs?: number;
  /**
   * Removes messages older than this, 1,000 ms or more, from streams made here, **read or not**: a slow or absent group loses
   * them for good. Default: messages stay.
   */
  readonly unsafeMaxAgeMs?: number;
  /** The key-value bucket that holds who owns which partition, and how far groups are: 1 to 32 of `A-Z a-z 0-9 _ -`. Default `xsm`. */
  readonly bucket?: string;
  /** The JetStream domain. Default: the one of the server's account. */
  readonly domain?: string;
  /** Our name, unique among all that run at the same time. Default: host name, process id and a random part. */
  readonly consumer?: string;
  /** Path of a credentials file (JWT and seed), read in the worker. */
  readonly credentialsFile?: string;
  /** Seed of an NKey, `SU…`. */
  readonly nkeySeed?: string;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long any other call may stay unanswered before its connection is replaced, 10 to 600,000 ms. Default 5,000. */
  readonly commandTimeoutMs?: number;
  /** The same for publishing. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities. Default 1,048,576. */
  readonly maxBytes?: number;
  /** Options passed on to `@nats-io/transport-node` (`user`, `pass`, `token`, `tls`, `inboxPrefix` …), but for those set here. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const NATS_OPTION_NAMES: readonly string[] = [
  "url",
  "ordered",
  "partitions",
  "create",
  "ackWaitMs",
  "ownerLeaseMs",
  "storage",
  "replicas",
  "duplicateWindowMs",
  "unsafeMaxAgeMs",
  "bucket",
  "domain",
  "consumer",
  "credentialsFile",
  "nkeySeed",
  "client",
];
