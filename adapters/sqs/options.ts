/** Options of the SQS transport. Plain data, so that they can cross to a worker. */
export interface SqsTransportOptions {
  /**
   * `sqs:`, or `sqs://host:port` for an endpoint of one's own; `?region=eu-central-1`, and `?tls=false` for an endpoint
   * without TLS. Credentials do not belong here. Default: `endpoint` and `region`, else what the SDK finds by itself.
   */
  readonly url?: string;
  /** Where SQS answers, `https://…` or `http://…`: a VPC endpoint, an emulator. All calls go there. Default: the region's own. */
  readonly endpoint?: string;
  /** Such as `eu-central-1`. Default: what the SDK finds by itself (`AWS_REGION`, the profile). */
  readonly region?: string;
  /**
   * Order per subject, on FIFO queues (default), or free competition, on standard queues. A topic is a queue of its name, with
   * `.fifo` at its end where `ordered` is not `false`.
   */
  readonly ordered?: boolean;
  /**
   * Queues of topics whose queue has another name than they: the name, or the queue's URL (for queues of another account), by
   * topic. Default: none.
   */
  readonly queues?: Readonly<Record<string, string>>;
  /**
   * Whether a queue that does not exist is created, with the longest retention (14 days) and no redrive policy. Default true;
   * `false`: using its topic is refused.
   */
  readonly create?: boolean;
  /**
   * How long a message stays hidden from others without a sign of life; extended while the host lives. Whole seconds, 2,000 to
   * 43,200,000 ms, default 30,000.
   */
  readonly visibilityTimeoutMs?: number;
  /**
   * How long one read waits at SQS, whole seconds, 1,000 to 20,000 ms, and half of `visibilityTimeoutMs` at most.
   * Default 20,000.
   */
  readonly waitMs?: number;
  /** 1 to 600,000 ms, default 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long any call may stay unanswered (a waiting read: beyond its wait), 10 to 600,000 ms. Default 5,000. */
  readonly commandTimeoutMs?: number;
  /** The largest envelope in bytes; told in the capabilities, never above SQS's own 1,048,576. Default 1,048,576. */
  readonly maxBytes?: number;
  /** Options passed on to `SQSClient` (`credentials`, `profile`, `requestHandler` …), but for those the transport sets itself. */
  readonly client?: Readonly<Record<string, unknown>>;
}

/** Names of the options that a user of the broker gives; the rest come from its common options. */
export const SQS_OPTION_NAMES: readonly string[] = [
  "url",
  "endpoint",
  "region",
  "ordered",
  "queues",
  "create",
  "visibilityTimeoutMs",
  "waitMs",
  "client",
];
