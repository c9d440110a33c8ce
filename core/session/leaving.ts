import type { Pump } from "./pump.ts";

/**
 * The pumps that stop and give back. A successor of one waits until it is gone: leaving a topic gives back all that is held
 * there, the successor's too.
 */
export class Leaving {
  readonly #pumps = new Map<Pump, Promise<number>>();

  /** Whether it is on its way out. */
  has(pump: Pump): boolean {
    return this.#pumps.has(pump);
  }

  /** Whether one of this topic and group is. */
  hasOf(topic: string, group: string): boolean {
    return this.#of(topic, group).length > 0;
  }

  /** Runs `work` for a pump, or waits for the run that is under way. */
  run(pump: Pump, work: () => Promise<number>): Promise<number> {
    let leaving = this.#pumps.get(pump);
    if (leaving === undefined) {
      leaving = work().finally(() => this.#pumps.delete(pump));
      this.#pumps.set(pump, leaving);
    }
    return leaving;
  }

  /** Resolves when none of this topic and group is on its way out. */
  async gone(topic: string, group: string): Promise<void> {
    while (this.hasOf(topic, group)) await Promise.all(this.#of(topic, group));
  }

  /** Resolves when all that are on their way out now are gone. */
  async allGone(): Promise<void> {
    await Promise.all(this.#pumps.values());
  }

  #of(topic: string, group: string): Promise<number>[] {
    return [...this.#pumps].filter(([pump]) => pump.topic === topic && pump.group === group).map(([, left]) => left);
  }
}
