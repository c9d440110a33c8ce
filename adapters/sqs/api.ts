import { type Clock, withDeadline } from "../../core/clock.ts";
import { BrokerUnavailableError } from "../../core/errors.ts";
import type { Action, ClientSlice, Sdk } from "./client.ts";

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

  constructor(sdk: Sdk, clock: Clock) {
    this.#sdk = sdk;
    this.#clock = clock;
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
        return new BrokerUnavailableError(`SQS did not answer ${action} in time`, { details: { action } });
      });
    } finally {
      this.#flying.delete(end);
      signal?.removeEventListener("abort", give);
    }
  }

  /** Gives up what is in flight and closes every connection; the next call makes new ones. */
  reset(): void {
    const client = this.#client;
    this.#client = undefined;
    for (const end of this.#flying) end.abort();
    client?.destroy();
  }
}
