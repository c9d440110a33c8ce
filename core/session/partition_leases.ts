import type { PumpContext } from "./pump_context.ts";

/**
 * Until when the partitions that the transport owns are ours. Tells the host the earliest of these times, so that a host that
 * was frozen, or whose worker was, hands out nothing that may be another member's by now.
 */
export class PartitionLeases {
  readonly #context: PumpContext;
  readonly #sub: number;
  readonly #until = new Map<number, number>();
  #told: number | undefined;

  constructor(context: PumpContext, sub: number) {
    this.#context = context;
    this.#sub = sub;
  }

  /** How many partitions are owned. */
  get count(): number {
    return this.#until.size;
  }

  /** It is ours until then. */
  set(partition: number, until: number): void {
    this.#until.set(partition, until);
    this.#tell();
  }

  /** It is ours no more. */
  delete(partition: number): void {
    this.#until.delete(partition);
    this.#tell();
  }

  /** Whether our hold on it ran out by `now`; never of one that the transport does not own as a whole. */
  expired(partition: number, now: number): boolean {
    return now > (this.#until.get(partition) ?? Infinity);
  }

  #tell(): void {
    const first = Math.min(...this.#until.values());
    const until = first === this.#told ? undefined : this.#context.hostTime(first);
    if (until === undefined) return;
    this.#told = first;
    this.#context.post({ k: "lease", sub: this.#sub, until });
  }
}
