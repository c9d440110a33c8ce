import { Alarm, type Clock } from "../../core/clock.ts";
import type { Connection } from "./connection.ts";
import type { Consumer } from "./consumer.ts";

/**
 * Knows until when what consumers hold is ours for sure. The server ends a connection, and gives its messages to others, when
 * it has heard nothing of it for a heartbeat or more; so an answer proves our hold for one heartbeat from when it was asked for.
 * A process that was frozen finds its hold expired, and asks first.
 */
export class HoldKeeper {
  readonly #clock: Clock;
  readonly #connection: Connection;
  readonly #active: () => readonly Consumer[];
  readonly #tell: (consumer: Consumer, until: number) => void;
  readonly #alarm: Alarm;

  constructor(
    clock: Clock,
    connection: Connection,
    active: () => readonly Consumer[],
    tell: (consumer: Consumer, until: number) => void,
  ) {
    this.#clock = clock;
    this.#connection = connection;
    this.#active = active;
    this.#tell = tell;
    this.#alarm = new Alarm(clock);
  }

  /** A consumer was given its first message. Something was sent in the last half of a heartbeat, by the heartbeat itself. */
  begin(consumer: Consumer): void {
    const { heartbeatMs } = this.#connection;
    this.#tell(consumer, this.#clock.monotonic() + heartbeatMs / 2);
    this.#arm();
  }

  #arm(): void {
    const { heartbeatMs } = this.#connection;
    if (heartbeatMs === Infinity) return;
    this.#alarm.set(heartbeatMs / 4, () => {
      for (const consumer of this.#active()) void this.#confirm(consumer);
      if (this.#active().length > 0) this.#arm();
    });
  }

  async #confirm(consumer: Consumer): Promise<void> {
    const askedAt = this.#clock.monotonic();
    const { heartbeatMs } = this.#connection;
    if (await consumer.confirmed()) this.#tell(consumer, askedAt + heartbeatMs);
  }

  /** Ends the timer. */
  stop(): void {
    this.#alarm.cancel();
  }
}
