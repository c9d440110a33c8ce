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

/** What `next()` answers. Knows whether anybody looked at it: `await` and `return` of a subclass ask for its `then`. */
class Next extends Promise<void> {
  looked = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<A = void, B = never>(
    onResolved?: ((value: void) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.looked = true;
    return super.then(onResolved, onRejected);
  }
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
  #ended = false;
  /** What was thrown, and whom it was told. */
  readonly #failures: { readonly error: unknown; readonly told: Next }[] = [];
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

  /** @param told Who hears of its end; undefined for the outermost. */
  async enter(at: number, told?: Next): Promise<void> {
    try {
      await this.#step(at);
    } catch (error) {
      // At once, not when the promise is looked at: answer may be asked before that.
      if (told !== undefined) this.#failures.push({ error, told });
      throw error;
    }
  }

  async #step(at: number): Promise<void> {
    if (this.#ended) throw new TypeError("next() was called after its middleware had ended");
    if (at <= this.#reached) throw new TypeError("next() was called twice by one middleware");
    this.#reached = at;
    this.#open++;
    try {
      const step = this.#middleware[at];
      if (step === undefined) this.#result = await this.#handler(this.#envelope, this.#ctx);
      else await step(this.#envelope, this.#ctx, () => this.#next(at + 1));
    } finally {
      this.#open--;
    }
  }

  #next(at: number): Promise<void> {
    let reject: (error: unknown) => void = () => {};
    let resolve: () => void = () => {};
    const told = new Next((done, failed) => {
      resolve = done;
      reject = failed;
    });
    // Where nobody looks at it, answer fails the event; the rejection itself must not end the process as well.
    Promise.prototype.then.call(told, undefined, () => {});
    this.enter(at, told).then(resolve, reject);
    return told;
  }

  answer(): R {
    this.#ended = true;
    // The unit would be stored while the handler still works in it.
    if (this.#open > 0) throw new TypeError("a middleware returned before its next() had; await next() or return it");
    const failure = this.#failures.find(({ told }) => !told.looked);
    if (failure !== undefined) throw failure.error;
    return this.#result;
  }
}
