import type { Clock } from "../core/clock.ts";
import { ClosedError } from "../core/errors.ts";
import type { Link, LinkSink } from "../core/link.ts";
import { asStartError, Session, type SessionOptions } from "../core/session/session.ts";
import type { ToSession } from "../core/session/messages.ts";
import type { Transport } from "../core/transport.ts";

/** A link without a thread: the same session, in process. It cannot keep leases while the process is busy, and knows it. */
export class InlineLink implements Link {
  readonly #create: () => Transport | Promise<Transport>;
  readonly #clock: Clock;
  readonly #options: SessionOptions;
  #session: Session | undefined;
  #ended = false;

  constructor(create: () => Transport | Promise<Transport>, clock: Clock, options: SessionOptions) {
    this.#create = create;
    this.#clock = clock;
    this.#options = { ...options, maxStallMs: 0 };
  }

  async start(sink: LinkSink): Promise<void> {
    try {
      const transport = await this.#create();
      if (this.#ended) throw new ClosedError("the broker was closed while it started; make a new one");
      this.#session = new Session(transport, this.#clock, this.#options, (message) => sink.receive(message));
    } catch (error) {
      throw asStartError(error);
    }
  }

  post(message: ToSession): void {
    this.#session?.receive(message);
  }

  expired(sub: number, id: number): boolean {
    return this.#session?.expired(sub, id) ?? true;
  }

  end(_deadlineMs: number): Promise<{ readonly terminated: boolean }> {
    this.#ended = true;
    this.#session = undefined;
    return Promise.resolve({ terminated: false });
  }
}
