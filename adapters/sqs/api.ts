import { type Clock, withDeadline } from "../../core/clock.ts";
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { Action, ClientSlice, Sdk } from "./client.ts";
import { isAnswer } from "./errors.ts";

/** What may be said about a call. */
export interface CallOptions {
  /** The call is given up after so many milliseconds. Default: whoever calls looks after that. */
  readonly withinMs?: number;
  /** Gives it up. */
  readonly signal?: AbortSignal;
}

/** Calls of SQS over one client, which {@link Api.reset} replaces together with all that is in flight. */
export class Api {
  readonly #sdk: Sdk;
  readonly #clock: Clock;
  readonly #flying = new Set<AbortController>();
  #client: ClientSlice | undefined;
  #generation = 0;
  /** Whether a call got no answer: other connections may be dead as well, and what is in flight on them. */
  #isSuspect = false;

  constructor(sdk: Sdk, clock: Clock) {
    this.#sdk = sdk;
    this.#clock = clock;
  }

  /** Counts the times that all connections were replaced. */
  get generation(): number {
    return this.#generation;
  }

  /** One call, one attempt. Rejects with what the SDK says. */
  async call<T>(
    action: Action,
    input: Readonly<Record<string, unknown>>,
    { withinMs, signal }: CallOptions = {},
  ): Promise<T> {
    const client = this.#client ??= this.#sdk.client();
    const end = new AbortController();
    const give = (): void => end.abort();
    if (signal?.aborted) end.abort();
    signal?.addEventListener("abort", give, { once: true });
    this.#flying.add(end);
    try {
      const answer = client.send(this.#sdk.command(action, input), { abortSignal: end.signal }) as Promise<T>;
      if (withinMs === undefined) return await answer;
      return await withDeadline(this.#clock, withinMs, answer, () => {
        end.abort();
        this.#isSuspect = true;
        return new BrokerUnavailableError(`SQS did not answer ${action} in time`, { details: { action } });
      });
    } catch (error) {
      if (!end.signal.aborted && !isAnswer(error)) this.#isSuspect = true;
      throw error;
    } finally {
      this.#flying.delete(end);
      signal?.removeEventListener("abort", give);
    }
  }

  /** Begins anew where a call got no answer, so that what else fails for the same reason has failed by then. */
  renew(): void {
    if (this.#isSuspect) this.reset();
  }

  /** Gives up what is in flight and closes every connection; the next call makes new ones. */
  reset(): void {
    this.#isSuspect = false;
    this.#generation++;
    const client = this.#client;
    this.#client = undefined;
    for (const end of this.#flying) end.abort();
    client?.destroy();
  }
}
