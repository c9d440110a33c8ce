/**
 * An HTTP endpoint in this process that speaks the JSON protocol of SQS, over {@link RulesQueue}s, and does what a test asks
 * of it: fail a call, fail some messages of a batch, answer late or never.
 *
 * @module
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { md5, type Refusal, RulesQueue, type StoredMessage } from "./queue.ts";

/** One call as it came in. */
export interface SqsCall {
  readonly action: string;
  readonly input: Input;
  /** The access key that signed it. */
  readonly key: string | undefined;
}

/** Members of requests that are looked at. */
export interface Input {
  readonly QueueName?: string;
  readonly QueueUrl?: string;
  readonly Attributes?: Record<string, string>;
  readonly AttributeNames?: readonly string[];
  readonly MaxNumberOfMessages?: number;
  readonly WaitTimeSeconds?: number;
  readonly VisibilityTimeout?: number;
  readonly ReceiveRequestAttemptId?: string;
  readonly Entries?: readonly BatchEntry[];
}

export interface BatchEntry {
  readonly Id: string;
  readonly MessageBody?: string;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
  readonly ReceiptHandle?: string;
  readonly VisibilityTimeout?: number;
}

/** What a hook makes of a call; `undefined` = it is carried out. */
export type Intervention =
  | undefined
  /** Answered so, not carried out. */
  | { readonly status: number; readonly type: string }
  /** These entries fail, or with `null` are in neither list of the answer; the others are carried out. */
  | { readonly entries: Readonly<Record<string, Refusal | null>> }
  /** Carried out, and the connection is cut before the answer. */
  | { readonly cut: true }
  /** Carried out, and the answer is changed. */
  | { readonly alter: (answer: Record<string, unknown>) => void };

/** Looks at each call before it is carried out. */
export type Hook = (call: SqsCall) => Intervention | Promise<Intervention>;

/** A running endpoint. */
export class SqsEndpoint {
  readonly calls: SqsCall[] = [];
  readonly queues: Map<string, RulesQueue> = new Map();
  /** What happens to calls; none at first. */
  hook: Hook = () => undefined;
  /** Receives that have not been answered. */
  receiving = 0;
  /** The most of them at a time. */
  mostReceiving = 0;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response));
  }

  static async start(): Promise<SqsEndpoint> {
    const endpoint = new SqsEndpoint(createServer({ keepAliveTimeout: 60_000 }));
    await new Promise<void>((resolve) => endpoint.#server.listen(0, "127.0.0.1", resolve));
    return endpoint;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Calls of one action. */
  callsOf(action: string): SqsCall[] {
    return this.calls.filter((call) => call.action === action);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Uint8Array);
    } catch {
      return response.destroy() as unknown as void;
    }
    const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "");
    const input = JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}") as Input;
    const key = /Credential=([^/]+)/.exec(request.headers.authorization ?? "")?.[1];
    const call = { action, input, key };
    this.calls.push(call);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    if (action === "ReceiveMessage") this.mostReceiving = Math.max(this.mostReceiving, ++this.receiving);
    try {
      const what = await this.hook(call);
      if (what !== undefined && "status" in what) return reply(response, what.status, { __type: what.type });
      const failing = what !== undefined && "entries" in what ? what.entries : {};
      const answer = await this.#carryOut(action, input, failing, gone.signal);
      if (what !== undefined && "cut" in what) return void response.socket?.destroy();
      if (what !== undefined && "alter" in what) what.alter(answer);
      if (!gone.signal.aborted) reply(response, 200, answer);
    } catch (error) {
      if (error instanceof Missing) reply(response, 400, { __type: "com.amazonaws.sqs#QueueDoesNotExist" });
      else reply(response, 500, { __type: "InternalFailure" });
    } finally {
      if (action === "ReceiveMessage") this.receiving--;
    }
  }

  async #carryOut(
    action: string,
    input: Input,
    failing: Readonly<Record<string, Refusal | null>>,
    gone: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const name = input.QueueName ?? input.QueueUrl?.split("/").pop() ?? "";
    if (action === "ListQueues") return {};
    if (action === "CreateQueue") {
      if (!this.queues.has(name)) this.queues.set(name, new RulesQueue(name, input.Attributes ?? {}));
      return { QueueUrl: `${this.url}/000000000000/${name}` };
    }
    const queue = this.queues.get(name);
    if (queue === undefined) throw new Missing();
    switch (action) {
      case "GetQueueUrl":
        return { QueueUrl: `${this.url}/000000000000/${name}` };
      case "GetQueueAttributes":
        return {
          Attributes: {
            MaximumMessageSize: "1048576",
            ...queue.attributes,
            ApproximateNumberOfMessages: String(queue.visible),
            ApproximateNumberOfMessagesNotVisible: String(queue.inFlight),
          },
        };
      case "ReceiveMessage": {
        const { MaxNumberOfMessages: max = 1, WaitTimeSeconds: wait = 0, VisibilityTimeout: visibility = 30 } = input;
        const attempt = input.ReceiveRequestAttemptId;
        const found = await queue.wait(max, visibility * 1_000, wait * 1_000, gone, attempt);
        return found.length === 0 ? {} : { Messages: found.map(asReceived) };
      }
      case "SendMessageBatch":
        return batch(input, failing, (entry) => {
          const sent = queue.send(entry.MessageBody ?? "", entry.MessageGroupId, entry.MessageDeduplicationId);
          return "Code" in sent ? sent : { MessageId: sent.id, MD5OfMessageBody: md5(entry.MessageBody ?? "") };
        });
      case "DeleteMessageBatch":
        return batch(input, failing, (entry) => queue.delete(entry.ReceiptHandle ?? "") ?? {});
      case "ChangeMessageVisibilityBatch":
        return batch(
          input,
          failing,
          (entry) => queue.change(entry.ReceiptHandle ?? "", (entry.VisibilityTimeout ?? 0) * 1_000) ?? {},
        );
      default:
        throw new Error(`The endpoint does not know ${action}`);
    }
  }
}

class Missing extends Error {}

function batch(
  { Entries = [] }: Input,
  failing: Readonly<Record<string, Refusal | null>>,
  run: (entry: BatchEntry) => Refusal | Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const Successful: unknown[] = [];
  const Failed: unknown[] = [];
  for (const entry of Entries) {
    if (failing[entry.Id] === null) continue;
    const outcome = failing[entry.Id] ?? run(entry);
    if ("Code" in outcome) Failed.push({ Id: entry.Id, ...outcome });
    else Successful.push({ Id: entry.Id, ...outcome });
  }
  return { Successful, Failed };
}

function asReceived(message: StoredMessage): Record<string, unknown> {
  return {
    MessageId: message.id,
    ReceiptHandle: message.receipt,
    Body: message.body,
    MD5OfBody: md5(message.body),
    Attributes: {
      ApproximateReceiveCount: String(message.receives),
      ...(message.group === undefined ? {} : { MessageGroupId: message.group }),
    },
  };
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "test" });
  response.end(JSON.stringify(body));
}
