/**
 * Middleware around a handler.
 *
 * @module
 */
import type { Envelope } from "../envelope.ts";
import type { Middleware } from "./context.ts";

/** One handler or composed chain: what it answers is a result, or a promise of one. */
export type Invoke<C, R> = (envelope: Envelope, ctx: C) => R | Promise<R>;

/**
 * Puts middleware around `handler`, the first one outermost. The chain answers what the handler answered, or `skipped`
 * where no `next` reached it.
 */
export function compose<C, R>(
  middleware: readonly Middleware<C>[],
  handler: Invoke<C, R>,
  skipped: R,
): Invoke<C, R> {
  if (middleware.length === 0) return handler;
  return async (envelope, ctx) => {
    const run = new Chain(middleware, handler, skipped, envelope, ctx);
    await run.enter(0);
    return run.answer();
  };
}

/** One run through the chain. */
class Chain<C, R> {
  readonly #middleware: readonly Middleware<C>[];
  readonly #handler: Invoke<C, R>;
  readonly #envelope: Envelope;
  readonly #ctx: C;
  /** How far in it got. */
  #reached = -1;
  /** Steps begun and not ended. */
  #open = 0;
  #result: R;

  constructor(
    middleware: readonly Middleware<C>[],
    handler: Invoke<C, R>,
    skipped: R,
    envelope: Envelope,
    ctx: C,
  ) {
    this.#middleware = middleware;
    this.#handler = handler;
    this.#result = skipped;
    this.#envelope = envelope;
    this.#ctx = ctx;
  }

  async enter(at: number): Promise<void> {
    if (at <= this.#reached) throw new TypeError("next() was called twice by one middleware");
    this.#reached = at;
    this.#open++;
    try {
      const step = this.#middleware[at];
      if (step === undefined) this.#result = await this.#handler(this.#envelope, this.#ctx);
      else await step(this.#envelope, this.#ctx, () => this.enter(at + 1));
    } finally {
      this.#open--;
    }
  }

  answer(): R {
    // The unit would be stored while the handler still works in it.
    if (this.#open > 0) throw new TypeError("a middleware returned before its next() had; await next() or return it");
    return this.#result;
  }
}
