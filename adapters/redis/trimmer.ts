import type { Clock } from "../../core/clock.ts";
import type { Connection } from "./connection.ts";
import { TRIM } from "./scripts/topics.ts";

/** Carries out `retentionMs`: an occasional step beside the traffic, never a part of publishing. */
export class Trimmer {
  readonly #clock: Clock;
  readonly #retentionMs: number | undefined;
  readonly #everyMs: number;
  readonly #held: (topic: string) => void;
  readonly #next = new Map<string, number>();
  readonly #told = new Set<string>();

  /** @param held Told once when entries past their time have to stay because a group needs them. */
  constructor(clock: Clock, retentionMs: number | undefined, held: (topic: string) => void) {
    this.#clock = clock;
    this.#retentionMs = retentionMs;
    this.#everyMs = Math.min(60_000, Math.max(1_000, (retentionMs ?? 0) / 10));
    this.#held = held;
  }

  /** Trims a stream if it is time to. Nobody waits for it, and a failure is tried again in its turn. */
  poke(connection: Connection, topic: string, stream: string): void {
    if (this.#retentionMs === undefined) return;
    const now = this.#clock.monotonic();
    if (now < (this.#next.get(stream) ?? 0)) return;
    this.#next.set(stream, now + this.#everyMs);
    connection.run(TRIM, [stream], [String(this.#retentionMs)]).then((reply) => {
      const [, kept] = reply as [number, number];
      if (kept === 0) this.#told.delete(stream);
      else if (!this.#told.has(stream)) {
        this.#told.add(stream);
        this.#held(topic);
      }
    }, () => {});
  }
}
