/**
 * The JetStream API: requests and answers as JSON. Times in it are nanoseconds.
 *
 * @module
 */
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { Connection } from "./connection.ts";
import { API, ApiRefusal, noJetStream, refusedAs } from "./errors.ts";

const utf8 = new TextDecoder();

/** What a stream is configured as, as far as it is looked at. */
export interface StreamConfig {
  readonly name: string;
  readonly subjects?: readonly string[];
  readonly retention?: string;
  readonly discard?: string;
  readonly max_age?: number;
  readonly max_msgs?: number;
  readonly max_bytes?: number;
  readonly max_msgs_per_subject?: number;
}

/** One stream. */
export interface StreamInfo {
  readonly created: string;
  readonly config: StreamConfig;
  readonly state: { readonly first_seq: number; readonly last_seq: number };
  /** The server's time; from 2.10. */
  readonly ts?: string;
}

/** What a durable is configured as, as far as it is looked at. */
export interface ConsumerConfig {
  readonly durable_name?: string;
  readonly name?: string;
  readonly description?: string;
  readonly deliver_policy: string;
  readonly opt_start_seq?: number;
  readonly deliver_subject?: string;
  readonly ack_policy: string;
  readonly ack_wait?: number;
  readonly backoff?: readonly number[];
  readonly max_deliver?: number;
  readonly max_ack_pending?: number;
  readonly filter_subject?: string;
  readonly filter_subjects?: readonly string[];
  readonly replay_policy?: string;
  readonly num_replicas?: number;
}

/** One durable. */
export interface ConsumerInfo {
  readonly name: string;
  readonly created: string;
  readonly config: ConsumerConfig;
  readonly delivered: { readonly consumer_seq: number; readonly stream_seq: number };
  readonly ack_floor: { readonly consumer_seq: number; readonly stream_seq: number };
  readonly num_ack_pending: number;
  readonly num_pending: number;
}

/** Milliseconds as the API takes them. */
export function nanos(ms: number): number {
  return Math.round(ms * 1_000_000);
}

/** Calls of the API over one connection. */
export class Api {
  readonly #connection: Connection;
  readonly #prefix: string;

  constructor(connection: Connection, domain: string | undefined) {
    this.#connection = connection;
    this.#prefix = domain === undefined ? "$JS.API." : `$JS.${domain}.API.`;
  }

  /** The subject of a call. */
  subject(verb: string): string {
    return this.#prefix + verb;
  }

  /**
   * One call.
   *
   * @throws ApiRefusal where the server says no; ServerUnsupportedError where JetStream is off.
   */
  async call<T>(verb: string, body?: object): Promise<T> {
    const what = verb.split(".").slice(0, 2).join(" ");
    const request = body === undefined ? "" : JSON.stringify(body);
    const { status, data } = await this.#connection.request(what, this.subject(verb), request);
    if (status === 503) {
      if (this.#connection.info?.jetstream === true) {
        throw new BrokerUnavailableError("nobody answers the JetStream API at this moment");
      }
      throw noJetStream();
    }
    let answer: {
      readonly error?: { readonly code?: number; readonly err_code?: number; readonly description?: string };
    };
    try {
      answer = JSON.parse(utf8.decode(data));
    } catch {
      throw new BrokerUnavailableError(`NATS answered ${what} by something that is no JSON`);
    }
    const { error } = answer;
    if (error !== undefined) throw new ApiRefusal(error.code ?? 0, error.err_code ?? 0, error.description ?? "refused");
    return answer as T;
  }

  /** The stream; `undefined` = there is none. */
  async stream(name: string): Promise<StreamInfo | undefined> {
    return await orMissing(this.call<StreamInfo>(`STREAM.INFO.${name}`), API.streamMissing);
  }

  /** The durable; `undefined` = there is none, or its stream is gone. */
  async consumer(stream: string, name: string): Promise<ConsumerInfo | undefined> {
    const look = this.call<ConsumerInfo>(`CONSUMER.INFO.${stream}.${name}`);
    return await orMissing(look, API.consumerMissing, API.streamMissing);
  }

  /** Makes a durable. */
  async createConsumer(stream: string, name: string, config: ConsumerConfig): Promise<ConsumerInfo> {
    const filter = config.filter_subject === undefined ? "" : `.${config.filter_subject}`;
    return await this.call<ConsumerInfo>(`CONSUMER.CREATE.${stream}.${name}${filter}`, {
      stream_name: stream,
      config: { name, durable_name: name, replay_policy: "instant", ...config },
      action: "create",
    });
  }

  /** Removes a durable; one that is gone is no error, nor is it what a server says that could not clear all files of it. */
  async deleteConsumer(stream: string, name: string): Promise<void> {
    try {
      await this.call<unknown>(`CONSUMER.DELETE.${stream}.${name}`);
    } catch (error) {
      if (!(error instanceof ApiRefusal) || await this.consumer(stream, name) !== undefined) throw error;
    }
  }

  /** Names of all durables of a stream. */
  async consumerNames(stream: string): Promise<string[]> {
    const names: string[] = [];
    for (;;) {
      const page = await this.call<{ readonly total: number; readonly consumers?: readonly string[] | null }>(
        `CONSUMER.NAMES.${stream}`,
        { offset: names.length },
      );
      const found = page.consumers ?? [];
      names.push(...found);
      if (found.length === 0 || names.length >= page.total) return names;
    }
  }
}

async function orMissing<T>(call: Promise<T>, ...numbers: readonly number[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (refusedAs(error, numbers)) return undefined;
    throw error;
  }
}
