import type { EdaError } from "../../core/errors.ts";
import type { SendOutcome } from "../../core/transport.ts";
import type { ProducedRecord } from "./client.ts";

/** One record on its way. */
export interface Waiting {
  readonly record: ProducedRecord;
  readonly subject: string | undefined;
  readonly call: PublishCall;
  /** Its place in the call. */
  readonly at: number;
  /** About its size. */
  readonly bytes: number;
}

/** One call of the session: collects an outcome a message, and knows at which failure a subject ended. */
export class PublishCall {
  /** Resolves when every message has its outcome. */
  readonly done: Promise<readonly SendOutcome[]>;
  readonly #outcomes: SendOutcome[];
  readonly #ended = new Map<string, EdaError>();
  #resolve: (outcomes: readonly SendOutcome[]) => void = () => {};
  #left: number;

  constructor(count: number) {
    this.#left = count;
    this.#outcomes = new Array<SendOutcome>(count).fill(undefined);
    this.done = new Promise((resolve) => this.#resolve = resolve);
    if (count === 0) this.#resolve(this.#outcomes);
  }

  /** The failure of an earlier message of the same subject. */
  endedBy({ subject }: Waiting): EdaError | undefined {
    return subject === undefined ? undefined : this.#ended.get(subject);
  }

  /** The outcome of one message. */
  settle({ at, subject }: Waiting, error: EdaError | undefined): void {
    if (error !== undefined) {
      this.#outcomes[at] = error;
      if (subject !== undefined && !this.#ended.has(subject)) this.#ended.set(subject, error);
    }
    if (--this.#left === 0) this.#resolve(this.#outcomes);
  }

  /** The outcome of all. */
  fail(error: EdaError): void {
    this.#resolve(this.#outcomes.fill(error));
  }
}
