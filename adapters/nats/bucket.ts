/**
 * The key-value bucket that holds what members of a group share: the stream `KV_<bucket>`, as every NATS client and the `nats`
 * tool read it. A value is changed only by who knows its revision.
 *
 * @module
 */
import { BrokerUnavailableError } from "../../core/errors.ts";
import { type Api, nanos, type StreamInfo } from "./api.ts";
import type { HeadersSlice } from "./client.ts";
import type { Connection } from "./connection.ts";
import { API, ApiRefusal, refusal, refusedAs } from "./errors.ts";
import type { ResolvedOptions } from "./resolve.ts";

const utf8 = new TextDecoder();

/** One value as it stands. */
export interface Stored<T> {
  readonly value: T | undefined;
  /** Of the last change, 0 = there never was one. */
  readonly revision: number;
  /** When it was changed, the server's time in ms. */
  readonly at: number;
}

interface StoredMessage {
  readonly message: { readonly seq: number; readonly data?: string; readonly time: string };
}

/** What a bucket is made with. */
export type BucketOptions = Pick<ResolvedOptions, "bucket" | "create" | "storage" | "replicas">;

/** One bucket over one connection. */
export class Bucket {
  readonly #connection: Connection;
  readonly #api: Api;
  readonly #headers: () => HeadersSlice;
  readonly #options: BucketOptions;
  readonly #stream: string;
  #there = false;
  #making: Promise<void> | undefined;

  constructor(connection: Connection, api: Api, headers: () => HeadersSlice, options: BucketOptions) {
    this.#connection = connection;
    this.#api = api;
    this.#headers = headers;
    this.#options = options;
    this.#stream = `KV_${options.bucket}`;
  }

  /** It is looked for anew before it is used again. */
  forget(): void {
    this.#there = false;
  }

  /** The value of a key. */
  async get<T>(key: string): Promise<Stored<T>> {
    return await this.#again(async () => {
      try {
        const { message } = await this.#api.call<StoredMessage>(`STREAM.MSG.GET.${this.#stream}`, {
          last_by_subj: this.#subject(key),
        });
        return { value: parse<T>(message.data), revision: message.seq, at: Date.parse(message.time) };
      } catch (error) {
        if (refusedAs(error, API.noMessage)) return { value: undefined, revision: 0, at: 0 };
        throw error;
      }
    });
  }

  /** Changes a value whose revision is known (0 = there is none); answers the new one, `undefined` where it was changed since. */
  async put(key: string, value: object, revision: number): Promise<number | undefined> {
    return await this.#again(async () => {
      const headers = this.#headers();
      headers.set("Nats-Expected-Last-Subject-Sequence", String(revision));
      const reply = await this.#connection.request(
        "a change of the bucket",
        this.#subject(key),
        JSON.stringify(value),
        {
          headers,
        },
      );
      if (reply.status === 503) throw new ApiRefusal(404, API.streamMissing, "stream not found");
      const answer = JSON.parse(utf8.decode(reply.data)) as {
        readonly seq?: number;
        readonly error?: { readonly code: number; readonly err_code: number; readonly description: string };
      };
      if (answer.error === undefined) return answer.seq;
      if (answer.error.err_code === API.wrongLastSequence) return undefined;
      throw new ApiRefusal(answer.error.code, answer.error.err_code, answer.error.description);
    });
  }

  /** The server's time now, ms; `undefined` where it does not tell. */
  async serverTime(): Promise<number | undefined> {
    const { ts } = await this.#again(() => this.#api.call<StreamInfo>(`STREAM.INFO.${this.#stream}`));
    return ts === undefined ? undefined : Date.parse(ts);
  }

  #subject(key: string): string {
    return `$KV.${this.#options.bucket}.${key}`;
  }

  /** Makes the bucket where it is missing, once more where it went away. */
  async #again<T>(run: () => Promise<T>): Promise<T> {
    for (let first = true;; first = false) {
      try {
        if (!this.#there) await (this.#making ??= this.#ensure().finally(() => this.#making = undefined));
        return await run();
      } catch (error) {
        if (!refusedAs(error, API.streamMissing)) throw refusal("the bucket", error);
        this.#there = false;
        if (!first) throw noBucket();
      }
    }
  }

  async #ensure(): Promise<void> {
    if (await this.#api.stream(this.#stream) === undefined) {
      if (!this.#options.create) throw noBucket();
      await this.#make();
    }
    this.#there = true;
  }

  async #make(): Promise<void> {
    const { bucket, storage, replicas } = this.#options;
    try {
      await this.#api.call(`STREAM.CREATE.${this.#stream}`, {
        name: this.#stream,
        subjects: [`$KV.${bucket}.>`],
        description: "who owns which partition, and how far groups are",
        storage,
        num_replicas: replicas,
        max_msgs_per_subject: 1,
        discard: "new",
        allow_rollup_hdrs: true,
        deny_delete: true,
        allow_direct: true,
        max_msgs: -1,
        max_bytes: -1,
        max_age: 0,
        max_msg_size: -1,
        duplicate_window: nanos(120_000),
      });
    } catch (error) {
      // Another member made it in the same moment.
      if (!refusedAs(error, API.streamExists)) throw error;
    }
  }
}

function parse<T>(data: string | undefined): T | undefined {
  if (data === undefined || data === "") return undefined;
  try {
    return JSON.parse(atob(data)) as T;
  } catch {
    return undefined;
  }
}

function noBucket(): BrokerUnavailableError {
  return new BrokerUnavailableError("the key-value bucket is missing, and it may not be made (create is false)");
}
