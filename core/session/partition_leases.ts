import type { Raw } from "../transport.ts";
import type { PumpContext } from "./pump_context.ts";

/**
 * Until when the partitions that the transport owns are ours. Tells the host the earliest of these times, so that a host that
 * was frozen, or whose worker was, hands out nothing that may be another member's by now.
 */
export class PartitionLeases {
  readonly #context: PumpContext;
  readonly #sub: number;
  readonly #owned = new Map<number, { readonly epoch: number; readonly until: number }>();
  #told: number | undefined;

  constructor(context: PumpContext, sub: number) {
    this.#context = context;
    this.#sub = sub;
  }

  /** How many partitions are owned. */
  get count(): number {
    return this.#owned.size;
  }

  /** It is ours in this epoch until then. */
  set(partition: number, epoch: number, until: number): void {
    this.#owned.set(partition, { epoch, until });
    this.#tell();
  }

  /** It is ours no more. */
  delete(partition: number): void {
    this.#owned.delete(partition);
    this.#tell();
  }

  /** Whether our hold on it ran out by `now`; never of one that the transport does not own as a whole. */
  expired(partition: number, now: number): boolean {
    return now > (this.#owned.get(partition)?.until ?? Infinity);
  }

  /** Those that are still ours: a partition may have been lost, and had again, while what was read was on its way. */
  ours(raws: readonly Raw[]): readonly Raw[] {
    const gone = ({ partition, epoch }: Raw): boolean =>
      epoch !== undefined && this.#owned.get(partition)?.epoch !== epoch;
    return raws.some(gone) ? raws.filter((raw) => !gone(raw)) : raws;
  }

  #tell(): void {
    let first = Infinity;
    for (const { until } of this.#owned.values()) first = Math.min(first, until);
    const until = first === this.#told ? undefined : this.#context.hostTime(first);
    if (until === undefined) return;
    this.#told = first;
    this.#context.post({ k: "lease", sub: this.#sub, until });
  }
}
