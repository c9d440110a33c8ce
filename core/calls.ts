import { ClosedError, type EdaError } from "./errors.ts";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Calls to the session that wait for an answer, by number. Every one settles: by its answer, or by {@link Calls.fail}. */
export class Calls {
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #ended = false;

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** A fresh number. */
  next(): number {
    return this.#next++;
  }

  /** Sends what `post` makes of a fresh number and waits for its answer. */
  make(post: (call: number) => void): Promise<unknown> {
    if (this.#ended) return Promise.reject(new ClosedError("the broker is closed; make a new one"));
    return new Promise((resolve, reject) => {
      const call = this.next();
      this.#waiting.set(call, { resolve, reject });
      post(call);
    });
  }

  /** An answer arrived. */
  answer(call: number, value: unknown, error: unknown): void {
    const waiting = this.#waiting.get(call);
    if (waiting === undefined) return;
    this.#waiting.delete(call);
    if (error === undefined) waiting.resolve(value);
    else waiting.reject(error);
  }

  /** All that wait fail. */
  fail(error: EdaError): void {
    for (const [call, waiting] of [...this.#waiting]) {
      this.#waiting.delete(call);
      waiting.reject(error);
    }
  }

  /** All that wait and all to come fail. */
  end(): void {
    this.#ended = true;
    this.fail(new ClosedError("the broker is closed; make a new one"));
  }
}
