/**
 * The slice of `@aws-sdk/client-sqs` that is used.
 *
 * @module
 */
import { ClientMissingError, InvalidOptionError } from "../../core/errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

/** The calls of SQS that are used. */
export type Action =
  | "ChangeMessageVisibilityBatch"
  | "CreateQueue"
  | "DeleteMessageBatch"
  | "GetQueueAttributes"
  | "GetQueueUrl"
  | "ListQueues"
  | "ReceiveMessage"
  | "SendMessageBatch";

/** A client: a pool of connections. */
export interface ClientSlice {
  send(command: unknown, options: { readonly abortSignal: AbortSignal }): Promise<unknown>;
  destroy(): void;
}

/** Makes clients and the commands they send. */
export interface Sdk {
  client(): ClientSlice;
  command(action: Action, input: Readonly<Record<string, unknown>>): unknown;
}

type Class = new (input: Readonly<Record<string, unknown>>) => unknown;

/** Enough for a waiting read of every subscription of a large service beside its other calls. */
const MOST_SOCKETS = 512;

/** Loads the SDK when it is needed, so that this package works without it for those who use other brokers. */
export async function loadSdk(options: ResolvedOptions): Promise<Sdk> {
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import("@aws-sdk/client-sqs") as unknown as Readonly<Record<string, unknown>>;
  } catch (cause) {
    throw new ClientMissingError(
      "the npm package @aws-sdk/client-sqs is not installed: `npm install @aws-sdk/client-sqs`, " +
        "`deno add npm:@aws-sdk/client-sqs` or `bun add @aws-sdk/client-sqs`",
      { cause },
    );
  }
  const Client = module["SQSClient"] as (new (config: unknown) => ClientSlice) | undefined;
  if (typeof Client !== "function") {
    throw new ClientMissingError(
      "the installed @aws-sdk/client-sqs is not one this adapter knows: version 3 is needed",
    );
  }
  const config = configOf(options);
  return {
    client: () => {
      try {
        return new Client(config);
      } catch {
        // Whatever it says may quote what it was given.
        throw new InvalidOptionError("SQSClient does not accept endpoint, region or client options", {
          details: { option: "client" },
        });
      }
    },
    command: (action, input) => new (module[`${action}Command`] as Class)(input),
  };
}

/** The SDK's own would print addresses of queues. */
const SILENT = { trace: () => {}, debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * A client that does nothing by itself: one attempt a call, no retries, no checksums (a mismatch would fail a whole batch;
 * `wire.ts` checks each message).
 */
function configOf({ endpoint, region, client }: ResolvedOptions): Record<string, unknown> {
  const agent = { keepAlive: true, maxSockets: MOST_SOCKETS };
  const handler = client["requestHandler"];
  return {
    logger: SILENT,
    ...client,
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint, useQueueUrlAsEndpoint: false }),
    requestHandler: isHandler(handler) ? handler : {
      httpAgent: agent,
      httpsAgent: agent,
      ...(handler as object | undefined),
    },
    maxAttempts: 1,
    md5: false,
  };
}

/** A ready-made handler, as a `clientModule` may give one; else it is options of the SDK's own. */
function isHandler(value: unknown): boolean {
  return typeof (value as { readonly handle?: unknown } | undefined)?.handle === "function";
}
