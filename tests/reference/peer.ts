/**
 * The reference system as a test meets it: a Python process with one of its brokers, asked over standard input.
 *
 * @module
 */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { isRequired, missingReason } from "../support/legs.ts";
import { leg, onLeg, type TestContext, type TestOptions } from "../support/test.ts";

/** What a test needs: a server, and a Python that can import the reference system. */
export interface Both {
  readonly url: string;
  readonly python: string;
}

type Body = (both: Both, context: TestContext) => unknown;

/** Registers tests that need a server and the reference system. */
export interface ReferenceTest {
  (name: string, fn: Body): void;
  (name: string, options: TestOptions, fn: Body): void;
}

/** A `test` for tests of the reference system on the server of leg `server`. */
export function onReference(server: string): ReferenceTest {
  const register = onLeg("reference");
  const skip = leg(server) === undefined && !isRequired(server) ? missingReason(server) : undefined;
  return (title: string, second: TestOptions | Body, third?: Body) => {
    const options = typeof second === "function" ? {} : second;
    const fn = typeof second === "function" ? second : third;
    if (fn === undefined) throw new TypeError(`Test "${title}" has no body`);
    register(`[${server}] ${title}`, { ...options, skip: skip ?? options.skip }, ({ url: python }, context) => {
      const url = leg(server)?.url;
      if (url === undefined) throw new Error(`The leg is required and missing: ${missingReason(server)}`);
      return fn({ url, python }, context);
    });
  };
}

/** Options of the reference system's broker on NATS, in its own names. */
export interface NatsPeerOptions {
  readonly servers: string;
  readonly durable?: string;
  readonly ack_wait_s?: number;
  readonly batch?: number;
}

/** Options of the reference system's broker on RabbitMQ, in its own names. */
export interface RabbitMqPeerOptions {
  readonly url: string;
  readonly exchange?: string;
  readonly prefetch?: number;
  readonly batch?: number;
}

/** Options of the reference system's broker on SQS, in its own names; a topic is the name of a queue that is there. */
export interface SqsPeerOptions {
  readonly endpoint: string;
  readonly visibility_timeout_s?: number;
  readonly batch?: number;
}

/** Options of the reference system's broker on Redis, in its own names. */
export interface PeerOptions {
  readonly url: string;
  readonly prefix: string;
  readonly group?: string;
  readonly consumer?: string;
  readonly shards?: number;
  readonly min_idle_ms?: number;
  readonly batch?: number;
}

/** Options of the reference system's broker on Kafka, in its own names. */
export interface KafkaPeerOptions {
  readonly bootstrap_servers: string;
  readonly group_id?: string;
}

/** An envelope as it stands on the wire. */
export type WireObject = Record<string, unknown> & { readonly id: string };

/** One delivery of the reference system. */
export interface PeerDelivery {
  /** Its number, to settle it by. */
  readonly n: number;
  readonly attempt: number;
  readonly envelope: WireObject;
}

/** The options of one kind of broker. */
export type AnyPeerOptions = PeerOptions | NatsPeerOptions | RabbitMqPeerOptions | KafkaPeerOptions | SqsPeerOptions;

function kindOf(options: AnyPeerOptions): string {
  if ("servers" in options) return "nats";
  if ("bootstrap_servers" in options) return "kafka";
  if ("endpoint" in options) return "sqs";
  return options.url.startsWith("amqp") ? "rabbitmq" : "redis";
}

/** A running reference system. One command at a time. */
export class Peer {
  readonly #process: ChildProcess;
  readonly #answers: string[] = [];
  readonly #ended: Promise<void>;
  #partial = "";
  #stderr = "";
  #over = false;
  #wake: () => void = () => {};
  #turn: Promise<unknown> = Promise.resolve();

  /** Starts one; it ends with the test. */
  constructor(context: TestContext, python: string, options: AnyPeerOptions) {
    const script = fileURLToPath(new URL("./peer.py", import.meta.url));
    const kind = kindOf(options);
    this.#process = spawn(python, [script, kind, JSON.stringify(options)], { stdio: ["pipe", "pipe", "pipe"] });
    this.#process.stdin!.on("error", () => {});
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => this.#stderr += text);
    this.#process.stdout!.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    this.#ended = new Promise((resolve) => {
      this.#process.once("close", () => {
        this.#over = true;
        this.#wake();
        resolve();
      });
    });
    context.cleanup(() => this.kill());
  }

  #read(text: string): void {
    const lines = (this.#partial + text).split("\n");
    this.#partial = lines.pop()!;
    this.#answers.push(...lines);
    if (lines.length > 0) this.#wake();
  }

  #ask<T>(command: Record<string, unknown>): Promise<T> {
    const answer = this.#turn.catch(() => {}).then(() => this.#exchange(command));
    this.#turn = answer;
    return answer as Promise<T>;
  }

  async #exchange(command: Record<string, unknown>): Promise<unknown> {
    this.#process.stdin!.write(`${JSON.stringify(command)}\n`);
    while (this.#answers.length === 0 && !this.#over) await new Promise<void>((resolve) => this.#wake = resolve);
    const line = this.#answers.shift();
    if (line === undefined) throw new Error(`The reference system ended.\n${this.#stderr}`);
    const { value, error } = JSON.parse(line) as { value?: unknown; error?: string };
    if (error !== undefined) throw new Error(`The reference system says ${error}`);
    return value;
  }

  /** Publishes envelopes given by the arguments of its `Envelope.new`, and `attempt`; answers them as they stand on the wire. */
  publish(topic: string, envelopes: readonly Record<string, unknown>[]): Promise<WireObject[]> {
    return this.#ask({ do: "publish", topic, envelopes });
  }

  /** Publishes what it was delivered, with the attempt stamped on it. */
  forward(topic: string, { n }: PeerDelivery): Promise<void> {
    return this.#ask({ do: "forward", topic, n });
  }

  /** Its next deliveries, unsettled, `most` at most; fewer when nothing arrived for `idleMs`. */
  take(topic: string, most: number, idleMs = 20_000): Promise<PeerDelivery[]> {
    return this.#ask({ do: "take", topic, most, idle: idleMs / 1_000 });
  }

  /** The same, each one acknowledged. */
  drain(topic: string, most: number, idleMs = 20_000): Promise<PeerDelivery[]> {
    return this.#ask({ do: "drain", topic, most, idle: idleMs / 1_000 });
  }

  ack(deliveries: readonly PeerDelivery[]): Promise<void> {
    return this.#ask({ do: "ack", ns: deliveries.map(({ n }) => n) });
  }

  nack(deliveries: readonly PeerDelivery[], requeue: boolean): Promise<void> {
    return this.#ask({ do: "nack", ns: deliveries.map(({ n }) => n), requeue });
  }

  /** What it said of messages that it dropped as undecodable. */
  refused(): Promise<string[]> {
    return this.#ask({ do: "refused" });
  }

  /** Ends it without a word to the server. */
  async kill(): Promise<void> {
    if (!this.#over) this.#process.kill("SIGKILL");
    await this.#ended;
  }
}
