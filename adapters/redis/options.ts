/** Options of the Redis Streams transport. Plain data, so that they can cross to a worker. */
export interface RedisTransportOptions {
  /** `redis://` or `rediss://` (TLS), with user, password and database number. Default: what `client` says, else localhost. */
  readonly url?: string;
  /** First part of every key. Default `xsm`. */
  readonly prefix?: string;
  /** Order per subject, one owner a partition (default), or free competition. */
  readonly ordered?: boolean;
  /** How many streams a topic is divided into, 1 to 128. Default 1. Recorded at the server; all users of a topic must agree. */
  readonly partitions?: number;
  /**
   * `ordered: false`: how long a message may stay unsettled without a sign of life before another consumer gets it.
   * `ordered: true`: the same for messages that a consumer of another kind holds in our group. 100 to 86,400,000 ms, default 60,000.
   */
  readonly minIdleMs?: number;
  /** How long one blocking read waits at the server, 10 to 2,000 ms. Default 2,000. */
  readonly blockMs?: number;
  /** How long the owner of a partition may stay silent before another takes over, 300 to 600,000 ms. Default 15,000. */
  readonly ownerLeaseMs?: number;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long any other command may stay unanswered before its connection is replaced, 10 to 600,000 ms. Default 5,000. */
  readonly commandTimeoutMs?: number;
  /** The same for publishing. Default 30,000. */
  readonly publishTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities. Default 1,048,576. */
  readonly maxBytes?: number;
  /**
   * Removes entries older than this, 1,000 ms or more, in a step of its own and never one that a group has not read or has
   * pending; while no group exists, nothing. Default: entries stay.
   */
  readonly retentionMs?: number;
  /**
   * Lets XADD cut the stream at about this many entries, **read or not**: a slow or absent group loses messages for good.
   * Prefer `retentionMs`. Default: none.
   */
  readonly unsafeMaxLen?: number;
  /** Our name in the group, unique among all that run at the same time. Default: host name, process id and a random part. */
  readonly consumer?: string;
  /** Options passed on to ioredis (`tls`, `username`, `sentinels`, `family` …), but for those the transport sets itself. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const REDIS_OPTION_NAMES: readonly string[] = [
  "url",
  "prefix",
  "ordered",
  "partitions",
  "minIdleMs",
  "blockMs",
  "ownerLeaseMs",
  "retentionMs",
  "unsafeMaxLen",
  "consumer",
  "client",
];
